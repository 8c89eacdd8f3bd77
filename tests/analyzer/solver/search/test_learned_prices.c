// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/solver/reduce/core_values.h"
#include "analyzer/solver/search/learned_prices.h"
#include "analyzer/solver/search/width_move.h"

#define NODES 2000
#define ROOM 150000 /* for half of them at 100, the others at 50 */
#define RIGHT 20.0
#define MOVES 9

/* Node i pays i + 1 to need 50 instead of 100: at a price P for each unit those below 50 P do. So half of them
 * do, which fits exactly, at 20. */
static MtfLayoutProblem *new_problem(void) {
    MtfLayoutProblem *problem = mtf_layout_problem_new("halves");
    for (int i = 0; i < NODES; i++) {
        int64_t costs[] = { 0, i + 1 }, usages[] = { 100, 50 };
        mtf_layout_problem_add_node(problem, (MtfLayoutNode){ 0, 1, 2, costs, usages });
    }
    mtf_layout_problem_set_limit(problem, ROOM);
    return problem;
}

typedef struct Case {
    MtfLayoutProblem *problem;
    MtfCore *core;
    MtfLearnedPrices *learned;
    GRand *rand;
    int values[NODES];
    double prices[1];
    int64_t use[1];
} Case;

static int setup(void **state) {
    Case *c = g_new0(Case, 1);
    c->problem = new_problem();
    c->core = mtf_core_new(c->problem);
    assert_int_equal(c->core->rows, 1);
    assert_int_equal(c->core->capacity[0], ROOM);
    c->learned = mtf_learned_prices_new(c->core);
    c->rand = g_rand_new_with_seed(5);
    *state = c;
    return 0;
}

static int teardown(void **state) {
    Case *c = *state;
    mtf_learned_prices_free(c->learned);
    mtf_core_free(c->core);
    mtf_layout_problem_free(c->problem);
    g_rand_free(c->rand);
    g_free(c);
    return 0;
}

/* One move, to the best at its prices; what it uses more than there is room for, as a share of that. */
static double move(Case *c) {
    mtf_width_move(c->core, c->rand, mtf_learned_prices_get(c->learned), 1e9, NULL, c->values);
    mtf_core_use(c->core, c->values, c->use);
    return (double)(c->use[0] - ROOM) / ROOM;
}

/* Moves of a try that begins at `price`, until its prices are right. */
static int moves_until_right(Case *c, double price) {
    c->prices[0] = price;
    mtf_learned_prices_begin(c->learned, c->prices, 1);
    for (int i = 1; i <= MOVES; i++) {
        move(c);
        if (mtf_learned_prices_learn(c->learned, c->values))
            return i;
    }
    return MOVES + 1;
}

TEST_WITH(prices_too_low_or_too_high_become_right, setup, teardown) {
    Case *c = *state;
    static const double shares[] = { 0.65, 1.35 };
    for (size_t i = 0; i < G_N_ELEMENTS(shares); i++) {
        g_autoptr(MtfLearnedPrices) fresh = mtf_learned_prices_new(c->core);
        MtfLearnedPrices *own = c->learned;
        c->learned = fresh;
        int moves = moves_until_right(c, shares[i] * RIGHT);
        c->learned = own;
        assert_true(moves > 1 && moves <= MOVES);
        assert_true(llabs(c->use[0] - ROOM) <= 50); /* one node more or less */
    }
}

/* Of what is told for all tries the next one is right at once. */
TEST_WITH(what_was_learned_stays, setup, teardown) {
    Case *c = *state;
    assert_true(moves_until_right(c, 0.65 * RIGHT) > 1);
    assert_int_equal(moves_until_right(c, 0.65 * RIGHT), 1);
}

/* Without what moves teach, all of them would be a ninth overfull. */
TEST_WITH(the_price_alone_does_not_fit, setup, teardown) {
    Case *c = *state;
    c->prices[0] = 0.65 * RIGHT;
    for (int i = 0; i < MOVES; i++) {
        mtf_learned_prices_begin(c->learned, c->prices, 1);
        assert_true(move(c) > 0.11);
    }
    assert_false(mtf_learned_prices_learn(c->learned, c->values));
}
