// SPDX-License-Identifier: GPL-3.0-or-later
/* What operations cost alone on meshes of one machine, laid in order, for all searches that ask: most operations of a
 * variant of the step are another's, too, and layers that differ in the names of their dimensions have the same.
 *
 *     operation, its dimensions by number  x  mesh   ──►   placements, strategy   nanoseconds
 *     contract a 64, b 512 ...                4x8          0 rows, 1 cols              5000
 *                                                          - rows, 1 cols              9000
 *
 * Several threads may ask at once. */
#ifndef MTF_OPERATION_PRICES_H
#define MTF_OPERATION_PRICES_H

#include "layouts/placement/layout.h"

typedef struct MtfOperationPrices MtfOperationPrices;

/* The prices of one operation on one mesh. */
typedef struct MtfPlacedPrices MtfPlacedPrices;

/* Nothing is known yet. The caller frees it. */
MtfOperationPrices *mtf_operation_prices_new(void);
void mtf_operation_prices_free(MtfOperationPrices *prices);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfOperationPrices, mtf_operation_prices_free)

/* Those of an operation by its text (mtf_operation_alone_text), which belong to `prices`. */
MtfPlacedPrices *mtf_operation_prices_of(MtfOperationPrices *prices, const char *text,
                                         const MtfMesh *mesh);

/* Whether the nanoseconds are known of the operation where it lies as in `alone`, a layout of it and its tensors alone;
 * `dimensions` are its own (mtf_operation_alone_dimensions). */
bool mtf_placed_prices_find(MtfPlacedPrices *placed, const MtfLayout *alone,
                            const GArray *dimensions, int64_t *nanoseconds);

/* Notes what was not known, unless there are too many by now. */
void mtf_placed_prices_add(MtfPlacedPrices *placed, const MtfLayout *alone,
                           const GArray *dimensions, int64_t nanoseconds);

#endif
