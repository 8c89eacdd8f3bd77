// SPDX-License-Identifier: GPL-3.0-or-later
/* meshtf-plan graphs: the graphs of the library, which commands take by name. */
#include "analyzer/commands/commands.h"
#include "layouts/base/command_line.h"
#include "layouts/base/json_writer.h"
#include "layouts/base/library.h"
#include "layouts/graph_file/graph_json.h"

#include <inttypes.h>
#include <stdio.h>

static MtfGraph *load_named(const char *name, GError **error) {
    g_autofree char *path = mtf_library_find("graphs", name, error);
    return path != NULL ? mtf_graph_load(path, NULL, error) : NULL;
}

static cJSON *row_to_json(const char *name, const MtfGraph *graph) {
    cJSON *row = cJSON_CreateObject();
    cJSON_AddStringToObject(row, "name", name);
    mtf_json_add_integer(row, "parameters", mtf_graph_parameters(graph));
    mtf_json_add_integer(row, "operations", graph->operations->len);
    return row;
}

/* To the list, or where there is none to standard output. */
static bool add_row(const char *name, cJSON *list, GError **error) {
    g_autoptr(MtfGraph) graph = load_named(name, error);
    if (graph == NULL)
        return false;
    if (list != NULL)
        cJSON_AddItemToArray(list, row_to_json(name, graph));
    else
        printf("%-20s %12" PRId64 " %12u\n", name, mtf_graph_parameters(graph),
               graph->operations->len);
    return true;
}

static bool print_list(bool json, GError **error) {
    g_auto(GStrv) names = mtf_library_list("graphs", error);
    cJSON *list = cJSON_CreateArray();
    bool done = names != NULL;
    if (done && !json)
        printf("%-20s %12s %12s\n", "graph", "parameters", "operations");
    for (char **name = names; done && *name != NULL; name++)
        done = add_row(*name, json ? list : NULL, error);
    g_autofree char *text = mtf_json_print(list);
    if (done && json)
        fputs(text, stdout);
    cJSON_Delete(list);
    return done;
}

int mtf_command_graphs(int argc, char **argv) {
    gboolean json = FALSE;
    const GOptionEntry entries[] = {
        { "json", 0, 0, G_OPTION_ARG_NONE, &json, "Print JSON", NULL },
        G_OPTION_ENTRY_NULL,
    };
    GError *error = NULL;
    if (mtf_command_line_parse(&argc, &argv, entries, "",
                               "Lists the graphs of the library; search, estimate and check take "
                               "their names.",
                               0, 0, &error) &&
        print_list(json, &error))
        return 0;
    return mtf_command_line_fail("meshtf-plan graphs", error);
}
