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

#define MTF_TRANSFER_WAY_NAME(NAME, name) #name,

const char *mtf_transfer_way_name(MtfTransferWay way) {
    static const char *const names[] = { MTF_TRANSFER_WAY_LIST(MTF_TRANSFER_WAY_NAME) };
    return names[way];
}

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

static int holders_of(const Grid *grid, int64_t cell) {
    return grid->first[cell + 1] - grid->first[cell];
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

static void grid_clear(Grid *grid) {
    g_free(grid->first);
    g_free(grid->holders);
}

/* What is being added: what one receiver gets of the parts that touch its own. */
typedef struct {
    GArray *routes;
    const Grid *from;
    int64_t element_bytes;
    int receiver;
    MtfRange wanted[MTF_MAX_RANK];
    Walk walk;
    int alike; /* who hold the same part as this receiver, itself among them, */
    const int *members;
} Adding;

static int longest_dimension(const MtfRange *range, int rank) {
    int longest = 0;
    for (int i = 1; i < rank; i++)
        if (range[i].end - range[i].begin > range[longest].end - range[longest].begin)
            longest = i;
    return longest;
}

/* Piece `index` of the receivers' of a box, along its longest dimension. */
static void add_piece(const Adding *adding, int index, MtfTransferRoute route) {
    int rank = adding->from->rank, d = longest_dimension(route.range, rank);
    if (rank > 0 && adding->alike > 1) {
        MtfRange whole = route.range[d];
        MtfRange piece = mtf_part(whole.end - whole.begin, index, adding->alike);
        route.range[d] = (MtfRange){ whole.begin + piece.begin, whole.begin + piece.end };
    }
    route.bytes = adding->element_bytes;
    for (int i = 0; i < rank; i++)
        route.bytes *= route.range[i].end - route.range[i].begin;
    if (route.bytes > 0)
        g_array_append_val(adding->routes, route);
}

/* What the receiver shares with the cell where the walk stands: its own piece from who holds it, those of
 * others from them; nothing where a cell is empty. */
static void add_routes(const Adding *adding) {
    const Grid *grid = adding->from;
    int64_t cell = cell_at(grid, adding->walk.at);
    int holders = holders_of(grid, cell), receiver = adding->receiver;
    MtfTransferRoute route = { .receiver = receiver };
    if (holders == 0)
        return;
    for (int i = 0; i < grid->rank; i++) {
        MtfRange part = mtf_part(grid->sizes[i], adding->walk.at[i], grid->parts[i]);
        route.range[i].begin = MAX(part.begin, adding->wanted[i].begin);
        route.range[i].end = MIN(part.end, adding->wanted[i].end);
    }
    for (int k = 0; k < adding->alike; k++) {
        route.inside = adding->members[k] != receiver;
        route.sender = route.inside ? adding->members[k]
                                    : grid->holders[grid->first[cell] + receiver % holders];
        add_piece(adding, k, route);
    }
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

static void add_routes_to(Adding *adding) {
    const Grid *grid = adding->from;
    for (int i = 0; i < grid->rank; i++) {
        adding->walk.low[i] = adding->walk.at[i] = part_of(grid, i, adding->wanted[i].begin);
        adding->walk.high[i] = part_of(grid, i, adding->wanted[i].end - 1);
    }
    do
        add_routes(adding);
    while (next_cell(grid, &adding->walk));
}

GArray *mtf_transfer_routes(const MtfTransferSide *from, const MtfTransferSide *to,
                            MtfTransferWay way) {
    Grid senders, receivers;
    grid_init(&senders, from);
    grid_init(&receivers, to);
    Adding adding = { .routes = g_array_new(FALSE, FALSE, sizeof(MtfTransferRoute)),
                      .from = &senders };
    adding.element_bytes = mtf_dtype_bytes(mtf_graph_tensor(to->graph, to->tensor)->dtype);
    for (int receiver = 0; receiver < mtf_mesh_size(&to->layout->mesh); receiver++) {
        int64_t cell = held_cell(&receivers, to, receiver);
        if (cell < 0)
            continue;
        bool gathers = way == MTF_TRANSFER_GATHERED;
        adding.receiver = receiver;
        adding.alike = gathers ? holders_of(&receivers, cell) : 1;
        adding.members = gathers ? &receivers.holders[receivers.first[cell]] : &adding.receiver;
        mtf_transfer_part_ranges(to, receiver, adding.wanted);
        add_routes_to(&adding);
    }
    grid_clear(&senders);
    grid_clear(&receivers);
    return adding.routes;
}

int mtf_transfer_most_alike(const MtfTransferSide *to) {
    Grid grid;
    int most = 0;
    grid_init(&grid, to);
    for (int64_t cell = 0; cell < grid.cells; cell++)
        most = MAX(most, holders_of(&grid, cell));
    grid_clear(&grid);
    return most;
}
