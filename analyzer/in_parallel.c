// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/in_parallel.h"

#include <glib.h>

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

void mtf_in_parallel(int count, void (*task)(int i, void *data), void *data) {
    Queue queue = { .count = count, .task = task, .data = data };
    GThread *second = count > 1 ? g_thread_new("tasks", run_tasks, &queue) : NULL;
    run_tasks(&queue);
    if (second != NULL)
        g_thread_join(second);
}
