// SPDX-License-Identifier: GPL-3.0-or-later
/* meshtf-plan collective KIND: prices one collective on a network given by options: every algorithm
 * that applies, the cheapest, and the lower bound. */
#include "analyzer/commands/commands.h"
#include "cost/collectives/collective.h"
#include "layouts/base/command_line.h"
#include "layouts/base/error.h"
#include "layouts/base/json_writer.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* The options as they were typed. */
typedef struct {
    char *torus, *wrap, *machine, *axes, *from, *to, *faces;
    char *bytes, *latency, *bandwidth, *overhead, *algorithm;
    gint64 switch_ranks, devices, stride, shift, segments;
    gboolean json;
} Options;

typedef struct {
    MtfNetwork network;
    MtfCollective collective;
} Query;

typedef struct {
    const char *name;
    double scale;
} Unit;

/* A number of at least 0 with an optional unit of the list. */
static bool read_quantity(const char *option, const char *text, const Unit *units, double *value,
                          GError **error) {
    char *end;
    double number = g_ascii_strtod(text, &end);
    for (int i = 0; units[i].name != NULL && end != text; i++) {
        if (strcmp(end, units[i].name) != 0 || !isfinite(number) || number < 0)
            continue;
        *value = number * units[i].scale;
        return true;
    }
    return mtf_input_error(error,
                           "--%s \"%s\" is not a number of at least 0 with a unit such as %s",
                           option, text, units[1].name);
}

static bool read_seconds(const char *option, const char *text, double *value, GError **error) {
    static const Unit units[] = { { "", 1 },      { "us", 1e-6 }, { "ns", 1e-9 },
                                  { "ms", 1e-3 }, { "s", 1 },     { NULL, 0 } };
    return read_quantity(option, text, units, value, error);
}

static bool read_bandwidth(const char *text, double *value, GError **error) {
    static const Unit units[] = { { "", 1 },       { "GB/s", 1e9 },     { "MB/s", 1e6 },
                                  { "kB/s", 1e3 }, { "TB/s", 1e12 },    { "GiB/s", 0x1p30 },
                                  { "B/s", 1 },    { "MiB/s", 0x1p20 }, { NULL, 0 } };
    double number = 0;
    if (!read_quantity("bandwidth", text, units, &number, error))
        return false;
    if (number <= 0)
        return mtf_input_error(error, "--bandwidth \"%s\" is not above 0", text);
    *value = number;
    return true;
}

static bool read_bytes(const char *text, double *value, GError **error) {
    int64_t bytes = 0;
    if (!mtf_bytes_parse(text, &bytes, error))
        return false;
    *value = (double)bytes;
    return true;
}

/* "8x4x2". */
static bool read_torus(const char *text, MtfNetwork *network, GError **error) {
    g_auto(GStrv) sizes = g_strsplit(text, "x", -1);
    guint count = g_strv_length(sizes);
    if (count < 1 || count > MTF_NETWORK_AXES_MAX / 2)
        return mtf_input_error(error, "--torus \"%s\" has not between 1 and %d axes (like 8x4)",
                               text, MTF_NETWORK_AXES_MAX / 2);
    double ranks = 1;
    for (guint d = 0; d < count; d++) {
        MtfNetworkAxis *axis = &network->axis[d];
        guint64 size;
        if (!g_ascii_string_to_unsigned(sizes[d], 10, 1, 1 << 20, &size, NULL))
            return mtf_input_error(error, "--torus \"%s\" is not sizes from 1 to %d like 8x4", text,
                                   1 << 20);
        axis->size = (int64_t)size;
        axis->wrap = axis->size > 2;
        axis->link = (int)d;
        ranks *= (double)axis->size;
    }
    network->axes = (int)count;
    return ranks <= 1 << 30 || mtf_input_error(error, "--torus \"%s\" has too many ranks", text);
}

/* "10": a digit an axis; without it every axis of more than 2 places wraps. */
static bool read_wrap(const char *text, MtfNetwork *network, GError **error) {
    bool fits = strlen(text) == (size_t)network->axes && strspn(text, "01") == strlen(text);
    if (!fits)
        return mtf_input_error(error,
                               "--wrap \"%s\" is not %d digits 0 or 1, one for each axis of the "
                               "torus",
                               text, network->axes);
    for (int d = 0; d < network->axes; d++)
        network->axis[d].wrap = text[d] == '1' && network->axis[d].size > 1;
    return true;
}

/* "0,2": keeps those axes; ranks that differ in the others are other groups. */
static bool keep_axes(const char *text, MtfNetwork *network, GError **error) {
    g_auto(GStrv) words = g_strsplit(text, ",", -1);
    bool kept[MTF_NETWORK_AXES_MAX] = { false };
    for (char **word = words; *word != NULL; word++) {
        guint64 d;
        if (!g_ascii_string_to_unsigned(*word, 10, 0, (guint64)network->axes - 1, &d, NULL) ||
            kept[d])
            return mtf_input_error(error, "--axes \"%s\" is not a list of different axes of 0 … %d",
                                   text, network->axes - 1);
        kept[d] = true;
    }
    int count = 0;
    for (int d = 0; d < network->axes; d++)
        if (kept[d])
            network->axis[count++] = network->axis[d];
    network->axes = count;
    return count > 0 || mtf_input_error(error, "--axes names no axis");
}

static bool read_links(const Options *options, MtfNetwork *network, GError **error) {
    double latency = 0, bandwidth = 0;
    if (options->bandwidth == NULL)
        return mtf_input_error(error, "--bandwidth is missing (bytes a second of one link in one "
                                      "direction)");
    if (!read_bandwidth(options->bandwidth, &bandwidth, error) ||
        (options->latency != NULL && !read_seconds("latency", options->latency, &latency, error)))
        return false;
    for (int d = 0; d < network->axes; d++) {
        network->axis[d].bandwidth = bandwidth;
        network->axis[d].latency = latency;
    }
    return options->overhead == NULL ||
           read_seconds("overhead", options->overhead, &network->message_seconds, error);
}

/* A machine's links are its own. */
static bool read_machine(const Options *options, MtfNetwork *network, GError **error) {
    if (options->bandwidth != NULL || options->latency != NULL || options->overhead != NULL ||
        options->wrap != NULL)
        return mtf_input_error(error, "--machine has links of its own: --bandwidth, --latency, "
                                      "--overhead and --wrap go with --torus or --switch");
    if (options->devices < 1)
        return mtf_input_error(error,
                               "--devices N is missing (how many of the machine's, at least 1)");
    g_autoptr(MtfMachine) machine = mtf_machine_load(options->machine, error);
    return machine != NULL && mtf_machine_slice(machine, options->devices, network, error);
}

static bool read_switch(int64_t ranks, MtfNetwork *network, GError **error) {
    if (!mtf_option_between("--switch", ranks, 1, 1 << 20, error))
        return false;
    network->switched = true;
    network->axes = 1;
    network->axis[0].size = ranks;
    return true;
}

static bool read_network(const Options *options, MtfNetwork *network, GError **error) {
    int given =
        (options->torus != NULL) + (options->switch_ranks != 0) + (options->machine != NULL);
    if (given != 1)
        return mtf_input_error(error, "exactly one of --torus, --switch and --machine is needed");
    if (options->machine != NULL)
        return read_machine(options, network, error);
    if (options->devices != 0)
        return mtf_input_error(error, "--devices are those of --machine");
    if (options->torus != NULL ? !read_torus(options->torus, network, error)
                               : !read_switch(options->switch_ranks, network, error))
        return false;
    return (options->wrap == NULL || network->switched ||
            read_wrap(options->wrap, network, error)) &&
           read_links(options, network, error);
}

/* A rank: its number, or its coordinates "1,0,3". */
static bool read_rank(const char *option, const char *text, const MtfNetwork *network,
                      int64_t *rank, GError **error) {
    g_auto(GStrv) words = g_strsplit(text, ",", -1);
    guint count = g_strv_length(words);
    int64_t ranks = mtf_network_ranks(network), number = 0;
    bool fits = count == 1 || count == (guint)network->axes;
    for (guint i = 0; fits && i < count; i++) {
        guint64 value = 0;
        int64_t size = count == 1 ? ranks : network->axis[i].size;
        fits = g_ascii_string_to_unsigned(words[i], 10, 0, (guint64)size - 1, &value, NULL);
        number = number * size + (int64_t)value;
    }
    *rank = number;
    return fits ||
           mtf_input_error(error,
                           "--%s \"%s\" is neither a rank below %" PRId64 " nor coordinates of one",
                           option, text, ranks);
}

static bool read_faces(const char *text, const MtfNetwork *network, MtfCollective *collective,
                       GError **error) {
    g_auto(GStrv) words = g_strsplit(text, ",", -1);
    if (*words == NULL)
        return mtf_input_error(error, "--faces names no face");
    for (char **word = words; *word != NULL; word++) {
        if (collective->faces == (network->switched ? MTF_NETWORK_AXES_MAX : network->axes))
            return mtf_input_error(error, "--faces \"%s\" has more than one face an axis", text);
        if (!read_bytes(g_strstrip(*word), &collective->face[collective->faces++], error))
            return false;
    }
    return true;
}

static bool read_stride(const Options *options, Query *query, GError **error) {
    if (!mtf_option_between("--stride", options->stride, 1, INT64_MAX, error))
        return false;
    if (options->stride > 1 &&
        (query->network.axes != 1 || query->network.axis[0].size % options->stride != 0))
        return mtf_input_error(error,
                               "--stride %" PRId64 " needs one axis whose size it divides (choose "
                               "it by --axes)",
                               options->stride);
    query->collective.stride = options->stride;
    return true;
}

/* Equal ends stand for the farthest receiver further on, so nobody may name them. */
static bool read_receiver(const Options *options, const MtfNetwork *network,
                          MtfCollective *collective, GError **error) {
    collective->to = collective->from;
    if (options->to == NULL)
        return true;
    return read_rank("to", options->to, network, &collective->to, error) &&
           (collective->from != collective->to ||
            mtf_input_error(error, "--from and --to are both rank %" PRId64 ", which sends nothing",
                            collective->to));
}

static bool read_collective(const Options *options, Query *query, GError **error) {
    MtfCollective *collective = &query->collective;
    const MtfNetwork *network = &query->network;
    collective->shift = options->shift;
    if (options->segments != 0 &&
        !mtf_option_between("--segments", options->segments, 1, 1 << 20, error))
        return false;
    collective->segments = options->segments;
    if (options->bytes == NULL && options->faces == NULL)
        return mtf_input_error(error, "--bytes is missing (the payload of one rank)");
    return (options->bytes == NULL || read_bytes(options->bytes, &collective->bytes, error)) &&
           (options->faces == NULL || read_faces(options->faces, network, collective, error)) &&
           (options->from == NULL ||
            read_rank("from", options->from, network, &collective->from, error)) &&
           read_receiver(options, network, collective, error) && read_stride(options, query, error);
}

static bool read_query(const Options *options, const char *kind, Query *query, GError **error) {
    return mtf_collective_kind_parse(kind, &query->collective.kind, error) &&
           read_network(options, &query->network, error) &&
           (options->axes == NULL || keep_axes(options->axes, &query->network, error)) &&
           read_collective(options, query, error);
}

static char *network_text(const MtfNetwork *network) {
    GString *text = g_string_new(network->switched ? "switch of " : "torus ");
    for (int d = 0; d < network->axes; d++)
        g_string_append_printf(text, "%s%" PRId64 "%s", d > 0 ? "x" : "", network->axis[d].size,
                               network->switched || network->axis[d].wrap ? "" : " (open)");
    return g_string_free(text, FALSE);
}

static void add_alternative(cJSON *list, const MtfCollectivePrice *price) {
    cJSON *item = cJSON_CreateObject();
    cJSON_AddStringToObject(item, "algorithm", price->algorithm);
    mtf_json_add_number(item, "seconds", price->seconds);
    cJSON_AddItemToArray(list, item);
}

static void print_json(const Query *query, const MtfCollectivePrice *price, double bound,
                       const GArray *prices) {
    cJSON *root = cJSON_CreateObject();
    g_autofree char *network = network_text(&query->network);
    cJSON_AddStringToObject(root, "collective", mtf_collective_kind_name(query->collective.kind));
    cJSON_AddStringToObject(root, "network", network);
    mtf_json_add_number(root, "bytes", query->collective.bytes);
    mtf_json_add_number(root, "seconds", price->seconds);
    cJSON_AddStringToObject(root, "algorithm", price->algorithm);
    mtf_json_add_number(root, "bound", bound);
    cJSON *list = cJSON_AddArrayToObject(root, "alternatives");
    for (guint i = 0; i < prices->len; i++)
        add_alternative(list, &g_array_index(prices, MtfCollectivePrice, i));
    mtf_json_say(root);
}

static void print_row(const char *name, double seconds, double bound) {
    g_autofree char *time = mtf_seconds_format(seconds);
    printf("  %-28s %11s", name, time);
    if (bound > 0)
        printf("  %7.3f x bound", seconds / bound);
    putchar('\n');
}

static void print_table(const Query *query, const MtfCollectivePrice *price, double bound,
                        const GArray *prices) {
    g_autofree char *network = network_text(&query->network);
    g_autofree char *bytes = mtf_bytes_format(query->collective.bytes);
    g_autofree char *time = mtf_seconds_format(price->seconds);
    printf("%s of %s a rank on %s: %s by %s\n", mtf_collective_kind_name(query->collective.kind),
           bytes, network, time, price->algorithm);
    for (guint i = 0; i < prices->len; i++) {
        const MtfCollectivePrice *other = &g_array_index(prices, MtfCollectivePrice, i);
        if (!other->idealised || strcmp(other->algorithm, price->algorithm) == 0)
            print_row(other->algorithm, other->seconds, bound);
    }
    print_row("lower bound", bound, bound);
}

/* An idealised algorithm that was asked for by name stands among the others. */
static void add_if_missing(GArray *prices, const MtfCollectivePrice *price) {
    guint place = 0;
    for (guint i = 0; i < prices->len; i++) {
        const MtfCollectivePrice *other = &g_array_index(prices, MtfCollectivePrice, i);
        if (strcmp(other->algorithm, price->algorithm) == 0)
            return;
        place += other->seconds <= price->seconds;
    }
    g_array_insert_vals(prices, place, price, 1);
}

static bool run(const Options *options, const char *kind, GError **error) {
    Query query = { .network = { .axes = 0 } };
    if (!read_query(options, kind, &query, error))
        return false;
    MtfCollectivePrice price = mtf_collective_best(&query.network, &query.collective);
    if (options->algorithm != NULL &&
        !mtf_collective_named(&query.network, &query.collective, options->algorithm, &price, error))
        return false;
    g_autoptr(GArray) prices = mtf_collective_prices(&query.network, &query.collective);
    double bound = mtf_collective_bound(&query.network, &query.collective);
    if (options->algorithm != NULL)
        add_if_missing(prices, &price);
    (options->json ? print_json : print_table)(&query, &price, bound, prices);
    return true;
}

#define TEXT(name, field, help, what) \
    { name, 0, 0, G_OPTION_ARG_STRING, &o.field, help, what }
#define COUNT(name, field, help, what) \
    { name, 0, 0, G_OPTION_ARG_INT64, &o.field, help, what }

int mtf_command_collective(int argc, char **argv) {
    Options o = { .shift = 1, .stride = 1 };
    const GOptionEntry entries[] = {
        TEXT("torus", torus, "Sizes of the axes", "8x4"),
        TEXT("wrap", wrap, "Which axes are rings (all above 2; 1 on a 2 doubles its link)", "11"),
        COUNT("switch", switch_ranks, "Ranks on one crossbar instead of a torus", "N"),
        TEXT("machine", machine, "A slice of a machine instead, with its links", "NAME|FILE"),
        COUNT("devices", devices, "Devices of the slice", "N"),
        TEXT("axes", axes, "The axes that the group spans (all)", "0,1"),
        COUNT("stride", stride, "Members are every S-th place of the one axis", "S"),
        TEXT("bytes", bytes, "Payload of a rank (allgather: its whole output)", "N"),
        TEXT("latency", latency, "Of one hop", "1us"),
        TEXT("bandwidth", bandwidth, "Of one link in one direction", "45GB/s"),
        TEXT("overhead", overhead, "What a message costs its sender (0)", "SECONDS"),
        TEXT("from", from, "Root of a broadcast, sender of a p2p (0)", "RANK|a,b,c"),
        TEXT("to", to, "Receiver of a p2p (the farthest)", "RANK|a,b,c"),
        COUNT("shift", shift, "Places that a permute shifts by (1)", "S"),
        TEXT("faces", faces, "Bytes of a halo's face on each axis", "a,b,c"),
        COUNT("segments", segments, "Parts of a pipelined payload (the best)", "K"),
        TEXT("algorithm", algorithm, "Price this algorithm, not the cheapest", "NAME"),
        { "json", 0, 0, G_OPTION_ARG_NONE, &o.json, "Print JSON", NULL },
        G_OPTION_ENTRY_NULL,
    };
    GError *error = NULL;
    bool done = mtf_command_line_parse(
                    &argc, &argv, entries, "KIND --torus 8x4 --bytes N --bandwidth B …",
                    "Prices a collective: allreduce, reduce_scatter, allgather, alltoall, "
                    "broadcast, permute, halo or p2p.",
                    1, 1, &error) &&
                run(&o, argv[1], &error);
    mtf_command_line_clear(entries);
    return done ? 0 : mtf_command_line_fail("meshtf-plan collective", error);
}
