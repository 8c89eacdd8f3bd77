// SPDX-License-Identifier: GPL-3.0-or-later
/* Preloaded into ranks of tests (run_one.sh): one that waits sleeps a moment where Open MPI only gives way. More
 * ranks than cores that give way in turns take their share of the machine for it, from those they wait for. */
#include <time.h>

int sched_yield(void);

int sched_yield(void) {
    const struct timespec moment = { .tv_nsec = 20000 };
    nanosleep(&moment, NULL);
    return 0;
}
