// SPDX-License-Identifier: GPL-3.0-or-later
// kernels: sums in another order in every layout
/* Networks that decide by the sign of a sum (relu) or by the largest of several (max_pool) have gradients
 * that jump where such a decision changes. In float32 a layout rounds sums otherwise, and once it changes
 * a decision its training is another from the next step on. Until then losses are those of one processor,
 * (3.7e-6 apart at most), and what is decided otherwise lies within rounding of the edge (2e-6 of the
 * largest): nothing but rounding decides it. */
#include "tests/support/cmocka.h"

#include "runtime/kernels/base/slice.h"
#include "tests/support/cases/random_layout.h"
#include "tests/support/losses/family_losses.h"
#include "tests/support/losses/lockstep.h"

#include <math.h>

#define SEED 11
#define STEPS 50
#define DRAWS 6

/* Training under one layout. */
typedef struct {
    const MtfLossModel *model;
    MtfProgram *program;
    MtfLockstep *lockstep;
    float **chosen; /* by tensor: what relu left, or which element a pool took; NULL for all
                       others */
    double loss;
} Training;

/* The output by which an operation decides, or -1. */
static int deciding_output(const MtfOperation *op) {
    return op->kind == MTF_OP_RELU       ? op->outputs[0]
           : op->kind == MTF_OP_MAX_POOL ? op->outputs[1]
                                         : -1;
}

static int64_t elements(const Training *t, int tensor) {
    const MtfGraph *graph = t->model->graph;
    return mtf_graph_elements(graph, &mtf_graph_tensor(graph, tensor)->shape);
}

static void training_init(Training *t, const MtfLossModel *model, const MtfLayout *layout) {
    g_autoptr(GError) error = NULL;
    *t = (Training){ .model = model, .program = mtf_lower(model->graph, layout) };
    t->lockstep = mtf_lockstep_new(t->program, SEED, &error);
    if (t->lockstep == NULL)
        fail_msg("%s", error->message);
    t->lockstep->data = model->data;
    t->chosen = g_new0(float *, model->graph->tensors->len);
    for (int i = 0; i < (int)model->graph->operations->len; i++) {
        int tensor = deciding_output(mtf_graph_operation(model->graph, i));
        if (tensor >= 0)
            t->chosen[tensor] = g_new0(float, (gsize)elements(t, tensor));
    }
    for (int r = 0; r < t->lockstep->n; r++)
        mtf_worker_initialise(t->lockstep->workers[r], SEED);
}

static void training_clear(Training *t) {
    for (guint i = 0; i < t->model->graph->tensors->len; i++)
        g_free(t->chosen[i]);
    g_free(t->chosen);
    mtf_lockstep_free(t->lockstep);
    mtf_program_free(t->program);
}

/* Notes what a kernel has just decided, before its buffer is used again. */
static void note_choices(const Training *t, const MtfInstruction *instruction) {
    for (int k = 0; k < instruction->n_outputs; k++) {
        int tensor = mtf_program_buffer(t->program, instruction->outputs[k])->tensor;
        if (t->chosen[tensor] == NULL)
            continue;
        for (int r = 0; r < t->lockstep->n; r++) {
            const MtfOperand *slice = &t->lockstep->workers[r]->operands[instruction->outputs[k]];
            for (int64_t i = 0; i < mtf_slice_elements(slice); i++)
                t->chosen[tensor][mtf_slice_global_index(slice, i)] =
                    (float)mtf_slice_get(slice, i);
        }
    }
}

static void train_step(Training *t, int64_t step) {
    for (int r = 0; r < t->lockstep->n; r++)
        assert_true(mtf_data_fill_inputs(t->model->data, t->lockstep->workers[r], step, NULL));
    for (int i = 0; i < mtf_program_length(t->program); i++) {
        const MtfInstruction *instruction = mtf_program_instruction(t->program, i);
        mtf_lockstep_instruction(t->lockstep, i, step);
        if (instruction->kind == MTF_INSTRUCTION_KERNEL)
            note_choices(t, instruction);
    }
    t->loss = mtf_lockstep_scalar(t->lockstep, t->model->graph->loss);
}

/* How many decisions of a tensor differ; `edge` is raised to the largest share of the tensor's largest
 * element by which a relu is off the edge there. */
static int64_t count_flips(const Training *a, const Training *b, int tensor, double *edge) {
    const float *x = a->chosen[tensor], *y = b->chosen[tensor];
    bool integer = mtf_graph_tensor(a->model->graph, tensor)->dtype == MTF_I32;
    double off = 0, largest = 0;
    int64_t flips = 0;
    for (int64_t i = 0; i < elements(a, tensor); i++) {
        bool flipped = integer ? x[i] != y[i] : (x[i] > 0) != (y[i] > 0);
        flips += flipped;
        off = flipped && !integer ? fmax(off, fmax((double)x[i], (double)y[i])) : off;
        largest = fmax(largest, (double)x[i]);
    }
    *edge = fmax(*edge, off / fmax(largest, 1e-30));
    return flips;
}

/* Trains both until a decision differs: returns in which step it first did, STEPS + 1 where none did. */
static int64_t first_flip(Training *whole, Training *split, const char *text) {
    for (int64_t step = 1; step <= STEPS; step++) {
        int64_t flips = 0;
        double edge = 0;
        train_step(whole, step);
        train_step(split, step);
        for (int t = 0; t < (int)whole->model->graph->tensors->len; t++)
            flips += whole->chosen[t] == NULL ? 0 : count_flips(whole, split, t, &edge);
        double apart = fabs(whole->loss - split->loss) / fabs(whole->loss);
        if (!(apart <= 1e-4))
            fail_msg("%s: step %d parts by %g, and no decision differs", text, (int)step, apart);
        if (flips > 0 && !(edge <= 1e-5))
            fail_msg("%s: step %d decides otherwise %g from the edge", text, (int)step, edge);
        if (flips > 0)
            return step;
    }
    return STEPS + 1;
}

static int check_family(const char *name) {
    int flipped = 0;
    /* At the rates of tiny presets too few decisions are at the edge within these steps. */
    const char *const changes[] = { "rate", "0.05", NULL };
    const MtfFamilyCase wanted = { .family = mtf_model_family_find(name, NULL),
                                   .changes = changes,
                                   .dtype = MTF_F32,
                                   .steps = 1 };
    MtfLossModel model;
    mtf_family_model_init(&model, &wanted);
    g_autoptr(GRand) random = g_rand_new_with_seed(7);
    for (int draw = 0; draw < DRAWS; draw++) {
        MtfMesh alone = { 0 }, mesh = mtf_random_mesh(random, 2 + draw / 2 % 7);
        g_autoptr(MtfLayout) one = mtf_random_rule_layout(random, model.graph, &alone);
        g_autoptr(MtfLayout) layout =
            (draw % 2 == 0 ? mtf_random_rule_layout : mtf_random_free_layout)(random, model.graph,
                                                                              &mesh);
        g_autofree char *text = mtf_mesh_format(&mesh);
        Training whole, split;
        training_init(&whole, &model, one);
        training_init(&split, &model, layout);
        int64_t step = first_flip(&whole, &split, text);
        flipped += step <= STEPS;
        training_clear(&whole);
        training_clear(&split);
    }
    mtf_family_model_clear(&model);
    return flipped;
}

TEST(losses_are_the_same_until_rounding_decides_otherwise) {
    /* Of as many draws twice, nearly all, by the processor and its kernels. */
    assert_true(check_family("resnet") + check_family("densenet") > 0);
}
