/* SPDX-License-Identifier: Apache-2.0 */
/* See atomic_file.h. */
#include "atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The temporary file that a signal removes, or NULL if there is none. It is a global variable,
 * because a signal handler has no argument. */
static char *volatile half_written;

static void remove_and_end(int number)
{
	if (half_written)
		unlink(half_written);
	raise(number); /* SA_RESETHAND: ends the process when the handler returns */
}

/* A signal that is ignored (nohup(1)) stays ignored. */
static void handle_signals(void)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction handler = {.sa_handler = remove_and_end, .sa_flags = SA_RESETHAND}, old;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
			sigaction(numbers[i], &handler, NULL);
	signal(SIGXFSZ, SIG_IGN); /* a file that is too large gives EFBIG */
}

/* `old` is the file that is replaced, or NULL. */
static int set_owner_and_mode(int fd, const struct stat *old, mode_t mask)
{
	if (!old)
		return fchmod(fd, 0666 & ~mask);
	/* Only root may give a file away, and a user only to a group of his. The permissions of the
	 * old group are not those of another one. */
	const bool same_group = fchown(fd, old->st_uid, old->st_gid) == 0 ||
				fchown(fd, (uid_t)-1, old->st_gid) == 0;
	return fchmod(fd, old->st_mode & (same_group ? 0777 : 0707));
}

static int open_temporary(struct atomic_file *f, const struct stat *old, struct err *err)
{
	const char *slash = strrchr(f->target, '/'), *base = slash ? slash + 1 : f->target;
	const mode_t mask = umask(0);
	sigset_t all, before;
	char *name = NULL;
	umask(mask);
	if (asprintf(&name, "%.*s.%.200s.XXXXXX", (int)(base - f->target), f->target, base) < 0)
		return err_no_memory(err);
	handle_signals();
	/* Until half_written names the file, the handler could not remove it. */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	f->fd = mkostemp(name, O_CLOEXEC);
	const int rc = f->fd < 0 ? -errno : 0;
	f->temporary = half_written = rc ? NULL : name;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc) {
		free(name);
		return err_errno(err, rc, "%s", f->path);
	}
	return set_owner_and_mode(f->fd, old, mask) ? err_errno(err, -errno, "%s", f->path) : 0;
}

static int exists_already(const struct atomic_file *f, struct err *err)
{
	return err_set(err, -EEXIST, "%s: the file exists; --force replaces it", f->path);
}

/* Returns whether the shell has made this file for the output of the program. */
static bool is_standard_output(const struct stat *st)
{
	struct stat out;
	return fstat(STDOUT_FILENO, &out) == 0 && out.st_dev == st->st_dev &&
	       out.st_ino == st->st_ino;
}

int atomic_file_open(struct atomic_file *f, const char *path, bool force, uint64_t size,
		     struct err *err)
{
	struct stat st, link;
	*f = (struct atomic_file){.path = path, .fd = -1};
	const bool exists = stat(path, &st) == 0;
	if (strcmp(path, "-") == 0 || (exists && !S_ISREG(st.st_mode))) {
		f->is_stream = true;
		if (strcmp(f->path, "-") == 0) {
			f->path = "standard output";
			f->fd = dup(STDOUT_FILENO);
		} else {
			f->fd = open(f->path, O_WRONLY | O_CLOEXEC);
		}
		return f->fd < 0 ? err_errno(err, -errno, "%s", f->path) : 0;
	}
	f->may_replace = force || (exists && is_standard_output(&st));
	/* A link that leads nowhere would be replaced, too. */
	if (!f->may_replace && lstat(path, &link) == 0)
		return exists_already(f, err);
	f->target = exists ? realpath(path, NULL) : strdup(path);
	if (!f->target)
		return err_errno(err, -errno, "%s", path);
	int rc = open_temporary(f, exists ? &st : NULL, err);
	if (!rc && ftruncate(f->fd, (off_t)size))
		rc = err_errno(err, -errno, "%s", path);
	return rc;
}

int atomic_file_write(struct atomic_file *f, const void *bytes, size_t n, uint64_t offset,
		      struct err *err)
{
	const char *p = bytes;
	while (n > 0) {
		ssize_t done =
			f->is_stream ? write(f->fd, p, n) : pwrite(f->fd, p, n, (off_t)offset);
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return err_errno(err, done < 0 ? -errno : -EIO, "%s", f->path);
		p += done;
		n -= (size_t)done;
		offset += (uint64_t)done;
	}
	return 0;
}

static void forget_temporary(struct atomic_file *f)
{
	half_written = NULL;
	free(f->temporary);
	f->temporary = NULL;
}

/* Gives the file its name. Returns 0 or -1 with errno. */
static int give_name(const struct atomic_file *f)
{
	if (f->may_replace)
		return rename(f->temporary, f->target);
	if (renameat2(AT_FDCWD, f->temporary, AT_FDCWD, f->target, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -1;
	/* The file system cannot do that. link(2) does not replace files either. */
	if (link(f->temporary, f->target) == 0)
		return unlink(f->temporary);
	if (errno != EPERM && errno != ENOSYS && errno != EOPNOTSUPP)
		return -1;
	/* Nor does it have links. */
	struct stat st;
	if (lstat(f->target, &st) == 0)
		errno = EEXIST;
	return errno == EEXIST ? -1 : rename(f->temporary, f->target);
}

int atomic_file_commit(struct atomic_file *f, struct err *err)
{
	if (f->is_stream)
		return 0;
	if (fsync(f->fd) || give_name(f))
		return errno == EEXIST ? exists_already(f, err)
				       : err_errno(err, -errno, "%s", f->path);
	forget_temporary(f);
	/* The new name becomes durable. A file system that cannot do that says EINVAL. */
	const char *slash = strrchr(f->target, '/');
	char *dir = slash ? strndup(f->target, (size_t)(slash - f->target) + 1) : strdup(".");
	const int fd = dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	const int rc = fd >= 0 && fsync(fd) && errno != EINVAL ? -errno : 0;
	free(dir);
	if (fd >= 0)
		close(fd);
	return rc ? err_errno(err, rc, "%s", f->path) : 0;
}

void atomic_file_close(struct atomic_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	if (f->temporary) {
		unlink(f->temporary);
		forget_temporary(f);
	}
	free(f->target);
	f->target = NULL;
	f->fd = -1;
}
