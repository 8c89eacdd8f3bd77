// SPDX-License-Identifier: GPL-3.0-or-later
/* config.json files of tiny models as transformers 5.17 itself wrote them, a line each in
 * tests/golden/transformers/configs.tsv: a name, how many parameters transformers counts, and the file. */
#include "tests/support/cmocka.h"

#include "analyzer/import/model_import.h"
#include "layouts/base/json_reader.h"
#include "layouts/graph/operation_table.h"

#include <string.h>

#define CONFIGS "tests/golden/transformers/configs.tsv"

/* The graph of a config's text; fails the test where there is none. */
static MtfGraph *import(const char *name, const char *text) {
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfJsonDocument) document = mtf_json_document_parse(name, text, strlen(text), &error);
    assert_non_null(document);
    MtfJson root = mtf_json_root(document);
    MtfImport how = { .path = name, .batch = 2, .length = 12 };
    MtfGraph *graph = mtf_import_model(&how, &root, NULL, &error);
    if (graph == NULL)
        fail_msg("%s: %s", name, error->message);
    return graph;
}

static int64_t untrained(const MtfGraph *graph) {
    int64_t sum = 0;
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(graph, t);
        if (tensor->source == MTF_SOURCE_VARIABLE && tensor->frozen)
            sum += mtf_graph_elements(graph, &tensor->shape);
    }
    return sum;
}

/* What nobody trains counts in some of transformers' types and not in others. */
TEST(each_has_as_many_parameters_as_transformers_counts) {
    char *text = NULL;
    assert_true(g_file_get_contents(CONFIGS, &text, NULL, NULL));
    g_auto(GStrv) lines = g_strsplit(g_strchomp(text), "\n", -1);
    g_free(text);
    assert_true(g_strv_length(lines) > 40);
    for (int i = 0; lines[i] != NULL; i++) {
        g_auto(GStrv) parts = g_strsplit(lines[i], "\t", 3);
        g_autoptr(MtfGraph) graph = import(parts[0], parts[2]);
        int64_t wanted = g_ascii_strtoll(parts[1], NULL, 10), ours = mtf_graph_parameters(graph);
        if (wanted != ours && wanted != ours - untrained(graph))
            fail_msg("%s: %s parameters, not %" G_GINT64_FORMAT, parts[0], parts[1], ours);
    }
}

/* The first operation of a kind whose name ends so. */
static const MtfOperation *find_operation(const MtfGraph *graph, int kind, const char *end) {
    for (int o = 0; o < (int)graph->operations->len; o++) {
        const MtfOperation *op = mtf_graph_operation(graph, o);
        if (op->kind == kind && g_str_has_suffix(op->name, end))
            return op;
    }
    fail_msg("there is no operation %s", end);
    return NULL;
}

#define EXPERTS                                                             \
    "\"vocab_size\":96,\"num_attention_heads\":4,\"intermediate_size\":48," \
    "\"hidden_size\":32,\"num_hidden_layers\":1,\"num_local_experts\":4,"   \
    "\"num_experts_per_tok\":2,\"num_key_value_heads\":4,"

/* Mixtral's experts read what its router does, multiplied in training; Switch's router alone does. */
TEST(what_routers_read_is_jittered_in_training) {
    static const struct {
        const char *text;
        double low;
        bool of_experts;
    } cases[] = {
        { "{\"model_type\":\"mixtral\"," EXPERTS "\"router_jitter_noise\":0.25}", .75, true },
        { "{\"model_type\":\"phimoe\"," EXPERTS
          "\"router_jitter_noise\":0.01,\"input_jitter_noise\":0.25}",
          .75, true },
        { "{\"model_type\":\"minimax_m2\"," EXPERTS "\"router_jitter_noise\":0.125}", .875, true },
        { "{\"model_type\":\"dbrx\",\"d_model\":32,\"n_heads\":4,\"n_layers\":1,\"vocab_size\":96,"
          "\"ffn_config\":{\"ffn_hidden_size\":24,\"moe_num_experts\":4,\"moe_top_k\":2,"
          "\"moe_jitter_eps\":0.25}}",
          .75, false },
        { "{\"model_type\":\"switch_transformers\",\"vocab_size\":96,\"d_model\":32,\"d_kv\":8,"
          "\"d_ff\":48,\"num_heads\":4,\"num_experts\":4,\"num_layers\":2,\"num_decoder_layers\":2,"
          "\"num_sparse_encoder_layers\":2,\"num_sparse_decoder_layers\":2,"
          "\"router_jitter_noise\":0.25}",
          .75, false },
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(MtfGraph) graph = import("jittered", cases[i].text);
        const MtfOperation *noise = find_operation(graph, MTF_OP_RANDOM_UNIFORM, "jitter");
        const MtfOperation *trained = find_operation(graph, MTF_OP_IN_TRAIN_PHASE, "trained_by");
        const MtfOperation *sent = find_operation(graph, MTF_OP_DISPATCH, "sent");
        const MtfOperation *router = find_operation(graph, MTF_OP_EINSUM, "router");
        assert_true(noise->attributes.low == cases[i].low);
        assert_true(noise->attributes.high == 2 - cases[i].low);
        assert_true(router->inputs[0] == trained->outputs[0] ||
                    router->inputs[1] == trained->outputs[0]);
        assert_int_equal(sent->inputs[0],
                         cases[i].of_experts ? trained->outputs[0] : trained->inputs[1]);
    }
}

/* As transformers: the coefficient times the experts squared over the square of the layers, here 0.5 x 16 / 1. */
TEST(experts_are_balanced_where_the_scores_of_routers_are_asked_for) {
    for (int asked = 0; asked < 2; asked++) {
        g_autofree char *text =
            g_strdup_printf("{\"model_type\":\"mixtral\"," EXPERTS
                            "\"router_aux_loss_coef\":0.5,\"output_router_logits\":%s}",
                            asked ? "true" : "false");
        g_autoptr(MtfGraph) graph = import("balanced", text);
        bool balanced = mtf_graph_find_tensor(graph, "routing_balance_loss") >= 0;
        assert_true(balanced == asked);
        if (!asked)
            continue;
        /* What is not linear in the batch is of one micro-batch each, so that there may be some. */
        assert_true(
            find_operation(graph, MTF_OP_SCALE, "routing_balance_loss")->attributes.factor == 8);
        assert_true(
            find_operation(graph, MTF_OP_REDUCE_MEAN, "chosen_by_all")->attributes.per_microbatch ==
            1);
    }
}
