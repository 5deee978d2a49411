/* SPDX-License-Identifier: Apache-2.0 */
/* Paths below a directory: see base/beneath.h. */
#include <base/beneath.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include <base/fd.h>

static int open_beneath(int root, const char *path, int flags)
{
	/* After EAGAIN: a rename or a mount elsewhere on the machine has disturbed the resolution
	 * of a ".." in a link. Paths with many such links take long enough to be disturbed
	 * often. */
	enum { RETRIES = 500, PAUSE_FROM = 16, PAUSE_NS = 50000 };
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	struct open_how how = {
		.flags = (uint64_t)(flags | O_CLOEXEC),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
	};
	for (int i = 0;; i++) {
		long fd = syscall(SYS_openat2, root, path, &how, sizeof(how));
		if (fd >= 0)
			return (int)fd;
		if ((errno != EAGAIN && errno != EINTR) || i == RETRIES)
			return -errno;
		if (i >= PAUSE_FROM)
			nanosleep(&pause, NULL);
	}
}

static int open_component(int at, const char *name, size_t n, int flags)
{
	char copy[NAME_MAX + 1];
	if (n > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(copy, name, n);
	copy[n] = '\0';
	int fd = openat(at, copy, flags | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int open_walk(int root, const char *path, int flags)
{
	auto_close int held = -1;
	int at = root;
	for (;;) {
		size_t n = strcspn(path, "/");
		if (path[n] == '\0')
			return open_component(at, path, n, flags);
		int next = open_component(at, path, n, O_PATH | O_DIRECTORY);
		if (next < 0)
			return next;
		if (held >= 0)
			close(held);
		at = held = next;
		path += n + 1;
	}
}

bool beneath_has_openat2(int root)
{
	int fd = open_beneath(root, ".", O_PATH | O_DIRECTORY);
	if (fd < 0)
		return false;
	close(fd);
	return true;
}

int beneath_open(int root, bool has_openat2, const char *path, int flags)
{
	return has_openat2 ? open_beneath(root, path, flags) : open_walk(root, path, flags);
}
