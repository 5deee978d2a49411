/* SPDX-License-Identifier: Apache-2.0 */
/* See model_storage.h. */
#include "model_storage.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model_names.h"
#include "store_calls.h"

enum {
	STORAGES_MAX = 256,
	PREFIX_LEN = 20, /* "db/", two numbers, a dash */
	ID_LEN = 18,	 /* of an object in its storage: three numbers, two dashes */
};

/* ---- names ---- */

struct storages {
	char prefix[STORAGES_MAX][PREFIX_LEN + 1];
	bool named[STORAGES_MAX];
	unsigned int n;
};

static bool *storage_of(struct storages *s, const char *prefix, bool add)
{
	for (unsigned int i = 0; i < s->n; i++)
		if (strncmp(s->prefix[i], prefix, PREFIX_LEN) == 0)
			return &s->named[i];
	if (!add || s->n == STORAGES_MAX)
		return NULL;
	memcpy(s->prefix[s->n], prefix, PREFIX_LEN);
	return &s->named[s->n++];
}

/* Notes the storage to which a document leads. */
static void note_document(struct history *h, struct storages *s, const char *key)
{
	struct call_result res;
	char prefix[PREFIX_LEN + 1] = "db/";
	if (call_get(h->world.bucket, key, 0, STORE_TO_END, 0, NULL, &res, NULL))
		abort();
	const char *root = memmem(res.body.data, res.body.len, "\"g-", 3);
	if (root && (size_t)(root - (const char *)res.body.data) + 3 + 17 <= res.body.len) {
		memcpy(prefix + 3, root + 3, 17);
		bool *named = storage_of(s, prefix, false);
		if (named)
			*named = true;
	}
	bytes_release(&res.body);
}

static bool ends_with(const char *key, const char *end)
{
	const size_t n = strlen(key), k = strlen(end);
	return n > k && strcmp(key + n - k, end) == 0;
}

static bool is_import_record(const char *key)
{
	return strncmp(key, "db/.import-", strlen("db/.import-")) == 0;
}

/* Counts the storages without a name. */
static void count_storages(struct history *h, const struct store_page *page, struct storages *s,
			   struct model_result *r)
{
	for (size_t i = 0; i < page->n; i++)
		if (strncmp(page->items[i].key, "db/", 3) == 0 &&
		    !is_import_record(page->items[i].key))
			storage_of(s, page->items[i].key, true);
	for (size_t i = 0; i < page->n; i++)
		if (ends_with(page->items[i].key, "/.domain.json"))
			note_document(h, s, page->items[i].key);
	for (unsigned int i = 0; i < s->n; i++) {
		r->unnamed += !s->named[i];
		if (!s->named[i])
			scheduler_note(&h->world.scheduler, "storage without a name: %s",
				       s->prefix[i]);
	}
}

/* ---- links ---- */

/* The documents of all groups. */
static struct bytes read_groups(struct history *h, const struct store_page *page)
{
	struct bytes all = {0};
	for (size_t i = 0; i < page->n; i++) {
		struct call_result res;
		if (!ends_with(page->items[i].key, "/.group.json"))
			continue;
		if (call_get(h->world.bucket, page->items[i].key, 0, STORE_TO_END, 0, NULL, &res,
			     NULL) ||
		    bytes_append(&all, res.body.data, res.body.len))
			abort();
		bytes_release(&res.body);
	}
	return all;
}

static unsigned int count_text(const struct bytes *b, const char *text)
{
	const size_t k = strlen(text);
	const uint8_t *at = b->data, *end = at + b->len;
	unsigned int n = 0;
	while (at && (at = memmem(at, (size_t)(end - at), text, k))) {
		n++;
		at += k;
	}
	return n;
}

/* An object of HDF5 that no link leads to. */
static bool is_unlinked(const char *key, struct storages *s, const struct bytes *groups)
{
	char link[64];
	const bool *named = storage_of(s, key, false);
	const char *kind = key + PREFIX_LEN + 1;
	/* db/P/d/ID/…: the object d-P-ID */
	if (!named || !*named || strlen(key) < PREFIX_LEN + 3 + ID_LEN || kind[1] != '/')
		return false;
	snprintf(link, sizeof(link), "\"%c-%.17s-%.*s\"", *kind, key + 3, ID_LEN, kind + 2);
	/* The document of a group has its own id, too. */
	return count_text(groups, link) < (*kind == 'g' ? 2 : 1);
}

static void check_links(struct history *h, const struct store_page *page, struct storages *s,
			struct model_result *r)
{
	struct bytes groups = read_groups(h, page);
	for (size_t i = 0; i < page->n; i++)
		if (strncmp(page->items[i].key, "db/", 3) == 0 &&
		    is_unlinked(page->items[i].key, s, &groups))
			model_fault(r, "no link leads to %s", page->items[i].key);
	bytes_release(&groups);
}

/* ---- both ---- */

/* Whether somebody has changed the new name of a rename that was interrupted, so that the next
 * mount does not know what has become of the file that it has replaced (DETAILS.md, "Crashes"). */
static bool is_changed_later(const struct history *h, const struct op *op)
{
	for (unsigned int i = 0; i < h->nops; i++) {
		const struct op *o = &h->ops[i];
		const bool same = o->name == op->to || (o->kind == OP_RENAME && o->to == op->to);
		if (o != op && same && o->stored > op->begin && o->kind <= OP_RENAME)
			return true;
	}
	return false;
}

/* Whether an import may have left something: it was not tidied up, or a request arrives later. If
 * it has replaced a file, was killed, and another program has removed its own file since, the
 * storage of the replaced one stays (DETAILS.md, "Imports"). */
static bool is_untidy(const struct op *op)
{
	const bool is_late = op->hit && (op->fault == FAULT_LATE || op->fault == FAULT_KILL_LATE);
	return op->kind == OP_IMPORT &&
	       (!op->is_tidy || is_late || (op->replaces && op->status == OP_MAYBE));
}

/* Storage may stay if a machine has lost its power, because the notes about it are not durable; if
 * a request may have arrived later, or the journal could not note something; if a draft was
 * dropped, or waits in the journal to be committed once more (JOURNAL.md, "Conflicts"); and after a
 * removal of a name that had no answer, because another program may have moved the file
 * (DETAILS.md). It does not stay because an engine was killed, or a request has failed. */
static bool may_leave_storage(const struct history *h)
{
	for (unsigned int i = 0; i < h->engines; i++)
		if (h->boxes[i].lost_power)
			return true;
	if (h->may_leave || h->folders->may_leave || h->acls->may_leave || h->mixed->may_leave ||
	    h->links->may_leave || h->shared->may_leave)
		return true;
	for (unsigned int i = 0; i < h->nops; i++) {
		const struct op *op = &h->ops[i];
		const bool writes = op->kind == OP_CREATE || op->kind == OP_CHANGE;
		const bool is_late = op->hit && op->kind != OP_IMPORT &&
				     (!op->fault || op->fault == FAULT_SLOW ||
				      op->fault == FAULT_LATE || op->fault == FAULT_KILL_LATE);
		/* A library that has opened the file has marked it, also if it changes nothing. */
		const bool is_marked = op->program && op->rc == -ENODATA;
		const bool is_kept =
			writes && (op->status == OP_REFUSED || is_marked) &&
			(op->kind == OP_CHANGE || op->was_repeated || model_was_vacated(h, op));
		if (is_late || is_untidy(op) || op->kind == OP_DROP || is_kept ||
		    ((writes || op->kind == OP_REMOVE) && op->status == OP_MAYBE) ||
		    (op->kind == OP_RENAME && op->status == OP_MAYBE && is_changed_later(h, op)))
			return true;
	}
	return false;
}

/* A domain that has replaced a plain object leaves nothing of it (DETAILS.md, "Changing names"). */
static void check_plain(const struct store_page *page, struct model_result *r)
{
	for (size_t i = 0; i + 1 < page->n; i++)
		for (unsigned int k = 0; k < NAMES_MAX; k++) {
			const size_t n = strlen(history_names[k]);
			if (strcmp(page->items[i].key, history_names[k]) == 0 &&
			    strncmp(page->items[i + 1].key, history_names[k], n) == 0 &&
			    strcmp(page->items[i + 1].key + n, "/.domain.json") == 0)
				model_fault(r, "%s is a plain object and a domain",
					    history_names[k]);
		}
}

bool model_has_untidy(const struct history *h)
{
	for (unsigned int i = 0; i < h->nops; i++)
		if (is_untidy(&h->ops[i]))
			return true;
	return h->may_leave || h->links->may_leave;
}

/* The record of an import is deleted when it ends, and by `--abort`. */
static void check_records(const struct store_page *page, struct model_result *r)
{
	for (size_t i = 0; i < page->n; i++)
		if (is_import_record(page->items[i].key))
			model_fault(r, "%s is the record of an import that has ended",
				    page->items[i].key);
}

/* Objects that a change has removed are deleted later, under the name that the file had then. If it
 * has another one by that time, they stay until the file is removed (DETAILS.md). */
static bool has_rename(const struct history *h)
{
	for (unsigned int i = 0; i < h->nops; i++)
		if (h->ops[i].kind == OP_RENAME && h->ops[i].status != OP_REFUSED)
			return true;
	return false;
}

void model_storage_check(struct history *h, const struct model_gaps *gaps, struct model_result *r)
{
	auto_page struct store_page page = {0};
	struct storages *s = calloc(1, sizeof(*s));
	if (call_list_all(h->world.bucket, "", false, UINT32_MAX, &page, NULL))
		abort();
	count_storages(h, &page, s, r);
	if (!gaps->plain_delete && !gaps->plain_put && !may_leave_storage(h)) {
		if (r->unnamed > h->left)
			model_fault(r, "%u storages have no name", r->unnamed - h->left);
		check_plain(&page, r);
		if (!has_rename(h))
			check_links(h, &page, s, r);
	}
	if (!model_has_untidy(h))
		check_records(&page, r);
	h->left = r->unnamed;
	h->may_leave = may_leave_storage(h) || has_rename(h);
	free(s);
}
