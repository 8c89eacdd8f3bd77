// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/commands/report_child.h"

#include "layouts/base/error.h"

#include <signal.h>
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

/* The file, and the name by which the program is to speak of itself: the command's that its user typed. Free
 * the list alone. */
static char **with_program(char *program, const char *const *arguments) {
    GPtrArray *list = g_ptr_array_new();
    g_ptr_array_add(list, program);
    g_ptr_array_add(list, (char *)g_get_prgname());
    for (int i = 0; arguments[i] != NULL; i++)
        g_ptr_array_add(list, (char *)arguments[i]);
    g_ptr_array_add(list, NULL);
    return (char **)g_ptr_array_free(list, FALSE);
}

int mtf_report_run(const char *const *arguments, GError **error) {
    g_autofree char *program = find_program();
    if (program == NULL) {
        mtf_failure(error, "%s is neither beside meshtf-plan nor in PATH", PROGRAM);
        return 1;
    }
    g_autofree char **list = with_program(program, arguments);
    g_autoptr(GError) cause = NULL;
    int status = 0;
    GSpawnFlags flags = G_SPAWN_CHILD_INHERITS_STDIN | G_SPAWN_FILE_AND_ARGV_ZERO;
    if (!g_spawn_sync(NULL, list, NULL, flags, NULL, NULL, NULL, NULL, &status, &cause))
        mtf_failure(error, "%s cannot be started: %s", program, cause->message);
    else if (!WIFEXITED(status) && WTERMSIG(status) != SIGPIPE)
        mtf_failure(error, "%s was killed", program);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

bool mtf_report_child(const char *plan, const char *folder, GError **error) {
    const char *arguments[] = { "-o", folder, "--", plan, NULL };
    g_autoptr(GError) cause = NULL;
    int status = mtf_report_run(arguments, &cause);
    if (cause != NULL) {
        g_propagate_error(error, g_steal_pointer(&cause));
        return false;
    }
    return status == 0 || mtf_failure(error, "%s failed on %s", PROGRAM, plan);
}
