// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "cost/memory/arena.h"
#include "cost/price/predict.h"
#include "cost/price/schedule.h"
#include "layouts/placement/rules.h"
#include "tests/support/cases/parse_graph.h"
#include "tests/support/drawn/random_graph.h"

#include <math.h>
#include <string.h>

/* y = relu(x w) v with batch 64, io 32, hidden 128; nothing else. */
static MtfGraph *small_mlp(void) {
    MtfGraph *graph = mtf_graph_new("mlp");
    int b = mtf_graph_add_dimension(graph, "batch", 64, NULL);
    int io = mtf_graph_add_dimension(graph, "io", 32, NULL);
    int out = mtf_graph_add_dimension(graph, "out", 32, NULL);
    int h = mtf_graph_add_dimension(graph, "hidden", 128, NULL);
    MtfInit init = { MTF_INIT_CONSTANT, 0 };
    MtfShape shape = { .rank = 2, .dims = { b, io } };
    int x = mtf_graph_add_input(graph, "x", &shape, MTF_F32, MTF_FEED_FEATURES, NULL);
    shape = (MtfShape){ .rank = 2, .dims = { io, h } };
    int w = mtf_graph_add_variable(graph, "w", &shape, MTF_F32, init, MTF_MEMORY_VARIABLE, NULL);
    shape = (MtfShape){ .rank = 2, .dims = { h, out } };
    int v = mtf_graph_add_variable(graph, "v", &shape, MTF_F32, init, MTF_MEMORY_VARIABLE, NULL);
    MtfNewOperation operation = { .attributes = MTF_NO_ATTRIBUTES };
    operation.name = "xw";
    operation.kind = MTF_OP_EINSUM;
    operation.n_inputs = 2;
    operation.inputs = (int[]){ x, w };
    operation.shape = &(MtfShape){ .rank = 2, .dims = { b, h } };
    int xw = mtf_graph_add_operation(graph, &operation, NULL);
    operation.name = "r";
    operation.kind = MTF_OP_RELU;
    operation.n_inputs = 1;
    operation.inputs = &xw;
    operation.shape = NULL;
    int r = mtf_graph_add_operation(graph, &operation, NULL);
    operation.name = "y";
    operation.kind = MTF_OP_EINSUM;
    operation.n_inputs = 2;
    operation.inputs = (int[]){ r, v };
    operation.shape = &(MtfShape){ .rank = 2, .dims = { b, out } };
    assert_true(mtf_graph_add_operation(graph, &operation, NULL) >= 0);
    return graph;
}

typedef struct {
    MtfGraph *graph;
    MtfMachine *machine;
    MtfLayout *layout;
    MtfProgram *program;
    MtfPricer pricer;
} Case;

static Case case_of(MtfGraph *graph, const char *mesh_text, const char *rules_text) {
    Case c = { .graph = graph,
               .machine = mtf_machine_load("tests/support/machines/torus.json", NULL) };
    c.machine->overlap = false;
    MtfMesh mesh;
    assert_true(mtf_mesh_parse(mesh_text, 0, &mesh, NULL));
    g_autoptr(MtfRules) rules = mtf_rules_parse(graph, &mesh, rules_text, NULL, NULL);
    c.layout = mtf_layout_from_rules(graph, &mesh, rules);
    c.program = mtf_lower(graph, c.layout);
    assert_true(mtf_pricer_init(&c.pricer, c.machine, &mesh, NULL));
    return c;
}

static void free_case(Case *c) {
    mtf_program_free(c->program);
    mtf_layout_free(c->layout);
    mtf_machine_free(c->machine);
    mtf_graph_free(c->graph);
}

/* tpu-v2: 2.3e13 flop/s, 3.5e11 B/s. x w on one rank: 2*64*32*128 = 524288 flops over
 * 4 (2048 + 4096 + 8192) = 57344 bytes; h = 6 * 524288 / 57344 = 54.857, rate = 2.3e13 * 54.857 /
 * 86.857 = 1.45264e13: 36.09 ns; memory 163.84 ns: 1164 ns with the kernel's start. relu: 65536
 * bytes, 187.2 ns: 1187 ns. */
TEST(kernels_follow_the_roofline) {
    Case c = case_of(small_mlp(), "a:1", "");
    assert_int_equal(mtf_program_length(c.program), 3);
    assert_int_equal(mtf_price_instruction(&c.pricer, c.program, 0), 1164);
    assert_int_equal(mtf_price_instruction(&c.pricer, c.program, 1), 1187);
    free_case(&c);
}

/* A product of 4096 x 4096 x 4096: h = 4096, rate = 2.3e13 * 4096 / 4128 = 2.2822e13;
 * 2 * 4096^3 / that = 6022231 ns, and 1000 to start. */
TEST(large_products_run_near_the_peak) {
    MtfGraph *graph = small_mlp();
    for (int d = 0; d < 4; d++)
        mtf_graph_dimension(graph, d)->size = 4096;
    Case c = case_of(graph, "a:1", "");
    double seconds = 2 * pow(4096, 3) / (2.3e13 * 4096 / 4128);
    assert_int_equal(mtf_price_instruction(&c.pricer, c.program, 0), llround(seconds * 1e9 + 1000));
    free_case(&c);
}

/* A product of 4096 x 2048 x 4096 in bfloat16 runs at that type's rate; a sum of 4096 x 4096
 * elements over two ranks carries 2 bytes each. h100: 9.9e14 flop/s. */
TEST(bfloat16_has_its_own_rate_and_half_the_bytes) {
    MtfGraph *graph = small_mlp();
    for (int d = 0; d < 4; d++)
        mtf_graph_dimension(graph, d)->size = 4096;
    for (int t = 0; t < (int)graph->tensors->len; t++)
        mtf_graph_tensor(graph, t)->dtype = MTF_BF16;
    Case c = case_of(graph, "a:2", "hidden:a");
    mtf_machine_free(c.machine);
    c.machine = mtf_machine_load("h100", NULL);
    c.machine->kernels.known = false;
    assert_true(mtf_pricer_init(&c.pricer, c.machine, &c.layout->mesh, NULL));
    double h = 3 / (1.0 / 4096 + 1.0 / 2048 + 1.0 / 4096);
    double seconds = 2 * pow(4096, 3) / 2 / (9.9e14 * h / (h + 32));
    assert_int_equal(mtf_price_instruction(&c.pricer, c.program, 0), llround(seconds * 1e9 + 1000));
    g_autoptr(GArray) rows = mtf_predict_traffic(&c.pricer, c.program, -1);
    assert_int_equal(rows->len, 1);
    assert_int_equal(g_array_index(rows, MtfTrafficRow, 0).elements, 4096 * 4096);
    assert_int_equal(g_array_index(rows, MtfTrafficRow, 0).bytes, 4096 * 4096 * 2);
    free_case(&c);
}

/* The same product on h100, whose file knows its kernels, of tiles of 256 x 128 at 0.72 of the peak:
 * 16 x 32 tiles on 132 units are 3.879 waves, counted as 3.939, of 2 256 128 (2048 + 118) flops each;
 * launched in 2 us. */
TEST(known_kernels_are_priced_by_tiles_and_waves) {
    MtfGraph *graph = small_mlp();
    for (int d = 0; d < 4; d++)
        mtf_graph_dimension(graph, d)->size = 4096;
    mtf_graph_dimension(graph, 1)->size = 2048;
    for (int t = 0; t < (int)graph->tensors->len; t++)
        mtf_graph_tensor(graph, t)->dtype = MTF_BF16;
    Case c = case_of(graph, "a:1", "");
    mtf_machine_free(c.machine);
    c.machine = mtf_machine_load("h100", NULL);
    assert_true(mtf_pricer_init(&c.pricer, c.machine, &c.layout->mesh, NULL));
    double waves = 0.5 * (512.0 / 132 + 4);
    double seconds = waves * 2 * 256 * 128 * (2048 + 118) * 132 / (0.72 * 9.9e14);
    assert_int_equal(mtf_price_instruction(&c.pricer, c.program, 0), llround(seconds * 1e9 + 2000));
    free_case(&c);
}

/* hidden on 4 ranks: y is summed once, 64 * 32 elements. */
TEST(one_sum_is_one_row_of_traffic) {
    Case c = case_of(small_mlp(), "a:4", "hidden:a");
    g_autoptr(GArray) rows = mtf_predict_traffic(&c.pricer, c.program, -1);
    assert_int_equal(rows->len, 1);
    const MtfTrafficRow *row = &g_array_index(rows, MtfTrafficRow, 0);
    assert_int_equal(row->kind, MTF_RESHARD_ALLREDUCE);
    assert_int_equal(row->reduction, MTF_REDUCE_SUM);
    assert_int_equal(row->axes, 1);
    assert_int_equal(row->calls, 1);
    assert_int_equal(row->elements, 64 * 32);
    assert_int_equal(row->bytes, 64 * 32 * 4);
    assert_true(fabs(row->link_bytes - 2.0 * 3 / 4 * 64 * 32 * 4) < 1e-6);
    assert_int_equal(row->nanoseconds,
                     llround(1e9 * mtf_collective_seconds(c.machine, &c.pricer.map, MTF_ALLREDUCE,
                                                          1, 64 * 32 * 4)));
    free_case(&c);
}

/* 7 rows of batch over 2 ranks: sums of 3 and 4 rows of 32 columns. */
TEST(ragged_ranks_pass_different_payloads) {
    MtfGraph *graph = small_mlp();
    mtf_graph_dimension(graph, 0)->size = 7;
    Case c = case_of(graph, "r:2;c:2", "batch:r;hidden:c");
    static const int64_t expected[] = { 3 * 32, 3 * 32, 4 * 32, 4 * 32 };
    for (int rank = 0; rank < 4; rank++) {
        g_autoptr(GArray) rows = mtf_predict_traffic(&c.pricer, c.program, rank);
        assert_int_equal(rows->len, 1);
        assert_int_equal(g_array_index(rows, MtfTrafficRow, 0).elements, expected[rank]);
    }
    free_case(&c);
}

static double number(const cJSON *object, const char *key) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    assert_non_null(item);
    return g_ascii_strtod(item->valuestring, NULL);
}

/* multiply_adds: 64*32*128 twice, a quarter each; memory kinds add up to the peak. */
TEST(the_object_holds_what_it_promises) {
    Case c = case_of(small_mlp(), "a:4", "hidden:a");
    cJSON *predicted = mtf_predict(&c.pricer, c.program);
    g_autoptr(MtfArena) arena = mtf_arena_pack(c.program);
    assert_true(number(predicted, "multiply_adds") == 2 * 64 * 32 * 128 / 4);
    assert_true(number(predicted, "peak_memory_bytes") == (double)arena->bytes);
    double sum = 0;
    const cJSON *kind;
    cJSON_ArrayForEach(kind, cJSON_GetObjectItem(predicted, "memory")) {
        sum += g_ascii_strtod(kind->valuestring, NULL);
    }
    assert_true(sum == (double)arena->bytes);
    double parts =
        number(predicted, "compute_seconds") + number(predicted, "communication_seconds");
    assert_true(fabs(parts - number(predicted, "step_seconds")) < 1e-12);
    cJSON_Delete(predicted);
    free_case(&c);
}

/* hidden on 4 ranks: the last product and its sum once a step, what is before it three times. */
TEST(micro_batches_repeat_all_but_clipping_and_updates) {
    MtfGraph *graph = small_mlp();
    mtf_graph_dimension(graph, 0)->step_size = 3 * mtf_graph_size(graph, 0);
    Case every = case_of(graph, "a:4", "hidden:a");
    assert_int_equal(every.program->n_repeated, mtf_program_length(every.program));
    g_autoptr(GArray) thrice = mtf_predict_traffic(&every.pricer, every.program, -1);
    assert_int_equal(g_array_index(thrice, MtfTrafficRow, 0).calls, 3);
    assert_int_equal(g_array_index(thrice, MtfTrafficRow, 0).bytes, 3 * 64 * 32 * 4);

    mtf_graph_operation(graph, 2)->phase = MTF_PHASE_UPDATE;
    Case c = case_of(graph, "a:4", "hidden:a");
    assert_int_equal(c.program->n_repeated, 2);
    g_autoptr(GArray) once = mtf_predict_traffic(&c.pricer, c.program, -1);
    assert_int_equal(g_array_index(once, MtfTrafficRow, 0).calls, 1);
    int64_t sum = 0;
    for (int i = 0; i < mtf_program_length(c.program); i++)
        sum += (i < 2 ? 3 : 1) * mtf_price_instruction(&c.pricer, c.program, i);
    assert_int_equal(mtf_price_program(&c.pricer, c.program), sum);
    g_autoptr(MtfSchedule) schedule = mtf_schedule_new(&c.pricer, c.program);
    assert_int_equal(schedule->nanoseconds, sum);
    cJSON *predicted = mtf_predict(&c.pricer, c.program);
    assert_true(number(predicted, "multiply_adds") == (3 + 1) * 64 * 32 * 128 / 4.0);
    cJSON_Delete(predicted);
    every.graph = NULL;
    free_case(&every);
    free_case(&c);
}

TEST(the_table_names_the_collective) {
    Case c = case_of(small_mlp(), "a:4", "hidden:a");
    cJSON *predicted = mtf_predict(&c.pricer, c.program);
    g_autofree char *text = mtf_predicted_format(predicted);
    assert_non_null(strstr(text, "allreduce sum"));
    assert_non_null(strstr(text, "2048"));
    cJSON_Delete(predicted);
    free_case(&c);
}

/* Without overlap the additive cost is the length of the schedule: 100 random graphs. */
TEST(the_price_of_a_program_is_its_step_time) {
    for (guint32 seed = 0; seed < 100; seed++) {
        MtfRandomGraph options = {
            .seed = seed, .dimensions = 4, .operations = 10, .largest_size = 9, .dtype = MTF_F64
        };
        MtfGraph *graph = mtf_random_graph(&options);
        Case c = case_of(graph, "a:2;b:3", "d0:a");
        g_autoptr(MtfSchedule) schedule = mtf_schedule_new(&c.pricer, c.program);
        cJSON *predicted = mtf_predict(&c.pricer, c.program);
        int64_t price = mtf_price_program(&c.pricer, c.program);
        assert_int_equal(schedule->nanoseconds, price);
        assert_int_equal(llround(number(predicted, "step_seconds") * 1e9), price);
        cJSON_Delete(predicted);
        free_case(&c);
    }
}

/* Attention of 8 heads of 64 over 2048 places: 4 * 64 * 8 * 2048^2 flop = 8.59e9 in blocks of 64 x
 * 512, h = 90.35, at 90.35 / (90.35 + 32) of the rate, however long the sequence is. */
TEST(attention_is_priced_by_its_blocks) {
    g_autoptr(MtfGraph) graph = mtf_test_graph(
        "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'h': 8, 'l': 2048, 't': 2048, 'd': 64}, "
        "'inputs': [{'name': 'q', 'dims': ['h', 'l', 'd'], 'feed': 'features'}, {'name': 'k', 'dims': "
        "['h', 't', 'd'], 'feed': 'features'}], 'variables': [], 'operations': [{'name': 'y', 'op': "
        "'attention', 'inputs': ['q', 'k', 'k'], 'query': 'l', 'memory': 't', 'dimension': 'd', "
        "'factor': 0.125}]}");
    g_autoptr(MtfMachine) machine = mtf_machine_load("tests/support/machines/torus.json", NULL);
    MtfMesh mesh;
    MtfPricer pricer;
    assert_true(mtf_mesh_parse("all:1", 0, &mesh, NULL));
    assert_true(mtf_pricer_init(&pricer, machine, &mesh, NULL));
    g_autoptr(MtfLayout) layout = mtf_layout_new(graph, &mesh);
    g_autoptr(MtfProgram) program = mtf_lower(graph, layout);
    double flops = 4.0 * 64 * 8 * 2048 * 2048, side = 3 / (2 / 64.0 + 1 / 512.0);
    double seconds = flops / (pricer.rate[MTF_F32] * side / (side + 32)) + 1e-6;
    double priced = (double)mtf_price_instruction(&pricer, program, 0) / 1e9;
    assert_true(fabs(priced / seconds - 1) < 1e-6);
}

/* The second half of 2^20 numbers on 4 processors of a ring, a quarter of it each: the third sends all of its 2^20
 * bytes, half of them two places on, so over one link at 0.95 * 3.1e10 B/s all go: 35.6 us; to be laid together and
 * apart 2 (2^20 + 2^19 + 2^19) bytes are copied at 3.5e11 B/s: 12.0 us. To neighbours half goes either way. */
TEST(what_goes_far_goes_over_a_link_together) {
    Case c = case_of(
        mtf_test_graph(
            "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'u': 1048576, 't': 524288}, 'inputs': ["
            "{'name': 'x', 'dims': ['u'], 'feed': 'features'}], 'variables': [], 'operations': ["
            "{'name': 'y', 'op': 'resample', 'inputs': ['x'], 'from': 'u', 'to': 't', 'start': 524288}]}"),
        "all:4", "u:all;t:all");
    const MtfInstruction *halo = mtf_program_instruction(c.program, 0);
    assert_int_equal(halo->reshard.kind, MTF_RESHARD_HALO);
    assert_int_equal(halo->places, 2);
    assert_int_equal(halo->payload_bytes, 1 << 20);
    assert_true(mtf_price_instruction(&c.pricer, c.program, 0) > 47600);
    free_case(&c);
}
