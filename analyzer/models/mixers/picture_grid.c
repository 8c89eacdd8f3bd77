// SPDX-License-Identifier: GPL-3.0-or-later
/* Where patches of a picture stand on their grid, behind one place that is none and before places that are none:
 *
 *     place      0       1 … side          …          … side²     side² + 1 …
 *                class   row 0, columns 0 … side - 1  …           registers                             */
#include "analyzer/models/architecture_parts.h"

#include <math.h>

static int64_t grid_side(const MtfAssembly *m) {
    return m->n->image_size / m->n->patch_size;
}

/* Rows and columns of places along a dimension, and whether they are patches at all: 1 or 0. */
typedef struct {
    int row, column, is_patch;
} Grid;

/* An operation on x and a number. */
static int with(MtfAssembly *m, int kind, const char *name, int x, double number) {
    g_autofree char *constant = g_strdup_printf("%s_number", name);
    int y = mtf_parts_constant(m->p, constant, number);
    return mtf_parts_apply(m->p, kind, name, NULL, x, y);
}

static Grid grid_along(MtfAssembly *m, const char *prefix, int dim) {
    double side = (double)grid_side(m);
    mtf_parts_enter(m->p, prefix);
    m->p->b.has_dtype = true;
    m->p->b.dtype = MTF_F32;
    int place = mtf_parts_range(m->p, "place", dim);
    int patch = with(m, MTF_OP_ADD, "patch", place, -1);
    int rows = with(m, MTF_OP_DIVIDE, "rows", patch, side);
    Grid grid = { .row = mtf_parts_apply(m->p, MTF_OP_FLOOR, "row", NULL, rows, -1) };
    int before = mtf_assembly_scale(m, "before", side, grid.row);
    grid.column = mtf_parts_apply(m->p, MTF_OP_SUBTRACT, "column", NULL, patch, before);
    int none = mtf_parts_constant(m->p, "none", 0);
    int behind = mtf_parts_apply(m->p, MTF_OP_LESS_EQUAL, "behind", NULL, none, patch);
    int early = with(m, MTF_OP_LESS, "early", patch, side * side);
    grid.is_patch = mtf_parts_apply(m->p, MTF_OP_MULTIPLY, "is_patch", NULL, behind, early);
    mtf_parts_leave(m->p);
    return grid;
}

/* ---- Turns ------------------------------------------------------------------------------------- */

/* The dimensions that a head's features are: which half of a pair, along which axis, how fast. */
typedef struct {
    int half, axis, speed;
} Pairs;

static Pairs pair_dimensions(MtfAssembly *m) {
    return (Pairs){ mtf_assembly_dimension(m, "pair_half", 2),
                    mtf_assembly_dimension(m, "grid_axis", 2),
                    mtf_assembly_dimension(m, "pair_speed", m->width_kv / 4) };
}

/* How far the middle of a patch is from the picture's, half of whose side is 1; 0 of what is no patch. */
static int from_middle(MtfAssembly *m, const char *name, const Grid *grid, int x) {
    g_autofree char *steps = g_strdup_printf("%s_steps", name);
    g_autofree char *apart = g_strdup_printf("%s_apart", name);
    double side = (double)grid_side(m);
    int scaled = mtf_assembly_scale(m, steps, 2 / side, x);
    int shifted = with(m, MTF_OP_ADD, apart, scaled, 1 / side - 1);
    return mtf_parts_apply(m->p, MTF_OP_MULTIPLY, name, NULL, shifted, grid->is_patch);
}

/* Angles [length, axis, speed]. */
static int angles_of(MtfAssembly *m, const Pairs *d) {
    Grid grid = grid_along(m, "places", m->length);
    MtfShape both = MTF_SHAPE(m->length, d->axis);
    int apart[2] = { from_middle(m, "down", &grid, grid.row),
                     from_middle(m, "right", &grid, grid.column) };
    int stacked = mtf_parts_apply_shape_to(m->p, MTF_OP_STACK, "apart", &both, 2, apart);
    m->p->b.has_dtype = true;
    m->p->b.dtype = MTF_F32;
    int number = mtf_parts_range(m->p, "number", d->speed);
    double fall = -4 * log(m->stack->grid_base) / (double)m->width_kv;
    int slow = mtf_assembly_scale(m, "slow", fall, number);
    int speed = mtf_parts_apply(m->p, MTF_OP_EXP, "speed", NULL, slow, -1);
    int turns = mtf_assembly_scale(m, "turns", 2 * G_PI, stacked);
    return mtf_parts_einsum(m->p, "angle", &MTF_SHAPE(m->length, d->axis, d->speed), turns, speed);
}

/* Cosines, and sines that are negative for the first of a pair, of all places. */
static void begin_turns(MtfAssembly *m) {
    Pairs d = pair_dimensions(m);
    int angle = angles_of(m, &d);
    m->grid_cosine = mtf_parts_apply(m->p, MTF_OP_COS, "cosine", NULL, angle, -1);
    int sine = mtf_parts_apply(m->p, MTF_OP_SIN, "plain_sine", NULL, angle, -1);
    m->p->b.has_dtype = true;
    m->p->b.dtype = MTF_F32;
    int half = mtf_parts_range(m->p, "half", d.half);
    int sign = with(m, MTF_OP_ADD, "sign", mtf_assembly_scale(m, "twice", 2, half), -1);
    MtfShape shape = MTF_SHAPE(m->length, d.half, d.axis, d.speed);
    m->grid_sine = mtf_parts_einsum(m->p, "sine", &shape, sine, sign);
}

int mtf_assembly_grid_turn(MtfAssembly *m, const char *name, int x) {
    Pairs d = pair_dimensions(m);
    if (m->p->b.error != NULL)
        return x;
    MtfShape whole = mtf_graph_tensor(m->p->b.graph, x)->shape, parts = whole;
    mtf_shape_remove(&parts, m->d_kv);
    mtf_shape_append(&parts, d.half);
    mtf_shape_append(&parts, d.axis);
    mtf_shape_append(&parts, d.speed);
    mtf_parts_enter(m->p, name);
    int pairs = mtf_parts_apply(m->p, MTF_OP_RESHAPE, "pairs", &parts, x, -1);
    m->p->b.attributes.dimension = d.half;
    int others = mtf_parts_apply(m->p, MTF_OP_REVERSE, "others", NULL, pairs, -1);
    int along = mtf_parts_apply(m->p, MTF_OP_MULTIPLY, "along", NULL, pairs, m->grid_cosine);
    int across = mtf_parts_apply(m->p, MTF_OP_MULTIPLY, "across", NULL, others, m->grid_sine);
    int turned = mtf_parts_add(m->p, "turned", along, across);
    int y = mtf_parts_apply(m->p, MTF_OP_RESHAPE, "y", &whole, turned, -1);
    mtf_parts_leave(m->p);
    return y;
}

/* ---- Biases ------------------------------------------------------------------------------------ */

/* The row of a table of relative places for each query and memory: (2 side - 1)² of pairs of patches, then one each of
 * the class's place that looks at patches, of patches that look at it, and of both. */
static int relative_rows(MtfAssembly *m) {
    double side = (double)grid_side(m), across = 2 * side - 1, rows = across * across;
    MtfShape all = MTF_SHAPE(m->length, m->memory_length);
    Grid query = grid_along(m, "query", m->length),
         memory = grid_along(m, "memory", m->memory_length);
    int down = mtf_parts_apply(m->p, MTF_OP_SUBTRACT, "down", &all, query.row, memory.row);
    int right = mtf_parts_apply(m->p, MTF_OP_SUBTRACT, "right", &all, query.column, memory.column);
    int far = mtf_parts_add(m->p, "far", mtf_assembly_scale(m, "lines", across, down), right);
    int row = with(m, MTF_OP_ADD, "row", far, (side - 1) * across + side - 1);
    int from_class = mtf_parts_constant(m->p, "from_class", rows);
    int to_class = mtf_parts_constant(m->p, "to_class", rows + 1);
    int itself = mtf_parts_constant(m->p, "itself", rows + 2);
    int from = mtf_parts_apply_to(m->p, MTF_OP_WHERE, "of_class", 3,
                                  (int[]){ memory.is_patch, from_class, itself });
    int to = mtf_parts_apply_to(m->p, MTF_OP_WHERE, "of_patch", 3,
                                (int[]){ memory.is_patch, row, to_class });
    int which =
        mtf_parts_apply_to(m->p, MTF_OP_WHERE, "which", 3, (int[]){ query.is_patch, to, from });
    m->p->b.has_dtype = true;
    m->p->b.dtype = MTF_I32;
    return mtf_parts_apply(m->p, MTF_OP_CAST, "rows", NULL, which, -1);
}

int mtf_assembly_grid_bias(MtfAssembly *m) {
    int64_t across = 2 * grid_side(m) - 1;
    int rows = mtf_assembly_dimension(m, "grid_rows", across * across + 3);
    MtfShape shape = MTF_SHAPE(m->heads, m->length, m->memory_length);
    int table =
        mtf_assembly_table(m, "grid_table", m->stack->names.grid_table, &MTF_SHAPE(rows, m->heads));
    return mtf_parts_apply(m->p, MTF_OP_EMBEDDING, "grid_bias", &shape, table, m->grid_rows);
}

void mtf_assembly_begin_grid(MtfAssembly *m) {
    mtf_parts_enter(m->p, "grid");
    if (m->stack->grid_base > 0)
        begin_turns(m);
    if (m->stack->names.grid_table != NULL)
        m->grid_rows = relative_rows(m);
    mtf_parts_leave(m->p);
}
