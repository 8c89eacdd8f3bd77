// SPDX-License-Identifier: GPL-3.0-or-later
/* Predictions beside measurements, for every row of a table of runs, and how good they are:
 *
 *     error    predicted / measured - 1
 *     order    of the layouts of one model (analyzer/judge/layout_groups.h) */
#ifndef MTF_JUDGE_H
#define MTF_JUDGE_H

#include "analyzer/judge/layout_groups.h"
#include "analyzer/judge/run_columns.h"
#include "cost/step_model/run_memory.h"
#include "cost/step_model/run_seconds.h"

typedef struct {
    MtfRunRow *row;
    char *software;        /* of the profile that it was priced for; NULL where none was */
    double step;           /* predicted seconds; 0 where the row has a reason */
    MtfRunSeconds seconds; /* in closed form, what they go to; 0 likewise */
    char *no_plan;         /* why it is predicted in closed form, too; NULL: it is by its plan
                      (run_plan.h) */
    double memory;         /* predicted GiB of the fullest device; 0 likewise */
} MtfVerdict;

/* A machine for a row in place of the library's of that name; NULL: that one. */
typedef const MtfMachine *(*MtfMachineFor)(void *data, const MtfRunRow *row,
                                           const MtfMachine *library);

/* What is asked: NULL and 0 for what the rows say. */
typedef struct {
    const char *machine, *software;
    const char *grades;        /* letters of grades that count, NULL for all */
    const char *models;        /* "dense" or "moe": only those; NULL for all */
    MtfMachineFor machine_for; /* NULL, or asked first for the machine of a row */
    void *machine_for_data;
} MtfJudgeOptions;

typedef struct {
    int rows, expressed, groups, memory_rows;
    double mean_error, worst_error; /* of absolute values; NAN where nothing is expressed */
    double bias;                    /* the mean of predicted / measured - 1 */
    MtfLayoutOrder order;           /* the mean over groups */
    double memory_error;            /* mean of absolute values */
} MtfJudgement;

/* Judges all rows; an array of MtfVerdict, to be freed by g_ptr_array_unref. The table must live as
 * long. */
GPtrArray *mtf_judge(const MtfRunTable *table, const MtfJudgeOptions *options, GError **error);

/* Predicted seconds of a step of a row, in closed form, on a machine with the network that the row says; NAN and the
 * reason where it cannot be expressed. */
double mtf_predict_row(const MtfRunRow *row, const MtfMachine *machine, const MtfSoftware *software,
                       MtfRunSeconds *seconds, GError **error);

/* The figures of those verdicts for which `label` is NULL or equals what `of` gives of the row. */
typedef const char *(*MtfRowLabel)(const MtfVerdict *verdict);
MtfJudgement mtf_judgement(const GPtrArray *verdicts, MtfRowLabel of, const char *label);

/* Those verdicts that were expressed, by source, model and number of devices: an array of MtfLayoutGroup
 * in the order of their first rows, to be freed by g_ptr_array_unref. */
GPtrArray *mtf_verdict_groups(const GPtrArray *verdicts, MtfRowLabel of, const char *label);

/* Labels: where the row comes from, its machine, and the profile it was priced for. */
const char *mtf_verdict_source(const MtfVerdict *verdict);
const char *mtf_verdict_machine(const MtfVerdict *verdict);
const char *mtf_verdict_software(const MtfVerdict *verdict);

/* predicted / measured - 1; NAN where the row has a reason. */
double mtf_verdict_error(const MtfVerdict *verdict);

#endif
