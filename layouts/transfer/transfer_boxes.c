// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/transfer/transfer_boxes.h"

#include "layouts/base/error.h"
#include "layouts/placement/placement.h"

#include <inttypes.h>
#include <string.h>

/* Sizes between x; -1 where the text is anything else. */
static int read_sizes(const char *text, int most, int64_t *sizes) {
    g_auto(GStrv) words = g_strsplit(text, "x", -1);
    int count = (int)g_strv_length(words);
    if (count < 1 || count > most)
        return -1;
    for (int i = 0; i < count; i++) {
        guint64 size;
        if (!g_ascii_string_to_unsigned(words[i], 10, 1, (guint64)1 << 40, &size, NULL))
            return -1;
        sizes[i] = (int64_t)size;
    }
    return count;
}

bool mtf_transfer_shape_parse(const char *text, MtfTransferShape *shape, GError **error) {
    MtfTransferShape read = { 0 };
    read.dimensions = read_sizes(text, MTF_BOX_DIMENSIONS_MAX, read.size);
    double elements = 1;
    for (int d = 0; d < read.dimensions; d++)
        elements *= (double)read.size[d];
    if (read.dimensions < 0 || elements > 0x1p48)
        return mtf_input_error(error, "\"%s\" is not a tensor like 1024x1024x512 (1 to %d sizes)",
                               text, MTF_BOX_DIMENSIONS_MAX);
    *shape = read;
    return true;
}

/* "S01" or "R" at *text for one dimension; `used` is the mask of axes that split something. */
static bool read_dimension(const char **text, MtfTransferEnd *end, int dimension, unsigned *used) {
    char letter = g_ascii_toupper(**text);
    if (letter != 'R' && letter != 'S')
        return false;
    for ((*text)++; letter == 'S' && g_ascii_isdigit(**text); (*text)++) {
        int axis = g_ascii_digit_value(**text);
        if (axis >= end->mesh.n_axes || *used >> axis & 1)
            return false;
        *used |= 1U << axis;
        end->axis[dimension][end->axes[dimension]++] = (int8_t)axis;
    }
    return letter == 'R' || end->axes[dimension] > 0;
}

static bool read_mesh(const char *text, MtfMesh *mesh) {
    int64_t sizes[MTF_MAX_MESH_AXES], devices = 1;
    int count = read_sizes(text, MTF_MAX_MESH_AXES, sizes);
    for (int a = 0; a < count; a++) {
        devices *= sizes[a];
        if (devices > 1 << 16)
            return false;
        mesh->axes[a].size = (int)sizes[a];
        g_snprintf(mesh->axes[a].name, sizeof mesh->axes[a].name, "%d", a);
    }
    mesh->n_axes = count;
    return count > 0;
}

bool mtf_transfer_end_parse(const char *what, const char *text, const MtfTransferShape *shape,
                            MtfTransferEnd *end, GError **error) {
    MtfTransferEnd read = { .first_device = 0 };
    g_auto(GStrv) parts = g_strsplit(text, ":", -1);
    if (g_strv_length(parts) != 2 || !read_mesh(parts[0], &read.mesh))
        return mtf_input_error(
            error,
            "%s \"%s\" is not a mesh of at most %d devices and a placement, like "
            "2x4:S0RR",
            what, text, 1 << 16);
    const char *place = parts[1];
    unsigned used = 0;
    bool fits = true;
    for (int d = 0; d < shape->dimensions && fits; d++)
        fits = read_dimension(&place, &read, d, &used);
    if (!fits || *place != '\0')
        return mtf_input_error(error,
                               "%s \"%s\" does not say R, or S with some of the mesh's %d axes "
                               "(counted from 0, each at most once), for each of the tensor's %d "
                               "dimensions, like S0R",
                               what, text, read.mesh.n_axes, shape->dimensions);
    *end = read;
    return true;
}

MtfBox mtf_transfer_part(const MtfTransferShape *shape, const MtfTransferEnd *end, int rank) {
    MtfBox box;
    for (int d = 0; d < MTF_BOX_DIMENSIONS_MAX; d++) {
        int64_t index = 0, parts = 1;
        for (int i = 0; d < shape->dimensions && i < end->axes[d]; i++) {
            int axis = end->axis[d][i];
            parts *= end->mesh.axes[axis].size;
            index = index * end->mesh.axes[axis].size + mtf_mesh_coordinate(&end->mesh, rank, axis);
        }
        MtfRange range = mtf_part(d < shape->dimensions ? shape->size[d] : 1, index, parts);
        box.begin[d] = range.begin;
        box.end[d] = range.end;
    }
    return box;
}

/* A part with the devices that hold it. */
typedef struct {
    MtfBox box;
    GArray *devices;
} Part;

static void free_part(gpointer data) {
    Part *part = data;
    g_array_unref(part->devices);
    g_free(part);
}

static guint hash_box(gconstpointer box) {
    guint hash = 5381;
    const unsigned char *bytes = box;
    for (gsize i = 0; i < sizeof(MtfBox); i++)
        hash = hash * 33 + bytes[i];
    return hash;
}

static gboolean equal_boxes(gconstpointer a, gconstpointer b) {
    return memcmp(a, b, sizeof(MtfBox)) == 0;
}

/* The different parts of one end, in the order of the first device that holds each. */
static GPtrArray *different_parts(const MtfTransferShape *shape, const MtfTransferEnd *end) {
    GPtrArray *parts = g_ptr_array_new_with_free_func(free_part);
    g_autoptr(GHashTable) known = g_hash_table_new(hash_box, equal_boxes);
    for (int rank = 0; rank < mtf_mesh_size(&end->mesh); rank++) {
        MtfBox box = mtf_transfer_part(shape, end, rank);
        Part *part = g_hash_table_lookup(known, &box);
        if (part == NULL) {
            part = g_new(Part, 1);
            part->box = box;
            part->devices = g_array_new(FALSE, FALSE, sizeof(int));
            g_ptr_array_add(parts, part);
            g_hash_table_insert(known, &part->box, part);
        }
        int device = end->first_device + rank;
        g_array_append_val(part->devices, device);
    }
    return parts;
}

/* The elements of the intersection; 0 where there is none. */
static int64_t intersect(const MtfBox *a, const MtfBox *b, MtfBox *both) {
    int64_t elements = 1;
    for (int d = 0; d < MTF_BOX_DIMENSIONS_MAX; d++) {
        both->begin[d] = MAX(a->begin[d], b->begin[d]);
        both->end[d] = MIN(a->end[d], b->end[d]);
        elements *= MAX(both->end[d] - both->begin[d], 0);
    }
    return elements;
}

static bool holds(const GArray *devices, int device) {
    for (guint i = 0; i < devices->len; i++)
        if (g_array_index(devices, int, i) == device)
            return true;
    return false;
}

static void free_transfer_box(gpointer data) {
    MtfTransferBox *box = data;
    g_array_unref(box->senders);
    g_array_unref(box->receivers);
    g_free(box);
}

GPtrArray *mtf_transfer_boxes(const MtfTransferShape *shape, const MtfTransferEnd *from,
                              const MtfTransferEnd *to) {
    GPtrArray *boxes = g_ptr_array_new_with_free_func(free_transfer_box);
    g_autoptr(GPtrArray) sources = different_parts(shape, from);
    g_autoptr(GPtrArray) targets = different_parts(shape, to);
    for (guint s = 0; s < sources->len; s++)
        for (guint t = 0; t < targets->len; t++) {
            const Part *source = g_ptr_array_index(sources, s);
            const Part *target = g_ptr_array_index(targets, t);
            MtfTransferBox found;
            found.elements = intersect(&source->box, &target->box, &found.box);
            if (found.elements == 0)
                continue;
            found.receivers = g_array_new(FALSE, FALSE, sizeof(int));
            for (guint i = 0; i < target->devices->len; i++)
                if (!holds(source->devices, g_array_index(target->devices, int, i)))
                    g_array_append_val(found.receivers, g_array_index(target->devices, int, i));
            found.senders = g_array_copy(source->devices);
            if (found.receivers->len > 0)
                g_ptr_array_add(boxes, g_memdup2(&found, sizeof found));
            else
                free_transfer_box(g_memdup2(&found, sizeof found));
        }
    return boxes;
}

char *mtf_box_format(const MtfTransferShape *shape, const MtfBox *box) {
    GString *text = g_string_new("[");
    for (int d = 0; d < shape->dimensions; d++)
        g_string_append_printf(text, "%s%" PRId64 ":%" PRId64, d > 0 ? ", " : "", box->begin[d],
                               box->end[d]);
    g_string_append_c(text, ']');
    return g_string_free(text, FALSE);
}
