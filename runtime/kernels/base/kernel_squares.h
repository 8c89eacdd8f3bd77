// SPDX-License-Identifier: GPL-3.0-or-later
/* The sum of the squares of a slice's elements, in double: what the norm of gradients is made of,
 * in one pass at the speed of memory. */
#ifndef MTF_KERNEL_SQUARES_H
#define MTF_KERNEL_SQUARES_H

#include "runtime/kernels/base/kernel.h"

/* The sum of x^2 over all elements of a float operand; 0 of an empty one. Squares are exact and
 * added up in double, in an order that the number of elements fixes. */
double mtf_operand_squares(const MtfOperand *operand);

#endif
