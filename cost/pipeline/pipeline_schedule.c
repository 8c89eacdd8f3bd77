// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/pipeline/pipeline_schedule.h"

#include "cost/pipeline/schedule_rows.h"
#include "layouts/base/error.h"
#include "layouts/base/nearest_name.h"
#include "layouts/pipeline/pipeline_check.h"

#include <math.h>
#include <string.h>

static const MtfPipelineSchedule schedules[] = {
    { "gpipe", "all forwards, then all backwards", 1, MTF_STAGES_LOOP, mtf_schedule_gpipe },
    { "1f1b", "forward and backward take turns", 1, MTF_STAGES_LOOP, mtf_schedule_one_forward },
    { "eager-1f1b", "1F1B with more in flight, so that transfers overlap", 1, MTF_STAGES_LOOP,
      mtf_schedule_eager },
    { "pipedream", "asynchronous 1F1B: weights lag, one version for each step in flight", 1,
      MTF_STAGES_LOOP, mtf_schedule_one_forward },
    { "pipedream-2bw", "the same with two versions of the weights, one step behind", 1,
      MTF_STAGES_LOOP, mtf_schedule_one_forward },
    { "interleaved", "1F1B over several chunks a rank", 0, MTF_STAGES_LOOP,
      mtf_schedule_interleaved },
    { "zb-h1", "weight gradients fill the bubble, memory of 1F1B", 1, MTF_STAGES_LOOP,
      mtf_schedule_zero_bubble_h1 },
    { "zb-h2", "the same with twice the memory and no bubble", 1, MTF_STAGES_LOOP,
      mtf_schedule_zero_bubble_h2 },
    { "zb-1p", "the zero-bubble heuristic within the memory of p micro-batches", 1, MTF_STAGES_LOOP,
      mtf_schedule_zero_bubble_1p },
    { "zb-2p", "the same within the memory of 2p", 1, MTF_STAGES_LOOP,
      mtf_schedule_zero_bubble_2p },
    { "zb-auto", "the same within --memory", 1, MTF_STAGES_LOOP, mtf_schedule_zero_bubble_auto },
    { "zb-v", "zero bubble there and back, memory of 1F1B", 2, MTF_STAGES_V,
      mtf_schedule_zero_bubble_v },
    { "v-half", "there and back with half of 1F1B's memory", 2, MTF_STAGES_V, mtf_schedule_v_half },
    { "v-min", "there and back with a third of 1F1B's memory", 2, MTF_STAGES_V,
      mtf_schedule_v_min },
    { "dualpipe-v", "two directions meet, forward and backward overlap", 2, MTF_STAGES_V,
      mtf_schedule_dualpipe_v },
    { NULL, NULL, 0, MTF_STAGES_LOOP, NULL },
};

const MtfPipelineSchedule *mtf_pipeline_schedules(void) {
    return schedules;
}

/* Letters and digits alone, small: "ZB_H1" and "zb h1" are "zbh1". */
static char *plain_name(const char *name) {
    GString *plain = g_string_new(NULL);
    for (; *name != '\0'; name++)
        if (strchr("-_ ", *name) == NULL)
            g_string_append_c(plain, g_ascii_tolower(*name));
    return g_string_free(plain, FALSE);
}

static bool is_called(const MtfPipelineSchedule *row, const char *plain) {
    static const char *const others[][2] = {
        { "interleaved1f1b", "interleaved" },
        { "eager", "eager-1f1b" },
    };
    g_autofree char *own = plain_name(row->name);
    for (gsize i = 0; i < G_N_ELEMENTS(others); i++)
        if (strcmp(plain, others[i][0]) == 0 && strcmp(row->name, others[i][1]) == 0)
            return true;
    return strcmp(own, plain) == 0;
}

const MtfPipelineSchedule *mtf_pipeline_schedule(const char *name, GError **error) {
    g_autofree char *plain = plain_name(name);
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    for (const MtfPipelineSchedule *row = schedules; row->name != NULL; row++) {
        if (is_called(row, plain))
            return row;
        g_ptr_array_add(names, (gpointer)row->name);
    }
    g_autofree char *known = mtf_there_are(name, names);
    mtf_input_error(error, "\"%s\" is no pipeline schedule%s", name, known);
    return NULL;
}

bool mtf_pipeline_fits(const MtfPipelineOrder *order, const MtfPipelineCase *the_case,
                       const char *name, GError **error) {
    /* Sums of many small shares may end a rounding error above the cap. */
    double cap = the_case->cap + 1e-9 * fabs(the_case->cap);
    for (int r = 0; r < order->ranks && isfinite(cap); r++) {
        double peak = mtf_pipeline_peak(order, the_case->memory, r);
        if (peak <= cap)
            continue;
        g_set_error(error, MTF_ERROR, MTF_ERROR_FIT,
                    "%s holds %.10g on rank %d, more than the %.10g allowed", name, peak, r,
                    the_case->cap);
        return false;
    }
    return true;
}

MtfPipelineOrder *mtf_pipeline_schedule_make(const MtfPipelineSchedule *schedule,
                                             const MtfPipelineCase *the_case, GError **error) {
    if (schedule->chunks > 0 && the_case->chunks != schedule->chunks) {
        mtf_input_error(error, "%s has %d chunk%s on a rank, not %d", schedule->name,
                        schedule->chunks, schedule->chunks > 1 ? "s" : "", the_case->chunks);
        return NULL;
    }
    g_autoptr(MtfPipelineOrder) order = schedule->make(the_case, error);
    if (order == NULL || !mtf_pipeline_check(order, schedule->name, error) ||
        !mtf_pipeline_fits(order, the_case, schedule->name, error))
        return NULL;
    return g_steal_pointer(&order);
}

int mtf_pipeline_schedule_chunks(const MtfPipelineSchedule *schedule) {
    return schedule->chunks > 0 ? schedule->chunks : 2;
}

MtfPipelineOrder *mtf_pipeline_schedule_order(const char *name, int ranks, int microbatches,
                                              int chunks, GError **error) {
    const MtfPipelineSchedule *schedule = mtf_pipeline_schedule(name, error);
    if (schedule == NULL)
        return NULL;
    gsize stages = (gsize)ranks * (gsize)chunks;
    g_autofree MtfStageTimes *times = g_new(MtfStageTimes, stages);
    g_autofree MtfStageMemory *memory = g_new(MtfStageMemory, stages);
    for (gsize s = 0; s < stages; s++) {
        times[s] = (MtfStageTimes){ 1, 1, 1, 0, 0 };
        memory[s] = (MtfStageMemory){ 1, 0, -1 };
    }
    MtfPipelineCase the_case = { ranks, microbatches, chunks, times, memory, INFINITY };
    return mtf_pipeline_schedule_make(schedule, &the_case, error);
}
