// SPDX-License-Identifier: GPL-3.0-or-later
/* How the transfers of a pipeline's plan go, in its file and in its digest. */
#include "tests/support/cmocka.h"

#include "analyzer/planner/planning.h"
#include "layouts/plan_file/pipeline_transfers.h"
#include "tests/support/cases/staged_plan.h"

#include <string.h>
#include <unistd.h>

/* The library's mlp in two stages of one device. */
static MtfPipelinePlan *two_stages(void) {
    g_autoptr(MtfMachine) machine = mtf_planning_machine("cpu-host", NULL, NULL);
    return mtf_test_two_stages(machine, (MtfTestStages){ 0 });
}

/* Writes the plan, replaces `old` by `new` in it, and reads it again. */
static MtfPipelinePlan *read_again(const MtfPipelinePlan *plan, const char *old, const char *new,
                                   GError **error) {
    g_autofree char *path = NULL, *text = NULL;
    int file = g_file_open_tmp("transfers-XXXXXX.json", &path, NULL);
    assert_true(file >= 0 && close(file) == 0);
    assert_true(mtf_pipeline_plan_save(plan, path, NULL));
    assert_true(g_file_get_contents(path, &text, NULL, NULL));
    if (old != NULL) {
        assert_non_null(strstr(text, old));
        g_auto(GStrv) parts = g_strsplit(text, old, 2);
        g_autofree char *changed = g_strjoinv(new, parts);
        assert_true(g_file_set_contents(path, changed, -1, NULL));
    }
    MtfPipelinePlan *again = mtf_pipeline_plan_load(path, error);
    assert_int_equal(unlink(path), 0);
    return again;
}

TEST(how_a_transfer_goes_is_in_the_plan_and_its_digest) {
    g_autoptr(MtfPipelinePlan) plan = two_stages();
    assert_true(mtf_pipeline_transfers(plan) >= 2);
    assert_null(mtf_pipeline_transfers_to_json(plan));
    g_autofree char *direct = mtf_pipeline_plan_digest(plan);
    mtf_pipeline_transfer(plan, 1)->way = MTF_TRANSFER_MPI;
    g_autofree char *digest = mtf_pipeline_plan_digest(plan);
    assert_string_not_equal(digest, direct);

    g_autoptr(MtfPipelinePlan) again = read_again(plan, NULL, NULL, NULL);
    assert_non_null(again);
    assert_int_equal(mtf_pipeline_transfer(again, 0)->way, MTF_TRANSFER_DIRECT);
    assert_int_equal(mtf_pipeline_transfer(again, 1)->way, MTF_TRANSFER_MPI);
    g_autofree char *same = mtf_pipeline_plan_digest(again);
    assert_string_equal(same, digest);
}

/* As the writer spreads it over lines. */
#define WRITTEN "\"mpi\": [\n      1\n    ]"

static void check_refused(const MtfPipelinePlan *plan, const char *new, const char *sentence) {
    g_autoptr(GError) error = NULL;
    assert_null(read_again(plan, WRITTEN, new, &error));
    assert_non_null(error);
    if (strstr(error->message, sentence) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", error->message, sentence);
}

TEST(a_wrong_list_is_refused) {
    g_autoptr(MtfPipelinePlan) plan = two_stages();
    mtf_pipeline_transfer(plan, 1)->way = MTF_TRANSFER_MPI;
    check_refused(plan, "\"mpi\": [1, 1]", "stands here twice");
    check_refused(plan, "\"mpi\": [1000]", "/transfers/mpi/0: 1000 is not between");
    check_refused(plan, "\"ring\": [1]", "ring");
}
