// SPDX-License-Identifier: GPL-3.0-or-later
/* Requests for completions that share a generator's slots, joined as they come. Each prompt of a
 * request wants some choices; a choice takes a slot as soon as one is free, brings its prompt in
 * pieces and then a token at a time, and leaves the slot when it is done:
 *
 *     round        1       2       3       4
 *     slot 0   prompt  prompt    a       b        a request of one choice
 *     slot 1     c       d       e     prompt     another's choice is done, the next begins
 *
 * A round is mtf_completion_queue_fill, mtf_generator_feed on all ranks, mtf_completion_queue_draw.
 * What a choice says depends on its prompt, its request's seed and its index alone, not on who else
 * is there. Used by one thread of one rank. */
#ifndef MTF_COMPLETION_QUEUE_H
#define MTF_COMPLETION_QUEUE_H

#include "runtime/serving/completion_request.h"
#include "runtime/serving/generator.h"
#include "runtime/serving/http_server.h"
#include "runtime/serving/model_text.h"
#include "runtime/template/chat_template.h"

typedef struct MtfCompletionQueue MtfCompletionQueue;

typedef struct {
    const char *name;              /* of the model */
    const MtfModelText *text;      /* borrowed, like all here */
    const MtfChatTemplate *chat;   /* how conversations are spelled; NULL: nothing says so … */
    const char *no_chat;           /* … why, for who asks */
    const MtfGenerator *generator; /* whose slots are shared */
    int64_t context;               /* tokens that a prompt and a choice may have together */
    MtfCompletionRequest standard; /* what requests leave out */
    const GArray *ends;            /* int: tokens that end a choice and are no part of it */
    int64_t most_waiting;          /* choices without a slot; requests beyond are refused */
    double seconds;                /* that a request may take */
} MtfCompletionQueueSettings;

/* A queue without requests; the caller frees it. */
MtfCompletionQueue *mtf_completion_queue_new(const MtfCompletionQueueSettings *settings);

/* Every request must have been answered, as by mtf_completion_queue_refuse. */
void mtf_completion_queue_free(MtfCompletionQueue *queue);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfCompletionQueue, mtf_completion_queue_free)

/* The page whose calls are conversations; those of others are texts to go on with. */
#define MTF_CHAT_PAGE "/v1/chat/completions"

/* Takes a call's request on, or answers the call with what is wrong with it: status 400, or 429
 * where too many wait. */
void mtf_completion_queue_add(MtfCompletionQueue *queue, MtfHttpCall *call);

/* Whether no request waits or is being answered. */
bool mtf_completion_queue_is_empty(const MtfCompletionQueue *queue);

/* Begins a round: drops requests whose clients have gone or that took too long, gives free slots to
 * choices that wait, and says what every slot brings; slots where clear[slot] is set are to be
 * emptied first. False when nothing is to be done. `brought` is valid until the next round. */
bool mtf_completion_queue_fill(MtfCompletionQueue *queue, MtfSlotTokens *brought, bool *clear);

/* Ends a round: draws the next tokens, sends pieces of streams, answers what is complete. */
void mtf_completion_queue_draw(MtfCompletionQueue *queue);

/* Answers all requests with an error. */
void mtf_completion_queue_refuse(MtfCompletionQueue *queue, int status, const char *message);

#endif
