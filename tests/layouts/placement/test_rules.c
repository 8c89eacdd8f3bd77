// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/placement/rules.h"
#include "layouts/program/program.h"
#include "tests/support/cases/two_layer.h"
#include "tests/support/cmocka.h"

#include <string.h>

/* ---- What Mesh-TensorFlow reduces, counted by running it ------------------------------------ */

typedef struct {
    double elements;
    int calls;
} Traffic;

/* Elements entering allreduce on each processor, by set of axes. */
static void count_sums(const char *mesh_text, const char *rules_text, Traffic *by_axes) {
    g_autoptr(MtfGraph) graph = two_layer_graph(4096, 1024, 4096);
    MtfMesh mesh;
    assert_true(mtf_mesh_parse(mesh_text, 0, &mesh, NULL));
    g_autoptr(MtfRules) rules = mtf_rules_parse(graph, &mesh, rules_text, NULL, NULL);
    assert_non_null(rules);
    g_autoptr(MtfLayout) layout = mtf_layout_from_rules(graph, &mesh, rules);
    assert_true(mtf_layout_check(graph, layout, NULL));
    g_autoptr(MtfProgram) program = mtf_lower(graph, layout);
    memset(by_axes, 0, 8 * sizeof *by_axes);
    for (int i = 0; i < mtf_program_length(program); i++) {
        const MtfInstruction *instruction = mtf_program_instruction(program, i);
        if (instruction->kind != MTF_INSTRUCTION_RESHARD)
            continue;
        assert_int_equal(instruction->reshard.kind, MTF_RESHARD_ALLREDUCE);
        by_axes[instruction->reshard.axes].elements += (double)instruction->payload_bytes / 4;
        by_axes[instruction->reshard.axes].calls++;
    }
}

/* b=4096, io=1024, h=4096: w and v hold 4,194,304 elements each, activations of b x h 16,777,216.
 */
TEST(batch_splits_reduce_both_gradients_and_the_loss) {
    Traffic sums[8];
    count_sums("all:16", "batch:all", sums);
    assert_int_equal(sums[1].calls, 3);
    assert_true(sums[1].elements == 2 * 4194304.0 + 1);
}

TEST(hidden_splits_reduce_the_output_once) {
    Traffic sums[8];
    count_sums("all:16", "hidden:all", sums);
    assert_int_equal(sums[1].calls, 1);
    assert_true(sums[1].elements == 4194304.0);
}

TEST(io_splits_reduce_the_hidden_layer_twice) {
    Traffic sums[8];
    count_sums("all:16", "io:all", sums);
    assert_true(sums[1].elements == 2 * 16777216.0 + 1);
}

TEST(batch_and_hidden_on_two_axes) {
    Traffic sums[8];
    count_sums("r:4;c:4", "batch:r;hidden:c", sums);
    assert_true(sums[1].elements == 2097152.0 + 1); /* w/4 + v/4 + loss */
    assert_true(sums[2].elements == 1048576.0);     /* y/4 */
    assert_int_equal(sums[2].calls, 1);
}

TEST(batch_and_io_on_two_axes) {
    Traffic sums[8];
    count_sums("r:4;c:4", "batch:r;io:c", sums);
    assert_true(sums[1].elements == 2097152.0);     /* w/4 + v/4 */
    assert_true(sums[2].elements == 2 * 4194304.0); /* h/4 forward and backward */
    assert_true(sums[3].elements == 1);             /* the loss, over both axes at once */
}

TEST(three_axes) {
    Traffic sums[8];
    count_sums("r:4;c:2;p:2", "batch:r;hidden:c;io:p", sums);
    assert_true(sums[1].elements == 2097152.0); /* w/4 + v/4 */
    assert_true(sums[2].elements == 524288.0);  /* y/8 */
    assert_true(sums[4].elements == 4194304.0); /* h/8 forward and backward */
}

/* ---- Errors -------------------------------------------------------------------------------- */

static void refuse(const char *rules_text, const char *expected) {
    g_autoptr(MtfGraph) graph = two_layer_graph(8, 4, 8);
    MtfMesh mesh;
    g_autoptr(GError) error = NULL;
    assert_true(mtf_mesh_parse("r:2;c:2", 0, &mesh, NULL));
    assert_null(mtf_rules_parse(graph, &mesh, rules_text, NULL, &error));
    if (strstr(error->message, expected) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", error->message, expected);
}

TEST(a_dimension_on_two_axes_is_refused) {
    refuse("batch:r;batch:c", "dimension \"batch\" is given two mesh axes, \"r\" and \"c\"");
}

TEST(two_dimensions_of_a_tensor_on_one_axis_are_refused) {
    refuse("batch:r,io:r", "dimensions \"batch\" and \"io\" of tensor \"x\" are both on mesh axis");
}

TEST(unknown_names_are_refused) {
    refuse("batsh:r", "no dimension \"batsh\"");
    refuse("batch:rows", "no axis \"rows\"");
}

TEST(unknown_names_are_collected_when_asked) {
    g_autoptr(MtfGraph) graph = two_layer_graph(8, 4, 8);
    MtfMesh mesh;
    mtf_mesh_parse("r:2;c:2", 0, &mesh, NULL);
    g_autoptr(GPtrArray) inert = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(MtfRules) rules =
        mtf_rules_parse(graph, &mesh, "batch:r experts:c hidden:model", inert, NULL);
    assert_non_null(rules);
    assert_int_equal(inert->len, 2);
    assert_string_equal(g_ptr_array_index(inert, 1), "hidden:model");
}

TEST(printed_rules_parse_again) {
    g_autoptr(MtfGraph) graph = two_layer_graph(8, 4, 8);
    MtfMesh mesh;
    mtf_mesh_parse("r:2;c:2", 0, &mesh, NULL);
    g_autoptr(MtfRules) rules = mtf_rules_parse(graph, &mesh, "hidden:c batch:r", NULL, NULL);
    g_autofree char *text = mtf_rules_format(graph, &mesh, rules);
    assert_string_equal(text, "batch:r;hidden:c");
}

/* ---- Locality ------------------------------------------------------------------------------ */

static bool same_at(const MtfLayout *a, const MtfLayout *b, const MtfOperation *op, int index) {
    bool same = mtf_strategy_equal(&a->operations[index], &b->operations[index]);
    for (int k = 0; k < op->n_inputs; k++)
        same &= mtf_placement_equal(&a->tensors[op->inputs[k]], &b->tensors[op->inputs[k]]);
    for (int k = 0; k < op->n_outputs; k++)
        same &= mtf_placement_equal(&a->tensors[op->outputs[k]], &b->tensors[op->outputs[k]]);
    return same;
}

/* With only the rules of its scope, an operation is laid out as with all rules. */
TEST(scopes_hold_all_that_matters) {
    g_autoptr(MtfGraph) graph = two_layer_graph(8, 4, 8);
    MtfMesh mesh;
    mtf_mesh_parse("r:2;c:2;p:2", 0, &mesh, NULL);
    g_autoptr(MtfRules) all = mtf_rules_parse(graph, &mesh, "batch:r;hidden:c;io:p", NULL, NULL);
    g_autoptr(MtfLayout) whole = mtf_layout_from_rules(graph, &mesh, all);
    g_autoptr(MtfRuleScopes) scopes = mtf_rule_scopes_new(graph);
    for (int i = 0; i < (int)graph->operations->len; i++) {
        g_autoptr(GArray) dims = g_array_new(FALSE, FALSE, sizeof(int));
        g_autoptr(GArray) operations = g_array_new(FALSE, FALSE, sizeof(int));
        mtf_rule_scopes_get(scopes, i, dims, operations);
        g_autoptr(MtfRules) some = mtf_rules_new(graph);
        for (guint d = 0; d < dims->len; d++)
            some->axis[g_array_index(dims, int, d)] = all->axis[g_array_index(dims, int, d)];
        g_autoptr(MtfLayout) part = mtf_layout_new(graph, &mesh);
        mtf_rules_derive(scopes, some, (int *)(void *)operations->data, (int)operations->len, part);
        assert_true(same_at(whole, part, mtf_graph_operation(graph, i), i));
    }
}
