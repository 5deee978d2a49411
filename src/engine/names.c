/* SPDX-License-Identifier: Apache-2.0 */
/* Names in the mount: see names.h. Pure, any thread. */
#include "names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { SUFFIX_LEN = sizeof(NAMES_SUFFIX) - 1 };

const char *names_last(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

size_t names_parent_len(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? (size_t)(slash - path) : 0;
}

bool names_has_extension(const char *name)
{
	return name[0] != '\0' && strchr(name + 1, '.') != NULL;
}

bool names_has_suffix(const char *name)
{
	size_t n = strlen(name);
	return n > SUFFIX_LEN && strcmp(name + n - SUFFIX_LEN, NAMES_SUFFIX) == 0;
}

bool names_is_hdf5(const char *name)
{
	static const char *const endings[] = {".h5", ".hdf5", ".hdf", ".he5", ".nc", ".nc4"};
	const char *dot = name[0] ? strrchr(name + 1, '.') : NULL;
	for (size_t i = 0; dot && i < sizeof(endings) / sizeof(endings[0]); i++)
		if (strcasecmp(dot, endings[i]) == 0)
			return true;
	return false;
}

bool names_ok(const char *name, size_t n)
{
	if (n == 0 || n > NAMES_MAX || memchr(name, '/', n) || memchr(name, '\0', n))
		return false;
	return !(n == 1 && name[0] == '.') && !(n == 2 && name[0] == '.' && name[1] == '.');
}

char *names_join(const char *dir, const char *name)
{
	char *path = NULL;
	return asprintf(&path, "%s%s%s", dir, dir[0] ? "/" : "", name) < 0 ? NULL : path;
}

char *names_with_suffix(const char *path, unsigned int times)
{
	size_t n = strlen(path);
	char *out = malloc(n + (size_t)times * SUFFIX_LEN + 1);
	if (!out)
		return NULL;
	memcpy(out, path, n + 1);
	for (unsigned int i = 0; i < times; i++)
		memcpy(out + n + (size_t)i * SUFFIX_LEN, NAMES_SUFFIX, SUFFIX_LEN + 1);
	return out;
}

int names_of_domain(char *path, size_t cap)
{
	size_t n = strlen(path);
	if (names_has_extension(names_last(path)))
		return 0;
	if (cap < SUFFIX_LEN + 1 || n > cap - SUFFIX_LEN - 1)
		return -ENAMETOOLONG;
	memcpy(path + n, NAMES_SUFFIX, SUFFIX_LEN + 1);
	return 0;
}
