// SPDX-License-Identifier: GPL-3.0-or-later
/* Transformers as people publish them, described by numbers and built as one graph: what a model's
 * config.json says (architecture_config.h) and what the families of `meshtf-plan model` write.
 *
 *     tokens ─embed─► x ─┬─norm─ self-attention ─norm─┬─► x ─┬─norm─ feed-forward ─norm─┬─► x …
 *                        └────────────────────────────+      └─────────────────────────+
 *     … ─norm─► head ─► logits ─► mean cross entropy
 *
 * Which norms there are, and whether one normalises the branch or the sum, is the difference
 * between GPT-2, BERT and Gemma 2. A decoder beside an encoder has a third part between the two,
 * attention to what the encoder made. Some layers may have something else in the place of attention.
 *
 * Weights have the dimensions of the files they are published in, in that order, so that reading
 * one copies it: [out, in] for most, [in, out] where `in_first`. Query heads that share keys and
 * values are two dimensions, `heads` (of keys) and `group` (queries of each). */
#ifndef MTF_ARCHITECTURE_H
#define MTF_ARCHITECTURE_H

#include "analyzer/models/routing.h"
#include "layouts/graph/graph.h"

/* Where a stack's tensors are in a published file: names without ".weight" and ".bias", behind the
 * layer's prefix. NULL: the part does not exist. */
typedef struct {
    const char *layer; /* "model.layers.%d." */
    const char *q, *k, *v, *o;
    const char *qkv;             /* all three in one tensor, rows of q first */
    const char *q_bias, *v_bias; /* beside such a tensor; whole names */
    const char *head_gate;
    const char *q_norm, *k_norm;
    const char *on_heads, *on_hidden; /* norms of what the last matrix of a part reads */
    const char *q_down, *kv_down,
        *kv_up;              /* by way of a few features; q is from the first of them */
    const char *before_both; /* norm of what parts side by side look at */
    const char *gate, *up, *down;
    const char *gate_up;     /* both in one tensor, rows of the gate first */
    const char *activation;  /* prefix of its learned numbers */
    const char *choice_bias; /* added to shares where they are compared; its whole name */
    const char *router, *expert_gate, *expert_up,
        *expert_down;           /* "{}" stands for the expert; without one a tensor has all */
    const char *expert_gate_up; /* both in one tensor, rows of the gate first */
    const char *expert_narrow, *expert_widen; /* from the model's width to experts', and back */
    const char *shared_gate, *shared_up, *shared_down;   /* beside them */
    const char *shared_gate_up;                          /* the first two in one tensor */
    const char *shared_share;                            /* of it in what a token gets; NULL: all */
    const char *before_experts, *on_experts, *on_shared; /* norms where each has its own */
    const char *router_scale,
        *expert_scales; /* of what the router reads, behind a norm without one, and of each
                                                 expert; whole names */
    const char *before_attention, *on_attention, *after_attention; /* norms */
    const char *before_ffn, *on_ffn, *after_ffn;
    const char *cross_q, *cross_k, *cross_v, *cross_o, *before_cross, *after_cross;
    const char *buckets; /* table of relative positions, behind the prefix of each layer with one */
    const char *grid_table;    /* of a picture's patches, by how far they are apart; whole name */
    const char *distances;     /* table of disentangled attention; whole name */
    const char *distance_norm; /* likewise */
    const char *distance_q, *distance_k; /* what its rows go through; NULL: through `q` and `k` */
    const char *position_gate,
        *position_factor;       /* what lets the bias of scores by positions through (WavLM) */
    const char *sinks;          /* each head's score of nothing; its whole name */
    const char *final_norm;     /* with its own prefix */
    const char *positions;      /* likewise */
    const char *embedding_norm; /* likewise */
    const char *attention_factors, *ffn_factors; /* of what a part adds, by feature; whole names */
    const char *layer_factor;                    /* of all that a layer makes; whole name */
    /* Of what each layer reads of the token (mixers/token_input.c): one table, matrix and norm of all layers,
     * with their own prefixes, and what a layer has. */
    const char *token_table, *token_read, *token_norm;
    const char *token_gate, *token_out, *on_token;
} MtfStackNames;

#define MTF_MOST_STREAMS 16
#define MTF_MOST_PAIRS 256 /* of rotary features that have divisors of their own */

typedef enum {
    MTF_WINDOW_NONE,
    MTF_WINDOW_ALL,    /* every layer */
    MTF_WINDOW_EVEN,   /* layers 0, 2, 4, … */
    MTF_WINDOW_FROM,   /* layers from `window_from` on */
    MTF_WINDOW_LISTED, /* those of `window_layers` */
} MtfWindowRule;

/* Norms of queries and keys. */
typedef enum {
    MTF_HEAD_NORM_NONE,
    MTF_HEAD_NORM_EACH, /* of each head, all by one scale */
    MTF_HEAD_NORM_OWN,  /* of each head, by a scale of its own, without a bias */
    MTF_HEAD_NORM_WIDE, /* of all heads together */
    MTF_HEAD_NORM_BARE, /* of each head without a scale, in layers that turn */
} MtfHeadNorm;

/* A set of layers, a bit each. */
#define MTF_MOST_LAYERS 4096
typedef uint64_t MtfLayerSet[MTF_MOST_LAYERS / 64];

static inline void mtf_layers_add(MtfLayerSet layers, int64_t layer) {
    layers[layer / 64] |= UINT64_C(1) << layer % 64;
}

static inline bool mtf_layers_have(const MtfLayerSet layers, int64_t layer) {
    return layer < MTF_MOST_LAYERS && (layers[layer / 64] >> layer % 64 & 1) != 0;
}

/* What some layers have in the place of attention (mixers/). */
typedef enum {
    MTF_MIXER_CONVOLUTION, /* gates around a causal convolution of each feature (LFM2) */
    MTF_MIXER_DELTA,       /* a matrix of each head that forgets and is corrected (Qwen 3 Next) */
    MTF_MIXER_SCAN,        /* numbers of each feature that forget as what is read says (Mamba) */
    MTF_MIXER_HEAD_SCAN,   /* the same, alike for all features of a head (Mamba 2) */
    MTF_MIXER_LIGHTNING,   /* a matrix of each head that forgets at a speed of its own (MiniMax) */
    MTF_MIXER_WKV,         /* means of each feature that forget, as a loop (RWKV 4) */
    MTF_MIXER_GATED,       /* a number of each feature that forgets as gates say (RecurrentGemma) */
} MtfMixerKind;

typedef struct {
    MtfMixerKind kind;
    MtfLayerSet layers; /* that have it */
    bool beside;        /* attention, not in its place: both read the same, and are added up */
    double scale;       /* of what it makes; 0: 1 */
    int64_t taps;       /* places that its convolution reads, the last its own */
    bool bias, convolution_bias;
    const char *read_norms[3]; /* of what steps come from, B and C, where they have scales */
    bool norm_by_group;    /* of MTF_MIXER_HEAD_SCAN: each group of heads has a mean of its own */
    bool norm_before_gate; /* of it; where it has a norm at all */
    double part_scales[5]; /* of it: of the gate, u, B, C and steps as they are read; 0: 1 */
    double step_low, step_high; /* of it: steps stay within; 0, 0: anywhere */
    /* Of MTF_MIXER_SCAN: features, numbers that each keeps, and what steps come from. */
    int64_t d_inner, d_state, d_rank;
    double bare_epsilon; /* of its norms without a scale of what is read; 0: none */
    /* Of MTF_MIXER_DELTA and MTF_MIXER_LIGHTNING; of MTF_MIXER_HEAD_SCAN heads of keys are groups of heads that read the same. */
    int64_t key_heads, value_heads, d_key, d_value;
    /* Names as of MtfStackNames. Without a tensor of their own the gate stands in that of q, k and v, and what
     * forgets in that of what corrects, all of one head of keys together. */
    const char *in, *gate, *correct, *forget;
    const char *ins[3],
        *convolutions[3]; /* of MTF_MIXER_DELTA, instead of `in` and `convolution`: q, k, v */
    double correct_scale, norm_epsilon; /* of it; 0: 1, and the model's */
    const char *convolution, *norm, *out;
    const char *forget_rate, *forget_bias, *skip; /* whole names */
    const char *read,
        *step; /* of MTF_MIXER_SCAN; of MTF_MIXER_GATED gates, of inputs and of what is forgotten */
} MtfMixer;

/* A stack of equal layers. */
typedef struct {
    /* Heads of queries are a multiple of kv_heads; 0: none has attention. */
    int64_t layers, heads, kv_heads, d_kv, d_ff;
    int64_t whole_d_kv, whole_kv_heads; /* of layers without a window; 0: as the others */
    bool values_are_keys;               /* of these layers, before norms and turns */
    bool value_norm;                    /* heads of values have a norm without a scale */
    /* The last layers have no keys and values, but those of the last layer of their kind before them; and twice the
     * width of their feed-forward part. */
    int64_t borrowing_layers;
    bool borrowers_wide;
    int64_t d_token,
        token_vocab; /* width and rows of what each layer reads of the token; 0: nothing */
    /* Residual streams (mixers/streams.c), 0: one as everywhere else; the width of the part beside attention that layers
     * with them have; whether what is read of the token sees the first one's features times factors. */
    int64_t streams, d_narrow;
    bool stream_factors;
    bool one_for_all;       /* the first layer's weights are all layers' */
    int64_t d_latent;       /* features that keys and values of all heads come from; 0: from x */
    int64_t d_query_latent; /* likewise of queries */
    int64_t d_turned,
        d_value; /* with d_latent: features of d_kv, the last, that turn; of a value */
    bool causal, cross;
    bool gated;
    MtfLayerSet sparse_layers; /* whose gates are opened by their largest features alone, */
    double sparse_deviations;  /* which are so many standard deviations above their mean */
    const char *activation;    /* an operation's name */
    double scale;              /* of the scores; 1 / sqrt(d_kv) in most models */
    double attention_scale, ffn_scale, gate_scale; /* of what a part makes, and of gates before
                                                      their function; 0: 1 */
    /* Parts add what they make to what they read, behind its norm, times a number for mixers, attention and the
     * feed-forward part, not to x. */
    bool add_to_normed;
    double kept_scales[3];
    bool scale_by_layer; /* which is divided by the number of the layer, from 1 */
    double softcap;      /* of the scores: s -> cap tanh(s / cap); 0: none */
    int64_t window; /* positions that a query sees on each side it looks to, its own included */
    int64_t chunk;  /* layers that turn look back to the last multiple of it; 0: further */
    /* Queries of layers that do not turn, or of all, are multiplied by 1 + temper ln(1 + floor(place / temper_places)), the
     * first place being 1, of all layers 0; 0: by nothing. */
    int64_t temper_places;
    bool temper_all;
    double temper;
    bool first_unnormed; /* layer 0 has no norm before attention */
    bool norm_tokens;    /* the norm of embeddings is of tokens alone, before positions are added */
    MtfWindowRule window_rule;
    int64_t window_from;
    MtfLayerSet window_layers;
    bool q_bias, k_bias, v_bias, o_bias, ffn_bias;
    bool
        head_gate; /* what each head makes is multiplied by a sigmoid, which `head_gate` has, or q, head by
                       head behind the query */
    MtfHeadNorm head_norm;
    bool head_norm_last; /* behind the turn by positions, not before it */
    bool qkv_by_head;  /* names.qkv has q, k, v of the first head of keys, then of the second … */
    int64_t qkv_parts; /* or the number of equal parts of the heads, q, k, v in each; 0: all
                          heads at once */
    bool values_before_keys; /* there */
    bool
        mixers_lead; /* norms stand before the parts of layers that mix, and behind those of others */
    double
        grid_base; /* patches turn by their rows and columns (mixers/picture_grid.c); 0: not so */
    double qkv_limit;  /* q, k and v stay within it; 0: none */
    bool alibi;        /* scores fall with the distance, in each head by a slope of its own */
    bool coarse_alibi; /* in bfloat16, and then multiplied by the scale of the scores (Falcon) */
    bool channel_mix;  /* their feed-forward part is RWKV's (mixers/wkv.c) */
    bool one_part;     /* layers have no feed-forward part */
    MtfLayerSet ffn_layers;      /* or have that alone */
    bool parallel;               /* both parts of a layer look at its input */
    double rotary_base;          /* 0: no rotary positions */
    double rotary_share;         /* of each head's features that turn; 1 */
    bool rotary_sections;        /* that count alike in texts, and not in pictures */
    bool rotary_adjacent;        /* pairs lie side by side, not half of the features apart */
    double rotary_angle;         /* by which every angle is multiplied; 1 */
    double window_rotary_base;   /* of layers with a window, unstretched; 0: as the others */
    MtfLayerSet straight_layers; /* do not turn */
    double rotary_context, rotary_stretch, rotary_low, rotary_high; /* as the rotary row has them */
    double rotary_ramp, rotary_gain, rotary_growth;
    int rotary_divided; /* pairs that `rotary_short` and, for long texts, `rotary_long` divide; 0: none */
    double rotary_short[MTF_MOST_PAIRS], rotary_long[MTF_MOST_PAIRS];
    int64_t buckets, max_distance; /* of relative positions; 0: none */
    bool buckets_by_layer;         /* each layer has a table of them */
    /* Disentangled attention: rows that its table has on each side, the furthest distance that is told where
     * buckets grow (0: each has a row), and whether queries and keys are multiplied by them. */
    int64_t distance_rows, furthest;
    bool query_to_distance, key_to_distance;
    bool distance_k_bare; /* what keys are made of distances by has no bias */
    int64_t experts, experts_per_token, d_expert; /* experts 0: none */
    int64_t d_expert_model; /* features that experts read and make; 0: the model's */
    int64_t d_shared;       /* width of what all tokens go through beside experts; 0: nothing */
    int64_t sparse_step; /* one layer in `sparse_step` has experts; those of the mask have none */
    uint64_t dense_layers[4];
    double expert_scale;     /* of what experts make together; 0: 1 */
    bool choice_bias_is_row; /* files keep it as a matrix of one row */
    bool gate_on_input;      /* experts read a token times its share, and what they make is added */
    bool experts_in_first;   /* files keep theirs as [experts, in, out], without a suffix */
    bool experts_bare;       /* or as [experts, out, in] without one */
    bool experts_joined;     /* or all as one matrix, one below the other: [experts out, in], of
                                the last [experts in, out] */
    bool experts_alternate;  /* outputs of gate and up take turns in a tensor of both */
    bool expert_bias;        /* of experts and their router */
    double gate_limit;       /* of gate and up, which are multiplied as gpt-oss does; 0: neither */
    bool renormalise;        /* shares of the chosen experts add up to 1 */
    MtfRouting routing;      /* how tokens are sent to experts; sizes are those above */
    MtfMixer mixer;
    MtfStackNames names;
} MtfStack;

typedef enum {
    MTF_ARCHITECTURE_DECODER,         /* next token, or the text's class */
    MTF_ARCHITECTURE_ENCODER,         /* every token, all seen, or the text's class */
    MTF_ARCHITECTURE_ENCODER_DECODER, /* next token of the second text */
    MTF_ARCHITECTURE_SPEECH,          /* next token of a text, by a decoder that attends to sound */
    MTF_ARCHITECTURE_IMAGE,           /* the class of a picture, by an encoder of its patches */
    MTF_ARCHITECTURE_CONVOLUTIONS,    /* the same, by convolutions */
    MTF_ARCHITECTURE_WINDOWS,         /* the same, by attention within windows */
    MTF_ARCHITECTURE_SOUND, /* the class of a sound's samples, or of each place in it, by an encoder */
} MtfArchitectureKind;

/* A layer before the scores, in files; NULL: none. */
typedef struct {
    const char *dense, *norm;
    const char *activation; /* an operation's name; NULL: none */
} MtfHeadLayer;

/* Where a picture's parts are in files, whole names; NULL: there is none. */
typedef struct {
    const char *patch;                         /* without ".weight" and ".bias" */
    const char *class_place, *teacher, *table; /* places before the patches; all places' table */
    const char *probe;                         /* prefix of what a learned query has of its own */
    const char *registers;                     /* places without a position (DINOv2) */
    int64_t n_registers;
    /* Of a spectrum: bands and times, and how far one patch is behind another in both; 0: it is a picture. */
    int64_t bands, times, band_stride, time_stride;
    bool patch_bare; /* without a bias */
    bool patch_flat; /* its inputs are pixel after pixel of all channels in one row */
    bool as_tables;  /* the class's place is kept as a vector, and the table as that of an
                        embedding */
} MtfPictureNames;

#define MTF_MOST_STAGES 16

/* Blocks that add to their input (images/published_convolutions.c). */
typedef enum {
    MTF_BLOCK_BASIC, /* ResNet's */
    MTF_BLOCK_BOTTLENECK,
    MTF_BLOCK_CONVNEXT,
    MTF_BLOCK_CONVNEXT_V2,
} MtfConvolutionBlock;

/* Stages of blocks, each with its number of blocks and channels. */
typedef struct {
    MtfConvolutionBlock block;
    int stages;
    int64_t depths[MTF_MOST_STAGES], widths[MTF_MOST_STAGES];
    int64_t embedding;  /* channels before the first, of ResNet */
    bool shrinks_first; /* the first stage halves rows and columns, too */
    bool shrinks_early; /* the first convolution of a bottleneck does, not the second */
    bool factors;       /* of what a block adds, one a channel */
} MtfConvolutions;

/* Stages of layers that attend within windows (signals/shifted_windows.c); d_model is the first one's width. */
typedef struct {
    int stages;
    int64_t depths[MTF_MOST_STAGES], heads[MTF_MOST_STAGES];
    int64_t window; /* places a side */
    double ratio;   /* of the hidden layer's width to the stage's */
    bool
        second; /* of the second version: norms behind parts, scores of angles, biases that a hidden layer makes */
    int64_t pretrained
        [MTF_MOST_STAGES]; /* the window that its distances are shares of; 0: the stage's */
} MtfWindows;

/* Convolutions over a sound's samples (signals/waveform.c). */
typedef struct {
    int layers;
    int64_t channels[MTF_MOST_STAGES], taps[MTF_MOST_STAGES], strides[MTF_MOST_STAGES];
    bool bias;
    bool
        norm_each; /* of all channels of a time, behind each; or behind the first of each channel */
    bool bare_projection;             /* no norm before what they make is widened */
    const char *activation;           /* an operation's name */
    int place_layers;                 /* that tell places apart, */
    int64_t place_taps, place_groups; /* each over so many of them, of groups of features */
} MtfSound;

/* Times before convolution number `layer` (samples: 0) that leave so many places behind the last. */
int64_t mtf_sound_times(const MtfSound *sound, int layer, int64_t length);

/* Places of the last layer that a class is read from. */
typedef enum {
    MTF_READ_FIRST,
    MTF_READ_LAST,    /* of a text, which may not fill its row */
    MTF_READ_ROW,     /* of a text's row, which a token fills up that is seen like others */
    MTF_READ_TEXT,    /* the mean of a text's places */
    MTF_READ_PATCHES, /* their mean */
    MTF_READ_TWO,     /* the mean of the first two */
    MTF_READ_BOTH,    /* the first, then that mean */
    MTF_READ_EACH,    /* each place, for a class of its own */
    MTF_READ_ALIGNED, /* each place, for a token of a text or none (signals/alignment.c) */
    MTF_READ_ENDS,    /* each place, for whether an answer begins or ends there; two classes */
    MTF_READ_PROBE, /* what one learned query finds in all, by attention and a hidden layer (SigLIP) */
} MtfClassPlace;

/* Rates of what is dropped while training. */
typedef struct {
    double shares; /* of memory, in attention */
    double branches, embeddings;
} MtfDropoutRates;

typedef struct {
    char name[64];
    MtfArchitectureKind kind;
    int64_t batch, length, source_length;
    int64_t context;     /* longest text the model was made for */
    int64_t old_context; /* and before it was stretched, where a type has a standard; 0: context */
    int64_t vocab, d_model, max_positions; /* of learned positions; 0: none */
    int64_t source_vocab;  /* of a source with a table of its own; 0: both texts share one */
    bool shared_positions; /* one table of positions for both texts */
    bool waves;            /* positions are sines and cosines */
    bool waves_to_end; /* the longest of them turns by 1/10000 a position, not by one step more */
    bool packed;       /* rows hold several pairs that do not see one another, or are filled up */
    bool unpublished;  /* no file keeps its weights */
    MtfDropoutRates dropout;
    double smoothing;                         /* of labels */
    int64_t first_position;                   /* row of the first position in their table */
    int64_t image_size, patch_size, channels; /* of pictures, which are square */
    MtfPictureNames picture;
    MtfClassPlace class_place;
    int64_t filling; /* of MTF_READ_ROW: that token */
    int64_t
        blank; /* of MTF_READ_ALIGNED: the class of no token; whether the loss is a mean by tokens, and that of texts
                      longer than their sound 0 */
    bool aligned_mean, aligned_or_nothing;
    const char *class_norm; /* of what a class is read from, with its own prefix */
    bool head_bare;         /* scores of classes have no bias */
    int64_t classes;     /* of pictures, or of the texts that are read; 0: it tells their tokens */
    int64_t token_types; /* rows of the table of segments; 0: none */
    int64_t d_embed;     /* width of embeddings that a matrix brings to d_model; 0: d_model */
    bool widened_first;  /* before positions are added, without a bias */
    bool rms, norm_plus_one;       /* kind of norms; scale is stored less 1 */
    bool norm_unbiased, norm_bare; /* norms of means have no bias; no scale either */
    bool in_first;                 /* matrices are stored [in, out] */
    double epsilon;
    double embedding_scale, logit_scale, logit_softcap; /* 1, 1, 0 */
    double branch_scale;                                /* of what a part of a layer adds; 0: 1 */
    bool tied, head_bias;
    bool tied_by_files; /* not tied, unless files hold no head */
    bool pooler;        /* a layer over the first position, beside the loss */
    double spread; /* standard deviation of initial weights; 0: 1 / sqrt(inputs), embeddings 1 */
    const char *embedding, *token_type_table, *widening; /* in files */
    const char *narrowing;          /* before a tied head; NULL: `widening` the other way round */
    const char *head, *pooler_name; /* no head of classes: what is read is scores */
    const char *head_bias_row; /* that bias where files keep it as one row, which nobody trains */
    MtfHeadLayer head_layer;   /* of encoders */
    bool head_layer_bare;      /* without a bias */
    int64_t d_head;            /* its width, of classes; 0: the model's */
    MtfStack encoder, decoder; /* one of them, or both */
    MtfConvolutions convolutions;
    MtfSound sound;
    MtfWindows windows;
} MtfArchitecture;

/* The forward graph with its loss. Fails with a bad-input error when sizes do not go together or
 * overflow. */
MtfGraph *mtf_architecture_build(const MtfArchitecture *network, GError **error);

/* The same of convolutions, in images/. */
MtfGraph *mtf_convolutions_build(const MtfArchitecture *network, GError **error);

/* Each expert's matrices become tensors of their own in files, called as files of Qwen and DeepSeek call them. */
void mtf_stack_part_experts(MtfStack *stack);

#endif
