// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/error.h"

G_DEFINE_QUARK(mtf - error - quark, mtf_error)

bool mtf_input_error(GError **error, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    g_propagate_error(error, g_error_new_valist(MTF_ERROR, MTF_ERROR_INPUT, format, arguments));
    va_end(arguments);
    return false;
}

bool mtf_failure(GError **error, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    g_propagate_error(error, g_error_new_valist(MTF_ERROR, MTF_ERROR_FAILED, format, arguments));
    va_end(arguments);
    return false;
}

int mtf_error_exit_status(const GError *error) {
    if (error == NULL)
        return 0;
    if (error->domain != MTF_ERROR)
        return 1;
    switch ((MtfErrorCode)error->code) {
    case MTF_ERROR_INPUT:
        return 2;
    case MTF_ERROR_FIT:
        return 3;
    case MTF_ERROR_FAILED:
        return 1;
    }
    return 1;
}
