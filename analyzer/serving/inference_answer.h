// SPDX-License-Identifier: GPL-3.0-or-later
/* What `search --infer` found: for people or as JSON, and the plan's file. */
#ifndef MTF_INFERENCE_ANSWER_H
#define MTF_INFERENCE_ANSWER_H

#include "analyzer/serving/inference_run.h"

/* Prints what the finished run found (not where the plan goes to the output), and writes the plan: of
 * serving that of the decode step. */
bool mtf_inference_answer(const MtfInferenceRun *run, GError **error);

#endif
