// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/machine/network.h"

#include <glib.h>
#include <inttypes.h>
#include <math.h>

int64_t mtf_network_ranks(const MtfNetwork *network) {
    int64_t ranks = 1;
    for (int d = 0; d < network->axes; d++)
        ranks *= network->axis[d].size;
    return ranks;
}

double mtf_network_links(const MtfNetworkAxis *level) {
    return fmin(level->pair * (double)MAX(level->size - 1, 1), level->bandwidth);
}

void mtf_network_drop_trivial(MtfNetwork *network) {
    int kept = 0;
    for (int d = 0; d < network->axes; d++)
        if (network->axis[d].size > 1)
            network->axis[kept++] = network->axis[d];
    network->axes = kept;
}

char *mtf_network_format(const MtfNetwork *slice) {
    GString *text = g_string_new(slice->switched ? "switches " : "torus ");
    for (int a = 0; a < slice->axes; a++)
        g_string_append_printf(text, "%s%" PRId64, a > 0 ? "x" : "", slice->axis[a].size);
    for (int a = 0; a < slice->axes && !slice->switched; a++)
        if (slice->axis[a].wrap && slice->axis[a].size > 1)
            g_string_append_printf(text, ", axis %d wraps", a);
    return g_string_free(text, FALSE);
}
