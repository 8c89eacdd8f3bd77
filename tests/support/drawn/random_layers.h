// SPDX-License-Identifier: GPL-3.0-or-later
/* Pieces of networks to draw: windows, norms, attention, experts, loops, losses. Each adds operations to the
 * graph, with what they need, and returns the tensor that they make, or -1 where its operands do not suit. */
#ifndef MTF_TESTS_RANDOM_LAYERS_H
#define MTF_TESTS_RANDOM_LAYERS_H

#include "tests/support/drawn/random_draw.h"

/* Any of them. */
int mtf_draw_layer(MtfDraw *draw);

/* conv or conv_transpose over one to three dimensions of any tensor, its other dimensions in any of the
 * roles that windows leave them; max_pool or average_pool. */
int mtf_draw_conv(MtfDraw *draw);
int mtf_draw_pool(MtfDraw *draw);

#endif
