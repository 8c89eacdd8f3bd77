// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/training/training_graph.h"
#include "layouts/base/error.h"
#include "layouts/execution/executed_graph.h"
#include "layouts/graph/microbatches.h"
#include "layouts/placement/rules.h"
#include "layouts/plan_file/plan.h"
#include "tests/support/cases/parse_graph.h"

#include <string.h>

static cJSON *parse_tree(const char *text) {
    g_autofree char *json = g_strdelimit(g_strdup(text), "'", '"');
    cJSON *tree = cJSON_Parse(json);
    assert_non_null(tree);
    return tree;
}

/* y[batch, hidden] = x[batch, io] w[io, hidden] on rows:2;cols:3: the product splits batch over the
 * rows and sums over io along the columns; its result is kept split over both. */
static MtfPlan *new_plan(void) {
    MtfPlan *plan = g_new0(MtfPlan, 1);
    MtfMesh mesh;
    plan->graph = mtf_test_graph(
        "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'batch': 4, 'io': 6, 'hidden': 9}, "
        "'inputs': [{'name': 'x', 'dims': ['batch', 'io'], 'feed': 'features'}], 'variables': "
        "[{'name': 'w', 'dims': ['io', 'hidden'], 'init': 'ones'}], 'operations': [{'name': 'y', "
        "'op': 'einsum', 'inputs': ['x', 'w'], 'dims': ['batch', 'hidden']}, {'name': 'h', 'op': "
        "'relu', 'inputs': ['y']}, {'name': 'l', 'op': 'reduce_sum', 'inputs': ['h'], 'dims': "
        "[]}], 'loss': 'l'}");
    assert_true(mtf_mesh_parse("rows:2;cols:3", 0, &mesh, NULL));
    plan->layout = mtf_layout_new(plan->graph, &mesh);
    plan->layout->operations[0].axis[0] = 0; /* batch */
    plan->layout->operations[0].axis[1] = 2; /* io, which y lacks */
    plan->layout->tensors[2].axis[0] = 0;    /* y: batch */
    plan->layout->tensors[2].axis[1] = 2;    /* y: hidden */
    plan->precision = g_strdup("f32");
    plan->machine = parse_tree("{'name': 'm', 'rate': 2.3e13, 'latency': 1.5e-6}");
    plan->search = parse_tree("{'cost': 1000000000000000, 'gap': 0.1, 'notes': ['a', null]}");
    g_autoptr(MtfProgram) program = mtf_lower(plan->graph, plan->layout);
    plan->program_sha256 = mtf_program_digest(program);
    return plan;
}

static MtfPlan *parse(const char *text, GError **error) {
    return mtf_plan_parse("p.json", text, strlen(text), error);
}

/* The text of the plan with `from` replaced by `to`, both with single quotes. */
static char *changed(const char *from, const char *to) {
    g_autoptr(MtfPlan) plan = new_plan();
    g_autofree char *text = mtf_plan_print(plan);
    g_autofree char *old = g_strdelimit(g_strdup(from), "'", '"');
    g_autofree char *new = g_strdelimit(g_strdup(to), "'", '"');
    assert_non_null(strstr(text, old));
    g_auto(GStrv) parts = g_strsplit(text, old, 2);
    return g_strjoinv(new, parts);
}

static void assert_fails(const char *from, const char *to, const char *message) {
    g_autoptr(GError) error = NULL;
    g_autofree char *text = changed(from, to);
    assert_null(parse(text, &error));
    assert_int_equal(mtf_error_exit_status(error), 2);
    assert_string_equal(error->message, message);
}

TEST(a_plan_travels_unchanged) {
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfPlan) plan = new_plan();
    g_autofree char *text = mtf_plan_print(plan);
    g_autoptr(MtfPlan) again = parse(text, &error);
    if (again == NULL)
        fail_msg("%s", error->message);
    g_autofree char *second = mtf_plan_print(again);
    assert_string_equal(text, second);
    assert_true(mtf_mesh_equal(&plan->layout->mesh, &again->layout->mesh));
    for (int t = 0; t < plan->layout->n_tensors; t++)
        assert_true(mtf_placement_equal(&plan->layout->tensors[t], &again->layout->tensors[t]));
    for (int i = 0; i < plan->layout->n_operations; i++)
        assert_true(
            mtf_strategy_equal(&plan->layout->operations[i], &again->layout->operations[i]));
    assert_null(again->mapping);
    assert_true(cJSON_GetObjectItem(again->search, "cost")->valuedouble == 1e15);
}

TEST(parts_printed_ahead_are_the_same_bytes) {
    g_autoptr(MtfPlan) plan = new_plan();
    g_autofree char *text = mtf_plan_print(plan);
    mtf_plan_print_graph(plan);
    mtf_plan_print_layout(plan);
    g_autofree char *ahead = mtf_plan_print(plan);
    assert_string_equal(text, ahead);
}

TEST(what_is_whole_or_copied_is_left_out) {
    g_autoptr(MtfPlan) plan = new_plan();
    g_autofree char *text = mtf_plan_print(plan);
    assert_non_null(strstr(text, "\"y\": {\"rows\":\"batch\",\"cols\":\"hidden\"}"));
    assert_non_null(strstr(text, "\"y\": {\"rows\":\"batch\",\"cols\":\"io\"}"));
    assert_null(strstr(text, "\"h\": "));
    assert_null(strstr(text, "replicated"));
    assert_null(strstr(text, "duplicated"));
}

TEST(partial_placements_travel) {
    g_autoptr(GError) error = NULL;
    g_autofree char *text = changed("'y': {'rows':'batch','cols':'hidden'}",
                                    "'y': {'rows':'replicated','cols':'partial:sum'}");
    g_autoptr(MtfPlan) plan = parse(text, &error);
    assert_non_null(plan);
    assert_int_equal(plan->layout->tensors[2].axis[0], MTF_REPLICATED);
    assert_int_equal(plan->layout->tensors[2].axis[1], MTF_PARTIAL_SUM);
}

TEST(gathered_copies_travel_and_kept_placements_are_none) {
    g_autoptr(GError) error = NULL;
    g_autofree char *text =
        changed("'gathered_copies': {}",
                "'gathered_copies': {'y': {'forward': {'rows': 'replicated', 'cols': "
                "'batch'}, 'update': {'rows': 'batch', 'cols': 'hidden'}}}");
    g_autoptr(MtfPlan) plan = parse(text, &error);
    if (plan == NULL)
        fail_msg("%s", error->message);
    assert_int_equal(mtf_layout_phase_placement(plan->layout, 2, MTF_PHASE_FORWARD)->axis[0],
                     MTF_REPLICATED);
    assert_int_equal(mtf_layout_phase_placement(plan->layout, 2, MTF_PHASE_FORWARD)->axis[1], 0);
    assert_false(mtf_layout_has_gathered_copy(plan->layout, 2, MTF_PHASE_UPDATE));
    g_autofree char *again = mtf_plan_print(plan);
    assert_non_null(strstr(
        again,
        "\"gathered_copies\": {\n      \"y\": {\"forward\":{\"rows\":\"replicated\",\"cols\":\"batch\"}}\n"));
}

TEST(a_plan_without_gathered_copies_has_none) {
    g_autofree char *text = changed("'gathered_copies': {},", "");
    g_autoptr(MtfPlan) plan = parse(text, NULL);
    assert_non_null(plan);
    assert_false(mtf_layout_has_gathered_copy(plan->layout, 2, MTF_PHASE_FORWARD));
}

TEST(wrong_gathered_copies_are_told) {
    assert_fails("'gathered_copies': {}", "'gathered_copies': {'z': {}}",
                 "p.json: /layout/gathered_copies/z: \"z\" is not a tensor of the graph");
    assert_fails(
        "'gathered_copies': {}", "'gathered_copies': {'y': {'forwards': {}}}",
        "p.json: /layout/gathered_copies/y: unknown key \"forwards\" (did you mean \"forward\"? known here: forward, backward, clip, update)");
    assert_fails(
        "'gathered_copies': {}",
        "'gathered_copies': {'x': {'forward': {'rows':'partial:sum','cols':'replicated'}}}",
        "p.json: /layout: tensor \"x\" is no result and cannot be partial");
}

TEST(wrong_layouts_are_told) {
    assert_fails("'cols':'hidden'", "'cols':'hiden'",
                 "p.json: /layout/tensors/y/cols: \"hiden\" is not a dimension of this graph (did "
                 "you mean \"hidden\"?)");
    assert_fails("'cols':'hidden'", "'cols':'io'",
                 "p.json: /layout: axis \"cols\" splits tensor \"y\" along \"io\", a dimension it "
                 "does not have");
    assert_fails("'y': {'rows':'batch','cols':'hidden'}", "'z': {}",
                 "p.json: /layout/tensors/z: \"z\" is not a tensor of the graph");
    assert_fails("'y': {'rows':'batch','cols':'hidden'}", "'y': {'rows': 'batch'}",
                 "p.json: /layout/tensors/y: key \"cols\" is missing");
    assert_fails("'y': {'rows':'batch','cols':'hidden'}",
                 "'x': {'rows':'partial:sum','cols':"
                 "'replicated'}",
                 "p.json: /layout: tensor \"x\" is no result and cannot be partial");
    assert_fails("'y': {'rows':'batch','cols':'io'}", "'x': {}",
                 "p.json: /layout/operations/x: \"x\" is not an operation of the graph");
    assert_fails("'cols':'io'", "'cols':'heads'",
                 "p.json: /layout/operations/y/cols: operation \"y\": \"heads\" is not a dimension "
                 "it runs over, nor \"duplicated\" or \"partial\"");
    assert_fails("'y': {'rows':'batch','cols':'io'}", "'h': {'rows':'partial','cols':'duplicated'}",
                 "p.json: /layout: operation \"h\" is not linear in its input 0, so that input "
                 "cannot stay partial on axis \"rows\"");
}

TEST(wrong_fields_are_told) {
    assert_fails("'meshtf_plan': 6", "'meshtf_plan': 9",
                 "p.json: /meshtf_plan: version 9 is not 3 to 6, the ones this program reads");
    assert_fails("'precision': 'f32'", "'precision': 'f16'",
                 "p.json: /precision: \"f16\" is not a precision (known: f32, f64, bf16)");
    assert_fails("'microbatches': 1", "'microbatches': 0",
                 "p.json: /execution/microbatches: 0 is not between 1 and 1048576");
    assert_fails("'mesh': 'rows:2;cols:3'", "'mesh': 'rows:2;cols'",
                 "p.json: /mesh: mesh: \"cols\" is not of the form name:value");
    assert_fails(
        "'machine': {", "'machines': {",
        "p.json: /: unknown key \"machines\" (did you mean \"machine\"? known here: meshtf_plan, graph, mesh, "
        "machine, mapping, precision, layout, execution, predicted, search, "
        "program_sha256, software)");
    assert_fails(
        "'rules': null", "'rules': 'io:rows;io:cols'",
        "p.json: /layout/rules: layout: dimension \"io\" is given two mesh axes, \"rows\" and \"cols\"");
    assert_fails("'program_sha256': '", "'program_sha256': 'x",
                 "p.json: /program_sha256: a digest of 64 hexadecimal digits is expected here");
}

/* The file has the whole batch, of which the graph that is run has a part. */
TEST(micro_batches_divide_the_dimension_they_name) {
    g_autoptr(GError) error = NULL;
    g_autofree char *text =
        changed("'microbatches': 1", "'microbatches': 2,\n    'batch_dimension': 'batch'");
    g_autoptr(MtfPlan) plan = parse(text, &error);
    assert_non_null(plan);
    int batch = mtf_graph_find_dimension(plan->graph, "batch");
    assert_int_equal(plan->layout->execution.division.microbatches, 2);
    assert_int_equal(mtf_graph_batch(plan->graph), batch);
    assert_int_equal(mtf_graph_size(plan->graph, batch), 2);
    assert_int_equal(mtf_graph_size(plan->training, batch), 4);
    g_autofree char *again = mtf_plan_print(plan);
    assert_string_equal(again, text);
    assert_null(mtf_plan_lower(plan, NULL));
    assert_fails("'microbatches': 1", "'microbatches': 2",
                 "p.json: /execution: key \"batch_dimension\" is missing");
    assert_fails("'microbatches': 1", "'microbatches': 3, 'batch_dimension': 'batch'",
                 "p.json: /execution: 3 micro-batches do not divide the batch: \"batch\" is 4");
    assert_fails(
        "'microbatches': 1", "'microbatches': 1, 'batch_dimension': 'batch'",
        "p.json: /execution/batch_dimension: a plan without micro-batches names no batch dimension");
    assert_fails("'microbatches': 1", "'microbatches': 2, 'batch_dimension': 'length'",
                 "p.json: /execution/batch_dimension: \"length\" is not a dimension of this graph");
}

TEST(older_plans_of_micro_batches_are_refused) {
    g_autoptr(GError) error = NULL;
    g_autofree char *text =
        changed("'microbatches': 1", "'microbatches': 2, 'batch_dimension': 'batch'");
    g_auto(GStrv) parts = g_strsplit(text, "\"meshtf_plan\": 6", 2);
    g_autofree char *older = g_strjoinv("\"meshtf_plan\": 5", parts);
    assert_null(parse(older, &error));
    assert_string_equal(
        error->message,
        "p.json: /execution: the graph of a plan of version 5 is that of one of several "
        "micro-batches, that of version 6 of the whole step: search again");
}

TEST(what_runs_once_follows_what_is_repeated) {
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfPlan) plan = new_plan();
    mtf_graph_dimension(plan->graph, 0)->step_size = 2 * mtf_graph_size(plan->graph, 0);
    mtf_graph_operation(plan->graph, 1)->phase = MTF_PHASE_UPDATE;
    assert_int_equal(mtf_graph_repeated(plan->graph), 1);
    assert_int_equal(mtf_operation_times(plan->graph, 0), 2);
    assert_int_equal(mtf_operation_times(plan->graph, 1), 1);
    assert_false(mtf_graph_check_microbatches(plan->graph, &error));
    assert_string_equal(error->message,
                        "operation \"l\" (forward) runs once a micro-batch and must stand before "
                        "\"h\" (update), which runs once a step");
}

TEST(a_plan_of_a_user_graph_is_refused) {
    assert_fails("{'name':'h','op':'relu','inputs':['y']}",
                 "{'name':'h','op':'softmax','inputs':['y'],'dimension':'hidden'}",
                 "p.json: /graph: operation \"h\" (softmax) is of the user's graph; the training "
                 "graph of a plan has only what it is rewritten into");
    assert_fails("{'name':'h','op':'relu','inputs':['y']}",
                 "{'name':'k','op':'constant','dims':[],'value':0,'dtype':'int64'},"
                 "{'name':'h','op':'embedding','inputs':['y','k'],'dims':['batch']}",
                 "p.json: /graph: operation \"h\" (embedding): \"k\" is int64; in the graph of a "
                 "plan ids are cast to int32");
}

TEST(a_plan_lowers_to_the_program_it_was_written_for) {
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfPlan) plan = new_plan();
    g_autofree char *text = mtf_plan_print(plan);
    g_autoptr(MtfPlan) again = parse(text, &error);
    g_autoptr(MtfProgram) program = mtf_plan_lower(again, &error);
    assert_non_null(program);
}

TEST(a_changed_plan_is_refused_when_it_is_lowered) {
    g_autoptr(GError) error = NULL;
    g_autofree char *text = changed("'batch': 4", "'batch': 8");
    g_autoptr(MtfPlan) plan = parse(text, &error);
    assert_non_null(plan);
    assert_null(mtf_plan_lower(plan, &error));
    assert_int_equal(mtf_error_exit_status(error), 2);
    assert_non_null(strstr(error->message, "it was changed, or written by another version"));
}

/* The plan that "batch:rows;d_ff:cols" gives for training the small Transformer. */
static MtfPlan *transformer_plan(const char *optimizer) {
    static const char *const rules_text = "batch:rows;vocab:cols;heads:cols;d_ff:cols";
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfGraph) graph =
        mtf_graph_load("layouts/library/graphs/transformer-small.json", NULL, &error);
    assert_non_null(graph);
    g_free(graph->optimizer.kind);
    graph->optimizer.kind = g_strdup(optimizer);
    MtfPlan *plan = g_new0(MtfPlan, 1);
    MtfMesh mesh;
    assert_true(mtf_mesh_parse("rows:2;cols:2", 0, &mesh, NULL));
    plan->training = mtf_training_graph(graph, &error);
    if (plan->training == NULL)
        fail_msg("%s", error->message);
    plan->graph = mtf_graph_copy(plan->training);
    assert_true(mtf_graph_execute(plan->graph, &(MtfDivision){ 0 }, &(MtfKept){ 0 }, 1, &error));
    g_autoptr(MtfRules) rules = mtf_rules_parse(plan->graph, &mesh, rules_text, NULL, &error);
    plan->layout = mtf_layout_from_rules(plan->graph, &mesh, rules);
    plan->precision = g_strdup("f32");
    g_autoptr(MtfProgram) program = mtf_lower(plan->graph, plan->layout);
    plan->program_sha256 = mtf_program_digest(program);
    return plan;
}

/* With every optimizer the training graph is written and read whole: the program stays the same. */
TEST(plans_for_training_lower_to_the_same_program_when_read) {
    static const char *const optimizers[] = { "sgd",       "momentum", "adam", "adamw",
                                              "adafactor", "lion",     "lamb", "muon" };
    for (gsize i = 0; i < G_N_ELEMENTS(optimizers); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(MtfPlan) plan = transformer_plan(optimizers[i]);
        assert_true(mtf_plan_save(plan, "/dev/null", NULL));
        g_autofree char *text = mtf_plan_print(plan);
        g_autoptr(MtfPlan) again = parse(text, &error);
        if (again == NULL)
            fail_msg("%s", error->message);
        g_autofree char *second = mtf_plan_print(again);
        assert_string_equal(text, second);
        g_autoptr(MtfProgram) program = mtf_plan_lower(again, &error);
        if (program == NULL)
            fail_msg("%s: %s", optimizers[i], error->message);
    }
}

/* Two sums of x that nothing connects: they may change places. */
static MtfPlan *two_sums(void) {
    MtfPlan *plan = g_new0(MtfPlan, 1);
    MtfMesh mesh;
    plan->graph = mtf_test_graph(
        "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'batch': 4, 'io': 6}, 'inputs': [{'name': "
        "'x', 'dims': ['batch', 'io'], 'feed': 'features'}], 'variables': [], 'operations': [{'name': "
        "'a', 'op': 'relu', 'inputs': ['x']}, {'name': 'b', 'op': 'tanh', 'inputs': ['x']}, {'name': "
        "'c', 'op': 'add', 'inputs': ['a', 'b']}]}");
    assert_true(mtf_mesh_parse("all:1", 0, &mesh, NULL));
    plan->layout = mtf_layout_new(plan->graph, &mesh);
    mtf_layout_set_order(plan->layout, g_memdup2((int[]){ 1, 0, 2 }, 3 * sizeof(int)), 3);
    plan->precision = g_strdup("f32");
    g_autoptr(MtfProgram) program = mtf_lower(plan->graph, plan->layout);
    plan->program_sha256 = mtf_program_digest(program);
    return plan;
}

TEST(an_order_of_instructions_travels) {
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfPlan) plan = two_sums();
    g_autofree char *text = mtf_plan_print(plan);
    assert_non_null(strstr(text, "[1,1],\n      [0,1],\n      [2,1]"));
    g_autoptr(MtfPlan) again = parse(text, &error);
    if (again == NULL)
        fail_msg("%s", error->message);
    g_autoptr(MtfProgram) program = mtf_plan_lower(again, &error);
    assert_non_null(program);
    assert_int_equal(mtf_program_instruction(program, 0)->operation, 1);
    assert_int_equal(mtf_program_instruction(program, 1)->operation, 0);
}

TEST(the_size_of_joined_exchanges_travels) {
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfPlan) plan = two_sums();
    g_autofree char *alone = mtf_plan_print(plan);
    assert_null(strstr(alone, "bucket_bytes"));
    plan->layout->execution.bucket_bytes = 4096;
    g_autofree char *text = mtf_plan_print(plan);
    g_autoptr(MtfPlan) read = parse(text, &error);
    assert_non_null(read);
    assert_int_equal(read->layout->execution.bucket_bytes, 4096);
    g_autofree char *none = g_strdup(text);
    memcpy(strstr(none, "4096"), "   0", 4);
    assert_null(parse(none, &error));
    assert_non_null(strstr(error->message, "/execution/bucket_bytes"));
}

/* Four layers on rows:2 by a rule, run so that the backward pass recomputes three and fetches what they read. */
static MtfPlan *layers_plan(void) {
    MtfPlan *plan = g_new0(MtfPlan, 1);
    MtfMesh mesh;
    const MtfKept kept = { MTF_RECOMPUTE_LAYERS, 3, MTF_OFFLOAD_LAYERS, 0 };
    g_autoptr(MtfGraph) forward = mtf_test_layers(4, 256, 8, 32);
    plan->training = mtf_training_graph(forward, NULL);
    plan->graph = mtf_graph_copy(plan->training);
    assert_true(mtf_graph_execute(plan->graph, &(MtfDivision){ 0 }, &kept, 1, NULL));
    assert_true(mtf_mesh_parse("rows:2", 0, &mesh, NULL));
    g_autoptr(MtfRules) rules = mtf_rules_parse(plan->graph, &mesh, "b:rows", NULL, NULL);
    assert_non_null(rules);
    plan->layout = mtf_layout_from_rules(plan->graph, &mesh, rules);
    plan->layout->execution.kept = kept;
    plan->precision = g_strdup("f32");
    g_autoptr(MtfProgram) program = mtf_lower(plan->graph, plan->layout);
    plan->program_sha256 = mtf_program_digest(program);
    return plan;
}

/* The file has the graph that was trained before, with what is kept beside it. */
TEST(what_is_kept_stands_beside_the_training_graph) {
    g_autoptr(MtfPlan) plan = layers_plan();
    g_autofree char *text = mtf_plan_print(plan), *step = mtf_plan_step_format(plan);
    assert_string_equal(step, "in one piece, 6 operations recomputed, 3 results waiting with the "
                              "host (recompute layers:3, offload layers)");
    assert_non_null(strstr(text, "\"recompute\": \"layers:3\""));
    assert_non_null(strstr(text, "\"offload\": \"layers\""));
    assert_null(strstr(text, "recompute/"));
    assert_null(strstr(text, "from_host/"));
    g_autoptr(MtfPlan) read = parse(text, NULL);
    assert_non_null(read);
    const MtfKept *kept = &read->layout->execution.kept;
    assert_int_equal(kept->recompute, MTF_RECOMPUTE_LAYERS);
    assert_int_equal(kept->recomputed_layers, 3);
    assert_int_equal(kept->offload, MTF_OFFLOAD_LAYERS);
    assert_int_equal(kept->offloaded_layers, 0);
    g_autoptr(MtfProgram) program = mtf_plan_lower(read, NULL);
    assert_non_null(program);
}

/* Their attention is whole in the file, and the graph of this one has none. */
TEST(parts_of_attention_are_numbers_that_divide_it) {
    assert_fails("'microbatches': 1", "'microbatches': 1, 'ring': 1",
                 "p.json: /execution/ring: 1 is not between 2 and 256");
    assert_fails("'microbatches': 1", "'microbatches': 1, 'ring': 257",
                 "p.json: /execution/ring: 257 is not between 2 and 256");
    assert_fails("'microbatches': 1", "'microbatches': 1, 'key_parts': 65537",
                 "p.json: /execution/key_parts: 65537 is not between 2 and 65536");
    assert_fails("'microbatches': 1", "'microbatches': 1, 'key_parts': 2",
                 "p.json: /execution: --key-parts: \"g\" has no attention whose memory 2 parts "
                 "divide, outside of loops");
}

TEST(what_is_kept_is_said_in_words) {
    assert_fails("'microbatches': 1", "'microbatches': 1, 'recompute': 'blocks'",
                 "p.json: /execution/recompute: \"blocks\" is neither cheap, layers nor layers:K");
    assert_fails(
        "'microbatches': 1", "'microbatches': 1, 'offload': 'layers:0'",
        "p.json: /execution/offload: \"layers:0\" is neither layers, activations, layers:K "
        "nor activations:K");
    assert_fails("'microbatches': 1", "'microbatches': 1, 'recompute': 'layers'",
                 "p.json: /execution: the graph \"g\" repeats no block, so there are no layers to "
                 "recompute");
}

/* What is recomputed is laid out like what it was first, where the plan does not say otherwise. */
TEST(clones_may_have_a_layout_of_their_own) {
    g_autoptr(MtfPlan) plan = layers_plan();
    int clone = mtf_graph_find_operation(plan->graph, "recompute/layer/1/p");
    int original = mtf_graph_find_operation(plan->graph, "layer/1/p");
    assert_true(clone >= 0);
    assert_true(
        mtf_strategy_equal(&plan->layout->operations[clone], &plan->layout->operations[original]));
    plan->layout->operations[clone] = mtf_strategy_duplicated();
    int result = mtf_graph_operation(plan->graph, clone)->outputs[0];
    plan->layout->tensors[result] = mtf_placement_replicated();
    g_autofree char *text = mtf_plan_print(plan);
    assert_non_null(strstr(text, "recompute/layer/1/p"));
    assert_null(strstr(text, "recompute/layer/0/p"));
    g_autoptr(MtfPlan) read = parse(text, NULL);
    assert_non_null(read);
    assert_memory_equal(read->layout->operations, plan->layout->operations,
                        (gsize)plan->layout->n_operations * sizeof(MtfStrategy));
    for (int t = 0; t < plan->layout->n_tensors; t++)
        assert_true(mtf_placement_equal(&read->layout->tensors[t], &plan->layout->tensors[t]));
}

/* Where its graph has clones itself they cannot be told from those that the execution adds. */
TEST(plans_of_version_3_are_read_where_all_is_kept) {
    g_autoptr(GError) error = NULL;
    g_autofree char *older = changed("'meshtf_plan': 6", "'meshtf_plan': 3");
    g_autoptr(MtfPlan) plan = parse(older, NULL);
    assert_non_null(plan);
    g_autofree char *again = mtf_plan_print(plan), *now = changed("rows:2", "rows:2");
    assert_string_equal(again, now);
    g_autoptr(MtfPlan) layers = layers_plan();
    layers->layout->execution.kept = (MtfKept){ 0 };
    g_clear_pointer(&layers->training, mtf_graph_free);
    g_autofree char *whole = mtf_plan_print(layers);
    g_auto(GStrv) parts = g_strsplit(whole, "\"microbatches\": 1", 2);
    g_autofree char *text = g_strjoinv("\"microbatches\": 1, \"recompute\": \"layers:3\"", parts);
    assert_null(parse(text, &error));
    assert_string_equal(error->message,
                        "p.json: /execution: --recompute: the graph \"g\" recomputes "
                        "\"layer/2/p\" by itself");
    assert_fails("'meshtf_plan': 6", "'meshtf_plan': 2",
                 "p.json: /meshtf_plan: version 2 is not 3 to 6, the ones this program reads");
}

/* The plan of two sums with that order instead. */
static void assert_order_fails(const char *order, const char *message) {
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfPlan) plan = two_sums();
    g_autofree char *text = mtf_plan_print(plan);
    const char *list = strstr(text, "\"order\": "), *end = strstr(list, "\n    ]");
    g_autofree char *wrong = g_strdup_printf("%.*s\"order\": %s%s", (int)(list - text), text, order,
                                             end + strlen("\n    ]"));
    assert_null(parse(wrong, &error));
    assert_int_equal(mtf_error_exit_status(error), 2);
    if (strstr(error->message, message) == NULL)
        fail_msg("%s", error->message);
}

TEST(wrong_orders_are_told) {
    assert_order_fails("[[0, 2]]", "the order has 2 instructions, the program 3");
    assert_order_fails("[[0, 3], [0, 1]]", "the order is longer than the program");
    assert_order_fails("[[0, 1], [0, 1], [2, 1]]", "instruction 0 stands twice in the order");
    assert_order_fails("[[0, 1], [3, 1], [2, 1]]", "instruction 3 is none of the program's 3");
    assert_order_fails("[[0, 1], [2, 1], [1, 1]]",
                       "instruction 2 before instruction 1, which it depends on");
    assert_order_fails("[[0], [1, 2]]", "a run is a pair");
    assert_order_fails("[[0, 0], [1, 2]]", "/execution/order/0/1");
    assert_order_fails("3", "/execution/order");
}

/* A variable added after the operations gets another number when the plan is read. */
TEST(a_graph_out_of_order_is_not_saved_until_renumbered) {
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfPlan) plan = new_plan();
    MtfShape scalar = { 0 };
    mtf_graph_add_variable(plan->graph, "late", &scalar, MTF_F32, (MtfInit){ 0 },
                           MTF_MEMORY_OPTIMIZER, NULL);
    assert_false(mtf_plan_save(plan, "/dev/null", &error));
    assert_int_equal(mtf_error_exit_status(error), 1);
    mtf_graph_canonicalize(plan->graph);
    assert_int_equal(mtf_graph_find_tensor(plan->graph, "late"), 2);
    assert_int_equal(mtf_graph_operation(plan->graph, 1)->inputs[0],
                     mtf_graph_find_tensor(plan->graph, "y"));
    assert_true(mtf_plan_save(plan, "/dev/null", NULL));
}
