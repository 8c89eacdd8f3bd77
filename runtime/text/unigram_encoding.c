// SPDX-License-Identifier: GPL-3.0-or-later
/* The row of entries that is a piece with the largest sum of scores: best[i] is that of the first i
 * bytes, and every entry that begins there may lengthen it. Where no entry is the single character, the
 * unknown one stands for it. */
#include "runtime/text/token_model.h"

#include <math.h>
#include <string.h>

typedef struct {
    double score;
    int from; /* byte at which the last entry begins; -1: not reached */
    int id;
} Best;

static void offer(Best *best, int from, int to, double score, int id) {
    if (best[to].from >= 0 && best[to].score >= best[from].score + score)
        return;
    best[to] = (Best){ best[from].score + score, from, id };
}

/* Offers all entries that begin at byte `from`. */
static void lengthen(const MtfTokenModel *model, const char *piece, int from, Best *best,
                     GString *text) {
    const char *begin = piece + from, *first = g_utf8_next_char(begin);
    bool single = false;
    g_string_truncate(text, 0);
    for (const char *at = begin; *at != '\0' && at - begin < model->longest;) {
        const char *next = g_utf8_next_char(at);
        g_string_append_len(text, at, next - at);
        at = next;
        int id = mtf_token_model_find(model, text->str);
        if (id < 0 || id >= (int)model->scores->len)
            continue;
        single |= at == first;
        offer(best, from, (int)(at - piece), g_array_index(model->scores, double, id), id);
    }
    if (!single)
        offer(best, from, (int)(first - piece), model->unknown_score, -1);
}

/* Appends what the bytes [from, to) are that no entry is. */
static bool append_unknown(const MtfTokenModel *model, const char *piece, int from, int to,
                           GArray *ids) {
    if (model->byte_fallback && mtf_token_model_bytes(model, piece + from, (gsize)(to - from), ids))
        return true;
    if (model->unknown >= 0)
        g_array_append_val(ids, model->unknown);
    return model->unknown >= 0;
}

bool mtf_encode_unigrams(const MtfTokenModel *model, const char *piece, GArray *ids) {
    int n = (int)strlen(piece);
    g_autofree Best *best = g_new(Best, n + 1);
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(GArray) ends = g_array_new(FALSE, FALSE, sizeof(int));
    for (int i = 0; i <= n; i++)
        best[i].from = -1;
    best[0] = (Best){ 0, 0, -1 };
    for (const char *at = piece; *at != '\0'; at = g_utf8_next_char(at))
        lengthen(model, piece, (int)(at - piece), best, text);
    for (int at = n; at > 0; at = best[at].from)
        g_array_append_val(ends, at);
    for (int i = (int)ends->len - 1; i >= 0; i--) {
        int end = g_array_index(ends, int, i), from = best[end].from;
        if (best[end].id >= 0) {
            g_array_append_val(ids, best[end].id);
            continue;
        }
        /* unknown characters side by side are one */
        while (i > 0 && best[g_array_index(ends, int, i - 1)].id < 0)
            end = g_array_index(ends, int, --i);
        if (!append_unknown(model, piece, from, end, ids))
            return false;
    }
    return true;
}
