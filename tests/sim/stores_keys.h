/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of stores.h: what they contain, and what a mount shows of them (DETAILS.md, "Names" and
 * "Zarr stores"). Pure. */
#ifndef SIM_STORES_KEYS_H
#define SIM_STORES_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { STORES_KEYS = 6, STORES_PATH = 64, STORES_BODY = 1024 };

/* A prefix, or an object, which the foreign writer makes and removes key by key. */
struct stores_place {
	const char *dir, *name;
	const char *file; /* of a domain or a store, if it has another name; or NULL */
	unsigned int kind;
};
enum { STORES_PLACES = 9 };
extern const struct stores_place stores_places[STORES_PLACES];

/* Numbers of keys that programs read. */
enum { STORES_CHUNK_0 = 1, STORES_CHUNK_1 };

/* What a place shows, in the order of struct stores.facts. 0: nothing. */
enum stores_fact_kind {
	STORES_LISTED,	    /* its own name in a listing: 1 + enum engine_kind */
	STORES_FOUND,	    /* by a look-up */
	STORES_FILE_LISTED, /* the name of its file */
	STORES_FILE_FOUND,
	STORES_ANY,	/* whether a listing shows one of them */
	STORES_VERSION, /* an attribute of a store, and values of two chunks */
	STORES_VALUE_0,
	STORES_VALUE_1,
	STORES_FACTS
};

/* Its i-th key, in the order in which the writer puts them, or NULL. */
const char *stores_key(const struct stores_place *p, unsigned int i);
bool stores_is_store(const struct stores_place *p);
/* Whether its first key is the document of a domain. */
bool stores_is_domain(const struct stores_place *p);
/* The key that has the attribute. */
unsigned int stores_version_key(const struct stores_place *p);
/* Writes the body of a key with this value. Returns its length. */
size_t stores_body(const struct stores_place *p, unsigned int key, uint16_t value,
		   char body[STORES_BODY]);
/* keys: bit i is the i-th; values: of the keys. */
void stores_facts(const struct stores_place *p, unsigned int keys,
		  const uint16_t values[STORES_KEYS], uint16_t out[STORES_FACTS]);

#endif
