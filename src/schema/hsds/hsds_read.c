/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the documents of objects, and compares their versions with those of an earlier load. The
 * loaders of schema v1 and v2 share these functions.
 *
 * The texts of documents are kept for the next load, which reuses those that have not changed. The
 * ETag in a listing shows that, or else a conditional GET. If a document cannot be parsed, its
 * object is left out. If that is the root group, the load fails. Pure.
 */
#include "hsds_load.h"

#include <stdlib.h>

#include "parse_object.h"

/* ---- versions ---- */

void hsds_compare_all(struct hsds_loader *l)
{
	l->heads = hsds_compared(l->previous, &l->nheads);
}

bool hsds_request_head(const struct hsds_loader *l, uint32_t i, struct schema_request *req)
{
	req->op = SCHEMA_HEAD;
	/* The object was read before, so it has a key. */
	return hsds_object_key(&l->previous->entries[l->heads[i]].id, req->key, req->room) >= 0;
}

int hsds_answer_head(struct hsds_loader *l, uint32_t i, const struct schema_answer *answer,
		     struct err *err)
{
	const struct hsds_entry *entry = &l->previous->entries[l->heads[i]];
	if (answer->code) {
		char id[SCHEMA_ID_MAX];
		schema_id_format(&entry->id, id);
		err_copy(err, answer->err);
		return err_wrap(err, answer->code, "object %s", id);
	}
	if (answer->absent)
		l->changed = !entry->absent;
	else
		l->changed = entry->absent || !hsds_same_version(answer->etag, entry->etag);
	return l->changed ? SCHEMA_ENOUGH : 0;
}

/* ---- requests ---- */

/* Returns the entry of an object in the earlier load, or NULL if it has no text or no version. */
static const struct hsds_entry *earlier(const struct hsds_loader *l, uint32_t i)
{
	const struct hsds_space *old = l->previous;
	const uint32_t number = old ? hsds_number(old, &l->space->entries[i].id) : OBJECT_NONE;
	if (number == OBJECT_NONE || !old->entries[number].text || !old->entries[number].etag[0])
		return NULL;
	return &old->entries[number];
}

bool hsds_request_document(const struct hsds_loader *l, uint32_t i, struct schema_request *req)
{
	const struct hsds_entry *old = earlier(l, i), *entry = &l->space->entries[i];
	/* The listing shows that the earlier text is still valid. */
	if (old && hsds_same_version(old->etag, entry->etag))
		return false;
	req->listed = entry->etag[0] ? entry->etag : NULL;
	req->etag = old && !req->listed ? old->etag : NULL;
	return hsds_object_key(&entry->id, req->key, req->room) >= 0;
}

/* ---- answers ---- */

/* A document that was just read, or that is from the earlier load. */
struct document {
	const void *text;
	size_t len;
	const char *etag;
};

static void keep(struct hsds_loader *l, struct hsds_entry *entry, const struct document *doc)
{
	struct arena *texts = l->space->base.texts;
	entry->text = texts && doc->len ? arena_strndup(texts, doc->text, doc->len) : NULL;
	entry->text_len = entry->text ? doc->len : 0; /* or the next load reads it again */
}

static void note_skipped(void *ctx, const char *what, const struct err *why)
{
	const struct hsds_loader *l = ctx;
	tree_note(l->base.load.tree, TREE_DAMAGE, "%s: %s is left out: %s", l->key, what, why->msg);
}

/* Parses a document into *o. That must not be in the tree, because the parsers may add objects to
 * the tree, which moves the others. */
static int parse(struct hsds_loader *l, uint32_t i, const struct document *doc, struct object *o,
		 struct err *why)
{
	const struct schema_load *load = &l->base.load;
	const struct schema_numbers numbers = {.number = l->number, .ctx = l};
	const struct schema_id id = l->space->entries[i].id;
	int rc = schema_object_parse(tree_arena(load->tree), tree_attributes_arena(load->tree), &id,
				     &l->space->root, doc->text, doc->len, &numbers, &l->types,
				     note_skipped, l, o, why);
	if (!rc) {
		rc = load->accept(load->ctx, o, why);
		if (rc)
			object_release(o);
	}
	return rc;
}

static int copy_etag(struct hsds_loader *l, uint32_t i, const struct document *doc, struct err *err)
{
	struct hsds_entry *entry = &l->space->entries[i];
	if (strcmp(entry->etag, doc->etag) == 0)
		return 0;
	entry->etag = arena_strndup(tree_arena(l->base.load.tree), doc->etag, strlen(doc->etag));
	return entry->etag ? 0 : err_no_memory(err);
}

void hsds_mark_broken(struct hsds_loader *l, uint32_t i)
{
	struct tree *tree = l->base.load.tree;
	char id[SCHEMA_ID_MAX];
	schema_id_format(&l->space->entries[i].id, id);
	tree_break(tree, i, arena_strndup(tree_arena(tree), id, strlen(id)));
}

/* Leaves out an object. rc says why it cannot be shown, and `code` is the error of its request, or
 * 0. If it is the root group, the load fails. It also fails if the request failed for a reason that
 * may be temporary, because an object that is left out is not read again until the domain
 * changes. */
static int leave_broken(struct hsds_loader *l, uint32_t i, int rc, int code, const struct err *why,
			struct err *err)
{
	hsds_mark_broken(l, i);
	if (i == 0 || rc == -ENOMEM || (code && code != -EFBIG)) {
		err_copy(err, why);
		return err_wrap(err, rc, "%s%s", i == 0 ? "root group " : "", l->key);
	}
	tree_note(l->base.load.tree, TREE_DAMAGE, "%s: the object is left out: %s", l->key,
		  why->msg);
	return 0;
}

static void take_object(struct hsds_loader *l, uint32_t i, const struct document *doc,
			const struct object *o)
{
	*tree_edit(l->base.load.tree, i) = *o;
	keep(l, &l->space->entries[i], doc);
	if (o->modified_ns > l->space->base.modified_ns)
		l->space->base.modified_ns = o->modified_ns;
}

static int take_document(struct hsds_loader *l, uint32_t i, const struct document *doc,
			 struct err *err)
{
	struct err why = ERR_INIT;
	struct object o;
	const int failed = parse(l, i, doc, &o, &why);
	/* The version of a damaged document is stored, too, so that the next open notices when it
	 * changes. */
	int rc = copy_etag(l, i, doc, err);
	if (rc && !failed)
		object_release(&o);
	if (rc)
		return rc;
	if (failed)
		return leave_broken(l, i, failed, 0, &why, err);
	take_object(l, i, doc, &o);
	return 0;
}

/* Gets the document of an answer. Returns false if the answer has none. */
static bool document_of(const struct hsds_loader *l, uint32_t i, const struct schema_answer *answer,
			struct document *doc)
{
	const struct hsds_entry *old = earlier(l, i);
	if (old && (!answer || answer->unchanged))
		*doc = (struct document){old->text, old->text_len, old->etag};
	else if (answer && !answer->absent && !answer->code)
		*doc = (struct document){answer->body, answer->len, answer->etag};
	else
		return false;
	return true;
}

/* Compares the version of a document that was read with the listing and with the earlier load. Some
 * services write ETags differently in listings; then the earlier load has the same version. If not
 * one of many documents has the version that was listed, the service is such a one. */
static void note_version(struct hsds_loader *l, uint32_t i, const struct schema_answer *answer)
{
	const char *listed = l->space->entries[i].etag;
	const struct hsds_space *old = l->previous;
	const uint32_t number = old ? hsds_number(old, &l->space->entries[i].id) : OBJECT_NONE;
	const bool known =
		number != OBJECT_NONE && hsds_same_version(answer->etag, old->entries[number].etag);
	if (answer->absent) {
		l->base.is_torn |= listed[0] != '\0';
	} else if (!answer->unchanged && !known) {
		const bool differs = strcmp(answer->etag, listed) != 0;
		l->fresh = true;
		if (!listed[0] || !answer->etag[0])
			return;
		l->saw_listed |= !differs;
		l->saw_other |= differs;
		l->base.is_torn |= l->saw_other && (l->saw_listed || !l->base.has_many);
	}
}

int hsds_answer_document(struct hsds_loader *l, uint32_t i, const struct schema_answer *answer,
			 struct err *err)
{
	struct document doc;
	const int n = hsds_object_key(&l->space->entries[i].id, l->key, sizeof(l->key));
	if (n < 0)
		return err_set(err, n == -ENAMETOOLONG ? -EIO : n,
			       "the key of an object cannot be made");
	if (answer && !answer->code)
		note_version(l, i, answer);
	if (document_of(l, i, answer, &doc))
		return take_document(l, i, &doc, err);
	if (answer->absent) {
		/* It is a remainder of a deleted object, unless it is the root group. */
		l->space->entries[i].absent = true;
		hsds_mark_broken(l, i);
		l->base.root_is_absent |= i == 0;
		return i ? 0
			 : err_set(err, -EIO,
				   "root group %s does not exist, but the domain's document "
				   "names it",
				   l->key);
	}
	return leave_broken(l, i, answer->code, answer->code, answer->err, err);
}

int hsds_try_document(struct hsds_loader *l, uint32_t i, const struct schema_answer *answer,
		      bool *used, struct err *err)
{
	struct document doc;
	struct err why = ERR_INIT;
	struct object o;
	*used = false;
	if (hsds_object_key(&l->space->entries[i].id, l->key, sizeof(l->key)) < 0 ||
	    !document_of(l, i, answer, &doc))
		return 0;
	int rc = parse(l, i, &doc, &o, &why);
	if (rc == -ENOMEM)
		return err_set(err, rc, "out of memory");
	if (rc)
		return 0;
	rc = copy_etag(l, i, &doc, err);
	if (rc) {
		object_release(&o);
		return rc;
	}
	take_object(l, i, &doc, &o);
	*used = true;
	return 0;
}

/* ---- the loader ---- */

int hsds_loader_new(const struct schema_load *load, size_t size, struct hsds_loader **out,
		    struct err *err)
{
	const struct hsds_space *old = (const struct hsds_space *)load->previous;
	const char *root = load->document->info.root;
	struct hsds_loader *l = calloc(1, size);
	*out = NULL;
	if (l)
		l->space = arena_alloc(tree_arena(load->tree), sizeof(*l->space));
	if (!l || !l->space) {
		free(l);
		return err_no_memory(err);
	}
	l->base.load = *load;
	l->base.space = &l->space->base;
	l->space->base.tree = load->tree;
	l->space->base.texts = load->texts;
	if (!root || !schema_id_parse(root, strlen(root), &l->space->root)) {
		free(l);
		return err_set(err, -EIO, "the domain's document names no root group");
	}
	/* Nothing of an earlier load with another root group can be reused. */
	if (old && schema_id_equal(&old->root, &l->space->root))
		l->previous = old;
	*out = l;
	return 0;
}
