#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Prints the processor whose kernels meshtf-run has OpenBLAS take here ("SkylakeX"), a value of OPENBLAS_CORETYPE;
# nothing where there is no meshtf-run. OpenBLAS by itself takes processors newer than itself for ones without AVX
# (runtime/kernels/products/kernel_libraries.h).
meshtf-run --version 2>/dev/null | sed -n 's/^OpenBLAS .* its \(.*\) kernels.*/\1/p'
