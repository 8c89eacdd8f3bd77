// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/pipeline/pipeline_bound.h"

#include <math.h>

/* The first and the last stage of a rank. */
static void find_ends(const MtfPipelineCase *c, const int *rank_of_stage, int rank, int *first,
                      int *last) {
    *first = *last = -1;
    for (int s = 0; s < c->ranks * c->chunks; s++) {
        if (rank_of_stage[s] != rank)
            continue;
        *first = *first < 0 ? s : *first;
        *last = s;
    }
}

/* From the beginning of a forward at stage `first` to the end of it at the last stage, and back until
 * the gradient is at stage `last`. */
static double way_there_and_back(const MtfPipelineCase *c, const int *rank_of_stage, int first,
                                 int last) {
    int stages = c->ranks * c->chunks;
    double way = 0;
    for (int s = first; s < stages; s++) {
        bool crosses = s + 1 < stages && rank_of_stage[s] != rank_of_stage[s + 1];
        way += c->times[s].forward + (crosses ? c->times[s].transfer_forward : 0);
    }
    for (int s = last + 1; s < stages; s++)
        way += c->times[s].input_gradient +
               (rank_of_stage[s] != rank_of_stage[s - 1] ? c->times[s].transfer_backward : 0);
    return way;
}

/* The most seconds of forwards that the rank can do before its first input gradient. */
static double forwards_at_first(const MtfPipelineCase *c, const int *rank_of_stage, int rank) {
    double longest = 0, smallest = INFINITY, all = 0;
    for (int s = 0; s < c->ranks * c->chunks; s++) {
        if (rank_of_stage[s] != rank)
            continue;
        longest = MAX(longest, c->times[s].forward);
        smallest = MIN(smallest, c->memory[s].forward);
        all += c->times[s].forward * c->microbatches;
    }
    if (!isfinite(c->cap) || smallest <= 0)
        return all;
    return MIN(all, floor(c->cap / smallest * (1 + 1e-9)) * longest);
}

/* The span by the room that memory is for the time that micro-batches hold it. */
static double span_of_room(const MtfPipelineCase *c, const int *rank_of_stage, int rank) {
    double room = 0;
    for (int s = 0; s < c->ranks * c->chunks && isfinite(c->cap); s++) {
        if (rank_of_stage[s] != rank)
            continue;
        const MtfStageMemory *share = &c->memory[s];
        double held = way_there_and_back(c, rank_of_stage, s, s) + c->times[s].input_gradient;
        room += share->forward * held +
                MAX(share->forward + share->input_gradient, 0) * c->times[s].weight_gradient;
    }
    return c->microbatches * room / (isfinite(c->cap) ? c->cap * (1 + 1e-9) : 1);
}

MtfPipelineBound mtf_pipeline_bound(const MtfPipelineCase *c, const int *rank_of_stage) {
    MtfPipelineBound bound = { 0, 0 };
    for (int r = 0; r < c->ranks; r++) {
        int first, last;
        double busy = 0, before = 0;
        find_ends(c, rank_of_stage, r, &first, &last);
        if (first < 0)
            continue;
        for (int s = 0; s < c->ranks * c->chunks; s++)
            if (rank_of_stage[s] == r)
                busy += c->microbatches * (c->times[s].forward + c->times[s].input_gradient +
                                           c->times[s].weight_gradient);
        for (int s = 0; s < first; s++)
            before += c->times[s].forward +
                      (rank_of_stage[s] != rank_of_stage[s + 1] ? c->times[s].transfer_forward : 0);
        double wait = way_there_and_back(c, rank_of_stage, first, last) -
                      forwards_at_first(c, rank_of_stage, r);
        double span = MAX(busy + MAX(wait, 0), span_of_room(c, rank_of_stage, r));
        bound.span = MAX(bound.span, span);
        bound.makespan = MAX(bound.makespan, before + span);
    }
    return bound;
}

double mtf_pipeline_least_cap(const MtfPipelineCase *c, const int *rank_of_stage) {
    double least = 0;
    for (int r = 0; r < c->ranks; r++) {
        double held = 0;
        for (int s = 0; s < c->ranks * c->chunks; s++)
            held += rank_of_stage[s] == r ? c->memory[s].forward : 0;
        least = MAX(least, held);
    }
    return least;
}
