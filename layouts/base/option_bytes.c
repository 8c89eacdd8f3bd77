// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/base/option_bytes.h"

#include "layouts/base/command_line.h"

bool mtf_option_bytes(const char *option, const char *text, int64_t *bytes, GError **error) {
    if (mtf_bytes_parse(text, bytes, error))
        return true;
    g_prefix_error(error, "%s ", option);
    return false;
}
