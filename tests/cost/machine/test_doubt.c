// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "cost/machine/doubt.h"

#include <math.h>
#include <string.h>

static MtfMachine *machine_of(const char *name, const char *software) {
    MtfMachine *machine = mtf_machine_load(name, NULL);
    assert_non_null(machine);
    assert_true(mtf_machine_set_software(machine, software, NULL));
    return machine;
}

TEST(the_nearest_runs_are_those_of_machine_and_software) {
    g_autoptr(MtfMachine) machine = machine_of("a100", "megatron-2021");
    MtfDoubt doubt;
    assert_true(mtf_doubt_nearest(machine, MTF_JUDGED_DENSE, &doubt));
    assert_true(doubt.machine && doubt.software);
    assert_int_equal(doubt.judged.runs, 22);
    g_autofree char *text = mtf_doubt_format(machine, MTF_JUDGED_DENSE);
    assert_string_equal(text, "runs of this kind were predicted within 4 % on 22 published runs");
}

TEST(models_with_experts_have_runs_of_their_own) {
    g_autoptr(MtfMachine) machine = machine_of("h100", "megatron-core");
    MtfDoubt dense, routed;
    assert_true(mtf_doubt_nearest(machine, MTF_JUDGED_DENSE, &dense) &&
                dense.kind == MTF_JUDGED_DENSE);
    assert_true(mtf_doubt_nearest(machine, MTF_JUDGED_EXPERTS, &routed) &&
                routed.kind == MTF_JUDGED_EXPERTS);
    assert_true(routed.judged.runs < dense.judged.runs && routed.judged.error > dense.judged.error);
    g_autofree char *text = mtf_doubt_format(machine, MTF_JUDGED_EXPERTS);
    assert_string_equal(
        text, "runs of models with experts were predicted within 10 % on 24 published runs");
    g_autoptr(MtfMachine) near = machine_of("h200", "megatron-core");
    g_autofree char *elsewhere = mtf_doubt_format(near, MTF_JUDGED_EXPERTS);
    assert_non_null(strstr(elsewhere, "of models with experts on other machines"));
    /* Where none were judged, those of dense models are the nearest. */
    g_autoptr(MtfMachine) other = machine_of("a100", "megatron-2021");
    assert_true(mtf_doubt_nearest(other, MTF_JUDGED_EXPERTS, &routed) &&
                routed.kind == MTF_JUDGED_DENSE);
    g_autofree char *of_dense = mtf_doubt_format(other, MTF_JUDGED_EXPERTS);
    assert_string_equal(of_dense,
                        "runs of dense models were predicted within 4 % on 22 published runs");
}

TEST(else_those_of_the_machine) {
    g_autoptr(MtfMachine) machine = machine_of("a100", "alpa"); /* nothing of alpa was judged */
    MtfDoubt doubt;
    assert_true(mtf_doubt_nearest(machine, MTF_JUDGED_DENSE, &doubt));
    assert_true(doubt.machine && !doubt.software);
    assert_int_equal(doubt.judged.runs, machine->judged.runs);
}

TEST(else_those_of_the_software_elsewhere) {
    g_autoptr(MtfMachine) machine = machine_of("gb200", "megatron-core");
    machine->judged.runs = 0;
    MtfDoubt doubt;
    assert_true(mtf_doubt_nearest(machine, MTF_JUDGED_DENSE, &doubt));
    assert_true(!doubt.machine && doubt.software);
    g_autofree char *text = mtf_doubt_format(machine, MTF_JUDGED_DENSE);
    assert_non_null(strstr(text, "of megatron-core on other machines"));
}

/* What training was predicted within says nothing of prompts and tokens. */
TEST(inference_has_runs_of_its_own_or_none) {
    g_autoptr(MtfMachine) machine = machine_of("a100", "meshtf");
    MtfDoubt doubt;
    assert_true(mtf_doubt_nearest(machine, MTF_JUDGED_INFERENCE, &doubt));
    assert_int_equal(doubt.judged.runs, machine->judged_inference.runs);
    assert_true(doubt.judged.runs != machine->judged.runs);
    g_autoptr(MtfMachine) other = machine_of("tpu-v5e", "meshtf");
    g_autofree char *text = mtf_doubt_format(other, MTF_JUDGED_INFERENCE);
    assert_non_null(strstr(text, "no measured run of inference"));
}

TEST(a_measured_machine_has_no_doubt_and_an_unjudged_one_says_so) {
    g_autoptr(MtfMachine) machine = machine_of("cpu-cluster", "meshtf");
    g_autofree char *text = mtf_doubt_format(machine, MTF_JUDGED_DENSE);
    assert_non_null(strstr(text, "no measured run"));
    mtf_machine_add_curve(machine, "allreduce/2", 1, (double[]){ 8 }, (double[]){ 1e-6 });
    assert_null(mtf_doubt_format(machine, MTF_JUDGED_DENSE));
    assert_null(mtf_doubt_to_json(machine, MTF_JUDGED_DENSE));
}

TEST(assumptions_are_those_that_the_files_call_so) {
    g_autoptr(MtfMachine) machine = machine_of("a100", "megatron-core");
    g_autoptr(GPtrArray) assumed = mtf_doubt_assumptions(machine);
    int of_machine = 0, of_software = 0;
    for (guint i = 0; i < assumed->len; i++) {
        of_machine += g_str_has_prefix(assumed->pdata[i], "a100: ");
        of_software += g_str_has_prefix(assumed->pdata[i], "megatron-core: ");
    }
    assert_true(of_machine >= 5 && of_software >= 3);
    assert_int_equal(of_machine + of_software, (int)assumed->len);
}
