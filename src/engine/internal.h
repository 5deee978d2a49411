/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine's own view of itself. One struct engine wires the layers together and owns the name
 * space; its parts guard themselves:
 *
 *   nodes    what names are (nodes.c)          lock: nodes.lock
 *   failed   names that just failed (failed.c) lock: failed.lock
 *   domains  live images by domain (domains.c) lock: domains.lock
 *
 * No lock is held during I/O, callbacks, or while another one is taken.
 */
#ifndef ENGINE_INTERNAL_H
#define ENGINE_INTERNAL_H

#include <hsmount/engine.h>

#include <stdatomic.h>

#include <base/env.h>
#include <cache/cache.h>
#include <schema/schema.h>
#include <http/stats.h>
#include <store/store.h>

#include "domains.h"
#include "names.h"
#include "failed.h"
#include "nodes.h"
#include "stack.h"

struct engine {
	struct env env;
	struct log *log;
	char *bucket; /* as it was named */
	struct pool *pool;
	struct http_stats *meter; /* of what goes over a wire */
	struct store *store;	  /* the whole stack */
	struct stack_parts stack; /* of it, those that count */
	struct cache *cache;
	const struct schema_ops *schema;
	bool no_filters, debug_count;
	uint64_t ttl_ns;      /* names */
	uint64_t open_ttl_ns; /* what an open or a listing found; 0: they always ask */
	uint64_t opened_ns;   /* by env's clock */
	int64_t started_ns;   /* since the epoch: the time of directories that have none */
	struct nodes *nodes;
	struct failed *failed;
	struct domains *domains;
	atomic_uint_fast64_t reads, bytes_read; /* by engine_pread() */
};

static inline uint64_t engine_now(const struct engine *e)
{
	return e->env.now(&e->env);
}

/* Until when a node is believed that is known from now on. */
uint64_t namespace_expiry(const struct engine *e, const struct node *n);
/* What a name of the mount is, from memory or from the bucket (namespace.c). -ENOENT; what kept
 * the bucket from answering. The caller unrefs. */
int namespace_resolve(struct engine *e, const char *path, struct node **out, struct err *err);
/* The document or another object under this name is storage, not for a user's eyes. */
bool namespace_is_hidden(const struct engine *e, const char *path);

/* Permission bits of a file or directory from its access control list (stat.c). */
unsigned int stat_mode(const struct domain_info *d, bool is_dir);
/* The version number of a plain object's bytes. */
uint64_t stat_plain_version(const struct store_meta *meta);
void stat_plain(const struct store_meta *meta, struct engine_stat *st);
/* A node as the kernel would like to see it. ask: for a domain's estimated size when nothing is
 * known of it. */
void stat_node(struct engine *e, struct node *n, bool ask, struct engine_stat *st);

/* The live image of a domain node, opened or checked against the bucket; see domains_open(). */
int domain_snapshot(struct engine *e, const struct node *n, struct snapshot **out, struct err *err);

#endif
