// SPDX-License-Identifier: GPL-3.0-or-later
// kernels: products of other shapes in every layout
/* Layouts do not affect results. Random graphs are differentiated, every operation runs under every
 * one of its strategies and every tensor is kept in every placement it can be kept in, in random
 * company and in the written or a random order of instructions; after each single instruction the
 * slices of all processors must add up to what an independent interpreter says the whole tensor is.
 */
#include "analyzer/free/free_problem.h"
#include "analyzer/training/training_graph.h"
#include "layouts/execution/executed_graph.h"
#include "layouts/graph/loops.h"
#include "runtime/kernels/base/slice.h"
#include "tests/support/cases/random_layout.h"
#include "tests/support/cases/random_order.h"
#include "tests/support/cmocka.h"
#include "tests/support/drawn/random_graph.h"
#include "tests/support/draws.h"
#include "tests/support/losses/lockstep.h"
#include "tests/support/reference/reference.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define TOLERANCE 1e-10

typedef struct {
    const MtfGraph *graph;
    MtfMesh mesh;
    MtfPricer pricer;
    MtfFreeProblem *problem;
    MtfReference *reference;
    const int *states; /* of loops: a tensor's is above 0 */
    const char *what;  /* for messages */
} Bench;

static int64_t n_late; /* exchanges that took place later than they stand in their program */

/* ---- Whole tensors against slices ----------------------------------------------------------- */

/* Whether `rank` is the first along every axis where the placement is whole; with `like` >= 0,
 * whether it is at the same place there as `like`. */
static bool same_copy(const MtfMesh *mesh, const MtfPlacement *placement, int rank, int like) {
    for (int a = 0; a < mesh->n_axes; a++)
        if (placement->axis[a] == MTF_REPLICATED &&
            mtf_mesh_coordinate(mesh, rank, a) != mtf_mesh_coordinate(mesh, like, a))
            return false;
    return true;
}

/* Whether both ranks are at the same place along every axis over which nothing is to be summed. */
static bool same_term(const MtfMesh *mesh, const MtfPlacement *placement, int rank, int other) {
    for (int a = 0; a < mesh->n_axes; a++)
        if (placement->axis[a] != MTF_PARTIAL_SUM &&
            mtf_mesh_coordinate(mesh, rank, a) != mtf_mesh_coordinate(mesh, other, a))
            return false;
    return true;
}

/* Element `i` of the slice that the ranks which hold terms of `rank`'s add up to. */
static double sum_of_terms(const Bench *bench, const MtfLockstep *lockstep, int buffer, int rank,
                           int64_t i) {
    const MtfProgram *program = lockstep->workers[0]->program;
    const MtfPlacement *placement = &mtf_program_buffer(program, buffer)->placement;
    double sum = 0;
    for (int r = 0; r < lockstep->n; r++)
        if (same_term(&bench->mesh, placement, rank, r))
            sum += mtf_slice_get(&lockstep->workers[r]->operands[buffer], i);
    return sum;
}

/* The tensor that one set of copies makes: terms are summed, then the largest taken. */
static double *assemble(const Bench *bench, const MtfLockstep *lockstep, int buffer, int like,
                        int64_t elements) {
    const MtfProgram *program = lockstep->workers[0]->program;
    const MtfPlacement *placement = &mtf_program_buffer(program, buffer)->placement;
    double *whole = g_new(double, elements);
    for (int64_t i = 0; i < elements; i++)
        whole[i] = -INFINITY;
    for (int r = 0; r < lockstep->n; r++) {
        if (!same_copy(&bench->mesh, placement, r, like))
            continue;
        const MtfOperand *slice = &lockstep->workers[r]->operands[buffer];
        for (int64_t i = 0; i < mtf_slice_elements(slice); i++) {
            double *to = &whole[mtf_slice_global_index(slice, i)];
            *to = fmax(*to, sum_of_terms(bench, lockstep, buffer, r, i));
        }
    }
    return whole;
}

static double magnitude(const double *values, int64_t n) {
    double most = 0;
    for (int64_t i = 0; i < n; i++)
        if (fabs(values[i]) < 1e29) /* the causal mask's filling is not a magnitude */
            most = fmax(most, fabs(values[i]));
    return most;
}

/* What an instruction writes into a variable's buffer is the variable's next value. */
static int next_value(const MtfGraph *graph, int tensor) {
    for (guint i = 0; i < graph->updates->len; i++) {
        const MtfUpdate *update = &g_array_index(graph->updates, MtfUpdate, i);
        if (update->variable == tensor)
            return update->value;
    }
    return tensor;
}

static void check_buffer(const Bench *bench, const MtfLockstep *lockstep, int index, int buffer) {
    const MtfProgram *program = lockstep->workers[0]->program;
    int tensor = mtf_program_buffer(program, buffer)->tensor;
    bool updated = program->tensor_buffers[tensor] == buffer;
    bool margined = mtf_program_buffer(program, buffer)->margined;
    int expected_tensor = updated ? next_value(bench->graph, tensor) : tensor;
    const double *expected = bench->reference->values[expected_tensor];
    int64_t n = mtf_graph_elements(bench->graph, &mtf_graph_tensor(bench->graph, tensor)->shape);
    double scale = fmax(1e-3, magnitude(expected, n));
    for (int like = 0; like < lockstep->n; like++) {
        g_autofree double *found = assemble(bench, lockstep, buffer, like, n);
        for (int64_t i = 0; i < n; i++) {
            if (found[i] == expected[i] ||
                fabs(found[i] - expected[i]) <= TOLERANCE * fmax(scale, fabs(expected[i])))
                continue;
            if (margined && isinf(found[i])) /* nobody's window reads it */
                continue;
            g_autofree char *listing = mtf_program_format(program);
            fputs(listing, stderr);
            fail_msg("%s: instruction %d: %s[%d] is %.17g, not %.17g\n%s", bench->what, index,
                     mtf_graph_tensor(bench->graph, tensor)->name, (int)i, found[i], expected[i],
                     listing);
        }
    }
}

/* ---- One layout ---------------------------------------------------------------------------- */

static void load(const Bench *bench, const MtfLockstep *lockstep) {
    for (int t = 0; t < (int)bench->graph->tensors->len; t++) {
        if (mtf_graph_tensor(bench->graph, t)->producer >= 0)
            continue;
        for (int r = 0; r < lockstep->n; r++) {
            const MtfOperand *slice = mtf_worker_tensor(lockstep->workers[r], t);
            for (int64_t i = 0; i < mtf_slice_elements(slice); i++)
                mtf_slice_set(slice, i,
                              bench->reference->values[t][mtf_slice_global_index(slice, i)]);
        }
    }
}

/* Instruction `i`, and whether what it leaves behind is right. States of loops are not looked at: they have gone on. */
static void run_instruction(const Bench *bench, MtfLockstep *lockstep, int i, bool looks) {
    const MtfProgram *program = lockstep->workers[0]->program;
    const MtfInstruction *instruction = mtf_program_instruction(program, i);
    bool is_late = lockstep->late && instruction->wait_before > 0;
    mtf_lockstep_instruction(lockstep, i, 1);
    n_late += is_late;
    for (int k = 0; k < instruction->n_outputs && looks && !is_late; k++) {
        int buffer = instruction->outputs[k];
        if (bench->states[mtf_program_buffer(program, buffer)->tensor] == 0 &&
            mtf_program_buffer(program, buffer)->column == 0)
            check_buffer(bench, lockstep, i, buffer);
    }
}

/* Instructions [begin, end), those of a loop, of which the last iteration is looked at. */
static void run_loop(const Bench *bench, MtfLockstep *lockstep, int begin, int end, int64_t count) {
    for (int64_t k = 0; k < count; k++) {
        for (int r = 0; r < lockstep->n; r++)
            lockstep->workers[r]->iteration = k;
        for (int i = begin; i < end; i++)
            run_instruction(bench, lockstep, i, k == count - 1);
        mtf_lockstep_end_due(lockstep, end);
    }
    for (int r = 0; r < lockstep->n; r++)
        lockstep->workers[r]->iteration = 0;
}

/* Runs the program with its exchanges as early, or as late, as it allows, and checks what every
 * instruction leaves behind. */
static void run_program(const Bench *bench, const MtfProgram *program, bool late) {
    GError *error = NULL;
    g_autoptr(MtfLockstep) lockstep = mtf_lockstep_new(program, bench->reference->seed, &error);
    assert_non_null(lockstep);
    assert_true(mtf_arena_check(program, lockstep->arena, &error));
    lockstep->late = late;
    load(bench, lockstep);
    for (int begin = 0, end; begin < mtf_program_length(program); begin = end) {
        int loop = mtf_program_instruction(program, begin)->loop;
        end = begin + 1;
        while (end < mtf_program_length(program) &&
               mtf_program_instruction(program, end)->loop == loop)
            end++;
        run_loop(bench, lockstep, begin, end, mtf_loop_count(program->graph, loop));
    }
    mtf_lockstep_end_due(lockstep, mtf_program_length(program));
    for (guint t = 0; t < bench->graph->updates->len; t++) {
        const MtfUpdate *update = &g_array_index(bench->graph->updates, MtfUpdate, t);
        check_buffer(bench, lockstep, mtf_program_length(program),
                     program->tensor_buffers[update->variable]);
    }
}

static void run_layout(const Bench *bench, const MtfLayout *layout) {
    g_autoptr(MtfProgram) program = mtf_lower(bench->graph, layout);
    run_program(bench, program, false);
    run_program(bench, program, true);
}

/* ---- All of them --------------------------------------------------------------------------- */

/* Gives the layout a random order of instructions. */
static void shuffle(const Bench *bench, MtfLayout *layout, GRand *random) {
    g_autoptr(MtfProgram) program = mtf_lower_as_written(bench->graph, layout);
    mtf_layout_set_order(layout, mtf_random_order(random, program), mtf_program_length(program));
}

/* Turns every node through all its strategies, each starting somewhere else, every other time in a
 * random order of instructions, two of three times with small exchanges joined. */
static void run_all_strategies(const Bench *bench, guint32 seed) {
    const MtfLayoutProblem *problem = mtf_free_problem_get(bench->problem);
    int n = mtf_layout_problem_node_count(problem), most = 0;
    g_autoptr(GRand) random = g_rand_new_with_seed(seed);
    g_autofree int *offset = g_new(int, n);
    g_autofree int *choice = g_new(int, n);
    for (int v = 0; v < n; v++) {
        int strategies = mtf_layout_problem_node(problem, v)->strategies;
        offset[v] = g_rand_int_range(random, 0, strategies);
        most = MAX(most, strategies);
    }
    for (int round = 0; round < most; round++) {
        for (int v = 0; v < n; v++)
            choice[v] = (offset[v] + round) % mtf_layout_problem_node(problem, v)->strategies;
        g_autoptr(MtfLayout) layout = mtf_free_problem_layout(bench->problem, choice);
        layout->execution.bucket_bytes = round % 3 == 2 ? 1 << 20 : round % 3 * 100;
        if (round % 2 > 0)
            shuffle(bench, layout, random);
        run_layout(bench, layout);
    }
}

/* The training graph of a drawn one; NULL where no variable leads to its loss. Muon, the last, makes any
 * direction long, a rounding's too, and so is tried with graphs alone that leave it none. */
static MtfGraph *draw_training(const MtfRandomGraph *options) {
    static const char *const optimizers[] = { "sgd",       "momentum", "adam", "adamw",
                                              "adafactor", "lamb",     "muon" };
    guint32 tried = (guint32)G_N_ELEMENTS(optimizers) - options->layers;
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfGraph) forward = mtf_random_graph(options);
    g_free(forward->optimizer.kind);
    forward->optimizer.kind = g_strdup(optimizers[options->seed % tried]);
    forward->optimizer.clip_norm = options->seed % 2 ? 0.5 : 0;
    forward->optimizer.beta1 = 0.9;
    forward->optimizer.beta2 = 0.999;
    /* Large: a gradient that is zero but for rounding stays so. LAMB makes any direction long, so that
     * it needs one that is no rounding: the decay. */
    forward->optimizer.epsilon = 0.1;
    forward->optimizer.weight_decay = 0.1;
    MtfGraph *graph = mtf_training_graph(forward, &error);
    if (graph == NULL && strstr(error->message, "no variable leads to the loss") == NULL)
        fail_msg("graph %u: %s", options->seed, error->message);
    return graph;
}

static void bench_init(Bench *bench, const MtfGraph *graph, const char *what, guint32 seed) {
    *bench = (Bench){ .graph = graph, .what = what, .states = mtf_graph_states(graph) };
    bench->reference = mtf_reference_new(graph, seed);
    mtf_reference_fill_inputs(bench->reference, seed);
    mtf_reference_run(bench->reference, 0);
}

static void bench_clear(Bench *bench) {
    mtf_reference_free(bench->reference);
    g_free((void *)(guintptr)bench->states);
}

static void run_graph(guint32 seed, const char *mesh_text, bool layers) {
    GError *error = NULL;
    g_autoptr(MtfGraph) graph = draw_training(&(MtfRandomGraph){ .seed = seed,
                                                                 .dimensions = 4,
                                                                 .operations = 8,
                                                                 .largest_size = 5,
                                                                 .dtype = MTF_F64,
                                                                 .more = seed % 3 > 0,
                                                                 .layers = layers,
                                                                 .composites = true });
    if (graph == NULL)
        return;
    g_autofree char *what = g_strdup_printf("random graph %u on %s", seed, mesh_text);
    Bench bench;
    bench_init(&bench, graph, what, seed);
    assert_true(mtf_mesh_parse(mesh_text, 0, &bench.mesh, &error));
    g_autoptr(MtfMachine) machine = mtf_machine_load("cpu-cluster", &error);
    assert_true(mtf_pricer_init(&bench.pricer, machine, &bench.mesh, &error));
    bench.problem = mtf_free_problem_new(graph, &bench.mesh, &bench.pricer, NULL, 0, &error);
    run_all_strategies(&bench, seed);
    mtf_free_problem_free(bench.problem);
    bench_clear(&bench);
}

/* What step 1 leaves in a variable. */
static const double *updated(const MtfReference *reference, int variable) {
    return reference->values[next_value(reference->graph, variable)];
}

/* Whether both graphs come to the same variables, whatever their tensors' numbers. */
static void check_same_step(const Bench *bench, const MtfGraph *training, guint32 seed) {
    g_autoptr(MtfReference) plain = mtf_reference_new(training, seed);
    mtf_reference_fill_inputs(plain, seed);
    mtf_reference_run(plain, 0);
    for (guint u = 0; u < training->updates->len; u++) {
        int variable = g_array_index(training->updates, MtfUpdate, u).variable;
        const MtfTensor *tensor = mtf_graph_tensor(training, variable);
        const double *expected = updated(plain, variable);
        const double *found =
            updated(bench->reference, mtf_graph_find_tensor(bench->graph, tensor->name));
        for (int64_t i = 0; i < mtf_graph_elements(training, &tensor->shape); i++)
            if (!(fabs(found[i] - expected[i]) <= 1e-9 * fmax(1, fabs(expected[i]))))
                fail_msg("%s: executed so, %s[%d] becomes %.17g, not %.17g", bench->what,
                         tensor->name, (int)i, found[i], expected[i]);
    }
}

/* The graph as an execution has it whose attention is in a ring, or in parts of its memory, as many as divide that
 * evenly; or as it is. */
static MtfGraph *executed(const MtfGraph *training, guint32 seed) {
    for (int parts = 2; parts <= 5 && seed % 3 > 0; parts++) {
        MtfDivision division = { .microbatches = 1,
                                 .ring = seed % 3 == 1 ? parts : 0,
                                 .key_parts = seed % 3 == 2 ? parts : 0 };
        g_autoptr(MtfGraph) graph = mtf_graph_copy(training);
        if (mtf_graph_execute(graph, &division, &(MtfKept){ 0 }, 1, NULL))
            return g_steal_pointer(&graph);
    }
    return mtf_graph_copy(training);
}

/* A network of windows, loops, experts and whatever else under two layouts, of rules and free. */
static void run_network(guint32 seed) {
    g_autoptr(MtfGraph) training = draw_training(&(MtfRandomGraph){ .seed = seed,
                                                                    .dimensions = 4,
                                                                    .operations = 14,
                                                                    .largest_size = 5,
                                                                    .dtype = MTF_F64,
                                                                    .more = true,
                                                                    .layers = true,
                                                                    .composites = true });
    if (training == NULL)
        return;
    g_autoptr(MtfGraph) graph = executed(training, seed);
    g_autoptr(GRand) random = g_rand_new_with_seed(seed);
    g_autofree char *what = g_strdup_printf("random network %u", seed);
    Bench bench;
    bench_init(&bench, graph, what, seed);
    check_same_step(&bench, training, seed);
    bench.mesh = mtf_random_mesh(random, 1 + (int)(seed % 8));
    g_autoptr(MtfLayout) rules = mtf_random_rule_layout(random, graph, &bench.mesh);
    g_autoptr(MtfLayout) free_one = mtf_random_free_layout(random, graph, &bench.mesh);
    rules->execution.bucket_bytes = seed % 3 == 2 ? 1 << 20 : seed % 3 * 100;
    shuffle(&bench, rules, random);
    run_layout(&bench, rules);
    run_layout(&bench, free_one);
    bench_clear(&bench);
}

TEST(every_strategy_of_every_operation_on_one_axis) {
    guint32 first = mtf_first_seed();
    for (guint32 seed = first; seed < first + (guint32)mtf_draws(60); seed++)
        run_graph(seed, seed % 2 ? "a:2" : "a:3", false);
}

TEST(every_strategy_of_every_operation_on_two_axes) {
    guint32 first = mtf_first_seed() + 100;
    for (guint32 seed = first; seed < first + (guint32)mtf_draws(30); seed++)
        run_graph(seed, seed % 2 ? "a:2;b:2" : "a:2;b:3", false);
}

TEST(every_strategy_of_every_operation_on_three_axes) {
    /* Others take longer. */
    guint32 first = mtf_first_seed() + 200;
    for (guint32 seed = first + (mtf_tries_all() ? 0 : 6); seed < first + 8; seed++)
        run_graph(seed, "a:2;b:2;c:2", false);
}

TEST(drawn_layouts_of_drawn_networks) {
    guint32 first = mtf_first_seed() + 1000;
    for (guint32 seed = first; seed < first + (guint32)mtf_draws(800); seed++)
        run_network(seed);
}

TEST(every_strategy_of_every_layer) {
    static const char *const meshes[] = { "a:2", "a:3", "a:2;b:2" };
    guint32 first = mtf_first_seed() + 3000;
    for (guint32 seed = first; seed < first + (guint32)mtf_draws(60); seed++)
        run_graph(seed, meshes[seed % 3], true);
}

/* Of the runs above. */
TEST(many_exchanges_were_late) {
    assert_true(n_late > 1000);
}
