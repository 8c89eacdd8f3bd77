// SPDX-License-Identifier: GPL-3.0-or-later
/* Losses as operators: what scores (axis 1: classes) say of the classes that are right. */
#include "analyzer/onnx/onnx_operators.h"
#include "analyzer/onnx/onnx_steps.h"

#include <string.h>

/* A loss while it is put together. All have the scores' axes, that of the classes of one element. */
typedef struct {
    MtfOnnxCall *call;
    MtfOnnxValue *here;   /* 1 at the class that is right, 0 elsewhere and where it is ignored */
    MtfOnnxValue *shares; /* the weight of the class that is right */
    MtfOnnxValue *losses;
} Loss;

#define CLASSES 2U /* axis 1 as bits */

static bool check_sizes(MtfOnnxCall *call, const MtfOnnxValue *x, const MtfOnnxValue *classes) {
    bool same = x->rank >= 2 && classes->rank == x->rank - 1;
    for (int k = 0; same && k < classes->rank; k++)
        same = classes->sizes[k] == x->sizes[k > 0 ? k + 1 : 0];
    return same || mtf_onnx_fail(call->t, "it wants scores [N, C, …] and classes [N, …]") != NULL;
}

/* The class that is right, one element for each place. */
static MtfOnnxValue *right_classes(MtfOnnxCall *call, int rank) {
    MtfOnnxValue *ids = mtf_onnx_cast(call->t, call->inputs[1], MTF_ONNX_INT64);
    return ids == NULL ? NULL : mtf_onnx_unsqueeze(call->t, ids, rank, CLASSES);
}

static void find_right(Loss *loss, const MtfOnnxValue *x) {
    MtfOnnxTranslation *t = loss->call->t;
    MtfOnnxValue *ids = right_classes(loss->call, x->rank);
    int64_t sizes[MTF_ONNX_MAX_RANK], ignored = mtf_onnx_int(loss->call, "ignore_index", -1);
    for (int k = 0; k < x->rank; k++)
        sizes[k] = k == 1 ? x->sizes[1] : 1;
    MtfOnnxValue *place = mtf_onnx_range(t, MTF_ONNX_INT64, x->rank, sizes, 1);
    loss->here = mtf_onnx_cast(t, mtf_onnx_binary(t, MTF_OP_EQUAL, ids, place), x->type);
    if (ignored < 0 || ignored >= x->sizes[1])
        return; /* a number of no class is nowhere */
    MtfOnnxValue *counts = mtf_onnx_binary(t, MTF_OP_NOT_EQUAL, ids,
                                           mtf_onnx_scalar(t, MTF_ONNX_INT64, (double)ignored));
    loss->here = mtf_onnx_binary(t, MTF_OP_MULTIPLY, loss->here, mtf_onnx_cast(t, counts, x->type));
}

/* Each class's weight where it is right. */
static void weigh(Loss *loss, MtfOnnxValue *weights, int rank) {
    MtfOnnxTranslation *t = loss->call->t;
    if (weights == NULL)
        return;
    weights = mtf_onnx_weight(t, weights, true);
    if (rank > 2 && weights != NULL)
        weights = mtf_onnx_unsqueeze(t, weights, rank - 1, ((1U << (rank - 1)) - 1) & ~1U);
    loss->here = mtf_onnx_binary(t, MTF_OP_MULTIPLY, loss->here, weights);
}

/* The mean divides by the weights of those that count. */
static MtfOnnxValue *finish(Loss *loss, int rank) {
    MtfOnnxTranslation *t = loss->call->t;
    const char *how = mtf_onnx_word(loss->call, "reduction", "mean");
    unsigned all = (1U << rank) - 1;
    if (strcmp(how, "none") == 0)
        return mtf_onnx_squeeze(t, loss->losses, CLASSES);
    if (strcmp(how, "mean") != 0 && strcmp(how, "sum") != 0)
        return mtf_onnx_fail(t, "reduction \"%s\" is none of none, sum and mean", how);
    MtfOnnxValue *sum = mtf_onnx_reduce(t, MTF_OP_REDUCE_SUM, loss->losses, all, NULL);
    if (strcmp(how, "mean") == 0)
        sum = mtf_onnx_binary(t, MTF_OP_DIVIDE, sum,
                              mtf_onnx_reduce(t, MTF_OP_REDUCE_SUM, loss->shares, all, NULL));
    return mtf_onnx_squeeze(t, sum, all);
}

/* - the sum over classes of weight log p where the class is right */
static MtfOnnxValue *likelihood(MtfOnnxCall *call, MtfOnnxValue *log_shares) {
    MtfOnnxTranslation *t = call->t;
    Loss loss = { .call = call };
    if (log_shares == NULL || !check_sizes(call, log_shares, call->inputs[1]))
        return NULL;
    int rank = log_shares->rank;
    find_right(&loss, log_shares);
    weigh(&loss, mtf_onnx_input(call, 2), rank);
    MtfOnnxValue *part = mtf_onnx_binary(t, MTF_OP_MULTIPLY, loss.here, log_shares);
    loss.losses =
        mtf_onnx_affine(t, mtf_onnx_reduce(t, MTF_OP_REDUCE_SUM, part, CLASSES, NULL), -1, 0);
    loss.shares = mtf_onnx_reduce(t, MTF_OP_REDUCE_SUM, loss.here, CLASSES, NULL);
    return loss.losses == NULL || loss.shares == NULL ? NULL : finish(&loss, rank);
}

static MtfOnnxValue *negative_log_likelihood(MtfOnnxCall *call) {
    return likelihood(call, mtf_onnx_real(call->t, call->inputs[0]));
}

static MtfOnnxValue *softmax_cross_entropy(MtfOnnxCall *call) {
    MtfOnnxValue *shares = mtf_onnx_log_softmax(call->t, call->inputs[0], CLASSES);
    if (call->n_outputs > 1)
        call->outputs[1] = shares;
    return likelihood(call, shares);
}

const MtfOnnxOperator mtf_onnx_loss_operators[] = {
    { "NegativeLogLikelihoodLoss", negative_log_likelihood, 0, 0, 2, 3, NULL },
    { "SoftmaxCrossEntropyLoss", softmax_cross_entropy, 0, 0, 2, 3, NULL },
    { 0 },
};
