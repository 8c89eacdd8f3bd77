// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/building/builder.h"

MtfBuilder mtf_builder(MtfGraph *graph, MtfPhase phase) {
    return (MtfBuilder){ .graph = graph, .phase = phase, .attributes = MTF_NO_ATTRIBUTES };
}

/* Whether an operation cannot be called so, since its result or a further one would have another's name. */
static bool is_taken(const MtfGraph *graph, int kind, const char *name) {
    bool taken = mtf_graph_find_tensor(graph, name) >= 0;
    for (int k = 1; k < MTF_MAX_OUTPUTS && mtf_operation_row(kind)->suffixes[k] != NULL && !taken;
         k++) {
        g_autofree char *further =
            g_strdup_printf("%s/%s", name, mtf_operation_row(kind)->suffixes[k]);
        taken = mtf_graph_find_tensor(graph, further) >= 0;
    }
    return taken;
}

char *mtf_build_free_name(const MtfGraph *graph, int kind, const char *name) {
    char *found = g_strdup(name);
    for (int i = 2; is_taken(graph, kind, found); i++) {
        g_free(found);
        found = g_strdup_printf("%s_%d", name, i);
    }
    return found;
}

int mtf_build(MtfBuilder *builder, int kind, const char *name, const MtfShape *shape, int n_inputs,
              const int *inputs) {
    g_autofree char *free_name = mtf_build_free_name(builder->graph, kind, name);
    MtfNewOperation operation = { .name = free_name,
                                  .kind = kind,
                                  .phase = builder->phase,
                                  .stage = builder->stage,
                                  .loop = builder->loop,
                                  .layer = builder->layer,
                                  .origin = builder->origin,
                                  .of = builder->of,
                                  .n_inputs = n_inputs,
                                  .inputs = inputs,
                                  .shape = shape,
                                  .has_dtype = builder->has_dtype,
                                  .dtype = builder->dtype,
                                  .attributes = builder->attributes };
    builder->attributes = MTF_NO_ATTRIBUTES;
    builder->has_dtype = false;
    if (builder->error != NULL)
        return -1;
    return mtf_graph_add_operation(builder->graph, &operation, &builder->error);
}

int mtf_build_constant(MtfBuilder *builder, const char *name, MtfDtype dtype, double value) {
    builder->attributes.value = value;
    builder->has_dtype = true;
    builder->dtype = dtype;
    return mtf_build(builder, MTF_OP_CONSTANT, name, &(MtfShape){ 0 }, 0, NULL);
}

/* The dimensions of `whole` that `part` has, in `whole`'s order. */
static MtfShape common_dims(const MtfShape *whole, const MtfShape *part) {
    MtfShape common = { 0 };
    for (int i = 0; i < whole->rank; i++)
        if (mtf_shape_find(part, whole->dims[i]) >= 0)
            mtf_shape_append(&common, whole->dims[i]);
    return common;
}

int mtf_build_fit(MtfBuilder *builder, const char *name, int tensor, const MtfShape *shape) {
    if (builder->error != NULL)
        return -1;
    MtfShape from = mtf_graph_tensor(builder->graph, tensor)->shape;
    MtfShape common = common_dims(shape, &from);
    if (mtf_shape_equal(&from, shape))
        return tensor;
    bool sums = common.rank < from.rank, repeats = common.rank < shape->rank;
    if (sums && !repeats)
        return MTF_BUILD(builder, MTF_OP_REDUCE_SUM, name, shape, tensor);
    if (!sums)
        return MTF_BUILD(builder, repeats ? MTF_OP_BROADCAST : MTF_OP_TRANSPOSE, name, shape,
                         tensor);
    g_autofree char *sum = g_strdup_printf("%s/sum", name);
    int summed = MTF_BUILD(builder, MTF_OP_REDUCE_SUM, sum, &common, tensor);
    return MTF_BUILD(builder, MTF_OP_BROADCAST, name, shape, summed);
}

/* ---- Expressions ------------------------------------------------------------------------------ */

/* An expression that is being built. */
typedef struct {
    MtfBuilder *b;
    const char *name;
    const MtfShape *shape;
    const MtfExpression *expression;
    const int *inputs;
    int *tensors; /* of terms; -1: none yet */
    int n;        /* operations so far */
} Emission;

static const MtfExpressionTerm *operand(const Emission *e, const MtfExpressionTerm *term, int k) {
    return &e->expression->terms[term->operands[k]];
}

static bool is_number(const Emission *e, const MtfExpressionTerm *term, int k) {
    return k < term->n_operands && operand(e, term, k)->kind == MTF_TERM_NUMBER;
}

static MtfDtype dtype_of(const Emission *e) {
    return mtf_graph_tensor(e->b->graph, e->inputs[0])->dtype;
}

/* The tensor of a term; a number becomes one where a tensor is asked for. */
static int tensor_of(Emission *e, int term) {
    if (e->tensors[term] < 0) {
        g_autofree char *name = g_strdup_printf("%s/number/%d", e->name, term);
        e->tensors[term] =
            mtf_build_constant(e->b, name, dtype_of(e), e->expression->terms[term].number);
    }
    return e->tensors[term];
}

/* Attributes that are left out have their standard values. */
static void set_standard_attributes(Emission *e, int kind) {
    for (const MtfAttributeSpec *spec = mtf_operation_row(kind)->attributes; spec->name != NULL;
         spec++)
        if (spec->type == MTF_ATTRIBUTE_NUMBER)
            *(double *)G_STRUCT_MEMBER_P(&e->b->attributes, (glong)spec->offset) = spec->standard;
}

static int build_part(Emission *e, int kind, const MtfShape *shape, int n, const int *inputs) {
    g_autofree char *name = g_strdup_printf("%s/%d", e->name, ++e->n);
    return mtf_build(e->b, kind, name, shape, n, inputs);
}

static int scaled(Emission *e, int x, double factor) {
    e->b->attributes.factor = factor;
    return build_part(e, MTF_OP_SCALE, NULL, 1, &x);
}

static int raised(Emission *e, int x, double exponent) {
    if (exponent == 2)
        return build_part(e, MTF_OP_SQUARE, NULL, 1, &x);
    e->b->attributes.exponent = exponent;
    return build_part(e, MTF_OP_RAISE, NULL, 1, &x);
}

/* A product, quotient or power of a float tensor and a number, which rows of one input compute; -1: it is
 * none. */
static int build_beside_number(Emission *e, const MtfExpressionTerm *term) {
    bool first = is_number(e, term, 0), second = is_number(e, term, 1);
    if (first == second || !mtf_dtype_is_float(dtype_of(e)))
        return -1;
    double number = operand(e, term, first ? 0 : 1)->number;
    int x = e->tensors[term->operands[first ? 1 : 0]];
    if (term->sign == '*')
        return scaled(e, x, number);
    if (term->sign == '/')
        return second ? scaled(e, x, 1 / number) : scaled(e, raised(e, x, -1), number);
    return term->sign == '^' && second ? raised(e, x, number) : -1;
}

static int build_term(Emission *e, int i) {
    const MtfExpressionTerm *term = &e->expression->terms[i];
    if (term->kind == MTF_TERM_ARGUMENT)
        return e->inputs[term->argument];
    if (term->kind == MTF_TERM_NUMBER)
        return -1;
    int tensor = build_beside_number(e, term), operands[MTF_MAX_OPERANDS];
    if (tensor >= 0 || e->b->error != NULL)
        return tensor;
    for (int k = 0; k < term->n_operands; k++)
        operands[k] = tensor_of(e, term->operands[k]);
    bool orders =
        i == e->expression->n - 1 && mtf_operation_row(term->operation)->dims == MTF_DIMS_UNION;
    set_standard_attributes(e, term->operation);
    return build_part(e, term->operation, orders ? e->shape : NULL, term->n_operands, operands);
}

int mtf_build_expression(MtfBuilder *builder, const char *name, const MtfShape *shape,
                         const MtfExpression *expression, const int *inputs) {
    g_autofree int *tensors = g_new(int, expression->n);
    Emission e = { builder, name, shape, expression, inputs, tensors, 0 };
    for (int i = 0; i < expression->n && builder->error == NULL; i++)
        tensors[i] = build_term(&e, i);
    if (builder->error != NULL)
        return -1;
    int last = tensors[expression->n - 1];
    bool made = expression->terms[expression->n - 1].kind == MTF_TERM_APPLICATION;
    if (!made || !mtf_shape_equal(&mtf_graph_tensor(builder->graph, last)->shape, shape))
        return MTF_BUILD(builder, MTF_OP_TRANSPOSE, name, shape, last);
    mtf_build_rename(builder, last, name);
    return last;
}

/* ---- Variables and names ------------------------------------------------------------------------ */

int mtf_build_variable(MtfBuilder *builder, const char *name, const MtfShape *shape, MtfDtype dtype,
                       MtfInit init, MtfMemoryKind memory) {
    if (builder->error != NULL)
        return -1;
    int variable =
        mtf_graph_add_variable(builder->graph, name, shape, dtype, init, memory, &builder->error);
    if (variable >= 0)
        mtf_graph_tensor(builder->graph, variable)->layer = builder->layer;
    return variable;
}

int mtf_build_variable_like(MtfBuilder *builder, const MtfTensor *variable) {
    int copy = mtf_build_variable(builder, variable->name, &variable->shape, variable->dtype,
                                  variable->init, variable->memory);
    if (copy < 0)
        return -1;
    mtf_variable_take_facts(mtf_graph_tensor(builder->graph, copy), variable);
    return copy;
}

void mtf_build_rename(MtfBuilder *builder, int tensor, const char *name) {
    if (builder->error != NULL)
        return;
    int producer = mtf_graph_tensor(builder->graph, tensor)->producer;
    int kind = mtf_graph_operation(builder->graph, producer)->kind;
    g_autofree char *free_name = mtf_build_free_name(builder->graph, kind, name);
    mtf_graph_rename(builder->graph, tensor, free_name);
}

bool mtf_builder_end(MtfBuilder *builder, GError **error) {
    if (builder->error == NULL)
        return true;
    g_propagate_error(error, g_steal_pointer(&builder->error));
    return false;
}

void mtf_build_frame(MtfGraph *to, const MtfGraph *from) {
    mtf_graph_copy_dimensions(to, from);
    for (guint i = 0; i < from->repeats->len; i++) {
        const MtfRepeat *repeat = &g_array_index(from->repeats, MtfRepeat, i);
        mtf_graph_add_repeat(to, repeat->name, repeat->count);
    }
    for (guint i = 0; i < from->loops->len; i++) {
        const MtfLoop *loop = &g_array_index(from->loops, MtfLoop, i);
        mtf_graph_add_loop(to, loop->name, loop->dimension, loop->reverse);
    }
    to->optimizer = from->optimizer;
    to->optimizer.kind = g_strdup(from->optimizer.kind);
    to->optimizer.schedule = g_strdup(from->optimizer.schedule);
}

MtfShape mtf_shape_without(const MtfShape *shape, int dim) {
    MtfShape rest = { 0 };
    for (int i = 0; i < shape->rank; i++)
        if (shape->dims[i] != dim)
            mtf_shape_append(&rest, shape->dims[i]);
    return rest;
}
