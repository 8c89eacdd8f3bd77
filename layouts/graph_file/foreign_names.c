// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/graph_file/foreign_names.h"

#include "layouts/base/nearest_name.h"
#include "layouts/graph/operation_table.h"

#include <string.h>

/* Names without "_" and "2d", and what says the same: an operation, and what goes with it. */
static const struct {
    const char *name;
    int kind;
    const char *more;
} foreign_names[] = {
    { "matmul", MTF_OP_EINSUM, ": dimensions that \"dims\" lacks are summed" },
    { "mm", MTF_OP_EINSUM, ": dimensions that \"dims\" lacks are summed" },
    { "bmm", MTF_OP_EINSUM, ": dimensions that \"dims\" lacks are summed" },
    { "dot", MTF_OP_EINSUM, ": dimensions that \"dims\" lacks are summed" },
    { "gemm", MTF_OP_EINSUM, ", and add for a bias" },
    { "linear", MTF_OP_EINSUM, ", and add for a bias" },
    { "dense", MTF_OP_EINSUM, ", and add for a bias" },
    { "sub", MTF_OP_SUBTRACT, "" },
    { "mul", MTF_OP_MULTIPLY, "" },
    { "div", MTF_OP_DIVIDE, "" },
    { "neg", MTF_OP_NEGATE, "" },
    { "clamp", MTF_OP_CLIP, "" },
    { "sum", MTF_OP_REDUCE_SUM, "" },
    { "mean", MTF_OP_REDUCE_MEAN, "" },
    { "max", MTF_OP_REDUCE_MAX, ", or maximum of two inputs" },
    { "min", MTF_OP_REDUCE_MIN, ", or minimum of two inputs" },
    { "prod", MTF_OP_REDUCE_PROD, "" },
    { "var", MTF_OP_VARIANCE, " of an input and its mean" },
    { "std", MTF_OP_VARIANCE, " of an input and its mean, and sqrt" },
    { "logsumexp", MTF_OP_LOG_SUM_EXP, "" },
    { "argmin", MTF_OP_ARGMAX, " of negate" },
    { "cumsum", MTF_OP_CUMULATIVE_SUM, "" },
    { "cummax", MTF_OP_CUMULATIVE_MAX, "" },
    { "topk", MTF_OP_TOP_K, "" },
    { "swish", MTF_OP_SILU, "" },
    { "gelunew", MTF_OP_GELU, "" },
    { "gelutanh", MTF_OP_GELU, "" },
    { "quickgelu", MTF_OP_EXPRESSION, " \"x * sigmoid(1.702 * x)\"" },
    { "mish", MTF_OP_EXPRESSION, " \"x * tanh(softplus(x))\"" },
    { "hardswish", MTF_OP_EXPRESSION, " \"x * min(max(x + 3, 0), 6) / 6\"" },
    { "hardsigmoid", MTF_OP_EXPRESSION, " \"min(max(x + 3, 0), 6) / 6\"" },
    { "relu6", MTF_OP_CLIP, " from 0 to 6" },
    { "selu", MTF_OP_EXPRESSION, " \"1.0507 * where(x > 0, x, 1.67326 * (exp(x) - 1))\"" },
    { "prelu", MTF_OP_EXPRESSION, " \"max(x, 0) + slope * min(x, 0)\"" },
    { "glu", MTF_OP_EXPRESSION, " \"a * sigmoid(b)\" of both halves" },
    { "logsoftmax", MTF_OP_SUBTRACT, " log_sum_exp from the input" },
    { "crossentropy", MTF_OP_SOFTMAX_CROSS_ENTROPY, ", and reduce_mean" },
    { "crossentropyloss", MTF_OP_SOFTMAX_CROSS_ENTROPY, ", and reduce_mean" },
    { "nllloss", MTF_OP_SOFTMAX_CROSS_ENTROPY, " of the scores before their softmax" },
    { "mseloss", MTF_OP_EXPRESSION, " \"(x - y) ^ 2\", and reduce_mean" },
    { "l1loss", MTF_OP_EXPRESSION, " \"abs(x - y)\", and reduce_mean" },
    { "bcewithlogits", MTF_OP_EXPRESSION, " \"max(x, 0) - x * y + softplus(-abs(x))\"" },
    { "layernormalization", MTF_OP_LAYER_NORM, "" },
    { "batchnorm", MTF_OP_NORMALIZE, " by reduce_mean and variance over all but channels" },
    { "groupnorm", MTF_OP_NORMALIZE,
      " by reduce_mean and variance over all but examples and groups" },
    { "instancenorm", MTF_OP_NORMALIZE, " by reduce_mean and variance over space" },
    { "avgpool", MTF_OP_AVERAGE_POOL, "" },
    { "maxpool", MTF_OP_MAX_POOL, "" },
    { "adaptiveavgpool", MTF_OP_REDUCE_MEAN, " over space, or average_pool" },
    { "convolution", MTF_OP_CONV, "" },
    { "depthwiseconv", MTF_OP_CONV, ": channels that x, filter and result have are groups" },
    { "deconv", MTF_OP_CONV_TRANSPOSE, "" },
    { "view", MTF_OP_RESHAPE, "" },
    { "flatten", MTF_OP_RESHAPE, "" },
    { "permute", MTF_OP_TRANSPOSE, "" },
    { "squeeze", MTF_OP_SELECT, " with \"index\" 0" },
    { "unsqueeze", MTF_OP_BROADCAST, "" },
    { "expanddims", MTF_OP_BROADCAST, "" },
    { "expand", MTF_OP_BROADCAST, "" },
    { "tile", MTF_OP_BROADCAST, ", and reshape" },
    { "cat", MTF_OP_CONCAT, "" },
    { "concatenate", MTF_OP_CONCAT, "" },
    { "split", MTF_OP_SLICE, " for each part" },
    { "chunk", MTF_OP_SLICE, " for each part" },
    { "unstack", MTF_OP_SELECT, " for each element" },
    { "indexselect", MTF_OP_GATHER, "" },
    { "take", MTF_OP_GATHER, "" },
    { "scatter", MTF_OP_SCATTER_ADD, "" },
    { "scatternd", MTF_OP_SCATTER_ADD, " along one dimension, of places that a reshape merges" },
    { "gathernd", MTF_OP_GATHER, " along one dimension, of places that a reshape merges" },
    { "flip", MTF_OP_REVERSE, "" },
    { "shift", MTF_OP_RESAMPLE, " with \"start\"" },
    { "detach", MTF_OP_STOP_GRADIENT, "" },
    { "full", MTF_OP_CONSTANT, "" },
    { "arange", MTF_OP_RANGE, "" },
    { "iota", MTF_OP_RANGE, "" },
    { "randn", MTF_OP_RANDOM_NORMAL, "" },
    { "rand", MTF_OP_RANDOM_UNIFORM, "" },
    { "scaleddotproductattention", MTF_OP_ATTENTION, "" },
    { "multiheadattention", MTF_OP_ATTENTION, " between four einsum" },
    { "interpolate", MTF_OP_BROADCAST, " and reshape for whole factors" },
    { "upsample", MTF_OP_BROADCAST, " and reshape for whole factors" },
    { "pixelshuffle", MTF_OP_RESHAPE, " and transpose" },
};

/* What no single operation says: what does, or that nothing does. */
#define LOOP "; write its step in a loop block"
#define DATA_DECIDES \
    "; results whose size the data decide have none here: mark elements by where, or take top_k"
#define NO_SOLVER "; factors of matrices have no operation: a loop block may iterate towards one"
static const struct {
    const char *name, *instead;
} other_ways[] = {
    { "lstm", LOOP },
    { "gru", LOOP },
    { "rnn", LOOP },
    { "scan", LOOP },
    { "lstmcell", LOOP },
    { "grucell", LOOP },
    { "ctcloss", "; write its recurrence over places in a loop block" },
    { "nonzero", DATA_DECIDES },
    { "unique", DATA_DECIDES },
    { "maskedselect", DATA_DECIDES },
    { "booleanmask", DATA_DECIDES },
    { "nms", DATA_DECIDES },
    { "svd", NO_SOLVER },
    { "qr", NO_SOLVER },
    { "eig", NO_SOLVER },
    { "eigh", NO_SOLVER },
    { "cholesky", NO_SOLVER },
    { "inverse", NO_SOLVER },
    { "det", NO_SOLVER },
    { "solve", NO_SOLVER },
    { "triangularsolve", NO_SOLVER },
    { "fft", "; use einsum with the matrices of its cosines and sines" },
    { "rfft", "; use einsum with the matrices of its cosines and sines" },
    { "stft", "; use conv with the cosines and sines of its frames" },
    { "unfold", "; use conv, or resample for each place of the window" },
    { "gridsample", "; use gather at each corner, weighed and added" },
    { "roialign", "; use gather at each corner, weighed and added" },
};

/* Gradients are not asked for: a loss has them. */
static const char *const derived[] = { "grad", "gradient", "gradients", "vjp",
                                       "jvp",  "jacobian", NULL };

static char *bare(const char *name) {
    GString *text = g_string_new(NULL);
    for (const char *c = name; *c != '\0'; c++)
        if (*c != '_')
            g_string_append_c(text, g_ascii_tolower(*c));
    bool counts = text->len > 2 && text->str[text->len - 1] == 'd' &&
                  strchr("123", text->str[text->len - 2]) != NULL;
    g_string_truncate(text, text->len - (counts ? 2 : 0));
    return g_string_free(text, FALSE);
}

/* ` (did you mean "NAME"?)` of those that users write. */
static char *nearest(const char *name) {
    const char *names[MTF_OPERATIONS + 1] = { NULL };
    int n = 0;
    for (int i = 0; i < MTF_OPERATIONS; i++)
        if (!g_str_has_suffix(mtf_operation_row(i)->name, "_grad"))
            names[n++] = mtf_operation_row(i)->name;
    return mtf_did_you_mean(name, names);
}

char *mtf_operation_hint(const char *name) {
    g_autofree char *word = bare(name);
    if (mtf_operation_kind(word) >= 0)
        return g_strdup_printf("; use %s", word);
    for (gsize i = 0; i < G_N_ELEMENTS(foreign_names); i++)
        if (strcmp(foreign_names[i].name, word) == 0)
            return g_strdup_printf("; use %s%s", mtf_operation_row(foreign_names[i].kind)->name,
                                   foreign_names[i].more);
    for (gsize i = 0; i < G_N_ELEMENTS(other_ways); i++)
        if (strcmp(other_ways[i].name, word) == 0)
            return g_strdup(other_ways[i].instead);
    if (g_strv_contains(derived, word))
        return g_strdup(
            "; gradients are derived from the loss, and one that the loss itself reads is "
            "written out, by operations as estimate --dump-after execute prints them");
    char *near = nearest(name);
    if (*near != '\0')
        return near;
    g_free(near);
    return g_strdup("; a function of elements may be written as an expression");
}
