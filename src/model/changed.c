/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Are the documents of a domain still those that a model was made of? Answered by versions (ETags),
 * without reading bodies. For domains of which not every key is known.
 */
#include <model/model.h>

#include <errno.h>
#include <string.h>

#include "model_internal.h"

enum { HEADS_AT_ONCE = 1024 };

struct heads {
	struct model *m;
	const struct store_get *first; /* asked for before all heads, and its result; or NULL */
	struct store_get_result *first_result;
	const uint32_t *numbers; /* objects to look at */
	char key[SCHEMA_KEY_MAX + 1];
	struct err *err;
};

/* The i-th of the row is which object? */
static uint32_t number_at(const struct heads *h, size_t i)
{
	return h->numbers[h->first ? i - 1 : i];
}

static bool ask(void *arg, size_t i, struct store_get *req)
{
	struct heads *h = arg;

	if (h->first && i == 0) {
		*req = *h->first;
		return true;
	}
	const struct schema_id *id = &h->m->entries[number_at(h, i)].id;
	if (h->m->schema->object_key(id, h->key, sizeof(h->key)) < 0)
		return false; /* it was read once, so it has one */
	*req = (struct store_get){.op = STORE_HEAD, .key = h->key};
	return true;
}

static int compare(void *arg, size_t i, struct store_get_result *res)
{
	struct heads *h = arg;

	if (h->first && i == 0) {
		*h->first_result = *res;
		res->body = (struct bytes){0};
		return 0;
	}
	const struct model_entry *entry = &h->m->entries[number_at(h, i)];
	if (res->code == -ENOENT)
		return !entry->absent;
	if (res->code) {
		char id[SCHEMA_ID_MAX];

		schema_id_format(&entry->id, id);
		err_copy(h->err, &res->err);
		return err_wrap(h->err, res->code, "object %s", id);
	}
	return entry->absent || !model_same_version(res->meta.etag, entry->etag);
}

static int ask_heads(struct heads *h, uint32_t n)
{
	const struct store_each each = {
		.n = (size_t)n + (h->first ? 1 : 0),
		.at_once = HEADS_AT_ONCE,
		.request = ask,
		.take = compare,
		.arg = h,
	};
	int changed = store_get_each(h->m->store, &each);

	return changed == -ENOMEM ? err_set(h->err, changed, "no memory for requests") : changed;
}

int model_documents_changed(struct model *m, const struct store_get *first,
			    struct store_get_result *first_result, struct err *err)
{
	struct heads h = {.m = m,
			  .first = first,
			  .first_result = first_result,
			  .numbers = m->order,
			  .err = err};

	return ask_heads(&h, m->count + m->missed);
}

/* A service may write versions in listings otherwise than in answers: those that look different are
 * asked for one by one before they count as changed. */
int model_differs_from(struct model *m, const struct store_page *page, struct err *err)
{
	auto_free bool *seen = calloc(m->numbers, sizeof(*seen));
	const uint32_t all = m->count + m->missed;
	auto_free uint32_t *doubtful = calloc(all, sizeof(*doubtful));
	uint32_t n = 0;

	if (!seen || !doubtful)
		return err_set(err, -ENOMEM, "no memory for %u objects", all);
	for (size_t i = 0; i < page->n; i++) {
		const struct store_item *item = &page->items[i];
		struct schema_key key;
		uint32_t number;

		m->schema->key_classify(item->key, &key);
		if (key.cls != SCHEMA_KEY_OBJECT)
			continue;
		number = model_number(m, &key.id);
		if (number != OBJECT_NONE &&
		    model_same_version(item->meta.etag, m->entries[number].etag))
			seen[number] = true;
	}
	for (uint32_t i = 0; i < all; i++)
		if (!seen[m->order[i]])
			doubtful[n++] = m->order[i];
	struct heads h = {.m = m, .numbers = doubtful, .err = err};
	return n ? ask_heads(&h, n) : 0;
}
