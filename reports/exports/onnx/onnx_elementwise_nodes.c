// SPDX-License-Identifier: GPL-3.0-or-later
/* Operations on one element at a time, as ONNX nodes. */
#include "reports/exports/onnx/onnx_nodes.h"

static const char *x_of(const MtfOnnxNodes *e) {
    return mtf_node_input(e, 0)->name;
}

static const char *aligned(MtfOnnxNodes *e, int k) {
    return mtf_node_aligned_input(e, k, &mtf_node_result(e)->shape);
}

static const char *number(MtfOnnxNodes *e, double value) {
    return mtf_node_number(e, mtf_node_result_type(e), value);
}

/* Input `k` as most nodes of two inputs take it: bools as int32. */
static const char *numeric(MtfOnnxNodes *e, int k) {
    const char *x = aligned(e, k);
    return mtf_node_input(e, k)->dtype == MTF_BOOL ? mtf_node_cast(e, x, MTF_ONNX_INT32) : x;
}

static bool last_truth(MtfOnnxNodes *e, const char *truth) {
    const MtfOperation *op = mtf_node_operation(e);
    GByteArray *node = mtf_node_begin("Cast", 1, &truth, op->name);
    mtf_node_put_int(node, "to", mtf_node_result_type(e));
    return mtf_node_finish(e, node);
}

/* Those that are one node of the same inputs. */
static const struct {
    int kind;
    const char *name;
} same[] = {
    { MTF_OP_SUBTRACT, "Sub" },
    { MTF_OP_MULTIPLY, "Mul" },
    { MTF_OP_DIVIDE, "Div" },
    { MTF_OP_MAXIMUM, "Max" },
    { MTF_OP_MINIMUM, "Min" },
    { MTF_OP_POWER, "Pow" },
    { MTF_OP_RELU, "Relu" },
    { MTF_OP_TANH, "Tanh" },
    { MTF_OP_SIGMOID, "Sigmoid" },
    { MTF_OP_EXP, "Exp" },
    { MTF_OP_LOG, "Log" },
    { MTF_OP_SQRT, "Sqrt" },
    { MTF_OP_ERF, "Erf" },
    { MTF_OP_SIN, "Sin" },
    { MTF_OP_COS, "Cos" },
    { MTF_OP_FLOOR, "Floor" },
    { MTF_OP_NEGATE, "Neg" },
    { MTF_OP_ABS, "Abs" },
    { MTF_OP_SIGN, "Sign" },
    { MTF_OP_SOFTPLUS, "Softplus" },
    { MTF_OP_STOP_GRADIENT, "Identity" },
    { MTF_OP_TO_HOST, "Identity" },
    { MTF_OP_FROM_HOST, "Identity" },
    { MTF_OP_DROPOUT, "Identity" },
};

static bool write_same(MtfOnnxNodes *e) {
    const MtfOperation *op = mtf_node_operation(e);
    guint i = 0;
    while (same[i].kind != op->kind)
        i++;
    if (op->n_inputs == 1)
        return mtf_node_last_one(e, same[i].name, x_of(e));
    if (mtf_node_result(e)->dtype == MTF_BOOL)
        return last_truth(e, mtf_node_two(e, same[i].name, numeric(e, 0), numeric(e, 1)));
    return mtf_node_last_two(e, same[i].name, aligned(e, 0), aligned(e, 1));
}

static bool write_add(MtfOnnxNodes *e) {
    int n = mtf_node_operation(e)->n_inputs;
    const char *sum = aligned(e, 0);
    for (int k = 1; k < n - 1; k++)
        sum = mtf_node_two(e, "Add", sum, aligned(e, k));
    return mtf_node_last_two(e, "Add", sum, aligned(e, n - 1));
}

/* ---- Truths: bools, or numbers 1 and 0 ------------------------------------------------------- */

static bool write_equal(MtfOnnxNodes *e) {
    return last_truth(e, mtf_node_two(e, "Equal", aligned(e, 0), aligned(e, 1)));
}

static bool write_less(MtfOnnxNodes *e) {
    return last_truth(e, mtf_node_two(e, "Less", numeric(e, 0), numeric(e, 1)));
}

static bool write_less_equal(MtfOnnxNodes *e) {
    return last_truth(e, mtf_node_two(e, "LessOrEqual", numeric(e, 0), numeric(e, 1)));
}

static bool write_not(MtfOnnxNodes *e) {
    return last_truth(e, mtf_node_one(e, "Not", mtf_node_cast(e, x_of(e), MTF_ONNX_BOOL)));
}

static bool write_where(MtfOnnxNodes *e) {
    const char *truth = mtf_node_cast(e, aligned(e, 0), MTF_ONNX_BOOL);
    return mtf_node_last_three(e, "Where", truth, aligned(e, 1), aligned(e, 2));
}

/* ---- With numbers ---------------------------------------------------------------------------- */

/* a - b floor(a / b); of integers as ONNX has it. */
static bool write_modulo(MtfOnnxNodes *e) {
    const char *a = aligned(e, 0), *b = aligned(e, 1);
    if (mtf_dtype_is_integer(mtf_node_result(e)->dtype))
        return mtf_node_last_two(e, "Mod", a, b);
    const char *times = mtf_node_one(e, "Floor", mtf_node_two(e, "Div", a, b));
    return mtf_node_last_two(e, "Sub", a, mtf_node_two(e, "Mul", b, times));
}

static bool write_scale(MtfOnnxNodes *e) {
    return mtf_node_last_two(e, "Mul", x_of(e),
                             number(e, mtf_node_operation(e)->attributes.factor));
}

static bool write_raise(MtfOnnxNodes *e) {
    return mtf_node_last_two(e, "Pow", x_of(e),
                             number(e, mtf_node_operation(e)->attributes.exponent));
}

static bool write_clip(MtfOnnxNodes *e) {
    const MtfAttributes *a = &mtf_node_operation(e)->attributes;
    return mtf_node_last_three(e, "Clip", x_of(e), number(e, a->low), number(e, a->high));
}

static bool with_slope(MtfOnnxNodes *e, const char *name) {
    const char *x = x_of(e);
    GByteArray *node = mtf_node_begin(name, 1, &x, mtf_node_operation(e)->name);
    mtf_node_put_real(node, "alpha", mtf_node_operation(e)->attributes.slope);
    return mtf_node_finish(e, node);
}

static bool write_leaky(MtfOnnxNodes *e) {
    return with_slope(e, "LeakyRelu");
}

static bool write_elu(MtfOnnxNodes *e) {
    return with_slope(e, "Elu");
}

static bool write_square(MtfOnnxNodes *e) {
    return mtf_node_last_two(e, "Mul", x_of(e), x_of(e));
}

static bool write_inverse_root(MtfOnnxNodes *e) {
    return mtf_node_last_one(e, "Reciprocal", mtf_node_one(e, "Sqrt", x_of(e)));
}

static bool write_silu(MtfOnnxNodes *e) {
    return mtf_node_last_two(e, "Mul", x_of(e), mtf_node_one(e, "Sigmoid", x_of(e)));
}

/* x (1 + curve) / 2 */
static bool last_gate(MtfOnnxNodes *e, const char *curve) {
    const char *up = mtf_node_two(e, "Add", curve, number(e, 1));
    return mtf_node_last_two(e, "Mul", x_of(e), mtf_node_two(e, "Mul", up, number(e, 0.5)));
}

/* x Phi(x) = x (1 + erf(x / sqrt 2)) / 2 */
static bool write_gelu_exact(MtfOnnxNodes *e) {
    const char *inner = mtf_node_two(e, "Mul", x_of(e), number(e, G_SQRT2 / 2));
    return last_gate(e, mtf_node_one(e, "Erf", inner));
}

/* x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2 */
static bool write_gelu(MtfOnnxNodes *e) {
    const char *x = x_of(e), *square = mtf_node_two(e, "Mul", x, x);
    const char *bent =
        mtf_node_two(e, "Mul", mtf_node_two(e, "Mul", square, x), number(e, 0.044715));
    const char *inner =
        mtf_node_two(e, "Mul", mtf_node_two(e, "Add", x, bent), number(e, 0.79788456080286536));
    return last_gate(e, mtf_node_one(e, "Tanh", inner));
}

/* Exported models are not trained: y. */
static bool write_untrained(MtfOnnxNodes *e) {
    return mtf_node_last_one(e, "Identity", mtf_node_input(e, 1)->name);
}

static bool write_cast(MtfOnnxNodes *e) {
    return last_truth(e, x_of(e));
}

#define SAME(KIND) \
    { MTF_OP_##KIND, write_same }
const MtfOnnxWriter mtf_onnx_elementwise[] = {
    SAME(SUBTRACT),
    SAME(MULTIPLY),
    SAME(DIVIDE),
    SAME(MAXIMUM),
    SAME(MINIMUM),
    SAME(POWER),
    SAME(RELU),
    SAME(TANH),
    SAME(SIGMOID),
    SAME(EXP),
    SAME(LOG),
    SAME(SQRT),
    SAME(ERF),
    SAME(SIN),
    SAME(COS),
    SAME(FLOOR),
    SAME(NEGATE),
    SAME(ABS),
    SAME(SIGN),
    SAME(SOFTPLUS),
    SAME(STOP_GRADIENT),
    SAME(TO_HOST),
    SAME(FROM_HOST),
    SAME(DROPOUT),
    { MTF_OP_ADD, write_add },
    { MTF_OP_EQUAL, write_equal },
    { MTF_OP_LESS, write_less },
    { MTF_OP_LESS_EQUAL, write_less_equal },
    { MTF_OP_LOGICAL_NOT, write_not },
    { MTF_OP_WHERE, write_where },
    { MTF_OP_MODULO, write_modulo },
    { MTF_OP_SCALE, write_scale },
    { MTF_OP_RAISE, write_raise },
    { MTF_OP_CLIP, write_clip },
    { MTF_OP_LEAKY_RELU, write_leaky },
    { MTF_OP_ELU, write_elu },
    { MTF_OP_SQUARE, write_square },
    { MTF_OP_RSQRT, write_inverse_root },
    { MTF_OP_SILU, write_silu },
    { MTF_OP_GELU, write_gelu },
    { MTF_OP_GELU_EXACT, write_gelu_exact },
    { MTF_OP_IN_TRAIN_PHASE, write_untrained },
    { MTF_OP_CAST, write_cast },
    { 0, NULL },
};
