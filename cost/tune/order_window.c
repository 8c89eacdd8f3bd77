// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/tune/order_window.h"

#include <stdlib.h>
#include <string.h>

/* A value that instructions of the window read. */
typedef struct {
    int64_t bytes;
    guint64 readers; /* of the window */
    bool dies;       /* nobody reads it after the window */
} Value;

typedef struct {
    guint64 waits, followers;                       /* for these of the window; who waits for it */
    int64_t written, first_written, scratch, dead;  /* bytes; `dead` of what nobody reads */
    int read_begin, read_end, take_begin, take_end; /* in Window.reads and Window.takes */
} Item;

typedef struct {
    const MtfOrderModel *model;
    int count;
    Item items[MTF_WINDOW_MOST];
    GArray *values;        /* Value */
    GArray *reads, *takes; /* int: indexes into values */
} Window;

/* A set of instructions that have been run. */
typedef struct {
    guint64 done, ready; /* what may be run next */
    int64_t live, peak;
    int parent, item; /* the state before, and what was run */
} State;

/* ---- Reading the window ---------------------------------------------------------------------- */

/* places[i]: where instruction i stands in the window, kept in a table by instruction. */
static int place_of(GHashTable *places, int instruction) {
    gpointer place;
    bool known = g_hash_table_lookup_extended(places, GINT_TO_POINTER(instruction), NULL, &place);
    return known ? GPOINTER_TO_INT(place) : -1;
}

static int value_index(Window *window, const MtfOrderReplay *replay, GHashTable *known, int value,
                       int end) {
    gpointer index;
    if (g_hash_table_lookup_extended(known, GINT_TO_POINTER(value), NULL, &index))
        return GPOINTER_TO_INT(index);
    Value fresh = { window->model->bytes[value], 0, replay->last[value] < end };
    g_array_append_val(window->values, fresh);
    g_hash_table_insert(known, GINT_TO_POINTER(value),
                        GINT_TO_POINTER((int)window->values->len - 1));
    return (int)window->values->len - 1;
}

static void read_writes(const Window *window, const MtfOrderReplay *replay, Item *item, int i) {
    const MtfOrderModel *model = window->model;
    for (int k = model->write_begins[i]; k < model->write_begins[i + 1]; k++) {
        int value = model->writes[k];
        int64_t bytes = model->bytes[value];
        item->written += model->early[value] ? 0 : bytes;
        item->dead += replay->last[value] < 0 ? bytes : 0;
    }
    int first = model->writes[model->write_begins[i]];
    item->first_written = model->early[first] ? 0 : model->bytes[first];
}

static void read_item(Window *window, const MtfOrderReplay *replay, GHashTable *known, int i,
                      int place, int end) {
    const MtfOrderModel *model = window->model;
    Item *item = &window->items[place];
    item->scratch = model->scratch[i];
    read_writes(window, replay, item, i);
    item->read_begin = (int)window->reads->len;
    for (int k = model->read_begins[i]; k < model->read_begins[i + 1]; k++) {
        int index = value_index(window, replay, known, model->reads[k], end);
        g_array_index(window->values, Value, index).readers |= G_GUINT64_CONSTANT(1) << place;
        g_array_append_val(window->reads, index);
    }
    item->read_end = (int)window->reads->len;
    item->take_begin = (int)window->takes->len;
    for (int k = model->take_begins[i]; k < model->take_begins[i + 1]; k++) {
        int index = value_index(window, replay, known, model->takes[k], end);
        g_array_append_val(window->takes, index);
    }
    item->take_end = (int)window->takes->len;
}

static void window_init(Window *window, const MtfOrderModel *model, const MtfOrderReplay *replay,
                        const int *order, int from, int count) {
    g_autoptr(GHashTable) places = g_hash_table_new(NULL, NULL);
    g_autoptr(GHashTable) known = g_hash_table_new(NULL, NULL);
    *window = (Window){ .model = model,
                        .count = count,
                        .values = g_array_new(FALSE, FALSE, sizeof(Value)),
                        .reads = g_array_new(FALSE, FALSE, sizeof(int)),
                        .takes = g_array_new(FALSE, FALSE, sizeof(int)) };
    for (int p = 0; p < count; p++)
        g_hash_table_insert(places, GINT_TO_POINTER(order[from + p]), GINT_TO_POINTER(p));
    for (int p = 0; p < count; p++) {
        int i = order[from + p];
        read_item(window, replay, known, i, p, from + count);
        for (int k = model->waits->begins[i]; k < model->waits->begins[i + 1]; k++) {
            int place = place_of(places, model->waits->before[k]);
            if (place < 0)
                continue;
            window->items[p].waits |= G_GUINT64_CONSTANT(1) << place;
            window->items[place].followers |= G_GUINT64_CONSTANT(1) << p;
        }
    }
}

static void window_clear(Window *window) {
    g_array_unref(window->values);
    g_array_unref(window->reads);
    g_array_unref(window->takes);
}

/* ---- Running an item ------------------------------------------------------------------------- */

/* Whether the value is read by `item` for the last time. */
static bool dies_at(const Window *window, int value, guint64 done, int item) {
    const Value *v = &g_array_index(window->values, Value, value);
    return v->dies && (v->readers & ~done) == G_GUINT64_CONSTANT(1) << item;
}

static int overwritten(const Window *window, guint64 done, int item) {
    for (int k = window->items[item].take_begin; k < window->items[item].take_end; k++) {
        int value = g_array_index(window->takes, int, k);
        if (dies_at(window, value, done, item))
            return value;
    }
    return -1;
}

/* The instructions of `among` that wait for none but those done. */
static guint64 ready_items(const Window *window, guint64 among, guint64 done) {
    guint64 ready = 0;
    for (guint64 left = among; left != 0; left &= left - 1) {
        int item = __builtin_ctzll(left);
        ready |= (guint64)((window->items[item].waits & ~done) == 0) << item;
    }
    return ready;
}

/* The state after an item; false where its peak is not below the ceiling. */
static bool run_item(const Window *window, const State *state, int index, int item, int64_t ceiling,
                     State *next) {
    const Item *s = &window->items[item];
    int taken = overwritten(window, state->done, item);
    int64_t live = state->live + s->written - (taken >= 0 ? s->first_written : 0);
    *next = (State){ .done = state->done | G_GUINT64_CONSTANT(1) << item,
                     .peak = MAX(state->peak, live + s->scratch),
                     .live = live - s->dead,
                     .parent = index,
                     .item = item };
    if (next->peak >= ceiling)
        return false;
    for (int k = s->read_begin; k < s->read_end; k++) {
        int value = g_array_index(window->reads, int, k);
        if (value != taken && dies_at(window, value, state->done, item))
            next->live -= g_array_index(window->values, Value, value).bytes;
    }
    next->ready = (state->ready & ~(G_GUINT64_CONSTANT(1) << item)) |
                  ready_items(window, s->followers, next->done);
    return true;
}

/* ---- The dynamic program --------------------------------------------------------------------- */

/* States of a level, before those above the lowest MTF_WINDOW_STATES go; the table has twice as many places. */
#define MOST_STATES (2 * MTF_WINDOW_STATES)
#define TABLE_BITS 13
#define TABLE_SIZE (1 << TABLE_BITS)

typedef struct {
    GArray *states; /* State, level after level */
    int *table;     /* TABLE_SIZE: states of the level that is being made, or what lies before it */
    int level;      /* where that begins */
    bool full;      /* it had more states than are followed: */
    State highest;  /* the last of the lowest then; none above it is followed */
} Search;

static guint slot_of(guint64 done) {
    return (guint)((done * G_GUINT64_CONSTANT(0x9E3779B97F4A7C15)) >> (64 - TABLE_BITS));
}

/* Adds a state of the level, or improves the one of the same set. */
static void add_state(Search *search, const State *state) {
    guint slot = slot_of(state->done);
    for (; search->table[slot] >= search->level; slot = (slot + 1) & (TABLE_SIZE - 1)) {
        State *known = &g_array_index(search->states, State, search->table[slot]);
        if (known->done != state->done)
            continue;
        if (state->peak < known->peak)
            *known = *state;
        return;
    }
    search->table[slot] = (int)search->states->len;
    g_array_append_vals(search->states, state, 1);
}

static int lowest_first(const void *left, const void *right) {
    const State *a = left, *b = right;
    if (a->peak != b->peak)
        return a->peak < b->peak ? -1 : 1;
    if (a->live != b->live)
        return a->live < b->live ? -1 : 1;
    return (a->done > b->done) - (a->done < b->done);
}

/* Brings the `count` lowest states to the front (Hoare's selection). */
static void select_lowest(State *states, int n, int count) {
    for (int low = 0, high = n - 1; low < high;) {
        State pivot = states[low + (high - low) / 2];
        int i = low, j = high;
        while (i <= j) {
            while (lowest_first(&states[i], &pivot) < 0)
                i++;
            while (lowest_first(&states[j], &pivot) > 0)
                j--;
            if (i > j)
                break;
            State swapped = states[i];
            states[i++] = states[j];
            states[j--] = swapped;
        }
        if (j < count && i >= count)
            break;
        *(i < count ? &low : &high) = i < count ? i : j;
    }
}

/* Leaves the level the lowest states that are followed. */
static void shrink_level(Search *search) {
    State *states = &g_array_index(search->states, State, search->level);
    select_lowest(states, (int)search->states->len - search->level, MTF_WINDOW_STATES);
    g_array_set_size(search->states, (guint)(search->level + MTF_WINDOW_STATES));
    memset(search->table, -1, TABLE_SIZE * sizeof *search->table);
}

/* The same while more are to come. */
static void make_room(Search *search) {
    shrink_level(search);
    search->full = true;
    search->highest = g_array_index(search->states, State, search->level);
    for (int i = search->level; i < (int)search->states->len; i++) {
        const State *state = &g_array_index(search->states, State, i);
        guint slot = slot_of(state->done);
        while (search->table[slot] >= search->level)
            slot = (slot + 1) & (TABLE_SIZE - 1);
        search->table[slot] = i;
        if (lowest_first(state, &search->highest) > 0)
            search->highest = *state;
    }
}

/* Makes all states with one instruction more than those from `begin` to `end`. */
static void make_level(const Window *window, Search *search, int begin, int end, int64_t ceiling) {
    search->level = end;
    search->full = false;
    for (int index = begin; index < end; index++) {
        State state = g_array_index(search->states, State, index), next;
        for (guint64 left = state.ready; left != 0; left &= left - 1) {
            bool low = run_item(window, &state, index, __builtin_ctzll(left), ceiling, &next);
            if (!low || (search->full && lowest_first(&next, &search->highest) > 0))
                continue;
            add_state(search, &next);
            if ((int)search->states->len - end == MOST_STATES)
                make_room(search);
        }
    }
    if ((int)search->states->len - end <= MTF_WINDOW_STATES)
        return;
    shrink_level(search);
    qsort(&g_array_index(search->states, State, end), MTF_WINDOW_STATES, sizeof(State),
          lowest_first);
}

/* Puts the way to state `index` into `order`, which holds the window's instructions. */
static void put_in_order(const GArray *states, int index, int *order, int count) {
    g_autofree int *old = g_memdup2(order, (gsize)count * sizeof *order);
    for (int p = count - 1; p >= 0; p--) {
        const State *state = &g_array_index(states, State, index);
        order[p] = old[state->item];
        index = state->parent;
    }
}

bool mtf_order_window(const MtfOrderModel *model, const MtfOrderReplay *replay, int *order,
                      int from, int count, int64_t *work) {
    Window window;
    int64_t ceiling = replay->during[replay->peak];
    State start = { .live = replay->before[from], .parent = -1, .item = -1 };
    Search search = { .states = g_array_new(FALSE, FALSE, sizeof(State)),
                      .table = g_new(int, TABLE_SIZE) };
    window_init(&window, model, replay, order, from, count);
    start.ready = ready_items(&window, ~G_GUINT64_CONSTANT(0) >> (64 - count), 0);
    memset(search.table, -1, TABLE_SIZE * sizeof *search.table);
    g_array_append_val(search.states, start);
    int begin = 0, size = 0;
    for (; size < count && begin < (int)search.states->len; size++) {
        int end = (int)search.states->len;
        make_level(&window, &search, begin, end, ceiling);
        *work += (int64_t)(end - begin) * count;
        begin = end;
    }
    bool found = size == count && begin < (int)search.states->len;
    if (found)
        put_in_order(search.states, begin, order + from, count);
    g_array_unref(search.states);
    g_free(search.table);
    window_clear(&window);
    return found;
}
