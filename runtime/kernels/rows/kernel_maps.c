// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/kernels/base/kernel_map.h"

#include "runtime/kernels/base/kernel_math.h"
#include "runtime/kernels/base/kernel_nest.h"

#define libm_log_f32 logf
#define libm_log_f64 log
#define libm_sqrt_f32 sqrtf
#define libm_sqrt_f64 sqrt
#define libm_sin_f32 sinf
#define libm_sin_f64 sin
#define libm_cos_f32 cosf
#define libm_cos_f64 cos
#define libm_erf_f32 erff
#define libm_erf_f64 erf
#define libm_floor_f32 floorf
#define libm_floor_f64 floor
#define libm_log1p_f32 log1pf
#define libm_log1p_f64 log1p
#define libm_pow_f32 powf
#define libm_pow_f64 pow

/* The remainder that has the divisor's sign; 0 where the divisor is 0. */
static int64_t remainder_of(int64_t a, int64_t b) {
    int64_t r = b == 0 || b == -1 ? 0 : a % b; /* what remains of INT64_MIN by -1 has no quotient */
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

#define T float
#define E float
#define NAME(name) name##_f32
#include "runtime/kernels/rows/kernel_exact_maps.inc"
#include "runtime/kernels/rows/kernel_maps.inc"
#undef T
#undef E
#undef NAME

#define T double
#define E double
#define NAME(name) name##_f64
#include "runtime/kernels/rows/kernel_exact_maps.inc"
#include "runtime/kernels/rows/kernel_maps.inc"
#undef T
#undef E
#undef NAME

#define T int32_t
#define E int64_t
#define NAME(name) name##_i32
#include "runtime/kernels/rows/kernel_exact_maps.inc"

MAP2(modulo, remainder_of((int64_t)a, (int64_t)b))
#undef T
#undef E
#undef NAME

__extension__ typedef __int128 Wide;

#define T int64_t
#define E Wide
#define NAME(name) name##_i64
#include "runtime/kernels/rows/kernel_exact_maps.inc"
MAP2(modulo, remainder_of((int64_t)a, (int64_t)b))
#undef T
#undef E
#undef NAME

static void scale_parameters(const MtfKernelCall *call, double *parameters) {
    parameters[0] = call->operation->attributes.factor;
}

static void exponent_parameters(const MtfKernelCall *call, double *parameters) {
    parameters[0] = call->operation->attributes.exponent;
    parameters[1] = 0;
}

static void slope_parameters(const MtfKernelCall *call, double *parameters) {
    parameters[0] = call->operation->attributes.slope;
    parameters[1] = 0;
}

static void range_parameters(const MtfKernelCall *call, double *parameters) {
    parameters[0] = call->operation->attributes.low;
    parameters[1] = call->operation->attributes.high;
}

static void clip_parameters(const MtfKernelCall *call, double *parameters) {
    parameters[0] = call->operation->attributes.limit;
}

/* Epsilon, and how many elements the mean is over. The mean is input 1 behind x, or 2 behind dy, x.
 */
static void normalize_parameters(const MtfKernelCall *call, double *parameters) {
    int x = call->operation->kind == MTF_OP_NORMALIZE ? 0 : 1;
    parameters[0] = call->operation->attributes.epsilon;
    parameters[1] = mtf_kernel_mean_count(call, &call->inputs[x], &call->inputs[x + 1]);
}

/* The scalars behind the `arrays` first inputs: the rate and, if given, the clip factor. */
static void rate_parameters(const MtfKernelCall *call, double *parameters) {
    int arrays = mtf_map_row(call->operation->kind)->arrays;
    bool clips = call->operation->n_inputs > arrays + 1;
    parameters[0] = mtf_operand_scalar(&call->inputs[arrays]);
    parameters[1] = clips ? mtf_operand_scalar(&call->inputs[arrays + 1]) : 1;
    parameters[2] = call->operation->attributes.weight_decay;
    parameters[3] = call->operation->attributes.beta1;
}

static void lion_parameters(const MtfKernelCall *call, double *parameters) {
    rate_parameters(call, parameters);
    parameters[4] = call->operation->attributes.beta2;
}

static void adam_parameters(const MtfKernelCall *call, double *parameters) {
    const MtfAttributes *a = &call->operation->attributes;
    rate_parameters(call, parameters);
    parameters[4] = a->beta2;
    parameters[5] = a->epsilon;
    parameters[6] = 1 / (1 - pow(a->beta1, (double)call->step));
    parameters[7] = 1 / (1 - pow(a->beta2, (double)call->step));
}

static void lamb_direction_parameters(const MtfKernelCall *call, double *parameters) {
    const MtfAttributes *a = &call->operation->attributes;
    bool clips = call->operation->n_inputs > 4;
    parameters[0] = clips ? mtf_operand_scalar(&call->inputs[4]) : 1;
    parameters[1] = a->weight_decay;
    parameters[2] = a->beta1;
    parameters[3] = a->beta2;
    parameters[4] = a->epsilon;
    parameters[5] = 1 / (1 - pow(a->beta1, (double)call->step));
    parameters[6] = 1 / (1 - pow(a->beta2, (double)call->step));
}

/* (w, u, sum of w^2, sum of u^2, rate): rate |w| / |u|. */
static void lamb_apply_parameters(const MtfKernelCall *call, double *parameters) {
    double w = mtf_operand_scalar(&call->inputs[2]), u = mtf_operand_scalar(&call->inputs[3]);
    double trust = w > 0 && u > 0 ? sqrt(w / u) : 1;
    parameters[0] = mtf_operand_scalar(&call->inputs[4]) * trust;
}

static void adafactor_moment_parameters(const MtfKernelCall *call, double *parameters) {
    parameters[0] = 1 - pow((double)call->step, -call->operation->attributes.decay);
    parameters[1] = call->operation->attributes.epsilon;
}

/* (w, u, sum of u^2, rate): rate / max(1, rms(u) / threshold). */
static void adafactor_apply_parameters(const MtfKernelCall *call, double *parameters) {
    double elements = mtf_operand_mean_count(&call->inputs[0], &call->inputs[2]);
    double rms = sqrt(mtf_operand_scalar(&call->inputs[2]) / elements);
    double excess = rms / call->operation->attributes.threshold;
    parameters[0] = mtf_operand_scalar(&call->inputs[3]) / (excess < 1 ? 1 : excess);
}

#define ROW(name) name##_f32, name##_f64
#define EXACT(name) \
    { ROW(name), 0, NULL, name##_i32, name##_i64 }

static const MtfMapRow map_rows[MTF_OPERATIONS] = {
    [MTF_OP_ADD] = EXACT(add),
    [MTF_OP_SUBTRACT] = EXACT(subtract),
    [MTF_OP_MULTIPLY] = EXACT(multiply),
    [MTF_OP_DIVIDE] = { ROW(divide), 0, NULL, NULL, NULL },
    [MTF_OP_MAXIMUM] = EXACT(maximum),
    [MTF_OP_MINIMUM] = EXACT(minimum),
    [MTF_OP_EQUAL] = EXACT(equal),
    [MTF_OP_LESS] = EXACT(less),
    [MTF_OP_LESS_EQUAL] = EXACT(less_equal),
    [MTF_OP_WHERE] = EXACT(where),
    [MTF_OP_MODULO] = EXACT(modulo),
    [MTF_OP_POWER] = { ROW(power), 0, NULL, NULL, NULL },
    [MTF_OP_LOGICAL_NOT] = EXACT(logical_not),
    [MTF_OP_RAISE] = { ROW(raise), 0, exponent_parameters, NULL, NULL },
    [MTF_OP_CLIP] = { ROW(clip), 0, range_parameters, NULL, NULL },
    [MTF_OP_LEAKY_RELU] = { ROW(leaky_relu), 0, slope_parameters, NULL, NULL },
    [MTF_OP_ELU] = { ROW(elu), 0, slope_parameters, NULL, NULL },
    [MTF_OP_GELU_EXACT] = { ROW(gelu_exact), 0, NULL, NULL, NULL },
    [MTF_OP_GELU_EXACT_GRAD] = { ROW(gelu_exact_grad), 0, NULL, NULL, NULL },
    [MTF_OP_SOFTPLUS] = { ROW(softplus), 0, NULL, NULL, NULL },
    [MTF_OP_SIN] = { ROW(sin), 0, NULL, NULL, NULL },
    [MTF_OP_COS] = { ROW(cos), 0, NULL, NULL, NULL },
    [MTF_OP_ERF] = { ROW(erf), 0, NULL, NULL, NULL },
    [MTF_OP_FLOOR] = { ROW(floor), 0, NULL, NULL, NULL },
    [MTF_OP_SCALE] = { ROW(scale), 0, scale_parameters, NULL, NULL },
    [MTF_OP_RELU] = { ROW(relu), 0, NULL, NULL, NULL },
    [MTF_OP_GELU] = { ROW(gelu), 0, NULL, NULL, NULL },
    [MTF_OP_SILU] = { ROW(silu), 0, NULL, NULL, NULL },
    [MTF_OP_TANH] = { ROW(tanh), 0, NULL, NULL, NULL },
    [MTF_OP_SIGMOID] = { ROW(sigmoid), 0, NULL, NULL, NULL },
    [MTF_OP_EXP] = { ROW(exp), 0, NULL, NULL, NULL },
    [MTF_OP_LOG] = { ROW(log), 0, NULL, NULL, NULL },
    [MTF_OP_SQRT] = { ROW(sqrt), 0, NULL, NULL, NULL },
    [MTF_OP_RSQRT] = { ROW(rsqrt), 0, NULL, NULL, NULL },
    [MTF_OP_SQUARE] = EXACT(square),
    [MTF_OP_NEGATE] = EXACT(negate),
    [MTF_OP_ABS] = EXACT(abs),
    [MTF_OP_SIGN] = EXACT(sign),
    [MTF_OP_SUM_EXP] = { ROW(sum_exp), 0, NULL, NULL, NULL },
    [MTF_OP_SOFTMAX_APPLY] = { ROW(softmax_apply), 0, NULL, NULL, NULL },
    [MTF_OP_VARIANCE] = { ROW(variance), 0, NULL, NULL, NULL },
    [MTF_OP_NORMALIZE] = { ROW(normalize), 0, normalize_parameters, NULL, NULL },
    [MTF_OP_CROSS_ENTROPY] = { ROW(cross_entropy), 0, NULL, NULL, NULL },
    [MTF_OP_RELU_GRAD] = { ROW(relu_grad), 0, NULL, NULL, NULL },
    [MTF_OP_GELU_GRAD] = { ROW(gelu_grad), 0, NULL, NULL, NULL },
    [MTF_OP_SILU_GRAD] = { ROW(silu_grad), 0, NULL, NULL, NULL },
    [MTF_OP_TANH_GRAD] = { ROW(tanh_grad), 0, NULL, NULL, NULL },
    [MTF_OP_SIGMOID_GRAD] = { ROW(sigmoid_grad), 0, NULL, NULL, NULL },
    [MTF_OP_SOFTMAX_GRAD] = { ROW(softmax_grad), 0, NULL, NULL, NULL },
    [MTF_OP_NORMALIZE_DOT] = { ROW(normalize_dot), 0, normalize_parameters, NULL, NULL },
    [MTF_OP_NORMALIZE_SCALE_GRAD] = { ROW(normalize_dot), 0, normalize_parameters, NULL, NULL },
    [MTF_OP_NORMALIZE_GRAD] = { ROW(normalize_grad), 0, normalize_parameters, NULL, NULL },
    [MTF_OP_CLIP_FACTOR] = { ROW(clip_factor), 0, clip_parameters, NULL, NULL },
    [MTF_OP_SGD] = { ROW(sgd), 2, rate_parameters, NULL, NULL },
    [MTF_OP_MOMENTUM] = { ROW(momentum), 3, rate_parameters, NULL, NULL },
    [MTF_OP_LION] = { ROW(lion), 3, lion_parameters, NULL, NULL },
    [MTF_OP_ADAM] = { ROW(adam), 4, adam_parameters, NULL, NULL },
    [MTF_OP_LAMB_DIRECTION] = { ROW(lamb_direction), 4, lamb_direction_parameters, NULL, NULL },
    [MTF_OP_LAMB_APPLY] = { ROW(go_down), 2, lamb_apply_parameters, NULL, NULL },
    [MTF_OP_ADAFACTOR_MOMENT] = { ROW(adafactor_moment), 0, adafactor_moment_parameters, NULL,
                                  NULL },
    [MTF_OP_ADAFACTOR_DIRECTION] = { ROW(adafactor_direction), 0, NULL, NULL, NULL },
    [MTF_OP_ADAFACTOR_APPLY] = { ROW(go_down), 2, adafactor_apply_parameters, NULL, NULL },
};

const MtfMapRow mtf_map_softmax_weighted = { ROW(softmax_weighted), 0, NULL, NULL, NULL };

const MtfMapRow *mtf_map_row(int operation_kind) {
    return &map_rows[operation_kind];
}

const MtfKernelRow mtf_map_kernels[] = {
    MTF_TIMED_KERNEL(MTF_OP_ADD, mtf_kernel_add, { "rc", "rc" }, NULL, MTF_FIRST_FRESH),
    MTF_TIMED_KERNEL(MTF_OP_SUBTRACT, mtf_kernel_map, { "rc", "rc" }, NULL, MTF_FIRST_FRESH),
    MTF_TIMED_KERNEL(MTF_OP_MULTIPLY, mtf_kernel_map, { "rc", "rc" }, NULL, MTF_FIRST_FRESH),
    MTF_TIMED_KERNEL(MTF_OP_DIVIDE, mtf_kernel_map, { "rc", "rc" }, NULL, MTF_FIRST_FRESH),
    MTF_TIMED_KERNEL(MTF_OP_MAXIMUM, mtf_kernel_map, { "rc", "rc" }, NULL, MTF_FIRST_KEPT),
    MTF_TIMED_KERNEL(MTF_OP_MINIMUM, mtf_kernel_map, { "rc", "rc" }, NULL, MTF_FIRST_KEPT),
    MTF_TIMED_KERNEL(MTF_OP_EQUAL, mtf_kernel_map, { "rc", "rc" }, NULL, MTF_FIRST_KEPT),
    MTF_TIMED_KERNEL(MTF_OP_LESS, mtf_kernel_map, { "rc", "rc" }, NULL, MTF_FIRST_KEPT),
    MTF_TIMED_KERNEL(MTF_OP_LESS_EQUAL, mtf_kernel_map, { "rc", "rc" }, NULL, MTF_FIRST_KEPT),
    MTF_TIMED_KERNEL(MTF_OP_WHERE, mtf_kernel_map, { "rc", "rc", "rc" }, NULL, MTF_FIRST_KEPT),
    MTF_TIMED_KERNEL(MTF_OP_MODULO, mtf_kernel_map, { "rc", "rc" }, NULL, MTF_SLOW),
    MTF_TIMED_KERNEL(MTF_OP_POWER, mtf_kernel_map, { "rc", "rc" }, NULL, MTF_SLOW),
    MTF_TIMED_KERNEL(MTF_OP_LOGICAL_NOT, mtf_kernel_map, { "rc" }, NULL, MTF_FIRST_KEPT),
    MTF_TIMED_KERNEL(MTF_OP_RAISE, mtf_kernel_map, { "rc" }, NULL, MTF_SLOW),
    MTF_TIMED_KERNEL(MTF_OP_CLIP, mtf_kernel_map, { "rc" }, NULL, MTF_FIRST_KEPT),
    MTF_TIMED_KERNEL(MTF_OP_LEAKY_RELU, mtf_kernel_map, { "rc" }, NULL, MTF_FIRST_KEPT),
    MTF_TIMED_KERNEL(MTF_OP_ELU, mtf_kernel_map, { "rc" }, NULL, MTF_SLOW),
    MTF_TIMED_KERNEL(MTF_OP_GELU_EXACT, mtf_kernel_map, { "rc" }, NULL, MTF_SLOW),
    MTF_TIMED_KERNEL(MTF_OP_SOFTPLUS, mtf_kernel_map, { "rc" }, NULL, MTF_SLOW),
    MTF_TIMED_KERNEL(MTF_OP_SIN, mtf_kernel_map, { "rc" }, NULL, MTF_SLOW),
    MTF_TIMED_KERNEL(MTF_OP_COS, mtf_kernel_map, { "rc" }, NULL, MTF_SLOW),
    MTF_TIMED_KERNEL(MTF_OP_ERF, mtf_kernel_map, { "rc" }, NULL, MTF_SLOW),
    MTF_TIMED_KERNEL(MTF_OP_FLOOR, mtf_kernel_map, { "rc" }, NULL, MTF_FIRST_KEPT),
    MTF_TIMED_KERNEL(MTF_OP_GELU_EXACT_GRAD, mtf_kernel_map, { "rc", "rc" }, NULL, MTF_SLOW),
    MTF_TIMED_KERNEL(MTF_OP_SCALE, mtf_kernel_map, { "rc" }, NULL, MTF_FIRST_FRESH),
    MTF_TIMED_KERNEL(MTF_OP_RELU, mtf_kernel_map, { "rc" }, NULL, MTF_FIRST_FRESH),
    MTF_TIMED_KERNEL(MTF_OP_GELU, mtf_kernel_map, { "rc" }, NULL, MTF_FIRST_KEPT),
    MTF_TIMED_KERNEL(MTF_OP_SILU, mtf_kernel_map, { "rc" }, NULL, MTF_FIRST_KEPT),
    MTF_TIMED_KERNEL(MTF_OP_TANH, mtf_kernel_map, { "rc" }, NULL, MTF_FIRST_FRESH),
    MTF_TIMED_KERNEL(MTF_OP_SIGMOID, mtf_kernel_map, { "rc" }, NULL, MTF_FIRST_FRESH),
    MTF_TIMED_KERNEL(MTF_OP_EXP, mtf_kernel_map, { "rc" }, NULL, MTF_FIRST_FRESH),
    MTF_TIMED_KERNEL(MTF_OP_LOG, mtf_kernel_map, { "rc" }, NULL, MTF_FIRST_KEPT),
    MTF_TIMED_KERNEL(MTF_OP_SQRT, mtf_kernel_map, { "rc" }, NULL, MTF_FIRST_FRESH),
    MTF_TIMED_KERNEL(MTF_OP_RSQRT, mtf_kernel_map, { "rc" }, NULL, MTF_FIRST_FRESH),
    MTF_TIMED_KERNEL(MTF_OP_SQUARE, mtf_kernel_map, { "rc" }, NULL, MTF_FIRST_KEPT),
    MTF_TIMED_KERNEL(MTF_OP_NEGATE, mtf_kernel_map, { "rc" }, NULL, MTF_FIRST_FRESH),
    MTF_TIMED_KERNEL(MTF_OP_ABS, mtf_kernel_map, { "rc" }, NULL, MTF_FIRST_KEPT),
    MTF_TIMED_KERNEL(MTF_OP_SIGN, mtf_kernel_map, { "rc" }, NULL, MTF_FIRST_KEPT),
    MTF_TIMED_KERNEL(MTF_OP_REDUCE_SUM, mtf_kernel_reduce, { "rc" }, "c", MTF_FIRST_KEPT),
    MTF_TIMED_KERNEL(MTF_OP_REDUCE_MEAN, mtf_kernel_mean, { "rc" }, "r", MTF_FIRST_KEPT),
    MTF_TIMED_KERNEL(MTF_OP_REDUCE_MAX, mtf_kernel_reduce, { "rc" }, "r", MTF_FIRST_KEPT),
    MTF_TIMED_KERNEL(MTF_OP_SUM_EXP, mtf_kernel_reduce, { "rc", "r" }, "r", MTF_FIRST_KEPT),
    MTF_TIMED_KERNEL(MTF_OP_SOFTMAX_APPLY, mtf_kernel_map, { "rc", "r", "r" }, NULL,
                     MTF_FIRST_FRESH),
    MTF_TIMED_KERNEL(MTF_OP_VARIANCE, mtf_kernel_mean, { "rc", "r" }, "r", MTF_FIRST_KEPT),
    MTF_TIMED_KERNEL(MTF_OP_NORMALIZE, mtf_kernel_map, { "rc", "r", "r", "c", "c" }, NULL,
                     MTF_FIRST_KEPT),
    MTF_TIMED_KERNEL(MTF_OP_CROSS_ENTROPY, mtf_kernel_map, { "r", "r", "r" }, NULL,
                     MTF_NOTHING_FRESH),
    MTF_TIMED_KERNEL(MTF_OP_RELU_GRAD, mtf_kernel_map, { "rc", "rc" }, NULL, MTF_SECOND_FRESH),
    MTF_TIMED_KERNEL(MTF_OP_GELU_GRAD, mtf_kernel_map, { "rc", "rc" }, NULL, MTF_SECOND_FRESH),
    MTF_TIMED_KERNEL(MTF_OP_SILU_GRAD, mtf_kernel_map, { "rc", "rc" }, NULL, MTF_SECOND_FRESH),
    MTF_TIMED_KERNEL(MTF_OP_TANH_GRAD, mtf_kernel_map, { "rc", "rc" }, NULL, MTF_SECOND_FRESH),
    MTF_TIMED_KERNEL(MTF_OP_SIGMOID_GRAD, mtf_kernel_map, { "rc", "rc" }, NULL, MTF_SECOND_FRESH),
    MTF_TIMED_KERNEL(MTF_OP_SOFTMAX_GRAD, mtf_kernel_map, { "rc", "rc", "r" }, NULL,
                     MTF_BOTH_FRESH),
    MTF_TIMED_KERNEL(MTF_OP_NORMALIZE_DOT, mtf_kernel_reduce, { "rc", "rc", "r", "r", "c" }, "r",
                     MTF_BOTH_KEPT),
    MTF_TIMED_KERNEL(MTF_OP_NORMALIZE_SCALE_GRAD, mtf_kernel_reduce, { "rc", "rc", "r", "r" }, "c",
                     MTF_FIRST_KEPT),
    MTF_TIMED_KERNEL(MTF_OP_NORMALIZE_GRAD, mtf_kernel_map, { "rc", "rc", "r", "r", "c", "r", "r" },
                     NULL, MTF_BOTH_FRESH),
    MTF_TIMED_KERNEL(MTF_OP_ACCUMULATE, mtf_kernel_accumulate, { "rc" }, NULL, MTF_NOTHING_FRESH),
    MTF_TIMED_KERNEL(MTF_OP_CLIP_FACTOR, mtf_kernel_map, { "" }, NULL, MTF_NOTHING_FRESH),
    MTF_TIMED_KERNEL(MTF_OP_SGD, mtf_kernel_map, { "rc", "rc", "" }, NULL, MTF_NOTHING_FRESH),
    MTF_TIMED_KERNEL(MTF_OP_MOMENTUM, mtf_kernel_map, { "rc", "rc", "rc", "" }, NULL,
                     MTF_NOTHING_FRESH),
    MTF_TIMED_KERNEL(MTF_OP_LION, mtf_kernel_map, { "rc", "rc", "rc", "" }, NULL,
                     MTF_NOTHING_FRESH),
    MTF_TIMED_KERNEL(MTF_OP_ADAM, mtf_kernel_map, { "rc", "rc", "rc", "rc", "" }, NULL,
                     MTF_NOTHING_FRESH),
    MTF_TIMED_KERNEL(MTF_OP_LAMB_DIRECTION, mtf_kernel_map, { "rc", "rc", "rc", "rc" }, NULL,
                     MTF_NOTHING_FRESH),
    MTF_TIMED_KERNEL(MTF_OP_LAMB_APPLY, mtf_kernel_map, { "rc", "rc", "", "", "" }, NULL,
                     MTF_NOTHING_FRESH),
    MTF_TIMED_KERNEL(MTF_OP_ADAFACTOR_MOMENT, mtf_kernel_map, { "rc", "rc" }, NULL,
                     MTF_NOTHING_FRESH),
    MTF_TIMED_KERNEL(MTF_OP_ADAFACTOR_DIRECTION, mtf_kernel_map, { "rc", "rc" }, NULL,
                     MTF_FIRST_FRESH),
    MTF_TIMED_KERNEL(MTF_OP_ADAFACTOR_APPLY, mtf_kernel_map, { "rc", "rc", "", "" }, NULL,
                     MTF_NOTHING_FRESH),
    { .kernel = NULL },
};
