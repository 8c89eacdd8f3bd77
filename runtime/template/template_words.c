// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/template/template_words.h"

#include <math.h>
#include <string.h>

#define MOST_RANGE 10000 /* numbers of a range, and cuts of a text that are counted */
#define WHITE " \t\n\r\f\v"

typedef MtfTemplateMaker Maker;
typedef MtfWordArguments Arguments;
typedef const cJSON *(*Word)(Maker *m, const Arguments *a);

/* ---- Arguments ------------------------------------------------------------------------------- */

/* Argument number i, or the one of that name; what is undefined where there is none. */
static const cJSON *argument(const Arguments *a, int i, const char *key) {
    for (int k = 0; key != NULL && k < a->n; k++)
        if (a->keys[k] != NULL && strcmp(a->keys[k], key) == 0)
            return a->values[k];
    return i < a->n && a->keys[i] == NULL ? a->values[i] : &mtf_undefined;
}

static const cJSON *subject(const Arguments *a) {
    return argument(a, 0, NULL);
}

/* A text; "" with an error where it is none. */
static const char *text_of(Maker *m, const cJSON *value) {
    if (cJSON_IsString(value))
        return value->valuestring;
    mtf_value_fail(m, "a text is expected");
    return "";
}

static const char *text_argument(Maker *m, const Arguments *a, int i, const char *standard) {
    const cJSON *value = argument(a, i, NULL);
    return mtf_value_is_undefined(value) || cJSON_IsNull(value) ? standard : text_of(m, value);
}

/* ---- Texts ----------------------------------------------------------------------------------- */

static const cJSON *stripped(Maker *m, const Arguments *a, bool left, bool right) {
    const char *text = text_of(m, subject(a)), *white = text_argument(m, a, 1, WHITE);
    gsize n = strlen(text);
    while (left && *text != '\0' && strchr(white, *text) != NULL) {
        text++;
        n--;
    }
    while (right && n > 0 && strchr(white, text[n - 1]) != NULL)
        n--;
    g_autofree char *rest = g_strndup(text, n);
    return mtf_value_text(m, rest);
}

static const cJSON *strip(Maker *m, const Arguments *a) {
    return stripped(m, a, true, true);
}

static const cJSON *left_strip(Maker *m, const Arguments *a) {
    return stripped(m, a, true, false);
}

static const cJSON *right_strip(Maker *m, const Arguments *a) {
    return stripped(m, a, false, true);
}

static const cJSON *taken(Maker *m, char *text) {
    const cJSON *value = mtf_value_text(m, text);
    g_free(text);
    return value;
}

static const cJSON *upper(Maker *m, const Arguments *a) {
    return taken(m, g_utf8_strup(text_of(m, subject(a)), -1));
}

static const cJSON *lower(Maker *m, const Arguments *a) {
    return taken(m, g_utf8_strdown(text_of(m, subject(a)), -1));
}

/* The first letter large and the others small, of all or of every word. */
static const cJSON *with_capitals(Maker *m, const Arguments *a, bool every) {
    g_autoptr(GString) text = g_string_new(NULL);
    bool begins = true;
    for (const char *at = text_of(m, subject(a)); *at != '\0'; at = g_utf8_next_char(at)) {
        gunichar c = g_utf8_get_char(at);
        g_string_append_unichar(text, begins ? g_unichar_totitle(c) : g_unichar_tolower(c));
        begins = every && !g_unichar_isalpha(c);
    }
    return mtf_value_text(m, text->str);
}

static const cJSON *capitalize(Maker *m, const Arguments *a) {
    return with_capitals(m, a, false);
}

static const cJSON *title(Maker *m, const Arguments *a) {
    return with_capitals(m, a, true);
}

static const cJSON *replace(Maker *m, const Arguments *a) {
    g_autoptr(GString) text = g_string_new(text_of(m, subject(a)));
    const char *from = text_argument(m, a, 1, ""), *to = text_argument(m, a, 2, "");
    if (*from == '\0')
        return mtf_value_fail(m, "an empty text cannot be replaced");
    g_string_replace(text, from, to, 0);
    return mtf_value_text(m, text->str);
}

static const cJSON *split(Maker *m, const Arguments *a) {
    const char *text = text_of(m, subject(a)), *by = text_argument(m, a, 1, NULL);
    const cJSON *most = argument(a, 2, "maxsplit");
    int parts =
        cJSON_IsNumber(most) && most->valueint >= 0 ? MIN(most->valueint, MOST_RANGE) + 1 : 0;
    cJSON *list = mtf_value_container(m, false);
    if (by != NULL && *by == '\0')
        return mtf_value_fail(m, "a text cannot be split by an empty one");
    g_auto(GStrv) pieces =
        by != NULL ? g_strsplit(text, by, parts) : g_strsplit_set(text, WHITE, parts);
    for (int i = 0; pieces[i] != NULL; i++)
        if (by != NULL || *pieces[i] != '\0')
            mtf_value_add(list, NULL, mtf_value_text(m, pieces[i]));
    if (by != NULL && pieces[0] == NULL)
        mtf_value_add(list, NULL, mtf_value_text(m, ""));
    return list;
}

static const cJSON *starts_with(Maker *m, const Arguments *a) {
    return mtf_value_bool(m, g_str_has_prefix(text_of(m, subject(a)), text_argument(m, a, 1, "")));
}

static const cJSON *ends_with(Maker *m, const Arguments *a) {
    return mtf_value_bool(m, g_str_has_suffix(text_of(m, subject(a)), text_argument(m, a, 1, "")));
}

/* The values of a list with `by` between. */
static const cJSON *joined(Maker *m, const cJSON *list, const char *by) {
    g_autoptr(GString) text = g_string_new(NULL);
    for (const cJSON *item = list->child; item != NULL; item = item->next) {
        mtf_value_print(text, item);
        g_string_append(text, item->next != NULL ? by : "");
    }
    return mtf_value_text(m, text->str);
}

static const cJSON *join_filter(Maker *m, const Arguments *a) {
    return joined(m, subject(a), text_argument(m, a, 1, ""));
}

static const cJSON *join_method(Maker *m, const Arguments *a) {
    return joined(m, argument(a, 1, NULL), text_of(m, subject(a)));
}

static const cJSON *as_text(Maker *m, const Arguments *a) {
    g_autoptr(GString) text = g_string_new(NULL);
    mtf_value_print(text, subject(a));
    return mtf_value_text(m, text->str);
}

static const cJSON *as_integer(Maker *m, const Arguments *a) {
    const cJSON *v = subject(a);
    double number = cJSON_IsString(v)   ? g_ascii_strtod(v->valuestring, NULL)
                    : cJSON_IsNumber(v) ? v->valuedouble
                                        : mtf_value_is_true(v);
    return mtf_value_number(m, trunc(number));
}

static const cJSON *as_json(Maker *m, const Arguments *a) {
    const cJSON *indent = argument(a, 1, "indent");
    g_autoptr(GString) text = g_string_new(NULL);
    mtf_value_print_json(text, subject(a),
                         cJSON_IsNumber(indent) ? CLAMP(indent->valueint, 0, 16) : 0, 0);
    return mtf_value_text(m, text->str);
}

/* ---- Lists and objects ----------------------------------------------------------------------- */

static const cJSON *length(Maker *m, const Arguments *a) {
    const cJSON *v = subject(a);
    return mtf_value_number(m, cJSON_IsString(v) ? (double)g_utf8_strlen(v->valuestring, -1)
                                                 : (double)cJSON_GetArraySize(v));
}

static const cJSON *first(Maker *m, const Arguments *a) {
    (void)m;
    const cJSON *v = subject(a);
    return v->child != NULL ? v->child : &mtf_undefined;
}

static const cJSON *last(Maker *m, const Arguments *a) {
    (void)m;
    const cJSON *item = first(m, a);
    while (item->next != NULL)
        item = item->next;
    return item;
}

static const cJSON *as_list(Maker *m, const Arguments *a) {
    cJSON *list = mtf_value_container(m, false);
    const cJSON *v = subject(a);
    for (const cJSON *item = v->child; item != NULL; item = item->next)
        mtf_value_add(list, NULL, cJSON_IsObject(v) ? mtf_value_text(m, item->string) : item);
    return list;
}

static const cJSON *values(Maker *m, const Arguments *a) {
    cJSON *list = mtf_value_container(m, false);
    for (const cJSON *item = subject(a)->child; item != NULL; item = item->next)
        mtf_value_add(list, NULL, item);
    return list;
}

/* Pairs of key and value. */
static const cJSON *items(Maker *m, const Arguments *a) {
    cJSON *list = mtf_value_container(m, false);
    if (!cJSON_IsObject(subject(a)))
        return mtf_value_fail(m, "an object is expected, whose items are asked for");
    for (const cJSON *item = subject(a)->child; item != NULL; item = item->next) {
        cJSON *pair = mtf_value_container(m, false);
        mtf_value_add(pair, NULL, mtf_value_text(m, item->string));
        mtf_value_add(pair, NULL, item);
        mtf_value_add(list, NULL, pair);
    }
    return list;
}

static const cJSON *get(Maker *m, const Arguments *a) {
    const cJSON *found = cJSON_GetObjectItemCaseSensitive(subject(a), text_argument(m, a, 1, ""));
    const cJSON *other = argument(a, 2, "default");
    if (found != NULL || !mtf_value_is_undefined(other))
        return found != NULL ? found : other;
    return mtf_value_own(m, cJSON_CreateNull());
}

static const cJSON *otherwise(Maker *m, const Arguments *a) {
    (void)m;
    bool also_false = mtf_value_is_true(argument(a, 2, "boolean"));
    bool there =
        !mtf_value_is_undefined(subject(a)) && (!also_false || mtf_value_is_true(subject(a)));
    return there ? subject(a) : argument(a, 1, "default_value");
}

static const cJSON *itself(Maker *m, const Arguments *a) {
    (void)m;
    return subject(a);
}

/* ---- Choosing from lists --------------------------------------------------------------------- */

/* Members whose attribute passes a test, or is true where none is named; or those that do not. */
static const cJSON *selected(Maker *m, const Arguments *a, bool wanted) {
    const char *key = text_argument(m, a, 1, ""), *test = text_argument(m, a, 2, NULL);
    cJSON *list = mtf_value_container(m, false);
    if (test != NULL && !mtf_template_has(MTF_WORD_TEST, test))
        return mtf_value_fail(m, "the test \"%s\" is not supported", test);
    for (const cJSON *item = subject(a)->child; item != NULL; item = item->next) {
        const cJSON *member = cJSON_GetObjectItemCaseSensitive(item, key);
        member = member != NULL ? member : &mtf_undefined;
        Arguments asked = { .values = { member, argument(a, 3, NULL) }, .n = 2 };
        const cJSON *passes =
            test != NULL ? mtf_template_call(m, MTF_WORD_TEST, test, &asked) : member;
        if (mtf_value_is_true(passes) == wanted)
            mtf_value_add(list, NULL, item);
    }
    return list;
}

static const cJSON *select_attribute(Maker *m, const Arguments *a) {
    return selected(m, a, true);
}

static const cJSON *reject_attribute(Maker *m, const Arguments *a) {
    return selected(m, a, false);
}

static const cJSON *map_attribute(Maker *m, const Arguments *a) {
    const cJSON *key = argument(a, MTF_MOST_ARGUMENTS, "attribute");
    cJSON *list = mtf_value_container(m, false);
    if (!cJSON_IsString(key))
        return mtf_value_fail(m, "only map(attribute=…) is supported");
    for (const cJSON *item = subject(a)->child; item != NULL; item = item->next) {
        const cJSON *member = cJSON_GetObjectItemCaseSensitive(item, key->valuestring);
        mtf_value_add(list, NULL, member != NULL ? member : &mtf_undefined);
    }
    return list;
}

/* ---- Tests ----------------------------------------------------------------------------------- */

#define TEST(name, expression)                               \
    static const cJSON *name(Maker *m, const Arguments *a) { \
        const cJSON *v = subject(a);                         \
        return mtf_value_bool(m, expression);                \
    }

TEST(is_defined, !mtf_value_is_undefined(v))
TEST(is_undefined, mtf_value_is_undefined(v))
TEST(is_none, cJSON_IsNull(v))
TEST(is_string, cJSON_IsString(v))
TEST(is_mapping, cJSON_IsObject(v))
TEST(is_iterable, cJSON_IsArray(v) || cJSON_IsObject(v) || cJSON_IsString(v))
TEST(is_number, cJSON_IsNumber(v))
TEST(is_boolean, cJSON_IsBool(v))
TEST(is_true, cJSON_IsTrue(v))
TEST(is_false, cJSON_IsFalse(v))
TEST(is_odd, cJSON_IsNumber(v) && fmod(fabs(v->valuedouble), 2) == 1)
TEST(is_even, cJSON_IsNumber(v) && fmod(v->valuedouble, 2) == 0)
TEST(is_equal, mtf_value_equal(v, argument(a, 1, NULL)))
TEST(is_unequal, !mtf_value_equal(v, argument(a, 1, NULL)))

/* ---- Functions ------------------------------------------------------------------------------- */

static const cJSON *raise_exception(Maker *m, const Arguments *a) {
    return mtf_value_fail(m, "%s", text_of(m, subject(a)));
}

static const cJSON *make_object(Maker *m, const Arguments *a) {
    cJSON *object = mtf_value_container(m, true);
    for (int i = 0; i < a->n; i++)
        if (a->keys[i] != NULL)
            mtf_value_add(object, a->keys[i], a->values[i]);
    return object;
}

static const cJSON *range(Maker *m, const Arguments *a) {
    const cJSON *from = argument(a, 0, NULL), *to = argument(a, 1, NULL),
                *by = argument(a, 2, NULL);
    double begin = cJSON_IsNumber(to) ? from->valuedouble : 0;
    double end = cJSON_IsNumber(to) ? to->valuedouble : from->valuedouble;
    double step = cJSON_IsNumber(by) ? by->valuedouble : 1;
    cJSON *list = mtf_value_container(m, false);
    double n = ceil((end - begin) / step);
    if (!cJSON_IsNumber(from) || !(n <= MOST_RANGE))
        return mtf_value_fail(m, "a range has at most %d numbers", MOST_RANGE);
    for (int i = 0; i < n; i++)
        mtf_value_add(list, NULL, mtf_value_number(m, begin + i * step));
    return list;
}

static const cJSON *time_now(Maker *m, const Arguments *a) {
    g_autoptr(GDateTime) now = g_date_time_new_now_local();
    g_autofree char *text = g_date_time_format(now, text_of(m, subject(a)));
    return mtf_value_text(m, text != NULL ? text : "");
}

/* ---- The table ------------------------------------------------------------------------------- */

static const struct {
    MtfWordKind kind;
    const char *name;
    Word word;
} words[] = {
    { MTF_WORD_FUNCTION, "raise_exception", raise_exception },
    { MTF_WORD_FUNCTION, "namespace", make_object },
    { MTF_WORD_FUNCTION, "dict", make_object },
    { MTF_WORD_FUNCTION, "range", range },
    { MTF_WORD_FUNCTION, "strftime_now", time_now },
    { MTF_WORD_METHOD, "strip", strip },
    { MTF_WORD_METHOD, "lstrip", left_strip },
    { MTF_WORD_METHOD, "rstrip", right_strip },
    { MTF_WORD_METHOD, "upper", upper },
    { MTF_WORD_METHOD, "lower", lower },
    { MTF_WORD_METHOD, "capitalize", capitalize },
    { MTF_WORD_METHOD, "title", title },
    { MTF_WORD_METHOD, "replace", replace },
    { MTF_WORD_METHOD, "split", split },
    { MTF_WORD_METHOD, "startswith", starts_with },
    { MTF_WORD_METHOD, "endswith", ends_with },
    { MTF_WORD_METHOD, "join", join_method },
    { MTF_WORD_METHOD, "items", items },
    { MTF_WORD_METHOD, "keys", as_list },
    { MTF_WORD_METHOD, "values", values },
    { MTF_WORD_METHOD, "get", get },
    { MTF_WORD_FILTER, "trim", strip },
    { MTF_WORD_FILTER, "upper", upper },
    { MTF_WORD_FILTER, "lower", lower },
    { MTF_WORD_FILTER, "capitalize", capitalize },
    { MTF_WORD_FILTER, "title", title },
    { MTF_WORD_FILTER, "replace", replace },
    { MTF_WORD_FILTER, "join", join_filter },
    { MTF_WORD_FILTER, "string", as_text },
    { MTF_WORD_FILTER, "int", as_integer },
    { MTF_WORD_FILTER, "tojson", as_json },
    { MTF_WORD_FILTER, "length", length },
    { MTF_WORD_FILTER, "count", length },
    { MTF_WORD_FILTER, "first", first },
    { MTF_WORD_FILTER, "last", last },
    { MTF_WORD_FILTER, "list", as_list },
    { MTF_WORD_FILTER, "items", items },
    { MTF_WORD_FILTER, "default", otherwise },
    { MTF_WORD_FILTER, "d", otherwise },
    { MTF_WORD_FILTER, "safe", itself },
    { MTF_WORD_FILTER, "selectattr", select_attribute },
    { MTF_WORD_FILTER, "rejectattr", reject_attribute },
    { MTF_WORD_FILTER, "map", map_attribute },
    { MTF_WORD_TEST, "defined", is_defined },
    { MTF_WORD_TEST, "undefined", is_undefined },
    { MTF_WORD_TEST, "none", is_none },
    { MTF_WORD_TEST, "string", is_string },
    { MTF_WORD_TEST, "mapping", is_mapping },
    { MTF_WORD_TEST, "iterable", is_iterable },
    { MTF_WORD_TEST, "sequence", is_iterable },
    { MTF_WORD_TEST, "number", is_number },
    { MTF_WORD_TEST, "boolean", is_boolean },
    { MTF_WORD_TEST, "true", is_true },
    { MTF_WORD_TEST, "false", is_false },
    { MTF_WORD_TEST, "odd", is_odd },
    { MTF_WORD_TEST, "even", is_even },
    { MTF_WORD_TEST, "equalto", is_equal },
    { MTF_WORD_TEST, "eq", is_equal },
    { MTF_WORD_TEST, "ne", is_unequal },
};

static Word find_word(MtfWordKind kind, const char *name) {
    for (gsize i = 0; i < G_N_ELEMENTS(words); i++)
        if (words[i].kind == kind && strcmp(words[i].name, name) == 0)
            return words[i].word;
    return NULL;
}

bool mtf_template_has(MtfWordKind kind, const char *name) {
    return find_word(kind, name) != NULL;
}

const cJSON *mtf_template_call(MtfTemplateMaker *m, MtfWordKind kind, const char *name,
                               const MtfWordArguments *arguments) {
    return find_word(kind, name)(m, arguments);
}
