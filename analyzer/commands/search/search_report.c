// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/commands/search/search_report.h"

#include "analyzer/planner/next_best.h"
#include "cost/machine/mapping_json.h"
#include "cost/price/predict.h"
#include "cost/summary/step_summary.h"
#include "layouts/base/command_line.h"
#include "layouts/base/error.h"
#include "layouts/base/json_writer.h"
#include "layouts/graph/microbatches.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- Nothing fits ---------------------------------------------------------------------------- */

/* "the smallest limit found that would do is 18 MiB (--memory 18874368)": a plan was found within that; else what the
 * smallest layout found takes, which was not tried. */
static char *format_enough(const MtfVariantAnswer *found, int64_t least) {
    int64_t takes = found->takes > 0 ? found->takes : least;
    int64_t bytes = found->enough > 0 ? found->enough : takes;
    g_autofree char *text = mtf_bytes_format((double)bytes);
    return g_strdup_printf(
        "the smallest %s %s (--memory %" PRId64 ")",
        found->enough > 0 ? "limit found that would do is" : "layout found takes", text, bytes);
}

/* What is proven of one step variant, with those that the search knows as "layout" or "rule layout": others may need
 * less. */
static char *format_bound(const MtfVariantAnswer *found, const char *what, int64_t bound) {
    g_autofree char *text = mtf_bytes_format((double)bound);
    g_autofree char *step = mtf_graph_step_format(found->graph);
    return g_strdup_printf("%s, no %s takes less than %s in the written order of operations", step,
                           what, text);
}

static bool fail_unfit_free(const MtfSearchReport *report, GError **error) {
    const MtfFreeAnswer *answer = &report->found->answer.free;
    g_autofree char *limit = mtf_bytes_format((double)report->memory_limit);
    g_autoptr(GString) peak = g_string_new(NULL);
    for (guint i = 0; answer->peak != NULL && i < answer->peak->len; i++)
        g_string_append_printf(peak, "%s%s", i > 0 ? ", " : "",
                               (char *)g_ptr_array_index(answer->peak, i));
    g_autofree char *enough = format_enough(report->found, answer->limit_enough);
    g_autofree char *bound = format_bound(report->found, "layout", answer->limit_bound);
    g_set_error(error, MTF_ERROR, MTF_ERROR_FIT,
                "no layout fits in %s a device: %s; %s; most of the peak is %s", limit, enough,
                bound, peak->str);
    return false;
}

bool mtf_search_fail_unfit(const MtfSearchReport *report, GError **error) {
    const MtfVariantAnswer *found = report->found;
    const MtfRuleAnswer *answer = &found->answer.rules;
    if (found->answer.free.limit_enough > 0)
        return fail_unfit_free(report, error);
    if (answer->stopped || answer->rules == NULL)
        return mtf_failure(error, "stopped before a layout that fits was found");
    g_autofree char *mesh = mtf_mesh_title(&answer->mesh);
    g_autofree char *rules = mtf_rules_format(found->graph, &answer->mesh, answer->rules);
    g_autofree char *limit = mtf_bytes_format((double)report->memory_limit);
    g_autofree char *least = mtf_bytes_format((double)answer->arena_bytes);
    g_autofree char *enough = format_enough(found, answer->arena_bytes);
    g_autofree char *bound = format_bound(found, "rule layout", answer->limit_bound);
    g_set_error(error, MTF_ERROR, MTF_ERROR_FIT,
                "no rule layout %s in %s a device: %s; %s (\"%s\" on mesh %s takes %s)",
                answer->tightened ? "was found that fits" : "fits", limit, enough, bound, rules,
                mesh, least);
    return false;
}

/* ---- What is said ---------------------------------------------------------------------------- */

static double relative_gap(int64_t cost, int64_t bound) {
    return cost > 0 ? (double)(cost - bound) / (double)cost : 0;
}

static double gap_of(const MtfRuleAnswer *answer) {
    return relative_gap(answer->cost, answer->bound);
}

/* Proven up to what the solver's tolerances may hide. */
static bool is_optimal(const MtfRuleAnswer *answer) {
    return !answer->stopped && gap_of(answer) <= 2e-6;
}

static const MtfStepCandidate *chosen_of(const MtfVariantAnswer *found) {
    return &g_array_index(found->variants, MtfStepCandidate, found->variant);
}

/* The parts of attention, and the variants that the step's was chosen from. */
void mtf_search_add_variants(cJSON *object, const MtfVariantAnswer *found) {
    mtf_step_variant_add_parts(object, &chosen_of(found)->variant);
    if (found->considered < 2)
        return;
    cJSON *list = cJSON_AddArrayToObject(object, "variants");
    for (int i = 0; i < found->considered; i++) {
        const MtfStepCandidate *candidate =
            &g_array_index(found->variants, MtfStepCandidate, (guint)i);
        cJSON *item = cJSON_CreateObject();
        mtf_json_add_integer(item, "microbatches", candidate->variant.microbatches);
        mtf_step_variant_add_kept(item, &candidate->variant);
        if (candidate->cost > 0)
            mtf_json_add_integer(item, "unlimited_rule_cost", candidate->cost);
        mtf_json_add_integer(item, "least_bytes", candidate->least_bytes);
        cJSON_AddItemToArray(list, item);
    }
}

static char *format_nanoseconds(int64_t nanoseconds) {
    return mtf_seconds_format((double)nanoseconds / 1e9);
}

/* Why the plan is not the cheapest layout, where it is not. */
static void print_fastest(const MtfSearchReport *report) {
    const MtfAlikeLayers *alike = &report->found->answer.alike;
    if (report->found->answer.fastest == NULL)
        return;
    double least = report->found->answer.free.step_seconds;
    double won = least - report->found->answer.step_seconds;
    if (report->found->answer.runs) {
        g_autofree char *cost = format_nanoseconds(report->found->answer.fastest_cost);
        printf("               the plan, which the software has memory for, costs %s\n", cost);
        return;
    }
    if (alike->alike.cost == report->found->answer.fastest_cost && alike->differences == 0 &&
        (alike->best.cost != alike->alike.cost || won <= 0)) {
        g_autofree char *cost = format_nanoseconds(alike->alike.cost);
        printf("               the plan, whose layers are alike, costs %s\n", cost);
        return;
    }
    const char *framework = mtf_framework_named(report->exportable);
    if (framework != NULL) {
        g_autofree char *step = mtf_seconds_format(least);
        g_autofree char *words = g_strdup_printf("; the best layout's step is %s", step);
        printf("               the plan is the fastest of those made by hand that %s can run%s\n",
               framework, won < 0 ? words : "");
        return;
    }
    /* Steps that are nearly equal look equal when both are printed: their difference does not. */
    g_autofree char *cost = format_nanoseconds(report->found->answer.fastest_cost);
    g_autofree char *shorter = mtf_seconds_format(won);
    printf(
        "               the plan costs %s, but more of it is hidden or joined: its step is %s (%.2g %%) "
        "shorter\n",
        cost, shorter, 100 * won / least);
}

/* What is proven where axes were merged. */
static void print_merged(const MtfMergedProof *merged) {
    if (merged->mesh.n_axes == 0)
        return;
    g_autofree char *mesh = mtf_mesh_format(&merged->mesh);
    printf("               of %s, the mesh whose plan it is, gap %.3g %%\n", mesh,
           100 * relative_gap(merged->cost, merged->bound));
}

static void print_free_proof(const MtfSearchReport *report) {
    const MtfFreeAnswer *answer = &report->found->answer.free;
    double gap = relative_gap(answer->cost, answer->bound);
    g_autofree char *cost = format_nanoseconds(answer->cost);
    g_autofree char *bound = format_nanoseconds(answer->bound);
    bool alike = report->found->answer.alike.uniform == MTF_UNIFORM_ALWAYS;
    bool pinned = report->found->answer.batch_first;
    printf("proof          %s free layouts of this mesh%s%s: cost %s, bound %s, gap %.3g %% (%s)\n",
           gap <= 2e-6 ? "optimal over" : "best found of",
           pinned ? " that split the batch on its first axis" : "",
           alike ? " whose repeated layers are alike" : "", cost, bound, 100 * gap, answer->method);
    print_merged(&report->found->answer.merged);
    print_fastest(report);
    bool stopped = report->found->answer.rules.stopped;
    bool searched = !report->found->answer.no_rules;
    if (searched && !report->found->answer.rules.found &&
        report->found->answer.merged.mesh.n_axes == 0)
        printf("               no rule layout %s\n",
               stopped ? "that fits was found in time" : "fits");
    if (report->found->answer.rules.found) {
        g_autofree char *rules = format_nanoseconds(report->found->answer.rules.cost);
        printf("               the best rule layout costs %s, %.2f times as much\n", rules,
               (double)report->found->answer.rules.cost / (double)answer->cost);
    }
}

/* Where a rule layout was the best of free ones as well. */
static void print_free_bound(const MtfFreeAnswer *free) {
    if (free->layout == NULL || free->bound == 0)
        return;
    double gap = relative_gap(free->cost, free->bound);
    g_autofree char *bound = format_nanoseconds(free->bound);
    printf("               no free layout of this mesh costs less");
    if (gap > 2e-6)
        printf(" than %s, gap %.3g %%", bound, 100 * gap);
    printf(" (%s)\n", free->method);
}

/* Under what the proof holds, where the software asks for more than the device's memory. */
static void print_programs_limit(const MtfSearchReport *report) {
    g_autofree char *limit = mtf_bytes_format((double)report->programs_limit);
    if (report->programs_limit < report->memory_limit)
        printf("               among programs of at most %s, beside which what %s keeps fits\n",
               limit, report->machine->software->name);
}

static void print_rule_proof(const MtfSearchReport *report) {
    const MtfRuleAnswer *answer = &report->found->answer.rules;
    g_autofree char *cost = format_nanoseconds(answer->cost);
    g_autofree char *bound = format_nanoseconds(answer->bound);
    printf("proof          %s all rule layouts of %d mesh shape%s: cost %s, bound %s",
           is_optimal(answer) ? "optimal over" : "best found of", report->found->answer.meshes,
           report->found->answer.meshes == 1 ? "" : "s", cost, bound);
    if (!is_optimal(answer))
        printf(", gap %.3g %%%s", 100 * gap_of(answer), answer->stopped ? ", stopped early" : "");
    if (answer->excluded > 0)
        printf("; %d excluded by the size of their arenas", answer->excluded);
    putchar('\n');
    print_free_bound(&report->found->answer.free);
}

static void print_proof(const MtfSearchReport *report) {
    if (mtf_plan_answer_is_free(&report->found->answer))
        print_free_proof(report);
    else
        print_rule_proof(report);
    print_programs_limit(report);
}

/* Whether repeated layers are laid out alike, and what that costs. */
static void print_alike(const MtfSearchReport *report) {
    g_autofree char *text = mtf_alike_format(&report->found->answer.alike);
    if (text != NULL)
        printf("alike          %s\n", text);
}

/* Says how the mesh lies on the machine where that is not in order. */
static void print_mapping(const MtfSearchReport *report, const MtfPlan *plan) {
    if (report->found->answer.in_order)
        return;
    g_autofree char *mapping =
        mtf_mapping_format(&plan->layout->mesh, &report->found->answer.pricer.map.mapping);
    g_autofree char *in_order = format_nanoseconds(report->found->answer.in_order_cost);
    printf("mapping        %s\n               in order it would cost %s, %.2f times as much\n",
           mapping, in_order,
           (double)report->found->answer.in_order_cost / (double)report->found->answer.cost);
}

/* Step and needs of the fastest, the gap of the cheapest layout under each limit. */
/* What is recomputed, waits with the host and is in parts: "recompute layers, offload layers:3". */
static char *format_kept(const MtfStepVariant *variant) {
    g_autofree char *recompute =
        mtf_recompute_format(variant->recompute, variant->recomputed_layers);
    g_autofree char *offload = mtf_offload_format(variant->offload, variant->offloaded_layers);
    GString *kept = g_string_new("recompute ");
    g_string_append(kept, recompute);
    if (variant->offload != MTF_OFFLOAD_NONE)
        g_string_append_printf(kept, ", offload %s", offload);
    mtf_step_variant_say_parts(kept, variant);
    return g_string_free(kept, FALSE);
}

static void print_frontier(const MtfSearchReport *report) {
    const GArray *frontier = report->found->frontier;
    if (frontier == NULL)
        return;
    printf("\n%-15s%12s%12s%12s  %s\n", "memory limit", "needs", "step", "gap", "layout");
    for (guint i = 0; i < frontier->len; i++) {
        const MtfVariantPoint *point = &g_array_index(frontier, MtfVariantPoint, i);
        const MtfStepVariant *variant =
            &g_array_index(report->found->variants, MtfStepCandidate, point->variant).variant;
        g_autofree char *limit = mtf_bytes_format((double)point->limit);
        g_autofree char *needs = mtf_bytes_format((double)point->bytes);
        g_autofree char *step = mtf_seconds_format(point->step_seconds);
        g_autofree char *kept = format_kept(variant);
        printf("%-15s%12s%12s%10.3g %%  %s, %d micro-batch%s, %s\n", limit, needs, step,
               100 * relative_gap(point->cost, point->bound), point->name,
               MAX(1, variant->microbatches), variant->microbatches > 1 ? "es" : "", kept);
    }
    if (report->found->answer.alike.uniform == MTF_UNIFORM_AUTO)
        puts(
            "               (gaps are to the best of all variants, of those beside the plan's over "
            "layouts whose repeated layers are alike)");
}

/* Where the layouts that the field makes by hand lie beside the frontier. */
static void print_incumbents(const MtfSearchReport *report) {
    if (report->found->frontier == NULL)
        return;
    putchar('\n');
    g_autoptr(GPtrArray) shown =
        mtf_incumbents_shown(report->found->answer.incumbents, report->programs_limit);
    for (guint i = 0; i < shown->len; i++) {
        const MtfIncumbent *layout = g_ptr_array_index(shown, i);
        g_autofree char *needs = mtf_bytes_format((double)layout->arena_bytes);
        g_autofree char *step = mtf_seconds_format(layout->step_seconds);
        printf("%-15s%12s%12s%12s  %s\n", "", needs, step,
               layout->arena_bytes <= report->programs_limit ? "fits" : "too large", layout->name);
    }
}

/* From this share of the step on that a pipeline might save, it is said that there are pipelines. */
#define WORTH_STAGES (1.0 / 3)

/* What a pipeline of the same devices might save at most, were there no bubble: the time in which only
 * exchanges run, and of the kernels' what is no work of the model (several devices do the same, or it is
 * recomputed). */
static double wasted_seconds(const cJSON *predicted, int devices) {
    double waits = mtf_json_number_of(predicted, "exposed_communication_seconds", 0);
    double kernels = mtf_json_number_of(predicted, "compute_seconds", 0);
    double done = mtf_json_number_of(predicted, "flops", 0) * devices;
    double model = mtf_json_number_of(predicted, "model_flops", 0);
    return waits + (done > 0 ? kernels * (1 - fmin(1, model / done)) : 0);
}

/* What stages would do: where they were searched, too, or might be worth it. */
static void print_stages(const MtfSearchReport *report, const MtfPlan *plan) {
    const cJSON *pipeline = cJSON_GetObjectItem(plan->search, "pipeline");
    double step = mtf_json_number_of(plan->predicted, "step_seconds", 0);
    double wasted = wasted_seconds(plan->predicted, mtf_mesh_size(&plan->layout->mesh));
    double other = mtf_json_number_of(pipeline, "step_seconds", 0);
    g_autofree char *seconds = mtf_seconds_format(other);
    if (other > 0)
        printf("stages         none: in %d stages (%s, %d micro-batches) a step takes %s, %.3g %% "
               "longer\n",
               (int)mtf_json_number_of(pipeline, "stages", 0),
               mtf_json_text_of(pipeline, "schedule"),
               (int)mtf_json_number_of(pipeline, "microbatches", 0), seconds,
               100 * (other / step - 1));
    else if (pipeline != NULL)
        puts("stages         none: no cut into stages promises a shorter step");
    else if (report->may_cut && wasted > WORTH_STAGES * step)
        printf(
            "stages         not searched: %.0f %% of the step goes to exchanges and to work that "
            "several devices do, or do again; a pipeline may save some: --stages auto\n",
            100 * wasted / step);
}

static void print_variant(const MtfSearchReport *report, const MtfPlan *plan) {
    const MtfStepVariant *variant = &chosen_of(report->found)->variant;
    g_autofree char *text = mtf_graph_step_format(plan->graph);
    g_autofree char *kept = format_kept(variant);
    if (report->found->considered > 1)
        printf(
            "variant        %s (%s): the best of %d that might fit, by their best rule layouts\n",
            text, kept, report->found->considered);
    else if (variant->offload != MTF_OFFLOAD_NONE)
        printf("variant        %s (%s)\n", text, kept);
    else if (!g_str_equal(text, "in one piece"))
        printf("variant        %s\n", text);
}

void mtf_search_print(const MtfSearchReport *report, const MtfPlan *plan) {
    g_autofree char *mesh = mtf_mesh_title(&plan->layout->mesh);
    g_autofree char *tables = mtf_predicted_format(plan->predicted);
    g_autofree char *summary = mtf_summary_format(plan->predicted);
    mtf_planning_print_machine(plan->precision, report->machine, report->machine_named,
                               report->precision);
    fputs(summary, stdout);
    mtf_next_best_print(plan->search);
    print_stages(report, plan);
    printf("mesh           %s\nlayout         %s\n", mesh, mtf_layout_title(plan->layout));
    print_alike(report);
    print_variant(report, plan);
    print_mapping(report, plan);
    fputs(report->notes, stdout);
    print_proof(report);
    fputs(tables, stdout);
    print_frontier(report);
    print_incumbents(report);
}

void mtf_search_print_json(const MtfSearchReport *report, const MtfPlan *plan) {
    cJSON *object = cJSON_CreateObject();
    g_autofree char *mesh = mtf_mesh_format(&plan->layout->mesh);
    cJSON_AddStringToObject(object, "machine", report->machine->name);
    cJSON_AddStringToObject(object, "mesh", mesh);
    if (plan->layout->rules != NULL)
        cJSON_AddStringToObject(object, "layout", plan->layout->rules);
    else
        cJSON_AddNullToObject(object, "layout");
    cJSON_AddStringToObject(object, "parallelism",
                            mtf_json_text_of(plan->predicted, "parallelism"));
    cJSON_AddStringToObject(object, "precision", plan->precision);
    if (mtf_graph_has_batch_statistics(plan->graph))
        cJSON_AddStringToObject(object, "batch_statistics", "of each micro-batch");
    mtf_step_variant_add_kept(object, &chosen_of(report->found)->variant);
    cJSON_AddItemReferenceToObject(object, "search", plan->search);
    cJSON_AddItemReferenceToObject(object, "predicted", plan->predicted);
    mtf_json_add_number(object, "seconds", report->found->wall_seconds);
    mtf_json_say(object);
}

/* ---- What took too long ------------------------------------------------------------------------ */

/* What --seconds may be exceeded by: what a search has begun it ends. */
#define SECONDS_SHARE 0.05
#define SECONDS_MORE 1.0

static double seconds_between(gint64 from, gint64 to) {
    return (double)(to - from) / 1e6;
}

void mtf_search_warn_late(double wanted, const MtfSearchTimes *times, const MtfGraph *written) {
    gint64 now = g_get_monotonic_time();
    double took = seconds_between(times->begun, now);
    if (wanted <= 0 || took <= (1 + SECONDS_SHARE) * wanted + SECONDS_MORE)
        return;
    g_autofree char *parts =
        times->searched > 0
            ? g_strdup_printf(
                  ": %.1f s to read the graph's %u operations, %.1f s for their layout, "
                  "%.1f s to make the plan and write it",
                  seconds_between(times->begun, times->read), written->operations->len,
                  seconds_between(times->read, times->searched),
                  seconds_between(times->searched, now))
            : g_strdup("");
    fprintf(stderr, "meshtf-plan search: warning: this took %.1f s, more than --seconds %g%s\n",
            took, wanted, parts);
}
