// SPDX-License-Identifier: GPL-3.0-or-later
/* Recurrent layers: what each step takes from the input is one product for all steps,
 *
 *     x ──W──► [places, batch, gates] ─┬──────────────┬──────────────┬─►
 *                                      ▼              ▼              ▼
 *     h0 ──────────────────────R──► step 0 ──R──► step 1 ──R──► step 2 … ──► h
 *
 * and the steps are a loop; inside of another loop, which holds none, they stand one by one. */
#include "analyzer/onnx/onnx_operators.h"
#include "analyzer/onnx/onnx_steps.h"

#include <inttypes.h>
#include <string.h>

#define MOST_PLACES 512

/* One direction of a layer while it is built; values of all steps have the axes [batch, features]. */
typedef struct {
    MtfOnnxCall *call;
    int gates;                   /* matrices of the layer: 1, 3, 4 */
    int64_t places, batch, size; /* size: of the state */
    const char *functions[3];    /* of gates, of the new state, of the output */
    MtfOnnxValue *x;             /* [places, batch, gates size]: W x + the biases of W */
    MtfOnnxValue *recurrent;     /* R [gates size, size] */
    MtfOnnxValue *bias;          /* of R [gates size]; or NULL */
    MtfOnnxValue *peep;          /* [3 size]; or NULL */
    MtfOnnxValue *h, *c;         /* the state */
} Layer;

typedef void (*Step)(Layer *layer, MtfOnnxValue *x);

/* ---- Parts ----------------------------------------------------------------------------------- */

static MtfOnnxValue *add(Layer *l, MtfOnnxValue *a, MtfOnnxValue *b) {
    return mtf_onnx_binary(l->call->t, MTF_OP_ADD, a, b);
}

static MtfOnnxValue *times(Layer *l, MtfOnnxValue *a, MtfOnnxValue *b) {
    return mtf_onnx_binary(l->call->t, MTF_OP_MULTIPLY, a, b);
}

/* Gate `k` of what all gates are side by side, along the last axis. */
static MtfOnnxValue *gate(Layer *l, MtfOnnxValue *all, int k) {
    return all == NULL ? NULL
                       : mtf_onnx_slice(l->call->t, all, all->rank - 1, k * l->size, 1, l->size);
}

static MtfOnnxValue *function(Layer *l, int which, MtfOnnxValue *x) {
    static const struct {
        const char *name;
        int kind;
    } rows[] = { { "Sigmoid", MTF_OP_SIGMOID },
                 { "Tanh", MTF_OP_TANH },
                 { "Relu", MTF_OP_RELU },
                 { "Softplus", MTF_OP_SOFTPLUS } };
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++)
        if (g_ascii_strcasecmp(rows[i].name, l->functions[which]) == 0)
            return mtf_onnx_unary(l->call->t, rows[i].kind, x);
    return mtf_onnx_fail(l->call->t, "activation \"%s\" is not supported", l->functions[which]);
}

/* h times rows [first gate …] of R, and their bias. */
static MtfOnnxValue *from_state(Layer *l, MtfOnnxValue *h, int first, int n) {
    MtfOnnxTranslation *t = l->call->t;
    bool all = n == l->gates;
    MtfOnnxValue *r =
        all ? l->recurrent : mtf_onnx_slice(t, l->recurrent, 0, first * l->size, 1, n * l->size);
    MtfOnnxValue *inputs[] = { h, r };
    MtfOnnxValue *y = mtf_onnx_product(t, "bh,gh->bg", 2, inputs);
    if (l->bias == NULL)
        return y;
    return add(l, y,
               all ? l->bias : mtf_onnx_slice(t, l->bias, 0, first * l->size, 1, n * l->size));
}

/* ---- Steps ----------------------------------------------------------------------------------- */

static void step_rnn(Layer *l, MtfOnnxValue *x) {
    l->h = function(l, 0, add(l, x, from_state(l, l->h, 0, 1)));
}

/* z and r, then the new state from r h, or from r times what h gives; h = (1 - z) new + z h. */
static void step_gru(Layer *l, MtfOnnxValue *x) {
    MtfOnnxTranslation *t = l->call->t;
    bool reset_after = mtf_onnx_int(l->call, "linear_before_reset", 0) != 0;
    MtfOnnxValue *both = mtf_onnx_slice(t, x, 1, 0, 1, 2 * l->size);
    both = function(l, 0, add(l, both, from_state(l, l->h, 0, 2)));
    MtfOnnxValue *z = gate(l, both, 0), *r = gate(l, both, 1);
    MtfOnnxValue *seen = reset_after ? times(l, r, from_state(l, l->h, 2, 1))
                                     : from_state(l, times(l, r, l->h), 2, 1);
    MtfOnnxValue *made = function(l, 1, add(l, gate(l, x, 2), seen));
    MtfOnnxValue *old = mtf_onnx_binary(t, MTF_OP_SUBTRACT, l->h, made);
    l->h = add(l, made, times(l, z, old));
}

/* A gate with what it sees of the cell. */
static MtfOnnxValue *open_gate(Layer *l, MtfOnnxValue *all, int k, MtfOnnxValue *cell, int peep) {
    MtfOnnxValue *x = gate(l, all, k);
    if (l->peep != NULL)
        x = add(l, x, times(l, cell, gate(l, l->peep, peep)));
    return function(l, 0, x);
}

/* i, o, f and the new cell; c = f c + i new, h = o c. */
static void step_lstm(Layer *l, MtfOnnxValue *x) {
    MtfOnnxValue *all = add(l, x, from_state(l, l->h, 0, 4));
    MtfOnnxValue *in = open_gate(l, all, 0, l->c, 0), *keep = open_gate(l, all, 2, l->c, 2);
    MtfOnnxValue *made = times(l, in, function(l, 1, gate(l, all, 3)));
    l->c = add(l, times(l, keep, l->c), made);
    l->h = times(l, open_gate(l, all, 1, l->c, 1), function(l, 2, l->c));
}

/* ---- Layers ---------------------------------------------------------------------------------- */

/* What direction `d` has of input k, without the axis of directions; NULL where it is left out. */
static MtfOnnxValue *of_direction(MtfOnnxCall *call, int k, int d, bool weight) {
    MtfOnnxTranslation *t = call->t;
    MtfOnnxValue *x = mtf_onnx_input(call, k);
    if (x == NULL)
        return NULL;
    x = weight ? mtf_onnx_weight(t, x, false) : x;
    x = x == NULL ? NULL : mtf_onnx_slice(t, x, 0, d, 1, 1);
    return x == NULL ? NULL : mtf_onnx_squeeze(t, x, 1);
}

/* The state before the first step: input k, which may have the batch first, or zeros. */
static MtfOnnxValue *first_state(Layer *l, int k, int d) {
    static const int swapped[] = { 1, 0, 2 };
    MtfOnnxTranslation *t = l->call->t;
    MtfOnnxValue *given = mtf_onnx_input(l->call, k);
    const int64_t sizes[] = { l->batch, l->size };
    if (given == NULL || (mtf_onnx_is_known(t, given) && given->uniform))
        return mtf_onnx_uniform(t, l->x->type, 2, sizes, given == NULL ? 0 : given->known[0]);
    if (mtf_onnx_int(l->call, "layout", 0) != 0)
        given = mtf_onnx_transpose(t, given, swapped);
    given = given == NULL ? NULL : mtf_onnx_slice(t, given, 0, d, 1, 1);
    return given == NULL ? NULL : mtf_onnx_squeeze(t, given, 1);
}

/* Words of "activations" for direction d; the standard ones where it is left out. */
static void read_functions(Layer *l, int d) {
    const MtfOnnxAttribute *a = mtf_onnx_attribute(l->call->node, "activations");
    guint n = l->gates == 1 ? 1 : l->gates == 3 ? 2 : 3;
    l->functions[0] = l->gates == 1 ? "Tanh" : "Sigmoid";
    l->functions[1] = l->functions[2] = "Tanh";
    for (guint i = 0; a != NULL && i < n; i++)
        if ((guint)d * n + i < a->strings->len)
            l->functions[i] = a->strings->pdata[(guint)d * n + i];
}

/* Makes a direction ready; x is [places, batch, features]. */
static bool begin_layer(Layer *l, MtfOnnxValue *x, int d) {
    MtfOnnxCall *call = l->call;
    MtfOnnxTranslation *t = call->t;
    int64_t n = l->gates * l->size;
    MtfOnnxValue *inputs[] = { x, of_direction(call, 1, d, true) };
    MtfOnnxValue *bias = of_direction(call, 3, d, true);
    l->recurrent = of_direction(call, 2, d, true);
    l->x = mtf_onnx_product(t, "pbi,gi->pbg", 2, inputs);
    if (bias != NULL) {
        l->x = add(l, l->x, mtf_onnx_slice(t, bias, 0, 0, 1, n));
        l->bias = mtf_onnx_slice(t, bias, 0, n, 1, n);
    }
    l->peep = l->gates == 4 ? of_direction(call, 7, d, true) : NULL;
    read_functions(l, d);
    if (l->x == NULL || l->recurrent == NULL)
        return false;
    l->h = first_state(l, 5, d);
    l->c = l->gates == 4 ? first_state(l, 6, d) : NULL;
    return t->error == NULL;
}

/* Steps of a direction one by one; returns h of all places, [places, 1, batch, size]. */
static MtfOnnxValue *run_steps(Layer *l, Step step, bool backward) {
    MtfOnnxTranslation *t = l->call->t;
    g_autofree MtfOnnxValue **all = g_new0(MtfOnnxValue *, l->places + 1);
    if (l->places > MOST_PLACES)
        return mtf_onnx_fail(
            t, "%" PRId64 " steps are more than the %d that are supported inside of a loop",
            l->places, MOST_PLACES);
    for (int64_t i = 0; i < l->places && t->error == NULL; i++) {
        int64_t place = backward ? l->places - 1 - i : i;
        MtfOnnxValue *x = mtf_onnx_slice(t, l->x, 0, place, 1, 1);
        x = x == NULL ? NULL : mtf_onnx_squeeze(t, x, 1);
        step(l, x);
        all[place] = l->h == NULL ? NULL : mtf_onnx_unsqueeze(t, l->h, 4, 3);
    }
    return t->error != NULL ? NULL : mtf_onnx_concat(t, 0, (int)l->places, all);
}

/* The same as a loop. */
static MtfOnnxValue *run_loop(Layer *l, Step step, bool backward) {
    MtfOnnxTranslation *t = l->call->t;
    int loop = mtf_onnx_loop(t, l->places, backward);
    MtfOnnxValue *h = l->h = mtf_onnx_loop_begin(t, loop, l->h);
    MtfOnnxValue *c = l->c = l->c == NULL ? NULL : mtf_onnx_loop_begin(t, loop, l->c);
    step(l, mtf_onnx_loop_slice(t, loop, l->x, 0));
    MtfOnnxValue *all = l->h == NULL ? NULL : mtf_onnx_loop_stack(t, loop, l->h);
    l->h = mtf_onnx_loop_next(t, loop, h, l->h, NULL);
    l->c = c == NULL ? NULL : mtf_onnx_loop_next(t, loop, c, l->c, NULL);
    return t->error != NULL ? NULL : mtf_onnx_unsqueeze(t, all, 4, 1U << 1);
}

/* ---- The operators --------------------------------------------------------------------------- */

/* Values of both directions side by side along an axis. */
static MtfOnnxValue *side_by_side(MtfOnnxTranslation *t, int axis, int n, MtfOnnxValue **values) {
    return n == 1 ? values[0] : mtf_onnx_concat(t, axis, n, values);
}

/* [places, directions, batch, size], or with the batch first; states likewise, without places. */
static MtfOnnxValue *batch_first(MtfOnnxCall *call, MtfOnnxValue *x) {
    static const int all[] = { 2, 0, 1, 3 }, state[] = { 1, 0, 2 };
    if (x == NULL || mtf_onnx_int(call, "layout", 0) == 0)
        return x;
    return mtf_onnx_transpose(call->t, x, x->rank == 4 ? all : state);
}

/* Whether every sequence is known to fill all places. */
static bool are_full(MtfOnnxTranslation *t, MtfOnnxValue *lengths, int64_t places) {
    bool full = lengths == NULL || mtf_onnx_is_known(t, lengths);
    for (int64_t i = 0; full && lengths != NULL && i < mtf_onnx_elements(lengths); i++)
        full = mtf_onnx_known_at(lengths, i) == (double)places;
    return full;
}

static bool check_call(MtfOnnxCall *call, const MtfOnnxValue *x, int64_t places) {
    if (x->rank != 3 || call->inputs[2]->rank != 3)
        return mtf_onnx_fail(call->t, "its inputs should have three axes") != NULL;
    if (!are_full(call->t, mtf_onnx_input(call, 4), places))
        return mtf_onnx_fail(call->t, "lengths of sequences are not supported") != NULL;
    if (mtf_onnx_int(call, "input_forget", 0) != 0 || mtf_onnx_float(call, "clip", 0) != 0)
        return mtf_onnx_fail(call->t, "input_forget and clip are not supported") != NULL;
    return true;
}

static MtfOnnxValue *recurrent(MtfOnnxCall *call) {
    static const Step steps[] = { NULL, step_rnn, NULL, step_gru, step_lstm };
    static const int swapped[] = { 1, 0, 2 };
    MtfOnnxTranslation *t = call->t;
    const char *way = mtf_onnx_word(call, "direction", "forward");
    int n = strcmp(way, "bidirectional") == 0 ? 2 : 1;
    MtfOnnxValue *x = call->inputs[0], *texts[2], *h[2], *c[2];
    if (mtf_onnx_int(call, "layout", 0) != 0)
        x = mtf_onnx_transpose(t, x, swapped);
    if (x == NULL || !check_call(call, x, x->sizes[0]))
        return NULL;
    int64_t places = x->sizes[0];
    for (int d = 0; d < n; d++) {
        Layer l = { .call = call,
                    .gates = (int)call->number,
                    .places = places,
                    .batch = x->sizes[1],
                    .size = call->inputs[2]->sizes[2] };
        bool backward = d == 1 || strcmp(way, "reverse") == 0;
        if (!begin_layer(&l, x, d))
            return NULL;
        texts[d] = (places > 1 && !t->looping ? run_loop : run_steps)(&l, steps[l.gates], backward);
        if (texts[d] == NULL)
            return NULL;
        h[d] = mtf_onnx_unsqueeze(t, l.h, 3, 1);
        c[d] = l.c == NULL ? NULL : mtf_onnx_unsqueeze(t, l.c, 3, 1);
    }
    if (call->n_outputs > 1)
        call->outputs[1] = batch_first(call, side_by_side(t, 0, n, h));
    if (call->n_outputs > 2 && c[0] != NULL)
        call->outputs[2] = batch_first(call, side_by_side(t, 0, n, c));
    return batch_first(call, side_by_side(t, 1, n, texts));
}

const MtfOnnxOperator mtf_onnx_recurrent_operators[] = {
    { "GRU", recurrent, 0, 3, 3, 6, NULL },
    { "LSTM", recurrent, 0, 4, 3, 8, NULL },
    { "RNN", recurrent, 0, 1, 3, 6, NULL },
    { 0 },
};
