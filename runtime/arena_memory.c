// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/arena_memory.h"

#include "layouts/command_line.h"
#include "layouts/error.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

static gsize page_bytes(void) {
    return (gsize)sysconf(_SC_PAGESIZE);
}

/* Header and arena in whole pages, without the guard. */
static gsize used_bytes(int64_t bytes, bool shared) {
    gsize wanted = (gsize)bytes + (shared ? MTF_ARENA_HEADER_BYTES : 0);
    return (wanted + page_bytes() - 1) / page_bytes() * page_bytes();
}

/* A file of header and arena; -1 where there can be none. */
static int new_file(int64_t bytes) {
    int file = memfd_create("meshtf arena", MFD_CLOEXEC);
    if (file >= 0 && ftruncate(file, (off_t)used_bytes(bytes, true)) == 0)
        return file;
    if (file >= 0)
        close(file);
    return -1;
}

/* Reserves the addresses, guard included, then puts the memory there. */
static bool map(MtfArenaMemory *memory, int64_t bytes, int file, GError **error) {
    gsize used = used_bytes(bytes, file >= 0), all = used + page_bytes();
    int flags = file >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
    char *mapping = mmap(NULL, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED || (used > 0 && mmap(mapping, used, PROT_READ | PROT_WRITE,
                                                   flags | MAP_FIXED, file, 0) == MAP_FAILED)) {
        int cause = errno;
        if (mapping != MAP_FAILED)
            munmap(mapping, all);
        g_autofree char *size = mtf_bytes_format((double)bytes);
        return mtf_failure(error, "the arena of %s cannot be mapped: %s", size, g_strerror(cause));
    }
    /* Fewer misses of the address cache in products; no loss where the system has no huge pages. */
    madvise(mapping, used, MADV_HUGEPAGE);
    *memory = (MtfArenaMemory){ .base = mapping + used - bytes,
                                .bytes = bytes,
                                .mapping = mapping,
                                .mapping_bytes = all,
                                .file = -1 };
    return true;
}

bool mtf_arena_memory_init(MtfArenaMemory *memory, int64_t bytes, bool shared, GError **error) {
    int file = shared ? new_file(bytes) : -1;
    bool mapped = map(memory, bytes, file, error);
    if (mapped)
        memory->file = file;
    else if (file >= 0)
        close(file);
    return mapped;
}

bool mtf_arena_memory_attach(MtfArenaMemory *memory, int64_t bytes, int file, GError **error) {
    if (!map(memory, bytes, file, error))
        return false;
    close(file);
    return true;
}

void mtf_arena_memory_clear(MtfArenaMemory *memory) {
    if (memory->mapping != NULL) {
        munmap(memory->mapping, memory->mapping_bytes);
        if (memory->file >= 0)
            close(memory->file);
    }
    *memory = (MtfArenaMemory){ .file = -1 };
}
