// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/graph/operation_table.h"

#include "layouts/graph/operation_check.h"
#include "layouts/graph/reshape.h"
#include "layouts/graph/window.h"

#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#define NUMBER(field, standard_value) \
    { #field, MTF_ATTRIBUTE_NUMBER, offsetof(MtfAttributes, field), false, standard_value }
#define REQUIRED_NUMBER(field) \
    { #field, MTF_ATTRIBUTE_NUMBER, offsetof(MtfAttributes, field), true, 0 }
#define REQUIRED_DIMENSION(field) \
    { #field, MTF_ATTRIBUTE_DIMENSION, offsetof(MtfAttributes, field), true, 0 }
#define DIMENSION(field) \
    { #field, MTF_ATTRIBUTE_DIMENSION, offsetof(MtfAttributes, field), false, 0 }
#define STRING(field) \
    { #field, MTF_ATTRIBUTE_STRING, offsetof(MtfAttributes, field), false, 0 }

#define WINDOWS \
    { "windows", MTF_ATTRIBUTE_WINDOWS, offsetof(MtfAttributes, windows), true, 0 }

/* Input k is of the type of sums. */
#define WIDE(k) (1U << (k))

#define ATTENTION                                                                         \
    REQUIRED_DIMENSION(query), REQUIRED_DIMENSION(memory), REQUIRED_DIMENSION(dimension), \
        REQUIRED_NUMBER(factor), NUMBER(causal, 0), NUMBER(softcap, 0), NUMBER(window, 0)

/* Rows of one kind share their first fields. */
#define ELEMENTWISE(text, least, most)                                                            \
    .name = text, .kernel_class = MTF_CLASS_ELEMENTWISE, .min_inputs = least, .max_inputs = most, \
    .n_outputs = 1
#define UNARY(text, cost) \
    { ELEMENTWISE(text, 1, 1), .dims = MTF_DIMS_FIRST, .flops = cost, .in_place = 1 }
/* What integers have as well. */
#define EXACT_UNARY(text) \
    { ELEMENTWISE(text, 1, 1), .dims = MTF_DIMS_FIRST, .flops = 1, .in_place = 1, .integers = true }
#define BINARY(text) \
    { ELEMENTWISE(text, 2, 2), .dims = MTF_DIMS_UNION, .flops = 1, .in_place = 3, .integers = true }
#define COMPOSITE(text, least, most, dims_rule) \
    ELEMENTWISE(text, least, most), .composite = true, .dims = dims_rule
/* The gradient of a unary function from (x or y, dy): linear in dy. */
#define UNARY_GRAD(text, cost)                                                         \
    {                                                                                  \
        ELEMENTWISE(text, 2, 2), .dims = MTF_DIMS_FIRST, .flops = cost, .in_place = 3, \
                                 .linearity = MTF_LINEAR_ONE, .linear_input = 1        \
    }
/* Sums something over the dimensions its output lacks. */
#define SUMMING(text, least, most)                                                              \
    .name = text, .kernel_class = MTF_CLASS_REDUCTION, .min_inputs = least, .max_inputs = most, \
    .n_outputs = 1, .dims = MTF_DIMS_SUBSET, .reduction = MTF_REDUCE_SUM
/* The same elements in another form: linear in input 0. */
#define MOVING(text, dims_rule)                                                     \
    .name = text, .kernel_class = MTF_CLASS_MOVE, .min_inputs = 1, .max_inputs = 1, \
    .n_outputs = 1, .dims = dims_rule, .linearity = MTF_LINEAR_ONE, .linear_input = 0

/* Sums of products over windows. */
#define CONVOLUTION(text, form)                                                           \
    .name = text, .kernel_class = MTF_CLASS_MATMUL, .min_inputs = 2, .max_inputs = 2,     \
    .n_outputs = 1, .dims = MTF_DIMS_NEW, .reduction = MTF_REDUCE_SUM,                    \
    .linearity = MTF_LINEAR_EACH, .flops = 2, .positional = true, .own_dimensions = true, \
    .products = MTF_PRODUCTS_CONV, .windows = form, .share = window_share,                \
    .padding = MTF_PADDING_ZERO, .check = mtf_check_conv, .attributes = { WINDOWS }
#define POOLING(text, form)                                                              \
    .name = text, .kernel_class = MTF_CLASS_REDUCTION, .dims = MTF_DIMS_NEW, .flops = 1, \
    .positional = true, .own_dimensions = true, .windows = form, .share = window_share,  \
    .check = mtf_check_pool

/* The position of `dim` in the iteration space, which has it. */
static int index_of(const MtfIteration *iteration, int dim) {
    int i = 0;
    while (iteration->index[i].dim != dim)
        i++;
    return i;
}

/* Pairs of a query from b to `limit` and an earlier position of memory from 0 to m: all but those
 * that come later, the integral of m - i over i from b to end = min(m, limit), where b < end. */
static double pairs_behind(double b, double limit, double m) {
    double end = fmin(m, limit);
    double later = b < end ? m * (end - b) - (end * end - b * b) / 2 : 0;
    return m * (limit - b) - later;
}

/* Along a window's index the points are those of one side; each meets as many of the other as the
 * window has elements, which pools have no dimension for, and of the larger side, spread over
 * windows that are apart, fewer. */
static double window_share(const MtfAttributes *a, const MtfIteration *iteration,
                           const int64_t *sizes) {
    double share = 1;
    (void)sizes;
    for (int w = 0; w < a->n_windows; w++) {
        const MtfWindow *window = &a->windows[w];
        for (int i = 0; i < iteration->n; i++) {
            bool large = iteration->index[i].other_dim >= 0 && iteration->index[i].is_larger;
            if (large &&
                (iteration->index[i].dim == window->from || iteration->index[i].dim == window->to))
                share /= window->stride;
        }
        share *= window->kernel < 0 ? window->size : 1;
    }
    return share;
}

/* Of attention that looks back only, and with a window w no further than that:
 *
 *     memory 0 …… m        queries from b = L - l to L, memory from 0 to m:
 *     b   . # # # #        those behind the query, less
 *         . . # # .        those behind the query's position less w
 *     L   . . # . . */
static double causal_share(const MtfAttributes *a, const MtfIteration *iteration,
                           const int64_t *sizes) {
    if (a->causal == 0)
        return 1;
    int query = index_of(iteration, a->query);
    double l = (double)sizes[query], b = (double)iteration->index[query].size - l;
    double m = (double)sizes[index_of(iteration, a->memory)], w = a->window;
    double behind = pairs_behind(b, b + l, m);
    if (w > 0 && m < (double)iteration->index[index_of(iteration, a->memory)].size)
        behind = fmin(behind, l * fmin(w, m)); /* some part of memory is seen by all queries */
    else if (w > 0 && b + l > w)
        behind -= pairs_behind(fmax(b - w, 0), b + l - w, m);
    return fmax(behind, 0) / (l * m);
}

/* Each row meets one of the experts. */
static double expert_share(const MtfAttributes *a, const MtfIteration *iteration,
                           const int64_t *sizes) {
    (void)sizes;
    return 1 / (double)iteration->index[index_of(iteration, a->experts)].size;
}

/* The same where the queries are the last of a full memory. */
static double cached_share(const MtfAttributes *a, const MtfIteration *iteration,
                           const int64_t *sizes) {
    int query = index_of(iteration, a->query), memory = index_of(iteration, a->memory);
    double l = (double)sizes[query], m = (double)iteration->index[memory].size, w = a->window;
    double behind = pairs_behind(m - l, m, m);
    if (w > 0 && w < m)
        behind -= pairs_behind(fmax(m - l - w, 0), m - w, m);
    return fmax(behind, 0) / (l * m);
}

static const MtfOperationRow rows[MTF_OPERATIONS] = {
    [MTF_OP_EINSUM] = { .name = "einsum",
                        .kernel_class = MTF_CLASS_MATMUL,
                        .min_inputs = 1,
                        .max_inputs = 8,
                        .n_outputs = 1,
                        .dims = MTF_DIMS_SUBSET,
                        .reduction = MTF_REDUCE_SUM,
                        .linearity = MTF_LINEAR_EACH,
                        .flops = 2,
                        .dtype = MTF_DTYPE_EITHER,
                        .padding = MTF_PADDING_ZERO,
                        .adds_up = true,
                        .products = MTF_PRODUCTS_EINSUM,
                        .scratch = MTF_SCRATCH_EINSUM },
    [MTF_OP_ADD] = { ELEMENTWISE("add", 2, INT_MAX), .dims = MTF_DIMS_UNION,
                     .linearity = MTF_LINEAR_JOINT, .flops = 1, .in_place = ~0U, .integers = true },
    [MTF_OP_SUBTRACT] = { ELEMENTWISE("subtract", 2, 2), .dims = MTF_DIMS_UNION,
                          .linearity = MTF_LINEAR_JOINT, .flops = 1, .in_place = 3,
                          .integers = true },
    [MTF_OP_MULTIPLY] = { ELEMENTWISE("multiply", 2, 2), .dims = MTF_DIMS_UNION,
                          .linearity = MTF_LINEAR_EACH, .flops = 1, .in_place = 3,
                          .integers = true },
    [MTF_OP_DIVIDE] = { ELEMENTWISE("divide", 2, 2), .dims = MTF_DIMS_UNION,
                        .linearity = MTF_LINEAR_ONE, .linear_input = 0, .flops = 1, .in_place = 3,
                        .singular = true, .ratio = true },
    [MTF_OP_MAXIMUM] = BINARY("maximum"),
    [MTF_OP_MINIMUM] = BINARY("minimum"),
    [MTF_OP_EQUAL] = BINARY("equal"),
    [MTF_OP_LESS] = BINARY("less"),
    [MTF_OP_LESS_EQUAL] = BINARY("less_equal"),
    [MTF_OP_WHERE] = { ELEMENTWISE("where", 3, 3), .dims = MTF_DIMS_UNION, .flops = 1,
                       .in_place = 7, .integers = true },
    [MTF_OP_MODULO] = BINARY("mod"),
    [MTF_OP_POWER] = { ELEMENTWISE("pow", 2, 2), .dims = MTF_DIMS_UNION, .singular = true,
                       .flops = 20, .in_place = 3 },
    [MTF_OP_SCALE] = { ELEMENTWISE("scale", 1, 1), .dims = MTF_DIMS_FIRST,
                       .linearity = MTF_LINEAR_ONE, .flops = 1, .in_place = 1,
                       .attributes = { REQUIRED_NUMBER(factor) } },
    [MTF_OP_RELU] = UNARY("relu", 1),
    [MTF_OP_GELU] = UNARY("gelu", 12),
    [MTF_OP_SILU] = UNARY("silu", 8),
    [MTF_OP_TANH] = UNARY("tanh", 8),
    [MTF_OP_SIGMOID] = UNARY("sigmoid", 8),
    [MTF_OP_EXP] = UNARY("exp", 6),
    [MTF_OP_LOG] = { ELEMENTWISE("log", 1, 1), .dims = MTF_DIMS_FIRST, .flops = 6, .in_place = 1,
                     .singular = true },
    [MTF_OP_SQRT] = { ELEMENTWISE("sqrt", 1, 1), .dims = MTF_DIMS_FIRST, .flops = 2, .in_place = 1,
                      .singular = true },
    [MTF_OP_RSQRT] = { ELEMENTWISE("rsqrt", 1, 1), .dims = MTF_DIMS_FIRST, .flops = 2,
                       .in_place = 1, .singular = true },
    [MTF_OP_SQUARE] = EXACT_UNARY("square"),
    [MTF_OP_NEGATE] = { ELEMENTWISE("negate", 1, 1), .dims = MTF_DIMS_FIRST,
                        .linearity = MTF_LINEAR_ONE, .flops = 1, .in_place = 1, .integers = true },
    [MTF_OP_ABS] = EXACT_UNARY("abs"),
    [MTF_OP_SIGN] = EXACT_UNARY("sign"),
    [MTF_OP_LOGICAL_NOT] = EXACT_UNARY("logical_not"),
    [MTF_OP_RAISE] = { ELEMENTWISE("power", 1, 1), .dims = MTF_DIMS_FIRST, .singular = true,
                       .flops = 20, .in_place = 1, .attributes = { REQUIRED_NUMBER(exponent) } },
    [MTF_OP_CLIP] = { ELEMENTWISE("clip", 1, 1), .dims = MTF_DIMS_FIRST, .flops = 2, .in_place = 1,
                      .attributes = { REQUIRED_NUMBER(low), REQUIRED_NUMBER(high) },
                      .check = mtf_check_clip },
    [MTF_OP_LEAKY_RELU] = { ELEMENTWISE("leaky_relu", 1, 1), .dims = MTF_DIMS_FIRST, .flops = 2,
                            .in_place = 1, .attributes = { NUMBER(slope, 0.01) } },
    [MTF_OP_ELU] = { ELEMENTWISE("elu", 1, 1), .dims = MTF_DIMS_FIRST, .flops = 8, .in_place = 1,
                     .attributes = { NUMBER(slope, 1) } },
    [MTF_OP_GELU_EXACT] = UNARY("gelu_exact", 20),
    [MTF_OP_SOFTPLUS] = UNARY("softplus", 12),
    [MTF_OP_SIN] = UNARY("sin", 10),
    [MTF_OP_COS] = UNARY("cos", 10),
    [MTF_OP_ERF] = UNARY("erf", 15),
    [MTF_OP_FLOOR] = UNARY("floor", 1),
    [MTF_OP_REDUCE_SUM] = { SUMMING("reduce_sum", 1, 1), .linearity = MTF_LINEAR_ONE, .flops = 1,
                            .padding = MTF_PADDING_ZERO, .adds_up = true, .dtype = MTF_DTYPE_EITHER,
                            .continues = true },
    [MTF_OP_REDUCE_MEAN] = { SUMMING("reduce_mean", 1, 1), .linearity = MTF_LINEAR_ONE, .flops = 1,
                             .attributes = { NUMBER(per_microbatch, 0) }, .dtype = MTF_DTYPE_EITHER,
                             .check = mtf_check_mean },
    [MTF_OP_REDUCE_MAX] = { .name = "reduce_max",
                            .kernel_class = MTF_CLASS_REDUCTION,
                            .min_inputs = 1,
                            .max_inputs = 1,
                            .n_outputs = 1,
                            .dims = MTF_DIMS_SUBSET,
                            .reduction = MTF_REDUCE_MAX,
                            .padding = MTF_PADDING_LOWEST,
                            .flops = 1 },
    [MTF_OP_RENAME] = { MOVING("rename", MTF_DIMS_RENAMED), .in_place = 1,
                        .attributes = { REQUIRED_DIMENSION(from), REQUIRED_DIMENSION(to) },
                        .own_dimensions = true, .positional = true },
    [MTF_OP_TRANSPOSE] = { MOVING("transpose", MTF_DIMS_PERMUTED) },
    [MTF_OP_RESHAPE] = { MOVING("reshape", MTF_DIMS_RESHAPED), .own_dimensions = true,
                         .positional = true, .check = mtf_check_reshape },
    [MTF_OP_RESAMPLE] = { MOVING("resample", MTF_DIMS_REPLACED), .reduction = MTF_REDUCE_SUM,
                          .own_dimensions = true, .positional = true,
                          .attributes = { REQUIRED_DIMENSION(from), REQUIRED_DIMENSION(to),
                                          NUMBER(start, 0), NUMBER(stride, 1), NUMBER(dilation, 1),
                                          NUMBER(wrap, 0) },
                          .windows = MTF_WINDOWS_GATHER, .samples = true,
                          .check = mtf_check_resample },
    [MTF_OP_CONCAT] = { .name = "concat",
                        .kernel_class = MTF_CLASS_MOVE,
                        .min_inputs = 1,
                        .max_inputs = INT_MAX,
                        .n_outputs = 1,
                        .dims = MTF_DIMS_NEW,
                        .linearity = MTF_LINEAR_JOINT,
                        .reduction = MTF_REDUCE_SUM,
                        .positional = true,
                        .check = mtf_check_concat },
    [MTF_OP_LOOP_BEGIN] = { MOVING("loop_begin", MTF_DIMS_FIRST), .in_place = 1,
                            .loop = MTF_LOOP_BEGINS },
    [MTF_OP_LOOP_NEXT] = { .name = "loop_next",
                           .kernel_class = MTF_CLASS_MOVE,
                           .min_inputs = 2,
                           .max_inputs = 2,
                           .n_outputs = 1,
                           .dims = MTF_DIMS_FIRST,
                           .in_place = 1,
                           .check = mtf_check_loop_next,
                           .loop = MTF_LOOP_HANDS_ON },
    [MTF_OP_LOOP_SLICE] = { MOVING("loop_slice", MTF_DIMS_WITHOUT), .positional = true,
                            .gathers = true, .own_dimensions = true, .loop = MTF_LOOP_SLICES,
                            .attributes = { REQUIRED_DIMENSION(dimension) } },
    [MTF_OP_LOOP_STACK] = { MOVING("loop_stack", MTF_DIMS_WITH), .positional = true, .whole = true,
                            .own_dimensions = true, .loop = MTF_LOOP_STACKS,
                            .attributes = { REQUIRED_DIMENSION(dimension) } },
    [MTF_OP_BROADCAST] = { MOVING("broadcast", MTF_DIMS_SUPERSET) },
    [MTF_OP_CAST] = { MOVING("cast", MTF_DIMS_FIRST), .dtype = MTF_DTYPE_GIVEN,
                      .check = mtf_check_cast, .converts = true },
    [MTF_OP_STOP_GRADIENT] = { MOVING("stop_gradient", MTF_DIMS_FIRST), .in_place = 1 },
    [MTF_OP_IN_TRAIN_PHASE] = { ELEMENTWISE("in_train_phase", 2, 2), .dims = MTF_DIMS_FIRST },
    [MTF_OP_CONSTANT] = { .name = "constant",
                          .kernel_class = MTF_CLASS_MOVE,
                          .n_outputs = 1,
                          .dims = MTF_DIMS_NEW,
                          .dtype = MTF_DTYPE_GIVEN,
                          .attributes = { REQUIRED_NUMBER(value) },
                          .check = mtf_check_constant },
    [MTF_OP_RANGE] = { .name = "range",
                       .kernel_class = MTF_CLASS_MOVE,
                       .n_outputs = 1,
                       .dims = MTF_DIMS_NEW,
                       .dtype = MTF_DTYPE_GIVEN,
                       .check = mtf_check_range,
                       .integer_result = true },
    [MTF_OP_RANDOM_UNIFORM] = { ELEMENTWISE("random_uniform", 0, 0), .dims = MTF_DIMS_NEW,
                                .dtype = MTF_DTYPE_GIVEN, .flops = 10, .random = true,
                                .attributes = { NUMBER(low, 0), NUMBER(high, 1), STRING(stream) },
                                .check = mtf_check_random },
    [MTF_OP_RANDOM_NORMAL] = { ELEMENTWISE("random_normal", 0, 0), .dims = MTF_DIMS_NEW,
                               .dtype = MTF_DTYPE_GIVEN, .flops = 30, .random = true,
                               .attributes = { NUMBER(mean, 0), NUMBER(deviation, 1),
                                               STRING(stream) },
                               .check = mtf_check_random },
    [MTF_OP_CONV] = { CONVOLUTION("conv", MTF_WINDOWS_GATHER) },
    [MTF_OP_CONV_TRANSPOSE] = { CONVOLUTION("conv_transpose", MTF_WINDOWS_SPREAD) },
    [MTF_OP_CONV_FILTER_GRAD] = { CONVOLUTION("conv_filter_grad", MTF_WINDOWS_FILTER) },
    [MTF_OP_MAX_POOL] = { POOLING("max_pool", MTF_WINDOWS_GATHER), .min_inputs = 1, .max_inputs = 1,
                          .n_outputs = 2, .suffixes = { [1] = "index" },
                          .outputs_like = { [1] = MTF_OUTPUT }, .integer_outputs = 2,
                          .separate = true, .attributes = { WINDOWS } },
    [MTF_OP_AVERAGE_POOL] = { POOLING("average_pool", MTF_WINDOWS_GATHER), .min_inputs = 1,
                              .max_inputs = 1, .n_outputs = 1, .linearity = MTF_LINEAR_ONE,
                              .attributes = { WINDOWS, NUMBER(counted, 0) } },
    [MTF_OP_MAX_POOL_GRAD] = { POOLING("max_pool_grad", MTF_WINDOWS_BACK), .min_inputs = 2,
                               .max_inputs = 2, .n_outputs = 1, .linearity = MTF_LINEAR_ONE,
                               .linear_input = 1, .integer_inputs = 1, .attributes = { WINDOWS } },
    [MTF_OP_AVERAGE_POOL_GRAD] = { POOLING("average_pool_grad", MTF_WINDOWS_BACK), .min_inputs = 1,
                                   .max_inputs = 1, .n_outputs = 1, .linearity = MTF_LINEAR_ONE,
                                   .attributes = { WINDOWS, NUMBER(counted, 0) } },
    [MTF_OP_CUMULATIVE_SUM] = { ELEMENTWISE("cumulative_sum", 1, 1), .dims = MTF_DIMS_FIRST,
                                .linearity = MTF_LINEAR_ONE, .flops = 1, .in_place = 1,
                                .whole = true, .positional = true, .integers = true,
                                .attributes = { REQUIRED_DIMENSION(dimension), NUMBER(exclusive, 0),
                                                NUMBER(reverse, 0) } },
    [MTF_OP_TOP_K] = { .name = "top_k",
                       .kernel_class = MTF_CLASS_REDUCTION,
                       .min_inputs = 1,
                       .max_inputs = 1,
                       .n_outputs = 2,
                       .suffixes = { NULL, "index" },
                       .outputs_like = { 0, MTF_OUTPUT },
                       .integer_outputs = 2,
                       .separate = true,
                       .dims = MTF_DIMS_REPLACED,
                       .padding = MTF_PADDING_LOWEST,
                       .flops = 4,
                       .own_dimensions = true,
                       .positional = true,
                       .attributes = { REQUIRED_DIMENSION(from), REQUIRED_DIMENSION(to) },
                       .check = mtf_check_top_k },
    [MTF_OP_DROPOUT] = { ELEMENTWISE("dropout", 1, 1), .dims = MTF_DIMS_FIRST,
                         .linearity = MTF_LINEAR_ONE, .flops = 10, .in_place = 1,
                         .attributes = { REQUIRED_NUMBER(rate), STRING(stream) },
                         .check = mtf_check_dropout, .random = true },
    [MTF_OP_CAUSAL_MASK] = { ELEMENTWISE("causal_mask", 1, 1), .dims = MTF_DIMS_FIRST, .flops = 1,
                             .in_place = 1,
                             .attributes = { REQUIRED_DIMENSION(query),
                                             REQUIRED_DIMENSION(memory) },
                             .check = mtf_check_causal },
    [MTF_OP_ATTENTION] = { .name = "attention",
                           .kernel_class = MTF_CLASS_MATMUL,
                           .min_inputs = 3,
                           .max_inputs = 4,
                           .n_outputs = 2,
                           .suffixes = { NULL, "lse" },
                           .outputs_like = { 0, 0 },
                           .statistics = 2,
                           .separate = true,
                           .whole = true,
                           .dims = MTF_DIMS_FIRST,
                           .flops = 4,
                           .attributes = { ATTENTION },
                           .check = mtf_check_attention,
                           .own_dimensions = true,
                           .products = MTF_PRODUCTS_ATTENTION,
                           .scratch = MTF_SCRATCH_ATTENTION,
                           .share = causal_share },
    [MTF_OP_ROTARY] = { ELEMENTWISE("rotary", 1, 2), .dims = MTF_DIMS_FIRST,
                        .linearity = MTF_LINEAR_ONE, .flops = 4, .in_place = 1, .whole = true,
                        .integer_inputs = 2,
                        .attributes = { REQUIRED_DIMENSION(position), REQUIRED_DIMENSION(dimension),
                                        NUMBER(base, 10000), NUMBER(adjacent, 0),
                                        NUMBER(rotated, 0), NUMBER(angle, 1), NUMBER(context, 0),
                                        NUMBER(stretch, 1), NUMBER(low, 1), NUMBER(high, 4),
                                        NUMBER(ramp, 0), NUMBER(gain, 1) },
                        .check = mtf_check_rotary },
    [MTF_OP_EMBEDDING] = { .name = "embedding",
                           .kernel_class = MTF_CLASS_GATHER,
                           .min_inputs = 2,
                           .max_inputs = 2,
                           .n_outputs = 1,
                           .dims = MTF_DIMS_SUBSET,
                           .reduction = MTF_REDUCE_SUM,
                           .linearity = MTF_LINEAR_ONE,
                           .integer_inputs = 2,
                           .padding = MTF_PADDING_UNREAD,
                           .gathers = true,
                           .check = mtf_check_embedding,
                           .choice = { .chooses = true,
                                       .ids = 1,
                                       .of = 0,
                                       .without = MTF_OUTPUT } },
    [MTF_OP_SLOTS] = { .name = "slots",
                       .kernel_class = MTF_CLASS_REDUCTION,
                       .min_inputs = 1,
                       .max_inputs = 2,
                       .n_outputs = 1,
                       .dims = MTF_DIMS_FIRST,
                       .dtype = MTF_DTYPE_INTEGER,
                       .integer_inputs = 1,
                       .flops = 4,
                       .whole = true,
                       .own_dimensions = true,
                       .positional = true,
                       .attributes = { REQUIRED_DIMENSION(dimension), REQUIRED_DIMENSION(choices),
                                       REQUIRED_DIMENSION(experts), DIMENSION(capacity),
                                       NUMBER(queue, 0), NUMBER(priority, 0) },
                       .check = mtf_check_slots,
                       .scratch = MTF_SCRATCH_SLOTS },
    [MTF_OP_SLOT_IDS] = { .name = "slot_ids",
                          .kernel_class = MTF_CLASS_GATHER,
                          .min_inputs = 2,
                          .max_inputs = 2,
                          .n_outputs = 1,
                          .dims = MTF_DIMS_NEW,
                          .dtype = MTF_DTYPE_INTEGER,
                          .integer_inputs = 3,
                          .positional = true,
                          .own_dimensions = true,
                          .check = mtf_check_slot_ids },
    [MTF_OP_DISPATCH] = { .name = "dispatch",
                          .kernel_class = MTF_CLASS_GATHER,
                          .min_inputs = 2,
                          .max_inputs = 3,
                          .n_outputs = 1,
                          .dims = MTF_DIMS_NEW,
                          .reduction = MTF_REDUCE_SUM,
                          .linearity = MTF_LINEAR_ONE,
                          .integer_inputs = 2,
                          .gathers = true,
                          .positional = true,
                          .own_dimensions = true,
                          .check = mtf_check_dispatch },
    [MTF_OP_COMBINE] = { .name = "combine",
                         .kernel_class = MTF_CLASS_GATHER,
                         .min_inputs = 2,
                         .max_inputs = 3,
                         .n_outputs = 1,
                         .dims = MTF_DIMS_SUBSET,
                         .reduction = MTF_REDUCE_SUM,
                         .linearity = MTF_LINEAR_ONE,
                         .integer_inputs = 2,
                         .separate = true,
                         .positional = true,
                         .own_dimensions = true,
                         .check = mtf_check_combine },
    [MTF_OP_EXPERT_EINSUM] = { .name = "expert_einsum",
                               .kernel_class = MTF_CLASS_MATMUL,
                               .min_inputs = 3,
                               .max_inputs = 3,
                               .n_outputs = 1,
                               .dims = MTF_DIMS_SUBSET,
                               .reduction = MTF_REDUCE_SUM,
                               .linearity = MTF_LINEAR_ONE,
                               .integer_inputs = 4,
                               .padding = MTF_PADDING_ZERO,
                               .flops = 2,
                               .separate = true,
                               .own_dimensions = true,
                               .attributes = { REQUIRED_DIMENSION(experts) },
                               .check = mtf_check_expert_einsum,
                               .products = MTF_PRODUCTS_EXPERTS,
                               .scratch = MTF_SCRATCH_EXPERTS,
                               .share = expert_share },
    [MTF_OP_SOFTMAX] = { ELEMENTWISE("softmax", 1, 1), .composite = true, .dims = MTF_DIMS_FIRST,
                         .padding = MTF_PADDING_LOWEST,
                         .attributes = { REQUIRED_DIMENSION(dimension) } },
    [MTF_OP_LAYER_NORM] = { ELEMENTWISE("layer_norm", 2, 3), .composite = true,
                            .dims = MTF_DIMS_FIRST,
                            .attributes = { REQUIRED_DIMENSION(dimension),
                                            NUMBER(epsilon, 1e-6) } },
    [MTF_OP_SLICE] = { MOVING("slice", MTF_DIMS_REPLACED), .composite = true,
                       .own_dimensions = true, .positional = true,
                       .attributes = { REQUIRED_DIMENSION(from), REQUIRED_DIMENSION(to),
                                       NUMBER(start, 0), NUMBER(stride, 1) },
                       .check = mtf_check_slice },
    [MTF_OP_PAD] = { MOVING("pad", MTF_DIMS_REPLACED), .composite = true, .own_dimensions = true,
                     .positional = true,
                     .attributes = { REQUIRED_DIMENSION(from), REQUIRED_DIMENSION(to),
                                     NUMBER(before, 0), NUMBER(value, 0) },
                     .check = mtf_check_pad },
    [MTF_OP_REVERSE] = { MOVING("reverse", MTF_DIMS_FIRST), .composite = true, .positional = true,
                         .attributes = { REQUIRED_DIMENSION(dimension) } },
    [MTF_OP_ROLL] = { MOVING("roll", MTF_DIMS_FIRST), .composite = true, .positional = true,
                      .attributes = { REQUIRED_DIMENSION(dimension), REQUIRED_NUMBER(shift) },
                      .check = mtf_check_roll },
    [MTF_OP_SELECT] = { MOVING("select", MTF_DIMS_SUBSET), .composite = true, .positional = true,
                        .attributes = { REQUIRED_DIMENSION(dimension), REQUIRED_NUMBER(index) },
                        .check = mtf_check_select },
    [MTF_OP_STACK] = { .name = "stack",
                       .kernel_class = MTF_CLASS_MOVE,
                       .min_inputs = 1,
                       .max_inputs = INT_MAX,
                       .n_outputs = 1,
                       .dims = MTF_DIMS_NEW,
                       .composite = true,
                       .positional = true,
                       .check = mtf_check_stack },
    [MTF_OP_GATHER] = { .name = "gather",
                        .kernel_class = MTF_CLASS_GATHER,
                        .min_inputs = 2,
                        .max_inputs = 2,
                        .n_outputs = 1,
                        .dims = MTF_DIMS_SUBSET,
                        .padding = MTF_PADDING_UNREAD,
                        .composite = true,
                        .integer_inputs = 2,
                        .check = mtf_check_embedding,
                        .choice = { .chooses = true, .ids = 1, .of = 0, .without = MTF_OUTPUT } },
    [MTF_OP_SCATTER_ADD] = { .name = "scatter_add",
                             .kernel_class = MTF_CLASS_GATHER,
                             .min_inputs = 2,
                             .max_inputs = 3,
                             .n_outputs = 1,
                             .dims = MTF_DIMS_NEW,
                             .composite = true,
                             .integer_inputs = 1,
                             .check = mtf_check_embedding_grad,
                             .choice = { .chooses = true,
                                         .ids = 0,
                                         .of = MTF_OUTPUT,
                                         .without = 1 } },
    [MTF_OP_REDUCE_PROD] = { COMPOSITE("reduce_prod", 1, 1, MTF_DIMS_SUBSET) },
    [MTF_OP_NOT_EQUAL] = { COMPOSITE("not_equal", 2, 2, MTF_DIMS_UNION), .integers = true },
    [MTF_OP_GREATER] = { COMPOSITE("greater", 2, 2, MTF_DIMS_UNION), .integers = true },
    [MTF_OP_GREATER_EQUAL] = { COMPOSITE("greater_equal", 2, 2, MTF_DIMS_UNION), .integers = true },
    [MTF_OP_LOGICAL_AND] = { COMPOSITE("logical_and", 2, 2, MTF_DIMS_UNION), .integers = true },
    [MTF_OP_LOGICAL_OR] = { COMPOSITE("logical_or", 2, 2, MTF_DIMS_UNION), .integers = true },
    [MTF_OP_LOGICAL_XOR] = { COMPOSITE("logical_xor", 2, 2, MTF_DIMS_UNION), .integers = true },
    [MTF_OP_RECIPROCAL] = { COMPOSITE("reciprocal", 1, 1, MTF_DIMS_FIRST), .singular = true },
    [MTF_OP_CEIL] = { COMPOSITE("ceil", 1, 1, MTF_DIMS_FIRST) },
    [MTF_OP_REDUCE_MIN] = { COMPOSITE("reduce_min", 1, 1, MTF_DIMS_SUBSET) },
    [MTF_OP_REDUCE_ANY] = { COMPOSITE("reduce_any", 1, 1, MTF_DIMS_SUBSET) },
    [MTF_OP_REDUCE_ALL] = { COMPOSITE("reduce_all", 1, 1, MTF_DIMS_SUBSET) },
    [MTF_OP_LOG_SUM_EXP] = { COMPOSITE("log_sum_exp", 1, 1, MTF_DIMS_SUBSET),
                             .padding = MTF_PADDING_LOWEST, .dtype = MTF_DTYPE_WIDE },
    [MTF_OP_ARGMAX] = { COMPOSITE("argmax", 1, 1, MTF_DIMS_SUBSET), .padding = MTF_PADDING_LOWEST,
                        .dtype = MTF_DTYPE_INTEGER, .check = mtf_check_argmax },
    [MTF_OP_ONE_HOT] = { COMPOSITE("one_hot", 1, 1, MTF_DIMS_SUPERSET), .integer_inputs = 1,
                         .dtype = MTF_DTYPE_GIVEN, .check = mtf_check_one_hot,
                         .choice = { .chooses = true, .ids = 0, .of = MTF_OUTPUT, .without = 0 } },
    [MTF_OP_RMS_NORM] = { ELEMENTWISE("rms_norm", 2, 2), .composite = true, .dims = MTF_DIMS_FIRST,
                          .attributes = { REQUIRED_DIMENSION(dimension), NUMBER(epsilon, 1e-6) } },
    [MTF_OP_SOFTMAX_CROSS_ENTROPY] = { .name = "softmax_cross_entropy",
                                       .composite = true,
                                       .kernel_class = MTF_CLASS_ELEMENTWISE,
                                       .min_inputs = 2,
                                       .max_inputs = 3,
                                       .n_outputs = 1,
                                       .dims = MTF_DIMS_SUBSET,
                                       .attributes = { NUMBER(smoothing, 0), NUMBER(z_loss, 0),
                                                       NUMBER(ignore, 0) },
                                       .padding = MTF_PADDING_LOWEST,
                                       .integer_inputs = 2,
                                       .wide_inputs = WIDE(2),
                                       .dtype = MTF_DTYPE_WIDE,
                                       .check = mtf_check_labels,
                                       .choice = { .chooses = true,
                                                   .ids = 1,
                                                   .of = 0,
                                                   .without = 1 } },
    [MTF_OP_SUM_EXP] = { SUMMING("sum_exp", 2, 2), .flops = 8, .dtype = MTF_DTYPE_WIDE,
                         .check = mtf_check_statistic },
    [MTF_OP_SOFTMAX_APPLY] = { ELEMENTWISE("softmax_apply", 3, 3), .dims = MTF_DIMS_FIRST,
                               .flops = 8, .in_place = 1, .wide_inputs = WIDE(2) },
    [MTF_OP_VARIANCE] = { SUMMING("variance", 2, 2), .flops = 3, .wide_inputs = WIDE(1),
                          .attributes = { NUMBER(per_microbatch, 0) }, .dtype = MTF_DTYPE_WIDE,
                          .check = mtf_check_variance },
    [MTF_OP_NORMALIZE] = { ELEMENTWISE("normalize", 4, 5), .dims = MTF_DIMS_FIRST, .flops = 5,
                           .in_place = 1, .attributes = { NUMBER(epsilon, 1e-6) },
                           .wide_inputs = WIDE(1) | WIDE(2) },
    [MTF_OP_LABEL_LOGIT] = { .name = "label_logit",
                             .kernel_class = MTF_CLASS_GATHER,
                             .min_inputs = 2,
                             .max_inputs = 2,
                             .n_outputs = 1,
                             .dims = MTF_DIMS_SUBSET,
                             .reduction = MTF_REDUCE_SUM,
                             .linearity = MTF_LINEAR_ONE,
                             .integer_inputs = 2,
                             .gathers = true,
                             .check = mtf_check_labels,
                             .choice = { .chooses = true, .ids = 1, .of = 0, .without = 1 } },
    [MTF_OP_CROSS_ENTROPY] = { ELEMENTWISE("cross_entropy", 3, 4), .dims = MTF_DIMS_FIRST,
                               .flops = 8, .in_place = 7, .wide_inputs = WIDE(1) | WIDE(3),
                               .dtype = MTF_DTYPE_WIDE, .shown = MTF_SHOWN_ACCURACY },
    [MTF_OP_RELU_GRAD] = UNARY_GRAD("relu_grad", 1),
    [MTF_OP_GELU_GRAD] = UNARY_GRAD("gelu_grad", 20),
    [MTF_OP_GELU_EXACT_GRAD] = UNARY_GRAD("gelu_exact_grad", 25),
    [MTF_OP_SILU_GRAD] = UNARY_GRAD("silu_grad", 10),
    [MTF_OP_TANH_GRAD] = UNARY_GRAD("tanh_grad", 3),
    [MTF_OP_SIGMOID_GRAD] = UNARY_GRAD("sigmoid_grad", 3),
    [MTF_OP_CAUSAL_ZERO] = { ELEMENTWISE("causal_zero", 1, 1), .dims = MTF_DIMS_FIRST, .flops = 1,
                             .linearity = MTF_LINEAR_ONE, .in_place = 1,
                             .attributes = { REQUIRED_DIMENSION(query),
                                             REQUIRED_DIMENSION(memory) },
                             .check = mtf_check_causal },
    [MTF_OP_ATTENTION_GRAD] = { .name = "attention_grad",
                                .kernel_class = MTF_CLASS_MATMUL,
                                .min_inputs = 6,
                                .max_inputs = 7,
                                .n_outputs = 3,
                                .suffixes = { NULL, "k", "v" },
                                .outputs_like = { 0, 1, 2 },
                                .separate = true,
                                .whole = true,
                                .dims = MTF_DIMS_FIRST,
                                .reduction = MTF_REDUCE_SUM,
                                .linearity = MTF_LINEAR_ONE,
                                .linear_input = 5,
                                .wide_inputs = WIDE(4),
                                .flops = 10,
                                .attributes = { ATTENTION },
                                .check = mtf_check_attention_grad,
                                .own_dimensions = true,
                                .products = MTF_PRODUCTS_ATTENTION_GRAD,
                                .scratch = MTF_SCRATCH_ATTENTION_GRAD,
                                .share = causal_share },
    [MTF_OP_EMBEDDING_GRAD] = { .name = "embedding_grad",
                                .kernel_class = MTF_CLASS_GATHER,
                                .min_inputs = 2,
                                .max_inputs = 3,
                                .n_outputs = 1,
                                .dims = MTF_DIMS_NEW,
                                .adds_up = true,
                                .reduction = MTF_REDUCE_SUM,
                                .linearity = MTF_LINEAR_ONE,
                                .linear_input = 1,
                                .in_place = 1U << 2,
                                .addend = 2,
                                .integer_inputs = 1,
                                .flops = 0,
                                .check = mtf_check_embedding_grad,
                                .scratch = MTF_SCRATCH_TABLE,
                                .choice = { .chooses = true,
                                            .ids = 0,
                                            .of = MTF_OUTPUT,
                                            .without = 1 } },
    [MTF_OP_COMBINE_GATE_GRAD] = { .name = "combine_gate_grad",
                                   .kernel_class = MTF_CLASS_GATHER,
                                   .min_inputs = 3,
                                   .max_inputs = 3,
                                   .n_outputs = 1,
                                   .dims = MTF_DIMS_SUBSET,
                                   .reduction = MTF_REDUCE_SUM,
                                   .linearity = MTF_LINEAR_ONE,
                                   .linear_input = 1,
                                   .integer_inputs = 4,
                                   .positional = true,
                                   .own_dimensions = true,
                                   .check = mtf_check_combine_gate_grad },
    [MTF_OP_EXPERT_EINSUM_GRAD] = { .name = "expert_einsum_grad",
                                    .kernel_class = MTF_CLASS_MATMUL,
                                    .min_inputs = 3,
                                    .max_inputs = 3,
                                    .n_outputs = 1,
                                    .dims = MTF_DIMS_NEW,
                                    .reduction = MTF_REDUCE_SUM,
                                    .linearity = MTF_LINEAR_ONE,
                                    .linear_input = 1,
                                    .integer_inputs = 4,
                                    .flops = 2,
                                    .separate = true,
                                    .own_dimensions = true,
                                    .attributes = { REQUIRED_DIMENSION(experts) },
                                    .check = mtf_check_expert_einsum_grad,
                                    .products = MTF_PRODUCTS_EXPERTS,
                                    .scratch = MTF_SCRATCH_EXPERTS,
                                    .share = expert_share },
    [MTF_OP_SOFTMAX_GRAD] = { ELEMENTWISE("softmax_grad", 3, 3), .dims = MTF_DIMS_FIRST, .flops = 2,
                              .in_place = 3, .wide_inputs = WIDE(2) },
    [MTF_OP_NORMALIZE_DOT] = { SUMMING("normalize_dot", 5, 5), .linearity = MTF_LINEAR_ONE,
                               .flops = 5, .attributes = { NUMBER(epsilon, 1e-6) },
                               .wide_inputs = WIDE(2) | WIDE(3), .dtype = MTF_DTYPE_WIDE,
                               .check = mtf_check_within_first },
    [MTF_OP_NORMALIZE_SCALE_GRAD] = { SUMMING("normalize_scale_grad", 4, 4), .adds_up = true,
                                      .linearity = MTF_LINEAR_ONE, .flops = 4, .continues = true,
                                      .attributes = { NUMBER(epsilon, 1e-6) },
                                      .wide_inputs = WIDE(2) | WIDE(3),
                                      .check = mtf_check_within_first },
    [MTF_OP_NORMALIZE_GRAD] = { ELEMENTWISE("normalize_grad", 7, 7), .dims = MTF_DIMS_FIRST,
                                .flops = 8, .in_place = 3,
                                .attributes = { NUMBER(epsilon, 1e-6), NUMBER(per_microbatch, 0) },
                                .wide_inputs = WIDE(2) | WIDE(3) | WIDE(5) | WIDE(6),
                                .check = mtf_check_mean },
    [MTF_OP_CROSS_ENTROPY_GRAD] = { ELEMENTWISE("cross_entropy_grad", 5, 6), .dims = MTF_DIMS_FIRST,
                                    .flops = 8, .in_place = 1, .linearity = MTF_LINEAR_ONE,
                                    .linear_input = 4, .integer_inputs = 2,
                                    .wide_inputs = WIDE(3) | WIDE(4) | WIDE(5),
                                    .scratch = MTF_SCRATCH_LABELS,
                                    .choice = { .chooses = true, .ids = 1, .of = 0, .without = 1 } },
    [MTF_OP_ACCUMULATE] = { ELEMENTWISE("accumulate", 1, 1), .dims = MTF_DIMS_FIRST,
                            .linearity = MTF_LINEAR_ONE, .flops = 1, .accumulates = true,
                            .dtype = MTF_DTYPE_WIDE },
    [MTF_OP_CLIP_FACTOR] = { ELEMENTWISE("clip_factor", 1, 1), .dims = MTF_DIMS_FIRST, .flops = 3,
                             .in_place = 1, .attributes = { REQUIRED_NUMBER(limit) },
                             .shown = MTF_SHOWN_CLIP_FACTOR },
    [MTF_OP_LEARNING_RATE] = { .name = "learning_rate",
                               .kernel_class = MTF_CLASS_ELEMENTWISE,
                               .n_outputs = 1,
                               .dims = MTF_DIMS_NEW,
                               .dtype = MTF_DTYPE_GIVEN,
                               .attributes = { REQUIRED_NUMBER(rate), STRING(schedule),
                                               NUMBER(warmup, 0), NUMBER(total, 0),
                                               NUMBER(final, 0), NUMBER(power, 1),
                                               NUMBER(cooldown, 0), NUMBER(period, 0),
                                               NUMBER(drop, 0.1) },
                               .check = mtf_check_learning_rate,
                               .shown = MTF_SHOWN_LEARNING_RATE },
    [MTF_OP_SGD] = { ELEMENTWISE("sgd", 3, 4), .dims = MTF_DIMS_FIRST, .flops = 3, .in_place = 1,
                     .attributes = { NUMBER(weight_decay, 0) }, .wide_inputs = ~WIDE(1),
                     .dtype = MTF_DTYPE_WIDE, .scalars_from = 2, .updates = true },
    [MTF_OP_MOMENTUM] = { .name = "momentum",
                          .kernel_class = MTF_CLASS_ELEMENTWISE,
                          .min_inputs = 4,
                          .max_inputs = 5,
                          .n_outputs = 2,
                          .suffixes = { NULL, "v" },
                          .outputs_like = { 0, 2 },
                          .dims = MTF_DIMS_FIRST,
                          .flops = 5,
                          .in_place = 1,
                          .attributes = { NUMBER(beta1, 0.9), NUMBER(weight_decay, 0) },
                          .wide_inputs = ~WIDE(1),
                          .dtype = MTF_DTYPE_WIDE,
                          .scalars_from = 3,
                          .updates = true },
    [MTF_OP_LION] = { .name = "lion",
                      .kernel_class = MTF_CLASS_ELEMENTWISE,
                      .min_inputs = 4,
                      .max_inputs = 5,
                      .n_outputs = 2,
                      .suffixes = { NULL, "m" },
                      .outputs_like = { 0, 2 },
                      .dims = MTF_DIMS_FIRST,
                      .flops = 8,
                      .in_place = 1,
                      .attributes = { NUMBER(beta1, 0.9), NUMBER(beta2, 0.99),
                                      NUMBER(weight_decay, 0) },
                      .wide_inputs = ~WIDE(1),
                      .dtype = MTF_DTYPE_WIDE,
                      .scalars_from = 3,
                      .updates = true },
    [MTF_OP_ADAM] = { .name = "adam",
                      .kernel_class = MTF_CLASS_ELEMENTWISE,
                      .min_inputs = 5,
                      .max_inputs = 6,
                      .n_outputs = 3,
                      .suffixes = { NULL, "m", "v" },
                      .outputs_like = { 0, 2, 3 },
                      .dims = MTF_DIMS_FIRST,
                      .flops = 14,
                      .in_place = 1,
                      .attributes = { NUMBER(beta1, 0.9), NUMBER(beta2, 0.999),
                                      NUMBER(epsilon, 1e-8), NUMBER(weight_decay, 0) },
                      .wide_inputs = ~WIDE(1),
                      .dtype = MTF_DTYPE_WIDE,
                      .scalars_from = 4,
                      .updates = true },
    [MTF_OP_LAMB_DIRECTION] = { .name = "lamb_direction",
                                .kernel_class = MTF_CLASS_ELEMENTWISE,
                                .min_inputs = 4,
                                .max_inputs = 5,
                                .n_outputs = 3,
                                .suffixes = { NULL, "m", "v" },
                                .outputs_like = { 0, 2, 3 },
                                .dims = MTF_DIMS_FIRST,
                                .flops = 13,
                                .attributes = { NUMBER(beta1, 0.9), NUMBER(beta2, 0.999),
                                                NUMBER(epsilon, 1e-6), NUMBER(weight_decay, 0) },
                                .wide_inputs = ~WIDE(1),
                                .dtype = MTF_DTYPE_WIDE,
                                .scalars_from = 4 },
    [MTF_OP_LAMB_APPLY] = { ELEMENTWISE("lamb_apply", 5, 5), .dims = MTF_DIMS_FIRST, .flops = 2,
                            .in_place = 1, .scalars_from = 2, .updates = true },
    [MTF_OP_ADAFACTOR_MOMENT] = { ELEMENTWISE("adafactor_moment", 2, 2), .dims = MTF_DIMS_FIRST,
                                  .flops = 4, .in_place = 1,
                                  .attributes = { NUMBER(decay, 0.8), NUMBER(epsilon, 1e-30) },
                                  .updates = true },
    [MTF_OP_ADAFACTOR_DIRECTION] = { ELEMENTWISE("adafactor_direction", 2, 4),
                                     .dims = MTF_DIMS_FIRST, .flops = 6, .in_place = 1,
                                     .wide_inputs = ~WIDE(0), .dtype = MTF_DTYPE_WIDE,
                                     .check = mtf_check_direction },
    [MTF_OP_ADAFACTOR_APPLY] = { ELEMENTWISE("adafactor_apply", 4, 4), .dims = MTF_DIMS_FIRST,
                                 .flops = 3, .in_place = 1, .attributes = { NUMBER(threshold, 1) },
                                 .scalars_from = 2, .updates = true },
    [MTF_OP_CACHE_UPDATE] = { .name = "cache_update",
                              .kernel_class = MTF_CLASS_MOVE,
                              .min_inputs = 3,
                              .max_inputs = 3,
                              .n_outputs = 1,
                              .dims = MTF_DIMS_NEW,
                              .in_place = 1U << 1,
                              .addend = 1,
                              .integer_inputs = 4,
                              .positional = true,
                              .attributes = { REQUIRED_DIMENSION(from), REQUIRED_DIMENSION(to) },
                              .check = mtf_check_cache_update,
                              .own_dimensions = true },
    [MTF_OP_QUANTIZED_EINSUM] = { .name = "quantized_einsum",
                                  .kernel_class = MTF_CLASS_MATMUL,
                                  .min_inputs = 3,
                                  .max_inputs = 3,
                                  .n_outputs = 1,
                                  .dims = MTF_DIMS_SUBSET,
                                  .reduction = MTF_REDUCE_SUM,
                                  .linearity = MTF_LINEAR_ONE,
                                  .integer_inputs = 2,
                                  .byte_inputs = 2,
                                  .wide_inputs = WIDE(2),
                                  .dtype = MTF_DTYPE_EITHER,
                                  .padding = MTF_PADDING_ZERO,
                                  .flops = 2,
                                  .separate = true,
                                  .check = mtf_check_quantized_einsum,
                                  .products = MTF_PRODUCTS_QUANTIZED },
    [MTF_OP_CACHED_ATTENTION] = { .name = "cached_attention",
                                  .kernel_class = MTF_CLASS_MATMUL,
                                  .min_inputs = 4,
                                  .max_inputs = 4,
                                  .n_outputs = 2,
                                  .suffixes = { NULL, "lse" },
                                  .outputs_like = { 0, 0 },
                                  .statistics = 2,
                                  .separate = true,
                                  .whole = true,
                                  .dims = MTF_DIMS_FIRST,
                                  .flops = 4,
                                  .integer_inputs = 8,
                                  .positional = true,
                                  .attributes = { REQUIRED_DIMENSION(query),
                                                  REQUIRED_DIMENSION(memory),
                                                  REQUIRED_DIMENSION(dimension),
                                                  REQUIRED_NUMBER(factor), NUMBER(softcap, 0),
                                                  NUMBER(window, 0) },
                                  .check = mtf_check_cached_attention,
                                  .own_dimensions = true,
                                  .products = MTF_PRODUCTS_ATTENTION,
                                  .scratch = MTF_SCRATCH_ATTENTION,
                                  .share = cached_share },
};

const MtfOperationRow *mtf_operation_row(int kind) {
    return &rows[kind];
}

bool mtf_operation_adds_input(const MtfOperation *operation, int k) {
    return k > 0 && mtf_operation_row(operation->kind)->addend == k;
}

bool mtf_operation_mask_has(unsigned mask, int k) {
    return mask >> MIN(k, 31) & 1;
}

bool mtf_operation_row_chooses_dtype(const MtfOperationRow *row) {
    return row->dtype == MTF_DTYPE_EITHER || row->dtype == MTF_DTYPE_GIVEN;
}

MtfDtype mtf_operation_storage_dtype(const MtfGraph *graph, const MtfOperation *operation) {
    const MtfOperationRow *row = mtf_operation_row(operation->kind);
    for (int k = 0; k < operation->n_inputs; k++)
        if (!mtf_operation_mask_has(row->integer_inputs | row->wide_inputs, k))
            return mtf_graph_tensor(graph, operation->inputs[k])->dtype;
    return mtf_graph_tensor(graph, operation->outputs[0])->dtype;
}

bool mtf_operation_needs_dtype(const MtfGraph *graph, const MtfOperation *operation) {
    MtfDtypeRule rule = mtf_operation_row(operation->kind)->dtype;
    return rule == MTF_DTYPE_GIVEN ||
           (rule == MTF_DTYPE_EITHER && mtf_graph_tensor(graph, operation->outputs[0])->dtype !=
                                            mtf_operation_storage_dtype(graph, operation));
}

int mtf_operation_kind(const char *name) {
    for (int kind = 0; kind < MTF_OPERATIONS; kind++)
        if (strcmp(rows[kind].name, name) == 0)
            return kind;
    return -1;
}

/* What adding an index needs to know of its operation. */
typedef struct {
    const MtfGraph *graph;
    const MtfOperation *operation;
    const MtfOperationRow *row;
    MtfIteration *iteration;
} Space;

/* Whether some output lacks `dim`. */
static bool missing_in_output(const Space *space, int dim) {
    for (int k = 0; k < space->operation->n_outputs; k++) {
        int output = space->operation->outputs[k];
        if (mtf_shape_find(&mtf_graph_tensor(space->graph, output)->shape, dim) < 0)
            return true;
    }
    return false;
}

bool mtf_index_splits(const MtfIndex *index, int64_t parts) {
    return !index->whole && parts <= index->size && (index->even == 0 || index->even % parts == 0);
}

/* The size of a dimension that is split evenly alone, else 0. */
static int64_t even_size(const Space *space, int dim) {
    const MtfDimension *dimension = mtf_graph_dimension(space->graph, dim);
    return dimension->even ? dimension->size : 0;
}

static void add_index(Space *space, int dim, int input_dim) {
    MtfIteration *iteration = space->iteration;
    for (int i = 0; i < iteration->n; i++)
        if (iteration->index[i].dim == dim || iteration->index[i].other_dim == dim)
            return;
    bool reduced = missing_in_output(space, dim);
    const MtfWindow *window = mtf_window_of(space->row, &space->operation->attributes, dim);
    const MtfAttributes *a = &space->operation->attributes;
    bool held = space->row->whole && (dim == a->dimension || dim == a->choices);
    iteration->index[iteration->n++] = (MtfIndex){
        .dim = dim,
        .input_dim = input_dim,
        .other_dim = window == NULL ? -1 : window->from + window->to - dim,
        .window = window,
        .is_larger = window != NULL && mtf_window_larger(space->row, window) == dim,
        .size = mtf_graph_size(space->graph, dim),
        .even = even_size(space, dim),
        .reduced = reduced,
        .whole = held || (reduced && space->row->reduction == MTF_REDUCE_NONE),
    };
}

/* The first dimensions of a group go together; the others are elements of their parts. */
static void add_group(Space *space, const MtfReshapeGroup *group) {
    const MtfOperation *op = space->operation;
    const MtfShape *in = &mtf_graph_tensor(space->graph, op->inputs[0])->shape;
    const MtfShape *out = &mtf_graph_tensor(space->graph, op->outputs[0])->shape;
    bool pair = group->n_in > 0 && group->n_out > 0;
    MtfIteration *iteration = space->iteration;
    for (int j = 0; j < group->n_out; j++) {
        int dim = out->dims[group->first_out + j];
        add_index(space, dim, pair && j == 0 ? in->dims[group->first_in] : dim);
        iteration->index[iteration->n - 1].whole = !pair || j > 0;
        iteration->index[iteration->n - 1].even =
            pair && j == 0 && group->n_in + group->n_out > 2 ? group->parts : even_size(space, dim);
    }
    for (int i = pair; i < group->n_in; i++) {
        int dim = in->dims[group->first_in + i];
        add_index(space, dim, dim);
        iteration->index[iteration->n - 1].whole = true;
    }
}

static void reshape_iteration(Space *space) {
    const MtfOperation *op = space->operation;
    MtfReshapeGroup groups[2 * MTF_MAX_RANK];
    int n = mtf_reshape_groups(space->graph, &mtf_graph_tensor(space->graph, op->inputs[0])->shape,
                               &mtf_graph_tensor(space->graph, op->outputs[0])->shape, groups);
    for (int i = 0; i < n; i++)
        add_group(space, &groups[i]);
}

static bool all_inputs_have(const Space *space, int dim) {
    for (int k = 0; k < space->operation->n_inputs; k++)
        if (mtf_shape_find(mtf_operation_operand_shape(space->graph, space->operation, k), dim) < 0)
            return false;
    return true;
}

/* Of inputs that are put together, one that lacks the index would be put there by every part. */
void mtf_operation_iteration(const MtfGraph *graph, int operation, MtfIteration *iteration) {
    const MtfOperation *op = mtf_graph_operation(graph, operation);
    Space space = { graph, op, mtf_operation_row(op->kind), iteration };
    bool renames = space.row->dims == MTF_DIMS_RENAMED;
    iteration->n = 0;
    if (space.row->dims == MTF_DIMS_RESHAPED) {
        reshape_iteration(&space);
        return;
    }
    for (int k = 0; k < op->n_outputs; k++) {
        const MtfShape *shape = &mtf_graph_tensor(graph, op->outputs[k])->shape;
        for (int i = 0; i < shape->rank; i++) {
            int dim = shape->dims[i];
            add_index(&space, dim, renames && dim == op->attributes.to ? op->attributes.from : dim);
        }
    }
    for (int k = 0; k < op->n_inputs && !renames; k++) {
        const MtfShape *shape = &mtf_graph_tensor(graph, op->inputs[k])->shape;
        for (int i = 0; i < shape->rank; i++)
            add_index(&space, shape->dims[i], shape->dims[i]);
    }
    for (int i = 0; i < iteration->n && space.row->linearity == MTF_LINEAR_JOINT; i++)
        iteration->index[i].whole |=
            iteration->index[i].reduced && !all_inputs_have(&space, iteration->index[i].dim);
}

double mtf_operation_share(const MtfGraph *graph, int operation, const MtfIteration *iteration,
                           const int64_t *sizes) {
    const MtfOperation *op = mtf_graph_operation(graph, operation);
    const MtfOperationRow *row = mtf_operation_row(op->kind);
    return row->share == NULL ? 1 : row->share(&op->attributes, iteration, sizes);
}

const MtfShape *mtf_operation_operand_shape(const MtfGraph *graph, const MtfOperation *operation,
                                            int k) {
    int tensor = k == MTF_OUTPUT ? operation->outputs[0] : operation->inputs[k];
    return &mtf_graph_tensor(graph, tensor)->shape;
}
