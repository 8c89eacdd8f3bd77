// SPDX-License-Identifier: GPL-3.0-or-later
/* A machine's measured tables of kernels, ready to be asked:
 *
 *     any kernel or local copy   its operation's table, or its class', at the bytes it touches (a convolution
 *                                at its flop); between short and long rows linearly in 1 / length
 *     a sum of products          calls * p(m, n, k) + the passes beside them (kernel_work/product_work.h)
 *     attention                  heads * a(queries, keys seen by each, features), likewise
 *
 * p is measured on a grid of m and n, over k. Between the points it is interpolated linearly in
 * each of the three: a product takes c0 + c1 mnk + c2 mk + c3 kn + c4 mn (starting, multiplying,
 * and packing and writing the three matrices), which such an interpolation hits exactly as long as
 * the five numbers stay the same from one point to the next. A head of attention takes the same:
 * mn are scores to make powers of. */
#ifndef MTF_KERNEL_CURVES_H
#define MTF_KERNEL_CURVES_H

#include "cost/machine/machine.h"
#include "layouts/program/program.h"

#define MTF_PRODUCT_SIDES_MAX 16

/* The products of one form and dtype; `n_m` is 0 where none were measured. */
typedef struct {
    int n_m, n_n;
    double m[MTF_PRODUCT_SIDES_MAX], n[MTF_PRODUCT_SIDES_MAX]; /* rising */
    const MtfMachineCurve *over_k[MTF_PRODUCT_SIDES_MAX][MTF_PRODUCT_SIDES_MAX];
} MtfProductTable;

typedef struct {
    const MtfMachineCurve *operation[MTF_OPERATIONS][MTF_DTYPES];
    const MtfMachineCurve *short_rows[MTF_OPERATIONS][MTF_DTYPES];
    const MtfMachineCurve *class[MTF_CLASSES][MTF_DTYPES];
    MtfProductTable product[MTF_PRODUCT_FORMS][MTF_DTYPES];
    double call_seconds[MTF_DTYPES]; /* of a sum of products beside them */
} MtfKernelCurves;

/* Sorts the machine's tables, which must live as long. Fails when a grid of products has holes or
 * too many sides. */
bool mtf_kernel_curves_init(MtfKernelCurves *curves, const MtfMachine *machine, GError **error);

/* Over what a kernel's own table is measured: the bytes it reads and writes; for sums of products
 * those without the bytes of products; the flop of convolutions. */
double mtf_kernel_curve_work(const MtfInstruction *instruction);

/* The measured seconds of a kernel or a local copy that computes in `dtype`; false when the machine
 * has no table for it. */
bool mtf_kernel_curves_seconds(const MtfKernelCurves *curves, const MtfProgram *program,
                               const MtfInstruction *instruction, MtfDtype dtype, double *seconds);

/* The measured seconds of one product of m x k by k x n; the table must not be empty. */
double mtf_product_table_seconds(const MtfProductTable *table, double m, double n, double k);

#endif
