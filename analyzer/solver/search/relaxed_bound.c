// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/solver/search/relaxed_bound.h"

#include "analyzer/solver/bounds/certified_point.h"
#include "analyzer/solver/reduce/core_values.h"

#include <string.h>

#define STEPS 10         /* of a raise */
#define LOOK_STEPS 50    /* in which, when the bound */
#define RISE 0.05        /* closes less of the gap than this, nodes are joined */
#define MOST_ENTRIES 8e7 /* that a core then has: 640 MB, */
#define MOST_VALUES 240  /* and a joined node */
#define SHRINK_STEPS 60  /* after which a lower cutoff is worth a shrinking */
#define STUCK_STEPS 50   /* without a better bound */

struct MtfRelaxedBound {
    MtfCore *core;
    MtfDual *dual;
    const MtfSearchControl *control;
    MtfCertificate *whole; /* of the core it was made for */
    int64_t first_cutoff;  /* what came later was no higher, */
    int64_t shrunk_cutoff; /* nor than at the last shrinking */
    int64_t cutoff, bound;
    int64_t known;      /* without the copy */
    int64_t look_bound; /* what `bound` was when it was last looked at */
    int steps, unshrunk;
    bool is_joined; /* as far as there is room */
    bool decoded;
    int *values; /* of the copy, scratch */
    int *choice; /* the last decoded ones, as values of the core */
};

static bool is_done(const MtfRelaxedBound *relaxed) {
    return relaxed->core->infeasible || mtf_core_size(relaxed->core).nodes == 0;
}

/* What is left once nothing is to be chosen. */
static void note_end(MtfRelaxedBound *relaxed) {
    if (!relaxed->core->infeasible)
        mtf_certify_constant(relaxed->core);
    int64_t bound = relaxed->core->infeasible ? relaxed->cutoff + 1 : relaxed->core->constant;
    relaxed->bound = MAX(relaxed->bound, MIN(bound, relaxed->cutoff + 1));
}

MtfRelaxedBound *mtf_relaxed_bound_new(MtfDual *dual, int64_t cutoff, int64_t known,
                                       const MtfSearchControl *control) {
    MtfRelaxedBound *relaxed = g_new0(MtfRelaxedBound, 1);
    relaxed->dual = mtf_dual_copy_relaxed(dual, cutoff, &relaxed->core, control);
    relaxed->control = control;
    relaxed->whole = mtf_dual_core(dual)->certificate;
    relaxed->first_cutoff = relaxed->shrunk_cutoff = relaxed->cutoff = cutoff;
    relaxed->bound = relaxed->look_bound = relaxed->known = known;
    relaxed->values = g_new0(int, relaxed->core->node_count + 1);
    relaxed->choice = g_new0(int, relaxed->core->node_count + 1);
    if (is_done(relaxed))
        note_end(relaxed);
    return relaxed;
}

void mtf_relaxed_bound_free(MtfRelaxedBound *relaxed) {
    if (relaxed == NULL)
        return;
    if (relaxed->bound > relaxed->known) {
        mtf_certificate_one(relaxed->whole, "guess", relaxed->first_cutoff);
        mtf_certificate_append(relaxed->whole, relaxed->core->certificate);
        mtf_certificate_word(relaxed->whole, "done");
    }
    mtf_certificate_free(relaxed->core->certificate);
    mtf_dual_free(relaxed->dual);
    mtf_core_free(relaxed->core);
    g_free(relaxed->values);
    g_free(relaxed->choice);
    g_free(relaxed);
}

static void shrink(MtfRelaxedBound *relaxed, bool joins) {
    if (joins)
        relaxed->is_joined = !mtf_dual_pair(relaxed->dual, relaxed->cutoff, MOST_ENTRIES,
                                            MOST_VALUES, relaxed->control);
    else
        mtf_dual_shrink(relaxed->dual, relaxed->cutoff, relaxed->control);
    relaxed->unshrunk = 0;
    relaxed->shrunk_cutoff = relaxed->cutoff;
    if (is_done(relaxed))
        note_end(relaxed);
}

/* Whether the bound hardly rose in the last steps. */
static bool has_settled(MtfRelaxedBound *relaxed) {
    if (relaxed->steps % LOOK_STEPS != 0)
        return false;
    double gap = (double)relaxed->cutoff - (double)relaxed->bound;
    bool settled = (double)relaxed->bound - (double)relaxed->look_bound < RISE * gap;
    relaxed->look_bound = relaxed->bound;
    return settled;
}

/* Whether a lower cutoff is worth a shrinking. */
static bool should_shrink(const MtfRelaxedBound *relaxed) {
    return relaxed->cutoff < relaxed->shrunk_cutoff && relaxed->unshrunk >= SHRINK_STEPS;
}

int64_t mtf_relaxed_bound_raise(MtfRelaxedBound *relaxed, int64_t cutoff) {
    relaxed->cutoff = MIN(cutoff, relaxed->cutoff);
    if (is_done(relaxed))
        return relaxed->bound;
    for (int i = 0; i < STEPS && (i == 0 || !mtf_search_is_over(relaxed->control)); i++) {
        relaxed->decoded = mtf_dual_step(relaxed->dual, relaxed->values);
        relaxed->steps++;
        relaxed->unshrunk++;
    }
    mtf_core_lift(relaxed->core, relaxed->values, relaxed->choice);
    relaxed->bound = MAX(relaxed->bound, mtf_dual_prove(relaxed->dual));
    bool joins = has_settled(relaxed) && !relaxed->is_joined;
    if (relaxed->bound <= relaxed->cutoff && (joins || should_shrink(relaxed)))
        shrink(relaxed, joins);
    return relaxed->bound;
}

bool mtf_relaxed_bound_is_stuck(const MtfRelaxedBound *relaxed) {
    return is_done(relaxed) || (relaxed->is_joined && mtf_dual_stall(relaxed->dual) > STUCK_STEPS);
}

const MtfDual *mtf_relaxed_bound_dual(const MtfRelaxedBound *relaxed) {
    return relaxed->dual;
}

bool mtf_relaxed_bound_decode(const MtfRelaxedBound *relaxed, int *values) {
    memcpy(values, relaxed->choice, (gsize)relaxed->core->node_count * sizeof *values);
    return relaxed->decoded;
}
