/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An open bucket: what the layers share that work on it. The engine makes the parts, in the order
 * of this struct, and frees them. Each part has its own lock.
 */
#ifndef BUCKET_BUCKET_H
#define BUCKET_BUCKET_H

#include <hsmount/engine.h>

#include <stdbool.h>
#include <stdint.h>

#include <base/env.h>
#include <bucket/store_stack.h>
#include <domain/domain.h>

struct cache;
struct garbage;
struct gc_log;
struct http_stats;
struct names;
struct renames;
struct schema_ops;
struct size_cache;
struct snapshots;

struct bucket {
	struct env env;
	struct log *log;
	struct pool *pool;
	char *name;			/* as in the options */
	const char *short_name;		/* that of the service, without a prefix; borrowed */
	struct http_stats *meter;	/* counts HTTP requests */
	struct store *store;		/* the whole stack of stores */
	struct store_stack_parts stack; /* parts of it that have counters */
	unsigned int connections;	/* of S3, at the same time */
	struct domain_bucket domains;	/* how domains are opened */
	struct domain_changes changes;	/* of drafts, in place */
	struct cache *cache;
	struct names *names;
	enum engine_stat_mode stat_mode;
	uint64_t open_ttl_ns; /* engine_options.open_ttl */
	bool no_filters;
	bool keeps_attributes; /* engine_options.keep_attributes */
	struct size_cache *size_cache;
	struct snapshots *snapshots;
	bool writes; /* engine_options.write; otherwise the rest is NULL */
	struct garbage *garbage;
	struct gc_log *gc_log;	 /* what is to be deleted later */
	struct renames *renames; /* of this mount */
	char *user;		 /* owner of new folders */
};

/* The schema of the domains and folders that this program makes; never NULL. A domain that exists
 * has the schema of its document. The journal, and the deletion of storages whose domain is gone,
 * know only the prefix of a storage, so they use this schema, too. If a second schema gets a
 * writer, both must name a storage by its schema and prefix instead. */
const struct schema_ops *bucket_new_domains(const struct bucket *bucket);

/* Returns how many puts of an import or a commit run at the same time. `asked` is the number that a
 * user wants, or 0. More puts than connections to the server would only wait for a connection. */
unsigned int bucket_puts(const struct bucket *bucket, unsigned int asked);

#endif
