/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loader of schema v2. The domain's document names the root group, whose id determines the
 * prefix of all keys of the domain. A load has two rounds:
 *
 *   LIST     lists all keys below the prefix, up to a limit. If they are within the limit, the
 *            stored chunks are known too. At the same time, three listings with delimiter show the
 *            objects;
 *   READ     reads the documents of all objects.
 *
 * The objects get their numbers between the two rounds, so that documents can refer to each other.
 * If a document cannot be parsed, its object is left out. Without the root group the load fails.
 * The texts of documents are kept for the next load, which reuses those that have not changed:
 * according to the ETag in the listing, or else by a conditional GET.
 *
 * If there is an earlier load, a round before LIST finds out whether the domain has changed:
 *
 *   COMPARE  lists all keys below the prefix. If the domain was listed whole before, it has not
 *            changed if all keys, sizes and versions are equal. A domain with more keys than the
 *            limit is listed only if it has many objects, and only up to a few keys for each
 *            object, because these pages are cheaper than a HEAD for each object;
 *   HEADS    sends a HEAD for documents whose versions are not shown to be equal by COMPARE, or for
 *            all documents if there was no COMPARE or its listing failed. If the versions of all
 *            reachable documents are equal, the domain has not changed.
 *
 * If the domain has changed, the listing of COMPARE replaces that of LIST. Pure.
 */
#include "hsds2_load.h"

#include <stdlib.h>

#include "object.h"

enum {
	FEW_OBJECTS = 256,   /* with fewer objects, HEADs are as fast as a few pages of a listing */
	KEYS_PER_OBJECT = 4, /* with more keys, HEADs are cheaper than the listing */
};

static struct hsds2_loader *self(struct schema_loader *l)
{
	return (struct hsds2_loader *)l;
}

/* ---- stages ---- */

/* True if the earlier whole listing failed for a reason that may be temporary. Then the next open
 * lists again, because whether a domain counts as listed whole must not depend on an earlier
 * failure.
 */
static bool may_be_listed_now(const struct hsds2_space *old)
{
	return old->listing_code && old->listing_code != -E2BIG;
}

static bool is_compared_whole(const struct hsds2_space *old)
{
	return old->base.listed_whole || may_be_listed_now(old);
}

static void compare_all(struct hsds2_loader *l)
{
	const struct tree *tree = l->previous->base.tree;
	l->heads = tree_order(tree);
	l->nheads = tree_count(tree) + tree_missing(tree);
}

static enum hsds2_stage first_stage(struct hsds2_loader *l)
{
	const struct hsds2_space *old = l->previous;
	if (!old)
		return HSDS2_LIST;
	if (is_compared_whole(old) || tree_count(old->base.tree) >= FEW_OBJECTS)
		return HSDS2_COMPARE;
	compare_all(l);
	return HSDS2_HEADS;
}

static enum hsds2_stage next_stage(struct hsds2_loader *l)
{
	switch (l->stage) {
	case HSDS2_START:
		return first_stage(l);
	case HSDS2_LIST:
		return HSDS2_READ;
	case HSDS2_READ:
	case HSDS2_END:
		return HSDS2_END;
	case HSDS2_COMPARE:
		if (l->nheads)
			return HSDS2_HEADS;
		break;
	case HSDS2_HEADS:
		break;
	}
	if (l->changed || l->base.load.reload)
		return l->nfound ? HSDS2_READ : HSDS2_LIST;
	l->base.same = true;
	return HSDS2_END;
}

int hsds2_round(struct schema_loader *base, uint32_t *n, struct err *err)
{
	struct hsds2_loader *l = self(base);
	int rc = 0;
	l->stage = next_stage(l);
	switch (l->stage) {
	case HSDS2_COMPARE:
		*n = 1;
		break;
	case HSDS2_HEADS:
		*n = l->nheads;
		break;
	case HSDS2_LIST:
		*n = 1 + HSDS2_OBJECT_PREFIXES;
		break;
	case HSDS2_READ:
		rc = hsds2_number_found(l, err);
		*n = l->space->n;
		break;
	case HSDS2_START:
	case HSDS2_END:
		*n = 0;
		break;
	}
	return rc;
}

/* ---- listings ---- */

static bool request_whole(const struct hsds2_loader *l, uint32_t limit, struct schema_request *req)
{
	req->op = SCHEMA_LIST;
	req->limit = limit;
	return hsds2_storage_prefix(&l->space->root, req->key, req->room) >= 0;
}

static bool request_compare(const struct hsds2_loader *l, struct schema_request *req)
{
	const struct hsds2_space *old = l->previous;
	return request_whole(l,
			     is_compared_whole(old) ? l->base.load.list_limit
						    : KEYS_PER_OBJECT * tree_count(old->base.tree),
			     req);
}

static int answer_compare(struct hsds2_loader *l, const struct schema_answer *answer,
			  struct err *err)
{
	int rc = 0;
	if (l->base.load.reload || (answer->code && l->previous->base.listed_whole))
		l->changed = true;
	else if (answer->code)
		compare_all(l);
	else
		rc = hsds2_compare(l, answer, err);
	if (!rc && !answer->code && (l->changed || l->nheads))
		rc = hsds2_take_whole(l, answer, err);
	return rc;
}

/* The first listing is the whole one. */
static bool request_listing(const struct hsds2_loader *l, uint32_t i, struct schema_request *req)
{
	if (i == 0)
		return request_whole(l, l->base.load.list_limit, req);
	req->op = SCHEMA_LIST;
	req->delimit = true;
	req->limit = TREE_MAX_OBJECTS;
	return hsds2_object_prefix(&l->space->root, i - 1, req->key, req->room) >= 0;
}

/* True if the whole listing failed because there are too many keys, or because it has an entry that
 * cannot be examined. Such an entry need not belong to the domain. Then the other listings show the
 * objects, and chunks are looked up one by one. */
static bool is_listing_optional(int code)
{
	return code == -E2BIG || code == -ELOOP || code == -EACCES || code == -ENOLINK;
}

static int answer_listing(struct hsds2_loader *l, uint32_t i, const struct schema_answer *answer,
			  struct err *err)
{
	struct schema_request req = {.key = l->key, .room = sizeof(l->key)};
	request_listing(l, i, &req);
	if (i == 0)
		l->space->listing_code = answer->code;
	if (i == 0 && is_listing_optional(answer->code))
		return 0;
	if (i > 0 && !l->space->listing_code)
		return 0;
	if (answer->code) {
		err_copy(err, answer->err);
		return err_wrap(err, answer->code, "listing %s", l->key);
	}
	return i ? hsds2_take_prefixes(l, answer, err) : hsds2_take_whole(l, answer, err);
}

/* ---- HEADs ---- */

static bool request_head(const struct hsds2_loader *l, uint32_t i, struct schema_request *req)
{
	req->op = SCHEMA_HEAD;
	/* The object was read before, so it has a key. */
	return hsds2_object_key(&l->previous->entries[l->heads[i]].id, req->key, req->room) >= 0;
}

static int answer_head(struct hsds2_loader *l, uint32_t i, const struct schema_answer *answer,
		       struct err *err)
{
	const struct hsds2_entry *entry = &l->previous->entries[l->heads[i]];
	if (answer->code) {
		char id[SCHEMA_ID_MAX];
		schema_id_format(&entry->id, id);
		err_copy(err, answer->err);
		return err_wrap(err, answer->code, "object %s", id);
	}
	if (answer->absent)
		l->changed = !entry->absent;
	else
		l->changed = entry->absent || !hsds2_same_version(answer->etag, entry->etag);
	return l->changed ? SCHEMA_ENOUGH : 0;
}

/* ---- documents ---- */

/* The entry of an object in the earlier load; NULL: there is no text of it. */
static const struct hsds2_entry *earlier(const struct hsds2_loader *l, uint32_t i)
{
	const struct hsds2_space *old = l->previous;
	const uint32_t number = old ? hsds2_number(old, &l->space->entries[i].id) : OBJECT_NONE;
	if (number == OBJECT_NONE || !old->entries[number].text || !old->entries[number].etag[0])
		return NULL;
	return &old->entries[number];
}

static bool request_document(const struct hsds2_loader *l, uint32_t i, struct schema_request *req)
{
	const struct hsds2_entry *old = earlier(l, i), *entry = &l->space->entries[i];
	/* According to the listing the earlier text is still valid. */
	if (old && hsds2_same_version(old->etag, entry->etag))
		return false;
	req->listed = entry->etag[0] ? entry->etag : NULL;
	req->etag = old && !req->listed ? old->etag : NULL;
	return hsds2_object_key(&entry->id, req->key, req->room) >= 0;
}

/* A document: just read, or from the earlier load. */
struct document {
	const void *text;
	size_t len;
	const char *etag;
};

static void keep(struct hsds2_loader *l, struct hsds2_entry *entry, const struct document *doc)
{
	struct schema_space *s = &l->space->base;
	if (doc->len == 0 || doc->len > l->base.load.keep_limit - s->kept)
		return;
	entry->text = arena_strndup(tree_arena(l->base.load.tree), doc->text, doc->len);
	if (!entry->text)
		return; /* the next load reads the document again */
	entry->text_len = doc->len;
	s->kept += doc->len;
}

static uint32_t number_of(void *ctx, const struct schema_id *id)
{
	return hsds2_number(ctx, id);
}

static void note_skipped(void *ctx, const char *what, const struct err *why)
{
	const struct hsds2_loader *l = ctx;
	tree_note(l->base.load.tree, "%s: %s is left out: %s", l->key, what, why->msg);
}

static int parse(struct hsds2_loader *l, uint32_t i, const struct document *doc, struct err *why)
{
	const struct schema_load *load = &l->base.load;
	const struct schema_numbers numbers = {.number = number_of, .ctx = l->space};
	struct object *o = tree_edit(load->tree, i);
	int rc = schema_object_parse(tree_arena(load->tree), &l->space->entries[i].id,
				     &l->space->root, doc->text, doc->len, &numbers, note_skipped,
				     l, o, why);
	return rc ? rc : load->accept(load->ctx, o, why);
}

static void mark_broken(struct hsds2_loader *l, uint32_t i)
{
	struct tree *tree = l->base.load.tree;
	char id[SCHEMA_ID_MAX];
	schema_id_format(&l->space->entries[i].id, id);
	tree_break(tree, i, arena_strndup(tree_arena(tree), id, strlen(id)));
}

/* An object without a document is a remainder of a deleted object. */
static int leave_absent(struct hsds2_loader *l, uint32_t i, struct err *err)
{
	l->space->entries[i].absent = true;
	mark_broken(l, i);
	return i ? 0
		 : err_set(err, -EIO,
			   "root group %s does not exist, but the domain's document names it",
			   l->key);
}

/* Leaves out an object. rc: why it cannot be shown; code: the error of its request, or 0. The load
 * fails without the root group. It also fails if the request failed for a reason that may be
 * temporary, because an object that is left out is not read again until the domain changes. */
static int leave_broken(struct hsds2_loader *l, uint32_t i, int rc, int code, const struct err *why,
			struct err *err)
{
	mark_broken(l, i);
	if (i == 0 || rc == -ENOMEM || (code && code != -EFBIG)) {
		err_copy(err, why);
		return err_wrap(err, rc, "%s%s", i == 0 ? "root group " : "", l->key);
	}
	tree_note(l->base.load.tree, "%s: the object is left out: %s", l->key, why->msg);
	return 0;
}

static int take_document(struct hsds2_loader *l, uint32_t i, const struct document *doc,
			 struct err *err)
{
	struct hsds2_entry *entry = &l->space->entries[i];
	struct err why = ERR_INIT;
	int rc = parse(l, i, doc, &why);
	/* The version of a damaged document is stored too, so that the next open notices when it
	 * changes. */
	if (strcmp(entry->etag, doc->etag) != 0) {
		entry->etag =
			arena_strndup(tree_arena(l->base.load.tree), doc->etag, strlen(doc->etag));
		if (!entry->etag)
			return err_set(err, -ENOMEM, "out of memory");
	}
	if (rc)
		return leave_broken(l, i, rc, 0, &why, err);
	keep(l, entry, doc);
	const int64_t modified = tree_object(l->base.load.tree, i)->o.modified_ns;
	if (modified > l->space->base.modified_ns)
		l->space->base.modified_ns = modified;
	return 0;
}

static int answer_document(struct hsds2_loader *l, uint32_t i, const struct schema_answer *answer,
			   struct err *err)
{
	const struct hsds2_entry *old = earlier(l, i);
	if (hsds2_object_key(&l->space->entries[i].id, l->key, sizeof(l->key)) < 0)
		return err_set(err, -EIO, "the key of an object would be too long");
	if (old && (!answer || answer->unchanged)) {
		const struct document known = {old->text, old->text_len, old->etag};
		return take_document(l, i, &known, err);
	}
	if (answer->absent)
		return leave_absent(l, i, err);
	if (answer->code)
		return leave_broken(l, i, answer->code, answer->code, answer->err, err);
	const struct document doc = {answer->body, answer->len, answer->etag};
	return take_document(l, i, &doc, err);
}

/* ---- ops ---- */

bool hsds2_request(struct schema_loader *base, uint32_t i, struct schema_request *req)
{
	struct hsds2_loader *l = self(base);
	switch (l->stage) {
	case HSDS2_COMPARE:
		return request_compare(l, req);
	case HSDS2_HEADS:
		return request_head(l, i, req);
	case HSDS2_LIST:
		return request_listing(l, i, req);
	case HSDS2_READ:
		return request_document(l, i, req);
	case HSDS2_START:
	case HSDS2_END:
		break;
	}
	return false;
}

int hsds2_answer(struct schema_loader *base, uint32_t i, const struct schema_answer *answer,
		 struct err *err)
{
	struct hsds2_loader *l = self(base);
	if (!answer && l->stage != HSDS2_READ)
		return err_set(err, -EIO, "the key of the root group would be too long");
	switch (l->stage) {
	case HSDS2_COMPARE:
		return answer_compare(l, answer, err);
	case HSDS2_HEADS:
		return answer_head(l, i, answer, err);
	case HSDS2_LIST:
		return answer_listing(l, i, answer, err);
	case HSDS2_READ:
		return answer_document(l, i, answer, err);
	case HSDS2_START:
	case HSDS2_END:
		break;
	}
	return 0;
}

int hsds2_loader_new(const struct schema_load *load, struct schema_loader **out, struct err *err)
{
	const struct hsds2_space *old = (const struct hsds2_space *)load->previous;
	const char *root = load->document->info.root;
	struct hsds2_loader *l = calloc(1, sizeof(*l));
	*out = NULL;
	if (l)
		l->space = arena_alloc(tree_arena(load->tree), sizeof(*l->space));
	if (!l || !l->space) {
		free(l);
		return err_set(err, -ENOMEM, "out of memory");
	}
	l->base.load = *load;
	l->base.space = &l->space->base;
	l->space->base.tree = load->tree;
	if (!root || !schema_id_parse(root, strlen(root), &l->space->root)) {
		free(l);
		return err_set(err, -EIO, "the domain's document names no root group");
	}
	/* Nothing of an earlier load with another root group can be reused. */
	if (old && schema_id_equal(&old->root, &l->space->root))
		l->previous = old;
	*out = &l->base;
	return 0;
}

void hsds2_loader_free(struct schema_loader *base)
{
	struct hsds2_loader *l = self(base);
	if (!l)
		return;
	free(l->found);
	free(l->suspects);
	free(l);
}
