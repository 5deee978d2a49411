/* SPDX-License-Identifier: Apache-2.0 */
/* See spool.h. */
#include "spool.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/mem.h>

#include <journal/private_file.h>

void spool_name(uint32_t generation, char name[SPOOL_NAME])
{
	snprintf(name, SPOOL_NAME, "spool.%" PRIu32, generation);
}

static int make(int fd, int dir, uint32_t generation, struct budget *budget, struct spool **out,
		struct err *err)
{
	char name[SPOOL_NAME];
	spool_name(generation, name);
	if (fd < 0)
		return err_errno(err, fd, "%s", name);
	struct spool *s = malloc(sizeof(*s));
	if (!s) {
		close(fd);
		return err_no_memory(err);
	}
	*s = (struct spool){.fd = fd};
	atomic_init(&s->refs, 1);
	sums_init(&s->sums, dir, generation, budget);
	*out = s;
	return 0;
}

int spool_create(int dir, uint32_t generation, struct budget *budget, struct spool **out,
		 struct err *err)
{
	char name[SPOOL_NAME];
	spool_name(generation, name);
	int rc = make(file_open(dir, name, O_RDWR | O_CREAT | O_TRUNC), dir, generation, budget,
		      out, err);
	if (rc)
		return rc;
	rc = sums_create(&(*out)->sums, err);
	if (rc) {
		spool_unref(*out);
		*out = NULL;
	}
	return rc;
}

int spool_open(int dir, uint32_t generation, bool same_boot, struct budget *budget,
	       struct spool **out, struct err *err)
{
	char name[SPOOL_NAME];
	spool_name(generation, name);
	const int fd = file_open(dir, name, O_RDONLY);
	if (fd == -ENOENT)
		return err_set(err, -EBADMSG, "%s is missing", name);
	int rc = make(fd, dir, generation, budget, out, err);
	return rc ? rc : sums_load(&(*out)->sums, same_boot, err);
}

struct spool *spool_ref(struct spool *s)
{
	atomic_fetch_add(&s->refs, 1);
	return s;
}

void spool_unref(struct spool *s)
{
	if (!s || atomic_fetch_sub(&s->refs, 1) != 1)
		return;
	sums_release(&s->sums);
	close(s->fd);
	free(s);
}

/* Ends a change whose result is rc. */
static int end_change(struct spool *s, struct sums_change *c, const void *buf, int rc,
		      const char *what, struct err *err)
{
	const enum sums_outcome outcome = rc == 0	      ? SUMS_CHANGED
					  : rc == -EOPNOTSUPP ? SUMS_UNCHANGED
							      : SUMS_FAILED;
	const int sums = sums_end(&s->sums, s->fd, c, buf, outcome);
	if (rc)
		return err_errno(err, rc, "%s", what);
	return sums ? err_errno(err, sums, "cannot write the checksums of the spool") : 0;
}

static int begin_change(struct spool *s, struct sums_change *c, struct err *err)
{
	const int rc = sums_begin(&s->sums, s->fd, c);
	return rc ? err_errno(err, rc, "cannot write the checksums of the spool") : 0;
}

int spool_write(struct spool *s, uint64_t offset, const void *buf, size_t n, struct err *err)
{
	const uint64_t end = offset + n;
	struct sums_change c = {.offset = offset, .end = end, .need = end};
	int rc = begin_change(s, &c, err);
	if (rc)
		return rc;
	rc = file_write(s->fd, offset, buf, n);
	return end_change(s, &c, buf, rc, "cannot write to the spool", err);
}

int spool_read(struct spool *s, uint64_t offset, void *buf, size_t n, struct err *err)
{
	size_t got;
	int rc = sums_check(&s->sums, s->fd, offset, n, err);
	if (rc)
		return rc;
	rc = file_read(s->fd, offset, buf, n, &got);
	if (rc)
		return err_errno(err, rc, "cannot read the spool");
	memset((uint8_t *)buf + got, 0, n - got);
	return 0;
}

int spool_prepare(struct spool *s, uint64_t offset, uint64_t n, uint32_t *crc, struct err *err)
{
	int rc = sums_check(&s->sums, s->fd, offset, (size_t)n, err);
	if (rc)
		return rc;
	rc = sums_crc(&s->sums, s->fd, offset, n, crc);
	if (rc)
		return err_errno(err, rc, "cannot read the spool");
	/* This is advice; a failure does not matter. */
	posix_fadvise(s->fd, (off_t)offset, (off_t)n, POSIX_FADV_WILLNEED);
	return 0;
}

int spool_allocate(struct spool *s, uint64_t offset, uint64_t n, struct err *err)
{
	if (fallocate(s->fd, FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)n) == 0 ||
	    errno == EOPNOTSUPP)
		return 0;
	return err_errno(err, -errno, "cannot allocate the spool");
}

/* A file that is shorter keeps its size, but loses what was allocated behind its end. */
static int truncate_to(const struct spool *s, uint64_t offset)
{
	struct stat st;
	return fstat(s->fd, &st) || ftruncate(s->fd, (off_t)min_u64(offset, (uint64_t)st.st_size))
		       ? -errno
		       : 0;
}

int spool_cut(struct spool *s, uint64_t offset, struct err *err)
{
	struct sums_change c = {.offset = offset, .end = align_u64(offset, SUMS_FRAME)};
	int rc = begin_change(s, &c, err);
	if (rc)
		return rc;
	rc = sums_cut(&s->sums, offset);
	if (rc == 0)
		rc = truncate_to(s, offset);
	if (rc == 0)
		sums_forget(&s->sums, offset);
	return end_change(s, &c, NULL, rc, "cannot truncate the spool", err);
}

int spool_zero(struct spool *s, uint64_t offset, uint64_t n, uint64_t need, struct err *err)
{
	const uint64_t end = offset + n;
	struct sums_change c = {.offset = offset, .end = end, .need = min_u64(need, end)};
	int rc = begin_change(s, &c, err);
	if (rc)
		return rc;
	if (fallocate(s->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)n))
		rc = -errno;
	return end_change(s, &c, NULL, rc, "cannot punch a hole into the spool", err);
}

int spool_sync(struct spool *s, struct err *err)
{
	return fdatasync(s->fd) ? err_errno(err, -errno, "cannot sync the spool") : 0;
}

int spool_size(const struct spool *s, uint64_t *size, struct err *err)
{
	struct stat st;
	if (fstat(s->fd, &st))
		return err_errno(err, -errno, "cannot read the size of the spool");
	*size = (uint64_t)st.st_size;
	return 0;
}
