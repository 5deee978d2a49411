/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The identity of the storage of a domain: the prefix of all its keys except for that of its
 * document. No other domain has it. Only the functions of its schema look into the prefix.
 */
#ifndef SCHEMA_STORAGE_ID_H
#define SCHEMA_STORAGE_ID_H

#include <stdbool.h>
#include <string.h>

struct schema_ops;

enum { STORAGE_PREFIX_MAX = 63 };

/* A zeroed struct is no storage. */
struct storage {
	const struct schema_ops *schema;
	char prefix[STORAGE_PREFIX_MAX + 1];
};

static inline bool same_storage(const struct storage *a, const struct storage *b)
{
	return strcmp(a->prefix, b->prefix) == 0;
}

#endif
