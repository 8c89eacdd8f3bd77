// SPDX-License-Identifier: GPL-3.0-or-later
/* Processor time of the calling thread: what its own work takes, whoever else has the core. */
#ifndef MTF_PROCESSOR_CLOCK_H
#define MTF_PROCESSOR_CLOCK_H

/* Seconds since the thread began. */
double mtf_processor_seconds(void);

#endif
