/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loader of Zarr stores. A load has these stages:
 *
 *   FIRST    reads the document that marks the store, and at the same time lists all keys, up to a
 *            limit.
 *   READ     reads documents. If all keys were listed, it reads the documents that the listing
 *            shows and that the consolidated metadata lack. Otherwise, if the store has no
 *            consolidated metadata, it reads those of the root, and then those of the children of
 *            the groups that WALK has listed.
 *   WALK     lists the groups that READ has found, level by level. It does not list arrays.
 *
 * If the caller wants the store only if all its keys can be listed, LIST lists them before FIRST.
 * If the caller wants it only if all follows from the document, FIRST lists nothing.
 *
 * If there is an earlier load, a stage before FIRST finds out whether the store has changed since:
 *
 *   COMPARE  lists all keys, if the earlier load has done so. It compares the keys, and their
 *            sizes, versions and times.
 *   CONFIRM  sends no request. The store has consolidated metadata, and the caller checks the
 *            version of their document.
 *   HEADS    sends a HEAD for each document that was read.
 *
 * Pure.
 */
#include "store_load.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { CHILDREN_MAX = 1 << 20 /* keys and prefixes directly below a group */ };

static struct zarr_loader *self(struct schema_loader *l)
{
	return (struct zarr_loader *)l;
}

/* ---- stages ---- */

static enum stage first_stage(const struct zarr_loader *l)
{
	const struct schema_load *load = &l->base.load;
	if (!l->previous)
		return load->whole_only ? LIST : FIRST;
	if (l->previous->base.listed_whole)
		return COMPARE;
	return l->previous->is_consolidated ? CONFIRM : HEADS;
}

static int finish(struct zarr_loader *l, struct err *err);

static int next_stage(struct zarr_loader *l, struct err *err)
{
	int rc = 0;
	switch (l->stage) {
	case START:
		l->stage = first_stage(l);
		return 0;
	case CONFIRM:
	case COMPARE:
	case HEADS:
		l->base.same = !l->changed && !l->base.load.reload;
		l->stage = l->base.same ? END : FIRST;
		return 0;
	case LIST:
		l->stage = FIRST;
		return 0;
	case FIRST:
		rc = zarr_choose(l, err);
		break;
	case READ:
		zarr_list_clear(&l->reads);
		rc = zarr_choose_groups(l, err);
		break;
	case WALK:
		rc = zarr_choose_children(l, err);
		if (!rc && !l->reads.n)
			rc = zarr_choose_groups(l, err);
		break;
	case END:
		return 0;
	}
	if (rc)
		return rc;
	l->stage = l->reads.n ? READ : l->walk.n ? WALK : END;
	return l->stage == END ? finish(l, err) : 0;
}

int zarr_round(struct schema_loader *base, uint32_t *n, struct err *err)
{
	struct zarr_loader *l = self(base);
	const int rc = next_stage(l, err);
	switch (l->stage) {
	case COMPARE:
	case LIST:
		*n = 1;
		break;
	case HEADS:
		*n = l->previous->documents.n + l->previous->groups.n;
		break;
	case FIRST:
		/* FIRST lists the keys if no stage before it has. */
		*n = 1 +
		     (!l->is_compared && !l->base.load.whole_only && !l->base.load.document_only);
		break;
	case READ:
		*n = l->reads.n;
		break;
	case WALK:
		*n = l->walk.n;
		break;
	case START:
	case CONFIRM:
	case END:
		*n = 0;
		break;
	}
	return rc;
}

/* ---- requests ---- */

static bool request_key(const struct zarr_loader *l, const char *key, struct schema_request *req)
{
	return zarr_key(l->space->store, key, req->key, req->room) > 0;
}

static bool request_whole(const struct zarr_loader *l, struct schema_request *req)
{
	req->op = SCHEMA_LIST;
	req->limit = l->base.load.list_limit;
	const int n = zarr_key(l->space->store, "", req->key, req->room);
	if (n <= 0 || (size_t)n + 1 >= req->room)
		return n == 0;
	strcpy(req->key + n, "/");
	return true;
}

static bool request_group(const struct zarr_loader *l, const char *path, struct schema_request *req)
{
	req->op = SCHEMA_LIST;
	req->delimit = true;
	req->limit = CHILDREN_MAX;
	const int n = zarr_key(l->space->store, path, req->key, req->room);
	if (n <= 0 || (size_t)n + 1 >= req->room)
		return n == 0;
	strcpy(req->key + n, "/");
	return true;
}

bool zarr_request(struct schema_loader *base, uint32_t i, struct schema_request *req)
{
	struct zarr_loader *l = self(base);
	switch (l->stage) {
	case COMPARE:
	case LIST:
		return request_whole(l, req);
	case HEADS:
		if (i >= l->previous->documents.n)
			return request_group(
				l, l->previous->groups.v[i - l->previous->documents.n].key, req);
		req->op = SCHEMA_HEAD;
		return request_key(l, l->previous->documents.v[i].key, req);
	case FIRST:
		req->size = i ? 0 : l->base.load.document->size;
		return i ? request_whole(l, req) : request_key(l, l->root, req);
	case READ:
		return request_key(l, l->reads.v[i], req);
	case WALK:
		return request_group(l, l->walk.v[i], req);
	case START:
	case CONFIRM:
	case END:
		break;
	}
	return false;
}

/* ---- answers ---- */

/* Adds a version to a list. etag may be NULL. */
static int note(struct zarr_loader *l, struct zarr_versions *list, const char *key,
		const char *etag, struct err *err)
{
	struct arena *a = tree_arena(l->base.load.tree);
	if (list->n == list->room) {
		const uint32_t room = list->n ? 2 * list->n : 16;
		struct zarr_version *v = arena_array(a, room, sizeof(*v));
		if (!v)
			return err_no_memory(err);
		if (list->n)
			memcpy(v, list->v, list->n * sizeof(*v));
		list->v = v;
		list->room = room;
	}
	struct zarr_version *v = &list->v[list->n++];
	v->key = arena_strndup(a, key, strlen(key));
	v->etag = etag ? arena_strndup(a, etag, strlen(etag)) : NULL;
	return v->key && !v->etag == !etag ? 0 : err_no_memory(err);
}

/* Takes the answer to the request for a document. If the document was listed and is gone by now,
 * the load is torn. */
static int answer_document(struct zarr_loader *l, const char *key,
			   const struct schema_answer *answer, struct err *err)
{
	/* A service that refuses a listing also refuses the requests of documents that do not
	 * exist. */
	if (answer->code == -EACCES && l->refusal.code && l->stage == READ) {
		err_copy(err, &l->refusal);
		err_wrap(err, -EACCES, "listing %s/", l->space->store);
		return err_wrap(err, -EACCES, "the store has no consolidated metadata");
	}
	if (answer->code && answer->code != -EFBIG) {
		err_copy(err, answer->err);
		return err_wrap(err, answer->code, "%s", key);
	}
	if (answer->absent) {
		if (strcmp(key, l->root) == 0)
			return err_set(err, -ENOENT, "%s does not exist any more", key);
		l->base.is_torn |= l->space->base.listed_whole;
		return note(l, &l->space->documents, key, NULL, err);
	}
	if (answer->code) {
		tree_note(l->base.load.tree, TREE_UNSUPPORTED, "%s: left out: %s", key,
			  answer->err->msg);
		return zarr_take_beside(l, key, err);
	}
	if (answer->mtime_ns > l->space->base.modified_ns)
		l->space->base.modified_ns = answer->mtime_ns;
	int rc = note(l, &l->space->documents, key, answer->etag, err);
	if (!rc)
		rc = zarr_take_beside(l, key, err);
	return rc ? rc
		  : zarr_model_add(l->model, key, answer->etag, answer->body, answer->len, err);
}

static int answer_head(struct zarr_loader *l, uint32_t i, const struct schema_answer *answer,
		       struct err *err)
{
	const struct zarr_versions *documents = &l->previous->documents;
	const bool is_group = i >= documents->n;
	const struct zarr_version *old =
		is_group ? &l->previous->groups.v[i - documents->n] : &documents->v[i];
	char now[ZARR_DIGEST_TEXT];
	if (answer->code) {
		err_copy(err, answer->err);
		return err_wrap(err, answer->code, "%s%s", is_group ? "listing the groups of " : "",
				is_group ? l->space->store : old->key);
	}
	if (is_group)
		l->changed = strcmp(old->etag, zarr_digest_text(answer, now)) != 0;
	else if (answer->absent || !old->etag)
		l->changed = !answer->absent || old->etag;
	else
		l->changed = !old->etag[0] || strcmp(old->etag, answer->etag) != 0;
	return l->changed ? SCHEMA_ENOUGH : 0;
}

/* Adds the prefixes directly below a group as its children. */
static int answer_group(struct zarr_loader *l, uint32_t i, const struct schema_answer *answer,
			struct err *err)
{
	char now[ZARR_DIGEST_TEXT];
	const uint32_t first = l->found.n;
	bool is_netcdf = false;
	int rc = 0;
	if (answer->code) {
		err_copy(err, answer->err);
		return err_wrap(err, answer->code, "listing the groups of %s", l->space->store);
	}
	rc = note(l, &l->space->groups, l->walk.v[i], zarr_digest_text(answer, now), err);
	for (size_t k = 0; !rc && k < answer->nitems; k++) {
		struct schema_item item;
		answer->item(answer->items, k, &item);
		is_netcdf |= !item.is_prefix && zarr_is_netcdf_group(item.key);
		const char *key = zarr_below(l, item.key);
		const size_t n = key ? strlen(key) : 0;
		if (item.is_prefix && n > 1)
			rc = l->found.n < TREE_MAX_OBJECTS
				     ? zarr_list_push(&l->found, strndup(key, n - 1), err)
				     : err_set(err, -E2BIG, "the store has too many groups");
	}
	for (uint32_t k = first; is_netcdf && !rc && k < l->found.n; k++)
		rc = zarr_choose_beside(l, l->found.v[k], err);
	return rc;
}

int zarr_answer(struct schema_loader *base, uint32_t i, const struct schema_answer *answer,
		struct err *err)
{
	struct zarr_loader *l = self(base);
	if (!answer) {
		tree_note(l->base.load.tree, TREE_UNSUPPORTED, "%s: a key would be too long",
			  l->space->store);
		return 0;
	}
	switch (l->stage) {
	case COMPARE:
		l->changed = true;
		if (!answer->code) {
			const struct schema_listed now = zarr_describe(answer);
			l->changed = now.version != l->previous->base.listed.version;
			l->is_compared = l->changed || l->base.load.reload;
		}
		return l->is_compared ? zarr_take_listing(l, answer, err) : 0;
	case LIST:
		return zarr_take_listing(l, answer, err);
	case HEADS:
		return answer_head(l, i, answer, err);
	case FIRST:
		return i ? zarr_take_listing(l, answer, err)
			 : answer_document(l, l->root, answer, err);
	case READ:
		return answer_document(l, l->reads.v[i], answer, err);
	case WALK:
		return answer_group(l, i, answer, err);
	case START:
	case CONFIRM:
	case END:
		break;
	}
	return 0;
}

/* ---- the end ---- */

/* Some services write ETags differently in listings. Then the earlier load has the version. */
static bool was_read(const struct zarr_loader *l, const struct zarr_version *now)
{
	const struct zarr_versions *old = l->previous ? &l->previous->documents : NULL;
	for (uint32_t i = 0; old && i < old->n; i++)
		if (old->v[i].etag && strcmp(old->v[i].key, now->key) == 0)
			return strcmp(old->v[i].etag, now->etag) == 0;
	return false;
}

static int finish(struct zarr_loader *l, struct err *err)
{
	const struct schema_load *load = &l->base.load;
	struct arena *a = tree_arena(load->tree);
	struct zarr_space *s = l->space;
	const struct zarr_finish how = {
		.store = s->store,
		.modified_ns = s->base.modified_ns,
		.accept = load->accept,
		.ctx = load->ctx,
		.separator = s->base.listed_whole ? zarr_separator : NULL,
		.separator_ctx = l,
	};
	int rc = zarr_model_finish(l->model, &how, err);
	if (rc)
		return rc;
	/* If a document has another version than listed, the store has changed meanwhile, so chunks
	 * that the listing lacks may exist. */
	const struct zarr_versions *all = &l->space->documents;
	for (uint32_t i = 0; l->space->base.listed_whole && i < all->n; i++) {
		const char *listed = zarr_listed_etag(l, all->v[i].key), *etag = all->v[i].etag;
		if (!listed || !etag || !listed[0] || !etag[0] || strcmp(listed, etag) == 0)
			continue;
		if (!was_read(l, &all->v[i]))
			l->base.is_torn = true;
	}
	s->is_consolidated = zarr_model_is_consolidated(l->model);
	/* Then the root's document is the only one that was read. */
	if (s->is_consolidated && !s->base.listed_whole && all->v[0].etag && all->v[0].etag[0])
		s->base.only_version = all->v[0].etag;
	s->nobjects = tree_numbers(load->tree);
	s->objects = arena_array(a, s->nobjects, sizeof(*s->objects));
	if (!s->objects)
		return err_no_memory(err);
	for (uint32_t i = 0; i < s->nobjects; i++)
		s->objects[i].key = zarr_model_object(l->model, i, &s->objects[i].etag);
	return 0;
}

int zarr_loader_new(const struct schema_load *load, struct schema_loader **out, struct err *err)
{
	struct arena *a = tree_arena(load->tree);
	struct zarr_loader *l = calloc(1, sizeof(*l));
	size_t len;
	*out = NULL;
	if (!l)
		return err_no_memory(err);
	l->base.load = *load;
	/* A copy, because load->document is replaced if the bucket has another version. */
	l->root = arena_strndup(a, load->document->info.root, strlen(load->document->info.root));
	l->space = arena_alloc(a, sizeof(*l->space));
	l->previous = (const struct zarr_space *)load->previous;
	if (l->root)
		l->model = zarr_model_new(load->tree, zarr_document_of_key(l->root, &len));
	if (l->space)
		l->space->store = arena_strndup(a, load->path, strlen(load->path));
	if (!l->space || !l->space->store || !l->model) {
		zarr_loader_free(&l->base);
		return err_no_memory(err);
	}
	l->space->base.tree = load->tree;
	l->base.space = &l->space->base;
	*out = &l->base;
	return 0;
}

void zarr_loader_free(struct schema_loader *base)
{
	struct zarr_loader *l = self(base);
	if (!l)
		return;
	zarr_list_clear(&l->keys);
	zarr_list_clear(&l->reads);
	zarr_list_clear(&l->walk);
	zarr_list_clear(&l->found);
	zarr_list_clear(&l->beside);
	zarr_model_free(l->model);
	free(l);
}
