// SPDX-License-Identifier: GPL-3.0-or-later
/* meshtf-plan schedule NAME|FILE.csv: makes or reads the order of a pipeline, checks it, and says how
 * long it takes, where it is idle and how much it holds. */
#include "analyzer/commands/commands.h"
#include "analyzer/orders/pipeline_search.h"
#include "cost/pipeline/pipeline_schedule.h"
#include "layouts/base/command_line.h"
#include "layouts/base/error.h"
#include "layouts/base/json_writer.h"
#include "layouts/pipeline/pipeline_lower.h"
#include "layouts/pipeline/pipeline_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define PAIRS_MAX (1 << 22) /* stages times micro-batches */

/* The options as they were typed. */
typedef struct {
    gint64 stages, microbatches, chunks;
    char *times, *memory, *memory_of, *csv;
    gboolean messages, json;
} Options;

typedef struct {
    const char *name;
    MtfPipelineCase the_case;
    MtfPipelineOrder *order;
    MtfPipelineRun *run;
    MtfPipelineOrderSearch found; /* where a search was asked for */
    bool searched;
} Answer;

/* "5,6,4" or "5,6,4,0.5": `low` to 4 finite numbers; what is not given stays. */
static bool read_numbers(const char *option, const char *text, int low, double *values,
                         GError **error) {
    g_auto(GStrv) words = g_strsplit(text, ",", -1);
    int count = (int)g_strv_length(words),
        high = low == 3 && strcmp(option, "times") == 0 ? 4 : low;
    bool fits = count >= low && count <= high;
    for (int i = 0; i < count && fits; i++) {
        char *end;
        values[i] = g_ascii_strtod(g_strstrip(words[i]), &end);
        fits = *end == '\0' && end != words[i] && isfinite(values[i]);
    }
    return fits ||
           mtf_input_error(error, "--%s \"%s\" is not %s numbers between commas, like %s", option,
                           text, high == 4 ? "3 or 4" : "3", high == 4 ? "5,6,4,0.5" : "2,-1,-1");
}

static bool read_times(const Options *options, MtfStageTimes *times, GError **error) {
    double values[4] = { 1, 1, 1, 0 };
    if (options->times != NULL && !read_numbers("times", options->times, 3, values, error))
        return false;
    for (int i = 0; i < 4; i++)
        if (values[i] < 0)
            return mtf_input_error(error, "--times \"%s\" has a time below 0", options->times);
    *times = (MtfStageTimes){ values[0], values[1], values[2], values[3], values[3] };
    return true;
}

/* Shares as --memory-of says, else whole micro-batches from forward to weight gradient. */
static bool read_memory_of(const Options *options, MtfStageMemory *memory, GError **error) {
    double values[4] = { 1, 0, -1 };
    if (options->memory_of != NULL &&
        !read_numbers("memory-of", options->memory_of, 3, values, error))
        return false;
    double left = values[0] + values[1] + values[2];
    if (values[0] < 0 || fabs(left) > 1e-9 * values[0])
        return mtf_input_error(error,
                               "--memory-of \"%s\" is not what a forward takes and its gradients "
                               "give back, all of it together (like 2,-1,-1)",
                               options->memory_of);
    *memory = (MtfStageMemory){ values[0], values[1], values[2] };
    return true;
}

static bool read_cap(const Options *options, double *cap, GError **error) {
    *cap = INFINITY;
    if (options->memory == NULL)
        return true;
    char *end;
    double value = g_ascii_strtod(options->memory, &end);
    int64_t bytes = 0;
    if (end != options->memory && *end == '\0' && isfinite(value) && value > 0) {
        *cap = value;
        return true;
    }
    if (!mtf_bytes_parse(options->memory, &bytes, NULL) || bytes == 0)
        return mtf_input_error(error, "--memory \"%s\" is not a number above 0", options->memory);
    *cap = (double)bytes;
    return true;
}

/* Uniform times and shares for that many stages. */
static bool read_case(const Options *options, MtfPipelineCase *c, GError **error) {
    MtfStageTimes times;
    MtfStageMemory memory;
    if (!read_times(options, &times, error) || !read_memory_of(options, &memory, error) ||
        !read_cap(options, &c->cap, error))
        return false;
    gsize stages = (gsize)c->ranks * (gsize)c->chunks;
    MtfStageTimes *all_times = g_new(MtfStageTimes, stages);
    MtfStageMemory *all_memory = g_new(MtfStageMemory, stages);
    for (gsize s = 0; s < stages; s++) {
        all_times[s] = times;
        all_memory[s] = memory;
    }
    c->times = all_times;
    c->memory = all_memory;
    return true;
}

static bool read_count(const char *option, gint64 value, int *count, GError **error) {
    if (!mtf_option_between(option, value, 1, 1 << 16, error))
        return false;
    *count = (int)value;
    return true;
}

static bool read_counts(const Options *options, int chunks, MtfPipelineCase *c, GError **error) {
    if (options->stages == MTF_NOT_GIVEN || options->microbatches == MTF_NOT_GIVEN)
        return mtf_input_error(error, "--%s is missing",
                               options->stages == MTF_NOT_GIVEN ? "stages" : "micro-batches");
    if (!read_count("--stages", options->stages, &c->ranks, error) ||
        !read_count("--micro-batches", options->microbatches, &c->microbatches, error) ||
        !read_count("--chunks", options->chunks != MTF_NOT_GIVEN ? options->chunks : chunks,
                    &c->chunks, error))
        return false;
    return (int64_t)c->ranks * c->chunks <= PAIRS_MAX / c->microbatches ||
           mtf_input_error(error,
                           "%d stages of %d chunks and %d micro-batches are too many for one "
                           "schedule",
                           c->ranks, c->chunks, c->microbatches);
}

static bool search_order(const Options *options, Answer *answer, GError **error) {
    answer->name = "search";
    answer->searched = true;
    if (!read_counts(options, 1, &answer->the_case, error) ||
        !read_case(options, &answer->the_case, error) ||
        !mtf_pipeline_order_search(&answer->the_case, &answer->found, error))
        return false;
    answer->order = answer->found.order;
    return mtf_pipeline_fits(answer->order, &answer->the_case, "search", error);
}

static bool make_order(const Options *options, Answer *answer, GError **error) {
    if (g_ascii_strcasecmp(answer->name, "search") == 0)
        return search_order(options, answer, error);
    const MtfPipelineSchedule *schedule = mtf_pipeline_schedule(answer->name, error);
    if (schedule == NULL ||
        !read_counts(options, schedule->chunks > 0 ? schedule->chunks : 2, &answer->the_case,
                     error) ||
        !read_case(options, &answer->the_case, error))
        return false;
    answer->name = schedule->name;
    answer->order = mtf_pipeline_schedule_make(schedule, &answer->the_case, error);
    return answer->order != NULL;
}

/* What a file shows must be what the options say, where they say it. */
static bool agree(const char *file, const char *option, gint64 asked, int found, GError **error) {
    return asked == MTF_NOT_GIVEN || asked == found ||
           mtf_input_error(error, "%s has %d where --%s says %" PRId64, file, found, option,
                           (int64_t)asked);
}

static bool load_order(const Options *options, Answer *answer, GError **error) {
    MtfPipelineOrder *order = mtf_pipeline_load(answer->name, error);
    answer->order = order;
    if (order == NULL)
        return false;
    int chunks = (order->stages + order->ranks - 1) / order->ranks;
    answer->the_case.ranks = order->ranks;
    answer->the_case.chunks = chunks;
    answer->the_case.microbatches = order->microbatches;
    return agree(answer->name, "stages", options->stages, order->ranks, error) &&
           agree(answer->name, "micro-batches", options->microbatches, order->microbatches,
                 error) &&
           agree(answer->name, "chunks", options->chunks, chunks, error) &&
           read_case(options, &answer->the_case, error) &&
           mtf_pipeline_fits(order, &answer->the_case, answer->name, error);
}

static cJSON *rank_json(const Answer *answer, int rank) {
    cJSON *item = cJSON_CreateObject();
    const MtfPipelineRun *run = answer->run;
    mtf_json_add_integer(item, "rank", rank);
    mtf_json_add_integer(item, "in_flight", mtf_pipeline_in_flight(answer->order, rank));
    mtf_json_add_number(item, "memory",
                        mtf_pipeline_peak(answer->order, answer->the_case.memory, rank));
    mtf_json_add_number(item, "begin", run->first[rank]);
    mtf_json_add_number(item, "end", run->last[rank]);
    mtf_json_add_number(item, "busy", run->busy[rank]);
    return item;
}

static cJSON *slots_json(const MtfPipelineOrder *order) {
    cJSON *list = cJSON_CreateArray();
    g_autofree int *slots = g_new(int, (gsize)order->microbatches);
    for (int s = 0; s < order->stages; s++)
        cJSON_AddItemToArray(list, mtf_json_new_integer(mtf_pipeline_slots(order, s, slots)));
    return list;
}

static void print_json(const Answer *answer, int steps) {
    const MtfPipelineOrder *order = answer->order;
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "schedule", answer->name);
    mtf_json_add_integer(root, "stages", order->ranks);
    mtf_json_add_integer(root, "chunks", answer->the_case.chunks);
    mtf_json_add_integer(root, "micro_batches", order->microbatches);
    mtf_json_add_number(root, "makespan", answer->run->makespan);
    mtf_json_add_number(root, "span", answer->run->span);
    mtf_json_add_number(root, "ideal", answer->run->ideal);
    mtf_json_add_number(root, "bubble", answer->run->bubble);
    if (answer->searched) {
        mtf_json_add_number(root, "bound", answer->found.bound);
        cJSON_AddBoolToObject(root, "optimal", answer->found.proven);
        cJSON_AddStringToObject(root, "begun", answer->found.begun);
    }
    cJSON *flight = cJSON_AddArrayToObject(root, "in_flight");
    cJSON *memory = cJSON_AddArrayToObject(root, "memory");
    cJSON *ranks = cJSON_CreateArray();
    for (int r = 0; r < order->ranks; r++) {
        cJSON_AddItemToArray(flight, mtf_json_new_integer(mtf_pipeline_in_flight(order, r)));
        cJSON_AddItemToArray(
            memory, mtf_json_new_number(mtf_pipeline_peak(order, answer->the_case.memory, r)));
        cJSON_AddItemToArray(ranks, rank_json(answer, r));
    }
    cJSON_AddItemToObject(root, "slots", slots_json(order));
    mtf_json_add_integer(root, "steps", steps);
    cJSON_AddItemToObject(root, "ranks", ranks);
    mtf_json_say(root);
}

/* The letter of a picture: capitals and small letters tell the chunks of a rank apart. */
static char letter_of(const MtfPipelineOrder *order, const MtfPipelineAction *action) {
    char letter = "FIWB"[action->work];
    return action->stage >= order->ranks ? g_ascii_tolower(letter) : letter;
}

/* One line a rank over `width` columns of time: letters where it computes, dots where it waits. */
static void draw_rank(const Answer *answer, int rank, int width) {
    g_autofree char *line = g_strnfill((gsize)width, '.');
    for (int i = 0; i < mtf_pipeline_length(answer->order, rank); i++) {
        const MtfPipelineAction *action = mtf_pipeline_action(answer->order, rank, i);
        const MtfActionTime *time = &answer->run->time[rank][i];
        if (!mtf_work_computes(action->work))
            continue;
        int begin = (int)(time->begin / answer->run->makespan * width + 1e-9);
        int end = (int)(time->end / answer->run->makespan * width + 1e-9);
        for (int column = begin; column < end; column++)
            line[column] = letter_of(answer->order, action);
    }
    printf("  %3d |%s| %d in flight, holds %.6g\n", rank, line,
           mtf_pipeline_in_flight(answer->order, rank),
           mtf_pipeline_peak(answer->order, answer->the_case.memory, rank));
}

static void draw_ranks(const Answer *answer) {
    double makespan = answer->run->makespan;
    int width = makespan <= 120 && makespan == floor(makespan) ? (int)makespan : 100;
    for (int r = 0; r < answer->order->ranks; r++)
        draw_rank(answer, r, width);
    puts(
        "  F forward, B backward, I input gradient, W weight gradient; small letters: later chunks");
}

static void print_picture(const Answer *answer, int steps) {
    const MtfPipelineRun *run = answer->run;
    const MtfPipelineOrder *order = answer->order;
    printf("%s: %d stage%s of %d chunk%s, %d micro-batch%s\n", answer->name, order->ranks,
           order->ranks > 1 ? "s" : "", answer->the_case.chunks,
           answer->the_case.chunks > 1 ? "s" : "", order->microbatches,
           order->microbatches > 1 ? "es" : "");
    printf("  makespan %.10g, span %.10g, ideal %.10g, bubble %.2f %%, %d steps with messages\n",
           run->makespan, run->span, run->ideal, 100 * run->bubble, steps);
    if (answer->searched)
        printf("  grown from %s; no span is below %.10g%s\n", answer->found.begun,
               answer->found.bound, answer->found.proven ? ", which is reached" : "");
    if (run->makespan > 0)
        draw_ranks(answer);
}

static bool write_csv(const Options *options, const MtfPipelineOrder *order,
                      const MtfPipelineOrder *lowered, GError **error) {
    if (options->csv == NULL)
        return true;
    g_autofree char *text = mtf_pipeline_format(options->messages ? lowered : order);
    return mtf_file_write(options->csv, text, strlen(text), error);
}

static bool answer_question(const Options *options, Answer *answer, GError **error) {
    bool is_file = g_str_has_suffix(answer->name, ".csv") || strchr(answer->name, '/') != NULL ||
                   strcmp(answer->name, "-") == 0;
    if (!(is_file ? load_order : make_order)(options, answer, error))
        return false;
    g_autoptr(MtfPipelineOrder) lowered = mtf_pipeline_lower(answer->order);
    answer->run = mtf_pipeline_run_new(answer->order, answer->the_case.times);
    if (!write_csv(options, answer->order, lowered, error))
        return false;
    if (options->csv == NULL || strcmp(options->csv, "-") != 0)
        (options->json ? print_json : print_picture)(answer, mtf_pipeline_steps(lowered));
    return true;
}

static bool run(const Options *options, const char *name, GError **error) {
    Answer answer = { .name = name };
    bool done = answer_question(options, &answer, error);
    mtf_pipeline_order_free(answer.order);
    mtf_pipeline_run_free(answer.run);
    g_free((void *)answer.the_case.times);
    g_free((void *)answer.the_case.memory);
    return done;
}

#define TEXT(name, field, help, what) \
    { name, 0, 0, G_OPTION_ARG_STRING, &o.field, help, what }
#define COUNT(name, field, help, what) \
    { name, 0, 0, G_OPTION_ARG_INT64, &o.field, help, what }

int mtf_command_schedule(int argc, char **argv) {
    Options o = { .stages = MTF_NOT_GIVEN, .microbatches = MTF_NOT_GIVEN, .chunks = MTF_NOT_GIVEN };
    const GOptionEntry entries[] = {
        COUNT("stages", stages, "Devices, or groups of devices, in a row", "P"),
        COUNT("micro-batches", microbatches, "Micro-batches of a step", "M"),
        COUNT("chunks", chunks, "Stages on each device (1, or as the schedule needs)", "V"),
        TEXT(
            "times", times,
            "Of a chunk's forward, input gradient and weight gradient, and of a transfer (1,1,1,0)",
            "F,B,W,C"),
        TEXT("memory", memory, "The most that a device may hold (in micro-batches of a chunk)",
             "CAP"),
        TEXT("memory-of", memory_of, "What F, B and W add to what a device holds (1,0,-1)",
             "F,B,W"),
        TEXT("csv", csv, "Write the order in PyTorch's grammar (- for standard output, alone)",
             "FILE"),
        { "messages", 0, 0, G_OPTION_ARG_NONE, &o.messages, "… with its sends and receives", NULL },
        { "json", 0, 0, G_OPTION_ARG_NONE, &o.json, "Print JSON", NULL },
        G_OPTION_ENTRY_NULL,
    };
    GError *error = NULL;
    bool done = mtf_command_line_parse(
                    &argc, &argv, entries, "NAME|FILE.csv --stages P --micro-batches M …",
                    "Simulates a pipeline schedule: gpipe, 1f1b, eager-1f1b, interleaved, zb-h1, "
                    "zb-h2, zb-1p, zb-2p, zb-auto, zb-v, v-half, v-min, dualpipe-v, an order in "
                    "PyTorch's CSV grammar, or the best order that `search` finds within --memory.",
                    1, 1, &error) &&
                run(&o, argv[1], &error);
    mtf_command_line_clear(entries);
    return done ? 0 : mtf_command_line_fail("meshtf-plan schedule", error);
}
