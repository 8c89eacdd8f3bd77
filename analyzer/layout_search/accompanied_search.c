// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/layout_search/accompanied_search.h"

#include "analyzer/solver/problem/in_parallel.h"

#include <math.h>

typedef struct {
    const MtfPlanSearch *search;
    MtfMeshAttempt *attempt;
    MtfFreeSearchOptions options;
    const MtfLayout *settles;   /* or NULL */
    MtfSearchControl measuring; /* ends with the search */
    MtfFreeAnswer *answer;
    bool done;
    GError *error;
} Accompanied;

/* When the time of one mesh is up, some of that of the whole search is left for the plan: of this, settling takes
 * such a share. */
#define SETTLING_SHARE 0.2

static void init_settling(MtfSearchControl *part, const MtfSearchControl *own) {
    double left = mtf_search_seconds_left(own);
    bool ends = own != NULL && own->whole != NULL && isfinite(left);
    double more = ends ? mtf_search_seconds_left(own->whole) - left : 0;
    mtf_search_control_init_part(part, ends ? own->whole : own,
                                 ends ? left + SETTLING_SHARE * more : 0);
}

static void settle(const Accompanied *both) {
    MtfMeshAttempt *attempt = both->attempt;
    MtfSearchControl part;
    init_settling(&part, both->search->control);
    const MtfPlanSearchOptions *options = both->search->options;
    MtfSettledLayout *settled = &attempt->settled;
    settled->layout = mtf_layout_copy(both->settles);
    MtfSettling how = { .memory_limit = options->memory_limit,
                        .collectives = options->collectives,
                        .bucket_bytes = options->bucket_bytes,
                        .control = &part };
    settled->program =
        mtf_layout_settle(both->search->graph, settled->layout, &attempt->pricer, &how);
}

static void prepare(const Accompanied *both) {
    const MtfPlanSearchOptions *options = both->search->options;
    mtf_incumbents_measure(both->attempt->incumbents, options->memory_limit, &both->measuring);
    if (both->settles != NULL && !mtf_search_is_over(&both->measuring))
        settle(both);
}

static void search_or_prepare(int i, void *data) {
    Accompanied *both = data;
    if (i > 0) {
        prepare(both);
        return;
    }
    both->done =
        mtf_free_search(both->attempt->problem, &both->options, both->answer, &both->error);
    mtf_search_cancel(&both->measuring);
}

bool mtf_search_accompanied(const MtfPlanSearch *search, MtfMeshAttempt *attempt,
                            const MtfFreeSearchOptions *options, bool settles,
                            MtfFreeAnswer *answer, GError **error) {
    const MtfIncumbent *known =
        mtf_plan_search_is_large(search)
            ? mtf_incumbents_best(attempt->incumbents, search->options->memory_limit)
            : NULL;
    if (known == NULL)
        return mtf_free_search(attempt->problem, options, answer, error);
    g_autoptr(MtfIncumbents) cheapest = mtf_incumbents_new(search->graph, &attempt->pricer);
    MtfLayoutMeasures value = { known->cost, known->arena_bytes, known->step_seconds };
    mtf_incumbents_add_measured(cheapest, known->name, known->layout, &value);
    const MtfLayout *kept = attempt->free.layout != NULL ? attempt->free.layout : known->layout;
    Accompanied both = { .search = search,
                         .attempt = attempt,
                         .options = *options,
                         .settles = settles && search->options->settles ? kept : NULL,
                         .answer = answer };
    both.options.incumbents = cheapest;
    mtf_search_control_init_part(&both.measuring, search->control, 0);
    mtf_in_parallel(2, search_or_prepare, &both);
    if (!both.done || (settles && answer->cost < known->cost))
        mtf_settled_layout_clear(&attempt->settled);
    if (!both.done)
        g_propagate_error(error, both.error);
    return both.done;
}
