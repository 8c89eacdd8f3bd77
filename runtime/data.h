// SPDX-License-Identifier: GPL-3.0-or-later
/* The data a model is trained on. What a step sees is a function of (seed, step, example) and the
 * data alone, never of the layout or the number of ranks, and each rank makes only its slice:
 *
 *     input[batch, length]      first dimension   examples b = 0, 1, … of the step
 *                               the others        places within one example
 *
 *     tokens, next_tokens    any file, taken as bytes: example b is a window at an offset drawn for
 *                            (seed, step, b) in the training part, the first nine tenths of the
 *                            file; next_tokens is the same window one byte on
 *     mask                   all ones
 *     features               uniform with mean 0 and variance 1, drawn for (seed, step, b, place)
 *     targets, labels        what a fixed random teacher makes of the example's features:
 *                            y = V tanh(U x), and the place of the largest y
 *
 * The teacher is one network of TEACHER_WIDTH hidden units for every seed, so the task stays the
 * same when the seed changes. */
#ifndef MTF_DATA_H
#define MTF_DATA_H

#include "runtime/worker.h"

typedef struct MtfData MtfData;

/* Opens the data for a graph's inputs. `path` is the text, or NULL when nobody named a file. Fails
 * (bad input) when a file is needed and missing, not needed and given, shorter than one window, or
 * holds a byte beyond the vocabulary; and when labels or targets have no features to depend on. The
 * graph must outlive it. */
MtfData *mtf_data_open(const MtfGraph *graph, const char *path, uint64_t seed, GError **error);
void mtf_data_close(MtfData *data);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfData, mtf_data_close)

/* Fills the slice of input `tensor` for `step` (the first is 1). Allocates nothing. Fails when the
 * file has become unreadable. */
bool mtf_data_fill(MtfData *data, int tensor, int64_t step, const MtfOperand *slice,
                   GError **error);

/* The same for all inputs of a worker's program, of the micro-batch that it has turned to. */
bool mtf_data_fill_inputs(MtfData *data, const MtfWorker *worker, int64_t step, GError **error);

/* What a step consumes: tokens of a text model, else examples; and the word for it. */
int64_t mtf_data_items(const MtfData *data);
const char *mtf_data_item_name(const MtfData *data);

/* Examples that a step consumes. */
int64_t mtf_data_examples(const MtfData *data);

/* Some words that tell this data from other data; free with g_free. Fails when a file has become
 * unreadable. */
char *mtf_data_identity(const MtfData *data, GError **error);

/* The order-0 entropy of a text in nats a token; NAN for other data. */
double mtf_data_entropy(const MtfData *data);

/* The size of what an int32 tensor chooses from in lookups and labels (a vocabulary), the smallest
 * over its readers; INT64_MAX when nothing bounds it. */
int64_t mtf_data_id_bound(const MtfGraph *graph, int tensor);

#endif
