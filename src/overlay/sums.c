/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checksums of a spool: see sums.h. The file, little-endian:
 *
 *    +0  8  "HSMDSUMS"
 *    +8  4  version: 1
 *   +12  4  CRC-32C of +0 to +12 and of everything from +16 on
 *   +16  4  generation
 *   +20  4  1 if the draft was durable and nothing will change it, else 0
 *   +24  4  number of frames, n
 *   +28  4  zero
 *   +32     for each frame 4 bytes CRC-32C and 4 bytes length, 0: no checksum
 *
 * Invariants:
 *  1. While the file exists, the spool does not change. It is removed before the first change.
 *  2. `length` is not 0 only if the first `length` bytes of the frame in the spool have the CRC, or
 *     while a write is in progress that will set it.
 */
#include "sums.h"

#include <base/fd.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/checksum.h>
#include <base/cursor.h>
#include <base/emit.h>
#include <base/mem.h>

#include "file.h"

enum {
	HEADER = 32,
	ENTRY = 8,
	CRC_AT = 12,
	VERSION = 1,
	NAME = 32,
	FIRST = 64, /* frames */
	WRITERS_MAX = (1 << 12) - 1,
};

static const char magic[8] = "HSMDSUMS", new_name[] = "sums.new";

static void name_of(const struct sums *s, char name[NAME])
{
	snprintf(name, NAME, "sums.%" PRIu32, s->generation);
}

void sums_init(struct sums *s, int dir, uint32_t generation, struct budget *budget)
{
	*s = (struct sums){.dir = dir,
			   .generation = generation,
			   .charge = {.budget = budget, .use = BUDGET_DRAFTS}};
	pthread_mutex_init(&s->lock, NULL);
}

void sums_release(struct sums *s)
{
	free(s->v);
	budget_set(&s->charge, 0, NULL);
	pthread_mutex_destroy(&s->lock);
}

/* ---- changes ---- */

static void unlink_saved_locked(struct sums *s)
{
	char name[NAME];
	if (!s->saved)
		return;
	name_of(s, name);
	unlinkat(s->dir, name, 0);
	s->saved = false;
}

/* Makes room for n frames, if it can. */
static void grow_locked(struct sums *s, uint64_t n)
{
	if (n <= s->n || s->full)
		return;
	const size_t more = (size_t)min_u64(max_u64(max_u64(2 * s->n, n), FIRST), SUMS_MAX);
	struct sum *v = NULL;
	if (budget_set(&s->charge, more * sizeof(*v), NULL) == 0)
		v = realloc(s->v, more * sizeof(*v));
	if (!v) {
		budget_set(&s->charge, s->n * sizeof(*v), NULL);
		s->full = true;
		return;
	}
	memset(v + s->n, 0, (more - s->n) * sizeof(*v));
	s->v = v;
	s->n = more;
}

/* Frames [*first, *last) of a range that have room. */
static void find_frames_locked(const struct sums *s, uint64_t start, uint64_t end, size_t *first,
			       size_t *last)
{
	*first = (size_t)min_u64(start / SUMS_FRAME, s->n);
	*last = (size_t)min_u64(div_up_u64(end, SUMS_FRAME), s->n);
}

void sums_begin(struct sums *s, uint64_t offset, size_t n)
{
	size_t i, last;
	pthread_mutex_lock(&s->lock);
	unlink_saved_locked(s);
	grow_locked(s, min_u64(div_up_u64(offset + n, SUMS_FRAME), SUMS_MAX));
	for (find_frames_locked(s, offset, offset + n, &i, &last); i < last; i++) {
		struct sum *f = &s->v[i];
		f->mixed |= f->writers > 0;
		f->writers += f->writers < WRITERS_MAX;
		f->touched = true;
	}
	pthread_mutex_unlock(&s->lock);
}

/* The checksum of a frame after n bytes were written at `at`, bytes from its beginning. */
static void add_bytes(struct sum *f, uint32_t at, const uint8_t *bytes, uint32_t n)
{
	const uint32_t length = f->length;
	if (at == 0 && n >= length)
		*f = (struct sum){.crc = checksum_crc32c(bytes, n, 0), .length = n};
	else if (at == length)
		*f = (struct sum){.crc = checksum_crc32c(bytes, n, f->crc), .length = at + n};
	else
		f->length = 0;
}

/* One frame, i, of a write. If the writer was alone, nobody else has changed the entry. */
static void end_frame(struct sums *s, size_t i, uint32_t at, const uint8_t *bytes, uint32_t n,
		      bool failed)
{
	struct sum sum;
	pthread_mutex_lock(&s->lock);
	sum = s->v[i];
	pthread_mutex_unlock(&s->lock);
	if (!sum.mixed && !failed)
		add_bytes(&sum, at, bytes, n);
	pthread_mutex_lock(&s->lock);
	struct sum *f = &s->v[i];
	f->crc = sum.crc;
	f->length = f->mixed || failed ? 0 : sum.length;
	f->writers--;
	f->mixed &= f->writers > 0;
	pthread_mutex_unlock(&s->lock);
}

void sums_end(struct sums *s, uint64_t offset, const void *buf, size_t n, bool failed)
{
	const uint8_t *bytes = buf;
	size_t i, last;
	pthread_mutex_lock(&s->lock);
	find_frames_locked(s, offset, offset + n, &i, &last);
	pthread_mutex_unlock(&s->lock);
	for (uint64_t at = offset; i < last; i++) {
		const uint64_t stop = min_u64(offset + n, (uint64_t)(i + 1) * SUMS_FRAME);
		end_frame(s, i, (uint32_t)(at % SUMS_FRAME), bytes + (at - offset),
			  (uint32_t)(stop - at), failed);
		at = stop;
	}
}

void sums_forget(struct sums *s, uint64_t start, uint64_t end)
{
	size_t i, last;
	pthread_mutex_lock(&s->lock);
	unlink_saved_locked(s);
	for (find_frames_locked(s, start, end, &i, &last); i < last; i++)
		s->v[i].length = 0;
	pthread_mutex_unlock(&s->lock);
}

/* ---- the file ---- */

/* Reads the first n bytes of a frame; what is behind the end of the spool is zero. */
static int read_frame(int spool, size_t i, uint8_t *buf, size_t n)
{
	size_t got;
	const int rc = file_read(spool, (uint64_t)i * SUMS_FRAME, buf, n, &got);
	if (rc == 0)
		memset(buf + got, 0, n - got);
	return rc;
}

/* Computes what is missing. */
static int complete(struct sums *s, int spool)
{
	auto_free uint8_t *buf = malloc(SUMS_FRAME);
	int rc = buf ? 0 : -ENOMEM;
	for (size_t i = 0; rc == 0 && i < s->n; i++) {
		struct sum *f = &s->v[i];
		if (f->length || !f->touched)
			continue;
		rc = read_frame(spool, i, buf, SUMS_FRAME);
		f->crc = checksum_crc32c(buf, SUMS_FRAME, 0);
		f->length = rc ? 0 : SUMS_FRAME;
	}
	return rc;
}

static uint32_t crc_of_file(const uint8_t *file, size_t n)
{
	const uint32_t crc = checksum_crc32c(file, CRC_AT, 0);
	return checksum_crc32c(file + CRC_AT + 4, n - CRC_AT - 4, crc);
}

static size_t count_frames(const struct sums *s)
{
	size_t n = s->n;
	while (n > 0 && !s->v[n - 1].length)
		n--;
	return n;
}

uint8_t *sums_encode(const struct sums *s, bool final, size_t *size)
{
	const size_t n = count_frames(s);
	*size = HEADER + n * ENTRY;
	uint8_t *file = malloc(*size);
	if (!file)
		return NULL;
	struct emit e = emit_to(file, *size);
	emit_bytes(&e, magic, sizeof(magic));
	emit_u32(&e, VERSION);
	emit_u32(&e, 0);
	emit_u32(&e, s->generation);
	emit_u32(&e, final);
	emit_u32(&e, (uint32_t)n);
	emit_u32(&e, 0);
	for (size_t i = 0; i < n; i++) {
		emit_u32(&e, s->v[i].crc);
		emit_u32(&e, s->v[i].length);
	}
	emit_patch_u32(&e, CRC_AT, crc_of_file(file, *size));
	return file;
}

static int write_file(const struct sums *s, const uint8_t *file, size_t n, bool durable)
{
	char name[NAME];
	name_of(s, name);
	auto_close int fd = file_open(s->dir, new_name, O_WRONLY | O_CREAT | O_TRUNC);
	int rc = fd < 0 ? fd : file_write(fd, 0, file, n);
	if (rc == 0 && durable && fsync(fd))
		rc = -errno;
	if (rc == 0 && renameat(s->dir, new_name, s->dir, name))
		rc = -errno;
	if (rc == 0 && durable && fsync(s->dir))
		rc = -errno;
	if (rc)
		unlinkat(s->dir, new_name, 0);
	return rc;
}

int sums_save(struct sums *s, int spool, bool final)
{
	size_t n;
	pthread_mutex_lock(&s->lock);
	int rc = complete(s, spool);
	auto_free uint8_t *file = rc ? NULL : sums_encode(s, final, &n);
	if (rc == 0)
		rc = file ? write_file(s, file, n, final) : -ENOMEM;
	if (rc == 0)
		s->saved = true;
	pthread_mutex_unlock(&s->lock);
	return rc;
}

void sums_remove(struct sums *s)
{
	pthread_mutex_lock(&s->lock);
	unlink_saved_locked(s);
	pthread_mutex_unlock(&s->lock);
}

int sums_decode(struct sums *s, const uint8_t *file, size_t size, bool *final)
{
	struct cursor c = cursor_of(file, size);
	const uint8_t *const start = cur_bytes(&c, sizeof(magic));
	const uint32_t version = cur_u32(&c), crc = cur_u32(&c);
	const uint32_t generation = cur_u32(&c), durable = cur_u32(&c), n = cur_u32(&c);
	const uint32_t zero = cur_u32(&c);
	if (!cur_ok(&c) || memcmp(start, magic, sizeof(magic)) != 0 || version != VERSION ||
	    crc != crc_of_file(file, size) || generation != s->generation || durable > 1 || zero ||
	    n > SUMS_MAX || size != HEADER + (size_t)n * ENTRY)
		return -EBADMSG;
	*final = durable;
	s->v = calloc(n ? n : 1, sizeof(*s->v));
	if (!s->v)
		return -ENOMEM;
	s->n = n;
	for (size_t i = 0; i < n; i++) {
		s->v[i].crc = cur_u32(&c);
		const uint32_t length = cur_u32(&c);
		if (length > SUMS_FRAME)
			return -EBADMSG;
		s->v[i].length = length;
	}
	/* No checksum at the end says nothing. */
	return n && !s->v[n - 1].length ? -EBADMSG : 0;
}

int sums_load(struct sums *s, bool same_boot, struct err *err)
{
	char name[NAME];
	struct stat st;
	bool final = false;
	size_t n = 0;
	name_of(s, name);
	auto_close int fd = file_open(s->dir, name, O_RDONLY);
	if (fd == -ENOENT)
		return 0;
	int rc = fd < 0 ? fd : fstat(fd, &st) ? -errno : 0;
	if (rc == 0 && st.st_size > HEADER + (off_t)SUMS_MAX * ENTRY)
		rc = -EBADMSG;
	auto_free uint8_t *file = rc ? NULL : malloc((size_t)st.st_size + 1);
	if (rc == 0)
		rc = file ? file_read(fd, 0, file, (size_t)st.st_size, &n) : -ENOMEM;
	if (rc == 0)
		rc = budget_set(&s->charge, n / ENTRY * sizeof(*s->v), err);
	if (rc == 0)
		rc = sums_decode(s, file, n, &final);
	s->loaded = rc == 0 && (final || same_boot);
	/* After a crash of the machine, a file may be torn that did not have to be durable. */
	if (rc == -EBADMSG && !same_boot)
		return 0;
	return rc == 0		? 0
	       : rc == -EBADMSG ? err_set(err, rc, "%s is damaged", name)
				: err_errno(err, rc, "cannot read %s", name);
}

/* ---- reading ---- */

static int check_frame(struct sums *s, int spool, size_t i, uint8_t *buf, struct err *err)
{
	pthread_mutex_lock(&s->lock);
	const struct sum sum = s->v[i];
	pthread_mutex_unlock(&s->lock);
	if (sum.checked || !sum.length)
		return 0;
	int rc = read_frame(spool, i, buf, sum.length);
	if (rc)
		return err_errno(err, rc, "cannot read the spool");
	if (checksum_crc32c(buf, sum.length, 0) != sum.crc)
		return err_set(err, -EBADMSG,
			       "spool.%" PRIu32 " is damaged: the %u bytes at offset %" PRIu64
			       " are not those that were written",
			       s->generation, (unsigned int)sum.length, (uint64_t)i * SUMS_FRAME);
	pthread_mutex_lock(&s->lock);
	s->v[i].checked = true;
	pthread_mutex_unlock(&s->lock);
	return 0;
}

int sums_check(struct sums *s, int spool, uint64_t offset, size_t n, struct err *err)
{
	size_t i, last;
	if (!s->loaded)
		return 0;
	auto_free uint8_t *buf = malloc(SUMS_FRAME);
	if (!buf)
		return err_set(err, -ENOMEM, "out of memory");
	int rc = 0;
	for (find_frames_locked(s, offset, offset + n, &i, &last); rc == 0 && i < last; i++)
		rc = check_frame(s, spool, i, buf, err);
	return rc;
}
