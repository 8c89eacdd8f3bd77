// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/drawn/random_layers.h"

#include <math.h>

/* Points of an operation's iteration space that the reference may be asked to walk. */
#define MOST_POINTS 20000

/* One convolution or pool that is being drawn. */
typedef struct {
    MtfDraw *draw;
    int x;
    bool spreads, pools;
    MtfAttributes attributes;
    MtfShape filter, result;
} Windowed;

/* A dimension that x, the result and the filter lack, of that size, perhaps one that others have; or -1. */
static int free_dimension(const Windowed *c, int64_t size) {
    MtfGraph *graph = c->draw->graph;
    for (int d = 0; d < (int)graph->dimensions->len && below(c->draw, 2); d++)
        if (mtf_graph_size(graph, d) == size && mtf_shape_find(shape_of(c->draw, c->x), d) < 0 &&
            mtf_shape_find(&c->filter, d) < 0 && mtf_shape_find(&c->result, d) < 0)
            return d;
    return new_dimension(c->draw, size);
}

/* The last window of pools that leave padding out meets an element, and none begins behind the end. */
static int64_t windows_over(const Windowed *c, const MtfWindow *window, int64_t large, int places) {
    int64_t extent = (int64_t)(places - 1) * window->dilation + 1;
    int64_t room = large + window->before + window->after - extent;
    int64_t least = room / window->stride + 1, last = least * window->stride - window->before;
    bool another = room % window->stride != 0 && last < large;
    return room < 0 ? -1 : least + (another && below(c->draw, 2));
}

/* Whether some window, perhaps by steps over all elements, meets padding alone. */
static bool misses_elements(const MtfWindow *window, int64_t windows, int64_t large) {
    for (int64_t w = 0; w < windows; w++) {
        bool meets = false;
        for (int64_t place = 0; place < window->size; place++) {
            int64_t i = w * window->stride - window->before + place * window->dilation;
            meets |= i >= 0 && i < large;
        }
        if (!meets)
            return true;
    }
    return false;
}

/* How large a dimension may be that so many windows go over, of which `windows_over` allows all. */
static int64_t spread_over(const Windowed *c, const MtfWindow *window, int64_t small, int places) {
    int64_t extent = (int64_t)(places - 1) * window->dilation + 1;
    int64_t least = (small - 1) * window->stride + extent - window->before - window->after;
    return least < 1 ? -1 : least + below(c->draw, window->stride);
}

static bool draw_window(Windowed *c, int dim) {
    MtfDraw *draw = c->draw;
    int64_t size = mtf_graph_size(draw->graph, dim);
    int places = 1 + below(draw, 3), most = c->pools ? places - 1 : 3;
    MtfWindow window = { .from = dim,
                         .kernel = -1,
                         .size = places,
                         .stride = 1 + below(draw, 3),
                         .dilation = 1 + below(draw, 2),
                         .before = below(draw, most + 1),
                         .after = below(draw, most + 1) };
    int64_t other =
        c->spreads ? spread_over(c, &window, size, places) : windows_over(c, &window, size, places);
    if (c->pools && misses_elements(&window, other, size))
        return false;
    window.to = other < 1 ? -1 : free_dimension(c, other);
    if (window.to < 0)
        return false;
    c->result.dims[mtf_shape_find(&c->result, dim)] = window.to;
    if (!c->pools) {
        window.size = 1;
        window.kernel = free_dimension(c, places);
        mtf_shape_append(&c->filter, window.kernel);
    }
    c->attributes.windows[c->attributes.n_windows++] = window;
    return c->pools || window.kernel >= 0;
}

/* Windows over one to three of x's dimensions. */
static bool draw_windows(Windowed *c) {
    MtfShape shape = *shape_of(c->draw, c->x);
    int first = below(c->draw, shape.rank), n = 1 + below(c->draw, MIN(shape.rank, 3));
    for (int i = 0; i < n; i++)
        if (!draw_window(c, shape.dims[(first + i) % shape.rank]))
            return false;
    return true;
}

/* What x's dimensions beside the windows are: of examples, of channels that are summed, or of groups. */
static void draw_roles(Windowed *c) {
    MtfShape shape = *shape_of(c->draw, c->x);
    for (int i = 0; i < shape.rank; i++) {
        int dim = shape.dims[i], role = below(c->draw, 3);
        if (mtf_shape_find(&c->result, dim) < 0 || role == 0)
            continue;
        mtf_shape_append(&c->filter, dim);
        if (role == 1)
            mtf_shape_remove(&c->result, dim);
    }
    int made = below(c->draw, 3) > 0 && c->result.rank < MOST_RANK
                   ? free_dimension(c, 1 + below(c->draw, 5))
                   : -1;
    if (made >= 0) {
        mtf_shape_append(&c->filter, made);
        mtf_shape_append(&c->result, made);
    }
}

static double points_of(const Windowed *c) {
    MtfShape all = *shape_of(c->draw, c->x);
    const MtfShape *more[] = { &c->filter, &c->result };
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < more[k]->rank; i++)
            if (mtf_shape_find(&all, more[k]->dims[i]) < 0)
                mtf_shape_append(&all, more[k]->dims[i]);
    return (double)mtf_graph_elements(c->draw->graph, &all);
}

int mtf_draw_conv(MtfDraw *draw) {
    int x = pick_with_dims(draw);
    Windowed c = { .draw = draw,
                   .x = x,
                   .spreads = below(draw, 2),
                   .attributes = MTF_NO_ATTRIBUTES,
                   .result = *shape_of(draw, x) };
    if (!draw_windows(&c))
        return -1;
    draw_roles(&c);
    if (points_of(&c) > MOST_POINTS)
        return -1;
    int filter = add_variable(draw, &c.filter);
    double terms = (double)mtf_graph_elements(draw->graph, &c.filter) * 2 /
                   (double)(1 + mtf_graph_elements(draw->graph, &c.result));
    int y = emit(draw, (MtfNewOperation){ .kind = c.spreads ? MTF_OP_CONV_TRANSPOSE : MTF_OP_CONV,
                                          .n_inputs = 2,
                                          .inputs = (int[]){ x, filter },
                                          .shape = &c.result,
                                          .attributes = c.attributes });
    return terms > 4 ? emit_scaled(draw, y, 1 / sqrt(terms)) : y;
}

int mtf_draw_pool(MtfDraw *draw) {
    int x = pick_with_dims(draw);
    Windowed c = { .draw = draw,
                   .x = x,
                   .pools = true,
                   .attributes = MTF_NO_ATTRIBUTES,
                   .result = *shape_of(draw, x) };
    bool largest = !draw->options->smooth && below(draw, 2);
    if (!draw_windows(&c) || points_of(&c) > MOST_POINTS)
        return -1;
    c.attributes.counted = !largest && below(draw, 2);
    return emit(draw, (MtfNewOperation){ .kind = largest ? MTF_OP_MAX_POOL : MTF_OP_AVERAGE_POOL,
                                         .n_inputs = 1,
                                         .inputs = &x,
                                         .shape = &c.result,
                                         .attributes = c.attributes });
}
