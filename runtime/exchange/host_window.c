// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/exchange/host_window.h"

#include "runtime/support/mpi_check.h"

#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_SETS (1 << MTF_MAX_MESH_AXES)

/* Spins before a waiting rank lets others run: about 20 us. */
#define SPINS 20000
#define YIELDS 200             /* of a rank that waits, before it sleeps: */
#define SLEEP_MICROSECONDS 50L /* no longer than the kernel's timers are late */

/* The counters of one set of axes, on a cache line of their own. */
typedef struct {
    _Alignas(64) _Atomic uint64_t passed[MTF_STAGES];
} Counter;

G_STATIC_ASSERT(sizeof(Counter) * MAX_SETS <= MTF_ARENA_HEADER_BYTES);

struct MtfHostWindow {
    int rank, n_ranks;
    int spins;
    const MtfProgressHook *idle;
    MtfArenaMemory *arenas; /* one a rank; of this one and of those left out the mapping is NULL */
    char **bases;           /* one a rank */
    Counter **counters;     /* one a rank: MAX_SETS of them */
};

/* How another process of this host finds an arena, and knows it for the right one. */
typedef struct {
    int64_t process, file, bytes, device, node;
} Address;

static Address own_address(const MtfArenaMemory *own) {
    Address address = { .process = getpid(), .file = own->file, .bytes = own->bytes };
    struct stat status;
    if (own->file < 0 || fstat(own->file, &status) != 0) {
        address.file = -1;
        return address;
    }
    address.device = (int64_t)status.st_dev;
    address.node = (int64_t)status.st_ino;
    return address;
}

/* Another process's arena, when it is one of this host that this one may open. */
static void attach(MtfArenaMemory *memory, const Address *address) {
    char path[64];
    struct stat status;
    if (address->file < 0)
        return;
    g_snprintf(path, sizeof path, "/proc/%" G_GINT64_FORMAT "/fd/%" G_GINT64_FORMAT,
               address->process, address->file);
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0)
        return;
    bool same = fstat(file, &status) == 0 && (int64_t)status.st_dev == address->device &&
                (int64_t)status.st_ino == address->node;
    if (!same || !mtf_arena_memory_attach(memory, address->bytes, file, NULL))
        close(file);
}

/* Fewer spins where ranks share cores: whoever is waited for may need this one. */
static int choose_spins(MPI_Comm host) {
    cpu_set_t set;
    int ranks;
    mtf_mpi_require(MPI_Comm_size(host, &ranks), "MPI_Comm_size");
    return sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) < ranks ? 0 : SPINS;
}

/* The place of each rank of `control` in `host`, or MPI_UNDEFINED. */
static void find_places(MPI_Comm control, MPI_Comm host, int n_ranks, int *places) {
    MPI_Group all, here;
    g_autofree int *ranks = g_new(int, n_ranks);
    for (int r = 0; r < n_ranks; r++)
        ranks[r] = r;
    mtf_mpi_require(MPI_Comm_group(control, &all), "MPI_Comm_group");
    mtf_mpi_require(MPI_Comm_group(host, &here), "MPI_Comm_group");
    mtf_mpi_require(MPI_Group_translate_ranks(all, n_ranks, ranks, here, places),
                    "MPI_Group_translate_ranks");
    mtf_mpi_require(MPI_Group_free(&all), "MPI_Group_free");
    mtf_mpi_require(MPI_Group_free(&here), "MPI_Group_free");
}

/* The addresses of ranks of other hosts become void. */
static void forget_other_hosts(MtfHostWindow *window, MPI_Comm control, Address *addresses) {
    MPI_Comm host;
    g_autofree int *places = g_new(int, window->n_ranks);
    mtf_mpi_require(
        MPI_Comm_split_type(control, MPI_COMM_TYPE_SHARED, window->rank, MPI_INFO_NULL, &host),
        "MPI_Comm_split_type");
    window->spins = choose_spins(host);
    find_places(control, host, window->n_ranks, places);
    mtf_mpi_require(MPI_Comm_free(&host), "MPI_Comm_free");
    for (int r = 0; r < window->n_ranks; r++)
        if (places[r] == MPI_UNDEFINED)
            addresses[r].file = -1;
}

static void attach_all(MtfHostWindow *window, const MtfArenaMemory *own, const Address *addresses) {
    for (int r = 0; r < window->n_ranks; r++) {
        if (r != window->rank)
            attach(&window->arenas[r], &addresses[r]);
        const MtfArenaMemory *arena = r == window->rank ? own : &window->arenas[r];
        bool mapped = arena->mapping != NULL && addresses[r].file >= 0;
        window->bases[r] = mapped ? arena->base : NULL;
        window->counters[r] = mapped ? (Counter *)(void *)arena->mapping : NULL;
    }
}

MtfHostWindow *mtf_host_window_new(MPI_Comm control, const MtfArenaMemory *own) {
    MtfHostWindow *window = g_new0(MtfHostWindow, 1);
    mtf_mpi_require(MPI_Comm_rank(control, &window->rank), "MPI_Comm_rank");
    mtf_mpi_require(MPI_Comm_size(control, &window->n_ranks), "MPI_Comm_size");
    g_autofree Address *addresses = g_new0(Address, window->n_ranks);
    Address address = own_address(own);
    mtf_mpi_require(MPI_Allgather(&address, (int)sizeof address, MPI_BYTE, addresses,
                                  (int)sizeof address, MPI_BYTE, control),
                    "MPI_Allgather");
    forget_other_hosts(window, control, addresses);
    window->arenas = g_new0(MtfArenaMemory, window->n_ranks);
    window->bases = g_new0(char *, window->n_ranks);
    window->counters = g_new0(Counter *, window->n_ranks);
    attach_all(window, own, addresses);
    /* Nobody closes an arena that another is about to open. */
    mtf_mpi_require(MPI_Barrier(control), "MPI_Barrier");
    return window;
}

void mtf_host_window_free(MtfHostWindow *window) {
    if (window == NULL)
        return;
    for (int r = 0; r < window->n_ranks; r++)
        mtf_arena_memory_clear(&window->arenas[r]);
    g_free(window->arenas);
    g_free(window->bases);
    g_free(window->counters);
    g_free(window);
}

char *mtf_host_window_base(const MtfHostWindow *window, int rank) {
    return window->bases[rank];
}

static _Atomic uint64_t *counter(const MtfHostWindow *window, int rank, unsigned axes,
                                 MtfStage stage) {
    return &window->counters[rank][axes].passed[stage];
}

uint64_t mtf_host_window_pass(MtfHostWindow *window, unsigned axes, MtfStage stage) {
    _Atomic uint64_t *own = counter(window, window->rank, axes, stage);
    uint64_t mine = atomic_load_explicit(own, memory_order_relaxed) + 1;
    atomic_store_explicit(own, mine, memory_order_release);
    return mine;
}

static bool has_passed(const MtfHostWindow *window, int rank, unsigned axes, MtfStage stage,
                       uint64_t times) {
    return atomic_load_explicit(counter(window, rank, axes, stage), memory_order_acquire) >= times;
}

bool mtf_host_window_all_passed(const MtfHostWindow *window, const MtfWindowGroup *group,
                                MtfStage stage, uint64_t times) {
    for (int i = 0; i < group->n; i++)
        if (!has_passed(window, group->ranks[i], group->axes, stage, times))
            return false;
    return true;
}

void mtf_host_window_set_idle(MtfHostWindow *window, const MtfProgressHook *idle) {
    window->idle = idle;
}

void mtf_host_window_pause(const MtfHostWindow *window, int spins) {
    if (spins < window->spins)
        return;
    mtf_progress_hook_run(window->idle);
    if (spins < window->spins + YIELDS)
        sched_yield();
    else
        g_usleep(SLEEP_MICROSECONDS);
}

void mtf_host_window_wait(const MtfHostWindow *window, const MtfWindowGroup *group, MtfStage stage,
                          uint64_t times) {
    for (int i = 0; i < group->n; i++)
        for (int spins = 0; !has_passed(window, group->ranks[i], group->axes, stage, times);
             spins++)
            mtf_host_window_pause(window, spins);
}
