/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ids, times and keys of new domains of schema v2.
 *
 * The first 16 digits of all ids are the 64 bits of the domain. The other 16 digits of the root
 * group follow from them. Those of any other object are a function of its number, with the domain
 * as seed, that maps no two numbers to the same value. So an import that is started again finds the
 * keys of the first attempt. The digits of new objects of an existing domain depend on a further
 * seed. Pure.
 */
#include "hsds2.h"
#include "user_block_member.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/checksum.h>
#include <data/number.h>

enum { MICROSECOND = 1000 };

/* ---- ids ---- */

/* Maps 64-bit numbers one-to-one, because each step can be undone. (The finisher of splitmix64.) */
static uint64_t mix(uint64_t v)
{
	v = (v ^ v >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	v = (v ^ v >> 27) * UINT64_C(0x94d049bb133111eb);
	return v ^ v >> 31;
}

static uint64_t root_digits(uint64_t domain)
{
	return domain ^ UINT64_C(0x8888888888888888); /* each digit plus 8, modulo 16 */
}

static struct schema_id id_with(uint64_t domain, enum object_kind kind, uint64_t digits)
{
	struct schema_id id = {.kind = kind};
	number_put_int(id.b, 8, true, domain);
	number_put_int(id.b + 8, 8, true, digits);
	return id;
}

static struct schema_id id_of(uint64_t domain, enum object_kind kind, uint32_t number)
{
	const uint64_t seed = mix(domain);
	uint64_t digits = number ? mix(seed + number) : root_digits(domain);
	/* Numbers have 32 bits, so the digits for 2^32 belong to no other object. */
	if (number && digits == root_digits(domain))
		digits = mix(seed + (UINT64_C(1) << 32));
	return id_with(domain, kind, digits);
}

static int set_id(struct tree *t, uint32_t number, const struct schema_id *id, struct err *err)
{
	struct object *o = tree_edit(t, number);
	char text[SCHEMA_ID_MAX];
	schema_id_format(id, text);
	o->id = arena_strndup(tree_arena(t), text, strlen(text));
	if (!o->id)
		return err_set(err, -ENOMEM, "out of memory: ids");
	if (o->kind != OBJECT_DATASET)
		return 0;
	struct hsds2_locator *loc = arena_alloc(tree_arena(t), sizeof(*loc));
	if (!loc)
		return err_set(err, -ENOMEM, "out of memory: ids");
	loc->id = *id;
	loc->partition_count = 1;
	o->dataset.locator = loc;
	return 0;
}

const void *hsds2_copy_locator(const void *locator, struct arena *a)
{
	struct hsds2_locator *copy = arena_alloc(a, sizeof(*copy));
	if (copy)
		*copy = *(const struct hsds2_locator *)locator;
	return copy;
}

/* ---- times ---- */

/* Returns the time of the next link or attribute of an object. It is its own time in whole
 * microseconds if it has one, or else now_ns, but at least a microsecond after the one before. A
 * double holds seconds to a quarter of a microsecond. */
static int64_t next_time(int64_t own_ns, int64_t now_ns, int64_t *last_ns)
{
	int64_t ns = own_ns > 0 ? own_ns : now_ns;
	ns -= ns % MICROSECOND;
	if (ns < *last_ns + MICROSECOND)
		ns = *last_ns + MICROSECOND;
	*last_ns = ns;
	return ns;
}

static void give_times(struct object *o, int64_t now_ns)
{
	int64_t last = 0;
	if (o->created_ns <= 0)
		o->created_ns = o->modified_ns > 0 ? o->modified_ns : now_ns;
	if (o->modified_ns <= 0)
		o->modified_ns = o->created_ns;
	for (uint32_t i = 0; i < o->nattrs; i++)
		o->attrs[i].created_ns = next_time(o->attrs[i].created_ns, now_ns, &last);
	last = 0;
	for (uint32_t i = 0; o->kind == OBJECT_GROUP && i < o->group.nlinks; i++) {
		struct link *l = &o->group.links[i];
		l->created_ns = next_time(l->created_ns, now_ns, &last);
	}
}

int hsds2_adopt(struct tree *t, const struct storage *storage, int64_t now_ns, struct err *err)
{
	const uint64_t domain = hsds2_storage_number(storage->prefix);
	int rc = 0;
	for (uint32_t i = 0; !rc && i < tree_numbers(t); i++) {
		if (tree_object(t, i)->broken)
			continue;
		const struct schema_id id = id_of(domain, tree_object(t, i)->o.kind, i);
		rc = set_id(t, i, &id, err);
		if (!rc)
			give_times(tree_edit(t, i), now_ns);
	}
	return rc ? rc : schema_user_block_name(t, domain, err);
}

/* ---- new objects of an existing domain ---- */

/* The last 16 digits of the ids of a tree, as sorted numbers. */
struct taken {
	uint64_t *digits;
	size_t n;
};

static int compare_digits(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

static int list_taken(const struct tree *t, struct taken *out, struct err *err)
{
	struct schema_id id;
	*out = (struct taken){.digits = calloc(tree_numbers(t) + 1, sizeof(*out->digits))};
	if (!out->digits)
		return err_set(err, -ENOMEM, "out of memory: ids");
	for (uint32_t i = 0; i < tree_numbers(t); i++) {
		const char *text = tree_object(t, i)->o.id;
		if (text && schema_id_parse(text, strlen(text), &id))
			out->digits[out->n++] = number_get_int(id.b + 8, 8, true);
	}
	qsort(out->digits, out->n, sizeof(*out->digits), compare_digits);
	return 0;
}

/* Makes an id for a new object. The numbers of a seed have different digits, because mix() maps
 * one-to-one. If an object has these digits already, numbers that no object can have are tried
 * instead, each 2^32 after the one before. */
static struct schema_id new_id(const struct taken *taken, uint64_t domain, uint64_t seed,
			       enum object_kind kind, uint32_t number)
{
	const uint64_t start = mix(seed ^ mix(domain));
	uint64_t counter = number, digits = mix(start + counter);
	while (digits == root_digits(domain) ||
	       (taken->n > 0 &&
		bsearch(&digits, taken->digits, taken->n, sizeof(digits), compare_digits))) {
		counter += UINT64_C(1) << 32;
		digits = mix(start + counter);
	}
	return id_with(domain, kind, digits);
}

int hsds2_adopt_new(struct tree *t, uint64_t seed, int64_t now_ns, struct err *err)
{
	const char *root = tree_numbers(t) ? tree_object(t, 0)->o.id : NULL;
	struct taken taken;
	struct storage storage;
	if (!root || hsds2_storage_of_root(root, &storage, err))
		return err_set(err, -EINVAL, "the domain has no root group");
	const uint64_t domain = hsds2_storage_number(storage.prefix);
	int rc = list_taken(t, &taken, err);
	for (uint32_t i = 0; !rc && i < tree_numbers(t); i++) {
		const struct tree_object *o = tree_object(t, i);
		if (o->broken || o->o.id)
			continue;
		const struct schema_id id = new_id(&taken, domain, seed, o->o.kind, i);
		rc = set_id(t, i, &id, err);
		if (!rc)
			give_times(tree_edit(t, i), now_ns);
	}
	free(taken.digits);
	return rc ? rc : schema_user_block_name(t, mix(seed ^ mix(domain)), err);
}

/* ---- keys ---- */

int hsds2_new_object_key(const struct tree *t, uint32_t number, char *key, size_t room)
{
	const char *text = tree_object(t, number)->o.id;
	struct schema_id id;
	if (!text || !schema_id_parse(text, strlen(text), &id))
		return -EINVAL;
	return hsds2_object_key(&id, key, room);
}

static int user_block_key(const struct schema_id *root, const char *name, char *key, size_t room)
{
	const int n = hsds2_storage_prefix(root, key, room);
	const int more =
		n < 0 ? n : snprintf(key + n, room - (size_t)n, HSDS2_USER_BLOCK "%s", name);
	return more < 0 || (size_t)(n + more) >= room ? -ENAMETOOLONG : n + more;
}

int hsds2_user_block_key(const struct tree *t, char *key, size_t room)
{
	const struct user_block *b = tree_user_block(t);
	const char *id = tree_object(t, 0)->o.id;
	struct schema_id root;
	if (!b || !b->object)
		return 0;
	if (!id || !schema_id_parse(id, strlen(id), &root))
		return -EINVAL;
	return user_block_key(&root, b->object, key, room);
}

int hsds2_key_of_id(const char *root, const char *id, char *key, size_t room, size_t *folder)
{
	char storage[SCHEMA_KEY_MAX + 1];
	struct schema_id r, i;
	*folder = 0;
	if (schema_user_block_is_name(id) && schema_id_parse(root, strlen(root), &r) &&
	    hsds2_is_root(&r))
		return user_block_key(&r, id, key, room);
	if (!schema_id_parse(root, strlen(root), &r) || !schema_id_parse(id, strlen(id), &i) ||
	    r.form != SCHEMA_ID_V2 || i.form != SCHEMA_ID_V2 || schema_id_equal(&r, &i))
		return -EINVAL;
	const int prefix = hsds2_storage_prefix(&r, storage, sizeof(storage));
	const int n = hsds2_object_key(&i, key, room);
	if (prefix < 0 || n < 0)
		return prefix < 0 ? prefix : n;
	if (strncmp(key, storage, (size_t)prefix) != 0)
		return -EINVAL;
	if (i.kind == OBJECT_DATASET)
		*folder = (size_t)(strrchr(key, '/') - key) + 1;
	return n;
}

int hsds2_new_chunk_key(const struct tree *t, uint32_t number, uint64_t chunk, char *key,
			size_t room)
{
	uint64_t coords[DSPACE_MAX_RANK];
	const struct object *o = &tree_object(t, number)->o;
	if (o->kind != OBJECT_DATASET || !o->dataset.locator || chunk >= o->dataset.grid.nchunks)
		return -EINVAL;
	grid_coords(&o->dataset.grid, chunk, coords);
	return hsds2_chunk_key(o, coords, key, room);
}

/* ---- storages ---- */

int hsds2_storage_of_root(const char *root, struct storage *out, struct err *err)
{
	struct schema_id id;
	if (!schema_id_parse(root, strlen(root), &id) || !hsds2_is_root(&id))
		return err_set(err, -EIO, "\"%.64s\" is not the id of a root group", root);
	hsds2_storage_prefix(&id, out->prefix, sizeof(out->prefix));
	return 0;
}

void hsds2_storage_of_number(uint64_t number, struct storage *out)
{
	const struct schema_id root = id_of(number, OBJECT_GROUP, 0);
	hsds2_storage_prefix(&root, out->prefix, sizeof(out->prefix));
}

/* The record is in the storage, so that neither the service nor a mount shows it as a file. The key
 * has a hash of the path, because the length of the path and its slashes do not fit into one name.
 * The record contains the path. */
int hsds2_import_key(const char *path, char *key, size_t room)
{
	const size_t len = strlen(path);
	const uint32_t high = checksum_lookup3(path, len, 0);
	const uint32_t low = checksum_lookup3(path, len, high + 1);
	const int n = snprintf(key, room, HSDS2_IMPORT_PREFIX "%08x%08x.json", high, low);
	return n < 0 || (size_t)n >= room ? -ENAMETOOLONG : n;
}
