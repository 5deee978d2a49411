/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listings that show the keys of several domains at once. The storage of all domains has one prefix
 * in common, which a random number for each domain follows. So a page of a listing that begins with
 * one domain shows the domains with the next greater numbers, too. If these are small, it replaces
 * dozens of listings. How far a page reaches depends on the bucket; each page shows it anew. No
 * lock: the caller guards struct shared_reach.
 */
#ifndef SNAPSHOTS_SHARED_LISTING_H
#define SNAPSHOTS_SHARED_LISTING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <schema/schema.h>
#include <store/store.h>

/* One domain. */
struct shared_keys {
	struct storage storage;
	uint64_t number; /* of its storage, see schema_storage.number() */
	bool is_listed;	 /* the page has shown all its keys */
	struct store_page keys;
};

/* How far a page reaches: numbers [n * cell, (n + 1) * cell) usually fit a page. */
struct shared_reach {
	uint64_t cell; /* 0 if it is not known yet */
};

/* Lists the domains from the first one on, in one page. There are n >= 1 domains of one schema,
 * ordered by number, each with an empty page. `cancelled` is as in struct store_request. Blocks. If
 * the request fails, or the page ends before a domain does, that domain is not listed. A domain
 * with more keys than a page is never listed. */
void shared_listing(struct store *store, const atomic_bool *cancelled,
		    struct shared_keys *const *domains, size_t n, struct shared_reach *reach);

#endif
