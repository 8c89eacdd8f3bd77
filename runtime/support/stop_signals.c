// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/support/stop_signals.h"

#include "runtime/support/mpi_check.h"

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

/* ---- Ranks of this host ---------------------------------------------------------------------- */

typedef struct {
    int rank, process;
} Peer;

static Peer *peers; /* by rank, this one among them */
static int n_peers, own_rank;
static int meets = FALSE; /* all of them are to be there */

static bool is_gone(const Peer *peer) {
    return kill(peer->process, 0) != 0 && errno == ESRCH;
}

void mtf_stop_signals_meet(MPI_Comm control) {
    MPI_Comm host;
    mtf_mpi_require(MPI_Comm_rank(control, &own_rank), "MPI_Comm_rank");
    Peer own = { own_rank, (int)getpid() };
    mtf_mpi_require(
        MPI_Comm_split_type(control, MPI_COMM_TYPE_SHARED, own_rank, MPI_INFO_NULL, &host),
        "MPI_Comm_split_type");
    mtf_mpi_require(MPI_Comm_size(host, &n_peers), "MPI_Comm_size");
    peers = g_new(Peer, n_peers);
    mtf_mpi_require(MPI_Allgather(&own, 2, MPI_INT, peers, 2, MPI_INT, host), "MPI_Allgather");
    mtf_mpi_require(MPI_Comm_free(&host), "MPI_Comm_free");
    /* Not so where each has numbers of processes of its own. */
    bool all = true;
    for (int i = 0; i < n_peers; i++)
        all &= !is_gone(&peers[i]);
    g_atomic_int_set(&meets, all);
}

void mtf_stop_signals_part(void) {
    g_atomic_int_set(&meets, FALSE);
    g_atomic_int_set(&speaks, FALSE);
}

/* A rank that is gone while all should be there, or NULL; `*first` is the first that is left. */
static const Peer *missing_peer(int *first) {
    const Peer *missing = NULL;
    *first = -1;
    for (int i = 0; i < n_peers && g_atomic_int_get(&meets); i++) {
        bool gone = is_gone(&peers[i]);
        if (gone && missing == NULL)
            missing = &peers[i];
        if (!gone && *first < 0)
            *first = peers[i].rank;
    }
    return missing;
}

/* ---- Signals --------------------------------------------------------------------------------- */

/* What a launcher means that ends the ranks: one is gone, or somebody asked. */
static void say_why(void) {
    int first;
    const Peer *missing = missing_peer(&first);
    if (missing != NULL && first == own_rank)
        fprintf(stderr,
                "meshtf-run: rank %d is gone (process %d), and the others end with it: what was "
                "computed since the last checkpoint, if there is one, is lost\n",
                missing->rank, missing->process);
    if (missing == NULL && g_atomic_int_get(&speaks))
        fputs("meshtf-run: asked to end: it will after this step, with a checkpoint if there is "
              "time (mpirun leaves one second; send it SIGUSR2 for as long as it takes)\n",
              stderr);
}

/* SIGTERM or SIGINT: the first asks the run to stop, the second ends the rank. */
static void note_termination(bool *terminated) {
    if (*terminated) {
        fputs("meshtf-run: a second signal to end: gone without a checkpoint\n", stderr);
        _exit(1);
    }
    *terminated = true;
    g_atomic_int_set(&asked, MTF_ASKED_STOP);
    say_why();
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
