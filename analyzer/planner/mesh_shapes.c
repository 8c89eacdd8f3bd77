// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/planner/mesh_shapes.h"

static const char *const axis_names[MTF_MESH_SHAPES_MAX_AXES][MTF_MESH_SHAPES_MAX_AXES] = {
    { "all" }, { "rows", "cols" }, { "planes", "rows", "cols" }
};

static void add_mesh(GArray *meshes, const int *sizes, int n) {
    MtfMesh mesh = { .n_axes = n };
    for (int a = 0; a < n; a++) {
        g_strlcpy(mesh.axes[a].name, axis_names[n - 1][a], sizeof mesh.axes[a].name);
        mesh.axes[a].size = sizes[a];
    }
    g_array_append_val(meshes, mesh);
}

/* Writes `rest` as a product of the remaining axes, each above 1. */
static void factor(GArray *meshes, int *sizes, int at, int n, int rest) {
    if (at == n - 1) {
        sizes[at] = rest;
        if (rest > 1)
            add_mesh(meshes, sizes, n);
        return;
    }
    for (int size = 2; size <= rest / 2; size++) {
        if (rest % size != 0)
            continue;
        sizes[at] = size;
        factor(meshes, sizes, at + 1, n, rest / size);
    }
}

GArray *mtf_mesh_shapes(int devices, int max_axes) {
    GArray *meshes = g_array_new(FALSE, TRUE, sizeof(MtfMesh));
    int sizes[MTF_MESH_SHAPES_MAX_AXES];
    if (devices == 1)
        add_mesh(meshes, sizes, 0);
    for (int n = 1; n <= max_axes; n++)
        factor(meshes, sizes, 0, n, devices);
    return meshes;
}

static bool lay(MtfMeshMap *map, const MtfMachine *machine, const MtfMesh *mesh, GError **error) {
    int64_t sizes[MTF_MAX_MESH_AXES];
    for (int a = 0; a < mesh->n_axes; a++)
        sizes[a] = mesh->axes[a].size;
    return mtf_mesh_map_init(map, machine, mesh->n_axes, sizes, error);
}

static bool same_axis(const MtfNetworkAxis *a, const MtfNetworkAxis *b) {
    return a->size == b->size && a->wrap == b->wrap && a->bandwidth == b->bandwidth &&
           a->latency == b->latency;
}

/* Whether two groups are networks of the same axes in the same order, links shared alike. */
static bool same_network(const MtfNetwork *a, const MtfNetwork *b) {
    if (a->axes != b->axes || a->switched != b->switched)
        return false;
    for (int i = 0; i < a->axes; i++) {
        if (!same_axis(&a->axis[i], &b->axis[i]))
            return false;
        for (int j = 0; j < i; j++)
            if ((a->axis[i].link == a->axis[j].link) != (b->axis[i].link == b->axis[j].link))
                return false;
    }
    return true;
}

static unsigned permute_mask(const int *order, int n, unsigned mask) {
    unsigned permuted = 0;
    for (int a = 0; a < n; a++)
        if (mask >> a & 1)
            permuted |= 1U << order[a];
    return permuted;
}

/* Whether axis a of one mesh is priced as axis order[a] of the other, alone and with others. */
static bool same_under(const MtfMeshMap *a, const MtfMeshMap *b, const int *order, int n) {
    for (unsigned mask = 1; mask < 1U << n; mask++) {
        MtfNetwork left = mtf_mesh_map_group(a, mask);
        MtfNetwork right = mtf_mesh_map_group(b, permute_mask(order, n, mask));
        if (!same_network(&left, &right))
            return false;
    }
    return true;
}

static bool same_under_some(const MtfMeshMap *a, const MtfMeshMap *b, int n) {
    static const int orders[][MTF_MESH_SHAPES_MAX_AXES] = { { 0, 1, 2 }, { 1, 0, 2 }, { 0, 2, 1 },
                                                            { 2, 1, 0 }, { 1, 2, 0 }, { 2, 0, 1 } };
    static const int counts[] = { 1, 1, 2, 6 };
    for (int i = 0; i < counts[n]; i++) {
        const int *order = n == 3 ? orders[i] : orders[i == 0 ? 0 : 1];
        if (same_under(a, b, order, n))
            return true;
    }
    return false;
}

static bool is_repeat(const MtfMachine *machine, const GArray *kept, const MtfMesh *mesh,
                      const MtfMeshMap *map) {
    for (guint i = 0; i < kept->len; i++) {
        const MtfMesh *other = &g_array_index(kept, MtfMesh, i);
        MtfMeshMap other_map;
        if (other->n_axes == mesh->n_axes && lay(&other_map, machine, other, NULL) &&
            same_under_some(map, &other_map, mesh->n_axes))
            return true;
    }
    return false;
}

GArray *mtf_mesh_shapes_on(const MtfMachine *machine, int devices, int max_axes, GError **error) {
    g_autoptr(GArray) all = mtf_mesh_shapes(devices, max_axes);
    g_autoptr(GArray) kept = g_array_new(FALSE, TRUE, sizeof(MtfMesh));
    for (guint i = 0; i < all->len; i++) {
        const MtfMesh *mesh = &g_array_index(all, MtfMesh, i);
        MtfMeshMap map;
        if (!lay(&map, machine, mesh, error))
            return NULL;
        if (!is_repeat(machine, kept, mesh, &map))
            g_array_append_val(kept, *mesh);
    }
    return g_steal_pointer(&kept);
}

/* ---- Space ----------------------------------------------------------------------------------- */

/* Of the meshes with most axes the one whose sizes are most equal; NULL: none has two. */
static const MtfMesh *most_equal(const GArray *meshes) {
    const MtfMesh *best = NULL;
    int axes = 2, least = INT_MAX;
    for (guint i = 0; i < meshes->len; i++) {
        const MtfMesh *mesh = &g_array_index(meshes, MtfMesh, i);
        int sum = 0;
        for (int a = 0; a < mesh->n_axes; a++)
            sum += mesh->axes[a].size;
        if (mesh->n_axes > axes || (mesh->n_axes == axes && sum < least)) {
            axes = mesh->n_axes;
            least = sum;
            best = mesh;
        }
    }
    return best;
}

bool mtf_mesh_for_space(int devices, int data, int spaces, MtfMesh *mesh) {
    g_autoptr(GArray) shapes = mtf_mesh_shapes(devices / data, spaces);
    const MtfMesh *space = most_equal(shapes);
    if (space == NULL)
        return false;
    *mesh = (MtfMesh){ .n_axes = 0 };
    if (data > 1)
        mesh->axes[mesh->n_axes++] = (MtfMeshAxis){ "data", data };
    for (int a = 0; a < space->n_axes; a++)
        mesh->axes[mesh->n_axes++] = space->axes[a];
    return true;
}
