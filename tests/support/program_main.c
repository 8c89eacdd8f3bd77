// SPDX-License-Identifier: GPL-3.0-or-later
/* The main of a test program that has none: the linker takes this one from the library only then. */
#include "tests/support/cmocka.h"

int main(void) {
    return mtf_tests_run(NULL, NULL);
}
