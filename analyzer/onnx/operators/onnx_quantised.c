// SPDX-License-Identifier: GPL-3.0-or-later
/* Operators of quantised networks, in the numbers that their integers stand for: (x - zero) scale. Integers are
 * multiplied in double precision, which holds their sums. */
#include "analyzer/onnx/onnx_operators.h"
#include "analyzer/onnx/onnx_steps.h"

#include <inttypes.h>

/* A vector along `axis` of `rank`, as broadcasting has it; single numbers stay. */
static MtfOnnxValue *along(MtfOnnxTranslation *t, MtfOnnxValue *x, int axis, int rank) {
    int behind = rank - axis;
    if (x == NULL || x->rank == 0 || mtf_onnx_elements(x) == 1 || behind < 2)
        return x;
    return mtf_onnx_unsqueeze(t, x, behind, ((1U << behind) - 1) & ~1U);
}

/* Input k along an axis as numbers of a type; NULL where it is left out. */
static MtfOnnxValue *side(MtfOnnxCall *call, int k, int axis, int rank, int type) {
    MtfOnnxValue *x = mtf_onnx_input(call, k);
    return x == NULL ? NULL : along(call->t, mtf_onnx_cast(call->t, x, type), axis, rank);
}

/* x - input k, in double precision. */
static MtfOnnxValue *from_zero(MtfOnnxCall *call, MtfOnnxValue *x, int k, int axis) {
    MtfOnnxTranslation *t = call->t;
    MtfOnnxValue *zero = side(call, k, axis, x->rank, MTF_ONNX_DOUBLE);
    x = mtf_onnx_material(t, mtf_onnx_cast(t, x, MTF_ONNX_DOUBLE));
    return zero == NULL ? x : mtf_onnx_binary(t, MTF_OP_SUBTRACT, x, zero);
}

static int quantised_axis(MtfOnnxCall *call, int rank) {
    return rank < 2 ? 0 : mtf_onnx_axis(call, mtf_onnx_int(call, "axis", 1), rank);
}

/* (x - zero) scale */
static MtfOnnxValue *dequantise(MtfOnnxCall *call) {
    MtfOnnxTranslation *t = call->t;
    MtfOnnxValue *x = call->inputs[0];
    int axis = quantised_axis(call, x->rank), type = call->inputs[1]->type;
    if (axis < 0 || mtf_onnx_int(call, "block_size", 0) != 0)
        return axis < 0 ? NULL : mtf_onnx_fail(t, "scales of blocks are not supported");
    MtfOnnxValue *y = mtf_onnx_cast(t, from_zero(call, x, 2, axis), type);
    return mtf_onnx_binary(t, MTF_OP_MULTIPLY, y, side(call, 1, axis, x->rank, type));
}

/* The ends of a type of eight or sixteen bits. */
static bool ends_of(MtfOnnxCall *call, int type, MtfAttributes *ends) {
    int bits = 8 * (int)mtf_onnx_type_bytes(type);
    bool is_signed = type == MTF_ONNX_INT8 || type == MTF_ONNX_INT16;
    if (!is_signed && type != MTF_ONNX_UINT8 && type != MTF_ONNX_UINT16)
        return mtf_onnx_fail(call->t, "quantising to %s is not supported",
                             mtf_onnx_type_name(type)) != NULL;
    ends->low = is_signed ? -(double)(1 << (bits - 1)) : 0;
    ends->high = (double)(1 << (bits - (is_signed ? 1 : 0))) - 1;
    return true;
}

/* round(x / scale) + zero within the ends of the type; `scale` and `zero` go with x. */
static MtfOnnxValue *quantise_by(MtfOnnxCall *call, MtfOnnxValue *x, MtfOnnxValue *scale,
                                 MtfOnnxValue *zero, int type) {
    MtfOnnxTranslation *t = call->t;
    MtfAttributes ends = MTF_NO_ATTRIBUTES;
    if (!ends_of(call, type, &ends))
        return NULL;
    MtfOnnxValue *y = mtf_onnx_round_even(t, mtf_onnx_binary(t, MTF_OP_DIVIDE, x, scale));
    if (zero != NULL)
        y = mtf_onnx_binary(t, MTF_OP_ADD, y, zero);
    return mtf_onnx_cast(t, mtf_onnx_map(t, MTF_OP_CLIP, &ends, 1, &y), type);
}

static MtfOnnxValue *quantise(MtfOnnxCall *call) {
    MtfOnnxValue *x = mtf_onnx_cast(call->t, call->inputs[0], MTF_ONNX_FLOAT);
    const MtfOnnxValue *zero = mtf_onnx_input(call, 2);
    int type = zero != NULL ? zero->type : (int)mtf_onnx_int(call, "output_dtype", MTF_ONNX_UINT8);
    int axis = x == NULL ? -1 : quantised_axis(call, x->rank);
    if (axis < 0 || mtf_onnx_int(call, "block_size", 0) != 0)
        return axis < 0 ? NULL : mtf_onnx_fail(call->t, "scales of blocks are not supported");
    return quantise_by(call, x, side(call, 1, axis, x->rank, x->type),
                       side(call, 2, axis, x->rank, x->type), type);
}

/* scale = (max(x, 0) - min(x, 0)) / 255, zero = round(-min(x, 0) / scale), within 0 and 255. */
static MtfOnnxValue *quantise_dynamically(MtfOnnxCall *call) {
    MtfOnnxTranslation *t = call->t;
    MtfOnnxValue *x = call->inputs[0], *none = mtf_onnx_scalar(t, x->type, 0);
    unsigned all = (1U << x->rank) - 1;
    MtfOnnxValue *most = mtf_onnx_reduce(t, MTF_OP_REDUCE_MAX, x, all, NULL);
    MtfOnnxValue *least = mtf_onnx_reduce(t, MTF_OP_REDUCE_MIN, x, all, NULL);
    most = mtf_onnx_binary(t, MTF_OP_MAXIMUM, mtf_onnx_squeeze(t, most, all), none);
    least = mtf_onnx_binary(t, MTF_OP_MINIMUM, mtf_onnx_squeeze(t, least, all), none);
    MtfOnnxValue *scale =
        mtf_onnx_affine(t, mtf_onnx_binary(t, MTF_OP_SUBTRACT, most, least), 1.0 / 255, 0);
    MtfOnnxValue *zero =
        quantise_by(call, mtf_onnx_affine(t, least, -1, 0), scale, NULL, MTF_ONNX_UINT8);
    if (call->n_outputs > 1)
        call->outputs[1] = scale;
    if (call->n_outputs > 2)
        call->outputs[2] = zero;
    return quantise_by(call, x, scale, mtf_onnx_cast(t, zero, x->type), MTF_ONNX_UINT8);
}

/* Letters of numpy's matmul of matrices, with axes in front. */
static MtfOnnxValue *multiply(MtfOnnxCall *call, MtfOnnxValue *a, MtfOnnxValue *b) {
    static const char batch[] = "abcdefgh";
    if (a == NULL || b == NULL)
        return NULL;
    int most = MAX(a->rank, b->rank) - 2;
    if (a->rank < 2 || b->rank < 2 || most > 8)
        return mtf_onnx_fail(call->t, "its inputs should have from 2 to 10 axes");
    if (a->sizes[a->rank - 1] != b->sizes[b->rank - 2])
        return mtf_onnx_fail(call->t, "it multiplies %" PRId64 " columns with %" PRId64 " rows",
                             a->sizes[a->rank - 1], b->sizes[b->rank - 2]);
    g_autofree char *letters = g_strdup_printf("%smk,%skn->%.*smn", batch + 8 - (a->rank - 2),
                                               batch + 8 - (b->rank - 2), most, batch + 8 - most);
    MtfOnnxValue *inputs[] = { a, b };
    return mtf_onnx_product(call->t, letters, 2, inputs);
}

static MtfOnnxValue *multiply_integers(MtfOnnxCall *call) {
    MtfOnnxValue *a = call->inputs[0], *b = call->inputs[1];
    MtfOnnxValue *y = multiply(call, from_zero(call, a, 2, MAX(a->rank - 2, 0)),
                               from_zero(call, b, 3, MAX(b->rank - 1, 0)));
    return mtf_onnx_cast(call->t, y, MTF_ONNX_INT32);
}

/* Inputs: a, its scale and zero, b, its scale and zero, those of the result. */
static MtfOnnxValue *multiply_quantised(MtfOnnxCall *call) {
    MtfOnnxTranslation *t = call->t;
    MtfOnnxValue *a = call->inputs[0], *b = call->inputs[3];
    MtfOnnxValue *y = multiply(call, from_zero(call, a, 2, MAX(a->rank - 2, 0)),
                               from_zero(call, b, 5, MAX(b->rank - 1, 0)));
    if (y == NULL)
        return NULL;
    int rows = MAX(y->rank - 2, 0), columns = MAX(y->rank - 1, 0);
    y = mtf_onnx_binary(t, MTF_OP_MULTIPLY, y, side(call, 1, rows, y->rank, MTF_ONNX_DOUBLE));
    y = y == NULL ? NULL
                  : mtf_onnx_binary(t, MTF_OP_MULTIPLY, y,
                                    side(call, 4, columns, y->rank, MTF_ONNX_DOUBLE));
    return y == NULL
               ? NULL
               : quantise_by(call, y, side(call, 6, rows, y->rank, MTF_ONNX_DOUBLE),
                             side(call, 7, rows, y->rank, MTF_ONNX_DOUBLE), call->inputs[7]->type);
}

/* ---- Few bits -------------------------------------------------------------------------------- */

/* Rows of bytes [rows, bytes], each byte several numbers of few bits, the lowest first, as [rows, numbers]. */
static MtfOnnxValue *unpack(MtfOnnxTranslation *t, MtfOnnxValue *bytes, int bits, int type) {
    MtfOnnxValue *parts[8], *rest = mtf_onnx_cast(t, mtf_onnx_weight(t, bytes, true), type);
    int n = 8 / bits;
    if (rest == NULL || n == 1)
        return rest;
    const int64_t sizes[] = { rest->sizes[0], rest->sizes[1] * n };
    for (int i = 0; i < n; i++) {
        MtfOnnxValue *above =
            mtf_onnx_unary(t, MTF_OP_FLOOR, mtf_onnx_affine(t, rest, 1.0 / (1 << bits), 0));
        MtfOnnxValue *low = mtf_onnx_binary(t, MTF_OP_SUBTRACT, rest,
                                            mtf_onnx_affine(t, above, (double)(1 << bits), 0));
        if (low == NULL)
            return NULL;
        parts[i] = mtf_onnx_unsqueeze(t, i < n - 1 ? low : rest, 3, 1U << 2);
        rest = above;
    }
    return mtf_onnx_reshape(t, mtf_onnx_concat(t, 2, n, parts), 2, sizes);
}

/* A matrix [rows, columns] of numbers of few bits, of which a block of each row has one scale and perhaps one zero. */
typedef struct {
    int bits;
    int64_t rows, columns, block;
    MtfOnnxValue *numbers, *scales, *zeros; /* zeros NULL: the middle of what the bits hold */
} Blocks;

static int64_t blocks_of_row(const Blocks *b) {
    return (b->columns + b->block - 1) / b->block;
}

/* Zeros of blocks [rows, blocks, 1], of few bits, or numbers. */
static MtfOnnxValue *zeros_of(MtfOnnxTranslation *t, const Blocks *b, int type) {
    int64_t n = blocks_of_row(b), each = 8 / b->bits;
    const int64_t packed[] = { b->rows, (n + each - 1) / each }, sizes[] = { b->rows, n, 1 };
    MtfOnnxValue *zeros = b->zeros;
    if (zeros->type != MTF_ONNX_UINT8)
        return mtf_onnx_reshape(t, mtf_onnx_cast(t, mtf_onnx_weight(t, zeros, true), type), 3,
                                sizes);
    if (mtf_onnx_elements(zeros) != packed[0] * packed[1])
        return mtf_onnx_fail(t, "a zero for each block is expected");
    zeros = mtf_onnx_reshape(t, mtf_onnx_weight(t, zeros, true), 2, packed);
    zeros = unpack(t, zeros, b->bits, type);
    return mtf_onnx_reshape(t, zeros == NULL ? NULL : mtf_onnx_slice(t, zeros, 1, 0, 1, n), 3,
                            sizes);
}

/* (number - zero) scale [rows, columns] */
static MtfOnnxValue *numbers_of(MtfOnnxTranslation *t, const Blocks *b) {
    int64_t n = blocks_of_row(b);
    int type = b->scales->type;
    const int64_t bytes[] = { b->rows, n * b->block * b->bits / 8 };
    const int64_t parted[] = { b->rows, n, b->block }, whole[] = { b->rows, n * b->block };
    const int64_t of_blocks[] = { b->rows, n, 1 };
    if (mtf_onnx_elements(b->numbers) != bytes[0] * bytes[1] ||
        mtf_onnx_elements(b->scales) != b->rows * n)
        return mtf_onnx_fail(t, "blocks of %" PRId64 " numbers, and a scale for each, are expected",
                             b->block);
    MtfOnnxValue *x = mtf_onnx_reshape(t, mtf_onnx_weight(t, b->numbers, true), 2, bytes);
    x = mtf_onnx_reshape(t, unpack(t, x, b->bits, type), 3, parted);
    x = b->zeros == NULL ? mtf_onnx_affine(t, x, 1, -(double)(1 << (b->bits - 1)))
                         : mtf_onnx_binary(t, MTF_OP_SUBTRACT, x, zeros_of(t, b, type));
    MtfOnnxValue *scales = mtf_onnx_reshape(t, mtf_onnx_weight(t, b->scales, true), 3, of_blocks);
    x = mtf_onnx_reshape(t, mtf_onnx_binary(t, MTF_OP_MULTIPLY, x, scales), 2, whole);
    return x == NULL || b->columns == whole[1] ? x : mtf_onnx_slice(t, x, 1, 0, 1, b->columns);
}

static bool read_blocks(MtfOnnxCall *call, Blocks *b) {
    b->bits = (int)mtf_onnx_int(call, "bits", 4);
    b->block = mtf_onnx_int(call, "block_size", 128);
    bool known_bits = b->bits == 2 || b->bits == 4 || b->bits == 8;
    return (known_bits && b->block >= 16 && b->block <= 65536 && b->block % 8 == 0 &&
            b->rows >= 1 && b->columns >= 1) ||
           mtf_onnx_fail(call->t, "2, 4 or 8 bits, and blocks of at least 16 numbers, are "
                                  "expected") != NULL;
}

/* x [..., K] times a matrix [N, K] of few bits. */
static MtfOnnxValue *multiply_blocks(MtfOnnxCall *call) {
    MtfOnnxTranslation *t = call->t;
    MtfOnnxValue *x = call->inputs[0], *bias = mtf_onnx_input(call, 5);
    Blocks b = { .rows = mtf_onnx_int(call, "N", 0),
                 .columns = mtf_onnx_int(call, "K", 0),
                 .numbers = call->inputs[1],
                 .scales = call->inputs[2],
                 .zeros = mtf_onnx_input(call, 3) };
    if (!read_blocks(call, &b))
        return NULL;
    if (mtf_onnx_input(call, 4) != NULL)
        return mtf_onnx_fail(t, "blocks in another order (\"g_idx\") are not supported");
    if (x->rank < 1 || x->rank > 8 || x->sizes[x->rank - 1] != b.columns)
        return mtf_onnx_fail(t, "its input should have %" PRId64 " columns", b.columns);
    g_autofree char *letters =
        g_strdup_printf("%.*sk,nk->%.*sn", x->rank - 1, "abcdefgh", x->rank - 1, "abcdefgh");
    MtfOnnxValue *inputs[] = { x, mtf_onnx_cast(t, numbers_of(t, &b), x->type) };
    MtfOnnxValue *y = mtf_onnx_product(t, letters, 2, inputs);
    return bias == NULL ? y : mtf_onnx_binary(t, MTF_OP_ADD, y, mtf_onnx_weight(t, bias, false));
}

/* Rows of a table [rows, columns] of few bits, for ids. */
static MtfOnnxValue *look_up_blocks(MtfOnnxCall *call) {
    MtfOnnxTranslation *t = call->t;
    const MtfOnnxValue *table = call->inputs[0];
    Blocks b = { .numbers = call->inputs[0],
                 .scales = call->inputs[2],
                 .zeros = mtf_onnx_input(call, 3) };
    if (table->rank != 2 || table->type != MTF_ONNX_UINT8 ||
        mtf_onnx_int(call, "gather_axis", 0) != 0 || mtf_onnx_int(call, "quantize_axis", 1) != 1)
        return mtf_onnx_fail(t, "rows of bytes (uint8), in blocks of columns, are expected");
    b.rows = table->sizes[0];
    b.columns = table->sizes[1] * 8 / MAX(1, mtf_onnx_int(call, "bits", 4));
    if (!read_blocks(call, &b))
        return NULL;
    if (b.columns % b.block != 0)
        return mtf_onnx_fail(t, "%" PRId64 " columns are no blocks of %" PRId64, b.columns,
                             b.block);
    return mtf_onnx_lookup(t, mtf_onnx_material(t, numbers_of(t, &b)), call->inputs[1], 0);
}

/* ---- Convolutions ---------------------------------------------------------------------------- */

/* Input k, one number a channel, beside a result of (batch, channels, …). */
static MtfOnnxValue *of_channels(MtfOnnxCall *call, int k, const MtfOnnxValue *y) {
    return y == NULL ? NULL : side(call, k, 1, y->rank, MTF_ONNX_DOUBLE);
}

/* The Conv of x and a filter in the place of the inputs, with the node's own attributes. What lies outside of
 * x is 0 there, as its zero is here. */
static MtfOnnxValue *convolve(const MtfOnnxCall *call, MtfOnnxValue *x, MtfOnnxValue *filter) {
    if (x == NULL || filter == NULL)
        return NULL;
    MtfOnnxValue *inputs[] = { x, filter };
    MtfOnnxCall of_numbers = *call;
    of_numbers.inputs = inputs;
    of_numbers.n_inputs = 2;
    of_numbers.number = 0;
    return mtf_onnx_operator_find("", "Conv")->rule(&of_numbers);
}

static MtfOnnxValue *convolve_integers(MtfOnnxCall *call) {
    MtfOnnxValue *y = convolve(call, from_zero(call, call->inputs[0], 2, 0),
                               from_zero(call, call->inputs[1], 3, 0));
    return mtf_onnx_cast(call->t, y, MTF_ONNX_INT32);
}

/* Inputs: x, its scale and zero, the filter, its scale and zero (one a channel of the result), those of the
 * result, and integers that are added to sums. */
static MtfOnnxValue *convolve_quantised(MtfOnnxCall *call) {
    MtfOnnxTranslation *t = call->t;
    MtfOnnxValue *y = convolve(call, from_zero(call, call->inputs[0], 2, 0),
                               from_zero(call, call->inputs[3], 5, 0));
    MtfOnnxValue *bias = of_channels(call, 8, y);
    if (bias != NULL)
        y = mtf_onnx_binary(t, MTF_OP_ADD, y, bias);
    y = y == NULL ? NULL : mtf_onnx_binary(t, MTF_OP_MULTIPLY, y, of_channels(call, 1, y));
    y = y == NULL ? NULL : mtf_onnx_binary(t, MTF_OP_MULTIPLY, y, of_channels(call, 4, y));
    return y == NULL ? NULL
                     : quantise_by(call, y, of_channels(call, 6, y), of_channels(call, 7, y),
                                   call->inputs[7]->type);
}

const MtfOnnxOperator mtf_onnx_quantised_operators[] = {
    { "ConvInteger", convolve_integers, 0, 0, 2, 4, NULL },
    { "DequantizeLinear", dequantise, 0, 0, 2, 3, NULL },
    { "DequantizeLinear", dequantise, 0, 0, 2, 3, "com.microsoft" },
    { "DynamicQuantizeLinear", quantise_dynamically, 0, 0, 1, 1, NULL },
    { "GatherBlockQuantized", look_up_blocks, 0, 0, 3, 4, "com.microsoft" },
    { "MatMulInteger", multiply_integers, 0, 0, 2, 4, NULL },
    { "MatMulNBits", multiply_blocks, 0, 0, 3, 6, "com.microsoft" },
    { "QLinearConv", convolve_quantised, 0, 0, 8, 9, NULL },
    { "QLinearMatMul", multiply_quantised, 0, 0, 8, 8, NULL },
    { "QuantizeLinear", quantise, 0, 0, 2, 3, NULL },
    { "QuantizeLinear", quantise, 0, 0, 2, 3, "com.microsoft" },
    { 0 },
};
