/* SPDX-License-Identifier: Apache-2.0 */
/* What a listing of all keys of a Zarr store shows: see store_load.h. Pure. */
#include "store_load.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- keys ---- */

/* Returns a key, and its version behind the NUL, on the heap. */
static char *with_etag(const char *key, const char *etag)
{
	const size_t n = strlen(key) + 1, m = strlen(etag) + 1;
	char *text = malloc(n + m);
	if (text) {
		memcpy(text, key, n);
		memcpy(text + n, etag, m);
	}
	return text;
}

const char *zarr_below(const struct zarr_loader *l, const char *key)
{
	const size_t n = strlen(l->space->store);
	if (n == 0)
		return key;
	return strncmp(key, l->space->store, n) == 0 && key[n] == '/' ? key + n + 1 : NULL;
}

/* ---- listings ---- */

const char *zarr_digest_text(const struct schema_answer *answer, char text[ZARR_DIGEST_TEXT])
{
	uint64_t all = UINT64_C(0x9e3779b97f4a7c15);
	for (size_t i = 0; i < answer->nitems; i++) {
		struct schema_item item;
		answer->item(answer->items, i, &item);
		all = schema_digest(all, item.key, strlen(item.key) + 1);
		all = schema_digest(all, item.etag, strlen(item.etag) + 1);
	}
	snprintf(text, ZARR_DIGEST_TEXT, "%016llx", (unsigned long long)all);
	return text;
}

struct schema_listed zarr_describe(const struct schema_answer *answer)
{
	struct schema_listed out = {.version = UINT64_C(0x9e3779b97f4a7c15)};
	size_t len;
	for (size_t i = 0; i < answer->nitems; i++) {
		struct schema_item item;
		answer->item(answer->items, i, &item);
		out.version = schema_digest(out.version, item.key, strlen(item.key) + 1);
		out.version = schema_digest(out.version, item.etag, strlen(item.etag) + 1);
		out.version = schema_digest(out.version, &item.size, sizeof(item.size));
		out.version = schema_digest(out.version, &item.mtime_ns, sizeof(item.mtime_ns));
		if (item.mtime_ns > out.modified_ns)
			out.modified_ns = item.mtime_ns;
		if (zarr_document_of_key(item.key, &len) != ZARR_NONE)
			out.documents += item.size;
	}
	return out;
}

int zarr_take_listing(struct zarr_loader *l, const struct schema_answer *answer, struct err *err)
{
	const struct schema_load *load = &l->base.load;
	struct schema_space *space = &l->space->base;
	int rc = 0;
	if (schema_listing_is_optional(answer->code)) {
		if (load->whole_only)
			return err_set(err, -E2BIG, "not all keys of the store can be listed");
		if (answer->code == -EACCES)
			err_copy(&l->refusal, answer->err);
		return load->listed ? load->listed(load->ctx, NULL) : 0;
	}
	if (answer->code) {
		err_copy(err, answer->err);
		return err_wrap(err, answer->code, "listing %s/", l->space->store);
	}
	for (size_t i = 0; !rc && i < answer->nitems; i++) {
		struct schema_item item;
		answer->item(answer->items, i, &item);
		const char *key = zarr_below(l, item.key);
		if (key)
			rc = zarr_list_push(&l->keys, with_etag(key, item.etag), err);
	}
	if (rc)
		return rc;
	space->listed_whole = true;
	space->listed = zarr_describe(answer);
	if (space->listed.modified_ns > space->modified_ns)
		space->modified_ns = space->listed.modified_ns;
	return load->listed ? load->listed(load->ctx, &space->listed) : 0;
}

/* ---- what it shows ---- */

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void zarr_sort_keys(struct zarr_loader *l)
{
	if (l->keys.n)
		qsort(l->keys.v, l->keys.n, sizeof(*l->keys.v), by_text);
}

const char *zarr_listed_etag(const struct zarr_loader *l, const char *key)
{
	char *const *found =
		l->keys.n ? bsearch(&key, l->keys.v, l->keys.n, sizeof(*l->keys.v), by_text) : NULL;
	return found ? *found + strlen(*found) + 1 : NULL;
}

char zarr_separator(void *loader, const char *path)
{
	const struct zarr_loader *l = loader;
	const size_t n = strlen(path);
	for (uint32_t i = 0; i < l->keys.n; i++) {
		const char *key = l->keys.v[i];
		if (n && (strncmp(key, path, n) != 0 || key[n] != '/'))
			continue;
		key += n ? n + 1 : 0;
		const size_t digits = strspn(key, "0123456789");
		if (digits && (key[digits] == '.' || key[digits] == '/'))
			return key[digits];
	}
	return 0;
}
