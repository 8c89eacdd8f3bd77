// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/arena_memory.h"

#include "layouts/command_line.h"
#include "layouts/error.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

bool mtf_arena_memory_init(MtfArenaMemory *memory, int64_t bytes, GError **error) {
    gsize page = (gsize)sysconf(_SC_PAGESIZE);
    gsize used = ((gsize)bytes + page - 1) / page * page;
    char *mapping = mmap(NULL, used + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED || mprotect(mapping, used, PROT_READ | PROT_WRITE) != 0) {
        int cause = errno;
        if (mapping != MAP_FAILED)
            munmap(mapping, used + page);
        g_autofree char *size = mtf_bytes_format((double)bytes);
        return mtf_failure(error, "the arena of %s cannot be mapped: %s", size, g_strerror(cause));
    }
    *memory = (MtfArenaMemory){ .base = mapping + used - bytes,
                                .bytes = bytes,
                                .mapping = mapping,
                                .mapping_bytes = used + page };
    return true;
}

void mtf_arena_memory_clear(MtfArenaMemory *memory) {
    if (memory->mapping != NULL)
        munmap(memory->mapping, memory->mapping_bytes);
    *memory = (MtfArenaMemory){ 0 };
}
