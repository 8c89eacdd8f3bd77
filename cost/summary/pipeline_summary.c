// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/summary/pipeline_summary.h"

#include "cost/machine/doubt.h"
#include "cost/summary/pipeline_memory.h"
#include "cost/summary/step_summary.h"
#include "layouts/base/json_writer.h"

#include <math.h>
#include <string.h>

static const cJSON *stage_at(const MtfPipelinePlan *pipeline, int stage) {
    return mtf_pipeline_stage(pipeline, stage)->predicted;
}

static double stage_number(const MtfPipelinePlan *pipeline, int stage, const char *key) {
    return mtf_json_number_of(stage_at(pipeline, stage), key, 0);
}

static const char *stage_words(const MtfPipelinePlan *pipeline, int stage) {
    return mtf_json_text_of(stage_at(pipeline, stage), "parallelism");
}

/* The first stage behind `from` that is laid out otherwise. */
static int end_of_alike(const MtfPipelinePlan *pipeline, int from) {
    int to = from + 1;
    while (to < pipeline->order->stages &&
           strcmp(stage_words(pipeline, to), stage_words(pipeline, from)) == 0)
        to++;
    return to;
}

static char *parallelism_text(const MtfPipelinePlan *pipeline) {
    int stages = pipeline->order->stages;
    GString *text = g_string_new(NULL);
    g_string_append_printf(text, "pipeline parallel %d", pipeline->order->ranks);
    if (end_of_alike(pipeline, 0) == stages) {
        if (mtf_pipeline_devices(pipeline) > pipeline->order->ranks)
            g_string_append_printf(text, " x %s", stage_words(pipeline, 0));
        return g_string_free(text, FALSE);
    }
    for (int from = 0, to; from < stages; from = to) {
        to = end_of_alike(pipeline, from);
        g_string_append_printf(text, "%sstage%s %d", from > 0 ? "; " : ": ",
                               to - from > 1 ? "s" : "", from);
        if (to - from > 1)
            g_string_append_printf(text, "-%d", to - 1);
        g_string_append_printf(text, " %s", stage_words(pipeline, from));
    }
    return g_string_free(text, FALSE);
}

/* ---- Speed ------------------------------------------------------------------------------------- */

/* Tokens are those that the first stage reads which reads any. */
static int stage_of_items(const MtfPipelinePlan *pipeline) {
    for (int s = 0; s < pipeline->order->stages; s++)
        if (strcmp(mtf_json_text_of(stage_at(pipeline, s), "items"), "tokens") == 0)
            return s;
    return 0;
}

static void add_speed(const MtfPipelinePlan *pipeline) {
    int reader = stage_of_items(pipeline);
    MtfStepSpeed speed = { .precision = mtf_json_text_of(stage_at(pipeline, 0), "precision"),
                           .items = mtf_json_text_of(stage_at(pipeline, reader), "items"),
                           .items_per_step = stage_number(pipeline, reader, "items_per_step"),
                           .peak = stage_number(pipeline, 0, "peak_flops_per_second"),
                           .peak_precision =
                               mtf_json_text_of(stage_at(pipeline, 0), "peak_precision"),
                           .devices = mtf_pipeline_devices(pipeline) };
    for (int s = 0; s < pipeline->order->stages; s++)
        speed.model_flops += stage_number(pipeline, s, "model_flops");
    mtf_summary_add_speed(pipeline->predicted, &speed);
}

/* ---- Memory ------------------------------------------------------------------------------------ */

static void add_memory(const MtfPipelinePlan *pipeline, const MtfMachine *machine, int64_t limit) {
    cJSON *object = pipeline->predicted;
    double peak = mtf_pipeline_peak_bytes(pipeline);
    MtfFrameworkMemory memory = { 0 };
    if (machine->software != NULL) {
        memory = mtf_pipeline_memory(pipeline, machine->software);
        mtf_framework_memory_add(object, &memory);
    }
    bool fits = fmax(peak, memory.given) <= (double)limit;
    for (int s = 0; s < pipeline->order->stages; s++)
        fits &= cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(stage_at(pipeline, s), "fits"));
    mtf_json_add_number(object, "peak_memory_bytes", peak);
    mtf_json_add_integer(object, "memory_limit", limit);
    mtf_json_add_number(object, "memory_share", limit > 0 ? peak / (double)limit : 0);
    cJSON_AddBoolToObject(object, "fits", fits);
}

/* ---- Shares ------------------------------------------------------------------------------------ */

double mtf_pipeline_work_seconds(const MtfPipelinePlan *pipeline, int domain) {
    double seconds = 0;
    for (int s = 0; s < pipeline->order->stages; s++)
        if (pipeline->order->rank_of_stage[s] == domain)
            seconds += stage_number(pipeline, s, "step_seconds");
    return seconds;
}

int mtf_pipeline_busiest_domain(const MtfPipelinePlan *pipeline) {
    int busiest = 0;
    for (int domain = 1; domain < pipeline->order->ranks; domain++)
        if (mtf_pipeline_work_seconds(pipeline, domain) >
            mtf_pipeline_work_seconds(pipeline, busiest))
            busiest = domain;
    return busiest;
}

typedef struct {
    const char *name; /* a key of a stage's prediction */
    double seconds;
} Share;

static int by_time(const void *left, const void *right) {
    double a = ((const Share *)left)->seconds, b = ((const Share *)right)->seconds;
    return (a < b) - (a > b);
}

static void add_to(GArray *shares, const char *name, double seconds) {
    for (guint i = 0; i < shares->len; i++) {
        Share *share = &g_array_index(shares, Share, i);
        if (strcmp(share->name, name) == 0) {
            share->seconds += seconds;
            return;
        }
    }
    Share share = { name, seconds };
    g_array_append_val(shares, share);
}

/* Of a domain, no more than the step: what the host adds to one comes once, however many stages there are. */
static GArray *domain_shares(const MtfPipelinePlan *pipeline, int domain) {
    GArray *shares = g_array_new(FALSE, FALSE, sizeof(Share));
    double rest = mtf_json_number_of(pipeline->predicted, "step_seconds", 0);
    for (int s = 0; s < pipeline->order->stages; s++) {
        const cJSON *own = cJSON_GetObjectItemCaseSensitive(stage_at(pipeline, s), "shares"),
                    *share;
        if (pipeline->order->rank_of_stage[s] != domain)
            continue;
        cJSON_ArrayForEach(share, own) {
            double seconds = fmin(mtf_json_number_of(own, share->string, 0), rest);
            add_to(shares, share->string, seconds);
            rest -= seconds;
        }
    }
    if (rest > 0)
        add_to(shares, "waiting for other stages", rest);
    g_array_sort(shares, by_time);
    return shares;
}

static void add_shares(const MtfPipelinePlan *pipeline) {
    g_autoptr(GArray) shares = domain_shares(pipeline, mtf_pipeline_busiest_domain(pipeline));
    cJSON_AddStringToObject(pipeline->predicted, "bound_by",
                            shares->len > 0 ? g_array_index(shares, Share, 0).name : "nothing");
    cJSON *list = cJSON_AddObjectToObject(pipeline->predicted, "shares");
    for (guint i = 0; i < shares->len; i++)
        mtf_json_add_number(list, g_array_index(shares, Share, i).name,
                            g_array_index(shares, Share, i).seconds);
}

void mtf_pipeline_summary_add(MtfPipelinePlan *pipeline, const MtfMachine *machine,
                              int64_t memory_limit) {
    g_autofree char *words = parallelism_text(pipeline);
    cJSON_AddStringToObject(pipeline->predicted, "parallelism", words);
    add_speed(pipeline);
    add_memory(pipeline, machine, memory_limit);
    add_shares(pipeline);
    cJSON *doubt = mtf_doubt_to_json(machine, mtf_judged_kind(pipeline->graph));
    if (doubt != NULL)
        cJSON_AddItemToObject(pipeline->predicted, "doubt", doubt);
}
