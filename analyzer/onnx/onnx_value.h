// SPDX-License-Identifier: GPL-3.0-or-later
/* What stands behind a name of an ONNX graph while it is translated: a view of a tensor of the graph
 * of axes, elements that are known, or both.
 *
 *     axis k of the value   sizes[k] elements   axes[k] of the tensor; -1: all along it are equal
 *
 * So transposing, adding and dropping axes of one element, and repeating (Expand) cost nothing: they
 * are other views. Known elements are what shape arithmetic is made of; they become a tensor only
 * where one is asked for: a constant, a range, a triangle of two numbers, a variable that the file
 * holds, or else what the operation that made them makes.
 *
 * The types of ONNX live in fewer of ours: float, float16 and bfloat16 in float32, double in
 * float64, int64, uint32 and uint64 in int64, other integers in int32, bool in bool. */
#ifndef MTF_ONNX_VALUE_H
#define MTF_ONNX_VALUE_H

#include "analyzer/onnx/axis_graph.h"
#include "layouts/onnx/onnx_model.h"

/* The most elements that are worked out while translating. */
#define MTF_ONNX_MOST_KNOWN (INT64_C(1) << 23)

typedef struct MtfOnnxValue {
    int type; /* MtfOnnxType */
    int rank;
    int64_t sizes[MTF_ONNX_MAX_RANK];
    int axes[MTF_ONNX_MAX_RANK];
    int tensor;                  /* of the graph of axes; -1: known alone */
    double *known;               /* all elements, or where `uniform` one; or NULL */
    bool uniform;                /* all elements are known[0] */
    const MtfOnnxTensor *stored; /* where the file has it, or NULL */
    bool trained;                /* an initial value of the graph, not a constant of a node */
    bool shaped;                 /* of ConstantOfShape with a size that the file gives */
    const MtfOnnxNode *node;     /* that made it, and as which output */
    int output;
    struct MtfOnnxValue *cast_of; /* what it was before its type changed, or NULL */
    struct MtfOnnxValue *logits;  /* of a softmax's result: what it was given; else NULL */
    GPtrArray *members; /* of a sequence: MtfOnnxValue; else NULL, and of a sequence nothing
                           else is set */
} MtfOnnxValue;

/* A graph while it is translated. Functions that make values return NULL once there is an error. */
typedef struct {
    const MtfOnnxModel *model;
    MtfAxisGraph *graph;
    GHashTable *values; /* name -> MtfOnnxValue */
    GPtrArray *all;     /* MtfOnnxValue, owned */
    GPtrArray *said;    /* sentences, or NULL */
    const MtfOnnxNode *node;
    int number;         /* of the node */
    int steps;          /* operations made for the node */
    bool plain;         /* nothing is worked out beforehand */
    bool looping;       /* inside of a loop, which holds no others */
    int64_t batch;      /* asked for, where the file fixes another; else 0 */
    int64_t file_batch; /* what the file fixes */
    GHashTable *noted;  /* sentences said once */
    GError *error;
} MtfOnnxTranslation;

/* Notes an error at the node; always returns NULL. */
MtfOnnxValue *mtf_onnx_fail(MtfOnnxTranslation *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Says something once. */
void mtf_onnx_say(MtfOnnxTranslation *t, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* Our type for one of ONNX's. */
MtfDtype mtf_onnx_dtype(int type);

/* The number of elements, 1 of a scalar. */
int64_t mtf_onnx_elements(const MtfOnnxValue *value);

/* A new value without a tensor or elements; it is the translation's. */
MtfOnnxValue *mtf_onnx_value_new(MtfOnnxTranslation *t, int type, int rank, const int64_t *sizes);

/* A copy that may become another view. */
MtfOnnxValue *mtf_onnx_view(MtfOnnxTranslation *t, const MtfOnnxValue *value);

/* `count` known elements; the first is 0 (count 1: a uniform value). NULL with an error
 * where there are too many. */
MtfOnnxValue *mtf_onnx_known_new(MtfOnnxTranslation *t, int type, int rank, const int64_t *sizes);
MtfOnnxValue *mtf_onnx_uniform(MtfOnnxTranslation *t, int type, int rank, const int64_t *sizes,
                               double number);
MtfOnnxValue *mtf_onnx_scalar(MtfOnnxTranslation *t, int type, double number);

/* A tensor of the file. */
MtfOnnxValue *mtf_onnx_stored(MtfOnnxTranslation *t, const MtfOnnxTensor *tensor, bool trained);

/* Whether the elements are known, or can be read from the file, and are then. */
bool mtf_onnx_is_known(MtfOnnxTranslation *t, MtfOnnxValue *value);
double mtf_onnx_known_at(const MtfOnnxValue *value, int64_t i);

/* Whether the value is one known number. */
bool mtf_onnx_is_number(MtfOnnxTranslation *t, MtfOnnxValue *value, double *number);

/* ---- Values as tensors (onnx_material.c) ----------------------------------------------------------- */

/* Gives the value a tensor, if it has none. Returns it, or NULL. */
MtfOnnxValue *mtf_onnx_material(MtfOnnxTranslation *t, MtfOnnxValue *value);

/* The same for a weight: a uniform value of the file's becomes a variable. */
MtfOnnxValue *mtf_onnx_weight(MtfOnnxTranslation *t, MtfOnnxValue *value, bool frozen);

/* The same value with an axis of the tensor wherever it has several elements. */
MtfOnnxValue *mtf_onnx_real(MtfOnnxTranslation *t, MtfOnnxValue *value);

/* The same value whose tensor lies in memory as the value's axes follow one another, and has all. */
MtfOnnxValue *mtf_onnx_ordered(MtfOnnxTranslation *t, MtfOnnxValue *value);

/* The same value without tensor axes of a single element, but for those in `keep` (bit k: axis k). */
MtfOnnxValue *mtf_onnx_drop_units(MtfOnnxTranslation *t, MtfOnnxValue *value, unsigned keep);

/* The same value as another type. */
MtfOnnxValue *mtf_onnx_cast(MtfOnnxTranslation *t, MtfOnnxValue *value, int type);

#endif
