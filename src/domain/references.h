/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data of a domain that are in HDF5 files: which versions of the files are read, where their chunks
 * are, and the ranges that are read from them. The state is that of one snapshot and lives as long
 * as it; each table has a lock. No function blocks, and none calls back or reads under a lock.
 *
 * A callback may be the last user of the snapshot: whoever calls one does not touch the snapshot
 * afterwards.
 */
#ifndef DOMAIN_REFERENCES_H
#define DOMAIN_REFERENCES_H

#include <pthread.h>
#include <stdatomic.h>

#include <hsmount/err.h>
#include <base/mem.h>
#include <data/chunk_source.h>
#include <data/elems.h>
#include <data/filter.h>
#include <data/reference.h>

struct domain;
struct store_request;

struct domain_references {
	pthread_mutex_t lock;	    /* guards the tables, and the entries that say so */
	struct ref_file *files;	    /* uthash, by URI; ref_file.c */
	struct table_chunk *tables; /* uthash; chunk_table.c */
	struct table_chunk *oldest; /* list of the complete ones, in the order of their use */
	uint64_t table_bytes;
	atomic_bool changed; /* a file has another version than the snapshot */
};
void domain_references_init(struct domain *d);
void domain_references_release(struct domain *d);

/* ---- ref_file.c: a file, and ranges of it ---- */

struct ref_file;

/* The file of a reference. It lives as long as the domain. NULL with err set: see
 * domain_files.resolve; -EIO: its recorded version is not that of another reference to it. */
struct ref_file *ref_file_find(struct domain *d, const struct reference_file *recorded,
			       struct err *err);
const char *ref_file_uri(const struct ref_file *f);
/* Bytes of the version that the snapshot reads; UINT64_MAX: not known before the first read. */
uint64_t ref_file_size(const struct ref_file *f);

/* A read of a range, in the caller's memory until done is called. */
struct ref_read {
	struct ref_file *file;
	uint64_t offset, length; /* length > 0 */
	bool short_ok;		 /* the range may reach past the end of the file */
	bool prefetch;
	const atomic_bool *cancelled; /* as in struct store_request */
	/* code: 0, or -EIO: the file is absent, is another version, or ends before the range; or an
	 * error of the store. err names the file. body: `length` bytes, which done may take. Called
	 * in any thread, possibly before ref_read() returns. */
	void (*done)(struct ref_read *r, int code, struct bytes *body, const struct err *err);
	void *arg;
	struct store_request *req; /* private */
};
void ref_read(struct ref_read *r);

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
	uint32_t dataset; /* of the domain */
	uint64_t number;  /* of the chunk in its grid */
	const char
		*h5path; /* of the dataset in the file; NULL: the path that it has in the domain */
	bool prefetch;
	void (*done)(struct ref_search *s, int code, const struct ref_place *place,
		     const struct err *err);
	void *arg;
	struct ref_search *next; /* private */
};
void ref_index_find(struct ref_search *s);
/* The pipeline of the file's dataset, if an earlier search has found it; otherwise NULL. */
const struct pipeline *ref_index_pipeline(struct ref_file *f, uint32_t dataset);

/* ---- chunk_table.c: records of chunk tables ---- */

/* A read of a record, in the caller's memory until done is called. */
struct table_read {
	struct domain *domain;
	uint32_t table;
	uint64_t record;
	bool prefetch;
	/* Reads a chunk of the table, as struct chunk_source.get does. */
	void (*load)(struct domain *d, const struct chunk_request *request, chunk_done done,
		     void *arg);
	/* value: one element; NULL: its chunk is not stored. */
	void (*done)(struct table_read *r, int code, const struct elems *value,
		     const struct err *err);
	void *arg;
	/* private */
	struct table_read *next;
	struct elems value;
	int code;
	bool absent;
};
void table_read(struct table_read *r);

#endif
