// SPDX-License-Identifier: GPL-3.0-or-later
/* Families of published models: presets are the config.json files that people publish, shortened to
 * what differs from their type's standard values (types/), so that a preset and an
 * imported folder are the same graph. Sizes: the papers of each family, and the model cards. */
#include "analyzer/models/model_family.h"

#define ROUTING "routing capacity-factor auxiliary z-loss jitter"
#define OPTIONS "layers batch length vocab d-ff"
#define OF_MIXTRAL "layers batch length vocab d-ff experts choices " ROUTING
#define OF_DEEPSEEK "layers batch length vocab d-ff " ROUTING
#define OF_SWITCH "layers batch length vocab d-ff experts " ROUTING
#define OF_PICTURES "layers batch image classes d-ff"

/* AdamW with a cosine from its peak down to a tenth of it. */
#define LARGE                                                                                 \
    .options = "batch=32 optimizer=adamw schedule=cosine rate=3e-4 warmup=2000 total=200000 " \
               "final=0.1 clip-norm=1"
/* A byte-level model that learns something within seconds. */
#define TINY(peak) \
    .options = "batch=8 length=32 optimizer=adamw schedule=linear_warmup warmup=10 rate=" peak

#define PRESET(text, about, json) \
    { .name = text, .summary = about, .config = "{\"model_type\":" json "}", LARGE }
#define TINY_PRESET(json) TINY_PRESET_AT(json, "3e-3")
#define TINY_PRESET_AT(json, peak)                                           \
    {                                                                        \
        .name = "tiny", .summary = "byte-level, trains in seconds",          \
        .config = "{\"model_type\":" json ",\"vocab_size\":256}", TINY(peak) \
    }
#define LLAMA(h, f, l, a, kv) LLAMA_LIKE("llama", h, f, l, a, kv)
#define LLAMA_LIKE(type, h, f, l, a, kv)                                                         \
    "\"" type "\",\"hidden_size\":" #h ",\"intermediate_size\":" #f ",\"num_hidden_layers\":" #l \
    ",\"num_attention_heads\":" #a ",\"num_key_value_heads\":" #kv
#define LLAMA2 ",\"max_position_embeddings\":4096,\"rms_norm_eps\":1e-5"
#define LLAMA3                                                                       \
    ",\"vocab_size\":128256,\"max_position_embeddings\":8192,\"rms_norm_eps\":1e-5," \
    "\"rope_theta\":500000.0"
#define LLAMA31(factor)                                                                           \
    ",\"vocab_size\":128256,\"max_position_embeddings\":131072,\"rms_norm_eps\":1e-5,"            \
    "\"rope_theta\":500000.0,\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":" #factor ".0" \
    ",\"low_freq_factor\":1.0,\"high_freq_factor\":4.0,"                                          \
    "\"original_max_position_embeddings\":8192}"

#define SMOLLM2                                                                     \
    ",\"vocab_size\":49152,\"max_position_embeddings\":8192,\"rms_norm_eps\":1e-5," \
    "\"tie_word_embeddings\":true,\"rope_theta\":100000.0"

static const MtfModelPreset llama_presets[] = {
    TINY_PRESET(LLAMA(64, 160, 2, 4, 2)),
    PRESET("llama-7b", "6,738,415,616 parameters", LLAMA(4096, 11008, 32, 32, 32)),
    PRESET("llama-13b", "13 billion", LLAMA(5120, 13824, 40, 40, 40)),
    PRESET("llama-33b", "33 billion", LLAMA(6656, 17920, 60, 52, 52)),
    PRESET("llama-65b", "65 billion", LLAMA(8192, 22016, 80, 64, 64)),
    PRESET("llama2-7b", "7 billion, texts of 4096", LLAMA(4096, 11008, 32, 32, 32) LLAMA2),
    PRESET("llama2-13b", "13 billion", LLAMA(5120, 13824, 40, 40, 40) LLAMA2),
    PRESET("llama2-70b", "69 billion, shared keys", LLAMA(8192, 28672, 80, 64, 8) LLAMA2),
    PRESET("llama3-8b", "8,030,261,248 parameters", LLAMA(4096, 14336, 32, 32, 8) LLAMA3),
    PRESET("llama3-70b", "70,553,706,496 parameters", LLAMA(8192, 28672, 80, 64, 8) LLAMA3),
    PRESET("llama3.1-8b", "texts of 131072", LLAMA(4096, 14336, 32, 32, 8) LLAMA31(8)),
    PRESET("llama3.1-70b", "texts of 131072", LLAMA(8192, 28672, 80, 64, 8) LLAMA31(8)),
    PRESET("llama3.3-70b", "70,553,706,496 parameters, texts of 131072",
           LLAMA(8192, 28672, 80, 64, 8) LLAMA31(8)),
    PRESET("llama3.1-405b", "405,853,388,800 parameters",
           LLAMA(16384, 53248, 126, 128, 8) LLAMA31(8)),
    PRESET("llama3.2-1b", "1.2 billion, tied",
           LLAMA(2048, 8192, 16, 32, 8)
               LLAMA31(32) ",\"head_dim\":64,\"tie_word_embeddings\":true"),
    PRESET("llama3.2-3b", "3.2 billion, tied",
           LLAMA(3072, 8192, 28, 24, 8)
               LLAMA31(32) ",\"head_dim\":128,\"tie_word_embeddings\":true"),
    PRESET("tinyllama-1.1b", "1,100,048,384 parameters", LLAMA(2048, 5632, 22, 32, 4)),
    PRESET("codellama-34b", "33,743,970,304 parameters",
           LLAMA(8192, 22016, 48, 64, 8) ",\"max_position_embeddings\":16384,"
                                         "\"rms_norm_eps\":1e-5,\"rope_theta\":1000000.0"),
    PRESET("smollm2-135m", "134,515,008 parameters", LLAMA(576, 1536, 30, 9, 3) SMOLLM2),
    PRESET("smollm2-360m", "361,821,120 parameters", LLAMA(960, 2560, 32, 15, 5) SMOLLM2),
    PRESET("smollm2-1.7b", "1,711,376,384 parameters", LLAMA(2048, 8192, 24, 32, 32) SMOLLM2),
    MTF_NO_PRESET,
};

#define QWEN(type, h, f, l, a, kv)                                                               \
    "\"" type "\",\"hidden_size\":" #h ",\"intermediate_size\":" #f ",\"num_hidden_layers\":" #l \
    ",\"num_attention_heads\":" #a ",\"num_key_value_heads\":" #kv
#define TIED ",\"tie_word_embeddings\":true"
#define LARGE_VOCABULARY ",\"vocab_size\":152064"

static const MtfModelPreset qwen_presets[] = {
    TINY_PRESET(QWEN("qwen2", 64, 160, 2, 4, 2)),
    PRESET("qwen2.5-0.5b", "494,032,768 parameters", QWEN("qwen2", 896, 4864, 24, 14, 2) TIED),
    PRESET("qwen2.5-1.5b", "1.5 billion, tied", QWEN("qwen2", 1536, 8960, 28, 12, 2) TIED),
    PRESET("qwen2.5-3b", "3.1 billion, tied", QWEN("qwen2", 2048, 11008, 36, 16, 2) TIED),
    PRESET("qwen2-0.5b", "494,032,768 parameters", QWEN("qwen2", 896, 4864, 24, 14, 2) TIED),
    PRESET("qwen2-1.5b", "1.5 billion, tied", QWEN("qwen2", 1536, 8960, 28, 12, 2) TIED),
    PRESET("qwen2-7b", "7,615,616,512 parameters",
           QWEN("qwen2", 3584, 18944, 28, 28, 4) LARGE_VOCABULARY),
    PRESET("qwen2.5-7b", "7,615,616,512 parameters",
           QWEN("qwen2", 3584, 18944, 28, 28, 4) LARGE_VOCABULARY),
    PRESET("qwen2.5-14b", "14.8 billion", QWEN("qwen2", 5120, 13824, 48, 40, 8) LARGE_VOCABULARY),
    PRESET("qwen2.5-32b", "32.8 billion", QWEN("qwen2", 5120, 27648, 64, 40, 8) LARGE_VOCABULARY),
    PRESET("qwen2-72b", "72.7 billion", QWEN("qwen2", 8192, 29568, 80, 64, 8) LARGE_VOCABULARY),
    PRESET("qwen2.5-72b", "72.7 billion", QWEN("qwen2", 8192, 29568, 80, 64, 8) LARGE_VOCABULARY),
    PRESET("qwen3-0.6b", "596,049,920 parameters", QWEN("qwen3", 1024, 3072, 28, 16, 8) TIED),
    PRESET("qwen3-1.7b", "1,720,574,976 parameters", QWEN("qwen3", 2048, 6144, 28, 16, 8) TIED),
    PRESET("qwen3-4b", "4,022,468,096 parameters", QWEN("qwen3", 2560, 9728, 36, 32, 8) TIED),
    PRESET("qwen3-8b", "8.2 billion", QWEN("qwen3", 4096, 12288, 36, 32, 8)),
    PRESET("qwen3-14b", "14,768,307,200 parameters", QWEN("qwen3", 5120, 17408, 40, 40, 8)),
    PRESET("qwen3-32b", "32.8 billion", QWEN("qwen3", 5120, 25600, 64, 64, 8)),
    PRESET("qwen3-30b-a3b", "128 experts, 8 a token",
           "\"qwen3_moe\",\"num_hidden_layers\":48,\"head_dim\":128,\"norm_topk_prob\":true"),
    PRESET("qwen3-235b-a22b", "235,093,634,560 parameters, 128 experts, 8 a token",
           QWEN("qwen3_moe", 4096, 12288, 94, 64, 4) ",\"moe_intermediate_size\":1536,"
                                                     "\"head_dim\":128,\"norm_topk_prob\":true"),
    PRESET("qwen3-coder-480b-a35b", "480,154,875,392 parameters, 160 experts, 8 a token",
           QWEN("qwen3_moe", 6144, 8192, 62, 96, 8) ",\"moe_intermediate_size\":2560,"
                                                    "\"num_experts\":160,\"head_dim\":128,"
                                                    "\"norm_topk_prob\":true"),
    PRESET("qwen3-next-80b-a3b",
           "79,674,391,296 parameters, 512 experts, 10 a token, linear attention in 3 of 4 layers",
           "\"qwen3_next\",\"rope_theta\":10000000.0,\"intermediate_size\":5120"),
    PRESET("qwen1.5-0.5b", "463,987,712 parameters", QWEN("qwen2", 1024, 2816, 24, 16, 16) TIED),
    PRESET("qwen1.5-1.8b", "1,836,828,672 parameters", QWEN("qwen2", 2048, 5504, 24, 16, 16)),
    PRESET("qwen1.5-4b", "3,950,369,280 parameters", QWEN("qwen2", 2560, 6912, 40, 20, 20)),
    PRESET("qwen1.5-7b", "7,721,324,544 parameters", QWEN("qwen2", 4096, 11008, 32, 32, 32)),
    PRESET("qwen1.5-14b", "14,167,290,880 parameters",
           QWEN("qwen2", 5120, 13696, 40, 40, 40) LARGE_VOCABULARY),
    PRESET("qwen1.5-32b", "32,512,218,112 parameters",
           QWEN("qwen2", 5120, 27392, 64, 40, 8) LARGE_VOCABULARY),
    PRESET("qwen1.5-72b", "72,287,920,128 parameters",
           QWEN("qwen2", 8192, 24576, 80, 64, 64) LARGE_VOCABULARY),
    PRESET("qwen1.5-110b", "111,209,914,368 parameters",
           QWEN("qwen2", 8192, 49152, 80, 64, 8) LARGE_VOCABULARY),
    PRESET("qwen2-57b-a14b", "57,408,658,944 parameters, 64 experts, 8 a token, and one of all",
           QWEN("qwen2_moe", 3584, 18944, 28, 28, 4) ",\"moe_intermediate_size\":2560,"
                                                     "\"shared_expert_intermediate_size\":20480,"
                                                     "\"num_experts\":64,"
                                                     "\"num_experts_per_tok\":8"),
    PRESET("qwen1.5-moe-a2.7b", "14,315,784,192 parameters, 60 experts, 4 a token, and one of all",
           "\"qwen2_moe\""),
    MTF_NO_PRESET,
};

#define GEMMA(type, h, f, l, a, kv, d)                                                           \
    "\"" type "\",\"hidden_size\":" #h ",\"intermediate_size\":" #f ",\"num_hidden_layers\":" #l \
    ",\"num_attention_heads\":" #a ",\"num_key_value_heads\":" #kv ",\"head_dim\":" #d

#define GEMMA3 ",\"sliding_window\":1024,\"rope_scaling\":{\"rope_type\":\"linear\",\"factor\":8.0}"

static const MtfModelPreset gemma_presets[] = {
    TINY_PRESET(GEMMA("gemma2", 64, 160, 2, 4, 2, 16) ",\"query_pre_attn_scalar\":16"),
    PRESET("gemma-2b", "2.5 billion", GEMMA("gemma", 2048, 16384, 18, 8, 1, 256)),
    PRESET("gemma-7b", "8.5 billion", GEMMA("gemma", 3072, 24576, 28, 16, 16, 256)),
    PRESET("gemma2-2b", "2,614,341,888 parameters", GEMMA("gemma2", 2304, 9216, 26, 8, 4, 256)),
    PRESET("gemma2-9b", "9.2 billion", GEMMA("gemma2", 3584, 14336, 42, 16, 8, 256)),
    PRESET("gemma2-27b", "27,227,128,320 parameters",
           GEMMA("gemma2", 4608, 36864, 46, 32, 16, 128) ",\"query_pre_attn_scalar\":144"),
    PRESET("gemma3-270m", "268,098,176 parameters",
           GEMMA("gemma3_text", 640, 2048, 18, 4, 1, 256) ",\"vocab_size\":262144"
                                                          ",\"sliding_window\":512"),
    PRESET("gemma3-1b", "999,885,952 parameters",
           GEMMA("gemma3_text", 1152, 6912, 26, 4, 1, 256) ",\"vocab_size\":262144"
                                                           ",\"sliding_window\":512"),
    PRESET(
        "gemma3n-e2b", "the text part, 4.5 billion",
        "\"gemma3n_text\",\"num_hidden_layers\":30,\"intermediate_size\":8192,\"num_kv_shared_layers\":10"),
    PRESET("gemma3n-e4b", "the text part, 6.8 billion", "\"gemma3n_text\""),
    PRESET("gemma3-4b", "the text part", GEMMA("gemma3_text", 2560, 10240, 34, 8, 4, 256) GEMMA3),
    PRESET("gemma3-12b", "the text part", GEMMA("gemma3_text", 3840, 15360, 48, 16, 8, 256) GEMMA3),
    PRESET("gemma3-27b", "the text part",
           GEMMA("gemma3_text", 5376, 21504, 62, 32, 16, 128) GEMMA3
           ",\"query_pre_attn_scalar\":168"),
    MTF_NO_PRESET,
};

#define MISTRAL ",\"head_dim\":128,\"rms_norm_eps\":1e-5,\"sliding_window\":null"

static const MtfModelPreset mistral_presets[] = {
    TINY_PRESET(LLAMA_LIKE("mistral", 64, 160, 2, 4, 2) ",\"sliding_window\":16"),
    PRESET("mistral-7b", "7,241,732,096 parameters, a window of 4096",
           "\"mistral\",\"rms_norm_eps\":1e-5,\"max_position_embeddings\":32768"),
    PRESET("mistral-7b-v0.3", "7,248,023,552 parameters, no window",
           LLAMA_LIKE("mistral", 4096, 14336, 32, 32, 8) MISTRAL
           ",\"vocab_size\":32768,\"max_position_embeddings\":32768,\"rope_theta\":1000000.0"),
    PRESET("mistral-nemo-12b", "12,247,782,400 parameters",
           LLAMA_LIKE("mistral", 5120, 14336, 40, 32, 8) MISTRAL
           ",\"vocab_size\":131072,\"rope_theta\":1000000.0"),
    PRESET("mistral-small-24b", "23,572,403,200 parameters",
           LLAMA_LIKE("mistral", 5120, 32768, 40, 32, 8) MISTRAL
           ",\"vocab_size\":131072,\"max_position_embeddings\":32768,\"rope_theta\":100000000.0"),
    PRESET("ministral-8b", "8,019,808,256 parameters",
           LLAMA_LIKE("mistral", 4096, 12288, 36, 32, 8) MISTRAL
           ",\"vocab_size\":131072,\"max_position_embeddings\":32768,\"rope_theta\":100000000.0"),
    PRESET("codestral-22b", "22,247,282,688 parameters, Mistral Small's of 2024, too",
           LLAMA_LIKE("mistral", 6144, 16384, 56, 48, 8) MISTRAL
           ",\"vocab_size\":32768,\"max_position_embeddings\":32768,\"rope_theta\":1000000.0"),
    PRESET("mistral-large-123b", "122,610,069,504 parameters",
           LLAMA_LIKE("mistral", 12288, 28672, 88, 96, 8) MISTRAL
           ",\"vocab_size\":32768,\"max_position_embeddings\":131072,\"rope_theta\":1000000.0"),
    MTF_NO_PRESET,
};

#define MIXTRAL(h, f, l, a, kv, e)                                                              \
    "\"mixtral\",\"hidden_size\":" #h ",\"intermediate_size\":" #f ",\"num_hidden_layers\":" #l \
    ",\"num_attention_heads\":" #a ",\"num_key_value_heads\":" #kv ",\"num_local_experts\":" #e

static const MtfModelPreset mixtral_presets[] = {
    TINY_PRESET(MIXTRAL(64, 96, 2, 4, 2, 4)),
    PRESET("mixtral-8x7b", "46,702,792,704 parameters", MIXTRAL(4096, 14336, 32, 32, 8, 8)),
    PRESET("mixtral-8x22b", "140,620,634,112 parameters",
           MIXTRAL(6144, 16384, 56, 48, 8, 8) ",\"max_position_embeddings\":65536"),
    PRESET("mixtral-8x22b-v0.3", "140,630,071,296 parameters, the longer vocabulary",
           MIXTRAL(6144, 16384, 56, 48, 8, 8) ",\"max_position_embeddings\":65536,"
                                              "\"vocab_size\":32768"),
    MTF_NO_PRESET,
};

#define DEEPSEEK_LLM ",\"vocab_size\":102400,\"max_position_embeddings\":4096"

static const MtfModelPreset deepseek_presets[] = {
    TINY_PRESET("\"deepseek\",\"hidden_size\":64,\"intermediate_size\":160,\"num_hidden_layers\":2,"
                "\"num_attention_heads\":4,\"num_key_value_heads\":4,\"n_routed_experts\":4,"
                "\"num_experts_per_tok\":2,\"moe_intermediate_size\":32"),
    PRESET("deepseek-moe-16b", "16,375,728,128 parameters, 64 experts, 6 a token, and 2 of all",
           "\"deepseek\""),
    PRESET("deepseek-v2-lite",
           "15,706,484,224 parameters, keys and values from 512 features, 64 experts, 6 a token",
           "\"deepseek_v2\",\"rope_scaling\":{\"type\":\"yarn\",\"factor\":40,\"mscale\":0.707,"
           "\"mscale_all_dim\":0.707,\"original_max_position_embeddings\":4096}"),
    PRESET("deepseek-v3",
           "671,026,404,352 parameters and 14,848 biases, 256 experts in 8 groups, 8 a token",
           "\"deepseek_v3\",\"rope_scaling\":{\"type\":\"yarn\",\"factor\":40,\"mscale\":1.0,"
           "\"mscale_all_dim\":1.0,\"original_max_position_embeddings\":4096}"),
    PRESET("deepseek-v2", "235,741,434,880 parameters, 160 experts in 8 groups, 6 a token",
           "\"deepseek_v2\",\"hidden_size\":5120,\"intermediate_size\":12288,"
           "\"num_hidden_layers\":60,\"num_attention_heads\":128,\"num_key_value_heads\":128,"
           "\"q_lora_rank\":1536,\"n_routed_experts\":160,\"moe_intermediate_size\":1536,"
           "\"n_group\":8,\"topk_group\":3,\"topk_method\":\"group_limited_greedy\","
           "\"routed_scaling_factor\":16.0,\"rope_scaling\":{\"type\":\"yarn\",\"factor\":40,"
           "\"mscale\":0.707,\"mscale_all_dim\":0.707,"
           "\"original_max_position_embeddings\":4096}"),
    PRESET("deepseek-llm-7b", "6,910,365,696 parameters, without experts",
           LLAMA(4096, 11008, 30, 32, 32) DEEPSEEK_LLM),
    PRESET("deepseek-llm-67b", "67,425,001,472 parameters, without experts",
           LLAMA(8192, 22016, 95, 64, 8) DEEPSEEK_LLM),
    PRESET("kimi-k2", "1.03 trillion, 384 experts, 8 a token",
           "\"kimi_k2\",\"rope_scaling\":{\"type\":\"yarn\",\"factor\":32,\"mscale\":1.0,"
           "\"mscale_all_dim\":1.0,\"original_max_position_embeddings\":4096},"
           "\"hidden_size\":7168,\"intermediate_size\":18432,\"num_hidden_layers\":61,"
           "\"num_attention_heads\":64,\"num_key_value_heads\":64,\"n_routed_experts\":384,"
           "\"num_experts_per_tok\":8,\"moe_intermediate_size\":2048,\"n_shared_experts\":1,"
           "\"first_k_dense_replace\":1,\"n_group\":1,\"topk_group\":1,"
           "\"routed_scaling_factor\":2.827,\"vocab_size\":163840,\"rope_theta\":50000.0,"
           "\"rms_norm_eps\":1e-5"),
    MTF_NO_PRESET,
};

#define GPT2(h, l, a) "\"gpt2\",\"n_embd\":" #h ",\"n_layer\":" #l ",\"n_head\":" #a

static const MtfModelPreset gpt2_presets[] = {
    TINY_PRESET(GPT2(64, 2, 4)),
    PRESET("gpt2", "124,439,808 parameters", "\"gpt2\""),
    PRESET("gpt2-medium", "354,823,168 parameters", GPT2(1024, 24, 16)),
    PRESET("gpt2-large", "774,030,080 parameters", GPT2(1280, 36, 20)),
    PRESET("gpt2-xl", "1,557,611,200 parameters", GPT2(1600, 48, 25)),
    PRESET("distilgpt2", "81,912,576 parameters", GPT2(768, 6, 12)),
    MTF_NO_PRESET,
};

#define BERT(h, f, l, a)                                                                     \
    "\"bert\",\"hidden_size\":" #h ",\"intermediate_size\":" #f ",\"num_hidden_layers\":" #l \
    ",\"num_attention_heads\":" #a

#define XLM_R                                                                       \
    ",\"vocab_size\":250002,\"max_position_embeddings\":514,\"type_vocab_size\":1," \
    "\"layer_norm_eps\":1e-5"
#define ALBERT(h, f, l, a)                                                                     \
    "\"albert\",\"hidden_size\":" #h ",\"intermediate_size\":" #f ",\"num_hidden_layers\":" #l \
    ",\"num_attention_heads\":" #a
#define ELECTRA(h, f, l, a, e)                                                                  \
    "\"electra\",\"hidden_size\":" #h ",\"intermediate_size\":" #f ",\"num_hidden_layers\":" #l \
    ",\"num_attention_heads\":" #a ",\"embedding_size\":" #e
#define DEBERTA3(h, f, l, a)                                                                \
    "\"deberta-v2\",\"vocab_size\":128100,\"hidden_size\":" #h ",\"intermediate_size\":" #f \
    ",\"num_hidden_layers\":" #l ",\"num_attention_heads\":" #a                             \
    ",\"type_vocab_size\":0,\"position_buckets\":256,\"relative_attention\":true,"          \
    "\"position_biased_input\":false,\"pos_att_type\":\"p2c|c2p\","                         \
    "\"share_att_key\":true,\"norm_rel_ebd\":\"layer_norm\",\"max_relative_positions\":-1"

static const MtfModelPreset bert_presets[] = {
    TINY_PRESET(BERT(64, 160, 2, 4)),
    PRESET("bert-base", "109,482,240 parameters", BERT(768, 3072, 12, 12)),
    PRESET("bert-large", "335,141,888 parameters", BERT(1024, 4096, 24, 16)),
    PRESET("bert-base-cased", "108,310,272 parameters",
           BERT(768, 3072, 12, 12) ",\"vocab_size\":28996"),
    PRESET("bert-large-cased", "333,579,264 parameters",
           BERT(1024, 4096, 24, 16) ",\"vocab_size\":28996"),
    PRESET("bert-base-multilingual", "177,853,440 parameters",
           BERT(768, 3072, 12, 12) ",\"vocab_size\":119547"),
    PRESET("bert-tiny", "4,385,920 parameters, of Turc and others", BERT(128, 512, 2, 2)),
    PRESET("bert-mini", "11,170,560 parameters, of Turc and others", BERT(256, 1024, 4, 4)),
    PRESET("bert-small", "28,763,648 parameters, of Turc and others", BERT(512, 2048, 4, 8)),
    PRESET("bert-medium", "41,373,184 parameters, of Turc and others", BERT(512, 2048, 8, 8)),
    PRESET("minilm-l6", "22,713,216 parameters", BERT(384, 1536, 6, 12)),
    PRESET("minilm-l12", "33,360,000 parameters", BERT(384, 1536, 12, 12)),
    PRESET("distilbert-base", "66,362,880 parameters", "\"distilbert\""),
    PRESET("roberta-base", "124,645,632 parameters",
           "\"roberta\",\"max_position_embeddings\":514,\"type_vocab_size\":1,"
           "\"layer_norm_eps\":1e-5"),
    PRESET("roberta-large", "355,359,744 parameters",
           "\"roberta\",\"hidden_size\":1024,\"intermediate_size\":4096,\"num_hidden_layers\":24,"
           "\"num_attention_heads\":16,\"max_position_embeddings\":514,\"type_vocab_size\":1,"
           "\"layer_norm_eps\":1e-5"),
    PRESET("xlm-roberta-base", "278,043,648 parameters", "\"xlm-roberta\"" XLM_R),
    PRESET("xlm-roberta-large", "559,890,432 parameters",
           "\"xlm-roberta\",\"hidden_size\":1024,\"intermediate_size\":4096,"
           "\"num_hidden_layers\":24,\"num_attention_heads\":16" XLM_R),
    PRESET("mpnet-base", "109,486,464 parameters",
           "\"mpnet\",\"vocab_size\":30527,\"max_position_embeddings\":514,"
           "\"layer_norm_eps\":1e-5"),
    PRESET("albert-base", "11,683,584 parameters, one layer's for all", ALBERT(768, 3072, 12, 12)),
    PRESET("albert-large", "17,683,968 parameters", ALBERT(1024, 4096, 24, 16)),
    PRESET("albert-xlarge", "58,724,864 parameters", ALBERT(2048, 8192, 24, 16)),
    PRESET("albert-xxlarge", "222,595,584 parameters", ALBERT(4096, 16384, 12, 64)),
    PRESET("electra-small", "13,483,008 parameters, the discriminator's encoder",
           ELECTRA(256, 1024, 12, 4, 128)),
    PRESET("electra-base", "108,891,648 parameters", ELECTRA(768, 3072, 12, 12, 768)),
    PRESET("electra-large", "334,092,288 parameters", ELECTRA(1024, 4096, 24, 16, 1024)),
    PRESET("deberta-v3-xsmall", "70,682,112 parameters", DEBERTA3(384, 1536, 12, 6)),
    PRESET("deberta-v3-small", "141,304,320 parameters", DEBERTA3(768, 3072, 6, 12)),
    PRESET("deberta-v3-base", "183,831,552 parameters", DEBERTA3(768, 3072, 12, 12)),
    PRESET("deberta-v3-large", "434,012,160 parameters", DEBERTA3(1024, 4096, 24, 16)),
    PRESET("modernbert-base", "149,014,272 parameters", "\"modernbert\""),
    PRESET("modernbert-large", "394,781,696 parameters",
           "\"modernbert\",\"hidden_size\":1024,\"intermediate_size\":2624,"
           "\"num_hidden_layers\":28,\"num_attention_heads\":16"),
    MTF_NO_PRESET,
};

#define T5(d, f, kv, l, a)                                                          \
    "\"t5\",\"d_model\":" #d ",\"d_ff\":" #f ",\"d_kv\":" #kv ",\"num_layers\":" #l \
    ",\"num_heads\":" #a
#define T5_GATED ",\"feed_forward_proj\":\"gated-gelu\",\"tie_word_embeddings\":false"

#define MT5 ",\"vocab_size\":250112"

static const MtfModelPreset t5_presets[] = {
    TINY_PRESET(T5(64, 160, 16, 2, 4)),
    PRESET("t5-small", "60,506,624 parameters", T5(512, 2048, 64, 6, 8)),
    PRESET("t5-base", "222,903,552 parameters", T5(768, 3072, 64, 12, 12)),
    PRESET("t5-large", "737,668,096 parameters", T5(1024, 4096, 64, 24, 16)),
    PRESET("t5-3b", "2.9 billion", T5(1024, 16384, 128, 24, 32)),
    PRESET("t5-11b", "11,307,321,344 parameters", T5(1024, 65536, 128, 24, 128)),
    PRESET("t5-v1_1-small", "76,961,152 parameters", T5(512, 1024, 64, 8, 6) T5_GATED),
    PRESET("t5-v1_1-base", "247,577,856 parameters", T5(768, 2048, 64, 12, 12) T5_GATED),
    PRESET("t5-v1_1-large", "783,150,080 parameters", T5(1024, 2816, 64, 24, 16) T5_GATED),
    PRESET("t5-v1_1-xl", "2,849,757,184 parameters", T5(2048, 5120, 64, 24, 32) T5_GATED),
    PRESET("t5-v1_1-xxl", "11,135,332,352 parameters", T5(4096, 10240, 64, 24, 64) T5_GATED),
    PRESET("flan-t5-small", "76,961,152 parameters", T5(512, 1024, 64, 8, 6) T5_GATED),
    PRESET("flan-t5-base", "247,577,856 parameters", T5(768, 2048, 64, 12, 12) T5_GATED),
    PRESET("flan-t5-large", "783,150,080 parameters", T5(1024, 2816, 64, 24, 16) T5_GATED),
    PRESET("flan-t5-xl", "2,849,757,184 parameters", T5(2048, 5120, 64, 24, 32) T5_GATED),
    PRESET("flan-t5-xxl", "11,135,332,352 parameters", T5(4096, 10240, 64, 24, 64) T5_GATED),
    PRESET("mt5-small", "300,176,768 parameters", T5(512, 1024, 64, 8, 6) T5_GATED MT5),
    PRESET("mt5-base", "582,401,280 parameters", T5(768, 2048, 64, 12, 12) T5_GATED MT5),
    PRESET("mt5-large", "1,229,581,312 parameters", T5(1024, 2816, 64, 24, 16) T5_GATED MT5),
    PRESET("mt5-xl", "3,742,619,648 parameters", T5(2048, 5120, 64, 24, 32) T5_GATED MT5),
    PRESET("mt5-xxl", "12,921,057,280 parameters", T5(4096, 10240, 64, 24, 64) T5_GATED MT5),
    MTF_NO_PRESET,
};

#define SWITCH(d, f, l, a, e, sparse)                                                           \
    "\"switch_transformers\",\"d_model\":" #d ",\"d_ff\":" #f ",\"d_kv\":64,\"num_layers\":" #l \
    ",\"num_heads\":" #a ",\"num_experts\":" #e ",\"num_sparse_encoder_layers\":" #sparse       \
    ",\"num_sparse_decoder_layers\":" #sparse

/* Sizes: Fedus and others, 2021, table 9, as published at Hugging Face. */
static const MtfModelPreset switch_presets[] = {
    TINY_PRESET_AT(SWITCH(64, 160, 2, 4, 4, 1) ",\"expert_capacity\":10", "1e-3"),
    PRESET("switch-base-8", "0.62 billion", SWITCH(768, 3072, 12, 12, 8, 6)),
    PRESET("switch-base-16", "1.07 billion", SWITCH(768, 3072, 12, 12, 16, 6)),
    PRESET("switch-base-32", "1.98 billion", SWITCH(768, 3072, 12, 12, 32, 6)),
    PRESET("switch-base-64", "3.8 billion", SWITCH(768, 3072, 12, 12, 64, 6)),
    PRESET("switch-base-128", "7.4 billion", SWITCH(768, 3072, 12, 12, 128, 6)),
    PRESET("switch-base-256", "14.7 billion", SWITCH(768, 3072, 12, 12, 256, 6)),
    PRESET("switch-large-128", "26.3 billion", SWITCH(1024, 4096, 24, 16, 128, 12)),
    PRESET("switch-xxl-128", "395 billion",
           SWITCH(4096, 10240, 24, 64, 128, 12) ",\"feed_forward_proj\":\"gated-gelu\""),
    PRESET("switch-c-2048", "1.6 trillion", SWITCH(2080, 6144, 15, 32, 2048, 15)),
    MTF_NO_PRESET,
};

#define VIT(h, f, l, a, patch) VIT_LIKE("vit", h, f, l, a, patch)
#define VIT_LIKE(type, h, f, l, a, patch)                                                        \
    "\"" type "\",\"hidden_size\":" #h ",\"intermediate_size\":" #f ",\"num_hidden_layers\":" #l \
    ",\"num_attention_heads\":" #a ",\"patch_size\":" #patch

static const MtfModelPreset vit_presets[] = {
    { .name = "tiny",
      .summary = "pictures of 8 by 8, trains in seconds",
      .config = "{\"model_type\":" VIT(64, 160, 2, 4,
                                       2) ",\"image_size\":8,\"num_channels\":1,\"num_labels\":10}",
      TINY("3e-3") },
    PRESET("vit-ti16", "5,717,416 parameters, DeiT's smallest", VIT(192, 768, 12, 3, 16)),
    PRESET("vit-s16", "22,050,664 parameters", VIT(384, 1536, 12, 6, 16)),
    PRESET("vit-s32", "22,878,952 parameters", VIT(384, 1536, 12, 6, 32)),
    PRESET("vit-b16", "86,567,656 parameters", VIT(768, 3072, 12, 12, 16)),
    PRESET("vit-b32", "88,224,232 parameters", VIT(768, 3072, 12, 12, 32)),
    PRESET("vit-l16", "304,326,632 parameters", VIT(1024, 4096, 24, 16, 16)),
    PRESET("vit-l32", "306,535,400 parameters", VIT(1024, 4096, 24, 16, 32)),
    PRESET("vit-h14", "632,045,800 parameters", VIT(1280, 5120, 32, 16, 14)),
    PRESET("vit-g14", "1,012,611,432 parameters, of Zhai and others", VIT(1408, 6144, 40, 16, 14)),
    PRESET("vit-gg14", "1,844,440,680 parameters, their G", VIT(1664, 8192, 48, 16, 14)),
    PRESET("vit-22b", "22,209,743,848 parameters, 21,743,271,936 of them in its layers' matrices",
           VIT_LIKE("vit_22b", 6144, 24576, 48, 48, 14)),
    MTF_NO_PRESET,
};

#define PYTHIA(h, f, l, a, v)                                                                    \
    "\"gpt_neox\",\"hidden_size\":" #h ",\"intermediate_size\":" #f ",\"num_hidden_layers\":" #l \
    ",\"num_attention_heads\":" #a ",\"vocab_size\":" #v

static const MtfModelPreset pythia_presets[] = {
    TINY_PRESET(
        "\"gpt_neox\",\"hidden_size\":64,\"intermediate_size\":160,\"num_hidden_layers\":2,\"num_attention_heads\":4"),
    PRESET("pythia-70m", "70,426,624 parameters", PYTHIA(512, 2048, 6, 8, 50304)),
    PRESET("pythia-160m", "162,322,944 parameters", PYTHIA(768, 3072, 12, 12, 50304)),
    PRESET("pythia-410m", "405,334,016 parameters", PYTHIA(1024, 4096, 24, 16, 50304)),
    PRESET("pythia-1b", "1,011,781,632 parameters", PYTHIA(2048, 8192, 16, 8, 50304)),
    PRESET("pythia-1.4b", "1,414,647,808 parameters", PYTHIA(2048, 8192, 24, 16, 50304)),
    PRESET("pythia-2.8b", "2,775,208,960 parameters", PYTHIA(2560, 10240, 32, 32, 50304)),
    PRESET("pythia-6.9b", "6,857,302,016 parameters", PYTHIA(4096, 16384, 32, 32, 50432)),
    PRESET("pythia-12b", "11,846,072,320 parameters", PYTHIA(5120, 20480, 36, 40, 50688)),
    PRESET("gpt-neox-20b", "20,554,567,680 parameters", PYTHIA(6144, 24576, 44, 64, 50432)),
    MTF_NO_PRESET,
};

static const MtfModelPreset phi_presets[] = {
    TINY_PRESET(LLAMA_LIKE("phi", 64, 160, 2, 4, 4)),
    PRESET("phi-1.5", "1,418,270,720 parameters", LLAMA_LIKE("phi", 2048, 8192, 24, 32, 32)),
    PRESET("phi-2", "2,779,683,840 parameters",
           LLAMA_LIKE("phi", 2560, 10240, 32, 32, 32) ",\"partial_rotary_factor\":0.4"),
    PRESET("phi-3-mini", "3,821,079,552 parameters", "\"phi3\""),
    PRESET("phi-1", "1,418,270,720 parameters", LLAMA_LIKE("phi", 2048, 8192, 24, 32, 32)),
    PRESET("phi-3-medium", "13,960,238,080 parameters",
           LLAMA_LIKE("phi3", 5120, 17920, 40, 40, 10)),
    PRESET("phi-4", "14,659,507,200 parameters",
           LLAMA_LIKE("phi3", 5120, 17920, 40, 40, 10) ",\"vocab_size\":100352,"
                                                       "\"max_position_embeddings\":16384,"
                                                       "\"original_max_position_embeddings\":16384,"
                                                       "\"rope_theta\":250000.0"),
    PRESET("phi-3.5-moe", "41,873,153,344 parameters, 16 experts, 2 a token",
           "\"phimoe\",\"attention_bias\":true,\"lm_head_bias\":true"),
    MTF_NO_PRESET,
};

#define OLMO2 ",\"vocab_size\":100352,\"max_position_embeddings\":4096,\"rope_theta\":500000.0"

static const MtfModelPreset olmo2_presets[] = {
    TINY_PRESET(LLAMA_LIKE("olmo2", 64, 160, 2, 4, 4)),
    PRESET("olmo2-1b", "1,484,916,736 parameters",
           LLAMA_LIKE("olmo2", 2048, 8192, 16, 16, 16) OLMO2),
    PRESET("olmo2-7b", "7,298,617,344 parameters",
           LLAMA_LIKE("olmo2", 4096, 11008, 32, 32, 32) OLMO2),
    PRESET("olmo2-13b", "13,716,198,400 parameters",
           LLAMA_LIKE("olmo2", 5120, 13824, 40, 40, 40) OLMO2),
    PRESET("olmo2-32b", "32 billion, shared keys",
           LLAMA_LIKE("olmo2", 5120, 27648, 64, 40, 8) OLMO2),
    MTF_NO_PRESET,
};

#define OPT(h, f, l, a)                                                           \
    "\"opt\",\"hidden_size\":" #h ",\"ffn_dim\":" #f ",\"num_hidden_layers\":" #l \
    ",\"num_attention_heads\":" #a

/* Sizes: Zhang and others, 2022, table 1. */
static const MtfModelPreset opt_presets[] = {
    TINY_PRESET(OPT(64, 160, 2, 4)),
    PRESET("opt-125m", "125,239,296 parameters", OPT(768, 3072, 12, 12)),
    PRESET("opt-350m", "331,196,416 parameters, norms behind both parts, narrow embeddings",
           OPT(1024, 4096, 24, 16) ",\"do_layer_norm_before\":false,\"word_embed_proj_dim\":512"),
    PRESET("opt-1.3b", "1,315,758,080 parameters", OPT(2048, 8192, 24, 32)),
    PRESET("opt-2.7b", "2,651,596,800 parameters", OPT(2560, 10240, 32, 32)),
    PRESET("opt-6.7b", "6,658,473,984 parameters", OPT(4096, 16384, 32, 32)),
    PRESET("opt-13b", "12,853,473,280 parameters", OPT(5120, 20480, 40, 40)),
    PRESET("opt-30b", "30 billion", OPT(7168, 28672, 48, 56)),
    PRESET("opt-66b", "66 billion", OPT(9216, 36864, 64, 72)),
    PRESET("opt-175b", "175 billion", OPT(12288, 49152, 96, 96)),
    MTF_NO_PRESET,
};

#define BLOOM(h, l, a) "\"bloom\",\"hidden_size\":" #h ",\"n_layer\":" #l ",\"n_head\":" #a

static const MtfModelPreset bloom_presets[] = {
    TINY_PRESET(BLOOM(64, 2, 4)),
    PRESET("bloom-560m", "559,214,592 parameters", BLOOM(1024, 24, 16)),
    PRESET("bloom-1b1", "1,065,314,304 parameters", BLOOM(1536, 24, 16)),
    PRESET("bloom-1b7", "1,722,408,960 parameters", BLOOM(2048, 24, 16)),
    PRESET("bloom-3b", "3,002,557,440 parameters", BLOOM(2560, 30, 32)),
    PRESET("bloom-7b1", "7,069,016,064 parameters", BLOOM(4096, 30, 32)),
    PRESET("bloom-176b", "176,247,271,424 parameters", BLOOM(14336, 70, 112)),
    MTF_NO_PRESET,
};

#define FALCON(h, l, a) \
    "\"falcon\",\"hidden_size\":" #h ",\"num_hidden_layers\":" #l ",\"num_attention_heads\":" #a
#define NEW_FALCON(kv) ",\"new_decoder_architecture\":true,\"num_kv_heads\":" #kv

static const MtfModelPreset falcon_presets[] = {
    TINY_PRESET(FALCON(64, 2, 4)),
    PRESET("falcon-7b", "6,921,720,704 parameters, one key for all heads", FALCON(4544, 32, 71)),
    PRESET("falcon-40b", "41 billion", FALCON(8192, 60, 128) NEW_FALCON(8)),
    PRESET("falcon-180b", "180 billion",
           FALCON(14848, 80, 232) NEW_FALCON(8) ",\"tie_word_embeddings\":false"),
    MTF_NO_PRESET,
};

#define FAMILY(symbol, text, about, list) FAMILY_WITH(symbol, text, about, list, OPTIONS)
#define FAMILY_WITH(symbol, text, about, list, options)                        \
    const MtfModelFamily symbol = {                                            \
        .name = text, .summary = about, .parameters = options, .presets = list \
    }

FAMILY(mtf_model_llama, "llama", "Llama 1 to 3.2: rotary positions, RMS norms, gates",
       llama_presets);
FAMILY(mtf_model_qwen, "qwen", "Qwen 2, 2.5 and 3: Llama with biases or norms of queries and keys",
       qwen_presets);
FAMILY(mtf_model_gemma, "gemma", "Gemma 1 to 3: wide heads, soft caps, windows in most layers",
       gemma_presets);
FAMILY(mtf_model_mistral, "mistral", "Mistral: Llama with shared keys, at first with a window",
       mistral_presets);
FAMILY_WITH(mtf_model_mixtral, "mixtral", "Mixtral: Llama with experts", mixtral_presets,
            OF_MIXTRAL);
FAMILY_WITH(mtf_model_deepseek, "deepseek",
            "DeepSeekMoE, V2-Lite and V3: many small experts beside shared ones", deepseek_presets,
            OF_DEEPSEEK);
FAMILY(mtf_model_gpt2, "gpt2", "GPT-2 as transformers has it, whose files --export-hf writes",
       gpt2_presets);
FAMILY(mtf_model_bert, "bert", "BERT and RoBERTa: encoders that learn from hidden tokens",
       bert_presets);
FAMILY(mtf_model_t5, "t5", "T5: encoder and decoder with relative positions", t5_presets);
FAMILY_WITH(mtf_model_switch, "switch", "Switch Transformers: T5 with an expert a token",
            switch_presets, OF_SWITCH);
FAMILY_WITH(mtf_model_vit, "vit", "Vision Transformer: classes of pictures by their patches",
            vit_presets, OF_PICTURES);
FAMILY(mtf_model_pythia, "pythia", "Pythia: GPT-NeoX, both parts of a layer side by side",
       pythia_presets);
FAMILY(mtf_model_phi, "phi", "Phi 1.5, 2 and 3: small models of textbooks", phi_presets);
FAMILY(mtf_model_olmo2, "olmo2", "OLMo 2: norms behind both parts of a layer", olmo2_presets);
FAMILY(mtf_model_opt, "opt", "OPT: GPT-3 with relu and learned positions", opt_presets);
FAMILY(mtf_model_bloom, "bloom", "BLOOM: scores that fall with the distance", bloom_presets);
FAMILY(mtf_model_falcon, "falcon", "Falcon: one key for many heads, parts side by side",
       falcon_presets);
