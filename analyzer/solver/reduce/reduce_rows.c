// SPDX-License-Identifier: GPL-3.0-or-later
/* Memory rows. In turn:
 *
 *   1. the pieces of a node are cut into disjoint ones, so that comparing pieces compares rows;
 *
 *          [===a===)                 [a)[a+b)[b)
 *              [===b===)     ->
 *
 *   2. the memory that every value of a piece uses is taken from the room of its rows;
 *   3. a row that cannot overflow, whatever is chosen, goes;
 *   4. a row goes whose pieces all reach into a neighbouring row with no more room. */
#include "analyzer/solver/reduce/core_certificate.h"
#include "analyzer/solver/reduce/reductions.h"

#include <stdlib.h>
#include <string.h>

static MtfCorePiece *piece_at(const MtfCoreNode *node, guint k) {
    return &g_array_index(node->pieces, MtfCorePiece, k);
}

static int compare_pieces(const void *left, const void *right) {
    const MtfCorePiece *a = left, *b = right;
    return a->first != b->first ? a->first - b->first : a->last - b->last;
}

static bool overlap(GArray *pieces) {
    for (guint k = 0; k + 1 < pieces->len; k++)
        if (g_array_index(pieces, MtfCorePiece, k).last >
            g_array_index(pieces, MtfCorePiece, k + 1).first)
            return true;
    return false;
}

static int compare_ints(const void *left, const void *right) {
    return *(const int *)left - *(const int *)right;
}

/* The sum of all pieces that cover the row, shared; NULL when that is zero for every value. */
static const int64_t *usage_in_row(MtfCore *core, const MtfCoreNode *node, int row) {
    int64_t *sum = mtf_core_new_costs((gsize)node->values);
    memset(sum, 0, (gsize)node->values * sizeof *sum);
    bool some = false;
    for (guint k = 0; k < node->pieces->len; k++) {
        const MtfCorePiece *piece = piece_at(node, k);
        if (piece->first > row || piece->last <= row)
            continue;
        for (int p = 0; p < node->values; p++) {
            sum[p] += piece->usage[p];
            some |= piece->usage[p] != 0;
        }
    }
    const int64_t *usage = mtf_shared_keep(core->shared, sum);
    if (some)
        return usage;
    mtf_shared_unref(core->shared, usage);
    return NULL;
}

/* Appends a piece, or lengthens the last one when it is the same up to its end. */
static void append_piece(MtfCore *core, GArray *pieces, MtfCorePiece piece) {
    if (pieces->len > 0) {
        MtfCorePiece *last = &g_array_index(pieces, MtfCorePiece, pieces->len - 1);
        if (last->last == piece.first && last->usage == piece.usage) {
            last->last = piece.last;
            mtf_shared_unref(core->shared, piece.usage);
            return;
        }
    }
    g_array_append_val(pieces, piece);
}

/* Where pieces begin and end, in order: `count` of them. */
static int *borders_of(const MtfCoreNode *node, guint count) {
    int *borders = g_new(int, count);
    for (guint k = 0; k < node->pieces->len; k++) {
        borders[2 * k] = piece_at(node, k)->first;
        borders[2 * k + 1] = piece_at(node, k)->last;
    }
    qsort(borders, count, sizeof *borders, compare_ints);
    return borders;
}

static void cut_pieces(MtfCore *core, MtfCoreNode *node) {
    guint count = 2 * node->pieces->len;
    g_autofree int *borders = borders_of(node, count);
    GArray *cut = g_array_new(FALSE, FALSE, sizeof(MtfCorePiece));
    for (guint i = 0; i + 1 < count; i++) {
        if (borders[i] == borders[i + 1])
            continue;
        const int64_t *usage = usage_in_row(core, node, borders[i]);
        if (usage != NULL)
            append_piece(core, cut, (MtfCorePiece){ borders[i], borders[i + 1], usage });
    }
    for (guint k = 0; k < node->pieces->len; k++)
        mtf_shared_unref(core->shared, piece_at(node, k)->usage);
    g_array_unref(node->pieces);
    node->pieces = cut;
}

static int64_t least_of(const int64_t *list, int count) {
    int64_t least = list[0];
    for (int i = 1; i < count; i++)
        least = MIN(least, list[i]);
    return least;
}

static int64_t most_of(const int64_t *list, int count) {
    int64_t most = list[0];
    for (int i = 1; i < count; i++)
        most = MAX(most, list[i]);
    return most;
}

/* Drops pieces that use nothing or cover no row. */
static bool drop_empty_pieces(MtfCore *core, MtfCoreNode *node) {
    guint kept = 0;
    for (guint k = 0; k < node->pieces->len; k++) {
        MtfCorePiece piece = *piece_at(node, k);
        if (piece.first < piece.last && most_of(piece.usage, node->values) > 0)
            *piece_at(node, kept++) = piece;
        else
            mtf_shared_unref(core->shared, piece.usage);
    }
    bool changed = kept < node->pieces->len;
    g_array_set_size(node->pieces, kept);
    return changed;
}

/* Takes the piece's least usage out of it; `change` collects what its rows lose, by differences. */
static void take_least(MtfCore *core, MtfCorePiece *piece, int values, int64_t *change) {
    int64_t least = least_of(piece->usage, values);
    if (least == 0)
        return;
    int64_t *usage = mtf_core_new_costs((gsize)values);
    for (int p = 0; p < values; p++)
        usage[p] = piece->usage[p] - least;
    mtf_core_set_usage(core, piece, usage);
    change[piece->first] += least;
    change[piece->last] -= least;
}

static void subtract_least_usage(MtfCore *core, int64_t *change) {
    for (int v = 0; v < core->node_count; v++) {
        MtfCoreNode *node = &core->nodes[v];
        if (!node->alive || node->pieces->len == 0)
            continue;
        g_array_sort(node->pieces, compare_pieces);
        if (overlap(node->pieces))
            cut_pieces(core, node);
        for (guint k = 0; k < node->pieces->len; k++)
            take_least(core, piece_at(node, k), node->values, change);
    }
}

static void take_from_capacity(MtfCore *core, const int64_t *change) {
    int64_t sum = 0;
    for (int r = 0; r < core->rows; r++) {
        sum += change[r];
        core->capacity[r] -= sum;
        if (core->capacity[r] < 0)
            core->infeasible = true;
    }
}

/* Counts in starts[r] and ends[r] the pieces that begin at row r or end before it, and in most[r]
 * the memory when every node takes its largest value there. */
static void survey(const MtfCore *core, int *starts, int *ends, int64_t *most) {
    for (int v = 0; v < core->node_count; v++) {
        const MtfCoreNode *node = &core->nodes[v];
        for (guint k = 0; node->alive && k < node->pieces->len; k++) {
            const MtfCorePiece *piece = piece_at(node, k);
            int64_t largest = most_of(piece->usage, node->values);
            if (largest == 0)
                continue;
            starts[piece->first]++;
            ends[piece->last]++;
            most[piece->first] += largest;
            most[piece->last] -= largest;
        }
    }
    for (int r = 1; r <= core->rows; r++)
        most[r] += most[r - 1];
}

/* Marks the rows to keep; returns how many. */
static int choose_rows(const MtfCore *core, bool *keep) {
    g_autofree int *starts = g_new0(int, core->rows + 1), *ends = g_new0(int, core->rows + 1);
    g_autofree int64_t *most = g_new0(int64_t, core->rows + 1);
    survey(core, starts, ends, most);
    int kept = 0;
    int last = -1; /* the last row kept so far */
    int fresh = 0; /* pieces that begin after it, up to r */
    for (int r = 0; r < core->rows; r++) {
        fresh += starts[r];
        bool covered_right =
            r + 1 < core->rows && ends[r + 1] == 0 && core->capacity[r + 1] <= core->capacity[r];
        bool covered_left = last >= 0 && fresh == 0 && core->capacity[last] <= core->capacity[r];
        keep[r] = most[r] > core->capacity[r] && !covered_right && !covered_left;
        if (!keep[r])
            continue;
        last = r;
        fresh = 0;
        kept++;
    }
    return kept;
}

static void renumber_pieces(const MtfCoreNode *node, const int *new_row) {
    for (guint k = 0; k < node->pieces->len; k++) {
        MtfCorePiece *piece = piece_at(node, k);
        piece->first = new_row[piece->first];
        piece->last = new_row[piece->last];
    }
}

static void renumber_rows(MtfCore *core, const bool *keep) {
    g_autofree int *new_row = g_new(int, core->rows + 1);
    int count = 0;
    for (int r = 0; r < core->rows; r++) {
        new_row[r] = count;
        core->capacity[count] = core->capacity[r];
        core->row_time[count] = core->row_time[r];
        count += keep[r];
    }
    new_row[core->rows] = count;
    for (int v = 0; v < core->node_count; v++)
        if (core->nodes[v].alive)
            renumber_pieces(&core->nodes[v], new_row);
    core->rows = count;
    mtf_certify_rows(core);
}

static bool drop_all_empty_pieces(MtfCore *core) {
    bool changed = false;
    for (int v = 0; v < core->node_count; v++)
        if (core->nodes[v].alive)
            changed |= drop_empty_pieces(core, &core->nodes[v]);
    return changed;
}

void mtf_core_relax_rows(MtfCore *core, const bool *keep) {
    renumber_rows(core, keep);
    drop_all_empty_pieces(core);
}

bool mtf_reduce_rows(MtfCore *core) {
    g_autofree int64_t *change = g_new0(int64_t, core->rows + 1);
    subtract_least_usage(core, change);
    take_from_capacity(core, change);
    if (core->infeasible) {
        mtf_certificate_word(core->certificate, "dead");
        return true;
    }
    g_autofree bool *keep = g_new0(bool, core->rows + 1);
    int kept = choose_rows(core, keep);
    bool changed = kept < core->rows;
    if (changed)
        renumber_rows(core, keep);
    return drop_all_empty_pieces(core) || changed;
}
