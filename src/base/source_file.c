/* SPDX-License-Identifier: Apache-2.0 */
/* A local file as a source: see base/source_file.h. Reads with pread(2), which needs no lock. */
#include <base/source_file.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct source_file {
	struct source source;
	int fd;
};

static int read_at(void *ctx, uint64_t offset, void *buf, size_t n, struct err *err)
{
	const struct source_file *f = ctx;
	uint8_t *to = buf;
	while (n) {
		const ssize_t got = pread(f->fd, to, n, (off_t)offset);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_errno(err, -errno, "cannot read the file");
		if (got == 0)
			return err_set(err, -ESTALE, "the file became shorter while it was read");
		to += got;
		offset += (uint64_t)got;
		n -= (size_t)got;
	}
	return 0;
}

static int find_size(int fd, uint64_t *size, struct err *err)
{
	struct stat st;
	if (fstat(fd, &st))
		return err_errno(err, -errno, "cannot read the size of the file");
	if (S_ISDIR(st.st_mode))
		return err_set(err, -EISDIR, "is a directory");
	if (!S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode))
		return err_set(err, -EINVAL, "is not a regular file");
	const off_t end = S_ISREG(st.st_mode) ? st.st_size : lseek(fd, 0, SEEK_END);
	if (end < 0)
		return err_errno(err, -errno, "cannot read the size of the device");
	*size = (uint64_t)end;
	return 0;
}

int source_file_open(const char *path, struct source_file **out, struct err *err)
{
	struct source_file *f = calloc(1, sizeof(*f));
	if (!f)
		return err_no_memory(err);
	f->source = (struct source){.read_at = read_at, .ctx = f};
	/* O_NONBLOCK: a FIFO without a writer must not block the open. */
	f->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	int rc = f->fd < 0 ? err_errno(err, -errno, "cannot open the file")
			   : find_size(f->fd, &f->source.size, err);
	if (rc) {
		source_file_close(f);
		return err_wrap(err, rc, "%s", path);
	}
	*out = f;
	return 0;
}

void source_file_close(struct source_file *f)
{
	if (!f)
		return;
	if (f->fd >= 0)
		close(f->fd);
	free(f);
}

struct source *source_file_source(struct source_file *f)
{
	return &f->source;
}
