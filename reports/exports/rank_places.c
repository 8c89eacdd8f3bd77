// SPDX-License-Identifier: GPL-3.0-or-later
#include "reports/exports/rank_places.h"

#include "layouts/base/error.h"

#include <inttypes.h>
#include <string.h>

void mtf_rank_places_init(MtfRankPlaces *places, const char *name, const MtfNetwork *network) {
    bool levels = network->switched && network->axes > 0;
    *places = (MtfRankPlaces){ name, levels ? network->axis[network->axes - 1].size : 1,
                               g_array_new(FALSE, FALSE, sizeof(int64_t)) };
}

void mtf_rank_places_clear(MtfRankPlaces *places) {
    g_clear_pointer(&places->devices, g_array_unref);
}

void mtf_rank_places_add(MtfRankPlaces *places, const MtfMapping *mapping, int64_t first) {
    int64_t ranks = 1;
    for (int a = 0; a < mapping->mesh_axes; a++)
        ranks *= mapping->mesh_sizes[a];
    for (int64_t rank = 0; rank < ranks; rank++) {
        int64_t device = first + mtf_mapping_place(mapping, rank);
        g_array_append_val(places->devices, device);
    }
}

static int64_t device_of(const MtfRankPlaces *places, guint rank) {
    return g_array_index(places->devices, int64_t, rank);
}

static int64_t node_of(const MtfRankPlaces *places, guint rank) {
    return device_of(places, rank) / places->node_size;
}

static int64_t count_nodes(const MtfRankPlaces *places) {
    int64_t nodes = 0;
    for (guint rank = 0; rank < places->devices->len; rank++)
        nodes = MAX(nodes, node_of(places, rank) + 1);
    return nodes;
}

/* ---- A rankfile ------------------------------------------------------------------------------ */

/* Names are words: the file's format knows no quotes. */
static bool check_hosts(char **hosts, int64_t nodes, const char *text, GError **error) {
    for (int i = 0; hosts[i] != NULL; i++)
        if (*hosts[i] == '\0' || strpbrk(hosts[i], " \t\n=#") != NULL)
            return mtf_input_error(error, "--hosts \"%s\" must be names, as in node1,node2", text);
    return (int64_t)g_strv_length(hosts) >= nodes ||
           mtf_input_error(error, "--hosts names %u nodes, and the plan needs %" PRId64,
                           g_strv_length(hosts), nodes);
}

char *mtf_rank_places_rankfile(const MtfRankPlaces *places, const char *hosts, GError **error) {
    g_auto(GStrv) names = g_strsplit(hosts != NULL ? hosts : "", ",", -1);
    if (hosts != NULL && !check_hosts(names, count_nodes(places), hosts, error))
        return NULL;
    GString *text = g_string_new(NULL);
    for (guint rank = 0; rank < places->devices->len; rank++) {
        int64_t node = node_of(places, rank);
        g_autofree char *relative = g_strdup_printf("+n%" PRId64, node);
        g_string_append_printf(text, "rank %u=%s slot=%" PRId64 "\n", rank,
                               hosts != NULL ? names[node] : relative,
                               device_of(places, rank) % places->node_size);
    }
    return g_string_free(text, FALSE);
}

/* ---- Slurm ------------------------------------------------------------------------------------- */

/* Seconds before the time limit at which the ranks are asked to stop. */
#define NOTICE_SECONDS 300

static const char *const body =
    "plan=${1:?usage: sbatch SCRIPT PLAN [OPTION of meshtf-run]...}\n"
    "shift\n"
    "checkpoint=${MESHTF_CHECKPOINT:-checkpoint-${SLURM_JOB_NAME:-run}}\n"
    "hosts=$(mktemp)\n"
    "trap 'rm -f \"$hosts\"' EXIT\n"
    "mapfile -t nodes < <(scontrol show hostnames \"$SLURM_JOB_NODELIST\")\n"
    "for place in \"${places[@]}\"; do echo \"${nodes[$place]}\"; done >\"$hosts\"\n"
    "resume=()\n"
    "[ -d \"$checkpoint\" ] && resume=(--resume)\n"
    "SLURM_HOSTFILE=$hosts srun --mpi=\"${MESHTF_MPI:-pmix}\" --distribution=arbitrary \\\n"
    "    --ntasks=\"${#places[@]}\" meshtf-run \"$plan\" --checkpoint \"$checkpoint\" "
    "\"${resume[@]}\" \"$@\" &\n"
    "step=$!\n"
    "trap 'kill -USR2 $step' USR1 TERM\n"
    "wait $step\n"
    "status=$?\n"
    "# A signal ends the first wait before the ranks have ended.\n"
    "while kill -0 $step 2>/dev/null; do wait $step; status=$?; done\n"
    "if [ $status = 75 ]; then\n"
    "    exec scontrol requeue \"$SLURM_JOB_ID\"\n"
    "fi\n"
    "exit $status\n";

static char *job_name(const char *graph) {
    char *name = g_strdup(*graph != '\0' ? graph : "meshtf");
    return g_strcanon(name, G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "-_", '-');
}

char *mtf_rank_places_slurm(const MtfRankPlaces *places) {
    g_autofree char *name = job_name(places->name);
    g_autoptr(GString) nodes = g_string_new(NULL);
    int64_t ranks = places->devices->len;
    for (guint rank = 0; rank < places->devices->len; rank++)
        g_string_append_printf(nodes, "%s%" PRId64, rank > 0 ? " " : "", node_of(places, rank));
    return g_strdup_printf("#!/bin/bash\n"
                           "#SBATCH --job-name=%s\n"
                           "#SBATCH --nodes=%" PRId64 "\n"
                           "#SBATCH --ntasks=%" PRId64 "\n"
                           "#SBATCH --ntasks-per-node=%" PRId64 "\n"
                           "#SBATCH --time=04:00:00\n"
                           "#SBATCH --signal=B:USR1@%d\n"
                           "#SBATCH --requeue\n"
                           "#SBATCH --open-mode=append\n"
                           "# The node of each rank, in order.\n"
                           "places=(%s)\n%s",
                           name, count_nodes(places), ranks, MIN(places->node_size, ranks),
                           NOTICE_SECONDS, nodes->str, body);
}
