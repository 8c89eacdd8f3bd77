// SPDX-License-Identifier: GPL-3.0-or-later
/* Puts other operations in the place of some of a graph, which compute the same another way: they stand where
 * the operation stood, and what it made is read as they make it. */
#ifndef MTF_REPLACE_OPERATIONS_H
#define MTF_REPLACE_OPERATIONS_H

#include "layouts/building/builder.h"

#define MTF_REPLACED_OUTPUTS 4

typedef struct {
    const char *option; /* what asks for it: "--key-parts" */
    const char *what;   /* what none is left of where nothing is replaced: "attention whose …" */

    /* Whether an operation is replaced by one in `parts` parts. */
    bool (*applies)(const MtfGraph *graph, const MtfOperation *op, int parts);

    /* Builds what takes the place of operation `operation`, in its phase and place already, called
     * NAME/…; the last one NAME, which the operation then no longer has. `results` are its outputs. */
    void (*build)(MtfBuilder *b, const MtfOperation *op, char *name, int parts, int *results);
} MtfReplacement;

/* Replaces the operations of a graph without composites, which is canonical afterwards. 0 and 1 parts leave it
 * as it is. Fails with a bad-input error where nothing applies, or a name is taken. */
bool mtf_replace_operations(MtfGraph *graph, const MtfReplacement *replacement, int parts,
                            GError **error);

/* A dimension NAME/WHAT below `dim`, split evenly alone where that is, which all replacements share. */
int mtf_dimension_below(MtfBuilder *b, int dim, const char *what, int64_t size);

#endif
