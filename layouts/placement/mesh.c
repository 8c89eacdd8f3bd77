// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/placement/mesh.h"

#include "layouts/base/error.h"

#include <inttypes.h>
#include <string.h>

bool mtf_pairs_parse(const char *text, const char *what, char ***firsts, char ***seconds,
                     GError **error) {
    g_autoptr(GStrvBuilder) first_builder = g_strv_builder_new();
    g_autoptr(GStrvBuilder) second_builder = g_strv_builder_new();
    g_auto(GStrv) items = g_strsplit_set(text, " ,.;\t\n", -1);
    for (char **item = items; *item != NULL; item++) {
        if (**item == '\0')
            continue;
        g_auto(GStrv) pair = g_strsplit(*item, ":", -1);
        if (g_strv_length(pair) != 2 || *pair[0] == '\0' || *pair[1] == '\0')
            return mtf_input_error(error, "%s: \"%s\" is not of the form name:value", what, *item);
        g_strv_builder_add(first_builder, pair[0]);
        g_strv_builder_add(second_builder, pair[1]);
    }
    *firsts = g_strv_builder_end(first_builder);
    *seconds = g_strv_builder_end(second_builder);
    return true;
}

static bool is_text(const char *name) {
    for (const char *c = name; *c != '\0'; c++)
        if (g_ascii_iscntrl(*c))
            return false;
    return g_utf8_validate(name, -1, NULL);
}

/* Appends one axis; `size_text` is a positive number or "-1", which is stored as -1. */
static bool add_axis(MtfMesh *mesh, const char *name, const char *size_text, GError **error) {
    gint64 size;
    if (mesh->n_axes == MTF_MAX_MESH_AXES)
        return mtf_input_error(error, "mesh: more than %d axes", MTF_MAX_MESH_AXES);
    if (strlen(name) >= MTF_MAX_AXIS_NAME)
        return mtf_input_error(error, "mesh: axis name \"%s\" is longer than %d bytes", name,
                               MTF_MAX_AXIS_NAME - 1);
    if (!is_text(name))
        return mtf_input_error(error,
                               "mesh: an axis name holds no control character and is UTF-8 text");
    if (mtf_mesh_axis(mesh, name) >= 0)
        return mtf_input_error(error, "mesh: axis \"%s\" is given twice", name);
    if (!g_ascii_string_to_signed(size_text, 10, -1, MTF_MAX_MESH_SIZE, &size, NULL) || size == 0)
        return mtf_input_error(error,
                               "mesh: the size \"%s\" of axis \"%s\" is not a number from 1 to "
                               "%" PRId64 " (or -1 for what is left of the devices)",
                               size_text, name, MTF_MAX_MESH_SIZE);
    MtfMeshAxis *axis = &mesh->axes[mesh->n_axes++];
    g_strlcpy(axis->name, name, sizeof axis->name);
    axis->size = (int)size;
    return true;
}

/* Replaces one size -1 by what is left of `devices`. */
static bool fill_rest(MtfMesh *mesh, int64_t devices, GError **error) {
    int64_t product = 1;
    MtfMeshAxis *open = NULL;
    for (int a = 0; a < mesh->n_axes; a++) {
        if (mesh->axes[a].size == -1 && open != NULL)
            return mtf_input_error(error, "mesh: only one axis can have size -1");
        if (mesh->axes[a].size == -1)
            open = &mesh->axes[a];
        else
            product *= mesh->axes[a].size;
        if (product > MTF_MAX_MESH_SIZE)
            return mtf_input_error(error, "mesh: more than %" PRId64 " processors",
                                   MTF_MAX_MESH_SIZE);
    }
    if (open == NULL)
        return devices <= 0 || product == devices ||
               mtf_input_error(error, "mesh: it has %" PRId64 " processors, not %" PRId64, product,
                               devices);
    if (devices <= 0)
        return mtf_input_error(error, "mesh: size -1 of axis \"%s\" needs --devices", open->name);
    if (devices > MTF_MAX_MESH_SIZE)
        return mtf_input_error(error, "mesh: more than %" PRId64 " processors", MTF_MAX_MESH_SIZE);
    if (devices % product != 0)
        return mtf_input_error(error, "mesh: %" PRId64 " devices are not a multiple of %" PRId64,
                               devices, product);
    open->size = (int)(devices / product);
    return true;
}

bool mtf_mesh_parse(const char *text, int64_t devices, MtfMesh *mesh, GError **error) {
    g_auto(GStrv) names = NULL;
    g_auto(GStrv) sizes = NULL;
    if (!mtf_pairs_parse(text, "mesh", &names, &sizes, error))
        return false;
    MtfMesh parsed = { 0 };
    for (int i = 0; names[i] != NULL; i++)
        if (!add_axis(&parsed, names[i], sizes[i], error))
            return false;
    if (!fill_rest(&parsed, devices, error))
        return false;
    *mesh = parsed;
    return true;
}

char *mtf_mesh_format(const MtfMesh *mesh) {
    GString *text = g_string_new(NULL);
    for (int a = 0; a < mesh->n_axes; a++)
        g_string_append_printf(text, "%s%s:%d", a > 0 ? ";" : "", mesh->axes[a].name,
                               mesh->axes[a].size);
    return g_string_free(text, FALSE);
}

char *mtf_mesh_title(const MtfMesh *mesh) {
    return mesh->n_axes > 0 ? mtf_mesh_format(mesh) : g_strdup("one device");
}

int mtf_mesh_size(const MtfMesh *mesh) {
    return mtf_mesh_group_size(mesh, (1U << mesh->n_axes) - 1);
}

int mtf_mesh_axis(const MtfMesh *mesh, const char *name) {
    for (int a = 0; a < mesh->n_axes; a++)
        if (strcmp(mesh->axes[a].name, name) == 0)
            return a;
    return -1;
}

int mtf_mesh_coordinate(const MtfMesh *mesh, int rank, int axis) {
    for (int a = mesh->n_axes - 1; a > axis; a--)
        rank /= mesh->axes[a].size;
    return rank % mesh->axes[axis].size;
}

int mtf_mesh_group_position(const MtfMesh *mesh, unsigned mask, int rank) {
    int position = 0;
    for (int a = 0; a < mesh->n_axes; a++)
        if (mask & (1U << a))
            position = position * mesh->axes[a].size + mtf_mesh_coordinate(mesh, rank, a);
    return position;
}

int mtf_mesh_group_member(const MtfMesh *mesh, unsigned mask, int rank, int position) {
    int stride = 1;
    for (int a = mesh->n_axes - 1; a >= 0; a--) {
        int size = mesh->axes[a].size;
        if (mask & (1U << a)) {
            rank += (position % size - rank / stride % size) * stride;
            position /= size;
        }
        stride *= size;
    }
    return rank;
}

char *mtf_mesh_mask_format(const MtfMesh *mesh, unsigned mask) {
    GString *text = g_string_new(NULL);
    for (int a = 0; a < mesh->n_axes; a++)
        if (mask & (1U << a))
            g_string_append_printf(text, "%s%s", text->len > 0 ? "," : "", mesh->axes[a].name);
    return g_string_free(text, FALSE);
}

bool mtf_mesh_equal(const MtfMesh *a, const MtfMesh *b) {
    if (a->n_axes != b->n_axes)
        return false;
    for (int i = 0; i < a->n_axes; i++)
        if (a->axes[i].size != b->axes[i].size || strcmp(a->axes[i].name, b->axes[i].name) != 0)
            return false;
    return true;
}
