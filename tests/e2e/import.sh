#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Published models (config.json of Hugging Face transformers), as a user brings them.
. tests/support/tap.sh

# Parameter counts as published, from configs that hold what the published ones do.
# NAME COUNT CONFIG
count() {
    mkdir -p "$work/$1"
    printf '%s' "$3" >"$work/$1/config.json"
    run meshtf-plan import "$work/$1" --json
    claim "$1 has $2 parameters" says "\"parameters\": $2,"
    claim "$1 is named after its folder" says "\"name\": \"$1\""
}

llama() { # NAME COUNT hidden intermediate layers heads kv vocab
    count "$1" "$2" "{\"model_type\":\"llama\",\"hidden_size\":$3,\"intermediate_size\":$4,
        \"num_hidden_layers\":$5,\"num_attention_heads\":$6,\"num_key_value_heads\":$7,
        \"vocab_size\":$8,\"rope_scaling\":null,\"hidden_act\":\"silu\"}"
}

count gpt2 124439808 '{"model_type":"gpt2"}'
count gpt2-medium 354823168 '{"model_type":"gpt2","n_embd":1024,"n_layer":24,"n_head":16,"n_ctx":1024}'
count gpt2-xl 1557611200 '{"model_type":"gpt2","n_embd":1600,"n_layer":48,"n_head":25}'
llama llama-7b 6738415616 4096 11008 32 32 32 32000
llama llama2-70b 68976648192 8192 28672 80 64 8 32000
llama llama3-8b 8030261248 4096 14336 32 32 8 128256
llama llama3-70b 70553706496 8192 28672 80 64 8 128256
llama tinyllama 1100048384 2048 5632 22 32 4 32000
count llama3.1-405b 405853388800 '{"model_type":"llama","hidden_size":16384,"intermediate_size":53248,
  "num_hidden_layers":126,"num_attention_heads":128,"num_key_value_heads":8,"vocab_size":128256,
  "max_position_embeddings":131072,"rope_theta":500000.0,"rope_scaling":{"factor":8.0,"low_freq_factor":1.0,
  "high_freq_factor":4.0,"original_max_position_embeddings":8192,"rope_type":"llama3"}}'
count mistral-7b 7241732096 '{"model_type":"mistral"}'
count qwen2-7b 7615616512 '{"model_type":"qwen2","hidden_size":3584,"intermediate_size":18944,
  "num_hidden_layers":28,"num_attention_heads":28,"num_key_value_heads":4,"vocab_size":152064}'
count qwen2.5-0.5b 494032768 '{"model_type":"qwen2","hidden_size":896,"intermediate_size":4864,
  "num_hidden_layers":24,"num_attention_heads":14,"num_key_value_heads":2,"tie_word_embeddings":true}'
count gemma3-4b 3880263168 '{"model_type":"gemma3","architectures":["Gemma3ForConditionalGeneration"],"mm_tokens_per_image":256,
  "text_config":{"model_type":"gemma3_text","hidden_size":2560,"intermediate_size":10240,"num_hidden_layers":34,
  "rope_scaling":{"factor":8.0,"rope_type":"linear"},"sliding_window":1024},"vision_config":{"hidden_size":1152}}'
mkdir -p "$work/classes" && echo '{"model_type":"gpt2","architectures":["GPT2ForSequenceClassification"],"n_layer":1,"pad_token_id":0,
    "id2label":{"0":"a","1":"b","2":"c"}}' >"$work/classes/config.json"
run meshtf-plan import "$work/classes" -o "$work/classes.json"
claim "files keep GPT-2's head of classes with outputs first, unlike its layers" grep -q 'score.weight\[3,768\]' "$work/classes.json"
run_gemma() { # WORD: an import of a Gemma whose hidden_act it is
    mkdir -p "$work/gemma" && echo "{\"model_type\":\"gemma\",\"hidden_act\":\"$1\",\"num_hidden_layers\":1}" >"$work/gemma/config.json"
    run meshtf-plan import "$work/gemma" -o "$work/gemma.json"
}
run_gemma relu
claim "Gemma's hidden_act counts where no hidden_activation stands" grep -q '"relu"' "$work/gemma.json"
run_gemma gelu
claim "and \"gelu\" means its tanh form there, as in Gemma's first files" grep -q '"op":"gelu"' "$work/gemma.json"
count gemma2-2b 2614341888 '{"model_type":"gemma2"}'
count gemma2-27b 27227128320 '{"model_type":"gemma2","hidden_size":4608,"intermediate_size":36864,
  "num_hidden_layers":46,"num_attention_heads":32,"num_key_value_heads":16,"head_dim":128,
  "query_pre_attn_scalar":144}'
count phi4-mini 3836021760 '{"model_type":"phi3","full_attn_mod":1,"interpolate_factor":1,"lm_head_bias":false,"mlp_bias":false,
  "num_attention_heads":24,"num_key_value_heads":8,"max_position_embeddings":131072,"original_max_position_embeddings":4096,
  "partial_rotary_factor":0.75,"tie_word_embeddings":true,"vocab_size":200064,"sliding_window":262144}'
count exaone-3.5-7.8b 7818448896 '{"model_type":"exaone","hidden_size":4096,"intermediate_size":14336,"num_layers":32,"num_attention_heads":32,
  "num_key_value_heads":8,"vocab_size":102400,"activation_function":"silu","layer_norm_epsilon":1e-05,"embed_dropout":0.0,"attention_dropout":0.0}'
count minicpm-2b 2724880896 '{"model_type":"minicpm","hidden_size":2304,"intermediate_size":5760,"num_hidden_layers":40,"num_attention_heads":36,
  "vocab_size":122753,"scale_emb":12,"dim_model_base":256,"scale_depth":1.4,"rms_norm_eps":1e-05}'
count internlm2.5-7b 7737708544 '{"model_type":"internlm2","intermediate_size":14336,"num_key_value_heads":8,"vocab_size":92544,"bias":false}'
count llava-next-7b 7241732096 '{"model_type":"llava_next","image_grid_pinpoints":[[336,672]],"text_config":{"model_type":"mistral"},"vision_config":{"hidden_size":1024}}'
count qwen2.5-vl-7b 7615616512 '{"model_type":"qwen2_5_vl","text_config":{"model_type":"qwen2_5_vl_text","hidden_size":3584,"intermediate_size":18944,
  "num_hidden_layers":28,"num_attention_heads":28,"num_key_value_heads":4,"vocab_size":152064},"vision_config":{"depth":32}}'
# Two tables of which one has 256 features of each of 35 layers, a matrix to these and their norm, three matrices before and behind the layers;
# in each q, o, a norm of heads, 3 2048 16384, 64 features beside attention, routes of four streams, what is read of the token, nine vectors
# of 2048; in 20 keys and values.
count gemma3n-e4b $((262400 * 2048 + 262144 * 35 * 256 + 2048 * 35 * 256 + 256 + 6 * 2048 * 2048 + 2048 + 35 * (2 * 2048 * 2048 + 256 +
  3 * 2048 * 16384 + 2 * 2048 * 64 + 4 * 2048 + 20 * 4 + 2 * 2048 * 256 + 8 * 2048) + 20 * (2 * 2048 * 512 + 256))) '{"model_type":"gemma3n",
  "text_config":{"model_type":"gemma3n_text"},"vision_config":{},"audio_config":{}}'
# A table of 256000 x 2560; in each of 26 layers 3 2560 7680 and their biases, two norms; in 18 three matrices of 2560^2 with biases, 4
# places of each feature and its bias, two gates of ten blocks of 256 with biases, a rate; in 8 q and o of 2560^2, k and v of one head, o's bias.
count recurrentgemma-2b $((256000 * 2560 + 26 * (3 * 2560 * 7680 + 2 * 7680 + 2560 + 2 * 2560) + 18 * (3 * 2560 * 2560 + 3 * 2560 + 5 * 2560 +
  2 * (10 * 256 * 256 + 2560) + 2560) + 8 * (2 * 2560 * 2560 + 2 * 2560 * 256 + 2560) + 2560)) '{"model_type":"recurrent_gemma",
  "num_key_value_heads":1,"intermediate_size":15360,"block_types":["recurrent","recurrent","attention"],"_block_types":["recurrent","recurrent","attention"]}'
count smollm2-135m 134515008 '{"model_type":"llama","is_llama_config":true,"rope_interleaved":false,"hidden_size":576,
  "intermediate_size":1536,"num_attention_heads":9,"num_hidden_layers":30,"num_key_value_heads":3,"tie_word_embeddings":true,
  "vocab_size":49152,"transformers.js_config":{"kv_cache_dtype":{"fp16":"float16"}}}'
count phi3-mini 3821079552 '{"model_type":"phi3"}'
ones=$(seq -s, 48 | sed 's/[0-9]*/1.05/g')
count phi3-mini-128k 3821079552 '{"model_type":"phi3","max_position_embeddings":131072,"original_max_position_embeddings":4096,
  "rope_scaling":{"type":"longrope","short_factor":['"$ones"'],"long_factor":['"$ones"']},"sliding_window":262144}'

count mixtral-8x7b 46702792704 '{"model_type":"mixtral","vocab_size":32000,"rope_theta":1000000.0}'
count qwen3-0.6b 596049920 '{"model_type":"qwen3","hidden_size":1024,"intermediate_size":3072,
  "num_hidden_layers":28,"num_attention_heads":16,"num_key_value_heads":8,"tie_word_embeddings":true}'
count qwen3-30b-a3b 30532122624 '{"model_type":"qwen3_moe","num_hidden_layers":48,"head_dim":128,
  "norm_topk_prob":true,"mlp_only_layers":[],"decoder_sparse_step":1}'
# Two tables of 151936 x 2048; in a layer 4 2048^2 + 3 2048, two norms, the router's 60 2048, 60 experts of 3 2048 1408,
# what is shared of 3 2048 5632 and its share's 2048; the last norm.
count qwen1.5-moe-a2.7b 14315784192 '{"model_type":"qwen2_moe","num_experts":60,"num_experts_per_tok":4,"qkv_bias":true}'
# Two tables of 102400 x 2048; in each of 28 layers 4 2048^2 and two norms; in the first 3 2048 10944, in the others the
# router's 64 2048 and 64 + 2 experts of 3 2048 1408; the last norm.
count deepseek-moe-16b 16375728128 '{"model_type":"deepseek","hidden_size":2048,"n_routed_experts":64,"n_shared_experts":2,
  "first_k_dense_replace":1,"moe_layer_freq":1,"scoring_func":"softmax","aux_loss_alpha":0.001,"seq_aux":true}'
# Published; two tables of 102400 x 2048; in each of 27 layers 2048 16 192 of queries, 2048 576 and 512 of what keys and values come
# from, 512 16 256 of those, 16 128 2048 back and two norms; in the first 3 2048 10944, in the others as above; the last norm.
count deepseek-v2-lite 15706484224 '{"model_type":"deepseek_v2","q_lora_rank":null,"kv_lora_rank":512,"n_group":1,"topk_group":1,
  "topk_method":"greedy","routed_scaling_factor":1.0,"norm_topk_prob":false,"pretraining_tp":1,"rope_scaling":{"beta_fast":32,
  "beta_slow":1,"factor":40,"mscale":0.707,"mscale_all_dim":0.707,"original_max_position_embeddings":4096,"type":"yarn"}}'
# V2: likewise with 1536 features of queries, 60 layers of width 5120 and 128 heads, 160 experts of 1536 and two of all. V3: 61 of width
# 7168, three without experts, 256 of 2048 and one of all, whose biases are counted.
count deepseek-v2 235741434880 '{"model_type":"deepseek_v2","hidden_size":5120,"num_hidden_layers":60,"num_attention_heads":128,
  "num_key_value_heads":128,"intermediate_size":12288,"moe_intermediate_size":1536,"n_routed_experts":160,"n_shared_experts":2,
  "num_experts_per_tok":6,"q_lora_rank":1536,"topk_method":"group_limited_greedy","n_group":8,"topk_group":3,
  "routed_scaling_factor":16.0}'
# Two tables of 131072 x 4096; in each of 34 layers 2 4096^2 + 2 4096 1024 + 3 4096 14336 and two norms; the last norm. Jais 2: two of
# 150272 x 3328, layers of 4 (3328^2 + 3328) + 2 3328 26624 + 26624 + 3328 and two norms with biases, the last norm. FlexOlmo: two of
# 100352 x 4096, in a layer 4 4096^2 + 4 4096, 7 4096 and 7 experts of 3 4096 11008; the last norm.
count ministral3-8b $((2 * 131072 * 4096 + 34 * (2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14336 + 2 * 4096) + 4096)) '{"model_type":"ministral3",
  "rope_parameters":{"rope_type":"yarn","factor":16.0,"rope_theta":1000000.0,"original_max_position_embeddings":16384,
  "max_position_embeddings":262144,"llama_4_scaling_beta":0.1,"mscale":1.0,"mscale_all_dim":1.0,"beta_fast":32.0,"beta_slow":1.0}}'
count jais2-8b $((2 * 150272 * 3328 + 32 * (4 * (3328 * 3328 + 3328) + 2 * 3328 * 26624 + 26624 + 3328 + 4 * 3328) + 2 * 3328)) '{"model_type":"jais2"}'
count flex-olmo-7x7b $((2 * 100352 * 4096 + 32 * (4 * 4096 * 4096 + 4 * 4096 + 7 * 4096 + 7 * 3 * 4096 * 11008) + 4096)) '{"model_type":"flex_olmo"}'
# Llama 3 8B without its head of 128256 4096, with one of 5 4096.
count llama3-8b-classes $((8030261248 - 128256 * 4096 + 5 * 4096)) '{"model_type":"llama","architectures":["LlamaForSequenceClassification"],
  "intermediate_size":14336,"num_key_value_heads":8,"vocab_size":128256,"id2label":{"0":"a","1":"b","2":"c","3":"d","4":"e"}}'
count deepseek-v3 671026419200 '{"model_type":"deepseek_v3","quantization_config":{
  "activation_scheme":"dynamic","fmt":"e4m3","quant_method":"fp8","weight_block_size":[128,128]},"n_group":8,"topk_group":4,"topk_method":"noaux_tc","scoring_func":"sigmoid",
  "routed_scaling_factor":2.5,"norm_topk_prob":true,"num_nextn_predict_layers":1,"ep_size":1,"rope_scaling":{"beta_fast":32,
  "beta_slow":1,"factor":40,"mscale":1.0,"mscale_all_dim":1.0,"original_max_position_embeddings":4096,"type":"yarn"}}'
count gemma3-1b 999885952 '{"model_type":"gemma3_text","hidden_size":1152,"intermediate_size":6912,"num_attention_heads":4,
  "num_key_value_heads":1,"vocab_size":262144,"sliding_window":512,"use_bidirectional_attention":false}'
# A table of 262144 x 5376; 50 layers with a window, 32 heads of 256 and 16 of keys, ten without, 32 heads of 512 and 4 of keys that are values,
# too; in each norms of a head of queries and of keys, 3 5376 21504, four norms and a number; the last norm.
wide='"rope_parameters":{"sliding_attention":{"rope_type":"default","rope_theta":10000.0},"full_attention":{"rope_type":"proportional",
  "rope_theta":1000000.0,"partial_rotary_factor":0.25}}'
count gemma4-31b $((262144 * 5376 + 50 * (2 * 5376 * 32 * 256 + 2 * 5376 * 16 * 256 + 2 * 256) + 10 * (2 * 5376 * 32 * 512 + 5376 * 4 * 512 + 2 * 512) +
  60 * (3 * 5376 * 21504 + 4 * 5376 + 1) + 5376)) '{"model_type":"gemma4_text","hidden_size":5376,"intermediate_size":21504,"num_hidden_layers":60,
  "num_attention_heads":32,"num_key_value_heads":16,"num_global_key_value_heads":4,"attention_k_eq_v":true,"hidden_size_per_layer_input":0,
  "sliding_window":1024,"final_logit_softcapping":30.0,'"$wide"'}'
# A table of 262144 x 2816; 25 layers with a window, 16 heads of 256 and 8 of keys, five without, of 512 and 2 of keys; in each 3 2816 2112 and
# 128 experts of 3 2816 704, the router with a factor of each feature and each expert, seven norms and a number.
count gemma4-26b-a4b $((262144 * 2816 + 25 * (2 * 2816 * 16 * 256 + 2 * 2816 * 8 * 256 + 2 * 256) + 5 * (2 * 2816 * 16 * 512 + 2816 * 2 * 512 + 2 * 512) +
  30 * (3 * 2816 * 2112 + 128 * 3 * 2816 * 704 + 128 * 2816 + 2816 + 128 + 7 * 2816 + 1) + 2816)) '{"model_type":"gemma4_text","hidden_size":2816,
  "intermediate_size":2112,"num_hidden_layers":30,"num_attention_heads":16,"num_key_value_heads":8,"num_global_key_value_heads":2,
  "attention_k_eq_v":true,"hidden_size_per_layer_input":0,"enable_moe_block":true,"num_experts":128,"top_k_experts":8,
  "moe_intermediate_size":704,"sliding_window":1024,"final_logit_softcapping":30.0,'"$wide"'}'
# A table of 262144 x 1536 and one of 35 256; 28 layers with a window, 8 heads of 256 and one of keys, seven without, of 512; the last 20 have no
# keys and values, and hidden layers of 12288 for 6144; what each reads of the token, norms and a number.
count gemma4-e2b $((262144 * (1536 + 35 * 256) + 28 * (2 * 1536 * 8 * 256 + 256) + 7 * (2 * 1536 * 8 * 512 + 512) + 12 * (2 * 1536 * 256 + 256) +
  3 * (2 * 1536 * 512 + 512) + (15 * 6144 + 20 * 12288) * 3 * 1536 + 35 * (3 * 1536 * 256 + 5 * 1536 + 1) + 256 + 1536)) '{"model_type":"gemma4_text",
  "hidden_size":1536,"intermediate_size":6144,"num_hidden_layers":35,"num_key_value_heads":1,"num_kv_shared_layers":20,"use_double_wide_mlp":true,
  "layer_types":['"$(seq 1 35 | sed 's/.*/"sliding_attention"/; 5~5s/.*/"full_attention"/' | paste -sd, -)"'],'"$wide"'}'
count smollm3-3b 3075098624 '{"model_type":"smollm3","no_rope_layer_interval":4,"max_window_layers":28}'
count granite3-2b 2533531648 '{"model_type":"granite","hidden_size":2048,"intermediate_size":8192,"num_hidden_layers":40,
  "num_key_value_heads":8,"vocab_size":49155,"tie_word_embeddings":true,"embedding_multiplier":12.0,
  "residual_multiplier":0.22,"attention_multiplier":0.015625,"logits_scaling":8.0}'
count starcoder2-3b 3030371328 '{"model_type":"starcoder2","activation_function":"gelu","attention_softmax_in_fp32":true,
  "layer_norm_epsilon":1e-05,"mlp_type":"default","norm_type":"layer_norm","scale_attention_softmax_in_fp32":true,"scale_attn_weights":true,
  "embedding_dropout":0.0,"residual_dropout":0.0}'
count olmo2-7b 7298617344 '{"model_type":"olmo2","vocab_size":100352,"max_position_embeddings":4096,"rms_norm_eps":1e-6,
  "rope_theta":500000,"rope_scaling":null}'
# Two tables of 51200 x 2560 and 51200 biases; in a layer 4 (2560^2 + 2560), 2 2560 10240 + 10240 + 2560, one norm of
# 2 2560; the last norm.
count phi-2 2779683840 '{"model_type":"phi","hidden_size":2560,"intermediate_size":10240,"num_hidden_layers":32,
  "partial_rotary_factor":0.4,"qk_layernorm":false,"embd_pdrop":0.0}'
# OLMo: 50304 x 2048, layers of 4 2048^2 + 3 2048 8192, nothing else; OLMoE two tables, in a layer 4 2048^2 + 4 2048 + 64 2048 +
# 64 3 2048 1024. GLM: two tables of 151552 x 4096, in a layer 2 4096^2 + 4096 + 2 (256 4096 + 256) + 3 4096 13696 + 2 4096 (GLM-4
# 4 4096). Command R: 256000 x 8192, layers of 4 8192^2 + 3 8192 22528 + 8192; R7B likewise, of 32 heads and 8 of keys.
count olmo-1b 1176764416 '{"model_type":"olmo","hidden_size":2048,"intermediate_size":8192,"num_hidden_layers":16,
  "num_attention_heads":16,"clip_qkv":null,"tie_word_embeddings":true}'
count olmoe-1b-7b 6919161856 '{"model_type":"olmoe","intermediate_size":1024,"num_experts":64,"num_experts_per_tok":8,
  "router_aux_loss_coef":0.01,"norm_topk_prob":false}'
count glm-4-9b 9399951360 '{"model_type":"glm","attention_bias":true}'
count glm-4-9b-0414 9400279040 '{"model_type":"glm4","attention_bias":true,"partial_rotary_factor":0.5}'
count command-r 34980831232 '{"model_type":"cohere","rope_theta":8000000.0,"use_qk_norm":false,"logit_scale":0.0625}'
count command-r7b 8028033024 '{"model_type":"cohere2","hidden_size":4096,"intermediate_size":14336,"num_hidden_layers":32,
  "num_attention_heads":32,"num_key_value_heads":8,"logit_scale":0.25,"sliding_window":4096,"sliding_window_pattern":4,
  "order_of_interleaved_layers":"local_attn_first","use_parallel_block":true,"rotary_pct":1.0}'
# GLM-4.5-Air: two tables of 151552 x 4096; in a layer 2 4096 12288 + 12288, 2 (4096 1024 + 1024), two norms; in the first 3 4096 10944, in
# 45 the router's 128 4096 + 128 and 129 experts of 3 4096 1408; the last norm. Seed-OSS: tables of 155136 x 5120, layers of 2 5120 10240
# + 10240, 2 (5120 1024 + 1024), 3 5120 27648, two norms. ERNIE-4.5-0.3B: one table of 103424 x 1024, layers of 2 1024 2048 + 2 1024 256
# + 3 1024 3072 and two norms. Minitron: two tables of 256000 x 3072, layers of 2 3072^2 + 2 3072 1024 + 2 3072 9216 and two norms with biases.
count glm-4.5-air 106852251264 '{"model_type":"glm4_moe","head_dim":128,"attention_bias":true,"use_qk_norm":false,"num_nextn_predict_layers":1}'
count seed-oss-36b 36151104512 '{"model_type":"seed_oss","hidden_size":5120,"residual_dropout":0.1,"attention_out_bias":false}'
count olmo3-7b 7298011136 '{"model_type":"olmo3","vocab_size":100278,"rope_scaling":{"rope_type":"yarn","factor":8.0,
  "attention_factor":1.2079441541679836,"beta_fast":32.0,"beta_slow":1.0,"original_max_position_embeddings":8192}}'
count ernie-4.5-0.3b 360748032 '{"model_type":"ernie4_5","use_bias":false}'
count minitron-4b 4190509056 '{"model_type":"nemotron","hidden_size":3072,"intermediate_size":9216,"num_attention_heads":24,
  "num_key_value_heads":8,"head_dim":128,"mlp_bias":false}'
# Two tables of 50304 x 768; in a layer 4 (768^2 + 768), 2 768 3072 + 3072 + 768, two norms of 2 768; the last norm.
count pythia-160m 162322944 '{"model_type":"gpt_neox","hidden_size":768,"intermediate_size":3072,"num_hidden_layers":12,
  "num_attention_heads":12,"vocab_size":50304,"rotary_emb_base":10000,"rotary_pct":0.25,"use_parallel_residual":true}'
# GPT-J-6B and Falcon-7B as their cards say; the others by hand. OPT: tables of 50272 and 2050 x 768, 12 layers of 12 768^2 + 13 768, a
# last norm. GPT-Neo: 50257 and 2048 x 768, layers of 12 768^2 + 10 768. StarCoder: 49152 and 8192 x 2048, in a layer 2048 2304 +
# 2304, 2048^2 + 2048, 2 2048 8192 + 8192 + 2048, 4 2048. Falcon-40B: 65024 x 8192, in a layer 8192 9216 + 9 8192^2 + 4 8192.
# BLOOM: 250880 x 1024, layers of 12 1024^2 + 13 1024, four more vectors. MPT: 50432 x 4096, layers of 12 4096^2 + 2 4096, one more.
count opt-125m 125239296 '{"model_type":"opt","layerdrop":0.0,"word_embed_proj_dim":768,"prefix":"</s>","init_std":0.02}'
count gpt-neo-125m 125198592 '{"model_type":"gpt_neo","hidden_size":768,"num_layers":12,"num_heads":12,"intermediate_size":null,
  "attention_layers":["global","local"],"attention_types":[[["global","local"],6]],"embed_dropout":0,"resid_dropout":0}'
count gpt-j-6b 6050882784 '{"model_type":"gptj","rotary":true,"rotary_dim":64,"n_inner":null,"scale_attn_weights":true}'
count starcoderbase-1b 1137207296 '{"model_type":"gpt_bigcode","n_embd":2048,"n_layer":24,"n_head":16,"n_inner":8192,"n_positions":8192,
  "vocab_size":49152,"multi_query":true,"inference_runner":0,"pad_key_length":true,"max_batch_size":null}'
count falcon-7b 6921720704 '{"model_type":"falcon","multi_query":true,"parallel_attn":true,"alibi":false,"bias":false}'
count falcon-40b 41303293952 '{"model_type":"falcon","hidden_size":8192,"num_hidden_layers":60,"num_attention_heads":128,"num_kv_heads":8,
  "new_decoder_architecture":true,"vocab_size":65024}'
count bloom-560m 559214592 '{"model_type":"bloom","n_embed":1024,"n_layer":24,"num_attention_heads":16,"n_inner":null,"offset_alibi":100,
  "attention_softmax_in_fp32":true,"skip_bias_add":true,"skip_bias_add_qkv":false,"unk_token_id":0,"seq_length":2048}'
count mpt-7b 6649286656 '{"model_type":"mpt","d_model":4096,"n_layers":32,"n_heads":32,"vocab_size":50432,"attn_config":{"alibi":true,
  "alibi_bias_max":8,"attn_impl":"torch","attn_pdrop":0,"attn_type":"multihead_attention","clip_qkv":null,"softmax_scale":null},
  "init_config":{"name":"kaiming_normal_"},"norm_type":"low_precision_layernorm","logit_scale":null,"verbose":0,"resid_pdrop":0}'
# Two tables of 100352 x 2048; in a layer 4 2048^2 + 3 2048 (q, k, v, o, three biases), 3 2048 5632, 4 2048 (two norms
# with biases); the last norm's 2 2048.
count stablelm2-1.6b 1644515328 '{"model_type":"stablelm","hidden_size":2048,"intermediate_size":5632,"num_hidden_layers":24,
  "vocab_size":100352,"use_qkv_bias":true}'
# As Qwen 2 of 7 billion; the part that sees is not read.
count mamba-130m 129135360 '{"model_type":"mamba","num_hidden_layers":24,"n_layer":24,"d_model":768,"ssm_cfg":{},"rms_norm":true,
  "intermediate_size":1536,"time_step_rank":48,"time_step_min":0.001,"residual_in_fp32":true}'
count falcon-mamba-7b 7272665088 '{"model_type":"falcon_mamba","expand":16,"hidden_size":4096,"intermediate_size":8192,"num_hidden_layers":64,
  "time_step_rank":256,"vocab_size":65024,"tie_word_embeddings":false,"mixer_rms_eps":1e-6,"rescale_prenorm_residual":false}'
count mamba-codestral-7b 7285403648 '{"model_type":"mamba2","chunk_size":256,"rms_norm":true,"residual_in_fp32":true}'
places=$(seq 0 39 | sed 's/.*/"mamba"/; 6s/.*/"attention"/; 16s/.*/"attention"/; 26s/.*/"attention"/; 36s/.*/"attention"/' | paste -sd, -)
count granite-4.0-h-tiny 6939037248 '{"model_type":"granitemoehybrid","hidden_size":1536,"num_hidden_layers":40,"num_attention_heads":12,
  "num_key_value_heads":4,"mamba_n_heads":48,"mamba_d_head":64,"mamba_d_state":128,"mamba_chunk_size":256,"vocab_size":100352,
  "num_local_experts":64,"num_experts_per_tok":6,"intermediate_size":512,"shared_intermediate_size":1024,"tie_word_embeddings":true,
  "position_embedding_type":"nope","normalization_function":"rmsnorm","init_method":"mup","layer_types":['"$places"']}'
count bamba-9b 9780235392 '{"model_type":"bamba","attn_layer_indices":[9,18,27],"attn_rotary_emb":64,"mamba_d_state":128,"mamba_chunk_size":256,
  "vocab_size":128256,"use_mamba_kernels":true,"num_logits_to_keep":1}'
# Two tables of 261120 x 5120; in each of 72 layers attention of 20 heads and 4 of keys of 128 features, a scan of 32 heads of 128 in 2 groups
# of 256 numbers (what it reads, a convolution of 4 places and its biases, three numbers a head, what it makes), 3 5120 21504, two norms.
count falcon-h1-34b $((2 * 261120 * 5120 + 72 * (2 * 5120 * 20 * 128 + 2 * 5120 * 4 * 128 + 5120 * (2 * 4096 + 2 * 512 + 32) + 5 * (4096 + 2 * 512) +
    3 * 32 + 4096 * 5120 + 3 * 5120 * 21504 + 2 * 5120) + 5120)) '{"model_type":"falcon_h1","hidden_size":5120,"intermediate_size":21504,
    "num_hidden_layers":72,"num_attention_heads":20,"num_key_value_heads":4,"head_dim":128,"vocab_size":261120,"mamba_d_ssm":4096,
    "mamba_n_heads":32,"mamba_d_head":128,"mamba_n_groups":2,"mamba_d_state":256,"time_step_limit":[0.0,Infinity]}'
# Two tables of 200064 x 6144; 70 layers of lightning attention, 64 heads of 128, and ten of attention with 8 of keys; in each 32 experts of
# 3 6144 9216, the router and two norms; the last norm.
count dbrx 131596523520 '{"model_type":"dbrx","d_model":6144,"n_heads":48,"n_layers":40,"max_seq_len":32768,"vocab_size":100352,
  "attn_config":{"clip_qkv":8,"kv_n_heads":8,"model_type":"","rope_theta":500000},"emb_pdrop":0.0,"resid_pdrop":0.0,
  "ffn_config":{"ffn_hidden_size":10752,"model_type":"","moe_jitter_eps":0,"moe_loss_weight":0.05,"moe_num_experts":16,"moe_top_k":4}}'
run meshtf-plan import "$work/dbrx" -o "$work/dbrx.json"
claim "its experts are kept as one matrix, one below the other" grep -q 'mlp.w2\[16\*10752,6144\]' "$work/dbrx.json"
minimax=$(seq 80 | sed 's/.*/"linear_attention"/; 8~8s/.*/"full_attention"/' | paste -sd, -)
count minimax-text-01 $((2 * 200064 * 6144 + 70 * (5 * 6144 * 8192 + 8192) + 10 * (2 * 6144 * 8192 + 2 * 6144 * 1024) +
  80 * (32 * 3 * 6144 * 9216 + 32 * 6144 + 2 * 6144) + 6144)) '{"model_type":"minimax","hidden_size":6144,"intermediate_size":9216,"vocab_size":200064,
  "num_hidden_layers":80,"num_attention_heads":64,"num_key_value_heads":8,"head_dim":128,"num_local_experts":32,"layer_types":['"$minimax"'],
  "full_attn_alpha_factor":3.5565588200778455,"linear_attn_alpha_factor":3.5565588200778455,"mlp_alpha_factor":3.5565588200778455}'
count jamba-52b 51570323328 '{"model_type":"jamba","use_mamba_kernels":true,"num_logits_to_keep":1,"router_aux_loss_coef":0.001}'
count nemotron-3-nano 31577940288 '{"model_type":"nemotron_h","hybrid_override_pattern":"MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME",
  "hidden_size":2688,"num_attention_heads":32,"num_key_value_heads":2,"head_dim":128,"mamba_num_heads":64,"mamba_head_dim":64,"n_groups":8,
  "ssm_state_size":128,"n_routed_experts":128,"num_experts_per_tok":6,"moe_intermediate_size":1856,"moe_shared_expert_intermediate_size":3712,
  "time_step_limit":[0.0,Infinity],"routed_scaling_factor":2.5,"chunk_size":128,"num_hidden_layers":52}'
count trinity-mini 26123974400 '{"model_type":"afmoe","num_dense_layers":2,"moe_intermediate_size":1024,"num_attention_heads":32,"head_dim":128,
  "num_key_value_heads":4,"num_experts":128,"num_experts_per_tok":8,"num_shared_experts":1,"mup_enabled":true,"score_func":"sigmoid"}'
count glm-4.7-flash 29943393920 '{"model_type":"glm4_moe_lite","topk_method":"noaux_tc","num_nextn_predict_layers":1}'
count qwen3-next-80b-a3b 79674391296 '{"model_type":"qwen3_next","full_attention_interval":4,"linear_num_value_heads":32,"decoder_sparse_step":1,
  "intermediate_size":5120,"mlp_only_layers":[],"norm_topk_prob":true,"partial_rotary_factor":0.25,"rope_theta":10000000}'
count qwen3.5-0.8b 752393024 '{"model_type":"qwen3_5","image_token_id":248056,"vision_config":{"depth":12},"text_config":{
  "model_type":"qwen3_5_text","hidden_size":1024,"num_hidden_layers":24,"intermediate_size":3584,"num_attention_heads":8,
  "num_key_value_heads":2,"linear_num_value_heads":16,"tie_word_embeddings":true,"attn_output_gate":true,
  "mamba_ssm_dtype":"float32","mtp_num_hidden_layers":1}}'
# Two tables of 131072 x 4096; in each of 36 layers queries by way of 1024 features, keys and values by way of 256 beside 64 that turn,
# 32 heads of 128, the router, 128 experts and one of all of 3 4096 2048, norms; the last norm.
count mistral-small-4-119b $((2 * 131072 * 4096 + 36 * (4096 * 1024 + 1024 + 1024 * 32 * 128 + 4096 * 320 + 256 + 256 * 32 * 192 + 32 * 128 * 4096 +
    128 * 4096 + 129 * 3 * 4096 * 2048 + 2 * 4096) + 4096)) '{"model_type":"mistral4","rope_parameters":{"rope_theta":10000.0,"rope_type":"yarn","factor":128.0,
    "original_max_position_embeddings":8192,"llama_4_scaling_beta":0.1,"mscale_all_dim":1.0,"mscale":1.0}}'
count qwen3.5-35b-a3b 34660610688 '{"model_type":"qwen3_5_moe_text"}'
count lfm2-1.2b 1170340608 '{"model_type":"lfm2","block_ff_dim":12288,"conv_L_cache":3,"full_attn_idxs":[2,5,8,10,12,14],
  "hidden_size":2048,"num_hidden_layers":16,"conv_dim":2048,"use_pos_enc":true}'
count lfm2-8b-a1b 8339930560 '{"model_type":"lfm2_moe","num_hidden_layers":24,"layer_types":["conv","conv","full_attention","conv","conv",
  "conv","full_attention","conv","conv","conv","full_attention","conv","conv","conv","full_attention","conv","conv","conv",
  "full_attention","conv","conv","full_attention","conv","conv"]}'
count qwen3-vl-4b 4022468096 '{"model_type":"qwen3_vl","vision_config":{"depth":24},"tie_word_embeddings":true,"text_config":{"model_type":"qwen3_vl_text",
  "vocab_size":151936,"hidden_size":2560,"intermediate_size":9728,"num_hidden_layers":36,"num_attention_heads":32,"num_key_value_heads":8,"head_dim":128,
  "tie_word_embeddings":true,"rope_theta":5000000,"rope_scaling":{"mrope_interleaved":true,"mrope_section":[24,20,20],"rope_type":"default"}}}'
count qwen3-vl-30b-a3b 30532122624 '{"model_type":"qwen3_vl_moe","text_config":{"model_type":"qwen3_vl_moe_text","intermediate_size":6144,
  "num_hidden_layers":48,"num_attention_heads":32,"num_key_value_heads":4,"head_dim":128,"num_experts":128,"num_experts_per_tok":8,"moe_intermediate_size":768}}'
count qwen2-vl-7b 7615616512 '{"model_type":"qwen2_vl","hidden_size":3584,"intermediate_size":18944,"num_hidden_layers":28,
  "num_attention_heads":28,"num_key_value_heads":4,"vocab_size":152064,"rope_theta":1000000.0,"vision_token_id":151654,
  "rope_scaling":{"type":"mrope","mrope_section":[16,24,24]},"vision_config":{"embed_dim":1280},"use_sliding_window":false}'
count bert-base 109482240 '{"model_type":"bert","architectures":["BertModel"]}'
# Heads, as transformers counts them: of tokens 768^2 + 768, a norm, a bias of each (no pooler); of two classes 768 2 + 2.
count bert-base-tokens 109514298 '{"model_type":"bert","architectures":["BertForMaskedLM"]}'
count bert-base-classes 109483778 '{"model_type":"bert","architectures":["BertForSequenceClassification"]}'
# Of words 768 9 + 9, of an answer's ends 768 2 + 2, both without a pooler of 768^2 + 768.
count bert-base-words $((109482240 - 590592 + 6921)) '{"model_type":"bert","architectures":["BertForTokenClassification"],"num_labels":9}'
count bert-base-answers $((109482240 - 590592 + 1538)) '{"model_type":"bert","architectures":["BertForQuestionAnswering"]}'
count roberta-base-classes 124647170 '{"model_type":"roberta","max_position_embeddings":514,"type_vocab_size":1,
  "architectures":["RobertaForSequenceClassification"]}'
count distilbert-base-classes 66955010 '{"model_type":"distilbert","architectures":["DistilBertForSequenceClassification"]}'
count bert-large 335141888 '{"model_type":"bert","hidden_size":1024,"intermediate_size":4096,
  "num_hidden_layers":24,"num_attention_heads":16}'
count roberta-base 124645632 '{"model_type":"roberta","max_position_embeddings":514,"type_vocab_size":1}'
# XLM-R: RoBERTa's layers, a table of 250002; CamemBERT 32005. ELECTRA small: (30522 + 512 + 2 + 2) 128, 129 256, layers of
# 4 (256^2 + 256) + 2 256 1024 + 1024 + 256 + 4 256; DistilBERT: (30522 + 512 + 2) 768, six layers of BERT's.
count xlm-roberta-base 278043648 '{"model_type":"xlm-roberta","vocab_size":250002,"max_position_embeddings":514,"type_vocab_size":1}'
count camembert-base 110621952 '{"model_type":"camembert","vocab_size":32005,"max_position_embeddings":514,"type_vocab_size":1}'
count electra-small 13483008 '{"model_type":"electra","hidden_size":256,"intermediate_size":1024,"num_attention_heads":4,
  "embedding_size":128,"summary_last_dropout":0.1}'
count distilbert-base 66362880 '{"model_type":"distilbert","qa_dropout":0.1,"seq_classif_dropout":0.2,"sinusoidal_pos_embds":false,
  "tie_weights_":true}'
# Published: ALBERT's layer is counted once; ESM-2 without its 661 numbers of contacts; EuroBERT without a head.
count albert-base 11683584 '{"model_type":"albert","hidden_size":768,"num_attention_heads":12,"intermediate_size":3072,
  "classifier_dropout_prob":0.1,"net_structure_type":0}'
# A widening of equal widths is one all the same (transformers 5.17 writes it).
count albert-square $((128 * 64 + 512 * 64 + 2 * 64 + 2 * 64 + (64 * 64 + 64) + 4 * (64 * 64 + 64) + 2 * (64 * 96) + 96 + 64 + 4 * 64 + 64 * 64 + 64)) \
    '{"model_type":"albert","vocab_size":128,"hidden_size":64,"embedding_size":64,"num_attention_heads":4,"intermediate_size":96}'
# A table of 50265 x 768, 1024 rows of distances, a norm; in each of 12 layers 3 768^2 without biases, one of queries and one of values, a matrix
# of distances with a bias and one without, what heads make, 2 768 3072 and two norms.
count deberta-base $((50265 * 768 + 1024 * 768 + 2 * 768 + 12 * (3 * 768 * 768 + 2 * 768 + 2 * 768 * 768 + 768 + 768 * 768 + 768 + 2 * 768 * 3072 + 3072 +
  768 + 4 * 768))) '{"model_type":"deberta","hidden_size":768,"max_position_embeddings":512,"max_relative_positions":-1,"relative_attention":true,
  "position_biased_input":false,"pos_att_type":"c2p|p2c"}'
count deberta-v3-base 183831552 '{"model_type":"deberta-v2","hidden_size":768,"max_position_embeddings":512,"relative_attention":true,
  "position_buckets":256,"norm_rel_ebd":"layer_norm","share_att_key":true,"pos_att_type":"p2c|c2p","layer_norm_eps":1e-7,
  "max_relative_positions":-1,"position_biased_input":false,"type_vocab_size":0,"vocab_size":128100}'
count mpnet-base 109486464 '{"model_type":"mpnet","vocab_size":30527,"max_position_embeddings":514}'
count esm2-650m $((651043254 - 661)) '{"model_type":"esm","architectures":["EsmForMaskedLM"],"hidden_size":1280,"num_hidden_layers":33,
  "num_attention_heads":20,"intermediate_size":5120,"position_embedding_type":"rotary","token_dropout":true,"mask_token_id":32}'
count eurobert-210m 211766016 '{"model_type":"eurobert","mask_token":"<|mask|>"}'
count nomic-embed 136731648 '{"model_type":"nomic_bert"}'
for size in '20b 20914757184 24 32' '120b 116829156672 36 128'; do
    # Name, count, layers and experts are split into words on purpose.
    # shellcheck disable=SC2086
    set -- $size
    count "gpt-oss-$1" "$2" "{\"model_type\":\"gpt_oss\",\"num_hidden_layers\":$3,\"num_local_experts\":$4,\"experts_per_token\":4,
        \"swiglu_limit\":7.0,\"initial_context_length\":4096,\"rope_theta\":150000,\"rope_scaling\":{\"beta_fast\":32.0,
        \"beta_slow\":1.0,\"factor\":32.0,\"original_max_position_embeddings\":4096,\"rope_type\":\"yarn\",\"truncate\":false}}"
done
count llama4-scout 107769861120 '{"model_type":"llama4","text_config":{"model_type":"llama4_text","interleave_moe_layer_step":1}}'
count t5-small 60506624 '{"model_type":"t5","task_specific_params":{"a":1}}'
count t5-base 222903552 '{"model_type":"t5","d_model":768,"d_ff":3072,"num_layers":12,"num_heads":12}'
count t5-large 737668096 '{"model_type":"t5","d_model":1024,"d_ff":4096,"num_layers":24,"num_heads":16}'
count t5-11b 11307321344 '{"model_type":"t5","d_model":1024,"d_ff":65536,"d_kv":128,"num_layers":24,"num_heads":128}'
count t5-v1_1-base 247577856 '{"model_type":"t5","d_model":768,"d_ff":2048,"num_layers":12,"num_heads":12,
  "feed_forward_proj":"gated-gelu","tie_word_embeddings":false}'

count t5-v1_1-base-new 247577856 '{"model_type":"t5","d_model":768,"d_ff":2048,"num_layers":12,"num_heads":12,
  "feed_forward_proj":"gated-gelu","tie_word_embeddings":true,"scale_decoder_outputs":false}'

count vit-b16 86567656 '{"model_type":"vit","architectures":["ViTForImageClassification"]}'
count vit-l16 304326632 '{"model_type":"vit","hidden_size":1024,"intermediate_size":4096,
  "num_hidden_layers":24,"num_attention_heads":16,"num_labels":1000}'

# DINOv2 without its 768 numbers of what is hidden, and a classifier of 2 768 1000 + 1000; with registers 4 768 more. CLIP's tower as
# published with its projection of 768 512, SigLIP's with the head that a query reads by.
count dinov2-base $((86580480 - 768 + 1537000)) '{"model_type":"dinov2","image_size":518,"patch_size":14,"mlp_ratio":4,"layerscale_value":1.0,
  "use_swiglu_ffn":false,"drop_path_rate":0.0,"apply_layernorm":true}'
count dinov2-registers-base $((86580480 - 768 + 1537000 + 3072)) '{"model_type":"dinov2_with_registers","image_size":518,"patch_size":14,
  "num_register_tokens":4}'
# As BEiT's and BitNet's authors count them; DINOv3 without the numbers of what is hidden.
count beit-base 86530984 '{"model_type":"beit","use_relative_position_bias":true,"drop_path_rate":0.1,"use_mask_token":false}'
count dinov3-vits16 21596160 '{"model_type":"dinov3_vit","num_register_tokens":4,"pos_embed_rescale":2.0}'
# As their authors count Swin of two sizes and Swin V2's smallest.
count swin-tiny 28288354 '{"model_type":"swin","architectures":["SwinForImageClassification"],"num_labels":1000}'
count swin-base 87768224 '{"model_type":"swin","architectures":["SwinForImageClassification"],"num_labels":1000,"embed_dim":128,"depths":[2,2,18,2],
    "num_heads":[4,8,16,32]}'
count swinv2-tiny 28347154 '{"model_type":"swinv2","architectures":["Swinv2ForImageClassification"],"num_labels":1000,"image_size":256,"window_size":8}'
# As PyTorch counts wav2vec 2.0 in its two sizes (what pretraining hides has 768 and 1024 numbers), with a head of 32 tokens, and HuBERT without one.
count wav2vec2-base $((94371712 - 768 + 24608)) '{"model_type":"wav2vec2","architectures":["Wav2Vec2ForCTC"]}'
count wav2vec2-large $((315438720 - 1024 + 32800)) '{"model_type":"wav2vec2","architectures":["Wav2Vec2ForCTC"],"hidden_size":1024,"intermediate_size":4096,
    "num_hidden_layers":24,"num_attention_heads":16,"do_stable_layer_norm":true,"feat_extract_norm":"layer","conv_bias":true}'
# As its authors' file of ten-second pieces and 527 classes counts them.
count ast-audioset 86594063 '{"model_type":"audio-spectrogram-transformer"}'
# WavLM's bias adds 12 (8 64 + 8 + 12) and a table of 320 12.
count wavlm-base $((94371712 - 768 + 12 * 532 + 3840)) '{"model_type":"wavlm"}'
count hubert-base $((94371712 - 768)) '{"model_type":"hubert"}'
# As its authors count RWKV 4 of 169 million.
count rwkv-4-169m 169342464 '{"model_type":"rwkv","hidden_size":768,"num_hidden_layers":12,"rescale_every":6}'
count bitnet-2b 2412820480 '{"model_type":"bitnet","max_position_embeddings":4096,"tie_word_embeddings":true}'
# As torchvision counts ResNets, with the running means and variances of 26 560 and 4 800 channels, and ConvNeXt's authors their smallest, with the factors that the second version has not.
count resnet-50 $((25557032 + 2 * 26560)) '{"model_type":"resnet","downsample_in_bottleneck":false,"out_features":["stage4"]}'
count resnet-18 $((11689512 + 2 * 4800)) '{"model_type":"resnet","layer_type":"basic","depths":[2,2,2,2],"hidden_sizes":[64,128,256,512]}'
count convnext-tiny 28589128 '{"model_type":"convnext","drop_path_rate":0.0}'
count convnextv2-tiny 28635496 '{"model_type":"convnextv2"}'
count clip-vit-b32 $((87456000 + 393216)) '{"model_type":"clip","text_config":{"model_type":"clip_text_model"},
  "vision_config":{"model_type":"clip_vision_model"}}'
claim "texts are said to be left out" says "all but vision_config (texts are not read)"
# All of SigLIP has 203 155 970, of which two are its temperature and threshold.
count siglip-base-text $((203155970 - 92884224 - 2)) '{"model_type":"siglip_text_model"}'
count siglip-base 92884224 '{"model_type":"siglip","vision_config":{"model_type":"siglip_vision_model"}}'

# Published counts and a bias of each token, which files keep and nobody trains; M2M100 has none.
count bart-base $((139420416 + 50265)) '{"model_type":"bart","d_model":768,"encoder_layers":6,"decoder_layers":6,"encoder_attention_heads":12,
    "decoder_attention_heads":12,"encoder_ffn_dim":3072,"decoder_ffn_dim":3072,"normalize_before":false,"normalize_embedding":true}'
count umt5-small 306601984 '{"model_type":"umt5","vocab_size":256384,"tie_word_embeddings":false}'
count blenderbot_small-90M $((87508992 + 54944)) '{"model_type":"blenderbot-small","vocab_size":54944,"scale_embedding":true}'
count bart-large $((406291456 + 50265)) '{"model_type":"bart"}'
count m2m100-418m 483905536 '{"model_type":"m2m_100","vocab_size":128112,"activation_function":"relu"}'
count pegasus-large $((568699904 + 96103)) '{"model_type":"pegasus","vocab_size":96103,"encoder_layers":16,"decoder_layers":16}'
count opus-mt-en-de $((73886208 + 58101)) '{"model_type":"marian","vocab_size":58101,"d_model":512,"encoder_layers":6,"decoder_layers":6,
    "encoder_attention_heads":8,"decoder_attention_heads":8,"encoder_ffn_dim":2048,"decoder_ffn_dim":2048,"activation_function":"swish"}'
count whisper-tiny 37760640 '{"model_type":"whisper","suppress_tokens":[1,2],"max_length":448,"median_filter_width":7}'
count whisper-large 1543304960 '{"model_type":"whisper","d_model":1280,"encoder_layers":32,"decoder_layers":32,
  "encoder_attention_heads":20,"decoder_attention_heads":20,"encoder_ffn_dim":5120,"decoder_ffn_dim":5120}'

# What a config does not say is said.
run meshtf-plan import "$work/llama-7b" -o "$work/g.json"
claim "a graph is written" exits 0
claim "the batch is said" says "batch 32 (no --batch given)"
claim "the length is said" says "length 2048 (no --length given"
run meshtf-plan import "$work/llama-7b" --batch 4 --length 128 -o "$work/g.json"
claim "what is given is not said" sh -c "! grep -q 'no --batch' '$work/out'"
run meshtf-plan check "$work/g.json"
claim "the graph is sound" says "length=128"
run meshtf-plan check "$work/llama-7b" --json
claim "check reads a model" says '"kind": "published model"'

# Every key is used, known to be harmless, off, or refused by name.
# Dropout is what the config says where that is asked for, and said where it is not.
dropped() { # CLAIM CONFIG RATES OPTION...: rates in attention, then of dropout, in ascending order
    printf '%s' "$2" >"$work/dropout.json"
    claimed=$1 rates=$3
    shift 3
    run meshtf-plan import "$work/dropout.json" --length 16 -o "$work/g.json" "$@"
    claim "$claimed" test "$rates" = "$(jq -r '[([.. | objects | select(.op == "attention") | .dropout // 0] | unique[]),
        ([.. | objects | select(.op == "dropout") | .rate] | unique[])] | join(" ")' "$work/g.json")"
}
gpt2='{"model_type":"gpt2","n_layer":1,"attn_pdrop":0.1,"resid_pdrop":0.2,"embd_pdrop":0.3}'
dropped "nothing is dropped unasked" "$gpt2" 0
claim "what is left out is said" says "dropout 0.1 of attention's shares, 0.2 of branches, 0.3 of embeddings is left out"
dropped "GPT-2 drops what its config says" "$gpt2" "0.1 0.2 0.3" --dropout config
dropped "or all at one rate" "$gpt2" "0.25 0.25" --dropout 0.25
dropped "or nothing" "$gpt2" 0 --dropout 0
dropped "T5 drops all at its one rate" '{"model_type":"t5","num_layers":1,"dropout_rate":0.1}' "0.1 0.1" --dropout config
dropped "Falcon no embeddings" '{"model_type":"falcon","num_hidden_layers":1,"hidden_dropout":0.2,"attention_dropout":0.1}' \
    "0.1 0.2" --dropout config
# BERT and GPT-2 drop a tenth where a file does not say it, Llama nothing.
dropped "GPT-2's own rates are a tenth" '{"model_type":"gpt2","n_layer":1}' "0.1 0.1" --dropout config
dropped "Llama has none" '{"model_type":"llama","num_hidden_layers":1}' 0 --dropout config
dropped "OPT drops branches alone, but what it looks at in attention where it says so" \
    '{"model_type":"opt","num_hidden_layers":1,"dropout":0.2,"attention_dropout":0.3}' "0.3 0.2" --dropout config
claim "no embeddings" test 2 = "$(jq '[.operations[] | select(.op == "dropout")] | length' "$work/g.json")"
dropped "GPT-NeoX drops embeddings as branches" \
    '{"model_type":"gpt_neox","num_hidden_layers":1,"hidden_dropout":0.2}' "0 0.2" --dropout config
claim "embeddings and two branches" test 3 = "$(jq '[.operations[] | select(.op == "dropout")] | length' "$work/g.json")"
dropped "MPT says inside attn_config what attention drops" \
    '{"model_type":"mpt","n_layers":1,"resid_pdrop":0.2,"attn_config":{"attn_pdrop":0.4}}' "0.4 0.2" --dropout config
for rate in 1 -0.5 0.1x some; do
    run meshtf-plan import "$work/dropout.json" -o "$work/x.json" --dropout $rate
    claim "a rate of $rate is bad input" bad_input
done
run meshtf-plan import "$work/g.json" -o "$work/x.json" --dropout 0.1
claim "a graph says itself what it drops" says_error "is a graph, whose sizes and optimizer are its own"

refuse() { # NAME JSON SENTENCE
    printf '%s' "$2" >"$work/config.json"
    run meshtf-plan import "$work/config.json" -o "$work/x.json"
    claim "$1 is bad input" bad_input
    claim "$1: the sentence says where" says_error "$3"
}
refuse "one table for all of BEiT's layers" '{"model_type":"beit","use_shared_relative_position_bias":true}' \
    "/use_shared_relative_position_bias: only false is supported"
refuse "layers that see all and are not alike" '{"model_type":"gemma4_text","num_hidden_layers":12,"per_layer_config":{"5":{"head_dim":512},"11":{"head_dim":256}},'"$wide"'}' "/per_layer_config: layers without a window are expected to be alike"
refuse "sizes of a layer with a window" '{"model_type":"gemma4_text","num_hidden_layers":6,"per_layer_config":{"4":{"head_dim":512}},'"$wide"'}' "/per_layer_config: the layers without a window"
refuse "borrowers alone" '{"model_type":"gemma4_text","num_hidden_layers":6,"num_kv_shared_layers":6,'"$wide"'}' "/num_kv_shared_layers: fewer than all"
refuse "a share above 1" '{"model_type":"llama","attention_dropout":1.5}' "/attention_dropout: a share that is dropped"
refuse "an unknown key" '{"model_type":"llama","alibi":true}' "/alibi: not known for model type llama"
refuse "an unknown type" '{"model_type":"rwkv7"}' "there are gpt2, openai-gpt"
refuse "a bart with norms before its branches" '{"model_type":"bart","normalize_before":true}' "/normalize_before: only false is supported"
refuse "waves of an odd width" '{"model_type":"pegasus","d_model":3,"encoder_attention_heads":1,"decoder_attention_heads":1}' "/d_model: an even number"
refuse "a translator of two tables" '{"model_type":"marian","share_encoder_decoder_embeddings":false}' "/share_encoder_decoder_embeddings: only true"
refuse "chunks in a layer that looks at all" '{"model_type":"llama4","text_config":{"model_type":"llama4_text","num_hidden_layers":1,
    "no_rope_layers":[0],"layer_types":["chunked_attention"]}}' "/text_config/layer_types/0: full_attention is expected"
refuse "SparseMixer of one expert" '{"model_type":"phimoe","num_experts_per_tok":1}' "two experts of a token"
refuse "a ModernBERT whose norms have biases" '{"model_type":"modernbert","norm_bias":true}' "/norm_bias: only false"
refuse "a ModernBERT that pools otherwise" '{"model_type":"modernbert","classifier_pooling":"max"}' "/classifier_pooling: cls or mean"
refuse "a decoder that tells a number" '{"model_type":"llama","architectures":["LlamaForSequenceClassification"],"problem_type":"regression"}' \
    "/problem_type: a text's class is told"
refuse "an answer of three ends" '{"model_type":"bert","architectures":["BertForQuestionAnswering"],"num_labels":3}' "/num_labels: an answer has two ends"
refuse "patches that are no square" '{"model_type":"siglip2_vision_model","num_patches":250}' "/num_patches: a square of"
refuse "rows filled up with a token that is none" '{"model_type":"siglip_text_model","vocab_size":10,"pad_token_id":10}' "/pad_token_id: a token of"
refuse "heads that do not divide a stage" '{"model_type":"swin","num_heads":[3,5,12,24]}' "/num_heads: a stage has 1 to"
refuse "places that are learned beside windows" '{"model_type":"swinv2","use_absolute_embeddings":true}' "/use_absolute_embeddings: only false"
refuse "convolutions of other lengths" '{"model_type":"wav2vec2","conv_dim":[8,8],"conv_kernel":[3],"conv_stride":[2,2]}' "/conv_kernel: a list of 2 sizes"
refuse "a text that is told no token" '{"model_type":"wav2vec2","architectures":["Wav2Vec2ForCTC"],"pad_token_id":40}' "/pad_token_id: a token of"
refuse "a sum of layers" '{"model_type":"hubert","architectures":["HubertForSequenceClassification"],"use_weighted_layer_sum":true}' "/use_weighted_layer_sum: only false"
refuse "SigLIP that reads no features" '{"model_type":"siglip_vision_model","vision_use_head":false}' "/vision_use_head: only true, or"
refuse "patches that do not fill a picture" '{"model_type":"dinov2","image_size":518,"patch_size":16}' "/patch_size: image_size must be"
refuse "ALBERT of two groups of layers" '{"model_type":"albert","num_hidden_groups":2}' "/num_hidden_groups: only 1"
refuse "an odd number of buckets" '{"model_type":"mpnet","relative_attention_num_buckets":7}' "/relative_attention_num_buckets: an even number"
refuse "ERNIE with tasks" '{"model_type":"ernie","use_task_id":true}' "/use_task_id: only false"
refuse "proteins placed by distances" '{"model_type":"esm","position_embedding_type":"relative_key"}' "/position_embedding_type: only \"rotary\""
refuse "another choice of experts" '{"model_type":"deepseek_v2","topk_method":"noaux_tc"}' "/topk_method: only greedy and"
refuse "groups of unequal size" '{"model_type":"deepseek_v3","n_group":7}' "/n_group: 256 experts should lie in equal groups of two"
refuse "groups with too few experts" '{"model_type":"deepseek_v3","n_group":128,"topk_group":3}' "/topk_group: 3 groups should have"
refuse "experts by softmax in V3" '{"model_type":"deepseek_v3","scoring_func":"softmax"}' "/scoring_func: only sigmoid"
refuse "another width of keys that turn" '{"model_type":"deepseek_v2","head_dim":128}' "/head_dim: qk_rope_head_dim, 64, is expected"
refuse "shares that add up to a factor" '{"model_type":"deepseek_v2","norm_topk_prob":true,"routed_scaling_factor":2}' \
    "/routed_scaling_factor: a factor above 0"
refuse "experts in every other layer" '{"model_type":"deepseek","moe_layer_freq":2}' "/moe_layer_freq: experts in all layers"
refuse "experts by sigmoids" '{"model_type":"deepseek","scoring_func":"sigmoid"}' "/scoring_func: only softmax"
refuse "another width of heads than of their parts" '{"model_type":"deepseek_v3","qk_head_dim":128}' "/qk_head_dim: 192 is expected"
refuse "more keys than gpt_bigcode shares" '{"model_type":"gpt_bigcode","num_key_value_heads":2}' "/num_key_value_heads: 1 is expected"
refuse "shared keys in gpt_neox" '{"model_type":"gpt_neox","num_attention_heads":7}' "must be a multiple of it"
refuse "experts in other layers than their number says" '{"model_type":"switch_transformers","encoder_sparse_step":3}' \
    "/encoder_sparse_step: layers over num_sparse_encoder_layers are expected, 2"
refuse "a head of narrow embeddings" '{"model_type":"opt","word_embed_proj_dim":512,"tie_word_embeddings":false}' \
    "/word_embed_proj_dim: hidden_size is expected"
refuse "a pattern of windows in letters alone" '{"model_type":"exaone4","sliding_window_pattern":"LLLG"}' "/sliding_window_pattern: letters are"
refuse "heads that four parts do not share" '{"model_type":"codegen","n_head":6,"n_embd":384}' "/n_head: a multiple of 4"
refuse "two features that a number stretches" '{"model_type":"hunyuan_v1_dense","head_dim":2,"rope_scaling":{"type":"dynamic","alpha":9}}' \
    "rotary positions need a base"
refuse "a learned activation elsewhere" '{"model_type":"llama","hidden_act":"xielu"}' "/hidden_act: xielu is supported for model type apertus alone"
refuse "waves of an odd width" '{"model_type":"xglm","d_model":2,"attention_heads":1}' "/d_model: an even number from 4"
refuse "experts with biases" '{"model_type":"ernie4_5_moe","use_bias":true}' "/use_bias: only false"
refuse "too many choices of ernie" '{"model_type":"ernie4_5_moe","moe_k":65}' "/moe_k: a token must go to 1 to 64"
refuse "shares far from a sum of 1" '{"model_type":"ernie4_5_moe","moe_norm_min":0.1}' "/moe_norm_min: at most 1e-6"
refuse "kinds of too few layers" '{"model_type":"gpt_neo","attention_types":[[["global"],3]]}' "/attention_types: kinds of 24 layers"
refuse "a kind of layer of gpt_neo" '{"model_type":"gpt_neo","attention_types":[[["near"],24]]}' "/attention_types/0/0/0: \"global\" or"
refuse "kinds without a number" '{"model_type":"gpt_neo","attention_types":[[["local"]]]}' "/attention_types/0: a list of kinds and"
refuse "other slopes" '{"model_type":"mpt","attn_config":{"alibi_bias_max":16}}' "/attn_config/alibi_bias_max: only 8"
refuse "mpt without slopes" '{"model_type":"mpt","attn_config":{"alibi":false}}' "/attn_config/alibi: only true"
refuse "an unknown key of attn_config" '{"model_type":"mpt","attn_config":{"rope":{}}}' "/attn_config/rope: not supported"
refuse "heads that do not divide mpt" '{"model_type":"mpt","n_heads":7}' "must be a multiple of n_heads"
refuse "an unknown activation" '{"model_type":"llama","hidden_act":"mish"}' "/hidden_act: the activation"
refuse "another scaling" '{"model_type":"llama","rope_scaling":{"type":"xpos","factor":4.0}}' "type \"xpos\""
refuse "divisors of other pairs" '{"model_type":"phi3","rope_scaling":{"type":"longrope","short_factor":[1],"long_factor":[2]}}' \
    "/rope_scaling/short_factor: 48 numbers"
refuse "two wrong numbers of a scaling" '{"model_type":"llama","rope_scaling":{"type":"yarn","factor":"x","beta_fast":"y"}}' "/rope_scaling/factor"
refuse "a size of the wrong type" '{"model_type":"llama","hidden_size":"4096"}' "/hidden_size"
refuse "a size of 0" '{"model_type":"gpt2","n_head":0}' "/n_head"
refuse "heads that do not divide" '{"model_type":"gpt2","n_head":7}' "must be a multiple of n_head"
refuse "heads that do not share alike" '{"model_type":"llama","num_key_value_heads":5}' "cannot share 5"
refuse "more experts a token than there are" '{"model_type":"mixtral","num_experts_per_tok":9}' "1 to 8 experts"
refuse "a billion layers" '{"model_type":"llama","num_hidden_layers":1000000000}' "at most 4096"
refuse "a text's number" '{"model_type":"bert","architectures":["BertForSequenceClassification"],"num_labels":1}' \
    '/: a text'"'"'s class is told, one of two or more'
refuse "several classes of a text" '{"model_type":"bert","architectures":["BertForSequenceClassification"],
    "problem_type":"multi_label_classification"}' '/problem_type: a text'"'"'s class is told'
refuse "a head of its own weights" '{"model_type":"bert","architectures":["BertForMaskedLM"],"tie_word_embeddings":false}' \
    "/tie_word_embeddings: only true"
refuse "classes that are no names" '{"model_type":"bert","architectures":{}}' "/architectures"
refuse "patches that do not fill a picture" '{"model_type":"vit","patch_size":15}' "/patch_size"
refuse "heads of a scan wider than the model" '{"model_type":"mamba2","num_heads":64}' "/num_heads: heads must have 8192 features together"
refuse "a layer of no kind" '{"model_type":"nemotron_h","hybrid_override_pattern":"MX"}' "\"X\" is no layer that is known"
refuse "heads of a scan in groups of different sizes" '{"model_type":"mamba2","n_groups":3}' "cannot be in 3 equal groups"
refuse "heads of values that do not share keys alike" '{"model_type":"qwen3_next","linear_num_value_heads":24}' \
    "/linear_num_value_heads: a multiple of"
refuse "a layer of LFM2 that is neither" '{"model_type":"lfm2","num_hidden_layers":1,"layer_types":["mamba"]}' \
    '"mamba" are not supported; there are full_attention and conv'
refuse "a kind of layer that is not known" '{"model_type":"qwen3","num_hidden_layers":1,"layer_types":["linear_attention"]}' \
    "/layer_types/0: layers of type"
refuse "kinds of other layers" '{"model_type":"gemma2","layer_types":["full_attention"]}' "a word for each of 26 layers"
refuse "layers that turn, of another number" '{"model_type":"smollm3","no_rope_layers":[1,0]}' "a number for each of 36 layers"
refuse "an unknown key of rotary positions" '{"model_type":"qwen2","rope_scaling":{"type":"default","mrope_section":[1,2]}}' \
    "/rope_scaling/mrope_section: not known of rotary positions"
refuse "a window's layers stretched" '{"model_type":"gemma3_text","rope_parameters":{"full_attention":{"rope_type":"default"},
    "sliding_attention":{"rope_type":"linear","factor":2}}}' "/rope_parameters/sliding_attention: only"
refuse "a factor of 0" '{"model_type":"granite","logits_scaling":0}' "/logits_scaling: a factor above 0"
refuse "weights of three bits" '{"model_type":"llama","quantization_config":{"bits":3,"quant_method":"gptq"}}' "quantized weights"
refuse "another version of AWQ" '{"model_type":"llama","quantization_config":{"bits":4,"quant_method":"awq","version":"gemv"}}' \
    "gptq of 4 and 8 bits and awq (gemm) of 4"
refuse "integers of eight bits that are not around 0" '{"model_type":"llama","quantization_config":{"quant_method":"compressed-tensors",
    "format":"int-quantized","config_groups":{"group_0":{"weights":{"num_bits":8,"symmetric":false}}}}}' "int-quantized (8 bits, symmetric)"
refuse "quantized weights" '{"model_type":"llama","quantization_config":{"bits":4}}' "quantized weights"
refuse "weights of four bits" '{"model_type":"llama","quantization_config":{"quant_method":"compressed-tensors","format":"pack-quantized"}}' \
    "quantized weights"
refuse "a text that is no object" "[1]" "an object is expected"
run meshtf-plan import "$work/gpt2" --length 2000 -o "$work/x.json"
claim "more positions than were learned are bad input" bad_input
# T5 1.1 as transformers 5 writes it: the head is the table of 50 x 24, or one more where the file holds it, or none can be read.
t5='{"model_type":"t5","vocab_size":50,"d_model":24,"num_layers":1,"scale_decoder_outputs":false}'
heads() { # how many $parameters it has
    mkdir -p "$work/t5"
    printf '%s' "$t5" >"$work/t5/config.json"
    run meshtf-plan import "$work/t5" --json -o "$work/x.json"
    parameters=$(jq .parameters "$work/out")
}
heads
untied=$parameters
for header in '\022\0\0\0\0\0\0\0{"lm_head.weight":' '\0\0\0\0\0\0\0\020' 'cut'; do
    printf '%b' "$header" >"$work/t5/model.safetensors"
    heads
    claim "a head of its own" [ "$parameters" = "$untied" ]
done
printf '\017\0\0\0\0\0\0\0{"a": [1, 2, 3]}' >"$work/t5/model.safetensors"
heads
claim "a head that is the table" [ "$parameters" = $((untied - 50 * 24)) ]
echo '{"weight_map":{"lm_head.weight":"a.safetensors"}}' >"$work/t5/model.safetensors.index.json"
heads
claim "a head that an index names" [ "$parameters" = "$untied" ]
run meshtf-plan import "$work/nothing" -o "$work/x.json"
claim "a folder that is not there is bad input" bad_input
mkdir "$work/empty"
run meshtf-plan search "$work/empty" --devices 2
claim "a folder without a config is bad input" bad_input
claim "its sentence names the file" says_error "empty/config.json"
run meshtf-plan search "$work/g.json" --batch 3 --devices 2
claim "sizes of models are not for graphs" says_error "--dim batch=64"

# A tiny Llama is searched for and trained, on one, two and four ranks alike.
count tiny 26784 '{"model_type":"llama","hidden_size":32,"intermediate_size":64,"num_hidden_layers":2,
  "num_attention_heads":4,"num_key_value_heads":2,"vocab_size":256,"max_position_embeddings":64,"tie_word_embeddings":true,
  "sliding_window":null}'
for n in 1 2 4; do
    run meshtf-plan search "$work/tiny" --devices $n --machine cpu-host --batch 8 --length 32 -o "$work/p$n.json"
    claim "a plan for $n processors" exits 0
    run mpirun -n $n meshtf-run "$work/p$n.json" --data LICENSE --steps 8 --metrics "$work/m$n.jsonl"
    claim "it trains on $n" exits 0
done
losses() { sed 's/.*"loss": *\([0-9.]*\).*/\1/' "$1"; }
for n in 2 4; do
    losses "$work/m1.jsonl" >"$work/l1"
    losses "$work/m$n.jsonl" >"$work/l$n"
    claim "losses on $n ranks are those on one" sh -c "paste '$work/l1' '$work/l$n' |
        awk '{ d = \$1 - \$2; if (d < 0) d = -d; if (!(d <= 1e-4 * \$1)) exit 1 }'"
done
done_testing
