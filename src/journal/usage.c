/* SPDX-License-Identifier: Apache-2.0 */
/* See usage.h. A file that vanishes meanwhile counts nothing. */
#include <journal/usage.h>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK = 512 /* of st_blocks, bytes */ };

uint64_t usage_sum(int parent, const char *name, uint64_t (*fn)(int dir, const char *name))
{
	const int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	uint64_t bytes = 0;
	if (!dir) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	for (const struct dirent *e; (e = readdir(dir));)
		bytes += fn(fd, e->d_name);
	closedir(dir);
	return bytes;
}

static uint64_t of_file(int dir, const char *name)
{
	struct stat st;
	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode)
		       ? (uint64_t)st.st_blocks * BLOCK
		       : 0;
}

uint64_t usage_of(int parent, const char *name)
{
	return usage_sum(parent, name, of_file);
}
