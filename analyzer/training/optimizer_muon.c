// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/training/optimizer_updates.h"

#include <math.h>

/* The quintic whose iteration brings singular values near 1, and how often it is applied. */
#define A1 3.4445
#define A3 (-4.7750)
#define A5 2.0315
#define ITERATIONS 5

/* Added to the square of the norm, so that no gradient is divided by 0: 1e-7 squared. */
#define LEAST_SQUARE 1e-14

/* A variable as matrices: the sets of its dimensions. */
typedef struct {
    MtfShape rows, columns, several;
} Roles;

/* One variable's update under way. */
typedef struct {
    MtfUpdater *u;
    const char *name;
    MtfShape shape; /* the variable's */
    MtfShape gram;  /* of X X^T */
    MtfShape from, to;
} Step;

static bool is_kernel(const MtfAttributes *a, int dim) {
    for (int w = 0; w < a->n_windows; w++)
        if (a->windows[w].kernel == dim)
            return true;
    return false;
}

static bool is_read_by_others(const MtfGraph *graph, const MtfOperation *op, int variable,
                              int dim) {
    for (int k = 0; k < op->n_inputs; k++)
        if (op->inputs[k] != variable &&
            mtf_shape_find(&mtf_graph_tensor(graph, op->inputs[k])->shape, dim) >= 0)
            return true;
    return false;
}

static Roles roles_in(const MtfGraph *graph, const MtfOperation *op, int variable) {
    Roles roles = { 0 };
    const MtfShape *shape = &mtf_graph_tensor(graph, variable)->shape;
    const MtfShape *made = &mtf_graph_tensor(graph, op->outputs[0])->shape;
    for (int i = 0; i < shape->rank; i++) {
        int dim = shape->dims[i];
        bool read = is_read_by_others(graph, op, variable, dim);
        bool summed = mtf_shape_find(made, dim) < 0;
        if (is_kernel(&op->attributes, dim) || (read && summed))
            mtf_shape_append(&roles.rows, dim);
        else
            mtf_shape_append(!read && !summed ? &roles.columns : &roles.several, dim);
    }
    return roles;
}

/* Whether labels choose along a dimension of the variable. */
static bool makes_classes(const MtfGraph *graph, const MtfShape *shape) {
    for (int i = 0; i < (int)graph->operations->len; i++) {
        const MtfOperation *op = mtf_graph_operation(graph, i);
        const MtfChoice *choice = &mtf_operation_row(op->kind)->choice;
        if (!choice->chooses || choice->of != 0 || choice->without != choice->ids)
            continue;
        const MtfShape *logits = &mtf_graph_tensor(graph, op->inputs[0])->shape;
        const MtfShape *labels = &mtf_graph_tensor(graph, op->inputs[choice->ids])->shape;
        for (int d = 0; d < logits->rank; d++)
            if (mtf_shape_find(labels, logits->dims[d]) < 0 &&
                mtf_shape_find(shape, logits->dims[d]) >= 0)
                return true;
    }
    return false;
}

/* The first product of the forward pass that reads the variable; NULL where it is looked up, or
 * none does. */
static const MtfOperation *find_product(const MtfGraph *graph, int variable) {
    const MtfOperation *product = NULL;
    for (int i = 0; i < (int)graph->operations->len; i++) {
        const MtfOperation *op = mtf_graph_operation(graph, i);
        const MtfOperationRow *row = mtf_operation_row(op->kind);
        for (int k = 0; k < op->n_inputs && op->phase == MTF_PHASE_FORWARD; k++) {
            if (op->inputs[k] != variable)
                continue;
            if (row->choice.chooses && row->choice.of == k)
                return NULL;
            if (product == NULL && op->n_inputs > 1 && row->kernel_class == MTF_CLASS_MATMUL)
                product = op;
        }
    }
    return product;
}

static bool is_matrix(const MtfGraph *graph, int variable, Roles *roles) {
    const MtfOperation *product = find_product(graph, variable);
    if (product == NULL || makes_classes(graph, &mtf_graph_tensor(graph, variable)->shape))
        return false;
    *roles = roles_in(graph, product, variable);
    return mtf_graph_unpadded_elements(graph, &roles->rows) > 1 &&
           mtf_graph_unpadded_elements(graph, &roles->columns) > 1;
}

/* ---- X ---------------------------------------------------------------------------------------- */

static int apply(Step *s, int kind, const char *what, const MtfShape *shape, int x, int y) {
    g_autofree char *name = g_strdup_printf("muon/%s/%s", what, s->name);
    return mtf_build(s->u->b, kind, name, shape, y < 0 ? 1 : 2, (int[]){ x, y });
}

static int times(Step *s, const char *what, int x, double factor) {
    s->u->b->attributes.factor = factor;
    return apply(s, MTF_OP_SCALE, what, NULL, x, -1);
}

/* x with the dimensions of its smaller side by other names. */
static int turned(Step *s, const char *what, int x) {
    for (int i = 0; i < s->from.rank; i++) {
        g_autofree char *each = g_strdup_printf("%s%d", what, i);
        s->u->b->attributes.from = s->from.dims[i];
        s->u->b->attributes.to = s->to.dims[i];
        x = apply(s, MTF_OP_RENAME, each, NULL, x, -1);
    }
    return x;
}

/* a X + b A X + c A A X; the names hold the number of the iteration. */
static int iterate(Step *s, int x, int number) {
    const char *const what[] = { "turned", "gram", "once", "again", "twice", "a", "b", "c", "x" };
    char *name[G_N_ELEMENTS(what)];
    for (gsize i = 0; i < G_N_ELEMENTS(what); i++)
        name[i] = g_strdup_printf("%d/%s", number, what[i]);
    int beside = turned(s, name[0], x);
    int gram = apply(s, MTF_OP_EINSUM, name[1], &s->gram, x, beside);
    int once = apply(s, MTF_OP_EINSUM, name[2], &s->shape, gram, beside);
    int again = turned(s, name[3], once);
    int twice = apply(s, MTF_OP_EINSUM, name[4], &s->shape, gram, again);
    g_autofree char *sum = g_strdup_printf("muon/%s/%s", name[8], s->name);
    int first = times(s, name[5], x, A1), third = times(s, name[6], once, A3);
    int fifth = times(s, name[7], twice, A5);
    int next = MTF_BUILD(s->u->b, MTF_OP_ADD, sum, &s->shape, first, third, fifth);
    for (gsize i = 0; i < G_N_ELEMENTS(what); i++)
        g_free(name[i]);
    return next;
}

/* Names for the other side of X X^T; a dimension "muon_NAME" stands for NAME there. */
static void name_gram(Step *s, const Roles *roles) {
    MtfGraph *graph = s->u->b->graph;
    bool by_rows = mtf_graph_unpadded_elements(graph, &roles->rows) <=
                   mtf_graph_unpadded_elements(graph, &roles->columns);
    s->from = by_rows ? roles->rows : roles->columns;
    s->gram = roles->several;
    for (int i = 0; i < s->from.rank; i++)
        mtf_shape_append(&s->gram, s->from.dims[i]);
    for (int i = 0; i < s->from.rank && s->u->b->error == NULL; i++) {
        g_autofree char *name =
            g_strdup_printf("muon_%s", mtf_graph_dimension(graph, s->from.dims[i])->name);
        int64_t size = mtf_graph_size(graph, s->from.dims[i]);
        int dim = mtf_graph_find_dimension(graph, name);
        if (dim < 0)
            dim = mtf_graph_add_dimension(graph, name, size, &s->u->b->error);
        mtf_shape_append(&s->to, dim);
        mtf_shape_append(&s->gram, dim);
    }
}

/* n / |n|, each matrix for itself. */
static int normalised(Step *s, const Roles *roles, int n) {
    MtfBuilder *b = s->u->b;
    MtfDtype dtype = mtf_graph_tensor(b->graph, n)->dtype;
    g_autofree char *least_name = g_strdup_printf("muon/least/%s", s->name);
    int squares = apply(s, MTF_OP_EINSUM, "squares", &roles->several, n, n);
    int least = mtf_build_constant(b, least_name, dtype, LEAST_SQUARE);
    int sum = apply(s, MTF_OP_ADD, "sum", &roles->several, squares, least);
    int over = apply(s, MTF_OP_RSQRT, "over", NULL, sum, -1);
    return apply(s, MTF_OP_MULTIPLY, "0/x", &s->shape, n, over);
}

/* n = g + momentum m', and m' to be kept. */
static int look_ahead(Step *s, int variable, int gradient) {
    MtfUpdater *u = s->u;
    if (u->clip >= 0)
        gradient = apply(s, MTF_OP_MULTIPLY, "gradient", &s->shape, gradient, u->clip);
    int m = mtf_updater_state(u, "muon/m", variable, &s->shape);
    int kept = times(s, "kept", m, u->settings->momentum);
    int next = apply(s, MTF_OP_ADD, "next", &s->shape, kept, gradient);
    mtf_updater_update(u, m, next);
    return apply(s, MTF_OP_ADD, "ahead", &s->shape, times(s, "share", next, u->settings->momentum),
                 gradient);
}

void mtf_update_muon(MtfUpdater *updater, int variable, int gradient) {
    MtfBuilder *b = updater->b;
    Roles roles;
    if (b->error != NULL || !is_matrix(b->graph, variable, &roles)) {
        mtf_update_adam(updater, variable, gradient);
        return;
    }
    g_autofree char *name = g_strdup(mtf_graph_tensor(b->graph, variable)->name);
    Step s = { .u = updater, .name = name };
    s.shape = mtf_graph_tensor(b->graph, variable)->shape;
    double rows = (double)mtf_graph_unpadded_elements(b->graph, &roles.rows);
    double columns = (double)mtf_graph_unpadded_elements(b->graph, &roles.columns);
    bool undecayed = mtf_graph_tensor(b->graph, variable)->undecayed;
    name_gram(&s, &roles);
    if (b->error != NULL)
        return;
    int x = normalised(&s, &roles, look_ahead(&s, variable, gradient));
    for (int i = 1; i <= ITERATIONS; i++)
        x = iterate(&s, x, i);
    g_autofree char *update = g_strdup_printf("update/%s", name);
    int direction = times(&s, "direction", x, 0.2 * sqrt(fmax(rows, columns)));
    b->attributes.weight_decay = undecayed ? 0 : updater->settings->weight_decay;
    mtf_updater_update(updater, variable,
                       MTF_BUILD(b, MTF_OP_SGD, update, NULL, variable, direction, updater->rate));
}
