// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/transfer/route_price.h"

#include "cost/collectives/measured_collective.h"

#include <math.h>

/* More receivers of one part do not gather it: each would have as many messages. */
#define MOST_GATHERING 64

/* A transfer's routes (MtfTransferRoute), and the devices where they begin and end. */
typedef struct {
    GArray *routes;
    int first_sender, first_receiver;
    int devices; /* of the whole pipeline */
} Routes;

static int first_device(const MtfPipelinePlan *pipeline, int stage) {
    return mtf_pipeline_first_device(pipeline, pipeline->order->rank_of_stage[stage]);
}

static Routes routes_new(const MtfPipelinePlan *pipeline, int transfer) {
    const MtfStageTransfer *t = mtf_pipeline_transfer(pipeline, transfer);
    return (Routes){ mtf_pipeline_routes(pipeline, transfer), first_device(pipeline, t->from),
                     first_device(pipeline, t->to), mtf_pipeline_devices(pipeline) };
}

static const MtfTransferRoute *route_at(const Routes *routes, guint i) {
    return &g_array_index(routes->routes, MtfTransferRoute, i);
}

static int sender_of(const Routes *routes, guint i) {
    const MtfTransferRoute *route = route_at(routes, i);
    return (route->inside ? routes->first_receiver : routes->first_sender) + route->sender;
}

static int receiver_of(const Routes *routes, guint i) {
    return routes->first_receiver + route_at(routes, i)->receiver;
}

/* ---- Within hosts -------------------------------------------------------------------------- */

/* The host of a device: the innermost switch; of a torus each is its own. */
static int64_t host_of(const MtfMachine *machine, int device) {
    const MtfNetwork *network = &machine->network;
    int64_t devices = network->switched ? network->axis[network->axes - 1].size : 1;
    return devices > 0 ? device / devices : 0;
}

static bool stay_in_hosts(const Routes *routes, const MtfMachine *machine) {
    for (guint i = 0; i < routes->routes->len; i++)
        if (host_of(machine, sender_of(routes, i)) != host_of(machine, receiver_of(routes, i)))
            return false;
    return true;
}

/* What the device that sends or receives most has of it. */
static double most_bytes(const Routes *routes) {
    g_autofree double *sent = g_new0(double, routes->devices);
    g_autofree double *received = g_new0(double, routes->devices);
    double most = 0;
    for (guint i = 0; i < routes->routes->len; i++) {
        double *out = &sent[sender_of(routes, i)], *in = &received[receiver_of(routes, i)];
        *out += (double)route_at(routes, i)->bytes;
        *in += (double)route_at(routes, i)->bytes;
        most = fmax(most, fmax(*out, *in));
    }
    return most;
}

/* Of what is gathered nothing was measured. */
static bool measured(const Routes *routes, const MtfMachine *machine, MtfTransferWay way,
                     double *seconds) {
    MtfExchangeAlgorithm algorithm =
        way == MTF_TRANSFER_MPI ? MTF_EXCHANGE_MPI : MTF_EXCHANGE_DIRECT;
    return way != MTF_TRANSFER_GATHERED && mtf_measures_collective(machine, MTF_P2P) &&
           stay_in_hosts(routes, machine) &&
           mtf_measured_algorithm(machine, MTF_P2P, 2, algorithm, most_bytes(routes), seconds);
}

/* ---- Over links ---------------------------------------------------------------------------- */

/* Of a machine that has no such slice all devices are one switch's, that of the outermost links. */
static void network_of(const MtfMachine *machine, int devices, MtfNetwork *network) {
    if (mtf_machine_slice(machine, devices, network, NULL))
        return;
    *network = machine->network;
    network->switched = true;
    network->axes = 1;
    network->axis[0].size = devices;
}

/* The routes between the stages, or those inside the one that receives. */
static MtfRoutePrice link_price(const Routes *routes, const MtfNetwork *network, bool inside) {
    MtfRouteLoads loads;
    mtf_route_loads_init(&loads, network);
    for (guint i = 0; i < routes->routes->len; i++)
        if (route_at(routes, i)->inside == inside)
            mtf_route_loads_add(&loads, sender_of(routes, i), receiver_of(routes, i),
                                (double)route_at(routes, i)->bytes);
    MtfRoutePrice price = { .busiest = mtf_route_loads_busiest(&loads) };
    price.seconds = loads.route_seconds + price.busiest.seconds;
    mtf_route_loads_clear(&loads);
    return price;
}

static MtfRoutePrice price_of(const Routes *routes, const MtfMachine *machine, MtfTransferWay way) {
    MtfRoutePrice price = { .copied = way == MTF_TRANSFER_DIRECT };
    if (measured(routes, machine, way, &price.seconds))
        return price;
    MtfNetwork network;
    network_of(machine, routes->devices, &network);
    price = link_price(routes, &network, false);
    if (way == MTF_TRANSFER_GATHERED)
        price.seconds += link_price(routes, &network, true).seconds;
    return price;
}

/* ---- Of a pipeline ------------------------------------------------------------------------- */

MtfRoutePrice mtf_pipeline_transfer_price(const MtfPipelinePlan *pipeline, int transfer,
                                          const MtfMachine *machine) {
    MtfTransferWay way = (MtfTransferWay)mtf_pipeline_transfer(pipeline, transfer)->way;
    Routes routes = routes_new(pipeline, transfer);
    MtfRoutePrice price = price_of(&routes, machine, way);
    g_array_unref(routes.routes);
    return price;
}

MtfRoutePrice *mtf_pipeline_transfer_prices(const MtfPipelinePlan *pipeline,
                                            const MtfMachine *machine) {
    int n = mtf_pipeline_transfers(pipeline);
    MtfRoutePrice *prices = g_new0(MtfRoutePrice, n + 1);
    for (int i = 0; i < n; i++)
        prices[i] = mtf_pipeline_transfer_price(pipeline, i, machine);
    return prices;
}

void mtf_pipeline_network(const MtfPipelinePlan *pipeline, const MtfMachine *machine,
                          MtfNetwork *network) {
    network_of(machine, mtf_pipeline_devices(pipeline), network);
}

/* Bytes a second into a child of a level; of a torus into a device by all its links. */
static double inward_bandwidth(const MtfNetwork *network, int level) {
    double bandwidth = 0;
    for (int d = 0; !network->switched && d < network->axes; d++)
        bandwidth += (network->axis[d].wrap ? 2 : 1) * network->axis[d].bandwidth;
    return network->switched ? network->axis[level].bandwidth : bandwidth;
}

/* "3 0:4,8:16": the child that a route enters and what of the tensor; NULL where it comes from within. */
static char *entry_of(const Routes *routes, guint i, int64_t child_devices) {
    int64_t from = sender_of(routes, i) / child_devices,
            to = receiver_of(routes, i) / child_devices;
    if (from == to)
        return NULL;
    GString *text = g_string_new(NULL);
    g_string_append_printf(text, "%" G_GINT64_FORMAT, to);
    for (int d = 0; d < MTF_MAX_RANK; d++)
        g_string_append_printf(text, " %" G_GINT64_FORMAT ":%" G_GINT64_FORMAT,
                               route_at(routes, i)->range[d].begin,
                               route_at(routes, i)->range[d].end);
    return g_string_free(text, FALSE);
}

/* The most bytes that enter one child of `child_devices` devices, each element once. */
static double most_entering(const Routes *routes, int64_t child_devices) {
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autofree double *bytes = g_new0(double, routes->devices / child_devices + 1);
    double most = 0;
    for (guint i = 0; i < routes->routes->len; i++) {
        char *entry = entry_of(routes, i, child_devices);
        if (entry == NULL || !g_hash_table_add(seen, entry))
            continue;
        double *sum = &bytes[receiver_of(routes, i) / child_devices];
        *sum += (double)route_at(routes, i)->bytes;
        most = fmax(most, *sum);
    }
    return most;
}

static double least_latency(const MtfNetwork *network) {
    double least = network->axis[0].latency;
    for (int d = 1; d < network->axes; d++)
        least = fmin(least, network->axis[d].latency);
    return least;
}

double mtf_pipeline_transfer_bound(const MtfPipelinePlan *pipeline, int transfer,
                                   const MtfNetwork *network) {
    MtfStageTransfer *t = mtf_pipeline_transfer(pipeline, transfer);
    int way = t->way, levels = network->switched ? network->axes : 1;
    t->way = MTF_TRANSFER_DIRECT;
    Routes routes = routes_new(pipeline, transfer);
    t->way = way;
    double bound = 0;
    int64_t devices = 1;
    for (int d = levels - 1; d >= 0; d--) {
        bound = fmax(bound, most_entering(&routes, devices) / inward_bandwidth(network, d));
        devices *= network->axis[d].size;
    }
    g_array_unref(routes.routes);
    return bound > 0 ? bound + least_latency(network) : 0;
}

/* Whether the other way may be had there at all, given the routes of the direct one. */
static bool may_go(const MtfPipelinePlan *pipeline, int transfer, const MtfMachine *machine,
                   MtfTransferWay way) {
    MtfTransferSide to = mtf_pipeline_receiver(pipeline, transfer);
    Routes routes = routes_new(pipeline, transfer);
    bool within = stay_in_hosts(&routes, machine);
    g_array_unref(routes.routes);
    if (way == MTF_TRANSFER_MPI)
        return within && mtf_measures_collective(machine, MTF_P2P);
    int alike = within ? 0 : mtf_transfer_most_alike(&to);
    return alike > 1 && alike <= MOST_GATHERING;
}

static void choose(MtfPipelinePlan *pipeline, int transfer, const MtfMachine *machine) {
    MtfStageTransfer *t = mtf_pipeline_transfer(pipeline, transfer);
    int best = t->way = MTF_TRANSFER_DIRECT;
    double least = mtf_pipeline_transfer_price(pipeline, transfer, machine).seconds;
    for (int way = MTF_TRANSFER_DIRECT + 1; way < MTF_TRANSFER_WAYS; way++) {
        t->way = MTF_TRANSFER_DIRECT;
        if (!may_go(pipeline, transfer, machine, (MtfTransferWay)way))
            continue;
        t->way = way;
        double seconds = mtf_pipeline_transfer_price(pipeline, transfer, machine).seconds;
        if (seconds < least) {
            least = seconds;
            best = way;
        }
    }
    t->way = best;
}

void mtf_pipeline_choose_transfers(MtfPipelinePlan *pipeline, const MtfMachine *machine) {
    for (int i = 0; i < mtf_pipeline_transfers(pipeline); i++)
        choose(pipeline, i, machine);
}
