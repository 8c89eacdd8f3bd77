// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/layout_search/mesh_choice.h"

#define FEW_AXES 2

GArray *mtf_meshes_at_first(const GArray *meshes) {
    GArray *first = g_array_new(FALSE, TRUE, sizeof(MtfMesh));
    for (guint i = 0; i < meshes->len; i++)
        if (meshes->len <= MTF_MANY_MESHES || g_array_index(meshes, MtfMesh, i).n_axes <= FEW_AXES)
            g_array_append_val(first, g_array_index(meshes, MtfMesh, i));
    if (first->len == 0)
        g_array_append_vals(first, meshes->data, meshes->len);
    return first;
}

/* Whether consecutive axes multiply to those of the coarser mesh. */
static bool refines(const MtfMesh *mesh, const MtfMesh *coarse) {
    int at = 0;
    int64_t product = 1;
    for (int a = 0; a < mesh->n_axes && at < coarse->n_axes; a++) {
        product *= mesh->axes[a].size;
        if (product > coarse->axes[at].size)
            return false;
        if (product == coarse->axes[at].size) {
            product = 1;
            at++;
        }
    }
    return at == coarse->n_axes && mesh->n_axes > coarse->n_axes;
}

GArray *mtf_meshes_refining(const GArray *meshes, const MtfMesh *coarse) {
    GArray *finer = g_array_new(FALSE, TRUE, sizeof(MtfMesh));
    for (guint i = 0; i < meshes->len; i++)
        if (refines(&g_array_index(meshes, MtfMesh, i), coarse))
            g_array_append_val(finer, g_array_index(meshes, MtfMesh, i));
    return finer;
}

static bool is_taken(const GArray *ranked, int index) {
    for (guint i = 0; i < ranked->len; i++)
        if (g_array_index(ranked, int, i) == index)
            return true;
    return false;
}

GArray *mtf_meshes_ranked(const GArray *by_mesh, int most, double enough) {
    GArray *ranked = g_array_new(FALSE, FALSE, sizeof(int));
    for (int k = 0; k < most; k++) {
        int best = -1;
        for (int i = 0; i < (int)by_mesh->len; i++) {
            const MtfRuleMesh *mesh = &g_array_index(by_mesh, MtfRuleMesh, i);
            if (mesh->searched && !is_taken(ranked, i) && (double)mesh->cost <= enough &&
                (best < 0 || mesh->cost < g_array_index(by_mesh, MtfRuleMesh, best).cost))
                best = i;
        }
        if (best < 0)
            break;
        g_array_append_val(ranked, best);
    }
    return ranked;
}

/* Found, and cheaper; or, where neither is, the smaller. */
static bool is_better(const MtfRuleAnswer *other, const MtfRuleAnswer *answer) {
    if (other->rules == NULL || answer->rules == NULL)
        return answer->rules == NULL && other->rules != NULL;
    if (other->found != answer->found)
        return other->found;
    return other->found ? other->cost < answer->cost : other->arena_bytes < answer->arena_bytes;
}

void mtf_rule_answer_take(MtfRuleAnswer *answer, MtfRuleAnswer *other) {
    int64_t bound = MIN(answer->bound, other->bound);
    int64_t limit_bound = MIN(answer->limit_bound, other->limit_bound);
    bool stopped = answer->stopped || other->stopped;
    bool tightened = answer->tightened || other->tightened;
    int excluded = answer->excluded + other->excluded, meshes = answer->meshes + other->meshes;
    if (is_better(other, answer)) {
        MtfRuleAnswer worse = *answer;
        *answer = *other;
        *other = worse;
        GArray *by_mesh = answer->by_mesh;
        answer->by_mesh = other->by_mesh;
        other->by_mesh = by_mesh;
    }
    answer->bound = bound;
    answer->limit_bound = limit_bound;
    answer->stopped = stopped;
    answer->tightened = tightened;
    answer->excluded = excluded;
    answer->meshes = meshes;
}
