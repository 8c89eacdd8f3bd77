// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "layouts/graph/random.h"

#include <math.h>
#include <string.h>

#define N 100000

/* From Random123's kat_vectors: philox4x32 10 rounds, counter 243f6a88 85a308d3 13198a2e 03707344,
 * key a4093822 299f31d0, results d16cfe09 94fdcceb 5001e420 24126ea1. */
TEST(blocks_are_philox_of_counter_and_key) {
    MtfRandom random = { .key = UINT64_C(0x299f31d0a4093822),
                         .step = UINT64_C(0x0370734413198a2e) };
    uint32_t words[4];
    mtf_random_block(&random, (int64_t)UINT64_C(0x85a308d3243f6a88), words);
    const uint32_t expected[4] = { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 };
    assert_memory_equal(words, expected, sizeof words);
}

TEST(an_element_takes_its_word_of_its_block) {
    MtfRandom random = mtf_random_stream(7, "dropout", 3);
    for (int64_t i = 0; i < 100; i++) {
        uint32_t words[4];
        mtf_random_block(&random, i / 4, words);
        assert_int_equal(mtf_random_word(&random, i), words[i % 4]);
    }
}

TEST(seed_name_and_step_make_different_streams) {
    MtfRandom streams[] = { mtf_random_stream(1, "a", 0), mtf_random_stream(2, "a", 0),
                            mtf_random_stream(1, "b", 0), mtf_random_stream(1, "a", 1),
                            mtf_random_initial_stream(1, "a") };
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < i; j++)
            assert_int_not_equal(mtf_random_word(&streams[i], 0), mtf_random_word(&streams[j], 0));
}

/* Standard errors at n = 1e5: mean 1/sqrt(12 n) = 9.1e-4, variance sqrt(1/180/n) = 2.4e-4. */
TEST(uniform_numbers_have_the_moments_of_the_uniform_distribution) {
    MtfRandom random = mtf_random_stream(1, "u", 0);
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < N; i++) {
        double u = mtf_random_uniform(&random, i);
        assert_true(u >= 0 && u < 1);
        sum += u;
        squares += (u - 0.5) * (u - 0.5);
    }
    assert_true(fabs(sum / N - 0.5) < 4e-3);
    assert_true(fabs(squares / N - 1.0 / 12) < 1e-3);
}

/* Standard errors: mean 3.2e-3, variance sqrt(2/n) = 4.5e-3, fourth moment sqrt(96/n) = 0.031. */
TEST(normal_numbers_have_the_moments_of_the_normal_distribution) {
    MtfRandom random = mtf_random_stream(1, "n", 0);
    double m1 = 0, m2 = 0, m4 = 0, neighbours = 0, last = 0;
    for (int64_t i = 0; i < N; i++) {
        double z = mtf_random_normal(&random, i);
        m1 += z;
        m2 += z * z;
        m4 += z * z * z * z;
        neighbours += z * last;
        last = z;
    }
    assert_true(fabs(m1 / N) < 0.015);
    assert_true(fabs(m2 / N - 1) < 0.02);
    assert_true(fabs(m4 / N - 3) < 0.13);
    assert_true(fabs(neighbours / N) < 0.015);
}

/* The standard error of the share at n = 1e5 is at most 1.6e-3. */
TEST(dropout_drops_its_rate) {
    MtfRandom random = mtf_random_stream(5, "drop", 9);
    const double rates[] = { 0, 0.1, 0.5, 0.9 };
    for (int r = 0; r < 4; r++) {
        int dropped = 0;
        for (int64_t i = 0; i < N; i++)
            dropped += !mtf_random_keeps(&random, rates[r], i);
        assert_true(fabs((double)dropped / N - rates[r]) < 7e-3);
        assert_true(rates[r] > 0 || dropped == 0);
    }
}

TEST(initial_values_follow_their_kind) {
    MtfRandom random = mtf_random_initial_stream(1, "w");
    MtfInit constant = { MTF_INIT_CONSTANT, 1.5 }, normal = { MTF_INIT_NORMAL, 2 },
            uniform = { MTF_INIT_UNIFORM, 3 };
    assert_true(mtf_random_initial(&random, &constant, 17) == 1.5);
    assert_true(mtf_random_initial(&random, &normal, 17) == 2 * mtf_random_normal(&random, 17));
    double low = 0, high = 0;
    for (int64_t i = 0; i < 1000; i++) {
        double value = mtf_random_initial(&random, &uniform, i);
        low = fmin(low, value);
        high = fmax(high, value);
    }
    assert_true(low >= -3 && low < -2.9 && high < 3 && high > 2.9);
}

TEST(runs_of_initial_values_are_those_of_their_elements) {
    MtfRandom random = mtf_random_initial_stream(5, "w");
    double values[11];
    for (int kind = MTF_INIT_CONSTANT; kind <= MTF_INIT_UNIFORM; kind++)
        for (int64_t begin = (INT64_C(1) << 34) - 9; begin < (INT64_C(1) << 34) + 9; begin++)
            for (int64_t n = 0; n <= 11; n++) {
                MtfInit init = { (MtfInitKind)kind, 0.5 };
                mtf_random_initial_run(&random, &init, begin, n, values);
                for (int64_t i = 0; i < n; i++)
                    assert_true(values[i] == mtf_random_initial(&random, &init, begin + i));
            }
}
