// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/graph/stage_split.h"

#include "layouts/base/error.h"
#include "layouts/graph/microbatches.h"
#include "layouts/graph/operation_table.h"

int mtf_graph_stages(const MtfGraph *graph) {
    int stages = 0;
    for (int i = 0; i < (int)graph->operations->len; i++)
        stages = MAX(stages, mtf_graph_operation(graph, i)->stage);
    return stages;
}

/* ---- Which stage a tensor or operation belongs to ------------------------------------------ */

/* Notes where operation `op` puts its results, and variables and inputs that nobody read before. */
static void note_stage(const MtfOperation *op, int *stages) {
    for (int k = 0; k < op->n_inputs; k++)
        if (stages[op->inputs[k]] == 0)
            stages[op->inputs[k]] = op->stage;
    for (int k = 0; k < op->n_outputs; k++)
        stages[op->outputs[k]] = op->stage;
}

int *mtf_graph_tensor_stages(const MtfGraph *graph) {
    int *stages = g_new0(int, graph->tensors->len + 1);
    for (int i = 0; i < (int)graph->operations->len; i++)
        note_stage(mtf_graph_operation(graph, i), stages);
    for (guint i = 0; i < graph->updates->len; i++) {
        const MtfUpdate *update = &g_array_index(graph->updates, MtfUpdate, i);
        if (stages[update->variable] == 0)
            stages[update->variable] = stages[update->value];
    }
    return stages;
}

static int stage_by_inputs(const MtfGraph *graph, const MtfOperation *op, const int *stages) {
    int scalars = 0;
    for (int k = 0; k < op->n_inputs; k++) {
        int stage = stages[op->inputs[k]];
        if (stage > 0 && mtf_graph_tensor(graph, op->inputs[k])->shape.rank > 0)
            return stage;
        scalars = MAX(scalars, stage);
    }
    return scalars;
}

/* What follows from no input (constants, casts of variables) goes where it is read first; what
 * nobody reads, to stage 1. */
static void complete_by_readers(MtfGraph *graph, int *stages) {
    for (int i = (int)graph->operations->len - 1; i >= 0; i--) {
        MtfOperation *op = mtf_graph_operation(graph, i);
        if (op->stage == 0)
            op->stage = MAX(stages[op->outputs[0]], 1);
        note_stage(op, stages);
    }
}

/* Whether an operation is the first of its loop. */
static bool begins_loop(const MtfGraph *graph, int operation) {
    int loop = mtf_graph_operation(graph, operation)->loop;
    return loop > 0 && (operation == 0 || mtf_graph_operation(graph, operation - 1)->loop != loop);
}

/* Behind the last operation of the loop that `first` begins. */
static int end_of_loop(const MtfGraph *graph, int first) {
    int end = first, loop = mtf_graph_operation(graph, first)->loop;
    while (end < (int)graph->operations->len && mtf_graph_operation(graph, end)->loop == loop)
        end++;
    return end;
}

static bool begins_state(const MtfOperation *op) {
    return mtf_operation_row(op->kind)->loop == MTF_LOOP_BEGINS;
}

/* The stage of what an operation of a loop reads, of a state that of what it begins with. */
static int stage_of_read(const MtfGraph *graph, int tensor, const int *stages) {
    int producer = mtf_graph_tensor(graph, tensor)->producer;
    if (producer >= 0 && begins_state(mtf_graph_operation(graph, producer)))
        return MAX(stages[tensor], stages[mtf_graph_operation(graph, producer)->inputs[0]]);
    return stages[tensor];
}

/* A loop is of one stage: of that which one of its operations says, else of the highest of what it reads. Its
 * states begin there. */
static void complete_loop(MtfGraph *graph, int first, int *stages) {
    int end = end_of_loop(graph, first), said = 0, highest = 0;
    for (int i = first; i < end; i++) {
        const MtfOperation *op = mtf_graph_operation(graph, i);
        said = MAX(said, op->stage);
        for (int k = 0; k < op->n_inputs; k++)
            highest = MAX(highest, stage_of_read(graph, op->inputs[k], stages));
    }
    int stage = said > 0 ? said : highest;
    for (int i = first; i < end; i++) {
        MtfOperation *op = mtf_graph_operation(graph, i);
        op->stage = op->stage > 0 ? op->stage : stage;
        for (int k = 0; k < op->n_inputs; k++) {
            int producer = mtf_graph_tensor(graph, op->inputs[k])->producer;
            MtfOperation *begin = producer < 0 ? NULL : mtf_graph_operation(graph, producer);
            if (begin == NULL || !begins_state(begin) || begin->stage > 0)
                continue;
            begin->stage = stage;
            note_stage(begin, stages);
        }
    }
}

/* Of each operation that works out what a variable becomes, that variable, else -1; free with g_free. */
static int *find_updated(const MtfGraph *graph) {
    int n = (int)graph->operations->len, *updated = g_new(int, n + 1);
    for (int i = 0; i < n; i++) {
        const MtfOperation *op = mtf_graph_operation(graph, i);
        updated[i] = op->origin == MTF_ORIGIN_UPDATE && op->of != NULL
                         ? mtf_graph_find_tensor(graph, op->of)
                         : -1;
    }
    for (guint u = 0; u < graph->updates->len; u++) {
        const MtfUpdate *update = &g_array_index(graph->updates, MtfUpdate, u);
        int producer = mtf_graph_tensor(graph, update->value)->producer;
        if (producer >= 0 && mtf_graph_operation(graph, producer)->phase == MTF_PHASE_UPDATE &&
            updated[producer] < 0)
            updated[producer] = update->variable;
    }
    return updated;
}

/* What a variable becomes is worked out where the variable is, whatever else that asks for (of a scalar, the
 * share of gradients that clipping leaves has as many dimensions). */
void mtf_graph_complete_stages(MtfGraph *graph) {
    g_autofree int *stages = g_new0(int, graph->tensors->len + 1);
    g_autofree int *updated = find_updated(graph);
    for (int i = 0; i < (int)graph->operations->len; i++) {
        MtfOperation *op = mtf_graph_operation(graph, i);
        if (begins_loop(graph, i))
            complete_loop(graph, i, stages);
        if (op->stage == 0 && updated[i] >= 0)
            op->stage = stages[updated[i]];
        if (op->stage == 0 && !begins_state(op))
            op->stage = stage_by_inputs(graph, op, stages);
        if (op->stage > 0)
            note_stage(op, stages);
    }
    complete_by_readers(graph, stages);
}

/* ---- Splitting ----------------------------------------------------------------------------- */

typedef struct {
    const MtfGraph *whole;
    MtfStageSplit *split;
    int *stages; /* of the whole's tensors, from 1 */
    int *local;  /* [stage * tensors + tensor]: the tensor in the stage's graph, or -1 */
} Splitting;

static MtfGraph *graph_of(const Splitting *s, int stage) {
    return s->split->graphs->pdata[stage];
}

static int *local_tensor(const Splitting *s, int stage, int tensor) {
    return &s->local[(gsize)stage * s->whole->tensors->len + (gsize)tensor];
}

/* Operations that may be repeated in any stage: they read nothing. */
static bool is_source(const MtfGraph *graph, int producer) {
    return producer >= 0 && mtf_graph_operation(graph, producer)->n_inputs == 0;
}

/* Whether the operation's result has the elements of a variable, cast or moved: a stage that reads it
 * makes it of the variable, which travels once a step, where the result would in each micro-batch. */
static bool only_moves_variable(const MtfGraph *graph, int producer) {
    if (producer < 0)
        return false;
    const MtfOperation *op = mtf_graph_operation(graph, producer);
    const MtfOperationRow *row = mtf_operation_row(op->kind);
    if (op->n_inputs != 1 || row->kernel_class != MTF_CLASS_MOVE || row->loop != MTF_LOOP_NOTHING ||
        row->host != MTF_HOST_NOTHING)
        return false;
    const MtfTensor *x = mtf_graph_tensor(graph, op->inputs[0]);
    const MtfTensor *y = mtf_graph_tensor(graph, op->outputs[0]);
    return mtf_graph_elements(graph, &x->shape) == mtf_graph_elements(graph, &y->shape) &&
           (x->source == MTF_SOURCE_VARIABLE || only_moves_variable(graph, x->producer));
}

/* Operations that any stage may repeat for itself. */
static bool is_repeated(const MtfGraph *graph, int producer) {
    return is_source(graph, producer) || only_moves_variable(graph, producer);
}

/* Whether a tensor is the same in all micro-batches of a step, or stands after the last. */
static bool travels_once(const MtfGraph *graph, const MtfTensor *tensor) {
    if (tensor->producer < 0)
        return tensor->source == MTF_SOURCE_VARIABLE;
    return mtf_graph_operation(graph, tensor->producer)->phase > MTF_PHASE_BACKWARD ||
           mtf_operation_accumulates(graph, tensor->producer);
}

static void add_operation(Splitting *s, int stage, int operation, MtfPhase phase);

static int copy_variable(MtfGraph *graph, const MtfTensor *variable) {
    int copy = mtf_graph_add_variable(graph, variable->name, &variable->shape, variable->dtype,
                                      variable->init, variable->memory, NULL);
    mtf_variable_take_facts(mtf_graph_tensor(graph, copy), variable);
    return copy;
}

/* What a stage keeps of a tensor that another one holds: an input; of a variable of a graph that is not
 * trained, where it stays as it came, a variable. */
static int add_received(Splitting *s, int stage, const MtfTensor *tensor, bool once) {
    if (tensor->source == MTF_SOURCE_VARIABLE && s->whole->loss < 0)
        return copy_variable(graph_of(s, stage), tensor);
    return mtf_graph_add_input(graph_of(s, stage), tensor->name, &tensor->shape, tensor->dtype,
                               once ? MTF_FEED_TRANSFER_ONCE : MTF_FEED_TRANSFER, NULL);
}

/* Lets `tensor`, which another stage holds, come to this one. */
static int receive(Splitting *s, int stage, int tensor) {
    const MtfTensor *t = mtf_graph_tensor(s->whole, tensor);
    bool once = travels_once(s->whole, t);
    MtfStageTransfer transfer = { .from = s->stages[tensor] - 1,
                                  .to = stage,
                                  .sent = tensor, /* of the whole, until all is split */
                                  .received = add_received(s, stage, t, once),
                                  .once = once };
    g_array_append_val(s->split->transfers, transfer);
    mtf_graph_tensor(graph_of(s, stage), transfer.received)->layer = t->layer;
    return transfer.received;
}

/* A tensor in the graph of a stage that reads it in `phase`. */
static int local_input(Splitting *s, int stage, int tensor, MtfPhase phase) {
    const MtfTensor *t = mtf_graph_tensor(s->whole, tensor);
    int *local = local_tensor(s, stage, tensor);
    if (*local >= 0)
        return *local;
    if (is_repeated(s->whole, t->producer))
        add_operation(s, stage, t->producer, phase);
    else if (t->source == MTF_SOURCE_INPUT)
        *local =
            mtf_graph_add_input(graph_of(s, stage), t->name, &t->shape, t->dtype, t->feed, NULL);
    else if (t->source == MTF_SOURCE_VARIABLE && s->stages[tensor] == stage + 1)
        *local = copy_variable(graph_of(s, stage), t);
    else
        *local = receive(s, stage, tensor);
    return *local;
}

/* Copies an operation of the whole into a stage's graph; it passed its checks before. */
static void add_operation(Splitting *s, int stage, int operation, MtfPhase phase) {
    const MtfOperation *op = mtf_graph_operation(s->whole, operation);
    const MtfTensor *output = mtf_graph_tensor(s->whole, op->outputs[0]);
    MtfGraph *graph = graph_of(s, stage);
    if (*local_tensor(s, stage, op->outputs[0]) >= 0)
        return;
    g_autofree int *inputs = g_new(int, op->n_inputs + 1);
    for (int k = 0; k < op->n_inputs; k++)
        inputs[k] = local_input(s, stage, op->inputs[k], op->phase);
    MtfNewOperation copy = { .name = op->name,
                             .kind = op->kind,
                             .phase = MAX(op->phase, phase),
                             .loop = op->loop,
                             .layer = op->layer,
                             .origin = op->origin,
                             .of = op->of,
                             .n_inputs = op->n_inputs,
                             .inputs = inputs,
                             .shape = &output->shape,
                             .has_dtype =
                                 mtf_operation_row_chooses_dtype(mtf_operation_row(op->kind)),
                             .dtype = output->dtype,
                             .attributes = op->attributes };
    int first = mtf_graph_add_operation(graph, &copy, NULL);
    g_assert(first >= 0);
    for (int k = 0; k < op->n_outputs; k++) {
        mtf_graph_tensor(graph, first + k)->memory =
            mtf_graph_tensor(s->whole, op->outputs[k])->memory;
        *local_tensor(s, stage, op->outputs[k]) = first + k;
    }
}

/* What a stage repeats for a loop of its own is made before the loop, whose operations stand together. */
static void repeat_before_loop(Splitting *s, int first) {
    int loop = mtf_graph_operation(s->whole, first)->loop;
    for (int i = first; i < (int)s->whole->operations->len; i++) {
        const MtfOperation *op = mtf_graph_operation(s->whole, i);
        if (op->loop != loop)
            return;
        for (int k = 0; k < op->n_inputs; k++) {
            int producer = mtf_graph_tensor(s->whole, op->inputs[k])->producer;
            if (is_repeated(s->whole, producer) &&
                mtf_graph_operation(s->whole, producer)->loop != loop)
                add_operation(s, op->stage - 1, producer, op->phase);
        }
    }
}

/* ---- Checks -------------------------------------------------------------------------------- */

static bool check_edge(const MtfGraph *graph, const MtfOperation *from, const MtfOperation *to,
                       GError **error) {
    bool forward = to->phase == MTF_PHASE_FORWARD;
    bool backward = from->phase == MTF_PHASE_BACKWARD && to->phase == MTF_PHASE_BACKWARD;
    if ((!forward || from->stage <= to->stage) && (!backward || from->stage >= to->stage))
        return true;
    (void)graph;
    return mtf_input_error(error,
                           "operation \"%s\" of stage %d reads \"%s\" of stage %d: stages follow "
                           "one another in the forward pass",
                           to->name, to->stage, from->name, from->stage);
}

static bool check_operation(const MtfGraph *graph, const MtfOperation *op, GError **error) {
    for (int k = 0; k < op->n_inputs; k++) {
        int producer = mtf_graph_tensor(graph, op->inputs[k])->producer;
        if (producer >= 0 && !is_source(graph, producer) &&
            !check_edge(graph, mtf_graph_operation(graph, producer), op, error))
            return false;
    }
    return true;
}

/* What a variable becomes in another stage would never come to it. */
static bool check_updates(const MtfGraph *graph, GError **error) {
    g_autofree int *stages = mtf_graph_tensor_stages(graph);
    for (guint i = 0; i < graph->updates->len; i++) {
        const MtfUpdate *update = &g_array_index(graph->updates, MtfUpdate, i);
        if (stages[update->variable] != stages[update->value])
            return mtf_input_error(
                error,
                "variable \"%s\" of stage %d becomes \"%s\" of stage %d: what a "
                "variable becomes is made in its stage",
                mtf_graph_tensor(graph, update->variable)->name, stages[update->variable],
                mtf_graph_tensor(graph, update->value)->name, stages[update->value]);
    }
    return true;
}

static bool check_stages(const MtfGraph *graph, GError **error) {
    int n = mtf_graph_stages(graph);
    if (!check_updates(graph, error))
        return false;
    g_autofree int *count = g_new0(int, n + 1);
    for (int i = 0; i < (int)graph->operations->len; i++) {
        const MtfOperation *op = mtf_graph_operation(graph, i);
        if (!check_operation(graph, op, error))
            return false;
        count[op->stage] += op->n_inputs > 0;
    }
    for (int stage = 1; stage <= n; stage++)
        if (count[stage] == 0)
            return mtf_input_error(error, "stage %d of %d has no operation", stage, n);
    return true;
}

/* ---- Entry --------------------------------------------------------------------------------- */

/* An empty graph with the frame of the whole. */
static MtfGraph *stage_graph_new(const MtfGraph *whole) {
    MtfGraph *graph = mtf_graph_new_like(whole);
    mtf_graph_copy_dimensions(graph, whole);
    for (guint i = 0; i < whole->repeats->len; i++) {
        const MtfRepeat *repeat = &g_array_index(whole->repeats, MtfRepeat, i);
        mtf_graph_add_repeat(graph, repeat->name, repeat->count);
    }
    for (guint i = 0; i < whole->loops->len; i++) {
        const MtfLoop *loop = &g_array_index(whole->loops, MtfLoop, i);
        mtf_graph_add_loop(graph, loop->name, loop->dimension, loop->reverse);
    }
    return graph;
}

static void add_updates(Splitting *s) {
    for (guint i = 0; i < s->whole->updates->len; i++) {
        const MtfUpdate *update = &g_array_index(s->whole->updates, MtfUpdate, i);
        int stage = s->stages[update->value] - 1;
        int variable = local_input(s, stage, update->variable, MTF_PHASE_UPDATE);
        mtf_graph_add_update(graph_of(s, stage), variable, *local_tensor(s, stage, update->value));
    }
    if (s->whole->loss >= 0)
        graph_of(s, s->stages[s->whole->loss] - 1)->loss =
            *local_tensor(s, s->stages[s->whole->loss] - 1, s->whole->loss);
}

/* Canonical numbers are another order, so tensors of transfers are found again by name. */
static void renumber(const Splitting *s) {
    GPtrArray *received = g_ptr_array_new_with_free_func(g_free);
    GArray *transfers = s->split->transfers;
    for (guint i = 0; i < transfers->len; i++) {
        const MtfStageTransfer *t = &g_array_index(transfers, MtfStageTransfer, i);
        g_ptr_array_add(received, g_strdup(mtf_graph_tensor(s->whole, t->sent)->name));
    }
    for (guint g = 0; g < s->split->graphs->len; g++)
        mtf_graph_canonicalize(s->split->graphs->pdata[g]);
    for (guint i = 0; i < transfers->len; i++) {
        MtfStageTransfer *t = &g_array_index(transfers, MtfStageTransfer, i);
        t->sent = mtf_graph_find_tensor(graph_of(s, t->from), received->pdata[i]);
        t->received = mtf_graph_find_tensor(graph_of(s, t->to), received->pdata[i]);
        g_assert(t->sent >= 0 && t->received >= 0);
        mtf_graph_tensor(graph_of(s, t->from), t->sent)->is_sent = true;
    }
    g_ptr_array_unref(received);
}

static void free_graph(gpointer graph) {
    mtf_graph_free(graph);
}

MtfStageSplit *mtf_stage_split(const MtfGraph *graph, GError **error) {
    if (!check_stages(graph, error))
        return NULL;
    int n = mtf_graph_stages(graph);
    gsize places = (gsize)n * graph->tensors->len;
    g_autofree int *stages = mtf_graph_tensor_stages(graph);
    g_autofree int *local = g_new(int, places + 1);
    for (gsize i = 0; i < places; i++)
        local[i] = -1;
    MtfStageSplit *split = g_new0(MtfStageSplit, 1);
    split->graphs = g_ptr_array_new_with_free_func(free_graph);
    split->transfers = g_array_new(FALSE, FALSE, sizeof(MtfStageTransfer));
    Splitting s = { graph, split, stages, local };
    for (int stage = 0; stage < n; stage++)
        g_ptr_array_add(split->graphs, stage_graph_new(graph));
    for (int i = 0; i < (int)graph->operations->len; i++) {
        const MtfOperation *op = mtf_graph_operation(graph, i);
        if (begins_loop(graph, i))
            repeat_before_loop(&s, i);
        if (op->n_inputs > 0)
            add_operation(&s, op->stage - 1, i, op->phase);
    }
    add_updates(&s);
    renumber(&s);
    return split;
}

void mtf_stage_split_free(MtfStageSplit *split) {
    if (split == NULL)
        return;
    g_ptr_array_unref(split->graphs);
    g_array_unref(split->transfers);
    g_free(split);
}
