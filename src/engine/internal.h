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

/* Looks a name up. *asked: when the bucket was asked for it, zero when it was not. */
int snapshot_resolve(struct engine *e, const char *path, struct names_node **out,
		     struct snapshot_time *asked, struct err *err);
/* The live image of a domain node, opened or checked against the bucket; see snapshots_open().
 * asked: by looking the node up for this very call. */
int domain_snapshot(struct engine *e, const struct names_node *n, const struct snapshot_time *asked,
		    struct snapshot **out, struct err *err);

#endif
