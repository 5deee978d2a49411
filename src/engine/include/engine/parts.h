/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of an engine, for the files of engine/ and for the layers that work on an open bucket
 * beside it: check/ and recover/. One struct engine joins the layers. Each of its parts has its own
 * lock. No lock is held during I/O, during a callback, or while another lock is taken.
 */
#ifndef ENGINE_PARTS_H
#define ENGINE_PARTS_H

#include <hsmount/engine.h>

#include <stdatomic.h>
#include <time.h>

#include <base/env.h>
#include <domain/domain.h>
#include <engine/store_stack.h>

struct cache;
struct drafts;
struct early;
struct files;
struct garbage;
struct http_stats;
struct leftovers;
struct names;
struct renames;
struct size_memory;
struct sizes;
struct snapshots;

struct engine {
	struct env env;
	struct log *log;
	char *bucket; /* as in the options */
	struct pool *pool;
	struct http_stats *meter;	/* counts HTTP requests */
	struct store *store;		/* the whole stack of stores */
	struct store_stack_parts stack; /* parts of it that have counters */
	struct files *files;		/* that domains refer to */
	struct domain_bucket domains;	/* how domains are opened */
	struct domain_changes changes;	/* of drafts, in place */
	struct cache *cache;
	bool no_filters, debug_count;
	unsigned int connections; /* of S3, at the same time */
	uint64_t open_ttl_ns;	  /* engine_options.open_ttl */
	uint64_t opened_ns;	  /* by env's clock */
	int64_t started_ns;	  /* since the epoch: the time of directories without a document */
	char *root_names;	  /* names of engine_options.root, each with a NUL */
	const char **roots;	  /* of names_options; in root_names */
	struct names *names;
	struct snapshots *snapshots;
	enum engine_stat_mode stat_mode;
	struct size_memory *size_memory;
	struct sizes *sizes;			/* of domains that are not open */
	atomic_uint_fast64_t reads, bytes_read; /* of engine_pread() */
	struct garbage *garbage;		/* NULL: names cannot be changed */
	struct leftovers *leftovers;		/* notes of garbage; NULL: there are none */
	struct renames *renames;		/* of this mount; NULL if names cannot be changed */
	char *user;				/* owner of new folders */
	struct drafts *drafts;			/* NULL: files cannot be written */
	struct early *early;			/* what is requested in advance, or NULL */
};

/* The surroundings of an engine in a simulation (engine_options.world): several engines in one
 * process over one bucket. All but `store` are as in struct env. Garbage is not deleted in a
 * thread: the caller calls garbage_collect(). */
struct engine_world {
	/* The bucket, which the engine owns: it frees the store. engine_options.bucket still names
	 * a directory; its path identifies the bucket in the journal. */
	struct store *(*store)(void *ctx, const struct env *env, struct err *err);
	uint64_t (*now)(const struct env *env);
	int64_t (*wall)(const struct env *env);
	void (*sleep)(const struct env *env, uint64_t ns);
	void (*random)(const struct env *env, void *bytes, size_t n);
	void *ctx;
};

static inline uint64_t engine_now(const struct engine *e)
{
	return e->env.now(&e->env);
}

/* Nanoseconds since the epoch. */
static inline int64_t engine_wall_clock(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

#endif
