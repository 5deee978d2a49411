/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loader of schema v2. Its document names the root group, under whose id everything lies:
 *
 *   LIST     everything below the storage prefix when it fits one page (then the existing chunks
 *            are known too), and side by side the delimited listings that name the objects;
 *   READ     all object documents.
 *
 * Numbers are given out between the two, so that documents can name each other while they are
 * parsed. A document that cannot be read makes its own object broken, not the domain, unless it is
 * the root group's. Texts of documents are kept, and the next loader takes those that are still the
 * same from here: by the listing's version where there is one, else by asking on condition.
 *
 * Where there is an earlier space, that comes first by which it can be told to be still the domain:
 *
 *   COMPARE  small enough to be listed whole then: the whole listing again. The same keys, sizes
 *            and versions: the same domain. Larger, with many objects: the whole listing as well,
 *            if it is not much longer than there are objects: a few pages instead of a request for
 *            each. The same versions of all reachable documents: the same domain;
 *   HEADS    larger, with few objects (so most keys are chunks): a head for each document.
 *
 * If the domain has changed, that listing serves as LIST. Pure.
 */
#include "hsds2_load.h"

#include <stdlib.h>

#include "object.h"

enum {
	FEW_OBJECTS = 256,   /* fewer: heads for all of them take no longer than a few pages */
	KEYS_PER_OBJECT = 4, /* of a listing that is cheaper than a head for each object */
};

static struct hsds2_loader *self(struct schema_loader *l)
{
	return (struct hsds2_loader *)l;
}

/* ---- stages ---- */

/* What could not be listed for a reason that may pass. The next opening lists again: whether a
 * domain counts as listed whole must not depend on how an earlier listing failed. */
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
	l->nheads = tree_count(tree) + tree_missed(tree);
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

static bool ask_whole(const struct hsds2_loader *l, uint32_t limit, struct schema_ask *ask)
{
	ask->op = SCHEMA_LIST;
	ask->limit = limit;
	return hsds2_storage_prefix(&l->space->root, ask->key, ask->room) >= 0;
}

static bool ask_comparing(const struct hsds2_loader *l, struct schema_ask *ask)
{
	const struct hsds2_space *old = l->previous;
	return ask_whole(l,
			 is_compared_whole(old) ? l->base.load.list_limit
						: KEYS_PER_OBJECT * tree_count(old->base.tree),
			 ask);
}

static int give_comparing(struct hsds2_loader *l, const struct schema_answer *answer,
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

/* The first of the listings is the whole one. */
static bool ask_listing(const struct hsds2_loader *l, uint32_t i, struct schema_ask *ask)
{
	if (i == 0)
		return ask_whole(l, l->base.load.list_limit, ask);
	ask->op = SCHEMA_LIST;
	ask->delimit = true;
	ask->limit = TREE_MAX_OBJECTS;
	return hsds2_object_prefix(&l->space->root, i - 1, ask->key, ask->room) >= 0;
}

/* Too many keys; or something among them, which need not be ours, cannot be examined: the objects
 * can still be named, and the chunks asked for one by one. */
static bool is_listing_optional(int code)
{
	return code == -E2BIG || code == -ELOOP || code == -EACCES || code == -ENOLINK;
}

static int give_listing(struct hsds2_loader *l, uint32_t i, const struct schema_answer *answer,
			struct err *err)
{
	struct schema_ask ask = {.key = l->key, .room = sizeof(l->key)};
	ask_listing(l, i, &ask);
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

/* ---- heads ---- */

static bool ask_head(const struct hsds2_loader *l, uint32_t i, struct schema_ask *ask)
{
	ask->op = SCHEMA_HEAD;
	/* It was read once, so it has a key. */
	return hsds2_object_key(&l->previous->entries[l->heads[i]].id, ask->key, ask->room) >= 0;
}

static int give_head(struct hsds2_loader *l, uint32_t i, const struct schema_answer *answer,
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

/* What the earlier space has of an object, NULL when it has no text. */
static const struct hsds2_entry *earlier(const struct hsds2_loader *l, uint32_t i)
{
	const struct hsds2_space *old = l->previous;
	const uint32_t number = old ? hsds2_number(old, &l->space->entries[i].id) : OBJECT_NONE;
	if (number == OBJECT_NONE || !old->entries[number].text || !old->entries[number].etag[0])
		return NULL;
	return &old->entries[number];
}

static bool ask_document(const struct hsds2_loader *l, uint32_t i, struct schema_ask *ask)
{
	const struct hsds2_entry *old = earlier(l, i), *entry = &l->space->entries[i];
	/* The listing says that the earlier text is the current one. */
	if (old && hsds2_same_version(old->etag, entry->etag))
		return false;
	ask->listed = entry->etag[0] ? entry->etag : NULL;
	ask->etag = old && !ask->listed ? old->etag : NULL;
	return hsds2_object_key(&entry->id, ask->key, ask->room) >= 0;
}

/* A document, wherever it came from. */
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
		return; /* nothing but a request is lost */
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
	tree_note(l->base.load.tree, "%s: %s left out: %s", l->key, what, why->msg);
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

/* Prefixes without a document are leftovers of deleted objects. */
static int leave_absent(struct hsds2_loader *l, uint32_t i, struct err *err)
{
	l->space->entries[i].absent = true;
	mark_broken(l, i);
	return i ? 0
		 : err_set(err, -EIO, "root group %s: the domain names it, but it is not there",
			   l->key);
}

/* rc: why there is no object. Without the root group there is no file; and what could not be read
 * for a reason that may pass (code) would be missing tomorrow for no fault of the bucket, since
 * what was left out is not asked for again until something changes. */
static int leave_broken(struct hsds2_loader *l, uint32_t i, int rc, int code, const struct err *why,
			struct err *err)
{
	mark_broken(l, i);
	if (i == 0 || rc == -ENOMEM || (code && code != -EFBIG)) {
		err_copy(err, why);
		return err_wrap(err, rc, "%s%s", i == 0 ? "root group " : "", l->key);
	}
	tree_note(l->base.load.tree, "%s: object left out: %s", l->key, why->msg);
	return 0;
}

static int take_document(struct hsds2_loader *l, uint32_t i, const struct document *doc,
			 struct err *err)
{
	struct hsds2_entry *entry = &l->space->entries[i];
	struct err why = ERR_INIT;
	int rc = parse(l, i, doc, &why);
	/* Also of one that is damaged: the next opening sees when it has become another one. */
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

static int give_document(struct hsds2_loader *l, uint32_t i, const struct schema_answer *answer,
			 struct err *err)
{
	const struct hsds2_entry *old = earlier(l, i);
	if (hsds2_object_key(&l->space->entries[i].id, l->key, sizeof(l->key)) < 0)
		return err_set(err, -EIO, "an object's id makes no key");
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

bool hsds2_ask(struct schema_loader *base, uint32_t i, struct schema_ask *ask)
{
	struct hsds2_loader *l = self(base);
	switch (l->stage) {
	case HSDS2_COMPARE:
		return ask_comparing(l, ask);
	case HSDS2_HEADS:
		return ask_head(l, i, ask);
	case HSDS2_LIST:
		return ask_listing(l, i, ask);
	case HSDS2_READ:
		return ask_document(l, i, ask);
	case HSDS2_START:
	case HSDS2_END:
		break;
	}
	return false;
}

int hsds2_give(struct schema_loader *base, uint32_t i, const struct schema_answer *answer,
	       struct err *err)
{
	struct hsds2_loader *l = self(base);
	if (!answer && l->stage != HSDS2_READ)
		return err_set(err, -EIO, "the root group's id makes no key");
	switch (l->stage) {
	case HSDS2_COMPARE:
		return give_comparing(l, answer, err);
	case HSDS2_HEADS:
		return give_head(l, i, answer, err);
	case HSDS2_LIST:
		return give_listing(l, i, answer, err);
	case HSDS2_READ:
		return give_document(l, i, answer, err);
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
		return err_set(err, -EIO, "the document names no root group");
	}
	/* Of another root's objects nothing can be known. */
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
	free(l->doubtful);
	free(l);
}
