// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/training/gradient_layers.h"

#include "analyzer/training/gradient_rule.h"
#include "layouts/base/error.h"

#define BACK MTF_BACK
#define GIVE MTF_GIVE
#define back mtf_gradient_back
#define dtype_of mtf_gradient_dtype_of
#define give mtf_gradient_give_fitted
#define give_product mtf_gradient_give_product
#define give_scaled mtf_gradient_give_scaled
#define maker mtf_gradient_maker
#define mean_count mtf_gradient_mean_count
#define scaled mtf_gradient_scaled
#define shape_of mtf_gradient_shape_of
#define share_name mtf_gradient_share_name
#define wants mtf_gradient_wants

/* Back by the opposite angle, from the same position on. */
void mtf_gradient_rotary(MtfGradient *g) {
    g->b->attributes = g->op.attributes;
    g->b->attributes.angle = -g->op.attributes.angle;
    if (g->op.n_inputs > 2)
        GIVE(g, 0, MTF_OP_ROTARY, g->dy, g->op.inputs[1], g->op.inputs[2]);
    else if (g->op.n_inputs > 1)
        GIVE(g, 0, MTF_OP_ROTARY, g->dy, g->op.inputs[1]);
    else
        GIVE(g, 0, MTF_OP_ROTARY, g->dy);
}

static void refuse(MtfGradient *g, const char *composite) {
    if (g->b->error == NULL)
        mtf_input_error(&g->b->error,
                        "operation \"%s\" (%s): its gradient is known only when its other inputs "
                        "are the statistics of one tensor; write %s instead",
                        g->op.name, mtf_operation_row(g->op.kind)->name, composite);
}

/* Whether `tensor` is 0 everywhere, as the mean that rms_norm does not take away. */
static bool is_zero(const MtfGradient *g, int tensor) {
    const MtfOperation *operation = maker(g, tensor);
    return operation != NULL && operation->kind == MTF_OP_CONSTANT &&
           operation->attributes.value == 0;
}

/* Which of what is added to scores, inputs `first` and on, has the dimensions of all of it that learns; -1:
 * nothing does. */
static int leading_bias(MtfGradient *g, int first) {
    int leading = -1;
    for (int k = first; k < g->op.n_inputs; k++) {
        if (!wants(g, k))
            continue;
        MtfShape shape = shape_of(g, g->op.inputs[k]), most = { 0 };
        if (leading >= 0)
            most = shape_of(g, g->op.inputs[leading]);
        if (leading < 0 || mtf_shape_contains(&shape, &most))
            leading = k;
        else if (!mtf_shape_contains(&most, &shape) && g->b->error == NULL)
            mtf_input_error(
                &g->b->error,
                "operation \"%s\" (attention): two of its inputs are added to scores and "
                "learn, and neither has the other's dimensions; add them before",
                g->op.name);
    }
    return leading;
}

/* What a gradient of attention is the gradient of: values, results and the gradient of those. */
typedef struct {
    const char *name;
    int v, o, dy;
    bool gives_values; /* else what it makes of v is no gradient */
} Attended;

/* One operation makes the gradients of q, k and v; that of q has the operation's own name. Inputs `first` and
 * on are added to scores; where they learn, they get their gradient from the same operation. */
static void attention_of(MtfGradient *g, int first, const Attended *x) {
    const int *in = g->op.inputs;
    int inputs[8] = { in[0], in[1], x->v, x->o, g->op.outputs[1], x->dy }, n = 6;
    int leading = leading_bias(g, first);
    if (leading >= 0)
        inputs[n++] = in[leading];
    for (int k = first; k < g->op.n_inputs; k++)
        if (k != leading)
            inputs[n++] = in[k];
    g->b->attributes = g->op.attributes;
    if (g->op.attributes.rate > 0 && g->op.attributes.stream == NULL)
        g->b->attributes.stream = g->op.name;
    int kind = leading >= 0 ? MTF_OP_ATTENTION_BIAS_GRAD : MTF_OP_ATTENTION_GRAD;
    int dq = mtf_build(g->b, kind, x->name, NULL, n, inputs);
    for (int k = 0; k < (x->gives_values ? 3 : 2) && dq >= 0; k++)
        mtf_gradient_give(g, in[k], dq + k);
    for (int k = first; k < g->op.n_inputs && dq >= 0; k++)
        if (wants(g, k))
            give(g, k, dq + 3);
}

/* `value` everywhere, of the dimensions and type of a tensor. */
static int filled(MtfGradient *g, const char *what, int like, double value) {
    MtfShape shape = shape_of(g, like);
    g->b->attributes.value = value;
    g->b->has_dtype = true;
    g->b->dtype = dtype_of(g, like);
    return back(g, MTF_OP_CONSTANT, what, &shape, 0, NULL);
}

/* Of scores s with probabilities p, whose results o have the gradient do, ds = p (do v - do o), and where lse has
 * one, p dlse on top of it. That is the first once more with values of 0, gradients of 1 and results whose sum is
 * -dlse. */
static void attention_logs(MtfGradient *g, int first) {
    const int *in = g->op.inputs, *out = g->op.outputs;
    MtfShape results = shape_of(g, out[0]);
    double features = (double)mtf_graph_size(g->b->graph, g->op.attributes.dimension);
    g_autofree char *name = g_strdup_printf("back/%s/logs", g->op.name);
    int share = scaled(g, "logs/share", g->dy_further, -1 / features);
    Attended x = { .name = name,
                   .v = filled(g, "logs/values", in[2], 0),
                   .o = BACK(g, MTF_OP_BROADCAST, "logs/results", &results, share),
                   .dy = filled(g, "logs/ones", out[0], 1) };
    attention_of(g, first, &x);
}

static void attention_to(MtfGradient *g, int first) {
    g_autofree char *name = share_name(g, 0);
    Attended x = { name, g->op.inputs[2], g->op.outputs[0], g->dy, true };
    if (g->dy >= 0)
        attention_of(g, first, &x);
    if (g->dy_further >= 0)
        attention_logs(g, first);
}

void mtf_gradient_attention(MtfGradient *g) {
    attention_to(g, 3);
}

/* Of o and lse that it goes on from, which have the share e^(lse before - lse) of the result: do is theirs to
 * that share, and lse before grows by it times do (o before - o), and times the gradient of lse. */
static void attention_before(MtfGradient *g) {
    const int *in = g->op.inputs, *out = g->op.outputs;
    MtfShape rest = shape_of(g, out[1]);
    int apart = BACK(g, MTF_OP_SUBTRACT, "before/apart", NULL, in[4], out[1]);
    int share = BACK(g, MTF_OP_EXP, "before/share", NULL, apart);
    if (wants(g, 4) && g->dy_further >= 0) {
        int passed = BACK(g, MTF_OP_MULTIPLY, "before/passed", NULL, share, g->dy_further);
        mtf_gradient_give(g, in[4], passed);
    }
    if (wants(g, 3) && g->dy >= 0)
        GIVE(g, 3, MTF_OP_MULTIPLY, g->dy, share);
    if (!wants(g, 4) || g->dy < 0)
        return;
    int dot = BACK(g, MTF_OP_EINSUM, "before/dot", &rest, g->dy, out[0]);
    int growth = is_zero(g, in[3])
                     ? scaled(g, "before/growth", dot, -1)
                     : BACK(g, MTF_OP_SUBTRACT, "before/growth", NULL,
                            BACK(g, MTF_OP_EINSUM, "before/own", &rest, g->dy, in[3]), dot);
    GIVE(g, 4, MTF_OP_MULTIPLY, share, growth);
}

void mtf_gradient_attention_further(MtfGradient *g) {
    if (wants(g, 3) || wants(g, 4))
        attention_before(g);
    attention_to(g, 5);
}

/* One operation makes all gradients; that of v has the operation's own name. */
void mtf_gradient_linear_attention(MtfGradient *g) {
    const int *in = g->op.inputs;
    int n = g->op.n_inputs;
    int inputs[6] = { in[0], in[1], in[2], in[3], g->dy, n > 4 ? in[4] : -1 };
    g_autofree char *name = share_name(g, 0);
    g->b->attributes = g->op.attributes;
    int kind = g->op.kind == MTF_OP_SELECTIVE_SCAN ? MTF_OP_SELECTIVE_SCAN_GRAD
               : n > 4                             ? MTF_OP_DELTA_RULE_GRAD
                                                   : MTF_OP_LINEAR_ATTENTION_GRAD;
    int dv = mtf_build(g->b, kind, name, NULL, n + 1, inputs);
    for (int k = 0; k < n && dv >= 0; k++)
        mtf_gradient_give(g, in[k], dv + k);
}

/* A table that is also read by a product (tied weights) has that one's dense gradient by now. */
void mtf_gradient_embedding(MtfGradient *g) {
    int more =
        wants(g, 0) && g->dy >= 0 ? mtf_gradient_take(g, g->op.inputs[0], dtype_of(g, g->dy)) : -1;
    if (more < 0)
        GIVE(g, 0, MTF_OP_EMBEDDING_GRAD, g->op.inputs[1], g->dy);
    else
        GIVE(g, 0, MTF_OP_EMBEDDING_GRAD, g->op.inputs[1], g->dy, more);
}

/* dispatch and combine are each other's gradient; a gate's is what it weights. */
static void routed(MtfGradient *g, int kind) {
    const int *in = g->op.inputs;
    bool gated = g->op.n_inputs == 3;
    if (wants(g, 0) && gated)
        GIVE(g, 0, kind, g->dy, in[1], in[2]);
    else if (wants(g, 0))
        GIVE(g, 0, kind, g->dy, in[1]);
}

void mtf_gradient_dispatch(MtfGradient *g) {
    routed(g, MTF_OP_COMBINE);
    if (wants(g, 2))
        GIVE(g, 2, MTF_OP_COMBINE_GATE_GRAD, g->dy, g->op.inputs[0], g->op.inputs[1]);
}

void mtf_gradient_combine(MtfGradient *g) {
    routed(g, MTF_OP_DISPATCH);
    if (wants(g, 2))
        GIVE(g, 2, MTF_OP_COMBINE_GATE_GRAD, g->op.inputs[0], g->dy, g->op.inputs[1]);
}

void mtf_gradient_expert_einsum(MtfGradient *g) {
    const int *in = g->op.inputs;
    if (wants(g, 1)) {
        g->b->attributes.experts = g->op.attributes.experts;
        GIVE(g, 1, MTF_OP_EXPERT_EINSUM_GRAD, in[0], g->dy, in[2]);
    }
    if (wants(g, 0)) {
        g->b->attributes.experts = g->op.attributes.experts;
        GIVE(g, 0, MTF_OP_EXPERT_EINSUM, g->dy, in[1], in[2]);
    }
}

/* y = sum of e^(x - m): x gets e^(x - m) dy, m gets -y dy. */
void mtf_gradient_sum_exp(MtfGradient *g) {
    int x = g->op.inputs[0], max = g->op.inputs[1];
    if (wants(g, 0)) {
        int difference = BACK(g, MTF_OP_SUBTRACT, "difference", NULL, x, max);
        int power = BACK(g, MTF_OP_EXP, "exp", NULL, difference);
        GIVE(g, 0, MTF_OP_MULTIPLY, power, g->dy);
    }
    if (wants(g, 1)) {
        int product = BACK(g, MTF_OP_MULTIPLY, "product", NULL, g->dy, g->op.outputs[0]);
        give(g, 1, BACK(g, MTF_OP_NEGATE, "negated", NULL, product));
    }
}

/* y = mean of (x - m)^2 over n elements: x gets (x - m) 2 dy / n, m gets minus the sum of that. */
void mtf_gradient_variance(MtfGradient *g) {
    int share = scaled(g, "share", g->dy, 2 / mean_count(g));
    int difference = BACK(g, MTF_OP_SUBTRACT, "difference", NULL, g->op.inputs[0], g->op.inputs[1]);
    int product = BACK(g, MTF_OP_MULTIPLY, "product", NULL, difference, share);
    if (wants(g, 0))
        give(g, 0, product);
    if (wants(g, 1))
        give(g, 1, BACK(g, MTF_OP_NEGATE, "negated", NULL, product));
}

/* Whether `tensor` is the operation of that kind on x (and y). */
static bool is_made(const MtfGradient *g, int tensor, int kind, int x, int y) {
    const MtfOperation *operation = maker(g, tensor);
    return operation != NULL && operation->kind == kind && operation->inputs[0] == x &&
           (y < 0 || operation->inputs[1] == y);
}

static bool is_of_softmax(const MtfGradient *g, int x, int max, int sum) {
    return is_made(g, max, MTF_OP_REDUCE_MAX, x, -1) && is_made(g, sum, MTF_OP_SUM_EXP, x, max);
}

void mtf_gradient_softmax_apply(MtfGradient *g) {
    int x = g->op.inputs[0], max = g->op.inputs[1], sum = g->op.inputs[2];
    int y = g->op.outputs[0];
    if (!is_of_softmax(g, x, max, sum)) {
        refuse(g, "softmax");
        return;
    }
    MtfShape rest = shape_of(g, sum);
    int dot = BACK(g, MTF_OP_EINSUM, "dot", &rest, y, g->dy);
    GIVE(g, 0, MTF_OP_SOFTMAX_GRAD, y, g->dy, dot);
}

static void cross_entropy_mask(MtfGradient *g) {
    const int *in = g->op.inputs;
    int loss = BACK(g, MTF_OP_CROSS_ENTROPY, "loss", NULL, in[0], in[1], in[2]);
    give_product(g, 3, g->dy, loss);
}

/* The whole gradient of (logits -> loss) goes to the logits. */
void mtf_gradient_cross_entropy(MtfGradient *g) {
    const int *in = g->op.inputs;
    const MtfOperation *choice = maker(g, in[2]);
    int logits = choice != NULL && choice->kind == MTF_OP_LABEL_LOGIT ? choice->inputs[0] : -1;
    if (logits < 0 || !is_of_softmax(g, logits, in[0], in[1])) {
        refuse(g, "softmax_cross_entropy");
        return;
    }
    int labels = choice->inputs[1];
    if (wants(g, 3))
        cross_entropy_mask(g);
    if (!g->wanted[logits])
        return;
    int inputs[6] = { logits, labels, in[0], in[1], g->dy, g->op.n_inputs > 3 ? in[3] : -1 };
    mtf_gradient_give(
        g, logits,
        back(g, MTF_OP_CROSS_ENTROPY_GRAD, "logits", NULL, g->op.n_inputs > 3 ? 6 : 5, inputs));
}

/* The statistics of the batch, where others take their place outside training. */
static int in_training(const MtfGradient *g, int tensor) {
    const MtfOperation *operation = maker(g, tensor);
    bool chooses = operation != NULL && operation->kind == MTF_OP_IN_TRAIN_PHASE;
    return chooses ? operation->inputs[0] : tensor;
}

/* Whether both statistics are of the step's examples, or both of a micro-batch's. */
static bool over_the_same(const MtfGradient *g, int mean, int variance) {
    return is_zero(g, mean) || maker(g, mean)->attributes.per_microbatch ==
                                   maker(g, variance)->attributes.per_microbatch;
}

/* Nothing flows through a mean that is 0: the sum that would is that 0 as well. */
static void normalize_x(MtfGradient *g, const int *in) {
    MtfShape rest = shape_of(g, in[1]);
    int sum = is_zero(g, in[1]) ? in[1] : BACK(g, MTF_OP_EINSUM, "sum", &rest, g->dy, in[3]);
    g->b->attributes.epsilon = g->op.attributes.epsilon;
    int dot = BACK(g, MTF_OP_NORMALIZE_DOT, "dot", &rest, g->dy, in[0], in[1], in[2], in[3]);
    g->b->attributes.epsilon = g->op.attributes.epsilon;
    g->b->attributes.per_microbatch = maker(g, in[2])->attributes.per_microbatch;
    GIVE(g, 0, MTF_OP_NORMALIZE_GRAD, g->dy, in[0], in[1], in[2], in[3], sum, dot);
}

void mtf_gradient_normalize(MtfGradient *g) {
    const int in[] = { g->op.inputs[0], in_training(g, g->op.inputs[1]),
                       in_training(g, g->op.inputs[2]), g->op.inputs[3] };
    bool of_x = (is_zero(g, in[1]) || is_made(g, in[1], MTF_OP_REDUCE_MEAN, in[0], -1)) &&
                is_made(g, in[2], MTF_OP_VARIANCE, in[0], in[1]) && over_the_same(g, in[1], in[2]);
    if (!of_x && (wants(g, 0) || wants(g, 1) || wants(g, 2))) {
        refuse(g, "layer_norm");
        return;
    }
    if (wants(g, 3)) {
        g->b->attributes.epsilon = g->op.attributes.epsilon;
        GIVE(g, 3, MTF_OP_NORMALIZE_SCALE_GRAD, g->dy, in[0], in[1], in[2]);
    }
    if (wants(g, 4))
        give(g, 4, g->dy);
    if (wants(g, 0))
        normalize_x(g, in);
}
