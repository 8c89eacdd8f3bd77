// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/planner/step_forms.h"

#include "analyzer/planner/memory_bound.h"
#include "analyzer/rules/rule_search.h"
#include "analyzer/solver/problem/in_parallel.h"
#include "analyzer/training/batch_parts.h"

/* A form that might fit, and what its best rules cost when memory is no matter. */
typedef struct {
    MtfStepCandidate candidate;
    bool priced;
    int64_t arena_bytes;
    GError *error;
} Trial;

typedef enum { CANNOT_FIT, MIGHT_FIT, IMPOSSIBLE } Outcome;

typedef struct {
    const MtfStepFormsOptions *options;
    int devices;
    GArray *counts;     /* int: of micro-batches, ascending */
    GArray *candidates; /* MtfStepCandidate */
    MtfStepCandidate smallest;
    Trial plainest; /* the first form of all; another takes it over */
    Outcome plainest_outcome;
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

static void candidate_clear(gpointer data) {
    g_clear_pointer(&((MtfStepCandidate *)data)->graph, mtf_graph_free);
}

static void trial_clear(gpointer data) {
    Trial *trial = data;
    candidate_clear(&trial->candidate);
    g_clear_error(&trial->error);
}

/* Prices the best rules of a trial's form. Only where the arena matters is it packed. */
static void price_rules(const Forms *forms, Trial *trial, bool packed) {
    const MtfStepFormsOptions *options = forms->options;
    if (trial->priced)
        return;
    MtfRuleSearchOptions search = { .machine = options->machine,
                                    .memory_limit = INT64_MAX,
                                    .unpacked = !packed,
                                    .pins = options->pins,
                                    .forbids = options->forbids,
                                    .user = options->user,
                                    .cancel = options->cancel };
    MtfRuleAnswer answer = { 0 };
    bool done =
        mtf_rule_search(trial->candidate.graph, options->meshes, &search, &answer, &trial->error);
    trial->candidate.cost = done && answer.found ? answer.cost : 0;
    trial->arena_bytes = done && answer.found ? answer.arena_bytes : INT64_MAX;
    mtf_rule_answer_clear(&answer);
    trial->priced = true;
}

static void note_smallest(MtfStepCandidate *smallest, const MtfStepCandidate *candidate) {
    if (candidate->least_bytes >= smallest->least_bytes)
        return;
    *smallest = *candidate;
    smallest->graph = NULL;
}

/* Makes a form's graph and sees whether it might fit; one that cannot be made ends its line. */
static Outcome make_trial(const Forms *forms, MtfStepForm form, Trial *trial, GError **error) {
    g_autoptr(MtfGraph) graph = graph_of(forms->options, &form, error);
    *trial = (Trial){ .candidate = { .form = form } };
    if (graph == NULL)
        return IMPOSSIBLE;
    trial->candidate.least_bytes = mtf_memory_bound(graph, forms->devices);
    if (trial->candidate.least_bytes > forms->options->memory_limit)
        return CANNOT_FIT;
    trial->candidate.graph = g_steal_pointer(&graph);
    return MIGHT_FIT;
}

/* ---- All forms ------------------------------------------------------------------------------- */

/* The forms with one kind of recomputation. */
typedef struct {
    Trial trials[MTF_FORMS_A_CHOICE]; /* the first numbers of micro-batches that might fit */
    int count;
    MtfStepCandidate smallest;
} Line;

typedef struct {
    Forms *forms;
    Line lines[MTF_RECOMPUTES];
    GPtrArray *trials; /* Trial *, those of all lines */
} Lines;

static int most_trials(const Line *line) {
    bool large =
        line->count > 0 && line->trials[0].candidate.graph->operations->len > MTF_LARGE_OPERATIONS;
    return large ? MTF_FORMS_A_CHOICE_LARGE : MTF_FORMS_A_CHOICE;
}

static MtfStepForm form_of(const Forms *forms, guint count, int recompute) {
    return make_form(forms->options, g_array_index(forms->counts, int, count), recompute);
}

static Outcome take_plainest(Forms *forms, Trial *trial) {
    *trial = forms->plainest;
    forms->plainest = (Trial){ 0 };
    return forms->plainest_outcome;
}

static void fill_line(int recompute, void *data) {
    Lines *lines = data;
    Forms *forms = lines->forms;
    Line *line = &lines->lines[recompute];
    line->smallest.least_bytes = INT64_MAX;
    if (!is_allowed(forms->options, recompute))
        return;
    for (guint i = 0; i < forms->counts->len && line->count < most_trials(line); i++) {
        Trial *trial = &line->trials[line->count];
        bool plainest = i == 0 && recompute == (int)first_recompute(forms->options);
        Outcome outcome = plainest ? take_plainest(forms, trial)
                                   : make_trial(forms, form_of(forms, i, recompute), trial, NULL);
        if (outcome == IMPOSSIBLE)
            return;
        note_smallest(&line->smallest, &trial->candidate);
        line->count += outcome == MIGHT_FIT;
    }
}

static void price_trial(int i, void *data) {
    const Lines *lines = data;
    price_rules(lines->forms, g_ptr_array_index(lines->trials, (guint)i), false);
}

static bool take_trials(const Lines *lines, GArray *candidates, GError **error) {
    for (guint i = 0; i < lines->trials->len; i++) {
        Trial *trial = g_ptr_array_index(lines->trials, i);
        if (trial->error != NULL) {
            g_propagate_error(error, g_steal_pointer(&trial->error));
            return false;
        }
        g_array_append_val(candidates, trial->candidate);
        trial->candidate.graph = NULL;
    }
    return true;
}

static bool consider_lines(Forms *forms, GError **error) {
    g_autoptr(GPtrArray) trials = g_ptr_array_new_with_free_func(trial_clear);
    Lines lines = { .forms = forms, .trials = trials };
    mtf_in_parallel(MTF_RECOMPUTES, fill_line, &lines);
    for (int recompute = 0; recompute < MTF_RECOMPUTES; recompute++) {
        Line *line = &lines.lines[recompute];
        note_smallest(&forms->smallest, &line->smallest);
        for (int i = 0; i < line->count; i++)
            g_ptr_array_add(trials, &line->trials[i]);
    }
    mtf_in_parallel((int)trials->len, price_trial, &lines);
    return take_trials(&lines, forms->candidates, error);
}

/* The form that was asked for, or the plainest one: it must exist. */
static bool make_plainest(Forms *forms, GError **error) {
    MtfStepForm form = form_of(forms, 0, (int)first_recompute(forms->options));
    forms->plainest_outcome = make_trial(forms, form, &forms->plainest, error);
    return forms->plainest_outcome != IMPOSSIBLE;
}

static void add_plainest(Forms *forms) {
    g_array_append_val(forms->candidates, forms->plainest.candidate);
    forms->plainest.candidate.graph = NULL;
}

/* The plainest form of all is the only one when its best rules fit. */
static bool consider_plainest(Forms *forms, bool *settled, GError **error) {
    Trial *trial = &forms->plainest;
    *settled = false;
    note_smallest(&forms->smallest, &trial->candidate);
    if (forms->plainest_outcome != MIGHT_FIT)
        return true;
    price_rules(forms, trial, true);
    if (trial->error != NULL) {
        g_propagate_error(error, g_steal_pointer(&trial->error));
        return false;
    }
    *settled = trial->arena_bytes <= forms->options->memory_limit;
    if (*settled)
        add_plainest(forms);
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
    bool settled;
    if (!consider_plainest(forms, &settled, error) || (!settled && !consider_lines(forms, error)))
        return false;
    g_array_sort(forms->candidates, compare_candidates);
    if (forms->candidates->len == 0)
        g_array_append_val(forms->candidates, forms->smallest);
    return true;
}

GArray *mtf_step_forms(const MtfStepFormsOptions *options, GError **error) {
    g_autoptr(GArray) counts = find_counts(options);
    g_autoptr(GArray) candidates = g_array_new(FALSE, TRUE, sizeof(MtfStepCandidate));
    g_array_set_clear_func(candidates, candidate_clear);
    Forms forms = { .options = options,
                    .devices = mtf_mesh_size(&g_array_index(options->meshes, MtfMesh, 0)),
                    .counts = counts,
                    .candidates = candidates,
                    .smallest = { .least_bytes = INT64_MAX } };
    bool done = make_plainest(&forms, error);
    if (done && is_fixed(&forms))
        add_plainest(&forms);
    else if (done)
        done = consider_all(&forms, error);
    trial_clear(&forms.plainest);
    return done ? g_steal_pointer(&candidates) : NULL;
}
