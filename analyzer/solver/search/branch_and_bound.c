// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/solver/search/branch_and_bound.h"

#include "analyzer/solver/bounds/certified_point.h"
#include "analyzer/solver/bounds/exact_bound.h"
#include "analyzer/solver/bounds/message_state.h"
#include "analyzer/solver/reduce/core_values.h"
#include "analyzer/solver/search/local_search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_PASSES 12        /* at one place of the tree */
#define PASS_GAIN 0.02        /* of the slack, that a pass must close for another */
#define LEAST_WORTH 0.01      /* of a node whose values are alike */
#define DECODE_EVERY 4        /* places of the tree */
#define IMPROVE_EVERY 64      /* likewise */
#define IMPROVE_WORK 300000   /* what a local search counts for */
#define MOST_SAVED (16 << 20) /* messages that the branches keep */

typedef struct Child {
    int value;
    int64_t bound; /* of what takes it */
    int64_t own;   /* what the messages at the branch say of it alone */
} Child;

/* A place of the tree where a node takes one value after the other. */
typedef struct Branch {
    int spot;
    int count, next;
    Child *children;
    guint8 *open;  /* [values of all nodes] */
    double *state; /* messages; NULL where too many are kept */
} Branch;

struct MtfBranching {
    const MtfCore *core;
    MtfMessages *messages;
    MtfExactBound *exact;
    MtfLocalSearch *local;
    double *weights;
    double **priced;  /* [nodes][values] without anything shut */
    GArray *branches; /* Branch, from the root down */
    int value_count;
    gsize state_size, saved;
    int64_t pass_work, work_left;
    int64_t *capacity; /* [rows] scratch */
    int64_t parent;    /* a bound of the place at hand */
    int *values;       /* scratch */
    guint64 places;
    int64_t cutoff;
    bool begun;
    MtfCertificate *certificate;                                     /* a part of the core's */
    enum { PLACE_GOES_ON, PLACE_IS_REFUTED, PLACE_IS_SINGLE } place; /* at hand */
    bool is_above; /* the place at hand is useless by what a branch above says */
};

static MtfNodeState *state_at(const MtfBranching *b, int i) {
    return &b->messages->node_states[i];
}

static int64_t count_work(const MtfMessages *messages) {
    int64_t work = 1;
    for (int i = 0; i < messages->count; i++) {
        const MtfNodeState *spot = &messages->node_states[i];
        for (int k = 0; k < spot->behind + spot->ahead; k++)
            work += (int64_t)spot->half_edges[k].rows * spot->half_edges[k].columns + spot->values;
    }
    return work;
}

MtfBranching *mtf_branching_new(MtfMessages *messages, double *weights, guint64 seed) {
    MtfBranching *b = g_new0(MtfBranching, 1);
    b->core = messages->core;
    b->certificate = mtf_certificate_part(b->core->certificate);
    b->messages = messages;
    b->exact = mtf_exact_bound_new(messages);
    b->local = mtf_local_search_new(b->core, seed);
    b->weights = weights;
    b->priced = g_new0(double *, messages->count + 1);
    b->branches = g_array_new(FALSE, FALSE, sizeof(Branch));
    b->capacity = g_new0(int64_t, b->core->rows + 1);
    b->values = g_new0(int, b->core->node_count + 1);
    b->parent = -MTF_CORE_IMPOSSIBLE;
    b->cutoff = MTF_NO_CUTOFF;
    b->pass_work = count_work(messages);
    b->state_size = mtf_messages_state_size(messages);
    for (int i = 0; i < messages->count; i++) {
        const MtfNodeState *spot = state_at(b, i);
        b->priced[i] = g_memdup2(spot->priced, (gsize)spot->values * sizeof *spot->priced);
        b->value_count += spot->values;
    }
    return b;
}

static void free_branch(MtfBranching *b, Branch *branch) {
    b->saved -= branch->state != NULL ? b->state_size : 0;
    g_free(branch->children);
    g_free(branch->open);
    g_free(branch->state);
}

static Branch *last_branch(const MtfBranching *b) {
    return &g_array_index(b->branches, Branch, b->branches->len - 1);
}

static void drop_branch(MtfBranching *b) {
    free_branch(b, last_branch(b));
    g_array_set_size(b->branches, b->branches->len - 1);
}

void mtf_branching_free(MtfBranching *b) {
    if (b == NULL)
        return;
    while (b->branches->len > 0)
        drop_branch(b);
    g_array_unref(b->branches);
    for (int i = 0; i < b->messages->count; i++)
        g_free(b->priced[i]);
    g_free(b->priced);
    mtf_local_search_free(b->local);
    mtf_exact_bound_free(b->exact);
    mtf_messages_free(b->messages);
    mtf_certificate_free(b->certificate);
    g_free(b->capacity);
    g_free(b->values);
    g_free(b);
}

/* ---- what is shut ---- */

static bool is_open(const MtfBranching *b, const MtfNodeState *spot, int p) {
    return spot->priced[p] < INFINITY && b->core->nodes[spot->node].cost[p] < MTF_CORE_IMPOSSIBLE;
}

static void shut(MtfNodeState *spot, int p) {
    spot->priced[p] = INFINITY;
}

static int count_open(const MtfBranching *b, const MtfNodeState *spot) {
    int count = 0;
    for (int p = 0; p < spot->values; p++)
        count += is_open(b, spot, p);
    return count;
}

/* Least and most memory of a piece over the open values; false where none is open. */
static bool usage_range(const MtfBranching *b, const MtfNodeState *spot, const MtfCorePiece *piece,
                        int64_t *least, int64_t *most) {
    *least = INT64_MAX;
    *most = -1;
    for (int p = 0; p < spot->values; p++) {
        if (!is_open(b, spot, p))
            continue;
        *least = MIN(*least, piece->usage[p]);
        *most = MAX(*most, piece->usage[p]);
    }
    return *most >= 0;
}

/* What every row has left when each piece uses its least; false when a row is overfull, or a node
 * has no value left. */
static bool find_room(MtfBranching *b) {
    const MtfCore *core = b->core;
    int64_t least, most, sum = 0;
    memset(b->capacity, 0, ((gsize)core->rows + 1) * sizeof *b->capacity);
    for (int i = 0; i < b->messages->count; i++) {
        const MtfNodeState *spot = state_at(b, i);
        const MtfCoreNode *node = &core->nodes[spot->node];
        for (guint k = 0; k < node->pieces->len; k++) {
            const MtfCorePiece *piece = &g_array_index(node->pieces, MtfCorePiece, k);
            if (!usage_range(b, spot, piece, &least, &most))
                return false;
            b->capacity[piece->first] += least;
            b->capacity[piece->last] -= least;
        }
    }
    for (int r = 0; r < core->rows; r++) {
        sum += b->capacity[r];
        b->capacity[r] = core->capacity[r] - sum;
        if (b->capacity[r] < 0)
            return false;
    }
    return true;
}

/* Shuts the values whose memory exceeds the least by more than there is room. */
static void shut_large(const MtfBranching *b, MtfNodeState *spot, const MtfCorePiece *piece) {
    int64_t least, most, capacity = INT64_MAX;
    if (!usage_range(b, spot, piece, &least, &most) || least == most)
        return;
    for (int r = piece->first; r < piece->last; r++)
        capacity = MIN(capacity, b->capacity[r]);
    for (int p = 0; most - least > capacity && p < spot->values; p++)
        if (is_open(b, spot, p) && piece->usage[p] - least > capacity) {
            mtf_certificate_two(b->certificate, "shut", spot->node, p);
            shut(spot, p);
        }
}

static bool fit_memory(MtfBranching *b) {
    if (b->core->rows == 0)
        return true;
    if (!find_room(b))
        return false;
    for (int i = 0; i < b->messages->count; i++) {
        const MtfCoreNode *node = &b->core->nodes[state_at(b, i)->node];
        for (guint k = 0; k < node->pieces->len; k++)
            shut_large(b, state_at(b, i), &g_array_index(node->pieces, MtfCorePiece, k));
    }
    return true;
}

/* Shuts what the regrets exclude at a spot; false where it has no value left. */
static bool shut_at(MtfBranching *b, MtfNodeState *spot, int64_t slack) {
    const int64_t *regret = mtf_exact_bound_regrets(b->exact, spot->node);
    bool left = false;
    for (int p = 0; p < spot->values; p++) {
        if (is_open(b, spot, p) && (regret[p] > slack || regret[p] >= MTF_REGRET_NEVER)) {
            mtf_certificate_two(b->certificate, "value", spot->node, p);
            shut(spot, p);
        }
        left |= is_open(b, spot, p);
    }
    return left;
}

/* Shuts what the regrets exclude; false where a node has no value left. */
static bool shut_regretted(MtfBranching *b, int64_t slack) {
    bool left = slack >= 0;
    mtf_certify_point(b->certificate, b->exact, b->core);
    mtf_certificate_one(b->certificate, "prune", b->cutoff);
    for (int i = 0; left && i < b->messages->count; i++)
        left = shut_at(b, state_at(b, i), slack);
    mtf_certificate_word(b->certificate, "end");
    return left;
}

/* Raises the bound at the place at hand as far as that goes, and shuts what is useless. False when
 * nothing within the cutoff is left. */
static bool narrow(MtfBranching *b) {
    double last = -INFINITY, cutoff = (double)b->cutoff;
    for (int pass = 0; pass < MOST_PASSES; pass++) {
        if (!fit_memory(b)) {
            mtf_certificate_word(b->certificate, "dead");
            return false;
        }
        double bound = mtf_messages_pass(b->messages);
        b->work_left -= b->pass_work;
        bool goes_on = bound <= cutoff && bound - last >= PASS_GAIN * (cutoff - bound);
        if (pass > 0 && !goes_on)
            break;
        last = bound;
    }
    mtf_exact_bound_update(b->exact);
    b->work_left -= b->pass_work;
    int64_t slack = mtf_exact_bound_slack(b->exact, b->cutoff);
    b->parent = MAX(b->parent, mtf_exact_bound_cost(b->exact));
    return shut_regretted(b, slack);
}

/* ---- branches ---- */

/* How much it is worth to branch at a spot; negative where one value is left. */
static double worth_of(const MtfBranching *b, int i, double slack) {
    const MtfNodeState *spot = state_at(b, i);
    const int64_t *regret = mtf_exact_bound_regrets(b->exact, spot->node);
    double sum = 0;
    int count = 0, neighbours = 0;
    for (int p = 0; p < spot->values; p++) {
        if (!is_open(b, spot, p))
            continue;
        count++;
        sum += fmin((double)regret[p], slack);
    }
    if (count < 2)
        return -1;
    for (int k = 0; k < spot->behind + spot->ahead; k++)
        neighbours += count_open(b, state_at(b, spot->half_edges[k].other)) > 1;
    return (1 + b->weights[spot->node] + neighbours) * (sum / (count * slack) + LEAST_WORTH);
}

/* The spot to branch at, or -1 where every node has one value left. */
static int choose_spot(const MtfBranching *b) {
    double slack = (double)mtf_exact_bound_slack(b->exact, b->cutoff), most = -1;
    int chosen = -1;
    for (int i = 0; i < b->messages->count; i++) {
        double worth = worth_of(b, i, fmax(1, slack));
        if (worth <= most)
            continue;
        most = worth;
        chosen = i;
    }
    return chosen;
}

static int compare_children(const void *left, const void *right) {
    const Child *x = left, *y = right;
    if (x->bound != y->bound)
        return x->bound < y->bound ? -1 : 1;
    return x->value - y->value;
}

/* A bound for the open value of that regret, by the messages at hand alone. */
static int64_t own_bound(const MtfBranching *b, int64_t regret) {
    int64_t slack = mtf_exact_bound_slack(b->exact, b->cutoff);
    if (slack == INT64_MAX)
        return -MTF_CORE_IMPOSSIBLE;
    /* bound + regret = cutoff - (slack - regret), in multiples of 2^-shift, and rounded up */
    int64_t below = (slack - regret) >> mtf_exact_bound_shift(b->exact);
    return b->cutoff - below;
}

static guint8 *save_open(const MtfBranching *b) {
    guint8 *saved = g_new(guint8, b->value_count + 1), *open = saved;
    for (int j = 0; j < b->messages->count; j++)
        for (int p = 0; p < state_at(b, j)->values; p++)
            *open++ = state_at(b, j)->priced[p] < INFINITY;
    return saved;
}

static void add_branch(MtfBranching *b, int i) {
    const MtfNodeState *spot = state_at(b, i);
    const int64_t *regret = mtf_exact_bound_regrets(b->exact, spot->node);
    Branch branch = { .spot = i, .children = g_new(Child, spot->values) };
    for (int p = 0; p < spot->values; p++)
        if (is_open(b, spot, p)) {
            int64_t own = own_bound(b, regret[p]);
            branch.children[branch.count++] = (Child){ p, MAX(b->parent, own), own };
        }
    qsort(branch.children, (gsize)branch.count, sizeof(Child), compare_children);
    branch.open = save_open(b);
    if (b->saved + b->state_size <= MOST_SAVED) {
        branch.state = mtf_messages_save(b->messages, NULL);
        b->saved += b->state_size;
    }
    g_array_append_val(b->branches, branch);
}

/* ---- what the certificate says of it ---- */

/* Says that children of the last branch are useless, those from number `first` up to `last`, by the
 * point at the branch. Returns whether that excludes them all. */
static bool certify_children(MtfBranching *b, int first, int last) {
    const Branch *branch = last_branch(b);
    bool all = true;
    mtf_certificate_one(b->certificate, "prune", b->cutoff);
    for (int k = first; k < last; k++) {
        const Child *child = &branch->children[k];
        all &= child->own > b->cutoff;
        if (child->own > b->cutoff)
            mtf_certificate_two(b->certificate, "value", state_at(b, branch->spot)->node,
                                child->value);
    }
    mtf_certificate_word(b->certificate, "end");
    return all;
}

/* Closes the current subproblem, in which nothing within the cutoff is left, and goes back to the branch
 * above it. */
static void certify_place(MtfBranching *b) {
    if (b->place == PLACE_IS_SINGLE)
        mtf_certificate_one(b->certificate, "single", b->cutoff);
    if (b->branches->len == 0)
        return;
    mtf_certificate_word(b->certificate, "done");
    int next = last_branch(b)->next;
    b->is_above = b->is_above && !certify_children(b, next - 1, next);
}

/* Likewise of the last branch, which becomes the place at hand. */
static void certify_branch(MtfBranching *b) {
    b->is_above = !certify_children(b, last_branch(b)->next, last_branch(b)->count);
    b->place = PLACE_IS_REFUTED;
}

/* ---- going on ---- */

/* Drops the branches without a child within the cutoff. False: no other is left. */
static bool find_branch(MtfBranching *b) {
    if (b->place != PLACE_GOES_ON)
        certify_place(b);
    while (b->branches->len > 0) {
        const Branch *branch = last_branch(b);
        if (branch->next < branch->count && branch->children[branch->next].bound <= b->cutoff)
            return true;
        certify_branch(b);
        drop_branch(b);
        certify_place(b);
    }
    return false;
}

/* Goes to the next child of the last branch that has one within the cutoff. False: there is none. */
static bool enter_next(MtfBranching *b) {
    if (!find_branch(b))
        return false;
    Branch *branch = last_branch(b);
    const Child *child = &branch->children[branch->next++];
    mtf_certificate_two(b->certificate, "assume", state_at(b, branch->spot)->node, child->value);
    const guint8 *open = branch->open;
    for (int i = 0; i < b->messages->count; i++)
        for (int p = 0; p < state_at(b, i)->values; p++) {
            bool stays = *open++ && (i != branch->spot || p == child->value);
            state_at(b, i)->priced[p] = stays ? b->priced[i][p] : INFINITY;
        }
    if (branch->state != NULL && branch->next > 1)
        mtf_messages_restore(b->messages, branch->state);
    b->parent = child->bound;
    return true;
}

/* ---- choices ---- */

static bool is_within(const MtfBranching *b, const int *values) {
    return mtf_core_cost(b->core, values) <= b->cutoff && mtf_core_allows(b->core, values);
}

/* Looks for a choice at the place at hand, now and then. */
static bool try_choice(MtfBranching *b) {
    guint64 place = b->places++;
    if (place % DECODE_EVERY != 0 || !mtf_messages_decode(b->messages, b->values))
        return false;
    if (is_within(b, b->values))
        return true;
    if (place % IMPROVE_EVERY != 0)
        return false;
    b->work_left -= IMPROVE_WORK;
    return mtf_local_search_improve(b->local, b->values) && is_within(b, b->values);
}

/* Every node has one value left: these. */
static bool try_last(MtfBranching *b) {
    for (int i = 0; i < b->messages->count; i++)
        for (int p = 0; p < state_at(b, i)->values; p++)
            if (is_open(b, state_at(b, i), p))
                b->values[state_at(b, i)->node] = p;
    return is_within(b, b->values);
}

/* Works on the place at hand. Returns whether `values` holds a choice, and whether the place has
 * branches now. */
static bool visit(MtfBranching *b, bool *goes_on) {
    *goes_on = narrow(b);
    b->place = *goes_on ? PLACE_GOES_ON : PLACE_IS_REFUTED;
    if (!*goes_on)
        return false;
    bool found = try_choice(b);
    int chosen = choose_spot(b);
    *goes_on = chosen >= 0;
    if (chosen < 0)
        b->place = PLACE_IS_SINGLE;
    if (chosen >= 0)
        add_branch(b, chosen);
    return found || (chosen < 0 && try_last(b));
}

/* A place that came to nothing makes its branch's node weigh more. */
static void note_end(MtfBranching *b) {
    if (b->branches->len > 0)
        b->weights[state_at(b, last_branch(b)->spot)->node] += 1;
}

MtfBranchStatus mtf_branching_run(MtfBranching *b, int64_t cutoff, int64_t work, int *values) {
    b->cutoff = MIN(cutoff, b->cutoff);
    b->work_left = work;
    while (b->work_left > 0) {
        if (b->begun && !enter_next(b)) {
            mtf_certificate_append(b->core->certificate, b->certificate);
            return MTF_BRANCH_DONE;
        }
        b->begun = true;
        bool goes_on;
        bool found = visit(b, &goes_on);
        if (!goes_on)
            note_end(b);
        if (!found)
            continue;
        memcpy(values, b->values, (gsize)b->core->node_count * sizeof *values);
        b->cutoff = MIN(b->cutoff, mtf_core_cost(b->core, values) - 1); /* what is certified next */
        return MTF_BRANCH_FOUND;
    }
    return MTF_BRANCH_OPEN;
}

int64_t mtf_branching_work_left(const MtfBranching *b) {
    return MAX(0, b->work_left);
}

int64_t mtf_branching_bound(const MtfBranching *b) {
    if (!b->begun)
        return -MTF_CORE_IMPOSSIBLE;
    int64_t bound = MTF_CORE_IMPOSSIBLE;
    for (guint d = 0; d < b->branches->len; d++) {
        const Branch *branch = &g_array_index(b->branches, Branch, d);
        if (branch->next < branch->count)
            bound = MIN(bound, branch->children[branch->next].bound);
    }
    return bound;
}

void mtf_branching_certify(MtfBranching *b) {
    MtfCertificate *whole = b->core->certificate;
    if (whole == NULL || b->branches->len == 0)
        return;
    b->cutoff = MIN(b->cutoff, mtf_branching_bound(b) - 1);
    bool is_left = find_branch(b);
    g_assert(!is_left);
    mtf_certificate_one(whole, "guess", b->cutoff);
    mtf_certificate_append(whole, b->certificate);
    mtf_certificate_word(whole, "done");
}
