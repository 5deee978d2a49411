/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of removed objects: see journal/gc_objects.h.
 *
 *   ID/removed             of a draft; it counts only if the draft has a plan
 *   NUMBER.removed         of one process, which holds a lock on it; NUMBER is random
 *   unreadable/NUMBER.removed a file that is damaged
 */
#include <journal/gc_objects.h>

#include <base/fd.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include <base/hex.h>
#include <journal/draft_dir.h>

#include <journal/private_file.h>
#include "gc_log_internal.h"
#include "gc_objects_codec.h"

#define SUFFIX	  ".removed"
#define FILE_NAME "removed" /* in a draft */

enum { TRIES = 16 };

struct gc_objects {
	struct gc_objects_list list;
	uint8_t *file; /* its bytes, to which the list points */
	int fd;	       /* locked */
	char name[GC_NAME];
};

const struct gc_objects_list *gc_objects_get(const struct gc_objects *r)
{
	return &r->list;
}

void gc_objects_close(struct gc_objects *r)
{
	if (!r)
		return;
	cleanup_close(&r->fd);
	free(r->list.objects);
	free(r->file);
	free(r);
}

void gc_objects_forget(struct gc_log *l, struct gc_objects *r)
{
	unlinkat(l->dir, r->name, 0);
	gc_objects_close(r);
}

/* ---- reading ---- */

static int read_list(struct gc_objects *r, struct err *err)
{
	size_t n;
	const int rc = file_read_whole(r->fd, GC_OBJECTS_MAX, &r->file, &n);
	if (rc == -EFBIG)
		return err_set(err, -EBADMSG, "the list of removed objects is too long");
	if (rc == -ENOMEM)
		return err_no_memory(err);
	return rc ? err_errno(err, rc, "cannot read the list of removed objects")
		  : gc_objects_decode(r->file, n, &r->list, err);
}

/* Takes fd over. */
static int read_removed(int fd, struct gc_objects **out, struct err *err)
{
	struct gc_objects *r = calloc(1, sizeof(*r));
	*out = NULL;
	if (!r) {
		close(fd);
		return err_no_memory(err);
	}
	r->fd = fd;
	const int rc = read_list(r, err);
	if (rc)
		gc_objects_close(r);
	else
		*out = r;
	return rc;
}

/* ---- in the directory of a draft ---- */

int gc_objects_write(int dir, const struct gc_objects_list *list, struct err *err)
{
	auto_bytes struct bytes file = {0};
	int rc = list ? gc_objects_encode(list, &file, err) : 0;
	if (rc)
		return rc;
	if (list)
		rc = file_replace(dir, FILE_NAME, file.data, file.len);
	else if (unlinkat(dir, FILE_NAME, 0) && errno != ENOENT)
		rc = -errno;
	return rc ? err_errno(err, rc, "cannot write the list of removed objects") : 0;
}

static int move_out(const struct journal *j, int dir, struct gc_objects *r)
{
	for (int tries = 0; tries < TRIES; tries++) {
		uint8_t random[(JOURNAL_ID - 1) / 2];
		char id[JOURNAL_ID];
		j->env->random(j->env, random, sizeof(random));
		hex_encode(random, sizeof(random), id);
		snprintf(r->name, sizeof(r->name), "%s" SUFFIX, id);
		if (!renameat2(dir, FILE_NAME, j->dir, r->name, RENAME_NOREPLACE))
			return fsync(j->dir) ? -errno : 0;
		if (errno != EEXIST)
			return -errno;
	}
	return -EEXIST;
}

int gc_objects_take_out(const struct journal *j, int dir, struct gc_objects **out, struct err *err)
{
	const int fd = file_open(dir, FILE_NAME, O_RDWR);
	*out = NULL;
	if (fd == -ENOENT)
		return 0;
	if (fd < 0)
		return err_errno(err, fd, "cannot open the list of removed objects");
	int rc = flock(fd, LOCK_EX | LOCK_NB) ? -errno : 0; /* before others can see it */
	if (rc) {
		close(fd);
		return err_errno(err, rc, "cannot lock the list of removed objects");
	}
	rc = read_removed(fd, out, err);
	if (rc)
		return rc;
	rc = move_out(j, dir, *out);
	if (!rc)
		return 0;
	gc_objects_close(*out);
	*out = NULL;
	return err_errno(err, rc, "cannot move the list of removed objects");
}

/* ---- files of other processes ---- */

typedef int list_fn(void *ctx, struct gc_objects *r);

struct taking {
	list_fn *fn;
	void *ctx;
	struct gc_log_taken *out;
};

static int take_file(void *ctx, const struct gc_log *l, const char *name)
{
	const struct taking *t = ctx;
	struct gc_objects *r;
	const int fd = gc_log_open(l, name);
	if (fd < 0)
		return fd == -EBUSY || fd == -ENOENT ? 0 : fd;
	int rc = read_removed(fd, &r, NULL);
	if (rc == -ENOTSUP) {
		t->out->later++;
		return 0;
	}
	if (rc == -EBADMSG) {
		t->out->set_aside++;
		return gc_log_set_aside(l, name);
	}
	if (rc)
		return rc;
	memcpy(r->name, name, GC_NAME);
	rc = t->fn(t->ctx, r);
	t->out->entries += !rc;
	if (rc)
		gc_objects_close(r);
	return rc;
}

int gc_objects_take_left(struct gc_log *l, list_fn *fn, void *ctx, struct gc_log_taken *out,
			 struct err *err)
{
	struct taking t = {.fn = fn, .ctx = ctx, .out = out};
	*out = (struct gc_log_taken){0};
	return gc_log_each_file(l, SUFFIX, take_file, &t, err);
}
