// SPDX-License-Identifier: GPL-3.0-or-later
/* Windows: how convolutions and pools go over a dimension. Each window relates a place on the larger
 * side, one on the smaller side, and one within the window; between them
 *
 *     large = small stride - before + place dilation
 *
 *     place       0 1 2                              stride 2, before 1, 3 places
 *     large    -1 0 1 2 3 4 5 6 7
 *     small    [__0__]                               elements before 0 and from the end on are
 *                  [__1__]                           padding: they count as 0, and as nothing
 *                      [__2__]                       where the largest is sought
 *
 * conv and pools read the larger side (`from`) and make the smaller (`to`); conv_transpose reads the
 * smaller (`from`) and makes the larger (`to`). The smaller dimension's size says how many windows
 * there are; the last may end in the padding behind, but none begins there. */
#ifndef MTF_WINDOW_H
#define MTF_WINDOW_H

#include "layouts/graph/operation_table.h"

/* Everything the windows hold, for digests and keys. */
void mtf_windows_append(GString *text, const MtfAttributes *attributes);

/* The window that has dimension `dim` on one of its sides; NULL where the row or the operation has
 * none. */
const MtfWindow *mtf_window_of(const MtfOperationRow *row, const MtfAttributes *attributes,
                               int dim);

/* Gives an operation whose row samples the window that it is: one place, from the first element on that is read, or
 * with a dilation d that is made; those read are |stride| apart, those made d. With `wrap` it goes on at 0 behind the
 * end; with a stride below 0 its last window comes first. None where a part of the result is not a stretch of
 * the input (a dilation and a stride of more than one, and what goes round backwards), and where one side is a single
 * element, which any part may have or lack. */
void mtf_window_sample(const MtfGraph *graph, const MtfOperationRow *row,
                       MtfAttributes *attributes);

/* Which sides a window goes between, and which way: its row's form, or its own. */
MtfWindowForm mtf_window_form(const MtfOperationRow *row, const MtfWindow *window);

/* The dimension on the larger side, and on the smaller. */
int mtf_window_larger(const MtfOperationRow *row, const MtfWindow *window);
int mtf_window_smaller(const MtfOperationRow *row, const MtfWindow *window);

/* Of the two the dimension whose parts an operation splits over works on, and the one that it then
 * reads with margins: the larger side where windows gather, else the smaller. */
int mtf_window_parted(const MtfOperationRow *row, const MtfWindow *window);
int mtf_window_margined(const MtfOperationRow *row, const MtfWindow *window);

/* The most elements of an index's other dimension that windows reach from `part` of its own. */
int64_t mtf_window_most(const MtfGraph *graph, const MtfIndex *index, int64_t part);

/* Whether a dimension is one of an operation's windows: either side's, or the filter's. */
bool mtf_window_has(const MtfAttributes *attributes, int dim);

/* Elements from the first that a window meets to its last. */
int64_t mtf_window_extent(const MtfGraph *graph, const MtfWindow *window);

/* Places within the window: the size of its filter's dimension, or its own. */
int64_t mtf_window_places(const MtfGraph *graph, const MtfWindow *window);

#endif
