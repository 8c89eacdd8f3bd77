// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/command_line.h"

#include <stdio.h>

int main(void) {
    puts("meshtf-run " MTF_VERSION);
    return 0;
}
