// SPDX-License-Identifier: GPL-3.0-or-later
#include "reports/markup/palette.h"

#include <stddef.h>

const char *mtf_palette_axis(int axis) {
    static const char *const colors[MTF_PALETTE_AXES] = {
        "#8ecdf2", "#f5c266", "#5cc6a1", "#f0c0dc", "#f3ea86", "#a9b9e8", "#eda27a", "#cfcfcf",
    };
    return colors[(unsigned)axis % MTF_PALETTE_AXES];
}

const char *mtf_palette_area(int area) {
    static const char *const colors[MTF_PALETTE_AREAS] = {
        "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#6b6b6b",
    };
    return colors[(unsigned)area % MTF_PALETTE_AREAS];
}

const char *mtf_palette_ink(int area) {
    int place = (int)((unsigned)area % MTF_PALETTE_AREAS);
    return place == 0 || place == MTF_PALETTE_AREAS - 1 ? "#ffffff" : "#000000"; /* blue, grey */
}

const MtfThemeColor *mtf_palette_theme(void) {
    static const MtfThemeColor colors[] = {
        { "bg", "#ffffff", "#14181c" },   { "fg", "#1c2126", "#e6e9ec" },
        { "soft", "#56606b", "#a6b0ba" }, { "line", "#d0d7de", "#3a424b" },
        { "card", "#f5f7f9", "#1d2329" }, { "accent", "#0b5cad", "#7ab8ff" },
        { "warn", "#9a3412", "#ffb380" }, { "bar", "#0072b2", "#56b4e9" },
        { "net", "#d55e00", "#e69f00" },  { NULL, NULL, NULL },
    };
    return colors;
}
