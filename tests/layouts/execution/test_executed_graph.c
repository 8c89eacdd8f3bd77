// SPDX-License-Identifier: GPL-3.0-or-later
/* An executed graph follows from its training graph alone. What is summed, is in parts, is recomputed and waits with the host is
 * in test_accumulation.c, test_key_ring.c, test_key_parts.c, test_recompute.c and test_offload.c. */
#include "tests/support/cmocka.h"

#include "analyzer/training/mixed_precision.h"
#include "analyzer/training/training_graph.h"
#include "layouts/base/json_writer.h"
#include "layouts/execution/executed_graph.h"
#include "layouts/graph/operation_table.h"
#include "layouts/graph_file/graph_json.h"
#include "tests/support/cases/parse_graph.h"
#include "tests/support/losses/attention_training.h"

#include <string.h>

static MtfGraph *training(bool bf16) {
    g_autoptr(MtfGraph) forward = mtf_test_layers(4, 256, 8, 32);
    g_autoptr(MtfGraph) graph = mtf_training_graph(forward, NULL);
    return bf16 ? mtf_mixed_precision(graph, NULL) : g_steal_pointer(&graph);
}

static MtfGraph *attention_training(bool bf16) {
    g_autoptr(MtfGraph) graph = mtf_test_attention_training(12, ", 'causal': 1", "");
    mtf_graph_set_precision(graph, MTF_F32);
    return bf16 ? mtf_mixed_precision(graph, NULL) : g_steal_pointer(&graph);
}

/* Layers 0 and 1 are the first stage. */
static MtfGraph *staged(void) {
    MtfGraph *graph = training(false);
    for (int i = 0; i < (int)graph->operations->len; i++) {
        MtfOperation *op = mtf_graph_operation(graph, i);
        op->stage = op->layer.block > 0 && op->layer.iteration < 2 ? 1 : 2;
    }
    return graph;
}

static char *text_of(const MtfGraph *graph) {
    cJSON *json = mtf_graph_to_json(graph);
    char *text = mtf_json_print_levels(json, 3);
    cJSON_Delete(json);
    return text;
}

static const MtfDivision whole = { 0 };

/* The training graph from a file is executed like the one that was written. Returns what was added. */
static int added_after_reading(const MtfGraph *graph, const MtfDivision *division,
                               const MtfKept *kept, int n) {
    g_autoptr(MtfGraph) executed = mtf_graph_copy(graph);
    g_autofree char *text = text_of(graph);
    assert_true(mtf_graph_execute(executed, division, kept, n, NULL));
    g_autoptr(MtfGraph) read = mtf_test_graph(text);
    assert_true(mtf_graph_execute(read, division, kept, n, NULL));
    g_autofree char *there = text_of(executed), *again = text_of(read);
    assert_string_equal(there, again);
    return (int)(executed->operations->len - graph->operations->len);
}

TEST(what_is_run_follows_from_what_is_trained) {
    for (int bf16 = 0; bf16 < 2; bf16++) {
        g_autoptr(MtfGraph) graph = training(bf16 != 0);
        for (int recompute = 0; recompute < MTF_RECOMPUTES; recompute++)
            for (int offload = 0; offload < MTF_OFFLOADS; offload++)
                for (int layers = 0; layers < 4; layers += 3) {
                    MtfKept kept = { (MtfRecompute)recompute, layers, (MtfOffload)offload, layers };
                    int added = added_after_reading(graph, &whole, &kept, 1);
                    assert_true((added > 0) == (recompute + offload > 0));
                }
    }
}

TEST(stages_follow_each_by_its_own) {
    g_autoptr(MtfGraph) graph = staged();
    static const MtfKept ways[] = { { .recompute = MTF_RECOMPUTE_NONE },
                                    { .recompute = MTF_RECOMPUTE_CHEAP },
                                    { .recompute = MTF_RECOMPUTE_LAYERS },
                                    { MTF_RECOMPUTE_LAYERS, 1, MTF_OFFLOAD_NONE, 0 } };
    for (int i = 0; i < 16; i++) {
        MtfKept kept[] = { ways[i % 4], ways[i / 4] };
        assert_true((added_after_reading(graph, &whole, kept, 2) > 0) == (i > 0));
        MtfKept one = ways[i % 4];
        added_after_reading(graph, &whole, &one, 1);
    }
}

/* Each of eight gradients is summed, and the loss; in bfloat16 the former are rounded. */
TEST(files_hold_the_whole_step) {
    for (int bf16 = 0; bf16 < 2; bf16++) {
        g_autoptr(MtfGraph) graph = training(bf16 != 0);
        for (int m = 1; m <= 8; m *= 2) {
            const MtfDivision division = { .microbatches = m,
                                           .own_pass = m == 1,
                                           .batch = mtf_graph_find_dimension(graph, "b") };
            assert_int_equal(added_after_reading(graph, &division, &(MtfKept){ 0 }, 1),
                             8 + 1 + 8 * bf16);
            MtfKept kept = { .recompute = MTF_RECOMPUTE_LAYERS };
            assert_true(added_after_reading(graph, &division, &kept, 1) > 8 + 1 + 8 * bf16);
        }
        assert_int_equal(graph->loss, mtf_graph_find_tensor(graph, "l"));
    }
}

/* In stages, too, which each sum what is theirs. */
TEST(sums_are_of_the_stage_of_what_they_sum) {
    g_autoptr(MtfGraph) graph = staged();
    const MtfDivision division = { .microbatches = 4,
                                   .batch = mtf_graph_find_dimension(graph, "b") };
    assert_int_equal(added_after_reading(graph, &division, &(MtfKept){ 0 }, 1), 9);
    assert_true(mtf_graph_execute(graph, &division, &(MtfKept){ 0 }, 1, NULL));
    int sums = 0;
    for (int i = 0; i < (int)graph->operations->len; i++) {
        const MtfOperation *op = mtf_graph_operation(graph, i);
        if (op->kind != MTF_OP_ACCUMULATE)
            continue;
        int of = mtf_graph_tensor(graph, op->inputs[0])->producer;
        assert_int_equal(op->stage, mtf_graph_operation(graph, of)->stage);
        sums++;
    }
    assert_int_equal(sums, 9);
}

TEST(files_hold_attention_whole) {
    for (int bf16 = 0; bf16 < 2; bf16++) {
        g_autoptr(MtfGraph) graph = attention_training(bf16 != 0);
        const MtfDivision ring = { .ring = 3 }, parts = { .key_parts = 4 };
        int of_ring = added_after_reading(graph, &ring, &(MtfKept){ 0 }, 1);
        assert_true(of_ring > added_after_reading(graph, &parts, &(MtfKept){ 0 }, 1));
        assert_true(mtf_graph_find_dimension(graph, "m/parts") < 0);
    }
}

/* Counted in each stage: of the first its first layer, of the second both. */
TEST(layers_are_counted_in_each_stage) {
    static const int expected[] = { 1, 0, 1, 1 };
    g_autoptr(MtfGraph) graph = staged();
    static const MtfKept kept[] = { { MTF_RECOMPUTE_LAYERS, 1, MTF_OFFLOAD_NONE, 0 },
                                    { .recompute = MTF_RECOMPUTE_LAYERS } };
    assert_true(mtf_graph_execute(graph, &whole, kept, 2, NULL));
    for (int l = 0; l < 4; l++) {
        g_autofree char *name = g_strdup_printf("recompute/layer/%d/p", l);
        assert_int_equal(mtf_graph_find_operation(graph, name) >= 0, expected[l]);
    }
}

/* A clone does over again what it was made of; a fetch what took there what it fetches. */
TEST(what_was_added_names_its_original) {
    g_autoptr(MtfGraph) graph = training(false);
    int written = (int)graph->operations->len, originals = 0;
    MtfKept kept = { MTF_RECOMPUTE_LAYERS, 0, MTF_OFFLOAD_LAYERS, 0 };
    assert_true(mtf_graph_execute(graph, &whole, &kept, 1, NULL));
    for (int i = 0; i < (int)graph->operations->len; i++) {
        int original = mtf_graph_original_operation(graph, i);
        const char *name = mtf_graph_operation(graph, i)->name, *slash = strchr(name, '/');
        bool clone = g_str_has_prefix(name, "recompute/"),
             back = g_str_has_prefix(name, "from_host/");
        assert_true((original >= 0) == (clone || back));
        if (original < 0)
            continue;
        originals++;
        const char *of = mtf_graph_operation(graph, original)->name;
        assert_string_equal(slash + 1, back ? strchr(of, '/') + 1 : of);
        assert_true(original < i);
    }
    /* Every operation more is a clone, or one of a pair of copies. */
    assert_int_equal(graph->operations->len - (guint)written, originals + 3);
}

static void assert_refused(MtfGraph *graph, MtfKept kept, const char *says) {
    g_autoptr(GError) error = NULL;
    assert_false(mtf_graph_execute(graph, &whole, &kept, 1, &error));
    if (strstr(error->message, says) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", error->message, says);
}

/* What was added could not be told from what was there. */
TEST(graphs_that_do_it_themselves_are_refused) {
    const MtfKept recompute = { .recompute = MTF_RECOMPUTE_LAYERS };
    const MtfKept offload = { .offload = MTF_OFFLOAD_LAYERS };
    g_autoptr(MtfGraph) clones = training(false);
    assert_true(mtf_graph_execute(clones, &whole, &recompute, 1, NULL));
    assert_refused(clones, recompute, "the graph \"g\" recomputes \"layer/3/p\" by itself");
    g_autoptr(MtfGraph) copies = training(false);
    assert_true(mtf_graph_execute(copies, &whole, &offload, 1, NULL));
    assert_refused(copies, offload, "the graph \"g\" uses the host's memory by itself");
}
