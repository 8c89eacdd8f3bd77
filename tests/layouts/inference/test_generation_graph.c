// SPDX-License-Identifier: GPL-3.0-or-later
/* A graph that generates gives, token by token or in pieces, the scores that the graph it was made
 * from gives of the whole text: judged by the reference, which knows no kernels. */
#include "layouts/inference/generation_graph.h"
#include "tests/support/cases/parse_graph.h"
#include "tests/support/cmocka.h"
#include "tests/support/reference/reference.h"

#include <math.h>
#include <string.h>

#define BATCH 2
#define LENGTH 6
#define VOCABULARY 7

#define COMMON "'vocab_size': 7, "
#define SIZES                         \
    "'max_position_embeddings': 16, " \
    "'hidden_size': 8, 'intermediate_size': 12, 'num_hidden_layers': 2, 'num_attention_heads': 4, "

/* Learned positions and biases; rotary turns and shared heads; windows and soft caps; experts that drop
 * nobody. */
static const char *const configs[] = {
    "{'model_type': 'gpt2', " COMMON "'n_embd': 8, 'n_layer': 2, 'n_head': 2, 'n_positions': 16}",
    "{'model_type': 'llama', " COMMON SIZES
    "'num_key_value_heads': 2, 'rms_norm_eps': 1e-5, 'hidden_act': 'silu'}",
    "{'model_type': 'mistral', " COMMON SIZES
    "'num_key_value_heads': 2, 'rms_norm_eps': 1e-5, 'hidden_act': 'silu', 'sliding_window': 3}",
    "{'model_type': 'mixtral', " COMMON SIZES
    "'num_key_value_heads': 2, 'rms_norm_eps': 1e-5, 'hidden_act': 'silu', "
    "'num_local_experts': 4, 'num_experts_per_tok': 2}",
};

static double token(int example, int place) {
    return (3 * example + place * place + place) % VOCABULARY;
}

/* The scores [batch, length, vocabulary] of the whole text; the caller frees them. */
static double *whole_scores(const MtfGraph *graph) {
    g_autoptr(MtfReference) reference = mtf_reference_new(graph, 3);
    double *tokens = mtf_reference_find(reference, "tokens");
    for (int i = 0; i < BATCH * LENGTH; i++)
        tokens[i] = token(i / LENGTH, i % LENGTH);
    mtf_reference_run(reference, 0);
    return g_memdup2(mtf_reference_find(reference, "logits"),
                     sizeof(double) * BATCH * LENGTH * VOCABULARY);
}

static double *values_of(const MtfReference *reference, int tensor) {
    assert_true(tensor >= 0);
    return reference->values[tensor];
}

/* Caches and all other variables, as far as the two graphs share names and sizes. */
static void carry_over(MtfReference *to, const MtfReference *from) {
    for (int t = 0; t < (int)to->graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(to->graph, t);
        if (tensor->source == MTF_SOURCE_VARIABLE)
            memcpy(to->values[t], mtf_reference_find(from, tensor->name),
                   sizeof(double) * (size_t)mtf_graph_elements(to->graph, &tensor->shape));
    }
}

/* Reads `pieces[0]`, then pieces[1] … tokens, the second example one token less in the first. */
static void graph_generates_like_the_whole(const MtfGraph *graph, const int *pieces, int context) {
    g_autofree double *expected = whole_scores(graph);
    g_autoptr(MtfReference) before = NULL;
    g_autoptr(GPtrArray) made = g_ptr_array_new_with_free_func((GDestroyNotify)mtf_graph_free);
    int position[BATCH] = { 0 };
    for (int piece = 0; pieces[piece] > 0; piece++) {
        GError *error = NULL;
        MtfGenerationSizes sizes = { .length = pieces[piece], .context = context };
        MtfGraph *step = mtf_generation_graph(graph, &sizes, &error);
        if (step == NULL)
            fail_msg("%s", error->message);
        g_ptr_array_add(made, step);
        MtfReference *reference = mtf_reference_new(step, 3);
        if (before != NULL)
            carry_over(reference, before);
        double *tokens = values_of(reference, mtf_generation_input(step, MTF_FEED_TOKENS));
        double *begin = values_of(reference, mtf_generation_input(step, MTF_FEED_POSITION));
        double *last = values_of(reference, mtf_generation_input(step, MTF_FEED_LAST));
        for (int b = 0; b < BATCH; b++) {
            int n = piece == 0 && b == 1 && pieces[0] > 1 ? pieces[piece] - 1 : pieces[piece];
            begin[b] = position[b];
            last[b] = n - 1;
            for (int i = 0; i < pieces[piece]; i++)
                tokens[b * pieces[piece] + i] = i < n ? token(b, position[b] + i) : 0;
            position[b] += n;
        }
        mtf_reference_run(reference, 0);
        mtf_reference_update(reference);
        const double *scores = values_of(reference, mtf_generation_scores(step));
        for (int i = 0; i < BATCH * VOCABULARY; i++) {
            int b = i / VOCABULARY,
                at = (b * LENGTH + position[b] - 1) * VOCABULARY + i % VOCABULARY;
            if (!(fabs(scores[i] - expected[at]) < 1e-9))
                fail_msg("%s: example %d behind token %d: %g, not %g", graph->name, b,
                         position[b] - 1, scores[i], expected[at]);
        }
        mtf_reference_free(before);
        before = reference;
    }
}

static void generates_like_the_whole(const char *config, const int *pieces, int context) {
    g_autoptr(MtfGraph) graph = mtf_test_model(config, BATCH, LENGTH);
    graph_generates_like_the_whole(graph, pieces, context);
}

static void token_by_token_it_is_the_whole_text(void **state) {
    (void)state;
    for (gsize i = 0; i < G_N_ELEMENTS(configs); i++)
        generates_like_the_whole(configs[i], (int[]){ 1, 1, 1, 1, 1, 1, 0 }, 9);
}

static void prompts_of_different_lengths_are_read_in_pieces(void **state) {
    (void)state;
    for (gsize i = 0; i < G_N_ELEMENTS(configs); i++)
        generates_like_the_whole(configs[i], (int[]){ 3, 1, 2, 0 }, 8);
}

/* BLOOM, which adds a slope of distances, with a soft cap or a window beside it. */
static void attention_with_a_bias_generates(double softcap, double window) {
    g_autoptr(MtfGraph) graph =
        mtf_test_model("{'model_type': 'bloom', " COMMON "'hidden_size': 8, 'n_layer': 2, "
                       "'n_head': 2}",
                       BATCH, LENGTH);
    for (int o = 0; o < (int)graph->operations->len; o++)
        if (mtf_graph_operation(graph, o)->kind == MTF_OP_ATTENTION) {
            assert_int_equal(mtf_graph_operation(graph, o)->n_inputs, 4);
            mtf_graph_operation(graph, o)->attributes.softcap = softcap;
            mtf_graph_operation(graph, o)->attributes.window = window;
        }
    graph_generates_like_the_whole(graph, (int[]){ 3, 1, 2, 0 }, 8);
}

static void scores_are_capped_before_something_is_added(void **state) {
    (void)state;
    attention_with_a_bias_generates(0.3, 0);
}

static void what_lies_before_a_window_is_hidden_beside_a_bias(void **state) {
    (void)state;
    attention_with_a_bias_generates(0, 2);
}

static void what_cannot_generate_is_told(void **state) {
    (void)state;
    static const struct {
        const char *config, *says;
        int context;
    } cases[] = {
        { "{'model_type': 'gpt2', " COMMON
          "'n_embd': 8, 'n_layer': 1, 'n_head': 2, 'n_positions': 16}",
          "longer than the 16 positions", 17 },
        { "{'model_type': 'bert', " COMMON SIZES "'type_vocab_size': 2, 'hidden_act': 'gelu'}",
          "compares no scores", 8 },
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(MtfGraph) graph = mtf_test_model(cases[i].config, BATCH, LENGTH);
        g_autoptr(GError) error = NULL;
        MtfGenerationSizes sizes = { .length = 1, .context = cases[i].context };
        assert_null(mtf_generation_graph(graph, &sizes, &error));
        assert_non_null(strstr(error->message, cases[i].says));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(token_by_token_it_is_the_whole_text),
        cmocka_unit_test(prompts_of_different_lengths_are_read_in_pieces),
        cmocka_unit_test(scores_are_capped_before_something_is_added),
        cmocka_unit_test(what_lies_before_a_window_is_hidden_beside_a_bias),
        cmocka_unit_test(what_cannot_generate_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
