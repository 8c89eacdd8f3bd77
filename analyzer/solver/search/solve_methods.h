// SPDX-License-Identifier: GPL-3.0-or-later
/* The methods that mtf_layout_solve combines, a row each. All work on one core, one bound and one best
 * choice; what one finds the others go on from. Message passing is always there. */
#ifndef MTF_SOLVE_METHODS_H
#define MTF_SOLVE_METHODS_H

#include <glib.h>
#include <stdbool.h>

typedef enum {
    MTF_METHOD_LOCAL = 1 << 0,
    MTF_METHOD_NEIGHBOURHOODS = 1 << 1,
    MTF_METHOD_DIVE = 1 << 2,
    MTF_METHOD_PROBE = 1 << 3,
    MTF_METHOD_PAIRS = 1 << 4,
    MTF_METHOD_BRANCH = 1 << 5,
    MTF_METHOD_PROGRAM = 1 << 6,
    MTF_METHOD_ALIKE = 1 << 7,
    MTF_METHOD_ELIMINATION = 1 << 8,
    MTF_METHOD_RELAXATION = 1 << 9,
    MTF_METHODS_ALL = (1 << 10) - 1,
} MtfSolveMethods;

typedef struct MtfSolveMethod {
    const char *name;
    MtfSolveMethods bit;
    const char *what; /* it does, a phrase */
} MtfSolveMethod;

/* All rows, the last one without a name. */
extern const MtfSolveMethod mtf_solve_methods[];

/* Their names between commas; free with g_free. */
char *mtf_solve_methods_format(void);

/* Reads a list of names, `local,branch`, into a set of bits; "all" and "messages" (message passing
 * alone) are names, too. False with an error that says which names there are. */
bool mtf_solve_methods_parse(const char *list, MtfSolveMethods *methods, GError **error);

#endif
