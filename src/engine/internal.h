/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine's own view of itself. One struct engine wires the layers together; its parts guard
 * themselves. No lock is held during I/O, callbacks, or while another one is taken.
 */
#ifndef ENGINE_INTERNAL_H
#define ENGINE_INTERNAL_H

#include <hsmount/engine.h>

#include <stdatomic.h>

#include <base/env.h>
#include <cache/cache.h>
#include <names/names.h>
#include <schema/schema.h>
#include <http/stats.h>
#include <store/store.h>

#include "snapshots.h"
#include "store_stack.h"

struct engine {
	struct env env;
	struct log *log;
	char *bucket; /* as it was named */
	struct pool *pool;
	struct http_stats *meter;	/* of what goes over a wire */
	struct store *store;		/* the whole stack */
	struct store_stack_parts stack; /* of it, those that count */
	struct cache *cache;
	const struct schema_ops *schema;
	bool no_filters, debug_count;
	uint64_t open_ttl_ns; /* what an open or a listing found; 0: they always ask */
	uint64_t opened_ns;   /* by env's clock */
	int64_t started_ns;   /* since the epoch: the time of directories that have none */
	struct names *names;  /* what paths of the mount are */
	struct snapshots *snapshots;
	atomic_uint_fast64_t reads, bytes_read; /* by engine_pread() */
};

static inline uint64_t engine_now(const struct engine *e)
{
	return e->env.now(&e->env);
}

/* A version of a plain object as the kernel would like to see it (stat.c). */
void stat_object(const struct store_meta *meta, struct engine_stat *st);

/* The live image of a domain node, opened or checked against the bucket; see snapshots_open(). */
int domain_snapshot(struct engine *e, const struct names_node *n, struct snapshot **out,
		    struct err *err);

#endif
