// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/machine/curve_name.h"

#include <string.h>

static const char *const class_names[MTF_CLASSES] = {
    [MTF_CLASS_MATMUL] = "matmul",       [MTF_CLASS_ELEMENTWISE] = "elementwise",
    [MTF_CLASS_REDUCTION] = "reduction", [MTF_CLASS_GATHER] = "gather",
    [MTF_CLASS_MOVE] = "move",
};

static const char *const product_names[MTF_PRODUCT_FORMS] = {
    [MTF_PRODUCT_NN] = "product",
    [MTF_PRODUCT_NT] = "product_nt",
    [MTF_PRODUCT_TN] = "product_tn",
    [MTF_PRODUCT_ATTENTION] = "attention",
    [MTF_PRODUCT_ATTENTION_GRAD] = "attention_grad",
};

const char *mtf_kernel_class_name(MtfKernelClass class) {
    return class_names[class];
}

static bool parse_size(const char *text, int64_t *size) {
    guint64 number;
    if (!g_ascii_string_to_unsigned(text, 10, 1, G_MAXINT, &number, NULL))
        return false;
    *size = (int64_t)number;
    return true;
}

static bool parse_form(const char *text, MtfCurveName *name) {
    for (int form = 0; form < MTF_PRODUCT_FORMS; form++)
        if (strcmp(text, product_names[form]) == 0) {
            name->form = (MtfProductForm)form;
            return true;
        }
    return false;
}

static bool parse_product(GStrv parts, MtfCurveName *name) {
    g_auto(GStrv) sides = g_strsplit(parts[2], "x", 3);
    name->kind = MTF_CURVE_PRODUCT;
    return parse_form(parts[0], name) && g_strv_length(sides) == 2 &&
           parse_size(sides[0], &name->m) && parse_size(sides[1], &name->n);
}

static bool parse_class(const char *text, MtfCurveName *name) {
    name->kind = MTF_CURVE_CLASS;
    for (int class = 0; class < MTF_CLASSES; class ++)
        if (strcmp(text, class_names[class]) == 0) {
            name->class = (MtfKernelClass) class;
            return true;
        }
    return false;
}

static bool parse_kernel(const char *text, MtfCurveName *name) {
    int operation = mtf_operation_kind(text);
    if (operation < 0)
        return parse_class(text, name);
    MtfProductsKind products = mtf_operation_row(operation)->products;
    if (products == MTF_PRODUCTS_ATTENTION || products == MTF_PRODUCTS_ATTENTION_GRAD)
        return false;
    name->kind = MTF_CURVE_OPERATION;
    name->operation = operation;
    return true;
}

static bool parse_short_rows(GStrv parts, MtfCurveName *name) {
    return parse_kernel(parts[0], name) && name->kind == MTF_CURVE_OPERATION &&
           parse_size(parts[2], &name->m) && name->m == MTF_SHORT_ROW;
}

static bool parse_collective(GStrv parts, MtfCurveName *name) {
    int algorithm = parts[2] == NULL ? MTF_EXCHANGE_DIRECT : mtf_exchange_algorithm_find(parts[2]);
    name->algorithm = (MtfExchangeAlgorithm)MAX(algorithm, 0);
    return (parts[2] == NULL || algorithm > MTF_EXCHANGE_DIRECT) &&
           mtf_collective_kind_parse(parts[0], &name->collective, NULL);
}

static bool parse_parts(GStrv parts, MtfCurveName *name) {
    guint n = g_strv_length(parts);
    if (n >= 2 && parse_size(parts[1], &name->ranks))
        return parse_collective(parts, name);
    if (n < 2 || !mtf_dtype_from_name(parts[1], &name->dtype))
        return false;
    if (n == 3)
        return strchr(parts[2], 'x') != NULL ? parse_product(parts, name)
                                             : parse_short_rows(parts, name);
    name->kind = MTF_CURVE_PRODUCT_CALL;
    return strcmp(parts[0], "product") == 0 || parse_kernel(parts[0], name);
}

bool mtf_curve_name_parse(const char *text, MtfCurveName *name) {
    *name = (MtfCurveName){ .kind = MTF_CURVE_COLLECTIVE };
    g_auto(GStrv) parts = g_strsplit(text, "/", 4);
    return g_strv_length(parts) <= 3 && parse_parts(parts, name);
}

char *mtf_curve_name_format(const MtfCurveName *name) {
    const char *dtype = mtf_dtype_short_name(name->dtype);
    switch (name->kind) {
    case MTF_CURVE_COLLECTIVE:
        return g_strdup_printf(
            "%s/%" G_GINT64_FORMAT "%s%s", mtf_collective_kind_name(name->collective), name->ranks,
            name->algorithm == MTF_EXCHANGE_DIRECT ? "" : "/",
            name->algorithm == MTF_EXCHANGE_DIRECT ? ""
                                                   : mtf_exchange_algorithm_name(name->algorithm));
    case MTF_CURVE_OPERATION:
        return g_strdup_printf(name->m > 0 ? "%s/%s/%d" : "%s/%s",
                               mtf_operation_row(name->operation)->name, dtype, MTF_SHORT_ROW);
    case MTF_CURVE_CLASS:
        return g_strdup_printf("%s/%s", class_names[name->class], dtype);
    case MTF_CURVE_PRODUCT:
        return g_strdup_printf("%s/%s/%" G_GINT64_FORMAT "x%" G_GINT64_FORMAT,
                               product_names[name->form], dtype, name->m, name->n);
    default:
        return g_strdup_printf("product/%s", dtype);
    }
}
