// SPDX-License-Identifier: GPL-3.0-or-later
/* The algorithms of a program's collectives, from a layout to its plan and back, and the bytes that
 * they send. */
#include "tests/support/cmocka.h"

#include "layouts/plan_file/plan.h"
#include "layouts/program/algorithm_list.h"
#include "layouts/program/collective_messages.h"
#include "tests/support/cases/training_plan.h"

static MtfPlan *plan_of(const char *mesh) {
    MtfTrainingPlan wanted = { .graph = "mlp",
                               .sizes = "batch:12;features:7;hidden:12;targets:5",
                               .mesh = mesh,
                               .rules = "batch:all" };
    MtfPlan *plan = mtf_training_plan(&wanted, NULL);
    assert_non_null(plan);
    return plan;
}

static int count(const MtfProgram *program, MtfExchangeAlgorithm algorithm) {
    int found = 0;
    for (int i = 0; i < mtf_program_length(program); i++)
        found += mtf_program_instruction(program, i)->algorithm == algorithm;
    return found;
}

TEST(a_layout_names_algorithms_where_they_apply) {
    g_autoptr(MtfPlan) plan = plan_of("all:3");
    g_autoptr(MtfProgram) before = mtf_lower(plan->graph, plan->layout);
    mtf_layout_take_algorithm(plan->graph, plan->layout, MTF_EXCHANGE_RING, 0);
    g_autoptr(MtfProgram) program = mtf_lower(plan->graph, plan->layout);
    g_autofree char *direct = mtf_program_digest(before), *ring = mtf_program_digest(program);
    assert_int_equal(count(before, MTF_EXCHANGE_RING), 0);
    assert_true(count(program, MTF_EXCHANGE_RING) > 1);
    assert_string_not_equal(direct, ring);
    mtf_layout_take_algorithm(plan->graph, plan->layout, MTF_EXCHANGE_BUCKET, 0);
    g_autoptr(MtfProgram) line = mtf_lower(plan->graph, plan->layout);
    assert_int_equal(count(line, MTF_EXCHANGE_BUCKET), 0); /* one axis is no bucket */
}

/* A ring of 3 sends 2 * 2/3 of an allreduce's payload, give or take a rounded block, and all of it to
 * the next rank. */
TEST(what_a_ring_sends_goes_to_its_neighbour) {
    g_autoptr(MtfPlan) plan = plan_of("all:3");
    mtf_layout_take_algorithm(plan->graph, plan->layout, MTF_EXCHANGE_RING, 0);
    g_autoptr(MtfProgram) program = mtf_lower(plan->graph, plan->layout);
    for (int i = 0; i < mtf_program_length(program); i++) {
        const MtfInstruction *instruction = mtf_program_instruction(program, i);
        if (instruction->algorithm != MTF_EXCHANGE_RING ||
            instruction->reshard.kind != MTF_RESHARD_ALLREDUCE)
            continue;
        int64_t to[3] = { 0 }, sent = mtf_instruction_sent_bytes(program, i, 1, to);
        int64_t payload = mtf_instruction_payload(program, i, 1);
        assert_true(to[0] == 0 && to[1] == 0 && to[2] == sent);
        assert_true(3 * sent >= 4 * payload - 24 && 3 * sent <= 4 * payload + 24);
    }
}

TEST(random_algorithms_are_those_of_their_seed) {
    g_autoptr(MtfPlan) plan = plan_of("all:4");
    char *digests[3];
    for (int i = 0; i < 3; i++) {
        mtf_layout_take_algorithm(plan->graph, plan->layout, -1, i < 2 ? 5 : 6);
        g_autoptr(MtfProgram) program = mtf_lower(plan->graph, plan->layout);
        digests[i] = mtf_program_digest(program);
    }
    assert_string_equal(digests[0], digests[1]);
    assert_string_not_equal(digests[0], digests[2]);
    for (int i = 0; i < 3; i++)
        g_free(digests[i]);
}

/* Of another order or other buckets the numbers would name other instructions. */
TEST(algorithms_belong_to_one_program) {
    g_autoptr(MtfPlan) plan = plan_of("all:4");
    mtf_layout_take_algorithm(plan->graph, plan->layout, MTF_EXCHANGE_RING, 0);
    g_autoptr(MtfLayout) other = mtf_layout_copy(plan->layout);
    other->execution.bucket_bytes = 1 << 20;
    g_autoptr(MtfProgram) program = mtf_lower(plan->graph, other);
    assert_int_equal(count(program, MTF_EXCHANGE_RING), 0);
}

TEST(lists_are_written_by_algorithm) {
    g_autoptr(MtfPlan) plan = plan_of("all:4");
    assert_null(mtf_algorithms_to_json(plan->layout));
    unsigned char *algorithms = g_new0(unsigned char, 9);
    algorithms[2] = algorithms[8] = MTF_EXCHANGE_RING;
    algorithms[5] = MTF_EXCHANGE_MPI;
    mtf_layout_set_algorithms(plan->layout, algorithms, 9);
    cJSON *json = mtf_algorithms_to_json(plan->layout);
    char *text = cJSON_PrintUnformatted(json);
    assert_string_equal(text, "{\"mpi\":[5],\"ring\":[2,8]}");
    cJSON_free(text);
    cJSON_Delete(json);
}
