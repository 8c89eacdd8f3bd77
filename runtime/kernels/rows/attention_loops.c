// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/kernels/rows/attention_loops.h"

#include "layouts/kernel_work/kernel_scratch.h"
#include "runtime/kernels/base/kernel_math.h"

#include <string.h>

#define LANES MTF_ATTENTION_LANES
#define AHEAD 8 /* rows that are asked for before they are read */

#define T float
#define NAME(name) name##_f32
#include "runtime/kernels/rows/attention_loops.inc"
#undef T
#undef NAME

#define T double
#define NAME(name) name##_f64
#include "runtime/kernels/rows/attention_loops.inc"
#undef T
#undef NAME
