// SPDX-License-Identifier: GPL-3.0-or-later
/* Transformers that translate: an encoder of the source, and a decoder that predicts the other text
 * with the source in view. Rows hold several pairs that do not see one another (packed).
 *
 *     presets     whose                           norms     biases        positions    tables
 *     size…       Mesh-TensorFlow (Shazeer and    RMS       none          learned,     one, and the
 *                 others, 2018, 9.2), WMT'14                              shared       head's
 *                 English to French
 *     base, big   Vaswani and others, 2017,       layer,    feed-forward  waves        one for all
 *                 table 3                         after
 *     pase-…      PaSE (Elango, 2021), its        layer     none          waves        three
 *                 benchmarks/transformer.py                                                       */
#include "analyzer/models/architecture.h"
#include "analyzer/models/model_family.h"

#include <math.h>

#define NORMS .before_attention = "n", .before_ffn = "n", .before_cross = "n", .final_norm = "n"
#define NORMS_AFTER .after_attention = "n", .after_ffn = "n", .after_cross = "n"
#define MATRICES .layer = "", .up = "w", .down = "w"

/* Which norms there are; no file keeps any of it. */
static const MtfStackNames norms_before = { NORMS, MATRICES };
static const MtfStackNames norms_after = { NORMS_AFTER, MATRICES };

static MtfStack stack(const MtfModelSettings *s, bool decodes) {
    return (MtfStack){ .layers = s->layers,
                       .heads = s->heads,
                       .kv_heads = s->heads,
                       .d_kv = s->d_kv,
                       .d_ff = s->d_ff,
                       .causal = decodes,
                       .cross = decodes,
                       .activation = s->activation,
                       .scale = 1 / sqrt((double)s->d_kv),
                       .names = norms_before };
}

static MtfArchitecture network(const MtfModelSettings *s) {
    return (MtfArchitecture){ .name = "transformer",
                              .kind = MTF_ARCHITECTURE_ENCODER_DECODER,
                              .batch = s->batch,
                              .length = s->length,
                              .source_length = s->length,
                              .context = s->length,
                              .vocab = s->vocab,
                              .d_model = s->d_model,
                              .source_vocab = s->source_vocab,
                              .packed = s->packed,
                              .unpublished = true,
                              .epsilon = 1e-6,
                              .embedding_scale = 1,
                              .logit_scale = 1,
                              .dropout = { s->dropout, s->dropout, s->dropout },
                              .smoothing = s->smoothing,
                              .tied = s->tied,
                              .encoder = stack(s, false),
                              .decoder = stack(s, true) };
}

static MtfGraph *build_mesh(const MtfModelSettings *s, GError **error) {
    MtfArchitecture n = network(s);
    n.rms = n.shared_positions = true;
    n.max_positions = s->length;
    return mtf_architecture_build(&n, error);
}

static MtfGraph *build_attention(const MtfModelSettings *s, GError **error) {
    MtfArchitecture n = network(s);
    n.waves = n.encoder.ffn_bias = n.decoder.ffn_bias = true;
    n.embedding_scale = sqrt((double)s->d_model);
    n.spread = 1 / sqrt((double)s->d_model);
    n.encoder.names = n.decoder.names = norms_after;
    return mtf_architecture_build(&n, error);
}

static MtfGraph *build_pase(const MtfModelSettings *s, GError **error) {
    MtfArchitecture n = network(s);
    n.waves = true;
    n.embedding_scale = sqrt((double)s->d_model);
    return mtf_architecture_build(&n, error);
}

#define MESH                                                                                  \
    "layers=6 batch=128 length=256 d-model=1024 d-kv=128 vocab=32768 packed=1 smoothing=0.1 " \
    "activation=relu optimizer=adafactor schedule=inverse_sqrt rate=0.01 warmup=10000 "
#define MESH_SIZE(text, parameters_text, sizes) \
    MTF_PRESET("size" text,                     \
               "English to French, Mesh-TensorFlow's size " text ", " parameters_text, MESH sizes)
#define ATTENTION                                                                          \
    "layers=6 batch=128 length=256 d-kv=64 tied=1 packed=1 smoothing=0.1 activation=relu " \
    "optimizer=adam schedule=inverse_sqrt rate=7e-4 warmup=4000 "
#define PASE                                                                               \
    "layers=6 batch=64 length=256 d-kv=64 vocab=50000 source-vocab=50000 activation=relu " \
    "optimizer=sgd schedule=constant rate=0.01 "

static const MtfModelPreset presets[] = {
    MTF_PRESET("tiny", "byte-level, trains in seconds",
               "layers=2 batch=8 length=32 d-model=64 d-ff=256 heads=4 d-kv=16 vocab=256 packed=1 "
               "activation=relu optimizer=adamw schedule=linear_warmup rate=3e-3 warmup=10"),
    MESH_SIZE("-1", "0.16 billion", "d-ff=2048 heads=4"),
    MESH_SIZE("0", "0.24 billion", "d-ff=4096 heads=8"),
    MESH_SIZE("1", "0.42 billion", "d-ff=8192 heads=16"),
    MESH_SIZE("2", "0.77 billion", "d-ff=16384 heads=32"),
    MESH_SIZE("3", "1.48 billion", "d-ff=32768 heads=64"),
    MESH_SIZE("4", "2.89 billion", "d-ff=65536 heads=128"),
    MTF_PRESET_BY(build_attention, "base", "English to German, 63,045,632 parameters",
                  ATTENTION "d-model=512 d-ff=2048 heads=8 vocab=37000"),
    MTF_PRESET_BY(build_attention, "big", "English to German, 214,171,648 parameters",
                  ATTENTION "d-model=1024 d-ff=4096 heads=16 vocab=37000"),
    MTF_PRESET_BY(build_attention, "big-en-fr", "English to French",
                  ATTENTION "d-model=1024 d-ff=4096 heads=16 vocab=32000"),
    MTF_PRESET_BY(build_pase, "pase-small", "PaSE's, two vocabularies of 50,000",
                  PASE "d-model=512 d-ff=2048 heads=8"),
    MTF_PRESET_BY(build_pase, "pase-large", "PaSE's, two vocabularies of 50,000",
                  PASE "d-model=1024 d-ff=4096 heads=16"),
    MTF_NO_PRESET,
};

const MtfModelFamily mtf_model_transformer = {
    .name = "transformer",
    .summary = "encoder and decoder for translation",
    .parameters = "layers batch length d-model d-ff heads d-kv vocab tied packed dropout "
                  "smoothing activation source-vocab",
    .presets = presets,
    .build = build_mesh,
};
