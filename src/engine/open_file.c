/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open files: the image of a domain, a plain object (raw_object.h), or a draft (drafts.h). An open
 * file of the first two shows one version until it is closed. An image is a snapshot, and each
 * block of a plain object is requested on the condition that the ETag is still the same. A file is
 * constant after opening; any thread.
 */
#include <drafts/drafts.h>
#include "engine_internal.h"
#include <snapshots/raw_object.h>

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct engine_file {
	struct engine *e;
	struct engine_stat st;
	struct snapshot *snapshot; /* of a domain; one of the three is not NULL */
	struct image_stream *stream;
	struct raw_object *object; /* of a plain object */
	struct draft_file *draft;  /* of a draft */
};

static int open_domain(struct engine_file *f, struct names_node *n,
		       const struct snapshot_time *requested, struct err *err)
{
	int rc = domain_snapshot(&f->e->bucket, n, requested, &f->snapshot, err);
	if (rc)
		return rc;
	atomic_fetch_add(&f->snapshot->use.opens, 1);
	atomic_fetch_add(&f->snapshot->use.open, 1);
	f->stream = image_stream_new(f->snapshot->image);
	stat_snapshot(&f->e->bucket, n, f->snapshot, &f->st);
	return 0;
}

static int open_object(struct engine_file *f, const struct names_node *n, struct err *err)
{
	struct store_meta meta = n->meta;
	int rc = 1;
	if (!f->e->bucket.open_ttl_ns)
		rc = store_look(f->e->bucket.store, n->path, NULL, &meta, err);
	if (rc == 0)
		rc = err_set(err, -ENOENT, "it was deleted");
	if (rc < 0)
		return err_wrap(err, rc, "object %s", n->path);
	/* The next look-up must find the new version. */
	if (strcmp(meta.etag, n->meta.etag) != 0)
		names_forget(f->e->bucket.names, n->name);
	rc = raw_object_open(f->e->bucket.store, f->e->bucket.cache, n->path, &meta, &f->object,
			     err);
	if (rc)
		return rc;
	stat_object(f->e, &meta, &f->st);
	return 0;
}

/* Looks a path up. A cached domain that hides anything else of this name is used even if it is
 * stale
 * (*is_valid is false then): opening reads the domain's document anyway. */
static int find_file(struct engine *e, const char *path, struct names_node **out, bool *is_valid,
		     struct snapshot_time *requested, struct err *err)
{
	*requested = (struct snapshot_time){0};
	*is_valid = false;
	*out = names_recall(e->bucket.names, path);
	if (*out && names_is_certain(*out))
		return 0;
	names_node_unref(*out);
	*is_valid = true;
	int rc = snapshot_resolve(&e->bucket, path, out, requested, err);
	if (!rc && (*out)->kind == NAMES_DIR && (*out)->doc.kind != NAMES_DOC_STORE)
		rc = err_set(err, -EISDIR, "%s: is a directory", path[0] ? path : "/");
	return rc;
}

static int open_node(struct engine *e, struct names_node *n, const struct snapshot_time *requested,
		     struct engine_file **out, struct err *err)
{
	struct engine_file *f = calloc(1, sizeof(*f));
	if (!f)
		return err_no_memory(err);
	f->e = e;
	int rc = n->kind == NAMES_OBJECT ? open_object(f, n, err)
					 : open_domain(f, n, requested, err);
	if (rc)
		engine_file_close(f);
	else
		*out = f;
	return rc;
}

/* Takes the draft over if it succeeds. */
static int wrap_draft(struct engine *e, struct draft_file *draft, struct engine_file **out,
		      struct err *err)
{
	struct engine_file *f = calloc(1, sizeof(*f));
	if (!f) {
		draft_file_close(draft);
		return err_no_memory(err);
	}
	f->e = e;
	f->draft = draft;
	*out = f;
	return 0;
}

int engine_file_open(struct engine *e, const char *path, struct engine_file **out, struct err *err)
{
	bool is_valid = false;
	struct draft_file *draft;
	int rc = e->drafts ? drafts_open_alone(e->drafts, path, &draft, err) : -ENOENT;
	if (rc != -ENOENT)
		return rc ? rc : wrap_draft(e, draft, out, err);
	while (rc == -ENOENT && !is_valid) {
		auto_names_node struct names_node *n = NULL;
		struct snapshot_time requested;
		rc = find_file(e, path, &n, &is_valid, &requested, err);
		if (rc)
			return rc;
		rc = open_node(e, n, &requested, out, err);
		/* The next try looks the path up in the bucket. */
		if (rc)
			names_forget(e->bucket.names, path);
	}
	return rc;
}

void engine_file_close(struct engine_file *f)
{
	if (!f)
		return;
	if (f->stream)
		image_stream_free(f->stream);
	if (f->snapshot)
		atomic_fetch_sub(&f->snapshot->use.open, 1);
	snapshot_close(f->snapshot);
	raw_object_close(f->object);
	draft_file_close(f->draft);
	free(f);
}

void engine_file_stat(struct engine_file *f, struct engine_stat *st)
{
	if (f->draft)
		draft_file_stat(f->draft, st);
	else
		*st = f->st;
	if (f->snapshot)
		snapshot_blocks(f->snapshot, st);
}

bool engine_file_cacheable(struct engine_file *f)
{
	return f->snapshot ? f->snapshot->sees_chunks : f->st.version != 0;
}

uint64_t engine_file_read_ahead(struct engine_file *f)
{
	return f->snapshot ? image_read_ahead(f->snapshot->image) : 0;
}

void engine_file_set_read_ahead(struct engine_file *f, uint64_t bytes)
{
	if (f->snapshot)
		image_set_read_ahead(f->snapshot->image, bytes);
}

/* Returns the error code of a read. Codes of the store and the codecs describe an object of the
 * bucket (-EFBIG, -EOPNOTSUPP) and would be wrong for the file; they become -EIO. The message is
 * unchanged. */
static int read_failure(int code)
{
	switch (code) {
	case -ESTALE:
	case -EINTR:
	case -EACCES:
	case -ENOMEM:
		return code;
	default:
		return -EIO;
	}
}

static ssize_t read_object(struct engine_file *f, void *buf, size_t n, uint64_t offset,
			   struct cancel *cancel, struct err *err)
{
	ssize_t got = raw_object_read(f->object, buf, n, offset, cancel, err);
	/* The next open looks the path up in the bucket. */
	if (got == -ESTALE)
		names_forget(f->e->bucket.names, raw_object_path(f->object));
	return got;
}

static ssize_t read_domain(struct engine_file *f, void *buf, size_t n, uint64_t offset,
			   struct cancel *cancel, struct err *err)
{
	ssize_t got = image_read(f->snapshot->image, f->stream, buf, n, offset, cancel, err);
	if (got == -ESTALE || (got < 0 && domain_is_outdated(f->snapshot->domain)))
		snapshot_mark_stale(f->snapshot);
	return got;
}

static void count(atomic_uint_fast64_t *counter, uint64_t n)
{
	atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

ssize_t engine_pread(struct engine_file *f, void *buf, size_t n, uint64_t offset,
		     struct cancel *cancel, struct err *err)
{
	if (n > SSIZE_MAX || offset > INT64_MAX)
		return err_set(err, -EINVAL, "the range is larger than any file");
	if (n == 0)
		return 0;
	ssize_t got = f->snapshot ? read_domain(f, buf, n, offset, cancel, err)
		      : f->draft  ? draft_file_read(f->draft, buf, n, offset, err)
				  : read_object(f, buf, n, offset, cancel, err);
	if (got < 0)
		got = read_failure((int)got);
	const uint64_t bytes = got > 0 ? (uint64_t)got : 0;
	count(&f->e->reads, 1);
	count(&f->e->bytes_read, bytes);
	if (f->snapshot) {
		count(&f->snapshot->use.reads, 1);
		count(&f->snapshot->use.bytes_read, bytes);
	}
	return got;
}

static int64_t seek_domain(struct engine_file *f, uint64_t offset, int whence)
{
	const int64_t at = image_find(f->snapshot->image, offset, whence);
	snapshots_note_blocks(f->e->bucket.snapshots, f->snapshot);
	return at;
}

int64_t engine_seek(struct engine_file *f, uint64_t offset, int whence)
{
	if (whence != SEEK_DATA && whence != SEEK_HOLE)
		return -EINVAL;
	if (f->snapshot)
		return seek_domain(f, offset, whence);
	if (f->draft)
		return draft_file_seek(f->draft, offset, whence);
	if (offset >= f->st.size)
		return -ENXIO;
	return (int64_t)(whence == SEEK_DATA ? offset : f->st.size);
}

/* ---- files that programs write ---- */

int engine_open_write(struct engine *e, const char *path, unsigned int flags,
		      struct engine_file **out, struct err *err)
{
	struct draft_file *draft;
	if (!e->drafts)
		return err_set(err, -EROFS, "mounted read-only");
	int rc = drafts_open_write(e->drafts, path, flags, &draft, err);
	return rc ? rc : wrap_draft(e, draft, out, err);
}

int engine_open_draft(struct engine *e, uint64_t version, struct engine_file **out, struct err *err)
{
	struct draft_file *draft;
	if (!e->drafts)
		return err_set(err, -ESTALE, "mounted read-only");
	int rc = drafts_open_read(e->drafts, version, &draft, err);
	return rc ? rc : wrap_draft(e, draft, out, err);
}

bool engine_draft_stat(struct engine *e, const char *path, struct engine_stat *st, bool *alone)
{
	return drafts_stat(e->drafts, path, st, alone);
}

bool engine_draft_stat_version(struct engine *e, uint64_t version, struct engine_stat *st)
{
	return drafts_stat_version(e->drafts, version, st);
}

static int check_draft(const struct engine_file *f, struct err *err)
{
	return f->draft ? 0 : err_set(err, -EBADF, "the file is open for reading");
}

ssize_t engine_pwrite(struct engine_file *f, const void *buf, size_t n, uint64_t offset,
		      struct err *err)
{
	int rc = check_draft(f, err);
	if (!rc && n > SSIZE_MAX)
		rc = err_set(err, -EINVAL, "the range is larger than any file");
	return rc ? rc : draft_file_write(f->draft, buf, n, offset, err);
}

int engine_resize(struct engine_file *f, uint64_t size, struct err *err)
{
	int rc = check_draft(f, err);
	return rc ? rc : draft_file_resize(f->draft, size, err);
}

int engine_allocate(struct engine_file *f, int mode, uint64_t offset, uint64_t n, struct err *err)
{
	int rc = check_draft(f, err);
	return rc ? rc : draft_file_allocate(f->draft, mode, offset, n, err);
}

int engine_flush(struct engine_file *f, struct err *err)
{
	int rc = check_draft(f, err);
	return rc ? rc : draft_file_flush(f->draft, err);
}

int engine_sync(struct engine_file *f, struct err *err)
{
	int rc = check_draft(f, err);
	return rc ? rc : draft_file_sync(f->draft, err);
}
