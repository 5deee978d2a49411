/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Safe writing: into a file without a name (O_TMPFILE), which nothing has to remove whatever
 * happens, or where the file system has no such thing (NFS), into one with a temporary name.
 */
#include "atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <base/mem.h>

static int no_memory(struct err *err)
{
	return err_set(err, -ENOMEM, "no memory");
}

/* The directory and a pattern for temporary names in it. */
static int place(struct target *t, const char *file, struct err *err)
{
	const char *slash = strrchr(file, '/');
	t->path = strdup(file);
	t->dir = !slash ? strdup(".") : strndup(file, slash == file ? 1 : (size_t)(slash - file));
	return t->path && t->dir ? 0 : no_memory(err);
}

static char *temporary_name(const struct target *t)
{
	char *name = NULL;
	const char *slash = strrchr(t->path, '/');
	return asprintf(&name, "%s/.%.200s.XXXXXX", t->dir, slash ? slash + 1 : t->path) < 0 ? NULL
											     : name;
}

static int open_file(struct target *t, struct err *err)
{
	mode_t mask = umask(0);
	umask(mask);
	t->fd = open(t->dir, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
	if (t->fd >= 0)
		return 0;
	if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)
		return err_errno(err, -errno, "%s", t->dir);
	char *name = temporary_name(t);
	if (!name)
		return no_memory(err);
	undo_lock(t->undo);
	t->fd = mkostemp(name, O_CLOEXEC);
	undo_unlock(t->undo, t->fd < 0 ? NULL : name);
	if (t->fd < 0) {
		int rc = err_errno(err, -errno, "%s", name);
		free(name);
		return rc;
	}
	t->temporary = name;
	if (fchmod(t->fd, 0666 & ~mask))
		return err_errno(err, -errno, "%s", name);
	return 0;
}

int target_open(struct target *t, const char *file, struct undo *undo, struct err *err)
{
	struct stat st;
	*t = (struct target){.fd = -1, .name = file, .undo = undo};
	if (strcmp(file, "-") == 0) {
		t->name = "standard output";
		t->stream = true;
		t->fd = dup(STDOUT_FILENO);
		return t->fd < 0 ? err_errno(err, -errno, "%s", t->name) : 0;
	}
	if (stat(file, &st) == 0 && !S_ISREG(st.st_mode)) {
		t->stream = true;
		t->fd = open(file, O_WRONLY | O_CLOEXEC);
		return t->fd < 0 ? err_errno(err, -errno, "%s", file) : 0;
	}
	int rc = place(t, file, err);
	return rc ? rc : open_file(t, err);
}

int target_write(struct target *t, const void *bytes, size_t n, uint64_t offset, struct err *err)
{
	const char *p = bytes;
	while (n > 0) {
		ssize_t done = t->stream ? write(t->fd, p, n) : pwrite(t->fd, p, n, (off_t)offset);
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return err_errno(err, done < 0 ? -errno : -EIO, "%s", t->name);
		p += done;
		n -= (size_t)done;
		offset += (uint64_t)done;
	}
	return 0;
}

/* A name for a file that has none, to be renamed: linkat() replaces nothing. */
static int give_name(struct target *t, struct err *err)
{
	enum { TRIES = 100 };
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz234567";
	char self[64];
	snprintf(self, sizeof(self), "/proc/self/fd/%d", t->fd);
	for (int i = 0; i < TRIES; i++) {
		struct timespec ts;
		char *name = temporary_name(t);
		if (!name)
			return no_memory(err);
		clock_gettime(CLOCK_REALTIME, &ts);
		uint64_t seed = ((uint64_t)ts.tv_nsec << 20) ^ (uint64_t)getpid() ^ (uint64_t)i;
		for (char *x = name + strlen(name) - 6; *x; x++, seed /= 32)
			*x = letters[seed % 32];
		undo_lock(t->undo);
		int rc = linkat(AT_FDCWD, self, AT_FDCWD, name, AT_SYMLINK_FOLLOW) ? -errno : 0;
		undo_unlock(t->undo, rc ? NULL : name);
		if (rc == 0) {
			t->temporary = name;
			return 0;
		}
		free(name);
		if (rc != -EEXIST)
			return err_errno(err, rc, "%s", t->name);
	}
	return err_set(err, -EEXIST, "%s: no free temporary name", t->name);
}

int target_commit(struct target *t, uint64_t size, struct err *err)
{
	if (t->stream)
		return 0;
	if (ftruncate(t->fd, (off_t)size) || fsync(t->fd))
		return err_errno(err, -errno, "%s", t->name);
	if (!t->temporary) {
		int rc = give_name(t, err);
		if (rc)
			return rc;
	}
	undo_lock(t->undo);
	const int rc = rename(t->temporary, t->path) ? -errno : 0;
	undo_unlock(t->undo, rc ? t->temporary : NULL);
	if (rc)
		return err_errno(err, rc, "%s", t->name);
	free(t->temporary);
	t->temporary = NULL;
	return 0;
}

void target_close(struct target *t)
{
	if (t->fd >= 0)
		close(t->fd);
	if (t->temporary) {
		undo_lock(t->undo);
		unlink(t->temporary);
		undo_unlock(t->undo, NULL);
	}
	free(t->temporary);
	free(t->path);
	free(t->dir);
	*t = (struct target){.fd = -1};
}
