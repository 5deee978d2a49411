/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the engine's files share. One struct engine joins the layers. Each of its parts has its own
 * lock. No lock is held during I/O, during a callback, or while another lock is taken.
 */
#ifndef ENGINE_INTERNAL_H
#define ENGINE_INTERNAL_H

#include <hsmount/engine.h>

#include <stdatomic.h>
#include <time.h>

#include <base/env.h>
#include <cache/cache.h>
#include <domain/domain.h>
#include <names/names.h>
#include <http/stats.h>
#include <store/store.h>

#include "files.h"
#include "garbage.h"
#include "snapshots.h"
#include "store_stack.h"

struct drafts;

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
	atomic_uint_fast64_t reads, bytes_read; /* of engine_pread() */
	struct garbage *garbage;		/* NULL: names cannot be changed */
	struct leftovers *leftovers;		/* notes of garbage; NULL: there are none */
	char *user;				/* owner of new folders */
	struct drafts *drafts;			/* NULL: files cannot be written */
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

/* How garbage is examined and deleted (change.c). */
struct garbage_ops change_garbage_ops(struct engine *e);
/* Notes of garbage in the journal (garbage_notes.c). */
int garbage_notes_open(struct engine *e, struct journal *j, struct err *err);
/* Takes over what earlier processes have noted. Sends no request. */
void garbage_notes_take(struct engine *e);
int garbage_note(void *engine, uint32_t *slot, const struct leftover *entry, struct err *err);
void garbage_forget(void *engine, uint32_t *slot);
int garbage_judge(void *engine, const struct leftover *expected, const atomic_bool *cancelled,
		  struct err *err);
/* Notes that the domain at a path is removed, or replaced by another one (gets, or NULL), for
 * garbage_settle(). */
uint32_t garbage_note_change(struct engine *e, const char *path, const struct domain_info *loses,
			     const struct domain_info *gets);

/* Puts at the same time, of an import that asks for so many, or 0 for the default. More than the
 * connections to the server would only wait for one (import.c). */
unsigned int import_puts(const struct engine *e, unsigned int asked);

/* The attributes of a plain object of this version (stat.c). */
void stat_object(const struct engine *e, const struct store_meta *meta, struct engine_stat *st);

/* Looks a path up. *requested: a time before the request for it; zero if the answer
 * was in the cache. */
int snapshot_resolve(struct engine *e, const char *path, struct names_node **out,
		     struct snapshot_time *requested, struct err *err);
/* Opens the snapshot of a domain that was looked up; see snapshots_open(). requested: the result of
 * snapshot_resolve() for this call. */
int domain_snapshot(struct engine *e, const struct names_node *n,
		    const struct snapshot_time *requested, struct snapshot **out, struct err *err);

#endif
