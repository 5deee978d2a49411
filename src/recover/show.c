/* SPDX-License-Identifier: Apache-2.0 */
/* Describes a draft for hsmount/recover.h: what it is, what it replaces, and how a commit of it
 * would end. */
#include "left_drafts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include <drafts/draft_commit.h>
#include <drafts/close_state.h>
#include <h5file/h5file.h>

enum { RANGES_SHOWN = 16 };

struct show {
	struct engine_drafts *s;
	const struct recover_found *found;
	int (*line)(void *arg, const char *line);
	void *arg;
	bool seen;
};

/* Writes a line "name: text". */
static int __attribute__((format(printf, 3, 4)))
put(const struct show *w, const char *name, const char *fmt, ...)
{
	auto_str struct str text = {0};
	va_list ap;
	str_addf(&text, "%s: ", name);
	va_start(ap, fmt);
	str_addv(&text, fmt, ap);
	va_end(ap);
	return str_ok(&text) ? w->line(w->arg, str_text(&text)) : -ENOMEM;
}

/* ---- what is known without opening it ---- */

static const char *version_in_words(const char *version)
{
	return version[0] == 'd'   ? "a domain"
	       : version[0] == 'o' ? "a plain object"
	       : version[0]	   ? "something that this program does not know"
				   : "nothing";
}

static int put_kind(const struct show *w, const struct recover_item *i)
{
	const char *version = str_text(&i->version);
	const char *etag = strlen(version) > 2 ? version + 2 : "";
	switch (i->kind) {
	case DRAFT_NEW:
	case DRAFT_REPLACE:
		return put(w, "replaces", "%s%s%s", version_in_words(version),
			   etag[0] ? " of version " : "", etag);
	case DRAFT_CHANGE:
		if (i->item.changes_domain)
			return put(w, "changes", "the domain %s in place, of version %s",
				   str_text(&i->path), etag);
		return put(w, "changes", "%s%s%s", version_in_words(version),
			   etag[0] ? " of version " : "", etag);
	}
	return 0;
}

static int put_file(const struct show *w, const struct recover_item *i)
{
	const char *name = str_text(&i->name), *path = str_text(&i->path);
	auto_str struct str time = {0};
	int rc = 0;
	if (i->kind) {
		str_add_time(&time, i->item.created_ns);
		rc = put(w, "file", "%s", name);
		if (!rc && strcmp(name, path) != 0)
			rc = put(w, "path in the bucket", "%s", path);
		if (!rc)
			rc = put(w, "begun", "%s", str_text(&time));
		if (!rc)
			rc = put_kind(w, i);
	}
	return rc;
}

static int put_place(const struct show *w, const struct recover_item *i)
{
	const struct recover_found *f = w->found;
	const bool set_aside = i->item.state == ENGINE_DRAFT_UNREADABLE;
	const char *name = str_text(&f->name);
	int rc = put(w, "bucket", "%s", name[0] ? name : "not known");
	return rc ? rc
		  : put(w, "directory", "%s/" JOURNAL_VERSION "/%s/%s%s", w->s->path, f->digits,
			set_aside ? "unreadable/" : "", f->id);
}

/* ---- its bytes ---- */

struct extents {
	uint64_t ranges, written, beneath;
};

static int put_bytes(const struct show *w, struct draft *d)
{
	struct draft_extent x = {.end = 0};
	struct extents n = {.ranges = 0};
	while (draft_next_extent(d, &x)) {
		n.ranges += x.kind == DRAFT_WRITTEN;
		n.written += x.kind == DRAFT_WRITTEN ? x.end - x.start : 0;
		n.beneath += x.kind == DRAFT_BENEATH ? x.end - x.start : 0;
	}
	int rc = put(w, "size", "%" PRIu64 " bytes", x.end);
	if (!rc)
		rc = put(w, "written", "%" PRIu64 " bytes in %" PRIu64 " range%s", n.written,
			 n.ranges, n.ranges == 1 ? "" : "s");
	if (!rc && n.beneath)
		rc = put(w, "not written", "%" PRIu64 " bytes, which are only in the bucket",
			 n.beneath);
	return rc;
}

static int put_commit(const struct show *w, const struct recover_item *i)
{
	const struct commit_record m = commit_record_decode(i->mark);
	if (m.state == COMMIT_NONE)
		return put(w, "commits", "none has begun");
	if (m.state == COMMIT_ENDED)
		return put(w, "commits", "%" PRIu32 ", the last one has ended", m.number);
	if (i->item.changes_domain && m.state == COMMIT_BEGUN)
		return put(w, "commits", "%" PRIu32 ", the last one was interrupted%s", m.number,
			   i->has_plan ? "" : " when it had changed nothing or everything");
	return put(w, "commits", "%" PRIu32 ", the last one has %s%s", m.number,
		   m.state == COMMIT_REFUSED
			   ? "failed, because another program has changed the file"
			   : "not ended",
		   m.is_last ? "; the program had closed the file" : "");
}

static int put_structures(const struct show *w, struct source *bytes)
{
	const struct h5file_options opt = {.budget = w->s->env.budget};
	struct h5file *f = NULL;
	struct err why = ERR_INIT;
	int rc = h5file_open(bytes, &opt, &f, &why);
	const struct h5file_problem *first = rc ? NULL : h5file_first_problem(f, H5FILE_DAMAGED);
	if (!rc && !first)
		first = h5file_first_problem(f, H5FILE_UNSUPPORTED);
	if (rc == -ENOMEM)
		rc = put(w, "content", "an HDF5 file that is too large to be checked");
	else if (rc)
		rc = put(w, "content", "an HDF5 file that cannot be read: %s", why.msg);
	else if (first)
		rc = put(w, "content",
			 "an HDF5 file that was closed; parts of it cannot be read: %s: %s",
			 first->path, first->text);
	else
		rc = put(w, "content", "an HDF5 file that was closed; its structures are sound");
	h5file_close(f);
	return rc;
}

static int put_content(const struct show *w, struct draft *d)
{
	struct draft_snapshot *snapshot;
	enum close_state state;
	char reason[512];
	struct err why = ERR_INIT;
	int rc = draft_seal(d, &snapshot, &why);
	if (rc)
		return put(w, "content", "not known: %s", why.msg);
	struct source *bytes = draft_snapshot_source(snapshot);
	rc = close_state_read(bytes, &state, reason, sizeof(reason), &why);
	if (rc)
		rc = put(w, "content", "not known: %s", why.msg);
	else if (state == CLOSE_STATE_UNKNOWN)
		rc = put(w, "content", "not an HDF5 file");
	else if (state == CLOSE_STATE_OPEN || state == CLOSE_STATE_LONGER)
		rc = put(w, "content", "an HDF5 file that is not complete: %s", reason);
	else
		rc = put_structures(w, bytes);
	draft_snapshot_close(snapshot);
	return rc;
}

/* ---- a domain that was changed in place ---- */

/* Writes the ranges that programs have written. */
static int put_ranges(const struct show *w, struct draft *d)
{
	auto_str struct str text = {0};
	struct draft_extent x = {.end = 0};
	unsigned int n = 0;
	while (draft_next_extent(d, &x))
		if (x.kind == DRAFT_WRITTEN && n++ < RANGES_SHOWN)
			str_addf(&text, "%s%" PRIu64 " to %" PRIu64, n > 1 ? ", " : "", x.start,
				 x.end);
	if (n > RANGES_SHOWN)
		str_addf(&text, " and %u more", n - RANGES_SHOWN);
	if (!str_ok(&text))
		return -ENOMEM;
	return n ? put(w, "written ranges", "%s", str_text(&text)) : 0;
}

/* Returns whether a commit has ended, and nothing was written later. */
static bool is_stored(const struct recover_item *i, struct draft *d)
{
	const struct commit_record m = commit_record_decode(i->mark);
	struct draft_stat stat;
	draft_get_stat(d, &stat);
	return m.state == COMMIT_ENDED && stat.is_marked;
}

/* Describes the change of a file. The rest of it is in the bucket, so nothing can be said about its
 * structures. */
static int put_change(const struct show *w, const struct recover_item *i, struct draft *d)
{
	static const char *const library[] = {
		[CLOSE_STATE_UNKNOWN] = "not known: nothing that was written tells whether its "
					"library had closed the file",
		[CLOSE_STATE_OPEN] = "the library had not closed the file: ",
		[CLOSE_STATE_LONGER] = "the library had not closed the file: ",
		[CLOSE_STATE_CLOSED] =
			"the library had closed the file, or does not mark open files",
	};
	char why[256];
	int rc = put_ranges(w, d);
	if (!rc && i->has_plan)
		rc = put(w, "interrupted commit",
			 "%" PRIu32 " of %" PRIu32
			 " operations are noted as done; the next mount does the others",
			 i->done, i->operations);
	const enum close_state state = close_state_of_written(d, why, sizeof(why));
	if (!rc)
		rc = put(w, "library", "%s%s", library[state], why);
	if (rc || i->has_plan || is_stored(i, d))
		return rc;
	return put(w, "warning",
		   "if the program had not finished, the data may be wrong, also if all structures "
		   "of the file can be read: look at the file (`hsimage recover export %s FILE`) "
		   "before `hsimage recover commit %s`",
		   i->id, i->id);
}

static int put_draft(const struct show *w, const struct recover_item *i)
{
	struct draft *d;
	struct err why = ERR_INIT;
	int rc = draft_open(w->found->journal, w->found->id, NULL, &d, &why);
	if (rc)
		return put(w, "content", "not known: %s", why.msg);
	rc = put_bytes(w, d);
	if (!rc)
		rc = put_commit(w, i);
	if (!rc)
		rc = i->item.changes_domain ? put_change(w, i, d) : put_content(w, d);
	draft_close(d);
	return rc;
}

/* ---- all of it ---- */

static int show(const struct show *w, const struct recover_item *i)
{
	int rc = put(w, "draft", "%s", i->id);
	if (!rc)
		rc = put(w, "state", "%s: %s", engine_draft_state_name(i->item.state),
			 str_text(&i->why));
	if (!rc)
		rc = put_file(w, i);
	if (!rc)
		rc = put_place(w, i);
	if (!rc && i->item.state == ENGINE_DRAFT_WAITING)
		rc = put_draft(w, i);
	return rc;
}

static int show_one(void *ctx, struct recover_item *i)
{
	struct show *w = ctx;
	int rc = 0;
	if (strcmp(i->id, w->found->id) == 0 && !w->seen) {
		w->seen = true;
		rc = show(w, i);
	}
	recover_item_release(i);
	return rc;
}

int engine_drafts_show(struct engine_drafts *s, const char *id,
		       int (*line)(void *arg, const char *line), void *arg, struct err *err)
{
	auto_found struct recover_found found;
	int rc = recover_find(s, id, &found, err);
	if (rc)
		return rc;
	struct show w = {.s = s, .found = &found, .line = line, .arg = arg};
	rc = recover_each(found.journal, show_one, &w, err);
	if (!rc && !w.seen)
		rc = err_set(err, -ENOENT, "%s: there is no such draft any more", found.id);
	return rc;
}
