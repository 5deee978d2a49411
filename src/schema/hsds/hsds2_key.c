/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys of schema v2. All keys of a domain except for that of its document are below "db/<8>-<8>/",
 * which has the first 16 digits of every id of the domain:
 *
 *   .group.json                       root group (its other 16 digits: each of the first plus 8)
 *   .info.json                        summary
 *   g/<4>-<6>-<6>/.group.json         groups, d/…/.dataset.json datasets, t/…/.datatype.json types
 *   d/<4>-<6>-<6>/[p<k>/]<i>_<j>_…    chunks; rank 1 and scalar: <i>
 *
 * The key of the document is "<path>/.domain.json". A key is recognised only if it is exactly what
 * these functions write: another spelling of a number or id is not recognised. Pure.
 */
#include "hsds2.h"
#include "key_text.h"
#include "parse_reference.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <base/hex.h>

#define DOMAIN_FILE ".domain.json"

/* For each kind of object: the letter of its folder, and the file name of its document. */
static const struct {
	char letter;
	const char *file;
} kinds[] = {
	[OBJECT_GROUP] = {'g', ".group.json"},
	[OBJECT_DATASET] = {'d', ".dataset.json"},
	[OBJECT_DATATYPE] = {'t', ".datatype.json"},
};
enum { NKINDS = sizeof(kinds) / sizeof(kinds[0]) };

/* Weights of a chunk's coordinates for the choice of its partition, by dimension modulo 10. */
static const uint32_t primes[] = {29, 31, 37, 41, 43, 47, 53, 59, 61, 67};
enum { NPRIMES = sizeof(primes) / sizeof(primes[0]) };

/* ---- writing ---- */

static int __attribute__((format(printf, 4, 5)))
print_at(char *key, size_t cap, size_t pos, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(key + pos, cap - pos, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= cap - pos || pos + (size_t)n > SCHEMA_KEY_MAX)
		return -ENAMETOOLONG;
	return (int)pos + n;
}

bool hsds2_is_root(const struct schema_id *id)
{
	if (id->kind != OBJECT_GROUP || id->form != SCHEMA_ID_V2)
		return false;
	for (int i = 0; i < 8; i++)
		if (id->b[i + 8] != (id->b[i] ^ 0x88)) /* each digit plus 8, modulo 16 */
			return false;
	return true;
}

int hsds2_domain_key(const char *path, char *key, size_t cap)
{
	return print_at(key, cap, 0, "%s%s" DOMAIN_FILE, path, path[0] ? "/" : "");
}

static char *put_hex(char *p, const uint8_t *b, size_t n)
{
	hex_encode(b, n, p);
	return p + 2 * n;
}

/* The keys of all documents of a domain are written at each open, so these two functions do not use
 * printf(). */
int hsds2_storage_prefix(const struct schema_id *root, char *prefix, size_t cap)
{
	enum { LEN = sizeof("db/00000000-00000000/") - 1 };
	char *p = prefix;
	if (cap <= LEN)
		return -ENAMETOOLONG;
	p = put_hex(stpcpy(p, "db/"), root->b, 4);
	*p++ = '-';
	p = put_hex(p, root->b + 4, 4);
	stpcpy(p, "/");
	return LEN;
}

uint64_t hsds2_storage_number(const char *key)
{
	uint64_t number = 0;
	const char *p = strncmp(key, "db/", 3) == 0 ? key + 3 : key;
	for (unsigned int i = 0; i < 16; i++) {
		p += i == 8 && *p == '-';
		const int digit = hex_digit(*p);
		/* A character that is no digit stands for all remaining digits, so that the order
		 * of keys stays. */
		const unsigned int nearest = *p < '0' ? 0 : 15;
		number = number << 4 | (digit < 0 ? nearest : (unsigned int)digit);
		p += digit >= 0;
	}
	return number;
}

int hsds2_object_prefix(const struct schema_id *root, unsigned int i, char *prefix, size_t cap)
{
	if (i >= NKINDS)
		return 0;
	int n = hsds2_storage_prefix(root, prefix, cap);
	return n < 0 ? n : print_at(prefix, cap, (size_t)n, "%c/", kinds[i].letter);
}

/* "db/8-8/d/4-6-6/" */
static int object_folder(const struct schema_id *id, char *key, size_t cap)
{
	enum { LEN = sizeof("d/0000-000000-000000/") - 1 };
	const uint8_t *b = id->b + 8;
	const int n = hsds2_storage_prefix(id, key, cap);
	if (n < 0 || cap - (size_t)n <= LEN)
		return -ENAMETOOLONG;
	char *p = key + n;
	*p++ = kinds[id->kind].letter;
	*p++ = '/';
	p = put_hex(p, b, 2);
	*p++ = '-';
	p = put_hex(p, b + 2, 3);
	*p++ = '-';
	p = put_hex(p, b + 5, 3);
	stpcpy(p, "/");
	return n + LEN;
}

int hsds2_object_key(const struct schema_id *id, char *key, size_t cap)
{
	int n = hsds2_is_root(id) ? hsds2_storage_prefix(id, key, cap)
				  : object_folder(id, key, cap);
	return n < 0 ? n : print_at(key, cap, (size_t)n, "%s", kinds[id->kind].file);
}

int hsds2_info_key(const struct schema_id *root, char *key, size_t cap)
{
	int n = hsds2_storage_prefix(root, key, cap);
	return n < 0 ? n : print_at(key, cap, (size_t)n, HSDS2_SUMMARY);
}

uint32_t hsds2_partition(uint32_t count, uint32_t rank, const uint64_t *coords)
{
	uint64_t k = 0;
	for (uint32_t d = 0; d < rank; d++)
		k = (k + coords[d] % count * primes[d % NPRIMES]) % count;
	return (uint32_t)k;
}

int hsds2_chunk_key(const struct object *o, const uint64_t *coords, char *key, size_t cap)
{
	const struct hsds2_locator *loc = o->dataset.locator;
	uint32_t rank = o->dataset.grid.rank;
	int n = object_folder(&loc->id, key, cap);
	if (n >= 0 && loc->partition_count > 1)
		n = print_at(key, cap, (size_t)n, "p%u/",
			     hsds2_partition(loc->partition_count, rank, coords));
	for (uint32_t d = 0; n >= 0 && d < rank; d++)
		n = print_at(key, cap, (size_t)n, d ? "_%llu" : "%llu",
			     (unsigned long long)coords[d]);
	return n;
}

int hsds2_locate(const struct object *o, const struct object *table, uint64_t number,
		 unsigned int *step, const struct schema_answer *answer, struct chunk_place *place,
		 struct err *err)
{
	const struct hsds2_locator *loc = o->dataset.locator;
	uint64_t coords[DSPACE_MAX_RANK];
	if (o->dataset.reference)
		return schema_reference_locate(o, table, number, step, answer, place, err);
	if (loc->is_ref)
		return err_set(err, o->dataset.reference_damaged ? -EIO : -EOPNOTSUPP, "%s",
			       o->dataset.absence_unknown);
	grid_coords(&o->dataset.grid, number, coords);
	if (hsds2_chunk_key(o, coords, place->key, place->room) < 0)
		return err_set(err, -ENAMETOOLONG, "the key of the chunk would be too long");
	place->length = CHUNK_TO_END;
	return 0;
}

int hsds2_chunk_prefix(const struct object *o, char *prefix, size_t cap)
{
	const struct hsds2_locator *loc = o->dataset.locator;
	return o->dataset.absence_unknown || o->dataset.reference
		       ? -EOPNOTSUPP
		       : object_folder(&loc->id, prefix, cap);
}

/* ---- recognising ---- */

bool hsds2_is_domain_key(const char *key, size_t *path_len)
{
	size_t n = strlen(key);
	size_t file = strlen(DOMAIN_FILE);
	if (n < file || strcmp(key + n - file, DOMAIN_FILE) != 0)
		return false;
	if (n > file && (n == file + 1 || key[n - file - 1] != '/'))
		return false;
	*path_len = n > file ? n - file - 1 : 0;
	return true;
}

bool hsds2_is_storage(const char *key)
{
	return strncmp(key, "db", 2) == 0 && (key[2] == '/' || key[2] == '\0');
}

/* The functions take_*() move *p past the text that they recognise. */

/* 2 * n lower-case hexadecimal digits. */
static bool take_hex(const char **p, uint8_t *out, unsigned int n)
{
	static const char digits[] = "0123456789abcdef";
	for (unsigned int i = 0; i < 2 * n; i++, (*p)++) {
		const char *digit = **p ? strchr(digits, **p) : NULL;
		if (!digit)
			return false;
		out[i / 2] = (uint8_t)(out[i / 2] << 4 | (digit - digits));
	}
	return true;
}

static bool take_storage(const char **p, struct schema_id *id)
{
	return key_take(p, 'd') && key_take(p, 'b') && key_take(p, '/') && take_hex(p, id->b, 4) &&
	       key_take(p, '-') && take_hex(p, id->b + 4, 4) && key_take(p, '/');
}

/* "g/4-6-6/" */
static bool take_object(const char **p, struct schema_id *id)
{
	unsigned int kind = 0;
	while (kind < NKINDS && !key_take(p, kinds[kind].letter))
		kind++;
	if (kind == NKINDS)
		return false;
	id->kind = (enum object_kind)kind;
	return key_take(p, '/') && take_hex(p, id->b + 8, 2) && key_take(p, '-') &&
	       take_hex(p, id->b + 10, 3) && key_take(p, '-') && take_hex(p, id->b + 13, 3) &&
	       key_take(p, '/') && !hsds2_is_root(id); /* the root group has another key */
}

bool hsds2_object_of_prefix(const char *prefix, struct schema_id *id)
{
	const char *p = prefix;
	*id = (struct schema_id){0};
	return take_storage(&p, id) && take_object(&p, id) && *p == '\0';
}

/* "[p<k>/]<i>_<j>_…", up to the end of the key. */
static bool take_chunk(const char **p, struct hsds2_key *out)
{
	uint64_t partition;
	if (key_take(p, 'p') && !(key_take_number(p, &partition) && key_take(p, '/')))
		return false;
	do {
		if (out->rank == DSPACE_MAX_RANK || !key_take_number(p, &out->coords[out->rank++]))
			return false;
	} while (key_take(p, '_'));
	return **p == '\0';
}

void hsds2_key_classify(const char *key, struct hsds2_key *out)
{
	const char *p = key;
	struct schema_id id = {0};
	*out = (struct hsds2_key){.cls = HSDS2_KEY_OTHER};
	if (!take_storage(&p, &id))
		return;
	if (strcmp(p, kinds[OBJECT_GROUP].file) == 0) {
		id.kind = OBJECT_GROUP;
		for (int i = 0; i < 8; i++)
			id.b[i + 8] = id.b[i] ^ 0x88;
		out->cls = HSDS2_KEY_OBJECT;
	} else if (!take_object(&p, &id)) {
		return;
	} else if (strcmp(p, kinds[id.kind].file) == 0) {
		out->cls = HSDS2_KEY_OBJECT;
	} else if (id.kind == OBJECT_DATASET && take_chunk(&p, out)) {
		out->cls = HSDS2_KEY_CHUNK;
	}
	if (out->cls == HSDS2_KEY_OTHER)
		*out = (struct hsds2_key){.cls = HSDS2_KEY_OTHER};
	else
		out->id = id;
}

/* Recognises a key only if the chunk would be read at it: it must be a key of this dataset, its
 * coordinates must be in range, and it must have the right partition. */
bool hsds2_chunk_of_key(const struct object *o, const char *key, uint64_t *number)
{
	const struct grid *grid = &o->dataset.grid;
	char expected[SCHEMA_KEY_MAX + 1];
	struct hsds2_key k;
	hsds2_key_classify(key, &k);
	for (uint32_t d = 0; d < grid->rank; d++)
		if (k.coords[d] >= grid->count[d])
			return false;
	if (hsds2_chunk_key(o, k.coords, expected, sizeof(expected)) < 0 ||
	    strcmp(expected, key) != 0)
		return false;
	*number = grid_number(grid, k.coords);
	return true;
}
