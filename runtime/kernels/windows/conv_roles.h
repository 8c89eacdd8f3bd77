// SPDX-License-Identifier: GPL-3.0-or-later
/* Whose dimension is whose: a convolution of any number of named dimensions as one of examples,
 * groups, channels and up to three windows. What a dimension is follows from the sides that have it:
 *
 *                 large  small  filter
 *     example       x      x             several in a row count as one
 *     read          x             x
 *     written              x      x
 *     group         x      x      x
 *
 * A side whose dimensions of one role do not lie in a row is copied first, with channels last. */
#ifndef MTF_CONV_ROLES_H
#define MTF_CONV_ROLES_H

#include "runtime/kernels/base/kernel.h"
#include "runtime/kernels/onednn/onednn_conv.h"

/* The operands that a call reads and makes, by side; the side that is made. */
MtfConvSide mtf_conv_sides(const MtfKernelCall *call, const MtfOperand *side[MTF_CONV_SIDES]);

/* Whether `dim` is one of the windows' dimensions, of any side. */
bool mtf_conv_is_windowed(const MtfAttributes *attributes, int dim);

typedef struct {
    MtfConvolution convolution;
    bool nothing;                       /* no window meets an element */
    bool uncovered;                     /* of what is made some is 0, since no window meets it */
    int64_t begin[MTF_CONV_SIDES];      /* where the convolution's part of each side begins */
    bool copied[MTF_CONV_SIDES];        /* because it does not lie right */
    MtfOperand operand[MTF_CONV_SIDES]; /* as it lies, or as its copy does; without elements */
} MtfConvRoles;

/* Works it out for a call without empty operands. */
void mtf_conv_roles(MtfConvRoles *roles, const MtfKernelCall *call);

#endif
