// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cases/random_layout.h"

#include "layouts/placement/compared_tensors.h"
#include "layouts/placement/rules.h"

MtfMesh mtf_random_mesh(GRand *random, int devices) {
    MtfMesh mesh = { 0 };
    int rest = devices;
    while (rest > 1 && mesh.n_axes < 3) {
        int size = mesh.n_axes == 2 ? rest : g_rand_int_range(random, 2, rest + 1);
        if (rest % size != 0)
            continue;
        g_snprintf(mesh.axes[mesh.n_axes].name, MTF_MAX_AXIS_NAME, "axis%d", mesh.n_axes);
        mesh.axes[mesh.n_axes++].size = size;
        rest /= size;
    }
    return mesh;
}

MtfLayout *mtf_random_rule_layout(GRand *random, const MtfGraph *graph, const MtfMesh *mesh) {
    g_autoptr(MtfRules) rules = mtf_rules_new(graph);
    for (int trial = 0; trial < 3 * rules->n_dims && mesh->n_axes > 0; trial++) {
        int dim = g_rand_int_range(random, 0, rules->n_dims);
        int before = rules->axis[dim];
        rules->axis[dim] = g_rand_int_range(random, 0, mesh->n_axes);
        if (!mtf_rules_check(graph, mesh, rules, NULL))
            rules->axis[dim] = before;
    }
    return mtf_layout_from_rules(graph, mesh, rules);
}

static MtfStrategy random_strategy(GRand *random, const MtfGraph *graph, const MtfMesh *mesh,
                                   int operation) {
    MtfIteration iteration;
    mtf_operation_iteration(graph, operation, &iteration);
    MtfStrategy strategy = mtf_strategy_duplicated();
    for (int a = 0; a < mesh->n_axes; a++) {
        MtfStrategy trial = strategy;
        int through = mtf_graph_operation(graph, operation)->n_inputs;
        trial.axis[a] =
            (int8_t)g_rand_int_range(random, MTF_PARTIAL_INPUT - through + 1, iteration.n);
        if (mtf_strategy_check(graph, mesh, operation, &trial, NULL))
            strategy = trial;
    }
    return strategy;
}

/* Whole or split on each axis. */
static MtfPlacement random_placement(GRand *random, const MtfGraph *graph, const MtfMesh *mesh,
                                     int tensor) {
    const MtfShape *shape = &mtf_graph_tensor(graph, tensor)->shape;
    MtfPlacement placement = mtf_placement_replicated();
    for (int a = 0; a < mesh->n_axes; a++) {
        int choice = g_rand_int_range(random, -1, shape->rank);
        placement.axis[a] = (int16_t)(choice < 0 ? MTF_REPLICATED : shape->dims[choice]);
    }
    return placement;
}

/* Where a result is kept: as it is made, or anywhere, or with one axis partial by sum unless it is compared. */
static MtfPlacement random_result(GRand *random, const MtfGraph *graph, const MtfLayout *layout,
                                  int operation, int k, bool compared) {
    MtfIteration iteration;
    mtf_operation_iteration(graph, operation, &iteration);
    const MtfOperation *op = mtf_graph_operation(graph, operation);
    int choice = g_rand_int_range(random, 0, 5);
    MtfPlacement made =
        mtf_strategy_output(graph, operation, &iteration, &layout->operations[operation], k);
    if (choice < 2 && (!compared || mtf_placement_partial_axes(&made) == 0))
        return made;
    MtfPlacement placement = random_placement(random, graph, &layout->mesh, op->outputs[k]);
    bool summable = mtf_dtype_is_float(mtf_graph_tensor(graph, op->outputs[k])->dtype) && !compared;
    if (choice == 4 && summable && layout->mesh.n_axes > 0)
        placement.axis[g_rand_int_range(random, 0, layout->mesh.n_axes)] = MTF_PARTIAL_SUM;
    return placement;
}

/* Where the consumers of a phase fetch a tensor from; results may be partial there. */
static MtfPlacement random_reading(GRand *random, const MtfGraph *graph, const MtfMesh *mesh,
                                   int tensor) {
    const MtfTensor *t = mtf_graph_tensor(graph, tensor);
    MtfPlacement placement = random_placement(random, graph, mesh, tensor);
    bool summable = t->producer >= 0 && mtf_dtype_is_float(t->dtype) && mesh->n_axes > 0;
    if (summable && g_rand_int_range(random, 0, 4) == 0)
        placement.axis[g_rand_int_range(random, 0, mesh->n_axes)] = MTF_PARTIAL_SUM;
    return placement;
}

static void draw_readings(GRand *random, const MtfGraph *graph, MtfLayout *layout) {
    for (int t = 0; t < layout->n_tensors; t++) {
        for (int phase = 0; phase < MTF_PHASES; phase++) {
            if (g_rand_int_range(random, 0, 3) > 0)
                continue;
            MtfPlacement placement = random_reading(random, graph, &layout->mesh, t);
            mtf_layout_set_gathered_copy(layout, t, (MtfPhase)phase, &placement);
        }
    }
}

/* What lies with the host stays as it was brought there, and is fetched so. */
static void tie_host_copies(const MtfGraph *graph, MtfLayout *layout) {
    for (int i = 0; i < layout->n_operations; i++) {
        const MtfOperation *op = mtf_graph_operation(graph, i);
        MtfIteration iteration;
        if (mtf_operation_row(op->kind)->host != MTF_HOST_FROM)
            continue;
        int producer = mtf_graph_tensor(graph, op->inputs[0])->producer;
        layout->operations[i] = layout->operations[producer];
        mtf_operation_iteration(graph, producer, &iteration);
        layout->tensors[op->inputs[0]] =
            mtf_strategy_output(graph, producer, &iteration, &layout->operations[producer], 0);
        for (int phase = 0; layout->gathered_copies != NULL && phase < MTF_PHASES; phase++)
            layout->gathered_copies[op->inputs[0] * MTF_PHASES + phase].given = false;
    }
}

MtfLayout *mtf_random_free_layout(GRand *random, const MtfGraph *graph, const MtfMesh *mesh) {
    MtfLayout *layout = mtf_layout_new(graph, mesh);
    for (int t = 0; t < layout->n_tensors; t++)
        layout->tensors[t] = random_placement(random, graph, mesh, t);
    g_autofree bool *compared = mtf_compared_tensors(graph);
    for (int i = 0; i < layout->n_operations; i++) {
        const MtfOperation *op = mtf_graph_operation(graph, i);
        layout->operations[i] = random_strategy(random, graph, mesh, i);
        for (int k = 0; k < op->n_outputs; k++)
            layout->tensors[op->outputs[k]] =
                random_result(random, graph, layout, i, k, compared[op->outputs[k]]);
    }
    draw_readings(random, graph, layout);
    tie_host_copies(graph, layout);
    return layout;
}
