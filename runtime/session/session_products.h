// SPDX-License-Identifier: GPL-3.0-or-later
/* Which way multiplies in a run (runtime/kernels/products/product_choice.h): all ranks do as rank 0
 * decides, and a run that goes on from a checkpoint does as the one that wrote it did, where rank 0
 * has the same kernels again. */
#ifndef MTF_SESSION_PRODUCTS_H
#define MTF_SESSION_PRODUCTS_H

#include "runtime/session/session.h"

/* Collective; before any worker is made. With --trial rank 0 tries the ways of its own products
 * first, while the others wait. Fails on all ranks or on none. */
bool mtf_session_products_choose(MtfSession *session, GError **error);

/* Collective: one line on what was chosen and how many products go each way, and a warning where
 * ranks have other kernels than rank 0; free with g_free. */
char *mtf_session_products_format(const MtfSession *session);

#endif
