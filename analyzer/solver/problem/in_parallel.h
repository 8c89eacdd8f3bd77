// SPDX-License-Identifier: GPL-3.0-or-later
/* Independent tasks on as many threads as there are processors, or as --threads says. Each task writes to
 * places of its own, so that what comes out does not depend on which thread runs it, nor when.
 *
 * A task may have tasks of its own. They get further threads only where a processor is free for them:
 * otherwise the search of one step variant, which began later and may be given up, would take turns
 * with that of the variant before it, which everything waits for. GThreadPool knows neither: it has no
 * way to wait for the tasks of one call, and a task that waits keeps its thread of the pool. */
#ifndef MTF_IN_PARALLEL_H
#define MTF_IN_PARALLEL_H

/* Runs task(i, data) for i = 0 … count - 1, begun in this order, and returns when all are done. */
void mtf_in_parallel(int count, void (*task)(int i, void *data), void *data);

/* The most threads at work in tasks, of the whole process: `threads` from now on, 0 for as many as there
 * are processors. Two tasks that are searched against each other take turns where there is one. */
void mtf_in_parallel_set_threads(int threads);
int mtf_in_parallel_threads(void);

/* Says that the calling thread, inside a task, waits for another task; and that it goes on. */
void mtf_in_parallel_wait(void);
void mtf_in_parallel_go_on(void);

#endif
