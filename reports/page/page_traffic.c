// SPDX-License-Identifier: GPL-3.0-or-later
#include "reports/page/page_sections.h"

#include "layouts/base/command_line.h"
#include "reports/facts/transfers.h"
#include "reports/markup/markup.h"

#include <inttypes.h>

#define DEAREST 10

static double share_of(const MtfStepFacts *facts, int64_t nanoseconds) {
    return 100 * (double)nanoseconds / (double)MAX(facts->schedule->nanoseconds, 1);
}

static void add_row(GString *page, const MtfStepFacts *facts, const MtfTrafficRow *row) {
    g_autofree char *axes = mtf_mesh_mask_format(&facts->plan->layout->mesh, row->axes);
    g_autofree char *payload = mtf_bytes_format((double)row->bytes);
    g_autofree char *links = mtf_bytes_format(row->link_bytes);
    g_autofree char *seconds = mtf_seconds_format((double)row->nanoseconds / 1e9);
    mtf_markup(page,
               "<tr><td>%s%s</td><td>%s</td><td>%s</td><td class=\"n\">%" PRId64
               "</td><td class=\"n\">%s</td><td class=\"n\">%s</td><td class=\"n\">%s</td>"
               "<td class=\"n\">%.1f %%</td></tr>\n",
               mtf_reshard_row(row->kind)->name, row->reduction == MTF_REDUCE_MAX ? " max" : "",
               axes, mtf_traffic_group_name(row->group), row->calls, payload, links, seconds,
               share_of(facts, row->nanoseconds));
}

static void add_transfer(GString *page, const MtfStepFacts *facts, const MtfTransfer *transfer) {
    g_autofree char *payload = mtf_bytes_format((double)transfer->bytes / transfer->count);
    g_autofree char *seconds = mtf_seconds_format((double)transfer->nanoseconds / 1e9);
    mtf_markup(page,
               "<tr><td class=\"mono\">%s</td><td class=\"mono\">%s</td><td>%s</td><td>%s</td>"
               "<td class=\"n\">%d</td><td class=\"n\">%s</td><td class=\"n\">%s</td>"
               "<td class=\"n\">%.1f %%</td></tr>\n",
               transfer->operation, transfer->tensor, transfer->collective, transfer->axes,
               transfer->count, payload, seconds, share_of(facts, transfer->nanoseconds));
}

static void add_costliest(GString *page, const MtfStepFacts *facts) {
    g_autoptr(GPtrArray) transfers = mtf_transfers_new(facts);
    g_string_append(page,
                    "<h3>The costliest transfers</h3><div class=\"wide\"><table><thead><tr>"
                    "<th>operation that causes it</th><th>tensor</th><th>collective</th>"
                    "<th>over</th><th class=\"n\">times</th><th class=\"n\">payload each</th>"
                    "<th class=\"n\">time, all</th><th class=\"n\">of the step</th></tr></thead>"
                    "<tbody>\n");
    for (guint i = 0; i < MIN(transfers->len, DEAREST); i++)
        add_transfer(page, facts, g_ptr_array_index(transfers, i));
    g_string_append(page, "</tbody></table></div>");
    if (transfers->len > DEAREST)
        mtf_markup(page, "<p class=\"soft\">%u cheaper ones are in timeline.json.</p>",
                   transfers->len - DEAREST);
}

void mtf_page_traffic(GString *page, const MtfStepFacts *facts) {
    if (facts->traffic->len == 0) {
        g_string_append(page, "<p>No processor sends anything during a step.</p>");
        return;
    }
    g_string_append(page,
                    "<div class=\"wide\"><table><thead><tr><th>collective</th><th>over</th>"
                    "<th>serves</th><th class=\"n\">calls</th><th class=\"n\">payload</th>"
                    "<th class=\"n\">onto links</th><th class=\"n\">time</th><th class=\"n\">of "
                    "the step</th></tr></thead><tbody>\n");
    for (guint i = 0; i < facts->traffic->len; i++)
        add_row(page, facts, &g_array_index(facts->traffic, MtfTrafficRow, i));
    g_string_append(page, "</tbody></table></div>");
    add_costliest(page, facts);
}
