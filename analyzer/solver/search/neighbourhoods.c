// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/solver/search/neighbourhoods.h"

#include "analyzer/solver/reduce/core_part.h"
#include "analyzer/solver/reduce/core_values.h"
#include "analyzer/solver/reduce/reductions.h"
#include "analyzer/solver/search/branch_and_bound.h"

#include <math.h>
#include <string.h>

#define FIRST_SIZE 24.0
#define LEAST_SIZE 6.0
#define MOST_SIZE 400.0
#define GROW 1.03
#define CUT 0.94
#define MOST_CENTRES 4
#define MOST_WORK 3000000 /* for one neighbourhood; */
#define FIXED_WORK 20000  /* what making one counts for, and each row and node of the core: */
#define ROW_WORK 4

struct MtfNeighbourhoods {
    const MtfCore *core;
    GRand *rand;
    int *living, living_count;
    double size;
    guint64 seed;
    int *nodes, count; /* of the neighbourhood */
    int64_t spent;     /* work on it */
    bool *chosen;      /* [nodes of the core] */
    int64_t *use;      /* [rows] */
};

MtfNeighbourhoods *mtf_neighbourhoods_new(const MtfCore *core, guint64 seed) {
    MtfNeighbourhoods *search = g_new0(MtfNeighbourhoods, 1);
    search->core = core;
    search->seed = seed;
    search->rand = g_rand_new_with_seed((guint32)(seed ^ (seed >> 32)));
    search->size = FIRST_SIZE;
    search->living = g_new(int, core->node_count + 1);
    for (int v = 0; v < core->node_count; v++)
        if (core->nodes[v].alive)
            search->living[search->living_count++] = v;
    search->nodes = g_new(int, search->living_count + 1);
    search->chosen = g_new0(bool, core->node_count + 1);
    search->use = g_new0(int64_t, core->rows + 1);
    return search;
}

void mtf_neighbourhoods_free(MtfNeighbourhoods *search) {
    if (search == NULL)
        return;
    g_rand_free(search->rand);
    g_free(search->living);
    g_free(search->nodes);
    g_free(search->chosen);
    g_free(search->use);
    g_free(search);
}

static void set_size(MtfNeighbourhoods *search, double size) {
    search->size = CLAMP(size, LEAST_SIZE, MOST_SIZE);
}

static void choose(MtfNeighbourhoods *search, int node) {
    if (search->chosen[node])
        return;
    search->chosen[node] = true;
    search->nodes[search->count++] = node;
}

/* Around a node drawn at random: its neighbours, theirs, and so on, some of each. */
static void choose_around(MtfNeighbourhoods *search, int most) {
    int at = search->count;
    choose(search, search->living[g_rand_int_range(search->rand, 0, search->living_count)]);
    for (; at < search->count && search->count < most; at++) {
        const GArray *edges = search->core->nodes[search->nodes[at]].edges;
        guint first = edges->len > 0 ? g_rand_int(search->rand) % edges->len : 0;
        for (guint k = 0; k < edges->len && search->count < most; k++) {
            int e = g_array_index(edges, int, (first + k) % edges->len);
            if (k > 0 && g_rand_int_range(search->rand, 0, 4) == 0)
                continue;
            choose(search, mtf_core_other_end(mtf_core_edge(search->core, e), search->nodes[at]));
        }
    }
}

static void choose_nodes(MtfNeighbourhoods *search) {
    int most = MIN((int)search->size, search->living_count), centres;
    search->count = 0;
    centres = g_rand_int_range(search->rand, 1, MOST_CENTRES + 1);
    for (int i = 1; i <= centres; i++)
        choose_around(search, most * i / centres);
    for (int i = 0; i < search->count; i++)
        search->chosen[search->nodes[i]] = false;
}

/* The prices of the part's rows, whose times are among the core's. */
static double *prices_of(const MtfNeighbourhoods *search, const MtfCore *part,
                         const double *prices) {
    double *list = g_new0(double, part->rows + 1);
    int at = 0;
    for (int r = 0; r < part->rows; r++) {
        while (search->core->row_time[at] < part->row_time[r])
            at++;
        list[r] = prices[at];
    }
    return list;
}

/* Branches on what shrinking left. Fills `free` where it found values of the part that cost less
 * than `cutoff` allows; returns how it ended. */
static MtfBranchStatus branch(MtfNeighbourhoods *search, MtfCore *part, const double *prices,
                              int64_t *cutoff, int *free, bool *found) {
    g_autofree double *own = prices_of(search, part, prices);
    g_autofree double *weights = g_new0(double, part->node_count + 1);
    g_autofree int *trial = g_new0(int, part->node_count + 1);
    MtfMessages *messages = mtf_messages_new(part);
    mtf_messages_set_prices(messages, own);
    g_autoptr(MtfBranching) branching = mtf_branching_new(messages, weights, search->seed);
    int64_t work = MOST_WORK;
    MtfBranchStatus status;
    do {
        status = mtf_branching_run(branching, *cutoff, work, trial);
        if (status != MTF_BRANCH_FOUND)
            break;
        *found = true;
        *cutoff = mtf_core_cost(part, trial) - 1;
        mtf_core_lift(part, trial, free);
        work = mtf_branching_work_left(branching);
    } while (work > 0);
    search->spent += MOST_WORK - mtf_branching_work_left(branching);
    search->seed++;
    return status;
}

/* What is left when shrinking solved the part by itself. */
static bool take_rest(const MtfCore *part, int64_t cutoff, int *free) {
    g_autofree int *none = g_new0(int, part->node_count + 1);
    if (part->infeasible || mtf_core_cost(part, none) > cutoff)
        return false;
    mtf_core_lift(part, none, free);
    return true;
}

/* Sets one neighbourhood free. Returns whether `values` got cheaper. */
static bool improve_once(MtfNeighbourhoods *search, const double *prices, int *values) {
    choose_nodes(search);
    search->spent = FIXED_WORK + ROW_WORK * (int64_t)(search->core->rows + search->count);
    g_autoptr(MtfCore) part =
        mtf_core_part(search->core, search->nodes, search->count, values, search->use);
    g_autofree int *free = g_new0(int, search->count + 1);
    for (int i = 0; i < search->count; i++)
        free[i] = values[search->nodes[i]];
    int64_t cutoff = mtf_core_cost(part, free) - 1;
    MtfBranchStatus status = MTF_BRANCH_DONE;
    mtf_reduce_all(part, NULL);
    bool found = false;
    if (part->infeasible || mtf_core_size(part).nodes == 0)
        found = take_rest(part, cutoff, free);
    else
        status = branch(search, part, prices, &cutoff, free, &found);
    set_size(search, search->size * (status == MTF_BRANCH_DONE ? GROW : CUT));
    for (int i = 0; found && i < search->count; i++)
        values[search->nodes[i]] = free[i];
    return found;
}

bool mtf_neighbourhoods_improve(MtfNeighbourhoods *search, const double *prices, int64_t work,
                                int *values, const MtfSearchControl *control) {
    bool better = false;
    mtf_core_use(search->core, values, search->use);
    while (work > 0 && search->living_count > 0 && !mtf_search_is_over(control)) {
        bool found = improve_once(search, prices, values);
        if (found)
            mtf_core_use(search->core, values, search->use);
        better |= found;
        work -= search->spent;
    }
    return better;
}
