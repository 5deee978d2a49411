/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data of a domain that are in HDF5 files: which versions of the files are read, where their chunks
 * are, and the ranges that are read from them. The state is that of one snapshot and lives as long
 * as it; each table has a lock. No function blocks, and none calls back or reads under a lock.
 *
 * A callback may be the last user of the snapshot, so its caller does not touch the snapshot
 * afterwards.
 */
#ifndef RANGES_REFERENCES_H
#define RANGES_REFERENCES_H

#include <pthread.h>
#include <stdatomic.h>

#include <hsmount/err.h>
#include <base/cancelled.h>
#include <base/mem.h>
#include <data/chunk_source.h>
#include <data/elems.h>
#include <data/filter.h>
#include <data/reference.h>

struct env;
struct file_finder;
struct store_request;
struct tree;

struct ranges {
	const struct env *env;
	const struct file_finder *finder; /* NULL if files are not read */
	const struct tree *tree;    /* of the domain; its datasets are named by their numbers */
	bool has_references;	    /* a dataset refers to an HDF5 file; constant after the open */
	pthread_mutex_t lock;	    /* guards the tables, and the entries that say so */
	struct ref_file *files;	    /* uthash, by URI; ref_file.c */
	struct table_chunk *tables; /* uthash; chunk_table.c */
	struct table_chunk *oldest; /* list of the complete ones, in the order of their use */
	uint64_t table_bytes;
	/* How fast the files are read, in two windows of the last answers; see ref_gap(). */
	struct ref_speed {
		uint64_t latency_ns; /* the shortest; 0 if there is none */
		uint64_t rate;	     /* the highest, in bytes per second */
	} now, before;
	unsigned int answers; /* in the current window */
	atomic_bool changed;  /* a file has another version than the snapshot */
};
/* Sets everything but the lock and these members to zero. env, finder and tree are borrowed. */
void ranges_init(struct ranges *all, const struct env *env, const struct file_finder *finder,
		 const struct tree *tree);
void ranges_release(struct ranges *all);

/* ---- ref_file.c: a file, and ranges of it ---- */

struct ref_file;

/* Returns the file of a reference, which lives as long as the domain. Returns NULL with err set to
 * an error of file_finder.resolve, or to -EIO if the URI is not valid or the recorded version is
 * not that of another reference to the file. */
struct ref_file *ref_file_find(struct ranges *all, const struct reference_file *recorded,
			       struct err *err);
const char *ref_file_uri(const struct ref_file *f);
/* Returns the bytes of the version that the snapshot reads, or UINT64_MAX if it is not known before
 * the first read. */
uint64_t ref_file_size(const struct ref_file *f);

/* Returns the longest gap between two reads, in bytes, that takes less time than a round trip: the
 * shortest time of an answer, multiplied by the highest rate of one, of the last 64 to 128 answers.
 * It is at least 4 KiB and at most 1 MiB. */
uint64_t ref_gap(struct ref_file *f);

/* A read of a range, in the caller's memory until done is called. */
struct ref_read {
	struct ref_file *file;
	uint64_t offset, length; /* length > 0 */
	bool short_ok;		 /* the range may reach past the end of the file */
	bool prefetch;
	struct cancelled cancelled; /* as in struct store_request */
	/* If it is not NULL, the read is submitted at the end of this batch, maybe together with
	 * others. It is then cancelled when all of them are. */
	struct ref_batch *batch;
	/* Called in any thread, possibly before ref_read() returns. code is 0, -EIO if the file is
	 * absent, has another version or ends before the range, or an error of the store. err names
	 * the file. body has `length` bytes, which done may take. */
	void (*done)(struct ref_read *r, int code, struct bytes *body, const struct err *err);
	void *arg;
	/* private */
	struct store_request *req;
	uint64_t began_ns;
	struct ref_read *next; /* in the batch */
};
void ref_read(struct ref_read *r);

/* ---- ref_merge.c: reads that begin at the same time ---- */

struct ref_batch {
	struct ref_read *first;
	size_t n;
};
/* Returns NULL if the domain refers to no files, or if out of memory. Then reads are not joined. */
struct ref_batch *ref_batch_begin(struct ranges *all);
/* Submits the reads and frees the batch. b may be NULL. */
void ref_batch_end(struct ref_batch *b);

/* ---- ref_index.c: the chunk index of a file ---- */

struct ref_place {
	bool stored;
	uint64_t offset, size; /* in the file */
	uint32_t filter_mask;
	const struct pipeline *pipeline; /* of the file; lives as long as the domain */
};

/* A search in the chunk index of the file, in the caller's memory until done is called. */
struct ref_search {
	struct ref_file *file;
	uint32_t dataset;   /* of the domain */
	uint64_t number;    /* of the chunk in its grid */
	const char *h5path; /* of the dataset in the file; NULL if it is that in the domain */
	bool prefetch;
	void (*done)(struct ref_search *s, int code, const struct ref_place *place,
		     const struct err *err);
	void *arg;
	struct ref_search *next; /* private */
};
void ref_index_find(struct ref_search *s);
/* Returns the pipeline of the file's dataset if an earlier search has found it, otherwise NULL. */
const struct pipeline *ref_index_pipeline(struct ref_file *f, uint32_t dataset);

/* ---- chunk_table.c: records of chunk tables ---- */

/* A read of a record, in the caller's memory until done is called. */
struct table_read {
	struct ranges *ranges;
	uint32_t table;
	uint64_t record;
	bool prefetch;
	/* Reads a chunk of the table, as struct chunk_source.get does. */
	void (*load)(void *ctx, const struct chunk_request *request, chunk_done done, void *arg);
	void *ctx;
	/* It may be NULL. It is passed to done if that is called before table_read() returns. */
	struct ref_batch *batch;
	/* value has one element; it is NULL if its chunk is not stored. batch is for further reads
	 * and is valid until done returns; it may be NULL. */
	void (*done)(struct table_read *r, int code, const struct elems *value,
		     struct ref_batch *batch, const struct err *err);
	void *arg;
	/* private */
	struct table_read *next;
	struct elems value;
	int code;
	bool absent;
};
void table_read(struct table_read *r);

/* Drops the chunks of tables that are in memory, so that later reads fetch them again. Any thread.
 */
void ranges_forget_tables(struct ranges *all);

#endif
