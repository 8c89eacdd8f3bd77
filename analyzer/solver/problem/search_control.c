// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/solver/problem/search_control.h"

#include <math.h>

#define LEAST_SECONDS 0.01

static gint64 in_seconds(double seconds) {
    double microseconds = (double)g_get_monotonic_time() + seconds * 1e6;
    return microseconds < 9e18 ? (gint64)microseconds : G_MAXINT64;
}

void mtf_search_control_init(MtfSearchControl *control, double seconds) {
    *control = (MtfSearchControl){ .seconds = seconds,
                                   .deadline = seconds > 0 ? in_seconds(seconds) : G_MAXINT64 };
    atomic_init(&control->cost, INT64_MAX);
}

void mtf_search_control_init_part(MtfSearchControl *part, const MtfSearchControl *whole,
                                  double seconds) {
    double left = mtf_search_seconds_left(whole);
    double given = seconds > 0 ? fmin(seconds, left) : left;
    mtf_search_control_init(part, isfinite(given) ? fmax(LEAST_SECONDS, given) : 0);
    if (mtf_search_has_deadline(whole) && left > LEAST_SECONDS)
        part->deadline = MIN(part->deadline, whole->deadline);
    part->whole = whole;
}

void mtf_search_control_init_share(MtfSearchControl *part, const MtfSearchControl *whole,
                                   double share) {
    double left = mtf_search_seconds_left(whole);
    mtf_search_control_init_part(part, whole,
                                 isfinite(left) ? fmax(LEAST_SECONDS, share * left) : 0);
}

bool mtf_search_is_stopped(const MtfSearchControl *control) {
    if (control == NULL)
        return false;
    if (control->cancelled || (control->interrupted != NULL && control->interrupted()) ||
        (control->rival != NULL && mtf_search_is_beaten(control, *control->rival)))
        return true;
    return mtf_search_is_stopped(control->whole);
}

bool mtf_search_is_over(const MtfSearchControl *control) {
    return control != NULL &&
           ((control->deadline < G_MAXINT64 && g_get_monotonic_time() >= control->deadline) ||
            mtf_search_is_stopped(control));
}

bool mtf_search_is_abandoned(const MtfSearchControl *control) {
    for (; control != NULL; control = control->whole)
        if (control->rival != NULL && mtf_search_is_beaten(control, *control->rival))
            return true;
    return false;
}

bool mtf_search_is_beaten(const MtfSearchControl *control, int64_t rival) {
    return rival < INT64_MAX && control->bound >= control->slack * (double)rival;
}

bool mtf_search_has_deadline(const MtfSearchControl *control) {
    return control != NULL && control->deadline < G_MAXINT64;
}

double mtf_search_seconds_left(const MtfSearchControl *control) {
    if (!mtf_search_has_deadline(control))
        return INFINITY;
    return fmax(0, (double)(control->deadline - g_get_monotonic_time()) / 1e6);
}

double mtf_search_share_used(const MtfSearchControl *control) {
    return mtf_search_has_deadline(control)
               ? 1 - mtf_search_seconds_left(control) / control->seconds
               : 0;
}

void mtf_search_cancel(MtfSearchControl *control) {
    control->cancelled = true;
}

void mtf_search_tell_phase(const MtfSearchControl *control, const char *phase) {
    const MtfSearchListener *listener = control != NULL ? control->listener : NULL;
    if (listener != NULL && listener->phase != NULL)
        listener->phase(phase, listener->user);
}

void mtf_search_tell_found(MtfSearchControl *control, int64_t cost) {
    if (control == NULL)
        return;
    int64_t known = control->cost;
    do {
        if (cost >= known)
            return;
    } while (!atomic_compare_exchange_weak(&control->cost, &known, cost));
}

static void raise_bound(MtfSearchControl *control, double bound) {
    double known = control->bound;
    do {
        if (!(bound > known))
            return;
    } while (!atomic_compare_exchange_weak(&control->bound, &known, bound));
}

void mtf_search_tell_guess(MtfSearchControl *control, double guess) {
    for (; control != NULL; control = control->also)
        raise_bound(control, guess);
}

void mtf_search_tell_bound(MtfSearchControl *control, double cost, double bound) {
    const MtfSearchListener *listener = control != NULL ? control->listener : NULL;
    mtf_search_tell_guess(control, bound);
    if (listener != NULL && listener->bound != NULL)
        listener->bound(cost, bound, listener->user);
}
