// SPDX-License-Identifier: GPL-3.0-or-later
/* Byte-pair encoding: the pieces so far are a linked list; a heap holds the pairs that can be joined,
 * the one that was learned first on top, of equal ones the leftmost. A piece of n characters takes
 * n log n steps. */
#include "runtime/text/token_model.h"

#include <string.h>

typedef struct {
    int id; /* -1: joined to the one before */
    int before, next;
} Symbol;

/* A pair that could be joined when it was noted. */
typedef struct {
    int rank, at, left, right, id;
} Candidate;

typedef struct {
    const MtfTokenModel *model;
    GArray *symbols; /* Symbol */
    GArray *heap;    /* Candidate */
} Joining;

static Symbol *symbol(const Joining *j, int i) {
    return &g_array_index(j->symbols, Symbol, i);
}

static Candidate *candidate(const Joining *j, guint i) {
    return &g_array_index(j->heap, Candidate, i);
}

static bool comes_first(const Candidate *a, const Candidate *b) {
    return a->rank < b->rank || (a->rank == b->rank && a->at < b->at);
}

static void swap(Candidate *a, Candidate *b) {
    Candidate t = *a;
    *a = *b;
    *b = t;
}

static void push(Joining *j, Candidate c) {
    g_array_append_val(j->heap, c);
    for (guint i = j->heap->len - 1; i > 0; i = (i - 1) / 2) {
        if (!comes_first(candidate(j, i), candidate(j, (i - 1) / 2)))
            return;
        swap(candidate(j, i), candidate(j, (i - 1) / 2));
    }
}

static Candidate pop(Joining *j) {
    Candidate top = *candidate(j, 0);
    *candidate(j, 0) = *candidate(j, j->heap->len - 1);
    g_array_set_size(j->heap, j->heap->len - 1);
    for (guint i = 0, child; (child = 2 * i + 1) < j->heap->len; i = child) {
        if (child + 1 < j->heap->len && comes_first(candidate(j, child + 1), candidate(j, child)))
            child++;
        if (!comes_first(candidate(j, child), candidate(j, i)))
            break;
        swap(candidate(j, i), candidate(j, child));
    }
    return top;
}

/* Notes the pair of symbol `at` and the next, if there is one that was learned. */
static void note(Joining *j, int at) {
    if (at < 0 || symbol(j, at)->next < 0)
        return;
    int left = symbol(j, at)->id, right = symbol(j, symbol(j, at)->next)->id;
    gint64 key = (gint64)left << 32 | right;
    const MtfTokenMerge *merge =
        left < 0 || right < 0 ? NULL : g_hash_table_lookup(j->model->merges, &key);
    if (merge != NULL)
        push(j, (Candidate){ merge->rank, at, left, right, merge->id });
}

static void join_all(Joining *j) {
    for (int i = 0; i + 1 < (int)j->symbols->len; i++)
        note(j, i);
    while (j->heap->len > 0) {
        Candidate c = pop(j);
        Symbol *left = symbol(j, c.at);
        if (left->id != c.left || left->next < 0 || symbol(j, left->next)->id != c.right)
            continue;
        int gone = left->next;
        left->id = c.id;
        left->next = symbol(j, gone)->next;
        if (left->next >= 0)
            symbol(j, left->next)->before = c.at;
        symbol(j, gone)->id = -1;
        note(j, symbol(j, c.at)->before);
        note(j, c.at);
    }
}

/* The ids of a character: its own, or its bytes', or the unknown one. */
static bool add_character(Joining *j, const char *at, const char *next, bool first,
                          GArray *scratch) {
    const MtfTokenModel *m = j->model;
    g_autofree char *text =
        g_strdup_printf("%s%.*s%s", !first && m->prefix != NULL ? m->prefix : "", (int)(next - at),
                        at, *next == '\0' && m->suffix != NULL ? m->suffix : "");
    int id = mtf_token_model_find(m, text);
    g_array_set_size(scratch, 0);
    if (id >= 0)
        g_array_append_val(scratch, id);
    else if (!m->byte_fallback || !mtf_token_model_bytes(m, at, (gsize)(next - at), scratch)) {
        guint n = j->symbols->len;
        if (m->unknown < 0)
            return false;
        if (!m->fuse_unknown || n == 0 || symbol(j, (int)n - 1)->id != m->unknown)
            g_array_append_val(scratch, m->unknown);
    }
    for (guint i = 0; i < scratch->len; i++) {
        int n = (int)j->symbols->len;
        Symbol added = { g_array_index(scratch, int, i), n - 1, n + 1 };
        g_array_append_val(j->symbols, added);
    }
    return true;
}

bool mtf_encode_pairs(const MtfTokenModel *model, const char *piece, GArray *ids) {
    int whole = model->ignore_merges ? mtf_token_model_find(model, piece) : -1;
    if (whole >= 0) {
        g_array_append_val(ids, whole);
        return true;
    }
    g_autoptr(GArray) symbols = g_array_new(FALSE, FALSE, sizeof(Symbol));
    g_autoptr(GArray) heap = g_array_new(FALSE, FALSE, sizeof(Candidate));
    g_autoptr(GArray) scratch = g_array_new(FALSE, FALSE, sizeof(int));
    Joining j = { model, symbols, heap };
    for (const char *at = piece; *at != '\0'; at = g_utf8_next_char(at))
        if (!add_character(&j, at, g_utf8_next_char(at), at == piece, scratch))
            return false;
    if (symbols->len == 0)
        return true;
    symbol(&j, (int)symbols->len - 1)->next = -1;
    join_all(&j);
    for (int i = 0; i >= 0; i = symbol(&j, i)->next)
        g_array_append_val(ids, symbol(&j, i)->id);
    return true;
}
