// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/support/processor_clock.h"

#include <time.h>

double mtf_processor_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
