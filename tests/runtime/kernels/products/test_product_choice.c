// SPDX-License-Identifier: GPL-3.0-or-later
/* Which way multiplies: by the table, by a trial, and as a text that another process takes over. */
#include "tests/support/cmocka.h"

#include "layouts/base/error.h"
#include "runtime/kernels/products/product_choice.h"

#include <math.h>
#include <string.h>

static const char *const sets[] = { "sse41",
                                    "avx",
                                    "avx2",
                                    "avx512_core",
                                    "avx512_core_vnni",
                                    "avx512_core_bf16",
                                    "avx512_core_bf16_slow",
                                    "avx512_core_amx" };

/* c[a, c] = a[a, b] b[b, c] of the letters' sizes, terms written as their letters. */
static MtfContraction plan_of(const char *const letters[MTF_TERMS], const int64_t size[4],
                              MtfDtype type) {
    MtfTerm terms[MTF_TERMS] = { 0 };
    int64_t bytes = mtf_dtype_bytes(type);
    MtfContractionMeans means = { .element_bytes = { bytes, bytes, bytes }, .whole_sums = true };
    MtfContraction plan;
    for (int t = 0; t < MTF_TERMS; t++)
        for (const char *at = letters[t]; *at != 0; at++) {
            terms[t].dims[terms[t].rank] = *at;
            terms[t].size[terms[t].rank++] = size[*at - 'a'];
        }
    mtf_contraction_plan(terms, &means, &plan);
    return plan;
}

static MtfProductCase shape_of(const char *left, const char *right, const char *result) {
    const char *const letters[] = { left, right, result };
    const int64_t size[] = { 20, 30, 40, 6 };
    const MtfDtype types[] = { MTF_F32, MTF_F32, MTF_F32 };
    MtfContraction plan = plan_of(letters, size, MTF_F32);
    return mtf_product_case(&plan, types);
}

/* a rows, b summed, c columns, d turns. A result that lies the other way is the turned product. */
TEST(shapes_say_how_terms_lie) {
    MtfProductCase nn = shape_of("ab", "bc", "ac"), nt = shape_of("dab", "dcb", "dac");
    MtfProductCase tn = shape_of("ba", "bc", "ac"), turned = shape_of("ab", "bc", "ca");
    assert_true(nn.form == MTF_PRODUCT_NN && nn.m == 20 && nn.n == 40 && nn.k == 30);
    assert_true(nt.form == MTF_PRODUCT_NT && nt.turns == 6 && nn.turns == 1);
    assert_true(tn.form == MTF_PRODUCT_TN);
    assert_true(turned.form == MTF_PRODUCT_TN && turned.m == 40 && turned.n == 20);
}

static double best_rate(const MtfProductLibraries *libraries, const MtfProductCase *shape) {
    double best = 0;
    for (int way = 0; way < MTF_PRODUCT_WAYS; way++)
        best = fmax(best, mtf_product_rate(libraries, shape, (MtfProductWay)way));
    return best;
}

/* On every set of instructions, with every family of OpenBLAS's kernels. Widening costs up to a
 * tenth of a product, which steps win back where they move half the bytes. */
TEST(bfloat16_is_never_much_slower_than_float32) {
    for (size_t set = 0; set < G_N_ELEMENTS(sets); set++)
        for (int family = MTF_OPENBLAS_SSE; family <= MTF_OPENBLAS_AVX512; family++)
            for (int form = MTF_PRODUCT_NN; form <= MTF_PRODUCT_TN; form++) {
                MtfProductLibraries libraries = { (MtfOpenBlasFamily)family, sets[set] };
                MtfProductCase shape = { MTF_F32, (MtfProductForm)form, 1, 1024, 768, 3072 };
                double wide = best_rate(&libraries, &shape);
                shape.type = MTF_BF16;
                if (best_rate(&libraries, &shape) < 0.9 * wide)
                    fail_msg("%s, family %d, form %d: %g of %g", sets[set], family, form,
                             best_rate(&libraries, &shape), wide);
            }
}

/* Products of bfloat16 that a processor does slowly itself are widened; fast ones are not. */
TEST(the_processors_own_bfloat16_is_used_where_it_is_fast) {
    MtfProductCase shape = { MTF_BF16, MTF_PRODUCT_NN, 1, 1024, 768, 3072 };
    MtfProductLibraries fast = { MTF_OPENBLAS_AVX512, "avx512_core_bf16" };
    MtfProductLibraries slow = { MTF_OPENBLAS_AVX512, "avx512_core_bf16_slow" };
    MtfProductLibraries none = { MTF_OPENBLAS_AVX2, "avx2" };
    assert_true(mtf_product_rate(&fast, &shape, MTF_WAY_MATMUL) == best_rate(&fast, &shape));
    assert_true(mtf_product_rate(&slow, &shape, MTF_WAY_MATMUL) <
                mtf_product_rate(&slow, &shape, MTF_WAY_WIDENED_SGEMM));
    assert_true(mtf_product_rate(&none, &shape, MTF_WAY_MATMUL) == 0);
}

TEST(old_kernels_of_openblas_give_way_to_onednn) {
    MtfProductCase shape = { MTF_F32, MTF_PRODUCT_NN, 1, 512, 512, 512 };
    MtfProductLibraries libraries = { MTF_OPENBLAS_SSE, "avx2" };
    assert_true(mtf_product_rate(&libraries, &shape, MTF_WAY_SGEMM) >
                2 * mtf_product_rate(&libraries, &shape, MTF_WAY_OPENBLAS));
}

/* Where there is little to do oneDNN's code is not made, though the table has it faster. */
TEST(small_products_are_openblas_s) {
    const char *const letters[] = { "ab", "bc", "ac" };
    const MtfDtype types[] = { MTF_F32, MTF_F32, MTF_F32 };
    assert_true(mtf_product_choice_use("sse avx2", NULL));
    for (int64_t side = 20; side <= 80; side += 20) {
        const int64_t size[] = { side, side, side, 1 };
        MtfContraction plan = plan_of(letters, size, MTF_F32);
        MtfProductWay order[MTF_PRODUCT_WAYS];
        mtf_product_choice(&plan, types, order);
        assert_int_equal(order[0] == MTF_WAY_OPENBLAS, side <= 40);
    }
    assert_true(mtf_product_choice_use(NULL, NULL));
}

/* Every way comes once, whatever the shape. */
TEST(every_way_is_in_the_order) {
    const char *const letters[] = { "ab", "bc", "ac" };
    const MtfDtype kinds[] = { MTF_F64, MTF_F32, MTF_BF16 };
    for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++)
        for (int64_t rows = 1; rows < 3000; rows *= 7) {
            const int64_t size[] = { rows, 60, 50, 1 };
            const MtfDtype types[] = { kinds[i], kinds[i], kinds[i] };
            MtfContraction plan = plan_of(letters, size, kinds[i]);
            MtfProductWay order[MTF_PRODUCT_WAYS];
            unsigned seen = 0;
            mtf_product_choice(&plan, types, order);
            for (int way = 0; way < MTF_PRODUCT_WAYS; way++)
                seen |= 1U << order[way];
            assert_int_equal(seen, (1U << MTF_PRODUCT_WAYS) - 1);
        }
}

/* A shape that was tried keeps the way that won, in this process and in one that takes the text. */
TEST(a_trial_is_kept_and_passed_on) {
    const char *const letters[] = { "ab", "bc", "ac" };
    const int64_t size[] = { 65, 66, 67, 1 };
    const MtfDtype types[] = { MTF_F32, MTF_F32, MTF_F32 };
    MtfContraction plan = plan_of(letters, size, MTF_F32);
    MtfProductWay first[MTF_PRODUCT_WAYS], again[MTF_PRODUCT_WAYS];
    assert_true(mtf_product_choice_use(NULL, NULL));
    g_autofree char *before = mtf_product_choice_text();
    mtf_product_choice_set_trial(true);
    mtf_product_choice(&plan, types, first);
    mtf_product_choice_set_trial(false);
    g_autofree char *after = mtf_product_choice_text();
    g_autofree char *row =
        g_strdup_printf("%s; float32 NN 1 65x67x66 %s", before, mtf_products_way(first[0])->name);
    assert_string_equal(after, row);
    assert_true(mtf_product_choice_use(NULL, NULL));
    assert_true(mtf_product_choice_use(after, NULL));
    mtf_product_choice(&plan, types, again);
    assert_int_equal(again[0], first[0]);
    g_autofree char *told = mtf_product_choice_format();
    assert_true(strstr(told, "a trial of 1 shape and the table") != NULL);
    assert_true(mtf_product_choice_use(NULL, NULL));
}

/* What a text says is done, even where this process would choose another way. */
TEST(a_text_decides) {
    const char *const letters[] = { "ab", "bc", "ac" };
    const int64_t size[] = { 200, 300, 400, 1 };
    const MtfDtype types[] = { MTF_F32, MTF_F32, MTF_F32 };
    MtfContraction plan = plan_of(letters, size, MTF_F32);
    for (int way = MTF_WAY_OPENBLAS; way <= MTF_WAY_MATMUL; way++) {
        g_autofree char *text = g_strdup_printf("avx2 avx2; float32 NN 1 200x400x300 %s",
                                                mtf_products_way((MtfProductWay)way)->name);
        MtfProductWay order[MTF_PRODUCT_WAYS];
        assert_true(mtf_product_choice_use(text, NULL));
        mtf_product_choice(&plan, types, order);
        assert_int_equal(order[0], way);
    }
    assert_true(mtf_product_choice_use(NULL, NULL));
}

TEST(other_texts_are_refused) {
    static const char *const texts[] = { "",
                                         "avx2",
                                         "avx9 avx2",
                                         "avx2 neon",
                                         "avx2 avx2; float32 NN",
                                         "avx2 avx2; float32 NN 1 2x3x4 magic" };
    g_autofree char *before = mtf_product_choice_text();
    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(GError) error = NULL;
        assert_false(mtf_product_choice_use(texts[i], &error));
        assert_int_equal(mtf_error_exit_status(error), 2);
        g_autofree char *after = mtf_product_choice_text();
        assert_string_equal(after, before);
    }
}
