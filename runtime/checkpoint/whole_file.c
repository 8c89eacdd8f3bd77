// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/checkpoint/whole_file.h"

#include "layouts/base/command_line.h"
#include "layouts/base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

bool mtf_whole_file_reserve(const char *path, int64_t bytes, GError **error) {
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    int code = file < 0 ? errno : posix_fallocate(file, 0, (off_t)bytes);
    if (file >= 0)
        close(file);
    if (code == 0)
        return true;
    if (file >= 0)
        unlink(path);
    g_autofree char *size = mtf_bytes_format((double)bytes);
    return mtf_failure(error, "the checkpoint %s of %s cannot be written: %s", path, size,
                       g_strerror(code));
}

bool mtf_whole_file_write_header(const char *path, const char *header, gsize length,
                                 GError **error) {
    int file = open(path, O_WRONLY | O_CLOEXEC);
    bool done = file >= 0 && pwrite(file, header, length, 0) == (gssize)length && fsync(file) == 0;
    int code = errno;
    if (file >= 0)
        close(file);
    return done ||
           mtf_failure(error, "%s: the header cannot be written: %s", path, g_strerror(code));
}

bool mtf_whole_file_settle(const char *partial, const char *path, GError **error) {
    g_autofree char *folder = g_path_get_dirname(path);
    if (rename(partial, path) != 0)
        return mtf_failure(error, "%s cannot be renamed to %s: %s", partial, path,
                           g_strerror(errno));
    int file = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool done = file >= 0 && fsync(file) == 0;
    int code = errno;
    if (file >= 0)
        close(file);
    return done ||
           mtf_failure(error, "%s: cannot be brought to disk: %s", folder, g_strerror(code));
}
