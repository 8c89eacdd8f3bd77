// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/pipeline/pipeline_string.h"

#include <math.h>
#include <string.h>

enum { FORWARD, INPUT, WEIGHT, KINDS };

static MtfPipelineString *new_string(int ranks, int chunks, int microbatches) {
    MtfPipelineString *string = g_new0(MtfPipelineString, 1);
    string->ranks = ranks;
    string->chunks = chunks;
    string->microbatches = microbatches;
    string->length = KINDS * chunks * microbatches;
    string->stage = g_new(int, (gsize)ranks *(gsize)chunks);
    string->letter = g_new0(uint8_t, (gsize)ranks * (gsize)string->length);
    return string;
}

MtfPipelineString *mtf_pipeline_string_copy(const MtfPipelineString *string) {
    MtfPipelineString *copy = new_string(string->ranks, string->chunks, string->microbatches);
    memcpy(copy->stage, string->stage,
           (gsize)string->ranks * (gsize)string->chunks * sizeof *copy->stage);
    memcpy(copy->letter, string->letter, (gsize)string->ranks * (gsize)string->length);
    return copy;
}

void mtf_pipeline_string_free(MtfPipelineString *string) {
    if (string == NULL)
        return;
    g_free(string->stage);
    g_free(string->letter);
    g_free(string);
}

/* Chunks are numbered along the network. */
static void number_chunks(MtfPipelineString *string, const MtfPipelineOrder *order, int *chunk) {
    g_autofree int *next = g_new0(int, (gsize)order->ranks);
    for (int s = 0; s < order->stages; s++) {
        int rank = order->rank_of_stage[s];
        chunk[s] = next[rank]++;
        string->stage[rank * string->chunks + chunk[s]] = s;
    }
}

MtfPipelineString *mtf_pipeline_string_new(const MtfPipelineOrder *order) {
    int chunks = order->stages / order->ranks;
    MtfPipelineString *string = new_string(order->ranks, chunks, order->microbatches);
    g_autofree int *chunk = g_new(int, (gsize)order->stages);
    number_chunks(string, order, chunk);
    for (int r = 0; r < order->ranks; r++) {
        uint8_t *letter = mtf_pipeline_letters(string, r);
        for (int i = 0; i < mtf_pipeline_length(order, r); i++) {
            const MtfPipelineAction *action = mtf_pipeline_action(order, r, i);
            int first = KINDS * chunk[action->stage];
            if (action->work == MTF_WORK_FORWARD)
                *letter++ = (uint8_t)(first + FORWARD);
            if (mtf_work_makes_input_gradient(action->work))
                *letter++ = (uint8_t)(first + INPUT);
            if (mtf_work_ends_microbatch(action->work))
                *letter++ = (uint8_t)(first + WEIGHT);
        }
    }
    return string;
}

MtfPipelineOrder *mtf_pipeline_string_order(const MtfPipelineString *string) {
    static const MtfPipelineWork works[KINDS] = { MTF_WORK_FORWARD, MTF_WORK_INPUT_GRADIENT,
                                                  MTF_WORK_WEIGHT_GRADIENT };
    int stages = string->ranks * string->chunks;
    MtfPipelineOrder *order =
        mtf_pipeline_order_new(string->ranks, stages, string->microbatches, MTF_STAGES_LOOP);
    for (int r = 0; r < string->ranks; r++)
        for (int c = 0; c < string->chunks; c++)
            order->rank_of_stage[string->stage[r * string->chunks + c]] = r;
    g_autofree int *count = g_new(int, KINDS *(gsize)string->chunks);
    for (int r = 0; r < string->ranks; r++) {
        memset(count, 0, KINDS * (gsize)string->chunks * sizeof *count);
        for (int i = 0; i < string->length; i++) {
            int letter = mtf_pipeline_letters(string, r)[i];
            mtf_pipeline_order_add(order, works[letter % KINDS],
                                   string->stage[r * string->chunks + letter / KINDS],
                                   count[letter]++);
        }
    }
    return order;
}

/* What a letter of a rank takes, holds and waits for. */
typedef struct {
    double seconds, memory;
    int stage;
    int from; /* the stage whose result it waits for; -1: none */
    int from_rank,
        to_rank; /* of that stage; of the stage that waits for this one's result, or -1 */
    double transfer;
} Letter;

struct MtfPipelineScorer {
    const MtfPipelineCase *the_case;
    int ranks, letters, microbatches, length;
    Letter *letter;          /* [ranks * letters] */
    int *count, *at, *stack; /* [ranks * letters], [ranks], [ranks] */
    bool *stacked;
    double *time, *first;
    double *end[2]; /* [stages * microbatches] of forwards and input gradients; NAN before */
    int *place[2];  /* [stages * microbatches]: where they stand in the string last scored */
    int *wait, waits;
};

static void describe_letter(MtfPipelineScorer *scorer, const MtfPipelineString *string,
                            const int *rank_of_stage, int rank, int l) {
    const MtfPipelineCase *c = scorer->the_case;
    int stages = string->ranks * string->chunks, kind = l % KINDS;
    Letter *letter = &scorer->letter[rank * scorer->letters + l];
    int s = string->stage[rank * string->chunks + l / KINDS];
    const MtfStageTimes *t = &c->times[s];
    const MtfStageMemory *m = &c->memory[s];
    int from = kind == FORWARD ? s - 1 : kind == INPUT && s + 1 < stages ? s + 1 : -1;
    int to = kind == FORWARD ? s + 1 : kind == INPUT ? s - 1 : -1;
    *letter = (Letter){ .stage = s, .from = from, .from_rank = -1, .to_rank = -1 };
    letter->seconds = kind == FORWARD ? t->forward
                      : kind == INPUT ? t->input_gradient
                                      : t->weight_gradient;
    letter->memory = kind == FORWARD ? m->forward
                     : kind == INPUT ? m->input_gradient
                                     : m->weight_gradient;
    if (from >= 0)
        letter->from_rank = rank_of_stage[from];
    if (to >= 0 && to < stages)
        letter->to_rank = rank_of_stage[to];
    if (from >= 0 && letter->from_rank != rank)
        letter->transfer =
            kind == FORWARD ? c->times[from].transfer_forward : c->times[from].transfer_backward;
}

MtfPipelineScorer *mtf_pipeline_scorer_new(const MtfPipelineString *string,
                                           const MtfPipelineCase *the_case) {
    MtfPipelineScorer *scorer = g_new0(MtfPipelineScorer, 1);
    gsize ranks = (gsize)string->ranks, letters = KINDS * (gsize)string->chunks;
    gsize stages = ranks * (gsize)string->chunks, pairs = stages * (gsize)string->microbatches;
    scorer->the_case = the_case;
    scorer->ranks = string->ranks;
    scorer->letters = (int)letters;
    scorer->microbatches = string->microbatches;
    scorer->length = string->length;
    scorer->letter = g_new0(Letter, ranks * letters);
    scorer->count = g_new0(int, ranks *letters);
    scorer->at = g_new0(int, ranks);
    scorer->stack = g_new0(int, ranks);
    scorer->stacked = g_new0(bool, ranks);
    scorer->time = g_new0(double, ranks);
    scorer->first = g_new0(double, ranks);
    scorer->end[0] = g_new(double, pairs);
    scorer->end[1] = g_new(double, pairs);
    scorer->place[0] = g_new0(int, pairs);
    scorer->place[1] = g_new0(int, pairs);
    scorer->wait = g_new0(int, ranks *(gsize)string->length);
    g_autofree int *rank_of_stage = g_new(int, stages);
    for (gsize i = 0; i < stages; i++)
        rank_of_stage[string->stage[i]] = (int)i / string->chunks;
    for (int r = 0; r < string->ranks; r++)
        for (int l = 0; l < (int)letters; l++)
            describe_letter(scorer, string, rank_of_stage, r, l);
    return scorer;
}

void mtf_pipeline_scorer_free(MtfPipelineScorer *scorer) {
    if (scorer == NULL)
        return;
    void *owned[] = { scorer->letter,  scorer->count, scorer->at,       scorer->stack,
                      scorer->stacked, scorer->time,  scorer->first,    scorer->end[0],
                      scorer->end[1],  scorer->wait,  scorer->place[0], scorer->place[1] };
    for (gsize i = 0; i < G_N_ELEMENTS(owned); i++)
        g_free(owned[i]);
    g_free(scorer);
}

/* Plays a rank as far as it goes; ranks that wait for what it made are put on the stack. */
static int play_rank(MtfPipelineScorer *scorer, const uint8_t *letters, int rank, int depth) {
    double time = scorer->time[rank];
    int *count = &scorer->count[rank * scorer->letters], at = scorer->at[rank];
    for (; at < scorer->length; at++) {
        int l = letters[at], kind = l % KINDS;
        const Letter *letter = &scorer->letter[rank * scorer->letters + l];
        gsize pair = (gsize)(letter->stage * scorer->microbatches + count[l]);
        if (letter->from >= 0) {
            double there = scorer->end[kind][letter->from * scorer->microbatches + count[l]];
            if (isnan(there))
                break;
            if (there + letter->transfer > time) {
                time = there + letter->transfer;
                if (at > 0)
                    scorer->wait[scorer->waits++] = rank * scorer->length + at;
            }
        }
        if (at == 0)
            scorer->first[rank] = time;
        time += letter->seconds;
        count[l]++;
        if (kind < WEIGHT) {
            scorer->end[kind][pair] = time;
            scorer->place[kind][pair] = rank * scorer->length + at;
        }
        if (letter->to_rank >= 0 && letter->to_rank != rank && !scorer->stacked[letter->to_rank]) {
            scorer->stacked[letter->to_rank] = true;
            scorer->stack[depth++] = letter->to_rank;
        }
    }
    scorer->at[rank] = at;
    scorer->time[rank] = time;
    return depth;
}

static void begin_playing(MtfPipelineScorer *scorer) {
    gsize ranks = (gsize)scorer->ranks;
    int stages = scorer->ranks * scorer->letters / KINDS, pairs = stages * scorer->microbatches;
    memset(scorer->count, 0, ranks * (gsize)scorer->letters * sizeof *scorer->count);
    memset(scorer->at, 0, ranks * sizeof *scorer->at);
    scorer->waits = 0;
    memset(scorer->time, 0, ranks * sizeof *scorer->time);
    for (int i = 0; i < pairs; i++)
        scorer->end[0][i] = scorer->end[1][i] = NAN;
}

bool mtf_pipeline_score(MtfPipelineScorer *scorer, const MtfPipelineString *string,
                        MtfPipelineScore *score) {
    int depth = 0;
    begin_playing(scorer);
    for (int r = scorer->ranks - 1; r >= 0; r--) {
        scorer->stack[depth++] = r;
        scorer->stacked[r] = true;
    }
    while (depth > 0) {
        int rank = scorer->stack[--depth];
        scorer->stacked[rank] = false;
        depth = play_rank(scorer, mtf_pipeline_letters(string, rank), rank, depth);
    }
    MtfPipelineScore sum = { 0 };
    for (int r = 0; r < scorer->ranks; r++) {
        if (scorer->at[r] < scorer->length)
            return false;
        double span = scorer->time[r] - scorer->first[r];
        sum.span = MAX(sum.span, span);
        sum.makespan = MAX(sum.makespan, scorer->time[r]);
        sum.mean_span += span / scorer->ranks;
    }
    *score = sum;
    return true;
}

const int *mtf_pipeline_score_waits(const MtfPipelineScorer *scorer, int *count) {
    *count = scorer->waits;
    return scorer->wait;
}

int mtf_pipeline_score_maker(const MtfPipelineScorer *scorer, const MtfPipelineString *string,
                             int place) {
    int rank = place / scorer->length, at = place % scorer->length, number = 0;
    const uint8_t *letters = mtf_pipeline_letters(string, rank);
    const Letter *letter = &scorer->letter[rank * scorer->letters + letters[at]];
    if (letter->from < 0)
        return -1;
    for (int i = 0; i < at; i++)
        number += letters[i] == letters[at];
    return scorer->place[letters[at] % KINDS][letter->from * scorer->microbatches + number];
}

bool mtf_pipeline_string_fits(const MtfPipelineScorer *scorer, const MtfPipelineString *string,
                              int rank) {
    const uint8_t *letters = mtf_pipeline_letters(string, rank);
    double held = 0, cap = scorer->the_case->cap * (1 + 1e-9);
    int *count = &scorer->count[rank * scorer->letters];
    memset(count, 0, (gsize)scorer->letters * sizeof *count);
    for (int at = 0; at < scorer->length; at++) {
        int l = letters[at];
        count[l]++;
        held += scorer->letter[rank * scorer->letters + l].memory;
        if (held > cap || (l % KINDS != FORWARD && count[l] > count[l - 1]))
            return false;
    }
    return true;
}

/* The beginning of a stretch of one letter each that begins behind an input gradient of the first chunk
 * and ends with the next one; as near the middle as there is. -1: none. */
static int find_period(const MtfPipelineString *string, int rank) {
    const uint8_t *letters = mtf_pipeline_letters(string, rank);
    int period = KINDS * string->chunks, best = -1, middle = string->length / 2;
    for (int at = 1; at + period <= string->length; at++) {
        guint64 seen = 0;
        for (int i = at; i < at + period; i++)
            seen |= G_GUINT64_CONSTANT(1) << letters[i];
        bool whole = letters[at - 1] == INPUT && letters[at + period - 1] == INPUT &&
                     seen == (G_GUINT64_CONSTANT(1) << period) - 1;
        if (whole && (best < 0 || ABS(at - middle) < ABS(best - middle)))
            best = at;
    }
    return best;
}

MtfPipelineString *mtf_pipeline_string_extend(const MtfPipelineString *string, int more) {
    int period = KINDS * string->chunks;
    if (period > 60)
        return NULL;
    g_autoptr(MtfPipelineString) longer =
        new_string(string->ranks, string->chunks, string->microbatches + more);
    memcpy(longer->stage, string->stage,
           (gsize)string->ranks * (gsize)string->chunks * sizeof *longer->stage);
    for (int r = 0; r < string->ranks; r++) {
        int at = find_period(string, r);
        if (at < 0)
            return NULL;
        const uint8_t *from = mtf_pipeline_letters(string, r);
        uint8_t *to = mtf_pipeline_letters(longer, r);
        memcpy(to, from, (gsize)at);
        for (int k = 0; k < more; k++)
            memcpy(to + at + k * period, from + at, (gsize)period);
        memcpy(to + at + more * period, from + at, (gsize)(string->length - at));
    }
    return g_steal_pointer(&longer);
}
