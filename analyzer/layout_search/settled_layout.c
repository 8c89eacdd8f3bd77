// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/layout_search/settled_layout.h"

#include "cost/memory/arena.h"
#include "cost/tune/algorithm_choice.h"
#include "cost/tune/bucket_choice.h"
#include "cost/tune/order_search.h"

/* What choosing an order and buckets takes, in times that lowering the program took: orders are tried on what
 * it is made of, and for each size of buckets, or the one that there may be, it is lowered, scheduled and packed. */
#define ORDER_LOWERINGS 2.5
#define BUCKET_LOWERINGS 6
#define ONE_BUCKET_LOWERINGS 2.5

void mtf_settled_layout_clear(MtfSettledLayout *settled) {
    g_clear_pointer(&settled->program, mtf_program_free);
    g_clear_pointer(&settled->layout, mtf_layout_free);
}

static bool has_time(const MtfSearchControl *control, double seconds) {
    return !mtf_search_is_over(control) && mtf_search_seconds_left(control) >= seconds;
}

MtfProgram *mtf_layout_settle(const MtfGraph *graph, MtfLayout *layout, const MtfPricer *pricer,
                              const MtfSettling *how) {
    gint64 begun = g_get_monotonic_time();
    g_autoptr(MtfProgram) program = mtf_lower(graph, layout);
    double lowering = (double)(g_get_monotonic_time() - begun) / 1e6;
    double bucket = (how->bucket_bytes > 0 ? ONE_BUCKET_LOWERINGS : BUCKET_LOWERINGS) * lowering;
    if (layout->execution.order == NULL && (has_time(how->control, ORDER_LOWERINGS * lowering) ||
                                            !mtf_arena_fits(program, how->memory_limit)))
        mtf_layout_improve_order(graph, layout, &program, pricer, how->memory_limit);
    if (layout->execution.bucket_bytes == 0 && has_time(how->control, bucket))
        mtf_layout_choose_bucket(graph, layout, &program, pricer, how->memory_limit,
                                 how->bucket_bytes);
    if (how->collectives == NULL)
        return g_steal_pointer(&program);
    mtf_layout_choose_algorithms(graph, layout, pricer, how->collectives);
    return mtf_lower(graph, layout);
}
