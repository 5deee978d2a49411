/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of the transport. Lock-free, any thread. */
#include <http/stats.h>

#include <stdatomic.h>
#include <stdlib.h>

typedef atomic_uint_fast64_t counter;

struct http_stats {
	counter requests[HTTP_METHODS][HTTP_STATUSES];
	struct histogram seconds[HTTP_METHODS];
	counter bytes_in, bytes_out, opened, connections;
};

struct http_stats *http_stats_new(void)
{
	return calloc(1, sizeof(struct http_stats));
}

void http_stats_free(struct http_stats *m)
{
	free(m);
}

static void add(counter *c, uint64_t n)
{
	atomic_fetch_add_explicit(c, n, memory_order_relaxed);
}

static uint64_t get(const counter *c)
{
	return atomic_load_explicit(c, memory_order_relaxed);
}

void http_stats_request(struct http_stats *m, enum http_method method, long status, uint64_t ns,
			uint64_t bytes_in, uint64_t bytes_out)
{
	if (!m)
		return;
	add(&m->requests[method][status > 0 && status < HTTP_STATUSES ? status : 0], 1);
	histogram_record(&m->seconds[method], ns);
	add(&m->bytes_in, bytes_in);
	add(&m->bytes_out, bytes_out);
}

void http_stats_connected(struct http_stats *m)
{
	if (!m)
		return;
	add(&m->opened, 1);
	add(&m->connections, 1);
}

void http_stats_disconnected(struct http_stats *m)
{
	if (m)
		atomic_fetch_sub_explicit(&m->connections, 1, memory_order_relaxed);
}

void http_stats_read(const struct http_stats *m, struct http_stats_counts *out)
{
	*out = (struct http_stats_counts){0};
	if (!m)
		return;
	for (int method = 0; method < HTTP_METHODS; method++) {
		for (int status = 0; status < HTTP_STATUSES; status++)
			out->requests[method][status] = get(&m->requests[method][status]);
		histogram_read(&m->seconds[method], &out->seconds[method]);
	}
	out->bytes_in = get(&m->bytes_in);
	out->bytes_out = get(&m->bytes_out);
	out->connections_opened = get(&m->opened);
	out->connections = get(&m->connections);
}

const char *http_method_name(enum http_method method)
{
	static const char *const names[HTTP_METHODS] = {
		[HTTP_GET] = "GET", [HTTP_HEAD] = "HEAD",     [HTTP_LIST] = "LIST",
		[HTTP_PUT] = "PUT", [HTTP_DELETE] = "DELETE",
	};
	return names[method];
}
