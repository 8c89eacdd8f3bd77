// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "cost/machine/curve_name.h"

TEST(names_read_and_print_the_same) {
    static const char *const names[] = {
        "allreduce/2",         "reduce_scatter/16",  "allreduce/4/bidirectional-ring",
        "alltoall/2/mpi",      "gelu/f32",           "broadcast/f64",
        "broadcast/4",         "move/f64",           "product/f32",
        "product/f64/16x1024", "product_nt/f32/1x4", "product_tn/bf16/64x16",
        "attention/f32/16x32", "normalize/f32/32",   "attention_grad/f64/512x16"
    };
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        MtfCurveName name;
        assert_true(mtf_curve_name_parse(names[i], &name));
        g_autofree char *text = mtf_curve_name_format(&name);
        assert_string_equal(text, names[i]);
    }
}

TEST(what_is_no_name_is_refused) {
    static const char *const names[] = { "",
                                         "gelu",
                                         "gelu/f31",
                                         "frob/f32",
                                         "allreduce/0",
                                         "frob/2",
                                         "allreduce/4/direct",
                                         "allreduce/4/pigeon",
                                         "allreduce/4/ring/2",
                                         "gelu/f32/2x2",
                                         "product/f32/16",
                                         "product/f32/16x",
                                         "product/f32/1x1x1",
                                         "gelu/f32/",
                                         "product/f32/0x1",
                                         "product_nn/f32/1x1",
                                         "product_nt/f32",
                                         "attention/f32",
                                         "normalize/f32/33",
                                         "move/f32/32" };
    MtfCurveName name;
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
        if (mtf_curve_name_parse(names[i], &name))
            fail_msg("\"%s\" was read", names[i]);
}

TEST(a_kernel_and_a_collective_may_share_a_word) {
    MtfCurveName name;
    assert_true(mtf_curve_name_parse("broadcast/4", &name));
    assert_int_equal(name.kind, MTF_CURVE_COLLECTIVE);
    assert_int_equal(name.ranks, 4);
    assert_true(mtf_curve_name_parse("broadcast/f32", &name));
    assert_int_equal(name.kind, MTF_CURVE_OPERATION);
    assert_int_equal(name.operation, MTF_OP_BROADCAST);
}
