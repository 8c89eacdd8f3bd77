// SPDX-License-Identifier: GPL-3.0-or-later
/* Independent tasks on two threads. Each task writes to places of its own, so that what comes out
 * does not depend on which thread runs it, nor when. */
#ifndef MTF_IN_PARALLEL_H
#define MTF_IN_PARALLEL_H

/* Runs task(i, data) for i = 0 … count - 1, begun in this order, and returns when all are done. */
void mtf_in_parallel(int count, void (*task)(int i, void *data), void *data);

#endif
