// SPDX-License-Identifier: GPL-3.0-or-later
/* Writing JSON with cJSON, without its traps: integers keep all digits (cJSON prints 10^15 as
 * 1e+15), doubles print with the fewest digits that read back equal, and files are written whole
 * or not at all. The same tree always prints to the same bytes. */
#ifndef MTF_JSON_WRITER_H
#define MTF_JSON_WRITER_H

#include <cjson/cJSON.h>
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* Adds `object[key] = value`, exact to the last digit. */
void mtf_json_add_integer(cJSON *object, const char *key, int64_t value);

/* Adds `object[key] = value` with the fewest digits that read back equal; a value that is not
 * finite becomes null. */
void mtf_json_add_number(cJSON *object, const char *key, double value);

/* A number of an object, read or built; `absent` where there is none. */
double mtf_json_number_of(const cJSON *object, const char *key, double absent);

/* A string of an object; "" where there is none. Owned by the object. */
const char *mtf_json_text_of(const cJSON *object, const char *key);

/* The bare items, for arrays. */
cJSON *mtf_json_new_integer(int64_t value);
cJSON *mtf_json_new_number(double value);

/* Prints the tree, two levels deep over lines and the rest compact, so that files of thousands of
 * operations stay readable and diffable: one list element a line. Free with g_free. */
char *mtf_json_print(const cJSON *tree);

/* The same with `levels` levels over lines. */
char *mtf_json_print_levels(const cJSON *tree, int levels);

/* Prints the tree on standard output, or into a file; takes it over. */
void mtf_json_say(cJSON *tree);
bool mtf_json_save(cJSON *tree, const char *path, GError **error);

/* A deep copy of a tree, read or built, whose numbers print alike either way: integers below 2^53
 * with all digits, others with the fewest. So what is written, read and written again stays the
 * same bytes. The copy is for printing: its numbers are text. Freed by cJSON_Delete. */
cJSON *mtf_json_printable(const cJSON *tree);

/* Writes `text` to `path` through a temporary name, fsync and rename; "-" is standard output.
 * A pipe or device is written in place, a symbolic link followed. */
bool mtf_file_write(const char *path, const char *text, gsize length, GError **error);

#endif
