// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/summary/step_shares.h"

#include "layouts/graph/operation_table.h"

#include <string.h>

/* ---- The step's time ----------------------------------------------------------------------- */

typedef struct {
    const MtfSchedule *schedule;
    GArray *collectives; /* instructions by their starts, copies to and from the host among them */
    int64_t *wall;
} Gaps;

/* Gives the time from `from` to `to`, in which nothing computes, to the collectives that run then:
 * at any moment to the one that has begun first. `*first` is the first that may still run. */
static void give_gap(const Gaps *gaps, guint *first, int64_t from, int64_t to) {
    const MtfSchedule *schedule = gaps->schedule;
    const GArray *collectives = gaps->collectives;
    for (guint i = *first; i < collectives->len && from < to; i++) {
        int c = g_array_index(collectives, int, i);
        if (schedule->starts[c] >= to)
            break;
        if (schedule->ends[c] <= from) {
            *first += i == *first;
            continue;
        }
        int64_t begin = MAX(from, schedule->starts[c]), end = MIN(to, schedule->ends[c]);
        gaps->wall[c] += end - begin;
        from = end;
    }
}

static int compare_starts(const void *left, const void *right, void *data) {
    const MtfSchedule *schedule = data;
    int a = *(const int *)left, b = *(const int *)right;
    if (schedule->starts[a] != schedule->starts[b])
        return schedule->starts[a] < schedule->starts[b] ? -1 : 1;
    return a - b;
}

static GArray *collectives_by_start(const MtfSchedule *schedule, const MtfProgram *program) {
    GArray *collectives = g_array_new(FALSE, FALSE, sizeof(int));
    for (int i = 0; i < schedule->length; i++)
        if (mtf_instruction_travels(program, i))
            g_array_append_val(collectives, i);
    g_array_sort_with_data(collectives, compare_starts, (void *)schedule);
    return collectives;
}

/* Kernels and copies follow one another in the order of the program; between them are gaps. */
int64_t *mtf_step_wall(const MtfSchedule *schedule, const MtfProgram *program) {
    g_autoptr(GArray) collectives = collectives_by_start(schedule, program);
    Gaps gaps = { schedule, collectives, g_new0(int64_t, schedule->length + 1) };
    int64_t now = 0;
    guint first = 0;
    for (int i = 0; i < schedule->length; i++) {
        if (mtf_instruction_travels(program, i))
            continue;
        give_gap(&gaps, &first, now, schedule->starts[i]);
        gaps.wall[i] = schedule->ends[i] - schedule->starts[i];
        now = schedule->ends[i];
    }
    give_gap(&gaps, &first, now, schedule->nanoseconds);
    return gaps.wall;
}

/* ---- Shares -------------------------------------------------------------------------------- */

static void free_share(void *data) {
    MtfStepShare *share = data;
    g_free(share->name);
    g_free(share);
}

static void add_share(GPtrArray *shares, const char *name, int64_t nanoseconds) {
    MtfStepShare *share = NULL;
    for (guint i = 0; i < shares->len && share == NULL; i++) {
        MtfStepShare *other = g_ptr_array_index(shares, i);
        if (strcmp(other->name, name) == 0)
            share = other;
    }
    if (share == NULL) {
        share = g_new0(MtfStepShare, 1);
        share->name = g_strdup(name);
        g_ptr_array_add(shares, share);
    }
    share->nanoseconds += nanoseconds;
}

/* What a kernel's or copy's price is made of most: its start, or the longer of moving its bytes and
 * doing its flops at the device's peaks. */
static const char *local_share(const MtfPricer *pricer, const MtfProgram *program,
                               const MtfInstruction *instruction, int64_t nanoseconds) {
    const MtfKernelRates *kernels = &pricer->machine->kernels;
    double launch = kernels->known ? kernels->launch_seconds : MTF_KERNEL_SECONDS;
    if ((double)nanoseconds / 1e9 < 2 * launch)
        return "starting kernels";
    bool product = instruction->kind == MTF_INSTRUCTION_KERNEL &&
                   instruction->kernel_class == MTF_CLASS_MATMUL;
    double traffic = instruction->traffic_bytes / pricer->memory_bandwidth;
    const MtfOperation *op = mtf_graph_operation(program->graph, instruction->operation);
    MtfDtype dtype = mtf_operation_storage_dtype(program->graph, op);
    double work = product ? instruction->flops / pricer->rate[dtype] : 0;
    return traffic >= work ? "memory traffic" : "arithmetic";
}

static int compare_shares(const void *left, const void *right) {
    const MtfStepShare *a = *(MtfStepShare *const *)left, *b = *(MtfStepShare *const *)right;
    if (a->nanoseconds != b->nanoseconds)
        return a->nanoseconds < b->nanoseconds ? 1 : -1;
    return strcmp(a->name, b->name);
}

GPtrArray *mtf_step_shares_of(const MtfPricer *pricer, const MtfProgram *program,
                              const MtfSchedule *schedule, const int64_t *wall) {
    GPtrArray *shares = g_ptr_array_new_with_free_func(free_share);
    for (int i = 0; i < schedule->length; i++) {
        const MtfInstruction *instruction = mtf_program_instruction(program, i);
        if (wall[i] == 0)
            continue;
        if (mtf_instruction_host_copy(program, i) != MTF_HOST_NOTHING) {
            add_share(shares, "link to the host", wall[i]);
            continue;
        }
        if (!mtf_instruction_is_collective(instruction)) {
            add_share(shares, local_share(pricer, program, instruction, wall[i]), wall[i]);
            continue;
        }
        g_autofree char *axes =
            mtf_mesh_mask_format(&program->layout->mesh, instruction->reshard.axes);
        g_autofree char *name = g_strdup_printf("network over %s", axes);
        add_share(shares, name, wall[i]);
    }
    int64_t rest = schedule->nanoseconds;
    for (int i = 0; i < schedule->length; i++)
        rest -= wall[i];
    if (rest > 0)
        add_share(shares, "waiting for the host", rest);
    g_ptr_array_sort(shares, compare_shares);
    return shares;
}
