/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Object ids of schema v2: "<c>-<8>-<8>-<4>-<6>-<6>", where c is g, d or t, and the rest is
 * lower-case hex. In a reference the id may follow its collection ("datasets/d-…") and may be
 * padded. Pure.
 */
#include "id.h"

#include <stdio.h>
#include <string.h>

enum { ID_LEN = 38 };

static const struct {
	char letter;
	const char *collection;
} kinds[] = {
	[OBJECT_GROUP] = {'g', "groups/"},
	[OBJECT_DATASET] = {'d', "datasets/"},
	[OBJECT_DATATYPE] = {'t', "datatypes/"},
};
enum { NKINDS = sizeof(kinds) / sizeof(kinds[0]) };

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Positions of the hyphens: 1, 10, 19, 24, 31. */
static bool is_hyphen(unsigned int i)
{
	return i == 1 || i == 10 || i == 19 || i == 24 || i == 31;
}

static bool parse_bare(const char *text, struct schema_id *id)
{
	unsigned int digits = 0;
	unsigned int kind = 0;
	while (kind < NKINDS && kinds[kind].letter != text[0])
		kind++;
	if (kind == NKINDS)
		return false;
	*id = (struct schema_id){.kind = (enum object_kind)kind};
	for (unsigned int i = 1; i < ID_LEN; i++) {
		if (is_hyphen(i)) {
			if (text[i] != '-')
				return false;
			continue;
		}
		int digit = hex_digit(text[i]);
		if (digit < 0)
			return false;
		id->b[digits / 2] = (uint8_t)(id->b[digits / 2] << 4 | digit);
		digits++;
	}
	return true;
}

bool schema_id_parse(const char *text, size_t n, struct schema_id *id)
{
	while (n > 0 && (text[n - 1] == '\0' || text[n - 1] == ' '))
		n--;
	if (n < ID_LEN)
		return false;
	size_t prefix = n - ID_LEN;
	if (!parse_bare(text + prefix, id))
		return false;
	const char *collection = kinds[id->kind].collection;
	return prefix == 0 || (prefix == strlen(collection) && !memcmp(text, collection, prefix));
}

void schema_id_format(const struct schema_id *id, char text[static SCHEMA_ID_MAX])
{
	const uint8_t *b = id->b;
	snprintf(text, SCHEMA_ID_MAX,
		 "%c-%02x%02x%02x%02x-%02x%02x%02x%02x-%02x%02x-%02x%02x%02x-%02x%02x%02x",
		 kinds[id->kind].letter, b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9],
		 b[10], b[11], b[12], b[13], b[14], b[15]);
}

bool schema_id_equal(const struct schema_id *a, const struct schema_id *b)
{
	return a->kind == b->kind && memcmp(a->b, b->b, sizeof(a->b)) == 0;
}
