// SPDX-License-Identifier: GPL-3.0-or-later
/* How a graph that generates (generation_graph.h) is made of the graph that is trained, operation by
 * operation: what its makers share. */
#ifndef MTF_GENERATION_MAKING_H
#define MTF_GENERATION_MAKING_H

#include "layouts/inference/generation_graph.h"

/* A graph that generates while it is made. */
typedef struct {
    const MtfGraph *from;
    MtfGraph *graph;
    const MtfGenerationSizes *sizes;
    int batch, length, vocabulary; /* dimensions, the same in both graphs */
    int tokens, scores;            /* tensors of `from` */
    int position, last;            /* inputs */
    int place;    /* position + 0, 1, …: [batch, length] int32; -1: not made yet */
    int chosen;   /* 1 at `last`, else 0: [batch, length]; -1 … */
    bool *needed; /* operations of `from` */
    bool *placed; /* tensors of `from`: they count positions */
    bool *hides; /* tensors of `from`: what is masked, of which later places are nothing to a sum */
    int *tensors;   /* of `from` -> of the new graph; -1: not made */
    int *kept;      /* states of loops in `from` -> the variable that keeps them */
    int *selected;  /* of the new graph -> at the last place; -1 */
    MtfLayer layer; /* of what is made */
    int loop;       /* likewise */
    GError *error;  /* the first one */
} MtfMaking;

/* An operation that is added to it. */
typedef struct {
    const char *name, *suffix; /* together the name */
    int kind;
    MtfAttributes attributes;
    const MtfShape *shape;
    bool has_dtype;
    MtfDtype dtype;
} MtfEmission;

/* Appends an operation; returns its first output, -1 after an error or where an input is -1. */
int mtf_making_emit(MtfMaking *m, const MtfEmission *e, int n, const int *inputs);

/* Fails with a sentence about an operation of `from`, unless something has failed before. */
void mtf_making_fail(MtfMaking *m, const MtfOperation *op, const char *what);

/* The shape of a tensor of the new graph. */
const MtfShape *mtf_making_shape(const MtfMaking *m, int tensor);

/* `name`, or one like it that nothing has yet; free with g_free. */
char *mtf_making_free_name(const MtfMaking *m, const char *name);

/* The position of each token at hand in its text: [batch, length]. In generation_graph.c. */
int mtf_making_place(MtfMaking *m);

/* The operation as it is, of what it reads now; the second though it looks along the text. In
 * generation_graph.c. */
int mtf_making_copy(MtfMaking *m, const MtfOperation *op, int *inputs);
int mtf_making_copy_along(MtfMaking *m, const MtfOperation *op, int *inputs);

/* Makers of what attends, and of what it asks for; `inputs` are tensors of the new graph. In
 * generation_attention.c. */
int mtf_make_cache(MtfMaking *m, const MtfOperation *op, int *inputs);
int mtf_make_mask(MtfMaking *m, const MtfOperation *op, int *inputs);
int mtf_make_attention(MtfMaking *m, const MtfOperation *op, int *inputs);
int mtf_make_further_attention(MtfMaking *m, const MtfOperation *op, int *inputs);
int mtf_make_rotary(MtfMaking *m, const MtfOperation *op, int *inputs);

/* Makers of what remembers otherwise. In generation_states.c. */
int mtf_make_convolution(MtfMaking *m, const MtfOperation *op, int *inputs);
int mtf_make_loop_begin(MtfMaking *m, const MtfOperation *op, int *inputs);
int mtf_make_loop_next(MtfMaking *m, const MtfOperation *op, int *inputs);
int mtf_make_linear_attention(MtfMaking *m, const MtfOperation *op, int *inputs);

/* How many places more than the text each dimension has that follows it: that of a convolution's result, which
 * is renamed to the text's, and that of what such a convolution reads; -1: it does not follow. In
 * generation_states.c. */
void mtf_making_places_beyond(const MtfGraph *graph, int length, int64_t *beyond);

#endif
