// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/base/library.h"

#include "layouts/base/error.h"
#include "layouts/base/nearest_name.h"

#include <stdlib.h>
#include <string.h>

/* A build folder's program lies at most this many folders below the source tree's root. */
#define MAX_CLIMB 6

static char *folder_if_there(char *folder) {
    if (g_file_test(folder, G_FILE_TEST_IS_DIR))
        return folder;
    g_free(folder);
    return NULL;
}

static char *find_beside_program(void) {
    g_autofree char *program = g_file_read_link("/proc/self/exe", NULL);
    if (program == NULL)
        return NULL;
    g_autofree char *place = g_path_get_dirname(program);
    char *found =
        folder_if_there(g_build_filename(place, "..", "share", "meshtf-plan", "library", NULL));
    for (int i = 0; i < MAX_CLIMB && found == NULL; i++) {
        char *above = g_path_get_dirname(place);
        g_free(place);
        place = above;
        found = folder_if_there(g_build_filename(place, "layouts", "library", NULL));
    }
    return found;
}

static char *library_folder(GError **error) {
    const char *named = g_getenv("MESHTF_LIBRARY");
    char *found = named != NULL ? folder_if_there(g_strdup(named)) : find_beside_program();
    if (found != NULL)
        return found;
    if (named != NULL)
        mtf_input_error(error, "MESHTF_LIBRARY names \"%s\", which is not a folder", named);
    else
        mtf_failure(error, "the library folder is neither beside the program nor in its source "
                           "tree: name it in MESHTF_LIBRARY");
    return NULL;
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

char **mtf_library_list(const char *kind, GError **error) {
    g_autofree char *library = library_folder(error);
    if (library == NULL)
        return NULL;
    g_autofree char *path = g_build_filename(library, kind, NULL);
    GPtrArray *names = g_ptr_array_new();
    GDir *folder = g_dir_open(path, 0, NULL);
    for (const char *file; folder != NULL && (file = g_dir_read_name(folder)) != NULL;)
        if (g_str_has_suffix(file, ".json"))
            g_ptr_array_add(names, g_strndup(file, strlen(file) - strlen(".json")));
    if (folder != NULL)
        g_dir_close(folder);
    if (names->len > 0)
        qsort(names->pdata, names->len, sizeof(char *), compare_names);
    g_ptr_array_add(names, NULL);
    return (char **)g_ptr_array_free(names, FALSE);
}

static bool looks_like_file(const char *name) {
    return strcmp(name, "-") == 0 || strchr(name, '/') != NULL || g_str_has_suffix(name, ".json") ||
           g_str_has_suffix(name, ".gz");
}

static void fail_unknown(const char *kind, const char *name, GStrv known, GError **error) {
    g_autofree char *list = g_strjoinv(", ", known);
    g_autofree char *small = g_ascii_strdown(name, -1);
    g_autofree char *hint = mtf_did_you_mean(small, (const char *const *)known);
    mtf_input_error(error, "\"%s\" is neither a file nor one of the library's %s (%s)%s", name,
                    kind, list, hint);
}

char *mtf_library_find(const char *kind, const char *name, GError **error) {
    if (looks_like_file(name))
        return g_strdup(name);
    g_auto(GStrv) known = mtf_library_list(kind, error);
    if (known == NULL)
        return NULL;
    if (g_strv_contains((const char *const *)known, name)) {
        g_autofree char *library = library_folder(NULL);
        g_autofree char *file = g_strdup_printf("%s.json", name);
        return g_build_filename(library, kind, file, NULL);
    }
    if (g_file_test(name, G_FILE_TEST_IS_REGULAR))
        return g_strdup(name);
    fail_unknown(kind, name, known, error);
    return NULL;
}

MtfJsonDocument *mtf_library_load(const char *kind, const char *name, GError **error) {
    g_autofree char *path = mtf_library_find(kind, name, error);
    return path != NULL ? mtf_json_document_load(path, error) : NULL;
}
