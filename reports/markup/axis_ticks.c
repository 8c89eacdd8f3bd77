// SPDX-License-Identifier: GPL-3.0-or-later
#include "reports/markup/axis_ticks.h"

#include <math.h>

double mtf_tick_distance(double low, double high, double unit, double finest, int about) {
    double rough = (high - low) / (about + 1) / unit;
    double power = pow(10, floor(log10(rough)));
    double distance = rough >= 5 * power ? 5 * power : rough >= 2 * power ? 2 * power : power;
    return fmax(unit * distance, finest);
}

double mtf_tick_finest(double high) {
    return pow(10, floor(log10(high)) - 2);
}
