/* SPDX-License-Identifier: Apache-2.0 */
/* Listings of uploads in parts: an accepted page has only keys with the prefix and ids that a
 * request can name, and the next page begins somewhere else. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "s3/upload_xml.h"

static void check(const struct store_upload_page *page, const char *prefix, const char *after)
{
	assert(page->n <= STORE_UPLOADS_MAX);
	for (size_t i = 0; i < page->n; i++) {
		const struct store_upload *u = &page->v[i];
		const size_t id = strlen(u->id);
		assert(store_key_ok(u->key));
		assert(strncmp(u->key, prefix, strlen(prefix)) == 0);
		assert(id && id <= STORE_UPLOAD_ID_MAX);
	}
	assert(!page->more || strcmp(page->next_key, after) >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const prefixes[] = {"", "db/"}, *const after[] = {"", "b"};
	for (int i = 0; i < 2; i++) {
		struct store_upload_page *page = calloc(1, sizeof(*page));
		assert(page);
		snprintf(page->next_key, sizeof(page->next_key), "%s", after[i]);
		if (s3_uploads_parse(data, size, prefixes[i], page, NULL) == 0)
			check(page, prefixes[i], after[i]);
		arena_free(page->arena);
		free(page);
	}
	return 0;
}
