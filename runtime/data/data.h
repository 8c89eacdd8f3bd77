// SPDX-License-Identifier: GPL-3.0-or-later
/* The data a model is trained on. What a step sees is a function of (seed, step, example) and the
 * data alone, never of the layout or the number of ranks, and each rank makes only its slice:
 *
 *     input[batch, length]      first dimension   examples b = 0, 1, … of the step
 *                               the others        places within one example
 *
 *     tokens, next_tokens    from files (data_tokens.h): example b is a window at an offset drawn for (seed,
 *                            step, b) in the training part; next_tokens the same window one token on
 *     mask                   all ones
 *     features, targets,     from files (data_examples.h): every example of the training part once
 *     labels                 an epoch, in an order drawn for (seed, epoch); without files features
 *                            are uniform with mean 0 and variance 1, drawn for (seed, step, b,
 *                            place), and targets and labels what a fixed random teacher makes of
 *                            them: y = V tanh(U x), and the place of the largest y; inputs of
 *                            fewer features than others have the first of them
 *
 * Part of the data is held out of training, to see whether what was learned holds beyond it: other
 * files, or the last share of the files; of generated data, examples that no step sees. The teacher
 * is one network of TEACHER_WIDTH hidden units for every seed, so the task stays the same when the
 * seed changes. */
#ifndef MTF_DATA_H
#define MTF_DATA_H

#include "runtime/data/data_catalogue.h"
#include "runtime/text/pair_text.h"
#include "runtime/worker/worker.h"

typedef struct MtfData MtfData;

#define MTF_STANDARD_HELD_OUT 0.1

/* Where data comes from. */
typedef struct {
    char *const *files;            /* NULL-terminated; NULL = nobody named one */
    char *const *held_out;         /* files; NULL = the last `share` of the others */
    double share;                  /* [0, 1) */
    const MtfTokenizer *tokenizer; /* for files of text; NULL = their bytes are tokens */
    const MtfPairText *pair_text;  /* for pairs of texts, kept until the data is closed; NULL =
                                      bytes */
    uint64_t seed;
} MtfDataSettings;

/* Opens the data for a graph's inputs. Fails (bad input) when a file is needed and missing, not
 * needed and given, not what the graph asks for, too short, or holds an id beyond the vocabulary;
 * and when labels or targets have no features to depend on. The graph must outlive it; the settings
 * need not. */
MtfData *mtf_data_open_files(const MtfGraph *graph, const MtfDataSettings *settings,
                             GError **error);

/* The same for one file, or NULL, and the standard share held out. */
MtfData *mtf_data_open(const MtfGraph *graph, const char *path, uint64_t seed, GError **error);
void mtf_data_close(MtfData *data);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfData, mtf_data_close)

/* Fills the slice of input `tensor` for `step` (the first is 1). Allocates nothing. Fails when the
 * file has become unreadable. */
bool mtf_data_fill(MtfData *data, int tensor, int64_t step, const MtfOperand *slice,
                   GError **error);

/* The same for all inputs of a worker's program, of the micro-batch that it has turned to. */
bool mtf_data_fill_inputs(MtfData *data, const MtfWorker *worker, int64_t step, GError **error);

/* From now on "step" s of mtf_data_fill means the s-th batch of held out examples; or of training
 * again. */
void mtf_data_hold_out(MtfData *data, bool held_out);

/* How many examples are held out; INT64_MAX for generated data. */
int64_t mtf_data_held_examples(const MtfData *data);

/* How many batches the held out part fills, at least 1 unless it is empty; INT64_MAX for generated
 * data. */
int64_t mtf_data_held_batches(const MtfData *data);

/* The first `n` tokens (at most a window's) of the held out part, or where nothing is held out of
 * the first training window; returns how many there are, 0 with an error when the data has no
 * tokens. */
int64_t mtf_data_held_tokens(MtfData *data, int *tokens, int64_t n, GError **error);

/* The first pair of held out row `number`, or where nothing is held out of training row `number`; NULL where
 * the data is no pairs or has no such row. */
const MtfTextPair *mtf_data_pair(MtfData *data, int64_t number);

/* What a step consumes: tokens of a text model, else examples; and the word for it. */
int64_t mtf_data_items(const MtfData *data);
const char *mtf_data_item_name(const MtfData *data);

/* Examples that a step consumes. */
int64_t mtf_data_examples(const MtfData *data);

/* The ids that tokens are below; INT64_MAX where nothing bounds them. */
int64_t mtf_data_vocabulary(const MtfData *data);

/* Some words that tell this data from other data; free with g_free. Fails when a file has become
 * unreadable. */
char *mtf_data_identity(const MtfData *data, GError **error);

/* The order-0 entropy of tokens in nats a token; NAN for other data. */
double mtf_data_entropy(const MtfData *data);

/* The size of what an integer tensor chooses from in lookups and labels (a vocabulary), the smallest
 * over its readers; INT64_MAX when nothing bounds it. */
int64_t mtf_data_id_bound(const MtfGraph *graph, int tensor);

#endif
