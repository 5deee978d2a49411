/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ids of objects: "<c>-<8>-<8>-<4>-<6>-<6>" in schema v2, and "<c>-<8>-<4>-<4>-<4>-<12>" (a UUID)
 * in schema v1. c is g, d or t, and the rest is lower-case hexadecimal digits. The position of the
 * third hyphen shows which form an id has. In a reference, the name of a collection may precede the
 * id ("datasets/d-…"), and padding may follow it. Pure.
 */
#include "id.h"

#include <string.h>

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

enum { HYPHENS = 5 };
/* The positions of the hyphens. A hyphen at V1_MARK shows that an id has the form of v1. */
static const unsigned char hyphens[][HYPHENS] = {
	[SCHEMA_ID_V2] = {1, 10, 19, 24, 31},
	[SCHEMA_ID_V1] = {1, 10, 15, 20, 25},
};
enum { V1_MARK = 15 };

static bool is_hyphen(enum schema_id_form form, unsigned int i)
{
	return memchr(hyphens[form], (int)i, HYPHENS) != NULL;
}

static bool parse_bare(const char *text, struct schema_id *id)
{
	unsigned int digits = 0;
	unsigned int kind = 0;
	while (kind < NKINDS && kinds[kind].letter != text[0])
		kind++;
	if (kind == NKINDS)
		return false;
	*id = (struct schema_id){
		.kind = (enum object_kind)kind,
		.form = text[V1_MARK] == '-' ? SCHEMA_ID_V1 : SCHEMA_ID_V2,
	};
	for (unsigned int i = 1; i < SCHEMA_ID_LEN; i++) {
		if (is_hyphen(id->form, i)) {
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
	if (n < SCHEMA_ID_LEN)
		return false;
	size_t prefix = n - SCHEMA_ID_LEN;
	if (!parse_bare(text + prefix, id))
		return false;
	const char *collection = kinds[id->kind].collection;
	return prefix == 0 || (prefix == strlen(collection) && !memcmp(text, collection, prefix));
}

void schema_id_format(const struct schema_id *id, char text[static SCHEMA_ID_MAX])
{
	static const char hex[] = "0123456789abcdef";
	unsigned int digits = 0;
	text[0] = kinds[id->kind].letter;
	for (unsigned int i = 1; i < SCHEMA_ID_LEN; i++) {
		const uint8_t byte = id->b[digits / 2];
		if (is_hyphen(id->form, i)) {
			text[i] = '-';
			continue;
		}
		text[i] = hex[digits % 2 ? byte & 15 : byte >> 4];
		digits++;
	}
	text[SCHEMA_ID_LEN] = '\0';
}

bool schema_id_equal(const struct schema_id *a, const struct schema_id *b)
{
	return a->kind == b->kind && a->form == b->form && memcmp(a->b, b->b, sizeof(a->b)) == 0;
}

const char *schema_id_version(enum schema_id_form form)
{
	return form == SCHEMA_ID_V1 ? "v1" : "v2";
}
