/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many bytes the disk cache's directory contains, and which entries are evicted (directory.h).
 *
 * The file hsmount-cache.lock:
 *   +0  8  magic
 *   +8  8  bytes in use, little-endian. If the record is invalid, the entries are counted again
 *
 * Eviction: one pass over the directory adds the sizes of entries by the time since their last use,
 * in bins of an eighth of an octave. A second pass removes entries of the oldest bins. This takes
 * constant memory for any number of entries. It removes a little more than needed, so that passes
 * are rare.
 */
#include "directory.h"

#include <base/fd.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include <base/cursor.h>
#include <base/emit.h>

enum {
	BLOCK = 4096,	 /* files take whole blocks */
	LOCK_MS = 2000,	 /* time to wait for the lock */
	PAUSE_MS = 5000, /* time without another attempt after that */
	BINS = 272,	 /* ages up to 2^35 s */
	RECORD = 16,
};

static const uint8_t magic[8] = {'h', 's', 'u', 's', 'e', 'd', '\n', 1};
static const uint64_t ms = 1000000;

static const char temp_prefix[] = "tmp-";

/* ---- the lock and the count ---- */

static int flock_with_limit(int fd, const struct env *env)
{
	for (unsigned int waited = 0; flock(fd, LOCK_EX | LOCK_NB); waited++) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		if (waited == LOCK_MS)
			return -EBUSY;
		env->sleep(env, ms);
	}
	return 0;
}

/* Fails with -EBUSY if another process holds the lock. That process may be stopped, or count
 * millions of entries on a slow disk. If the writer of each queued object waited for the lock,
 * workers would be blocked for hours. So no attempt is made for PAUSE_MS after one that failed. */
static int lock_room(struct disk_dir *d, const struct env *env)
{
	int rc = -EBUSY;
	pthread_mutex_lock(&d->thread_lock);
	if (env->now(env) >= d->busy_until) {
		rc = flock_with_limit(d->lock, env);
		if (rc == -EBUSY)
			d->busy_until = env->now(env) + PAUSE_MS * ms;
	}
	if (rc)
		pthread_mutex_unlock(&d->thread_lock);
	return rc;
}

static void unlock_room(struct disk_dir *d)
{
	atomic_store(&d->bytes, d->used);
	flock(d->lock, LOCK_UN);
	pthread_mutex_unlock(&d->thread_lock);
}

static bool read_count_locked(struct disk_dir *d)
{
	uint8_t record[RECORD];
	if (pread(d->lock, record, sizeof(record), 0) != sizeof(record))
		return false;
	struct cursor c = cursor_of(record, sizeof(record));
	if (memcmp(cur_bytes(&c, sizeof(magic)), magic, sizeof(magic)) != 0)
		return false;
	d->used = cur_u64(&c);
	return true;
}

static int write_count_locked(struct disk_dir *d, uint64_t used)
{
	uint8_t record[RECORD];
	struct emit e = emit_to(record, sizeof(record));
	emit_bytes(&e, magic, sizeof(magic));
	emit_u64(&e, used);
	d->used = used;
	errno = 0;
	if (pwrite(d->lock, record, sizeof(record), 0) == sizeof(record))
		return 0;
	return errno ? -errno : -EIO;
}

/* ---- counting the directory ---- */

struct scan {
	const struct disk_dir *d;
	DIR *dir;
	int64_t now; /* s */
	uint64_t used;
	uint64_t bins[BINS]; /* bytes of the entries in each bin of ages */
};

struct item {
	const char *name;
	bool is_temp;
	uint64_t bytes;
	unsigned int bin;
};

static uint64_t charge(uint64_t size)
{
	return align_u64(size, BLOCK);
}

/* Saturates, because a damaged file may have any size. */
static void add_to(uint64_t *sum, uint64_t bytes)
{
	if (!add_u64(*sum, bytes, sum))
		*sum = UINT64_MAX;
}

static unsigned int bin_of(int64_t age)
{
	if (age < 8)
		return age > 0 ? (unsigned int)age : 0;
	const unsigned int octave = 63 - (unsigned int)__builtin_clzll((unsigned long long)age);
	const unsigned int bin = (octave - 2) * 8 + (unsigned int)(age >> (octave - 3) & 7);
	return bin < BINS ? bin : BINS - 1;
}

static bool is_hex(const char *s, size_t n)
{
	return strlen(s) == n && strspn(s, "0123456789abcdef") == n;
}

static bool is_ours(const char *name, bool *is_temp)
{
	const size_t n = sizeof(temp_prefix) - 1;
	*is_temp = strncmp(name, temp_prefix, n) == 0 && is_hex(name + n, 16);
	return *is_temp || is_hex(name, DISK_NAME - 1);
}

static int scan_begin(struct scan *scan, const struct disk_dir *d)
{
	struct timespec now;
	/* This needs a separate open file description: other threads may read the directory. */
	const int fd = openat(d->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	*scan = (struct scan){.d = d, .dir = fdopendir(fd)};
	if (!scan->dir) {
		close(fd);
		return -ENOMEM;
	}
	clock_gettime(CLOCK_REALTIME, &now);
	scan->now = now.tv_sec;
	return 0;
}

/* Stores the next entry or temporary file. Returns 1, 0 at the end, or a negative errno. */
static int scan_next(struct scan *scan, struct item *item)
{
	struct stat st;
	for (;;) {
		errno = 0;
		const struct dirent *e = readdir(scan->dir);
		if (!e)
			return -errno;
		if (!is_ours(e->d_name, &item->is_temp) ||
		    fstatat(scan->d->fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
		    !S_ISREG(st.st_mode))
			continue;
		item->name = e->d_name;
		item->bytes = charge((uint64_t)st.st_size);
		item->bin = bin_of(scan->now - st.st_atim.tv_sec);
		return 1;
	}
}

/* Returns true if the process that wrote the temporary file has ended. */
static bool is_abandoned(const struct disk_dir *d, const char *name)
{
	auto_close int fd = openat(d->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
}

/* Counts all files, and removes abandoned ones. */
static int count_all_locked(struct scan *scan)
{
	struct item item;
	int rc;
	while ((rc = scan_next(scan, &item)) > 0) {
		if (item.is_temp && is_abandoned(scan->d, item.name)) {
			unlinkat(scan->d->fd, item.name, 0);
			continue;
		}
		add_to(&scan->used, item.bytes);
		if (!item.is_temp)
			add_to(&scan->bins[item.bin], item.bytes);
	}
	return rc;
}

/* Removes the oldest entries until at most goal bytes are used. */
static int evict_locked(struct disk_dir *d, struct scan *scan, uint64_t goal)
{
	struct item item;
	unsigned int oldest = BINS;
	int rc;
	for (uint64_t left = scan->used; oldest > 0 && left > goal;)
		left -= min_u64(left, scan->bins[--oldest]);
	rewinddir(scan->dir);
	while (scan->used > goal && (rc = scan_next(scan, &item)) != 0) {
		if (rc < 0)
			return rc;
		if (item.is_temp || item.bin < oldest || unlinkat(d->fd, item.name, 0))
			continue;
		scan->used -= min_u64(scan->used, item.bytes);
		atomic_fetch_add(&d->evicted, 1);
	}
	return 0;
}

/* Counts the bytes in use, and makes room for n more. */
static int make_room_locked(struct disk_dir *d, uint64_t n)
{
	struct scan scan;
	int rc = scan_begin(&scan, d);
	if (rc)
		return rc;
	rc = count_all_locked(&scan);
	if (rc == 0 && scan.used > d->max_bytes - n)
		rc = evict_locked(d, &scan, d->max_bytes - n - (d->max_bytes - n) / 16);
	closedir(scan.dir);
	return rc ? rc : write_count_locked(d, scan.used);
}

/* ---- reserving ---- */

int disk_eviction_tidy(struct disk_dir *d, const struct env *env)
{
	int rc = lock_room(d, env);
	if (rc)
		return rc;
	rc = make_room_locked(d, 0);
	unlock_room(d);
	return rc;
}

static int reserve_locked(struct disk_dir *d, uint64_t n)
{
	if (n > d->max_bytes)
		return -ENOSPC;
	if (!read_count_locked(d) || d->used > d->max_bytes - n) {
		int rc = make_room_locked(d, n);
		if (rc)
			return rc;
	}
	if (d->used > d->max_bytes - n)
		return -ENOSPC;
	return write_count_locked(d, d->used + n);
}

/* Sets the final size at once, so that a count includes the whole entry while it is being written.
 */
static int make_temp_locked(struct disk_dir *d, const struct env *env, uint64_t n,
			    char name[DISK_NAME])
{
	uint64_t random;
	env->random(env, &random, sizeof(random));
	snprintf(name, DISK_NAME, "%s%016llx", temp_prefix, (unsigned long long)random);
	int fd = openat(d->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) == 0 && ftruncate(fd, (off_t)n) == 0)
		return fd;
	const int rc = -errno;
	unlinkat(d->fd, name, 0);
	close(fd);
	return rc;
}

int disk_eviction_take(struct disk_dir *d, const struct env *env, uint64_t n, char name[DISK_NAME])
{
	int rc = lock_room(d, env);
	if (rc)
		return rc;
	rc = reserve_locked(d, charge(n));
	if (rc == 0) {
		rc = make_temp_locked(d, env, n, name);
		if (rc < 0)
			write_count_locked(d, d->used - charge(n));
	}
	unlock_room(d);
	return rc;
}

/* Returns the bytes charged for the file of that name. */
static uint64_t taken_by(const struct disk_dir *d, const char *name)
{
	struct stat st;
	if (fstatat(d->fd, name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
		return 0;
	return charge((uint64_t)st.st_size);
}

static int settle_locked(struct disk_dir *d, uint64_t n, const char *temp, const char *name)
{
	uint64_t freed = name ? taken_by(d, name) : charge(n);
	int rc = 0;
	if (!name || renameat(d->fd, temp, d->fd, name)) {
		rc = name ? -errno : 0;
		freed = charge(n);
		unlinkat(d->fd, temp, 0);
	}
	if (read_count_locked(d))
		write_count_locked(d, d->used - min_u64(d->used, freed));
	return rc;
}

int disk_eviction_settle(struct disk_dir *d, const struct env *env, int fd, uint64_t n,
			 const char *temp, const char *name)
{
	int rc = lock_room(d, env);
	if (rc == 0) {
		rc = settle_locked(d, n, temp, name);
		unlock_room(d);
	} else {
		unlinkat(d->fd, temp, 0); /* the count is too high until entries are counted */
	}
	close(fd);
	return rc;
}
