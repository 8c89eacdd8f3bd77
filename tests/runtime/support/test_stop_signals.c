// SPDX-License-Identifier: GPL-3.0-or-later
/* What signals ask is noted, and it does not matter where they find the rank. */
#include "tests/support/cmocka.h"

#include "runtime/kernels/products/kernel_product.h"
#include "runtime/kernels/products/kernel_products.h"
#include "runtime/support/stop_signals.h"

#include <glib.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* A product whose kernel has its stack on the heap, where it is oneDNN's of AVX-512. */
#define ROWS 184
#define COLUMNS 178
#define TERMS 87

/* What the rank is asked by a signal to itself; waits at most 10 s. */
static MtfAsked asked_by(int number) {
    kill(getpid(), number);
    MtfAsked asked = MTF_ASKED_NOTHING;
    for (int i = 0; i < 10000 && asked == MTF_ASKED_NOTHING; i++) {
        g_usleep(1000);
        asked = mtf_stop_signals_take();
    }
    return asked;
}

TEST(each_signal_asks_for_what_it_says) {
    assert_int_equal(mtf_stop_signals_take(), MTF_ASKED_NOTHING);
    assert_int_equal(asked_by(SIGUSR1), MTF_ASKED_CHECKPOINT);
    assert_int_equal(mtf_stop_signals_take(), MTF_ASKED_NOTHING);
    assert_int_equal(asked_by(SIGUSR2), MTF_ASKED_STOP);
    assert_int_equal(asked_by(SIGTERM), MTF_ASKED_STOP);
}

/* Another process that sends this one SIGUSR1 every 20 us until it is killed. */
static pid_t storm(void) {
    pid_t parent = getpid(), child = fork();
    if (child != 0)
        return child;
    while (getppid() == parent) {
        kill(parent, SIGUSR1);
        g_usleep(20);
    }
    _exit(0);
}

static float *ones(int count) {
    float *numbers = g_new(float, count);
    for (int i = 0; i < count; i++)
        numbers[i] = 1;
    return numbers;
}

TEST(signals_amid_products_leave_the_heap_alone) {
    int noted = 0, wrong = 0;
    pid_t child = storm();
    for (int round = 0; round < 1000; round++) {
        g_autofree float *a = ones(ROWS * TERMS), *b = ones(TERMS * COLUMNS);
        g_autofree float *c = ones(ROWS * COLUMNS);
        MtfGemm gemm = { .a_turned = true,
                         .b_turned = true,
                         .m = ROWS,
                         .n = COLUMNS,
                         .k = TERMS,
                         .a = a,
                         .b = b,
                         .c = c,
                         .lda = ROWS,
                         .ldb = TERMS,
                         .ldc = COLUMNS };
        mtf_onednn_gemm(&gemm);
        for (int i = 0; i < ROWS * COLUMNS; i++)
            wrong += c[i] != TERMS;
        noted += mtf_stop_signals_take() == MTF_ASKED_CHECKPOINT;
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_int_equal(wrong, 0);
    assert_true(noted > 0);
}

int main(void) {
    mtf_stop_signals_watch();
    return mtf_tests_run(NULL, NULL);
}
