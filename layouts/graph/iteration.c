// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/graph/iteration.h"

#include "layouts/graph/operation_table.h"
#include "layouts/graph/reshape.h"
#include "layouts/graph/window.h"

#include <math.h>

/* What adding an index needs to know of its operation. */
typedef struct {
    const MtfGraph *graph;
    const MtfOperation *operation;
    const MtfOperationRow *row;
    MtfIteration *iteration;
} Space;

/* Whether some output lacks `dim`. */
static bool missing_in_output(const Space *space, int dim) {
    for (int k = 0; k < space->operation->n_outputs; k++) {
        int output = space->operation->outputs[k];
        if (mtf_shape_find(&mtf_graph_tensor(space->graph, output)->shape, dim) < 0)
            return true;
    }
    return false;
}

bool mtf_index_splits(const MtfIndex *index, int64_t parts) {
    return !index->whole && parts <= index->most && (index->even == 0 || index->even % parts == 0);
}

/* The size of a dimension that is split evenly alone, else 0. */
static int64_t even_size(const Space *space, int dim) {
    const MtfDimension *dimension = mtf_graph_dimension(space->graph, dim);
    return dimension->even ? dimension->size : 0;
}

static void add_index(Space *space, int dim, int input_dim) {
    MtfIteration *iteration = space->iteration;
    for (int i = 0; i < iteration->n; i++)
        if (iteration->index[i].dim == dim || iteration->index[i].other_dim == dim)
            return;
    bool reduced = missing_in_output(space, dim);
    const MtfWindow *window = mtf_window_of(space->row, &space->operation->attributes, dim);
    const MtfAttributes *a = &space->operation->attributes;
    bool held = space->row->whole && (dim == a->dimension || dim == a->choices || dim == a->keys);
    bool parts_meet =
        space->row->reduction != MTF_REDUCE_NONE || space->row->along == MTF_ALONG_CHOOSES;
    iteration->index[iteration->n++] = (MtfIndex){
        .dim = dim,
        .input_dim = input_dim,
        .other_dim = window == NULL ? -1 : window->from + window->to - dim,
        .window = window,
        .is_larger = window != NULL && mtf_window_larger(space->row, window) == dim,
        .size = mtf_graph_size(space->graph, dim),
        .most = mtf_graph_size(space->graph, dim),
        .even = even_size(space, dim),
        .reduced = reduced,
        .whole = held || (reduced && !parts_meet),
    };
}

static int64_t common_divisor(int64_t a, int64_t b) {
    return b == 0 ? a : common_divisor(b, a % b);
}

/* The first dimensions of a group split together. Where one dimension becomes several, or several one, parts read what
 * they lack of others (margins.h); else they are as many elements on both sides. */
static void split_together(const Space *space, const MtfReshapeGroup *group, int in, int out,
                           MtfIndex *index) {
    bool single = group->n_in == 1 || group->n_out == 1;
    index->even =
        single ? common_divisor(even_size(space, in), even_size(space, out)) : group->parts;
    index->most = MIN(mtf_graph_size(space->graph, in), mtf_graph_size(space->graph, out));
}

/* The first dimensions of a group go together; the others are elements of their parts. */
static void add_group(Space *space, const MtfReshapeGroup *group) {
    const MtfOperation *op = space->operation;
    const MtfShape *in = &mtf_graph_tensor(space->graph, op->inputs[0])->shape;
    const MtfShape *out = &mtf_graph_tensor(space->graph, op->outputs[0])->shape;
    bool pair = group->n_in > 0 && group->n_out > 0;
    MtfIteration *iteration = space->iteration;
    for (int j = 0; j < group->n_out; j++) {
        int dim = out->dims[group->first_out + j];
        add_index(space, dim, pair && j == 0 ? in->dims[group->first_in] : dim);
        iteration->index[iteration->n - 1].whole = !pair || j > 0;
        if (pair && j == 0)
            split_together(space, group, in->dims[group->first_in], dim,
                           &iteration->index[iteration->n - 1]);
    }
    for (int i = pair; i < group->n_in; i++) {
        int dim = in->dims[group->first_in + i];
        add_index(space, dim, dim);
        iteration->index[iteration->n - 1].whole = true;
    }
}

static void reshape_iteration(Space *space) {
    const MtfOperation *op = space->operation;
    MtfReshapeGroup groups[2 * MTF_MAX_RANK];
    int n = mtf_reshape_groups(space->graph, &mtf_graph_tensor(space->graph, op->inputs[0])->shape,
                               &mtf_graph_tensor(space->graph, op->outputs[0])->shape, groups);
    for (int i = 0; i < n; i++)
        add_group(space, &groups[i]);
}

/* What inputs have in the place of a joined index is no index of its own: only where it is split evenly
 * alone is the index, too. */
static void mark_joined(Space *space) {
    const MtfOperation *op = space->operation;
    MtfIteration *iteration = space->iteration;
    int to = mtf_joined_input(space->graph, op, 0).to, i = 0;
    while (iteration->index[i].dim != to)
        i++;
    MtfIndex *index = &iteration->index[i];
    index->joined = true;
    for (int k = 0; k < op->n_inputs; k++) {
        int side = mtf_joined_side(space->graph, op, k);
        index->even = common_divisor(index->even, side < 0 ? 0 : even_size(space, side));
    }
}

static bool all_inputs_have(const Space *space, int dim) {
    for (int k = 0; k < space->operation->n_inputs; k++)
        if (mtf_shape_find(mtf_operation_operand_shape(space->graph, space->operation, k), dim) < 0)
            return false;
    return true;
}

/* Of inputs that are put together, one that lacks the index would be put there by every part. */
void mtf_operation_iteration(const MtfGraph *graph, int operation, MtfIteration *iteration) {
    const MtfOperation *op = mtf_graph_operation(graph, operation);
    Space space = { graph, op, mtf_operation_row(op->kind), iteration };
    bool renames = space.row->dims == MTF_DIMS_RENAMED;
    iteration->n = 0;
    if (space.row->dims == MTF_DIMS_RESHAPED) {
        reshape_iteration(&space);
        return;
    }
    for (int k = 0; k < op->n_outputs; k++) {
        const MtfShape *shape = &mtf_graph_tensor(graph, op->outputs[k])->shape;
        for (int i = 0; i < shape->rank; i++) {
            int dim = shape->dims[i];
            add_index(&space, dim, renames && dim == op->attributes.to ? op->attributes.from : dim);
        }
    }
    if (space.row->joins) {
        mark_joined(&space);
        return;
    }
    for (int k = 0; k < op->n_inputs && !renames; k++) {
        const MtfShape *shape = &mtf_graph_tensor(graph, op->inputs[k])->shape;
        for (int i = 0; i < shape->rank; i++)
            add_index(&space, shape->dims[i], shape->dims[i]);
    }
    for (int i = 0; i < iteration->n && space.row->linearity == MTF_LINEAR_JOINT; i++)
        iteration->index[i].whole |=
            iteration->index[i].reduced && !all_inputs_have(&space, iteration->index[i].dim);
}

double mtf_operation_share(const MtfGraph *graph, int operation, const MtfIteration *iteration,
                           const int64_t *sizes) {
    const MtfOperation *op = mtf_graph_operation(graph, operation);
    const MtfOperationRow *row = mtf_operation_row(op->kind);
    return row->share == NULL ? 1 : row->share(&op->attributes, iteration, sizes);
}

/* ---- Shares of the points -------------------------------------------------------------------- */

/* The position of `dim` in the iteration space, which has it. */
static int index_of(const MtfIteration *iteration, int dim) {
    int i = 0;
    while (iteration->index[i].dim != dim)
        i++;
    return i;
}

/* Pairs of a query from b to `limit` and an earlier position of memory from 0 to m: all but those
 * that come later, the integral of m - i over i from b to end = min(m, limit), where b < end. */
static double pairs_behind(double b, double limit, double m) {
    double end = fmin(m, limit);
    double later = b < end ? m * (end - b) - (end * end - b * b) / 2 : 0;
    return m * (limit - b) - later;
}

/* Along a window's index the points are those of one side; each meets as many of the other as the
 * window has elements, which pools have no dimension for, and of the larger side, spread over
 * windows that are apart, fewer. */
double mtf_share_windows(const MtfAttributes *a, const MtfIteration *iteration,
                         const int64_t *sizes) {
    double share = 1;
    (void)sizes;
    for (int w = 0; w < a->n_windows; w++) {
        const MtfWindow *window = &a->windows[w];
        for (int i = 0; i < iteration->n; i++) {
            bool large = iteration->index[i].other_dim >= 0 && iteration->index[i].is_larger;
            if (large &&
                (iteration->index[i].dim == window->from || iteration->index[i].dim == window->to))
                share /= window->stride;
        }
        share *= window->kernel < 0 ? window->size : 1;
    }
    return share;
}

/* Of parts of queries that meet those of memory `turn` before, the last ones see the most: all but those that
 * wrap round the end see that part whole, and with a window w what is no further back. Of l queries and the
 * last m positions of a part of M, c = turn M - w - (M - m) being how far back the first of these is from the
 * edge of the first query's window, those before it are not seen. */
static double share_of_turn(const MtfAttributes *a, const MtfIteration *iteration,
                            const int64_t *sizes) {
    int parts = index_of(iteration, a->parts), memory = index_of(iteration, a->memory);
    double l = (double)sizes[index_of(iteration, a->query)], held = (double)sizes[parts];
    double m = (double)sizes[memory], whole = (double)iteration->index[memory].size;
    double seen = fmin(held, (double)iteration->index[parts].size - a->turn) / held;
    double c = a->turn * whole - a->window - (whole - m);
    if (a->window == 0 || l + c <= 0)
        return seen;
    return seen * (1 - pairs_behind(fmax(c, 0), l + c, m) / (l * m));
}

/* Of attention that looks back only, and with a window w no further than that; parts of queries that meet their
 * own of memory, in a turn of all parts, and striped ones in every turn are like heads:
 *
 *     memory 0 …… m        queries from b = L - l to L, memory from 0 to m:
 *     b   . # # # #        those behind the query, less
 *         . . # # .        those behind the query's position less w
 *     L   . . # . . */
double mtf_share_causal(const MtfAttributes *a, const MtfIteration *iteration,
                        const int64_t *sizes) {
    if (a->causal == 0)
        return 1;
    int parts = a->parts >= 0 ? index_of(iteration, a->parts) : -1;
    bool own = a->striped != 0 || (parts >= 0 && a->turn == (double)iteration->index[parts].size);
    if (a->turn > 0 && !own)
        return share_of_turn(a, iteration, sizes);
    int query = index_of(iteration, a->query);
    double l = (double)sizes[query], b = (double)iteration->index[query].size - l;
    int memory = index_of(iteration, a->memory);
    double m = (double)sizes[memory], whole = (double)iteration->index[memory].size, w = a->window;
    if (parts >= 0 && a->turn == 0) {
        m *= (double)sizes[parts];
        whole *= (double)iteration->index[parts].size;
    }
    double behind = pairs_behind(b, b + l, m);
    if (w > 0 && m < whole)
        behind = fmin(behind, l * fmin(w, m)); /* some part of memory is seen by all queries */
    else if (w > 0 && b + l > w)
        behind -= pairs_behind(fmax(b - w, 0), b + l - w, m);
    return fmax(behind, 0) / (l * m);
}

/* Each row meets one of the experts. */
double mtf_share_experts(const MtfAttributes *a, const MtfIteration *iteration,
                         const int64_t *sizes) {
    (void)sizes;
    return 1 / (double)iteration->index[index_of(iteration, a->experts)].size;
}

/* The same where the queries are the last of a full memory. */
double mtf_share_cached(const MtfAttributes *a, const MtfIteration *iteration,
                        const int64_t *sizes) {
    int query = index_of(iteration, a->query), memory = index_of(iteration, a->memory);
    double l = (double)sizes[query], m = (double)iteration->index[memory].size, w = a->window;
    double behind = pairs_behind(m - l, m, m);
    if (w > 0 && w < m)
        behind -= pairs_behind(fmax(m - l - w, 0), m - w, m);
    return fmax(behind, 0) / (l * m);
}
