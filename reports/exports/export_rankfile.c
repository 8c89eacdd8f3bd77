// SPDX-License-Identifier: GPL-3.0-or-later
/* An Open MPI rankfile (mpirun -rf FILE):
 *
 *     rank 0=node1 slot=0
 *     rank 1=node3 slot=0
 *
 * Hosts are listed in the order in which the machine counts its devices, row-major; where no names
 * are given, nodes are meant by their place in the allocation, "+n0", which Open MPI knows under a
 * resource manager alone. On a torus each device is a node; behind switches the innermost switch is
 * one. */
#include "layouts/base/error.h"
#include "reports/exports/export_forms.h"

#include <inttypes.h>
#include <string.h>

/* Names are words: the file's format knows no quotes. */
static bool check_hosts(char **hosts, int64_t nodes, const char *text, GError **error) {
    for (int i = 0; hosts[i] != NULL; i++)
        if (*hosts[i] == '\0' || strpbrk(hosts[i], " \t\n=#") != NULL)
            return mtf_input_error(error, "--hosts \"%s\" must be names, as in node1,node2", text);
    return (int64_t)g_strv_length(hosts) >= nodes ||
           mtf_input_error(error, "--hosts names %u nodes, and the plan needs %" PRId64,
                           g_strv_length(hosts), nodes);
}

char *mtf_export_rankfile(const MtfStepFacts *facts, const char *hosts, GError **error) {
    const MtfNetwork *slice = &facts->pricer.map.slice;
    int size = mtf_mesh_size(&facts->plan->layout->mesh);
    int64_t slots = slice->switched && slice->axes > 0 ? slice->axis[slice->axes - 1].size : 1;
    g_auto(GStrv) names = g_strsplit(hosts != NULL ? hosts : "", ",", -1);
    if (hosts != NULL && !check_hosts(names, (size + slots - 1) / slots, hosts, error))
        return NULL;
    GString *text = g_string_new(NULL);
    for (int rank = 0; rank < size; rank++) {
        int64_t place = mtf_mapping_place(&facts->pricer.map.mapping, rank);
        g_autofree char *relative = g_strdup_printf("+n%" PRId64, place / slots);
        g_string_append_printf(text, "rank %d=%s slot=%" PRId64 "\n", rank,
                               hosts != NULL ? names[place / slots] : relative, place % slots);
    }
    return g_string_free(text, FALSE);
}
