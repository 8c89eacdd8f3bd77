// SPDX-License-Identifier: GPL-3.0-or-later
/* A model served over HTTP on this host (meshtf-run --serve). Rank 0 listens, keeps the requests and
 * draws; the other ranks follow it round by round:
 *
 *     rank 0   take calls ─► fill ─┐                 ┌─► draw ─► answer
 *                                  ├─ words ─► feed ─┤
 *     rank r   ────────────────────┘                 └─►
 *
 * Words of a round are, for every slot, whether it is emptied, how many tokens it brings, and those.
 * While nobody asks all ranks sleep and look up a few times a second. */
#ifndef MTF_SERVE_H
#define MTF_SERVE_H

#include "runtime/session/session.h"

/* Collective: serves until a signal asks to stop (stop_signals.h), and says where. Fails (bad input)
 * where the model cannot generate from caches, and when the port is not free. */
bool mtf_serve(MtfSession *session, GError **error);

#endif
