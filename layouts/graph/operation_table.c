// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/graph/operation_table.h"

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
#define REQUIRED_STRING(field) \
    { #field, MTF_ATTRIBUTE_STRING, offsetof(MtfAttributes, field), true, 0 }

#define WINDOWS \
    { "windows", MTF_ATTRIBUTE_WINDOWS, offsetof(MtfAttributes, windows), true, 0 }

/* Input k is of the type of sums. */
#define WIDE(k) (1U << (k))

#define ATTENTION                                                                          \
    REQUIRED_DIMENSION(query), REQUIRED_DIMENSION(memory), REQUIRED_DIMENSION(dimension),  \
        REQUIRED_NUMBER(factor), NUMBER(causal, 0), NUMBER(softcap, 0), NUMBER(window, 0), \
        DIMENSION(parts)

/* The share of an attention's probabilities that is dropped, by random numbers of this name. */
#define DROPPED \
    { "dropout", MTF_ATTRIBUTE_NUMBER, offsetof(MtfAttributes, rate), false, 0 }, STRING(stream)
#define TURN NUMBER(turn, 0), NUMBER(striped, 0)

/* What every row says: name, class, least and most inputs, outputs, rule of dimensions. */
#define ROW(text, class, least, most, outputs, rule)                                          \
    .name = text, .kernel_class = MTF_CLASS_##class, .min_inputs = least, .max_inputs = most, \
    .n_outputs = outputs, .dims = MTF_DIMS_##rule
/* The ids of one input choose along the dimension that `in` has and `lacking` lacks. */
#define CHOICE(from, in, lacking) \
    .choice = { .chooses = true, .ids = from, .of = in, .without = lacking }

/* Rows of one kind share their first fields. */
#define ATTENDING(text, least, most)                                                              \
    ROW(text, MATMUL, least, most, 2, FIRST),                                                     \
        .suffixes = { NULL, "lse" }, .outputs_like = { 0, 0 }, .statistics = 2, .separate = true, \
        .whole = true, .flops = 4, .own_dimensions = true, .products = MTF_PRODUCTS_ATTENTION,    \
        .scratch = MTF_SCRATCH_ATTENTION
#define ATTENDING_BACK(text, least, outputs)                                                       \
    ROW(text, MATMUL, least, 8, outputs, FIRST),                                                   \
        .suffixes = { NULL, "k", "v", "bias" }, .outputs_like = { 0, 1, 2, 6 }, .separate = true,  \
        .whole = true, .reduction = MTF_REDUCE_SUM, .linearity = MTF_LINEAR_ONE,                   \
        .linear_input = 5, .wide_inputs = WIDE(4), .flops = 10, .check = mtf_check_attention_grad, \
        .random = true, .own_dimensions = true, .products = MTF_PRODUCTS_ATTENTION_GRAD,           \
        .scratch = MTF_SCRATCH_ATTENTION_GRAD, .share = mtf_share_causal
/* Linear attention, whose chunks take so many flops for each place, key and value. */
#define STATED(text, least, most, outputs, cost)                                           \
    ROW(text, MATMUL, least, most, outputs, FIRST), .whole = true, .positional = true,     \
                                                    .own_dimensions = true, .flops = cost, \
                                                    .scratch = MTF_SCRATCH_LINEAR_ATTENTION
#define PLACES_AND_KEYS REQUIRED_DIMENSION(dimension), REQUIRED_DIMENSION(keys)
#define STATED_GRADIENTS(third, fourth)                                                            \
    .suffixes = { NULL, "q", "k", third, fourth }, .outputs_like = { 0, 1, 2, 3, 5 },              \
    .separate = true, .reduction = MTF_REDUCE_SUM, .linearity = MTF_LINEAR_ONE, .linear_input = 4, \
    .check = mtf_check_linear_attention_grad, .products = MTF_PRODUCTS_LINEAR_ATTENTION_GRAD
#define STATED_BACK(text, inputs, outputs)     \
    STATED(text, inputs, inputs, outputs, 15), \
        .wide_inputs = WIDE(3), .attributes = { PLACES_AND_KEYS }, STATED_GRADIENTS("log", "beta")
#define ELEMENTWISE(text, least, most, rule) ROW(text, ELEMENTWISE, least, most, 1, rule)
#define ALONE(text) ELEMENTWISE(text, 1, 1, FIRST)
#define UNARY(text, cost) \
    { ALONE(text), .flops = cost, .in_place = 1 }
/* What integers have as well. */
#define EXACT_UNARY(text) \
    { ALONE(text), .flops = 1, .in_place = 1, .integers = true }
#define EXACT_BINARY(text) \
    ELEMENTWISE(text, 2, 2, UNION), .flops = 1, .in_place = 3, .integers = true
/* What may be bool: of bools, and where "dtype" says so. */
#define TRUTH .truths = true, .dtype = MTF_DTYPE_TRUTH
#define COMPOSITE(text, least, most, rule) ELEMENTWISE(text, least, most, rule), .composite = true
/* What comes of an element and all before it along one dimension. */
#define SCAN(text)                                                        \
    {                                                                     \
        COMPOSITE(text, 1, 1, FIRST), .positional = true, .attributes = { \
            REQUIRED_DIMENSION(dimension),                                \
            NUMBER(reverse, 0),                                           \
            NUMBER(exclusive, 0)                                          \
        }                                                                 \
    }
/* The gradient of a unary function from (x or y, dy): linear in dy. */
#define UNARY_GRAD(text, cost)                                                                     \
    {                                                                                              \
        ELEMENTWISE(text, 2, 2, FIRST), .flops = cost, .in_place = 3, .linearity = MTF_LINEAR_ONE, \
                                        .linear_input = 1                                          \
    }
/* Sums something over the dimensions its output lacks. */
#define SUMMING(text, least, most) \
    ROW(text, REDUCTION, least, most, 1, SUBSET), .reduction = MTF_REDUCE_SUM
/* The same elements in another form: linear in input 0. */
#define MOVING(text, rule) \
    ROW(text, MOVE, 1, 1, 1, rule), .linearity = MTF_LINEAR_ONE, .linear_input = 0

/* Sums of products over windows. */
#define CONVOLUTION(text, form)                                                                    \
    ROW(text, MATMUL, 2, 2, 1, NEW),                                                               \
        .reduction = MTF_REDUCE_SUM, .linearity = MTF_LINEAR_EACH, .flops = 2, .positional = true, \
        .own_dimensions = true, .products = MTF_PRODUCTS_CONV, .windows = form,                    \
        .share = mtf_share_windows, .padding = MTF_PADDING_ZERO, .check = mtf_check_conv,          \
        .attributes = { WINDOWS }
#define POOLING(text, form, inputs, outputs)                                     \
    ROW(text, REDUCTION, inputs, inputs, outputs, NEW),                          \
        .flops = 1, .positional = true, .own_dimensions = true, .windows = form, \
        .share = mtf_share_windows, .check = mtf_check_pool

static const MtfOperationRow rows[MTF_OPERATIONS] = {
    [MTF_OP_EINSUM] = { ROW("einsum", MATMUL, 1, 8, 1, SUBSET), .reduction = MTF_REDUCE_SUM,
                        .linearity = MTF_LINEAR_EACH, .flops = 2, .dtype = MTF_DTYPE_EITHER,
                        .padding = MTF_PADDING_ZERO, .adds_up = true,
                        .products = MTF_PRODUCTS_EINSUM, .scratch = MTF_SCRATCH_EINSUM },
    [MTF_OP_ADD] = { ELEMENTWISE("add", 2, INT_MAX, UNION), .linearity = MTF_LINEAR_JOINT,
                     .flops = 1, .in_place = ~0U, .integers = true },
    [MTF_OP_SUBTRACT] = { ELEMENTWISE("subtract", 2, 2, UNION), .linearity = MTF_LINEAR_JOINT,
                          .flops = 1, .in_place = 3, .integers = true },
    [MTF_OP_MULTIPLY] = { ELEMENTWISE("multiply", 2, 2, UNION), .linearity = MTF_LINEAR_EACH,
                          .flops = 1, .in_place = 3, .integers = true, .truths = true },
    [MTF_OP_DIVIDE] = { ELEMENTWISE("divide", 2, 2, UNION), .linearity = MTF_LINEAR_ONE,
                        .linear_input = 0, .flops = 1, .in_place = 3, .singular = true,
                        .ratio = true },
    [MTF_OP_MAXIMUM] = { EXACT_BINARY("maximum"), .truths = true },
    [MTF_OP_MINIMUM] = { EXACT_BINARY("minimum"), .truths = true },
    [MTF_OP_EQUAL] = { EXACT_BINARY("equal"), TRUTH },
    [MTF_OP_LESS] = { EXACT_BINARY("less"), TRUTH },
    [MTF_OP_LESS_EQUAL] = { EXACT_BINARY("less_equal"), TRUTH },
    [MTF_OP_WHERE] = { ELEMENTWISE("where", 3, 3, UNION), .flops = 1, .in_place = 7,
                       .integers = true, .truths = true, .conditions = 1 },
    [MTF_OP_MODULO] = { EXACT_BINARY("mod") },
    [MTF_OP_POWER] = { ELEMENTWISE("pow", 2, 2, UNION), .singular = true, .flops = 20,
                       .in_place = 3 },
    [MTF_OP_SCALE] = { ALONE("scale"), .linearity = MTF_LINEAR_ONE, .flops = 1, .in_place = 1,
                       .attributes = { REQUIRED_NUMBER(factor) } },
    [MTF_OP_RELU] = UNARY("relu", 1),
    [MTF_OP_GELU] = UNARY("gelu", 12),
    [MTF_OP_SILU] = UNARY("silu", 8),
    [MTF_OP_TANH] = UNARY("tanh", 8),
    [MTF_OP_SIGMOID] = UNARY("sigmoid", 8),
    [MTF_OP_EXP] = UNARY("exp", 6),
    [MTF_OP_LOG] = { ALONE("log"), .flops = 6, .in_place = 1, .singular = true },
    [MTF_OP_SQRT] = { ALONE("sqrt"), .flops = 2, .in_place = 1, .singular = true },
    [MTF_OP_RSQRT] = { ALONE("rsqrt"), .flops = 2, .in_place = 1, .singular = true },
    [MTF_OP_SQUARE] = EXACT_UNARY("square"),
    [MTF_OP_NEGATE] = { ALONE("negate"), .linearity = MTF_LINEAR_ONE, .flops = 1, .in_place = 1,
                        .integers = true },
    [MTF_OP_ABS] = EXACT_UNARY("abs"),
    [MTF_OP_SIGN] = EXACT_UNARY("sign"),
    [MTF_OP_LOGICAL_NOT] = { ALONE("logical_not"), .flops = 1, .in_place = 1, .integers = true,
                             TRUTH },
    [MTF_OP_RAISE] = { ALONE("power"), .singular = true, .flops = 20, .in_place = 1,
                       .attributes = { REQUIRED_NUMBER(exponent) } },
    [MTF_OP_CLIP] = { ALONE("clip"), .flops = 2, .in_place = 1,
                      .attributes = { REQUIRED_NUMBER(low), REQUIRED_NUMBER(high) },
                      .check = mtf_check_clip },
    [MTF_OP_LEAKY_RELU] = { ALONE("leaky_relu"), .flops = 2, .in_place = 1,
                            .attributes = { NUMBER(slope, 0.01) } },
    [MTF_OP_ELU] = { ALONE("elu"), .flops = 8, .in_place = 1, .attributes = { NUMBER(slope, 1) } },
    [MTF_OP_GELU_EXACT] = UNARY("gelu_exact", 20),
    [MTF_OP_SOFTPLUS] = UNARY("softplus", 12),
    [MTF_OP_SIN] = UNARY("sin", 10),
    [MTF_OP_COS] = UNARY("cos", 10),
    [MTF_OP_ERF] = UNARY("erf", 15),
    [MTF_OP_FLOOR] = UNARY("floor", 1),
    [MTF_OP_REDUCE_SUM] = { SUMMING("reduce_sum", 1, 1), .linearity = MTF_LINEAR_ONE, .flops = 1,
                            .padding = MTF_PADDING_ZERO, .adds_up = true, .dtype = MTF_DTYPE_EITHER,
                            .scratch = MTF_SCRATCH_WIDE_SUMS, .continues = true, .integers = true },
    [MTF_OP_REDUCE_MEAN] = { SUMMING("reduce_mean", 1, 1), .linearity = MTF_LINEAR_ONE, .flops = 1,
                             .attributes = { NUMBER(per_microbatch, 0) }, .dtype = MTF_DTYPE_EITHER,
                             .scratch = MTF_SCRATCH_WIDE_SUMS, .check = mtf_check_mean },
    [MTF_OP_REDUCE_MAX] = { ROW("reduce_max", REDUCTION, 1, 1, 1, SUBSET),
                            .reduction = MTF_REDUCE_MAX, .padding = MTF_PADDING_LOWEST,
                            .integers = true, .truths = true, .flops = 1 },
    [MTF_OP_RENAME] = { MOVING("rename", RENAMED), .in_place = 1,
                        .attributes = { REQUIRED_DIMENSION(from), REQUIRED_DIMENSION(to) },
                        .own_dimensions = true, .positional = true },
    [MTF_OP_TRANSPOSE] = { MOVING("transpose", PERMUTED) },
    [MTF_OP_RESHAPE] = { MOVING("reshape", RESHAPED), .own_dimensions = true, .positional = true,
                         .check = mtf_check_reshape },
    [MTF_OP_RESAMPLE] = { MOVING("resample", REPLACED), .reduction = MTF_REDUCE_SUM,
                          .own_dimensions = true, .positional = true,
                          .attributes = { REQUIRED_DIMENSION(from), REQUIRED_DIMENSION(to),
                                          NUMBER(start, 0), NUMBER(stride, 1),
                                          NUMBER(dilation, 1), NUMBER(wrap, 0) },
                          .windows = MTF_WINDOWS_GATHER, .samples = true,
                          .check = mtf_check_resample },
    [MTF_OP_CONCAT] = { ROW("concat", MOVE, 1, INT_MAX, 1, NEW), .linearity = MTF_LINEAR_JOINT,
                        .positional = true, .joins = true, .check = mtf_check_concat },
    [MTF_OP_LOOP_BEGIN] = { MOVING("loop_begin", FIRST), .in_place = 1, .loop = MTF_LOOP_BEGINS },
    [MTF_OP_LOOP_NEXT] = { ROW("loop_next", MOVE, 2, 2, 1, FIRST), .in_place = 1,
                           .attributes = { NUMBER(condition, 0) }, .check = mtf_check_loop_next,
                           .loop = MTF_LOOP_HANDS_ON },
    [MTF_OP_LOOP_SLICE] = { MOVING("loop_slice", WITHOUT), .positional = true, .gathers = true,
                            .own_dimensions = true, .loop = MTF_LOOP_SLICES,
                            .attributes = { REQUIRED_DIMENSION(dimension) } },
    [MTF_OP_LOOP_STACK] = { MOVING("loop_stack", WITH), .positional = true, .whole = true,
                            .own_dimensions = true, .loop = MTF_LOOP_STACKS,
                            .attributes = { REQUIRED_DIMENSION(dimension) } },
    [MTF_OP_BROADCAST] = { MOVING("broadcast", SUPERSET) },
    [MTF_OP_CAST] = { MOVING("cast", FIRST), .dtype = MTF_DTYPE_GIVEN, .check = mtf_check_cast,
                      .converts = true },
    [MTF_OP_STOP_GRADIENT] = { MOVING("stop_gradient", FIRST), .in_place = 1 },
    [MTF_OP_TO_HOST] = { MOVING("to_host", FIRST), .host = MTF_HOST_TO },
    [MTF_OP_FROM_HOST] = { MOVING("from_host", FIRST), .host = MTF_HOST_FROM },
    [MTF_OP_IN_TRAIN_PHASE] = { ELEMENTWISE("in_train_phase", 2, 2, FIRST), },
    [MTF_OP_CONSTANT] = { ROW("constant", MOVE, 0, 0, 1, NEW), .dtype = MTF_DTYPE_GIVEN,
                          .attributes = { REQUIRED_NUMBER(value) }, .check = mtf_check_constant },
    [MTF_OP_RANGE] = { ROW("range", MOVE, 0, 0, 1, NEW), .dtype = MTF_DTYPE_GIVEN,
                       .check = mtf_check_range, .integer_result = true },
    [MTF_OP_RANDOM_UNIFORM] = { ELEMENTWISE("random_uniform", 0, 0, NEW), .dtype = MTF_DTYPE_GIVEN,
                                .flops = 10, .random = true,
                                .attributes = { NUMBER(low, 0), NUMBER(high, 1), STRING(stream) },
                                .check = mtf_check_random },
    [MTF_OP_RANDOM_NORMAL] = { ELEMENTWISE("random_normal", 0, 0, NEW), .dtype = MTF_DTYPE_GIVEN,
                               .flops = 30, .random = true,
                               .attributes = { NUMBER(mean, 0), NUMBER(deviation, 1),
                                               STRING(stream) },
                               .check = mtf_check_random },
    [MTF_OP_CONV] = { CONVOLUTION("conv", MTF_WINDOWS_GATHER) },
    [MTF_OP_CONV_TRANSPOSE] = { CONVOLUTION("conv_transpose", MTF_WINDOWS_SPREAD) },
    [MTF_OP_CONV_FILTER_GRAD] = { CONVOLUTION("conv_filter_grad", MTF_WINDOWS_FILTER) },
    [MTF_OP_MAX_POOL] = { POOLING("max_pool", MTF_WINDOWS_GATHER, 1, 2),
                          .suffixes = { [1] = "index" }, .outputs_like = { [1] = MTF_OUTPUT },
                          .integer_outputs = 2, .separate = true, .attributes = { WINDOWS } },
    [MTF_OP_AVERAGE_POOL] = { POOLING("average_pool", MTF_WINDOWS_GATHER, 1, 1),
                              .linearity = MTF_LINEAR_ONE,
                              .attributes = { WINDOWS, NUMBER(counted, 0) } },
    [MTF_OP_MAX_POOL_GRAD] = { POOLING("max_pool_grad", MTF_WINDOWS_BACK, 2, 1),
                               .linearity = MTF_LINEAR_ONE, .linear_input = 1, .integer_inputs = 1,
                               .attributes = { WINDOWS } },
    [MTF_OP_AVERAGE_POOL_GRAD] = { POOLING("average_pool_grad", MTF_WINDOWS_BACK, 1, 1),
                                   .linearity = MTF_LINEAR_ONE,
                                   .attributes = { WINDOWS, NUMBER(counted, 0) } },
    [MTF_OP_CUMULATIVE_SUM] = { ALONE("cumulative_sum"), .linearity = MTF_LINEAR_ONE, .flops = 1,
                                .in_place = 1, .along = MTF_ALONG_SUMS, .positional = true,
                                .integers = true,
                                .attributes = { REQUIRED_DIMENSION(dimension),
                                                NUMBER(exclusive, 0), NUMBER(reverse, 0),
                                                NUMBER(blocks, 0) },
                                .check = mtf_check_cumulative_sum },
    [MTF_OP_TOP_K] = { ROW("top_k", REDUCTION, 1, 1, 2, REPLACED), .suffixes = { NULL, "index" },
                       .outputs_like = { 0, MTF_OUTPUT }, .integer_outputs = 2, .separate = true,
                       .padding = MTF_PADDING_LOWEST, .flops = 4, .own_dimensions = true,
                       .positional = true, .along = MTF_ALONG_CHOOSES,
                       .attributes = { REQUIRED_DIMENSION(from), REQUIRED_DIMENSION(to),
                                       NUMBER(blocks, 0) },
                       .check = mtf_check_top_k },
    [MTF_OP_SORT] = { ROW("sort", REDUCTION, 1, 1, 2, FIRST), .suffixes = { NULL, "index" },
                      .outputs_like = { 0, MTF_OUTPUT }, .integer_outputs = 2, .separate = true,
                      .flops = 20, .positional = true, .along = MTF_ALONG_SORTS,
                      .attributes = { REQUIRED_DIMENSION(dimension), NUMBER(reverse, 0) },
                      .scratch = MTF_SCRATCH_SORT },
    [MTF_OP_DROPOUT] = { ALONE("dropout"), .linearity = MTF_LINEAR_ONE, .flops = 10, .in_place = 1,
                         .attributes = { REQUIRED_NUMBER(rate), STRING(stream) },
                         .check = mtf_check_dropout, .random = true },
    [MTF_OP_CAUSAL_MASK] = { ALONE("causal_mask"), .flops = 1, .in_place = 1,
                             .attributes = { REQUIRED_DIMENSION(query),
                                             REQUIRED_DIMENSION(memory) },
                             .check = mtf_check_causal },
    [MTF_OP_ATTENTION] = { ATTENDING("attention", 3, 5), .share = mtf_share_causal,
                           .attributes = { ATTENTION, DROPPED, TURN }, .check = mtf_check_attention,
                           .in_parts = true, .random = true },
    [MTF_OP_ATTENTION_FURTHER] = { ATTENDING("attention_further", 5, 7), .share = mtf_share_causal,
                                   .wide_inputs = WIDE(4), .in_place = 1 << 3,
                                   .attributes = { ATTENTION, DROPPED, TURN },
                                   .check = mtf_check_attention_further, .random = true },
    [MTF_OP_LINEAR_ATTENTION] = { STATED("linear_attention", 4, 5, 1, 6),
                                  .attributes = { PLACES_AND_KEYS, NUMBER(blocks, 0) },
                                  .wide_inputs = WIDE(3),
                                  .check = mtf_check_linear_attention,
                                  .products = MTF_PRODUCTS_LINEAR_ATTENTION },
    [MTF_OP_SELECTIVE_SCAN] = { STATED("selective_scan", 5, 5, 1, 20),
                                .attributes = { PLACES_AND_KEYS },
                                .scans = true,
                                .wide_inputs = WIDE(3) | WIDE(4),
                                .check = mtf_check_linear_attention,
                                .products = MTF_PRODUCTS_LINEAR_ATTENTION },
    [MTF_OP_ROTARY] = { ELEMENTWISE("rotary", 1, 3, FIRST), .linearity = MTF_LINEAR_ONE, .flops = 4,
                        .in_place = 1, .whole = true, .integer_inputs = 6,
                        .attributes = { REQUIRED_DIMENSION(position),
                                        REQUIRED_DIMENSION(dimension), NUMBER(base, 10000),
                                        NUMBER(adjacent, 0), NUMBER(rotated, 0), NUMBER(angle, 1),
                                        NUMBER(context, 0), NUMBER(stretch, 1), NUMBER(low, 1),
                                        NUMBER(high, 4), NUMBER(ramp, 0), NUMBER(gain, 1),
                                        NUMBER(growth, 0), STRING(divisors),
                                        STRING(long_divisors) },
                        .check = mtf_check_rotary },
    [MTF_OP_EMBEDDING] = { ROW("embedding", GATHER, 2, 2, 1, SUBSET), .reduction = MTF_REDUCE_SUM,
                           .linearity = MTF_LINEAR_ONE, .integer_inputs = 2,
                           .padding = MTF_PADDING_UNREAD, .gathers = true, .integers = true,
                           .check = mtf_check_embedding, CHOICE(1, 0, MTF_OUTPUT) },
    [MTF_OP_SLOTS] = { ROW("slots", REDUCTION, 1, 2, 1, FIRST), .dtype = MTF_DTYPE_INTEGER,
                       .integer_inputs = 1, .flops = 4, .shown = MTF_SHOWN_DROPPED, .whole = true,
                       .own_dimensions = true, .positional = true,
                       .attributes = { REQUIRED_DIMENSION(dimension), REQUIRED_DIMENSION(choices),
                                       REQUIRED_DIMENSION(experts), DIMENSION(capacity),
                                       NUMBER(queue, 0), NUMBER(priority, 0) },
                       .check = mtf_check_slots, .scratch = MTF_SCRATCH_SLOTS },
    [MTF_OP_SLOT_IDS] = { ROW("slot_ids", GATHER, 2, 2, 1, NEW), .dtype = MTF_DTYPE_INTEGER,
                          .integer_inputs = 3, .positional = true, .own_dimensions = true,
                          .check = mtf_check_slot_ids },
    [MTF_OP_DISPATCH] = { ROW("dispatch", GATHER, 2, 3, 1, NEW), .reduction = MTF_REDUCE_SUM,
                          .linearity = MTF_LINEAR_ONE, .integer_inputs = 2, .gathers = true,
                          .routes = true, .positional = true, .own_dimensions = true,
                          .check = mtf_check_dispatch },
    [MTF_OP_COMBINE] = { ROW("combine", GATHER, 2, 3, 1, SUBSET), .reduction = MTF_REDUCE_SUM,
                         .linearity = MTF_LINEAR_ONE, .integer_inputs = 2, .separate = true,
                         .positional = true, .own_dimensions = true, .check = mtf_check_combine },
    [MTF_OP_EXPERT_EINSUM] = { ROW("expert_einsum", MATMUL, 3, 3, 1, SUBSET),
                               .reduction = MTF_REDUCE_SUM, .linearity = MTF_LINEAR_ONE,
                               .integer_inputs = 4, .padding = MTF_PADDING_ZERO, .flops = 2,
                               .separate = true, .own_dimensions = true,
                               .attributes = { REQUIRED_DIMENSION(experts) },
                               .check = mtf_check_expert_einsum, .products = MTF_PRODUCTS_EXPERTS,
                               .scratch = MTF_SCRATCH_EXPERTS, .share = mtf_share_experts },
    [MTF_OP_SOFTMAX] = { COMPOSITE("softmax", 1, 1, FIRST), .padding = MTF_PADDING_LOWEST,
                         .attributes = { REQUIRED_DIMENSION(dimension) } },
    [MTF_OP_LAYER_NORM] = { COMPOSITE("layer_norm", 2, 3, FIRST),
                            .attributes = { REQUIRED_DIMENSION(dimension),
                                            NUMBER(epsilon, 1e-6) } },
    [MTF_OP_SLICE] = { MOVING("slice", REPLACED), .composite = true, .own_dimensions = true,
                       .positional = true,
                       .attributes = { REQUIRED_DIMENSION(from), REQUIRED_DIMENSION(to),
                                       NUMBER(start, 0), NUMBER(stride, 1) },
                       .check = mtf_check_slice },
    [MTF_OP_PAD] = { MOVING("pad", REPLACED), .composite = true, .own_dimensions = true,
                     .positional = true,
                     .attributes = { REQUIRED_DIMENSION(from), REQUIRED_DIMENSION(to),
                                     NUMBER(before, 0), NUMBER(value, 0) },
                     .check = mtf_check_pad },
    [MTF_OP_REVERSE] = { MOVING("reverse", FIRST), .composite = true, .positional = true,
                         .attributes = { REQUIRED_DIMENSION(dimension) } },
    [MTF_OP_ROLL] = { MOVING("roll", FIRST), .composite = true, .positional = true,
                      .attributes = { REQUIRED_DIMENSION(dimension), REQUIRED_NUMBER(shift) },
                      .check = mtf_check_roll },
    [MTF_OP_SELECT] = { MOVING("select", SUBSET), .composite = true, .positional = true,
                        .attributes = { REQUIRED_DIMENSION(dimension), REQUIRED_NUMBER(index) },
                        .check = mtf_check_select },
    [MTF_OP_STACK] = { ROW("stack", MOVE, 1, INT_MAX, 1, NEW), .composite = true,
                       .positional = true, .check = mtf_check_stack },
    [MTF_OP_GATHER] = { ROW("gather", GATHER, 2, 2, 1, SUBSET), .padding = MTF_PADDING_UNREAD,
                        .composite = true, .integer_inputs = 2, .integers = true,
                        .check = mtf_check_embedding, CHOICE(1, 0, MTF_OUTPUT) },
    [MTF_OP_SCATTER_ADD] = { ROW("scatter_add", GATHER, 2, 3, 1, NEW), .composite = true,
                             .integer_inputs = 1, .check = mtf_check_embedding_grad,
                             CHOICE(0, MTF_OUTPUT, 1) },
    [MTF_OP_REDUCE_PROD] = { COMPOSITE("reduce_prod", 1, 1, SUBSET) },
    [MTF_OP_NOT_EQUAL] = { COMPOSITE("not_equal", 2, 2, UNION), .integers = true, TRUTH },
    [MTF_OP_GREATER] = { COMPOSITE("greater", 2, 2, UNION), .integers = true, TRUTH },
    [MTF_OP_GREATER_EQUAL] = { COMPOSITE("greater_equal", 2, 2, UNION), .integers = true, TRUTH },
    [MTF_OP_LOGICAL_AND] = { COMPOSITE("logical_and", 2, 2, UNION), .integers = true, TRUTH },
    [MTF_OP_LOGICAL_OR] = { COMPOSITE("logical_or", 2, 2, UNION), .integers = true, TRUTH },
    [MTF_OP_LOGICAL_XOR] = { COMPOSITE("logical_xor", 2, 2, UNION), .integers = true, TRUTH },
    [MTF_OP_RECIPROCAL] = { COMPOSITE("reciprocal", 1, 1, FIRST), .singular = true },
    [MTF_OP_CEIL] = { COMPOSITE("ceil", 1, 1, FIRST) },
    [MTF_OP_REDUCE_MIN] = { COMPOSITE("reduce_min", 1, 1, SUBSET), .integers = true },
    [MTF_OP_REDUCE_ANY] = { COMPOSITE("reduce_any", 1, 1, SUBSET), .integers = true, TRUTH },
    [MTF_OP_REDUCE_ALL] = { COMPOSITE("reduce_all", 1, 1, SUBSET), .integers = true, TRUTH },
    [MTF_OP_CUMULATIVE_MAX] = SCAN("cumulative_max"),
    [MTF_OP_CUMULATIVE_MIN] = SCAN("cumulative_min"),
    [MTF_OP_CUMULATIVE_LOG_SUM_EXP] = SCAN("cumulative_log_sum_exp"),
    [MTF_OP_LOCAL_RESPONSE_NORM] = { COMPOSITE("local_response_norm", 1, 1, FIRST),
                                     .positional = true, .check = mtf_check_local_response,
                                     .attributes = { REQUIRED_DIMENSION(dimension),
                                                     REQUIRED_NUMBER(size), NUMBER(alpha, 1e-4),
                                                     NUMBER(beta, 0.75), NUMBER(bias, 1) } },
    [MTF_OP_LOG_SUM_EXP] = { COMPOSITE("log_sum_exp", 1, 1, SUBSET), .padding = MTF_PADDING_LOWEST,
                             .dtype = MTF_DTYPE_WIDE },
    [MTF_OP_ARGMAX] = { COMPOSITE("argmax", 1, 1, SUBSET), .padding = MTF_PADDING_LOWEST,
                        .dtype = MTF_DTYPE_INTEGER, .check = mtf_check_argmax },
    [MTF_OP_ONE_HOT] = { COMPOSITE("one_hot", 1, 1, SUPERSET), .integer_inputs = 1,
                         .dtype = MTF_DTYPE_GIVEN, .check = mtf_check_one_hot,
                         CHOICE(0, MTF_OUTPUT, 0) },
    [MTF_OP_RMS_NORM] = { COMPOSITE("rms_norm", 2, 2, FIRST),
                          .attributes = { REQUIRED_DIMENSION(dimension), NUMBER(epsilon, 1e-6) } },
    [MTF_OP_SOFTMAX_CROSS_ENTROPY] = { ROW("softmax_cross_entropy", ELEMENTWISE, 2, 3, 1, SUBSET),
                                       .composite = true,
                                       .attributes = { NUMBER(smoothing, 0), NUMBER(z_loss, 0),
                                                       NUMBER(ignore, 0) },
                                       .padding = MTF_PADDING_LOWEST, .integer_inputs = 2,
                                       .wide_inputs = WIDE(2), .conditions = 1 << 2,
                                       .dtype = MTF_DTYPE_WIDE, .check = mtf_check_labels,
                                       CHOICE(1, 0, 1) },
    [MTF_OP_SUM_EXP] = { SUMMING("sum_exp", 2, 2), .flops = 8, .dtype = MTF_DTYPE_WIDE,
                         .check = mtf_check_statistic },
    [MTF_OP_SOFTMAX_APPLY] = { ELEMENTWISE("softmax_apply", 3, 3, FIRST), .flops = 8, .in_place = 1,
                               .wide_inputs = WIDE(2) },
    [MTF_OP_VARIANCE] = { SUMMING("variance", 2, 2), .flops = 3, .wide_inputs = WIDE(1),
                          .attributes = { NUMBER(per_microbatch, 0) }, .dtype = MTF_DTYPE_WIDE,
                          .scratch = MTF_SCRATCH_WIDE_SUMS, .check = mtf_check_variance },
    [MTF_OP_NORMALIZE] = { ELEMENTWISE("normalize", 4, 5, FIRST), .flops = 5, .in_place = 1,
                           .attributes = { NUMBER(epsilon, 1e-6) },
                           .wide_inputs = WIDE(1) | WIDE(2) },
    [MTF_OP_LABEL_LOGIT] = { ROW("label_logit", GATHER, 2, 2, 1, SUBSET),
                             .reduction = MTF_REDUCE_SUM, .linearity = MTF_LINEAR_ONE,
                             .integer_inputs = 2, .gathers = true, .check = mtf_check_labels,
                             CHOICE(1, 0, 1) },
    [MTF_OP_CROSS_ENTROPY] = { ELEMENTWISE("cross_entropy", 3, 4, FIRST), .flops = 8, .in_place = 7,
                               .wide_inputs = WIDE(1) | WIDE(3), .dtype = MTF_DTYPE_WIDE,
                               .shown = MTF_SHOWN_ACCURACY },
    [MTF_OP_RELU_GRAD] = UNARY_GRAD("relu_grad", 1),
    [MTF_OP_GELU_GRAD] = UNARY_GRAD("gelu_grad", 20),
    [MTF_OP_GELU_EXACT_GRAD] = UNARY_GRAD("gelu_exact_grad", 25),
    [MTF_OP_SILU_GRAD] = UNARY_GRAD("silu_grad", 10),
    [MTF_OP_TANH_GRAD] = UNARY_GRAD("tanh_grad", 3),
    [MTF_OP_SIGMOID_GRAD] = UNARY_GRAD("sigmoid_grad", 3),
    [MTF_OP_SORT_GRAD] = { ROW("sort_grad", GATHER, 2, 2, 1, FIRST), .integer_inputs = 1,
                           .linearity = MTF_LINEAR_ONE, .linear_input = 1, .flops = 1,
                           .separate = true, .positional = true, .along = MTF_ALONG_SORTS,
                           .attributes = { REQUIRED_DIMENSION(dimension) },
                           .check = mtf_check_sort_grad },
    [MTF_OP_CAUSAL_ZERO] = { ALONE("causal_zero"), .flops = 1, .linearity = MTF_LINEAR_ONE,
                             .in_place = 1,
                             .attributes = { REQUIRED_DIMENSION(query),
                                             REQUIRED_DIMENSION(memory) },
                             .check = mtf_check_causal },
    [MTF_OP_ATTENTION_GRAD] = { ATTENDING_BACK("attention_grad", 6, 3),
                                .attributes = { ATTENTION, DROPPED, TURN } },
    [MTF_OP_ATTENTION_BIAS_GRAD] = { ATTENDING_BACK("attention_bias_grad", 7, 4),
                                     .statistics = 8, .attributes = { ATTENTION, DROPPED, TURN } },
    [MTF_OP_LINEAR_ATTENTION_GRAD] = { STATED_BACK("linear_attention_grad", 5, 4) },
    [MTF_OP_DELTA_RULE_GRAD] = { STATED_BACK("delta_rule_grad", 6, 5) },
    [MTF_OP_SELECTIVE_SCAN_GRAD] = { STATED("selective_scan_grad", 6, 6, 5, 60),
                                     .attributes = { PLACES_AND_KEYS },
                                     .scans = true,
                                     .wide_inputs = WIDE(3) | WIDE(5),
                                     STATED_GRADIENTS("step", "rate") },
    [MTF_OP_EMBEDDING_GRAD] = { ROW("embedding_grad", GATHER, 2, 3, 1, NEW), .adds_up = true,
                                .reduction = MTF_REDUCE_SUM, .linearity = MTF_LINEAR_ONE,
                                .linear_input = 1, .in_place = 1U << 2, .addend = 2,
                                .integer_inputs = 1, .flops = 0, .check = mtf_check_embedding_grad,
                                .scratch = MTF_SCRATCH_TABLE, CHOICE(0, MTF_OUTPUT, 1) },
    [MTF_OP_COMBINE_GATE_GRAD] = { ROW("combine_gate_grad", GATHER, 3, 3, 1, SUBSET),
                                   .reduction = MTF_REDUCE_SUM, .linearity = MTF_LINEAR_ONE,
                                   .linear_input = 1, .integer_inputs = 4, .positional = true,
                                   .own_dimensions = true, .check = mtf_check_combine_gate_grad },
    [MTF_OP_EXPERT_EINSUM_GRAD] = { ROW("expert_einsum_grad", MATMUL, 3, 3, 1, NEW),
                                    .reduction = MTF_REDUCE_SUM, .linearity = MTF_LINEAR_ONE,
                                    .linear_input = 1, .integer_inputs = 4, .flops = 2,
                                    .separate = true, .own_dimensions = true,
                                    .attributes = { REQUIRED_DIMENSION(experts) },
                                    .check = mtf_check_expert_einsum_grad,
                                    .products = MTF_PRODUCTS_EXPERTS,
                                    .scratch = MTF_SCRATCH_EXPERTS, .share = mtf_share_experts },
    [MTF_OP_SOFTMAX_GRAD] = { ELEMENTWISE("softmax_grad", 3, 3, FIRST), .flops = 2, .in_place = 3,
                              .wide_inputs = WIDE(2) },
    [MTF_OP_NORMALIZE_DOT] = { SUMMING("normalize_dot", 5, 5), .linearity = MTF_LINEAR_ONE,
                               .flops = 5, .attributes = { NUMBER(epsilon, 1e-6) },
                               .wide_inputs = WIDE(2) | WIDE(3), .dtype = MTF_DTYPE_WIDE,
                               .scratch = MTF_SCRATCH_WIDE_SUMS, .check = mtf_check_within_first },
    [MTF_OP_NORMALIZE_SCALE_GRAD] = { SUMMING("normalize_scale_grad", 4, 4), .adds_up = true,
                                      .linearity = MTF_LINEAR_ONE, .flops = 4, .continues = true,
                                      .attributes = { NUMBER(epsilon, 1e-6) },
                                      .wide_inputs = WIDE(2) | WIDE(3),
                                      .scratch = MTF_SCRATCH_WIDE_SUMS,
                                      .check = mtf_check_within_first },
    [MTF_OP_NORMALIZE_GRAD] = { ELEMENTWISE("normalize_grad", 7, 7, FIRST), .flops = 8,
                                .in_place = 3,
                                .attributes = { NUMBER(epsilon, 1e-6), NUMBER(per_microbatch, 0) },
                                .wide_inputs = WIDE(2) | WIDE(3) | WIDE(5) | WIDE(6),
                                .check = mtf_check_mean },
    [MTF_OP_CROSS_ENTROPY_GRAD] = { ELEMENTWISE("cross_entropy_grad", 5, 6, FIRST), .flops = 8,
                                    .in_place = 1, .linearity = MTF_LINEAR_ONE, .linear_input = 4,
                                    .integer_inputs = 2, .wide_inputs = WIDE(3) | WIDE(4) | WIDE(5),
                                    .scratch = MTF_SCRATCH_LABELS, CHOICE(1, 0, 1) },
    [MTF_OP_ACCUMULATE] = { ALONE("accumulate"), .linearity = MTF_LINEAR_ONE, .flops = 1,
                            .accumulates = true, .dtype = MTF_DTYPE_WIDE },
    [MTF_OP_CLIP_FACTOR] = { ALONE("clip_factor"), .flops = 3, .in_place = 1,
                             .attributes = { REQUIRED_NUMBER(limit) },
                             .shown = MTF_SHOWN_CLIP_FACTOR },
    [MTF_OP_LEARNING_RATE] = { ROW("learning_rate", ELEMENTWISE, 0, 0, 1, NEW),
                               .dtype = MTF_DTYPE_GIVEN,
                               .attributes = { REQUIRED_NUMBER(rate), STRING(schedule),
                                               NUMBER(warmup, 0), NUMBER(total, 0),
                                               NUMBER(final, 0), NUMBER(power, 1),
                                               NUMBER(cooldown, 0), NUMBER(period, 0),
                                               NUMBER(drop, 0.1) },
                               .check = mtf_check_learning_rate, .shown = MTF_SHOWN_LEARNING_RATE },
    [MTF_OP_SGD] = { ELEMENTWISE("sgd", 3, 4, FIRST), .flops = 3, .in_place = 1,
                     .attributes = { NUMBER(weight_decay, 0) }, .wide_inputs = ~WIDE(1),
                     .dtype = MTF_DTYPE_WIDE, .scalars_from = 2, .updates = true },
    [MTF_OP_MOMENTUM] = { ROW("momentum", ELEMENTWISE, 4, 5, 2, FIRST), .suffixes = { NULL, "v" },
                          .outputs_like = { 0, 2 }, .flops = 5, .in_place = 1,
                          .attributes = { NUMBER(beta1, 0.9), NUMBER(weight_decay, 0) },
                          .wide_inputs = ~WIDE(1), .dtype = MTF_DTYPE_WIDE, .scalars_from = 3,
                          .updates = true },
    [MTF_OP_LION] = { ROW("lion", ELEMENTWISE, 4, 5, 2, FIRST), .suffixes = { NULL, "m" },
                      .outputs_like = { 0, 2 }, .flops = 8, .in_place = 1,
                      .attributes = { NUMBER(beta1, 0.9), NUMBER(beta2, 0.99),
                                      NUMBER(weight_decay, 0) },
                      .wide_inputs = ~WIDE(1), .dtype = MTF_DTYPE_WIDE, .scalars_from = 3,
                      .updates = true },
    [MTF_OP_ADAM] = { ROW("adam", ELEMENTWISE, 5, 6, 3, FIRST), .suffixes = { NULL, "m", "v" },
                      .outputs_like = { 0, 2, 3 }, .flops = 14, .in_place = 1,
                      .attributes = { NUMBER(beta1, 0.9), NUMBER(beta2, 0.999),
                                      NUMBER(epsilon, 1e-8), NUMBER(weight_decay, 0) },
                      .wide_inputs = ~WIDE(1), .dtype = MTF_DTYPE_WIDE, .scalars_from = 4,
                      .updates = true },
    [MTF_OP_LAMB_DIRECTION] = { ROW("lamb_direction", ELEMENTWISE, 4, 5, 3, FIRST),
                                .suffixes = { NULL, "m", "v" }, .outputs_like = { 0, 2, 3 },
                                .flops = 13,
                                .attributes = { NUMBER(beta1, 0.9), NUMBER(beta2, 0.999),
                                                NUMBER(epsilon, 1e-6), NUMBER(weight_decay, 0) },
                                .wide_inputs = ~WIDE(1), .dtype = MTF_DTYPE_WIDE,
                                .scalars_from = 4 },
    [MTF_OP_LAMB_APPLY] = { ELEMENTWISE("lamb_apply", 5, 5, FIRST), .flops = 2, .in_place = 1,
                            .scalars_from = 2, .updates = true },
    [MTF_OP_ADAFACTOR_MOMENT] = { ELEMENTWISE("adafactor_moment", 2, 2, FIRST), .flops = 4,
                                  .in_place = 1,
                                  .attributes = { NUMBER(decay, 0.8), NUMBER(epsilon, 1e-30) },
                                  .updates = true },
    [MTF_OP_ADAFACTOR_DIRECTION] = { ELEMENTWISE("adafactor_direction", 2, 4, FIRST), .flops = 6,
                                     .in_place = 1, .wide_inputs = ~WIDE(0),
                                     .dtype = MTF_DTYPE_WIDE, .check = mtf_check_direction },
    [MTF_OP_ADAFACTOR_APPLY] = { ELEMENTWISE("adafactor_apply", 4, 4, FIRST), .flops = 3,
                                 .in_place = 1, .attributes = { NUMBER(threshold, 1) },
                                 .scalars_from = 2, .updates = true },
    [MTF_OP_CACHE_UPDATE] = { ROW("cache_update", MOVE, 3, 3, 1, NEW), .in_place = 1U << 1,
                              .addend = 1, .integer_inputs = 4, .positional = true,
                              .attributes = { REQUIRED_DIMENSION(from), REQUIRED_DIMENSION(to) },
                              .check = mtf_check_cache_update, .own_dimensions = true },
    [MTF_OP_QUANTIZED_EINSUM] = { ROW("quantized_einsum", MATMUL, 3, 3, 1, SUBSET),
                                  .reduction = MTF_REDUCE_SUM, .linearity = MTF_LINEAR_ONE,
                                  .integer_inputs = 2, .byte_inputs = 2, .wide_inputs = WIDE(2),
                                  .dtype = MTF_DTYPE_EITHER, .padding = MTF_PADDING_ZERO,
                                  .flops = 2, .separate = true, .check = mtf_check_quantized_einsum,
                                  .products = MTF_PRODUCTS_QUANTIZED },
    [MTF_OP_CACHED_ATTENTION] = { ATTENDING("cached_attention", 4, 4), .integer_inputs = 8,
                                  .positional = true,
                                  .attributes = { REQUIRED_DIMENSION(query),
                                                  REQUIRED_DIMENSION(memory),
                                                  REQUIRED_DIMENSION(dimension),
                                                  REQUIRED_NUMBER(factor), NUMBER(softcap, 0),
                                                  NUMBER(window, 0) },
                                  .check = mtf_check_cached_attention, .share = mtf_share_cached },
    [MTF_OP_KEPT_LINEAR_ATTENTION] = { STATED("kept_linear_attention", 5, 6, 2, 6),
                                       .attributes = { PLACES_AND_KEYS },
                                       .suffixes = { NULL, "state" }, .outputs_like = { 0, 4 },
                                       .wide_inputs = WIDE(3) | WIDE(4),
                                       .check = mtf_check_kept_linear_attention,
                                       .products = MTF_PRODUCTS_LINEAR_ATTENTION },
    [MTF_OP_KEPT_SELECTIVE_SCAN] = { STATED("kept_selective_scan", 6, 6, 2, 20),
                                     .attributes = { PLACES_AND_KEYS },
                                     .scans = true,
                                     .suffixes = { NULL, "state" },
                                     .outputs_like = { 0, 4 },
                                     .wide_inputs = WIDE(3) | WIDE(4) | WIDE(5),
                                     .check = mtf_check_kept_linear_attention,
                                     .products = MTF_PRODUCTS_LINEAR_ATTENTION },
    [MTF_OP_EXPRESSION] = { COMPOSITE("expression", 1, INT_MAX, UNION), .integers = true,
                            .singular = true,
                            .attributes = { REQUIRED_STRING(expression), STRING(arguments) },
                            .check = mtf_check_expression },
};

const MtfOperationRow *mtf_operation_row(int kind) {
    return &rows[kind];
}

bool mtf_tensor_is_on_host(const MtfGraph *graph, int tensor) {
    int producer = mtf_graph_tensor(graph, tensor)->producer;
    return producer >= 0 &&
           mtf_operation_row(mtf_graph_operation(graph, producer)->kind)->host == MTF_HOST_TO;
}

int mtf_operation_along(const MtfOperation *operation) {
    MtfAlong along = mtf_operation_row(operation->kind)->along;
    return along == MTF_ALONG_NOTHING   ? -1
           : along == MTF_ALONG_CHOOSES ? operation->attributes.from
                                        : operation->attributes.dimension;
}

bool mtf_operation_adds_input(const MtfOperation *operation, int k) {
    return k > 0 && mtf_operation_row(operation->kind)->addend == k;
}

bool mtf_operation_mask_has(unsigned mask, int k) {
    return mask >> MIN(k, 31) & 1;
}

bool mtf_operation_row_chooses_dtype(const MtfOperationRow *row) {
    return row->dtype == MTF_DTYPE_EITHER || row->dtype == MTF_DTYPE_GIVEN ||
           row->dtype == MTF_DTYPE_TRUTH;
}

bool mtf_operation_input_leads(const MtfOperationRow *row, int k, MtfDtype dtype) {
    return !mtf_operation_mask_has(row->integer_inputs | row->wide_inputs, k) &&
           !(dtype == MTF_BOOL && mtf_operation_mask_has(row->conditions, k));
}

MtfDtype mtf_operation_storage_dtype(const MtfGraph *graph, const MtfOperation *operation) {
    const MtfOperationRow *row = mtf_operation_row(operation->kind);
    for (int k = 0; k < operation->n_inputs; k++) {
        MtfDtype dtype = mtf_graph_tensor(graph, operation->inputs[k])->dtype;
        if (mtf_operation_input_leads(row, k, dtype))
            return dtype;
    }
    return mtf_graph_tensor(graph, operation->outputs[0])->dtype;
}

bool mtf_operation_needs_dtype(const MtfGraph *graph, const MtfOperation *operation) {
    const MtfOperationRow *row = mtf_operation_row(operation->kind);
    return row->dtype == MTF_DTYPE_GIVEN ||
           (mtf_operation_row_chooses_dtype(row) &&
            mtf_graph_tensor(graph, operation->outputs[0])->dtype !=
                mtf_operation_storage_dtype(graph, operation));
}

int mtf_operation_kind(const char *name) {
    for (int kind = 0; kind < MTF_OPERATIONS; kind++)
        if (strcmp(rows[kind].name, name) == 0)
            return kind;
    return -1;
}

const MtfShape *mtf_operation_operand_shape(const MtfGraph *graph, const MtfOperation *operation,
                                            int k) {
    int tensor = k == MTF_OUTPUT ? operation->outputs[0] : operation->inputs[k];
    return &mtf_graph_tensor(graph, tensor)->shape;
}

bool mtf_graph_has_experts(const MtfGraph *graph) {
    for (int o = 0; o < (int)graph->operations->len; o++)
        if (rows[mtf_graph_operation(graph, o)->kind].routes)
            return true;
    return false;
}
