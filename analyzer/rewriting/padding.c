// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/rewriting/padding.h"

#include "layouts/base/error.h"
#include "layouts/building/builder.h"
#include "layouts/graph/optimizer.h"
#include "layouts/graph/random.h"
#include "layouts/graph/window.h"
#include "layouts/placement/dimension_hint.h"

#include <inttypes.h>
#include <string.h>

#define MAX_MULTIPLE (INT64_C(1) << 30)
#define LOWEST -1e30

typedef struct {
    MtfGraph *graph;
    MtfBuilder b;
    GArray *zero;       /* unsigned, one a tensor: bit i: its padding along dims[i] is 0 */
    GArray *order;      /* int: operations as they are to stand */
    GHashTable *masked; /* "TENSOR/DIMENSION/…" -> tensor + 1 */
    GError *error;
} Padding;

static bool is_padded(const MtfGraph *graph, int dim) {
    return mtf_graph_dimension(graph, dim)->unpadded > 0;
}

/* ---- Which dimensions ------------------------------------------------------------------------- */

/* Refuses a dimension that data arrives with. */
static bool check_free(const MtfGraph *graph, int dim, GError **error) {
    const char *name = mtf_graph_dimension(graph, dim)->name;
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(graph, t);
        if (tensor->source == MTF_SOURCE_INPUT && mtf_shape_find(&tensor->shape, dim) >= 0)
            return mtf_input_error(error,
                                   "--pad: input \"%s\" has the dimension \"%s\", and there is no "
                                   "data to fill it up with: only what variables and results have "
                                   "can be padded",
                                   tensor->name, name);
    }
    for (guint i = 0; i < graph->loops->len; i++)
        if (g_array_index(graph->loops, MtfLoop, i).dimension == dim)
            return mtf_input_error(error,
                                   "--pad: the loop \"%s\" runs along \"%s\", which cannot be "
                                   "padded",
                                   g_array_index(graph->loops, MtfLoop, i).name, name);
    return true;
}

/* Marks a dimension, and those that renames tie to it. */
static bool mark(MtfGraph *graph, int dim, int64_t size, GError **error) {
    MtfDimension *dimension = mtf_graph_dimension(graph, dim);
    if (dimension->size == size)
        return true;
    if (!check_free(graph, dim, error))
        return false;
    dimension->unpadded = dimension->size;
    dimension->size = size;
    for (int o = 0; o < (int)graph->operations->len; o++) {
        const MtfOperation *op = mtf_graph_operation(graph, o);
        int from = op->attributes.from, to = op->attributes.to;
        if (mtf_operation_row(op->kind)->dims == MTF_DIMS_RENAMED && (from == dim || to == dim) &&
            !mark(graph, from == dim ? to : from, size, error))
            return false;
    }
    return true;
}

static int find_dimension(const MtfGraph *graph, const char *name, GError **error) {
    int dim = mtf_graph_find_dimension(graph, name);
    if (dim >= 0)
        return dim;
    g_autofree char *hint = mtf_graph_dimension_hint(graph, name);
    mtf_input_error(error, "--pad: the graph has no dimension \"%s\"%s", name, hint);
    return -1;
}

static bool read_padding(MtfGraph *graph, const char *text, GPtrArray *said, GError **error) {
    const char *colon = strrchr(text, ':');
    char *end = NULL;
    int64_t multiple = colon != NULL ? g_ascii_strtoll(colon + 1, &end, 10) : 0;
    if (multiple < 1 || multiple > MAX_MULTIPLE || *end != '\0' || colon == text)
        return mtf_input_error(error,
                               "--pad %s: it should be a dimension and what its size is to be a "
                               "multiple of, as in vocab:128",
                               text);
    g_autofree char *name = g_strndup(text, (gsize)(colon - text));
    int dim = find_dimension(graph, name, error);
    if (dim < 0)
        return false;
    int64_t size = mtf_graph_size(graph, dim), rest = size % multiple;
    int64_t padded = rest > 0 ? size + multiple - rest : size;
    if (rest > 0 && is_padded(graph, dim))
        return mtf_input_error(error, "--pad %s: \"%s\" is padded already, to %" PRId64, text, name,
                               size);
    if (said != NULL)
        g_ptr_array_add(said, rest == 0 ? g_strdup_printf("%s %" PRId64 " is a multiple of %" PRId64
                                                          ": nothing to pad",
                                                          name, size, multiple)
                                        : g_strdup_printf("%s padded from %" PRId64 " to %" PRId64,
                                                          name, size, padded));
    return mark(graph, dim, padded, error);
}

/* ---- What padding holds ----------------------------------------------------------------------- */

static unsigned zero_of(const Padding *p, int tensor) {
    return (int)p->zero->len > tensor ? g_array_index(p->zero, unsigned, tensor) : 0;
}

static void set_zero(Padding *p, int tensor, unsigned bits) {
    if ((int)p->zero->len <= tensor)
        g_array_set_size(p->zero, (guint)tensor + 1);
    g_array_index(p->zero, unsigned, tensor) = bits;
}

/* Whether an input that has the dimension holds zeros in its padding. */
static bool input_is_zero(const Padding *p, const MtfOperation *op, int k, int dim) {
    int at = mtf_shape_find(&mtf_graph_tensor(p->graph, op->inputs[k])->shape, dim);
    return at >= 0 && (zero_of(p, op->inputs[k]) >> at & 1) != 0;
}

/* Whether a result's padding along a dimension, `dim` in its inputs, is zero since theirs is. */
static bool result_is_zero(const Padding *p, const MtfOperation *op, int dim) {
    const MtfOperationRow *row = mtf_operation_row(op->kind);
    bool all = op->n_inputs > 0, any = false;
    for (int k = 0; k < op->n_inputs; k++) {
        bool zero = input_is_zero(p, op, k, dim);
        all &= zero;
        any |= zero;
    }
    switch (row->linearity) {
    case MTF_LINEAR_NONE:
        return false;
    case MTF_LINEAR_ONE:
        return input_is_zero(p, op, row->linear_input, dim);
    case MTF_LINEAR_EACH:
        return any;
    case MTF_LINEAR_JOINT:
        return all;
    }
    g_return_val_if_reached(false);
}

static void note_result(Padding *p, const MtfOperation *op) {
    const MtfShape *shape = &mtf_graph_tensor(p->graph, op->outputs[0])->shape;
    bool renames = mtf_operation_row(op->kind)->dims == MTF_DIMS_RENAMED;
    unsigned bits = 0;
    for (int i = 0; i < shape->rank; i++) {
        int dim = shape->dims[i];
        int before = renames && dim == op->attributes.to ? op->attributes.from : dim;
        if (is_padded(p->graph, dim) && result_is_zero(p, op, before))
            bits |= 1U << i;
    }
    set_zero(p, op->outputs[0], bits);
}

/* ---- What operations ask of it ----------------------------------------------------------------- */

/* Whether an attribute names the dimension, as what the operation runs along. */
static bool runs_along(const MtfOperation *op, int dim) {
    const MtfOperationRow *row = mtf_operation_row(op->kind);
    for (int a = 0; a < MTF_MAX_ATTRIBUTES && row->attributes[a].name != NULL; a++)
        if (row->attributes[a].type == MTF_ATTRIBUTE_DIMENSION &&
            *(const int *)(const void *)((const char *)&op->attributes +
                                         row->attributes[a].offset) == dim)
            return true;
    return false;
}

/* What the operation asks of padding along a dimension of one of its operands. */
static MtfPadding asked(const MtfGraph *graph, const MtfOperation *op, int dim) {
    const MtfOperationRow *row = mtf_operation_row(op->kind);
    if (row->dims == MTF_DIMS_RENAMED)
        return MTF_PADDING_UNREAD;
    bool along = runs_along(op, dim) || mtf_window_has(&op->attributes, dim);
    bool gone = mtf_shape_find(&mtf_graph_tensor(graph, op->outputs[0])->shape, dim) < 0;
    bool windowed = row->windows != MTF_WINDOWS_NONE && !row->samples;
    bool placed = row->positional && !windowed;
    if (mtf_operation_is_random(op) || row->singular || (windowed && along) || (placed && !along))
        return MTF_PADDING_BARRED;
    if (!along && !gone)
        return MTF_PADDING_UNREAD;
    return op->attributes.smoothing != 0 ? MTF_PADDING_BARRED : row->padding;
}

/* ---- Masks ------------------------------------------------------------------------------------- */

static int masked_part(Padding *p, int result) {
    if (result >= 0) {
        int operation = mtf_graph_tensor(p->graph, result)->producer;
        g_array_append_val(p->order, operation);
    }
    return result;
}

/* What was made under a name before, or -1. */
static int known(const Padding *p, const char *name) {
    return GPOINTER_TO_INT(g_hash_table_lookup(p->masked, name)) - 1;
}

/* "vocab/counts": 1 along the dimension where elements count, else 0, in the type. */
static int counting(Padding *p, int dim, MtfDtype dtype) {
    const char *of = mtf_graph_dimension(p->graph, dim)->name;
    g_autofree char *type = g_strdup(mtf_dtype_short_name(dtype));
    g_autofree char *name = g_strdup_printf("%s/counts/%s", of, type);
    int counts = known(p, name);
    if (counts >= 0)
        return counts;
    g_autofree char *range = g_strdup_printf("%s/range/%s", of, type);
    g_autofree char *limit = g_strdup_printf("%s/unpadded/%s", of, type);
    g_autofree char *below = g_strdup_printf("%s/below/%s", of, type);
    MtfShape along = { .rank = 1, .dims = { dim } };
    MtfBuilder b = p->b;
    p->b.stage = 0;
    p->b.loop = 0;
    p->b.layer = (MtfLayer){ 0 };
    p->b.has_dtype = true;
    p->b.dtype = MTF_I32;
    int places = masked_part(p, mtf_build(&p->b, MTF_OP_RANGE, range, &along, 0, NULL));
    int end = masked_part(p, mtf_build_constant(&p->b, limit, MTF_I32,
                                                (double)mtf_graph_unpadded_size(p->graph, dim)));
    int less = masked_part(p, MTF_BUILD(&p->b, MTF_OP_LESS, below, NULL, places, end));
    p->b.has_dtype = true;
    p->b.dtype = dtype;
    counts = masked_part(p, MTF_BUILD(&p->b, MTF_OP_CAST, name, NULL, less));
    g_hash_table_insert(p->masked, g_steal_pointer(&name), GINT_TO_POINTER(counts + 1));
    p->b.stage = b.stage;
    p->b.loop = b.loop;
    p->b.layer = b.layer;
    return counts;
}

/* The tensor with `fill` in its padding along the dimension. */
static int mask(Padding *p, int tensor, int dim, MtfPadding with) {
    bool lowest = with == MTF_PADDING_LOWEST;
    const MtfTensor t = *mtf_graph_tensor(p->graph, tensor);
    g_autofree char *name =
        g_strdup_printf("%s/%s/%s", t.name, mtf_graph_dimension(p->graph, dim)->name,
                        lowest ? "masked" : "unpadded");
    g_autofree char *fill = g_strconcat(name, "/fill", NULL);
    int result = known(p, name);
    if (result >= 0)
        return result;
    int counts = counting(p, dim, t.dtype);
    int other = masked_part(p, mtf_build_constant(&p->b, fill, t.dtype, lowest ? LOWEST : 0));
    MtfShape shape = t.shape;
    result = masked_part(
        p, mtf_build(&p->b, MTF_OP_WHERE, name, &shape, 3, (int[]){ counts, tensor, other }));
    if (result >= 0)
        set_zero(p, result, lowest ? 0 : zero_of(p, tensor) | 1U << mtf_shape_find(&t.shape, dim));
    g_hash_table_insert(p->masked, g_steal_pointer(&name), GINT_TO_POINTER(result + 1));
    return result;
}

/* The input that is masked so that an operation's padding along a dimension is as it asks, or -1:
 * of factors one is enough, the others' padding is finite. */
static int to_be_masked(const Padding *p, const MtfOperation *op, int dim, MtfPadding with) {
    int first = -1;
    for (int k = 0; k < op->n_inputs; k++) {
        const MtfTensor *input = mtf_graph_tensor(p->graph, op->inputs[k]);
        if (mtf_shape_find(&input->shape, dim) < 0 || !mtf_dtype_is_float(input->dtype))
            continue;
        if (with == MTF_PADDING_ZERO && input_is_zero(p, op, k, dim))
            return -1;
        first = first < 0 ? k : first;
    }
    return first;
}

static void refuse(Padding *p, const MtfOperation *op, int dim) {
    if (p->error == NULL)
        mtf_input_error(&p->error,
                        "--pad: \"%s\" (%s) is about all elements along \"%s\" or where they lie, "
                        "so that padding would change its result",
                        op->name, mtf_operation_row(op->kind)->name,
                        mtf_graph_dimension(p->graph, dim)->name);
}

static void pad_along(Padding *p, int operation, int dim) {
    const MtfOperation op = *mtf_graph_operation(p->graph, operation);
    MtfPadding with = asked(p->graph, &op, dim);
    if (with == MTF_PADDING_BARRED)
        refuse(p, &op, dim);
    if (with == MTF_PADDING_BARRED || with == MTF_PADDING_UNREAD || p->error != NULL)
        return;
    p->b.stage = op.stage;
    p->b.loop = op.loop;
    p->b.layer = op.layer;
    int k = to_be_masked(p, &op, dim, with);
    int input = k >= 0 ? mask(p, op.inputs[k], dim, with) : -1;
    if (input >= 0)
        mtf_graph_operation(p->graph, operation)->inputs[k] = input;
}

/* Once for each padded dimension of the operands. */
static void pad_operation(Padding *p, int operation) {
    const MtfOperation op = *mtf_graph_operation(p->graph, operation);
    g_autoptr(GHashTable) done = g_hash_table_new(NULL, NULL);
    for (int k = -1; k < op.n_inputs; k++) {
        const MtfShape shape = *mtf_operation_operand_shape(p->graph, &op, k);
        for (int i = 0; i < shape.rank; i++)
            if (is_padded(p->graph, shape.dims[i]) &&
                g_hash_table_add(done, GINT_TO_POINTER(shape.dims[i])))
                pad_along(p, operation, shape.dims[i]);
    }
    g_array_append_val(p->order, operation);
    note_result(p, mtf_graph_operation(p->graph, operation));
}

/* ---- Entry ------------------------------------------------------------------------------------- */

static void note_variables(Padding *p) {
    for (int t = 0; t < (int)p->graph->tensors->len; t++)
        set_zero(p, t, mtf_graph_tensor(p->graph, t)->source == MTF_SOURCE_VARIABLE ? ~0U : 0);
}

static bool pad_all(MtfGraph *graph, GError **error) {
    Padding p = { .graph = graph,
                  .b = mtf_builder(graph, MTF_PHASE_FORWARD),
                  .zero = g_array_new(FALSE, TRUE, sizeof(unsigned)),
                  .order = g_array_new(FALSE, FALSE, sizeof(int)),
                  .masked = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL) };
    int n = (int)graph->operations->len;
    note_variables(&p);
    for (int o = 0; o < n && p.error == NULL && p.b.error == NULL; o++)
        pad_operation(&p, o);
    bool done = mtf_builder_end(&p.b, p.error == NULL ? &p.error : NULL) && p.error == NULL;
    if (done)
        mtf_graph_arrange(graph, (const int *)(const void *)p.order->data, (int)p.order->len);
    else
        g_propagate_error(error, p.error);
    g_array_unref(p.zero);
    g_array_unref(p.order);
    g_hash_table_unref(p.masked);
    return done;
}

bool mtf_pad(MtfGraph *graph, const char *const *paddings, GPtrArray *said, GError **error) {
    for (int i = 0; paddings[i] != NULL; i++) {
        g_auto(GStrv) parts = g_strsplit(paddings[i], ",", -1);
        for (char **part = parts; *part != NULL; part++)
            if (!read_padding(graph, *part, said, error))
                return false;
    }
    if (!mtf_optimizer_keeps_padding(graph->optimizer.kind))
        return mtf_input_error(error,
                               "--pad: %s takes means over whole variables, so that padding would "
                               "change its steps",
                               graph->optimizer.kind);
    return pad_all(graph, error);
}
