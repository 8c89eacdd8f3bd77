// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/execution/key_parts.h"

#include "layouts/building/replace_operations.h"

/* One attention that is rewritten. Its dimensions of parts and of positions within one are -1 until
 * they are made. */
typedef struct {
    MtfBuilder *b;
    MtfOperation op; /* as it was */
    char *name;      /* of it */
    int parts, within;
} Splitting;

/* ---- Which attention ------------------------------------------------------------------------- */

static bool can_split(const MtfGraph *graph, const MtfOperation *op, int parts) {
    if (!mtf_operation_row(op->kind)->in_parts || op->loop != 0 || op->attributes.parts >= 0)
        return false;
    const MtfDimension *memory = mtf_graph_dimension(graph, op->attributes.memory);
    bool adds = op->n_inputs > 3;
    return memory->unpadded == 0 && memory->size % parts == 0 &&
           !(adds && op->attributes.causal != 0);
}

/* ---- Its parts ------------------------------------------------------------------------------- */

static MtfShape shape_of(const Splitting *s, int tensor) {
    MtfShape none = { 0 };
    return tensor < 0 ? none : mtf_graph_tensor(s->b->graph, tensor)->shape;
}

static char *name_below(const Splitting *s, const char *what) {
    return g_strdup_printf("%s/%s", s->name, what);
}

/* An operation of the attention's own phase and place, called NAME/WHAT. */
static int build(Splitting *s, int kind, const char *what, const MtfShape *shape, int x, int y) {
    g_autofree char *name = name_below(s, what);
    return mtf_build(s->b, kind, name, shape, y < 0 ? 1 : 2, (int[]){ x, y });
}

/* A tensor along memory, with that in parts. */
static int in_parts(Splitting *s, const char *what, int tensor) {
    MtfShape whole = shape_of(s, tensor), shape = { 0 };
    for (int i = 0; i < whole.rank; i++) {
        bool along = whole.dims[i] == s->op.attributes.memory;
        if (along)
            mtf_shape_append(&shape, s->parts);
        mtf_shape_append(&shape, along ? s->within : whole.dims[i]);
    }
    return build(s, MTF_OP_RESHAPE, what, &shape, tensor, -1);
}

/* What every part meets. */
static int for_parts(Splitting *s, const char *what, int tensor) {
    MtfShape whole = shape_of(s, tensor), shape = { .rank = 1, .dims = { s->parts } };
    for (int i = 0; i < whole.rank; i++)
        mtf_shape_append(&shape, whole.dims[i]);
    return build(s, MTF_OP_BROADCAST, what, &shape, tensor, -1);
}

/* Attention to each part by itself. Returns its results; their logarithms are the next tensor. */
static int attend(Splitting *s) {
    const int *in = s->op.inputs;
    int inputs[5] = { for_parts(s, "queries", in[0]), in_parts(s, "keys", in[1]),
                      in_parts(s, "values", in[2]) };
    for (int k = 3; k < s->op.n_inputs; k++)
        inputs[k] = in_parts(s, k == 3 ? "added" : "more_added", in[k]);
    g_autofree char *name = name_below(s, "parts");
    s->b->attributes = s->op.attributes;
    s->b->attributes.memory = s->within;
    s->b->attributes.parts = s->parts;
    if (s->op.attributes.rate > 0 && s->op.attributes.stream == NULL)
        s->b->attributes.stream = s->name;
    return mtf_build(s->b, MTF_OP_ATTENTION, name, NULL, s->op.n_inputs, inputs);
}

static MtfDtype dtype_of(const Splitting *s, int tensor) {
    return tensor < 0 ? MTF_F32 : mtf_graph_tensor(s->b->graph, tensor)->dtype;
}

/* What of the result each part makes, in the type of the results. */
static int shares(Splitting *s, int logs, int max, int sum, MtfDtype dtype) {
    g_autofree char *name = name_below(s, "shares");
    int share = MTF_BUILD(s->b, MTF_OP_SOFTMAX_APPLY, name, NULL, logs, max, sum);
    if (share < 0 || dtype_of(s, share) == dtype)
        return share;
    s->b->has_dtype = true;
    s->b->dtype = dtype;
    return build(s, MTF_OP_CAST, "shares/narrow", NULL, share, -1);
}

/* Builds what takes the attention's place; `results` are its two. */
static void merge(Splitting *s, int *results) {
    int parts = attend(s), part_logs = parts < 0 ? -1 : parts + 1;
    MtfShape whole = shape_of(s, s->op.inputs[0]), rest = shape_of(s, s->op.outputs[1]);
    g_autofree char *least_name = name_below(s, "least");
    /* That of a query which a part has nothing for is -infinity. */
    int least = mtf_build_constant(s->b, least_name, dtype_of(s, part_logs), MTF_MASKED_SCORE);
    int logs = build(s, MTF_OP_MAXIMUM, "logs", NULL, part_logs, least);
    int max = build(s, MTF_OP_REDUCE_MAX, "max", &rest, logs, -1);
    int sum = build(s, MTF_OP_SUM_EXP, "sum", &rest, logs, max);
    int share = shares(s, logs, max, sum, dtype_of(s, parts));
    int log = build(s, MTF_OP_LOG, "log", NULL, sum, -1);
    results[1] = build(s, MTF_OP_ADD, "merged", &rest, max, log);
    s->b->origin = s->op.origin;
    s->b->of = s->op.of;
    results[0] = MTF_BUILD(s->b, MTF_OP_EINSUM, s->name, &whole, share, parts);
}

/* ---- In its place ---------------------------------------------------------------------------- */

static void split(MtfBuilder *b, const MtfOperation *op, char *name, int parts, int *results) {
    Splitting s = { .b = b, .op = *op, .name = name };
    int memory = op->attributes.memory;
    s.parts = mtf_dimension_below(b, memory, "parts", parts);
    s.within = mtf_dimension_below(b, memory, "within", mtf_graph_size(b->graph, memory) / parts);
    merge(&s, results);
}

bool mtf_graph_split_keys(MtfGraph *graph, int parts, GError **error) {
    static const MtfReplacement replacement = { "--key-parts", "attention whose memory", can_split,
                                                split };
    return mtf_replace_operations(graph, &replacement, parts, error);
}
