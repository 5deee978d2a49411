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
#include "zarr_space.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/checksum.h>

#include "text_list.h"

enum { CHILDREN_MAX = 1 << 20 /* keys and prefixes directly below a group */ };

enum stage { START, CONFIRM, COMPARE, HEADS, LIST, FIRST, READ, WALK, END };

struct zarr_loader {
	struct schema_loader base;
	enum stage stage;
	struct zarr_space *space;
	const struct zarr_space *previous; /* or NULL */
	struct zarr_model *model;
	const char *root;	/* the name of the document that marks the store */
	bool changed;		/* since `previous` */
	bool is_compared;	/* the listing of COMPARE is that of the load */
	struct zarr_list keys;	/* all keys, relative to the store, if all were listed */
	struct zarr_list reads; /* documents to read */
	struct zarr_list walk;	/* groups to list */
	struct zarr_list found; /* children of groups: their documents are read next */
};

static struct zarr_loader *self(struct schema_loader *l)
{
	return (struct zarr_loader *)l;
}

static int no_memory(struct err *err)
{
	return err_set(err, -ENOMEM, "out of memory");
}

/* Returns the key of a document of a node, on the heap: "g/a" and ".zarray" give "g/a/.zarray". */
static char *join(const char *path, const char *name)
{
	char *key = NULL;
	return asprintf(&key, "%s%s%s", path, path[0] ? "/" : "", name) < 0 ? NULL : key;
}

/* Returns a key, and its version behind the NUL, on the heap. */
static char *with_etag(const char *key, const char *etag)
{
	const size_t n = strlen(key) + 1, m = strlen(etag) + 1;
	char *text = malloc(n + m);
	if (text) {
		memcpy(text, key, n);
		memcpy(text + n, etag, m);
	}
	return text;
}

/* Returns the part of a key behind the store, or NULL if it is not in it. */
static const char *below(const struct zarr_loader *l, const char *key)
{
	const size_t n = strlen(l->space->store);
	if (n == 0)
		return key;
	return strncmp(key, l->space->store, n) == 0 && key[n] == '/' ? key + n + 1 : NULL;
}

/* ---- listings ---- */

static uint64_t digest(uint64_t so_far, const void *bytes, size_t n)
{
	const uint32_t low = checksum_lookup3(bytes, n, (uint32_t)so_far);
	const uint32_t high = checksum_lookup3(bytes, n, (uint32_t)(so_far >> 32) ^ low);
	return (uint64_t)high << 32 | low;
}

enum { DIGEST_TEXT = 17 };

/* Writes a digest of the keys and versions of a listing. */
static const char *digest_text(const struct schema_answer *answer, char text[DIGEST_TEXT])
{
	uint64_t all = UINT64_C(0x9e3779b97f4a7c15);
	for (size_t i = 0; i < answer->nitems; i++) {
		struct schema_item item;
		answer->item(answer->items, i, &item);
		all = digest(all, item.key, strlen(item.key) + 1);
		all = digest(all, item.etag, strlen(item.etag) + 1);
	}
	snprintf(text, DIGEST_TEXT, "%016llx", (unsigned long long)all);
	return text;
}

static struct schema_listed describe(const struct schema_answer *answer)
{
	struct schema_listed out = {.version = UINT64_C(0x9e3779b97f4a7c15)};
	size_t len;
	for (size_t i = 0; i < answer->nitems; i++) {
		struct schema_item item;
		answer->item(answer->items, i, &item);
		out.version = digest(out.version, item.key, strlen(item.key) + 1);
		out.version = digest(out.version, item.etag, strlen(item.etag) + 1);
		out.version = digest(out.version, &item.size, sizeof(item.size));
		out.version = digest(out.version, &item.mtime_ns, sizeof(item.mtime_ns));
		if (item.mtime_ns > out.modified_ns)
			out.modified_ns = item.mtime_ns;
		if (zarr_document_of_key(item.key, &len) != ZARR_NONE)
			out.documents += item.size;
	}
	return out;
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

/* Returns true if the store is loaded without a listing after this error: it cannot be listed, or
 * has too many keys. */
static bool is_listing_optional(int code)
{
	return code == -E2BIG || code == -ELOOP || code == -EACCES || code == -ENOLINK;
}

static int take_listing(struct zarr_loader *l, const struct schema_answer *answer, struct err *err)
{
	const struct schema_load *load = &l->base.load;
	struct schema_space *space = &l->space->base;
	int rc = 0;
	if (is_listing_optional(answer->code)) {
		if (load->whole_only)
			return err_set(err, -E2BIG, "not all keys of the store can be listed");
		return load->listed ? load->listed(load->ctx, NULL) : 0;
	}
	if (answer->code) {
		err_copy(err, answer->err);
		return err_wrap(err, answer->code, "listing %s/", l->space->store);
	}
	for (size_t i = 0; !rc && i < answer->nitems; i++) {
		struct schema_item item;
		answer->item(answer->items, i, &item);
		const char *key = below(l, item.key);
		if (key)
			rc = zarr_list_push(&l->keys, with_etag(key, item.etag), err);
	}
	if (rc)
		return rc;
	space->listed_whole = true;
	space->listed = describe(answer);
	if (space->listed.modified_ns > space->modified_ns)
		space->modified_ns = space->listed.modified_ns;
	return load->listed ? load->listed(load->ctx, &space->listed) : 0;
}

static int answer_compare(struct zarr_loader *l, const struct schema_answer *answer,
			  struct err *err)
{
	l->changed = true;
	if (!answer->code) {
		const struct schema_listed now = describe(answer);
		l->changed = now.version != l->previous->base.listed.version;
		l->is_compared = l->changed || l->base.load.reload;
	}
	return l->is_compared ? take_listing(l, answer, err) : 0;
}

/* Finds the separator of an array's chunk keys in the listing. Returns 0 if no key shows it. */
static char separator(void *ctx, const char *path)
{
	const struct zarr_loader *l = ctx;
	const size_t n = strlen(path);
	for (uint32_t i = 0; i < l->keys.n; i++) {
		const char *key = l->keys.v[i];
		if (n && (strncmp(key, path, n) != 0 || key[n] != '/'))
			continue;
		key += n ? n + 1 : 0;
		const size_t digits = strspn(key, "0123456789");
		if (digits && (key[digits] == '.' || key[digits] == '/'))
			return key[digits];
	}
	return 0;
}

/* ---- which documents to read ---- */

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Returns the version of a listed key, or NULL if it was not listed. */
static const char *listed_etag(const struct zarr_loader *l, const char *key)
{
	char *const *found =
		l->keys.n ? bsearch(&key, l->keys.v, l->keys.n, sizeof(*l->keys.v), by_text) : NULL;
	return found ? *found + strlen(*found) + 1 : NULL;
}

/* Some services write ETags differently in listings. Then the earlier load has the version. */
static bool was_read(const struct zarr_loader *l, const struct zarr_version *now)
{
	const struct zarr_versions *old = l->previous ? &l->previous->documents : NULL;
	for (uint32_t i = 0; old && i < old->n; i++)
		if (old->v[i].etag && strcmp(old->v[i].key, now->key) == 0)
			return strcmp(old->v[i].etag, now->etag) == 0;
	return false;
}

/* A document has another version than listed: the store has changed meanwhile, so chunks that the
 * listing lacks may exist. */
static void check_versions(struct zarr_loader *l)
{
	const struct zarr_versions *all = &l->space->documents;
	for (uint32_t i = 0; l->space->base.listed_whole && i < all->n; i++) {
		const char *listed = listed_etag(l, all->v[i].key), *etag = all->v[i].etag;
		if (!listed || !etag || !listed[0] || !etag[0] || strcmp(listed, etag) == 0)
			continue;
		if (!was_read(l, &all->v[i]))
			l->base.is_torn = true;
	}
}

static int drop_unlisted(void *ctx, const char *key)
{
	struct zarr_loader *l = ctx;
	if (!listed_etag(l, key))
		zarr_model_remove(l->model, key);
	return 0;
}

static int read_later(struct zarr_loader *l, const char *key, struct err *err)
{
	return zarr_model_has(l->model, key) ? 0 : zarr_list_push(&l->reads, strdup(key), err);
}

/* A development version of netCDF-C of 2021 has put chunks beside the directory of their array,
 * which shows it by this document. Such chunks are not found, so the array is left out. */
static bool has_chunks_beside(struct zarr_loader *l, const char *key)
{
	size_t len;
	if (zarr_document_of_key(key, &len) != ZARR_V2_ARRAY)
		return false;
	auto_free char *path = strndup(key, len);
	auto_free char *other = path ? join(path, ".nczarray") : NULL;
	if (!other || !listed_etag(l, other))
		return false;
	tree_note(l->base.load.tree, TREE_UNSUPPORTED,
		  "%s: its chunks are beside it, as netCDF-C has stored them "
		  "in 2021",
		  key);
	return true;
}

/* All keys are known. Removes documents of the consolidated metadata that do not exist, and
 * requests those that they lack. */
static int choose_listed(struct zarr_loader *l, struct err *err)
{
	size_t len;
	int rc = 0;
	if (l->keys.n)
		qsort(l->keys.v, l->keys.n, sizeof(*l->keys.v), by_text);
	zarr_model_consolidated(l->model, drop_unlisted, l);
	for (uint32_t i = 0; !rc && i < l->keys.n; i++) {
		const enum zarr_document_kind kind = zarr_document_of_key(l->keys.v[i], &len);
		if (kind != ZARR_NONE && kind != ZARR_CONSOLIDATED &&
		    strcmp(l->keys.v[i], l->root) != 0 && !has_chunks_beside(l, l->keys.v[i]))
			rc = read_later(l, l->keys.v[i], err);
	}
	return rc;
}

/* Requests all documents that a node may have. */
static int choose_node(struct zarr_loader *l, const char *path, struct err *err)
{
	static const enum zarr_document_kind v2[] = {ZARR_V2_GROUP, ZARR_V2_ARRAY, ZARR_V2_ATTRS};
	const bool is_v3 = strcmp(l->root, zarr_document_name(ZARR_V3)) == 0;
	int rc = 0;
	for (size_t i = 0; !rc && i < (is_v3 ? 1 : sizeof(v2) / sizeof(v2[0])); i++) {
		auto_free char *key = join(path, zarr_document_name(is_v3 ? ZARR_V3 : v2[i]));
		rc = key ? strcmp(key, l->root) ? read_later(l, key, err) : 0 : no_memory(err);
	}
	return rc;
}

/* FIRST has ended. Chooses what to read and to list next. */
static int choose(struct zarr_loader *l, struct err *err)
{
	if (l->space->base.listed_whole)
		return choose_listed(l, err);
	if (zarr_model_is_consolidated(l->model))
		return 0;
	/* The next stages read the root's other documents, and list the root if it is a group. */
	int rc = choose_node(l, "", err);
	if (!rc && zarr_model_kind(l->model, "") != ZARR_ARRAY)
		rc = zarr_list_push(&l->walk, strdup(""), err);
	return rc;
}

static bool has_document(const struct zarr_loader *l, const char *path)
{
	static const enum zarr_document_kind kinds[] = {ZARR_V3, ZARR_V2_GROUP, ZARR_V2_ARRAY};
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		auto_free char *key = join(path, zarr_document_name(kinds[i]));
		if (!key || zarr_model_has(l->model, key))
			return true;
	}
	return false;
}

/* READ has ended. The next WALK lists the groups among the children. A child without documents may
 * be a group, too. */
static int choose_groups(struct zarr_loader *l, struct err *err)
{
	int rc = 0;
	for (uint32_t i = 0; !rc && i < l->found.n; i++) {
		const enum zarr_node_kind kind = zarr_model_kind(l->model, l->found.v[i]);
		if (kind == ZARR_GROUP || (kind == ZARR_NO_NODE && !has_document(l, l->found.v[i])))
			rc = zarr_list_push(&l->walk, strdup(l->found.v[i]), err);
	}
	zarr_list_clear(&l->found);
	return rc;
}

/* WALK has ended. The next READ reads the documents of the children. */
static int choose_children(struct zarr_loader *l, struct err *err)
{
	int rc = 0;
	zarr_list_clear(&l->walk);
	for (uint32_t i = 0; !rc && i < l->found.n; i++)
		rc = choose_node(l, l->found.v[i], err);
	return rc;
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

/* Returns the stage that follows when the earlier load was compared. */
static enum stage after_comparison(struct zarr_loader *l)
{
	if (l->changed || l->base.load.reload)
		return FIRST;
	l->base.same = true;
	return END;
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
		l->stage = after_comparison(l);
		return 0;
	case LIST:
		l->stage = FIRST;
		return 0;
	case FIRST:
		rc = choose(l, err);
		break;
	case READ:
		zarr_list_clear(&l->reads);
		rc = choose_groups(l, err);
		break;
	case WALK:
		rc = choose_children(l, err);
		if (!rc && !l->reads.n)
			rc = choose_groups(l, err);
		break;
	case END:
		return 0;
	}
	if (rc)
		return rc;
	l->stage = l->reads.n ? READ : l->walk.n ? WALK : END;
	return l->stage == END ? finish(l, err) : 0;
}

/* Returns true if FIRST lists the keys, because no stage before it has. */
static bool lists_first(const struct zarr_loader *l)
{
	return !l->is_compared && !l->base.load.whole_only;
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
		*n = 1 + lists_first(l);
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
			return no_memory(err);
		if (list->n)
			memcpy(v, list->v, list->n * sizeof(*v));
		list->v = v;
		list->room = room;
	}
	struct zarr_version *v = &list->v[list->n++];
	v->key = arena_strndup(a, key, strlen(key));
	v->etag = etag ? arena_strndup(a, etag, strlen(etag)) : NULL;
	return v->key && !v->etag == !etag ? 0 : no_memory(err);
}

/* Takes the answer to the request for a document. If the document was listed and is gone by now,
 * the load is torn. */
static int answer_document(struct zarr_loader *l, const char *key,
			   const struct schema_answer *answer, struct err *err)
{
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
		return 0;
	}
	if (answer->mtime_ns > l->space->base.modified_ns)
		l->space->base.modified_ns = answer->mtime_ns;
	const int rc = note(l, &l->space->documents, key, answer->etag, err);
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
	char now[DIGEST_TEXT];
	if (answer->code) {
		err_copy(err, answer->err);
		return err_wrap(err, answer->code, "%s%s", is_group ? "listing the groups of " : "",
				is_group ? l->space->store : old->key);
	}
	if (is_group)
		l->changed = strcmp(old->etag, digest_text(answer, now)) != 0;
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
	char now[DIGEST_TEXT];
	int rc = 0;
	if (answer->code) {
		err_copy(err, answer->err);
		return err_wrap(err, answer->code, "listing the groups of %s", l->space->store);
	}
	rc = note(l, &l->space->groups, l->walk.v[i], digest_text(answer, now), err);
	for (size_t k = 0; !rc && k < answer->nitems; k++) {
		struct schema_item item;
		answer->item(answer->items, k, &item);
		const char *key = below(l, item.key);
		const size_t n = key ? strlen(key) : 0;
		if (item.is_prefix && n > 1)
			rc = l->found.n < TREE_MAX_OBJECTS
				     ? zarr_list_push(&l->found, strndup(key, n - 1), err)
				     : err_set(err, -E2BIG, "the store has too many groups");
	}
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
		return answer_compare(l, answer, err);
	case LIST:
		return take_listing(l, answer, err);
	case HEADS:
		return answer_head(l, i, answer, err);
	case FIRST:
		return i ? take_listing(l, answer, err) : answer_document(l, l->root, answer, err);
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
		.separator = s->base.listed_whole ? separator : NULL,
		.separator_ctx = l,
	};
	int rc = zarr_model_finish(l->model, &how, err);
	if (rc)
		return rc;
	check_versions(l);
	s->is_consolidated = zarr_model_is_consolidated(l->model);
	s->nobjects = tree_numbers(load->tree);
	s->objects = arena_array(a, s->nobjects, sizeof(*s->objects));
	if (!s->objects)
		return no_memory(err);
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
		return no_memory(err);
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
		return no_memory(err);
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
	zarr_model_free(l->model);
	free(l);
}
