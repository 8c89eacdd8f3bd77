// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/models/architecture_parts.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static int64_t elements(const MtfAssembly *m, const MtfShape *shape) {
    return m->p->b.error != NULL ? 0 : mtf_graph_elements(m->p->b.graph, shape);
}

static void append_shape(MtfShape *shape, const MtfShape *more) {
    for (int i = 0; i < more->rank; i++)
        mtf_shape_append(shape, more->dims[i]);
}

/* "model.layers.3.self_attn.q_proj.weight[64,32]": where a variable is in published files. */
static void keep_place(MtfAssembly *m, int variable, const char *file, const char *suffix,
                       const char *sizes) {
    if (m->p->b.error != NULL || file == NULL || m->n->unpublished)
        return;
    MtfTensor *tensor = mtf_graph_tensor(m->p->b.graph, variable);
    g_free(tensor->stored);
    tensor->stored = g_strdup_printf("%s%s%s[%s]", m->files, file, suffix, sizes);
}

/* "64", the part "0:64/192" of a longer tensor, or "4*0:16/48", the part of each of its blocks. */
static char *format_outputs(const MtfAssembly *m, const MtfLinear *linear) {
    int64_t n = elements(m, &linear->out);
    if (linear->total == 0)
        return g_strdup_printf("%" PRId64, n);
    if (linear->blocks > 0)
        return g_strdup_printf("%" PRId64 "*%" PRId64 ":%" PRId64 "/%" PRId64, linear->blocks,
                               linear->begin, linear->begin + n / linear->blocks, linear->total);
    return g_strdup_printf("%" PRId64 ":%" PRId64 "/%" PRId64, linear->begin, linear->begin + n,
                           linear->total);
}

/* A variable of the part that is built, which it may have already; of layers that share their weights, the first
 * one's. */
static int own_variable(MtfAssembly *m, const char *name, const MtfShape *shape, MtfInitKind init,
                        double value) {
    int first = mtf_parts_find(m->p, name);
    if (m->p->b.layer.block > 0 && m->p->b.layer.iteration > 0 && m->stack->one_for_all)
        first = mtf_parts_find_in_first_layer(m->p, name);
    return first >= 0 ? first : mtf_parts_variable(m->p, name, shape, init, value);
}

static int add_bias(MtfAssembly *m, const MtfLinear *linear, int y) {
    const char *weights = linear->weights != NULL ? linear->weights : linear->name;
    g_autofree char *name = g_strdup_printf("%s_bias", weights);
    g_autofree char *sum = g_strdup_printf("%s_biased", linear->name);
    g_autofree char *outputs = format_outputs(m, linear);
    int bias = own_variable(m, name, &linear->out, MTF_INIT_CONSTANT, 0);
    g_autofree char *whole = g_strdup_printf("%" PRId64, elements(m, &linear->out));
    if (linear->bias_file != NULL)
        keep_place(m, bias, linear->bias_file, "", whole);
    else
        keep_place(m, bias, linear->file, ".bias", outputs);
    return mtf_parts_add(m->p, sum, y, bias);
}

/* The dimensions of x without those of `in`, then those of `out`. */
static MtfShape linear_shape(const MtfAssembly *m, const MtfLinear *linear, int x) {
    MtfShape shape = { 0 };
    if (m->p->b.error != NULL)
        return shape;
    const MtfShape *given = &mtf_graph_tensor(m->p->b.graph, x)->shape;
    for (int i = 0; i < given->rank; i++)
        if (mtf_shape_find(&linear->in, given->dims[i]) < 0)
            mtf_shape_append(&shape, given->dims[i]);
    append_shape(&shape, &linear->out);
    return shape;
}

int mtf_assembly_linear(MtfAssembly *m, const MtfLinear *linear, int x) {
    bool in_first = m->n->in_first && !linear->out_first;
    const char *weights = linear->weights != NULL ? linear->weights : linear->name;
    g_autofree char *weight = g_strdup_printf("w%s", weights);
    g_autofree char *outputs = format_outputs(m, linear);
    int64_t inputs = elements(m, &linear->in);
    g_autofree char *sizes = in_first ? g_strdup_printf("%" PRId64 ",%s", inputs, outputs)
                                      : g_strdup_printf("%s,%" PRId64, outputs, inputs);
    MtfShape shape = in_first ? linear->in : linear->out;
    append_shape(&shape, in_first ? &linear->out : &linear->in);
    double spread = linear->spread > 0 ? linear->spread : 1 / sqrt(fmax(1, (double)inputs));
    int w = own_variable(m, weight, &shape, MTF_INIT_NORMAL, spread);
    keep_place(m, w, linear->file, ".weight", sizes);
    MtfShape result = linear_shape(m, linear, x);
    int y = mtf_parts_einsum(m->p, linear->name, &result, x, w);
    return linear->bias ? add_bias(m, linear, y) : y;
}

/* The sizes of the dimensions from number `from` on, "64,32"; free with g_free. */
static char *format_sizes(const MtfAssembly *m, const MtfShape *shape, int from) {
    GString *sizes = g_string_new(NULL);
    for (int i = from; i < shape->rank && m->p->b.error == NULL; i++)
        g_string_append_printf(sizes, "%s%" PRId64, i > from ? "," : "",
                               mtf_graph_size(m->p->b.graph, shape->dims[i]));
    return g_string_free(sizes, FALSE);
}

static int variable_with_suffix(MtfAssembly *m, const char *name, const char *file,
                                const char *suffix, const MtfShape *shape, const MtfInit *init) {
    int kept = own_variable(m, name, shape, init->kind, init->value);
    g_autofree char *sizes = format_sizes(m, shape, 0);
    keep_place(m, kept, file, suffix, sizes);
    return kept;
}

int mtf_assembly_factors(MtfAssembly *m, const char *name, const char *file, int dim) {
    return variable_with_suffix(m, name, file, "", &MTF_SHAPE(dim),
                                &(MtfInit){ MTF_INIT_CONSTANT, 1 });
}

int mtf_assembly_table(MtfAssembly *m, const char *name, const char *file, const MtfShape *shape) {
    double spread = m->n->spread > 0 ? m->n->spread : 1;
    return variable_with_suffix(m, name, file, "", shape, &(MtfInit){ MTF_INIT_NORMAL, spread });
}

int mtf_assembly_kept(MtfAssembly *m, const char *name, const char *file, int dim, bool is_row) {
    int variable = mtf_parts_variable(m->p, name, &MTF_SHAPE(dim), MTF_INIT_CONSTANT, 0);
    g_autofree char *size = format_sizes(m, &MTF_SHAPE(dim), 0);
    g_autofree char *sizes = g_strdup_printf("%s%s", is_row ? "1," : "", size);
    keep_place(m, variable, file, "", sizes);
    if (m->p->b.error == NULL)
        mtf_graph_tensor(m->p->b.graph, variable)->frozen = true;
    return variable;
}

int mtf_assembly_sinks(MtfAssembly *m, const MtfShape *heads) {
    int variable = mtf_parts_variable(m->p, "sinks", heads, MTF_INIT_NORMAL, m->n->spread);
    g_autofree char *size = g_strdup_printf("%" PRId64, elements(m, heads));
    keep_place(m, variable, m->stack->names.sinks, "", size);
    return variable;
}

void mtf_assembly_place(MtfAssembly *m, const char *name, const char *place) {
    int variable = m->p->b.error == NULL ? mtf_graph_find_tensor(m->p->b.graph, name) : -1;
    if (variable < 0)
        return;
    MtfTensor *tensor = mtf_graph_tensor(m->p->b.graph, variable);
    g_free(tensor->stored);
    tensor->stored = g_strdup(place);
}

int mtf_assembly_stack(MtfAssembly *m, const char *name, const MtfLinear *linear,
                       const MtfShape *shape) {
    int variable = mtf_parts_variable(m->p, name, shape, MTF_INIT_NORMAL, linear->spread);
    bool apart = linear->file != NULL && strstr(linear->file, "{}") != NULL;
    g_autofree char *each = format_sizes(m, &MTF_SHAPE(shape->dims[0]), 0);
    g_autofree char *outputs = format_outputs(m, linear);
    g_autofree char *inputs = format_sizes(m, &linear->in, 0);
    bool in_first = linear->in_first, joined = m->stack->experts_joined;
    g_autofree char *sizes =
        g_strdup_printf("%s%s%s,%s", apart ? "" : each,
                        apart    ? ""
                        : joined ? "*"
                                 : ",",
                        in_first ? inputs : outputs, in_first ? outputs : inputs);
    bool bare = m->stack->experts_in_first || m->stack->experts_bare || joined;
    keep_place(m, variable, linear->file, bare ? "" : ".weight", sizes);
    return variable;
}

int mtf_assembly_stack_bias(MtfAssembly *m, const char *name, const MtfLinear *linear,
                            const MtfShape *shape) {
    int variable = mtf_parts_variable(m->p, name, shape, MTF_INIT_CONSTANT, 0);
    g_autofree char *each = format_sizes(m, &MTF_SHAPE(shape->dims[0]), 0);
    g_autofree char *outputs = format_outputs(m, linear);
    g_autofree char *sizes = g_strdup_printf("%s,%s", each, outputs);
    keep_place(m, variable, linear->file, "_bias", sizes);
    return variable;
}

int mtf_assembly_dimension(MtfAssembly *m, const char *name, int64_t size) {
    const MtfGraph *graph = m->p->b.graph;
    int known = m->p->b.error == NULL ? mtf_graph_find_dimension(graph, name) : -1;
    if (known >= 0 && mtf_graph_size(graph, known) == size)
        return known;
    g_autofree char *full = g_strdup_printf("%s%s", known >= 0 ? "decoder_" : "", name);
    int again = m->p->b.error == NULL ? mtf_graph_find_dimension(graph, full) : -1;
    return again >= 0 ? again : mtf_parts_dimension(m->p, full, size);
}

int mtf_assembly_variable(MtfAssembly *m, const char *name, const char *file, const MtfShape *shape,
                          MtfInitKind init, double value) {
    return variable_with_suffix(m, name, file, ".weight", shape, &(MtfInit){ init, value });
}

/* The scale of a norm: as stored, or with the 1 that Gemma's files leave out, or ones. */
static int norm_scale(MtfAssembly *m, const char *file, int dim) {
    if (m->n->norm_bare) {
        m->p->b.attributes.value = 1;
        return mtf_parts_apply_shaped(m->p, MTF_OP_CONSTANT, "ones", &MTF_SHAPE(dim));
    }
    MtfInit init = { MTF_INIT_CONSTANT, m->n->norm_plus_one ? 0 : 1 };
    int scale = variable_with_suffix(m, "norm_scale", file, ".weight", &MTF_SHAPE(dim), &init);
    if (!m->n->norm_plus_one)
        return scale;
    int one = mtf_parts_constant(m->p, "one", 1);
    return mtf_parts_add(m->p, "norm_scale_plus_one", scale, one);
}

int mtf_assembly_norm(MtfAssembly *m, const char *name, const char *file, int dim, int x) {
    return mtf_assembly_norm_by(m, name, file, dim, m->n->epsilon, x);
}

int mtf_assembly_norm_by(MtfAssembly *m, const char *name, const char *file, int dim,
                         double epsilon, int x) {
    if (file == NULL)
        return x;
    mtf_parts_enter(m->p, name);
    MtfInit zero = { MTF_INIT_CONSTANT, 0 };
    int inputs[3] = { x, norm_scale(m, file, dim), -1 };
    bool biased = !m->n->rms && !m->n->norm_unbiased && !m->n->norm_bare;
    if (biased)
        inputs[2] = variable_with_suffix(m, "norm_bias", file, ".bias", &MTF_SHAPE(dim), &zero);
    m->p->b.attributes.dimension = dim;
    m->p->b.attributes.epsilon = epsilon;
    int y = mtf_parts_apply_to(m->p, m->n->rms ? MTF_OP_RMS_NORM : MTF_OP_LAYER_NORM, "norm",
                               biased ? 3 : 2, inputs);
    mtf_parts_leave(m->p);
    return y;
}

int mtf_assembly_bare_norm(MtfAssembly *m, const char *name, int dim, int x) {
    m->p->b.attributes.value = 1;
    int ones = mtf_parts_apply_shaped(m->p, MTF_OP_CONSTANT, "ones", &MTF_SHAPE(dim));
    m->p->b.attributes.dimension = dim;
    m->p->b.attributes.epsilon = m->n->epsilon;
    int kind = m->n->rms ? MTF_OP_RMS_NORM : MTF_OP_LAYER_NORM;
    return mtf_parts_apply(m->p, kind, name, NULL, x, ones);
}

int mtf_assembly_own_norm(MtfAssembly *m, const char *name, const char *file, const MtfShape *heads,
                          int x) {
    int width = heads->dims[heads->rank - 1];
    mtf_parts_enter(m->p, name);
    int scale = mtf_parts_variable(m->p, "norm_scale", heads, MTF_INIT_CONSTANT, 1);
    g_autofree char *one = format_sizes(m, &MTF_SHAPE(width), 0);
    g_autofree char *all = g_strdup_printf(
        "%" PRId64 ",%s", elements(m, heads) / MAX(1, elements(m, &MTF_SHAPE(width))), one);
    keep_place(m, scale, file, ".weight", strstr(file, "{}") != NULL ? one : all);
    int unit = mtf_assembly_bare_norm(m, "unit", width, x);
    int y = mtf_parts_apply(m->p, MTF_OP_MULTIPLY, "norm", NULL, unit, scale);
    mtf_parts_leave(m->p);
    return y;
}

/* The RMS norm whose means are of the shape `places`. */
static int scaled_norm(MtfAssembly *m, const char *name, const char *file, const MtfShape *heads,
                       const MtfShape *places, int x) {
    mtf_parts_enter(m->p, name);
    int scale = mtf_parts_variable(m->p, "norm_scale", heads, MTF_INIT_CONSTANT, 1);
    g_autofree char *size = g_strdup_printf("%" PRId64, elements(m, heads));
    keep_place(m, scale, file, ".weight", size);
    int square = mtf_parts_apply(m->p, MTF_OP_SQUARE, "square", NULL, x, -1);
    int mean = mtf_parts_apply(m->p, MTF_OP_REDUCE_MEAN, "mean_square", places, square, -1);
    int epsilon = mtf_parts_constant(m->p, "epsilon", m->n->epsilon);
    int sum = mtf_parts_add(m->p, "above_zero", mean, epsilon);
    int factor = mtf_parts_apply(m->p, MTF_OP_RSQRT, "factor", NULL, sum, -1);
    int unit = mtf_parts_apply(m->p, MTF_OP_MULTIPLY, "unit", NULL, x, factor);
    int y = mtf_parts_apply(m->p, MTF_OP_MULTIPLY, "norm", NULL, unit, scale);
    mtf_parts_leave(m->p);
    return y;
}

int mtf_assembly_wide_norm(MtfAssembly *m, const char *name, const char *file,
                           const MtfShape *heads, int x) {
    return scaled_norm(m, name, file, heads, &MTF_SHAPE(m->batch, m->length), x);
}

int mtf_assembly_group_norm(MtfAssembly *m, const char *name, const char *file,
                            const MtfShape *heads, int x) {
    return scaled_norm(m, name, file, heads, &MTF_SHAPE(m->batch, m->length, heads->dims[0]), x);
}

int mtf_assembly_scale(MtfAssembly *m, const char *name, double factor, int x) {
    if (factor == 1 || factor == 0)
        return x;
    m->p->b.attributes.factor = factor;
    return mtf_parts_apply(m->p, MTF_OP_SCALE, name, NULL, x, -1);
}

int mtf_assembly_softcap(MtfAssembly *m, const char *name, double cap, int x) {
    if (cap == 0)
        return x;
    mtf_parts_enter(m->p, name);
    int small = mtf_assembly_scale(m, "small", 1 / cap, x);
    int flat = mtf_parts_apply(m->p, MTF_OP_TANH, "tanh", NULL, small, -1);
    int y = mtf_assembly_scale(m, "capped", cap, flat);
    mtf_parts_leave(m->p);
    return y;
}

int mtf_assembly_number(MtfAssembly *m, const char *name, const char *file, const char *sizes,
                        double value, bool kept) {
    int number = mtf_parts_variable(m->p, name, &(MtfShape){ 0 }, MTF_INIT_CONSTANT, value);
    keep_place(m, number, file, "", sizes);
    if (m->p->b.error == NULL)
        mtf_graph_tensor(m->p->b.graph, number)->frozen = kept;
    return number;
}

/* A number that a layer's activation has in its file, as `sizes` says there; beside those that are trained where it has none. */
static int learned_number(MtfAssembly *m, const char *name, const char *sizes, double value) {
    g_autofree char *file = g_strconcat(m->stack->names.activation, name, NULL);
    return mtf_assembly_number(m, name, file, sizes, value, *sizes == '\0');
}

/* xIELU (Huang and Schlag, 2024): above 0 softplus(p) x^2 + beta x, elsewhere
 * (beta + softplus(n)) (e^min(x, eps) - 1 - x) + beta x. */
static int xielu(MtfAssembly *m, int x) {
    MtfParts *p = m->p;
    mtf_parts_enter(p, "xielu");
    int beta = learned_number(m, "beta", "", 0.5), eps = learned_number(m, "eps", "", -1e-6);
    int above = learned_number(m, "alpha_p", "1", log(expm1(0.8)));
    int below = learned_number(m, "alpha_n", "1", log(expm1(0.3)));
    int square = mtf_parts_apply(p, MTF_OP_SQUARE, "square", NULL, x, -1);
    int steep = mtf_parts_apply(p, MTF_OP_SOFTPLUS, "steep", NULL, above, -1);
    int high = mtf_parts_apply(p, MTF_OP_MULTIPLY, "high", NULL, square, steep);
    int low_x = mtf_parts_apply(p, MTF_OP_MINIMUM, "low_x", NULL, x, eps);
    int power = mtf_parts_apply(p, MTF_OP_EXP, "power", NULL, low_x, -1);
    int beyond = mtf_parts_apply(p, MTF_OP_SUBTRACT, "beyond", NULL, power, x);
    int bent = mtf_parts_add(p, "bent", beyond, mtf_parts_constant(p, "less_one", -1));
    int slope = mtf_parts_apply(p, MTF_OP_SOFTPLUS, "slope", NULL, below, -1);
    int share = mtf_parts_add(p, "share", slope, beta);
    int low = mtf_parts_apply(p, MTF_OP_MULTIPLY, "low", NULL, bent, share);
    int zero = mtf_parts_constant(p, "zero", 0);
    int is_high = mtf_parts_apply(p, MTF_OP_LESS, "is_high", NULL, zero, x);
    int curve = mtf_parts_apply_to(p, MTF_OP_WHERE, "curve", 3, (int[]){ is_high, high, low });
    int line = mtf_parts_apply(p, MTF_OP_MULTIPLY, "line", NULL, x, beta);
    int y = mtf_parts_add(p, "y", curve, line);
    mtf_parts_leave(p);
    return y;
}

int mtf_assembly_activation(MtfAssembly *m, const char *name, int x) {
    if (strcmp(name, "xielu") == 0)
        return xielu(m, x);
    if (strcmp(name, "relu2") == 0)
        return mtf_parts_apply(m->p, MTF_OP_SQUARE, name, NULL,
                               mtf_parts_activation(m->p, "relu", x), -1);
    if (strcmp(name, "quick_gelu") != 0)
        return mtf_parts_activation(m->p, name, x);
    int slope = mtf_assembly_scale(m, "gate_input", 1.702, x);
    int gate = mtf_parts_apply(m->p, MTF_OP_SIGMOID, "gate_share", NULL, slope, -1);
    return mtf_parts_apply(m->p, MTF_OP_MULTIPLY, name, NULL, x, gate);
}

MtfShape mtf_assembly_query_heads(const MtfAssembly *m) {
    return m->group < 0 ? MTF_SHAPE(m->heads, m->d_kv) : MTF_SHAPE(m->heads, m->group, m->d_kv);
}
