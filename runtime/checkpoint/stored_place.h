// SPDX-License-Identifier: GPL-3.0-or-later
/* Where a variable is in a published model's files, as its `stored` says (layouts/FORMATS.md):
 *
 *     "model.norm.weight[64]"                        the tensor itself
 *     "h.0.attn.c_attn.weight[64,64:128/192]"        columns 64 to 128 of 192
 *     "query_key_value.weight[4*8:16/24,32]"         rows 8 to 16 of every 24, in each of the 4 groups
 *     "experts.{}.w1.weight[32,64]"                  a tensor each of the first dimension's indexes
 *
 * Both lie row-major, so the variable is a row of blocks of one tensor, each `block` elements long
 * and `stride` from the next:
 *
 *     file      | . . # # # . | . . # # # . | . . # # # . |        first 2, block 3, stride 6
 *     variable  # # # # # # # # #                                                            */
#ifndef MTF_STORED_PLACE_H
#define MTF_STORED_PLACE_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define MTF_STORED_MAX_RANK 8

typedef struct {
    char *name; /* of the tensor, with "{}" where there are several */
    int rank;
    int64_t dims[MTF_STORED_MAX_RANK]; /* of the file's tensor */
    int64_t first, block, stride;      /* elements */
    int64_t elements;                  /* of one tensor's part */
    bool stacked;                      /* there are several tensors */
} MtfStoredPlace;

/* Reads a place; clear with mtf_stored_place_clear. Fails (bad input) on anything else, and on
 * sizes whose product exceeds 2^53. */
bool mtf_stored_place_parse(const char *text, MtfStoredPlace *place, GError **error);
void mtf_stored_place_clear(MtfStoredPlace *place);

/* The name of tensor `i` of a stack, and of a single one; free with g_free. */
char *mtf_stored_place_name(const MtfStoredPlace *place, int64_t i);

#endif
