/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges of objects of any store, of each object in one version. The state is that of one snapshot
 * and lives as long as it; each table has a lock. No function blocks, and none calls back or reads
 * under a lock.
 *
 * A callback may be the last user of the snapshot, so its caller does not touch the snapshot
 * afterwards.
 */
#ifndef RANGES_RANGES_H
#define RANGES_RANGES_H

#include <pthread.h>
#include <stdatomic.h>

#include <hsmount/err.h>
#include <base/cancelled.h>
#include <base/mem.h>
#include <store/store.h>

struct env;
struct file_finder;
struct tree;

struct ranges {
	const struct env *env;
	const struct file_finder *finder; /* NULL if files are not read */
	const struct tree *tree;   /* of the domain; its datasets are named by their numbers */
	bool joins;		   /* chunks may be ranges; constant after the open */
	pthread_mutex_t lock;	   /* guards the tables, and the entries that say so */
	struct ref_file *files;	   /* uthash, by URI; ref_file.c */
	struct index_part *places; /* uthash; place_index.c */
	struct index_part *oldest; /* list of the complete ones, in the order of their use */
	uint64_t place_bytes;
	struct shard_part *shards;	 /* uthash; shards.c */
	struct shard_part *oldest_shard; /* list of the complete ones, in the order of their use */
	uint64_t shard_bytes;
	/* Searches for chunks in shards whose index was in memory, and those that had to read it.
	 */
	atomic_uint_fast64_t shard_hits, shard_misses;
	/* How fast objects are read, in two windows of the last answers; see range_gap(). */
	struct range_speed {
		uint64_t latency_ns; /* the shortest; 0 if there is none */
		uint64_t rate;	     /* the highest, in bytes per second */
	} now, before;
	unsigned int answers; /* in the current window */
	atomic_bool changed;  /* an object has another version than the snapshot */
};
/* Sets everything but the lock and these members to zero. env, finder and tree are borrowed. */
void ranges_init(struct ranges *all, const struct env *env, const struct file_finder *finder,
		 const struct tree *tree);
void ranges_release(struct ranges *all);

/* ---- range_object.c: an object, and ranges of it ---- */

struct range_object {
	/* The user sets these. What they point to is borrowed. */
	struct ranges *all;
	struct store *store;
	const char *key;
	const char *name; /* in errors */
	/* An object of the domain itself: if it is another version, reads fail with -ESTALE, as
	 * those of other objects of the domain do. */
	bool is_own;
	uint64_t required_size; /* UINT64_MAX for any; under the lock */
	/* The version that the snapshot reads. It is written once, under the lock, and then
	 * `pinned` is set. A thread that sees that reads it without the lock. */
	atomic_bool pinned;
	bool required;		   /* the user has required it; otherwise the first answer had it */
	uint64_t size;		   /* UINT64_MAX for any */
	char etag[STORE_ETAG_MAX]; /* "" for any */
	/* A read has found that the object is absent, or has another version. All later reads fail
	 * for this reason. */
	atomic_bool is_lost;
};
/* Requires that the object has an ETag ("" for any) and a size (UINT64_MAX for any). What is not
 * required is that of the first answer. Fails with -EIO if another version is required or was read
 * before; err names the object. */
int range_require(struct range_object *o, const char *etag, uint64_t size, struct err *err);
/* Returns the bytes of the version that the snapshot reads, or UINT64_MAX if it is not known before
 * the first read. */
uint64_t range_object_size(const struct range_object *o);

/* Returns the longest gap between two reads, in bytes, that takes less time than a round trip: the
 * shortest time of an answer, multiplied by the highest rate of one, of the last 64 to 128 answers.
 * It is at least 4 KiB and at most 1 MiB. */
uint64_t range_gap(struct ranges *all);

/* A read of a range, in the caller's memory until done is called. */
struct range_read {
	struct range_object *object;
	uint64_t offset, length; /* length > 0 */
	bool from_end;		 /* the last `length` bytes; offset is 0 */
	bool short_ok;		 /* the range may reach past the end of the object */
	/* The object may be absent, unless an earlier read has found it: then code is 0, and
	 * `absence` is set. */
	bool absent_ok;
	bool prefetch;
	/* The parts that are needed, as in struct store_request; NULL for all. */
	const struct store_range *parts;
	size_t n_parts;
	struct cancelled cancelled; /* as in struct store_request */
	/* If it is not NULL, the read is submitted at the end of this batch, maybe together with
	 * others. It is then cancelled when all of them are. */
	struct range_batch *batch;
	/* Called in any thread, possibly before range_read() returns. code is 0, -EIO if the object
	 * is absent, has another version (or -ESTALE) or ends before the range, or an error of the
	 * store. err names the object. body has `length` bytes, which done may take. */
	void (*done)(struct range_read *r, int code, struct bytes *body, const struct err *err);
	void *arg;
	struct store_absence absence; /* zero if the object exists */
	/* private */
	struct store_request *req;
	uint64_t began_ns;
	struct range_read *next; /* in the batch */
};
void range_read(struct range_read *r);
/* Sets the error of a range that is past the end of an object. */
int range_past_end(uint64_t size, struct err *err);
/* Adds the object to an error of a read, and the range unless the object is lost. */
void range_explain(const struct range_read *r, struct err *err);

/* ---- range_batch.c: reads that begin at the same time ---- */

struct range_batch {
	struct range_read *first;
	size_t n;
};
/* Returns NULL if no chunk is a range, or if out of memory. Then reads are not joined. */
struct range_batch *range_batch_begin(struct ranges *all);
/* Submits the reads and frees the batch. b may be NULL. */
void range_batch_end(struct range_batch *b);

#endif
