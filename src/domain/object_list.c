/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which objects a domain has: its document and its listings.
 *
 * Where nothing is known, the document comes first, because it names the root group, under whose
 * id everything lies. Where the root group is known from a moment ago, document and listings are
 * asked for side by side, and the listings count when the document still names that group.
 *
 * Of a domain of which there is an earlier snapshot, less is asked: the document on condition that
 * it has changed; and that listing alone by which the snapshot can be told to be still the domain.
 *   - small enough to be listed whole then: the whole listing again. The same keys, sizes and
 *     versions: the same domain.
 *   - larger, with many objects: the whole listing as well, if it is not much longer than there
 *     are objects: a few pages instead of a request for each. The same versions of all reachable
 *     documents: the same domain.
 *   - larger, with few objects (so most keys are chunks): a head for each document.
 * The listing is used for more than that when the domain has changed: it names the objects, and
 * which documents are still those of the snapshot (object_docs.c).
 *
 * Whether a domain counts as listed whole follows from the number of its keys alone, not from what
 * was asked: the same domain makes the same image. An exception is a domain with an entry that
 * cannot be examined: it is not listed whole, and each opening tries again.
 */
#include <domain/domain.h>

#include <errno.h>
#include <string.h>

#include "domain_internal.h"

enum {
	LIST_JOBS = 8,
	FEW_OBJECTS = 256,   /* fewer: heads for all of them take no longer than a few pages */
	KEYS_PER_OBJECT = 4, /* of a listing that is cheaper than a head for each object */
};
_Static_assert(FEW_OBJECTS *KEYS_PER_OBJECT >= DOMAIN_LISTING, "a page is a page");

/* What was asked for, and came: reqs[DOCUMENT] is the domain's document, reqs[WHOLE] the whole
 * listing, all or nothing; those behind it name the objects. */
enum { DOCUMENT, WHOLE, PREFIXES };

struct object_list {
	struct domain *d;
	struct domain *previous;     /* or NULL */
	struct store_request **reqs; /* LIST_JOBS + WHOLE */
	size_t n;		     /* used; at least DOCUMENT + 1 */
};

/* ---- what is asked for ---- */

static const struct store_answer *answer_of(const struct object_list *l, size_t which)
{
	return &l->reqs[which]->answer;
}

/* The i-th request becomes a whole listing. */
static struct store_request *list(struct object_list *l, size_t i, bool delimit, uint32_t limit)
{
	struct store_request *req = l->reqs[i];

	store_request_reset(req, STORE_LIST);
	req->list.delimit = delimit;
	req->list.complete = true;
	req->list.whole = true;
	req->list.limit = limit;
	return req;
}

static int plan_whole(struct object_list *l, const struct schema_id *root, uint32_t limit,
		      struct err *err)
{
	struct store_request *req = list(l, WHOLE, false, limit);

	if (l->d->schema->storage_prefix(root, req->key, req->room) < 0)
		return err_set(err, -EIO, "the root group's id makes no key");
	l->n = PREFIXES;
	return 0;
}

static int plan_all(struct object_list *l, const struct schema_id *root, struct err *err)
{
	int rc = plan_whole(l, root, DOMAIN_LISTING, err);

	while (!rc && l->n < WHOLE + LIST_JOBS) {
		struct store_request *req = list(l, l->n, true, TREE_MAX_OBJECTS);

		if (l->d->schema->object_prefix(root, (unsigned int)(l->n - PREFIXES), req->key,
						req->room) <= 0)
			break;
		l->n++;
	}
	return rc;
}

static int plan_document(struct object_list *l, struct err *err)
{
	struct store_request *req = l->reqs[DOCUMENT];
	const struct domain *old = l->previous;

	if (l->d->schema->domain_key(l->d->path, req->key, req->room) < 0)
		return err_set(err, -ENAMETOOLONG, "the path is too long for a key");
	req->max = SCHEMA_JSON_MAX;
	if (old && old->document.data && old->document_etag[0])
		req->cond.if_none_match = old->document_etag;
	return 0;
}

/* ---- the document ---- */

static bool is_same_document(const struct object_list *l)
{
	const struct store_answer *a = answer_of(l, DOCUMENT);

	return a->state == STORE_PRESENT &&
	       (a->unchanged ||
		(l->previous && domain_same_version(a->meta.etag, l->previous->document_etag)));
}

static int take_document(struct object_list *l, struct err *err)
{
	struct domain *d = l->d;
	const struct store_answer *a = answer_of(l, DOCUMENT);
	struct domain_text text = {.data = a->body.data, .len = a->body.len};
	const char *etag = a->meta.etag;
	int rc = store_failure(a, err);

	if (store_absence(a))
		rc = err_set(err, -ENOENT, "it is not there");
	if (a->unchanged) {
		text = l->previous->document;
		etag = l->previous->document_etag;
	}
	if (!rc)
		rc = d->schema->domain_parse(d->arena, text.data, text.len, &d->doc, err);
	if (!rc && d->doc.info.is_folder)
		rc = err_set(err, -EISDIR, "is a folder: it has no root group");
	if (rc)
		return err_wrap(err, rc, "%s", l->reqs[DOCUMENT]->key);
	memcpy(d->document_etag, etag, sizeof(d->document_etag));
	d->modified_ns = d->doc.info.modified_ns;
	domain_keep(d, &d->document, text.data, text.len);
	return 0;
}

/* ---- numbers ---- */

/* Gives an id a number; ids that are known already keep theirs. etag: "" when it is not known. */
static int add_id(struct domain *d, const struct schema_id *id, const char *etag, struct err *err)
{
	uint32_t number = domain_number(d, id);

	if (number == OBJECT_NONE) {
		if (tree_numbers(d->tree) == d->capacity)
			return err_set(err, -E2BIG, "more than %u objects", d->capacity);
		struct domain_entry *entry = &d->entries[tree_numbers(d->tree)];

		int rc = tree_add(d->tree, &number, err);
		if (rc)
			return rc;
		entry->id = *id;
		entry->number = number;
		entry->hash_key[0] = (uint8_t)id->kind;
		memcpy(entry->hash_key + 1, id->b, sizeof(id->b));
		HASH_ADD(hh, d->by_id, hash_key, sizeof(entry->hash_key), entry);
	}
	if (etag[0])
		memcpy(d->entries[number].etag, etag, STORE_ETAG_MAX);
	return 0;
}

/* Tables for at most n objects; entries must not move once they are in the hash. */
static int make_tables(struct domain *d, size_t n, struct err *err)
{
	if (n > TREE_MAX_OBJECTS)
		return err_set(err, -E2BIG, "more than %u objects", TREE_MAX_OBJECTS);
	d->capacity = (uint32_t)n;
	d->entries = calloc(n, sizeof(*d->entries));
	d->chunks = calloc(n, sizeof(*d->chunks));
	if (!d->entries || !d->chunks)
		return err_set(err, -ENOMEM, "no memory for %zu objects", n);
	return 0;
}

static bool is_object(const struct domain *d, const char *key, struct schema_id *id)
{
	struct schema_key parsed;

	d->schema->key_classify(key, &parsed);
	*id = parsed.id;
	return parsed.cls == SCHEMA_KEY_OBJECT;
}

static int number_whole(struct domain *d, const struct store_page *page, struct err *err)
{
	struct schema_id id;
	size_t total = 1;

	for (size_t i = 0; i < page->n; i++)
		total += is_object(d, page->items[i].key, &id);
	int rc = make_tables(d, total, err);
	if (!rc)
		rc = add_id(d, &d->doc.root, "", err);
	for (size_t i = 0; !rc && i < page->n; i++)
		if (is_object(d, page->items[i].key, &id))
			rc = add_id(d, &id, page->items[i].meta.etag, err);
	return rc;
}

static int number_prefixes(struct object_list *l, struct err *err)
{
	struct domain *d = l->d;
	size_t total = 1;

	for (size_t j = PREFIXES; j < l->n; j++) {
		int rc = store_failure(answer_of(l, j), err);

		if (rc)
			return err_wrap(err, rc, "listing %s", l->reqs[j]->key);
		total += answer_of(l, j)->page.n;
	}
	int rc = make_tables(d, total, err);
	if (!rc)
		rc = add_id(d, &d->doc.root, "", err);
	for (size_t j = PREFIXES; j < l->n; j++) {
		const struct store_page *page = &answer_of(l, j)->page;

		for (size_t i = 0; !rc && i < page->n; i++) {
			struct schema_id id;

			if (page->items[i].is_prefix &&
			    d->schema->object_of_prefix(page->items[i].key, &id))
				rc = add_id(d, &id, "", err);
		}
	}
	return rc;
}

/* Too many keys; or something among them, which need not be ours, cannot be examined: the objects
 * can still be named, and the chunks asked for one by one. */
static bool is_listing_optional(int code)
{
	return code == -E2BIG || code == -ELOOP || code == -EACCES || code == -ENOLINK;
}

/* What could not be listed for a reason that may pass. The next opening lists again: whether a
 * domain counts as listed whole must not depend on how an earlier listing failed. */
static bool may_be_listed_now(const struct domain *old)
{
	return old->listing_code && old->listing_code != -E2BIG;
}

static int take_listings(struct object_list *l, struct err *err)
{
	struct domain *d = l->d;
	struct store_page *page = &l->reqs[WHOLE]->answer.page;

	d->listing_code = store_failure(answer_of(l, WHOLE), err);
	if (d->listing_code && !is_listing_optional(d->listing_code))
		return err_wrap(err, d->listing_code, "listing %s", l->reqs[WHOLE]->key);
	if (d->listing_code)
		return number_prefixes(l, err);
	d->listed_whole = page->n <= DOMAIN_LISTING;
	d->listed_prefix =
		arena_strndup(d->arena, l->reqs[WHOLE]->key, strlen(l->reqs[WHOLE]->key));
	if (!d->listed_prefix)
		return err_set(err, -ENOMEM, "out of memory");
	if (d->listed_whole)
		d->listing_digest = domain_listing_digest(d, page);
	int rc = number_whole(d, page, err);
	if (d->listed_whole) {
		d->listing = *page;
		*page = (struct store_page){0};
	}
	return rc;
}

/* ---- an earlier snapshot ---- */

/* 0 same, 1 changed, 2 the listing does not tell, or a negative errno. */
static int compare_listing(struct object_list *l, struct err *err)
{
	const struct store_page *page = &answer_of(l, WHOLE)->page;
	const struct domain *old = l->previous;

	if (store_failure(answer_of(l, WHOLE), NULL))
		return old->listed_whole ? 1 : 2;
	if ((page->n <= DOMAIN_LISTING) != old->listed_whole)
		return 1;
	if (old->listed_whole)
		return domain_listing_digest(old, page) != old->listing_digest;
	return domain_differs_from(l->previous, page, err);
}

/* Asks as little as tells whether the earlier snapshot is still the domain. */
static int look_again(struct object_list *l, bool *same, struct err *err)
{
	struct domain *old = l->previous;
	const bool whole = old->listed_whole || may_be_listed_now(old);
	const bool few = !whole && tree_count(old->tree) < FEW_OBJECTS;
	const uint32_t limit = whole ? DOMAIN_LISTING : KEYS_PER_OBJECT * tree_count(old->tree);
	int changed = 0;

	if (few) {
		changed = domain_docs_changed(old, l->reqs[DOCUMENT], err);
	} else {
		changed = plan_whole(l, &old->doc.root, limit, err);
		if (!changed)
			store_run_all(l->d->store, l->reqs, l->n);
		if (!changed && is_same_document(l))
			changed = compare_listing(l, err);
		if (changed == 2)
			changed = domain_docs_changed(old, NULL, err);
	}
	*same = changed == 0 && is_same_document(l);
	return changed < 0 ? changed : 0;
}

/* ---- all together ---- */

/* Document and listings of a domain of which at most the root group is known: what was listed for
 * another one, or not all, is listed now. */
static int complete(struct object_list *l, const struct schema_id *guess, struct err *err)
{
	struct domain *d = l->d;
	int rc = take_document(l, err);

	if (rc)
		return rc;
	const bool right = guess && schema_id_equal(guess, &d->doc.root);
	if (right &&
	    (l->n > PREFIXES || (l->n == PREFIXES && !store_failure(answer_of(l, WHOLE), NULL))))
		return 0;
	rc = plan_all(l, &d->doc.root, err);
	if (!rc)
		store_run_all(d->store, l->reqs + WHOLE, l->n - WHOLE);
	return rc;
}

static int read_list(struct object_list *l, const struct schema_id *guess, bool *same,
		     struct err *err)
{
	int rc = plan_document(l, err);

	if (!rc && l->previous) {
		guess = &l->previous->doc.root;
		rc = look_again(l, same, err);
	} else if (!rc) {
		if (guess)
			rc = plan_all(l, guess, err);
		if (!rc)
			store_run_all(l->d->store, l->reqs, l->n);
	}
	if (rc || *same)
		return rc;
	rc = complete(l, guess, err);
	return rc ? rc : take_listings(l, err);
}

int domain_list_objects(struct domain *d, const struct domain_hint *hint, bool *same,
			struct err *err)
{
	struct object_list l = {.d = d, .n = DOCUMENT + 1};

	*same = false;
	l.reqs = store_requests_new(d->store, WHOLE + LIST_JOBS);
	if (!l.reqs)
		return err_set(err, -ENOMEM, "out of memory for a few requests");
	/* Of another root's objects nothing can be known. */
	if (hint->previous &&
	    (!hint->root || schema_id_equal(hint->root, &hint->previous->doc.root)))
		l.previous = hint->previous;
	int rc = read_list(&l, hint->root, same, err);
	store_requests_free(l.reqs, WHOLE + LIST_JOBS);
	return rc;
}
