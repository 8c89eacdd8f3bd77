// SPDX-License-Identifier: GPL-3.0-or-later
// seconds: 600
#include "tests/support/cmocka.h"

#include "analyzer/layout_search/mesh_attempt.h"
#include "analyzer/models/model_family.h"
#include "analyzer/planner/mesh_shapes.h"
#include "analyzer/training/training_graph.h"
#include "cost/memory/arena.h"
#include "cost/price/schedule.h"
#include "layouts/graph_file/graph_json.h"
#include "tests/support/cases/microbatch_training.h"
#include "tests/support/cases/parse_graph.h"
#include "tests/support/draws.h"

#include <math.h>
#include <string.h>

#define UNLIMITED (INT64_C(1) << 50)

/* A graph of the library with other sizes, "batch=64", as a training graph. */
static MtfGraph *training_graph(const char *name, const char *const *names, const int64_t *sizes) {
    GError *error = NULL;
    g_autofree char *path = g_strdup_printf("layouts/library/graphs/%s.json", name);
    MtfSizeOverrides overrides = { (char **)(gpointer)names, (int64_t *)(gpointer)sizes };
    g_autoptr(MtfGraph) forward = mtf_graph_load(path, names != NULL ? &overrides : NULL, &error);
    if (forward == NULL)
        fail_msg("%s", error->message);
    MtfGraph *training = mtf_test_microbatches(forward, 1, &error);
    if (training == NULL)
        fail_msg("%s", error->message);
    mtf_graph_canonicalize(training);
    return training;
}

static void search(const MtfGraph *graph, const GArray *meshes, const MtfPlanSearchOptions *options,
                   MtfPlanAnswer *answer) {
    GError *error = NULL;
    if (!mtf_plan_search(graph, meshes, options, answer, &error))
        fail_msg("%s", error->message);
}

static double step_seconds(const MtfPricer *pricer, const MtfProgram *program) {
    g_autoptr(MtfSchedule) schedule = mtf_schedule_new(pricer, program);
    return (double)schedule->nanoseconds / 1e9;
}

/* The answer's numbers are those of its program under its own mapping. */
static void check_answer(const MtfGraph *graph, const MtfPlanAnswer *answer, int64_t limit) {
    assert_true(answer->found);
    g_autoptr(MtfLayout) layout = mtf_plan_answer_layout(answer, graph);
    g_autoptr(MtfProgram) program = mtf_lower(graph, layout);
    g_autoptr(MtfArena) arena = mtf_arena_pack(program);
    int64_t cost = answer->fastest != NULL ? answer->fastest_cost : answer->cost;
    assert_int_equal(mtf_price_program(&answer->pricer, program), cost);
    if (answer->step_seconds > 0)
        assert_true(answer->step_seconds == step_seconds(&answer->pricer, program));
    if (answer->fastest != NULL)
        assert_true(cost >= answer->cost &&
                    answer->step_seconds <= (1 + MTF_ALIKE_PRICE) * answer->free.step_seconds);
    assert_true(arena->bytes <= limit);
    assert_true(answer->cost <= answer->in_order_cost);
    if (answer->rules.found)
        assert_true(answer->cost <= answer->rules.cost);
}

/* How many of the layouts that the field makes by hand fit; none is cheaper than the cheapest
 * found, nor has it a shorter step than the plan. */
static int check_incumbents(const MtfPlanAnswer *answer, int64_t limit) {
    int fit = 0;
    g_autoptr(GPtrArray) shown = mtf_incumbents_shown(answer->incumbents, limit);
    for (guint i = 0; i < shown->len; i++) {
        const MtfIncumbent *incumbent = g_ptr_array_index(shown, i);
        if (incumbent->arena_bytes > limit)
            continue;
        fit++;
        assert_true(answer->cost <= incumbent->cost);
        assert_true(answer->step_seconds <= incumbent->step_seconds);
    }
    return fit;
}

/* A rival of four fifths of the best step is out of reach, as little is hidden here, also where no layout made by hand
 * fits; one that takes as long is not, and changes nothing, but that meshes are left out which it beats. */
TEST(a_search_ends_where_its_bound_is_far_from_a_rival) {
    g_autoptr(MtfMachine) machine = mtf_machine_load("a100", NULL);
    g_autoptr(MtfGraph) graph = training_graph("transformer-small", NULL, NULL);
    g_autoptr(GArray) mesh = mtf_test_meshes("r:2;c:2");
    g_autoptr(GArray) both = mtf_test_meshes("r:4");
    g_array_append_vals(both, mesh->data, 1);
    MtfPlanSearchOptions options = { .machine = machine, .memory_limit = UNLIMITED };
    MtfPlanAnswer alone, near, looked, far, tight;
    search(graph, mesh, &options, &alone);
    assert_false(alone.hopeless);
    options.by_bound = true;
    options.rival_seconds = alone.step_seconds;
    search(graph, both, &options, &near);
    assert_true(near.found && !near.hopeless);
    assert_true(near.step_seconds == alone.step_seconds);
    assert_int_equal(near.cost, alone.cost);
    g_autoptr(MtfFirstLook) hopeful = mtf_plan_search_look(graph, both, &options);
    assert_true(hopeful->meshes->len > 0 && hopeful->least == INT64_MAX);
    options.look = hopeful;
    search(graph, both, &options, &looked);
    assert_int_equal(looked.cost, alone.cost);
    options.look = NULL;
    options.rival_seconds = 0.8 * alone.step_seconds;
    search(graph, mesh, &options, &far);
    assert_true(far.hopeless && !far.found);
    assert_null(far.rules.rules); /* a bound says so at once */
    g_autoptr(MtfFirstLook) look = mtf_plan_search_look(graph, mesh, &options);
    assert_int_equal(look->meshes->len, 0);
    assert_true(look->least < alone.cost); /* of the rival's step, and more of it hidden */
    options.memory_limit = mtf_incumbents_smallest(alone.incumbents)->arena_bytes - 1;
    search(graph, mesh, &options, &tight);
    assert_true(tight.hopeless && !tight.found && tight.rules.rules == NULL);
    mtf_plan_answer_clear(&alone);
    mtf_plan_answer_clear(&near);
    mtf_plan_answer_clear(&looked);
    mtf_plan_answer_clear(&far);
    mtf_plan_answer_clear(&tight);
}

/* Beside rivals ever nearer to the best step: a bound of one round is near what is hopeless where that of two says that
 * all is; nothing is near that a rival of nearly that step has; and no bound is above what the best layout costs. */
TEST(a_look_says_where_more_rounds_may_find_all_hopeless) {
    static const int percents[] = { 86, 87, 88, 97 };
    g_autoptr(MtfMachine) machine = mtf_machine_load("a100", NULL);
    g_autoptr(MtfGraph) graph = training_graph("transformer-small", NULL, NULL);
    g_autoptr(GArray) mesh = mtf_test_meshes("r:2;c:2");
    MtfPlanSearchOptions options = { .machine = machine, .memory_limit = UNLIMITED };
    MtfPlanSearch beside = { .graph = graph, .meshes = mesh, .options = &options };
    MtfMeshLook brief;
    MtfPlanAnswer alone;
    int nearly = 0;
    search(graph, mesh, &options, &alone);
    options.by_bound = true;
    for (size_t i = 0; i < G_N_ELEMENTS(percents); i++) {
        options.rival_seconds = percents[i] / 100.0 * alone.step_seconds;
        brief = mtf_mesh_look(&beside, &g_array_index(mesh, MtfMesh, 0), 1);
        MtfMeshLook longer = mtf_mesh_look(&beside, &g_array_index(mesh, MtfMesh, 0), 2);
        nearly += longer.hopeless && !brief.hopeless && brief.nearly;
        assert_true(longer.hopeless || !brief.hopeless);
        assert_true(brief.nearly || !brief.hopeless);
        assert_true(longer.least <= alone.cost);
    }
    assert_true(nearly > 0);
    assert_false(brief.nearly);
    mtf_plan_answer_clear(&alone);
}

/* A look at a large graph has a bound, too, though its search begins with a draft that has none: a rival of a third of
 * what every layout costs is out of reach. */
TEST(large_graphs_are_looked_at_by_their_bound) {
    g_autoptr(MtfMachine) machine = mtf_machine_load("a100", NULL);
    g_autoptr(GArray) mesh = mtf_test_meshes("r:2");
    MtfModelSettings settings = mtf_model_settings(&mtf_model_mlp.presets[0]);
    settings.layers = 700;
    g_autoptr(MtfGraph) forward = mtf_model_mlp.build(&settings, NULL);
    g_autoptr(MtfGraph) graph = mtf_training_graph(forward, NULL);
    mtf_graph_canonicalize(graph);
    assert_true(graph->operations->len > MTF_LARGE_OPERATIONS);
    MtfPlanSearchOptions options = {
        .machine = machine, .memory_limit = UNLIMITED, .by_bound = true, .rival_seconds = 1e3
    };
    g_autoptr(MtfFirstLook) hopeful = mtf_plan_search_look(graph, mesh, &options);
    assert_int_equal(hopeful->meshes->len, 1);
    double least = (double)g_array_index(hopeful->bounds, int64_t, 0) / 1e9;
    assert_true(least > 0);
    options.rival_seconds = mtf_machine_step_seconds(machine) + least / 3;
    g_autoptr(MtfFirstLook) hopeless = mtf_plan_search_look(graph, mesh, &options);
    assert_int_equal(hopeless->meshes->len, 0);
}

/* Bytes of the smallest layout made by hand that is shown; free layouts on the way may be smaller. */
static int64_t smallest_shown(MtfIncumbents *incumbents) {
    g_autoptr(GPtrArray) shown = mtf_incumbents_shown(incumbents, UNLIMITED);
    int64_t bytes = UNLIMITED;
    for (guint i = 0; i < shown->len; i++)
        bytes = MIN(bytes, ((const MtfIncumbent *)g_ptr_array_index(shown, i))->arena_bytes);
    return bytes;
}

TEST(no_plan_is_priced_above_a_layout_made_by_hand) {
    static const struct {
        const char *graph, *mesh, *machine;
    } cases[] = {
        { "mlp", "r:4", "cpu-cluster" },
        { "transformer-small", "r:4", "tests/support/machines/torus.json" },
        { "mlp", "r:2;c:3", "tests/support/machines/torus.json" },
        { "mlp", "r:2;c:2", "a100" },
        { "transformer-small", "r:2;c:3", "a100" },
        { "mlp", "r:6", "cpu-cluster" },
    };
    int fit = 0, tried = mtf_tries_all() ? G_N_ELEMENTS(cases) : 4;
    for (int i = 0; i < tried; i++) {
        g_autoptr(MtfMachine) machine = mtf_machine_load(cases[i].machine, NULL);
        g_autoptr(MtfGraph) graph = training_graph(cases[i].graph, NULL, NULL);
        g_autoptr(GArray) mesh = mtf_test_meshes(cases[i].mesh);
        MtfPlanSearchOptions options = { .machine = machine, .memory_limit = UNLIMITED };
        MtfPlanAnswer answer;
        search(graph, mesh, &options, &answer);
        check_answer(graph, &answer, UNLIMITED);
        fit += check_incumbents(&answer, UNLIMITED);
        /* Under the limit that the smallest of them needs, it is left. */
        int64_t limit = smallest_shown(answer.incumbents);
        options.memory_limit = limit;
        mtf_plan_answer_clear(&answer);
        search(graph, mesh, &options, &answer);
        check_answer(graph, &answer, limit);
        assert_true(check_incumbents(&answer, limit) > 0);
        mtf_plan_answer_clear(&answer);
    }
    assert_true(fit >= (mtf_tries_all() ? 36 : 22));
}

/* The plain rules of each are among what the rule search looks at. */
TEST(the_hand_made_layouts_are_all_there) {
    static const char *const names[] = {
        "best rule layout",
        "data parallelism",
        "data parallelism, ZeRO-1",
        "data parallelism, ZeRO-3",
        "Megatron",
        "Megatron, ZeRO-1",
        "Megatron, ZeRO-3",
        "Megatron, sequence parallel",
    };
    g_autoptr(MtfMachine) machine = mtf_machine_load("cpu-cluster", NULL);
    g_autoptr(MtfGraph) graph = training_graph("transformer-small", NULL, NULL);
    g_autoptr(GArray) mesh = mtf_test_meshes("r:2;c:2");
    MtfPlanSearchOptions options = { .machine = machine, .memory_limit = UNLIMITED };
    MtfPlanAnswer answer;
    search(graph, mesh, &options, &answer);
    cJSON *json = mtf_plan_answer_to_json(&answer, UNLIMITED);
    g_autofree char *text = cJSON_PrintUnformatted(json);
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *entry = g_strdup_printf("\"name\":\"%s\"", names[i]);
        assert_non_null(strstr(text, entry));
    }
    cJSON_Delete(json);
    mtf_plan_answer_clear(&answer);
}

/* The incumbent's numbers are those of its program, and it fits. */
static void check_incumbent(const MtfGraph *graph, const MtfPlanAnswer *answer, int64_t limit,
                            const MtfIncumbent *incumbent) {
    g_autoptr(MtfProgram) program = mtf_lower(graph, incumbent->layout);
    g_autoptr(MtfArena) arena = mtf_arena_pack(program);
    assert_int_equal(mtf_price_program(&answer->pricer, program), incumbent->cost);
    assert_true(step_seconds(&answer->pricer, program) == incumbent->step_seconds);
    assert_int_equal(arena->bytes, incumbent->arena_bytes);
    assert_true(arena->bytes <= limit);
}

static const MtfFrontierPoint *point_at(const GArray *frontier, guint i) {
    return &g_array_index(frontier, MtfFrontierPoint, i);
}

/* How often another layout than the cheapest has the shortest step. */
static int check_frontier(const MtfGraph *graph, const MtfPlanAnswer *answer) {
    int slower = 0;
    for (guint i = 0; i < answer->frontier->len; i++) {
        const MtfFrontierPoint *point = point_at(answer->frontier, i);
        check_incumbent(graph, answer, point->limit, point->cheapest);
        check_incumbent(graph, answer, point->limit, point->fastest);
        assert_true(point->bound <= point->cheapest->cost);
        slower += point->cheapest->step_seconds > point->fastest->step_seconds;
        if (i == 0)
            continue;
        const MtfFrontierPoint *before = &point[-1];
        assert_true(before->limit < point->limit && before->bound >= point->bound);
        assert_true(point->cheapest->cost <= before->cheapest->cost);
        assert_true(point->fastest->step_seconds <= before->fastest->step_seconds);
    }
    return slower;
}

/* Where nothing is hidden, and where the cheapest layouts are not the fastest. */
TEST(more_memory_never_gives_a_slower_step) {
    static const char *const machines[] = { "cpu-cluster", "tpu-v4" };
    static const char *const sizes_of[] = { "batch", "d_model", "d_ff", NULL };
    static const int64_t sizes[] = { 32, 512, 2048 };
    g_autoptr(GArray) mesh = mtf_test_meshes("r:2;c:2");
    int slower = 0;
    for (gsize i = 0; i < G_N_ELEMENTS(machines); i++) {
        g_autoptr(MtfMachine) machine = mtf_machine_load(machines[i], NULL);
        g_autoptr(MtfGraph) graph =
            training_graph("transformer-small", i > 0 ? sizes_of : NULL, i > 0 ? sizes : NULL);
        MtfPlanSearchOptions options = { .machine = machine,
                                         .memory_limit = UNLIMITED,
                                         .frontier = 6 };
        MtfPlanAnswer answer;
        search(graph, mesh, &options, &answer);
        assert_true(answer.frontier->len >= 4);
        int found = check_frontier(graph, &answer);
        assert_true(machine->overlap || found == 0);
        const MtfFrontierPoint *last = point_at(answer.frontier, answer.frontier->len - 1);
        slower += answer.step_seconds < last->cheapest->step_seconds;
        assert_int_equal(answer.cost, last->cheapest->cost);
        assert_true(answer.step_seconds <= last->fastest->step_seconds);
        check_answer(graph, &answer, UNLIMITED);
        mtf_plan_answer_clear(&answer);
    }
    assert_true(slower > 0);
}

static void note_most(double cost, double bound, void *user) {
    (void)cost;
    double *most = user;
    *most = fmax(*most, bound);
}

/* Searches that know nothing of one another, in whole steps of memory: the plans get no slower, where
 * the cheapest layouts are not the fastest. Lower limits are searched besides, of which no bound is told. */
TEST(separate_searches_are_no_slower_with_more_memory) {
    static const char *const sizes_of[] = { "batch", "d_model", "d_ff", NULL };
    static const int64_t sizes[] = { 32, 512, 2048 };
    g_autoptr(MtfMachine) machine = mtf_machine_load("tpu-v4", NULL);
    g_autoptr(MtfGraph) graph = training_graph("transformer-small", sizes_of, sizes);
    g_autoptr(GArray) mesh = mtf_test_meshes("r:2;c:2");
    double plan = INFINITY;
    int slower = 0;
    for (int64_t limit = 90; limit <= 114; limit += 8) {
        double most = 0;
        const MtfSearchListener listener = { .bound = note_most, .user = &most };
        MtfSearchControl control;
        mtf_search_control_init(&control, 0);
        control.listener = &listener;
        MtfPlanSearchOptions options = { .machine = machine,
                                         .memory_limit = limit << 20,
                                         .control = &control };
        MtfPlanAnswer answer;
        search(graph, mesh, &options, &answer);
        check_answer(graph, &answer, options.memory_limit);
        assert_true(most > 0 && most <= (double)answer.cost);
        assert_true(answer.step_seconds <= plan);
        slower += answer.free.step_seconds > answer.step_seconds;
        plan = answer.step_seconds;
        mtf_plan_answer_clear(&answer);
    }
    assert_true(slower > 0);
}

/* A plan under one of the frontier's limits is no slower than the frontier says. */
TEST(the_frontiers_limits_are_kept_by_searches) {
    g_autoptr(MtfMachine) machine = mtf_machine_load("cpu-cluster", NULL);
    g_autoptr(MtfGraph) graph = training_graph("mlp", NULL, NULL);
    g_autoptr(GArray) mesh = mtf_test_meshes("r:4");
    MtfPlanSearchOptions options = { .machine = machine, .memory_limit = UNLIMITED, .frontier = 4 };
    MtfPlanAnswer answer, again;
    search(graph, mesh, &options, &answer);
    options.frontier = 0;
    for (guint i = 0; i < answer.frontier->len; i++) {
        const MtfFrontierPoint *point = &g_array_index(answer.frontier, MtfFrontierPoint, i);
        options.memory_limit = point->limit;
        search(graph, mesh, &options, &again);
        assert_true(again.found && again.cost >= point->bound);
        mtf_plan_answer_clear(&again);
    }
    mtf_plan_answer_clear(&answer);
}

/* The meshes on which Mesh-TensorFlow's automatic mapping is worse than keeping the order, on its
 * torus of 16x16x2: ours is never worse, and better where the mesh does not fit the torus. */
TEST(no_mapping_is_worse_than_keeping_the_order) {
    static const char *const meshes[] = { "a:16;b:16;c:2", "a:8;b:64", "a:4;b:128" };
    static const char *const sizes_of[] = { "batch", "d_ff", NULL };
    static const int64_t sizes[] = { 512, 2048 };
    g_autoptr(MtfMachine) machine = mtf_machine_load("tests/support/machines/torus.json", NULL);
    g_autoptr(MtfGraph) graph = training_graph("transformer-small", sizes_of, sizes);
    int better = 0;
    for (gsize i = 0; i < G_N_ELEMENTS(meshes); i++) {
        g_autoptr(GArray) mesh = mtf_test_meshes(meshes[i]);
        MtfPlanSearchOptions options = { .machine = machine,
                                         .memory_limit = UNLIMITED,
                                         .rules_only = true };
        MtfPlanAnswer answer;
        search(graph, mesh, &options, &answer);
        check_answer(graph, &answer, UNLIMITED);
        assert_true(mtf_mapping_is_whole(&answer.pricer.map.mapping));
        assert_true(answer.rules.bound <= answer.cost);
        better += answer.cost < answer.in_order_cost;
        assert_true(answer.in_order == (answer.cost == answer.in_order_cost));
        mtf_plan_answer_clear(&answer);
    }
    assert_true(better > 0);
}

/* Rules are cheapest on one shape of eight devices, others are tried too; that some of them are given up
 * changes nothing. */
TEST(free_layouts_are_searched_on_other_meshes_too) {
    g_autoptr(MtfMachine) machine = mtf_machine_load("cpu-cluster", NULL);
    g_autoptr(MtfGraph) graph = training_graph("mlp", NULL, NULL);
    g_autoptr(GArray) meshes = mtf_mesh_shapes(8, 2);
    MtfPlanSearchOptions options = { .machine = machine, .memory_limit = UNLIMITED };
    MtfPlanAnswer all;
    search(graph, meshes, &options, &all);
    assert_true(all.free_meshes > 1 && all.free_meshes <= (int)meshes->len);
    int tried = 0;
    bool reached = false;
    for (guint i = 0; i < meshes->len; i++) {
        g_autoptr(GArray) one = g_array_new(FALSE, TRUE, sizeof(MtfMesh));
        g_array_append_val(one, g_array_index(meshes, MtfMesh, i));
        MtfPlanAnswer alone;
        search(graph, one, &options, &alone);
        tried += all.cost <= alone.cost;
        reached |= all.cost == alone.cost;
        mtf_plan_answer_clear(&alone);
    }
    assert_true(reached && tried >= all.free_meshes);
    mtf_plan_answer_clear(&all);
}

/* When nothing fits, the limit that the answer names does. */
TEST(the_limit_that_would_do_does) {
    static const char *const graphs[] = { "mlp", "transformer-small" };
    g_autoptr(MtfMachine) machine = mtf_machine_load("cpu-cluster", NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(graphs); i++) {
        g_autoptr(MtfGraph) graph = training_graph(graphs[i], NULL, NULL);
        g_autoptr(GArray) mesh = mtf_test_meshes("r:2;c:2");
        MtfPlanSearchOptions options = { .machine = machine, .memory_limit = 1000 };
        MtfPlanAnswer answer;
        search(graph, mesh, &options, &answer);
        assert_false(answer.found);
        int64_t enough = answer.free.limit_enough;
        assert_true(answer.free.limit_bound > 1000 && enough >= answer.free.limit_bound);
        mtf_plan_answer_clear(&answer);
        options.memory_limit = enough;
        search(graph, mesh, &options, &answer);
        check_answer(graph, &answer, enough);
        mtf_plan_answer_clear(&answer);
    }
}

static void count_costs(double cost, double bound, void *user) {
    (void)bound;
    *(int *)user += isfinite(cost);
}

/* Layouts that would fit under a higher limit are looked for, but are no news: the sentence that names the
 * limit is. */
TEST(no_cost_is_told_where_nothing_fits) {
    int told = 0;
    MtfSearchListener listener = { .bound = count_costs, .user = &told };
    MtfSearchControl control;
    mtf_search_control_init(&control, 0);
    control.listener = &listener;
    g_autoptr(MtfMachine) machine = mtf_machine_load("cpu-cluster", NULL);
    g_autoptr(MtfGraph) graph = training_graph("transformer-small", NULL, NULL);
    g_autoptr(GArray) mesh = mtf_test_meshes("r:2;c:4");
    MtfPlanSearchOptions options = { .machine = machine,
                                     .memory_limit = 1000,
                                     .control = &control };
    MtfPlanAnswer answer;
    search(graph, mesh, &options, &answer);
    assert_true(!answer.found && answer.free.limit_enough > 1000);
    assert_int_equal(told, 0);
    mtf_plan_answer_clear(&answer);
}

/* A gap that is asked for is where the search ends; otherwise it ends with a proof. */
TEST(the_search_goes_on_to_the_gap_that_is_asked_for) {
    g_autoptr(MtfMachine) machine = mtf_machine_load("cpu-cluster", NULL);
    g_autoptr(MtfGraph) graph = training_graph("transformer-small", NULL, NULL);
    static const char *const meshes[] = { "r:4", "r:2;c:2", "r:2;c:3" };
    int loose = 0;
    for (gsize i = 0; i < G_N_ELEMENTS(meshes); i++) {
        g_autoptr(GArray) mesh = mtf_test_meshes(meshes[i]);
        MtfPlanSearchOptions options = { .machine = machine, .memory_limit = UNLIMITED };
        MtfPlanAnswer best, near;
        search(graph, mesh, &options, &best);
        check_answer(graph, &best, UNLIMITED);
        assert_int_equal(best.free.cost, best.free.bound);
        options.has_gap = true;
        options.gap = 0.05;
        search(graph, mesh, &options, &near);
        check_answer(graph, &near, UNLIMITED);
        assert_true(near.free.bound <= best.cost && best.cost <= near.cost);
        assert_true((double)(near.cost - near.free.bound) <= 0.05 * (double)near.cost);
        loose += near.free.bound < near.cost;
        mtf_plan_answer_clear(&best);
        mtf_plan_answer_clear(&near);
    }
    assert_true(loose > 0);
}

/* Whether tensors are kept alike in two layers, by their names. */
static bool layers_are_equal(const MtfGraph *graph, const MtfLayout *layout, int first,
                             int second) {
    g_autofree char *a = g_strdup_printf("layer/%d/", first);
    g_autofree char *b = g_strdup_printf("layer/%d/", second);
    bool equal = true;
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        g_autoptr(GString) twin = g_string_new(mtf_graph_tensor(graph, t)->name);
        int other =
            g_string_replace(twin, a, b, 1) > 0 ? mtf_graph_find_tensor(graph, twin->str) : t;
        equal &= other < 0 || mtf_placement_equal(&layout->tensors[t], &layout->tensors[other]);
    }
    return equal;
}

/* Under a tight limit layers differ for a last fraction of a percent: alike they are dearer and still
 * within the bound, and that is the default. */
TEST(repeated_layers_are_alike_unless_asked_otherwise) {
    static const char *const meshes[] = { "c:4", "r:2;c:2" };
    g_autoptr(MtfMachine) machine = mtf_machine_load("cpu-host", NULL);
    g_autoptr(MtfGraph) graph = training_graph("gpt-small", NULL, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(meshes); i++) {
        g_autoptr(GArray) mesh = mtf_test_meshes(meshes[i]);
        MtfPlanSearchOptions options = { .machine = machine, .memory_limit = 12600000 };
        MtfPlanAnswer answers[3];
        bool equal[3];
        for (int u = 0; u < 3; u++) {
            options.uniform = (MtfUniform)u;
            search(graph, mesh, &options, &answers[u]);
            check_answer(graph, &answers[u], options.memory_limit);
            g_autoptr(MtfLayout) layout = mtf_plan_answer_layout(&answers[u], graph);
            equal[u] = layers_are_equal(graph, layout, 0, 1) &&
                       layers_are_equal(graph, layout, 1, 2) &&
                       layers_are_equal(graph, layout, 2, 3);
        }
        const MtfPlanAnswer *free = &answers[MTF_UNIFORM_NEVER];
        const MtfAlikeLayers *chosen = &answers[MTF_UNIFORM_AUTO].alike;
        assert_true(equal[MTF_UNIFORM_AUTO] && equal[MTF_UNIFORM_ALWAYS]);
        assert_false(equal[MTF_UNIFORM_NEVER]);
        assert_true(answers[MTF_UNIFORM_ALWAYS].cost > free->cost);
        assert_int_equal(answers[MTF_UNIFORM_AUTO].cost, free->cost);
        assert_int_equal(chosen->alike.cost, answers[MTF_UNIFORM_ALWAYS].cost);
        assert_int_equal(chosen->differences, 0);
        for (int u = 0; u < 3; u++)
            mtf_plan_answer_clear(&answers[u]);
    }
}
