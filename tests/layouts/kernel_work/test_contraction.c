// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "layouts/kernel_work/contraction.h"

#include <glib.h>
#include <string.h>

/* Terms are written as letters, one a dimension; sizes by letter. */
static int64_t size_of(const int64_t *sizes, char letter) {
    return sizes[letter - 'a'];
}

static MtfTerm term_of(const char *letters, const int64_t *sizes) {
    MtfTerm term = { .rank = (int)strlen(letters) };
    for (int i = 0; i < term.rank; i++) {
        term.dims[i] = letters[i];
        term.size[i] = size_of(sizes, letters[i]);
    }
    return term;
}

static MtfContraction plan_of(const char *left, const char *right, const char *result,
                              const int64_t *sizes, int64_t scratch) {
    MtfTerm terms[] = { term_of(left, sizes), term_of(right, sizes), term_of(result, sizes) };
    MtfContraction plan;
    MtfContractionMeans means = { { 4, 4, 4 }, scratch, false };
    mtf_contraction_plan(terms, &means, &plan);
    return plan;
}

/* A GPT's sizes: batch 4, length 256 twice (l, t), d_model 768 (m), 12 heads of 64, d_ff 3072. */
static const int64_t gpt[26] = { ['b' - 'a'] = 4,   ['l' - 'a'] = 256, ['t' - 'a'] = 256,
                                 ['m' - 'a'] = 768, ['h' - 'a'] = 12,  ['d' - 'a'] = 64,
                                 ['f' - 'a'] = 3072 };

TEST(a_projection_is_one_product_without_scratch) {
    static const char *const cases[][3] = { { "blm", "mhd", "blhd" }, { "blhd", "mhd", "blm" },
                                            { "blm", "blhd", "mhd" }, { "blhd", "hdm", "blm" },
                                            { "blm", "mf", "blf" },   { "blf", "fm", "blm" },
                                            { "blm", "blf", "mf" } };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        MtfContraction plan = plan_of(cases[i][0], cases[i][1], cases[i][2], gpt, INT64_MAX);
        assert_int_equal(plan.n_outer, 0);
        assert_int_equal(plan.scratch_bytes, 0);
    }
}

TEST(attention_loops_over_batch_and_heads_alone) {
    static const char *const cases[][3] = { { "blhd", "bthd", "bhlt" },
                                            { "bhlt", "bthd", "blhd" },
                                            { "bhlt", "blhd", "bthd" } };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        MtfContraction plan = plan_of(cases[i][0], cases[i][1], cases[i][2], gpt, INT64_MAX);
        assert_int_equal(plan.n_outer, 2);
        assert_int_equal(plan.outer[0].size * plan.outer[1].size, 48);
        assert_int_equal(plan.m.size * plan.n.size * plan.k.size, 256 * 256 * 64);
        assert_int_equal(plan.scratch_bytes, 0);
    }
}

/* Heads innermost in the weights and outside in the result: no strides do; one copy does. */
TEST(a_copy_pays_where_storage_orders_clash) {
    MtfContraction plan = plan_of("blm", "mdh", "blhd", gpt, INT64_MAX);
    assert_int_equal(plan.n_outer, 0);
    assert_int_equal(plan.scratch_bytes, 768 * 768 * 4);
    plan = plan_of("blm", "mdh", "blhd", gpt, 768 * 768 * 4 - 1);
    assert_int_equal(plan.scratch_bytes, 0);
}

#define MOST 4096 /* elements of a term */

static int64_t offset_of(const MtfTerm *term, const int64_t *index) {
    int64_t offset = 0;
    for (int i = 0; i < term->rank; i++)
        offset = offset * term->size[i] + index[term->dims[i] - 'a'];
    return offset;
}

static bool next_index(int64_t *index, const int64_t *sizes) {
    for (int i = 0; i < 26; i++) {
        if (sizes[i] > 0 && ++index[i] < sizes[i])
            return true;
        index[i] = 0;
    }
    return false;
}

/* What a plan's products do, one multiplication at a time. */
static void multiply(const MtfContraction *plan, int loop, const int64_t *at,
                     int64_t *const *stored) {
    MtfContractionLoop inner[3] = { plan->m, plan->n, plan->k };
    if (loop == plan->n_outer + 3) {
        stored[MTF_RESULT][at[MTF_RESULT]] +=
            stored[MTF_LEFT][at[MTF_LEFT]] * stored[MTF_RIGHT][at[MTF_RIGHT]];
        return;
    }
    const MtfContractionLoop *l =
        loop < plan->n_outer ? &plan->outer[loop] : &inner[loop - plan->n_outer];
    for (int64_t i = 0; i < l->size; i++) {
        int64_t next[MTF_TERMS];
        for (int t = 0; t < MTF_TERMS; t++)
            next[t] = at[t] + i * l->stride[t];
        multiply(plan, loop + 1, next, stored);
    }
}

/* Every element equal whether the plan or the definition multiplies. */
static void check_plan(const char *const *letters, const int64_t *sizes, int64_t scratch,
                       bool whole_sums) {
    MtfTerm terms[MTF_TERMS];
    for (int t = 0; t < MTF_TERMS; t++)
        terms[t] = term_of(letters[t], sizes);
    MtfContraction plan;
    MtfContractionMeans means = { { 4, 4, 4 }, scratch, whole_sums };
    mtf_contraction_plan(terms, &means, &plan);
    assert_true(plan.seconds > 0 && plan.scratch_bytes <= scratch);
    for (int i = 0; i < plan.n_outer; i++)
        assert_false(whole_sums && plan.outer[i].sums);
    static int64_t values[MTF_TERMS][MOST], stored[MTF_TERMS][MOST];
    memset(values, 0, sizeof values);
    memset(stored, 0, sizeof stored);
    int64_t index[26] = { 0 }, zero[MTF_TERMS] = { 0 };
    do
        for (int t = 0; t < MTF_RESULT; t++) {
            int64_t whole = offset_of(&terms[t], index);
            values[t][whole] = (whole * 7919 + t) % 101 - 50;
            stored[t][offset_of(&plan.stored[t], index)] = values[t][whole];
        }
    while (next_index(index, sizes));
    int64_t *pointers[] = { stored[0], stored[1], stored[2] };
    multiply(&plan, 0, zero, pointers);
    do
        values[MTF_RESULT][offset_of(&terms[MTF_RESULT], index)] +=
            values[MTF_LEFT][offset_of(&terms[MTF_LEFT], index)] *
            values[MTF_RIGHT][offset_of(&terms[MTF_RIGHT], index)];
    while (next_index(index, sizes));
    do
        assert_int_equal(values[MTF_RESULT][offset_of(&terms[MTF_RESULT], index)],
                         stored[MTF_RESULT][offset_of(&plan.stored[MTF_RESULT], index)]);
    while (next_index(index, sizes));
}

static void shuffle(GRand *rand, char *letters) {
    for (int i = (int)strlen(letters) - 1; i > 0; i--) {
        int j = g_rand_int_range(rand, 0, i + 1);
        char swap = letters[i];
        letters[i] = letters[j];
        letters[j] = swap;
    }
}

TEST(a_plan_multiplies_every_pair_once_with_and_without_scratch) {
    /* Which terms hold a dimension: all, left and result, right and result, left and right. */
    static const unsigned roles[] = { 7, 5, 6, 3 };
    g_autoptr(GRand) rand = g_rand_new_with_seed(11);
    for (int k = 0; k < 1000; k++) {
        int64_t sizes[26] = { 0 };
        char letters[MTF_TERMS][8] = { "", "", "" };
        int n = g_rand_int_range(rand, 1, 7);
        for (int i = 0; i < n; i++) {
            unsigned role = roles[g_rand_int_range(rand, 0, 4)];
            sizes[i] = g_rand_int_range(rand, 1, 4);
            for (int t = 0; t < MTF_TERMS; t++)
                if (role >> t & 1)
                    letters[t][strlen(letters[t])] = (char)('a' + i);
        }
        for (int t = 0; t < MTF_TERMS; t++)
            if (g_rand_boolean(rand))
                shuffle(rand, letters[t]);
        const char *const all[] = { letters[0], letters[1], letters[2] };
        check_plan(all, sizes, 0, false);
        check_plan(all, sizes, INT64_MAX, false);
        check_plan(all, sizes, INT64_MAX, true);
    }
}

/* How an einsum in bfloat16 runs, and its scratch for sizes a = 2, b = 3, c = 5. */
TEST(narrow_einsums_add_up_in_float32) {
    static const int64_t sizes[26] = { 2, 3, 5 };
    static const struct {
        const char *left, *right, *result;
        MtfNarrowEinsum how;
        int64_t scratch; /* with a narrow result; each term rounded up to 64 bytes */
    } cases[] = {
        { "ab", NULL, "ba", MTF_NARROW_PASS, 0 },
        { "abc", NULL, "c", MTF_NARROW_SUMS, 64 },
        { "abc", "ca", "abc", MTF_NARROW_PASS, 0 },
        { "abc", "abc", "ab", MTF_NARROW_SUMS, 64 },
        { "ab", "bc", "ac", MTF_NARROW_PRODUCTS, 0 },
        { "ab", "b", "a", MTF_NARROW_PRODUCTS, 0 },
        /* a is summed in the left term alone: its 24 bytes, both terms' 24 and 60, the result's 20
         */
        { "ab", "bc", "c", MTF_NARROW_WIDENED, 64 + 64 + 64 + 64 },
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        MtfTerm terms[2] = { term_of(cases[i].left, sizes) };
        if (cases[i].right != NULL)
            terms[1] = term_of(cases[i].right, sizes);
        MtfTerm result = term_of(cases[i].result, sizes);
        int n = cases[i].right != NULL ? 2 : 1;
        assert_int_equal(mtf_narrow_einsum(terms, n, &result), cases[i].how);
        assert_int_equal(mtf_narrow_einsum_scratch_bytes(terms, n, &result, true),
                         cases[i].scratch);
    }
}
