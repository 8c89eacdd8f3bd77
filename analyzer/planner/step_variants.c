// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/planner/step_variants.h"

#include "analyzer/layout_search/merged_axes.h"
#include "analyzer/layout_search/mesh_choice.h"
#include "analyzer/layout_search/plan_search.h"
#include "analyzer/planner/memory_bound.h"
#include "analyzer/rules/rule_search.h"
#include "analyzer/solver/problem/in_parallel.h"
#include "analyzer/training/batch_dimension.h"

#include <math.h>
#include <string.h>

/* Variants whose rules' prices are kept for their searches: the two that are searched at once and as many behind them. */
#define KEPT_PRICES (2 * MTF_VARIANTS_AT_ONCE)

/* A variant that might fit, and what its best rules cost when memory is no matter. */
typedef struct {
    MtfStepCandidate candidate;
    bool priced;
    int64_t arena_bytes;
    GError *error;
} Trial;

typedef enum { CANNOT_FIT, MIGHT_FIT, IMPOSSIBLE } Outcome;

typedef struct {
    const MtfStepVariantsOptions *options;
    int devices;
    MtfGraph *training; /* what all variants run */
    double seconds;     /* that it took to be made */
    GArray *counts;     /* int: of micro-batches, ascending */
    GArray *candidates; /* MtfStepCandidate */
    MtfStepCandidate smallest;
    Trial unsplit; /* the first variant of all; another takes it over */
    Outcome unsplit_outcome;
} Variants;

static MtfStepVariant make_variant(const MtfStepVariantsOptions *options, int microbatches,
                                   int recompute) {
    return (MtfStepVariant){ .microbatches = microbatches,
                             .batch_dim = options->batch_dim,
                             .precision = options->precision,
                             .recompute = (MtfRecompute)recompute,
                             .recomputed_layers = options->recomputed_layers,
                             .offload = options->offload,
                             .offloaded_layers = options->offloaded_layers,
                             .key_parts = options->key_parts,
                             .ring = options->ring,
                             .fuses = options->machine->software != NULL,
                             .framework = mtf_software_framework(options->machine->software) };
}

static MtfGraph *graph_of(const Variants *variants, const MtfStepVariant *variant, GError **error) {
    MtfDivision division;
    return mtf_planning_division(variants->options->written, variant, &division, error)
               ? mtf_planning_execute(variants->training, &division, variant, error)
               : NULL;
}

/* ---- What there is to choose from ------------------------------------------------------------ */

/* A graph that has no batch is done in one piece. */
static GArray *find_counts(const MtfStepVariantsOptions *options) {
    GArray *counts = g_array_new(FALSE, FALSE, sizeof(int));
    int first = MAX(1, options->microbatches);
    g_array_append_val(counts, first);
    if (options->microbatches > 0)
        return counts;
    int batch = mtf_batch_dimension(options->written, options->batch_dim, NULL);
    int64_t size = batch >= 0 ? mtf_graph_size(options->written, batch) : 1;
    for (int m = 2; m <= MIN(size, INT16_MAX); m++)
        if (size % m == 0 && m >= 2 * g_array_index(counts, int, counts->len - 1))
            g_array_append_val(counts, m);
    return counts;
}

static bool is_allowed(const MtfStepVariantsOptions *options, int recompute) {
    return options->recompute == MTF_RECOMPUTES || options->recompute == recompute;
}

static MtfRecompute first_recompute(const MtfStepVariantsOptions *options) {
    return options->recompute == MTF_RECOMPUTES ? MTF_RECOMPUTE_NONE
                                                : (MtfRecompute)options->recompute;
}

static bool is_fixed(const Variants *variants) {
    return variants->counts->len == 1 && variants->options->recompute != MTF_RECOMPUTES;
}

/* ---- One variant -------------------------------------------------------------------------------- */

static void candidate_clear(gpointer data) {
    MtfStepCandidate *candidate = data;
    g_clear_pointer(&candidate->prices, mtf_rule_prices_free);
    g_clear_pointer(&candidate->look, mtf_first_look_free);
    g_clear_pointer(&candidate->graph, mtf_graph_free);
}

/* Adds a candidate to those that own what they have. */
static void hand_over(MtfStepCandidate *candidate, GArray *candidates) {
    g_array_append_val(candidates, *candidate);
    candidate->graph = NULL;
    candidate->prices = NULL;
    candidate->look = NULL;
}

static void trial_clear(gpointer data) {
    Trial *trial = data;
    candidate_clear(&trial->candidate);
    g_clear_error(&trial->error);
}

/* The first merge of a mesh of many axes that the machine has room for, where there is one. */
static MtfMesh merged_mesh(const MtfMachine *machine, const MtfMesh *mesh) {
    g_autoptr(GArray) merges = mtf_axis_merges(mesh, MTF_UNMERGED_AXES);
    for (guint i = 0; i < merges->len; i++) {
        const MtfMesh *merged = &g_array_index(merges, MtfAxisMerge, i).mesh;
        MtfPricer pricer;
        if (mtf_pricer_init(&pricer, machine, merged, NULL))
            return *merged;
    }
    return *mesh;
}

/* The meshes that variants are compared on. */
static GArray *compared_meshes(const MtfStepVariantsOptions *options) {
    GArray *meshes = mtf_meshes_at_first(options->meshes);
    for (guint i = 0; i < meshes->len; i++) {
        MtfMesh *mesh = &g_array_index(meshes, MtfMesh, i);
        if (options->pins == NULL && options->forbids == NULL &&
            mtf_axes_should_merge(options->written, mesh))
            *mesh = merged_mesh(options->machine, mesh);
    }
    return meshes;
}

bool mtf_step_variant_equal(const MtfStepVariant *a, const MtfStepVariant *b) {
    return MAX(1, a->microbatches) == MAX(1, b->microbatches) && a->recompute == b->recompute &&
           a->recomputed_layers == b->recomputed_layers && a->offload == b->offload &&
           a->offloaded_layers == b->offloaded_layers &&
           MAX(1, a->key_parts) == MAX(1, b->key_parts) && MAX(1, a->ring) == MAX(1, b->ring);
}

GArray *mtf_step_candidates_priced(const GArray *candidates) {
    GArray *priced = g_array_new(FALSE, TRUE, sizeof(MtfStepCandidate));
    for (guint i = 0; i < candidates->len; i++) {
        MtfStepCandidate known = g_array_index(candidates, MtfStepCandidate, i);
        known.graph = NULL;
        known.prices = NULL;
        known.look = NULL;
        if (known.cost > 0)
            g_array_append_val(priced, known);
    }
    return priced;
}

/* Takes what the best rules of a trial's variant cost without a limit, where another search has priced them, and packed
 * them if that is asked for. */
static bool take_priced(const MtfStepVariantsOptions *options, Trial *trial, bool packed) {
    for (guint i = 0; options->priced != NULL && i < options->priced->len; i++) {
        const MtfStepCandidate *known = &g_array_index(options->priced, MtfStepCandidate, i);
        if (!mtf_step_variant_equal(&known->variant, &trial->candidate.variant) ||
            (packed && known->rules_bytes == 0))
            continue;
        trial->candidate.cost = known->cost;
        trial->candidate.rules_bytes = trial->arena_bytes = known->rules_bytes;
        trial->priced = true;
    }
    return trial->priced;
}

/* Prices the best rules of a trial's variant under the limit, while there is time. Only where the arena matters
 * is it packed. */
static void price_rules(const Variants *variants, Trial *trial, int64_t limit, bool packed) {
    const MtfStepVariantsOptions *options = variants->options;
    if (trial->priced || (limit == INT64_MAX && take_priced(options, trial, packed)))
        return;
    trial->arena_bytes = INT64_MAX;
    if (!packed && mtf_search_is_over(options->control))
        return;
    if (trial->candidate.prices == NULL)
        trial->candidate.prices = mtf_rule_prices_new(trial->candidate.graph, options->operations);
    MtfRuleSearchOptions search = { .machine = options->machine,
                                    .memory_limit = limit,
                                    .wanted = MTF_PROMISING,
                                    .prices = trial->candidate.prices,
                                    .modelled = !packed,
                                    .draft = true,
                                    .pins = options->pins,
                                    .forbids = options->forbids,
                                    .control = options->control };
    MtfRuleAnswer answer = { 0 };
    g_autoptr(GArray) meshes = compared_meshes(options);
    bool done = mtf_rule_search(trial->candidate.graph, meshes, &search, &answer, &trial->error);
    trial->candidate.cost = done && answer.found ? answer.cost : 0;
    trial->arena_bytes = done && answer.found ? answer.arena_bytes : INT64_MAX;
    trial->candidate.rules_bytes = packed && done && answer.found ? answer.arena_bytes : 0;
    mtf_rule_answer_clear(&answer);
    trial->priced = true;
}

static double seconds_since(gint64 begun) {
    return (double)(g_get_monotonic_time() - begun) / 1e6;
}

static void note_smallest(MtfStepCandidate *smallest, const MtfStepCandidate *candidate) {
    if (candidate->least_bytes >= smallest->least_bytes)
        return;
    *smallest = *candidate;
    smallest->graph = NULL;
    smallest->prices = NULL;
}

/* Makes a variant's graph and sees whether it might fit; one that cannot be made ends its line. */
static Outcome make_trial(const Variants *variants, MtfStepVariant variant, Trial *trial,
                          GError **error) {
    gint64 begun = g_get_monotonic_time();
    g_autoptr(MtfGraph) graph = graph_of(variants, &variant, error);
    *trial = (Trial){ .candidate = { .variant = variant } };
    trial->candidate.seconds = variants->seconds + seconds_since(begun);
    if (graph == NULL)
        return IMPOSSIBLE;
    trial->candidate.least_bytes = mtf_memory_bound(graph, variants->devices);
    if (trial->candidate.least_bytes > variants->options->memory_limit)
        return CANNOT_FIT;
    trial->candidate.graph = g_steal_pointer(&graph);
    return MIGHT_FIT;
}

/* ---- All variants ------------------------------------------------------------------------------- */

/* The variants with one kind of recomputation. */
typedef struct {
    Trial trials[MTF_VARIANTS_A_CHOICE]; /* the first numbers of micro-batches that might fit */
    int count;
    int next; /* to be priced */
    MtfStepCandidate smallest;
} Line;

typedef struct {
    Variants *variants;
    Line lines[MTF_RECOMPUTES];
    GPtrArray *trials; /* Trial *, those of all lines */
} Lines;

static int most_trials(const Line *line) {
    bool large =
        line->count > 0 && line->trials[0].candidate.graph->operations->len > MTF_LARGE_OPERATIONS;
    return large ? MTF_VARIANTS_A_CHOICE_LARGE : MTF_VARIANTS_A_CHOICE;
}

static MtfStepVariant variant_of(const Variants *variants, guint count, int recompute) {
    return make_variant(variants->options, g_array_index(variants->counts, int, count), recompute);
}

static Outcome take_unsplit(Variants *variants, Trial *trial) {
    *trial = variants->unsplit;
    variants->unsplit = (Trial){ 0 };
    return variants->unsplit_outcome;
}

/* Whether some rule layout of a variant is modelled to fit: its trial is kept in `first` then. */
static bool rules_may_fit(const Variants *variants, guint count, int recompute, Trial *first) {
    Trial trial;
    bool fits =
        make_trial(variants, variant_of(variants, count, recompute), &trial, NULL) == MIGHT_FIT;
    if (fits) {
        price_rules(variants, &trial, variants->options->memory_limit, false);
        fits = trial.arena_bytes < INT64_MAX;
    }
    if (fits) {
        trial_clear(first);
        *first = trial;
    } else {
        trial_clear(&trial);
    }
    return fits;
}

/* Where a line begins: more micro-batches need less, so the first that fit are found by bisection. `first` is their
 * trial, where it was made. */
static guint first_count(const Variants *variants, int recompute, Trial *first) {
    guint low = 0, high = variants->counts->len - 1;
    if (!variants->options->rules_only)
        return 0;
    while (low < high) {
        guint middle = (low + high) / 2;
        if (rules_may_fit(variants, middle, recompute, first))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static void fill_line(int recompute, void *data) {
    Lines *lines = data;
    Variants *variants = lines->variants;
    Line *line = &lines->lines[recompute];
    line->smallest.least_bytes = INT64_MAX;
    if (!is_allowed(variants->options, recompute))
        return;
    guint first = first_count(variants, recompute, &line->trials[0]);
    if (line->trials[0].priced)
        note_smallest(&line->smallest, &line->trials[line->count++].candidate);
    for (guint i = first + (guint)line->count;
         i < variants->counts->len && line->count < most_trials(line); i++) {
        if (line->count > 0 && mtf_search_is_over(variants->options->control))
            return;
        Trial *trial = &line->trials[line->count];
        bool unsplit = i == 0 && recompute == (int)first_recompute(variants->options);
        Outcome outcome =
            unsplit ? take_unsplit(variants, trial)
                    : make_trial(variants, variant_of(variants, i, recompute), trial, NULL);
        if (outcome == IMPOSSIBLE)
            return;
        note_smallest(&line->smallest, &trial->candidate);
        line->count += outcome == MIGHT_FIT;
    }
}

/* Whether two variants are all that is searched, of a step with such a graph. */
static bool has_few_tries(const Variants *variants, const MtfGraph *graph) {
    return !variants->options->rules_only &&
           graph->operations->len > (guint)variants->options->few_tries;
}

static void price_within_limit(int i, void *data) {
    const Lines *lines = data;
    price_rules(lines->variants, g_ptr_array_index(lines->trials, (guint)i),
                lines->variants->options->memory_limit, false);
}

static void price_next(int recompute, void *data) {
    Lines *lines = data;
    Line *line = &lines->lines[recompute];
    if (line->next < line->count)
        price_rules(lines->variants, &line->trials[line->next], INT64_MAX, false);
    line->next++;
}

/* What the last that was priced of a line costs; INT64_MAX: not known, or it is passed. */
static int64_t last_cost(const Line *line) {
    int64_t cost = line->next <= line->count && line->next > 0
                       ? line->trials[line->next - 1].candidate.cost
                       : 0;
    return cost > 0 ? cost : INT64_MAX;
}

static int cheapest_line(const Lines *lines) {
    int cheapest = 0;
    for (int recompute = 1; recompute < MTF_RECOMPUTES; recompute++)
        if (last_cost(&lines->lines[recompute]) < last_cost(&lines->lines[cheapest]))
            cheapest = recompute;
    return cheapest;
}

/* Leaves trials of a line out. */
static void drop_trials(Lines *lines, Line *line, int first) {
    for (int i = first; i < line->count; i++)
        g_ptr_array_remove(lines->trials, &line->trials[i]);
    line->count = MIN(line->count, first);
}

/* Looks at the cheapest of the lines' first variants, and leaves out what is as hopeless as that. */
static void look_at_cheapest(Lines *lines) {
    const MtfStepVariantsOptions *options = lines->variants->options;
    Line *cheapest = &lines->lines[cheapest_line(lines)];
    MtfStepCandidate *candidate = &cheapest->trials[0].candidate;
    if (options->look == NULL || last_cost(cheapest) == INT64_MAX)
        return;
    candidate->look = options->look(candidate, options->look_data);
    if (candidate->look == NULL || candidate->look->meshes->len > 0)
        return;
    int64_t least = candidate->look->least;
    for (int recompute = 0; recompute < MTF_RECOMPUTES; recompute++) {
        Line *line = &lines->lines[recompute];
        const MtfStepCandidate *first = &line->trials[0].candidate;
        if (line == cheapest)
            drop_trials(lines, line, 1);
        else if (first->cost >= MAX(candidate->cost, least))
            drop_trials(lines, line, 0);
    }
}

/* Memory apart more micro-batches cost more, so lines are merged as far as the order is asked for: behind the cheapest
 * comes the next of its line, or the first of another. */
static void merge_lines(Lines *lines) {
    const Trial *first = g_ptr_array_index(lines->trials, 0);
    int known = has_few_tries(lines->variants, first->candidate.graph) ? MTF_VARIANTS_AT_ONCE
                                                                       : MTF_VARIANTS_A_CHOICE;
    mtf_in_parallel(MTF_RECOMPUTES, price_next, lines);
    look_at_cheapest(lines);
    for (int i = 1; i < known; i++)
        price_next(cheapest_line(lines), lines);
}

/* Under the limit more micro-batches may cost less, since less must be cut: all are priced. */
static void price_trials(Lines *lines) {
    if (lines->variants->options->rules_only)
        mtf_in_parallel((int)lines->trials->len, price_within_limit, lines);
    else if (lines->trials->len > 0)
        merge_lines(lines);
}

static bool take_trials(const Lines *lines, GArray *candidates, GError **error) {
    for (guint i = 0; i < lines->trials->len; i++) {
        Trial *trial = g_ptr_array_index(lines->trials, i);
        if (trial->error != NULL) {
            g_propagate_error(error, g_steal_pointer(&trial->error));
            return false;
        }
        hand_over(&trial->candidate, candidates);
    }
    return true;
}

static bool consider_lines(Variants *variants, GError **error) {
    g_autoptr(GPtrArray) trials = g_ptr_array_new_with_free_func(trial_clear);
    Lines lines = { .variants = variants, .trials = trials };
    mtf_in_parallel(MTF_RECOMPUTES, fill_line, &lines);
    for (int recompute = 0; recompute < MTF_RECOMPUTES; recompute++) {
        Line *line = &lines.lines[recompute];
        note_smallest(&variants->smallest, &line->smallest);
        for (int i = 0; i < line->count; i++)
            g_ptr_array_add(trials, &line->trials[i]);
    }
    price_trials(&lines);
    return take_trials(&lines, variants->candidates, error);
}

/* The variant that was asked for, or the one without any: it must exist. */
static bool make_unsplit(Variants *variants, GError **error) {
    MtfStepVariant variant = variant_of(variants, 0, (int)first_recompute(variants->options));
    MtfDivision division;
    gint64 begun = g_get_monotonic_time();
    variants->training =
        mtf_planning_training_graph(variants->options->written, &variant, &division, error);
    if (variants->training == NULL)
        return false;
    variants->seconds = seconds_since(begun);
    variants->unsplit_outcome = make_trial(variants, variant, &variants->unsplit, error);
    return variants->unsplit_outcome != IMPOSSIBLE;
}

static void add_unsplit(Variants *variants) {
    hand_over(&variants->unsplit.candidate, variants->candidates);
}

/* The unsplit variant of all is the only one when its best rules fit. */
static bool consider_unsplit(Variants *variants, bool *settled, GError **error) {
    Trial *trial = &variants->unsplit;
    *settled = false;
    note_smallest(&variants->smallest, &trial->candidate);
    if (variants->unsplit_outcome != MIGHT_FIT)
        return true;
    price_rules(variants, trial, INT64_MAX, true);
    if (trial->error != NULL) {
        g_propagate_error(error, g_steal_pointer(&trial->error));
        return false;
    }
    *settled = trial->arena_bytes <= variants->options->memory_limit;
    if (*settled)
        add_unsplit(variants);
    return true;
}

/* The cheapest first. Those that were not priced come last, and of them first what needs least
 * memory: it is the likeliest to fit. */
static int compare_candidates(gconstpointer left, gconstpointer right) {
    const MtfStepCandidate *a = left, *b = right;
    int64_t a_cost = a->cost > 0 ? a->cost : INT64_MAX, b_cost = b->cost > 0 ? b->cost : INT64_MAX;
    if (a_cost != b_cost)
        return a_cost < b_cost ? -1 : 1;
    if (a_cost == INT64_MAX && a->least_bytes != b->least_bytes)
        return a->least_bytes < b->least_bytes ? -1 : 1;
    return a->variant.microbatches - b->variant.microbatches;
}

/* Memory is what asks for variants, and the order knows nothing of it: where weights are in pieces, each micro-batch
 * gathers them and scatters their gradients. Behind a first in several, the cheapest in fewer comes next, where others
 * that promise as much would not be searched. */
static void bring_forward_fewer_microbatches(GArray *candidates) {
    int most = candidates->len > 0
                   ? g_array_index(candidates, MtfStepCandidate, 0).variant.microbatches
                   : 1;
    guint next = 1;
    while (next < candidates->len &&
           g_array_index(candidates, MtfStepCandidate, next).variant.microbatches >= most)
        next++;
    if (next >= candidates->len)
        return;
    MtfStepCandidate *list = (MtfStepCandidate *)(void *)candidates->data, fewer = list[next];
    memmove(list + 2, list + 1, (next - 1) * sizeof *list);
    list[1] = fewer;
}

/* Rules whose costs differ by so much, memory apart, do not tell which variant is the better one under the limit. */
#define AS_CHEAP 1.05

/* Memory is short, so that what a variant needs matters, too: of those that promise about as much as the one at a place,
 * and need less though they recompute less, the cheapest comes there: it has to be cut less. */
static void bring_forward_smaller(GArray *candidates, guint place) {
    MtfStepCandidate *list = (MtfStepCandidate *)(void *)candidates->data, here = list[place];
    double most = AS_CHEAP * (double)here.cost;
    guint i = place + 1;
    while (i < candidates->len && !(list[i].least_bytes < here.least_bytes &&
                                    list[i].variant.recompute < here.variant.recompute))
        i++;
    if (i >= candidates->len || list[i].cost == 0 || (double)list[i].cost > most)
        return;
    MtfStepCandidate chosen = list[i];
    memmove(list + place + 1, list + place, (i - place) * sizeof *list);
    list[place] = chosen;
}

static bool consider_all(Variants *variants, GError **error) {
    bool settled;
    if (!consider_unsplit(variants, &settled, error) ||
        (!settled && !consider_lines(variants, error)))
        return false;
    g_array_sort(variants->candidates, compare_candidates);
    GArray *list = variants->candidates;
    if (list->len > 0 && has_few_tries(variants, g_array_index(list, MtfStepCandidate, 0).graph))
        bring_forward_fewer_microbatches(list);
    else if (!settled && !variants->options->rules_only)
        for (guint place = 0; place < MIN(list->len, MTF_VARIANTS_AT_ONCE); place++)
            bring_forward_smaller(list, place);
    for (guint i = KEPT_PRICES; i < variants->candidates->len; i++)
        g_clear_pointer(&g_array_index(variants->candidates, MtfStepCandidate, i).prices,
                        mtf_rule_prices_free);
    if (variants->candidates->len == 0)
        g_array_append_val(variants->candidates, variants->smallest);
    return true;
}

double mtf_step_candidate_promise(const MtfStepCandidate *candidate, const MtfStepCandidate *other,
                                  int64_t bound) {
    bool known = other != NULL && other->cost > 0 && bound > 0;
    double share = known ? fmin(1, (double)bound / (double)other->cost) : 1;
    return share * (double)candidate->cost;
}

GArray *mtf_step_variants(const MtfStepVariantsOptions *options, GError **error) {
    g_autoptr(GArray) counts = find_counts(options);
    g_autoptr(GArray) candidates = g_array_new(FALSE, TRUE, sizeof(MtfStepCandidate));
    g_array_set_clear_func(candidates, candidate_clear);
    Variants variants = { .options = options,
                          .devices = mtf_mesh_size(&g_array_index(options->meshes, MtfMesh, 0)),
                          .counts = counts,
                          .candidates = candidates,
                          .smallest = { .least_bytes = INT64_MAX } };
    bool done = make_unsplit(&variants, error);
    if (done && is_fixed(&variants))
        add_unsplit(&variants);
    else if (done)
        done = consider_all(&variants, error);
    trial_clear(&variants.unsplit);
    mtf_graph_free(variants.training);
    return done ? g_steal_pointer(&candidates) : NULL;
}
