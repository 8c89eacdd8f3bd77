// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/simulate/collective_trial.h"

#include "cost/collectives/collective_algorithm.h"
#include "layouts/graph/random.h"

#include <math.h>

#define MAX_RANKS 400
#define MAX_STRIDED_RANKS 60

typedef struct {
    MtfRandom random;
    int64_t drawn;
} Draw;

static int64_t draw(Draw *source, int64_t below) {
    return (int64_t)(mtf_random_uniform(&source->random, source->drawn++) * (double)below);
}

static void draw_network(Draw *source, MtfNetwork *network) {
    static const int64_t most[] = { 15, 9, 5 };
    double bandwidth = 1e9 * (double)(1 + draw(source, 100));
    double latency = 1e-7 * (double)(1 + draw(source, 30));
    network->axes = 1 + (int)draw(source, 3);
    for (int d = 0; d < network->axes; d++)
        network->axis[d] = (MtfNetworkAxis){
            .size = 2 + draw(source, most[network->axes - 1]),
            .wrap = draw(source, 2) == 0,
            .link = d,
            .bandwidth = bandwidth,
            .latency = latency,
        };
    g_assert(mtf_network_ranks(network) <= MAX_RANKS);
}

/* Lets a third of the networks of few ranks hold only every 2nd, 3rd or 4th place of an axis, while
 * the groups between them do the same. */
static void draw_stride(Draw *source, MtfNetwork *network) {
    MtfNetworkAxis *axis = &network->axis[draw(source, network->axes)];
    int64_t stride = 2 + draw(source, 3);
    if (draw(source, 3) > 0 || mtf_network_ranks(network) > MAX_STRIDED_RANKS)
        return;
    axis->stride = stride;
    axis->places = axis->size * stride;
    axis->closed = axis->wrap;
    axis->bandwidth /= (double)stride;
    axis->latency *= (double)stride;
}

/* Switches within switches: the children of an outer one send together at most what they get. */
static void draw_levels(Draw *source, MtfNetwork *network) {
    static const int64_t most[] = { 47, 7, 3 };
    double bandwidth = 1e9 * (double)(1 + draw(source, 100));
    *network = (MtfNetwork){ .switched = true, .axes = 1 + (int)draw(source, 3) };
    for (int d = network->axes - 1; d >= 0; d--) {
        network->axis[d] = (MtfNetworkAxis){ .size = 2 + draw(source, most[network->axes - 1]),
                                             .bandwidth = bandwidth,
                                             .latency = 1e-6 * (double)(network->axes - d) };
        bandwidth *= (double)network->axis[d].size / (double)(1 + draw(source, 8));
    }
}

static void draw_collective(Draw *source, MtfCollective *collective) {
    collective->bytes = round(exp2(4 + (double)draw(source, 26000) / 1000));
    collective->segments = 16;
    collective->shift = 1 + draw(source, 3);
}

/* Tries the row of the table that was drawn. */
static bool simulation_row(MtfCollectiveTrial *trial, const MtfSimulationRow *row,
                           MtfCollectiveKind kind) {
    trial->algorithm = row->name;
    trial->claim = row->claim;
    trial->collective.kind = kind;
    MtfCollectivePrice price;
    if ((row->kinds & MTF_KIND_BIT(kind)) == 0 || row->switched != trial->network.switched ||
        !mtf_collective_simulate(&trial->network, &trial->collective, trial->algorithm,
                                 &trial->simulated) ||
        !mtf_collective_named(&trial->network, &trial->collective, trial->algorithm, &price, NULL))
        return false;
    trial->formula = price.seconds;
    return trial->formula > 0;
}

static bool all_rings(const MtfNetwork *network) {
    bool rings = true;
    for (int d = 0; d < network->axes; d++)
        rings = rings && network->axis[d].wrap;
    return rings;
}

bool mtf_collective_trial_shares(const MtfCollectiveTrial *trial) {
    for (int d = 0; d < trial->network.axes; d++)
        if (trial->network.axis[d].stride > 1)
            return true;
    return false;
}

static int count_simulations(void) {
    int count = 0;
    while (mtf_collective_simulation_row(count) != NULL)
        count++;
    return count;
}

MtfCollectiveTrial mtf_collective_trial(uint64_t seed, uint64_t number) {
    Draw source = { .random = mtf_random_stream(seed, "collective_trial", number) };
    int rows = count_simulations();
    for (;;) {
        MtfCollectiveTrial trial = { .algorithm = NULL };
        draw_network(&source, &trial.network);
        draw_stride(&source, &trial.network);
        draw_collective(&source, &trial.collective);
        const MtfSimulationRow *row = mtf_collective_simulation_row((int)draw(&source, rows));
        if (row->switched)
            draw_levels(&source, &trial.network);
        MtfCollectiveKind kind = (MtfCollectiveKind)draw(&source, MTF_COLLECTIVE_KINDS);
        if (!simulation_row(&trial, row, kind))
            continue;
        bool plain = row->switched ? trial.network.axes == 1 : !mtf_collective_trial_shares(&trial);
        if (kind == MTF_ALLTOALL && !row->switched && !all_rings(&trial.network))
            trial.claim = MTF_SIMULATION_ESTIMATE;
        if (trial.claim == MTF_SIMULATION_EXACT_PLAIN)
            trial.claim = plain ? MTF_SIMULATION_EXACT : MTF_SIMULATION_ESTIMATE;
        return trial;
    }
}

char *mtf_collective_trial_text(const MtfCollectiveTrial *trial) {
    GString *text = g_string_new(mtf_collective_kind_name(trial->collective.kind));
    g_string_append_printf(text, " %s %s ", trial->algorithm,
                           trial->network.switched ? "levels" : "torus");
    for (int d = 0; d < trial->network.axes; d++) {
        const MtfNetworkAxis *axis = &trial->network.axis[d];
        g_string_append_printf(text, "%s%d%s", d > 0 ? "x" : "", (int)axis->size,
                               axis->wrap || trial->network.switched ? "" : "-");
        if (axis->stride > 1)
            g_string_append_printf(text, "/%d", (int)axis->stride);
    }
    g_string_append_printf(text, " %.0f B", trial->collective.bytes);
    return g_string_free(text, FALSE);
}
