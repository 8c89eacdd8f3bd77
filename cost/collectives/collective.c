// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/collectives/collective.h"

#include "cost/collectives/collective_algorithm.h"
#include "cost/collectives/measured_collective.h"
#include "cost/collectives/nccl_collective.h"
#include "layouts/base/error.h"
#include "layouts/base/nearest_name.h"

#include <math.h>
#include <string.h>

static const MtfCollectiveFamily *const families[] = {
    &mtf_axis_algorithms,     &mtf_bucket_algorithms,   &mtf_tree_algorithms,
    &mtf_alltoall_algorithms, &mtf_neighbor_algorithms, &mtf_switch_algorithms,
};

/* Walks the rows of all families that serve the kind on that sort of network. */
typedef struct {
    guint family;
    int row;
} Walk;

static const MtfCollectiveAlgorithm *next_algorithm(Walk *walk, const MtfNetwork *network,
                                                    MtfCollectiveKind kind) {
    for (; walk->family < G_N_ELEMENTS(families); walk->family++, walk->row = 0) {
        const MtfCollectiveFamily *family = families[walk->family];
        while (walk->row < family->count) {
            const MtfCollectiveAlgorithm *algorithm = &family->rows[walk->row++];
            if ((algorithm->kinds & MTF_KIND_BIT(kind)) != 0 &&
                algorithm->switched == network->switched)
                return algorithm;
        }
    }
    return NULL;
}

/* A group that holds every stride-th place shares each link with stride - 1 others. */
static void apply_stride(MtfNetwork *network, int64_t stride) {
    MtfNetworkAxis *axis = &network->axis[0];
    axis->stride = stride;
    axis->places = axis->size;
    axis->closed = axis->wrap;
    axis->wrap = axis->wrap && axis->size % stride == 0;
    axis->size = (axis->size + stride - 1) / stride;
    axis->bandwidth /= (double)stride;
    axis->latency *= (double)stride;
}

static bool has_bytes(const MtfCollective *collective) {
    bool any = collective->bytes > 0;
    for (int i = 0; i < collective->faces && collective->kind == MTF_HALO; i++)
        any = any || collective->face[i] > 0;
    return any;
}

bool mtf_collective_prepare(const MtfNetwork *network, const MtfCollective *collective,
                            MtfNetwork *prepared) {
    *prepared = *network;
    if (collective->stride > 1 && network->axes == 1)
        apply_stride(prepared, collective->stride);
    if (collective->kind != MTF_HALO) /* whose faces are numbered by axis */
        mtf_network_drop_trivial(prepared);
    return mtf_network_ranks(prepared) > 1 && has_bytes(collective);
}

static double schedule_seconds(const MtfCollectiveAlgorithm *algorithm, const MtfNetwork *network,
                               const MtfCollective *collective) {
    if (algorithm->gather == NULL)
        return algorithm->seconds(network, collective);
    double ranks = (double)mtf_network_ranks(network);
    double gather = algorithm->gather(network, collective);
    double reduce = (ranks - 1) / ranks * collective->bytes * network->reduce_seconds_per_byte;
    switch (collective->kind) {
    case MTF_ALLREDUCE:
        return 2 * gather + reduce;
    case MTF_REDUCE_SCATTER:
        return gather + reduce;
    default:
        return gather;
    }
}

/* Formulas that add latency to bandwidth may still fall below the bound where only one of them is
 * counted; a price never does. */
static MtfCollectivePrice price_of(const MtfCollectiveAlgorithm *algorithm,
                                   const MtfNetwork *network, const MtfCollective *collective,
                                   double bound) {
    MtfCollectivePrice price = { .seconds = schedule_seconds(algorithm, network, collective) };
    price.idealised = (algorithm->use & MTF_ALGORITHM_NAMED) != 0;
    if (!isnan(price.seconds))
        price.seconds = fmax(price.seconds, bound);
    g_strlcpy(price.algorithm, algorithm->name, sizeof price.algorithm);
    return price;
}

/* Completes the name by the parameters that the caller gave. */
static void name_parameters(MtfCollectivePrice *price, const MtfCollectiveAlgorithm *algorithm,
                            const MtfCollective *collective) {
    if ((algorithm->use & MTF_ALGORITHM_SEGMENTED) != 0 && collective->segments > 0)
        g_snprintf(price->algorithm, sizeof price->algorithm, "%s_k%" G_GINT64_FORMAT,
                   algorithm->name, collective->segments);
    if (collective->stride > 1 && strcmp(algorithm->name, "strided") == 0)
        g_snprintf(price->algorithm, sizeof price->algorithm, "%s_s%" G_GINT64_FORMAT,
                   algorithm->name, collective->stride);
}

static MtfCollectivePrice find_best(const MtfNetwork *network, const MtfCollective *collective) {
    MtfCollectivePrice best = { .algorithm = "none", .seconds = 0 };
    MtfNetwork group;
    if (!mtf_collective_prepare(network, collective, &group))
        return best;
    const MtfCollectiveAlgorithm *algorithm, *chosen = NULL;
    Walk walk = { 0 };
    while ((algorithm = next_algorithm(&walk, &group, collective->kind)) != NULL) {
        if ((algorithm->use & MTF_ALGORITHM_NAMED) != 0)
            continue;
        double seconds = schedule_seconds(algorithm, &group, collective);
        if (isnan(seconds) || (chosen != NULL && seconds >= best.seconds))
            continue;
        best.seconds = seconds;
        chosen = algorithm;
    }
    g_assert(chosen != NULL);
    best.seconds = fmax(best.seconds, mtf_collective_bound(network, collective));
    g_strlcpy(best.algorithm, chosen->name, sizeof best.algorithm);
    name_parameters(&best, chosen, collective);
    return best;
}

/* The price depends on nothing but these two, and a program asks for few different ones again and again, one for
 * each layer: each thread remembers some. Bytes that pad the structs may hide that two are the same, not more. */
typedef struct {
    MtfNetwork network;
    MtfCollective collective;
} Asked;

typedef struct {
    Asked asked;
    bool known;
    MtfCollectivePrice price;
} Remembered;

#define REMEMBERED 128 /* a power of two */

static guint place_of(const Asked *asked) {
    const MtfCollective *collective = &asked->collective;
    guint64 bits = 0;
    memcpy(&bits, &collective->bytes, sizeof bits);
    for (int d = 0; d < asked->network.axes; d++)
        bits =
            (bits ^ (guint64)asked->network.axis[d].size) * G_GUINT64_CONSTANT(0x9e3779b97f4a7c15);
    bits = (bits ^ (guint64)collective->kind) * G_GUINT64_CONSTANT(0x9e3779b97f4a7c15);
    return (guint)(bits >> 32) % REMEMBERED;
}

MtfCollectivePrice mtf_collective_best(const MtfNetwork *network, const MtfCollective *collective) {
    static _Thread_local Remembered remembered[REMEMBERED];
    Asked asked;
    memcpy(&asked.network, network, sizeof *network);
    memcpy(&asked.collective, collective, sizeof *collective);
    Remembered *one = &remembered[place_of(&asked)];
    if (!one->known || memcmp(&one->asked, &asked, sizeof asked) != 0) {
        memcpy(&one->asked, &asked, sizeof asked);
        one->price = find_best(network, collective);
        one->known = true;
    }
    return one->price;
}

static int by_seconds(const void *a, const void *b) {
    const MtfCollectivePrice *x = a, *y = b;
    if (x->seconds != y->seconds)
        return x->seconds < y->seconds ? -1 : 1;
    return strcmp(x->algorithm, y->algorithm);
}

GArray *mtf_collective_prices(const MtfNetwork *network, const MtfCollective *collective) {
    GArray *prices = g_array_new(FALSE, FALSE, sizeof(MtfCollectivePrice));
    MtfNetwork group;
    if (!mtf_collective_prepare(network, collective, &group))
        return prices;
    double bound = mtf_collective_bound(network, collective);
    double best = mtf_collective_best(network, collective).seconds;
    const MtfCollectiveAlgorithm *algorithm;
    Walk walk = { 0 };
    while ((algorithm = next_algorithm(&walk, &group, collective->kind)) != NULL) {
        MtfCollectivePrice price = price_of(algorithm, &group, collective, bound);
        name_parameters(&price, algorithm, collective);
        if (price.seconds >= best)
            g_array_append_val(prices, price);
    }
    g_array_sort(prices, by_seconds);
    return prices;
}

/* Letters and digits of a name, in lower case. */
static char *plain_name(const char *name) {
    GString *plain = g_string_new(NULL);
    for (const char *c = name; *c != '\0'; c++)
        if (g_ascii_isalnum(*c))
            g_string_append_c(plain, g_ascii_tolower(*c));
    return g_string_free(plain, FALSE);
}

/* Cuts "LETTER DIGITS" off the end of `name` and returns the number; 0 when it does not end so. */
static int64_t cut_parameter(char *name, char letter) {
    gsize end = strlen(name), start = end;
    while (start > 0 && g_ascii_isdigit(name[start - 1]))
        start--;
    if (start == end || start == 0 || name[start - 1] != letter)
        return 0;
    int64_t value = g_ascii_strtoll(name + start, NULL, 10);
    name[start - 1] = '\0';
    return value;
}

static const MtfCollectiveAlgorithm *find_algorithm(const MtfNetwork *network,
                                                    MtfCollectiveKind kind, const char *bare) {
    const MtfCollectiveAlgorithm *algorithm;
    Walk walk = { 0 };
    while ((algorithm = next_algorithm(&walk, network, kind)) != NULL) {
        g_autofree char *plain = plain_name(algorithm->name);
        if (strcmp(plain, bare) == 0)
            return algorithm;
    }
    return NULL;
}

/* Reads the parameters that a name carries into `collective` and leaves the bare name. A name that
 * ends in a digit of its own ("…_nminus1") carries none. */
static char *bare_name(const MtfNetwork *network, const char *name, MtfCollective *collective) {
    g_autofree char *plain = plain_name(name);
    const char *start = plain;
    if (find_algorithm(network, collective->kind, plain) != NULL)
        return g_steal_pointer(&plain);
    if (g_str_has_prefix(plain, "shift") && g_ascii_isdigit(plain[5]))
        collective->shift = g_ascii_strtoll(plain + 5, (char **)&start, 10);
    if (g_str_has_prefix(plain, "periodic"))
        return g_strdup("periodic");
    char *bare = g_strdup(start);
    int64_t segments = cut_parameter(bare, 'k');
    int64_t stride = cut_parameter(bare, 's');
    if (segments > 0)
        collective->segments = segments;
    if (stride > 0)
        collective->stride = stride;
    return bare;
}

static bool fail_unknown(const MtfNetwork *network, MtfCollectiveKind kind, const char *name,
                         GError **error) {
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    const MtfCollectiveAlgorithm *algorithm;
    Walk walk = { 0 };
    while ((algorithm = next_algorithm(&walk, network, kind)) != NULL)
        g_ptr_array_add(names, (gpointer)algorithm->name);
    g_autofree char *known = mtf_there_are(name, names);
    return mtf_input_error(error, "\"%s\" is not an algorithm for %s here%s", name,
                           mtf_collective_kind_name(kind), known);
}

bool mtf_collective_named(const MtfNetwork *network, MtfCollective *collective, const char *name,
                          MtfCollectivePrice *price, GError **error) {
    g_autofree char *bare = bare_name(network, name, collective);
    const MtfCollectiveAlgorithm *algorithm = find_algorithm(network, collective->kind, bare);
    if (algorithm == NULL)
        return fail_unknown(network, collective->kind, name, error);
    MtfNetwork group;
    MtfCollectivePrice found = { .algorithm = "none", .seconds = 0 };
    if (mtf_collective_prepare(network, collective, &group))
        found = price_of(algorithm, &group, collective, mtf_collective_bound(network, collective));
    if (isnan(found.seconds))
        return mtf_input_error(error, "algorithm \"%s\" does not apply to %s on this network",
                               algorithm->name, mtf_collective_kind_name(collective->kind));
    if (found.seconds > 0)
        name_parameters(&found, algorithm, collective);
    *price = found;
    return true;
}

/* A halo along one mesh axis that lies on several physical ones: a shift forward and one backward.
 * They use opposite links, unless the fastest axis is a line, where carries run back over it. */
static double folded_halo(const MtfNetwork *group, double bytes) {
    bool wrap = group->axis[group->axes - 1].wrap;
    MtfCollective shift = { .kind = MTF_PERMUTE, .bytes = wrap ? bytes : 2 * bytes, .shift = 1 };
    return mtf_collective_best(group, &shift).seconds;
}

/* As the transport's library runs it; what it builds from sends takes one start more. */
static double transport_seconds(const MtfMachineTransport *transport, const MtfNetwork *group,
                                const MtfCollective *collective) {
    bool gathers = (MTF_KIND_BIT(collective->kind) & MTF_GATHER_KINDS) != 0;
    double alone = gathers ? mtf_nccl_seconds(transport, group, collective->kind, collective->bytes)
                           : mtf_collective_best(group, collective).seconds + transport->base[2];
    return alone * transport->in_training;
}

static double group_seconds(const MtfMachine *machine, const MtfNetwork *group,
                            const MtfCollective *collective) {
    MtfCollectiveKind kind = collective->kind;
    double bytes = collective->bytes, seconds = 0;
    if (group->axes == 0 || bytes <= 0)
        return 0;
    if (machine->curves->len > 0 && mtf_measured_collective(machine, group, kind, bytes, &seconds))
        return seconds;
    if (kind == MTF_HALO && group->axes > 1 && !group->switched)
        return folded_halo(group, bytes);
    if (machine->transport.nccl && group->switched)
        return transport_seconds(&machine->transport, group, collective);
    return mtf_collective_best(group, collective).seconds;
}

double mtf_collective_seconds(const MtfMachine *machine, const MtfMeshMap *map,
                              MtfCollectiveKind kind, unsigned mesh_axes_mask, double bytes) {
    if (kind == MTF_PERMUTE)
        return mtf_permute_seconds(machine, map, mesh_axes_mask, bytes, 1);
    MtfNetwork group = kind == MTF_HALO ? mtf_mesh_map_neighbors(map, mesh_axes_mask)
                                        : mtf_mesh_map_group(map, mesh_axes_mask);
    MtfCollective collective = { .kind = kind, .bytes = bytes };
    return group_seconds(machine, &group, &collective);
}

double mtf_permute_seconds(const MtfMachine *machine, const MtfMeshMap *map,
                           unsigned mesh_axes_mask, double bytes, int64_t shift) {
    MtfNetwork group = mtf_mesh_map_neighbors(map, mesh_axes_mask);
    MtfCollective collective = { .kind = MTF_PERMUTE, .bytes = bytes, .shift = shift };
    return group_seconds(machine, &group, &collective);
}

/* The mean number of hops from a rank to a member of its group, itself included. */
static double mean_hops(const MtfNetwork *network) {
    double hops = 0;
    for (int d = 0; d < network->axes; d++) {
        double n = (double)network->axis[d].size;
        if (network->switched)
            hops += (n - 1) / n;
        else if (network->axis[d].wrap)
            hops += network->axis[d].size % 2 == 0 ? n / 4 : (n * n - 1) / (4 * n);
        else
            hops += (n * n - 1) / (3 * n);
    }
    return hops;
}

double mtf_collective_link_bytes(const MtfMeshMap *map, MtfCollectiveKind kind,
                                 unsigned mesh_axes_mask, double bytes) {
    MtfNetwork group = mtf_mesh_map_group(map, mesh_axes_mask);
    double ranks = (double)mtf_network_ranks(&group);
    if (ranks == 1)
        return 0;
    switch (kind) {
    case MTF_ALLREDUCE:
        return 2 * (ranks - 1) / ranks * bytes;
    case MTF_ALLTOALL:
        return mean_hops(&group) * bytes;
    default:
        return (ranks - 1) / ranks * bytes;
    }
}
