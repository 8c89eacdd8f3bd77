// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/base/output_guard.h"

#include "layouts/base/error.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whether all that was printed has arrived; errno says why not, or is 0 where an earlier write failed.
 * A standard output that is closed from the start is no loss while nothing is printed. */
static bool close_output(void) {
    bool failed = ferror(stdout) != 0;
    errno = 0;
    if (fflush(stdout) != 0)
        return false;
    return !failed && (fclose(stdout) == 0 || errno == EBADF);
}

static void end_with_output(int status, void *unused) {
    (void)unused;
    if (status != EXIT_SUCCESS || close_output())
        return;
    fprintf(stderr, "%s: standard output: cannot be written: %s\n", g_get_prgname(),
            errno != 0 ? g_strerror(errno) : "some of it was lost");
    _exit(EXIT_FAILURE);
}

void mtf_output_guard_begin(void) {
    on_exit(end_with_output, NULL);
}

static bool check_writable_folder(const char *path, const char *folder, GError **error) {
    struct stat status;
    if (stat(folder, &status) != 0)
        return mtf_input_error(error, "%s: cannot be written: the folder %s: %s", path, folder,
                               g_strerror(errno));
    if (!S_ISDIR(status.st_mode))
        return mtf_input_error(error, "%s: cannot be written: %s is not a folder", path, folder);
    return access(folder, W_OK | X_OK) == 0 ||
           mtf_input_error(error, "%s: cannot be written: the folder %s: %s", path, folder,
                           g_strerror(errno));
}

bool mtf_output_check_file(const char *path, GError **error) {
    struct stat status;
    if (path == NULL || strcmp(path, "-") == 0)
        return true;
    if (*path == '\0')
        return mtf_input_error(error, "\"\" is not the name of a file to write");
    if (stat(path, &status) == 0 && S_ISDIR(status.st_mode))
        return mtf_input_error(error, "%s: cannot be written: it is a folder", path);
    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode))
        return true;
    /* The file behind a link is replaced in the folder where it lies. */
    char *target = realpath(path, NULL);
    g_autofree char *folder = g_path_get_dirname(target != NULL ? target : path);
    free(target);
    return check_writable_folder(path, folder, error);
}

bool mtf_output_check_folder(const char *path, GError **error) {
    if (path == NULL)
        return true;
    if (*path == '\0')
        return mtf_input_error(error, "\"\" is not the name of a folder to write into");
    g_autofree char *nearest = g_strdup(path);
    while (!g_file_test(nearest, G_FILE_TEST_EXISTS) && strcmp(nearest, ".") != 0) {
        char *above = g_path_get_dirname(nearest);
        g_free(nearest);
        nearest = above;
    }
    return check_writable_folder(path, nearest, error);
}
