// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/training/optimizer_updates.h"

#include "analyzer/training/differentiate.h"
#include "layouts/base/error.h"
#include "layouts/graph/optimizer.h"

#include <string.h>

static char *variable_name(const MtfUpdater *updater, const char *prefix, int variable) {
    return g_strdup_printf("%s/%s", prefix, mtf_graph_tensor(updater->b->graph, variable)->name);
}

int mtf_updater_state(MtfUpdater *updater, const char *what, int variable, const MtfShape *shape) {
    g_autofree char *name = variable_name(updater, what, variable);
    MtfDtype dtype = mtf_graph_tensor(updater->b->graph, variable)->dtype;
    return mtf_build_variable(updater->b, name, shape, dtype, (MtfInit){ MTF_INIT_CONSTANT, 0 },
                              MTF_MEMORY_OPTIMIZER);
}

void mtf_updater_update(MtfUpdater *updater, int variable, int value) {
    MtfGraph *graph = updater->b->graph;
    if (updater->b->error != NULL)
        return;
    mtf_graph_tensor(graph, value)->memory = mtf_graph_tensor(graph, variable)->memory;
    mtf_graph_add_update(graph, variable, value);
}

/* A state variable of the variable's own shape. */
static int twin(MtfUpdater *updater, const char *what, int variable) {
    MtfShape shape = mtf_graph_tensor(updater->b->graph, variable)->shape;
    return mtf_updater_state(updater, what, variable, &shape);
}

/* Applies an update row to (inputs…[, clip]). Its outputs 0, 1, … are the new values of the
 * variables in `inputs` at place 0 and from place 2 on. */
static void update(MtfUpdater *updater, int kind, int n, const int *inputs) {
    MtfGraph *graph = updater->b->graph;
    g_autofree char *name = variable_name(updater, "update", inputs[0]);
    int all[8];
    memcpy(all, inputs, sizeof(int) * (gsize)n);
    all[n] = updater->clip;
    int first = mtf_build(updater->b, kind, name, NULL, updater->clip >= 0 ? n + 1 : n, all);
    if (first < 0)
        return;
    MtfOperation operation = *mtf_graph_operation(graph, mtf_graph_tensor(graph, first)->producer);
    for (int k = 0; k < operation.n_outputs; k++)
        mtf_updater_update(updater, inputs[k == 0 ? 0 : k + 1], operation.outputs[k]);
}

static double decay_of(const MtfUpdater *updater, int variable) {
    bool undecayed = mtf_graph_tensor(updater->b->graph, variable)->undecayed;
    return undecayed ? 0 : updater->settings->weight_decay;
}

static void update_sgd(MtfUpdater *u, int variable, int gradient) {
    u->b->attributes.weight_decay = decay_of(u, variable);
    update(u, MTF_OP_SGD, 3, (int[]){ variable, gradient, u->rate });
}

static void update_momentum(MtfUpdater *u, int variable, int gradient) {
    int v = twin(u, "momentum/v", variable);
    u->b->attributes.beta1 = u->settings->momentum;
    u->b->attributes.weight_decay = decay_of(u, variable);
    update(u, MTF_OP_MOMENTUM, 4, (int[]){ variable, gradient, v, u->rate });
}

static void update_adam(MtfUpdater *u, int variable, int gradient) {
    int m = twin(u, "adam/m", variable), v = twin(u, "adam/v", variable);
    u->b->attributes.beta1 = u->settings->beta1;
    u->b->attributes.beta2 = u->settings->beta2;
    u->b->attributes.epsilon = u->settings->epsilon;
    u->b->attributes.weight_decay = decay_of(u, variable);
    update(u, MTF_OP_ADAM, 5, (int[]){ variable, gradient, m, v, u->rate });
}

static void update_lion(MtfUpdater *u, int variable, int gradient) {
    int m = twin(u, "lion/m", variable);
    u->b->attributes.beta1 = u->settings->beta1;
    u->b->attributes.beta2 = u->settings->beta2;
    u->b->attributes.weight_decay = decay_of(u, variable);
    update(u, MTF_OP_LION, 4, (int[]){ variable, gradient, m, u->rate });
}

/* NULL with an error when there is no such optimizer. */
static MtfUpdateRule find_rule(const char *kind, GError **error) {
    static const struct {
        const char *kind;
        MtfUpdateRule rule;
    } rules[] = {
        { "sgd", update_sgd },    { "momentum", update_momentum },       { "adam", update_adam },
        { "adamw", update_adam }, { "adafactor", mtf_update_adafactor }, { "lion", update_lion }
    };
    for (gsize i = 0; i < G_N_ELEMENTS(rules); i++)
        if (strcmp(rules[i].kind, kind) == 0)
            return rules[i].rule;
    g_autofree char *known = g_strjoinv(", ", (char **)mtf_optimizer_kinds());
    mtf_input_error(error, "optimizer \"%s\" is not known; the kinds are %s", kind, known);
    return NULL;
}

static bool check_settings(const MtfGraph *graph, const GArray *gradients, GError **error) {
    const char *schedule = graph->optimizer.schedule;
    if (schedule != NULL && !g_strv_contains(mtf_schedules(), schedule)) {
        g_autofree char *known = g_strjoinv(", ", (char **)mtf_schedules());
        return mtf_input_error(error, "schedule \"%s\" is not known; the schedules are %s",
                               schedule, known);
    }
    const MtfTensor *first = NULL;
    for (guint i = 0; i < gradients->len; i++) {
        int variable = g_array_index(gradients, MtfVariableGradient, i).variable;
        const MtfTensor *tensor = mtf_graph_tensor(graph, variable);
        first = first == NULL ? tensor : first;
        if (tensor->dtype != first->dtype)
            return mtf_input_error(error,
                                   "variable \"%s\" is %s but \"%s\" is %s; an optimizer updates "
                                   "variables of one type",
                                   tensor->name, mtf_dtype_name(tensor->dtype), first->name,
                                   mtf_dtype_name(first->dtype));
    }
    return true;
}

static int build_rate(MtfBuilder *b, const MtfOptimizer *settings, MtfDtype dtype) {
    b->attributes.rate = settings->rate;
    b->attributes.schedule = settings->schedule != NULL ? settings->schedule : (char *)"constant";
    b->attributes.warmup = settings->warmup;
    b->attributes.total = settings->total;
    b->attributes.final = settings->final;
    b->attributes.power = settings->power;
    b->attributes.cooldown = settings->cooldown;
    b->attributes.period = settings->period;
    b->attributes.drop = settings->drop;
    b->has_dtype = true;
    b->dtype = dtype;
    return mtf_build(b, MTF_OP_LEARNING_RATE, "learning_rate", &(MtfShape){ 0 }, 0, NULL);
}

static void clear_optimizer(MtfOptimizer *optimizer) {
    g_free(optimizer->kind);
    g_free(optimizer->schedule);
    *optimizer = (MtfOptimizer){ 0 };
}

static void add_all(MtfUpdater *updater, MtfUpdateRule rule, const GArray *gradients) {
    MtfBuilder *b = updater->b;
    int first = g_array_index(gradients, MtfVariableGradient, 0).variable;
    b->phase = MTF_PHASE_CLIP;
    updater->clip = updater->settings->clip_norm > 0
                        ? mtf_clip_by_norm(b, gradients, updater->settings->clip_norm)
                        : -1;
    b->phase = MTF_PHASE_UPDATE;
    updater->rate = build_rate(b, updater->settings, mtf_graph_tensor(b->graph, first)->dtype);
    for (guint i = 0; i < gradients->len; i++) {
        const MtfVariableGradient *pair = &g_array_index(gradients, MtfVariableGradient, i);
        const MtfTensor *variable = mtf_graph_tensor(b->graph, pair->variable);
        g_autofree char *name = g_strdup(variable->name);
        b->layer = variable->layer;
        b->origin = MTF_ORIGIN_UPDATE;
        b->of = name;
        rule(updater, pair->variable, pair->gradient);
    }
}

bool mtf_add_updates(MtfGraph *graph, const GArray *gradients, GError **error) {
    if (graph->optimizer.kind == NULL || gradients->len == 0)
        return true;
    MtfUpdateRule rule = find_rule(graph->optimizer.kind, error);
    if (rule == NULL || !check_settings(graph, gradients, error))
        return false;
    MtfBuilder b = mtf_builder(graph, MTF_PHASE_UPDATE);
    MtfUpdater updater = { .b = &b, .settings = &graph->optimizer };
    add_all(&updater, rule, gradients);
    clear_optimizer(&graph->optimizer);
    return mtf_builder_end(&b, error);
}
