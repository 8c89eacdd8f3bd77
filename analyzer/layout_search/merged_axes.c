// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/layout_search/merged_axes.h"

#include "layouts/graph/operation_table.h"

#include <math.h>

/* Entries of one matrix, beyond which axes are merged. */
#define MOST_ENTRIES 2e5

static void append_name(MtfMeshAxis *axis, const char *name) {
    g_autofree char *joined = g_strconcat(axis->name, name, NULL);
    g_strlcpy(axis->name, joined, sizeof axis->name);
}

/* Bit a of `borders`: axis a and the one behind it stay apart. */
static MtfAxisMerge merge_between(const MtfMesh *mesh, unsigned borders) {
    MtfAxisMerge merge = { .mesh = { .n_axes = 1 } };
    merge.mesh.axes[0].size = 1;
    for (int a = 0; a < mesh->n_axes; a++) {
        int at = merge.mesh.n_axes - 1;
        merge.axis[a] = at;
        merge.mesh.axes[at].size *= mesh->axes[a].size;
        append_name(&merge.mesh.axes[at], mesh->axes[a].name);
        if (borders >> a & 1)
            merge.mesh.axes[merge.mesh.n_axes++].size = 1;
    }
    return merge;
}

static int count_bits(unsigned bits) {
    int count = 0;
    for (; bits != 0; bits &= bits - 1)
        count++;
    return count;
}

GArray *mtf_axis_merges(const MtfMesh *mesh, int axes) {
    GArray *merges = g_array_new(FALSE, FALSE, sizeof(MtfAxisMerge));
    for (unsigned borders = 0; borders < 1U << (mesh->n_axes - 1); borders++) {
        if (count_bits(borders) != axes - 1)
            continue;
        MtfAxisMerge merge = merge_between(mesh, borders);
        g_array_append_val(merges, merge);
    }
    return merges;
}

static MtfPlacement expand_placement(const MtfMesh *mesh, const MtfAxisMerge *merge,
                                     const MtfPlacement *placement) {
    MtfPlacement expanded = mtf_placement_replicated();
    for (int a = 0; a < mesh->n_axes; a++)
        expanded.axis[a] = placement->axis[merge->axis[a]];
    return expanded;
}

MtfLayout *mtf_axis_merge_expand(const MtfGraph *graph, const MtfMesh *mesh,
                                 const MtfAxisMerge *merge, const MtfLayout *layout) {
    MtfLayout *expanded = mtf_layout_new(graph, mesh);
    expanded->execution.stage = layout->execution.stage;
    for (int t = 0; t < layout->n_tensors; t++) {
        expanded->tensors[t] = expand_placement(mesh, merge, &layout->tensors[t]);
        for (int phase = 0; phase < MTF_PHASES; phase++) {
            if (!mtf_layout_has_gathered_copy(layout, t, (MtfPhase)phase))
                continue;
            MtfPlacement copy = expand_placement(
                mesh, merge, mtf_layout_phase_placement(layout, t, (MtfPhase)phase));
            mtf_layout_set_gathered_copy(expanded, t, (MtfPhase)phase, &copy);
        }
    }
    for (int i = 0; i < layout->n_operations; i++)
        for (int a = 0; a < mesh->n_axes; a++)
            expanded->operations[i].axis[a] = layout->operations[i].axis[merge->axis[a]];
    return expanded;
}

bool mtf_axes_should_merge(const MtfGraph *graph, const MtfMesh *mesh) {
    if (mesh->n_axes <= MTF_UNMERGED_AXES)
        return false;
    int rank = 0;
    for (int t = 0; t < (int)graph->tensors->len; t++)
        rank = MAX(rank, mtf_graph_tensor(graph, t)->shape.rank);
    return pow(rank + 1, 2 * mesh->n_axes) > MOST_ENTRIES;
}
