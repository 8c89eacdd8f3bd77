// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/machine/mapping_json.h"

#include "layouts/base/json_writer.h"

#include <inttypes.h>

#define MAX_PLACES (1 << 24)

char *mtf_mapping_format(const MtfMesh *mesh, const MtfMapping *mapping) {
    GString *text = g_string_new(NULL);
    for (int i = 0; i < mapping->pieces; i++) {
        const MtfMappingPiece *piece = &mapping->piece[i];
        bool first = i == 0 || mapping->piece[i - 1].mesh_axis != piece->mesh_axis;
        if (first)
            g_string_append_printf(text, "%s%s on", i > 0 ? "; " : "",
                                   mesh->axes[piece->mesh_axis].name);
        g_string_append_printf(text, "%s axis %d (%" PRId64, first ? "" : ",", piece->physical_axis,
                               piece->size);
        if (piece->stride > 1)
            g_string_append_printf(text, ", every %" PRId64, piece->stride);
        g_string_append_c(text, ')');
    }
    return g_string_free(text, FALSE);
}

cJSON *mtf_mapping_to_json(const MtfMesh *mesh, const MtfMapping *mapping) {
    cJSON *object = cJSON_CreateObject();
    for (int a = 0; a < mesh->n_axes; a++) {
        cJSON *list = cJSON_AddArrayToObject(object, mesh->axes[a].name);
        for (int i = 0; i < mapping->pieces; i++) {
            const MtfMappingPiece *piece = &mapping->piece[i];
            if (piece->mesh_axis != a)
                continue;
            cJSON *item = cJSON_CreateObject();
            mtf_json_add_integer(item, "axis", piece->physical_axis);
            mtf_json_add_integer(item, "size", piece->size);
            mtf_json_add_integer(item, "stride", piece->stride);
            if (mapping->snake >> a & 1)
                cJSON_AddBoolToObject(item, "snake", true);
            cJSON_AddItemToArray(list, item);
        }
    }
    return object;
}

static bool read_piece(const MtfJson *where, int mesh_axis, MtfMapping *mapping, GError **error) {
    static const char *const keys[] = { "axis", "size", "stride", "snake", NULL };
    int64_t axis, size, stride;
    bool snake = false;
    if (!mtf_json_keys(where, keys, error) ||
        !mtf_json_get_integer(where, "axis", 0, mapping->physical_axes - 1, &axis, error) ||
        !mtf_json_get_integer(where, "size", 1, MAX_PLACES, &size, error) ||
        !mtf_json_get_integer(where, "stride", 1, MAX_PLACES, &stride, error))
        return false;
    if (!mtf_json_optional_boolean(where, "snake", &snake, error))
        return false;
    if (mapping->pieces == MTF_MAPPING_PIECES_MAX)
        return mtf_json_fail(where, error, "a mapping has at most %d pieces",
                             MTF_MAPPING_PIECES_MAX);
    mapping->piece[mapping->pieces++] = (MtfMappingPiece){ mesh_axis, (int)axis, size, stride };
    mapping->snake |= (unsigned)snake << mesh_axis;
    return true;
}

/* The pieces of one mesh axis; their sizes multiply to its size. */
static bool read_axis(const MtfJson *where, int mesh_axis, MtfMapping *mapping, GError **error) {
    MtfJson child;
    int64_t product = 1, size = mapping->mesh_sizes[mesh_axis];
    if (!mtf_json_array(where, error))
        return false;
    for (bool more = mtf_json_first(where, &child); more; more = mtf_json_next(&child)) {
        if (!read_piece(&child, mesh_axis, mapping, error))
            return false;
        product *= mapping->piece[mapping->pieces - 1].size;
        if (product > size)
            break;
    }
    return product == size || mtf_json_fail(where, error,
                                            "the pieces of this axis do not multiply to its size, "
                                            "%" PRId64,
                                            size);
}

bool mtf_mapping_from_json(const MtfJson *where, const MtfMesh *mesh, MtfMeshMap *map,
                           GError **error) {
    const char *keys[MTF_MAX_MESH_AXES + 1] = { NULL };
    MtfMapping mapping = map->mapping;
    mapping.pieces = 0;
    mapping.snake = 0;
    if (cJSON_IsNull(where->node))
        return true;
    for (int a = 0; a < mesh->n_axes; a++)
        keys[a] = mesh->axes[a].name;
    if (!mtf_json_object(where, error) || !mtf_json_keys(where, keys, error))
        return false;
    for (int a = 0; a < mesh->n_axes; a++) {
        MtfJson child;
        if (!mtf_json_get(where, keys[a], &child, error) || !read_axis(&child, a, &mapping, error))
            return false;
    }
    if (!mtf_mapping_is_whole(&mapping))
        return mtf_json_fail(where, error,
                             "the pieces do not cover the machine's slice, each place once");
    map->mapping = mapping;
    return true;
}
