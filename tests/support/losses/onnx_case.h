// SPDX-License-Identifier: GPL-3.0-or-later
/* A test case of ONNX: a folder with model.onnx and test_data_set_K/{input,output}_N.pb. It is
 * imported, lowered for one processor, run, and its outputs compared. */
#ifndef MTF_TESTS_ONNX_CASE_H
#define MTF_TESTS_ONNX_CASE_H

#include <glib.h>
#include <stdbool.h>

typedef enum {
    MTF_ONNX_CASE_UNREADABLE, /* not an ONNX model to us */
    MTF_ONNX_CASE_REFUSED,    /* with a sentence */
    MTF_ONNX_CASE_BOUND,      /* refused unless small inputs of integers are known, then equal */
    MTF_ONNX_CASE_EQUAL,
    MTF_ONNX_CASE_DIFFERS,
} MtfOnnxCaseResult;

/* Runs the case; `*sentence` (free with g_free) says why it was refused or how it differs. Numbers are
 * equal within ONNX's own tolerances, 1e-3 relative and 1e-7 absolute. */
MtfOnnxCaseResult mtf_onnx_case_run(const char *folder, char **sentence);

#endif
