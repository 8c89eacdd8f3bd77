// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/models/architecture.h"

#include "analyzer/models/architecture_parts.h"
#include "layouts/base/error.h"

#include <inttypes.h>
#include <math.h>

/* ---- Dimensions ------------------------------------------------------------------------------ */

static bool is_pair(const MtfArchitecture *n) {
    return n->kind == MTF_ARCHITECTURE_ENCODER_DECODER || n->kind == MTF_ARCHITECTURE_SPEECH;
}

static const MtfStack *first_stack(const MtfArchitecture *n) {
    return n->kind == MTF_ARCHITECTURE_DECODER ? &n->decoder : &n->encoder;
}

/* The heads of the stack's layers, or of those without a window where theirs differ. */
static void enter_heads(MtfAssembly *m, bool whole) {
    const MtfStack *stack = m->stack;
    bool other_heads = whole && stack->whole_kv_heads > 0;
    bool other_width = whole && stack->whole_d_kv > 0;
    m->kv_heads = other_heads ? stack->whole_kv_heads : stack->kv_heads;
    m->width_kv = other_width ? stack->whole_d_kv : stack->d_kv;
    m->heads = mtf_assembly_dimension(m, other_heads ? "whole_heads" : "heads", m->kv_heads);
    m->group = -1;
    if (m->kv_heads != stack->heads)
        m->group = mtf_assembly_dimension(m, other_heads ? "whole_group" : "group",
                                          stack->heads / m->kv_heads);
    m->d_kv = mtf_assembly_dimension(m, other_width ? "whole_d_kv" : "d_kv", m->width_kv);
}

static void enter_memory(MtfAssembly *m, const char *positions) {
    g_autofree char *memory = g_strdup_printf("memory_%s", positions);
    m->memory_length = mtf_assembly_dimension(m, memory, m->positions);
    enter_heads(m, false);
}

/* Begins a stack whose positions are called `positions`, and "memory_…" as memory. */
static void enter_stack(MtfAssembly *m, const MtfStack *stack, const char *positions,
                        int64_t length) {
    m->stack = stack;
    m->positions = length;
    m->length = mtf_assembly_dimension(m, positions, length);
    m->memory_length = m->heads = m->group = m->d_kv = -1;
    if (stack->heads > 0)
        enter_memory(m, positions);
    m->residual_spread = m->n->spread / sqrt(2 * fmax(1, (double)stack->layers));
    m->buckets = m->segments = m->places = m->mask = m->near = -1;
}

/* ---- Embeddings ------------------------------------------------------------------------------ */

static MtfShape embedded_shape(const MtfAssembly *m) {
    return MTF_SHAPE(m->batch, m->length, m->d_embed);
}

static int integer_constant(MtfAssembly *m, const char *name, double value) {
    MtfShape shape = MTF_SHAPE(m->length);
    m->p->b.attributes.value = value;
    m->p->b.has_dtype = true;
    m->p->b.dtype = MTF_I32;
    return mtf_parts_apply_shaped(m->p, MTF_OP_CONSTANT, name, &shape);
}

/* Positions counted from the model's first: numbers of int32 are added as floats. */
static int moved_positions(MtfAssembly *m) {
    m->p->b.has_dtype = true;
    m->p->b.dtype = MTF_F32;
    int from = mtf_parts_range(m->p, "place", m->length);
    int first = mtf_parts_constant(m->p, "first_position", (double)m->n->first_position);
    int sum = mtf_parts_add(m->p, "place_moved", from, first);
    m->p->b.has_dtype = true;
    m->p->b.dtype = MTF_I32;
    return mtf_parts_apply(m->p, MTF_OP_CAST, "position_moved", NULL, sum, -1);
}

/* The stack's own table, or the one that both texts share. */
static int position_table(MtfAssembly *m) {
    if (m->n->shared_positions && m->position_table >= 0)
        return m->position_table;
    int rows = mtf_assembly_dimension(m, "positions", m->n->max_positions);
    int width = m->n->widened_first ? m->d_model : m->d_embed;
    m->position_table = mtf_assembly_variable(m, "position_table", m->stack->names.positions,
                                              &MTF_SHAPE(rows, width), MTF_INIT_NORMAL,
                                              m->n->spread > 0 ? m->n->spread / 2 : 1);
    return m->position_table;
}

/* Rows of a table of learned positions. The table is as long as the model may read, and what is
 * read begins at its first position. */
static int add_positions(MtfAssembly *m, int x) {
    if (m->n->waves)
        return mtf_parts_add(m->p, "x_placed", x, mtf_assembly_waves(m));
    if (m->n->max_positions == 0)
        return x;
    int table = position_table(m);
    int width = m->n->widened_first ? m->d_model : m->d_embed;
    int position = m->places >= 0             ? m->places
                   : m->n->first_position > 0 ? moved_positions(m)
                                              : mtf_parts_range(m->p, "position", m->length);
    MtfShape result =
        m->places >= 0 ? MTF_SHAPE(m->batch, m->length, width) : MTF_SHAPE(m->length, width);
    int read = mtf_parts_apply(m->p, MTF_OP_EMBEDDING, "positions_read", &result, table, position);
    return mtf_parts_add(m->p, "x_placed", x, read);
}

/* All positions are of the first segment. */
static int add_token_types(MtfAssembly *m, int x) {
    if (m->n->token_types == 0)
        return x;
    int rows = mtf_parts_dimension(m->p, "token_types", m->n->token_types);
    int table = mtf_assembly_variable(m, "token_type_table", m->n->token_type_table,
                                      &MTF_SHAPE(rows, m->d_embed), MTF_INIT_NORMAL, m->n->spread);
    int types = integer_constant(m, "token_type", 0);
    MtfShape result = MTF_SHAPE(m->length, m->d_embed);
    int read = mtf_parts_apply(m->p, MTF_OP_EMBEDDING, "token_types_read", &result, table, types);
    return mtf_parts_add(m->p, "x_typed", x, read);
}

/* Where a model learns from what is hidden of its own text: 15 % of the tokens, drawn anew each
 * step, have an embedding of 0. Outside of training nothing is hidden. */
static int hide_some(MtfAssembly *m, int x) {
    MtfShape shape = MTF_SHAPE(m->batch, m->length);
    if (m->n->kind != MTF_ARCHITECTURE_ENCODER || m->n->classes > 0)
        return x;
    int one = mtf_parts_constant(m->p, "one", 1);
    int ones = mtf_parts_apply(m->p, MTF_OP_BROADCAST, "ones", &shape, one, -1);
    int drawn = mtf_parts_dropout(m->p, "drawn", 0.15, ones);
    int shown = mtf_parts_apply(m->p, MTF_OP_SIGN, "shown", NULL, drawn, -1);
    return mtf_parts_apply(m->p, MTF_OP_MULTIPLY, "x_shown", NULL, x, shown);
}

/* Embeddings of a width of their own in that of the layers. */
static int widen(MtfAssembly *m, int x) {
    MtfLinear linear = { .name = MTF_WIDENED,
                         .file = m->n->widening,
                         .in = MTF_SHAPE(m->d_embed),
                         .out = MTF_SHAPE(m->d_model),
                         .bias = !m->n->widened_first,
                         .spread = m->n->spread };
    return m->d_embed == m->d_model ? x : mtf_assembly_linear(m, &linear, x);
}

static int norm_embedding(MtfAssembly *m, int x) {
    return mtf_assembly_norm(m, "embedding_norm", m->stack->names.embedding_norm, m->d_embed, x);
}

static int embed(MtfAssembly *m, int table, int tokens) {
    MtfShape shape = embedded_shape(m);
    int rows = mtf_parts_apply(m->p, MTF_OP_EMBEDDING, "embed", &shape, table, tokens);
    int scaled = mtf_assembly_scale(m, "embed_scaled", m->n->embedding_scale, hide_some(m, rows));
    bool early = m->n->widened_first;
    int x = early ? widen(m, scaled) : scaled;
    x = m->stack->norm_tokens ? add_positions(m, norm_embedding(m, x))
                              : norm_embedding(m, add_token_types(m, add_positions(m, x)));
    int dropped = mtf_parts_dropout(m->p, "embed_dropped", m->n->dropout.embeddings, x);
    return early ? dropped : widen(m, dropped);
}

/* ---- Layers ---------------------------------------------------------------------------------- */

static const char *const part_prefix[] = { "attention", "ffn" };

/* A branch by the part's factor of each feature, where it has them. */
static int by_factors(MtfAssembly *m, int which, int branch) {
    const char *const files[] = { m->stack->names.attention_factors, m->stack->names.ffn_factors };
    if (files[which] == NULL)
        return branch;
    int factors = mtf_assembly_factors(m, "factors", files[which], m->d_model);
    return mtf_parts_apply(m->p, MTF_OP_MULTIPLY, "by_factors", NULL, branch, factors);
}

static int ffn_branch(MtfAssembly *m, int x) {
    int y = m->stack->channel_mix ? mtf_assembly_channel_mix(m, x) : mtf_assembly_ffn(m, x);
    return mtf_assembly_scale(m, "made_scaled", m->stack->ffn_scale, y);
}

static int attention_branch(MtfAssembly *m, int x) {
    int y = mtf_assembly_self_attention(m, x);
    return mtf_assembly_scale(m, "made_scaled", m->stack->attention_scale, y);
}

static int mixer_branch(MtfAssembly *m, int x) {
    return mtf_assembly_scale(m, "made_scaled", m->stack->mixer.scale, mtf_assembly_mixer(m, x));
}

/* What attention, or what stands in its place, or both, make of x. */
static int first_branch(MtfAssembly *m, int x) {
    if (mtf_layers_have(m->stack->ffn_layers, m->layer))
        return ffn_branch(m, x);
    if (!mtf_layers_have(m->stack->mixer.layers, m->layer))
        return attention_branch(m, x);
    if (!m->stack->mixer.beside)
        return mixer_branch(m, x);
    mtf_parts_enter(m->p, "mixer");
    int mixed = mixer_branch(m, x);
    mtf_parts_leave(m->p);
    return mtf_parts_add(m->p, "both", mixed, attention_branch(m, x));
}

/* What a part's branch is added to: x, or its norm times a number. */
static int kept(MtfAssembly *m, int which, int x, int normal) {
    const MtfStack *s = m->stack;
    bool mixes = which == 0 && mtf_layers_have(s->mixer.layers, m->layer);
    double scale = s->kept_scales[mixes ? 0 : which + 1];
    return s->add_to_normed ? mtf_assembly_scale(m, "kept", scale, normal) : x;
}

/* One part of a layer, which adds to x what it makes of `seen`: norm, branch, norm, sum, norm, each norm
 * where the model has one. */
static int part(MtfAssembly *m, int which, int x, int seen) {
    const MtfStackNames *n = &m->stack->names;
    const char *const before[] = { n->before_attention, n->before_ffn };
    const char *const on[] = { n->on_attention, n->on_ffn };
    const char *const after[] = { n->after_attention, n->after_ffn };
    mtf_parts_enter(m->p, part_prefix[which]);
    m->seen = seen;
    bool either = m->stack->mixers_lead, mixes = mtf_layers_have(m->stack->mixer.layers, m->layer);
    bool bare = which == 0 && m->layer == 0 && m->stack->first_unnormed;
    const char *first = bare || (either && !mixes) ? NULL : before[which];
    int normal = mtf_assembly_norm(m, "before", first, m->d_model, seen);
    int branch = which == 0 ? first_branch(m, normal) : ffn_branch(m, normal);
    branch = mtf_assembly_norm(m, "on", either && mixes ? NULL : on[which], m->d_model, branch);
    branch = by_factors(m, which, branch);
    branch = mtf_parts_dropout(m->p, "dropped", m->n->dropout.branches, branch);
    branch = mtf_assembly_scale(m, "scaled", m->n->branch_scale, branch);
    int sum = mtf_parts_add(m->p, "x", kept(m, which, x, normal), branch);
    int y = mtf_assembly_norm(m, "after", after[which], m->d_model, sum);
    mtf_parts_leave(m->p);
    return y;
}

/* Between the two parts of a decoder's layer: attention to what the encoder made. */
static int cross_part(MtfAssembly *m, int x, int source) {
    const MtfStackNames *n = &m->stack->names;
    if (!m->stack->cross)
        return x;
    mtf_parts_enter(m->p, "cross");
    int normal = mtf_assembly_norm(m, "before", n->before_cross, m->d_model, x);
    int branch = mtf_parts_dropout(m->p, "dropped", m->n->dropout.branches,
                                   mtf_assembly_cross_attention(m, normal, source));
    int sum = mtf_parts_add(m->p, "x", x, branch);
    int y = mtf_assembly_norm(m, "after", n->after_cross, m->d_model, sum);
    mtf_parts_leave(m->p);
    return y;
}

/* Attention, what a decoder beside an encoder has between, and the feed-forward part; or the first and the
 * last of one input (Wang and Komatsuzaki, GPT-J, 2021). */
static int build_parts(MtfAssembly *m, int x, int source) {
    if (m->stack->one_part)
        return part(m, 0, x, x);
    if (m->stack->parallel) {
        int seen = mtf_assembly_norm(m, "before", m->stack->names.before_both, m->d_model, x);
        return part(m, 1, part(m, 0, x, seen), seen);
    }
    int y = part(m, 0, x, x);
    int z = cross_part(m, y, source);
    return part(m, 1, z, z);
}

static int by_layer_factor(MtfAssembly *m, int x) {
    const char *file = m->stack->names.layer_factor;
    if (file == NULL)
        return x;
    int factor = mtf_assembly_number(m, "layer_factor", file, "1", 1, true);
    return mtf_parts_apply(m->p, MTF_OP_MULTIPLY, "x_by_factor", NULL, x, factor);
}

static int build_layer(MtfAssembly *m, const char *block, int x, int source) {
    g_autoptr(GString) files = g_string_new(m->stack->names.layer);
    g_autofree char *number = g_strdup_printf("%d", m->layer);
    g_string_replace(files, "%d", number, 1);
    m->files = files->str;
    mtf_parts_enter_layer(m->p, block, m->layer);
    if (m->stack->whole_d_kv > 0 || m->stack->whole_kv_heads > 0)
        enter_heads(m, !mtf_assembly_has_window(m));
    int y = m->stack->streams > 0
                ? mtf_assembly_streams_layer(m, x)
                : by_layer_factor(m, mtf_assembly_add_token(m, build_parts(m, x, source)));
    mtf_parts_leave_layer(m->p);
    m->files = (char *)"";
    return y;
}

/* The stack's layers on x; `source` is the encoder's result, or -1. */
static int build_stack(MtfAssembly *m, const char *block, int x, int source) {
    if (m->stack->buckets > 0)
        mtf_assembly_tell_distances(m);
    if (m->stack->distance_rows > 0)
        mtf_assembly_begin_disentangled(m);
    if (m->stack->grid_base > 0 || m->stack->names.grid_table != NULL)
        mtf_assembly_begin_grid(m);
    if (m->stack->alibi)
        m->buckets = mtf_assembly_alibi(m);
    else if (m->stack->buckets > 0 && !m->stack->buckets_by_layer)
        m->buckets = mtf_assembly_buckets(m);
    bool both_sides = !m->stack->causal && m->stack->window_rule != MTF_WINDOW_NONE;
    int64_t reach = both_sides ? m->stack->window : m->stack->chunk;
    if (reach > 0 && reach < m->positions)
        m->near = mtf_assembly_near(m);
    x = m->stack->streams > 0 ? mtf_assembly_begin_streams(m, x) : x;
    for (m->layer = 0; m->layer < (int)m->stack->layers && m->p->b.error == NULL; m->layer++)
        x = build_layer(m, block, x, source);
    x = m->stack->streams > 0 ? mtf_assembly_end_streams(m, x) : x;
    g_autofree char *norm = g_strdup_printf("%s_norm", is_pair(m->n) ? block : "final");
    return mtf_assembly_norm(m, norm, m->stack->names.final_norm, m->d_model, x);
}

/* ---- The whole ------------------------------------------------------------------------------- */

/* A stack that the network does not have has no heads. */
static bool check_stack(const MtfArchitecture *n, const MtfStack *s, GError **error) {
    if (s->kv_heads > 0 && s->heads % s->kv_heads != 0)
        return mtf_input_error(
            error, "%s: %" PRId64 " heads of queries cannot share %" PRId64 " heads of keys alike",
            n->name, s->heads, s->kv_heads);
    if (s->whole_kv_heads > 0 && s->heads % s->whole_kv_heads != 0)
        return mtf_input_error(
            error, "%s: %" PRId64 " heads of queries cannot share %" PRId64 " heads of keys alike",
            n->name, s->heads, s->whole_kv_heads);
    return true;
}

static bool check_network(const MtfArchitecture *n, GError **error) {
    bool reads = n->kind == MTF_ARCHITECTURE_ENCODER_DECODER;
    int64_t length = reads ? MAX(n->length, n->source_length) : n->length;
    if (n->max_positions > 0 && length + n->first_position > n->max_positions)
        return mtf_input_error(error,
                               "%s: a length of %" PRId64 " is more than the %" PRId64
                               " positions it has learned",
                               n->name, length, n->max_positions - n->first_position);
    return check_stack(n, &n->encoder, error) && check_stack(n, &n->decoder, error);
}

static int token_input(MtfAssembly *m, const char *name, MtfFeed feed) {
    MtfShape shape = MTF_SHAPE(m->batch, m->length);
    return mtf_parts_input(m->p, name, &shape, MTF_I32, feed);
}

static int vocabulary_table(MtfAssembly *m, const char *name) {
    return mtf_assembly_variable(m, name, m->n->embedding, &MTF_SHAPE(m->vocab, m->d_embed),
                                 MTF_INIT_NORMAL, m->n->spread > 0 ? m->n->spread : 1);
}

/* The source as the encoder reads it; its table is `table` unless it has one of its own. */
static int read_source(MtfAssembly *m, int table) {
    int vocab = m->vocab;
    int tokens = token_input(m, "source", MTF_FEED_SOURCE);
    if (m->n->source_vocab > 0) {
        m->vocab = mtf_parts_dimension(m->p, "source_vocab", m->n->source_vocab);
        table = vocabulary_table(m, "source_embedding");
        m->vocab = vocab;
    }
    return embed(m, table, tokens);
}

/* Begins the text that is predicted, which looks at itself and at the source. */
static void enter_target(MtfAssembly *m) {
    MtfMemory source = { m->source_length, m->source_memory, m->segments };
    enter_stack(m, &m->n->decoder, "length", m->n->length);
    mtf_assembly_read_segments(m, false);
    m->mask =
        mtf_assembly_mask(m, "mask", &(MtfMemory){ m->length, m->memory_length, m->segments });
    m->source_mask = mtf_assembly_mask(m, "cross_mask", &source);
}

/* Reads `source` first, then the text that it predicts with it in view. */
static int build_pair(MtfAssembly *m, int table) {
    enter_stack(m, &m->n->encoder, "source_length", m->n->source_length);
    mtf_assembly_read_segments(m, true);
    m->mask = mtf_assembly_mask(m, "source_mask",
                                &(MtfMemory){ m->length, m->memory_length, m->segments });
    int padding = mtf_assembly_padding(m);
    m->mask = padding >= 0 ? padding : m->mask;
    int read =
        m->n->kind == MTF_ARCHITECTURE_SPEECH ? mtf_assembly_speech(m) : read_source(m, table);
    int source = build_stack(m, "encoder", read, -1);
    m->source_length = m->length;
    m->source_memory = m->memory_length;
    enter_target(m);
    m->source_mask = padding >= 0 ? padding : m->source_mask;
    mtf_parts_enter(m->p, "target");
    int x = embed(m, table, token_input(m, "tokens", MTF_FEED_TOKENS));
    mtf_parts_leave(m->p);
    return build_stack(m, "decoder", x, source);
}

/* The class of what is no text. */
static void build_signal(MtfAssembly *m) {
    bool sound = m->n->kind == MTF_ARCHITECTURE_SOUND;
    enter_stack(m, &m->n->encoder, "length", m->n->length);
    int x = build_stack(m, "layer", sound ? mtf_assembly_sound(m) : mtf_assembly_image(m), -1);
    mtf_assembly_classify(m, x);
}

/* One stack that tells every place's next token, or its own where all are seen, or the text's class. */
static void build_alone(MtfAssembly *m, int table) {
    const MtfArchitecture *n = m->n;
    enter_stack(m, first_stack(n), "length", n->length);
    m->mask = mtf_assembly_padding(m);
    int tokens = mtf_assembly_fill(m, token_input(m, "tokens", MTF_FEED_TOKENS));
    m->tokens = tokens;
    m->embedded = embed(m, table, tokens);
    int x = build_stack(m, "layer", m->embedded, -1);
    mtf_assembly_pool(m, x);
    if (n->classes > 0) {
        mtf_assembly_classify(m, x);
        return;
    }
    bool itself = n->kind == MTF_ARCHITECTURE_ENCODER;
    int scores = mtf_assembly_scores(m, x, table);
    mtf_assembly_lose(m, scores, itself ? tokens : token_input(m, "targets", MTF_FEED_NEXT_TOKENS));
}

static void build_network(MtfAssembly *m) {
    const MtfArchitecture *n = m->n;
    if (n->kind == MTF_ARCHITECTURE_WINDOWS) {
        m->stack = &n->encoder;
        mtf_assembly_classify_read(m, mtf_assembly_windows(m));
        return;
    }
    if (n->kind == MTF_ARCHITECTURE_IMAGE || n->kind == MTF_ARCHITECTURE_SOUND) {
        build_signal(m);
        return;
    }
    m->vocab = mtf_parts_dimension(m->p, "vocab", n->vocab);
    int table = vocabulary_table(m, "embedding");
    if (!is_pair(n)) {
        build_alone(m, table);
        return;
    }
    int scores = mtf_assembly_scores(m, build_pair(m, table), table);
    mtf_assembly_lose(m, scores, token_input(m, "targets", MTF_FEED_NEXT_TOKENS));
}

void mtf_stack_part_experts(MtfStack *s) {
    s->experts_bare = s->experts_in_first = false;
    s->names.expert_gate_up = NULL;
    s->names.expert_gate = "mlp.experts.{}.gate_proj";
    s->names.expert_up = "mlp.experts.{}.up_proj";
    s->names.expert_down = "mlp.experts.{}.down_proj";
}

static MtfGraph *named(MtfGraph *graph, const MtfArchitecture *network) {
    if (graph == NULL)
        return NULL;
    g_free(graph->name);
    graph->name = g_strdup(network->name);
    mtf_graph_canonicalize(graph);
    return graph;
}

MtfGraph *mtf_architecture_build(const MtfArchitecture *network, GError **error) {
    if (!check_network(network, error))
        return NULL;
    if (network->kind == MTF_ARCHITECTURE_CONVOLUTIONS)
        return named(mtf_convolutions_build(network, error), network);
    MtfAssembly m = { .p = mtf_parts_new(),
                      .n = network,
                      .files = (char *)"",
                      .position_table = -1,
                      .mask = -1,
                      .source_mask = -1,
                      .token_scale = -1,
                      .routed = MTF_NOTHING_ROUTED };
    m.batch = mtf_parts_dimension(m.p, "batch", network->batch);
    m.d_model = mtf_parts_dimension(m.p, "d_model", network->d_model);
    m.d_embed = m.d_model;
    if (network->d_embed > 0)
        m.d_embed = mtf_parts_dimension(m.p, "d_embed", network->d_embed);
    build_network(&m);
    return named(mtf_parts_end(m.p, error), network);
}
