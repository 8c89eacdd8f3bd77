// SPDX-License-Identifier: GPL-3.0-or-later
/* Kernels that work element by element, alone or followed by a sum or maximum. Each row of the
 * operation table contributes one function over short arrays, its *map*; the walk over dimensions,
 * broadcasting and reducing is the same for all:
 *
 *     loops over the slices ──► a block of elements, ──► map ──► output
 *                               every input an array      └──► reduce ──► output
 *
 * An input that stands still along a block (a bias per row, a statistic) is repeated into a small
 * array that stays in the nearest cache, so a map is one loop that the compiler vectorises. Maps
 * for which even that costs too much look at `uniform`. Elements in bfloat16 are widened into such
 * an array and results rounded from one, and bools likewise become 0 or 1 of the type of what they meet,
 * int32 among themselves; so maps compute in float32, float64, int32 or int64. */
#ifndef MTF_KERNEL_MAP_H
#define MTF_KERNEL_MAP_H

#include "runtime/kernels/base/kernel.h"

#define MTF_MAP_INPUTS 8
#define MTF_MAP_PARAMETERS 8

typedef struct {
    int64_t n; /* elements */
    int n_inputs;
    const void *in[MTF_MAP_INPUTS]; /* NULL beyond n_inputs */
    void *out[MTF_MAX_OUTPUTS];
    unsigned uniform;         /* bit k: all elements of input k are equal */
    const double *parameters; /* numbers that do not change during a call */
} MtfMapBlock;

typedef void (*MtfMap)(const MtfMapBlock *block);

/* A row's map. */
typedef struct {
    MtfMap f32, f64;
    int arrays; /* inputs beyond this many are scalars, which reach the map as parameters; 0 = none
                 */
    void (*parameters)(const MtfKernelCall *call, double *parameters); /* NULL = no parameters */
    MtfMap i32, i64;                                                   /* NULL = of floats alone */
} MtfMapRow;

/* The map of an operation kind; its functions are NULL where the row has none. */
const MtfMapRow *mtf_map_row(int operation_kind);

/* softmax times weights, for cross_entropy_grad: (logits, max, sum, dy[, mask]). */
extern const MtfMapRow mtf_map_softmax_weighted;

/* A map and what it is applied to. */
typedef struct {
    MtfMap map; /* NULL: input 0 as it is (mtf_element_map_reduce only) */
    int n_inputs, n_outputs;
    const MtfOperand *in[MTF_MAP_INPUTS];
    const MtfOperand *out[MTF_MAX_OUTPUTS]; /* all of one shape */
    double parameters[MTF_MAP_PARAMETERS];
    bool continues; /* output 0 holds what was folded before (mtf_element_map_reduce only) */
    bool wide;      /* output 0 sums what the map computes in float32, in float64 (likewise) */
} MtfElementMap;

/* Applies the map for each element of output 0. */
void mtf_element_map_apply(const MtfElementMap *mapping);

/* Applies the map for each point of the inputs' dimensions and sums the results (or takes their
 * maximum) over the dimensions that output 0 lacks, which is not bfloat16. Sums of float32 may be float64. */
void mtf_element_map_reduce(const MtfElementMap *mapping, MtfReduction reduction);

/* The value of an operand without dimensions. */
double mtf_operand_scalar(const MtfOperand *operand);

/* The kernels made of them. */
void mtf_kernel_map(const MtfKernelCall *call);    /* the row's map */
void mtf_kernel_reduce(const MtfKernelCall *call); /* … reduced as the row says */
void mtf_kernel_mean(const MtfKernelCall *call);   /* … and divided by the whole count */
void mtf_kernel_add(const MtfKernelCall *call);    /* any number of inputs */
void mtf_kernel_accumulate(const MtfKernelCall *call);

/* Their rows (kernel.h), which stand with the maps. */
extern const MtfKernelRow mtf_map_kernels[];

#endif
