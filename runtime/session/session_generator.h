// SPDX-License-Identifier: GPL-3.0-or-later
/* A session's model as a generator with caches: the plan's own graph and layout where it is one of
 * inference, what follows from those of training where it is not, with the variables as they are. */
#ifndef MTF_SESSION_GENERATOR_H
#define MTF_SESSION_GENERATOR_H

#include "runtime/serving/generator.h"
#include "runtime/session/scores.h"
#include "runtime/session/session.h"

/* What a text may hold, and what a token may be. */
typedef struct {
    MtfScores scores;   /* of a plan of training */
    int64_t window;     /* tokens of a text */
    int64_t vocabulary; /* scores of a place */
} MtfSessionText;

/* Fails (bad input) where the model has no scores of next tokens; `option` is who asks. */
bool mtf_session_text_find(const MtfSession *session, const char *option, MtfSessionText *text,
                           GError **error);

typedef struct {
    MtfPipelinePlan *pipeline; /* that generates */
    MtfGenerator *generator;
} MtfSessionGenerator;

typedef struct {
    int64_t n;       /* texts side by side, where the plan does not say how many */
    int64_t longest; /* tokens of a prompt that is worth a program of its own; 0: unknown */
} MtfSessionSlots;

/* Collective, but fails on the rank alone; bad input where the model cannot
 * generate from caches. */
bool mtf_session_generator_open(MtfSessionGenerator *generator, MtfSession *session,
                                const MtfSessionText *text, const MtfSessionSlots *slots,
                                GError **error);
void mtf_session_generator_close(MtfSessionGenerator *generator);

#endif
