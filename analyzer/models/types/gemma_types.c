// SPDX-License-Identifier: GPL-3.0-or-later
/* Gemma: norms whose scales are 1 + w, embeddings times the root of their width; later caps, and norms around
 * both branches. */
#include "analyzer/models/types/type_parts.h"

#include <math.h>
#include <string.h>

/* Gemma: the norm's scale is 1 + w, embeddings are multiplied by the root of their width. */
static void make_gemma(MtfConfig *c, MtfArchitecture *n) {
    n->norm_plus_one = true;
    n->embedding_scale = sqrt((double)n->d_model);
    mtf_type_attention_bias(c, &n->decoder);
}

static void read_gemma(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = { 256000, 3072, 24576, 28,  16,  16,
                                           256,    8192, 1e-6,  1e4, true };
    MtfJson value;
    mtf_type_llama(c, n, &standard);
    make_gemma(c, n);
    n->decoder.activation = mtf_config_activation(c, "hidden_activation", "gelu_pytorch_tanh");
    if (!mtf_config_find(c, "hidden_act", &value))
        return;
    /* The first files say "gelu" and mean its tanh form, as the class has it since. */
    bool first = strcmp(mtf_config_word(c, "hidden_act", ""), "gelu") == 0;
    if (first || mtf_config_find(c, "hidden_activation", &value))
        mtf_config_leave_out(c, "hidden_act", "this type's function is hidden_activation");
    else
        n->decoder.activation = mtf_config_activation(c, "hidden_act", "gelu_pytorch_tanh");
}

/* 0, which is null in the file: no cap. */
static double read_cap(MtfConfig *c, const char *key, double standard) {
    return mtf_config_number(c, key, mtf_type_is_null(c, key) ? 0 : standard);
}

/* Norms around both branches, and caps: what Gemma 2 added. */
static void make_gemma2(MtfConfig *c, MtfArchitecture *n, double cap, double logit_cap) {
    MtfStack *s = &n->decoder;
    MtfJson value;
    make_gemma(c, n);
    s->activation = mtf_config_activation(c, "hidden_activation", "gelu_pytorch_tanh");
    if (mtf_config_find(c, "hidden_act", &value))
        mtf_config_leave_out(c, "hidden_act", "this type's function is hidden_activation");
    s->scale = 1 / sqrt(mtf_config_number(c, "query_pre_attn_scalar", 256));
    s->softcap = read_cap(c, "attn_logit_softcapping", cap);
    n->logit_softcap = read_cap(c, "final_logit_softcapping", logit_cap);
    s->names.on_attention = "post_attention_layernorm";
    s->names.before_ffn = "pre_feedforward_layernorm";
    s->names.on_ffn = "post_feedforward_layernorm";
}

static void read_gemma2(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = {
        256000, 2304, 9216, 26, 8, 4, 256, 8192, 1e-6, 1e4, true
    };
    MtfStack *s = &n->decoder;
    mtf_type_llama(c, n, &standard);
    make_gemma2(c, n, 50, 30);
    mtf_type_window(c, s, 4096);
    s->window_rule = s->window > 0 ? MTF_WINDOW_EVEN : MTF_WINDOW_NONE;
    mtf_type_layer_types(c, s);
}

/* VaultGemma: Gemma 2 without the norms behind its branches. */
static void read_vaultgemma(MtfConfig *c, MtfArchitecture *n) {
    read_gemma2(c, n);
    n->decoder.names.on_attention = n->decoder.names.on_ffn = NULL;
}

/* The text part of Gemma 3: norms of queries and keys for caps; every sixth layer sees all, and the others
 * turn by a base of their own. */
static void read_gemma3_text(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = { 262208, 2304,   9216, 26,  8,   4,
                                           256,    131072, 1e-6, 1e6, true };
    MtfStack *s = &n->decoder;
    s->window_rotary_base = mtf_config_number(c, "rope_local_base_freq", 1e4);
    mtf_type_llama(c, n, &standard);
    make_gemma2(c, n, 0, 0);
    mtf_type_head_norms(s);
    mtf_type_window(c, s, 4096);
    mtf_type_window_pattern(c, s, 6);
    mtf_type_layer_types(c, s);
    if (!(s->window_rotary_base > 0))
        mtf_config_fail(c, "rope_local_base_freq", "a base above 0 is expected");
}

const MtfArchitectureType mtf_gemma_types[] = {
    { "gemma", read_gemma },
    { "gemma2", read_gemma2 },
    { "vaultgemma", read_vaultgemma },
    { "gemma3_text", read_gemma3_text },
    { NULL, NULL },
};
