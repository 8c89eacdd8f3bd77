// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/solver/search/probing.h"

#include <string.h>

#define PASSES 16    /* most for one value */
#define WORTH_IT 0.1 /* share of the values that a sweep forbids if another shall follow, */
#define TRIAL 128    /* and that so many values begin it with if it shall go on */

typedef struct Probe {
    MtfMessages *messages;
    MtfCore *core;
    double bound, cutoff;
    double *begin; /* the messages that each value begins with */
    int tried, found;
} Probe;

/* Whether no choice within the cutoff takes the value. Gives up where the bound, rising on as in
 * its last pass, would not get there; it is no number where nothing is possible beside the value.
 */
static bool is_useless(const Probe *probe, int node, int value) {
    mtf_messages_restore(probe->messages, probe->begin);
    mtf_messages_clamp(probe->messages, node, value);
    double last = probe->bound;
    bool useless = false;
    for (int left = PASSES - 1; left >= 0 && !useless; left--) {
        double bound = mtf_messages_pass(probe->messages);
        useless = !(bound <= probe->cutoff);
        if (!useless && (bound - last) * left < probe->cutoff - bound)
            break;
        last = bound;
    }
    mtf_messages_unclamp(probe->messages, node);
    return useless;
}

static void probe_node(Probe *probe, int node) {
    int values = probe->core->nodes[node].values;
    int64_t *cost = mtf_core_new_costs((gsize)values);
    memcpy(cost, probe->core->nodes[node].cost, (gsize)values * sizeof *cost);
    for (int p = 0; p < values; p++) {
        if (cost[p] >= MTF_CORE_IMPOSSIBLE)
            continue;
        probe->tried++;
        if (!is_useless(probe, node, p))
            continue;
        cost[p] = MTF_CORE_IMPOSSIBLE;
        mtf_messages_forbid(probe->messages, node, p);
        probe->found++;
    }
    mtf_core_set_cost(probe->core, node, cost);
}

static bool is_worth_it(const Probe *probe) {
    return probe->found >= WORTH_IT * probe->tried;
}

static void sweep(Probe *probe, bool (*cancel)(void *user), void *user) {
    probe->tried = probe->found = 0;
    for (int v = 0; v < probe->core->node_count; v++) {
        if ((cancel != NULL && cancel(user)) || (probe->tried >= TRIAL && !is_worth_it(probe)))
            return;
        if (probe->core->nodes[v].alive)
            probe_node(probe, v);
    }
}

int mtf_probe(MtfMessages *messages, MtfCore *core, double bound, double cutoff,
              bool (*cancel)(void *user), void *user) {
    g_autofree double *begin = mtf_messages_save(messages);
    Probe probe = { messages, core, bound, cutoff, begin, 0, 0 };
    int found = 0;
    do {
        sweep(&probe, cancel, user);
        found += probe.found;
    } while (probe.found > 0 && is_worth_it(&probe) && (cancel == NULL || !cancel(user)));
    mtf_messages_restore(messages, begin);
    return found;
}
