// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/template/template_values.h"

#include "layouts/base/error.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

const cJSON mtf_undefined = { .type = cJSON_Invalid };

bool mtf_value_is_undefined(const cJSON *v) {
    return (v->type & 0xff) == cJSON_Invalid;
}

/* ---- Making ---------------------------------------------------------------------------------- */

const cJSON *mtf_value_own(MtfTemplateMaker *m, cJSON *value) {
    g_ptr_array_add(m->made, value);
    return value;
}

const cJSON *mtf_value_text(MtfTemplateMaker *m, const char *text) {
    return mtf_value_own(m, cJSON_CreateString(text));
}

const cJSON *mtf_value_bool(MtfTemplateMaker *m, bool is) {
    return mtf_value_own(m, cJSON_CreateBool(is));
}

const cJSON *mtf_value_number(MtfTemplateMaker *m, double number) {
    return mtf_value_own(m, cJSON_CreateNumber(number));
}

cJSON *mtf_value_container(MtfTemplateMaker *m, bool object) {
    cJSON *container = object ? cJSON_CreateObject() : cJSON_CreateArray();
    g_ptr_array_add(m->made, container);
    return container;
}

/* A reference shares what the member holds; cJSON takes it as not const. */
void mtf_value_add(cJSON *container, const char *key, const cJSON *member) {
    cJSON *shared = (cJSON *)(guintptr)member;
    if (key != NULL)
        cJSON_AddItemReferenceToObject(container, key, shared);
    else
        cJSON_AddItemReferenceToArray(container, shared);
}

MtfValue mtf_value_fail(MtfTemplateMaker *m, const char *format, ...) {
    if (m->failed)
        return &mtf_undefined;
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *sentence = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    mtf_input_error(m->error, "line %d: %s", m->line, sentence);
    m->failed = true;
    return &mtf_undefined;
}

/* ---- Asking ---------------------------------------------------------------------------------- */

bool mtf_value_is_true(const cJSON *v) {
    if (cJSON_IsString(v))
        return v->valuestring[0] != '\0';
    if (cJSON_IsNumber(v))
        return v->valuedouble != 0;
    if (cJSON_IsArray(v) || cJSON_IsObject(v))
        return v->child != NULL;
    return cJSON_IsTrue(v);
}

/* Python's True is 1. */
static double number_of(const cJSON *v) {
    return cJSON_IsNumber(v) ? v->valuedouble : cJSON_IsTrue(v);
}

bool mtf_value_equal(const cJSON *a, const cJSON *b) {
    if (mtf_value_is_undefined(a) || mtf_value_is_undefined(b))
        return mtf_value_is_undefined(a) && mtf_value_is_undefined(b);
    if (cJSON_IsBool(a) != cJSON_IsBool(b) && (cJSON_IsNumber(a) || cJSON_IsNumber(b)))
        return number_of(a) == number_of(b);
    return cJSON_Compare(a, b, true);
}

/* ---- Printing -------------------------------------------------------------------------------- */

static void print_number(GString *into, double number) {
    if (number == floor(number) && fabs(number) < 1e15) {
        g_string_append_printf(into, "%.0f", number);
        return;
    }
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    g_string_append(into, g_ascii_formatd(text, sizeof text, "%.15g", number));
}

static void print_quoted(GString *into, const char *text) {
    char quote = strchr(text, '\'') != NULL && strchr(text, '"') == NULL ? '"' : '\'';
    g_string_append_c(into, quote);
    for (; *text != '\0'; text++) {
        if (*text == quote || *text == '\\')
            g_string_append_c(into, '\\');
        if (*text == '\n')
            g_string_append(into, "\\n");
        else
            g_string_append_c(into, *text);
    }
    g_string_append_c(into, quote);
}

static void print_member(GString *into, const cJSON *v) {
    if (cJSON_IsString(v))
        print_quoted(into, v->valuestring);
    else
        mtf_value_print(into, v);
}

static void print_members(GString *into, const cJSON *v) {
    bool object = cJSON_IsObject(v);
    g_string_append_c(into, object ? '{' : '[');
    for (const cJSON *m = v->child; m != NULL; m = m->next) {
        if (object) {
            print_quoted(into, m->string);
            g_string_append(into, ": ");
        }
        print_member(into, m);
        g_string_append(into, m->next != NULL ? ", " : "");
    }
    g_string_append_c(into, object ? '}' : ']');
}

void mtf_value_print(GString *into, const cJSON *v) {
    if (cJSON_IsString(v))
        g_string_append(into, v->valuestring);
    else if (cJSON_IsNumber(v))
        print_number(into, v->valuedouble);
    else if (cJSON_IsBool(v))
        g_string_append(into, cJSON_IsTrue(v) ? "True" : "False");
    else if (cJSON_IsNull(v))
        g_string_append(into, "None");
    else if (!mtf_value_is_undefined(v))
        print_members(into, v);
}

static void print_json_text(GString *into, const char *text) {
    g_string_append_c(into, '"');
    for (; *text != '\0'; text++) {
        static const char from[] = "\"\\\n\r\t\b\f", to[] = "\"\\nrtbf";
        const char *found = strchr(from, *text);
        if (found != NULL)
            g_string_append_printf(into, "\\%c", to[found - from]);
        else if ((unsigned char)*text < 0x20)
            g_string_append_printf(into, "\\u%04x", (unsigned)*text);
        else
            g_string_append_c(into, *text);
    }
    g_string_append_c(into, '"');
}

static void break_line(GString *into, int indent, int depth) {
    if (indent > 0)
        g_string_append_printf(into, "\n%*s", indent * depth, "");
}

static void print_json_members(GString *into, const cJSON *v, int indent, int depth) {
    bool object = cJSON_IsObject(v);
    g_string_append_c(into, object ? '{' : '[');
    for (const cJSON *m = v->child; m != NULL; m = m->next) {
        break_line(into, indent, depth + 1);
        if (object) {
            print_json_text(into, m->string);
            g_string_append(into, ": ");
        }
        mtf_value_print_json(into, m, indent, depth + 1);
        g_string_append(into, m->next == NULL ? "" : indent > 0 ? "," : ", ");
    }
    if (v->child != NULL)
        break_line(into, indent, depth);
    g_string_append_c(into, object ? '}' : ']');
}

void mtf_value_print_json(GString *into, const cJSON *v, int indent, int depth) {
    if (cJSON_IsString(v))
        print_json_text(into, v->valuestring);
    else if (cJSON_IsNumber(v))
        print_number(into, v->valuedouble);
    else if (cJSON_IsBool(v))
        g_string_append(into, cJSON_IsTrue(v) ? "true" : "false");
    else if (cJSON_IsArray(v) || cJSON_IsObject(v))
        print_json_members(into, v, indent, depth);
    else
        g_string_append(into, "null");
}
