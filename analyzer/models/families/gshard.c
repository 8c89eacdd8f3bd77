// SPDX-License-Identifier: GPL-3.0-or-later
/* GShard's translators (Lepikhin and others, 2020, table 1): an encoder and a decoder of half the
 * layers each, experts in every second layer, two a token, places for twice as many tokens as would
 * come evenly. Each sequence is a group of its own.
 *
 *     MoE(2048E, 36L)   18 layers of 2048 experts of 1024 x 8192 x 2: 0.6 trillion parameters  */
#include "analyzer/models/architecture.h"
#include "analyzer/models/model_family.h"
#include "layouts/base/error.h"

#include <inttypes.h>
#include <math.h>

#define HALF_OF_LAYERS 2
#define CHOICES 2 /* experts of a token */

static const MtfStackNames names = { .layer = "",
                                     .up = "w",
                                     .down = "w",
                                     .router = "r",
                                     .expert_up = "w{}",
                                     .expert_down = "w{}",
                                     .before_attention = "n",
                                     .before_ffn = "n",
                                     .before_cross = "n",
                                     .final_norm = "n" };

/* Of an expert in a group: 2 S / E (algorithm 1), at least one; lingvo rounds up to multiples of 4. */
static int64_t places(const MtfModelSettings *s) {
    return MAX(1, (2 * s->length + s->experts - 1) / s->experts);
}

static MtfStack stack(const MtfModelSettings *s, bool decodes) {
    MtfStack stack = {
        .layers = s->layers / HALF_OF_LAYERS,
        .heads = s->heads,
        .kv_heads = s->heads,
        .d_kv = s->d_kv,
        .d_ff = s->d_ff,
        .causal = decodes,
        .cross = decodes,
        .activation = s->activation,
        .scale = 1 / sqrt((double)s->d_kv),
        .experts = s->experts,
        .experts_per_token = CHOICES,
        .d_expert = s->d_ff,
        .sparse_step = 2,
        .renormalise = true,
        .routing = { .convention = "gshard", .capacity = places(s), .auxiliary = 0.01 },
        .names = names,
    };
    mtf_routing_wish(&stack.routing, CHOICES, &s->routing);
    return stack;
}

static bool halves_and_chooses(const MtfModelSettings *s, GError **error) {
    if (s->layers < HALF_OF_LAYERS || s->layers % HALF_OF_LAYERS != 0)
        return mtf_input_error(error,
                               "--layers: half of the layers are the encoder's and half the "
                               "decoder's, give an even number, not %" PRId64,
                               s->layers);
    return s->experts >= CHOICES ||
           mtf_input_error(error, "--experts: a token is sent to %d experts, but there is %" PRId64,
                           CHOICES, s->experts);
}

static MtfGraph *build(const MtfModelSettings *s, GError **error) {
    if (!halves_and_chooses(s, error))
        return NULL;
    MtfArchitecture n = { .name = "gshard",
                          .kind = MTF_ARCHITECTURE_ENCODER_DECODER,
                          .batch = s->batch,
                          .length = s->length,
                          .source_length = s->length,
                          .context = s->length,
                          .vocab = s->vocab,
                          .d_model = s->d_model,
                          .unpublished = true,
                          .epsilon = 1e-6,
                          .embedding_scale = sqrt((double)s->d_model),
                          .logit_scale = 1,
                          .spread = 1 / sqrt((double)s->d_model),
                          .waves = true,
                          .tied = true,
                          .encoder = stack(s, false),
                          .decoder = stack(s, true) };
    return mtf_architecture_build(&n, error);
}

#define MOE                                                                             \
    "length=1024 d-model=1024 d-ff=8192 heads=16 d-kv=128 vocab=64000 activation=relu " \
    "optimizer=adafactor schedule=inverse_sqrt rate=0.01 warmup=10000 "

static const MtfModelPreset presets[] = {
    MTF_PRESET("tiny", "byte-level, trains in seconds",
               "layers=4 batch=8 length=32 d-model=64 d-ff=128 heads=4 d-kv=16 vocab=256 experts=4 "
               "activation=relu optimizer=adamw schedule=linear_warmup rate=3e-3 warmup=10"),
    MTF_PRESET("moe-128e-12l", "13.2 billion (12.5 there)", MOE "layers=12 batch=256 experts=128"),
    MTF_PRESET("moe-128e-36l", "39.5 billion (37 there)", MOE "layers=36 batch=256 experts=128"),
    MTF_PRESET("moe-512e-12l", "51.9 billion (50 there)", MOE "layers=12 batch=1024 experts=512"),
    MTF_PRESET("moe-512e-36l", "155 billion (150 there)", MOE "layers=36 batch=1024 experts=512"),
    MTF_PRESET("moe-2048e-12l", "206 billion (200 there)", MOE "layers=12 batch=4096 experts=2048"),
    MTF_PRESET("moe-2048e-36l", "619,333,738,496 parameters (600 billion there)",
               MOE "layers=36 batch=4096 experts=2048"),
    MTF_NO_PRESET,
};

const MtfModelFamily mtf_model_gshard = {
    .name = "gshard",
    .summary = "GShard: translation with two experts a token",
    .parameters = "layers batch length d-model d-ff heads d-kv vocab experts routing "
                  "capacity-factor auxiliary z-loss jitter",
    .presets = presets,
    .build = build,
};
