// SPDX-License-Identifier: GPL-3.0-or-later
/* Outrageously Large Neural Networks (Shazeer and others 2017, appendix C): a layer of experts between two
 * layers of LSTM. After every layer comes dropout and what went into it is added; that of experts ends with a
 * sigmoid. Gates are noisy, and learn to spread their tokens by two losses:
 *
 *     h = x W_g + N(0, 1) softplus(x W_noise)         gates = softmax over the k largest h, 0 elsewhere
 *     importance_e = sum_x gate_e     load_e = sum_x P(x, e)     loss = w (CV(importance)^2 + CV(load)^2)
 *
 * with P(x, e) = Phi((x W_g - the k-th largest of the others' h) / softplus(x W_noise)), the probability that
 * other noise would leave e among the k. Nobody waits for a place: an expert takes all tokens that come. What
 * the paper calls hierarchical is one level of as many experts and gates here. */
#include "analyzer/models/families/recurrent.h"
#include "analyzer/models/routing.h"
#include "layouts/base/error.h"

#include <inttypes.h>
#include <math.h>

#define SPREAD_LOSS 0.1 /* w, of importance and of load */

/* A layer of experts of x, [length, batch, features]. */
typedef struct {
    const MtfRecurrent *model;
    MtfParts *p;
    MtfRouting routing;
    MtfRoutingDims dims;
    int width;               /* of an expert's hidden layer */
    int clean, noise, noisy; /* scores; the noise's deviation */
} Experts;

static int map(const Experts *e, int kind, const char *name, int x, int y) {
    return mtf_parts_apply(e->p, kind, name, NULL, x, y);
}

static MtfShape shape_of(const Experts *e, int last) {
    return (MtfShape){ 3, { e->model->length, e->model->batch, last } };
}

static int gate_product(const Experts *e, const char *name, const char *weight, int x) {
    MtfShape matrix = { 2, { e->model->last, e->dims.experts } };
    MtfShape scores = shape_of(e, e->dims.experts);
    int w = mtf_parts_variable(e->p, weight, &matrix, MTF_INIT_CONSTANT, 0);
    return mtf_parts_einsum(e->p, name, &scores, x, w);
}

/* Scores with noise in training steps. */
static int score(Experts *e, int x) {
    MtfShape scores = shape_of(e, e->dims.experts);
    e->clean = gate_product(e, "clean", "w_gate", x);
    e->noise = map(e, MTF_OP_SOFTPLUS, "deviation", gate_product(e, "noise_in", "w_noise", x), -1);
    e->p->b.has_dtype = true;
    e->p->b.dtype = MTF_F32;
    e->p->b.attributes.mean = 0;
    e->p->b.attributes.deviation = 1;
    int drawn = mtf_parts_apply_shaped(e->p, MTF_OP_RANDOM_NORMAL, "normal", &scores);
    int noise = map(e, MTF_OP_MULTIPLY, "noise", drawn, e->noise);
    e->noisy = mtf_parts_add(e->p, "noisy", e->clean, noise);
    return map(e, MTF_OP_IN_TRAIN_PHASE, "scores", e->noisy, e->clean);
}

/* ---- What spreads tokens --------------------------------------------------------------------- */

/* w CV(x)^2 = w (mean(x^2) / mean(x)^2 - 1) of a number for each expert. */
static int spread_loss(const Experts *e, const char *name, int each) {
    MtfShape one = { 0 };
    mtf_parts_enter(e->p, name);
    int mean = mtf_parts_apply(e->p, MTF_OP_REDUCE_MEAN, "mean", &one, each, -1);
    int squares = map(e, MTF_OP_SQUARE, "squares", each, -1);
    int mean_square = mtf_parts_apply(e->p, MTF_OP_REDUCE_MEAN, "mean_square", &one, squares, -1);
    int ratio =
        map(e, MTF_OP_DIVIDE, "ratio", mean_square, map(e, MTF_OP_SQUARE, "square", mean, -1));
    int variation = map(e, MTF_OP_SUBTRACT, "variation", ratio, mtf_parts_constant(e->p, "one", 1));
    e->p->b.attributes.factor = SPREAD_LOSS;
    int loss = map(e, MTF_OP_SCALE, "loss", variation, -1);
    mtf_parts_leave(e->p);
    return loss;
}

/* The sum of the gates of each expert. */
static int importance(const Experts *e, const MtfRouted *routed) {
    MtfShape each = { 1, { e->dims.experts } };
    return mtf_parts_apply(e->p, MTF_OP_SCATTER_ADD, "importance", &each, routed->choice,
                           routed->gate);
}

static int threshold(const Experts *e, const char *name, int largest, int dim, int index) {
    MtfShape tokens = { 2, { e->model->length, e->model->batch } };
    e->p->b.attributes.dimension = dim;
    e->p->b.attributes.index = index;
    return mtf_parts_apply(e->p, MTF_OP_SELECT, name, &tokens, largest, -1);
}

/* The sum of the probabilities P(x, e) of each expert. Its threshold is the largest score that is not
 * chosen where e is, else the least that is. */
static int load(const Experts *e) {
    MtfShape each = { 1, { e->dims.experts } };
    int k = (int)e->routing.choices;
    int more = mtf_parts_dimension(e->p, "choices_and_next", k + 1);
    e->p->b.attributes.from = e->dims.experts;
    e->p->b.attributes.to = more;
    int largest = mtf_parts_apply(e->p, MTF_OP_TOP_K, "largest", NULL, e->noisy, -1);
    int next = threshold(e, "next", largest, more, k);
    int last = threshold(e, "last", largest, more, k - 1);
    int is_chosen = map(e, MTF_OP_GREATER, "is_chosen", e->noisy, next);
    int others =
        mtf_parts_apply_to(e->p, MTF_OP_WHERE, "others", 3, (int[]){ is_chosen, next, last });
    int distance = map(e, MTF_OP_SUBTRACT, "distance", e->clean, others);
    int scaled = map(e, MTF_OP_DIVIDE, "distance_scaled", distance, e->noise);
    e->p->b.attributes.factor = sqrt(0.5);
    int erf = map(e, MTF_OP_ERF, "erf", map(e, MTF_OP_SCALE, "erf_in", scaled, -1), -1);
    int twice = mtf_parts_add(e->p, "twice", erf, mtf_parts_constant(e->p, "twice/one", 1));
    e->p->b.attributes.factor = 0.5;
    int probability = map(e, MTF_OP_SCALE, "probability", twice, -1);
    return mtf_parts_apply(e->p, MTF_OP_REDUCE_SUM, "load", &each, probability, -1);
}

/* Where all experts are chosen, all loads are alike. */
static int add_losses(const Experts *e, const MtfRouted *routed) {
    int loss = spread_loss(e, "importance_loss", importance(e, routed));
    if (e->routing.experts <= e->routing.choices)
        return loss;
    return mtf_parts_add(e->p, "spread", loss, spread_loss(e, "load_loss", load(e)));
}

/* ---- Experts --------------------------------------------------------------------------------- */

static int product(const Experts *e, const char *name, const int dims[2], int x, int expert) {
    g_autofree char *weight = g_strdup_printf("w_%s", name);
    MtfShape matrix = { 3, { e->dims.experts, dims[0], dims[1] } };
    MtfShape rows = { 3, { e->model->batch, e->dims.places, dims[1] } };
    double size = e->p->b.error != NULL ? 1 : (double)mtf_graph_size(e->p->b.graph, dims[0]);
    int w = mtf_parts_variable(e->p, weight, &matrix, MTF_INIT_UNIFORM, 1 / sqrt(size));
    e->p->b.attributes.experts = e->dims.experts;
    return mtf_parts_apply_shape_to(e->p, MTF_OP_EXPERT_EINSUM, name, &rows, 3,
                                    (int[]){ x, w, expert });
}

static void size_experts(Experts *e) {
    const MtfModelSettings *s = e->model->s;
    e->routing = (MtfRouting){ .experts = s->experts, .choices = s->choices, .renormalise = true };
    e->dims.tokens = e->model->length;
    e->dims.experts = mtf_parts_dimension(e->p, "experts", s->experts);
    e->dims.choices = mtf_parts_dimension(e->p, "choices", e->routing.choices);
    e->dims.places = mtf_parts_dimension(e->p, "expert_rows", s->length * e->routing.choices);
    e->width = mtf_parts_dimension(e->p, "d_expert", s->d_ff);
}

/* The layer's result; *loss is what spreads its tokens. */
static int add_experts(const MtfRecurrent *m, int x, int *loss) {
    Experts e = { .model = m, .p = m->p };
    int up[] = { m->last, -1 }, down[] = { -1, m->last };
    mtf_parts_enter(m->p, "moe");
    size_experts(&e);
    up[1] = down[0] = e.width;
    MtfRouted routed = mtf_route(m->p, &e.routing, &e.dims, score(&e, x));
    MtfShape rows = { 3, { m->batch, e.dims.places, m->last } }, all = shape_of(&e, m->last);
    int sent = mtf_parts_apply(m->p, MTF_OP_DISPATCH, "sent", &rows, x, routed.slot);
    int hidden = map(&e, MTF_OP_RELU, "relu", product(&e, "hidden", up, sent, routed.expert), -1);
    int made = product(&e, "out", down, hidden, routed.expert);
    int combined = mtf_parts_apply_shape_to(m->p, MTF_OP_COMBINE, "combined", &all, 3,
                                            (int[]){ made, routed.slot, routed.gate });
    *loss = add_losses(&e, &routed);
    int shown = map(&e, MTF_OP_SIGMOID, "shown", combined, -1);
    shown = mtf_parts_dropout(m->p, "dropped", m->s->dropout, shown);
    mtf_parts_leave(m->p);
    return shown;
}

/* ---- The model ------------------------------------------------------------------------------- */

/* x + what a layer made of it. */
static int residual(const MtfRecurrent *m, const char *name, int x, int made) {
    return mtf_parts_add(m->p, name, made, x);
}

static MtfGraph *build(const MtfModelSettings *s, GError **error) {
    if (s->choices > s->experts) {
        mtf_input_error(error,
                        "--choices: a token is sent to %" PRId64 " experts, but there are %" PRId64,
                        s->choices, s->experts);
        return NULL;
    }
    int64_t made = s->projection > 0 ? s->projection : s->hidden;
    if (made != s->d_model) {
        mtf_input_error(error,
                        "--%s: what a layer makes, %" PRId64
                        " features, is added to the embedding's, --d-model %" PRId64
                        ": give as many",
                        s->projection > 0 ? "projection" : "hidden", made, s->d_model);
        return NULL;
    }
    MtfParts *p = mtf_parts_new();
    MtfRecurrent m;
    int loss = -1;
    mtf_recurrent_init(&m, p, s);
    int x = mtf_recurrent_embedding(&m);
    int first = mtf_recurrent_layer(&m, x, m.d_model, 0);
    p->b.attributes.from = m.d_model;
    p->b.attributes.to = m.last;
    int added = mtf_parts_apply(p, MTF_OP_RENAME, "embedded/renamed", NULL, x, -1);
    x = residual(&m, "layer/0/residual", added, first);
    x = residual(&m, "moe/residual", x, add_experts(&m, x, &loss));
    x = residual(&m, "layer/1/residual", x, mtf_recurrent_layer(&m, x, m.last, 1));
    mtf_recurrent_loss(&m, x, loss);
    return mtf_parts_end(p, error);
}

/* The 1-billion-word benchmark: 793,471 words, unrolled 20 steps; dropout was tuned for each there. */
#define BILLION_WORDS                                                                           \
    "batch=768 length=20 choices=4 vocab=793471 biases=1 cell=lstm dropout=0.1 optimizer=adam " \
    "schedule=inverse_sqrt rate=1e-3 warmup=1000 "
#define NARROW BILLION_WORDS "d-model=512 hidden=512 projection=0 d-ff=1024 "

static const MtfModelPreset presets[] = {
    MTF_PRESET("tiny", "8 experts between 2 layers of 32, trains in seconds",
               "batch=16 length=16 d-model=32 hidden=32 projection=0 experts=8 choices=2 d-ff=64 "
               "vocab=256 biases=1 cell=lstm optimizer=adam schedule=constant rate=5e-3"),
    MTF_PRESET("moe-4", "8.4 million parameters beside embedding and softmax", NARROW "experts=4"),
    MTF_PRESET("moe-32", "37.8 million beside them", NARROW "experts=32"),
    MTF_PRESET("moe-256", "272.9 million beside them", NARROW "experts=256"),
    MTF_PRESET("moe-1024-h", "1.079 billion beside them", NARROW "experts=1024"),
    MTF_PRESET("moe-4096-h", "4.303 billion beside them", NARROW "experts=4096"),
    MTF_PRESET("moe-34m", "4.314 billion beside them, 34 million operations a word",
               BILLION_WORDS "d-model=1024 hidden=1024 projection=0 experts=1024 d-ff=2048"),
    MTF_PRESET("moe-143m", "4.371 billion beside them, 143 million operations a word",
               BILLION_WORDS "d-model=1024 hidden=4096 projection=1024 experts=256 d-ff=8192"),
    MTF_NO_PRESET,
};

const MtfModelFamily mtf_model_moe_lstm = {
    .name = "moe-lstm",
    .summary = "Outrageously Large Networks: experts between layers of LSTM",
    .parameters = "batch length d-model d-ff hidden vocab projection experts choices dropout",
    .presets = presets,
    .build = build,
};
