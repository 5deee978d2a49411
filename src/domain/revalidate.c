/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Are the documents of a domain still those that a snapshot was made of? Answered by versions
 * (ETags), without reading bodies. For domains of which not every key is known.
 */
#include <domain/domain.h>

#include <errno.h>
#include <string.h>

#include "domain_internal.h"

enum { HEADS_AT_ONCE = 1024 };

struct heads {
	struct domain *d;
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
	const struct schema_id *id = &h->d->entries[number_at(h, i)].id;
	if (h->d->schema->object_key(id, h->key, sizeof(h->key)) < 0)
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
	const struct domain_entry *entry = &h->d->entries[number_at(h, i)];
	if (res->code == -ENOENT)
		return 1;
	if (res->code) {
		err_copy(h->err, &res->err);
		return err_wrap(h->err, res->code, "object %s",
				tree_object(h->d->tree, entry->number)->o.id);
	}
	return !domain_same_version(res->meta.etag, entry->etag);
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
	int changed = store_get_each(h->d->store, &each);

	return changed == -ENOMEM ? err_set(h->err, changed, "no memory for requests") : changed;
}

int domain_docs_changed(struct domain *d, const struct store_get *first,
			struct store_get_result *first_result, struct err *err)
{
	struct heads h = {.d = d,
			  .first = first,
			  .first_result = first_result,
			  .numbers = tree_order(d->tree),
			  .err = err};

	return ask_heads(&h, tree_count(d->tree));
}

/* A service may write versions in listings otherwise than in answers: those that look different are
 * asked for one by one before they count as changed. */
int domain_differs_from(struct domain *d, const struct store_page *page, struct err *err)
{
	auto_free bool *seen = calloc(tree_numbers(d->tree), sizeof(*seen));
	auto_free uint32_t *doubtful = calloc(tree_count(d->tree), sizeof(*doubtful));
	uint32_t n = 0;

	if (!seen || !doubtful)
		return err_set(err, -ENOMEM, "no memory for %u objects", tree_count(d->tree));
	for (size_t i = 0; i < page->n; i++) {
		const struct store_item *item = &page->items[i];
		struct schema_key key;
		uint32_t number;

		d->schema->key_classify(item->key, &key);
		if (key.cls != SCHEMA_KEY_OBJECT)
			continue;
		number = domain_number(d, &key.id);
		if (number != OBJECT_NONE &&
		    domain_same_version(item->meta.etag, d->entries[number].etag))
			seen[number] = true;
	}
	for (uint32_t i = 0; i < tree_count(d->tree); i++)
		if (!seen[tree_nth(d->tree, i)])
			doubtful[n++] = tree_nth(d->tree, i);
	struct heads h = {.d = d, .numbers = doubtful, .err = err};
	return n ? ask_heads(&h, n) : 0;
}
