// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/kernels/products/kernel_experts.h"

#include "layouts/kernel_work/kernel_scratch.h"
#include "runtime/kernels/base/kernel_bfloat16.h"
#include "runtime/kernels/base/kernel_nest.h"
#include "runtime/kernels/products/kernel_products.h"
#include "runtime/kernels/products/skinny_rows.h"

#include <string.h>

/* Rows behind one another, `width` elements each. */
typedef struct {
    const MtfOperand *operand;
    int64_t width;
} Rows;

static Rows rows_of(const MtfOperand *operand) {
    return (Rows){ operand, operand->size[operand->rank - 1] };
}

/* A matrix an expert: [first side, second side]. */
typedef struct {
    const MtfOperand *operand;
    int64_t begin, held; /* experts */
    int64_t first, second;
    bool in_last; /* the second side is that of x */
} Matrices;

static Matrices matrices_of(const MtfOperand *operand, const MtfOperand *x) {
    return (
        Matrices){ operand,          operand->begin[0], operand->size[0],
                   operand->size[1], operand->size[2],  operand->dims[2] == x->dims[x->rank - 1] };
}

/* Rows [begin, end) are of `expert`, a place among those held; -1: of none of them. */
typedef struct {
    int64_t begin, end, expert;
} Run;

static bool next_run(const MtfOperand *ids, const Matrices *w, int64_t rows, Run *run) {
    if (run->end >= rows)
        return false;
    const int32_t *id = ids->data;
    run->begin = run->end;
    while (run->end < rows && id[run->end] == id[run->begin])
        run->end++;
    int64_t expert = id[run->begin] - w->begin;
    run->expert = expert >= 0 && expert < w->held ? expert : -1;
    return true;
}

/* A matrix in float32 or float64 where it lies: element (i, j) at i line + j, or at j line + i. */
typedef struct {
    void *data;
    int64_t rows, columns, line;
    bool turned;
} Matrix;

static Matrix matrix_at(const MtfOperand *operand, int64_t at, int64_t rows, int64_t columns) {
    return (Matrix){ mtf_operand_at(operand, at), rows, columns, columns, false };
}

static Matrix turned(Matrix m) {
    return (Matrix){ m.data, m.columns, m.rows, m.line, !m.turned };
}

static void set_strides(MtfContractionLoop *rows, MtfContractionLoop *columns, const Matrix *m,
                        int term) {
    rows->size = m->rows;
    columns->size = m->columns;
    rows->stride[term] = m->turned ? 1 : m->line;
    columns->stride[term] = m->turned ? m->line : 1;
}

/* c = a b, or c += a b. */
static void multiply(const Matrix *a, const Matrix *b, const Matrix *c, MtfDtype dtype, bool adds) {
    static const int64_t start[MTF_TERMS] = { 0 };
    MtfContraction plan = { 0 };
    MtfOperand operands[MTF_TERMS] = { { .data = a->data, .dtype = dtype },
                                       { .data = b->data, .dtype = dtype },
                                       { .data = c->data, .dtype = dtype } };
    if (a->rows == 0 || a->columns == 0 || b->columns == 0)
        return;
    set_strides(&plan.m, &plan.k, a, MTF_LEFT);
    set_strides(&plan.k, &plan.n, b, MTF_RIGHT);
    set_strides(&plan.m, &plan.n, c, MTF_RESULT);
    mtf_product(&plan, operands, start, adds, mtf_onednn_gemm, NULL);
}

/* What narrow operands are widened to, in the call's scratch. */
typedef struct {
    float *matrix, *left, *right;
} Panels;

static Panels panels_of(const MtfKernelCall *call, const Matrices *w, int64_t left_width) {
    float *matrix = call->scratch;
    if (matrix == NULL)
        return (Panels){ 0 };
    float *left = matrix + w->first * w->second;
    return (Panels){ matrix, left, left + MTF_EXPERT_ROWS * left_width };
}

static Matrix widened(float *panel, const MtfOperand *operand, int64_t at, int64_t rows,
                      int64_t columns) {
    mtf_bf16_widen(panel, mtf_operand_at(operand, at), rows * columns, 1);
    return (Matrix){ panel, rows, columns, columns, false };
}

/* Whether `rows` rows are few enough to be multiplied with a narrow matrix as it lies, read once, as a dense
 * layer's. Wide ones need no widening, and oneDNN is as fast. */
static bool are_few(int64_t rows, const Matrices *w) {
    return rows <= MTF_SKINNY_ROWS && mtf_operand_is_narrow(w->operand);
}

/* y = x w of few rows, x and y in float32. */
static void multiply_few(const float *x, const Matrices *w, int64_t expert, float *y,
                         int64_t rows) {
    MtfSkinny piece = { .x = x,
                        .w = mtf_operand_at(w->operand, expert * w->first * w->second),
                        .y = y,
                        .m = rows,
                        .n = w->in_last ? w->first : w->second,
                        .k = w->in_last ? w->second : w->first,
                        .apart = w->second,
                        .dots = w->in_last };
    if (piece.n > 0)
        mtf_skinny_rows(&piece, w->operand->dtype, NULL);
}

/* ---- Forward ----------------------------------------------------------------------------------- */

static void narrow_run(const Panels *p, const Rows *x, const Matrices *w, const Rows *y,
                       const Run *run) {
    int64_t size = w->first * w->second;
    bool few = are_few(run->end - run->begin, w);
    Matrix b = { 0 };
    if (!few)
        b = widened(p->matrix, w->operand, run->expert * size, w->first, w->second);
    b = w->in_last ? turned(b) : b;
    for (int64_t row = run->begin; row < run->end; row += MTF_EXPERT_ROWS) {
        int64_t n = MIN(MTF_EXPERT_ROWS, run->end - row);
        Matrix a = widened(p->left, x->operand, row * x->width, n, x->width);
        Matrix c = { p->right, n, y->width, y->width, false };
        if (few)
            multiply_few(p->left, w, run->expert, p->right, n);
        else
            multiply(&a, &b, &c, MTF_F32, false);
        mtf_bf16_round(mtf_operand_at(y->operand, row * y->width), p->right, n * y->width);
    }
}

static void wide_run(const Rows *x, const Matrices *w, const Rows *y, const Run *run) {
    int64_t n = run->end - run->begin, size = w->first * w->second;
    Matrix a = matrix_at(x->operand, run->begin * x->width, n, x->width);
    Matrix b = matrix_at(w->operand, run->expert * size, w->first, w->second);
    Matrix c = matrix_at(y->operand, run->begin * y->width, n, y->width);
    b = w->in_last ? turned(b) : b;
    multiply(&a, &b, &c, y->operand->dtype, false);
}

/* ---- Rows of several groups ---------------------------------------------------------------------- */

/* Rows of one expert, wherever they lie: gathered, multiplied and put back, some at a time, so that the
 * matrix is read once for all groups. */
typedef struct {
    const Rows *x, *y;
    const Matrices *w;
    int64_t expert;
    float *panel;   /* of a narrow matrix; NULL where they are wide */
    Matrix matrix;  /* of the expert; .data is NULL until it is asked for */
    MtfDtype dtype; /* that is computed in */
    char *left, *right;
    int64_t at[MTF_EXPERT_ROWS];
    int n;
} Gathered;

/* The expert's matrix, widened with its first use. */
static const Matrix *matrix_of(Gathered *g) {
    const Matrices *w = g->w;
    int64_t at = g->expert * w->first * w->second;
    if (g->matrix.data != NULL)
        return &g->matrix;
    g->matrix = g->panel != NULL ? widened(g->panel, w->operand, at, w->first, w->second)
                                 : matrix_at(w->operand, at, w->first, w->second);
    g->matrix = w->in_last ? turned(g->matrix) : g->matrix;
    return &g->matrix;
}

static void gather_row(Gathered *g, int64_t row) {
    const MtfOperand *x = g->x->operand;
    char *place = g->left + g->n * g->x->width * mtf_dtype_bytes(g->dtype);
    const void *from = mtf_operand_at(x, row * g->x->width);
    if (mtf_operand_is_narrow(x))
        mtf_bf16_widen((float *)(void *)place, from, g->x->width, 1);
    else
        memcpy(place, from, (size_t)(g->x->width * mtf_dtype_bytes(x->dtype)));
    g->at[g->n++] = row;
}

static void multiply_gathered(Gathered *g) {
    const MtfOperand *y = g->y->operand;
    int64_t width = g->y->width, bytes = width * mtf_dtype_bytes(g->dtype);
    Matrix a = { g->left, g->n, g->x->width, g->x->width, false };
    Matrix c = { g->right, g->n, width, width, false };
    if (are_few(g->n, g->w))
        multiply_few(a.data, g->w, g->expert, c.data, g->n);
    else
        multiply(&a, matrix_of(g), &c, g->dtype, false);
    for (int j = 0; j < g->n; j++) {
        void *place = mtf_operand_at(y, g->at[j] * width);
        char *row = g->right + j * bytes;
        if (mtf_operand_is_narrow(y))
            mtf_bf16_round(place, (float *)(void *)row, width);
        else
            memcpy(place, row, (size_t)bytes);
    }
    g->n = 0;
}

/* All rows of the expert number `expert` of those held. */
static void join_expert(Gathered *g, const MtfOperand *ids, int64_t expert) {
    const int32_t *id = ids->data;
    int64_t rows = mtf_operand_elements(ids);
    g->expert = expert;
    g->matrix.data = NULL;
    for (int64_t row = 0; row < rows; row++) {
        if (id[row] - g->w->begin != expert)
            continue;
        gather_row(g, row);
        if (g->n == MTF_EXPERT_ROWS)
            multiply_gathered(g);
    }
    if (g->n > 0)
        multiply_gathered(g);
}

static bool joins_groups(const MtfKernelCall *call) {
    const MtfOperand *ids = &call->inputs[2];
    int64_t rows = ids->size[ids->rank - 1], all = mtf_operand_elements(ids);
    int64_t experts = mtf_graph_size(call->graph, call->operation->attributes.experts);
    return rows > 0 && call->scratch != NULL && mtf_experts_join_groups(all / rows, rows, experts);
}

static void join_groups(const MtfKernelCall *call, const Rows *x, const Matrices *w,
                        const Rows *y) {
    const MtfOperand *ids = &call->inputs[2];
    bool narrow = mtf_operand_is_narrow(y->operand);
    float *panel = narrow ? call->scratch : NULL;
    Gathered g = {
        .x = x, .y = y, .w = w, .panel = panel, .dtype = narrow ? MTF_F32 : y->operand->dtype
    };
    g.left = narrow ? (char *)(panel + w->first * w->second) : call->scratch;
    g.right = g.left + MTF_EXPERT_ROWS * x->width * mtf_dtype_bytes(g.dtype);
    Run run = { 0 };
    while (next_run(ids, w, mtf_operand_elements(ids), &run))
        if (run.expert < 0)
            mtf_operand_clear(y->operand, run.begin * y->width, (run.end - run.begin) * y->width);
    for (int64_t expert = 0; expert < w->held; expert++) {
        mtf_progress_hook_run(call->progress);
        join_expert(&g, ids, expert);
    }
}

static void expert_einsum_kernel(const MtfKernelCall *call) {
    const MtfOperand *ids = &call->inputs[2];
    Rows x = rows_of(&call->inputs[0]), y = rows_of(&call->outputs[0]);
    Matrices w = matrices_of(&call->inputs[1], x.operand);
    Panels panels = panels_of(call, &w, x.width);
    Run run = { 0 };
    if (x.width > 0 && joins_groups(call)) {
        join_groups(call, &x, &w, &y);
        return;
    }
    while (next_run(ids, &w, mtf_operand_elements(ids), &run)) {
        mtf_progress_hook_run(call->progress);
        if (run.expert < 0 || x.width == 0)
            mtf_operand_clear(y.operand, run.begin * y.width, (run.end - run.begin) * y.width);
        else if (mtf_operand_is_narrow(y.operand))
            narrow_run(&panels, &x, &w, &y, &run);
        else
            wide_run(&x, &w, &y, &run);
    }
}

/* ---- Gradient of the matrices ------------------------------------------------------------------ */

/* The rows of one expert at a time, of all runs, so that a narrow sum is rounded once. */
typedef struct {
    const MtfOperand *ids;
    Rows x, dy;
    Matrices w;
    Panels panels;
} Gradient;

/* sum += x' dy of the rows of a run, or where the matrix lies so, dy' x. */
static void add_run(const Gradient *g, const Run *run, Matrix *sum, bool adds) {
    const Rows *left = g->w.in_last ? &g->dy : &g->x, *right = g->w.in_last ? &g->x : &g->dy;
    bool narrow = g->panels.matrix != NULL;
    int64_t most = narrow ? MTF_EXPERT_ROWS : run->end - run->begin;
    for (int64_t row = run->begin; row < run->end; row += most, adds = true) {
        int64_t n = MIN(most, run->end - row), at = row * left->width, to = row * right->width;
        Matrix a, b;
        if (narrow) {
            float *second = g->panels.left + MTF_EXPERT_ROWS * left->width;
            a = widened(g->panels.left, left->operand, at, n, left->width);
            b = widened(second, right->operand, to, n, right->width);
        } else {
            a = matrix_at(left->operand, at, n, left->width);
            b = matrix_at(right->operand, to, n, right->width);
        }
        a = turned(a);
        multiply(&a, &b, sum, narrow ? MTF_F32 : left->operand->dtype, adds);
    }
}

static void gradient_of_expert(const Gradient *g, int64_t expert) {
    const MtfOperand *out = g->w.operand;
    int64_t size = g->w.first * g->w.second, rows = mtf_operand_elements(g->ids);
    Matrix sum = matrix_at(out, expert * size, g->w.first, g->w.second);
    if (g->panels.matrix != NULL)
        sum.data = g->panels.matrix;
    Run run = { 0 };
    bool adds = false;
    while (next_run(g->ids, &g->w, rows, &run))
        if (run.expert == expert) {
            add_run(g, &run, &sum, adds);
            adds = true;
        }
    if (!adds)
        mtf_operand_clear(out, expert * size, size);
    else if (g->panels.matrix != NULL)
        mtf_bf16_round(mtf_operand_at(out, expert * size), g->panels.matrix, size);
}

static void expert_einsum_grad_kernel(const MtfKernelCall *call) {
    Gradient g = { .ids = &call->inputs[2],
                   .x = rows_of(&call->inputs[0]),
                   .dy = rows_of(&call->inputs[1]),
                   .w = matrices_of(&call->outputs[0], &call->inputs[0]) };
    if (mtf_operand_is_narrow(&call->outputs[0]))
        g.panels = panels_of(call, &g.w, g.x.width);
    for (int64_t expert = 0; expert < g.w.held; expert++) {
        mtf_progress_hook_run(call->progress);
        gradient_of_expert(&g, expert);
    }
}

const MtfKernelRow mtf_expert_kernels[] = {
    { .kind = MTF_OP_EXPERT_EINSUM, .kernel = expert_einsum_kernel },
    { .kind = MTF_OP_EXPERT_EINSUM_GRAD, .kernel = expert_einsum_grad_kernel },
    { .kernel = NULL },
};
