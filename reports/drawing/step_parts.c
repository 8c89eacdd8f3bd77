// SPDX-License-Identifier: GPL-3.0-or-later
#include "reports/drawing/step_parts.h"

#include <string.h>

#define UPDATE (MTF_PART_PHASES - 1)

const char *mtf_part_phase_name(int phase) {
    static const char *const names[MTF_PART_PHASES] = { "forward", "backward", "update" };
    return names[phase];
}

/* ---- Phases -------------------------------------------------------------------------------- */

/* Whether the results of an operation of the forward pass are read by what updates alone, or are new values. */
static bool serves_updates(const MtfStepParts *parts, const MtfConsumers *consumers,
                           const bool *is_new_value, const MtfOperation *op) {
    bool serves = false;
    for (int k = 0; k < op->n_outputs; k++) {
        int tensor = op->outputs[k];
        serves = serves || is_new_value[tensor];
        for (int c = consumers->starts[tensor]; c < consumers->starts[tensor + 1]; c++) {
            if (parts->phases[consumers->operations[c]] != UPDATE)
                return false;
            serves = true;
        }
    }
    return serves;
}

static bool keeps_for_backward(const MtfGraph *graph, const MtfConsumers *consumers,
                               const MtfOperation *op) {
    if (op->phase != MTF_PHASE_FORWARD || mtf_operation_row(op->kind)->loop != MTF_LOOP_STACKS)
        return false;
    int begin = consumers->starts[op->outputs[0]], end = consumers->starts[op->outputs[0] + 1];
    for (int c = begin; c < end; c++)
        if (mtf_graph_operation(graph, consumers->operations[c])->phase != MTF_PHASE_BACKWARD)
            return false;
    return begin < end;
}

/* Readers stand behind what they read. */
static void find_phases(MtfStepParts *parts) {
    const MtfGraph *graph = parts->facts->plan->graph;
    g_autoptr(MtfConsumers) consumers = mtf_graph_consumers(graph);
    g_autofree bool *is_new_value = g_new0(bool, graph->tensors->len + 1);
    bool trains = false;
    for (guint u = 0; u < graph->updates->len; u++)
        is_new_value[g_array_index(graph->updates, MtfUpdate, u).value] = true;
    for (int i = (int)graph->operations->len - 1; i >= 0; i--) {
        const MtfOperation *op = mtf_graph_operation(graph, i);
        trains = trains || op->phase == MTF_PHASE_BACKWARD;
        bool serves = trains && op->phase == MTF_PHASE_FORWARD &&
                      serves_updates(parts, consumers, is_new_value, op);
        parts->phases[i] = serves ? UPDATE : MIN((int)op->phase, UPDATE);
        parts->keeps[i] = keeps_for_backward(graph, consumers, op);
    }
}

/* ---- The parts ----------------------------------------------------------------------------- */

/* While the forward pass is walked: the part of each tensor that has one, and of each run of layers. */
typedef struct {
    MtfStepParts *parts;
    int *of_tensor; /* -1 = none */
    int *of_run;    /* -1 = not met yet */
} Walk;

static int add_part(Walk *walk, int run) {
    int layers = run >= 0 ? mtf_layer_runs_at(walk->parts->layers_found, run)->count : 1;
    int part = (int)walk->parts->parts->len;
    MtfStepPart new_part = { .run = run, .layers = layers, .alike = part };
    g_array_append_val(walk->parts->parts, new_part);
    return part;
}

static int part_of_run(Walk *walk, int run) {
    if (walk->of_run[run] < 0)
        walk->of_run[run] = add_part(walk, run);
    return walk->of_run[run];
}

/* What lies outside of layers is one part until layers come that were not met before. */
static int part_outside(Walk *walk) {
    int last = (int)walk->parts->parts->len - 1;
    return last >= 0 && mtf_step_part(walk->parts, last)->run < 0 ? last : add_part(walk, -1);
}

/* Inputs and variables go with the first operation that reads them. */
static void take_inputs(const Walk *walk, const MtfOperation *op, int part) {
    for (int k = 0; k < op->n_inputs; k++)
        if (walk->of_tensor[op->inputs[k]] < 0)
            walk->of_tensor[op->inputs[k]] = part;
}

static void walk_forward(Walk *walk) {
    const MtfGraph *graph = walk->parts->facts->plan->graph;
    for (int i = 0; i < (int)graph->operations->len; i++) {
        const MtfOperation *op = mtf_graph_operation(graph, i);
        if (op->phase != MTF_PHASE_FORWARD)
            continue;
        int run = mtf_layer_runs_find(walk->parts->layers_found, op->layer);
        int part = run >= 0 ? part_of_run(walk, run) : part_outside(walk);
        walk->parts->of[i] = part;
        take_inputs(walk, op, part);
        for (int k = 0; k < op->n_outputs; k++)
            walk->of_tensor[op->outputs[k]] = part;
    }
}

/* The part of what an operation was made for; -1: nothing of the forward pass. */
static int part_of_origin(const Walk *walk, const MtfOperation *op) {
    const MtfGraph *graph = walk->parts->facts->plan->graph;
    int tensor = op->of != NULL ? mtf_graph_find_tensor(graph, op->of) : -1;
    return tensor >= 0 ? walk->of_tensor[tensor] : -1;
}

/* A cast, or another helper, stands with what it reads. */
static int part_of_inputs(const Walk *walk, const MtfOperation *op) {
    for (int k = 0; k < op->n_inputs; k++)
        if (walk->of_tensor[op->inputs[k]] >= 0)
            return walk->of_tensor[op->inputs[k]];
    return -1;
}

/* What is made of one tensor alone takes the next helper with it (a cast of a running mean, then its copy);
 * what is made of many (the norm of all gradients) belongs to none. */
static int follow_inputs(const Walk *walk, const MtfOperation *op) {
    int part = part_of_inputs(walk, op);
    for (int k = 0; op->n_inputs == 1 && k < op->n_outputs; k++)
        walk->of_tensor[op->outputs[k]] = part;
    return part;
}

/* What belongs to no tensor (the learning rate) goes with the last part. */
static void walk_back(Walk *walk) {
    const MtfGraph *graph = walk->parts->facts->plan->graph;
    for (int i = 0; i < (int)graph->operations->len; i++) {
        const MtfOperation *op = mtf_graph_operation(graph, i);
        if (op->phase == MTF_PHASE_FORWARD)
            continue;
        int run = mtf_layer_runs_find(walk->parts->layers_found, op->layer);
        int part =
            run >= 0 && walk->of_run[run] >= 0 ? walk->of_run[run] : part_of_origin(walk, op);
        if (part < 0)
            part = follow_inputs(walk, op);
        walk->parts->of[i] = part >= 0 ? part : (int)walk->parts->parts->len - 1;
    }
}

/* ---- Titles and figures -------------------------------------------------------------------- */

static char *run_title(const MtfStepParts *parts, int run) {
    const MtfLayerRun *r = mtf_layer_runs_at(parts->layers_found, run);
    const GArray *repeats = parts->facts->plan->graph->repeats;
    const char *name = g_array_index(repeats, MtfRepeat, r->repeat).name;
    return r->count == 1 ? g_strdup_printf("%s %d", name, r->first)
                         : g_strdup_printf("%s %d–%d", name, r->first, r->first + r->count - 1);
}

/* The nearest part behind `part`, or before it, that is made of layers; -1: none. */
static int nearest_layers(const MtfStepParts *parts, int part, int step) {
    int p = part + step;
    while (p >= 0 && p < (int)parts->parts->len && mtf_step_part(parts, p)->run < 0)
        p += step;
    return p < (int)parts->parts->len ? p : -1;
}

static char *outside_title(const MtfStepParts *parts, int part) {
    int next = nearest_layers(parts, part, 1), before = nearest_layers(parts, part, -1);
    if (next < 0 && before < 0)
        return g_strdup("all operations");
    const MtfStepPart *layers = mtf_step_part(parts, next >= 0 ? next : before);
    const MtfLayerRun *run = mtf_layer_runs_at(parts->layers_found, layers->run);
    const GArray *repeats = parts->facts->plan->graph->repeats;
    const char *name = g_array_index(repeats, MtfRepeat, run->repeat).name;
    return next >= 0 ? g_strdup_printf("before %s %d", name, run->first)
                     : g_strdup_printf("after %s %d", name, run->first + run->count - 1);
}

static void describe(Walk *walk) {
    MtfStepParts *parts = walk->parts;
    for (int p = 0; p < (int)parts->parts->len; p++) {
        MtfStepPart *part = &g_array_index(parts->parts, MtfStepPart, p);
        part->title = part->run >= 0 ? run_title(parts, part->run) : outside_title(parts, p);
        int twin = part->run >= 0 ? mtf_layer_runs_at(parts->layers_found, part->run)->alike : -1;
        if (twin >= 0 && walk->of_run[twin] >= 0)
            part->alike = walk->of_run[twin];
    }
}

static void add_instruction(MtfStepParts *parts, int i) {
    const MtfStepFacts *facts = parts->facts;
    const MtfInstruction *instruction = mtf_program_instruction(facts->program, i);
    MtfStepPart *part =
        &g_array_index(parts->parts, MtfStepPart, parts->of[instruction->operation]);
    MtfPartFigures *figures = &part->figures[parts->phases[instruction->operation]];
    int64_t nanoseconds = facts->wall[i];
    figures->nanoseconds += nanoseconds;
    figures->operations += instruction->kind == MTF_INSTRUCTION_KERNEL;
    if (!mtf_step_facts_is_collective(facts, i))
        return;
    int times = mtf_program_times(facts->program, i);
    figures->network += nanoseconds;
    figures->payload += times * instruction->payload_bytes;
    figures->collectives += times;
}

/* ---- Entry --------------------------------------------------------------------------------- */

static void clear_part(gpointer data) {
    g_free(((MtfStepPart *)data)->title);
}

MtfStepParts *mtf_step_parts_new(const MtfStepFacts *facts) {
    const MtfGraph *graph = facts->plan->graph;
    MtfStepParts *parts = g_new0(MtfStepParts, 1);
    parts->facts = facts;
    parts->layers_found = mtf_layer_runs_new(graph, facts->plan->layout, false);
    parts->parts = g_array_new(FALSE, TRUE, sizeof(MtfStepPart));
    g_array_set_clear_func(parts->parts, clear_part);
    parts->of = g_new0(int, graph->operations->len + 1);
    parts->phases = g_new0(int, graph->operations->len + 1);
    parts->keeps = g_new0(bool, graph->operations->len + 1);
    find_phases(parts);
    int runs = mtf_layer_runs_count(parts->layers_found);
    g_autofree int *of_tensor = g_new(int, graph->tensors->len + 1);
    g_autofree int *of_run = g_new(int, runs + 1);
    memset(of_tensor, -1, sizeof *of_tensor * (graph->tensors->len + 1));
    memset(of_run, -1, sizeof *of_run * ((gsize)runs + 1));
    Walk walk = { parts, of_tensor, of_run };
    walk_forward(&walk);
    if (parts->parts->len == 0)
        add_part(&walk, -1);
    walk_back(&walk);
    describe(&walk);
    for (int i = 0; i < mtf_program_length(facts->program); i++)
        add_instruction(parts, i);
    return parts;
}

void mtf_step_parts_free(MtfStepParts *parts) {
    if (parts == NULL)
        return;
    mtf_layer_runs_free(parts->layers_found);
    g_array_unref(parts->parts);
    g_free(parts->of);
    g_free(parts->phases);
    g_free(parts->keeps);
    g_free(parts);
}

const MtfStepPart *mtf_step_part(const MtfStepParts *parts, int part) {
    return &g_array_index(parts->parts, MtfStepPart, part);
}
