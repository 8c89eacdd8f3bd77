// SPDX-License-Identifier: GPL-3.0-or-later
/* Recurrent language models (recurrent.h). */
#include "analyzer/models/families/recurrent.h"

static MtfGraph *build(const MtfModelSettings *s, GError **error) {
    MtfParts *p = mtf_parts_new();
    MtfRecurrent m;
    mtf_recurrent_init(&m, p, s);
    int x = mtf_recurrent_embedding(&m), dim = m.d_model;
    for (int layer = 0; layer < s->layers && p->b.error == NULL; layer++) {
        x = mtf_recurrent_layer(&m, x, dim, layer);
        dim = m.last;
    }
    mtf_recurrent_loss(&m, x, -1);
    return mtf_parts_end(p, error);
}

/* Jozefowicz et al. 2016, table 1: 793,471 words, unrolled 20 steps, batch 128. */
#define LIMITS                                                                                   \
    "batch=128 length=20 vocab=793471 biases=1 cell=lstm optimizer=adafactor schedule=constant " \
    "rate=0.2 clip-norm=1 "

static const MtfModelPreset presets[] = {
    MTF_PRESET("tiny", "2 layers of 64, trains in seconds",
               "layers=2 batch=16 length=32 d-model=32 hidden=64 projection=0 vocab=256 biases=1 "
               "cell=lstm optimizer=adam schedule=constant rate=5e-3"),
    MTF_PRESET("2x512", "2 layers of 512",
               "layers=2 batch=20 length=35 d-model=512 hidden=512 projection=0 vocab=10000 "
               "biases=1 cell=lstm optimizer=sgd schedule=constant rate=1 clip-norm=5"),
    MTF_PRESET("512-512", "Exploring the Limits, 0.82 billion parameters",
               LIMITS "layers=1 d-model=512 hidden=512 projection=512"),
    MTF_PRESET("1024-512", "Exploring the Limits, 0.82 billion parameters",
               LIMITS "layers=1 d-model=512 hidden=1024 projection=512"),
    MTF_PRESET("2048-512", "Exploring the Limits, 0.82 billion parameters (0.83 there)",
               LIMITS "layers=1 d-model=512 hidden=2048 projection=512"),
    MTF_PRESET("8192-2048", "Exploring the Limits, 3.4 billion parameters (3.3 there)",
               LIMITS "layers=1 d-model=2048 hidden=8192 projection=2048"),
    MTF_PRESET("2x8192-1024", "Exploring the Limits' big LSTM, 1.8 billion parameters",
               LIMITS "layers=2 d-model=1024 hidden=8192 projection=1024"),
    MTF_PRESET("rnnlm", "PaSE's RNNLM: 2 layers of 2048, no biases, 476,708,864 parameters",
               "layers=2 batch=64 length=256 d-model=2048 hidden=2048 projection=0 vocab=100000 "
               "biases=0 cell=lstm optimizer=sgd schedule=constant rate=0.01"),
    MTF_NO_PRESET,
};

const MtfModelFamily mtf_model_lstm_lm = {
    .name = "lstm-lm",
    .summary = "recurrent language model, LSTM or GRU, a loop a layer",
    .parameters = "layers batch length d-model hidden vocab projection cell biases dropout",
    .presets = presets,
    .build = build,
};
