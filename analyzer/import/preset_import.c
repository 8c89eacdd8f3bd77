// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/import/preset_import.h"

#include "analyzer/models/model_family.h"
#include "layouts/base/error.h"
#include "layouts/base/json_writer.h"
#include "layouts/base/library.h"
#include "layouts/base/nearest_name.h"

#include <inttypes.h>
#include <string.h>

bool mtf_is_preset(const char *path) {
    const MtfModelFamily *family;
    return !g_file_test(path, G_FILE_TEST_EXISTS) && mtf_model_find(path, &family) != NULL;
}

static void fail_unknown(const char *name, GError **error) {
    g_auto(GStrv) graphs = mtf_library_list("graphs", error);
    if (graphs == NULL)
        return;
    g_auto(GStrv) presets = mtf_model_names();
    g_autoptr(GStrvBuilder) known = g_strv_builder_new();
    g_strv_builder_addv(known, (const char **)graphs);
    g_strv_builder_addv(known, (const char **)presets);
    g_auto(GStrv) all = g_strv_builder_end(known);
    g_autofree char *small = g_ascii_strdown(name, -1);
    g_autofree char *hint = mtf_did_you_mean(small, (const char *const *)all);
    g_autofree char *list = g_strjoinv(", ", graphs);
    mtf_input_error(error,
                    "\"%s\" is neither a file, nor one of the library's graphs (%s), nor a known "
                    "model (meshtf-plan model --help lists them)%s",
                    name, list, hint);
}

char *mtf_import_find(const char *name, GError **error) {
    if (g_file_test(name, G_FILE_TEST_EXISTS))
        return g_strdup(name);
    char *found = mtf_library_find("graphs", name, NULL);
    if (found == NULL && mtf_is_preset(name))
        return g_strdup(name);
    if (found == NULL)
        fail_unknown(name, error);
    return found;
}

/* Sets what is asked for (NULL: nothing is). What the family lacks is an error unless `may_lack`. */
static bool set(const MtfModelFamily *family, const char *name, const char *asked, bool may_lack,
                MtfModelSettings *settings, GError **error) {
    const MtfModelParameter *parameter = mtf_model_parameters();
    while (g_strcmp0(parameter->name, name) != 0)
        parameter++;
    return asked == NULL || (may_lack && !mtf_model_has_parameter(family, parameter)) ||
           mtf_model_set(family, parameter, asked, settings, error);
}

static char *size_asked(int64_t size) {
    return size > 0 ? g_strdup_printf("%" PRId64, size) : NULL;
}

static bool set_all(const MtfImport *import, const MtfModelFamily *family,
                    MtfModelSettings *settings, GError **error) {
    g_autofree char *batch = size_asked(import->batch), *length = size_asked(import->length);
    bool may_lack = import->sizes_of_models;
    return set(family, "batch", batch, may_lack, settings, error) &&
           set(family, "length", length, may_lack, settings, error) &&
           set(family, "dropout", import->dropout, false, settings, error) &&
           set(family, "optimizer", import->optimizer, false, settings, error);
}

/* The graph with dimensions of other sizes, as its file is read with them. */
static MtfGraph *resized(const MtfGraph *graph, const MtfSizeOverrides *sizes, GError **error) {
    cJSON *json = mtf_graph_to_json(graph);
    g_autofree char *text = mtf_json_print(json);
    cJSON_Delete(json);
    g_autoptr(MtfJsonDocument) document =
        mtf_json_document_parse(graph->name, text, strlen(text), error);
    if (document == NULL)
        return NULL;
    MtfJson root = mtf_json_root(document);
    return mtf_graph_from_json(&root, sizes, error);
}

/* What the model is, the sizes that nobody asked for, and what its family trains it by where nobody asked for that. */
static void say_what(const MtfImport *import, const MtfModelFamily *family,
                     const MtfModelPreset *preset, const MtfGraph *graph, GPtrArray *said) {
    g_ptr_array_add(said, g_strdup_printf("%s of the family %s: %s", graph->name, family->name,
                                          preset->summary));
    const struct {
        const char *name;
        int64_t asked;
    } sizes[] = { { "batch", import->batch }, { "length", import->length } };
    for (size_t i = 0; i < G_N_ELEMENTS(sizes); i++) {
        int dim = mtf_graph_find_dimension(graph, sizes[i].name);
        bool moved = import->sizes != NULL && import->sizes->names != NULL &&
                     g_strv_contains((const char *const *)import->sizes->names, sizes[i].name);
        if (dim >= 0 && sizes[i].asked == 0 && !moved)
            g_ptr_array_add(said,
                            g_strdup_printf("%s %" PRId64 " (no --%s given)", sizes[i].name,
                                            mtf_graph_dimension(graph, dim)->size, sizes[i].name));
    }
    if (import->optimizer == NULL && graph->optimizer.kind != NULL)
        g_ptr_array_add(said,
                        g_strdup_printf("optimizer %s (the family's own; another: meshtf-plan "
                                        "model %s --preset %s --optimizer NAME)",
                                        graph->optimizer.kind, family->name, preset->name));
}

MtfGraph *mtf_preset_import(const MtfImport *import, GPtrArray *said, GError **error) {
    const MtfModelFamily *family = NULL;
    const MtfModelPreset *preset = mtf_model_find(import->path, &family);
    g_return_val_if_fail(preset != NULL, NULL);
    if (import->loss != NULL) {
        mtf_input_error(error, "%s: the model has a loss; --loss is for ONNX files", import->path);
        return NULL;
    }
    MtfModelSettings settings = mtf_model_settings(preset);
    if (!set_all(import, family, &settings, error))
        return NULL;
    g_autoptr(MtfGraph) graph = mtf_model_build(family, preset, &settings, error);
    if (graph != NULL && said != NULL)
        say_what(import, family, preset, graph, said);
    bool other_sizes =
        import->sizes != NULL && import->sizes->names != NULL && import->sizes->names[0] != NULL;
    if (graph == NULL || !other_sizes)
        return g_steal_pointer(&graph);
    return resized(graph, import->sizes, error);
}
