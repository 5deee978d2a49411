/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A disk that fails, and one that tells what is durable. A program that includes this header
 * replaces the functions of libc with which src/overlay/ uses files.
 *
 * A failing call: `disk.how` says how, and disk_fail() which call. Calls that change files are
 * counted, and if `disk.reads` is set, those that open, lock and read them, too.
 *
 * Durability: after disk_watch(), the disk notes which files and directories have changed since
 * their last fsync() or fdatasync(), and how often each of them was synced. Bytes and names that
 * are removed do not count, and neither do blocks that are only allocated: a test that needs the
 * order of removals compares it itself.
 *
 * Threads: any thread may make calls. While one of them is to fail, only one thread may.
 */
#ifndef SUPPORT_DISK_CALLS_H
#define SUPPORT_DISK_CALLS_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum how { WORKS, FAILS_ONCE, FAILS_FOR_GOOD, FAILS_AFTER_HALF, KILLED_BEFORE, KILLED_AFTER_HALF };

enum { DISK_FILES = 256, DISK_PATH = 256 };

struct disk_file {
	dev_t dev;
	ino_t ino;
	char path[DISK_PATH]; /* when it was noted */
	bool is_dirty;
	unsigned int syncs;
	unsigned int synced_at; /* larger for a later sync */
};

static struct {
	enum how how;
	unsigned int at;    /* number of the call, from 1 */
	unsigned int calls; /* so far */
	int code;
	bool reads; /* they are counted, too */
	/* Called once, before the next flock(); for another process. */
	void (*other)(void *ctx);
	void *ctx;
	/* The call that has failed last. */
	const char *failed;
	char failed_path[DISK_PATH];

	bool watches;
	/* Files that need not be durable: their names begin with one of these texts. Ends with
	 * NULL. */
	const char *const *exempt;
	struct disk_file files[DISK_FILES];
	size_t n_files;
	unsigned int syncs;
} disk;

static pthread_mutex_t disk_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- failing calls ---- */

/* From now on, the call with this number fails. */
static inline void disk_fail(enum how how, unsigned int at, int code)
{
	disk.how = how;
	disk.at = at;
	disk.calls = 0;
	disk.code = code;
	disk.failed = NULL;
}

static inline void disk_path_of(int fd, const char *name, char path[DISK_PATH])
{
	char link[64];
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t n = fd < 0 ? 0 : readlink(link, path, DISK_PATH - 1);
	n = n < 0 ? 0 : n;
	snprintf(path + n, DISK_PATH - (size_t)n, "%s%s", name ? "/" : "", name ? name : "");
}

static inline const char *disk_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

/* Counts a call. True: it fails, with errno set. name: in the directory fd; NULL: fd is a file. */
static inline bool disk_fails(const char *call, int fd, const char *name, bool *half)
{
	*half = false;
	if (disk.how == WORKS || ++disk.calls < disk.at)
		return false;
	if (disk.calls > disk.at && disk.how != FAILS_FOR_GOOD)
		return false;
	*half = disk.how == FAILS_AFTER_HALF || disk.how == KILLED_AFTER_HALF;
	if (disk.how == KILLED_BEFORE)
		_exit(0);
	disk.failed = call;
	disk_path_of(fd, name, disk.failed_path);
	errno = disk.code;
	return true;
}

/* ---- what is durable ---- */

static inline bool disk_is_exempt(const char *path)
{
	const char *name = disk_base_name(path);
	for (const char *const *e = disk.exempt; e && *e; e++)
		if (strncmp(name, *e, strlen(*e)) == 0)
			return true;
	return false;
}

/* NULL: it was not noted. */
static inline struct disk_file *disk_find_locked(const struct stat *st)
{
	for (size_t i = 0; i < disk.n_files; i++)
		if (disk.files[i].dev == st->st_dev && disk.files[i].ino == st->st_ino)
			return &disk.files[i];
	return NULL;
}

static inline struct disk_file *disk_note_locked(int fd)
{
	struct stat st;
	if (!disk.watches || fstat(fd, &st) || !(S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)))
		return NULL;
	struct disk_file *f = disk_find_locked(&st);
	if (f)
		return f;
	assert_true(disk.n_files < DISK_FILES);
	f = &disk.files[disk.n_files++];
	*f = (struct disk_file){.dev = st.st_dev, .ino = st.st_ino};
	disk_path_of(fd, NULL, f->path);
	return f;
}

static inline void disk_changed(int fd)
{
	const int code = errno;
	pthread_mutex_lock(&disk_lock);
	struct disk_file *f = disk_note_locked(fd);
	if (f)
		f->is_dirty |= !disk_is_exempt(f->path);
	pthread_mutex_unlock(&disk_lock);
	errno = code;
}

/* A name was added to a directory. */
static inline void disk_named(int dir, const char *name)
{
	pthread_mutex_lock(&disk_lock);
	const bool counts = disk.watches && !disk_is_exempt(name);
	pthread_mutex_unlock(&disk_lock);
	if (counts)
		disk_changed(dir);
}

static inline void disk_synced(int fd)
{
	pthread_mutex_lock(&disk_lock);
	struct disk_file *f = disk_note_locked(fd);
	if (f) {
		f->is_dirty = false;
		f->syncs++;
		f->synced_at = ++disk.syncs;
	}
	pthread_mutex_unlock(&disk_lock);
}

/* The file that has the name is going to be removed, and its number may be used again. */
static inline void disk_forget(int dir, const char *name)
{
	struct stat st;
	const int code = errno;
	pthread_mutex_lock(&disk_lock);
	if (disk.watches && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		struct disk_file *f = disk_find_locked(&st);
		if (f)
			*f = disk.files[--disk.n_files];
	}
	pthread_mutex_unlock(&disk_lock);
	errno = code;
}

static inline void disk_set_watch(bool watches, const char *const *exempt)
{
	pthread_mutex_lock(&disk_lock);
	disk.exempt = exempt;
	disk.n_files = 0;
	disk.syncs = 0;
	disk.watches = watches;
	pthread_mutex_unlock(&disk_lock);
}

/* Forgets everything, and begins to note. */
static inline void disk_watch(const char *const *exempt)
{
	disk_set_watch(true, exempt);
}

static inline void disk_unwatch(void)
{
	disk_set_watch(false, NULL);
}

/* What was noted about a file: all zero if it was neither changed nor synced. */
static inline struct disk_file disk_look(const char *path)
{
	struct stat st;
	struct disk_file found = {.is_dirty = false};
	assert_int_equal(stat(path, &st), 0);
	pthread_mutex_lock(&disk_lock);
	const struct disk_file *f = disk_find_locked(&st);
	if (f)
		found = *f;
	pthread_mutex_unlock(&disk_lock);
	return found;
}

/* The first file that is not durable; NULL: all are. */
static inline const char *disk_dirty(void)
{
	const char *path = NULL;
	pthread_mutex_lock(&disk_lock);
	for (size_t i = 0; i < disk.n_files && !path; i++)
		if (disk.files[i].is_dirty)
			path = disk.files[i].path;
	pthread_mutex_unlock(&disk_lock);
	return path;
}

static inline void disk_assert_durable(const char *when)
{
	const char *path = disk_dirty();
	if (path)
		fail_msg("after %s, %s is not durable", when, path);
}

/* ---- the functions of libc ---- */

#define REAL(name) ((__typeof__(&name))(uintptr_t)dlsym(RTLD_NEXT, real_##name))
static const char real_pwrite[] = "pwrite64", real_write[] = "write", real_fsync[] = "fsync",
		  real_fdatasync[] = "fdatasync", real_renameat[] = "renameat",
		  real_renameat2[] = "renameat2", real_mkdirat[] = "mkdirat",
		  real_unlinkat[] = "unlinkat", real_ftruncate[] = "ftruncate64",
		  real_fallocate[] = "fallocate64", real_openat[] = "openat64",
		  real_pread[] = "pread64", real_flock[] = "flock", real_close[] = "close";

ssize_t pwrite(int fd, const void *buf, size_t n, off_t offset)
{
	bool half;
	ssize_t put = -1;
	const bool fails = disk_fails("pwrite", fd, NULL, &half);
	const int code = errno;
	/* The kernel copies aligned words of 8 bytes whole, also if the process is killed. */
	const size_t part = disk.how == KILLED_AFTER_HALF ? n / 2 / 8 * 8 : n / 2;
	if (!fails)
		put = REAL(pwrite)(fd, buf, n, offset);
	else if (half)
		REAL(pwrite)(fd, buf, part, offset);
	if (fails && disk.how == KILLED_AFTER_HALF)
		_exit(0);
	if (put > 0 || half)
		disk_changed(fd);
	if (fails)
		errno = code;
	return put;
}

ssize_t write(int fd, const void *buf, size_t n)
{
	bool half;
	ssize_t put = -1;
	const bool fails = disk_fails("write", fd, NULL, &half);
	const int code = errno;
	if (!fails)
		put = REAL(write)(fd, buf, n);
	else if (half)
		REAL(write)(fd, buf, n / 2);
	if (fails && disk.how == KILLED_AFTER_HALF)
		_exit(0);
	if (put > 0 || half)
		disk_changed(fd);
	if (fails)
		errno = code;
	return put;
}

ssize_t pread(int fd, void *buf, size_t n, off_t offset)
{
	bool half;
	if (disk.reads && disk_fails("pread", fd, NULL, &half))
		return -1;
	return REAL(pread)(fd, buf, n, offset);
}

int flock(int fd, int operation)
{
	bool half;
	void (*other)(void *ctx) = disk.other;
	if (other) {
		disk.other = NULL;
		other(disk.ctx);
	}
	if (disk.reads && disk_fails("flock", fd, NULL, &half))
		return -1;
	return REAL(flock)(fd, operation);
}

int openat(int dir, const char *name, int flags, ...)
{
	va_list more;
	bool half;
	struct stat st;
	va_start(more, flags);
	const mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;
	va_end(more);
	const bool makes = flags & O_CREAT && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW);
	if ((flags & O_CREAT || disk.reads) && disk_fails("openat", dir, name, &half)) {
		if (disk.how == KILLED_AFTER_HALF)
			_exit(0);
		return -1;
	}
	const int fd = REAL(openat)(dir, name, flags, mode);
	if (fd >= 0 && makes)
		disk_named(dir, name);
	if (fd >= 0 && (makes || flags & O_TRUNC))
		disk_changed(fd);
	return fd;
}

/* after: with the result rc of the call. */
#define REPLACE(name, parameters, arguments, fd, text, before, after)                              \
	int name parameters                                                                        \
	{                                                                                          \
		bool half;                                                                         \
		if (disk_fails(#name, fd, text, &half)) {                                          \
			if (disk.how == KILLED_AFTER_HALF)                                         \
				_exit(0);                                                          \
			return -1;                                                                 \
		}                                                                                  \
		before;                                                                            \
		const int rc = REAL(name) arguments;                                               \
		if (rc == 0)                                                                       \
			after;                                                                     \
		return rc;                                                                         \
	}

/* A descriptor that is closed twice may be that of another thread by then. */
int close(int fd)
{
	const int rc = REAL(close)(fd);
	if (rc && errno == EBADF)
		fail_msg("descriptor %d is closed twice", fd);
	return rc;
}

REPLACE(fsync, (int fd), (fd), fd, NULL, (void)0, disk_synced(fd))
REPLACE(fdatasync, (int fd), (fd), fd, NULL, (void)0, disk_synced(fd))
REPLACE(renameat, (int from, const char *old, int to, const char *new), (from, old, to, new), from,
	old, disk_forget(to, new), disk_named(to, new))
REPLACE(renameat2, (int from, const char *old, int to, const char *new, unsigned int flags),
	(from, old, to, new, flags), from, old, (void)0, disk_named(to, new))
REPLACE(mkdirat, (int dir, const char *name, mode_t mode), (dir, name, mode), dir, name, (void)0,
	disk_named(dir, name))
REPLACE(unlinkat, (int dir, const char *name, int flags), (dir, name, flags), dir, name,
	disk_forget(dir, name), (void)0)
REPLACE(ftruncate, (int fd, off_t size), (fd, size), fd, NULL, (void)0, (void)0)
REPLACE(fallocate, (int fd, int mode, off_t offset, off_t n), (fd, mode, offset, n), fd, NULL,
	(void)0, mode == FALLOC_FL_KEEP_SIZE ? (void)0 : disk_changed(fd))

#endif
