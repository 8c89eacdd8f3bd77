// SPDX-License-Identifier: GPL-3.0-or-later
/* The passes that make a program: one table in the order in which they run. The first two make it, of a
 * training graph and its execution; each other one is a function from program to program. What a pass decides
 * follows from the program, its layout and the execution that the layout carries, so that a plan always
 * lowers to the same instructions.
 *
 *     training graph ──execute──► graph + layout ──lower──► order ──► combine-collectives ──► … ──► fuse ──► program */
#ifndef MTF_PASSES_H
#define MTF_PASSES_H

#include "layouts/program/program.h"

typedef struct {
    const char *name;
    const char *what; /* it does, for people */
    void (*run)(MtfProgram *program);
} MtfPass;

/* The i-th pass, 0 being `execute` (layouts/execution/executed_graph.h) and 1 `lower`, which have no
 * function; NULL beyond the last. */
const MtfPass *mtf_pass(int i);

/* The number of the pass of that name; -1 with an error that lists them where there is none. */
int mtf_pass_find(const char *name, GError **error);

/* mtf_lower up to and including pass `last`, which is no earlier than `lower`. Lifetimes are known behind
 * alias-buffers. */
MtfProgram *mtf_lower_until(const MtfGraph *graph, const MtfLayout *layout, int last);

/* The program after the pass of that name, a line an instruction (mtf_program_format), or after `execute` the
 * graph (graph.json); free with g_free. NULL with an error where no pass is called so. */
char *mtf_dump_after(const MtfGraph *graph, const MtfLayout *layout, const char *pass,
                     GError **error);

#endif
