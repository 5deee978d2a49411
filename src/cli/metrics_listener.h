/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Serves the engine's report to Prometheus, or to anybody on this machine: GET /metrics, and /stats
 * as JSON. One thread, one connection at a time, each closed after its answer and after
 * METRICS_PATIENCE_MS at the latest.
 */
#ifndef CLI_METRICS_LISTENER_H
#define CLI_METRICS_LISTENER_H

#include <hsmount/engine.h>
#include <hsmount/err.h>

#include "metrics_address.h"

enum { METRICS_PATIENCE_MS = 2000 };

struct metrics_listener;
/* Binds, so that a port that is taken is told before the program goes into the background; starts
 * nothing. The engine is borrowed. NULL with err set. */
struct metrics_listener *metrics_listener_new(const struct metrics_address *address,
					      struct engine *engine, struct err *err);
/* After the last fork. */
int metrics_listener_start(struct metrics_listener *l, struct err *err);
/* Ends the thread at once, whoever is connected. NULL is fine. */
void metrics_listener_free(struct metrics_listener *l);

#endif
