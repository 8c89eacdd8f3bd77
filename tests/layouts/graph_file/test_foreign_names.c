// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "layouts/graph_file/foreign_names.h"
#include "tests/support/cases/parse_graph.h"

#include <string.h>

static void check(const char *name, const char *wanted) {
    g_autofree char *hint = mtf_operation_hint(name);
    assert_string_equal(hint, wanted);
}

TEST(names_of_others_say_what_would_do) {
    check("swish", "; use silu");
    check("matmul", "; use einsum: dimensions that \"dims\" lacks are summed");
    check("conv2d", "; use conv");
    check("Conv3d", "; use conv");
    check("BatchNorm2d", "; use normalize by reduce_mean and variance over all but channels");
    check("avg_pool2d", "; use average_pool");
    check("Softmax", "; use softmax");
    check("log_softmax", "; use subtract log_sum_exp from the input");
    check("mse_loss", "; use expression \"(x - y) ^ 2\", and reduce_mean");
}

TEST(blocks_stand_for_recurrent_layers) {
    check("LSTM", "; write its step in a loop block");
}

/* Nothing that is spelt alike is meant: no sgd by svd, no sqrt by stft. */
TEST(what_no_operation_says_is_told_another_way) {
    check("svd", "; factors of matrices have no operation: a loop block may iterate towards one");
    check("stft", "; use conv with the cosines and sines of its frames");
    check("nonzero",
          "; results whose size the data decide have none here: mark elements by where, or "
          "take top_k");
    check("grid_sample", "; use gather at each corner, weighed and added");
    check("scatter_nd", "; use scatter_add along one dimension, of places that a reshape merges");
}

TEST(what_is_misspelt_is_meant) {
    check("softmaxx", " (did you mean \"softmax\"?)");
    check("reduce_men", " (did you mean \"reduce_mean\"?)");
}

/* Nobody writes the gradients of operations. */
TEST(gradients_are_not_meant) {
    check("rellu_grad", "; a function of elements may be written as an expression");
    check("erfcx_of_mine", "; a function of elements may be written as an expression");
    check("Gradient",
          "; gradients are derived from the loss, and one that the loss itself reads is "
          "written out, by operations as estimate --dump-after execute prints them");
}

/* The formulas in hints. */
TEST(formulas_can_be_written) {
    static const struct {
        const char *name, *inputs;
    } formulas[] = { { "quick_gelu", "x" }, { "mish", "x" },
                     { "hardswish", "x" },  { "hardsigmoid", "x" },
                     { "selu", "x" },       { "prelu", "x slope" },
                     { "glu", "a b" },      { "mse_loss", "x y" },
                     { "l1_loss", "x y" },  { "bce_with_logits", "x y" } };
    for (gsize i = 0; i < G_N_ELEMENTS(formulas); i++) {
        g_autofree char *hint = mtf_operation_hint(formulas[i].name);
        g_auto(GStrv) parts = g_strsplit(hint, "\"", 3);
        assert_string_equal(parts[0], "; use expression ");
        bool two = strchr(formulas[i].inputs, ' ') != NULL;
        g_autofree char *text = g_strdup_printf(
            "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'b': 4}, 'inputs': [{'name': 'p', "
            "'dims': ['b'], 'feed': 'features'}, {'name': 'q', 'dims': ['b'], 'feed': 'targets'}], "
            "'operations': [{'name': 'r', 'op': 'expression', 'inputs': [%s], 'arguments': '%s', "
            "'expression': '%s'}]}",
            two ? "'p', 'q'" : "'p'", formulas[i].inputs, parts[1]);
        g_autoptr(GError) error = NULL;
        g_autoptr(MtfGraph) graph = mtf_test_graph_parse(text, NULL, &error);
        if (graph == NULL)
            fail_msg("%s: %s", formulas[i].name, error->message);
    }
}
