// SPDX-License-Identifier: GPL-3.0-or-later
#include "reports/page/page_pipeline.h"

#include "cost/summary/step_summary.h"
#include "layouts/base/command_line.h"
#include "layouts/base/json_writer.h"
#include "layouts/pipeline/pipeline_text.h"
#include "reports/drawing/pipeline_picture.h"
#include "reports/drawing/stage_places.h"
#include "reports/markup/markup.h"
#include "reports/markup/svg_inline.h"
#include "reports/page/page_sections.h"

#include <math.h>

#define SHOWN_TRANSFERS 60

/* ---- The answer ---------------------------------------------------------------------------- */

static double fullest(const MtfPipelineFacts *facts) {
    double most = 0;
    for (int domain = 0; domain < facts->pipeline->order->ranks; domain++)
        most = MAX(most, mtf_pipeline_domain_bytes(facts, domain));
    return most;
}

/* The lines that the search says first, each a word and what there is to say. */
static void add_summary(GString *page, const cJSON *predicted) {
    g_autofree char *summary = mtf_summary_format(predicted);
    g_auto(GStrv) lines = g_strsplit(summary, "\n", -1);
    const char *doubt =
        mtf_json_text_of(cJSON_GetObjectItemCaseSensitive(predicted, "doubt"), "text");
    g_string_append(page, *summary != '\0' ? "<dl class=\"card\">" : "");
    for (char **line = lines; *line != NULL && **line != '\0'; line++) {
        g_autofree char *word = g_strchomp(g_strndup(*line, MTF_SUMMARY_COLUMN));
        mtf_markup(page, "<dt>%s</dt><dd>%s</dd>", word, *line + MTF_SUMMARY_COLUMN);
    }
    if (*doubt != '\0')
        mtf_markup(page, "<dt>doubt</dt><dd>%s</dd>", doubt);
    g_string_append(page, *summary != '\0' ? "</dl>" : "");
}

/* Why there are stages at all, where the search compared. */
static void add_one_mesh(GString *page, const cJSON *one, double step) {
    double other = mtf_json_number_of(one, "step_seconds", 0);
    bool given_up = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(one, "given_up"));
    g_autofree char *seconds = mtf_seconds_format(other);
    if (other > 0)
        mtf_markup(page, "<p>Without stages a step takes %s, %.3g %% longer.</p>", seconds,
                   100 * (other / step - 1));
    else if (one != NULL)
        mtf_markup(page, "<p>Without stages %s.</p>",
                   given_up ? "a step is longer by the bound of its search, if no more of it is "
                              "hidden than of known layouts, or by what it began with"
                            : "no layout fits");
}

static void add_answer(GString *page, const MtfPipelineFacts *facts) {
    const MtfPipelinePlan *pipeline = facts->pipeline;
    const MtfPipelineOrder *order = pipeline->order;
    g_autofree char *step = mtf_seconds_format(facts->step_seconds);
    double apart = mtf_json_number_of(pipeline->predicted, "slowest_seconds", 0); /* of inference */
    g_autofree char *second = apart > 0 ? mtf_seconds_format(apart)
                                        : g_strdup_printf("%.1f %%", 100 * facts->run->bubble);
    g_autofree char *memory = mtf_bytes_format(fullest(facts));
    g_autofree char *limit = mtf_bytes_format(facts->limit);
    g_autofree char *of_limit = facts->limit > 0
                                    ? g_strdup_printf("on the fullest device, of %s", limit)
                                    : g_strdup("on the fullest device");
    g_string_append(page, "<div class=\"numbers\">");
    mtf_page_number(page, step, "step time, predicted");
    mtf_page_number(page, second,
                    apart > 0 ? "from batch to batch with one in each stage"
                              : "of a domain's time is bubble");
    mtf_page_number(page, memory, of_limit);
    g_string_append(page, "</div>");
    add_summary(page, pipeline->predicted);
    mtf_markup(page,
               "<p>%d stages on %d domains of %d devices in all, %d micro-batch%s, schedule "
               "<b>%s</b>.</p>",
               order->stages, order->ranks, mtf_pipeline_devices(pipeline), order->microbatches,
               order->microbatches == 1 ? "" : "es", pipeline->schedule);
    add_one_mesh(page, cJSON_GetObjectItemCaseSensitive(pipeline->predicted, "one_mesh"),
                 facts->step_seconds);
}

/* ---- The schedule -------------------------------------------------------------------------- */

static void add_schedules_tried(GString *page, const cJSON *tried) {
    const cJSON *one;
    if (tried == NULL)
        return;
    g_string_append(page, "<h3>Schedules that were planned to the end</h3><table><thead><tr><th>"
                          "schedule</th><th class=\"n\">step</th></tr></thead><tbody>\n");
    cJSON_ArrayForEach(one, tried) {
        g_autofree char *seconds = mtf_seconds_format(mtf_json_number_of(tried, one->string, NAN));
        mtf_markup(page, "<tr><td>%s</td><td class=\"n\">%s</td></tr>\n", one->string, seconds);
    }
    g_string_append(page, "</tbody></table>");
}

static void add_schedule_words(GString *page, const MtfPipelineFacts *facts) {
    g_autofree char *makespan = mtf_seconds_format(facts->run->makespan);
    g_autofree char *ideal = mtf_seconds_format(facts->run->ideal);
    g_autofree char *rest = mtf_seconds_format(facts->step_seconds - facts->run->makespan);
    g_autofree char *period = mtf_seconds_format(facts->run->period);
    if (facts->run->period > 0)
        mtf_markup(
            page,
            "<p>One step among many: a domain does the forward passes of micro-batches that "
            "lie ahead, some of the next steps; the last domain is the first to do a step. Steps begin %s after one another, of which "
            "the passes of the busiest domain take %s. What comes once a step is not drawn: "
            "sums, clipping, updates.</p>",
            period, ideal);
    else
        mtf_markup(page,
                   "<p>The passes take %s from the first to the last; the busiest domain computes "
                   "for %s of them. What comes once a step takes %s more and is not drawn: sums, "
                   "clipping, updates, and what the software's host adds.</p>",
                   makespan, ideal, rest);
}

static void add_schedule(GString *page, const MtfPipelineFacts *facts) {
    g_autofree char *order = mtf_pipeline_format(facts->pipeline->order);
    mtf_page_section(page, "schedule", "The schedule");
    mtf_pipeline_picture(page, facts, facts->run, 0);
    add_schedule_words(page, facts);
    add_schedules_tried(page,
                        cJSON_GetObjectItemCaseSensitive(facts->pipeline->predicted, "schedules"));
    mtf_markup(page,
               "<details><summary>the order in PyTorch's grammar, a line a domain</summary><pre>%s"
               "</pre></details>",
               order);
}

/* ---- The graph ----------------------------------------------------------------------------- */

/* Seconds that a domain computes for each micro-batch. */
static double domain_seconds(const MtfPipelineFacts *facts, int domain) {
    const MtfPipelineOrder *order = facts->pipeline->order;
    double seconds = 0;
    for (int s = 0; s < order->stages; s++)
        if (order->rank_of_stage[s] == domain)
            seconds += facts->times[s].forward + facts->times[s].input_gradient +
                       facts->times[s].weight_gradient;
    return seconds;
}

/* How evenly the work is divided, and what the search knew when it cut. */
static void add_reason(GString *page, const MtfPipelineFacts *facts) {
    const cJSON *cut = cJSON_GetObjectItemCaseSensitive(facts->pipeline->predicted, "cut");
    int domains = facts->pipeline->order->ranks;
    double most = 0, all = 0;
    for (int d = 0; d < domains; d++) {
        most = MAX(most, domain_seconds(facts, d));
        all += domain_seconds(facts, d);
    }
    g_autofree char *busiest = mtf_seconds_format(most);
    mtf_markup(page,
               "<p>The busiest domain computes for %s a micro-batch, %.3g %% longer than all do on "
               "average.",
               busiest, 100 * (most * domains / MAX(all, 1e-300) - 1));
    if (cut != NULL) {
        double tried = mtf_json_number_of(cut, "tried", 0);
        g_autofree char *seconds = mtf_seconds_format(mtf_json_number_of(cut, "seconds", 0));
        g_autofree char *bound = mtf_seconds_format(mtf_json_number_of(cut, "bound", 0));
        mtf_markup(
            page,
            " The cut is the best of %.0f choice%s of micro-batches and recomputation by "
            "dynamic programming over stages laid out by hand: %s a step, of which %s is the "
            "work of all, spread evenly without a bubble. Then each stage's layout was "
            "searched.",
            tried, tried == 1 ? "" : "s", seconds, bound);
    }
    g_string_append(page, "</p>");
}

static void add_graph(GString *page, const MtfPipelineFacts *facts, const char *drawing) {
    mtf_page_section(page, "graph", "The graph and its cuts");
    g_string_append(page,
                    "<p>The forward pass, a frame a stage in the colour of its domain; layers "
                    "laid out alike are one box, stages alike behind each other one frame. On "
                    "the arrows from frame to frame: what stages send each other, with the "
                    "forward pass (↓) and with the gradients (↑), bytes a micro-batch. Sums "
                    "for clipping are left out.</p><div class=\"drawing\">");
    if (drawing == NULL || !mtf_svg_inline(page, drawing, "cut", "the graph and its cuts"))
        g_string_append(page, "<p>There is no drawing: Graphviz' dot did not make one.</p>");
    g_string_append(page, "</div><p class=\"soft\">As files: <a href=\"graph.svg\">graph.svg</a>, "
                          "<a href=\"graph.dot\">graph.dot</a>.</p>");
    add_reason(page, facts);
}

/* ---- Stages -------------------------------------------------------------------------------- */

static void add_stage(GString *page, const MtfPipelineFacts *facts, int stage, const char *folder) {
    const MtfPlan *plan = mtf_pipeline_stage(facts->pipeline, stage);
    const MtfStageTimes *times = &facts->times[stage];
    int domain = facts->pipeline->order->rank_of_stage[stage];
    int first = mtf_pipeline_first_device(facts->pipeline, domain);
    g_autofree char *place = mtf_pipeline_place_format(
        first, first + mtf_mesh_size(&plan->layout->mesh) - 1, &plan->layout->mesh);
    g_autofree char *forward = mtf_seconds_format(times->forward);
    g_autofree char *input = mtf_seconds_format(times->input_gradient);
    g_autofree char *weight = mtf_seconds_format(times->weight_gradient);
    g_autofree char *each = mtf_bytes_format(facts->stages[stage].per_flight);
    g_autofree char *peak = mtf_bytes_format(facts->stages[stage].peak);
    g_autofree char *again = mtf_plan_recomputation(plan);
    g_autofree char *parameters = mtf_count_format((double)mtf_graph_parameters(plan->graph));
    mtf_markup(page,
               "<tr><td><a href=\"%s/index.html\">%d</a></td><td class=\"n\">%d</td><td>%s"
               "</td><td class=\"n\">%d</td><td class=\"n\">%s</td>"
               "<td class=\"n\">%s</td>",
               folder, stage, domain, place, (int)plan->graph->operations->len, parameters,
               forward);
    mtf_markup(page,
               "<td class=\"n\">%s</td><td class=\"n\">%s</td><td class=\"n\">%d × %s</td><td "
               "class=\"n\">%s</td><td>%s</td></tr>\n",
               input, plan->layout->execution.stage.splits_backward ? weight : "–",
               plan->layout->execution.stage.in_flight, each, peak, again);
}

static void add_stages(GString *page, const MtfPipelineFacts *facts, char *const *folders) {
    mtf_page_section(page, "stages", "The stages");
    g_string_append(
        page,
        "<p>Each has a page of its own. Times are of one micro-batch; where weight gradients are "
        "computed apart, the backward pass is that of the input gradients.</p>"
        "<div class=\"wide\"><table class=\"dense\"><thead><tr><th>stage</th><th class=\"n\">domain</th>"
        "<th>devices, mesh</th><th class=\"n\">operations</th><th class=\"n\">parameters</th>"
        "<th class=\"n\">forward</th><th class=\"n\">backward</th>"
        "<th class=\"n\">weight gradient</th><th class=\"n\">in flight</th>"
        "<th class=\"n\">memory</th><th>recomputes</th></tr></thead><tbody>\n");
    for (int stage = 0; stage < facts->pipeline->order->stages; stage++)
        add_stage(page, facts, stage, folders[stage]);
    g_string_append(page, "</tbody></table></div>");
}

/* ---- Transfers ----------------------------------------------------------------------------- */

static bool is_replicated(const MtfMesh *mesh, const MtfPlacement *placement) {
    for (int a = 0; a < mesh->n_axes; a++)
        if (mesh->axes[a].size > 1 && placement->axis[a] != MTF_REPLICATED)
            return false;
    return true;
}

static char *placement_text(const MtfPlan *plan, int tensor) {
    const MtfMesh *mesh = &plan->layout->mesh;
    const MtfPlacement *placement = &plan->layout->tensors[tensor];
    if (mtf_mesh_size(mesh) == 1)
        return g_strdup("whole");
    return is_replicated(mesh, placement) ? g_strdup("replicated")
                                          : mtf_placement_format(plan->graph, mesh, placement);
}

/* What it takes, what that goes to, and what no way can be below. */
static void add_price(GString *page, const MtfPipelineFacts *facts, int transfer) {
    if (facts->machine == NULL)
        return;
    const MtfRoutePrice *price = &facts->prices[transfer];
    g_autofree char *seconds = mtf_seconds_format(price->seconds);
    g_autofree char *bottleneck = mtf_pipeline_bottleneck(facts, transfer);
    bool over_links = price->busiest.seconds > 0;
    g_autofree char *bound = over_links ? mtf_seconds_format(mtf_pipeline_transfer_bound(
                                              facts->pipeline, transfer, &facts->network))
                                        : g_strdup("–");
    mtf_markup(page, "<td class=\"n\">%s</td><td class=\"n\">%s</td><td>%s</td>", seconds, bound,
               bottleneck);
}

static void add_transfer(GString *page, const MtfPipelineFacts *facts, int number) {
    const MtfStageTransfer *transfer = mtf_pipeline_transfer(facts->pipeline, number);
    const MtfPlan *from = mtf_pipeline_stage(facts->pipeline, transfer->from);
    const MtfPlan *to = mtf_pipeline_stage(facts->pipeline, transfer->to);
    g_autofree char *sent = placement_text(from, transfer->sent);
    g_autofree char *received = placement_text(to, transfer->received);
    g_autofree char *bytes =
        mtf_bytes_format((double)mtf_graph_tensor_bytes(from->graph, transfer->sent));
    mtf_markup(page,
               "<tr><td class=\"mono\">%s</td><td class=\"n\">%d → %d</td><td class=\"mono\">%s"
               "</td><td class=\"mono\">%s</td><td class=\"n\">%s</td><td>%s</td><td>%s</td>",
               mtf_graph_tensor(from->graph, transfer->sent)->name, transfer->from, transfer->to,
               sent, received, bytes, transfer->once ? "a step" : "a micro-batch",
               mtf_transfer_way_name((MtfTransferWay)transfer->way));
    add_price(page, facts, number);
    g_string_append(page, "</tr>\n");
}

static void add_transfers(GString *page, const MtfPipelineFacts *facts) {
    int all = mtf_pipeline_transfers(facts->pipeline), shown = MIN(all, SHOWN_TRANSFERS);
    mtf_page_section(page, "transfers", "What stages send each other");
    mtf_markup(page,
               "<p>%d tensors; each receiver gets the boxes it lacks from those that hold them. "
               "Gathered: receivers that want the same get a part each and give it to the others.%s"
               "</p><div class=\"wide\"><table><thead><tr><th>tensor</th><th class=\"n\">stages"
               "</th><th>as it is sent</th><th>as it is read</th><th class=\"n\">bytes</th>"
               "<th>once</th><th>way</th>",
               all,
               facts->machine != NULL ? " No way takes less than the bound, whoever sends." : "");
    if (facts->machine != NULL)
        g_string_append(page, "<th class=\"n\">takes</th><th class=\"n\">bound</th>"
                              "<th>bottleneck</th>");
    g_string_append(page, "</tr></thead><tbody>\n");
    for (int i = 0; i < shown; i++)
        add_transfer(page, facts, i);
    g_string_append(page, "</tbody></table></div>");
    if (shown < all)
        mtf_markup(page, "<p>And %d more.</p>", all - shown);
}

/* ---- After a run --------------------------------------------------------------------------- */

/* The schedule as it ran, under the same as predicted where one scale shows both. */
static void add_traced(GString *page, const MtfPipelineFacts *facts, const MtfRunTrace *trace) {
    g_autoptr(MtfPipelineRun) run = mtf_pipeline_traced(facts, trace);
    g_string_append(page, "<h3>The schedule as it ran</h3>");
    if (run == NULL) {
        g_string_append(page, "<p>The trace lacks passes of this pipeline.</p>");
        return;
    }
    mtf_pipeline_picture(page, facts, run, facts->run->makespan);
    g_autofree char *measured = mtf_seconds_format(run->makespan);
    g_autofree char *predicted = mtf_seconds_format(facts->run->makespan);
    g_autofree char *ratio = mtf_ratio_format(run->makespan, facts->run->makespan);
    mtf_markup(
        page,
        "<p>The last step that was traced, each domain by its first rank. Its passes took %s "
        "from the first to the last, where %s were predicted (%s); a pass holds what it waits "
        "for.</p>",
        measured, predicted, ratio);
}

static void add_run(GString *page, const MtfPipelineFacts *facts,
                    const MtfPipelinePageParts *parts) {
    MtfRunPredicted predicted = { .step = facts->step_seconds,
                                  .communication = NAN,
                                  .computation = NAN,
                                  .bytes = mtf_pipeline_domain_bytes(facts, 0),
                                  .memory = "memory of rank 0" };
    mtf_page_section(page, "run", "After the run");
    if (parts->run != NULL)
        mtf_page_run(page, &predicted, parts->run);
    if (parts->trace != NULL)
        add_traced(page, facts, parts->trace);
}

/* ---- The page ------------------------------------------------------------------------------ */

char *mtf_page_pipeline(const MtfPipelineFacts *facts, const MtfPipelinePageParts *parts) {
    bool has_run = parts->run != NULL || parts->trace != NULL;
    const char *name = facts->pipeline->graph->name;
    g_autofree char *title = g_strdup_printf("%s: a pipeline", name);
    GString *page = mtf_page_begin(title);
    mtf_markup(
        page,
        "<section id=\"answer\"><h1>%s, a pipeline of %d stages</h1>\n<nav aria-label=\"sections\">"
        "<a href=\"#schedule\">schedule</a><a href=\"#graph\">graph</a><a "
        "href=\"#stages\">stages</a><a "
        "href=\"#transfers\">transfers</a>",
        name, facts->pipeline->order->stages);
    g_string_append(page, has_run ? "<a href=\"#run\">after the run</a></nav>\n" : "</nav>\n");
    add_answer(page, facts);
    add_schedule(page, facts);
    add_graph(page, facts, parts->drawing);
    add_stages(page, facts, parts->folders);
    if (facts->machine != NULL)
        mtf_stage_places(page, facts);
    add_transfers(page, facts);
    if (has_run)
        add_run(page, facts, parts);
    g_string_append(page,
                    "</section>\n<p class=\"soft\">Made by meshtf-report " MTF_VERSION ".</p>\n");
    return mtf_page_end(page);
}
