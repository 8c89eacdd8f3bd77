// SPDX-License-Identifier: GPL-3.0-or-later
/* Strict JSON with paths. A document is a file (plain or gzip, `-` for standard input) parsed by
 * cJSON; a cursor (`MtfJson`) is a place in it that remembers how it was reached, so every error
 * can say where it is:
 *
 *     graph.json: /operations/17/inputs/1: "x7" is not a tensor of this graph
 *
 * Cursors are small values on the caller's stack. A child points at its parent, so a parent cursor
 * outlives its children, and the document outlives both. Stricter than JSON where laxness hides
 * mistakes: unknown keys, duplicate keys, trailing text and invalid UTF-8 are errors, and so is an
 * integer of 2^53 or more, where a double no longer tells neighbours apart. */
#ifndef MTF_JSON_READER_H
#define MTF_JSON_READER_H

#include <cjson/cJSON.h>
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define MTF_JSON_MAX_INTEGER ((INT64_C(1) << 53) - 1)

typedef struct MtfJsonDocument MtfJsonDocument;

typedef struct MtfJson {
    const char *file; /* for messages */
    const cJSON *node;
    const struct MtfJson *parent; /* NULL at the root */
    int index;                    /* position in a parent array; -1 below an object */
} MtfJson;

/* Reads the whole of `path` (gzip is unpacked; "-" is standard input) and returns its bytes,
 * NUL-terminated, to be freed by g_free; `*length` excludes the NUL. A missing, unreadable or
 * cut-off file is a bad-input error, and so is one of more than 4 GB or a device that is no terminal. */
char *mtf_file_read(const char *path, gsize *length, GError **error);

/* Reads and parses a file. The document is freed by mtf_json_document_free. */
MtfJsonDocument *mtf_json_document_load(const char *path, GError **error);

/* The same of a file as Python may write it, where numbers that JSON does not have (Infinity and -Infinity) are null.
 * Gives its text, too (`text` may be NULL), to be freed by g_free; nothing where it fails. */
MtfJsonDocument *mtf_json_document_load_config(const char *path, char **text, GError **error);

/* Parses `length` bytes of `text`; `name` stands for the file in messages. */
MtfJsonDocument *mtf_json_document_parse(const char *name, const char *text, gsize length,
                                         GError **error);
void mtf_json_document_free(MtfJsonDocument *document);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfJsonDocument, mtf_json_document_free)

/* The root cursor. Valid as long as the document. */
MtfJson mtf_json_root(const MtfJsonDocument *document);

/* Sets a bad-input error "FILE: PATH: sentence". Always returns false. */
bool mtf_json_fail(const MtfJson *where, GError **error, const char *format, ...)
    G_GNUC_PRINTF(3, 4);

/* The cursor's path, "/operations/17/inputs/1"; free with g_free. */
char *mtf_json_path(const MtfJson *where);

/* Checks that `object` is an object and has no key outside the NULL-terminated `allowed`. */
bool mtf_json_keys(const MtfJson *object, const char *const *allowed, GError **error);

/* Steps to a member. `get` fails when it is missing; `find` returns whether it is there. */
bool mtf_json_get(const MtfJson *object, const char *key, MtfJson *child, GError **error);
bool mtf_json_find(const MtfJson *object, const char *key, MtfJson *child);

/* Walks the members of an array or object:
 *     MtfJson child;
 *     for (bool more = mtf_json_first(&list, &child); more; more = mtf_json_next(&child)) …  */
bool mtf_json_first(const MtfJson *container, MtfJson *child);
bool mtf_json_next(MtfJson *child);
int mtf_json_length(const MtfJson *container);

/* The member's own key; NULL in an array. Owned by the document. */
const char *mtf_json_key(const MtfJson *member);

/* Typed values; each checks the type and the range and leaves `*value` untouched on failure.
 * Strings are owned by the document. */
bool mtf_json_array(const MtfJson *where, GError **error);
bool mtf_json_object(const MtfJson *where, GError **error);
bool mtf_json_string(const MtfJson *where, const char **value, GError **error);
bool mtf_json_boolean(const MtfJson *where, bool *value, GError **error);
bool mtf_json_number(const MtfJson *where, double *value, GError **error);
bool mtf_json_integer(const MtfJson *where, int64_t low, int64_t high, int64_t *value,
                      GError **error);

/* The same of a member that must be there. */
bool mtf_json_get_array(const MtfJson *object, const char *key, MtfJson *list, GError **error);
bool mtf_json_get_object(const MtfJson *object, const char *key, MtfJson *member, GError **error);
bool mtf_json_get_string(const MtfJson *object, const char *key, const char **value,
                         GError **error);
bool mtf_json_get_boolean(const MtfJson *object, const char *key, bool *value, GError **error);
bool mtf_json_get_number(const MtfJson *object, const char *key, double *value, GError **error);
bool mtf_json_get_integer(const MtfJson *object, const char *key, int64_t low, int64_t high,
                          int64_t *value, GError **error);

/* The same of a member that may be missing: the value stays then. */
bool mtf_json_optional_boolean(const MtfJson *object, const char *key, bool *value, GError **error);
bool mtf_json_optional_integer(const MtfJson *object, const char *key, int64_t low, int64_t high,
                               int64_t *value, GError **error);

/* Fails unless `root` has `key` with the integer `version`: a file of another kind or version. */
bool mtf_json_version(const MtfJson *root, const char *key, int64_t version, GError **error);

/* The same of a version from `oldest` to `newest`. */
bool mtf_json_versions(const MtfJson *root, const char *key, int64_t oldest, int64_t newest,
                       int64_t *version, GError **error);

#endif
