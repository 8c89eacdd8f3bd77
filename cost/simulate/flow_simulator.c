// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/simulate/flow_simulator.h"

#include <math.h>
#include <stdbool.h>

/* Events so close, in relation to the time, are one: what rounding sets apart. */
#define SAME_TIME 1e-12

typedef struct {
    double bytes, latency;
    int links[MTF_FLOW_LINKS_MAX], n_links;
} Flow;

typedef struct {
    int earlier, later;
} Order;

struct MtfFlowSimulator {
    GArray *bandwidths; /* double, one a link and direction */
    GArray *flows;      /* Flow */
    GArray *orders;     /* Order */
};

MtfFlowSimulator *mtf_flow_simulator_new(void) {
    MtfFlowSimulator *simulator = g_new(MtfFlowSimulator, 1);
    simulator->bandwidths = g_array_new(FALSE, FALSE, sizeof(double));
    simulator->flows = g_array_new(FALSE, FALSE, sizeof(Flow));
    simulator->orders = g_array_new(FALSE, FALSE, sizeof(Order));
    return simulator;
}

void mtf_flow_simulator_free(MtfFlowSimulator *simulator) {
    if (simulator == NULL)
        return;
    g_array_unref(simulator->bandwidths);
    g_array_unref(simulator->flows);
    g_array_unref(simulator->orders);
    g_free(simulator);
}

int mtf_flow_simulator_link(MtfFlowSimulator *simulator, double bandwidth) {
    g_array_append_val(simulator->bandwidths, bandwidth);
    g_array_append_val(simulator->bandwidths, bandwidth);
    return (int)simulator->bandwidths->len - 2;
}

int mtf_flow_simulator_send(MtfFlowSimulator *simulator, double bytes, double latency,
                            const int *links, int n_links) {
    Flow flow = { .bytes = bytes, .latency = latency, .n_links = n_links };
    g_assert(n_links <= MTF_FLOW_LINKS_MAX);
    for (int i = 0; i < n_links; i++)
        flow.links[i] = links[i];
    g_array_append_val(simulator->flows, flow);
    return (int)simulator->flows->len - 1;
}

void mtf_flow_simulator_order(MtfFlowSimulator *simulator, int earlier, int later) {
    Order order = { earlier, later };
    if (earlier >= 0)
        g_array_append_val(simulator->orders, order);
}

MtfFlowSimulator *mtf_flow_simulator_reverse(const MtfFlowSimulator *simulator) {
    MtfFlowSimulator *reverse = mtf_flow_simulator_new();
    g_array_append_vals(reverse->bandwidths, simulator->bandwidths->data,
                        simulator->bandwidths->len);
    for (guint i = 0; i < simulator->flows->len; i++) {
        Flow flow = g_array_index(simulator->flows, Flow, i);
        for (int k = 0; k < flow.n_links; k++)
            flow.links[k] ^= 1;
        g_array_append_val(reverse->flows, flow);
    }
    for (guint i = 0; i < simulator->orders->len; i++) {
        const Order *order = &g_array_index(simulator->orders, Order, i);
        mtf_flow_simulator_order(reverse, order->later, order->earlier);
    }
    return reverse;
}

/* ---- Playing --------------------------------------------------------------------------------- */

typedef struct {
    const MtfFlowSimulator *simulator;
    int n;
    int *missing;            /* deliveries that each flow waits for */
    int *next_begins, *next; /* what waits for a flow */
    double *left, *rate;     /* bytes, bytes a second: of flows that are being sent */
    double *due;             /* when what has been sent is delivered */
    GArray *sent, *pending;  /* int: flows being sent; sent and not delivered */
    double *capacity;        /* of each link, while rates are found */
    int *users;
    double now;
} Simulation;

static const Flow *flow_at(const Simulation *simulate, int i) {
    return &g_array_index(simulate->simulator->flows, Flow, i);
}

static void index_followers(Simulation *simulate) {
    const GArray *orders = simulate->simulator->orders;
    simulate->missing = g_new0(int, (gsize)simulate->n + 1);
    simulate->next_begins = g_new0(int, (gsize)simulate->n + 2);
    simulate->next = g_new(int, orders->len + 1);
    for (guint i = 0; i < orders->len; i++) {
        simulate->next_begins[g_array_index(orders, Order, i).earlier + 2]++;
        simulate->missing[g_array_index(orders, Order, i).later]++;
    }
    for (int i = 0; i < simulate->n; i++)
        simulate->next_begins[i + 2] += simulate->next_begins[i + 1];
    for (guint i = 0; i < orders->len; i++) {
        const Order *order = &g_array_index(orders, Order, i);
        simulate->next[simulate->next_begins[order->earlier + 1]++] = order->later;
    }
}

static void begin(Simulation *simulate, int i) {
    const Flow *flow = flow_at(simulate, i);
    if (flow->n_links == 0 || flow->bytes <= 0) {
        simulate->due[i] = simulate->now + flow->latency;
        g_array_append_val(simulate->pending, i);
        return;
    }
    simulate->left[i] = flow->bytes;
    g_array_append_val(simulate->sent, i);
}

/* The least that a link offers each flow on it that has no rate yet. */
static double least_share(const Simulation *simulate) {
    double least = INFINITY;
    for (guint link = 0; link < simulate->simulator->bandwidths->len; link++)
        if (simulate->users[link] > 0)
            least = fmin(least, simulate->capacity[link] / simulate->users[link]);
    return least;
}

static bool is_held_back(const Simulation *simulate, const Flow *flow, double share) {
    for (int k = 0; k < flow->n_links; k++)
        if (simulate->capacity[flow->links[k]] <=
            share * simulate->users[flow->links[k]] * (1 + SAME_TIME))
            return true;
    return false;
}

/* Gives the flows that the tightest links hold back their share; returns how many. */
static int fix_rates(Simulation *simulate, double share) {
    int fixed = 0;
    g_autofree bool *held = g_new0(bool, simulate->sent->len + 1);
    for (guint s = 0; s < simulate->sent->len; s++) {
        int i = g_array_index(simulate->sent, int, s);
        held[s] = simulate->rate[i] < 0 && is_held_back(simulate, flow_at(simulate, i), share);
    }
    for (guint s = 0; s < simulate->sent->len; s++) {
        int i = g_array_index(simulate->sent, int, s);
        const Flow *flow = flow_at(simulate, i);
        if (!held[s])
            continue;
        simulate->rate[i] = share;
        fixed++;
        for (int k = 0; k < flow->n_links; k++) {
            simulate->capacity[flow->links[k]] -= share;
            simulate->users[flow->links[k]]--;
        }
    }
    return fixed;
}

/* Max-min fair rates of all that is being sent. */
static void find_rates(Simulation *simulate) {
    int open = (int)simulate->sent->len;
    for (guint link = 0; link < simulate->simulator->bandwidths->len; link++) {
        simulate->capacity[link] = g_array_index(simulate->simulator->bandwidths, double, link);
        simulate->users[link] = 0;
    }
    for (guint s = 0; s < simulate->sent->len; s++) {
        const Flow *flow = flow_at(simulate, g_array_index(simulate->sent, int, s));
        simulate->rate[g_array_index(simulate->sent, int, s)] = -1;
        for (int k = 0; k < flow->n_links; k++)
            simulate->users[flow->links[k]]++;
    }
    while (open > 0)
        open -= fix_rates(simulate, least_share(simulate));
}

/* When the next flow has been sent or is delivered. */
static double next_event(const Simulation *simulate) {
    double next = INFINITY;
    for (guint s = 0; s < simulate->sent->len; s++) {
        int i = g_array_index(simulate->sent, int, s);
        next = fmin(next, simulate->now + simulate->left[i] / simulate->rate[i]);
    }
    for (guint p = 0; p < simulate->pending->len; p++)
        next = fmin(next, simulate->due[g_array_index(simulate->pending, int, p)]);
    return next;
}

static bool is_now(const Simulation *simulate, double time) {
    return time <= simulate->now * (1 + SAME_TIME);
}

/* Moves time on to `next`; what has been sent by then is under way. */
static void advance(Simulation *simulate, double next) {
    double before = simulate->now;
    simulate->now = next;
    for (guint s = 0; s < simulate->sent->len;) {
        int i = g_array_index(simulate->sent, int, s);
        bool done = is_now(simulate, before + simulate->left[i] / simulate->rate[i]);
        simulate->left[i] -= simulate->rate[i] * (next - before);
        if (!done) {
            s++;
            continue;
        }
        simulate->due[i] = simulate->now + flow_at(simulate, i)->latency;
        g_array_append_val(simulate->pending, i);
        g_array_remove_index_fast(simulate->sent, s);
    }
}

/* Delivers what is due; what waited for it begins. Returns how much was delivered. */
static int deliver(Simulation *simulate) {
    int delivered = 0;
    for (guint p = 0; p < simulate->pending->len;) {
        int i = g_array_index(simulate->pending, int, p);
        if (!is_now(simulate, simulate->due[i])) {
            p++;
            continue;
        }
        g_array_remove_index_fast(simulate->pending, p);
        delivered++;
        for (int k = simulate->next_begins[i]; k < simulate->next_begins[i + 1]; k++)
            if (--simulate->missing[simulate->next[k]] == 0)
                begin(simulate, simulate->next[k]);
    }
    return delivered;
}

static void simulate_all(Simulation *simulate) {
    int delivered = 0;
    for (int i = 0; i < simulate->n; i++)
        if (simulate->missing[i] == 0)
            begin(simulate, i);
    while (delivered < simulate->n) {
        find_rates(simulate);
        double next = next_event(simulate);
        g_assert(isfinite(next)); /* an order that runs in a circle is our own mistake */
        advance(simulate, next);
        delivered += deliver(simulate);
    }
}

double mtf_flow_simulator_run(const MtfFlowSimulator *simulator) {
    gsize n = simulator->flows->len, links = simulator->bandwidths->len;
    Simulation simulate = { .simulator = simulator,
                            .n = (int)n,
                            .left = g_new0(double, n + 1),
                            .rate = g_new0(double, n + 1),
                            .due = g_new0(double, n + 1),
                            .sent = g_array_new(FALSE, FALSE, sizeof(int)),
                            .pending = g_array_new(FALSE, FALSE, sizeof(int)),
                            .capacity = g_new0(double, links + 1),
                            .users = g_new0(int, links + 1) };
    index_followers(&simulate);
    simulate_all(&simulate);
    void *owned[] = { simulate.missing, simulate.next_begins, simulate.next,     simulate.left,
                      simulate.rate,    simulate.due,         simulate.capacity, simulate.users };
    for (gsize i = 0; i < G_N_ELEMENTS(owned); i++)
        g_free(owned[i]);
    g_array_unref(simulate.sent);
    g_array_unref(simulate.pending);
    return simulate.now;
}
