// SPDX-License-Identifier: GPL-3.0-or-later
/* drawn_stages FOLDER RANKS FIRST END [asynchronous]: for every seed from FIRST on and before END a drawn model in
 * pipeline stages, cut anywhere, each on a drawn mesh of its own size (RANKS in all), laid out by rules or freely, by a
 * drawn schedule. FOLDER/SEED-staged.plan is that pipeline, FOLDER/SEED-whole.plan the step in one piece on one
 * processor, of asynchronous schedules, whose weights lag, the same stages of one processor each; float64. */
#include "analyzer/planner/planning.h"
#include "cost/pipeline/pipeline_schedule.h"
#include "layouts/graph/operation_table.h"
#include "layouts/pipeline/pipeline_delay.h"
#include "layouts/plan_file/pipeline_plan.h"
#include "tests/support/cases/random_layout.h"
#include "tests/support/cases/training_plan.h"
#include "tests/support/drawn/random_model.h"

#include <string.h>

#define MOST_STAGES 8

static MtfGraph *drawn_model(guint32 seed) {
    return mtf_random_model(&(MtfRandomModel){ .seed = seed,
                                               .layers = 2 + (int)(seed % 3),
                                               .operations = 10,
                                               .batch = 12,
                                               .dtype = MTF_F64 });
}

/* What a drawn pipeline is made of. */
typedef struct {
    GRand *random;
    const MtfGraph *model;
    const MtfPipelineSchedule *schedule;
    bool asynchronous;
    int domains, stages, microbatches;
    int devices[MOST_STAGES]; /* of a domain */
} Drawn;

static int below(const Drawn *d, int n) {
    return g_rand_int_range(d->random, 0, n);
}

/* Schedules of any number of stages, and how many domains share the ranks. */
static void draw(Drawn *d, int ranks) {
    const MtfPipelineSchedule *rows = mtf_pipeline_schedules();
    static const int parts[] = { 4, 6, 12 };
    int n = 0;
    while (rows[n].name != NULL)
        n++;
    d->domains = 2 + below(d, MIN(3, ranks - 1));
    do
        d->schedule = &rows[below(d, n)];
    while (mtf_pipeline_is_asynchronous(d->schedule->name) != d->asynchronous);
    d->stages = d->domains * mtf_pipeline_schedule_chunks(d->schedule);
    d->microbatches = parts[below(d, 3)];
    for (int i = 0; i < d->domains; i++)
        d->devices[i] = 1;
    for (int left = ranks - d->domains; left > 0; left--)
        d->devices[below(d, d->domains)]++;
}

/* Whether a stage may begin at an operation: not in the midst of a loop. */
static bool may_begin(const MtfGraph *graph, int operation) {
    const MtfOperation *op = mtf_graph_operation(graph, operation);
    return op->loop == 0 && mtf_operation_row(op->kind)->loop == MTF_LOOP_NOTHING;
}

/* A stage for each operation, rising from 1 to the number of stages. */
static MtfGraph *cut(const Drawn *d) {
    MtfGraph *graph = mtf_graph_copy(d->model);
    int n = (int)graph->operations->len;
    g_autofree bool *begins = g_new0(bool, n + 1);
    for (int more = d->stages - 1; more > 0;) {
        int at = 1 + below(d, n - 1);
        more -= !begins[at] && may_begin(graph, at);
        begins[at] |= may_begin(graph, at);
    }
    for (int i = 0, stage = 1; i < n; i++) {
        stage += begins[i];
        mtf_graph_operation(graph, i)->stage = stage;
    }
    return graph;
}

/* What another stage reads is whole sums. */
static void add_up_what_is_sent(MtfPlan *plan) {
    for (int t = 0; t < (int)plan->graph->tensors->len; t++)
        for (int a = 0; mtf_graph_tensor(plan->graph, t)->is_sent && a < MTF_MAX_MESH_AXES; a++)
            if (mtf_axis_is_partial(plan->layout->tensors[t].axis[a]))
                plan->layout->tensors[t].axis[a] = MTF_REPLICATED;
}

static void add_stage(const Drawn *d, MtfPipelinePlan *pipeline, int stage) {
    GError *error = NULL;
    int domain = pipeline->order->rank_of_stage[stage];
    MtfMesh mesh = mtf_random_mesh(d->random, d->devices[domain]);
    MtfPlan *plan = g_new0(MtfPlan, 1);
    plan->precision = g_strdup("f64");
    plan->graph = mtf_graph_copy(mtf_pipeline_stage_graph(pipeline, stage));
    plan->layout = below(d, 3) ? mtf_random_free_layout(d->random, plan->graph, &mesh)
                               : mtf_random_rule_layout(d->random, plan->graph, &mesh);
    add_up_what_is_sent(plan);
    plan->layout->execution.division = pipeline->division;
    plan->layout->execution.stage = mtf_pipeline_stage_execution(pipeline, stage);
    plan->layout->execution.bucket_bytes = below(d, 5) * 50;
    if (!mtf_training_plan_predict(plan, &error) || !mtf_pipeline_plan_add(pipeline, plan, &error))
        g_error("stage %d: %s", stage, error->message);
}

/* NULL where the cut has no pipeline: a stage that reads of a later one, or nothing, or what its schedule cannot do. */
static MtfPipelinePlan *drawn_pipeline(const Drawn *d, const MtfGraph *written) {
    MtfStepVariant form = { .microbatches = d->microbatches,
                            .batch_dim = "batch",
                            .own_pass = true };
    MtfPipelineOrder *order =
        mtf_pipeline_schedule_order(d->schedule->name, d->domains, d->microbatches,
                                    mtf_pipeline_schedule_chunks(d->schedule), NULL);
    MtfGraph *executed = order == NULL ? NULL : mtf_planning_executed_graph(written, &form, NULL);
    MtfPipelinePlan *pipeline =
        executed == NULL ? NULL : mtf_pipeline_plan_new(executed, d->schedule->name, order, NULL);
    if (pipeline == NULL)
        return NULL;
    pipeline->training = mtf_planning_training_graph(written, &form, &pipeline->division, NULL);
    for (int s = 0; s < d->stages; s++)
        add_stage(d, pipeline, s);
    return pipeline;
}

static void save_whole(const Drawn *d, const char *path) {
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfPlan) plan = g_new0(MtfPlan, 1);
    MtfStepVariant form = { .microbatches = 1, .batch_dim = "batch" };
    plan->precision = g_strdup("f64");
    MtfDivision division;
    plan->training = mtf_planning_training_graph(d->model, &form, &division, &error);
    plan->graph = mtf_planning_executed_graph(d->model, &form, &error);
    plan->layout = mtf_layout_new(plan->graph, &(MtfMesh){ 0 });
    plan->layout->execution.division = division;
    if (!mtf_training_plan_predict(plan, &error) || !mtf_plan_save(plan, path, &error))
        g_error("%s: %s", path, error->message);
}

static void save(const MtfPipelinePlan *pipeline, const char *path) {
    g_autoptr(GError) error = NULL;
    if (!mtf_pipeline_plan_save(pipeline, path, &error))
        g_error("%s: %s", path, error->message);
}

/* The same stages on one processor each: weights lag there as much. */
static void save_narrow(const Drawn *d, const MtfGraph *written, const char *path) {
    Drawn narrow = *d;
    for (int i = 0; i < d->domains; i++)
        narrow.devices[i] = 1;
    g_autoptr(MtfPipelinePlan) pipeline = drawn_pipeline(&narrow, written);
    save(pipeline, path);
}

static void write_pipeline(const char *folder, int ranks, guint32 seed, bool asynchronous) {
    g_autofree char *staged = g_strdup_printf("%s/%u-staged.plan", folder, seed);
    g_autofree char *whole = g_strdup_printf("%s/%u-whole.plan", folder, seed);
    g_autoptr(MtfGraph) model = drawn_model(seed);
    g_autoptr(GRand) random = g_rand_new_with_seed(seed);
    Drawn d = { .random = random, .model = model, .asynchronous = asynchronous };
    draw(&d, ranks);
    g_autoptr(MtfGraph) written = cut(&d);
    g_autoptr(MtfPipelinePlan) pipeline = drawn_pipeline(&d, written);
    if (pipeline == NULL)
        return;
    save(pipeline, staged);
    if (asynchronous)
        save_narrow(&d, written, whole);
    else
        save_whole(&d, whole);
}

static guint32 number(const char *text) {
    return (guint32)g_ascii_strtoull(text, NULL, 10);
}

int main(int argc, char **argv) {
    bool asynchronous = argc == 6 && strcmp(argv[5], "asynchronous") == 0,
         good = argc == 5 || asynchronous;
    for (guint32 seed = good ? number(argv[3]) : 0; good && seed < number(argv[4]); seed++)
        write_pipeline(argv[1], (int)number(argv[2]), seed, asynchronous);
    return good ? 0 : 2;
}
