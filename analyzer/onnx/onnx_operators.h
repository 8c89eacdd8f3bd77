// SPDX-License-Identifier: GPL-3.0-or-later
/* The operators of ONNX that can be translated, one row each. A row says what the operator becomes in
 * steps (onnx_steps.h); those whose inputs are all known are computed instead (onnx_known.h),
 * where that is small. */
#ifndef MTF_ONNX_OPERATORS_H
#define MTF_ONNX_OPERATORS_H

#include "analyzer/onnx/onnx_value.h"

/* A node while its row is at work. */
typedef struct {
    MtfOnnxTranslation *t;
    const MtfOnnxNode *node;
    int n_inputs;
    MtfOnnxValue **inputs; /* NULL for those that are left out */
    int n_outputs;
    MtfOnnxValue **outputs; /* to be filled; NULL for those that nobody reads */
    int64_t opset;
    double number; /* of the row */
    int kind;
} MtfOnnxCall;

typedef MtfOnnxValue *(*MtfOnnxRule)(MtfOnnxCall *call);

/* A rule returns the first output and may fill `outputs`. */
typedef struct {
    const char *name;
    MtfOnnxRule rule;
    int kind;           /* of our table, for the rule */
    double number;      /* likewise */
    int least, most;    /* inputs */
    const char *domain; /* NULL: ONNX's own */
} MtfOnnxOperator;

/* The row of an operator, or NULL. */
const MtfOnnxOperator *mtf_onnx_operator_find(const char *domain, const char *name);

/* Rows, to the end with name NULL, in several files. */
extern const MtfOnnxOperator mtf_onnx_elementwise_operators[];
extern const MtfOnnxOperator mtf_onnx_shape_operators[];
extern const MtfOnnxOperator mtf_onnx_place_operators[];
extern const MtfOnnxOperator mtf_onnx_reduction_operators[];
extern const MtfOnnxOperator mtf_onnx_network_operators[];
extern const MtfOnnxOperator mtf_onnx_window_operators[];
extern const MtfOnnxOperator mtf_onnx_loss_operators[];
extern const MtfOnnxOperator mtf_onnx_resize_operators[];
extern const MtfOnnxOperator mtf_onnx_sampling_operators[];
extern const MtfOnnxOperator mtf_onnx_random_operators[];
extern const MtfOnnxOperator mtf_onnx_spectrum_operators[];
extern const MtfOnnxOperator mtf_onnx_quantised_operators[];
extern const MtfOnnxOperator mtf_onnx_attention_operators[];
extern const MtfOnnxOperator mtf_onnx_fused_operators[];           /* of onnxruntime */
extern const MtfOnnxOperator mtf_onnx_fused_attention_operators[]; /* likewise */
extern const MtfOnnxOperator mtf_onnx_sequence_operators[];        /* which alone take sequences */
extern const MtfOnnxOperator mtf_onnx_recurrent_operators[];
extern const MtfOnnxOperator mtf_onnx_control_operators[]; /* with graphs inside */

/* Translates a node without working anything out; all its outputs get values. Returns output
 * `output`. */
MtfOnnxValue *mtf_onnx_translate_node(MtfOnnxTranslation *t, const MtfOnnxNode *node, int output);

/* ---- What rules ask ---------------------------------------------------------------------------- */

/* Input k, or NULL where it is left out. */
MtfOnnxValue *mtf_onnx_input(const MtfOnnxCall *call, int k);

/* An attribute of the operator, or what ONNX takes where it is missing. */
int64_t mtf_onnx_int(const MtfOnnxCall *call, const char *name, int64_t standard);
double mtf_onnx_float(const MtfOnnxCall *call, const char *name, double standard);
const char *mtf_onnx_word(const MtfOnnxCall *call, const char *name, const char *standard);

/* The numbers of a list attribute, or else of input `k` (-1: none), which must be known. `*n` is -1
 * where there are neither. False with an error. */
bool mtf_onnx_ints(MtfOnnxCall *call, const char *name, int k, int64_t *numbers, int *n);

/* Input k as one known number; `standard` where it is left out. False with an error. */
bool mtf_onnx_known_input(MtfOnnxCall *call, int k, double standard, double *number);

/* An axis counted from either end, within `rank`; -1 with an error. */
int mtf_onnx_axis(MtfOnnxCall *call, int64_t axis, int rank);

/* Sets a list of axes as bits; false with an error. */
bool mtf_onnx_axes(MtfOnnxCall *call, const int64_t *axes, int n, int rank, unsigned *mask);

#endif
