// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/kernel_work/contraction.h"

#include <limits.h>
#include <string.h>

/* The rough model of time, in seconds, that ranks plans. Only ratios matter; these are float32 on
 * one core with 512-bit vectors. */
#define SECONDS_PER_CALL 3e-7
#define SECONDS_PER_MULTIPLY_ADD 8e-12
#define SECONDS_PER_OPERAND_ELEMENT \
    1.5e-10 /* the routine's own packing, and the result's update \
             */
#define SECONDS_PER_COPIED_ELEMENT 8e-10
/* Products compute in blocks; narrower ones waste the rest. */
#define NARROWEST 8

/* The loops of one role while a plan is made. */
typedef enum { ROLE_BATCH, ROLE_M, ROLE_N, ROLE_K } Role;

typedef struct {
    int n;
    MtfContractionLoop loop[MTF_MAX_INDEXES];
    Role role[MTF_MAX_INDEXES];
} Loops;

int64_t mtf_term_elements(const MtfTerm *term) {
    int64_t elements = 1;
    for (int i = 0; i < term->rank; i++)
        elements *= term->size[i];
    return elements;
}

int64_t mtf_term_bytes(const MtfTerm *term, int64_t element_bytes) {
    int64_t bytes = mtf_term_elements(term) * element_bytes;
    return (bytes + MTF_SCRATCH_ALIGNMENT - 1) / MTF_SCRATCH_ALIGNMENT * MTF_SCRATCH_ALIGNMENT;
}

bool mtf_term_has(const MtfTerm *term, int dim) {
    for (int i = 0; i < term->rank; i++)
        if (term->dims[i] == dim)
            return true;
    return false;
}

static void append(MtfTerm *term, int dim, int64_t size) {
    term->dims[term->rank] = dim;
    term->size[term->rank++] = size;
}

bool mtf_term_shared(const MtfTerm *term, const MtfTerm *other, const MtfTerm *result,
                     MtfTerm *shared) {
    shared->rank = 0;
    for (int i = 0; i < term->rank; i++)
        if (mtf_term_has(other, term->dims[i]) || mtf_term_has(result, term->dims[i]))
            append(shared, term->dims[i], term->size[i]);
    return shared->rank < term->rank;
}

/* Appends the dimensions of `from` that some term of `wanted` has and `product` has not yet. */
static void append_wanted(MtfTerm *product, const MtfTerm *from, const MtfTerm *wanted, int n) {
    for (int i = 0; i < from->rank; i++)
        for (int k = 0; k < n; k++)
            if (mtf_term_has(&wanted[k], from->dims[i]) && !mtf_term_has(product, from->dims[i]))
                append(product, from->dims[i], from->size[i]);
}

void mtf_term_product(const MtfTerm *left, const MtfTerm *right, const MtfTerm *rest, int n_rest,
                      const MtfTerm *result, MtfTerm *product) {
    product->rank = 0;
    MtfTerm both[2] = { *left, *right };
    append_wanted(product, result, both, 2);
    append_wanted(product, left, rest, n_rest);
    append_wanted(product, right, rest, n_rest);
}

static Role role_of(const MtfTerm terms[MTF_TERMS], int dim) {
    bool left = mtf_term_has(&terms[MTF_LEFT], dim), right = mtf_term_has(&terms[MTF_RIGHT], dim);
    if (!mtf_term_has(&terms[MTF_RESULT], dim))
        return ROLE_K;
    return left && right ? ROLE_BATCH : left ? ROLE_M : ROLE_N;
}

static void append_role(MtfTerm *to, const MtfTerm terms[MTF_TERMS], const MtfTerm *from,
                        Role role) {
    for (int i = 0; i < from->rank; i++)
        if (role_of(terms, from->dims[i]) == role)
            append(to, from->dims[i], from->size[i]);
}

/* The packed orders: batch, m, k; batch, k, n; batch, m, n. Within a role, the order of a term that
 * stays where it is, so that neighbours there are neighbours here. */
static void store_packed(const MtfTerm terms[MTF_TERMS], MtfContraction *plan) {
    const MtfTerm *left = &terms[MTF_LEFT], *right = &terms[MTF_RIGHT];
    const MtfTerm *result = &terms[MTF_RESULT];
    const MtfTerm *m = plan->packs[MTF_RESULT] && !plan->packs[MTF_LEFT] ? left : result;
    const MtfTerm *n = plan->packs[MTF_RESULT] && !plan->packs[MTF_RIGHT] ? right : result;
    const MtfTerm *k = plan->packs[MTF_LEFT] ? right : left;
    const struct {
        const MtfTerm *first, *second;
        Role first_role, second_role;
    } order[MTF_TERMS] = { { m, k, ROLE_M, ROLE_K },
                           { k, n, ROLE_K, ROLE_N },
                           { m, n, ROLE_M, ROLE_N } };
    for (int t = 0; t < MTF_TERMS; t++) {
        plan->stored[t] = terms[t];
        if (!plan->packs[t])
            continue;
        plan->stored[t].rank = 0;
        append_role(&plan->stored[t], terms, result, ROLE_BATCH);
        append_role(&plan->stored[t], terms, order[t].first, order[t].first_role);
        append_role(&plan->stored[t], terms, order[t].second, order[t].second_role);
    }
}

static int64_t stride_of(const MtfTerm *term, int dim) {
    int64_t stride = 1;
    for (int i = term->rank - 1; i >= 0; i--) {
        if (term->dims[i] == dim)
            return stride;
        stride *= term->size[i];
    }
    return 0;
}

static void add_loops(Loops *loops, const MtfTerm terms[MTF_TERMS], const MtfTerm *of, bool sums) {
    for (int i = 0; i < of->rank; i++) {
        Role role = role_of(terms, of->dims[i]);
        if ((role == ROLE_K) != sums || of->size[i] == 1)
            continue;
        MtfContractionLoop loop = { .size = of->size[i], .sums = sums };
        for (int t = 0; t < MTF_TERMS; t++)
            loop.stride[t] = stride_of(&terms[t], of->dims[i]);
        loops->role[loops->n] = role;
        loops->loop[loops->n++] = loop;
    }
}

static bool adjacent(const MtfContractionLoop *outer, const MtfContractionLoop *inner) {
    for (int t = 0; t < MTF_TERMS; t++)
        if (outer->stride[t] != inner->stride[t] * inner->size)
            return false;
    return outer->size <= INT_MAX / inner->size;
}

static void remove_loop(Loops *loops, int i) {
    loops->n--;
    memmove(&loops->loop[i], &loops->loop[i + 1], (size_t)(loops->n - i) * sizeof loops->loop[0]);
    memmove(&loops->role[i], &loops->role[i + 1], (size_t)(loops->n - i) * sizeof loops->role[0]);
}

/* Merges one pair of neighbours of one role; false when there is none. */
static bool merge_one(Loops *loops) {
    for (int i = 0; i < loops->n; i++)
        for (int j = 0; j < loops->n; j++) {
            if (i == j || loops->role[i] != loops->role[j] ||
                !adjacent(&loops->loop[i], &loops->loop[j]))
                continue;
            loops->loop[j].size *= loops->loop[i].size;
            remove_loop(loops, i);
            return true;
        }
    return false;
}

static void collect_loops(const MtfTerm stored[MTF_TERMS], Loops *loops) {
    loops->n = 0;
    add_loops(loops, stored, &stored[MTF_RESULT], false);
    add_loops(loops, stored, &stored[MTF_LEFT], true);
    bool merged;
    do
        merged = merge_one(loops);
    while (merged);
}

/* Whether a product routine takes a matrix whose rows and columns are these loops: one of them
 * must be contiguous, or there is only one. */
static bool is_matrix(const MtfContractionLoop *rows, const MtfContractionLoop *columns, int term) {
    if (rows->size == 1 || columns->size == 1)
        return true;
    return (rows->stride[term] == 1 && columns->stride[term] <= INT_MAX) ||
           (columns->stride[term] == 1 && rows->stride[term] <= INT_MAX);
}

static bool is_product(const MtfContraction *plan) {
    return is_matrix(&plan->m, &plan->k, MTF_LEFT) && is_matrix(&plan->k, &plan->n, MTF_RIGHT) &&
           is_matrix(&plan->m, &plan->n, MTF_RESULT) && plan->m.size <= INT_MAX &&
           plan->n.size <= INT_MAX && plan->k.size <= INT_MAX;
}

static double product_seconds(const MtfContraction *plan) {
    double m = (double)plan->m.size, n = (double)plan->n.size, k = (double)plan->k.size;
    double calls = 1;
    for (int i = 0; i < plan->n_outer; i++)
        calls *= (double)plan->outer[i].size;
    double work = SECONDS_PER_MULTIPLY_ADD * MAX(m, NARROWEST) * MAX(n, NARROWEST) * k;
    double operands = SECONDS_PER_OPERAND_ELEMENT * (m * k + k * n + m * n);
    return calls * (SECONDS_PER_CALL + work + operands);
}

/* The loop taken for a role, or one of a single turn. */
static MtfContractionLoop choose(const Loops *loops, int i, Role role) {
    return i < loops->n ? loops->loop[i]
                        : (MtfContractionLoop){ .size = 1, .sums = role == ROLE_K };
}

static bool may_choose(const Loops *loops, int i, Role role) {
    return i == loops->n || loops->role[i] == role;
}

/* Fills the products of a plan whose storage is settled, given the chosen loops; false when no
 * routine takes them. */
static bool fill_products(const Loops *loops, const int chosen[3], bool whole_sums,
                          MtfContraction *plan) {
    plan->m = choose(loops, chosen[0], ROLE_M);
    plan->n = choose(loops, chosen[1], ROLE_N);
    plan->k = choose(loops, chosen[2], ROLE_K);
    if (!is_product(plan))
        return false;
    plan->n_outer = 0;
    for (int i = 0; i < loops->n; i++) {
        if (i == chosen[0] || i == chosen[1] || i == chosen[2])
            continue;
        if (whole_sums && loops->loop[i].sums)
            return false;
        plan->outer[plan->n_outer++] = loops->loop[i];
    }
    return true;
}

/* The best products for the storage in `plan`, into `best` if they beat it. */
static void try_products(const Loops *loops, bool whole_sums, MtfContraction *plan,
                         MtfContraction *best) {
    double copies = plan->seconds;
    int chosen[3];
    for (chosen[0] = 0; chosen[0] <= loops->n; chosen[0]++)
        for (chosen[1] = 0; may_choose(loops, chosen[0], ROLE_M) && chosen[1] <= loops->n;
             chosen[1]++)
            for (chosen[2] = 0; may_choose(loops, chosen[1], ROLE_N) && chosen[2] <= loops->n;
                 chosen[2]++) {
                if (!may_choose(loops, chosen[2], ROLE_K) ||
                    !fill_products(loops, chosen, whole_sums, plan))
                    continue;
                plan->seconds = copies + product_seconds(plan);
                if (best->seconds < 0 || plan->seconds < best->seconds)
                    *best = *plan;
            }
}

void mtf_contraction_plan(const MtfTerm terms[MTF_TERMS], const MtfContractionMeans *means,
                          MtfContraction *plan) {
    plan->seconds = -1;
    for (int packed = 0; packed < 1 << MTF_TERMS; packed++) {
        MtfContraction candidate = { .seconds = 0 };
        for (int t = 0; t < MTF_TERMS; t++) {
            candidate.packs[t] = packed >> t & 1;
            if (!candidate.packs[t])
                continue;
            candidate.scratch_bytes += mtf_term_bytes(&terms[t], means->element_bytes[t]);
            candidate.seconds += SECONDS_PER_COPIED_ELEMENT * (double)mtf_term_elements(&terms[t]);
        }
        if (candidate.scratch_bytes > means->scratch_bytes ||
            (plan->seconds >= 0 && candidate.seconds >= plan->seconds))
            continue;
        Loops loops;
        store_packed(terms, &candidate);
        collect_loops(candidate.stored, &loops);
        try_products(&loops, means->whole_sums, &candidate, plan);
        if (packed == 0 && plan->seconds >= 0 && plan->n_outer == 0)
            return; /* one product: nothing to gain by copying */
    }
}

/* Of two terms: what is summed in one alone, then the plan's. */
static int64_t pair_scratch_bytes(const MtfTerm *left, const MtfTerm *right, const MtfTerm *result,
                                  int64_t element_bytes) {
    int64_t bytes = 0;
    MtfTerm terms[MTF_TERMS] = { { 0 }, { 0 }, *result };
    if (mtf_term_shared(left, right, result, &terms[MTF_LEFT]))
        bytes += mtf_term_bytes(&terms[MTF_LEFT], element_bytes);
    if (mtf_term_shared(right, left, result, &terms[MTF_RIGHT]))
        bytes += mtf_term_bytes(&terms[MTF_RIGHT], element_bytes);
    MtfContraction plan;
    MtfContractionMeans means = { { element_bytes, element_bytes, element_bytes },
                                  INT64_MAX,
                                  false };
    mtf_contraction_plan(terms, &means, &plan);
    return bytes + plan.scratch_bytes;
}

int64_t mtf_einsum_scratch_bytes(const MtfTerm *terms, int n, const MtfTerm *result,
                                 int64_t element_bytes) {
    int64_t products = 0, largest = 0;
    MtfTerm left = terms[0];
    for (int k = 1; k < n; k++) {
        MtfTerm product = *result;
        if (k < n - 1) {
            mtf_term_product(&left, &terms[k], &terms[k + 1], n - k - 1, result, &product);
            products += mtf_term_bytes(&product, element_bytes);
        }
        int64_t pair = pair_scratch_bytes(&left, &terms[k], &product, element_bytes);
        largest = MAX(largest, pair);
        left = product;
    }
    return products + largest;
}

static bool has_role(const MtfTerm terms[MTF_TERMS], Role role) {
    for (int t = 0; t < MTF_TERMS; t++)
        for (int i = 0; i < terms[t].rank; i++)
            if (role_of(terms, terms[t].dims[i]) == role)
                return true;
    return false;
}

MtfNarrowEinsum mtf_narrow_einsum(const MtfTerm *terms, int n, const MtfTerm *result) {
    MtfTerm shared;
    if (n == 1)
        return terms[0].rank > result->rank ? MTF_NARROW_SUMS : MTF_NARROW_PASS;
    if (n > 2 || mtf_term_shared(&terms[0], &terms[1], result, &shared) ||
        mtf_term_shared(&terms[1], &terms[0], result, &shared))
        return MTF_NARROW_WIDENED;
    const MtfTerm all[MTF_TERMS] = { terms[0], terms[1], *result };
    if (!has_role(all, ROLE_K))
        return MTF_NARROW_PASS;
    return has_role(all, ROLE_M) || has_role(all, ROLE_N) ? MTF_NARROW_PRODUCTS : MTF_NARROW_SUMS;
}

static int64_t widened_scratch_bytes(const MtfTerm *terms, int n, const MtfTerm *result) {
    const int64_t wide = mtf_dtype_bytes(MTF_F32);
    int64_t bytes = mtf_einsum_scratch_bytes(terms, n, result, wide);
    for (int k = 0; k < n; k++)
        bytes += mtf_term_bytes(&terms[k], wide);
    return bytes;
}

static int64_t narrow_product_scratch_bytes(const MtfTerm *terms, const MtfTerm *result,
                                            bool narrow_result) {
    const int64_t narrow = mtf_dtype_bytes(MTF_BF16), wide = mtf_dtype_bytes(MTF_F32);
    MtfContractionMeans means = { { narrow, narrow, narrow_result ? narrow : wide },
                                  INT64_MAX,
                                  true };
    MtfContraction plan;
    mtf_contraction_plan((MtfTerm[]){ terms[0], terms[1], *result }, &means, &plan);
    return plan.scratch_bytes;
}

int64_t mtf_narrow_einsum_scratch_bytes(const MtfTerm *terms, int n, const MtfTerm *result,
                                        bool narrow_result) {
    int64_t sums = narrow_result ? mtf_term_bytes(result, mtf_dtype_bytes(MTF_F32)) : 0;
    switch (mtf_narrow_einsum(terms, n, result)) {
    case MTF_NARROW_PASS:
        return 0;
    case MTF_NARROW_SUMS:
        return sums;
    case MTF_NARROW_PRODUCTS:
        return narrow_product_scratch_bytes(terms, result, narrow_result);
    case MTF_NARROW_WIDENED:
        break;
    }
    return sums + widened_scratch_bytes(terms, n, result);
}
