// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/data/data_pairs.h"

#include "layouts/base/error.h"
#include "runtime/data/data_catalogue.h"
#include "runtime/data/data_file.h"
#include "runtime/data/data_order.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define TEXT_BEGINS 2
#define TEXT_ENDS 3

/* Pairs that share a row. */
typedef struct {
    guint first, count;
} Row;

struct MtfPairs {
    int64_t source_length, length, classes;
    GArray *pairs;        /* MtfTextPair: those of the training part, then those held out */
    GArray *train, *held; /* Row */
    MtfPairRow row;
};

/* ---- Files ----------------------------------------------------------------------------------- */

static bool is_table(const char *path) {
    return g_str_has_suffix(path, ".tsv") || g_str_has_suffix(path, ".tsv.gz");
}

static bool is_pairs(const char *path) {
    unsigned char start[4] = { 0 };
    g_autoptr(MtfDataFile) file = mtf_data_file_open(path, NULL);
    return file != NULL && (is_table(path) || (mtf_data_file_size(file) >= 4 &&
                                               mtf_data_file_read(file, 0, start, 4, NULL) &&
                                               mtf_catalogue_begins(start, sizeof start)));
}

bool mtf_pairs_are(char *const *files) {
    for (int i = 0; files[i] != NULL; i++)
        if (!is_pairs(files[i]))
            return false;
    return files[0] != NULL;
}

static bool read_pairs(const char *path, GArray *pairs, GError **error) {
    g_autoptr(MtfDataFile) file = mtf_data_file_open(path, error);
    if (file == NULL)
        return false;
    int64_t size = mtf_data_file_size(file);
    g_autofree unsigned char *bytes = g_malloc((gsize)size + 1);
    if (!mtf_data_file_read(file, 0, bytes, size, error))
        return false;
    if (is_table(path))
        return mtf_pair_table_parse(path, bytes, (gsize)size, pairs, error);
    return mtf_catalogue_parse(path, bytes, (gsize)size, pairs, error);
}

/* ---- What fits ------------------------------------------------------------------------------- */

static const MtfTextPair *pair_at(const MtfPairs *pairs, guint i) {
    return &g_array_index(pairs->pairs, MtfTextPair, i);
}

/* Places that each side takes: its bytes, and one for where it begins or ends. */
static int64_t source_places(const MtfPairs *pairs, const MtfTextPair *pair) {
    return pairs->classes > 0 ? 0 : (int64_t)g_bytes_get_size(pair->source) + 1;
}

static int64_t target_places(const MtfTextPair *pair) {
    return (int64_t)g_bytes_get_size(pair->target) + 1;
}

static bool fits(const MtfPairs *pairs, const MtfTextPair *pair) {
    return source_places(pairs, pair) <= pairs->source_length &&
           target_places(pair) <= pairs->length;
}

static bool check_bytes(GBytes *text, int64_t vocabulary, GError **error) {
    gsize n;
    const unsigned char *bytes = g_bytes_get_data(text, &n);
    for (gsize i = 0; i < n; i++)
        if (bytes[i] >= vocabulary)
            return mtf_input_error(error,
                                   "a text holds the byte %d, but the model's vocabulary has only "
                                   "%" PRId64 " tokens: tokens of pairs are bytes",
                                   bytes[i], vocabulary);
    return true;
}

/* The class that a source says; -1 with an error. */
static int read_label(const MtfPairs *pairs, GBytes *source, GError **error) {
    gsize n;
    const char *bytes = g_bytes_get_data(source, &n);
    g_autofree char *text = g_strndup(bytes, n);
    gint64 label;
    if (g_ascii_string_to_signed(text, 10, 0, pairs->classes - 1, &label, NULL))
        return (int)label;
    mtf_input_error(error,
                    "\"%s\" before a tab is no label of this model, a number from 0 to %" PRId64,
                    text, pairs->classes - 1);
    return -1;
}

static bool check_pair(const MtfPairs *pairs, const MtfTextPair *pair, int64_t vocabulary,
                       GError **error) {
    if (pairs->classes > 0)
        return read_label(pairs, pair->source, error) >= 0 &&
               check_bytes(pair->target, vocabulary, error);
    return check_bytes(pair->source, vocabulary, error) &&
           check_bytes(pair->target, vocabulary, error);
}

static char *pair_key(const MtfTextPair *pair) {
    gsize n;
    g_autoptr(GChecksum) digest = g_checksum_new(G_CHECKSUM_SHA1);
    const guchar *bytes = g_bytes_get_data(pair->source, &n);
    g_checksum_update(digest, bytes, (gssize)n);
    g_checksum_update(digest, (const guchar *)"\t", 1);
    bytes = g_bytes_get_data(pair->target, &n);
    g_checksum_update(digest, bytes, (gssize)n);
    return g_strdup(g_checksum_get_string(digest));
}

/* Moves what fits and is new from `read` to the pairs. `seen` has the keys of those. */
static bool take_pairs(MtfPairs *pairs, const GArray *read, GHashTable *seen, int64_t vocabulary,
                       GError **error) {
    for (guint i = 0; i < read->len; i++) {
        MtfTextPair pair = g_array_index(read, MtfTextPair, i);
        if (!fits(pairs, &pair) || !g_hash_table_add(seen, pair_key(&pair)))
            continue;
        if (!check_pair(pairs, &pair, vocabulary, error))
            return false;
        g_bytes_ref(pair.source);
        g_bytes_ref(pair.target);
        g_array_append_val(pairs->pairs, pair);
    }
    return true;
}

/* Appends the pairs of the files. */
static bool take_files(MtfPairs *pairs, const MtfPairsWanted *wanted, char *const *files,
                       GHashTable *seen, GError **error) {
    guint before = pairs->pairs->len;
    g_autoptr(GArray) read = mtf_text_pairs_new();
    for (int i = 0; files[i] != NULL; i++)
        if (!read_pairs(files[i], read, error))
            return false;
    if (!take_pairs(pairs, read, seen, wanted->vocabulary, error))
        return false;
    return pairs->pairs->len > before ||
           mtf_input_error(error,
                           "of the %u pairs in %s%s none fits: a row of this model has room for "
                           "%" PRId64 " bytes and %" PRId64 " of what is made of them",
                           read->len, files[0], files[1] != NULL ? " and the others" : "",
                           pairs->source_length - 1, pairs->length - 1);
}

/* ---- Rows ------------------------------------------------------------------------------------ */

/* Rows of the pairs from `first` to `end`. */
static GArray *lay_rows(const MtfPairs *pairs, guint first, guint end, bool packed) {
    GArray *rows = g_array_new(FALSE, FALSE, sizeof(Row));
    int64_t source = 0, target = 0;
    for (guint i = first; i < end; i++) {
        const MtfTextPair *pair = pair_at(pairs, i);
        source += source_places(pairs, pair);
        target += target_places(pair);
        bool has_room =
            rows->len > 0 && packed && source <= pairs->source_length && target <= pairs->length;
        if (has_room) {
            g_array_index(rows, Row, rows->len - 1).count++;
            continue;
        }
        Row row = { i, 1 };
        g_array_append_val(rows, row);
        source = source_places(pairs, pair);
        target = target_places(pair);
    }
    return rows;
}

static void make_room(MtfPairs *pairs) {
    MtfPairRow *row = &pairs->row;
    int **sources[] = { &row->source, &row->source_segments, &row->source_places };
    int **targets[] = { &row->tokens, &row->next_tokens, &row->segments, &row->places };
    for (gsize i = 0; i < G_N_ELEMENTS(sources); i++)
        *sources[i] = g_new0(int, pairs->source_length + 1);
    for (gsize i = 0; i < G_N_ELEMENTS(targets); i++)
        *targets[i] = g_new0(int, pairs->length + 1);
}

static bool open_pairs(MtfPairs *pairs, const MtfPairsWanted *wanted, GError **error) {
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    if (!take_files(pairs, wanted, wanted->files, seen, error))
        return false;
    guint all = pairs->pairs->len;
    guint trained = MAX(1, all - (guint)(wanted->share * all));
    if (wanted->held_out != NULL) {
        trained = all;
        if (!take_files(pairs, wanted, wanted->held_out, seen, error))
            return false;
    }
    bool packed = wanted->packed && wanted->classes == 0;
    pairs->train = lay_rows(pairs, 0, trained, packed);
    pairs->held = lay_rows(pairs, trained, pairs->pairs->len, packed);
    return true;
}

MtfPairs *mtf_pairs_open(const MtfPairsWanted *wanted, GError **error) {
    g_autoptr(MtfPairs) pairs = g_new0(MtfPairs, 1);
    pairs->source_length = wanted->source_length;
    pairs->length = wanted->length;
    pairs->classes = wanted->classes;
    pairs->pairs = mtf_text_pairs_new();
    make_room(pairs);
    return open_pairs(pairs, wanted, error) ? g_steal_pointer(&pairs) : NULL;
}

static void free_array(GArray *array) {
    if (array != NULL)
        g_array_unref(array);
}

void mtf_pairs_close(MtfPairs *pairs) {
    if (pairs == NULL)
        return;
    MtfPairRow *row = &pairs->row;
    int *const parts[] = { row->source,      row->source_segments, row->source_places, row->tokens,
                           row->next_tokens, row->segments,        row->places };
    for (gsize i = 0; i < G_N_ELEMENTS(parts); i++)
        g_free(parts[i]);
    free_array(pairs->pairs);
    free_array(pairs->train);
    free_array(pairs->held);
    g_free(pairs);
}

/* ---- Laying out ------------------------------------------------------------------------------ */

/* The source of a pair, whose piece begins at `at`; where the next one begins. */
static int64_t lay_source(MtfPairs *pairs, GBytes *text, int segment, int64_t at) {
    MtfPairRow *row = &pairs->row;
    gsize n;
    const unsigned char *bytes = g_bytes_get_data(text, &n);
    for (gsize i = 0; i <= n; i++, at++) {
        row->source[at] = i < n ? bytes[i] : TEXT_ENDS;
        row->source_segments[at] = segment;
        row->source_places[at] = (int)i;
    }
    return at;
}

static int64_t lay_target(MtfPairs *pairs, GBytes *text, int segment, int64_t at) {
    MtfPairRow *row = &pairs->row;
    gsize n;
    const unsigned char *bytes = g_bytes_get_data(text, &n);
    for (gsize i = 0; i <= n; i++, at++) {
        row->tokens[at] = i > 0 ? bytes[i - 1] : TEXT_BEGINS;
        row->next_tokens[at] = i < n ? bytes[i] : TEXT_ENDS;
        row->segments[at] = segment;
        row->places[at] = (int)i;
    }
    return at;
}

static void clear_row(MtfPairs *pairs) {
    MtfPairRow *row = &pairs->row;
    int *const sources[] = { row->source, row->source_segments, row->source_places };
    int *const targets[] = { row->tokens, row->next_tokens, row->segments, row->places };
    for (gsize i = 0; i < G_N_ELEMENTS(sources); i++)
        memset(sources[i], 0, (gsize)pairs->source_length * sizeof(int));
    for (gsize i = 0; i < G_N_ELEMENTS(targets); i++)
        memset(targets[i], 0, (gsize)pairs->length * sizeof(int));
}

static void lay_row(MtfPairs *pairs, const Row *row) {
    int64_t source = 0, target = 0;
    clear_row(pairs);
    for (guint i = 0; i < row->count; i++) {
        const MtfTextPair *pair = pair_at(pairs, row->first + i);
        if (pairs->classes > 0)
            pairs->row.label = read_label(pairs, pair->source, NULL);
        else
            source = lay_source(pairs, pair->source, (int)i + 1, source);
        target = lay_target(pairs, pair->target, (int)i + 1, target);
    }
}

void mtf_pairs_load(MtfPairs *pairs, uint64_t seed, int64_t number) {
    int64_t n = pairs->train->len;
    int64_t row = mtf_data_order(seed, number / n, n, number % n);
    lay_row(pairs, &g_array_index(pairs->train, Row, (guint)row));
}

void mtf_pairs_load_held(MtfPairs *pairs, int64_t number) {
    lay_row(pairs, &g_array_index(pairs->held, Row, (guint)(number % pairs->held->len)));
}

int64_t mtf_pairs_trained(const MtfPairs *pairs) {
    return pairs->train->len;
}

int64_t mtf_pairs_held(const MtfPairs *pairs) {
    return pairs->held->len;
}

const MtfPairRow *mtf_pairs_row(const MtfPairs *pairs) {
    return &pairs->row;
}

/* ---- What is said of all --------------------------------------------------------------------- */

char *mtf_pairs_identity(const MtfPairs *pairs) {
    g_autoptr(GChecksum) digest = g_checksum_new(G_CHECKSUM_SHA256);
    for (guint i = 0; i < pairs->pairs->len; i++) {
        g_autofree char *key = pair_key(pair_at(pairs, i));
        g_checksum_update(digest, (const guchar *)key, -1);
    }
    return g_strdup_printf("%u pairs, %.16s", pairs->pairs->len, g_checksum_get_string(digest));
}

double mtf_pairs_entropy(const MtfPairs *pairs) {
    double counts[256] = { 0 }, total = 0, entropy = 0;
    for (guint i = 0; i < pairs->pairs->len; i++) {
        gsize n;
        const unsigned char *bytes = g_bytes_get_data(pair_at(pairs, i)->target, &n);
        for (gsize k = 0; k < n; k++)
            counts[bytes[k]]++;
        counts[TEXT_ENDS]++;
        total += (double)n + 1;
    }
    for (int id = 0; id < 256; id++)
        entropy -= counts[id] > 0 ? counts[id] / total * log(counts[id] / total) : 0;
    return entropy;
}
