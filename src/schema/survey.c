/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds out whether a place that a user names is a bucket, a folder of a bucket, a single domain,
 * or something else. The keys of its first listings decide, and each schema says what they show of
 * it. Pure.
 */
#include <schema/schema.h>

#include <stdio.h>

#include <base/checksum.h>

uint64_t schema_digest(uint64_t so_far, const void *bytes, size_t n)
{
	const uint32_t low = checksum_lookup3(bytes, n, (uint32_t)so_far);
	const uint32_t high = checksum_lookup3(bytes, n, (uint32_t)(so_far >> 32) ^ low);
	return (uint64_t)high << 32 | low;
}

void schema_survey_key(const struct schema_ops *const *schemas, struct schema_survey *s,
		       const char *key)
{
	s->anything = true;
	schema_mark_add(schemas, key, &s->mark);
	for (; *schemas; schemas++)
		(*schemas)->survey(s, key);
}

bool schema_document_key(const struct schema_ops *schema, const char *path, unsigned int i,
			 char *key, size_t room)
{
	struct schema_request first = {.key = key, .room = room};
	struct schema_document *none = NULL;
	unsigned int step = 0;
	for (unsigned int k = 0; schema->marks && schema->marks[k]; k++) {
		const int n =
			snprintf(key, room, "%s%s%s", path, path[0] ? "/" : "", schema->marks[k]);
		if (k == i)
			return n >= 0 && (size_t)n < room;
	}
	return i == 0 && !schema->marks && schema->classify &&
	       schema->classify(path, NULL, &step, NULL, &first, &none, NULL) ==
		       SCHEMA_NEEDS_ANSWER;
}

enum schema_place schema_recognise(const struct schema_survey *s, bool within_bucket)
{
	if (s->storage)
		return SCHEMA_PLACE_BUCKET;
	if (s->mark.schema && !s->has_root)
		return SCHEMA_PLACE_STORE;
	if (s->document)
		return s->has_root ? SCHEMA_PLACE_DOMAIN : SCHEMA_PLACE_FOLDER;
	if (s->documents)
		return within_bucket ? SCHEMA_PLACE_FOLDER : SCHEMA_PLACE_BUCKET;
	return s->anything ? SCHEMA_PLACE_OTHER : SCHEMA_PLACE_EMPTY;
}
