// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/support/resident_memory.h"

#include <glib.h>
#include <string.h>
#include <sys/resource.h>

/* The sum of the parts of pages, `Pss` of Linux; 0 when it is not said. */
static int64_t shares_of_pages(void) {
    g_autofree char *text = NULL;
    if (!g_file_get_contents("/proc/self/smaps_rollup", &text, NULL, NULL))
        return 0;
    const char *line = strstr(text, "\nPss:");
    return line != NULL ? 1024 * g_ascii_strtoll(line + strlen("\nPss:"), NULL, 10) : 0;
}

int64_t mtf_resident_bytes(bool shares) {
    int64_t bytes = shares ? shares_of_pages() : 0;
    struct rusage usage = { 0 };
    if (bytes == 0 && getrusage(RUSAGE_SELF, &usage) == 0)
        bytes = (int64_t)usage.ru_maxrss * 1024;
    return bytes;
}
