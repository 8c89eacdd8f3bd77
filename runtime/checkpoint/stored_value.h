// SPDX-License-Identifier: GPL-3.0-or-later
/* Single values of safetensors files, of every type that numbers are published in. */
#ifndef MTF_STORED_VALUE_H
#define MTF_STORED_VALUE_H

#include "layouts/graph/dtype.h"
#include "runtime/checkpoint/safetensors.h"

/* Whether values of that type can be read into a variable. */
bool mtf_stored_type_is_readable(MtfStoredType type);

/* The type that keeps a dtype's values to the bit. */
MtfStoredType mtf_stored_type_of(MtfDtype dtype);

/* Element `i` of an array of stored values of a readable type. */
double mtf_stored_value(MtfStoredType type, const char *elements, int64_t i);

/* Sets it, rounded to the nearest, ties to even. `type` is F64, F32, F16 or BF16. */
void mtf_stored_value_set(MtfStoredType type, char *elements, int64_t i, double value);

#endif
