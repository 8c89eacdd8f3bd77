// SPDX-License-Identifier: GPL-3.0-or-later
/* What products lose whose rows are no whole number of 16 bytes (cost/machine/kernel_rates.h), and what would
 * do instead: a vocabulary of 50257 in bfloat16 takes eight times as long on an H100 as one padded to 50304. */
#ifndef MTF_UNALIGNED_PRODUCTS_H
#define MTF_UNALIGNED_PRODUCTS_H

#include "cost/price/price.h"

#include <cjson/cJSON.h>

/* {"dimension", "size", "padded", "seconds"}: the dimension of whose products most is lost, its size, the next
 * multiple of 128, and the seconds a step that all such products would take less; the caller owns it. NULL
 * where that is less than a hundredth of the program's price, or no dimension of an odd size stands behind it. */
cJSON *mtf_unaligned_products(const MtfPricer *pricer, const MtfProgram *program);

/* That object in words, NULL of NULL; free with g_free. */
char *mtf_unaligned_products_format(const cJSON *unaligned);

#endif
