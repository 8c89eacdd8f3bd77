// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/graph_file/graph_fields.h"

#include "layouts/base/nearest_name.h"

#include <string.h>

static bool fail_unknown_dimension(const MtfGraph *graph, const MtfJson *where, const char *name,
                                   GError **error) {
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    for (guint i = 0; i < graph->dimensions->len; i++)
        g_ptr_array_add(names, mtf_graph_dimension(graph, (int)i)->name);
    g_ptr_array_add(names, NULL);
    g_autofree char *hint = mtf_did_you_mean(name, (const char *const *)names->pdata);
    return mtf_json_fail(where, error, "\"%s\" is not a dimension of this graph%s", name, hint);
}

bool mtf_field_dimension(const MtfGraph *graph, const MtfJson *where, int *dim, GError **error) {
    const char *name;
    if (!mtf_json_string(where, &name, error))
        return false;
    int found = mtf_graph_find_dimension(graph, name);
    if (found < 0)
        return fail_unknown_dimension(graph, where, name, error);
    *dim = found;
    return true;
}

bool mtf_field_dims(const MtfGraph *graph, const MtfJson *where, MtfShape *shape, GError **error) {
    MtfShape dims = { 0 };
    MtfJson child;
    if (!mtf_json_array(where, error))
        return false;
    for (bool more = mtf_json_first(where, &child); more; more = mtf_json_next(&child)) {
        int dim = -1;
        if (!mtf_field_dimension(graph, &child, &dim, error))
            return false;
        if (mtf_shape_find(&dims, dim) >= 0)
            return mtf_json_fail(&child, error, "dimension \"%s\" is named twice",
                                 mtf_graph_dimension(graph, dim)->name);
        if (!mtf_shape_append(&dims, dim))
            return mtf_json_fail(where, error, "a tensor has at most %d dimensions", MTF_MAX_RANK);
    }
    *shape = dims;
    return true;
}

/* What does for a type that other systems have; or all there are. */
static const char *what_would_do(const char *name) {
    static const struct {
        const char *name, *instead;
    } others[] = { { "int16", "int32 does" },
                   { "uint32", "int64 does" },
                   { "uint64", "int64 does" },
                   { "uint8", "int32 does" },
                   { "float16", "bfloat16 does" },
                   { "half", "bfloat16 does" },
                   { "fp16", "bfloat16 does" },
                   { "bf16", "bfloat16 is" },
                   { "float", "float32 is" },
                   { "double", "float64 is" },
                   { "int", "int32 is" },
                   { "complex64", "float32 does, with a dimension of two for both parts" },
                   { "complex128", "float64 does, with a dimension of two for both parts" } };
    for (gsize i = 0; i < G_N_ELEMENTS(others); i++)
        if (strcmp(others[i].name, name) == 0)
            return others[i].instead;
    if (g_str_has_prefix(name, "float8") || g_str_has_prefix(name, "fp8"))
        return "bfloat16 does";
    return "float32, float64, bfloat16, int32, int64, bool and int8 are";
}

bool mtf_field_dtype(const MtfJson *object, MtfDtype *dtype, GError **error) {
    MtfJson child;
    const char *name;
    if (!mtf_json_find(object, "dtype", &child))
        return true;
    return mtf_json_string(&child, &name, error) &&
           (mtf_dtype_from_name(name, dtype) ||
            mtf_json_fail(&child, error, "\"%s\" is not a type: %s", name, what_would_do(name)));
}

bool mtf_field_word(const MtfJson *where, const char *what, const char *const *words, int *index,
                    GError **error) {
    const char *word;
    if (!mtf_json_string(where, &word, error))
        return false;
    for (int i = 0; words[i] != NULL; i++) {
        if (strcmp(words[i], word) == 0) {
            *index = i;
            return true;
        }
    }
    g_autofree char *known = g_strjoinv(", ", (char **)words);
    return mtf_json_fail(where, error, "\"%s\" is not %s (known: %s)", word, what, known);
}

bool mtf_field_memory(const MtfJson *where, MtfMemoryKind *memory, GError **error) {
    static const MtfMemoryKind kinds[] = { MTF_MEMORY_VARIABLE,  MTF_MEMORY_GRADIENT,
                                           MTF_MEMORY_OPTIMIZER, MTF_MEMORY_ACTIVATION,
                                           MTF_MEMORY_CACHE,     MTF_MEMORY_OUTPUT };
    const char *words[G_N_ELEMENTS(kinds) + 1] = { NULL };
    for (gsize i = 0; i < G_N_ELEMENTS(kinds); i++)
        words[i] = mtf_memory_name(kinds[i]);
    int index = 0;
    if (!mtf_field_word(where, "a kind of memory", words, &index, error))
        return false;
    *memory = kinds[index];
    return true;
}

bool mtf_field_relay(const MtfJson *where, GError *cause, GError **error) {
    mtf_json_fail(where, error, "%s", cause->message);
    g_error_free(cause);
    return false;
}
