// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/commands/interrupt.h"

#include <signal.h>

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal_number) {
    (void)signal_number;
    interrupted = 1;
}

void mtf_interrupt_catch(void) {
    struct sigaction action = { .sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND };
    sigaction(SIGINT, &action, NULL);
}

bool mtf_interrupt_was_caught(void) {
    return interrupted != 0;
}
