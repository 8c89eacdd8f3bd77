// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/models/architecture_config.h"

#include "layouts/base/nearest_name.h"

#include <string.h>

/* Keys that any type may have and that do not change logits: names, versions, tokens, how text is
 * generated, what is returned, dropout of parts that have none here, numbers of initial values. */
static const char *const harmless[] = { "_attn_implementation_autoset",
                                        "_commit_hash",
                                        "_name_or_path",
                                        "activation_dropout",
                                        "apply_spec_augment",
                                        "architectures",
                                        "attn_implementation",
                                        "auto_map",
                                        "aux_loss_alpha",
                                        "bad_words_ids",
                                        "begin_suppress_tokens",
                                        "bos_token_id",
                                        "cache_implementation",
                                        "chunk_size_feed_forward",
                                        "classifier_dropout",
                                        "classifier_proj_size",
                                        "decoder_layerdrop",
                                        "decoder_start_token_id",
                                        "directionality",
                                        "diversity_penalty",
                                        "do_sample",
                                        "dtype",
                                        "early_stopping",
                                        "encoder_layerdrop",
                                        "encoder_no_repeat_ngram_size",
                                        "encoder_stride",
                                        "eos_token_id",
                                        "exponential_decay_length_penalty",
                                        "finetuning_task",
                                        "forced_bos_token_id",
                                        "forced_decoder_ids",
                                        "forced_eos_token_id",
                                        "full_attn_mod",
                                        "gradient_checkpointing",
                                        "id2label",
                                        "init_std",
                                        "initializer_factor",
                                        "initializer_range",
                                        "interpolate_factor",
                                        "is_encoder_decoder",
                                        "is_llama_config",
                                        "label2id",
                                        "layer_norm_elementwise_affine",
                                        "layerdrop",
                                        "length_penalty",
                                        "mask_feature_length",
                                        "mask_feature_min_masks",
                                        "mask_feature_prob",
                                        "mask_time_length",
                                        "mask_time_min_masks",
                                        "mask_time_prob",
                                        "max_length",
                                        "median_filter_length",
                                        "median_filter_width",
                                        "min_length",
                                        "model_max_length",
                                        "dense_act_fn",
                                        "is_gated_act",
                                        "model_type",
                                        "n_ctx",
                                        "no_repeat_ngram_size",
                                        "num_beam_groups",
                                        "num_beams",
                                        "num_return_sequences",
                                        "output_attentions",
                                        "output_hidden_states",
                                        "output_past",
                                        "output_scores",
                                        "pad_token_id",
                                        "pooler_fc_size",
                                        "pooler_num_attention_heads",
                                        "pooler_num_fc_layers",
                                        "pooler_size_per_head",
                                        "pooler_type",
                                        "prefix",
                                        "pretraining_tp",
                                        "problem_type",
                                        "reorder_and_upcast_attn",
                                        "repetition_penalty",
                                        "return_dict",
                                        "return_dict_in_generate",
                                        "sep_token_id",
                                        "seq_aux",
                                        "summary_activation",
                                        "summary_first_dropout",
                                        "summary_proj_to_labels",
                                        "summary_type",
                                        "summary_use_proj",
                                        "suppress_tokens",
                                        "task_specific_params",
                                        "temperature",
                                        "tf_legacy_loss",
                                        "tokenizer_class",
                                        "top_k",
                                        "top_p",
                                        "torch_dtype",
                                        "torchscript",
                                        "transformers.js_config",
                                        "transformers_version",
                                        "typical_p",
                                        "unk_token_id",
                                        "unsloth_fixed",
                                        "unsloth_version",
                                        "use_bfloat16",
                                        "use_cache",
                                        "use_weighted_layer_sum",
                                        "vocab_file",
                                        NULL };

bool mtf_config_find(MtfConfig *config, const char *key, MtfJson *value) {
    g_hash_table_add(config->used, (gpointer)key);
    return !config->failed && mtf_json_find(config->root, key, value) && !cJSON_IsNull(value->node);
}

int64_t mtf_config_integer(MtfConfig *config, const char *key, int64_t low, int64_t standard) {
    MtfJson value;
    int64_t number = standard;
    if (mtf_config_find(config, key, &value) &&
        !mtf_json_integer(&value, low, MTF_CONFIG_MOST, &number, config->error))
        config->failed = true;
    return number;
}

int64_t mtf_config_count(MtfConfig *config, const char *key, int64_t standard) {
    int64_t count = mtf_config_integer(config, key, 0, standard);
    if (count > MTF_CONFIG_MOST_PARTS)
        mtf_config_fail(config, key, "at most %d are supported", MTF_CONFIG_MOST_PARTS);
    return config->failed ? 0 : count;
}

int64_t mtf_config_size(MtfConfig *config, const char *key, int64_t standard) {
    return mtf_config_integer(config, key, 1, standard);
}

double mtf_config_number(MtfConfig *config, const char *key, double standard) {
    MtfJson value;
    double number = standard;
    if (mtf_config_find(config, key, &value) && !mtf_json_number(&value, &number, config->error))
        config->failed = true;
    return number;
}

bool mtf_config_list(MtfConfig *config, const char *key, int n, const char *what, MtfJson *list) {
    if (!mtf_config_find(config, key, list))
        return false;
    config->failed = config->failed || !mtf_json_array(list, config->error);
    if (!config->failed && mtf_json_length(list) != n)
        mtf_config_fail(config, key, "a list of %d %s is expected", n, what);
    return !config->failed;
}

bool mtf_config_flag(MtfConfig *config, const char *key, bool standard) {
    MtfJson value;
    bool flag = standard;
    if (mtf_config_find(config, key, &value) && !mtf_json_boolean(&value, &flag, config->error))
        config->failed = true;
    return flag;
}

const char *mtf_config_word(MtfConfig *config, const char *key, const char *standard) {
    MtfJson value;
    const char *word = standard;
    if (mtf_config_find(config, key, &value) && !mtf_json_string(&value, &word, config->error))
        config->failed = true;
    return word;
}

void mtf_config_fail(MtfConfig *config, const char *key, const char *format, ...) {
    MtfJson value;
    if (config->failed)
        return;
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *sentence = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    bool there = mtf_json_find(config->root, key, &value);
    mtf_json_fail(there ? &value : config->root, config->error, "%s", sentence);
    config->failed = true;
}

const char *mtf_config_activation(MtfConfig *config, const char *key, const char *standard) {
    static const struct {
        const char *word, *operation;
    } known[] = { { "gelu_new", "gelu" },  { "gelu_pytorch_tanh", "gelu" },
                  { "gelu_fast", "gelu" }, { "gelu", "gelu_exact" },
                  { "relu", "relu" },      { "relu2", "relu2" },
                  { "silu", "silu" },      { "swish", "silu" },
                  { "tanh", "tanh" },      { "quick_gelu", "quick_gelu" },
                  { "xielu", "xielu" } };
    const char *word = mtf_config_word(config, key, standard);
    for (gsize i = 0; i < G_N_ELEMENTS(known); i++)
        if (strcmp(known[i].word, word) == 0)
            return known[i].operation;
    mtf_config_fail(config, key,
                    "the activation \"%s\" is not one of gelu, gelu_new, gelu_pytorch_tanh, "
                    "quick_gelu, relu, relu2, silu, tanh",
                    word);
    return "relu";
}

void mtf_config_leave_out(MtfConfig *config, const char *key, const char *reason) {
    if (!config->failed)
        g_ptr_array_add(config->left_out, g_strdup_printf("%s (%s)", key, reason));
}

/* ---- Weights in eight bits ------------------------------------------------------------------- */

/* Whether an object's key is missing, null or an empty object. */
static bool is_without(const MtfJson *object, const char *key) {
    MtfJson value;
    return !mtf_json_find(object, key, &value) || cJSON_IsNull(value.node) ||
           (cJSON_IsObject(value.node) && value.node->child == NULL);
}

static bool says(const MtfJson *object, const char *key, const char *word) {
    MtfJson value;
    return mtf_json_find(object, key, &value) && cJSON_IsString(value.node) &&
           strcmp(value.node->valuestring, word) == 0;
}

/* Whether all groups of compressed-tensors have integers of eight bits around 0. */
static bool is_around_zero(const MtfJson *q) {
    MtfJson groups, group, weights, bits, symmetric;
    if (!mtf_json_find(q, "config_groups", &groups) || !cJSON_IsObject(groups.node))
        return false;
    for (bool more = mtf_json_first(&groups, &group); more; more = mtf_json_next(&group))
        if (!cJSON_IsObject(group.node) || !mtf_json_find(&group, "weights", &weights) ||
            !cJSON_IsObject(weights.node) || !mtf_json_find(&weights, "num_bits", &bits) ||
            !cJSON_IsNumber(bits.node) || bits.node->valuedouble != 8 ||
            !mtf_json_find(&weights, "symmetric", &symmetric) || !cJSON_IsTrue(symmetric.node))
            return false;
    return true;
}

/* Whether matrices are numbers of eight bits beside scales of blocks, of rows or of all, which --init
 * multiplies. */
static bool is_scaled(const MtfJson *q) {
    bool packed = says(q, "quant_method", "compressed-tensors");
    return says(q, "quant_method", "fp8") || says(q, "quant_method", "fbgemm_fp8") ||
           (packed &&
            (says(q, "format", "float-quantized") ||
             (says(q, "format", "int-quantized") && is_around_zero(q))) &&
            is_without(q, "kv_cache_scheme") && is_without(q, "sparsity_config") &&
            is_without(q, "transform_config"));
}

/* Whether they are packed, as GPTQ does in four bits or eight, AWQ in four, and MXFP4 with experts. */
static bool is_packed(const MtfJson *q) {
    MtfJson bits;
    bool has = mtf_json_find(q, "bits", &bits) && cJSON_IsNumber(bits.node);
    bool four = has && bits.node->valuedouble == 4, eight = has && bits.node->valuedouble == 8;
    bool gemm =
        is_without(q, "version") || says(q, "version", "gemm") || says(q, "version", "GEMM");
    return says(q, "quant_method", "mxfp4") ||
           ((four || eight) && says(q, "quant_method", "gptq")) ||
           (four && says(q, "quant_method", "awq") && gemm);
}

static void read_quantization(MtfConfig *c) {
    MtfJson value;
    if (!mtf_config_find(c, "quantization_config", &value))
        return;
    if (is_scaled(&value))
        mtf_config_leave_out(c, "quantization_config",
                             "what is stored in eight bits is read as numbers");
    else if (is_packed(&value))
        mtf_config_leave_out(c, "quantization_config",
                             "what is packed in few bits is read as numbers");
    else
        mtf_config_fail(
            c, "quantization_config",
            "quantized weights are not supported but fp8, fbgemm_fp8, "
            "compressed-tensors' float-quantized and int-quantized (8 bits, symmetric), mxfp4, "
            "gptq of 4 and 8 bits and awq (gemm) of 4; "
            "take the model's float weights");
}

/* ---- Dropout --------------------------------------------------------------------------------- */

/* The rate under the first of some keys that is there; -1 where none is. */
static double dropout_rate(MtfConfig *config, const char *const *keys) {
    double rate = -1;
    for (int i = 0; keys[i] != NULL; i++) {
        double this_rate = mtf_config_number(config, keys[i], -1);
        rate = rate < 0 ? this_rate : rate;
        if (this_rate != -1 && !(this_rate >= 0 && this_rate < 1))
            mtf_config_fail(config, keys[i], "a share that is dropped is from 0 to below 1");
    }
    return rate;
}

/* What neither the file nor the type's reader says is not dropped. */
static void drop_nothing_unsaid(MtfDropoutRates *rates) {
    rates->shares = MAX(rates->shares, 0);
    rates->branches = MAX(rates->branches, 0);
    rates->embeddings = MAX(rates->embeddings, 0);
}

/* Rates; -1 where the file says none. Whose files have no key for embeddings drop them as they drop branches,
 * except those with "hidden_dropout" (Falcon, BLOOM), which drop none. */
static MtfDropoutRates read_dropout(MtfConfig *config) {
    static const char *const shares[] = { "attention_dropout", "attention_probs_dropout_prob",
                                          "attn_pdrop",        "attn_dropout",
                                          "dropout_rate",      NULL };
    static const char *const branches[] = { "resid_pdrop",         "resid_dropout",
                                            "residual_dropout",    "hidden_dropout",
                                            "hidden_dropout_prob", "dropout",
                                            "dropout_rate",        NULL };
    static const char *const embeddings[] = { "embd_pdrop",
                                              "embed_dropout",
                                              "embedding_dropout",
                                              "hidden_dropout_prob",
                                              "dropout",
                                              "dropout_rate",
                                              NULL };
    return (MtfDropoutRates){ dropout_rate(config, shares), dropout_rate(config, branches),
                              dropout_rate(config, embeddings) };
}

/* ---- Keys that no reader asked for ----------------------------------------------------------- */

static bool is_off(const MtfJson *value) {
    return cJSON_IsNull(value->node) || cJSON_IsFalse(value->node);
}

static bool check_key(MtfConfig *config, const MtfJson *value, const char *type) {
    const char *key = mtf_json_key(value);
    if (g_hash_table_contains(config->used, key))
        return true;
    if (is_off(value) || g_strv_contains(harmless, key)) {
        if (strcmp(key, "model_type") != 0)
            g_ptr_array_add(config->left_out, g_strdup(key));
        return true;
    }
    return mtf_json_fail(value, config->error,
                         "not known for model type %s, and it may change what the model computes; "
                         "take it out if it does not",
                         type);
}

static const MtfArchitectureType *find_type(const MtfJson *root, const char **name,
                                            GError **error) {
    MtfJson value;
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    if (!mtf_json_get(root, "model_type", &value, error) || !mtf_json_string(&value, name, error))
        return NULL;
    for (const MtfArchitectureType *const *table = mtf_architecture_types; *table != NULL; table++)
        for (const MtfArchitectureType *type = *table; type->name != NULL; type++) {
            if (strcmp(type->name, *name) == 0)
                return type;
            g_ptr_array_add(names, (gpointer)type->name);
        }
    g_autofree char *known = mtf_there_are(*name, names);
    mtf_json_fail(&value, error, "model type \"%s\" is not one that is known%s", *name, known);
    return NULL;
}

bool mtf_architecture_config_is(const MtfJson *root) {
    MtfJson value;
    return cJSON_IsObject(root->node) && mtf_json_find(root, "model_type", &value);
}

/* Files keep those of "text_config" as the model that it is, behind "language_model.". */
const MtfJson *mtf_architecture_config_part(const MtfJson *root, MtfJson *part, const char **left) {
    static const struct {
        const char *type, *part, *left;
    } parts[] = {
        { "aya_vision", "text_config", "pictures are not read" },
        { "blip-2", "text_config", "pictures are not read" },
        { "cohere2_vision", "text_config", "pictures are not read" },
        { "gemma3", "text_config", "pictures are not read" },
        { "gemma3n", "text_config", "pictures and sounds are not read" },
        { "gemma4", "text_config", "pictures and sounds are not read" },
        { "got_ocr2", "text_config", "pictures are not read" },
        { "idefics2", "text_config", "pictures are not read" },
        { "idefics3", "text_config", "pictures are not read" },
        { "instructblip", "text_config", "pictures are not read" },
        { "internvl", "text_config", "pictures are not read" },
        { "internvl_chat", "llm_config", "pictures are not read" },
        { "kimi_vl", "text_config", "pictures are not read" },
        { "lfm2_vl", "text_config", "pictures are not read" },
        { "llama4", "text_config", "pictures are not read" },
        { "llava", "text_config", "pictures are not read" },
        { "llava_next", "text_config", "pictures are not read" },
        { "llava_next_video", "text_config", "pictures are not read" },
        { "llava_onevision", "text_config", "pictures are not read" },
        { "mistral3", "text_config", "pictures are not read" },
        { "ovis2", "text_config", "pictures are not read" },
        { "perception_lm", "text_config", "pictures are not read" },
        { "qwen2_5_vl", "text_config", "pictures are not read" },
        { "qwen2_audio", "text_config", "sounds are not read" },
        { "qwen2_vl", "text_config", "pictures are not read" },
        { "qwen3_5", "text_config", "pictures are not read" },
        { "qwen3_5_moe", "text_config", "pictures are not read" },
        { "qwen3_vl", "text_config", "pictures are not read" },
        { "qwen3_vl_moe", "text_config", "pictures are not read" },
        { "smolvlm", "text_config", "pictures are not read" },
        { "video_llava", "text_config", "pictures are not read" },
        { "vipllava", "text_config", "pictures are not read" },
        { "voxtral", "text_config", "sounds are not read" },
        { "clip", "vision_config", "texts are not read" },
        { "siglip", "vision_config", "texts are not read" },
        { "siglip2", "vision_config", "texts are not read" },
    };
    MtfJson type;
    if (!mtf_json_find(root, "model_type", &type) || !cJSON_IsString(type.node))
        return root;
    for (gsize i = 0; i < G_N_ELEMENTS(parts); i++)
        if (strcmp(parts[i].type, type.node->valuestring) == 0 &&
            mtf_json_find(root, parts[i].part, part) && cJSON_IsObject(part->node)) {
            *left = parts[i].left;
            return part;
        }
    return root;
}

/* What is learned of an activation has a place in the files of some types alone. */
static void check_learned_activation(MtfConfig *c, const MtfStack *s) {
    if (g_strcmp0(s->activation, "xielu") == 0 && s->names.activation == NULL)
        mtf_config_fail(c, "hidden_act", "xielu is supported for model type apertus alone");
}

/* Where the scores of routers are asked for, transformers adds what balances experts to the loss. */
static void read_balance(MtfConfig *c, MtfStack *s) {
    bool asked = mtf_config_flag(c, "output_router_logits", false);
    double coefficient = mtf_config_number(c, "router_aux_loss_coef", 0.001);
    if (asked && s->experts > 0 && s->routing.auxiliary == 0)
        s->routing.auxiliary = MAX(0, coefficient);
}

bool mtf_architecture_config_read(const MtfJson *root, MtfArchitecture *network,
                                  GPtrArray *left_out, GError **error) {
    const char *name;
    MtfJson value, part;
    const char *left = NULL;
    const MtfJson *text = mtf_architecture_config_part(root, &part, &left);
    if (text != root)
        g_ptr_array_add(left_out, g_strdup_printf("all but %s (%s)", mtf_json_key(text), left));
    const MtfArchitectureType *type = find_type(text, &name, error);
    if (type == NULL)
        return false;
    g_autoptr(GHashTable) used = g_hash_table_new(g_str_hash, g_str_equal);
    MtfConfig config = { root, root, used, left_out, false, error };
    read_quantization(&config);
    config.root = text;
    *network = (MtfArchitecture){ .embedding_scale = 1, .logit_scale = 1 };
    network->spread = mtf_config_number(&config, "initializer_range", 0.02);
    network->dropout = read_dropout(&config);
    type->read(&config, network);
    mtf_decoder_head(&config, network);
    check_learned_activation(&config, &network->decoder);
    read_balance(&config, &network->decoder);
    drop_nothing_unsaid(&network->dropout);
    for (bool more = !config.failed && mtf_json_first(text, &value); more;
         more = mtf_json_next(&value))
        if (!check_key(&config, &value, name))
            return false;
    return !config.failed;
}
