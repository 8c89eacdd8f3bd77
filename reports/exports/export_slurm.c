// SPDX-License-Identifier: GPL-3.0-or-later
/* A batch script for Slurm that starts the plan's ranks where its mapping has them, has them write a
 * checkpoint before the time limit, and requeues itself until the run is done:
 *
 *     sbatch job.sh plan.json --data text --steps 10000
 *
 * Nodes are those of the rankfile: the innermost level's size to a node on switches, a device a node
 * on a torus. Slurm sends SIGUSR1 to the script some minutes before the limit, which becomes SIGUSR2
 * for the ranks; meshtf-run then writes its checkpoint and ends with status 75. */
#include "reports/exports/export_forms.h"

#include <inttypes.h>

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

char *mtf_export_slurm(const MtfStepFacts *facts, GError **error) {
    (void)error;
    const MtfNetwork *slice = &facts->pricer.map.slice;
    int size = mtf_mesh_size(&facts->plan->layout->mesh);
    int64_t slots = slice->switched && slice->axes > 0 ? slice->axis[slice->axes - 1].size : 1;
    g_autofree char *name = job_name(facts->plan->graph->name);
    g_autoptr(GString) places = g_string_new(NULL);
    int64_t nodes = 0;
    for (int rank = 0; rank < size; rank++) {
        int64_t node = mtf_mapping_place(&facts->pricer.map.mapping, rank) / slots;
        nodes = MAX(nodes, node + 1);
        g_string_append_printf(places, "%s%" PRId64, rank > 0 ? " " : "", node);
    }
    return g_strdup_printf("#!/bin/bash\n"
                           "#SBATCH --job-name=%s\n"
                           "#SBATCH --nodes=%" PRId64 "\n"
                           "#SBATCH --ntasks=%d\n"
                           "#SBATCH --ntasks-per-node=%" PRId64 "\n"
                           "#SBATCH --time=04:00:00\n"
                           "#SBATCH --signal=B:USR1@%d\n"
                           "#SBATCH --requeue\n"
                           "#SBATCH --open-mode=append\n"
                           "# The node of each rank, in order.\n"
                           "places=(%s)\n%s",
                           name, nodes, size, MIN(slots, (int64_t)size), NOTICE_SECONDS,
                           places->str, body);
}
