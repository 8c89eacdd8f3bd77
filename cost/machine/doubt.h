// SPDX-License-Identifier: GPL-3.0-or-later
/* How far predictions for a machine may be trusted, said beside each of them: the error of the nearest
 * runs that were predicted (tests/bench/judge.txt), and what of the figures has no source.
 *
 *     of inference: such runs of the machine     "runs of inference were predicted within 12 % on 34 …"
 *     else none
 *
 *     of a model with experts: such runs of
 *     the software on the machine                "runs of models with experts were predicted within …"
 *     else of the software elsewhere             "… of models with experts on other machines …"
 *
 *     runs of the software on the machine        "runs of this kind were predicted within 6 % on 75 …"
 *     else any of the machine                    likewise
 *     else any of the software                   "… of megatron-core on other machines …"
 *     else none */
#ifndef MTF_DOUBT_H
#define MTF_DOUBT_H

#include "cost/machine/machine.h"
#include "layouts/graph/graph.h"

/* Fewer runs say nothing of the next. */
#define MTF_DOUBT_RUNS 5

/* What is run. */
typedef enum {
    MTF_JUDGED_DENSE,   /* training of a model without experts */
    MTF_JUDGED_EXPERTS, /* training of one with */
    MTF_JUDGED_INFERENCE,
} MtfJudgedKind;

typedef struct {
    MtfJudged judged;
    bool machine, software; /* whether the runs are of this machine, of this software */
    MtfJudgedKind kind;
} MtfDoubt;

/* Inference where there is neither a loss nor a step that changes what is trained. */
MtfJudgedKind mtf_judged_kind(const MtfGraph *graph);

/* The nearest judged runs to those of a kind. False where there are none, and for a machine whose kernels or
 * collectives were measured. */
bool mtf_doubt_nearest(const MtfMachine *machine, MtfJudgedKind kind, MtfDoubt *doubt);

/* The sentence: "runs of this kind were predicted within 9 % on 41 published runs", that none was
 * judged, or NULL for a machine whose kernels or collectives were measured. Free with g_free. */
char *mtf_doubt_format(const MtfMachine *machine, MtfJudgedKind kind);

/* {"error", "runs", "of", "text"}, or NULL for a measured machine; "of" is "machine and software",
 * "machine", "software" or "none". The caller owns the tree. */
cJSON *mtf_doubt_to_json(const MtfMachine *machine, MtfJudgedKind kind);

/* Figures of the machine and of its software that no source gives: "a100: kernels.launch: about 2 us
 * …", as the files say, in their order. Strings; free with g_ptr_array_unref. */
GPtrArray *mtf_doubt_assumptions(const MtfMachine *machine);

#endif
