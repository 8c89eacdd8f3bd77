// SPDX-License-Identifier: GPL-3.0-or-later
/* The integer program of a core.
 *
 * Sets
 *     v in nodes (living), p in values of v
 *     e = (a, b) in edges, (p, q) in values of a x values of b that are possible
 *     r in rows
 * Variables
 *     s[v,p]   in {0, 1}   node v takes value p
 *     y[e,p,q] >= 0        edge e is paid at (p, q); whole by itself once every s is
 * Minimise
 *     sum cost_v[p] s[v,p] + sum cost_e[p,q] y[e,p,q]
 * Subject to
 *     one value     sum_p s[v,p] = 1                            for each v
 *     marginals     sum_q y[e,p,q] = s[a,p]                     for each e, p
 *                   sum_p y[e,p,q] = s[b,q]                     for each e, q
 *     memory        sum_v,p usage_vr[p] s[v,p] <= capacity_r        for each r, added lazily
 *
 * The marginal form is tight on trees; y >= s + s - 1 would leave the relaxation useless. */
#include "analyzer/solver/search/core_ilp.h"

#include "analyzer/solver/reduce/core_values.h"

#include <math.h>
#include <string.h>

#define LARGEST_COST 1e12

typedef struct Program {
    const MtfCore *core;
    MtfIlp *ilp;
    const MtfIlpOptions *options;
    int *first;  /* [nodes] index of s[v,0] */
    double unit; /* core costs are divided by it */
} Program;

int64_t mtf_core_ilp_size(const MtfCore *core) {
    MtfCoreSize size = mtf_core_size(core);
    return size.values + size.entries;
}

static double largest_cost(const MtfCore *core) {
    double largest = 0;
    for (int v = 0; v < core->node_count; v++)
        for (int p = 0; core->nodes[v].alive && p < core->nodes[v].values; p++)
            largest = fmax(largest, fabs((double)core->nodes[v].cost[p]));
    for (int e = -1; mtf_core_next_edge(core, &e);) {
        const MtfCoreEdge *edge = mtf_core_edge(core, e);
        for (gsize i = 0; i < mtf_core_edge_entries(core, edge); i++)
            if (edge->cost[i] < MTF_CORE_IMPOSSIBLE)
                largest = fmax(largest, fabs((double)edge->cost[i]));
    }
    return largest;
}

/* Adds sum of the listed variables - s = 0, or sum = 1 when s is negative. */
static void add_sum(MtfIlp *ilp, GArray *variables, int s) {
    double right = s < 0 ? 1 : 0;
    g_autofree double *coefficients = g_new(double, variables->len + 1);
    for (guint i = 0; i < variables->len; i++)
        coefficients[i] = 1;
    if (s >= 0) {
        coefficients[variables->len] = -1;
        g_array_append_val(variables, s);
    }
    mtf_ilp_add_row(ilp, (int)variables->len, (const int *)(void *)variables->data, coefficients,
                    right, right);
    g_array_set_size(variables, 0);
}

static void add_nodes(Program *program) {
    const MtfCore *core = program->core;
    g_autoptr(GArray) variables = g_array_new(FALSE, FALSE, sizeof(int));
    for (int v = 0; v < core->node_count; v++) {
        const MtfCoreNode *node = &core->nodes[v];
        if (!node->alive)
            continue;
        for (int p = 0; p < node->values; p++) {
            bool possible = node->cost[p] < MTF_CORE_IMPOSSIBLE;
            int s = possible
                        ? mtf_ilp_add_binary(program->ilp, (double)node->cost[p] / program->unit)
                        : mtf_ilp_add_continuous(program->ilp, 0, 0, 0);
            program->first[v] = s - p;
            g_array_append_val(variables, s);
        }
        add_sum(program->ilp, variables, -1);
    }
}

/* y for the possible entries of an edge, -1 for the others. */
static int *add_entries(Program *program, const MtfCoreEdge *edge, int count) {
    int *y = g_new(int, count);
    for (int i = 0; i < count; i++)
        y[i] = edge->cost[i] >= MTF_CORE_IMPOSSIBLE
                   ? -1
                   : mtf_ilp_add_continuous(program->ilp, 0, INFINITY,
                                            (double)edge->cost[i] / program->unit);
    return y;
}

/* Marginals along one side: for each p, the y at start + p * step + q * stride sum to s. */
static void add_marginals(Program *program, const int *y, int node, int step, int others,
                          int stride) {
    g_autoptr(GArray) variables = g_array_new(FALSE, FALSE, sizeof(int));
    for (int p = 0; p < program->core->nodes[node].values; p++) {
        for (int q = 0; q < others; q++)
            if (y[p * step + q * stride] >= 0)
                g_array_append_val(variables, y[p * step + q * stride]);
        add_sum(program->ilp, variables, program->first[node] + p);
    }
}

static void add_edges(Program *program) {
    const MtfCore *core = program->core;
    for (int e = -1; mtf_core_next_edge(core, &e);) {
        const MtfCoreEdge *edge = mtf_core_edge(core, e);
        int rows = core->nodes[edge->a].values, columns = core->nodes[edge->b].values;
        g_autofree int *y = add_entries(program, edge, rows * columns);
        add_marginals(program, y, edge->a, columns, columns, 1);
        add_marginals(program, y, edge->b, 1, rows, columns);
    }
}

/* What a value takes there, of all pieces: a row has one entry a variable. */
static double usage_in_row(const MtfCoreNode *node, int row, int value) {
    double usage = 0;
    for (guint k = 0; k < node->pieces->len; k++) {
        const MtfCorePiece *piece = &g_array_index(node->pieces, MtfCorePiece, k);
        if (piece->first <= row && row < piece->last)
            usage += (double)piece->usage[value];
    }
    return usage;
}

static void add_memory_row(const Program *program, int r) {
    const MtfCore *core = program->core;
    g_autoptr(GArray) variables = g_array_new(FALSE, FALSE, sizeof(int));
    g_autoptr(GArray) coefficients = g_array_new(FALSE, FALSE, sizeof(double));
    for (int v = 0; v < core->node_count; v++) {
        const MtfCoreNode *node = &core->nodes[v];
        for (int p = 0; node->alive && p < node->values; p++) {
            int s = program->first[v] + p;
            double usage = usage_in_row(node, r, p);
            if (usage == 0)
                continue;
            g_array_append_val(variables, s);
            g_array_append_val(coefficients, usage);
        }
    }
    mtf_ilp_add_row(program->ilp, (int)variables->len, (const int *)(void *)variables->data,
                    (const double *)(void *)coefficients->data, -INFINITY,
                    (double)core->capacity[r]);
}

/* Adds the row that the values overfill most, if there is one. Sums s[v,p] usage by differences. */
static void separate_memory(MtfIlp *ilp, const double *values, void *user) {
    (void)ilp;
    const Program *program = user;
    const MtfCore *core = program->core;
    g_autofree double *use = g_new0(double, core->rows + 1);
    for (int v = 0; v < core->node_count; v++) {
        const MtfCoreNode *node = &core->nodes[v];
        for (guint k = 0; node->alive && k < node->pieces->len; k++) {
            const MtfCorePiece *piece = &g_array_index(node->pieces, MtfCorePiece, k);
            double sum = 0;
            for (int p = 0; p < node->values; p++)
                sum += values[program->first[v] + p] * (double)piece->usage[p];
            use[piece->first] += sum;
            use[piece->last] -= sum;
        }
    }
    int worst = -1;
    double most = 1e-6, sum = 0;
    for (int r = 0; r < core->rows; r++) {
        sum += use[r];
        double excess = (sum - (double)core->capacity[r]) / fmax(1, (double)core->capacity[r]);
        if (excess <= most)
            continue;
        most = excess;
        worst = r;
    }
    if (worst >= 0)
        add_memory_row(program, worst);
}

static void set_start(Program *program, const int *start) {
    const MtfCore *core = program->core;
    g_autofree double *x = g_new0(double, mtf_ilp_variable_count(program->ilp) + 1);
    for (int v = 0; v < core->node_count; v++)
        if (core->nodes[v].alive)
            x[program->first[v] + start[v]] = 1;
    int y = 0;
    for (int v = 0; v < core->node_count; v++)
        y += core->nodes[v].alive ? core->nodes[v].values : 0;
    for (int e = -1; mtf_core_next_edge(core, &e);) {
        const MtfCoreEdge *edge = mtf_core_edge(core, e);
        int columns = core->nodes[edge->b].values;
        int count = core->nodes[edge->a].values * columns;
        int chosen = start[edge->a] * columns + start[edge->b];
        for (int i = 0; i < count; i++) {
            if (edge->cost[i] >= MTF_CORE_IMPOSSIBLE)
                continue;
            x[y++] = i == chosen;
        }
    }
    mtf_ilp_set_start(program->ilp, x);
}

static void read_values(const Program *program, int *values) {
    const MtfCore *core = program->core;
    for (int v = 0; v < core->node_count; v++)
        for (int p = 0; core->nodes[v].alive && p < core->nodes[v].values; p++)
            if (mtf_ilp_value(program->ilp, program->first[v] + p) > 0.5)
                values[v] = p;
}

static bool run_program(Program *program, int *values, MtfCoreIlpAnswer *answer, GError **error) {
    MtfIlpOptions options = *program->options;
    options.user = program;
    options.separate = program->core->rows > 0 ? separate_memory : NULL;
    if (!mtf_ilp_solve(program->ilp, &options, error))
        return false;
    answer->status = mtf_ilp_status(program->ilp);
    answer->bound = mtf_ilp_bound(program->ilp) * program->unit + (double)program->core->constant;
    if (answer->status != MTF_ILP_OPTIMAL && answer->status != MTF_ILP_FEASIBLE)
        return true;
    read_values(program, values);
    if (!mtf_core_allows(program->core, values))
        answer->status = MTF_ILP_STOPPED; /* within GLPK's tolerance, not within the limit */
    return true;
}

bool mtf_core_ilp_solve(const MtfCore *core, const MtfIlpOptions *options, const int *start,
                        int *values, MtfCoreIlpAnswer *answer, GError **error) {
    g_autoptr(MtfIlp) ilp = mtf_ilp_new();
    g_autofree int *first = g_new0(int, core->node_count + 1);
    Program program = { core, ilp, options, first, fmax(1, largest_cost(core) / LARGEST_COST) };
    add_nodes(&program);
    add_edges(&program);
    if (start != NULL)
        set_start(&program, start);
    return run_program(&program, values, answer, error);
}
