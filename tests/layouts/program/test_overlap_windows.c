// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "layouts/program/lifetimes.h"
#include "layouts/program/overlap_windows.h"
#include "tests/support/cases/training_case.h"

#define LAYERS 6

/* More operands than any instruction here has. */
#define MOST_OPERANDS 256

typedef struct {
    MtfTrainingCase training;
    MtfProgram *program;
} Case;

static void clear_case(Case *c) {
    mtf_program_free(c->program);
    mtf_training_case_clear(&c->training);
}

/* ---- The witness: plain loops over the written program ----------------------------------------
 */

/* All buffers of an instruction, inputs first. */
static int buffers_of(const MtfInstruction *instruction, int *buffers) {
    int n = 0;
    assert_true(instruction->n_inputs + instruction->n_outputs < MOST_OPERANDS);
    for (int k = 0; k < instruction->n_inputs; k++)
        buffers[n++] = instruction->inputs[k];
    for (int k = 0; k < instruction->n_outputs; k++)
        buffers[n++] = instruction->outputs[k];
    if (instruction->scratch >= 0)
        buffers[n++] = instruction->scratch;
    return n;
}

static int storage_of(const MtfProgram *program, int buffer) {
    return mtf_program_buffer(program, buffer)->storage;
}

/* What is wrong with running instruction `other` while collective `index` is under way, or NULL. */
static const char *clash(const MtfProgram *program, int index, int other) {
    const MtfInstruction *collective = mtf_program_instruction(program, index);
    const MtfInstruction *instruction = mtf_program_instruction(program, other);
    int theirs[MOST_OPERANDS], ours[MOST_OPERANDS];
    int n = buffers_of(instruction, theirs), m = buffers_of(collective, ours);
    for (int k = 0; k < n; k++)
        for (int j = 0; j < m; j++) {
            bool same = storage_of(program, theirs[k]) == storage_of(program, ours[j]);
            if (same && (k >= instruction->n_inputs || j >= collective->n_inputs))
                return "an instruction touches what is under way";
        }
    return NULL;
}

/* What is wrong with the room of a collective, or NULL. */
static const char *fault(const MtfProgram *program, int index) {
    const MtfInstruction *collective = mtf_program_instruction(program, index);
    int n = mtf_program_length(program), buffers[MOST_OPERANDS], begun = 0;
    if (collective->wait_before == 0)
        return NULL;
    if (!mtf_instruction_is_collective(collective) || collective->wait_before <= index + 1 ||
        collective->wait_before > n)
        return "it is not over within the program";
    if (index < program->n_repeated && collective->wait_before > program->n_repeated)
        return "it runs out of what is repeated";
    for (int i = index + 1; i < collective->wait_before; i++) {
        begun += mtf_instruction_is_collective(mtf_program_instruction(program, i));
        if (clash(program, index, i) != NULL)
            return clash(program, index, i);
    }
    if (begun >= MTF_EXCHANGES_UNDER_WAY)
        return "too many are under way";
    for (int k = 0, m = buffers_of(collective, buffers); k < m; k++)
        if (mtf_program_buffer(program, storage_of(program, buffers[k]))->last <
            collective->wait_before - 1)
            return "its operands do not live as long";
    return NULL;
}

/* The bytes live at the worst instruction if storages lived from their first to their last use,
 * each rounded up to 64. */
static int64_t most_in_use(const MtfProgram *program) {
    int n = mtf_program_length(program), n_buffers = (int)program->buffers->len;
    int buffers[MOST_OPERANDS];
    int64_t most = 0;
    g_autofree int *first = g_new(int, n_buffers);
    g_autofree int *last = g_new(int, n_buffers);
    for (int b = 0; b < n_buffers; b++) {
        bool persistent = mtf_program_buffer(program, b)->persistent;
        first[b] = persistent ? 0 : n;
        last[b] = persistent ? n : -1;
    }
    for (int i = 0; i < n; i++)
        for (int k = 0, m = buffers_of(mtf_program_instruction(program, i), buffers); k < m; k++) {
            int storage = storage_of(program, buffers[k]);
            first[storage] = MIN(first[storage], i);
            last[storage] = MAX(last[storage], i);
        }
    for (int i = 0; i < n; i++) {
        int64_t bytes = 0;
        for (int b = 0; b < n_buffers; b++)
            if (mtf_program_buffer(program, b)->storage == b && first[b] <= i && i <= last[b])
                bytes += (mtf_program_buffer(program, b)->bytes + 63) / 64 * 64;
        most = MAX(most, bytes);
    }
    return most;
}

/* ---- Claims ---------------------------------------------------------------------------------- */

static bool draw_case(Case *c, guint32 seed, const char *mesh) {
    if (!mtf_training_case_draw(&c->training, seed, mesh))
        return false;
    c->training.layout->execution.bucket_bytes = seed % 3 * 1000;
    c->program = mtf_lower(c->training.graph, c->training.layout);
    return true;
}

TEST(nothing_touches_what_is_under_way) {
    int with_room = 0;
    for (guint32 seed = 0; seed < 300; seed++) {
        Case c;
        if (!draw_case(&c, seed, seed % 3 ? "a:2;b:2" : "a:3"))
            continue;
        for (int i = 0; i < mtf_program_length(c.program); i++) {
            if (fault(c.program, i) != NULL)
                fail_msg("seed %u, instruction %d: %s", seed, i, fault(c.program, i));
            with_room += mtf_program_instruction(c.program, i)->wait_before > 0;
        }
        clear_case(&c);
    }
    assert_true(with_room > 300);
}

TEST(room_takes_no_memory) {
    for (guint32 seed = 0; seed < 300; seed++) {
        Case c;
        if (!draw_case(&c, seed, "a:2"))
            continue;
        int64_t loss = 64; /* kept to the end, whoever reads it */
        int64_t most = mtf_program_most_live(c.program), in_use = most_in_use(c.program);
        if (most > in_use + loss)
            fail_msg("seed %u: %d bytes, not %d", seed, (int)most, (int)in_use);
        clear_case(&c);
    }
}

TEST(the_witness_sees_room_that_is_too_large) {
    int seen = 0;
    for (guint32 seed = 0; seed < 60; seed++) {
        Case c;
        if (!draw_case(&c, seed, "a:2"))
            continue;
        for (int i = 0; i < mtf_program_length(c.program); i++) {
            MtfInstruction *instruction = mtf_program_instruction(c.program, i);
            if (instruction->wait_before == 0 ||
                instruction->wait_before == mtf_program_length(c.program))
                continue;
            instruction->wait_before = mtf_program_length(c.program);
            seen += fault(c.program, i) != NULL;
        }
        clear_case(&c);
    }
    assert_true(seen > 60);
}

/* Every gradient is a sum over both processors. */
static void draw_network(Case *c) {
    mtf_training_case_perceptron(&c->training, LAYERS, "batch:a");
    c->program = mtf_lower(c->training.graph, c->training.layout);
}

static bool is_product_of_backward(const MtfProgram *program, int index) {
    const MtfInstruction *instruction = mtf_program_instruction(program, index);
    const MtfOperation *op = mtf_graph_operation(program->graph, instruction->operation);
    return op->phase == MTF_PHASE_BACKWARD && instruction->kind == MTF_INSTRUCTION_KERNEL &&
           op->kind == MTF_OP_EINSUM;
}

/* Each of LAYERS + 1 layers has an exchange of its bias's gradient, beside which the gradient of
 * its w is computed, and one of w's, beside which those of the next layer are. Only behind the last
 * one there is nothing left. */
TEST(every_exchange_but_the_last_has_a_product_beside_it) {
    Case c;
    int beside = 0, alone = 0;
    draw_network(&c);
    for (int i = 0; i < mtf_program_length(c.program); i++) {
        const MtfInstruction *collective = mtf_program_instruction(c.program, i);
        if (!mtf_instruction_is_collective(collective) ||
            mtf_graph_operation(c.training.graph, collective->operation)->phase !=
                MTF_PHASE_BACKWARD)
            continue;
        int products = 0;
        for (int j = i + 1; j < collective->wait_before; j++)
            products += is_product_of_backward(c.program, j);
        beside += products > 0;
        alone += products == 0;
    }
    assert_int_equal(beside, 2 * (LAYERS + 1) - 1);
    assert_int_equal(alone, 1);
    clear_case(&c);
}
