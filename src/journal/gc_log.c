/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of the log: see journal/gc_log.h.
 *
 *   ID.events            of one process, which holds a lock on it; it is made with the first entry
 *   unreadable/ID.events a file that is damaged before its end
 *
 * The first record is HSMDEVNT, the others are events (gc_event.c). A file ends before a record
 * that is torn at its end, or was never written. A file with much that does not count any more is
 * replaced by a new one, with another id: if the process is killed in between, the next one finds
 * the entries twice.
 *
 * A process that makes or takes over a file holds the guard of the bucket's directory until it has
 * the lock on the file. So a file without a lock is one whose process has ended.
 */
#include <journal/gc_log.h>

#include <base/fd.h>

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <journal/draft_dir.h>
#include <journal/private_file.h>

#define SUFFIX ".events"

enum {
	TRIES = 16,
	NAME = JOURNAL_ID + sizeof(SUFFIX) - 1,
	COMPACT_MIN = 1 << 20, /* bytes that a file has at least when a new one replaces it */
};

struct slot {
	uint64_t at;	 /* of the last event of an entry */
	uint32_t length; /* 0: there is no such entry */
};

struct log_file {
	int fd; /* -1 if there is no file yet */
	char name[NAME];
	bool is_named; /* its name is durable */
	uint64_t size;
	struct slot *slots; /* by number */
	uint32_t n, live;
	uint32_t unused; /* all entries with smaller numbers are in use */
};

struct gc_log {
	const struct env *env;
	int dir; /* of the bucket; a descriptor of its own, because the journal may be closed
		  * before */
	pthread_mutex_t lock;
	struct log_file file;
	uint64_t compact_at; /* size of the file */
};

static void file_end(struct log_file *f)
{
	cleanup_close(&f->fd);
	free(f->slots);
	*f = (struct log_file){.fd = -1};
}

int gc_log_new(struct journal *j, struct gc_log **out, struct err *err)
{
	struct gc_log *l = calloc(1, sizeof(*l));
	if (!l)
		return err_no_memory(err);
	l->env = j->env;
	l->file.fd = -1;
	l->compact_at = COMPACT_MIN;
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
	if (l->file.fd >= 0 && l->file.live == 0)
		unlinkat(l->dir, l->file.name, 0);
	file_end(&l->file);
	cleanup_close(&l->dir);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

/* ---- entries ---- */

/* Fails with -ENOMEM, but not if the number has had an entry before. */
static int set_slot(struct log_file *f, uint32_t number, uint64_t at, uint32_t length)
{
	if (number >= f->n) {
		const uint32_t n = (number | 63) + 1;
		struct slot *slots = reallocarray(f->slots, n, sizeof(*slots));
		if (!slots)
			return -ENOMEM;
		memset(slots + f->n, 0, (n - f->n) * sizeof(*slots));
		f->slots = slots;
		f->n = n;
	}
	struct slot *s = &f->slots[number];
	f->live += (length != 0) - (s->length != 0);
	if (!length && number < f->unused)
		f->unused = number;
	*s = (struct slot){at, length};
	return 0;
}

static uint32_t unused_slot(struct log_file *f)
{
	while (f->unused < f->n && f->slots[f->unused].length)
		f->unused++;
	return f->unused;
}

/* ---- writing ---- */

/* What a failed write leaves behind the end is cut off, or overwritten by the next one. */
static int append(struct log_file *f, const struct bytes *frame)
{
	const int rc = file_write(f->fd, f->size, frame->data, frame->len);
	if (!rc)
		f->size += frame->len;
	else if (ftruncate(f->fd, (off_t)f->size))
		return rc;
	return rc;
}

static int make_name(struct gc_log *l, struct log_file *f)
{
	char id[JOURNAL_ID];
	for (int tries = 0; tries < TRIES; tries++) {
		draft_dir_new_id(l->env, id);
		snprintf(f->name, sizeof(f->name), "%s" SUFFIX, id);
		const int fd = file_open(l->dir, f->name, O_RDWR | O_CREAT | O_EXCL);
		if (fd != -EEXIST)
			return fd;
	}
	return -EEXIST;
}

static int make_file(struct gc_log *l, struct log_file *f)
{
	auto_bytes struct bytes head = {0};
	auto_close int guard = draft_dir_guard(l->dir);
	*f = (struct log_file){.fd = -1};
	f->fd = guard < 0 ? guard : make_name(l, f);
	if (f->fd < 0)
		return f->fd;
	int rc = flock(f->fd, LOCK_EX | LOCK_NB) ? -errno : 0;
	if (!rc)
		rc = frame_put_head(&head, GC_MAGIC, GC_VERSION);
	if (!rc)
		rc = append(f, &head);
	if (!rc)
		return 0;
	unlinkat(l->dir, f->name, 0);
	file_end(f);
	return rc;
}

/* After a failure the system forgets which bytes the disk lacks, so a new file replaces this one.
 */
static int sync_file(struct gc_log *l, struct log_file *f)
{
	if (fdatasync(f->fd) || (!f->is_named && fsync(l->dir))) {
		l->compact_at = 0;
		return -errno;
	}
	f->is_named = true;
	return 0;
}

/* Copies the last events of all entries. */
static int copy_entries(struct log_file *from, struct log_file *to)
{
	auto_bytes struct bytes frame = {0};
	int rc = 0;
	for (uint32_t i = 0; !rc && i < from->n; i++) {
		const struct slot *s = &from->slots[i];
		size_t n = 0;
		frame.len = 0;
		if (s->length)
			rc = bytes_reserve(&frame, s->length);
		if (!rc && s->length)
			rc = file_read(from->fd, s->at, frame.data, s->length, &n);
		frame.len = n;
		if (!rc && n != s->length)
			rc = -EIO;
		if (!rc && n)
			rc = set_slot(to, i, to->size, s->length);
		if (!rc && n)
			rc = append(to, &frame);
	}
	return rc;
}

/* If it fails, the file stays as it is, and grows. */
static void compact_locked(struct gc_log *l)
{
	struct log_file *old = &l->file, new;
	l->compact_at = 2 * old->size;
	if (make_file(l, &new))
		return;
	if (copy_entries(old, &new) || sync_file(l, &new)) {
		unlinkat(l->dir, new.name, 0);
		file_end(&new);
		return;
	}
	unlinkat(l->dir, old->name, 0);
	file_end(old);
	*old = new;
	l->compact_at = COMPACT_MIN + 2 * new.size;
}

/* *number is that of the entry, or GC_NONE. */
static int put_locked(struct gc_log *l, uint32_t *number, const struct gc_event *event,
		      bool is_durable, struct err *err)
{
	struct log_file *f = &l->file;
	const uint32_t at = *number == GC_NONE ? unused_slot(f) : *number;
	auto_bytes struct bytes frame = {0};
	if (at >= GC_ENTRIES_MAX)
		return err_set(err, -ENOSPC, "the journal has %d notes of what is to be deleted",
			       GC_ENTRIES_MAX);
	int rc = gc_event_encode(event, at, &frame, err);
	if (rc)
		return rc;
	rc = f->fd < 0 ? make_file(l, f) : 0;
	const uint64_t start = f->size;
	if (!rc)
		rc = append(f, &frame);
	if (!rc && is_durable)
		rc = sync_file(l, f);
	if (!rc)
		rc = set_slot(f, at, start, event->type == GC_DELETED ? 0 : (uint32_t)frame.len);
	if (rc)
		return err_errno(err, rc, "cannot write to the journal");
	*number = at;
	if (f->size >= l->compact_at)
		compact_locked(l);
	return 0;
}

int gc_log_put(struct gc_log *l, uint32_t *number, const struct gc_event *event, struct err *err)
{
	assert(event->type >= GC_EXPECTED && event->type < GC_DELETED);
	if (!l)
		return 0;
	pthread_mutex_lock(&l->lock);
	const int rc = put_locked(l, number, event, event->type == GC_OBJECTS, err);
	pthread_mutex_unlock(&l->lock);
	return rc;
}

void gc_log_clear(struct gc_log *l, uint32_t *number)
{
	const struct gc_event ended = {.type = GC_DELETED};
	if (!l || *number == GC_NONE)
		return;
	pthread_mutex_lock(&l->lock);
	/* If the write fails, the next process finds nothing to delete. */
	if (put_locked(l, number, &ended, false, NULL))
		set_slot(&l->file, *number, 0, 0);
	pthread_mutex_unlock(&l->lock);
	*number = GC_NONE;
}

/* ---- reading ---- */

/* Returns 0 if all bytes from `at` on are zeros, or a negative errno: -EBADMSG if not. */
static int rest_is_zero(int fd, uint64_t at)
{
	uint8_t bytes[4096];
	size_t n = 1;
	int rc = 0;
	for (; !rc && n; at += n) {
		rc = file_read(fd, at, bytes, sizeof(bytes), &n);
		struct cursor c = cursor_of(bytes, n);
		if (!rc && n && !cur_is_zero(&c))
			rc = -EBADMSG;
	}
	return rc;
}

/* Reads the record at `at`. Returns 1, or 0 if there is none; then *torn says whether a part of one
 * is there. Fails with -EBADMSG if a record is damaged, or torn: then its length may be damaged,
 * and others follow. */
static int read_record(int fd, uint64_t at, struct bytes *out, bool *torn)
{
	struct stat st;
	size_t n;
	uint8_t header[FRAME_HEADER];
	uint16_t type;
	int rc = file_read(fd, at, header, sizeof(header), &n);
	if (rc || fstat(fd, &st))
		return rc ? rc : -errno;
	struct cursor c = cursor_of(header, n), zeros = c, body;
	*torn = !cur_is_zero(&zeros);
	cur_skip(&c, 4);
	const uint64_t length = FRAME_HEADER + (uint64_t)cur_u32(&c), end = at + length;
	/* The disk may have got the size of the file, and not its bytes. */
	if (!*torn)
		return rest_is_zero(fd, at);
	if (n < sizeof(header))
		return 0;
	/* Either the record is torn, or its length is damaged, and others follow. */
	if (end > (uint64_t)st.st_size)
		return -EBADMSG;
	out->len = 0;
	rc = length > GC_EVENT_MAX + FRAME_HEADER ? -EBADMSG : bytes_reserve(out, length);
	if (!rc)
		rc = file_read(fd, at, out->data, length, &out->len);
	c = cursor_of(out->data, out->len);
	if (!rc && frame_next(&c, &type, &body) != 1)
		rc = -EBADMSG;
	else if (!rc)
		rc = 1;
	return rc;
}

static int decode(const struct bytes *frame, uint32_t *number, struct gc_event *out)
{
	struct cursor c = cursor_of(frame->data, frame->len), body;
	uint16_t type;
	if (frame_next(&c, &type, &body) != 1)
		return -EBADMSG;
	return gc_event_decode(type, body, number, out);
}

static int read_event(const struct log_file *f, uint32_t number, struct gc_kept *out)
{
	bool torn;
	uint32_t found;
	*out = (struct gc_kept){.event.path = NULL};
	int rc = number < f->n && f->slots[number].length
			 ? read_record(f->fd, f->slots[number].at, &out->bytes, &torn)
			 : 0;
	rc = rc > 0 ? decode(&out->bytes, &found, &out->event) : rc ? rc : -EBADMSG;
	if (rc)
		gc_kept_release(out);
	return rc;
}

void gc_kept_release(struct gc_kept *kept)
{
	free(kept->event.objects);
	bytes_release(&kept->bytes);
	*kept = (struct gc_kept){.event.path = NULL};
}

int gc_log_get(struct gc_log *l, uint32_t number, struct gc_kept *out, struct err *err)
{
	pthread_mutex_lock(&l->lock);
	const int rc = read_event(&l->file, number, out);
	pthread_mutex_unlock(&l->lock);
	return rc ? err_errno(err, rc, "cannot read what is to be deleted from the journal") : 0;
}

/* Finds the last events of all entries. `size` becomes that of the part that can be read. Fails
 * with -EBADMSG if the file is damaged before its end, and with -ENOTSUP if it is of a later
 * version. */
static int replay(struct log_file *f, bool *torn)
{
	auto_bytes struct bytes frame = {0};
	int rc;
	while ((rc = read_record(f->fd, f->size, &frame, torn)) > 0) {
		struct cursor c = cursor_of(frame.data, frame.len);
		struct gc_event event = {.objects = NULL};
		uint32_t number;
		if (f->size == 0)
			rc = frame_take_head(&c, GC_MAGIC, GC_VERSION, NULL);
		else
			rc = decode(&frame, &number, &event);
		free(event.objects);
		if (!rc && f->size && number >= GC_ENTRIES_MAX)
			rc = -EBADMSG;
		if (!rc && f->size)
			rc = set_slot(f, number, f->size,
				      event.type == GC_DELETED ? 0 : (uint32_t)frame.len);
		if (rc)
			return rc;
		f->size += frame.len;
	}
	return rc;
}

/* ---- files of other processes ---- */

static int add_name(void *ctx, const char *name)
{
	if (strlen(name) != NAME - 1 || strspn(name, "0123456789abcdef") != JOURNAL_ID - 1 ||
	    strcmp(name + JOURNAL_ID - 1, SUFFIX) != 0)
		return 0;
	return bytes_append(ctx, name, NAME);
}

/* Opens and locks a file of a process that has ended. Returns a descriptor. Fails with -EBUSY if
 * the process still runs, and with -ENOENT if another one has taken the file over. */
static int open_left(const struct gc_log *l, const char *name)
{
	struct stat held, named;
	auto_close int guard = draft_dir_guard(l->dir);
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

static int set_aside(const struct gc_log *l, const char *name)
{
	if (mkdirat(l->dir, DRAFT_DIR_ASIDE, 0700) && errno != EEXIST)
		return -errno;
	auto_close int aside = file_open_dir(l->dir, DRAFT_DIR_ASIDE);
	if (aside < 0)
		return aside;
	return renameat2(l->dir, name, aside, name, RENAME_NOREPLACE) ? -errno : 0;
}

struct taking {
	struct gc_log *l;
	void (*fn)(void *ctx, const struct gc_event *event, uint32_t number);
	void *ctx;
	struct gc_log_taken *out;
};

static int take_entry(const struct taking *t, const struct log_file *f, uint32_t i, struct err *err)
{
	auto_gc_kept struct gc_kept kept = {.event.path = NULL};
	uint32_t number = GC_NONE;
	int rc = read_event(f, i, &kept);
	if (rc)
		return err_errno(err, rc, "cannot read it");
	pthread_mutex_lock(&t->l->lock);
	rc = put_locked(t->l, &number, &kept.event, false, err);
	pthread_mutex_unlock(&t->l->lock);
	if (rc)
		return rc;
	t->fn(t->ctx, &kept.event, number);
	t->out->entries++;
	return 0;
}

/* The copies are durable before the file is deleted. */
static int take_entries(const struct taking *t, const struct log_file *f, struct err *err)
{
	int rc = 0;
	for (uint32_t i = 0; !rc && i < f->n; i++)
		rc = f->slots[i].length ? take_entry(t, f, i, err) : 0;
	if (rc || !f->live)
		return rc;
	pthread_mutex_lock(&t->l->lock);
	rc = sync_file(t->l, &t->l->file);
	pthread_mutex_unlock(&t->l->lock);
	return rc ? err_errno(err, rc, "cannot sync the journal") : 0;
}

/* The file of this process is locked, too. */
static int take_file(const struct taking *t, const char *name, struct err *err)
{
	struct log_file f = {.fd = open_left(t->l, name)};
	bool torn = false;
	t->out->held += f.fd == -EBUSY && strcmp(name, t->l->file.name) != 0;
	if (f.fd < 0)
		return f.fd == -EBUSY || f.fd == -ENOENT ? 0 : err_errno(err, f.fd, "%s", name);
	const int found = replay(&f, &torn);
	const bool is_damaged = found == -EBADMSG;
	int rc = 0;
	if (found && !is_damaged && found != -ENOTSUP)
		rc = err_errno(err, found, "cannot read it");
	t->out->later += found == -ENOTSUP;
	if (!rc && found != -ENOTSUP) {
		rc = take_entries(t, &f, err);
		t->out->damaged += !rc && (is_damaged || torn);
		t->out->set_aside += !rc && is_damaged;
		const int gone = rc				? 0
				 : is_damaged			? set_aside(t->l, name)
				 : unlinkat(t->l->dir, name, 0) ? -errno
								: 0;
		if (gone)
			rc = err_errno(err, gone, "cannot remove it");
	}
	file_end(&f);
	return rc ? err_wrap(err, rc, "%s", name) : 0;
}

/* A failure does not end the walk: the result is the error of the first file that failed. */
int gc_log_take(struct gc_log *l,
		void (*fn)(void *ctx, const struct gc_event *event, uint32_t number), void *ctx,
		struct gc_log_taken *out, struct err *err)
{
	const struct taking t = {.l = l, .fn = fn, .ctx = ctx, .out = out};
	auto_bytes struct bytes names = {0};
	*out = (struct gc_log_taken){0};
	int rc = file_each_name(l->dir, add_name, &names);
	if (rc)
		return err_errno(err, rc, "cannot list the journal");
	for (size_t at = 0; at < names.len; at += NAME) {
		struct err why = ERR_INIT;
		const int taken = take_file(&t, (const char *)names.data + at, &why);
		if (taken && !rc) {
			rc = taken;
			err_copy(err, &why);
		}
	}
	return rc;
}
