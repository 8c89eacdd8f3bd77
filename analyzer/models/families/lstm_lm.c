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

static const char *const parameters[] = { "layers", "batch",   "length",     "d-model",
                                          "hidden", "vocab",   "projection", "cell",
                                          "biases", "dropout", NULL };

/* layers, batch, length, embedding, hidden, projection, vocabulary */
#define SIZES(n_layers, n_batch, n_length, width, n_hidden, projected, words, with_biases) \
    .layers = n_layers, .batch = n_batch, .length = n_length, .d_model = width,            \
    .hidden = n_hidden, .projection = projected, .vocab = words, .biases = with_biases,    \
    .cell = "lstm"
#define ADAFACTOR .optimizer = "adafactor", .schedule = "constant", .rate = 0.2, .clip_norm = 1
/* Jozefowicz et al. 2016, table 1: 793,471 words, unrolled 20 steps, batch 128. */
#define LIMITS(text, about, n_layers, width, n_hidden, projected)            \
    {                                                                        \
        .name = text, .summary = about, .settings = {                        \
            SIZES(n_layers, 128, 20, width, n_hidden, projected, 793471, 1), \
            ADAFACTOR                                                        \
        }                                                                    \
    }

static const MtfModelPreset presets[] = {
    { .name = "tiny",
      .summary = "2 layers of 64, trains in seconds",
      .settings = { SIZES(2, 16, 32, 32, 64, 0, 256, 1), .optimizer = "adam",
                    .schedule = "constant", .rate = 5e-3 } },
    { .name = "2x512",
      .summary = "2 layers of 512",
      .settings = { SIZES(2, 20, 35, 512, 512, 0, 10000, 1), .optimizer = "sgd",
                    .schedule = "constant", .rate = 1, .clip_norm = 5 } },
    LIMITS("512-512", "Exploring the Limits, 0.82 billion parameters", 1, 512, 512, 512),
    LIMITS("1024-512", "Exploring the Limits, 0.82 billion parameters", 1, 512, 1024, 512),
    LIMITS("2048-512", "Exploring the Limits, 0.82 billion parameters (0.83 there)", 1, 512, 2048,
           512),
    LIMITS("8192-2048", "Exploring the Limits, 3.4 billion parameters (3.3 there)", 1, 2048, 8192,
           2048),
    LIMITS("2x8192-1024", "Exploring the Limits' big LSTM, 1.8 billion parameters", 2, 1024, 8192,
           1024),
    { .name = "rnnlm",
      .summary = "PaSE's RNNLM: 2 layers of 2048, no biases, 476,708,864 parameters",
      .settings = { SIZES(2, 64, 256, 2048, 2048, 0, 100000, 0), .optimizer = "sgd",
                    .schedule = "constant", .rate = 0.01 } },
    { .name = NULL },
};

const MtfModelFamily mtf_model_lstm_lm = {
    .name = "lstm-lm",
    .summary = "recurrent language model, LSTM or GRU, a loop a layer",
    .parameters = parameters,
    .presets = presets,
    .build = build,
};
