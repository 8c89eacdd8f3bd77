// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/data/data_examples.h"

#include "layouts/base/error.h"
#include "runtime/data/data_clicks.h"
#include "runtime/data/data_order.h"
#include "runtime/data/data_table.h"

#include <inttypes.h>
#include <math.h>

/* The streams of one part. */
enum { FEATURES, TARGETS, LABELS, CATEGORIES, STREAMS };

#define LABELS_AT_ONCE INT64_C(1024)
#define FIRST_LABELS (INT64_C(1) << 20)

static const char *const stream_names[STREAMS] = { "features", "targets", "labels", "categories" };

typedef struct {
    MtfDataStream *streams[STREAMS];
    MtfDataStream *
        *of_inputs; /* [n_inputs]: features of each by themselves, where no file holds all */
    int64_t examples;
} Part;

struct MtfExamples {
    int64_t wanted[STREAMS]; /* numbers of a record; 0 = none */
    MtfFeatureInput *inputs; /* [n_inputs] */
    int n_inputs;
    int64_t classes;
    bool ignores;     /* labels below 0 */
    Part train, held; /* the second is empty when the end of the first is held out */
    int64_t trained;  /* examples of the training part */
    double *values[STREAMS];
};

static void free_array(gpointer array) {
    mtf_data_array_free(array);
}

/* ---- Which array is which ------------------------------------------------------------------ */

/* The stream an array belongs to, or -1. Where two would do, the one that has fewer arrays. */
static int stream_of(const MtfExamples *examples, const Part *part, const MtfDataArray *array) {
    int found = -1;
    for (int s = 0; s < STREAMS; s++) {
        if (mtf_data_array_places(array) != examples->wanted[s] ||
            (s >= LABELS && !mtf_data_array_is_integer(array)))
            continue;
        if (found < 0 ||
            mtf_data_stream_arrays(part->streams[s]) < mtf_data_stream_arrays(part->streams[found]))
            found = s;
    }
    return found;
}

/* The name of an input's file; free with g_free. */
static char *file_of(const MtfFeatureInput *input) {
    return g_strdelimit(g_strconcat(input->name, ".npy", NULL), "/", '_');
}

/* The input that a file is named after, or -1. */
static int input_of(const MtfExamples *examples, const char *path) {
    g_autofree char *base = g_path_get_basename(path);
    for (int i = 0; i < examples->n_inputs; i++) {
        g_autofree char *name = file_of(&examples->inputs[i]);
        if (strcmp(name, base) == 0)
            return i;
    }
    return -1;
}

static bool fail_features(const MtfExamples *examples, const MtfDataArray *array, GError **error) {
    int64_t places = mtf_data_array_places(array), all = examples->wanted[FEATURES];
    if (examples->n_inputs == 0)
        return mtf_input_error(error,
                               "%s holds records of %" PRId64 " numbers, but an example of this "
                               "model has %" PRId64 " features",
                               mtf_data_array_path(array), places, all);
    g_autofree char *name = file_of(&examples->inputs[0]);
    return mtf_input_error(error,
                           "%s holds records of %" PRId64 " numbers, but an example of this model "
                           "has %" PRId64 " features of %d inputs: give each a file of its name "
                           "(%s of %" PRId64 ")",
                           mtf_data_array_path(array), places, all, examples->n_inputs, name,
                           examples->inputs[0].places);
}

static bool add_array(const MtfExamples *examples, Part *part, MtfDataArray *array,
                      GError **error) {
    int input = input_of(examples, mtf_data_array_path(array));
    if (input >= 0 && mtf_data_array_places(array) == examples->inputs[input].places) {
        mtf_data_stream_add(part->of_inputs[input], array);
        return true;
    }
    int stream = stream_of(examples, part, array);
    if (stream >= 0) {
        if (stream >= LABELS)
            mtf_data_array_keep_whole(array);
        mtf_data_stream_add(part->streams[stream], array);
        return true;
    }
    if (mtf_data_array_places(array) == examples->wanted[LABELS]) {
        mtf_input_error(error,
                        "%s holds floats, but labels are whole numbers: write them as integers",
                        mtf_data_array_path(array));
        mtf_data_array_free(array);
        return false;
    }
    /* CIFAR's labels, say, for a model that has none. */
    bool unwanted = mtf_data_array_places(array) == 1;
    if (!unwanted)
        fail_features(examples, array, error);
    mtf_data_array_free(array);
    return unwanted;
}

/* Whether features stand for each input by themselves. */
static bool is_apart(const MtfExamples *examples, const Part *part) {
    return examples->n_inputs > 0 && mtf_data_stream_records(part->streams[FEATURES]) == 0;
}

/* How many examples have features of all inputs by themselves. */
static bool count_apart(const MtfExamples *examples, const Part *part, int64_t *records,
                        GError **error) {
    *records = mtf_data_stream_records(part->of_inputs[0]);
    for (int i = 0; i < examples->n_inputs; i++) {
        const MtfFeatureInput *input = &examples->inputs[i];
        int64_t own = mtf_data_stream_records(part->of_inputs[i]);
        g_autofree char *name = file_of(input);
        if (own == 0 || own != *records)
            return mtf_input_error(error,
                                   "input \"%s\" has %" PRId64 " examples and \"%s\" %" PRId64
                                   ": of several inputs each reads files of its name, %s",
                                   input->name, own, examples->inputs[0].name, *records, name);
    }
    return true;
}

static bool check_part(const MtfExamples *examples, Part *part, const char *file, GError **error) {
    part->examples = mtf_data_stream_records(part->streams[FEATURES]);
    bool apart = is_apart(examples, part);
    if (apart && !count_apart(examples, part, &part->examples, error))
        return false;
    for (int s = apart ? FEATURES + 1 : 0; s < STREAMS; s++) {
        int64_t records = mtf_data_stream_records(part->streams[s]);
        if (examples->wanted[s] > 0 && records == 0)
            return mtf_input_error(error,
                                   "no file holds %s, %" PRId64 " %snumber%s an example: name one "
                                   "beside %s",
                                   stream_names[s], examples->wanted[s],
                                   s >= LABELS ? "whole " : "", examples->wanted[s] == 1 ? "" : "s",
                                   file);
        if (examples->wanted[s] > 0 && records != part->examples)
            return mtf_input_error(error,
                                   "the files hold features of %" PRId64 " examples, but %s of "
                                   "%" PRId64,
                                   part->examples, stream_names[s], records);
    }
    return true;
}

/* A table of clicks: its features, labels and categories. */
static bool open_clicks(const MtfExamples *examples, Part *part, const char *path, GError **error) {
    const int64_t *wanted = examples->wanted;
    MtfClickColumns columns = { wanted[FEATURES], wanted[CATEGORIES] };
    int64_t first = MTF_CLICK_LABEL_BYTES, size = MTF_CLICK_NUMBER_BYTES;
    int64_t stride = first + (columns.features + columns.categories) * size;
    const int64_t begins[STREAMS] = {
        [FEATURES] = first, [CATEGORIES] = first + columns.features * size
    };
    g_autoptr(MtfDataFile) file = mtf_clicks_open(path, &columns, error);
    if (file == NULL)
        return false;
    for (int s = 0; s < STREAMS; s++) {
        MtfInnerArray inner = { .floats = s == FEATURES,
                                .first = begins[s],
                                .stride = stride,
                                .records = mtf_data_file_size(file) / stride,
                                .places = wanted[s] };
        MtfDataFile *again =
            s != TARGETS && wanted[s] > 0 ? mtf_data_file_again(file, error) : NULL;
        if (again != NULL)
            mtf_data_stream_add(part->streams[s], mtf_data_array_inside(again, &inner));
        else if (s != TARGETS && wanted[s] > 0)
            return false;
    }
    return true;
}

/* A table of numbers: its columns are features, then labels, then targets. */
static bool open_table(const MtfExamples *examples, Part *part, const char *path, GError **error) {
    static const int streams[] = { FEATURES, LABELS, TARGETS };
    const int64_t *wanted = examples->wanted;
    MtfTableColumns columns = { wanted[FEATURES], wanted[LABELS], wanted[TARGETS] };
    int64_t stride = MTF_TABLE_NUMBER_BYTES * (columns.features + columns.labels + columns.targets),
            first = 0;
    g_autoptr(MtfDataFile) file = mtf_table_open(path, &columns, error);
    if (file == NULL)
        return false;
    for (gsize i = 0; i < G_N_ELEMENTS(streams); i++) {
        int s = streams[i];
        MtfInnerArray inner = { .floats = s != LABELS,
                                .first = first,
                                .stride = stride,
                                .records = mtf_data_file_size(file) / stride,
                                .places = wanted[s] };
        MtfDataFile *again = wanted[s] > 0 ? mtf_data_file_again(file, error) : NULL;
        if (again != NULL)
            mtf_data_stream_add(part->streams[s], mtf_data_array_inside(again, &inner));
        else if (wanted[s] > 0)
            return false;
        first += wanted[s] * MTF_TABLE_NUMBER_BYTES;
    }
    return true;
}

static bool open_arrays(const MtfExamples *examples, Part *part, const char *path, GError **error) {
    g_autoptr(GPtrArray) arrays = g_ptr_array_new_with_free_func(free_array);
    if (!mtf_data_arrays_open(path, false, arrays, error))
        return false;
    while (arrays->len > 0)
        if (!add_array(examples, part, g_ptr_array_steal_index(arrays, 0), error))
            return false;
    return true;
}

static bool is_label(const MtfExamples *examples, const Part *part, int64_t record, double label,
                     GError **error) {
    return ((label >= 0 || (examples->ignores && label >= INT32_MIN)) &&
            label < (double)examples->classes) ||
           mtf_input_error(error,
                           "%s: the label of example %" PRId64 " is %.0f, but the model has only "
                           "%" PRId64 " classes",
                           mtf_data_stream_path(part->streams[LABELS], record), record, label,
                           examples->classes);
}

/* Labels of examples are looked at before training begins, as many as take no time; those of places, and
 * further ones, where they are read. */
static bool check_first_labels(const MtfExamples *examples, const Part *part, GError **error) {
    double labels[LABELS_AT_ONCE];
    int64_t all = examples->wanted[LABELS] == 1 ? MIN(part->examples, FIRST_LABELS) : 0;
    for (int64_t first = 0; first < all; first += LABELS_AT_ONCE) {
        int64_t n = MIN(LABELS_AT_ONCE, all - first);
        if (!mtf_data_stream_read(part->streams[LABELS], first, n, labels, error))
            return false;
        for (int64_t i = 0; i < n; i++)
            if (!is_label(examples, part, first + i, labels[i], error))
                return false;
    }
    return true;
}

static bool open_part(const MtfExamples *examples, Part *part, char *const *files, GError **error) {
    for (int s = 0; s < STREAMS; s++)
        part->streams[s] = mtf_data_stream_new();
    part->of_inputs = g_new0(MtfDataStream *, (gsize)examples->n_inputs + 1);
    for (int i = 0; i < examples->n_inputs; i++)
        part->of_inputs[i] = mtf_data_stream_new();
    for (int i = 0; files[i] != NULL; i++) {
        bool (*open)(const MtfExamples *, Part *, const char *, GError **) =
            mtf_clicks_are(files[i]) ? open_clicks
            : mtf_table_is(files[i]) ? open_table
                                     : open_arrays;
        if (!open(examples, part, files[i], error))
            return false;
    }
    return check_part(examples, part, files[0], error) && check_first_labels(examples, part, error);
}

static void close_part(Part *part) {
    for (int s = 0; s < STREAMS; s++)
        mtf_data_stream_free(part->streams[s]);
    for (int i = 0; part->of_inputs != NULL && part->of_inputs[i] != NULL; i++)
        mtf_data_stream_free(part->of_inputs[i]);
    g_free(part->of_inputs);
}

/* Files of their own, or the last share of those that are trained on. */
static bool hold_out(MtfExamples *examples, const MtfExamplesWanted *wanted, GError **error) {
    int64_t all = examples->train.examples;
    int64_t kept = wanted->held_out != NULL ? 0 : (int64_t)(wanted->share * (double)all);
    examples->trained = kept > 0 ? MAX(1, all - kept) : all;
    return wanted->held_out == NULL ||
           open_part(examples, &examples->held, wanted->held_out, error);
}

MtfExamples *mtf_examples_open(const MtfExamplesWanted *wanted, GError **error) {
    g_autoptr(MtfExamples) examples = g_new0(MtfExamples, 1);
    examples->wanted[FEATURES] = wanted->features;
    examples->wanted[TARGETS] = wanted->targets;
    examples->wanted[CATEGORIES] = wanted->categories;
    examples->wanted[LABELS] = wanted->labels;
    examples->classes = wanted->classes;
    examples->ignores = wanted->ignores;
    examples->n_inputs = wanted->n_inputs;
    examples->inputs = g_memdup2(wanted->inputs, (gsize)wanted->n_inputs * sizeof *wanted->inputs);
    for (int s = 0; s < STREAMS; s++)
        examples->values[s] = g_new0(double, examples->wanted[s] + 1);
    if (!open_part(examples, &examples->train, wanted->files, error) ||
        !hold_out(examples, wanted, error))
        return NULL;
    return g_steal_pointer(&examples);
}

void mtf_examples_close(MtfExamples *examples) {
    if (examples == NULL)
        return;
    close_part(&examples->train);
    close_part(&examples->held);
    for (int s = 0; s < STREAMS; s++)
        g_free(examples->values[s]);
    g_free(examples->inputs);
    g_free(examples);
}

/* ---- Reading ------------------------------------------------------------------------------- */

static bool load_apart(MtfExamples *examples, const Part *part, int64_t record, GError **error) {
    double *values = examples->values[FEATURES];
    for (int i = 0; i < examples->n_inputs; values += examples->inputs[i++].places)
        if (!mtf_data_stream_read(part->of_inputs[i], record, 1, values, error))
            return false;
    return true;
}

static bool load(MtfExamples *examples, const Part *part, int64_t record, GError **error) {
    bool apart = is_apart(examples, part);
    if (apart && !load_apart(examples, part, record, error))
        return false;
    for (int s = apart ? FEATURES + 1 : 0; s < STREAMS; s++)
        if (examples->wanted[s] > 0 &&
            !mtf_data_stream_read(part->streams[s], record, 1, examples->values[s], error))
            return false;
    for (int64_t i = 0; i < examples->wanted[LABELS]; i++)
        if (!is_label(examples, part, record, examples->values[LABELS][i], error))
            return false;
    return true;
}

bool mtf_examples_load(MtfExamples *examples, uint64_t seed, int64_t number, GError **error) {
    int64_t n = examples->trained;
    return load(examples, &examples->train, mtf_data_order(seed, number / n, n, number % n), error);
}

int64_t mtf_examples_held(const MtfExamples *examples) {
    return examples->held.examples > 0 ? examples->held.examples
                                       : examples->train.examples - examples->trained;
}

bool mtf_examples_load_held(MtfExamples *examples, int64_t number, GError **error) {
    int64_t place = number % mtf_examples_held(examples);
    if (examples->held.examples > 0)
        return load(examples, &examples->held, place, error);
    return load(examples, &examples->train, examples->trained + place, error);
}

double mtf_examples_feature(const MtfExamples *examples, int64_t place) {
    return examples->values[FEATURES][place];
}

double mtf_examples_target(const MtfExamples *examples, int64_t place) {
    return examples->values[TARGETS][place];
}

double mtf_examples_label(const MtfExamples *examples, int64_t place) {
    return examples->values[LABELS][place];
}

double mtf_examples_category(const MtfExamples *examples, int64_t column) {
    return examples->values[CATEGORIES][column];
}

char *mtf_examples_identity(const MtfExamples *examples, GError **error) {
    g_autoptr(GChecksum) digest = g_checksum_new(G_CHECKSUM_SHA256);
    bool apart = is_apart(examples, &examples->train);
    for (int i = 0; i < examples->n_inputs && apart; i++)
        if (!mtf_data_stream_digest(examples->train.of_inputs[i], digest, error))
            return NULL;
    for (int s = apart ? FEATURES + 1 : 0; s < STREAMS; s++)
        if (examples->wanted[s] > 0 &&
            !mtf_data_stream_digest(examples->train.streams[s], digest, error))
            return NULL;
    return g_strdup_printf("%" PRId64 " examples, %.16s", examples->train.examples,
                           g_checksum_get_string(digest));
}
