/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See atomic_file.h. Bytes are written into a file without a name (O_TMPFILE), which nothing has to
 * remove whatever happens. Where the file system has no such thing (NFS), they are written into one
 * with a temporary name.
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

/* ---- signals ---- */

static bool is_ignored(int number)
{
	struct sigaction action;
	return sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

static sigset_t signals_that_end(void)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
	sigset_t set;
	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (!is_ignored(numbers[i]))
			sigaddset(&set, numbers[i]);
	return set;
}

static void end_by(int number)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, number);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	raise(number);
}

static void *wait_for_signal(void *arg)
{
	struct atomic_guard *g = arg;
	for (;;) {
		int number;
		if (sigwait(&g->signals, &number))
			continue;
		if (atomic_load(&g->stopping))
			return NULL;
		pthread_mutex_lock(&g->lock);
		if (g->path)
			unlink(g->path);
		end_by(number);
	}
}

void atomic_guard_start(struct atomic_guard *g)
{
	g->path = NULL;
	g->signals = signals_that_end();
	atomic_init(&g->stopping, false);
	pthread_mutex_init(&g->lock, NULL);
	/* SIGTERM is what stops the thread. */
	if (!sigismember(&g->signals, SIGTERM))
		return;
	pthread_sigmask(SIG_BLOCK, &g->signals, &g->before);
	g->running = pthread_create(&g->thread, NULL, wait_for_signal, g) == 0;
	if (!g->running)
		pthread_sigmask(SIG_SETMASK, &g->before, NULL);
}

void atomic_guard_stop(struct atomic_guard *g)
{
	if (!g->running)
		return;
	atomic_store(&g->stopping, true);
	pthread_kill(g->thread, SIGTERM);
	pthread_join(g->thread, NULL);
	pthread_sigmask(SIG_SETMASK, &g->before, NULL);
	g->running = false;
}

void atomic_guard_lock(struct atomic_guard *g)
{
	if (g->running)
		pthread_mutex_lock(&g->lock);
}

void atomic_guard_unlock(struct atomic_guard *g, const char *path)
{
	g->path = path;
	if (g->running)
		pthread_mutex_unlock(&g->lock);
}

/* ---- the file ---- */

static int no_memory(struct err *err)
{
	return err_set(err, -ENOMEM, "out of memory");
}

/* The directory and a pattern for temporary names in it. */
static int split_path(struct atomic_file *f, const char *path, struct err *err)
{
	const char *slash = strrchr(path, '/');
	f->path = strdup(path);
	f->dir = !slash ? strdup(".") : strndup(path, slash == path ? 1 : (size_t)(slash - path));
	return f->path && f->dir ? 0 : no_memory(err);
}

static char *temporary_name(const struct atomic_file *f)
{
	char *name = NULL;
	const char *slash = strrchr(f->path, '/');
	return asprintf(&name, "%s/.%.200s.XXXXXX", f->dir, slash ? slash + 1 : f->path) < 0 ? NULL
											     : name;
}

static int open_file(struct atomic_file *f, struct err *err)
{
	mode_t mask = umask(0);
	umask(mask);
	f->fd = open(f->dir, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
	if (f->fd >= 0)
		return 0;
	if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)
		return err_errno(err, -errno, "%s", f->dir);
	char *name = temporary_name(f);
	if (!name)
		return no_memory(err);
	atomic_guard_lock(f->guard);
	f->fd = mkostemp(name, O_CLOEXEC);
	atomic_guard_unlock(f->guard, f->fd < 0 ? NULL : name);
	if (f->fd < 0) {
		int rc = err_errno(err, -errno, "%s", name);
		free(name);
		return rc;
	}
	f->temporary = name;
	if (fchmod(f->fd, 0666 & ~mask))
		return err_errno(err, -errno, "%s", name);
	return 0;
}

int atomic_file_open(struct atomic_file *f, const char *path, struct atomic_guard *guard,
		     struct err *err)
{
	struct stat st;
	*f = (struct atomic_file){.fd = -1, .name = path, .guard = guard};
	if (strcmp(path, "-") == 0) {
		f->name = "standard output";
		f->stream = true;
		f->fd = dup(STDOUT_FILENO);
		return f->fd < 0 ? err_errno(err, -errno, "%s", f->name) : 0;
	}
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
		f->stream = true;
		f->fd = open(path, O_WRONLY | O_CLOEXEC);
		return f->fd < 0 ? err_errno(err, -errno, "%s", path) : 0;
	}
	int rc = split_path(f, path, err);
	return rc ? rc : open_file(f, err);
}

int atomic_file_write(struct atomic_file *f, const void *bytes, size_t n, uint64_t offset,
		      struct err *err)
{
	const char *p = bytes;
	while (n > 0) {
		ssize_t done = f->stream ? write(f->fd, p, n) : pwrite(f->fd, p, n, (off_t)offset);
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return err_errno(err, done < 0 ? -errno : -EIO, "%s", f->name);
		p += done;
		n -= (size_t)done;
		offset += (uint64_t)done;
	}
	return 0;
}

/* A name for a file that has none, to be renamed: linkat() replaces nothing. */
static int give_name(struct atomic_file *f, struct err *err)
{
	enum { TRIES = 100 };
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz234567";
	char self[64];
	snprintf(self, sizeof(self), "/proc/self/fd/%d", f->fd);
	for (int i = 0; i < TRIES; i++) {
		struct timespec ts;
		char *name = temporary_name(f);
		if (!name)
			return no_memory(err);
		clock_gettime(CLOCK_REALTIME, &ts);
		uint64_t seed = ((uint64_t)ts.tv_nsec << 20) ^ (uint64_t)getpid() ^ (uint64_t)i;
		for (char *x = name + strlen(name) - 6; *x; x++, seed /= 32)
			*x = letters[seed % 32];
		atomic_guard_lock(f->guard);
		int rc = linkat(AT_FDCWD, self, AT_FDCWD, name, AT_SYMLINK_FOLLOW) ? -errno : 0;
		atomic_guard_unlock(f->guard, rc ? NULL : name);
		if (rc == 0) {
			f->temporary = name;
			return 0;
		}
		free(name);
		if (rc != -EEXIST)
			return err_errno(err, rc, "%s", f->name);
	}
	return err_set(err, -EEXIST, "%s: no free temporary name", f->name);
}

int atomic_file_commit(struct atomic_file *f, uint64_t size, struct err *err)
{
	if (f->stream)
		return 0;
	if (ftruncate(f->fd, (off_t)size) || fsync(f->fd))
		return err_errno(err, -errno, "%s", f->name);
	if (!f->temporary) {
		int rc = give_name(f, err);
		if (rc)
			return rc;
	}
	atomic_guard_lock(f->guard);
	const int rc = rename(f->temporary, f->path) ? -errno : 0;
	atomic_guard_unlock(f->guard, rc ? f->temporary : NULL);
	if (rc)
		return err_errno(err, rc, "%s", f->name);
	free(f->temporary);
	f->temporary = NULL;
	return 0;
}

void atomic_file_close(struct atomic_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	if (f->temporary) {
		atomic_guard_lock(f->guard);
		unlink(f->temporary);
		atomic_guard_unlock(f->guard, NULL);
	}
	free(f->temporary);
	free(f->path);
	free(f->dir);
	*f = (struct atomic_file){.fd = -1};
}
