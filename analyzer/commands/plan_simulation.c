// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/commands/plan_simulation.h"

#include "cost/tune/program_mapping.h"

#include <math.h>

/* An all-to-all of n ranks is n^2 messages over many hops; beyond this the simulation takes too long. */
#define PLACES_MOST 1024
#define SWITCHED_MOST 64

/* The ranks of the group and of those that share its links. */
static int64_t places_of(const MtfNetwork *network) {
    int64_t places = mtf_network_ranks(network);
    for (int d = 0; d < network->axes; d++)
        places *= MAX(1, network->axis[d].stride);
    return places;
}

/* The cheapest algorithm that has a simulation, by its formula; NULL when there is none. `*collective`
 * gets the algorithm's parameters. */
static const char *cheapest_simulated(const MtfNetwork *network, MtfCollective *collective,
                                      MtfPlanSimulationRow *row) {
    const char *found = NULL;
    const MtfSimulationRow *simulation_row;
    MtfCollective plain = *collective;
    for (int i = 0; (simulation_row = mtf_collective_simulation_row(i)) != NULL; i++) {
        MtfCollective candidate = plain;
        MtfCollectivePrice price;
        if ((simulation_row->kinds & 1U << collective->kind) == 0 ||
            simulation_row->switched != network->switched ||
            !mtf_collective_named(network, &candidate, simulation_row->name, &price, NULL) ||
            (found != NULL && price.seconds >= row->formula))
            continue;
        found = simulation_row->name;
        row->formula = price.seconds;
        *collective = candidate;
        g_strlcpy(row->simulated_algorithm, price.algorithm, sizeof row->simulated_algorithm);
    }
    return found;
}

static void simulate(const MtfNetwork *network, MtfCollective collective,
                     MtfPlanSimulationRow *row) {
    MtfNetwork wires = *network;
    row->formula = row->simulated = NAN;
    if (places_of(network) > (network->switched ? SWITCHED_MOST : PLACES_MOST))
        return;
    wires.message_seconds = wires.reduce_seconds_per_byte = 0;
    const char *name = cheapest_simulated(&wires, &collective, row);
    if (name == NULL || !mtf_collective_simulate(&wires, &collective, name, &row->simulated)) {
        row->formula = row->simulated = NAN;
        row->simulated_algorithm[0] = 0;
    }
}

static void fill_row(const MtfPricer *pricer, MtfPlanSimulationRow *row) {
    MtfNetwork network = mtf_mesh_map_group(&pricer->map, row->axes);
    MtfCollective collective = { .kind = row->kind, .bytes = row->bytes };
    MtfCollectivePrice best = mtf_collective_best(&network, &collective);
    row->seconds =
        mtf_collective_seconds(pricer->machine, &pricer->map, row->kind, row->axes, row->bytes);
    bool measured = fabs(row->seconds - best.seconds) > 1e-9 * best.seconds;
    g_strlcpy(row->chosen, measured ? "measured" : best.algorithm, sizeof row->chosen);
    simulate(&network, collective, row);
}

static int compare_rows(const void *left, const void *right) {
    const MtfPlanSimulationRow *a = left, *b = right;
    double x = a->calls * a->seconds, y = b->calls * b->seconds;
    if (x != y)
        return x < y ? 1 : -1;
    if (a->kind != b->kind)
        return (int)a->kind - (int)b->kind;
    if (a->axes != b->axes)
        return a->axes < b->axes ? -1 : 1;
    return (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

GArray *mtf_plan_simulate(const MtfPricer *pricer, const MtfProgram *program) {
    g_autoptr(GArray) traffic = mtf_program_traffic(program);
    GArray *rows = g_array_new(FALSE, TRUE, sizeof(MtfPlanSimulationRow));
    for (guint i = 0; i < traffic->len; i++) {
        const MtfCollectiveTraffic *one = &g_array_index(traffic, MtfCollectiveTraffic, i);
        MtfPlanSimulationRow row = { .kind = one->kind,
                                     .axes = one->mesh_axes_mask,
                                     .bytes = one->bytes,
                                     .calls = (double)one->calls };
        fill_row(pricer, &row);
        g_array_append_val(rows, row);
    }
    g_array_sort(rows, compare_rows);
    return rows;
}
