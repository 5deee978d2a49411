/* SPDX-License-Identifier: Apache-2.0 */
/* A model's life and what others may ask of it. See model_internal.h for threading. */
#include <model/model.h>

#include <errno.h>
#include <string.h>

#include "model_internal.h"

#include <base/checksum.h>

struct model *model_ref(struct model *m)
{
	atomic_fetch_add_explicit(&m->refs, 1, memory_order_relaxed);
	return m;
}

void model_unref(struct model *m)
{
	if (!m || atomic_fetch_sub_explicit(&m->refs, 1, memory_order_acq_rel) != 1)
		return;
	HASH_CLEAR(hh, m->by_id);
	store_page_release(&m->listing);
	free(m->entries);
	free(m->chunks);
	free(m->path);
	tree_free(m->tree);
	free(m);
}

uint32_t model_number(const struct model *m, const struct schema_id *id)
{
	uint8_t key[17] = {(uint8_t)id->kind};
	struct model_entry *entry;

	memcpy(key + 1, id->b, sizeof(id->b));
	HASH_FIND(hh, m->by_id, key, sizeof(key), entry);
	return entry ? entry->number : OBJECT_NONE;
}

static uint64_t digest_string(uint64_t digest, const char *s)
{
	uint32_t low = checksum_lookup3(s, strlen(s) + 1, (uint32_t)digest);
	uint32_t high = checksum_lookup3(s, strlen(s) + 1, (uint32_t)(digest >> 32) ^ low);

	return (uint64_t)high << 32 | low;
}

uint64_t model_listing_digest(const struct model *m, const struct store_page *page)
{
	uint64_t digest = UINT64_C(0x9e3779b97f4a7c15);

	for (size_t i = 0; i < page->n; i++) {
		const struct store_item *item = &page->items[i];
		struct schema_key key;

		m->schema->key_classify(item->key, &key);
		if (key.cls == SCHEMA_KEY_OTHER)
			continue;
		digest = digest_string(digest, item->key);
		digest = digest_string(digest, item->meta.etag);
		digest ^= item->meta.size;
	}
	return digest;
}

const char *model_listed_etag(const struct model *m, const char *key)
{
	size_t low = 0, high = m->listing.n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(m->listing.items[middle].key, key);

		if (order == 0) {
			const char *etag = m->listing.items[middle].meta.etag;
			return etag[0] ? etag : NULL;
		}
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

/* Values of attributes have memory of their own, all else is in the arena and the tables. */
uint64_t model_memory(const struct model *m)
{
	const uint64_t each = sizeof(*m->entries) + sizeof(*m->chunks);

	return sizeof(*m) + tree_memory(m->tree) + m->capacity * each + m->values;
}

const struct domain *model_domain(const struct model *m)
{
	return &m->domain.info;
}

const char *model_path(const struct model *m)
{
	return m->path;
}

int64_t model_modified_ns(const struct model *m)
{
	return m->modified_ns;
}

const struct tree *model_tree(const struct model *m)
{
	return m->tree;
}

static const struct chunk_list *list_chunks(void *ctx, uint32_t dataset)
{
	return model_chunks(ctx, dataset);
}

struct chunk_source model_chunk_source(struct model *m)
{
	return (struct chunk_source){.list = list_chunks, .get = model_get_chunk, .ctx = m};
}

const struct chunk_list *model_chunks(const struct model *m, uint32_t number)
{
	return &m->chunks[number];
}

bool model_sees_chunks(const struct model *m)
{
	return m->listed_whole;
}

uint64_t model_kept(const struct model *m)
{
	return m->kept;
}
