// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/network.h"

int64_t mtf_network_ranks(const MtfNetwork *network) {
    int64_t ranks = 1;
    for (int d = 0; d < network->axes; d++)
        ranks *= network->axis[d].size;
    return ranks;
}

void mtf_network_drop_trivial(MtfNetwork *network) {
    int kept = 0;
    for (int d = 0; d < network->axes; d++)
        if (network->axis[d].size > 1)
            network->axis[kept++] = network->axis[d];
    network->axes = kept;
}
