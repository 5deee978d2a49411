/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the storages of a bucket to which nothing leads: no document of a domain anywhere in the
 * bucket, and no record of an unfinished import.
 *
 * The order makes this certain. The storages are listed first, so each of them is older than the
 * reading of the names. A reading takes the records of imports first, then the documents: an import
 * puts its document before it deletes its record, so one of the two is seen. A rename, which may
 * make a reading miss both names of a domain, writes them into the list of names of the storage
 * before: storage_deletion_end() looks there last.
 *
 * Absence is proved by listings alone, so everything that is in doubt is an error: a listing that
 * fails, or leaves out a key; a document or a record that cannot be read, or is damaged; a document
 * whose root group is in no known form of storage. Then nobody may conclude anything.
 *
 * Memory: 24 bytes for each domain: the number of each storage, and half of the SHA-256 of the key
 * and the version of each document. The second reading requests only documents that are new or
 * changed, so it costs its listings. One thread; all functions block.
 */
#ifndef STORAGE_STORAGE_SCAN_H
#define STORAGE_STORAGE_SCAN_H

#include <domain/documents.h>

struct storage_scan;

struct storage_scan_options {
	const struct document_place *place; /* its schema is that of new domains */
	/* Called after each page of names, with the number of documents so far. An error ends the
	 * reading. It may be NULL. */
	int (*page)(void *ctx, uint64_t documents, struct err *err);
	void *ctx;
};

/* Lists the storages. The options are borrowed. */
int storage_scan_new(const struct storage_scan_options *opt, struct storage_scan **out,
		     struct err *err);
void storage_scan_free(struct storage_scan *s); /* s may be NULL */
/* Reads all names. After each call, the storages of storage_scan_left() are those to which no name
 * led in any call so far. Fails with -EIO if something is damaged, and with the errors of the
 * store. *err then says what could not be read. */
int storage_scan_read(struct storage_scan *s, struct err *err);
/* Returns the number of storages that are left, in the order of their keys, and the i-th of them.
 * The index has a meaning until the next reading. */
size_t storage_scan_count(const struct storage_scan *s);
struct storage storage_scan_left(const struct storage_scan *s, size_t i);
/* Returns whether a storage is left. */
bool storage_scan_is_left(const struct storage_scan *s, const struct storage *storage);
/* Returns the time of the newest object that the readings have seen; 0 if unknown. */
int64_t storage_scan_newest(const struct storage_scan *s);

/* What the keys of a storage show. */
struct storage_size {
	uint64_t objects, bytes;
	/* The time of the newest one, but for the marks of deletions; 0 if there is none. */
	int64_t newest_ns;
	int64_t mark_ns;  /* the time of the newest mark */
	bool is_timeless; /* the times of some are not known */
	/* There are marks of deletions alone, as a deletion leaves them that was killed at its
	 * end. */
	bool is_empty;
};
int storage_measure(const struct document_place *p, const struct storage *storage,
		    struct storage_size *out, struct err *err);

#endif
