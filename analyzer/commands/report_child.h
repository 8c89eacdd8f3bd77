// SPDX-License-Identifier: GPL-3.0-or-later
/* Drawings are made by another program, meshtf-report, so that they can neither crash nor stall a
 * search. It is looked for beside the running program, then in PATH. */
#ifndef MTF_REPORT_CHILD_H
#define MTF_REPORT_CHILD_H

#include <glib.h>
#include <stdbool.h>

/* Runs meshtf-report with these arguments (NULL-terminated, its own name left out), standard
 * streams shared and its errors told in the name of the running command, waits for it, and returns its exit
 * status. Fails when it cannot be started or is killed. */
int mtf_report_run(const char *const *arguments, GError **error);

/* Runs `meshtf-report PLAN -o FOLDER` and waits for it. Fails when it is not there or does not
 * succeed. */
bool mtf_report_child(const char *plan, const char *folder, GError **error);

#endif
