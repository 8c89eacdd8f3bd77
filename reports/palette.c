// SPDX-License-Identifier: GPL-3.0-or-later
#include "reports/palette.h"

const char *mtf_palette_axis(int axis) {
    static const char *const colors[] = { "#8ecdf2", "#f5c266", "#74d1b3", "#e6b3cf",
                                          "#f3ea86", "#a9b9e8", "#eda27a", "#cfcfcf" };
    return colors[(unsigned)axis % (sizeof colors / sizeof *colors)];
}
