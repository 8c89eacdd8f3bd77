// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/solver/problem/in_parallel.h"

#include <glib.h>
#include <stdbool.h>

static gint helpers; /* threads at work besides the first; atomic */

typedef struct {
    int count;
    gint next; /* the task to begin next; atomic */
    void (*task)(int i, void *data);
    void *data;
} Queue;

static gpointer run_tasks(gpointer data) {
    Queue *queue = data;
    for (;;) {
        int i = g_atomic_int_add(&queue->next, 1);
        if (i >= queue->count)
            return NULL;
        queue->task(i, queue->data);
    }
}

static gpointer help(gpointer data) {
    run_tasks(data);
    g_atomic_int_add(&helpers, -1);
    return NULL;
}

/* Takes a processor for one more thread where there is one; two threads there may always be. */
static bool take_processor(void) {
    int most = MAX(2, (int)g_get_num_processors());
    if (g_atomic_int_add(&helpers, 1) + 1 < most)
        return true;
    g_atomic_int_add(&helpers, -1);
    return false;
}

void mtf_in_parallel(int count, void (*task)(int i, void *data), void *data) {
    Queue queue = { .count = count, .task = task, .data = data };
    GThread *second = count > 1 && take_processor() ? g_thread_new("tasks", help, &queue) : NULL;
    run_tasks(&queue);
    if (second == NULL)
        return;
    mtf_in_parallel_wait();
    g_thread_join(second);
    mtf_in_parallel_go_on();
}

void mtf_in_parallel_wait(void) {
    g_atomic_int_add(&helpers, -1);
}

void mtf_in_parallel_go_on(void) {
    g_atomic_int_add(&helpers, 1);
}
