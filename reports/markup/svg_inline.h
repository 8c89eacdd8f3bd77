// SPDX-License-Identifier: GPL-3.0-or-later
/* A drawing of Graphviz' as part of a page. Its SVG document becomes an element that HTML allows
 * anywhere, several times in a page:
 *
 *     <?xml …><!DOCTYPE …><svg width="98pt" …>     <svg class="picture" width="113" …>
 *     <g id="n3" class="node"><title>n3</title>    <g id="p2-n3" class="node">
 *     <a xlink:href="#t12" xlink:title="wq">       <a href="#t12"><title>wq</title>
 *     <g class="edge at-n3 at-n4">                 <g class="edge at-n3 at-n4">
 *     fill="url(#l_0)"                             fill="url(#p2-l_0)"
 *
 * and what a browser takes to be so anyway is left out. */
#ifndef MTF_SVG_INLINE_H
#define MTF_SVG_INLINE_H

#include <glib.h>
#include <stdbool.h>

/* Appends the document `svg`, its ids after `prefix`; `label` says to those who do not see what it
 * shows. False, with nothing appended, when it is not well formed. */
bool mtf_svg_inline(GString *page, const char *svg, const char *prefix, const char *label);

#endif
