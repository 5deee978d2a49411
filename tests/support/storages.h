/* SPDX-License-Identifier: Apache-2.0 */
/* Storages of the schema of new domains, by their numbers. */
#ifndef TESTS_STORAGES_H
#define TESTS_STORAGES_H

#include <bucket/schemas.h>
#include <schema/schema.h>

static inline struct storage storage_nth(uint64_t number)
{
	return schema_storage_of_number(schema_all()[0], number);
}

/* The same as a pointer, which is valid in the block. */
#define STORAGE(number) ((const struct storage[]){storage_nth(number)})

/* Returns 0 for none. */
static inline uint64_t storage_number(const struct storage *s)
{
	return s->schema ? s->schema->storage->number(s->prefix) : 0;
}

#endif
