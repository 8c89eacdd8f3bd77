// SPDX-License-Identifier: GPL-3.0-or-later
/* Orders of instructions: what they are priced at, against programs lowered in them; those that are
 * found, against all there are. */
#include "tests/support/cmocka.h"

#include "analyzer/training/training_graph.h"
#include "cost/memory/arena.h"
#include "cost/price/schedule.h"
#include "cost/tune/order_bound.h"
#include "cost/tune/order_greedy.h"
#include "cost/tune/order_search.h"
#include "layouts/program/program_order.h"
#include "tests/support/cases/parse_graph.h"
#include "tests/support/cases/random_layout.h"
#include "tests/support/cases/random_order.h"
#include "tests/support/drawn/random_graph.h"
#include "tests/support/draws.h"

#include <string.h>

typedef struct {
    MtfGraph *graph;
    MtfLayout *layout;
    MtfProgram *program; /* in the order of the operations */
} Case;

/* A random training graph under a random free layout of `devices`; false where it has no gradient.
 */
static bool case_init(Case *c, guint32 seed, int operations, int devices) {
    MtfRandomGraph options = { .seed = seed,
                               .dimensions = 4,
                               .operations = operations,
                               .largest_size = 60,
                               .dtype = MTF_F32,
                               .composites = true };
    g_autoptr(MtfGraph) forward = mtf_random_graph(&options);
    g_autoptr(GRand) random = g_rand_new_with_seed(seed);
    MtfMesh mesh = mtf_random_mesh(random, devices);
    *c = (Case){ .graph = mtf_training_graph(forward, NULL) };
    if (c->graph == NULL)
        return false;
    c->layout = mtf_random_free_layout(random, c->graph, &mesh);
    c->program = mtf_lower_as_written(c->graph, c->layout);
    return true;
}

static void case_clear(Case *c) {
    mtf_program_free(c->program);
    mtf_layout_free(c->layout);
    mtf_graph_free(c->graph);
}

/* The case's program lowered in an order, which is copied. */
static MtfProgram *lower_in(const Case *c, const int *order) {
    g_autoptr(MtfLayout) layout = mtf_layout_copy(c->layout);
    int n = mtf_program_length(c->program);
    mtf_layout_set_order(layout, g_memdup2(order, (gsize)n * sizeof *order), n);
    MtfProgram *program = mtf_lower(c->graph, layout);
    program->layout = c->layout;
    return program;
}

static int64_t live_bytes(const Case *c, const int *order) {
    g_autoptr(MtfProgram) program = lower_in(c, order);
    return mtf_arena_lower_bound(program);
}

/* ---- The model ------------------------------------------------------------------------------- */

TEST(the_model_counts_what_lowering_makes_of_any_order) {
    g_autoptr(GRand) random = g_rand_new_with_seed(1);
    for (guint32 seed = 0; seed < (guint32)mtf_draws(60); seed++) {
        Case c;
        if (!case_init(&c, seed, 8, 4))
            continue;
        g_autoptr(MtfOrderModel) model = mtf_order_model_new(c.program);
        g_autoptr(MtfOrderReplay) replay = mtf_order_replay_new(model);
        for (int draw = 0; draw < 5; draw++) {
            g_autofree int *order = mtf_random_order(random, c.program);
            assert_true(mtf_order_check(c.program, order, NULL));
            mtf_order_replay(model, order, replay);
            assert_int_equal(replay->during[replay->peak], live_bytes(&c, order));
        }
        case_clear(&c);
    }
}

TEST(no_order_needs_less_at_an_instruction_than_its_bound) {
    g_autoptr(GRand) random = g_rand_new_with_seed(2);
    for (guint32 seed = 200; seed < 200 + (guint32)mtf_draws(40); seed++) {
        Case c;
        if (!case_init(&c, seed, 8, 4))
            continue;
        g_autoptr(MtfOrderModel) model = mtf_order_model_new(c.program);
        g_autoptr(MtfOrderReplay) replay = mtf_order_replay_new(model);
        for (int draw = 0; draw < 5; draw++) {
            g_autofree int *order = mtf_random_order(random, c.program);
            mtf_order_replay(model, order, replay);
            for (int p = 0; p < model->n; p++)
                assert_true(mtf_order_least(model, order[p]) <= replay->during[p]);
        }
        case_clear(&c);
    }
}

/* ---- Legal orders ---------------------------------------------------------------------------- */

TEST(two_instructions_may_change_places_where_neither_needs_the_other) {
    for (guint32 seed = 300; seed < 300 + (guint32)mtf_draws(40); seed++) {
        Case c;
        if (!case_init(&c, seed, 8, 4))
            continue;
        int n = mtf_program_length(c.program);
        g_autofree int *order = g_new(int, (gsize)n);
        for (int i = 0; i + 1 < n; i++) {
            for (int k = 0; k < n; k++)
                order[k] = k == i ? i + 1 : k == i + 1 ? i : k;
            bool legal = !mtf_must_follow(c.program, i, i + 1) &&
                         mtf_part_of_step(c.program, i) == mtf_part_of_step(c.program, i + 1);
            assert_int_equal(mtf_order_check(c.program, order, NULL), legal);
        }
        case_clear(&c);
    }
}

TEST(an_order_names_every_instruction_once) {
    Case c;
    assert_true(case_init(&c, 301, 8, 4));
    int n = mtf_program_length(c.program);
    g_autofree int *order = g_new(int, (gsize)n);
    for (int k = 0; k < n; k++)
        order[k] = k;
    assert_true(mtf_order_check(c.program, order, NULL));
    g_autoptr(GError) twice = NULL, outside = NULL;
    order[1] = 0;
    assert_false(mtf_order_check(c.program, order, &twice));
    assert_non_null(strstr(twice->message, "instruction 0 stands twice"));
    order[1] = n;
    assert_false(mtf_order_check(c.program, order, &outside));
    assert_non_null(strstr(outside->message, "is none of the program's"));
    case_clear(&c);
}

/* ---- The search against all orders ----------------------------------------------------------- */

#define MOST_ORDERS 1000

typedef struct {
    const Case *c;
    int n, n_orders;
    bool judged; /* else they are counted, which is soon done */
    int *order;
    bool *done;
    int64_t least;
} All;

/* Goes through all orders with `placed` instructions fixed; gives up after MOST_ORDERS. */
static void go_through(All *all, int placed) {
    const MtfProgram *program = all->c->program;
    if (all->n_orders > MOST_ORDERS)
        return;
    if (placed == all->n) {
        if (all->judged)
            all->least = MIN(all->least, live_bytes(all->c, all->order));
        all->n_orders++;
        return;
    }
    int first = 0;
    while (all->done[first])
        first++;
    for (int i = first; i < all->n; i++) {
        bool waits =
            all->done[i] || mtf_part_of_step(program, i) != mtf_part_of_step(program, first);
        for (int k = first; k < i && !waits; k++)
            waits = !all->done[k] && mtf_must_follow(program, k, i);
        if (waits)
            continue;
        all->done[i] = true;
        all->order[placed] = i;
        go_through(all, placed + 1);
        all->done[i] = false;
    }
}

/* The fewest live bytes of any order, or -1 where there are too many orders. */
static int64_t least_of_all_orders(const Case *c) {
    int n = mtf_program_length(c->program);
    All all = { .c = c,
                .n = n,
                .order = g_new0(int, (gsize)n + 1),
                .done = g_new0(bool, (gsize)n + 1),
                .least = INT64_MAX };
    go_through(&all, 0);
    all.judged = all.n_orders <= MOST_ORDERS;
    all.n_orders = all.judged ? 0 : all.n_orders;
    go_through(&all, 0);
    g_free(all.order);
    g_free(all.done);
    return all.n_orders <= MOST_ORDERS ? all.least : -1;
}

/* Forward graphs alone: those of training have too many orders to go through. */
static void forward_case(Case *c, guint32 seed, int operations, int devices) {
    MtfRandomGraph options = {
        .seed = seed, .dimensions = 4, .operations = operations, .largest_size = 60
    };
    g_autoptr(GRand) random = g_rand_new_with_seed(seed);
    MtfMesh mesh = mtf_random_mesh(random, devices);
    *c = (Case){ .graph = mtf_random_graph(&options) };
    c->layout = mtf_random_free_layout(random, c->graph, &mesh);
    c->program = mtf_lower_as_written(c->graph, c->layout);
}

TEST(small_programs_get_the_best_order_there_is) {
    int compared = 0, improved = 0;
    for (guint32 seed = 0; seed < 300; seed++) {
        Case c;
        forward_case(&c, seed, 3 + (int)(seed % 6), 1 + (int)(seed % 3));
        int64_t best = least_of_all_orders(&c), found;
        if (best >= 0) {
            g_autofree int *order = mtf_order_search(c.program, &found);
            assert_int_equal(found, best);
            assert_int_equal(order != NULL, best < mtf_arena_lower_bound(c.program));
            if (order != NULL)
                assert_int_equal(live_bytes(&c, order), best);
            compared++;
            improved += order != NULL;
        }
        case_clear(&c);
    }
    assert_true(compared >= 80);
    assert_true(improved >= 10);
}

TEST(orders_found_are_legal_and_as_low_as_said) {
    int improved = 0;
    for (guint32 seed = 545; seed < 557; seed++) {
        Case c;
        int64_t peak;
        if (!case_init(&c, seed, 20, 4))
            continue;
        g_autofree int *order = mtf_order_search(c.program, &peak);
        g_autofree int *again = mtf_order_search(c.program, NULL);
        if (order != NULL) {
            assert_true(mtf_order_check(c.program, order, NULL));
            assert_int_equal(live_bytes(&c, order), peak);
            assert_true(peak < mtf_arena_lower_bound(c.program));
            assert_memory_equal(order, again, sizeof(int) * (gsize)mtf_program_length(c.program));
            improved++;
        }
        case_clear(&c);
    }
    assert_true(improved >= 3);
}

/* ---- Branches -------------------------------------------------------------------------------- */

/* A graph of `n` branches x -> a[h] -> b[h] -> c[f] that add up to y, level by level. */
static MtfGraph *branches(int n) {
    g_autoptr(GString) text = g_string_new(
        "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'batch': 16, 'f': 16, 'h': 1024}, "
        "'inputs': [{'name': 'x', 'dims': ['batch', 'f'], 'feed': 'features'}], 'variables': [");
    for (int i = 0; i < n; i++)
        g_string_append_printf(text,
                               "%s{'name': 'w%d', 'dims': ['f', 'h'], 'init': 'ones'}, {'name': "
                               "'v%d', 'dims': ['h', 'f'], 'init': 'ones'}",
                               i > 0 ? ", " : "", i, i);
    g_string_append(text, "], 'operations': [");
    for (int i = 0; i < n; i++)
        g_string_append_printf(
            text,
            "{'name': 'a%d', 'op': 'einsum', 'inputs': ['x', 'w%d'], 'dims': ['batch', 'h']}, ", i,
            i);
    for (int i = 0; i < n; i++)
        g_string_append_printf(text, "{'name': 'b%d', 'op': 'relu', 'inputs': ['a%d']}, ", i, i);
    for (int i = 0; i < n; i++)
        g_string_append_printf(
            text,
            "{'name': 'c%d', 'op': 'einsum', 'inputs': ['b%d', 'v%d'], 'dims': ['batch', 'f']}, ",
            i, i, i);
    g_string_append(text, "{'name': 'y', 'op': 'add', 'inputs': [");
    for (int i = 0; i < n; i++)
        g_string_append_printf(text, "%s'c%d'", i > 0 ? ", " : "", i);
    g_string_append(text, "]}]}");
    return mtf_test_graph(text->str);
}

/* Inputs and variables: x of 1 KiB, and 2 x 64 KiB a branch. Level by level all of a is live, 64
 * KiB a branch; and when the last c is computed, the b before it, and n c of 1 KiB. Branch by
 * branch one b is live beside at most n c: while the last c is computed 64 + n KiB. */
TEST(branches_are_run_one_after_another) {
    enum { BRANCHES = 40 };
    const int64_t kib = 1024;
    Case c = { .graph = branches(BRANCHES) };
    MtfMesh mesh;
    int64_t peak;
    assert_true(mtf_mesh_parse("all:1", 0, &mesh, NULL));
    c.layout = mtf_layout_new(c.graph, &mesh);
    c.program = mtf_lower_as_written(c.graph, c.layout);
    int64_t always = kib + 128 * kib * BRANCHES;
    assert_int_equal(mtf_arena_lower_bound(c.program), always + 64 * kib * BRANCHES + kib);
    g_autofree int *order = mtf_order_search(c.program, &peak);
    assert_non_null(order);
    assert_int_equal(peak, always + 64 * kib + BRANCHES * kib);
    assert_int_equal(live_bytes(&c, order), peak);
    case_clear(&c);
}

TEST(a_greedy_order_is_given_up_when_it_weighs_too_much) {
    Case c;
    assert_true(case_init(&c, 500, 20, 4));
    g_autoptr(MtfOrderModel) model = mtf_order_model_new(c.program);
    g_autofree int *none = mtf_order_greedy(model, 3);
    g_autofree int *order = mtf_order_greedy(model, 1000000);
    assert_null(none);
    assert_true(mtf_order_check(c.program, order, NULL));
    case_clear(&c);
}

/* ---- Layouts --------------------------------------------------------------------------------- */

static int64_t step_of(const MtfPricer *pricer, const MtfProgram *program) {
    g_autoptr(MtfSchedule) schedule = mtf_schedule_new(pricer, program);
    return schedule->nanoseconds;
}

static int64_t arena_of(const MtfProgram *program) {
    g_autoptr(MtfArena) arena = mtf_arena_pack(program);
    assert_true(mtf_arena_check(program, arena, NULL));
    return arena->bytes;
}

static void assert_same_program(const MtfProgram *one, const MtfProgram *other) {
    g_autofree char *its = mtf_program_digest(one), *others = mtf_program_digest(other);
    assert_string_equal(its, others);
}

/* On a machine that overlaps: a smaller arena, and no longer a step unless the written order does
 * not fit. */
static void check_improvement(Case *c, const MtfMachine *machine, int *improved) {
    MtfPricer pricer;
    assert_true(mtf_pricer_init(&pricer, machine, &c->layout->mesh, NULL));
    g_autoptr(MtfProgram) standard = mtf_lower(c->graph, c->layout);
    int64_t written = arena_of(standard), step = step_of(&pricer, standard);
    int64_t limits[] = { INT64_MAX, written - 1 };
    for (int i = 0; i < 2; i++) {
        g_autoptr(MtfProgram) known = mtf_lower(c->graph, c->layout);
        bool better = mtf_layout_improve_order(c->graph, c->layout, &known, &pricer, limits[i]);
        assert_int_equal(better, c->layout->execution.order != NULL);
        g_autoptr(MtfProgram) program = mtf_lower(c->graph, c->layout);
        assert_same_program(known, program);
        assert_true(better ? arena_of(program) < written : arena_of(program) == written);
        assert_true(limits[i] < written || step_of(&pricer, program) <= step);
        improved[i] += better;
        mtf_layout_set_order(c->layout, NULL, 0);
    }
}

TEST(an_order_costs_no_time_unless_the_written_one_does_not_fit) {
    int improved[2] = { 0 };
    g_autoptr(MtfMachine) machine = mtf_machine_load("tpu-v2", NULL);
    assert_true(machine->overlap);
    for (guint32 seed = 545; seed < 557; seed++) {
        Case c;
        if (!case_init(&c, seed, 20, 4))
            continue;
        check_improvement(&c, machine, improved);
        case_clear(&c);
    }
    assert_true(improved[0] > 0);
    assert_true(improved[1] > improved[0]);
}
