// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/free/strategies.h"

#define MAX_AXIS_CHOICES (MTF_MAX_INDEXES + 1 + 8)

typedef struct {
    const MtfGraph *graph;
    const MtfMesh *mesh;
    int operation;
    MtfIteration iteration;
    const MtfPin *pins;
    int n_pins;
} Enumeration;

/* Whether input `k` may arrive as a partial sum: it must be the result of something. */
static bool may_stay_partial(const Enumeration *e, int k) {
    const MtfOperation *op = mtf_graph_operation(e->graph, e->operation);
    return mtf_graph_tensor(e->graph, op->inputs[k])->producer >= 0 &&
           mtf_operation_passes_partial(e->graph, e->operation, k);
}

static int add_partial_inputs(const Enumeration *e, int8_t *choices, int n) {
    const MtfOperation *op = mtf_graph_operation(e->graph, e->operation);
    bool joint = mtf_operation_row(op->kind)->linearity == MTF_LINEAR_JOINT;
    for (int k = 0; k < op->n_inputs && n < MAX_AXIS_CHOICES; k++) {
        if (!may_stay_partial(e, k))
            continue;
        choices[n++] = (int8_t)(joint ? MTF_PARTIAL_INPUT : MTF_PARTIAL_INPUT - k);
        if (joint)
            break;
    }
    return n;
}

static bool obeys(const Enumeration *e, int axis, int choice) {
    for (int p = 0; p < e->n_pins; p++) {
        const MtfPin *pin = &e->pins[p];
        if (pin->axis != axis)
            continue;
        bool splits = choice >= 0 && e->iteration.index[choice].dim == pin->dim;
        bool iterates = false;
        for (int i = 0; i < e->iteration.n; i++)
            iterates |= e->iteration.index[i].dim == pin->dim;
        if (pin->forbidden ? splits : iterates && !splits)
            return false;
    }
    return true;
}

static int axis_choices(const Enumeration *e, int axis, int8_t *choices) {
    int8_t all[MAX_AXIS_CHOICES];
    int n = 0, kept = 0;
    for (int i = 0; i < e->iteration.n; i++)
        if (mtf_index_splits(&e->iteration.index[i], e->mesh->axes[axis].size))
            all[n++] = (int8_t)i;
    all[n++] = MTF_DUPLICATED;
    n = add_partial_inputs(e, all, n);
    for (int c = 0; c < n; c++)
        if (obeys(e, axis, all[c]))
            choices[kept++] = all[c];
    return kept;
}

/* How many parts each index is cut into. */
static void count_parts(const Enumeration *e, const MtfStrategy *strategy,
                        int64_t parts[MTF_MAX_INDEXES]) {
    for (int i = 0; i < MTF_MAX_INDEXES; i++)
        parts[i] = 1;
    for (int a = 0; a < e->mesh->n_axes; a++)
        if (strategy->axis[a] >= 0)
            parts[strategy->axis[a]] *= e->mesh->axes[a].size;
}

/* Whether no index is cut into more parts than it has points. */
static bool is_sensible(const Enumeration *e, const MtfStrategy *strategy) {
    int64_t parts[MTF_MAX_INDEXES];
    count_parts(e, strategy, parts);
    for (int i = 0; i < e->iteration.n; i++)
        if (parts[i] > 1 && !mtf_index_splits(&e->iteration.index[i], parts[i]))
            return false;
    return true;
}

GArray *mtf_strategies(const MtfGraph *graph, const MtfMesh *mesh, int operation,
                       const MtfPin *pins, int n_pins) {
    Enumeration e = { graph, mesh, operation, .pins = pins, .n_pins = n_pins };
    mtf_operation_iteration(graph, operation, &e.iteration);
    int8_t choices[MTF_MAX_MESH_AXES][MAX_AXIS_CHOICES];
    int counts[MTF_MAX_MESH_AXES], total = 1;
    for (int a = 0; a < mesh->n_axes; a++) {
        counts[a] = axis_choices(&e, a, choices[a]);
        total *= counts[a];
    }
    GArray *strategies = g_array_new(FALSE, FALSE, sizeof(MtfStrategy));
    for (int number = 0; number < total; number++) {
        MtfStrategy strategy = mtf_strategy_duplicated();
        int rest = number;
        for (int a = mesh->n_axes - 1; a >= 0; a--) {
            strategy.axis[a] = choices[a][rest % counts[a]];
            rest /= counts[a];
        }
        if (is_sensible(&e, &strategy))
            g_array_append_val(strategies, strategy);
    }
    return strategies;
}

/* Adds what becomes of a strategy when one more axis splits an index, unless as many parts are known. */
static void split_further(const Enumeration *e, MtfStrategy strategy, int axis, int index,
                          GHashTable *known, GArray *strategies) {
    int64_t parts[MTF_MAX_INDEXES];
    strategy.axis[axis] = (int8_t)index;
    count_parts(e, &strategy, parts);
    if (mtf_index_splits(&e->iteration.index[index], parts[index]) &&
        g_hash_table_add(known, g_bytes_new(parts, sizeof parts)))
        g_array_append_val(strategies, strategy);
}

GArray *mtf_strategies_by_parts(const MtfGraph *graph, const MtfMesh *mesh, int operation) {
    Enumeration e = { .graph = graph, .mesh = mesh, .operation = operation };
    mtf_operation_iteration(graph, operation, &e.iteration);
    g_autoptr(GHashTable) known =
        g_hash_table_new_full(g_bytes_hash, g_bytes_equal, (GDestroyNotify)g_bytes_unref, NULL);
    GArray *strategies = g_array_new(FALSE, FALSE, sizeof(MtfStrategy));
    MtfStrategy whole = mtf_strategy_duplicated();
    g_array_append_val(strategies, whole);
    for (int a = 0; a < mesh->n_axes; a++)
        for (int s = (int)strategies->len - 1; s >= 0; s--)
            for (int i = 0; i < e.iteration.n; i++)
                split_further(&e, g_array_index(strategies, MtfStrategy, s), a, i, known,
                              strategies);
    return strategies;
}
