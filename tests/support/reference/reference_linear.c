// SPDX-License-Identifier: GPL-3.0-or-later
/* Linear attention: what it means, place by place, and its gradients by going back over the same places. */
#include "tests/support/reference/reference_point.h"

#include <math.h>
#include <string.h>

/* A head and a column of values, of which each has a state of its own, s[keys]. */
typedef struct {
    Point *p;
    int64_t keys, places;
    int v, q, k, log, beta, rate; /* tensors; -1: none. Of scans log is the step */
} Column;

static bool keeps(const Point *p) {
    return p->operation->kind == MTF_OP_KEPT_LINEAR_ATTENTION ||
           p->operation->kind == MTF_OP_KEPT_SELECTIVE_SCAN;
}

static Column column_of(Point *p) {
    const int *in = p->operation->inputs;
    int fifth = 4 + (p->operation->n_outputs > 3 || keeps(p));
    bool scans = mtf_operation_row((int)p->operation->kind)->scans;
    bool more = p->operation->n_inputs > fifth;
    return (Column){ .p = p,
                     .keys = size_of(p, p->a->keys),
                     .places = size_of(p, p->a->dimension),
                     .v = in[0],
                     .q = in[1],
                     .k = in[2],
                     .log = in[3],
                     .beta = more && !scans ? in[fifth] : -1,
                     .rate = scans ? in[fifth] : -1 };
}

static double of_key(const Column *c, int tensor, int64_t key) {
    c->p->coordinate[c->p->a->keys] = key;
    return value_at(c->p, tensor);
}

static double *element_of(const Column *c, int tensor) {
    const MtfShape *shape = &mtf_graph_tensor(c->p->reference->graph, tensor)->shape;
    return &c->p->reference->values[tensor][offset_of(c->p, shape)];
}

/* Of element `key` of the state. */
static double kept_share(const Column *c, int64_t key) {
    return exp(value_at(c->p, c->log) * (c->rate >= 0 ? of_key(c, c->rate, key) : 1));
}

/* What is written for the key where we stand, given the state once its share is lost. */
static double written(const Column *c, const double *state, double *error) {
    *error = value_at(c->p, c->v);
    for (int64_t i = 0; c->beta >= 0 && i < c->keys; i++)
        *error -= of_key(c, c->k, i) * state[i];
    return *error * (c->beta >= 0 ? value_at(c->p, c->beta) : 1);
}

/* From `before` to `lost`, of which a share is lost, and `after`, in which something is written. */
static void step(const Column *c, const double *before, double *lost, double *after) {
    double error;
    for (int64_t i = 0; i < c->keys; i++)
        lost[i] = kept_share(c, i) * before[i];
    double u = written(c, lost, &error);
    for (int64_t i = 0; i < c->keys; i++)
        after[i] = lost[i] + of_key(c, c->k, i) * u;
}

/* Does something for each column: stands at its first place. */
static void each_column(Point *p, void (*each)(const Column *c)) {
    const MtfGraph *graph = p->reference->graph;
    Column c = column_of(p);
    MtfShape columns = mtf_graph_tensor(graph, c.v)->shape;
    mtf_shape_remove(&columns, p->a->dimension);
    for (int64_t i = 0; i < mtf_graph_elements(graph, &columns); i++) {
        stand_at(p, &columns, i);
        each(&c);
    }
}

static void tell(const Column *c) {
    Point *p = c->p;
    bool kept = keeps(p);
    g_autofree double *state = g_new0(double, c->keys), *lost = g_new(double, c->keys);
    for (int64_t i = 0; kept && i < c->keys; i++)
        state[i] = of_key(c, p->operation->inputs[4], i);
    for (int64_t place = 0; place < c->places; place++) {
        p->coordinate[p->a->dimension] = place;
        step(c, state, lost, state);
        double *o = element_of(c, p->operation->outputs[0]);
        *o = 0;
        for (int64_t i = 0; i < c->keys; i++)
            *o += of_key(c, c->q, i) * state[i];
    }
    for (int64_t i = 0; kept && i < c->keys; i++) {
        p->coordinate[p->a->keys] = i;
        *element_of(c, p->operation->outputs[1]) = state[i];
    }
}

void mtf_reference_linear_attention(Point *p) {
    each_column(p, tell);
}

/* One place back: `ds` is the gradient of the state behind it, and becomes that of the state before. */
static void step_back(const Column *c, const double *lost, const double *after, double *ds) {
    const int *out = c->p->operation->outputs;
    double beta = c->beta >= 0 ? value_at(c->p, c->beta) : 1, error, du = 0;
    double d_o = value_at(c->p, c->p->operation->inputs[4]);
    double u = written(c, lost, &error);
    for (int64_t i = 0; i < c->keys; i++) {
        ds[i] += of_key(c, c->q, i) * d_o;
        *element_of(c, out[1]) += after[i] * d_o;
        *element_of(c, out[2]) += ds[i] * u;
        du += ds[i] * of_key(c, c->k, i);
    }
    *element_of(c, out[0]) = beta * du;
    if (c->beta >= 0)
        *element_of(c, out[4]) += du * error;
    for (int64_t i = 0; i < c->keys; i++) {
        double k = of_key(c, c->k, i);
        *element_of(c, out[2]) -= c->beta >= 0 ? lost[i] * beta * du : 0;
        ds[i] -= c->beta >= 0 ? k * beta * du : 0;
        *element_of(c, out[3]) += ds[i] * lost[i] * (c->rate >= 0 ? of_key(c, c->rate, i) : 1);
        if (c->rate >= 0)
            *element_of(c, out[4]) += ds[i] * lost[i] * value_at(c->p, c->log);
        ds[i] *= kept_share(c, i);
    }
}

static void tell_back(const Column *c) {
    int64_t n = c->keys;
    g_autofree double *lost = g_new(double, c->places *n), *ds = g_new0(double, n);
    g_autofree double *states = g_new0(double, (c->places + 1) * n);
    for (int64_t place = 0; place < c->places; place++) {
        c->p->coordinate[c->p->a->dimension] = place;
        step(c, states + place * n, lost + place * n, states + (place + 1) * n);
    }
    for (int64_t place = c->places - 1; place >= 0; place--) {
        c->p->coordinate[c->p->a->dimension] = place;
        step_back(c, lost + place * n, states + (place + 1) * n, ds);
    }
}

void mtf_reference_linear_attention_grad(Point *p) {
    const MtfGraph *graph = p->reference->graph;
    for (int k = 0; k < p->operation->n_outputs; k++) {
        int out = p->operation->outputs[k];
        int64_t n = mtf_graph_elements(graph, &mtf_graph_tensor(graph, out)->shape);
        memset(p->reference->values[out], 0, (size_t)n * sizeof(double));
    }
    each_column(p, tell_back);
}
