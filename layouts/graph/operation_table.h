// SPDX-License-Identifier: GPL-3.0-or-later
/* The table of operations: one row an operation, and the only place that knows what an operation
 * is. Strategies, prices, lowering and reports read the row and have no cases of their own; two
 * more tables have the same keys (gradients in analyzer/, kernels in runtime/).
 *
 * An operation runs over an *iteration space*: the union of the dimensions of its operands. What
 * splitting one of these dimensions means follows from where it occurs:
 *
 *     in every output                  parallel: the outputs are split too
 *     missing in an output             reduced: that output is partial, by the row's reduction;
 *                                      where the row has none, whole: nobody splits it
 *     named by "dimension", if the     whole: attention's features, without all of which no score
 *     row says so                      is known
 *
 *     y[batch, d_ff] = einsum(x[batch, d_model], w[d_model, d_ff])
 *         batch, d_ff  parallel         d_model  reduced by sum
 *
 * A tensor that is partial by sum may pass through an operation that is *linear* in it: the sum of
 * the results is the result of the sum. An *addend* has the result's placement, whatever it is.
 *
 * Composite rows (softmax, layer_norm, …) are what users write; analyzer/composites/expand.h rewrites them
 * into the primitive rows below before anything is differentiated, priced or executed.
 *
 * Rotary positions. Of the first `rotated` features (0: all), pair i = 0 … rotated/2 - 1 is
 * (x_i, x_i+rotated/2), or with `adjacent` 1 (x_2i, x_2i+1). At position p it becomes
 *
 *     (a cos u - b sin u, b cos u + a sin u),   u = angle p f_i,   f_i = base^(-2i / rotated)
 *
 * With a `context` > 0, frequencies are stretched as Llama 3.1 does it: of a wave of length
 * w = 2 pi / f in units of the context, c = context / w turns,
 *
 *     f / stretch where c < low,  f where c > high,  (1 - s) f / stretch + s f between,
 *     s = (c - low) / (high - low)
 *
 * and with `ramp` 1 as YaRN does, s = (high - i) / (high - low) within 0 and 1. Both parts of a pair are
 * multiplied by `gain`.
 *
 * Optimizers. t = 1, 2, … counts steps; g is the gradient times `clip`, where that is given.
 *
 *     sgd       w' = w - rate (g + weight_decay w)
 *     momentum  v' = beta1 v + g + weight_decay w              w' = w - rate v'
 *     adam      m' = beta1 m + (1 - beta1) g                   v' = beta2 v + (1 - beta2) g^2
 *               w' = w - rate (m^ / (sqrt(v^) + epsilon) + weight_decay w),
 *               m^ = m' / (1 - beta1^t), v^ = v' / (1 - beta2^t)
 *
 *     lion      u = sign(beta1 m + (1 - beta1) g)              m' = beta2 m + (1 - beta2) g
 *               w' = w - rate (u + weight_decay w)
 *
 *     lamb      u = m^ / (sqrt(v^) + epsilon) + weight_decay w
 *               w' = w - rate (|w| / |u|) u, the ratio 1 where either norm is 0; norms of a whole variable
 *
 * Routing. Tokens choose experts, and each choice takes a place, its *slot*. With a capacity C, slot
 * e C + c is place c of expert e, and choices that find none are -1, dropped; without one, slots are
 * the choices sorted by expert. `queue` says who is served first: 0 token by token, 1 all first
 * choices before all second ones; `priority` 0 the earlier token, 1 the choice with the larger gate
 * (places are taken in the order of tokens by those that get one), 2 the token whose first gate is
 * larger. What has slots is moved by index, weighted by gates where there are any:
 *
 *     x[g, t, m] --dispatch--> [g, e, c, m] --experts--> y[g, e, c, m] --combine--> [g, t, m]
 *
 * Tokens of one group compete with one another alone, so a group is never split where slots are
 * given; that is stated in the graph, and no layout changes it.
 *
 * Linear attention. Each head keeps a matrix S [keys, values], 0 before the first place. At each place
 * a share of it is kept, and what it says of a key is corrected by the share beta (the gated delta rule; without
 * beta the value is added to it as it is):
 *
 *     S' = e^log S        S = S' + beta k (v - k S')    or    S' + k v        o = q S
 *
 * Logarithms are at most 0. In a selective scan (Mamba) each element of S has its own at each place, step(value)
 * rate(key, value), and there is no beta. Values have a matrix of their own for each of their columns, so they may be split;
 * places and keys may not. Kernels work in chunks of places (layouts/kernel_work/linear_work.h).
 *
 * Learning rates. With warmup > 0 every schedule but `constant` starts with a ramp of that many
 * steps; ramp(t) = min(1, t / warmup), and 1 without warmup.
 *
 *     constant       rate
 *     linear_warmup  rate ramp(t)
 *     inverse_sqrt   rate min(ramp(t), sqrt(max(warmup, 1) / t))
 *     cosine         rate ramp(t) (final + (1 - final) (1 + cos(pi p)) / 2),
 *                    p = (t - warmup) / (total - warmup) within 0 … 1, and 1 where total <= warmup
 *     linear         rate ramp(t) (final + (1 - final) (1 - p))
 *     polynomial     rate ramp(t) (final + (1 - final) (1 - p)^power)
 *     wsd            rate ramp(t) (final + (1 - final) min(1, max(0, total - t) / cooldown)): warm-up,
 *                    stable, and decay over the last `cooldown` steps
 *     step           rate ramp(t) drop^floor(max(0, t - warmup) / period)
 */
#ifndef MTF_OPERATION_TABLE_H
#define MTF_OPERATION_TABLE_H

#include "layouts/graph/iteration.h"

/* What a score that is not looked at is below, or equals: masks add -1e30. */
#define MTF_MASKED_SCORE -1e29

typedef enum {
    /* products and sums */
    MTF_OP_EINSUM, /* sum over the dimensions the output lacks of the product of the inputs */
    MTF_OP_ADD,    /* two or more inputs */
    MTF_OP_SUBTRACT,
    MTF_OP_MULTIPLY,
    MTF_OP_DIVIDE,
    MTF_OP_MAXIMUM,
    MTF_OP_MINIMUM,
    MTF_OP_EQUAL, /* 1 where equal, else 0 */
    MTF_OP_LESS, /* comparisons give 1 where they hold, else 0, in the type of their inputs or bool */
    MTF_OP_LESS_EQUAL,
    MTF_OP_WHERE,  /* (condition, a, b) -> a where the condition is not 0, else b */
    MTF_OP_MODULO, /* a - b floor(a / b) */
    MTF_OP_POWER,  /* a^b */
    MTF_OP_SCALE,  /* factor * x */
    /* unary functions */
    MTF_OP_RELU,
    MTF_OP_GELU, /* tanh form */
    MTF_OP_SILU,
    MTF_OP_TANH,
    MTF_OP_SIGMOID,
    MTF_OP_EXP,
    MTF_OP_LOG,
    MTF_OP_SQRT,
    MTF_OP_RSQRT,
    MTF_OP_SQUARE,
    MTF_OP_NEGATE,
    MTF_OP_ABS,
    MTF_OP_SIGN,
    MTF_OP_LOGICAL_NOT, /* 1 where x is 0, else 0 */
    MTF_OP_RAISE,       /* x^exponent */
    MTF_OP_CLIP,        /* x within low … high */
    MTF_OP_LEAKY_RELU,  /* x where x > 0, else slope x */
    MTF_OP_ELU,         /* x where x > 0, else slope (e^x - 1) */
    MTF_OP_GELU_EXACT,  /* x Phi(x) */
    MTF_OP_SOFTPLUS,    /* log(1 + e^x) */
    MTF_OP_SIN,
    MTF_OP_COS,
    MTF_OP_ERF,
    MTF_OP_FLOOR,
    /* reductions over the dimensions the output lacks */
    MTF_OP_REDUCE_SUM,
    MTF_OP_REDUCE_MEAN,
    MTF_OP_REDUCE_MAX,
    /* the same elements under another name, order, type or size */
    MTF_OP_RENAME,
    MTF_OP_TRANSPOSE,
    MTF_OP_RESHAPE,  /* the same elements in the same order, dimensions merged or divided */
    MTF_OP_RESAMPLE, /* along `to` element t of the result is x[(start + stride t) / dilation] along
                        `from` where that is a whole number and there is such an element, modulo the
                        size with `wrap`; else 0 */
    MTF_OP_CONCAT,   /* inputs one behind the other along the dimension that they lack */
    MTF_OP_LOOP_BEGIN, /* x, as a loop's carried value begins */
    MTF_OP_LOOP_NEXT,  /* (carried value, next) -> next, which the next iteration carries */
    MTF_OP_LOOP_SLICE, /* the element of this iteration along `dimension` */
    MTF_OP_LOOP_STACK, /* x of every iteration along `dimension` */
    MTF_OP_BROADCAST,
    MTF_OP_CAST,
    MTF_OP_STOP_GRADIENT,
    MTF_OP_TO_HOST,   /* the same elements in the host's memory, where from_host alone reads them */
    MTF_OP_FROM_HOST, /* … and back in the device's */
    MTF_OP_IN_TRAIN_PHASE, /* (x, y) -> x in training steps, y where nothing is learned */
    /* from nothing */
    MTF_OP_CONSTANT,
    MTF_OP_RANGE, /* 0, 1, 2, … along its one dimension */
    /* for networks */
    MTF_OP_RANDOM_UNIFORM,   /* within low … high, drawn anew each step */
    MTF_OP_RANDOM_NORMAL,    /* of that mean and deviation */
    MTF_OP_CONV,             /* (x, filter) -> sums of their products over windows (window.h) */
    MTF_OP_CONV_TRANSPOSE,   /* (x, filter) -> every element of x spread over its window */
    MTF_OP_CONV_FILTER_GRAD, /* (x, dy) -> the gradient of conv's filter */
    MTF_OP_MAX_POOL,         /* the largest of each window; and "NAME/index", its place there */
    MTF_OP_AVERAGE_POOL,     /* the mean of each window, of its elements or with padding */
    MTF_OP_CUMULATIVE_SUM,   /* of the elements up to this one along `dimension`; `exclusive`: of
                              those before it; `reverse`: from the end; `blocks` > 1: in that number of parts */
    MTF_OP_SORT, /* the same elements from the smallest to the largest along `dimension`, with `reverse`
                    the other way, equal ones as they stood, what is no number as the largest; and
                    "NAME/index": where they stand in x */
    MTF_OP_TOP_K,       /* the largest along `from`, largest first, along `to`; and "NAME/index" */
    MTF_OP_DROPOUT,     /* x / (1 - rate) or 0; also its own gradient, on the same stream */
    MTF_OP_CAUSAL_MASK, /* x where memory <= query, else -1e30 */
    MTF_OP_ATTENTION, /* (q, k, v[, bias[, mask]]) -> softmax over memory of factor q k + bias + mask, times
                           v; and "NAME/lse", the logarithm of the softmax's sum; never the scores themselves */
    MTF_OP_ATTENTION_FURTHER, /* (q, k, v, o, lse[, bias[, mask]]) -> attention to k and v beside the memory that
                                 o and lse are the results of; and "NAME/lse" */
    MTF_OP_LINEAR_ATTENTION, /* (v, q, k, log[, beta]) -> o, from the states of all places before */
    MTF_OP_SELECTIVE_SCAN,   /* (v, q, k, step, rate) -> o */
    MTF_OP_ROTARY,           /* pairs of features turned by angles that grow with the position */
    MTF_OP_EMBEDDING, /* (table, ids) -> the row of each id; the vocabulary is what ids lack */
    MTF_OP_SLOTS,     /* (choice[, gate]) -> the place of each choice, or -1 */
    MTF_OP_SLOT_IDS,  /* (choice, slot) -> what was chosen by whom is in each place; -1: nobody */
    MTF_OP_DISPATCH,  /* (x, slot[, gate]) -> gate x in the place of each choice; elsewhere 0 */
    MTF_OP_COMBINE,   /* (y, slot[, gate]) -> the sum over choices of gate y at their places */
    MTF_OP_EXPERT_EINSUM, /* (x, w, expert) -> the product of each row of x and its expert's w */
    /* composites, rewritten before use */
    MTF_OP_SOFTMAX,
    MTF_OP_LAYER_NORM, /* (x, scale[, bias]) */
    MTF_OP_SLICE,      /* x[start + stride t] along `from`, called `to` */
    MTF_OP_PAD,        /* `before` times `value` before x along `from`, and to the end of `to` */
    MTF_OP_REVERSE,    /* along `dimension` */
    MTF_OP_ROLL, /* element i moves to i + shift along `dimension`, those at the end begin again */
    MTF_OP_SELECT,      /* element `index` along `dimension` */
    MTF_OP_STACK,       /* inputs as elements 0, 1, … of the dimension that they lack */
    MTF_OP_GATHER,      /* (x, ids) -> x at the ids along the dimension that the output lacks */
    MTF_OP_SCATTER_ADD, /* (ids, x) -> the sum of those x whose id is this one */
    MTF_OP_REDUCE_PROD,
    MTF_OP_NOT_EQUAL,
    MTF_OP_GREATER,
    MTF_OP_GREATER_EQUAL,
    MTF_OP_LOGICAL_AND, /* of bools, or numbers that are 0 or 1, as comparisons give them */
    MTF_OP_LOGICAL_OR,
    MTF_OP_LOGICAL_XOR,
    MTF_OP_RECIPROCAL,
    MTF_OP_CEIL,
    MTF_OP_REDUCE_MIN,
    MTF_OP_REDUCE_ANY, /* 1 where some element is not 0, else 0 */
    MTF_OP_REDUCE_ALL,
    MTF_OP_LOG_SUM_EXP,
    MTF_OP_CUMULATIVE_MAX, /* of the elements up to this one along `dimension`; `reverse`: from the end */
    MTF_OP_CUMULATIVE_MIN,
    MTF_OP_CUMULATIVE_LOG_SUM_EXP,
    MTF_OP_LOCAL_RESPONSE_NORM, /* x / (bias + alpha mean of x^2 over `size` around along `dimension`)^beta */
    MTF_OP_ARGMAX,   /* where the largest stands along the one dimension the output lacks */
    MTF_OP_ONE_HOT,  /* (ids) -> 1 where the output's further dimension is at the id, else 0 */
    MTF_OP_RMS_NORM, /* (x, scale) -> x scale / sqrt(mean of x^2 + epsilon) */
    MTF_OP_SOFTMAX_CROSS_ENTROPY, /* (logits, labels[, mask]) -> loss of each position: with smoothing
                                     s (1 - s) times that of the label and s times the mean of all
                                     labels'; and z_loss (log of the sum of e^logit)^2; with `ignore`
                                     labels below 0 count nothing */
    /* pieces of the composites; `max`, `sum` are statistics without the softmax's dimension */
    MTF_OP_SUM_EXP,       /* (x, max) -> sum of exp(x - max) */
    MTF_OP_SOFTMAX_APPLY, /* (x, max, sum) -> exp(x - max) / sum */
    MTF_OP_VARIANCE,      /* (x, mean) -> mean of (x - mean)^2 */
    MTF_OP_NORMALIZE,     /* (x, mean, variance, scale[, bias]) -> (x - mean) r scale + bias, r =
                             1/sqrt(variance + epsilon) */
    MTF_OP_LABEL_LOGIT,   /* (logits, labels) -> the logit of the label */
    MTF_OP_CROSS_ENTROPY, /* (max, sum, logit[, mask]) -> (max + log sum - logit) mask */
    /* gradients */
    MTF_OP_RELU_GRAD,       /* (y, dy) -> dy where y > 0, else 0 */
    MTF_OP_GELU_GRAD,       /* (x, dy) */
    MTF_OP_GELU_EXACT_GRAD, /* (x, dy) */
    MTF_OP_SILU_GRAD,       /* (x, dy) */
    MTF_OP_TANH_GRAD,       /* (y, dy) -> (1 - y^2) dy */
    MTF_OP_SIGMOID_GRAD,    /* (y, dy) -> y (1 - y) dy */
    MTF_OP_SORT_GRAD,       /* (index, dy) -> each element of dy at its index along `dimension` */
    MTF_OP_CAUSAL_ZERO,     /* x where memory <= query, else 0 */
    MTF_OP_ATTENTION_GRAD,  /* (q, k, v, o, lse, do[, bias]) -> dq; and "NAME/k", "NAME/v" */
    MTF_OP_ATTENTION_BIAS_GRAD,   /* … with a bias that learns: and "NAME/bias", its gradient */
    MTF_OP_LINEAR_ATTENTION_GRAD, /* (v, q, k, log, do) -> dv; and "NAME/q", "NAME/k", "NAME/log" */
    MTF_OP_DELTA_RULE_GRAD,       /* (v, q, k, log, do, beta) -> likewise; and "NAME/beta" */
    MTF_OP_SELECTIVE_SCAN_GRAD, /* (v, q, k, step, do, rate) -> dv; and "NAME/q", "NAME/k", "NAME/step",
                                   "NAME/rate" */
    MTF_OP_EMBEDDING_GRAD,      /* (ids, dy[, more]) -> gradient of the table, plus `more` */
    MTF_OP_COMBINE_GATE_GRAD,  /* (y, dy, slot) -> y at each choice's place times dy, summed */
    MTF_OP_EXPERT_EINSUM_GRAD, /* (x, dy, expert) -> for each expert the sum of x dy of its rows */
    MTF_OP_SOFTMAX_GRAD,       /* (y, dy, dot) -> y (dy - dot), dot = sum of y dy */
    MTF_OP_NORMALIZE_DOT,      /* (dy, x, mean, variance, scale) -> sum of dy scale xhat */
    MTF_OP_NORMALIZE_SCALE_GRAD, /* (dy, x, mean, variance) -> sum of dy xhat, dims of scale */
    MTF_OP_NORMALIZE_GRAD,     /* (dy, x, mean, variance, scale, sum, dot) -> r (dy scale - sum/n -
                                  xhat dot/n), sum = sum of dy scale */
    MTF_OP_CROSS_ENTROPY_GRAD, /* (logits, labels, max, sum, dy[, mask]) -> (softmax - onehot) dy
                                  mask */
    MTF_OP_MAX_POOL_GRAD,      /* (index, dy) -> dx */
    MTF_OP_AVERAGE_POOL_GRAD,  /* (dy) -> dx */
    MTF_OP_ACCUMULATE, /* x of this micro-batch added to those before it, kept until the step ends
                        */
    /* clipping and optimizers; `rate` and `clip` are scalars */
    MTF_OP_CLIP_FACTOR,   /* sum of squares -> min(1, limit / its root) */
    MTF_OP_LEARNING_RATE, /* the schedule's rate at this step */
    MTF_OP_SGD,           /* (w, g, rate[, clip]) -> w' */
    MTF_OP_MOMENTUM,      /* (w, g, v, rate[, clip]) -> w', v' */
    MTF_OP_LION,          /* (w, g, m, rate[, clip]) -> w', m' */
    MTF_OP_ADAM,          /* (w, g, m, v, rate[, clip]) -> w', m', v'; with weight_decay: AdamW */
    MTF_OP_LAMB_DIRECTION, /* (w, g, m, v[, clip]) -> Adam's direction u with weight_decay w, m', v' */
    MTF_OP_LAMB_APPLY,     /* (w, u, sum of w^2, sum of u^2, rate) -> w - rate |w| / |u| u */
    MTF_OP_ADAFACTOR_MOMENT,    /* (old, new) -> b old + (1-b) (new + epsilon), b = 1 - t^-decay */
    MTF_OP_ADAFACTOR_DIRECTION, /* (g, rows, columns, mean of rows) -> g / sqrt(rows columns /
                                   mean), or (g, v) -> g / sqrt(v) */
    MTF_OP_ADAFACTOR_APPLY, /* (w, u, sum of u^2, rate) -> w - rate u / max(1, rms(u)/threshold) */
    /* of graphs that generate: `position` is where the tokens at hand begin in their text */
    MTF_OP_CACHE_UPDATE, /* (x, cache, position) -> the cache with x at `position` and behind it */
    MTF_OP_QUANTIZED_EINSUM, /* (x, w, scale) -> scale times the sum of x w, where w is int8: weights in
                                units of a scale for each dimension that they bring to the result */
    MTF_OP_CACHED_ATTENTION, /* (q, k, v, position) -> attention of the queries from `position` on to
                                what a cache holds up to each; and "NAME/lse" */
    MTF_OP_KEPT_LINEAR_ATTENTION, /* (v, q, k, log, state[, beta]) -> o, going on from a state; and
                                     "NAME/state", the one behind the last place */
    MTF_OP_KEPT_SELECTIVE_SCAN,   /* (v, q, k, step, state, rate) -> likewise */
    MTF_OP_EXPRESSION, /* its inputs, called `arguments`, in the formula `expression` (expression.h) */
    MTF_OPERATIONS,
} MtfOperationKind;

/* What an operation is on a processor, for the roofline. */
typedef enum {
    MTF_CLASS_MATMUL,
    MTF_CLASS_ELEMENTWISE,
    MTF_CLASS_REDUCTION,
    MTF_CLASS_GATHER,
    MTF_CLASS_MOVE, /* copies, slices, fills */
    MTF_CLASSES,
} MtfKernelClass;

typedef enum { MTF_REDUCE_NONE, MTF_REDUCE_SUM, MTF_REDUCE_MAX } MtfReduction;

/* In which inputs an operation is linear. */
typedef enum {
    MTF_LINEAR_NONE,
    MTF_LINEAR_ONE,   /* in input `linear_input` alone, the others held whole */
    MTF_LINEAR_EACH,  /* in each input, the others held whole: products */
    MTF_LINEAR_JOINT, /* in all inputs together: sums */
} MtfLinearity;

#define MTF_OUTPUT (-1) /* output 0, where an operand is asked for */

/* How the first output's dimensions follow from the inputs'. */
typedef enum {
    MTF_DIMS_FIRST, /* those of input 0 */
    MTF_DIMS_UNION, /* all of the inputs', in order of appearance; may be given in another order */
    MTF_DIMS_SUBSET, /* given: some of the inputs' dimensions; or those of input 0 without `dimension` */
    MTF_DIMS_SUPERSET, /* given: all of the inputs' dimensions and perhaps more */
    MTF_DIMS_PERMUTED, /* given: those of input 0 in another order */
    MTF_DIMS_RENAMED,  /* those of input 0 with `from` replaced by `to` */
    MTF_DIMS_REPLACED, /* the same, whatever the sizes */
    MTF_DIMS_RESHAPED, /* given: those of input 0, merged or divided (reshape.h) */
    MTF_DIMS_WITHOUT,  /* those of input 0 without `dimension` */
    MTF_DIMS_WITH,     /* `dimension`, then those of input 0 */
    MTF_DIMS_NEW,      /* given: any */
} MtfDimsRule;

/* What an operation is for a loop (loops.h). */
typedef enum {
    MTF_LOOP_NOTHING,
    MTF_LOOP_BEGINS, /* outside of it */
    MTF_LOOP_HANDS_ON,
    MTF_LOOP_SLICES,
    MTF_LOOP_STACKS,
} MtfLoopPart;

/* What an operation copies between a device's memory and its host's. */
typedef enum { MTF_HOST_NOTHING, MTF_HOST_TO, MTF_HOST_FROM } MtfHostCopy;

/* Of which type the first output is. The float inputs of an operation are of one type, its storage
 * type; those in `wide_inputs`, and some results, are of the type in which sums of the storage type
 * are kept (mtf_dtype_wide): statistics, losses and what optimizers keep stay float32 beside
 * bfloat16. Unless the storage type is bfloat16, both are the same. */
typedef enum {
    MTF_DTYPE_AS_INPUTS, /* the storage type */
    MTF_DTYPE_WIDE,      /* the type of its sums */
    MTF_DTYPE_EITHER,    /* one of the two: "dtype" may be given; else the storage type */
    MTF_DTYPE_GIVEN,     /* any: "dtype" may be given */
    MTF_DTYPE_TRUTH,     /* the storage type, or bool where "dtype" says so */
    MTF_DTYPE_INTEGER,   /* int32 */
} MtfDtypeRule;

typedef enum {
    MTF_ATTRIBUTE_NUMBER,
    MTF_ATTRIBUTE_DIMENSION,
    MTF_ATTRIBUTE_STRING,
    MTF_ATTRIBUTE_WINDOWS, /* a list (window.h) */
} MtfAttributeType;

typedef struct {
    const char *name; /* JSON key */
    MtfAttributeType type;
    size_t offset; /* in MtfAttributes */
    bool required;
    double standard; /* value of a number that is left out */
} MtfAttributeSpec;

#define MTF_MAX_ATTRIBUTES 16

/* Which products an operation computes, for prices (layouts/kernel_work/product_work.h). */
typedef enum {
    MTF_PRODUCTS_NONE,
    MTF_PRODUCTS_EINSUM, /* of its inputs, pair by pair */
    MTF_PRODUCTS_CONV,   /* of x, filter and y, two of which it reads */
    MTF_PRODUCTS_ATTENTION,
    MTF_PRODUCTS_ATTENTION_GRAD,
    MTF_PRODUCTS_LINEAR_ATTENTION, /* of the places of chunks, and of chunks and states */
    MTF_PRODUCTS_LINEAR_ATTENTION_GRAD,
    MTF_PRODUCTS_EXPERTS,   /* of each expert's rows and its matrix */
    MTF_PRODUCTS_QUANTIZED, /* of x and a matrix of int8 */
} MtfProductsKind;

/* What an operation's kernel keeps while it runs (layouts/kernel_work/kernel_scratch.h). */
typedef enum {
    MTF_SCRATCH_SUMS,      /* sums in the type of sums, where its result is of a narrower one */
    MTF_SCRATCH_WIDE_SUMS, /* likewise, and few float32 sums of many rows as float64 */
    MTF_SCRATCH_TABLE,     /* sums of a narrower result, in strips of a table */
    MTF_SCRATCH_LABELS,    /* the value at each label, where its result is of a narrower type */
    MTF_SCRATCH_EINSUM,
    MTF_SCRATCH_ATTENTION,
    MTF_SCRATCH_ATTENTION_GRAD,
    MTF_SCRATCH_LINEAR_ATTENTION,
    MTF_SCRATCH_SORT,    /* a row's elements with their places, twice */
    MTF_SCRATCH_SLOTS,   /* counts of each expert, and choices in the order they are served */
    MTF_SCRATCH_EXPERTS, /* one expert's matrix and some rows in the type of sums, where narrow */
    MTF_SCRATCHES,
} MtfScratch;

/* In which operands the sides of a row's windows are (window.h): the larger side, that which windows
 * go over, and the smaller, that which has an element a window. */
typedef enum {
    MTF_WINDOWS_NONE,
    MTF_WINDOWS_GATHER, /* from the larger side to the smaller, `from` to `to` */
    MTF_WINDOWS_SPREAD, /* from the smaller side to the larger, `from` to `to` */
    MTF_WINDOWS_BACK,   /* likewise, from `to` to `from` */
    MTF_WINDOWS_FILTER, /* of both, `from` and `to`, to the filter */
} MtfWindowForm;

/* What the metrics of a training step, or an evaluation, show of an operation. */
typedef enum {
    MTF_SHOWN_NOTHING,
    MTF_SHOWN_CLIP_FACTOR,
    MTF_SHOWN_LEARNING_RATE,
    MTF_SHOWN_DROPPED,  /* -1 for each choice that has no place */
    MTF_SHOWN_ACCURACY, /* where input 2 equals input 0, the highest score */
} MtfShown;

/* Integers that choose: input `ids` along the one dimension that operand `of` has and operand
 * `without` lacks. */
typedef struct {
    bool chooses;
    int ids, of, without; /* inputs, or MTF_OUTPUT */
} MtfChoice;

/* What an operation asks of padding (MtfDimension) along a dimension that its result lacks or that an
 * attribute names, so that the padding changes nothing. */
typedef enum {
    MTF_PADDING_BARRED, /* it would change the result */
    MTF_PADDING_ZERO,   /* to be 0 */
    MTF_PADDING_LOWEST, /* to be below all that counts */
    MTF_PADDING_UNREAD, /* nothing: ids never choose it */
} MtfPadding;

/* What goes between the kernels of an operation along one dimension (mtf_operation_along), where that is split. */
typedef enum {
    MTF_ALONG_NOTHING,
    MTF_ALONG_SORTS, /* elements come to other places (layouts/placement/sort_columns.h) */
    MTF_ALONG_SUMS,  /* the totals of parts, which those behind them begin with */
    MTF_ALONG_CHOOSES, /* the best of parts, of which all choose the best: the result lacks the dimension */
} MtfAlong;

/* What one operation is checked with (operation_check.h). */
typedef struct MtfOperationCheck MtfOperationCheck;

/* What a row asks beyond the common rules, once the first output's shape is known. */
typedef bool (*MtfOperationRule)(const MtfOperationCheck *check, const MtfShape *shape,
                                 GError **error);

typedef struct {
    const char *name;
    MtfKernelClass kernel_class;
    bool composite;
    int min_inputs, max_inputs;
    int n_outputs;
    const char *suffixes[MTF_MAX_OUTPUTS]; /* names of outputs 1… */
    int outputs_like[MTF_MAX_OUTPUTS];     /* output k > 0 has the shape and dtype of this input, or
                                              of MTF_OUTPUT */
    unsigned statistics; /* bit k: … but lacks the dimension that attribute "dimension" names, and
                            is of the type of sums */
    MtfDimsRule dims;
    MtfReduction reduction;
    MtfLinearity linearity;
    int linear_input;
    double flops;      /* per point of the iteration space */
    unsigned in_place; /* bit k: output 0 may overwrite input k when their local shapes agree; an
                          output j > 0 may always overwrite input outputs_like[j], unless … */
    bool separate;     /* no output may: all are read to the end */
    int addend; /* input that is added to output 0, and so is placed as that is, partial where
                   that is partial; touched only where the others say. 0: none */
    bool whole; /* the dimensions that attributes "dimension", "choices" and "keys" name are never
                   split */
    unsigned integer_inputs; /* bit k: input k is int32 (a user's may be int64: mtf_expand casts
                                it), or int8 by byte_inputs; others are float */
    unsigned byte_inputs;    /* of these */
    unsigned wide_inputs; /* bit k: input k is of the type of sums; all others of one type, … */
    unsigned conditions;  /* … but for these, which may be bool */
    MtfDtypeRule dtype;
    bool accumulates; /* output 0 adds up over micro-batches and is complete after the last */
    bool continues;   /* its kernel can fold more into what it has folded before (fused_groups.h) */
    bool gathers;     /* input 0 is read sparsely: only as many bytes as the output has */
    bool routes;      /* takes rows to experts by the slots of input 1 */
    MtfOperationRule check;
    bool own_dimensions; /* `check` asks about dimensions what others are asked in common */
    int scalars_from;    /* from this input on they are single numbers; 0: none */
    bool positional; /* says where elements lie along dimensions: no part of them stands alone */
    unsigned integer_outputs; /* bit k: output k > 0 is int32 */
    bool integers;       /* all its float inputs may be int32 or int64, and then so is its result */
    bool truths;         /* likewise, bool */
    bool integer_result; /* int32 where "dtype" is not given and no input tells the type */
    MtfProductsKind products;
    MtfScratch scratch;
    MtfPointsShare share;  /* NULL: all points */
    MtfWindowForm windows; /* what its windows relate; without: nothing */
    bool samples;          /* its windows are those of mtf_window_sample, where it has one */
    bool scans; /* linear attention each element of whose states forgets at a speed of its own */
    MtfAlong along;   /* what parts of `dimension` tell each other while it runs */
    bool joins;       /* its inputs lie one behind the other (reshape.h) */
    MtfChoice choice; /* of ids or labels */
    MtfPadding padding;
    bool singular; /* its value or its slope is not finite at 0 */
    bool updates;  /* output 0 is the next value of input 0, which is kept between steps */
    bool converts; /* the same elements in another type */
    bool random;   /* draws from the stream that attribute "stream" names */
    bool ratio;    /* input 0 by input 1 */
    bool in_parts; /* its results for equal parts of memory (attribute "parts") have a merger
                      (key_parts.h) */
    bool adds_up;  /* summed over a further dimension of its inputs it is the sum of itself */
    MtfLoopPart loop;
    MtfHostCopy host;
    MtfShown shown;
    MtfAttributeSpec attributes[MTF_MAX_ATTRIBUTES]; /* ends with name NULL */
} MtfOperationRow;

/* The row of a kind (MtfOperationKind); it lives as long as the program. */
const MtfOperationRow *mtf_operation_row(int kind);

/* Whether a tensor lies in the host's memory. */
bool mtf_tensor_is_on_host(const MtfGraph *graph, int tensor);

/* The dimension whose parts tell each other something while the operation runs; -1: none. */
int mtf_operation_along(const MtfOperation *operation);

/* Whether input `k` of the operation is its row's addend. */
bool mtf_operation_adds_input(const MtfOperation *operation, int k);

/* Whether bit `k` is set in a row's mask of inputs; the last bit stands for all inputs beyond it.
 */
bool mtf_operation_mask_has(unsigned mask, int k);

/* Whether "dtype" may be given for operations of the row. */
bool mtf_operation_row_chooses_dtype(const MtfOperationRow *row);

/* Whether an operation's first output is of a type that does not follow from its inputs, so that
 * "dtype" must be given. */
bool mtf_operation_needs_dtype(const MtfGraph *graph, const MtfOperation *operation);

/* Whether input `k`, of that type, tells an operation's storage type: it is no id, no wide input and no
 * bool condition. */
bool mtf_operation_input_leads(const MtfOperationRow *row, int k, MtfDtype dtype);

/* The storage type of an operation: that of its first input that tells it; of its first output where
 * none does. */
MtfDtype mtf_operation_storage_dtype(const MtfGraph *graph, const MtfOperation *operation);

/* The kind of a name, or -1. */
int mtf_operation_kind(const char *name);

/* The shape of input `k`, or of output 0 for MTF_OUTPUT. */
const MtfShape *mtf_operation_operand_shape(const MtfGraph *graph, const MtfOperation *operation,
                                            int k);

/* The rules of single rows, which name them as their `check`; they stand in operation_check.c,
 * routing_check.c, reshape.c and window.c. */
bool mtf_check_attention(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_cache_update(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_quantized_einsum(const MtfOperationCheck *check, const MtfShape *shape,
                                GError **error);
bool mtf_check_attention_further(const MtfOperationCheck *check, const MtfShape *shape,
                                 GError **error);
bool mtf_check_cached_attention(const MtfOperationCheck *check, const MtfShape *shape,
                                GError **error);
bool mtf_check_attention_grad(const MtfOperationCheck *check, const MtfShape *shape,
                              GError **error);
bool mtf_check_linear_attention(const MtfOperationCheck *check, const MtfShape *shape,
                                GError **error);
bool mtf_check_kept_linear_attention(const MtfOperationCheck *check, const MtfShape *shape,
                                     GError **error);
bool mtf_check_linear_attention_grad(const MtfOperationCheck *check, const MtfShape *shape,
                                     GError **error);
bool mtf_check_cast(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_causal(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_constant(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_direction(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_dropout(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_embedding(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_embedding_grad(const MtfOperationCheck *check, const MtfShape *shape,
                              GError **error);
bool mtf_check_expression(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_labels(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_learning_rate(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_range(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_rotary(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_mean(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_variance(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_statistic(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_clip(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_argmax(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_one_hot(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_reshape(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_cumulative_sum(const MtfOperationCheck *check, const MtfShape *shape,
                              GError **error);
bool mtf_check_local_response(const MtfOperationCheck *check, const MtfShape *shape,
                              GError **error);
bool mtf_check_resample(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_concat(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_random(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_top_k(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_sort_grad(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_slice(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_pad(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_roll(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_select(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_stack(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_slots(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_slot_ids(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_dispatch(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_combine(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_combine_gate_grad(const MtfOperationCheck *check, const MtfShape *shape,
                                 GError **error);
bool mtf_check_expert_einsum(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_expert_einsum_grad(const MtfOperationCheck *check, const MtfShape *shape,
                                  GError **error);
bool mtf_check_conv(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_pool(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_loop_next(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_within_first(const MtfOperationCheck *check, const MtfShape *shape, GError **error);

/* Whether some operation takes rows to experts. */
bool mtf_graph_has_experts(const MtfGraph *graph);

#endif
