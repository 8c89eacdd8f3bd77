// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/placement/reshard.h"

#include "layouts/placement/sort_columns.h"

#include <math.h>
#include <string.h>

/* Weights of the search: a collective costs this many elements besides what it moves, so that of
 * two paths of equal traffic the shorter wins; a local op costs next to nothing. */
#define COLLECTIVE_OVERHEAD 1024.0
#define LOCAL_OVERHEAD 1.0

#define MAX_CHOICES (3 + 2 * MTF_MAX_MESH_AXES)
#define MAX_STATES 8192

static MtfReduction reduction_of(int axis_placement) {
    return axis_placement == MTF_PARTIAL_MAX ? MTF_REDUCE_MAX : MTF_REDUCE_SUM;
}

/* ---- The placements a path may go through -------------------------------------------------- */

/* Neighbouring axes that change as one. */
typedef struct {
    int first, last;
} Run;

/* Axes where source and target agree keep their placement. Of the others, neighbours that come from
 * the same and go to the same nest like one axis of as many processors, and change as one: a run.
 * Every run takes one of a few values. A state is one value a run, numbered in mixed radix: one value
 * further along the i-th run, strides[i] states further on. */
typedef struct {
    const MtfGraph *graph;
    const MtfMesh *mesh;
    const MtfShape *shape;
    const MtfPlacement *from, *to;
    int n_runs;
    Run runs[MTF_MAX_MESH_AXES];
    int n_choices[MTF_MAX_MESH_AXES];
    int strides[MTF_MAX_MESH_AXES];
    int16_t choices[MTF_MAX_MESH_AXES][MAX_CHOICES];
    int n_states;
} Space;

static unsigned run_axes(Run run) {
    return (2U << run.last) - (1U << run.first);
}

static void set_axes(MtfPlacement *placement, Run run, int value) {
    for (int a = run.first; a <= run.last; a++)
        placement->axis[a] = (int16_t)value;
}

/* What a placement says to all axes of the i-th run. */
static int run_value(const Space *space, const MtfPlacement *placement, int i) {
    return placement->axis[space->runs[i].first];
}

static void add_choice(Space *space, int i, int value) {
    for (int c = 0; c < space->n_choices[i]; c++)
        if (space->choices[i][c] == value)
            return;
    space->choices[i][space->n_choices[i]++] = (int16_t)value;
}

/* Dimensions that some run splits may help on another run as a stop on the way. */
static void add_stops(Space *space) {
    for (int i = 0; i < space->n_runs; i++) {
        for (int j = 0; j < space->n_runs; j++) {
            int before = run_value(space, space->from, j), after = run_value(space, space->to, j);
            if (before >= 0)
                add_choice(space, i, before);
            if (after >= 0)
                add_choice(space, i, after);
        }
    }
}

static int count_states(Space *space) {
    int states = 1;
    for (int i = 0; i < space->n_runs; i++) {
        space->strides[i] = states;
        states = states > MAX_STATES ? states : states * space->n_choices[i];
    }
    return states;
}

/* Whether two axes come from the same and go to the same. */
static bool change_alike(const Space *space, int a, int b) {
    return space->from->axis[a] == space->from->axis[b] && space->to->axis[a] == space->to->axis[b];
}

static void find_runs(Space *space) {
    for (int a = 0; a < space->mesh->n_axes; a++) {
        if (space->from->axis[a] == space->to->axis[a])
            continue;
        if (a == 0 || !change_alike(space, a - 1, a))
            space->runs[space->n_runs++].first = a;
        space->runs[space->n_runs - 1].last = a;
    }
}

static void space_init(Space *space, const MtfGraph *graph, const MtfMesh *mesh,
                       const MtfShape *shape, const MtfPlacement *from, const MtfPlacement *to) {
    *space = (Space){ .graph = graph, .mesh = mesh, .shape = shape, .from = from, .to = to };
    find_runs(space);
    for (int i = 0; i < space->n_runs; i++) {
        add_choice(space, i, run_value(space, from, i));
        add_choice(space, i, run_value(space, to, i));
        add_choice(space, i, MTF_REPLICATED);
    }
    Space direct = *space;
    add_stops(space);
    if (count_states(space) > MAX_STATES)
        *space = direct; /* at most 3^8 states */
    space->n_states = count_states(space);
}

/* The placement of a state; own[i] becomes the number of its value on the i-th run. */
static MtfPlacement state_placement(const Space *space, int state, int *own) {
    MtfPlacement placement = *space->from;
    for (int i = 0; i < space->n_runs; i++) {
        own[i] = state % space->n_choices[i];
        set_axes(&placement, space->runs[i], space->choices[i][own[i]]);
        state /= space->n_choices[i];
    }
    return placement;
}

/* The state of a placement, or -1 when the space has none. */
static int placement_state(const Space *space, const MtfPlacement *placement) {
    int state = 0;
    for (int i = space->n_runs - 1; i >= 0; i--) {
        int c = 0;
        while (c < space->n_choices[i] && space->choices[i][c] != run_value(space, placement, i))
            c++;
        if (c == space->n_choices[i])
            return -1;
        state = state * space->n_choices[i] + c;
    }
    return state;
}

/* ---- The ops out of a placement ------------------------------------------------------------ */

/* Whether no axis behind `axis` splits `dim`. */
static bool is_minor_most(const Space *space, const MtfPlacement *placement, int axis, int dim) {
    for (int a = axis + 1; a < space->mesh->n_axes; a++)
        if (placement->axis[a] == dim)
            return false;
    return true;
}

/* The kind of op that changes the i-th run alone, from what `placement` says to `after`;
 * MTF_RESHARD_KINDS when there is none. */
static MtfReshardKind kind_of(const Space *space, const MtfPlacement *placement, int i, int after) {
    int before = run_value(space, placement, i), axis = space->runs[i].last;
    if (mtf_axis_is_partial(after))
        return before == MTF_REPLICATED ? MTF_RESHARD_CONCEAL : MTF_RESHARD_KINDS;
    if (after >= 0 && !is_minor_most(space, placement, axis, after))
        return MTF_RESHARD_KINDS;
    if (mtf_axis_is_partial(before))
        return after == MTF_REPLICATED ? MTF_RESHARD_ALLREDUCE : MTF_RESHARD_REDUCE_SCATTER;
    if (before == MTF_REPLICATED)
        return MTF_RESHARD_SLICE;
    if (!is_minor_most(space, placement, axis, before))
        return MTF_RESHARD_KINDS;
    return after == MTF_REPLICATED ? MTF_RESHARD_ALLGATHER : MTF_RESHARD_ALLTOALL;
}

/* That op. */
static MtfReshardOp single_op(const MtfPlacement *placement, Run run, int after,
                              MtfReshardKind kind) {
    MtfReshardOp op = { .kind = kind, .reduction = MTF_REDUCE_NONE };
    int reduced = kind == MTF_RESHARD_CONCEAL ? after : placement->axis[run.first];
    op.from = op.to = *placement;
    set_axes(&op.to, run, after);
    op.axes = mtf_reshard_row(kind)->collective ? run_axes(run) : 0;
    if (mtf_axis_is_partial(reduced))
        op.reduction = reduction_of(reduced);
    return op;
}

/* What an op costs whose payload is so large. */
static double op_cost(const Space *space, const MtfReshardOp *op, double elements) {
    if (!mtf_reshard_row(op->kind)->collective)
        return LOCAL_OVERHEAD;
    double members = mtf_mesh_group_size(space->mesh, op->axes);
    const MtfReshardRow *row = mtf_reshard_row(op->kind);
    double passes = row->reduces && row->gathers ? 2 : 1;
    return COLLECTIVE_OVERHEAD + passes * elements * (members - 1) / members;
}

/* The same of its largest payload. */
static double op_cost_of(const Space *space, const MtfReshardOp *op) {
    return op_cost(
        space, op,
        (double)mtf_reshard_largest_payload(space->graph, space->mesh, space->shape, op));
}

/* All axes of one kind of partial that the target does not keep, reduced in one call; false where
 * that is one axis or none. */
static bool reduce_together(const Space *space, MtfReshardOp *op, int kind) {
    int count = 0;
    op->to = op->from;
    op->axes = 0;
    for (int i = 0; i < space->n_runs; i++) {
        if (run_value(space, &op->from, i) != kind || run_value(space, space->to, i) == kind)
            continue;
        set_axes(&op->to, space->runs[i], MTF_REPLICATED);
        op->axes |= run_axes(space->runs[i]);
        count++;
    }
    op->kind = MTF_RESHARD_ALLREDUCE;
    op->reduction = reduction_of(kind);
    return count > 1;
}

/* All axes from the i-th run on that split its dimension gathered in one call; false where they are
 * that run alone, or one of them keeps its placement. */
static bool gather_together(const Space *space, MtfReshardOp *op, int i) {
    int first = space->runs[i].first, dim = run_value(space, &op->from, i);
    if (dim < 0)
        return false;
    op->kind = MTF_RESHARD_ALLGATHER;
    op->reduction = MTF_REDUCE_NONE;
    op->axes = mtf_placement_split_axes(&op->from, dim) & ~((1U << first) - 1);
    op->to = op->from;
    for (int a = first; a < space->mesh->n_axes; a++) {
        if (!(op->axes >> a & 1))
            continue;
        if (space->from->axis[a] == space->to->axis[a])
            return false;
        op->to.axis[a] = MTF_REPLICATED;
    }
    return op->axes != run_axes(space->runs[i]);
}

/* Where an exchange takes the i-th run: to its target, or to replicated when the target is partial. */
static int exchange_target(const Space *space, int i) {
    int target = run_value(space, space->to, i);
    return mtf_axis_is_partial(target) ? MTF_REPLICATED : target;
}

/* The axes nested inside a split that an axis of `changed` makes or undoes. */
static unsigned nested_axes(const Space *space, const MtfReshardOp *op, unsigned changed) {
    unsigned nested = 0;
    for (int a = 0; a < space->mesh->n_axes; a++) {
        int dim = op->from.axis[a];
        if (changed >> a & 1 || dim < 0)
            continue;
        unsigned splits =
            mtf_placement_split_axes(&op->from, dim) | mtf_placement_split_axes(&op->to, dim);
        if (splits & changed & ((1U << a) - 1))
            nested |= 1U << a;
    }
    return nested;
}

/* Every run that is not partial goes to its target at once. */
static bool exchange_rest(const Space *space, MtfReshardOp *op) {
    unsigned changed = 0;
    op->kind = MTF_RESHARD_ALLTOALL;
    op->reduction = MTF_REDUCE_NONE;
    op->to = op->from;
    for (int i = 0; i < space->n_runs; i++) {
        int before = run_value(space, &op->from, i), after = exchange_target(space, i);
        if (mtf_axis_is_partial(before) || before == after)
            continue;
        set_axes(&op->to, space->runs[i], after);
        changed |= run_axes(space->runs[i]);
    }
    op->axes = changed | nested_axes(space, op, changed);
    return changed != 0;
}

/* What the path costs that reduces, then exchanges, then conceals, each of them at once. */
static double cost_at_once(const Space *space) {
    MtfReshardOp op = { .from = *space->from };
    double cost = 0;
    for (int kind = MTF_PARTIAL_MAX; kind <= MTF_PARTIAL_SUM; kind++) {
        reduce_together(space, &op, kind);
        cost += op.axes != 0 ? op_cost_of(space, &op) : 0;
        op.from = op.to;
    }
    if (exchange_rest(space, &op))
        cost += op_cost_of(space, &op);
    for (int i = 0; i < space->n_runs; i++)
        if (mtf_axis_is_partial(run_value(space, space->to, i)))
            cost += LOCAL_OVERHEAD;
    return cost;
}

/* ---- Dijkstra ------------------------------------------------------------------------------ */

typedef struct {
    int previous;
    MtfReshardOp op;
} Arrival;

/* The states reached so far. Every op costs something, so a state that costs as much as the
 * target is known to cost is on no cheapest path to it. */
typedef struct {
    const Space *space;
    int target;
    double enough;     /* no cheapest path costs more */
    double *cost;      /* of each state; INFINITY: not reached */
    double *elements;  /* of each state's largest slice; 0: not known yet */
    Arrival *arrivals; /* how each state was reached at that cost */
    int *open;         /* states reached and not yet left: a heap, the nearest first */
    int n_open;
    int *places; /* of each state in `open`, if it is there */
} Search;

/* Whether a state is left before another: the cheaper one, of equals the first. */
static bool is_nearer(const Search *search, int state, int other) {
    double cost = search->cost[state], least = search->cost[other];
    return cost < least || (cost == least && state < other);
}

static void put(Search *search, int place, int state) {
    search->open[place] = state;
    search->places[state] = place;
}

/* Moves the state up from a place that is free for it. */
static void rise(Search *search, int place, int state) {
    while (place > 0 && is_nearer(search, state, search->open[(place - 1) / 2])) {
        put(search, place, search->open[(place - 1) / 2]);
        place = (place - 1) / 2;
    }
    put(search, place, state);
}

/* Moves the last state down from the free first place. */
static void sink_last(Search *search) {
    int state = search->open[search->n_open], place = 0;
    for (int child = 1; child < search->n_open; child = 2 * place + 1) {
        if (child + 1 < search->n_open &&
            is_nearer(search, search->open[child + 1], search->open[child]))
            child++;
        if (!is_nearer(search, search->open[child], state))
            break;
        put(search, place, search->open[child]);
        place = child;
    }
    put(search, place, state);
}

/* No op of its kind costs less. */
static double least_step(MtfReshardKind kind) {
    return mtf_reshard_row(kind)->collective ? COLLECTIVE_OVERHEAD : LOCAL_OVERHEAD;
}

/* The largest slice of a state, found once. */
static double elements_in(Search *search, int state, const MtfPlacement *placement) {
    const Space *space = search->space;
    double *elements = &search->elements[state];
    if (*elements <= 0)
        *elements =
            (double)mtf_largest_elements(space->graph, space->mesh, space->shape, placement);
    return *elements;
}

/* Whether an all-to-all moves all its axes from one dimension to one other: then each processor
 * sends all that it holds. */
static bool turns_one_dimension(const MtfReshardOp *op) {
    int first = 0;
    while ((op->axes >> first & 1) == 0)
        first++;
    int before = op->from.axis[first], after = op->to.axis[first];
    for (int a = first; op->axes >> a != 0; a++)
        if ((op->axes >> a & 1) != 0 && (op->from.axis[a] != before || op->to.axis[a] != after))
            return false;
    return before >= 0 && after >= 0;
}

/* As mtf_reshard_largest_payload, of an op from one state to the other. */
static double payload_of(Search *search, int state, int next, const MtfReshardOp *op) {
    const Space *space = search->space;
    const MtfReshardRow *row = mtf_reshard_row(op->kind);
    if (row->reduces || (row->exchanges && turns_one_dimension(op)))
        return elements_in(search, state, &op->from);
    if (row->gathers)
        return elements_in(search, next, &op->to);
    return (double)mtf_reshard_largest_payload(space->graph, space->mesh, space->shape, op);
}

/* What reaching a state must cost less than to be of use. */
static double most_of(const Search *search, int state) {
    double most = MIN(search->cost[state], search->cost[search->target]);
    return state == search->target ? most : MIN(most, search->enough);
}

static void relax(Search *search, int state, int next, const MtfReshardOp *op) {
    double before = search->cost[state], most = most_of(search, next);
    if (before + least_step(op->kind) >= most)
        return;
    double cost = before + op_cost(search->space, op, payload_of(search, state, next, op));
    if (cost >= most)
        return;
    int place = isinf(search->cost[next]) ? search->n_open++ : search->places[next];
    search->cost[next] = cost;
    rise(search, place, next);
    search->arrivals[next].previous = state;
    search->arrivals[next].op = *op;
}

/* All ops that change the i-th run alone, whose value has the number `own`. */
static void relax_run(Search *search, int state, const MtfPlacement *placement, int i, int own) {
    const Space *space = search->space;
    for (int c = 0; c < space->n_choices[i]; c++) {
        int after = space->choices[i][c], next = state + (c - own) * space->strides[i];
        if (c == own || search->cost[state] + LOCAL_OVERHEAD >= most_of(search, next))
            continue;
        MtfReshardKind kind = kind_of(space, placement, i, after);
        if (kind == MTF_RESHARD_KINDS ||
            search->cost[state] + least_step(kind) >= most_of(search, next))
            continue;
        MtfReshardOp op = single_op(placement, space->runs[i], after, kind);
        relax(search, state, next, &op);
    }
}

/* Steps of several axes may lead out of the space. */
static void relax_far(Search *search, int state, const MtfReshardOp *op) {
    int next = placement_state(search->space, &op->to);
    if (next >= 0)
        relax(search, state, next, op);
}

static void relax_all(Search *search, int state) {
    const Space *space = search->space;
    int own[MTF_MAX_MESH_AXES];
    MtfPlacement placement = state_placement(space, state, own);
    for (int i = 0; i < space->n_runs; i++)
        relax_run(search, state, &placement, i, own[i]);
    MtfReshardOp op = { .from = placement };
    for (int kind = MTF_PARTIAL_MAX; kind <= MTF_PARTIAL_SUM; kind++)
        if (reduce_together(space, &op, kind))
            relax_far(search, state, &op);
    for (int i = 0; i < space->n_runs; i++)
        if (gather_together(space, &op, i))
            relax_far(search, state, &op);
    if (exchange_rest(space, &op))
        relax_far(search, state, &op);
}

/* Takes the cheapest open state, of equals the first. */
static int take_nearest(Search *search) {
    int nearest = search->open[0];
    search->n_open--;
    if (search->n_open > 0)
        sink_last(search);
    return nearest;
}

static void read_path(const Search *search, int source, MtfReshardPath *path) {
    path->cost = search->cost[search->target];
    path->n_ops = 0;
    for (int s = search->target; s != source; s = search->arrivals[s].previous)
        path->n_ops++;
    int at = path->n_ops;
    g_assert(at <= MTF_MAX_RESHARD_OPS);
    for (int s = search->target; s != source; s = search->arrivals[s].previous)
        path->ops[--at] = search->arrivals[s].op;
}

void mtf_reshard_path(const MtfGraph *graph, const MtfMesh *mesh, const MtfShape *shape,
                      const MtfPlacement *from, const MtfPlacement *to, MtfReshardPath *path) {
    path->n_ops = 0;
    path->cost = 0;
    if (mtf_placement_equal(from, to))
        return;
    Space space;
    space_init(&space, graph, mesh, shape, from, to);
    g_autofree double *cost = g_new(double, space.n_states);
    g_autofree double *elements = g_new0(double, space.n_states);
    g_autofree Arrival *arrivals = g_new(Arrival, space.n_states);
    g_autofree int *open = g_new(int, space.n_states);
    g_autofree int *places = g_new(int, space.n_states);
    for (int s = 0; s < space.n_states; s++)
        cost[s] = INFINITY;
    int source = placement_state(&space, from);
    Search search = { .space = &space,
                      .target = placement_state(&space, to),
                      .enough = cost_at_once(&space),
                      .cost = cost,
                      .elements = elements,
                      .arrivals = arrivals,
                      .open = open,
                      .places = places };
    cost[source] = 0;
    for (int s = source; s != search.target; s = take_nearest(&search))
        relax_all(&search, s);
    read_path(&search, source, path);
}

/* ---- Payloads and boxes -------------------------------------------------------------------- */

/* What `rank` wants of a dimension of `size`. */
static MtfRange wanted_range(const MtfGraph *graph, const MtfMesh *mesh, const MtfReshardOp *op,
                             int dim, int rank) {
    return mtf_reshard_row(op->kind)->margins
               ? mtf_margins_range(graph, mesh, &op->to, op->reader, dim, rank)
               : mtf_placement_range(mesh, &op->to, dim, mtf_graph_size(graph, dim), rank);
}

/* Whether `rank` serves `peer` in an all-to-all: along axes where the source is replicated, a processor
 * is served by the copy at its own coordinate. */
static bool serves(const MtfMesh *mesh, const MtfReshardOp *op, int rank, int peer) {
    for (int a = 0; a < mesh->n_axes; a++)
        if (op->axes >> a & 1 && op->from.axis[a] == MTF_REPLICATED &&
            mtf_mesh_coordinate(mesh, rank, a) != mtf_mesh_coordinate(mesh, peer, a))
            return false;
    return true;
}

int64_t mtf_reshard_box(const MtfGraph *graph, const MtfMesh *mesh, const MtfShape *shape,
                        const MtfReshardOp *op, MtfRoute route, MtfRange *box) {
    int64_t elements = serves(mesh, op, route.from, route.to) ? 1 : 0;
    for (int i = 0; i < shape->rank; i++) {
        int dim = shape->dims[i];
        int64_t size = mtf_graph_size(graph, dim);
        MtfRange held = mtf_placement_range(mesh, &op->from, dim, size, route.from);
        MtfRange wanted = wanted_range(graph, mesh, op, dim, route.to);
        box[i] = mtf_range_common(held, wanted, size);
        elements *= box[i].end - box[i].begin;
    }
    return elements;
}

/* All boxes that `rank` sends; of a halo to others alone. */
static int64_t sent_in_boxes(const MtfGraph *graph, const MtfMesh *mesh, const MtfShape *shape,
                             const MtfReshardOp *op, int rank) {
    int64_t elements = 0;
    MtfRange box[MTF_MAX_RANK];
    for (int p = 0; p < mtf_mesh_group_size(mesh, op->axes); p++) {
        MtfRoute route = { rank, mtf_mesh_group_member(mesh, op->axes, rank, p) };
        if (!mtf_reshard_row(op->kind)->margins || route.to != rank)
            elements += mtf_reshard_box(graph, mesh, shape, op, route, box);
    }
    return elements;
}

/* ---- Columns ------------------------------------------------------------------------------- */

/* Elements of a message beside its rows: an all-to-all, and an allgather, gives each member a block; a halo half a
 * column to either neighbour. */
static int64_t column_places(const MtfMesh *mesh, const MtfReshardOp *op, int from, int to) {
    if (!mtf_reshard_row(op->kind)->margins)
        return op->column / mtf_mesh_group_size(mesh, op->axes);
    return ABS(from - to) == 1 ? op->column / 2 : 0;
}

/* Of rows on `rank`, or with -1 the most. */
static int64_t column_rows(const MtfGraph *graph, const MtfMesh *mesh, const MtfShape *shape,
                           const MtfReshardOp *op, int rank) {
    int dim = mtf_column_dimension(mtf_graph_operation(graph, op->reader.operation));
    return mtf_sort_rows(graph, mesh, shape, &op->from, dim, rank);
}

int64_t mtf_reshard_column_elements(const MtfGraph *graph, const MtfMesh *mesh,
                                    const MtfShape *shape, const MtfReshardOp *op, MtfRoute route) {
    int from = mtf_mesh_group_position(mesh, op->axes, route.from);
    int to = mtf_mesh_group_position(mesh, op->axes, route.to);
    return column_rows(graph, mesh, shape, op, route.from) * column_places(mesh, op, from, to);
}

/* Of the processor that sends most, or of `rank`. */
static int64_t column_payload(const MtfGraph *graph, const MtfMesh *mesh, const MtfShape *shape,
                              const MtfReshardOp *op, int rank) {
    int members = mtf_mesh_group_size(mesh, op->axes);
    int position = rank < 0 ? members / 2 : mtf_mesh_group_position(mesh, op->axes, rank);
    int64_t places = 0;
    for (int i = 0; i < members; i++)
        places += column_places(mesh, op, position, i);
    return places * column_rows(graph, mesh, shape, op, rank);
}

int64_t mtf_reshard_payload(const MtfGraph *graph, const MtfMesh *mesh, const MtfShape *shape,
                            const MtfReshardOp *op, int rank) {
    const MtfReshardRow *row = mtf_reshard_row(op->kind);
    if (op->column > 0)
        return column_payload(graph, mesh, shape, op, rank);
    if (row->reduces)
        return mtf_local_elements(graph, mesh, shape, &op->from, rank);
    if (row->gathers)
        return mtf_local_elements(graph, mesh, shape, &op->to, rank);
    return row->collective ? sent_in_boxes(graph, mesh, shape, op, rank) : 0;
}

/* What one processor can send, summed over its peers. Of one dimension it is what the processor
 * holds, or what a peer wants, summed over the peers that differ on it: the target splits it over
 * axes whose coordinate the peer shares with the sender (they take no part, or the source is replicated
 * there) and over others, which are summed over. */
static int64_t largest_exchange(const MtfGraph *graph, const MtfMesh *mesh, const MtfShape *shape,
                                const MtfReshardOp *op) {
    int64_t held[MTF_MAX_RANK], wanted[MTF_MAX_RANK], summed[MTF_MAX_RANK], elements = 1;
    MtfPlacement differing = op->to; /* on the axes that are summed over */
    for (int a = 0; a < mesh->n_axes; a++) {
        bool takes_part = op->axes >> a & 1;
        if (!takes_part || op->from.axis[a] == MTF_REPLICATED)
            differing.axis[a] = MTF_REPLICATED;
        if (takes_part && op->from.axis[a] >= 0 && op->to.axis[a] == MTF_REPLICATED)
            elements *= mesh->axes[a].size;
    }
    mtf_placement_parts(mesh, shape, &op->from, held);
    mtf_placement_parts(mesh, shape, &op->to, wanted);
    mtf_placement_parts(mesh, shape, &differing, summed);
    for (int i = 0; i < shape->rank; i++) {
        int64_t size = mtf_graph_size(graph, shape->dims[i]);
        elements *=
            MIN(mtf_largest_part(size, held[i]), mtf_largest_part(size, wanted[i]) * summed[i]);
    }
    return elements;
}

int64_t mtf_reshard_largest_payload(const MtfGraph *graph, const MtfMesh *mesh,
                                    const MtfShape *shape, const MtfReshardOp *op) {
    const MtfReshardRow *row = mtf_reshard_row(op->kind);
    if (op->column > 0)
        return column_payload(graph, mesh, shape, op, -1);
    if (row->reduces)
        return mtf_largest_elements(graph, mesh, shape, &op->from);
    if (row->gathers)
        return mtf_largest_elements(graph, mesh, shape, &op->to);
    if (row->margins)
        return mtf_margins_most(graph, mesh, shape, &op->from, op->reader).sent;
    return row->exchanges ? largest_exchange(graph, mesh, shape, op) : 0;
}
