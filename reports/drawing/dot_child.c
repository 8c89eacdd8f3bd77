// SPDX-License-Identifier: GPL-3.0-or-later
#include "reports/drawing/dot_child.h"

#include "layouts/base/error.h"

#include <sys/resource.h>

/* In the child: a limit on processor time. */
static void limit_child(gpointer seconds) {
    rlim_t limit = (rlim_t)GPOINTER_TO_INT(seconds);
    setrlimit(RLIMIT_CPU, &(struct rlimit){ limit, limit });
}

/* Dot orders clusters by where it keeps their names, and a thread of its fonts library frees memory beside
 * it. Without the C library's caches of freed pieces, one a thread, the names lie the same way in every run
 * (of lstm-lm's step every fourth drawing was another one). Free with g_strfreev. */
static char **environment(void) {
    return g_environ_setenv(g_get_environ(), "GLIBC_TUNABLES", "glibc.malloc.tcache_count=0",
                            FALSE);
}

char *mtf_dot_layout(const char *dot_path, const char *picture, int seconds, GError **error) {
    char *arguments[] = { "dot", "-Tsvg", (char *)dot_path, NULL };
    g_auto(GStrv) variables = environment();
    g_autofree char *output = NULL;
    g_autofree char *messages = NULL;
    g_autoptr(GError) cause = NULL;
    int status = 0;
    bool started = g_spawn_sync(NULL, arguments, variables, G_SPAWN_SEARCH_PATH, limit_child,
                                GINT_TO_POINTER(seconds), &output, &messages, &status, &cause);
    if (!started)
        mtf_failure(error, "%s: no drawing: dot cannot be started: %s", picture, cause->message);
    else if (!g_spawn_check_wait_status(status, &cause))
        mtf_failure(error, "%s: no drawing: dot ended early (limit %d s): %s %s", picture, seconds,
                    cause->message, messages);
    else
        return g_steal_pointer(&output);
    return NULL;
}
