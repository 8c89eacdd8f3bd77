// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/transfer/transfer_routes.h"

/* The parts that one side holds, a grid: processors of cell c are holders[first[c]] … [first[c + 1] - 1],
 * ascending. A scalar's grid is one cell. */
typedef struct {
    int rank;
    int64_t sizes[MTF_MAX_RANK], parts[MTF_MAX_RANK];
    int64_t cells;
    int *first, *holders;
} Grid;

/* Cells of a grid that one receiver's part touches, dimension by dimension, and where one stands. */
typedef struct {
    int64_t low[MTF_MAX_RANK], high[MTF_MAX_RANK], at[MTF_MAX_RANK];
} Walk;

void mtf_transfer_part_ranges(const MtfTransferSide *side, int processor, MtfRange *ranges) {
    const MtfShape *shape = &mtf_graph_tensor(side->graph, side->tensor)->shape;
    for (int i = 0; i < shape->rank; i++)
        ranges[i] = mtf_placement_range(&side->layout->mesh, &side->layout->tensors[side->tensor],
                                        shape->dims[i], mtf_graph_size(side->graph, shape->dims[i]),
                                        processor);
}

/* The k of the part [floor(k n / p), floor((k + 1) n / p)) that holds an element e: the last k with
 * k n / p < e + 1. */
static int64_t part_of(const Grid *grid, int dimension, int64_t element) {
    return ((element + 1) * grid->parts[dimension] - 1) / grid->sizes[dimension];
}

/* The cell of part `at[i]` of each dimension. */
static int64_t cell_at(const Grid *grid, const int64_t *at) {
    int64_t cell = 0;
    for (int i = 0; i < grid->rank; i++)
        cell = cell * grid->parts[i] + at[i];
    return cell;
}

static bool is_empty(const MtfRange *ranges, int rank) {
    for (int i = 0; i < rank; i++)
        if (ranges[i].begin >= ranges[i].end)
            return true;
    return false;
}

/* The cell that a processor holds; -1 where it holds nothing. */
static int64_t held_cell(const Grid *grid, const MtfTransferSide *side, int processor) {
    MtfRange ranges[MTF_MAX_RANK];
    int64_t at[MTF_MAX_RANK];
    mtf_transfer_part_ranges(side, processor, ranges);
    if (is_empty(ranges, grid->rank))
        return -1;
    for (int i = 0; i < grid->rank; i++)
        at[i] = part_of(grid, i, ranges[i].begin);
    return cell_at(grid, at);
}

/* Sorts processors by their cells, by counting. */
static void find_holders(Grid *grid, const MtfTransferSide *side) {
    int n = mtf_mesh_size(&side->layout->mesh);
    g_autofree int64_t *cells = g_new(int64_t, n);
    grid->first = g_new0(int, grid->cells + 2);
    grid->holders = g_new(int, n);
    for (int p = 0; p < n; p++) {
        cells[p] = held_cell(grid, side, p);
        if (cells[p] >= 0)
            grid->first[cells[p] + 2]++;
    }
    for (int64_t c = 2; c < grid->cells + 2; c++)
        grid->first[c] += grid->first[c - 1];
    /* first[c + 1] is where the next holder of c goes, and in the end where those of c + 1 begin. */
    for (int p = 0; p < n; p++)
        if (cells[p] >= 0)
            grid->holders[grid->first[cells[p] + 1]++] = p;
}

static void grid_init(Grid *grid, const MtfTransferSide *side) {
    const MtfShape *shape = &mtf_graph_tensor(side->graph, side->tensor)->shape;
    *grid = (Grid){ .rank = shape->rank, .cells = 1 };
    mtf_placement_parts(&side->layout->mesh, shape, &side->layout->tensors[side->tensor],
                        grid->parts);
    for (int i = 0; i < shape->rank; i++) {
        grid->sizes[i] = mtf_graph_size(side->graph, shape->dims[i]);
        grid->cells *= grid->parts[i];
    }
    find_holders(grid, side);
}

/* The route by which a receiver's part gets what it shares with the cell; nothing where a cell is
 * empty. */
static void add_route(GArray *routes, const Grid *grid, const Walk *walk, const MtfRange *wanted,
                      MtfTransferRoute route) {
    int64_t cell = cell_at(grid, walk->at);
    int holders = grid->first[cell + 1] - grid->first[cell];
    if (holders == 0)
        return;
    route.sender = grid->holders[grid->first[cell] + route.receiver % holders];
    for (int i = 0; i < grid->rank; i++) {
        MtfRange part = mtf_part(grid->sizes[i], walk->at[i], grid->parts[i]);
        route.range[i].begin = MAX(part.begin, wanted[i].begin);
        route.range[i].end = MIN(part.end, wanted[i].end);
        route.bytes *= route.range[i].end - route.range[i].begin;
    }
    g_array_append_val(routes, route);
}

/* The next cell, the last dimension first; false behind the last. */
static bool next_cell(const Grid *grid, Walk *walk) {
    for (int i = grid->rank - 1; i >= 0; i--) {
        if (++walk->at[i] <= walk->high[i])
            return true;
        walk->at[i] = walk->low[i];
    }
    return false;
}

static void add_routes_to(GArray *routes, const Grid *grid, const MtfTransferSide *to,
                          int receiver) {
    MtfRange wanted[MTF_MAX_RANK];
    MtfTransferRoute route = { .receiver = receiver };
    Walk walk;
    route.bytes = mtf_dtype_bytes(mtf_graph_tensor(to->graph, to->tensor)->dtype);
    mtf_transfer_part_ranges(to, receiver, wanted);
    if (is_empty(wanted, grid->rank))
        return;
    for (int i = 0; i < grid->rank; i++) {
        walk.low[i] = walk.at[i] = part_of(grid, i, wanted[i].begin);
        walk.high[i] = part_of(grid, i, wanted[i].end - 1);
    }
    do
        add_route(routes, grid, &walk, wanted, route);
    while (next_cell(grid, &walk));
}

GArray *mtf_transfer_routes(const MtfTransferSide *from, const MtfTransferSide *to) {
    GArray *routes = g_array_new(FALSE, FALSE, sizeof(MtfTransferRoute));
    Grid grid;
    grid_init(&grid, from);
    for (int receiver = 0; receiver < mtf_mesh_size(&to->layout->mesh); receiver++)
        add_routes_to(routes, &grid, to, receiver);
    g_free(grid.first);
    g_free(grid.holders);
    return routes;
}
