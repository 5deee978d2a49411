/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files `plan`, `done` and `bodies` of a draft: see journal/plan.h.
 *
 * Invariants:
 *  1. A plan is durable as a whole, and only after the draft: what it needs is there.
 *  2. A record of `done` names the plan, so it means nothing for another one. If a record "done" is
 *     lost, the operation is done twice. What a lost record could make a later process delete is
 *     durable before the bucket depends on it: draft_sync_notes().
 *  3. The file `bodies` is durable before a plan that names it, and the plan is gone, also after a
 *     crash of the machine, before the file is removed.
 */
#include <base/fd.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "bodies.h"
#include "draft_internal.h"
#include <journal/private_file.h>
#include <journal/plan_codec.h>
#include <journal/usage.h>
#include <overlay/draft_plan.h>

static int sync_file(int fd)
{
	return fsync(fd) ? -errno : 0;
}

/* ---- bodies ---- */

int draft_add_body(struct draft *d, const void *bytes, size_t n, uint64_t *offset, struct err *err)
{
	if (draft_is_read_only(d))
		return err_set(err, -EROFS, "a draft of an earlier mount gets no new plan");
	return bodies_add(&d->bodies, d->dir.fd, &d->dir.j->room, bytes, n, offset, err);
}

/* Decides whether n bytes shall be in the plan. */
static bool take_inline(struct bodies *b, size_t n)
{
	pthread_mutex_lock(&b->lock);
	const bool fits = n <= PLAN_INLINE_MAX && n <= PLAN_INLINE_SUM - b->inlined;
	b->inlined += fits ? n : 0;
	pthread_mutex_unlock(&b->lock);
	return fits;
}

int draft_set_body(struct draft *d, struct plan_operation *op, const void *bytes, size_t n,
		   struct err *err)
{
	const bool is_inline = take_inline(&d->bodies, n);
	op->body = is_inline ? PLAN_INLINE : PLAN_FILE;
	op->bytes = is_inline ? bytes : NULL;
	op->offset = 0;
	op->length = n;
	plan_digest(bytes, n, op->sha256);
	return is_inline ? 0 : draft_add_body(d, bytes, n, &op->offset, err);
}

int draft_read_body(struct draft *d, uint64_t offset, void *buf, size_t n, struct err *err)
{
	return bodies_read(&d->bodies, offset, buf, n, err);
}

static int read_planned(struct draft *d, struct draft_snapshot *s, const struct plan_operation *op,
			void *buf, struct err *err)
{
	switch (op->body) {
	case PLAN_INLINE:
		memcpy(buf, op->bytes, (size_t)op->length);
		return 0;
	case PLAN_RANGE:
		return source_read(draft_snapshot_source(s), op->offset, buf, (size_t)op->length,
				   err);
	case PLAN_FILE:
		return draft_read_body(d, op->offset, buf, (size_t)op->length, err);
	case PLAN_NO_BODY:
		break;
	}
	return err_set(err, -EINVAL, "an operation without a body");
}

int draft_read_planned(struct draft *d, struct draft_snapshot *s, const struct plan_operation *op,
		       void *buf, struct err *err)
{
	uint8_t digest[PLAN_DIGEST];
	int rc = op->length ? read_planned(d, s, op, buf, err) : 0;
	if (rc)
		return rc;
	plan_digest(buf, (size_t)op->length, digest);
	return memcmp(digest, op->sha256, PLAN_DIGEST) == 0
		       ? 0
		       : err_set(err, -EBADMSG,
				 "draft %s has other bytes for the object %s than its plan says",
				 d->dir.id, op->key);
}

/* ---- the plan ---- */

static int put_held(struct draft *d, const struct plan_operation *operations, uint32_t count,
		    const struct plan_subject *subject, struct err *err)
{
	auto_bytes struct bytes file = {0};
	struct plan plan = {.count = count};
	if (subject)
		plan.subject = *subject;
	if (!d->snapshot)
		return err_set(err, -EINVAL, "a plan needs a snapshot");
	plan.generation = d->snapshot->layers.top->generation;
	plan.size = d->snapshot->layers.size;
	plan.operations = (struct plan_operation *)(uintptr_t)operations;
	d->dir.j->env->random(d->dir.j->env, &plan.number, sizeof(plan.number));
	int rc = plan_encode(&plan, &file, err);
	if (rc == 0 && plan_file_end(operations, count) > d->bodies.size)
		rc = err_set(err, -EINVAL, "the plan names bodies that were not added");
	if (rc == 0)
		rc = draft_sync_held(d, err);
	if (rc == 0)
		rc = bodies_sync(&d->bodies, d->dir.fd, err);
	if (rc)
		return rc;
	d->keeps = true; /* also if an error comes after the rename */
	rc = file_replace(d->dir.fd, "plan", file.data, file.len);
	if (rc)
		return err_errno(err, rc, "cannot write the plan");
	unlinkat(d->dir.fd, "done", 0); /* of an older plan */
	d->done_is_named = false;
	d->planned = d->snapshot->layers.top;
	d->planned_size = plan.size;
	d->planned_changes = d->snapshot->changes;
	d->planned_since = d->snapshot->since;
	d->plan_number = plan.number;
	return 0;
}

int draft_put_plan(struct draft *d, const struct plan_operation *operations, uint32_t count,
		   const struct plan_subject *subject, struct err *err)
{
	if (draft_is_read_only(d))
		return err_set(err, -EROFS, "a draft of an earlier mount gets no new plan");
	pthread_rwlock_wrlock(&d->changes);
	int rc = draft_note_resumed(d, err);
	if (rc == 0)
		rc = put_held(d, operations, count, subject, err);
	pthread_rwlock_unlock(&d->changes);
	return rc;
}

/* fd: of the file `done`. */
static int sync_notes(struct draft *d, int fd)
{
	int rc = sync_file(fd);
	if (rc == 0 && !d->done_is_named)
		rc = sync_file(d->dir.fd);
	d->done_is_named |= rc == 0;
	return rc;
}

int draft_sync_notes(struct draft *d, struct err *err)
{
	auto_close int fd = file_open(d->dir.fd, "done", O_WRONLY);
	const int rc = fd < 0 ? fd : sync_notes(d, fd);
	return rc ? err_errno(err, rc, "cannot sync what is done") : 0;
}

int draft_note_operation(struct draft *d, uint32_t operation, enum plan_note note, struct err *err)
{
	const struct plan plan = {.number = d->plan_number};
	uint8_t record[PLAN_DONE_RECORD];
	struct stat st;
	plan_encode_note(&plan, operation, note, record);
	auto_close int fd = file_open(d->dir.fd, "done", O_WRONLY | O_CREAT | O_APPEND);
	int rc = fd < 0 ? fd : fstat(fd, &st) ? -errno : 0;
	/* A crash may have left a part of a record. */
	if (rc == 0 && st.st_size % PLAN_DONE_RECORD != 0 &&
	    ftruncate(fd, st.st_size - st.st_size % PLAN_DONE_RECORD))
		rc = -errno;
	errno = EIO; /* if only a part of the record is written */
	if (rc == 0 && write(fd, record, sizeof(record)) != (ssize_t)sizeof(record))
		rc = -errno;
	if (rc == 0 && note == PLAN_VOID)
		rc = sync_notes(d, fd);
	return rc ? err_errno(err, rc, "cannot note what is done") : 0;
}

static int read_file(int dir, const char *name, uint8_t **bytes, size_t *n)
{
	auto_close int fd = file_open(dir, name, O_RDONLY);
	*bytes = NULL;
	return fd < 0 ? fd : file_read_whole(fd, PLAN_MAX, bytes, n);
}

/* Without the file `done`, nothing is done. */
static int read_done(const struct draft *d, struct plan *plan, struct err *err)
{
	auto_free uint8_t *bytes = NULL;
	size_t n;
	int rc = read_file(d->dir.fd, "done", &bytes, &n);
	if (rc == 0)
		plan_apply_notes(plan, bytes, n);
	return rc == 0 || rc == -ENOENT ? 0 : err_errno(err, rc, "cannot read what is done");
}

int draft_get_plan(struct draft *d, struct plan *plan, struct err *err)
{
	uint8_t *file;
	size_t n;
	*plan = (struct plan){.count = 0};
	int rc = read_file(d->dir.fd, "plan", &file, &n);
	if (rc == -EFBIG)
		rc = err_set(err, -EBADMSG, "the file `plan` is too short or too long");
	else if (rc)
		rc = err_errno(err, rc, "cannot read the plan");
	else
		rc = plan_decode(file, n, plan, err);
	if (rc) {
		free(file);
		return rc;
	}
	rc = read_done(d, plan, err);
	if (rc)
		plan_release(plan);
	return rc;
}

/* Once the file `plan` is gone, the others mean nothing. What cannot be removed is removed with the
 * next plan, or with the draft. */
static int remove_held(struct draft *d, struct err *err)
{
	const int dir = d->dir.fd;
	if (unlinkat(dir, "plan", 0) && errno != ENOENT)
		return err_errno(err, -errno, "cannot remove the plan");
	/* After a crash of the machine the plan may be back. Then it needs its bodies, and to know
	 * what was sent. */
	const bool has_sent = d->done_is_named || d->recovered;
	d->keeps = false;
	d->planned = NULL;
	if ((has_sent || bodies_exist(dir)) && sync_file(dir))
		return 0;
	unlinkat(dir, "done", 0);
	d->done_is_named = false;
	bodies_remove(&d->bodies, dir, &d->dir.j->room, NULL);
	return 0;
}

int draft_remove_plan(struct draft *d, struct err *err)
{
	struct journal *j = d->dir.j;
	pthread_rwlock_wrlock(&d->changes);
	const uint64_t before = d->recovered ? usage_of(j->dir, d->dir.id) : 0;
	const uint64_t taken = d->bodies.taken;
	int rc = remove_held(d, err);
	/* The files of a draft that was left count with what they take on the disk. */
	if (d->recovered) {
		const uint64_t after = usage_of(j->dir, d->dir.id) + taken;
		room_forget(&j->room, before - min_u64(before, after));
	}
	pthread_rwlock_unlock(&d->changes);
	return rc;
}

int draft_find_planned(struct draft *d, struct err *err)
{
	struct plan plan;
	struct stat st;
	if (fstatat(d->dir.fd, "plan", &st, AT_SYMLINK_NOFOLLOW) && errno == ENOENT)
		return 0;
	int rc = draft_get_plan(d, &plan, err);
	if (rc)
		return rc;
	struct layer *layer = d->layers.top;
	while (layer && layer->generation != plan.generation)
		layer = layer->below;
	d->planned = layer;
	d->planned_size = plan.size;
	d->planned_changes = atomic_load(&d->changed);
	d->plan_number = plan.number;
	const uint64_t end = plan_file_end(plan.operations, plan.count);
	plan_release(&plan);
	if (!layer)
		return err_set(err, -EBADMSG, "the plan needs a generation that is not there");
	return end ? bodies_open(&d->bodies, d->dir.fd, end, err) : 0;
}
