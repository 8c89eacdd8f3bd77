// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/tune/order_search.h"

#include "cost/memory/arena.h"
#include "cost/price/schedule.h"
#include "cost/tune/order_bound.h"
#include "cost/tune/order_greedy.h"
#include "cost/tune/order_window.h"

/* Steps tried in all windows of one order together: a fraction of a second. */
#define MOST_WORK INT64_C(8000000)

typedef struct {
    const MtfOrderModel *model;
    MtfOrderReplay *replay;
    int *order;
    int64_t work;
} Search;

/* The segment that a place lies in. */
static void stretch_around(const MtfOrderModel *model, int place, int *begin, int *end) {
    int s = 0;
    while (model->ends[s] <= place)
        s++;
    *begin = s > 0 ? model->ends[s - 1] : 0;
    *end = model->ends[s];
}

static bool try_window(Search *search, int from, int to) {
    if (to - from < 2 || !mtf_order_window(search->model, search->replay, search->order, from,
                                           to - from, &search->work))
        return false;
    mtf_order_replay(search->model, search->order, search->replay);
    return true;
}

/* Lowers the worst place, in the smallest window that can. */
static bool lower_peak(Search *search) {
    static const int sizes[] = { 8, 16, 32, MTF_WINDOW_MOST };
    int peak = search->replay->peak, begin, end;
    if (mtf_order_least(search->model, search->order[peak]) >= search->replay->during[peak])
        return false;
    stretch_around(search->model, peak, &begin, &end);
    for (gsize i = 0; i < G_N_ELEMENTS(sizes); i++) {
        int size = MIN(sizes[i], end - begin);
        int starts[] = { peak - size / 2, peak - size + 1, peak };
        for (gsize k = 0; k < G_N_ELEMENTS(starts) && search->work < MOST_WORK; k++) {
            int from = CLAMP(starts[k], begin, end - size);
            if (try_window(search, from, from + size))
                return true;
        }
        if (size == end - begin)
            return false;
    }
    return false;
}

/* Lowers an order's worst place as far as windows can; returns the most live bytes. */
static int64_t lower_order(const MtfOrderModel *model, MtfOrderReplay *replay, int *order) {
    Search search = { model, replay, order, 0 };
    mtf_order_replay(model, order, replay);
    while (lower_peak(&search))
        ;
    return replay->during[replay->peak];
}

static int *written_order(const MtfOrderModel *model) {
    int *order = g_new(int, (gsize)model->n + 1);
    for (int i = 0; i < model->n; i++)
        order[i] = i;
    return order;
}

int *mtf_order_search(const MtfProgram *program, int64_t *peak) {
    if (program->graph->loops->len > 0)
        return NULL;
    g_autoptr(MtfOrderModel) model = mtf_order_model_new(program);
    g_autoptr(MtfOrderReplay) replay = mtf_order_replay_new(model);
    if (model->n == 0)
        return NULL;
    g_autofree int *order = written_order(model);
    mtf_order_replay(model, order, replay);
    int64_t written = replay->during[replay->peak], lowered = lower_order(model, replay, order);
    g_autofree int *greedy = mtf_order_greedy(model, MOST_WORK);
    int64_t other = greedy != NULL ? lower_order(model, replay, greedy) : INT64_MAX;
    if (peak != NULL)
        *peak = MIN(lowered, other);
    if (MIN(lowered, other) >= written)
        return NULL;
    return lowered <= other ? g_steal_pointer(&order) : g_steal_pointer(&greedy);
}

/* Whether the reordered program is to be preferred; `*bytes` are those of its arena. */
static bool is_better(const MtfProgram *standard, int64_t standard_bytes, const MtfProgram *program,
                      const MtfPricer *pricer, int64_t limit, int64_t *bytes) {
    g_autoptr(MtfArena) arena = mtf_arena_pack(program);
    *bytes = arena->bytes;
    if (arena->bytes >= standard_bytes || standard_bytes > limit)
        return arena->bytes < standard_bytes;
    g_autoptr(MtfSchedule) before = mtf_schedule_new(pricer, standard);
    g_autoptr(MtfSchedule) after = mtf_schedule_new(pricer, program);
    return after->nanoseconds <= before->nanoseconds;
}

/* Gives the layout, lowered to `standard` with an arena of `*bytes`, a better order if there is
 * one; returns what it is lowered to then, or NULL. */
static MtfProgram *improve_order(const MtfGraph *graph, MtfLayout *layout,
                                 const MtfProgram *standard, const MtfPricer *pricer, int64_t limit,
                                 int64_t *bytes) {
    g_autoptr(MtfProgram) written = mtf_lower_as_written(graph, layout);
    int *order = mtf_order_search(written, NULL);
    mtf_layout_set_order(layout, order, mtf_program_length(written));
    if (order == NULL)
        return NULL;
    g_autoptr(MtfProgram) program = mtf_lower(graph, layout);
    int64_t new_bytes;
    if (is_better(standard, *bytes, program, pricer, limit, &new_bytes)) {
        *bytes = new_bytes;
        return g_steal_pointer(&program);
    }
    mtf_layout_set_order(layout, NULL, 0);
    return NULL;
}

bool mtf_layout_improve_order(const MtfGraph *graph, MtfLayout *layout, MtfProgram **program,
                              const MtfPricer *pricer, int64_t limit) {
    g_assert(layout->execution.order == NULL);
    g_autoptr(MtfArena) arena = mtf_arena_pack(*program);
    int64_t bytes = arena->bytes;
    MtfProgram *better = improve_order(graph, layout, *program, pricer, limit, &bytes);
    if (better == NULL)
        return false;
    mtf_program_free(*program);
    *program = better;
    return true;
}

/* Whether the worst instruction might fit in another order. */
static bool may_fit(const MtfProgram *program, int64_t limit) {
    g_autoptr(MtfOrderModel) model = mtf_order_model_new(program);
    g_autoptr(MtfOrderReplay) replay = mtf_order_replay_new(model);
    g_autofree int *order = written_order(model);
    mtf_order_replay(model, order, replay);
    return model->n > 0 && mtf_order_least(model, replay->peak) <= limit;
}

int64_t mtf_layout_arena_bytes(const MtfGraph *graph, MtfLayout *layout, const MtfProgram *program,
                               const MtfPricer *pricer, int64_t limit) {
    g_autoptr(MtfArena) arena = mtf_arena_pack(program);
    int64_t bytes = arena->bytes;
    if (bytes > limit && layout->execution.order == NULL && may_fit(program, limit))
        mtf_program_free(improve_order(graph, layout, program, pricer, limit, &bytes));
    return bytes;
}
