// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/report_child.h"

#include "layouts/error.h"

#include <sys/wait.h>

#define PROGRAM "meshtf-report"

/* Free with g_free. */
static char *find_program(void) {
    g_autofree char *self = g_file_read_link("/proc/self/exe", NULL);
    if (self != NULL) {
        g_autofree char *folder = g_path_get_dirname(self);
        g_autofree char *beside = g_build_filename(folder, PROGRAM, NULL);
        if (g_file_test(beside, G_FILE_TEST_IS_EXECUTABLE))
            return g_steal_pointer(&beside);
    }
    return g_find_program_in_path(PROGRAM);
}

bool mtf_report_child(const char *plan, const char *folder, GError **error) {
    g_autofree char *program = find_program();
    if (program == NULL)
        return mtf_failure(error, "%s is neither beside meshtf-plan nor in PATH", PROGRAM);
    char *arguments[] = { program, (char *)plan, "-o", (char *)folder, NULL };
    g_autoptr(GError) cause = NULL;
    int status = 0;
    if (!g_spawn_sync(NULL, arguments, NULL, G_SPAWN_CHILD_INHERITS_STDIN, NULL, NULL, NULL, NULL,
                      &status, &cause))
        return mtf_failure(error, "%s cannot be started: %s", program, cause->message);
    return (WIFEXITED(status) && WEXITSTATUS(status) == 0) ||
           mtf_failure(error, "%s failed on %s", PROGRAM, plan);
}
