// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/serving/cache_handover.h"

#include "analyzer/transfers/transfer_plan.h"

#include <math.h>
#include <string.h>

/* One cache as both plans hold it. Zeroed before it is filled, so that equal ones have equal bytes. */
typedef struct {
    MtfTransferShape shape;
    MtfTransferEnd from, to;
    int64_t element_bytes;
} Cache;

typedef struct {
    double seconds, bytes;
} Handover;

/* How a plan holds a tensor: the axes that split a dimension, ascending, are major to minor. */
static MtfTransferEnd end_of(const MtfPlan *plan, int tensor, int first_device) {
    const MtfLayout *layout = plan->layout;
    const MtfShape *shape = &mtf_graph_tensor(plan->graph, tensor)->shape;
    MtfTransferEnd end;
    memset(&end, 0, sizeof end);
    end.mesh.n_axes = layout->mesh.n_axes;
    for (int a = 0; a < layout->mesh.n_axes; a++)
        end.mesh.axes[a].size = layout->mesh.axes[a].size;
    end.first_device = first_device;
    for (int d = 0; d < shape->rank; d++)
        for (int a = 0; a < layout->mesh.n_axes; a++)
            if (layout->tensors[tensor].axis[a] == shape->dims[d])
                end.axis[d][end.axes[d]++] = (int8_t)a;
    return end;
}

static Cache cache_of(const MtfPlan *prefill, int from, const MtfPlan *decode, int to) {
    const MtfTensor *tensor = mtf_graph_tensor(decode->graph, to);
    Cache cache;
    memset(&cache, 0, sizeof cache);
    cache.shape.dimensions = tensor->shape.rank;
    for (int d = 0; d < tensor->shape.rank; d++)
        cache.shape.size[d] = mtf_graph_size(decode->graph, tensor->shape.dims[d]);
    cache.from = end_of(prefill, from, 0);
    cache.to = end_of(decode, to, mtf_mesh_size(&prefill->layout->mesh));
    cache.element_bytes = mtf_dtype_bytes(tensor->dtype);
    return cache;
}

/* The machine as its links join that many devices: those of one host are hosts of their own. */
static MtfMachine joined_by(const MtfMachine *machine, int devices) {
    MtfMachine view = *machine;
    const MtfNetworkAxis *inner = &machine->network.axis[machine->network.axes - 1];
    if (machine->network.switched && machine->network.axes > 1 && devices <= inner->size) {
        view.network.axes = 1;
        view.network.axis[0] = *inner;
    }
    return view;
}

static bool price_cache(const Cache *cache, const MtfMachine *machine, Handover *handover,
                        GError **error) {
    g_autoptr(MtfTransferPlan) plan = mtf_transfer_plan_new(
        &cache->shape, cache->element_bytes, &cache->from, &cache->to, machine, 0, error);
    if (plan == NULL)
        return false;
    handover->seconds = plan->way[plan->best].order->makespan;
    handover->bytes = plan->bytes_across;
    return true;
}

/* The layers' caches are mostly alike: each kind is planned once. */
static const Handover *handover_of(GHashTable *known, const Cache *cache, const MtfMachine *machine,
                                   GError **error) {
    g_autoptr(GBytes) key = g_bytes_new(cache, sizeof *cache);
    Handover *found = g_hash_table_lookup(known, key);
    if (found != NULL)
        return found;
    g_autofree Handover *priced = g_new0(Handover, 1);
    if (!price_cache(cache, machine, priced, error))
        return NULL;
    found = g_steal_pointer(&priced);
    g_hash_table_insert(known, g_steal_pointer(&key), found);
    return found;
}

double mtf_cache_handover_seconds(const MtfInferencePhase *prefill, const MtfInferencePhase *decode,
                                  const MtfMachine *machine, double filled, double *bytes,
                                  GError **error) {
    const MtfGraph *graph = decode->plan->graph;
    MtfMachine links = joined_by(machine, mtf_mesh_size(&prefill->plan->layout->mesh) +
                                              mtf_mesh_size(&decode->plan->layout->mesh));
    g_autoptr(GHashTable) known =
        g_hash_table_new_full(g_bytes_hash, g_bytes_equal, (GDestroyNotify)g_bytes_unref, g_free);
    double seconds = 0;
    *bytes = 0;
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(graph, t);
        int from = tensor->memory == MTF_MEMORY_CACHE
                       ? mtf_graph_find_tensor(prefill->plan->graph, tensor->name)
                       : -1;
        if (from < 0)
            continue;
        Cache cache = cache_of(prefill->plan, from, decode->plan, t);
        const Handover *handover = handover_of(known, &cache, &links, error);
        if (handover == NULL)
            return NAN;
        seconds += filled * handover->seconds;
        *bytes += filled * handover->bytes;
    }
    return seconds;
}
