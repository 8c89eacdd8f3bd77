// SPDX-License-Identifier: GPL-3.0-or-later
/* What a search and those who wait for it tell each other: one object, handed down through all layers.
 *
 *     command ──► step variants ──► plans ──► free layouts ──► solver ──► integer program
 *                                     │            └─ part: limits of memory of its own
 *                                     └─ part: a share of the time
 *
 * A search asks often whether it is over, and then keeps the best it has; one that was abandoned need
 * not even answer. It tells what it finds. A part of a search ends with the whole, and what it tells
 * stays with it, since it is about another problem. NULL is a search without end that nobody listens
 * to. All functions may be called by several threads. */
#ifndef MTF_SEARCH_CONTROL_H
#define MTF_SEARCH_CONTROL_H

#include <glib.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* For people; each may be NULL. */
typedef struct {
    void (*phase)(const char *phase, void *user);
    /* The best cost so far (INFINITY before the first), and the bound, after each round. */
    void (*bound)(double cost, double bound, void *user);
    void *user;
} MtfSearchListener;

typedef struct MtfSearchControl {
    const struct MtfSearchControl *whole; /* that this is a part of; NULL: none */
    struct MtfSearchControl *also; /* is told the same bounds, which hold for it, too; or NULL */
    double seconds;                /* from beginning to deadline; 0: none */
    gint64 deadline;               /* monotonic microseconds; G_MAXINT64: none */
    bool (*interrupted)(void);     /* by the user; NULL: never */
    const MtfSearchListener *listener; /* NULL: nobody */
    const _Atomic int64_t *rival;      /* what another search found costs, INT64_MAX: nothing yet;
                                     this one is abandoned when its bound is */
    double slack;                      /* this many times that; `rival` NULL: no other search */
    _Atomic bool cancelled;            /* mtf_search_cancel */
    _Atomic int64_t cost;              /* of the best that was told found; INT64_MAX: none */
    _Atomic double bound; /* the most that a bound was told or guessed to be; 0: none */
} MtfSearchControl;

/* A search of at most `seconds` seconds of wall-clock time, 0: without a limit. */
void mtf_search_control_init(MtfSearchControl *control, double seconds);

/* A part of a search (or of NULL) that ends with it, or after `seconds` seconds if above 0. At least a
 * hundredth of a second is granted even where there is none left. */
void mtf_search_control_init_part(MtfSearchControl *part, const MtfSearchControl *whole,
                                  double seconds);

/* The same with a share of the time that is left, where there is a deadline. */
void mtf_search_control_init_share(MtfSearchControl *part, const MtfSearchControl *whole,
                                   double share);

/* Whether time is up, or the search is to end for another reason. */
bool mtf_search_is_over(const MtfSearchControl *control);

/* Whether a better answer of another search makes this one useless. */
bool mtf_search_is_abandoned(const MtfSearchControl *control);

/* Whether that would be so for a rival of this cost, INT64_MAX: none. */
bool mtf_search_is_beaten(const MtfSearchControl *control, int64_t rival);

/* Whether it is to end, time apart. */
bool mtf_search_is_stopped(const MtfSearchControl *control);

/* Whether it ends by the clock; seconds until then, at least 0, or INFINITY; the share of its seconds
 * that is over, 0 where there is no deadline. */
bool mtf_search_has_deadline(const MtfSearchControl *control);
double mtf_search_seconds_left(const MtfSearchControl *control);
double mtf_search_share_used(const MtfSearchControl *control);

/* Asks the search to end soon; from any thread. */
void mtf_search_cancel(MtfSearchControl *control);

/* What is being done; a solution that fits; the best cost and the bound after a round; what the bound
 * is going to be at least, as far as can be guessed. */
void mtf_search_tell_phase(const MtfSearchControl *control, const char *phase);
void mtf_search_tell_found(MtfSearchControl *control, int64_t cost);
void mtf_search_tell_bound(MtfSearchControl *control, double cost, double bound);
void mtf_search_tell_guess(MtfSearchControl *control, double guess);

#endif
