/* SPDX-License-Identifier: Apache-2.0 */
/* See storage_deletion.h. */
#include <storage/storage_deletion.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <base/emit.h>
#include <base/frame.h>
#include <base/hex.h>
#include <storage/renames.h>

#include <storage/storage_names.h>

#define HOUR_NS	 (INT64_C(3600) * 1000000000)
#define DAY_NS	 (24 * HOUR_NS)
#define PAUSE_NS (UINT64_C(250) * 1000000)

static const char magic[] = "HSMDELET";
enum { VERSION = 1, DELETION = 1 /* the type of the record */, RECORD = 8, DIGITS = 16 };
enum {
	LOOKS = 8,   /* at a list that changes */
	WAITS = 40,  /* pauses, for deletions to end */
	LISTED = 64, /* objects in a listing: the document of the root group, marks, the list */
};

/* ---- the marks ---- */

struct mark {
	char key[SCHEMA_KEY_MAX + 1];
	char etag[STORE_ETAG_MAX];
	int64_t put_ns;
};

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

static int put_mark(const struct document_place *p, const struct storage *storage, struct mark *m,
		    struct err *err)
{
	auto_bytes struct bytes text = {0};
	const struct store_cond none = {0};
	struct document_answer answer;
	uint8_t random[DIGITS / 2];
	char name[64 + DIGITS];
	const int n = snprintf(name, sizeof(name), "%s", p->schema->storage->deletion);
	p->env->random(p->env, random, sizeof(random));
	hex_encode(random, sizeof(random), name + n);
	m->put_ns = env_wall(p->env);
	int rc = storage_own_key(p, storage, name, m->key, err);
	if (!rc && emit_mark(m->put_ns, &text))
		rc = err_no_memory(err);
	if (!rc)
		rc = document_write(p, m->key, text.data, text.len, &none, &answer, err);
	if (!rc)
		memcpy(m->etag, answer.etag, sizeof(m->etag));
	return rc;
}

static int drop_mark(const struct document_place *p, const struct mark *m, struct err *err)
{
	return document_delete_key(p, m->key, NULL, NULL, err);
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
static int check_renames(const struct document_place *p, const struct mark *m,
			 struct renames *renames, const struct storage_names *names,
			 struct err *err)
{
	int64_t now_ns;
	if (!awaited(names, renames, names->read_ns))
		return 0;
	const int rc = storage_names_now(p, m->key, &now_ns, err);
	const char *path = rc ? NULL : awaited(names, renames, now_ns);
	return path ? err_set(err, -EBUSY, "a rename to /%s may not have ended", path) : rc;
}

/* Returns 1 if a name leads to the storage, and 0 if none does. Fails with -EBUSY if a rename may
 * not have ended. */
static int look_at_list(const struct document_place *p, const struct mark *m,
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
			rc = check_renames(p, m, renames, &names, err);
		/* Without a list there was nothing that took time. */
		if (!rc && seen[0])
			rc = storage_names_read(p, &names, err);
		if (!rc && strcmp(seen, names.etag) == 0)
			return 0;
	}
	return rc ? rc : err_set(err, -EBUSY, "the names of the domain change all the time");
}

static int has_name(const struct document_place *p, const struct mark *m, struct renames *renames,
		    const char *path, const struct storage *storage, struct err *err)
{
	const int rc = storage_is_shared(p, path, storage, err);
	return rc ? rc : look_at_list(p, m, renames, storage, err);
}

/* ---- deleting ---- */

/* The list and the mark are deleted last: if this process ends before, the next one needs them. */
static int delete_all(const struct document_place *p, const struct mark *m,
		      const struct storage *storage, uint64_t *deleted, struct err *err)
{
	char prefix[SCHEMA_KEY_MAX + 1], list[SCHEMA_KEY_MAX + 1], root[SCHEMA_KEY_MAX + 1];
	const struct purge_order order = {.first = root, .kept = {list, m->key}};
	int rc = storage_own_key(p, storage, "", prefix, err);
	if (!rc)
		rc = storage_own_key(p, storage, p->schema->storage->names, list, err);
	if (!rc)
		rc = storage_root_key(p, storage, root, err);
	if (!rc && env_wall(p->env) - m->put_ns > HOUR_NS / 2)
		rc = err_set(err, -EBUSY, "looking for names has taken too long");
	if (!rc)
		rc = storage_purge(p, prefix, &order, deleted, err);
	if (!rc)
		rc = document_delete_key(p, list, NULL, NULL, err);
	return rc ? rc : drop_mark(p, m, err);
}

int storage_delete(const struct document_place *p, struct renames *renames, const char *path,
		   const struct storage *storage, uint64_t *deleted, struct err *err)
{
	struct mark m;
	struct err ignored = ERR_INIT;
	*deleted = 0;
	int rc = put_mark(p, storage, &m, err);
	if (rc)
		return rc;
	rc = has_name(p, &m, renames, path, storage, err);
	if (rc == 0)
		return delete_all(p, &m, storage, deleted, err);
	drop_mark(p, &m, &ignored);
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
