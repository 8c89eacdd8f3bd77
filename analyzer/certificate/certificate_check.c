// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/certificate/certificate_check.h"

#include "analyzer/certificate/certified_reasons.h"
#include "analyzer/certificate/elimination_check.h"
#include "analyzer/certificate/point_bound.h"
#include "layouts/base/error.h"

#include <errno.h>
#include <string.h>

#define NO_CUTOFF INT64_MAX

/* A value that was excluded under an assumption, and what it cost. */
typedef struct Undo {
    int node, value;
    int64_t cost;
} Undo;

/* What holds between two lines that belong together. */
typedef struct Context {
    enum { OF_ALL, OF_ASSUMPTION, OF_GUESS } kind;
    MtfCertifiedProblem *problem; /* of an assumption: the one of the context around it */
    MtfPoint *point;              /* the last one; NULL: none */
    int64_t cutoff;               /* the lowest K used here and around */
    bool is_refuted;              /* no choice of at most `cutoff` is left */
    bool is_skipped;              /* began in a refuted context: says nothing */
    int node, value;              /* that are assumed */
    GArray *undo;                 /* Undo, of an assumption */
} Context;

typedef struct Check {
    const MtfLayoutProblem *whole;
    MtfLayoutProblem *bare; /* without costs, after `needs`; NULL: not asked */
    GArray *contexts;       /* Context, the innermost last */
    int cost_shift;
    bool point_is_open;
    MtfPointBound *pruning; /* NULL: not between `prune` and `end` */
    int64_t prune_cutoff;
    GArray *numbers; /* int64_t, of the line */
    GArray *order;   /* int, nodes of the last `order` */
    bool has_worst, has_bound;
    MtfInt128 worst;
    int64_t bound; /* divided */
    MtfProven *proven;
} Check;

static Context *here(const Check *check) {
    return &g_array_index(check->contexts, Context, check->contexts->len - 1);
}

static int count_of(const Check *check) {
    return (int)check->numbers->len;
}

static int64_t number_at(const Check *check, int i) {
    return g_array_index(check->numbers, int64_t, i);
}

static const int64_t *numbers_from(const Check *check, int i) {
    return (const int64_t *)(const void *)check->numbers->data + i;
}

static bool wants(const Check *check, bool right, const char *what, GError **error) {
    (void)check;
    return right || mtf_input_error(error, "%s", what);
}

/* Whether the number is a living node's. */
static bool is_node(const Check *check, int64_t node, GError **error) {
    const MtfCertifiedProblem *problem = here(check)->problem;
    if (node >= 0 && node < problem->node_count && problem->nodes[node].alive)
        return true;
    return mtf_input_error(error, "%" G_GINT64_FORMAT " is not a node that is left", node);
}

static bool is_value(const Check *check, int64_t node, int64_t value, GError **error) {
    if (!is_node(check, node, error))
        return false;
    if (value >= 0 && value < here(check)->problem->nodes[node].values)
        return true;
    return mtf_input_error(error, "%" G_GINT64_FORMAT " is not a value of node %" G_GINT64_FORMAT,
                           value, node);
}

/* Whether the line is one number that can be a cutoff. */
static bool is_cutoff(const Check *check) {
    return count_of(check) == 1 && number_at(check, 0) < NO_CUTOFF;
}

/* ---- what is proven ---- */

static void raise_bound(Check *check, int64_t bound) {
    check->bound = check->has_bound ? MAX(check->bound, bound) : bound;
    check->has_bound = true;
}

/* Takes over what the problem knows of itself. */
static void note_dead(Check *check) {
    here(check)->is_refuted |= here(check)->problem->is_dead;
}

static void lower_cutoff(Check *check, int64_t cutoff) {
    here(check)->cutoff = MIN(here(check)->cutoff, cutoff);
}

/* ---- steps on the problem ---- */

/* Steps that change what values and nodes there are end the use of points and orders, and are not undone. */
static bool begin_step(Check *check, int fewest, GError **error) {
    if (!wants(check, here(check)->kind != OF_ASSUMPTION, "not under an assumption", error) ||
        !wants(check, count_of(check) >= fewest, "too few numbers", error))
        return false;
    g_clear_pointer(&here(check)->point, mtf_point_free);
    g_array_set_size(check->order, 0);
    return true;
}

static bool read_rows(Check *check, GError **error) {
    return begin_step(check, 0, error) &&
           mtf_certified_rows(here(check)->problem, numbers_from(check, 0), count_of(check), error);
}

static bool read_keep(Check *check, GError **error) {
    if (!begin_step(check, 1, error) || !is_node(check, number_at(check, 0), error))
        return false;
    bool kept = mtf_certified_keep(here(check)->problem, (int)number_at(check, 0),
                                   numbers_from(check, 1), count_of(check) - 1, error);
    note_dead(check);
    return kept;
}

static bool read_join(Check *check, GError **error) {
    if (!begin_step(check, 2, error) || !is_node(check, number_at(check, 0), error) ||
        !is_node(check, number_at(check, 1), error) ||
        !wants(check, count_of(check) % 2 == 0, "half a pair", error))
        return false;
    return mtf_certified_join(here(check)->problem, (int)number_at(check, 0),
                              (int)number_at(check, 1), numbers_from(check, 2),
                              count_of(check) / 2 - 1, error);
}

static bool read_eliminate(Check *check, GError **error) {
    if (!begin_step(check, 1, error) || !is_node(check, number_at(check, 0), error))
        return false;
    bool gone = mtf_certified_eliminate(here(check)->problem, (int)number_at(check, 0), error);
    note_dead(check);
    return gone;
}

static bool read_part(Check *check, GError **error) {
    if (!begin_step(check, 2, error) || !is_node(check, number_at(check, 0), error) ||
        !is_node(check, number_at(check, 1), error))
        return false;
    return mtf_certified_part(here(check)->problem, (int)number_at(check, 0),
                              (int)number_at(check, 1), error);
}

static bool read_move(Check *check, GError **error) {
    if (!begin_step(check, 2, error) || !is_node(check, number_at(check, 0), error) ||
        !is_node(check, number_at(check, 1), error))
        return false;
    return mtf_certified_move(here(check)->problem, (int)number_at(check, 0),
                              (int)number_at(check, 1), numbers_from(check, 2), count_of(check) - 2,
                              error);
}

/* Makes a value impossible here; under an assumption until that ends. */
static void exclude(Check *check, int node, int value) {
    Context *context = here(check);
    Undo undo = { node, value, context->problem->nodes[node].cost[value] };
    if (context->kind == OF_ASSUMPTION)
        g_array_append_val(context->undo, undo);
    mtf_certified_exclude(context->problem, node, value);
    note_dead(check);
}

static bool read_shut(Check *check, GError **error) {
    if (!wants(check, count_of(check) == 2, "a node and a value are wanted", error) ||
        !is_value(check, number_at(check, 0), number_at(check, 1), error))
        return false;
    int node = (int)number_at(check, 0), value = (int)number_at(check, 1);
    if (!mtf_certified_is_useless(here(check)->problem, node, value))
        return mtf_input_error(error, "no reason to shut value %d of node %d", value, node);
    exclude(check, node, value);
    return true;
}

static bool read_dead(Check *check, GError **error) {
    here(check)->is_refuted = mtf_certified_check_dead(here(check)->problem);
    return wants(check, here(check)->is_refuted, "every node has a value and every row fits",
                 error);
}

static bool read_worst(Check *check, GError **error) {
    bool fits = here(check)->kind == OF_ALL && here(check)->cutoff == NO_CUTOFF;
    if (!wants(check, fits, "not under an assumption or a guess, nor with a cutoff", error))
        return false;
    check->worst = mtf_certified_worst(here(check)->problem);
    check->has_worst = true;
    return true;
}

/* ---- points and what they prove ---- */

static bool read_point(Check *check, GError **error) {
    if (!wants(check, count_of(check) == 2, "two shifts are wanted", error))
        return false;
    Context *context = here(check);
    mtf_point_free(context->point);
    context->point = mtf_point_new(context->problem, number_at(check, 0), number_at(check, 1));
    check->point_is_open = true;
    return wants(check, context->point != NULL, "shifts out of range", error);
}

static bool read_price(Check *check, GError **error) {
    return wants(check, check->point_is_open && count_of(check) == 2, "not in a point", error) &&
           mtf_point_set_price(here(check)->point, here(check)->problem, number_at(check, 0),
                               number_at(check, 1), error);
}

static bool read_message(Check *check, GError **error) {
    return wants(check, check->point_is_open && count_of(check) >= 2, "not in a point", error) &&
           mtf_point_set_message(here(check)->point, here(check)->problem, number_at(check, 0),
                                 number_at(check, 1), numbers_from(check, 2), count_of(check) - 2,
                                 error);
}

/* What the last point proves, for a line with one number, which no cost reaches that is cut off. */
static MtfPointBound *find_bound(Check *check, GError **error) {
    if (!wants(check, here(check)->point != NULL && is_cutoff(check),
               "a point before it and one number are wanted", error))
        return NULL;
    return mtf_point_bound_new(here(check)->point, here(check)->problem, error);
}

/* Whether nothing that any choice costs was cut off. */
static bool is_uncut(const Check *check) {
    int64_t cutoff = here(check)->cutoff;
    return cutoff == NO_CUTOFF || (check->has_worst && cutoff >= check->worst);
}

/* A bound above the cutoff refutes; so does one above what any choice costs. */
static void take_bound(Check *check, int64_t bound) {
    int64_t cutoff = here(check)->cutoff;
    if (bound > cutoff || (is_uncut(check) && check->has_worst && bound > check->worst))
        here(check)->is_refuted = true;
    raise_bound(check, cutoff < NO_CUTOFF ? MIN(bound, cutoff + 1) : bound);
}

static bool read_bound(Check *check, GError **error) {
    if (!wants(check, here(check)->kind != OF_ASSUMPTION, "not under an assumption", error))
        return false;
    MtfPointBound *bound = find_bound(check, error);
    if (bound == NULL)
        return false;
    int64_t claimed = number_at(check, 0);
    bool infinite = mtf_point_bound_is_infinite(bound);
    bool holds = claimed > INT64_MIN && mtf_point_bound_exceeds(bound, claimed - 1);
    mtf_point_bound_free(bound);
    here(check)->is_refuted |= infinite;
    if (holds && !infinite)
        take_bound(check, claimed);
    return wants(check, holds, "the point does not prove it", error);
}

static bool read_prune(Check *check, GError **error) {
    check->pruning = find_bound(check, error);
    if (check->pruning == NULL)
        return false;
    check->prune_cutoff = number_at(check, 0);
    lower_cutoff(check, check->prune_cutoff);
    here(check)->is_refuted |= mtf_point_bound_exceeds(check->pruning, check->prune_cutoff);
    return true;
}

static bool read_value(Check *check, GError **error) {
    if (!wants(check, check->pruning != NULL && count_of(check) == 2, "not in a prune", error) ||
        !is_value(check, number_at(check, 0), number_at(check, 1), error))
        return false;
    int node = (int)number_at(check, 0), value = (int)number_at(check, 1);
    if (!mtf_point_bound_excludes(check->pruning, node, value, check->prune_cutoff))
        return mtf_input_error(error, "the point does not exclude value %d of node %d", value,
                               node);
    exclude(check, node, value);
    return true;
}

static bool read_entry(Check *check, GError **error) {
    bool fits = check->pruning != NULL && here(check)->kind != OF_ASSUMPTION &&
                count_of(check) >= 2 && count_of(check) % 2 == 0;
    if (!wants(check, fits, "not in a prune", error) ||
        !is_node(check, number_at(check, 0), error) || !is_node(check, number_at(check, 1), error))
        return false;
    MtfCertifiedProblem *problem = here(check)->problem;
    int a = (int)number_at(check, 0), b = (int)number_at(check, 1);
    int edge = mtf_certified_edge(problem, a, b);
    if (!wants(check, edge >= 0, "no such edge", error))
        return false;
    for (int i = 2; i < count_of(check); i += 2) {
        if (!is_value(check, a, number_at(check, i), error) ||
            !is_value(check, b, number_at(check, i + 1), error))
            return false;
        int p = (int)number_at(check, i), q = (int)number_at(check, i + 1);
        if (!mtf_point_bound_excludes_entry(check->pruning, a, b, p, q, check->prune_cutoff))
            return mtf_input_error(error, "the point does not exclude (%d, %d)", p, q);
        *mtf_certified_entry(problem, edge, a, p, q) = MTF_CERTIFIED_NEVER;
    }
    return true;
}

static bool read_end(Check *check, GError **error) {
    bool is_open = check->point_is_open || check->pruning != NULL;
    check->point_is_open = false;
    g_clear_pointer(&check->pruning, mtf_point_bound_free);
    return wants(check, is_open, "nothing is open", error);
}

static bool read_single(Check *check, GError **error) {
    bool legal;
    MtfInt128 cost;
    if (!wants(check, is_cutoff(check), "one number is wanted", error) ||
        !wants(check, mtf_certified_single(here(check)->problem, &legal, &cost),
               "a node has more than one value left", error))
        return false;
    int64_t cutoff = number_at(check, 0);
    lower_cutoff(check, cutoff);
    bool useless = !legal || cost > cutoff || mtf_certified_check_dead(here(check)->problem);
    here(check)->is_refuted |= useless;
    return wants(check, useless, "the choice that is left costs no more", error);
}

static bool read_order(Check *check, GError **error) {
    g_array_set_size(check->order, 0);
    for (int i = 0; i < count_of(check); i++) {
        int node = (int)number_at(check, i);
        if (!is_node(check, number_at(check, i), error))
            return false;
        g_array_append_val(check->order, node);
    }
    return true;
}

/* The rows of the times that a line names from number `first` on; NULL where one does not count. */
static GArray *find_rows(const Check *check, int first, GError **error) {
    const MtfCertifiedProblem *problem = here(check)->problem;
    g_autoptr(GArray) rows = g_array_new(FALSE, FALSE, sizeof(int));
    for (int i = first; i < count_of(check); i++) {
        int r = 0;
        while (r < problem->rows && problem->times[r] != number_at(check, i))
            r++;
        if (r == problem->rows) {
            mtf_input_error(error, "time %" G_GINT64_FORMAT " does not count", number_at(check, i));
            return NULL;
        }
        g_array_append_val(rows, r);
    }
    return g_steal_pointer(&rows);
}

static bool read_buckets(Check *check, GError **error) {
    if (!wants(check, here(check)->point != NULL && count_of(check) > 0 && check->order->len > 0,
               "a point and an order before it and a number are wanted", error))
        return false;
    g_autoptr(GArray) rows = find_rows(check, 1, error);
    MtfPointBound *bound =
        rows != NULL ? mtf_point_bound_new(here(check)->point, here(check)->problem, error) : NULL;
    if (bound == NULL)
        return false;
    MtfEliminationClaim claim = { check->order, rows, number_at(check, 0) };
    bool holds = mtf_elimination_holds(bound, here(check)->problem, &claim, error);
    mtf_point_bound_free(bound);
    here(check)->is_refuted |= holds;
    if (holds)
        lower_cutoff(check, claim.cutoff);
    return holds;
}

/* ---- contexts ---- */

static bool read_assume(Check *check, GError **error) {
    if (!wants(check, count_of(check) == 2, "a node and a value are wanted", error) ||
        !is_value(check, number_at(check, 0), number_at(check, 1), error))
        return false;
    Context context = *here(check);
    context.kind = OF_ASSUMPTION;
    context.point = NULL;
    context.node = (int)number_at(check, 0);
    context.value = (int)number_at(check, 1);
    context.undo = g_array_new(FALSE, FALSE, sizeof(Undo));
    g_array_append_val(check->contexts, context);
    for (int p = 0; p < context.problem->nodes[context.node].values; p++)
        if (p != context.value)
            exclude(check, context.node, p);
    g_clear_pointer(&context.problem->least, g_free);
    return true;
}

static bool read_guess(Check *check, GError **error) {
    if (!wants(check, is_cutoff(check), "one number is wanted", error) ||
        !wants(check, here(check)->kind != OF_ASSUMPTION, "not under an assumption", error))
        return false;
    Context context = *here(check);
    context.kind = OF_GUESS;
    context.point = NULL;
    context.cutoff = MIN(context.cutoff, number_at(check, 0));
    context.problem = mtf_certified_copy(context.problem);
    context.undo = NULL;
    g_array_append_val(check->contexts, context);
    return true;
}

static void take_back(const Context *context) {
    for (guint i = context->undo->len; i > 0; i--) {
        const Undo *undo = &g_array_index(context->undo, Undo, i - 1);
        context->problem->nodes[undo->node].cost[undo->value] = undo->cost;
    }
    context->problem->is_dead = false; /* or the context around were refuted */
    g_clear_pointer(&context->problem->least, g_free);
    g_array_unref(context->undo);
}

/* Ends the innermost context, with what it owns, and returns what it came to. */
static Context leave(Check *check) {
    Context context = *here(check);
    g_array_set_size(check->contexts, check->contexts->len - 1);
    if (context.is_skipped)
        return context;
    mtf_point_free(context.point);
    if (context.kind == OF_ASSUMPTION)
        take_back(&context);
    else
        mtf_certified_free(context.problem);
    return context;
}

static bool read_done(Check *check, GError **error) {
    if (!wants(check, here(check)->kind != OF_ALL, "nothing was assumed", error))
        return false;
    Context ended = leave(check);
    if (ended.is_skipped || !ended.is_refuted)
        return true; /* and nothing follows from it */
    if (ended.kind == OF_GUESS) {
        raise_bound(check, ended.cutoff < NO_CUTOFF ? ended.cutoff + 1 : NO_CUTOFF);
        return true;
    }
    lower_cutoff(check, ended.cutoff);
    exclude(check, ended.node, ended.value);
    return true;
}

/* Contexts within one that is refuted are counted, no more. */
static bool skip(Check *check, const char *word) {
    if (strcmp(word, "assume") == 0 || strcmp(word, "guess") == 0) {
        Context context = *here(check);
        context.is_skipped = true;
        context.kind = OF_ASSUMPTION;
        g_array_append_val(check->contexts, context);
        return true;
    }
    bool closes = strcmp(word, "end") == 0 && check->pruning != NULL;
    return strcmp(word, "done") != 0 && strcmp(word, "choice") != 0 && !closes;
}

/* ---- lines ---- */

static bool read_strategy(const Check *check, int node, int *strategy, GError **error) {
    int64_t number = number_at(check, node);
    if (number < 0 || number >= mtf_layout_problem_node(check->whole, node)->strategies)
        return mtf_input_error(error, "node %d has no such strategy", node);
    *strategy = (int)number;
    return true;
}

static bool read_choice(Check *check, GError **error) {
    int count = mtf_layout_problem_node_count(check->whole);
    if (!wants(check, count_of(check) == count, "a strategy for each node is wanted", error))
        return false;
    g_autofree int *choice = g_new(int, count + 1);
    for (int v = 0; v < count; v++)
        if (!read_strategy(check, v, &choice[v], error))
            return false;
    MtfLayoutValue value = mtf_layout_problem_evaluate(check->whole, choice);
    if (!wants(check, mtf_layout_problem_allows(check->whole, &value), "the choice is not legal",
               error))
        return false;
    check->proven->cost =
        check->proven->has_choice ? MIN(check->proven->cost, value.cost) : value.cost;
    check->proven->has_choice = true;
    return true;
}

static bool read_needs(Check *check, GError **error) {
    if (!wants(check, count_of(check) == 1 && number_at(check, 0) >= 0, "a limit is wanted",
               error) ||
        !wants(check, check->bare == NULL && check->contexts->len == 0, "not in its place", error))
        return false;
    check->bare = mtf_layout_problem_without_costs(check->whole);
    mtf_layout_problem_set_limit(check->bare, number_at(check, 0));
    return true;
}

static bool read_scale(Check *check, GError **error) {
    if (!wants(check, count_of(check) == 2 && check->contexts->len == 0, "two shifts are wanted",
               error))
        return false;
    int64_t cost_shift = number_at(check, 0), usage_shift = number_at(check, 1);
    if (!wants(check, cost_shift >= 0 && cost_shift < 62 && usage_shift >= 0 && usage_shift < 62,
               "shifts out of range", error))
        return false;
    check->cost_shift = (int)cost_shift;
    Context context = { .kind = OF_ALL, .cutoff = NO_CUTOFF };
    context.problem = mtf_certified_new(check->bare != NULL ? check->bare : check->whole,
                                        (int)cost_shift, (int)usage_shift);
    if (context.problem == NULL)
        return mtf_input_error(error, "costs are too large");
    g_array_append_val(check->contexts, context);
    return true;
}

typedef struct Reader {
    const char *word;
    bool (*read)(Check *check, GError **error);
} Reader;

static const Reader readers[] = {
    { "rows", read_rows },   { "keep", read_keep },           { "join", read_join },
    { "move", read_move },   { "eliminate", read_eliminate }, { "shut", read_shut },
    { "dead", read_dead },   { "worst", read_worst },         { "point", read_point },
    { "price", read_price }, { "message", read_message },     { "end", read_end },
    { "bound", read_bound }, { "prune", read_prune },         { "value", read_value },
    { "entry", read_entry }, { "single", read_single },       { "assume", read_assume },
    { "guess", read_guess }, { "done", read_done },           { "choice", read_choice },
    { "part", read_part },   { "order", read_order },         { "buckets", read_buckets },
};

/* Reads the numbers of a line; false where one is none. */
static bool read_numbers(Check *check, const char *text) {
    g_array_set_size(check->numbers, 0);
    while (*text == ' ') {
        char *end;
        errno = 0;
        int64_t number = g_ascii_strtoll(text + 1, &end, 10);
        if (end == text + 1 || errno != 0 || text[1] == ' ')
            return false;
        g_array_append_val(check->numbers, number);
        text = end;
    }
    return *text == '\0';
}

static bool read_step(Check *check, const char *word, GError **error) {
    if (strcmp(word, "scale") == 0)
        return read_scale(check, error);
    if (strcmp(word, "needs") == 0)
        return read_needs(check, error);
    if (!wants(check, check->contexts->len > 0, "\"scale\" comes first", error))
        return false;
    if (here(check)->is_refuted && skip(check, word))
        return true;
    bool in_block = strcmp(word, "end") == 0 || strcmp(word, "price") == 0 ||
                    strcmp(word, "message") == 0 || strcmp(word, "value") == 0 ||
                    strcmp(word, "entry") == 0;
    if (!wants(check, in_block || (!check->point_is_open && check->pruning == NULL),
               "\"end\" is missing", error))
        return false;
    for (gsize i = 0; i < G_N_ELEMENTS(readers); i++)
        if (strcmp(word, readers[i].word) == 0)
            return readers[i].read(check, error);
    return mtf_input_error(error, "unknown word \"%s\"", word);
}

/* `line` is changed. */
static bool read_line(Check *check, char *line, int number, GError **error) {
    char *space = strchr(line, ' ');
    bool fits = read_numbers(check, space != NULL ? space : "");
    if (space != NULL)
        *space = '\0';
    if (!wants(check, fits, "numbers of 64 bits with one space before each are wanted", error))
        return false;
    if (number > 1)
        return read_step(check, line, error);
    bool known =
        strcmp(line, "meshtf-certificate") == 0 && count_of(check) == 1 && number_at(check, 0) == 1;
    return wants(check, known, "not a certificate of version 1", error);
}

/* Reads line after line; says in which one it ends. */
static bool read_lines(Check *check, const char *text, GError **error) {
    int number = 0;
    g_autoptr(GString) line = g_string_new(NULL);
    while (*text != '\0') {
        const char *end = strchrnul(text, '\n');
        g_string_truncate(line, 0);
        g_string_append_len(line, text, end - text);
        text = *end == '\0' ? end : end + 1;
        if (!read_line(check, line->str, ++number, error)) {
            g_prefix_error(error, "line %d: ", number);
            return false;
        }
    }
    check->proven->lines = number;
    return wants(check,
                 check->contexts->len == 1 && !check->point_is_open && check->pruning == NULL,
                 "the certificate ends too early", error);
}

/* What they say of the problem without costs. */
static void conclude_needs(Check *check) {
    int64_t limit = mtf_layout_problem_limit(check->bare);
    if (!here(check)->is_refuted || !is_uncut(check))
        return;
    check->proven->needed = limit < MTF_NO_LIMIT ? limit + 1 : limit;
    check->proven->none_fits = mtf_layout_problem_limit(check->whole) <= limit;
}

/* What all lines together say. */
static void conclude(Check *check) {
    const Context *context = here(check);
    MtfProven *proven = check->proven;
    if (check->bare != NULL) {
        conclude_needs(check);
        return;
    }
    proven->none_fits = context->is_refuted && is_uncut(check);
    if (context->is_refuted && context->cutoff < NO_CUTOFF)
        raise_bound(check, context->cutoff + 1);
    proven->has_bound = check->has_bound && !proven->none_fits;
    proven->bound = (MtfInt128)check->bound * ((MtfInt128)1 << check->cost_shift);
}

bool mtf_certificate_check(const MtfLayoutProblem *problem, const char *text, MtfProven *proven,
                           GError **error) {
    *proven = (MtfProven){ 0 };
    Check check = { .whole = problem,
                    .contexts = g_array_new(FALSE, FALSE, sizeof(Context)),
                    .numbers = g_array_new(FALSE, FALSE, sizeof(int64_t)),
                    .order = g_array_new(FALSE, FALSE, sizeof(int)),
                    .proven = proven };
    bool holds = read_lines(&check, text, error);
    if (holds)
        conclude(&check);
    g_clear_pointer(&check.pruning, mtf_point_bound_free);
    while (check.contexts->len > 0)
        leave(&check);
    mtf_layout_problem_free(check.bare);
    g_array_unref(check.contexts);
    g_array_unref(check.numbers);
    g_array_unref(check.order);
    return holds;
}
