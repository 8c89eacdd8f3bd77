// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/graph/operation_check.h"

#include "layouts/base/error.h"
#include "layouts/graph/expression.h"
#include "layouts/graph/operation_table.h"

#include <inttypes.h>
#include <math.h>

typedef MtfOperationCheck Check;

bool mtf_check_fail(const Check *check, GError **error, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *sentence = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    return mtf_input_error(error, "operation \"%s\" (%s): %s", check->operation->name,
                           check->row->name, sentence);
}

bool mtf_check_flag(const Check *check, const char *name, double value, GError **error) {
    return value == 0 || value == 1 ||
           mtf_check_fail(check, error, "\"%s\" is %.17g and must be 0 or 1", name, value);
}

#define fail mtf_check_fail

#define input mtf_check_input
#define dim_name mtf_check_dimension_name

/* The first input that tells the storage type, or NULL. */
static const MtfTensor *find_leader(const Check *check) {
    for (int k = 0; k < check->operation->n_inputs; k++)
        if (mtf_operation_input_leads(check->row, k, input(check, k)->dtype))
            return input(check, k);
    return NULL;
}

/* An id: int32, and what users write may have int64. */
static bool check_id(const Check *check, int k, GError **error) {
    const MtfTensor *tensor = input(check, k);
    bool is_byte = mtf_operation_mask_has(check->row->byte_inputs, k);
    return (is_byte ? tensor->dtype == MTF_I8 : mtf_dtype_is_integer(tensor->dtype)) ||
           fail(check, error, "input \"%s\" is %s and must be %s", tensor->name,
                mtf_dtype_name(tensor->dtype), is_byte ? "int8" : "int32 or int64");
}

/* Whether numbers of a type may stand where the row asks for floats. */
static bool takes_type(const MtfOperationRow *row, MtfDtype dtype) {
    return row->kernel_class == MTF_CLASS_MOVE || mtf_dtype_is_float(dtype) ||
           (row->integers && mtf_dtype_is_integer(dtype)) || (row->truths && dtype == MTF_BOOL);
}

static bool check_type_of_input(const Check *check, int k, GError **error) {
    const MtfOperationRow *row = check->row;
    const MtfTensor *tensor = input(check, k), *leader = find_leader(check);
    if (mtf_operation_mask_has(row->integer_inputs, k))
        return check_id(check, k, error);
    if (row->dtype == MTF_DTYPE_GIVEN ||
        (tensor->dtype == MTF_BOOL && mtf_operation_mask_has(row->conditions, k)))
        return true;
    if (!takes_type(row, tensor->dtype))
        return fail(check, error, "input \"%s\" is %s; cast it to a float type%s first",
                    tensor->name, mtf_dtype_name(tensor->dtype),
                    row->integers ? " or an integer" : "");
    if (leader == NULL)
        return true;
    bool wide = mtf_operation_mask_has(row->wide_inputs, k);
    MtfDtype wanted = wide ? mtf_dtype_wide(leader->dtype) : leader->dtype;
    if (tensor->dtype == wanted)
        return true;
    if (wide && wanted != leader->dtype)
        return fail(check, error, "input \"%s\" is %s and must be %s beside \"%s\", which is %s",
                    tensor->name, mtf_dtype_name(tensor->dtype), mtf_dtype_name(wanted),
                    leader->name, mtf_dtype_name(leader->dtype));
    return fail(check, error, "input \"%s\" is %s but \"%s\" is %s; cast one of them", tensor->name,
                mtf_dtype_name(tensor->dtype), leader->name, mtf_dtype_name(leader->dtype));
}

/* What lies with the host is read by what fetches it from there, and by nothing else. An input of a graph
 * may come from anywhere. */
static bool check_memory_of_input(const Check *check, int k, GError **error) {
    bool fetches = check->row->host == MTF_HOST_FROM;
    return (fetches && input(check, k)->producer < 0) ||
           mtf_tensor_is_on_host(check->graph, check->operation->inputs[k]) == fetches ||
           fail(check, error,
                fetches ? "input \"%s\" is no result of to_host, so there is nothing to fetch"
                        : "input \"%s\" lies in the host's memory; from_host fetches it",
                input(check, k)->name);
}

/* "it takes 1 input, not 3", "it takes at least 2 inputs, not 1". */
static bool fail_count(const Check *check, GError **error) {
    const MtfOperationRow *row = check->row;
    int n = check->operation->n_inputs,
        wanted = n < row->min_inputs ? row->min_inputs : row->max_inputs;
    const char *bound = row->min_inputs == row->max_inputs ? ""
                        : n < row->min_inputs              ? "at least "
                                                           : "at most ";
    return fail(check, error, "it takes %s%d input%s, not %d", bound, wanted,
                wanted == 1 ? "" : "s", n);
}

static bool check_inputs(const Check *check, GError **error) {
    const MtfOperationRow *row = check->row;
    int n = check->operation->n_inputs;
    if (n < row->min_inputs || n > row->max_inputs)
        return fail_count(check, error);
    for (int k = 0; k < n; k++)
        if (!check_type_of_input(check, k, error) || !check_memory_of_input(check, k, error))
            return false;
    return true;
}

static bool check_attributes(const Check *check, GError **error) {
    for (const MtfAttributeSpec *spec = check->row->attributes; spec->name != NULL; spec++) {
        const void *slot = G_STRUCT_MEMBER_P(&check->operation->attributes, (glong)spec->offset);
        if (spec->type == MTF_ATTRIBUTE_DIMENSION && spec->required && *(const int *)slot < 0)
            return fail(check, error, "attribute \"%s\" is missing", spec->name);
        if (spec->offset == offsetof(MtfAttributes, epsilon) && *(const double *)slot < 0)
            return fail(check, error,
                        "\"epsilon\" is %g and must be at least 0: it keeps what is "
                        "divided by above 0",
                        *(const double *)slot);
    }
    return true;
}

/* Adds the dimensions of inputs in order of appearance. */
static bool unite(const Check *check, MtfShape *shape, GError **error) {
    for (int k = 0; k < check->operation->n_inputs; k++) {
        const MtfShape *part = &input(check, k)->shape;
        for (int i = 0; i < part->rank; i++)
            if (mtf_shape_find(shape, part->dims[i]) < 0 && !mtf_shape_append(shape, part->dims[i]))
                return fail(check, error, "its inputs have more than %d dimensions together%s",
                            MTF_MAX_RANK,
                            check->row->joins
                                ? ": name those of one size alike, or join some before others"
                                : "");
    }
    return true;
}

bool mtf_check_within(const Check *check, const MtfShape *part, const MtfShape *whole,
                      const char *what, GError **error) {
    for (int i = 0; i < part->rank; i++)
        if (mtf_shape_find(whole, part->dims[i]) < 0)
            return fail(check, error, "dimension \"%s\" is %s", dim_name(check, part->dims[i]),
                        what);
    return true;
}

static bool replace_dims(const Check *check, MtfShape *shape, GError **error) {
    const MtfAttributes *a = &check->operation->attributes;
    *shape = input(check, 0)->shape;
    int at = mtf_shape_find(shape, a->from);
    if (at < 0)
        return fail(check, error, "input \"%s\" has no dimension \"%s\"", input(check, 0)->name,
                    dim_name(check, a->from));
    if (mtf_shape_find(shape, a->to) >= 0)
        return fail(check, error, "input \"%s\" already has dimension \"%s\"",
                    input(check, 0)->name, dim_name(check, a->to));
    shape->dims[at] = a->to;
    return true;
}

/* Without the dimension that the iterations of a loop take apart, or with it first. */
static bool loop_dims(const Check *check, MtfShape *shape, GError **error) {
    int dim = check->operation->attributes.dimension, rank = 0;
    const MtfTensor *x = input(check, 0);
    bool has = mtf_shape_find(&x->shape, dim) >= 0, stacks = check->row->dims == MTF_DIMS_WITH;
    if (has == stacks)
        return fail(check, error, "input \"%s\" %s dimension \"%s\"", x->name,
                    has ? "already has" : "has no", dim_name(check, dim));
    if (stacks && x->shape.rank == MTF_MAX_RANK)
        return fail(check, error, "its result would have more than %d dimensions", MTF_MAX_RANK);
    if (stacks)
        shape->dims[rank++] = dim;
    for (int i = 0; i < x->shape.rank; i++)
        if (x->shape.dims[i] != dim)
            shape->dims[rank++] = x->shape.dims[i];
    shape->rank = rank;
    return true;
}

static bool rename_dims(const Check *check, MtfShape *shape, GError **error) {
    const MtfAttributes *a = &check->operation->attributes;
    int64_t from_size = mtf_graph_size(check->graph, a->from);
    int64_t to_size = mtf_graph_size(check->graph, a->to);
    if (from_size != to_size)
        return fail(check, error, "dimension \"%s\" has size %" PRId64 " but \"%s\" has %" PRId64,
                    dim_name(check, a->from), from_size, dim_name(check, a->to), to_size);
    return replace_dims(check, shape, error);
}

/* The shape that follows from the inputs; `given` is false where it must be given. */
static bool infer_dims(const Check *check, MtfShape *shape, bool *inferred, GError **error) {
    *shape = (MtfShape){ 0 };
    *inferred = true;
    switch (check->row->dims) {
    case MTF_DIMS_FIRST:
        *shape = input(check, 0)->shape;
        return true;
    case MTF_DIMS_UNION:
        return unite(check, shape, error);
    case MTF_DIMS_RENAMED:
        return rename_dims(check, shape, error);
    case MTF_DIMS_REPLACED:
        return replace_dims(check, shape, error);
    case MTF_DIMS_WITHOUT:
    case MTF_DIMS_WITH:
        return loop_dims(check, shape, error);
    case MTF_DIMS_SUBSET:
        if (check->operation->attributes.dimension >= 0)
            return loop_dims(check, shape, error);
        break;
    case MTF_DIMS_RESHAPED:
    case MTF_DIMS_SUPERSET:
    case MTF_DIMS_PERMUTED:
    case MTF_DIMS_NEW:
        break;
    }
    *inferred = false;
    return true;
}

/* Checks a given shape against the row's rule. */
static bool check_given(const Check *check, const MtfShape *given, GError **error) {
    MtfShape all = { 0 };
    MtfDimsRule rule = check->row->dims;
    if (!unite(check, &all, error))
        return false;
    if ((rule == MTF_DIMS_SUBSET || rule == MTF_DIMS_PERMUTED || rule == MTF_DIMS_UNION) &&
        !mtf_check_within(check, given, &all, "in its dims but in none of its inputs", error))
        return false;
    bool keeps_all =
        rule == MTF_DIMS_SUPERSET || rule == MTF_DIMS_PERMUTED || rule == MTF_DIMS_UNION;
    return !keeps_all ||
           mtf_check_within(check, &all, given, "in its inputs but missing in its dims", error);
}

static bool infer_shape(const Check *check, MtfShape *shape, GError **error) {
    bool inferred;
    const MtfShape *given = check->operation->shape;
    if (!infer_dims(check, shape, &inferred, error))
        return false;
    if (given == NULL)
        return inferred || fail(check, error, "\"dims\" is missing");
    bool ordered = check->row->dims != MTF_DIMS_UNION && check->row->dims != MTF_DIMS_SUBSET;
    if (inferred && ordered && !mtf_shape_equal(given, shape))
        return fail(check, error, "its dims are not those that follow from its inputs");
    *shape = *given;
    return check_given(check, given, error);
}

/* The one dimension that `whole` has and `part` lacks; false unless there is exactly one. */
static bool single_difference(const MtfShape *whole, const MtfShape *part, int *dim) {
    int found = 0;
    for (int i = 0; i < whole->rank; i++) {
        if (mtf_shape_find(part, whole->dims[i]) < 0) {
            *dim = whole->dims[i];
            found++;
        }
    }
    return found == 1;
}

/* Embedding: out = ids + table without its vocabulary, which neither ids nor output have. What ids
 * and table both have goes together: every example has a table of its own. */
bool mtf_check_embedding(const Check *check, const MtfShape *shape, GError **error) {
    const MtfShape *table = &input(check, 0)->shape;
    const MtfShape *ids = &input(check, 1)->shape;
    int vocabulary = -1, both = 0;
    if (!single_difference(table, shape, &vocabulary) || mtf_shape_find(ids, vocabulary) >= 0)
        return fail(check, error,
                    "its dims must hold all dimensions of table \"%s\" but the vocabulary",
                    input(check, 0)->name);
    for (int i = 0; i < ids->rank; i++)
        both += mtf_shape_find(table, ids->dims[i]) >= 0;
    if (shape->rank != table->rank - 1 + ids->rank - both)
        return fail(check, error, "its dims must be those of ids \"%s\" and of table \"%s\"",
                    input(check, 1)->name, input(check, 0)->name);
    return mtf_check_within(check, ids, shape, "in its ids but missing in its dims", error);
}

/* Logits have the labels' dimensions and one more, the classes; the output has the labels'. */
bool mtf_check_labels(const Check *check, const MtfShape *shape, GError **error) {
    const MtfShape *logits = &input(check, 0)->shape;
    const MtfShape *labels = &input(check, 1)->shape;
    int classes = -1;
    if (!single_difference(logits, labels, &classes))
        return fail(check, error, "\"%s\" must have exactly one dimension that labels \"%s\" lack",
                    input(check, 0)->name, input(check, 1)->name);
    return mtf_check_within(check, labels, logits, "in the labels but not in the logits", error) &&
           mtf_check_within(check, labels, shape, "in the labels but missing in the result",
                            error) &&
           mtf_check_within(check, shape, labels, "in the result but not in the labels", error) &&
           (check->operation->n_inputs < 3 ||
            mtf_check_within(check, &input(check, 2)->shape, labels,
                             "in the mask but not in the labels", error));
}

static bool check_inputs_within_first(const Check *check, GError **error) {
    const MtfShape *first = &input(check, 0)->shape;
    for (int k = 1; k < check->operation->n_inputs; k++)
        for (int i = 0; i < input(check, k)->shape.rank; i++)
            if (mtf_shape_find(first, input(check, k)->shape.dims[i]) < 0)
                return fail(check, error, "input \"%s\" has dimension \"%s\", which \"%s\" lacks",
                            input(check, k)->name, dim_name(check, input(check, k)->shape.dims[i]),
                            input(check, 0)->name);
    return true;
}

/* A dimension attribute must be one of the first input's dimensions. */
static bool check_dimension_attributes(const Check *check, GError **error) {
    for (const MtfAttributeSpec *spec = check->row->attributes; spec->name != NULL; spec++) {
        const void *slot = G_STRUCT_MEMBER_P(&check->operation->attributes, (glong)spec->offset);
        if (spec->type != MTF_ATTRIBUTE_DIMENSION)
            continue;
        int dim = *(const int *)slot;
        if (mtf_shape_find(&input(check, 0)->shape, dim) < 0)
            return fail(check, error, "input \"%s\" has no dimension \"%s\" (its \"%s\")",
                        input(check, 0)->name, dim_name(check, dim), spec->name);
    }
    return true;
}

/* Further outputs replace inputs of the first one's shape (optimizer state beside its variable). */
static bool check_further_outputs(const Check *check, const MtfShape *shape, GError **error) {
    bool own = check->row->separate || check->row->own_dimensions;
    for (int k = 1; k < check->row->n_outputs && !own; k++) {
        const MtfTensor *like = input(check, check->row->outputs_like[k]);
        if (!mtf_shape_equal(&like->shape, shape))
            return fail(check, error, "input \"%s\" must have the dimensions of \"%s\"", like->name,
                        input(check, 0)->name);
    }
    return true;
}

bool mtf_check_sort_grad(const Check *check, const MtfShape *shape, GError **error) {
    return mtf_shape_equal(&input(check, 1)->shape, shape) ||
           fail(check, error, "its gradient must have the dimensions of its index");
}

/* Embedding gradient: out = vocabulary + dimensions of dy, without some or all of those of ids; what is
 * added has the same shape. */
bool mtf_check_embedding_grad(const Check *check, const MtfShape *shape, GError **error) {
    const MtfShape *ids = &input(check, 0)->shape;
    const MtfShape *dy = &input(check, 1)->shape;
    int vocabulary = -1;
    if (!mtf_check_within(check, ids, dy, "in the ids but not in the gradient", error))
        return false;
    bool legal = single_difference(shape, dy, &vocabulary);
    for (int i = 0; legal && i < dy->rank; i++)
        legal = mtf_shape_find(shape, dy->dims[i]) >= 0 || mtf_shape_find(ids, dy->dims[i]) >= 0;
    if (!legal)
        return fail(
            check, error,
            "its dims must be one vocabulary and the dimensions of \"%s\" that \"%s\" lacks",
            input(check, 1)->name, input(check, 0)->name);
    return check->operation->n_inputs < 3 || mtf_shape_equal(&input(check, 2)->shape, shape) ||
           fail(check, error, "\"%s\", which is added, must have its dims in their order",
                input(check, 2)->name);
}

/* Input `k` and those after it have no dimensions. */
static bool check_scalars(const Check *check, int k, GError **error) {
    for (; k < check->operation->n_inputs; k++)
        if (input(check, k)->shape.rank > 0)
            return fail(check, error, "input \"%s\" has dimensions and must be a single number",
                        input(check, k)->name);
    return true;
}

/* Input 1 is a statistic of input 0: it has none of the dimensions that are reduced. */
bool mtf_check_statistic(const Check *check, const MtfShape *shape, GError **error) {
    return check_inputs_within_first(check, error) &&
           mtf_check_within(check, &input(check, 1)->shape, shape,
                            "in the statistic but missing in its dims", error);
}

bool mtf_check_mean(const Check *check, const MtfShape *shape, GError **error) {
    (void)shape;
    return mtf_check_flag(check, "per_microbatch", check->operation->attributes.per_microbatch,
                          error);
}

bool mtf_check_variance(const Check *check, const MtfShape *shape, GError **error) {
    return mtf_check_mean(check, shape, error) && mtf_check_statistic(check, shape, error);
}

bool mtf_check_loop_next(const Check *check, const MtfShape *shape, GError **error) {
    const MtfTensor *next = input(check, 1);
    double condition = check->operation->attributes.condition;
    if (condition != 0 && (condition != 1 || shape->rank > 0 || next->dtype != MTF_BOOL))
        return fail(check, error,
                    "a loop goes on while one bool without dimensions is true (\"condition\" 1), "
                    "which \"%s\" is not",
                    next->name);
    if (mtf_shape_equal(&next->shape, shape) && next->dtype == input(check, 0)->dtype)
        return true;
    g_autofree char *from = mtf_graph_tensor_format(check->graph, check->operation->inputs[0]);
    g_autofree char *to = mtf_graph_tensor_format(check->graph, check->operation->inputs[1]);
    return fail(check, error,
                "the carried value begins as %s but goes on as \"%s\" %s; both must be the same",
                from, next->name, to);
}

bool mtf_check_constant(const Check *check, const MtfShape *shape, GError **error) {
    (void)shape;
    double value = check->operation->attributes.value;
    MtfDtype dtype = check->operation->has_dtype ? check->operation->dtype : MTF_F32;
    const char *whole = dtype == MTF_BOOL  ? "0 or 1, as a bool is"
                        : dtype == MTF_I64 ? "an int64 within 2^53, as constants are"
                        : dtype == MTF_I32 ? "an int32"
                                           : "an int8";
    bool holds = value == floor(value) && fabs(value) <= mtf_dtype_most(dtype) &&
                 (dtype != MTF_BOOL || value >= 0);
    return mtf_dtype_is_float(dtype) || holds ||
           fail(check, error, "%.17g is not %s", value, whole);
}

bool mtf_check_learning_rate(const Check *check, const MtfShape *shape, GError **error) {
    if (shape->rank > 0)
        return fail(check, error, "a learning rate has no dimensions");
    return !check->operation->has_dtype || mtf_dtype_is_float(check->operation->dtype) ||
           fail(check, error, "a learning rate is of a float type");
}

bool mtf_check_range(const Check *check, const MtfShape *shape, GError **error) {
    if (check->operation->has_dtype && check->operation->dtype == MTF_BOOL)
        return fail(check, error, "a range counts, and a bool does not go beyond 1");
    return shape->rank == 1 || fail(check, error, "a range has exactly one dimension");
}

bool mtf_check_cast(const Check *check, const MtfShape *shape, GError **error) {
    (void)shape;
    return check->operation->has_dtype || fail(check, error, "attribute \"dtype\" is missing");
}

bool mtf_check_dropout(const Check *check, const MtfShape *shape, GError **error) {
    (void)shape;
    double rate = check->operation->attributes.rate;
    return (rate >= 0 && rate < 1) ||
           fail(check, error, "the rate %g is not at least 0 and below 1", rate);
}

bool mtf_check_clip(const Check *check, const MtfShape *shape, GError **error) {
    (void)shape;
    const MtfAttributes *a = &check->operation->attributes;
    return a->low <= a->high ||
           fail(check, error, "\"low\" is %g and must not be above \"high\", %g", a->low, a->high);
}

/* Integers have few functions, and no number between them. */
static bool check_integer_term(const Check *check, const MtfExpressionTerm *term, GError **error) {
    const MtfOperationRow *row = mtf_operation_row(term->operation);
    if (term->kind == MTF_TERM_NUMBER && term->number != floor(term->number))
        return fail(check, error,
                    "%.17g is no integer, but its inputs are; cast them to a float type",
                    term->number);
    return term->kind != MTF_TERM_APPLICATION || row->integers ||
           fail(check, error, "%s is not for integers; cast its inputs to a float type", row->name);
}

bool mtf_check_expression(const Check *check, const MtfShape *shape, GError **error) {
    (void)shape;
    const MtfNewOperation *operation = check->operation;
    const MtfAttributes *a = &operation->attributes;
    g_autoptr(GError) cause = NULL;
    if (a->expression == NULL || a->arguments == NULL)
        return fail(check, error, "\"expression\" and \"arguments\" are missing");
    g_autoptr(MtfExpression) expression =
        mtf_expression_read(a->expression, a->arguments, operation->n_inputs, &cause);
    if (expression == NULL)
        return fail(check, error, "%s", cause->message);
    bool fits = true;
    for (int i = 0; i < expression->n && fits && mtf_dtype_is_integer(input(check, 0)->dtype); i++)
        fits = check_integer_term(check, &expression->terms[i], error);
    return fits;
}

bool mtf_check_argmax(const Check *check, const MtfShape *shape, GError **error) {
    int dim;
    return single_difference(&input(check, 0)->shape, shape, &dim) ||
           fail(check, error, "its dims must lack exactly one dimension of input \"%s\"",
                input(check, 0)->name);
}

bool mtf_check_one_hot(const Check *check, const MtfShape *shape, GError **error) {
    int dim;
    return single_difference(shape, &input(check, 0)->shape, &dim) ||
           fail(check, error, "its dims must have exactly one dimension that input \"%s\" lacks",
                input(check, 0)->name);
}

bool mtf_check_within_first(const Check *check, const MtfShape *shape, GError **error) {
    (void)shape;
    return check_inputs_within_first(check, error);
}

bool mtf_check_direction(const Check *check, const MtfShape *shape, GError **error) {
    (void)shape;
    return check->operation->n_inputs != 3 || fail(check, error, "it takes 2 or 4 inputs");
}

/* Dimensions of `shape` that `other` has or lacks, in its order. */
static MtfShape part_of(const MtfShape *shape, const MtfShape *other, bool has) {
    MtfShape part = { 0 };
    for (int i = 0; i < shape->rank; i++)
        if ((mtf_shape_find(other, shape->dims[i]) >= 0) == has)
            mtf_shape_append(&part, shape->dims[i]);
    return part;
}

/* Whether the dimensions of `shape` that are in `part` stand together at its beginning or its end. */
static bool stands_at_an_end(const MtfShape *shape, const MtfShape *part) {
    int changes = 0;
    for (int i = 1; i < shape->rank; i++)
        changes += (mtf_shape_find(part, shape->dims[i]) >= 0) !=
                   (mtf_shape_find(part, shape->dims[i - 1]) >= 0);
    return changes <= 1;
}

MtfShape mtf_quantized_channels(const MtfShape *x, const MtfShape *w) {
    return part_of(w, x, false);
}

bool mtf_quantized_shapes_fit(const MtfShape *x, const MtfShape *w, const MtfShape *result) {
    MtfShape channels = mtf_quantized_channels(x, w), summed = part_of(x, result, false);
    MtfShape shared = part_of(w, x, true), rows = part_of(x, w, false);
    return channels.rank > 0 && summed.rank > 0 && stands_at_an_end(w, &summed) &&
           part_of(&channels, result, false).rank == 0 &&
           part_of(&shared, result, true).rank == 0 && part_of(&rows, result, false).rank == 0;
}

bool mtf_check_quantized_einsum(const Check *check, const MtfShape *shape, GError **error) {
    const MtfTensor *x = input(check, 0), *w = input(check, 1), *scale = input(check, 2);
    MtfShape channels = mtf_quantized_channels(&x->shape, &w->shape);
    if (!mtf_shape_equal(&scale->shape, &channels))
        return fail(check, error, "\"%s\" must have the dimensions of \"%s\" that \"%s\" lacks",
                    scale->name, w->name, x->name);
    return mtf_quantized_shapes_fit(&x->shape, &w->shape, shape) ||
           fail(check, error,
                "dimensions of \"%s\" must be summed with those of \"%s\", on one side of it, or "
                "stand in the result, on the other",
                w->name, x->name);
}

/* What rows of a kind share. */
static bool check_common(const Check *check, const MtfShape *shape, GError **error) {
    const MtfOperationRow *row = check->row;
    bool own = row->own_dimensions;
    return (own || check_dimension_attributes(check, error)) &&
           (own || row->dims != MTF_DIMS_FIRST || check_inputs_within_first(check, error)) &&
           (row->scalars_from == 0 || check_scalars(check, row->scalars_from, error)) &&
           check_further_outputs(check, shape, error);
}

static MtfDtype infer_dtype(const Check *check) {
    MtfDtypeRule rule = check->row->dtype;
    if (mtf_operation_row_chooses_dtype(check->row) && check->operation->has_dtype)
        return check->operation->dtype;
    const MtfTensor *leader = find_leader(check);
    if (rule == MTF_DTYPE_INTEGER)
        return MTF_I32;
    if (leader != NULL)
        return rule == MTF_DTYPE_WIDE ? mtf_dtype_wide(leader->dtype) : leader->dtype;
    return check->row->integer_result ? MTF_I32 : MTF_F32;
}

static bool check_given_dtype(const Check *check, GError **error) {
    const MtfTensor *leader = find_leader(check);
    MtfDtypeRule rule = check->row->dtype;
    MtfDtype given = check->operation->dtype;
    if ((rule != MTF_DTYPE_EITHER && rule != MTF_DTYPE_TRUTH) || !check->operation->has_dtype ||
        given == leader->dtype ||
        given == (rule == MTF_DTYPE_TRUTH ? MTF_BOOL : mtf_dtype_wide(leader->dtype)))
        return true;
    return fail(check, error, "its dtype is %s but \"%s\" is %s; cast the input or the result",
                mtf_dtype_name(given), leader->name, mtf_dtype_name(leader->dtype));
}

bool mtf_operation_infer(const MtfGraph *graph, const MtfNewOperation *operation, MtfShape *shape,
                         MtfDtype *dtype, GError **error) {
    Check check = { graph, operation, mtf_operation_row(operation->kind) };
    MtfShape result;
    if (!check_inputs(&check, error) || !check_attributes(&check, error) ||
        !infer_shape(&check, &result, error) || !check_common(&check, &result, error) ||
        (check.row->check != NULL && !check.row->check(&check, &result, error)) ||
        !check_given_dtype(&check, error))
        return false;
    *shape = result;
    *dtype = infer_dtype(&check);
    return true;
}
