/* SPDX-License-Identifier: Apache-2.0 */
/* What went over the wire: see store/meter.h. Lock-free, any thread. */
#include <store/meter.h>

#include <stdatomic.h>
#include <stdlib.h>

typedef atomic_uint_fast64_t counter;

struct meter {
	counter requests[METER_METHODS][METER_STATUSES];
	struct histogram seconds[METER_METHODS];
	counter bytes_in, bytes_out, retries, opened, connections;
};

struct meter *meter_new(void)
{
	return calloc(1, sizeof(struct meter));
}

void meter_free(struct meter *m)
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

void meter_request(struct meter *m, enum meter_method method, long status, uint64_t ns,
		   uint64_t bytes_in, uint64_t bytes_out)
{
	if (!m)
		return;
	add(&m->requests[method][status > 0 && status < METER_STATUSES ? status : 0], 1);
	histogram_record(&m->seconds[method], ns);
	add(&m->bytes_in, bytes_in);
	add(&m->bytes_out, bytes_out);
}

void meter_retry(struct meter *m)
{
	if (m)
		add(&m->retries, 1);
}

void meter_connected(struct meter *m)
{
	if (!m)
		return;
	add(&m->opened, 1);
	add(&m->connections, 1);
}

void meter_disconnected(struct meter *m)
{
	if (m)
		atomic_fetch_sub_explicit(&m->connections, 1, memory_order_relaxed);
}

void meter_read(const struct meter *m, struct meter_counts *out)
{
	*out = (struct meter_counts){0};
	if (!m)
		return;
	for (int method = 0; method < METER_METHODS; method++) {
		for (int status = 0; status < METER_STATUSES; status++)
			out->requests[method][status] = get(&m->requests[method][status]);
		histogram_read(&m->seconds[method], &out->seconds[method]);
	}
	out->bytes_in = get(&m->bytes_in);
	out->bytes_out = get(&m->bytes_out);
	out->retries = get(&m->retries);
	out->connections_opened = get(&m->opened);
	out->connections = get(&m->connections);
}

const char *meter_method_name(enum meter_method method)
{
	static const char *const names[METER_METHODS] = {
		[METER_GET] = "GET", [METER_HEAD] = "HEAD",	[METER_LIST] = "LIST",
		[METER_PUT] = "PUT", [METER_DELETE] = "DELETE",
	};
	return names[method];
}
