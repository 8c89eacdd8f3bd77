// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/solver/problem/in_parallel.h"

#include <glib.h>
#include <stdbool.h>

static gint helpers;     /* threads at work besides the first; atomic */
static int threads_most; /* 0: as many as there are processors */

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

static void join(gpointer thread, gpointer unused) {
    (void)unused;
    g_thread_join(thread);
}

void mtf_in_parallel_set_threads(int threads) {
    threads_most = threads;
}

int mtf_in_parallel_threads(void) {
    return threads_most > 0 ? threads_most : (int)g_get_num_processors();
}

/* Takes a processor for one more thread where there is one; two threads there may always be. */
static bool take_processor(void) {
    if (g_atomic_int_add(&helpers, 1) + 1 < MAX(2, mtf_in_parallel_threads()))
        return true;
    g_atomic_int_add(&helpers, -1);
    return false;
}

void mtf_in_parallel(int count, void (*task)(int i, void *data), void *data) {
    Queue queue = { .count = count, .task = task, .data = data };
    g_autoptr(GPtrArray) others = g_ptr_array_new();
    while ((int)others->len < count - 1 && take_processor())
        g_ptr_array_add(others, g_thread_new("tasks", help, &queue));
    run_tasks(&queue);
    if (others->len == 0)
        return;
    mtf_in_parallel_wait();
    g_ptr_array_foreach(others, join, NULL);
    mtf_in_parallel_go_on();
}

void mtf_in_parallel_wait(void) {
    g_atomic_int_add(&helpers, -1);
}

void mtf_in_parallel_go_on(void) {
    g_atomic_int_add(&helpers, 1);
}
