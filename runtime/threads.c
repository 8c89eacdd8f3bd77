// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/threads.h"

#include "runtime/mpi_check.h"

#include <glib.h>
#include <sched.h>

/* OpenBLAS's own; other libraries lack it. */
extern void openblas_set_num_threads(int threads) __attribute__((weak));

static int allowed_cores(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1;
    return MAX(1, CPU_COUNT(&set));
}

static int ranks_of_this_host(MPI_Comm control) {
    MPI_Comm host;
    int ranks;
    mtf_mpi_require(MPI_Comm_split_type(control, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host),
                    "MPI_Comm_split_type");
    mtf_mpi_require(MPI_Comm_size(host, &ranks), "MPI_Comm_size");
    mtf_mpi_require(MPI_Comm_free(&host), "MPI_Comm_free");
    return ranks;
}

/* The number that the environment asks for, or 0. */
static int asked_threads(void) {
    static const char *const names[] = { "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS" };
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        guint64 number;
        const char *text = g_getenv(names[i]);
        if (text != NULL && g_ascii_string_to_unsigned(text, 10, 1, 1024, &number, NULL))
            return (int)number;
    }
    return 0;
}

char *mtf_threads_set(MPI_Comm control) {
    int cores = allowed_cores();
    int ranks = ranks_of_this_host(control);
    int asked = asked_threads();
    int threads = asked > 0 ? asked : MAX(1, cores / ranks);
    if (openblas_set_num_threads != NULL)
        openblas_set_num_threads(threads);
    return g_strdup_printf(
        "%d rank%s of this host on %d core%s, %d BLAS thread%s each%s%s", ranks,
        ranks == 1 ? "" : "s", cores, cores == 1 ? "" : "s", threads, threads == 1 ? "" : "s",
        asked > 0 ? " (as the environment asks)" : "",
        ranks * threads > cores && (ranks > 1 || threads > 1) ? "; they take turns" : "");
}
