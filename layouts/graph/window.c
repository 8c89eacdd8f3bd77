// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/graph/window.h"

#include "layouts/graph/operation_check.h"

#include <inttypes.h>
#include <math.h>

typedef MtfOperationCheck Check;

static int64_t size_of(const MtfGraph *graph, int dim) {
    return mtf_graph_size(graph, dim);
}

/* Of a stride of one and a dilation d every d-th element of the result is one of the input, so the result is the
 * larger side; else the input is, whose elements lie |stride| apart. */
void mtf_window_sample(const MtfGraph *graph, const MtfOperationRow *row,
                       MtfAttributes *attributes) {
    if (!row->samples)
        return;
    int64_t from = mtf_graph_size(graph, attributes->from);
    int64_t to = mtf_graph_size(graph, attributes->to);
    double stride = attributes->stride, last = attributes->start + stride * (double)(to - 1);
    double first = stride < 0 ? last : attributes->start;
    bool spreads = attributes->dilation > 1;
    double apart = spreads ? attributes->dilation : fabs(stride);
    bool stretch = (attributes->wrap == 0 || stride == 1) && (!spreads || fabs(stride) == 1) &&
                   apart < INT32_MAX && fabs(first) < INT32_MAX;
    attributes->n_windows = stretch && from > 1 && to > 1;
    attributes->windows[0] = (MtfWindow){ .from = attributes->from,
                                          .to = attributes->to,
                                          .kernel = -1,
                                          .size = 1,
                                          .stride = (int)apart,
                                          .dilation = 1,
                                          .before = (int)(spreads ? first : -first),
                                          .spreads = spreads };
}

MtfWindowForm mtf_window_form(const MtfOperationRow *row, const MtfWindow *window) {
    return window->spreads ? MTF_WINDOWS_SPREAD : row->windows;
}

int64_t mtf_window_places(const MtfGraph *graph, const MtfWindow *window) {
    return window->kernel < 0 ? window->size : size_of(graph, window->kernel);
}

int mtf_window_larger(const MtfOperationRow *row, const MtfWindow *window) {
    return mtf_window_form(row, window) == MTF_WINDOWS_SPREAD ? window->to : window->from;
}

int mtf_window_smaller(const MtfOperationRow *row, const MtfWindow *window) {
    return mtf_window_form(row, window) == MTF_WINDOWS_SPREAD ? window->from : window->to;
}

int mtf_window_margined(const MtfOperationRow *row, const MtfWindow *window) {
    return mtf_window_form(row, window) == MTF_WINDOWS_GATHER ? mtf_window_larger(row, window)
                                                              : mtf_window_smaller(row, window);
}

int mtf_window_parted(const MtfOperationRow *row, const MtfWindow *window) {
    return window->from + window->to - mtf_window_margined(row, window);
}

const MtfWindow *mtf_window_of(const MtfOperationRow *row, const MtfAttributes *attributes,
                               int dim) {
    for (int w = 0; w < attributes->n_windows && row->windows != MTF_WINDOWS_NONE; w++)
        if (attributes->windows[w].from == dim || attributes->windows[w].to == dim)
            return &attributes->windows[w];
    return NULL;
}

bool mtf_window_has(const MtfAttributes *attributes, int dim) {
    for (int w = 0; w < attributes->n_windows; w++) {
        const MtfWindow *window = &attributes->windows[w];
        if (window->from == dim || window->to == dim || window->kernel == dim)
            return true;
    }
    return false;
}

int64_t mtf_window_extent(const MtfGraph *graph, const MtfWindow *window) {
    return (mtf_window_places(graph, window) - 1) * window->dilation + 1;
}

int64_t mtf_window_most(const MtfGraph *graph, const MtfIndex *index, int64_t part) {
    const MtfWindow *window = index->window;
    int64_t size = size_of(graph, index->other_dim), reach = mtf_window_extent(graph, window);
    int64_t most = index->is_larger ? (part + reach - 2) / window->stride + 1
                                    : (part - 1) * window->stride + reach;
    return part == index->size ? size : part == 0 ? 0 : MIN(size, most);
}

void mtf_windows_append(GString *text, const MtfAttributes *attributes) {
    for (int w = 0; w < attributes->n_windows; w++) {
        const MtfWindow *window = &attributes->windows[w];
        g_string_append_printf(text, " [%d %d %d %d %d %d %d %d]", window->from, window->to,
                               window->kernel, window->size, window->stride, window->dilation,
                               window->before, window->after);
        g_string_append(text, window->spreads ? " spreads" : "");
    }
}

/* ---- Checks ---------------------------------------------------------------------------------- */

static const MtfShape *input_shape(const Check *check, int k) {
    return &mtf_graph_tensor(check->graph, check->operation->inputs[k])->shape;
}

static const char *name(const Check *check, int dim) {
    return mtf_graph_dimension(check->graph, dim)->name;
}

/* The sides of the windows as this row's operands have them; the filter of pools is NULL. */
typedef struct {
    const MtfShape *larger, *smaller, *filter;
} Sides;

static Sides sides_of(const Check *check, const MtfShape *shape) {
    int last = check->operation->n_inputs - 1;
    bool filtered = check->row->products == MTF_PRODUCTS_CONV;
    const MtfShape *first = input_shape(check, 0), *second = input_shape(check, last);
    switch (check->row->windows) {
    case MTF_WINDOWS_GATHER:
        return (Sides){ first, shape, filtered ? second : NULL };
    case MTF_WINDOWS_SPREAD:
        return (Sides){ shape, first, second };
    case MTF_WINDOWS_BACK:
        return (Sides){ shape, second, NULL };
    case MTF_WINDOWS_FILTER:
    case MTF_WINDOWS_NONE:
        break;
    }
    return (Sides){ first, second, shape };
}

/* The last window begins on the larger side or in the padding before it, and what it leaves unread
 * would not be another window. */
static bool check_sizes(const Check *check, const MtfWindow *window, GError **error) {
    int larger = mtf_window_larger(check->row, window);
    int smaller = mtf_window_smaller(check->row, window);
    int64_t in = size_of(check->graph, larger), out = size_of(check->graph, smaller);
    int64_t room = in + window->before + window->after - mtf_window_extent(check->graph, window);
    int64_t least = room < 0 ? 0 : room / window->stride + 1;
    int64_t most = room < 0 ? 1 : (room + window->stride - 1) / window->stride + 1;
    if (room < 0 || out < least || out > most ||
        (out > least && (out - 1) * window->stride >= in + window->before))
        return mtf_check_fail(check, error,
                              "windows over \"%s\" (%" PRId64 " elements, %d before and %d after, "
                              "windows of %" PRId64 " by a stride of %d) make %" PRId64
                              " elements, and \"%s\" has %" PRId64,
                              name(check, larger), in, window->before, window->after,
                              mtf_window_extent(check->graph, window), window->stride, least,
                              name(check, smaller), out);
    return true;
}

/* Whether window number `small` meets some of `in` elements: its first place behind the padding before does. */
static bool meets_elements(const MtfWindow *window, int64_t small, int64_t in) {
    int64_t begin = small * window->stride - window->before;
    int64_t place = begin < 0 ? (window->dilation - 1 - begin) / window->dilation : 0;
    return place < window->size && begin + place * window->dilation < in;
}

/* A pool takes the largest or the mean of what each window meets: of padding alone there is none. With
 * dilation a window may step over a short dimension. */
static bool check_meets_elements(const Check *check, const MtfWindow *window, GError **error) {
    int larger = mtf_window_larger(check->row, window);
    int64_t in = size_of(check->graph, larger), small = 0;
    int64_t windows = size_of(check->graph, mtf_window_smaller(check->row, window));
    while (small < windows && meets_elements(window, small, in))
        small++;
    return small == windows ||
           mtf_check_fail(check, error,
                          "window %" PRId64 " over \"%s\" (%" PRId64
                          " elements, %d before and %d after, windows of %" PRId64
                          " by a stride of %d) meets padding alone",
                          small, name(check, larger), in, window->before, window->after,
                          mtf_window_extent(check->graph, window), window->stride);
}

/* `shape` has `dim`, and the others lack it. */
static bool check_place(const Check *check, int dim, const char *what, const MtfShape *shape,
                        const MtfShape *lacking, const MtfShape *lacking_too, GError **error) {
    bool right = mtf_shape_find(shape, dim) >= 0 && mtf_shape_find(lacking, dim) < 0 &&
                 (lacking_too == NULL || mtf_shape_find(lacking_too, dim) < 0);
    return right || mtf_check_fail(check, error, "\"%s\" must be a dimension of %s alone",
                                   name(check, dim), what);
}

static bool check_window(const Check *check, const Sides *sides, const MtfWindow *window,
                         GError **error) {
    int larger = mtf_window_larger(check->row, window);
    int smaller = mtf_window_smaller(check->row, window);
    if ((window->kernel >= 0) != (sides->filter != NULL))
        return mtf_check_fail(check, error, "its windows have %s",
                              sides->filter != NULL ? "a \"kernel\", a dimension of the filter"
                                                    : "a \"size\" and no \"kernel\"");
    return check_place(check, larger, "what windows go over", sides->larger, sides->smaller,
                       sides->filter, error) &&
           check_place(check, smaller, "what has an element a window", sides->smaller,
                       sides->larger, sides->filter, error) &&
           (sides->filter == NULL || check_place(check, window->kernel, "the filter", sides->filter,
                                                 sides->larger, sides->smaller, error)) &&
           check_sizes(check, window, error) &&
           (sides->filter != NULL || check->operation->attributes.counted != 0 ||
            check_meets_elements(check, window, error));
}

static bool check_windows(const Check *check, const Sides *sides, GError **error) {
    const MtfAttributes *a = &check->operation->attributes;
    if (a->n_windows == 0)
        return mtf_check_fail(check, error, "it needs at least one window");
    for (int w = 0; w < a->n_windows; w++) {
        for (int v = 0; v < w; v++)
            if (a->windows[v].from == a->windows[w].from || a->windows[v].to == a->windows[w].to ||
                (a->windows[w].kernel >= 0 && a->windows[v].kernel == a->windows[w].kernel))
                return mtf_check_fail(check, error, "two of its windows share a dimension");
        if (!check_window(check, sides, &a->windows[w], error))
            return false;
    }
    return true;
}

static bool is_windowed(const Check *check, int dim) {
    const MtfAttributes *a = &check->operation->attributes;
    for (int w = 0; w < a->n_windows; w++)
        if (a->windows[w].from == dim || a->windows[w].to == dim || a->windows[w].kernel == dim)
            return true;
    return false;
}

/* Each dimension of `part` beside windows is in one of the others. */
static bool check_shared(const Check *check, const MtfShape *part, const MtfShape *a,
                         const MtfShape *b, const char *what, GError **error) {
    for (int i = 0; i < part->rank; i++) {
        int dim = part->dims[i];
        bool shared = mtf_shape_find(a, dim) >= 0 || (b != NULL && mtf_shape_find(b, dim) >= 0);
        if (!shared && !is_windowed(check, dim))
            return mtf_check_fail(check, error, "\"%s\" is a dimension of %s alone",
                                  name(check, dim), what);
    }
    return true;
}

/* A channel that is summed is in x and the filter, one that is made in y and the filter, an example
 * in x and y, and what all three have goes together, in groups. */
bool mtf_check_conv(const Check *check, const MtfShape *shape, GError **error) {
    Sides sides = sides_of(check, shape);
    return check_windows(check, &sides, error) &&
           check_shared(check, sides.larger, sides.smaller, sides.filter, "what windows go over",
                        error) &&
           check_shared(check, sides.smaller, sides.larger, sides.filter,
                        "what has an element a window", error) &&
           check_shared(check, sides.filter, sides.larger, sides.smaller, "the filter", error);
}

bool mtf_check_pool(const Check *check, const MtfShape *shape, GError **error) {
    Sides sides = sides_of(check, shape);
    const MtfAttributes *a = &check->operation->attributes;
    if (check->operation->n_inputs == 2 &&
        !mtf_shape_equal(input_shape(check, 0), input_shape(check, 1)))
        return mtf_check_fail(check, error, "its inputs must have the same dimensions");
    return mtf_check_flag(check, "counted", a->counted, error) &&
           check_windows(check, &sides, error) &&
           check_shared(check, sides.larger, sides.smaller, NULL, "what windows go over", error) &&
           check_shared(check, sides.smaller, sides.larger, NULL, "what has an element a window",
                        error);
}
