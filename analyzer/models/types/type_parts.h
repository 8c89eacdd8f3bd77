// SPDX-License-Identifier: GPL-3.0-or-later
/* What readers of single model types have in common, and their tables, one a file, a row a type:
 *
 *     llama_types  gemma_types  expert_types  plain_types  fused_types  pair_types  encoder_types
 *     rotary_encoder_types  picture_types  convolution_types  sound_types  mixer_types  hybrid_types  latent_types
 *
 * A new type is a row where its kin are, and what it changes of them. Standard values are those of
 * transformers' configuration classes (src/transformers/models/TYPE/configuration_TYPE.py). */
#ifndef MTF_TYPE_PARTS_H
#define MTF_TYPE_PARTS_H

#include "analyzer/models/architecture_config.h"

/* Each ends with name NULL. */
extern const MtfArchitectureType mtf_llama_types[], mtf_gemma_types[], mtf_expert_types[],
    mtf_plain_types[], mtf_fused_types[], mtf_pair_types[], mtf_encoder_types[],
    mtf_rotary_encoder_types[], mtf_picture_types[], mtf_convolution_types[], mtf_sound_types[],
    mtf_mixer_types[], mtf_hybrid_types[], mtf_latent_types[];

/* Standard values of a type; 0: the same as heads of queries, respectively hidden_size / heads. */
typedef struct {
    int64_t vocab, hidden, intermediate, layers, heads, kv_heads, head_dim, max_positions;
    double epsilon, rotary_base;
    bool tied;
} MtfTypeSizes;

/* Where a key is there and null, which is not the same as left out. */
bool mtf_type_is_null(const MtfConfig *config, const char *key);

/* A decoder in Llama's names, without biases, its activation silu; they may be changed afterwards. What a
 * type has of rotary positions before them is set before (mtf_config_rotary). */
void mtf_type_llama(MtfConfig *config, MtfArchitecture *network, const MtfTypeSizes *standard);

/* Granite: Llama with a factor of each branch, of embeddings, scores and logits. */
void mtf_type_granite(MtfConfig *config, MtfArchitecture *network);

/* The same with experts beside a hidden layer of all tokens, or without experts that alone. */
void mtf_type_granite_shared(MtfConfig *config, MtfArchitecture *network);

/* Keys that may be there and do not change what the type computes; the last is NULL. */
void mtf_type_ignore(MtfConfig *config, const char *const *keys);

/* A size that a file may say though others say it already; it must be theirs. */
void mtf_type_derived(MtfConfig *config, const char *key, int64_t size);

/* A causal decoder's heads: d_kv from the model's width, which must be a multiple of `key`, and the scale of
 * scores. */
void mtf_type_divide_heads(MtfConfig *config, MtfArchitecture *network, const char *key);

/* Norms of means and variances, with biases, and their epsilon. */
void mtf_type_layer_norms(MtfConfig *config, MtfArchitecture *network, const char *key);

/* "attention_bias": of all four matrices. */
void mtf_type_attention_bias(MtfConfig *config, MtfStack *stack);

/* Biases of all matrices of a layer. */
void mtf_type_all_biases(MtfStack *stack, bool are_there);

/* A hidden layer without a gate, in Llama's names; `standard` is its function where "hidden_act" says none. */
void mtf_type_without_gate(MtfConfig *config, MtfStack *stack, const char *standard);

/* Experts in Qwen's names; their number has Mixtral's key where transformers 5 wrote it. */
void mtf_type_qwen_experts(MtfConfig *config, MtfStack *stack, int64_t experts, int64_t choices);

/* Their width, and which layers have them; and a shared expert of that width, which computes every token beside
 * the chosen ones and whose result a gate per token scales. */
void mtf_type_qwen_layers(MtfConfig *config, MtfStack *stack, int64_t width);
void mtf_type_qwen_shared(MtfConfig *config, MtfStack *stack, int64_t width);

/* Two of `experts` experts a token, as Mixtral's files call them. */
void mtf_type_mixtral_experts(MtfConfig *config, MtfStack *stack, int64_t experts);

/* Sizes of DeepSeek's experts that are left out. */
typedef struct {
    int64_t experts, choices, width, shared, dense;
    bool renormalise;
} MtfExpertSizes;

/* DeepSeek's experts: the first layers have none; n shared ones are one that is n times as wide. */
void mtf_type_deepseek_experts(MtfConfig *config, MtfStack *stack, const MtfExpertSizes *standard);

/* "scoring_func", how shares are made of scores, which each type has in one way. */
void mtf_type_check_scoring(MtfConfig *config, const char *expected);

/* "n_group" and "topk_group": a token chooses some groups of experts, then experts within those. */
void mtf_type_expert_groups(MtfConfig *config, MtfStack *stack, int64_t groups, int64_t choices);

/* Which layers have experts, by a word each at a key, dense or sparse, or by the flags of older files. */
void mtf_type_sparse_layers(MtfConfig *config, MtfStack *stack, const char *key);

/* Shares of experts as DeepSeek V3 has them: sigmoids that a bias is added to where they are compared, in groups whose
 * numbers left out are these. */
void mtf_type_sigmoid_groups(MtfConfig *config, MtfStack *stack, int64_t groups, int64_t choices);
/* The noise of training that a key names: what the router reads, or what its experts do, too, is multiplied by 1 - it
 * to 1 + it. */
void mtf_type_jitter(MtfConfig *config, MtfStack *stack, const char *key, bool of_experts);

/* The factor of what experts make. */
void mtf_type_expert_scale(MtfConfig *config, MtfStack *stack, const char *key, double standard);

/* The first layers, at most 256, have no experts. */
void mtf_type_first_dense(MtfStack *stack, int64_t layers);

/* Norms of each head's queries and keys, in Qwen 3's names. */
void mtf_type_head_norms(MtfStack *stack);

/* The same, of heads as said, and norms of what each part makes instead of what it reads (OLMo 2). */
void mtf_type_norm_behind(MtfStack *stack, MtfHeadNorm heads);

/* "qk_layernorm": likewise, with biases, in Phi's names; `standard` where it is left out. */
void mtf_type_head_layer_norms(MtfConfig *config, MtfStack *stack, bool standard);

/* "sliding_window" of every layer, `standard` where it is left out; null and 0: none. */
void mtf_type_window(MtfConfig *config, MtfStack *stack, int64_t standard);

/* "sliding_window_pattern", or with a "_" before it as transformers 5 writes it, `standard` where it is left
 * out: layer n of every n has no window, where n is this number. Not where "layer_types" says it. */
void mtf_type_window_pattern(MtfConfig *config, MtfStack *stack, int64_t standard);

/* "clip_qkv": the limit of queries, keys and values; null: none. */
void mtf_type_qkv_limit(MtfConfig *config, MtfStack *stack);

/* Keys of scans that say how weights begin, or how they are computed; and "time_step_limit", two numbers that steps stay
 * within. */
void mtf_type_ignore_scan(MtfConfig *config);
void mtf_type_step_limit(MtfConfig *config, MtfMixer *mixer);

/* What is dropped while training where the file does not say it. */
void mtf_type_drop(MtfArchitecture *network, double rate);

/* "layer_types" of newer files, a word a layer, which go before the type's own rule. */
void mtf_type_layer_types(MtfConfig *config, MtfStack *stack);

/* Layers without a window do not turn. */
void mtf_type_straighten_whole(MtfStack *stack);

/* EXAONE's windows, in three layers of four or those that "layer_types" says, beside which files may give the pattern in
 * letters; where there are windows, layers without one do not turn. */
void mtf_type_exaone_windows(MtfConfig *config, MtfStack *stack);

/* Qwen's: layers from "max_window_layers" (`from`) on have the window, where it is switched on at all. */
void mtf_type_qwen_window(MtfConfig *config, MtfStack *stack, int64_t from);

#endif
