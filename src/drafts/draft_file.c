/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open files of drafts, and their bytes: see drafts.h. The journal gets a draft with its first
 * change, so a program that opens a file for writing and changes nothing leaves nothing. Until then
 * the bytes are those of the file, or none if the draft replaces it. Any thread.
 */
#include "draft_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "draft_save.h"
#include <bucket/bucket.h>
#include <snapshots/snapshot_identity.h>

/* ---- the journal's draft ---- */

static int make_bytes(struct file_draft *d, struct draft **out, struct err *err)
{
	struct draft_about about = {
		.kind = d->kind,
		.path = d->path,
		.name = d->name,
		.version = d->seen,
		.beneath = draft_base_size(d->base),
		.created_ns = d->created_ns,
	};
	const struct draft_beneath beneath = {.read = draft_base_read, .ctx = d->base};
	const struct snapshot *image = draft_base_snapshot(d->base);
	if (image) {
		snapshot_identity(d->t->bucket, image, about.beneath_id);
		about.layout = IMAGE_REVISION;
	}
	int rc = draft_create(d->t->journal, &about, d->base ? &beneath : NULL, out, err);
	if (!rc)
		atomic_store(&d->bytes, *out);
	return rc;
}

int file_draft_bytes(struct file_draft *d, struct draft **out, struct err *err)
{
	int rc = 0;
	*out = atomic_load(&d->bytes);
	if (*out)
		return 0;
	pthread_mutex_lock(&d->making);
	*out = atomic_load(&d->bytes);
	if (!*out)
		rc = make_bytes(d, out, err);
	pthread_mutex_unlock(&d->making);
	return rc;
}

/* ---- life ---- */

void draft_file_close(struct draft_file *f)
{
	if (!f)
		return;
	struct file_draft *d = f->d;
	bool last = false;
	if (f->writes) {
		pthread_mutex_lock(&d->t->lock);
		last = --d->writers == 0;
		d->closing += last;
		pthread_mutex_unlock(&d->t->lock);
	}
	if (last) {
		draft_finish(d, false);
		pthread_mutex_lock(&d->t->lock);
		d->closing--;
		pthread_mutex_unlock(&d->t->lock);
	}
	file_draft_unref(d);
	free(f);
}

void draft_file_stat(struct draft_file *f, struct engine_stat *st)
{
	file_draft_stat(f->d, st);
}

/* ---- bytes ---- */

/* While a commit replaces the object that lies beneath, its old version cannot be read any more,
 * and the new one is not known yet. Waits for the end of a commit if a call has failed for this
 * reason. A draft that has no name has no commit any more. Returns whether the call may succeed
 * now. The caller holds no name. */
static bool wait_for_commit(const struct draft_file *f, int rc)
{
	struct draft_hold hold;
	if (rc != -ESTALE || !f->d->base)
		return false;
	if (draft_table_hold_draft(f->d, &hold))
		draft_table_release(f->d->t, &hold);
	return true;
}

static ssize_t read_once(struct draft_file *f, void *buf, size_t n, uint64_t offset,
			 struct err *err)
{
	struct draft *bytes = atomic_load(&f->d->bytes);
	size_t got = 0;
	if (bytes) {
		int rc = draft_read(bytes, offset, buf, n, &got, err);
		return rc ? rc : (ssize_t)got;
	}
	const uint64_t size = draft_base_size(f->d->base);
	if (offset >= size)
		return 0;
	n = (size_t)min_u64(n, size - offset);
	int rc = draft_base_read(f->d->base, offset, buf, n, err);
	return rc ? rc : (ssize_t)n;
}

ssize_t draft_file_read(struct draft_file *f, void *buf, size_t n, uint64_t offset, struct err *err)
{
	const ssize_t got = read_once(f, buf, n, offset, err);
	return got < 0 && wait_for_commit(f, (int)got) ? read_once(f, buf, n, offset, err) : got;
}

int64_t draft_file_seek(struct draft_file *f, uint64_t offset, int whence)
{
	struct draft *bytes = atomic_load(&f->d->bytes);
	uint64_t found = 0;
	if (bytes) {
		int rc = draft_seek(bytes, offset, whence, &found);
		return rc ? rc : (int64_t)found;
	}
	const uint64_t size = draft_base_size(f->d->base);
	if (offset >= size)
		return -ENXIO;
	return (int64_t)(whence == SEEK_DATA ? offset : size);
}

static int begin_change(struct draft_file *f, struct draft **bytes, struct err *err)
{
	if (!f->writes)
		return err_set(err, -EBADF, "the file is open for reading");
	return file_draft_bytes(f->d, bytes, err);
}

static void note_change(struct draft_file *f)
{
	atomic_store(&f->d->mtime_ns, env_wall(&f->d->t->bucket->env));
}

/* Notes that a part of the file is missing now. The first offset counts: a program that goes on
 * begins there. */
static void note_loss(struct draft_file *f, uint64_t offset, int code)
{
	uint_fast64_t nothing = NOTHING_LOST;
	if (atomic_compare_exchange_strong(&f->d->lost_at, &nothing, offset))
		atomic_store(&f->d->lost_code, code);
}

/* Notes that the bytes from first to end are there now, or are no part of the file any more. */
static void end_loss(struct draft_file *f, uint64_t first, uint64_t end)
{
	uint_fast64_t at = atomic_load(&f->d->lost_at);
	if (at != NOTHING_LOST && at >= first && at < end)
		atomic_compare_exchange_strong(&f->d->lost_at, &at, NOTHING_LOST);
}

/* Checks a change of bytes of a domain: see linked_data.h. The log has one line for each
 * dataset. */
static int check_change(const struct draft_file *f, uint64_t offset, uint64_t n, struct err *err)
{
	struct file_draft *d = f->d;
	struct err own = ERR_INIT;
	bool is_first;
	if (!d->change || !f->writes || atomic_load(&d->is_emptied))
		return 0;
	const int rc =
		draft_change_check(d->change, atomic_load(&d->bytes), offset, n, &is_first, &own);
	if (!rc)
		return 0;
	pthread_mutex_lock(&d->t->lock);
	auto_free char *name = is_first && d->name ? strdup(d->name) : NULL;
	pthread_mutex_unlock(&d->t->lock);
	if (name)
		log_warning(d->t->bucket->log, "/%s: %s", name, own.msg);
	err_copy(err, &own);
	return rc;
}

static int write_once(struct draft_file *f, struct draft **bytes, const void *buf, size_t n,
		      uint64_t offset, struct err *err)
{
	const int rc = begin_change(f, bytes, err);
	return rc ? rc : draft_write(*bytes, offset, buf, n, err);
}

ssize_t draft_file_write(struct draft_file *f, const void *buf, size_t n, uint64_t offset,
			 struct err *err)
{
	struct draft *bytes;
	int rc = check_change(f, offset, n, err);
	if (rc)
		return rc;
	rc = write_once(f, &bytes, buf, n, offset, err);
	if (wait_for_commit(f, rc))
		rc = write_once(f, &bytes, buf, n, offset, err);
	if (rc && f->writes)
		note_loss(f, offset, rc);
	if (rc)
		return rc;
	if (f->d->change)
		draft_change_wrote(f->d->change, bytes, offset, n);
	end_loss(f, offset, offset + n);
	note_change(f);
	atomic_fetch_add_explicit(&f->d->t->bytes_written, n, memory_order_relaxed);
	return (ssize_t)n;
}

int draft_file_resize(struct draft_file *f, uint64_t size, struct err *err)
{
	struct draft *bytes;
	int rc = begin_change(f, &bytes, err);
	if (!rc)
		rc = draft_resize(bytes, size, err);
	if (rc)
		return rc;
	if (size == 0)
		atomic_store(&f->d->is_emptied, true);
	end_loss(f, size, NOTHING_LOST);
	note_change(f);
	return 0;
}

int draft_file_allocate(struct draft_file *f, int mode, uint64_t offset, uint64_t n,
			struct err *err)
{
	struct draft *bytes;
	/* Without a mode, no byte of the file changes. */
	int rc = mode & ~FALLOC_FL_KEEP_SIZE ? check_change(f, offset, n, err) : 0;
	if (!rc)
		rc = begin_change(f, &bytes, err);
	if (!rc)
		rc = draft_allocate(bytes, mode, offset, n, err);
	if (!rc)
		note_change(f);
	return rc;
}

int draft_file_flush(struct draft_file *f, struct err *err)
{
	bool waits;
	return draft_save(f->d, false, &waits, err);
}

int draft_file_sync(struct draft_file *f, struct err *err)
{
	struct draft *bytes = atomic_load(&f->d->bytes);
	bool waits;
	int rc = draft_save(f->d, true, &waits, err);
	return rc || !waits || !bytes ? rc : draft_sync(bytes, err);
}
