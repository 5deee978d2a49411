/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counters of the traffic: requests by method and status, their durations, bytes, connections. The
 * transport counts every attempt here; store_count_new() counts the requests of the store's
 * callers.
 *
 * Threads: lock-free, any thread; each counter is an atomic. The functions that count accept NULL
 * and do nothing.
 */
#ifndef HTTP_STATS_H
#define HTTP_STATS_H

#include <stdint.h>

#include <base/histogram.h>

/* A listing is a GET of the bucket. It is counted separately because it costs more and takes
 * longer. */
enum http_method {
	HTTP_GET,
	HTTP_HEAD,
	HTTP_LIST,
	HTTP_PUT,
	HTTP_DELETE,
	HTTP_METHODS,
};

enum { HTTP_STATUSES = 600 };

struct http_stats;

struct http_stats_counts {
	/* Complete answers by status. [0] counts requests without an answer, or with an invalid
	 * status. */
	uint64_t requests[HTTP_METHODS][HTTP_STATUSES];
	struct histogram_counts seconds[HTTP_METHODS];
	uint64_t bytes_in, bytes_out; /* bodies */
	uint64_t connections_opened, connections;
};

struct http_stats *http_stats_new(void); /* NULL if out of memory */
void http_stats_free(struct http_stats *m);

/* Counts an attempt that ended after ns nanoseconds, including the time for connecting. status is 0
 * unless the answer is complete or was cut on purpose. */
void http_stats_request(struct http_stats *m, enum http_method method, long status, uint64_t ns,
			uint64_t bytes_in, uint64_t bytes_out);
void http_stats_connected(struct http_stats *m);
void http_stats_disconnected(struct http_stats *m);
void http_stats_read(const struct http_stats *m, struct http_stats_counts *out);

/* Returns "GET" … */
const char *http_method_name(enum http_method method);

#endif
