// SPDX-License-Identifier: GPL-3.0-or-later
/* Values of a template: cJSON's, shared and never changed but namespaces, whose owner is the run that made
 * them. What is not defined is a value, too, which is false, empty, and has no members. */
#ifndef MTF_TEMPLATE_VALUES_H
#define MTF_TEMPLATE_VALUES_H

#include <cjson/cJSON.h>
#include <glib.h>
#include <stdbool.h>

/* A run of a template: what it made, and its first error. After that all values are undefined. */
typedef struct {
    GPtrArray *made; /* cJSON */
    int line;        /* of what is run */
    bool failed;
    GError **error;
} MtfTemplateMaker;

typedef const cJSON *MtfValue;

extern const cJSON mtf_undefined;

/* Whether a value is that, or a reference to it. */
bool mtf_value_is_undefined(const cJSON *value);

/* Gives a value to the run, which frees it. */
const cJSON *mtf_value_own(MtfTemplateMaker *maker, cJSON *value);
const cJSON *mtf_value_text(MtfTemplateMaker *maker, const char *text);
const cJSON *mtf_value_bool(MtfTemplateMaker *maker, bool is);
const cJSON *mtf_value_number(MtfTemplateMaker *maker, double number);

/* An empty list or object, and one member more, which is shared. */
cJSON *mtf_value_container(MtfTemplateMaker *maker, bool object);
void mtf_value_add(cJSON *container, const char *key, const cJSON *member);

/* Fails with a bad-input error, "line 3: …"; gives what is undefined. */
MtfValue mtf_value_fail(MtfTemplateMaker *maker, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* Truth and equality as Python has them. */
bool mtf_value_is_true(const cJSON *value);
bool mtf_value_equal(const cJSON *a, const cJSON *b);

/* As Python prints it, and as Python's json.dumps does; `indent` 0: on one line. */
void mtf_value_print(GString *into, const cJSON *value);
void mtf_value_print_json(GString *into, const cJSON *value, int indent, int depth);

#endif
