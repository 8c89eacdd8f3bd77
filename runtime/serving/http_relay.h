// SPDX-License-Identifier: GPL-3.0-or-later
/* One connection between a client and libmicrohttpd, which refuses by itself what is no HTTP, with a page of
 * its own in HTML or without a word. Requests pass as they are; answers of ours, too; those of libmicrohttpd
 * are replaced by the errors in JSON that every other bad request gets:
 *
 *     client ──── request ────────────────────────────────────────► libmicrohttpd ──► pages, calls
 *            ◄─── answer in JSON, pages, pieces ───────────────────┤
 *            ◄─── {"error": …} ◄── its sentence ◄── 400 … <html> ──┤
 *            ◄─── {"error": …} ◄─────────────────── closed ────────┘
 */
#ifndef MTF_HTTP_RELAY_H
#define MTF_HTTP_RELAY_H

/* Relays between two stream sockets until either end is done, then closes both. A request that `quiet_seconds`
 * did not bring whole is refused with 408. */
void mtf_http_relay_run(int client, int inner, unsigned quiet_seconds);

/* Answers with an error in JSON, and closes when the client has had time to read it; the status is as its line
 * says it: "503 Service Unavailable". */
void mtf_http_relay_refuse(int client, const char *status, const char *message);

#endif
