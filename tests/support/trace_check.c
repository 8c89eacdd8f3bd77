// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/trace_check.h"

#include "layouts/base/error.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

/* Times are compared in whole nanoseconds, so that sums of decimals do not decide. */
typedef struct {
    gint64 start, end;
} Span;

typedef struct {
    GHashTable *open;    /* "pid/tid" -> GArray of Span, the outermost first */
    GHashTable *latest;  /* "pid/tid/type" -> gint64 of the last start */
    GHashTable *named;   /* "pid" and "pid/tid" that have names */
    GHashTable *threads; /* "pid/tid" with complete events */
} Checker;

static const char *text_of(const cJSON *event, const char *key) {
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(event, key));
}

static bool number_of(const cJSON *event, const char *key, double *value) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(event, key);
    if (!cJSON_IsNumber(item) || !isfinite(item->valuedouble))
        return false;
    *value = item->valuedouble;
    return true;
}

static bool nanoseconds_of(const cJSON *event, const char *key, gint64 *value) {
    double microseconds;
    if (!number_of(event, key, &microseconds) || microseconds < 0)
        return false;
    *value = llround(microseconds * 1000);
    return true;
}

/* Starts of one type on one thread may not fall. */
static bool check_order(Checker *checker, const char *thread, const char *type, gint64 start,
                        GError **error) {
    g_autofree char *key = g_strdup_printf("%s/%s", thread, type);
    gint64 *latest = g_hash_table_lookup(checker->latest, key);
    if (latest != NULL && start < *latest)
        return mtf_failure(error, "an event of %s starts before the one written before it", key);
    gint64 *now = g_new(gint64, 1);
    *now = start;
    g_hash_table_replace(checker->latest, g_steal_pointer(&key), now);
    return true;
}

static bool check_nesting(Checker *checker, const char *thread, Span span, GError **error) {
    GArray *open = g_hash_table_lookup(checker->open, thread);
    if (open == NULL) {
        open = g_array_new(FALSE, FALSE, sizeof(Span));
        g_hash_table_insert(checker->open, g_strdup(thread), open);
    }
    while (open->len > 0 && g_array_index(open, Span, open->len - 1).end <= span.start)
        g_array_set_size(open, open->len - 1);
    if (open->len > 0 && g_array_index(open, Span, open->len - 1).end < span.end)
        return mtf_failure(error, "an event of %s ends after the one that holds it", thread);
    g_array_append_val(open, span);
    return true;
}

static bool check_complete(Checker *checker, const cJSON *event, const char *thread,
                           GError **error) {
    gint64 start, duration;
    if (!nanoseconds_of(event, "ts", &start) || !nanoseconds_of(event, "dur", &duration))
        return mtf_failure(error, "a complete event lacks ts and dur of at least 0");
    g_hash_table_add(checker->threads, g_strdup(thread));
    return check_order(checker, thread, "X", start, error) &&
           check_nesting(checker, thread, (Span){ start, start + duration }, error);
}

static bool check_counter(Checker *checker, const cJSON *event, const char *thread,
                          GError **error) {
    gint64 start;
    const cJSON *series, *args = cJSON_GetObjectItemCaseSensitive(event, "args");
    if (!nanoseconds_of(event, "ts", &start) || cJSON_GetArraySize(args) == 0)
        return mtf_failure(error, "a counter lacks ts or args");
    cJSON_ArrayForEach(series, args) {
        if (!cJSON_IsNumber(series))
            return mtf_failure(error, "a counter counts something that is no number");
    }
    return check_order(checker, thread, "C", start, error);
}

static bool check_name(Checker *checker, const cJSON *event, const char *process,
                       const char *thread, GError **error) {
    const char *name = text_of(event, "name");
    if (text_of(cJSON_GetObjectItemCaseSensitive(event, "args"), "name") == NULL)
        return mtf_failure(error, "a metadata event names nothing");
    if (strcmp(name, "process_name") == 0)
        g_hash_table_add(checker->named, g_strdup(process));
    else if (strcmp(name, "thread_name") == 0)
        g_hash_table_add(checker->named, g_strdup(thread));
    else
        return mtf_failure(error, "the metadata event %s is unknown", name);
    return true;
}

static bool check_event(Checker *checker, const cJSON *event, GError **error) {
    double pid, tid;
    const char *type = text_of(event, "ph");
    if (type == NULL || text_of(event, "name") == NULL || !number_of(event, "pid", &pid) ||
        !number_of(event, "tid", &tid))
        return mtf_failure(error, "an event lacks name, ph, pid or tid");
    g_autofree char *process = g_strdup_printf("%.0f", pid);
    g_autofree char *thread = g_strdup_printf("%.0f/%.0f", pid, tid);
    if (strcmp(type, "X") == 0)
        return check_complete(checker, event, thread, error);
    if (strcmp(type, "C") == 0)
        return check_counter(checker, event, thread, error);
    if (strcmp(type, "M") == 0)
        return check_name(checker, event, process, thread, error);
    return mtf_failure(error, "an event has the type %s", type);
}

static bool check_names(const Checker *checker, GError **error) {
    GHashTableIter iterator;
    gpointer key;
    g_hash_table_iter_init(&iterator, checker->threads);
    while (g_hash_table_iter_next(&iterator, &key, NULL)) {
        g_autofree char *process = g_strndup(key, strcspn(key, "/"));
        if (!g_hash_table_contains(checker->named, key) ||
            !g_hash_table_contains(checker->named, process))
            return mtf_failure(error, "thread %s has no name, or its process", (char *)key);
    }
    return true;
}

static bool check_events(Checker *checker, const cJSON *root, GError **error) {
    const cJSON *event, *events = cJSON_GetObjectItemCaseSensitive(root, "traceEvents");
    if (!cJSON_IsArray(events))
        return mtf_failure(error, "there is no list traceEvents");
    cJSON_ArrayForEach(event, events) {
        if (!check_event(checker, event, error))
            return false;
    }
    return check_names(checker, error);
}

bool mtf_trace_check(const char *text, GError **error) {
    cJSON *root = cJSON_ParseWithOpts(text, NULL, 1);
    if (root == NULL)
        return mtf_failure(error, "it is not JSON");
    Checker checker = {
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)g_array_unref),
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free),
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
    };
    bool good = check_events(&checker, root, error);
    g_hash_table_unref(checker.open);
    g_hash_table_unref(checker.latest);
    g_hash_table_unref(checker.named);
    g_hash_table_unref(checker.threads);
    cJSON_Delete(root);
    return good;
}
