// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/pipeline/pipeline_check.h"

#include "layouts/base/error.h"
#include "layouts/pipeline/pipeline_progress.h"
#include "layouts/pipeline/pipeline_text.h"

bool mtf_pipeline_has_messages(const MtfPipelineOrder *order) {
    for (int r = 0; r < order->ranks; r++)
        for (int i = 0; i < mtf_pipeline_length(order, r); i++) {
            MtfPipelineWork work = mtf_pipeline_action(order, r, i)->work;
            if (mtf_work_is_send(work) || mtf_work_is_receive(work))
                return true;
        }
    return false;
}

/* Whether the action is one that this order can hold at all. */
static bool action_has_a_place(const MtfPipelineOrder *order, int rank,
                               const MtfPipelineAction *action) {
    bool numbered = action->stage >= 0 && action->stage < order->stages &&
                    action->microbatch >= -1 && action->microbatch < order->microbatches &&
                    (action->microbatch >= 0 || !mtf_work_computes(action->work));
    if (!numbered || order->rank_of_stage[action->stage] != rank)
        return false;
    bool message = mtf_work_is_send(action->work) || mtf_work_is_receive(action->work);
    if (!message)
        return true;
    bool next = action->work == MTF_WORK_SEND_FORWARD || action->work == MTF_WORK_RECEIVE_BACKWARD;
    return action->microbatch >= 0 && mtf_pipeline_crosses(order, action->stage, next);
}

/* Each action at most once, each on the rank of its stage; marks all in `progress`. */
static bool check_places(const MtfPipelineOrder *order, MtfPipelineProgress *all, const char *name,
                         GError **error) {
    for (int r = 0; r < order->ranks; r++)
        for (int i = 0; i < mtf_pipeline_length(order, r); i++) {
            const MtfPipelineAction *action = mtf_pipeline_action(order, r, i);
            g_autofree char *text = mtf_pipeline_action_format(action);
            if (!action_has_a_place(order, r, action))
                return mtf_input_error(error,
                                       "%s: %s on rank %d belongs to no stage, micro-batch or "
                                       "message of this pipeline there",
                                       name, text, r);
            if (action->microbatch < 0)
                continue;
            if (mtf_pipeline_progress_done(all, action->work, action->stage, action->microbatch))
                return mtf_input_error(error, "%s: %s stands twice on rank %d", name, text, r);
            mtf_pipeline_progress_mark(all, action);
        }
    return true;
}

static bool fail_missing(const char *name, MtfPipelineWork work, int stage, int microbatch,
                         GError **error) {
    MtfPipelineAction action = { .stage = stage, .microbatch = microbatch, .work = work };
    g_autofree char *text = mtf_pipeline_action_format(&action);
    return mtf_input_error(error, "%s: %s is missing%s", name, text,
                           work == MTF_WORK_BACKWARD ? " (as B, or as I and W)" : "");
}

/* The forward, and where there are gradients either B or both of I and W. */
static bool check_computed(const MtfPipelineProgress *all, const char *name, int stage,
                           int microbatch, GError **error) {
    bool both = mtf_pipeline_progress_done(all, MTF_WORK_BACKWARD, stage, microbatch);
    bool input = mtf_pipeline_progress_done(all, MTF_WORK_INPUT_GRADIENT, stage, microbatch);
    bool weight = mtf_pipeline_progress_done(all, MTF_WORK_WEIGHT_GRADIENT, stage, microbatch);
    if (!mtf_pipeline_progress_done(all, MTF_WORK_FORWARD, stage, microbatch))
        return fail_missing(name, MTF_WORK_FORWARD, stage, microbatch, error);
    if (both && (input || weight))
        return mtf_input_error(error, "%s: %dB%d stands beside %d%c%d, which it holds", name, stage,
                               microbatch, stage, input ? 'I' : 'W', microbatch);
    if (!both && !input && !weight && mtf_pipeline_only_forward(all->order))
        return true;
    if (!both && !input && !weight)
        return fail_missing(name, MTF_WORK_BACKWARD, stage, microbatch, error);
    if (!both && !(input && weight))
        return fail_missing(name, input ? MTF_WORK_WEIGHT_GRADIENT : MTF_WORK_INPUT_GRADIENT, stage,
                            microbatch, error);
    return true;
}

/* The messages that leave and reach this stage. */
static bool check_messages(const MtfPipelineProgress *all, const char *name, int stage,
                           int microbatch, GError **error) {
    static const MtfPipelineWork works[2][2] = {
        { MTF_WORK_RECEIVE_FORWARD, MTF_WORK_SEND_BACKWARD },
        { MTF_WORK_SEND_FORWARD, MTF_WORK_RECEIVE_BACKWARD },
    };
    for (int next = 0; next < 2; next++)
        for (int i = 0; i < 2 && mtf_pipeline_crosses(all->order, stage, next == 1); i++)
            if (!mtf_pipeline_progress_done(all, works[next][i], stage, microbatch))
                return fail_missing(name, works[next][i], stage, microbatch, error);
    return true;
}

static bool check_complete(const MtfPipelineOrder *order, bool messages, const char *name,
                           GError **error) {
    MtfPipelineProgress all;
    mtf_pipeline_progress_init(&all, order, messages);
    bool fine = check_places(order, &all, name, error);
    for (int s = 0; s < order->stages; s++)
        for (int m = 0; m < order->microbatches && fine; m++)
            fine = check_computed(&all, name, s, m, error) &&
                   (!messages || check_messages(&all, name, s, m, error));
    mtf_pipeline_progress_clear(&all);
    return fine;
}

/* The first action of the head group that is not ready; NULL when all are. */
static const MtfPipelineAction *waiting_action(const MtfPipelineProgress *progress, int rank) {
    int count = mtf_pipeline_progress_group(progress, rank);
    for (int i = 0; i < count; i++) {
        const MtfPipelineAction *action =
            mtf_pipeline_action(progress->order, rank, progress->head[rank] + i);
        bool message = mtf_work_is_send(action->work) || mtf_work_is_receive(action->work);
        if (message || !mtf_pipeline_progress_ready(progress, action))
            return action;
    }
    return NULL;
}

/* The rank that must do something before this waiting action can run. */
static int rank_waited_for(const MtfPipelineProgress *progress, const MtfPipelineAction *action) {
    const MtfPipelineOrder *order = progress->order;
    int own = order->rank_of_stage[action->stage], stage = action->stage;
    bool message = mtf_work_is_send(action->work) || mtf_work_is_receive(action->work);
    if (message &&
        (mtf_work_is_receive(action->work) || mtf_pipeline_progress_ready(progress, action)))
        return order->rank_of_stage[mtf_pipeline_other_end(action).stage];
    if (message || progress->messages || action->work == MTF_WORK_WEIGHT_GRADIENT)
        return own;
    if (action->work == MTF_WORK_FORWARD)
        return order->rank_of_stage[stage - 1];
    bool forward =
        mtf_pipeline_progress_done(progress, MTF_WORK_FORWARD, stage, action->microbatch);
    return forward ? order->rank_of_stage[stage + 1] : own;
}

/* Appends "rank 0 at 0SEND_F1 waits for rank 1" for each rank of the circle that `rank` leads to. */
static bool fail_circle(const MtfPipelineProgress *progress, const char *name, int rank,
                        GError **error) {
    int ranks = progress->order->ranks;
    g_autofree bool *seen = g_new0(bool, (gsize)ranks);
    while (!seen[rank]) {
        seen[rank] = true;
        rank = rank_waited_for(progress, waiting_action(progress, rank));
    }
    GString *circle = g_string_new(NULL);
    while (seen[rank]) {
        seen[rank] = false;
        const MtfPipelineAction *action = waiting_action(progress, rank);
        g_autofree char *text = mtf_pipeline_action_format(action);
        int next = rank_waited_for(progress, action);
        g_string_append_printf(circle, "%srank %d at %s waits for ", circle->len > 0 ? ", " : "",
                               rank, text);
        if (next == rank)
            g_string_append(circle, "what stands behind it");
        else
            g_string_append_printf(circle, "rank %d", next);
        rank = next;
    }
    mtf_input_error(error, "%s deadlocks: %s", name, circle->str);
    g_string_free(circle, TRUE);
    return false;
}

/* Lets `rank` do what it can; a message needs both of its ends at their ranks' heads. Returns whether
 * anything was done. */
static bool advance_rank(MtfPipelineProgress *progress, int rank) {
    bool advanced = false;
    while (mtf_pipeline_progress_group(progress, rank) > 0) {
        const MtfPipelineAction *action = waiting_action(progress, rank);
        if (action == NULL) {
            mtf_pipeline_progress_advance(progress, rank);
            advanced = true;
            continue;
        }
        if (!mtf_work_is_send(action->work) || !mtf_pipeline_progress_ready(progress, action))
            return advanced;
        MtfPipelineAction receive = mtf_pipeline_other_end(action);
        int peer = progress->order->rank_of_stage[receive.stage];
        const MtfPipelineAction *head =
            mtf_pipeline_progress_group(progress, peer) > 0 ? waiting_action(progress, peer) : NULL;
        if (head == NULL || head->work != receive.work || head->stage != receive.stage ||
            head->microbatch != receive.microbatch)
            return advanced;
        mtf_pipeline_progress_advance(progress, rank);
        mtf_pipeline_progress_advance(progress, peer);
        advanced = true;
    }
    return advanced;
}

static bool check_deadlock(const MtfPipelineOrder *order, bool messages, const char *name,
                           GError **error) {
    MtfPipelineProgress progress;
    mtf_pipeline_progress_init(&progress, order, messages);
    for (bool advanced = true; advanced;) {
        advanced = false;
        for (int r = 0; r < order->ranks; r++)
            advanced = advance_rank(&progress, r) || advanced;
    }
    bool fine = true;
    for (int r = 0; r < order->ranks && fine; r++)
        fine = mtf_pipeline_progress_group(&progress, r) == 0 ||
               fail_circle(&progress, name, r, error);
    mtf_pipeline_progress_clear(&progress);
    return fine;
}

bool mtf_pipeline_check(const MtfPipelineOrder *order, const char *name, GError **error) {
    bool messages = mtf_pipeline_has_messages(order);
    return check_complete(order, messages, name, error) &&
           check_deadlock(order, messages, name, error);
}
