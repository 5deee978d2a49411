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
 * which documents are still those of the snapshot (documents.c).
 *
 * Whether a domain counts as listed whole follows from the number of its keys alone, not from what
 * was asked: the same domain makes the same image. An exception is a domain with an entry that
 * cannot be looked at: it is not listed whole, and each opening tries again.
 */
#include <model/model.h>

#include <errno.h>
#include <string.h>

#include "model_internal.h"

enum {
	LIST_JOBS = 8,
	FEW_OBJECTS = 256,   /* fewer: heads for all of them take no longer than a few pages */
	KEYS_PER_OBJECT = 4, /* of a listing that is cheaper than a head for each object */
};
_Static_assert(FEW_OBJECTS *KEYS_PER_OBJECT >= MODEL_LISTING, "a page is a page");

/* What was asked for, and came. */
struct names {
	struct model *m;
	struct model *previous; /* or NULL */
	char key[SCHEMA_KEY_MAX + 1];
	struct store_get_result document;
	/* jobs[0] is the whole listing, all or nothing; the others name the objects. */
	char prefixes[LIST_JOBS][SCHEMA_KEY_MAX + 1];
	struct store_list_job jobs[LIST_JOBS];
	size_t njobs;
};

static void release(struct names *n)
{
	bytes_release(&n->document.body);
	for (size_t j = 0; j < n->njobs; j++)
		store_page_release(&n->jobs[j].page);
	n->njobs = 0;
}

/* ---- what is asked for ---- */

static int plan_whole(struct names *n, const struct schema_id *root, uint32_t limit,
		      struct err *err)
{
	const struct schema_ops *schema = n->m->schema;

	if (schema->storage_prefix(root, n->prefixes[0], sizeof(n->prefixes[0])) < 0)
		return err_set(err, -EIO, "the root group's id makes no key");
	n->jobs[0] = (struct store_list_job){.prefix = n->prefixes[0], .limit = limit};
	n->njobs = 1;
	return 0;
}

static void plan_objects(struct names *n, const struct schema_id *root)
{
	const struct schema_ops *schema = n->m->schema;
	size_t at = 1;

	for (; at < LIST_JOBS && schema->object_prefix(root, (unsigned int)at - 1, n->prefixes[at],
						       sizeof(n->prefixes[at])) > 0;
	     at++)
		n->jobs[at] = (struct store_list_job){.prefix = n->prefixes[at],
						      .how = STORE_DELIMIT | STORE_COMPLETE,
						      .limit = MODEL_MAX_OBJECTS};
	n->njobs = at;
}

static int plan_all(struct names *n, const struct schema_id *root, struct err *err)
{
	int rc = plan_whole(n, root, MODEL_LISTING, err);

	if (!rc)
		plan_objects(n, root);
	return rc;
}

static struct store_get document_request(const struct names *n)
{
	const struct model *old = n->previous;

	return (struct store_get){
		.op = STORE_GET,
		.key = n->key,
		.length = UINT64_MAX,
		.max = SCHEMA_JSON_MAX,
		.cond.if_none_match =
			old && old->document.data && old->domain_etag[0] ? old->domain_etag : NULL,
	};
}

/* The document, and what was planned. */
static int ask(struct names *n, struct err *err)
{
	const struct store_get req = document_request(n);

	if (store_round(n->m->store, &req, 1, &n->document, n->jobs, n->njobs))
		return err_set(err, -ENOMEM, "no memory for a few requests");
	return 0;
}

/* ---- the document ---- */

static bool is_same_document(const struct names *n)
{
	return n->document.code == -EALREADY ||
	       (n->document.code == 0 && n->previous &&
		model_same_version(n->document.meta.etag, n->previous->domain_etag));
}

static int take_document(struct names *n, struct err *err)
{
	struct model *m = n->m;
	const struct store_get_result *res = &n->document;
	struct model_text text = {.data = res->body.data, .len = res->body.len};
	const char *etag = res->meta.etag;
	int rc = res->code;

	if (rc == -EALREADY && n->previous) {
		text = n->previous->document;
		etag = n->previous->domain_etag;
		rc = 0;
	} else if (rc) {
		err_copy(err, &res->err);
	}
	if (!rc)
		rc = m->schema->domain_parse(m->arena, text.data, text.len, &m->domain, err);
	if (!rc && m->domain.info.is_folder)
		rc = err_set(err, -EISDIR, "is a folder: it has no root group");
	if (rc)
		return err_wrap(err, rc, "%s", n->key);
	memcpy(m->domain_etag, etag, sizeof(m->domain_etag));
	m->modified_ns = m->domain.info.modified_ns;
	model_keep(m, &m->document, text.data, text.len);
	return 0;
}

/* ---- numbers ---- */

/* Gives an id a number; ids that are known already keep theirs. etag: "" when it is not known. */
static int add_id(struct model *m, const struct schema_id *id, const char *etag, struct err *err)
{
	uint32_t number = model_number(m, id);

	if (number == OBJECT_NONE) {
		if (m->numbers == m->capacity)
			return err_set(err, -E2BIG, "more than %u objects", m->capacity);
		struct model_entry *entry = &m->entries[m->numbers];

		number = m->numbers++;
		entry->id = *id;
		entry->number = number;
		entry->hash_key[0] = (uint8_t)id->kind;
		memcpy(entry->hash_key + 1, id->b, sizeof(id->b));
		HASH_ADD(hh, m->by_id, hash_key, sizeof(entry->hash_key), entry);
	}
	if (etag[0])
		memcpy(m->entries[number].etag, etag, STORE_ETAG_MAX);
	return 0;
}

/* Tables for at most n objects; entries must not move once they are in the hash. */
static int make_tables(struct model *m, size_t n, struct err *err)
{
	if (n > MODEL_MAX_OBJECTS)
		return err_set(err, -E2BIG, "more than %u objects", MODEL_MAX_OBJECTS);
	m->capacity = (uint32_t)n;
	m->entries = calloc(n, sizeof(*m->entries));
	m->objects = calloc(n, sizeof(*m->objects));
	m->chunks = calloc(n, sizeof(*m->chunks));
	if (!m->entries || !m->objects || !m->chunks)
		return err_set(err, -ENOMEM, "no memory for %zu objects", n);
	return 0;
}

static bool is_object(const struct model *m, const char *key, struct schema_id *id)
{
	struct schema_key parsed;

	m->schema->key_classify(key, &parsed);
	*id = parsed.id;
	return parsed.cls == SCHEMA_KEY_OBJECT;
}

static int number_whole(struct model *m, const struct store_page *page, struct err *err)
{
	struct schema_id id;
	size_t total = 1;

	for (size_t i = 0; i < page->n; i++)
		total += is_object(m, page->items[i].key, &id);
	int rc = make_tables(m, total, err);
	if (!rc)
		rc = add_id(m, &m->domain.root, "", err);
	for (size_t i = 0; !rc && i < page->n; i++)
		if (is_object(m, page->items[i].key, &id))
			rc = add_id(m, &id, page->items[i].meta.etag, err);
	return rc;
}

static int number_prefixes(struct names *n, struct err *err)
{
	struct model *m = n->m;
	size_t total = 1;

	for (size_t j = 1; j < n->njobs; j++) {
		if (n->jobs[j].code) {
			err_copy(err, &n->jobs[j].err);
			return err_wrap(err, n->jobs[j].code, "listing %s", n->jobs[j].prefix);
		}
		total += n->jobs[j].page.n;
	}
	int rc = make_tables(m, total, err);
	if (!rc)
		rc = add_id(m, &m->domain.root, "", err);
	for (size_t j = 1; j < n->njobs; j++) {
		for (size_t i = 0; !rc && i < n->jobs[j].page.n; i++) {
			const struct store_item *item = &n->jobs[j].page.items[i];
			struct schema_id id;

			if (item->is_prefix && m->schema->object_of_prefix(item->key, &id))
				rc = add_id(m, &id, "", err);
		}
	}
	return rc;
}

/* Too many keys; or something among them, which need not be ours, cannot be looked at: the objects
 * can still be named, and the chunks asked for one by one. */
static bool is_listing_optional(int code)
{
	return code == -E2BIG || code == -ELOOP || code == -EACCES || code == -ENOLINK;
}

/* What could not be listed for a reason that may pass. The next opening lists again: whether a
 * domain counts as listed whole must not depend on how an earlier listing failed. */
static bool may_be_listed_now(const struct model *old)
{
	return old->listing_code && old->listing_code != -E2BIG;
}

static int take_listings(struct names *n, struct err *err)
{
	struct model *m = n->m;
	struct store_list_job *whole = &n->jobs[0];

	if (whole->code && !is_listing_optional(whole->code)) {
		err_copy(err, &whole->err);
		return err_wrap(err, whole->code, "listing %s", whole->prefix);
	}
	m->listing_code = whole->code;
	if (whole->code)
		return number_prefixes(n, err);
	m->listed_whole = whole->page.n <= MODEL_LISTING;
	if (m->listed_whole)
		m->listing_digest = model_listing_digest(m, &whole->page);
	int rc = number_whole(m, &whole->page, err);
	if (m->listed_whole) {
		m->listing = whole->page;
		whole->page = (struct store_page){0};
	}
	return rc;
}

/* ---- an earlier snapshot ---- */

/* 0 same, 1 changed, 2 the listing does not tell, or a negative errno. */
static int compare_listing(struct names *n, struct err *err)
{
	const struct store_list_job *whole = &n->jobs[0];
	const struct model *old = n->previous;

	if (whole->code)
		return old->listed_whole ? 1 : 2;
	if ((whole->page.n <= MODEL_LISTING) != old->listed_whole)
		return 1;
	if (old->listed_whole)
		return model_listing_digest(old, &whole->page) != old->listing_digest;
	return model_differs_from(n->previous, &whole->page, err);
}

/* Asks as little as tells whether the earlier snapshot is still the domain. */
static int look_again(struct names *n, bool *same, struct err *err)
{
	struct model *old = n->previous;
	const bool whole = old->listed_whole || may_be_listed_now(old);
	const bool few = !whole && old->count < FEW_OBJECTS;
	const uint32_t limit = whole ? MODEL_LISTING : KEYS_PER_OBJECT * old->count;
	int changed = 0;

	if (few) {
		const struct store_get req = document_request(n);

		changed = model_documents_changed(old, &req, &n->document, err);
	} else {
		changed = plan_whole(n, &old->domain.root, limit, err);
		if (!changed)
			changed = ask(n, err);
		if (!changed && is_same_document(n))
			changed = compare_listing(n, err);
		if (changed == 2)
			changed = model_documents_changed(old, NULL, NULL, err);
	}
	*same = changed == 0 && is_same_document(n);
	return changed < 0 ? changed : 0;
}

/* ---- all together ---- */

/* Document and listings of a domain of which at most the root group is known: what was listed for
 * another one, or not all, is listed now. */
static int complete(struct names *n, const struct schema_id *guess, struct err *err)
{
	struct model *m = n->m;
	int rc = take_document(n, err);

	if (rc)
		return rc;
	const bool right = guess && schema_id_equal(guess, &m->domain.root);
	if (right && (n->njobs > 1 || (n->njobs == 1 && n->jobs[0].code == 0)))
		return 0;
	release(n);
	rc = plan_all(n, &m->domain.root, err);
	if (!rc && store_list_many(m->store, n->jobs, n->njobs))
		rc = err_set(err, -ENOMEM, "no memory for a few requests");
	return rc;
}

static int read_names(struct names *n, const struct schema_id *guess, bool *same, struct err *err)
{
	int rc = 0;

	if (n->previous) {
		guess = &n->previous->domain.root;
		rc = look_again(n, same, err);
	} else {
		if (guess)
			rc = plan_all(n, guess, err);
		if (!rc)
			rc = ask(n, err);
	}
	if (rc || *same)
		return rc;
	rc = complete(n, guess, err);
	return rc ? rc : take_listings(n, err);
}

int model_read_names(struct model *m, const struct model_hint *hint, bool *same, struct err *err)
{
	struct names *n = calloc(1, sizeof(*n));

	*same = false;
	if (!n)
		return err_set(err, -ENOMEM, "no memory");
	n->m = m;
	/* Of another root's objects nothing can be known. */
	if (hint->previous &&
	    (!hint->root || schema_id_equal(hint->root, &hint->previous->domain.root)))
		n->previous = hint->previous;
	int rc = 0;
	if (m->schema->domain_key(m->path, n->key, sizeof(n->key)) < 0)
		rc = err_set(err, -ENAMETOOLONG, "the path is too long for a key");
	if (!rc)
		rc = read_names(n, hint->root, same, err);
	release(n);
	free(n);
	return rc;
}
