// SPDX-License-Identifier: GPL-3.0-or-later
/* drawn_models FOLDER RANKS FIRST END: for every seed from FIRST on and before END a drawn model whose step may be
 * divided. FOLDER/SEED.json is the model, FOLDER/SEED-whole.plan its step in one piece on one processor,
 * FOLDER/SEED-drawn.plan in micro-batches, recomputed or with the host, as drawn, laid out by rules or freely on a
 * drawn mesh of RANKS processors; mostly in float64, every fourth in float32, every sixteenth in bfloat16. */
#include "analyzer/training/mixed_precision.h"
#include "analyzer/training/training_graph.h"
#include "layouts/execution/executed_graph.h"
#include "layouts/graph_file/graph_json.h"
#include "tests/support/cases/random_layout.h"
#include "tests/support/cases/training_plan.h"
#include "tests/support/drawn/random_model.h"

static MtfDtype precision_of(guint32 seed) {
    return seed % 4 == 0 ? MTF_F32 : seed % 16 == 10 ? MTF_BF16 : MTF_F64;
}

static MtfGraph *drawn_model(guint32 seed) {
    return mtf_random_model(&(MtfRandomModel){ .seed = seed,
                                               .layers = 2 + (int)(seed % 3),
                                               .operations = 12,
                                               .batch = 12,
                                               .dtype = mtf_dtype_wide(precision_of(seed)) });
}

/* The model's training step in its precision; NULL where no variable leads to its loss. */
static MtfGraph *training_step(const MtfGraph *model, guint32 seed) {
    g_autoptr(MtfGraph) training = mtf_training_graph(model, NULL);
    return training == NULL || precision_of(seed) != MTF_BF16 ? g_steal_pointer(&training)
                                                              : mtf_mixed_precision(training, NULL);
}

/* Of what is drawn, as much as the graph allows. */
static void execute(GRand *random, MtfPlan *plan) {
    static const int parts[] = { 1, 2, 3, 4, 6, 12 };
    MtfDivision division = { .microbatches = parts[g_rand_int_range(random, 0, 6)] };
    MtfKept kept = { .recompute = (MtfRecompute)g_rand_int_range(random, 0, MTF_RECOMPUTES),
                     .offload = (MtfOffload)g_rand_int_range(random, 0, MTF_OFFLOADS) };
    if (kept.recompute == MTF_RECOMPUTE_LAYERS)
        kept.recomputed_layers = g_rand_int_range(random, 0, 2);
    if (kept.offload != MTF_OFFLOAD_NONE)
        kept.offloaded_layers = g_rand_int_range(random, 0, 2);
    division.batch = mtf_graph_find_dimension(plan->training, "batch");
    const MtfKept less[] = { kept, { .recompute = kept.recompute }, { 0 } };
    for (int i = 0; i < 3 && plan->graph == NULL; i++) {
        g_autoptr(MtfGraph) graph = mtf_graph_copy(plan->training);
        if (!mtf_graph_execute(graph, &division, &less[i], 1, NULL))
            continue;
        plan->graph = g_steal_pointer(&graph);
        kept = less[i];
    }
    if (plan->graph == NULL)
        g_error("a model cannot be divided");
    plan->layout = mtf_layout_new(plan->graph, &(MtfMesh){ 0 });
    plan->layout->execution.division = division;
    plan->layout->execution.kept = kept;
}

static void lay_out(GRand *random, MtfPlan *plan, int ranks) {
    MtfMesh mesh = mtf_random_mesh(random, ranks);
    MtfLayout *layout = g_rand_int_range(random, 0, 3)
                            ? mtf_random_free_layout(random, plan->graph, &mesh)
                            : mtf_random_rule_layout(random, plan->graph, &mesh);
    layout->execution.division = plan->layout->execution.division;
    layout->execution.kept = plan->layout->execution.kept;
    layout->execution.bucket_bytes = g_rand_int_range(random, 0, 5) * 50;
    mtf_layout_free(plan->layout);
    plan->layout = layout;
}

static MtfPlan *plan_of(const MtfGraph *training, const char *precision) {
    MtfPlan *plan = g_new0(MtfPlan, 1);
    plan->precision = g_strdup(precision);
    plan->training = mtf_graph_copy(training);
    return plan;
}

static void save(const char *folder, guint32 seed, const char *ending, MtfPlan *plan) {
    g_autoptr(GError) error = NULL;
    g_autofree char *path = g_strdup_printf("%s/%u-%s.plan", folder, seed, ending);
    if (!mtf_training_plan_predict(plan, &error) || !mtf_plan_save(plan, path, &error))
        g_error("%s: %s", path, error->message);
}

static void write_model(const char *folder, int ranks, guint32 seed) {
    g_autoptr(GError) error = NULL;
    g_autofree char *path = g_strdup_printf("%s/%u.json", folder, seed);
    g_autoptr(MtfGraph) model = drawn_model(seed);
    g_autoptr(MtfGraph) training = training_step(model, seed);
    if (training == NULL)
        return;
    if (!mtf_graph_save(model, path, &error))
        g_error("%s: %s", path, error->message);
    const char *precision = mtf_dtype_short_name(precision_of(seed));
    g_autoptr(GRand) random = g_rand_new_with_seed(seed);
    g_autoptr(MtfPlan) whole = plan_of(training, precision), drawn = plan_of(training, precision);
    const MtfDivision undivided = { .microbatches = 1 };
    whole->graph = mtf_graph_copy(training);
    if (!mtf_graph_execute(whole->graph, &undivided, &(MtfKept){ 0 }, 1, &error))
        g_error("%s: %s", path, error->message);
    whole->layout = mtf_layout_new(whole->graph, &(MtfMesh){ 0 });
    whole->layout->execution.division = undivided;
    save(folder, seed, "whole", whole);
    execute(random, drawn);
    lay_out(random, drawn, ranks);
    save(folder, seed, "drawn", drawn);
}

static guint32 number(const char *text) {
    return (guint32)g_ascii_strtoull(text, NULL, 10);
}

int main(int argc, char **argv) {
    for (guint32 seed = argc == 5 ? number(argv[3]) : 0; argc == 5 && seed < number(argv[4]);
         seed++)
        write_model(argv[1], (int)number(argv[2]), seed);
    return argc == 5 ? 0 : 2;
}
