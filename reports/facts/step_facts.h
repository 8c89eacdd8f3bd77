// SPDX-License-Identifier: GPL-3.0-or-later
/* What there is to say about one training step of a plan, worked out once for page, summary and
 * timeline: the lowered program, its price on the plan's machine instruction by instruction, and
 * the bytes that are live.
 *
 *     instruction      0      1      2   …
 *     schedule         |--a--|-b-|---c---|        starts and ends in nanoseconds
 *     live[i * MTF_MEMORY_KINDS + kind]           bytes, as the arena packs them
 *     peak                   ^                    the first instruction where most is live    */
#ifndef MTF_STEP_FACTS_H
#define MTF_STEP_FACTS_H

#include "cost/memory/arena.h"
#include "cost/price/predict.h"
#include "cost/price/schedule.h"
#include "cost/summary/step_shares.h"
#include "layouts/plan_file/plan.h"

typedef struct {
    const MtfPlan *plan; /* borrowed */
    MtfProgram *program;
    MtfMachine *machine; /* the plan's, or cpu-cluster where it has none */
    MtfPricer pricer;
    MtfSchedule *schedule;
    MtfArena *arena;
    GArray *traffic;             /* MtfTrafficRow, of the largest rank */
    int64_t *live;               /* bytes; one row more than there are instructions */
    int64_t *wall;               /* nanoseconds of the step that each instruction takes: of kernels
                                    and copies their own, of collectives while nothing computes;
                                    they add up to the step */
    int peak;                    /* an instruction; 0 in an empty program */
    int64_t limit;               /* bytes a device: the search's limit, or the machine's memory */
    double flops, multiply_adds; /* of the largest rank */
} MtfStepFacts;

/* Lowers, prices and packs the plan, which must outlive the facts. */
MtfStepFacts *mtf_step_facts_new(const MtfPlan *plan, GError **error);
void mtf_step_facts_free(MtfStepFacts *facts);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfStepFacts, mtf_step_facts_free)

/* The plan's machine, to be freed by the caller, and the pricer of its mesh there, which borrows it. */
MtfMachine *mtf_plan_lay(const MtfPlan *plan, MtfPricer *pricer, GError **error);

/* Live bytes of all kinds at an instruction. */
int64_t mtf_step_facts_live(const MtfStepFacts *facts, int instruction);

/* Whether an instruction is a collective. */
bool mtf_step_facts_is_collective(const MtfStepFacts *facts, int instruction);

/* A string of one of the plan's trees; "" where there is none. Owned by the tree. */
const char *mtf_tree_text(const cJSON *tree, const char *key);

/* The shares (MtfStepShare *), as of mtf_step_shares_of. */
GPtrArray *mtf_step_shares(const MtfStepFacts *facts);

/* A storage that is live at the peak, together with its like in other layers. */
typedef struct {
    char *name; /* of the tensor, starred; what the scratch is for */
    MtfMemoryKind memory;
    int count;
    int64_t bytes; /* of all together */
} MtfPeakRow;

/* What is live at the peak (MtfPeakRow *), the largest first; free with g_ptr_array_unref. */
GPtrArray *mtf_peak_rows(const MtfStepFacts *facts);

#endif
