// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/base/json_writer.h"

#include "layouts/base/error.h"
#include "layouts/base/output_guard.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Containers nested this deep are printed on one line. */
#define LEVELS 2

cJSON *mtf_json_new_integer(int64_t value) {
    char text[32];
    g_snprintf(text, sizeof text, "%" PRId64, value);
    return cJSON_CreateRaw(text);
}

cJSON *mtf_json_new_number(double value) {
    if (!isfinite(value))
        return cJSON_CreateNull();
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    for (int digits = 6; digits <= 17; digits++) {
        char format[8];
        g_snprintf(format, sizeof format, "%%.%dg", digits);
        g_ascii_formatd(text, sizeof text, format, value);
        if (g_ascii_strtod(text, NULL) == value)
            break;
    }
    return cJSON_CreateRaw(text);
}

void mtf_json_add_integer(cJSON *object, const char *key, int64_t value) {
    cJSON_AddItemToObject(object, key, mtf_json_new_integer(value));
}

void mtf_json_add_number(cJSON *object, const char *key, double value) {
    cJSON_AddItemToObject(object, key, mtf_json_new_number(value));
}

static void print_compact(GString *out, const cJSON *node) {
    char *text = cJSON_PrintUnformatted(node);
    g_string_append(out, text);
    cJSON_free(text);
}

static void print_key(GString *out, const char *key) {
    cJSON *string = cJSON_CreateString(key);
    print_compact(out, string);
    cJSON_Delete(string);
    g_string_append(out, ": ");
}

/* printf's "%*s" would take memory of its own for each line. */
static void begin_line(GString *out, int depth) {
    g_string_append_c(out, '\n');
    for (int d = 0; d < depth; d++)
        g_string_append(out, "  ");
}

static void print_node(GString *out, const cJSON *node, int depth, int levels) {
    bool container = (cJSON_IsArray(node) || cJSON_IsObject(node)) && node->child != NULL;
    if (!container || depth >= levels) {
        print_compact(out, node);
        return;
    }
    g_string_append_c(out, cJSON_IsArray(node) ? '[' : '{');
    for (const cJSON *child = node->child; child != NULL; child = child->next) {
        begin_line(out, depth + 1);
        if (cJSON_IsObject(node))
            print_key(out, child->string);
        print_node(out, child, depth + 1, levels);
        if (child->next != NULL)
            g_string_append_c(out, ',');
    }
    begin_line(out, depth);
    g_string_append_c(out, cJSON_IsArray(node) ? ']' : '}');
}

char *mtf_json_print_levels(const cJSON *tree, int levels) {
    GString *out = g_string_new(NULL);
    print_node(out, tree, 0, levels);
    g_string_append_c(out, '\n');
    return g_string_free(out, FALSE);
}

char *mtf_json_print(const cJSON *tree) {
    return mtf_json_print_levels(tree, LEVELS);
}

static cJSON *printable_number(double value) {
    bool integer = value == floor(value) && fabs(value) < (double)(INT64_C(1) << 53);
    return integer ? mtf_json_new_integer((int64_t)value) : mtf_json_new_number(value);
}

cJSON *mtf_json_printable(const cJSON *tree) {
    if (cJSON_IsNumber(tree))
        return printable_number(tree->valuedouble);
    if (cJSON_IsRaw(tree))
        return printable_number(g_ascii_strtod(tree->valuestring, NULL));
    if (!cJSON_IsArray(tree) && !cJSON_IsObject(tree))
        return cJSON_Duplicate(tree, false);
    cJSON *copy = cJSON_IsArray(tree) ? cJSON_CreateArray() : cJSON_CreateObject();
    for (const cJSON *child = tree->child; child != NULL; child = child->next) {
        if (cJSON_IsArray(tree))
            cJSON_AddItemToArray(copy, mtf_json_printable(child));
        else
            cJSON_AddItemToObject(copy, child->string, mtf_json_printable(child));
    }
    return copy;
}

static bool write_stream(FILE *stream, const char *text, gsize length) {
    return fwrite(text, 1, length, stream) == length && fflush(stream) == 0;
}

/* A pipe or a device (/dev/null, /dev/stdout) is written to, never replaced by a file. */
static bool is_written_in_place(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && (S_ISFIFO(status.st_mode) || S_ISCHR(status.st_mode));
}

/* The file that a symbolic link stands for, so that the rename replaces that and not the link. */
static char *behind_links(const char *path) {
    char *target = realpath(path, NULL);
    char *result = g_strdup(target != NULL ? target : path);
    free(target);
    return result;
}

static bool write_in_place(const char *path, const char *text, gsize length, GError **error) {
    FILE *stream = fopen(path, "we");
    bool whole = stream != NULL && write_stream(stream, text, length);
    int cause = errno;
    if (stream != NULL)
        fclose(stream);
    return whole || mtf_failure(error, "%s: cannot be written: %s", path, g_strerror(cause));
}

bool mtf_file_write(const char *path, const char *text, gsize length, GError **error) {
    if (strcmp(path, "-") == 0)
        return write_stream(stdout, text, length) ||
               mtf_failure(error, "standard output: cannot be written: %s", g_strerror(errno));
    if (!mtf_output_check_file(path, error))
        return false;
    if (is_written_in_place(path))
        return write_in_place(path, text, length, error);
    g_autoptr(GError) cause = NULL;
    g_autofree char *target = behind_links(path);
    if (g_file_set_contents_full(target, text, (gssize)length,
                                 G_FILE_SET_CONTENTS_CONSISTENT | G_FILE_SET_CONTENTS_DURABLE, 0666,
                                 &cause))
        return true;
    return mtf_failure(error, "%s: cannot be written: %s", path, cause->message);
}

const char *mtf_json_text_of(const cJSON *object, const char *key) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsString(item) ? item->valuestring : "";
}

double mtf_json_number_of(const cJSON *object, const char *key, double absent) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    if (cJSON_IsRaw(item))
        return g_ascii_strtod(item->valuestring, NULL);
    return cJSON_IsNumber(item) ? item->valuedouble : absent;
}

void mtf_json_say(cJSON *tree) {
    g_autofree char *text = mtf_json_print(tree);
    cJSON_Delete(tree);
    fputs(text, stdout);
}

bool mtf_json_save(cJSON *tree, const char *path, GError **error) {
    g_autofree char *text = mtf_json_print(tree);
    cJSON_Delete(tree);
    return mtf_file_write(path, text, strlen(text), error);
}
