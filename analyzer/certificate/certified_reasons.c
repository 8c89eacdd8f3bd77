// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/certificate/certified_reasons.h"

#define NEVER MTF_CERTIFIED_NEVER

/* ---- impossible ---- */

static bool has_partner(const MtfCertifiedProblem *problem, int edge, int node, int value) {
    const MtfCertifiedNode *other = &problem->nodes[mtf_certified_other_end(problem, edge, node)];
    for (int q = 0; q < other->values; q++)
        if (other->cost[q] < NEVER && *mtf_certified_entry(problem, edge, node, value, q) < NEVER)
            return true;
    return false;
}

bool mtf_certified_is_impossible(const MtfCertifiedProblem *problem, int index, int value) {
    const MtfCertifiedNode *node = &problem->nodes[index];
    if (node->cost[value] == NEVER)
        return true;
    for (guint k = 0; k < node->edges->len; k++)
        if (!has_partner(problem, g_array_index(node->edges, int, k), index, value))
            return true;
    return false;
}

/* ---- replaced ---- */

/* The most that value p costs more than value r across an edge; false where that has no end. */
static bool most_more(const MtfCertifiedProblem *problem, int edge, int node, int p, int r,
                      MtfInt128 *most) {
    const MtfCertifiedNode *other = &problem->nodes[mtf_certified_other_end(problem, edge, node)];
    bool found = false;
    for (int q = 0; q < other->values; q++) {
        int64_t of_r = *mtf_certified_entry(problem, edge, node, r, q);
        int64_t of_p = *mtf_certified_entry(problem, edge, node, p, q);
        if (other->cost[q] == NEVER || of_r == NEVER)
            continue;
        if (of_p == NEVER)
            return false;
        MtfInt128 more = (MtfInt128)of_p - of_r;
        *most = found ? MAX(*most, more) : more;
        found = true;
    }
    return found;
}

/* Whether value p can take the place of value r in every choice: never costlier, never larger. */
static bool replaces(const MtfCertifiedProblem *problem, int index, const GPtrArray *spans, int p,
                     int r) {
    const MtfCertifiedNode *node = &problem->nodes[index];
    if (node->cost[p] == NEVER)
        return false;
    for (guint k = 0; k < spans->len; k++) {
        const MtfCertifiedSpan *span = g_ptr_array_index(spans, k);
        if (span->usage[p] > span->usage[r])
            return false;
    }
    MtfInt128 more = (MtfInt128)node->cost[p] - node->cost[r];
    for (guint k = 0; k < node->edges->len; k++) {
        MtfInt128 most = 0;
        if (!most_more(problem, g_array_index(node->edges, int, k), index, p, r, &most))
            return false;
        more += most;
    }
    return more <= 0;
}

bool mtf_certified_is_replaced(const MtfCertifiedProblem *problem, int index, const bool *kept,
                               int r) {
    GPtrArray *spans = mtf_certified_spans(problem, index);
    bool replaced = false;
    for (int p = 0; spans != NULL && p < problem->nodes[index].values && !replaced; p++)
        replaced = kept[p] && replaces(problem, index, spans, p, r);
    if (spans != NULL)
        g_ptr_array_unref(spans);
    return replaced;
}

/* ---- too large ---- */

/* Adds up the least usage of all nodes in every row. */
static bool find_least(MtfCertifiedProblem *problem) {
    g_free(problem->least);
    problem->least = g_new0(int64_t, problem->rows + 1);
    bool fits = true;
    for (int v = 0; v < problem->node_count; v++) {
        const MtfCertifiedNode *node = &problem->nodes[v];
        GPtrArray *spans = node->alive ? mtf_certified_spans(problem, v) : NULL;
        fits &= spans != NULL || !node->alive;
        for (guint k = 0; spans != NULL && k < spans->len; k++) {
            const MtfCertifiedSpan *span = g_ptr_array_index(spans, k);
            int64_t least = mtf_certified_least_usage(node, span->usage);
            for (int r = span->first; r < span->last; r++)
                fits &= !__builtin_add_overflow(problem->least[r], least, &problem->least[r]);
        }
        if (spans != NULL)
            g_ptr_array_unref(spans);
    }
    if (!fits)
        g_clear_pointer(&problem->least, g_free);
    return fits;
}

/* Whether the value overfills a row beside the least of all others, as far as `least` knows: as values
 * go it rises, so that what it says stays true. */
static bool overfills(const MtfCertifiedProblem *problem, int index, int value) {
    const MtfCertifiedNode *node = &problem->nodes[index];
    GPtrArray *spans = mtf_certified_spans(problem, index);
    bool overfull = false;
    for (guint k = 0; spans != NULL && k < spans->len && !overfull; k++) {
        const MtfCertifiedSpan *span = g_ptr_array_index(spans, k);
        MtfInt128 more =
            (MtfInt128)span->usage[value] - mtf_certified_least_usage(node, span->usage);
        for (int r = span->first; r < span->last && !overfull; r++)
            overfull = more + problem->least[r] > problem->capacity[r];
    }
    if (spans != NULL)
        g_ptr_array_unref(spans);
    return overfull;
}

bool mtf_certified_is_too_large(MtfCertifiedProblem *problem, int node, int value) {
    if (problem->rows == 0)
        return false;
    if (problem->least != NULL && overfills(problem, node, value))
        return true;
    return find_least(problem) && overfills(problem, node, value);
}

bool mtf_certified_is_useless(MtfCertifiedProblem *problem, int node, int value) {
    return mtf_certified_is_impossible(problem, node, value) ||
           mtf_certified_is_too_large(problem, node, value);
}

/* ---- nothing left ---- */

static bool has_value(const MtfCertifiedNode *node) {
    for (int p = 0; p < node->values; p++)
        if (node->cost[p] < NEVER)
            return true;
    return false;
}

void mtf_certified_exclude(MtfCertifiedProblem *problem, int node, int value) {
    problem->nodes[node].cost[value] = NEVER;
    problem->is_dead |= !has_value(&problem->nodes[node]);
}

bool mtf_certified_check_dead(MtfCertifiedProblem *problem) {
    for (int v = 0; v < problem->node_count; v++)
        if (problem->nodes[v].alive && !has_value(&problem->nodes[v]))
            return true;
    if (!find_least(problem))
        return false;
    for (int r = 0; r < problem->rows; r++)
        if (problem->least[r] > problem->capacity[r])
            return true;
    return false;
}
