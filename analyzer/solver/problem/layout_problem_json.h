// SPDX-License-Identifier: GPL-3.0-or-later
/* Layout problems as files, in the JSON format of the IOPDDL contest (gzip or plain):
 *
 *     {"problem": {"name": "example",
 *       "nodes": {"intervals": [[0,5], …], "costs": [[15,20], …], "usages": [[10,5], …]},
 *       "edges": {"nodes": [[0,1], …], "costs": [[0,7,3,0], …]},
 *       "usage_limit": 50}}
 *
 * Matrices are row major. `usage_limit` and `name` may be absent. Numbers of 10^18 and more mean
 * "impossible" (for a usage: that strategy is impossible); other integers beyond 2^53 are bad
 * input, since a JSON reader may have lost their last digits. */
#ifndef MTF_LAYOUT_PROBLEM_JSON_H
#define MTF_LAYOUT_PROBLEM_JSON_H

#include "analyzer/solver/problem/layout_problem.h"

/* Reads and checks a file ("-" is standard input). Owned by the caller. */
MtfLayoutProblem *mtf_layout_problem_load(const char *path, GError **error);

/* The same from `length` bytes of text; `name` stands for the file in messages. */
MtfLayoutProblem *mtf_layout_problem_parse(const char *name, const char *text, gsize length,
                                           GError **error);

/* The problem as text that reads back equal; free with g_free. */
char *mtf_layout_problem_print(const MtfLayoutProblem *problem);

/* Writes that text, whole or not at all ("-" is standard output). */
bool mtf_layout_problem_save(const MtfLayoutProblem *problem, const char *path, GError **error);

#endif
