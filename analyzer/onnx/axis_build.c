// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/onnx/axis_build.h"

#include "layouts/base/error.h"
#include "layouts/building/builder.h"

#include <string.h>

typedef struct {
    MtfAxisGraph *from;
    MtfGraph *to;
    MtfBuilder builder;
    int *tensors; /* of the built graph, or -1 */
    bool *used;   /* tensors */
    int *within;  /* of each tensor (mtf_axis_loops) */
    int *loops;   /* of the built graph, or 0 */
} Build;

static char *legal_name(const char *name) {
    GString *legal = g_string_new(NULL);
    for (const char *at = name; *at != '\0'; at++)
        if (!g_ascii_iscntrl(*at))
            g_string_append_c(legal, *at == ' ' ? '_' : *at);
    if (legal->len == 0 || !mtf_tensor_name_is_legal(legal->str))
        g_string_assign(legal, "value");
    return g_string_free(legal, FALSE);
}

/* "name", or "name_2", "name_3", … where it is taken; free with g_free. */
static char *unique_tensor_name(const MtfGraph *graph, const char *name) {
    g_autofree char *legal = legal_name(name);
    char *found = g_strdup(legal);
    for (int i = 2; mtf_graph_find_tensor(graph, found) >= 0; i++) {
        g_free(found);
        found = g_strdup_printf("%s_%d", legal, i);
    }
    return found;
}

/* A dimension's name may hold less than a tensor's, and no word that placements have. */
static char *unique_dimension_name(const MtfGraph *graph, const char *name) {
    g_autofree char *legal = g_strdup(name);
    for (char *at = legal; *at != '\0'; at++)
        if (!g_ascii_isalnum(*at) && *at != '_')
            *at = '_';
    bool word = strcmp(legal, "replicated") == 0 || strcmp(legal, "duplicated") == 0 ||
                strcmp(legal, "partial") == 0;
    if (*legal == '\0' || word || strlen(legal) > 31) {
        g_free(legal);
        legal = g_strdup("dim");
    }
    char *found = g_strdup(legal);
    for (int i = 2; mtf_graph_find_dimension(graph, found) >= 0; i++) {
        g_free(found);
        found = g_strdup_printf("%s_%d", legal, i);
    }
    return found;
}

/* ---- Dimensions ------------------------------------------------------------------------------ */

static int dimension_of(Build *b, int axis) {
    MtfAxis *root = mtf_axis(b->from, mtf_axis_root(b->from, axis));
    if (root->dimension >= 0)
        return root->dimension;
    const char *wanted = root->name != NULL ? root->name : root->role != NULL ? root->role : "dim";
    g_autofree char *name = unique_dimension_name(b->to, wanted);
    if (b->builder.error == NULL)
        root->dimension = mtf_graph_add_dimension(b->to, name, root->size, &b->builder.error);
    return root->dimension;
}

static MtfShape shape_of(Build *b, const MtfShape *axes) {
    MtfShape shape = { axes->rank, { 0 } };
    for (int i = 0; i < axes->rank; i++)
        shape.dims[i] = dimension_of(b, axes->dims[i]);
    return shape;
}

static int fresh_dimension(Build *b, int like) {
    g_autofree char *wanted = g_strconcat(mtf_graph_dimension(b->to, like)->name, "_between", NULL);
    g_autofree char *name = unique_dimension_name(b->to, wanted);
    return b->builder.error != NULL
               ? -1
               : mtf_graph_add_dimension(b->to, name, mtf_graph_size(b->to, like),
                                         &b->builder.error);
}

static int rename_one(Build *b, int tensor, int from, int to) {
    g_autofree char *name = g_strconcat(mtf_graph_tensor(b->to, tensor)->name, "/",
                                        to >= 0 ? mtf_graph_dimension(b->to, to)->name : "", NULL);
    b->builder.attributes.from = from;
    b->builder.attributes.to = to;
    return MTF_BUILD(&b->builder, MTF_OP_RENAME, name, NULL, tensor);
}

/* The next axis whose name is wrong and whose right name the tensor does not have; else, with
 * `*blocked`, one whose right name it has (two names change places). -1: all are right. */
static int next_wrong(const Build *b, int tensor, const int *has, const MtfShape *wanted,
                      bool *blocked) {
    int found = -1;
    *blocked = true;
    for (int i = 0; i < wanted->rank && *blocked; i++) {
        if (has[i] == wanted->dims[i])
            continue;
        found = i;
        *blocked = mtf_shape_find(&mtf_graph_tensor(b->to, tensor)->shape, wanted->dims[i]) >= 0;
    }
    return found;
}

/* Whether two axes would have the same name, which renaming never ends with. */
static bool check_apart(Build *b, const MtfShape *wanted) {
    for (int i = 0; i < wanted->rank; i++)
        for (int j = 0; j < i; j++)
            if (wanted->dims[i] == wanted->dims[j])
                return mtf_input_error(&b->builder.error,
                                       "an operation reads two axes of one tensor as the same "
                                       "dimension \"%s\"",
                                       mtf_graph_dimension(b->to, wanted->dims[i])->name);
    return true;
}

/* ---- Loops ------------------------------------------------------------------------------------ */

static MtfLoopPart part_of(const MtfAxisOperation *operation) {
    return operation->kind == MTF_OPERATIONS ? MTF_LOOP_NOTHING
                                             : mtf_operation_row(operation->kind)->loop;
}

static int input_tensor(const MtfAxisOperation *operation, guint k) {
    return g_array_index(operation->inputs, MtfAxisInput, k).tensor;
}

/* The loop that an operation stands in: that of what it joins, or in which its result changes; 0: none. */
static int loop_of(const Build *b, const MtfAxisOperation *operation) {
    bool begins = part_of(operation) == MTF_LOOP_BEGINS;
    return begins ? 0 : MAX(operation->loop, b->within[operation->output]);
}

static int built_loop(Build *b, int loop) {
    if (loop == 0 || b->loops[loop] > 0)
        return b->loops[loop];
    const MtfAxisLoop *from = &g_array_index(b->from->loops, MtfAxisLoop, loop - 1);
    g_autofree char *name = legal_name(from->name);
    return b->loops[loop] =
               mtf_graph_add_loop(b->to, name, dimension_of(b, from->axis), from->reverse);
}

/* ---- Inputs ----------------------------------------------------------------------------------- */

/* The input with the names of the indexes that its axes go by. */
static int input_of(Build *b, const MtfAxisInput *input) {
    int tensor = b->tensors[input->tensor], has[MTF_MAX_RANK];
    b->builder.loop = built_loop(b, b->within[input->tensor]);
    MtfShape wanted = shape_of(b, &input->to);
    bool blocked;
    if (b->builder.error != NULL || !check_apart(b, &wanted))
        return -1;
    for (int i = 0; i < input->from.rank; i++)
        has[i] = dimension_of(b, input->from.dims[i]);
    while (b->builder.error == NULL) {
        int i = next_wrong(b, tensor, has, &wanted, &blocked);
        if (i < 0)
            return tensor;
        int to = blocked ? fresh_dimension(b, has[i]) : wanted.dims[i];
        tensor = rename_one(b, tensor, has[i], to);
        has[i] = to;
    }
    return -1;
}

/* ---- Tensors and operations ------------------------------------------------------------------ */

static void build_input(Build *b, int t) {
    const MtfAxisTensor *tensor = mtf_axis_tensor(b->from, t);
    MtfShape shape = shape_of(b, &tensor->axes);
    g_autofree char *name = unique_tensor_name(b->to, tensor->name);
    if (b->builder.error == NULL)
        b->tensors[t] = mtf_graph_add_input(b->to, name, &shape, tensor->dtype, tensor->feed,
                                            &b->builder.error);
}

static void build_variable(Build *b, int t) {
    const MtfAxisTensor *tensor = mtf_axis_tensor(b->from, t);
    MtfShape shape = shape_of(b, &tensor->axes);
    g_autofree char *name = unique_tensor_name(b->to, tensor->name);
    int built = mtf_build_variable(&b->builder, name, &shape, tensor->dtype, tensor->init,
                                   MTF_MEMORY_VARIABLE);
    if (built < 0)
        return;
    b->tensors[t] = built;
    mtf_graph_tensor(b->to, built)->frozen = tensor->frozen;
    mtf_graph_tensor(b->to, built)->stored = g_strdup(tensor->stored);
}

/* The attributes with dimensions in place of indexes. */
static MtfAttributes attributes_of(Build *b, const MtfAxisOperation *operation) {
    MtfAttributes attributes = operation->attributes;
    int *const dims[] = { &attributes.dimension, &attributes.from,   &attributes.to,
                          &attributes.query,     &attributes.memory, &attributes.position };
    for (guint i = 0; i < G_N_ELEMENTS(dims); i++)
        if (*dims[i] >= 0)
            *dims[i] = dimension_of(b, *dims[i]);
    for (int w = 0; w < attributes.n_windows; w++) {
        MtfWindow *window = &attributes.windows[w];
        window->from = dimension_of(b, window->from);
        window->to = dimension_of(b, window->to);
        if (window->kernel >= 0)
            window->kernel = dimension_of(b, window->kernel);
    }
    return attributes;
}

static bool shape_is_given(int kind) {
    MtfDimsRule rule = mtf_operation_row(kind)->dims;
    return rule != MTF_DIMS_FIRST && rule != MTF_DIMS_RENAMED && rule != MTF_DIMS_REPLACED;
}

static void build_operation(Build *b, const MtfAxisOperation *operation) {
    const GArray *list = operation->inputs;
    g_autofree int *inputs = g_new(int, list->len + 1);
    if (operation->kind == MTF_OPERATIONS) { /* a transposition that was dropped */
        b->tensors[operation->output] = b->tensors[input_tensor(operation, 0)];
        return;
    }
    for (guint k = 0; k < list->len; k++)
        inputs[k] = input_of(b, &g_array_index(list, MtfAxisInput, k));
    MtfShape shape = shape_of(b, &operation->shape);
    g_autofree char *name = legal_name(operation->name);
    b->builder.loop = built_loop(b, loop_of(b, operation));
    b->builder.attributes = attributes_of(b, operation);
    b->builder.has_dtype = operation->has_dtype;
    b->builder.dtype = operation->dtype;
    int built = mtf_build(&b->builder, operation->kind, name,
                          shape_is_given(operation->kind) ? &shape : NULL, (int)list->len, inputs);
    if (built < 0)
        return;
    b->tensors[operation->output] = built;
    if (operation->second >= 0)
        b->tensors[operation->second] = built + 1;
}

/* A state that is read is handed on. */
static bool is_used(const Build *b, const MtfAxisOperation *operation) {
    return b->used[operation->output] || (operation->second >= 0 && b->used[operation->second]) ||
           (part_of(operation) == MTF_LOOP_HANDS_ON && b->used[input_tensor(operation, 0)]);
}

/* Marks what the operations in use need, and says whether that is more than before. */
static bool mark_needed(Build *b) {
    bool more = false;
    for (int i = (int)b->from->operations->len - 1; i >= 0; i--) {
        const MtfAxisOperation *operation =
            &g_array_index(b->from->operations, MtfAxisOperation, i);
        if (!is_used(b, operation))
            continue;
        b->used[operation->output] = true;
        for (guint k = 0; k < operation->inputs->len; k++) {
            bool *input = &b->used[input_tensor(operation, k)];
            more |= !*input;
            *input = true;
        }
    }
    return more;
}

/* Marks what the kept tensors need; what loops hand on stands behind what reads it. */
static void mark_used(Build *b, const int *kept) {
    for (; *kept >= 0; kept++)
        b->used[*kept] = true;
    while (mark_needed(b))
        ;
}

static void build_all(Build *b) {
    for (int t = 0; t < (int)b->from->tensors->len; t++)
        if (b->used[t] && mtf_axis_tensor(b->from, t)->source == MTF_SOURCE_INPUT)
            build_input(b, t);
    for (int t = 0; t < (int)b->from->tensors->len; t++)
        if (b->used[t] && mtf_axis_tensor(b->from, t)->source == MTF_SOURCE_VARIABLE)
            build_variable(b, t);
    for (guint i = 0; i < b->from->operations->len && b->builder.error == NULL; i++) {
        const MtfAxisOperation *operation =
            &g_array_index(b->from->operations, MtfAxisOperation, i);
        if (b->used[operation->output])
            build_operation(b, operation);
    }
}

/* Brings loops' operations together, which gives tensors other numbers. */
static bool gather_loops(Build *b, GError **error) {
    guint n = b->from->tensors->len;
    g_autoptr(GPtrArray) names = g_ptr_array_new_full(n, g_free);
    for (guint t = 0; t < n; t++)
        g_ptr_array_add(names, b->tensors[t] < 0
                                   ? NULL
                                   : g_strdup(mtf_graph_tensor(b->to, b->tensors[t])->name));
    if (!mtf_graph_gather_loops(b->to, NULL, error))
        return false;
    for (guint t = 0; t < n; t++)
        if (b->tensors[t] >= 0)
            b->tensors[t] = mtf_graph_find_tensor(b->to, names->pdata[t]);
    return true;
}

MtfGraph *mtf_axis_graph_build(MtfAxisGraph *graph, const char *name, const int *kept,
                               int **tensors, GError **error) {
    g_autoptr(MtfGraph) built = mtf_graph_new(name);
    g_autofree bool *used = g_new0(bool, graph->tensors->len + 1);
    g_autofree int *within = mtf_axis_loops(graph);
    g_autofree int *loops = g_new0(int, graph->loops->len + 1);
    Build b = { graph, built, mtf_builder(built, MTF_PHASE_FORWARD), NULL, used, within, loops };
    b.tensors = g_new(int, graph->tensors->len + 1);
    for (guint t = 0; t < graph->tensors->len; t++)
        b.tensors[t] = -1;
    mark_used(&b, kept);
    build_all(&b);
    if (!mtf_builder_end(&b.builder, error) || !gather_loops(&b, error)) {
        g_free(b.tensors);
        return NULL;
    }
    if (tensors != NULL)
        *tensors = b.tensors;
    else
        g_free(b.tensors);
    return g_steal_pointer(&built);
}
