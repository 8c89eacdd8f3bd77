// SPDX-License-Identifier: GPL-3.0-or-later
#include "reports/drawing/slice_picture.h"

#include "reports/markup/markup.h"

#include <inttypes.h>
#include <math.h>

#define MAX_CELLS 1024 /* processors drawn, at most */
#define MAX_COLUMNS 32
#define RANGES_UP_TO 16 /* processors that are drawn with their ranges */
#define COLUMNS_OF_RANGES 4
#define HIGHEST 460   /* pixels, behind which a picture scrolls: ".high" of the style */
#define CELL_WIDTH 30 /* pixels: 32 of them fit beside each other on a page */

typedef struct {
    int columns, cells; /* processors drawn */
} Grid;

/* The last axis runs to the right where it is not too wide; of many processors several rows of it, so that
 * the picture is about as high as wide. */
static int columns_of(const MtfMesh *mesh) {
    int size = mtf_mesh_size(mesh);
    int last = mesh->n_axes > 1 ? mesh->axes[mesh->n_axes - 1].size : 1;
    if (size <= RANGES_UP_TO)
        return mesh->n_axes > 1 ? MAX(last, 1) : MIN(size, COLUMNS_OF_RANGES);
    int columns = CLAMP(last, 1, MAX_COLUMNS);
    while (2 * columns <= MAX_COLUMNS && 2 * columns * columns < size)
        columns *= 2;
    return columns;
}

static Grid grid_of(const MtfMesh *mesh) {
    return (Grid){ MAX(columns_of(mesh), 1), MIN(mtf_mesh_size(mesh), MAX_CELLS) };
}

static int rows_of(const Grid *grid) {
    return (grid->cells + grid->columns - 1) / grid->columns;
}

MtfSlicePattern mtf_slice_pattern(const MtfMesh *mesh, const MtfPlacement *placement) {
    MtfSlicePattern pattern = { 0, mtf_placement_partial_axes(placement) };
    for (int a = 0; a < mesh->n_axes; a++)
        if (placement->axis[a] >= 0)
            pattern.split |= 1u << a;
    return pattern;
}

char *mtf_slice_pattern_format(const MtfMesh *mesh, const MtfSlicePattern *pattern) {
    unsigned all = (1u << mesh->n_axes) - 1;
    const struct {
        const char *text;
        unsigned axes;
    } parts[] = {
        { "split over", pattern->split },
        { "partial sums along", pattern->partial },
        { "replicated along", all & ~(pattern->split | pattern->partial) },
    };
    GString *text = g_string_new(NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(parts); i++) {
        if (parts[i].axes == 0)
            continue;
        g_autofree char *names = mtf_mesh_mask_format(mesh, parts[i].axes);
        g_string_append_printf(text, "%s%s %s", text->len > 0 ? ", " : "", parts[i].text, names);
    }
    if (text->len == 0)
        g_string_append(text, "on one device");
    return g_string_free(text, FALSE);
}

/* Hue in degrees, light in percent. */
static void tint_of(int slice, int slices, int *hue, int *light) {
    *hue = (int)(205 + 360.0 * slice / MAX(slices, 1)) % 360;
    *light = slice % 2 == 0 ? 76 : 86;
}

void mtf_slice_fill(GString *page, int slice, int slices) {
    int hue, light;
    tint_of(slice, slices, &hue, &light);
    g_string_append_printf(page, "hsl(%d 65%% %d%%)", hue, light);
}

char *mtf_slice_color(int slice, int slices) {
    static const double turns[] = { 0, 8, 4 }; /* of red, green, blue; 12 are a circle */
    int hue, light, rgb[3];
    tint_of(slice, slices, &hue, &light);
    double spread = 0.65 * (1 - light / 100.0);
    for (int c = 0; c < 3; c++) {
        double turn = fmod(hue / 30.0 + turns[c], 12);
        double swing = fmax(-1, fmin(fmin(turn - 3, 9 - turn), 1));
        rgb[c] = (int)lround(255 * (light / 100.0 - spread * swing));
    }
    return g_strdup_printf("#%02x%02x%02x", rgb[0], rgb[1], rgb[2]);
}

/* Neighbours of a row that hold the same slice are one rectangle. */
static void add_colours(GString *svg, const MtfMesh *mesh, unsigned split, const Grid *grid) {
    int slices = mtf_mesh_group_size(mesh, split);
    for (int rank = 0, end; rank < grid->cells; rank = end) {
        int slice = mtf_mesh_group_position(mesh, split, rank);
        g_autofree char *color = mtf_slice_color(slice, slices);
        for (end = rank + 1; end < grid->cells && end % grid->columns != 0; end++)
            if (mtf_mesh_group_position(mesh, split, end) != slice)
                break;
        g_string_append_printf(svg,
                               "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"1\" fill=\"%s\"/>",
                               rank % grid->columns, rank / grid->columns, end - rank, color);
    }
}

char *mtf_slice_thumbnail(const MtfMesh *mesh, const MtfSlicePattern *pattern) {
    Grid grid = grid_of(mesh);
    g_autoptr(GString) svg = g_string_new(NULL);
    g_string_append_printf(svg,
                           "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
                           "shape-rendering=\"crispEdges\">",
                           grid.columns, rows_of(&grid));
    add_colours(svg, mesh, pattern->split, &grid);
    g_string_append(svg, "</svg>");
    g_autofree char *text = g_uri_escape_string(svg->str, " =/:", FALSE);
    return g_strdup_printf("url('data:image/svg+xml,%s')", text);
}

/* ---- The picture with its words ------------------------------------------------------------ */

/* One line a dimension that is split: "batch 0–31", counting from 0, both ends held. */
static GPtrArray *ranges_of(const MtfGraph *graph, const MtfLayout *layout, int tensor, int rank) {
    GPtrArray *lines = g_ptr_array_new_with_free_func(g_free);
    const MtfShape *shape = &mtf_graph_tensor(graph, tensor)->shape;
    const MtfPlacement *placement = &layout->tensors[tensor];
    for (int i = 0; i < shape->rank; i++) {
        const MtfDimension *dimension = mtf_graph_dimension(graph, shape->dims[i]);
        if (mtf_placement_split_axes(placement, shape->dims[i]) == 0)
            continue;
        MtfRange range =
            mtf_placement_range(&layout->mesh, placement, shape->dims[i], dimension->size, rank);
        char *line = range.begin == range.end
                         ? g_strdup_printf("%.14s: none", dimension->name)
                         : g_strdup_printf("%s %" PRId64 "–%" PRId64, dimension->name, range.begin,
                                           range.end - 1);
        g_ptr_array_add(lines, line);
    }
    return lines;
}

typedef struct {
    int width, height;
    bool ranges;
} CellSize;

static void draw_cell(GString *page, const MtfGraph *graph, const MtfLayout *layout, int tensor,
                      int rank) {
    Grid grid = grid_of(&layout->mesh);
    MtfSlicePattern pattern = mtf_slice_pattern(&layout->mesh, &layout->tensors[tensor]);
    g_autoptr(GPtrArray) lines = ranges_of(graph, layout, tensor, rank);
    CellSize size = grid.cells <= RANGES_UP_TO ? (CellSize){ 150, 24 + 15 * (int)lines->len, true }
                                               : (CellSize){ CELL_WIDTH, 22, false };
    int slice = mtf_mesh_group_position(&layout->mesh, pattern.split, rank);
    int x = rank % grid.columns * size.width, y = rank / grid.columns * size.height;
    g_string_append_printf(page,
                           "<g><rect class=\"cell\" x=\"%d\" y=\"%d\" width=\"%d\" "
                           "height=\"%d\" fill=\"",
                           x, y, size.width, size.height);
    mtf_slice_fill(page, slice, mtf_mesh_group_size(&layout->mesh, pattern.split));
    g_string_append(page, "\"/>");
    if (!size.ranges) {
        mtf_markup(page,
                   "<title>processor %d, slice %d</title><text class=\"small\" x=\"%d\" y=\"%d\" "
                   "text-anchor=\"middle\">%d</text>",
                   rank, slice, x + CELL_WIDTH / 2, y + 15, slice);
    } else {
        mtf_markup(page, "<text class=\"strong\" x=\"%d\" y=\"%d\">p%d</text>", x + 6, y + 16,
                   rank);
        for (guint i = 0; i < lines->len; i++)
            mtf_markup(page, "<text x=\"%d\" y=\"%d\">%s</text>", x + 6, y + 31 + 15 * (int)i,
                       (const char *)g_ptr_array_index(lines, i));
    }
    g_string_append(page, "</g>");
}

/* Dimensions of the tensor that are split: lines of text in a cell. */
static int split_dims(const MtfGraph *graph, const MtfLayout *layout, int tensor) {
    const MtfShape *shape = &mtf_graph_tensor(graph, tensor)->shape;
    int n = 0;
    for (int i = 0; i < shape->rank; i++)
        n += mtf_placement_split_axes(&layout->tensors[tensor], shape->dims[i]) != 0;
    return n;
}

void mtf_slice_picture(GString *page, const MtfGraph *graph, const MtfLayout *layout, int tensor) {
    Grid grid = grid_of(&layout->mesh);
    bool ranges = grid.cells <= RANGES_UP_TO;
    int width = grid.columns * (ranges ? 150 : CELL_WIDTH);
    int height = rows_of(&grid) * (ranges ? 24 + 15 * split_dims(graph, layout, tensor) : 22);
    mtf_markup(page,
               "<div class=\"wide high later\" style=\"contain-intrinsic-height:%dpx\"><svg "
               "class=\"slices\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" role=\"img\" "
               "aria-label=\"slices of %s\">",
               MIN(height, HIGHEST), width, height, width, height,
               mtf_graph_tensor(graph, tensor)->name);
    for (int rank = 0; rank < grid.cells; rank++)
        draw_cell(page, graph, layout, tensor, rank);
    g_string_append(page, "</svg></div>");
    if (grid.cells < mtf_mesh_size(&layout->mesh))
        mtf_markup(page, "<p class=\"soft\">The first %d of %d processors.</p>", grid.cells,
                   mtf_mesh_size(&layout->mesh));
}
