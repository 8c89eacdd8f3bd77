// SPDX-License-Identifier: GPL-3.0-or-later
/* Examples from files: features, and with them labels or targets. Which array is which follows from
 * how many numbers a record has: those of the model's features, of its targets, or one integer for
 * labels. Several files of a kind follow one another, those of features and labels alike.
 *
 *     epoch 0                           epoch 1
 *     |- training part, in an order of its own -|- again, in another -| …      held out: the last
 *      step 1 | step 2 | step 3 …                                               share, as it stands
 */
#ifndef MTF_DATA_EXAMPLES_H
#define MTF_DATA_EXAMPLES_H

#include "runtime/data/data_stream.h"

typedef struct MtfExamples MtfExamples;

/* An input of a model that has several with features. They stand one behind another in a record, or for each input
 * in arrays of its name, "x.npy" for input "x", in any folder; slashes of a name are underscores there. */
typedef struct {
    const char *name;
    int64_t places; /* numbers of an example */
} MtfFeatureInput;

typedef struct {
    int64_t features;              /* numbers of an example */
    const MtfFeatureInput *inputs; /* whose features they are; NULL = of one input */
    int n_inputs;
    int64_t targets;       /* of its targets; 0 = the model has none */
    int64_t labels;        /* numbers of its labels: 1 = its class, else that of each place; or 0 */
    int64_t classes;       /* labels are below it */
    bool ignores;          /* and may be below 0, which is no class */
    int64_t categories;    /* of an example */
    char *const *files;    /* NULL-terminated */
    char *const *held_out; /* files; NULL = a share of the examples */
    double share;
} MtfExamplesWanted;

/* Fails (bad input) when a file cannot be read or is of no known kind, an array fits nothing the
 * model wants, something it wants is missing, or there are more of one than of the other. */
MtfExamples *mtf_examples_open(const MtfExamplesWanted *wanted, GError **error);
void mtf_examples_close(MtfExamples *examples);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfExamples, mtf_examples_close)

/* Reads example `number` of all steps, counted from 0: the order of its epoch says which it is; or
 * held out example `number` (modulo how many there are). Fails when a file has become unreadable,
 * or a label is no class. */
bool mtf_examples_load(MtfExamples *examples, uint64_t seed, int64_t number, GError **error);
bool mtf_examples_load_held(MtfExamples *examples, int64_t number, GError **error);

/* Examples that are held out. */
int64_t mtf_examples_held(const MtfExamples *examples);

/* Of the example loaded last. */
double mtf_examples_feature(const MtfExamples *examples, int64_t place);
double mtf_examples_target(const MtfExamples *examples, int64_t place);
double mtf_examples_label(const MtfExamples *examples, int64_t place);

/* How many values a column of categories takes. */
double mtf_examples_category(const MtfExamples *examples, int64_t column);

/* How many and a digest; free with g_free. Fails when a file has become unreadable. */
char *mtf_examples_identity(const MtfExamples *examples, GError **error);

#endif
