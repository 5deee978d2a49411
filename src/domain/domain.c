/* SPDX-License-Identifier: Apache-2.0 */
/* References to a domain and its properties. See domain_internal.h for threading. */
#include <domain/domain.h>
#include <domain/puts.h>
#include <domain/shard_counts.h>

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <store/page.h>

#include "domain_internal.h"

struct domain *domain_ref(struct domain *d)
{
	atomic_fetch_add_explicit(&d->refs, 1, memory_order_relaxed);
	return d;
}

void domain_unref(struct domain *d)
{
	if (!d || atomic_fetch_sub_explicit(&d->refs, 1, memory_order_acq_rel) != 1)
		return;
	ranges_release(&d->ranges);
	domain_rechecks_release(d);
	domain_versions_release(d);
	store_page_release(&d->listing);
	free(d->chunks);
	free(d->path);
	schema_document_unref(d->document);
	arena_free(d->texts);
	tree_free(d->tree);
	budget_set(&d->charge, 0, NULL);
	free(d);
}

bool domain_is_outdated(const struct domain *d)
{
	return atomic_load(&d->ranges.changed) || atomic_load(&d->versions.changed);
}

void domain_shard_counts(const struct domain *d, uint64_t *hits, uint64_t *misses)
{
	*hits = atomic_load(&d->ranges.shard_hits);
	*misses = atomic_load(&d->ranges.shard_misses);
}

bool domain_was_listed(const struct domain *d, const char *key)
{
	return d->listed_prefix && strncmp(key, d->listed_prefix, strlen(d->listed_prefix)) == 0;
}

size_t domain_listed_from(const struct domain *d, const char *key)
{
	return (size_t)(store_page_from(&d->listing, key) - d->listing.items);
}

const struct store_item *domain_listed(const struct domain *d, const char *key)
{
	return store_page_find(&d->listing, key);
}

const char *domain_listed_etag(const struct domain *d, const char *key)
{
	const struct store_item *item = domain_listed(d, key);
	return item && item->meta.etag[0] ? item->meta.etag : NULL;
}

/* The values are counted apart; everything else is in the arena and the table of chunks. */
uint64_t domain_memory(const struct domain *d)
{
	return sizeof(*d) + tree_memory(d->tree) + tree_numbers(d->tree) * sizeof(*d->chunks) +
	       d->values + (d->texts ? arena_used(d->texts) : 0);
}

int domain_charge(struct domain *d, struct err *err)
{
	struct err why = ERR_INIT;
	uint64_t bytes;
	int rc;
	do {
		bytes = domain_memory(d);
		rc = budget_set(&d->charge, bytes, &why);
	} while (rc && domain_drop_texts(d));
	if (rc)
		err_copy(err, &why);
	return rc ? err_wrap(err, rc, "at least %" PRIu64 " bytes of metadata", bytes) : 0;
}

bool domain_drop_texts(struct domain *d)
{
	if (!d->texts)
		return false;
	d->schema->drop_texts(d->space);
	arena_free(d->texts);
	d->texts = NULL;
	budget_set(&d->charge, min_u64(d->charge.bytes, domain_memory(d)), NULL);
	return true;
}

/* A part of the room, so that there is room for other domains, too. */
uint64_t domain_texts_limit(struct budget *budget)
{
	enum { SHARE = 8 };
	return max_u64(budget ? budget_spare(budget) / SHARE : 0, DOMAIN_TEXTS_MIN);
}

void domain_drop_attributes(struct domain *d, void (*take)(void *ctx, uint32_t i, struct object *o),
			    void *ctx)
{
	tree_drop_attributes(d->tree, take, ctx);
	d->values = 0;
	for (uint32_t i = 0; i < tree_numbers(d->tree); i++)
		d->values += domain_value_memory(&tree_object(d->tree, i)->o);
	budget_set(&d->charge, domain_memory(d), NULL);
}

const struct domain_info *domain_info(const struct domain *d)
{
	return &d->document->info;
}

const char *domain_path(const struct domain *d)
{
	return d->path;
}

const char *domain_only_version(const struct domain *d)
{
	return d->lists_chunks ? NULL : d->space->only_version;
}

const struct schema_listed *domain_listed_keys(const struct domain *d)
{
	return d->space->listed_whole ? &d->space->listed : NULL;
}

bool domain_has_copy(const struct domain *d)
{
	return d->space->listed_whole && atomic_load(&d->has_copy);
}

uint64_t domain_summary(const struct domain *d)
{
	return d->space->listed_whole ? atomic_load(&d->summary) : 0;
}

int64_t domain_modified_ns(const struct domain *d)
{
	const int64_t own = d->document->info.modified_ns;
	return own > d->space->modified_ns ? own : d->space->modified_ns;
}

const struct schema_ops *domain_schema(const struct domain *d)
{
	return d->schema;
}

const struct schema_document *domain_document(const struct domain *d)
{
	return d->document;
}

int domain_object_key(const struct domain *d, uint32_t number, char *key, size_t room)
{
	const char *etag;
	return d->schema->object_key(d->space, number, key, room, &etag);
}

const char *domain_object_version(const struct domain *d, uint32_t number, const void **text,
				  size_t *len)
{
	char key[SCHEMA_KEY_MAX + 1];
	const char *etag = "";
	*text = NULL;
	*len = 0;
	if (number >= tree_numbers(d->tree))
		return etag;
	d->schema->object_key(d->space, number, key, sizeof(key), &etag);
	*text = d->schema->object_text(d->space, number, len);
	return etag;
}

int domain_chunk_key(const struct domain *d, uint32_t dataset, uint64_t chunk, char *key,
		     size_t room)
{
	struct chunk_place place = {.key = key, .room = room};
	unsigned int step = 0;
	int rc = d->schema->locate(&tree_object(d->tree, dataset)->o, NULL, chunk, &step, NULL,
				   &place, NULL);
	const bool has_key = !place.absent && !place.file && (!rc || rc == SCHEMA_NEEDS_SHARD);
	return rc < 0 ? rc : has_key ? (int)strlen(key) : -ENOENT;
}

int domain_chunk_version(struct domain *d, uint32_t dataset, uint64_t chunk,
			 char etag[STORE_ETAG_MAX], bool *absent)
{
	const struct tree_object *t =
		dataset < tree_numbers(d->tree) ? tree_object(d->tree, dataset) : NULL;
	char key[SCHEMA_KEY_MAX + 1];
	etag[0] = '\0';
	*absent = false;
	if (!t || t->broken || t->o.kind != OBJECT_DATASET || chunk >= t->o.dataset.grid.nchunks)
		return -EINVAL;
	if (domain_chunk_key(d, dataset, chunk, key, sizeof(key)) < 0)
		return 0; /* it is in no object of its own */
	const struct store_item *item = domain_listed(d, key);
	const struct chunk_list *chunks = &d->chunks[dataset];
	*absent = !item && (domain_was_listed(d, key) ||
			    (chunks->listed && chunk_list_find(chunks, chunk) == chunks->n));
	if (item)
		strcpy(etag, item->meta.etag);
	const struct dataset *ds = &t->o.dataset;
	if (!*absent && !etag[0])
		domain_versions_get(d, dataset,
				    ds->shard ? shard_first(ds->shard, &ds->grid, chunk) : chunk,
				    etag);
	return 0;
}

const struct tree *domain_tree(const struct domain *d)
{
	return d->tree;
}

bool domain_has_own_list(const struct domain *d, uint32_t number)
{
	return !domain_sees_chunks(d) && d->chunks[number].listed &&
	       !tree_object(d->tree, number)->o.dataset.reference;
}

const struct chunk_list *domain_chunks(const struct domain *d, uint32_t number)
{
	return &d->chunks[number];
}

bool domain_sees_chunks(const struct domain *d)
{
	return d->listed_prefix != NULL;
}
