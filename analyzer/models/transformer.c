// SPDX-License-Identifier: GPL-3.0-or-later
/* Decoder-only Transformers with layer norm before each part: the language model of the
 * Mesh-TensorFlow paper (Shazeer and others, "Mesh-TensorFlow: deep learning for supercomputers",
 * 2018, section 9) and the GPT family.
 *
 *     tokens ─embed─► x ─┬─norm─ attention ─┬─► x ─┬─norm─ feed-forward ─┬─► x … ─norm─► logits
 *                        └──────────────────+      └────────────────────+
 *
 * Keys and values are renamed from `length` to `memory_length`, so that the scores have two
 * different dimensions. The renaming comes after the projections, so that the gradients through
 * q, k and v are three products that meet in one sum. */
#include "analyzer/models/model_family.h"
#include "analyzer/models/model_parts.h"

#include <math.h>
#include <string.h>

/* The model under construction. */
typedef struct {
    MtfParts *p;
    const MtfModelSettings *s;
    int batch, length, memory_length, d_model, d_ff, heads, d_kv, vocab;
    double spread;          /* standard deviation of initial weights */
    double residual_spread; /* of the weights whose products the residual stream adds up */
} Model;

#define SHAPE(...) (&(MtfShape){ (int)G_N_ELEMENTS(((int[]){ __VA_ARGS__ })), { __VA_ARGS__ } })

static int add_to_stream(Model *m, const char *name, int x, int y) {
    return mtf_parts_add(m->p, name, x, mtf_parts_dropout(m->p, "dropped", m->s->dropout, y));
}

/* Adds a bias of that shape when the model has biases. */
static int biased(Model *m, const char *name, int x, const MtfShape *shape) {
    if (!m->s->biases)
        return x;
    g_autofree char *bias = g_strdup_printf("%s_bias", name);
    g_autofree char *sum = g_strdup_printf("%s_biased", name);
    return mtf_parts_add(m->p, sum, x, mtf_parts_variable(m->p, bias, shape, MTF_INIT_CONSTANT, 0));
}

static int norm(Model *m, int x) {
    MtfShape shape = *SHAPE(m->d_model);
    int scale = mtf_parts_variable(m->p, "norm_scale", &shape, MTF_INIT_CONSTANT, 1);
    int bias =
        m->s->biases ? mtf_parts_variable(m->p, "norm_bias", &shape, MTF_INIT_CONSTANT, 0) : -1;
    return mtf_parts_norm(m->p, "norm", m->d_model, (int[]){ x, scale, bias });
}

/* x times a new matrix [d_model, heads, d_kv], "q", "k" or "v". */
static int project(Model *m, const char *name, int x) {
    g_autofree char *weight = g_strdup_printf("w%s", name);
    int w = mtf_parts_variable(m->p, weight, SHAPE(m->d_model, m->heads, m->d_kv), MTF_INIT_NORMAL,
                               m->spread);
    int y = mtf_parts_einsum(m->p, name, SHAPE(m->batch, m->length, m->heads, m->d_kv), x, w);
    return biased(m, name, y, SHAPE(m->heads, m->d_kv));
}

static int remember(Model *m, const char *name, int x) {
    m->p->b.attributes.from = m->length;
    m->p->b.attributes.to = m->memory_length;
    return mtf_parts_apply(m->p, MTF_OP_RENAME, name, NULL, x, -1);
}

/* The share of each remembered position in each position: softmax of q k / sqrt(d_kv). */
static int weights(Model *m, int q, int k) {
    m->p->b.attributes.factor = 1 / sqrt((double)m->s->d_kv);
    int query = mtf_parts_apply(m->p, MTF_OP_SCALE, "query", NULL, q, -1);
    int scores =
        mtf_parts_einsum(m->p, "scores", SHAPE(m->batch, m->heads, m->length, m->memory_length),
                         query, remember(m, "key", k));
    m->p->b.attributes.query = m->length;
    m->p->b.attributes.memory = m->memory_length;
    int masked = mtf_parts_apply(m->p, MTF_OP_CAUSAL_MASK, "causal", NULL, scores, -1);
    m->p->b.attributes.dimension = m->memory_length;
    int shares = mtf_parts_apply(m->p, MTF_OP_SOFTMAX, "weights", NULL, masked, -1);
    return mtf_parts_dropout(m->p, "weights_dropped", m->s->dropout, shares);
}

/* What each position gets from those it looks at, by the attention row of the operation table. */
static int attend_blockwise(Model *m, int q, int k, int v) {
    int inputs[3] = { q, remember(m, "key", k), remember(m, "value", v) };
    m->p->b.attributes.query = m->length;
    m->p->b.attributes.memory = m->memory_length;
    m->p->b.attributes.dimension = m->d_kv;
    m->p->b.attributes.factor = 1 / sqrt((double)m->s->d_kv);
    m->p->b.attributes.causal = 1;
    m->p->b.attributes.rate = m->s->dropout;
    return mtf_parts_apply_to(m->p, MTF_OP_ATTENTION, "context", 3, inputs);
}

/* The same with the scores as a tensor. */
static int attend_composite(Model *m, int q, int k, int v) {
    int shares = weights(m, q, k);
    return mtf_parts_einsum(m->p, "context", SHAPE(m->batch, m->length, m->heads, m->d_kv), shares,
                            remember(m, "value", v));
}

static int attention(Model *m, int x) {
    mtf_parts_enter(m->p, "attention");
    int normal = norm(m, x);
    int q = project(m, "q", normal), k = project(m, "k", normal), v = project(m, "v", normal);
    bool blockwise = strcmp(m->s->attention, "blockwise") == 0;
    int context = (blockwise ? attend_blockwise : attend_composite)(m, q, k, v);
    int wo = mtf_parts_variable(m->p, "wo", SHAPE(m->heads, m->d_kv, m->d_model), MTF_INIT_NORMAL,
                                m->residual_spread);
    int out = mtf_parts_einsum(m->p, "out", SHAPE(m->batch, m->length, m->d_model), context, wo);
    int y = add_to_stream(m, "x", x, biased(m, "out", out, SHAPE(m->d_model)));
    mtf_parts_leave(m->p);
    return y;
}

static int feed_forward(Model *m, int x) {
    mtf_parts_enter(m->p, "ffn");
    int normal = norm(m, x);
    int w1 = mtf_parts_variable(m->p, "w1", SHAPE(m->d_model, m->d_ff), MTF_INIT_NORMAL, m->spread);
    int hidden = mtf_parts_einsum(m->p, "hidden", SHAPE(m->batch, m->length, m->d_ff), normal, w1);
    hidden = biased(m, "hidden", hidden, SHAPE(m->d_ff));
    int active = mtf_parts_activation(m->p, m->s->activation, hidden);
    int w2 = mtf_parts_variable(m->p, "w2", SHAPE(m->d_ff, m->d_model), MTF_INIT_NORMAL,
                                m->residual_spread);
    int out = mtf_parts_einsum(m->p, "out", SHAPE(m->batch, m->length, m->d_model), active, w2);
    int y = add_to_stream(m, "x", x, biased(m, "out", out, SHAPE(m->d_model)));
    mtf_parts_leave(m->p);
    return y;
}

/* Token and position embeddings; `*table` receives the token embedding. */
static int embed(Model *m, int tokens, int *table) {
    *table = mtf_parts_variable(m->p, "embedding", SHAPE(m->vocab, m->d_model), MTF_INIT_NORMAL,
                                m->spread);
    int positions = mtf_parts_variable(m->p, "positions", SHAPE(m->length, m->d_model),
                                       MTF_INIT_NORMAL, m->spread / 2);
    int rows = mtf_parts_apply(m->p, MTF_OP_EMBEDDING, "embed",
                               SHAPE(m->batch, m->length, m->d_model), *table, tokens);
    int x = mtf_parts_add(m->p, "x", rows, positions);
    return mtf_parts_dropout(m->p, "x_dropped", m->s->dropout, x);
}

/* The mean cross entropy of the next token. */
static void add_loss(Model *m, int x, int table) {
    mtf_parts_enter(m->p, "head");
    int normal = norm(m, x);
    int w = m->s->tied ? table
                       : mtf_parts_variable(m->p, "w", SHAPE(m->vocab, m->d_model), MTF_INIT_NORMAL,
                                            m->spread);
    mtf_parts_leave(m->p);
    int logits = mtf_parts_einsum(m->p, "logits", SHAPE(m->batch, m->length, m->vocab), normal, w);
    int targets =
        mtf_parts_input(m->p, "targets", SHAPE(m->batch, m->length), MTF_I32, MTF_FEED_NEXT_TOKENS);
    int losses = mtf_parts_apply(m->p, MTF_OP_SOFTMAX_CROSS_ENTROPY, "losses",
                                 SHAPE(m->batch, m->length), logits, targets);
    m->p->b.graph->loss =
        mtf_parts_apply(m->p, MTF_OP_REDUCE_MEAN, "loss", &(MtfShape){ 0 }, losses, -1);
}

static void add_dimensions(Model *m) {
    const MtfModelSettings *s = m->s;
    m->batch = mtf_parts_dimension(m->p, "batch", s->batch);
    m->length = mtf_parts_dimension(m->p, "length", s->length);
    m->memory_length = mtf_parts_dimension(m->p, "memory_length", s->length);
    m->d_model = mtf_parts_dimension(m->p, "d_model", s->d_model);
    m->d_ff = mtf_parts_dimension(m->p, "d_ff", s->d_ff);
    m->heads = mtf_parts_dimension(m->p, "heads", s->heads);
    m->d_kv = mtf_parts_dimension(m->p, "d_kv", s->d_kv);
    m->vocab = mtf_parts_dimension(m->p, "vocab", s->vocab);
}

/* Initial weights as in GPT-2: 0.02, and less by sqrt(2 layers) where the residual stream adds up
 * 2 layers of products. */
static MtfGraph *build(const MtfModelSettings *settings, GError **error) {
    Model m = { .p = mtf_parts_new(), .s = settings, .spread = 0.02 };
    m.residual_spread = m.spread / sqrt(2 * fmax(1, (double)settings->layers));
    add_dimensions(&m);
    int tokens = mtf_parts_input(m.p, "tokens", SHAPE(m.batch, m.length), MTF_I32, MTF_FEED_TOKENS);
    int table;
    int x = embed(&m, tokens, &table);
    for (int layer = 0; layer < settings->layers && m.p->b.error == NULL; layer++) {
        mtf_parts_enter_layer(m.p, "layer", layer);
        x = feed_forward(&m, attention(&m, x));
        mtf_parts_leave_layer(m.p);
    }
    add_loss(&m, x, table);
    return mtf_parts_end(m.p, error);
}

/* The sizes of the paper: d_ff = 8192 2^s and heads = 8 2^s; Adafactor, as there. */
#define PAPER                                                                          \
    "layers=6 batch=256 length=256 d-model=1024 d-kv=256 vocab=32768 activation=relu " \
    "attention=composite optimizer=adafactor schedule=inverse_sqrt rate=0.01 warmup=10000 "
#define PAPER_SIZE(s, parameters_text, sizes) \
    MTF_PRESET("size" #s, "the paper's size " #s ", " parameters_text " parameters", PAPER sizes)

static const MtfModelPreset paper_presets[] = {
    MTF_PRESET(
        "demo", "byte-level, 3.3 million parameters, trains in minutes",
        "layers=4 batch=16 length=128 d-model=256 d-ff=1024 heads=4 d-kv=64 vocab=256 "
        "activation=relu attention=composite optimizer=adam schedule=linear_warmup rate=1e-3 "
        "warmup=40"),
    MTF_PRESET(
        "tiny", "byte-level, trains in seconds",
        "layers=2 batch=8 length=32 d-model=64 d-ff=256 heads=4 d-kv=16 vocab=256 "
        "activation=relu attention=composite optimizer=adam schedule=linear_warmup rate=1e-3 "
        "warmup=10"),
    PAPER_SIZE(0, "0.22 billion", "d-ff=8192 heads=8"),
    PAPER_SIZE(1, "0.37 billion", "d-ff=16384 heads=16"),
    PAPER_SIZE(2, "0.67 billion", "d-ff=32768 heads=32"),
    PAPER_SIZE(3, "1.28 billion", "d-ff=65536 heads=64"),
    PAPER_SIZE(4, "2.48 billion", "d-ff=131072 heads=128"),
    PAPER_SIZE(5, "4.90 billion", "d-ff=262144 heads=256"),
    MTF_NO_PRESET,
};

#define GPT \
    "vocab=50257 biases=1 tied=1 activation=gelu attention=blockwise schedule=cosine final=0.1 "
/* GPT-2 of other sizes (Radford and others, 2019, table 2), with heads of 64. */
#define GPT2 \
    GPT "batch=32 length=1024 d-kv=64 optimizer=adamw rate=3e-4 warmup=2000 total=600000 clip-norm=1 "
/* GPT-3 of other sizes (Brown and others, 2020, table 2.1); a batch is of texts of 2048 tokens. */
#define GPT3 GPT "length=2048 optimizer=adamw rate=3e-4 warmup=375 total=300000 clip-norm=1 "

static const MtfModelPreset gpt_presets[] = {
    MTF_PRESET("gpt2-small", "12 layers of 768, 124 million parameters",
               GPT2 "layers=12 d-model=768 d-ff=3072 heads=12 rate=6e-4"),
    MTF_PRESET("gpt3-175b", "96 layers of 12288, 175 billion parameters",
               GPT "layers=96 batch=1536 length=2048 d-model=12288 d-ff=49152 heads=96 d-kv=128 "
                   "optimizer=adafactor rate=0.6e-4 warmup=183 total=127000"),
    MTF_PRESET("gpt3-small", "125 million",
               GPT3 "layers=12 batch=256 d-model=768 d-ff=3072 heads=12 d-kv=64"),
    MTF_PRESET("gpt3-medium", "350 million",
               GPT3 "layers=24 batch=256 d-model=1024 d-ff=4096 heads=16 d-kv=64"),
    MTF_PRESET("gpt3-large", "760 million",
               GPT3 "layers=24 batch=256 d-model=1536 d-ff=6144 heads=16 d-kv=96"),
    MTF_PRESET("gpt3-xl", "1,315,723,264 parameters: 16 heads of 128, where 24 are printed",
               GPT3 "layers=24 batch=512 d-model=2048 d-ff=8192 heads=16 d-kv=128"),
    MTF_PRESET("gpt3-2.7b", "2.7 billion",
               GPT3 "layers=32 batch=512 d-model=2560 d-ff=10240 heads=32 d-kv=80"),
    MTF_PRESET("gpt3-6.7b", "6.7 billion",
               GPT3 "layers=32 batch=1024 d-model=4096 d-ff=16384 heads=32 d-kv=128"),
    MTF_PRESET("gpt3-13b", "13 billion, as printed: 40 heads of 128 beside 5140",
               GPT3 "layers=40 batch=1024 d-model=5140 d-ff=20560 heads=40 d-kv=128"),
    MTF_PRESET("gpt2-medium", "354,823,168 parameters",
               GPT2 "layers=24 d-model=1024 d-ff=4096 heads=16"),
    MTF_PRESET("gpt2-large", "774,030,080 parameters",
               GPT2 "layers=36 d-model=1280 d-ff=5120 heads=20"),
    MTF_PRESET("gpt2-xl", "1,557,611,200 parameters",
               GPT2 "layers=48 d-model=1600 d-ff=6400 heads=25"),
    MTF_PRESET("tiny", "byte-level, trains in seconds",
               "layers=2 batch=8 length=32 d-model=64 d-ff=256 heads=4 d-kv=16 vocab=256 biases=1 "
               "tied=1 activation=gelu attention=blockwise optimizer=adamw schedule=linear_warmup "
               "rate=3e-3 warmup=10"),
    MTF_NO_PRESET,
};

#define OPTIONS \
    "layers batch length d-model d-ff heads d-kv vocab biases tied dropout activation attention"

const MtfModelFamily mtf_model_transformer_lm = {
    .name = "transformer-lm",
    .summary = "language model of the Mesh-TensorFlow paper",
    .parameters = OPTIONS,
    .presets = paper_presets,
    .build = build,
};

const MtfModelFamily mtf_model_gpt = {
    .name = "gpt",
    .summary = "GPT-2 and GPT-3: biases, gelu, tied embedding",
    .parameters = OPTIONS,
    .presets = gpt_presets,
    .build = build,
};
