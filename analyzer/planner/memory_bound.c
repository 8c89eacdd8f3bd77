// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/planner/memory_bound.h"

#include "layouts/graph/microbatches.h"
#include "layouts/graph/operation_table.h"

/* Operations [first, end) at which a tensor is live for sure. */
typedef struct {
    int first, end;
} Life;

/* A result may lie where an input that dies with its last reader lay, and in the storage of a
 * variable whose next value it is. */
static Life life_of(const MtfGraph *graph, const MtfConsumers *consumers, int repeated,
                    int tensor) {
    const MtfTensor *t = mtf_graph_tensor(graph, tensor);
    int n = (int)graph->operations->len;
    int readers = consumers->starts[tensor + 1] - consumers->starts[tensor];
    if (t->producer < 0)
        return (Life){ 0, n };
    Life life = { t->producer, t->producer };
    if (readers > 0) {
        int last = consumers->operations[consumers->starts[tensor + 1] - 1];
        const MtfOperation *op = mtf_graph_operation(graph, last);
        life.end = last + (mtf_operation_row(op->kind)->in_place == 0);
    }
    if (mtf_operation_accumulates(graph, t->producer))
        life = (Life){ 0, MAX(life.end, repeated) };
    return life;
}

static bool *find_updates(const MtfGraph *graph) {
    bool *updates = g_new0(bool, graph->tensors->len + 1);
    for (guint i = 0; i < graph->updates->len; i++)
        updates[g_array_index(graph->updates, MtfUpdate, i).value] = true;
    return updates;
}

/* Of the first 1, 2, … n changes the largest sum. */
static int64_t largest_sum(const int64_t *changes, int n) {
    int64_t sum = changes[0], most = sum;
    for (int i = 1; i < n; i++) {
        sum += changes[i];
        most = MAX(most, sum);
    }
    return most;
}

int64_t mtf_memory_bound(const MtfGraph *graph, int devices) {
    int n = (int)graph->operations->len, repeated = mtf_graph_repeated(graph);
    g_autoptr(MtfConsumers) consumers = mtf_graph_consumers(graph);
    g_autofree bool *updates = find_updates(graph);
    g_autofree int64_t *live = g_new0(int64_t, n + 2);
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        if (updates[t] || mtf_tensor_is_on_host(graph, t))
            continue;
        Life life = life_of(graph, consumers, repeated, t);
        int64_t part = (mtf_graph_tensor_bytes(graph, t) + devices - 1) / devices;
        live[life.first] += part;
        live[life.end] -= part;
    }
    return largest_sum(live, n);
}
