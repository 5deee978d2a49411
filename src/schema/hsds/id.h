/* SPDX-License-Identifier: Apache-2.0 */
/* Ids of objects in schema v1 and v2. Pure. */
#ifndef HSDS_ID_H
#define HSDS_ID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <data/object.h>

enum {
	SCHEMA_ID_LEN = 38, /* "g-8-8-4-6-6" or "g-8-4-4-4-12" */
	SCHEMA_ID_MAX = 40,
};

/* The version of the schema, which the form of an id shows. */
enum schema_id_form { SCHEMA_ID_V2, SCHEMA_ID_V1 };

/* A parsed id. */
struct schema_id {
	enum object_kind kind;
	enum schema_id_form form;
	uint8_t b[16];
};

/* Parses an id such as "d-1b2c…" or "datasets/d-1b2c…" of n bytes, which may end with NULs or
 * spaces. Returns false for any other text, and for the empty text, which is the null reference. */
bool schema_id_parse(const char *text, size_t n, struct schema_id *id);
void schema_id_format(const struct schema_id *id, char text[static SCHEMA_ID_MAX]);
/* Returns "v1" or "v2". */
const char *schema_id_version(enum schema_id_form form);
bool schema_id_equal(const struct schema_id *a, const struct schema_id *b);

/* Finds the number of an object by its id. number() returns OBJECT_NONE if the domain has no such
 * object. */
struct schema_numbers {
	uint32_t (*number)(void *ctx, const struct schema_id *id);
	void *ctx;
};

#endif
