// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/kernels/products/kernel_einsum.h"

#include "layouts/kernel_work/contraction.h"
#include "runtime/kernels/base/kernel_bfloat16.h"
#include "runtime/kernels/base/kernel_map.h"
#include "runtime/kernels/base/kernel_move.h"
#include "runtime/kernels/base/kernel_nest.h"
#include "runtime/kernels/products/kernel_products.h"

/* Where a place's elements are: in an input, the output, or `offset` bytes into scratch. */
enum { IN_OUTPUT = -1, IN_SCRATCH = -2 };

typedef struct {
    MtfOperand operand; /* without its elements */
    int where;          /* an input's number, IN_OUTPUT or IN_SCRATCH */
    int64_t offset;
} Place;

typedef struct Action Action;
struct Action {
    void (*run)(const Action *action, const MtfOperand *operands, const MtfKernelCall *call);
    int out, left, right; /* places; -1 where there is none */
    bool sums;
    MtfProducts products;
};

typedef struct {
    GArray *places;       /* Place */
    GArray *actions;      /* Action */
    MtfOperand *operands; /* the places of the call under way */
    int64_t scratch_bytes, scratch_limit;
    int64_t workspace_bytes;
} Einsum;

/* ---- Actions ------------------------------------------------------------------------------- */

static void run_copy(const Action *a, const MtfOperand *operands, const MtfKernelCall *call) {
    (void)call;
    mtf_operand_copy(&operands[a->out], &operands[a->left]);
}

static void run_convert(const Action *a, const MtfOperand *operands, const MtfKernelCall *call) {
    (void)call;
    mtf_operand_convert(&operands[a->out], &operands[a->left]);
}

static void run_sum(const Action *a, const MtfOperand *operands, const MtfKernelCall *call) {
    MtfElementMap mapping = {
        .n_inputs = 1, .n_outputs = 1, .in = { &operands[a->left] }, .out = { &operands[a->out] }
    };
    (void)call;
    mtf_element_map_reduce(&mapping, MTF_REDUCE_SUM);
}

/* Products that reuse nothing: one pass over memory, summed where the result lacks dimensions. */
static void run_multiply(const Action *a, const MtfOperand *operands, const MtfKernelCall *call) {
    const MtfMapRow *row = mtf_map_row(MTF_OP_MULTIPLY);
    MtfElementMap mapping = { .map = operands[a->out].dtype == MTF_F64 ? row->f64 : row->f32,
                              .n_inputs = 2,
                              .n_outputs = 1,
                              .in = { &operands[a->left], &operands[a->right] },
                              .out = { &operands[a->out] } };
    (void)call;
    if (a->sums)
        mtf_element_map_reduce(&mapping, MTF_REDUCE_SUM);
    else
        mtf_element_map_apply(&mapping);
}

/* The result in another order and type: once the input. */
static void run_rewrite(const Action *a, const MtfOperand *operands, const MtfKernelCall *call) {
    const MtfMapRow *row = mtf_map_row(MTF_OP_SCALE);
    MtfElementMap mapping = { .map = row->f32,
                              .n_inputs = 1,
                              .n_outputs = 1,
                              .in = { &operands[a->left] },
                              .out = { &operands[a->out] },
                              .parameters = { 1 } };
    (void)call;
    mtf_element_map_apply(&mapping);
}

static void run_clear(const Action *a, const MtfOperand *operands, const MtfKernelCall *call) {
    const MtfOperand *out = &operands[a->out];
    (void)call;
    mtf_operand_clear(out, 0, mtf_operand_elements(out));
}

static void run_products(const Action *a, const MtfOperand *operands, const MtfKernelCall *call) {
    void *data[MTF_TERMS] = { operands[a->left].data, operands[a->right].data,
                              operands[a->out].data };
    mtf_products_run(&a->products, data, call->workspace, call->progress);
}

/* ---- Preparing ----------------------------------------------------------------------------- */

static const MtfOperand *operand_of(const Einsum *e, int place) {
    return &g_array_index(e->places, Place, place).operand;
}

static MtfTerm term_of(const Einsum *e, int place) {
    const MtfOperand *operand = operand_of(e, place);
    MtfTerm term = { .rank = operand->rank };
    memcpy(term.dims, operand->dims, sizeof term.dims);
    memcpy(term.size, operand->size, sizeof term.size);
    return term;
}

static int add_place(Einsum *e, const MtfOperand *operand, int where, int64_t offset) {
    Place place = { *operand, where, offset };
    g_array_append_val(e->places, place);
    return (int)e->places->len - 1;
}

/* A place of the term's shape in scratch. */
static int take(Einsum *e, const MtfTerm *term, MtfDtype dtype) {
    MtfOperand operand = { .dtype = dtype, .rank = term->rank };
    memcpy(operand.dims, term->dims, sizeof operand.dims);
    memcpy(operand.size, term->size, sizeof operand.size);
    int64_t offset = e->scratch_bytes;
    e->scratch_bytes += mtf_term_bytes(term, mtf_dtype_bytes(dtype));
    g_assert(e->scratch_bytes <= e->scratch_limit);
    return add_place(e, &operand, IN_SCRATCH, offset);
}

static Action *add_action(Einsum *e,
                          void (*run)(const Action *action, const MtfOperand *operands,
                                      const MtfKernelCall *call),
                          int out, int left, int right) {
    Action action = { .run = run, .out = out, .left = left, .right = right };
    g_array_append_val(e->actions, action);
    return &g_array_index(e->actions, Action, e->actions->len - 1);
}

static void add_sum(Einsum *e, int out, int in) {
    add_action(e, operand_of(e, in)->rank == operand_of(e, out)->rank ? run_copy : run_sum, out, in,
               -1);
}

static void add_products(Einsum *e, const MtfContraction *plan, const int stored[MTF_TERMS]) {
    MtfDtype types[MTF_TERMS];
    for (int t = 0; t < MTF_TERMS; t++)
        types[t] = operand_of(e, stored[t])->dtype;
    Action *action =
        add_action(e, run_products, stored[MTF_RESULT], stored[MTF_LEFT], stored[MTF_RIGHT]);
    mtf_products_init(&action->products, plan, types);
    e->workspace_bytes = MAX(e->workspace_bytes, action->products.workspace_bytes);
}

static void add_copy(Einsum *e, int out, int in) {
    if (out != in)
        add_action(e, run_copy, out, in, -1);
}

/* Products of two places, with copies of those that want another storage order. */
static void contract(Einsum *e, const int places[MTF_TERMS]) {
    MtfTerm terms[MTF_TERMS];
    int stored[MTF_TERMS];
    MtfContraction plan;
    MtfContractionMeans means = { .scratch_bytes = e->scratch_limit - e->scratch_bytes,
                                  .whole_sums = mtf_operand_is_narrow(operand_of(e, places[0])) };
    for (int t = 0; t < MTF_TERMS; t++) {
        terms[t] = term_of(e, places[t]);
        means.element_bytes[t] = mtf_dtype_bytes(operand_of(e, places[t])->dtype);
    }
    mtf_contraction_plan(terms, &means, &plan);
    for (int t = 0; t < MTF_TERMS; t++)
        stored[t] =
            plan.packs[t] ? take(e, &plan.stored[t], operand_of(e, places[t])->dtype) : places[t];
    for (int t = 0; t < MTF_RESULT; t++)
        add_copy(e, stored[t], places[t]);
    add_products(e, &plan, stored);
    add_copy(e, places[MTF_RESULT], stored[MTF_RESULT]);
}

/* Whether the left term has rows of its own, the right one columns, and both something to sum. */
typedef struct {
    bool rows, columns, sums;
} Roles;

static Roles roles_of(const MtfOperand *left, const MtfOperand *right, const MtfOperand *out) {
    Roles roles = { false, false, false };
    for (int i = 0; i < left->rank; i++) {
        bool elsewhere = mtf_operand_find(right, left->dims[i]) >= 0;
        bool kept = mtf_operand_find(out, left->dims[i]) >= 0;
        roles.rows = roles.rows || (!elsewhere && left->size[i] > 1);
        roles.sums = roles.sums || (elsewhere && !kept);
    }
    for (int i = 0; i < right->rank; i++)
        roles.columns =
            roles.columns || (mtf_operand_find(left, right->dims[i]) < 0 && right->size[i] > 1);
    return roles;
}

/* The place summed over what neither of the others has; itself when there is nothing of that. */
static int shared_part(Einsum *e, int place, int other, int out) {
    MtfTerm term = term_of(e, place), other_term = term_of(e, other), result = term_of(e, out);
    MtfTerm shared;
    if (!mtf_term_shared(&term, &other_term, &result, &shared))
        return place;
    int sum = take(e, &shared, operand_of(e, place)->dtype);
    add_sum(e, sum, place);
    return sum;
}

static bool is_nothing(const Einsum *e, int place) {
    return mtf_operand_elements(operand_of(e, place)) == 0;
}

/* out = sum of left right. Without rows and columns there is nothing that a product would reuse.
 * What the pair took of the scratch is free afterwards. */
static void multiply_pair(Einsum *e, int left_whole, int right_whole, int out) {
    int64_t taken = e->scratch_bytes;
    int left = shared_part(e, left_whole, right_whole, out);
    int right = shared_part(e, right_whole, left_whole, out);
    Roles roles = roles_of(operand_of(e, left), operand_of(e, right), operand_of(e, out));
    if (is_nothing(e, left) || is_nothing(e, right) || !roles.sums ||
        (!roles.rows && !roles.columns))
        add_action(e, run_multiply, out, left, right)->sums = roles.sums;
    else
        contract(e, (int[]){ left, right, out });
    e->scratch_bytes = taken;
}

/* The product of the first k + 1 terms, with what later ones and the result need of it. */
static int partial_product(Einsum *e, int left, const int *in, int n, int k, int out) {
    MtfTerm rest[MTF_MAX_INDEXES], product, result = term_of(e, out);
    MtfTerm left_term = term_of(e, left), right_term = term_of(e, in[k]);
    int n_rest = 0;
    for (int r = k + 1; r < n; r++)
        rest[n_rest++] = term_of(e, in[r]);
    mtf_term_product(&left_term, &right_term, rest, n_rest, &result, &product);
    int next = take(e, &product, operand_of(e, out)->dtype);
    multiply_pair(e, left, in[k], next);
    return next;
}

/* The einsum of places of one type into another of that type. */
static void plan_wide(Einsum *e, const int *in, int n, int out) {
    int left = in[0];
    if (n == 1)
        add_sum(e, out, left);
    for (int k = 1; k < n - 1; k++)
        left = partial_product(e, left, in, n, k, out);
    if (n > 1)
        multiply_pair(e, left, in[n - 1], out);
}

/* Everything in float32 in scratch. */
static void plan_widened(Einsum *e, const int *in, int n, int sums) {
    g_autofree int *wide = g_new(int, n);
    for (int k = 0; k < n; k++) {
        MtfTerm term = term_of(e, in[k]);
        wide[k] = take(e, &term, MTF_F32);
        add_action(e, run_convert, wide[k], in[k], -1);
    }
    plan_wide(e, wide, n, sums);
}

/* A place in float32 for the sums of a narrow result. */
static int sums_of(Einsum *e, int out) {
    MtfTerm term = term_of(e, out);
    return mtf_operand_is_narrow(operand_of(e, out)) ? take(e, &term, MTF_F32) : out;
}

static void store_sums(Einsum *e, int out, int sums) {
    if (sums != out)
        add_action(e, run_convert, out, sums, -1);
}

static void plan_narrow_sums(Einsum *e, const int *in, int n, int out) {
    int sums = sums_of(e, out);
    add_action(e, n == 1 ? run_sum : run_multiply, sums, in[0], n == 1 ? -1 : in[1])->sums = true;
    store_sums(e, out, sums);
}

static void plan_narrow(Einsum *e, const int *in, int n, int out) {
    g_autofree MtfTerm *terms = g_new(MtfTerm, n);
    bool nothing = false;
    for (int k = 0; k < n; k++) {
        terms[k] = term_of(e, in[k]);
        nothing = nothing || is_nothing(e, in[k]);
    }
    MtfTerm result = term_of(e, out);
    MtfNarrowEinsum how = mtf_narrow_einsum(terms, n, &result);
    if (nothing) {
        add_action(e, run_clear, out, -1, -1);
    } else if (how == MTF_NARROW_PASS) {
        add_action(e, n == 1 ? run_rewrite : run_multiply, out, in[0], n == 1 ? -1 : in[1]);
    } else if (how == MTF_NARROW_SUMS) {
        plan_narrow_sums(e, in, n, out);
    } else if (how == MTF_NARROW_PRODUCTS) {
        contract(e, (int[]){ in[0], in[1], out });
    } else {
        int sums = sums_of(e, out);
        plan_widened(e, in, n, sums);
        store_sums(e, out, sums);
    }
}

static Einsum *einsum_new(int64_t scratch_limit) {
    Einsum *e = g_new0(Einsum, 1);
    e->places = g_array_new(FALSE, FALSE, sizeof(Place));
    e->actions = g_array_new(FALSE, TRUE, sizeof(Action));
    e->scratch_limit = scratch_limit;
    return e;
}

static void *einsum_prepare(const MtfKernelCall *call, int64_t *workspace_bytes) {
    int n = call->operation->n_inputs;
    g_autofree int *in = g_new(int, n);
    Einsum *e = einsum_new(call->scratch_bytes);
    for (int k = 0; k < n; k++)
        in[k] = add_place(e, &call->inputs[k], k, 0);
    int out = add_place(e, &call->outputs[0], IN_OUTPUT, 0);
    if (mtf_operand_is_narrow(&call->inputs[0]))
        plan_narrow(e, in, n, out);
    else
        plan_wide(e, in, n, out);
    e->operands = g_new(MtfOperand, e->places->len);
    for (guint p = 0; p < e->places->len; p++)
        e->operands[p] = g_array_index(e->places, Place, p).operand;
    *workspace_bytes = e->workspace_bytes;
    return e;
}

static void einsum_release(void *prepared) {
    Einsum *e = prepared;
    for (guint i = 0; i < e->actions->len; i++) {
        Action *action = &g_array_index(e->actions, Action, i);
        if (action->products.prepared != NULL)
            mtf_products_clear(&action->products);
    }
    g_array_unref(e->places);
    g_array_unref(e->actions);
    g_free(e->operands);
    g_free(e);
}

/* ---- Running ------------------------------------------------------------------------------- */

static void einsum_kernel(const MtfKernelCall *call) {
    const Einsum *e = call->prepared;
    for (guint p = 0; p < e->places->len; p++) {
        const Place *place = &g_array_index(e->places, Place, p);
        e->operands[p].data = place->where == IN_SCRATCH  ? (char *)call->scratch + place->offset
                              : place->where == IN_OUTPUT ? call->outputs[0].data
                                                          : call->inputs[place->where].data;
    }
    for (guint i = 0; i < e->actions->len; i++) {
        const Action *action = &g_array_index(e->actions, Action, i);
        action->run(action, e->operands, call);
    }
}

const MtfKernelRow mtf_einsum_kernels[] = {
    { .kind = MTF_OP_EINSUM,
      .kernel = einsum_kernel,
      .prepare = einsum_prepare,
      .release = einsum_release,
      .trial = { { "rc", "rc" }, "r", MTF_NOTHING_FRESH } },
    { .kernel = NULL },
};
