// SPDX-License-Identifier: GPL-3.0-or-later
/* Operators that make, move, cut and join tensors. */
#include "analyzer/onnx/operators/onnx_shapes.h"

#include "analyzer/onnx/onnx_known.h"
#include "analyzer/onnx/onnx_operators.h"
#include "analyzer/onnx/onnx_steps.h"
#include "analyzer/onnx/operators/onnx_places.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#define MOST (2 * MTF_ONNX_MAX_RANK)

/* ---- From nothing ---------------------------------------------------------------------------- */

static MtfOnnxValue *numbers_of(MtfOnnxCall *call, const MtfOnnxAttribute *a) {
    bool floats = a->type == MTF_ONNX_ATTRIBUTE_FLOATS;
    int64_t n = floats ? a->floats->len : a->ints->len;
    MtfOnnxValue *list =
        mtf_onnx_known_new(call->t, floats ? MTF_ONNX_FLOAT : MTF_ONNX_INT64, 1, &n);
    for (int64_t i = 0; list != NULL && i < n; i++)
        list->known[i] = floats ? g_array_index(a->floats, double, i)
                                : (double)g_array_index(a->ints, int64_t, i);
    return list;
}

static MtfOnnxValue *constant(MtfOnnxCall *call) {
    static const char *const names[] = { "value", "value_float", "value_int", "value_floats",
                                         "value_ints" };
    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        const MtfOnnxAttribute *a = mtf_onnx_attribute(call->node, names[i]);
        if (a == NULL)
            continue;
        if (a->t != NULL) {
            MtfOnnxValue *value = mtf_onnx_stored(call->t, a->t, false);
            if (value != NULL && *a->t->name == '\0') {
                g_free(a->t->name);
                ((MtfOnnxTensor *)a->t)->name = g_strdup(call->node->outputs->pdata[0]);
            }
            return value;
        }
        if (i == 1)
            return mtf_onnx_scalar(call->t, MTF_ONNX_FLOAT, a->f);
        return i == 2 ? mtf_onnx_scalar(call->t, MTF_ONNX_INT64, (double)a->i)
                      : numbers_of(call, a);
    }
    return mtf_onnx_fail(call->t, "constants that are no numbers are not supported");
}

static MtfOnnxValue *constant_of_shape(MtfOnnxCall *call) {
    int64_t sizes[MOST];
    int rank, type = MTF_ONNX_FLOAT;
    double number = 0;
    const MtfOnnxAttribute *a = mtf_onnx_attribute(call->node, "value");
    MtfOnnxValue *shape = call->inputs[0];
    if (!mtf_onnx_ints(call, NULL, 0, sizes, &rank))
        return NULL;
    if (a != NULL && a->t != NULL) {
        type = a->t->type;
        if (a->t->elements != 1 || !mtf_onnx_tensor_values(a->t, &number))
            return mtf_onnx_fail(call->t, "its \"value\" should be one number");
    }
    MtfOnnxValue *value = mtf_onnx_uniform(call->t, type, rank, sizes, number);
    if (value != NULL)
        value->shaped = shape->stored != NULL && shape->trained && mtf_onnx_type_is_float(type) &&
                        mtf_onnx_elements(value) > 1;
    return value;
}

static MtfOnnxValue *range(MtfOnnxCall *call) {
    double start, limit, step;
    if (!mtf_onnx_known_input(call, 0, 0, &start) || !mtf_onnx_known_input(call, 1, 0, &limit) ||
        !mtf_onnx_known_input(call, 2, 1, &step))
        return NULL;
    double count = step == 0 ? 0 : fmax(0, ceil((limit - start) / step));
    if (!(count <= (double)MTF_ONNX_MOST_KNOWN))
        return mtf_onnx_fail(call->t, "a range of %g elements is too long", count);
    int64_t n = (int64_t)count;
    MtfOnnxValue *value = mtf_onnx_known_new(call->t, call->inputs[0]->type, 1, &n);
    for (int64_t i = 0; value != NULL && i < n; i++)
        value->known[i] = start + (double)i * step;
    return value;
}

/* A window of Hann, Hamming or Blackman: a0 - a1 cos(2 pi i / n) + a2 cos(4 pi i / n), n - 1 where it is
 * symmetric. */
static MtfOnnxValue *window(MtfOnnxCall *call) {
    static const double terms[][3] = { { 0.5, 0.5, 0 },
                                       { 25.0 / 46, 21.0 / 46, 0 },
                                       { 0.42, 0.5, 0.08 } };
    const double *a = terms[(int)call->number];
    double size;
    if (!mtf_onnx_known_input(call, 0, 0, &size))
        return NULL;
    if (!(size >= 1 && size <= (double)MTF_ONNX_MOST_KNOWN))
        return mtf_onnx_fail(call->t, "a window of %g elements cannot be made", size);
    int64_t n = (int64_t)size;
    bool periodic = mtf_onnx_int(call, "periodic", 1) != 0;
    int type = (int)mtf_onnx_int(call, "output_datatype", MTF_ONNX_FLOAT);
    MtfOnnxValue *value = mtf_onnx_known_new(call->t, type, 1, &n);
    for (int64_t i = 0; value != NULL && i < n; i++) {
        double angle = 2 * G_PI * (double)i / (double)MAX(1, n - !periodic);
        value->known[i] = a[0] - a[1] * cos(angle) + a[2] * cos(2 * angle);
    }
    return value;
}

static MtfOnnxValue *shape(MtfOnnxCall *call) {
    const MtfOnnxValue *x = call->inputs[0];
    int64_t start = mtf_onnx_int(call, "start", 0), stop = mtf_onnx_int(call, "end", x->rank);
    start = CLAMP(start < 0 ? start + x->rank : start, 0, x->rank);
    stop = CLAMP(stop < 0 ? stop + x->rank : stop, start, x->rank);
    int64_t n = stop - start;
    MtfOnnxValue *value = mtf_onnx_known_new(call->t, MTF_ONNX_INT64, 1, &n);
    for (int64_t i = 0; value != NULL && i < n; i++)
        value->known[i] = (double)x->sizes[start + i];
    return value;
}

static MtfOnnxValue *size(MtfOnnxCall *call) {
    return mtf_onnx_scalar(call->t, MTF_ONNX_INT64, (double)mtf_onnx_elements(call->inputs[0]));
}

static MtfOnnxValue *eye_like(MtfOnnxCall *call) {
    const MtfOnnxValue *x = call->inputs[0];
    int type = (int)mtf_onnx_int(call, "dtype", x->type);
    int64_t k = mtf_onnx_int(call, "k", 0);
    if (x->rank != 2)
        return mtf_onnx_fail(call->t, "its input should be a matrix");
    MtfOnnxValue *row = mtf_onnx_range(call->t, type, 2, x->sizes, 0);
    MtfOnnxValue *column = mtf_onnx_range(call->t, type, 2, x->sizes, 1);
    return mtf_onnx_cast(
        call->t,
        mtf_onnx_binary(call->t, MTF_OP_EQUAL, column, mtf_onnx_affine(call->t, row, 1, (double)k)),
        type);
}

/* ---- Other shapes ---------------------------------------------------------------------------- */

/* The axis that counts the examples, or -1, and how many elements of it and of those before it there are for each
 * example in front of the next (`before`). */
static int axis_of_examples(const MtfOnnxTranslation *t, const MtfOnnxValue *x, int64_t *before) {
    *before = 1;
    for (int k = 0; k < x->rank; *before *= x->sizes[k++]) {
        int64_t rounds =
            x->axes[k] < 0 ? 0 : mtf_axis(t->graph, mtf_axis_root(t->graph, x->axes[k]))->examples;
        if (rounds > 0) {
            *before *= rounds;
            return k;
        }
    }
    return -1;
}

/* The axis of a shape that the examples of x go to: the one that begins where they do, or that holds them and goes
 * through them `rounds` times; -1: none. */
static int new_axis_of_examples(const MtfOnnxTranslation *t, const MtfOnnxValue *x, int rank,
                                const int64_t *sizes, int64_t *rounds) {
    int64_t before, begun = 1;
    int axis = t->batch > 0 ? axis_of_examples(t, x, &before) : -1;
    for (int k = 0; axis >= 0 && k < rank; k++) {
        bool can = sizes[k] == -1 || sizes[k] % t->file_batch == 0;
        *rounds = MAX(1, before / MAX(1, begun));
        if (can && (sizes[k] == -1 || begun == before || begun * sizes[k] > before))
            return k;
        begun *= sizes[k];
    }
    return -1;
}

/* The product of all sizes but an open one (-1), whose axis is `open` (-1: none); -1 where it is beyond 63
 * bits. */
static int64_t known_product(int rank, const int64_t *sizes, int *open) {
    int64_t known = 1;
    *open = -1;
    for (int k = 0; k < rank; k++) {
        if (sizes[k] == -1)
            *open = k;
        else if (sizes[k] > 0 && known > INT64_MAX / sizes[k])
            return -1;
        else
            known *= sizes[k];
    }
    return known;
}

/* Where the file fixes a batch and another was asked for: sizes of n elements as the file has them, with the
 * examples asked for along `axis`. Where a size is open, the others are the file's if they stand in it
 * (`stored`), or are its batch; else they were worked out from tensors at hand. */
static void adapt_batch(const MtfOnnxTranslation *t, int64_t n, bool stored, int axis, int rank,
                        int64_t *sizes) {
    int open;
    int64_t known = known_product(rank, sizes, &open);
    if (axis < 0 || sizes[axis] <= 0 || known < t->file_batch ||
        known / t->file_batch > n / t->batch)
        return;
    int64_t asked = known / t->file_batch * t->batch;
    bool own = stored || sizes[axis] == t->file_batch;
    if (open >= 0 ? own && n % asked == 0 : asked == n)
        sizes[axis] = sizes[axis] / t->file_batch * t->batch;
}

static MtfOnnxValue *note_examples(const MtfOnnxTranslation *t, MtfOnnxValue *y, int axis,
                                   int64_t rounds) {
    if (y != NULL && axis >= 0 && y->axes[axis] >= 0)
        mtf_axis(t->graph, mtf_axis_root(t->graph, y->axes[axis]))->examples = rounds;
    return y;
}

/* What the file repeats for its batch, and x already has for the one asked for. */
static void keep_batch(const MtfOnnxTranslation *t, const MtfOnnxValue *x, int rank,
                       int64_t *sizes) {
    if (t->batch > 0 && rank == x->rank && rank > 0 && sizes[0] == t->file_batch &&
        x->sizes[0] == t->batch)
        sizes[0] = t->batch;
}

/* Whether the file holds the same for each of its examples. */
static bool has_equal_rows(MtfOnnxTranslation *t, const MtfOnnxValue *x) {
    MtfOnnxValue *copy =
        x->tensor >= 0 || x->stored == NULL ? NULL : mtf_onnx_stored(t, x->stored, false);
    int64_t row = mtf_onnx_elements(x) / MAX(1, x->sizes[0]);
    if (copy == NULL || !mtf_onnx_is_known(t, copy))
        return false;
    for (int64_t i = row; i < mtf_onnx_elements(x); i++)
        if (mtf_onnx_known_at(copy, i) != mtf_onnx_known_at(copy, i % row))
            return false;
    return true;
}

/* Whether the file has the value for its one example, or the same for each of several. */
static bool is_for_any_example(MtfOnnxTranslation *t, const MtfOnnxValue *x) {
    return x->rank > 0 && x->sizes[0] == t->file_batch &&
           (t->file_batch == 1 || x->uniform || (x->tensor >= 0 && x->axes[0] < 0) ||
            has_equal_rows(t, x));
}

MtfOnnxValue *mtf_onnx_for_all_examples(MtfOnnxTranslation *t, MtfOnnxValue *x,
                                        MtfOnnxValue *const *others, int n) {
    int64_t sizes[MTF_ONNX_MAX_RANK];
    bool follows = false;
    for (int i = 0; t->batch > 1 && i < n; i++)
        follows |= others[i]->rank == x->rank && others[i]->sizes[0] == t->batch;
    if (!follows || !is_for_any_example(t, x))
        return x;
    bool rows = t->file_batch > 1 && !x->uniform && x->tensor < 0;
    MtfOnnxValue *one =
        rows ? mtf_onnx_slice(t, mtf_onnx_weight(t, x, false), 0, 0, 1, 1) : mtf_onnx_view(t, x);
    if (one == NULL)
        return NULL;
    one->sizes[0] = 1;
    memcpy(sizes, x->sizes, sizeof sizes);
    sizes[0] = t->batch;
    return mtf_onnx_expand(t, one, x->rank, sizes);
}

/* A size of 0 copies the input's. */
static bool read_sizes(MtfOnnxCall *call, int *rank, int64_t *sizes, unsigned *copied) {
    const MtfOnnxValue *x = call->inputs[0];
    bool zero = mtf_onnx_int(call, "allowzero", 0) != 0;
    if (!mtf_onnx_ints(call, "shape", 1, sizes, rank))
        return false;
    *copied = 0;
    for (int k = 0; k < *rank; k++) {
        *copied |= sizes[k] == 0 && !zero ? 1U << k : 0;
        if (*copied >> k & 1)
            sizes[k] = k < x->rank ? x->sizes[k] : 0;
        if (sizes[k] < -1 || known_product(k + 1, sizes, &(int){ 0 }) < 0)
            return mtf_onnx_fail(call->t, "it cannot have a size of %" PRId64 " along axis %d",
                                 sizes[k], k) != NULL;
    }
    return true;
}

static MtfOnnxValue *reshape(MtfOnnxCall *call) {
    MtfOnnxValue *x = call->inputs[0];
    int64_t sizes[MOST], n = mtf_onnx_elements(x);
    int rank, open;
    unsigned copied;
    if (!read_sizes(call, &rank, sizes, &copied))
        return NULL;
    int64_t rounds = 1;
    int axis = new_axis_of_examples(call->t, x, rank, sizes, &rounds);
    const MtfOnnxValue *shape = mtf_onnx_input(call, 1);
    if (axis >= 0 && (copied >> axis & 1) == 0)
        adapt_batch(call->t, n, shape == NULL || shape->stored != NULL, axis, rank, sizes);
    int64_t known = known_product(rank, sizes, &open);
    if (open >= 0)
        sizes[open] = known > 0 ? n / known : 0;
    return note_examples(call->t, mtf_onnx_reshape(call->t, x, MAX(rank, 0), sizes), axis, rounds);
}

static MtfOnnxValue *flatten(MtfOnnxCall *call) {
    MtfOnnxValue *x = call->inputs[0];
    int64_t sizes[2] = { 1, 1 }, axis = mtf_onnx_int(call, "axis", 1);
    axis = axis < 0 ? axis + x->rank : axis;
    if (axis < 0 || axis > x->rank)
        return mtf_onnx_fail(call->t, "axis %" PRId64 " is not within 0 and %d", axis, x->rank);
    for (int k = 0; k < x->rank; k++)
        sizes[k >= axis] *= x->sizes[k];
    int64_t rounds = 1;
    int to = new_axis_of_examples(call->t, x, 2, sizes, &rounds);
    return note_examples(call->t, mtf_onnx_reshape(call->t, x, 2, sizes), to, rounds);
}

static MtfOnnxValue *transpose(MtfOnnxCall *call) {
    MtfOnnxValue *x = call->inputs[0];
    int64_t order[MOST];
    int n, by[MTF_ONNX_MAX_RANK];
    unsigned seen = 0;
    if (!mtf_onnx_ints(call, "perm", -1, order, &n))
        return NULL;
    for (int k = 0; k < x->rank; k++) {
        by[k] = n < 0 ? x->rank - 1 - k : k < n ? mtf_onnx_axis(call, order[k], x->rank) : -1;
        if (by[k] < 0)
            return mtf_onnx_fail(call->t, "\"perm\" should name every axis once");
        seen |= 1U << by[k];
    }
    if (seen != (1U << x->rank) - 1)
        return mtf_onnx_fail(call->t, "\"perm\" should name every axis once");
    return mtf_onnx_transpose(call->t, x, by);
}

static MtfOnnxValue *squeeze(MtfOnnxCall *call) {
    MtfOnnxValue *x = call->inputs[0];
    int64_t axes[MOST];
    int n;
    unsigned mask = 0;
    if (!mtf_onnx_ints(call, "axes", 1, axes, &n) ||
        (n >= 0 && !mtf_onnx_axes(call, axes, n, x->rank, &mask)))
        return NULL;
    for (int k = 0; k < x->rank && n < 0; k++)
        mask |= x->sizes[k] == 1 ? 1U << k : 0;
    return mtf_onnx_squeeze(call->t, x, mask);
}

static MtfOnnxValue *unsqueeze(MtfOnnxCall *call) {
    MtfOnnxValue *x = call->inputs[0];
    int64_t axes[MOST];
    int n;
    unsigned mask;
    if (!mtf_onnx_ints(call, "axes", 1, axes, &n))
        return NULL;
    int rank = x->rank + MAX(n, 0);
    if (n < 1 || rank > MTF_ONNX_MAX_RANK)
        return mtf_onnx_fail(call->t, "\"axes\" should name the new axes");
    if (!mtf_onnx_axes(call, axes, n, rank, &mask))
        return NULL;
    if (__builtin_popcount(mask) != n)
        return mtf_onnx_fail(call->t, "\"axes\" names an axis twice");
    return mtf_onnx_unsqueeze(call->t, x, rank, mask);
}

static MtfOnnxValue *expand(MtfOnnxCall *call) {
    MtfOnnxValue *x = call->inputs[0];
    int64_t sizes[MOST], wanted[MTF_ONNX_MAX_RANK];
    int n, rank;
    if (!mtf_onnx_ints(call, NULL, 1, sizes, &n))
        return NULL;
    if (n > MTF_ONNX_MAX_RANK)
        return mtf_onnx_fail(call->t, "more than %d dimensions", MTF_ONNX_MAX_RANK);
    keep_batch(call->t, x, n, sizes);
    MtfOnnxValue *target = mtf_onnx_value_new(call->t, x->type, n, sizes);
    if (target == NULL ||
        !mtf_onnx_broadcast(call->t, 2, (MtfOnnxValue *[]){ x, target }, &rank, wanted))
        return NULL;
    return mtf_onnx_expand(call->t, x, rank, wanted);
}

static MtfOnnxValue *tile(MtfOnnxCall *call) {
    MtfOnnxValue *x = call->inputs[0];
    int64_t times[MOST];
    int n;
    if (!mtf_onnx_ints(call, NULL, 1, times, &n))
        return NULL;
    if (n != x->rank)
        return mtf_onnx_fail(call->t, "\"repeats\" should have a number for every axis");
    return mtf_onnx_repeat(call->t, x, times, false);
}

/* ---- Parts ----------------------------------------------------------------------------------- */

/* One axis of a slice, as numpy has it: the first element and how many. */
static int64_t clamp_slice(int64_t size, int64_t *start, int64_t end, int64_t step) {
    int64_t first = *start < 0 ? MAX(*start, -size) + size : MIN(*start, size);
    int64_t last = end < 0 ? MAX(end, -size - 1) + size : MIN(end, size);
    if (step > 0) {
        *start = MIN(first, size);
        return last > *start ? (last - *start + step - 1) / step : 0;
    }
    *start = MIN(first, size - 1);
    last = end < -size ? -1 : last;
    return *start > last ? (*start - last - step - 1) / -step : 0;
}

static MtfOnnxValue *slice(MtfOnnxCall *call) {
    MtfOnnxValue *x = call->inputs[0];
    int64_t starts[MOST], ends[MOST], axes[MOST], steps[MOST];
    int n, n_ends, n_axes, n_steps;
    if (!mtf_onnx_ints(call, "starts", 1, starts, &n) ||
        !mtf_onnx_ints(call, "ends", 2, ends, &n_ends) ||
        !mtf_onnx_ints(call, "axes", 3, axes, &n_axes) ||
        !mtf_onnx_ints(call, NULL, 4, steps, &n_steps))
        return NULL;
    if (n < 0 || n_ends != n || (n_axes >= 0 && n_axes != n) || (n_steps >= 0 && n_steps != n))
        return mtf_onnx_fail(call->t, "its lists should be of equal length");
    for (int i = 0; i < n && x != NULL; i++) {
        int axis = mtf_onnx_axis(call, n_axes < 0 ? i : axes[i], x->rank);
        int64_t step = n_steps < 0 ? 1 : steps[i];
        if (axis < 0 || step == 0 || step < -(INT64_C(1) << 53) || step > INT64_C(1) << 53)
            return axis < 0 ? NULL : mtf_onnx_fail(call->t, "its step cannot be %" PRId64, step);
        int64_t count = clamp_slice(x->sizes[axis], &starts[i], ends[i], step);
        x = mtf_onnx_slice(call->t, x, axis, starts[i], step, count);
    }
    return x;
}

static MtfOnnxValue *split(MtfOnnxCall *call) {
    MtfOnnxValue *x = call->inputs[0];
    int64_t sizes[MOST], at = 0;
    int n, parts = call->n_outputs,
           axis = mtf_onnx_axis(call, mtf_onnx_int(call, "axis", 0), x->rank);
    if (axis < 0 || !mtf_onnx_ints(call, "split", 1, sizes, &n))
        return NULL;
    if ((n >= 0 && n != parts) || parts > MOST)
        return mtf_onnx_fail(call->t, "it has %d outputs and %d sizes", parts, n);
    int64_t each = (x->sizes[axis] + parts - 1) / parts;
    for (int k = 0; k < parts; k++) {
        int64_t size = n >= 0 ? sizes[k] : MIN(each, x->sizes[axis] - at);
        if (size < 0 || at + size > x->sizes[axis])
            return mtf_onnx_fail(call->t, "its parts do not add up to %" PRId64, x->sizes[axis]);
        call->outputs[k] = mtf_onnx_slice(call->t, x, axis, at, 1, size);
        at += size;
        if (call->outputs[k] == NULL)
            return NULL;
    }
    return call->outputs[0];
}

static MtfOnnxValue *concat(MtfOnnxCall *call) {
    int64_t standard = call->opset < 4 ? 1 : 0;
    MtfOnnxValue *first = call->inputs[0];
    int axis = mtf_onnx_axis(call, mtf_onnx_int(call, "axis", standard), first->rank);
    g_autofree MtfOnnxValue **parts = g_new0(MtfOnnxValue *, call->n_inputs);
    for (int i = 0; i < call->n_inputs; i++)
        parts[i] = axis == 0 ? call->inputs[i]
                             : mtf_onnx_for_all_examples(call->t, call->inputs[i], call->inputs,
                                                         call->n_inputs);
    return axis < 0 ? NULL : mtf_onnx_concat(call->t, axis, call->n_inputs, parts);
}

/* Known ids that are start, start + step, … */
static bool is_progression(const MtfOnnxValue *ids, int64_t rows, int64_t *start, int64_t *step) {
    int64_t n = mtf_onnx_elements(ids);
    double first = mtf_onnx_known_at(ids, 0);
    double by = n > 1 ? mtf_onnx_known_at(ids, 1) - first : 1;
    for (int64_t i = 0; i < n; i++)
        if (mtf_onnx_known_at(ids, i) != first + by * (double)i)
            return false;
    *start = (int64_t)(first < 0 ? first + (double)rows : first);
    *step = (int64_t)by;
    double last = (double)*start + by * (double)(n - 1);
    return by != 0 && *start >= 0 && *start < rows && last >= 0 && last < (double)rows;
}

/* Those of a text count from the start. */
static MtfOnnxValue *from_either_end(MtfOnnxTranslation *t, MtfOnnxValue *ids, int64_t rows) {
    ids = mtf_onnx_material(t, ids);
    if (ids == NULL)
        return NULL;
    MtfAxisTensor *tensor = mtf_axis_tensor(t->graph, ids->tensor);
    bool text = tensor->source == MTF_SOURCE_INPUT && tensor->feed == MTF_FEED_TOKENS;
    return text && ids->rank == 2 ? ids : mtf_onnx_from_either_end(t, ids, rows);
}

/* All elements of x in their order, laid out as the ids are, as exporters write views; NULL: it is something
 * else. */
static MtfOnnxValue *gather_all(MtfOnnxTranslation *t, MtfOnnxValue *x, const MtfOnnxValue *ids) {
    int64_t sizes[MTF_ONNX_MAX_RANK], start, step;
    int open;
    if (x->rank != 1 || ids->rank < 2 || mtf_onnx_folds(t, x) ||
        !is_progression(ids, x->sizes[0], &start, &step) || start != 0 || step != 1)
        return NULL;
    memcpy(sizes, ids->sizes, sizeof sizes);
    int64_t rounds = 1;
    int axis = new_axis_of_examples(t, x, ids->rank, sizes, &rounds);
    adapt_batch(t, x->sizes[0], true, axis, ids->rank, sizes);
    if (known_product(ids->rank, sizes, &open) != x->sizes[0])
        return NULL;
    return note_examples(t, mtf_onnx_reshape(t, x, ids->rank, sizes), axis, rounds);
}

static MtfOnnxValue *gather(MtfOnnxCall *call) {
    MtfOnnxTranslation *t = call->t;
    MtfOnnxValue *x = call->inputs[0], *ids = call->inputs[1];
    int64_t start, step, count = mtf_onnx_elements(ids);
    int axis = mtf_onnx_axis(call, mtf_onnx_int(call, "axis", 0), x->rank);
    if (axis < 0)
        return NULL;
    bool known = mtf_onnx_is_known(t, ids) && count > 0;
    if (known && ids->rank <= 1 && is_progression(ids, x->sizes[axis], &start, &step)) {
        MtfOnnxValue *part = mtf_onnx_slice(t, x, axis, start, step, count);
        return part == NULL || ids->rank == 1 ? part : mtf_onnx_squeeze(t, part, 1U << axis);
    }
    if (mtf_onnx_folds(t, x) && mtf_onnx_folds(t, ids))
        return mtf_onnx_lookup(t, x, ids, axis);
    MtfOnnxValue *all = known ? gather_all(t, x, ids) : NULL;
    if (all != NULL || t->error != NULL)
        return all;
    if (!known || mtf_onnx_known_at(ids, 0) < 0)
        ids = from_either_end(t, ids, x->sizes[axis]);
    return ids == NULL ? NULL : mtf_onnx_lookup(t, x, ids, axis);
}

/* ---- Placing --------------------------------------------------------------------------------- */

/* Before and behind along each axis: attribute "pads", or the second input. */
static bool read_pads(MtfOnnxCall *call, int rank, int64_t *before, int64_t *behind) {
    int64_t pads[MOST], axes[MOST];
    int n, n_axes;
    unsigned mask;
    memset(before, 0, sizeof *before * MTF_ONNX_MAX_RANK);
    memset(behind, 0, sizeof *behind * MTF_ONNX_MAX_RANK);
    if (!mtf_onnx_ints(call, "pads", 1, pads, &n) || !mtf_onnx_ints(call, NULL, 3, axes, &n_axes))
        return false;
    for (int k = 0; n_axes < 0 && k < rank; k++)
        axes[k] = k;
    n_axes = n_axes < 0 ? rank : n_axes;
    if (n != 2 * n_axes || !mtf_onnx_axes(call, axes, n_axes, rank, &mask))
        return mtf_onnx_fail(call->t, "\"pads\" should have two numbers for every axis") != NULL;
    for (int i = 0; i < n_axes; i++) {
        int axis = mtf_onnx_axis(call, axes[i], rank);
        before[axis] = pads[i];
        behind[axis] = pads[n_axes + i];
    }
    return true;
}

/* `count` elements of x put before its first or behind its last along an axis: copies of that one ("edge"),
 * those next to it backwards ("reflect"), or those at the other end ("wrap"). */
static MtfOnnxValue *border(MtfOnnxTranslation *t, MtfOnnxValue *x, int axis, int64_t count,
                            bool front, char mode) {
    int64_t n = x->sizes[axis], sizes[MTF_ONNX_MAX_RANK];
    if (mode != 'e' && count > n - (mode == 'r'))
        return mtf_onnx_fail(t, "%" PRId64 " elements beside %" PRId64 " are too many", count, n);
    if (mode == 'r')
        return mtf_onnx_slice(t, x, axis, front ? count : n - 2, -1, count);
    if (mode == 'w')
        return mtf_onnx_slice(t, x, axis, front ? n - count : 0, 1, count);
    for (int k = 0; k < x->rank; k++)
        sizes[k] = k == axis ? count : x->sizes[k];
    MtfOnnxValue *one = mtf_onnx_slice(t, x, axis, front ? 0 : n - 1, 1, 1);
    return one == NULL ? NULL : mtf_onnx_expand(t, one, x->rank, sizes);
}

/* Pads with elements of x. */
static MtfOnnxValue *pad_with_own(MtfOnnxCall *call, MtfOnnxValue *x, char mode) {
    MtfOnnxTranslation *t = call->t;
    int64_t before[MTF_ONNX_MAX_RANK], behind[MTF_ONNX_MAX_RANK];
    int type = x->type;
    if (!read_pads(call, x->rank, before, behind))
        return NULL;
    if (mtf_dtype_is_integer(mtf_onnx_dtype(type)))
        x = mtf_onnx_cast(t, x, MTF_ONNX_DOUBLE);
    for (int k = 0; x != NULL && k < x->rank; k++) {
        if (before[k] < 0 || behind[k] < 0)
            return mtf_onnx_fail(t, "mode \"%s\" cannot take elements away",
                                 mtf_onnx_word(call, "mode", ""));
        MtfOnnxValue *front = before[k] > 0 ? border(t, x, k, before[k], true, mode) : NULL;
        MtfOnnxValue *back = behind[k] > 0 ? border(t, x, k, behind[k], false, mode) : NULL;
        if (t->error != NULL || (front == NULL && back == NULL))
            continue;
        MtfOnnxValue *parts[] = { front, x, back };
        int n = 1 + (front != NULL) + (back != NULL);
        x = mtf_onnx_concat(t, k, n, front != NULL ? parts : parts + 1);
    }
    return t->error != NULL ? NULL : mtf_onnx_cast(t, x, type);
}

static MtfOnnxValue *pad(MtfOnnxCall *call) {
    static const char *const own[] = { "edge", "reflect", "wrap", NULL };
    MtfOnnxTranslation *t = call->t;
    MtfOnnxValue *x = call->inputs[0];
    int64_t before[MTF_ONNX_MAX_RANK], behind[MTF_ONNX_MAX_RANK];
    const char *mode = mtf_onnx_word(call, "mode", "constant");
    double value = mtf_onnx_float(call, "value", 0);
    if (g_strv_contains(own, mode))
        return pad_with_own(call, x, mode[0]);
    if (strcmp(mode, "constant") != 0)
        return mtf_onnx_fail(t, "mode \"%s\" is not supported", mode);
    if (!read_pads(call, x->rank, before, behind) || !mtf_onnx_known_input(call, 2, value, &value))
        return NULL;
    int type = x->type;
    if (value != 0 && mtf_dtype_is_integer(mtf_onnx_dtype(type)))
        x = mtf_onnx_cast(t, x, MTF_ONNX_DOUBLE);
    for (int k = 0; x != NULL && k < x->rank; k++) {
        int64_t from = MAX(-before[k], 0), cut = from + MAX(-behind[k], 0);
        if (cut > 0)
            x = mtf_onnx_slice(t, x, k, from, 1, x->sizes[k] - cut);
        int64_t add = MAX(before[k], 0) + MAX(behind[k], 0);
        if (x == NULL || add == 0)
            continue;
        MtfAttributes a = MTF_NO_ATTRIBUTES;
        a.before = (double)MAX(before[k], 0);
        a.value = value;
        x = mtf_onnx_along(t, MTF_OP_PAD, a, x, k, x->sizes[k] + add);
    }
    return mtf_onnx_cast(t, x, type);
}

/* 1 where column - row <= k (upper 0) or >= k. */
static MtfOnnxValue *trilu(MtfOnnxCall *call) {
    MtfOnnxTranslation *t = call->t;
    MtfOnnxValue *x = call->inputs[0];
    double k;
    if (x->rank < 2 || !mtf_onnx_known_input(call, 1, 0, &k))
        return x->rank < 2 ? mtf_onnx_fail(t, "its input should have at least two axes") : NULL;
    int64_t sizes[2] = { x->sizes[x->rank - 2], x->sizes[x->rank - 1] };
    bool upper = mtf_onnx_int(call, "upper", 1) != 0;
    MtfOnnxValue *mask = mtf_onnx_known_new(t, MTF_ONNX_BOOL, 2, sizes);
    for (int64_t i = 0; mask != NULL && i < sizes[0] * sizes[1]; i++) {
        double diagonal = (double)(i % sizes[1]) - (double)(i / sizes[1]);
        mask->known[i] = upper ? diagonal >= k : diagonal <= k;
    }
    return mtf_onnx_where(t, mask, x, mtf_onnx_scalar(t, x->type, 0));
}

#define MOST_BLOCK (1 << 30)

/* [N, C, H, W] to or from blocks: `number` 1 from depth to space, 0 the other way. */
static MtfOnnxValue *depth_to_space(MtfOnnxCall *call) {
    MtfOnnxTranslation *t = call->t;
    MtfOnnxValue *x = call->inputs[0];
    int64_t b = mtf_onnx_int(call, "blocksize", 0);
    if (x->rank != 4 || b < 1 || b > MOST_BLOCK)
        return mtf_onnx_fail(t, "it takes an input of four axes and a blocksize up to %d",
                             MOST_BLOCK);
    int64_t n = x->sizes[0], c = x->sizes[1], h = x->sizes[2], w = x->sizes[3];
    bool crd = strcmp(mtf_onnx_word(call, "mode", "DCR"), "CRD") == 0, to = call->number != 0;
    if (to ? c % (b * b) != 0 : h % b != 0 || w % b != 0)
        return mtf_onnx_fail(t, "its sizes are no multiples of the blocksize");
    int64_t dcr[] = { n, b, b, c / (b * b), h, w }, columns[] = { n, c / (b * b), b, b, h, w };
    int64_t blocks[] = { n, c, h / b, b, w / b, b };
    int64_t made[] = { n, to ? c / (b * b) : c * b * b, to ? h * b : h / b, to ? w * b : w / b };
    static const int from_dcr[] = { 0, 3, 4, 1, 5, 2 }, from_crd[] = { 0, 1, 4, 2, 5, 3 },
                     from_blocks[] = { 0, 3, 5, 1, 2, 4 };
    MtfOnnxValue *y = mtf_onnx_reshape(t, x, 6, !to ? blocks : crd ? columns : dcr);
    y = mtf_onnx_transpose(t, y, !to ? from_blocks : crd ? from_crd : from_dcr);
    return mtf_onnx_reshape(t, y, 4, made);
}

const MtfOnnxOperator mtf_onnx_shape_operators[] = {
    { "BlackmanWindow", window, 0, 2, 1, 1, NULL },
    { "Concat", concat, 0, 0, 1, INT_MAX, NULL },
    { "Constant", constant, 0, 0, 0, 0, NULL },
    { "ConstantOfShape", constant_of_shape, 0, 0, 1, 1, NULL },
    { "DepthToSpace", depth_to_space, 0, 1, 1, 1, NULL },
    { "Expand", expand, 0, 0, 2, 2, NULL },
    { "EyeLike", eye_like, 0, 0, 1, 1, NULL },
    { "Flatten", flatten, 0, 0, 1, 1, NULL },
    { "Gather", gather, 0, 0, 2, 2, NULL },
    { "HammingWindow", window, 0, 1, 1, 1, NULL },
    { "HannWindow", window, 0, 0, 1, 1, NULL },
    { "Pad", pad, 0, 0, 1, 4, NULL },
    { "Range", range, 0, 0, 3, 3, NULL },
    { "Reshape", reshape, 0, 0, 1, 2, NULL },
    { "Shape", shape, 0, 0, 1, 1, NULL },
    { "Size", size, 0, 0, 1, 1, NULL },
    { "Slice", slice, 0, 0, 1, 5, NULL },
    { "SpaceToDepth", depth_to_space, 0, 0, 1, 1, NULL },
    { "Split", split, 0, 0, 1, 2, NULL },
    { "Squeeze", squeeze, 0, 0, 1, 2, NULL },
    { "Tile", tile, 0, 0, 2, 2, NULL },
    { "Transpose", transpose, 0, 0, 1, 1, NULL },
    { "Trilu", trilu, 0, 0, 1, 2, NULL },
    { "Unsqueeze", unsqueeze, 0, 0, 1, 2, NULL },
    { 0 },
};
