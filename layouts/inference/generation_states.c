// SPDX-License-Identifier: GPL-3.0-or-later
/* What a graph that generates keeps of a text beside keys and values: the last elements that a convolution
 * reads again, and the states of loops and of linear attention.
 *
 *     kept[batch, k - 1, …] ─┐
 *     x[batch, length, …] ───┴─concat─► near[batch, length + k - 1, …] ─conv─► y
 *                                         └─ of which the last k - 1 before filling are kept
 *
 *     kept[batch, …] ─loop_begin─► state ─ body ─ where(place is filled, state, next) ─loop_next─► kept
 *
 *     v, q, k, log ──kept_linear_attention─► o        of what is not filled log (or step) and k (or beta) are 0,
 *     kept[batch, …] ──────────┴─────► kept           and so the state stays
 *
 * Where an example's text begins, 0 stands for what is kept, or what the loop begins with. An example that
 * brings nothing keeps what it had. */
#include "layouts/graph/operation_table.h"
#include "layouts/graph/window.h"
#include "layouts/inference/generation_making.h"

/* ---- What is in common ----------------------------------------------------------------------- */

/* The tensor of that name, which belongs to no layer and loop, once it is made; `inputs` may be errors. */
static int common(MtfMaking *m, const MtfEmission *e, int n, const int *inputs) {
    int made = m->error == NULL ? mtf_graph_find_tensor(m->graph, e->name) : -1;
    if (made >= 0 || m->error != NULL)
        return made;
    MtfLayer layer = m->layer;
    int loop = m->loop;
    m->layer = (MtfLayer){ 0 };
    m->loop = 0;
    made = mtf_making_emit(m, e, n, inputs);
    m->layer = layer;
    m->loop = loop;
    return made;
}

/* A whole number in the storage type of integers. */
static int whole_number(MtfMaking *m, const char *name, double value) {
    MtfShape scalar = { 0 };
    MtfEmission e = { name, "", MTF_OP_CONSTANT, MTF_NO_ATTRIBUTES, &scalar, true, MTF_I32 };
    e.attributes.value = value;
    return common(m, &e, 0, NULL);
}

static int range(MtfMaking *m, const char *name, int dim) {
    MtfShape along = { 1, { dim } };
    MtfEmission e = { name, "", MTF_OP_RANGE, MTF_NO_ATTRIBUTES, &along, true, MTF_I32 };
    return common(m, &e, 0, NULL);
}

static int in_type(MtfMaking *m, const char *name, MtfDtype dtype, int x) {
    g_autofree char *typed = g_strdup_printf("%s_%s", name, mtf_dtype_name(dtype));
    MtfEmission e = { typed, "", MTF_OP_CAST, MTF_NO_ATTRIBUTES, NULL, true, dtype };
    return common(m, &e, 1, &x);
}

/* 1 where an example's text began before what is at hand: [batch]. */
static int goes_on(MtfMaking *m, MtfDtype dtype) {
    MtfShape each = { 1, { m->batch } };
    MtfEmission e = { "text_goes_on", "", MTF_OP_LESS, MTF_NO_ATTRIBUTES, &each, false, MTF_I32 };
    int is = common(m, &e, 2, (int[]){ whole_number(m, "text_begins", 0), m->position });
    return in_type(m, e.name, dtype, is);
}

/* 1 where a place at hand holds a token: [batch, length]. */
static int is_filled(MtfMaking *m) {
    MtfShape both = { 2, { m->batch, m->length } };
    MtfEmission e = {
        "is_filled", "", MTF_OP_LESS_EQUAL, MTF_NO_ATTRIBUTES, &both, false, MTF_I32
    };
    return common(m, &e, 2, (int[]){ range(m, "places_at_hand", m->length), m->last });
}

/* The variable that an operation keeps, and its value or that of `begin` where the text begins. */
static int add_kept(MtfMaking *m, const MtfOperation *op, const MtfShape *shape, int begin,
                    int *variable) {
    if (m->error != NULL || begin < 0)
        return -1;
    MtfDtype dtype = mtf_graph_tensor(m->graph, begin)->dtype;
    g_autofree char *full = g_strconcat(op->name, "/kept", NULL);
    g_autofree char *name = mtf_making_free_name(m, full);
    *variable =
        mtf_graph_add_variable(m->graph, name, shape, dtype, (MtfInit){ MTF_INIT_CONSTANT, 0 },
                               MTF_MEMORY_CACHE, &m->error);
    if (*variable < 0)
        return -1;
    mtf_graph_tensor(m->graph, *variable)->layer = op->layer;
    MtfEmission e = { op->name, "/before", MTF_OP_WHERE, MTF_NO_ATTRIBUTES, shape, false, 0 };
    return mtf_making_emit(m, &e, 3, (int[]){ goes_on(m, dtype), *variable, begin });
}

static void keep(MtfMaking *m, int variable, int value) {
    if (m->error == NULL && value >= 0)
        mtf_graph_add_update(m->graph, variable, value);
}

/* ---- Convolutions ---------------------------------------------------------------------------- */

void mtf_making_places_beyond(const MtfGraph *graph, int length, int64_t *beyond) {
    g_autofree bool *renamed = g_new0(bool, graph->dimensions->len + 1);
    for (int d = 0; d < (int)graph->dimensions->len; d++)
        beyond[d] = -1;
    for (int i = 0; i < (int)graph->operations->len; i++) {
        const MtfOperation *op = mtf_graph_operation(graph, i);
        if (mtf_operation_row(op->kind)->dims == MTF_DIMS_RENAMED && op->attributes.to == length)
            renamed[op->attributes.from] = true;
    }
    for (int i = 0; i < (int)graph->operations->len; i++) {
        const MtfAttributes *a = &mtf_graph_operation(graph, i)->attributes;
        for (int w = 0; w < a->n_windows; w++)
            if (renamed[a->windows[w].to]) {
                const MtfWindow *window = &a->windows[w];
                beyond[window->to] = 0;
                beyond[window->from] =
                    mtf_window_extent(graph, window) - 1 - window->before - window->after;
            }
    }
}

/* The window along the text; NULL: there is none. */
static MtfWindow *window_along(const MtfMaking *m, MtfAttributes *a) {
    for (int w = 0; w < a->n_windows; w++)
        if (a->windows[w].from == m->length)
            return &a->windows[w];
    return NULL;
}

/* A dimension of `beyond` places, or of the text and those before it. */
static int places(MtfMaking *m, const char *what, int64_t beyond, int64_t size) {
    const char *base = mtf_graph_dimension(m->from, m->length)->name;
    g_autofree char *name = g_strdup_printf("%s_%s_%d", base, what, (int)beyond);
    int known = mtf_graph_find_dimension(m->graph, name);
    return known >= 0 || m->error != NULL
               ? known
               : mtf_graph_add_dimension(m->graph, name, size, &m->error);
}

/* A shape with `to` in place of the text's dimension. */
static MtfShape along(const MtfMaking *m, int x, int to) {
    MtfShape shape = *mtf_making_shape(m, x);
    shape.dims[mtf_shape_find(&shape, m->length)] = to;
    return shape;
}

/* The places of `near` that are kept, those before the first that is not filled: [batch, kept]. */
static int kept_places(MtfMaking *m, int kept) {
    MtfShape each = { 1, { m->batch } }, rows = { 2, { m->batch, kept } };
    const char *name = mtf_graph_dimension(m->graph, kept)->name;
    g_autofree char *from = g_strconcat(name, "_from", NULL), *at = g_strconcat(name, "_at", NULL);
    MtfEmission count = { "filled", "", MTF_OP_REDUCE_SUM, MTF_NO_ATTRIBUTES, &each, false, 0 };
    MtfEmission add = { at, "", MTF_OP_ADD, MTF_NO_ATTRIBUTES, &rows, false, MTF_I32 };
    int filled = is_filled(m), n = common(m, &count, 1, &filled);
    return common(m, &add, 2, (int[]){ range(m, from, kept), n });
}

int mtf_make_convolution(MtfMaking *m, const MtfOperation *op, int *inputs) {
    MtfEmission e = { op->name, "", op->kind, op->attributes, NULL, false, 0 };
    const MtfWindow *seen = window_along(m, &e.attributes);
    int64_t before = seen == NULL ? 0 : mtf_window_extent(m->from, seen) - 1;
    if (seen == NULL || inputs[0] < 0)
        return mtf_making_copy(m, op, inputs);
    if (seen->stride != 1 || seen->before != before || seen->after != 0 || before == 0)
        mtf_making_fail(m, op, "reads what comes later, or not all of the text");
    int64_t length = mtf_graph_size(m->graph, m->length);
    int kept = places(m, "kept", before, before), near = places(m, "near", before, length + before);
    if (m->error != NULL)
        return -1;
    MtfDtype dtype = mtf_graph_tensor(m->graph, inputs[0])->dtype;
    MtfShape few = along(m, inputs[0], kept), all = along(m, inputs[0], near), scalar = { 0 };
    MtfShape result = mtf_graph_tensor(m->from, op->outputs[0])->shape;
    MtfEmission zero = {
        op->name, "/zero", MTF_OP_CONSTANT, MTF_NO_ATTRIBUTES, &scalar, true, dtype
    };
    MtfEmission join = { op->name, "/near", MTF_OP_CONCAT, MTF_NO_ATTRIBUTES, &all, false, 0 };
    MtfEmission last = { op->name, "/last", MTF_OP_EMBEDDING, MTF_NO_ATTRIBUTES, &few, false, 0 };
    int variable = -1;
    int past = add_kept(m, op, &few, mtf_making_emit(m, &zero, 0, NULL), &variable);
    int x = mtf_making_emit(m, &join, 2, (int[]){ past, inputs[0] });
    keep(m, variable, mtf_making_emit(m, &last, 2, (int[]){ x, kept_places(m, kept) }));
    MtfWindow *window = window_along(m, &e.attributes);
    window->from = near;
    window->before = 0;
    e.shape = &result;
    return mtf_making_emit(m, &e, 2, (int[]){ x, inputs[1] });
}

/* ---- Loops ----------------------------------------------------------------------------------- */

static bool runs_along_the_text(const MtfMaking *m, int loop) {
    return loop > 0 && g_array_index(m->from->loops, MtfLoop, loop - 1).dimension == m->length;
}

/* The loop that carries on a state. */
static int loop_of_state(const MtfGraph *graph, int state) {
    for (int i = 0; i < (int)graph->operations->len; i++) {
        const MtfOperation *op = mtf_graph_operation(graph, i);
        if (mtf_operation_row(op->kind)->loop == MTF_LOOP_HANDS_ON && op->inputs[0] == state)
            return op->loop;
    }
    return 0;
}

int mtf_make_loop_begin(MtfMaking *m, const MtfOperation *op, int *inputs) {
    int loop = loop_of_state(m->from, op->outputs[0]), variable = -1;
    if (!runs_along_the_text(m, loop))
        return mtf_making_copy(m, op, inputs);
    if (g_array_index(m->from->loops, MtfLoop, loop - 1).reverse)
        mtf_making_fail(m, op, "begins at the end of the text");
    MtfShape shape = mtf_graph_tensor(m->from, op->outputs[0])->shape;
    if (mtf_shape_find(&shape, m->batch) < 0)
        mtf_making_fail(m, op, "is one for all texts");
    int before = add_kept(m, op, &shape, inputs[0], &variable);
    MtfEmission e = { op->name, "", op->kind, op->attributes, NULL, false, 0 };
    int state = mtf_making_emit(m, &e, 1, &before);
    if (state >= 0)
        m->kept[op->outputs[0]] = variable;
    return state;
}

/* Behind an example's last token its states stay. */
int mtf_make_loop_next(MtfMaking *m, const MtfOperation *op, int *inputs) {
    if (!runs_along_the_text(m, op->loop) || inputs[0] < 0 || inputs[1] < 0)
        return mtf_making_copy(m, op, inputs);
    MtfShape shape = *mtf_making_shape(m, inputs[0]), each = { 1, { m->batch } };
    MtfDtype dtype = mtf_graph_tensor(m->graph, inputs[0])->dtype;
    MtfEmission now = { op->name, "/is_filled", MTF_OP_LOOP_SLICE, MTF_NO_ATTRIBUTES, &each, false,
                        0 };
    MtfEmission stay = { op->name, "/stays", MTF_OP_WHERE, MTF_NO_ATTRIBUTES, &shape, false, 0 };
    MtfEmission e = { op->name, "", op->kind, op->attributes, NULL, false, 0 };
    now.attributes.dimension = m->length;
    int filled = in_type(m, "is_filled", dtype, is_filled(m));
    int is = mtf_making_emit(m, &now, 1, &filled);
    int next = mtf_making_emit(m, &stay, 3, (int[]){ is, inputs[1], inputs[0] });
    int last = mtf_making_emit(m, &e, 2, (int[]){ inputs[0], next });
    keep(m, m->kept[op->inputs[0]], last);
    return last;
}

/* ---- Linear attention -------------------------------------------------------------------------- */

/* `x`, input `k` of the operation, and 0 where a place holds no token. */
static int of_filled_places(MtfMaking *m, const MtfOperation *op, int k, int x) {
    static const char *const suffixes[] = { "", "", "/k", "/log", "/beta" };
    if (m->error != NULL || x < 0)
        return -1;
    MtfDtype dtype = mtf_graph_tensor(m->graph, x)->dtype;
    MtfShape shape = *mtf_making_shape(m, x), scalar = { 0 };
    g_autofree char *zero_name = g_strconcat(suffixes[k], "_unfilled", NULL);
    g_autofree char *name = g_strconcat(suffixes[k], "_filled", NULL);
    MtfEmission zero = { op->name, zero_name, MTF_OP_CONSTANT, MTF_NO_ATTRIBUTES, &scalar,
                         true,     dtype };
    MtfEmission e = { op->name, name, MTF_OP_WHERE, MTF_NO_ATTRIBUTES, &shape, false, 0 };
    int filled = in_type(m, "is_filled", dtype, is_filled(m));
    return mtf_making_emit(m, &e, 3, (int[]){ filled, x, mtf_making_emit(m, &zero, 0, NULL) });
}

int mtf_make_linear_attention(MtfMaking *m, const MtfOperation *op, int *inputs) {
    const MtfAttributes *a = &op->attributes;
    bool scans = mtf_operation_row(op->kind)->scans;
    int changed = op->n_inputs > 4 && !scans ? 4 : 2, variable = -1;
    if (a->dimension != m->length || inputs[0] < 0)
        return mtf_making_copy(m, op, inputs);
    MtfShape state = *mtf_making_shape(m, inputs[0]), scalar = { 0 };
    int values = state.dims[state.rank - 1];
    mtf_shape_remove(&state, m->length);
    state.dims[state.rank - 1] = a->keys;
    mtf_shape_append(&state, values);
    MtfDtype wide = mtf_dtype_wide(mtf_graph_tensor(m->graph, inputs[0])->dtype);
    MtfEmission zero = {
        op->name, "/zero", MTF_OP_CONSTANT, MTF_NO_ATTRIBUTES, &scalar, true, wide
    };
    int kind = scans ? MTF_OP_KEPT_SELECTIVE_SCAN : MTF_OP_KEPT_LINEAR_ATTENTION;
    MtfEmission e = { op->name, "", kind, *a, NULL, false, 0 };
    inputs[3] = of_filled_places(m, op, 3, inputs[3]);
    inputs[changed] = of_filled_places(m, op, changed, inputs[changed]);
    int before = add_kept(m, op, &state, mtf_making_emit(m, &zero, 0, NULL), &variable);
    int told = mtf_making_emit(m, &e, op->n_inputs + 1,
                               (int[]){ inputs[0], inputs[1], inputs[2], inputs[3], before,
                                        op->n_inputs > 4 ? inputs[4] : -1 });
    if (told >= 0)
        keep(m, variable,
             mtf_graph_operation(m->graph, mtf_graph_tensor(m->graph, told)->producer)->outputs[1]);
    return told;
}
