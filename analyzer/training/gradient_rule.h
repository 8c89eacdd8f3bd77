// SPDX-License-Identifier: GPL-3.0-or-later
/* What rules of gradients are written with. Intermediates are called "back/OPERATION/WHAT"; the share
 * of input k is "back/OPERATION/k". */
#ifndef MTF_GRADIENT_RULE_H
#define MTF_GRADIENT_RULE_H

#include "analyzer/training/gradient_table.h"

/* Appends an operation on the way back; returns its first result, -1 after an error. */
int mtf_gradient_back(MtfGradient *g, int kind, const char *what, const MtfShape *shape, int n,
                      const int *inputs);
#define MTF_BACK(g, kind, what, shape, ...)                                              \
    mtf_gradient_back(g, kind, what, shape, (int)G_N_ELEMENTS(((int[]){ __VA_ARGS__ })), \
                      (int[]){ __VA_ARGS__ })

/* factor x */
int mtf_gradient_scaled(MtfGradient *g, const char *what, int x, double factor);

/* The name of input k's share; free with g_free. */
char *mtf_gradient_share_name(const MtfGradient *g, int k);

/* Whether input k is there and leads to a variable. */
bool mtf_gradient_wants(const MtfGradient *g, int k);

/* Of a tensor: its shape, a copy, since the graph's array moves as it grows, of rank 0 for -1; its
 * type; the operation that makes it, or NULL. */
MtfShape mtf_gradient_shape_of(const MtfGradient *g, int tensor);
MtfDtype mtf_gradient_dtype_of(const MtfGradient *g, int tensor);
const MtfOperation *mtf_gradient_maker(const MtfGradient *g, int tensor);

/* How many elements the mean is over that made the result: of the whole step, since a mean over the
 * batch is one over all its micro-batches, unless the operation says that it is of each of them. */
double mtf_gradient_mean_count(const MtfGradient *g);

/* Gives input k the elements of `share`, summed or repeated to the input's shape. */
void mtf_gradient_give_fitted(MtfGradient *g, int k, int share);

/* Applies one operation whose result is the share of input k. */
void mtf_gradient_give_result(MtfGradient *g, int k, int kind, int n, const int *inputs);
#define MTF_GIVE(g, k, kind, ...)                                                     \
    mtf_gradient_give_result(g, k, kind, (int)G_N_ELEMENTS(((int[]){ __VA_ARGS__ })), \
                             (int[]){ __VA_ARGS__ })

/* Gives input k factor x. */
void mtf_gradient_give_scaled(MtfGradient *g, int k, int x, double factor);

/* Gives input k the sum of a product over the dimensions it lacks. `a` has all dimensions of the
 * input. */
void mtf_gradient_give_product(MtfGradient *g, int k, int a, int b);

#endif
