// SPDX-License-Identifier: GPL-3.0-or-later
/* Runs a template's tree: what it says of some names' values. Loops have scopes of their own, as in Jinja, so
 * that what they set is gone behind them, and namespaces are what may be changed from inside. */
#ifndef MTF_TEMPLATE_RUN_H
#define MTF_TEMPLATE_RUN_H

#include "runtime/template/template_tree.h"

/* `names` is an object. NULL with a bad-input error, "line 3: …", where the template says so itself, asks for
 * what is not there, or says more than 16 MiB. Free with g_free. */
char *mtf_template_run(const MtfNode *template, const cJSON *names, GError **error);

#endif
