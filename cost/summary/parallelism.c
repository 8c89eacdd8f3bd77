// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/summary/parallelism.h"

#include "layouts/base/json_writer.h"
#include "layouts/graph/microbatches.h"
#include "layouts/graph/operation_table.h"

#include <math.h>
#include <string.h>

/* Shares of the work below this are not told, and above the next count as all. */
#define TOLD 0.05
#define SURELY 0.9

/* Sequence parallelism splits at least this share of what is between products. */
#define SPLIT_SHARE 0.4

/* ---- What splitting a dimension is ------------------------------------------------------------- */

typedef struct {
    const MtfGraph *graph;
    const MtfLayout *layout;
    MtfParallel *dimension; /* by dimension */
    bool *tensor_split;     /* by dimension and axis: a forward product splits a weight so */
} View;

static bool is_product(const MtfOperation *op) {
    return op->phase == MTF_PHASE_FORWARD && op->origin != MTF_ORIGIN_CLONE &&
           mtf_operation_row(op->kind)->kernel_class == MTF_CLASS_MATMUL;
}

/* What another stage of a pipeline keeps and this one reads: tied weights, as they are or as another
 * type, which no example is part of. */
static bool is_received_variable(const MtfGraph *graph, const MtfTensor *tensor) {
    if (tensor->source != MTF_SOURCE_INPUT || tensor->feed != MTF_FEED_TRANSFER)
        return tensor->source == MTF_SOURCE_INPUT && tensor->feed == MTF_FEED_TRANSFER_ONCE;
    int batch = mtf_graph_find_batch(graph); /* looks at all tensors */
    return batch >= 0 && mtf_shape_find(&tensor->shape, batch) < 0;
}

/* The variable that a tensor is, or is another type of; else -1. */
static int variable_behind(const MtfGraph *graph, int tensor) {
    const MtfTensor *t = mtf_graph_tensor(graph, tensor);
    while (t->producer >= 0) {
        const MtfOperation *op = mtf_graph_operation(graph, t->producer);
        if (!mtf_operation_row(op->kind)->converts)
            return -1;
        tensor = op->inputs[0];
        t = mtf_graph_tensor(graph, tensor);
    }
    return t->source == MTF_SOURCE_VARIABLE || is_received_variable(graph, t) ? tensor : -1;
}

static void mark_shape(View *view, const MtfShape *shape, MtfParallel parallel) {
    for (int i = 0; i < shape->rank; i++)
        view->dimension[shape->dims[i]] = parallel;
}

static void mark_sources(View *view, MtfSource source, MtfParallel parallel) {
    for (int t = 0; t < (int)view->graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(view->graph, t);
        if (tensor->source == source && !is_received_variable(view->graph, tensor))
            mark_shape(view, &tensor->shape, parallel);
    }
}

static void mark_weights(View *view) {
    for (int o = 0; o < (int)view->graph->operations->len; o++) {
        const MtfOperation *op = mtf_graph_operation(view->graph, o);
        for (int k = 0; is_product(op) && k < op->n_inputs; k++) {
            int variable = variable_behind(view->graph, op->inputs[k]);
            if (variable >= 0)
                mark_shape(view, &mtf_graph_tensor(view->graph, variable)->shape,
                           MTF_PARALLEL_TENSOR);
        }
    }
}

static bool *tensor_split_at(const View *view, int dim, int axis) {
    return &view->tensor_split[dim * MTF_MAX_MESH_AXES + axis];
}

/* Notes which dimensions of weights products split. */
static void note_splits(View *view) {
    for (int o = 0; o < (int)view->graph->operations->len; o++) {
        MtfIteration iteration;
        if (!is_product(mtf_graph_operation(view->graph, o)))
            continue;
        mtf_operation_iteration(view->graph, o, &iteration);
        for (int a = 0; a < view->layout->mesh.n_axes; a++) {
            int choice = view->layout->operations[o].axis[a];
            int dim = choice >= 0 && choice < iteration.n ? iteration.index[choice].dim : -1;
            if (dim >= 0 && view->dimension[dim] == MTF_PARALLEL_TENSOR)
                *tensor_split_at(view, dim, a) = true;
        }
    }
}

/* Later marks win. */
static void classify_dimensions(View *view) {
    int n = (int)view->graph->dimensions->len;
    for (int d = 0; d < n; d++)
        view->dimension[d] = MTF_PARALLEL_CONTEXT;
    mark_sources(view, MTF_SOURCE_VARIABLE, MTF_PARALLEL_TENSOR);
    mark_sources(view, MTF_SOURCE_INPUT, MTF_PARALLEL_CONTEXT);
    mark_weights(view);
    int batch = mtf_graph_find_batch(view->graph);
    int experts = mtf_graph_find_dimension(view->graph, "experts");
    if (experts >= 0)
        view->dimension[experts] = MTF_PARALLEL_EXPERT;
    if (batch >= 0)
        view->dimension[batch] = MTF_PARALLEL_DATA;
}

/* ---- What the axes do -------------------------------------------------------------------------- */

static double operation_work(const MtfGraph *graph, int operation, const MtfIteration *iteration) {
    int64_t sizes[MTF_MAX_INDEXES];
    double points = 1;
    for (int i = 0; i < iteration->n; i++)
        points *= (double)(sizes[i] = iteration->index[i].size);
    return points * mtf_operation_share(graph, operation, iteration, sizes);
}

static MtfParallel axis_parallel(const View *view, const MtfIteration *iteration, int choice) {
    return choice >= 0 && choice < iteration->n ? view->dimension[iteration->index[choice].dim]
                                                : MTF_PARALLEL_NONE;
}

/* Adds an operation's work to that of what each axis does there. */
static void add_operation(const View *view, int o, double work[][MTF_PARALLELS]) {
    MtfIteration iteration;
    mtf_operation_iteration(view->graph, o, &iteration);
    double all = operation_work(view->graph, o, &iteration);
    for (int a = 0; a < view->layout->mesh.n_axes; a++)
        work[a][axis_parallel(view, &iteration, view->layout->operations[o].axis[a])] += all;
}

/* Where there are no products, every forward operation counts. */
static void add_work(const View *view, bool products, double work[][MTF_PARALLELS]) {
    for (int o = 0; o < (int)view->graph->operations->len; o++) {
        const MtfOperation *op = mtf_graph_operation(view->graph, o);
        if (products ? is_product(op) : op->phase == MTF_PHASE_FORWARD)
            add_operation(view, o, work);
    }
}

static MtfParallel largest(const double *work, int but) {
    int best = but == 0 ? 1 : 0;
    for (int p = 0; p < MTF_PARALLELS; p++)
        if (p != but && work[p] > work[best])
            best = p;
    return (MtfParallel)best;
}

static void judge_axes(const View *view, MtfParallelism *p) {
    double work[MTF_MAX_MESH_AXES][MTF_PARALLELS] = { { 0 } };
    for (int o = 0; o < (int)view->graph->operations->len && !p->has_products; o++)
        p->has_products = is_product(mtf_graph_operation(view->graph, o));
    add_work(view, p->has_products, work);
    for (int a = 0; a < view->layout->mesh.n_axes; a++) {
        double all = 0;
        for (int k = 0; k < MTF_PARALLELS; k++)
            all += work[a][k];
        p->axis[a] = all > 0 ? largest(work[a], -1) : MTF_PARALLEL_NONE;
        p->second[a] = largest(work[a], (int)p->axis[a]);
        double share = all > 0 ? work[a][p->second[a]] / all : 0;
        p->second_share[a] = share >= TOLD ? share : 0;
        p->degree[p->axis[a]] *= view->layout->mesh.axes[a].size;
    }
}

/* ---- Sequence parallelism ---------------------------------------------------------------------- */

static bool has_context(const View *view, const MtfShape *shape) {
    for (int i = 0; i < shape->rank; i++)
        if (view->dimension[shape->dims[i]] == MTF_PARALLEL_CONTEXT)
            return true;
    return false;
}

/* Of what is computed between products along an axis of tensor parallelism, and neither split by the
 * dimension of a weight there nor a sum still to be reduced: whether a good part is split by
 * positions. The rest is what products read gathered. */
static bool splits_sequence(const View *view, const MtfParallelism *p) {
    double split = 0, all = 0;
    for (int t = 0; t < view->layout->n_tensors; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(view->graph, t);
        if (tensor->producer < 0 || !has_context(view, &tensor->shape))
            continue;
        const MtfOperation *op = mtf_graph_operation(view->graph, tensor->producer);
        for (int a = 0; a < view->layout->mesh.n_axes; a++) {
            int placed = view->layout->tensors[t].axis[a];
            if (op->phase != MTF_PHASE_FORWARD || p->axis[a] != MTF_PARALLEL_TENSOR ||
                placed <= MTF_PARTIAL_SUM ||
                (placed >= 0 && view->dimension[placed] == MTF_PARALLEL_TENSOR))
                continue;
            double bytes = (double)mtf_graph_tensor_bytes(view->graph, t);
            all += bytes;
            split += placed >= 0 && view->dimension[placed] == MTF_PARALLEL_CONTEXT ? bytes : 0;
        }
    }
    return split > SPLIT_SHARE * all;
}

/* ---- Sharded state ----------------------------------------------------------------------------- */

/* Logarithms, so that a tensor split over 4 of 16 replicas is half sharded. An axis that splits the
 * tensor as products split weights has no replicas of it. */
typedef struct {
    double sharded, all;
} Sharing;

static void share(const View *view, const MtfParallelism *p, int tensor, Sharing *sharing) {
    double parts = 0, replicas = 0;
    for (int a = 0; a < view->layout->mesh.n_axes; a++) {
        if (p->axis[a] != MTF_PARALLEL_DATA && p->axis[a] != MTF_PARALLEL_CONTEXT)
            continue;
        double size = log(view->layout->mesh.axes[a].size);
        int dim = view->layout->tensors[tensor].axis[a];
        if (dim >= 0 && *tensor_split_at(view, dim, a))
            continue;
        replicas += size;
        parts += dim >= 0 ? size : 0;
    }
    double bytes = (double)mtf_graph_tensor_bytes(view->graph, tensor);
    sharing->all += replicas * bytes;
    sharing->sharded += parts * bytes;
}

/* By variable that is read in a narrower type: the tensor of that type, else -1. The variable is then
 * the master copy, which is the optimizer's. Free with g_free. */
static int *narrow_copies(const View *view) {
    int *copies = g_new(int, view->layout->n_tensors + 1);
    for (int t = 0; t < view->layout->n_tensors; t++)
        copies[t] = -1;
    for (int o = 0; o < (int)view->graph->operations->len; o++) {
        const MtfOperation *op = mtf_graph_operation(view->graph, o);
        if (op->phase == MTF_PHASE_FORWARD && mtf_operation_row(op->kind)->converts &&
            mtf_graph_tensor(view->graph, op->inputs[0])->source == MTF_SOURCE_VARIABLE)
            copies[op->inputs[0]] = op->outputs[0];
    }
    return copies;
}

static double shared_part(Sharing sharing) {
    return sharing.all > 0 ? sharing.sharded / sharing.all : 0;
}

static void judge_state(const View *view, MtfParallelism *p) {
    g_autofree int *copies = narrow_copies(view);
    Sharing moments = { 0, 0 }, masters = { 0, 0 }, gradients = { 0, 0 }, variables = { 0, 0 };
    for (int t = 0; t < view->layout->n_tensors; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(view->graph, t);
        int copy = copies[t];
        if (tensor->source == MTF_SOURCE_VARIABLE)
            share(view, p, t,
                  copy >= 0                                ? &masters
                  : tensor->memory == MTF_MEMORY_OPTIMIZER ? &moments
                                                           : &variables);
        if (copy >= 0)
            share(view, p, copy, &variables);
        else if (tensor->producer >= 0 &&
                 mtf_operation_accumulates(view->graph, tensor->producer) && tensor->shape.rank > 0)
            share(view, p, t, &gradients);
    }
    Sharing optimizer = moments.all > 0 ? moments : masters;
    p->optimizer = shared_part(optimizer);
    p->masters = masters.all > 0 ? shared_part(masters) : 1;
    p->gradients = shared_part(gradients);
    p->variables = shared_part(variables);
    bool first = optimizer.all > 0 ? p->optimizer >= SURELY : p->variables >= SURELY;
    bool second = first && (gradients.all > 0 ? p->gradients >= SURELY : p->variables >= SURELY);
    p->zero = first && p->variables >= SURELY ? 3 : second ? 2 : first ? 1 : 0;
}

/* ---- Words ------------------------------------------------------------------------------------- */

static bool attends(const MtfOperation *op) {
    return mtf_operation_row(op->kind)->products == MTF_PRODUCTS_ATTENTION;
}

/* Whether there is a context: tokens are read, or attended to, as in stages behind the first. */
static bool has_positions(const MtfGraph *graph) {
    for (int o = 0; o < (int)graph->operations->len; o++)
        if (attends(mtf_graph_operation(graph, o)))
            return true;
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(graph, t);
        if (tensor->source == MTF_SOURCE_INPUT && tensor->feed == MTF_FEED_TOKENS)
            return true;
    }
    return false;
}

MtfParallelism mtf_parallelism(const MtfGraph *graph, const MtfLayout *layout) {
    MtfParallelism p = { .degree = { 1, 1, 1, 1, 1 } };
    g_autofree MtfParallel *dimension = g_new0(MtfParallel, graph->dimensions->len + 1);
    g_autofree bool *splits = g_new0(bool, (graph->dimensions->len + 1) * MTF_MAX_MESH_AXES);
    View view = { graph, layout, dimension, splits };
    classify_dimensions(&view);
    note_splits(&view);
    judge_axes(&view, &p);
    p.sequence_parallel = splits_sequence(&view, &p);
    p.spatial = !has_positions(graph);
    judge_state(&view, &p);
    return p;
}

static const char *parallel_name(const MtfParallelism *p, MtfParallel parallel) {
    static const char *const names[MTF_PARALLELS] = { "data parallel", "tensor parallel",
                                                      "context parallel", "expert parallel",
                                                      "replicated" };
    return parallel == MTF_PARALLEL_CONTEXT && p->spatial ? "spatially parallel" : names[parallel];
}

static void append_degrees(GString *text, const MtfParallelism *p) {
    static const MtfParallel order[] = { MTF_PARALLEL_DATA, MTF_PARALLEL_EXPERT,
                                         MTF_PARALLEL_CONTEXT, MTF_PARALLEL_TENSOR,
                                         MTF_PARALLEL_NONE };
    for (gsize i = 0; i < G_N_ELEMENTS(order); i++)
        if (p->degree[order[i]] > 1)
            g_string_append_printf(text, "%s%s %d", text->len > 0 ? " x " : "",
                                   parallel_name(p, order[i]), p->degree[order[i]]);
    if (text->len == 0)
        g_string_append(text, "one device");
}

static void append_second(GString *text, const MtfMesh *mesh, const MtfParallelism *p) {
    for (int a = 0; a < mesh->n_axes; a++)
        if (p->second_share[a] > 0 && mesh->axes[a].size > 1)
            g_string_append_printf(text, ", %s over %s in %.0f %% of the work",
                                   parallel_name(p, p->second[a]), mesh->axes[a].name,
                                   100 * p->second_share[a]);
}

static void append_sharing(GString *text, const MtfParallelism *p) {
    static const char *const levels[] = {
        NULL, ", optimizer sharded (ZeRO-1)", ", optimizer and gradients sharded (ZeRO-2)",
        ", weights, gradients and optimizer sharded (ZeRO-3, FSDP)"
    };
    if (p->zero > 0)
        g_string_append(text, levels[p->zero]);
    if (p->zero > 0 && p->masters < SURELY)
        g_string_append(text, " but for the master weights");
    if (p->zero == 0 && p->optimizer >= TOLD)
        g_string_append_printf(text, ", optimizer sharded in part (%.0f %%)", 100 * p->optimizer);
    if (p->zero < 3 && p->variables >= TOLD)
        g_string_append_printf(text, ", weights sharded in part (%.0f %%)", 100 * p->variables);
}

char *mtf_parallelism_format(const MtfGraph *graph, const MtfLayout *layout) {
    MtfParallelism p = mtf_parallelism(graph, layout);
    GString *text = g_string_new(NULL);
    append_degrees(text, &p);
    append_second(text, &layout->mesh, &p);
    if (p.sequence_parallel)
        g_string_append(text, ", sequence parallel");
    append_sharing(text, &p);
    return g_string_free(text, FALSE);
}

bool mtf_parallelism_is_plain(const MtfParallelism *p) {
    for (int a = 0; a < MTF_MAX_MESH_AXES; a++)
        if (p->second_share[a] > 0)
            return false;
    return p->degree[MTF_PARALLEL_CONTEXT] * p->degree[MTF_PARALLEL_EXPERT] *
               p->degree[MTF_PARALLEL_NONE] ==
           1;
}

bool mtf_parallelism_is_megatron(const MtfParallelism *p) {
    return mtf_parallelism_is_plain(p) && p->zero <= 1 && p->variables < TOLD &&
           (p->zero == 1 || p->optimizer < TOLD);
}

bool mtf_parallelism_is_torchtitan(const MtfParallelism *p, int microbatches) {
    bool tensor = p->degree[MTF_PARALLEL_TENSOR] > 1, data = p->degree[MTF_PARALLEL_DATA] > 1;
    return mtf_parallelism_is_plain(p) && (!tensor || p->sequence_parallel) &&
           (p->zero == 3 || p->variables < TOLD) && !(p->zero == 1 && microbatches > 1) &&
           (p->zero > 0 || (p->optimizer < TOLD && !(tensor && data)));
}

cJSON *mtf_parallelism_to_json(const MtfParallelism *p) {
    static const char *const keys[MTF_PARALLELS] = { "data_parallel", "tensor_parallel",
                                                     "context_parallel", "expert_parallel",
                                                     "replicated" };
    cJSON *object = cJSON_CreateObject();
    for (int k = 0; k < MTF_PARALLELS; k++)
        mtf_json_add_integer(object, keys[k], p->degree[k]);
    cJSON_AddBoolToObject(object, "sequence_parallel", p->sequence_parallel);
    mtf_json_add_integer(object, "zero", p->zero);
    return object;
}
