// SPDX-License-Identifier: GPL-3.0-or-later
/* One run of a plan on this rank: everything it holds, from loading to the last step. All functions
 * are collective over the control communicator and fail on all ranks or on none.
 *
 *     open    plan ─► program ─► agree that all ranks have the same ─► arena, worker, data
 *     begin   variables from a checkpoint, a file of weights or the seed
 *     train   step, agree, now and then write a checkpoint … K times
 *     close */
#ifndef MTF_SESSION_H
#define MTF_SESSION_H

#include "layouts/plan_file/plan.h"
#include "runtime/data/data.h"
#include "runtime/executor/stage_steps.h"
#include "runtime/executor/stage_watches.h"
#include "runtime/session/metrics.h"
#include "runtime/session/run_options.h"
#include "runtime/support/agreement.h"
#include "runtime/support/stop_signals.h"

typedef struct {
    MPI_Comm control; /* borrowed */
    int rank, n_ranks;
    const MtfRunOptions *options; /* borrowed */
    MtfAsked put_off;             /* by signals, until a pipeline has run empty */
    MtfStageRun *stage;           /* this rank's part of the plan; it owns the next five, which are
                                     those of the rank's first stage */
    MtfPlan *plan;
    MtfProgram *program;
    MtfArena *arena;
    MtfWorker *worker;
    MtfTraffic *counted;
    MtfStageWatches *watches;
    MtfTokenizer *tokenizer; /* of texts, or NULL */
    MtfPairText pair_text;   /* of texts that are made of others */
    MtfData *data;
    MtfMetrics *metrics;    /* of rank 0 */
    int64_t done;           /* steps of the runs before, from which this one goes on */
    int64_t trained;        /* steps of this run */
    MtfStepRecord *records; /* one a step of this run: records[0] is step done + 1 */
    int ahead;              /* steps that a rank may be ahead of what all know (pipeline_plan.h) */
    MtfAgreement *agreements; /* [ahead + 1], in turns: of steps agreed + 1 … begun */
    int64_t begun, agreed,
        told; /* steps that were computed, of which all ranks know, and that were written */
    MtfStepTrace *trace; /* NULL when no step is traced */
    bool drops;          /* routers have a capacity */
    bool shown;          /* a line of this step may be written or shown */
    MtfDropped dropped;  /* of this step */
    bool shows_all;      /* every step's line may be seen */
    double products;     /* flop of a rank's matrix products a step */
    double gemm_peak;    /* flop a second of one large product; 0: not measured, as for few steps */
    bool stopped;        /* a signal asked to stop before the last step */
    bool differs;        /* --verify found another training than that of one processor */
    void *scores;        /* a copy of what scores.h has computed last; or NULL */
    int folder;          /* of checkpoints, locked by rank 0; -1 = none */
    int saves;           /* checkpoints written */
    int64_t saved;       /* the step of the last */
    double save_seconds; /* of all */
} MtfSession;

/* Loads the plan and lays out its memory on paper. Fails when the plan cannot be used, or is not
 * the same on all ranks. */
bool mtf_session_load(MtfSession *session, MPI_Comm control, const MtfRunOptions *options,
                      GError **error);

/* Makes everything ready for the first step. Fails when the number of ranks is not the plan's, the
 * data is not what the graph asks for, memory is short, or there is no good checkpoint to go on
 * from. */
bool mtf_session_open(MtfSession *session, GError **error);

/* Trains up to step options->steps, or until a signal asks to stop (stop_signals.h). Fails when the
 * loss is not finite, the data cannot be read any more, or metrics or a checkpoint cannot be
 * written; and when a signal asks to stop and there is no folder for a checkpoint. */
bool mtf_session_train(MtfSession *session, GError **error);

/* Frees what load and open made, whether or not they succeeded. */
void mtf_session_close(MtfSession *session);

/* Whether the plan has pipeline stages. */
bool mtf_session_has_stages(const MtfSession *session);

/* The model of the plan, whole: that of all stages. */
const MtfGraph *mtf_session_graph(const MtfSession *session);

/* The digest of what the plan lowers to, the same on all ranks; free with g_free. */
char *mtf_session_digest(const MtfSession *session);

/* The loss that a worker holds after a step: its value where it is whole; where a layout leaves it
 * partial, the reduction over the ranks of `control`. */
double mtf_session_loss(const MtfSession *session);

#endif
