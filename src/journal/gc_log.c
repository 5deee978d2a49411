/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of the gc log: see journal/gc_log.h.
 *
 *   ID.garbage of one process, which holds a lock on it; it is made with the first entry
 *   unreadable/ID.garbage a file whose header is damaged
 *
 * A process that makes or takes over a file holds the guard of the bucket's directory until it has
 * the lock on the file. So a file without a lock is one whose process has ended.
 */
#include <journal/gc_log.h>

#include <base/fd.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <base/hex.h>
#include <base/mem.h>

#include <journal/private_file.h>
#include "gc_log_record.h"
#include "gc_log_internal.h"
#include <journal/draft_dir.h>

#define SUFFIX ".garbage"

enum { TRIES = 16 };

int gc_log_new(struct journal *j, struct gc_log **out, struct err *err)
{
	struct gc_log *l = calloc(1, sizeof(*l));
	if (!l)
		return err_no_memory(err);
	l->j = j;
	l->fd = -1;
	l->dir = fcntl(j->dir, F_DUPFD_CLOEXEC, 0);
	if (l->dir < 0) {
		const int rc = -errno;
		free(l);
		return err_errno(err, rc, "cannot open the journal");
	}
	pthread_mutex_init(&l->lock, NULL);
	*out = l;
	return 0;
}

void gc_log_free(struct gc_log *l)
{
	if (!l)
		return;
	if (l->fd >= 0 && l->live == 0)
		unlinkat(l->dir, l->name, 0);
	cleanup_close(&l->fd);
	cleanup_close(&l->dir);
	pthread_mutex_destroy(&l->lock);
	free(l->used);
	free(l);
}

/* ---- the file of this process ---- */

static int make_name(struct gc_log *l)
{
	const struct env *env = l->j->env;
	for (int tries = 0; tries < TRIES; tries++) {
		uint8_t random[(JOURNAL_ID - 1) / 2];
		char id[JOURNAL_ID];
		env->random(env, random, sizeof(random));
		hex_encode(random, sizeof(random), id);
		snprintf(l->name, sizeof(l->name), "%s" SUFFIX, id);
		const int fd = file_open(l->dir, l->name, O_RDWR | O_CREAT | O_EXCL);
		if (fd != -EEXIST)
			return fd;
	}
	return -EEXIST;
}

static int make_file_locked(struct gc_log *l, struct err *err)
{
	uint8_t header[GC_HEADER];
	auto_close int guard = draft_dir_guard(l->j);
	const int fd = guard < 0 ? guard : make_name(l);
	if (fd < 0)
		return err_errno(err, fd, "cannot make a file in the journal");
	gc_log_header_encode(header);
	int rc = flock(fd, LOCK_EX | LOCK_NB) ? -errno : 0;
	if (!rc)
		rc = file_write(fd, 0, header, sizeof(header));
	if (!rc) {
		l->fd = fd;
		return 0;
	}
	unlinkat(l->dir, l->name, 0);
	close(fd);
	return err_errno(err, rc, "cannot write to the journal");
}

static int more_records_locked(struct gc_log *l, struct err *err)
{
	const uint32_t n = l->n ? 2 * l->n : 64;
	if (l->n >= GC_ENTRIES_MAX)
		return err_set(err, -ENOSPC, "the journal has %d entries of removed domains",
			       GC_ENTRIES_MAX);
	uint8_t *used = realloc(l->used, n);
	if (!used)
		return err_no_memory(err);
	memset(used + l->n, 0, n - l->n);
	l->used = used;
	l->n = n;
	return 0;
}

static int take_record(struct gc_log *l, uint32_t *record, struct err *err)
{
	int rc = 0;
	pthread_mutex_lock(&l->lock);
	if (l->fd < 0)
		rc = make_file_locked(l, err);
	const uint8_t *unused = rc || !l->n ? NULL : memchr(l->used, 0, l->n);
	const uint32_t found = unused ? (uint32_t)(unused - l->used) : l->n;
	if (!rc && !unused)
		rc = more_records_locked(l, err);
	if (!rc) {
		l->used[found] = 1;
		l->live++;
		*record = found;
	}
	pthread_mutex_unlock(&l->lock);
	return rc;
}

static void give_record(struct gc_log *l, uint32_t record)
{
	pthread_mutex_lock(&l->lock);
	l->used[record] = 0;
	l->live--;
	pthread_mutex_unlock(&l->lock);
}

static int write_record(struct gc_log *l, uint32_t record, const uint8_t bytes[GC_RECORD])
{
	const uint64_t at = GC_HEADER + (uint64_t)record * GC_RECORD;
	return file_write(l->fd, at, bytes, GC_RECORD);
}

int gc_log_put(struct gc_log *l, uint32_t *record, const struct gc_entry *entry, struct err *err)
{
	uint8_t bytes[GC_RECORD];
	uint32_t at = *record;
	int rc = at == GC_NONE ? take_record(l, &at, err) : 0;
	if (rc)
		return rc;
	rc = gc_log_encode(entry, at, bytes);
	if (!rc)
		rc = write_record(l, at, bytes);
	if (!rc)
		*record = at;
	else if (*record == GC_NONE)
		give_record(l, at);
	return rc ? err_errno(err, rc, "cannot write to the journal") : 0;
}

/* If the write fails, the next process finds nothing to delete. */
void gc_log_clear(struct gc_log *l, uint32_t *record)
{
	static const uint8_t zeros[GC_RECORD];
	if (*record == GC_NONE)
		return;
	write_record(l, *record, zeros);
	give_record(l, *record);
	*record = GC_NONE;
}

/* ---- files of other processes ---- */

typedef int entry_fn(void *ctx, const struct gc_entry *entry);

struct listing {
	const char *suffix;
	struct bytes names; /* of GC_NAME bytes each */
};

static int add_name(void *ctx, const char *name)
{
	struct listing *l = ctx;
	if (strlen(name) != GC_NAME - 1 || strspn(name, "0123456789abcdef") != JOURNAL_ID - 1 ||
	    strcmp(name + JOURNAL_ID - 1, l->suffix) != 0)
		return 0;
	return bytes_append(&l->names, name, GC_NAME);
}

int gc_log_each_file(const struct gc_log *l, const char *suffix,
		     int (*take)(void *ctx, const struct gc_log *l, const char *name), void *ctx,
		     struct err *err)
{
	struct listing all = {.suffix = suffix};
	int rc = file_each_name(l->dir, add_name, &all), first = 0;
	if (rc)
		first = err_errno(err, rc, "cannot list the journal");
	for (size_t at = 0; !rc && at < all.names.len; at += GC_NAME) {
		const char *name = (const char *)all.names.data + at;
		const int taken = take(ctx, l, name);
		if (taken && !first)
			first = err_errno(err, taken, "%s", name);
	}
	bytes_release(&all.names);
	return first;
}

int gc_log_open(const struct gc_log *l, const char *name)
{
	struct stat held, named;
	auto_close int guard = draft_dir_guard(l->j);
	if (guard < 0)
		return guard;
	const int fd = file_open(l->dir, name, O_RDWR);
	if (fd < 0)
		return fd;
	int rc = flock(fd, LOCK_EX | LOCK_NB) || fstat(fd, &held) ? -errno : 0;
	if (!rc &&
	    (fstatat(l->dir, name, &named, AT_SYMLINK_NOFOLLOW) || held.st_ino != named.st_ino))
		rc = -ENOENT;
	if (!rc)
		return fd;
	close(fd);
	return rc == -EWOULDBLOCK ? -EBUSY : rc;
}

int gc_log_set_aside(const struct gc_log *l, const char *name)
{
	if (mkdirat(l->dir, DRAFT_DIR_ASIDE, 0700) && errno != EEXIST)
		return -errno;
	auto_close int aside = file_open_dir(l->dir, DRAFT_DIR_ASIDE);
	if (aside < 0)
		return aside;
	return renameat2(l->dir, name, aside, name, RENAME_NOREPLACE) ? -errno : 0;
}

/* Reads the header. A positive result means that the file cannot be read, and was dealt with. */
static int read_header(const struct gc_log *l, int fd, const char *name, struct gc_log_taken *out)
{
	uint8_t header[GC_HEADER];
	size_t n;
	int rc = file_read(fd, 0, header, sizeof(header), &n);
	if (rc || n == 0) /* killed before the header was written */
		return rc;
	rc = gc_log_header_decode(header, n, NULL);
	if (rc == -ENOTSUP) {
		out->later++;
		return 1;
	}
	if (rc == 0)
		return 0;
	out->set_aside++;
	rc = gc_log_set_aside(l, name);
	return rc ? rc : 1;
}

static int read_entries(int fd, entry_fn *fn, void *ctx, struct gc_log_taken *out)
{
	uint8_t bytes[GC_RECORD];
	for (uint32_t record = 0; record < GC_ENTRIES_MAX; record++) {
		const uint64_t at = GC_HEADER + (uint64_t)record * GC_RECORD;
		struct gc_entry entry;
		size_t n;
		int rc = file_read(fd, at, bytes, sizeof(bytes), &n);
		if (rc || n == 0)
			return rc;
		rc = n == sizeof(bytes) ? gc_log_decode(bytes, record, &entry) : -EBADMSG;
		out->damaged += rc < 0;
		if (rc)
			continue;
		rc = fn(ctx, &entry);
		if (rc)
			return rc;
		out->entries++;
	}
	return 0;
}

struct taking {
	entry_fn *fn;
	void *ctx;
	struct gc_log_taken *out;
};

/* The file of this process is locked, too. */
static int take_file(void *ctx, const struct gc_log *l, const char *name)
{
	const struct taking *t = ctx;
	auto_close int fd = gc_log_open(l, name);
	if (fd < 0)
		return fd == -EBUSY || fd == -ENOENT ? 0 : fd;
	int rc = read_header(l, fd, name, t->out);
	if (rc)
		return rc < 0 ? rc : 0;
	rc = read_entries(fd, t->fn, t->ctx, t->out);
	if (!rc && unlinkat(l->dir, name, 0))
		rc = -errno;
	return rc;
}

int gc_log_take(struct gc_log *l, entry_fn *fn, void *ctx, struct gc_log_taken *out,
		struct err *err)
{
	struct taking t = {.fn = fn, .ctx = ctx, .out = out};
	*out = (struct gc_log_taken){0};
	return gc_log_each_file(l, SUFFIX, take_file, &t, err);
}
