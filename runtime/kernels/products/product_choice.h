// SPDX-License-Identifier: GPL-3.0-or-later
/* Which way multiplies (kernel_products.h): the one with the highest rate, by
 *
 *     a trial        of this very shape (--trial), if there was one; else
 *     OpenBLAS       where there is little to do, since oneDNN makes its code first; else
 *     the table      product_rates.inc: measured rates of every way at sides of 1, 16, 128 and 1024,
 *                    for each set of instructions of oneDNN and family of OpenBLAS's kernels
 *
 * So without a trial no clock is asked, and equal runs give equal bits. The choice in force is the
 * process's: rank 0 decides, by its libraries or by a trial, and tells all ranks as one line of
 * text, which checkpoints keep for runs that go on from them:
 *
 *     avx512 avx512_core_bf16; float32 NN 1 512x768x3072 sgemm; bfloat16 NT 48 256x64x256 matmul
 */
#ifndef MTF_PRODUCT_CHOICE_H
#define MTF_PRODUCT_CHOICE_H

#include "layouts/kernel_work/product_work.h"
#include "runtime/kernels/products/kernel_libraries.h"
#include "runtime/kernels/products/kernel_products.h"

typedef struct {
    MtfDtype type;       /* of left and right */
    MtfProductForm form; /* NN, NT or TN, of the product whose result lies row by row */
    int64_t turns;       /* products, one after another */
    int64_t m, n, k;
} MtfProductCase;

/* The size and types by which an einsum's way is chosen. */
MtfProductCase mtf_product_case(const MtfContraction *plan, const MtfDtype types[MTF_TERMS]);

/* Whose rates the table is asked for. `isa` is oneDNN's, with "_slow" behind it where a processor's
 * own products of bfloat16 are slower than float32's. */
typedef struct {
    MtfOpenBlasFamily family;
    const char *isa; /* static */
} MtfProductLibraries;

/* Flop a second by the table; 0 where the way does not apply. */
double mtf_product_rate(const MtfProductLibraries *libraries, const MtfProductCase *shape,
                        MtfProductWay way);

/* The ways for a plan's products, the fastest first, then those to turn to where it does not apply.
 * While trials are on, a shape that was not yet tried is. */
void mtf_product_choice(const MtfContraction *plan, const MtfDtype types[MTF_TERMS],
                        MtfProductWay order[MTF_PRODUCT_WAYS]);

/* From now on shapes are tried (true) or not. */
void mtf_product_choice_set_trial(bool on);

/* The choice in force, as text; free with g_free. Taking it over again, in this process or another;
 * fails (bad input) where it is no such text. NULL goes back to this process's libraries. */
char *mtf_product_choice_text(void);
bool mtf_product_choice_use(const char *text, GError **error);

/* Counts a plan's products for mtf_product_choice_format. */
void mtf_product_choice_count(MtfProductWay way);

/* "products by the table of avx512 and avx512_core_bf16: 12 by sgemm, 3 by matmul"; free with
 * g_free. */
char *mtf_product_choice_format(void);

#endif
