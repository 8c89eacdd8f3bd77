// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/import/model_import.h"

#include "analyzer/import/find_layers.h"
#include "analyzer/import/preset_import.h"
#include "analyzer/import/weight_names.h"
#include "analyzer/models/architecture_config.h"
#include "analyzer/onnx/onnx_import.h"
#include "layouts/base/error.h"
#include "layouts/base/json_writer.h"
#include "layouts/graph/optimizer.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

char *mtf_import_file(const char *path) {
    if (!g_file_test(path, G_FILE_TEST_IS_DIR))
        return g_strdup(path);
    char *config = g_build_filename(path, "config.json", NULL);
    g_autofree char *onnx = g_build_filename(path, "model.onnx", NULL);
    if (g_file_test(config, G_FILE_TEST_EXISTS) || !g_file_test(onnx, G_FILE_TEST_EXISTS))
        return config;
    g_free(config);
    return g_steal_pointer(&onnx);
}

/* "llama-7b" of llama-7b/config.json, "tiny" of tiny.json; free with g_free. */
static char *model_name(const char *file) {
    g_autofree char *base = g_path_get_basename(file);
    if (strcmp(base, "config.json") != 0) {
        char *end = g_str_has_suffix(base, ".json") ? strrchr(base, '.') : NULL;
        return end != NULL && end > base ? g_strndup(base, (gsize)(end - base)) : g_strdup(base);
    }
    g_autofree char *whole = g_canonicalize_filename(file, NULL);
    g_autofree char *folder = g_path_get_dirname(whole);
    return g_path_get_basename(folder);
}

static void say(GPtrArray *said, const char *format, ...) G_GNUC_PRINTF(2, 3);

static void say(GPtrArray *said, const char *format, ...) {
    if (said == NULL)
        return;
    va_list arguments;
    va_start(arguments, format);
    g_ptr_array_add(said, g_strdup_vprintf(format, arguments));
    va_end(arguments);
}

static bool reads_picture(const MtfArchitecture *n) {
    return n->kind == MTF_ARCHITECTURE_IMAGE || n->kind == MTF_ARCHITECTURE_CONVOLUTIONS ||
           n->kind == MTF_ARCHITECTURE_WINDOWS;
}

static void say_sizes(const MtfImport *import, const MtfArchitecture *n, GPtrArray *said) {
    bool picture = reads_picture(n);
    if (import->batch == 0)
        say(said, "batch %" PRId64 " (no --batch given)", n->batch);
    if (picture && n->kind != MTF_ARCHITECTURE_IMAGE) {
        if (import->length > 0)
            say(said, "--length %" PRId64 " says nothing of pictures", import->length);
        return;
    }
    if (import->length > 0 && picture)
        say(said, "--length %" PRId64 " says nothing: pictures have %" PRId64 " places",
            import->length, n->length);
    if (import->length == 0)
        say(said, "length %" PRId64 " (no --length given; the model was made for %" PRId64 ")",
            n->length, n->context);
    if (n->kind == MTF_ARCHITECTURE_SOUND)
        say(said, "%" PRId64 " places are made of %" PRId64 " samples of sound", n->length,
            mtf_sound_times(&n->sound, 0, n->length));
    if (import->length > n->context && !picture)
        say(said, "length %" PRId64 " is more than the %" PRId64 " that the model was made for",
            n->length, n->context);
}

static void set_lengths(const MtfImport *import, MtfArchitecture *n, GPtrArray *said) {
    n->batch = import->batch > 0 ? import->batch : MTF_IMPORT_BATCH;
    bool picture = reads_picture(n);
    int64_t standard = picture ? n->context : MIN(n->context, MTF_IMPORT_LENGTH);
    n->length = import->length > 0 && !picture ? import->length : standard;
    if (n->kind != MTF_ARCHITECTURE_SPEECH)
        n->source_length = n->length;
    say_sizes(import, n, said);
}

/* What is dropped while training: nothing, one rate everywhere, or what the config says. */
static bool set_dropout(const MtfImport *import, MtfArchitecture *n, GPtrArray *said,
                        GError **error) {
    MtfDropoutRates *d = &n->dropout;
    const char *asked = import->dropout;
    bool as_config = g_strcmp0(asked, "config") == 0;
    if ((as_config || asked == NULL) && (d->shares > 0 || d->branches > 0 || d->embeddings > 0))
        say(said, "dropout %g of attention's shares, %g of branches, %g of embeddings %s",
            d->shares, d->branches, d->embeddings,
            as_config ? "while training" : "is left out (import --dropout config trains with it)");
    if (as_config)
        return true;
    char *end;
    double rate = g_ascii_strtod(asked != NULL ? asked : "0", &end);
    if (*end != '\0' || end == asked || !(rate >= 0 && rate < 1))
        return mtf_input_error(
            error, "--dropout \"%s\" must be a rate from 0 to below 1, or config", asked);
    *d = (MtfDropoutRates){ rate, rate, rate };
    return true;
}

static bool set_optimizer(const MtfImport *import, MtfGraph *graph, GPtrArray *said,
                          GError **error) {
    const char *kind = import->optimizer != NULL ? import->optimizer : "adamw";
    if (import->optimizer == NULL)
        say(said, "optimizer adamw at a rate of 1e-4 (no --optimizer given)");
    if (graph->loss < 0 || strcmp(kind, "none") == 0)
        return true;
    g_autofree char *known = g_strjoinv(", ", (char **)mtf_optimizer_kinds());
    if (!g_strv_contains(mtf_optimizer_kinds(), kind))
        return mtf_input_error(error, "--optimizer \"%s\" is not one of %s, none", kind, known);
    graph->optimizer = mtf_optimizer_standard(kind, 1e-4);
    return true;
}

static void say_left_out(GPtrArray *said, const GPtrArray *left_out) {
    g_autoptr(GString) keys = g_string_new(NULL);
    for (guint i = 0; i < left_out->len; i++)
        g_string_append_printf(keys, "%s%s", i > 0 ? ", " : "", (char *)left_out->pdata[i]);
    if (left_out->len > 0)
        say(said, "of no effect on the graph: %s", keys->str);
}

/* Ties the head where the weights beside the config hold none. */
static void tie_by_files(const char *file, MtfArchitecture *n) {
    g_autofree char *head = g_strdup_printf("%s.weight", n->head);
    n->tied = mtf_weights_lack(file, head);
}

/* The matrices of all experts stand in one tensor, or, as transformers 5 saves some types, each in its own. */
static void part_experts_by_files(const char *file, MtfStack *stack) {
    bool together = stack->experts_bare || stack->experts_in_first;
    if (together && !stack->expert_bias && mtf_weights_have(file, ".experts.0.gate_proj.weight"))
        mtf_stack_part_experts(stack);
}

MtfGraph *mtf_import_model(const MtfImport *import, const MtfJson *root, GPtrArray *said,
                           GError **error) {
    MtfArchitecture network;
    g_autoptr(GPtrArray) left_out = g_ptr_array_new_with_free_func(g_free);
    if (!mtf_architecture_config_read(root, &network, left_out, error))
        return NULL;
    g_autofree char *file = mtf_import_file(import->path);
    g_autofree char *name = model_name(file);
    g_strlcpy(network.name, name, sizeof network.name);
    if (network.tied_by_files)
        tie_by_files(file, &network);
    part_experts_by_files(file, &network.decoder);
    set_lengths(import, &network, said);
    say_left_out(said, left_out);
    g_autoptr(MtfGraph) graph =
        set_dropout(import, &network, said, error) ? mtf_architecture_build(&network, error) : NULL;
    if (graph == NULL || !set_optimizer(import, graph, said, error))
        return NULL;
    return g_steal_pointer(&graph);
}

/* Reads "batch=512". */
static bool read_size(const char *text, char **name, int64_t *size, GError **error) {
    const char *equals = strchr(text, '=');
    char *end = NULL;
    errno = 0;
    gint64 value = equals != NULL ? g_ascii_strtoll(equals + 1, &end, 10) : 0;
    if (equals == NULL || equals == text || end == equals + 1 || *end != '\0' || errno != 0 ||
        value < 1)
        return mtf_input_error(
            error, "--dim \"%s\" must be NAME=SIZE with a size of at least 1, as in batch=512",
            text);
    *name = g_strndup(text, (gsize)(equals - text));
    *size = value;
    return true;
}

bool mtf_size_overrides_read(const char *const *texts, MtfSizeOverrides *overrides,
                             GError **error) {
    gsize n = texts != NULL ? g_strv_length((char **)(gpointer)texts) : 0;
    overrides->names = g_new0(char *, n + 1);
    overrides->sizes = g_new0(int64_t, n + 1);
    for (gsize i = 0; i < n; i++)
        if (!read_size(texts[i], &overrides->names[i], &overrides->sizes[i], error))
            return false;
    return true;
}

/* Options that only models have. */
static bool check_graph_options(const MtfImport *import, GError **error) {
    const char *option = import->sizes_of_models     ? NULL
                         : import->batch > 0         ? "batch"
                         : import->length > 0        ? "length"
                         : import->loss != NULL      ? "loss"
                         : import->dropout != NULL   ? "dropout"
                         : import->optimizer != NULL ? "optimizer"
                                                     : NULL;
    return option == NULL ||
           mtf_input_error(
               error,
               "%s is a graph, whose sizes and optimizer are its own: --%s is for a "
               "model's config.json or ONNX file (--dim batch=64 gives a dimension another size)",
               import->path, option);
}

static MtfGraph *import_onnx(const MtfImport *import, const char *file, GPtrArray *said,
                             GError **error) {
    g_autoptr(MtfOnnxModel) model = mtf_onnx_model_load(file, error);
    MtfOnnxImport onnx = { .batch = import->batch,
                           .length = import->length,
                           .standard_batch = MTF_IMPORT_BATCH,
                           .standard_length = MTF_IMPORT_ONNX_LENGTH,
                           .sizes = import->sizes,
                           .loss = import->loss };
    g_autoptr(MtfGraph) graph = model == NULL ? NULL : mtf_onnx_import(model, &onnx, said, error);
    if (graph == NULL || (graph->loss >= 0 && !set_optimizer(import, graph, said, error)))
        return NULL;
    mtf_graph_find_layers(graph);
    return g_steal_pointer(&graph);
}

/* The config as it was written, or its text part, which is a model of its own. */
static char *config_of(const MtfJson *root, const char *text) {
    MtfJson part;
    const char *left;
    const MtfJson *of = mtf_architecture_config_part(root, &part, &left);
    bool is_text = of != root && strcmp(mtf_json_key(of), "text_config") == 0;
    return is_text ? mtf_json_print_levels(of->node, 1) : g_strdup(text);
}

MtfGraph *mtf_import_load(const MtfImport *import, GPtrArray *said, GError **error) {
    if (import->batch < 0 || import->length < 0) {
        mtf_input_error(error, "--batch and --length must be at least 1");
        return NULL;
    }
    if (mtf_is_preset(import->path))
        return mtf_preset_import(import, said, error);
    g_autofree char *file = mtf_import_file(import->path);
    if (mtf_onnx_is_path(file) && import->dropout != NULL) {
        mtf_input_error(error,
                        "%s: an ONNX file says itself what is dropped; --dropout is for a "
                        "model's config.json",
                        file);
        return NULL;
    }
    if (mtf_onnx_is_path(file))
        return import_onnx(import, file, said, error);
    g_autofree char *text = NULL;
    g_autoptr(MtfJsonDocument) document = mtf_json_document_load_config(file, &text, error);
    if (document == NULL)
        return NULL;
    MtfJson root = mtf_json_root(document);
    MtfJson version;
    if (!mtf_architecture_config_is(&root) && cJSON_IsObject(root.node) &&
        !mtf_json_find(&root, "meshtf_graph", &version)) {
        mtf_json_fail(&root, error,
                      "neither a graph (key \"meshtf_graph\") nor a published model's "
                      "config (key \"model_type\")");
        return NULL;
    }
    if (!mtf_architecture_config_is(&root))
        return check_graph_options(import, error) ? mtf_graph_from_json(&root, import->sizes, error)
                                                  : NULL;
    if (import->sizes != NULL && import->sizes->names != NULL && import->sizes->names[0] != NULL) {
        mtf_input_error(
            error, "%s is a model's config: give --batch and --length in place of --dim", file);
        return NULL;
    }
    if (import->loss != NULL) {
        mtf_input_error(error, "%s: its model has a loss; --loss is for ONNX files", file);
        return NULL;
    }
    MtfGraph *graph = mtf_import_model(import, &root, said, error);
    if (graph != NULL)
        graph->config = config_of(&root, text);
    return graph;
}
