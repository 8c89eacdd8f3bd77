// SPDX-License-Identifier: GPL-3.0-or-later
/* drawn_plans FOLDER RANKS FIRST END: for every seed from FIRST on and before END a drawn network, laid out by rules or
 * freely on a drawn mesh of RANKS processors: FOLDER/SEED.json trains it, FOLDER/SEED-forward.json runs it for its
 * results; float64 and float32 by turns, every eighth of those that run in bfloat16. */
#include "analyzer/serving/inference_plan.h"
#include "analyzer/training/training_graph.h"
#include "layouts/execution/executed_graph.h"
#include "tests/support/cases/random_layout.h"
#include "tests/support/cases/training_plan.h"
#include "tests/support/drawn/random_graph.h"

static MtfGraph *drawn_network(guint32 seed) {
    return mtf_random_graph(&(MtfRandomGraph){ .seed = seed,
                                               .dimensions = 4,
                                               .operations = 14,
                                               .largest_size = 7,
                                               .dtype = seed % 2 ? MTF_F32 : MTF_F64,
                                               .more = true,
                                               .layers = true,
                                               .composites = true });
}

/* The plan of a graph, which it takes over; NULL of none. */
static MtfPlan *drawn_plan(MtfGraph *graph, guint32 seed, int ranks, const char *precision) {
    if (graph == NULL)
        return NULL;
    g_autoptr(GRand) random = g_rand_new_with_seed(seed);
    MtfMesh mesh = mtf_random_mesh(random, ranks);
    MtfPlan *plan = g_new0(MtfPlan, 1);
    plan->precision = g_strdup(precision);
    plan->training = mtf_graph_copy(graph);
    plan->graph = graph;
    MtfDivision whole = { .microbatches = 1 };
    if (!mtf_graph_execute(plan->graph, &whole, &(MtfKept){ 0 }, 1, NULL))
        g_error("%u: it cannot be executed", seed);
    plan->layout = seed % 3 ? mtf_random_free_layout(random, plan->graph, &mesh)
                            : mtf_random_rule_layout(random, plan->graph, &mesh);
    plan->layout->execution.bucket_bytes = seed % 5 * 50;
    plan->layout->execution.division = whole;
    return plan;
}

static void save(const char *folder, guint32 seed, const char *ending, MtfPlan *plan) {
    g_autoptr(GError) error = NULL;
    g_autofree char *path = g_strdup_printf("%s/%u%s.json", folder, seed, ending);
    if (plan != NULL &&
        (!mtf_training_plan_predict(plan, &error) || !mtf_plan_save(plan, path, &error)))
        g_error("%s: %s", path, error->message);
}

/* What the network makes of a batch, or its loss where all that it makes needs labels. */
static MtfGraph *forward_graph(MtfGraph *network, guint32 seed, const char *precision) {
    g_autoptr(GError) error = NULL;
    const MtfInferenceSizes any = { 0 };
    const MtfInferenceTypes types = { .precision = precision };
    MtfGraph *forward = mtf_inference_graph(network, MTF_INFER_FORWARD, &any, &types, NULL);
    network->loss = -1;
    if (forward == NULL)
        forward = mtf_inference_graph(network, MTF_INFER_FORWARD, &any, &types, &error);
    if (forward == NULL)
        g_error("%u: %s", seed, error->message);
    return forward;
}

static void write_plans(const char *folder, int ranks, guint32 seed) {
    g_autoptr(MtfGraph) network = drawn_network(seed);
    const char *wide = seed % 2 ? "f32" : "f64", *run = seed % 8 == 1 ? "bf16" : wide;
    g_autoptr(MtfPlan) trains = drawn_plan(mtf_training_graph(network, NULL), seed, ranks, wide);
    save(folder, seed, "", trains);
    g_autoptr(MtfPlan) runs = drawn_plan(forward_graph(network, seed, run), seed, ranks, run);
    save(folder, seed, "-forward", runs);
}

static guint32 number(const char *text) {
    return (guint32)g_ascii_strtoull(text, NULL, 10);
}

int main(int argc, char **argv) {
    for (guint32 seed = argc == 5 ? number(argv[3]) : 0; argc == 5 && seed < number(argv[4]);
         seed++)
        write_plans(argv[1], (int)number(argv[2]), seed);
    return argc == 5 ? 0 : 2;
}
