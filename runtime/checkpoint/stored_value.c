// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/checkpoint/stored_value.h"

#include <math.h>
#include <string.h>

MtfStoredType mtf_stored_type_of(MtfDtype dtype) {
    switch (dtype) {
    case MTF_F32:
        return MTF_STORED_F32;
    case MTF_F64:
        return MTF_STORED_F64;
    case MTF_BF16:
        return MTF_STORED_BF16;
    case MTF_I8:
        return MTF_STORED_I8;
    case MTF_I64:
        return MTF_STORED_I64;
    case MTF_BOOL:
        return MTF_STORED_BOOL;
    default:
        return MTF_STORED_I32;
    }
}

bool mtf_stored_type_is_readable(MtfStoredType type) {
    return type <= MTF_STORED_I8 || type == MTF_STORED_U8 || type == MTF_STORED_BOOL ||
           type == MTF_STORED_F8_E4M3 || type == MTF_STORED_F8_E5M2;
}

/* IEEE half precision: 1 sign bit, 5 of the exponent, 10 of the fraction. */
static double half_value(guint16 bits) {
    int exponent = bits >> 10 & 31;
    double fraction = bits & 1023;
    double value = exponent == 0    ? ldexp(fraction, -24)
                   : exponent == 31 ? (fraction != 0 ? (double)NAN : (double)INFINITY)
                                    : ldexp(1024 + fraction, exponent - 25);
    return bits >> 15 ? -value : value;
}

/* Eight bits, 4 of the exponent and 3 of the fraction, without infinities: all ones is no number. */
static double eighth_value(guint8 bits) {
    int exponent = bits >> 3 & 15;
    double fraction = bits & 7;
    double value = (bits & 127) == 127 ? (double)NAN
                   : exponent == 0     ? ldexp(fraction, -9)
                                       : ldexp(8 + fraction, exponent - 10);
    return bits >> 7 ? -value : value;
}

/* The upper half of a single precision number. */
static double brain_value(guint16 bits) {
    guint32 word = (guint32)bits << 16;
    float value;
    memcpy(&value, &word, sizeof value);
    return (double)value;
}

double mtf_stored_value(MtfStoredType type, const char *elements, int64_t i) {
    union {
        double f64;
        float f32;
        gint64 i64;
        gint32 i32;
        guint16 u16;
        guint8 u8;
    } value = { 0 };
    int64_t bytes = mtf_stored_type_bytes(type);
    memcpy(&value, elements + i * bytes, (gsize)bytes);
    switch (type) {
    case MTF_STORED_F64:
        return value.f64;
    case MTF_STORED_F32:
        return (double)value.f32;
    case MTF_STORED_F16:
        return half_value(value.u16);
    case MTF_STORED_BF16:
        return brain_value(value.u16);
    case MTF_STORED_F8_E5M2:
        return half_value((guint16)(value.u8 << 8));
    case MTF_STORED_F8_E4M3:
        return eighth_value(value.u8);
    case MTF_STORED_I64:
        return (double)value.i64;
    case MTF_STORED_I16:
        return (gint16)value.u16;
    case MTF_STORED_I8:
        return (gint8)value.u8;
    case MTF_STORED_U8:
    case MTF_STORED_BOOL:
        return value.u8;
    default:
        return value.i32;
    }
}

/* To the nearest of 11 significant bits; below 2^-14 to a multiple of 2^-24. */
static guint16 half_bits(double value) {
    guint16 sign = signbit(value) ? 0x8000 : 0;
    double size = fabs(value);
    int exponent;
    if (isnan(value))
        return 0x7e00;
    if (size >= 65520) /* half way between the largest number and the next there would be */
        return sign | 0x7c00;
    frexp(size, &exponent);
    int unit = size > 0 ? MAX(exponent - 11, -24) : -24;
    int64_t steps = (int64_t)nearbyint(ldexp(size, -unit));
    /* Steps of 2^-24 are the bits themselves; above, 1024 to 2048 steps of each exponent. */
    return sign | (guint16)(steps + (int64_t)(unit + 24) * 1024);
}

static guint16 brain_bits(double value) {
    float single = (float)value;
    guint32 word;
    memcpy(&word, &single, sizeof word);
    if (isnan(value))
        return 0x7fc0;
    return (guint16)((word + 0x7fff + (word >> 16 & 1)) >> 16);
}

void mtf_stored_value_set(MtfStoredType type, char *elements, int64_t i, double value) {
    float single = (float)value;
    guint16 bits = type == MTF_STORED_F16 ? half_bits(value) : brain_bits(value);
    int64_t bytes = mtf_stored_type_bytes(type);
    const void *from = type == MTF_STORED_F64   ? (const void *)&value
                       : type == MTF_STORED_F32 ? (const void *)&single
                                                : (const void *)&bits;
    memcpy(elements + i * bytes, from, (gsize)bytes);
}
