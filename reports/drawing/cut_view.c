// SPDX-License-Identifier: GPL-3.0-or-later
#include "reports/drawing/cut_view.h"

#include "layouts/base/command_line.h"
#include "layouts/layers/layers.h"
#include "reports/drawing/slice_picture.h"

#include <string.h>

#define FOLDED_STAGES 3 /* that are equal; fewer are drawn one by one */
#define SHOWN_TENSORS 3 /* of one way between two boxes */
#define SHOWN_NAMES 24  /* boxes of a stage outside of layers; more are one box */

/* What goes one way between two boxes. */
typedef struct {
    int tensors;
    double bytes;
    GPtrArray *names; /* char *: the first ones */
} Load;

/* What goes between two boxes: down with the forward pass, up with the gradients. */
typedef struct {
    int from, to;    /* boxes */
    Load load[2][2]; /* [up][once a step] */
    int64_t cost;    /* nanoseconds of them all; bytes where there is no machine */
} Cut;

typedef struct {
    const MtfPipelineFacts *facts;
    MtfPartitionView *view;
    int *first, *last; /* [stages] of the equal ones behind each other */
    int **box_of;      /* [stages][operations]: -1 = none; of the first of equal ones */
    GArray *counts;    /* int: operations of each box */
    GArray *cuts;      /* Cut */
} Builder;

static const MtfGraph *graph_of(const Builder *builder, int stage) {
    return mtf_pipeline_stage(builder->facts->pipeline, stage)->graph;
}

static MtfViewBox *box_at(const Builder *builder, int box) {
    return &g_array_index(builder->view->boxes, MtfViewBox, box);
}

/* ---- Stages -------------------------------------------------------------------------------- */

/* How a stage's tensors are called, but for the numbers of layers, and laid out; free with g_free. */
static char *describe_stage(const Builder *builder, int stage) {
    const MtfPlan *plan = mtf_pipeline_stage(builder->facts->pipeline, stage);
    const MtfMesh *mesh = &plan->layout->mesh;
    GString *text = g_string_new(NULL);
    for (int t = 0; t < (int)plan->graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(plan->graph, t);
        g_autofree char *name = mtf_layer_star(plan->graph, tensor->name, tensor->layer);
        g_autofree char *placement =
            mtf_placement_format(plan->graph, mesh, &plan->layout->tensors[t]);
        g_string_append_printf(text, "%s %s\n", name, placement);
    }
    return g_string_free(text, FALSE);
}

/* Stages behind each other that have the same tensors, number by number, are one frame where they are many. */
static void find_equal_stages(const Builder *builder, int stages) {
    g_autofree char *before = NULL;
    for (int s = 0; s < stages; s++) {
        char *own = describe_stage(builder, s);
        builder->first[s] = g_strcmp0(own, before) == 0 ? builder->first[s - 1] : s;
        g_free(before);
        before = own;
    }
    for (int s = 0, end; s < stages; s = end) {
        for (end = s + 1; end < stages && builder->first[end] == s;)
            end++;
        for (int k = s; k < end; k++) {
            builder->first[k] = end - s >= FOLDED_STAGES ? s : k;
            builder->last[k] = end - s >= FOLDED_STAGES ? end - 1 : k;
        }
    }
}

/* "stage 2 · devices 4 to 5, mesh rows:2", and room behind it: arrows into the frame's middle shall not cross
 * it. */
static char *title_stage(const Builder *builder, int stage) {
    const MtfPipelinePlan *pipeline = builder->facts->pipeline;
    const MtfMesh *mesh = &mtf_pipeline_stage(pipeline, stage)->layout->mesh;
    int device = mtf_pipeline_first_device(pipeline, pipeline->order->rank_of_stage[stage]);
    int last = builder->last[stage];
    g_autofree char *place =
        mtf_pipeline_place_format(device, device + mtf_mesh_size(mesh) - 1, mesh);
    GString *title = g_string_new(NULL);
    if (last > stage)
        g_string_printf(title, "stages %d–%d, alike · the first on %s", stage, last, place);
    else
        g_string_printf(title, "stage %d · %s", stage, place);
    g_string_append_printf(title, "%*s", 2 * (int)title->len, "");
    return g_string_free(title, FALSE);
}

static int add_section(const Builder *builder, int stage, char *const *folders) {
    const MtfPipelineOrder *order = builder->facts->pipeline->order;
    MtfViewSection section = { .part = stage,
                               .phase = -1,
                               .title = title_stage(builder, stage),
                               .fill = mtf_slice_color(order->rank_of_stage[stage], order->ranks),
                               .url = g_strconcat(folders[stage], "/index.html", NULL) };
    g_array_append_val(builder->view->sections, section);
    return (int)builder->view->sections->len - 1;
}

/* ---- Boxes --------------------------------------------------------------------------------- */

/* Whether an operation has a box: what only brings a variable into another form stands with its reader. */
static bool is_shown(const MtfGraph *graph, const MtfOperation *op) {
    if (op->phase != MTF_PHASE_FORWARD || op->n_inputs == 0)
        return false;
    return !mtf_operation_row(op->kind)->converts ||
           mtf_graph_tensor(graph, op->inputs[0])->producer >= 0;
}

/* Whether the layer goes on in another stage. */
static bool is_cut(const Builder *builder, MtfLayer layer, int stage) {
    const MtfGraph *whole = builder->facts->pipeline->graph;
    for (int i = 0; i < (int)whole->operations->len; i++) {
        const MtfOperation *op = mtf_graph_operation(whole, i);
        if (op->layer.block == layer.block && op->layer.iteration == layer.iteration &&
            op->stage != stage + 1 && is_shown(whole, op))
            return true;
    }
    return false;
}

static char *title_run(const Builder *builder, int stage, const MtfLayerRun *run) {
    const GArray *repeats = graph_of(builder, stage)->repeats;
    const char *name = g_array_index(repeats, MtfRepeat, run->repeat).name;
    MtfLayer layer = { .block = run->repeat + 1, .iteration = run->first };
    if (run->count > 1)
        return g_strdup_printf("%s %d–%d  × %d", name, run->first, run->first + run->count - 1,
                               run->count);
    return g_strdup_printf("%s %d%s", name, run->first,
                           is_cut(builder, layer, stage) ? ", part" : "");
}

/* "down0" of "down0/conv2/norm". */
static char *head_of(const char *name) {
    const char *end = strchr(name + (*name == '/'), '/');
    return end != NULL ? g_strndup(name, (gsize)(end - name)) : g_strdup(name);
}

/* The box that is called by a key, made on first use. */
static int keyed_box(const Builder *builder, GHashTable *known, int section, const char *key,
                     char *title) {
    int box = GPOINTER_TO_INT(g_hash_table_lookup(known, key)) - 1, none = 0;
    if (box >= 0) {
        g_free(title);
        return box;
    }
    box = mtf_partition_view_add_box(builder->view, MTF_BOX_OPERATION, section, title, NULL);
    g_array_append_val(builder->counts, none);
    g_hash_table_insert(known, g_strdup(key), GINT_TO_POINTER(box + 1));
    return box;
}

/* How many names have something in common outside of layers. */
static int count_heads(const MtfGraph *graph, const MtfLayerRuns *runs) {
    g_autoptr(GHashTable) heads = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (int i = 0; i < (int)graph->operations->len; i++) {
        const MtfOperation *op = mtf_graph_operation(graph, i);
        if (is_shown(graph, op) && mtf_layer_runs_find(runs, op->layer) < 0)
            g_hash_table_add(heads, head_of(mtf_graph_tensor(graph, op->outputs[0])->name));
    }
    return (int)g_hash_table_size(heads);
}

static void add_boxes(const Builder *builder, int stage, int section) {
    const MtfPlan *plan = mtf_pipeline_stage(builder->facts->pipeline, stage);
    g_autoptr(MtfLayerRuns) runs = mtf_layer_runs_new(plan->graph, plan->layout, true);
    g_autoptr(GHashTable) known = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    bool too_many = count_heads(plan->graph, runs) > SHOWN_NAMES;
    for (int i = 0; i < (int)plan->graph->operations->len; i++) {
        const MtfOperation *op = mtf_graph_operation(plan->graph, i);
        int run = mtf_layer_runs_find(runs, op->layer);
        builder->box_of[stage][i] = -1;
        if (!is_shown(plan->graph, op))
            continue;
        g_autofree char *head = head_of(mtf_graph_tensor(plan->graph, op->outputs[0])->name);
        g_autofree char *key = run >= 0   ? g_strdup_printf("%d", run)
                               : too_many ? g_strdup("/")
                                          : g_strconcat("/", head, NULL);
        char *title = run >= 0   ? title_run(builder, stage, mtf_layer_runs_at(runs, run))
                      : too_many ? g_strdup("operations outside of layers")
                                 : g_strdup(head);
        int box = keyed_box(builder, known, section, key, title);
        builder->box_of[stage][i] = box;
        g_array_index(builder->counts, int, box)++;
    }
}

static void count_operations(const Builder *builder) {
    for (int b = 0; b < (int)builder->counts->len; b++) {
        int count = g_array_index(builder->counts, int, b);
        box_at(builder, b)->detail =
            g_strdup_printf("%d operation%s", count, count == 1 ? "" : "s");
    }
}

/* ---- Where tensors are --------------------------------------------------------------------- */

static int first_box(const Builder *builder, int stage) {
    int i = 0, operations = (int)graph_of(builder, stage)->operations->len;
    while (i < operations && builder->box_of[stage][i] < 0)
        i++;
    return i < operations ? builder->box_of[stage][i] : -1;
}

/* The box of the first operation that has one and reads the tensor; -1: none. */
static int reading_box(const Builder *builder, int stage, int tensor) {
    const MtfGraph *graph = graph_of(builder, stage);
    for (int i = 0; i < (int)graph->operations->len; i++) {
        const MtfOperation *op = mtf_graph_operation(graph, i);
        for (int k = 0; k < op->n_inputs && builder->box_of[stage][i] >= 0; k++)
            if (op->inputs[k] == tensor)
                return builder->box_of[stage][i];
    }
    return -1;
}

/* What an operation of the backward pass was made for, as a tensor; -1: not said, or not of this stage. */
static int origin_of(const MtfGraph *graph, const MtfOperation *op) {
    bool behind = op->phase != MTF_PHASE_FORWARD && op->of != NULL;
    return behind ? mtf_graph_find_tensor(graph, op->of) : -1;
}

/* The box of what a tensor is, or is a gradient of, or of what it is added up from; -1: none. */
static int box_of_tensor(const Builder *builder, int stage, int tensor) {
    const MtfGraph *graph = graph_of(builder, stage);
    int producer = mtf_graph_tensor(graph, tensor)->producer, box = -1;
    if (producer < 0)
        return reading_box(builder, stage, tensor);
    if (builder->box_of[stage][producer] >= 0)
        return builder->box_of[stage][producer];
    const MtfOperation *op = mtf_graph_operation(graph, producer);
    int origin = origin_of(graph, op);
    if (origin >= 0 && mtf_graph_tensor(graph, origin)->producer != producer)
        box = box_of_tensor(builder, stage, origin);
    for (int k = 0; k < op->n_inputs && box < 0; k++)
        if (op->phase != MTF_PHASE_FORWARD)
            box = box_of_tensor(builder, stage, op->inputs[k]);
    return box >= 0 ? box : reading_box(builder, stage, tensor);
}

/* The box that a received gradient goes to: of what the first operation that reads it was made for. */
static int box_of_gradient(const Builder *builder, int stage, int tensor) {
    const MtfGraph *graph = graph_of(builder, stage);
    for (int i = 0; i < (int)graph->operations->len; i++) {
        const MtfOperation *op = mtf_graph_operation(graph, i);
        for (int k = 0; k < op->n_inputs; k++)
            if (op->inputs[k] == tensor)
                return box_of_tensor(builder, stage, op->outputs[0]);
    }
    return -1;
}

/* ---- Arrows -------------------------------------------------------------------------------- */

static void add_arrow(const Builder *builder, int from, int to, int64_t nanoseconds) {
    for (guint i = 0; i < builder->view->arrows->len; i++) {
        const MtfViewArrow *arrow = &g_array_index(builder->view->arrows, MtfViewArrow, i);
        if (arrow->from == from && arrow->to == to)
            return;
    }
    g_array_append_val(builder->view->arrows, ((MtfViewArrow){ from, to, nanoseconds }));
}

/* Within a stage; boxes are numbered in the order of the pass, and a box may hold what comes later. */
static void add_arrows(const Builder *builder, int stage) {
    const MtfGraph *graph = graph_of(builder, stage);
    for (int i = 0; i < (int)graph->operations->len; i++) {
        const MtfOperation *op = mtf_graph_operation(graph, i);
        int to = builder->box_of[stage][i];
        for (int k = 0; k < op->n_inputs && to >= 0; k++) {
            int producer = mtf_graph_tensor(graph, op->inputs[k])->producer;
            int from = producer >= 0 ? builder->box_of[stage][producer] : -1;
            if (from >= 0 && from < to)
                add_arrow(builder, from, to, 0);
        }
    }
}

static Cut *find_cut(const Builder *builder, int from, int to) {
    for (guint i = 0; i < builder->cuts->len; i++) {
        Cut *cut = &g_array_index(builder->cuts, Cut, i);
        if (cut->from == from && cut->to == to)
            return cut;
    }
    g_array_append_val(builder->cuts, ((Cut){ .from = from, .to = to }));
    return &g_array_index(builder->cuts, Cut, builder->cuts->len - 1);
}

/* Whether the tensor is of the forward pass, or of the backward pass (up); what clipping and updates make is
 * not drawn. */
static bool is_drawn(const MtfGraph *graph, int tensor, bool *up) {
    int producer = mtf_graph_tensor(graph, tensor)->producer;
    MtfPhase phase =
        producer >= 0 ? mtf_graph_operation(graph, producer)->phase : MTF_PHASE_FORWARD;
    *up = phase == MTF_PHASE_BACKWARD;
    return phase == MTF_PHASE_FORWARD || phase == MTF_PHASE_BACKWARD;
}

/* Of equal stages what the last one sends and the first one receives. */
static void add_transfer(const Builder *builder, int number) {
    const MtfStageTransfer *transfer = mtf_pipeline_transfer(builder->facts->pipeline, number);
    const MtfGraph *graph = graph_of(builder, transfer->from);
    int from = builder->first[transfer->from], to = builder->first[transfer->to];
    int above = MIN(transfer->from, transfer->to), below = MAX(transfer->from, transfer->to);
    bool up;
    if (!is_drawn(graph, transfer->sent, &up) || builder->last[above] != above ||
        builder->first[below] != below)
        return;
    int sender = box_of_tensor(builder, from, transfer->sent);
    int receiver = up ? box_of_gradient(builder, to, transfer->received)
                      : reading_box(builder, to, transfer->received);
    sender = sender >= 0 ? sender : first_box(builder, from);
    receiver = receiver >= 0 ? receiver : first_box(builder, to);
    if (sender < 0 || receiver < 0)
        return;
    bool turned = transfer->from > transfer->to;
    Cut *cut = find_cut(builder, turned ? receiver : sender, turned ? sender : receiver);
    Load *load = &cut->load[turned][transfer->once];
    double bytes = (double)mtf_graph_tensor_bytes(graph, transfer->sent);
    load->bytes += bytes;
    if (load->names == NULL)
        load->names = g_ptr_array_new();
    if (load->tensors++ < SHOWN_TENSORS)
        g_ptr_array_add(load->names, mtf_graph_tensor(graph, transfer->sent)->name);
    cut->cost += builder->facts->prices != NULL
                     ? (int64_t)(1e9 * builder->facts->prices[number].seconds)
                     : (int64_t)bytes;
}

/* "layer/1/x_out · 32.00 KiB ↓", and what does not go with every micro-batch. */
static char *format_load(const Load *load, bool up, bool once) {
    g_autofree char *bytes = mtf_bytes_format(load->bytes);
    GString *text = g_string_new(NULL);
    for (guint i = 0; i < load->names->len; i++)
        g_string_append_printf(text, "%s%s", i > 0 ? ", " : "",
                               (const char *)g_ptr_array_index(load->names, i));
    if (load->tensors > (int)load->names->len)
        g_string_append_printf(text, " and %d more", load->tensors - (int)load->names->len);
    g_string_append_printf(text, " · %s %s%s", bytes, up ? "↑" : "↓", once ? " once a step" : "");
    return g_string_free(text, FALSE);
}

static void draw_cut(const Builder *builder, Cut *cut) {
    int pill =
        mtf_partition_view_add_box(builder->view, MTF_BOX_TRANSFER, -1, g_strdup(""), g_strdup(""));
    for (int up = 0; up < 2; up++)
        for (int once = 0; once < 2; once++) {
            Load *load = &cut->load[up][once];
            if (load->names == NULL)
                continue;
            g_ptr_array_add(box_at(builder, pill)->notes, format_load(load, up, once));
            g_ptr_array_unref(load->names);
        }
    add_arrow(builder, cut->from, pill, MAX(cut->cost, 1));
    add_arrow(builder, pill, cut->to, MAX(cut->cost, 1));
}

/* ---- Entry --------------------------------------------------------------------------------- */

static void build(const Builder *builder, char *const *folders) {
    int stages = builder->facts->pipeline->order->stages;
    find_equal_stages(builder, stages);
    for (int s = 0; s < stages; s++) {
        if (builder->first[s] != s)
            continue;
        builder->box_of[s] = g_new(int, graph_of(builder, s)->operations->len + 1);
        add_boxes(builder, s, add_section(builder, s, folders));
        add_arrows(builder, s);
    }
    count_operations(builder);
    for (int i = 0; i < mtf_pipeline_transfers(builder->facts->pipeline); i++)
        add_transfer(builder, i);
    for (guint i = 0; i < builder->cuts->len; i++)
        draw_cut(builder, &g_array_index(builder->cuts, Cut, i));
}

MtfPartitionView *mtf_cut_view_new(const MtfPipelineFacts *facts, char *const *folders) {
    gsize stages = (gsize)facts->pipeline->order->stages;
    g_autofree int *first = g_new(int, stages), *last = g_new(int, stages);
    g_autofree int **box_of = g_new0(int *, stages);
    g_autoptr(GArray) counts = g_array_new(FALSE, TRUE, sizeof(int));
    g_autoptr(GArray) cuts = g_array_new(FALSE, TRUE, sizeof(Cut));
    Builder builder = { .facts = facts,
                        .view = mtf_partition_view_blank(),
                        .first = first,
                        .last = last,
                        .box_of = box_of,
                        .counts = counts,
                        .cuts = cuts };
    build(&builder, folders);
    for (gsize s = 0; s < stages; s++)
        g_free(box_of[s]);
    return builder.view;
}
