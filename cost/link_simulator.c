// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/link_simulator.h"

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
    double *delivered; /* when each transfer was */
} Play;

static bool is_before(const Delivery *a, const Delivery *b) {
    return a->seconds < b->seconds || (a->seconds == b->seconds && a->transfer < b->transfer);
}

static void push(Play *play, Delivery delivery) {
    int i = play->in_heap++;
    while (i > 0 && is_before(&delivery, &play->heap[(i - 1) / 2])) {
        play->heap[i] = play->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    play->heap[i] = delivery;
}

static Delivery pop(Play *play) {
    Delivery top = play->heap[0], last = play->heap[--play->in_heap];
    int i = 0;
    for (int child = 1; child < play->in_heap; child = 2 * i + 1) {
        if (child + 1 < play->in_heap && is_before(&play->heap[child + 1], &play->heap[child]))
            child++;
        if (!is_before(&play->heap[child], &last))
            break;
        play->heap[i] = play->heap[child];
        i = child;
    }
    play->heap[i] = last;
    return top;
}

static int by_number(const void *a, const void *b) {
    return *(const int *)a - *(const int *)b;
}

/* Counting sort of the orders by their earlier transfer, followers by number. */
static void index_followers(Play *play, int count) {
    const GArray *orders = play->simulator->orders;
    for (guint i = 0; i < orders->len; i++) {
        const Order *order = &g_array_index(orders, Order, i);
        play->first[order->earlier + 1]++;
        play->missing[order->later]++;
    }
    for (int i = 0; i < count; i++)
        play->first[i + 1] += play->first[i];
    g_autofree int *filled = g_new0(int, count + 1);
    for (guint i = 0; i < orders->len; i++) {
        const Order *order = &g_array_index(orders, Order, i);
        play->next[play->first[order->earlier] + filled[order->earlier]++] = order->later;
    }
    for (int i = 0; i < count; i++)
        qsort(play->next + play->first[i], (size_t)filled[i], sizeof *play->next, by_number);
}

/* Transfer `i` is ready at `seconds`: its link serves it as soon as it is free. */
static void start(Play *play, int i, double seconds) {
    const Transfer *transfer = transfer_at(play->simulator, i);
    if (transfer->rank >= 0) {
        const MtfNetwork *network = &play->simulator->network;
        const MtfNetworkAxis *axis = &network->axis[transfer->axis];
        double *free_at = &play->link_free[(transfer->rank * network->axes + transfer->axis) * 2 +
                                           transfer->forward];
        *free_at = MAX(*free_at, seconds) + transfer->bytes / axis->bandwidth;
        seconds = *free_at + axis->latency;
    }
    push(play, (Delivery){ .seconds = seconds, .transfer = i });
}

static double run_all(Play *play, int count) {
    double seconds = 0;
    int delivered = 0;
    for (int i = 0; i < count; i++)
        if (play->missing[i] == 0)
            start(play, i, 0);
    while (play->in_heap > 0) {
        Delivery delivery = pop(play);
        seconds = delivery.seconds;
        play->delivered[delivery.transfer] = seconds;
        delivered++;
        for (int f = play->first[delivery.transfer]; f < play->first[delivery.transfer + 1]; f++)
            if (--play->missing[play->next[f]] == 0)
                start(play, play->next[f], seconds);
    }
    g_assert(delivered == count);
    return seconds;
}

/* Plays and notes each delivery's time in `delivered`. */
static double run_noting(const MtfLinkSimulator *simulator, double *delivered) {
    int count = (int)simulator->transfers->len;
    int64_t links = mtf_network_ranks(&simulator->network) * simulator->network.axes * 2;
    Play play = {
        .simulator = simulator,
        .heap = g_new(Delivery, count + 1),
        .missing = g_new0(int, count + 1),
        .first = g_new0(int, count + 1),
        .next = g_new(int, simulator->orders->len + 1),
        .link_free = g_new0(double, links + 1),
        .delivered = delivered,
    };
    index_followers(&play, count);
    double seconds = run_all(&play, count);
    g_free(play.heap);
    g_free(play.missing);
    g_free(play.first);
    g_free(play.next);
    g_free(play.link_free);
    return seconds;
}

double mtf_link_simulator_run(const MtfLinkSimulator *simulator) {
    g_autofree double *delivered = g_new(double, simulator->transfers->len + 1);
    return run_noting(simulator, delivered);
}

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

MtfLinkSimulator *mtf_link_simulator_reverse(const MtfLinkSimulator *simulator) {
    int count = (int)simulator->transfers->len;
    MtfLinkSimulator *reverse = mtf_link_simulator_new(&simulator->network);
    g_autofree double *delivered = g_new(double, count + 1);
    g_autofree Delivery *last_first = g_new(Delivery, count + 1);
    g_autofree int *number = g_new(int, count + 1);
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
