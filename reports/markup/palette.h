// SPDX-License-Identifier: GPL-3.0-or-later
/* All colours of pages and drawings, in one place, so that a test can compute what the colour-blind
 * see and how far texts stand out from their grounds. Mesh axes have light tints of the palette of
 * Okabe and Ito, under black text; kinds of memory and shares of time have its full colours. */
#ifndef MTF_PALETTE_H
#define MTF_PALETTE_H

/* "#rrggbb" of a mesh axis; they repeat after MTF_PALETTE_AXES. */
#define MTF_PALETTE_AXES 8
const char *mtf_palette_axis(int axis);

/* "#rrggbb" of the i-th area of a chart; they repeat after MTF_PALETTE_AREAS. */
#define MTF_PALETTE_AREAS 8
const char *mtf_palette_area(int area);

/* The text that stands out from an area, black or white. */
const char *mtf_palette_ink(int area);

/* A colour of the page by its name in the style sheet ("--fg"), in the light and the dark scheme.
 */
typedef struct {
    const char *name;
    const char *light, *dark;
} MtfThemeColor;

/* Ends with a NULL name. */
const MtfThemeColor *mtf_palette_theme(void);

/* Texts are measured with the widest of the common fonts, so that they fit in any of these. */
#define MTF_DRAWING_FONT "DejaVu Sans,Verdana,Helvetica,Arial,sans-serif"

/* Of drawings, which are light in both schemes. */
#define MTF_COLOR_PLAIN "#ffffff"
#define MTF_COLOR_TEXT "#16191d"
#define MTF_COLOR_OPERATION "#f4f6f8"
#define MTF_COLOR_VARIABLE "#e4e7eb"
#define MTF_COLOR_SOFT "#4d5761"
#define MTF_COLOR_LINE "#8a939c"
#define MTF_COLOR_CLUSTER "#c5ccd3"
#define MTF_COLOR_TRAFFIC "#9a3412"

#endif
