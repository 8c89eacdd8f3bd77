// SPDX-License-Identifier: GPL-3.0-or-later
/* A row of a table of runs as a training run, the machine and the software that it names, and what
 * was measured. Where a cell says nothing, the usual is taken and named in `assumed`; what cannot be
 * taken so leaves a `reason` in place of a run. */
#ifndef MTF_RUN_COLUMNS_H
#define MTF_RUN_COLUMNS_H

#include "analyzer/judge/run_table.h"
#include "cost/machine/machine.h"
#include "cost/step_model/training_run.h"

typedef struct {
    const char *id, *source, *hardware, *model; /* the table's */
    char grade;                                 /* A … D of the notes, or ' ' */
    MtfTrainingRun run;
    char *machine;          /* name in the library, NULL when none is like the hardware */
    const char *named;      /* the library's machine that its hardware names, NULL likewise */
    double node_bandwidth;  /* of its network, as the row says it, bytes/s of a node; 0: not said */
    double measured;        /* seconds a step */
    double measured_memory; /* GiB of one device; 0: not measured */
    bool redo_unsaid; /* recomputation is not stated: what the device needs for the run to fit */
    GString *assumed;
    char *reason; /* why it cannot be predicted; NULL when it can */
} MtfRunRow;

/* The columns without which a table is no table of runs. */
extern const char *const mtf_run_columns[];

/* Whether a row's hardware can name that machine of the library. */
bool mtf_runs_name_machine(const char *machine);

/* Reads a row. Fails when a cell is not what its column holds; a run that cannot be expressed is no
 * failure. Free with mtf_run_row_free. */
MtfRunRow *mtf_run_row_read(const MtfRunTable *table, guint row, GError **error);

void mtf_run_row_free(MtfRunRow *row);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfRunRow, mtf_run_row_free)

#endif
