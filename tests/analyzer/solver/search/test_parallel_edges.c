// SPDX-License-Identifier: GPL-3.0-or-later
/* Two edges between the same pair are both paid, in layout problems and in graphs. Everything is
 * priced twice: by the program under test, and by the plainest loops over numbers that the test
 * keeps for itself, or by lowering every layout there is. */
#include "tests/support/cmocka.h"

#include "analyzer/free/free_problem.h"
#include "analyzer/solver/problem/layout_problem_json.h"
#include "analyzer/solver/reduce/core_values.h"
#include "analyzer/solver/search/layout_solve.h"
#include "layouts/program/program.h"
#include "tests/support/cases/parse_graph.h"

#include <string.h>

#define ROUNDS 3000
#define MOST_NODES 4
#define MOST_EDGES 8
#define MOST_VALUES 3
#define CELLS (MOST_VALUES * MOST_VALUES)

/* ---- Layout problems ------------------------------------------------------------------------- */

/* The test's own copy of a problem without memory. */
typedef struct {
    int nodes, edges;
    int values[MOST_NODES];
    int64_t costs[MOST_NODES][MOST_VALUES];
    int from[MOST_EDGES], to[MOST_EDGES];
    int64_t matrices[MOST_EDGES][CELLS]; /* [values of from][values of to] */
} Twin;

static int64_t random_cost(GRand *rand) {
    return g_rand_int_range(rand, 0, 8) == 0 ? MTF_IMPOSSIBLE : g_rand_int_range(rand, 0, 30);
}

/* Few pairs and many edges: one in two repeats the pair before, either way round. */
static void draw_edge(GRand *rand, Twin *twin) {
    int e = twin->edges++;
    if (e > 0 && g_rand_boolean(rand)) {
        bool turned = g_rand_boolean(rand);
        twin->from[e] = turned ? twin->to[e - 1] : twin->from[e - 1];
        twin->to[e] = turned ? twin->from[e - 1] : twin->to[e - 1];
    } else {
        twin->from[e] = g_rand_int_range(rand, 0, twin->nodes);
        twin->to[e] = (twin->from[e] + g_rand_int_range(rand, 1, twin->nodes)) % twin->nodes;
    }
    for (int i = 0; i < CELLS; i++)
        twin->matrices[e][i] = random_cost(rand);
}

static Twin draw_twin(GRand *rand) {
    Twin twin = { .nodes = g_rand_int_range(rand, 2, MOST_NODES + 1) };
    for (int v = 0; v < twin.nodes; v++) {
        twin.values[v] = g_rand_int_range(rand, 1, MOST_VALUES + 1);
        for (int s = 0; s < MOST_VALUES; s++)
            twin.costs[v][s] = g_rand_int_range(rand, 0, 20);
    }
    int edges = g_rand_int_range(rand, 1, MOST_EDGES + 1);
    while (twin.edges < edges)
        draw_edge(rand, &twin);
    return twin;
}

static MtfLayoutProblem *problem_of(const Twin *twin) {
    static const int64_t none[MOST_VALUES] = { 0 };
    MtfLayoutProblem *problem = mtf_layout_problem_new("parallel");
    for (int v = 0; v < twin->nodes; v++)
        mtf_layout_problem_add_node(problem,
                                    (MtfLayoutNode){ 0, 0, twin->values[v], twin->costs[v], none });
    for (int e = 0; e < twin->edges; e++)
        mtf_layout_problem_add_edge(
            problem, (MtfLayoutEdge){ twin->from[e], twin->to[e], twin->matrices[e] });
    return problem;
}

/* The sum over nodes and over each edge; -1 when a term is impossible. */
static int64_t price(const Twin *twin, const int *choice) {
    int64_t sum = 0;
    for (int v = 0; v < twin->nodes; v++)
        sum += twin->costs[v][choice[v]];
    for (int e = 0; e < twin->edges; e++) {
        int columns = twin->values[twin->to[e]];
        int64_t cost = twin->matrices[e][choice[twin->from[e]] * columns + choice[twin->to[e]]];
        if (cost >= MTF_IMPOSSIBLE)
            return -1;
        sum += cost;
    }
    return sum;
}

/* The next choice in counting order; false after the last. */
static bool count_up(const int *values, int nodes, int *choice) {
    for (int v = 0; v < nodes; v++) {
        if (++choice[v] < values[v])
            return true;
        choice[v] = 0;
    }
    return false;
}

/* -1 when every choice is impossible. */
static int64_t least_price(const Twin *twin) {
    int choice[MOST_NODES] = { 0 };
    int64_t least = -1;
    do {
        int64_t here = price(twin, choice);
        if (here >= 0 && (least < 0 || here < least))
            least = here;
    } while (count_up(twin->values, twin->nodes, choice));
    return least;
}

TEST(every_choice_pays_every_edge) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(1);
    for (int round = 0; round < ROUNDS / 10; round++) {
        Twin twin = draw_twin(rand);
        g_autoptr(MtfLayoutProblem) problem = problem_of(&twin);
        g_autoptr(MtfCore) core = mtf_core_new(problem);
        int choice[MOST_NODES] = { 0 };
        do {
            MtfLayoutValue value = mtf_layout_problem_evaluate(problem, choice);
            int64_t here = price(&twin, choice);
            assert_int_equal(value.impossible == 0, here >= 0);
            if (here < 0)
                continue;
            assert_true(value.cost == here);
            assert_int_equal(mtf_core_cost(core, choice), here);
        } while (count_up(twin.values, twin.nodes, choice));
        for (int u = 0; u < twin.nodes; u++)
            assert_true(core->nodes[u].edges->len < (guint)twin.nodes);
    }
}

TEST(shrinking_and_solving_pay_every_edge) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(2);
    int possible = 0;
    for (int round = 0; round < ROUNDS; round++) {
        Twin twin = draw_twin(rand);
        g_autoptr(MtfLayoutProblem) problem = problem_of(&twin);
        int64_t least = least_price(&twin);
        g_autoptr(MtfLayoutSolution) solution = mtf_layout_solve(problem, NULL, NULL, NULL);
        assert_int_equal(solution != NULL, least >= 0);
        if (solution == NULL)
            continue;
        possible++;
        assert_true(solution->cost == least && solution->bound == least);
        assert_int_equal(price(&twin, solution->choice), least);
    }
    assert_true(possible > ROUNDS / 2);
}

TEST(files_keep_every_edge) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(3);
    for (int round = 0; round < ROUNDS / 10; round++) {
        Twin twin = draw_twin(rand);
        g_autoptr(MtfLayoutProblem) problem = problem_of(&twin);
        g_autofree char *text = mtf_layout_problem_print(problem);
        g_autoptr(MtfLayoutProblem) read =
            mtf_layout_problem_parse("text", text, strlen(text), NULL);
        assert_non_null(read);
        int choice[MOST_NODES] = { 0 };
        do {
            MtfLayoutValue value = mtf_layout_problem_evaluate(read, choice);
            assert_true(value.impossible > 0 || value.cost == price(&twin, choice));
        } while (count_up(twin.values, twin.nodes, choice));
    }
}

/* ---- Graphs ---------------------------------------------------------------------------------- */

#define HEAD                                                              \
    "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'a': 96, 'b': 32},"  \
    " 'inputs': [{'name': 'x', 'dims': ['a', 'b'], 'feed': 'features'}]," \
    " 'variables': [{'name': 'r', 'dims': [], 'init': 'ones'}], 'operations': ["

/* Operations that read one tensor twice; the last graph has two tensors between one pair: the new
 * value and the new momentum that an update makes, which one operation reads both. */
static const char *const graphs[] = {
    HEAD " {'name': 'h', 'op': 'relu', 'inputs': ['x']},"
         " {'name': 's', 'op': 'einsum', 'inputs': ['h', 'h'], 'dims': ['b']}]}",
    HEAD " {'name': 'h', 'op': 'relu', 'inputs': ['x']},"
         " {'name': 's', 'op': 'add', 'inputs': ['h', 'h']}]}",
    HEAD " {'name': 's', 'op': 'einsum', 'inputs': ['x', 'x'], 'dims': ['a']}]}",
    HEAD " {'name': 'h', 'op': 'relu', 'inputs': ['x']},"
         " {'name': 's', 'op': 'multiply', 'inputs': ['h', 'h']},"
         " {'name': 't', 'op': 'einsum', 'inputs': ['s', 'h', 'h'], 'dims': ['b']}]}",
    HEAD " {'name': 'm', 'op': 'momentum', 'inputs': ['x', 'x', 'x', 'r'], 'beta1': 0.9},"
         " {'name': 's', 'op': 'einsum', 'inputs': ['m', 'm/v'], 'dims': ['b']}]}",
};

/* The least price of any program: every choice of the problem is lowered and priced. */
static int64_t least_program(const MtfFreeProblem *free_problem, const MtfLayoutProblem *problem) {
    int n = mtf_layout_problem_node_count(problem);
    g_autofree int *choice = g_new0(int, n), *values = g_new(int, n);
    int64_t least = INT64_MAX;
    for (int v = 0; v < n; v++)
        values[v] = mtf_layout_problem_node(problem, v)->strategies;
    do {
        g_autoptr(MtfLayout) layout = mtf_free_problem_layout(free_problem, choice);
        g_autoptr(MtfProgram) program = mtf_lower(mtf_free_problem_graph(free_problem), layout);
        int64_t here = mtf_price_program(mtf_free_problem_pricer(free_problem), program);
        assert_true(mtf_layout_problem_evaluate(problem, choice).cost == here);
        least = MIN(least, here);
    } while (count_up(values, n, choice));
    return least;
}

static void check_graph(const char *text, const char *mesh_text) {
    GError *error = NULL;
    MtfMesh mesh;
    MtfPricer pricer;
    g_autoptr(MtfGraph) graph = mtf_test_graph(text);
    g_autoptr(MtfMachine) machine = mtf_machine_load("cpu-cluster", &error);
    assert_non_null(machine);
    assert_true(mtf_mesh_parse(mesh_text, 0, &mesh, NULL));
    assert_true(mtf_pricer_init(&pricer, machine, &mesh, &error));
    g_autoptr(MtfFreeProblem) free_problem =
        mtf_free_problem_new(graph, &mesh, &pricer, NULL, 0, &error);
    assert_non_null(free_problem);
    const MtfLayoutProblem *problem = mtf_free_problem_get(free_problem);
    int64_t least = least_program(free_problem, problem);
    g_autoptr(MtfLayoutSolution) solution = mtf_layout_solve(problem, NULL, NULL, NULL);
    assert_non_null(solution);
    assert_true(solution->cost == least && solution->bound == least);
}

/* Of every layout there is: its price is its program's, and the search finds the least. */
TEST(graphs_pay_every_use_of_a_tensor) {
    for (gsize i = 0; i < G_N_ELEMENTS(graphs); i++)
        check_graph(graphs[i], "r:2");
    check_graph(graphs[0], "r:2;c:2");
    check_graph(graphs[2], "r:2;c:3");
}
