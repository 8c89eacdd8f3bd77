// SPDX-License-Identifier: GPL-3.0-or-later
/* What optimizers do, one element at a time. */
#include "tests/support/reference/reference_point.h"

#include <math.h>
#include <string.h>

static double learning_rate(const Point *p) {
    const MtfAttributes *a = p->a;
    const char *schedule = a->schedule != NULL ? a->schedule : "constant";
    double warm = a->warmup > 0 ? fmin(1, p->t / a->warmup) : 1;
    if (strcmp(schedule, "constant") == 0)
        return a->rate;
    if (strcmp(schedule, "linear_warmup") == 0)
        return a->rate * warm;
    if (strcmp(schedule, "inverse_sqrt") == 0)
        return a->rate * fmin(warm, sqrt(fmax(a->warmup, 1) / p->t));
    if (strcmp(schedule, "step") == 0)
        return a->rate * warm * pow(a->drop, floor(fmax(0, p->t - a->warmup) / a->period));
    if (strcmp(schedule, "wsd") == 0) {
        bool stable = p->t <= a->total - a->cooldown;
        double left = fmax(0, a->total - p->t) / a->cooldown;
        return a->rate * warm * (stable ? 1 : a->final + (1 - a->final) * left);
    }
    double length = a->total - a->warmup;
    double done = length > 0 ? CLAMP((p->t - a->warmup) / length, 0, 1) : 1;
    if (strcmp(schedule, "linear") == 0)
        return a->rate * warm * (1 - done + done * a->final);
    if (strcmp(schedule, "polynomial") == 0)
        return a->rate * warm * (a->final + (1 - a->final) * pow(1 - done, a->power));
    g_assert(strcmp(schedule, "cosine") == 0);
    return a->rate * warm * (a->final + (1 - a->final) * (1 + cos(G_PI * done)) / 2);
}

static double sgd(const Point *p) {
    const double *x = p->x;
    double g = x[1] * (p->n > 3 ? x[3] : 1) + p->a->weight_decay * x[0];
    return x[0] - x[2] * g;
}

static double momentum(const Point *p) {
    const double *x = p->x;
    double g = x[1] * (p->n > 4 ? x[4] : 1) + p->a->weight_decay * x[0];
    double v = p->a->beta1 * x[2] + g;
    return p->output == 1 ? v : x[0] - x[3] * v;
}

static double lion(const Point *p) {
    const double *x = p->x;
    const MtfAttributes *a = p->a;
    double g = x[1] * (p->n > 4 ? x[4] : 1);
    if (p->output == 1)
        return a->beta2 * x[2] + (1 - a->beta2) * g;
    double mixed = a->beta1 * x[2] + (1 - a->beta1) * g;
    return x[0] - x[3] * ((mixed > 0) - (mixed < 0) + a->weight_decay * x[0]);
}

static double adam(const Point *p) {
    const double *x = p->x;
    const MtfAttributes *a = p->a;
    double g = x[1] * (p->n > 5 ? x[5] : 1);
    double m = a->beta1 * x[2] + (1 - a->beta1) * g;
    double v = a->beta2 * x[3] + (1 - a->beta2) * g * g;
    if (p->output > 0)
        return p->output == 1 ? m : v;
    double m_hat = m / (1 - pow(a->beta1, p->t)), v_hat = v / (1 - pow(a->beta2, p->t));
    return x[0] - x[4] * (m_hat / (sqrt(v_hat) + a->epsilon) + a->weight_decay * x[0]);
}

static double lamb_direction(const Point *p) {
    const double *x = p->x;
    const MtfAttributes *a = p->a;
    double g = x[1] * (p->n > 4 ? x[4] : 1);
    double m = a->beta1 * x[2] + (1 - a->beta1) * g;
    double v = a->beta2 * x[3] + (1 - a->beta2) * g * g;
    if (p->output > 0)
        return p->output == 1 ? m : v;
    double m_hat = m / (1 - pow(a->beta1, p->t)), v_hat = v / (1 - pow(a->beta2, p->t));
    return m_hat / (sqrt(v_hat) + a->epsilon) + a->weight_decay * x[0];
}

TERM(lamb_apply, x - v * (z > 0 && u > 0 ? sqrt(z / u) : 1) * y)

static double adafactor_moment(const Point *p) {
    double b = 1 - pow(p->t, -p->a->decay);
    return b * p->x[0] + (1 - b) * (p->x[1] + p->a->epsilon);
}

TERM(adafactor_direction, p->n == 2 ? x / sqrt(y) : x / sqrt(y * z / u))

static double adafactor_apply(const Point *p) {
    const double *x = p->x;
    double n = (double)mtf_graph_elements(p->reference->graph, &output(p)->shape);
    return x[0] - x[3] * x[1] / fmax(1, sqrt(x[2] / n) / p->a->threshold);
}

const MtfReferenceTerm mtf_reference_updates[MTF_OPERATIONS] = {
    [MTF_OP_LEARNING_RATE] = learning_rate,
    [MTF_OP_SGD] = sgd,
    [MTF_OP_MOMENTUM] = momentum,
    [MTF_OP_LION] = lion,
    [MTF_OP_ADAM] = adam,
    [MTF_OP_LAMB_DIRECTION] = lamb_direction,
    [MTF_OP_LAMB_APPLY] = lamb_apply,
    [MTF_OP_ADAFACTOR_MOMENT] = adafactor_moment,
    [MTF_OP_ADAFACTOR_DIRECTION] = adafactor_direction,
    [MTF_OP_ADAFACTOR_APPLY] = adafactor_apply,
};
