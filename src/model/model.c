/* SPDX-License-Identifier: Apache-2.0 */
/* A model's life and what others may ask of it. See model_internal.h for threading. */
#include <model/model.h>

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "model_internal.h"

#include <base/checksum.h>

enum { MAX_PROBLEMS = 1000, LOGGED_PROBLEMS = 100 };

struct model *model_ref(struct model *m)
{
	atomic_fetch_add_explicit(&m->refs, 1, memory_order_relaxed);
	return m;
}

void model_unref(struct model *m)
{
	if (!m || atomic_fetch_sub_explicit(&m->refs, 1, memory_order_acq_rel) != 1)
		return;
	for (uint32_t i = 0; i < m->numbers; i++)
		object_release(&m->objects[i].o);
	HASH_CLEAR(hh, m->by_id);
	store_page_release(&m->listing);
	free(m->entries);
	free(m->objects);
	free(m->chunks);
	free(m->order);
	free(m->path);
	arena_free(m->arena);
	budget_set(&m->charge, 0, NULL);
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

void model_note(struct model *m, const char *fmt, ...)
{
	char raw[ERR_MAX];
	struct err printable = ERR_INIT; /* names are foreign bytes */
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(raw, sizeof(raw), fmt, ap);
	va_end(ap);
	err_set(&printable, -EIO, "%s", raw);
	const char *text = printable.msg;

	if (m->nproblems < LOGGED_PROBLEMS)
		log_warning(m->env->log, "domain /%s: %s", m->path, text);
	else if (m->nproblems == LOGGED_PROBLEMS)
		log_warning(m->env->log, "domain /%s: more than %d problems, no more are logged",
			    m->path, LOGGED_PROBLEMS);
	if (m->nproblems >= MAX_PROBLEMS)
		return;
	struct model_problem_text *problem = arena_alloc(m->arena, sizeof(*problem));
	if (!problem)
		return;
	problem->text = arena_strndup(m->arena, text, strlen(text));
	if (!problem->text)
		return;
	*m->problems_end = problem;
	m->problems_end = &problem->next;
	m->nproblems++;
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
	const uint64_t each = sizeof(*m->entries) + sizeof(*m->objects) + sizeof(*m->chunks);

	return sizeof(*m) + arena_used(m->arena) + m->capacity * each +
	       m->count * sizeof(*m->order) + m->values;
}

int model_charge(struct model *m, struct err *err)
{
	const uint64_t bytes = model_memory(m);
	int rc = budget_set(&m->charge, bytes, err);

	return rc ? err_wrap(err, rc, "at least %" PRIu64 " bytes of metadata", bytes) : 0;
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

uint32_t model_count(const struct model *m)
{
	return m->count;
}

uint32_t model_nth(const struct model *m, uint32_t i)
{
	return m->order[i];
}

uint32_t model_numbers(const struct model *m)
{
	return m->numbers;
}

const struct model_object *model_object(const struct model *m, uint32_t number)
{
	return &m->objects[number];
}

const struct object_resolver *model_resolver(const struct model *m)
{
	return &m->resolver;
}

const char *model_problem(const struct model *m, uint32_t n)
{
	const struct model_problem_text *problem = m->problems;

	while (problem && n--)
		problem = problem->next;
	return problem ? problem->text : NULL;
}

const struct model_chunks *model_chunks(const struct model *m, uint32_t number)
{
	return &m->chunks[number];
}

uint64_t model_chunks_from(const struct model_chunks *chunks, uint64_t number)
{
	uint64_t low = 0, high = chunks->n;

	while (low < high) {
		const uint64_t middle = low + (high - low) / 2;

		if (chunks->numbers[middle] < number)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

uint64_t model_chunks_find(const struct model_chunks *chunks, uint64_t number)
{
	const uint64_t place = model_chunks_from(chunks, number);

	return place < chunks->n && chunks->numbers[place] == number ? place : chunks->n;
}

bool model_sees_chunks(const struct model *m)
{
	return m->listed_whole;
}
