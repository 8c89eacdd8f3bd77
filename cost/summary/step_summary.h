// SPDX-License-Identifier: GPL-3.0-or-later
/* What somebody wants to know of a plan before anything else: parallelism in the field's words, how
 * fast, how well the devices are used, whether it fits, what bounds the step. Members of `predicted`:
 *
 *     {"parallelism", "degrees": {…}, "precision", "items", "items_per_step", "items_per_second",
 *      "model_flops", "mfu", "flops_per_second_per_device", "peak_flops_per_second", "peak_precision",
 *      "memory_limit", "memory_share", "fits", "bound_by", "shares": {name: seconds},
 *      "unaligned": {…} (unaligned_products.h)}, and what the framework takes (framework_memory.h)
 *
 * Items are tokens where the graph reads tokens, else examples. Model flops are those of the products
 * that the model needs, without recomputation: of a training step three times the forward products',
 * as PaLM (arXiv 2204.02311, appendix B) counts them; `mfu` is their share of what all devices' peaks
 * of the precision do in a step. */
#ifndef MTF_STEP_SUMMARY_H
#define MTF_STEP_SUMMARY_H

#include "cost/price/price.h"

#include <cjson/cJSON.h>

/* Adds the members above to what mtf_predict returned of the program. */
void mtf_summary_add(cJSON *predicted, const MtfPricer *pricer, const MtfProgram *program,
                     int64_t memory_limit);

/* How fast a plan of one mesh or of several is, in the terms above. */
typedef struct {
    const char *precision, *items;
    double items_per_step, model_flops;
    double peak;                /* of a device, floating-point operations a second, */
    const char *peak_precision; /* of these */
    int64_t devices;
} MtfStepSpeed;

/* Adds "precision" to "peak_precision" of the members above; `predicted` has "step_seconds". */
void mtf_summary_add_speed(cJSON *predicted, const MtfStepSpeed *speed);

/* Where what a line says begins, behind its word. */
#define MTF_SUMMARY_COLUMN 15

/* The members as lines for people, "" where `predicted` has none; free with g_free. */
char *mtf_summary_format(const cJSON *predicted);

#endif
