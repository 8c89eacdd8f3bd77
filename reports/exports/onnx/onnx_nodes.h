// SPDX-License-Identifier: GPL-3.0-or-later
/* Writes ONNX nodes for one operation after another. Names of values that functions return are kept
 * until the end of the export, so that what writes an operation reads like its formula:
 *
 *     const char *gate = mtf_node_one(e, "Sigmoid", x);
 *     mtf_node_last_two(e, "Mul", x, gate);                  makes the operation's own result
 *
 * Values between are called NAME/s1, NAME/s2, …, constants NAME/c3. */
#ifndef MTF_ONNX_NODES_H
#define MTF_ONNX_NODES_H

#include "layouts/onnx/onnx_tensor.h"
#include "layouts/plan_file/pipeline_plan.h"

/* Fields of GraphProto. */
enum { MTF_ONNX_NODE = 1, MTF_ONNX_INITIALIZER = 5 };

typedef struct {
    const MtfPlan *plan;             /* or NULL, and: */
    const MtfPipelinePlan *pipeline; /* that `graph` is the whole graph of */
    const MtfGraph *graph;
    GByteArray *message; /* GraphProto */
    const bool *needed;  /* tensors */
    int operation;       /* being written */
    int steps;           /* values made for it */
    GStringChunk *names; /* of values */
    GError **error;
} MtfOnnxNodes;

/* A row of a writer's table; the last has no function, which fails (bad input) where the operation
 * cannot be said. */
typedef struct {
    int kind; /* MtfOperationKind */
    bool (*write)(MtfOnnxNodes *e);
} MtfOnnxWriter;

extern const MtfOnnxWriter mtf_onnx_elementwise[], mtf_onnx_sums[], mtf_onnx_places[],
    mtf_onnx_attention[], mtf_onnx_windows[], mtf_onnx_routing[], mtf_onnx_loops[];

/* The operation being written, its inputs and its first result. */
const MtfOperation *mtf_node_operation(const MtfOnnxNodes *e);
const MtfTensor *mtf_node_input(const MtfOnnxNodes *e, int k);
const MtfTensor *mtf_node_result(const MtfOnnxNodes *e);
int64_t mtf_node_size(const MtfOnnxNodes *e, int dim);

/* MtfOnnxType of a dtype; bfloat16 is computed in float. And of the result. */
int mtf_node_type_of(MtfDtype dtype);
int mtf_node_result_type(const MtfOnnxNodes *e);

/* Appends `inner` as a field, and frees it. */
void mtf_node_put_inner(GByteArray *message, uint32_t field, GByteArray *inner);

/* A TensorProto of numbers with `rank` dimensions; and the same as a constant of the operation: of any
 * shape, a list, a single number. */
GByteArray *mtf_node_numbers(int type, const double *values, int rank, const int64_t *sizes);
const char *mtf_node_array(MtfOnnxNodes *e, int type, const double *values, int rank,
                           const int64_t *sizes);
const char *mtf_node_list(MtfOnnxNodes *e, const double *values, int n); /* int64 */
const char *mtf_node_number(MtfOnnxNodes *e, int type, double value);

/* A node in the making: inputs of the name NULL are left out. */
GByteArray *mtf_node_begin(const char *op, int n, const char *const *inputs, const char *output);
void mtf_node_put_int(GByteArray *node, const char *name, int64_t value);
void mtf_node_put_ints(GByteArray *node, const char *name, const int64_t *values, int n);
void mtf_node_put_real(GByteArray *node, const char *name, double value);
void mtf_node_put_text(GByteArray *node, const char *name, const char *text);

/* The name of a value between; a node that makes one, or with mtf_node_finish the result. */
const char *mtf_node_step(MtfOnnxNodes *e);
void mtf_node_put(MtfOnnxNodes *e, GByteArray *node);
bool mtf_node_finish(MtfOnnxNodes *e, GByteArray *node);

/* Nodes without attributes: values between, and the result (returns true). */
const char *mtf_node_one(MtfOnnxNodes *e, const char *op, const char *x);
const char *mtf_node_two(MtfOnnxNodes *e, const char *op, const char *a, const char *b);
const char *mtf_node_three(MtfOnnxNodes *e, const char *op, const char *a, const char *b,
                           const char *c);
bool mtf_node_last_one(MtfOnnxNodes *e, const char *op, const char *x);
bool mtf_node_last_two(MtfOnnxNodes *e, const char *op, const char *a, const char *b);
bool mtf_node_last_three(MtfOnnxNodes *e, const char *op, const char *a, const char *b,
                         const char *c);

/* A value in another type (MtfOnnxType). */
const char *mtf_node_cast(MtfOnnxNodes *e, const char *x, int type);

/* A value of shape `own` with its dimensions in the order of `shape`, and axes of one element for those
 * that it lacks. */
const char *mtf_node_aligned(MtfOnnxNodes *e, const char *x, const MtfShape *own,
                             const MtfShape *shape);
/* … of input k. */
const char *mtf_node_aligned_input(MtfOnnxNodes *e, int k, const MtfShape *shape);

/* A value of the dimensions `dims` with those of each group merged into one axis, in the groups' order;
 * and the way back: the result, of the shape `shape`, from such axes. */
const char *mtf_node_merged(MtfOnnxNodes *e, const char *x, const MtfShape *own,
                            const MtfShape *groups, int n_groups);
bool mtf_node_last_unmerged(MtfOnnxNodes *e, const char *x, const MtfShape *groups, int n_groups);

/* 0, 1, 2, … of a dimension (a value with that one axis) in a type. */
const char *mtf_node_range(MtfOnnxNodes *e, int dim, int type);

/* Sums of products over dimensions that `result` lacks, as the node of a value between, or (`last`) of
 * the operation's result, when it returns the result's name. */
const char *mtf_node_einsum(MtfOnnxNodes *e, int n, const char *const *names,
                            const MtfShape *shapes, const MtfShape *result, bool last);

#endif
