// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/support/stop_signals.h"

#include <errno.h>
#include <glib.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

/* Shared by the thread that waits for signals and the rank's own. */
static int asked = MTF_ASKED_NOTHING;
static int speaks = FALSE;
static pthread_t waiter; /* that thread */

/* SIGTERM or SIGINT: the first asks the run to stop, the second ends the rank. */
static void note_termination(bool *terminated) {
    if (*terminated) {
        fputs("meshtf-run: a second signal to end: gone without a checkpoint\n", stderr);
        _exit(1);
    }
    *terminated = true;
    g_atomic_int_set(&asked, MTF_ASKED_STOP);
    if (g_atomic_int_get(&speaks))
        fputs("meshtf-run: asked to end: it will after this step, with a checkpoint if there is "
              "time (mpirun leaves one second; send it SIGUSR2 for as long as it takes)\n",
              stderr);
}

static void *wait_for_signals(void *waited) {
    const sigset_t *signals = waited;
    bool terminated = false;
    for (;;) {
        int number = 0;
        sigwait(signals, &number);
        if (number == SIGUSR1)
            g_atomic_int_compare_and_exchange(&asked, MTF_ASKED_NOTHING, MTF_ASKED_CHECKPOINT);
        else if (number == SIGUSR2)
            g_atomic_int_set(&asked, MTF_ASKED_STOP);
        else
            note_termination(&terminated);
    }
    return NULL;
}

/* Of threads that libraries started before main, OpenBLAS one a core: they block nothing, and what
 * reaches them would end the rank. */
static void pass_on(int number) {
    int before = errno;
    pthread_kill(waiter, number);
    errno = before;
}

void mtf_stop_signals_watch(void) {
    static const int numbers[] = { SIGUSR1, SIGUSR2, SIGTERM, SIGINT };
    static sigset_t signals;
    struct sigaction action = { .sa_handler = pass_on, .sa_flags = SA_RESTART };
    sigemptyset(&signals);
    for (gsize i = 0; i < G_N_ELEMENTS(numbers); i++)
        sigaddset(&signals, numbers[i]);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    int failed = pthread_create(&waiter, NULL, wait_for_signals, &signals);
    g_assert(failed == 0);
    pthread_detach(waiter);
    for (gsize i = 0; i < G_N_ELEMENTS(numbers); i++)
        sigaction(numbers[i], &action, NULL);
    /* A file over the limit is an error of the write, which is reported. */
    signal(SIGXFSZ, SIG_IGN);
}

void mtf_stop_signals_speak(bool rank_speaks) {
    g_atomic_int_set(&speaks, rank_speaks);
}

MtfAsked mtf_stop_signals_take(void) {
    return (MtfAsked)g_atomic_int_exchange(&asked, MTF_ASKED_NOTHING);
}
