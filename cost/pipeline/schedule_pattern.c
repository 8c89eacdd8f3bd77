// SPDX-License-Identifier: GPL-3.0-or-later
/* V-Half and V-Min (arXiv 2405.15362, "Pipeline parallelism with controllable memory"): a pattern of one
 * micro-batch on a grid of unit slots, repeated every 6 slots, whose lifetimes decide the memory. Each
 * rank has four streams, forwards down and up and input gradients down and up, two slots of six are for
 * weight gradients. First slots of rank i of p:
 *
 *     stream          V-Half                      V-Min
 *     forward down    2i                          i
 *     forward up      3p - i - 2                  2p - i - 1
 *     gradient down   3p + 2i - 1 + e             2p + i + d
 *     gradient up     6p - i - 2 + e              4p - i - 1 + d
 *
 * where e = 3 for even p and d = 2 for p a multiple of 3, else 0, so that no two meet in a slot. What
 * the grid then leaves empty at the beginning and the end is squeezed out as the authors' repository
 * does (zbv_greedy.py): actions of the ramps move to earlier free slots while no rank holds more than
 * the repeated pattern does, once with weight gradients in place and once with them filling what is
 * left. The order of the slots on each rank is the schedule. */
#include "cost/pipeline/schedule_rows.h"

#include <string.h>

enum { FORWARD_DOWN, FORWARD_UP, GRADIENT_DOWN, GRADIENT_UP, WEIGHT, STREAMS };
enum { PERIOD = 6, FREE = -1 };

typedef struct {
    int ranks, microbatches, slots; /* slots of the grid */
    int8_t *cell;                   /* [rank * slots + slot]: stream, or FREE */
    int *slot[STREAMS];             /* [rank * count + number] of each stream's actions */
    bool weights;                   /* whether the grid holds weight gradients */
} Grid;

/* How many actions a stream has on a rank: weight gradients of both ways count as one stream. */
static int stream_length(const Grid *grid, int stream) {
    return stream == WEIGHT ? 2 * grid->microbatches : grid->microbatches;
}

static int *slot_of(const Grid *grid, int stream, int rank, int number) {
    return &grid->slot[stream][rank * stream_length(grid, stream) + number];
}

static int8_t *cell_of(const Grid *grid, int rank, int slot) {
    return &grid->cell[rank * grid->slots + slot];
}

/* A grid on which at most that many slots are used. */
static void init_grid(Grid *grid, int ranks, int microbatches, int slots) {
    gsize cells = (gsize)ranks * (gsize)slots;
    *grid = (Grid){ .ranks = ranks, .microbatches = microbatches, .slots = slots };
    grid->cell = g_new(int8_t, cells);
    memset(grid->cell, FREE, cells);
    for (int t = 0; t < STREAMS; t++)
        grid->slot[t] = g_new0(int, (gsize)ranks *(gsize)stream_length(grid, t));
}

static void clear_grid(Grid *grid) {
    g_free(grid->cell);
    for (int t = 0; t < STREAMS; t++)
        g_free(grid->slot[t]);
}

static void place(Grid *grid, int stream, int rank, int number, int slot) {
    g_assert(slot < grid->slots && *cell_of(grid, rank, slot) == FREE);
    *cell_of(grid, rank, slot) = (int8_t)stream;
    *slot_of(grid, stream, rank, number) = slot;
}

static void move(Grid *grid, int stream, int rank, int number, int slot) {
    *cell_of(grid, rank, *slot_of(grid, stream, rank, number)) = FREE;
    place(grid, stream, rank, number, slot);
}

/* The slot after the rank's last input gradient. */
static int end_of_gradients(const Grid *grid, int rank) {
    int last = grid->microbatches - 1;
    return 1 +
           MAX(*slot_of(grid, GRADIENT_DOWN, rank, last), *slot_of(grid, GRADIENT_UP, rank, last));
}

/* Weight gradients into the rank's free slots, each after its input gradient. */
static void place_weights(Grid *grid, int rank) {
    int pending = 0, number = 0, end = end_of_gradients(grid, rank);
    for (int slot = 0; slot < end || pending > 0; slot++) {
        int stream = *cell_of(grid, rank, slot);
        if (stream == GRADIENT_DOWN || stream == GRADIENT_UP) {
            pending++;
        } else if (stream == FREE && pending > 0) {
            place(grid, WEIGHT, rank, number++, slot);
            pending--;
        }
    }
}

static void add_weights(Grid *grid) {
    for (int r = 0; r < grid->ranks; r++)
        place_weights(grid, r);
    grid->weights = true;
}

static void remove_weights(Grid *grid) {
    for (int i = 0; i < grid->ranks * grid->slots; i++)
        if (grid->cell[i] == WEIGHT)
            grid->cell[i] = FREE;
    grid->weights = false;
}

/* The most half micro-batches that the rank holds; without weight gradients in the grid each free slot
 * is one if there is any to do. */
static int most_held(const Grid *grid, int rank) {
    int held = 0, most = 0, pending = 0;
    for (int slot = 0; slot < grid->slots; slot++) {
        int stream = *cell_of(grid, rank, slot);
        bool filled = !grid->weights && stream == FREE && pending > 0;
        held += (stream == FORWARD_DOWN || stream == FORWARD_UP) - (stream == WEIGHT || filled);
        pending += (stream == GRADIENT_DOWN || stream == GRADIENT_UP) - filled;
        most = MAX(most, held);
    }
    return most;
}

/* One action of the grid, to be sorted by time. */
typedef struct {
    int slot, rank, stream, number;
} Place;

static int compare_places(const void *a, const void *b) {
    const Place *p = a, *q = b;
    int by_slot = p->slot - q->slot, by_rank = p->rank - q->rank, by_stream = p->stream - q->stream;
    if (by_slot != 0)
        return by_slot;
    if (by_rank != 0)
        return by_rank;
    return by_stream != 0 ? by_stream : p->number - q->number;
}

/* All actions by slot, then rank, then stream. */
static GArray *sorted_places(const Grid *grid) {
    GArray *places = g_array_new(FALSE, FALSE, sizeof(Place));
    for (int r = 0; r < grid->ranks; r++)
        for (int t = 0; t < (grid->weights ? STREAMS : WEIGHT); t++)
            for (int i = 0; i < stream_length(grid, t); i++) {
                Place p = { *slot_of(grid, t, r, i), r, t, i };
                g_array_append_val(places, p);
            }
    g_array_sort(places, compare_places);
    return places;
}

/* The slot of the n-th input gradient of the rank, both ways counted together. */
static int slot_of_gradient(const Grid *grid, int rank, int n) {
    int down = 0, up = 0, m = grid->microbatches;
    for (;; n--) {
        bool take_down = up == m || (down < m && *slot_of(grid, GRADIENT_DOWN, rank, down) <
                                                     *slot_of(grid, GRADIENT_UP, rank, up));
        int slot = take_down ? *slot_of(grid, GRADIENT_DOWN, rank, down)
                             : *slot_of(grid, GRADIENT_UP, rank, up);
        if (n == 0)
            return slot;
        *(take_down ? &down : &up) += 1;
    }
}

/* The last slot of all that this action waits for; -1 where it waits for nothing. */
static int slot_waited_for(const Grid *grid, const Place *at) {
    int last = -1, t = at->stream;
    bool down = t == FORWARD_DOWN || t == GRADIENT_DOWN, up = t == FORWARD_UP || t == GRADIENT_UP;
    if (down && at->rank > 0)
        last = *slot_of(grid, t, at->rank - 1, at->number);
    if (up && at->rank + 1 < grid->ranks)
        last = *slot_of(grid, t, at->rank + 1, at->number);
    if (t > FORWARD_DOWN && t < WEIGHT)
        last = MAX(last, *slot_of(grid, t - 1, at->rank, at->number));
    if (t == WEIGHT)
        last = slot_of_gradient(grid, at->rank, at->number);
    if (at->number > 0)
        last = MAX(last, *slot_of(grid, t, at->rank, at->number - 1));
    return last;
}

/* To the first free slot after what it waits for at which the rank does not hold more than `most`. */
static void move_earlier(Grid *grid, const Place *at, int most) {
    for (int slot = slot_waited_for(grid, at) + 1; slot < at->slot; slot++) {
        if (*cell_of(grid, at->rank, slot) != FREE)
            continue;
        move(grid, at->stream, at->rank, at->number, slot);
        if (most_held(grid, at->rank) <= most)
            return;
        move(grid, at->stream, at->rank, at->number, at->slot);
    }
}

/* Every action as early as the others of the grid let it begin, in the order of the grid. */
static void squeeze(Grid *grid) {
    g_autoptr(GArray) places = sorted_places(grid);
    g_autofree int *next = g_new0(int, (gsize)grid->ranks);
    memset(grid->cell, FREE, (gsize)grid->ranks * (gsize)grid->slots);
    for (guint i = 0; i < places->len; i++) {
        const Place *at = &g_array_index(places, Place, i);
        int waited = at->stream == WEIGHT ? -1 : slot_waited_for(grid, at);
        int slot = MAX(next[at->rank], waited + 1);
        place(grid, at->stream, at->rank, at->number, slot);
        next[at->rank] = slot + 1;
    }
}

static int most_held_anywhere(const Grid *grid) {
    int most = 0;
    for (int r = 0; r < grid->ranks; r++)
        most = MAX(most, most_held(grid, r));
    return most;
}

/* The ramps move: the one at the end, from the last forward on, and with `beginning` also the one
 * before the first micro-batch is through. */
static void squeeze_ramps(Grid *grid, bool beginning) {
    g_autoptr(GArray) places = sorted_places(grid);
    int most = most_held_anywhere(grid);
    enum { BEGINNING, MIDDLE, END } phase = BEGINNING;
    for (guint i = 0; i < places->len; i++) {
        const Place *at = &g_array_index(places, Place, i);
        if (at->stream == GRADIENT_UP && at->rank == 0 && phase == BEGINNING)
            phase = MIDDLE;
        if (phase == MIDDLE) {
            if (at->stream == FORWARD_DOWN && at->number == grid->microbatches - 1)
                phase = END;
        } else if (phase == END || beginning) {
            move_earlier(grid, at, most);
        }
    }
    if (!grid->weights)
        add_weights(grid);
    squeeze(grid);
}

/* Reads the schedule off the grid; a weight gradient is of the older pending one, and of the way down
 * where both wait. */
static MtfPipelineOrder *order_of_grid(Grid *grid) {
    int p = grid->ranks;
    MtfPipelineOrder *order = mtf_pipeline_order_new(p, 2 * p, grid->microbatches, MTF_STAGES_V);
    for (int r = 0; r < p; r++) {
        const int stage[WEIGHT] = { r, 2 * p - 1 - r, 2 * p - 1 - r, r };
        int done[WEIGHT] = { 0 }, weights[WEIGHT] = { 0 };
        for (int slot = 0; slot < grid->slots; slot++) {
            int t = *cell_of(grid, r, slot);
            if (t == FREE)
                continue;
            MtfPipelineWork work = t < GRADIENT_DOWN ? MTF_WORK_FORWARD : MTF_WORK_INPUT_GRADIENT;
            if (t == WEIGHT) {
                t = weights[GRADIENT_DOWN] < done[GRADIENT_DOWN] ? GRADIENT_DOWN : GRADIENT_UP;
                mtf_pipeline_order_add(order, MTF_WORK_WEIGHT_GRADIENT, stage[t], weights[t]++);
            } else {
                mtf_pipeline_order_add(order, work, stage[t], done[t]++);
            }
        }
    }
    return order;
}

static MtfPipelineOrder *make_from_pattern(const MtfPipelineCase *c, int (*first)(int, int, int)) {
    Grid grid;
    int p = c->ranks, m = c->microbatches;
    init_grid(&grid, p, m, PERIOD * (p + m) + 2 * m + 3 * PERIOD);
    for (int r = 0; r < p; r++)
        for (int t = 0; t < WEIGHT; t++)
            for (int i = 0; i < m; i++)
                place(&grid, t, r, i, first(t, r, p) + PERIOD * i);
    add_weights(&grid);
    squeeze_ramps(&grid, true);
    remove_weights(&grid);
    squeeze_ramps(&grid, false);
    remove_weights(&grid);
    add_weights(&grid);
    MtfPipelineOrder *order = order_of_grid(&grid);
    clear_grid(&grid);
    return order;
}

static int first_slot_of_half(int stream, int i, int p) {
    int e = p % 2 == 0 ? 3 : 0;
    const int first[WEIGHT] = { 2 * i, 3 * p - i - 2, 3 * p + 2 * i - 1 + e, 6 * p - i - 2 + e };
    return first[stream];
}

static int first_slot_of_min(int stream, int i, int p) {
    int d = p % 3 == 0 ? 2 : 0;
    const int first[WEIGHT] = { i, 2 * p - i - 1, 2 * p + i + d, 4 * p - i - 1 + d };
    return first[stream];
}

MtfPipelineOrder *mtf_schedule_v_half(const MtfPipelineCase *c, GError **error) {
    (void)error;
    return make_from_pattern(c, first_slot_of_half);
}

MtfPipelineOrder *mtf_schedule_v_min(const MtfPipelineCase *c, GError **error) {
    (void)error;
    return make_from_pattern(c, first_slot_of_min);
}
