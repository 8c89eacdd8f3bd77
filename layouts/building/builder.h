// SPDX-License-Identifier: GPL-3.0-or-later
/* Appends operations to a graph, one line each, and remembers the first error: after it every call
 * does nothing and returns -1, so that code which builds a graph reads like the formulas it builds
 * and looks for an error once, at its end.
 *
 *     MtfBuilder b = mtf_builder(graph, MTF_PHASE_BACKWARD);
 *     b.attributes.factor = 0.5;                         of the next operation only
 *     int half = MTF_BUILD(&b, MTF_OP_SCALE, "half", NULL, x);
 *     …
 *     return mtf_builder_end(&b, error);
 */
#ifndef MTF_BUILDER_H
#define MTF_BUILDER_H

#include "layouts/graph/expression.h"
#include "layouts/graph/operation_table.h"

typedef struct {
    MtfGraph *graph; /* borrowed */
    MtfPhase phase;
    int stage, loop;  /* of what is built; 0: none */
    MtfLayer layer;   /* … */
    MtfOrigin origin; /* …, with `of`, which is borrowed */
    const char *of;
    MtfAttributes attributes; /* of the next operation; then MTF_NO_ATTRIBUTES again */
    bool has_dtype;           /* of the next operation, with `dtype`; then false again */
    MtfDtype dtype;
    GError *error; /* the first one, owned until mtf_builder_end */
} MtfBuilder;

/* Appends operations of a phase to the graph, which must outlive it. */
MtfBuilder mtf_builder(MtfGraph *graph, MtfPhase phase);

/* `name`, or NAME_2, NAME_3, … where what an operation of this kind results in would have a name that is taken.
 * Free with g_free. */
char *mtf_build_free_name(const MtfGraph *graph, int kind, const char *name);

/* Appends an operation and returns its first output. `shape` NULL: what the row infers. A name that is taken,
 * by the graph's author or another formula, becomes a free one. */
int mtf_build(MtfBuilder *builder, int kind, const char *name, const MtfShape *shape, int n_inputs,
              const int *inputs);

#define MTF_BUILD(builder, kind, name, shape, ...)                                     \
    mtf_build(builder, kind, name, shape, (int)G_N_ELEMENTS(((int[]){ __VA_ARGS__ })), \
              (int[]){ __VA_ARGS__ })

/* A scalar constant of the given float type. */
int mtf_build_constant(MtfBuilder *builder, const char *name, MtfDtype dtype, double value);

/* The same elements as `tensor` in `shape`, which may lack some of its dimensions (they are
 * summed), have further ones (repeated) or another order; the last operation is called `name`.
 * Returns `tensor` itself when nothing is to do. */
int mtf_build_fit(MtfBuilder *builder, const char *name, int tensor, const MtfShape *shape);

/* An expression over `inputs`, all of one type: an operation a term, called NAME/1, NAME/2 and so on, the
 * last one `name` and of `shape`, which has the dimensions of all inputs. Beside a number a row of one
 * input stands for a product, quotient or power. */
int mtf_build_expression(MtfBuilder *builder, const char *name, const MtfShape *shape,
                         const MtfExpression *expression, const int *inputs);

/* A variable that optimizers or models need. */
int mtf_build_variable(MtfBuilder *builder, const char *name, const MtfShape *shape, MtfDtype dtype,
                       MtfInit init, MtfMemoryKind memory);

/* A variable as another graph has it. */
int mtf_build_variable_like(MtfBuilder *builder, const MtfTensor *variable);

/* Gives the operation that makes `tensor`, its first output, another name, or a free one like it. */
void mtf_build_rename(MtfBuilder *builder, int tensor, const char *name);

/* Hands the first error, if there was one, to `error`; true when there was none. */
bool mtf_builder_end(MtfBuilder *builder, GError **error);

/* Gives an empty graph the dimensions, repeats, loops and optimizer of another. */
void mtf_build_frame(MtfGraph *to, const MtfGraph *from);

/* `shape` without one dimension (which it may lack). */
MtfShape mtf_shape_without(const MtfShape *shape, int dim);

#endif
