// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/base/json_reader.h"

#include "layouts/base/error.h"
#include "layouts/base/nearest_name.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define MAX_DEPTH 512
/* cJSON reads a number through a buffer of 64 characters. */
#define MAX_NUMBER 64

struct MtfJsonDocument {
    char *name;
    cJSON *root;
};

static bool check_opened(int fd, const char *path, GError **error) {
    struct stat status;
    if (fd < 0 || fstat(fd, &status) < 0)
        return mtf_input_error(error, "%s: cannot be opened: %s", path, g_strerror(errno));
    if (S_ISDIR(status.st_mode))
        return mtf_input_error(error, "%s: is a folder, where a file is expected", path);
    /* Many devices never end: 4 GB of them would be read before anything is said. */
    return !S_ISCHR(status.st_mode) || isatty(fd) ||
           mtf_input_error(error, "%s: is a device, where a file is expected", path);
}

static gzFile open_input(const char *path, GError **error) {
    int fd = strcmp(path, "-") == 0 ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
    bool opened = check_opened(fd, path, error);
    gzFile input = opened ? gzdopen(fd, "rb") : NULL;
    if (opened && input == NULL)
        mtf_failure(error, "%s: cannot be read: out of memory", path);
    if (input == NULL && fd >= 0)
        close(fd);
    return input;
}

static char *read_whole(const char *path, gsize *length, GError **error) {
    gzFile input = open_input(path, error);
    if (input == NULL)
        return NULL;
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    guint8 chunk[65536];
    int count;
    while ((count = gzread(input, chunk, sizeof chunk)) > 0 &&
           bytes->len < G_MAXUINT - sizeof chunk)
        g_byte_array_append(bytes, chunk, (guint)count);
    int status = Z_OK;
    gzerror(input, &status);
    bool whole = count == 0 && status == Z_OK;
    gzclose(input);
    if (!whole) {
        mtf_input_error(error, "%s: cannot be read to its end: %s", path,
                        count > 0               ? "it is larger than 4 GB"
                        : status == Z_BUF_ERROR ? "the file is cut off"
                                                : "the data are damaged");
        return NULL;
    }
    *length = bytes->len;
    g_byte_array_append(bytes, (const guint8 *)"", 1);
    return (char *)g_byte_array_free(g_steal_pointer(&bytes), FALSE);
}

/* What kind of file it is may be looked at before it is loaded, and standard input is there only once:
 * what was read of it stays. */
static char *read_standard_input(gsize *length, GError **error) {
    static char *text;
    static gsize bytes;
    if (text == NULL)
        text = read_whole("-", &bytes, error);
    if (text == NULL)
        return NULL;
    *length = bytes;
    return g_memdup2(text, bytes + 1);
}

char *mtf_file_read(const char *path, gsize *length, GError **error) {
    return strcmp(path, "-") == 0 ? read_standard_input(length, error)
                                  : read_whole(path, length, error);
}

/* Writes null and blanks over words for numbers that JSON does not have, outside of strings. */
static void blank_python_numbers(char *text) {
    static const char *const words[] = { "-Infinity", "Infinity" };
    bool quoted = false;
    for (char *at = text; *at != '\0'; at++) {
        if (quoted && *at == '\\' && at[1] != '\0')
            at++;
        else if (*at == '"')
            quoted = !quoted;
        for (gsize i = 0; !quoted && i < G_N_ELEMENTS(words); i++)
            if (g_str_has_prefix(at, words[i])) {
                gsize n = strlen(words[i]);
                memset(at, ' ', n);
                memcpy(at, "null", 4);
                break;
            }
    }
}

MtfJsonDocument *mtf_json_document_load_config(const char *path, char **text, GError **error) {
    gsize length;
    g_autofree char *read = mtf_file_read(path, &length, error);
    if (read == NULL)
        return NULL;
    const char *name = strcmp(path, "-") == 0 ? "standard input" : path;
    g_autofree char *json = g_memdup2(read, length + 1);
    blank_python_numbers(json);
    MtfJsonDocument *document = mtf_json_document_parse(name, json, length, error);
    if (document != NULL && text != NULL)
        *text = g_steal_pointer(&read);
    return document;
}

MtfJsonDocument *mtf_json_document_load(const char *path, GError **error) {
    gsize length;
    g_autofree char *text = mtf_file_read(path, &length, error);
    const char *name = strcmp(path, "-") == 0 ? "standard input" : path;
    return text == NULL ? NULL : mtf_json_document_parse(name, text, length, error);
}

/* What cJSON lets pass and JSON does not: raw control characters, numbers like 007 or 1., and
 * escapes that cut a string short; and nesting that it reports as a mere syntax error. The scan
 * knows no grammar beyond single tokens. It returns the first offence with its place, or NULL. */
typedef struct {
    const char *at;
    const char *end;
    int depth;
} Scan;

static bool is_digit(const Scan *scan) {
    return scan->at < scan->end && g_ascii_isdigit(*scan->at);
}

static bool skip(Scan *scan, const char *characters) {
    bool found = scan->at < scan->end && strchr(characters, *scan->at) != NULL;
    scan->at += found;
    return found;
}

static bool skip_digits(Scan *scan) {
    bool found = is_digit(scan);
    while (is_digit(scan))
        scan->at++;
    return found;
}

static const char *scan_number(Scan *scan) {
    const char *start = scan->at;
    skip(scan, "-");
    bool good = skip(scan, "0") ? !is_digit(scan) : skip_digits(scan);
    if (good && skip(scan, "."))
        good = skip_digits(scan);
    if (good && skip(scan, "eE")) {
        skip(scan, "+-");
        good = skip_digits(scan);
    }
    good = good && scan->at - start < MAX_NUMBER;
    if (!good)
        scan->at = start;
    return good ? NULL : "this is not a JSON number";
}

static const char *scan_string(Scan *scan) {
    for (scan->at++; scan->at < scan->end && *scan->at != '"'; scan->at++) {
        if (g_ascii_iscntrl(*scan->at) && *scan->at != 0x7f)
            return "a control character stands in a string (a quote may be missing)";
        if (*scan->at != '\\')
            continue;
        if (scan->end - scan->at > 5 && strncmp(scan->at, "\\u0000", 6) == 0)
            return "\\u0000 is not allowed in a string";
        scan->at++;
    }
    scan->at += scan->at < scan->end;
    return NULL;
}

static const char *scan_token(Scan *scan) {
    char c = *scan->at;
    if (c == '"')
        return scan_string(scan);
    if (c == '-' || g_ascii_isdigit(c))
        return scan_number(scan);
    if (g_ascii_iscntrl(c) && strchr("\t\r\n", c) == NULL)
        return "a control character stands here";
    if ((c == '[' || c == '{') && ++scan->depth > MAX_DEPTH)
        return "brackets nest deeper than " G_STRINGIFY(MAX_DEPTH) " levels here";
    scan->depth -= c == ']' || c == '}';
    scan->at++;
    return NULL;
}

#define INVALID "this is not valid JSON"

static void locate(const char *text, const char *end, int *line, int *column) {
    *line = *column = 1;
    for (const char *c = text; c < end; c++) {
        bool newline = *c == '\n';
        *line += newline;
        *column = newline ? 1 : *column + 1;
    }
}

static bool fail_at(const char *name, const char *text, const char *at, const char *sentence,
                    GError **error) {
    int line, column;
    locate(text, at, &line, &column);
    return mtf_input_error(error, "%s:%d:%d: %s", name, line, column, sentence);
}

/* Where the text before a token is wrong already, or NULL: a text that is no JSON at all offends first there. */
static const char *wrong_before(const char *text, const char *token) {
    const char *end = text;
    cJSON *root = cJSON_ParseWithLengthOpts(text, (size_t)(token - text), &end, 0);
    bool wrong = root == NULL && end + 1 < token;
    cJSON_Delete(root);
    return wrong ? end : NULL;
}

/* Checks every token; `*open` tells whether brackets still wait to be closed at the end. */
static bool check_tokens(const char *name, const char *text, gsize length, bool *open,
                         GError **error) {
    const char *invalid;
    if (!g_utf8_validate(text, (gssize)length, &invalid))
        return mtf_input_error(error, "%s: byte %zu is not valid UTF-8 text", name,
                               (size_t)(invalid - text));
    Scan scan = { .at = text, .end = text + length };
    while (scan.at < scan.end) {
        const char *token = scan.at, *offence = scan_token(&scan);
        const char *earlier = offence != NULL ? wrong_before(text, token) : NULL;
        if (earlier != NULL)
            return fail_at(name, text, earlier, INVALID, error);
        if (offence != NULL)
            return fail_at(name, text, scan.at, offence, error);
    }
    *open = scan.depth > 0 || length == 0;
    return true;
}

static cJSON *parse_checked(const char *name, const char *text, gsize length, GError **error) {
    bool open = false;
    if (!check_tokens(name, text, length, &open, error))
        return NULL;
    const char *end = text;
    cJSON *root = cJSON_ParseWithLengthOpts(text, length, &end, 0);
    while (root != NULL && end < text + length && g_ascii_isspace(*end))
        end++;
    if (root != NULL && end == text + length)
        return root;
    bool cut = root == NULL && open && end + 1 >= text + length;
    fail_at(name, text, end,
            root != NULL ? "text follows the end of the JSON value"
            : cut        ? "the JSON text ends too early"
                         : INVALID,
            error);
    cJSON_Delete(root);
    return NULL;
}

/* Fails when an object below `where` has a key twice. MAX_DEPTH bounds the recursion. */
static bool check_keys_differ(const MtfJson *where, GError **error) {
    g_autoptr(GHashTable) seen =
        cJSON_IsObject(where->node) ? g_hash_table_new(g_str_hash, g_str_equal) : NULL;
    MtfJson child;
    for (bool more = mtf_json_first(where, &child); more; more = mtf_json_next(&child)) {
        if (seen != NULL && !g_hash_table_add(seen, child.node->string))
            return mtf_json_fail(where, error, "key \"%s\" is given twice", child.node->string);
        if (!check_keys_differ(&child, error))
            return false;
    }
    return true;
}

MtfJsonDocument *mtf_json_document_parse(const char *name, const char *text, gsize length,
                                         GError **error) {
    cJSON *root = parse_checked(name, text, length, error);
    if (root == NULL)
        return NULL;
    MtfJsonDocument *document = g_new0(MtfJsonDocument, 1);
    document->name = g_strdup(name);
    document->root = root;
    MtfJson top = mtf_json_root(document);
    if (check_keys_differ(&top, error))
        return document;
    mtf_json_document_free(document);
    return NULL;
}

void mtf_json_document_free(MtfJsonDocument *document) {
    if (document == NULL)
        return;
    g_free(document->name);
    cJSON_Delete(document->root);
    g_free(document);
}

MtfJson mtf_json_root(const MtfJsonDocument *document) {
    return (MtfJson){ .file = document->name, .node = document->root, .index = -1 };
}

char *mtf_json_path(const MtfJson *where) {
    GString *path = g_string_new(NULL);
    for (const MtfJson *at = where; at->parent != NULL; at = at->parent) {
        g_autofree char *step = at->index >= 0 ? g_strdup_printf("/%d", at->index)
                                               : g_strdup_printf("/%s", at->node->string);
        g_string_prepend(path, step);
    }
    if (path->len == 0)
        g_string_append_c(path, '/');
    return g_string_free(path, FALSE);
}

bool mtf_json_fail(const MtfJson *where, GError **error, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *sentence = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    g_autofree char *path = mtf_json_path(where);
    return mtf_input_error(error, "%s: %s: %s", where->file, path, sentence);
}

bool mtf_json_keys(const MtfJson *object, const char *const *allowed, GError **error) {
    if (!mtf_json_object(object, error))
        return false;
    const cJSON *member;
    cJSON_ArrayForEach(member, object->node) {
        if (g_strv_contains(allowed, member->string))
            continue;
        g_autofree char *known = g_strjoinv(", ", (char **)allowed);
        const char *near = mtf_nearest_name(member->string, allowed);
        g_autofree char *hint =
            near != NULL ? g_strdup_printf("did you mean \"%s\"? ", near) : g_strdup("");
        return mtf_json_fail(object, error, "unknown key \"%s\" (%sknown here: %s)", member->string,
                             hint, known);
    }
    return true;
}

bool mtf_json_find(const MtfJson *object, const char *key, MtfJson *child) {
    const cJSON *node = cJSON_GetObjectItemCaseSensitive(object->node, key);
    if (node == NULL)
        return false;
    *child = (MtfJson){ .file = object->file, .node = node, .parent = object, .index = -1 };
    return true;
}

bool mtf_json_get(const MtfJson *object, const char *key, MtfJson *child, GError **error) {
    return mtf_json_object(object, error) &&
           (mtf_json_find(object, key, child) ||
            mtf_json_fail(object, error, "key \"%s\" is missing", key));
}

bool mtf_json_first(const MtfJson *container, MtfJson *child) {
    const cJSON *node = container->node->child;
    if (node == NULL)
        return false;
    int index = cJSON_IsArray(container->node) ? 0 : -1;
    *child =
        (MtfJson){ .file = container->file, .node = node, .parent = container, .index = index };
    return true;
}

bool mtf_json_next(MtfJson *child) {
    if (child->node->next == NULL)
        return false;
    child->node = child->node->next;
    if (child->index >= 0)
        child->index++;
    return true;
}

int mtf_json_length(const MtfJson *container) {
    return cJSON_GetArraySize(container->node);
}

const char *mtf_json_key(const MtfJson *member) {
    return member->index >= 0 ? NULL : member->node->string;
}

bool mtf_json_array(const MtfJson *where, GError **error) {
    return cJSON_IsArray(where->node) || mtf_json_fail(where, error, "a list is expected here");
}

bool mtf_json_object(const MtfJson *where, GError **error) {
    return cJSON_IsObject(where->node) || mtf_json_fail(where, error, "an object is expected here");
}

bool mtf_json_string(const MtfJson *where, const char **value, GError **error) {
    if (!cJSON_IsString(where->node))
        return mtf_json_fail(where, error, "a string is expected here");
    *value = where->node->valuestring;
    return true;
}

bool mtf_json_boolean(const MtfJson *where, bool *value, GError **error) {
    if (!cJSON_IsBool(where->node))
        return mtf_json_fail(where, error, "true or false is expected here");
    *value = cJSON_IsTrue(where->node);
    return true;
}

bool mtf_json_number(const MtfJson *where, double *value, GError **error) {
    if (!cJSON_IsNumber(where->node) || !isfinite(where->node->valuedouble))
        return mtf_json_fail(where, error, "a finite number is expected here");
    *value = where->node->valuedouble;
    return true;
}

bool mtf_json_integer(const MtfJson *where, int64_t low, int64_t high, int64_t *value,
                      GError **error) {
    double number = 0;
    if (!mtf_json_number(where, &number, error))
        return false;
    if (number != floor(number) || fabs(number) > (double)MTF_JSON_MAX_INTEGER)
        return mtf_json_fail(where, error, "%.17g is not an integer below 2^53", number);
    if ((int64_t)number < low || (int64_t)number > high)
        return mtf_json_fail(where, error, "%.17g is not between %" PRId64 " and %" PRId64, number,
                             low, high);
    *value = (int64_t)number;
    return true;
}

bool mtf_json_get_array(const MtfJson *object, const char *key, MtfJson *list, GError **error) {
    return mtf_json_get(object, key, list, error) && mtf_json_array(list, error);
}

bool mtf_json_get_object(const MtfJson *object, const char *key, MtfJson *member, GError **error) {
    return mtf_json_get(object, key, member, error) && mtf_json_object(member, error);
}

bool mtf_json_get_string(const MtfJson *object, const char *key, const char **value,
                         GError **error) {
    MtfJson member;
    return mtf_json_get(object, key, &member, error) && mtf_json_string(&member, value, error);
}

bool mtf_json_get_boolean(const MtfJson *object, const char *key, bool *value, GError **error) {
    MtfJson member;
    return mtf_json_get(object, key, &member, error) && mtf_json_boolean(&member, value, error);
}

bool mtf_json_get_number(const MtfJson *object, const char *key, double *value, GError **error) {
    MtfJson member;
    return mtf_json_get(object, key, &member, error) && mtf_json_number(&member, value, error);
}

bool mtf_json_get_integer(const MtfJson *object, const char *key, int64_t low, int64_t high,
                          int64_t *value, GError **error) {
    MtfJson member;
    return mtf_json_get(object, key, &member, error) &&
           mtf_json_integer(&member, low, high, value, error);
}

bool mtf_json_optional_boolean(const MtfJson *object, const char *key, bool *value,
                               GError **error) {
    MtfJson member;
    return !mtf_json_find(object, key, &member) || mtf_json_boolean(&member, value, error);
}

bool mtf_json_optional_integer(const MtfJson *object, const char *key, int64_t low, int64_t high,
                               int64_t *value, GError **error) {
    MtfJson member;
    return !mtf_json_find(object, key, &member) ||
           mtf_json_integer(&member, low, high, value, error);
}

static bool fail_version(const MtfJson *version, int64_t found, int64_t oldest, int64_t newest,
                         GError **error) {
    g_autofree char *older =
        oldest < newest ? g_strdup_printf("%" PRId64 " to ", oldest) : g_strdup("");
    return mtf_json_fail(version, error,
                         "version %" PRId64 " is not %s%" PRId64 ", the one%s this program reads",
                         found, older, newest, oldest < newest ? "s" : "");
}

bool mtf_json_versions(const MtfJson *root, const char *key, int64_t oldest, int64_t newest,
                       int64_t *version, GError **error) {
    MtfJson child;
    int64_t found = 0;
    if (!mtf_json_object(root, error))
        return false;
    if (!mtf_json_find(root, key, &child))
        return mtf_json_fail(root, error, "key \"%s\" is missing: this is not a %s file", key, key);
    if (!mtf_json_integer(&child, 0, MTF_JSON_MAX_INTEGER, &found, error))
        return false;
    *version = found;
    return (found >= oldest && found <= newest) ||
           fail_version(&child, found, oldest, newest, error);
}

bool mtf_json_version(const MtfJson *root, const char *key, int64_t version, GError **error) {
    int64_t found;
    return mtf_json_versions(root, key, version, version, &found, error);
}
