// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/planner/software_search.h"

#include "analyzer/layout_search/best_attempt.h"
#include "analyzer/planner/next_best.h"
#include "cost/memory/arena.h"
#include "cost/summary/framework_memory.h"
#include "layouts/base/command_line.h"
#include "layouts/base/error.h"

#include <inttypes.h>
#include <math.h>

/* Searches, at most, and the share of its memory that the software need not use for the last one to do. */
#define MOST_SEARCHES 4
#define ENOUGH 0.95

/* Where layouts made by hand are to be had, which are there before any other is looked for: gaps of the first search,
 * which says what the best layout would take, and of the others; and what of the memory programs may take next where
 * none of them fits beside the layout that was found. */
#define BY_HAND_GAP 0.02
#define NO_PROOF 10
#define LESS 0.75

/* Searches, at most, for a limit that would do where nothing fits, and of graphs that are not quickly searched; of
 * large ones none, as each takes as long as the search that the user asked for. And the share of a limit that another
 * there, or of a draft, is as good as. */
#define ENOUGH_SEARCHES 4
#define ENOUGH_SEARCHES_SLOW 1
#define NEARLY 0.99

/* The gap of the last of these searches of large graphs, where little is left to be searched, unless one was asked for. */
#define STAYING_GAP 0.01

/* Drafts of the first plan's variant and mesh, at most, and of each the gap and the rounds: what programs may take is
 * asked of them, nothing else. And searches of that variant and mesh, at most, before others are. */
#define MOST_DRAFTS 6
#define DRAFT_GAP (MTF_NEAR_STEP - 1)
#define DRAFT_WORK 60
#define NEAR_SEARCHES 2

/* The gap of those searches, unless one was asked for: whether something fits is asked, not what is best. */
#define LIMIT_GAP 0.05

/* What programs were allowed, or took, and what the software then gives out; 0: not seen yet. */
typedef struct {
    double programs, given;
} Point;

/* Bytes of a device. */
typedef struct {
    double limit;      /* that the software may give out */
    Point fits;        /* the most that programs were allowed where that sufficed */
    Point over, wider; /* the least that a program took where it did not, and that before it */
    double least;      /* that every program takes; 0: not known */
} Room;

/* Where a line through two points reaches the limit. */
static double reach(const Point *a, const Point *b, double limit) {
    return a->programs + (limit - a->given) / (b->given - a->given) * (b->programs - a->programs);
}

/* What programs may take in the next search: along the last two that were too much, or between one of these and one
 * that fits, or in proportion; 0: no search is worth it. */
static double next_limit(const Room *room) {
    const Point none = { 0 };
    bool fits = room->fits.programs > 0, falls = room->wider.given > room->over.given;
    if (room->fits.given >= ENOUGH * room->limit)
        return 0;
    double next = falls ? reach(&room->over, &room->wider, room->limit) : 0;
    if (next <= room->fits.programs)
        next = reach(fits ? &room->fits : &none, &room->over, room->limit);
    next = fmax(next, room->least);
    return next < room->over.programs ? next : 0;
}

static void note_over(Room *room, Point point) {
    room->wider = room->over;
    room->over = point;
}

typedef struct {
    const MtfVariantSearchOptions *options;
    guint large;
    Room room;
    MtfVariantAnswer *best;  /* that fits; where none was found, the first */
    int64_t *programs_limit; /* of that */
    MtfVariantAnswer near; /* of the first plan's variant and mesh under less memory, or nothing; */
    double near_limit;     /* and how much; 0: it was not searched */
    MtfVariantSearchOptions narrowed; /* that variant and mesh alone; */
    GArray *priced;           /* what the rules of the first search's variants cost; or NULL */
    bool stays_near;          /* they were the best of all under less memory, too */
    bool drafted;             /* what programs may take was found by drafts */
    bool last;                /* of MOST_SEARCHES */
    MtfFrameworkMemory least; /* that a plan was found to need */
    bool stopped;             /* time was up before all was looked at */
} Search;

/* What programs were found to take at least, where none fits. */
static double least_of(const MtfPlanAnswer *answer) {
    return (double)(answer->free.limit_enough > 0 ? answer->free.limit_enough
                                                  : answer->rules.arena_bytes);
}

/* Takes the layout made by hand that is to be had, where one is; false and why where none fits. */
static bool keep_exportable(const MtfVariantSearchOptions *options, MtfVariantAnswer *found,
                            double limit, GError **error) {
    return mtf_plan_answer_keep_exportable(&found->answer, found->graph, options->framework,
                                           (int64_t)limit, &found->layout, error);
}

static double settled_bytes(const Search *search, MtfVariantAnswer *found) {
    mtf_variant_answer_tune(search->options, found);
    g_autoptr(MtfArena) arena = mtf_arena_pack(found->program);
    return (double)arena->bytes;
}

/* None of the layouts that are to be had fits: those of variants that take less may. */
static void note_none(Search *search, MtfVariantAnswer *found) {
    search->room.wider = (Point){ 0 };
    search->room.over = (Point){ settled_bytes(search, found), search->room.limit / LESS };
}

/* Whether what the software needs for the plan fits, which is noted; without software, what its program does. */
static bool note_plan(Search *search, double limit, MtfVariantAnswer *found) {
    Room *room = &search->room;
    const MtfSoftware *software = search->options->machine->software;
    double bytes = settled_bytes(search, found);
    MtfFrameworkMemory memory = software != NULL ? mtf_framework_memory(found->program, software)
                                                 : (MtfFrameworkMemory){ .given = bytes };
    if (search->least.given <= 0 || memory.given < search->least.given)
        search->least = memory;
    if (memory.given <= room->limit) {
        room->fits = (Point){ limit, memory.given };
        return true;
    }
    note_over(room, (Point){ bytes, memory.given });
    return false;
}

/* Of large graphs what fits the software is searched no further than the first step may be shorter (MTF_NEAR_STEP), unless
 * a gap was asked for; farther where variant and mesh stay and no search is likely to follow. */
static double lower_gap(const Search *search, bool last) {
    guint operations = search->best->graph->operations->len;
    if (!isnan(search->options->gap) || operations <= MTF_QUICK_OPERATIONS)
        return search->options->gap;
    return last ? STAYING_GAP : MTF_NEAR_STEP - 1;
}

/* Whether the last of MOST_SEARCHES is of a variant and a mesh that stay; of those whose own searches begin with drafts it
 * takes too long. */
static bool is_last(const Search *search) {
    return search->last && search->stays_near &&
           search->best->graph->operations->len <= MTF_LARGE_OPERATIONS;
}

/* Searches where programs may take `limit`, and keeps what is the better one of those that fit. What was the best
 * variant and mesh under more memory and under less is taken to be so in between. */
static bool search_again(Search *search, double limit, GError **error) {
    MtfVariantSearchOptions own = search->stays_near ? search->narrowed : *search->options;
    const MtfGraph *near = search->near.graph;
    MtfVariantAnswer found;
    own.memory_limit = (int64_t)limit;
    own.gap = own.framework != NULL ? NO_PROOF : lower_gap(search, is_last(search));
    own.known = limit == search->near_limit ? &search->near : NULL;
    own.priced = search->priced;
    if (!mtf_deep_search(&own, search->large, &found, error)) {
        mtf_variant_answer_clear(&found);
        return false;
    }
    bool known = search->room.fits.programs > 0;
    if (!found.answer.found)
        search->room.least =
            found.given_up ? search->room.over.programs : fmax(least_of(&found.answer), limit + 1);
    else if (!keep_exportable(&own, &found, search->room.limit, NULL))
        note_none(search, &found);
    else if (note_plan(search, limit, &found) &&
             (!known || found.answer.step_seconds < search->best->answer.step_seconds)) {
        search->stays_near |= near != NULL && found.graph == near;
        mtf_variant_answer_clear(search->best);
        *search->best = found;
        *search->programs_limit = own.memory_limit;
        return true;
    }
    mtf_variant_answer_clear(&found);
    return true;
}

/* Whether what was found for one variant may stand for a search of it among others: graphs that are compared on few
 * layers (deep_search.h) are others there. */
static bool may_stand(const MtfVariantAnswer *found) {
    return found->answer.found && found->graph->operations->len <= MTF_VERY_LARGE_OPERATIONS;
}

/* Searches the variant and the mesh of the first plan alone where programs may take `limit`. What is found is kept for
 * the search of all (`near`); true where its step is nearly as short. */
static bool find_near(Search *search, double limit) {
    MtfVariantSearchOptions one = search->narrowed;
    MtfVariantAnswer *found = &search->near;
    if (search->near_limit > 0)
        mtf_variant_answer_clear(found);
    one.memory_limit = (int64_t)limit;
    one.gap = lower_gap(search, search->drafted);
    search->near_limit = limit;
    return mtf_deep_search(&one, search->large, found, NULL) && found->answer.found &&
           found->answer.step_seconds <= MTF_NEAR_STEP * search->best->answer.step_seconds;
}

/* Takes what find_near found as the best. */
static void take_near(Search *search) {
    *search->programs_limit = (int64_t)search->near_limit;
    mtf_variant_answer_clear(search->best);
    *search->best = search->near;
    search->near_limit = 0;
}

/* The same once more where it takes too much: less. True, with the plan taken, where it fits and its step is nearly as
 * short; else `*limit` is that of the last of these searches, which is not made again. */
static bool search_near(Search *search, double *limit) {
    for (int n = 1; find_near(search, *limit); n++) {
        if (note_plan(search, *limit, &search->near)) {
            take_near(search);
            return true;
        }
        double next = next_limit(&search->room);
        if (n == NEAR_SEARCHES || next <= 0 || mtf_search_is_over(search->options->control))
            break;
        *limit = next;
    }
    if (!may_stand(&search->near) || mtf_search_is_over(search->options->control)) {
        mtf_variant_answer_clear(&search->near);
        search->near_limit = 0;
    }
    return false;
}

/* ---- What programs may take, by drafts -------------------------------------------------------------- */

/* What the cheapest layout with alike layers takes where programs may take `limit`, and what the software gives out for
 * it; nothing where there is none. */
static Point draft(const Search *search, const MtfFreeProblem *problem, const MtfLayerTies *ties,
                   double limit) {
    MtfSearchControl part; /* bounds are of alike layers alone */
    mtf_search_control_init_part(&part, search->options->control, 0);
    MtfFreeSearchOptions options = { .memory_limit = (int64_t)limit,
                                     .leader = ties != NULL ? ties->leader : NULL,
                                     .work = DRAFT_WORK,
                                     .tightened_work = DRAFT_WORK,
                                     .gap = DRAFT_GAP,
                                     .no_infeasibility = true,
                                     .seed = search->options->seed,
                                     .control = &part };
    MtfFreeAnswer answer;
    Point point = { 0 };
    if (mtf_free_search(problem, &options, &answer, NULL) && answer.layout != NULL) {
        g_autoptr(MtfProgram) program = mtf_lower(mtf_free_problem_graph(problem), answer.layout);
        point.programs = (double)answer.arena_bytes;
        point.given = mtf_framework_memory(program, search->options->machine->software).given;
    }
    mtf_free_answer_clear(&answer);
    return point;
}

/* Whether drafts say in a small part of a search what that would: of graphs that are not searched at once, nor in pieces,
 * on a mesh as it is searched, with any layouts that it has. */
static bool may_draft(const Search *search) {
    const MtfVariantSearchOptions *options = search->options;
    guint operations = search->best->graph->operations->len;
    return operations > MTF_QUICK_OPERATIONS && operations <= MTF_VERY_LARGE_OPERATIONS &&
           options->machine->software != NULL && options->framework == NULL &&
           !options->rules_only && options->pins == NULL && options->forbids == NULL &&
           search->best->answer.merged.mesh.n_axes == 0;
}

/* What programs may take in the next draft: what is worth a search, or in the middle between that and a limit, `none`,
 * within which no draft was found; 0: no draft is worth it, or hardly more than what does. */
static double next_draft(const Room *room, double none) {
    double next = next_limit(room);
    if (room->fits.programs >= NEARLY * next)
        return 0;
    if (next > none)
        return next;
    return none < ENOUGH * room->over.programs ? (none + room->over.programs) / 2 : 0;
}

/* The most that programs may take for what the software gives out to fit, as drafts are found; 0: none fits. */
static double drafted_limit(const Search *search) {
    const MtfVariantAnswer *best = search->best;
    g_autoptr(MtfLayout) layout = mtf_plan_answer_layout(&best->answer, best->graph);
    g_autoptr(MtfFreeProblem) problem =
        mtf_free_problem_new(best->graph, &layout->mesh, &best->answer.pricer, NULL, 0, NULL);
    if (problem == NULL)
        return 0;
    mtf_free_problem_set_stage(problem, &best->answer.stage);
    g_autoptr(MtfLayerTies) ties = mtf_layer_ties_new(problem);
    Room room = search->room;
    double none = 0, limit = next_draft(&room, none);
    for (int n = 0; n < MOST_DRAFTS && limit > 0 && !mtf_search_is_over(search->options->control);
         n++) {
        Point point = draft(search, problem, ties, limit);
        if (point.programs <= 0)
            none = limit;
        else if (point.given > room.limit)
            note_over(&room, point);
        else
            room.fits = (Point){ limit, point.given };
        limit = next_draft(&room, none);
    }
    return room.fits.programs;
}

static bool fail_stopped(const Search *search, GError **error) {
    g_autofree char *needs = mtf_bytes_format(search->least.given);
    g_autofree char *limit = mtf_bytes_format(search->room.limit);
    return mtf_failure(error,
                       "stopped before a plan was found that %s can run: what was found needs %s "
                       "of %s a device (give more --seconds, or say --recompute or --microbatches)",
                       search->options->machine->software->name, needs, limit);
}

static bool fail_unfit(const Search *search, GError **error) {
    const MtfFrameworkMemory *least = &search->least;
    g_autofree char *limit = mtf_bytes_format(search->room.limit);
    g_autofree char *needs = mtf_bytes_format(least->given);
    g_autofree char *standing = mtf_bytes_format(least->standing);
    g_autofree char *rest = mtf_bytes_format(least->given - least->standing);
    g_set_error(error, MTF_ERROR, MTF_ERROR_FIT,
                "no plan was found that %s can run in %s a device: the least that one was found "
                "to need is %s "
                "(--memory %" PRId64 "), %s of weights, the optimizer's state and gradients and "
                "%s of activations and scratch; use more devices, a smaller batch, or other "
                "--software",
                search->options->machine->software->name, limit, needs, (int64_t)ceil(least->given),
                standing, rest);
    return false;
}

/* What was found for programs of our own needs too much, `answer`. True with a plan that the software can run. */
static bool search_lower(Search *search, GError **error) {
    const MtfSearchControl *control = search->options->control;
    double limit = next_limit(&search->room), first = search->best->answer.step_seconds;
    GError *cause = NULL;
    mtf_search_tell_phase(control, "looking for a plan that the software can run");
    g_autoptr(GArray) mesh = g_array_new(FALSE, FALSE, sizeof(MtfMesh));
    bool free = search->options->framework == NULL; /* layouts made by hand stay as they are */
    if (free)
        search->narrowed = mtf_variant_search_narrowed(search->options, search->best, mesh);
    double drafted = free && limit > 0 && may_draft(search) ? drafted_limit(search) : 0;
    search->drafted = drafted > 0;
    limit = drafted > 0 ? drafted : limit;
    if (free && limit > 0 && !mtf_search_is_over(control) && search_near(search, &limit))
        return true;
    if (search->best->graph->operations->len <= MTF_VERY_LARGE_OPERATIONS)
        search->priced = mtf_step_candidates_priced(search->best->variants);
    for (int n = 1; n < MOST_SEARCHES && limit > 0 && !mtf_search_is_over(control); n++) {
        search->last = n == MOST_SEARCHES - 1;
        bool done = search_again(search, limit, &cause);
        bool near = search->room.fits.programs > 0 &&
                    search->best->answer.step_seconds <= MTF_NEAR_STEP * first;
        limit = done && !near ? next_limit(&search->room) : 0;
    }
    search->stopped = limit > 0 && mtf_search_is_over(control);
    if (search->near_limit > 0)
        mtf_variant_answer_clear(&search->near);
    g_clear_pointer(&search->priced, g_array_unref);
    if (search->room.fits.programs > 0)
        g_clear_error(&cause);
    else if (cause != NULL)
        g_propagate_error(error, cause);
    return search->room.fits.programs > 0;
}

/* Whether the plan of another kind is better already: under less memory this one's step is no shorter. */
static bool is_beaten(const MtfVariantSearchOptions *options, const MtfVariantAnswer *answer) {
    return options->rival_seconds > 0 && answer->answer.step_seconds > options->rival_seconds;
}

/* As searches without software; where layouts made by hand are to be had, not proven to the end. */
static bool search_first(const Search *search, MtfVariantAnswer *answer, GError **error) {
    MtfVariantSearchOptions first = *search->options;
    if (first.framework != NULL && isnan(first.gap))
        first.gap = BY_HAND_GAP;
    return mtf_deep_search(&first, search->large, answer, error);
}

/* Whether the plan that was found first is one that is to be had; else what it lacks is noted, and why none is. */
static bool is_enough(Search *search, MtfVariantAnswer *answer, GError **cause) {
    if (keep_exportable(search->options, answer, search->room.limit, cause))
        return search->options->machine->software == NULL ||
               note_plan(search, search->room.limit, answer);
    note_none(search, answer);
    return false;
}

/* Searches within the memory of `search`, its first search included. True without an error where no layout fits. */
static bool search_within(Search *search, GError **error) {
    const MtfVariantSearchOptions *options = search->options;
    MtfVariantAnswer *answer = search->best;
    GError *cause = NULL;
    *search->programs_limit = options->memory_limit;
    if (!search_first(search, answer, error))
        return false;
    if (!answer->answer.found || is_beaten(options, answer) || is_enough(search, answer, &cause))
        return true;
    if (search_lower(search, cause == NULL ? &cause : NULL)) {
        g_clear_error(&cause);
        return true;
    }
    if (cause == NULL)
        return search->stopped ? fail_stopped(search, error) : fail_unfit(search, error);
    g_propagate_error(error, cause);
    return false;
}

static Search new_search(const MtfVariantSearchOptions *options, guint large,
                         MtfVariantAnswer *answer, int64_t *programs_limit) {
    return (Search){ .options = options,
                     .large = large,
                     .room = { .limit = (double)options->memory_limit },
                     .best = answer,
                     .programs_limit = programs_limit };
}

/* ---- What would do --------------------------------------------------------------------------- */

/* The same search within `limit`: bytes that the plan takes which it finds, 0 where it finds none; `*more` is then what
 * may do, 0: not known. A plan that fits the memory there is, though none was found within that, is taken. Who listens
 * is told nothing of it: its costs are of plans that do not fit. */
static double try_limit(Search *search, int64_t limit, double *more) {
    MtfVariantSearchOptions own = *search->options;
    MtfSearchControl part;
    mtf_search_control_init_part(&part, search->options->control, 0);
    own.control = &part;
    MtfVariantAnswer found = { 0 };
    int64_t programs_limit;
    own.memory_limit = limit;
    own.gap = isnan(own.gap) ? LIMIT_GAP : own.gap;
    Search within = new_search(&own, search->large, &found, &programs_limit);
    bool planned = search_within(&within, NULL) && found.answer.found;
    double bytes = planned ? fmax(settled_bytes(&within, &found), within.least.given) : 0;
    *more = planned                                  ? 0
            : within.least.given > (double)limit     ? ceil(within.least.given)
            : found.graph != NULL && !found.given_up ? least_of(&found.answer)
                                                     : 0;
    if (planned && bytes <= search->room.limit) {
        *search->programs_limit = programs_limit;
        mtf_variant_answer_clear(search->best);
        *search->best = found;
    } else {
        mtf_variant_answer_clear(&found);
    }
    return bytes;
}

/* Where nothing fits: searches within the least that was found to do, and within what the plan takes that is found
 * there, or with more where none is, so that who gives as much gets a plan. */
static void find_enough(Search *search) {
    const MtfVariantAnswer *best = search->best;
    guint operations = best->graph->operations->len;
    int most = operations > MTF_LARGE_OPERATIONS   ? 0
               : operations > MTF_QUICK_OPERATIONS ? ENOUGH_SEARCHES_SLOW
                                                   : ENOUGH_SEARCHES;
    double limit = least_of(&best->answer), takes = limit, enough = 0;
    mtf_search_tell_phase(search->options->control,
                          "nothing fits: looking for a limit that would do");
    for (int n = most; n > 0 && limit > 0 && !mtf_search_is_over(search->options->control); n--) {
        double more, bytes = try_limit(search, (int64_t)limit, &more);
        if (best->answer.found)
            return;
        bool stays = bytes > NEARLY * limit;
        if (bytes > 0)
            enough = limit;
        takes = fmax(takes, more);
        limit = bytes > 0 ? (stays ? 0 : bytes) : (enough > 0 ? 0 : fmax(more, limit / NEARLY));
    }
    search->best->enough = (int64_t)enough;
    search->best->takes = (int64_t)takes;
}

bool mtf_software_search(const MtfVariantSearchOptions *options, guint large,
                         MtfVariantAnswer *answer, int64_t *programs_limit, GError **error) {
    Search search = new_search(options, large, answer, programs_limit);
    if (!search_within(&search, error))
        return false;
    bool needed = !answer->answer.found && answer->graph != NULL && !answer->given_up;
    if (needed && options->rival_seconds <= 0)
        find_enough(&search);
    return true;
}
