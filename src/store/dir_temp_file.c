/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory store: a file that is being written.
 *
 * It has no name until it is complete (O_TMPFILE), so a program that is killed leaves nothing
 * behind. Then it gets the name of the object, or, if that exists and is to be replaced, a
 * temporary name beside it for a moment. If the file system cannot do that, or without /proc, the
 * file has a temporary name from the beginning.
 *
 *   .hsmount-tmp-BOOT-CHANCE-SERIAL
 *
 * BOOT is the boot id of the machine, and the file is locked (flock(2)) as long as it has this
 * name. So a mount on the same machine knows whether the program that was writing it has ended, and
 * removes the file if it lists the directory. All others stay for `hsimage clean`. If the file
 * system has no locks, nobody can get one, and no mount removes such files.
 */
#include "dir.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>

/* The random part of the name makes it unique among programs and after a crash, the serial number
 * within this program. */
static void make_name(struct dir_store *d, char name[DIR_TEMP_NAME_MAX])
{
	const struct env *env = d->base.env;
	uint64_t chance = 0;
	env->random(env, &chance, sizeof(chance));
	snprintf(name, DIR_TEMP_NAME_MAX, DIR_TEMP_PREFIX "%s%s%016" PRIx64 "-%" PRIxFAST64,
		 d->boot, d->boot[0] ? "-" : "", chance, atomic_fetch_add(&d->serial, 1));
}

static void lock(int fd)
{
	while (flock(fd, LOCK_EX) && errno == EINTR)
		continue;
}

/* A sweep may have removed the file before it was locked. */
static bool has_name(int fd)
{
	struct stat st;
	return fstat(fd, &st) == 0 && st.st_nlink > 0;
}

static int open_named(struct dir_store *d, struct dir_temp *t)
{
	for (int tries = 0; tries < 16; tries++) {
		make_name(d, t->name);
		t->fd = openat(t->parent, t->name,
			       O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
		if (t->fd < 0 && errno != EEXIST) {
			t->name[0] = '\0';
			return -errno;
		}
		if (t->fd < 0)
			continue;
		lock(t->fd);
		if (has_name(t->fd))
			return 0;
		close(t->fd);
	}
	t->fd = -1;
	t->name[0] = '\0';
	return -EIO;
}

/* Gives a name to a file without one. */
static int give_name(const struct dir_temp *t, const char *name)
{
	char path[32];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", t->fd);
	return linkat(AT_FDCWD, path, t->parent, name, AT_SYMLINK_FOLLOW) ? -errno : 0;
}

int dir_temp_open(struct dir_store *d, int parent, struct dir_temp *out)
{
	*out = (struct dir_temp){.parent = parent, .fd = -1};
	if (d->has_proc)
		out->fd = openat(parent, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
	/* Without room or permission, the other way will say so, too. */
	return out->fd >= 0 ? 0 : open_named(d, out);
}

void dir_temp_close(struct dir_temp *t)
{
	if (t->name[0])
		unlinkat(t->parent, t->name, 0);
	if (t->fd >= 0)
		close(t->fd);
}

int dir_temp_add(struct dir_temp *t, const char *name)
{
	if (!t->name[0])
		return give_name(t, name);
	if (renameat2(t->parent, t->name, t->parent, name, RENAME_NOREPLACE) == 0) {
		t->name[0] = '\0';
		return 0;
	}
	/* The file system cannot do that. link(2) does not replace files either. The temporary name
	 * goes at once, because that changes the version. */
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	if (linkat(t->parent, t->name, t->parent, name, 0))
		return -errno;
	unlinkat(t->parent, t->name, 0);
	t->name[0] = '\0';
	return 0;
}

int dir_temp_replace(struct dir_store *d, struct dir_temp *t, const char *name)
{
	if (!t->name[0]) {
		int rc = give_name(t, name);
		if (rc != -EEXIST)
			return rc;
		lock(t->fd);
		make_name(d, t->name);
		rc = give_name(t, t->name);
		if (rc) {
			t->name[0] = '\0';
			return rc == -EEXIST ? -EIO : rc;
		}
	}
	if (renameat(t->parent, t->name, t->parent, name))
		return -errno;
	t->name[0] = '\0';
	return 0;
}

void dir_temp_sweep(const struct dir_store *d, int parent, const char *name)
{
	const size_t prefix = strlen(DIR_TEMP_PREFIX), boot = strlen(d->boot);
	struct stat st;
	if (!d->sweeps || !boot || strncmp(name + prefix, d->boot, boot) != 0 ||
	    name[prefix + boot] != '-')
		return;
	auto_close int fd = openat(parent, name, O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) || flock(fd, LOCK_EX | LOCK_NB))
		return;
	/* If the file has become an object since, it does not have this name any more. */
	if (unlinkat(parent, name, 0) == 0)
		log_info(d->base.env->log,
			 "%s was removed: the program that was writing it has ended", name);
}
