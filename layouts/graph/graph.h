// SPDX-License-Identifier: GPL-3.0-or-later
/* The graph of a computation over named dimensions, in memory. The user's forward graph and the
 * training graph derived from it are both of this type; the second has more operations, marked
 * with the phase they belong to, and `updates` that say which tensor becomes a variable's next
 * value.
 *
 *     dimensions   batch=64  length=128  d_model=512 …          ids 0 1 2 …
 *     tensors      x f32[batch, length, d_model] …              inputs, variables, results
 *     operations   h = einsum(x, w1) …                          in an order that can be executed
 *
 * Everything refers to everything else by index. Tensors and operations are only ever appended, and
 * an operation's inputs are older than the operation, so the order of `operations` is always an
 * execution order. The graph owns all its strings. */
#ifndef MTF_GRAPH_H
#define MTF_GRAPH_H

#include "layouts/graph/dtype.h"
#include "layouts/graph/shape.h"

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define MTF_MAX_OUTPUTS 5

/* Pipeline stages that a graph may be cut into. */
#define MTF_MAX_STAGES 1024

typedef struct {
    char *name;
    int64_t size;     /* >= 1 */
    int64_t unpadded; /* below `size`: the elements from there on are padding, which variables hold
                         zeros in and files do not have (analyzer/rewriting/padding.h); 0: none are */
    int64_t
        step_size; /* elements of a whole step, which means divide by; the graph has those of one
                          micro-batch (microbatches.h) in `size`; 0: there are none */
    bool even;     /* layouts split it into equal parts alone; like `step_size` it is not
                          written to files */
} MtfDimension;

typedef enum { MTF_SOURCE_INPUT, MTF_SOURCE_VARIABLE, MTF_SOURCE_OPERATION } MtfSource;

/* How data reaches an input. */
typedef enum {
    MTF_FEED_TOKENS,          /* int32 ids of a text window */
    MTF_FEED_NEXT_TOKENS,     /* the same window one position later */
    MTF_FEED_MASK,            /* 1 where the position counts, else 0 */
    MTF_FEED_FEATURES,        /* real features of an example */
    MTF_FEED_TARGETS,         /* real targets of an example */
    MTF_FEED_LABELS,          /* int32 class of an example */
    MTF_FEED_SOURCE,          /* int32 ids of the text that another is made from */
    MTF_FEED_SEGMENTS,        /* int32: which piece of the row a position is of, from 1; 0: of
                                 none, the row is filled up */
    MTF_FEED_PLACES,          /* int32: positions counted from their piece's first */
    MTF_FEED_SOURCE_SEGMENTS, /* the same of the source */
    MTF_FEED_SOURCE_PLACES,
    MTF_FEED_CATEGORIES, /* int32: a column of what an example belongs to, the columns in the
                            order of such inputs */
    MTF_FEED_POSITION, /* int32, of graphs that generate: where an example's tokens begin in its text */
    MTF_FEED_LAST,     /* … and which of them is the last, from 0 */
    MTF_FEEDS,         /* those that a user may name */
    MTF_FEED_TRANSFER = MTF_FEEDS, /* sent by another stage, once a micro-batch (stage_split.h) */
    MTF_FEED_TRANSFER_ONCE,        /* sent by another stage, once a step */
} MtfFeed;

/* How a variable begins: every element is a function of (seed, tensor name, element index). */
typedef enum {
    MTF_INIT_CONSTANT, /* value */
    MTF_INIT_NORMAL,   /* mean 0, standard deviation `value` */
    MTF_INIT_UNIFORM,  /* uniform in [-value, value) */
} MtfInitKind;

typedef struct {
    MtfInitKind kind;
    double value;
} MtfInit;

/* What a tensor's memory is counted as. */
typedef enum {
    MTF_MEMORY_VARIABLE,
    MTF_MEMORY_GRADIENT,
    MTF_MEMORY_OPTIMIZER,
    MTF_MEMORY_ACTIVATION,
    MTF_MEMORY_INPUT,
    MTF_MEMORY_COMMUNICATION, /* of buffers only: copies for and scratch of collectives */
    MTF_MEMORY_WORKSPACE,     /* of buffers only: scratch of kernels */
    MTF_MEMORY_CACHE,         /* of variables: keys and values of the tokens so far */
    MTF_MEMORY_OUTPUT,        /* of variables: what a graph without a loss is run for */
    MTF_MEMORY_HOST,          /* of buffers only: in the host's memory, not the device's */
    MTF_MEMORY_KINDS,
} MtfMemoryKind;

/* A layer: an iteration of a repeated block. What follows from a layer's operations and variables in the
 * graphs derived from theirs, as gradients, clones and updates, is of their layer. */
typedef struct {
    int block;     /* the repeat, from 1; 0: outside of layers */
    int iteration; /* from 0 */
} MtfLayer;

/* What a low-rank adapter adds to a variable's products: of its own dimensions W = W + scale up down,
 * where `down` and `up` are variables (Hu et al., "LoRA", 2021, equation 3: B and A). */
typedef struct {
    char *down, *up; /* names; NULL: the variable has no adapter */
    double scale;
} MtfAdapter;

typedef struct {
    char *name;
    MtfShape shape;
    MtfDtype dtype;
    MtfSource source;
    MtfMemoryKind memory;
    MtfFeed feed;   /* of inputs */
    MtfInit init;   /* of variables */
    bool frozen;    /* a variable that is not trained */
    bool undecayed; /* a variable that weight decay leaves alone */
    bool is_sent;   /* another pipeline stage reads it (stage_split.h) */
    bool is_anew;   /* an input that every iteration of the loop that reads it finds changed: of a
                       graph that holds one operation of another */
    char *stored;   /* of variables: where published files keep it (layouts/FORMATS.md); or NULL */
    MtfAdapter adapter; /* of variables */
    char *scale;        /* of int8 variables: the name of the float32 variable that says what their
                           unit is, one for each element of the dimensions that it has; or NULL */
    char *mean_of;      /* of a running mean of a variable: the name of that; or NULL */
    int producer;       /* the operation it is a result of, or -1 */
    int output;         /* of results: its place, from 1, among the graph's outputs; 0: none */
    MtfLayer layer;     /* of results: their operation's */
} MtfTensor;

/* Gives a variable what another one says of itself beside type, shape and initial value. */
void mtf_variable_take_facts(MtfTensor *to, const MtfTensor *from);

/* The part of a training step an operation belongs to. */
typedef enum {
    MTF_PHASE_FORWARD,
    MTF_PHASE_BACKWARD,
    MTF_PHASE_CLIP,   /* gradient clipping */
    MTF_PHASE_UPDATE, /* optimizer */
    MTF_PHASES,
} MtfPhase;

/* How one dimension of an operation's larger side meets one of its smaller side (window.h). Numbers
 * are counts of elements. */
typedef struct {
    int from, to; /* dimensions: what is read, and what it is called in the result */
    int kernel;   /* the dimension of the filter, or -1: the window has `size` elements */
    int size;
    int stride, dilation;
    int before, after; /* elements of padding */
    bool
        spreads; /* from the smaller side to the larger, whatever its row says (mtf_window_sample) */
} MtfWindow;

#define MTF_MAX_WINDOWS 3

/* Attributes of operations; each row of the operation table names the ones it has. Dimensions are
 * ids (-1 = absent), strings are owned by the graph. */
typedef struct {
    int dimension;  /* softmax, layer_norm: the dimension they run along; attention: features */
    int from, to;   /* rename */
    int query;      /* causal_mask, attention: positions that look */
    int memory;     /* causal_mask, attention: positions that are looked at */
    int parts;      /* attention: in which of equal parts of a longer memory they are; -1: all */
    double turn;    /* attention: each part of queries meets the part of memory `turn` before it;
                       0: all parts */
    double striped; /* attention in a turn: 1 where part p of P has positions p, p + P, … */
    int position;   /* rotary: positions */
    int n_windows;  /* conv, pools */
    MtfWindow windows[MTF_MAX_WINDOWS];
    double counted;        /* average_pool: 1 where padding counts */
    int experts;           /* slots, expert_einsum: what is chosen from */
    int choices;           /* slots: how many choices a token has */
    int capacity;          /* slots: places of an expert; -1: as many as it takes */
    int keys;              /* linear_attention: features of queries and keys */
    double value;          /* constant */
    double condition;      /* loop_next: 1 where the loop is over once this bool is false */
    double per_microbatch; /* reduce_mean, variance, normalize_grad: 1 where the mean is over the
                              examples of one micro-batch, not of the step */
    double factor;         /* scale, attention */
    double causal;         /* attention: 1 where queries look at memory up to their own position */
    double softcap;        /* attention: scores s become softcap tanh(s / softcap); 0: they stay */
    double window;  /* attention, causal: positions that a query looks at, its own the last; 0:
                       all */
    double epsilon; /* layer_norm, adam, adafactor */
    double smoothing, z_loss, ignore;     /* softmax_cross_entropy */
    double start, stride, dilation, wrap; /* resample, slice */
    double before, shift, index;          /* pad; roll; select */
    double exclusive, reverse, blocks;    /* cumulative_sum */
    double size, alpha, beta, bias;       /* local_response_norm */
    double mean, deviation;               /* random_normal */
    double exponent, slope;               /* raise; elu, leaky_relu */
    double queue, priority;               /* slots */
    double base, adjacent, rotated, angle, context, stretch, low, high, ramp, gain,
        growth;   /* rotary */
    double rate;  /* dropout: share dropped; learning_rate: peak rate */
    double limit; /* clip_factor */
    double beta1, beta2, weight_decay, decay, threshold; /* optimizers */
    double warmup, total, final;                         /* learning_rate: steps, steps, share */
    double power, cooldown, period, drop;                /* learning_rate */
    char *divisors, *long_divisors; /* rotary: numbers between spaces, one a pair; NULL */
    char *schedule;                 /* learning_rate */
    char *expression, *arguments;   /* expression (expression.h) */
    char *stream; /* dropout: name of its random stream; NULL = the operation's own name */
} MtfAttributes;

/* What an operation was made for, where it is not the user's. */
typedef enum {
    MTF_ORIGIN_WRITTEN,  /* by the user; or a step on the way to something below */
    MTF_ORIGIN_GRADIENT, /* its result is the gradient of the loss by a tensor */
    MTF_ORIGIN_CLONE,    /* it recomputes what another operation computed */
    MTF_ORIGIN_PART,     /* it helps to compute an operation that was written as one */
    MTF_ORIGIN_BACKWARD, /* it helps to pass the gradient of an operation's result on to inputs */
    MTF_ORIGIN_UPDATE,   /* it helps to update a variable */
    MTF_ORIGIN_ACCUMULATION, /* its result is the sum of a tensor over the micro-batches */
    MTF_ORIGINS,
} MtfOrigin;

/* How a framework that calls its library operation by operation, and multiplies in a narrower type
 * (PyTorch with autocast), goes about the operands: bit k of inputs, and of outputs
 * (kernel_work/eager.h). */
typedef struct {
    unsigned skipped[2]; /* it does not pass through memory for this operation */
    unsigned wide[2];    /* it is kept in float32 */
    unsigned cast[2];    /* a kernel of its own narrows or widens it first, or afterwards */
    bool joined;         /* the operation is a part of another one's call */
    bool over_batch;     /* it norms, with statistics that know no examples, or is of such a norm */
} MtfEagerMarks;

/* An operation, one row of the operation table applied. Its first output carries its name, a
 * further output k the name "NAME/SUFFIX" with the row's suffix. */
typedef struct {
    char *name;
    int kind; /* MtfOperationKind, operation_table.h */
    MtfPhase phase;
    int stage; /* pipeline stage that runs it, from 1; 0: the graph is not cut into stages */
    int loop;  /* the loop whose body it belongs to, from 1; 0: none (loops.h) */
    MtfLayer layer;
    MtfOrigin origin;
    char *of; /* the name of that tensor or operation; NULL where there is none */
    int n_inputs;
    int *inputs; /* tensors */
    int n_outputs;
    int outputs[MTF_MAX_OUTPUTS]; /* tensors */
    MtfAttributes attributes;
    unsigned near_inputs, near_outputs; /* bit k: need not pass through memory where one kernel
                                           computes neighbours (kernel_work/fusable.h); not
                                           written to files */
    bool near_redone;    /* likewise: reads what recomputation recomputes, and is not itself */
    bool near_biased;    /* likewise: attention of a model that learns what is added to scores */
    MtfEagerMarks eager; /* likewise not written to files */
} MtfOperation;

/* After each step the variable takes the value of the tensor. Same shape and dtype. */
typedef struct {
    int variable;
    int value;
} MtfUpdate;

/* A repeated block, already unrolled: operations and variables named "NAME/0/…", "NAME/1/…". */
typedef struct {
    char *name;
    int count;
} MtfRepeat;

/* A loop: its body, the operations that name it, runs once for each element of its dimension, in
 * their order or the other way round (loops.h). */
typedef struct {
    char *name;
    int dimension;
    bool reverse;
} MtfLoop;

/* The optimizer a user asks for; the training graph has none left. */
typedef struct {
    char *kind; /* one of mtf_optimizer_kinds (optimizer.h); NULL = none */
    double rate, beta1, beta2, epsilon, weight_decay, momentum;
    char *schedule; /* one of mtf_schedules (optimizer.h) */
    double warmup, total, final;
    double power, cooldown, period, drop; /* polynomial; wsd; step */
    double clip_norm; /* global norm above which gradients are scaled; 0 = no clipping */
    double ema; /* share of a running mean of the weights that a step keeps; 0 = no such mean */
} MtfOptimizer;

typedef struct {
    char *name;
    char *config; /* text of the config.json of a published model with these weights; or NULL */
    GArray *dimensions; /* MtfDimension */
    GArray *tensors;    /* MtfTensor */
    GArray *operations; /* MtfOperation */
    GArray *updates;    /* MtfUpdate; empty in a forward graph */
    GArray *repeats;    /* MtfRepeat */
    GArray *loops;      /* MtfLoop; operations count them from 1 */
    int loss;           /* the scalar to be minimised, or -1 */
    MtfOptimizer optimizer;
    double logit_bytes;        /* that a framework keeps of a logit where the loss is derived
                           (kernel_work/fusable.h); 0: as the program has it; not written to files */
    GHashTable *tensor_ids;    /* name -> index + 1 */
    GHashTable *dimension_ids; /* name -> index + 1 */
} MtfGraph;

/* An empty graph; the caller frees it. */
MtfGraph *mtf_graph_new(const char *name);
/* Likewise, with name, config and logits of another one. */
MtfGraph *mtf_graph_new_like(const MtfGraph *graph);
void mtf_graph_free(MtfGraph *graph);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfGraph, mtf_graph_free)

/* Deep copy. */
MtfGraph *mtf_graph_copy(const MtfGraph *graph);

/* Renumbers the tensors into the order in which a graph file gives them back: inputs, variables,
 * then results operation by operation. What is written to a file and compared with what is read
 * (a plan's digest) must be in this order; a graph that was loaded is. */
void mtf_graph_canonicalize(MtfGraph *graph);

/* Drops a variable that nothing reads or updates. The graph must be arranged before anything else is
 * asked of it. */
void mtf_graph_drop_variable(MtfGraph *graph, int variable);

/* Leaves the operations order[0 … n) in that order, each behind what it reads, and drops the others
 * with their results; then makes the graph canonical. */
void mtf_graph_arrange(MtfGraph *graph, const int *order, int n);

/* Typed access; indexes must be valid. Pointers stay valid until something is appended. */
MtfDimension *mtf_graph_dimension(const MtfGraph *graph, int dim);
MtfTensor *mtf_graph_tensor(const MtfGraph *graph, int tensor);
MtfOperation *mtf_graph_operation(const MtfGraph *graph, int operation);
int64_t mtf_graph_size(const MtfGraph *graph, int dim); /* a dimension's size */

/* A dimension's size without padding. */
int64_t mtf_graph_unpadded_size(const MtfGraph *graph, int dim);

/* Gives a graph without dimensions those of another, with the same ids. */
void mtf_graph_copy_dimensions(MtfGraph *to, const MtfGraph *from);

/* The index of a name, or -1. */
int mtf_graph_find_dimension(const MtfGraph *graph, const char *name);
int mtf_graph_find_tensor(const MtfGraph *graph, const char *name);
int mtf_graph_find_operation(const MtfGraph *graph, const char *name);

/* Names of tensors and operations hold no space and no control character, and are not empty; those of
 * dimensions none of , . ; : either. */
bool mtf_tensor_name_is_legal(const char *name);

/* Appends; each returns the new index, or -1 with a bad-input error (name taken or illegal, size
 * below 1 or above 2^53). */
int mtf_graph_add_dimension(MtfGraph *graph, const char *name, int64_t size, GError **error);
int mtf_graph_add_input(MtfGraph *graph, const char *name, const MtfShape *shape, MtfDtype dtype,
                        MtfFeed feed, GError **error);
int mtf_graph_add_variable(MtfGraph *graph, const char *name, const MtfShape *shape, MtfDtype dtype,
                           MtfInit init, MtfMemoryKind memory, GError **error);

/* What mtf_graph_add_operation is given. Zero-initialise, then fill what applies; attributes start
 * from MTF_NO_ATTRIBUTES. */
typedef struct {
    const char *name;
    int kind; /* MtfOperationKind */
    MtfPhase phase;
    int stage, loop; /* as of MtfOperation */
    MtfLayer layer;
    MtfOrigin origin;
    const char *of; /* copied */
    int n_inputs;
    const int *inputs;     /* tensors */
    const MtfShape *shape; /* of the first output; NULL = what the row infers */
    bool has_dtype;
    MtfDtype dtype; /* of the first output, where the row lets one choose (constant, range, cast) */
    MtfAttributes attributes; /* strings are copied */
} MtfNewOperation;

#define MTF_NO_ATTRIBUTES              \
    ((MtfAttributes){ .dimension = -1, \
                      .from = -1,      \
                      .to = -1,        \
                      .query = -1,     \
                      .memory = -1,    \
                      .parts = -1,     \
                      .position = -1,  \
                      .experts = -1,   \
                      .choices = -1,   \
                      .capacity = -1,  \
                      .keys = -1 })

/* Checks the operation against its row (number of inputs, dtypes, shapes, attributes), appends it
 * and its output tensors, and returns the index of its first output tensor; -1 with a bad-input
 * error that names the operation and dimension. Outputs count as activations. */
int mtf_graph_add_operation(MtfGraph *graph, const MtfNewOperation *operation, GError **error);

/* After each step the variable takes the value of tensor `value`, of its shape and dtype. */
void mtf_graph_add_update(MtfGraph *graph, int variable, int value);

/* Whether the graph is a training graph: it updates what is trained. A forward graph may assign to
 * frozen variables, caches and outputs. */
bool mtf_graph_is_training(const MtfGraph *graph);

/* Says that the block `name` is unrolled `count` times; the name is copied. */
void mtf_graph_add_repeat(MtfGraph *graph, const char *name, int count);

/* Whether both are the same iteration of the same block. */
bool mtf_layer_equal(MtfLayer a, MtfLayer b);

/* The number of the repeat called `name`, from 1; 0: there is none. */
int mtf_graph_find_repeat(const MtfGraph *graph, const char *name);

/* The number of the new loop, from 1. */
int mtf_graph_add_loop(MtfGraph *graph, const char *name, int dimension, bool reverse);

/* Elements of a shape; shapes in a graph never exceed 2^53 elements (checked when added). */
int64_t mtf_graph_elements(const MtfGraph *graph, const MtfShape *shape);
/* … without padding. */
int64_t mtf_graph_unpadded_elements(const MtfGraph *graph, const MtfShape *shape);
int64_t mtf_graph_tensor_bytes(const MtfGraph *graph, int tensor);

/* Elements of all variables that count as MTF_MEMORY_VARIABLE. */
int64_t mtf_graph_parameters(const MtfGraph *graph);

/* Of these the elements of variables that are not trained: running statistics and what is frozen. */
int64_t mtf_graph_statistics(const MtfGraph *graph);

/* "f32[batch:64, length:128]"; free with g_free. */
char *mtf_graph_tensor_format(const MtfGraph *graph, int tensor);

/* For each tensor the operations that read it, in order, each once: the list of tensor t is
 * consumers[starts[t] .. starts[t+1]). Free with mtf_consumers_free. */
typedef struct {
    int *starts;
    int *operations;
} MtfConsumers;
MtfConsumers *mtf_graph_consumers(const MtfGraph *graph);
void mtf_consumers_free(MtfConsumers *consumers);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfConsumers, mtf_consumers_free)

/* The word of graph files for a feed. */
const char *mtf_feed_name(MtfFeed feed);

/* Whether an input with that feed is int32; others are floats. */
bool mtf_feed_is_integer(MtfFeed feed);
const char *mtf_phase_name(MtfPhase phase);

/* "gradient", "clone"; NULL for what is written. */
const char *mtf_origin_name(MtfOrigin origin);

/* Says what the operation that made `tensor` is for; `of` is copied, or NULL. */
void mtf_graph_set_origin(MtfGraph *graph, int tensor, MtfOrigin origin, const char *of);

/* Gives a variable, or the operation that makes `tensor` as its first output, a name that nothing has or that it had;
 * further outputs are called after the operation. */
void mtf_graph_rename(MtfGraph *graph, int tensor, const char *name);

/* The tensors that the graph says it is run for, in their order (int); empty where it does not say. The
 * caller frees it with g_array_unref. */
GArray *mtf_graph_outputs(const MtfGraph *graph);

/* Sets the layer of the operation that makes `tensor`, and so that of all its results. */
void mtf_graph_set_layer(MtfGraph *graph, int tensor, MtfLayer layer);

/* The tensor whose gradient `tensor` is, or -1; and the other way round. */
int mtf_graph_gradient_of(const MtfGraph *graph, int tensor);
int mtf_graph_find_gradient(const MtfGraph *graph, int of);
const char *mtf_memory_name(MtfMemoryKind kind);

#endif
