// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/models/architecture.h"

#include "analyzer/models/architecture_parts.h"
#include "layouts/base/error.h"

#include <inttypes.h>
#include <math.h>

/* ---- Dimensions ------------------------------------------------------------------------------ */

static const MtfStack *first_stack(const MtfArchitecture *n) {
    return n->kind == MTF_ARCHITECTURE_DECODER ? &n->decoder : &n->encoder;
}

/* The dimension of that name and size; "decoder_NAME" where the encoder's has another size. */
static int shared_dimension(MtfAssembly *m, const char *name, int64_t size) {
    const MtfGraph *graph = m->p->b.graph;
    int known = m->p->b.error == NULL ? mtf_graph_find_dimension(graph, name) : -1;
    if (known >= 0 && mtf_graph_size(graph, known) == size)
        return known;
    g_autofree char *full = g_strdup_printf("%s%s", known >= 0 ? "decoder_" : "", name);
    int again = m->p->b.error == NULL ? mtf_graph_find_dimension(graph, full) : -1;
    return again >= 0 ? again : mtf_parts_dimension(m->p, full, size);
}

/* Begins a stack whose positions are called `positions`, and "memory_…" as memory. */
static void enter_stack(MtfAssembly *m, const MtfStack *stack, const char *positions,
                        int64_t length) {
    g_autofree char *memory = g_strdup_printf("memory_%s", positions);
    bool grouped = stack->kv_heads != stack->heads;
    m->stack = stack;
    m->positions = length;
    m->length = shared_dimension(m, positions, length);
    m->memory_length = shared_dimension(m, memory, length);
    m->heads = shared_dimension(m, "heads", stack->kv_heads);
    m->group = grouped ? shared_dimension(m, "group", stack->heads / stack->kv_heads) : -1;
    m->d_kv = shared_dimension(m, "d_kv", stack->d_kv);
    m->d_ff = shared_dimension(m, "d_ff", stack->d_ff);
    m->residual_spread = m->n->spread / sqrt(2 * fmax(1, (double)stack->layers));
    m->buckets = -1;
}

/* ---- Embeddings ------------------------------------------------------------------------------ */

static MtfShape stream_shape(const MtfAssembly *m) {
    return MTF_SHAPE(m->batch, m->length, m->d_model);
}

/* Rows of a table of learned positions. The table is as long as the model may read, and what is
 * read is its beginning. */
static int add_positions(MtfAssembly *m, int x) {
    if (m->n->max_positions == 0)
        return x;
    int rows = mtf_parts_dimension(m->p, "positions", m->n->max_positions);
    int table =
        mtf_assembly_variable(m, "position_table", m->stack->names.positions,
                              &MTF_SHAPE(rows, m->d_model), MTF_INIT_NORMAL, m->n->spread / 2);
    m->p->b.has_dtype = true;
    m->p->b.dtype = MTF_I32;
    MtfShape shape = MTF_SHAPE(m->length);
    g_autofree char *name = g_strdup("position");
    int position = mtf_build(&m->p->b, MTF_OP_RANGE, name, &shape, 0, NULL);
    MtfShape result = MTF_SHAPE(m->length, m->d_model);
    int read = mtf_parts_apply(m->p, MTF_OP_EMBEDDING, "positions_read", &result, table, position);
    return mtf_parts_add(m->p, "x", x, read);
}

static int embed(MtfAssembly *m, int table, int tokens) {
    MtfShape shape = stream_shape(m);
    int rows = mtf_parts_apply(m->p, MTF_OP_EMBEDDING, "embed", &shape, table, tokens);
    int scaled = mtf_assembly_scale(m, "embed_scaled", m->n->embedding_scale, rows);
    return mtf_assembly_norm(m, "embedding_norm", m->n->embedding_norm, m->d_model,
                             add_positions(m, scaled));
}

/* ---- Layers ---------------------------------------------------------------------------------- */

static const char *const part_prefix[] = { "attention", "ffn" };

/* One part of a layer: norm, branch, norm, sum, norm, each norm where the model has one. */
static int part(MtfAssembly *m, int which, int x) {
    const MtfStackNames *n = &m->stack->names;
    const char *const before[] = { n->before_attention, n->before_ffn };
    const char *const on[] = { n->on_attention, n->on_ffn };
    const char *const after[] = { n->after_attention, n->after_ffn };
    mtf_parts_enter(m->p, part_prefix[which]);
    int normal = mtf_assembly_norm(m, "before", before[which], m->d_model, x);
    int branch = which == 0 ? mtf_assembly_self_attention(m, normal) : mtf_assembly_ffn(m, normal);
    branch = mtf_assembly_norm(m, "on", on[which], m->d_model, branch);
    int sum = mtf_parts_add(m->p, "x", x, branch);
    int y = mtf_assembly_norm(m, "after", after[which], m->d_model, sum);
    mtf_parts_leave(m->p);
    return y;
}

static int build_layer(MtfAssembly *m, const char *block, int x) {
    g_autofree char *prefix = g_strdup_printf("%s/%d", block, m->layer);
    g_autoptr(GString) files = g_string_new(m->stack->names.layer);
    g_autofree char *number = g_strdup_printf("%d", m->layer);
    g_string_replace(files, "%d", number, 1);
    m->files = files->str;
    mtf_parts_enter(m->p, prefix);
    int y = part(m, 1, part(m, 0, x));
    mtf_parts_leave(m->p);
    m->files = (char *)"";
    return y;
}

static int build_stack(MtfAssembly *m, const char *block, int x) {
    for (m->layer = 0; m->layer < (int)m->stack->layers && m->p->b.error == NULL; m->layer++)
        x = build_layer(m, block, x);
    if (m->stack->layers > 0)
        mtf_graph_add_repeat(m->p->b.graph, block, (int)m->stack->layers);
    return mtf_assembly_norm(m, "final_norm", m->stack->names.final_norm, m->d_model, x);
}

/* ---- Loss ------------------------------------------------------------------------------------ */

static int head(MtfAssembly *m, int x, int table) {
    MtfShape shape = MTF_SHAPE(m->batch, m->length, m->vocab);
    if (!m->n->tied)
        table = mtf_assembly_variable(m, "head", m->n->head, &MTF_SHAPE(m->vocab, m->d_model),
                                      MTF_INIT_NORMAL, m->n->spread);
    int scaled = mtf_assembly_scale(m, "x_scaled", m->n->logit_scale, x);
    int logits = mtf_parts_einsum(m->p, "logits", &shape, scaled, table);
    return mtf_assembly_softcap(m, "logits_softcap", m->n->logit_softcap, logits);
}

static void add_loss(MtfAssembly *m, int logits) {
    MtfShape shape = MTF_SHAPE(m->batch, m->length);
    int targets = mtf_parts_input(m->p, "targets", &shape, MTF_I32, MTF_FEED_NEXT_TOKENS);
    int losses =
        mtf_parts_apply(m->p, MTF_OP_SOFTMAX_CROSS_ENTROPY, "losses", &shape, logits, targets);
    m->p->b.graph->loss =
        mtf_parts_apply(m->p, MTF_OP_REDUCE_MEAN, "loss", &(MtfShape){ 0 }, losses, -1);
}

/* ---- The whole ------------------------------------------------------------------------------- */

static bool check_stack(const MtfArchitecture *n, const MtfStack *s, GError **error) {
    if (s->heads % s->kv_heads != 0)
        return mtf_input_error(
            error, "%s: %" PRId64 " heads of queries cannot share %" PRId64 " heads of keys alike",
            n->name, s->heads, s->kv_heads);
    return true;
}

static bool check_network(const MtfArchitecture *n, GError **error) {
    if (n->max_positions > 0 && n->length + n->first_position > n->max_positions)
        return mtf_input_error(error,
                               "%s: a length of %" PRId64 " is more than the %" PRId64
                               " positions it has learned",
                               n->name, n->length, n->max_positions - n->first_position);
    return (n->kind == MTF_ARCHITECTURE_DECODER || check_stack(n, &n->encoder, error)) &&
           (n->kind == MTF_ARCHITECTURE_ENCODER || check_stack(n, &n->decoder, error));
}

MtfGraph *mtf_architecture_build(const MtfArchitecture *network, GError **error) {
    if (!check_network(network, error))
        return NULL;
    MtfAssembly m = { .p = mtf_parts_new(), .n = network, .files = (char *)"" };
    m.batch = mtf_parts_dimension(m.p, "batch", network->batch);
    m.d_model = mtf_parts_dimension(m.p, "d_model", network->d_model);
    m.vocab = mtf_parts_dimension(m.p, "vocab", network->vocab);
    int table =
        mtf_assembly_variable(&m, "embedding", network->embedding, &MTF_SHAPE(m.vocab, m.d_model),
                              MTF_INIT_NORMAL, network->spread);
    enter_stack(&m, first_stack(network), "length", network->length);
    MtfShape shape = MTF_SHAPE(m.batch, m.length);
    int tokens = mtf_parts_input(m.p, "tokens", &shape, MTF_I32, MTF_FEED_TOKENS);
    int x = build_stack(&m, "layer", embed(&m, table, tokens));
    add_loss(&m, head(&m, x, table));
    g_free(m.p->b.graph->name);
    m.p->b.graph->name = g_strdup(network->name);
    MtfGraph *graph = mtf_parts_end(m.p, error);
    if (graph != NULL)
        mtf_graph_canonicalize(graph);
    return graph;
}
