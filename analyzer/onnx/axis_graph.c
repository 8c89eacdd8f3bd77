// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/onnx/axis_graph.h"

#include <inttypes.h>

/* Classes of a role and size that a further one is compared with. */
#define MOST_COMPARED 8

static void clear_axis(gpointer data) {
    MtfAxis *axis = data;
    g_free(axis->name);
    if (axis->groups != NULL)
        g_hash_table_unref(axis->groups);
}

static void clear_tensor(gpointer data) {
    MtfAxisTensor *tensor = data;
    g_free(tensor->name);
    g_free(tensor->stored);
}

static void clear_operation(gpointer data) {
    MtfAxisOperation *operation = data;
    g_free(operation->name);
    g_array_unref(operation->inputs);
}

static void clear_loop(gpointer data) {
    g_free(((MtfAxisLoop *)data)->name);
}

MtfAxisGraph *mtf_axis_graph_new(void) {
    MtfAxisGraph *graph = g_new0(MtfAxisGraph, 1);
    graph->axes = g_array_new(FALSE, FALSE, sizeof(MtfAxis));
    graph->tensors = g_array_new(FALSE, FALSE, sizeof(MtfAxisTensor));
    graph->operations = g_array_new(FALSE, FALSE, sizeof(MtfAxisOperation));
    graph->loops = g_array_new(FALSE, FALSE, sizeof(MtfAxisLoop));
    g_array_set_clear_func(graph->axes, clear_axis);
    g_array_set_clear_func(graph->tensors, clear_tensor);
    g_array_set_clear_func(graph->operations, clear_operation);
    g_array_set_clear_func(graph->loops, clear_loop);
    return graph;
}

void mtf_axis_graph_free(MtfAxisGraph *graph) {
    if (graph == NULL)
        return;
    g_array_unref(graph->axes);
    g_array_unref(graph->tensors);
    g_array_unref(graph->operations);
    g_array_unref(graph->loops);
    g_free(graph);
}

MtfAxis *mtf_axis(const MtfAxisGraph *graph, int axis) {
    return &g_array_index(graph->axes, MtfAxis, axis);
}

MtfAxisTensor *mtf_axis_tensor(const MtfAxisGraph *graph, int tensor) {
    return &g_array_index(graph->tensors, MtfAxisTensor, tensor);
}

/* ---- Ties ------------------------------------------------------------------------------------ */

int mtf_axis_root(const MtfAxisGraph *graph, int axis) {
    while (mtf_axis(graph, axis)->parent != axis) {
        int parent = mtf_axis(graph, axis)->parent;
        mtf_axis(graph, axis)->parent = mtf_axis(graph, parent)->parent;
        axis = parent;
    }
    return axis;
}

static bool are_apart(GHashTable *few, GHashTable *many) {
    GHashTableIter all;
    gpointer group;
    g_hash_table_iter_init(&all, few);
    while (g_hash_table_iter_next(&all, &group, NULL))
        if (g_hash_table_contains(many, group))
            return false;
    return true;
}

static void unite_groups(GHashTable *few, GHashTable *many) {
    GHashTableIter all;
    gpointer group;
    g_hash_table_iter_init(&all, few);
    while (g_hash_table_iter_next(&all, &group, NULL))
        g_hash_table_add(many, group);
}

/* The older axis is the root, so that names come from where a dimension is met first. */
bool mtf_axis_tie(MtfAxisGraph *graph, int a, int b) {
    int first = mtf_axis_root(graph, a), second = mtf_axis_root(graph, b);
    if (first == second)
        return true;
    MtfAxis *root = mtf_axis(graph, MIN(first, second)),
            *other = mtf_axis(graph, MAX(first, second));
    bool less = g_hash_table_size(root->groups) < g_hash_table_size(other->groups);
    GHashTable *few = less ? root->groups : other->groups;
    GHashTable *many = less ? other->groups : root->groups;
    if (root->size != other->size || !are_apart(few, many))
        return false;
    unite_groups(few, many);
    root->groups = many;
    other->groups = NULL;
    g_hash_table_unref(few);
    other->parent = MIN(first, second);
    root->examples = MAX(root->examples, other->examples);
    if (root->role == NULL)
        root->role = other->role;
    if (root->name == NULL)
        root->name = g_steal_pointer(&other->name);
    return true;
}

static int add_axis(MtfAxisGraph *graph, int group, int64_t size, const char *role) {
    int number = (int)graph->axes->len;
    MtfAxis axis = { .size = size, .role = role, .parent = number, .dimension = -1 };
    axis.groups = g_hash_table_new(g_direct_hash, g_direct_equal);
    g_hash_table_add(axis.groups, GINT_TO_POINTER(group));
    g_array_append_val(graph->axes, axis);
    return number;
}

/* Roots by "role size", in the order in which they were met. */
static void share_with_earlier(MtfAxisGraph *graph, GHashTable *kinds, int axis) {
    const MtfAxis *root = mtf_axis(graph, axis);
    if (root->parent != axis || root->name != NULL)
        return;
    char *key = g_strdup_printf("%s %" PRId64, root->role != NULL ? root->role : "", root->size);
    GArray *earlier = g_hash_table_lookup(kinds, key);
    if (earlier == NULL) {
        earlier = g_array_new(FALSE, FALSE, sizeof(int));
        g_hash_table_insert(kinds, key, earlier);
    } else {
        g_free(key);
    }
    for (guint i = 0; i < MIN(earlier->len, MOST_COMPARED); i++)
        if (mtf_axis_tie(graph, g_array_index(earlier, int, i), axis))
            return;
    g_array_append_val(earlier, axis);
}

static void unref_array(gpointer array) {
    g_array_unref(array);
}

void mtf_axis_graph_share_names(MtfAxisGraph *graph) {
    g_autoptr(GHashTable) kinds =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, unref_array);
    for (int axis = 0; axis < (int)graph->axes->len; axis++)
        share_with_earlier(graph, kinds, axis);
}

/* ---- Tensors and operations ------------------------------------------------------------------ */

static int add_tensor(MtfAxisGraph *graph, const MtfAxisTensor *tensor) {
    MtfAxisTensor copy = *tensor;
    copy.name = g_strdup(tensor->name);
    copy.stored = g_strdup(tensor->stored);
    g_array_append_val(graph->tensors, copy);
    return (int)graph->tensors->len - 1;
}

int mtf_axis_source_add(MtfAxisGraph *graph, const MtfAxisTensor *tensor, int rank,
                        const int64_t *sizes, const char *const *roles) {
    int number = add_tensor(graph, tensor), group = graph->groups++;
    MtfShape axes = { 0 };
    for (int i = 0; i < rank; i++)
        mtf_shape_append(&axes, add_axis(graph, group, sizes[i], roles != NULL ? roles[i] : NULL));
    mtf_axis_tensor(graph, number)->axes = axes;
    mtf_axis_tensor(graph, number)->producer = -1;
    return number;
}

int mtf_axis_loop_add(MtfAxisGraph *graph, int64_t count, bool reverse, const char *name) {
    int axis = add_axis(graph, graph->groups++, count, "step");
    g_array_append_val(graph->loops, ((MtfAxisLoop){ axis, reverse, g_strdup(name) }));
    return (int)graph->loops->len;
}

MtfAxisOperation mtf_axis_operation(MtfAxisGraph *graph, int kind, const char *name) {
    return (MtfAxisOperation){ .kind = kind,
                               .name = g_strdup(name),
                               .group = graph->groups++,
                               .inputs = g_array_new(FALSE, FALSE, sizeof(MtfAxisInput)),
                               .attributes = MTF_NO_ATTRIBUTES,
                               .second = -1 };
}

int mtf_axis_index(MtfAxisGraph *graph, const MtfAxisOperation *operation, int64_t size,
                   const char *role) {
    return add_axis(graph, operation->group, size, role);
}

void mtf_axis_operation_take(MtfAxisGraph *graph, MtfAxisOperation *operation, int tensor,
                             const MtfShape *from, const MtfShape *to) {
    MtfAxisInput input = { tensor, *from, *to };
    for (int i = 0; i < from->rank; i++)
        mtf_axis_tie(graph, from->dims[i], to->dims[i]);
    g_array_append_val(operation->inputs, input);
}

int mtf_axis_operation_end(MtfAxisGraph *graph, MtfAxisOperation *operation) {
    MtfAxisTensor result = { .source = MTF_SOURCE_OPERATION,
                             .name = operation->name,
                             .dtype = operation->dtype,
                             .axes = operation->shape,
                             .producer = (int)graph->operations->len };
    operation->output = add_tensor(graph, &result);
    if (mtf_operation_row(operation->kind)->n_outputs > 1) {
        result.dtype = MTF_I32;
        operation->second = add_tensor(graph, &result);
    }
    g_array_append_val(graph->operations, *operation);
    return operation->output;
}

/* ---- Transpositions -------------------------------------------------------------------------- */

/* Whether the order of a row's result is free. */
static bool lays_freely(int kind) {
    MtfDimsRule rule = mtf_operation_row(kind)->dims;
    return rule == MTF_DIMS_UNION || rule == MTF_DIMS_SUBSET || rule == MTF_DIMS_SUPERSET ||
           rule == MTF_DIMS_PERMUTED;
}

/* How often each tensor is read. */
static int *count_readers(const MtfAxisGraph *graph) {
    int *readers = g_new0(int, graph->tensors->len);
    for (guint i = 0; i < graph->operations->len; i++) {
        const GArray *inputs = g_array_index(graph->operations, MtfAxisOperation, i).inputs;
        for (guint k = 0; k < inputs->len; k++)
            readers[g_array_index(inputs, MtfAxisInput, k).tensor]++;
    }
    return readers;
}

/* The axis of the transposed tensor that goes by an index of the transposition. */
static int source_of(const MtfAxisInput *input, int index) {
    return input->from.dims[mtf_shape_find(&input->to, index)];
}

static void drop(MtfAxisGraph *graph, MtfAxisOperation *operation, MtfAxisOperation *producer) {
    const MtfAxisInput *input = &g_array_index(operation->inputs, MtfAxisInput, 0);
    MtfShape order = { 0 };
    for (int i = 0; i < operation->shape.rank; i++)
        mtf_shape_append(&order, source_of(input, operation->shape.dims[i]));
    producer->shape = order;
    mtf_axis_tensor(graph, producer->output)->axes = order;
    operation->kind = MTF_OPERATIONS; /* none: its result is the other's */
}

void mtf_axis_graph_drop_transpositions(MtfAxisGraph *graph) {
    g_autofree int *readers = count_readers(graph);
    for (guint i = 0; i < graph->operations->len; i++) {
        MtfAxisOperation *operation = &g_array_index(graph->operations, MtfAxisOperation, i);
        if (operation->kind != MTF_OP_TRANSPOSE)
            continue;
        int tensor = g_array_index(operation->inputs, MtfAxisInput, 0).tensor;
        int producer = mtf_axis_tensor(graph, tensor)->producer;
        MtfAxisOperation *made =
            producer < 0 ? NULL : &g_array_index(graph->operations, MtfAxisOperation, producer);
        if (made != NULL && readers[tensor] == 1 && lays_freely(made->kind))
            drop(graph, operation, made);
    }
}

/* ---- Loops ------------------------------------------------------------------------------------ */

int *mtf_axis_loops(const MtfAxisGraph *graph) {
    int *loops = g_new0(int, graph->tensors->len + 1);
    for (guint i = 0; i < graph->operations->len; i++) {
        const MtfAxisOperation *op = &g_array_index(graph->operations, MtfAxisOperation, i);
        MtfLoopPart part =
            op->kind == MTF_OPERATIONS ? MTF_LOOP_NOTHING : mtf_operation_row(op->kind)->loop;
        int loop = op->loop;
        for (guint k = 0; k < op->inputs->len && part == MTF_LOOP_NOTHING; k++)
            loop = MAX(loop, loops[g_array_index(op->inputs, MtfAxisInput, k).tensor]);
        if (part == MTF_LOOP_STACKS || part == MTF_LOOP_HANDS_ON)
            loop = 0;
        loops[op->output] = loop;
        if (op->second >= 0)
            loops[op->second] = loop;
    }
    return loops;
}
