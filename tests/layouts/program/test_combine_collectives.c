// SPDX-License-Identifier: GPL-3.0-or-later
/* Which exchanges travel together, and where. That the results are the same bits is checked where
 * programs run (test_layout_invariance.c, test_layouts_agree.c, test_session.c). */
#include "tests/support/cmocka.h"

#include "layouts/program/program_order.h"
#include "tests/support/cases/training_case.h"
#include "tests/support/draws.h"

#define LAYERS 6

typedef struct {
    MtfTrainingCase training;
    MtfProgram *alone, *joined;
} Case;

static void clear_case(Case *c) {
    mtf_program_free(c->alone);
    mtf_program_free(c->joined);
    mtf_training_case_clear(&c->training);
}

static void lower_both(Case *c, int64_t bytes) {
    MtfTrainingCase *training = &c->training;
    c->alone = mtf_lower_as_written(training->graph, training->layout);
    training->layout->execution.bucket_bytes = bytes;
    c->joined = mtf_lower(training->graph, training->layout);
}

static int count_messages(const MtfProgram *program) {
    int n = 0;
    for (int i = 0; i < mtf_program_length(program); i++)
        n += mtf_instruction_is_collective(mtf_program_instruction(program, i));
    return n;
}

/* ---- The witness: each exchange as written against the program ---------------------------------
 */

/* How many buffers of tensors stand before this one: the same before and after joining, while
 * scratch comes and goes. */
static int number_of(const MtfProgram *program, int buffer) {
    int number = 0;
    for (int b = 0; b < buffer; b++)
        number += mtf_program_buffer(program, b)->tensor >= 0;
    return number;
}

/* The instruction that brings what the input-th buffer holds to the output-th, and how often there
 * is one. */
static int find_step(const MtfProgram *program, int input, int output, int *times) {
    int found = -1;
    *times = 0;
    for (int i = 0; i < mtf_program_length(program); i++) {
        const MtfInstruction *instruction = mtf_program_instruction(program, i);
        for (int k = 0; k < instruction->n_outputs; k++)
            if (instruction->kind == MTF_INSTRUCTION_RESHARD &&
                number_of(program, instruction->inputs[k]) == input &&
                number_of(program, instruction->outputs[k]) == output) {
                found = i;
                ++*times;
            }
    }
    return found;
}

static int find_kernel(const MtfProgram *program, int output, int *times) {
    int found = -1;
    *times = 0;
    for (int i = 0; i < mtf_program_length(program); i++) {
        const MtfInstruction *instruction = mtf_program_instruction(program, i);
        if (instruction->kind == MTF_INSTRUCTION_KERNEL &&
            number_of(program, instruction->outputs[0]) == output) {
            found = i;
            ++*times;
        }
    }
    return found;
}

/* The place in the joined program of every instruction as written, or what is wrong. */
static const char *find_places(const Case *c, int *places) {
    for (int i = 0; i < mtf_program_length(c->alone); i++) {
        const MtfInstruction *written = mtf_program_instruction(c->alone, i);
        int times, output = number_of(c->alone, written->outputs[0]);
        places[i] =
            written->kind == MTF_INSTRUCTION_KERNEL
                ? find_kernel(c->joined, output, &times)
                : find_step(c->joined, number_of(c->alone, written->inputs[0]), output, &times);
        if (times != 1)
            return "an instruction is lost, or there twice";
    }
    return NULL;
}

/* The segment that instruction `index` lies in. */
static int stretch_of(const MtfProgram *program, int index) {
    int ends[MTF_SEGMENTS], s = 0;
    mtf_program_segments(program, ends);
    while (ends[s] <= index)
        s++;
    return s;
}

static const char *order_fault(const Case *c, const int *places) {
    g_autoptr(MtfDependences) waits = mtf_dependences_new(c->alone);
    for (int i = 0; i < waits->n; i++) {
        if (stretch_of(c->alone, i) != stretch_of(c->joined, places[i]))
            return "an instruction has left its part of the step";
        for (int k = waits->begins[i]; k < waits->begins[i + 1]; k++)
            if (places[waits->before[k]] >= places[i])
                return "an instruction does not come after what it depends on";
    }
    return NULL;
}

/* Whether message `index` is one of what `places` says are its members, and carries their bytes. */
static const char *message_fault(const Case *c, const int *places, int index) {
    const MtfInstruction *message = mtf_program_instruction(c->joined, index);
    int64_t payload = 0;
    int members = 0;
    for (int i = 0; i < mtf_program_length(c->alone); i++) {
        const MtfInstruction *written = mtf_program_instruction(c->alone, i);
        if (places[i] != index)
            continue;
        members++;
        payload += written->payload_bytes;
        if (written->reshard.kind != message->reshard.kind ||
            written->reshard.axes != message->reshard.axes ||
            written->reshard.reduction != message->reshard.reduction ||
            mtf_reshard_tensor(c->alone, written)->dtype !=
                mtf_reshard_tensor(c->joined, message)->dtype)
            return "exchanges of several kinds travel together";
        if (message->n_inputs > 1 &&
            written->payload_bytes > c->training.layout->execution.bucket_bytes)
            return "a large exchange travels with others";
    }
    if (members != message->n_inputs || payload != message->payload_bytes)
        return "it is not made of the exchanges as written";
    return members > 1 && payload > c->training.layout->execution.bucket_bytes ? "it is too large"
                                                                               : NULL;
}

static const char *fault(const Case *c) {
    g_autofree int *places = g_new(int, mtf_program_length(c->alone) + 1);
    const char *wrong = find_places(c, places);
    wrong = wrong != NULL ? wrong : order_fault(c, places);
    for (int b = 0; b < (int)c->joined->buffers->len && wrong == NULL; b++)
        if (mtf_program_buffer(c->joined, b)->first > mtf_program_buffer(c->joined, b)->last &&
            mtf_program_buffer(c->joined, b)->tensor < 0)
            wrong = "there is scratch that nobody uses";
    for (int i = 0; i < mtf_program_length(c->joined) && wrong == NULL; i++)
        if (mtf_instruction_is_collective(mtf_program_instruction(c->joined, i)))
            wrong = message_fault(c, places, i);
    return wrong;
}

/* ---- Claims ------------------------------------------------------------------------------------
 */

static bool draw_case(Case *c, guint32 seed, const char *mesh) {
    if (!mtf_training_case_draw(&c->training, seed, mesh))
        return false;
    lower_both(c, 20 << seed % 8);
    return true;
}

TEST(messages_are_made_of_the_exchanges_as_written) {
    int joined = 0, draws = mtf_draws(300);
    for (guint32 seed = 0; seed < (guint32)draws; seed++) {
        Case c;
        if (!draw_case(&c, seed, seed % 3 ? "a:2;b:2" : "a:3"))
            continue;
        const char *wrong = fault(&c);
        if (wrong != NULL)
            fail_msg("seed %u: %s", seed, wrong);
        joined += count_messages(c.alone) - count_messages(c.joined);
        clear_case(&c);
    }
    assert_true(joined > draws);
}

TEST(the_witness_sees_what_is_wrong) {
    int cases = 0;
    for (guint32 seed = 0; seed < 60; seed++) {
        Case c;
        if (!draw_case(&c, seed, "a:2;b:2"))
            continue;
        for (int i = 0; i < mtf_program_length(c.joined); i++) {
            MtfInstruction *message = mtf_program_instruction(c.joined, i);
            if (message->n_inputs < 2 || !mtf_instruction_is_collective(message))
                continue;
            message->payload_bytes++;
            assert_string_equal(fault(&c), "it is not made of the exchanges as written");
            message->payload_bytes--;
            message->reshard.axes ^= 1;
            assert_string_equal(fault(&c), "exchanges of several kinds travel together");
            message->reshard.axes ^= 1;
            message->n_inputs = message->n_outputs = 1;
            assert_string_equal(fault(&c), "an instruction is lost, or there twice");
            cases++;
            break;
        }
        clear_case(&c);
    }
    assert_true(cases > 10);
}

static void draw_network(Case *c, const char *rules, int64_t bytes) {
    mtf_training_case_perceptron(&c->training, LAYERS, rules);
    lower_both(c, bytes);
}

/* Each of LAYERS + 1 layers has the gradient of a bias, of 128 numbers at most, and that of a
 * matrix, 128 times as much but in the last one: only the biases' are small. The updates of the
 * biases stand behind the message. */
TEST(the_gradients_of_biases_travel_as_one_message) {
    Case c;
    int several = 0;
    draw_network(&c, "batch:a", 4096);
    for (int i = 0; i < mtf_program_length(c.joined); i++) {
        const MtfInstruction *message = mtf_program_instruction(c.joined, i);
        if (!mtf_instruction_is_collective(message) || message->n_inputs == 1)
            continue;
        several++;
        assert_int_equal(message->n_inputs, LAYERS + 1);
        for (int k = 0; k < message->n_inputs; k++) {
            int tensor = mtf_program_buffer(c.joined, message->inputs[k])->tensor;
            assert_int_equal(mtf_graph_tensor(c.training.graph, tensor)->shape.rank, 1);
        }
    }
    assert_int_equal(several, 1);
    assert_int_equal(count_messages(c.joined), count_messages(c.alone) - LAYERS);
    assert_null(fault(&c));
    clear_case(&c);
}

/* With the hidden dimension split every other layer ends in a sum that the next operation reads. */
TEST(what_is_read_at_once_does_not_wait) {
    Case c;
    draw_network(&c, "hidden:a", 1 << 30);
    for (int i = 0; i < mtf_program_length(c.alone); i++) {
        const MtfInstruction *written = mtf_program_instruction(c.alone, i);
        const MtfInstruction *instruction = mtf_program_instruction(c.joined, i);
        if (mtf_graph_operation(c.training.graph, written->operation)->phase != MTF_PHASE_FORWARD)
            break;
        assert_int_equal(instruction->operation, written->operation);
        assert_int_equal(instruction->n_inputs, written->n_inputs);
    }
    assert_null(fault(&c));
    clear_case(&c);
}

TEST(without_room_in_a_message_nothing_is_joined) {
    Case c;
    draw_network(&c, "batch:a", 3);
    assert_int_equal(count_messages(c.joined), count_messages(c.alone));
    clear_case(&c);
}
