// SPDX-License-Identifier: GPL-3.0-or-later
/* What the model families build their graphs from: a builder of float32 graphs that knows in which
 * part of the model it is, so that names come out like "layer/3/attention/wq". Errors are kept as
 * in builder.h until mtf_parts_end. */
#ifndef MTF_MODEL_PARTS_H
#define MTF_MODEL_PARTS_H

#include "layouts/building/builder.h"

typedef struct {
    MtfBuilder b;
    GPtrArray *prefixes; /* parts entered, outermost first */
} MtfParts;

/* A graph without anything, and its builder; the caller frees it. */
MtfParts *mtf_parts_new(void);

/* Frees the parts; returns the finished graph, or NULL with the first error. */
MtfGraph *mtf_parts_end(MtfParts *parts, GError **error);

/* Names from here to the matching leave start with "PREFIX/". */
void mtf_parts_enter(MtfParts *parts, const char *prefix);
void mtf_parts_leave(MtfParts *parts);

/* The same for iteration `iteration`, from 0, of the repeated block `block`: what is built up to the
 * matching leave, called "BLOCK/ITERATION/…", is of that layer. Layers do not nest. */
void mtf_parts_enter_layer(MtfParts *parts, const char *block, int iteration);
void mtf_parts_leave_layer(MtfParts *parts);

/* The tensor that is called `name` here, and the one that would be if the layer were the first of its
 * block; -1 where there is none. */
int mtf_parts_find(const MtfParts *parts, const char *name);
int mtf_parts_find_in_first_layer(const MtfParts *parts, const char *name);

/* Dimensions are not named by part: they belong to the whole model. */
int mtf_parts_dimension(MtfParts *parts, const char *name, int64_t size);
int mtf_parts_input(MtfParts *parts, const char *name, const MtfShape *shape, MtfDtype dtype,
                    MtfFeed feed);

/* Appends a variable with its initial values and returns its tensor. */
int mtf_parts_variable(MtfParts *parts, const char *name, const MtfShape *shape, MtfInitKind init,
                       double value);

/* An operation on x, and on y unless it is -1. Attributes: parts->b.attributes. */
int mtf_parts_apply(MtfParts *parts, int kind, const char *name, const MtfShape *shape, int x,
                    int y);
int mtf_parts_apply_to(MtfParts *parts, int kind, const char *name, int n_inputs,
                       const int *inputs); /* any number of inputs; its dims follow from them */
int mtf_parts_einsum(MtfParts *parts, const char *name, const MtfShape *shape, int x, int y);
int mtf_parts_add(MtfParts *parts, const char *name, int x, int y);

/* The same where its dims do not follow from them. */
int mtf_parts_apply_shape_to(MtfParts *parts, int kind, const char *name, const MtfShape *shape,
                             int n_inputs, const int *inputs);

/* An operation without inputs. */
int mtf_parts_apply_shaped(MtfParts *parts, int kind, const char *name, const MtfShape *shape);

/* 0, 1, 2, … along a dimension; its type is parts->b.dtype where that is given, else int32. */
int mtf_parts_range(MtfParts *parts, const char *name, int dim);

/* A number. */
int mtf_parts_constant(MtfParts *parts, const char *name, double value);

/* The operation of that name ("relu"), named after itself. */
int mtf_parts_activation(MtfParts *parts, const char *activation, int x);

/* layer_norm along `dim` of inputs x, scale and, unless it is -1, bias; epsilon 1e-6. */
int mtf_parts_norm(MtfParts *parts, const char *name, int dim, const int inputs[3]);

/* x itself when the rate is 0. */
int mtf_parts_dropout(MtfParts *parts, const char *name, double rate, int x);

#endif
