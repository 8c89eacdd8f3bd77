// SPDX-License-Identifier: GPL-3.0-or-later
/* What the ranks of a run did, under what was predicted, on one scale of time:
 *
 *     predicted  ▇▇▇▇▇▇░▇▇▇▇▇░░▇▇▇▇
 *     rank 0     ▇▇▇▇▇▇▇░░░▇▇▇▇▇▇░░░░░▇▇▇▇▇▇      ▇ computing   ░ a collective   gaps: idle
 *     rank 1     ▇▇▇▇▇▇▇▇░░▇▇▇▇▇▇▇▇░░░▇▇▇▇▇▇
 *
 * Time is cut into columns; each shows what takes most of it. */
#include "reports/page/page_sections.h"

#include "layouts/base/command_line.h"
#include "reports/markup/markup.h"
#include "reports/markup/palette.h"

#include <math.h>

#define LEFT 90.0
#define WIDTH 850.0
#define COLUMNS 850
#define ROW 18.0
#define PITCH 24.0
#define RANKS_DRAWN 32
#define KINDS (MTF_RESHARD_KINDS + 1) /* collectives by kind, then computing */

/* The share of each column that each kind takes. */
typedef struct {
    double share[COLUMNS][KINDS];
} Row;

static int place_of(int kind) {
    return kind >= 0 ? kind : MTF_RESHARD_KINDS;
}

static const char *color_of(int place) {
    static const int areas[KINDS] = {
        [MTF_RESHARD_ALLREDUCE] = 5, [MTF_RESHARD_REDUCE_SCATTER] = 1, [MTF_RESHARD_ALLGATHER] = 3,
        [MTF_RESHARD_ALLTOALL] = 6,  [MTF_RESHARD_HALO] = 2,           [MTF_RESHARD_KINDS] = 0,
        [MTF_RESHARD_PERMUTE] = 4
    };
    return mtf_palette_area(areas[place]);
}

static const char *name_of(int place) {
    return place == MTF_RESHARD_KINDS ? "computing" : mtf_reshard_row((MtfReshardKind)place)->name;
}

/* ---- The chart ----------------------------------------------------------------------------- */

static void add_span(Row *row, int place, double start, double end, double all) {
    double from = start / all * COLUMNS, to = end / all * COLUMNS;
    for (int c = MAX((int)from, 0); c < COLUMNS && c < to; c++)
        row->share[c][place] += MIN(to, c + 1) - MAX(from, c);
}

/* What takes most of a column; -1 = nothing does. */
static int most_of(const Row *row, int column) {
    int most = -1;
    double share = 0, all = 0;
    for (int k = 0; k < KINDS; k++) {
        all += row->share[column][k];
        if (row->share[column][k] > share) {
            share = row->share[column][k];
            most = k;
        }
    }
    return all >= 0.5 ? most : -1;
}

static void draw_row(GString *page, const Row *row, const char *name, double y) {
    mtf_markup(page,
               "<text class=\"soft\" x=\"%.0f\" y=\"%.0f\" text-anchor=\"end\">%s</text>"
               "<path class=\"rest\" d=\"M%.0f %.1fh%.0fv1h-%.0fz\"/>",
               LEFT - 8, y + 13, name, LEFT, y + ROW - 1, WIDTH, WIDTH);
    for (int c = 0, end; c < COLUMNS; c = end) {
        int place = most_of(row, c);
        for (end = c + 1; end < COLUMNS && most_of(row, end) == place;)
            end++;
        if (place >= 0)
            mtf_markup(page, "<path fill=\"%s\" d=\"M%.0f %.0fh%dv%.0fh-%dz\"/>", color_of(place),
                       LEFT + c, y, end - c, ROW, end - c);
    }
    g_string_append_c(page, '\n');
}

static void draw_predicted(GString *page, const MtfStepFacts *facts, double all) {
    g_autofree Row *row = g_new0(Row, 1);
    for (int i = 0; i < facts->schedule->length; i++) {
        const MtfInstruction *instruction = mtf_program_instruction(facts->program, i);
        int kind = mtf_step_facts_is_collective(facts, i) ? (int)instruction->reshard.kind : -1;
        add_span(row, place_of(kind), (double)facts->schedule->starts[i] / 1e9,
                 (double)facts->schedule->ends[i] / 1e9, all);
    }
    draw_row(page, row, "predicted", 0);
}

static void draw_rank(GString *page, const MtfRunTrace *trace, int rank, double all) {
    g_autofree Row *row = g_new0(Row, 1);
    g_autofree char *name = g_strdup_printf("rank %d", rank);
    for (guint i = 0; i < trace->events->len; i++) {
        const MtfRunEvent *event = &g_array_index(trace->events, MtfRunEvent, i);
        if (event->rank == rank)
            add_span(row, place_of(event->kind), event->start, event->start + event->seconds, all);
    }
    draw_row(page, row, name, (rank + 1) * PITCH);
}

static void draw(GString *page, const MtfStepFacts *facts, const MtfRunTrace *trace) {
    double all = MAX(trace->seconds, (double)facts->schedule->nanoseconds / 1e9);
    int ranks = MIN(trace->ranks, RANKS_DRAWN);
    double height = (ranks + 1) * PITCH;
    g_autofree char *end = mtf_seconds_format(all);
    mtf_markup(page,
               "<div class=\"wide\"><svg class=\"chart\" viewBox=\"0 0 960 %.0f\" role=\"img\" "
               "aria-label=\"what the ranks did\">\n",
               height + 24);
    draw_predicted(page, facts, all);
    for (int rank = 0; rank < ranks; rank++)
        draw_rank(page, trace, rank, all);
    mtf_markup(page,
               "<text class=\"soft\" x=\"%.0f\" y=\"%.0f\">0</text><text class=\"soft\" x=\"%.0f\" "
               "y=\"%.0f\" text-anchor=\"end\">%s</text></svg></div>",
               LEFT, height + 16, LEFT + WIDTH, height + 16, end);
}

/* ---- Words --------------------------------------------------------------------------------- */

static double predicted_seconds(const MtfStepFacts *facts, int kind) {
    double seconds = 0;
    for (guint i = 0; i < facts->traffic->len; i++) {
        const MtfTrafficRow *row = &g_array_index(facts->traffic, MtfTrafficRow, i);
        seconds += (int)row->kind == kind ? (double)row->nanoseconds / 1e9 : 0;
    }
    return kind >= 0 ? seconds : (double)facts->schedule->compute / 1e9;
}

static int64_t predicted_calls(const MtfStepFacts *facts, int kind) {
    int64_t calls = 0;
    for (guint i = 0; i < facts->traffic->len; i++) {
        const MtfTrafficRow *row = &g_array_index(facts->traffic, MtfTrafficRow, i);
        calls += kind < 0 || (int)row->kind == kind ? row->calls : 0;
    }
    return calls;
}

/* The trace does not say how many steps it holds; its collectives do, where a step has any. */
static double steps_of(const MtfStepFacts *facts, const MtfRunTrace *trace) {
    int calls = 0;
    for (int k = 0; k < MTF_RESHARD_KINDS; k++)
        calls += mtf_run_trace_calls(trace, 0, k);
    int64_t predicted = predicted_calls(facts, -1);
    return calls > 0 && predicted > 0 ? MAX(1, round((double)calls / (double)predicted)) : 1;
}

static bool occurs(const MtfStepFacts *facts, const MtfRunTrace *trace, int kind) {
    if (predicted_seconds(facts, kind) > 0)
        return true;
    for (int rank = 0; rank < trace->ranks; rank++)
        if (mtf_run_trace_seconds(trace, rank, kind) > 0)
            return true;
    return false;
}

/* Over the ranks: the mean, and the most. */
static double over_ranks(const MtfRunTrace *trace, int kind, double *most) {
    double sum = 0;
    *most = 0;
    for (int rank = 0; rank < trace->ranks; rank++) {
        double seconds = mtf_run_trace_seconds(trace, rank, kind);
        sum += seconds;
        *most = MAX(*most, seconds);
    }
    return sum / MAX(trace->ranks, 1);
}

static void add_calls(GString *page, const MtfStepFacts *facts, const MtfRunTrace *trace,
                      int kind) {
    if (kind >= 0)
        mtf_markup(page,
                   "<td class=\"n\">%" G_GINT64_FORMAT "</td><td class=\"n\">%.4g</td></tr>\n",
                   predicted_calls(facts, kind),
                   mtf_run_trace_calls(trace, 0, kind) / steps_of(facts, trace));
    else
        g_string_append(page, "<td class=\"n\">–</td><td class=\"n\">–</td></tr>\n");
}

static void add_kind(GString *page, const MtfStepFacts *facts, const MtfRunTrace *trace,
                     int place) {
    int kind = place == MTF_RESHARD_KINDS ? -1 : place;
    double most, steps = steps_of(facts, trace), mean = over_ranks(trace, kind, &most) / steps;
    double predicted = predicted_seconds(facts, kind);
    g_autofree char *plan = mtf_seconds_format(predicted);
    g_autofree char *run = mtf_seconds_format(mean);
    g_autofree char *longest = mtf_seconds_format(most / steps);
    mtf_markup(page,
               "<tr><td><span class=\"swatch\" style=\"background:%s\"></span>%s</td>"
               "<td class=\"n\">%s</td><td class=\"n\">%s</td><td class=\"n\">%s</td>",
               color_of(place), name_of(place), plan, run, longest);
    g_autofree char *ratio = mtf_ratio_format(mean, predicted);
    mtf_markup(page, "<td class=\"n\">%s</td>", ratio);
    add_calls(page, facts, trace, kind);
}

static void add_idle(GString *page, const MtfStepFacts *facts, const MtfRunTrace *trace) {
    double busy = 0, most, steps = steps_of(facts, trace);
    for (int place = 0; place < KINDS; place++)
        busy += over_ranks(trace, place == MTF_RESHARD_KINDS ? -1 : place, &most);
    g_autofree char *idle = mtf_seconds_format(MAX(trace->seconds - busy, 0) / steps);
    mtf_markup(page,
               "<tr><td>idle</td><td class=\"n\">0 s</td><td class=\"n\">%s</td><td class=\"n\">–"
               "</td><td class=\"n\">–</td><td class=\"n\">–</td><td class=\"n\">–</td></tr>\n",
               idle);
}

void mtf_page_ranks(GString *page, const MtfStepFacts *facts, const MtfRunTrace *trace) {
    g_string_append(page, "<h3>What the ranks did</h3>");
    draw(page, facts, trace);
    if (trace->ranks > RANKS_DRAWN)
        mtf_markup(page, "<p class=\"soft\">The first %d of %d ranks.</p>", RANKS_DRAWN,
                   trace->ranks);
    mtf_markup(page,
               "<div class=\"wide\"><table><thead><tr><th>in a step (%.0f traced)</th>"
               "<th class=\"n\">predicted</th><th class=\"n\">measured, mean of ranks</th>"
               "<th class=\"n\">longest</th><th class=\"n\">measured / predicted</th>"
               "<th class=\"n\">calls, plan</th><th class=\"n\">run</th></tr></thead><tbody>\n",
               steps_of(facts, trace));
    for (int place = KINDS - 1; place >= 0; place--)
        if (occurs(facts, trace, place == MTF_RESHARD_KINDS ? -1 : place))
            add_kind(page, facts, trace, place);
    add_idle(page, facts, trace);
    g_string_append(page, "</tbody></table></div><p class=\"soft\">A collective's time holds the "
                          "wait for the last rank to come.</p>");
}
