// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/judge/fitted_machines.h"
#include "analyzer/judge/sweep_file.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A table of GPT runs on 8 to 64 A100, tp 1 or 8, whose measured seconds are those of `machine`. */
static char *table_of(const MtfMachine *machine) {
    GString *text = g_string_new(
        "id\tsource\thardware\tdevices\tdevice_topology\tmodel\tlayers\td_model\theads\td_ff\tvocab\t"
        "seq_len\tglobal_batch\tmicro_batch\ttp\tpp\tdp\tsharding\trecompute\tprecision\tsoftware\t"
        "measured_quantity\tmeasured_value\n");
    g_autoptr(MtfSoftware) software = mtf_software_load("megatron-2021", NULL);
    for (int i = 0; i < 12; i++) {
        int tp = i % 2 == 0 ? 1 : 8, dp = (i % 3 + 1) * 8 / tp, width = 2048 << i % 3;
        MtfTrainingRun run = { .batch = 64, .micro = 2, .pp = 1, .vp = 1, .cp = 1, .ep = 1 };
        run.model = (MtfModelSizes){ .layers = 6, .heads = 16, .kv_heads = 16, .vocab = 51200 };
        run.model.width = width;
        run.model.head_width = width / 16;
        run.model.inner = 4 * width;
        run.model.length = 2048;
        run.model.capacity = 1;
        run.tp = tp;
        run.dp = dp;
        run.devices = tp * dp;
        run.slices = 1;
        run.batch = 2 * dp * 4;
        MtfRunDevice device;
        assert_true(mtf_run_device_init(&device, &run, machine, software, NULL));
        g_string_append_printf(text,
                               "r%d\ts%d\ta100\t%d\t\tm%d\t6\t%d\t16\t%d\t51200\t2048\t%d\t2\t%d\t1"
                               "\t%d\tddp\tnone\tfp16\tmegatron-lm\ts_per_step\t%.9g\n",
                               i, i % 3, tp * dp, width, width, 4 * width, 2 * dp * 4, tp, dp,
                               mtf_run_seconds(&device).step);
    }
    return g_string_free(text, FALSE);
}

/* The verdicts on the runs of such a table, which is `*table` and must outlive them. */
static GPtrArray *verdicts_of(const MtfMachine *machine, MtfRunTable **table) {
    g_autofree char *text = table_of(machine);
    char path[] = "/tmp/mtf_fit_XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    assert_true(g_file_set_contents(path, text, -1, NULL));
    *table = mtf_run_table_load(path, mtf_run_columns, NULL);
    remove(path);
    assert_non_null(*table);
    MtfJudgeOptions options = { .machine = NULL };
    GPtrArray *verdicts = mtf_judge(*table, &options, NULL);
    assert_non_null(verdicts);
    for (guint i = 0; i < verdicts->len; i++) {
        MtfVerdict *verdict = verdicts->pdata[i];
        verdict->step =
            verdict->seconds.step; /* runs as the closed form has them, which is fitted */
    }
    return verdicts;
}

/* Runs that a machine with known factors would have: the fit finds them again, as far as the priors
 * let it, and predicts sources that were left out. */
TEST(a_fit_finds_what_made_the_runs) {
    g_autoptr(MtfMachine) library = mtf_machine_load("a100", NULL);
    MtfMachine made = *library;
    MtfFit truth = { .factor = { 0.9, 1, 1.1, 0.8, 1, 1 } };
    mtf_fit_apply(&truth, &made);
    g_autoptr(MtfRunTable) table = NULL;
    g_autoptr(GPtrArray) verdicts = verdicts_of(&made, &table);
    MtfFitRows rows = { .machine = library, .verdicts = verdicts };
    MtfFit fit = mtf_fit(&rows);
    assert_int_equal(fit.rows, 12);
    assert_true(fit.before > 0.05);
    assert_true(fit.after < 0.01);
    assert_true(mtf_fit_cross(&rows) < 0.02);
    assert_true(fit.factor[MTF_FIT_PRODUCTS] > 0.88 && fit.factor[MTF_FIT_PRODUCTS] < 0.96);
    assert_true(fit.factor[MTF_FIT_LINKS] > 0.7 && fit.factor[MTF_FIT_LINKS] < 0.97);
    assert_true(fit.determined[MTF_FIT_PRODUCTS]);
}

/* One of twelve runs was disturbed: it took 1.6 times as long as its machine takes. */
TEST(a_run_unlike_the_others_is_named) {
    g_autoptr(MtfMachine) library = mtf_machine_load("a100", NULL);
    g_autoptr(MtfRunTable) table = NULL;
    g_autoptr(GPtrArray) verdicts = verdicts_of(library, &table);
    MtfFitRows rows = { .machine = library, .verdicts = verdicts };
    MtfFit fit = mtf_fit(&rows);
    g_autoptr(GArray) none = mtf_fit_strays(&rows, &fit);
    assert_int_equal(none->len, 0);
    MtfRunRow *disturbed = ((MtfVerdict *)verdicts->pdata[7])->row;
    disturbed->measured *= 1.6;
    fit = mtf_fit(&rows);
    g_autoptr(GArray) strays = mtf_fit_strays(&rows, &fit);
    assert_int_equal(strays->len, 1);
    assert_string_equal(g_array_index(strays, MtfFitStray, 0).id, disturbed->id);
    assert_true(g_array_index(strays, MtfFitStray, 0).share > 1.4 &&
                g_array_index(strays, MtfFitStray, 0).share < 1.65);
}

/* Nothing leaves a node's network idle more than runs that never use it, and fused attention is not in
 * this profile: both stay, and are said to be open. */
TEST(what_runs_do_not_determine_stays) {
    g_autoptr(MtfMachine) library = mtf_machine_load("a100", NULL);
    g_autoptr(MtfRunTable) table = NULL;
    g_autoptr(GPtrArray) verdicts = verdicts_of(library, &table);
    MtfFitRows rows = { .machine = library, .verdicts = verdicts };
    MtfFit fit = mtf_fit(&rows);
    assert_false(fit.determined[MTF_FIT_ATTENTION]);
    assert_true(fabs(fit.factor[MTF_FIT_ATTENTION] - 1) < 1e-9);
    assert_true(fit.after < 1e-6);
}

/* No share of what the hardware could do is fitted above 1: of runs over a network three times as fast
 * the fit takes the rate of its links, and the rest from what else makes them shorter, each at most so. */
TEST(a_fit_leaves_links_no_faster_than_they_are) {
    g_autoptr(MtfMachine) library = mtf_machine_load("a100", NULL), fitted = NULL;
    MtfMachine made = *library;
    made.network.axis[0].bandwidth *= 3;
    g_autoptr(MtfRunTable) table = NULL;
    g_autoptr(GPtrArray) verdicts = verdicts_of(&made, &table);
    MtfFitRows rows = { .machine = library, .verdicts = verdicts };
    MtfFit fit = mtf_fit(&rows);
    fitted = mtf_machine_load("a100", NULL);
    mtf_fit_apply(&fit, fitted);
    assert_true(fabs(fitted->derate.links * fitted->derate.network - 1) < 1e-9);
    assert_true(fit.after < 0.6 * fit.before);
    assert_true(fit.factor[MTF_FIT_PRODUCTS] < 1.1);
}

/* A row is predicted by a machine that its source did not shape. */
TEST(a_row_may_be_kept_from_its_fit) {
    g_autoptr(MtfMachine) library = mtf_machine_load("a100", NULL);
    g_autoptr(MtfRunTable) table = NULL;
    g_autoptr(GPtrArray) verdicts = verdicts_of(library, &table);
    g_autoptr(MtfFittedMachines) all = mtf_fitted_machines_new(verdicts, MTF_LEAVE_NOTHING);
    g_autoptr(MtfFittedMachines) apart = mtf_fitted_machines_new(verdicts, MTF_LEAVE_SOURCE);
    const MtfRunRow *first = ((const MtfVerdict *)verdicts->pdata[0])->row;
    const MtfRunRow *second = ((const MtfVerdict *)verdicts->pdata[1])->row;
    assert_ptr_equal(mtf_fitted_machine(all, first, library),
                     mtf_fitted_machine(all, second, library));
    assert_ptr_not_equal(mtf_fitted_machine(apart, first, library),
                         mtf_fitted_machine(apart, second, library));
}

/* nccl-tests and plain pairs say the same. */
TEST(sweeps_of_collectives_become_tables) {
    static const char *const texts[] = {
        "bytes seconds\n1048576 9.2e-05\n1073741824 0.0082\n",
        "# nThread 1\n1048576 262144 float sum -1 92.0 11.4 19.9 0\n"
        "1073741824 268435456 float sum -1 8200 130.9 229.1 0\n",
    };
    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
        char path[] = "/tmp/mtf_sweep_XXXXXX";
        int file = mkstemp(path);
        close(file);
        assert_true(g_file_set_contents(path, texts[i], -1, NULL));
        g_autoptr(MtfMachine) machine = mtf_machine_load("a100", NULL);
        g_autofree char *argument = g_strdup_printf("allreduce/8=%s", path);
        int rows = 0;
        assert_true(mtf_sweep_add_collective(argument, machine, &rows, NULL));
        assert_int_equal(rows, 2);
        const MtfMachineCurve *curve = mtf_machine_curve(machine, "allreduce/8");
        assert_int_equal(curve->points, 2);
        assert_true(fabs(curve->y[1] - 0.0082) < 1e-9 && fabs(curve->y[0] - 92e-6) < 1e-12);
        remove(path);
    }
}
