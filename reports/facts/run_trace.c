// SPDX-License-Identifier: GPL-3.0-or-later
#include "reports/facts/run_trace.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAX_RANKS 65536

/* A complete event as the file has it. */
typedef struct {
    int64_t process, thread;
    int kind;
    double start, end; /* microseconds */
    bool ends, holds_others;
    MtfRunPass pass; /* letter 0: it is none */
} Raw;

typedef struct {
    GArray *raws; /* Raw */
    bool ranks_are_processes, ranks_are_threads;
} Reader;

static int kind_of(const char *name) {
    for (int k = 0; k < MTF_RESHARD_KINDS; k++) {
        MtfReshardKind kind = (MtfReshardKind)k;
        if (mtf_reshard_row(kind)->collective &&
            g_str_has_prefix(name, mtf_reshard_row(kind)->name))
            return k;
    }
    return -1;
}

static bool read_id(const MtfJson *event, const char *key, int64_t *id, GError **error) {
    return mtf_json_get_integer(event, key, 0, MAX_RANKS - 1, id, error);
}

static bool read_time(const MtfJson *event, const char *key, double *time, GError **error) {
    MtfJson member;
    return mtf_json_get(event, key, &member, error) && mtf_json_number(&member, time, error) &&
           (*time >= 0 || mtf_json_fail(&member, error, "must be 0 or more"));
}

/* "12F3": forward pass of stage 12 over micro-batch 3. */
static bool read_pass(const MtfJson *event, const char *name, MtfRunPass *pass, GError **error) {
    const cJSON *category = cJSON_GetObjectItemCaseSensitive(event->node, "cat");
    char letter[2] = "";
    int length = 0;
    if (g_strcmp0(cJSON_GetStringValue(category), "pass") != 0)
        return true;
    if (sscanf(name, "%4d%1[FBIW]%6d%n", &pass->stage, letter, &pass->microbatch, &length) != 3 ||
        name[length] != '\0' || pass->stage < 0 || pass->microbatch < 0)
        return mtf_json_fail(event, error, "is a pass, but its name is not like 0F3");
    pass->letter = letter[0];
    return true;
}

static bool read_complete(Reader *reader, const MtfJson *event, const char *name, GError **error) {
    Raw raw = { .kind = kind_of(name), .ends = g_str_has_suffix(name, ", end") };
    double duration;
    if (!read_pass(event, name, &raw.pass, error))
        return false;
    if (!read_id(event, "pid", &raw.process, error) || !read_id(event, "tid", &raw.thread, error) ||
        !read_time(event, "ts", &raw.start, error) || !read_time(event, "dur", &duration, error))
        return false;
    raw.end = raw.start + duration;
    g_array_append_val(reader->raws, raw);
    return true;
}

/* Processes or threads that are called "rank 3" are ranks. */
static void read_name(Reader *reader, const MtfJson *event, const char *what) {
    const cJSON *args = cJSON_GetObjectItemCaseSensitive(event->node, "args");
    const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(args, "name"));
    if (name == NULL || !g_str_has_prefix(name, "rank"))
        return;
    reader->ranks_are_processes |= strcmp(what, "process_name") == 0;
    reader->ranks_are_threads |= strcmp(what, "thread_name") == 0;
}

static bool read_event(Reader *reader, const MtfJson *event, GError **error) {
    const char *name_text, *type_text;
    if (!mtf_json_get_string(event, "name", &name_text, error) ||
        !mtf_json_get_string(event, "ph", &type_text, error))
        return false;
    if (strcmp(type_text, "M") == 0)
        read_name(reader, event, name_text);
    return strcmp(type_text, "X") != 0 || read_complete(reader, event, name_text, error);
}

static bool read_events(Reader *reader, const MtfJson *root, GError **error) {
    MtfJson list, event;
    if (!mtf_json_get_array(root, "traceEvents", &list, error))
        return false;
    for (bool more = mtf_json_first(&list, &event); more; more = mtf_json_next(&event))
        if (!read_event(reader, &event, error))
            return false;
    return reader->raws->len > 0 ||
           mtf_json_fail(&list, error, "holds no complete event (\"ph\": \"X\")");
}

/* ---- From the file's events to ranks' ------------------------------------------------------- */

/* By process, thread and start, the longer first, so that what holds others precedes them. */
static int compare_raws(const void *left, const void *right) {
    const Raw *a = left, *b = right;
    if (a->process != b->process)
        return a->process < b->process ? -1 : 1;
    if (a->thread != b->thread)
        return a->thread < b->thread ? -1 : 1;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    return (a->end < b->end) - (a->end > b->end);
}

static void find_holders(GArray *raws) {
    g_array_sort(raws, compare_raws);
    for (guint i = 0; i + 1 < raws->len; i++) {
        Raw *raw = &g_array_index(raws, Raw, i);
        const Raw *next = raw + 1;
        raw->holds_others = next->process == raw->process && next->thread == raw->thread &&
                            next->start >= raw->start && next->end <= raw->end &&
                            next->start < raw->end;
    }
}

static bool ranks_are_processes(const Reader *reader) {
    if (reader->ranks_are_processes || reader->ranks_are_threads)
        return reader->ranks_are_processes;
    const Raw *first = &g_array_index(reader->raws, Raw, 0);
    const Raw *last = &g_array_index(reader->raws, Raw, reader->raws->len - 1);
    return first->process != last->process;
}

static int compare_events(const void *left, const void *right) {
    const MtfRunEvent *a = left, *b = right;
    if (a->rank != b->rank)
        return a->rank - b->rank;
    return (a->start > b->start) - (a->start < b->start);
}

static MtfRunTrace *trace_of(const Reader *reader) {
    MtfRunTrace *trace = g_new0(MtfRunTrace, 1);
    trace->events = g_array_new(FALSE, TRUE, sizeof(MtfRunEvent));
    trace->passes = g_array_new(FALSE, TRUE, sizeof(MtfRunPass));
    bool processes = ranks_are_processes(reader);
    double first = INFINITY, last = 0;
    for (guint i = 0; i < reader->raws->len; i++) {
        const Raw *raw = &g_array_index(reader->raws, Raw, i);
        first = MIN(first, raw->start);
        last = MAX(last, raw->end);
    }
    for (guint i = 0; i < reader->raws->len; i++) {
        const Raw *raw = &g_array_index(reader->raws, Raw, i);
        MtfRunEvent event = { (int)(processes ? raw->process : raw->thread), raw->kind, raw->ends,
                              (raw->start - first) / 1e6, (raw->end - raw->start) / 1e6 };
        trace->ranks = MAX(trace->ranks, event.rank + 1);
        if (raw->pass.letter != 0) {
            MtfRunPass pass = raw->pass;
            pass.rank = event.rank;
            pass.start = event.start;
            pass.seconds = event.seconds;
            g_array_append_val(trace->passes, pass);
        } else if (!raw->holds_others) {
            g_array_append_val(trace->events, event);
        }
    }
    trace->seconds = (last - first) / 1e6;
    g_array_sort(trace->events, compare_events);
    return trace;
}

/* ---- Entry --------------------------------------------------------------------------------- */

MtfRunTrace *mtf_run_trace_from_json(const MtfJson *root, GError **error) {
    g_autoptr(GArray) raws = g_array_new(FALSE, TRUE, sizeof(Raw));
    Reader reader = { .raws = raws };
    if (!read_events(&reader, root, error))
        return NULL;
    find_holders(raws);
    return trace_of(&reader);
}

MtfRunTrace *mtf_run_trace_load(const char *path, GError **error) {
    g_autoptr(MtfJsonDocument) document = mtf_json_document_load(path, error);
    if (document == NULL)
        return NULL;
    MtfJson root = mtf_json_root(document);
    return mtf_run_trace_from_json(&root, error);
}

void mtf_run_trace_free(MtfRunTrace *trace) {
    if (trace == NULL)
        return;
    g_array_unref(trace->events);
    g_array_unref(trace->passes);
    g_free(trace);
}

double mtf_run_trace_seconds(const MtfRunTrace *trace, int rank, int kind) {
    double seconds = 0;
    for (guint i = 0; i < trace->events->len; i++) {
        const MtfRunEvent *event = &g_array_index(trace->events, MtfRunEvent, i);
        seconds += event->rank == rank && event->kind == kind ? event->seconds : 0;
    }
    return seconds;
}

int mtf_run_trace_calls(const MtfRunTrace *trace, int rank, int kind) {
    int calls = 0;
    for (guint i = 0; i < trace->events->len; i++) {
        const MtfRunEvent *event = &g_array_index(trace->events, MtfRunEvent, i);
        calls += event->rank == rank && event->kind == kind && !event->ends;
    }
    return calls;
}
