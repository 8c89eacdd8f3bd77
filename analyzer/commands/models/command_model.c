// SPDX-License-Identifier: GPL-3.0-or-later
/* meshtf-plan model: writes the graph of a family of models. The options are the parameters of the
 * families' common table. */
#include "analyzer/commands/commands.h"
#include "analyzer/models/model_family.h"
#include "analyzer/rewriting/adapters.h"
#include "layouts/base/command_line.h"
#include "layouts/base/error.h"
#include "layouts/base/json_writer.h"
#include "layouts/graph_file/graph_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MAX_PARAMETERS 64

/* The command line. `values` are what the parameters' options were given, NULL = not given. */
typedef struct {
    char *preset;
    char *output;
    gboolean json;
    char *lora, *targets, *freeze;
    char *values[MAX_PARAMETERS];
} Options;

static const char *placeholder(const MtfModelParameter *parameter) {
    static const char *const texts[] = {
        [MTF_SETTING_INTEGER] = "N",
        [MTF_SETTING_NUMBER] = "X",
        [MTF_SETTING_WORD] = "NAME",
        [MTF_SETTING_TEXT] = "SIZES",
    };
    return texts[parameter->type];
}

/* Fine-tuning of a part (analyzer/rewriting/adapters.h). */
static GOptionEntry *fill_adapter_entries(GOptionEntry *entries, Options *options) {
    const GOptionEntry adapters[] = {
        { "lora", 0, 0, G_OPTION_ARG_STRING, &options->lora,
          "Train low-rank adapters beside frozen weights", "RANK[:ALPHA]" },
        { "lora-targets", 0, 0, G_OPTION_ARG_STRING, &options->targets,
          "Which weights get one, by their names here or in files (wq,wv)", "NAMES" },
        { "freeze", 0, 0, G_OPTION_ARG_STRING, &options->freeze,
          "Leave the variables with names like this as they are", "PATTERN" },
    };
    for (gsize i = 0; i < G_N_ELEMENTS(adapters); i++)
        *entries++ = adapters[i];
    return entries;
}

/* Fills at most MAX_PARAMETERS + 7 entries; what the family does not take is understood, too, but not
 * listed. */
static void fill_entries(GOptionEntry *entries, Options *options, const MtfModelFamily *family) {
    *entries++ = (GOptionEntry){
        "preset", 0, 0, G_OPTION_ARG_STRING, &options->preset, "Start from these settings", "NAME"
    };
    *entries++ = (GOptionEntry){ "output",
                                 'o',
                                 0,
                                 G_OPTION_ARG_FILENAME,
                                 &options->output,
                                 "Where the graph goes (standard output: -)",
                                 "GRAPH" };
    *entries++ = (GOptionEntry){
        "json", 0, 0, G_OPTION_ARG_NONE, &options->json, "Say what was written as JSON", NULL
    };
    entries = fill_adapter_entries(entries, options);
    const MtfModelParameter *parameters = mtf_model_parameters();
    for (int i = 0; parameters[i].name != NULL; i++) {
        bool listed = family == NULL || mtf_model_has_parameter(family, &parameters[i]);
        g_assert(i < MAX_PARAMETERS);
        *entries++ = (GOptionEntry){ parameters[i].name,
                                     0,
                                     listed ? 0 : G_OPTION_FLAG_HIDDEN,
                                     G_OPTION_ARG_STRING,
                                     &options->values[i],
                                     parameters[i].help,
                                     placeholder(&parameters[i]) };
    }
    *entries = (GOptionEntry)G_OPTION_ENTRY_NULL;
}

static void describe_family(GString *text, const MtfModelFamily *family) {
    g_string_append_printf(text, "\n\n%s: %s\n", family->name, family->summary);
    for (const MtfModelPreset *preset = family->presets; preset->name != NULL; preset++)
        g_string_append_printf(text, "  %-11s %s\n", preset->name, preset->summary);
    g_auto(GStrv) names = g_strsplit(family->parameters, " ", -1);
    g_autofree char *options = g_strjoinv(" --", names);
    g_string_append_printf(text, "  takes --%s", options);
}

/* The families, or one, with their presets and parameters; free with g_free. */
static char *summary(const MtfModelFamily *family) {
    GString *text =
        g_string_new("Writes the forward graph of a family of models. The first preset of a family "
                     "is its default; options\nchange single settings. The options of the "
                     "optimizer belong to every family.");
    for (int i = 0; mtf_model_families()[i] != NULL; i++)
        if (family == NULL || family == mtf_model_families()[i])
            describe_family(text, mtf_model_families()[i]);
    return g_string_free(text, FALSE);
}

/* The family that the arguments name, wherever it stands among options; NULL where none does. */
static const MtfModelFamily *named_family(int argc, char **argv) {
    for (int i = 1; i < argc; i++)
        for (int f = 0; mtf_model_families()[f] != NULL; f++)
            if (strcmp(argv[i], mtf_model_families()[f]->name) == 0)
                return mtf_model_families()[f];
    return NULL;
}

static bool apply_options(const MtfModelFamily *family, const Options *options,
                          MtfModelSettings *settings, GError **error) {
    const MtfModelParameter *parameters = mtf_model_parameters();
    for (int i = 0; parameters[i].name != NULL; i++)
        if (options->values[i] != NULL &&
            !mtf_model_set(family, &parameters[i], options->values[i], settings, error))
            return false;
    return true;
}

/* One line, or one object, on standard output. */
static void say(const MtfGraph *graph, bool json) {
    int64_t statistics = mtf_graph_statistics(graph);
    int64_t parameters = mtf_graph_parameters(graph) - statistics;
    if (!json) {
        printf("%s: %" PRId64 " parameters, ", graph->name, parameters);
        if (statistics > 0)
            printf("%" PRId64 " not trained, ", statistics);
        printf("%u operations\n", graph->operations->len);
        return;
    }
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "name", graph->name);
    mtf_json_add_integer(object, "parameters", parameters);
    mtf_json_add_integer(object, "statistics", statistics);
    mtf_json_add_integer(object, "operations", graph->operations->len);
    mtf_json_say(object);
}

static bool write_model(const char *name, const Options *options, GError **error) {
    const MtfModelFamily *family = mtf_model_family_find(name, error);
    if (family == NULL)
        return false;
    const MtfModelPreset *preset = mtf_model_preset_find(family, options->preset, error);
    if (preset == NULL)
        return false;
    if (options->output == NULL && !options->json)
        return mtf_input_error(error, "where should the graph go? give -o GRAPH (or -o -)");
    MtfModelSettings settings = mtf_model_settings(preset);
    if (!apply_options(family, options, &settings, error))
        return false;
    g_autoptr(MtfGraph) graph = mtf_model_build(family, preset, &settings, error);
    const MtfAdapterOptions adapters = { options->lora, options->targets, options->freeze };
    if (graph == NULL || !mtf_adapters_apply(graph, &adapters, NULL, error) ||
        (options->output != NULL && !mtf_graph_save(graph, options->output, error)))
        return false;
    if (options->output == NULL || strcmp(options->output, "-") != 0)
        say(graph, options->json);
    return true;
}

int mtf_command_model(int argc, char **argv) {
    Options options = { 0 };
    GOptionEntry entries[MAX_PARAMETERS + 7];
    GError *error = NULL;
    const MtfModelFamily *family = named_family(argc, argv);
    g_autofree char *text = summary(family);
    fill_entries(entries, &options, family);
    bool good =
        mtf_command_line_parse(&argc, &argv, entries, "FAMILY -o GRAPH", text, 1, 1, &error) &&
        write_model(argv[1], &options, &error);
    mtf_command_line_clear(entries);
    return good ? 0 : mtf_command_line_fail("meshtf-plan model", error);
}
