// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/data/data_pairs.h"

#include "layouts/base/error.h"
#include "runtime/data/data_catalogue.h"
#include "runtime/data/data_file.h"
#include "runtime/data/data_order.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Pairs that share a row. */
typedef struct {
    guint first, count;
} Row;

/* A pair and its tokens (int). `tokens` are what the decoder reads and `next` what it shall say, alike in
 * number; of a text with a label, `tokens` are the text. */
typedef struct {
    MtfTextPair text;
    GArray *source, *tokens, *next;
    GArray *labels; /* int; NULL: none */
} Pair;

struct MtfPairs {
    int64_t source_length, length, vocabulary;
    MtfLabelsWanted labels;
    const MtfPairText *text;
    GArray *pairs;        /* Pair: those of the training part, then those held out */
    GArray *train, *held; /* Row */
    MtfPairRow row;
};

/* ---- Files ----------------------------------------------------------------------------------- */

static bool is_table(const char *path) {
    return g_str_has_suffix(path, ".tsv") || g_str_has_suffix(path, ".tsv.gz");
}

/* What is called a catalogue but is none is refused as one, not read as a text. */
static bool is_pairs(const char *path) {
    unsigned char start[4] = { 0 };
    g_autoptr(MtfDataFile) file = mtf_data_file_open(path, NULL);
    bool named = is_table(path) || g_str_has_suffix(path, ".mo");
    return file != NULL && (named || (mtf_data_file_size(file) >= 4 &&
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

/* ---- Tokens ---------------------------------------------------------------------------------- */

static void clear_pair(gpointer data) {
    Pair *pair = data;
    g_clear_pointer(&pair->text.source, g_bytes_unref);
    g_clear_pointer(&pair->text.target, g_bytes_unref);
    g_clear_pointer(&pair->source, g_array_unref);
    g_clear_pointer(&pair->tokens, g_array_unref);
    g_clear_pointer(&pair->next, g_array_unref);
    g_clear_pointer(&pair->labels, g_array_unref);
}

static const Pair *pair_at(const MtfPairs *pairs, guint i) {
    return &g_array_index(pairs->pairs, Pair, i);
}

static char *words_of(GBytes *text) {
    gsize n;
    const char *bytes = g_bytes_get_data(text, &n);
    return g_strndup(bytes, n);
}

static bool check_tokens(const MtfPairs *pairs, const GArray *tokens, GError **error) {
    bool bytes = pairs->text->tokenizer == NULL;
    for (guint i = 0; i < tokens->len; i++)
        if (g_array_index(tokens, int, i) >= pairs->vocabulary)
            return mtf_input_error(error,
                                   "a text holds the %s %d, but the model's vocabulary has only "
                                   "%" PRId64 " tokens%s",
                                   bytes ? "byte" : "token", g_array_index(tokens, int, i),
                                   pairs->vocabulary,
                                   bytes ? ": without --tokenizer tokens of pairs are bytes"
                                         : ": --tokenizer should be the model's own");
    return true;
}

static bool encode(const MtfPairs *pairs, GBytes *text, GArray **tokens, GError **error) {
    g_autofree char *words = words_of(text);
    *tokens = g_array_new(FALSE, FALSE, sizeof(int));
    return mtf_pair_text_encode(pairs->text, words, *tokens, error) &&
           check_tokens(pairs, *tokens, error);
}

/* What the decoder reads: a beginning, then all but the last of what it shall say. */
static GArray *shifted(const MtfPairText *text, const GArray *next) {
    GArray *tokens = g_array_sized_new(FALSE, FALSE, sizeof(int), next->len + 1);
    g_array_append_val(tokens, text->begins);
    g_array_append_vals(tokens, next->data, next->len);
    g_array_set_size(tokens, next->len);
    return tokens;
}

/* A text behind its labels, which a tokenizer gives all that it puts around it. */
static bool make_labelled(const MtfPairs *pairs, Pair *pair, GError **error) {
    g_autofree char *said = words_of(pair->text.source), *words = words_of(pair->text.target);
    g_autoptr(GArray) labels = g_array_new(FALSE, FALSE, sizeof(int));
    if (!mtf_labels_read(&pairs->labels, said, words, labels, error))
        return false;
    if (!pairs->labels.of_words) {
        pair->labels = g_steal_pointer(&labels);
        if (!encode(pairs, pair->text.target, &pair->next, error))
            return false;
        bool whole = pairs->text->tokenizer != NULL;
        pair->tokens = whole ? g_array_ref(pair->next) : shifted(pairs->text, pair->next);
        return true;
    }
    pair->labels = g_array_new(FALSE, FALSE, sizeof(int));
    pair->next = g_array_new(FALSE, FALSE, sizeof(int));
    pair->tokens = g_array_ref(pair->next);
    return mtf_labelled_words_encode(pairs->text, words, labels, pair->tokens, pair->labels,
                                     error) &&
           check_tokens(pairs, pair->tokens, error);
}

static bool make_tokens(const MtfPairs *pairs, Pair *pair, GError **error) {
    if (pairs->labels.classes > 0)
        return make_labelled(pairs, pair, error);
    if (!encode(pairs, pair->text.source, &pair->source, error) ||
        !encode(pairs, pair->text.target, &pair->next, error))
        return false;
    pair->tokens = shifted(pairs->text, pair->next);
    return true;
}

/* ---- What fits ------------------------------------------------------------------------------- */

static int64_t source_places(const Pair *pair) {
    return pair->source != NULL ? pair->source->len : 0;
}

static bool fits(const MtfPairs *pairs, const Pair *pair) {
    return source_places(pair) <= pairs->source_length &&
           (int64_t)pair->tokens->len <= pairs->length;
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

/* Copies what fits and is new from `read` to the pairs. `seen` has the keys of those. */
static bool take_pairs(MtfPairs *pairs, const GArray *read, GHashTable *seen, GError **error) {
    for (guint i = 0; i < read->len; i++) {
        const MtfTextPair *text = &g_array_index(read, MtfTextPair, i);
        Pair pair = { .text = { g_bytes_ref(text->source), g_bytes_ref(text->target) } };
        bool made = make_tokens(pairs, &pair, error);
        if (made && fits(pairs, &pair) && g_hash_table_add(seen, pair_key(text)))
            g_array_append_val(pairs->pairs, pair);
        else
            clear_pair(&pair);
        if (!made)
            return false;
    }
    return true;
}

/* Appends the pairs of the files. */
static bool take_files(MtfPairs *pairs, char *const *files, GHashTable *seen, GError **error) {
    guint before = pairs->pairs->len;
    g_autoptr(GArray) read = mtf_text_pairs_new();
    for (int i = 0; files[i] != NULL; i++)
        if (!read_pairs(files[i], read, error))
            return false;
    if (!take_pairs(pairs, read, seen, error))
        return false;
    if (read->len == 0)
        return mtf_input_error(error, "no pair of texts is in %s%s", files[0],
                               files[1] != NULL ? " and the others" : "");
    return pairs->pairs->len > before ||
           mtf_input_error(error,
                           "of the %u pairs in %s%s none fits: a row of this model has room for "
                           "%" PRId64 " %s and %" PRId64 " of what is made of them",
                           read->len, files[0], files[1] != NULL ? " and the others" : "",
                           MAX(0, pairs->source_length - 1),
                           pairs->text->tokenizer != NULL ? "tokens" : "bytes", pairs->length - 1);
}

/* ---- Rows ------------------------------------------------------------------------------------ */

/* Rows of the pairs from `first` to `end`. */
static GArray *lay_rows(const MtfPairs *pairs, guint first, guint end, bool packed) {
    GArray *rows = g_array_new(FALSE, FALSE, sizeof(Row));
    int64_t source = 0, target = 0;
    for (guint i = first; i < end; i++) {
        const Pair *pair = pair_at(pairs, i);
        source += source_places(pair);
        target += pair->tokens->len;
        bool has_room =
            rows->len > 0 && packed && source <= pairs->source_length && target <= pairs->length;
        if (has_room) {
            g_array_index(rows, Row, rows->len - 1).count++;
            continue;
        }
        Row row = { i, 1 };
        g_array_append_val(rows, row);
        source = source_places(pair);
        target = pair->tokens->len;
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
    row->labels = g_new0(int, MAX(pairs->length, pairs->labels.places) + 1);
}

static bool open_pairs(MtfPairs *pairs, const MtfPairsWanted *wanted, GError **error) {
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    if (!take_files(pairs, wanted->files, seen, error))
        return false;
    guint all = pairs->pairs->len;
    guint trained = MAX(1, all - (guint)(wanted->share * all));
    if (wanted->held_out != NULL) {
        trained = all;
        if (!take_files(pairs, wanted->held_out, seen, error))
            return false;
    }
    bool packed = wanted->packed && wanted->labels.classes == 0;
    pairs->train = lay_rows(pairs, 0, trained, packed);
    pairs->held = lay_rows(pairs, trained, pairs->pairs->len, packed);
    return true;
}

MtfPairs *mtf_pairs_open(const MtfPairsWanted *wanted, GError **error) {
    g_autoptr(MtfPairs) pairs = g_new0(MtfPairs, 1);
    pairs->source_length = wanted->source_length;
    pairs->length = wanted->length;
    pairs->vocabulary = wanted->vocabulary;
    pairs->labels = wanted->labels;
    pairs->text = wanted->text != NULL ? wanted->text : &mtf_pair_bytes;
    pairs->pairs = g_array_new(FALSE, FALSE, sizeof(Pair));
    g_array_set_clear_func(pairs->pairs, clear_pair);
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
    int *const parts[] = {
        row->source,      row->source_segments, row->source_places, row->tokens,
        row->next_tokens, row->segments,        row->places,        row->labels
    };
    for (gsize i = 0; i < G_N_ELEMENTS(parts); i++)
        g_free(parts[i]);
    free_array(pairs->pairs);
    free_array(pairs->train);
    free_array(pairs->held);
    g_free(pairs);
}

/* ---- Laying out ------------------------------------------------------------------------------ */

/* One side of a pair, whose piece begins at `at`; where the next one begins. */
typedef struct {
    int *tokens, *segments, *places;
} Side;

static int64_t lay_side(const Side *side, const GArray *tokens, int segment, int64_t at) {
    for (guint i = 0; i < tokens->len; i++, at++) {
        side->tokens[at] = g_array_index(tokens, int, i);
        side->segments[at] = segment;
        side->places[at] = (int)i;
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

static void lay_labels(MtfPairs *pairs, const GArray *labels) {
    for (int64_t i = 0; i < pairs->labels.places; i++)
        pairs->row.labels[i] =
            labels != NULL && i < labels->len ? g_array_index(labels, int, (guint)i) : MTF_NO_LABEL;
}

static void lay_row(MtfPairs *pairs, const Row *row) {
    MtfPairRow *r = &pairs->row;
    const Side source = { r->source, r->source_segments, r->source_places };
    const Side target = { r->tokens, r->segments, r->places };
    int64_t source_at = 0, target_at = 0;
    clear_row(pairs);
    for (guint i = 0; i < row->count; i++) {
        const Pair *pair = pair_at(pairs, row->first + i);
        if (pair->source != NULL)
            source_at = lay_side(&source, pair->source, (int)i + 1, source_at);
        memcpy(r->next_tokens + target_at, pair->next->data, pair->next->len * sizeof(int));
        target_at = lay_side(&target, pair->tokens, (int)i + 1, target_at);
    }
    lay_labels(pairs, pair_at(pairs, row->first)->labels);
    r->first = &pair_at(pairs, row->first)->text;
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
        g_autofree char *key = pair_key(&pair_at(pairs, i)->text);
        g_checksum_update(digest, (const guchar *)key, -1);
    }
    return g_strdup_printf("%u pairs, %.16s", pairs->pairs->len, g_checksum_get_string(digest));
}

static void count_id(GArray *counts, guint id) {
    if (id >= counts->len)
        g_array_set_size(counts, id + 1);
    g_array_index(counts, double, id) += 1;
}

double mtf_pairs_entropy(const MtfPairs *pairs) {
    double total = 0, entropy = 0;
    g_autoptr(GArray) counts = g_array_new(FALSE, TRUE, sizeof(double));
    for (guint i = 0; i < pairs->pairs->len; i++) {
        const Pair *pair = pair_at(pairs, i);
        const GArray *said = pair->labels != NULL ? pair->labels : pair->next;
        for (guint k = 0; k < said->len; k++)
            if (g_array_index(said, int, k) != MTF_NO_LABEL) {
                count_id(counts, (guint)g_array_index(said, int, k));
                total++;
            }
    }
    for (guint id = 0; id < counts->len; id++) {
        double share = g_array_index(counts, double, id) / total;
        entropy -= share > 0 ? share * log(share) : 0;
    }
    return entropy;
}
