// SPDX-License-Identifier: GPL-3.0-or-later
#include "reports/machine_picture.h"

#include "reports/markup.h"

#include <inttypes.h>

#define CELL_WIDTH 34
#define CELL_HEIGHT 22
#define GAP 14
#define MAX_DEVICES 1024
#define PICTURE_WIDTH 900

/* The last two physical axes make a plane, the others count planes. */
typedef struct {
    int columns, rows, planes;
    int planes_a_line;
} Planes;

static Planes planes_of(const MtfMapping *mapping) {
    int64_t sides[2] = { 1, 1 }, all = 1;
    int found = 0;
    for (int a = mapping->physical_axes - 1; a >= 0; a--) {
        all *= mapping->physical_sizes[a];
        if (mapping->physical_sizes[a] > 1 && found < 2)
            sides[found++] = mapping->physical_sizes[a];
    }
    Planes planes = { (int)sides[0], (int)sides[1], (int)(all / (sides[0] * sides[1])), 1 };
    planes.planes_a_line = MAX(1, PICTURE_WIDTH / (planes.columns * CELL_WIDTH + GAP));
    return planes;
}

char *mtf_machine_slice_format(const MtfStepFacts *facts) {
    const MtfNetwork *slice = &facts->pricer.map.slice;
    GString *text = g_string_new(slice->switched ? "switches " : "torus ");
    for (int a = 0; a < slice->axes; a++)
        g_string_append_printf(text, "%s%" PRId64, a > 0 ? "x" : "", slice->axis[a].size);
    for (int a = 0; a < slice->axes && !slice->switched; a++)
        if (slice->axis[a].wrap && slice->axis[a].size > 1)
            g_string_append_printf(text, ", axis %d wraps", a);
    return g_string_free(text, FALSE);
}

static void draw_device(GString *page, const MtfStepFacts *facts, const Planes *planes, int rank) {
    const MtfMesh *mesh = &facts->plan->layout->mesh;
    int place = (int)mtf_mapping_place(&facts->pricer.map.mapping, rank);
    int plane = place / (planes->columns * planes->rows);
    int x = plane % planes->planes_a_line * (planes->columns * CELL_WIDTH + GAP) +
            place % planes->columns * CELL_WIDTH;
    int y = plane / planes->planes_a_line * (planes->rows * CELL_HEIGHT + GAP) +
            place / planes->columns % planes->rows * CELL_HEIGHT;
    int first = mesh->n_axes > 0 ? mtf_mesh_coordinate(mesh, rank, 0) : 0;
    int hue = 205 + 360 * first / (mesh->n_axes > 0 ? mesh->axes[0].size : 1);
    mtf_markup(page, "<g><title>processor %d on device %d (", rank, place);
    for (int a = 0; a < mesh->n_axes; a++)
        mtf_markup(page, "%s%s %d", a > 0 ? ", " : "", mesh->axes[a].name,
                   mtf_mesh_coordinate(mesh, rank, a));
    mtf_markup(page,
               ")</title><rect class=\"cell\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" "
               "fill=\"hsl(%d 65%% %d%%)\"/><text x=\"%d\" y=\"%d\">%d</text></g>",
               x, y, CELL_WIDTH, CELL_HEIGHT, hue % 360, first % 2 == 0 ? 76 : 86, x + 4, y + 15,
               rank);
}

void mtf_machine_picture(GString *page, const MtfStepFacts *facts) {
    const MtfMesh *mesh = &facts->plan->layout->mesh;
    g_autofree char *slice = mtf_machine_slice_format(facts);
    mtf_markup(page, "<p>Machine <b>%s</b>, slice: %s. ", facts->machine->name, slice);
    int size = mtf_mesh_size(mesh);
    if (size > MAX_DEVICES) {
        mtf_markup(page, "%d devices are too many to draw.</p>", size);
        return;
    }
    mtf_markup(page, "Each cell is a device with the number of its processor; %s%s</p>",
               mesh->n_axes > 0 ? "one tint for each place on mesh axis " : "",
               mesh->n_axes > 0 ? mesh->axes[0].name : "");
    Planes planes = planes_of(&facts->pricer.map.mapping);
    int across = MIN(planes.planes, planes.planes_a_line);
    int lines = (planes.planes + planes.planes_a_line - 1) / planes.planes_a_line;
    int width = across * (planes.columns * CELL_WIDTH + GAP) - GAP;
    int height = lines * (planes.rows * CELL_HEIGHT + GAP) - GAP;
    g_string_append_printf(page,
                           "<div class=\"wide\"><svg class=\"slices\" width=\"%d\" height=\"%d\" "
                           "viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"devices\">",
                           width, height, width, height);
    for (int rank = 0; rank < size; rank++)
        draw_device(page, facts, &planes, rank);
    g_string_append(page, "</svg></div>");
}
