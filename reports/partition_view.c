// SPDX-License-Identifier: GPL-3.0-or-later
#include "reports/partition_view.h"

#include "layouts/command_line.h"
#include "reports/layer_fold.h"

#include <inttypes.h>
#include <string.h>

typedef struct {
    const MtfProgram *program;
    const MtfGraph *graph;
    MtfLayerFold *fold;
    MtfPartitionView *view;
    GHashTable *box_ids;   /* tensor name -> box + 1 */
    GHashTable *arrow_ids; /* "from>to" -> arrow + 1 */
    GArray *updates;       /* UpdateTraffic */
} Builder;

static void clear_cell(gpointer data) {
    MtfViewCell *cell = data;
    g_free(cell->text);
    g_free(cell->tooltip);
}

static void clear_box(gpointer data) {
    MtfViewBox *box = data;
    g_free(box->name);
    g_free(box->title);
    g_free(box->detail);
    g_array_unref(box->cells);
    g_ptr_array_unref(box->notes);
}

static void clear_arrow(gpointer data) {
    g_free(((MtfViewArrow *)data)->reshard);
}

static void clear_group(gpointer data) {
    g_free(((MtfViewGroup *)data)->title);
}

static GArray *new_array(guint size, GDestroyNotify clear) {
    GArray *array = g_array_new(FALSE, TRUE, size);
    g_array_set_clear_func(array, clear);
    return array;
}

static MtfViewBox *box_at(const Builder *builder, int box) {
    return &g_array_index(builder->view->boxes, MtfViewBox, box);
}

/* ---- Groups -------------------------------------------------------------------------------- */

static void add_groups(Builder *builder) {
    for (int r = 0; r < mtf_layer_fold_runs(builder->fold); r++) {
        const MtfLayerRun *run = mtf_layer_fold_run(builder->fold, r);
        const char *name = g_array_index(builder->graph->repeats, MtfRepeat, run->repeat).name;
        char *title = run->count == 1 ? g_strdup_printf("%s %d", name, run->first)
                                      : g_strdup_printf("%s %d–%d   × %d", name, run->first,
                                                        run->first + run->count - 1, run->count);
        MtfViewGroup group = { title, run->repeat, run->first, run->count };
        g_array_append_val(builder->view->groups, group);
    }
}

/* ---- Boxes --------------------------------------------------------------------------------- */

/* The operation or variable whose box stands for `name`: pieces of a composite ("h/softmax/max")
 * are shown in the box of the longest leading part that names a tensor. */
static int owner_tensor(const MtfGraph *graph, const char *name) {
    g_autofree char *prefix = g_strdup(name);
    for (char *slash; (slash = strrchr(prefix, '/')) != NULL;) {
        *slash = '\0';
        int tensor = mtf_graph_find_tensor(graph, prefix);
        if (tensor >= 0)
            return tensor;
    }
    return mtf_graph_find_tensor(graph, name);
}

/* Boxes are made for tensors of layers that are drawn, and outside of layers. */
static bool is_drawn(const Builder *builder, const char *name) {
    g_autofree char *twin = mtf_layer_fold_twin(builder->fold, name);
    return strcmp(twin, name) == 0;
}

/* The box that shows `name`, or its twin in the layer that is drawn; -1 when none does. */
static int find_box(const Builder *builder, const char *name) {
    g_autofree char *twin = mtf_layer_fold_twin(builder->fold, name);
    int owner = owner_tensor(builder->graph, twin);
    if (owner < 0)
        return -1;
    const char *owner_name = mtf_graph_tensor(builder->graph, owner)->name;
    return GPOINTER_TO_INT(g_hash_table_lookup(builder->box_ids, owner_name)) - 1;
}

static void add_dim_cell(const Builder *builder, MtfViewBox *box, const MtfPlacement *placement,
                         int dim) {
    const MtfMesh *mesh = &builder->program->layout->mesh;
    const MtfDimension *dimension = mtf_graph_dimension(builder->graph, dim);
    unsigned axes = mtf_placement_split_axes(placement, dim);
    g_autofree char *names = mtf_mesh_mask_format(mesh, axes);
    MtfViewCell cell = { .axes = axes };
    if (axes == 0) {
        cell.text = g_strdup_printf("%s %" PRId64, dimension->name, dimension->size);
        cell.tooltip = g_strdup("whole on every processor");
    } else {
        int parts = mtf_mesh_group_size(mesh, axes);
        cell.text = g_strdup_printf("%s %" PRId64 "/%d", dimension->name, dimension->size, parts);
        cell.tooltip = g_strdup_printf("%s split over %s", dimension->name, names);
    }
    g_array_append_val(box->cells, cell);
}

static void add_cells(const Builder *builder, MtfViewBox *box, int tensor) {
    const MtfMesh *mesh = &builder->program->layout->mesh;
    const MtfPlacement *placement = &builder->program->layout->tensors[tensor];
    const MtfShape *shape = &mtf_graph_tensor(builder->graph, tensor)->shape;
    for (int i = 0; i < shape->rank; i++)
        add_dim_cell(builder, box, placement, shape->dims[i]);
    unsigned partial = mtf_placement_partial_axes(placement);
    if (partial == 0)
        return;
    g_autofree char *names = mtf_mesh_mask_format(mesh, partial);
    MtfViewCell cell = { .text = g_strdup_printf("Σ over %s", names),
                         .axes = partial,
                         .partial = true,
                         .tooltip = g_strdup("kept as partial sums, reduced later") };
    g_array_append_val(box->cells, cell);
}

static int add_box(Builder *builder, MtfBoxKind kind, const char *name, const char *detail) {
    int layer;
    int group = mtf_layer_fold_find(builder->fold, name, &layer);
    const char *title = name;
    if (group >= 0)
        title = strchr(strchr(name, '/') + 1, '/') + 1;
    MtfViewBox box = { .kind = kind,
                       .name = g_strdup(name),
                       .title = g_strdup(title),
                       .detail = g_strdup(detail),
                       .group = group,
                       .cells = new_array(sizeof(MtfViewCell), clear_cell),
                       .notes = g_ptr_array_new_with_free_func(g_free) };
    g_array_append_val(builder->view->boxes, box);
    return (int)builder->view->boxes->len - 1;
}

static void add_tensor_box(Builder *builder, int tensor) {
    const MtfTensor *t = mtf_graph_tensor(builder->graph, tensor);
    const MtfOperation *op =
        t->producer >= 0 ? mtf_graph_operation(builder->graph, t->producer) : NULL;
    if ((op != NULL && (op->phase != MTF_PHASE_FORWARD || op->outputs[0] != tensor)) ||
        t->memory == MTF_MEMORY_OPTIMIZER || !is_drawn(builder, t->name) ||
        owner_tensor(builder->graph, t->name) != tensor)
        return;
    MtfBoxKind kind = op != NULL                         ? MTF_BOX_OPERATION
                      : t->source == MTF_SOURCE_VARIABLE ? MTF_BOX_VARIABLE
                                                         : MTF_BOX_INPUT;
    const char *detail = op != NULL                         ? mtf_operation_row(op->kind)->name
                         : t->source == MTF_SOURCE_VARIABLE ? "variable"
                                                            : mtf_feed_name(t->feed);
    int box = add_box(builder, kind, t->name, detail);
    add_cells(builder, box_at(builder, box), tensor);
    g_hash_table_insert(builder->box_ids, t->name, GINT_TO_POINTER(box + 1));
}

/* ---- Arrows -------------------------------------------------------------------------------- */

static MtfViewArrow *connect(Builder *builder, int from, int to, bool next_layer) {
    char *key = g_strdup_printf("%d>%d", from, to);
    int arrow = GPOINTER_TO_INT(g_hash_table_lookup(builder->arrow_ids, key)) - 1;
    if (arrow < 0) {
        g_array_append_val(builder->view->arrows,
                           ((MtfViewArrow){ from, to, next_layer, NULL, 0 }));
        arrow = (int)builder->view->arrows->len - 1;
        g_hash_table_insert(builder->arrow_ids, key, GINT_TO_POINTER(arrow + 1));
    } else {
        g_free(key);
    }
    return &g_array_index(builder->view->arrows, MtfViewArrow, arrow);
}

/* Whether both names lie in one run, the second in a later layer. */
static bool runs_to_next_layer(const Builder *builder, const char *from, const char *to) {
    int from_layer, to_layer;
    int run = mtf_layer_fold_find(builder->fold, from, &from_layer);
    return run >= 0 && run == mtf_layer_fold_find(builder->fold, to, &to_layer) &&
           from_layer != to_layer;
}

static void add_arrows(Builder *builder, int operation) {
    const MtfOperation *op = mtf_graph_operation(builder->graph, operation);
    if (op->phase != MTF_PHASE_FORWARD)
        return;
    int to = find_box(builder, op->name);
    for (int k = 0; k < op->n_inputs; k++) {
        const char *name = mtf_graph_tensor(builder->graph, op->inputs[k])->name;
        int from = find_box(builder, name);
        bool next = runs_to_next_layer(builder, name, op->name);
        if (from >= 0 && to >= 0 && (from != to || next))
            connect(builder, from, to, next);
    }
}

/* ---- Collectives --------------------------------------------------------------------------- */

static char *describe_collective(const Builder *builder, int index) {
    const MtfInstruction *instruction = mtf_program_instruction(builder->program, index);
    const MtfStep *step = &instruction->step;
    g_autofree char *axes = mtf_mesh_mask_format(&builder->program->layout->mesh, step->axes);
    g_autofree char *bytes = mtf_bytes_format((double)instruction->payload_bytes);
    return g_strdup_printf("%s%s over %s, %s", mtf_step_name(step->kind),
                           step->reduction == MTF_REDUCE_MAX ? " (max)" : "", axes, bytes);
}

static void add_note(MtfViewBox *box, const char *prefix, const char *text) {
    g_autofree char *note = g_strconcat(prefix, text, NULL);
    if (!g_ptr_array_find_with_equal_func(box->notes, note, g_str_equal, NULL))
        g_ptr_array_add(box->notes, g_steal_pointer(&note));
}

/* A forward collective belongs to the arrow when the consumer asked for it, else to the producer.
 */
static void note_forward(Builder *builder, const MtfTensor *tensor, const MtfOperation *op,
                         const char *text, double bytes) {
    int from = find_box(builder, tensor->name), to = find_box(builder, op->name);
    if (from < 0 || to < 0)
        return;
    bool made_here =
        tensor->producer >= 0 && mtf_graph_operation(builder->graph, tensor->producer) == op;
    if (made_here || from == to) {
        add_note(box_at(builder, from), "", text);
        return;
    }
    MtfViewArrow *arrow =
        connect(builder, from, to, runs_to_next_layer(builder, tensor->name, op->name));
    g_free(arrow->reshard);
    arrow->reshard = g_strdup(text);
    arrow->bytes = bytes;
}

/* Collectives of one kind over the same axes. */
typedef struct {
    MtfStepKind kind;
    unsigned axes;
    int calls;
    double bytes;
} UpdateTraffic;

static void count_update(Builder *builder, const MtfInstruction *instruction) {
    for (guint i = 0; i < builder->updates->len; i++) {
        UpdateTraffic *known = &g_array_index(builder->updates, UpdateTraffic, i);
        if (known->kind != instruction->step.kind || known->axes != instruction->step.axes)
            continue;
        known->calls++;
        known->bytes += (double)instruction->payload_bytes;
        return;
    }
    UpdateTraffic traffic = { instruction->step.kind, instruction->step.axes, 1,
                              (double)instruction->payload_bytes };
    g_array_append_val(builder->updates, traffic);
}

/* Clipping and optimizer on one box: a note for each kind of collective and axes. */
static void note_updates(Builder *builder) {
    if (builder->updates->len == 0)
        return;
    int box = add_box(builder, MTF_BOX_UPDATE, "optimizer", "clip and update");
    for (guint i = 0; i < builder->updates->len; i++) {
        const UpdateTraffic *traffic = &g_array_index(builder->updates, UpdateTraffic, i);
        g_autofree char *axes =
            mtf_mesh_mask_format(&builder->program->layout->mesh, traffic->axes);
        g_autofree char *bytes = mtf_bytes_format(traffic->bytes);
        g_ptr_array_add(box_at(builder, box)->notes,
                        g_strdup_printf("%d × %s over %s, %s in all", traffic->calls,
                                        mtf_step_name(traffic->kind), axes, bytes));
    }
}

static void note_collective(Builder *builder, int index) {
    const MtfInstruction *instruction = mtf_program_instruction(builder->program, index);
    const MtfOperation *op = mtf_graph_operation(builder->graph, instruction->operation);
    const MtfTensor *tensor = mtf_step_tensor(builder->program, instruction);
    g_autofree char *text = describe_collective(builder, index);
    if (op->phase == MTF_PHASE_FORWARD) {
        if (is_drawn(builder, op->name))
            note_forward(builder, tensor, op, text, (double)instruction->payload_bytes);
        return;
    }
    if (op->phase != MTF_PHASE_BACKWARD) {
        count_update(builder, instruction);
        return;
    }
    const char *name =
        g_str_has_prefix(tensor->name, "grad/") ? tensor->name + strlen("grad/") : tensor->name;
    int box = is_drawn(builder, name) ? find_box(builder, name) : -1;
    if (box >= 0)
        add_note(box_at(builder, box), "∇ ", text);
}

static void add_collectives(Builder *builder) {
    for (int i = 0; i < mtf_program_length(builder->program); i++) {
        const MtfInstruction *instruction = mtf_program_instruction(builder->program, i);
        if (instruction->kind == MTF_INSTRUCTION_STEP &&
            mtf_step_is_collective(instruction->step.kind))
            note_collective(builder, i);
    }
}

/* ---- Entry --------------------------------------------------------------------------------- */

MtfPartitionView *mtf_partition_view_new(const MtfPlan *plan, const MtfProgram *program) {
    MtfPartitionView *view = g_new0(MtfPartitionView, 1);
    view->boxes = new_array(sizeof(MtfViewBox), clear_box);
    view->arrows = new_array(sizeof(MtfViewArrow), clear_arrow);
    view->groups = new_array(sizeof(MtfViewGroup), clear_group);
    g_autoptr(MtfLayerFold) fold = mtf_layer_fold_new(program);
    g_autoptr(GHashTable) box_ids = g_hash_table_new(g_str_hash, g_str_equal);
    g_autoptr(GHashTable) arrow_ids = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(GArray) updates = g_array_new(FALSE, FALSE, sizeof(UpdateTraffic));
    Builder builder = { program, plan->graph, fold, view, box_ids, arrow_ids, updates };
    add_groups(&builder);
    for (int t = 0; t < (int)plan->graph->tensors->len; t++)
        add_tensor_box(&builder, t);
    for (int i = 0; i < (int)plan->graph->operations->len; i++)
        add_arrows(&builder, i);
    add_collectives(&builder);
    note_updates(&builder);
    return view;
}

void mtf_partition_view_free(MtfPartitionView *view) {
    if (view == NULL)
        return;
    g_array_unref(view->boxes);
    g_array_unref(view->arrows);
    g_array_unref(view->groups);
    g_free(view);
}
