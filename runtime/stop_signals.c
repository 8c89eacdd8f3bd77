// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/stop_signals.h"

#include <signal.h>
#include <stddef.h>
#include <unistd.h>

static volatile sig_atomic_t asked;
static volatile sig_atomic_t terminated;
static volatile sig_atomic_t speaks;

#define SAY(text) ((void)!write(STDERR_FILENO, text, sizeof text - 1))

static void note_checkpoint(int number) {
    (void)number;
    if (asked == MTF_ASKED_NOTHING)
        asked = MTF_ASKED_CHECKPOINT;
}

static void note_stop(int number) {
    (void)number;
    asked = MTF_ASKED_STOP;
}

static void note_termination(int number) {
    (void)number;
    if (terminated) {
        SAY("meshtf-run: a second signal to end: gone without a checkpoint\n");
        _exit(1);
    }
    terminated = 1;
    asked = MTF_ASKED_STOP;
    if (speaks)
        SAY("meshtf-run: asked to end: it will after this step, with a checkpoint if there is time "
            "(mpirun leaves one second; send it SIGUSR2 for as long as it takes)\n");
}

static void watch(int number, void (*handler)(int)) {
    struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART };
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, NULL);
}

void mtf_stop_signals_watch(void) {
    watch(SIGUSR1, note_checkpoint);
    watch(SIGUSR2, note_stop);
    watch(SIGTERM, note_termination);
    watch(SIGINT, note_termination);
    /* A file over the limit is an error of the write, which is reported. */
    watch(SIGXFSZ, SIG_IGN);
}

void mtf_stop_signals_speak(bool rank_speaks) {
    speaks = rank_speaks;
}

MtfAsked mtf_stop_signals_take(void) {
    MtfAsked taken = (MtfAsked)asked;
    asked = MTF_ASKED_NOTHING;
    return taken;
}
