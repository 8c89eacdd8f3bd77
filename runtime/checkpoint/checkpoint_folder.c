// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/checkpoint/checkpoint_folder.h"

#include "layouts/base/error.h"
#include "runtime/checkpoint/whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define PREFIX "step-"
#define SUFFIX ".safetensors"
#define LOCK_NAME "lock"
#define LOCK_SECONDS 0.1

char *mtf_checkpoint_path(const char *folder, int64_t step) {
    return g_strdup_printf("%s/" PREFIX "%08" PRId64 SUFFIX, folder, step);
}

/* The step that a file's name tells, or -1. */
static int64_t step_of(const char *name) {
    gint64 step;
    if (!g_str_has_prefix(name, PREFIX) || !g_str_has_suffix(name, SUFFIX))
        return -1;
    g_autofree char *digits =
        g_strndup(name + strlen(PREFIX), strlen(name) - strlen(PREFIX) - strlen(SUFFIX));
    return g_ascii_string_to_signed(digits, 10, 0, G_MAXINT64, &step, NULL) ? step : -1;
}

static int compare_steps(gconstpointer left, gconstpointer right) {
    int64_t a = *(const int64_t *)left;
    int64_t b = *(const int64_t *)right;
    return (a < b) - (a > b);
}

GArray *mtf_checkpoint_steps(const char *folder) {
    GArray *steps = g_array_new(FALSE, FALSE, sizeof(int64_t));
    g_autoptr(GDir) files = g_dir_open(folder, 0, NULL);
    const char *name;
    while (files != NULL && (name = g_dir_read_name(files)) != NULL) {
        int64_t step = step_of(name);
        if (step >= 0)
            g_array_append_val(steps, step);
    }
    g_array_sort(steps, compare_steps);
    return steps;
}

static void remove_partial_files(const char *folder) {
    g_autoptr(GDir) files = g_dir_open(folder, 0, NULL);
    const char *name;
    while (files != NULL && (name = g_dir_read_name(files)) != NULL) {
        g_autofree char *path = g_build_filename(folder, name, NULL);
        if (g_str_has_prefix(name, PREFIX) && g_str_has_suffix(name, SUFFIX MTF_PARTIAL_SUFFIX))
            unlink(path);
    }
}

/* Waits until the file can be locked. */
static bool take_lock(int file, double patience) {
    for (double waited = 0; flock(file, LOCK_EX | LOCK_NB) != 0; waited += LOCK_SECONDS) {
        if (errno != EWOULDBLOCK)
            return true;
        if (waited >= patience)
            return false;
        g_usleep((gulong)(LOCK_SECONDS * G_USEC_PER_SEC));
    }
    return true;
}

int mtf_checkpoint_folder_open(const char *folder, double patience, GError **error) {
    g_autofree char *lock = g_build_filename(folder, LOCK_NAME, NULL);
    int file = g_mkdir_with_parents(folder, 0777) == 0
                   ? open(lock, O_WRONLY | O_CREAT | O_CLOEXEC, 0666)
                   : -1;
    if (file < 0) {
        mtf_input_error(error, "checkpoints cannot be written to the folder %s: %s", folder,
                        g_strerror(errno));
        return -1;
    }
    if (!take_lock(file, patience)) {
        mtf_input_error(
            error, "%s is in use by another run: wait for its end, or name another folder", folder);
        close(file);
        return -1;
    }
    remove_partial_files(folder);
    return file;
}

void mtf_checkpoint_prune(const char *folder, int64_t step, int64_t keep) {
    g_autoptr(GArray) steps = mtf_checkpoint_steps(folder);
    int64_t kept = 0;
    for (guint i = 0; i < steps->len; i++) {
        int64_t other = g_array_index(steps, int64_t, i);
        g_autofree char *path = mtf_checkpoint_path(folder, other);
        if (other <= step && ++kept > keep)
            unlink(path);
    }
}
