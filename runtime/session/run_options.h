// SPDX-License-Identifier: GPL-3.0-or-later
/* The command line of meshtf-run:
 *
 *     mpirun -n N meshtf-run PLAN [--data FILE…] [--steps K] [--seed N] [--metrics FILE]
 *                            [--checkpoint DIR] [--checkpoint-every K] [--keep N] [--resume [--new-data]]
 *                            [--held-out SHARE|FILE…] [--eval-every K] [--eval-batches N] [--ema]
 *                            [--trace FROM:TO] [--trace-file FILE]
 *                            [--serve [PORT]] [--slots N] [--perplexity FILE]
 *                            [--tokenizer DIR] [--generate N] [--prompt TEXT] [--temperature T]
 *                            [--export-hf DIR] [--export-adapter DIR] [--logits FILE.npy] [--results FILE]
 *                            [--init FILE|DIR] [--new-head] [--init-adapter DIR] [--dry-run] [--verify] [--only-mpi] [--no-overlap]
 *                            [--trial]
 *     mpirun -n N meshtf-run --calibrate -o MACHINE */
#ifndef MTF_RUN_OPTIONS_H
#define MTF_RUN_OPTIONS_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define MTF_STANDARD_STEPS 100
#define MTF_STANDARD_CHECKPOINT_EVERY 100
#define MTF_STANDARD_KEEP 2
#define MTF_STANDARD_EVAL_BATCHES 8
#define MTF_STANDARD_TEMPERATURE 0.8
#define MTF_STANDARD_PORT 8000
#define MTF_STANDARD_SLOTS 8
#define MTF_STANDARD_ROUNDS 4

typedef struct {
    char *plan;           /* NULL with --calibrate */
    char **data;          /* files, NULL-terminated; NULL = none given */
    char *metrics;        /* NULL = none */
    char *output;         /* of --calibrate, else NULL */
    char *init;           /* initial weights; NULL = drawn by the seed */
    char *init_adapter;   /* initial adapters, as PEFT has them; NULL = drawn by the seed */
    char *export_hf;      /* folder for the weights after training; NULL = none */
    char *export_adapter; /* folder for the adapters after training; NULL = none */
    char *logits;         /* file for the scores of a batch after training; NULL = none */
    char *results;        /* file for what a plan of results makes of the last batch; NULL = none */
    int64_t steps;        /* at least 1; 0 where only the weights are used */
    int64_t seed;
    char **held_out;    /* files held out of training; NULL = a share of the data */
    double held_share;  /* that share */
    int64_t eval_every; /* steps; 0 = never */
    int64_t eval_batches;
    char *trace; /* "FROM:TO"; NULL = none */
    char *trace_file;
    int64_t trace_from, trace_to; /* steps; 0 = none */
    int64_t generate;             /* tokens after training; 0 = none */
    gboolean no_cache;            /* generate without caches */
    char *perplexity;             /* a text to foretell after training; NULL = none */
    int64_t serve;                /* port, 0: any that is free; -1 = none */
    int64_t slots;                /* texts served side by side */
    char *tokenizer;              /* tokenizer.json or its folder; NULL = bytes */
    char *prompt;                 /* NULL = the beginning of the held out part */
    double temperature;
    char *checkpoint;          /* folder; NULL = none */
    int64_t checkpoint_every;  /* steps, at least 1 */
    int64_t keep;              /* checkpoints, at least 1 */
    gboolean ema;              /* running means of the weights are evaluated and used */
    gboolean new_head;         /* weights that `init` lacks are drawn */
    gboolean resume, new_data; /* …, on other data than the checkpoint's */
    gboolean dry_run, verify, only_mpi, no_overlap, trial, calibrate;
    int64_t rounds; /* of --calibrate, at least 1 */
} MtfRunOptions;

/* Reads the command line; --help prints and ends the process. Fails (bad input) on anything
 * unknown. */
bool mtf_run_options_parse(MtfRunOptions *options, int argc, char **argv, GError **error);
void mtf_run_options_clear(MtfRunOptions *options);

/* Whether the command line asks for --help or --version, which need no MPI. */
bool mtf_run_options_only_ask(int argc, char **argv);

#endif
