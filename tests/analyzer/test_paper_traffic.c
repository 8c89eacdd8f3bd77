// SPDX-License-Identifier: GPL-3.0-or-later
/* What training graphs reduce under rule layouts, against the counts of Mesh-TensorFlow run on the
 * same models (elements that enter allreduces on each processor, apart from norm scales, positions,
 * clipping and optimizer). */
#include "tests/support/cmocka.h"

#include "analyzer/models/model_family.h"
#include "analyzer/training_graph.h"
#include "layouts/program.h"
#include "layouts/rules.h"

#include <math.h>

/* Allreduces over one set of mesh axes. */
typedef struct {
    double sum_elements;
    int sums, maxima;
} Count;

typedef struct {
    Count over[1 << 3]; /* by mask of axes */
    double multiply_adds;
} Counts;

static MtfGraph *training_graph(const char *family_name, const char *preset_name) {
    const MtfModelFamily *family = mtf_model_family_find(family_name, NULL);
    const MtfModelPreset *preset = mtf_model_preset_find(family, preset_name, NULL);
    g_autoptr(MtfGraph) forward = mtf_model_build(family, preset, &preset->settings, NULL);
    MtfGraph *graph = mtf_training_graph(forward, NULL);
    assert_non_null(graph);
    return graph;
}

static void count_step(Counts *counts, const MtfProgram *program, int index) {
    const MtfInstruction *instruction = mtf_program_instruction(program, index);
    const MtfStep *step = &instruction->step;
    if (!mtf_step_is_collective(step->kind) ||
        mtf_instruction_traffic_group(program, index) != MTF_TRAFFIC_MODEL)
        return;
    assert_int_equal(step->kind, MTF_STEP_ALLREDUCE);
    Count *count = &counts->over[step->axes];
    if (step->reduction == MTF_REDUCE_MAX) {
        count->maxima++;
        return;
    }
    count->sums++;
    count->sum_elements += (double)instruction->payload_bytes / 4;
}

static Counts count(const MtfGraph *graph, const char *mesh_text, const char *rules_text) {
    MtfMesh mesh;
    assert_true(mtf_mesh_parse(mesh_text, 0, &mesh, NULL));
    g_autoptr(MtfRules) rules = mtf_rules_parse(graph, &mesh, rules_text, NULL, NULL);
    assert_non_null(rules);
    g_autoptr(MtfLayout) layout = mtf_layout_from_rules(graph, &mesh, rules);
    g_autoptr(MtfProgram) program = mtf_lower(graph, layout);
    Counts counts = { 0 };
    for (int i = 0; i < mtf_program_length(program); i++) {
        const MtfInstruction *instruction = mtf_program_instruction(program, i);
        if (instruction->kind == MTF_INSTRUCTION_STEP)
            count_step(&counts, program, i);
        else if (mtf_graph_operation(graph, instruction->operation)->phase <= MTF_PHASE_BACKWARD)
            counts.multiply_adds += instruction->multiply_adds;
    }
    return counts;
}

/* To the digits of the table. */
static void expect_elements(const Count *count, double elements) {
    if (!(fabs(count->sum_elements - elements) < 6e-4 * elements))
        fail_msg("%g elements are reduced, not %g", count->sum_elements, elements);
}

/* y = relu(x w) v: batch 4096, io 1024, hidden 4096, on 16 processors. */
static void two_layers_reduce_what_mesh_tensorflow_reduces(void **state) {
    (void)state;
    g_autoptr(MtfGraph) graph = training_graph("mlp", "two-layer");
    Counts c = count(graph, "r:16", "batch:r");
    expect_elements(&c.over[1], 8.389e6);
    assert_int_equal(c.over[1].sums, 3);
    c = count(graph, "r:16", "hidden:r");
    expect_elements(&c.over[1], 4.194e6);
    assert_int_equal(c.over[1].sums, 1);
    c = count(graph, "r:16", "io:r");
    expect_elements(&c.over[1], 3.355e7);
    c = count(graph, "r:4;c:4", "batch:r;hidden:c");
    expect_elements(&c.over[1], 2.097e6);
    expect_elements(&c.over[2], 1.049e6);
    c = count(graph, "r:4;c:4", "batch:r;io:c");
    expect_elements(&c.over[1], 2.097e6);
    expect_elements(&c.over[2], 8.389e6);
    c = count(graph, "r:4;c:2;p:2", "batch:r;hidden:c;io:p");
    expect_elements(&c.over[1], 2.097e6);
    expect_elements(&c.over[2], 5.243e5);
    expect_elements(&c.over[4], 4.194e6);
}

/* Size 5 on 16 x 32. Over the model axis: one sum for the embedding, two a layer forward and
 * backward, one for the logits' gradient, each of 16 * 256 * 1024 elements; and the maximum, sum
 * and label of the cross entropy, each of 16 * 256. */
static void the_papers_largest_model_reduces_less_than_mesh_tensorflow(void **state) {
    (void)state;
    g_autoptr(MtfGraph) graph = training_graph("transformer-lm", "size5");
    Counts c = count(graph, "batch:16;model:32", "batch:batch;vocab:model;d_ff:model;heads:model");
    expect_elements(&c.over[1], 1.531e8);
    assert_int_equal(c.over[1].sums, 39);
    assert_true(c.over[2].sum_elements == 26 * 16 * 256 * 1024 + 2 * 16 * 256);
    assert_int_equal(c.over[2].sums, 28);
    assert_int_equal(c.over[2].maxima, 1);
    if (!(fabs(c.multiply_adds - 1.946e12) < 6e-4 * 1.946e12))
        fail_msg("%g multiply-adds, not 1.946e12", c.multiply_adds);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_layers_reduce_what_mesh_tensorflow_reduces),
        cmocka_unit_test(the_papers_largest_model_reduces_less_than_mesh_tensorflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
