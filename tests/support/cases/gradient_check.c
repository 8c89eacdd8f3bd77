// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cases/gradient_check.h"

#include "tests/support/cmocka.h"

#include "analyzer/training/gradient_layers.h"
#include "analyzer/training/training_graph.h"
#include "layouts/graph/random.h"
#include "tests/support/reference/reference.h"

#include <math.h>

static bool kinds_seen[MTF_OPERATIONS];

static double loss_at(MtfReference *reference, double *slot, double value) {
    double before = *slot;
    *slot = value;
    mtf_reference_run(reference, 0);
    *slot = before;
    return reference->values[reference->graph->loss][0];
}

/* The forward graph is evaluated as the user wrote it, composites and all. */
static void check_variable(MtfReference *forward, const MtfReference *training, int variable_id,
                           double share) {
    const double h = 1e-5;
    const MtfTensor *tensor = mtf_graph_tensor(forward->graph, variable_id);
    g_autofree char *name = g_strdup_printf("grad/%s", tensor->name);
    const double *gradient = mtf_reference_find(training, name);
    for (int64_t i = 0; i < mtf_graph_elements(forward->graph, &tensor->shape); i++) {
        double *slot = &forward->values[variable_id][i];
        double slope =
            (loss_at(forward, slot, *slot + h) - loss_at(forward, slot, *slot - h)) / (2 * h);
        if (!(fabs(slope - gradient[i]) <= share * fmax(1, fabs(slope))))
            fail_msg("%s[%d] is %.10g, finite differences say %.10g", name, (int)i, gradient[i],
                     slope);
    }
}

/* The variable moved by `far` times random numbers between -1 and 1, of which the result is the sum of their
 * products with the gradient. */
static double move(MtfReference *forward, int variable_id, double far, const double *gradient) {
    const MtfTensor *tensor = mtf_graph_tensor(forward->graph, variable_id);
    MtfRandom random = mtf_random_stream(5, tensor->name, 0);
    double slope = 0;
    for (int64_t i = 0; i < mtf_graph_elements(forward->graph, &tensor->shape); i++) {
        double direction = 2 * mtf_random_uniform(&random, i) - 1;
        forward->values[variable_id][i] += far * direction;
        slope += direction * gradient[i];
    }
    return slope;
}

/* Likewise along one direction of all elements. */
static void check_direction(MtfReference *forward, const MtfReference *training, int variable_id,
                            double share) {
    const double h = 1e-5;
    g_autofree char *name =
        g_strdup_printf("grad/%s", mtf_graph_tensor(forward->graph, variable_id)->name);
    int found = mtf_graph_find_tensor(training->graph, name);
    if (found < 0)
        return;
    const double *loss = forward->values[forward->graph->loss];
    move(forward, variable_id, h, training->values[found]);
    mtf_reference_run(forward, 0);
    double above = *loss;
    double gradient = move(forward, variable_id, -2 * h, training->values[found]);
    mtf_reference_run(forward, 0);
    double slope = (above - *loss) / (2 * h);
    move(forward, variable_id, h, training->values[found]);
    if (!(fabs(slope - gradient) <= share * fmax(1, fabs(slope))))
        fail_msg("%s is %.10g along a direction, finite differences say %.10g", name, gradient,
                 slope);
}

static MtfReference *run(const MtfGraph *graph) {
    MtfReference *reference = mtf_reference_new(graph, 3);
    mtf_reference_fill_inputs(reference, 4);
    mtf_reference_run(reference, 0);
    return reference;
}

typedef void (*CheckOne)(MtfReference *forward, const MtfReference *training, int variable,
                         double share);

static void check_each(const MtfGraph *graph, const MtfGraph *training, double share,
                       CheckOne check) {
    g_autoptr(MtfReference) f = run(graph);
    g_autoptr(MtfReference) t = run(training);
    double loss = f->values[graph->loss][0];
    assert_true(fabs(loss - t->values[training->loss][0]) <= 1e-12 * fmax(1, fabs(loss)));
    for (int v = 0; v < (int)graph->tensors->len; v++)
        if (mtf_graph_tensor(graph, v)->source == MTF_SOURCE_VARIABLE)
            check(f, t, v, share);
}

void mtf_test_check_slopes(const MtfGraph *graph, const MtfGraph *training, double share) {
    check_each(graph, training, share, check_variable);
}

void mtf_test_check_directions(const MtfGraph *graph, const MtfGraph *training, double share) {
    check_each(graph, training, share, check_direction);
}

void mtf_test_check_gradients(const MtfGraph *graph) {
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfGraph) training = mtf_training_graph(graph, &error);
    if (training == NULL)
        fail_msg("%s", error->message);
    mtf_test_check_slopes(graph, training, 1e-7);
    for (int i = 0; i < (int)training->operations->len; i++)
        kinds_seen[mtf_graph_operation(training, i)->kind] = true;
}

bool mtf_test_gradient_is_checked(int kind) {
    return kinds_seen[kind];
}

bool mtf_test_gradient_is_of_layers(int kind) {
    static const MtfGradientRule layers[] = {
        mtf_gradient_rotary,           mtf_gradient_attention, mtf_gradient_attention_further,
        mtf_gradient_embedding,        mtf_gradient_dispatch,  mtf_gradient_combine,
        mtf_gradient_expert_einsum,    mtf_gradient_sum_exp,   mtf_gradient_variance,
        mtf_gradient_softmax_apply,    mtf_gradient_normalize, mtf_gradient_cross_entropy,
        mtf_gradient_linear_attention,
    };
    for (gsize i = 0; i < G_N_ELEMENTS(layers); i++)
        if (mtf_gradient_row(kind)->rule == layers[i])
            return true;
    return false;
}
