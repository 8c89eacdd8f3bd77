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

void mtf_update_adam(MtfUpdater *u, int variable, int gradient) {
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

/* Norms of whole variables: their sums of squares are exchanged where a variable is split. */
static void update_lamb(MtfUpdater *u, int variable, int gradient) {
    MtfBuilder *b = u->b;
    g_autofree char *name = variable_name(u, "update", variable);
    g_autofree char *direction_name = variable_name(u, "lamb/direction", variable);
    g_autofree char *w_name = variable_name(u, "lamb/weights", variable);
    g_autofree char *u_name = variable_name(u, "lamb/norm", variable);
    int m = twin(u, "lamb/m", variable), v = twin(u, "lamb/v", variable);
    b->attributes.beta1 = u->settings->beta1;
    b->attributes.beta2 = u->settings->beta2;
    b->attributes.epsilon = u->settings->epsilon;
    b->attributes.weight_decay = decay_of(u, variable);
    int direction = mtf_build(b, MTF_OP_LAMB_DIRECTION, direction_name, NULL, u->clip >= 0 ? 5 : 4,
                              (int[]){ variable, gradient, m, v, u->clip });
    int squares = MTF_BUILD(b, MTF_OP_EINSUM, w_name, &(MtfShape){ 0 }, variable, variable);
    int norm = MTF_BUILD(b, MTF_OP_EINSUM, u_name, &(MtfShape){ 0 }, direction, direction);
    int next =
        MTF_BUILD(b, MTF_OP_LAMB_APPLY, name, NULL, variable, direction, squares, norm, u->rate);
    mtf_updater_update(u, variable, next);
    mtf_updater_update(u, m, direction + 1);
    mtf_updater_update(u, v, direction + 2);
}

/* NULL with an error when there is no such optimizer. */
static MtfUpdateRule find_rule(const char *kind, GError **error) {
    static const struct {
        const char *kind;
        MtfUpdateRule rule;
    } rules[] = { { "sgd", update_sgd },
                  { "momentum", update_momentum },
                  { "adam", mtf_update_adam },
                  { "adamw", mtf_update_adam },
                  { "adafactor", mtf_update_adafactor },
                  { "lion", update_lion },
                  { "lamb", update_lamb },
                  { "muon", mtf_update_muon } };
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

/* 1 at the first step, then 1 - ema: the mean begins with the weights that the first step leaves. */
static int build_mean_rate(MtfBuilder *b, double ema, MtfDtype dtype) {
    b->attributes.rate = 1;
    b->attributes.schedule = (char *)"wsd";
    b->attributes.total = 1.5;
    b->attributes.cooldown = 0.5;
    b->attributes.final = 1 - ema;
    b->has_dtype = true;
    b->dtype = dtype;
    return mtf_build(b, MTF_OP_LEARNING_RATE, "ema_rate", &(MtfShape){ 0 }, 0, NULL);
}

/* The value that the updates so far give the variable. */
static int next_value(const MtfGraph *graph, int variable) {
    for (guint i = graph->updates->len; i-- > 0;) {
        const MtfUpdate *update = &g_array_index(graph->updates, MtfUpdate, i);
        if (update->variable == variable)
            return update->value;
    }
    g_return_val_if_reached(variable);
}

/* mean' = mean - rate (mean - w'). */
static void follow_mean(MtfUpdater *updater, int variable, int rate) {
    MtfBuilder *b = updater->b;
    if (b->error != NULL)
        return;
    g_autofree char *name = variable_name(updater, "update/ema", variable);
    g_autofree char *behind_name = variable_name(updater, "ema/behind", variable);
    int mean = twin(updater, "ema", variable), next = next_value(b->graph, variable);
    if (mean >= 0)
        mtf_graph_tensor(b->graph, mean)->mean_of =
            g_strdup(mtf_graph_tensor(b->graph, variable)->name);
    int behind = MTF_BUILD(b, MTF_OP_SUBTRACT, behind_name, NULL, mean, next);
    mtf_updater_update(updater, mean, MTF_BUILD(b, MTF_OP_SGD, name, NULL, mean, behind, rate));
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
    MtfDtype dtype = mtf_graph_tensor(b->graph, first)->dtype;
    double ema = updater->settings->ema;
    updater->rate = build_rate(b, updater->settings, dtype);
    int mean_rate = ema > 0 ? build_mean_rate(b, ema, dtype) : -1;
    for (guint i = 0; i < gradients->len; i++) {
        const MtfVariableGradient *pair = &g_array_index(gradients, MtfVariableGradient, i);
        const MtfTensor *variable = mtf_graph_tensor(b->graph, pair->variable);
        g_autofree char *name = g_strdup(variable->name);
        b->layer = variable->layer;
        b->origin = MTF_ORIGIN_UPDATE;
        b->of = name;
        rule(updater, pair->variable, pair->gradient);
        if (mean_rate >= 0)
            follow_mean(updater, pair->variable, mean_rate);
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
