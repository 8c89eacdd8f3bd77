// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/checkpoint_folder.h"

#include "layouts/error.h"
#include "runtime/checkpoint.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PREFIX "step-"
#define SUFFIX ".safetensors"

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

bool mtf_checkpoint_folder_open(const char *folder, GError **error) {
    g_autofree char *trial =
        g_build_filename(folder, PREFIX "trial" SUFFIX MTF_PARTIAL_SUFFIX, NULL);
    FILE *file = g_mkdir_with_parents(folder, 0777) == 0 ? fopen(trial, "we") : NULL;
    if (file == NULL)
        return mtf_input_error(error, "checkpoints cannot be written to the folder %s: %s", folder,
                               g_strerror(errno));
    fclose(file);
    remove_partial_files(folder);
    return true;
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
