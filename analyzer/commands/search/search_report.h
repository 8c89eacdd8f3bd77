// SPDX-License-Identifier: GPL-3.0-or-later
/* What `search` says of the plan that it found, of how it was chosen and proven, and where nothing
 * fits, of what would. */
#ifndef MTF_SEARCH_REPORT_H
#define MTF_SEARCH_REPORT_H

#include "analyzer/planner/variant_search.h"
#include "layouts/plan_file/plan.h"

typedef struct {
    const MtfMachine *machine;
    bool machine_named;     /* by the user */
    const char *precision;  /* as the user asked, or NULL */
    const char *exportable; /* … */
    int64_t memory_limit;   /* bytes of a device */
    int64_t
        programs_limit; /* of these, what the plan's own program was to take (software_search.h) */
    bool may_cut;       /* a search for stages may be asked for instead */
    const MtfVariantAnswer *found;
    const char *notes; /* on its plan, where it is printed for people */
} MtfSearchReport;

/* For people, and as JSON, on standard output. */
void mtf_search_print(const MtfSearchReport *report, const MtfPlan *plan);
void mtf_search_print_json(const MtfSearchReport *report, const MtfPlan *plan);

/* Adds to a plan's `search` in what parts attention runs, and the variants that the step's was chosen from. */
void mtf_search_add_variants(cJSON *object, const MtfVariantAnswer *found);

/* Sets the error that says that nothing fits, and what would; false. */
bool mtf_search_fail_unfit(const MtfSearchReport *report, GError **error);

/* When a command began, had read its graph and had searched; monotonic microseconds, 0: it did not. */
typedef struct {
    gint64 begun, read, searched;
} MtfSearchTimes;

/* Says on standard error what took longer than the `wanted` seconds, 0 for no limit, however little was searched. */
void mtf_search_warn_late(double wanted, const MtfSearchTimes *times, const MtfGraph *written);

#endif
