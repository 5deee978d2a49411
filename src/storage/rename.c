/* SPDX-License-Identifier: Apache-2.0 */
/* See rename.h. */
#include <storage/rename.h>

#include <errno.h>
#include <string.h>

#include <storage/renames.h>

#include <storage/storage_deletion.h>
#include <storage/storage_names.h>

#define MINUTE_NS (INT64_C(60) * 1000000000)
#define DAY_NS	  (INT64_C(86400) * 1000000000)
/* For so long after a process has taken a rename over, the new name is not removed. */
#define TAKEN_NS (INT64_C(30) * 1000000000)
enum {
	EXPIRED_MAX = 16, /* old names that a claim examines */
	ADDED_MAX = 3,	  /* names that it adds */
};

struct job {
	const struct change *c;
	struct document_place place;
	const char *from, *to;
	const struct schema_document *domain, *target;
	/* False for a domain of a schema without storages: its keys are never deleted, and it has
	 * no list of names. */
	bool has_storage;
	struct storage storage;
	uint64_t number;
	bool is_open; /* the rename has begun, and may be half done */
	/* The storage of the target may get this name once more at any moment: rename_leave(). */
	bool is_guarded;
	bool is_complete; /* the claim has finished this very rename, which had been interrupted */
	struct storage_names names;
};

static struct document_place place_of(const struct change *c)
{
	return (struct document_place){
		.env = c->env, .store = c->store, .schema = c->schema, .cancelled = c->cancelled};
}

bool rename_is_refused(int rc)
{
	switch (rc) {
	case -EACCES:
	case -EPERM:
	case -EROFS:
	case -ENOSPC:
	case -EDQUOT:
	case -EINVAL:
	case -ENAMETOOLONG:
	case -ENOTDIR:
	case -EISDIR:
	case -EEXIST:
	case -ESTALE:
		return true;
	default:
		return false;
	}
}

/* ---- the record of another rename ---- */

/* Returns 1 if the document of the old name is still the one that was to be deleted, 0 if not, or a
 * negative errno. The document must lead to the storage, so that a list that somebody has damaged
 * on purpose deletes no other domain. */
static int has_old(const struct document_place *p, const struct storage_names *names,
		   struct err *err)
{
	struct schema_document *d = NULL;
	struct storage storage;
	const int rc = document_get(p, names->rename.from, &d, err);
	const bool same = !rc && schema_storage_of(d, &storage) &&
			  strcmp(d->etag, names->rename.version) == 0 &&
			  same_storage(&storage, &names->storage);
	schema_document_unref(d);
	return rc ? rc : same;
}

/* What has become of a rename that has begun: whether its new name leads to the storage */
enum {
	NOT_GIVEN,
	GIVEN,
	HALF_DONE, /* … and the old one has not been removed */
	FINISHED,  /* … and this process has just removed the old one */
};

static int progress_of(const struct document_place *p, const struct storage_names *names,
		       struct err *err)
{
	const struct rename_record *r = &names->rename;
	int rc = document_names_storage(p, r->to, &names->storage, err);
	if (rc <= 0)
		return rc < 0 ? rc : NOT_GIVEN;
	rc = has_old(p, names, err);
	return rc < 0 ? rc : rc ? HALF_DONE : GIVEN;
}

/* Notes that the bucket has refused to delete the old name. */
static void note_refused(const struct document_place *p, struct storage_names *names)
{
	if (!names->arena)
		return;
	names->rename.state = RENAME_REFUSED;
	storage_names_put(p, names, NULL);
}

/* Takes a rename over that is half done, so that no other process finishes it or removes the new
 * name meanwhile. Then deletes the old name. */
static int finish(const struct document_place *p, struct renames *renames,
		  struct storage_names *names, int *progress, struct err *err)
{
	enum document_found found = DOCUMENT_WAS_ABSENT;
	const struct rename_record *r = &names->rename;
	const uint64_t number = renames_begin(renames, p->env, &names->storage);
	renames_settle(renames, r->number); /* from now on, that of this number counts */
	names->rename.number = number;
	names->rename.state = RENAME_TAKEN;
	names->rename.began_ns = storage_names_new_time(p->env);
	int rc = storage_names_put(p, names, err);
	if (!rc)
		rc = document_delete(p, r->from, r->version, &found, err);
	if (!rc && found == DOCUMENT_WAS_THERE)
		*progress = FINISHED;
	if (rc == 0 || rc == -ESTALE)
		renames_settle(renames, number);
	else if (rename_is_refused(rc))
		note_refused(p, names);
	if (!rc)
		log_info(p->env->log, "finished an interrupted rename of /%s to /%s", r->from,
			 r->to);
	return rc;
}

/* Puts the list again, because only a new version shows what time it is by the clock of the bucket.
 */
static int renew(const struct document_place *p, struct storage_names *names, struct err *err)
{
	char key[SCHEMA_KEY_MAX + 1];
	int rc = storage_names_put(p, names, err);
	if (!rc)
		rc = storage_own_key(p, &names->storage, p->schema->storage->names, key, err);
	return rc ? rc : storage_names_now(p, key, &names->read_ns, err);
}

/* Returns 1 if the last rename in the list is younger than this, 0 if not, or a negative errno.
 * Renews the list. */
static int is_younger(const struct document_place *p, struct storage_names *names, int64_t age_ns,
		      struct err *err)
{
	const int rc = renew(p, names, err);
	return rc ? rc : names->read_ns - names->rename.began_ns < age_ns;
}

/* Finishes the last rename in the list if that is necessary, and if it is so old. *progress says
 * how far it was, or that this process has finished it. */
static int finish_last(const struct document_place *p, struct renames *renames,
		       struct storage_names *names, int64_t age_ns, int *progress, struct err *err)
{
	const struct rename_record *r = &names->rename;
	*progress = NOT_GIVEN;
	if (!rename_is_open(r->state) || renames_is_settled(renames, r->number))
		return 0;
	*progress = progress_of(p, names, err);
	if (*progress != HALF_DONE)
		return *progress < 0 ? *progress : 0;
	const int young = age_ns ? is_younger(p, names, age_ns, err) : 0;
	if (young == 1 || young == -ESTALE)
		return err_set(err, -EBUSY, "the rename of /%s to /%s may be running", r->from,
			       r->to);
	return young ? young : finish(p, renames, names, progress, err);
}

int change_finish_rename(const struct change *c, const struct storage *storage, int64_t age_ns,
			 struct err *err)
{
	const struct document_place place = place_of(c);
	auto_names struct storage_names names = {.storage = *storage};
	int progress;
	const int rc = storage_names_read(&place, &names, err);
	return rc ? rc : finish_last(&place, c->renames, &names, age_ns, &progress, err);
}

static int changed_meanwhile(const char *path, struct err *err)
{
	return err_set(err, -EBUSY,
		       "%s: another program has just changed the names of this domain; look at "
		       "them again",
		       path);
}

/* Returns 1 if another process is deleting the old name, or has just done so: then the program that
 * removes the new one may not know yet that it is the only one. Returns 0 if not, or a negative
 * errno. */
static int is_being_finished(const struct document_place *p, struct storage_names *names,
			     struct err *err)
{
	return names->rename.state == RENAME_TAKEN ? is_younger(p, names, TAKEN_NS, err) : 0;
}

/* Changes the list so that no process finishes the last rename any more. If the new name is
 * removed, its document has arrived. If the old one is removed, the document of the new one may not
 * have arrived. */
static int withdraw_last(const struct document_place *p, struct storage_names *names, bool is_old,
			 const char *path, struct err *err)
{
	struct rename_record *r = &names->rename;
	int rc = is_old ? 0 : is_being_finished(p, names, err);
	if (rc)
		return rc == 1 || rc == -ESTALE ? changed_meanwhile(path, err) : rc;
	r->state = is_old && rename_is_open(r->state) ? RENAME_WITHDRAWN : RENAME_NONE;
	r->began_ns = storage_names_new_time(p->env);
	rc = storage_names_put(p, names, err);
	/* A full bucket cannot take the list. If the old document is gone, nobody needs it. */
	if ((rc == -ENOSPC || rc == -EDQUOT) && has_old(p, names, NULL) == 0) {
		err_clear(err);
		return 0;
	}
	return rc == -ESTALE ? changed_meanwhile(path, err) : rc;
}

int rename_leave(const struct document_place *p, struct renames *renames,
		 const struct storage *storage, const char *path, struct err *err)
{
	auto_names struct storage_names names = {.storage = *storage};
	const struct rename_record *r = &names.rename;
	int rc = storage_names_read(p, &names, err);
	if (rc || !names.etag[0])
		return rc;
	if (r->state != RENAME_NONE && !renames_is_settled(renames, r->number)) {
		const bool is_old = strcmp(r->from, path) == 0;
		if (is_old ? r->state != RENAME_WITHDRAWN : strcmp(r->to, path) == 0)
			rc = withdraw_last(p, &names, is_old, path, err);
	}
	return rc ? rc : 1;
}

/* ---- 1: the claim ---- */

/* In a list that is nearly full, a day is too long. A pending name is in the list as a name, too,
 * so it can leave without a look at its document. */
static bool is_current(const struct job *j, const struct storage_name *name)
{
	const int64_t age_ns = j->names.read_ns - name->given_ns;
	if (name->is_pending)
		return renames_may_give(j->c->renames, name->rename, age_ns);
	const int64_t limit = j->names.n + EXPIRED_MAX > STORAGE_NAMES_MAX ? MINUTE_NS : DAY_NS;
	return age_ns < limit || strcmp(name->path, j->from) == 0 || strcmp(name->path, j->to) == 0;
}

/* Names leave the list after a day, if they do not lead to the storage any more. */
static int drop_old_names(struct job *j, struct err *err)
{
	struct storage_names *names = &j->names;
	unsigned int examined = 0;
	for (size_t i = 0; i < names->n && examined < EXPIRED_MAX;) {
		if (is_current(j, &names->v[i])) {
			i++;
			continue;
		}
		const int leads = names->v[i].is_pending
					  ? 0
					  : document_names_storage(&j->place, names->v[i].path,
								   &names->storage, err);
		if (leads < 0)
			return leads;
		examined++;
		if (leads)
			i++;
		else
			names->v[i] = names->v[--names->n];
	}
	return 0;
}

static int make_room(struct job *j, struct err *err)
{
	int rc = drop_old_names(j, err);
	if (rc || j->names.n + ADDED_MAX <= STORAGE_NAMES_MAX)
		return rc;
	/* Names that were young when the list was put may be old now. */
	rc = renew(&j->place, &j->names, err);
	return rc ? rc : drop_old_names(j, err);
}

/* The record of this rename replaces that of the last one, whose PUT may be so slow that it arrives
 * after the list was changed, and even after the name that this rename gives was removed. So the
 * list keeps its new name: until it cannot arrive any more, the storage is not deleted. */
static int keep_pending(struct job *j, struct err *err)
{
	const struct rename_record *r = &j->names.rename;
	const bool may_give =
		rename_may_give(r) &&
		renames_may_give(j->c->renames, r->number, j->names.read_ns - r->began_ns);
	return may_give ? storage_names_add_pending(&j->names, r, err) : 0;
}

static int enter(struct job *j, bool is_given, struct err *err)
{
	const int64_t now = storage_names_new_time(j->place.env);
	const struct rename_record record = {.state = RENAME_BEGUN,
					     .number = j->number,
					     .began_ns = now,
					     .version = j->domain->etag,
					     .from = j->from,
					     .to = j->to};
	int rc = make_room(j, err);
	if (!rc && !is_given)
		rc = keep_pending(j, err);
	if (!rc)
		rc = storage_names_add(&j->names, j->from, now, err);
	if (!rc)
		rc = storage_names_add(&j->names, j->to, now, err);
	if (!rc)
		rc = storage_names_set_rename(&j->names, &record, err);
	return rc ? rc : storage_names_put(&j->place, &j->names, err);
}

/* Returns whether another program has renamed the very document that is to be renamed. */
static bool is_renamed(const struct job *j)
{
	const struct rename_record *r = &j->names.rename;
	return strcmp(r->from, j->from) == 0 && strcmp(r->version, j->domain->etag) == 0;
}

/* Returns 1 if the list has a third name that leads to the storage, 0 if not, or a negative errno.
 */
static int has_third_name(const struct job *j, struct err *err)
{
	int leads = 0;
	for (size_t i = 0; !leads && i < j->names.n; i++) {
		const char *path = j->names.v[i].path;
		if (strcmp(path, j->from) != 0 && strcmp(path, j->to) != 0)
			leads = document_names_storage(&j->place, path, &j->storage, err);
	}
	return leads;
}

static int claim_once(struct job *j, bool reads, struct err *err)
{
	int progress;
	int rc = reads ? storage_names_read(&j->place, &j->names, err) : 0;
	if (!rc)
		rc = finish_last(&j->place, j->c->renames, &j->names, 0, &progress, err);
	if (rc)
		return rc;
	if (progress == NOT_GIVEN || !is_renamed(j))
		return enter(j, progress != NOT_GIVEN, err);
	if (progress == GIVEN || strcmp(j->names.rename.to, j->to) != 0)
		return -ESTALE;
	/* Another process that has deleted the old document may have given another name. */
	rc = progress == FINISHED ? 0 : has_third_name(j, err);
	j->is_complete = rc == 0;
	return rc > 0 ? -ESTALE : rc;
}

/* A first rename does not ask whether there is a list: its PUT shows it. */
static int claim(struct job *j, bool reads, struct err *err)
{
	int rc = storage_names_init(&j->names, &j->storage, err);
	if (rc)
		return rc;
	rc = claim_once(j, reads, err);
	if (rc == -ESTALE && !reads)
		rc = claim_once(j, true, err);
	return rc == -ESTALE
		       ? err_set(err, rc, "%s: another program is renaming the domain", j->from)
		       : rc;
}

/* To be called when the rename is complete, or no process has to finish it. */
static void settle(struct job *j)
{
	renames_settle(j->c->renames, j->number);
	j->is_open = false;
}

/* To be called when the rename has certainly changed nothing. If this fails, the next change drops
 * the record, because its new name does not lead to the storage. If `is_deleted` is set, the
 * storage is gone, and this list is all that is left of it. */
static void withdraw(struct job *j, bool is_deleted)
{
	char key[SCHEMA_KEY_MAX + 1];
	const struct document_place *p = &j->place;
	settle(j);
	if (!j->has_storage)
		return;
	j->names.rename.state = RENAME_NONE;
	if (!is_deleted)
		storage_names_put(p, &j->names, NULL);
	else if (!storage_own_key(p, &j->storage, p->schema->storage->names, key, NULL))
		document_delete_key(p, key, j->names.etag, NULL, NULL);
}

/* ---- 2 and 3 ---- */

static struct store_cond target_condition(const struct job *j)
{
	return (struct store_cond){.if_none_match = j->target ? NULL : "*",
				   .if_match = j->target ? j->target->etag : NULL};
}

/* Before a step that cannot be taken back, this process asks whether the storage is being deleted.
 * The list names the rename already, so a deletion that has not looked at it yet stops. */
static int check_storage(struct job *j, struct err *err)
{
	const int rc = j->has_storage ? storage_is_named(&j->place, &j->storage, err) : 0;
	if (rc)
		withdraw(j, rc == -ESTALE);
	return rc;
}

static int move(struct job *j, struct err *err)
{
	char from[SCHEMA_KEY_MAX + 1], to[SCHEMA_KEY_MAX + 1];
	const struct store_cond cond = target_condition(j);
	struct store_meta meta;
	int rc = store_moves(j->place.store) ? check_storage(j, err) : -EOPNOTSUPP;
	if (!rc)
		rc = document_key(&j->place, j->from, from, sizeof(from), err);
	if (!rc)
		rc = document_key(&j->place, j->to, to, sizeof(to), err);
	return rc ? rc : store_move(j->place.store, from, j->domain->etag, to, &cond, &meta, err);
}

/* Puts the document of the new name. `beside` is a request that is sent side by side, or NULL. */
static int put_new(struct job *j, struct store_request *beside, char etag[STORE_ETAG_MAX],
		   struct err *err)
{
	const struct document_place *p = &j->place;
	auto_request struct store_request *put = store_request_new(p->store, STORE_PUT);
	auto_bytes struct bytes text = {0};
	struct store_request *const both[] = {put, beside};
	struct domain_info info = j->domain->info;
	if (!put)
		return err_no_memory(err);
	p->env->random(p->env, &info.nonce, sizeof(info.nonce));
	int rc = p->schema->documents->emit(&info, &text, err);
	if (!rc)
		rc = document_key(p, j->to, put->key, put->room, err);
	if (rc)
		return rc;
	const struct piece piece = {text.data, text.len};
	put->pieces = &piece;
	put->n_pieces = 1;
	put->cond = target_condition(j);
	put->cancelled = cancelled_by(p->cancelled);
	store_run_all(p->store, both, beside ? 2 : 1);
	memcpy(etag, put->answer.meta.etag, STORE_ETAG_MAX);
	return store_failure(&put->answer, err);
}

/* Checks that the old name still leads to the domain: another program may have removed or replaced
 * it before the list named this rename. */
static int check_old_name(struct job *j, struct err *err)
{
	const struct document_place *p = &j->place;
	char key[SCHEMA_KEY_MAX + 1];
	struct store_meta meta;
	int rc = document_key(p, j->from, key, sizeof(key), err);
	if (rc)
		return rc;
	rc = store_look(p->store, key, p->cancelled, &meta, err);
	if (rc > 0 && strcmp(meta.etag, j->domain->etag) == 0)
		return 0;
	if (rc >= 0)
		rc = err_set(err, -ESTALE, "%s: another program has removed or changed it",
			     j->from);
	withdraw(j, false);
	return rc;
}

/* Gives the domain the name of another one, or renames a domain of another schema. Checks first
 * what add_name() checks side by side. */
static int replace_name(struct job *j, struct err *err)
{
	char etag[STORE_ETAG_MAX];
	int rc = check_storage(j, err);
	if (!rc)
		rc = check_old_name(j, err);
	return rc ? rc : put_new(j, NULL, etag, err);
}

/* Gives the domain a name that no other has, and checks the storage side by side. */
static int add_name(struct job *j, struct err *err)
{
	const struct document_place *p = &j->place;
	auto_request struct store_request *marks = store_request_new(p->store, STORE_LIST);
	struct err ignored = ERR_INIT;
	char etag[STORE_ETAG_MAX] = "";
	if (!marks)
		return err_no_memory(err);
	int rc = storage_list_marks(p, &j->storage, marks, err);
	if (!rc)
		rc = put_new(j, marks, etag, err);
	if (rc || storage_judge_marks(p, &j->storage, marks, &ignored) == 0)
		return rc;
	rc = storage_is_named(p, &j->storage, err);
	if ((rc == -ESTALE || rc == -EBUSY) && !document_delete(p, j->to, etag, NULL, &ignored))
		withdraw(j, rc == -ESTALE);
	return rc;
}

/* Returns whether the list says that another process has finished this rename. */
static bool is_finished(const struct job *j)
{
	const struct rename_record *r = &j->names.rename;
	return rename_is_open(r->state) && r->number != j->number &&
	       strcmp(r->from, j->from) == 0 && strcmp(r->to, j->to) == 0;
}

/* Finds out why the document of the old name is gone. If `is_ours` is set, perhaps this process has
 * deleted it, and has had no answer. A process that has finished this rename may have found it
 * gone, too. If another rename has deleted it, the name that the other one has given is in the
 * list. Returns 0 if the rename is complete. */
static int explain_gone(struct job *j, bool is_ours, struct err *err)
{
	int rc = j->has_storage ? storage_names_read(&j->place, &j->names, err) : 0;
	if (rc)
		return rc;
	is_ours &= !j->has_storage ||
		   (rename_is_open(j->names.rename.state) && j->names.rename.number == j->number);
	if (is_ours || (j->has_storage && is_finished(j)))
		rc = j->has_storage ? has_third_name(j, err) : 0;
	else
		rc = 1;
	if (rc <= 0)
		return rc;
	return err_set(err, -EBUSY,
		       "%s: another program has removed or renamed it at the same moment; the "
		       "domain was given the name /%s",
		       j->from, j->to);
}

static int drop_name(struct job *j, struct err *err)
{
	enum document_found found;
	int rc = document_delete(&j->place, j->from, j->domain->etag, &found, err);
	if (rc == 0 || rc == -ESTALE)
		settle(j);
	if (rc == 0 && found == DOCUMENT_WAS_THERE)
		return 0;
	if (rc == 0)
		return explain_gone(j, found == DOCUMENT_MAY_BE_OURS, err);
	/* A repetition may find another domain, and put it over the new name. */
	if (rc == -ESTALE)
		return err_set(err, -EBUSY,
			       "%s: another program has changed it at the same moment; the domain "
			       "was given the name /%s",
			       j->from, j->to);
	if (rename_is_refused(rc)) {
		note_refused(&j->place, &j->names);
		j->is_open = false;
	}
	return err_wrap(err, rc, "the domain has both names, /%s and /%s", j->from, j->to);
}

static int run(struct job *j, bool *is_given, struct err *err)
{
	struct err why = ERR_INIT;
	int rc = move(j, &why);
	*is_given = !rc;
	if (rc == 0) {
		settle(j);
		return 0;
	}
	if (rc != -EOPNOTSUPP && rc != -EXDEV) {
		err_copy(err, &why);
	} else {
		rc = j->target || !j->has_storage ? replace_name(j, err) : add_name(j, err);
		*is_given = !rc;
		if (!rc)
			return drop_name(j, err);
	}
	if (rename_is_refused(rc) && j->is_open)
		withdraw(j, false);
	if (rc == -ESTALE && j->is_guarded)
		return changed_meanwhile(j->to, err);
	return rc == -EEXIST ? err_set(err, rc, "%s: it exists", j->to) : rc;
}

int change_rename_domain(const struct change *c, const char *from,
			 const struct schema_document *domain, const char *to,
			 const struct schema_document *target, struct change_garbage *out,
			 struct err *err)
{
	struct job j = {.c = c,
			.place = place_of(c),
			.from = from,
			.to = to,
			.domain = domain,
			.target = target};
	struct storage replaced;
	bool is_given = false;
	*out = (struct change_garbage){0};
	/* The new document is put by the schema of new domains, and must be one of the old kind. */
	if (domain->schema->documents != c->schema->documents)
		return err_set(err, -EOPNOTSUPP, "%s: domains of schema %s cannot be renamed", from,
			       domain->schema->name);
	j.has_storage = schema_storage_of(domain, &j.storage);
	const bool replaces = schema_storage_of(target, &replaced) &&
			      !(j.has_storage && same_storage(&replaced, &j.storage));
	int rc = replaces ? rename_leave(&j.place, c->renames, &replaced, to, err) : 0;
	if (rc < 0)
		return rc;
	j.is_guarded = rc == 1;
	const bool is_known = renames_knows(c->renames, &j.storage);
	j.number = renames_begin(c->renames, c->env, &j.storage);
	rc = j.has_storage ? claim(&j, is_known, err) : 0;
	j.is_open = !rc && !j.is_complete;
	is_given = j.is_complete;
	if (j.is_open)
		rc = run(&j, &is_given, err);
	else
		settle(&j);
	if (is_given && replaces)
		*out = (struct change_garbage){.storage = replaced};
	out->half_done = rc && j.is_open && j.has_storage;
	storage_names_release(&j.names);
	return rc;
}
