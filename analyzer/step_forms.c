// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/step_forms.h"

#include "analyzer/batch_parts.h"
#include "analyzer/memory_bound.h"
#include "analyzer/rule_search.h"

typedef struct {
    const MtfStepFormsOptions *options;
    int devices;
    GArray *counts;     /* int: of micro-batches, ascending */
    GArray *candidates; /* MtfStepCandidate */
    MtfStepCandidate smallest;
} Forms;

static MtfStepForm make_form(const MtfStepFormsOptions *options, int microbatches, int recompute) {
    return (MtfStepForm){ .microbatches = microbatches,
                          .batch_dim = options->batch_dim,
                          .precision = options->precision,
                          .recompute = (MtfRecompute)recompute };
}

static MtfGraph *graph_of(const MtfStepFormsOptions *options, const MtfStepForm *form,
                          GError **error) {
    return mtf_planning_training_graph(options->written, form, error);
}

/* ---- What there is to choose from ------------------------------------------------------------ */

/* A graph that has no batch, or is a training graph already, is done in one piece. */
static GArray *find_counts(const MtfStepFormsOptions *options) {
    GArray *counts = g_array_new(FALSE, FALSE, sizeof(int));
    int first = MAX(1, options->microbatches);
    g_array_append_val(counts, first);
    if (options->microbatches > 0 || options->written->updates->len > 0)
        return counts;
    int batch = mtf_batch_dimension(options->written, options->batch_dim, NULL);
    int64_t size = batch >= 0 ? mtf_graph_size(options->written, batch) : 1;
    for (int m = 2; m <= MIN(size, INT16_MAX); m++)
        if (size % m == 0 && m >= 2 * g_array_index(counts, int, counts->len - 1))
            g_array_append_val(counts, m);
    return counts;
}

static bool is_allowed(const MtfStepFormsOptions *options, int recompute) {
    return options->recompute == MTF_RECOMPUTES || options->recompute == recompute;
}

static MtfRecompute first_recompute(const MtfStepFormsOptions *options) {
    return options->recompute == MTF_RECOMPUTES ? MTF_RECOMPUTE_NONE
                                                : (MtfRecompute)options->recompute;
}

static bool is_fixed(const Forms *forms) {
    return forms->counts->len == 1 && forms->options->recompute != MTF_RECOMPUTES;
}

/* ---- One form -------------------------------------------------------------------------------- */

/* The best rules when memory is no matter: their cost, and whether they fit all the same. */
static bool price_rules(const Forms *forms, const MtfGraph *graph, int64_t *cost, bool *fits,
                        GError **error) {
    const MtfStepFormsOptions *options = forms->options;
    MtfRuleSearchOptions search = { .machine = options->machine,
                                    .memory_limit = INT64_MAX,
                                    .pins = options->pins,
                                    .forbids = options->forbids,
                                    .user = options->user,
                                    .cancel = options->cancel };
    MtfRuleAnswer answer = { 0 };
    bool done = mtf_rule_search(graph, options->meshes, &search, &answer, error);
    *cost = done && answer.found ? answer.cost : 0;
    *fits = done && answer.found && answer.arena_bytes <= options->memory_limit;
    mtf_rule_answer_clear(&answer);
    return done;
}

static void note_smallest(Forms *forms, const MtfStepCandidate *candidate) {
    if (candidate->least_bytes < forms->smallest.least_bytes)
        forms->smallest = *candidate;
}

typedef enum { CANNOT_FIT, TAKEN, IMPOSSIBLE, FAILED } Outcome;

/* Adds a form that might fit. One that cannot be made ends its line. */
static Outcome consider(Forms *forms, int microbatches, int recompute, bool *fits, GError **error) {
    MtfStepCandidate candidate = { .form = make_form(forms->options, microbatches, recompute) };
    g_autoptr(MtfGraph) graph = graph_of(forms->options, &candidate.form, NULL);
    if (graph == NULL)
        return IMPOSSIBLE;
    candidate.least_bytes = mtf_memory_bound(graph, forms->devices);
    note_smallest(forms, &candidate);
    if (candidate.least_bytes > forms->options->memory_limit)
        return CANNOT_FIT;
    if (!price_rules(forms, graph, &candidate.cost, fits, error))
        return FAILED;
    g_array_append_val(forms->candidates, candidate);
    return TAKEN;
}

/* ---- All forms ------------------------------------------------------------------------------- */

/* The first numbers of micro-batches that might fit with this recomputation; the plainest form of
 * all settles it when its best rules fit. */
static bool consider_line(Forms *forms, int recompute, bool *settled, GError **error) {
    int taken = 0;
    for (guint i = 0; i < forms->counts->len && taken < MTF_FORMS_A_CHOICE; i++) {
        bool fits = false;
        int microbatches = g_array_index(forms->counts, int, i);
        Outcome outcome = consider(forms, microbatches, recompute, &fits, error);
        if (outcome == FAILED)
            return false;
        if (outcome == IMPOSSIBLE)
            return true;
        taken += outcome == TAKEN;
        *settled = fits && i == 0 && recompute == (int)first_recompute(forms->options);
        if (*settled)
            return true;
    }
    return true;
}

static int compare_candidates(gconstpointer left, gconstpointer right) {
    const MtfStepCandidate *a = left, *b = right;
    int64_t a_cost = a->cost > 0 ? a->cost : INT64_MAX, b_cost = b->cost > 0 ? b->cost : INT64_MAX;
    if (a_cost != b_cost)
        return a_cost < b_cost ? -1 : 1;
    return a->form.microbatches - b->form.microbatches;
}

static bool consider_all(Forms *forms, GError **error) {
    bool settled = false;
    for (int recompute = 0; recompute < MTF_RECOMPUTES && !settled; recompute++)
        if (is_allowed(forms->options, recompute) &&
            !consider_line(forms, recompute, &settled, error))
            return false;
    g_array_sort(forms->candidates, compare_candidates);
    if (forms->candidates->len == 0)
        g_array_append_val(forms->candidates, forms->smallest);
    return true;
}

/* The form that was asked for, or the plainest one, must exist. */
static bool check_first(const Forms *forms, GError **error) {
    MtfStepForm form = make_form(forms->options, g_array_index(forms->counts, int, 0),
                                 (int)first_recompute(forms->options));
    g_autoptr(MtfGraph) graph = graph_of(forms->options, &form, error);
    return graph != NULL;
}

GArray *mtf_step_forms(const MtfStepFormsOptions *options, GError **error) {
    g_autoptr(GArray) counts = find_counts(options);
    g_autoptr(GArray) candidates = g_array_new(FALSE, TRUE, sizeof(MtfStepCandidate));
    Forms forms = { .options = options,
                    .devices = mtf_mesh_size(&g_array_index(options->meshes, MtfMesh, 0)),
                    .counts = counts,
                    .candidates = candidates,
                    .smallest = { .least_bytes = INT64_MAX } };
    if (!check_first(&forms, error))
        return NULL;
    MtfStepCandidate only = { .form = make_form(options, g_array_index(counts, int, 0),
                                                (int)first_recompute(options)) };
    if (is_fixed(&forms))
        g_array_append_val(candidates, only);
    else if (!consider_all(&forms, error))
        return NULL;
    return g_steal_pointer(&candidates);
}
