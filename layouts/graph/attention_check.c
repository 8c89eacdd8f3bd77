// SPDX-License-Identifier: GPL-3.0-or-later
/* Checks of rows of attention, linear or not: its inputs and masks, caches of keys and values, rotated positions. */
#include "layouts/graph/operation_check.h"

#include <inttypes.h>
#include <math.h>

typedef MtfOperationCheck Check;

#define fail mtf_check_fail
#define input mtf_check_input
#define dim_name mtf_check_dimension_name

bool mtf_check_causal(const Check *check, const MtfShape *shape, GError **error) {
    (void)shape;
    const MtfAttributes *a = &check->operation->attributes;
    return a->query != a->memory || fail(check, error, "\"query\" and \"memory\" are both \"%s\"",
                                         dim_name(check, a->query));
}

/* The query's features, its last dimension, are the last of input `k` too, which has positions
 * `position` and for the rest dimensions of the query. */
static bool check_attended(const Check *check, int k, int position, GError **error) {
    const MtfAttributes *a = &check->operation->attributes;
    const MtfShape *q = &input(check, 0)->shape, *x = &input(check, k)->shape;
    if (x->rank == 0 || x->dims[x->rank - 1] != a->dimension)
        return fail(check, error, "the last dimension of input \"%s\" must be \"%s\"",
                    input(check, k)->name, dim_name(check, a->dimension));
    if (mtf_shape_find(x, position) < 0)
        return fail(check, error, "input \"%s\" has no dimension \"%s\"", input(check, k)->name,
                    dim_name(check, position));
    for (int i = 0; i < x->rank; i++)
        if (x->dims[i] != position && mtf_shape_find(q, x->dims[i]) < 0)
            return fail(check, error, "input \"%s\" has dimension \"%s\", which \"%s\" lacks",
                        input(check, k)->name, dim_name(check, x->dims[i]), input(check, 0)->name);
    return true;
}

/* Whether input `k` has exactly the dimensions of `like`, in its order. */
static bool check_like(const Check *check, int k, const MtfShape *like, GError **error) {
    return mtf_shape_equal(&input(check, k)->shape, like) ||
           fail(check, error, "input \"%s\" has other dimensions than it must have",
                input(check, k)->name);
}

/* What is added to scores: along memory, which is its last dimension, and any others of theirs. */
static bool check_bias(const Check *check, int k, GError **error) {
    const MtfAttributes *a = &check->operation->attributes;
    const MtfShape *q = &input(check, 0)->shape, *x = &input(check, k)->shape;
    if (x->rank == 0 || x->dims[x->rank - 1] != a->memory)
        return fail(check, error,
                    "the last dimension of \"%s\", which is added to scores, must be "
                    "\"%s\"",
                    input(check, k)->name, dim_name(check, a->memory));
    for (int i = 0; i < x->rank - 1; i++)
        if (x->dims[i] == a->dimension || mtf_shape_find(q, x->dims[i]) < 0)
            return fail(check, error, "input \"%s\" has dimension \"%s\", which scores lack",
                        input(check, k)->name, dim_name(check, x->dims[i]));
    return a->factor != 0 ||
           fail(check, error, "where something is added to scores \"factor\" is not 0");
}

/* All that is added, inputs `first` and on. */
static bool check_biases(const Check *check, int first, GError **error) {
    for (int k = first; k < check->operation->n_inputs; k++)
        if (!check_bias(check, k, error))
            return false;
    return true;
}

/* What attention to anything asks for: which positions are seen is not judged here. */
static bool check_attention_inputs(const Check *check, const MtfShape *shape, GError **error) {
    const MtfAttributes *a = &check->operation->attributes;
    if (!mtf_check_causal(check, shape, error) || !check_attended(check, 0, a->query, error) ||
        !check_attended(check, 1, a->memory, error) ||
        !check_like(check, 2, &input(check, 1)->shape, error))
        return false;
    if (mtf_shape_find(shape, a->memory) >= 0)
        return fail(check, error, "input \"%s\" has dimension \"%s\", its \"memory\"",
                    input(check, 0)->name, dim_name(check, a->memory));
    if (mtf_shape_find(&input(check, 1)->shape, a->query) >= 0)
        return fail(check, error, "input \"%s\" has dimension \"%s\", its \"query\"",
                    input(check, 1)->name, dim_name(check, a->query));
    if (!(a->softcap >= 0 && a->softcap < 1e30))
        return fail(check, error, "\"softcap\" is %.17g and must be at least 0", a->softcap);
    return (a->window >= 0 && a->window < 0x1p53 && a->window == floor(a->window)) ||
           fail(check, error, "\"window\" is %.17g and must be a whole number, at least 0",
                a->window);
}

/* Memory in parts: queries and memory have them among their heads. The gradient of a bias knows no
 * parts, but what has a turn is made when gradients are there. */
static bool check_parts(const Check *check, bool has_bias, GError **error) {
    const MtfAttributes *a = &check->operation->attributes;
    double most = a->parts < 0 ? 0 : (double)mtf_graph_size(check->graph, a->parts);
    if (!(a->turn >= 0 && a->turn <= most && a->turn == floor(a->turn)))
        return fail(check, error, "\"turn\" is %.17g and must be a whole number up to %g", a->turn,
                    most);
    if (a->striped != 0 && (a->striped != 1 || a->turn == 0 || a->window > 0 || a->rate > 0))
        return fail(check, error,
                    "\"striped\" is 0, or 1 in a \"turn\" without \"window\" and \"dropout\"");
    if (a->parts < 0)
        return true;
    if (a->parts == a->query || a->parts == a->memory || a->parts == a->dimension ||
        mtf_shape_find(&input(check, 1)->shape, a->parts) < 0)
        return fail(check, error, "\"parts\" is \"%s\", which is no dimension of heads of \"%s\"",
                    dim_name(check, a->parts), input(check, 1)->name);
    return !has_bias || a->causal == 0 || a->turn > 0 ||
           fail(check, error,
                "scores of memory in \"parts\" are not \"causal\" where they have "
                "something added");
}

static bool check_attention(const Check *check, const MtfShape *shape, GError **error) {
    const MtfAttributes *a = &check->operation->attributes;
    if (!check_attention_inputs(check, shape, error))
        return false;
    if (!mtf_check_flag(check, "causal", a->causal, error))
        return false;
    if (!(a->rate >= 0 && a->rate < 1))
        return fail(check, error, "\"dropout\" is %g and must be at least 0 and below 1", a->rate);
    return a->window == 0 || a->causal == 1 ||
           fail(check, error, "a \"window\" looks back only: \"causal\" must be 1");
}

bool mtf_check_attention(const Check *check, const MtfShape *shape, GError **error) {
    bool has_bias = check->operation->n_inputs > 3;
    return check_attention(check, shape, error) && check_parts(check, has_bias, error) &&
           check_biases(check, 3, error);
}

/* Inputs `o` and the next one are results of attention: like the first input, and without its features. */
static bool check_results(const Check *check, int o, const MtfShape *shape, GError **error) {
    MtfShape rest = *shape;
    rest.dims[--rest.rank] = 0;
    return check_like(check, o, shape, error) && check_like(check, o + 1, &rest, error);
}

/* (q, k, v, o, lse[, bias[, mask]]) */
bool mtf_check_attention_further(const Check *check, const MtfShape *shape, GError **error) {
    bool has_bias = check->operation->n_inputs > 5;
    return check_attention(check, shape, error) && check_parts(check, has_bias, error) &&
           check_results(check, 3, shape, error) && check_biases(check, 5, error);
}

/* Input `k`, the position of a text, has dimensions of input 0 and neither of `first` and `second`. */
static bool check_positions(const Check *check, int k, int first, int second, GError **error) {
    const MtfShape *positions = &input(check, k)->shape;
    for (int i = 0; i < positions->rank; i++)
        if (positions->dims[i] == first || positions->dims[i] == second)
            return fail(check, error,
                        "input \"%s\" has dimension \"%s\", along which positions count",
                        input(check, k)->name, dim_name(check, positions->dims[i]));
    return mtf_check_within(check, positions, &input(check, 0)->shape,
                            "in the position but not in the first input", error);
}

bool mtf_check_cached_attention(const Check *check, const MtfShape *shape, GError **error) {
    const MtfAttributes *a = &check->operation->attributes;
    return check_attention_inputs(check, shape, error) &&
           check_positions(check, 3, a->query, a->dimension, error);
}

/* (x, cache, position): the cache has x's dimensions, `to` in place of `from`. */
bool mtf_check_cache_update(const Check *check, const MtfShape *shape, GError **error) {
    const MtfAttributes *a = &check->operation->attributes;
    const MtfShape *x = &input(check, 0)->shape;
    if (mtf_shape_find(x, a->from) < 0 || mtf_shape_find(shape, a->to) < 0)
        return fail(check, error, "\"%s\" must have dimension \"%s\", and its cache \"%s\"",
                    input(check, 0)->name, dim_name(check, a->from), dim_name(check, a->to));
    if (!mtf_shape_equal(&input(check, 1)->shape, shape) || x->rank != shape->rank)
        return fail(check, error, "the cache \"%s\" must have its dims, as many as \"%s\"",
                    input(check, 1)->name, input(check, 0)->name);
    for (int i = 0; i < x->rank; i++)
        if (x->dims[i] != a->from && mtf_shape_find(shape, x->dims[i]) < 0)
            return fail(check, error, "the cache \"%s\" lacks dimension \"%s\" of \"%s\"",
                        input(check, 1)->name, dim_name(check, x->dims[i]), input(check, 0)->name);
    return check_positions(check, 2, a->from, a->to, error);
}

/* (q, k, v, o, lse, do[, bias[, mask]]): o and do like q, lse like q without its last dimension. */
bool mtf_check_attention_grad(const Check *check, const MtfShape *shape, GError **error) {
    bool has_bias = check->operation->n_inputs > 6;
    return check_attention(check, shape, error) && check_parts(check, has_bias, error) &&
           check_results(check, 3, shape, error) && check_like(check, 5, shape, error) &&
           check_biases(check, 6, error);
}

/* How many features are rotated, and that they make pairs. */
static bool check_rotated(const Check *check, GError **error) {
    const MtfAttributes *a = &check->operation->attributes;
    double features = (double)mtf_graph_size(check->graph, a->dimension);
    double rotated = a->rotated == 0 ? features : a->rotated;
    if (rotated < 0 || rotated > features || rotated != floor(rotated))
        return fail(check, error, "\"rotated\" is %g and must be a whole number from 0 to %g",
                    a->rotated, features);
    return fmod(rotated, 2) == 0 ||
           fail(check, error, "%g features of \"%s\" do not make pairs; give an even \"rotated\"",
                rotated, dim_name(check, a->dimension));
}

/* Numbers above 0, one a pair, where there are any. */
static bool check_divisors(const Check *check, const char *name, const char *text, GError **error) {
    const MtfAttributes *a = &check->operation->attributes;
    int64_t n = 0, features = (int64_t)a->rotated;
    if (features == 0)
        features = mtf_graph_size(check->graph, a->dimension);
    if (text == NULL)
        return true;
    for (char *end; *text != '\0'; text = end, n++) {
        double number = g_ascii_strtod(text, &end);
        if (end == text || !(number > 0) || !isfinite(number))
            return fail(check, error, "\"%s\" must be numbers above 0 between spaces", name);
    }
    return n == features / 2 ||
           fail(check, error, "\"%s\" has %" PRId64 " numbers for %" PRId64 " pairs", name, n,
                features / 2);
}

static bool check_length_dependence(const Check *check, GError **error) {
    const MtfAttributes *a = &check->operation->attributes;
    if (a->growth != 0 && !(a->growth >= 1 && a->context > 0 && a->stretch == 1))
        return fail(check, error,
                    "\"growth\" is %.17g and must be 0, or at least 1 beside a \"context\" and no "
                    "\"stretch\"",
                    a->growth);
    if (a->divisors != NULL && (a->growth != 0 || a->stretch != 1))
        return fail(check, error, "\"divisors\" stand beside no \"growth\" and no \"stretch\"");
    if (a->long_divisors != NULL && !(a->divisors != NULL && a->context > 0))
        return fail(check, error,
                    "\"long_divisors\" need \"divisors\" for texts within a \"context\"");
    return check_divisors(check, "divisors", a->divisors, error) &&
           check_divisors(check, "long_divisors", a->long_divisors, error);
}

bool mtf_check_rotary(const Check *check, const MtfShape *shape, GError **error) {
    (void)shape;
    const MtfAttributes *a = &check->operation->attributes;
    if (a->position == a->dimension)
        return fail(check, error, "\"position\" and \"dimension\" are both \"%s\"",
                    dim_name(check, a->position));
    if (!(a->base > 0) || !(a->stretch > 0) || !(a->gain > 0) || !(a->context >= 0))
        return fail(check, error,
                    "\"base\", \"stretch\" and \"gain\" must be above 0, \"context\" not below");
    if (a->context > 0 && !(a->low < a->high))
        return fail(check, error, "\"low\" is %g and must be below \"high\", %g", a->low, a->high);
    return mtf_check_flag(check, "ramp", a->ramp, error) &&
           mtf_check_flag(check, "adjacent", a->adjacent, error) && check_rotated(check, error) &&
           check_length_dependence(check, error) &&
           (check->operation->n_inputs < 2 ||
            check_positions(check, 1, a->position, a->dimension, error)) &&
           (check->operation->n_inputs < 3 ||
            check_positions(check, 2, a->position, a->dimension, error));
}

/* ---- Linear attention -------------------------------------------------------------------------- */

/* Heads h and further heads g that share queries and keys, in any order but for the last dimension:
 *
 *     v, o, do [places, h, g, values]     q, k [places, h, keys]     log, beta [places, h, g]
 *     state [h, g, keys, values]          of scans: step like v, rate [keys, values]
 */
static bool check_values(const Check *check, const MtfShape *v, GError **error) {
    const MtfAttributes *a = &check->operation->attributes;
    if (a->dimension == a->keys)
        return fail(check, error, "\"dimension\" and \"keys\" are both \"%s\"",
                    dim_name(check, a->keys));
    if (mtf_shape_find(v, a->keys) >= 0)
        return fail(check, error, "input \"%s\" has dimension \"%s\", its \"keys\"",
                    input(check, 0)->name, dim_name(check, a->keys));
    if (v->rank < 2 || v->dims[v->rank - 1] == a->dimension || mtf_shape_find(v, a->dimension) < 0)
        return fail(check, error,
                    "input \"%s\" must have \"%s\" among its dimensions, and values as the last",
                    input(check, 0)->name, dim_name(check, a->dimension));
    return true;
}

/* Places, some of the heads, and keys last; queries and keys alike. */
static bool check_queries(const Check *check, const MtfShape *heads, GError **error) {
    const MtfAttributes *a = &check->operation->attributes;
    MtfShape q = input(check, 1)->shape;
    if (q.rank == 0 || q.dims[q.rank - 1] != a->keys)
        return fail(check, error, "the last dimension of input \"%s\" must be \"%s\"",
                    input(check, 1)->name, dim_name(check, a->keys));
    q.rank--;
    if (mtf_shape_find(&q, a->dimension) < 0)
        return fail(check, error, "input \"%s\" has no dimension \"%s\"", input(check, 1)->name,
                    dim_name(check, a->dimension));
    return mtf_check_within(check, &q, heads, "in the queries but not among the heads of values",
                            error) &&
           check_like(check, 2, &input(check, 1)->shape, error);
}

/* v, q, k and log; and beta, input `beta`, where there is one, or in its place a scan's rate. */
static bool check_inputs(const Check *check, const MtfShape *v, int beta, GError **error) {
    MtfShape heads = *v;
    if (!check_values(check, v, error))
        return false;
    heads.dims[--heads.rank] = 0;
    if (check->row->scans) {
        MtfShape rate = { 2, { check->operation->attributes.keys, v->dims[v->rank - 1] } };
        return check_queries(check, &heads, error) && check_like(check, 3, v, error) &&
               check_like(check, beta, &rate, error);
    }
    return check_queries(check, &heads, error) && check_like(check, 3, &heads, error) &&
           (check->operation->n_inputs <= beta || check_like(check, beta, &heads, error));
}

bool mtf_check_linear_attention(const Check *check, const MtfShape *shape, GError **error) {
    const MtfAttributes *a = &check->operation->attributes;
    if (!check_inputs(check, shape, 4, error) || !mtf_check_blocks(check, a->dimension, error))
        return false;
    return check->operation->n_inputs == 4 || a->blocks <= 1 ||
           fail(check, error, "what beta corrects is in one of \"blocks\", not in %g", a->blocks);
}

bool mtf_check_linear_attention_grad(const Check *check, const MtfShape *shape, GError **error) {
    return check_inputs(check, shape, 5, error) && check_like(check, 4, shape, error);
}

bool mtf_check_kept_linear_attention(const Check *check, const MtfShape *shape, GError **error) {
    const MtfAttributes *a = &check->operation->attributes;
    int values = shape->dims[shape->rank - 1];
    MtfShape state = *shape;
    mtf_shape_remove(&state, a->dimension);
    state.dims[state.rank - 1] = a->keys;
    mtf_shape_append(&state, values);
    return check_inputs(check, shape, 5, error) && check_like(check, 4, &state, error);
}
