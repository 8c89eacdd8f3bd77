// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/training/stage_cut.h"

#include "layouts/base/error.h"
#include "layouts/graph/loops.h"

#include <math.h>

/* Points of elementwise work that take as long as one of a product. */
#define POINTS_A_PRODUCT 32
/* The share of a stage's work by which a cut may miss the balance. */
#define WINDOW 0.25

typedef struct {
    const MtfGraph *graph;
    double *work;     /* of operations [0, i) */
    double *crossing; /* bytes that are made before operation i and read from it on */
    int *acting;  /* those of operations [0, i) that read something: constants alone are no stage */
    bool *within; /* the place before operation i lies in a loop */
} Profile;

/* The points of an operation's iteration space, products counting more, in each iteration of its loop. */
static double work_of(const MtfGraph *graph, int operation) {
    const MtfOperation *op = mtf_graph_operation(graph, operation);
    MtfIteration iteration;
    mtf_operation_iteration(graph, operation, &iteration);
    double points = (double)mtf_loop_count(graph, op->loop);
    for (int i = 0; i < iteration.n; i++)
        points *= (double)iteration.index[i].size;
    bool product = mtf_operation_row(op->kind)->kernel_class == MTF_CLASS_MATMUL;
    return product ? points : points / POINTS_A_PRODUCT;
}

/* A result crosses every cut between its operation and its last reader: noted where that begins
 * and ends. */
static void add_crossing(Profile *p, int tensor, int last_reader) {
    int producer = mtf_graph_tensor(p->graph, tensor)->producer;
    if (producer < 0 || mtf_graph_operation(p->graph, producer)->n_inputs == 0)
        return;
    double bytes = (double)mtf_graph_tensor_bytes(p->graph, tensor);
    p->crossing[producer + 1] += bytes;
    p->crossing[last_reader + 1] -= bytes;
}

static void fill_profile(Profile *p) {
    const MtfGraph *graph = p->graph;
    int n = (int)graph->operations->len;
    g_autoptr(MtfConsumers) consumers = mtf_graph_consumers(graph);
    for (int i = 0; i < n; i++) {
        p->work[i + 1] = p->work[i] + work_of(graph, i);
        p->acting[i + 1] = p->acting[i] + (mtf_graph_operation(graph, i)->n_inputs > 0);
    }
    for (int t = 0; t < (int)graph->tensors->len; t++)
        if (consumers->starts[t + 1] > consumers->starts[t])
            add_crossing(p, t, consumers->operations[consumers->starts[t + 1] - 1]);
    for (int i = 1; i <= n; i++)
        p->crossing[i] += p->crossing[i - 1];
}

/* The first operation behind a stage that begins at `begin` and leaves `stages` others: near the balance, where
 * least crosses; the nearest of several; -1 where no place outside of loops leaves each stage something to do. */
static int find_cut(const Profile *p, double target, double window, int begin, int stages) {
    int best = -1, n = (int)p->graph->operations->len;
    for (int i = begin + 1; i < n && p->acting[n] - p->acting[i] >= stages; i++) {
        double miss = ABS(p->work[i] - target);
        bool empty = p->acting[i] == p->acting[begin];
        if (empty || p->within[i])
            continue;
        double best_miss = best < 0 ? INFINITY : ABS(p->work[best] - target);
        bool closer = miss < best_miss;
        if ((best_miss > window && closer) ||
            (miss <= window && (p->crossing[i] < p->crossing[best] ||
                                (p->crossing[i] == p->crossing[best] && closer))))
            best = i;
    }
    return best;
}

bool mtf_cut_stages(MtfGraph *forward, int stages, GError **error) {
    int n = (int)forward->operations->len;
    if (n < stages)
        return mtf_input_error(error, "graph \"%s\" has %d operations, too few for %d stages",
                               forward->name, n, stages);
    g_autofree double *work = g_new0(double, n + 2);
    g_autofree double *crossing = g_new0(double, n + 2);
    g_autofree int *acting = g_new0(int, n + 1);
    g_autofree bool *within = mtf_loop_places(forward);
    Profile p = { forward, work, crossing, acting, within };
    fill_profile(&p);
    double share = work[n] / stages;
    for (int stage = 1, begin = 0; stage <= stages; stage++) {
        int end = stage == stages
                      ? n
                      : find_cut(&p, share * stage, share * WINDOW, begin, stages - stage);
        if (end < 0)
            return mtf_input_error(error,
                                   "graph \"%s\" has too few places outside of its loops for %d "
                                   "stages",
                                   forward->name, stages);
        for (; begin < end; begin++)
            mtf_graph_operation(forward, begin)->stage = stage;
    }
    return true;
}
