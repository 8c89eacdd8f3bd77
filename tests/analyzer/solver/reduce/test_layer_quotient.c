// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/certificate/certificate_check.h"
#include "analyzer/solver/bounds/dual_ascent.h"
#include "analyzer/solver/bounds/message_passing.h"
#include "analyzer/solver/reduce/core_values.h"
#include "analyzer/solver/reduce/layer_quotient.h"
#include "analyzer/solver/search/layout_solve.h"

#include <math.h>
#include <string.h>

/* A network of equal layers: each is a ring of PLACES nodes; node p of a layer is joined with node
 * p of the next for the first LINKS places. Nothing in it folds away by elimination. */
#define PLACES 4
#define LINKS 3
#define STRATEGIES 3
#define STATES 81 /* STRATEGIES ^ PLACES */
#define CELLS (STRATEGIES * STRATEGIES)

typedef struct Layer {
    int64_t costs[PLACES][STRATEGIES], usages[PLACES][STRATEGIES];
    int64_t ring[PLACES][CELLS], links[LINKS][CELLS];
} Layer;

static Layer random_layer(GRand *rand) {
    Layer layer;
    for (int p = 0; p < PLACES; p++) {
        for (int s = 0; s < STRATEGIES; s++) {
            layer.costs[p][s] = g_rand_int_range(rand, 0, 50);
            layer.usages[p][s] = g_rand_int_range(rand, 0, 20);
        }
        for (int i = 0; i < CELLS; i++)
            layer.ring[p][i] = i % (STRATEGIES + 1) == 0 ? 0 : g_rand_int_range(rand, 1, 60);
    }
    for (int l = 0; l < LINKS; l++)
        for (int i = 0; i < CELLS; i++)
            layer.links[l][i] = i % (STRATEGIES + 1) == 0 ? 0 : g_rand_int_range(rand, 1, 60);
    return layer;
}

/* Memory of a layer lasts until its mirror image in time, as activations do. */
static MtfLayoutProblem *network(const Layer *layer, int layers) {
    MtfLayoutProblem *problem = mtf_layout_problem_new("network");
    for (int n = 0; n < layers * PLACES; n++)
        mtf_layout_problem_add_node(problem, (MtfLayoutNode){ n / PLACES, 2 * layers - n / PLACES,
                                                              STRATEGIES, layer->costs[n % PLACES],
                                                              layer->usages[n % PLACES] });
    for (int n = 0; n < layers * PLACES; n++) {
        int place = n % PLACES, first = n - place;
        MtfLayoutEdge ring = { n, first + (place + 1) % PLACES, layer->ring[place] };
        mtf_layout_problem_add_edge(problem, ring);
        if (place < LINKS && n + PLACES < layers * PLACES)
            mtf_layout_problem_add_edge(problem,
                                        (MtfLayoutEdge){ n, n + PLACES, layer->links[place] });
    }
    return problem;
}

static int digit(int state, int place) {
    for (; place > 0; place--)
        state /= STRATEGIES;
    return state % STRATEGIES;
}

static int64_t cost_within(const Layer *layer, int state) {
    int64_t sum = 0;
    for (int p = 0; p < PLACES; p++)
        sum += layer->costs[p][digit(state, p)] +
               layer->ring[p][digit(state, p) * STRATEGIES + digit(state, (p + 1) % PLACES)];
    return sum;
}

static int64_t cost_between(const Layer *layer, int before, int after) {
    int64_t sum = 0;
    for (int l = 0; l < LINKS; l++)
        sum += layer->links[l][digit(before, l) * STRATEGIES + digit(after, l)];
    return sum;
}

/* The naive twin: the least cost without a limit, layer by layer over all states of a layer. */
static int64_t least_cost(const Layer *layer, int layers) {
    int64_t best[STATES], next[STATES];
    for (int s = 0; s < STATES; s++)
        best[s] = cost_within(layer, s);
    for (int at = 1; at < layers; at++) {
        for (int s = 0; s < STATES; s++) {
            next[s] = INT64_MAX;
            for (int r = 0; r < STATES; r++)
                next[s] = MIN(next[s], best[r] + cost_between(layer, r, s));
            next[s] += cost_within(layer, s);
        }
        memcpy(best, next, sizeof best);
    }
    int64_t least = INT64_MAX;
    for (int s = 0; s < STATES; s++)
        least = MIN(least, best[s]);
    return least;
}

TEST(every_node_and_edge_has_one_that_stands_for_it) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(1);
    for (int round = 0; round < 50; round++) {
        Layer layer = random_layer(rand);
        int layers = g_rand_int_range(rand, 24, 60);
        g_autoptr(MtfLayoutProblem) problem = network(&layer, layers);
        mtf_layout_problem_set_limit(problem, 1000);
        g_autoptr(MtfCore) core = mtf_core_new(problem);
        g_autoptr(MtfLayerQuotient) quotient = mtf_layer_quotient_new(core);
        assert_non_null(quotient);
        assert_true(mtf_core_size(quotient->core).nodes < 20 * PLACES);
        for (int v = 0; v < core->node_count; v++) {
            assert_true(quotient->core->nodes[quotient->node[v]].alive);
            assert_ptr_equal(quotient->core->nodes[quotient->node[v]].cost, core->nodes[v].cost);
            assert_int_equal(quotient->node[v] % PLACES, v % PLACES);
        }
        for (int e = 0; e < (int)core->edges->len; e++) {
            const MtfCoreEdge *whole = mtf_core_edge(core, e);
            const MtfCoreEdge *folded = mtf_core_edge(quotient->core, quotient->edge[e]);
            assert_ptr_equal(folded->cost, whole->cost);
            assert_int_equal(folded->a % PLACES, whole->a % PLACES);
            assert_int_equal(folded->b % PLACES, whole->b % PLACES);
            int reach = whole->b / PLACES - whole->a / PLACES;
            int glued = reach + quotient->layers - quotient->kept;
            int found = folded->b / PLACES - folded->a / PLACES;
            assert_true(found == reach || (reach > 0 && found == glued));
        }
    }
}

TEST(copies_are_listed_once_each) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(2);
    Layer layer = random_layer(rand);
    g_autoptr(MtfLayoutProblem) problem = network(&layer, 40);
    g_autoptr(MtfCore) core = mtf_core_new(problem);
    g_autoptr(MtfLayerQuotient) quotient = mtf_layer_quotient_new(core);
    assert_non_null(quotient);
    int edges = 0, listed[40 * PLACES] = { 0 };
    for (guint e = 0; e < quotient->core->edges->len; e++)
        edges += quotient->edge_copies[e];
    assert_int_equal(edges, mtf_core_size(core).edges);
    for (int i = 0; i < 40 * PLACES; i++)
        listed[quotient->copies[i]]++;
    for (int i = 0; i < 40 * PLACES; i++)
        assert_int_equal(listed[i], 1);
    assert_int_equal(quotient->first_copy[40 * PLACES], 40 * PLACES);
}

/* Layers 4 … 15 have more nodes than the others, as those have where memory binds: with the 24 of their 120
 * nodes that only they have they would be the ones that look alike the most. */
TEST(the_layers_that_most_nodes_are_of_are_found) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(9);
    Layer layer = random_layer(rand), others[6];
    g_autoptr(MtfLayoutProblem) problem = network(&layer, 120);
    for (int i = 0; i < 6; i++)
        others[i] = random_layer(rand);
    for (int n = 4 * PLACES; n < 16 * PLACES; n++)
        for (int i = 0; i < 6; i++) {
            int more = mtf_layout_problem_add_node(
                problem, (MtfLayoutNode){ 0, 0, STRATEGIES, others[i].costs[n % PLACES],
                                          others[i].usages[n % PLACES] });
            mtf_layout_problem_add_edge(problem,
                                        (MtfLayoutEdge){ n, more, others[i].ring[n % PLACES] });
        }
    g_autoptr(MtfCore) core = mtf_core_new(problem);
    g_autoptr(MtfLayerQuotient) quotient = mtf_layer_quotient_new(core);
    assert_non_null(quotient);
    assert_true(quotient->layers > 90 && quotient->layers <= 104);
}

TEST(a_network_without_layers_has_no_quotient) {
    g_autoptr(MtfLayoutProblem) problem = mtf_layout_problem_new("different");
    for (int v = 0; v < 40; v++) {
        int64_t costs[] = { v, 2 * v }, usages[] = { 0, 0 };
        mtf_layout_problem_add_node(problem, (MtfLayoutNode){ 0, 0, 2, costs, usages });
        if (v > 0)
            mtf_layout_problem_add_edge(problem,
                                        (MtfLayoutEdge){ v - 1, v, (int64_t[]){ 0, v, 2, 0 } });
    }
    g_autoptr(MtfCore) core = mtf_core_new(problem);
    assert_null(mtf_layer_quotient_new(core));
}

/* Messages from the quotient, at any prices, give a bound of the whole network. */
TEST(expanded_messages_bound_the_whole) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(3);
    for (int round = 0; round < 100; round++) {
        Layer layer = random_layer(rand);
        int layers = g_rand_int_range(rand, 20, 50);
        int64_t optimum = least_cost(&layer, layers);
        g_autoptr(MtfLayoutProblem) problem = network(&layer, layers);
        g_autoptr(MtfCore) core = mtf_core_new(problem);
        g_autoptr(MtfLayerQuotient) quotient = mtf_layer_quotient_new(core);
        assert_non_null(quotient);
        g_autoptr(MtfMessages) folded = mtf_messages_new_of_quotient(quotient);
        g_autoptr(MtfMessages) messages = mtf_messages_new(core);
        g_autoptr(MtfMessages) cold = mtf_messages_new(core);
        double guess = 0;
        for (int pass = 0; pass < 30; pass++)
            guess = mtf_messages_pass(folded);
        mtf_messages_expand(messages, folded);
        double bound = mtf_messages_pass(messages);
        assert_true(bound <= (double)optimum + 1e-6);
        assert_true(bound >= guess - 0.02 * (double)optimum);
        assert_true(bound >= mtf_messages_pass(cold) - 1e-6);
    }
}

/* Folded cost equals unfolded cost, from 12 to 384 layers. */
TEST(any_number_of_layers_is_solved_to_its_optimum) {
    static const int layers[] = { 12, 24, 48, 96, 192, 384 };
    g_autoptr(GRand) rand = g_rand_new_with_seed(4);
    Layer layer = random_layer(rand);
    for (gsize i = 0; i < G_N_ELEMENTS(layers); i++) {
        g_autoptr(MtfLayoutProblem) problem = network(&layer, layers[i]);
        MtfSolveOptions options = { .work = 60, .gap = 0.001 };
        g_autoptr(MtfLayoutSolution) solution = mtf_layout_solve(problem, &options, NULL, NULL);
        assert_non_null(solution);
        int64_t optimum = least_cost(&layer, layers[i]);
        assert_true(solution->cost == optimum);
        assert_true(solution->bound <= optimum);
        assert_true(solution->gap < 0.01);
    }
}

/* Under a limit that the best choice breaks by half, the layers differ; the answer is legal, its
 * bound is above the optimum without a limit, and both are near each other. */
TEST(a_limit_that_splits_the_layers_is_met) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(5);
    for (int round = 0; round < 6; round++) {
        Layer layer = random_layer(rand);
        MtfSolveOptions options = { .work = 60, .gap = 0.002 };
        g_autoptr(MtfLayoutProblem) problem = network(&layer, 64);
        g_autoptr(MtfLayoutSolution) loose = mtf_layout_solve(problem, &options, NULL, NULL);
        MtfLayoutValue value = mtf_layout_problem_evaluate(problem, loose->choice);
        int64_t least = 0;
        for (int p = 0; p < PLACES; p++)
            least += 64 * MIN(MIN(layer.usages[p][0], layer.usages[p][1]), layer.usages[p][2]);
        mtf_layout_problem_set_limit(problem, (least + (int64_t)value.peak) / 2);
        g_autoptr(MtfLayoutSolution) tight = mtf_layout_solve(problem, &options, NULL, NULL);
        assert_non_null(tight);
        value = mtf_layout_problem_evaluate(problem, tight->choice);
        assert_true(mtf_layout_problem_allows(problem, &value));
        assert_true(value.cost == tight->cost);
        assert_true(tight->cost >= loose->bound && tight->bound <= tight->cost);
        assert_true(tight->gap < 0.01);
    }
}

/* Choices of the tied core lift to choices of the problem that are alike in every layer, cost the same
 * and use the same memory. */
TEST(tied_layers_cost_what_alike_layers_cost) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(6);
    for (int round = 0; round < 40; round++) {
        Layer layer = random_layer(rand);
        int layers = g_rand_int_range(rand, 20, 50);
        g_autoptr(MtfLayoutProblem) problem = network(&layer, layers);
        mtf_layout_problem_set_limit(problem, 100000);
        g_autoptr(MtfCore) core = mtf_core_new(problem);
        g_autofree int *leader = mtf_layer_leaders(core, 8);
        assert_non_null(leader);
        g_autoptr(MtfCore) tied = mtf_core_tie(core, leader);
        assert_true(mtf_core_size(tied).nodes < core->node_count / 2);
        g_autofree int *values = g_new0(int, core->node_count);
        g_autofree int *choice = g_new0(int, core->node_count);
        for (int v = 0; v < core->node_count; v++)
            values[v] = g_rand_int_range(rand, 0, STRATEGIES);
        mtf_core_lift(tied, values, choice);
        for (int v = 0; v < core->node_count; v++) {
            assert_int_equal(choice[v], choice[leader[v]]);
            assert_int_equal(leader[v] % PLACES, v % PLACES);
        }
        MtfLayoutValue value = mtf_layout_problem_evaluate(problem, choice);
        assert_true(value.cost == mtf_core_cost(tied, values));
        g_autofree int64_t *use = g_new(int64_t, tied->rows + 1);
        int64_t peak = 0;
        mtf_core_use(tied, values, use);
        for (int r = 0; r < tied->rows; r++)
            peak = MAX(peak, use[r]);
        assert_true(value.peak == peak);
    }
}

/* A draft of a deep network is the best choice with equal layers, whose middle nothing tells apart. */
TEST(a_draft_has_alike_layers) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(7);
    Layer layer = random_layer(rand);
    g_autoptr(MtfLayoutProblem) problem = network(&layer, 200);
    MtfSolveOptions options = { .work = 60, .gap = 0.002, .draft = true };
    g_autoptr(MtfLayoutSolution) draft = mtf_layout_solve(problem, &options, NULL, NULL);
    assert_non_null(draft);
    for (int v = 20 * PLACES; v < 180 * PLACES; v++)
        assert_int_equal(draft->choice[v], draft->choice[v % PLACES + 100 * PLACES]);
    assert_true(draft->cost >= least_cost(&layer, 200));
}

/* What a draft leaves spares its proof a second look at alike layers, and changes nothing. */
TEST(the_proof_of_a_draft_is_as_if_there_had_been_none) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(8);
    Layer layer = random_layer(rand);
    g_autoptr(MtfLayoutProblem) problem = network(&layer, 200);
    MtfSolveOptions options = { .work = 60, .gap = 0.002, .draft = true };
    g_autoptr(MtfLayoutSolution) draft = mtf_layout_solve(problem, &options, NULL, NULL);
    assert_non_null(draft->prices);
    options.draft = false;
    options.start = draft->choice;
    g_autoptr(MtfLayoutSolution) anew = mtf_layout_solve(problem, &options, NULL, NULL);
    options.prices = draft->prices;
    g_autoptr(MtfLayoutSolution) proof = mtf_layout_solve(problem, &options, NULL, NULL);
    assert_true(proof->cost == anew->cost && proof->bound == anew->bound);
    assert_true(proof->bound > 0 && proof->bound <= least_cost(&layer, 200));
}

#define GUESS_STEPS 80

static double guess_of(MtfDual *dual, int *values) {
    for (int i = 0; i < GUESS_STEPS; i++)
        mtf_dual_step(dual, values);
    return mtf_dual_guess(dual);
}

/* Layers with a chord that wants what the ring does not, in triangles, and nine tenths of the memory that they take. */
static MtfLayoutProblem *network_with_chords(GRand *rand, int layers) {
    Layer layer = random_layer(rand);
    MtfLayoutProblem *problem = network(&layer, layers);
    int64_t chord[CELLS];
    for (int i = 0; i < CELLS; i++)
        chord[i] = i % (STRATEGIES + 1) == 0 ? 60 : g_rand_int_range(rand, 0, 30);
    for (int first = 0; first < layers * PLACES; first += PLACES)
        mtf_layout_problem_add_edge(problem, (MtfLayoutEdge){ first, first + 2, chord });
    MtfSolveOptions options = { .work = 30, .gap = 0.002 };
    g_autoptr(MtfLayoutSolution) loose = mtf_layout_solve(problem, &options, NULL, NULL);
    MtfLayoutValue value = mtf_layout_problem_evaluate(problem, loose->choice);
    mtf_layout_problem_set_limit(problem, (int64_t)value.peak * 9 / 10);
    return problem;
}

/* Their pairs are joined in all layers, whose quotient has a better guess then, and what its messages prove of the whole is
 * a bound. */
TEST(alike_pairs_raise_the_bound_of_all_layers) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(10);
    int better = 0, layers = 40;
    for (int round = 0; round < 20; round++) {
        g_autoptr(MtfLayoutProblem) problem = network_with_chords(rand, layers);
        MtfSolveOptions options = { .work = 30, .gap = 0.002 };
        g_autoptr(MtfLayoutSolution) solution = mtf_layout_solve(problem, &options, NULL, NULL);
        if (solution == NULL)
            continue;
        g_autoptr(MtfCore) core = mtf_core_new(problem);
        g_autofree int *values = g_new0(int, core->node_count + 1);
        g_autoptr(MtfDual) dual = mtf_dual_new(core);
        assert_true(mtf_dual_quotient(dual));
        double guess = guess_of(dual, values);
        int nodes = (int)mtf_core_size(core).nodes;
        if (!mtf_dual_pair_alike(dual, 1e6, 20, NULL))
            continue;
        assert_true(mtf_core_size(core).nodes <= nodes - layers + 8);
        double closer = guess_of(dual, values);
        assert_true(closer >= guess - 1e-3 * fabs(guess));
        better += closer > guess + 1e-6 * fabs(guess);
        mtf_dual_expand(dual);
        mtf_dual_step(dual, values);
        int64_t proven = mtf_dual_prove(dual);
        assert_true(proven <= solution->cost);
        assert_true((double)proven >= guess - 0.05 * fabs(guess));
    }
    assert_true(better > 10);
}

static int count_lines(const char *text, const char *word) {
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    int count = 0;
    for (char **line = lines; *line != NULL; line++)
        count += g_str_has_prefix(*line, word);
    return count;
}

/* Joined alike, before anything is pruned, they are in the certificate, which proves the bound. */
TEST(alike_pairs_are_certified) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(11);
    int joined = 0, layers = 40;
    for (int round = 0; round < 10; round++) {
        g_autoptr(MtfLayoutProblem) problem = network_with_chords(rand, layers);
        g_autoptr(MtfCertificate) certificate = mtf_certificate_new();
        MtfSolveOptions options = { .work = 2, .gap = 0.001, .certificate = certificate };
        g_autoptr(MtfLayoutSolution) solution = mtf_layout_solve(problem, &options, NULL, NULL);
        if (solution == NULL)
            continue;
        const char *text = mtf_certificate_text(certificate);
        MtfProven proven;
        assert_true(mtf_certificate_check(problem, text, &proven, NULL));
        assert_true(proven.has_bound && proven.bound == solution->bound);
        joined += count_lines(text, "join ") >= layers - 8;
    }
    assert_true(joined > 5);
}
