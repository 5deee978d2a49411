/* SPDX-License-Identifier: Apache-2.0 */
/* See levels.h. */
#include "levels.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include <base/hex.h>
#include <base/mem.h>

#include <journal/private_file.h>

enum { DIGEST = (LEVEL_DIGITS - 1) / 2 };

static const char *why_refused(int rc)
{
	switch (rc) {
	case -ELOOP:
		return "is a symbolic link";
	case -EPERM:
		return "belongs to another user";
	case -EACCES:
		return "can be accessed by others; use chmod 700";
	default:
		return NULL;
	}
}

int level_open(int parent, const char *name, const char *path, bool make, struct err *err)
{
	if (make && mkdirat(parent, name, 0700) && errno != EEXIST)
		return err_errno(err, -errno, "journal directory %s", path);
	const int fd = file_open_dir(parent, name);
	if (fd >= 0)
		return fd;
	const char *why = why_refused(fd);
	if (why)
		return err_set(err, -EPERM, "journal directory %s: %s%s%s", path,
			       parent == AT_FDCWD ? "" : name, parent == AT_FDCWD ? "" : " ", why);
	return err_errno(err, fd, "journal directory %s", path);
}

int level_open_root(const char *path, bool make, struct err *err)
{
	auto_free char *trimmed = strdup(path);
	size_t n = trimmed ? strlen(trimmed) : 0;
	if (!trimmed)
		return err_no_memory(err);
	/* With a slash behind it, a symbolic link would be followed. */
	while (n > 1 && trimmed[n - 1] == '/')
		trimmed[--n] = '\0';
	return level_open(AT_FDCWD, trimmed, trimmed, make, err);
}

int level_of_bucket(const char *identity, char digits[LEVEL_DIGITS], struct err *err)
{
	uint8_t digest[DIGEST];
	if (!EVP_Digest(identity, strlen(identity), digest, NULL, EVP_sha256(), NULL))
		return err_set(err, -EIO, "cannot compute SHA-256");
	hex_encode(digest, DIGEST, digits);
	return 0;
}

bool level_is_bucket(const char *name)
{
	return strlen(name) == LEVEL_DIGITS - 1 &&
	       strspn(name, "0123456789abcdef") == LEVEL_DIGITS - 1;
}
