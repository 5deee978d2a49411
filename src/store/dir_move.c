/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory store: moves, by rename(2).
 *
 * The directories above the new key are made as by a put, those above the old key that become empty
 * are removed as by a delete. The new key's directory is synced first, so a crash does not lose the
 * object. Another request may remove a directory between two steps. The move then starts again.
 *
 * rename(2) moves a symbolic link itself, and does nothing if both names are one file. In both
 * cases the store does not move the object, and fails with -EXDEV.
 */
#include "dir.h"

#include <errno.h>
#include <stdio.h>

/* Results of an attempt besides 0 and a negative errno: the old key is absent; it has another
 * version; the two keys are on different file systems, or one of them is a link. */
enum { IS_ABSENT = 1, IS_STALE, CROSSES };

struct move {
	const char *from, *from_version, *to;
	const struct store_cond *cond;
	struct store_meta *meta;
	const char *at; /* the key of the current step, for errors */
};

static bool is_link(int parent, const char *name)
{
	struct stat st;
	return fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode);
}

/* Opens the object at the old key, as an O_PATH descriptor. */
static int open_object(const struct dir_store *d, const struct move *m, struct stat *st)
{
	const int fd = dir_open_proved(d, m->from, O_PATH);
	if (fd == -ENOENT)
		return -ENODATA;
	if (fd >= 0 && fstat(fd, st) == 0)
		return fd;
	if (fd < 0)
		return fd;
	const int code = -errno;
	close(fd);
	return code;
}

static int check(const struct move *m, const struct stat *st)
{
	if (!S_ISREG(st->st_mode))
		return IS_ABSENT;
	return m->from_version[0] && !dir_same_version(st, m->from_version) ? IS_STALE : 0;
}

static int check_target(const struct dir_store *d, const struct move *m, const struct stat *st)
{
	struct stat there;
	const int rc = dir_stat(d, m->to, &there);
	if (rc == -ENOENT || rc == -ENOTDIR)
		return m->cond->if_match ? -ESTALE : 0;
	if (rc)
		return rc;
	if (m->cond->if_none_match)
		return -EEXIST;
	if (m->cond->if_match && !dir_same_version(&there, m->cond->if_match))
		return -ESTALE;
	return there.st_dev == st->st_dev && there.st_ino == st->st_ino ? CROSSES : 0;
}

static int rename_object(int from, const char *old, int to, const char *name,
			 const struct store_cond *cond)
{
	const unsigned int flags = cond->if_none_match ? RENAME_NOREPLACE : 0;
	if (renameat2(from, old, to, name, flags) == 0)
		return 0;
	if (errno == EXDEV)
		return CROSSES;
	/* The file system cannot rename without replacing. */
	if (flags && (errno == EINVAL || errno == ENOSYS))
		return -EOPNOTSUPP;
	return -errno;
}

static int move_once(struct dir_store *d, struct move *m)
{
	char old_dir[STORE_KEY_MAX + 1], dir[STORE_KEY_MAX + 1];
	const char *old = dir_split(m->from, old_dir), *name = dir_split(m->to, dir);
	struct stat st;
	m->at = m->from;
	auto_close int fd = open_object(d, m, &st);
	if (fd < 0)
		return fd == -ENODATA ? IS_ABSENT : fd;
	auto_close int from = dir_open(d, old_dir, O_RDONLY | O_DIRECTORY);
	if (from < 0)
		return from;
	int rc = is_link(from, old) ? CROSSES : check(m, &st);
	if (rc)
		return rc;
	m->at = m->to;
	auto_close int to = dir_open_parent(d, dir, false);
	if (to < 0)
		return to;
	rc = is_link(to, name) ? CROSSES : check_target(d, m, &st);
	if (rc == 0)
		rc = rename_object(from, old, to, name, m->cond);
	if (rc == 0)
		rc = fsync(to) || fsync(from) ? -errno : dir_sync_above(d, m->to);
	/* After the rename, because it changes the time of the last status change. */
	if (rc == 0 && fstat(fd, &st))
		rc = -errno;
	if (rc == 0)
		dir_meta(&st, m->meta);
	return rc;
}

static int describe(const struct move *m, int rc, struct err *err)
{
	switch (rc) {
	case 0:
		return 0;
	case IS_ABSENT:
		if (!m->from_version[0])
			return err_set(err, -ENOENT, "object %s: absent", m->from);
		return err_set(err, -ESTALE, "object %s: it is gone", m->from);
	case IS_STALE:
		return err_set(err, -ESTALE, "object %s: it has another version", m->from);
	case CROSSES:
		return err_set(err, -EXDEV, "object %s: rename(2) cannot move it to %s", m->from,
			       m->to);
	case -ESTALE:
		return err_set(err, rc, "object %s: it has another version", m->to);
	case -EEXIST:
		return err_set(err, rc, "object %s: it exists already", m->to);
	case -ENOTDIR:
	case -EISDIR:
	case -ENAMETOOLONG:
		return err_errno(err, rc, "object %s", m->at);
	default:
		return dir_fail(err, rc, m->at);
	}
}

int dir_move(struct store *s, const char *from, const char *from_version, const char *to,
	     const struct store_cond *cond, struct store_meta *meta, struct err *err)
{
	struct dir_store *d = dir_store_of(s);
	struct move m = {from, from_version, to, cond, meta, from};
	int rc = -ENOENT;
	bool was_full = false;
	if (dir_reserved(to))
		return err_set(err, -EINVAL,
			       "object %s: names that begin with " DIR_TEMP_PREFIX " are reserved",
			       to);
	if (dir_reserved(from))
		return describe(&m, IS_ABSENT, err);
	for (int tries = 0; tries < DIR_ATTEMPTS; tries++) {
		rc = move_once(d, &m);
		const bool full = rc == -ENOSPC && !was_full;
		was_full = was_full || full;
		if (rc != -ENOENT && !(full && dir_find_room(d)))
			break;
	}
	dir_prune(d, rc ? to : from);
	return describe(&m, rc, err);
}
