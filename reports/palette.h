// SPDX-License-Identifier: GPL-3.0-or-later
/* Colours of mesh axes: tints of the Okabe-Ito palette, told apart by the colour-blind and in
 * print, light enough for black text at a contrast of at least 4.5:1. */
#ifndef MTF_PALETTE_H
#define MTF_PALETTE_H

/* "#rrggbb" of a mesh axis. */
const char *mtf_palette_axis(int axis);

#define MTF_COLOR_PLAIN "#ffffff"
#define MTF_COLOR_OPERATION "#f4f6f8"
#define MTF_COLOR_VARIABLE "#e4e7eb"
#define MTF_COLOR_UPDATE "#f1e9f7"
#define MTF_COLOR_LINE "#5b6570"
#define MTF_COLOR_TRAFFIC "#9a3412"

#endif
