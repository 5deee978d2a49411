/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory store: deferred PUTs.
 *
 * A PUT that is durable at once waits for the disk twice, for the file and for its directory. A
 * program that puts many objects, of which none counts before the last one, can save this: it
 * defers the PUTs, and one syncfs(2) makes all of them durable.
 *
 * syncfs(2) reports the errors of all writes since the descriptor was opened, and earlier ones that
 * nobody has seen yet, from Linux 5.8 on. So the descriptor is opened before the first PUT, and
 * with an older kernel no PUT is deferred. The kernel does not pass the call on to a file system in
 * user space; there no PUT is deferred either.
 */
#include "dir.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/vfs.h>

enum { FUSE_MAGIC = 0x65735546 /* linux/magic.h */ };

static bool kernel_reports_errors(void)
{
	struct utsname name;
	int major = 0, minor = 0;
	return uname(&name) == 0 && sscanf(name.release, "%d.%d", &major, &minor) == 2 &&
	       (major > 5 || (major == 5 && minor >= 8));
}

void dir_sync_init(struct dir_store *d, const char *path)
{
	auto_close int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct statfs fs;
	struct stat st;
	d->sync = -1;
	if (fd < 0 || fstatfs(fd, &fs) || fs.f_type == FUSE_MAGIC || fstat(fd, &st) ||
	    !kernel_reports_errors() || !d->boot[0])
		return;
	d->device = st.st_dev;
	d->sync = fd;
	fd = -1;
}

int dir_sync(struct store *s, struct err *err)
{
	struct dir_store *d = dir_store_of(s);
	const uint64_t made = atomic_load(&d->made);
	if (d->sync >= 0 && syncfs(d->sync))
		return err_errno(err, -errno, "the bucket's objects cannot be written to the disk");
	atomic_store(&d->synced, made);
	return 0;
}
