// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/commands/plan_play.h"

#include "cost/tune/program_mapping.h"

#include <math.h>

/* An all-to-all of n ranks is n^2 messages over many hops; beyond this the play takes too long. */
#define PLACES_MOST 1024
#define SWITCHED_MOST 64

/* The ranks of the group and of those that share its links. */
static int64_t places_of(const MtfNetwork *network) {
    int64_t places = mtf_network_ranks(network);
    for (int d = 0; d < network->axes; d++)
        places *= MAX(1, network->axis[d].stride);
    return places;
}

/* The cheapest schedule that has a play, by its formula; NULL when there is none. `*collective`
 * gets the schedule's parameters. */
static const char *cheapest_play(const MtfNetwork *network, MtfCollective *collective,
                                 MtfPlanPlayRow *row) {
    const char *found = NULL;
    const MtfPlayRow *play_row;
    MtfCollective plain = *collective;
    for (int i = 0; (play_row = mtf_collective_play_row(i)) != NULL; i++) {
        MtfCollective candidate = plain;
        MtfCollectivePrice price;
        if ((play_row->kinds & 1U << collective->kind) == 0 ||
            play_row->switched != network->switched ||
            !mtf_collective_named(network, &candidate, play_row->name, &price, NULL) ||
            (found != NULL && price.seconds >= row->formula))
            continue;
        found = play_row->name;
        row->formula = price.seconds;
        *collective = candidate;
        g_strlcpy(row->played, price.algorithm, sizeof row->played);
    }
    return found;
}

static void play(const MtfNetwork *network, MtfCollective collective, MtfPlanPlayRow *row) {
    MtfNetwork wires = *network;
    row->formula = row->simulated = NAN;
    if (places_of(network) > (network->switched ? SWITCHED_MOST : PLACES_MOST))
        return;
    wires.message_seconds = wires.reduce_seconds_per_byte = 0;
    const char *name = cheapest_play(&wires, &collective, row);
    if (name == NULL || !mtf_collective_play(&wires, &collective, name, &row->simulated)) {
        row->formula = row->simulated = NAN;
        row->played[0] = 0;
    }
}

static void fill_row(const MtfPricer *pricer, MtfPlanPlayRow *row) {
    MtfNetwork network = mtf_mesh_map_group(&pricer->map, row->axes);
    MtfCollective collective = { .kind = row->kind, .bytes = row->bytes };
    MtfCollectivePrice best = mtf_collective_best(&network, &collective);
    row->seconds =
        mtf_collective_seconds(pricer->machine, &pricer->map, row->kind, row->axes, row->bytes);
    bool measured = fabs(row->seconds - best.seconds) > 1e-9 * best.seconds;
    g_strlcpy(row->chosen, measured ? "measured" : best.algorithm, sizeof row->chosen);
    play(&network, collective, row);
}

static int compare_rows(const void *left, const void *right) {
    const MtfPlanPlayRow *a = left, *b = right;
    double x = a->calls * a->seconds, y = b->calls * b->seconds;
    if (x != y)
        return x < y ? 1 : -1;
    if (a->kind != b->kind)
        return (int)a->kind - (int)b->kind;
    if (a->axes != b->axes)
        return a->axes < b->axes ? -1 : 1;
    return (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

GArray *mtf_plan_play(const MtfPricer *pricer, const MtfProgram *program) {
    g_autoptr(GArray) traffic = mtf_program_traffic(program);
    GArray *rows = g_array_new(FALSE, TRUE, sizeof(MtfPlanPlayRow));
    for (guint i = 0; i < traffic->len; i++) {
        const MtfCollectiveTraffic *one = &g_array_index(traffic, MtfCollectiveTraffic, i);
        MtfPlanPlayRow row = { .kind = one->kind,
                               .axes = one->mesh_axes_mask,
                               .bytes = one->bytes,
                               .calls = (double)one->calls };
        fill_row(pricer, &row);
        g_array_append_val(rows, row);
    }
    g_array_sort(rows, compare_rows);
    return rows;
}
