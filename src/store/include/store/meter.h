/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What really went over the wire: requests by method and status, how long each took, bytes,
 * retries, connections. A store that talks to a server is handed a meter and reports every attempt
 * to it; what callers see of that is counted by store_count_new().
 *
 * Threads: all of it lock-free, from any thread; each counter is an atomic of its own. A NULL meter
 * takes everything and counts nothing.
 */
#ifndef STORE_METER_H
#define STORE_METER_H

#include <stdint.h>

#include <base/histogram.h>

/* A listing is a GET of the bucket: it is told from the others because it costs and takes more. */
enum meter_method {
	METER_GET,
	METER_HEAD,
	METER_LIST,
	METER_PUT,
	METER_DELETE,
	METER_METHODS,
};

enum { METER_STATUSES = 600 };

struct meter;

struct meter_counts {
	/* Complete answers by status; [0]: none came, it broke off, or it was no status of HTTP. */
	uint64_t requests[METER_METHODS][METER_STATUSES];
	struct histogram_counts seconds[METER_METHODS];
	uint64_t bytes_in, bytes_out; /* bodies */
	uint64_t retries;	      /* requests that were made once more */
	uint64_t connections_opened, connections;
};

struct meter *meter_new(void); /* NULL without memory */
void meter_free(struct meter *m);

/* An attempt has ended after ns nanoseconds on its connection, connecting included. status: 0
 * unless the answer is complete, or as complete as it was wanted. */
void meter_request(struct meter *m, enum meter_method method, long status, uint64_t ns,
		   uint64_t bytes_in, uint64_t bytes_out);
void meter_retry(struct meter *m);
void meter_connected(struct meter *m);
void meter_disconnected(struct meter *m);
void meter_read(const struct meter *m, struct meter_counts *out);

/* "GET" … */
const char *meter_method_name(enum meter_method method);

#endif
