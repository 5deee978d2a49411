/* SPDX-License-Identifier: Apache-2.0 */
/* See storage_names.h. */
#include <storage/storage_names.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <base/emit.h>
#include <base/frame.h>

static const char magic[] = "HSMNAMES";
enum { VERSION = 1, NAME = 1, RENAME = 2, PENDING = 3 /* types of records */ };
enum { ENTERING = 8 /* attempts, beside others who change the list */ };
enum { ARENA = 16 << 20, RECORD_MAX = 64 + STORE_ETAG_MAX + 2 * (STORE_KEY_MAX + 1) };

/* ---- texts ---- */

static const char *copy(struct storage_names *names, const char *text)
{
	return arena_strndup(names->arena, text, strlen(text));
}

static struct storage_name *find(const struct storage_names *names, const struct storage_name *like)
{
	for (size_t i = 0; i < names->n; i++) {
		struct storage_name *name = &names->v[i];
		if (name->is_pending == like->is_pending && name->rename == like->rename &&
		    strcmp(name->path, like->path) == 0)
			return name;
	}
	return NULL;
}

static int add(struct storage_names *names, const struct storage_name *added, struct err *err)
{
	struct storage_name *name = find(names, added);
	if (!name && names->n == STORAGE_NAMES_MAX)
		return err_set(err, -ENOSPC, "%s: the domain has had %d names within a minute",
			       added->path, STORAGE_NAMES_MAX);
	if (!name && names->n == names->room) {
		const size_t room = names->room ? 2 * names->room : 8;
		struct storage_name *v = reallocarray(names->v, room, sizeof(*v));
		if (!v)
			return err_no_memory(err);
		names->v = v;
		names->room = room;
	}
	if (!name) {
		name = &names->v[names->n];
		*name = *added;
		name->path = copy(names, added->path);
		if (!name->path)
			return err_no_memory(err);
		names->n++;
	}
	name->given_ns = added->given_ns;
	return 0;
}

int storage_names_add(struct storage_names *names, const char *path, int64_t now_ns,
		      struct err *err)
{
	return add(names, &(struct storage_name){.given_ns = now_ns, .path = path}, err);
}

int storage_names_add_pending(struct storage_names *names, const struct rename_record *r,
			      struct err *err)
{
	const struct storage_name name = {
		.given_ns = r->began_ns, .path = r->to, .is_pending = true, .rename = r->number};
	return add(names, &name, err);
}

int storage_names_set_rename(struct storage_names *names, const struct rename_record *r,
			     struct err *err)
{
	names->rename = *r;
	if (r->state == RENAME_NONE)
		return 0;
	names->rename.version = copy(names, r->version);
	names->rename.from = copy(names, r->from);
	names->rename.to = copy(names, r->to);
	return names->rename.version && names->rename.from && names->rename.to ? 0
									       : err_no_memory(err);
}

int storage_names_init(struct storage_names *names, const struct storage *storage, struct err *err)
{
	*names = (struct storage_names){.storage = *storage, .arena = arena_new(ARENA)};
	return names->arena ? 0 : err_no_memory(err);
}

void storage_names_release(struct storage_names *names)
{
	free(names->v);
	arena_free(names->arena);
	*names = (struct storage_names){0};
}

/* ---- the object ---- */

static int emit_name(const struct storage_name *name, struct bytes *out)
{
	uint8_t body[RECORD_MAX];
	struct emit e = emit_to(body, sizeof(body));
	if (name->is_pending)
		emit_u64(&e, name->rename);
	emit_u64(&e, (uint64_t)name->given_ns);
	emit_bytes(&e, name->path, strlen(name->path) + 1);
	return e.bad ? -ENAMETOOLONG
		     : frame_append(out, name->is_pending ? PENDING : NAME, body, e.pos);
}

static int emit_rename(const struct rename_record *r, struct bytes *out)
{
	uint8_t body[RECORD_MAX];
	struct emit e = emit_to(body, sizeof(body));
	emit_u64(&e, r->number);
	emit_u32(&e, (uint32_t)r->state);
	emit_u32(&e, 0);
	emit_u64(&e, (uint64_t)r->began_ns);
	emit_bytes(&e, r->version, strlen(r->version) + 1);
	emit_bytes(&e, r->from, strlen(r->from) + 1);
	emit_bytes(&e, r->to, strlen(r->to) + 1);
	return e.bad ? -ENAMETOOLONG : frame_append(out, RENAME, body, e.pos);
}

int storage_names_emit(const struct storage_names *names, struct bytes *out)
{
	int rc = frame_put_head(out, magic, VERSION);
	for (size_t i = 0; !rc && i < names->n; i++)
		rc = emit_name(&names->v[i], out);
	return rc || names->rename.state == RENAME_NONE ? rc : emit_rename(&names->rename, out);
}

static int parse_name(struct cursor *c, bool is_pending, struct storage_names *out, struct err *err)
{
	struct storage_name name = {.is_pending = is_pending};
	name.rename = is_pending ? cur_u64(c) : 0;
	name.given_ns = (int64_t)cur_u64(c);
	name.path = cur_cstr(c, NULL);
	if (!cur_ok(c) || cur_left(c) || name.given_ns == INT64_MIN || !store_key_ok(name.path) ||
	    find(out, &name))
		return err_set(err, -EBADMSG, "a record of a name is not valid");
	return add(out, &name, err);
}

static int parse_rename(struct cursor *c, struct storage_names *out, struct err *err)
{
	struct rename_record r = {.number = cur_u64(c)};
	const uint32_t state = cur_u32(c), zero = cur_u32(c);
	r.began_ns = (int64_t)cur_u64(c);
	r.version = cur_cstr(c, NULL);
	r.from = cur_cstr(c, NULL);
	r.to = cur_cstr(c, NULL);
	if (!cur_ok(c) || cur_left(c) || zero || state < RENAME_BEGUN || state > RENAME_TAKEN ||
	    r.began_ns == INT64_MIN || strlen(r.version) >= STORE_ETAG_MAX ||
	    !store_key_ok(r.from) || !store_key_ok(r.to) || strcmp(r.from, r.to) == 0 ||
	    out->rename.state != RENAME_NONE)
		return err_set(err, -EBADMSG, "the record of the last rename is not valid");
	r.state = (enum rename_state)state;
	return storage_names_set_rename(out, &r, err);
}

int storage_names_parse(const void *bytes, size_t n, struct storage_names *out, struct err *err)
{
	struct cursor c = cursor_of(bytes, n), body;
	uint16_t type;
	int got = 0;
	int rc = frame_take_head(&c, magic, VERSION, err);
	while (!rc && (got = frame_next(&c, &type, &body)) == 1) {
		if (type == NAME || type == PENDING)
			rc = parse_name(&body, type == PENDING, out, err);
		else if (type == RENAME)
			rc = parse_rename(&body, out, err);
		else
			rc = err_set(err, -EBADMSG, "a record has the unknown type %u", type);
	}
	return rc || got == 0 ? rc : err_set(err, got, "a record is torn or damaged");
}

int storage_own_key(const struct document_place *p, const struct storage *storage, const char *name,
		    char key[SCHEMA_KEY_MAX + 1], struct err *err)
{
	const int n = snprintf(key, SCHEMA_KEY_MAX + 1, "%s%s", storage->prefix, name);
	return n <= SCHEMA_KEY_MAX
		       ? 0
		       : err_set(err, -ENAMETOOLONG, "the path of the storage is too long");
}

/* ---- times ---- */

int64_t storage_names_new_time(const struct env *env)
{
	return -env_wall(env);
}

static int64_t known_time(int64_t ns, int64_t stored_ns)
{
	return ns >= 0 ? ns : stored_ns > 0 ? stored_ns : -ns;
}

/* Gives the new records their time. */
static void set_times(struct storage_names *names, int64_t stored_ns, int64_t wall_ns)
{
	for (size_t i = 0; i < names->n; i++)
		names->v[i].given_ns = known_time(names->v[i].given_ns, stored_ns);
	names->rename.began_ns = known_time(names->rename.began_ns, stored_ns);
	names->read_ns = stored_ns > 0 ? stored_ns : wall_ns;
}

int storage_names_now(const struct document_place *p, const char *key, int64_t *now_ns,
		      struct err *err)
{
	struct store_meta meta = {0};
	const int rc = store_look(p->store, key, p->cancelled, &meta, err);
	*now_ns = meta.mtime_ns > 0 ? meta.mtime_ns : env_wall(p->env);
	if (!rc)
		return err_set(err, -EBUSY, "%s: another program has removed it", key);
	return rc < 0 ? rc : 0;
}

int storage_names_read(const struct document_place *p, struct storage_names *names, struct err *err)
{
	char key[SCHEMA_KEY_MAX + 1];
	auto_request struct store_request *req = NULL;
	const struct storage storage = names->storage;
	storage_names_release(names);
	int rc = storage_names_init(names, &storage, err);
	if (!rc)
		rc = storage_own_key(p, &storage, p->schema->storage->names, key, err);
	if (!rc)
		rc = document_read(p, key, &req, err);
	if (rc || !req)
		return rc;
	struct err why = ERR_INIT;
	rc = storage_names_parse(req->answer.body.data, req->answer.body.len, names, &why);
	if (rc)
		return err_set(err, rc == -ENOMEM ? rc : -EIO, "list of names %s: %s", key,
			       why.msg);
	memcpy(names->etag, req->answer.meta.etag, sizeof(names->etag));
	set_times(names, req->answer.meta.mtime_ns, env_wall(p->env));
	return 0;
}

int storage_names_put(const struct document_place *p, struct storage_names *names, struct err *err)
{
	char key[SCHEMA_KEY_MAX + 1];
	auto_bytes struct bytes text = {0};
	struct document_answer answer;
	const bool exists = names->etag[0];
	const struct store_cond cond = {.if_match = exists ? names->etag : NULL,
					.if_none_match = exists ? NULL : "*"};
	int rc = storage_names_emit(names, &text);
	if (rc)
		return err_errno(err, rc, "list of names");
	rc = storage_own_key(p, &names->storage, p->schema->storage->names, key, err);
	if (!rc)
		rc = document_write(p, key, text.data, text.len, &cond, &answer, err);
	if (rc == -EEXIST)
		rc = -ESTALE;
	if (!rc)
		memcpy(names->etag, answer.etag, sizeof(names->etag));
	return rc;
}

/* ---- what the names lead to ---- */

int storage_names_leads(const struct document_place *p, const struct storage_names *names,
			const char **path, struct err *err)
{
	int rc = 0;
	for (size_t i = 0; !rc && i < names->n; i++) {
		*path = names->v[i].path;
		rc = document_names_storage(p, *path, &names->storage, err);
	}
	return rc;
}

int storage_names_find(const struct document_place *p, const struct storage *storage,
		       char path[STORE_KEY_MAX + 1], struct err *err)
{
	auto_names struct storage_names names = {.storage = *storage};
	const char *found = NULL;
	int rc = storage_names_read(p, &names, err);
	if (!rc)
		rc = storage_names_leads(p, &names, &found, err);
	if (rc > 0)
		strcpy(path, found);
	return rc;
}

int storage_names_enter(const struct document_place *p, struct storage_names *names,
			const char *path, const struct rename_record *awaited, struct err *err)
{
	int rc = -ESTALE;
	for (int i = 0; rc == -ESTALE && i < ENTERING; i++) {
		rc = storage_names_read(p, names, err);
		if (!rc && awaited)
			rc = storage_names_add_pending(names, awaited, err);
		else if (!rc)
			rc = storage_names_add(names, path, storage_names_new_time(p->env), err);
		if (!rc)
			rc = storage_names_put(p, names, err);
	}
	return rc;
}
