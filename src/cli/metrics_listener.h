/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Serves the engine's report over HTTP to programs on this machine: /metrics in Prometheus' text
 * format and /stats as JSON. Each connection is closed after one response.
 */
#ifndef CLI_METRICS_LISTENER_H
#define CLI_METRICS_LISTENER_H

#include <hsmount/engine.h>
#include <hsmount/err.h>

#include "metrics_address.h"

enum {
	METRICS_CONNECTIONS = 128, /* at once; later ones wait in the kernel's queue */
	METRICS_IDLE_S = 2,	   /* seconds after which a silent connection is closed */
};

struct metrics_listener;
/* Binds the port but starts no thread. Call it before the program goes into the background, so that
 * an error reaches the terminal. The engine is borrowed. Returns NULL with err set. */
struct metrics_listener *metrics_listener_new(const struct metrics_address *address,
					      struct engine *engine, struct err *err);
/* Starts the thread that serves. Call it after the last fork. */
int metrics_listener_start(struct metrics_listener *l, struct err *err);
/* Closes all connections and ends the thread. l may be NULL. */
void metrics_listener_free(struct metrics_listener *l);

#endif
