// SPDX-License-Identifier: GPL-3.0-or-later
/* meshtf-plan machines: what the library knows, one machine a line, or one of them in full. */
#include "analyzer/commands/commands.h"
#include "cost/machine/machine.h"
#include "layouts/base/command_line.h"
#include "layouts/base/json_writer.h"
#include "layouts/base/library.h"

#include <inttypes.h>
#include <stdio.h>

static char *network_shape(const MtfMachine *machine) {
    const MtfNetwork *network = &machine->network;
    GString *shape = g_string_new(network->switched ? "levels " : "torus ");
    for (int d = 0; d < network->axes; d++) {
        g_string_append(shape, d > 0 ? "x" : "");
        if (network->axis[d].size > 0)
            g_string_append_printf(shape, "%" PRId64, network->axis[d].size);
        else
            g_string_append(shape, "any");
    }
    return g_string_free(shape, FALSE);
}

static void print_row(const MtfMachine *machine) {
    const MtfNetwork *network = &machine->network;
    g_autofree char *shape = network_shape(machine);
    g_autofree char *memory = mtf_bytes_format((double)machine->memory_bytes);
    const MtfNetworkAxis *link = &network->axis[network->switched ? network->axes - 1 : 0];
    printf("%-12s %-16s %5s %9.3g %11s %10.3g %10.3g %9.3g\n", machine->name, shape,
           machine->rate[0].dtype, machine->rate[0].value, memory, machine->memory_bandwidth,
           link->bandwidth, link->latency);
}

static bool print_table(bool json, GError **error) {
    g_auto(GStrv) names = mtf_library_list("machines", error);
    if (names == NULL)
        return false;
    cJSON *list = cJSON_CreateArray();
    if (!json)
        printf("%-12s %-16s %5s %9s %11s %10s %10s %9s\n", "machine", "network", "dtype", "flop/s",
               "memory", "memory B/s", "link B/s", "hop s");
    for (char **name = names; *name != NULL; name++) {
        g_autoptr(MtfMachine) machine = mtf_machine_load(*name, error);
        if (machine == NULL) {
            cJSON_Delete(list);
            return false;
        }
        if (json)
            cJSON_AddItemToArray(list, mtf_machine_to_json(machine));
        else
            print_row(machine);
    }
    if (json) {
        g_autofree char *text = mtf_json_print(list);
        fputs(text, stdout);
    }
    cJSON_Delete(list);
    return true;
}

static bool print_one(const char *name, GError **error) {
    g_autoptr(MtfMachine) machine = mtf_machine_load(name, error);
    if (machine == NULL)
        return false;
    mtf_json_say(mtf_machine_to_json(machine));
    return true;
}

int mtf_command_machines(int argc, char **argv) {
    gboolean json = FALSE;
    const GOptionEntry entries[] = {
        { "json", 0, 0, G_OPTION_ARG_NONE, &json, "Print every machine in full as JSON", NULL },
        G_OPTION_ENTRY_NULL,
    };
    GError *error = NULL;
    if (!mtf_command_line_parse(&argc, &argv, entries, "[NAME|FILE]",
                                "Lists the machines of the library: peak figures of one device, "
                                "and of one link in one direction (in levels, of the innermost "
                                "switch). With a name, prints that machine's file with the source "
                                "of each figure.",
                                0, 1, &error))
        return mtf_command_line_fail("meshtf-plan machines", error);
    if (!(argc > 1 ? print_one(argv[1], &error) : print_table(json, &error)))
        return mtf_command_line_fail("meshtf-plan machines", error);
    return 0;
}
