// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/free/left_out.h"

#include "cost/memory/arena.h"
#include "layouts/program/lifetimes.h"

#include <math.h>
#include <string.h>

/* So many amounts that a resharding may need are told apart, where there are no more values of a node, nor pairs of
 * strategies, than these. */
#define AMOUNTS 12
#define MOST_VALUES 2000
#define MOST_PAIRS 20000

/* What the reshardings of edges of one kind need. */
typedef struct {
    int from, to;    /* strategies */
    int64_t *needs;  /* of each pair of them, one of */
    GArray *amounts; /* … int64_t, ascending; NULL: the strategies are too many */
} MoveKind;

typedef struct {
    int edge;
    int operation; /* that it is made for */
    const MoveKind *kind;
} Move;

struct MtfLeftOut {
    const MtfFreeProblem *problem;
    MtfLayout *plain;  /* of its graph */
    int64_t *rest;     /* at each operation, beside moves */
    GArray *moves;     /* Move: one an operation, at most */
    bool *moves_at;    /* each operation has one */
    GHashTable *kinds; /* MoveKind */
};

static int operation_count(const MtfLeftOut *left) {
    return (int)mtf_free_problem_graph(left->problem)->operations->len;
}

static void kind_free(gpointer data) {
    MoveKind *kind = data;
    g_free(kind->needs);
    if (kind->amounts != NULL)
        g_array_unref(kind->amounts);
    g_free(kind);
}

MtfLeftOut *mtf_left_out_new(const MtfFreeProblem *problem) {
    MtfLeftOut *left = g_new(MtfLeftOut, 1);
    *left = (MtfLeftOut){ .problem = problem,
                          .plain = mtf_layout_new(mtf_free_problem_graph(problem),
                                                  mtf_free_problem_mesh(problem)),
                          .moves = g_array_new(FALSE, FALSE, sizeof(Move)),
                          .kinds = g_hash_table_new_full(NULL, NULL, NULL, kind_free) };
    left->rest = g_new0(int64_t, operation_count(left) + 1);
    left->moves_at = g_new0(bool, operation_count(left) + 1);
    return left;
}

void mtf_left_out_free(MtfLeftOut *left) {
    if (left == NULL)
        return;
    mtf_layout_free(left->plain);
    g_free(left->rest);
    g_free(left->moves_at);
    g_array_unref(left->moves);
    g_hash_table_unref(left->kinds);
    g_free(left);
}

/* ---- What a resharding needs ------------------------------------------------------------------ */

static int64_t bytes_of(const MtfProgram *program, int buffer) {
    return buffer >= 0 ? mtf_program_buffer(program, buffer)->bytes : 0;
}

/* The most that one of the reshard ops, each of which reads what the one before left, has beside the source and, where
 * the problem counts it, what is left at last. */
static int64_t needed_bytes(const MtfProgram *path, bool counts_result) {
    int n = mtf_program_length(path);
    int64_t most = 0;
    for (int i = 0; i < n; i++) {
        const MtfInstruction *op = mtf_program_instruction(path, i);
        int64_t read = i > 0 ? bytes_of(path, op->inputs[0]) : 0;
        int64_t left = i + 1 < n || !counts_result ? bytes_of(path, op->outputs[0]) : 0;
        most = MAX(most, read + left + bytes_of(path, op->scratch));
    }
    return most;
}

/* What an edge needs where its ends take such strategies. */
static int64_t needed_by(const MtfLeftOut *left, int edge, int from, int to) {
    const MtfGraph *graph = mtf_free_problem_graph(left->problem);
    MtfFreeMove move = mtf_free_problem_move(left->problem, edge, from, to);
    if (mtf_placement_equal(move.from, move.to))
        return 0;
    int end = mtf_layout_problem_edge(mtf_free_problem_get(left->problem), edge)->to;
    g_autoptr(MtfProgram) path =
        mtf_lower_path(graph, left->plain, move.tensor, move.from, move.to);
    return needed_bytes(path, mtf_free_problem_node_operation(left->problem, end) < 0);
}

/* The first strategy of each that leaves, or wants, the same placement. */
static int *first_alike(const MtfLeftOut *left, int edge, int strategies, bool of_from) {
    int *first = g_new(int, strategies);
    g_autoptr(GHashTable) known = g_hash_table_new(NULL, NULL);
    for (int s = 0; s < strategies; s++) {
        MtfFreeMove move =
            mtf_free_problem_move(left->problem, edge, of_from ? s : 0, of_from ? 0 : s);
        gpointer placement = (gpointer)(of_from ? move.from : move.to);
        if (!g_hash_table_contains(known, placement))
            g_hash_table_insert(known, placement, GINT_TO_POINTER(s));
        first[s] = GPOINTER_TO_INT(g_hash_table_lookup(known, placement));
    }
    return first;
}

static int64_t amount(const MoveKind *kind, int i) {
    return g_array_index(kind->amounts, int64_t, i);
}

static int compare_amounts(gconstpointer left, gconstpointer right) {
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

/* The amount that is most nearly the next one's: the first and the last stay. */
static guint most_alike(const MoveKind *kind) {
    guint best = 1;
    double least = INFINITY;
    for (int i = 1; i + 1 < (int)kind->amounts->len; i++) {
        double times = (double)amount(kind, i + 1) / (double)amount(kind, i);
        if (times < least) {
            least = times;
            best = (guint)i;
        }
    }
    return best;
}

/* Lists the amounts, those most alike as one, and rounds what is needed up to them. */
static void tell_amounts_apart(MoveKind *kind) {
    int n = kind->from * kind->to;
    g_autoptr(GArray) all = g_array_new(FALSE, FALSE, sizeof(int64_t));
    kind->amounts = g_array_new(FALSE, TRUE, sizeof(int64_t));
    g_array_append_vals(all, kind->needs, (guint)n);
    g_array_sort(all, compare_amounts);
    g_array_set_size(kind->amounts, 1); /* nothing */
    for (int i = 0; i < n; i++)
        if (g_array_index(all, int64_t, i) > amount(kind, (int)kind->amounts->len - 1))
            g_array_append_val(kind->amounts, g_array_index(all, int64_t, i));
    while (kind->amounts->len > AMOUNTS)
        g_array_remove_index(kind->amounts, most_alike(kind));
    for (int i = 0; i < n; i++) {
        int k = 0;
        while (amount(kind, k) < kind->needs[i])
            k++;
        kind->needs[i] = amount(kind, k);
    }
}

static MoveKind *kind_new(const MtfLeftOut *left, int edge) {
    const MtfLayoutProblem *problem = mtf_free_problem_get(left->problem);
    const MtfLayoutEdge *ends = mtf_layout_problem_edge(problem, edge);
    MoveKind *kind = g_new(MoveKind, 1);
    *kind = (MoveKind){ mtf_layout_problem_node(problem, ends->from)->strategies,
                        mtf_layout_problem_node(problem, ends->to)->strategies, NULL, NULL };
    if (kind->from * AMOUNTS > MOST_VALUES || kind->from * kind->to > MOST_PAIRS)
        return kind;
    g_autofree int *from = first_alike(left, edge, kind->from, true);
    g_autofree int *to = first_alike(left, edge, kind->to, false);
    kind->needs = g_new(int64_t, kind->from * kind->to);
    for (int p = 0; p < kind->from; p++)
        for (int q = 0; q < kind->to; q++)
            kind->needs[p * kind->to + q] = from[p] < p || to[q] < q
                                                ? kind->needs[from[p] * kind->to + to[q]]
                                                : needed_by(left, edge, p, q);
    tell_amounts_apart(kind);
    return kind;
}

static const MoveKind *kind_of(MtfLeftOut *left, int edge) {
    gpointer key = GINT_TO_POINTER(mtf_free_problem_move(left->problem, edge, 0, 0).kind);
    MoveKind *kind = g_hash_table_lookup(left->kinds, key);
    if (kind == NULL) {
        kind = kind_new(left, edge);
        g_hash_table_insert(left->kinds, key, kind);
    }
    return kind;
}

/* What the resharding needs. */
static int64_t needed_at(const MtfLeftOut *left, const Move *move, const int *choice) {
    const MtfLayoutEdge *edge =
        mtf_layout_problem_edge(mtf_free_problem_get(left->problem), move->edge);
    return move->kind->needs[choice[edge->from] * move->kind->to + choice[edge->to]];
}

/* ---- What a choice had -------------------------------------------------------------------------- */

/* What the problem counts at each operation. */
static int64_t *counted_bytes(const MtfLeftOut *left, const int *choice) {
    const MtfLayoutProblem *problem = mtf_free_problem_get(left->problem);
    int n = operation_count(left);
    int64_t *bytes = g_new0(int64_t, n + 1);
    for (int v = 0; v < mtf_layout_problem_node_count(problem); v++) {
        const MtfLayoutNode *node = mtf_layout_problem_node(problem, v);
        bytes[node->start] += node->usages[choice[v]];
        bytes[node->end] -= node->usages[choice[v]];
    }
    for (int i = 1; i < n; i++)
        bytes[i] += bytes[i - 1];
    return bytes;
}

/* For each operation the most bytes, beyond what is counted, that its instructions see in an arena which is too large;
 * where they fit, 0. */
static int64_t *missing_bytes(const MtfLeftOut *left, const int *choice, const MtfProgram *program,
                              int64_t arena_bytes, int64_t limit) {
    g_autofree int64_t *counted = counted_bytes(left, choice);
    g_autofree int64_t *live = mtf_program_live(program);
    int64_t gaps = arena_bytes - mtf_arena_lower_bound(program);
    int64_t *missing = g_new0(int64_t, operation_count(left) + 1);
    for (int i = 0; i < mtf_program_length(program); i++) {
        int operation = mtf_program_instruction(program, i)->operation;
        if (live[i] + gaps > limit)
            missing[operation] = MAX(missing[operation], live[i] + gaps - counted[operation]);
    }
    return missing;
}

/* Notes of each operation that misses some the resharding beside it which takes most. */
static void note_moves(MtfLeftOut *left, const int64_t *missing, const int *choice) {
    const MtfLayoutProblem *problem = mtf_free_problem_get(left->problem);
    g_autofree int *most = g_new(int, operation_count(left) + 1); /* edge */
    g_autofree int64_t *bytes = g_new0(int64_t, operation_count(left) + 1);
    for (int e = 0; e < mtf_layout_problem_edge_count(problem); e++) {
        const MtfLayoutEdge *edge = mtf_layout_problem_edge(problem, e);
        int to = mtf_free_problem_node_operation(left->problem, edge->to);
        int operation = to >= 0 ? to : mtf_free_problem_node_operation(left->problem, edge->from);
        if (operation < 0 || missing[operation] == 0 || left->moves_at[operation])
            continue;
        int64_t needed = needed_by(left, e, choice[edge->from], choice[edge->to]);
        if (needed > bytes[operation]) {
            bytes[operation] = needed;
            most[operation] = e;
        }
    }
    for (int i = 0; i < operation_count(left); i++) {
        const MoveKind *kind = bytes[i] > 0 ? kind_of(left, most[i]) : NULL;
        if (kind == NULL || kind->amounts == NULL)
            continue;
        Move move = { most[i], i, kind };
        g_array_append_val(left->moves, move);
        left->moves_at[i] = true;
    }
}

void mtf_left_out_note(MtfLeftOut *left, const int *choice, const MtfProgram *program,
                       int64_t arena_bytes, int64_t limit) {
    g_autofree int64_t *missing = missing_bytes(left, choice, program, arena_bytes, limit);
    note_moves(left, missing, choice);
    for (guint m = 0; m < left->moves->len; m++) {
        const Move *move = &g_array_index(left->moves, Move, m);
        missing[move->operation] -= needed_at(left, move, choice);
    }
    for (int i = 0; i < operation_count(left); i++)
        left->rest[i] = MAX(left->rest[i], missing[i]);
}

/* ---- The problem with it ------------------------------------------------------------------------ */

static int add_node(MtfLayoutProblem *problem, int operation, int strategies,
                    const int64_t *usages) {
    g_autofree int64_t *costs = g_new0(int64_t, strategies);
    return mtf_layout_problem_add_node(problem, (MtfLayoutNode){ .start = operation,
                                                                 .end = operation + 1,
                                                                 .strategies = strategies,
                                                                 .costs = costs,
                                                                 .usages = usages });
}

/* Value p * amounts + k of the node is strategy p of the edge's first end and amount k. */
static void add_move(MtfLayoutProblem *problem, const Move *move) {
    const MoveKind *kind = move->kind;
    MtfLayoutEdge edge = *mtf_layout_problem_edge(problem, move->edge);
    int amounts = (int)kind->amounts->len, values = kind->from * amounts;
    g_autofree int64_t *usages = g_new(int64_t, values);
    g_autofree int64_t *same = g_new(int64_t, kind->from * values);
    g_autofree int64_t *allowed = g_new(int64_t, values * kind->to);
    for (int v = 0; v < values; v++) {
        int own = v / amounts;
        usages[v] = amount(kind, v % amounts);
        for (int p = 0; p < kind->from; p++)
            same[p * values + v] = p == own ? 0 : MTF_IMPOSSIBLE;
        for (int q = 0; q < kind->to; q++)
            allowed[v * kind->to + q] =
                kind->needs[own * kind->to + q] <= usages[v] ? 0 : MTF_IMPOSSIBLE;
    }
    int node = add_node(problem, move->operation, values, usages);
    mtf_layout_problem_add_edge(problem, (MtfLayoutEdge){ edge.from, node, same });
    mtf_layout_problem_add_edge(problem, (MtfLayoutEdge){ node, edge.to, allowed });
}

MtfLayoutProblem *mtf_left_out_pose(const MtfLeftOut *left) {
    MtfLayoutProblem *problem = mtf_layout_problem_extend(mtf_free_problem_get(left->problem));
    for (guint m = 0; m < left->moves->len; m++)
        add_move(problem, &g_array_index(left->moves, Move, m));
    for (int i = 0; i < operation_count(left); i++)
        if (left->rest[i] > 0)
            add_node(problem, i, 1, &left->rest[i]);
    return problem;
}

int *mtf_left_out_choice(const MtfLeftOut *left, const int *choice) {
    const MtfLayoutProblem *problem = mtf_free_problem_get(left->problem);
    int n = mtf_layout_problem_node_count(problem);
    int *extended = g_new0(int, n + (int)left->moves->len + operation_count(left));
    memcpy(extended, choice, (size_t)n * sizeof *choice);
    for (guint m = 0; m < left->moves->len; m++) {
        const Move *move = &g_array_index(left->moves, Move, m);
        int from = mtf_layout_problem_edge(problem, move->edge)->from, k = 0;
        while (amount(move->kind, k) < needed_at(left, move, choice))
            k++;
        extended[n + (int)m] = choice[from] * (int)move->kind->amounts->len + k;
    }
    return extended;
}
