// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cases/training_plan.h"

#include "analyzer/layout_search/plan_search.h"
#include "analyzer/training/batch_dimension.h"
#include "analyzer/training/mixed_precision.h"
#include "analyzer/training/training_graph.h"
#include "cost/price/predict.h"
#include "layouts/base/error.h"
#include "layouts/base/library.h"
#include "layouts/execution/executed_graph.h"
#include "layouts/graph_file/graph_json.h"
#include "layouts/placement/rules.h"
#include "tests/support/cases/random_layout.h"

#include <stdlib.h>
#include <string.h>

static MtfGraph *load_graph(const MtfTrainingPlan *wanted, GError **error) {
    g_autofree char *path = mtf_library_find("graphs", wanted->graph, error);
    g_auto(GStrv) names = NULL;
    g_auto(GStrv) texts = NULL;
    if (path == NULL || !mtf_pairs_parse(wanted->sizes, "sizes", &names, &texts, error))
        return NULL;
    guint n = g_strv_length(names);
    g_autofree int64_t *sizes = g_new0(int64_t, n + 1);
    for (guint i = 0; i < n; i++)
        sizes[i] = g_ascii_strtoll(texts[i], NULL, 10);
    g_autoptr(MtfGraph) forward =
        mtf_graph_load(path, &(MtfSizeOverrides){ .names = names, .sizes = sizes }, error);
    if (forward == NULL)
        return NULL;
    mtf_graph_set_precision(forward, mtf_dtype_wide(wanted->dtype));
    if (wanted->rate != 0)
        forward->optimizer.rate = wanted->rate;
    g_autoptr(MtfGraph) graph = mtf_training_graph(forward, error);
    if (graph == NULL || wanted->dtype != MTF_BF16)
        return g_steal_pointer(&graph);
    return mtf_mixed_precision(graph, error);
}

/* What the search finds on the mesh; with so little memory that no smaller limit is known to do
 * when `little` is set. */
static MtfLayout *searched_layout(const MtfGraph *graph, const MtfMesh *mesh, bool little,
                                  GError **error) {
    g_autoptr(MtfMachine) machine = mtf_machine_load("cpu-cluster", error);
    g_autoptr(GArray) meshes = g_array_new(FALSE, TRUE, sizeof(MtfMesh));
    g_array_append_vals(meshes, mesh, 1);
    MtfPlanSearchOptions options = { .machine = machine, .memory_limit = little ? 1 : INT64_MAX };
    MtfPlanAnswer answer = { 0 };
    MtfLayout *layout = NULL;
    bool done = machine != NULL && mtf_plan_search(graph, meshes, &options, &answer, error);
    if (done && little) {
        options.memory_limit = answer.free.limit_enough;
        mtf_plan_answer_clear(&answer);
        done = mtf_plan_search(graph, meshes, &options, &answer, error);
    }
    if (done && answer.found)
        layout = mtf_plan_answer_layout(&answer, graph);
    else if (done)
        mtf_failure(error, "nothing was found");
    mtf_plan_answer_clear(&answer);
    return layout;
}

static MtfLayout *make_layout(const MtfTrainingPlan *wanted, const MtfGraph *graph,
                              GError **error) {
    MtfMesh mesh;
    if (!mtf_mesh_parse(wanted->mesh, 0, &mesh, error))
        return NULL;
    if (g_str_has_prefix(wanted->rules, "searched"))
        return searched_layout(graph, &mesh, strcmp(wanted->rules, "searched") != 0, error);
    if (strcmp(wanted->rules, "free") == 0) {
        g_autoptr(GRand) random = g_rand_new_with_seed(wanted->seed);
        return mtf_random_free_layout(random, graph, &mesh);
    }
    g_autoptr(MtfRules) rules = mtf_rules_parse(graph, &mesh, wanted->rules, NULL, error);
    return rules != NULL ? mtf_layout_from_rules(graph, &mesh, rules) : NULL;
}

bool mtf_training_plan_predict(MtfPlan *plan, GError **error) {
    MtfPricer pricer;
    g_autoptr(MtfMachine) machine = mtf_machine_load("cpu-cluster", error);
    if (machine == NULL || !mtf_pricer_init(&pricer, machine, &plan->layout->mesh, error))
        return false;
    g_autoptr(MtfProgram) program = mtf_lower(plan->graph, plan->layout);
    g_free(plan->program_sha256);
    cJSON_Delete(plan->predicted);
    cJSON_Delete(plan->machine);
    plan->program_sha256 = mtf_program_digest(program);
    plan->predicted = mtf_predict(&pricer, program);
    plan->machine = mtf_machine_to_json(machine);
    return true;
}

MtfPlan *mtf_training_plan(const MtfTrainingPlan *wanted, GError **error) {
    g_autoptr(MtfPlan) plan = g_new0(MtfPlan, 1);
    plan->precision = g_strdup(mtf_dtype_short_name(wanted->dtype));
    plan->training = load_graph(wanted, error);
    if (plan->training == NULL)
        return NULL;
    MtfDivision division = { .microbatches = MAX(1, wanted->microbatches), .ring = wanted->ring };
    if (division.microbatches > 1)
        division.batch = mtf_batch_dimension(plan->training, NULL, error);
    if (division.batch < 0)
        return NULL;
    plan->graph = mtf_graph_copy(plan->training);
    if (!mtf_graph_execute(plan->graph, &division, &(MtfKept){ 0 }, 1, error))
        return NULL;
    plan->layout = make_layout(wanted, plan->graph, error);
    if (plan->layout == NULL)
        return NULL;
    plan->layout->execution.bucket_bytes = wanted->bucket_bytes;
    plan->layout->execution.division = division;
    if (!mtf_training_plan_predict(plan, error))
        return NULL;
    return g_steal_pointer(&plan);
}
