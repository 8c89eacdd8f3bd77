// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/training/optimizer_updates.h"

/* The paper's beta2 at step t is 1 - t^-0.8, its clipping threshold d = 1. */
#define DECAY 0.8
#define THRESHOLD 1

/* One variable's update under way. */
typedef struct {
    MtfUpdater *u;
    int variable;
    int gradient;
    const char *name; /* the variable's */
    MtfShape shape;
} Step;

static int apply(Step *s, int kind, const char *what, const MtfShape *shape, int x, int y) {
    g_autofree char *name = g_strdup_printf("adafactor/%s/%s", what, s->name);
    return mtf_build(s->u->b, kind, name, shape, y < 0 ? 1 : 2, (int[]){ x, y });
}

/* A running mean in state variable adafactor/WHAT/NAME; `fresh` is this step's mean. Returns the
 * new state, update/NAME/WHAT. */
static int moment(Step *s, const char *what, int fresh, const MtfShape *shape) {
    g_autofree char *state_name = g_strdup_printf("adafactor/%s", what);
    g_autofree char *name = g_strdup_printf("update/%s/%s", s->name, what);
    int state = mtf_updater_state(s->u, state_name, s->variable, shape);
    s->u->b->attributes.decay = DECAY;
    s->u->b->attributes.epsilon = s->u->settings->epsilon;
    int next = MTF_BUILD(s->u->b, MTF_OP_ADAFACTOR_MOMENT, name, NULL, state, fresh);
    mtf_updater_update(s->u, state, next);
    return next;
}

static int factored_direction(Step *s, int square) {
    int row_dim = s->shape.dims[s->shape.rank - 2], column_dim = s->shape.dims[s->shape.rank - 1];
    MtfShape row_shape = mtf_shape_without(&s->shape, column_dim);
    MtfShape column_shape = mtf_shape_without(&s->shape, row_dim);
    MtfShape mean_shape = mtf_shape_without(&row_shape, row_dim);
    int row_mean = apply(s, MTF_OP_REDUCE_MEAN, "row_means", &row_shape, square, -1);
    int column_mean = apply(s, MTF_OP_REDUCE_MEAN, "column_means", &column_shape, square, -1);
    int rows = moment(s, "rows", row_mean, &row_shape);
    int columns = moment(s, "columns", column_mean, &column_shape);
    int mean = apply(s, MTF_OP_REDUCE_MEAN, "mean", &mean_shape, rows, -1);
    g_autofree char *name = g_strdup_printf("adafactor/direction/%s", s->name);
    return MTF_BUILD(s->u->b, MTF_OP_ADAFACTOR_DIRECTION, name, NULL, s->gradient, rows, columns,
                     mean);
}

static int plain_direction(Step *s, int square) {
    int v = moment(s, "v", square, &s->shape);
    return apply(s, MTF_OP_ADAFACTOR_DIRECTION, "direction", NULL, s->gradient, v);
}

void mtf_update_adafactor(MtfUpdater *updater, int variable, int gradient) {
    MtfBuilder *b = updater->b;
    g_autofree char *name = g_strdup(mtf_graph_tensor(b->graph, variable)->name);
    Step s = { updater, variable, gradient, name, mtf_graph_tensor(b->graph, variable)->shape };
    if (updater->clip >= 0)
        s.gradient = apply(&s, MTF_OP_MULTIPLY, "gradient", &s.shape, gradient, updater->clip);
    int square = apply(&s, MTF_OP_SQUARE, "square", NULL, s.gradient, -1);
    int u = s.shape.rank >= 2 ? factored_direction(&s, square) : plain_direction(&s, square);
    int norm = apply(&s, MTF_OP_EINSUM, "norm", &(MtfShape){ 0 }, u, u);
    g_autofree char *update = g_strdup_printf("update/%s", name);
    b->attributes.threshold = THRESHOLD;
    mtf_updater_update(
        updater, variable,
        MTF_BUILD(b, MTF_OP_ADAFACTOR_APPLY, update, NULL, variable, u, norm, updater->rate));
}
