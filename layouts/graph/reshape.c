// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/graph/reshape.h"

#include "layouts/graph/operation_check.h"

#include <inttypes.h>
#include <math.h>

typedef struct {
    const MtfGraph *graph;
    const MtfShape *in, *out;
} Shapes;

static int64_t size_at(const Shapes *s, const MtfShape *shape, int i) {
    return mtf_graph_size(s->graph, shape->dims[i]);
}

/* Whether a dimension that both shapes have begins the rest of `in` at i. */
static bool is_kept(const Shapes *s, int i) {
    return i < s->in->rank && mtf_shape_find(s->out, s->in->dims[i]) >= 0;
}

static bool is_shared(const Shapes *s, int j) {
    return j < s->out->rank && mtf_shape_find(s->in, s->out->dims[j]) >= 0;
}

/* Takes dimensions that one side alone has until both have as many elements. */
static bool take_group(const Shapes *s, MtfReshapeGroup *group) {
    int i = group->first_in, j = group->first_out;
    int64_t left = 1, right = 1;
    while (left != right || (i == group->first_in && j == group->first_out)) {
        bool may_left = i < s->in->rank && !is_kept(s, i);
        bool may_right = j < s->out->rank && !is_shared(s, j);
        if (may_left && (left <= right || !may_right))
            left *= size_at(s, s->in, i++);
        else if (may_right)
            right *= size_at(s, s->out, j++);
        else
            return false;
    }
    group->n_in = i - group->first_in;
    group->n_out = j - group->first_out;
    return true;
}

static int64_t divisor(int64_t a, int64_t b) {
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

int mtf_reshape_groups(const MtfGraph *graph, const MtfShape *in, const MtfShape *out,
                       MtfReshapeGroup *groups) {
    Shapes s = { graph, in, out };
    int n = 0;
    for (int i = 0, j = 0; i < in->rank || j < out->rank; n++) {
        MtfReshapeGroup *group = &groups[n];
        bool same = i < in->rank && j < out->rank && in->dims[i] == out->dims[j];
        *group = (MtfReshapeGroup){ i, 1, j, 1, 1 };
        if (!same && !take_group(&s, group))
            return -1;
        if (group->n_in > 0 && group->n_out > 0)
            group->parts = divisor(size_at(&s, in, i), size_at(&s, out, j));
        i += group->n_in;
        j += group->n_out;
    }
    return n;
}

int mtf_reshape_side(const MtfGraph *graph, const MtfOperation *operation, int dim) {
    MtfReshapeGroup groups[2 * MTF_MAX_RANK];
    const MtfShape *in = mtf_operation_operand_shape(graph, operation, 0);
    const MtfShape *out = mtf_operation_operand_shape(graph, operation, MTF_OUTPUT);
    int n = mtf_reshape_groups(graph, in, out, groups);
    for (int g = 0; g < n; g++) {
        const MtfReshapeGroup *group = &groups[g];
        bool single = group->n_in == 1 ? group->n_out > 1 : group->n_in > 1 && group->n_out == 1;
        if (single && in->dims[group->first_in] == dim)
            return out->dims[group->first_out];
    }
    return -1;
}

/* ---- What inputs are of a result that joins them ---------------------------------------------- */

/* The first dimension of `whole` that the other shape lacks, or -1. */
static int lacking(const MtfShape *whole, const MtfShape *other) {
    for (int i = 0; i < whole->rank; i++)
        if (mtf_shape_find(other, whole->dims[i]) < 0)
            return whole->dims[i];
    return -1;
}

MtfJoined mtf_joined_input(const MtfGraph *graph, const MtfOperation *operation, int k) {
    const MtfShape *result = mtf_operation_operand_shape(graph, operation, MTF_OUTPUT);
    const MtfShape *first = mtf_operation_operand_shape(graph, operation, 0);
    MtfJoined joined = { .to = lacking(result, first) };
    for (int j = 0; j <= k; j++) {
        joined.begin += joined.size;
        joined.dim = lacking(mtf_operation_operand_shape(graph, operation, j), result);
        joined.size = joined.dim < 0 ? 1 : mtf_graph_size(graph, joined.dim);
    }
    return joined;
}

int mtf_joined_side(const MtfGraph *graph, const MtfOperation *operation, int k) {
    int dim = lacking(mtf_operation_operand_shape(graph, operation, k),
                      mtf_operation_operand_shape(graph, operation, MTF_OUTPUT));
    return dim >= 0 && mtf_graph_size(graph, dim) > 1 ? dim : -1;
}

/* ---- The checks of rows that move elements: reshape, slice, concat and the like ---------------- */

typedef MtfOperationCheck Check;

static const MtfTensor *input(const Check *check, int k) {
    return mtf_graph_tensor(check->graph, check->operation->inputs[k]);
}

static int64_t size(const Check *check, int dim) {
    return mtf_graph_size(check->graph, dim);
}

static const char *name(const Check *check, int dim) {
    return mtf_graph_dimension(check->graph, dim)->name;
}

/* A number that counts elements. */
static bool check_whole(const Check *check, const char *what, double value, GError **error) {
    return (value == floor(value) && fabs(value) <= 0x1p53) ||
           mtf_check_fail(check, error, "\"%s\" is %.17g and must be a whole number", what, value);
}

bool mtf_check_reshape(const Check *check, const MtfShape *shape, GError **error) {
    MtfReshapeGroup groups[2 * MTF_MAX_RANK];
    const MtfTensor *x = input(check, 0);
    int64_t in = mtf_graph_elements(check->graph, &x->shape);
    int64_t out = mtf_graph_elements(check->graph, shape);
    if (in != out)
        return mtf_check_fail(check, error,
                              "its dims have %" PRId64 " elements but \"%s\" has %" PRId64, out,
                              x->name, in);
    return mtf_reshape_groups(check->graph, &x->shape, shape, groups) >= 0 ||
           mtf_check_fail(check, error,
                          "its dims do not merge or divide neighbouring dimensions of \"%s\" in "
                          "their order; transpose it first",
                          x->name);
}

bool mtf_check_resample(const Check *check, const MtfShape *shape, GError **error) {
    (void)shape;
    const MtfAttributes *a = &check->operation->attributes;
    if (!check_whole(check, "start", a->start, error) ||
        !check_whole(check, "stride", a->stride, error) ||
        !check_whole(check, "dilation", a->dilation, error))
        return false;
    if (a->stride == 0 || a->dilation < 1)
        return mtf_check_fail(check, error, "\"stride\" must not be 0 nor \"dilation\" below 1");
    bool turns =
        fabs(a->stride) == 1 && a->dilation == 1 && size(check, a->from) == size(check, a->to);
    return a->wrap == 0 || (a->wrap == 1 && turns) ||
           mtf_check_fail(check, error, "\"wrap\" is for steps of one between equal sizes");
}

bool mtf_check_slice(const Check *check, const MtfShape *shape, GError **error) {
    (void)shape;
    const MtfAttributes *a = &check->operation->attributes;
    double last = a->start + a->stride * (double)(size(check, a->to) - 1);
    double end = (double)size(check, a->from) - 1;
    if (!check_whole(check, "start", a->start, error) ||
        !check_whole(check, "stride", a->stride, error))
        return false;
    if (a->stride == 0)
        return mtf_check_fail(check, error, "\"stride\" must not be 0");
    return (fmin(a->start, last) >= 0 && fmax(a->start, last) <= end) ||
           mtf_check_fail(check, error,
                          "it takes elements %g to %g along \"%s\", which has %g (0 to %g)",
                          a->start, last, name(check, a->from), end + 1, end);
}

bool mtf_check_pad(const Check *check, const MtfShape *shape, GError **error) {
    (void)shape;
    const MtfAttributes *a = &check->operation->attributes;
    if (!check_whole(check, "before", a->before, error))
        return false;
    if (a->value != 0 && !mtf_dtype_is_float(input(check, 0)->dtype))
        return mtf_check_fail(check, error, "what is %s is padded with 0 alone",
                              mtf_dtype_name(input(check, 0)->dtype));
    return (a->before >= 0 &&
            a->before + (double)size(check, a->from) <= (double)size(check, a->to)) ||
           mtf_check_fail(check, error, "\"%s\" has no room for %g elements before \"%s\"",
                          name(check, a->to), a->before, name(check, a->from));
}

bool mtf_check_roll(const Check *check, const MtfShape *shape, GError **error) {
    (void)shape;
    return check_whole(check, "shift", check->operation->attributes.shift, error);
}

bool mtf_check_blocks(const Check *check, int dim, GError **error) {
    double blocks = check->operation->attributes.blocks;
    if (!check_whole(check, "blocks", blocks, error))
        return false;
    return blocks == 0 || (blocks >= 1 && fmod((double)size(check, dim), blocks) == 0) ||
           mtf_check_fail(check, error,
                          "\"%s\", of size %g, cannot be divided into %g equal \"blocks\"",
                          name(check, dim), (double)size(check, dim), blocks);
}

bool mtf_check_cumulative_sum(const Check *check, const MtfShape *shape, GError **error) {
    (void)shape;
    return mtf_check_blocks(check, check->operation->attributes.dimension, error);
}

bool mtf_check_local_response(const Check *check, const MtfShape *shape, GError **error) {
    (void)shape;
    const MtfAttributes *a = &check->operation->attributes;
    if (!check_whole(check, "size", a->size, error))
        return false;
    return (a->size >= 1 && a->size <= 1024) ||
           mtf_check_fail(check, error, "\"size\" is %g and should be from 1 to 1024", a->size);
}

bool mtf_check_select(const Check *check, const MtfShape *shape, GError **error) {
    const MtfAttributes *a = &check->operation->attributes;
    double end = (double)size(check, a->dimension) - 1;
    if (!check_whole(check, "index", a->index, error))
        return false;
    if (mtf_shape_find(shape, a->dimension) >= 0 || shape->rank != input(check, 0)->shape.rank - 1)
        return mtf_check_fail(check, error, "its dims must be those of \"%s\" without \"%s\"",
                              input(check, 0)->name, name(check, a->dimension));
    return (a->index >= 0 && a->index <= end) ||
           mtf_check_fail(check, error, "\"index\" is %g and \"%s\" goes from 0 to %g", a->index,
                          name(check, a->dimension), end);
}

/* The one dimension of the result that no input has, or -1. */
static int joined(const Check *check, const MtfShape *shape) {
    int found = -1;
    for (int i = 0; i < shape->rank; i++) {
        bool has = false;
        for (int k = 0; k < check->operation->n_inputs; k++)
            has = has || mtf_shape_find(&input(check, k)->shape, shape->dims[i]) >= 0;
        if (!has && found >= 0)
            return -1;
        found = has ? found : shape->dims[i];
    }
    return found;
}

/* How many elements input `k` gives: it has the result's dimensions in their order but one of its own
 * (or none) in the place of `to`. -1: it has others. */
static int64_t given_by(const Check *check, const MtfShape *shape, int to, int k) {
    const MtfShape *x = &input(check, k)->shape;
    bool none = x->rank == shape->rank - 1;
    int64_t given = none ? 1 : -1;
    if (!none && x->rank != shape->rank)
        return -1;
    for (int i = 0, j = 0; j < shape->rank; j++) {
        bool here = shape->dims[j] == to;
        if (here && none)
            continue;
        if (here && mtf_shape_find(shape, x->dims[i]) < 0)
            given = size(check, x->dims[i]);
        else if (here || x->dims[i] != shape->dims[j])
            return -1;
        i++;
    }
    return given;
}

static bool check_joined(const Check *check, const MtfShape *shape, bool single, GError **error) {
    int to = joined(check, shape);
    int64_t sum = 0;
    if (to < 0)
        return mtf_check_fail(check, error, "its dims must have exactly one that no input has");
    for (int k = 0; k < check->operation->n_inputs; k++) {
        int64_t given = given_by(check, shape, to, k);
        if (given < 0 || (single && input(check, k)->shape.rank == shape->rank))
            return mtf_check_fail(
                check, error, "input \"%s\" must have its dims in their order, with %s \"%s\"",
                input(check, k)->name, single ? "nothing in the place of" : "another one for",
                name(check, to));
        sum += given;
    }
    return sum == size(check, to) ||
           mtf_check_fail(check, error,
                          "its inputs give %" PRId64 " elements along \"%s\", which has %" PRId64,
                          sum, name(check, to), size(check, to));
}

bool mtf_check_concat(const Check *check, const MtfShape *shape, GError **error) {
    return check_joined(check, shape, false, error);
}

bool mtf_check_stack(const Check *check, const MtfShape *shape, GError **error) {
    return check_joined(check, shape, true, error);
}

bool mtf_check_top_k(const Check *check, const MtfShape *shape, GError **error) {
    (void)shape;
    const MtfAttributes *a = &check->operation->attributes;
    if (size(check, a->to) > size(check, a->from))
        return mtf_check_fail(
            check, error, "\"%s\" has %" PRId64 " elements, fewer than \"%s\", %" PRId64,
            name(check, a->from), size(check, a->from), name(check, a->to), size(check, a->to));
    return mtf_check_blocks(check, a->from, error);
}

bool mtf_check_random(const Check *check, const MtfShape *shape, GError **error) {
    (void)shape;
    const MtfAttributes *a = &check->operation->attributes;
    if (check->operation->has_dtype && !mtf_dtype_is_float(check->operation->dtype))
        return mtf_check_fail(check, error, "random numbers are of a float type; cast them");
    if (a->low > a->high)
        return mtf_check_fail(check, error, "\"low\" is %g and must not be above \"high\", %g",
                              a->low, a->high);
    return a->deviation >= 0 ||
           mtf_check_fail(check, error, "\"deviation\" is %g and must be at least 0", a->deviation);
}
