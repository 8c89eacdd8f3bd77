// SPDX-License-Identifier: GPL-3.0-or-later
/* Decoders with norms of means and variances, GPT-2 and those after it. */
#include "analyzer/models/types/type_parts.h"

#include <math.h>
#include <string.h>

#define GPT2_NAMES                                                                                \
    .layer = "h.%d.", .qkv = "attn.c_attn", .o = "attn.c_proj", .up = "mlp.c_fc",                 \
    .down = "mlp.c_proj", .before_attention = "ln_1", .before_ffn = "ln_2", .final_norm = "ln_f", \
    .positions = "wpe"

static void refuse_gpt2_variants(MtfConfig *c) {
    if (!mtf_config_flag(c, "scale_attn_weights", true))
        mtf_config_fail(c, "scale_attn_weights",
                        "only scores divided by the root of a head's "
                        "width are supported (true)");
    if (mtf_config_flag(c, "add_cross_attention", false))
        mtf_config_fail(c, "add_cross_attention", "only false is supported");
}

/* What GPT and GPT-2 have in common. */
static void read_gpt_sizes(MtfConfig *c, MtfArchitecture *n, int64_t vocab, int64_t positions) {
    MtfStack *s = &n->decoder;
    n->kind = MTF_ARCHITECTURE_DECODER;
    n->vocab = mtf_config_size(c, "vocab_size", vocab);
    n->d_model = mtf_config_size(c, "n_embd", 768);
    n->max_positions = n->context = mtf_config_size(c, "n_positions", positions);
    n->epsilon = mtf_config_number(c, "layer_norm_epsilon", 1e-5);
    n->tied = mtf_config_flag(c, "tie_word_embeddings", true);
    s->layers = mtf_config_count(c, "n_layer", 12);
    s->heads = s->kv_heads = mtf_config_size(c, "n_head", 12);
    s->d_ff = 4 * n->d_model;
    mtf_type_divide_heads(c, n, "n_head");
    mtf_type_all_biases(s, true);
    s->names = (MtfStackNames){ GPT2_NAMES };
    n->in_first = true;
    n->embedding = "wte";
    n->head = "lm_head";
    mtf_type_drop(n, 0.1);
}

static void read_gpt2(MtfConfig *c, MtfArchitecture *n) {
    MtfStack *s = &n->decoder;
    read_gpt_sizes(c, n, 50257, 1024);
    s->d_ff = mtf_config_size(c, "n_inner", s->d_ff);
    s->activation = mtf_config_activation(c, "activation_function", "gelu_new");
    s->scale_by_layer = mtf_config_flag(c, "scale_attn_by_inverse_layer_idx", false);
    refuse_gpt2_variants(c);
}

/* GPT, the first: norms behind both parts and none at the end. */
static void read_openai_gpt(MtfConfig *c, MtfArchitecture *n) {
    MtfStackNames *names = &n->decoder.names;
    read_gpt_sizes(c, n, 40478, 512);
    const char *word = mtf_config_word(c, "afn", "gelu");
    n->decoder.activation = mtf_config_activation(c, "afn", "gelu_new");
    if (strcmp(word, "gelu") == 0)
        n->decoder.activation = "gelu"; /* by tanh, as the type's own table has it */
    names->after_attention = names->before_attention;
    names->after_ffn = names->before_ffn;
    names->before_attention = names->before_ffn = names->final_norm = NULL;
    names->positions = "positions_embed";
    n->embedding = "tokens_embed";
}

static void read_stablelm(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = { 50304, 2560, 6912, 32, 32, 32, 0, 4096, 0, 1e4, false };
    MtfStack *s = &n->decoder;
    s->rotary_share = 0.25;
    mtf_type_llama(c, n, &standard);
    mtf_type_layer_norms(c, n, "layer_norm_eps");
    s->q_bias = s->k_bias = s->v_bias = mtf_config_flag(c, "use_qkv_bias", false);
    if (mtf_config_flag(c, "use_parallel_residual", false)) {
        s->parallel = true;
        s->names.before_both = s->names.before_attention;
        s->names.before_attention = s->names.before_ffn = NULL;
    }
    if (mtf_config_flag(c, "qk_layernorm", false)) {
        s->head_norm = MTF_HEAD_NORM_OWN;
        s->names.q_norm = "self_attn.q_layernorm.norms.{}";
        s->names.k_norm = "self_attn.k_layernorm.norms.{}";
    }
}

static void read_starcoder2(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = { 49152, 3072, 12288, 30, 24, 2, 0, 4096, 0, 1e4, true };
    MtfStack *s = &n->decoder;
    mtf_type_llama(c, n, &standard);
    mtf_type_layer_norms(c, n, "norm_epsilon");
    mtf_type_window(c, s, 0);
    s->activation = mtf_config_activation(c, "hidden_act", "gelu_pytorch_tanh");
    mtf_type_all_biases(s, mtf_config_flag(c, "use_bias", true));
    mtf_type_ignore(c, (const char *const[]){ "activation_function", "attention_softmax_in_fp32",
                                              "layer_norm_epsilon", "mlp_type", "norm_type",
                                              "scale_attention_softmax_in_fp32",
                                              "scale_attn_weights", NULL });
    s->gated = false;
    s->names.gate = NULL;
    s->names.up = "mlp.c_fc";
    s->names.down = "mlp.c_proj";
}

/* Nemotron and Minitron: scales of norms are stored less 1, and half of a head's features turn. */
static void read_nemotron(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = { 256000, 6144, 24576, 32, 48, 0, 0, 4096, 0, 1e4, false };
    MtfStack *s = &n->decoder;
    s->rotary_share = 0.5;
    mtf_type_llama(c, n, &standard);
    mtf_type_layer_norms(c, n, "norm_eps");
    mtf_type_attention_bias(c, s);
    n->norm_plus_one = true;
    s->ffn_bias = mtf_config_flag(c, "mlp_bias", false);
    mtf_type_without_gate(c, s, "relu2");
}

/* Phi 1, 1.5 and 2: both parts look at one norm of their input, everything has a bias. */
static void read_phi(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = { 51200, 2048, 8192, 24, 32, 0, 0, 2048, 0, 1e4, false };
    MtfStack *s = &n->decoder;
    s->rotary_share = 0.5;
    mtf_type_llama(c, n, &standard);
    mtf_type_layer_norms(c, n, "layer_norm_eps");
    s->activation = mtf_config_activation(c, "hidden_act", "gelu_new");
    s->gated = false;
    s->parallel = n->head_bias = true;
    mtf_type_all_biases(s, true);
    s->names.o = "self_attn.dense";
    s->names.gate = s->names.before_attention = s->names.before_ffn = NULL;
    s->names.up = "mlp.fc1";
    s->names.down = "mlp.fc2";
    s->names.before_both = "input_layernorm";
    s->names.final_norm = "model.final_layernorm";
    mtf_type_head_layer_norms(c, s, false);
}

/* ---- Learned positions ----------------------------------------------------------------------- */

#define OPT_NAMES                                                                          \
    .layer = "model.decoder.layers.%d.", .q = "self_attn.q_proj", .k = "self_attn.k_proj", \
    .v = "self_attn.v_proj", .o = "self_attn.out_proj", .up = "fc1", .down = "fc2",        \
    .before_attention = "self_attn_layer_norm", .before_ffn = "final_layer_norm",          \
    .final_norm = "model.decoder.final_layer_norm", .positions = "model.decoder.embed_positions"

/* OPT-350M alone has norms behind both parts, none at the end, and narrow embeddings. */
static void read_opt_variants(MtfConfig *c, MtfArchitecture *n) {
    MtfStackNames *names = &n->decoder.names;
    bool behind = !mtf_config_flag(c, "do_layer_norm_before", true);
    int64_t width = mtf_config_size(c, "word_embed_proj_dim", n->d_model);
    if (behind) {
        names->after_attention = names->before_attention;
        names->after_ffn = names->before_ffn;
        names->before_attention = names->before_ffn = NULL;
    }
    if (mtf_config_flag(c, "_remove_final_layer_norm", false) || behind)
        names->final_norm = NULL;
    if (!mtf_config_flag(c, "layer_norm_elementwise_affine", true))
        mtf_config_fail(c, "layer_norm_elementwise_affine", "only true is supported");
    n->d_embed = width != n->d_model ? width : 0;
    n->widened_first = n->d_embed > 0;
    n->widening = "model.decoder.project_in";
    n->narrowing = "model.decoder.project_out";
    if (!n->tied && n->d_embed > 0)
        mtf_config_fail(c, "word_embed_proj_dim",
                        "hidden_size is expected where the head is not tied");
}

/* OPT: its table of positions begins with two rows that no token has; embeddings are not dropped. */
static void read_opt(MtfConfig *c, MtfArchitecture *n) {
    MtfStack *s = &n->decoder;
    n->kind = MTF_ARCHITECTURE_DECODER;
    n->vocab = mtf_config_size(c, "vocab_size", 50272);
    n->d_model = mtf_config_size(c, "hidden_size", 768);
    n->context = mtf_config_size(c, "max_position_embeddings", 2048);
    n->first_position = 2;
    n->max_positions = n->context + n->first_position;
    n->epsilon = 1e-5;
    n->tied = mtf_config_flag(c, "tie_word_embeddings", true);
    s->layers = mtf_config_count(c, "num_hidden_layers", 12);
    s->heads = s->kv_heads = mtf_config_size(c, "num_attention_heads", 12);
    s->d_ff = mtf_config_size(c, "ffn_dim", 3072);
    s->activation = mtf_config_activation(c, "activation_function", "relu");
    mtf_type_divide_heads(c, n, "num_attention_heads");
    mtf_type_all_biases(s, mtf_config_flag(c, "enable_bias", true));
    s->names = (MtfStackNames){ OPT_NAMES };
    n->embedding = "model.decoder.embed_tokens";
    n->head = "lm_head";
    n->dropout.shares = MAX(n->dropout.shares, 0);
    n->dropout.embeddings = 0;
    mtf_type_drop(n, 0.1);
    read_opt_variants(c, n);
}

/* XGLM: positions are waves, counted from 2; embeddings are multiplied by the root of their width. */
static void read_xglm(MtfConfig *c, MtfArchitecture *n) {
    MtfStack *s = &n->decoder;
    n->kind = MTF_ARCHITECTURE_DECODER;
    n->vocab = mtf_config_size(c, "vocab_size", 256008);
    n->d_model = mtf_config_size(c, "d_model", 1024);
    n->context = mtf_config_size(c, "max_position_embeddings", 2048);
    n->first_position = 2;
    n->waves = n->waves_to_end = true;
    n->epsilon = 1e-5;
    n->tied = mtf_config_flag(c, "tie_word_embeddings", true);
    s->layers = mtf_config_count(c, "num_layers", 24);
    s->heads = s->kv_heads = mtf_config_size(c, "attention_heads", 16);
    s->d_ff = mtf_config_size(c, "ffn_dim", 4096);
    s->activation = mtf_config_activation(c, "activation_function", "gelu");
    mtf_type_divide_heads(c, n, "attention_heads");
    mtf_type_all_biases(s, true);
    s->names = (MtfStackNames){ OPT_NAMES };
    s->names.layer = "model.layers.%d.";
    s->names.final_norm = "model.layer_norm";
    n->embedding = "model.embed_tokens";
    n->head = "lm_head";
    mtf_type_drop(n, 0.1);
    if (n->d_model % 2 != 0 || n->d_model < 4)
        mtf_config_fail(c, "d_model", "an even number from 4 on is expected");
    if (mtf_config_flag(c, "scale_embedding", true))
        n->embedding_scale = sqrt((double)n->d_model);
    if (mtf_config_flag(c, "add_cross_attention", false))
        mtf_config_fail(c, "add_cross_attention", "only false is supported");
}

/* BioGPT: OPT's layers, and embeddings times the root of their width. */
static void read_biogpt(MtfConfig *c, MtfArchitecture *n) {
    MtfStack *s = &n->decoder;
    n->kind = MTF_ARCHITECTURE_DECODER;
    n->vocab = mtf_config_size(c, "vocab_size", 42384);
    n->d_model = mtf_config_size(c, "hidden_size", 1024);
    n->context = mtf_config_size(c, "max_position_embeddings", 1024);
    n->first_position = 2;
    n->max_positions = n->context + n->first_position;
    n->epsilon = 1e-5; /* of all norms, whatever "layer_norm_eps" says */
    n->tied = mtf_config_flag(c, "tie_word_embeddings", true);
    s->layers = mtf_config_count(c, "num_hidden_layers", 24);
    s->heads = s->kv_heads = mtf_config_size(c, "num_attention_heads", 16);
    s->d_ff = mtf_config_size(c, "intermediate_size", 4096);
    s->activation = mtf_config_activation(c, "hidden_act", "gelu");
    mtf_type_divide_heads(c, n, "num_attention_heads");
    mtf_type_all_biases(s, true);
    s->names = (MtfStackNames){ OPT_NAMES };
    s->names.layer = "biogpt.layers.%d.";
    s->names.final_norm = "biogpt.layer_norm";
    s->names.positions = "biogpt.embed_positions";
    n->embedding = "biogpt.embed_tokens";
    n->head = "output_projection";
    mtf_type_drop(n, 0.1);
    mtf_type_ignore(c, (const char *const[]){ "layer_norm_eps", NULL });
    if (mtf_config_flag(c, "scale_embedding", true))
        n->embedding_scale = sqrt((double)n->d_model);
}

/* Kinds of layers, [[["global", "local"], 12]]: each list as often as the number behind it says. */
static void read_neo_kinds(MtfConfig *c, const MtfJson *kinds, int64_t times, int64_t layers,
                           int64_t *layer, MtfLayerSet local) {
    MtfJson kind;
    for (int64_t i = 0; i < times && *layer < layers && !c->failed; i++)
        for (bool more = mtf_json_first(kinds, &kind); more && !c->failed && *layer < layers;
             more = mtf_json_next(&kind), ++*layer) {
            const char *word = "";
            c->failed = !mtf_json_string(&kind, &word, c->error);
            if (strcmp(word, "local") == 0)
                mtf_layers_add(local, *layer);
            else if (!c->failed && strcmp(word, "global") != 0)
                c->failed = !mtf_json_fail(&kind, c->error, "\"global\" or \"local\" is expected");
        }
}

static void read_neo_layers(MtfConfig *c, MtfStack *s) {
    MtfJson list, pair, kinds, times;
    int64_t layer = 0, count = 0;
    if (!mtf_config_find(c, "attention_types", &list)) {
        for (; layer < s->layers; layer++)
            if (layer % 2 == 1)
                mtf_layers_add(s->window_layers, layer);
        return;
    }
    c->failed = !mtf_json_array(&list, c->error);
    for (bool more = !c->failed && mtf_json_first(&list, &pair); more && !c->failed;
         more = mtf_json_next(&pair)) {
        c->failed = !mtf_json_array(&pair, c->error);
        if (!c->failed && (mtf_json_length(&pair) != 2 || !mtf_json_first(&pair, &kinds)))
            c->failed =
                !mtf_json_fail(&pair, c->error, "a list of kinds and a number are expected");
        times = kinds;
        if (!c->failed && mtf_json_array(&kinds, c->error) && mtf_json_next(&times) &&
            mtf_json_integer(&times, 1, MTF_CONFIG_MOST_PARTS, &count, c->error))
            read_neo_kinds(c, &kinds, count, s->layers, &layer, s->window_layers);
        else
            c->failed = true;
    }
    if (!c->failed && layer != s->layers)
        mtf_config_fail(c, "attention_types", "kinds of %d layers are expected", (int)s->layers);
}

#define GPT_NEO_NAMES                                                                         \
    .layer = "transformer.h.%d.", .q = "attn.attention.q_proj", .k = "attn.attention.k_proj", \
    .v = "attn.attention.v_proj", .o = "attn.attention.out_proj", .up = "mlp.c_fc",           \
    .down = "mlp.c_proj", .before_attention = "ln_1", .before_ffn = "ln_2",                   \
    .final_norm = "transformer.ln_f", .positions = "transformer.wpe"

/* GPT-Neo: scores that nothing divides, and a window in every other layer. */
static void read_gpt_neo(MtfConfig *c, MtfArchitecture *n) {
    MtfStack *s = &n->decoder;
    MtfJson listed;
    n->kind = MTF_ARCHITECTURE_DECODER;
    n->vocab = mtf_config_size(c, "vocab_size", 50257);
    n->d_model = mtf_config_size(c, "hidden_size", 2048);
    n->max_positions = n->context = mtf_config_size(c, "max_position_embeddings", 2048);
    n->epsilon = mtf_config_number(c, "layer_norm_epsilon", 1e-5);
    n->tied = mtf_config_flag(c, "tie_word_embeddings", true);
    s->layers = mtf_config_count(c, "num_layers", 24);
    s->heads = s->kv_heads = mtf_config_size(c, "num_heads", 16);
    s->d_ff = mtf_config_size(c, "intermediate_size", 4 * n->d_model);
    s->activation = mtf_config_activation(c, "activation_function", "gelu_new");
    mtf_type_divide_heads(c, n, "num_heads");
    s->scale = 1;
    s->o_bias = s->ffn_bias = true;
    s->window = mtf_config_size(c, "window_size", 256);
    s->window_rule = MTF_WINDOW_LISTED;
    read_neo_layers(c, s);
    if (mtf_config_find(c, "attention_layers", &listed))
        mtf_config_leave_out(c, "attention_layers", "attention_types says it");
    s->names = (MtfStackNames){ GPT_NEO_NAMES };
    n->embedding = "transformer.wte";
    n->head = "lm_head";
}

#define GPTJ_NAMES                                                                            \
    .layer = "transformer.h.%d.", .q = "attn.q_proj", .k = "attn.k_proj", .v = "attn.v_proj", \
    .o = "attn.out_proj", .up = "mlp.fc_in", .down = "mlp.fc_out", .before_both = "ln_1",     \
    .final_norm = "transformer.ln_f"

/* GPT-J: both parts look at one norm, and pairs of features that turn lie side by side. */
static void read_gptj(MtfConfig *c, MtfArchitecture *n) {
    MtfStack *s = &n->decoder;
    n->kind = MTF_ARCHITECTURE_DECODER;
    n->vocab = mtf_config_size(c, "vocab_size", 50400);
    n->d_model = mtf_config_size(c, "n_embd", 4096);
    n->context = mtf_config_size(c, "n_positions", 2048);
    n->epsilon = mtf_config_number(c, "layer_norm_epsilon", 1e-5);
    n->tied = mtf_config_flag(c, "tie_word_embeddings", false);
    n->head_bias = true;
    s->layers = mtf_config_count(c, "n_layer", 28);
    s->heads = s->kv_heads = mtf_config_size(c, "n_head", 16);
    s->d_ff = mtf_config_size(c, "n_inner", 4 * n->d_model);
    s->activation = mtf_config_activation(c, "activation_function", "gelu_new");
    mtf_type_divide_heads(c, n, "n_head");
    int64_t turned = mtf_config_integer(c, "rotary_dim", 2, MIN(64, s->d_kv));
    s->rotary_share = (double)turned / (double)s->d_kv;
    s->rotary_adjacent = s->parallel = s->ffn_bias = true;
    mtf_config_rotary(c, n, 1e4);
    s->names = (MtfStackNames){ GPTJ_NAMES };
    n->embedding = "transformer.wte";
    n->head = "lm_head";
    mtf_type_ignore(c, (const char *const[]){ "rotary", "scale_attn_weights", NULL });
}

/* CodeGen: GPT-J whose matrix of queries, values and keys was made on four processors, a part of each after
 * the other. */
static void read_codegen(MtfConfig *c, MtfArchitecture *n) {
    MtfStack *s = &n->decoder;
    read_gptj(c, n);
    s->names.q = s->names.k = s->names.v = NULL;
    s->names.qkv = "attn.qkv_proj";
    s->qkv_parts = 4;
    s->values_before_keys = true;
    if (s->heads % s->qkv_parts != 0)
        mtf_config_fail(c, "n_head", "a multiple of 4 is expected");
}

const MtfArchitectureType mtf_plain_types[] = {
    { "gpt2", read_gpt2 },
    { "openai-gpt", read_openai_gpt },
    { "stablelm", read_stablelm },
    { "starcoder2", read_starcoder2 },
    { "nemotron", read_nemotron },
    { "phi", read_phi },
    { "opt", read_opt },
    { "xglm", read_xglm },
    { "biogpt", read_biogpt },
    { "gpt_neo", read_gpt_neo },
    { "gptj", read_gptj },
    { "codegen", read_codegen },
    { NULL, NULL },
};
