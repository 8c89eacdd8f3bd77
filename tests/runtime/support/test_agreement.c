// SPDX-License-Identifier: GPL-3.0-or-later
// ranks: 1 2 3 4
#include "tests/support/cmocka.h"

#include "layouts/base/error.h"
#include "runtime/support/agreement.h"
#include "tests/support/mpi_verdict.h"

#include <string.h>

static MPI_Comm control;
static int rank, ranks;

TEST(ranks_without_errors_agree) {
    GError *error = NULL;
    mtf_expect(mtf_agree(control, NULL, &error), "no agreement");
    mtf_expect(error == NULL, "an error from nowhere");
    assert_true(mtf_verdict());
}

TEST(the_lowest_failing_ranks_error_reaches_all) {
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

TEST(a_failure_stays_a_failure) {
    GError *local = NULL;
    g_autoptr(GError) error = NULL;
    if (rank == 0)
        mtf_failure(&local, "the disk is full");
    mtf_expect(!mtf_agree(control, local, &error), "agreement in spite of a failure");
    mtf_expect(mtf_error_exit_status(error) == 1, "a failure exits with 1");
    assert_true(mtf_verdict());
}

/* The second half of each comes after the first of the next: three are under way, of which the second fails. */
TEST(halves_may_lie_apart) {
    MtfAgreement steps[3];
    g_autoptr(GError) error = NULL;
    for (int i = 0; i < 3; i++) {
        GError *local = NULL;
        if (i == 1 && rank == ranks - 1)
            mtf_failure(&local, "step %d", i);
        mtf_agreement_begin(&steps[i], control, local, i == 0 ? rank : 0);
        mtf_agreement_share(&steps[i], 10 * i + rank, ranks - 1);
    }
    int asked = -1;
    mtf_expect(mtf_agreement_end(&steps[0], &asked, NULL), "the first failed");
    mtf_expect(asked == ranks - 1, "not the most that was asked");
    mtf_expect(steps[0].value == ranks - 1, "not the last rank's value");
    mtf_expect(!mtf_agreement_end(&steps[1], &asked, &error), "the second did not fail");
    mtf_expect(error != NULL && strstr(error->message, "step 1") != NULL, "it does not say which");
    mtf_expect(asked == 0, "a failure asks for something");
    mtf_agreement_drop(&steps[2]);
    mtf_expect(mtf_agree(control, NULL, NULL), "nothing can follow");
    assert_true(mtf_verdict());
}

TEST(a_value_without_a_root_is_ones_own) {
    MtfAgreement own;
    int asked;
    mtf_agreement_begin(&own, control, NULL, 0);
    mtf_agreement_share(&own, rank, -1);
    mtf_expect(mtf_agreement_end(&own, &asked, NULL) && own.value == rank, "another's value");
    assert_true(mtf_verdict());
}

TEST(equal_texts_agree_and_others_do_not) {
    g_autoptr(GError) error = NULL;
    mtf_expect(mtf_agree_same(control, "0123456789abcdef", "plan", NULL), "equal texts differ");
    bool same = mtf_agree_same(control, rank == ranks - 1 ? "other" : "0123456789", "plan", &error);
    mtf_expect(same == (ranks == 1), "the difference is not noticed");
    mtf_expect(ranks == 1 || strstr(error->message, "the plan here is not the one") != NULL,
               "it does not say so");
    assert_true(mtf_verdict());
}

TEST(numbers_are_shared) {
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
    control = mtf_mpi_tests_begin(&argc, &argv, &rank, &ranks);
    return mtf_mpi_tests_end(control, mtf_tests_run(NULL, NULL));
}
