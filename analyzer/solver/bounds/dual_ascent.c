// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/solver/bounds/dual_ascent.h"

#include "analyzer/solver/bounds/certified_point.h"
#include "analyzer/solver/bounds/exact_bound.h"
#include "analyzer/solver/bounds/node_pairs.h"
#include "analyzer/solver/bounds/probing.h"
#include "analyzer/solver/reduce/core_values.h"
#include "analyzer/solver/reduce/reductions.h"

#include <math.h>
#include <string.h>

#define GROW 1.25
#define CUT 0.5
#define FIRST_STEP 1e-3 /* of the bound's size, for a whole room */
#define LEAST_STEP 1e-9 /* likewise */
#define MEMORY 0.4      /* weight of the newest choice in a row's average use */
#define NOTICEABLE 1e-6
#define CROWDED 6 /* steps in a row with new prices after which more are given at once */
#define MAX_STRETCHES 1024
#define LEAP_STEPS 2    /* from one leap of the messages to the next, */
#define FIRST_LEAP 1.0  /* which goes as far again as the steps since the last one; */
#define LEAST_LEAP 0.25 /* twice as far after one that was worth it, half as far after others */
#define MOST_LEAP 64.0

typedef struct Row {
    bool active;
    double price, best_price; /* cost for the whole room */
    double step;
    double excess; /* average of (use - capacity) / capacity */
    int side;      /* its sign at the last step */
} Row;

struct MtfDual {
    MtfCore *core;
    MtfLayerQuotient *quotient; /* of the core; NULL when not folded */
    MtfMessages *messages;
    Row *rows;
    int64_t *use;
    double *price; /* for one unit of memory */
    double *best_price;
    MtfExactBound *exact; /* of the messages; NULL: not asked for yet */
    double *best_state;   /* the messages of the best bound; NULL: none yet */
    bool is_known;        /* what they prove is in `proven` */
    int64_t proven;
    double bound, noticed;
    double last;      /* the bound of the last step */
    bool heeds_falls; /* smaller steps of prices where the bound falls */
    bool fell;
    double scale; /* the size of costs */
    int steps, noticed_step;
    int stretches;               /* of rows, each of which may get one new price a step */
    int fresh_steps;             /* in a row that gave new prices */
    double *leap_from, *leap_to; /* states of the messages; NULL: none yet */
    double leap;                 /* how far the next one goes */
};

static double capacity_of(const MtfDual *dual, int r) {
    return fmax(1, (double)dual->core->capacity[r]);
}

static void make_arrays(MtfDual *dual) {
    gsize rows = (gsize)dual->core->rows + 1;
    dual->rows = g_new0(Row, rows);
    dual->use = g_new0(int64_t, rows);
    dual->price = g_new0(double, rows);
    dual->best_price = g_new0(double, rows);
}

static void free_arrays(MtfDual *dual) {
    g_free(dual->rows);
    g_free(dual->use);
    g_free(dual->price);
    g_free(dual->best_price);
}

MtfDual *mtf_dual_new(MtfCore *core) {
    MtfDual *dual = g_new0(MtfDual, 1);
    dual->core = core;
    dual->messages = mtf_messages_new(core);
    dual->bound = dual->noticed = dual->last = -INFINITY;
    dual->proven = -MTF_CORE_IMPOSSIBLE;
    dual->stretches = 1;
    dual->leap = FIRST_LEAP;
    make_arrays(dual);
    return dual;
}

/* The messages and what is known of them. */
static void drop_messages(MtfDual *dual) {
    g_clear_pointer(&dual->exact, mtf_exact_bound_free);
    g_clear_pointer(&dual->best_state, g_free);
    g_clear_pointer(&dual->leap_from, g_free);
    g_clear_pointer(&dual->leap_to, g_free);
    g_clear_pointer(&dual->messages, mtf_messages_free);
}

void mtf_dual_free(MtfDual *dual) {
    if (dual == NULL)
        return;
    drop_messages(dual);
    mtf_layer_quotient_free(dual->quotient);
    free_arrays(dual);
    g_free(dual);
}

static void set_prices(MtfDual *dual) {
    for (int r = 0; r < dual->core->rows; r++)
        dual->price[r] = dual->rows[r].price / capacity_of(dual, r);
    mtf_messages_set_prices(dual->messages, dual->price);
}

static void note_bound(MtfDual *dual, double bound) {
    dual->steps++;
    dual->scale = fmax(dual->scale, fabs(bound) * 1e-3);
    if (bound <= dual->bound)
        return;
    if (isinf(dual->bound))
        dual->scale = fmax(1, fabs(bound));
    dual->bound = bound;
    dual->is_known = false;
    dual->best_state = mtf_messages_save(dual->messages, dual->best_state);
    memcpy(dual->best_price, dual->price, (gsize)dual->core->rows * sizeof *dual->price);
    for (int r = 0; r < dual->core->rows; r++)
        dual->rows[r].best_price = dual->rows[r].price;
    if (bound < dual->noticed + NOTICEABLE * fabs(dual->noticed) && !isinf(dual->noticed))
        return;
    dual->noticed = bound;
    dual->noticed_step = dual->steps;
}

static double excess_of(const MtfDual *dual, int r) {
    return ((double)dual->use[r] - (double)dual->core->capacity[r]) / capacity_of(dual, r);
}

/* The row of a stretch that is overfull most, or -1. */
static int worst_of(const MtfDual *dual, int first, int last) {
    int worst = -1;
    double most = 0;
    for (int r = first; r < last; r++) {
        if (dual->use[r] <= dual->core->capacity[r] || excess_of(dual, r) <= most)
            continue;
        most = excess_of(dual, r);
        worst = r;
    }
    return worst;
}

/* Gives the fullest overfull row of each stretch a price, if it has none yet. Most problems need
 * prices in a few rows only, so there is one stretch as long as that is enough. */
static void activate_rows(MtfDual *dual) {
    bool fresh = false;
    int width = dual->core->rows / dual->stretches + 1;
    for (int first = 0; first < dual->core->rows; first += width) {
        int worst = worst_of(dual, first, MIN(first + width, dual->core->rows));
        if (worst < 0 || dual->rows[worst].active)
            continue;
        dual->rows[worst] = (Row){ .active = true,
                                   .step = FIRST_STEP * dual->scale,
                                   .excess = excess_of(dual, worst) };
        fresh = true;
    }
    dual->fresh_steps = fresh ? dual->fresh_steps + 1 : 0;
    if (dual->fresh_steps < CROWDED || dual->stretches >= MAX_STRETCHES)
        return;
    dual->stretches *= 2;
    dual->fresh_steps = 0;
}

/* Messages alone let no bound fall: where it does, prices go too far, whatever the decoded choice uses. Of
 * few rows that says more than the choice of a wide core, which is overfull long after prices are right. */
static void move_price(MtfDual *dual, int r) {
    Row *row = &dual->rows[r];
    row->excess = (1 - MEMORY) * row->excess + MEMORY * excess_of(dual, r);
    int side = row->excess > 0 ? 1 : row->price > 0 ? -1 : 0;
    bool too_far = dual->fell && dual->heeds_falls;
    if (side * row->side > 0 && !too_far)
        row->step *= GROW;
    else if (side * row->side < 0 || too_far)
        row->step = fmax(row->step * CUT, LEAST_STEP * dual->scale);
    row->side = side;
    if (side < 0)
        row->step = fmin(row->step, fmax(row->price * 0.5, LEAST_STEP * dual->scale));
    row->price = fmax(0, row->price + side * row->step);
}

/* Messages move slowly and for long in one direction, so now and then they go on in that of the last steps
 * as far as pays: from the state before those, over that of now. Returns the bound after it. */
static double leap(MtfDual *dual, double bound) {
    if (dual->steps % LEAP_STEPS != 0 || !isfinite(bound))
        return bound;
    bool can_leap = dual->leap_from != NULL;
    dual->leap_to = mtf_messages_save(dual->messages, dual->leap_to);
    if (can_leap) {
        mtf_messages_leap(dual->messages, dual->leap_from, dual->leap);
        double found = mtf_messages_pass(dual->messages);
        bool pays = found > bound;
        dual->leap = pays ? fmin(2 * dual->leap, MOST_LEAP) : fmax(dual->leap / 2, LEAST_LEAP);
        if (pays)
            bound = found;
        else
            mtf_messages_restore(dual->messages, dual->leap_to);
    }
    dual->leap_from = mtf_messages_save(dual->messages, dual->leap_from);
    return bound;
}

bool mtf_dual_step(MtfDual *dual, int *values) {
    double bound = leap(dual, mtf_messages_pass(dual->messages));
    dual->fell = bound < dual->last;
    dual->last = bound;
    note_bound(dual, bound);
    bool possible = mtf_messages_decode(dual->messages, values);
    if (dual->quotient != NULL)
        mtf_layer_quotient_expand(dual->quotient, values);
    mtf_core_use(dual->core, values, dual->use);
    activate_rows(dual);
    bool moved = false;
    for (int r = 0; r < dual->core->rows; r++) {
        if (!dual->rows[r].active)
            continue;
        move_price(dual, r);
        moved = true;
    }
    if (moved)
        set_prices(dual);
    return possible;
}

double mtf_dual_bound(const MtfDual *dual) {
    return dual->quotient != NULL ? -INFINITY : dual->bound;
}

double mtf_dual_guess(const MtfDual *dual) {
    return dual->bound;
}

bool mtf_dual_quotient(MtfDual *dual) {
    dual->quotient = mtf_layer_quotient_new(dual->core);
    if (dual->quotient == NULL)
        return false;
    drop_messages(dual);
    dual->messages = mtf_messages_new_of_quotient(dual->quotient);
    set_prices(dual);
    return true;
}

/* To the prices of the best bound, with small steps. */
static void return_to_best(MtfDual *dual) {
    for (int r = 0; r < dual->core->rows; r++) {
        Row *row = &dual->rows[r];
        row->price = row->best_price;
        row->step = fmax(LEAST_STEP * dual->scale, row->price * 1e-3);
        row->side = 0;
    }
    if (dual->best_state != NULL)
        mtf_messages_restore(dual->messages, dual->best_state);
    g_clear_pointer(&dual->leap_from, g_free);
    set_prices(dual);
}

void mtf_dual_expand(MtfDual *dual) {
    return_to_best(dual);
    MtfMessages *messages = mtf_messages_new(dual->core);
    mtf_messages_expand(messages, dual->messages);
    drop_messages(dual);
    dual->messages = messages;
    g_clear_pointer(&dual->quotient, mtf_layer_quotient_free);
    dual->bound = dual->noticed = -INFINITY;
    dual->noticed_step = dual->steps;
}

/* What the messages prove as they stand after a pass. */
static const MtfExactBound *exact_of(MtfDual *dual) {
    if (dual->exact == NULL)
        dual->exact = mtf_exact_bound_new(dual->messages);
    mtf_exact_bound_update(dual->exact);
    return dual->exact;
}

int64_t mtf_dual_prove(MtfDual *dual) {
    if (dual->quotient != NULL || dual->best_state == NULL || dual->is_known)
        return dual->proven;
    g_autofree double *now = mtf_messages_save(dual->messages, NULL);
    mtf_messages_restore(dual->messages, dual->best_state);
    mtf_messages_set_prices(dual->messages, dual->best_price);
    int64_t proven = mtf_exact_bound_cost(exact_of(dual));
    if (proven > dual->proven)
        mtf_certify_bound(dual->core->certificate, dual->exact, dual->core);
    dual->proven = MAX(dual->proven, proven);
    dual->is_known = true;
    mtf_messages_restore(dual->messages, now);
    mtf_messages_set_prices(dual->messages, dual->price);
    return dual->proven;
}

int mtf_dual_stall(const MtfDual *dual) {
    return dual->steps - dual->noticed_step;
}

const double *mtf_dual_prices(const MtfDual *dual) {
    return dual->best_price;
}

MtfRowPrices *mtf_dual_row_prices(const MtfDual *dual) {
    const MtfCore *core = dual->core;
    MtfRowPrices *prices = mtf_row_prices_new(core->rows);
    prices->count = 0;
    for (int r = 0; r < core->rows; r++) {
        if (dual->best_price[r] <= 0)
            continue;
        prices->times[prices->count] = core->row_time[r];
        prices->per_unit[prices->count++] = dual->best_price[r];
    }
    return prices;
}

void mtf_dual_set_prices(MtfDual *dual, const MtfRowPrices *prices) {
    int r = 0;
    for (int i = 0; i < prices->count; i++) {
        while (r + 1 < dual->core->rows && dual->core->row_time[r + 1] <= prices->times[i])
            r++;
        if (r >= dual->core->rows)
            return;
        double price = dual->rows[r].price + prices->per_unit[i] * capacity_of(dual, r);
        dual->rows[r] = (Row){ .active = true, .price = price, .best_price = price };
        dual->rows[r].step = price * FIRST_STEP;
    }
    set_prices(dual);
}

/* Sets the prices of the rows that are left after shrinking from the old ones, by their time. */
static void carry_prices(MtfDual *dual, const Row *old, const double *per_unit,
                         const int64_t *old_time) {
    int at = 0;
    for (int r = 0; r < dual->core->rows; r++) {
        while (old_time[at] < dual->core->row_time[r])
            at++;
        dual->rows[r] = old[at];
        dual->rows[r].price = dual->rows[r].best_price = per_unit[at] * capacity_of(dual, r);
        dual->best_price[r] = per_unit[at];
    }
}

/* Starts again on the core as it is now; the old rows' prices and times tell the new ones. */
static void restart(MtfDual *dual, const int64_t *old_time, const double *per_unit) {
    g_autofree Row *old = g_steal_pointer(&dual->rows);
    free_arrays(dual);
    make_arrays(dual);
    carry_prices(dual, old, per_unit, old_time);
    dual->messages = mtf_messages_new(dual->core);
    dual->noticed_step = dual->steps;
    set_prices(dual);
}

/* Shrinks the core, which has all that the messages know; then goes on with it. Where it `relaxes`, only
 * rows with a price count. */
static void shrink_and_restart(MtfDual *dual, bool relaxes, const MtfSearchControl *control) {
    MtfCore *core = dual->core;
    gsize rows = (gsize)core->rows + 1;
    g_autofree int64_t *old_time = g_memdup2(core->row_time, rows * sizeof *old_time);
    g_autofree double *per_unit = g_memdup2(dual->best_price, rows * sizeof *per_unit);
    if (relaxes) {
        g_autofree bool *keep = g_new(bool, rows);
        for (int r = 0; r < core->rows; r++)
            keep[r] = per_unit[r] > 0;
        mtf_core_relax_rows(core, keep);
    }
    mtf_reduce_all(core, control);
    if (!core->infeasible)
        restart(dual, old_time, per_unit);
}

int mtf_dual_probe(MtfDual *dual, int64_t cutoff, const MtfSearchControl *control) {
    return_to_best(dual);
    double bound = mtf_messages_pass(dual->messages);
    return mtf_probe(dual->messages, dual->core, bound, cutoff, control);
}

/* Writes what is known into the core, which is then the only place that knows it. */
static void settle(MtfDual *dual, int64_t cutoff) {
    mtf_dual_prove(dual);
    return_to_best(dual);
    mtf_messages_pass(dual->messages);
    mtf_exact_bound_prune(exact_of(dual), dual->core, cutoff);
    mtf_messages_reparametrize(dual->messages, dual->core);
    drop_messages(dual);
}

void mtf_dual_shrink(MtfDual *dual, int64_t cutoff, const MtfSearchControl *control) {
    settle(dual, cutoff);
    shrink_and_restart(dual, false, control);
}

bool mtf_dual_pair(MtfDual *dual, int64_t cutoff, double most_entries, int most_values,
                   const MtfSearchControl *control) {
    settle(dual, cutoff);
    mtf_reduce_consistency(dual->core);
    bool paired = !dual->core->infeasible &&
                  mtf_core_pair_nodes(dual->core, NULL, most_entries, most_values) > 0;
    shrink_and_restart(dual, false, control);
    return paired;
}

bool mtf_dual_pair_alike(MtfDual *dual, double most_entries, int most_values,
                         const MtfSearchControl *control) {
    MtfCore *core = dual->core;
    g_autofree int *leader = mtf_layer_leaders(core, MTF_ALIKE_LAYERS);
    mtf_dual_expand(dual);
    if (leader == NULL)
        return false;
    mtf_messages_reparametrize(dual->messages, core);
    drop_messages(dual);
    bool paired = mtf_core_pair_nodes(core, leader, most_entries, most_values) > 0;
    shrink_and_restart(dual, false, control);
    return paired && !core->infeasible && mtf_dual_quotient(dual);
}

/* A dual on `core` with the same rows, prices and steps, and without messages. */
static MtfDual *twin(const MtfDual *dual, MtfCore *core) {
    MtfDual *copy = g_memdup2(dual, sizeof *dual);
    gsize rows = (gsize)dual->core->rows + 1;
    copy->core = core;
    copy->messages = NULL;
    copy->exact = NULL;
    copy->best_state = copy->leap_from = copy->leap_to = NULL;
    copy->rows = g_memdup2(dual->rows, rows * sizeof *dual->rows);
    copy->use = g_memdup2(dual->use, rows * sizeof *dual->use);
    copy->price = g_memdup2(dual->price, rows * sizeof *dual->price);
    copy->best_price = g_memdup2(dual->best_price, rows * sizeof *dual->best_price);
    return copy;
}

/* A dual on a copy of the core, pruned below the cutoff at the best bound's messages and prices, which the copy's
 * core then knows; NULL, where more than `most_entries` would be left. */
static MtfDual *copy_pruned(MtfDual *dual, int64_t cutoff, double most_entries, MtfCore **core) {
    g_assert(dual->quotient == NULL);
    g_autofree double *messages = mtf_messages_save(dual->messages, NULL);
    *core = mtf_core_copy(dual->core);
    (*core)->certificate = mtf_certificate_part(dual->core->certificate);
    MtfDual *copy = twin(dual, *core);
    copy->messages = dual->messages; /* lent, at the prices of the best bound */
    return_to_best(copy);
    if (dual->best_state != NULL)
        mtf_messages_restore(copy->messages, dual->best_state);
    mtf_messages_pass(copy->messages);
    mtf_exact_bound_prune(exact_of(dual), *core, cutoff);
    bool small = mtf_core_possible_entries(*core) <= most_entries;
    if (small)
        mtf_messages_reparametrize(copy->messages, *core);
    copy->messages = NULL;
    mtf_messages_restore(dual->messages, messages);
    mtf_messages_set_prices(dual->messages, dual->price);
    if (small)
        return copy;
    mtf_dual_free(copy);
    mtf_certificate_free((*core)->certificate);
    g_clear_pointer(core, mtf_core_free);
    return NULL;
}

MtfDual *mtf_dual_copy_below(MtfDual *dual, int64_t cutoff, double most_entries, MtfCore **core,
                             const MtfSearchControl *control) {
    MtfDual *copy = copy_pruned(dual, cutoff, most_entries, core);
    if (copy != NULL)
        shrink_and_restart(copy, false, control);
    return copy;
}

MtfDual *mtf_dual_copy_relaxed(MtfDual *dual, int64_t cutoff, MtfCore **core,
                               const MtfSearchControl *control) {
    MtfDual *copy = copy_pruned(dual, cutoff, INFINITY, core);
    copy->heeds_falls = true;
    shrink_and_restart(copy, true, control);
    return copy;
}

MtfMessages *mtf_dual_messages(const MtfDual *dual) {
    g_assert(dual->quotient == NULL);
    MtfMessages *messages = mtf_messages_new(dual->core);
    if (dual->best_state != NULL)
        mtf_messages_restore(messages, dual->best_state);
    mtf_messages_set_prices(messages, dual->best_price);
    return messages;
}

const MtfCore *mtf_dual_core(const MtfDual *dual) {
    return dual->core;
}
