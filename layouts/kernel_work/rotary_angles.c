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

double mtf_rotary_frequency(const MtfAttributes *a, int64_t i, int64_t rotated, int64_t length) {
    double f = pow(base_of(a, (double)rotated, (double)length), -2 * (double)i / (double)rotated);
    double turns = a->context * f / (2 * G_PI);
    if (a->context == 0 || a->growth != 0)
        return f;
    /* By the pair's number the share falls, as turns do with it. */
    double share = a->ramp != 0 ? (a->high - (double)i) / (a->high - a->low)
                                : (turns - a->low) / (a->high - a->low);
    if (share >= 1)
        return f;
    share = fmax(share, 0);
    return (1 - share) * f / a->stretch + share * f;
}
