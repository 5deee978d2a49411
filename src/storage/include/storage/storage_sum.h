/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sum over the keys and versions of the objects of a storage. A process that has put a domain
 * compares the sum of what it has put with that of a listing, before it replaces the domain: so it
 * sees whether another program has changed the domain in place meanwhile, which leaves the document
 * of the domain as it was.
 *
 * Objects right below the storage do not count, but for the root group: they are summaries of the
 * service, and the lists and marks of this program.
 */
#ifndef STORAGE_STORAGE_SUM_H
#define STORAGE_STORAGE_SUM_H

#include <domain/documents.h>

/* A zeroed struct knows nothing. */
struct storage_sum {
	bool is_known;
	struct storage storage;
	char root[SCHEMA_KEY_MAX + 1]; /* key of the root group */
	uint64_t n, sum;	       /* the order of the objects does not matter */
};

/* Begins a sum, of no object. Fails with -EINVAL if the schema has no storages. */
int storage_sum_begin(const struct document_place *p, const struct storage *storage,
		      struct storage_sum *sum, struct err *err);
/* Adds an object. Each key is added once. Pure. */
void storage_sum_add(struct storage_sum *sum, const char *key, const char *etag);
/* Lists the storage of `sum`. Returns 1 if it has exactly these objects in these versions, 0 if
 * not, or a negative errno. One LIST for 1,000 objects. */
int storage_sum_is_there(const struct document_place *p, const struct storage_sum *sum,
			 struct err *err);

#endif
