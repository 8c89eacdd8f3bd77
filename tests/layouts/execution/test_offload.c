// SPDX-License-Identifier: GPL-3.0-or-later
/* What waits with the host, from when to when, and what that takes. That it gives the same bits is shown in
 * tests/runtime/session/test_offloaded_bits.c. */
#include "tests/support/cmocka.h"

#include "analyzer/training/training_graph.h"
#include "cost/memory/arena.h"
#include "cost/price/predict.h"
#include "cost/price/schedule.h"
#include "layouts/base/json_writer.h"
#include "layouts/execution/early_updates.h"
#include "layouts/execution/offload.h"
#include "layouts/execution/recompute.h"
#include "layouts/program/program.h"
#include "tests/support/cases/parse_graph.h"

#include <string.h>

/* 256 rows of 8 float32: what a layer hands on. */
#define HANDED ((int64_t)(256 * 8 * 4))

static MtfGraph *training(int layers) {
    g_autoptr(MtfGraph) forward = mtf_test_layers(layers, 256, 8, 32);
    MtfGraph *graph = mtf_training_graph(forward, NULL);
    mtf_update_early(graph);
    return graph;
}

static MtfGraph *offloaded(int layers, MtfOffload offload, int first) {
    MtfGraph *graph = training(layers);
    assert_true(mtf_graph_offload(
        graph, &(MtfKept){ .offload = offload, .offloaded_layers = first }, NULL));
    return graph;
}

static int place(const MtfGraph *graph, const char *operation) {
    return mtf_graph_find_operation(graph, operation);
}

/* Layer 0 reads an input, and what layer 3 makes is read by none. */
TEST(what_layers_read_of_others_waits_with_the_host) {
    g_autoptr(MtfGraph) graph = offloaded(4, MTF_OFFLOAD_LAYERS, 0);
    for (int layer = 0; layer < 4; layer++) {
        g_autofree char *name = g_strdup_printf("layer/%d/n", layer);
        g_autofree char *to = g_strdup_printf("to_host/%s", name);
        g_autofree char *from = g_strdup_printf("from_host/%s", name);
        assert_int_equal(place(graph, to) >= 0, layer < 3);
        assert_int_equal(place(graph, from) >= 0, layer < 3);
        if (layer < 3) {
            assert_false(mtf_test_is_read_back(graph, name));
            assert_true(mtf_test_is_read_back(graph, from));
            assert_int_equal(place(graph, to), place(graph, name) + 1);
        }
    }
    assert_true(mtf_test_is_read_back(graph, "layer/1/p"));
}

/* p and a are read by gradients, too: four times as wide as n. */
TEST(activations_are_all_that_the_backward_pass_reads_of_layers) {
    static const char *const kept[] = { "p", "a", "n" };
    g_autoptr(MtfGraph) graph = offloaded(3, MTF_OFFLOAD_ACTIVATIONS, 2);
    for (int layer = 0; layer < 3; layer++)
        for (gsize i = 0; i < G_N_ELEMENTS(kept); i++) {
            g_autofree char *name = g_strdup_printf("to_host/layer/%d/%s", layer, kept[i]);
            int waits_for =
                layer + (strcmp(kept[i], "n") == 0); /* n is what the next layer reads */
            assert_int_equal(place(graph, name) >= 0, waits_for < 2);
        }
}

/* What layer 1 reads comes back before layer 2's gradients are computed, not before those of layer 3. */
TEST(it_is_fetched_one_layer_ahead) {
    g_autoptr(MtfGraph) graph = offloaded(4, MTF_OFFLOAD_LAYERS, 0);
    int fetched = place(graph, "from_host/layer/0/n");
    int made = mtf_graph_tensor(graph, mtf_graph_find_tensor(graph, "grad/layer/1/n"))->producer;
    int later = mtf_graph_tensor(graph, mtf_graph_find_tensor(graph, "grad/layer/2/n"))->producer;
    assert_true(later < fetched && fetched < made);
    for (int i = 0; i < (int)graph->operations->len; i++) {
        const MtfOperation *op = mtf_graph_operation(graph, i);
        for (int k = 0; k < op->n_inputs; k++)
            assert_true(mtf_graph_tensor(graph, op->inputs[k])->producer < i);
    }
}

TEST(recomputed_layers_begin_with_what_is_fetched) {
    g_autoptr(MtfGraph) graph = training(3);
    assert_true(
        mtf_graph_recompute(graph, &(MtfKept){ .recompute = MTF_RECOMPUTE_LAYERS }, 1, NULL));
    assert_true(mtf_graph_offload(
        graph, &(MtfKept){ .offload = MTF_OFFLOAD_LAYERS, .offloaded_layers = 0 }, NULL));
    const MtfOperation *clone = mtf_graph_operation(graph, place(graph, "recompute/layer/1/p"));
    assert_string_equal(mtf_graph_tensor(graph, clone->inputs[0])->name, "from_host/layer/0/n");
}

typedef struct {
    MtfLayout *layout;
    MtfProgram *program;
    MtfArena *arena;
} Lowered;

static Lowered lower(const MtfGraph *graph) {
    MtfMesh mesh = { 0 };
    Lowered lowered = { .layout = mtf_layout_new(graph, &mesh) };
    lowered.program = mtf_lower(graph, lowered.layout);
    lowered.arena = mtf_arena_pack(lowered.program);
    return lowered;
}

static void lowered_clear(Lowered *lowered) {
    mtf_arena_free(lowered->arena);
    mtf_program_free(lowered->program);
    mtf_layout_free(lowered->layout);
}

/* Layers recomputed one at a time keep nothing but what they read: of 40 layers 39 results of other layers.
 * With the host none of them stays while the last layers are computed and their gradients begin, but the
 * last, which is made there, and those that are on their way: at most MTF_EXCHANGES_UNDER_WAY there, and
 * the first two that come back. */
TEST(the_device_loses_what_the_host_holds) {
    g_autoptr(MtfGraph) whole = training(40);
    g_autoptr(MtfGraph) graph = training(40);
    assert_true(
        mtf_graph_recompute(whole, &(MtfKept){ .recompute = MTF_RECOMPUTE_LAYERS }, 1, NULL));
    assert_true(
        mtf_graph_recompute(graph, &(MtfKept){ .recompute = MTF_RECOMPUTE_LAYERS }, 1, NULL));
    assert_true(mtf_graph_offload(
        graph, &(MtfKept){ .offload = MTF_OFFLOAD_LAYERS, .offloaded_layers = 0 }, NULL));
    Lowered before = lower(whole), after = lower(graph);
    assert_int_equal(before.arena->host_bytes, 0);
    assert_int_equal(after.arena->host_bytes, 39 * HANDED);
    assert_true(after.arena->bytes <= before.arena->bytes - (39 - 7) * HANDED);
    assert_true(mtf_arena_check(after.program, after.arena, NULL));
    lowered_clear(&before);
    lowered_clear(&after);
}

/* Two buffers that wait at once with the host overlap where one is moved there. */
TEST(a_wrong_place_with_the_host_is_noticed) {
    g_autoptr(MtfGraph) graph = offloaded(4, MTF_OFFLOAD_LAYERS, 0);
    Lowered lowered = lower(graph);
    int last = -1, other = -1;
    for (int b = 0; b < (int)lowered.program->buffers->len; b++)
        if (mtf_buffer_is_on_host(lowered.program, b)) {
            other = last;
            last = b;
        }
    lowered.arena->offsets[last] = lowered.arena->offsets[other];
    assert_false(mtf_arena_check(lowered.program, lowered.arena, NULL));
    lowered_clear(&lowered);
}

/* A machine with round figures, whose copies run beside kernels or not. */
static MtfMachine *machine_with(double host_bandwidth, bool overlap) {
    MtfMachine *machine = mtf_machine_load("cpu-host", NULL);
    machine->host_bandwidth = host_bandwidth;
    machine->overlap = overlap;
    return machine;
}

/* Six copies of 8192 bytes at 1e9 bytes a second, and a microsecond each to start. */
TEST(a_copy_takes_its_bytes_over_the_link) {
    g_autoptr(MtfGraph) graph = offloaded(4, MTF_OFFLOAD_LAYERS, 0);
    g_autoptr(MtfMachine) machine = machine_with(1e9, false);
    Lowered lowered = lower(graph);
    MtfPricer pricer;
    assert_true(mtf_pricer_init(&pricer, machine, &lowered.layout->mesh, NULL));
    g_autoptr(MtfSchedule) schedule = mtf_schedule_new(&pricer, lowered.program);
    assert_int_equal(schedule->host_copies, 6 * (HANDED + 1000));
    assert_int_equal(schedule->exposed_host_copies, schedule->host_copies);
    assert_int_equal(schedule->nanoseconds, schedule->compute + schedule->host_copies);
    assert_int_equal(schedule->nanoseconds, mtf_price_program(&pricer, lowered.program));
    cJSON *predicted = mtf_predict(&pricer, lowered.program);
    assert_true(mtf_json_number_of(predicted, "host_memory_bytes", 0) == (double)(3 * HANDED));
    assert_true(mtf_json_number_of(predicted, "host_copy_bytes", 0) == (double)(6 * HANDED));
    cJSON_Delete(predicted);
    lowered_clear(&lowered);
}

/* Beside kernels a fast link hides them, a slow one holds the step up: both directions of it are busy for
 * three copies each, those back after those there. */
TEST(copies_run_beside_kernels) {
    static const double bandwidths[] = { 1e12, 1e6 };
    g_autoptr(MtfGraph) graph = offloaded(4, MTF_OFFLOAD_LAYERS, 0);
    Lowered lowered = lower(graph);
    for (int i = 0; i < 2; i++) {
        g_autoptr(MtfMachine) machine = machine_with(bandwidths[i], true);
        g_autoptr(GError) error = NULL;
        MtfPricer pricer;
        assert_true(mtf_pricer_init(&pricer, machine, &lowered.layout->mesh, NULL));
        g_autoptr(MtfSchedule) schedule = mtf_schedule_new(&pricer, lowered.program);
        if (!mtf_schedule_check(&pricer, lowered.program, schedule, &error))
            fail_msg("%s", error->message);
        assert_int_equal(schedule->nanoseconds, schedule->compute + schedule->exposed +
                                                    schedule->exposed_host_copies + schedule->host);
        assert_int_equal(schedule->exposed_host_copies == 0, i == 0);
        if (i == 1)
            assert_true(schedule->nanoseconds >= 3 * HANDED * 1000 + HANDED * 1000);
    }
    lowered_clear(&lowered);
}

TEST(names_are_read_and_written) {
    static const char *const names[] = { "none", "layers", "activations", "layers:3",
                                         "activations:12" };
    MtfOffload offload;
    int layers;
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        assert_true(mtf_offload_parse(names[i], &offload, &layers, NULL));
        g_autofree char *text = mtf_offload_format(offload, layers);
        assert_string_equal(text, names[i]);
    }
    static const char *const wrong[] = { "",       "layer", "layers:",      "layers:0",
                                         "none:2", "all",   "activations:x" };
    for (gsize i = 0; i < G_N_ELEMENTS(wrong); i++)
        assert_false(mtf_offload_parse(wrong[i], &offload, &layers, NULL));
}

static void check_refused(MtfGraph *graph, int layers, const char *says) {
    g_autoptr(GError) error = NULL;
    assert_false(mtf_graph_offload(
        graph, &(MtfKept){ .offload = MTF_OFFLOAD_LAYERS, .offloaded_layers = layers }, &error));
    if (strstr(error->message, says) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", error->message, says);
}

TEST(what_cannot_wait_is_refused) {
    g_autoptr(MtfGraph) graph = training(3);
    check_refused(graph, 4, "repeats 3 layers, not 4");
    g_autoptr(MtfGraph) one = training(1);
    check_refused(one, 0, "nothing of \"g\" waits");
    g_autoptr(MtfGraph) flat = mtf_test_graph(
        "{'meshtf_graph': 1, 'name': 'flat', 'dimensions': {'b': 4}, 'inputs': [{'name': 'x', "
        "'dims': ['b'], 'feed': 'features'}], 'operations': [{'name': 'l', 'op': 'reduce_mean', "
        "'inputs': ['x'], 'dims': []}], 'loss': 'l'}");
    check_refused(flat, 0, "repeats no block");
}

/* What lies with the host is no operand of kernels, nor can it be fetched from where it is not. */
TEST(only_from_host_reads_what_lies_with_the_host) {
    g_autoptr(MtfGraph) graph = offloaded(3, MTF_OFFLOAD_LAYERS, 0);
    int inputs[] = { mtf_graph_find_tensor(graph, "to_host/layer/0/n"),
                     mtf_graph_find_tensor(graph, "layer/0/n") };
    static const MtfOperationKind kinds[] = { MTF_OP_GELU, MTF_OP_FROM_HOST };
    for (int i = 0; i < 2; i++) {
        MtfNewOperation wrong = { .name = "wrong",
                                  .kind = (int)kinds[i],
                                  .n_inputs = 1,
                                  .inputs = &inputs[i],
                                  .attributes = MTF_NO_ATTRIBUTES };
        g_autoptr(GError) error = NULL;
        assert_true(mtf_graph_add_operation(graph, &wrong, &error) < 0);
        assert_non_null(strstr(error->message, "host"));
    }
}

/* With the host there is no way from one placement to another. */
TEST(no_layout_reshards_what_lies_with_the_host) {
    g_autoptr(MtfGraph) graph = offloaded(3, MTF_OFFLOAD_LAYERS, 0);
    MtfMesh mesh = { 0 };
    assert_true(mtf_mesh_parse("rows:2", 0, &mesh, NULL));
    g_autoptr(MtfLayout) layout = mtf_layout_new(graph, &mesh);
    assert_true(mtf_layout_check(graph, layout, NULL));
    layout->operations[place(graph, "from_host/layer/0/n")].axis[0] = 0;
    g_autoptr(GError) error = NULL;
    assert_false(mtf_layout_check(graph, layout, &error));
    assert_non_null(strstr(error->message, "host's memory"));
}
