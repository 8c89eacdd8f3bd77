// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/kernel_work/product_work.h"

#include "layouts/graph/window.h"
#include "layouts/kernel_work/contraction.h"
#include "layouts/kernel_work/kernel_scratch.h"
#include "layouts/kernel_work/linear_work.h"

#include <math.h>

static double bytes_of(const MtfTerm *term, int64_t element_bytes) {
    return (double)(mtf_term_elements(term) * element_bytes);
}

static double product_size(const MtfProductWork *work) {
    return work->m * work->n * work->k;
}

static bool lies_by_columns(const MtfContractionLoop *rows, const MtfContractionLoop *columns,
                            int term) {
    return rows->size > 1 && columns->size > 1 && columns->stride[term] != 1;
}

/* One of the plan's products, seen so that its result lies row by row. */
static MtfProductWork one_product(const MtfContraction *plan) {
    const MtfContractionLoop *m = &plan->m, *n = &plan->n, *k = &plan->k;
    bool left = lies_by_columns(m, k, MTF_LEFT), right = lies_by_columns(k, n, MTF_RIGHT);
    MtfProductWork one = { .calls = 1 };
    if (lies_by_columns(m, n, MTF_RESULT)) {
        bool was_left = left;
        left = !right;
        right = !was_left;
        m = &plan->n;
        n = &plan->m;
    }
    one.m = (double)m->size;
    one.n = (double)n->size;
    one.k = (double)k->size;
    one.form = left ? MTF_PRODUCT_TN : right ? MTF_PRODUCT_NT : MTF_PRODUCT_NN;
    return one;
}

/* Adds the products of a plan; the larger size stays and counts the other's work as calls. */
static void add_products(MtfProductWork *work, const MtfContraction *plan) {
    MtfProductWork pair = one_product(plan);
    for (int i = 0; i < plan->n_outer; i++)
        pair.calls *= (double)plan->outer[i].size;
    MtfProductWork *larger = product_size(work) >= product_size(&pair) ? work : &pair;
    double products = work->calls * product_size(work) + pair.calls * product_size(&pair);
    double calls = product_size(larger) > 0 ? products / product_size(larger) : 0;
    pair = *larger;
    pair.calls = calls;
    pair.swept_bytes = work->swept_bytes;
    *work = pair;
}

/* Whether some dimension of more than one point is in `term` and not in `other`. */
static bool stands_alone(const MtfTerm *term, const MtfTerm *other) {
    for (int i = 0; i < term->rank; i++)
        if (term->size[i] > 1 && !mtf_term_has(other, term->dims[i]))
            return true;
    return false;
}

/* Whether both terms have a dimension that the result lacks. */
static bool sums(const MtfTerm terms[MTF_TERMS]) {
    for (int i = 0; i < terms[MTF_LEFT].rank; i++) {
        int dim = terms[MTF_LEFT].dims[i];
        if (mtf_term_has(&terms[MTF_RIGHT], dim) && !mtf_term_has(&terms[MTF_RESULT], dim))
            return true;
    }
    return false;
}

/* Replaces `term` by what is left of it once the dimensions of its own are summed. */
static void sum_alone(MtfProductWork *work, MtfTerm *term, const MtfTerm *other,
                      const MtfTerm *result, int64_t element_bytes) {
    MtfTerm shared;
    if (!mtf_term_shared(term, other, result, &shared))
        return;
    work->swept_bytes += bytes_of(term, element_bytes) + bytes_of(&shared, element_bytes);
    *term = shared;
}

/* result = sum of left right, as the kernel goes about it. */
static void add_pair(MtfProductWork *work, MtfTerm terms[MTF_TERMS], int64_t element_bytes) {
    MtfContractionMeans means = { { element_bytes, element_bytes, element_bytes },
                                  INT64_MAX,
                                  false };
    MtfTerm left = terms[MTF_LEFT];
    sum_alone(work, &terms[MTF_LEFT], &terms[MTF_RIGHT], &terms[MTF_RESULT], element_bytes);
    sum_alone(work, &terms[MTF_RIGHT], &left, &terms[MTF_RESULT], element_bytes);
    bool reuses = stands_alone(&terms[MTF_LEFT], &terms[MTF_RIGHT]) ||
                  stands_alone(&terms[MTF_RIGHT], &terms[MTF_LEFT]);
    MtfContraction plan = { .packs = { true, true, true } };
    bool multiplies = sums(terms) && reuses;
    if (multiplies) {
        mtf_contraction_plan(terms, &means, &plan);
        add_products(work, &plan);
    }
    for (int t = 0; t < MTF_TERMS; t++)
        if (plan.packs[t])
            work->swept_bytes += (multiplies ? 2 : 1) * bytes_of(&terms[t], element_bytes);
}

static void add_terms(MtfProductWork *work, const MtfTerm *terms, int n, const MtfTerm *result,
                      int64_t element_bytes) {
    MtfTerm left = terms[0];
    if (n == 1)
        work->swept_bytes += bytes_of(&left, element_bytes) + bytes_of(result, element_bytes);
    for (int k = 1; k < n; k++) {
        MtfTerm product = *result;
        if (k < n - 1)
            mtf_term_product(&left, &terms[k], &terms[k + 1], n - k - 1, result, &product);
        MtfTerm pair[MTF_TERMS] = { left, terms[k], product };
        add_pair(work, pair, element_bytes);
        left = product;
    }
}

static MtfProductsKind products_of(const MtfOperation *op) {
    return mtf_operation_row(op->kind)->products;
}

static bool is_attention(const MtfOperation *op) {
    return products_of(op) == MTF_PRODUCTS_ATTENTION ||
           products_of(op) == MTF_PRODUCTS_ATTENTION_GRAD;
}

static bool is_linear_attention(const MtfOperation *op) {
    return products_of(op) == MTF_PRODUCTS_LINEAR_ATTENTION ||
           products_of(op) == MTF_PRODUCTS_LINEAR_ATTENTION_GRAD;
}

/* A row of a causal head ends within a block of lanes; half of that block is wasted on average. */
static double keys_seen(const MtfGraph *graph, int operation, const MtfIteration *iteration,
                        const int64_t *sizes, double keys) {
    double share = mtf_operation_share(graph, operation, iteration, sizes);
    return share < 1 ? fmin(keys, share * keys + MTF_ATTENTION_LANES / 2.0) : keys;
}

/* Head by head of all examples. */
static MtfProductWork attention_work(const MtfGraph *graph, int operation,
                                     const MtfIteration *iteration, const int64_t *sizes) {
    const MtfOperation *op = mtf_graph_operation(graph, operation);
    const MtfAttributes *a = &op->attributes;
    MtfProductWork work = { .calls = 1,
                            .form = products_of(op) == MTF_PRODUCTS_ATTENTION
                                        ? MTF_PRODUCT_ATTENTION
                                        : MTF_PRODUCT_ATTENTION_GRAD };
    for (int i = 0; i < iteration->n; i++) {
        int dim = iteration->index[i].dim;
        double *side = dim == a->query       ? &work.m
                       : dim == a->memory    ? &work.n
                       : dim == a->dimension ? &work.k
                                             : NULL;
        if (side != NULL)
            *side = (double)sizes[i];
        else
            work.calls *= (double)sizes[i];
    }
    work.n = keys_seen(graph, operation, iteration, sizes, work.n);
    return work;
}

/* Of dimension `dim` here, and of the whole. */
static double side_of(const MtfIteration *iteration, const int64_t *sizes, int dim, double *whole) {
    int i = 0;
    while (iteration->index[i].dim != dim)
        i++;
    *whole = (double)iteration->index[i].size;
    return (double)sizes[i];
}

/* Group by group, or of groups that are joined together, and expert by expert, rows being chosen evenly;
 * where there are fewer rows than experts, one of each expert that is chosen. */
static MtfProductWork expert_work(const MtfGraph *graph, int operation,
                                  const MtfIteration *iteration, const int64_t *sizes) {
    const MtfOperation *op = mtf_graph_operation(graph, operation);
    MtfTerm ids = mtf_operation_local_term(graph, op->inputs[2], iteration, sizes);
    MtfTerm x = mtf_operation_local_term(graph, op->inputs[0], iteration, sizes);
    MtfTerm w = mtf_operation_local_term(graph, op->inputs[1], iteration, sizes);
    bool back = mtf_graph_tensor(graph, op->outputs[0])->shape.rank == 3 &&
                mtf_graph_tensor(graph, op->outputs[0])->shape.dims[0] == op->attributes.experts;
    double whole, held = side_of(iteration, sizes, op->attributes.experts, &whole);
    int64_t groups = 1, each = ids.size[ids.rank - 1];
    for (int i = 0; i < ids.rank - 1; i++)
        groups *= ids.size[i];
    if (!back && mtf_experts_join_groups(groups, each, (int64_t)whole)) {
        each *= groups;
        groups = 1;
    }
    double rows = (double)each / whole, in = (double)x.size[x.rank - 1];
    MtfProductWork work = { .calls = (double)groups * held * fmin(1, rows),
                            .n = (double)w.size[w.rank - 1],
                            .k = in,
                            .m = fmax(1, rows) };
    if (back) {
        work.m = in;
        work.k = fmax(1, rows);
        work.form = MTF_PRODUCT_TN;
    } else if (w.dims[w.rank - 1] == x.dims[x.rank - 1]) {
        work.n = (double)w.size[w.rank - 2];
        work.form = MTF_PRODUCT_NT;
    }
    return work;
}

/* The channels of one side of a convolution: dimensions of its filter that windows do not go over. */
static double channels_of(const MtfOperation *op, const MtfShape *side, const MtfShape *filter,
                          const MtfIteration *iteration, const int64_t *sizes) {
    double channels = 1;
    for (int i = 0; i < iteration->n; i++) {
        int dim = iteration->index[i].dim;
        bool both = mtf_shape_find(side, dim) >= 0 && mtf_shape_find(filter, dim) >= 0;
        channels *= both && !mtf_window_has(&op->attributes, dim) ? (double)sizes[i] : 1;
    }
    return channels;
}

/* One product of what x and y share by what is made, summing over what x and the filter share: of
 * each place within a window by itself, where the kernel has one; groups go one after another. Of
 * places of the larger side windows that are apart meet a share. */
static MtfProductWork convolution_work(const MtfGraph *graph, const MtfOperation *op,
                                       const MtfIteration *iteration, const int64_t *sizes) {
    MtfProductWork work = { .calls = 1, .m = 1, .n = 1, .k = 1 };
    const MtfShape *a = &mtf_graph_tensor(graph, op->inputs[0])->shape;
    const MtfShape *b = &mtf_graph_tensor(graph, op->inputs[1])->shape;
    const MtfShape *result = &mtf_graph_tensor(graph, op->outputs[0])->shape;
    double *places = &work.m;
    for (int i = 0; i < iteration->n; i++) {
        int dim = iteration->index[i].dim;
        bool in_b = mtf_shape_find(b, dim) >= 0;
        bool made = mtf_shape_find(result, dim) >= 0;
        /* Places within a window of a filter that is made belong to x's channels. */
        bool in_a =
            mtf_shape_find(a, dim) >= 0 || iteration->index[i].other_dim >= 0 || (made && !in_b);
        double *side = !made ? &work.k : in_a && in_b ? &work.calls : in_a ? &work.m : &work.n;
        *side *= (double)sizes[i];
        if (iteration->index[i].other_dim >= 0)
            places = side;
    }
    const MtfOperationRow *row = mtf_operation_row(op->kind);
    bool filters = row->windows == MTF_WINDOWS_FILTER;
    *places *= row->share(&op->attributes, iteration, sizes);
    work.channels[0] = channels_of(op, a, filters ? result : b, iteration, sizes);
    work.channels[1] =
        channels_of(op, filters ? b : result, filters ? result : b, iteration, sizes);
    return work;
}

/* x by a matrix of int8, which is widened on the way: rows are what only x has, columns what only the
 * matrix has. */
static MtfProductWork quantized_work(const MtfGraph *graph, const MtfOperation *op,
                                     const MtfIteration *iteration, const int64_t *sizes) {
    MtfTerm x = mtf_operation_local_term(graph, op->inputs[0], iteration, sizes);
    MtfTerm w = mtf_operation_local_term(graph, op->inputs[1], iteration, sizes);
    MtfProductWork work = { .calls = 1, .m = 1, .n = 1, .k = 1 };
    for (int i = 0; i < x.rank; i++)
        *(mtf_term_has(&w, x.dims[i]) ? &work.k : &work.m) *= (double)x.size[i];
    for (int i = 0; i < w.rank; i++)
        work.n *= mtf_term_has(&x, w.dims[i]) ? 1 : (double)w.size[i];
    int64_t bytes = mtf_dtype_bytes(mtf_operation_storage_dtype(graph, op));
    work.form = mtf_term_has(&x, w.dims[0]) ? MTF_PRODUCT_NN : MTF_PRODUCT_NT;
    work.spared_bytes = work.k * work.n * (double)(bytes - mtf_dtype_bytes(MTF_I8));
    return work;
}

MtfProductWork mtf_operation_product_work(const MtfGraph *graph, int operation,
                                          const MtfIteration *iteration, const int64_t *sizes) {
    const MtfOperation *op = mtf_graph_operation(graph, operation);
    MtfProductWork work = { 0 };
    if (is_attention(op))
        return attention_work(graph, operation, iteration, sizes);
    if (is_linear_attention(op)) {
        MtfLinearHead head = mtf_linear_head(graph, op, iteration, sizes);
        return mtf_linear_product_work(&head,
                                       mtf_dtype_bytes(mtf_operation_storage_dtype(graph, op)));
    }
    if (products_of(op) == MTF_PRODUCTS_EXPERTS)
        return expert_work(graph, operation, iteration, sizes);
    if (products_of(op) == MTF_PRODUCTS_CONV)
        return convolution_work(graph, op, iteration, sizes);
    if (products_of(op) == MTF_PRODUCTS_QUANTIZED)
        return quantized_work(graph, op, iteration, sizes);
    if (products_of(op) != MTF_PRODUCTS_EINSUM)
        return work;
    g_autofree MtfTerm *terms = g_new(MtfTerm, (gsize)op->n_inputs);
    for (int k = 0; k < op->n_inputs; k++)
        terms[k] = mtf_operation_local_term(graph, op->inputs[k], iteration, sizes);
    MtfTerm result = mtf_operation_local_term(graph, op->outputs[0], iteration, sizes);
    int64_t element_bytes = mtf_dtype_bytes(mtf_graph_tensor(graph, op->outputs[0])->dtype);
    add_terms(&work, terms, op->n_inputs, &result, element_bytes);
    return work;
}

/* The local size of dimension `dim`, at most `most`. */
static double local_size(const MtfIteration *iteration, const int64_t *sizes, int dim,
                         int64_t most) {
    for (int i = 0; i < iteration->n; i++)
        if (iteration->index[i].dim == dim)
            return (double)CLAMP(sizes[i], 1, most);
    return 1;
}

double mtf_operation_block_side(const MtfGraph *graph, int operation, const MtfIteration *iteration,
                                const int64_t *sizes) {
    const MtfOperation *op = mtf_graph_operation(graph, operation);
    if (!is_attention(op))
        return 0;
    double m = local_size(iteration, sizes, op->attributes.query, MTF_ATTENTION_QUERIES);
    double n = local_size(iteration, sizes, op->attributes.memory, MTF_ATTENTION_KEYS);
    double k = local_size(iteration, sizes, op->attributes.dimension, INT64_MAX);
    return 3 / (1 / m + 1 / n + 1 / k);
}
