// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/kernel_work/rotary_angles.h"

#include <math.h>

/* The base of a text of this length. */
static double base_of(const MtfAttributes *a, double rotated, double length) {
    if (a->growth == 0 || length <= a->context || rotated <= 2)
        return a->base;
    double times = a->growth * length / a->context - a->growth + 1;
    return a->base * pow(times, rotated / (rotated - 2));
}

/* `f` as one of the rules for long waves, or late pairs, has it. */
static double stretched(const MtfAttributes *a, int64_t i, double f) {
    double turns = a->context * f / (2 * G_PI);
    /* By the pair's number the share falls, as turns do with it. */
    double share = a->ramp != 0 ? (a->high - (double)i) / (a->high - a->low)
                                : (turns - a->low) / (a->high - a->low);
    if (share >= 1)
        return f;
    share = fmax(share, 0);
    return (1 - share) * f / a->stretch + share * f;
}

bool mtf_rotary_follows_length(const MtfAttributes *a) {
    return a->growth != 0 || a->long_divisors != NULL;
}

void mtf_rotary_frequencies(const MtfAttributes *a, int64_t rotated, int64_t length, int64_t first,
                            int64_t n, double *frequencies) {
    double base = base_of(a, (double)rotated, (double)length);
    bool is_long = a->long_divisors != NULL && (double)length > a->context;
    const char *divisors = is_long ? a->long_divisors : a->divisors;
    bool stretches = a->context != 0 && a->growth == 0 && divisors == NULL;
    for (int64_t i = 0; divisors != NULL && i < first; i++)
        g_ascii_strtod(divisors, (char **)&divisors);
    for (int64_t i = first; i < first + n; i++) {
        double f = pow(base, -2 * (double)i / (double)rotated);
        if (divisors != NULL)
            f /= g_ascii_strtod(divisors, (char **)&divisors);
        frequencies[i - first] = stretches ? stretched(a, i, f) : f;
    }
}
