// SPDX-License-Identifier: GPL-3.0-or-later
/* The command line of meshtf-run:
 *
 *     mpirun -n N meshtf-run PLAN [--data FILE] [--steps K] [--seed N] [--metrics FILE]
 *                            [--dry-run] [--verify] [--only-mpi] */
#ifndef MTF_RUN_OPTIONS_H
#define MTF_RUN_OPTIONS_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define MTF_STANDARD_STEPS 100

typedef struct {
    char *plan;
    char *data;    /* NULL = none given */
    char *metrics; /* NULL = none */
    int64_t steps; /* at least 1 */
    int64_t seed;
    gboolean dry_run, verify, only_mpi;
} MtfRunOptions;

/* Reads the command line; --help prints and ends the process. Fails (bad input) on anything
 * unknown. */
bool mtf_run_options_parse(MtfRunOptions *options, int argc, char **argv, GError **error);
void mtf_run_options_clear(MtfRunOptions *options);

/* Whether the command line asks for --help or --version, which need no MPI. */
bool mtf_run_options_only_ask(int argc, char **argv);

#endif
