/* SPDX-License-Identifier: Apache-2.0 */
/* See draft_dir.h. */
#include <journal/draft_dir.h>

#include <base/fd.h>

#include <dirent.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <base/hex.h>
#include <base/mem.h>

#include <journal/private_file.h>
#include <journal/usage.h>

enum {
	TRIES = 16,
	NAME = JOURNAL_ID + 16, /* an id with a suffix */
};

static const char description[] = "draft";

int draft_dir_guard(int dir)
{
	const int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (flock(fd, LOCK_EX)) {
		if (errno == EINTR)
			continue;
		const int rc = -errno;
		close(fd);
		return rc;
	}
	return fd;
}

bool draft_dir_is_id(const char *name)
{
	return strlen(name) == JOURNAL_ID - 1 && strspn(name, "0123456789abcdef") == JOURNAL_ID - 1;
}

void draft_dir_new_id(const struct env *env, char id[JOURNAL_ID])
{
	uint8_t random[(JOURNAL_ID - 1) / 2];
	env->random(env, random, sizeof(random));
	hex_encode(random, sizeof(random), id);
}

static void name_with(char name[NAME], const struct draft_dir *p, const char *suffix)
{
	snprintf(name, NAME, "%s%s", p->id, suffix);
}

void draft_dir_close(struct draft_dir *p)
{
	cleanup_close(&p->lock);
	cleanup_close(&p->fd);
	cleanup_close(&p->guard);
	/* A draft that could not be made is closed twice. */
	p->lock = p->fd = p->guard = -1;
}

/* ---- making ---- */

/* Writes the description to a file, and locks it. Returns a descriptor. */
static int write_description(const struct draft_dir *p, const char *name,
			     const struct draft_about *about, struct err *err)
{
	uint8_t bytes[HEADER_SIZE];
	struct header h = {.about = *about};
	memcpy(h.boot, p->j->boot, sizeof(h.boot));
	int rc = draft_header_encode(&h, bytes, err);
	if (rc)
		return rc;
	const int fd = file_open(p->fd, name, O_RDWR | O_CREAT | O_TRUNC);
	if (fd < 0)
		return err_errno(err, fd, "cannot make the file `draft`");
	rc = flock(fd, LOCK_EX | LOCK_NB) ? -errno : file_write(fd, 0, bytes, sizeof(bytes));
	if (rc == 0)
		return fd;
	close(fd);
	return err_errno(err, rc, "cannot write the file `draft`");
}

static int make_directory(struct draft_dir *p, char name[NAME], struct err *err)
{
	for (int tries = 0; tries < TRIES; tries++) {
		draft_dir_new_id(p->j->env, p->id);
		/* rename(2) replaces an empty directory only: no draft can be lost. */
		name_with(name, p, DRAFT_DIR_NEW);
		if (mkdirat(p->j->dir, name, 0700) == 0) {
			p->fd = file_open_dir(p->j->dir, name);
			if (p->fd >= 0)
				return 0;
			unlinkat(p->j->dir, name, AT_REMOVEDIR);
			return err_errno(err, p->fd, "cannot make a draft");
		}
		/* A program that creates a file would take ENOENT for a missing folder. */
		if (errno == ENOENT)
			return err_set(err, -EIO,
				       "the directory of the journal was removed; mount again");
		if (errno != EEXIST)
			return err_errno(err, -errno, "cannot make a draft");
	}
	return err_errno(err, -EEXIST, "cannot make a draft");
}

int draft_dir_begin(struct journal *j, const struct draft_about *about, struct draft_dir *p,
		    struct err *err)
{
	char name[NAME];
	*p = (struct draft_dir){.j = j, .fd = -1, .lock = -1, .guard = draft_dir_guard(j->dir)};
	if (p->guard < 0)
		return err_errno(err, p->guard, "cannot lock the journal");
	int rc = make_directory(p, name, err);
	if (rc == 0)
		p->lock = write_description(p, description, about, err);
	if (rc == 0 && p->lock >= 0)
		return 0;
	rc = rc ? rc : p->lock;
	if (p->fd >= 0)
		draft_dir_delete(j->dir, name);
	draft_dir_close(p);
	return rc;
}

int draft_dir_publish(struct draft_dir *p, struct err *err)
{
	char name[NAME];
	assert(p->guard >= 0);
	name_with(name, p, DRAFT_DIR_NEW);
	if (renameat(p->j->dir, name, p->j->dir, p->id))
		return err_errno(err, -errno, "cannot make a draft");
	cleanup_close(&p->guard);
	p->guard = -1;
	return 0;
}

void draft_dir_abandon(struct draft_dir *p)
{
	char name[NAME];
	name_with(name, p, DRAFT_DIR_NEW);
	draft_dir_delete(p->j->dir, name);
}

int draft_dir_describe(struct draft_dir *p, const struct draft_about *about, bool durable,
		       struct err *err)
{
	const int fd = write_description(p, "draft.new", about, err);
	if (fd < 0)
		return fd;
	int rc = durable && fsync(fd) ? -errno : 0;
	if (rc == 0 && renameat(p->fd, "draft.new", p->fd, description))
		rc = -errno;
	if (rc) {
		close(fd);
		return err_errno(err, rc, "cannot write the file `draft`");
	}
	close(p->lock);
	p->lock = fd;
	if (durable && fsync(p->fd))
		return err_errno(err, -errno, "cannot sync the journal");
	return 0;
}

/* ---- opening ---- */

/* Opens and locks the description. A process that replaces it has the lock on its new file, so the
 * lock counts only if the file still has its name. */
static int lock_description(int dir)
{
	struct stat held, named;
	for (int tries = 0; tries < TRIES; tries++) {
		const int fd = file_open(dir, description, O_RDWR);
		if (fd < 0)
			return fd;
		int rc = flock(fd, LOCK_EX | LOCK_NB) || fstat(fd, &held) ? -errno : 0;
		if (rc == 0 && fstatat(dir, description, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
		    held.st_ino == named.st_ino)
			return fd;
		close(fd);
		if (rc)
			return rc == -EWOULDBLOCK ? -EBUSY : rc;
	}
	return -EBUSY;
}

static int read_description(const struct draft_dir *p, uint8_t bytes[HEADER_SIZE], struct header *h,
			    struct err *err)
{
	struct stat st;
	size_t n;
	int rc = fstat(p->lock, &st) ? -errno : file_read(p->lock, 0, bytes, HEADER_SIZE, &n);
	if (rc)
		return err_errno(err, rc, "cannot read the file `draft`");
	if (st.st_size > HEADER_SIZE)
		n = (size_t)st.st_size; /* refused without a look at the bytes */
	return draft_header_decode(bytes, n, h, err);
}

int draft_dir_open(struct journal *j, const char *id, struct draft_dir *p,
		   uint8_t bytes[HEADER_SIZE], struct header *h, struct err *err)
{
	*p = (struct draft_dir){.j = j, .fd = -1, .lock = -1, .guard = -1};
	if (!draft_dir_is_id(id))
		return err_set(err, -ENOENT, "%s is not the id of a draft", id);
	memcpy(p->id, id, JOURNAL_ID);
	p->fd = file_open_dir(j->dir, id);
	if (p->fd < 0)
		return err_errno(err, p->fd, "cannot open the draft");
	p->lock = lock_description(p->fd);
	if (p->lock == -EBUSY)
		return err_set(err, -EBUSY, "another process has the draft open");
	if (p->lock == -ENOENT || p->lock == -ELOOP || p->lock == -EINVAL)
		return err_set(err, -EBADMSG, "the file `draft` is missing or not a regular file");
	if (p->lock < 0)
		return err_errno(err, p->lock, "cannot lock the file `draft`");
	return read_description(p, bytes, h, err);
}

int draft_dir_sync(const struct draft_dir *p, struct err *err)
{
	const struct journal *j = p->j;
	const int fds[] = {p->lock, p->fd, j->dir, j->version, j->root};
	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		if (fsync(fds[i]))
			return err_errno(err, -errno, "cannot sync the journal");
	return 0;
}

int draft_dir_sync_files(const struct draft_dir *p, struct err *err)
{
	return fsync(p->fd) ? err_errno(err, -errno, "cannot sync the journal") : 0;
}

/* ---- removing ---- */

void draft_dir_note_why(const struct draft_dir *p, const char *why)
{
	auto_free char *line = NULL;
	if (!why)
		unlinkat(p->fd, DRAFT_DIR_WHY, 0);
	else if (asprintf(&line, "%s\n", why) < 0)
		line = NULL;
	else
		file_replace(p->fd, DRAFT_DIR_WHY, line, strlen(line));
}

int draft_dir_set_aside(struct draft_dir *p, const char *why, struct err *err)
{
	const struct journal *j = p->j;
	draft_dir_note_why(p, why);
	if (mkdirat(j->dir, DRAFT_DIR_ASIDE, 0700) && errno != EEXIST)
		return err_errno(err, -errno, "cannot make the directory " DRAFT_DIR_ASIDE);
	auto_close int aside = file_open_dir(j->dir, DRAFT_DIR_ASIDE);
	if (aside < 0 || renameat2(j->dir, p->id, aside, p->id, RENAME_NOREPLACE))
		return err_errno(err, aside < 0 ? aside : -errno,
				 "cannot move the draft to the directory " DRAFT_DIR_ASIDE);
	atomic_fetch_add(&p->j->set_aside, 1);
	return 0;
}

int draft_dir_delete(int parent, const char *name)
{
	const int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		const int rc = -errno;
		if (fd >= 0)
			close(fd);
		return rc;
	}
	for (const struct dirent *e; (e = readdir(dir));)
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			unlinkat(fd, e->d_name, 0);
	closedir(dir);
	return unlinkat(parent, name, AT_REMOVEDIR) ? -errno : 0;
}

int draft_dir_remove(struct draft_dir *p, struct err *err)
{
	char name[NAME];
	name_with(name, p, DRAFT_DIR_DROPPED);
	int rc = renameat(p->j->dir, p->id, p->j->dir, name) ? -errno : 0;
	if (rc == 0)
		rc = draft_dir_delete(p->j->dir, name);
	else if (rc != -ENOENT) /* a full disk has no room for another name */
		rc = draft_dir_delete(p->j->dir, p->id);
	/* Another process may have finished it. */
	return rc && rc != -ENOENT ? err_errno(err, rc, "cannot delete the draft") : 0;
}

int draft_dir_remove_left(struct draft_dir *p, struct err *err)
{
	const uint64_t bytes = usage_of(p->j->dir, p->id);
	int rc = draft_dir_remove(p, err);
	if (rc == 0)
		room_forget(&p->j->room, bytes);
	return rc;
}
