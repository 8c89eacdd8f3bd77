// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/rules/rule_search_close.h"

#include "analyzer/solver/problem/vector_units.h"

#include <string.h>

/* Computing the memory of an assignment counts as this many nodes of the search tree. */
#define MEMORY_NODES 20

/* Half-steps whose memory prunes, at most. */
#define MOST_ROWS 12

/* What some assignments cost and use at least. */
typedef struct {
    int64_t cheapest;
    int64_t smallest[MOST_ROWS]; /* bytes at each row */
} Least;

/* Assignments of a scope are in ascending order of their digits and dimensions are fixed in
 * ascending order, so those that agree with the dimensions fixed so far are a range. */
typedef struct {
    int low, high;
    Least least;
} Range;

/* A scope that has a dimension, and where: so many of its dimensions are fixed before. */
typedef struct {
    int scope, position;
} Member;

/* A half-step at which an assignment that was looked at needs too much. */
typedef struct {
    int half_step;
    int64_t **bytes; /* bytes[s][k]: of what lives then and lies in scope s, under its
                        assignment k */
} Row;

typedef struct {
    const MtfRuleProgram *program;
    const MtfRuleTables *tables;
    const MtfRuleLevels *levels;
    int64_t limit;
    int n_dims, n_axes, n_scopes;
    MtfRules *at;    /* fixed so far */
    MtfRules *rules; /* the best */
    int64_t *cost;
    GArray **members; /* members[dim]: Member */
    Range **ranges;   /* ranges[s][i]: of scope s, when i of its dimensions are fixed */
    Least *sums;      /* sums[depth]: over all scopes */
    int nodes;        /* left */
    Row rows[MOST_ROWS];
    int n_rows;
    bool fresh_row; /* the search begins again with it */
    bool smallest;  /* the least memory is looked for, whatever it costs */
} Close;

MTF_FOR_EACH_UNIT static int64_t least_of(const int64_t *list, int n) {
    int64_t least = INT64_MAX;
    for (int k = 0; k < n; k++)
        least = MIN(least, list[k]);
    return least;
}

/* Fills in what the assignments of a range cost and use at least. */
static void measure_range(const Close *c, int s, Range *range) {
    int low = range->low, n = range->high - range->low;
    range->least.cheapest = least_of(c->levels->nanoseconds[s] + low, n);
    for (int r = 0; r < c->n_rows; r++)
        range->least.smallest[r] = least_of(c->rows[r].bytes[s] + low, n);
}

/* The first assignment of a range whose dims[i] lies on `axis` or behind it. */
static int first_from(const MtfRuleTable *table, const Range *range, int i, int axis) {
    int low = range->low, high = range->high;
    while (low < high) {
        int middle = (low + high) / 2;
        if (table->axes[middle * table->n_dims + i] < axis)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Adds to a sum what a scope's range needs more than the wider one before it did. */
static void replace_least(const Close *c, const Least *before, const Least *now, Least *sum) {
    sum->cheapest += now->cheapest - before->cheapest;
    for (int r = 0; r < c->n_rows; r++)
        sum->smallest[r] += now->smallest[r] - before->smallest[r];
}

/* Fills the ranges of scopes with dimension `depth` for it on `axis`: those of others stay. Returns what
 * assignments there cost (or use) at least; INT64_MAX when none is legal. */
static int64_t descend(const Close *c, int depth, int axis) {
    Least *sum = &c->sums[depth + 1];
    *sum = c->sums[depth];
    for (guint m = 0; m < c->members[depth]->len; m++) {
        Member member = g_array_index(c->members[depth], Member, m);
        const MtfRuleTable *table = &c->tables->tables[member.scope];
        const Range *above = &c->ranges[member.scope][member.position];
        Range *below = &c->ranges[member.scope][member.position + 1];
        below->low = first_from(table, above, member.position, axis);
        below->high = first_from(table, above, member.position, axis + 1);
        if (below->low == below->high)
            return INT64_MAX;
        measure_range(c, member.scope, below);
        replace_least(c, &above->least, &below->least, sum);
    }
    int64_t most = 0;
    for (int r = 0; r < c->n_rows; r++)
        most = MAX(most, sum->smallest[r]);
    return most > c->limit ? INT64_MAX : c->smallest ? most : sum->cheapest;
}

static bool is_excluded(const Close *c) {
    for (guint e = 0; e < c->program->excluded->len; e++) {
        const MtfRules *other = g_ptr_array_index(c->program->excluded, e);
        if (memcmp(other->axis, c->at->axis, (gsize)c->n_dims * sizeof *other->axis) == 0)
            return true;
    }
    return false;
}

/* What each scope's assignments need of a half-step. */
static void add_row(Close *c, int half_step) {
    const MtfRuleTerms *terms = c->tables->terms;
    Row *row = &c->rows[c->n_rows++];
    row->half_step = half_step;
    row->bytes = g_new0(int64_t *, c->n_scopes + 1);
    for (int s = 0; s < c->n_scopes; s++)
        row->bytes[s] = g_new0(int64_t, c->tables->tables[s].n + 1);
    for (int t = 0; t < (int)terms->graph->tensors->len; t++) {
        int class = terms->tensor_class[t], s = mtf_rule_class(terms, class)->maximal;
        if (terms->lives[t].begin > half_step || terms->lives[t].end < half_step)
            continue;
        for (int k = 0; k < c->tables->tables[s].n; k++)
            row->bytes[s][k] += c->tables->slices[class][k];
    }
    c->fresh_row = true;
}

static void free_rows(Close *c) {
    for (int r = 0; r < c->n_rows; r++) {
        for (int s = 0; s < c->n_scopes; s++)
            g_free(c->rows[r].bytes[s]);
        g_free(c->rows[r].bytes);
    }
}

/* Whether an assignment keeps the limit; where it does not, that half-step prunes from now on. */
static bool keeps_limit(Close *c) {
    int half_step;
    if (c->limit == INT64_MAX)
        return true;
    c->nodes -= MEMORY_NODES;
    int64_t bytes = mtf_rule_tables_memory(c->tables, c->at, &half_step);
    if (bytes <= c->limit) {
        c->limit -= c->smallest ? c->limit - bytes + 1 : 0;
        return true;
    }
    for (int r = 0; r < c->n_rows; r++)
        if (c->rows[r].half_step == half_step)
            return false;
    if (c->n_rows < MOST_ROWS)
        add_row(c, half_step);
    return false;
}

static void take_leaf(Close *c) {
    if (is_excluded(c) || !keeps_limit(c))
        return;
    if (!c->smallest)
        *c->cost = mtf_rule_tables_price(c->tables, c->at);
    memcpy(c->rules->axis, c->at->axis, (gsize)c->n_dims * sizeof *c->at->axis);
}

/* A dimension on an axis, and what assignments with that cost at least. */
typedef struct {
    int axis;
    int64_t least;
} Child;

/* The most promising first: what is found early prunes the rest. */
static int rank_children(const Close *c, int depth, Child *children) {
    int end = c->members[depth]->len > 0 ? c->n_axes : 0, count = 0;
    for (int axis = -1; axis < end; axis++) {
        Child child = { axis, descend(c, depth, axis) };
        int at = count++;
        for (; at > 0 && children[at - 1].least > child.least; at--)
            children[at] = children[at - 1];
        children[at] = child;
    }
    return count;
}

static bool close_from(Close *c, int depth) {
    if (c->nodes-- <= 0)
        return false;
    if (depth == c->n_dims) {
        take_leaf(c);
        return !c->fresh_row;
    }
    Child children[MTF_MAX_MESH_AXES + 1];
    int count = rank_children(c, depth, children);
    for (int i = 0; i < count && children[i].least < *c->cost; i++) {
        c->at->axis[depth] = children[i].axis;
        descend(c, depth, children[i].axis);
        if (!close_from(c, depth + 1))
            return false;
    }
    c->at->axis[depth] = -1;
    return true;
}

/* From the first dimension on, again with each new row. */
static bool close_all(Close *c) {
    bool done;
    do {
        c->fresh_row = false;
        c->sums[0] = (Least){ 0 };
        for (int s = 0; s < c->n_scopes; s++) {
            Range *all = &c->ranges[s][0];
            *all = (Range){ .high = c->tables->tables[s].n };
            measure_range(c, s, all);
            replace_least(c, &(Least){ 0 }, &all->least, &c->sums[0]);
        }
        done = close_from(c, 0);
    } while (c->fresh_row && c->nodes > 0);
    return done && !c->fresh_row;
}

static void make_ranges(Close *c) {
    c->members = g_new(GArray *, c->n_dims + 1);
    c->ranges = g_new(Range *, c->n_scopes + 1);
    c->sums = g_new(Least, c->n_dims + 1);
    for (int d = 0; d < c->n_dims; d++)
        c->members[d] = g_array_new(FALSE, FALSE, sizeof(Member));
    for (int s = 0; s < c->n_scopes; s++) {
        const MtfRuleTable *table = &c->tables->tables[s];
        c->ranges[s] = g_new(Range, table->n_dims + 1);
        for (int i = 0; i < table->n_dims; i++) {
            Member member = { s, i };
            g_array_append_val(c->members[table->dims[i]], member);
        }
    }
}

static void free_ranges(Close *c) {
    for (int d = 0; d < c->n_dims; d++)
        g_array_unref(c->members[d]);
    for (int s = 0; s < c->n_scopes; s++)
        g_free(c->ranges[s]);
    g_free(c->members);
    g_free(c->ranges);
    g_free(c->sums);
}

/* With `cost` what is pruned against, and `limit` bytes; that of the best, where the least is looked for. */
static bool close_program(const MtfRuleProgram *program, bool smallest, MtfRules *rules,
                          int64_t *limit, int64_t *cost) {
    const MtfRuleTables *tables = program->tables;
    g_autoptr(MtfRules) at = mtf_rules_new(tables->terms->graph);
    Close c = { .program = program,
                .tables = tables,
                .levels = program->levels,
                .limit = *limit,
                .n_dims = at->n_dims,
                .n_axes = tables->mesh.n_axes,
                .n_scopes = (int)tables->terms->maximal->len,
                .at = at,
                .rules = rules,
                .cost = cost,
                .smallest = smallest,
                .nodes = program->nodes };
    make_ranges(&c);
    bool done = close_all(&c);
    *limit = c.limit;
    free_rows(&c);
    free_ranges(&c);
    return done;
}

bool mtf_rule_close(const MtfRuleProgram *program, int64_t limit, MtfRules *rules, int64_t *cost) {
    return close_program(program, false, rules, &limit, cost);
}

bool mtf_rule_close_smallest(const MtfRuleProgram *program, MtfRules *rules, int64_t *bytes) {
    int64_t any = INT64_MAX, limit = INT64_MAX - 1;
    bool done = close_program(program, true, rules, &limit, &any);
    *bytes = limit + 1;
    return done && limit < INT64_MAX - 1;
}
