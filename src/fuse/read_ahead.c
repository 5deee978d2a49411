/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See read_ahead.h. The setting is an attribute of the mount's backing device in sysfs. Its default
 * is 128 KiB; 2 MiB make a sequential reader of large chunks up to 50 % faster. The daemon itself
 * calls this code, so an access to a file of the mount could block forever.
 */
#include "read_ahead.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { DEFAULT_KB = 128 /* of the kernel */ };

/* Decodes \ooo, which mountinfo writes for space, tab, newline and backslash. */
static void unescape(char *s)
{
	char *out = s;
	while (*s) {
		unsigned int c;
		if (s[0] == '\\' && sscanf(s + 1, "%3o", &c) == 1) {
			*out++ = (char)c;
			s += 4;
		} else {
			*out++ = *s++;
		}
	}
	*out = '\0';
}

/* Parses lines such as "36 35 0:52 / /mnt/x ro - …". The last line with this mount point describes
 * the topmost mount. */
static bool find_device(const char *mountpoint, unsigned int *major, unsigned int *minor)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char line[8192], point[4096];
	bool found = false;
	if (!f)
		return false;
	while (fgets(line, sizeof(line), f)) {
		unsigned int ma, mi;
		if (sscanf(line, "%*u %*u %u:%u %*s %4095s", &ma, &mi, point) != 3)
			continue;
		unescape(point);
		if (strcmp(point, mountpoint) != 0)
			continue;
		*major = ma;
		*minor = mi;
		found = true;
	}
	fclose(f);
	return found;
}

/* Everybody may read the setting. */
static void find_setting(struct read_ahead *r, const char *mountpoint)
{
	unsigned int major, minor;
	r->is_known = true;
	r->kb = DEFAULT_KB;
	if (find_device(mountpoint, &major, &minor))
		snprintf(r->path, sizeof(r->path), "/sys/class/bdi/%u:%u/read_ahead_kb", major,
			 minor);
	FILE *f = r->path[0] ? fopen(r->path, "re") : NULL;
	if (f && fscanf(f, "%u", &r->kb) != 1)
		r->kb = DEFAULT_KB;
	if (f)
		fclose(f);
}

unsigned int read_ahead_set(struct read_ahead *r, const char *mountpoint, unsigned int kb)
{
	pthread_mutex_lock(&r->lock);
	if (!r->is_known)
		find_setting(r, mountpoint);
	if (r->path[0] && r->kb != kb) {
		/* If the kernel refuses the value, the old one stays in effect, and no other one is
		 * tried. */
		const int fd = open(r->path, O_WRONLY | O_CLOEXEC);
		if (fd < 0 || dprintf(fd, "%u", kb) < 0)
			r->path[0] = '\0';
		else
			r->kb = kb;
		if (fd >= 0)
			close(fd);
	}
	kb = r->kb;
	pthread_mutex_unlock(&r->lock);
	return kb;
}
