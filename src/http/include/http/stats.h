/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What really went over the wire: requests by method and status, how long each took, bytes,
 * retries, connections. A store that talks to a server is handed a meter and reports every attempt
 * to it; what callers see of that is counted by store_count_new().
 *
 * Threads: all of it lock-free, from any thread; each counter is an atomic of its own. A NULL meter
 * takes everything and counts nothing.
 */
#ifndef HTTP_STATS_H
#define HTTP_STATS_H

#include <stdint.h>

#include <base/histogram.h>

/* A listing is a GET of the bucket: it is told from the others because it costs and takes more. */
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
	/* Complete answers by status; [0]: none came, it broke off, or it was no status of HTTP. */
	uint64_t requests[HTTP_METHODS][HTTP_STATUSES];
	struct histogram_counts seconds[HTTP_METHODS];
	uint64_t bytes_in, bytes_out; /* bodies */
	uint64_t connections_opened, connections;
};

struct http_stats *http_stats_new(void); /* NULL without memory */
void http_stats_free(struct http_stats *m);

/* An attempt has ended after ns nanoseconds on its connection, connecting included. status: 0
 * unless the answer is complete, or as complete as it was wanted. */
void http_stats_request(struct http_stats *m, enum http_method method, long status, uint64_t ns,
			uint64_t bytes_in, uint64_t bytes_out);
void http_stats_connected(struct http_stats *m);
void http_stats_disconnected(struct http_stats *m);
void http_stats_read(const struct http_stats *m, struct http_stats_counts *out);

/* "GET" … */
const char *http_method_name(enum http_method method);

#endif
