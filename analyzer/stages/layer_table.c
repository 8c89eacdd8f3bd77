// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/stages/layer_table.h"

#include "layouts/base/error.h"

#include <math.h>
#include <string.h>

enum { COLUMN_NAME, COLUMN_SECONDS, COLUMN_OUTPUT, COLUMN_PARAMETERS, COLUMN_STASH, COLUMN_FIXED };

static const char *const column_names[] = { "name",       "seconds", "output",
                                            "parameters", "stash",   "fixed" };
#define COLUMNS ((int)G_N_ELEMENTS(column_names))

typedef struct {
    const char *name; /* of the file */
    int line;
    int place[G_N_ELEMENTS(column_names)]; /* of a column in a line; -1 where it is not given */
    guint width;
    MtfStageGraph *graph;
} Reading;

/* The words of a line without its comment. */
static GPtrArray *split_words(const char *line) {
    GPtrArray *words = g_ptr_array_new_with_free_func(g_free);
    g_autofree char *text = g_strndup(line, strcspn(line, "#"));
    g_auto(GStrv) parts = g_strsplit_set(text, " \t\r", -1);
    for (char **part = parts; *part != NULL; part++)
        if (**part != '\0')
            g_ptr_array_add(words, g_strdup(*part));
    return words;
}

static bool read_header(Reading *reading, const GPtrArray *words, GError **error) {
    for (int c = 0; c < COLUMNS; c++)
        reading->place[c] = -1;
    for (guint i = 0; i < words->len; i++) {
        const char *word = g_ptr_array_index(words, i);
        int c = 0;
        while (c < COLUMNS && strcmp(word, column_names[c]) != 0)
            c++;
        if (c == COLUMNS || reading->place[c] >= 0)
            return mtf_input_error(error,
                                   "%s: line %d: \"%.60s\" is not one of the columns name, "
                                   "seconds, output, parameters, stash and fixed, each once",
                                   reading->name, reading->line, word);
        reading->place[c] = (int)i;
    }
    reading->width = words->len;
    if (reading->place[COLUMN_NAME] < 0 || reading->place[COLUMN_SECONDS] < 0)
        return mtf_input_error(error, "%s: line %d: the columns name and seconds are needed",
                               reading->name, reading->line);
    return true;
}

static bool read_number(const Reading *reading, const GPtrArray *words, int column, double *number,
                        GError **error) {
    *number = 0;
    if (reading->place[column] < 0)
        return true;
    const char *word = g_ptr_array_index(words, reading->place[column]);
    char *end;
    *number = g_ascii_strtod(word, &end);
    return (end != word && *end == '\0' && isfinite(*number) && *number >= 0) ||
           mtf_input_error(error, "%s: line %d: %s \"%.60s\" is not a number of at least 0",
                           reading->name, reading->line, column_names[column], word);
}

static bool read_layer(Reading *reading, const GPtrArray *words, GError **error) {
    MtfStageWay way = { .degree = 1 };
    double output;
    if (words->len != reading->width)
        return mtf_input_error(error, "%s: line %d: %u columns where the first line names %u",
                               reading->name, reading->line, words->len, reading->width);
    if (!read_number(reading, words, COLUMN_SECONDS, &way.seconds, error) ||
        !read_number(reading, words, COLUMN_OUTPUT, &output, error) ||
        !read_number(reading, words, COLUMN_PARAMETERS, &way.parameter_bytes, error) ||
        !read_number(reading, words, COLUMN_STASH, &way.flight_bytes, error) ||
        !read_number(reading, words, COLUMN_FIXED, &way.fixed_bytes, error))
        return false;
    const char *name = g_ptr_array_index(words, reading->place[COLUMN_NAME]);
    int node = mtf_stage_graph_add_node(reading->graph, name);
    mtf_stage_graph_add_way(reading->graph, node, &way);
    mtf_stage_graph_node(reading->graph, node)->output_bytes = output;
    if (node > 0)
        mtf_stage_graph_add_edge(reading->graph, node - 1, node, 0);
    return true;
}

MtfStageGraph *mtf_layer_table_parse(const char *name, const char *text, GError **error) {
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    g_autoptr(MtfStageGraph) graph = mtf_stage_graph_new(MTF_STAGE_TABLE);
    Reading reading = { .name = name, .graph = graph };
    for (reading.line = 1; lines[reading.line - 1] != NULL; reading.line++) {
        g_autoptr(GPtrArray) words = split_words(lines[reading.line - 1]);
        if (words->len == 0)
            continue;
        if (!(reading.width == 0 ? read_header : read_layer)(&reading, words, error))
            return NULL;
    }
    if (mtf_stage_graph_size(graph) == 0) {
        mtf_input_error(error, "%s: there is no layer in it", name);
        return NULL;
    }
    return g_steal_pointer(&graph);
}

static const MtfStageWay *way_of(const MtfStageGraph *graph, int layer) {
    return &g_array_index(mtf_stage_graph_node(graph, layer)->ways, MtfStageWay, 0);
}

/* Prices the layers of a sum on n devices. */
static MtfChainPrice price_on(const MtfStageWay *sum, double bytes, const MtfStageMachine *machine,
                              double overhead, int64_t devices) {
    double n = (double)devices, b = machine->bandwidth, m = (double)machine->batch;
    double seconds = (sum->seconds + 2 * bytes / b) / n +
                     4 * (n - 1) * sum->parameter_bytes / (n * b * m) + overhead * log2(n);
    return (MtfChainPrice){ seconds, sum->fixed_bytes, sum->flight_bytes / n };
}

static double output_of(const MtfStageGraph *graph, int layer) {
    bool inside = layer >= 0 && layer < mtf_stage_graph_size(graph) - 1;
    return inside ? mtf_stage_graph_node(graph, layer)->output_bytes : 0;
}

void mtf_layer_chain_init(MtfChain *chain, const MtfStageGraph *graph,
                          const MtfStageMachine *machine, double overhead) {
    GArray *sizes = g_array_new(FALSE, FALSE, sizeof(int64_t));
    for (int64_t size = 1; size <= machine->devices; size *= 2)
        g_array_append_val(sizes, size);
    *chain = (MtfChain){ .layers = mtf_stage_graph_size(graph), .sizes = (int)sizes->len };
    chain->size = (const int64_t *)g_array_free(sizes, FALSE);
    chain->devices = machine->devices;
    chain->batch = machine->batch;
    chain->memory = machine->memory;
    chain->price = g_new0(MtfChainPrice, mtf_chain_prices(chain));
    for (int first = 0; first < chain->layers; first++) {
        MtfStageWay sum = { .degree = 1 };
        for (int end = first + 1; end <= chain->layers; end++) {
            const MtfStageWay *way = way_of(graph, end - 1);
            sum.seconds += way->seconds;
            sum.parameter_bytes += way->parameter_bytes;
            sum.flight_bytes += way->flight_bytes;
            sum.fixed_bytes += way->fixed_bytes;
            double bytes = output_of(graph, first - 1) + output_of(graph, end - 1);
            for (int z = 0; z < chain->sizes; z++)
                chain->price[mtf_chain_index(chain, first, end, z)] =
                    price_on(&sum, bytes, machine, overhead, chain->size[z]);
        }
    }
}

void mtf_layer_chain_clear(MtfChain *chain) {
    g_free((gpointer)chain->size);
    g_free(chain->price);
}
