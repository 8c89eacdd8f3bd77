// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/worker/arena_memory.h"

#include "layouts/base/command_line.h"
#include "layouts/base/error.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

/* Newer than Debian 12's headers. */
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

/* A huge page of x86, and of ARM with pages of 4 KiB. */
#define HUGE ((gsize)2 << 20)

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

static bool refuse(int64_t bytes, GError **error) {
    int cause = errno;
    g_autofree char *size = mtf_bytes_format((double)bytes);
    return mtf_failure(error, "the arena of %s cannot be mapped: %s", size, g_strerror(cause));
}

/* Reserves the addresses, guard included and from the beginning of a huge page on, then puts the
 * memory there. */
static bool map(MtfArenaMemory *memory, int64_t bytes, int file, GError **error) {
    gsize used = used_bytes(bytes, file >= 0), all = HUGE + used + page_bytes();
    int flags = file >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
    char *reserved = mmap(NULL, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (reserved == MAP_FAILED)
        return refuse(bytes, error);
    char *mapping = reserved + (HUGE - (guintptr)reserved % HUGE);
    if (used > 0 &&
        mmap(mapping, used, PROT_READ | PROT_WRITE, flags | MAP_FIXED, file, 0) == MAP_FAILED) {
        refuse(bytes, error);
        munmap(reserved, all);
        return false;
    }
    /* Fewer misses of the address cache in products; no loss where the system has no huge pages. */
    madvise(mapping, used, MADV_HUGEPAGE);
    *memory = (MtfArenaMemory){ .base = mapping + used - bytes,
                                .bytes = bytes,
                                .mapping = mapping,
                                .reserved = reserved,
                                .reserved_bytes = all,
                                .file = -1 };
    return true;
}

/* Files in memory get huge pages only where the administrator has said so, or where a program asks
 * for them by name (Linux 6.1), each with something in it. */
static void make_huge(const MtfArenaMemory *memory, gsize used) {
    for (gsize i = 0; i + HUGE <= used; i += HUGE)
        ((volatile char *)memory->mapping)[i] = 0;
    if (used >= HUGE)
        madvise(memory->mapping, used / HUGE * HUGE, MADV_COLLAPSE);
}

bool mtf_arena_memory_init(MtfArenaMemory *memory, int64_t bytes, bool shared, GError **error) {
    int file = shared ? new_file(bytes) : -1;
    bool mapped = map(memory, bytes, file, error);
    if (mapped)
        memory->file = file;
    if (mapped && file >= 0)
        make_huge(memory, used_bytes(bytes, true));
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
        munmap(memory->reserved, memory->reserved_bytes);
        if (memory->file >= 0)
            close(memory->file);
    }
    *memory = (MtfArenaMemory){ .file = -1 };
}
