/* SPDX-License-Identifier: Apache-2.0 */
/* See disk.h: the functions of libc that change files. Those on files of no disk do what they
 * always do. */
#include "disk_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The linker gives these names: __real_F is the function, and __wrap_F what is called instead. */
int __real_open64(const char *path, int flags, ...);
int __real_openat64(int dir, const char *path, int flags, ...);
ssize_t __real_write(int fd, const void *buf, size_t n);
ssize_t __real_pwrite64(int fd, const void *buf, size_t n, off_t offset);
int __real_ftruncate64(int fd, off_t size);
int __real_fallocate64(int fd, int mode, off_t offset, off_t n);
int __real_fsync(int fd);
int __real_close(int fd);
int __real_fdatasync(int fd);
int __real_renameat2(int from_dir, const char *from, int to_dir, const char *to,
		     unsigned int flags);
int __real_unlinkat(int dir, const char *path, int flags);
int __real_mkdirat(int dir, const char *path, mode_t mode);

int __wrap_open64(const char *path, int flags, ...);
int __wrap_openat64(int dir, const char *path, int flags, ...);
ssize_t __wrap_write(int fd, const void *buf, size_t n);
ssize_t __wrap_pwrite64(int fd, const void *buf, size_t n, off_t offset);
int __wrap_ftruncate64(int fd, off_t size);
int __wrap_fallocate64(int fd, int mode, off_t offset, off_t n);
int __wrap_fsync(int fd);
int __wrap_close(int fd);
int __wrap_fdatasync(int fd);
int __wrap_renameat(int from_dir, const char *from, int to_dir, const char *to);
int __wrap_renameat2(int from_dir, const char *from, int to_dir, const char *to,
		     unsigned int flags);
int __wrap_unlinkat(int dir, const char *path, int flags);
int __wrap_mkdirat(int dir, const char *path, mode_t mode);

/* ---- which file ---- */

static struct node *node_of(int fd)
{
	struct stat st;
	const int code = errno;
	struct node *node = fstat(fd, &st) ? NULL : disk_find(&st);
	errno = code;
	return node;
}

/* A directory and a name in it, as the calls ending in "at" get them. */
struct place {
	struct node *dir;  /* NULL: in no disk */
	struct node *node; /* what has the name; NULL: nothing */
	const char *name;
};

static struct place place_of(int dir, const char *path)
{
	struct place p = {.name = path};
	struct stat st;
	char parent[PATH_MAX];
	const int code = errno;
	const char *slash = strrchr(path, '/');
	if (slash)
		p.name = slash + 1;
	snprintf(parent, sizeof(parent), "%.*s", slash ? (int)(slash - path) + 1 : 1,
		 slash ? path : ".");
	if (fstatat(dir, parent, &st, 0) == 0)
		p.dir = disk_find(&st);
	if (p.dir && fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) == 0)
		p.node = disk_find(&st);
	errno = code;
	return p;
}

/* Asks the hook. n: the bytes of the call. Returns how many it may write, or -1 with errno. */
static ssize_t ask(const struct disk *d, enum disk_call call, const char *name, size_t n)
{
	char copy[NAME_MAX + 1]; /* the hook may let others rename the file */
	if (!d->hook)
		return (ssize_t)n;
	snprintf(copy, sizeof(copy), "%s", name);
	const ssize_t rc = d->hook(d->ctx, call, copy, n);
	if (rc >= 0)
		return rc == 0 ? (ssize_t)n : rc;
	errno = (int)-rc;
	return -1;
}

/* ---- contents ----
 *
 * The hook may let others run, and the file may be that of a dead process afterwards. So what a
 * call has done is noted for what the descriptor leads to after it.
 */

ssize_t __wrap_pwrite64(int fd, const void *buf, size_t n, off_t offset)
{
	struct node *f = node_of(fd);
	const ssize_t take = f ? ask(f->disk, DISK_WRITE, f->name, n) : (ssize_t)n;
	if (take < 0)
		return -1;
	const ssize_t put = __real_pwrite64(fd, buf, (size_t)take, offset);
	f = put > 0 ? node_of(fd) : NULL;
	if (f)
		disk_edited(f, EDIT_WRITE, (uint64_t)offset, (uint64_t)put, buf);
	return put;
}

static volatile bool hides_log;

void disk_hide_log(bool hide)
{
	hides_log = hide;
}

ssize_t __wrap_write(int fd, const void *buf, size_t n)
{
	if (hides_log && fd == STDERR_FILENO)
		return (ssize_t)n;
	struct node *f = node_of(fd);
	const ssize_t take = f ? ask(f->disk, DISK_WRITE, f->name, n) : (ssize_t)n;
	if (take < 0)
		return -1;
	const ssize_t put = __real_write(fd, buf, (size_t)take);
	f = put > 0 ? node_of(fd) : NULL;
	if (f) /* also with O_APPEND, the offset is behind what was written */
		disk_edited(f, EDIT_WRITE, (uint64_t)(lseek(fd, 0, SEEK_CUR) - put), (uint64_t)put,
			    buf);
	return put;
}

int __wrap_ftruncate64(int fd, off_t size)
{
	struct node *f = node_of(fd);
	if (f && ask(f->disk, DISK_CUT, f->name, 0) < 0)
		return -1;
	const int rc = __real_ftruncate64(fd, size);
	f = rc ? NULL : node_of(fd);
	if (f)
		disk_edited(f, EDIT_SIZE, (uint64_t)size, 0, NULL);
	return rc;
}

int __wrap_fallocate64(int fd, int mode, off_t offset, off_t n)
{
	struct node *f = node_of(fd);
	if (f && !(mode & FALLOC_FL_KEEP_SIZE))
		disk_give_up("fallocate() of %s changes its size", f->name);
	if (f && ask(f->disk, DISK_ALLOCATE, f->name, (size_t)n) < 0)
		return -1;
	const int rc = __real_fallocate64(fd, mode, offset, n);
	f = rc || mode == FALLOC_FL_KEEP_SIZE ? NULL : node_of(fd);
	if (f && mode != (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE))
		disk_give_up("fallocate() of %s in a mode that disk.h does not know", f->name);
	if (f)
		disk_edited(f, EDIT_HOLE, (uint64_t)offset, (uint64_t)n, NULL);
	return rc;
}

/* The real files need no synchronisation. */
static int synchronise(int fd, int (*real)(int fd))
{
	struct node *node = node_of(fd);
	if (!node)
		return real(fd);
	const ssize_t rc = ask(node->disk, DISK_SYNC, node->name, 0);
	node = node_of(fd);
	if (node && rc < 0)
		disk_sync_failed(node);
	else if (node)
		disk_synced(node);
	return rc < 0 ? -1 : 0;
}

int __wrap_fsync(int fd)
{
	return synchronise(fd, __real_fsync);
}

int __wrap_fdatasync(int fd)
{
	return synchronise(fd, __real_fdatasync);
}

/* ---- names ---- */

static int made(const struct place *p, int fd)
{
	struct stat st;
	if (fstat(fd, &st))
		disk_give_up("%s cannot be read", p->name);
	struct node *node = disk_add(p->dir->disk, p->name, &st);
	disk_renamed(node, NULL, NULL, p->dir, p->name);
	return fd;
}

int __wrap_openat64(int dir, const char *path, int flags, ...)
{
	va_list more;
	va_start(more, flags);
	const mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;
	va_end(more);
	struct place p = {0};
	if (flags & (O_CREAT | O_TRUNC))
		p = place_of(dir, path);
	if (!p.dir)
		return __real_openat64(dir, path, flags, mode);
	const bool changes = p.node ? flags & O_TRUNC : flags & O_CREAT;
	if (changes && ask(p.dir->disk, p.node ? DISK_CUT : DISK_CREATE, p.name, 0) < 0)
		return -1;
	p = place_of(dir, path);
	const int fd = __real_openat64(dir, path, flags, mode);
	if (fd < 0 || !p.dir)
		return fd;
	if (!p.node)
		return made(&p, fd);
	if (flags & O_TRUNC)
		disk_edited(p.node, EDIT_SIZE, 0, 0, NULL);
	return fd;
}

static int open_boot_id(const struct disk *d)
{
	char text[64];
	const int n = snprintf(text, sizeof(text), "00000000-0000-4000-8000-%012x\n", d->boots);
	const int fd = memfd_create("boot_id", MFD_CLOEXEC);
	if (fd < 0 || __real_pwrite64(fd, text, (size_t)n, 0) != n)
		disk_give_up("the boot id cannot be made");
	return fd;
}

int __wrap_open64(const char *path, int flags, ...)
{
	va_list more;
	va_start(more, flags);
	const mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;
	va_end(more);
	if (disk_used() && strcmp(path, "/proc/sys/kernel/random/boot_id") == 0)
		return open_boot_id(disk_used());
	return __wrap_openat64(AT_FDCWD, path, flags, mode);
}

int __wrap_mkdirat(int dir, const char *path, mode_t mode)
{
	struct place p = place_of(dir, path);
	if (p.dir && !p.node && ask(p.dir->disk, DISK_MKDIR, p.name, 0) < 0)
		return -1;
	const int rc = __real_mkdirat(dir, path, mode);
	p = rc ? (struct place){0} : place_of(dir, path);
	if (p.dir) {
		const int fd = __real_openat64(dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		close(made(&p, fd));
	}
	return rc;
}

int __wrap_unlinkat(int dir, const char *path, int flags)
{
	struct place p = place_of(dir, path);
	if (p.node && ask(p.dir->disk, DISK_UNLINK, p.name, 0) < 0)
		return -1;
	p = place_of(dir, path);
	const int rc = __real_unlinkat(dir, path, flags);
	if (rc == 0 && p.node)
		disk_renamed(p.node, p.dir, p.name, NULL, NULL);
	return rc;
}

int __wrap_renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned int flags)
{
	struct place p = place_of(from_dir, from);
	if (p.node && ask(p.dir->disk, DISK_RENAME, p.name, 0) < 0)
		return -1;
	p = place_of(from_dir, from);
	const struct place q = place_of(to_dir, to);
	if (p.node && (!q.dir || q.dir->disk != p.dir->disk || flags & ~RENAME_NOREPLACE))
		disk_give_up("%s: a rename that disk.h does not know", from);
	const int rc = __real_renameat2(from_dir, from, to_dir, to, flags);
	if (rc == 0 && p.node && p.node != q.node)
		disk_renamed(p.node, p.dir, p.name, q.dir, q.name);
	return rc;
}

int __wrap_renameat(int from_dir, const char *from, int to_dir, const char *to)
{
	return __wrap_renameat2(from_dir, from, to_dir, to, 0);
}

/* A descriptor that is closed twice may be that of another thread by then. */
int __wrap_close(int fd)
{
	const int rc = __real_close(fd);
	if (rc && errno == EBADF)
		disk_give_up("descriptor %d is closed twice", fd);
	return rc;
}
