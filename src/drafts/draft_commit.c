/* SPDX-License-Identifier: Apache-2.0 */
/* See draft_commit.h: decides what a draft becomes. draft_put.h has the parts of a commit. */
#include "draft_put.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <drafts/close_state.h>

/* ---- the commit ---- */

/* Checks whether an unfinished draft may replace what the bucket has: see commit.is_asked. */
static int check_replaced(const struct draft_put *p, enum close_state state, const char *why,
			  struct err *err)
{
	static const char *const names[] = {
		[PRESENT_DOMAIN] = "a domain", [PRESENT_OBJECT] = "a plain file"};
	const enum present_kind there = p->present.kind;
	if (!p->is_unfinished || there == PRESENT_NOTHING || state == CLOSE_STATE_CLOSED)
		return 0;
	if (state == CLOSE_STATE_UNKNOWN)
		return there == PRESENT_OBJECT ? 0
					       : err_set(err, -EIO,
							 "it is no HDF5 file, and would replace a "
							 "domain");
	return err_set(err, -EIO, "it is not complete, and would replace %s: %s", names[there],
		       why);
}

/* Returns whether a directory above the draft is that of a store. The program has just looked these
 * directories up. */
static bool is_in_store(const struct draft_put *p)
{
	auto_free char *dir = strdup(p->about->name);
	for (size_t n = dir ? names_parent_len(dir) : 0; n > 0; n = names_parent_len(dir)) {
		dir[n] = '\0';
		auto_names_node struct names_node *node = names_recall(p->bucket->names, dir);
		if (node && node->is_marked)
			return true;
	}
	return false;
}

static int store_domain(struct draft_put *p, struct commit_result *out, struct err *err)
{
	if (p->present.kind != PRESENT_DOMAIN && is_in_store(p)) {
		snprintf(out->kept, sizeof(out->kept),
			 "it is in the directory of a store, which contains no domains");
		return DRAFT_REFUSED;
	}
	const int result = draft_put_domain(p, out, err);
	const int rc =
		result == DRAFT_DAMAGED ? check_replaced(p, CLOSE_STATE_OPEN, out->kept, err) : 0;
	return rc ? rc : result;
}

/* Stores a file that is longer than its superblock says, and was copied, as a domain: what lies
 * behind its end does not belong to it. If that fails because structures are there, the end is the
 * reason why the file stays as it is. */
static int store_longer(struct draft_put *p, struct commit_result *out, struct err *err)
{
	char why[sizeof(out->kept)];
	if (p->is_unfinished || !draft_is_appended(p->c->draft))
		return DRAFT_DAMAGED;
	memcpy(why, out->kept, sizeof(why));
	out->kept[0] = '\0';
	const int result = store_domain(p, out, err);
	if (result == DRAFT_DAMAGED)
		memcpy(out->kept, why, sizeof(why));
	return result;
}

static int store_bytes(struct draft_put *p, enum close_state state, struct commit_result *out,
		       struct err *err)
{
	int rc = draft_put_find(p, err);
	if (!rc)
		rc = check_replaced(p, state, out->kept, err);
	if (!rc && state == CLOSE_STATE_LONGER) {
		const int result = store_longer(p, out, err);
		if (result <= 0)
			return result;
	}
	if (!rc && state == CLOSE_STATE_CLOSED) {
		const int result = store_domain(p, out, err);
		if (result <= 0 || (result == DRAFT_DAMAGED && !p->c->is_last))
			return result < 0 ? result : 0;
	}
	return rc ? rc : draft_put_object(p, out, err);
}

/* Bytes of the draft that lie in an object can be read only as long as the bucket has that object.
 * If an earlier attempt has replaced it, no more than its last steps may be left. */
static int finish(struct draft_put *p, bool *done, struct commit_result *out, struct err *err)
{
	if (!draft_put_is_again(p) || p->about->kind != DRAFT_CHANGE)
		return 0;
	int rc = draft_put_find(p, err);
	if (rc || !p->present.differs)
		return rc;
	*done = p->present.kind == PRESENT_OBJECT || draft_is_domain(p);
	switch (p->present.kind) {
	case PRESENT_OBJECT:
		return draft_put_object(p, out, err);
	case PRESENT_DOMAIN:
		return *done ? draft_put_domain(p, out, err) : 0;
	case PRESENT_UNKNOWN:
	case PRESENT_NOTHING:
		break;
	}
	return draft_finish_domain(p, done, out, err);
}

/* The answer to a domain that was stored may have been lost, and another program may have renamed
 * the domain since. Then a commit would give its storage the old name once more. If it has the
 * bytes of the draft, the commit has ended; else the draft is newer, and nothing under its name can
 * be replaced. A rename notes the new name before the old one goes, so the old one is looked up
 * first. */
static int find_renamed(struct draft_put *p, bool *done, struct commit_result *out, struct err *err)
{
	const struct change change = draft_put_change(p);
	char now[STORE_KEY_MAX + 1];
	struct err why = ERR_INIT;
	uint32_t i = p->run.oldest;
	if (!draft_put_is_again(p) || (p->c->left && !p->c->left->may_be_seen))
		return 0;
	const int found = draft_put_find(p, &why);
	const bool is_there = !found && p->present.differs && p->present.kind == PRESENT_DOMAIN;
	int rc = 0;
	if (found && found != -ESTALE) {
		err_copy(err, &why);
		return found;
	}
	while (!rc && !is_there && i <= p->run.number) {
		const struct storage s = commit_storage(change.schema, draft_id(p->c->draft), i);
		rc = change_find_name(&change, &s, now, sizeof(now), err);
		i += !rc;
	}
	*done = rc > 0 && strcmp(now, p->about->path) != 0;
	if (rc < 0)
		return rc;
	/* `hsimage recover commit` stores a draft that is newer than the domain that was renamed: a
	 * second domain then has the name of the draft. */
	*done &= i == p->run.number || !p->c->is_asked;
	if (!*done) {
		if (found)
			err_copy(err, &why);
		return found;
	}
	if (i < p->run.number)
		return err_set(err, -ESTALE,
			       "%s: another program has renamed it to /%s since it was stored",
			       p->about->name, now);
	log_info(p->bucket->log, "%s was stored by an earlier request, and is called /%s now",
		 p->about->name, now);
	return draft_put_result(out, COMMIT_DOMAIN, p->about->path, "", err);
}

static int commit(struct draft_put *p, struct commit_result *out, struct err *err)
{
	enum close_state state;
	const struct cancelled stop = cancelled_by(p->c->cancelled);
	bool done = false;
	int rc = is_cancelled(&stop) ? err_set(err, -ECANCELED, "interrupted") : 0;
	if (!rc)
		rc = find_renamed(p, &done, out, err);
	if (!rc && !done)
		rc = finish(p, &done, out, err);
	if (!rc && !done)
		rc = close_state_read(&p->bytes, &state, out->kept, sizeof(out->kept), err);
	if (!rc && !done &&
	    (p->c->is_last || (state != CLOSE_STATE_OPEN && state != CLOSE_STATE_LONGER)))
		rc = store_bytes(p, state, out, err);
	draft_put_release(p);
	if (rc)
		draft_put_fail(p, rc);
	else if (out->kind != COMMIT_WAITS)
		draft_put_end(p, out);
	out->state = p->run.state;
	out->has_put = p->run.end > p->run.number;
	return rc;
}

int draft_commit(const struct commit *c, struct commit_result *out, struct err *err)
{
	struct draft_put p;
	struct err own = ERR_INIT;
	err = err ? err : &own;
	*out = (struct commit_result){.kind = COMMIT_WAITS};
	const int rc = draft_put_init(&p, c, err);
	return rc ? rc : commit(&p, out, err);
}
