// SPDX-License-Identifier: GPL-3.0-or-later
/* meshtf-plan import: the graph of a model as people publish it. */
#include "analyzer/commands/commands.h"
#include "analyzer/import/model_import.h"
#include "analyzer/rewriting/adapters.h"
#include "layouts/base/command_line.h"
#include "layouts/base/error.h"
#include "layouts/base/json_writer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    char *output, *optimizer, *loss, *dropout;
    char **dims;
    int batch, length;
    gboolean json;
    char *lora, *targets, *freeze;
} Options;

static void print_json(const MtfGraph *graph, const GPtrArray *said) {
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "name", graph->name);
    mtf_json_add_integer(object, "parameters", mtf_graph_parameters(graph));
    mtf_json_add_integer(object, "operations", graph->operations->len);
    cJSON *list = cJSON_AddArrayToObject(object, "said");
    for (guint i = 0; i < said->len; i++)
        cJSON_AddItemToArray(list, cJSON_CreateString(said->pdata[i]));
    mtf_json_say(object);
}

static void print(const MtfGraph *graph, const GPtrArray *said, bool json) {
    if (json) {
        print_json(graph, said);
        return;
    }
    printf("%s: %" PRId64 " parameters, %u operations\n", graph->name, mtf_graph_parameters(graph),
           graph->operations->len);
    for (guint i = 0; i < said->len; i++)
        printf("  %s\n", (const char *)said->pdata[i]);
}

static bool import_model(const char *path, const Options *options, GError **error) {
    if (options->output == NULL && !options->json)
        return mtf_input_error(error, "where should the graph go? give -o GRAPH (or -o -)");
    g_autoptr(GPtrArray) said = g_ptr_array_new_with_free_func(g_free);
    MtfSizeOverrides sizes = { 0 };
    MtfImport import = { .path = path,
                         .batch = options->batch,
                         .length = options->length,
                         .optimizer = options->optimizer,
                         .sizes = &sizes,
                         .loss = options->loss,
                         .dropout = options->dropout };
    g_autoptr(MtfGraph) graph =
        mtf_size_overrides_read((const char *const *)options->dims, &sizes, error)
            ? mtf_import_load(&import, said, error)
            : NULL;
    g_strfreev(sizes.names);
    g_free(sizes.sizes);
    const MtfAdapterOptions adapters = { options->lora, options->targets, options->freeze };
    if (graph == NULL || !mtf_adapters_apply(graph, &adapters, said, error) ||
        (options->output != NULL && !mtf_graph_save(graph, options->output, error)))
        return false;
    if (options->output == NULL || strcmp(options->output, "-") != 0)
        print(graph, said, options->json);
    return true;
}

int mtf_command_import(int argc, char **argv) {
    Options options = { .batch = MTF_NO_COUNT, .length = MTF_NO_COUNT };
    const GOptionEntry entries[] = {
        { "output", 'o', 0, G_OPTION_ARG_FILENAME, &options.output,
          "Where the graph goes (standard output: -)", "GRAPH" },
        { "batch", 0, 0, G_OPTION_ARG_INT, &options.batch, "Examples in a batch (32)", "N" },
        { "length", 0, 0, G_OPTION_ARG_INT, &options.length,
          "Positions in an example (what the model was made for, at most 2048)", "N" },
        { "optimizer", 0, 0, G_OPTION_ARG_STRING, &options.optimizer,
          "Update rule (adamw), or none", "NAME" },
        { "dim", 0, 0, G_OPTION_ARG_STRING_ARRAY, &options.dims, "A size that an ONNX file names",
          "width=224" },
        { "loss", 0, 0, G_OPTION_ARG_STRING, &options.loss,
          "Give an ONNX file a loss, or take its own, so that it can be trained",
          "cross-entropy:LABELS|output:NAME" },
        { "dropout", 0, 0, G_OPTION_ARG_STRING, &options.dropout,
          "What is dropped while training: one rate everywhere, or as the model's config.json says "
          "(nothing)",
          "RATE|config" },
        { "lora", 0, 0, G_OPTION_ARG_STRING, &options.lora,
          "Train low-rank adapters beside frozen weights", "RANK[:ALPHA]" },
        { "lora-targets", 0, 0, G_OPTION_ARG_STRING, &options.targets,
          "Which weights get one, by their names here or in files (wq,wv)", "NAMES" },
        { "freeze", 0, 0, G_OPTION_ARG_STRING, &options.freeze,
          "Leave the variables with names like this as they are", "PATTERN" },
        { "json", 0, 0, G_OPTION_ARG_NONE, &options.json, "Say what was read as JSON", NULL },
        G_OPTION_ENTRY_NULL,
    };
    GError *error = NULL;
    bool good = mtf_command_line_parse(&argc, &argv, entries, "DIR|CONFIG.JSON|MODEL.ONNX -o GRAPH",
                                       "Writes the graph of a published model: a folder with a "
                                       "config.json of Hugging Face transformers, or that file, "
                                       "or an ONNX file.",
                                       1, 1, &error) &&
                mtf_option_count("--batch", &options.batch, &error) &&
                mtf_option_count("--length", &options.length, &error) &&
                import_model(argv[1], &options, &error);
    mtf_command_line_clear(entries);
    return good ? 0 : mtf_command_line_fail("meshtf-plan import", error);
}
