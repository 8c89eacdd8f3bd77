// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/simulate/link_simulator.h"

#include <stdlib.h>

typedef struct {
    int64_t rank; /* -1: a join */
    int axis;
    bool forward;
    double bytes;
} Transfer;

typedef struct {
    int earlier, later;
} Order;

struct MtfLinkSimulator {
    MtfNetwork network;
    GArray *transfers; /* of Transfer */
    GArray *orders;    /* of Order */
    bool in_turn;      /* links serve by number, and wait for who is next */
};

MtfLinkSimulator *mtf_link_simulator_new(const MtfNetwork *network) {
    MtfLinkSimulator *simulator = g_new0(MtfLinkSimulator, 1);
    g_assert(mtf_network_ranks(network) <= 1 << 20);
    simulator->network = *network;
    simulator->transfers = g_array_new(FALSE, FALSE, sizeof(Transfer));
    simulator->orders = g_array_new(FALSE, FALSE, sizeof(Order));
    return simulator;
}

void mtf_link_simulator_free(MtfLinkSimulator *simulator) {
    if (simulator == NULL)
        return;
    g_array_unref(simulator->transfers);
    g_array_unref(simulator->orders);
    g_free(simulator);
}

static const Transfer *transfer_at(const MtfLinkSimulator *simulator, int i) {
    return &g_array_index(simulator->transfers, Transfer, i);
}

int64_t mtf_network_neighbor(const MtfNetwork *network, int64_t rank, int axis, bool forward) {
    int64_t stride = 1, n = network->axis[axis].size;
    for (int d = network->axes - 1; d > axis; d--)
        stride *= network->axis[d].size;
    int64_t at = rank / stride % n, next = at + (forward ? 1 : -1);
    if (next < 0 || next >= n) {
        if (!network->axis[axis].wrap)
            return -1;
        next = (next + n) % n;
    }
    return rank + (next - at) * stride;
}

int mtf_link_simulator_send(MtfLinkSimulator *simulator, int64_t rank, int axis, bool forward,
                            double bytes) {
    g_assert(mtf_network_neighbor(&simulator->network, rank, axis, forward) >= 0);
    Transfer transfer = { .rank = rank, .axis = axis, .forward = forward, .bytes = bytes };
    g_array_append_val(simulator->transfers, transfer);
    return (int)simulator->transfers->len - 1;
}

int mtf_link_simulator_join(MtfLinkSimulator *simulator) {
    Transfer join = { .rank = -1 };
    g_array_append_val(simulator->transfers, join);
    return (int)simulator->transfers->len - 1;
}

void mtf_link_simulator_order(MtfLinkSimulator *simulator, int earlier, int later) {
    Order order = { .earlier = earlier, .later = later };
    if (earlier >= 0)
        g_array_append_val(simulator->orders, order);
}

/* Playing. Deliveries wait in a binary heap by time, the lower number first among equals. */
typedef struct {
    double seconds;
    int transfer;
} Delivery;

typedef struct {
    const MtfLinkSimulator *simulator;
    Delivery *heap;
    int in_heap;
    int *missing;      /* deliveries each transfer still waits for */
    int *first, *next; /* each transfer's followers: next[first[i]] … next[first[i + 1] - 1] */
    double *link_free; /* when each link can serve again */
    int *link_next;    /* the transfer that each link must serve next, where they serve in turn */
    int *behind;       /* the transfer that the link serves after this one, or -1 */
    double *ready;     /* when each transfer became ready; -1: not yet */
    double *delivered; /* when each transfer was */
} Simulation;

static bool is_before(const Delivery *a, const Delivery *b) {
    return a->seconds < b->seconds || (a->seconds == b->seconds && a->transfer < b->transfer);
}

static void push(Simulation *simulate, Delivery delivery) {
    int i = simulate->in_heap++;
    while (i > 0 && is_before(&delivery, &simulate->heap[(i - 1) / 2])) {
        simulate->heap[i] = simulate->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    simulate->heap[i] = delivery;
}

static Delivery pop(Simulation *simulate) {
    Delivery top = simulate->heap[0], last = simulate->heap[--simulate->in_heap];
    int i = 0;
    for (int child = 1; child < simulate->in_heap; child = 2 * i + 1) {
        if (child + 1 < simulate->in_heap &&
            is_before(&simulate->heap[child + 1], &simulate->heap[child]))
            child++;
        if (!is_before(&simulate->heap[child], &last))
            break;
        simulate->heap[i] = simulate->heap[child];
        i = child;
    }
    simulate->heap[i] = last;
    return top;
}

static int by_number(const void *a, const void *b) {
    return *(const int *)a - *(const int *)b;
}

/* Counting sort of the orders by their earlier transfer, followers by number. */
static void index_followers(Simulation *simulate, int count) {
    const GArray *orders = simulate->simulator->orders;
    for (guint i = 0; i < orders->len; i++) {
        const Order *order = &g_array_index(orders, Order, i);
        simulate->first[order->earlier + 1]++;
        simulate->missing[order->later]++;
    }
    for (int i = 0; i < count; i++)
        simulate->first[i + 1] += simulate->first[i];
    g_autofree int *filled = g_new0(int, count + 1);
    for (guint i = 0; i < orders->len; i++) {
        const Order *order = &g_array_index(orders, Order, i);
        simulate->next[simulate->first[order->earlier] + filled[order->earlier]++] = order->later;
    }
    for (int i = 0; i < count; i++)
        qsort(simulate->next + simulate->first[i], (size_t)filled[i], sizeof *simulate->next,
              by_number);
}

static int64_t link_of(const MtfNetwork *network, const Transfer *transfer) {
    return (transfer->rank * network->axes + transfer->axis) * 2 + transfer->forward;
}

/* The link serves transfer `i`, ready at `seconds`, as soon as it is free. */
static void serve(Simulation *simulate, int i, double seconds) {
    const Transfer *transfer = transfer_at(simulate->simulator, i);
    const MtfNetwork *network = &simulate->simulator->network;
    const MtfNetworkAxis *axis = &network->axis[transfer->axis];
    double *free_at = &simulate->link_free[link_of(network, transfer)];
    *free_at = MAX(*free_at, seconds) + transfer->bytes / axis->bandwidth;
    push(simulate, (Delivery){ .seconds = *free_at + axis->latency, .transfer = i });
}

/* Serves transfer `i` if it is its turn, and those behind it that are ready. */
static void serve_in_turn(Simulation *simulate, int i) {
    int *next = &simulate->link_next[link_of(&simulate->simulator->network,
                                             transfer_at(simulate->simulator, i))];
    while (*next >= 0 && simulate->ready[*next] >= 0) {
        int served = *next;
        *next = simulate->behind[served];
        serve(simulate, served, simulate->ready[served]);
    }
}

/* Transfer `i` is ready at `seconds`. */
static void start(Simulation *simulate, int i, double seconds) {
    if (transfer_at(simulate->simulator, i)->rank < 0) {
        push(simulate, (Delivery){ .seconds = seconds, .transfer = i });
    } else if (simulate->simulator->in_turn) {
        simulate->ready[i] = seconds;
        serve_in_turn(simulate, i);
    } else {
        serve(simulate, i, seconds);
    }
}

/* Lines the transfers of each link up by number. */
static void line_up(Simulation *simulate, int count, int64_t links) {
    for (int64_t link = 0; link < links; link++)
        simulate->link_next[link] = -1;
    for (int i = count - 1; i >= 0; i--) {
        const Transfer *transfer = transfer_at(simulate->simulator, i);
        simulate->ready[i] = -1;
        if (transfer->rank < 0)
            continue;
        int *next = &simulate->link_next[link_of(&simulate->simulator->network, transfer)];
        simulate->behind[i] = *next;
        *next = i;
    }
}

static double run_all(Simulation *simulate, int count) {
    double seconds = 0;
    int delivered = 0;
    for (int i = 0; i < count; i++)
        if (simulate->missing[i] == 0)
            start(simulate, i, 0);
    while (simulate->in_heap > 0) {
        Delivery delivery = pop(simulate);
        seconds = delivery.seconds;
        simulate->delivered[delivery.transfer] = seconds;
        delivered++;
        for (int f = simulate->first[delivery.transfer]; f < simulate->first[delivery.transfer + 1];
             f++)
            if (--simulate->missing[simulate->next[f]] == 0)
                start(simulate, simulate->next[f], seconds);
    }
    g_assert(delivered == count);
    return seconds;
}

/* Simulates and notes each delivery's time in `delivered`. */
static double run_noting(const MtfLinkSimulator *simulator, double *delivered) {
    int count = (int)simulator->transfers->len;
    int64_t links = mtf_network_ranks(&simulator->network) * simulator->network.axes * 2;
    Simulation simulate = {
        .simulator = simulator,
        .heap = g_new(Delivery, count + 1),
        .missing = g_new0(int, count + 1),
        .first = g_new0(int, count + 1),
        .next = g_new(int, simulator->orders->len + 1),
        .link_free = g_new0(double, links + 1),
        .link_next = g_new(int, links + 1),
        .behind = g_new(int, count + 1),
        .ready = g_new(double, count + 1),
        .delivered = delivered,
    };
    index_followers(&simulate, count);
    line_up(&simulate, count, links);
    double seconds = run_all(&simulate, count);
    g_free(simulate.heap);
    g_free(simulate.missing);
    g_free(simulate.first);
    g_free(simulate.next);
    g_free(simulate.link_free);
    g_free(simulate.link_next);
    g_free(simulate.behind);
    g_free(simulate.ready);
    return seconds;
}

/* ---- Groups that share links ----------------------------------------------------------------- */

/* One group's algorithm on the axes that all groups share: axis d of the group lies on axis on[d] of
 * the whole. */
typedef struct {
    const MtfLinkSimulator *group;
    MtfLinkSimulator *whole;
    int on[MTF_NETWORK_AXES_MAX];
} Embedding;

static int64_t stride_of(const MtfNetworkAxis *axis) {
    return MAX(1, axis->stride);
}

/* Whether links are shared with other groups: where places are skipped, or two axes lie on one. */
static bool shares_links(const MtfNetwork *network) {
    for (int d = 0; d < network->axes; d++) {
        if (stride_of(&network->axis[d]) > 1)
            return true;
        for (int e = 0; e < d; e++)
            if (network->axis[d].link == network->axis[e].link)
                return true;
    }
    return false;
}

/* The network of all places, an axis for each that the group's axes lie on. */
static MtfNetwork whole_network(const MtfNetwork *group, int *on) {
    MtfNetwork whole = *group;
    whole.axes = 0;
    for (int d = 0; d < group->axes; d++) {
        const MtfNetworkAxis *axis = &group->axis[d];
        on[d] = 0;
        while (on[d] < whole.axes && whole.axis[on[d]].link != axis->link)
            on[d]++;
        if (on[d] < whole.axes)
            continue;
        whole.axis[whole.axes++] = (MtfNetworkAxis){
            .size = axis->places > 0 ? axis->places : axis->size * stride_of(axis),
            .wrap = axis->places > 0 ? axis->closed : axis->wrap,
            .link = axis->link,
            .bandwidth = axis->bandwidth * (double)stride_of(axis),
            .latency = axis->latency / (double)stride_of(axis),
        };
    }
    return whole;
}

static void coordinates(const MtfNetwork *network, int64_t rank, int64_t *at) {
    for (int d = network->axes - 1; d >= 0; d--) {
        at[d] = rank % network->axis[d].size;
        rank /= network->axis[d].size;
    }
}

/* Whether place `at` of the whole is where a group's first member stands. */
static bool begins_group(const Embedding *embedding, const int64_t *at) {
    const MtfNetwork *group = &embedding->group->network;
    for (int d = 0; d < group->axes; d++)
        if (at[embedding->on[d]] / stride_of(&group->axis[d]) % group->axis[d].size != 0)
            return false;
    return true;
}

/* The rank in the whole of a group's member, where the group begins at `base`. */
static int64_t place_of(const Embedding *embedding, const int64_t *base, int64_t member) {
    const MtfNetwork *group = &embedding->group->network, *whole = &embedding->whole->network;
    int64_t in_group[MTF_NETWORK_AXES_MAX], at[MTF_NETWORK_AXES_MAX], rank = 0;
    coordinates(group, member, in_group);
    for (int p = 0; p < whole->axes; p++)
        at[p] = base[p];
    for (int d = 0; d < group->axes; d++)
        at[embedding->on[d]] += in_group[d] * stride_of(&group->axis[d]);
    for (int p = 0; p < whole->axes; p++)
        rank = rank * whole->axis[p].size + at[p];
    return rank;
}

/* Adds one transfer hop by hop; returns its first hop, the last one through `*last`. */
static int embed_transfer(const Embedding *embedding, const int64_t *base, const Transfer *transfer,
                          int *last) {
    if (transfer->rank < 0)
        return *last = mtf_link_simulator_join(embedding->whole);
    int64_t rank = place_of(embedding, base, transfer->rank);
    int axis = embedding->on[transfer->axis], first = -1;
    int64_t hops = stride_of(&embedding->group->network.axis[transfer->axis]);
    for (int64_t hop = 0; hop < hops; hop++) {
        int next = mtf_link_simulator_send(embedding->whole, rank, axis, transfer->forward,
                                           transfer->bytes);
        if (hop > 0)
            mtf_link_simulator_order(embedding->whole, *last, next);
        first = hop == 0 ? next : first;
        *last = next;
        rank = mtf_network_neighbor(&embedding->whole->network, rank, axis, transfer->forward);
    }
    return first;
}

static void embed_group(const Embedding *embedding, const int64_t *base) {
    const MtfLinkSimulator *group = embedding->group;
    guint count = group->transfers->len;
    g_autofree int *first = g_new(int, count + 1), *last = g_new(int, count + 1);
    for (guint i = 0; i < count; i++)
        first[i] = embed_transfer(embedding, base, transfer_at(group, (int)i), &last[i]);
    for (guint i = 0; i < group->orders->len; i++) {
        const Order *order = &g_array_index(group->orders, Order, i);
        mtf_link_simulator_order(embedding->whole, last[order->earlier], first[order->later]);
    }
}

/* The algorithm as all groups simulation it; NULL where no link is shared. */
static MtfLinkSimulator *embed(const MtfLinkSimulator *simulator) {
    if (!shares_links(&simulator->network))
        return NULL;
    Embedding embedding = { .group = simulator };
    MtfNetwork whole = whole_network(&simulator->network, embedding.on);
    embedding.whole = mtf_link_simulator_new(&whole);
    int64_t base[MTF_NETWORK_AXES_MAX];
    for (int64_t rank = 0; rank < mtf_network_ranks(&whole); rank++) {
        coordinates(&whole, rank, base);
        if (begins_group(&embedding, base))
            embed_group(&embedding, base);
    }
    return embedding.whole;
}

double mtf_link_simulator_run(const MtfLinkSimulator *simulator) {
    g_autoptr(MtfLinkSimulator) whole = embed(simulator);
    const MtfLinkSimulator *simulated = whole != NULL ? whole : simulator;
    g_autofree double *delivered = g_new(double, simulated->transfers->len + 1);
    return run_noting(simulated, delivered);
}

/* ---- Backwards ------------------------------------------------------------------------------- */

static int by_falling_delivery(const void *a, const void *b) {
    const Delivery *x = a, *y = b;
    if (x->seconds != y->seconds)
        return x->seconds > y->seconds ? -1 : 1;
    return y->transfer - x->transfer;
}

static void add_reversed(MtfLinkSimulator *reverse, const Transfer *forth) {
    Transfer transfer = *forth;
    if (transfer.rank >= 0) {
        transfer.rank =
            mtf_network_neighbor(&reverse->network, transfer.rank, transfer.axis, transfer.forward);
        transfer.forward = !transfer.forward;
    }
    g_array_append_val(reverse->transfers, transfer);
}

static MtfLinkSimulator *turn_round(const MtfLinkSimulator *simulator) {
    int count = (int)simulator->transfers->len;
    MtfLinkSimulator *reverse = mtf_link_simulator_new(&simulator->network);
    g_autofree double *delivered = g_new(double, count + 1);
    g_autofree Delivery *last_first = g_new(Delivery, count + 1);
    g_autofree int *number = g_new(int, count + 1);
    reverse->in_turn = true;
    run_noting(simulator, delivered);
    for (int i = 0; i < count; i++)
        last_first[i] = (Delivery){ .seconds = delivered[i], .transfer = i };
    qsort(last_first, (size_t)count, sizeof *last_first, by_falling_delivery);
    for (int i = 0; i < count; i++) {
        number[last_first[i].transfer] = i;
        add_reversed(reverse, transfer_at(simulator, last_first[i].transfer));
    }
    for (guint i = 0; i < simulator->orders->len; i++) {
        const Order *order = &g_array_index(simulator->orders, Order, i);
        mtf_link_simulator_order(reverse, number[order->later], number[order->earlier]);
    }
    return reverse;
}

MtfLinkSimulator *mtf_link_simulator_reverse(const MtfLinkSimulator *simulator) {
    g_autoptr(MtfLinkSimulator) whole = embed(simulator);
    return turn_round(whole != NULL ? whole : simulator);
}
