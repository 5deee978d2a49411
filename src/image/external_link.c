/* SPDX-License-Identifier: Apache-2.0 */
/*
 * External links. In a domain their target is a domain; in an HDF5 file it is a file. libhdf5
 * resolves a relative file name against the directory of the linking file. So the domain names
 * "hdf5://home/u/b.h5", "/home/u/b.h5" and "b.h5" all become paths relative to the directory of
 * this domain. ".." at the root of the bucket is the root itself, so no link leads out of the
 * mount.
 */
#include "image_plan.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Appends the components of path to full, and resolves "." and "..". full neither begins nor ends
 * with a slash. */
static int append_components(char *full, size_t cap, const char *path)
{
	size_t len = strlen(full);
	while (*path) {
		size_t n = strcspn(path, "/");
		if (n == 2 && path[0] == '.' && path[1] == '.') {
			char *slash = memrchr(full, '/', len);
			len = slash ? (size_t)(slash - full) : 0;
		} else if (n > 0 && !(n == 1 && path[0] == '.')) {
			if (len + n + 2 > cap)
				return -ENAMETOOLONG;
			if (len > 0)
				full[len++] = '/';
			memcpy(full + len, path, n);
			len += n;
		}
		full[len] = '\0';
		path += n;
		path += strspn(path, "/");
	}
	return 0;
}

/* Makes the path of the file `full` relative to the directory dir. Neither begins or ends with a
 * slash. */
static int relative_path(const char *dir, const char *full, char *out, size_t cap)
{
	size_t common = 0, i = 0, len = 0;
	for (; dir[i] && dir[i] == full[i]; i++)
		if (dir[i] == '/')
			common = i + 1;
	if (!dir[i] && full[i] == '/')
		common = i + 1;
	const char *rest = common > i ? dir + i : dir + common;
	while (*rest) {
		if (len + 4 > cap)
			return -ENAMETOOLONG;
		memcpy(out + len, "../", 4);
		len += 3;
		rest += strcspn(rest, "/");
		rest += strspn(rest, "/");
	}
	if (snprintf(out + len, cap - len, "%s", full + common) >= (int)(cap - len))
		return -ENAMETOOLONG;
	return 0;
}

int image_external_path(const char *dir, const char *domain, image_file_name_fn file_name,
			const char *suffix, char *path, size_t room)
{
	static const char scheme[] = "hdf5://";
	int rc = 0;
	path[0] = '\0';
	if (strncmp(domain, scheme, sizeof(scheme) - 1) == 0)
		domain += sizeof(scheme) - 1;
	else if (domain[0] != '/')
		rc = append_components(path, room, dir);
	if (!rc)
		rc = append_components(path, room, domain);
	return rc || !file_name || !path[0] ? rc : file_name(suffix, path, room);
}

int image_external_file(const struct image *img, const char *domain, char *file, size_t cap)
{
	char full[IMAGE_FILE_NAME_MAX];
	int rc = image_external_path(img->dir, domain, img->file_name, img->suffix, full,
				     sizeof(full));
	if (!rc)
		rc = relative_path(img->dir, full, file, cap);
	if (!rc && !file[0])
		rc = snprintf(file, cap, ".") >= (int)cap ? -ENAMETOOLONG : 0;
	return rc;
}
