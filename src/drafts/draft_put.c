/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of one commit: see draft_put.h.
 *
 * A first attempt sends no request to find out what the bucket has: the conditions of its puts
 * check that it has what the draft was opened with. An attempt after a failed one looks the name
 * up, because the failed one may have done more than its answers said:
 *
 *   the bucket has                          the attempt
 *   what the draft was opened with          replaces it
 *   a domain with the storage of this one   has only to delete what else has the name
 *   a domain with that of an earlier one    replaces it
 *   an object with the bytes of the draft   is complete, if the draft becomes an object
 *   nothing                                 goes on, if a domain replaces an object or the reverse
 *   something else                          fails with -ESTALE
 */
#include "draft_put.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- the bytes ---- */

/* Errors of the disk that has the draft are not damage of the HDF5 file. */
static int read_snapshot(void *ctx, uint64_t offset, void *buf, size_t n, struct err *err)
{
	struct draft_put *p = ctx;
	const int rc = source_read(draft_snapshot_source(p->c->snapshot), offset, buf, n, err);
	if (rc)
		atomic_store(&p->read_failed, true);
	return rc;
}

static int prepare_snapshot(void *ctx, uint64_t offset, uint64_t n, struct source_part *part,
			    struct err *err)
{
	const struct draft_put *p = ctx;
	return source_prepare(draft_snapshot_source(p->c->snapshot), offset, n, part, err);
}

/* ---- what the bucket has ---- */

int draft_put_stale(const struct draft_put *p, struct err *err)
{
	return err_set(err, -ESTALE,
		       "%s: another program has changed it since it was opened for writing",
		       p->about->name);
}

bool draft_shown_name(const char *suffix, const char *name, char shown[STORE_KEY_MAX + 1])
{
	return names_shown(suffix, name, shown) == 0 && strcmp(shown, name) != 0;
}

/* The suffix of the domain that a commit makes. */
static const char *suffix_of(const struct draft_put *p)
{
	return bucket_new_domains(p->bucket)->suffix;
}

static void forget_names(struct draft_put *p)
{
	const struct draft_about *about = p->about;
	char shown[STORE_KEY_MAX + 1];
	names_changed(p->bucket->names, about->name);
	if (strcmp(about->path, about->name) != 0)
		names_changed(p->bucket->names, about->path);
	if (draft_shown_name(suffix_of(p), about->name, shown))
		names_changed(p->bucket->names, shown);
}

/* A domain without extension is found under the name that a mount shows. */
static int find_shown(struct draft_put *p, struct names_node **out, struct err *err)
{
	char shown[STORE_KEY_MAX + 1];
	const char *name = p->about->name;
	bool is_new;
	if (!draft_shown_name(suffix_of(p), name, shown))
		return -ENOENT;
	int rc = names_resolve_for_open(p->bucket->names, shown, out, &is_new, err);
	if (!rc && strcmp((*out)->path, name) != 0) {
		names_node_unref(*out);
		*out = NULL;
		rc = -ENOENT;
	}
	return rc;
}

/* Looks the name up. *out is NULL if nothing has the name. */
static int look_up(struct draft_put *p, struct names_node **out, struct err *err)
{
	struct err why = ERR_INIT;
	bool is_new;
	int rc = names_resolve_for_open(p->bucket->names, p->about->name, out, &is_new, &why);
	if (rc == -ENOENT)
		rc = find_shown(p, out, &why);
	if (!rc)
		return 0;
	*out = NULL;
	if (rc == -ENOENT)
		return 0;
	err_copy(err, &why);
	return rc;
}

static void set_present(struct present *t, struct names_node *n)
{
	t->node = n;
	t->kind = !n ? PRESENT_NOTHING : n->kind == NAMES_DOMAIN ? PRESENT_DOMAIN : PRESENT_OBJECT;
	t->etag = !n			    ? ""
		  : n->kind == NAMES_OBJECT ? n->meta.etag
		  : n->doc.document	    ? n->doc.document->etag
					    : "";
}

int draft_check_document(const struct names_node *n, struct err *err)
{
	if (n->doc.kind != NAMES_DOC_BROKEN && n->doc.kind != NAMES_DOC_UNLISTABLE)
		return 0;
	return err_set(err, n->doc.code ? n->doc.code : -EIO, "domain /%s: %s", n->path,
		       n->doc.why ? n->doc.why : "it has no document");
}

static bool has_version(const struct names_node *n, const char *version)
{
	char now[COMMIT_VERSION];
	return commit_version_of(n, now) == 0 && strcmp(now, version) == 0;
}

/* Returns the storage that a commit of the draft writes. */
static struct storage storage_of(const struct bucket *bucket, const struct draft *d,
				 uint32_t number)
{
	return commit_storage(bucket_new_domains(bucket), draft_id(d), number);
}

bool draft_is_storage(const struct draft_put *p, const struct names_node *n, uint32_t number)
{
	const struct storage ours = storage_of(p->bucket, p->c->draft, number);
	struct storage storage;
	return schema_storage_of(n->doc.document, &storage) && same_storage(&storage, &ours);
}

/* Returns whether a domain has the storage of a commit of this draft. */
static bool is_ours(const struct draft_put *p, const struct names_node *n)
{
	uint32_t i = p->run.oldest;
	while (i < p->run.number && !draft_is_storage(p, n, i))
		i++;
	return draft_is_storage(p, n, i);
}

/* Finds p->present after a failed attempt. Its domain without extension is not found under its own
 * name as long as an object has it. */
static int find_again(struct draft_put *p, struct err *err)
{
	struct present *t = &p->present;
	struct names_node *n = NULL;
	forget_names(p);
	int rc = find_shown(p, &n, err);
	if (rc == 0 && !is_ours(p, n)) {
		names_node_unref(n);
		n = NULL;
	}
	if (rc == -ENOENT || (rc == 0 && !n))
		rc = look_up(p, &n, err);
	if (rc)
		return rc;
	set_present(t, n);
	t->differs = !has_version(n, p->about->version);
	if (!n)
		return 0;
	rc = draft_check_document(n, err);
	if (rc)
		return rc;
	if (n->kind == NAMES_DIR || (t->differs && n->kind == NAMES_DOMAIN && !is_ours(p, n)))
		return draft_put_stale(p, err);
	return 0;
}

/* Finds the document of the domain that the draft was opened with. Usually it is cached. */
static int find_domain(struct draft_put *p, struct err *err)
{
	struct names_node *n = names_recall(p->bucket->names, p->about->name);
	if (n && !has_version(n, p->about->version)) {
		names_node_unref(n);
		n = NULL;
	}
	int rc = n ? 0 : look_up(p, &n, err);
	if (rc)
		return rc;
	set_present(&p->present, n);
	rc = n ? draft_check_document(n, err) : 0;
	if (!rc && (!n || n->kind != NAMES_DOMAIN || !has_version(n, p->about->version)))
		rc = draft_put_stale(p, err);
	return rc;
}

int draft_put_find(struct draft_put *p, struct err *err)
{
	const char *version = p->about->version;
	if (p->present.kind != PRESENT_UNKNOWN)
		return 0;
	const bool is_again = draft_put_is_again(p);
	if (is_again || p->c->is_asked) { /* the draft may be old */
		const int rc = find_again(p, err);
		return !rc && !is_again && p->present.differs ? draft_put_stale(p, err) : rc;
	}
	if (version[0] == 'd')
		return find_domain(p, err);
	if (version[0] && strncmp(version, "o:", 2) != 0)
		return err_set(err, -EINVAL, "%s: version \"%s\" of another program",
			       p->about->name, version);
	p->present.kind = version[0] ? PRESENT_OBJECT : PRESENT_NOTHING;
	p->present.etag = version[0] ? version + 2 : "";
	return 0;
}

int draft_put_check_stored(struct draft_put *p, struct err *err)
{
	const struct storage_sum *stored = p->c->stored;
	const struct document_place place = {.env = &p->bucket->env,
					     .store = p->bucket->store,
					     .schema = bucket_new_domains(p->bucket),
					     .cancelled = p->c->cancelled};
	struct storage storage;
	if (!stored || !stored->is_known || p->present.kind != PRESENT_DOMAIN ||
	    !schema_storage_of(p->present.node->doc.document, &storage) ||
	    !same_storage(&storage, &stored->storage))
		return 0;
	const int same = storage_sum_is_there(&place, stored, err);
	return same < 0 ? same : same ? 0 : draft_put_stale(p, err);
}

int draft_put_result(struct commit_result *out, enum commit_kind kind, const char *path,
		     const char *etag, struct err *err)
{
	out->kind = kind;
	const int n = snprintf(out->version, sizeof(out->version), "%c:%s",
			       kind == COMMIT_DOMAIN ? 'd' : 'o', etag);
	const int k = snprintf(out->path, sizeof(out->path), "%s", path);
	return (size_t)n < sizeof(out->version) && (size_t)k < sizeof(out->path)
		       ? 0
		       : err_set(err, -ENAMETOOLONG, "%s: the name is too long", path);
}

/* ---- begin and end ---- */

static uint32_t oldest_of(const struct commit_record *m)
{
	return m->number - (uint32_t)min_u64(m->failed, m->number);
}

bool draft_put_is_again(const struct draft_put *p)
{
	return commit_is_running(&p->before);
}

/* Returns whether no commit with this number has begun before. */
static bool is_first(const struct draft_put *p)
{
	return p->before.number < p->c->number;
}

int draft_put_begin(struct draft_put *p, struct err *err)
{
	if (p->run.state != COMMIT_NONE)
		return 0;
	const int rc = commit_note(&p->run, COMMIT_BEGUN, err);
	/* After a power loss, the next mount must know the storage of this attempt, too: another
	 * mount may have renamed the file by then. A disk that has failed must not keep the file
	 * from the bucket. */
	struct err why = ERR_INIT;
	if (!rc && draft_put_is_again(p) && is_first(p) && draft_sync(p->c->draft, &why))
		log_warning(p->bucket->log,
			    "%s: the journal does not know durably that it is stored again: %s",
			    p->about->name, why.msg);
	return rc;
}

/* Chooses the number of the storage. */
static int choose_number(struct draft_put *p, const struct draft_stat *stat, struct err *err)
{
	const struct commit_record *before = &p->before;
	if (is_first(p))
		return 0;
	/* Noting the same once more changes nothing, but fails if the draft was recovered. */
	const int rc = draft_mark(p->c->draft, stat->mark, err);
	if (rc == -EROFS)
		p->run.number =
			before->number + !(stat->is_marked && before->state != COMMIT_REFUSED);
	else if (!rc && (before->state != COMMIT_BEGUN || before->number > p->c->number))
		return err_set(err, -EINVAL, "%s: commit %u was made before", p->about->name,
			       p->c->number);
	return rc == -EROFS ? 0 : rc;
}

int draft_put_init(struct draft_put *p, const struct commit *c, struct err *err)
{
	struct draft_stat stat;
	assert(!c->is_asked || (c->is_last && !c->left));
	draft_get_stat(c->draft, &stat);
	*p = (struct draft_put){
		.c = c,
		.bucket = c->bucket,
		.about = draft_get_about(c->draft),
		.before = commit_record_decode(stat.mark),
		.run = {.draft = c->draft, .is_last = c->is_last, .number = c->number},
	};
	p->bytes = (struct source){.size = draft_snapshot_source(c->snapshot)->size,
				   .read_at = read_snapshot,
				   .prepare = prepare_snapshot,
				   .ctx = p};
	const bool is_again = draft_put_is_again(p);
	p->is_unfinished = c->is_asked && !(is_again && stat.is_marked);
	const uint64_t oldest =
		max_u64(oldest_of(&p->before), is_again && c->left ? c->left->dropped : 0);
	p->run.oldest = is_again ? (uint32_t)min_u64(oldest, c->number) : c->number;
	const int rc = choose_number(p, &stat, err);
	p->run.end = p->run.number;
	return rc;
}

/* Returns whether nobody can have seen the storage of failed commits. A domain of this draft under
 * the name shows that an answer was lost. What lies beneath a changed object may be gone from the
 * bucket, and then only the storage may have its bytes. */
static bool is_unseen(const struct draft_put *p)
{
	return p->c->left && !p->c->left->may_be_seen && p->about->kind != DRAFT_CHANGE &&
	       !(p->present.differs && p->present.kind == PRESENT_DOMAIN);
}

struct change draft_put_change(const struct draft_put *p)
{
	return (struct change){.env = &p->bucket->env,
			       .store = p->bucket->store,
			       .schema = bucket_new_domains(p->bucket),
			       .owner = p->bucket->user,
			       .now_ns = env_wall(&p->bucket->env),
			       .cancelled = p->c->cancelled,
			       .renames = p->bucket->renames};
}

void draft_put_make_room(struct draft_put *p)
{
	const struct change change = draft_put_change(p);
	struct err why = ERR_INIT;
	int rc = 0;
	while (is_unseen(p) && p->run.oldest < p->run.number && !rc) {
		const struct change_garbage left = {
			.storage = storage_of(p->bucket, p->c->draft, p->run.oldest)};
		uint64_t deleted;
		rc = change_collect(&change, p->about->path, &left, &deleted, &why);
		p->run.oldest += !rc;
		p->c->left->dropped = p->run.oldest;
	}
	if (rc)
		log_info(p->bucket->log,
			 "%s: cannot delete what commits that have failed have stored: %s",
			 p->about->name, why.msg);
}

void draft_put_drop(struct draft_put *p, const struct names_node *n)
{
	const struct storage ours = storage_of(p->bucket, p->c->draft, p->run.number);
	if (p->run.state != COMMIT_SHOWN)
		commit_go(&p->run, p->run.state == COMMIT_SENT ? COMMIT_SHOWN : COMMIT_CLEARING);
	garbage_add_early(p->bucket->garbage, n->path, n->doc.document, &ours);
}

/* Confirms the garbage that this attempt, or an earlier one, has replaced. */
static void confirm_dropped(const struct draft_put *p)
{
	for (uint32_t i = p->run.oldest; i <= p->run.number; i++) {
		const struct storage ours = storage_of(p->bucket, p->c->draft, i);
		garbage_confirm(p->bucket->garbage, &ours);
	}
}

static int expect_name(struct bucket *bucket, const struct draft *d, uint32_t number,
		       const atomic_bool *cancelled, struct err *err)
{
	const struct change change = {.env = &bucket->env,
				      .store = bucket->store,
				      .schema = bucket_new_domains(bucket),
				      .cancelled = cancelled};
	const struct storage storage = storage_of(bucket, d, number);
	return change_expect_name(&change, &storage, draft_get_about(d)->path, err);
}

/* Makes the storage of the commits [first, end) garbage, because no domain has it. If may_arrive is
 * set, the document of one of them may still arrive. A bucket that does not answer is asked once,
 * because the caller waits. */
static void drop_left(struct bucket *bucket, const struct draft *d, uint32_t first, uint32_t end,
		      bool may_arrive, const atomic_bool *cancelled)
{
	struct err why = ERR_INIT;
	int rc = 0;
	for (uint32_t i = first; i < end; i++) {
		const struct change_garbage left = {.storage = storage_of(bucket, d, i)};
		if (may_arrive && !rc)
			rc = expect_name(bucket, d, i, cancelled, &why);
		if (!rc)
			garbage_add(bucket->garbage, draft_get_about(d)->path, &left);
		else
			log_warning(bucket->log,
				    "%s: what a commit that has failed has stored below %s stays "
				    "in the bucket: %s",
				    draft_get_about(d)->name, left.storage.prefix, why.msg);
	}
}

/* Returns the first commit of those that have failed whose storage may be there. */
static uint32_t first_left(const struct commit_record *m, const struct failed_commits *left)
{
	return left->dropped > oldest_of(m) ? left->dropped : oldest_of(m);
}

void draft_commit_forget(struct bucket *bucket, struct draft *d, const struct failed_commits *left)
{
	const struct commit_record m = commit_record_of(d);
	if (commit_is_running(&m))
		drop_left(bucket, d, first_left(&m, left), m.number + 1, left->may_be_seen, NULL);
}

int draft_commit_expect(struct bucket *bucket, struct draft *d, const struct failed_commits *left,
			struct err *err)
{
	const struct commit_record m = commit_record_of(d);
	int rc = 0;
	for (uint32_t i = first_left(&m, left);
	     !rc && left->may_be_seen && commit_is_running(&m) && i <= m.number; i++)
		rc = expect_name(bucket, d, i, NULL, err);
	return rc;
}

/* Returns whether the commit can be refused for good: see COMMIT_REFUSED. Earlier processes may
 * have repeated the commit of a draft of theirs with the next number. */
static bool is_refused(const struct draft_put *p, int rc)
{
	const enum commit_state s = p->run.state;
	const bool may_be_noted = !p->c->is_asked || (s != COMMIT_NONE && !draft_put_is_again(p));
	return rc == -ESTALE && is_first(p) && may_be_noted && s != COMMIT_SENT &&
	       s != COMMIT_SHOWN;
}

/* The note is durable before the storage is deleted: otherwise a later mount could repeat the
 * commit, with the same storage. Without the note, all stays as after a failure. */
static bool refuse(struct draft_put *p)
{
	struct err why = ERR_INIT;
	int rc = commit_note(&p->run, COMMIT_REFUSED, &why);
	if (!rc)
		rc = draft_sync(p->c->draft, &why);
	if (rc)
		log_warning(p->bucket->log,
			    "%s: the journal does not know that the bucket has refused it: %s",
			    p->about->name, why.msg);
	else
		drop_left(p->bucket, p->c->draft, p->run.number, p->run.end, false, NULL);
	return p->run.state == COMMIT_REFUSED;
}

void draft_put_fail(struct draft_put *p, int rc)
{
	if (is_refused(p, rc) && refuse(p))
		return;
	if (!p->c->is_asked)
		draft_put_begin(p, NULL);
	if (p->c->left && (p->run.state == COMMIT_CLEARING || p->run.state == COMMIT_SHOWN))
		p->c->left->may_be_seen = true;
	commit_go(&p->run, commit_failure(rc));
}

/* Returns whether the document of an earlier attempt may still arrive. */
static bool may_arrive_late(const struct draft_put *p)
{
	return p->c->left ? p->c->left->may_be_seen : draft_put_is_again(p);
}

void draft_put_end(struct draft_put *p, const struct commit_result *out)
{
	const bool may_arrive = may_arrive_late(p);
	const bool is_domain = out->kind == COMMIT_DOMAIN;
	confirm_dropped(p);
	drop_left(p->bucket, p->c->draft, p->run.oldest, is_domain ? p->run.number : p->run.end,
		  may_arrive, p->c->cancelled);
	if (may_arrive && is_domain && !is_first(p) && p->run.state == COMMIT_SHOWN)
		expect_name(p->bucket, p->c->draft, p->run.number, p->c->cancelled, NULL);
	if (p->c->left)
		p->c->left->may_be_seen = false;
	commit_end(&p->run, p->bucket->log);
}

void draft_put_release(struct draft_put *p)
{
	if (p->run.state != COMMIT_NONE || draft_put_is_again(p)) {
		forget_names(p);
		snapshots_forget(p->bucket->snapshots, p->about->path);
	}
	/* A domain that is replaced may have another path. */
	if (p->puts)
		snapshots_outdate(p->bucket->snapshots,
				  p->present.kind == PRESENT_DOMAIN ? p->present.node->path
								    : p->about->path,
				  p->puts);
	p->puts = NULL;
	names_node_unref(p->present.node);
}
