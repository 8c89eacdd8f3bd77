// SPDX-License-Identifier: GPL-3.0-or-later
// seconds: 300
#include "tests/support/cmocka.h"

#include "analyzer/planner/mesh_shapes.h"
#include "analyzer/rules/rule_search.h"
#include "analyzer/rules/rule_search_close.h"
#include "analyzer/rules/rule_search_program.h"
#include "analyzer/solver/problem/in_parallel.h"
#include "analyzer/training/training_graph.h"
#include "cost/memory/arena.h"
#include "layouts/graph_file/graph_json.h"
#include "tests/support/cases/microbatch_training.h"
#include "tests/support/cases/parse_graph.h"
#include "tests/support/drawn/random_graph.h"
#include "tests/support/draws.h"

#include <string.h>

static MtfMachine *machine;

static int load_machine(void **state) {
    (void)state;
    machine = mtf_machine_load("tests/support/machines/torus.json", NULL);
    return machine == NULL;
}

static int free_machine(void **state) {
    (void)state;
    mtf_machine_free(machine);
    return 0;
}

/* ---- The naive twin: every legal assignment, lowered whole ----------------------------------- */

typedef struct {
    const MtfGraph *graph;
    const MtfMesh *mesh;
    MtfPricer pricer;
    int64_t limit;
    MtfRules *rules;
    int64_t cheapest;       /* of those that fit; INT64_MAX: none does */
    int64_t smallest_arena; /* of all */
    void (*visit)(const MtfRules *rules, int64_t price, int64_t arena, void *user);
    void *user;
} Exhaustion;

static void price_assignment(Exhaustion *e) {
    g_autoptr(MtfLayout) layout = mtf_layout_from_rules(e->graph, e->mesh, e->rules);
    g_autoptr(MtfProgram) program = mtf_lower(e->graph, layout);
    g_autoptr(MtfArena) arena = mtf_arena_pack(program);
    int64_t price = mtf_price_program(&e->pricer, program);
    e->smallest_arena = MIN(e->smallest_arena, arena->bytes);
    if (arena->bytes <= e->limit)
        e->cheapest = MIN(e->cheapest, price);
    if (e->visit != NULL)
        e->visit(e->rules, price, arena->bytes, e->user);
}

static void exhaust_from(Exhaustion *e, int dim) {
    if (dim == e->rules->n_dims) {
        if (mtf_rules_check(e->graph, e->mesh, e->rules, NULL))
            price_assignment(e);
        return;
    }
    for (int axis = -1; axis < e->mesh->n_axes; axis++) {
        e->rules->axis[dim] = axis;
        exhaust_from(e, dim + 1);
    }
}

static void exhaust(Exhaustion *e) {
    assert_true(mtf_pricer_init(&e->pricer, machine, e->mesh, NULL));
    e->rules = mtf_rules_new(e->graph);
    e->cheapest = INT64_MAX;
    e->smallest_arena = INT64_MAX;
    exhaust_from(e, 0);
    mtf_rules_free(e->rules);
}

/* ---- Cases ----------------------------------------------------------------------------------- */

static MtfGraph *graph_of(guint32 seed) {
    MtfRandomGraph options = { .seed = seed,
                               .dimensions = 2 + (int)(seed % 4),
                               .operations = 4 + (int)(seed % 9),
                               .largest_size = 9,
                               .dtype = seed % 2 == 0 ? MTF_F32 : MTF_F64 };
    MtfGraph *graph = mtf_random_graph(&options);
    for (int d = 0; seed % 3 == 0 && d < (int)graph->dimensions->len; d++)
        mtf_graph_dimension(graph, d)->size *= 40;
    return graph;
}

static const char *mesh_text(guint32 seed) {
    static const char *const texts[] = { "a:2;b:3", "a:4", "a:2;b:2", "a:5", "a:8;b:4", "a:3" };
    return texts[seed % G_N_ELEMENTS(texts)];
}

/* 1500 graphs, meshes of one and two axes. */
TEST(the_optimum_is_that_of_exhaustive_enumeration) {
    for (guint32 seed = 0; seed < (guint32)mtf_draws(1500); seed++) {
        g_autoptr(MtfGraph) graph = graph_of(seed);
        g_autoptr(GArray) meshes = mtf_test_meshes(mesh_text(seed));
        MtfRuleSearchOptions options = { .machine = machine, .memory_limit = INT64_MAX };
        MtfRuleAnswer answer;
        assert_true(mtf_rule_search(graph, meshes, &options, &answer, NULL));
        Exhaustion e = { .graph = graph,
                         .mesh = &g_array_index(meshes, MtfMesh, 0),
                         .limit = INT64_MAX };
        exhaust(&e);
        assert_true(answer.found);
        assert_int_equal(answer.cost, e.cheapest);
        assert_int_equal(answer.bound, e.cheapest);
        mtf_rule_answer_clear(&answer);
    }
}

/* The limit is drawn between the smallest arena and that of the plain layout. */
TEST(under_a_memory_limit_the_answer_fits_and_is_the_cheapest_that_does) {
    int bound_wrong = 0, tightened = 0;
    for (guint32 seed = 0; seed < (guint32)mtf_draws(700); seed++) {
        g_autoptr(MtfGraph) graph = graph_of(seed);
        g_autoptr(GArray) meshes = mtf_test_meshes(mesh_text(seed));
        Exhaustion e = { .graph = graph, .mesh = &g_array_index(meshes, MtfMesh, 0) };
        exhaust(&e);
        e.limit = e.smallest_arena + e.smallest_arena * (seed % 7) / 16;
        exhaust(&e);
        MtfRuleSearchOptions options = { .machine = machine, .memory_limit = e.limit };
        MtfRuleAnswer answer;
        assert_true(mtf_rule_search(graph, meshes, &options, &answer, NULL));
        assert_true(answer.found || answer.tightened);
        if (answer.found)
            assert_true(answer.arena_bytes <= e.limit);
        if (answer.found && !answer.tightened)
            assert_int_equal(answer.cost, e.cheapest);
        bound_wrong += answer.bound > e.cheapest;
        tightened += answer.tightened;
        mtf_rule_answer_clear(&answer);
    }
    assert_int_equal(bound_wrong, 0);
    assert_true(tightened < 20);
}

TEST(when_nothing_fits_the_limit_that_would_do_is_real) {
    for (guint32 seed = 0; seed < (guint32)mtf_draws(200); seed++) {
        g_autoptr(MtfGraph) graph = graph_of(seed);
        g_autoptr(GArray) meshes = mtf_test_meshes(mesh_text(seed));
        Exhaustion e = { .graph = graph, .mesh = &g_array_index(meshes, MtfMesh, 0) };
        exhaust(&e);
        MtfRuleSearchOptions options = { .machine = machine, .memory_limit = e.smallest_arena - 1 };
        MtfRuleAnswer answer;
        assert_true(mtf_rule_search(graph, meshes, &options, &answer, NULL));
        assert_false(answer.found);
        assert_true(answer.arena_bytes >= e.smallest_arena);
        assert_true(answer.limit_bound <= e.smallest_arena);
        mtf_rule_answer_clear(&answer);
    }
}

static MtfRuleTables *tables_of(const MtfRuleTerms *terms, const MtfPricer *pricer,
                                const MtfMesh *mesh, const unsigned *allowed) {
    bool costs_more;
    MtfRuleTablesOptions options = {
        .pricer = pricer, .mesh = mesh, .allowed = allowed, .most = INT64_MAX
    };
    MtfRuleTables *tables = mtf_rule_tables_new(terms, &options, &costs_more);
    assert_true(tables != NULL && !costs_more);
    return tables;
}

static void compare_tables(const MtfRules *rules, int64_t price, int64_t arena, void *user) {
    const MtfRuleTables *tables = user;
    int half_step;
    assert_int_equal(mtf_rule_tables_price(tables, rules), price);
    assert_true(mtf_rule_tables_memory(tables, rules, &half_step) <= arena);
}

/* Every assignment, not only the best: the sum over scopes is the program's price, and the memory
 * model stays below the arena. */
static void check_tables(const MtfGraph *graph, const char *mesh) {
    g_autoptr(GArray) meshes = mtf_test_meshes(mesh);
    g_autofree unsigned *allowed = g_new(unsigned, graph->dimensions->len);
    for (guint d = 0; d < graph->dimensions->len; d++)
        allowed[d] = ~0U;
    Exhaustion e = { .graph = graph,
                     .mesh = &g_array_index(meshes, MtfMesh, 0),
                     .limit = INT64_MAX,
                     .visit = compare_tables };
    MtfPricer pricer;
    assert_true(mtf_pricer_init(&pricer, machine, e.mesh, NULL));
    g_autoptr(MtfRuleTerms) terms = mtf_rule_terms_new(graph);
    g_autoptr(MtfRuleTables) tables = tables_of(terms, &pricer, e.mesh, allowed);
    e.user = tables;
    exhaust(&e);
}

TEST(tables_price_every_assignment_exactly) {
    for (guint32 seed = 2000; seed < 2200; seed++) {
        g_autoptr(MtfGraph) graph = graph_of(seed);
        check_tables(graph, mesh_text(seed));
    }
}

/* Its last value is copied behind the loop, whoever else reads it; a state is handed on within. */
TEST(what_a_loop_leaves_is_priced_where_a_variable_takes_it) {
    const char *text =
        "{'meshtf_graph': 1, 'name': 'steps', 'dimensions': {'rows': 12, 'columns': 6},"
        " 'inputs': [], 'variables': ["
        "  {'name': 'kept', 'dims': ['rows', 'columns'], 'init': 'zeros', 'frozen': true},"
        "  {'name': 'seen', 'dims': ['rows', 'columns'], 'init': 'zeros', 'frozen': true}],"
        " 'operations': ["
        "  {'op': 'constant', 'name': 'start', 'dims': ['rows', 'columns'], 'value': 1},"
        "  {'loop': {'name': 'steps', 'count': 3, 'operations': ["
        "    {'op': 'square', 'name': 'more', 'inputs': ['x']},"
        "    {'op': 'add', 'name': 'other', 'inputs': ['more', 'y']}],"
        "   'carry': [{'name': 'x', 'init': 'start', 'next': 'more'},"
        "             {'name': 'y', 'init': 'start', 'next': 'other'}]}},"
        "  {'op': 'add', 'name': 'both', 'inputs': ['steps/x', 'seen']}],"
        " 'updates': [{'variable': 'kept', 'value': 'steps/x'},"
        "             {'variable': 'seen', 'value': 'both'}]}";
    g_autoptr(MtfGraph) graph = mtf_test_graph(text);
    check_tables(graph, "a:2;b:3");
    check_tables(graph, "a:4");
}

/* Training graphs: composites, gradients that meet in sums, updates in place. */
TEST(training_graphs_are_searched_exactly_too) {
    int searched = 0;
    for (guint32 seed = 0; seed < 60; seed++) {
        MtfRandomGraph drawn = { .seed = seed,
                                 .dimensions = 3,
                                 .operations = 5,
                                 .largest_size = 60,
                                 .dtype = MTF_F32,
                                 .composites = true };
        g_autoptr(MtfGraph) forward = mtf_random_graph(&drawn);
        g_free(forward->optimizer.kind);
        forward->optimizer.kind = g_strdup(seed % 2 == 0 ? "adam" : "adafactor");
        forward->optimizer.clip_norm = seed % 3;
        g_autoptr(MtfGraph) graph = mtf_training_graph(forward, NULL);
        if (graph == NULL)
            continue; /* no variable was drawn */
        searched++;
        g_autoptr(GArray) meshes = mtf_test_meshes(mesh_text(seed));
        Exhaustion e = { .graph = graph, .mesh = &g_array_index(meshes, MtfMesh, 0) };
        exhaust(&e);
        e.limit = e.smallest_arena * 5 / 4;
        exhaust(&e);
        MtfRuleSearchOptions options = { .machine = machine, .memory_limit = e.limit };
        MtfRuleAnswer answer;
        assert_true(mtf_rule_search(graph, meshes, &options, &answer, NULL));
        if (!answer.tightened)
            assert_int_equal(answer.cost, e.cheapest);
        assert_true(answer.bound <= e.cheapest);
        mtf_rule_answer_clear(&answer);
    }
    assert_true(searched >= 30);
}

/* With and without clipping, which reads every gradient twice. */
TEST(steps_of_micro_batches_are_searched_exactly_too) {
    for (int i = 0; i < 8; i++) {
        g_autoptr(MtfGraph) forward = mtf_graph_load("layouts/library/graphs/mlp.json", NULL, NULL);
        forward->optimizer.clip_norm = i % 2;
        g_autoptr(MtfGraph) graph = mtf_test_microbatches(forward, 1 << (i / 2), NULL);
        g_autoptr(GArray) meshes = mtf_test_meshes("a:4;b:2");
        Exhaustion e = { .graph = graph, .mesh = &g_array_index(meshes, MtfMesh, 0) };
        exhaust(&e);
        e.limit = e.smallest_arena * 5 / 4;
        exhaust(&e);
        MtfRuleSearchOptions options = { .machine = machine, .memory_limit = e.limit };
        MtfRuleAnswer answer;
        assert_true(mtf_rule_search(graph, meshes, &options, &answer, NULL));
        assert_true(answer.found && answer.bound <= e.cheapest);
        if (!answer.tightened)
            assert_int_equal(answer.cost, e.cheapest);
        mtf_rule_answer_clear(&answer);
    }
}

/* The proof is a checker: told that keeping everything replicated is best, it finds what is. */
TEST(the_proof_finds_what_a_wrong_answer_missed) {
    for (guint32 seed = 0; seed < 60; seed++) {
        g_autoptr(MtfGraph) graph = graph_of(3 * seed);
        g_autoptr(GArray) meshes = mtf_test_meshes(mesh_text(seed));
        g_autofree unsigned *allowed = g_new(unsigned, graph->dimensions->len);
        for (guint d = 0; d < graph->dimensions->len; d++)
            allowed[d] = ~0U;
        Exhaustion e = { .graph = graph,
                         .mesh = &g_array_index(meshes, MtfMesh, 0),
                         .limit = INT64_MAX };
        exhaust(&e);
        g_autoptr(MtfRuleTerms) terms = mtf_rule_terms_new(graph);
        g_autoptr(MtfRuleTables) tables = tables_of(terms, &e.pricer, e.mesh, allowed);
        g_autoptr(MtfRuleProgram) program = mtf_rule_program_new(tables);
        g_autoptr(MtfRules) rules = mtf_rules_new(graph);
        int64_t cost = mtf_rule_tables_price(tables, rules);
        assert_true(mtf_rule_close(program, INT64_MAX, rules, &cost));
        assert_int_equal(cost, e.cheapest);
        assert_int_equal(mtf_rule_tables_price(tables, rules), cost);
    }
}

/* The least memory as a search over the dimensions finds it that may look at few of them. */
static MtfRuleSolution smallest_of(const MtfRuleTables *tables, bool drafts) {
    g_autoptr(MtfRuleProgram) program = mtf_rule_program_new(tables);
    program->nodes = 30;
    program->drafts = drafts;
    MtfIlpOptions options = { 0 };
    MtfRuleSolution solution;
    assert_true(mtf_rule_program_smallest(program, &options, &solution, NULL));
    mtf_rules_free(solution.rules);
    return solution;
}

/* Where free layouts follow, the integer program is left out: what it proves nobody asks for. */
TEST(drafts_of_the_smallest_rules_take_no_program) {
    int left_out = 0;
    for (guint32 seed = 0; seed < 30; seed++) {
        g_autoptr(MtfGraph) graph = graph_of(seed);
        g_autoptr(GArray) meshes = mtf_test_meshes(mesh_text(seed));
        const MtfMesh *mesh = &g_array_index(meshes, MtfMesh, 0);
        g_autofree unsigned *allowed = g_new(unsigned, graph->dimensions->len);
        for (guint d = 0; d < graph->dimensions->len; d++)
            allowed[d] = ~0U;
        MtfPricer pricer;
        assert_true(mtf_pricer_init(&pricer, machine, mesh, NULL));
        g_autoptr(MtfRuleTerms) terms = mtf_rule_terms_new(graph);
        g_autoptr(MtfRuleTables) tables = tables_of(terms, &pricer, mesh, allowed);
        MtfRuleSolution proven = smallest_of(tables, false), draft = smallest_of(tables, true);
        assert_int_equal(proven.status, MTF_ILP_OPTIMAL);
        assert_true(draft.value >= proven.value && draft.bound <= proven.value);
        left_out += draft.status == MTF_ILP_FEASIBLE && draft.bound == 0;
    }
    assert_true(left_out > 0);
}

static MtfRuleTables *tables_by(const MtfRuleTerms *terms, const MtfPricer *pricer,
                                const MtfMesh *mesh, const unsigned *allowed, int threads) {
    mtf_in_parallel_set_threads(threads);
    MtfRuleTables *tables = tables_of(terms, pricer, mesh, allowed);
    mtf_in_parallel_set_threads(0);
    return tables;
}

TEST(any_number_of_threads_prices_the_same) {
    for (guint32 seed = 0; seed < 30; seed++) {
        g_autoptr(MtfGraph) graph = graph_of(seed);
        g_autoptr(GArray) meshes = mtf_test_meshes(mesh_text(seed));
        const MtfMesh *mesh = &g_array_index(meshes, MtfMesh, 0);
        g_autofree unsigned *allowed = g_new(unsigned, graph->dimensions->len);
        for (guint d = 0; d < graph->dimensions->len; d++)
            allowed[d] = ~0U;
        MtfPricer pricer;
        assert_true(mtf_pricer_init(&pricer, machine, mesh, NULL));
        g_autoptr(MtfRuleTerms) terms = mtf_rule_terms_new(graph);
        g_autoptr(MtfRuleTables) one = tables_by(terms, &pricer, mesh, allowed, 1);
        g_autoptr(MtfRuleTables) many = tables_by(terms, &pricer, mesh, allowed, 5);
        for (guint i = 0; i < terms->maximal->len; i++) {
            assert_int_equal(one->tables[i].n, many->tables[i].n);
            assert_memory_equal(one->tables[i].nanoseconds, many->tables[i].nanoseconds,
                                (gsize)one->tables[i].n * sizeof(int64_t));
        }
        for (guint c = 0; c < terms->classes->len; c++)
            assert_memory_equal(one->slices[c], many->slices[c],
                                (gsize)one->tables[mtf_rule_class(terms, (int)c)->maximal].n *
                                    sizeof(int64_t));
    }
}

static void expect_same_size(const MtfGraph *graph, int *variables, int *rows) {
    GArray *meshes = mtf_test_meshes("a:2;b:3");
    g_autofree unsigned *allowed = g_new(unsigned, graph->dimensions->len);
    for (guint d = 0; d < graph->dimensions->len; d++)
        allowed[d] = ~0U;
    const MtfMesh *mesh = &g_array_index(meshes, MtfMesh, 0);
    MtfPricer pricer;
    assert_true(mtf_pricer_init(&pricer, machine, mesh, NULL));
    g_autoptr(MtfRuleTerms) terms = mtf_rule_terms_new(graph);
    g_autoptr(MtfRuleTables) tables = tables_of(terms, &pricer, mesh, allowed);
    g_autoptr(MtfRuleProgram) program = mtf_rule_program_new(tables);
    int old_variables = *variables, old_rows = *rows;
    mtf_rule_program_size(program, variables, rows);
    assert_true(*variables <= 200 && *rows <= 60);
    if (old_variables > 0) {
        assert_int_equal(*variables, old_variables);
        assert_int_equal(*rows, old_rows);
    }
    g_array_unref(meshes);
}

/* A chain of `depth` equal layers h = relu(h w) over dimensions a and b, alternating. */
static MtfGraph *chain_of(int depth) {
    MtfGraph *graph = mtf_graph_new("chain");
    int batch = mtf_graph_add_dimension(graph, "batch", 32, NULL);
    int dims[2] = { mtf_graph_add_dimension(graph, "one", 64, NULL),
                    mtf_graph_add_dimension(graph, "two", 128, NULL) };
    MtfShape shape = { .rank = 2, .dims = { batch, dims[0] } };
    int h = mtf_graph_add_input(graph, "x", &shape, MTF_F32, MTF_FEED_FEATURES, NULL);
    for (int i = 0; i < depth; i++) {
        g_autofree char *weight = g_strdup_printf("w%d", i);
        g_autofree char *product = g_strdup_printf("p%d", i);
        g_autofree char *result = g_strdup_printf("h%d", i);
        shape = (MtfShape){ .rank = 2, .dims = { dims[i % 2], dims[1 - i % 2] } };
        int w =
            mtf_graph_add_variable(graph, weight, &shape, MTF_F32,
                                   (MtfInit){ MTF_INIT_CONSTANT, 0 }, MTF_MEMORY_VARIABLE, NULL);
        shape = (MtfShape){ .rank = 2, .dims = { batch, dims[1 - i % 2] } };
        MtfNewOperation op = { .name = product,
                               .kind = MTF_OP_EINSUM,
                               .n_inputs = 2,
                               .inputs = (int[]){ h, w },
                               .shape = &shape,
                               .attributes = MTF_NO_ATTRIBUTES };
        int p = mtf_graph_add_operation(graph, &op, NULL);
        op = (MtfNewOperation){ .name = result,
                                .kind = MTF_OP_RELU,
                                .n_inputs = 1,
                                .inputs = &p,
                                .attributes = MTF_NO_ATTRIBUTES };
        h = mtf_graph_add_operation(graph, &op, NULL);
    }
    return graph;
}

TEST(the_integer_program_does_not_grow_with_depth) {
    int variables = 0, rows = 0;
    for (int depth = 4; depth <= 64; depth *= 4) {
        g_autoptr(MtfGraph) graph = chain_of(depth);
        expect_same_size(graph, &variables, &rows);
    }
}

/* Interrupts when it is asked once more than this. */
static int asks_left;

static bool interrupt_later(void) {
    return --asks_left < 0;
}

/* Stopped at whatever moment, the bound is above nothing that exhaustive enumeration finds, and
 * says something. */
TEST(a_stopped_search_says_so_and_its_bound_holds) {
    for (guint32 seed = 0; seed < 60; seed++) {
        g_autoptr(MtfGraph) graph = graph_of(seed);
        g_autoptr(GArray) meshes = mtf_test_meshes(mesh_text(seed));
        MtfSearchControl control;
        mtf_search_control_init(&control, 0);
        control.interrupted = interrupt_later;
        asks_left = (int)seed / 3;
        MtfRuleSearchOptions options = { .machine = machine,
                                         .memory_limit = INT64_MAX,
                                         .control = &control };
        MtfRuleAnswer answer;
        assert_true(mtf_rule_search(graph, meshes, &options, &answer, NULL));
        Exhaustion e = { .graph = graph,
                         .mesh = &g_array_index(meshes, MtfMesh, 0),
                         .limit = INT64_MAX };
        exhaust(&e);
        assert_true(answer.stopped || answer.found);
        assert_true(answer.bound > 0 && answer.bound <= e.cheapest);
        mtf_rule_answer_clear(&answer);
    }
}

TEST(a_search_cancelled_at_once_has_found_nothing) {
    g_autoptr(MtfGraph) graph = graph_of(3);
    g_autoptr(GArray) meshes = mtf_test_meshes("a:2");
    MtfSearchControl control;
    mtf_search_control_init(&control, 0);
    mtf_search_cancel(&control);
    MtfRuleSearchOptions options = { .machine = machine,
                                     .memory_limit = INT64_MAX,
                                     .control = &control };
    MtfRuleAnswer answer;
    assert_true(mtf_rule_search(graph, meshes, &options, &answer, NULL));
    assert_true(answer.stopped && !answer.found);
    assert_false(g_array_index(answer.by_mesh, MtfRuleMesh, 0).searched);
    mtf_rule_answer_clear(&answer);
}

/* A second ends before it begins: rules that need no search are known, with no more than is true. */
TEST(where_time_is_up_there_still_are_rules) {
    for (guint32 seed = 0; seed < 20; seed++) {
        g_autoptr(MtfGraph) graph = graph_of(seed);
        g_autoptr(GArray) meshes = mtf_test_meshes(mesh_text(seed));
        const MtfMesh *mesh = &g_array_index(meshes, MtfMesh, 0);
        MtfSearchControl control;
        mtf_search_control_init(&control, 1);
        control.deadline -= 2 * G_TIME_SPAN_SECOND;
        MtfRuleSearchOptions options = { .machine = machine,
                                         .memory_limit = INT64_MAX,
                                         .control = &control };
        MtfRuleAnswer answer;
        assert_true(mtf_rule_search(graph, meshes, &options, &answer, NULL));
        Exhaustion e = { .graph = graph, .mesh = mesh, .limit = INT64_MAX };
        exhaust(&e);
        assert_true(answer.stopped && answer.found);
        assert_true(mtf_rules_check(graph, mesh, answer.rules, NULL));
        assert_true(answer.cost >= e.cheapest && answer.bound <= e.cheapest);
        assert_int_equal(g_array_index(answer.by_mesh, MtfRuleMesh, 0).cost, answer.cost);
        mtf_rule_answer_clear(&answer);
    }
}

/* Every mesh tells what its own best rules cost. */
TEST(every_mesh_tells_its_own_optimum) {
    g_autoptr(MtfGraph) graph = graph_of(6);
    g_autoptr(GArray) meshes = mtf_mesh_shapes(12, 2);
    MtfRuleSearchOptions options = { .machine = machine, .memory_limit = INT64_MAX };
    MtfRuleAnswer answer;
    assert_true(mtf_rule_search(graph, meshes, &options, &answer, NULL));
    for (guint i = 0; i < meshes->len; i++) {
        Exhaustion e = { .graph = graph,
                         .mesh = &g_array_index(meshes, MtfMesh, i),
                         .limit = INT64_MAX };
        exhaust(&e);
        assert_true(g_array_index(answer.by_mesh, MtfRuleMesh, i).searched);
        assert_int_equal(g_array_index(answer.by_mesh, MtfRuleMesh, i).cost, e.cheapest);
    }
    mtf_rule_answer_clear(&answer);
}

/* Searches that share what rules cost find what each finds alone, under whatever limit and pins. */
TEST(shared_prices_change_no_answer) {
    g_autoptr(MtfGraph) graph = graph_of(6);
    g_autoptr(GArray) meshes = mtf_mesh_shapes(12, 2);
    g_autoptr(MtfRulePrices) prices = mtf_rule_prices_new(graph, NULL);
    g_autofree char *pin = g_strdup_printf("%s:cols", mtf_graph_dimension(graph, 0)->name);
    const char *const pins[] = { pin, NULL };
    const MtfRuleSearchOptions asked[] = {
        { .machine = machine, .memory_limit = INT64_MAX },
        { .machine = machine, .memory_limit = INT64_MAX, .pins = pins },
        { .machine = machine, .memory_limit = 1 },
        { .machine = machine, .memory_limit = INT64_MAX, .modelled = true },
    };
    for (gsize i = 0; i < G_N_ELEMENTS(asked); i++) {
        MtfRuleSearchOptions sharing = asked[i];
        sharing.prices = prices;
        MtfRuleAnswer alone, shared;
        assert_true(mtf_rule_search(graph, meshes, &asked[i], &alone, NULL));
        assert_true(mtf_rule_search(graph, meshes, &sharing, &shared, NULL));
        assert_int_equal(alone.found, shared.found);
        assert_int_equal(alone.cost, shared.cost);
        assert_int_equal(alone.bound, shared.bound);
        assert_int_equal(alone.arena_bytes, shared.arena_bytes);
        assert_true(mtf_mesh_equal(&alone.mesh, &shared.mesh));
        mtf_rule_answer_clear(&alone);
        mtf_rule_answer_clear(&shared);
    }
}

/* The tables, which are made or known, unless all rules cost more than may be. */
static const MtfRuleTables *priced_tables(MtfRulePrices *prices,
                                          const MtfRuleTablesOptions *options, bool in_order) {
    bool costs_more;
    const MtfRuleTables *tables = mtf_rule_prices_tables(prices, options, in_order, &costs_more);
    assert_true(costs_more == (tables == NULL));
    return tables;
}

/* A mesh laid in order is priced once, unless other axes are allowed. */
TEST(a_mesh_in_order_is_priced_once) {
    g_autoptr(MtfGraph) graph = graph_of(6);
    g_autoptr(GArray) meshes = mtf_test_meshes("rows:2;cols:2");
    const MtfMesh *mesh = &g_array_index(meshes, MtfMesh, 0);
    g_autoptr(MtfRulePrices) prices = mtf_rule_prices_new(graph, NULL);
    g_autofree unsigned *allowed = g_new(unsigned, graph->dimensions->len);
    MtfPricer pricer;
    assert_true(mtf_pricer_init(&pricer, machine, mesh, NULL));
    for (guint d = 0; d < graph->dimensions->len; d++)
        allowed[d] = 7;
    MtfRuleTablesOptions options = {
        .pricer = &pricer, .mesh = mesh, .allowed = allowed, .most = INT64_MAX
    };
    const MtfRuleTables *first = priced_tables(prices, &options, true);
    assert_ptr_equal(priced_tables(prices, &options, true), first);
    assert_ptr_not_equal(priced_tables(prices, &options, false), first);
    allowed[0] = 1;
    assert_ptr_not_equal(priced_tables(prices, &options, true), first);
    allowed[0] = 7;
    assert_ptr_equal(priced_tables(prices, &options, true), first);
}

/* Where no rules cost less than the least price of each operation, none are listed; but where more may be paid. */
TEST(a_mesh_that_costs_too_much_is_left) {
    g_autoptr(MtfGraph) graph = graph_of(6);
    g_autoptr(GArray) meshes = mtf_test_meshes("rows:2;cols:2");
    g_autoptr(MtfRulePrices) prices = mtf_rule_prices_new(graph, NULL);
    g_autofree unsigned *allowed = g_new(unsigned, graph->dimensions->len);
    MtfPricer pricer;
    MtfRuleTablesOptions options = {
        .pricer = &pricer, .mesh = &g_array_index(meshes, MtfMesh, 0), .allowed = allowed, .most = 0
    };
    assert_true(mtf_pricer_init(&pricer, machine, options.mesh, NULL));
    for (guint d = 0; d < graph->dimensions->len; d++)
        allowed[d] = 7;
    assert_null(priced_tables(prices, &options, true));
    assert_null(priced_tables(prices, &options, true));
    options.most = INT64_MAX;
    const MtfRuleTables *tables = priced_tables(prices, &options, true);
    assert_non_null(tables);
    assert_ptr_equal(priced_tables(prices, &options, true), tables);
}

/* Returns how many meshes were left: only those that cost so much more, and the answer is the same. */
static int compare_left(const MtfGraph *graph, const GArray *meshes, double wanted) {
    MtfRuleSearchOptions options = { .machine = machine, .memory_limit = INT64_MAX };
    MtfRuleAnswer all, some;
    int left = 0;
    assert_true(mtf_rule_search(graph, meshes, &options, &all, NULL));
    options.wanted = wanted;
    assert_true(mtf_rule_search(graph, meshes, &options, &some, NULL));
    assert_true(all.found && some.found && mtf_mesh_equal(&all.mesh, &some.mesh));
    assert_int_equal(all.cost, some.cost);
    assert_int_equal(all.bound, some.bound);
    for (guint i = 0; i < meshes->len; i++) {
        const MtfRuleMesh *mesh = &g_array_index(some.by_mesh, MtfRuleMesh, i);
        int64_t cost = g_array_index(all.by_mesh, MtfRuleMesh, i).cost;
        left += !mesh->searched;
        assert_true(mesh->searched ? mesh->cost == cost : (double)cost > wanted * (double)all.cost);
    }
    mtf_rule_answer_clear(&all);
    mtf_rule_answer_clear(&some);
    return left;
}

TEST(leaving_meshes_changes_no_answer) {
    g_autoptr(GArray) meshes = mtf_mesh_shapes(16, 2);
    for (guint32 seed = 0; seed < 60; seed++) {
        g_autoptr(MtfGraph) graph = graph_of(seed);
        compare_left(graph, meshes, seed % 2 == 0 ? 1 : 1.5);
    }
}

/* One dimension lies on one axis: of 16 processors 16 work on all:16, 8 on 2x8 and 8x2, 4 on 4x4. */
TEST(meshes_are_left_that_take_twice_as_long) {
    g_autoptr(GArray) meshes = mtf_mesh_shapes(16, 2);
    g_autoptr(MtfGraph) graph = mtf_test_graph(
        "{'meshtf_graph':1,'name':'t','dimensions':{'b':16777216},'inputs':[{'name':'x','dims':"
        "['b'],'feed':'features'}],'variables':[],'operations':[{'name':'y','op':'relu','inputs':"
        "['x']}]}");
    assert_int_equal(compare_left(graph, meshes, 1.5), meshes->len - 1);
    assert_int_equal(compare_left(graph, meshes, 3), 1);
    assert_int_equal(compare_left(graph, meshes, 5), 0);
}

/* The cheapest over several meshes is the least of their optima. */
TEST(the_best_of_all_meshes_is_found) {
    for (guint32 seed = 0; seed < 40; seed++) {
        g_autoptr(MtfGraph) graph = graph_of(3 * seed);
        g_autoptr(GArray) meshes = mtf_mesh_shapes(12, 2);
        int64_t best = INT64_MAX;
        for (guint i = 0; i < meshes->len; i++) {
            Exhaustion e = { .graph = graph,
                             .mesh = &g_array_index(meshes, MtfMesh, i),
                             .limit = INT64_MAX };
            exhaust(&e);
            best = MIN(best, e.cheapest);
        }
        MtfRuleSearchOptions options = { .machine = machine, .memory_limit = INT64_MAX };
        MtfRuleAnswer answer;
        assert_true(mtf_rule_search(graph, meshes, &options, &answer, NULL));
        assert_int_equal(answer.cost, best);
        assert_int_equal(answer.bound, best);
        mtf_rule_answer_clear(&answer);
    }
}

int main(void) {
    return mtf_tests_run(load_machine, free_machine);
}
