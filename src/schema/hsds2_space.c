/* SPDX-License-Identifier: Apache-2.0 */
/* The objects of a schema v2 domain, by number and by id. Pure. */
#include "hsds2.h"

#include <errno.h>

#include <base/checksum.h>

static uint32_t hash_of(const struct schema_id *id)
{
	return checksum_lookup3(id->b, sizeof(id->b), (uint32_t)id->kind);
}

int hsds2_space_index(struct hsds2_space *s, struct arena *a)
{
	uint32_t size = 4;
	while (size / 2 < s->n)
		size *= 2;
	s->mask = size - 1;
	s->table = arena_array(a, size, sizeof(*s->table));
	if (!s->table)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->n; i++) {
		uint32_t at = hash_of(&s->entries[i].id) & s->mask;
		while (s->table[at])
			at = (at + 1) & s->mask;
		s->table[at] = i + 1;
	}
	return 0;
}

uint32_t hsds2_number(const struct hsds2_space *s, const struct schema_id *id)
{
	uint32_t at = hash_of(id) & s->mask;
	for (; s->table[at]; at = (at + 1) & s->mask)
		if (schema_id_equal(&s->entries[s->table[at] - 1].id, id))
			return s->table[at] - 1;
	return OBJECT_NONE;
}

int hsds2_space_key(const struct schema_space *base, uint32_t number, char *key, size_t room,
		    const char **etag)
{
	const struct hsds2_space *s = (const struct hsds2_space *)base;
	*etag = s->entries[number].etag;
	return hsds2_object_key(&s->entries[number].id, key, room);
}

uint64_t hsds2_resolve(const struct schema_space *base, const char *text, size_t n)
{
	struct schema_id id;
	if (!schema_id_parse(text, n, &id))
		return 0;
	const uint32_t number = hsds2_number((const struct hsds2_space *)base, &id);
	return number == OBJECT_NONE ? 0 : (uint64_t)number + 1;
}
