// SPDX-License-Identifier: GPL-3.0-or-later
/* Operators that read and write at places which are given as numbers. */
#include "analyzer/onnx/operators/onnx_places.h"

#include "analyzer/onnx/onnx_known.h"
#include "analyzer/onnx/onnx_operators.h"
#include "analyzer/onnx/onnx_steps.h"
#include "analyzer/onnx/operators/onnx_shapes.h"

#include <inttypes.h>
#include <string.h>

/* ---- Places ---------------------------------------------------------------------------------- */

MtfOnnxValue *mtf_onnx_from_either_end(MtfOnnxTranslation *t, MtfOnnxValue *ids, int64_t rows) {
    if (ids == NULL)
        return NULL;
    MtfOnnxValue *below = mtf_onnx_binary(t, MTF_OP_LESS, ids, mtf_onnx_scalar(t, ids->type, 0));
    return mtf_onnx_where(t, below, mtf_onnx_affine(t, ids, 1, (double)rows), ids);
}

static int64_t product(const int64_t *sizes, int n) {
    int64_t all = 1;
    for (int k = 0; k < n; k++)
        all *= sizes[k];
    return all;
}

/* Places of several axes as places of these axes in one, row by row: the last axis of `ids` has a number for
 * each of `sizes`. */
static MtfOnnxValue *flat_places(MtfOnnxTranslation *t, MtfOnnxValue *ids, const int64_t *sizes) {
    int last = ids->rank - 1, n = (int)ids->sizes[last];
    MtfOnnxValue *flat = NULL;
    ids = mtf_onnx_cast(t, ids, MTF_ONNX_DOUBLE); /* whole numbers are not cut */
    for (int j = 0; j < n && t->error == NULL; j++) {
        MtfOnnxValue *place = mtf_onnx_slice(t, ids, last, j, 1, 1);
        place = mtf_onnx_squeeze(t, place, 1U << last);
        place = mtf_onnx_from_either_end(t, place, sizes[j]);
        place = mtf_onnx_affine(t, place, (double)product(sizes + j + 1, n - j - 1), 0);
        flat = flat == NULL ? place : mtf_onnx_binary(t, MTF_OP_ADD, flat, place);
    }
    return mtf_onnx_cast(t, flat, MTF_ONNX_INT64);
}

/* Whether the last axis of ids says places in axes from `first` on of x. */
static bool says_places(MtfOnnxCall *call, const MtfOnnxValue *x, const MtfOnnxValue *ids,
                        int64_t first) {
    if (ids->rank > 0 && first >= 0 && first < MIN(x->rank, ids->rank) &&
        ids->sizes[ids->rank - 1] >= 1 && ids->sizes[ids->rank - 1] <= x->rank - first)
        return true;
    mtf_onnx_fail(call->t, "the last axis of its indices should say places in axes of its input");
    return false;
}

/* ---- Reading --------------------------------------------------------------------------------- */

MtfOnnxValue *mtf_onnx_read_rows(MtfOnnxTranslation *t, MtfOnnxValue *x, MtfOnnxValue *places,
                                 const int64_t sizes[3], int64_t m) {
    const int64_t of_all[] = { sizes[0], m, 1 }, wide[] = { sizes[0], m, sizes[2] };
    if (sizes[0] == 1)
        return mtf_onnx_lookup(t, mtf_onnx_reshape(t, x, 2, sizes + 1),
                               mtf_onnx_reshape(t, places, 1, &m), 0);
    MtfOnnxValue *ids = mtf_onnx_expand(t, mtf_onnx_reshape(t, places, 3, of_all), 3, wide);
    return mtf_onnx_lookup_along(t, mtf_onnx_reshape(t, x, 3, sizes), ids, 1);
}

static MtfOnnxValue *gather_nd(MtfOnnxCall *call) {
    MtfOnnxValue *x = call->inputs[0], *ids = call->inputs[1];
    int64_t first = mtf_onnx_int(call, "batch_dims", 0), sizes[2 * MTF_ONNX_MAX_RANK];
    if (!says_places(call, x, ids, first))
        return NULL;
    int b = (int)first, k = (int)ids->sizes[ids->rank - 1], m = ids->rank - 1 - b;
    int rest = x->rank - b - k, rank = b + m + rest;
    if (rank > MTF_ONNX_MAX_RANK)
        return mtf_onnx_fail(call->t, "more than %d dimensions", MTF_ONNX_MAX_RANK);
    const int64_t blocks[] = { product(x->sizes, b), product(x->sizes + b, k),
                               product(x->sizes + b + k, rest) };
    MtfOnnxValue *places = flat_places(call->t, ids, x->sizes + b);
    MtfOnnxValue *rows = mtf_onnx_read_rows(call->t, x, places, blocks, product(ids->sizes + b, m));
    memcpy(sizes, ids->sizes, sizeof *sizes * (size_t)(b + m));
    memcpy(sizes + b + m, x->sizes + b + k, sizeof *sizes * (size_t)rest);
    return mtf_onnx_reshape(call->t, rows, rank, sizes);
}

/* ReverseSequence: the first lengths[i] elements of text i in reverse order, the others as they are. */
static MtfOnnxValue *reverse_sequence(MtfOnnxCall *call) {
    MtfOnnxTranslation *t = call->t;
    MtfOnnxValue *x = call->inputs[0], *lengths = call->inputs[1];
    int64_t time = mtf_onnx_int(call, "time_axis", 0), batch = mtf_onnx_int(call, "batch_axis", 1);
    if (x->rank < 2 || time + batch != 1 || time * batch != 0)
        return mtf_onnx_fail(t, "axes 0 and 1 should be time and batch");
    int64_t n = x->sizes[batch], shape[MTF_ONNX_MAX_RANK] = { 0 };
    for (int k = 0; k < x->rank; k++)
        shape[k] = k == batch ? n : 1;
    lengths = mtf_onnx_reshape(t, lengths, x->rank, shape);
    shape[batch] = 1;
    shape[time] = x->sizes[time];
    MtfOnnxValue *place = mtf_onnx_range(t, MTF_ONNX_INT64, x->rank, shape, (int)time);
    MtfOnnxValue *back =
        mtf_onnx_binary(t, MTF_OP_SUBTRACT, mtf_onnx_affine(t, lengths, 1, -1), place);
    MtfOnnxValue *turned = mtf_onnx_binary(t, MTF_OP_LESS, place, lengths);
    MtfOnnxValue *ids = mtf_onnx_where(t, turned, back, place);
    return mtf_onnx_lookup_along(t, x, mtf_onnx_expand(t, ids, x->rank, x->sizes), (int)time);
}

/* ---- Writing --------------------------------------------------------------------------------- */

/* What is written: `hits` is 1 where update m is for element n, over the rest of the axes or alike for all of
 * these. */
typedef struct {
    MtfOnnxValue *x;       /* [1, N, R] */
    MtfOnnxValue *updates; /* [M, 1, R] */
    MtfOnnxValue *hits;    /* [M, N, R or 1] */
} Writing;

/* What updates make of an element together; elements that none is for get `nothing`. */
static MtfOnnxValue *joined(MtfOnnxTranslation *t, const Writing *w, int kind, double nothing) {
    MtfOnnxValue *other = mtf_onnx_scalar(t, w->updates->type, nothing);
    return mtf_onnx_reduce(t, kind, mtf_onnx_where(t, w->hits, w->updates, other), 1, NULL);
}

static MtfOnnxValue *write_all(MtfOnnxCall *call, const Writing *w) {
    MtfOnnxTranslation *t = call->t;
    const char *how = mtf_onnx_word(call, "reduction", "none");
    if (w->hits == NULL || w->updates == NULL)
        return NULL;
    if (strcmp(how, "add") == 0)
        return mtf_onnx_binary(t, MTF_OP_ADD, w->x, joined(t, w, MTF_OP_REDUCE_SUM, 0));
    if (strcmp(how, "mul") == 0)
        return mtf_onnx_binary(t, MTF_OP_MULTIPLY, w->x, joined(t, w, MTF_OP_REDUCE_PROD, 1));
    if (strcmp(how, "max") == 0)
        return mtf_onnx_binary(t, MTF_OP_MAXIMUM, w->x, joined(t, w, MTF_OP_REDUCE_MAX, -1e30));
    if (strcmp(how, "min") == 0)
        return mtf_onnx_binary(t, MTF_OP_MINIMUM, w->x, joined(t, w, MTF_OP_REDUCE_MIN, 1e30));
    if (strcmp(how, "none") != 0)
        return mtf_onnx_fail(t, "reduction \"%s\" is not supported", how);
    MtfOnnxValue *hit = mtf_onnx_reduce(t, MTF_OP_REDUCE_MAX, w->hits, 1, NULL);
    return mtf_onnx_where(t, hit, joined(t, w, MTF_OP_REDUCE_SUM, 0), w->x);
}

/* Writes `m` updates [M, R] at places [M, R or 1] into x [N, R], reshaping all three to these shapes. */
static MtfOnnxValue *written(MtfOnnxCall *call, MtfOnnxValue *x, MtfOnnxValue *places, bool wide,
                             MtfOnnxValue *updates, const int64_t sizes[3]) {
    MtfOnnxTranslation *t = call->t;
    int64_t m = sizes[0], n = sizes[1], r = sizes[2];
    if (x == NULL || places == NULL || updates == NULL)
        return NULL;
    const int64_t of_x[] = { 1, n, r }, of_places[] = { m, 1, wide ? r : 1 };
    const int64_t of_updates[] = { m, 1, r }, of_elements[] = { 1, n, 1 };
    MtfOnnxValue *const all[] = { x, places, updates };
    if (strcmp(mtf_onnx_word(call, "reduction", "none"), "none") == 0 &&
        mtf_onnx_all_fold(t, G_N_ELEMENTS(all), all))
        return mtf_onnx_known_write(t, x, places, updates, sizes);
    int type = x->type;
    if (mtf_dtype_is_integer(mtf_onnx_dtype(type)))
        x = mtf_onnx_cast(t, x, MTF_ONNX_DOUBLE);
    if (x == NULL)
        return NULL;
    places = mtf_onnx_reshape(t, places, 3, of_places);
    MtfOnnxValue *element = mtf_onnx_range(t, MTF_ONNX_INT64, 3, of_elements, 1);
    MtfOnnxValue *hits = mtf_onnx_binary(t, MTF_OP_EQUAL, places, element);
    const Writing w = { mtf_onnx_reshape(t, x, 3, of_x),
                        mtf_onnx_cast(t, mtf_onnx_reshape(t, updates, 3, of_updates), x->type),
                        hits };
    return mtf_onnx_cast(t, write_all(call, &w), type);
}

/* An axis brought to the front, or back from there. */
static MtfOnnxValue *move_axis(MtfOnnxTranslation *t, MtfOnnxValue *x, int axis, bool back) {
    int order[MTF_ONNX_MAX_RANK];
    for (int k = 0; x != NULL && k < x->rank; k++)
        order[k] = back ? (k < axis    ? k + 1
                           : k == axis ? 0
                                       : k)
                        : (k == 0      ? axis
                           : k <= axis ? k - 1
                                       : k);
    return x == NULL ? NULL : mtf_onnx_transpose(t, x, order);
}

static MtfOnnxValue *scatter_elements(MtfOnnxCall *call) {
    MtfOnnxTranslation *t = call->t;
    MtfOnnxValue *ids = call->inputs[1], *updates = call->inputs[2];
    MtfOnnxValue *x = mtf_onnx_for_all_examples(t, call->inputs[0], &ids, 1);
    int axis = x == NULL ? -1 : mtf_onnx_axis(call, mtf_onnx_int(call, "axis", 0), x->rank);
    bool alike = axis >= 0 && ids->rank == x->rank && updates->rank == x->rank;
    for (int k = 0; alike && k < x->rank; k++)
        alike = ids->sizes[k] == updates->sizes[k] && (k == axis || ids->sizes[k] == x->sizes[k]);
    if (!alike)
        return axis < 0 ? NULL
                        : mtf_onnx_fail(t,
                                        "its indices and updates should have its input's sizes "
                                        "along all axes but axis %d",
                                        axis);
    int64_t n = x->sizes[axis], sizes[MTF_ONNX_MAX_RANK];
    const int64_t blocks[] = { ids->sizes[axis], n, mtf_onnx_elements(x) / MAX(1, n) };
    MtfOnnxValue *first = move_axis(t, x, axis, false);
    if (first == NULL)
        return NULL;
    memcpy(sizes, first->sizes, sizeof sizes);
    MtfOnnxValue *places = mtf_onnx_from_either_end(t, move_axis(t, ids, axis, false), n);
    MtfOnnxValue *y =
        written(call, first, places, true, move_axis(t, updates, axis, false), blocks);
    return move_axis(t, mtf_onnx_reshape(t, y, x->rank, sizes), axis, true);
}

static MtfOnnxValue *scatter_nd(MtfOnnxCall *call) {
    MtfOnnxValue *x = call->inputs[0], *ids = call->inputs[1];
    if (!says_places(call, x, ids, 0))
        return NULL;
    int k = (int)ids->sizes[ids->rank - 1];
    const int64_t blocks[] = { product(ids->sizes, ids->rank - 1), product(x->sizes, k),
                               product(x->sizes + k, x->rank - k) };
    if (mtf_onnx_elements(call->inputs[2]) != blocks[0] * blocks[2])
        return mtf_onnx_fail(call->t, "it has %" PRId64 " elements for %" PRId64 " places",
                             mtf_onnx_elements(call->inputs[2]), blocks[0] * blocks[2]);
    MtfOnnxValue *places = flat_places(call->t, ids, x->sizes);
    MtfOnnxValue *y = written(call, x, places, false, call->inputs[2], blocks);
    return mtf_onnx_reshape(call->t, y, x->rank, x->sizes);
}

/* ---- What is true ---------------------------------------------------------------------------- */

/* Elements along an axis, or of all, where a known condition is true. */
static MtfOnnxValue *compress(MtfOnnxCall *call) {
    MtfOnnxTranslation *t = call->t;
    MtfOnnxValue *x = call->inputs[0], *condition = call->inputs[1];
    int64_t n = 0, all = mtf_onnx_elements(x);
    int axis = 0;
    if (!mtf_onnx_is_known(t, condition))
        return mtf_onnx_fail(t, "its condition depends on data, and so does how much is left");
    if (mtf_onnx_attribute(call->node, "axis") != NULL)
        axis = mtf_onnx_axis(call, mtf_onnx_int(call, "axis", 0), x->rank);
    else
        x = mtf_onnx_reshape(t, x, 1, &all);
    if (axis < 0 || x == NULL)
        return NULL;
    int64_t most = MIN(mtf_onnx_elements(condition), x->sizes[axis]);
    for (int64_t i = 0; i < most; i++)
        n += mtf_onnx_known_at(condition, i) != 0;
    MtfOnnxValue *ids = mtf_onnx_known_new(t, MTF_ONNX_INT64, 1, &n);
    n = 0;
    for (int64_t i = 0; ids != NULL && i < most; i++)
        if (mtf_onnx_known_at(condition, i) != 0)
            ids->known[n++] = (double)i;
    return ids == NULL ? NULL : mtf_onnx_lookup(t, x, ids, axis);
}

const MtfOnnxOperator mtf_onnx_place_operators[] = {
    { "Compress", compress, 0, 0, 2, 2, NULL },
    { "GatherND", gather_nd, 0, 0, 2, 2, NULL },
    { "ReverseSequence", reverse_sequence, 0, 0, 2, 2, NULL },
    { "Scatter", scatter_elements, 0, 0, 3, 3, NULL },
    { "ScatterElements", scatter_elements, 0, 0, 3, 3, NULL },
    { "ScatterND", scatter_nd, 0, 0, 3, 3, NULL },
    { 0 },
};
