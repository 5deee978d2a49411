/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a draft for hsmount/recover.h. The bucket is opened only if it has a part of the bytes. */
#include "left_drafts.h"

#include <engine/parts.h>
#include <errno.h>
#include <stdlib.h>

#include <drafts/base_reader.h>

struct engine_draft {
	struct recover_found found;
	struct draft *draft;
	struct engine *bucket; /* NULL if it is not needed */
	struct base_reader beneath;
};

static bool needs_bucket(struct draft *d)
{
	struct draft_extent x = {.end = 0};
	while (draft_next_extent(d, &x))
		if (x.kind == DRAFT_BENEATH)
			return true;
	return false;
}

int recover_explain(const struct engine_drafts *s, const struct recover_found *f, int rc,
		    struct err *err)
{
	if (rc == -ENOENT)
		rc = err_set(err, -EBADMSG, "draft %s: it cannot be read, and was set aside",
			     f->id);
	if (rc != -EBADMSG && rc != -ENODATA)
		return rc;
	const struct err why = *err;
	return err_set(err, rc,
		       "%s; what was written is in the files %s/" JOURNAL_VERSION
		       "/%s/unreadable/%s/spool.*, each "
		       "byte at its own offset",
		       why.msg, s->path, f->digits, f->id);
}

/* The bytes of two versions make no file, so the draft cannot be read. */
int recover_explain_stale(const struct engine_drafts *s, const struct recover_found *f,
			  struct draft *d, struct err *err)
{
	const struct draft_about *about = draft_get_about(d);
	const char *what = base_reader_is_domain(about) ? "domain" : "file";
	const char *version = base_reader_is_domain(about)
				      ? ", or another version of hsmount has written the draft"
				      : "";
	return err_set(
		err, -ESTALE,
		"draft %s: the %s %s has changed since the program opened it%s, so the bytes that "
		"the program did not write are gone; what it wrote is in the files "
		"%s/" JOURNAL_VERSION
		"/%s/%s/spool.*, each byte at its own offset; `hsimage recover drop %s` "
		"deletes "
		"the draft, so that the %s can be changed again",
		f->id, what, about->path, version, s->path, f->digits, f->id, f->id, what);
}

static int open_beneath(const struct engine_drafts *s, struct engine_draft *d,
			const struct engine_options *bucket, struct err *err)
{
	const struct draft_about *about = draft_get_about(d->draft);
	int rc = recover_open_bucket(&d->found, bucket, NULL, &d->bucket, err);
	if (!rc)
		rc = base_reader_open(&d->beneath, &d->bucket->bucket, about, err);
	if (rc == -ESTALE)
		return recover_explain_stale(s, &d->found, d->draft, err);
	return rc ? err_wrap(err, rc,
			     "a part of the file was not written and is only in the bucket")
		  : 0;
}

int engine_draft_open(struct engine_drafts *s, const char *id, const struct engine_options *bucket,
		      struct engine_draft **out, struct err *err)
{
	struct err own = ERR_INIT;
	err = err ? err : &own;
	struct engine_draft *d = calloc(1, sizeof(*d));
	if (!d)
		return err_no_memory(err);
	const struct draft_beneath reader = base_reader_beneath(&d->beneath);
	int rc = recover_find(s, id, &d->found, err);
	if (!rc) {
		rc = draft_open(d->found.journal, d->found.id, &reader, &d->draft, err);
		rc = rc ? recover_explain(s, &d->found, rc, err) : 0;
	}
	if (!rc && needs_bucket(d->draft))
		rc = open_beneath(s, d, bucket, err);
	if (rc)
		engine_draft_close(d);
	else
		*out = d;
	return rc;
}

void engine_draft_close(struct engine_draft *d)
{
	if (!d)
		return;
	draft_close(d->draft);
	base_reader_close(&d->beneath);
	engine_close(d->bucket);
	recover_found_release(&d->found);
	free(d);
}

uint64_t engine_draft_size(struct engine_draft *d)
{
	struct draft_stat stat;
	draft_get_stat(d->draft, &stat);
	return stat.size;
}

bool engine_draft_next(struct engine_draft *d, uint64_t *start, uint64_t *end)
{
	struct draft_extent x = {.end = *end};
	while (draft_next_extent(d->draft, &x))
		if (x.kind != DRAFT_HOLE) {
			*start = x.start;
			*end = x.end;
			return true;
		}
	return false;
}

int engine_draft_read(struct engine_draft *d, void *buf, size_t n, uint64_t offset, struct err *err)
{
	size_t got;
	int rc = draft_read(d->draft, offset, buf, n, &got, err);
	if (rc)
		return err_wrap(err, rc, "draft %s", d->found.id);
	return got == n ? 0 : err_set(err, -EIO, "draft %s ends before that", d->found.id);
}
