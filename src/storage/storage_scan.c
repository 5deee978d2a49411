/* SPDX-License-Identifier: Apache-2.0 */
/* See storage_scan.h. */
#include <storage/storage_scan.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/mem.h>
#include <journal/plan.h>

enum {
	WINDOW = 64,		 /* documents at the same time */
	DOCUMENT_MAX = 16 << 20, /* bytes, as in domain/documents.c */
	HASH = 16,
	RECORDS = 1 << 20, /* bytes of memory for a record of an import */
};

/* The key and the version of a document. */
struct seen {
	uint8_t hash[HASH];
};

struct storage_scan {
	struct storage_scan_options opt;
	uint64_t *storages; /* numbers, ascending */
	uint8_t *named;	    /* a bit for each of them */
	size_t nstorages;
	struct bytes others; /* texts: what is among the storages, but is none */
	struct seen *seen;   /* sorted after the first reading */
	size_t nseen, room;
	bool is_sorted;
	uint64_t documents;
	int64_t newest_ns;
	struct budget_charge charge;
};

static const struct document_place *place_of(const struct storage_scan *s)
{
	return s->opt.place;
}

/* ---- storages ---- */

static int compare_numbers(const void *x, const void *y)
{
	const uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
	return a < b ? -1 : a > b;
}

static uint64_t *find(const struct storage_scan *s, const struct storage *storage)
{
	const uint64_t number = storage->schema->storage->number(storage->prefix);
	return s->nstorages ? bsearch(&number, s->storages, s->nstorages, sizeof(number),
				      compare_numbers)
			    : NULL;
}

static void give_name(struct storage_scan *s, const struct storage *storage)
{
	const uint64_t *found = find(s, storage);
	const size_t i = found ? (size_t)(found - s->storages) : 0;
	if (found)
		s->named[i / 8] |= (uint8_t)(1 << i % 8);
}

static bool is_named(const struct storage_scan *s, size_t i)
{
	return s->named[i / 8] >> i % 8 & 1;
}

static int charge(struct storage_scan *s, struct err *err)
{
	return budget_set(&s->charge,
			  s->nstorages * sizeof(*s->storages) + s->room * sizeof(*s->seen) +
				  s->others.len,
			  err);
}

/* What has not the form of a storage may be a domain: the service permits such names. */
static int add_other(struct storage_scan *s, const struct store_item *item)
{
	if (!item->is_prefix && !place_of(s)->schema->is_document(item->key))
		return 0;
	return bytes_append(&s->others, item->key, strlen(item->key) + 1);
}

/* Takes the prefixes of a page. */
static int add_storages(struct storage_scan *s, const struct store_page *page, struct err *err)
{
	const struct schema_ops *schema = place_of(s)->schema;
	struct storage storage;
	uint64_t *grown = reallocarray(s->storages, s->nstorages + page->n + 1, sizeof(*grown));
	if (!grown)
		return err_no_memory(err);
	s->storages = grown;
	for (size_t i = 0; i < page->n; i++)
		if (page->items[i].is_prefix &&
		    schema_storage_of_prefix(schema, page->items[i].key, &storage))
			s->storages[s->nstorages++] = schema->storage->number(storage.prefix);
		else if (add_other(s, &page->items[i]))
			return err_no_memory(err);
	return charge(s, err);
}

/* ---- listings ---- */

typedef int page_fn(void *ctx, const struct store_page *page, struct err *err);

struct listing {
	const char *prefix, *after, *until; /* the last two may be NULL */
	bool delimit;
	page_fn *take;
	void *ctx;
};

/* Lists page after page. */
static int list(const struct document_place *p, const struct listing *l, struct err *err)
{
	auto_request struct store_request *req = store_request_new(p->store, STORE_LIST);
	auto_free char *after = l->after ? strdup(l->after) : NULL;
	int rc = req && (after || !l->after) ? 0 : err_no_memory(err);
	for (bool more = true; !rc && more;) {
		const struct store_page *page = &req->answer.page;
		store_request_reset(req, STORE_LIST);
		store_request_key(req, l->prefix);
		if (after)
			store_request_start_after(req, after);
		req->list.until = l->until;
		req->list.delimit = l->delimit;
		req->list.complete = true;
		req->cancelled = cancelled_by(p->cancelled);
		store_run(p->store, req);
		rc = store_failure(&req->answer, err);
		if (!rc && page->left_out)
			rc = err_set(err, -EIO, "a listing leaves out the key %s", page->left_out);
		if (!rc)
			rc = l->take(l->ctx, page, err);
		more = !rc && page->more;
		free(after);
		after = more ? strdup(page->next) : NULL;
		if (more && !after)
			rc = err_no_memory(err);
	}
	return rc;
}

static int take_storages(void *ctx, const struct store_page *page, struct err *err)
{
	return add_storages(ctx, page, err);
}

int storage_scan_new(const struct storage_scan_options *opt, struct storage_scan **out,
		     struct err *err)
{
	struct storage_scan *s = calloc(1, sizeof(*s));
	*out = NULL;
	if (!s)
		return err_no_memory(err);
	s->opt = *opt;
	s->charge = (struct budget_charge){.budget = opt->place->env->budget, .use = BUDGET_TREES};
	const struct listing storages = {.prefix = opt->place->schema->storage->all,
					 .delimit = true,
					 .take = take_storages,
					 .ctx = s};
	int rc = list(opt->place, &storages, err);
	s->named = rc ? NULL : calloc(s->nstorages / 8 + 1, 1);
	if (!rc && !s->named)
		rc = err_no_memory(err);
	if (rc) {
		storage_scan_free(s);
		return rc;
	}
	/* Their order is that of the numbers, unless the service orders keys in another way. */
	if (s->nstorages)
		qsort(s->storages, s->nstorages, sizeof(*s->storages), compare_numbers);
	*out = s;
	return 0;
}

void storage_scan_free(struct storage_scan *s)
{
	if (!s)
		return;
	budget_set(&s->charge, 0, NULL);
	free(s->storages);
	free(s->named);
	free(s->seen);
	bytes_release(&s->others);
	free(s);
}

/* ---- documents ---- */

static int compare_seen(const void *x, const void *y)
{
	return memcmp(x, y, HASH);
}

/* Returns false if the listing does not show a version. */
static bool hash_item(const struct store_item *item, const char *etag, struct seen *out)
{
	uint8_t digest[PLAN_DIGEST];
	char text[STORE_KEY_MAX + STORE_ETAG_MAX + 2];
	const int n = snprintf(text, sizeof(text), "%s%c%s", item->key, '\0', etag);
	if (!etag[0] || n < 0 || (size_t)n >= sizeof(text))
		return false;
	plan_digest(text, (size_t)n, digest);
	memcpy(out->hash, digest, HASH);
	return true;
}

static bool has_seen(const struct storage_scan *s, const struct store_item *item)
{
	struct seen hash;
	return s->is_sorted && s->nseen && hash_item(item, item->meta.etag, &hash) &&
	       bsearch(&hash, s->seen, s->nseen, sizeof(hash), compare_seen);
}

/* Remembers a document that was read in the version that the listing has shown. */
static int remember(struct storage_scan *s, const struct store_item *item, const char *etag,
		    struct err *err)
{
	struct seen hash;
	if (s->is_sorted || strcmp(etag, item->meta.etag) != 0 || !hash_item(item, etag, &hash))
		return 0;
	if (s->nseen == s->room) {
		const size_t room = s->room + s->room / 4 + 1024;
		struct seen *grown = reallocarray(s->seen, room, sizeof(*grown));
		if (!grown)
			return err_no_memory(err);
		s->seen = grown;
		s->room = room;
		const int rc = charge(s, err);
		if (rc)
			return rc;
	}
	s->seen[s->nseen++] = hash;
	return 0;
}

/* Parses a document. Fails with -EIO if it is not the document of the path that the key shows. */
static int parse(const struct storage_scan *s, const char *key, const struct store_answer *answer,
		 struct schema_document **out, struct err *err)
{
	const char *slash = strrchr(key, '/');
	auto_free char *path = strndup(key, slash ? (size_t)(slash - key) : 0);
	char expected[SCHEMA_KEY_MAX + 1];
	if (!path)
		return err_no_memory(err);
	int rc = document_key(place_of(s), path, expected, sizeof(expected), err);
	if (!rc && strcmp(expected, key) != 0)
		rc = err_set(err, -EIO, "it has no path");
	if (!rc)
		rc = document_parse(place_of(s), path, answer->body.data, answer->body.len, out,
				    err);
	return rc ? err_wrap(err, rc, "%s", key) : 0;
}

/* A document may name a root group, and then it names the storage; those of schemas without storage
 * name none. */
static int take_name(struct storage_scan *s, const char *key, const struct schema_document *d,
		     struct err *err)
{
	struct storage storage;
	if (!d || !d->info.root || !d->schema->storage)
		return 0;
	if (!schema_storage_of(d, &storage))
		return err_set(err, -EIO, "%s: the root group \"%.80s\" is in no storage", key,
			       d->info.root);
	give_name(s, &storage);
	return 0;
}

struct reading {
	struct storage_scan *s;
	const struct store_item **items;
	size_t n;
	struct err *err;
};

static bool request_document(void *arg, size_t i, struct store_request *req)
{
	const struct reading *r = arg;
	store_request_key(req, r->items[i]->key);
	req->max = DOCUMENT_MAX;
	req->cancelled = cancelled_by(place_of(r->s)->cancelled);
	return true;
}

/* A document that is absent by now names nothing. */
static int take_document(void *arg, size_t i, struct store_request *req)
{
	const struct reading *r = arg;
	const struct store_item *item = r->items[i];
	struct schema_document *d = NULL;
	int rc = store_failure(&req->answer, r->err);
	if (rc || store_absence(&req->answer))
		return rc;
	rc = parse(r->s, item->key, &req->answer, &d, r->err);
	if (!rc)
		rc = take_name(r->s, item->key, d, r->err);
	schema_document_unref(d);
	return rc ? rc : remember(r->s, item, req->answer.meta.etag, r->err);
}

static int take_names(void *ctx, const struct store_page *page, struct err *err)
{
	struct storage_scan *s = ctx;
	auto_free const struct store_item **items = calloc(page->n + 1, sizeof(*items));
	struct reading r = {.s = s, .items = items, .err = err};
	if (!items)
		return err_no_memory(err);
	for (size_t i = 0; i < page->n; i++) {
		const struct store_item *item = &page->items[i];
		if (item->meta.mtime_ns > s->newest_ns)
			s->newest_ns = item->meta.mtime_ns;
		if (!place_of(s)->schema->is_document(item->key))
			continue;
		s->documents++;
		if (!has_seen(s, item))
			items[r.n++] = item;
	}
	const struct store_sequence gets = {.n = r.n,
					    .window = WINDOW,
					    .request = request_document,
					    .take = take_document,
					    .arg = &r};
	int rc = store_run_sequence(place_of(s)->store, &gets);
	if (rc == -ENOMEM)
		return err_no_memory(err);
	if (!rc && s->opt.page)
		rc = s->opt.page(s->opt.ctx, s->documents, err);
	return rc;
}

/* The keys of storages are not listed: those before them, those after them, and what is
 * among them. */
static int read_documents(struct storage_scan *s, struct err *err)
{
	const char *all = place_of(s)->schema->storage->all;
	const size_t n = strlen(all);
	char after[64];
	struct listing names = {.prefix = "", .until = all, .take = take_names, .ctx = s};
	snprintf(after, sizeof(after), "%s", all);
	after[n - 1]++;
	int rc = list(place_of(s), &names, err);
	names.until = NULL;
	names.after = after;
	if (!rc)
		rc = list(place_of(s), &names, err);
	names.after = NULL;
	for (size_t at = 0; !rc && at < s->others.len; at += strlen(names.prefix) + 1) {
		names.prefix = (const char *)s->others.data + at;
		rc = list(place_of(s), &names, err);
	}
	return rc;
}

/* ---- records of imports ---- */

static int take_record(struct storage_scan *s, const char *key, struct err *err)
{
	const struct document_place *p = place_of(s);
	auto_request struct store_request *req = NULL;
	struct schema_import import;
	int rc = document_read(p, key, &req, err);
	if (rc || !req)
		return rc;
	struct arena *arena = arena_new(RECORDS);
	rc = arena ? p->schema->writer->import_parse(req->answer.body.data, req->answer.body.len,
						     arena, &import, err)
		   : err_no_memory(err);
	if (rc) {
		err_wrap(err, rc, "%s", key);
	} else {
		import.storage.schema = p->schema;
		give_name(s, &import.storage);
	}
	arena_free(arena);
	return rc;
}

static int take_records(void *ctx, const struct store_page *page, struct err *err)
{
	int rc = 0;
	for (size_t i = 0; !rc && i < page->n; i++)
		rc = take_record(ctx, page->items[i].key, err);
	return rc;
}

int storage_scan_read(struct storage_scan *s, struct err *err)
{
	const struct listing records = {.prefix = place_of(s)->schema->writer->import_prefix,
					.take = take_records,
					.ctx = s};
	size_t kept = 0;
	s->documents = 0;
	int rc = list(place_of(s), &records, err);
	if (!rc)
		rc = read_documents(s, err);
	if (rc)
		return rc;
	if (!s->is_sorted && s->nseen)
		qsort(s->seen, s->nseen, sizeof(*s->seen), compare_seen);
	s->is_sorted = true;
	for (size_t i = 0; i < s->nstorages; i++)
		if (!is_named(s, i))
			s->storages[kept++] = s->storages[i];
	s->nstorages = kept;
	memset(s->named, 0, kept / 8 + 1);
	return 0;
}

size_t storage_scan_count(const struct storage_scan *s)
{
	return s->nstorages;
}

struct storage storage_scan_left(const struct storage_scan *s, size_t i)
{
	return schema_storage_of_number(place_of(s)->schema, s->storages[i]);
}

bool storage_scan_is_left(const struct storage_scan *s, const struct storage *storage)
{
	return find(s, storage);
}

int64_t storage_scan_newest(const struct storage_scan *s)
{
	return s->newest_ns;
}

/* ---- the size of a storage ---- */

struct measuring {
	const char *marks; /* with which the keys of marks begin */
	struct storage_size *out;
	uint64_t others;
};

static int take_keys(void *ctx, const struct store_page *page, struct err *err)
{
	struct measuring *m = ctx;
	struct storage_size *out = m->out;
	(void)err;
	for (size_t i = 0; i < page->n; i++) {
		const struct store_meta *meta = &page->items[i].meta;
		out->objects++;
		out->bytes += meta->size;
		if (strncmp(page->items[i].key, m->marks, strlen(m->marks)) == 0) {
			out->mark_ns =
				meta->mtime_ns > out->mark_ns ? meta->mtime_ns : out->mark_ns;
			continue;
		}
		m->others++;
		out->is_timeless |= meta->mtime_ns <= 0;
		if (meta->mtime_ns > out->newest_ns)
			out->newest_ns = meta->mtime_ns;
	}
	return 0;
}

int storage_measure(const struct document_place *p, const struct storage *storage,
		    struct storage_size *out, struct err *err)
{
	char marks[SCHEMA_KEY_MAX + 1];
	struct measuring m = {.marks = marks, .out = out};
	const struct listing keys = {.prefix = storage->prefix, .take = take_keys, .ctx = &m};
	*out = (struct storage_size){0};
	snprintf(marks, sizeof(marks), "%s%s", storage->prefix, p->schema->storage->deletion);
	const int rc = list(p, &keys, err);
	out->is_empty = out->objects > 0 && m.others == 0;
	return rc;
}
