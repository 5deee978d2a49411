/* SPDX-License-Identifier: Apache-2.0 */
/* See private_file.h. */
#include <journal/private_file.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/fd.h>

int file_open(int dir, const char *name, int flags)
{
	struct stat st;
	/* O_NONBLOCK: if the name is that of a FIFO, open() must not block. */
	const int fd =
		openat(dir, name, flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	const int rc = fstat(fd, &st) ? -errno : S_ISREG(st.st_mode) ? 0 : -EINVAL;
	if (rc == 0)
		return fd;
	close(fd);
	return rc;
}

int file_write(int fd, uint64_t offset, const void *buf, size_t n)
{
	for (const uint8_t *p = buf; n > 0;) {
		const ssize_t put = pwrite(fd, p, n, (off_t)offset);
		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0)
			return -errno;
		p += put;
		offset += (uint64_t)put;
		n -= (size_t)put;
	}
	return 0;
}

int file_read(int fd, uint64_t offset, void *buf, size_t n, size_t *got)
{
	uint8_t *p = buf;
	for (*got = 0; *got < n;) {
		const ssize_t part = pread(fd, p + *got, n - *got, (off_t)(offset + *got));
		if (part < 0 && errno == EINTR)
			continue;
		if (part < 0)
			return -errno;
		if (part == 0)
			break;
		*got += (size_t)part;
	}
	return 0;
}

int file_read_whole(int fd, size_t max, uint8_t **bytes, size_t *n)
{
	struct stat st;
	*bytes = NULL;
	if (fstat(fd, &st))
		return -errno;
	if ((uint64_t)st.st_size > max)
		return -EFBIG;
	*bytes = malloc((size_t)st.st_size + 1);
	return *bytes ? file_read(fd, 0, *bytes, (size_t)st.st_size, n) : -ENOMEM;
}

int file_replace(int dir, const char *name, const void *bytes, size_t n)
{
	char new_name[NAME_MAX + 1];
	snprintf(new_name, sizeof(new_name), "%s.new", name);
	auto_close int fd = file_open(dir, new_name, O_WRONLY | O_CREAT | O_TRUNC);
	int rc = fd < 0 ? fd : file_write(fd, 0, bytes, n);
	if (rc == 0 && (fsync(fd) || renameat(dir, new_name, dir, name) || fsync(dir)))
		rc = -errno;
	return rc;
}

int file_open_dir(int parent, const char *name)
{
	struct stat st;
	const int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		/* For a symbolic link, Linux reports that it is no directory. */
		return errno == ENOTDIR && fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
				       S_ISLNK(st.st_mode)
			       ? -ELOOP
			       : -errno;
	const int rc = fstat(fd, &st)			    ? -errno
		       : st.st_uid != geteuid()		    ? -EPERM
		       : (st.st_mode & (S_IRWXG | S_IRWXO)) ? -EACCES
							    : 0;
	if (rc == 0)
		return fd;
	close(fd);
	return rc;
}

int file_each_name(int dir, file_name_fn *fn, void *ctx)
{
	const int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	int rc = 0;
	if (!stream) {
		rc = -errno;
		if (fd >= 0)
			close(fd);
		return rc;
	}
	errno = 0;
	for (const struct dirent *e; rc == 0 && (e = readdir(stream)); errno = 0)
		rc = fn(ctx, e->d_name);
	rc = rc ? rc : -errno;
	closedir(stream);
	return rc;
}
