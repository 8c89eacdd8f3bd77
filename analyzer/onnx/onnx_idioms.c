// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/onnx/onnx_idioms.h"

#include "analyzer/onnx/onnx_steps.h"

#include <math.h>
#include <string.h>

/* Products within products that a gelu is looked for in. */
#define MOST_DEPTH 2

typedef struct {
    MtfOnnxTranslation *t;
    GHashTable *producers;
} Idioms;

GHashTable *mtf_onnx_producers(const MtfOnnxModel *model) {
    GHashTable *producers = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint i = 0; i < model->nodes->len; i++) {
        MtfOnnxNode *node = (MtfOnnxNode *)model->nodes->pdata[i];
        for (guint k = 0; k < node->outputs->len; k++)
            g_hash_table_insert(producers, node->outputs->pdata[k], node);
    }
    return producers;
}

/* ---- Asking about names ------------------------------------------------------------------------ */

static const char *input_of(const MtfOnnxNode *node, guint k) {
    return node != NULL && k < node->inputs->len ? (const char *)node->inputs->pdata[k] : "";
}

/* The node of ONNX's own operator `op` with `inputs` inputs that makes it, or NULL. */
static const MtfOnnxNode *made_by(const Idioms *idioms, const char *name, const char *op,
                                  guint inputs) {
    const MtfOnnxNode *node = (const MtfOnnxNode *)g_hash_table_lookup(idioms->producers, name);
    bool found = node != NULL && strcmp(node->op, op) == 0 && node->inputs->len == inputs &&
                 (*node->domain == '\0' || strcmp(node->domain, "ai.onnx") == 0);
    return found ? node : NULL;
}

static MtfOnnxValue *value_of(const Idioms *idioms, const char *name) {
    return *name == '\0' ? NULL : (MtfOnnxValue *)g_hash_table_lookup(idioms->t->values, name);
}

/* Whether a name is one number that no training changes. */
static bool is_number(const Idioms *idioms, const char *name, double *number) {
    MtfOnnxValue *value = value_of(idioms, name);
    return value != NULL && value->members == NULL && mtf_onnx_is_number(idioms->t, value, number);
}

static bool is_about(const Idioms *idioms, const char *name, double expected) {
    double number;
    return is_number(idioms, name, &number) && fabs(number - expected) <= 1e-6 * fabs(expected);
}

/* The other of two inputs of a node of which one is about that number; NULL where none is. */
static const char *beside_number(const Idioms *idioms, const MtfOnnxNode *node, double expected) {
    for (guint k = 0; node != NULL && k < 2; k++)
        if (is_about(idioms, input_of(node, k), expected))
            return input_of(node, 1 - k);
    return NULL;
}

/* ---- Gelu -------------------------------------------------------------------------------------- */

/* x of x^3, written as a power or as two products; NULL where it is none. */
static const char *cube_root(const Idioms *idioms, const char *name) {
    const MtfOnnxNode *power = made_by(idioms, name, "Pow", 2);
    if (power != NULL)
        return is_about(idioms, input_of(power, 1), 3) ? input_of(power, 0) : NULL;
    const MtfOnnxNode *outer = made_by(idioms, name, "Mul", 2);
    for (guint k = 0; outer != NULL && k < 2; k++) {
        const char *x = input_of(outer, k);
        const MtfOnnxNode *square = made_by(idioms, input_of(outer, 1 - k), "Mul", 2);
        if (strcmp(input_of(square, 0), x) == 0 && strcmp(input_of(square, 1), x) == 0)
            return x;
    }
    return NULL;
}

/* x of √(2/π) (x + 0.044715 x³). */
static const char *tanh_argument(const Idioms *idioms, const char *name) {
    const char *sum = beside_number(idioms, made_by(idioms, name, "Mul", 2), sqrt(2) / sqrt(M_PI));
    const MtfOnnxNode *add = sum != NULL ? made_by(idioms, sum, "Add", 2) : NULL;
    for (guint k = 0; add != NULL && k < 2; k++) {
        const char *x = input_of(add, k);
        const char *cube =
            beside_number(idioms, made_by(idioms, input_of(add, 1 - k), "Mul", 2), 0.044715);
        const char *root = cube != NULL ? cube_root(idioms, cube) : NULL;
        if (root != NULL && strcmp(root, x) == 0)
            return x;
    }
    return NULL;
}

/* x of x / √2. */
static const char *erf_argument(const Idioms *idioms, const char *name) {
    const MtfOnnxNode *divide = made_by(idioms, name, "Div", 2);
    if (divide != NULL)
        return is_about(idioms, input_of(divide, 1), sqrt(2)) ? input_of(divide, 0) : NULL;
    return beside_number(idioms, made_by(idioms, name, "Mul", 2), sqrt(0.5));
}

/* x of 1 + erf(x / √2), or of 1 + tanh(…); NULL where it is neither. */
static const char *gate_argument(const Idioms *idioms, const char *name, int *kind) {
    const char *inner = beside_number(idioms, made_by(idioms, name, "Add", 2), 1);
    if (inner == NULL)
        return NULL;
    const MtfOnnxNode *erf = made_by(idioms, inner, "Erf", 1);
    *kind = erf != NULL ? MTF_OP_GELU_EXACT : MTF_OP_GELU;
    return erf != NULL ? erf_argument(idioms, input_of(erf, 0))
                       : tanh_argument(idioms, input_of(made_by(idioms, inner, "Tanh", 1), 0));
}

/* The first factor of a product of products that is such a gate: what it is of. */
static const char *find_gate(const Idioms *idioms, const char *name, int depth, int *kind) {
    const char *x = gate_argument(idioms, name, kind);
    const MtfOnnxNode *product = made_by(idioms, name, "Mul", 2);
    for (guint k = 0; x == NULL && product != NULL && depth > 0 && k < 2; k++)
        x = find_gate(idioms, input_of(product, k), depth - 1, kind);
    return x;
}

/* What the factors of a product are. */
typedef struct {
    double number;
    int gates, arguments, others;
} Factors;

static void count_factors(const Idioms *idioms, const char *name, const char *x, int depth,
                          Factors *factors) {
    double number;
    int kind;
    const char *gate = gate_argument(idioms, name, &kind);
    const MtfOnnxNode *product = made_by(idioms, name, "Mul", 2);
    if (strcmp(name, x) == 0) {
        factors->arguments++;
    } else if (gate != NULL) {
        factors->gates++;
        factors->others += strcmp(gate, x) != 0;
    } else if (is_number(idioms, name, &number)) {
        factors->number *= number;
    } else if (product == NULL || depth == 0) {
        factors->others++;
    } else {
        count_factors(idioms, input_of(product, 0), x, depth - 1, factors);
        count_factors(idioms, input_of(product, 1), x, depth - 1, factors);
    }
}

/* x (1 + erf(x / √2)) / 2, its three factors in any order. */
static MtfOnnxValue *gelu(const Idioms *idioms, const MtfOnnxNode *node) {
    int kind;
    const char *name = (const char *)node->outputs->pdata[0];
    const char *x = find_gate(idioms, name, MOST_DEPTH, &kind);
    Factors factors = { .number = 1 };
    if (x == NULL || value_of(idioms, x) == NULL)
        return NULL;
    count_factors(idioms, name, x, MOST_DEPTH, &factors);
    bool whole = factors.gates == 1 && factors.arguments == 1 && factors.others == 0 &&
                 fabs(factors.number - 0.5) < 1e-9;
    return whole ? mtf_onnx_unary(idioms->t, kind, value_of(idioms, x)) : NULL;
}

/* ---- Norms over rows --------------------------------------------------------------------------- */

/* The axes of a mean that keeps them, as bits; 0 where they are not known. */
static unsigned mean_axes(const Idioms *idioms, const MtfOnnxNode *mean, int rank) {
    const MtfOnnxAttribute *kept = mtf_onnx_attribute(mean, "keepdims");
    const MtfOnnxAttribute *axes = mtf_onnx_attribute(mean, "axes");
    MtfOnnxValue *given = value_of(idioms, input_of(mean, 1));
    bool known = given != NULL && mtf_onnx_is_known(idioms->t, given);
    int64_t n = axes != NULL && axes->ints != NULL ? axes->ints->len
                : known                            ? mtf_onnx_elements(given)
                                                   : 0;
    unsigned mask = 0;
    if (kept != NULL && kept->i == 0)
        return 0;
    for (int64_t i = 0; i < n; i++) {
        double axis = axes != NULL ? (double)g_array_index(axes->ints, int64_t, i)
                                   : mtf_onnx_known_at(given, i);
        axis += axis < 0 ? rank : 0;
        mask |= axis >= 0 && axis < rank ? 1U << (int)axis : 0;
    }
    return mask;
}

static const MtfOnnxNode *mean_of(const Idioms *idioms, const char *name) {
    const MtfOnnxNode *mean = made_by(idioms, name, "ReduceMean", 1);
    return mean != NULL ? mean : made_by(idioms, name, "ReduceMean", 2);
}

/* The node of x - mean(x), or NULL. */
static const MtfOnnxNode *centred(const Idioms *idioms, const char *name) {
    const MtfOnnxNode *minus = made_by(idioms, name, "Sub", 2);
    const MtfOnnxNode *mean = minus != NULL ? mean_of(idioms, input_of(minus, 1)) : NULL;
    return mean != NULL && strcmp(input_of(mean, 0), input_of(minus, 0)) == 0 ? minus : NULL;
}

/* d of d^2, or NULL. */
static const char *square_root(const Idioms *idioms, const char *name) {
    const MtfOnnxNode *power = made_by(idioms, name, "Pow", 2);
    const MtfOnnxNode *product = made_by(idioms, name, "Mul", 2);
    if (power != NULL)
        return is_about(idioms, input_of(power, 1), 2) ? input_of(power, 0) : NULL;
    return product != NULL && strcmp(input_of(product, 0), input_of(product, 1)) == 0
               ? input_of(product, 0)
               : NULL;
}

typedef struct {
    const char *x;
    unsigned axes;
    double epsilon;
} Norm;

/* √(mean(d²) + ε), where d is what `minus` makes, or the same written again. */
static bool is_deviation(const Idioms *idioms, const char *name, const MtfOnnxNode *minus,
                         Norm *norm) {
    const MtfOnnxNode *root = made_by(idioms, name, "Sqrt", 1);
    const MtfOnnxNode *sum = root != NULL ? made_by(idioms, input_of(root, 0), "Add", 2) : NULL;
    for (guint k = 0; sum != NULL && k < 2; k++) {
        const MtfOnnxNode *variance = mean_of(idioms, input_of(sum, k));
        const char *d = variance != NULL ? square_root(idioms, input_of(variance, 0)) : NULL;
        const MtfOnnxNode *again = d != NULL ? centred(idioms, d) : NULL;
        const MtfOnnxValue *x = value_of(idioms, norm->x);
        if (again != NULL && strcmp(input_of(again, 0), input_of(minus, 0)) == 0 && x != NULL &&
            is_number(idioms, input_of(sum, 1 - k), &norm->epsilon)) {
            norm->axes = mean_axes(idioms, variance, x->rank);
            return norm->axes != 0 &&
                   norm->axes == mean_axes(idioms, mean_of(idioms, input_of(again, 1)), x->rank) &&
                   norm->axes == mean_axes(idioms, mean_of(idioms, input_of(minus, 1)), x->rank);
        }
    }
    return false;
}

/* (x - mean) / √(variance + ε). */
static bool is_normalised(const Idioms *idioms, const char *name, Norm *norm) {
    const MtfOnnxNode *divide = made_by(idioms, name, "Div", 2);
    const MtfOnnxNode *minus = divide != NULL ? centred(idioms, input_of(divide, 0)) : NULL;
    if (minus == NULL)
        return false;
    norm->x = input_of(minus, 0);
    return is_deviation(idioms, input_of(divide, 1), minus, norm);
}

/* A value of the file's that has the last axes alone, all those of the norm's that it has. */
static bool is_of_rows(const MtfOnnxValue *weight, const MtfOnnxValue *x, unsigned axes) {
    unsigned last = 0;
    for (int k = 0; weight != NULL && k < weight->rank; k++)
        last |= 1U << (x->rank - 1 - k);
    return weight != NULL && weight->trained && weight->rank <= x->rank && (last & ~axes) == 0;
}

/* The same, times a weight and plus another: both of rows, as frameworks give them to the norm. */
static MtfOnnxValue *norm(const Idioms *idioms, const MtfOnnxNode *node) {
    bool adds = strcmp(node->op, "Add") == 0;
    Norm norm;
    for (guint b = 0; adds && b < 2; b++) {
        const MtfOnnxNode *product = made_by(idioms, input_of(node, 1 - b), "Mul", 2);
        for (guint w = 0; product != NULL && w < 2; w++) {
            MtfOnnxValue *weight = value_of(idioms, input_of(product, w));
            MtfOnnxValue *bias = value_of(idioms, input_of(node, b));
            if (!is_normalised(idioms, input_of(product, 1 - w), &norm))
                continue;
            MtfOnnxValue *x = value_of(idioms, norm.x);
            if (is_of_rows(weight, x, norm.axes) && is_of_rows(bias, x, norm.axes))
                return mtf_onnx_layer_norm(idioms->t, x, norm.axes,
                                           mtf_onnx_weight(idioms->t, weight, false),
                                           mtf_onnx_weight(idioms->t, bias, false), norm.epsilon);
        }
    }
    if (adds || !is_normalised(idioms, (const char *)node->outputs->pdata[0], &norm))
        return NULL;
    return mtf_onnx_layer_norm(idioms->t, value_of(idioms, norm.x), norm.axes, NULL, NULL,
                               norm.epsilon);
}

MtfOnnxValue *mtf_onnx_idiom(MtfOnnxTranslation *t, GHashTable *producers,
                             const MtfOnnxNode *node) {
    Idioms idioms = { t, producers };
    MtfOnnxValue *made = NULL;
    if (node->outputs->len != 1 || node->inputs->len != 2)
        return NULL;
    if (strcmp(node->op, "Mul") == 0)
        made = gelu(&idioms, node);
    else if (strcmp(node->op, "Add") == 0 || strcmp(node->op, "Div") == 0)
        made = norm(&idioms, node);
    return made;
}
