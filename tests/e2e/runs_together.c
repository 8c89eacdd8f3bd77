// SPDX-License-Identifier: GPL-3.0-or-later
/* mpirun -n N runs_together FILE: what `mpirun -n N meshtf-run ARGUMENT…` does, for each line of FILE in turn,
 * in one launch: to start four ranks takes three times as long as what a tiny model asks of them. A line is a
 * name and the arguments, with tabs between; NAME.out, NAME.err and NAME.status are what the run left. */
#define main meshtf_run_main
#include "runtime/session/meshtf_run.c"
#undef main

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static void redirect(const char *name, const char *ending, FILE *stream) {
    g_autofree char *path = g_strconcat(name, ending, NULL);
    fflush(stream);
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (file < 0 || dup2(file, fileno(stream)) < 0)
        g_error("%s: %s", path, g_strerror(errno));
    close(file);
}

static void run_line(MPI_Comm world, const char *line, int rank) {
    g_auto(GStrv) arguments = g_strsplit(line, "\t", -1);
    g_autofree char *name = g_strdup(arguments[0]);
    if (rank == 0) {
        redirect(name, ".out", stdout);
        redirect(name, ".err", stderr);
    }
    MPI_Comm control = mtf_control_new(world);
    int status = start(control, (int)g_strv_length(arguments), arguments);
    mtf_mpi_require(MPI_Comm_free(&control), "MPI_Comm_free");
    g_autofree char *file = g_strconcat(name, ".status", NULL);
    g_autofree char *text = g_strdup_printf("%d\n", status);
    if (rank == 0 && !g_file_set_contents(file, text, -1, NULL))
        g_error("%s cannot be written", file);
}

int main(int argc, char **argv) {
    g_autofree char *text = NULL;
    int rank;
    g_set_prgname("meshtf-run");
    mtf_kernel_libraries_restart(argv);
    mtf_mpi_require(MPI_Init(&argc, &argv), "MPI_Init");
    mtf_mpi_require(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "MPI_Comm_rank");
    if (argc != 2 || !g_file_get_contents(argv[1], &text, NULL, NULL))
        g_error("a file of runs is expected");
    mtf_mpi_require(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN),
                    "MPI_Comm_set_errhandler");
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (char **line = lines; *line != NULL; line++)
        if (**line != '\0')
            run_line(MPI_COMM_WORLD, *line, rank);
    mtf_mpi_require(MPI_Finalize(), "MPI_Finalize");
    return 0;
}
