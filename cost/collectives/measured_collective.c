// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/collectives/measured_collective.h"

#include "cost/machine/curve_name.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* The measured sizes around a size: equal where it was measured, or lies beyond them. */
typedef struct {
    int64_t below, above;
} Sizes;

/* The ranks of a table of the collective, or 0. Prices are asked for often, so other tables are
 * told apart by their first letters. */
static int64_t measured_ranks(const MtfMachineCurve *curve, const char *kind, size_t length) {
    MtfCurveName name;
    if (strncmp(curve->name, kind, length) != 0 || !mtf_curve_name_parse(curve->name, &name) ||
        name.kind != MTF_CURVE_COLLECTIVE || name.algorithm != MTF_EXCHANGE_DIRECT)
        return 0;
    return name.ranks;
}

static bool find_sizes(const MtfMachine *machine, MtfCollectiveKind kind, int64_t ranks,
                       Sizes *sizes) {
    const char *name = mtf_collective_kind_name(kind);
    size_t length = strlen(name);
    *sizes = (Sizes){ 0, 0 };
    for (guint i = 0; i < machine->curves->len; i++) {
        int64_t measured = measured_ranks(g_ptr_array_index(machine->curves, i), name, length);
        if (measured >= 2 && measured <= ranks && measured > sizes->below)
            sizes->below = measured;
        if (measured >= ranks && (sizes->above == 0 || measured < sizes->above))
            sizes->above = measured;
    }
    sizes->below = sizes->below > 0 ? sizes->below : sizes->above;
    sizes->above = sizes->above > 0 ? sizes->above : sizes->below;
    return sizes->below > 0;
}

static double measured_at(const MtfMachine *machine, MtfCollectiveKind kind, int64_t ranks,
                          double bytes) {
    MtfCurveName name = { .kind = MTF_CURVE_COLLECTIVE, .collective = kind, .ranks = ranks };
    g_autofree char *text = mtf_curve_name_format(&name);
    return mtf_machine_curve_at(mtf_machine_curve(machine, text), bytes);
}

static double formula_at(const MtfNetwork *group, MtfCollectiveKind kind, int64_t ranks,
                         double bytes) {
    MtfNetwork network = *group;
    MtfCollective collective = { .kind = kind, .bytes = bytes, .shift = 1 };
    network.axis[0].size = ranks;
    return mtf_collective_best(&network, &collective).seconds;
}

/* measured / formula at one size. */
static double ratio_at(const MtfMachine *machine, const MtfNetwork *group, MtfCollectiveKind kind,
                       int64_t ranks, double bytes) {
    return measured_at(machine, kind, ranks, bytes) / formula_at(group, kind, ranks, bytes);
}

/* Where `ranks` lie between two measured sizes, on a logarithmic scale: 0 at the smaller one. */
static double weight_of_above(const Sizes *sizes, int64_t ranks) {
    return sizes->above > sizes->below ? log((double)ranks / (double)sizes->below) /
                                             log((double)sizes->above / (double)sizes->below)
                                       : 0;
}

bool mtf_measured_collective(const MtfMachine *machine, const MtfNetwork *group,
                             MtfCollectiveKind kind, double bytes, double *seconds) {
    int64_t ranks = mtf_network_ranks(group);
    Sizes sizes;
    if (!find_sizes(machine, kind, ranks, &sizes))
        return false;
    if (sizes.below == ranks) {
        *seconds = measured_at(machine, kind, ranks, bytes);
        return true;
    }
    if (!group->switched || group->axes != 1)
        return false;
    double low = ratio_at(machine, group, kind, sizes.below, bytes);
    double high = ratio_at(machine, group, kind, sizes.above, bytes);
    double weight = weight_of_above(&sizes, ranks);
    *seconds =
        formula_at(group, kind, ranks, bytes) * exp((1 - weight) * log(low) + weight * log(high));
    return isfinite(*seconds);
}

bool mtf_measures_collective(const MtfMachine *machine, MtfCollectiveKind kind) {
    Sizes sizes;
    return find_sizes(machine, kind, 2, &sizes);
}

bool mtf_measured_algorithm(const MtfMachine *machine, MtfCollectiveKind kind, int64_t ranks,
                            MtfExchangeAlgorithm algorithm, double bytes, double *seconds) {
    MtfCurveName name = { .collective = kind, .ranks = ranks, .algorithm = algorithm };
    g_autofree char *text = mtf_curve_name_format(&name);
    const MtfMachineCurve *curve = mtf_machine_curve(machine, text);
    if (curve != NULL)
        *seconds = mtf_machine_curve_at(curve, bytes);
    return curve != NULL;
}

char *mtf_unmeasured_collective(const MtfMachine *machine, const MtfNetwork *group,
                                MtfCollectiveKind kind) {
    int64_t ranks = mtf_network_ranks(group);
    Sizes sizes;
    if (ranks < 2 || !group->switched || group->axes != 1 ||
        !find_sizes(machine, kind, ranks, &sizes) || sizes.below == ranks)
        return NULL;
    const char *name = mtf_collective_kind_name(kind);
    if (sizes.below == sizes.above)
        return g_strdup_printf("%s over %" PRId64 " ranks, by formula as those over %" PRId64
                               " are to theirs",
                               name, ranks, sizes.below);
    return g_strdup_printf("%s over %" PRId64 " ranks, by formula as those over %" PRId64
                           " and %" PRId64 " are to theirs",
                           name, ranks, sizes.below, sizes.above);
}
