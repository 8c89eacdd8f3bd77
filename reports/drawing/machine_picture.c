// SPDX-License-Identifier: GPL-3.0-or-later
#include "reports/drawing/machine_picture.h"

#include "layouts/base/command_line.h"
#include "reports/facts/link_loads.h"
#include "reports/markup/markup.h"

#include <inttypes.h>
#include <math.h>

#define CELL_WIDTH 32
#define CELL_HEIGHT 20
#define LINK 14     /* between cells, and out of the picture */
#define GAP 20      /* between planes */
#define BUSIEST 8.0 /* pixels that the busiest link is wider than an idle one */
#define MAX_DEVICES 1024
#define PICTURE_WIDTH 1100

/* The two longest physical axes make a plane, the others count planes. */
typedef struct {
    int across, down; /* physical axes, -1 = none */
    int columns, rows, planes, planes_a_line;
    int drawn; /* planes */
} Planes;

static int pitch_x(const MtfLinkLoads *loads) {
    return CELL_WIDTH + (loads->switched ? 2 : LINK);
}

static int pitch_y(const MtfLinkLoads *loads) {
    return CELL_HEIGHT + (loads->switched ? 2 : LINK);
}

/* The longest axis but `other`; of equal ones the last. */
static int longest_axis(const MtfLinkLoads *loads, int other) {
    int longest = -1;
    for (int p = 0; p < loads->axes; p++)
        if (p != other && (longest < 0 || loads->axis[p].size >= loads->axis[longest].size))
            longest = p;
    return longest;
}

static int plane_width(const Planes *planes, const MtfLinkLoads *loads) {
    return planes->columns * pitch_x(loads) + LINK + GAP;
}

static int plane_height(const Planes *planes, const MtfLinkLoads *loads) {
    return planes->rows * pitch_y(loads) + LINK + GAP;
}

static Planes planes_of(const MtfLinkLoads *loads) {
    int a = longest_axis(loads, -1), b = longest_axis(loads, a);
    int64_t all = 1;
    for (int p = 0; p < loads->axes; p++)
        all *= loads->axis[p].size;
    Planes planes = { .across = MAX(a, b), .down = MIN(a, b) };
    planes.columns = planes.across >= 0 ? (int)loads->axis[planes.across].size : 1;
    planes.rows = planes.down >= 0 ? (int)loads->axis[planes.down].size : 1;
    planes.planes = (int)(all / ((int64_t)planes.columns * planes.rows));
    planes.drawn = CLAMP(MAX_DEVICES / (planes.columns * planes.rows), 1, planes.planes);
    planes.planes_a_line = MAX(1, PICTURE_WIDTH / plane_width(&planes, loads));
    return planes;
}

/* ---- Devices and links --------------------------------------------------------------------- */

typedef struct {
    const MtfStepFacts *facts;
    const MtfLinkLoads *loads;
    Planes planes;
    int *rank_at;   /* the processor of each place */
    double busiest; /* utilisation of the busiest link */
} Picture;

/* Where a place of the slice is: along the plane's axes, and which plane. */
static void place_in_planes(const Picture *picture, int place, int *column, int *row, int *plane) {
    int scale = 1;
    *column = *row = *plane = 0;
    for (int p = picture->loads->axes - 1; p >= 0; p--) {
        int size = (int)picture->loads->axis[p].size, at = place % size;
        place /= size;
        if (p == picture->planes.across) {
            *column = at;
        } else if (p == picture->planes.down) {
            *row = at;
        } else {
            *plane += at * scale;
            scale *= size;
        }
    }
}

/* A link, from a place on an axis in a direction of the picture. */
static void draw_link(GString *page, const Picture *picture, int axis, int64_t from,
                      const int *line) {
    const MtfLinkAxis *a = &picture->loads->axis[axis];
    double bytes = a->bytes[from], busy = mtf_link_utilisation(picture->loads, axis, bytes);
    g_autofree char *text = mtf_bytes_format(bytes);
    mtf_markup(page,
               "<path class=\"link%s\" stroke-width=\"%.1f\" d=\"M%d %dl%d %d\"><title>axis %d, "
               "%" PRId64 " to %" PRId64 ": %s each way, %.1f %% busy</title></path>",
               bytes > 0 ? "" : " idle", 1 + BUSIEST * busy / MAX(picture->busiest, 1e-9), line[0],
               line[1], line[2], line[3], axis, from, (from + 1) % a->size, text, 100 * busy);
}

/* The link behind a place along the plane's axis, and the stub before the first place of a ring. */
static void draw_links_of(GString *page, const Picture *picture, int axis, int at,
                          const int *corner, bool across) {
    const MtfLinkAxis *a = &picture->loads->axis[axis];
    int x = corner[0] + (across ? CELL_WIDTH : CELL_WIDTH / 2);
    int y = corner[1] + (across ? CELL_HEIGHT / 2 : CELL_HEIGHT);
    int dx = across ? LINK : 0, dy = across ? 0 : LINK;
    bool ring = a->wrap && a->size > 2;
    if (at + 1 < a->size || ring)
        draw_link(page, picture, axis, at, (const int[]){ x, y, dx, dy });
    if (at == 0 && ring)
        draw_link(
            page, picture, axis, a->size - 1,
            (const int[]){ across ? corner[0] - LINK : x, across ? y : corner[1] - LINK, dx, dy });
}

/* Slanted, to the next plane, for the physical axes that count planes. */
static void draw_slanted(GString *page, const Picture *picture, int place, const int *corner) {
    int x = corner[0] + CELL_WIDTH - 4, y = corner[1], below = 1;
    for (int p = picture->loads->axes - 1; p >= 0; p--) {
        const MtfLinkAxis *a = &picture->loads->axis[p];
        int at = place / below % (int)a->size;
        below *= (int)a->size;
        if (p == picture->planes.across || p == picture->planes.down || a->size == 1)
            continue;
        if (at + 1 < a->size || (a->wrap && a->size > 2))
            draw_link(page, picture, p, at, (const int[]){ x, y, LINK / 2, -LINK / 2 });
        x -= 8;
    }
}

static void append_tint(GString *page, const MtfMesh *mesh, int rank) {
    int first = mesh->n_axes > 0 ? mtf_mesh_coordinate(mesh, rank, 0) : 0;
    int hue = 205 + 360 * first / (mesh->n_axes > 0 ? mesh->axes[0].size : 1);
    g_string_append_printf(page, "hsl(%d 65%% %d%%)", hue % 360, first % 2 == 0 ? 76 : 86);
}

static void draw_device(GString *page, const Picture *picture, int place) {
    const MtfMesh *mesh = &picture->facts->plan->layout->mesh;
    const Planes *planes = &picture->planes;
    int column, row, plane, rank = picture->rank_at[place];
    place_in_planes(picture, place, &column, &row, &plane);
    if (plane >= planes->drawn)
        return;
    int corner[2] = { LINK + plane % planes->planes_a_line * plane_width(planes, picture->loads) +
                          column * pitch_x(picture->loads),
                      LINK + plane / planes->planes_a_line * plane_height(planes, picture->loads) +
                          row * pitch_y(picture->loads) };
    if (!picture->loads->switched) {
        draw_slanted(page, picture, place, corner);
        if (planes->across >= 0)
            draw_links_of(page, picture, planes->across, column, corner, true);
        if (planes->down >= 0)
            draw_links_of(page, picture, planes->down, row, corner, false);
    }
    mtf_markup(page, "<g><title>processor %d on device %d (", rank, place);
    for (int a = 0; a < mesh->n_axes; a++)
        mtf_markup(page, "%s%s %d", a > 0 ? ", " : "", mesh->axes[a].name,
                   mtf_mesh_coordinate(mesh, rank, a));
    mtf_markup(page, ")</title><rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"3\" fill=\"",
               corner[0], corner[1], CELL_WIDTH, CELL_HEIGHT);
    append_tint(page, mesh, rank);
    mtf_markup(page, "\"/><text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%d</text></g>\n",
               corner[0] + CELL_WIDTH / 2, corner[1] + 14, rank);
}

static void draw(GString *page, const Picture *picture) {
    const Planes *planes = &picture->planes;
    int size = mtf_mesh_size(&picture->facts->plan->layout->mesh);
    int lines = (planes->drawn + planes->planes_a_line - 1) / planes->planes_a_line;
    int width =
        LINK + MIN(planes->drawn, planes->planes_a_line) * plane_width(planes, picture->loads);
    int height = LINK + lines * plane_height(planes, picture->loads);
    g_string_append_printf(page,
                           "<div class=\"wide high\"><svg class=\"slices torus\" width=\"%d\" "
                           "height=\"%d\" viewBox=\"0 0 %d %d\" role=\"img\" "
                           "aria-label=\"devices and links\">\n",
                           width, height, width, height);
    for (int place = 0; place < size; place++)
        draw_device(page, picture, place);
    g_string_append(page, "</svg></div>");
}

/* ---- Slices of a tensor --------------------------------------------------------------------- */

#define TILE 9 /* pixels of a device and the space around it */

static int *processors_of_places(const MtfStepFacts *facts) {
    int size = mtf_mesh_size(&facts->plan->layout->mesh);
    int *rank_at = g_new0(int, size);
    for (int rank = 0; rank < size; rank++)
        rank_at[mtf_mapping_place(&facts->pricer.map.mapping, rank)] = rank;
    return rank_at;
}

/* One path holds all devices with the same slice. */
static void add_tiles(GString *page, const Picture *picture, unsigned split, int slice) {
    const MtfMesh *mesh = &picture->facts->plan->layout->mesh;
    const Planes *planes = &picture->planes;
    g_string_append(page, "<path fill=\"");
    mtf_slice_fill(page, slice, mtf_mesh_group_size(mesh, split));
    g_string_append(page, "\" d=\"");
    for (int place = 0; place < mtf_mesh_size(mesh); place++) {
        int column, row, plane;
        if (mtf_mesh_group_position(mesh, split, picture->rank_at[place]) != slice)
            continue;
        place_in_planes(picture, place, &column, &row, &plane);
        int x = plane * (planes->columns * TILE + TILE) + column * TILE;
        if (plane < planes->drawn)
            g_string_append_printf(page, "M%d %dh%dv%dh-%dz", x, row * TILE, TILE - 1, TILE - 1,
                                   TILE - 1);
    }
    mtf_markup(page, "\"><title>slice %d</title></path>", slice);
}

void mtf_machine_slices(GString *page, const MtfStepFacts *facts, const MtfSlicePattern *pattern) {
    g_autoptr(MtfLinkLoads) loads = mtf_link_loads_new(facts);
    g_autofree int *rank_at = processors_of_places(facts);
    const Picture picture = { facts, loads, planes_of(loads), rank_at, 0 };
    const Planes *planes = &picture.planes;
    if (planes->columns * planes->rows > MAX_DEVICES)
        return;
    int width = planes->drawn * (planes->columns + 1) * TILE, height = planes->rows * TILE;
    g_string_append_printf(page,
                           "<div class=\"wide high\"><svg class=\"slices\" width=\"%d\" "
                           "height=\"%d\" viewBox=\"0 0 %d %d\" role=\"img\" "
                           "aria-label=\"slices on the machine\">",
                           width, height, width, height);
    int slices = mtf_mesh_group_size(&facts->plan->layout->mesh, pattern->split);
    for (int slice = 0; slice < slices; slice++)
        add_tiles(page, &picture, pattern->split, slice);
    g_string_append(page, "</svg></div>");
}

/* ---- Words --------------------------------------------------------------------------------- */

/* The mesh axes whose members lie along a physical axis. */
static char *mesh_axes_on(const MtfStepFacts *facts, int axis) {
    const MtfMapping *mapping = &facts->pricer.map.mapping;
    unsigned mask = 0;
    for (int i = 0; i < mapping->pieces; i++)
        if (mapping->piece[i].physical_axis == axis && mapping->piece[i].size > 1)
            mask |= 1u << mapping->piece[i].mesh_axis;
    return mask != 0 ? mtf_mesh_mask_format(&facts->plan->layout->mesh, mask) : g_strdup("–");
}

static void add_axis(GString *page, const MtfStepFacts *facts, const MtfLinkLoads *loads, int p) {
    const MtfLinkAxis *axis = &loads->axis[p];
    double busy = mtf_link_utilisation(loads, p, axis->busiest);
    g_autofree char *bytes = mtf_bytes_format(axis->busiest);
    g_autofree char *mesh_axes = mesh_axes_on(facts, p);
    g_autofree char *bandwidth = mtf_count_format(axis->bandwidth);
    mtf_markup(page,
               "<tr><td>%s %d</td><td class=\"n\">%" PRId64 "</td><td>%s</td><td>%s</td><td "
               "class=\"n\">%sB/s</td><td class=\"n\">%s</td><td class=\"n\">%.1f %%</td>"
               "<td><svg class=\"bar2\" width=\"120\" height=\"8\" role=\"img\" "
               "aria-label=\"busy\"><rect class=\"rest\" width=\"120\" height=\"8\"/><rect "
               "class=\"network\" width=\"%.1f\" height=\"8\"/></svg></td></tr>\n",
               loads->switched ? "level" : "axis", p, axis->size,
               loads->switched ? "switch"
               : axis->wrap    ? "ring"
                               : "line",
               mesh_axes, bandwidth, bytes, 100 * busy, 120 * MIN(busy, 1));
}

static void add_table(GString *page, const MtfStepFacts *facts, const MtfLinkLoads *loads) {
    mtf_markup(page,
               "<h3>What the %s carry</h3><div class=\"wide\"><table><thead><tr><th>physical</th>"
               "<th class=\"n\">%s</th><th>kind</th><th>mesh axes on it</th><th class=\"n\">"
               "bandwidth</th><th class=\"n\">busiest %s, each way</th><th class=\"n\">busy</th>"
               "<th></th></tr></thead><tbody>\n",
               loads->switched ? "switches' ports" : "links",
               loads->switched ? "children" : "places", loads->switched ? "port" : "link");
    for (int p = 0; p < loads->axes; p++)
        add_axis(page, facts, loads, p);
    mtf_markup(page,
               "</tbody></table></div><p class=\"soft\">Bytes of a whole step; busy is the share "
               "of the step that they take at full bandwidth. %s</p>",
               loads->switched
                   ? "A port is what one child of that level sends through."
                   : "What a group sends is spread over its physical axes in proportion to their "
                     "bandwidth and evenly over its hops.");
}

static void add_caption(GString *page, const Picture *picture) {
    const MtfMesh *mesh = &picture->facts->plan->layout->mesh;
    mtf_markup(page, "Each cell is a device with the number of its processor%s%s. ",
               mesh->n_axes > 0 ? "; one tint for each place on mesh axis " : "",
               mesh->n_axes > 0 ? mesh->axes[0].name : "");
    if (!picture->loads->switched)
        g_string_append(page, "A link is as wide as it is busy, compared with the busiest; "
                              "those that leave the picture close a ring, slanted ones lead to "
                              "the next plane. ");
    if (picture->planes.drawn < picture->planes.planes)
        mtf_markup(page, "%d of %d planes are drawn; links of the others carry the same.",
                   picture->planes.drawn, picture->planes.planes);
    g_string_append(page, "</p>");
}

void mtf_machine_picture(GString *page, const MtfStepFacts *facts) {
    g_autofree char *slice = mtf_network_format(&facts->pricer.map.slice);
    g_autoptr(MtfLinkLoads) loads = mtf_link_loads_new(facts);
    g_autofree int *rank_at = processors_of_places(facts);
    double busiest = 0;
    for (int p = 0; p < loads->axes; p++)
        busiest = MAX(busiest, mtf_link_utilisation(loads, p, loads->axis[p].busiest));
    const Picture picture = { facts, loads, planes_of(loads), rank_at, busiest };
    mtf_markup(page, "<p>Machine <b>%s</b>, slice: %s. ", facts->machine->name, slice);
    if (picture.planes.columns * picture.planes.rows > MAX_DEVICES) {
        mtf_markup(page, "A plane of %d devices is too large to draw.</p>",
                   picture.planes.columns * picture.planes.rows);
    } else {
        add_caption(page, &picture);
        draw(page, &picture);
    }
    add_table(page, facts, loads);
}
