/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deletes a draft for hsmount/recover.h, and what its commits have stored.
 *
 * A commit puts the document of the domain after all objects. So storage without a root group has
 * never been a domain, and is deleted. Neither has that of a commit that the bucket has refused
 * (commit_record.is_refused). Other storage may be the domain of the draft, which another program
 * may have renamed since: it is left unless nothing is there.
 */
#include "left_drafts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <storage/change.h>
#include <update/complete.h>
#include <drafts/draft_commit.h>
#include <engine/parts.h>
#include <overlay/draft_plan.h>
#include <store/store.h>

/* If the number of the last commit is lost with the map, as many are tried. */
enum { NUMBERS_TRIED = 16 };

struct drop {
	const struct recover_found *found;
	struct engine *e;
	char path[STORE_KEY_MAX + 1]; /* of the file in the bucket */
	uint32_t first, end;	      /* numbers of commits that may have left storage */
	uint32_t refused;	      /* the number of the commit that was refused, or 0 */
	void (*line)(void *arg, const char *line);
	void *arg;
};

static void __attribute__((format(printf, 2, 3))) say(const struct drop *d, const char *fmt, ...)
{
	auto_str struct str text = {0};
	va_list ap;
	va_start(ap, fmt);
	str_addv(&text, fmt, ap);
	va_end(ap);
	if (d->line && str_ok(&text))
		d->line(d->arg, str_text(&text));
}

/* ---- storage ---- */

/* Returns 1 if any object has a prefix, 0 if not, or a negative errno. */
static int has_objects(const struct drop *d, const char *prefix, struct err *err)
{
	auto_request struct store_request *req = store_request_new(d->e->bucket.store, STORE_LIST);
	if (!req)
		return err_no_memory(err);
	store_request_key(req, prefix);
	store_run(d->e->bucket.store, req);
	const int rc = store_failure(&req->answer, err);
	return rc ? rc : req->answer.page.n > 0;
}

static int purge(const struct drop *d, uint32_t number, struct err *err)
{
	const struct change c = {.env = &d->e->bucket.env,
				 .store = d->e->bucket.store,
				 .schema = bucket_new_domains(&d->e->bucket),
				 .now_ns = env_wall(&d->e->bucket.env)};
	const struct change_garbage g = {.storage = commit_storage(c.schema, d->found->id, number)};
	const char *prefix = g.storage.prefix;
	uint64_t deleted;
	int rc = has_objects(d, prefix, err);
	if (rc <= 0)
		return rc;
	/* A domain may have a storage with a root group. */
	rc = number == d->refused ? 0 : change_storage_has_root(&c, &g.storage, err);
	if (rc > 0)
		say(d, "kept the objects below %s: a domain may have them", prefix);
	if (rc)
		return rc < 0 ? rc : 0;
	rc = change_collect(&c, d->path, &g, &deleted, err);
	if (!rc && deleted)
		say(d, "deleted %" PRIu64 " object%s below %s that its commit had stored", deleted,
		    deleted == 1 ? "" : "s", prefix);
	return rc;
}

/* An error is no reason to keep the draft. */
static void purge_all(struct drop *d, const struct engine_options *bucket)
{
	struct err err = ERR_INIT;
	int rc = store_key_ok(d->path)
			 ? recover_open_bucket(d->found, bucket, NULL, &d->e, &err)
			 : err_set(&err, -EINVAL, "\"%s\": no object can have this path", d->path);
	for (uint32_t n = d->first; !rc && n < d->end; n++)
		rc = purge(d, n, &err);
	if (rc)
		say(d, "objects that its commit has stored may be left in the bucket: %s", err.msg);
	if (d->e)
		engine_close(d->e);
	d->e = NULL;
}

/* ---- what the plan of a changed domain has put ---- */

static void withdraw(const struct drop *d, struct draft *draft, struct plan *plan)
{
	const struct apply apply = {.env = &d->e->bucket.env,
				    .store = d->e->bucket.store,
				    .draft = draft,
				    .plan = plan};
	const struct complete complete = {
		.apply = &apply, .schema = bucket_new_domains(&d->e->bucket), .path = d->path};
	const uint64_t n = complete_withdraw(&complete);
	if (n)
		say(d, "deleted %" PRIu64 " object%s that its commit had stored", n,
		    n == 1 ? "" : "s");
}

/* An error is no reason to keep the draft. */
static void withdraw_plan(struct drop *d, struct draft *draft, const struct engine_options *bucket)
{
	struct err err = ERR_INIT;
	struct plan plan;
	if (draft_get_plan(draft, &plan, NULL))
		return;
	say(d, "the domain %s may have a part of the changes: its commit was interrupted", d->path);
	const int rc =
		plan.subject.root ? recover_open_bucket(d->found, bucket, NULL, &d->e, &err) : 0;
	if (!rc && d->e)
		withdraw(d, draft, &plan);
	if (rc)
		say(d, "objects that its commit has stored may be left in the bucket: %s", err.msg);
	if (d->e)
		engine_close(d->e);
	plan_release(&plan);
}

/* ---- the draft ---- */

/* Finds out which commits may have left storage. A commit that has ended has left none. */
static void set_numbers(struct drop *d, uint64_t mark)
{
	const struct commit_record m = commit_record_decode(mark);
	if (!commit_is_running(&m))
		return;
	d->first = m.number - (uint32_t)min_u64(m.failed, m.number);
	d->end = m.number + 2; /* a later mount may have repeated it, with the next number */
	d->refused = m.state == COMMIT_REFUSED ? m.number : 0;
}

static int note_path(void *ctx, const struct journal_item *item)
{
	struct drop *d = ctx;
	if (strcmp(item->id, d->found->id) == 0 && item->about)
		snprintf(d->path, sizeof(d->path), "%s", item->about->path);
	return 0;
}

int engine_drafts_drop(struct engine_drafts *s, const char *id, const struct engine_options *bucket,
		       void (*line)(void *arg, const char *line), void *arg, struct err *err)
{
	auto_found struct recover_found found;
	struct draft *draft;
	struct err why = ERR_INIT;
	int rc = recover_find(s, id, &found, err);
	if (rc)
		return rc;
	struct drop d = {.found = &found, .line = line, .arg = arg};
	rc = draft_open(found.journal, found.id, NULL, &draft, &why);
	if (!rc) {
		/* The draft is locked from before its storage is deleted. */
		struct draft_stat stat;
		draft_get_stat(draft, &stat);
		snprintf(d.path, sizeof(d.path), "%s", draft_get_about(draft)->path);
		set_numbers(&d, stat.mark);
		if (d.first < d.end)
			purge_all(&d, bucket);
		withdraw_plan(&d, draft, bucket);
		return draft_drop(draft, err);
	}
	/* -ENOENT means that it was set aside earlier. */
	if (rc == -ENOENT || rc == -EBADMSG || rc == -ENODATA) {
		journal_list(d.found->journal, note_path, &d, NULL);
		d.first = 1;
		d.end = 1 + NUMBERS_TRIED;
		purge_all(&d, bucket);
		return journal_drop(d.found->journal, d.found->id, err);
	}
	err_copy(err, &why);
	return rc;
}
