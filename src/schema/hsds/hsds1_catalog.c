/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Catalogs of schema v1. A catalog is a text file that names objects of a domain, one on each line:
 *
 *   <id> <etag> <time> <size> [<chunks> <bytes>]
 *
 * The service wrote catalogs some time after a change, and only in 2017 and 2018. So a catalog may
 * be missing or stale, and only the ids are used. Pure.
 */
#include "hsds1.h"

#include <string.h>

int hsds1_catalog_parse(const char *text, size_t n, enum object_kind kind,
			int (*fn)(void *ctx, const struct schema_id *id), void *ctx)
{
	struct schema_id id;
	int rc = 0;
	for (const char *line = text, *end = text + n; !rc && line < end;) {
		const char *next = memchr(line, '\n', (size_t)(end - line));
		const size_t len = (size_t)((next ? next : end) - line);
		const char *space = len ? memchr(line, ' ', len) : NULL;
		if (schema_id_parse(line, space ? (size_t)(space - line) : len, &id) &&
		    id.form == SCHEMA_ID_V1 && id.kind == kind)
			rc = fn(ctx, &id);
		line = next ? next + 1 : end;
	}
	return rc;
}
