// SPDX-License-Identifier: GPL-3.0-or-later
/* Attention: what it means, from all scores at once; and caches of keys and values. */
#include "layouts/graph/random.h"
#include "tests/support/reference/reference_point.h"

#include <math.h>
#include <string.h>

/* The sum over features of x y where we stand. */
static double over_features(Point *p, int x, int y) {
    double sum = 0;
    for (int64_t f = 0; f < size_of(p, p->a->dimension); f++) {
        p->coordinate[p->a->dimension] = f;
        sum += value_at(p, x) * value_at(p, y);
    }
    return sum;
}

/* Which part of memory is met where we stand: with a turn that many before the queries', round the end. */
static int64_t part_of_memory(const Point *p) {
    int64_t part = p->a->parts >= 0 ? p->coordinate[p->a->parts] : 0;
    for (int64_t back = 0; back < (int64_t)p->a->turn; back++)
        part = part > 0 ? part - 1 : size_of(p, p->a->parts) - 1;
    return part;
}

static bool looks(const Point *p) {
    bool cached = p->operation->kind == MTF_OP_CACHED_ATTENTION;
    int64_t behind = p->coordinate[p->a->query] - p->coordinate[p->a->memory];
    if (cached)
        behind += (int64_t)value_at(p, p->operation->inputs[3]);
    int64_t part = p->a->parts >= 0 ? p->coordinate[p->a->parts] : 0;
    int64_t parts = part_of_memory(p) - (p->a->turn > 0 ? part : 0);
    if (p->a->striped != 0)
        behind = behind * size_of(p, p->a->parts) - parts;
    else
        behind -= parts * size_of(p, p->a->memory);
    return (p->a->causal == 0 && !cached) ||
           (behind >= 0 && (p->a->window == 0 || (double)behind < p->a->window));
}

/* What is added to the score where we stand: inputs `bias` and on, where the operation has so many. */
static double bias_at(const Point *p, int bias) {
    bool further = p->operation->kind == MTF_OP_ATTENTION_FURTHER;
    double sum = 0;
    for (int k = bias + (further ? 2 : 0); k < p->operation->n_inputs; k++)
        sum += p->operation->kind != MTF_OP_CACHED_ATTENTION ? value_at(p, p->operation->inputs[k])
                                                             : 0;
    return sum;
}

/* The score where we stand, and how fast it grows with factor q k. */
static double score_of(Point *p, int q, int k, double *growth) {
    double s = p->a->factor * over_features(p, q, k), cap = p->a->softcap;
    double t = cap > 0 ? tanh(s / cap) : 0;
    *growth = 1 - t * t;
    return cap > 0 ? cap * t : s;
}

/* What the share where we stand is multiplied by: its number counts heads, then queries (their parts, where they
 * have a turn), then parts of memory, then memory. */
static double kept_share(const Point *p, const MtfShape *rest) {
    const char *name = p->a->stream != NULL ? p->a->stream : p->operation->name;
    int64_t number = 0;
    if (p->operation->kind == MTF_OP_CACHED_ATTENTION || p->a->rate == 0)
        return 1;
    for (int i = 0; i < rest->rank; i++)
        if (rest->dims[i] != p->a->query && rest->dims[i] != p->a->parts)
            number = number * size_of(p, rest->dims[i]) + p->coordinate[rest->dims[i]];
    if (p->a->turn > 0)
        number = number * size_of(p, p->a->parts) + p->coordinate[p->a->parts];
    number = number * size_of(p, p->a->query) + p->coordinate[p->a->query];
    if (p->a->parts >= 0)
        number = number * size_of(p, p->a->parts) + part_of_memory(p);
    number = number * size_of(p, p->a->memory) + p->coordinate[p->a->memory];
    MtfRandom random = mtf_random_stream(p->reference->seed, name,
                                         p->step | (uint64_t)p->reference->element << 40);
    return mtf_random_keeps(&random, p->a->rate, number) ? 1 / (1 - p->a->rate) : 0;
}

/* Each query: its largest score first, as is usual. */
void mtf_reference_attention(Point *p) {
    const int *in = p->operation->inputs, *out = p->operation->outputs;
    double *o = p->reference->values[out[0]], *lse = p->reference->values[out[1]];
    int64_t keys = size_of(p, p->a->memory), features = size_of(p, p->a->dimension);
    const MtfShape *rest = &mtf_graph_tensor(p->reference->graph, out[1])->shape;
    const MtfShape *whole = &mtf_graph_tensor(p->reference->graph, out[0])->shape;
    g_autofree double *share = g_new(double, (gsize)keys);
    for (int64_t i = 0; i < mtf_graph_elements(p->reference->graph, rest); i++) {
        double max = -INFINITY, sum = 0, growth;
        stand_at(p, rest, i);
        for (int64_t t = 0; t < keys; t++) {
            p->coordinate[p->a->memory] = t;
            share[t] = looks(p) ? score_of(p, in[0], in[1], &growth) + bias_at(p, 3) : -INFINITY;
            max = fmax(max, share[t] <= MTF_MASKED_SCORE ? -INFINITY : share[t]);
        }
        for (int64_t t = 0; t < keys; t++)
            sum += share[t] = share[t] <= MTF_MASKED_SCORE ? 0 : exp(share[t] - max);
        lse[i] = sum > 0 ? max + log(sum) : -INFINITY;
        for (int64_t t = 0; t < keys; t++) {
            p->coordinate[p->a->memory] = t;
            share[t] *= kept_share(p, rest);
        }
        for (int64_t f = 0; f < features; f++) {
            double total = 0;
            p->coordinate[p->a->dimension] = f;
            for (int64_t t = 0; t < keys; t++) {
                p->coordinate[p->a->memory] = t;
                total += share[t] > 0 ? share[t] / sum * value_at(p, in[2]) : 0;
            }
            o[offset_of(p, whole)] = sum > 0 ? total : 0;
        }
    }
}

/* o and lse of both, by their shares e^lse of the sum: of nothing and nothing 0 and -infinity. */
void mtf_reference_attention_further(Point *p) {
    const MtfGraph *graph = p->reference->graph;
    const int *in = p->operation->inputs, *out = p->operation->outputs;
    const MtfShape *rest = &mtf_graph_tensor(graph, out[1])->shape;
    const MtfShape *whole = &mtf_graph_tensor(graph, out[0])->shape;
    mtf_reference_attention(p);
    for (int64_t i = 0; i < mtf_graph_elements(graph, rest); i++) {
        double *lse = &p->reference->values[out[1]][i];
        stand_at(p, rest, i);
        double before = value_at(p, in[4]), here = *lse, max = fmax(before, here);
        bool none = max <= MTF_MASKED_SCORE;
        *lse = none ? max : max + log(exp(before - max) + exp(here - max));
        for (int64_t f = 0; f < size_of(p, p->a->dimension); f++) {
            p->coordinate[p->a->dimension] = f;
            double *o = &p->reference->values[out[0]][offset_of(p, whole)];
            *o = none ? 0 : *o * exp(here - *lse) + value_at(p, in[3]) * exp(before - *lse);
        }
    }
}

/* Every pair of a query and a position of memory, from (q, k, v, o, lse, do[, bias]). */
void mtf_reference_attention_grad(Point *p) {
    const MtfGraph *graph = p->reference->graph;
    const int *in = p->operation->inputs, *out = p->operation->outputs;
    const MtfShape *rest = &mtf_graph_tensor(graph, in[4])->shape;
    for (int k = 0; k < p->operation->n_outputs; k++) {
        const MtfShape *shape = &mtf_graph_tensor(graph, out[k])->shape;
        memset(p->reference->values[out[k]], 0,
               (size_t)mtf_graph_elements(graph, shape) * sizeof(double));
    }
    for (int64_t i = 0; i < mtf_graph_elements(graph, rest); i++)
        for (int64_t t = 0; t < size_of(p, p->a->memory); t++) {
            stand_at(p, rest, i);
            p->coordinate[p->a->memory] = t;
            if (!looks(p))
                continue;
            double growth, score = score_of(p, in[0], in[1], &growth) + bias_at(p, 6);
            if (score <= MTF_MASKED_SCORE)
                continue;
            double share = exp(score - value_at(p, in[4]));
            double kept = kept_share(p, rest);
            double slope =
                share * (kept * over_features(p, in[5], in[2]) - over_features(p, in[5], in[3]));
            if (p->operation->n_outputs > 3)
                p->reference
                    ->values[out[3]][offset_of(p, &mtf_graph_tensor(graph, out[3])->shape)] +=
                    slope;
            slope *= p->a->factor * growth;
            for (int64_t f = 0; f < size_of(p, p->a->dimension); f++) {
                p->coordinate[p->a->dimension] = f;
                int64_t query = offset_of(p, &mtf_graph_tensor(graph, in[0])->shape);
                int64_t key = offset_of(p, &mtf_graph_tensor(graph, in[1])->shape);
                p->reference->values[out[0]][query] += slope * value_at(p, in[1]);
                p->reference->values[out[1]][key] += slope * value_at(p, in[0]);
                p->reference->values[out[2]][key] += kept * share * value_at(p, in[5]);
            }
        }
}

/* (x, cache, position), element by element of the cache. */
void mtf_reference_cache_update(Point *p) {
    const int *in = p->operation->inputs;
    const MtfShape *shape = &mtf_graph_tensor(p->reference->graph, p->operation->outputs[0])->shape;
    double *out = p->reference->values[p->operation->outputs[0]];
    for (int64_t i = 0; i < mtf_graph_elements(p->reference->graph, shape); i++) {
        stand_at(p, shape, i);
        int64_t token = p->coordinate[p->a->to] - (int64_t)value_at(p, in[2]);
        bool new = token >= 0 && token < size_of(p, p->a->from);
        p->coordinate[p->a->from] = new ? token : 0;
        out[i] = value_at(p, new ? in[0] : in[1]);
    }
}
