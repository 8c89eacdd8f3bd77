// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/solver/bounds/probing.h"

#include "analyzer/solver/bounds/certified_point.h"
#include "analyzer/solver/bounds/exact_bound.h"

#include <string.h>

#define PASSES 16    /* most for one value */
#define WORTH_IT 0.1 /* share of the values that a sweep forbids if another shall follow, */
#define TRIAL 128    /* values at its beginning that have to forbid that share for it to go on */

typedef struct Probe {
    MtfMessages *messages;
    MtfCore *core;
    MtfExactBound *exact;
    double bound;
    int64_t cutoff;
    double *begin; /* the messages that each value begins with */
    int tried, found;
} Probe;

/* Whether no choice within the cutoff takes the value. Gives up where the bound, rising on as in
 * its last pass, would not get there; it is no number where nothing is possible beside the value.
 */
static bool is_useless(const Probe *probe, int node, int value) {
    mtf_messages_restore(probe->messages, probe->begin);
    mtf_messages_clamp(probe->messages, node, value);
    double last = probe->bound, cutoff = (double)probe->cutoff;
    bool seems = false;
    for (int left = PASSES - 1; left >= 0 && !seems; left--) {
        double bound = mtf_messages_pass(probe->messages);
        seems = !(bound <= cutoff);
        if (!seems && (bound - last) * left < cutoff - bound)
            break;
        last = bound;
    }
    if (seems)
        mtf_exact_bound_update(probe->exact);
    bool proven = seems && mtf_exact_bound_slack(probe->exact, probe->cutoff) < 0;
    if (proven)
        mtf_certify_useless(probe->exact, probe->core, node, value, probe->cutoff);
    mtf_messages_unclamp(probe->messages, node);
    return proven;
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

static void sweep(Probe *probe, const MtfSearchControl *control) {
    probe->tried = probe->found = 0;
    for (int v = 0; v < probe->core->node_count; v++) {
        if (mtf_search_is_over(control) || (probe->tried >= TRIAL && !is_worth_it(probe)))
            return;
        if (probe->core->nodes[v].alive)
            probe_node(probe, v);
    }
}

int mtf_probe(MtfMessages *messages, MtfCore *core, double bound, int64_t cutoff,
              const MtfSearchControl *control) {
    g_autofree double *begin = mtf_messages_save(messages, NULL);
    g_autoptr(MtfExactBound) exact = mtf_exact_bound_new(messages);
    Probe probe = { messages, core, exact, bound, cutoff, begin, 0, 0 };
    int found = 0;
    do {
        sweep(&probe, control);
        found += probe.found;
    } while (probe.found > 0 && is_worth_it(&probe) && !mtf_search_is_over(control));
    mtf_messages_restore(messages, begin);
    return found;
}
