// SPDX-License-Identifier: GPL-3.0-or-later
/* The passes that make a program: one table in the order in which they run, each a function from
 * program to program. What a pass decides follows from the program, its layout and the execution
 * that the layout carries, so that a plan always lowers to the same instructions.
 *
 *     graph + layout ──lower──► order ──► combine-collectives ──► … ──► fuse ──► program */
#ifndef MTF_PASSES_H
#define MTF_PASSES_H

#include "layouts/program/program.h"

typedef struct {
    const char *name;
    const char *what; /* it does, for people */
    void (*run)(MtfProgram *program);
} MtfPass;

/* The i-th pass, 0 being `lower`, which has no function; NULL beyond the last. */
const MtfPass *mtf_pass(int i);

/* The number of the pass of that name; -1 with an error that lists them where there is none. */
int mtf_pass_find(const char *name, GError **error);

/* mtf_lower up to and including pass `last`. Lifetimes are known behind alias-buffers. */
MtfProgram *mtf_lower_until(const MtfGraph *graph, const MtfLayout *layout, int last);

/* The program after the pass of that name, a line an instruction (mtf_program_format); free with
 * g_free. NULL with an error where no pass is called so. */
char *mtf_dump_after(const MtfGraph *graph, const MtfLayout *layout, const char *pass,
                     GError **error);

#endif
