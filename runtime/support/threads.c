// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/support/threads.h"

#include "runtime/support/mpi_check.h"

#include <dlfcn.h>
#include <glib.h>
#include <sched.h>
#include <string.h>

/* The cores that this rank may use. */
static int own_cores(cpu_set_t *set) {
    CPU_ZERO(set);
    if (sched_getaffinity(0, sizeof *set, set) != 0)
        CPU_SET(0, set);
    return MAX(1, CPU_COUNT(set));
}

/* How many ranks this host has, and the cores that all of them together may use. */
static void share_host(MPI_Comm control, cpu_set_t *set, int *ranks) {
    MPI_Comm host;
    mtf_mpi_require(MPI_Comm_split_type(control, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host),
                    "MPI_Comm_split_type");
    mtf_mpi_require(MPI_Comm_size(host, ranks), "MPI_Comm_size");
    mtf_mpi_require(MPI_Allreduce(MPI_IN_PLACE, set, (int)sizeof *set, MPI_BYTE, MPI_BOR, host),
                    "MPI_Allreduce");
    mtf_mpi_require(MPI_Comm_free(&host), "MPI_Comm_free");
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

/* Calls a function that some library of this process may have. Asked for by name: a weak reference
 * to what only a library's own library has, as oneDNN has OpenMP, is left empty by the linker. */
static void set_threads(const char *function, int threads) {
    void *found = dlsym(RTLD_DEFAULT, function);
    void (*set)(int);
    if (found == NULL)
        return;
    memcpy(&set, &found, sizeof set);
    set(threads);
}

MtfThreads mtf_threads_set(MPI_Comm control) {
    MtfThreads threads = { .each = asked_threads() };
    cpu_set_t set;
    int own = own_cores(&set);
    share_host(control, &set, &threads.ranks);
    threads.cores = MAX(1, CPU_COUNT(&set));
    threads.asked = threads.each > 0;
    if (!threads.asked)
        threads.each = MAX(1, MIN(own, threads.cores / threads.ranks));
    set_threads("openblas_set_num_threads", threads.each);
    set_threads("omp_set_num_threads", threads.each);
    return threads;
}

char *mtf_threads_format(const MtfThreads *threads) {
    int ranks = threads->ranks, cores = threads->cores, each = threads->each;
    bool crowded = ranks * each > cores;
    return g_strdup_printf("%d rank%s of this host on %d core%s, %d BLAS thread%s each%s%s", ranks,
                           ranks == 1 ? "" : "s", cores, cores == 1 ? "" : "s", each,
                           each == 1 ? "" : "s", threads->asked ? " (as the environment asks)" : "",
                           crowded ? ": warning: more threads than cores slow each other down"
                                   : "");
}
