// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/onnx/onnx_known.h"
#include "analyzer/onnx/onnx_operators.h"
#include "analyzer/onnx/onnx_steps.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- Variables ------------------------------------------------------------------------------- */

/* "conv1.weight[64,3,7,7]"; free with g_free. */
static char *stored_place(const MtfOnnxTensor *tensor) {
    GString *place = g_string_new(tensor->name);
    g_string_append_c(place, '[');
    for (int i = 0; i < tensor->rank; i++)
        g_string_append_printf(place, "%s%" PRId64, i > 0 ? "," : "", tensor->dims[i]);
    g_string_append_c(place, ']');
    return g_string_free(place, FALSE);
}

/* A deviation with which products keep their spread: 1 / sqrt(all but the first dimension). */
static double spread_of(const MtfOnnxValue *value) {
    double n = 1;
    for (int i = 1; i < value->rank; i++)
        n *= (double)value->sizes[i];
    return 1 / sqrt(n);
}

static MtfInit init_of(const MtfOnnxValue *value) {
    if (value->known != NULL && value->uniform)
        return (MtfInit){ MTF_INIT_CONSTANT, value->known[0] };
    if (mtf_dtype_is_integer(mtf_onnx_dtype(value->type)))
        return (MtfInit){ MTF_INIT_CONSTANT, 0 };
    return value->rank > 1 ? (MtfInit){ MTF_INIT_NORMAL, spread_of(value) }
                           : (MtfInit){ MTF_INIT_CONSTANT, 0 };
}

/* The value as a variable with a dimension for every axis of several elements. */
static MtfOnnxValue *make_variable(MtfOnnxTranslation *t, MtfOnnxValue *value, bool frozen) {
    g_autofree char *place = value->stored != NULL ? stored_place(value->stored) : NULL;
    const char *name = value->stored != NULL ? value->stored->name
                       : value->node != NULL ? value->node->outputs->pdata[value->output]
                                             : "constant";
    MtfAxisTensor variable = { .source = MTF_SOURCE_VARIABLE,
                               .name = (char *)(guintptr)name,
                               .dtype = mtf_onnx_dtype(value->type),
                               .init = init_of(value),
                               .stored = place };
    variable.frozen = frozen || mtf_dtype_is_integer(variable.dtype);
    int64_t sizes[MTF_ONNX_MAX_RANK];
    int n = 0;
    for (int k = 0; k < value->rank; k++)
        if (value->sizes[k] > 1)
            sizes[n++] = value->sizes[k];
    value->tensor = mtf_axis_source_add(t->graph, &variable, n, sizes, NULL);
    const MtfShape *axes = &mtf_axis_tensor(t->graph, value->tensor)->axes;
    for (int k = 0, i = 0; k < value->rank; k++)
        if (value->sizes[k] > 1)
            value->axes[k] = axes->dims[i++];
    return value;
}

/* ---- Known elements -------------------------------------------------------------------------- */

/* Makes `value` what `made` is. */
static MtfOnnxValue *become(MtfOnnxValue *value, const MtfOnnxValue *made) {
    if (made == NULL)
        return NULL;
    value->tensor = made->tensor;
    memcpy(value->axes, made->axes, sizeof value->axes);
    return value;
}

static MtfOnnxValue *make_constant(MtfOnnxTranslation *t, MtfOnnxValue *value) {
    MtfAxisOperation constant = mtf_onnx_begin(t, MTF_OP_CONSTANT);
    double number = value->known[0];
    constant.has_dtype = true;
    constant.dtype = mtf_onnx_dtype(value->type);
    double most = constant.dtype == MTF_I32   ? INT32_MAX
                  : constant.dtype == MTF_I64 ? 0x1p63 - 0x1p10
                  : constant.dtype == MTF_F32 ? 3.4028234663852886e38
                                              : HUGE_VAL;
    constant.attributes.value = CLAMP(number, -most, most);
    value->tensor = mtf_axis_operation_end(t->graph, &constant);
    return value;
}

/* The one axis along which elements differ; -1 where there are several. */
static int only_axis(const MtfOnnxValue *value) {
    int found = -1;
    for (int k = 0; k < value->rank; k++) {
        if (value->sizes[k] == 1)
            continue;
        if (found >= 0)
            return -1;
        found = k;
    }
    return found;
}

/* first + step i along the only axis. */
static MtfOnnxValue *make_range(MtfOnnxTranslation *t, MtfOnnxValue *value) {
    int axis = only_axis(value);
    if (axis < 0)
        return NULL;
    double first = value->known[0], step = value->known[1] - value->known[0];
    for (int64_t i = 0; i < value->sizes[axis]; i++)
        if (value->known[i] != first + step * (double)i)
            return NULL;
    MtfOnnxValue *range = mtf_onnx_range(t, value->type, value->rank, value->sizes, axis);
    return become(value, mtf_onnx_affine(t, range, step, first));
}

/* Two numbers, `upper` where column - row > diagonal, else `lower`, in two axes; the others
 * have one element. */
typedef struct {
    double lower, upper;
    int64_t diagonal;
    int axes[2];
} Triangle;

/* The two axes of several elements, and how many elements lie between neighbours along them: of other
 * axes there is one element. */
static bool find_sides(const MtfOnnxValue *value, int axes[2]) {
    int n = 0;
    for (int k = 0; k < value->rank; k++) {
        if (value->sizes[k] > 1 && n == 2)
            return false;
        if (value->sizes[k] > 1)
            axes[n++] = k;
    }
    return n == 2;
}

static bool find_triangle(const MtfOnnxValue *value, Triangle *triangle) {
    if (!find_sides(value, triangle->axes))
        return false;
    int64_t rows = value->sizes[triangle->axes[0]], columns = value->sizes[triangle->axes[1]];
    triangle->lower = value->known[(rows - 1) * columns];
    triangle->upper = value->known[columns - 1];
    triangle->diagonal = 1 - rows;
    for (int64_t i = 0; i < rows * columns; i++)
        if (value->known[i] == triangle->lower)
            triangle->diagonal = MAX(triangle->diagonal, i % columns - i / columns);
    for (int64_t i = 0; i < rows * columns; i++) {
        bool above = i % columns - i / columns > triangle->diagonal;
        if (value->known[i] != (above ? triangle->upper : triangle->lower))
            return false;
    }
    return triangle->lower != triangle->upper;
}

static MtfOnnxValue *make_triangle(MtfOnnxTranslation *t, MtfOnnxValue *value) {
    Triangle triangle;
    if (!find_triangle(value, &triangle))
        return NULL;
    int r = value->rank;
    MtfOnnxValue *row = mtf_onnx_range(t, MTF_ONNX_FLOAT, r, value->sizes, triangle.axes[0]);
    MtfOnnxValue *column = mtf_onnx_range(t, MTF_ONNX_FLOAT, r, value->sizes, triangle.axes[1]);
    MtfOnnxValue *below = mtf_onnx_binary(t, MTF_OP_LESS_EQUAL, column,
                                          mtf_onnx_affine(t, row, 1, (double)triangle.diagonal));
    MtfOnnxValue *made = mtf_onnx_where(t, below, mtf_onnx_scalar(t, value->type, triangle.lower),
                                        mtf_onnx_scalar(t, value->type, triangle.upper));
    return become(value, made);
}

/* The most pieces of a step function: one `where` each. */
#define MOST_PIECES 64

/* A block of a known value along the axes from `axis` on, which begins at element `first`. */
typedef struct {
    int axis;
    int64_t first;
} Block;

/* How many elements a step along the axis passes. */
static int64_t stride_of(const MtfOnnxValue *value, int axis) {
    int64_t stride = 1;
    for (int k = axis + 1; k < value->rank; k++)
        stride *= value->sizes[k];
    return stride;
}

/* Whether part i of a block is what the part before is. */
static bool goes_on(const MtfOnnxValue *value, Block block, int64_t i) {
    int64_t stride = stride_of(value, block.axis);
    const double *part = &value->known[block.first + i * stride];
    return memcmp(part, part - stride, (gsize)stride * sizeof *part) == 0;
}

static int64_t count_pieces(const MtfOnnxValue *value, Block block) {
    if (block.axis == value->rank)
        return 1;
    int64_t stride = stride_of(value, block.axis), n = 0;
    for (int64_t i = 0; i < value->sizes[block.axis] && n <= MOST_PIECES; i++)
        if (i == 0 || !goes_on(value, block, i))
            n += count_pieces(value, (Block){ block.axis + 1, block.first + i * stride });
    return n;
}

/* A block as pieces of equal parts, each one up to where the next begins. */
static MtfOnnxValue *make_block(MtfOnnxTranslation *t, const MtfOnnxValue *value, Block block) {
    if (block.axis == value->rank)
        return mtf_onnx_scalar(t, value->type, value->known[block.first]);
    int64_t stride = stride_of(value, block.axis);
    MtfOnnxValue *made = NULL, *place = NULL;
    for (int64_t i = 0; i < value->sizes[block.axis] && t->error == NULL; i++) {
        if (i > 0 && goes_on(value, block, i))
            continue;
        MtfOnnxValue *part =
            make_block(t, value, (Block){ block.axis + 1, block.first + i * stride });
        if (i > 0 && place == NULL)
            place = mtf_onnx_range(t, MTF_ONNX_FLOAT, value->rank, value->sizes, block.axis);
        MtfOnnxValue *last = mtf_onnx_scalar(t, MTF_ONNX_FLOAT, (double)(i - 1));
        made = i == 0 ? part
                      : mtf_onnx_where(t, mtf_onnx_binary(t, MTF_OP_LESS_EQUAL, place, last), made,
                                       part);
    }
    return made;
}

/* Few elements that follow no rule, or many in few blocks. */
static MtfOnnxValue *make_steps(MtfOnnxTranslation *t, MtfOnnxValue *value) {
    const Block all = { 0, 0 };
    int64_t least = value->node == NULL ? 1 : 4; /* where an operation makes the elements, too */
    int64_t pieces =
        value->known == NULL || value->uniform ? MOST_PIECES + 1 : count_pieces(value, all);
    if (pieces > MOST_PIECES || pieces * least > mtf_onnx_elements(value))
        return NULL;
    return become(value, make_block(t, value, all));
}

/* What the operation that worked the elements out makes of tensors. */
static MtfOnnxValue *make_again(MtfOnnxTranslation *t, MtfOnnxValue *value) {
    const MtfOnnxNode *node = t->node;
    bool plain = t->plain;
    if (value->cast_of != NULL) {
        t->plain = true;
        MtfOnnxValue *cast = mtf_onnx_cast(t, value->cast_of, value->type);
        t->plain = plain;
        return cast == NULL ? NULL : become(value, cast);
    }
    MtfOnnxValue *steps = make_steps(t, value);
    if (steps != NULL || t->error != NULL)
        return steps;
    if (value->node == NULL)
        return mtf_onnx_fail(
            t, "a constant of %" PRId64 " elements that differ has no place in the file",
            mtf_onnx_elements(value));
    t->node = value->node;
    t->plain = true;
    MtfOnnxValue *made = mtf_onnx_translate_node(t, value->node, value->output);
    t->node = node;
    t->plain = plain;
    return made == NULL ? NULL : become(value, mtf_onnx_material(t, made));
}

static MtfOnnxValue *make_pattern(MtfOnnxTranslation *t, MtfOnnxValue *value);

/* Truths as those numbers that are not 0. */
static MtfOnnxValue *make_truths(MtfOnnxTranslation *t, MtfOnnxValue *value) {
    MtfOnnxValue *numbers = mtf_onnx_known_new(t, MTF_ONNX_INT32, value->rank, value->sizes);
    if (numbers == NULL)
        return NULL;
    memcpy(numbers->known, value->known, (gsize)mtf_onnx_elements(value) * sizeof(double));
    numbers = make_pattern(t, numbers);
    return numbers == NULL ? NULL : become(value, mtf_onnx_cast(t, numbers, MTF_ONNX_BOOL));
}

/* Known elements that are a range or a triangle, or NULL. */
static MtfOnnxValue *make_pattern(MtfOnnxTranslation *t, MtfOnnxValue *value) {
    if (value->type == MTF_ONNX_BOOL)
        return make_truths(t, value);
    MtfOnnxValue *range = only_axis(value) >= 0 ? make_range(t, value) : NULL;
    return range != NULL || t->error != NULL ? range : make_triangle(t, value);
}

/* Whether all of the known elements are the same. */
static bool are_alike(const MtfOnnxValue *value) {
    int64_t n = mtf_onnx_elements(value), i = 1;
    while (i < n && value->known[i] == value->known[0])
        i++;
    return i >= n;
}

MtfOnnxValue *mtf_onnx_material(MtfOnnxTranslation *t, MtfOnnxValue *value) {
    if (value == NULL || value->tensor >= 0)
        return value;
    if (mtf_onnx_elements(value) == 0)
        return mtf_onnx_fail(t, "tensors without elements are not supported");
    if (value->shaped)
        return make_variable(t, value, false);
    bool known = mtf_onnx_is_known(t, value);
    bool single = mtf_onnx_elements(value) == 1;
    bool exact =
        mtf_onnx_type_is_integer(value->type) || value->type == MTF_ONNX_BOOL || !value->trained;
    value->uniform |= known && exact && !value->uniform && are_alike(value);
    if (known && (value->uniform || single) && (value->stored == NULL || single || !value->trained))
        return make_constant(t, value);
    MtfOnnxValue *pattern = known && exact ? make_pattern(t, value) : NULL;
    if (pattern != NULL || t->error != NULL)
        return pattern;
    return value->stored != NULL ? make_variable(t, value, !value->trained) : make_again(t, value);
}

MtfOnnxValue *mtf_onnx_weight(MtfOnnxTranslation *t, MtfOnnxValue *value, bool frozen) {
    if (value == NULL || value->tensor >= 0)
        return value;
    bool variable = value->stored != NULL || value->shaped;
    return variable && mtf_onnx_elements(value) > 0
               ? make_variable(t, value, frozen || (value->stored != NULL && !value->trained))
               : mtf_onnx_material(t, value);
}

/* ---- Other forms of the same ----------------------------------------------------------------- */

/* An operation of one input whose axis k goes by indexes[k], and its result. */
static MtfOnnxValue *reform(MtfOnnxTranslation *t, int kind, MtfOnnxValue *value, const int *kept) {
    MtfAxisOperation operation = mtf_onnx_begin(t, kind);
    MtfOnnxValue *result = mtf_onnx_view(t, value);
    int indexes[MTF_ONNX_MAX_RANK] = { 0 };
    if (result == NULL)
        return NULL;
    for (int k = 0; k < value->rank; k++) {
        result->axes[k] = -1;
        if (!kept[k] && value->axes[k] < 0)
            continue;
        indexes[k] = mtf_axis_index(t->graph, &operation, value->sizes[k], NULL);
        if (kept[k]) {
            mtf_shape_append(&operation.shape, indexes[k]);
            result->axes[k] = indexes[k];
        }
    }
    mtf_onnx_take(t, &operation, value, indexes);
    operation.dtype = mtf_axis_tensor(t->graph, value->tensor)->dtype;
    result->tensor = mtf_axis_operation_end(t->graph, &operation);
    return result;
}

MtfOnnxValue *mtf_onnx_real(MtfOnnxTranslation *t, MtfOnnxValue *value) {
    int kept[MTF_ONNX_MAX_RANK];
    bool missing = false;
    value = mtf_onnx_material(t, value);
    if (value == NULL)
        return NULL;
    for (int k = 0; k < value->rank; k++) {
        kept[k] = value->axes[k] >= 0 || value->sizes[k] > 1;
        missing |= value->axes[k] < 0 && value->sizes[k] > 1;
    }
    return missing ? reform(t, MTF_OP_BROADCAST, value, kept) : value;
}

MtfOnnxValue *mtf_onnx_ordered(MtfOnnxTranslation *t, MtfOnnxValue *value) {
    int kept[MTF_ONNX_MAX_RANK], next = 0;
    bool sorted = true;
    value = mtf_onnx_real(t, value);
    if (value == NULL)
        return NULL;
    const MtfShape *axes = &mtf_axis_tensor(t->graph, value->tensor)->axes;
    for (int k = 0; k < value->rank; k++) {
        kept[k] = value->axes[k] >= 0;
        if (kept[k])
            sorted = sorted && axes->dims[next++] == value->axes[k];
    }
    return sorted ? value : reform(t, MTF_OP_TRANSPOSE, value, kept);
}

/* Whether axis `k` is one of a single element that is not kept. */
static bool is_dropped(const MtfOnnxValue *value, int k, unsigned keep) {
    return value->axes[k] >= 0 && value->sizes[k] == 1 && !(keep >> k & 1);
}

MtfOnnxValue *mtf_onnx_drop_units(MtfOnnxTranslation *t, MtfOnnxValue *value, unsigned keep) {
    int kept[MTF_ONNX_MAX_RANK];
    bool some = false;
    if (value == NULL || value->tensor < 0)
        return value;
    for (int k = 0; k < value->rank; k++)
        some |= is_dropped(value, k, keep);
    if (!some)
        return value;
    /* axes along which all were equal have become axes of the tensor */
    value = mtf_onnx_ordered(t, value);
    for (int k = 0; value != NULL && k < value->rank; k++)
        kept[k] = value->axes[k] >= 0 && !is_dropped(value, k, keep);
    return value == NULL ? NULL : reform(t, MTF_OP_RESHAPE, value, kept);
}

/* ---- Types ----------------------------------------------------------------------------------- */

/* Makes the view one of the same elements as another type of ours. */
static void convert(MtfOnnxTranslation *t, MtfOnnxValue *view, int type) {
    MtfAxisOperation cast = mtf_onnx_begin(t, MTF_OP_CAST);
    const MtfShape from = mtf_axis_tensor(t->graph, view->tensor)->axes;
    for (int i = 0; i < from.rank; i++)
        mtf_shape_append(&cast.shape, mtf_axis_index(t->graph, &cast,
                                                     mtf_axis(t->graph, from.dims[i])->size, NULL));
    mtf_axis_operation_take(t->graph, &cast, view->tensor, &from, &cast.shape);
    cast.has_dtype = true;
    cast.dtype = mtf_onnx_dtype(type);
    for (int k = 0; k < view->rank; k++)
        if (view->axes[k] >= 0)
            view->axes[k] = cast.shape.dims[mtf_shape_find(&from, view->axes[k])];
    view->tensor = mtf_axis_operation_end(t->graph, &cast);
}

MtfOnnxValue *mtf_onnx_cast(MtfOnnxTranslation *t, MtfOnnxValue *value, int type) {
    if (value == NULL || value->type == type)
        return value;
    if (mtf_onnx_type_bytes(type) == 0)
        return mtf_onnx_fail(t, "values of type %s are not supported", mtf_onnx_type_name(type));
    if (mtf_onnx_folds(t, value))
        return mtf_onnx_known_cast(t, value, type);
    value = mtf_onnx_material(t, value);
    if (value == NULL)
        return NULL;
    MtfOnnxValue *view = mtf_onnx_view(t, value);
    if (view == NULL)
        return NULL;
    if (mtf_onnx_dtype(type) != mtf_axis_tensor(t->graph, view->tensor)->dtype)
        convert(t, view, type);
    view->type = type;
    return view;
}
