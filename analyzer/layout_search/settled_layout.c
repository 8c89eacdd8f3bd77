// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/layout_search/settled_layout.h"

#include "cost/memory/arena.h"
#include "cost/tune/algorithm_choice.h"
#include "cost/tune/bucket_choice.h"
#include "cost/tune/order_search.h"
#include "layouts/program/passes.h"

void mtf_settled_layout_clear(MtfSettledLayout *settled) {
    g_clear_pointer(&settled->program, mtf_program_free);
    g_clear_pointer(&settled->layout, mtf_layout_free);
}

MtfProgram *mtf_layout_settle(const MtfGraph *graph, MtfLayout *layout, const MtfPricer *pricer,
                              int64_t memory_limit, const char *collectives,
                              const MtfSearchControl *control) {
    g_autoptr(MtfProgram) program = mtf_lower(graph, layout);
    bool late = mtf_search_is_over(control);
    if (layout->execution.order == NULL && !(late && mtf_arena_fits(program, memory_limit)))
        mtf_layout_improve_order(graph, layout, &program, pricer, memory_limit);
    if (layout->execution.bucket_bytes == 0 && !mtf_search_is_over(control))
        mtf_layout_choose_bucket(graph, layout, &program, pricer, memory_limit);
    if (collectives == NULL)
        return g_steal_pointer(&program);
    mtf_layout_choose_algorithms(graph, layout, pricer, collectives);
    return mtf_lower(graph, layout);
}
