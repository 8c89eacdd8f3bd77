// SPDX-License-Identifier: GPL-3.0-or-later
/* Where a chart's scale has its lines: at multiples of a round number, "4.0 4.5 5.0" and not "4.09 4.586". */
#ifndef MTF_AXIS_TICKS_H
#define MTF_AXIS_TICKS_H

/* The distance of lines from `low` to `high`, which is more: 1, 2 or 5 times a power of ten of `unit`, so
 * that there are about so many and seldom more than twice as many; never less than `finest`, which labels
 * tell apart. */
double mtf_tick_distance(double low, double high, double unit, double finest, int about);

/* What three digits tell apart of values up to `high`, which is above 0. */
double mtf_tick_finest(double high);

#endif
