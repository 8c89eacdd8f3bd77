// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "runtime/worker/arena_memory.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Whether a child that writes to `address` dies of it. */
static bool writing_kills(char *address) {
    pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        signal(SIGBUS, SIG_DFL);
        setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
        *(volatile char *)address = 1;
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status);
}

TEST(the_last_byte_of_the_arena_is_writable_and_the_next_is_not) {
    const int64_t sizes[] = { 64, 4096, 4096 + 64, 1 << 20 };
    for (gsize i = 0; i < G_N_ELEMENTS(sizes); i++) {
        MtfArenaMemory memory;
        assert_true(mtf_arena_memory_init(&memory, sizes[i], i % 2 == 1, NULL));
        assert_int_equal(memory.bytes, sizes[i]);
        assert_int_equal((guintptr)memory.base % 64, 0);
        assert_false(writing_kills(memory.base));
        assert_false(writing_kills(memory.base + sizes[i] - 1));
        assert_true(writing_kills(memory.base + sizes[i]));
        mtf_arena_memory_clear(&memory);
    }
}

TEST(an_empty_arena_is_no_trouble) {
    MtfArenaMemory memory;
    assert_true(mtf_arena_memory_init(&memory, 0, false, NULL));
    assert_true(writing_kills(memory.base));
    mtf_arena_memory_clear(&memory);
}

TEST(a_shared_arena_is_the_same_memory_wherever_it_is_mapped) {
    MtfArenaMemory memory, other;
    assert_true(mtf_arena_memory_init(&memory, 4160, true, NULL));
    assert_true(mtf_arena_memory_attach(&other, 4160, dup(memory.file), NULL));
    assert_ptr_not_equal(memory.base, other.base);
    memory.base[4159] = 7;
    other.mapping[5] = 9;
    assert_int_equal(other.base[4159], 7);
    assert_int_equal(memory.mapping[5], 9);
    assert_true(writing_kills(other.base + 4160));
    mtf_arena_memory_clear(&other);
    mtf_arena_memory_clear(&memory);
}

TEST(an_arena_beyond_the_address_space_is_one_sentence) {
    MtfArenaMemory memory;
    g_autoptr(GError) error = NULL;
    assert_false(mtf_arena_memory_init(&memory, INT64_C(1) << 60, false, &error));
    assert_non_null(strstr(error->message, "cannot be mapped"));
}

/* KiB that /proc/self/smaps says of `key` in the mapping that begins at `address`. */
static long smaps(const char *address, const char *key) {
    g_autofree char *text = NULL,
                    *begin = g_strdup_printf("%lx-", (unsigned long)(guintptr)address);
    if (!g_file_get_contents("/proc/self/smaps", &text, NULL, NULL))
        return -1;
    const char *at = strstr(text, begin), *line = at != NULL ? strstr(at, key) : NULL;
    return line != NULL ? strtol(line + strlen(key) + 1, NULL, 10) : -1;
}

/* Whether this system makes huge pages of a file in memory when it is asked to. */
static bool has_huge_files(void) {
    const gsize huge = 2 << 20;
    int file = memfd_create("probe", MFD_CLOEXEC);
    char *area = mmap(NULL, 2 * huge, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *page = area + (huge - (guintptr)area % huge) % huge;
    bool done = file >= 0 && ftruncate(file, (off_t)huge) == 0 &&
                mmap(page, huge, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == page;
    if (done) {
        page[0] = 1;
        done = madvise(page, huge, 25) == 0; /* MADV_COLLAPSE */
    }
    munmap(area, 2 * huge);
    close(file);
    return done;
}

TEST(a_shared_arena_is_of_huge_pages_for_all_who_map_it) {
    MtfArenaMemory memory, other;
    const int64_t bytes = (5 << 20) + 64;
    assert_true(mtf_arena_memory_init(&memory, bytes, true, NULL));
    assert_true(mtf_arena_memory_attach(&other, bytes, dup(memory.file), NULL));
    memory.base[bytes - 1] = 7;
    for (int64_t i = 0; i < bytes - 1; i += 4096)
        assert_int_equal(memory.base[i] + other.base[i], 0);
    assert_int_equal(other.base[bytes - 1], 7);
    if (has_huge_files()) {
        assert_int_equal(smaps(memory.mapping, "ShmemPmdMapped:"), 4096);
        assert_int_equal(smaps(other.mapping, "ShmemPmdMapped:"), 4096);
    } else {
        print_message("this system makes no huge pages of files in memory\n");
    }
    mtf_arena_memory_clear(&memory);
    mtf_arena_memory_clear(&other);
}
