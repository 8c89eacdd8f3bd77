// SPDX-License-Identifier: GPL-3.0-or-later
/* Certificates written by hand, right and wrong, and right ones made wrong at random. */
#include "tests/support/cmocka.h"

#include "analyzer/certificate/certificate_check.h"
#include "analyzer/solver/search/layout_solve.h"
#include "tests/support/problems/layout_problems.h"

#include <string.h>

#define ROUNDS 1200
#define FORGERIES 12
#define MAX_NODES 16

/* Both in memory at times 2 and 3, where 11 fits:
 *
 *     node 0 \ 1    cost 1, usage 8   cost 4, usage 2       (0, 0) =  2 uses 16
 *     1, 8                 0                 0              (0, 1) =  5 uses 10: the optimum
 *     5, 3                 0                 9              (1, 0) =  6 uses 11, (1, 1) = 18 uses 5  */
static MtfLayoutProblem *pair_problem(void) {
    MtfLayoutProblem *problem = mtf_layout_problem_new("pair");
    mtf_layout_problem_add_node(
        problem, (MtfLayoutNode){ 0, 4, 2, (int64_t[]){ 1, 5 }, (int64_t[]){ 8, 3 } });
    mtf_layout_problem_add_node(
        problem, (MtfLayoutNode){ 2, 6, 2, (int64_t[]){ 1, 4 }, (int64_t[]){ 8, 2 } });
    mtf_layout_problem_add_edge(problem, (MtfLayoutEdge){ 0, 1, (int64_t[]){ 0, 0, 0, 9 } });
    mtf_layout_problem_set_limit(problem, 11);
    return problem;
}

#define HEAD "meshtf-certificate 1\nscale 0 0\n"
#define NEEDS "meshtf-certificate 1\nneeds "
#define ROWS HEAD "rows 2\n"

/* What a certificate of the pair proves; NULL: it is refused. */
static const MtfProven *proven_of(const char *text, GError **error) {
    static MtfProven proven;
    g_autoptr(MtfLayoutProblem) problem = pair_problem();
    return mtf_certificate_check(problem, text, &proven, error) ? &proven : NULL;
}

static void assert_proves(const char *text, int64_t bound) {
    g_autoptr(GError) error = NULL;
    const MtfProven *proven = proven_of(text, &error);
    if (proven == NULL)
        fail_msg("%s in\n%s", error->message, text);
    assert_true(proven->has_bound && proven->bound == bound);
}

static void assert_proves_nothing(const char *text) {
    const MtfProven *proven = proven_of(text, NULL);
    assert_true(proven != NULL && !proven->has_bound && !proven->none_fits);
}

static void assert_refused(const char *text, const char *why) {
    g_autoptr(GError) error = NULL;
    if (proven_of(text, &error) != NULL)
        fail_msg("accepted:\n%s", text);
    if (strstr(error->message, why) == NULL)
        fail_msg("\"%s\" where \"%s\" is wanted of\n%s", error->message, why, text);
}

/* At 13/16 for a unit of memory: 5 + 39/16 and 4 + 26/16 at least, less 11 * 13/16: 66/16, above 4. */
TEST(prices_prove_what_they_add_up_to) {
    assert_proves(ROWS "point 0 4\nprice 2 13\nend\nbound 5\n", 5);
    assert_refused(ROWS "point 0 4\nprice 2 13\nend\nbound 6\n", "line 7: the point does not");
    assert_proves(ROWS "point 0 0\nend\nbound 2\n", 2);
    assert_refused(ROWS "point 0 0\nend\nbound 3\n", "the point does not prove it");
    assert_refused(ROWS "point 0 4\nprice 2 -13\nend\nbound 5\n", "below zero");
    assert_refused(ROWS "point 0 4\nprice 3 13\nend\nbound 5\n", "time 3 does not count");
    assert_refused(HEAD "rows\npoint 0 4\nprice 2 13\nend\nbound 5\n", "time 2 does not count");
}

/* (1, 1) uses least, 5. What costs say counts for nothing there. */
TEST(what_is_needed_holds_for_every_choice) {
    const MtfProven *proven = proven_of(NEEDS "4\nscale 0 0\nrows 2\ndead\n", NULL);
    assert_true(proven != NULL && proven->needed == 5 && !proven->none_fits && !proven->has_bound);
    assert_proves_nothing(NEEDS "11\nscale 0 0\nrows 2\npoint 0 0\nend\nbound 0\n");
    assert_refused(NEEDS "5\nscale 0 0\nrows 2\ndead\n", "every row fits");
    assert_refused(NEEDS "4\nscale 0 0\nrows 2\npoint 0 0\nend\nbound 1\n", "does not prove it");
    assert_refused(NEEDS "-1\nscale 0 0\n", "a limit is wanted");
    assert_refused(NEEDS "4\nneeds 4\n", "not in its place");
    assert_refused(HEAD "needs 4\n", "not in its place");
}

/* Without memory the least is (0, 0) = 2, and messages only move costs: 1 to value 0 of node 0 from its
 * edge makes that 2 + 1 - 1 at best. */
TEST(messages_move_costs_and_add_none) {
    assert_proves(ROWS "point 0 0\nmessage 0 1 1 0\nend\nbound 2\n", 2);
    assert_refused(ROWS "point 0 0\nmessage 0 1 1 0\nend\nbound 3\n", "does not prove it");
    assert_refused(ROWS "point 0 0\nmessage 0 1 1\nend\nbound 2\n", "no edge");
    assert_refused(ROWS "point 0 0\nmessage 0 0 1 0\nend\nbound 2\n", "no edge");
    assert_proves(ROWS "move 0 1 1 0\npoint 0 0\nend\nbound 2\n", 2);
    assert_refused(ROWS "move 0 1 1 0\npoint 0 0\nend\nbound 3\n", "does not prove it");
    assert_refused(ROWS "move 0 1 9223372036854775807 0\n", "a sum leaves 64 bits");
}

/* With value 0 of node 0 its neighbour's 0 is too large, and 1 + 4 is left; with value 1 at least 6. */
#define CASES \
    ROWS "assume 0 0\nshut 1 0\nsingle 4\ndone\nassume 0 1\npoint 0 0\nend\nprune 4\nend\ndone\n"

TEST(cases_prove_together) {
    assert_proves(CASES, 5);
    assert_proves(CASES "choice 0 1\n", 5);
    assert_proves_nothing(ROWS "assume 0 0\nshut 1 0\nsingle 4\ndone\n");
    assert_proves_nothing(ROWS "assume 0 0\nshut 1 0\ndone\nassume 0 1\ndone\n");
    assert_refused(ROWS "assume 0 0\nshut 1 0\nsingle 5\ndone\n", "costs no more");
    assert_refused(ROWS "assume 0 0\nsingle 4\ndone\n", "more than one value");
    assert_refused(ROWS "shut 1 0\n", "no reason to shut value 0 of node 1");
    assert_refused(ROWS "assume 0 1\nshut 1 0\n", "no reason to shut");
    assert_refused(ROWS "assume 0 1\npoint 0 0\nend\nbound 6\n", "under an assumption");
    assert_refused(ROWS "assume 0 0\nkeep 1 1\n", "under an assumption");
    assert_refused(ROWS "assume 0 0\n", "ends too early");
    assert_refused(ROWS "done\n", "nothing was assumed");
    assert_refused(ROWS "dead\n", "every row fits");
}

/* A guess is forgotten when it ends, but for the bound that it proved. */
TEST(a_guess_is_a_bound_once_it_is_refuted) {
    assert_proves(ROWS "guess 4\npoint 0 4\nprice 2 13\nend\nprune 4\nend\ndone\n", 5);
    assert_proves_nothing(ROWS "guess 4\npoint 0 0\nend\nprune 4\nend\ndone\n");
    assert_refused(ROWS "guess 9223372036854775807\n", "one number is wanted");
    assert_refused(ROWS "guess 4\npoint 0 0\nend\nprune 4\nentry 0 1 1 1\nend\ndone\n"
                        "join 0 1 0 0 0 1 1 0\n",
                   "pair (1, 1) of 0 and 1 is possible");
}

/* (1, 1) costs 18; with it gone node 0's value 1 leaves node 1 one. */
TEST(a_cutoff_prunes_what_costs_more) {
    assert_proves(ROWS "point 0 0\nend\nprune 17\nentry 0 1 1 1\nend\njoin 0 1 0 0 0 1 1 0\n"
                       "keep 0 1 2\npoint 0 0\nend\nbound 5\n",
                  5);
    assert_refused(ROWS "point 0 0\nend\nprune 18\nentry 0 1 1 1\nend\n",
                   "does not exclude (1, 1)");
    assert_refused(ROWS "point 0 0\nend\nprune 5\nvalue 0 0\nend\n", "does not exclude value 0");
    assert_refused(ROWS "point 0 0\nend\nprune 5\nvalue 0 2\nend\n", "not a value of node 0");
    assert_refused(ROWS "point 0 0\nend\nprune 5\nbound 2\n", "\"end\" is missing");
    assert_refused(ROWS "prune 5\nend\n", "a point before it");
    assert_refused(ROWS "value 0 0\n", "not in a prune");
    assert_refused(ROWS "point 0 0\nend\nprune 5\nend\nworst\n", "nor with a cutoff");
}

/* Without memory the least is (0, 0) = 2, with that of time 2 it is (0, 1) = 5, whatever the prices and in
 * either order. */
TEST(buckets_prove_what_is_left_and_no_unit_more) {
    assert_proves(ROWS "point 0 0\nend\norder 0 1\nbuckets 4 2\n", 5);
    assert_proves(ROWS "point 0 4\nprice 2 13\nend\norder 1 0\nbuckets 4 2\n", 5);
    assert_proves(ROWS "point 0 2\nprice 2 1\nend\norder 1 0\nbuckets 4 2\n", 5);
    assert_proves(ROWS "point 0 0\nmessage 0 1 1 0\nend\norder 1 0\nbuckets 4 2\n", 5);
    assert_proves(ROWS "guess 4\npoint 0 0\nend\norder 0 1\nbuckets 4 2\ndone\n", 5);
    assert_refused(ROWS "point 0 0\nend\norder 0 1\nbuckets 5 2\n", "at most 5 is left");
    assert_refused(ROWS "point 0 4\nprice 2 13\nend\norder 0 1\nbuckets 5 2\n", "is left");
    assert_proves(ROWS "point 0 0\nend\norder 0 1\nbuckets 1\n", 2);
    assert_refused(ROWS "point 0 0\nend\norder 0 1\nbuckets 2\n", "at most 2 is left");
    assert_proves(ROWS "point 0 4\nprice 2 13\nend\norder 0 1\nbuckets 4\n", 5);
}

TEST(buckets_go_in_an_order_of_all_nodes) {
    assert_refused(ROWS "point 0 0\nend\norder 0\nbuckets 4 2\n", "leaves out node 1");
    assert_refused(ROWS "point 0 0\nend\norder 0 1 0\nbuckets 4 2\n", "has node 0 twice");
    assert_refused(ROWS "point 0 0\nend\norder 0 2\nbuckets 4 2\n", "2 is not a node");
    assert_refused(ROWS "point 0 0\nend\nbuckets 4 2\n", "a point and an order before it");
    assert_refused(ROWS "order 0 1\nbuckets 4 2\n", "a point and an order before it");
    assert_refused(ROWS "point 0 0\nend\norder 0 1\nbuckets\n", "a number are wanted");
    assert_refused(ROWS "point 0 0\nend\norder 0 1\nbuckets 4 3\n", "time 3 does not count");
    assert_refused(ROWS "keep 0 0 1\njoin 0 1 0 0 0 1 1 0 1 1\npoint 0 0\nend\norder 0 1\n",
                   "1 is not a node that is left");
}

/* What remains of an order when a node of it goes is none. */
TEST(an_order_ends_with_its_nodes) {
    assert_refused(HEAD "rows\norder 0 1\neliminate 0\npoint 0 0\nend\nbuckets 1\n",
                   "a point and an order before it");
}

TEST(steps_need_reasons) {
    assert_refused(ROWS "keep 0 0\n", "no reason to drop value 1 of node 0");
    assert_refused(ROWS "keep 0 1\n", "no reason to drop value 0 of node 0");
    assert_refused(ROWS "keep 0 0 0\n", "once");
    assert_refused(ROWS "keep 0 0 2\n", "not a value that is left");
    assert_refused(ROWS "keep 0\n", "no reason to drop");
    assert_refused(ROWS "join 0 1 0 0 0 1 1 1\n", "pair (1, 0) of 0 and 1 is possible");
    assert_refused(ROWS "join 0 0 0 0 1 1\n", "two nodes");
    assert_refused(ROWS "eliminate 0\n", "differ in memory");
    assert_refused(ROWS "eliminate 7\n", "7 is not a node");
    assert_refused(ROWS "part 0 1\n", "the pair (1, 1) of 0 and 1 costs something");
    assert_refused(ROWS "part 0 0\n", "no edge (0, 0)");
    assert_refused(ROWS "part 0\n", "too few numbers");
    assert_refused(ROWS "rows 2 3\n", "time 3 is not one that still counts");
    /* without rows the problem is an easier one, in which 0 is best for both */
    assert_proves(
        HEAD "rows\nkeep 0 0\nkeep 1 0\neliminate 0\neliminate 1\npoint 0 0\nend\nbound 2\n", 2);
    assert_proves(HEAD "rows\nkeep 0 0\npart 0 1\npoint 0 0\nend\nbound 2\n", 2);
    assert_refused(HEAD "rows\neliminate 0\nrows 2\n", "still counts");
}

TEST(lines_must_be_of_the_format) {
    assert_refused("", "ends too early");
    assert_refused("meshtf-certificate 2\n", "line 1: not a certificate of version 1");
    assert_refused("meshtf-certificate 1\nrows\n", "\"scale\" comes first");
    assert_refused(HEAD "scale 0 0\n", "two shifts");
    assert_refused(HEAD "scale 0 63\n", "two shifts");
    assert_refused(HEAD "hope 1\n", "unknown word \"hope\"");
    assert_refused(ROWS "bound five\n", "numbers of 64 bits");
    assert_refused(ROWS "bound 9223372036854775808\n", "numbers of 64 bits");
    assert_refused(ROWS "point 0 0\nend\nbound  2\n", "one space");
    assert_refused(ROWS "point 5 4\nend\n", "shifts out of range");
    assert_refused(ROWS "end\n", "nothing is open");
    assert_refused(ROWS "choice 0 0\n", "not legal");
    assert_refused(ROWS "choice 0\n", "a strategy for each node");
    assert_refused(ROWS "choice 0 2\n", "node 1 has no such strategy");
}

/* ---- forged at random ---- */

/* Some number of a line becomes another one. */
static char *changed_line(const char *line, GRand *rand) {
    g_auto(GStrv) words = g_strsplit(line, " ", -1);
    guint count = g_strv_length(words);
    if (count < 2)
        return g_strdup(line);
    guint i = (guint)g_rand_int_range(rand, 1, (gint32)count);
    gint64 number = g_ascii_strtoll(words[i], NULL, 10);
    static const gint64 steps[] = { 1, -1, 3, -7, 1000, INT64_C(20000000000021) };
    number += steps[g_rand_int_range(rand, 0, G_N_ELEMENTS(steps))];
    g_free(words[i]);
    words[i] = g_strdup_printf("%" G_GINT64_FORMAT, number);
    return g_strjoinv(" ", words);
}

/* Lines changed, left out, said twice or exchanged, one to three times. */
static char *forged(const char *text, GRand *rand) {
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    gint32 count = (gint32)g_strv_length(lines) - 1; /* the last one is empty */
    for (int times = g_rand_int_range(rand, 1, 4); times > 0; times--) {
        gint32 i = g_rand_int_range(rand, 2, count), k = g_rand_int_range(rand, 2, count);
        char *old = lines[i];
        switch (g_rand_int_range(rand, 0, 5)) {
        case 0:
            lines[i] = g_strdup("");
            break;
        case 1:
            lines[i] = g_strdup_printf("%s\n%s", old, old);
            break;
        case 2:
            lines[i] = g_strdup(lines[k]);
            break;
        default:
            lines[i] = changed_line(old, rand);
        }
        g_free(old);
    }
    GString *whole = g_string_new(NULL);
    for (gint32 i = 0; i < count; i++)
        if (*lines[i] != '\0')
            g_string_append_printf(whole, "%s\n", lines[i]);
    return g_string_free(whole, FALSE);
}

/* What is accepted may be less than before; it is never more than is true. */
TEST(no_forgery_proves_what_is_false) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(71);
    int accepted = 0, refused = 0;
    for (int round = 0; round < ROUNDS; round++) {
        g_autoptr(MtfLayoutProblem) problem =
            round % 4 == 3 ? mtf_test_repeated_problem(rand) : mtf_test_random_problem(rand);
        MtfInt128 optimum = 0;
        int choice[MAX_NODES];
        bool fits = mtf_test_exhaustive_search(problem, &optimum, choice);
        g_autoptr(MtfCertificate) certificate = mtf_certificate_new();
        MtfSolveOptions options = { .without = round % 3 == 2
                                                   ? (MtfSolveMethods)~MTF_METHOD_ELIMINATION
                                                   : 0,
                                    .no_infeasibility = true,
                                    .certificate = certificate };
        mtf_layout_solution_free(mtf_layout_solve(problem, &options, NULL, NULL));
        for (int i = 0; i < FORGERIES; i++) {
            g_autofree char *text = forged(mtf_certificate_text(certificate), rand);
            MtfProven proven;
            bool holds = mtf_certificate_check(problem, text, &proven, NULL);
            accepted += holds;
            refused += !holds;
            if (!holds)
                continue;
            assert_false(fits && proven.none_fits);
            assert_true(!fits || !proven.has_bound || proven.bound <= optimum);
            assert_true(!proven.has_choice || (fits && proven.cost >= optimum));
        }
    }
    assert_true(accepted > ROUNDS && refused > ROUNDS);
}
