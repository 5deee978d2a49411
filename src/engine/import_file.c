/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The local file of an import. The metadata of an HDF5 file are read in many small pieces: these
 * come from pages that are kept in memory. Chunks are larger and read once: they come from the
 * file.
 */
#include "import_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <base/fd.h>
#include <base/source_file.h>
#include <base/source_paged.h>

enum {
	PAGES = 256,	       /* of 64 KiB */
	DIRECT_MIN = 16 << 10, /* longer reads go past the pages */
};

/* The file is opened, because a mount of a bucket knows the size of a domain only then. */
static int find(const char *path, struct stat *st, struct err *err)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fstat(fd, st))
		return err_errno(err, -errno, "%s", path);
	if (!S_ISREG(st->st_mode))
		return err_set(err, -EINVAL, "%s is not a regular file", path);
	return 0;
}

static int64_t mtime_ns(const struct stat *st)
{
	return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

int import_source_init(struct import_source *s, const char *path, struct err *err)
{
	struct stat st;
	*s = (struct import_source){0};
	if (strcmp(path, "-") == 0)
		return err_set(err, -EINVAL,
			       "standard input cannot be imported: an HDF5 file is not read in "
			       "order; write it to a file first");
	int rc = find(path, &st, err);
	if (rc)
		return rc;
	s->size = (uint64_t)st.st_size;
	s->mtime_ns = mtime_ns(&st);
	s->path = realpath(path, NULL);
	return s->path ? 0 : err_errno(err, -errno, "%s", path);
}

void import_source_release(struct import_source *s)
{
	source_paged_free(s->pages);
	source_file_close(s->file);
	free(s->path);
	*s = (struct import_source){0};
}

static int read_at(void *ctx, uint64_t offset, void *buf, size_t n, struct err *err)
{
	struct import_source *s = ctx;
	struct source *from =
		n < DIRECT_MIN ? source_paged_source(s->pages) : source_file_source(s->file);
	return source_read(from, offset, buf, n, err);
}

int import_source_open(struct import_source *s, struct source **out, struct err *err)
{
	int rc = source_file_open(s->path, &s->file, err);
	if (!rc)
		rc = import_source_check(s, err);
	if (rc)
		return rc;
	s->pages = source_paged_new(s->size, PAGES, source_paged_fetch_source,
				    source_file_source(s->file));
	if (!s->pages)
		return err_no_memory(err);
	s->source = (struct source){.size = s->size, .read_at = read_at, .ctx = s};
	*out = &s->source;
	return 0;
}

int import_source_check(const struct import_source *s, struct err *err)
{
	struct stat st;
	int rc = find(s->path, &st, err);
	if (!rc && ((uint64_t)st.st_size != s->size || mtime_ns(&st) != s->mtime_ns))
		rc = err_set(err, -ESTALE, "%s has changed during the import", s->path);
	return rc;
}
