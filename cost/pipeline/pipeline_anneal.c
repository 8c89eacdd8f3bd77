// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/pipeline/pipeline_anneal.h"

#include <math.h>
#include <string.h>

#define EPSILON 1e-9 /* relative difference of spans that counts */
#define FARTHEST 16  /* places that a letter moves at most */
#define MEAN_WEIGHT \
    0.05 /* of the mean span in what annealing minimises: it shows the way on plateaus */
#define MAKESPAN_WEIGHT 0.01
#define HOTTEST 0.3 /* temperature, in forwards of the first stage, at the beginning */
#define COLDEST 0.005

bool mtf_pipeline_score_is_better(const MtfPipelineScore *a, const MtfPipelineScore *b) {
    double slack = EPSILON * b->span;
    return a->span < b->span - slack ||
           (a->span <= b->span + slack && a->makespan < b->makespan - slack);
}

static double energy(const MtfPipelineScore *score) {
    return score->span + MEAN_WEIGHT * score->mean_span + MAKESPAN_WEIGHT * score->makespan;
}

/* Takes the letter at `from` out and puts it in at `to`; the same with the two exchanged undoes it. */
static void move_letter(uint8_t *letters, int from, int to) {
    uint8_t letter = letters[from];
    if (from < to)
        memmove(letters + from, letters + from + 1, (gsize)(to - from));
    else
        memmove(letters + to + 1, letters + to, (gsize)(from - to));
    letters[to] = letter;
}

typedef struct {
    MtfPipelineString *string;
    MtfPipelineScorer *scorer;
    GRand *random;
    double energy, temperature;
    int *wait, waits; /* where ranks wait in the string as it stands */
} Walk;

static void note_waits(Walk *walk) {
    const int *waits = mtf_pipeline_score_waits(walk->scorer, &walk->waits);
    memcpy(walk->wait, waits, (gsize)walk->waits * sizeof *waits);
}

/* Any letter to a place near it. */
static void draw_anywhere(const Walk *walk, int *rank, int *from, int *to) {
    *rank = g_rand_int_range(walk->random, 0, walk->string->ranks);
    *from = g_rand_int_range(walk->random, 0, walk->string->length);
    *to = *from + g_rand_int_range(walk->random, -FARTHEST, FARTHEST + 1);
}

/* Where a rank waits, a later letter comes before; or what made it wait goes earlier on its own rank, or
 * what made that. The places are those of the string last scored, so a chain may lead astray, which
 * costs a try. */
static void draw_at_wait(const Walk *walk, int *rank, int *from, int *to) {
    const MtfPipelineString *string = walk->string;
    int place = walk->wait[g_rand_int_range(walk->random, 0, walk->waits)];
    int distance = 1 + g_rand_int_range(walk->random, 0, FARTHEST);
    bool fill = g_rand_boolean(walk->random);
    for (int links = fill ? 0 : 1 + g_rand_int_range(walk->random, 0, 3); links > 0; links--) {
        int maker = mtf_pipeline_score_maker(walk->scorer, string, place);
        place = maker >= 0 ? maker : place;
    }
    int at = place % string->length;
    *rank = place / string->length;
    *from = fill ? at + distance : at;
    *to = fill ? at : at - distance;
}

/* One try; whether the string changed, with its new score. */
static bool try_move(Walk *walk, MtfPipelineScore *score) {
    MtfPipelineString *string = walk->string;
    int rank, from, to;
    bool aimed = walk->waits > 0 && g_rand_boolean(walk->random);
    if (aimed)
        draw_at_wait(walk, &rank, &from, &to);
    else
        draw_anywhere(walk, &rank, &from, &to);
    uint8_t *letters = mtf_pipeline_letters(string, rank);
    if (to < 0 || from < 0 || MAX(from, to) >= string->length || letters[to] == letters[from])
        return false;
    move_letter(letters, from, to);
    MtfPipelineScore tried;
    bool good = mtf_pipeline_string_fits(walk->scorer, string, rank) &&
                mtf_pipeline_score(walk->scorer, string, &tried);
    double worse = good ? energy(&tried) - walk->energy : 0;
    if (!good || (worse > 0 && g_rand_double(walk->random) >= exp(-worse / walk->temperature))) {
        move_letter(letters, to, from);
        return false;
    }
    walk->energy += worse;
    *score = tried;
    note_waits(walk);
    return true;
}

MtfPipelineScore mtf_pipeline_anneal(MtfPipelineString *string, const MtfPipelineCase *the_case,
                                     int64_t moves, double bound, uint32_t seed) {
    g_autoptr(MtfPipelineScorer) scorer = mtf_pipeline_scorer_new(string, the_case);
    g_autoptr(MtfPipelineString) best = mtf_pipeline_string_copy(string);
    g_autoptr(GRand) random = g_rand_new_with_seed(seed);
    MtfPipelineScore best_score = { 0 }, score;
    bool plays = mtf_pipeline_score(scorer, string, &best_score);
    g_assert(plays);
    double forward = MAX(the_case->times[0].forward, best_score.span / (4 * string->length));
    g_autofree int *wait = g_new0(int, (gsize)string->ranks *(gsize)string->length);
    Walk walk = { string, scorer, random, energy(&best_score), HOTTEST * forward, wait, 0 };
    note_waits(&walk);
    double cooling = pow(COLDEST / HOTTEST, 1 / (double)MAX(moves, 1));
    for (int64_t i = 0; i < moves && best_score.span > bound * (1 + EPSILON); i++) {
        bool moved = try_move(&walk, &score);
        walk.temperature *= cooling;
        if (!moved || !mtf_pipeline_score_is_better(&score, &best_score))
            continue;
        best_score = score;
        memcpy(best->letter, string->letter, (gsize)string->ranks * (gsize)string->length);
    }
    memcpy(string->letter, best->letter, (gsize)string->ranks * (gsize)string->length);
    return best_score;
}
