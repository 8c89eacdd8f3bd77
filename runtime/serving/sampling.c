// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/serving/sampling.h"

#include "layouts/graph/random.h"

#include <math.h>
#include <stdlib.h>

#define STREAM "generate"

typedef struct {
    double score;
    int64_t token;
} Ranked;

/* Highest first, equals by token. */
static int compare_ranked(const void *a, const void *b) {
    const Ranked *x = a, *y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return (x->token > y->token) - (x->token < y->token);
}

static int64_t highest_token(const double *scores, int64_t n) {
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++)
        if (scores[i] > scores[best])
            best = i;
    return best;
}

/* The last that stays, in the order of compare_ranked. */
static Ranked last_kept(const MtfSampling *s, const double *scores, int64_t n) {
    g_autofree Ranked *ranked = g_new(Ranked, n);
    double total = 0, sum = 0;
    for (int64_t i = 0; i < n; i++)
        ranked[i] = (Ranked){ scores[i], i };
    qsort(ranked, (size_t)n, sizeof *ranked, compare_ranked);
    int64_t kept = s->top_k > 0 ? MIN(s->top_k, n) : n;
    double highest = ranked[0].score;
    for (int64_t i = 0; i < kept; i++)
        total += exp((ranked[i].score - highest) / s->temperature);
    int64_t last = 0;
    while (last < kept - 1) {
        sum += exp((ranked[last].score - highest) / s->temperature);
        if (sum >= s->top_p * total)
            break;
        last++;
    }
    return ranked[last];
}

int64_t mtf_sampling_draw(const MtfSampling *s, const double *scores, int64_t n, double share) {
    int64_t best = highest_token(scores, n);
    if (s->temperature == 0)
        return best;
    bool cut = s->top_k > 0 || s->top_p < 1;
    Ranked limit = cut ? last_kept(s, scores, n) : (Ranked){ 0 };
    g_autofree double *parts = g_new(double, n);
    double total = 0, sum = 0;
    for (int64_t i = 0; i < n; i++) {
        bool kept = !cut || compare_ranked(&(Ranked){ scores[i], i }, &limit) <= 0;
        parts[i] = kept ? exp((scores[i] - scores[best]) / s->temperature) : 0;
        total += parts[i];
    }
    /* Rounding may leave the sum below `share` of the total: the last with a part is drawn then. */
    int64_t last = best;
    for (int64_t i = 0; i < n; i++) {
        sum += parts[i];
        if (parts[i] > 0)
            last = i;
        if (sum > share * total)
            return i;
    }
    return last;
}

int64_t mtf_sampling_draw_at(const MtfSampling *s, const double *scores, int64_t n, int64_t seed,
                             int64_t choice, int64_t number) {
    uint64_t step = mtf_random_step((uint64_t)number, choice);
    MtfRandom random = mtf_random_stream((uint64_t)seed, STREAM, step);
    return mtf_sampling_draw(s, scores, n, mtf_random_uniform(&random, 0));
}
