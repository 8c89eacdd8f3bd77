// SPDX-License-Identifier: GPL-3.0-or-later
/* Machines of the library fitted to a table of runs, made when a row first asks for one. A row may be
 * kept away from the fit that predicts it: with all rows of its source, or, where a machine has runs
 * of one source alone, of its model. */
#ifndef MTF_FITTED_MACHINES_H
#define MTF_FITTED_MACHINES_H

#include "analyzer/judge/fit.h"

typedef enum { MTF_LEAVE_NOTHING, MTF_LEAVE_SOURCE, MTF_LEAVE_MODEL } MtfLeaveOut;

typedef struct MtfFittedMachines MtfFittedMachines;

/* `verdicts` are those of the table to fit on, and must live as long. */
MtfFittedMachines *mtf_fitted_machines_new(const GPtrArray *verdicts, MtfLeaveOut leave);

void mtf_fitted_machines_free(MtfFittedMachines *fitted);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfFittedMachines, mtf_fitted_machines_free)

/* An MtfMachineFor: `data` is the MtfFittedMachines. */
const MtfMachine *mtf_fitted_machine(void *data, const MtfRunRow *row, const MtfMachine *library);

#endif
