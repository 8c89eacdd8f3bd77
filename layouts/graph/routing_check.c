// SPDX-License-Identifier: GPL-3.0-or-later
/* Checks of rows that send tokens to experts: slots, what goes by them, products of experts. */
#include "layouts/graph/operation_check.h"

typedef MtfOperationCheck Check;

#define fail mtf_check_fail
#define input mtf_check_input
#define dim_name mtf_check_dimension_name

static bool check_same_dims(const Check *check, int k, GError **error) {
    if (check->operation->n_inputs <= k)
        return true;
    const MtfTensor *x = input(check, k), *like = input(check, k - 1);
    return (mtf_shape_contains(&x->shape, &like->shape) &&
            mtf_shape_contains(&like->shape, &x->shape)) ||
           fail(check, error, "\"%s\" must have the dimensions of \"%s\"", x->name, like->name);
}

static bool check_one_of(const Check *check, const char *what, double value, double most,
                         GError **error) {
    for (double allowed = 0; allowed <= most; allowed++)
        if (value == allowed)
            return true;
    return fail(check, error, "\"%s\" is %g and must be a whole number from 0 to %g", what, value,
                most);
}

bool mtf_check_slots(const Check *check, const MtfShape *shape, GError **error) {
    const MtfAttributes *a = &check->operation->attributes;
    int missing = mtf_shape_find(shape, a->dimension) < 0 ? a->dimension
                  : mtf_shape_find(shape, a->choices) < 0 ? a->choices
                                                          : -1;
    if (missing >= 0)
        return fail(check, error, "input \"%s\" has no dimension \"%s\"", input(check, 0)->name,
                    dim_name(check, missing));
    if (a->dimension == a->choices)
        return fail(check, error, "\"dimension\" and \"choices\" are both \"%s\"",
                    dim_name(check, a->choices));
    if (!check_one_of(check, "queue", a->queue, 1, error) ||
        !check_one_of(check, "priority", a->priority, 2, error))
        return false;
    if (a->priority != 0 && check->operation->n_inputs < 2)
        return fail(check, error, "\"priority\" %g asks for the gates as second input",
                    a->priority);
    return check_same_dims(check, 1, error);
}

/* The tensors that slots stand between. */
typedef struct {
    const MtfShape *slot;   /* groups, tokens, choices */
    const MtfShape *tokens; /* groups, tokens, features */
    const MtfShape *places; /* groups, places, features */
} Route;

/* Slots have one dimension alone; what only the tokens or only the places lack they share. */
static bool check_route(const Check *check, const Route *r, GError **error) {
    int choices = -1, n_places = 0;
    for (int i = 0; i < r->slot->rank; i++) {
        int dim = r->slot->dims[i];
        bool of_tokens = mtf_shape_find(r->tokens, dim) >= 0;
        if (!of_tokens && (choices >= 0 || mtf_shape_find(r->places, dim) >= 0))
            return fail(check, error,
                        "of the slots' dimensions all but one (the choices of a token) "
                        "must be those of tokens; \"%s\" is not",
                        dim_name(check, dim));
        choices = of_tokens ? choices : dim;
    }
    if (choices < 0)
        return fail(check, error,
                    "the slots need a dimension that the tokens lack: the choices of "
                    "each, of which there may be one");
    for (int i = 0; i < r->tokens->rank; i++)
        if (mtf_shape_find(r->slot, r->tokens->dims[i]) < 0 &&
            mtf_shape_find(r->places, r->tokens->dims[i]) < 0)
            return fail(check, error,
                        "dimension \"%s\" is neither one of the slots nor of the places",
                        dim_name(check, r->tokens->dims[i]));
    for (int i = 0; i < r->places->rank; i++)
        n_places += mtf_shape_find(r->tokens, r->places->dims[i]) < 0;
    return n_places > 0 || fail(check, error, "there must be places, dimensions that tokens lack");
}

bool mtf_check_slot_ids(const Check *check, const MtfShape *shape, GError **error) {
    const MtfShape *slot = &input(check, 1)->shape;
    int n_places = 0;
    for (int i = 0; i < shape->rank; i++)
        n_places += mtf_shape_find(slot, shape->dims[i]) < 0;
    if (n_places == 0)
        return fail(check, error, "there must be places, dimensions that \"%s\" lacks",
                    input(check, 1)->name);
    return check_same_dims(check, 1, error);
}

bool mtf_check_dispatch(const Check *check, const MtfShape *shape, GError **error) {
    Route route = { &input(check, 1)->shape, &input(check, 0)->shape, shape };
    return check_route(check, &route, error) && check_same_dims(check, 2, error);
}

bool mtf_check_combine(const Check *check, const MtfShape *shape, GError **error) {
    Route route = { &input(check, 1)->shape, shape, &input(check, 0)->shape };
    return check_route(check, &route, error) && check_same_dims(check, 2, error);
}

bool mtf_check_combine_gate_grad(const Check *check, const MtfShape *shape, GError **error) {
    const MtfShape *slot = &input(check, 2)->shape;
    Route route = { slot, &input(check, 1)->shape, &input(check, 0)->shape };
    if (!check_route(check, &route, error))
        return false;
    return (mtf_shape_contains(shape, slot) && mtf_shape_contains(slot, shape)) ||
           fail(check, error, "its dims must be those of \"%s\"", input(check, 2)->name);
}

/* Rows that end with one dimension of features behind those of `expert`, in their order. */
static bool are_rows(const MtfShape *rows, const MtfShape *expert) {
    bool equal = rows->rank == expert->rank + 1;
    for (int i = 0; equal && i < expert->rank; i++)
        equal = rows->dims[i] == expert->dims[i];
    return equal;
}

/* A matrix an expert, between the features of both rows. */
static bool are_matrices(const MtfShape *w, int experts, int in, int out) {
    return w->rank == 3 && w->dims[0] == experts && in != out && mtf_shape_find(w, in) > 0 &&
           mtf_shape_find(w, out) > 0;
}

static bool check_experts(const Check *check, const MtfShape *x, const MtfShape *y,
                          const MtfShape *w, GError **error) {
    const MtfShape *expert = &input(check, 2)->shape;
    int experts = check->operation->attributes.experts;
    if (expert->rank == 0 || !are_rows(x, expert) || !are_rows(y, expert) ||
        mtf_shape_find(x, experts) >= 0 || mtf_shape_find(y, experts) >= 0)
        return fail(check, error,
                    "rows on both sides must have the dimensions of \"%s\" in their "
                    "order and then one of their features, not \"%s\"",
                    input(check, 2)->name, dim_name(check, experts));
    return are_matrices(w, experts, x->dims[x->rank - 1], y->dims[y->rank - 1]) ||
           fail(check, error, "matrices must have \"%s\" first and then the features of both sides",
                dim_name(check, experts));
}

bool mtf_check_expert_einsum(const Check *check, const MtfShape *shape, GError **error) {
    return check_experts(check, &input(check, 0)->shape, shape, &input(check, 1)->shape, error);
}

bool mtf_check_expert_einsum_grad(const Check *check, const MtfShape *shape, GError **error) {
    return check_experts(check, &input(check, 0)->shape, &input(check, 1)->shape, shape, error);
}
