// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/transfer/transfer_price.h"

#include <math.h>

#define CHUNKS_MAX 1024

const char *mtf_transfer_algorithm_name(MtfTransferAlgorithm algorithm) {
    static const char *const names[MTF_TRANSFER_ALGORITHMS] = {
        [MTF_TRANSFER_BROADCAST] = "broadcast",
        [MTF_TRANSFER_LOCAL_ALLGATHER] = "local_allgather",
        [MTF_TRANSFER_GLOBAL_ALLGATHER] = "global_allgather",
        [MTF_TRANSFER_SEND_RECEIVE] = "send_receive",
    };
    return names[algorithm];
}

bool mtf_transfer_hosts(const MtfMachine *machine, int64_t devices, MtfTransferHosts *hosts,
                        GError **error) {
    MtfNetwork slice;
    if (!mtf_machine_slice(machine, devices, &slice, error))
        return false;
    const MtfNetwork *all = &machine->network;
    int last = all->axes - 1;
    double links = machine->derate.links;
    *hosts = (MtfTransferHosts){ .devices = 1 };
    if (!all->switched)
        for (int d = 0; d < all->axes; d++) {
            hosts->bytes_per_second += all->axis[d].bandwidth * links;
            hosts->latency = MAX(hosts->latency, all->axis[d].latency);
        }
    else {
        const MtfNetworkAxis *level = &all->axis[MAX(last - 1, 0)];
        hosts->devices = last > 0 ? (int)all->axis[last].size : 1;
        hosts->bytes_per_second = level->bandwidth * links;
        hosts->latency = level->latency;
    }
    hosts->latency += all->message_seconds;
    return true;
}

/* The hosts of a list of devices, each once, ascending. */
static GArray *hosts_of(const GArray *devices, int devices_of_host) {
    GArray *hosts = g_array_new(FALSE, FALSE, sizeof(int));
    for (guint i = 0; i < devices->len; i++) {
        int host = g_array_index(devices, int, i) / devices_of_host;
        if (hosts->len == 0 || g_array_index(hosts, int, hosts->len - 1) != host)
            g_array_append_val(hosts, host);
    }
    return hosts;
}

static bool contains(const GArray *numbers, int number) {
    for (guint i = 0; i < numbers->len; i++)
        if (g_array_index(numbers, int, i) == number)
            return true;
    return false;
}

static void free_move(gpointer data) {
    MtfTransferMove *move = data;
    g_array_unref(move->senders);
    g_array_unref(move->receivers);
    g_array_unref(move->boxes);
    g_free(move);
}

/* Receivers on a host that holds the box already get it there. */
static MtfTransferMove *move_of_box(const MtfTransferBox *box, int number, int64_t element_bytes,
                                    int devices_of_host) {
    MtfTransferMove *move = g_new(MtfTransferMove, 1);
    g_autoptr(GArray) away = g_array_new(FALSE, FALSE, sizeof(int));
    move->bytes = box->elements * element_bytes;
    move->senders = hosts_of(box->senders, devices_of_host);
    for (guint i = 0; i < box->receivers->len; i++) {
        int device = g_array_index(box->receivers, int, i);
        if (!contains(move->senders, device / devices_of_host))
            g_array_append_val(away, device);
    }
    move->devices = (int)away->len;
    move->receivers = hosts_of(away, devices_of_host);
    move->boxes = g_array_new(FALSE, FALSE, sizeof(int));
    g_array_append_val(move->boxes, number);
    return move;
}

/* "0,1>2,3:8", equal for moves that go the same way. */
static char *way_of(const MtfTransferMove *move) {
    GString *way = g_string_new(NULL);
    for (guint i = 0; i < move->senders->len; i++)
        g_string_append_printf(way, "%d,", g_array_index(move->senders, int, i));
    g_string_append_c(way, '>');
    for (guint i = 0; i < move->receivers->len; i++)
        g_string_append_printf(way, "%d,", g_array_index(move->receivers, int, i));
    g_string_append_printf(way, ":%d", move->devices);
    return g_string_free(way, FALSE);
}

static GPtrArray *join_moves(const GPtrArray *moves) {
    GPtrArray *joined = g_ptr_array_new_with_free_func(free_move);
    g_autoptr(GHashTable) known = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (guint i = 0; i < moves->len; i++) {
        const MtfTransferMove *move = g_ptr_array_index(moves, i);
        g_autofree char *way = way_of(move);
        MtfTransferMove *same = g_hash_table_lookup(known, way);
        if (same != NULL) {
            same->bytes += move->bytes;
            g_array_append_vals(same->boxes, move->boxes->data, move->boxes->len);
            continue;
        }
        same = g_memdup2(move, sizeof *move);
        same->senders = g_array_ref(move->senders);
        same->receivers = g_array_ref(move->receivers);
        same->boxes = g_array_copy(move->boxes);
        g_ptr_array_add(joined, same);
        g_hash_table_insert(known, g_steal_pointer(&way), same);
    }
    return joined;
}

GPtrArray *mtf_transfer_moves(const GPtrArray *boxes, int64_t element_bytes, int devices_of_host,
                              guint most) {
    GPtrArray *moves = g_ptr_array_new_with_free_func(free_move);
    for (guint i = 0; i < boxes->len; i++)
        g_ptr_array_add(moves, move_of_box(g_ptr_array_index(boxes, i), (int)i, element_bytes,
                                           devices_of_host));
    if (moves->len <= most)
        return moves;
    GPtrArray *joined = join_moves(moves);
    g_ptr_array_unref(moves);
    return joined;
}

int mtf_transfer_chunks(const MtfTransferHosts *hosts, double bytes, int receivers) {
    double t = bytes / hosts->bytes_per_second;
    if (hosts->latency <= 0)
        return CHUNKS_MAX;
    return (int)CLAMP(round(sqrt(receivers * t / hosts->latency)), 1, CHUNKS_MAX);
}

double mtf_transfer_sent_bytes(MtfTransferAlgorithm algorithm, const MtfTransferMove *move) {
    double bytes = (double)move->bytes;
    if (move->receivers->len == 0)
        return 0;
    if (algorithm == MTF_TRANSFER_SEND_RECEIVE)
        return bytes * move->devices;
    return algorithm == MTF_TRANSFER_LOCAL_ALLGATHER ? bytes * move->receivers->len : bytes;
}

double mtf_transfer_move_seconds(MtfTransferAlgorithm algorithm, const MtfTransferMove *move,
                                 const MtfTransferHosts *hosts, int chunks) {
    double t = (double)move->bytes / hosts->bytes_per_second, latency = hosts->latency;
    double receivers = move->receivers->len, devices = move->devices;
    if (move->receivers->len == 0)
        return 0;
    switch (algorithm) {
    case MTF_TRANSFER_SEND_RECEIVE:
        return devices * (t + latency);
    case MTF_TRANSFER_LOCAL_ALLGATHER:
        return receivers * (t + latency);
    case MTF_TRANSFER_GLOBAL_ALLGATHER:
        return t + latency + (receivers > 1 ? (devices - 1) * (t / devices + latency) : 0);
    default:
        return t + receivers * t / chunks + (chunks + receivers) * latency;
    }
}
