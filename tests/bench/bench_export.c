// SPDX-License-Identifier: GPL-3.0-or-later
/* bench_export FILE lp|wcsp: writes a layout problem without a limit for other solvers, to standard
 * output.
 *
 *     lp     the integer program in marginal form, for CBC and others
 *            s<v>_<p>  node v takes strategy p       y<e>_<p>_<q>  edge e's ends take p and q
 *     wcsp   a weighted constraint network, for toulbar2; costs must not be negative */
#include "analyzer/solver/problem/layout_problem_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int strategies(const MtfLayoutProblem *problem, int node) {
    return mtf_layout_problem_node(problem, node)->strategies;
}

static int64_t entry(const MtfLayoutProblem *problem, const MtfLayoutEdge *edge, int p, int q) {
    return edge->costs[(gsize)p * (gsize)strategies(problem, edge->to) + (gsize)q];
}

static void print_objective(const MtfLayoutProblem *problem) {
    puts("Minimize\n obj:");
    for (int v = 0; v < mtf_layout_problem_node_count(problem); v++)
        for (int p = 0; p < strategies(problem, v); p++)
            if (mtf_layout_problem_node(problem, v)->costs[p] < MTF_IMPOSSIBLE)
                printf(" + %" PRId64 " s%d_%d\n", mtf_layout_problem_node(problem, v)->costs[p], v,
                       p);
    for (int e = 0; e < mtf_layout_problem_edge_count(problem); e++) {
        const MtfLayoutEdge *edge = mtf_layout_problem_edge(problem, e);
        for (int p = 0; p < strategies(problem, edge->from); p++)
            for (int q = 0; q < strategies(problem, edge->to); q++)
                if (entry(problem, edge, p, q) < MTF_IMPOSSIBLE)
                    printf(" + %" PRId64 " y%d_%d_%d\n", entry(problem, edge, p, q), e, p, q);
    }
}

/* The entries of an edge beside one end's strategy sum to that strategy. */
static void print_marginal(const MtfLayoutProblem *problem, int e, bool from, int fixed) {
    const MtfLayoutEdge *edge = mtf_layout_problem_edge(problem, e);
    int others = strategies(problem, from ? edge->to : edge->from);
    for (int i = 0; i < others; i++) {
        int p = from ? fixed : i, q = from ? i : fixed;
        if (entry(problem, edge, p, q) < MTF_IMPOSSIBLE)
            printf(" + y%d_%d_%d", e, p, q);
    }
    printf(" - s%d_%d = 0\n", from ? edge->from : edge->to, fixed);
}

static void print_lp(const MtfLayoutProblem *problem) {
    print_objective(problem);
    puts("Subject To");
    for (int v = 0; v < mtf_layout_problem_node_count(problem); v++) {
        for (int p = 0; p < strategies(problem, v); p++)
            printf(" + s%d_%d", v, p);
        puts(" = 1");
    }
    for (int e = 0; e < mtf_layout_problem_edge_count(problem); e++) {
        const MtfLayoutEdge *edge = mtf_layout_problem_edge(problem, e);
        for (int p = 0; p < strategies(problem, edge->from); p++)
            print_marginal(problem, e, true, p);
        for (int q = 0; q < strategies(problem, edge->to); q++)
            print_marginal(problem, e, false, q);
    }
    puts("Binaries");
    for (int v = 0; v < mtf_layout_problem_node_count(problem); v++)
        for (int p = 0; p < strategies(problem, v); p++)
            printf(" s%d_%d\n", v, p);
    puts("End");
}

static void print_wcsp(const MtfLayoutProblem *problem) {
    int nodes = mtf_layout_problem_node_count(problem), most = 1;
    int edges = mtf_layout_problem_edge_count(problem);
    for (int v = 0; v < nodes; v++)
        most = MAX(most, strategies(problem, v));
    printf("layout %d %d %d %" PRId64 "\n", nodes, most, nodes + edges, MTF_IMPOSSIBLE);
    for (int v = 0; v < nodes; v++)
        printf(" %d", strategies(problem, v));
    for (int v = 0; v < nodes; v++) {
        printf("\n1 %d 0 %d\n", v, strategies(problem, v));
        for (int p = 0; p < strategies(problem, v); p++)
            printf("%d %" PRId64 "\n", p, mtf_layout_problem_node(problem, v)->costs[p]);
    }
    for (int e = 0; e < edges; e++) {
        const MtfLayoutEdge *edge = mtf_layout_problem_edge(problem, e);
        int rows = strategies(problem, edge->from), columns = strategies(problem, edge->to);
        printf("2 %d %d 0 %d\n", edge->from, edge->to, rows * columns);
        for (int i = 0; i < rows * columns; i++)
            printf("%d %d %" PRId64 "\n", i / columns, i % columns, edge->costs[i]);
    }
}

int main(int argc, char **argv) {
    if (argc != 3 || (strcmp(argv[2], "lp") != 0 && strcmp(argv[2], "wcsp") != 0)) {
        fputs("usage: bench_export FILE lp|wcsp\n", stderr);
        return 2;
    }
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfLayoutProblem) problem = mtf_layout_problem_load(argv[1], &error);
    if (problem == NULL) {
        fprintf(stderr, "bench_export: %s\n", error->message);
        return 2;
    }
    (strcmp(argv[2], "lp") == 0 ? print_lp : print_wcsp)(problem);
    return 0;
}
