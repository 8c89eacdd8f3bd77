// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/calibrate/calibrate.h"

#include "cost/machine/curve_name.h"
#include "cost/machine/samples.h"
#include "layouts/base/json_writer.h"
#include "runtime/calibrate/calibrate_collectives.h"
#include "runtime/calibrate/calibrate_kernels.h"
#include "runtime/calibrate/calibrate_transfers.h"
#include "runtime/support/agreement.h"
#include "runtime/support/mpi_check.h"
#include "runtime/support/threads.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

/* What kernels compute in or store. */
static const MtfDtype dtypes[] = { MTF_F32, MTF_F64, MTF_BF16 };

typedef struct {
    MPI_Comm control;
    int rank, ranks;
    int64_t rounds; /* over all kernels */
    MtfThreads threads;
    MtfSamples *samples;
} Calibration;

static void say(const Calibration *calibration, const char *what) {
    if (calibration->rank == 0)
        fprintf(stderr, "meshtf-run: %s\n", what);
}

/* ---- Measuring ----------------------------------------------------------------------------- */

static bool measure_dtype(Calibration *calibration, MtfDtype dtype, GError **error) {
    GError *local = NULL;
    mtf_calibrate_copies(calibration->samples, dtype);
    (void)(mtf_calibrate_operations(calibration->samples, dtype, &local) &&
           mtf_calibrate_products(calibration->samples, dtype, &local));
    return mtf_agree(calibration->control, local, error);
}

/* All kernels are measured in several rounds, so that what disturbs the machine for a second does
 * not spoil all samples of a kernel. */
static bool measure(Calibration *calibration, GError **error) {
    for (int64_t round = 1; round <= calibration->rounds; round++) {
        g_autofree char *text = g_strdup_printf("measuring kernels, round %" PRId64 " of %" PRId64,
                                                round, calibration->rounds);
        say(calibration, text);
        for (size_t i = 0; i < G_N_ELEMENTS(dtypes); i++)
            if (!measure_dtype(calibration, dtypes[i], error))
                return false;
    }
    if (calibration->ranks > 1)
        say(calibration, "measuring collectives");
    return mtf_calibrate_collectives(calibration->control, calibration->samples, error) &&
           mtf_calibrate_transfers(calibration->control, calibration->samples, error);
}

/* Every sample becomes its mean over the ranks. */
static void average(Calibration *calibration) {
    GArray *list = calibration->samples->list;
    g_autofree double *seconds = g_new(double, list->len);
    for (guint i = 0; i < list->len; i++)
        seconds[i] = g_array_index(list, MtfSample, i).seconds;
    mtf_agree_sums(calibration->control, seconds, list->len);
    for (guint i = 0; i < list->len; i++)
        g_array_index(list, MtfSample, i).seconds = seconds[i] / calibration->ranks;
}

/* Stretches what was timed by processor time by the ranks that share a core. */
static void share_cores(Calibration *calibration) {
    double share = fmax(1, (double)calibration->threads.ranks / calibration->threads.cores);
    GArray *list = calibration->samples->list;
    for (guint i = 0; i < list->len; i++) {
        MtfSample *sample = &g_array_index(list, MtfSample, i);
        MtfCurveName name;
        mtf_curve_name_parse(sample->name, &name);
        if (name.kind != MTF_CURVE_COLLECTIVE)
            sample->seconds *= share;
    }
}

/* ---- What the samples say of the whole machine --------------------------------------------- */

/* The best flop/s of all products of a dtype. */
static double best_rate(const MtfSamples *samples, MtfDtype dtype) {
    double best = 0;
    for (guint i = 0; i < samples->list->len; i++) {
        const MtfSample *sample = &g_array_index(samples->list, MtfSample, i);
        MtfCurveName name;
        mtf_curve_name_parse(sample->name, &name);
        if (name.kind != MTF_CURVE_PRODUCT || name.dtype != dtype || sample->seconds <= 0)
            continue;
        best = fmax(best, 2 * (double)name.m * (double)name.n * sample->x / sample->seconds);
    }
    return best;
}

/* The last sample of a table: that of the largest size; NULL when there is none. */
static const MtfSample *largest_sample(const MtfSamples *samples, const char *table) {
    const MtfSample *found = NULL;
    for (guint i = 0; i < samples->list->len; i++) {
        const MtfSample *sample = &g_array_index(samples->list, MtfSample, i);
        if (strcmp(sample->name, table) == 0 && (found == NULL || sample->x > found->x))
            found = sample;
    }
    return found;
}

static double first_seconds(const MtfSamples *samples, const char *table) {
    for (guint i = 0; i < samples->list->len; i++)
        if (strcmp(g_array_index(samples->list, MtfSample, i).name, table) == 0)
            return g_array_index(samples->list, MtfSample, i).seconds;
    return 0;
}

/* One switch of any number of ranks, for groups that were not measured. An allgather of V bytes
 * over n ranks takes (n-1)/n V / B, and a small one the latency of its rounds. */
static void describe_network(const Calibration *calibration, double memory_bandwidth,
                             MtfNetwork *network) {
    *network = (MtfNetwork){ .switched = true, .axes = 1 };
    network->axis[0] = (MtfNetworkAxis){ .bandwidth = memory_bandwidth / 2, .latency = 1e-6 };
    g_autofree char *table = g_strdup_printf("allgather/%d", calibration->ranks);
    const MtfSample *large = largest_sample(calibration->samples, table);
    if (large == NULL)
        return;
    double n = calibration->ranks;
    network->axis[0].bandwidth = (n - 1) / n * large->x / large->seconds;
    network->axis[0].latency = first_seconds(calibration->samples, table) / ceil(log2(n));
}

/* ---- Writing ------------------------------------------------------------------------------- */

static int64_t memory_of_rank(const Calibration *calibration) {
    int64_t pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    return pages * page_bytes / calibration->threads.ranks;
}

static cJSON *describe_sources(const Calibration *calibration) {
    struct utsname host = { 0 };
    uname(&host);
    cJSON *sources = cJSON_CreateObject();
    g_autofree char *threads = mtf_threads_format(&calibration->threads);
    g_autofree char *device = g_strdup_printf(
        "meshtf-run --calibrate on %s (%s): %s; flops is the best rate of a product, "
        "memory_bandwidth that of a large copy, host_bandwidth half of it, memory_bytes the host's "
        "over its ranks",
        host.nodename, host.machine, threads);
    cJSON_AddStringToObject(sources, "device", device);
    cJSON_AddStringToObject(
        sources, "levels",
        calibration->ranks > 1
            ? "from the measured allgather over all ranks; groups of other sizes "
              "than those measured take what the formulas say of it, times what "
              "the nearest measured sizes take of theirs"
            : "one rank alone has no network: half of memory bandwidth and 1 us "
              "are assumed");
    g_autofree char *curves = g_strdup_printf(
        "mean over ranks, all at once; kernels: processor time, the median of a round's calls, the "
        "first quarter of %" PRId64
        " rounds; collectives: elapsed time, the first quarter of calls",
        calibration->rounds);
    cJSON_AddStringToObject(sources, "curves", curves);
    if (calibration->threads.ranks > calibration->threads.cores)
        cJSON_AddStringToObject(sources, "shared cores",
                                "more ranks than cores: kernels are priced as if each rank had "
                                "its share of a core");
    return sources;
}

static char *machine_name(const char *path) {
    g_autofree char *base = g_path_get_basename(path);
    if (strcmp(path, "-") == 0)
        return g_strdup("calibrated");
    char *dot = strchr(base, '.');
    return dot != NULL && dot != base ? g_strndup(base, (gsize)(dot - base)) : g_strdup(base);
}

static MtfMachine *describe(const Calibration *calibration, const char *path) {
    MtfMachine *machine = mtf_machine_new();
    machine->name = machine_name(path);
    machine->sources = describe_sources(calibration);
    const MtfSample *copy = largest_sample(calibration->samples, "move/f32");
    machine->memory_bandwidth = copy->x / copy->seconds;
    /* Here the host's memory is the same: a copy there reads and writes its bytes, as this one. */
    machine->host_bandwidth = machine->memory_bandwidth / 2;
    machine->memory_bytes = memory_of_rank(calibration);
    describe_network(calibration, machine->memory_bandwidth, &machine->network);
    for (size_t i = 0; i < G_N_ELEMENTS(dtypes); i++) {
        MtfDtypeFigure *rate = &machine->rate[machine->rates++];
        g_strlcpy(rate->dtype, mtf_dtype_short_name(dtypes[i]), sizeof rate->dtype);
        rate->value = best_rate(calibration->samples, dtypes[i]);
    }
    mtf_samples_fit(calibration->samples, machine);
    return machine;
}

static bool write_machine(const Calibration *calibration, const char *path, GError **error) {
    g_autoptr(MtfMachine) machine = describe(calibration, path);
    return mtf_json_save(mtf_machine_to_json(machine), path, error);
}

bool mtf_calibrate(MPI_Comm control, int64_t rounds, const char *path, GError **error) {
    Calibration calibration = { .control = control,
                                .rounds = rounds,
                                .samples = mtf_samples_new() };
    mtf_mpi_require(MPI_Comm_rank(control, &calibration.rank), "MPI_Comm_rank");
    mtf_mpi_require(MPI_Comm_size(control, &calibration.ranks), "MPI_Comm_size");
    calibration.threads = mtf_threads_set(control);
    g_autofree char *threads = mtf_threads_format(&calibration.threads);
    say(&calibration, threads);
    GError *local = NULL;
    bool measured = measure(&calibration, error);
    if (measured) {
        average(&calibration);
        share_cores(&calibration);
        if (calibration.rank == 0)
            write_machine(&calibration, path, &local);
        measured = mtf_agree(control, local, error);
    }
    mtf_samples_free(calibration.samples);
    return measured;
}
