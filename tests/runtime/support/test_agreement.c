// SPDX-License-Identifier: GPL-3.0-or-later
// ranks: 1 2 3 4
#include "tests/support/cmocka.h"

#include "layouts/base/error.h"
#include "runtime/exchange/communicators.h"
#include "runtime/support/agreement.h"
#include "tests/support/mpi_verdict.h"

#include <string.h>

static MPI_Comm control;
static int rank, ranks;

static void ranks_without_errors_agree(void **state) {
    (void)state;
    GError *error = NULL;
    mtf_expect(mtf_agree(control, NULL, &error), "no agreement");
    mtf_expect(error == NULL, "an error from nowhere");
    assert_true(mtf_verdict());
}

static void the_lowest_failing_ranks_error_reaches_all(void **state) {
    (void)state;
    GError *local = NULL;
    g_autoptr(GError) error = NULL;
    if (rank >= ranks / 2)
        mtf_input_error(&local, "cannot read %d", rank);
    mtf_expect(!mtf_agree(control, local, &error), "agreement in spite of errors");
    g_autofree char *said = ranks / 2 == 0
                                ? g_strdup("cannot read 0")
                                : g_strdup_printf("rank %d: cannot read %d", ranks / 2, ranks / 2);
    mtf_expect(error != NULL && strcmp(error->message, said) == 0, "it says %s",
               error != NULL ? error->message : "nothing");
    mtf_expect(mtf_error_exit_status(error) == 2, "bad input exits with 2");
    assert_true(mtf_verdict());
}

static void a_failure_stays_a_failure(void **state) {
    (void)state;
    GError *local = NULL;
    g_autoptr(GError) error = NULL;
    if (rank == 0)
        mtf_failure(&local, "the disk is full");
    mtf_expect(!mtf_agree(control, local, &error), "agreement in spite of a failure");
    mtf_expect(mtf_error_exit_status(error) == 1, "a failure exits with 1");
    assert_true(mtf_verdict());
}

static void equal_texts_agree_and_others_do_not(void **state) {
    (void)state;
    g_autoptr(GError) error = NULL;
    mtf_expect(mtf_agree_same(control, "0123456789abcdef", "plan", NULL), "equal texts differ");
    bool same = mtf_agree_same(control, rank == ranks - 1 ? "other" : "0123456789", "plan", &error);
    mtf_expect(same == (ranks == 1), "the difference is not noticed");
    mtf_expect(ranks == 1 || strstr(error->message, "the plan here is not the one") != NULL,
               "it does not say so");
    assert_true(mtf_verdict());
}

static void numbers_are_shared(void **state) {
    (void)state;
    mtf_expect(mtf_agree_first(control, rank + 5) == 5, "not rank 0's number");
    mtf_expect(mtf_agree_largest(control, rank) == ranks - 1, "not the largest number");
    double sums[] = { rank, 1 }, maxima[] = { rank, -rank };
    mtf_agree_sums(control, sums, 2);
    mtf_agree_maxima(control, maxima, 2);
    mtf_expect(sums[0] == ranks * (ranks - 1) / 2.0 && sums[1] == ranks, "other sums");
    mtf_expect(maxima[0] == ranks - 1 && maxima[1] == 0, "other maxima");
    assert_true(mtf_verdict());
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_without_errors_agree),
        cmocka_unit_test(the_lowest_failing_ranks_error_reaches_all),
        cmocka_unit_test(a_failure_stays_a_failure),
        cmocka_unit_test(equal_texts_agree_and_others_do_not),
        cmocka_unit_test(numbers_are_shared),
    };
    control = mtf_mpi_tests_begin(&argc, &argv, &rank, &ranks);
    return mtf_mpi_tests_end(control, cmocka_run_group_tests(tests, NULL, NULL));
}
