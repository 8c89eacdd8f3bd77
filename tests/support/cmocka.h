// SPDX-License-Identifier: GPL-3.0-or-later
/* cmocka wants these four headers before it, in this order; wrapping them keeps the formatter from
 * sorting them wrong. */
#ifndef MTF_TESTS_CMOCKA_H
#define MTF_TESTS_CMOCKA_H

// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
// clang-format on

#endif
