// SPDX-License-Identifier: GPL-3.0-or-later
/* A page for trying a prompt in a browser: a form that asks POST /v1/completions and shows the text, or the
 * error's sentence. It loads nothing else. */
#ifndef MTF_TRY_PAGE_H
#define MTF_TRY_PAGE_H

#define MTF_TRY_PAGE_TYPE "text/html; charset=utf-8"

extern const char mtf_try_page[];

#endif
