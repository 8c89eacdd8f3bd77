// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/rules/rule_search_close.h"

#include <string.h>

/* Assignments of a scope are in ascending order of their digits and dimensions are fixed in
 * ascending order, so those that agree with the dimensions fixed so far are a range. */
typedef struct {
    int low, high;
    int64_t cheapest;
} Range;

typedef struct {
    const MtfRuleProgram *program;
    const MtfRuleTables *tables;
    int64_t limit;
    int n_dims, n_axes, n_scopes;
    MtfRules *at;    /* fixed so far */
    MtfRules *rules; /* the best */
    int64_t *cost;
    Range *ranges; /* ranges[depth * n_scopes + s] */
    int nodes;     /* left */
} Close;

static int64_t cheapest_of(const MtfRuleTable *table, int low, int high) {
    int64_t cheapest = INT64_MAX;
    for (int k = low; k < high; k++)
        cheapest = MIN(cheapest, table->nanoseconds[k]);
    return cheapest;
}

static int position_of(const MtfRuleTable *table, int dim) {
    for (int i = 0; i < table->n_dims; i++)
        if (table->dims[i] == dim)
            return i;
    return -1;
}

/* The part of a range whose dims[i] lies on `axis`; empty when there is none. */
static Range narrow(const MtfRuleTable *table, const Range *range, int i, int axis) {
    Range part = { range->low, range->low, INT64_MAX };
    while (part.low < range->high && table->axes[part.low * table->n_dims + i] < axis)
        part.low++;
    part.high = part.low;
    while (part.high < range->high && table->axes[part.high * table->n_dims + i] == axis)
        part.high++;
    part.cheapest = cheapest_of(table, part.low, part.high);
    return part;
}

/* Fills the ranges below `depth` with dimension `depth` on `axis`. False when nothing there can be
 * legal and cheaper than the best. */
static bool descend(const Close *c, int depth, int axis) {
    const Range *above = c->ranges + depth * c->n_scopes;
    Range *below = c->ranges + (depth + 1) * c->n_scopes;
    int64_t sum = 0;
    for (int s = 0; s < c->n_scopes; s++) {
        const MtfRuleTable *table = &c->tables->tables[s];
        int i = position_of(table, depth);
        below[s] = i < 0 ? above[s] : narrow(table, &above[s], i, axis);
        if (below[s].low == below[s].high)
            return false;
        sum += below[s].cheapest;
    }
    return sum < *c->cost;
}

static bool is_excluded(const Close *c) {
    for (guint e = 0; e < c->program->excluded->len; e++) {
        const MtfRules *other = g_ptr_array_index(c->program->excluded, e);
        if (memcmp(other->axis, c->at->axis, (gsize)c->n_dims * sizeof *other->axis) == 0)
            return true;
    }
    return false;
}

static void take_leaf(const Close *c) {
    int half_step;
    if (is_excluded(c) || mtf_rule_tables_memory(c->tables, c->at, &half_step) > c->limit)
        return;
    *c->cost = mtf_rule_tables_price(c->tables, c->at);
    memcpy(c->rules->axis, c->at->axis, (gsize)c->n_dims * sizeof *c->at->axis);
}

static bool is_in_scope(const Close *c, int dim) {
    for (int s = 0; s < c->n_scopes; s++)
        if (position_of(&c->tables->tables[s], dim) >= 0)
            return true;
    return false;
}

static bool close_from(Close *c, int depth) {
    if (c->nodes-- <= 0)
        return false;
    if (depth == c->n_dims) {
        take_leaf(c);
        return true;
    }
    int end = is_in_scope(c, depth) ? c->n_axes : 0;
    for (int axis = -1; axis < end; axis++) {
        c->at->axis[depth] = axis;
        if (descend(c, depth, axis) && !close_from(c, depth + 1))
            return false;
    }
    c->at->axis[depth] = -1;
    return true;
}

bool mtf_rule_close(const MtfRuleProgram *program, int64_t limit, MtfRules *rules, int64_t *cost) {
    const MtfRuleTables *tables = program->tables;
    g_autoptr(MtfRules) at = mtf_rules_new(tables->terms->graph);
    Close c = { .program = program,
                .tables = tables,
                .limit = limit,
                .n_dims = at->n_dims,
                .n_axes = tables->mesh.n_axes,
                .n_scopes = (int)tables->terms->maximal->len,
                .at = at,
                .rules = rules,
                .cost = cost,
                .nodes = MTF_RULE_CLOSE_NODES };
    g_autofree Range *ranges = g_new(Range, (gsize)(c.n_dims + 1) * (gsize)c.n_scopes + 1);
    c.ranges = ranges;
    for (int s = 0; s < c.n_scopes; s++) {
        const MtfRuleTable *table = &tables->tables[s];
        ranges[s] = (Range){ 0, table->n, cheapest_of(table, 0, table->n) };
    }
    return close_from(&c, 0);
}
