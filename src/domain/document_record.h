/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The documents of a domain of many objects on disk, for later mounts. One entry of the disk cache
 * for each document would take longer to find and to write than to fetch the document. So the
 * documents are in *parts* of about 1 MiB, in the order of their keys, and an *index* has the first
 * key of each part. The index also has the keys that divide a listing of the domain into pages, so
 * that the next load can request all pages at once.
 *
 * Everything is a hint: a document of the record is used only if it has the version that a listing
 * names, or that the bucket confirms. Parts and index need not be of one moment.
 *
 * Threads: one, that of the load.
 */
#ifndef DOMAIN_DOCUMENT_RECORD_H
#define DOMAIN_DOCUMENT_RECORD_H

#include <diskcache/record.h>
#include <store/store.h>

struct document_record;

/* Reads the index of the domain with this root group. `disk` is the disk cache, borrowed. Returns
 * NULL if out of memory. */
struct document_record *document_record_new(struct store *disk, const char *root);
void document_record_free(struct document_record *r); /* the argument may be NULL */

/* Returns the keys that divide a listing into pages, in order. Borrowed. */
const char *const *document_record_pages(const struct document_record *r, uint32_t *n);

/* Answers the i-th request of a round, which is a GET of the document `req->key`, if the record has
 * the version `listed`. Returns true if it did; the request is then not to be submitted. If it
 * returns false, the request may have a condition that the loader has not asked for, and its answer
 * must be passed to document_record_take(). */
bool document_record_answer(struct document_record *r, size_t i, const char *listed,
			    struct store_request *req);
/* Completes the answer of a request that was submitted: if the bucket has confirmed the version of
 * the record, the answer gets the document. Returns false if the record does not have it any more;
 * then the request is to be made again without condition. */
bool document_record_take(struct document_record *r, struct store_request *req);

/* Adds a document that was read, in the order of keys. */
void document_record_add(struct document_record *r, const struct store_request *req);
/* Adds a page of a listing of all keys. */
void document_record_add_keys(struct document_record *r, const struct store_page *page);
/* Writes what has changed, after all documents were added. has_pages says that the pages that were
 * added are a listing of all keys of the domain. */
void document_record_finish(struct document_record *r, bool has_pages);

#endif
