// SPDX-License-Identifier: GPL-3.0-or-later
/* An ONNX file (ModelProto) in memory: nodes in the order of the file, initial values, inputs and
 * outputs, as the file has them. What they mean is analyzer/onnx's. The file is mapped, and the
 * elements of tensors stay in it.
 *
 *     model.onnx ──map──► ModelProto ──► graph: node* input* output* initializer*
 *                              └──► opset_import                                          */
#ifndef MTF_ONNX_MODEL_H
#define MTF_ONNX_MODEL_H

#include "layouts/onnx/onnx_tensor.h"

/* AttributeProto.AttributeType of those that can be read. */
typedef enum {
    MTF_ONNX_ATTRIBUTE_NONE = 0,
    MTF_ONNX_ATTRIBUTE_FLOAT = 1,
    MTF_ONNX_ATTRIBUTE_INT = 2,
    MTF_ONNX_ATTRIBUTE_STRING = 3,
    MTF_ONNX_ATTRIBUTE_TENSOR = 4,
    MTF_ONNX_ATTRIBUTE_GRAPH = 5,
    MTF_ONNX_ATTRIBUTE_FLOATS = 6,
    MTF_ONNX_ATTRIBUTE_INTS = 7,
} MtfOnnxAttributeType;

typedef struct {
    char *name;
    int type; /* MtfOnnxAttributeType, or another number of ONNX's */
    double f;
    int64_t i;
    char *s;
    MtfOnnxTensor *t;
    GArray *ints;   /* int64_t */
    GArray *floats; /* double */
    GPtrArray *strings;
    struct MtfOnnxModel *g; /* the graph of a branch or a body, or NULL */
} MtfOnnxAttribute;

typedef struct {
    char *name, *op, *domain;    /* "" where the file says nothing */
    GPtrArray *inputs, *outputs; /* names; "" for one that is left out */
    GArray *attributes;          /* MtfOnnxAttribute */
} MtfOnnxNode;

/* A size of an input: a number, a name, or nothing. */
typedef struct {
    int64_t size; /* -1: not given */
    char *name;   /* or NULL */
} MtfOnnxSize;

typedef struct {
    char *name;
    int type; /* MtfOnnxType; 0: no tensor */
    int rank; /* -1: not given */
    MtfOnnxSize dims[MTF_ONNX_MAX_RANK];
} MtfOnnxInput;

/* A file; or a graph inside a node, which has nothing of its own but its name, nodes, values, inputs and
 * outputs. */
typedef struct MtfOnnxModel {
    char *path;
    GMappedFile *map;            /* NULL: the bytes are the caller's */
    const uint8_t *begin;        /* of the file's bytes */
    char *name;                  /* of the graph */
    int64_t opset;               /* of ONNX's own operators */
    GPtrArray *nodes;            /* MtfOnnxNode */
    GPtrArray *initializers;     /* MtfOnnxTensor */
    GPtrArray *inputs, *outputs; /* MtfOnnxInput */
} MtfOnnxModel;

/* Whether a file's name says that it is one. */
bool mtf_onnx_is_path(const char *path);

/* Reads a file, or bytes that must outlive the model (`path` names them in messages). Fails (bad
 * input) on whatever is no ModelProto. */
MtfOnnxModel *mtf_onnx_model_load(const char *path, GError **error);
MtfOnnxModel *mtf_onnx_model_parse(const char *path, const uint8_t *bytes, gsize length,
                                   GError **error);
void mtf_onnx_model_free(MtfOnnxModel *model);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfOnnxModel, mtf_onnx_model_free)

/* A node's attribute of that name, or NULL. */
const MtfOnnxAttribute *mtf_onnx_attribute(const MtfOnnxNode *node, const char *name);

#endif
