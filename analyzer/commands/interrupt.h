// SPDX-License-Identifier: GPL-3.0-or-later
/* Ctrl-C in a command that searches: the first ends the search, which keeps its best, a second one kills. */
#ifndef MTF_INTERRUPT_H
#define MTF_INTERRUPT_H

#include <stdbool.h>

/* From here on Ctrl-C is caught, once. */
void mtf_interrupt_catch(void);

/* Whether it was pressed since; as `interrupted` of MtfSearchControl. */
bool mtf_interrupt_was_caught(void);

#endif
