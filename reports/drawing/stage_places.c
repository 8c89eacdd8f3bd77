// SPDX-License-Identifier: GPL-3.0-or-later
#include "reports/drawing/stage_places.h"

#include "reports/drawing/slice_picture.h"
#include "reports/markup/markup.h"

#define CELL 18
#define GAP 10
#define WIDTH 1040
#define MAX_COLUMNS 32
#define MAX_DEVICES 4096

/* A frame has columns x rows cells. */
typedef struct {
    int columns, rows, frames, frames_a_line;
} Frames;

static Frames frames_of(const MtfNetwork *network, int devices) {
    int last = network->axes - 1;
    Frames frames = { .columns = 1, .rows = 1 };
    if (last >= 0)
        frames.columns = (int)network->axis[last].size;
    if (last >= 1 && !network->switched)
        frames.rows = (int)network->axis[last - 1].size;
    /* What is too wide is one row behind the other. */
    if (frames.columns > MAX_COLUMNS) {
        frames.rows *= (frames.columns + MAX_COLUMNS - 1) / MAX_COLUMNS;
        frames.columns = MAX_COLUMNS;
    }
    int cells = frames.columns * frames.rows;
    frames.frames = (devices + cells - 1) / cells;
    frames.frames_a_line = CLAMP(WIDTH / (frames.columns * CELL + GAP), 1, frames.frames);
    return frames;
}

static int frame_width(const Frames *frames) {
    return frames->columns * CELL + GAP;
}

static int frame_height(const Frames *frames) {
    return frames->rows * CELL + GAP;
}

static void draw_device(GString *page, const MtfPipelineFacts *facts, const Frames *frames,
                        int device) {
    int cells = frames->columns * frames->rows, frame = device / cells, cell = device % cells;
    int x = frame % frames->frames_a_line * frame_width(frames) + cell % frames->columns * CELL;
    int y = frame / frames->frames_a_line * frame_height(frames) + cell / frames->columns * CELL;
    int domain;
    g_autofree char *stages = mtf_pipeline_stages_on(facts, device, &domain);
    mtf_markup(page,
               "<g><title>device %d: stage %s, domain %d</title><rect x=\"%d\" y=\"%d\" "
               "width=\"%d\" height=\"%d\" rx=\"2\" fill=\"",
               device, stages, domain, x, y, CELL - 1, CELL - 1);
    mtf_slice_fill(page, domain, facts->pipeline->order->ranks);
    mtf_markup(page,
               "\"/><text class=\"small\" style=\"fill:#000\" x=\"%d\" y=\"%d\" "
               "text-anchor=\"middle\">%d</text></g>\n",
               x + CELL / 2, y + CELL - 5, domain);
}

void mtf_stage_places(GString *page, const MtfPipelineFacts *facts) {
    int devices = mtf_pipeline_devices(facts->pipeline), drawn = MIN(devices, MAX_DEVICES);
    Frames frames = frames_of(&facts->network, drawn);
    int lines = (frames.frames + frames.frames_a_line - 1) / frames.frames_a_line;
    int width = frames.frames_a_line * frame_width(&frames), height = lines * frame_height(&frames);
    g_autofree char *network = mtf_network_format(&facts->network);
    mtf_markup(
        page,
        "<h3>Where they are</h3><p>Machine <b>%s</b>, %s. A cell is a device with the number "
        "of its domain, a group of cells %s.",
        facts->machine->name, network,
        facts->network.switched ? "shares a switch" : "is a plane of the torus");
    if (devices > MAX_DEVICES)
        mtf_markup(page, " The first %d of %d are drawn.", drawn, devices);
    g_string_append_printf(page,
                           "</p><div class=\"wide high\"><svg class=\"slices\" width=\"%d\" "
                           "height=\"%d\" viewBox=\"0 0 %d %d\" role=\"img\" "
                           "aria-label=\"domains on the machine\">\n",
                           width, height, width, height);
    for (int device = 0; device < drawn; device++)
        draw_device(page, facts, &frames, device);
    g_string_append(page, "</svg></div>");
}
