// SPDX-License-Identifier: GPL-3.0-or-later
/* drawn_plans FOLDER RANKS FIRST END: for every seed from FIRST on and before END a drawn network, laid out by rules or
 * freely on a drawn mesh of RANKS processors, as FOLDER/SEED.json; float64 and float32 by turns. */
#include "analyzer/training/training_graph.h"
#include "layouts/execution/executed_graph.h"
#include "tests/support/cases/random_layout.h"
#include "tests/support/cases/training_plan.h"
#include "tests/support/drawn/random_graph.h"

static MtfPlan *drawn_plan(guint32 seed, int ranks) {
    MtfRandomGraph options = { .seed = seed,
                               .dimensions = 4,
                               .operations = 14,
                               .largest_size = 7,
                               .dtype = seed % 2 ? MTF_F32 : MTF_F64,
                               .more = true,
                               .layers = true,
                               .composites = true };
    g_autoptr(MtfGraph) forward = mtf_random_graph(&options);
    g_autoptr(MtfGraph) graph = mtf_training_graph(forward, NULL);
    if (graph == NULL)
        return NULL;
    g_autoptr(GRand) random = g_rand_new_with_seed(seed);
    MtfMesh mesh = mtf_random_mesh(random, ranks);
    MtfPlan *plan = g_new0(MtfPlan, 1);
    plan->precision = g_strdup(mtf_dtype_short_name(options.dtype));
    plan->training = mtf_graph_copy(graph);
    plan->graph = g_steal_pointer(&graph);
    MtfDivision whole = { .microbatches = 1 };
    if (!mtf_graph_execute(plan->graph, &whole, &(MtfKept){ 0 }, 1, NULL))
        g_error("%u: it cannot be executed", seed);
    plan->layout = seed % 3 ? mtf_random_free_layout(random, plan->graph, &mesh)
                            : mtf_random_rule_layout(random, plan->graph, &mesh);
    plan->layout->execution.bucket_bytes = seed % 5 * 50;
    plan->layout->execution.division = whole;
    return plan;
}

static guint32 number(const char *text) {
    return (guint32)g_ascii_strtoull(text, NULL, 10);
}

int main(int argc, char **argv) {
    for (guint32 seed = argc == 5 ? number(argv[3]) : 0; argc == 5 && seed < number(argv[4]);
         seed++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(MtfPlan) plan = drawn_plan(seed, (int)number(argv[2]));
        g_autofree char *path = g_strdup_printf("%s/%u.json", argv[1], seed);
        if (plan != NULL &&
            (!mtf_training_plan_predict(plan, &error) || !mtf_plan_save(plan, path, &error)))
            g_error("%s: %s", path, error->message);
    }
    return argc == 5 ? 0 : 2;
}
