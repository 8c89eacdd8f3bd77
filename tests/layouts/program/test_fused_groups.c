// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "layouts/program/fused_groups.h"
#include "layouts/program/lifetimes.h"
#include "tests/support/cases/training_case.h"
#include "tests/support/cases/training_plan.h"

/* ---- The witness: plain loops over a program with rows --------------------------------------- */

static bool writes(const MtfInstruction *instruction, int buffer) {
    for (int k = 0; k < instruction->n_outputs; k++)
        if (instruction->outputs[k] == buffer)
            return true;
    return false;
}

/* Whether a tensor begins with the dimensions of a row. */
static bool leads(const MtfProgram *program, const MtfFusedGroup *fused, int buffer) {
    const MtfShape *shape =
        &mtf_graph_tensor(program->graph, mtf_program_buffer(program, buffer)->tensor)->shape;
    for (int i = 0; i < fused->n_dims; i++)
        if (i >= shape->rank || shape->dims[i] != fused->dims[i])
            return false;
    return true;
}

static bool lives(const MtfProgram *program, int buffer, int from, int to) {
    const MtfBuffer *owner = mtf_program_buffer(program, mtf_program_storage(program, buffer));
    return owner->first <= from && owner->last >= to;
}

/* What is wrong with instruction `i` of the row that begins at `begin`, or NULL. */
static const char *fault_of(const MtfProgram *program, int begin, int i) {
    const MtfFusedGroup *fused = &mtf_program_instruction(program, begin)->fused;
    const MtfInstruction *instruction = mtf_program_instruction(program, i);
    if (instruction->kind != MTF_INSTRUCTION_KERNEL ||
        instruction->kernel_class == MTF_CLASS_MATMUL)
        return "it is no kernel that may be cut";
    if (i > begin && instruction->fused.kernels > 0)
        return "rows overlap";
    for (int k = 0; k < instruction->n_inputs; k++) {
        int input = instruction->inputs[k];
        if (!lives(program, input, begin, begin + fused->kernels - 1))
            return "an input does not live as long as the row";
        for (int j = begin; j < begin + fused->kernels; j++)
            if (writes(mtf_program_instruction(program, j), input) && !leads(program, fused, input))
                return "it reads what is not complete";
    }
    for (int k = 0; k < instruction->n_outputs; k++)
        if (!lives(program, instruction->outputs[k], begin, begin + fused->kernels - 1))
            return "an output does not live as long as the row";
    return NULL;
}

static const char *fault(const MtfProgram *program) {
    for (int i = 0; i < mtf_program_length(program); i++) {
        const MtfFusedGroup *fused = &mtf_program_instruction(program, i)->fused;
        if (fused->kernels > 0 && i < program->n_repeated &&
            i + fused->kernels > program->n_repeated)
            return "a row runs out of what is repeated";
        for (int j = i; j < i + fused->kernels; j++)
            if (fault_of(program, i, j) != NULL)
                return fault_of(program, i, j);
    }
    return NULL;
}

/* ---- Tests ----------------------------------------------------------------------------------- */

static int count_rows(const MtfProgram *program) {
    int rows = 0;
    for (int i = 0; i < mtf_program_length(program); i++)
        rows += mtf_program_instruction(program, i)->fused.kernels > 0;
    return rows;
}

TEST(rows_are_sound_and_cost_no_memory) {
    static const char *const meshes[] = { "", "a:2", "a:2;b:3" };
    int rows = 0;
    for (guint32 seed = 0; seed < 300; seed++) {
        MtfTrainingCase c;
        if (!mtf_training_case_draw(&c, seed, meshes[seed % 3]))
            continue;
        g_autoptr(MtfProgram) program = mtf_lower(c.graph, c.layout);
        int64_t most = mtf_program_most_live(program);
        mtf_program_fuse(program, 16 << seed % 5);
        if (fault(program) != NULL)
            fail_msg("seed %u: %s", seed, fault(program));
        assert_int_equal(mtf_program_most_live(program), most);
        rows += count_rows(program);
        mtf_training_case_clear(&c);
    }
    assert_true(rows > 100);
}

TEST(wrong_rows_are_noticed) {
    MtfTrainingCase c;
    int noticed = 0;
    for (guint32 seed = 0; seed < 20; seed++) {
        if (!mtf_training_case_draw(&c, seed, ""))
            continue;
        g_autoptr(MtfProgram) program = mtf_lower(c.graph, c.layout);
        MtfFusedGroup *fused = &mtf_program_instruction(program, 0)->fused;
        fused->kernels = mtf_program_length(program);
        noticed += fault(program) != NULL;
        mtf_training_case_clear(&c);
    }
    assert_true(noticed > 10);
}

static int kernels_from(const MtfProgram *program, const char *operation) {
    int op = mtf_graph_find_operation(program->graph, operation);
    for (int i = 0; i < mtf_program_length(program); i++)
        if (mtf_program_instruction(program, i)->operation == op)
            return mtf_program_instruction(program, i)->fused.kernels;
    return -1;
}

/* Of a GPT of usual size: the residual, mean, variance and norm are one row; the statistics of the
 * softmax with the loss of each position; the gradient of a norm's input with what goes past it. */
TEST(a_gpt_goes_over_its_rows_once) {
    MtfTrainingPlan wanted = {
        .graph = "gpt-small",
        .sizes = "batch:8;length:128;memory_length:128;d_model:256;d_ff:1024;vocab:2048",
        .dtype = MTF_F32,
        .mesh = "",
        .rules = ""
    };
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfPlan) plan = mtf_training_plan(&wanted, &error);
    if (plan == NULL)
        fail_msg("%s", error->message);
    g_autoptr(MtfProgram) program = mtf_lower(plan->graph, plan->layout);
    assert_null(fault(program));
    assert_int_equal(kernels_from(program, "layer/0/x_mid"), 4);
    assert_int_equal(kernels_from(program, "losses/max"), 4);
    assert_int_equal(kernels_from(program, "back/layer/1/ff_in/dot"), 3);
    assert_int_equal(kernels_from(program, "logits"), 0);
}

/* What fits a cache as it is runs as it is. */
TEST(small_tensors_are_not_cut) {
    MtfTrainingCase c;
    mtf_training_case_perceptron(&c, 3, "");
    g_autoptr(MtfProgram) program = mtf_lower(c.graph, c.layout);
    assert_int_equal(count_rows(program), 0);
    mtf_program_fuse(program, 4096);
    assert_true(count_rows(program) > 0);
    mtf_program_fuse(program, MTF_TILE_BYTES);
    assert_int_equal(count_rows(program), 0);
    mtf_training_case_clear(&c);
}
