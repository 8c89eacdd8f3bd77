// SPDX-License-Identifier: GPL-3.0-or-later
#include "reports/drawing/partition_view.h"

#include "layouts/base/command_line.h"
#include "layouts/layers/layers.h"
#include "reports/facts/tensor_rows.h"

#include <inttypes.h>
#include <string.h>

/* What stands for a buffer while the program is read: the box that provides it, and the notes on
 * what was sent so far to have it where no box does. */
typedef struct {
    int box; /* -1 = none yet */
    char *notes;
} Provider;

typedef struct {
    const MtfStepParts *parts;
    const MtfProgram *program;
    const MtfGraph *graph;
    MtfPartitionView *view;
    GHashTable *boxes;   /* "SECTION NAME" -> box + 1 */
    GHashTable *arrows;  /* "FROM>TO" -> arrow + 1 */
    Provider *providers; /* of buffers */
    int *section_of;     /* an operation's section, -1 = not shown */
} Builder;

/* ---- Memory -------------------------------------------------------------------------------- */

static void clear_cell(gpointer data) {
    g_free(((MtfViewCell *)data)->text);
}

static void clear_row(gpointer data) {
    MtfViewRow *row = data;
    g_free(row->name);
    g_array_unref(row->cells);
    g_ptr_array_unref(row->notes);
}

static void clear_box(gpointer data) {
    MtfViewBox *box = data;
    g_free(box->title);
    g_free(box->detail);
    g_array_unref(box->cells);
    g_array_unref(box->rows);
    g_ptr_array_unref(box->notes);
}

static void clear_section(gpointer data) {
    MtfViewSection *section = data;
    g_free(section->title);
    g_free(section->fill);
    g_free(section->url);
}

static GArray *new_array(guint size, GDestroyNotify clear) {
    GArray *array = g_array_new(FALSE, TRUE, size);
    g_array_set_clear_func(array, clear);
    return array;
}

static MtfViewBox *box_at(const Builder *builder, int box) {
    return &g_array_index(builder->view->boxes, MtfViewBox, box);
}

/* ---- Cells --------------------------------------------------------------------------------- */

static void add_cell(GArray *cells, MtfCellKind kind, unsigned axes, char *text) {
    g_array_append_val(cells, ((MtfViewCell){ kind, text, axes }));
}

static void add_dimension(const Builder *builder, GArray *cells, const MtfPlacement *placement,
                          int dim) {
    const MtfDimension *dimension = mtf_graph_dimension(builder->graph, dim);
    unsigned axes = mtf_placement_split_axes(placement, dim);
    int parts = mtf_mesh_group_size(&builder->program->layout->mesh, axes);
    add_cell(cells, MTF_CELL_DIMENSION, axes,
             axes == 0
                 ? g_strdup_printf("%s %" PRId64, dimension->name, dimension->size)
                 : g_strdup_printf("%s %" PRId64 "/%d", dimension->name, dimension->size, parts));
}

/* Every mesh axis longer than 1 is shown: it splits a dimension, sums up, or holds copies. */
static GArray *cells_of(const Builder *builder, int tensor, const MtfPlacement *placement) {
    GArray *cells = new_array(sizeof(MtfViewCell), clear_cell);
    const MtfMesh *mesh = &builder->program->layout->mesh;
    const MtfShape *shape = &mtf_graph_tensor(builder->graph, tensor)->shape;
    unsigned partial = mtf_placement_partial_axes(placement), copies = 0;
    for (int i = 0; i < shape->rank; i++)
        add_dimension(builder, cells, placement, shape->dims[i]);
    for (int a = 0; a < mesh->n_axes; a++)
        if (mesh->axes[a].size > 1 && placement->axis[a] == MTF_REPLICATED)
            copies |= 1u << a;
    const struct {
        MtfCellKind kind;
        unsigned axes;
        const char *glyph;
    } rest[] = { { MTF_CELL_PARTIAL, partial, "Σ" }, { MTF_CELL_REPLICATED, copies, "≡" } };
    for (gsize i = 0; i < G_N_ELEMENTS(rest); i++) {
        g_autofree char *names = mtf_mesh_mask_format(mesh, rest[i].axes);
        if (rest[i].axes != 0)
            add_cell(cells, rest[i].kind, rest[i].axes,
                     g_strdup_printf("%s %s", rest[i].glyph, names));
    }
    return cells;
}

/* ---- Boxes --------------------------------------------------------------------------------- */

/* The name of what a tensor is of: a gradient's tensor, an updated variable; else its own. */
static const char *subject_of(const MtfGraph *graph, int tensor) {
    const MtfTensor *t = mtf_graph_tensor(graph, tensor);
    const MtfOperation *op = t->producer >= 0 ? mtf_graph_operation(graph, t->producer) : NULL;
    bool is_first = op != NULL && op->outputs[0] == tensor;
    if (is_first && op->origin == MTF_ORIGIN_GRADIENT)
        return op->of;
    for (guint u = 0; op != NULL && op->origin == MTF_ORIGIN_UPDATE && u < graph->updates->len; u++)
        if (g_array_index(graph->updates, MtfUpdate, u).value == tensor)
            return mtf_graph_tensor(graph, g_array_index(graph->updates, MtfUpdate, u).variable)
                ->name;
    return op != NULL && op->origin == MTF_ORIGIN_BACKWARD ? mtf_name_from(t->name, op->of)
                                                           : t->name;
}

static bool is_backward(const MtfGraph *graph, int tensor) {
    int producer = mtf_graph_tensor(graph, tensor)->producer;
    MtfOrigin origin =
        producer >= 0 ? mtf_graph_operation(graph, producer)->origin : MTF_ORIGIN_WRITTEN;
    return origin == MTF_ORIGIN_GRADIENT || origin == MTF_ORIGIN_BACKWARD;
}

/* The name without its layer; "∇" for a gradient, and what else stands before the layer: "adam/m
 * wq" of "adam/m/layer/0/wq". */
static char *title_of(const Builder *builder, int tensor) {
    gsize length;
    const char *name = subject_of(builder->graph, tensor);
    MtfLayer layer = mtf_graph_tensor(builder->graph, tensor)->layer;
    const char *place = mtf_layer_place(builder->graph, name, layer, &length);
    g_autofree char *before = g_strndup(name, length);
    if (*before != '\0')
        before[strlen(before) - 1] = ' ';
    return g_strconcat(is_backward(builder->graph, tensor) ? "∇ " : "", before, place, NULL);
}

int mtf_partition_view_add_box(MtfPartitionView *view, MtfBoxKind kind, int section, char *title,
                               char *detail) {
    MtfViewBox box = { .kind = kind,
                       .section = section,
                       .tensor = -1,
                       .title = title,
                       .detail = detail,
                       .cells = new_array(sizeof(MtfViewCell), clear_cell),
                       .rows = new_array(sizeof(MtfViewRow), clear_row),
                       .notes = g_ptr_array_new_with_free_func(g_free) };
    g_array_append_val(view->boxes, box);
    return (int)view->boxes->len - 1;
}

static int add_box(const Builder *builder, MtfBoxKind kind, int section, int tensor,
                   const char *detail) {
    int box = mtf_partition_view_add_box(builder->view, kind, section, title_of(builder, tensor),
                                         g_strdup(detail));
    box_at(builder, box)->tensor = tensor;
    return box;
}

static char *box_key(int section, const char *name) {
    return g_strdup_printf("%d %s", section, name);
}

static int find_box(const Builder *builder, int section, const char *name) {
    g_autofree char *key = box_key(section, name);
    return GPOINTER_TO_INT(g_hash_table_lookup(builder->boxes, key)) - 1;
}

static void set_cells(const Builder *builder, int box, int tensor, const MtfPlacement *placement) {
    g_array_unref(box_at(builder, box)->cells);
    box_at(builder, box)->cells = cells_of(builder, tensor, placement);
}

/* The box of a tensor with that name, made on first use. */
static int named_box(const Builder *builder, MtfBoxKind kind, int section, int tensor,
                     const char *detail) {
    const char *name = mtf_graph_tensor(builder->graph, tensor)->name;
    int box = find_box(builder, section, name);
    if (box >= 0)
        return box;
    box = add_box(builder, kind, section, tensor, detail);
    set_cells(builder, box, tensor, &builder->program->layout->tensors[tensor]);
    g_hash_table_insert(builder->boxes, box_key(section, name), GINT_TO_POINTER(box + 1));
    return box;
}

/* The new value of the variable called `name`; -1: none. */
static int new_value(const MtfGraph *graph, const char *name) {
    int variable = mtf_graph_find_tensor(graph, name);
    for (guint u = 0; u < graph->updates->len; u++)
        if (g_array_index(graph->updates, MtfUpdate, u).variable == variable)
            return g_array_index(graph->updates, MtfUpdate, u).value;
    return -1;
}

/* The tensor whose box stands for an operation: the parts of a composite are shown in the composite's
 * box, those of an update in the updated variable's, and what a loop keeps in that of what is kept. */
static int owner_of(const Builder *builder, int operation) {
    const MtfGraph *graph = builder->graph;
    const MtfOperation *op = mtf_graph_operation(graph, operation);
    if (builder->parts->keeps[operation])
        return op->inputs[0];
    int tensor = op->origin == MTF_ORIGIN_PART     ? mtf_graph_find_tensor(graph, op->of)
                 : op->origin == MTF_ORIGIN_UPDATE ? new_value(graph, op->of)
                                                   : -1;
    int producer = tensor >= 0 ? mtf_graph_tensor(graph, tensor)->producer : -1;
    bool is_same_phase = producer >= 0 && mtf_graph_operation(graph, producer)->phase == op->phase;
    return is_same_phase ? tensor : op->outputs[0];
}

static int operation_box(const Builder *builder, int operation) {
    const MtfOperation *op = mtf_graph_operation(builder->graph, operation);
    int owner = owner_of(builder, operation);
    int producer = mtf_graph_tensor(builder->graph, owner)->producer;
    const MtfOperation *named = producer >= 0 ? mtf_graph_operation(builder->graph, producer) : op;
    return named_box(builder, MTF_BOX_OPERATION, builder->section_of[operation], owner,
                     mtf_operation_row(named->kind)->name);
}

/* ---- Arrows -------------------------------------------------------------------------------- */

static void connect(const Builder *builder, int from, int to, int64_t nanoseconds) {
    if (from == to)
        return;
    char *key = g_strdup_printf("%d>%d", from, to);
    if (g_hash_table_contains(builder->arrows, key)) {
        g_free(key);
        return;
    }
    g_array_append_val(builder->view->arrows, ((MtfViewArrow){ from, to, nanoseconds }));
    g_hash_table_insert(builder->arrows, key, GINT_TO_POINTER(builder->view->arrows->len));
}

/* ---- Instructions -------------------------------------------------------------------------- */

static int64_t time_of(const Builder *builder, int index) {
    const MtfSchedule *schedule = builder->parts->facts->schedule;
    return schedule->ends[index] - schedule->starts[index];
}

static char *describe_collective(const Builder *builder, const MtfInstruction *instruction) {
    const MtfReshardOp *op = &instruction->reshard;
    g_autofree char *axes = mtf_mesh_mask_format(&builder->program->layout->mesh, op->axes);
    g_autofree char *bytes = mtf_bytes_format((double)instruction->payload_bytes);
    g_autofree char *joined = instruction->n_inputs > 1
                                  ? g_strdup_printf(" of %d tensors", instruction->n_inputs)
                                  : g_strdup("");
    return g_strdup_printf("%s%s %s · %s%s", mtf_reshard_row(op->kind)->name,
                           op->reduction == MTF_REDUCE_MAX ? " max" : "", axes, bytes, joined);
}

/* Whether an operation brings a variable into the type that the forward pass reads: its result is
 * shown as the variable would be, and it has no box. */
static bool casts_weight(const MtfGraph *graph, int operation) {
    const MtfOperation *op = mtf_graph_operation(graph, operation);
    return op->phase == MTF_PHASE_FORWARD && mtf_operation_row(op->kind)->converts &&
           mtf_graph_tensor(graph, op->inputs[0])->source == MTF_SOURCE_VARIABLE;
}

/* Whether a tensor is named inside the boxes that take it: variables, inputs, what another phase
 * made, and the numbers that every update takes. */
static bool is_row(const Builder *builder, int tensor, int reader) {
    const int *phases = builder->parts->phases;
    if (phases[reader] == MTF_PART_PHASES - 1 &&
        mtf_graph_tensor(builder->graph, tensor)->shape.rank == 0)
        return true;
    int producer = mtf_graph_tensor(builder->graph, tensor)->producer;
    return producer < 0 || casts_weight(builder->graph, producer) ||
           phases[producer] != phases[reader];
}

static void set_provider(const Builder *builder, int buffer, int box, char *notes) {
    Provider *provider = &builder->providers[buffer];
    g_free(provider->notes);
    *provider = (Provider){ box, notes };
}

/* The box that provides a tensor made in another layer or part: that of its twin in the layer that
 * is shown, or a box of its own kind. */
static int foreign_box(const Builder *builder, int tensor, int section) {
    int known = mtf_layer_runs_twin(builder->parts->layers_found, tensor);
    int producer = known >= 0 ? mtf_graph_tensor(builder->graph, known)->producer : -1;
    int other = producer >= 0 ? builder->section_of[producer] : -1;
    int box = other >= 0 && other != section
                  ? find_box(builder, other, mtf_graph_tensor(builder->graph, known)->name)
                  : -1;
    return box >= 0 ? box : named_box(builder, MTF_BOX_TENSOR, section, tensor, "from before");
}

/* The box that an arrow to a box of `section` starts from. */
static int source_box(const Builder *builder, int buffer, int section) {
    int box = builder->providers[buffer].box;
    return box >= 0 ? box
                    : foreign_box(builder, mtf_program_buffer(builder->program, buffer)->tensor,
                                  section);
}

/* Takes the text. */
static int add_pill(const Builder *builder, int operation, int from, int64_t nanoseconds,
                    char *text) {
    int section = builder->section_of[operation];
    int tensor = box_at(builder, from)->tensor;
    int pill = add_box(builder, MTF_BOX_TRANSFER, section, tensor, "");
    g_ptr_array_add(box_at(builder, pill)->notes, text);
    box_at(builder, pill)->nanoseconds = nanoseconds;
    connect(builder, from, pill, nanoseconds);
    return pill;
}

/* Another step on the same way is one more line of the pill. */
static int extend_pill(const Builder *builder, int pill, int64_t nanoseconds, char *text) {
    g_ptr_array_add(box_at(builder, pill)->notes, text);
    box_at(builder, pill)->nanoseconds += nanoseconds;
    return pill;
}

/* The operation that made the exchange of an instruction's k-th tensor necessary. Of what travels
 * together the program names but one; what may wait for others is what operations made. */
static int collective_operation(const Builder *builder, const MtfInstruction *instruction, int k) {
    int tensor = mtf_program_buffer(builder->program, instruction->inputs[k])->tensor;
    int producer = mtf_graph_tensor(builder->graph, tensor)->producer;
    return instruction->n_inputs > 1 && producer >= 0 ? producer : instruction->operation;
}

static void read_collective(const Builder *builder, int index, int k) {
    const MtfInstruction *instruction = mtf_program_instruction(builder->program, index);
    int operation = collective_operation(builder, instruction, k);
    int in = instruction->inputs[k], out = instruction->outputs[k];
    int tensor = mtf_program_buffer(builder->program, in)->tensor;
    int64_t nanoseconds = time_of(builder, index) / instruction->n_inputs;
    g_autofree char *text = describe_collective(builder, instruction);
    bool made_here = mtf_graph_tensor(builder->graph, tensor)->producer == operation;
    bool cast = casts_weight(builder->graph, operation);
    if (builder->section_of[operation] < 0 && !cast)
        return;
    if (made_here && !cast) {
        int box = operation_box(builder, operation);
        g_ptr_array_add(box_at(builder, box)->notes, g_steal_pointer(&text));
        set_provider(builder, out, box, NULL);
    } else if (cast || is_row(builder, tensor, operation)) {
        const char *before = builder->providers[in].notes;
        set_provider(builder, out, -1,
                     before != NULL ? g_strjoin("\n", before, text, NULL) : g_steal_pointer(&text));
    } else {
        int from = source_box(builder, in, builder->section_of[operation]);
        bool pill = box_at(builder, from)->kind == MTF_BOX_TRANSFER;
        set_provider(
            builder, out,
            (pill ? extend_pill(builder, from, nanoseconds, g_steal_pointer(&text))
                  : add_pill(builder, operation, from, nanoseconds, g_steal_pointer(&text))),
            NULL);
    }
}

/* Copies and slices are free or nearly so, and not shown. */
static void read_local_step(const Builder *builder, const MtfInstruction *instruction) {
    const Provider *from = &builder->providers[instruction->inputs[0]];
    set_provider(builder, instruction->outputs[0], from->box, g_strdup(from->notes));
}

static void add_row(const Builder *builder, int box, int buffer) {
    GArray *rows = box_at(builder, box)->rows;
    int tensor = mtf_program_buffer(builder->program, buffer)->tensor;
    for (guint i = 0; i < rows->len; i++)
        if (g_array_index(rows, MtfViewRow, i).tensor == tensor)
            return;
    const char *notes = builder->providers[buffer].notes;
    MtfViewRow row = { tensor, title_of(builder, tensor),
                       cells_of(builder, tensor, &builder->program->layout->tensors[tensor]),
                       g_ptr_array_new_with_free_func(g_free) };
    g_auto(GStrv) lines = g_strsplit(notes != NULL ? notes : "", "\n", -1);
    for (int i = 0; lines[i] != NULL; i++)
        g_ptr_array_add(row.notes, g_strdup(lines[i]));
    g_array_append_val(rows, row);
}

static void read_kernel(const Builder *builder, int index) {
    const MtfInstruction *instruction = mtf_program_instruction(builder->program, index);
    int section = builder->section_of[instruction->operation];
    int box = operation_box(builder, instruction->operation);
    for (int k = 0; k < instruction->n_inputs; k++) {
        int buffer = instruction->inputs[k];
        int tensor = mtf_program_buffer(builder->program, buffer)->tensor;
        if (tensor < 0)
            continue;
        if (is_row(builder, tensor, instruction->operation)) {
            add_row(builder, box, buffer);
            continue;
        }
        int from = source_box(builder, buffer, section);
        bool pill = box_at(builder, from)->kind == MTF_BOX_TRANSFER;
        connect(builder, from, box, pill ? box_at(builder, from)->nanoseconds : 0);
    }
    for (int k = 0; k < instruction->n_outputs; k++)
        set_provider(builder, instruction->outputs[k], box, NULL);
    box_at(builder, box)->nanoseconds += time_of(builder, index);
}

static void read_instruction(const Builder *builder, int index) {
    const MtfInstruction *instruction = mtf_program_instruction(builder->program, index);
    if (mtf_instruction_is_collective(instruction))
        for (int k = 0; k < instruction->n_inputs; k++)
            read_collective(builder, index, k);
    else if (builder->section_of[instruction->operation] < 0)
        return;
    else if (instruction->kind == MTF_INSTRUCTION_KERNEL)
        read_kernel(builder, index);
    else
        read_local_step(builder, instruction);
}

/* ---- Sections ------------------------------------------------------------------------------ */

static int add_section(const Builder *builder, int part, int phase) {
    const MtfStepPart *p = mtf_step_part(builder->parts, part);
    g_autofree char *count = p->layers > 1 ? g_strdup_printf("  × %d", p->layers) : g_strdup("");
    MtfViewSection section = {
        .part = part,
        .phase = phase,
        .title = g_strconcat(p->title, count, ", ", mtf_part_phase_name(phase), NULL),
    };
    g_array_append_val(builder->view->sections, section);
    return (int)builder->view->sections->len - 1;
}

/* Shown are the operations of the section, of layers those of the first. */
static void show_section(const Builder *builder, int part, int phase) {
    int section = add_section(builder, part, phase);
    for (int i = 0; i < (int)builder->graph->operations->len; i++) {
        const MtfOperation *op = mtf_graph_operation(builder->graph, i);
        if (builder->parts->of[i] != part || builder->parts->phases[i] != phase ||
            casts_weight(builder->graph, i))
            continue;
        if (mtf_layer_runs_shows(builder->parts->layers_found, op->layer))
            builder->section_of[i] = section;
    }
}

/* A box a section: its figures in words. */
static void add_part_box(const Builder *builder, int section) {
    const MtfViewSection *s = &g_array_index(builder->view->sections, MtfViewSection, section);
    const MtfPartFigures *figures = &mtf_step_part(builder->parts, s->part)->figures[s->phase];
    int number =
        mtf_partition_view_add_box(builder->view, MTF_BOX_OPERATION, section, g_strdup(s->title),
                                   g_strdup_printf("%d kernels", figures->operations));
    MtfViewBox *box = box_at(builder, number);
    box->nanoseconds = figures->nanoseconds;
    g_autofree char *payload = mtf_bytes_format((double)figures->payload);
    if (figures->collectives > 0)
        g_ptr_array_add(box->notes, g_strdup_printf("%" PRId64 " collectives · %s",
                                                    figures->collectives, payload));
}

static void show_parts(const Builder *builder) {
    int before[MTF_PART_PHASES] = { -1, -1, -1 };
    for (int p = 0; p < (int)builder->parts->parts->len; p++)
        for (int f = 0; f < MTF_PART_PHASES; f++) {
            if (mtf_step_part(builder->parts, p)->figures[f].nanoseconds == 0)
                continue;
            add_part_box(builder, add_section(builder, p, f));
            int box = (int)builder->view->boxes->len - 1;
            if (before[f] >= 0)
                connect(builder, before[f], box, 0);
            before[f] = box;
        }
}

/* ---- Entry --------------------------------------------------------------------------------- */

typedef void (*Choose)(const Builder *builder, const int *what);

static void choose_section(const Builder *builder, const int *what) {
    show_section(builder, what[0], what[1]);
}

static void choose_level(const Builder *builder, const int *what) {
    if (what[0] == MTF_VIEW_PARTS) {
        show_parts(builder);
        return;
    }
    for (int f = 0; f < (what[0] == MTF_VIEW_FORWARD ? 1 : MTF_PART_PHASES); f++)
        for (int p = 0; p < (int)builder->parts->parts->len; p++)
            if (mtf_step_part(builder->parts, p)->figures[f].nanoseconds > 0)
                show_section(builder, p, f);
}

MtfPartitionView *mtf_partition_view_blank(void) {
    MtfPartitionView *view = g_new0(MtfPartitionView, 1);
    view->sections = new_array(sizeof(MtfViewSection), clear_section);
    view->boxes = new_array(sizeof(MtfViewBox), clear_box);
    view->arrows = g_array_new(FALSE, TRUE, sizeof(MtfViewArrow));
    return view;
}

static MtfPartitionView *build(const MtfStepParts *parts, Choose choose, const int *what) {
    const MtfProgram *program = parts->facts->program;
    const MtfGraph *graph = parts->facts->plan->graph;
    MtfPartitionView *view = mtf_partition_view_blank();
    view->parts = parts;
    g_autoptr(GHashTable) boxes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(GHashTable) arrows = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autofree Provider *providers = g_new0(Provider, program->buffers->len + 1);
    g_autofree int *section_of = g_new(int, graph->operations->len + 1);
    for (guint b = 0; b < program->buffers->len; b++)
        providers[b].box = -1;
    memset(section_of, -1, sizeof *section_of * (graph->operations->len + 1));
    Builder builder = { parts, program, graph, view, boxes, arrows, providers, section_of };
    choose(&builder, what);
    for (int i = 0; i < mtf_program_length(program); i++)
        read_instruction(&builder, i);
    for (guint b = 0; b < program->buffers->len; b++)
        g_free(providers[b].notes);
    return view;
}

MtfPartitionView *mtf_partition_view_new(const MtfStepParts *parts, MtfViewLevel level) {
    return build(parts, choose_level, (const int[]){ (int)level, 0 });
}

MtfPartitionView *mtf_partition_view_section(const MtfStepParts *parts, int part, int phase) {
    return build(parts, choose_section, (const int[]){ part, phase });
}

void mtf_partition_view_free(MtfPartitionView *view) {
    if (view == NULL)
        return;
    g_array_unref(view->sections);
    g_array_unref(view->boxes);
    g_array_unref(view->arrows);
    g_free(view);
}

static void append_slice(GString *text, const MtfPlan *plan, int tensor) {
    const MtfLayout *layout = plan->layout;
    g_autofree char *notation =
        mtf_tensor_notation(plan->graph, &layout->mesh, tensor, &layout->tensors[tensor]);
    g_autofree char *local = mtf_tensor_local_shape(plan->graph, layout, tensor);
    g_string_append_printf(text, "\n%s\nslice %s", notation, local);
}

char *mtf_view_box_tooltip(const MtfPartitionView *view, const MtfViewBox *box) {
    const MtfPlan *plan = box->tensor >= 0 ? view->parts->facts->plan : NULL;
    GString *text =
        g_string_new(plan != NULL ? mtf_graph_tensor(plan->graph, box->tensor)->name : box->title);
    if (plan != NULL)
        append_slice(text, plan, box->tensor);
    for (guint i = 0; i < box->notes->len; i++)
        g_string_append_printf(text, "\n%s", (char *)g_ptr_array_index(box->notes, i));
    if (box->nanoseconds > 0) {
        g_autofree char *time = mtf_seconds_format((double)box->nanoseconds / 1e9);
        g_string_append_printf(text, "\n%s", time);
    }
    return g_string_free(text, FALSE);
}
