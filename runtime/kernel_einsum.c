// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/kernel_einsum.h"

#include "layouts/contraction.h"
#include "runtime/kernel_map.h"
#include "runtime/kernel_move.h"
#include "runtime/kernel_nest.h"
#include "runtime/kernel_product.h"

#include <string.h>

/* What is left of the call's scratch. */
typedef struct {
    char *next;
    int64_t bytes;
} Scratch;

static MtfTerm term_of(const MtfOperand *operand) {
    MtfTerm term = { .rank = operand->rank };
    memcpy(term.dims, operand->dims, sizeof term.dims);
    memcpy(term.size, operand->size, sizeof term.size);
    return term;
}

/* An operand of the term's shape in scratch. */
static MtfOperand take(Scratch *scratch, const MtfTerm *term, MtfDtype dtype) {
    MtfOperand operand = { .data = scratch->next, .dtype = dtype, .rank = term->rank };
    memcpy(operand.dims, term->dims, sizeof operand.dims);
    memcpy(operand.size, term->size, sizeof operand.size);
    int64_t bytes = mtf_term_bytes(term, mtf_dtype_bytes(dtype));
    g_assert(bytes <= scratch->bytes);
    scratch->next += bytes;
    scratch->bytes -= bytes;
    return operand;
}

static void sum_to(const MtfOperand *out, const MtfOperand *in) {
    MtfMapping mapping = { .n_inputs = 1, .n_outputs = 1, .in = { in }, .out = { out } };
    if (in->rank == out->rank)
        mtf_operand_copy(out, in);
    else
        mtf_mapping_reduce(&mapping, MTF_REDUCE_SUM);
}

/* Products that reuse nothing: one pass over memory, summed where the result lacks dimensions. */
static void multiply_to(const MtfOperand *out, const MtfOperand *left, const MtfOperand *right,
                        bool sums) {
    const MtfMapRow *row = mtf_map_row(MTF_OP_MULTIPLY);
    MtfMapping mapping = { .map = out->dtype == MTF_F64 ? row->f64 : row->f32,
                           .n_inputs = 2,
                           .n_outputs = 1,
                           .in = { left, right },
                           .out = { out } };
    if (sums)
        mtf_mapping_reduce(&mapping, MTF_REDUCE_SUM);
    else
        mtf_mapping_apply(&mapping);
}

/* The odometer over the plan's outer loops. */
static void run_products(const MtfContraction *plan, const MtfOperand operands[MTF_TERMS]) {
    int64_t index[MTF_MAX_INDEXES] = { 0 }, offset[MTF_TERMS] = { 0 };
    for (;;) {
        bool adds = false;
        for (int i = 0; i < plan->n_outer; i++)
            adds = adds || (plan->outer[i].sums && index[i] > 0);
        mtf_product(plan, operands, offset, adds);
        int i = plan->n_outer - 1;
        for (; i >= 0; i--) {
            bool wraps = ++index[i] == plan->outer[i].size;
            int64_t turns = wraps ? 1 - plan->outer[i].size : 1;
            for (int t = 0; t < MTF_TERMS; t++)
                offset[t] += turns * plan->outer[i].stride[t];
            if (!wraps)
                break;
            index[i] = 0;
        }
        if (i < 0)
            return;
    }
}

static void contract(const MtfOperand operands[MTF_TERMS], Scratch scratch) {
    MtfTerm terms[MTF_TERMS];
    MtfOperand stored[MTF_TERMS];
    MtfContraction plan;
    MtfDtype dtype = operands[MTF_RESULT].dtype;
    for (int t = 0; t < MTF_TERMS; t++)
        terms[t] = term_of(&operands[t]);
    int64_t bytes = mtf_dtype_bytes(dtype);
    MtfContractionMeans means = { { bytes, bytes, bytes }, scratch.bytes, false };
    mtf_contraction_plan(terms, &means, &plan);
    for (int t = 0; t < MTF_TERMS; t++)
        stored[t] = plan.packs[t] ? take(&scratch, &plan.stored[t], dtype) : operands[t];
    for (int t = 0; t < MTF_RESULT; t++)
        if (plan.packs[t])
            mtf_operand_copy(&stored[t], &operands[t]);
    run_products(&plan, stored);
    if (plan.packs[MTF_RESULT])
        mtf_operand_copy(&operands[MTF_RESULT], &stored[MTF_RESULT]);
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

/* The operand summed over what neither of the others has; itself when there is nothing of that. */
static MtfOperand shared_part(const MtfOperand *operand, const MtfOperand *other,
                              const MtfOperand *out, Scratch *scratch) {
    MtfTerm term = term_of(operand), other_term = term_of(other), result = term_of(out), shared;
    if (!mtf_term_shared(&term, &other_term, &result, &shared))
        return *operand;
    MtfOperand sum = take(scratch, &shared, operand->dtype);
    sum_to(&sum, operand);
    return sum;
}

/* out = sum of left right. Without rows and columns there is nothing that a product would reuse. */
static void multiply_pair(const MtfOperand *left_whole, const MtfOperand *right_whole,
                          const MtfOperand *out, Scratch scratch) {
    MtfOperand left = shared_part(left_whole, right_whole, out, &scratch);
    MtfOperand right = shared_part(right_whole, left_whole, out, &scratch);
    Roles roles = roles_of(&left, &right, out);
    bool nothing = mtf_operand_elements(&left) == 0 || mtf_operand_elements(&right) == 0;
    if (nothing || !roles.sums || (!roles.rows && !roles.columns))
        multiply_to(out, &left, &right, roles.sums);
    else
        contract((MtfOperand[]){ left, right, *out }, scratch);
}

void mtf_kernel_einsum(const MtfKernelCall *call) {
    const MtfOperand *in = call->inputs, *out = &call->outputs[0];
    int n = call->operation->n_inputs;
    Scratch scratch = { call->scratch, call->scratch_bytes };
    MtfOperand left = in[0];
    if (n == 1)
        sum_to(out, &left);
    for (int k = 1; k < n - 1; k++) {
        MtfTerm rest[MTF_MAX_INDEXES], product, result = term_of(out);
        MtfTerm left_term = term_of(&left), right_term = term_of(&in[k]);
        int n_rest = 0;
        for (int r = k + 1; r < n; r++)
            rest[n_rest++] = term_of(&in[r]);
        mtf_term_product(&left_term, &right_term, rest, n_rest, &result, &product);
        MtfOperand next = take(&scratch, &product, out->dtype);
        multiply_pair(&left, &in[k], &next, scratch);
        left = next;
    }
    if (n > 1)
        multiply_pair(&left, &in[n - 1], out, scratch);
}
