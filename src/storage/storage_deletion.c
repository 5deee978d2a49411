/* SPDX-License-Identifier: Apache-2.0 */
/* See storage_deletion.h. */
#include <storage/storage_deletion.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/emit.h>
#include <base/frame.h>
#include <base/hex.h>
#include <base/mem.h>
#include <storage/renames.h>

#include <storage/storage_names.h>

#define SECOND_NS INT64_C(1000000000)
#define HOUR_NS	  (3600 * SECOND_NS)
#define DAY_NS	  (24 * HOUR_NS)
#define PAUSE_NS  (SECOND_NS / 4)
/* When a mark is rewritten, and when one that was not rewritten is replaced. */
#define FRESH_NS  (60 * SECOND_NS)
#define ASLEEP_NS (600 * SECOND_NS)
#define LOOK_NS	  (5 * SECOND_NS)

static const char magic[] = "HSMDELET";
enum { VERSION = 1, DELETION = 1 /* the type of the record */, RECORD = 8, DIGITS = 16 };
enum {
	LOOKS = 8,   /* at a list that changes */
	WAITS = 40,  /* pauses, for deletions to end */
	LISTED = 64, /* objects in a listing: the document of the root group, marks, the list */
	MARKS = 8,   /* that are watched at the same time */
	/* Looks at marks of deletions that go on, LOOK_NS apart: two hours. */
	RECLAIM_LOOKS = 1440,
};

/* ---- the marks ---- */

static int emit_mark(int64_t now, struct bytes *out)
{
	uint8_t body[RECORD];
	struct emit e = emit_to(body, sizeof(body));
	emit_u64(&e, (uint64_t)now);
	const int rc = frame_put_head(out, magic, VERSION);
	return rc ? rc : frame_append(out, DELETION, body, sizeof(body));
}

static int parse_mark(const struct bytes *text, int64_t *put_ns, struct err *err)
{
	struct cursor c = cursor_of(text->data, text->len), body;
	uint16_t type;
	int rc = frame_take_head(&c, magic, VERSION, err);
	if (rc)
		return rc;
	if (frame_next(&c, &type, &body) != 1 || type != DELETION || cur_left(&body) != RECORD)
		return err_set(err, -EBADMSG, "its record is damaged");
	*put_ns = (int64_t)cur_u64(&body);
	return *put_ns >= 0 ? 0 : err_set(err, -EBADMSG, "its time is not valid");
}

/* Puts a mark, if the condition holds. The time in it differs from `before`, so that the mark gets
 * another version. */
static int put_mark(const struct document_place *p, const char *key, int64_t *put_ns,
		    const struct store_cond *cond, char etag[STORE_ETAG_MAX], struct err *err)
{
	auto_bytes struct bytes text = {0};
	struct document_answer answer;
	const int64_t now_ns = env_wall(p->env);
	*put_ns = now_ns == *put_ns ? now_ns + 1 : now_ns;
	if (emit_mark(*put_ns, &text))
		return err_no_memory(err);
	const int rc = document_write(p, key, text.data, text.len, cond, &answer, err);
	if (!rc)
		memcpy(etag, answer.etag, STORE_ETAG_MAX);
	return rc;
}

int storage_deletion_begin(const struct document_place *p, const struct storage *storage,
			   struct storage_deletion *d, struct err *err)
{
	const struct store_cond none = {0};
	uint8_t random[DIGITS / 2];
	char name[64 + DIGITS];
	const int n = snprintf(name, sizeof(name), "%s", p->schema->storage->deletion);
	p->env->random(p->env, random, sizeof(random));
	hex_encode(random, sizeof(random), name + n);
	*d = (struct storage_deletion){.storage = *storage, .fresh_ns = env_boot(p->env)};
	const int rc = storage_own_key(p, storage, name, d->key, err);
	return rc ? rc : put_mark(p, d->key, &d->put_ns, &none, d->etag, err);
}

int storage_deletion_keep(const struct document_place *p, struct storage_deletion *d,
			  struct err *err)
{
	const uint64_t now_ns = env_boot(p->env), age_ns = now_ns - d->fresh_ns;
	const struct store_cond same = {.if_match = d->etag};
	if (age_ns < FRESH_NS)
		return 0;
	/* After an hour, the mark does not count any more. */
	if (age_ns > HOUR_NS / 2 || !d->etag[0])
		return err_set(err, -EBUSY, "%s: the mark was not rewritten in time", d->key);
	const int rc = put_mark(p, d->key, &d->put_ns, &same, d->etag, err);
	if (rc == -ESTALE)
		return err_set(err, -EBUSY, "%s: another program goes on with the storage", d->key);
	if (!rc)
		d->fresh_ns = now_ns;
	return rc;
}

void storage_deletion_drop(const struct document_place *p, const struct storage_deletion *d)
{
	document_delete_key(p, d->key, NULL, NULL, NULL);
}

/* Returns the time of the youngest object in a listing, by the clock of the bucket, or 0 if it is
 * not known. */
static int64_t youngest(const struct store_page *page)
{
	int64_t ns = 0;
	for (size_t i = 0; i < page->n; i++)
		if (page->items[i].meta.mtime_ns > ns)
			ns = page->items[i].meta.mtime_ns;
	return ns;
}

/* Returns 1 if a mark counts, 0 if not, or a negative errno. The clocks of both processes may be
 * wrong. So the times that the bucket gives its objects decide: a rename has just put the list of
 * names. If nothing was put after the mark, it counts for a day. If these times are not known, the
 * time in the mark decides, and one that is damaged counts. */
static int counts(const struct document_place *p, const struct store_item *mark, int64_t now_ns,
		  struct err *err)
{
	auto_request struct store_request *req = NULL;
	int64_t put_ns = 0;
	if (mark->meta.mtime_ns > 0)
		return now_ns - mark->meta.mtime_ns < HOUR_NS &&
		       env_wall(p->env) - mark->meta.mtime_ns < DAY_NS;
	const int rc = document_read(p, mark->key, &req, err);
	if (rc || !req)
		return rc;
	return parse_mark(&req->answer.body, &put_ns, NULL) || env_wall(p->env) - put_ns < HOUR_NS;
}

/* ---- the names ---- */

/* Returns a name that a rename may still give at this time, or NULL. */
static const char *awaited(const struct storage_names *names, struct renames *renames,
			   int64_t now_ns)
{
	const struct rename_record *r = &names->rename;
	if (rename_may_give(r) && renames_may_give(renames, r->number, now_ns - r->began_ns))
		return r->to;
	for (size_t i = 0; i < names->n; i++) {
		const struct storage_name *name = &names->v[i];
		if (name->is_pending &&
		    renames_may_give(renames, name->rename, now_ns - name->given_ns))
			return name->path;
	}
	return NULL;
}

/* Fails with -EBUSY if a rename may make a new name appear at any moment. What could not appear any
 * more when the list was put need not be compared with the time of the mark. */
static int check_renames(const struct document_place *p, const struct storage_deletion *d,
			 struct renames *renames, const struct storage_names *names,
			 struct err *err)
{
	int64_t now_ns;
	if (!awaited(names, renames, names->read_ns))
		return 0;
	const int rc = storage_names_now(p, d->key, &now_ns, err);
	const char *path = rc ? NULL : awaited(names, renames, now_ns);
	return path ? err_set(err, -EBUSY, "a rename to /%s may not have ended", path) : rc;
}

/* Returns 1 if a name leads to the storage, and 0 if none does. Fails with -EBUSY if a rename may
 * not have ended. */
static int look_at_list(const struct document_place *p, const struct storage_deletion *d,
			struct renames *renames, const struct storage *storage, struct err *err)
{
	char seen[STORE_ETAG_MAX];
	auto_names struct storage_names names = {.storage = *storage};
	const char *path;
	int rc = storage_names_read(p, &names, err);
	for (int i = 0; !rc && i < LOOKS; i++) {
		memcpy(seen, names.etag, sizeof(seen));
		rc = storage_names_leads(p, &names, &path, err);
		if (!rc)
			rc = check_renames(p, d, renames, &names, err);
		/* Without a list there was nothing that took time. */
		if (!rc && seen[0])
			rc = storage_names_read(p, &names, err);
		if (!rc && strcmp(seen, names.etag) == 0)
			return 0;
	}
	return rc ? rc : err_set(err, -EBUSY, "the names of the domain change all the time");
}

/* ---- deleting ---- */

struct keeping {
	const struct document_place *p;
	struct storage_deletion *d;
};

static int keep(void *ctx, struct err *err)
{
	const struct keeping *k = ctx;
	return storage_deletion_keep(k->p, k->d, err);
}

/* The list and the mark are deleted last: if this process ends before, the next one needs them. */
static int delete_all(const struct document_place *p, struct storage_deletion *d, uint64_t *deleted,
		      struct err *err)
{
	char prefix[SCHEMA_KEY_MAX + 1], list[SCHEMA_KEY_MAX + 1], root[SCHEMA_KEY_MAX + 1];
	struct keeping k = {.p = p, .d = d};
	const struct purge_order order = {
		.first = root, .kept = {list, d->key}, .check = keep, .ctx = &k};
	int rc = storage_own_key(p, &d->storage, "", prefix, err);
	if (!rc)
		rc = storage_own_key(p, &d->storage, p->schema->storage->names, list, err);
	if (!rc)
		rc = storage_root_key(p, &d->storage, root, err);
	if (!rc)
		rc = storage_purge(p, prefix, &order, deleted, err);
	if (!rc)
		rc = storage_deletion_keep(p, d, err);
	if (!rc)
		rc = document_delete_key(p, list, NULL, NULL, err);
	return rc ? rc : document_delete_key(p, d->key, NULL, NULL, err);
}

int storage_deletion_end(const struct document_place *p, struct renames *renames,
			 struct storage_deletion *d, uint64_t *deleted, struct err *err)
{
	const int rc = look_at_list(p, d, renames, &d->storage, err);
	*deleted = 0;
	if (rc == 0)
		return delete_all(p, d, deleted, err);
	storage_deletion_drop(p, d);
	return rc;
}

int storage_delete(const struct document_place *p, struct renames *renames, const char *path,
		   const struct storage *storage, uint64_t *deleted, struct err *err)
{
	struct storage_deletion d;
	*deleted = 0;
	int rc = storage_deletion_begin(p, storage, &d, err);
	if (rc)
		return rc;
	rc = storage_is_shared(p, path, storage, err);
	if (rc == 0)
		return storage_deletion_end(p, renames, &d, deleted, err);
	storage_deletion_drop(p, &d);
	return rc;
}

/* ---- new names ---- */

int storage_list_marks(const struct document_place *p, const struct storage *storage,
		       struct store_request *req, struct err *err)
{
	char prefix[SCHEMA_KEY_MAX + 1];
	const int rc = storage_own_key(p, storage, p->schema->storage->own, prefix, err);
	store_request_reset(req, STORE_LIST);
	store_request_key(req, prefix);
	req->list.max = LISTED;
	req->list.complete = true;
	req->cancelled = cancelled_by(p->cancelled);
	return rc;
}

static bool is_mark(const struct document_place *p, const char *key)
{
	const char *slash = strrchr(key, '/'), *name = p->schema->storage->deletion;
	return slash && strncmp(slash + 1, name, strlen(name)) == 0;
}

static bool has_marks(const struct document_place *p, const struct store_request *req)
{
	const struct store_page *page = &req->answer.page;
	size_t i = 0;
	while (i < page->n && !is_mark(p, page->items[i].key))
		i++;
	return i < page->n;
}

int storage_judge_marks(const struct document_place *p, const struct storage *storage,
			const struct store_request *req, struct err *err)
{
	char root[SCHEMA_KEY_MAX + 1];
	const struct store_page *page = &req->answer.page;
	bool has_root = false;
	int rc = store_failure(&req->answer, err);
	if (!rc)
		rc = storage_root_key(p, storage, root, err);
	for (size_t i = 0; !rc && i < page->n; i++)
		has_root |= strcmp(page->items[i].key, root) == 0;
	return rc ? rc : !has_root || has_marks(p, req);
}

/* Finds the first mark in a listing that counts. Returns 1, 0 if there is none, or a negative
 * errno. */
static int find_mark(const struct document_place *p, const struct store_request *req,
		     const char **key, struct err *err)
{
	const struct store_page *page = &req->answer.page;
	const int64_t now_ns = youngest(page);
	int rc = 0;
	for (size_t i = 0; rc == 0 && i < page->n; i++) {
		*key = page->items[i].key;
		rc = is_mark(p, *key) ? counts(p, &page->items[i], now_ns, err) : 0;
	}
	return rc;
}

/* Judges the storage after the wait. Returns 0, or the error of a name that has to be taken
 * back. */
static int judge_at_last(const struct document_place *p, const struct storage *storage,
			 const struct store_request *req, struct err *err)
{
	const char *key;
	int rc = find_mark(p, req, &key, err);
	if (rc > 0)
		return err_set(err, -EBUSY, "the storage of the domain is being deleted (%s)", key);
	if (rc == 0)
		rc = storage_has_root(p, storage, err);
	return rc ? (rc < 0 ? rc : 0)
		  : err_set(err, -ESTALE, "the storage of the domain was deleted");
}

int storage_is_named(const struct document_place *p, const struct storage *storage, struct err *err)
{
	auto_request struct store_request *req = store_request_new(p->store, STORE_LIST);
	const char *key;
	int rc = req ? 1 : err_no_memory(err);
	for (int i = 0; rc == 1 && i < WAITS; i++) {
		if (i)
			p->env->sleep(p->env, PAUSE_NS);
		rc = storage_list_marks(p, storage, req, err);
		if (rc)
			return rc;
		store_run(p->store, req);
		rc = storage_judge_marks(p, storage, req, err);
		/* Nobody puts the root group again, and nobody removes the marks of processes that
		 * were killed. */
		if (rc == 1 &&
		    (!has_marks(p, req) || (i == 0 && find_mark(p, req, &key, err) == 0)))
			break;
	}
	return rc == 1 ? judge_at_last(p, storage, req, err) : rc;
}

/* ---- storage that a deletion may have taken for garbage ---- */

/* A mark that another process has put, as it was when it had changed last. */
struct watched {
	char key[SCHEMA_KEY_MAX + 1];
	struct store_meta meta;
	uint64_t since_ns; /* env_boot() */
	bool is_there;
};

static bool is_same(const struct store_meta *a, const struct store_meta *b)
{
	return strcmp(a->etag, b->etag) == 0 && a->mtime_ns == b->mtime_ns;
}

/* Ends a deletion whose process was killed, or sleeps: it cannot rewrite its mark any more, so it
 * deletes nothing more. */
static int replace_mark(const struct document_place *p, const struct watched *w, struct err *err)
{
	const struct store_cond same = {.if_match = w->meta.etag};
	char etag[STORE_ETAG_MAX];
	int64_t put_ns = 0;
	int rc = put_mark(p, w->key, &put_ns, &same, etag, err);
	if (!rc)
		rc = document_delete_key(p, w->key, NULL, NULL, err);
	return rc == -ESTALE ? 0 : rc;
}

/* Looks at a mark in a listing. */
static int watch(const struct document_place *p, struct watched marks[MARKS],
		 const struct store_item *item, struct err *err)
{
	struct watched *w = NULL, *room = NULL;
	for (size_t i = 0; i < MARKS; i++) {
		if (strcmp(marks[i].key, item->key) == 0)
			w = &marks[i];
		else if (!marks[i].is_there)
			room = &marks[i];
	}
	if (!w && !room)
		return 0; /* it is watched as soon as another one is gone */
	const uint64_t now_ns = env_boot(p->env);
	if (!w || !is_same(&w->meta, &item->meta)) {
		w = w ? w : room;
		*w = (struct watched){.meta = item->meta, .since_ns = now_ns};
		snprintf(w->key, sizeof(w->key), "%s", item->key);
	}
	w->is_there = true;
	return now_ns - w->since_ns >= ASLEEP_NS ? replace_mark(p, w, err) : 0;
}

static int watch_marks(const struct document_place *p, const struct store_request *req,
		       struct watched marks[MARKS], struct err *err)
{
	const struct store_page *page = &req->answer.page;
	int rc = 0;
	for (size_t i = 0; i < MARKS; i++)
		marks[i].is_there = false;
	for (size_t i = 0; !rc && i < page->n; i++)
		if (is_mark(p, page->items[i].key))
			rc = watch(p, marks, &page->items[i], err);
	return rc;
}

int storage_reclaim(const struct document_place *p, const struct storage *storage, struct err *err)
{
	auto_request struct store_request *req = store_request_new(p->store, STORE_LIST);
	auto_free struct watched *marks = calloc(MARKS, sizeof(*marks));
	int rc = req && marks ? 0 : err_no_memory(err);
	for (int i = 0; !rc && i < RECLAIM_LOOKS; i++) {
		if (i)
			p->env->sleep(p->env, LOOK_NS);
		rc = storage_list_marks(p, storage, req, err);
		if (rc)
			break;
		store_run(p->store, req);
		rc = store_failure(&req->answer, err);
		if (!rc && !has_marks(p, req))
			return storage_judge_marks(p, storage, req, err) == 0
				       ? 0
				       : err_set(err, -ESTALE, "the storage was deleted");
		if (!rc)
			rc = watch_marks(p, req, marks, err);
	}
	return rc ? rc : err_set(err, -EBUSY, "the storage of the domain is being deleted");
}
