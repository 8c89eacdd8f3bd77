// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/stages/latency_search.h"
#include "layouts/base/error.h"
#include "tests/support/problems/stage_graphs.h"

#include <math.h>

static const int64_t sizes_of_submeshes[] = { 1, 2, 4, 8, 16, 32, 64 };

static MtfChain new_chain(int layers, int sizes, int64_t devices, int64_t batch) {
    MtfChain chain = { .layers = layers, .sizes = sizes, .size = sizes_of_submeshes };
    chain.devices = devices;
    chain.batch = batch;
    chain.memory = INFINITY;
    chain.price = g_new0(MtfChainPrice, mtf_chain_prices(&chain));
    return chain;
}

/* t(c, n) = c / n + α log2 n for the sum c of the layers' costs. */
static MtfChain chain_of_costs(const double *costs, int layers, int sizes, double alpha) {
    MtfChain chain = new_chain(layers, sizes, 0, 0);
    for (int first = 0; first < layers; first++) {
        double sum = 0;
        for (int end = first + 1; end <= layers; end++) {
            sum += costs[end - 1];
            for (int z = 0; z < sizes; z++)
                chain.price[mtf_chain_index(&chain, first, end, z)].seconds =
                    sum / (double)chain.size[z] + alpha * z;
        }
    }
    return chain;
}

static void check_golden(MtfChain *chain, int64_t devices, int64_t batch, double seconds,
                         guint stages) {
    chain->devices = devices;
    chain->batch = batch;
    chain->all_devices = true;
    g_autoptr(MtfStagePlan) plan = mtf_latency_search(chain, NULL);
    assert_true(fabs(plan->seconds - seconds) < 1e-9);
    if (stages > 0)
        assert_int_equal(plan->stages->len, stages);
    assert_int_equal(mtf_stage_plan_devices(plan), devices);
}

/* ../shared/anchors.md B, after Alpa's formula: 4.5 + 5 + 31 × 5 = 164.5 and so on. */
TEST(six_layers_have_the_known_optima) {
    const double costs[] = { 4, 7, 3, 6, 5, 5 };
    MtfChain chain = chain_of_costs(costs, 6, 4, 0.5);
    check_golden(&chain, 8, 32, 164.5, 2);
    check_golden(&chain, 8, 8, 42, 1);
    check_golden(&chain, 4, 32, 272, 0);
    g_free(chain.price);
}

TEST(ten_layers_have_the_known_optima) {
    const double costs[] = { 4, 7, 3, 6, 5, 5, 2, 9, 1, 8 };
    MtfChain slow = chain_of_costs(costs, 10, 4, 0.5), fast = chain_of_costs(costs, 10, 4, 0);
    check_golden(&slow, 8, 16, 123.25, 2);
    check_golden(&fast, 8, 16, 100, 1);
    g_free(slow.price);
    g_free(fast.price);
}

/* Everything, from the first layer on. */
typedef struct {
    const MtfChain *chain;
    const MtfChainPrice *stage[8];
    double best;
} Trial;

static void judge_stages(Trial *trial, int stages) {
    double sum = 0, slowest = 0;
    if (stages < trial->chain->least_stages)
        return;
    for (int i = 0; i < stages; i++) {
        int64_t flight = MIN((int64_t)(stages - i), trial->chain->batch);
        if (trial->stage[i]->fixed + (double)flight * trial->stage[i]->flight >
            trial->chain->memory)
            return;
        sum += trial->stage[i]->seconds;
        slowest = fmax(slowest, trial->stage[i]->seconds);
    }
    trial->best = fmin(trial->best, sum + (double)(trial->chain->batch - 1) * slowest);
}

static void try_stages(Trial *trial, int stages, int first, int64_t left) {
    const MtfChain *chain = trial->chain;
    if (first == chain->layers) {
        if (left == 0 || !chain->all_devices)
            judge_stages(trial, stages);
        return;
    }
    if (chain->most_stages > 0 && stages == chain->most_stages)
        return;
    for (int end = first + 1; end <= chain->layers; end++)
        for (int z = 0; z < chain->sizes; z++) {
            trial->stage[stages] = &chain->price[mtf_chain_index(chain, first, end, z)];
            if (chain->size[z] <= left)
                try_stages(trial, stages + 1, end, left - chain->size[z]);
        }
}

static MtfChain random_chain(guint64 seed) {
    guint64 n = 0;
    MtfChain chain =
        new_chain(1 + (int)mtf_test_draw(seed, &n, 6), 3, 1 + (int64_t)mtf_test_draw(seed, &n, 8),
                  1 + (int64_t)mtf_test_draw(seed, &n, 20));
    chain.all_devices = mtf_test_draw(seed, &n, 2) == 0;
    if (mtf_test_draw(seed, &n, 2) == 0)
        chain.memory = 20 + (double)mtf_test_draw(seed, &n, 60);
    if (mtf_test_draw(seed, &n, 4) == 0)
        chain.most_stages = 1 + (int)mtf_test_draw(seed, &n, 3);
    if (chain.most_stages > 0)
        chain.least_stages = (int)mtf_test_draw(seed, &n, (guint64)chain.most_stages + 1);
    for (gsize i = 0; i < mtf_chain_prices(&chain); i++) {
        chain.price[i].seconds = 1 + (double)mtf_test_draw(seed, &n, 30);
        if (mtf_test_draw(seed, &n, 12) == 0)
            chain.price[i].seconds = INFINITY;
        chain.price[i].fixed = (double)mtf_test_draw(seed, &n, 30);
        chain.price[i].flight = (double)mtf_test_draw(seed, &n, 15);
    }
    return chain;
}

TEST(random_chains_equal_trying_everything) {
    for (guint64 seed = 0; seed < 4000; seed++) {
        MtfChain chain = random_chain(seed);
        g_autoptr(GError) error = NULL;
        g_autoptr(MtfStagePlan) plan = mtf_latency_search(&chain, &error);
        Trial trial = { .chain = &chain, .best = INFINITY };
        try_stages(&trial, 0, 0, chain.devices);
        assert_int_equal(plan == NULL, isinf(trial.best));
        if (plan != NULL)
            assert_true(fabs(plan->seconds - trial.best) < 1e-9);
        else
            assert_int_equal(error->code, MTF_ERROR_FIT);
        g_free(chain.price);
    }
}

/* The stages that a plan lists add up to what it says. */
TEST(a_plan_costs_what_its_stages_say) {
    for (guint64 seed = 0; seed < 300; seed++) {
        MtfChain chain = random_chain(seed);
        g_autoptr(MtfStagePlan) plan = mtf_latency_search(&chain, NULL);
        double sum = 0, slowest = 0;
        int next = 0;
        for (guint i = 0; plan != NULL && i < plan->stages->len; i++) {
            const MtfStage *stage = &g_array_index(plan->stages, MtfStage, i);
            assert_int_equal(stage->from, next);
            assert_true(stage->bytes <= chain.memory);
            next = stage->to;
            sum += stage->seconds;
            slowest = fmax(slowest, stage->seconds);
        }
        if (plan != NULL) {
            assert_int_equal(next, chain.layers);
            assert_true(fabs(sum + (double)(chain.batch - 1) * slowest - plan->seconds) < 1e-9);
        }
        g_free(chain.price);
    }
}

/* 32 layers on 64 devices under a limit of memory: well below a second (issue 18). */
TEST(thirty_two_layers_on_sixty_four_devices_are_quick) {
    double costs[32];
    guint64 n = 0;
    for (int k = 0; k < 32; k++)
        costs[k] = 1 + (double)mtf_test_draw(7, &n, 1000) / 100;
    MtfChain chain = chain_of_costs(costs, 32, 7, 0.05);
    chain.devices = 64;
    chain.batch = 64;
    chain.memory = 100;
    for (gsize i = 0; i < mtf_chain_prices(&chain); i++)
        chain.price[i].flight = chain.price[i].seconds / 8;
    gint64 begin = g_get_monotonic_time();
    g_autoptr(MtfStagePlan) plan = mtf_latency_search(&chain, NULL);
    assert_true((double)(g_get_monotonic_time() - begin) < 5e6);
    assert_non_null(plan);
    g_free(chain.price);
}
