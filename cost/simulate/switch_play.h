// SPDX-License-Identifier: GPL-3.0-or-later
/* The schedules of collective_switch.c played on the flow simulator, message by message, on one
 * switch or on switches within switches: a message leaves through the uplinks of all children that
 * it leaves, up to the switch that it turns at, and comes in through the downlinks on the other
 * side. Its latency is that of the level at which it turns. What sending a message costs its sender
 * is not played. */
#ifndef MTF_SWITCH_PLAY_H
#define MTF_SWITCH_PLAY_H

#include "cost/simulate/collective_simulator.h"

/* The i-th schedule on switches that has a play; NULL beyond the last. */
const MtfPlayRow *mtf_switch_play_row(int i);

#endif
