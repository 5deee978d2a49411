/* SPDX-License-Identifier: Apache-2.0 */
/* The objects of a domain, found by number and by id. Pure. */
#include "hsds_load.h"

#include <base/checksum.h>

#include "hsds1.h"
#include "hsds2.h"

enum { FIRST_ROOM = 16 };

static uint32_t hash_of(const struct schema_id *id)
{
	return checksum_lookup3(id->b, sizeof(id->b), (uint32_t)id->kind);
}

static void index_entry(struct hsds_space *s, uint32_t number)
{
	uint32_t at = hash_of(&s->entries[number].id) & s->mask;
	while (s->table[at])
		at = (at + 1) & s->mask;
	s->table[at] = number + 1;
}

int hsds_space_reserve(struct hsds_space *s, struct arena *a, uint32_t n)
{
	uint32_t size = 4;
	if (n <= s->room)
		return 0;
	while (size / 2 < n)
		size *= 2;
	struct hsds_entry *entries = arena_array(a, n, sizeof(*entries));
	uint32_t *table = arena_array(a, size, sizeof(*table));
	if (!entries || !table)
		return -ENOMEM;
	if (s->n)
		memcpy(entries, s->entries, s->n * sizeof(*entries));
	s->entries = entries;
	s->table = table;
	s->mask = size - 1;
	s->room = n;
	for (uint32_t i = 0; i < s->n; i++)
		index_entry(s, i);
	return 0;
}

int hsds_space_add(struct hsds_space *s, struct arena *a, const struct hsds_entry *entry)
{
	if (s->n == s->room && hsds_space_reserve(s, a, s->room ? 2 * s->room : FIRST_ROOM))
		return -ENOMEM;
	s->entries[s->n] = *entry;
	index_entry(s, s->n++);
	return 0;
}

uint32_t hsds_number(const struct hsds_space *s, const struct schema_id *id)
{
	uint32_t at = hash_of(id) & s->mask;
	for (; s->table && s->table[at]; at = (at + 1) & s->mask)
		if (schema_id_equal(&s->entries[s->table[at] - 1].id, id))
			return s->table[at] - 1;
	return OBJECT_NONE;
}

int hsds_object_key(const struct schema_id *id, char *key, size_t room)
{
	return id->form == SCHEMA_ID_V1 ? hsds1_object_key(id, key, room)
					: hsds2_object_key(id, key, room);
}

int hsds_space_key(const struct schema_space *base, uint32_t number, char *key, size_t room,
		   const char **etag)
{
	const struct hsds_space *s = (const struct hsds_space *)base;
	*etag = s->entries[number].etag;
	return hsds_object_key(&s->entries[number].id, key, room);
}

const void *hsds_space_text(const struct schema_space *base, uint32_t number, size_t *len)
{
	const struct hsds_entry *entry = &((const struct hsds_space *)base)->entries[number];
	*len = entry->text_len;
	return entry->text;
}

void hsds_drop_texts(struct schema_space *base)
{
	struct hsds_space *s = (struct hsds_space *)base;
	for (uint32_t i = 0; i < s->n; i++) {
		s->entries[i].text = NULL;
		s->entries[i].text_len = 0;
	}
	base->texts = NULL;
}

uint64_t hsds_resolve(const struct schema_space *base, const char *text, size_t n)
{
	struct schema_id id;
	if (!schema_id_parse(text, n, &id))
		return 0;
	const uint32_t number = hsds_number((const struct hsds_space *)base, &id);
	return number == OBJECT_NONE ? 0 : (uint64_t)number + 1;
}
