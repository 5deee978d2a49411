/* SPDX-License-Identifier: Apache-2.0 */
/* A domain's life and what others may ask of it. See domain_internal.h for threading. */
#include <domain/domain.h>

#include <errno.h>
#include <string.h>

#include "domain_internal.h"

#include <base/checksum.h>

struct domain *domain_ref(struct domain *d)
{
	atomic_fetch_add_explicit(&d->refs, 1, memory_order_relaxed);
	return d;
}

void domain_unref(struct domain *d)
{
	if (!d || atomic_fetch_sub_explicit(&d->refs, 1, memory_order_acq_rel) != 1)
		return;
	HASH_CLEAR(hh, d->by_id);
	domain_rechecks_release(d);
	store_page_release(&d->listing);
	free(d->entries);
	free(d->chunks);
	free(d->path);
	tree_free(d->tree);
	free(d);
}

uint32_t domain_number(const struct domain *d, const struct schema_id *id)
{
	uint8_t key[17] = {(uint8_t)id->kind};
	struct domain_entry *entry;

	memcpy(key + 1, id->b, sizeof(id->b));
	HASH_FIND(hh, d->by_id, key, sizeof(key), entry);
	return entry ? entry->number : OBJECT_NONE;
}

static uint64_t digest_string(uint64_t digest, const char *s)
{
	uint32_t low = checksum_lookup3(s, strlen(s) + 1, (uint32_t)digest);
	uint32_t high = checksum_lookup3(s, strlen(s) + 1, (uint32_t)(digest >> 32) ^ low);

	return (uint64_t)high << 32 | low;
}

uint64_t domain_listing_digest(const struct domain *d, const struct store_page *page)
{
	uint64_t digest = UINT64_C(0x9e3779b97f4a7c15);

	for (size_t i = 0; i < page->n; i++) {
		const struct store_item *item = &page->items[i];
		struct schema_key key;

		d->schema->key_classify(item->key, &key);
		if (key.cls == SCHEMA_KEY_OTHER)
			continue;
		digest = digest_string(digest, item->key);
		digest = digest_string(digest, item->meta.etag);
		digest ^= item->meta.size;
	}
	return digest;
}

bool domain_was_listed(const struct domain *d, const char *key)
{
	return d->listed_whole && strncmp(key, d->listed_prefix, strlen(d->listed_prefix)) == 0;
}

const struct store_item *domain_listed(const struct domain *d, const char *key)
{
	size_t low = 0, high = d->listing.n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(d->listing.items[middle].key, key);

		if (order == 0)
			return &d->listing.items[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

const char *domain_listed_etag(const struct domain *d, const char *key)
{
	const struct store_item *item = domain_listed(d, key);

	return item && item->meta.etag[0] ? item->meta.etag : NULL;
}

/* Values of attributes have memory of their own, all else is in the arena and the tables. */
uint64_t domain_memory(const struct domain *d)
{
	const uint64_t each = sizeof(*d->entries) + sizeof(*d->chunks);

	return sizeof(*d) + tree_memory(d->tree) + d->capacity * each + d->values;
}

const struct domain_info *domain_info(const struct domain *d)
{
	return &d->doc.info;
}

const char *domain_path(const struct domain *d)
{
	return d->path;
}

int64_t domain_modified_ns(const struct domain *d)
{
	return d->modified_ns;
}

const struct tree *domain_tree(const struct domain *d)
{
	return d->tree;
}

const struct chunk_list *domain_chunks(const struct domain *d, uint32_t number)
{
	return &d->chunks[number];
}

bool domain_sees_chunks(const struct domain *d)
{
	return d->listed_whole;
}

uint64_t domain_kept(const struct domain *d)
{
	return d->kept;
}
