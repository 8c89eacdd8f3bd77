// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/price/predict.h"

#include "cost/memory/arena.h"
#include "cost/price/schedule.h"
#include "layouts/base/command_line.h"
#include "layouts/base/json_writer.h"
#include "layouts/graph/loops.h"

#include <string.h>

/* Traffic. */

static const char *reduction_name(MtfReduction reduction) {
    switch (reduction) {
    case MTF_REDUCE_SUM:
        return "sum";
    case MTF_REDUCE_MAX:
        return "max";
    default:
        return "none";
    }
}

static int64_t payload_of(const MtfProgram *program, int index, int rank) {
    if (rank >= 0)
        return mtf_instruction_payload(program, index, rank);
    return mtf_program_instruction(program, index)->payload_bytes;
}

static bool same_row(const MtfTrafficRow *a, const MtfTrafficRow *b) {
    return a->kind == b->kind && a->reduction == b->reduction && a->axes == b->axes &&
           a->group == b->group;
}

static MtfTrafficRow *row_for(GArray *rows, const MtfTrafficRow *like) {
    for (guint i = 0; i < rows->len; i++)
        if (same_row(&g_array_index(rows, MtfTrafficRow, i), like))
            return &g_array_index(rows, MtfTrafficRow, i);
    g_array_append_val(rows, *like);
    return &g_array_index(rows, MtfTrafficRow, rows->len - 1);
}

static void add_collective(GArray *rows, const MtfPricer *pricer, const MtfProgram *program,
                           const MtfConsumers *consumers, int index, int rank) {
    const MtfInstruction *instruction = mtf_program_instruction(program, index);
    MtfCollectiveKind kind;
    if (!mtf_instruction_collective_kind(instruction, &kind))
        return;
    bool reduces = kind == MTF_ALLREDUCE || kind == MTF_REDUCE_SCATTER;
    MtfTrafficRow like = { .kind = instruction->reshard.kind, .axes = instruction->reshard.axes };
    like.reduction = reduces ? instruction->reshard.reduction : MTF_REDUCE_NONE;
    like.group = mtf_instruction_traffic_group(program, consumers, index);
    MtfTrafficRow *row = row_for(rows, &like);
    int64_t bytes = payload_of(program, index, rank), times = mtf_program_times(program, index);
    row->calls += times * mtf_instruction_calls(program, index);
    row->elements +=
        times * bytes / mtf_dtype_bytes(mtf_reshard_tensor(program, instruction)->dtype);
    row->bytes += times * bytes;
    row->link_bytes +=
        (double)times * mtf_collective_link_bytes(&pricer->map, kind, like.axes, (double)bytes);
    row->nanoseconds += times * mtf_price_instruction(pricer, program, index);
}

static int compare_rows(const void *left, const void *right) {
    const MtfTrafficRow *a = left, *b = right;
    if (a->group != b->group)
        return (int)a->group - (int)b->group;
    if (a->kind != b->kind)
        return (int)a->kind - (int)b->kind;
    if (a->reduction != b->reduction)
        return (int)a->reduction - (int)b->reduction;
    return (a->axes > b->axes) - (a->axes < b->axes);
}

GArray *mtf_predict_traffic(const MtfPricer *pricer, const MtfProgram *program, int rank) {
    GArray *rows = g_array_new(FALSE, TRUE, sizeof(MtfTrafficRow));
    g_autoptr(MtfConsumers) consumers = mtf_graph_consumers(program->graph);
    for (int i = 0; i < mtf_program_length(program); i++)
        add_collective(rows, pricer, program, consumers, i, rank);
    g_array_sort(rows, compare_rows);
    return rows;
}

static cJSON *axes_to_json(const MtfMesh *mesh, unsigned axes) {
    cJSON *list = cJSON_CreateArray();
    for (int a = 0; a < mesh->n_axes; a++)
        if (axes >> a & 1)
            cJSON_AddItemToArray(list, cJSON_CreateString(mesh->axes[a].name));
    return list;
}

static cJSON *row_to_json(const MtfMesh *mesh, const MtfTrafficRow *row) {
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "kind", mtf_reshard_row(row->kind)->name);
    cJSON_AddStringToObject(object, "reduction", reduction_name(row->reduction));
    cJSON_AddItemToObject(object, "axes", axes_to_json(mesh, row->axes));
    cJSON_AddStringToObject(object, "group", mtf_traffic_group_name(row->group));
    mtf_json_add_integer(object, "calls", row->calls);
    mtf_json_add_integer(object, "elements", row->elements);
    mtf_json_add_integer(object, "bytes", row->bytes);
    mtf_json_add_number(object, "link_bytes", row->link_bytes);
    mtf_json_add_number(object, "seconds", (double)row->nanoseconds / 1e9);
    return object;
}

static void add_collectives(cJSON *object, const MtfPricer *pricer, const MtfProgram *program) {
    g_autoptr(GArray) rows = mtf_predict_traffic(pricer, program, -1);
    cJSON *list = cJSON_AddArrayToObject(object, "collectives");
    for (guint i = 0; i < rows->len; i++)
        cJSON_AddItemToArray(
            list, row_to_json(&program->layout->mesh, &g_array_index(rows, MtfTrafficRow, i)));
}

/* Time and work. */

static void add_seconds(cJSON *object, const MtfPricer *pricer, const MtfProgram *program) {
    g_autoptr(MtfSchedule) schedule = mtf_schedule_new(pricer, program);
    double flops = 0, multiply_adds = 0;
    for (int i = 0; i < schedule->length; i++) {
        const MtfInstruction *instruction = mtf_program_instruction(program, i);
        int times = mtf_program_times(program, i);
        flops += times * instruction->flops;
        multiply_adds += times * instruction->multiply_adds;
    }
    mtf_json_add_number(object, "step_seconds", (double)schedule->nanoseconds / 1e9);
    mtf_json_add_number(object, "compute_seconds", (double)schedule->compute / 1e9);
    mtf_json_add_number(object, "communication_seconds", (double)schedule->transfers / 1e9);
    mtf_json_add_number(object, "exposed_communication_seconds", (double)schedule->exposed / 1e9);
    if (schedule->host > 0)
        mtf_json_add_number(object, "host_seconds", (double)schedule->host / 1e9);
    mtf_json_add_number(object, "flops", flops);
    mtf_json_add_number(object, "multiply_adds", multiply_adds);
}

/* What waits with the host, and what it takes to bring it there and back. */
static void add_host(cJSON *object, const MtfPricer *pricer, const MtfProgram *program,
                     const MtfArena *arena) {
    int64_t bytes = 0;
    for (int i = 0; i < mtf_program_length(program); i++)
        bytes += mtf_program_times(program, i) * mtf_instruction_host_bytes(program, i, -1);
    if (bytes == 0)
        return;
    g_autoptr(MtfSchedule) schedule = mtf_schedule_new(pricer, program);
    mtf_json_add_integer(object, "host_memory_bytes", arena->host_bytes);
    mtf_json_add_integer(object, "host_copy_bytes", bytes);
    mtf_json_add_number(object, "host_copy_seconds", (double)schedule->host_copies / 1e9);
    mtf_json_add_number(object, "exposed_host_copy_seconds",
                        (double)schedule->exposed_host_copies / 1e9);
}

static void add_memory(cJSON *object, const MtfProgram *program, const MtfArena *arena) {
    int64_t bytes[MTF_MEMORY_KINDS], sum = 0;
    mtf_arena_peak(program, bytes);
    mtf_json_add_integer(object, "peak_memory_bytes", arena->bytes);
    cJSON *kinds = cJSON_AddObjectToObject(object, "memory");
    for (int k = 0; k < MTF_MEMORY_HOST; k++) { /* of the device */
        mtf_json_add_integer(kinds, mtf_memory_name((MtfMemoryKind)k), bytes[k]);
        sum += bytes[k];
    }
    mtf_json_add_integer(kinds, "gaps", arena->bytes - sum);
}

/* "while" blocks, which are counted as if they never ended early. */
static void add_bounds(cJSON *object, const MtfProgram *program) {
    const MtfGraph *graph = program->graph;
    cJSON *bounds = NULL;
    for (int l = 1; l <= (int)graph->loops->len; l++) {
        if (mtf_loop_condition(graph, l) < 0)
            continue;
        if (bounds == NULL)
            bounds = cJSON_AddObjectToObject(object, "while");
        mtf_json_add_integer(bounds, mtf_graph_loop(graph, l)->name, mtf_loop_count(graph, l));
    }
}

cJSON *mtf_predict(const MtfPricer *pricer, const MtfProgram *program) {
    cJSON *object = cJSON_CreateObject();
    g_autoptr(MtfArena) arena = mtf_arena_pack(program);
    add_seconds(object, pricer, program);
    add_memory(object, program, arena);
    add_host(object, pricer, program, arena);
    add_collectives(object, pricer, program);
    add_bounds(object, program);
    return object;
}

/* Tables. Numbers are read through their printed form, because integers are kept as raw text. */

static double number_of(const cJSON *object, const char *key) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    if (cJSON_IsRaw(item))
        return g_ascii_strtod(item->valuestring, NULL);
    return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

static char *axes_text(const cJSON *row) {
    GString *text = g_string_new(NULL);
    const cJSON *axis;
    cJSON_ArrayForEach(axis, cJSON_GetObjectItemCaseSensitive(row, "axes")) {
        g_string_append_printf(text, "%s%s", text->len > 0 ? "," : "",
                               cJSON_IsString(axis) ? axis->valuestring : "");
    }
    return g_string_free(text, FALSE);
}

static void format_times(GString *text, const cJSON *predicted) {
    double step = number_of(predicted, "step_seconds"), flops = number_of(predicted, "flops");
    double parts[] = { number_of(predicted, "compute_seconds"),
                       number_of(predicted, "communication_seconds") };
    double exposed = number_of(predicted, "exposed_communication_seconds");
    static const char *const names[] = { "compute", "communication" };
    g_autofree char *total = mtf_seconds_format(step);
    g_string_append_printf(text, "step           %s\n", total);
    for (int i = 0; i < 2; i++) {
        g_autofree char *part = mtf_seconds_format(parts[i]);
        g_string_append_printf(text, "%-14s %s (%.1f %%)", names[i], part,
                               step > 0 ? 100 * parts[i] / step : 0);
        g_autofree char *waits = mtf_seconds_format(exposed);
        if (i == 1 && exposed < parts[i])
            g_string_append_printf(text, ", %s of it while nothing computes", waits);
        g_string_append_c(text, '\n');
    }
    if (number_of(predicted, "host_seconds") > 0) {
        g_autofree char *host = mtf_seconds_format(number_of(predicted, "host_seconds"));
        g_string_append_printf(text,
                               "host           %s: launches that kernels wait for, and what the "
                               "software adds to a step\n",
                               host);
    }
    g_autofree char *work = mtf_count_format(flops);
    g_autofree char *rate = mtf_count_format(step > 0 ? flops / step : 0);
    g_autofree char *adds = mtf_count_format(number_of(predicted, "multiply_adds"));
    g_string_append_printf(text,
                           "work           %sflop a rank, %sflop/s; %s multiply-adds in products\n",
                           work, rate, g_strchomp(adds));
}

static void format_memory(GString *text, const cJSON *predicted) {
    g_autofree char *peak = mtf_bytes_format(number_of(predicted, "peak_memory_bytes"));
    g_string_append_printf(text, "memory         %s a rank:", peak);
    const char *comma = "";
    const cJSON *kind;
    cJSON_ArrayForEach(kind, cJSON_GetObjectItemCaseSensitive(predicted, "memory")) {
        double bytes =
            number_of(cJSON_GetObjectItemCaseSensitive(predicted, "memory"), kind->string);
        if (bytes <= 0)
            continue;
        g_autofree char *share = mtf_bytes_format(bytes);
        g_string_append_printf(text, "%s %s %s", comma, kind->string, share);
        comma = ",";
    }
    g_string_append_c(text, '\n');
}

static void format_host(GString *text, const cJSON *predicted) {
    double copied = number_of(predicted, "host_copy_bytes");
    if (copied <= 0)
        return;
    g_autofree char *kept = mtf_bytes_format(number_of(predicted, "host_memory_bytes"));
    g_autofree char *bytes = mtf_bytes_format(copied);
    g_autofree char *seconds = mtf_seconds_format(number_of(predicted, "host_copy_seconds"));
    g_autofree char *waits = mtf_seconds_format(number_of(predicted, "exposed_host_copy_seconds"));
    g_string_append_printf(
        text,
        "host memory    %s a rank, with the host: %s there and back a step in %s, "
        "which makes the step %s longer\n",
        kept, bytes, seconds, waits);
}

/* Counts below this are printed to the last digit. */
#define EXACT_BELOW 1e5

static void format_collective(GString *text, const cJSON *row) {
    g_autofree char *axes = axes_text(row);
    g_autofree char *bytes = mtf_bytes_format(number_of(row, "bytes"));
    g_autofree char *links = mtf_bytes_format(number_of(row, "link_bytes"));
    g_autofree char *seconds = mtf_seconds_format(number_of(row, "seconds"));
    const char *reduction = mtf_json_text_of(row, "reduction");
    g_autofree char *kind = g_strdup_printf("%s%s%s", mtf_json_text_of(row, "kind"),
                                            strcmp(reduction, "none") != 0 ? " " : "",
                                            strcmp(reduction, "none") != 0 ? reduction : "");
    double count = number_of(row, "elements");
    g_autofree char *elements =
        count < EXACT_BELOW ? g_strdup_printf("%.0f", count) : mtf_count_format(count);
    g_string_append_printf(text, "%-10s %-18s %-12s %7.0f %12s %12s %12s %12s\n",
                           mtf_json_text_of(row, "group"), kind, axes, number_of(row, "calls"),
                           elements, bytes, links, seconds);
}

static void format_bounds(GString *text, const cJSON *predicted) {
    const cJSON *bound;
    cJSON_ArrayForEach(bound, cJSON_GetObjectItemCaseSensitive(predicted, "while")) {
        g_string_append_printf(
            text,
            "%-14s %.0f iterations at most, all of which are counted: it ends "
            "before where its condition becomes false\n",
            bound->string,
            number_of(cJSON_GetObjectItemCaseSensitive(predicted, "while"), bound->string));
    }
}

char *mtf_predicted_format(const cJSON *predicted) {
    GString *text = g_string_new(NULL);
    format_times(text, predicted);
    format_memory(text, predicted);
    format_host(text, predicted);
    format_bounds(text, predicted);
    const cJSON *rows = cJSON_GetObjectItemCaseSensitive(predicted, "collectives"), *row;
    if (cJSON_GetArraySize(rows) == 0) {
        g_string_append(text, "no communication\n");
        return g_string_free(text, FALSE);
    }
    g_string_append_printf(text, "\n%-10s %-18s %-12s %7s %12s %12s %12s %12s\n", "traffic",
                           "collective", "axes", "calls", "elements", "payload", "on links",
                           "time");
    cJSON_ArrayForEach(row, rows) {
        format_collective(text, row);
    }
    return g_string_free(text, FALSE);
}
