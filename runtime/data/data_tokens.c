// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/data/data_tokens.h"

#include "layouts/base/error.h"
#include "layouts/base/json_reader.h"
#include "layouts/graph/random.h"

#include <inttypes.h>
#include <math.h>

#define STREAM "data/window"
#define LOOKED_AT (INT64_C(1) << 24)
#define BLOCK 4096

struct MtfTokens {
    MtfDataStream *stream,
        *held; /* the second may be NULL: then the end of the first is held out */
    int64_t window, bound;
    int64_t ahead;  /* tokens that are read behind a window */
    int64_t train;  /* tokens of the training part */
    double *values; /* window + ahead */
};

static void free_array(gpointer array) {
    mtf_data_array_free(array);
}

/* The tokens of a text, 32 bits each, in a nameless file. */
static MtfDataArray *encode_text(const MtfTokenizer *tokenizer, const char *path, GError **error) {
    gsize length;
    g_autofree char *text = mtf_file_read(path, &length, error);
    g_autoptr(GArray) ids = g_array_new(FALSE, FALSE, sizeof(int));
    if (text == NULL || !mtf_tokenizer_encode(tokenizer, text, false, ids, error))
        return NULL;
    g_autoptr(MtfDataFile) file = mtf_data_file_new(path, error);
    int64_t bytes = (int64_t)ids->len * (int64_t)sizeof(int);
    if (file == NULL || !mtf_data_file_append(file, ids->data, bytes, error))
        return NULL;
    const MtfInnerArray inner = { .stride = sizeof(int), .records = ids->len, .places = 1 };
    return mtf_data_array_inside(g_steal_pointer(&file), &inner);
}

MtfDataStream *mtf_tokens_stream_open(char *const *files, const MtfTokenizer *tokenizer,
                                      GError **error) {
    g_autoptr(MtfDataStream) stream = mtf_data_stream_new();
    for (; *files != NULL; files++) {
        g_autoptr(GPtrArray) arrays = g_ptr_array_new_with_free_func(free_array);
        if (!mtf_data_arrays_open(*files, true, arrays, error))
            return NULL;
        MtfDataArray *array = arrays->pdata[0];
        if (!mtf_data_array_is_integer(array) || !mtf_data_array_join(array)) {
            mtf_input_error(error, "%s holds no tokens, which are integers, row after row", *files);
            return NULL;
        }
        if (tokenizer != NULL && mtf_data_array_is_text(array)) {
            MtfDataArray *encoded = encode_text(tokenizer, *files, error);
            if (encoded == NULL)
                return NULL;
            mtf_data_stream_add(stream, encoded);
            continue;
        }
        mtf_data_stream_add(stream, g_ptr_array_steal_index(arrays, 0));
    }
    return g_steal_pointer(&stream);
}

static bool check_ids(const MtfTokens *tokens, const MtfDataStream *stream, int64_t first,
                      const double *values, int64_t count, GError **error) {
    for (int64_t i = 0; i < count; i++)
        if (values[i] < 0 || values[i] >= (double)tokens->bound)
            return mtf_input_error(
                error,
                "%s holds %.0f at offset %" PRId64 ", but the model's vocabulary has only %" PRId64
                " tokens: use a larger vocabulary or other data",
                mtf_data_stream_path(stream, first + i), values[i], first + i, tokens->bound);
    return true;
}

static bool check_stream(const MtfTokens *tokens, const MtfDataStream *stream, GError **error) {
    double values[BLOCK];
    int64_t total = MIN(mtf_data_stream_records(stream), LOOKED_AT);
    for (int64_t at = 0; at < total; at += BLOCK) {
        int64_t count = MIN(total - at, BLOCK);
        if (!mtf_data_stream_read(stream, at, count, values, error) ||
            !check_ids(tokens, stream, at, values, count, error))
            return false;
    }
    return true;
}

static bool check_length(const MtfTokens *tokens, const MtfDataStream *stream, GError **error) {
    int64_t total = mtf_data_stream_records(stream);
    return total >= tokens->window + tokens->ahead ||
           mtf_input_error(
               error, "%s holds %" PRId64 " tokens, fewer than one window of %" PRId64 " tokens%s",
               mtf_data_stream_path(stream, total - 1), total, tokens->window,
               tokens->ahead > 0 ? " and the token after it" : "");
}

static bool open_all(MtfTokens *tokens, const MtfTokensWanted *wanted, GError **error) {
    tokens->stream = mtf_tokens_stream_open(wanted->files, wanted->tokenizer, error);
    if (tokens->stream == NULL || !check_length(tokens, tokens->stream, error) ||
        !check_stream(tokens, tokens->stream, error))
        return false;
    int64_t total = mtf_data_stream_records(tokens->stream);
    tokens->train = total;
    if (wanted->held_out == NULL) {
        int64_t kept = total - (int64_t)(wanted->share * (double)total);
        tokens->train = kept >= tokens->window + tokens->ahead ? kept : total;
        return true;
    }
    tokens->held = mtf_tokens_stream_open(wanted->held_out, wanted->tokenizer, error);
    return tokens->held != NULL && check_length(tokens, tokens->held, error) &&
           check_stream(tokens, tokens->held, error);
}

MtfTokens *mtf_tokens_open(const MtfTokensWanted *wanted, GError **error) {
    g_autoptr(MtfTokens) tokens = g_new0(MtfTokens, 1);
    tokens->window = wanted->window;
    tokens->bound = wanted->bound;
    tokens->ahead = wanted->next ? 1 : 0;
    tokens->values = g_new0(double, tokens->window + tokens->ahead);
    return open_all(tokens, wanted, error) ? g_steal_pointer(&tokens) : NULL;
}

void mtf_tokens_close(MtfTokens *tokens) {
    if (tokens == NULL)
        return;
    mtf_data_stream_free(tokens->stream);
    mtf_data_stream_free(tokens->held);
    g_free(tokens->values);
    g_free(tokens);
}

/* ---- Windows ------------------------------------------------------------------------------- */

/* A window's offset: 53 random bits scaled to the places where a window can start. */
static int64_t draw_offset(const MtfTokens *tokens, uint64_t seed, int64_t step, int64_t example) {
    MtfRandom random = mtf_random_stream(seed, STREAM, (uint64_t)step);
    double high = (double)mtf_random_word(&random, 2 * example);
    double low = (double)(mtf_random_word(&random, 2 * example + 1) >> 11);
    int64_t places = MAX(tokens->train - tokens->window, 1);
    int64_t offset = (int64_t)((high * 0x1p-32 + low * 0x1p-53) * (double)places);
    return MIN(offset, places - 1);
}

static bool load(MtfTokens *tokens, const MtfDataStream *stream, int64_t offset, GError **error) {
    int64_t count = tokens->window + tokens->ahead;
    return mtf_data_stream_read(stream, offset, count, tokens->values, error) &&
           check_ids(tokens, stream, offset, tokens->values, count, error);
}

bool mtf_tokens_load(MtfTokens *tokens, uint64_t seed, int64_t step, int64_t example,
                     GError **error) {
    return load(tokens, tokens->stream, draw_offset(tokens, seed, step, example), error);
}

int64_t mtf_tokens_held(const MtfTokens *tokens) {
    int64_t held = tokens->held != NULL ? mtf_data_stream_records(tokens->held)
                                        : mtf_data_stream_records(tokens->stream) - tokens->train;
    return MAX(held - tokens->ahead, 0) / MAX(tokens->window, 1);
}

bool mtf_tokens_load_held(MtfTokens *tokens, int64_t number, GError **error) {
    int64_t offset = number % mtf_tokens_held(tokens) * tokens->window;
    if (tokens->held != NULL)
        return load(tokens, tokens->held, offset, error);
    return load(tokens, tokens->stream, tokens->train + offset, error);
}

int mtf_tokens_get(const MtfTokens *tokens, int64_t place) {
    return (int)tokens->values[place];
}

/* ---- What is said of all ------------------------------------------------------------------- */

/* Adds up how often each token occurs; the counts grow as ids do. */
static bool count_tokens(const MtfTokens *tokens, GArray *counts, int64_t total) {
    double values[BLOCK];
    for (int64_t at = 0; at < total; at += BLOCK) {
        int64_t n = MIN(total - at, BLOCK);
        if (!mtf_data_stream_read(tokens->stream, at, n, values, NULL))
            return false;
        for (int64_t i = 0; i < n; i++) {
            guint id = (guint)values[i];
            if (id >= counts->len)
                g_array_set_size(counts, id + 1);
            g_array_index(counts, int64_t, id)++;
        }
    }
    return true;
}

double mtf_tokens_entropy(const MtfTokens *tokens) {
    int64_t total = MIN(tokens->train, LOOKED_AT);
    g_autoptr(GArray) counts = g_array_new(FALSE, TRUE, sizeof(int64_t));
    if (!count_tokens(tokens, counts, total))
        return NAN;
    double entropy = 0;
    for (guint id = 0; id < counts->len; id++) {
        double n = (double)g_array_index(counts, int64_t, id);
        if (n > 0)
            entropy -= n * log(n / (double)total);
    }
    return entropy / (double)total;
}

char *mtf_tokens_identity(const MtfTokens *tokens, GError **error) {
    g_autoptr(GChecksum) digest = g_checksum_new(G_CHECKSUM_SHA256);
    if (!mtf_data_stream_digest(tokens->stream, digest, error))
        return NULL;
    return g_strdup_printf("%" PRId64 " tokens, %.16s", mtf_data_stream_records(tokens->stream),
                           g_checksum_get_string(digest));
}
