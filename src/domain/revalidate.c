/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Are the documents of a domain still those that a snapshot was made of? Answered by versions
 * (ETags), without reading bodies. For domains of which not every key is known.
 */
#include <domain/domain.h>

#include <errno.h>
#include <string.h>

#include "domain_internal.h"

#include <base/wait.h>

enum { HEADS_AT_ONCE = 1024 };

struct heads {
	struct domain *d;
	const uint32_t *numbers; /* objects to look at */
	struct err *err;
};

static bool ask(void *arg, size_t i, struct store_request *req)
{
	struct heads *h = arg;
	const struct schema_id *id = &h->d->entries[h->numbers[i]].id;

	req->op = STORE_HEAD;
	/* It was read once, so it has a key. */
	return h->d->schema->object_key(id, req->key, req->room) >= 0;
}

/* 1: the document is not the one that the snapshot was made of. */
static int compare(void *arg, size_t i, struct store_request *req)
{
	struct heads *h = arg;
	const struct domain_entry *entry = &h->d->entries[h->numbers[i]];
	const struct store_answer *a = &req->answer;
	const int rc = store_failure(a, h->err);

	if (store_absence(a))
		return !entry->absent;
	if (rc) {
		char id[SCHEMA_ID_MAX];

		schema_id_format(&entry->id, id);
		return err_wrap(h->err, rc, "object %s", id);
	}
	return entry->absent || !domain_same_version(a->meta.etag, entry->etag);
}

static int ask_heads(struct heads *h, uint32_t n)
{
	const struct store_row row = {
		.n = n,
		.at_once = HEADS_AT_ONCE,
		.request = ask,
		.take = compare,
		.arg = h,
	};
	int changed = store_run_row(h->d->store, &row);

	return changed == -ENOMEM ? err_set(h->err, changed, "out of memory for requests")
				  : changed;
}

static void wake(struct store_request *req)
{
	wait_done(req->arg);
}

int domain_docs_changed(struct domain *d, struct store_request *first, struct err *err)
{
	struct heads h = {.d = d, .numbers = tree_order(d->tree), .err = err};
	const uint32_t n = tree_count(d->tree) + tree_missed(d->tree);
	struct waiter waiter;

	if (!first)
		return ask_heads(&h, n);
	wait_init(&waiter, 1);
	first->done = wake;
	first->arg = &waiter;
	store_submit(d->store, first);
	int changed = ask_heads(&h, n);
	wait_all(&waiter);
	return changed;
}

/* A service may write versions in listings otherwise than in answers: those that look different are
 * asked for one by one before they count as changed. */
int domain_differs_from(struct domain *d, const struct store_page *page, struct err *err)
{
	auto_free bool *seen = calloc(tree_numbers(d->tree), sizeof(*seen));
	const uint32_t all = tree_count(d->tree) + tree_missed(d->tree);
	auto_free uint32_t *doubtful = calloc(all, sizeof(*doubtful));
	uint32_t n = 0;

	if (!seen || !doubtful)
		return err_set(err, -ENOMEM, "out of memory for %u objects", all);
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
	for (uint32_t i = 0; i < all; i++)
		if (!seen[tree_order(d->tree)[i]])
			doubtful[n++] = tree_order(d->tree)[i];
	struct heads h = {.d = d, .numbers = doubtful, .err = err};
	return n ? ask_heads(&h, n) : 0;
}
