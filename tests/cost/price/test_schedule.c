// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "cost/price/schedule.h"
#include "layouts/placement/rules.h"
#include "tests/support/cases/random_layout.h"
#include "tests/support/drawn/random_graph.h"

typedef struct {
    MtfGraph *graph;
    MtfMachine *machine;
    MtfLayout *layout;
    MtfProgram *program;
    MtfPricer pricer;
} Case;

static void clear_case(Case *c) {
    mtf_program_free(c->program);
    mtf_layout_free(c->layout);
    mtf_machine_free(c->machine);
    mtf_graph_free(c->graph);
}

/* Takes the graph and the layout. */
static void finish_case(Case *c, bool overlap) {
    c->machine = mtf_machine_load("tpu-v2", NULL);
    c->machine->overlap = overlap;
    c->program = mtf_lower(c->graph, c->layout);
    assert_true(mtf_pricer_init(&c->pricer, c->machine, &c->layout->mesh, NULL));
}

/* A random graph under a random free layout on 2 x 2 processors. */
static Case random_case(guint32 seed, bool overlap) {
    MtfRandomGraph options = {
        .seed = seed, .dimensions = 4, .operations = 12, .largest_size = 9, .dtype = MTF_F32
    };
    Case c = { .graph = mtf_random_graph(&options) };
    MtfMesh mesh;
    assert_true(mtf_mesh_parse("a:2;b:2", 0, &mesh, NULL));
    g_autoptr(GRand) rand = g_rand_new_with_seed(seed);
    c.layout = mtf_random_free_layout(rand, c.graph, &mesh);
    c.layout->execution.bucket_bytes = seed % 3 * 1000;
    finish_case(&c, overlap);
    return c;
}

/* The least any schedule takes: all kernels one after the other, or all collectives that share a
 * link. */
static int64_t lower_bound(const Case *c, const MtfSchedule *schedule) {
    int64_t busy[MTF_NETWORK_AXES_MAX] = { 0 }, least = schedule->compute;
    for (int i = 0; i < schedule->length; i++) {
        const MtfInstruction *instruction = mtf_program_instruction(c->program, i);
        MtfCollectiveKind kind;
        if (!mtf_instruction_collective_kind(instruction, &kind))
            continue;
        unsigned links = mtf_mesh_map_links(&c->pricer.map, instruction->reshard.axes);
        for (int d = 0; d < MTF_NETWORK_AXES_MAX; d++)
            if (links >> d & 1)
                busy[d] += schedule->ends[i] - schedule->starts[i];
    }
    for (int d = 0; d < MTF_NETWORK_AXES_MAX; d++)
        least = MAX(least, busy[d]);
    return least;
}

TEST(schedules_are_legal_and_between_their_bounds) {
    int64_t hidden = 0;
    for (guint32 seed = 0; seed < 200; seed++) {
        Case c = random_case(seed, true);
        g_autoptr(MtfSchedule) schedule = mtf_schedule_new(&c.pricer, c.program);
        GError *error = NULL;
        if (!mtf_schedule_check(&c.pricer, c.program, schedule, &error))
            fail_msg("seed %u: %s", seed, error->message);
        assert_int_equal(schedule->compute + schedule->transfers,
                         mtf_price_program(&c.pricer, c.program));
        assert_true(schedule->nanoseconds <= schedule->compute + schedule->transfers);
        assert_true(schedule->nanoseconds >= lower_bound(&c, schedule));
        assert_int_equal(schedule->exposed, schedule->nanoseconds - schedule->compute);
        hidden += schedule->transfers - schedule->exposed;
        clear_case(&c);
    }
    assert_true(hidden > 0);
}

TEST(without_overlap_the_step_is_the_sum) {
    for (guint32 seed = 0; seed < 50; seed++) {
        Case c = random_case(seed, false);
        g_autoptr(MtfSchedule) schedule = mtf_schedule_new(&c.pricer, c.program);
        assert_int_equal(schedule->nanoseconds, mtf_price_program(&c.pricer, c.program));
        assert_int_equal(schedule->exposed, schedule->transfers);
        assert_true(mtf_schedule_check(&c.pricer, c.program, schedule, NULL));
        clear_case(&c);
    }
}

/* Each kind of fault put into a legal schedule. */
TEST(the_checker_sees_what_is_wrong) {
    for (guint32 seed = 0; seed < 20; seed++) {
        Case c = random_case(seed, true);
        g_autoptr(MtfSchedule) schedule = mtf_schedule_new(&c.pricer, c.program);
        int last = schedule->length - 1;
        schedule->ends[last]++;
        assert_false(mtf_schedule_check(&c.pricer, c.program, schedule, NULL));
        schedule->ends[last]--;
        int64_t shift = schedule->starts[last] + 1;
        schedule->starts[last] -= shift;
        schedule->ends[last] -= shift;
        assert_false(mtf_schedule_check(&c.pricer, c.program, schedule, NULL));
        schedule->starts[last] += shift;
        schedule->ends[last] += shift;
        assert_true(mtf_schedule_check(&c.pricer, c.program, schedule, NULL));
        /* What runs at once is wrong on a machine that cannot. */
        c.machine->overlap = false;
        assert_true(schedule->exposed == schedule->transfers ||
                    !mtf_schedule_check(&c.pricer, c.program, schedule, NULL));
        clear_case(&c);
    }
}

/* y = x w and z = x v of 4096 x 1024 x 1024, where x w is partial and kept whole: its allreduce and
 * the other product need nothing of each other. */
static MtfGraph *two_products(void) {
    MtfGraph *graph = mtf_graph_new("two");
    static const char *const names[] = { "r", "k", "n", "p" };
    static const int64_t sizes[] = { 4096, 1024, 1024, 1024 };
    for (int d = 0; d < 4; d++)
        mtf_graph_add_dimension(graph, names[d], sizes[d], NULL);
    MtfShape x_shape = { .rank = 2, .dims = { 0, 1 } };
    int x = mtf_graph_add_input(graph, "x", &x_shape, MTF_F32, MTF_FEED_FEATURES, NULL);
    for (int d = 2; d < 4; d++) {
        MtfShape w_shape = { .rank = 2, .dims = { 1, d } },
                 y_shape = { .rank = 2, .dims = { 0, d } };
        int w = mtf_graph_add_input(graph, d == 2 ? "w" : "v", &w_shape, MTF_F32, MTF_FEED_FEATURES,
                                    NULL);
        MtfNewOperation product = { .name = d == 2 ? "y" : "z",
                                    .kind = MTF_OP_EINSUM,
                                    .n_inputs = 2,
                                    .inputs = (int[]){ x, w },
                                    .shape = &y_shape,
                                    .attributes = MTF_NO_ATTRIBUTES };
        mtf_graph_add_operation(graph, &product, NULL);
    }
    return graph;
}

TEST(an_allreduce_hides_behind_a_product_that_needs_it_not) {
    Case c = { .graph = two_products() };
    MtfMesh mesh;
    assert_true(mtf_mesh_parse("a:4", 0, &mesh, NULL));
    g_autoptr(MtfRules) rules = mtf_rules_parse(c.graph, &mesh, "k:a", NULL, NULL);
    c.layout = mtf_layout_from_rules(c.graph, &mesh, rules);
    finish_case(&c, true);
    assert_int_equal(mtf_program_length(c.program), 4); /* y, its allreduce, z, its allreduce */
    g_autoptr(MtfSchedule) s = mtf_schedule_new(&c.pricer, c.program);
    assert_int_equal(s->starts[1], s->ends[0]);
    assert_int_equal(s->starts[2], s->ends[0]);
    assert_int_equal(s->starts[3], MAX(s->ends[2], s->ends[1]));
    assert_int_equal(s->nanoseconds, s->ends[3]);
    clear_case(&c);
}

/* With messages hidden whole, kernels lose half of the time that gradients travel beside them: the step
 * grows, and never beyond the sum. */
TEST(kernels_lose_time_to_messages_beside_them) {
    int grew = 0;
    for (guint32 seed = 1; seed <= 50; seed++) {
        Case c = random_case(seed, true);
        c.machine->software = mtf_software_load("megatron-core", NULL);
        c.machine->software->host_seconds = c.machine->software->host_collective_seconds = 0;
        for (int i = 0; i < MTF_HIDDENS; i++)
            c.machine->software->hidden[i] = 1;
        c.machine->software->contention = 0;
        MtfSchedule *free = mtf_schedule_new(&c.pricer, c.program);
        c.machine->software->contention = 0.5;
        MtfSchedule *slowed = mtf_schedule_new(&c.pricer, c.program);
        assert_true(mtf_schedule_check(&c.pricer, c.program, slowed, NULL));
        assert_true(slowed->nanoseconds >= free->nanoseconds);
        grew += slowed->nanoseconds > free->nanoseconds;
        mtf_schedule_free(free);
        mtf_schedule_free(slowed);
        clear_case(&c);
    }
    assert_true(grew > 5);
}

/* On a network of long hops sums of activations last longer than all kernels; a profile that hides them whole hides
 * no more than those take. */
TEST(no_more_is_hidden_than_kernels_take) {
    int capped = 0;
    for (guint32 seed = 1; seed <= 50; seed++) {
        Case c = random_case(seed, true);
        c.machine->software = mtf_software_load("maxtext", NULL);
        for (int i = 0; i < MTF_HIDDENS; i++)
            c.machine->software->hidden[i] = i == MTF_HIDDEN_TENSOR;
        for (int d = 0; d < c.machine->network.axes; d++)
            c.machine->network.axis[d].latency *= 10;
        assert_true(mtf_pricer_init(&c.pricer, c.machine, &c.layout->mesh, NULL));
        g_autoptr(MtfSchedule) schedule = mtf_schedule_new(&c.pricer, c.program);
        assert_true(schedule->hidden <= schedule->compute + schedule->length);
        capped += schedule->hidden + schedule->length >= schedule->compute;
        clear_case(&c);
    }
    assert_true(capped > 25);
}

/* What a profile adds to a step is the host's time, and none of the collectives' beside it. */
TEST(what_software_adds_to_a_step_is_no_communication) {
    for (guint32 seed = 1; seed <= 50; seed++) {
        Case c = random_case(seed, true);
        c.machine->software = mtf_software_load("megatron-core", NULL);
        c.machine->software->spread = 0;
        MtfSchedule *lean = mtf_schedule_new(&c.pricer, c.program);
        c.machine->software->step_seconds += 0.25;
        MtfSchedule *heavy = mtf_schedule_new(&c.pricer, c.program);
        assert_int_equal(heavy->nanoseconds - lean->nanoseconds, 250000000);
        assert_int_equal(heavy->host - lean->host, 250000000);
        assert_int_equal(heavy->exposed, lean->exposed);
        assert_int_equal(heavy->compute + heavy->exposed + heavy->exposed_host_copies + heavy->host,
                         heavy->nanoseconds);
        mtf_schedule_free(lean);
        mtf_schedule_free(heavy);
        clear_case(&c);
    }
}

/* Three axes (a chip's two cores, 16 x 16 chips): beside the kernels as much again on each. Where a profile hides
 * half of the sums of activations, kernels and twice what is left of sums come to 2 lengths, and as many kernels
 * again hide gradients, and weights: 4 in all. */
TEST(no_step_hides_more_of_its_cost_than_is_said) {
    for (guint32 seed = 1; seed <= 100; seed++) {
        Case c = random_case(seed, true);
        assert_true(mtf_schedule_most_hidden(c.machine) == 4);
        c.machine->software = mtf_software_load("megatron-core", NULL);
        c.machine->software->hidden[MTF_HIDDEN_TENSOR] = 0.5;
        c.machine->software->hidden[MTF_HIDDEN_EXPERT] = 0.25;
        assert_true(mtf_schedule_most_hidden(c.machine) == 4);
        g_autoptr(MtfSchedule) schedule = mtf_schedule_new(&c.pricer, c.program);
        assert_true(mtf_price_program(&c.pricer, c.program) <= 4 * schedule->nanoseconds);
        c.machine->overlap = false;
        assert_true(mtf_schedule_most_hidden(c.machine) == 2);
        g_autoptr(MtfSchedule) alone = mtf_schedule_new(&c.pricer, c.program);
        assert_true(mtf_price_program(&c.pricer, c.program) <= 2 * alone->nanoseconds);
        clear_case(&c);
    }
}
