// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/graph/dtype.h"

#include <string.h>

static const struct {
    const char *name;
    const char *short_name;
    int64_t bytes;
    double most;
    bool is_float;
} dtypes[MTF_DTYPES] = {
    [MTF_F32] = { "float32", "f32", 4, 0x1p24, true },
    [MTF_F64] = { "float64", "f64", 8, 0x1p53, true },
    [MTF_I32] = { "int32", "i32", 4, INT32_MAX, false },
    [MTF_BF16] = { "bfloat16", "bf16", 2, 0x1p8, true },
    [MTF_I8] = { "int8", "i8", 1, INT8_MAX, false },
    [MTF_I64] = { "int64", "i64", 8, 0x1p53, false },
    [MTF_BOOL] = { "bool", "bool", 1, 1, false },
};

const char *mtf_dtype_name(MtfDtype dtype) {
    return dtypes[dtype].name;
}

const char *mtf_dtype_short_name(MtfDtype dtype) {
    return dtypes[dtype].short_name;
}

bool mtf_dtype_from_name(const char *name, MtfDtype *dtype) {
    for (int i = 0; i < MTF_DTYPES; i++) {
        if (strcmp(name, dtypes[i].name) == 0 || strcmp(name, dtypes[i].short_name) == 0) {
            *dtype = (MtfDtype)i;
            return true;
        }
    }
    return false;
}

int64_t mtf_dtype_bytes(MtfDtype dtype) {
    return dtypes[dtype].bytes;
}

bool mtf_dtype_is_float(MtfDtype dtype) {
    return dtypes[dtype].is_float;
}

bool mtf_dtype_is_integer(MtfDtype dtype) {
    return dtype == MTF_I32 || dtype == MTF_I64;
}

double mtf_dtype_most(MtfDtype dtype) {
    return dtypes[dtype].most;
}

MtfDtype mtf_dtype_wide(MtfDtype dtype) {
    return dtype == MTF_BF16 ? MTF_F32 : dtype;
}
