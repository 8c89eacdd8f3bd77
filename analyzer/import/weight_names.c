// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/import/weight_names.h"

#include "layouts/base/json_reader.h"

#include <glib.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define MOST_BYTES (UINT64_C(1) << 27) /* of a header */

/* The length at a file's start, eight bytes, the lowest first; 0 where the file is not as long. */
static uint64_t header_length(FILE *file) {
    unsigned char bytes[8];
    struct stat status;
    uint64_t length = 0;
    if (fstat(fileno(file), &status) != 0 || fread(bytes, 1, sizeof bytes, file) != sizeof bytes)
        return 0;
    for (int i = 7; i >= 0; i--)
        length = length << 8 | bytes[i];
    bool there = status.st_size >= 8 && length <= (uint64_t)status.st_size - 8;
    return there && length <= MOST_BYTES ? length : 0;
}

/* The header of a safetensors file, or NULL. Free with g_free. */
static char *read_header(const char *path) {
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return NULL;
    uint64_t length = header_length(file);
    char *text = length > 0 ? g_malloc0(length + 1) : NULL;
    if (text != NULL && fread(text, 1, length, file) != length)
        g_clear_pointer(&text, g_free);
    fclose(file);
    return text;
}

/* The index, or else the header of the only file; or NULL. */
static char *read_names(const char *config_path) {
    g_autofree char *folder = g_path_get_dirname(config_path);
    g_autofree char *single = g_build_filename(folder, "model.safetensors", NULL);
    g_autofree char *index = g_strconcat(single, ".index.json", NULL);
    gsize length;
    char *text = mtf_file_read(index, &length, NULL);
    return text != NULL ? text : read_header(single);
}

bool mtf_weights_lack(const char *config_path, const char *name) {
    g_autofree char *quoted = g_strdup_printf("\"%s\"", name);
    g_autofree char *text = read_names(config_path);
    return text != NULL && strstr(text, quoted) == NULL;
}

bool mtf_weights_have(const char *config_path, const char *ending) {
    g_autofree char *last = g_strdup_printf("%s\"", ending);
    g_autofree char *text = read_names(config_path);
    return text != NULL && strstr(text, last) != NULL;
}
