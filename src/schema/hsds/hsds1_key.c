/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys of schema v1. The keys of all objects and chunks are at the root of the bucket. The first 5
 * digits of a key are those of the MD5 of the text after the first hyphen, so that keys are spread
 * evenly:
 *
 *   <5>-<c>-<8>-<4>-<4>-<4>-<12>              the document of object <c>-…, where c is g, d or t
 *   <5>-c-<8>-<4>-<4>-<4>-<12>_<i>_<j>…       a chunk of dataset d-…; rank 1 and scalar: _<i>
 *   <5>-c<k>-<8>-<4>-<4>-<4>-<12>_<i>_<j>…    the same in partition k
 *   headnode, topleveldomains.txt             files of the service
 *
 * The following files are in the folder of a domain, next to its document:
 *
 *   .groups.txt .datasets.txt .datatypes.txt  catalogs of its objects, without the root group
 *   .d-<8>-<4>-<4>-<4>-<12>.chunks.txt        catalogs of the chunks of a dataset
 *
 * Pure.
 */
#include "hsds1.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <openssl/evp.h>

#include "hsds2.h"
#include "key_text.h"

enum {
	HASH_DIGITS = 5,
	HASHED_MAX = 64 + 33 * 21 + 1, /* bytes of the longest hashed part, with its NUL */
};

/* ---- writing ---- */

/* Writes the key whose part after the first hyphen is `hashed`. */
static int hash_key(const char *hashed, char *key, size_t cap)
{
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned int size = 0;
	if (EVP_Digest(hashed, strlen(hashed), digest, &size, EVP_md5(), NULL) != 1 || size < 3)
		return -EOPNOTSUPP;
	const int n =
		snprintf(key, cap, "%02x%02x%x-%s", digest[0], digest[1], digest[2] >> 4, hashed);
	return n < 0 || (size_t)n >= cap || n > SCHEMA_KEY_MAX ? -ENAMETOOLONG : n;
}

int hsds1_object_key(const struct schema_id *id, char *key, size_t cap)
{
	char text[SCHEMA_ID_MAX];
	schema_id_format(id, text);
	return hash_key(text, key, cap);
}

int hsds1_chunk_key(const struct object *o, const uint64_t *coords, char *key, size_t cap)
{
	const struct hsds2_locator *loc = o->dataset.locator;
	const uint32_t rank = o->dataset.grid.rank;
	const uint64_t partition = hsds2_partition(loc->partition_count, rank, coords);
	char id[SCHEMA_ID_MAX], hashed[HASHED_MAX];
	schema_id_format(&loc->id, id);
	size_t n = loc->partition_count > 1
			   ? (size_t)snprintf(hashed, sizeof(hashed), "c%" PRIu64 "%s", partition,
					      id + 1)
			   : (size_t)snprintf(hashed, sizeof(hashed), "c%s", id + 1);
	for (uint32_t d = 0; d < rank && n < sizeof(hashed); d++)
		n += (size_t)snprintf(hashed + n, sizeof(hashed) - n, "_%" PRIu64, coords[d]);
	return n < sizeof(hashed) ? hash_key(hashed, key, cap) : -ENAMETOOLONG;
}

static const char *const catalogs[] = {
	[OBJECT_GROUP] = ".groups.txt",
	[OBJECT_DATASET] = ".datasets.txt",
	[OBJECT_DATATYPE] = ".datatypes.txt",
};
enum { NCATALOGS = sizeof(catalogs) / sizeof(catalogs[0]) };

int hsds1_catalog_key(const char *path, enum object_kind kind, char *key, size_t cap)
{
	const int n = snprintf(key, cap, "%s%s%s", path, path[0] ? "/" : "", catalogs[kind]);
	return n < 0 || (size_t)n >= cap || n > SCHEMA_KEY_MAX ? -ENAMETOOLONG : n;
}

int hsds1_locate(const struct object *o, const struct object *table, uint64_t number,
		 unsigned int *step, const struct schema_answer *answer, struct chunk_place *place,
		 struct err *err)
{
	const struct hsds2_locator *loc = o->dataset.locator;
	uint64_t coords[DSPACE_MAX_RANK];
	if (o->dataset.reference || loc->is_ref)
		return hsds2_locate(o, table, number, step, answer, place, err);
	grid_coords(&o->dataset.grid, number, coords);
	const int n = hsds1_chunk_key(o, coords, place->key, place->room);
	if (n == -ENAMETOOLONG)
		return err_set(err, n, "the key of the chunk would be too long");
	if (n < 0)
		return err_set(err, n, "the key of the chunk needs MD5, which OpenSSL refuses");
	place->length = CHUNK_TO_END;
	return 0;
}

/* Always fails with -EOPNOTSUPP, because the chunks of a dataset are spread over the bucket and no
 * listing shows them. */
int hsds1_chunk_prefix(const struct object *o, char *prefix, size_t cap)
{
	(void)o;
	if (cap)
		prefix[0] = '\0';
	return -EOPNOTSUPP;
}

/* ---- recognising ---- */

/* What a key names. */
struct key {
	struct schema_id id; /* of the object, or of the chunk's dataset */
	uint32_t rank;	     /* of a chunk: number of coordinates; 0 for an object */
	uint64_t coords[DSPACE_MAX_RANK];
};

/* The functions take_*() move *p past the text that they recognise. */
static bool take_hex(const char **p, unsigned int n)
{
	for (; n > 0; n--, (*p)++)
		if (!((**p >= '0' && **p <= '9') || (**p >= 'a' && **p <= 'f')))
			return false;
	return true;
}

/* "-8-4-4-4-12" */
static bool take_uuid(const char **p)
{
	static const unsigned char groups[] = {8, 4, 4, 4, 12};
	for (size_t i = 0; i < sizeof(groups); i++)
		if (!key_take(p, '-') || !take_hex(p, groups[i]))
			return false;
	return true;
}

/* "c[<k>]-8-4-4-4-12_<i>_<j>…" */
static bool take_chunk(const char **p, struct key *out)
{
	uint64_t partition;
	char id[SCHEMA_ID_MAX] = "d";
	if (!key_take(p, 'c'))
		return false;
	if (**p != '-' && !key_take_number(p, &partition))
		return false;
	const char *uuid = *p;
	if (!take_uuid(p))
		return false;
	memcpy(id + 1, uuid, (size_t)(*p - uuid));
	while (key_take(p, '_'))
		if (out->rank == DSPACE_MAX_RANK || !key_take_number(p, &out->coords[out->rank++]))
			return false;
	return out->rank > 0 && schema_id_parse(id, strlen(id), &out->id);
}

/* Parses all of a key except for the digits of the hash, which are not compared. */
static bool parse_key(const char *key, struct key *out)
{
	const char *p = key;
	*out = (struct key){0};
	if (!take_hex(&p, HASH_DIGITS) || !key_take(&p, '-'))
		return false;
	if (*p == 'c')
		return take_chunk(&p, out) && *p == '\0';
	return strlen(p) == SCHEMA_ID_LEN && schema_id_parse(p, SCHEMA_ID_LEN, &out->id) &&
	       out->id.form == SCHEMA_ID_V1;
}

bool hsds1_is_object(const char *key)
{
	struct key parsed;
	return parse_key(key, &parsed);
}

bool hsds1_is_storage(const char *key)
{
	return strcmp(key, "headnode") == 0 || strcmp(key, "topleveldomains.txt") == 0 ||
	       hsds1_is_object(key);
}

bool hsds1_is_catalog(const char *key)
{
	const char *slash = strrchr(key, '/');
	const char *name = slash ? slash + 1 : key;
	for (size_t i = 0; i < NCATALOGS; i++)
		if (strcmp(name, catalogs[i]) == 0)
			return true;
	struct schema_id id;
	return strlen(name) > 1 + SCHEMA_ID_LEN && name[0] == '.' &&
	       schema_id_parse(name + 1, SCHEMA_ID_LEN, &id) && id.form == SCHEMA_ID_V1 &&
	       id.kind == OBJECT_DATASET && strcmp(name + 1 + SCHEMA_ID_LEN, ".chunks.txt") == 0;
}

bool hsds1_chunk_of_key(const struct object *o, const char *key, uint64_t *number)
{
	const struct hsds2_locator *loc = o->dataset.locator;
	const struct grid *grid = &o->dataset.grid;
	char expected[SCHEMA_KEY_MAX + 1];
	struct key k;
	if (!parse_key(key, &k) || !k.rank || k.rank != grid->rank ||
	    !schema_id_equal(&k.id, &loc->id))
		return false;
	for (uint32_t d = 0; d < grid->rank; d++)
		if (k.coords[d] >= grid->count[d])
			return false;
	if (hsds1_chunk_key(o, k.coords, expected, sizeof(expected)) < 0 ||
	    strcmp(expected, key) != 0)
		return false;
	*number = grid_number(grid, k.coords);
	return true;
}
