// SPDX-License-Identifier: GPL-3.0-or-later
/* Experts: who is served where, and what goes there and back. */
#include "tests/support/reference/reference_point.h"

/* The number of this point's place among the dimensions of `of` that neither the slots nor the tokens
 * have. */
static int64_t place(const Point *p, const MtfShape *of, const MtfShape *slot,
                     const MtfShape *tokens) {
    int64_t number = 0;
    for (int i = 0; i < of->rank; i++)
        if (mtf_shape_find(slot, of->dims[i]) < 0 && mtf_shape_find(tokens, of->dims[i]) < 0)
            number = number * size_of(p, of->dims[i]) + p->coordinate[of->dims[i]];
    return number;
}

static double dispatch(const Point *p) {
    int64_t here = place(p, &output(p)->shape, &input(p, 1)->shape, &input(p, 0)->shape);
    return p->x[1] == (double)here ? p->x[0] * (p->n > 2 ? p->x[2] : 1) : 0;
}

static double combine(const Point *p) {
    int64_t here = place(p, &input(p, 0)->shape, &input(p, 1)->shape, &output(p)->shape);
    return p->x[1] == (double)here ? p->x[0] * (p->n > 2 ? p->x[2] : 1) : 0;
}

static double combine_gate_grad(const Point *p) {
    int64_t here = place(p, &input(p, 0)->shape, &input(p, 2)->shape, &input(p, 1)->shape);
    return p->x[2] == (double)here ? p->x[0] * p->x[1] : 0;
}

static double slot_ids(const Point *p) {
    const MtfShape *slot = &input(p, 1)->shape;
    return p->x[1] == (double)place(p, &output(p)->shape, slot, slot) ? p->x[0] : -1;
}

static double expert_einsum(const Point *p) {
    return p->x[2] == (double)p->coordinate[p->a->experts] ? p->x[0] * p->x[1] : 0;
}

/* Input `k` of this point's group, at a token's choice. */
static double of_choice(const Point *p, int k, int64_t token, int64_t choice) {
    const int64_t kept[] = { p->coordinate[p->a->dimension], p->coordinate[p->a->choices] };
    p->coordinate[p->a->dimension] = token;
    p->coordinate[p->a->choices] = choice;
    double value = at(p, k, -1, 0);
    p->coordinate[p->a->dimension] = kept[0];
    p->coordinate[p->a->choices] = kept[1];
    return value;
}

typedef struct {
    int64_t token, choice;
} Choice;

/* Whether one choice is served before another. */
static bool comes_first(const Point *p, Choice a, Choice b) {
    bool earlier = p->a->queue == 1
                       ? a.choice < b.choice || (a.choice == b.choice && a.token < b.token)
                       : a.token < b.token || (a.token == b.token && a.choice < b.choice);
    if (p->a->priority == 0)
        return earlier;
    if (p->a->priority == 2 && p->a->queue == 1 && a.choice != b.choice)
        return a.choice < b.choice;
    bool by_token = p->a->priority == 2;
    double x = of_choice(p, 1, a.token, by_token ? 0 : a.choice);
    double y = of_choice(p, 1, b.token, by_token ? 0 : b.choice);
    bool before = a.token < b.token || (a.token == b.token && a.choice < b.choice);
    return x > y || (x == y && before);
}

/* How many of the same expert are served before a choice. */
static int64_t waiting_before(const Point *p, Choice c) {
    int64_t n = 0;
    for (int64_t t = 0; t < size_of(p, p->a->dimension); t++)
        for (int64_t k = 0; k < size_of(p, p->a->choices); k++)
            n += of_choice(p, 0, t, k) == of_choice(p, 0, c.token, c.choice) &&
                 comes_first(p, (Choice){ t, k }, c);
    return n;
}

/* Those who came first have the places; by gates, they take them in the order of tokens. */
static double slot(const Point *p) {
    Choice here = { p->coordinate[p->a->dimension], p->coordinate[p->a->choices] };
    double expert = p->x[0], lesser = 0;
    int64_t capacity = p->a->capacity < 0 ? INT64_MAX : size_of(p, p->a->capacity), before = 0;
    bool by_gate = p->a->priority == 1;
    if (expert < 0 || expert >= (double)size_of(p, p->a->experts) ||
        waiting_before(p, here) >= capacity)
        return -1;
    for (int64_t t = 0; t < size_of(p, p->a->dimension); t++)
        for (int64_t k = 0; k < size_of(p, p->a->choices); k++) {
            double other = of_choice(p, 0, t, k);
            bool earlier = t < here.token || (t == here.token && k < here.choice);
            lesser += other >= 0 && other < expert;
            before += by_gate && other == expert && earlier &&
                      waiting_before(p, (Choice){ t, k }) < capacity;
        }
    double start = p->a->capacity < 0 ? lesser : expert * (double)capacity;
    return start + (double)(by_gate ? before : waiting_before(p, here));
}

const MtfReferenceTerm mtf_reference_routing[MTF_OPERATIONS] = {
    [MTF_OP_SLOTS] = slot,
    [MTF_OP_SLOT_IDS] = slot_ids,
    [MTF_OP_DISPATCH] = dispatch,
    [MTF_OP_COMBINE] = combine,
    [MTF_OP_COMBINE_GATE_GRAD] = combine_gate_grad,
    [MTF_OP_EXPERT_EINSUM] = expert_einsum,
    [MTF_OP_EXPERT_EINSUM_GRAD] = expert_einsum,
};
