// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/graph/dtype.h"

#include <string.h>

static const struct {
    const char *name;
    const char *short_name;
    int64_t bytes;
} dtypes[MTF_DTYPES] = {
    [MTF_F32] = { "float32", "f32", 4 }, [MTF_F64] = { "float64", "f64", 8 },
    [MTF_I32] = { "int32", "i32", 4 },   [MTF_BF16] = { "bfloat16", "bf16", 2 },
    [MTF_I8] = { "int8", "i8", 1 },
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
    return dtype != MTF_I32 && dtype != MTF_I8;
}

MtfDtype mtf_dtype_wide(MtfDtype dtype) {
    return dtype == MTF_BF16 ? MTF_F32 : dtype;
}
