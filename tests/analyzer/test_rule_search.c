// SPDX-License-Identifier: GPL-3.0-or-later
// seconds: 300
#include "tests/support/cmocka.h"

#include "analyzer/mesh_shapes.h"
#include "analyzer/rule_search.h"
#include "analyzer/rule_search_program.h"
#include "cost/arena.h"
#include "tests/support/random_graph.h"

#include <string.h>

static MtfMachine *machine;

static int load_machine(void **state) {
    (void)state;
    machine = mtf_machine_load("tpu-v2", NULL);
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

static GArray *one_mesh(const char *text) {
    MtfMesh mesh;
    GArray *meshes = g_array_new(FALSE, TRUE, sizeof(MtfMesh));
    assert_true(mtf_mesh_parse(text, 0, &mesh, NULL));
    g_array_append_val(meshes, mesh);
    return meshes;
}

static const char *mesh_text(guint32 seed) {
    static const char *const texts[] = { "a:2;b:3", "a:4", "a:2;b:2", "a:5", "a:8;b:4", "a:3" };
    return texts[seed % G_N_ELEMENTS(texts)];
}

/* 1500 graphs, meshes of one and two axes. */
static void the_optimum_is_that_of_exhaustive_enumeration(void **state) {
    (void)state;
    for (guint32 seed = 0; seed < 1500; seed++) {
        g_autoptr(MtfGraph) graph = graph_of(seed);
        g_autoptr(GArray) meshes = one_mesh(mesh_text(seed));
        MtfRuleSearchOptions options = { .machine = machine, .memory_limit = INT64_MAX };
        MtfRuleAnswer answer;
        assert_true(mtf_rule_search(graph, meshes, &options, &answer, NULL));
        Exhaustion e = { .graph = graph,
                         .mesh = &g_array_index(meshes, MtfMesh, 0),
                         .limit = INT64_MAX };
        exhaust(&e);
        if (answer.cost != e.cheapest)
            print_message("seed %u\n", seed);
        assert_true(answer.found);
        assert_int_equal(answer.cost, e.cheapest);
        assert_true(answer.bound <= e.cheapest);
        assert_true(answer.bound >= e.cheapest - e.cheapest / 500000 - 1);
        mtf_rule_answer_clear(&answer);
    }
}

/* The limit is drawn between the smallest arena and that of the plain layout. */
static void under_a_memory_limit_the_answer_fits_and_is_the_cheapest_that_does(void **state) {
    (void)state;
    int bound_wrong = 0, tightened = 0;
    for (guint32 seed = 0; seed < 700; seed++) {
        g_autoptr(MtfGraph) graph = graph_of(seed);
        g_autoptr(GArray) meshes = one_mesh(mesh_text(seed));
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

static void when_nothing_fits_the_limit_that_would_do_is_real(void **state) {
    (void)state;
    for (guint32 seed = 0; seed < 200; seed++) {
        g_autoptr(MtfGraph) graph = graph_of(seed);
        g_autoptr(GArray) meshes = one_mesh(mesh_text(seed));
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

static void compare_tables(const MtfRules *rules, int64_t price, int64_t arena, void *user) {
    const MtfRuleTables *tables = user;
    int half_step;
    assert_int_equal(mtf_rule_tables_price(tables, rules), price);
    assert_true(mtf_rule_tables_memory(tables, rules, &half_step) <= arena);
}

/* Every assignment, not only the best: the sum over scopes is the program's price, and the memory
 * model stays below the arena. */
static void tables_price_every_assignment_exactly(void **state) {
    (void)state;
    for (guint32 seed = 2000; seed < 2200; seed++) {
        g_autoptr(MtfGraph) graph = graph_of(seed);
        g_autoptr(GArray) meshes = one_mesh(mesh_text(seed));
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
        g_autoptr(MtfRuleTables) tables =
            mtf_rule_tables_new(terms, &pricer, e.mesh, allowed, NULL, NULL);
        e.user = tables;
        exhaust(&e);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_price_every_assignment_exactly),
        cmocka_unit_test(the_optimum_is_that_of_exhaustive_enumeration),
        cmocka_unit_test(under_a_memory_limit_the_answer_fits_and_is_the_cheapest_that_does),
        cmocka_unit_test(when_nothing_fits_the_limit_that_would_do_is_real),
    };
    return cmocka_run_group_tests(tests, load_machine, free_machine);
}
