// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/planner/search_progress.h"

#include "layouts/base/command_line.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

#define LINE_SECONDS 10
#define TERMINAL_SECONDS 0.5

struct MtfSearchProgress {
    GMutex lock;
    GCond ended;
    bool over, terminal;
    const char *phase;
    double cost, bound;
    gint64 begin; /* monotonic microseconds */
    MtfSearchListener listener;
    GThread *thread;
};

char *mtf_search_progress_state(const MtfSearchProgress *progress) {
    GString *text = g_string_new(progress->phase);
    if (!isfinite(progress->cost))
        return g_string_free(text, FALSE);
    g_autofree char *cost = mtf_seconds_format(progress->cost / 1e9);
    g_string_append_printf(text, "; best %s", cost);
    if (progress->bound > 0) {
        g_autofree char *bound = mtf_seconds_format(progress->bound / 1e9);
        g_string_append_printf(text, ", bound %s, gap %.3g %%", bound,
                               100 * (progress->cost - progress->bound) / progress->cost);
    }
    return g_string_free(text, FALSE);
}

static void say_state(const MtfSearchProgress *progress) {
    double seconds = (double)(g_get_monotonic_time() - progress->begin) / 1e6;
    g_autofree char *text = mtf_search_progress_state(progress);
    if (progress->terminal)
        fprintf(stderr, "\r\033[K%.0f s: %s", seconds, text);
    else
        fprintf(stderr, "meshtf-plan search: %.0f s: %s\n", seconds, text);
    fflush(stderr);
}

static gpointer keep_saying(gpointer data) {
    MtfSearchProgress *progress = data;
    double every = progress->terminal ? TERMINAL_SECONDS : LINE_SECONDS;
    gint64 next = progress->begin;
    g_mutex_lock(&progress->lock);
    while (!progress->over) {
        next += (gint64)(every * 1e6);
        while (!progress->over && g_cond_wait_until(&progress->ended, &progress->lock, next)) {
        }
        if (!progress->over)
            say_state(progress);
    }
    g_mutex_unlock(&progress->lock);
    return NULL;
}

static void note_phase(const char *phase, void *user) {
    MtfSearchProgress *progress = user;
    g_mutex_lock(&progress->lock);
    progress->phase = phase;
    progress->bound = 0; /* of another mesh or variant */
    g_mutex_unlock(&progress->lock);
}

static void note_bound(double cost, double bound, void *user) {
    MtfSearchProgress *progress = user;
    g_mutex_lock(&progress->lock);
    progress->cost = cost;
    progress->bound = bound;
    g_mutex_unlock(&progress->lock);
}

MtfSearchProgress *mtf_search_progress_begin(void) {
    MtfSearchProgress *progress = g_new0(MtfSearchProgress, 1);
    g_mutex_init(&progress->lock);
    g_cond_init(&progress->ended);
    progress->terminal = isatty(STDERR_FILENO);
    progress->phase = "beginning";
    progress->cost = INFINITY;
    progress->begin = g_get_monotonic_time();
    progress->listener =
        (MtfSearchListener){ .phase = note_phase, .bound = note_bound, .user = progress };
    progress->thread = g_thread_new("progress", keep_saying, progress);
    return progress;
}

void mtf_search_progress_end(MtfSearchProgress *progress) {
    if (progress == NULL)
        return;
    g_mutex_lock(&progress->lock);
    progress->over = true;
    g_cond_signal(&progress->ended);
    g_mutex_unlock(&progress->lock);
    g_thread_join(progress->thread);
    if (progress->terminal)
        fputs("\r\033[K", stderr);
    g_mutex_clear(&progress->lock);
    g_cond_clear(&progress->ended);
    g_free(progress);
}

const MtfSearchListener *mtf_search_progress_listener(const MtfSearchProgress *progress) {
    return &progress->listener;
}
