// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/graph_file/window_json.h"

#include "layouts/base/json_writer.h"
#include "layouts/graph/window.h"
#include "layouts/graph_file/graph_fields.h"

#include <inttypes.h>

static bool read_count(const MtfJson *object, const char *key, int64_t least, int *value,
                       GError **error) {
    int64_t number = *value;
    if (!mtf_json_optional_integer(object, key, least, G_MAXINT32, &number, error))
        return false;
    *value = (int)number;
    return true;
}

static bool read_side(const MtfGraph *graph, const MtfJson *object, const char *key, int *dim,
                      GError **error) {
    MtfJson child;
    return mtf_json_get(object, key, &child, error) &&
           mtf_field_dimension(graph, &child, dim, error);
}

static bool read_places(const MtfGraph *graph, const MtfJson *object, MtfWindow *window,
                        GError **error) {
    MtfJson child;
    bool filter = mtf_json_find(object, "kernel", &child), sized;
    if (filter && !mtf_field_dimension(graph, &child, &window->kernel, error))
        return false;
    sized = mtf_json_find(object, "size", &child);
    return filter != sized ? read_count(object, "size", 1, &window->size, error)
                           : mtf_json_fail(object, error,
                                           "a window has either \"kernel\", a dimension of the "
                                           "filter, or \"size\", its elements");
}

/* A window that is being read. */
typedef struct {
    const MtfGraph *graph;
    const MtfOperationRow *row;
    MtfWindow *window;
} Reading;

static int64_t large_size(const Reading *r) {
    return mtf_graph_size(r->graph, mtf_window_larger(r->row, r->window));
}

static int64_t small_size(const Reading *r) {
    return mtf_graph_size(r->graph, mtf_window_smaller(r->row, r->window));
}

/* What the windows reach beyond the larger side. */
static int64_t overhang(const Reading *r) {
    return (small_size(r) - 1) * r->window->stride + mtf_window_extent(r->graph, r->window) -
           large_size(r);
}

static void pad_to_same(const Reading *r, bool lower) {
    MtfWindow *window = r->window;
    int64_t all = CLAMP(overhang(r), 0, G_MAXINT32);
    window->before = (int)(lower ? all - all / 2 : all / 2);
    window->after = (int)(all - window->before);
}

static bool read_numbers(const Reading *r, const MtfJson *object, GError **error) {
    if (!read_count(object, "before", 0, &r->window->before, error))
        return false;
    r->window->after = (int)CLAMP(overhang(r) - r->window->before, 0, G_MAXINT32);
    return read_count(object, "after", 0, &r->window->after, error);
}

static bool read_padding(const Reading *r, const MtfJson *object, GError **error) {
    static const char *const words[] = { "valid", "same", "same_lower", NULL };
    MtfJson child, other;
    int word;
    if (!mtf_json_find(object, "padding", &child))
        return read_numbers(r, object, error);
    if (mtf_json_find(object, "before", &other) || mtf_json_find(object, "after", &other))
        return mtf_json_fail(&other, error, "\"padding\" says it already");
    if (!mtf_field_word(&child, "a padding", words, &word, error))
        return false;
    int64_t windows = (large_size(r) + r->window->stride - 1) / r->window->stride;
    if (word > 0 && small_size(r) != windows)
        return mtf_json_fail(&child, error,
                             "\"%s\" over %" PRId64 " elements by a stride of %d takes %" PRId64
                             " windows, not %" PRId64,
                             words[word], large_size(r), r->window->stride, windows, small_size(r));
    if (word > 0)
        pad_to_same(r, word == 2);
    return true;
}

static bool read_window(const Reading *r, const MtfJson *object, GError **error) {
    static const char *const keys[] = { "from",     "to",     "kernel", "size",    "stride",
                                        "dilation", "before", "after",  "padding", NULL };
    MtfWindow *window = r->window;
    *window = (MtfWindow){ .kernel = -1, .size = 1, .stride = 1, .dilation = 1 };
    return mtf_json_object(object, error) && mtf_json_keys(object, keys, error) &&
           read_side(r->graph, object, "from", &window->from, error) &&
           read_side(r->graph, object, "to", &window->to, error) &&
           read_places(r->graph, object, window, error) &&
           read_count(object, "stride", 1, &window->stride, error) &&
           read_count(object, "dilation", 1, &window->dilation, error) &&
           read_padding(r, object, error);
}

bool mtf_windows_read(const MtfGraph *graph, int kind, const MtfJson *where,
                      MtfAttributes *attributes, GError **error) {
    MtfJson child;
    int n = 0;
    if (!mtf_json_array(where, error))
        return false;
    for (bool more = mtf_json_first(where, &child); more; more = mtf_json_next(&child)) {
        if (n == MTF_MAX_WINDOWS)
            return mtf_json_fail(&child, error, "an operation has at most %d windows",
                                 MTF_MAX_WINDOWS);
        Reading reading = { graph, mtf_operation_row(kind), &attributes->windows[n++] };
        if (!read_window(&reading, &child, error))
            return false;
    }
    attributes->n_windows = n;
    return true;
}

static void add_unless(cJSON *object, const char *key, int value, int standard) {
    if (value != standard)
        mtf_json_add_number(object, key, value);
}

static cJSON *window_to_json(const MtfGraph *graph, const MtfWindow *window) {
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "from", mtf_graph_dimension(graph, window->from)->name);
    cJSON_AddStringToObject(object, "to", mtf_graph_dimension(graph, window->to)->name);
    if (window->kernel >= 0)
        cJSON_AddStringToObject(object, "kernel", mtf_graph_dimension(graph, window->kernel)->name);
    else
        mtf_json_add_number(object, "size", window->size);
    add_unless(object, "stride", window->stride, 1);
    add_unless(object, "dilation", window->dilation, 1);
    mtf_json_add_number(object, "before", window->before);
    mtf_json_add_number(object, "after", window->after);
    return object;
}

cJSON *mtf_windows_to_json(const MtfGraph *graph, const MtfAttributes *attributes) {
    cJSON *list = cJSON_CreateArray();
    for (int w = 0; w < attributes->n_windows; w++)
        cJSON_AddItemToArray(list, window_to_json(graph, &attributes->windows[w]));
    return list;
}
