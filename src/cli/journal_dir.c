/* SPDX-License-Identifier: Apache-2.0 */
/* See journal_dir.h. */
#include "journal_dir.h"

#include <errno.h>
#include <pwd.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/mem.h>
#include <base/str.h>

static bool is_absolute(const char *path)
{
	return path && path[0] == '/';
}

char *journal_dir_for(bool is_root, const char *state_home, const char *home, const char *fallback)
{
	auto_str struct str path = {0};
	if (is_root) {
		/* A mount of fstab(5) has another environment than a shell: both must find the
		 * same directory. */
		str_add(&path, "/var/lib");
	} else if (is_absolute(state_home)) {
		str_add(&path, state_home);
	} else {
		str_add(&path, is_absolute(home) ? home : fallback);
		str_add(&path, "/.local/state");
	}
	str_add(&path, "/hsmount");
	return str_take(&path);
}

char *journal_dir_default(void)
{
	const struct passwd *user = getpwuid(geteuid());
	return journal_dir_for(geteuid() == 0, getenv("XDG_STATE_HOME"), getenv("HOME"),
			       user && user->pw_dir ? user->pw_dir : "");
}

int journal_dir_make_parents(const char *path, struct err *err)
{
	auto_free char *parent = strdup(path);
	if (!parent)
		return err_no_memory(err);
	/* The first character of an absolute path is a slash, above which there is nothing. */
	char *slash = *parent ? strchr(parent + 1, '/') : NULL;
	for (; slash; slash = strchr(slash + 1, '/')) {
		if (slash[strspn(slash, "/")] == '\0')
			break; /* the path ends with a slash */
		*slash = '\0';
		if (mkdir(parent, 0700) && errno != EEXIST)
			return err_errno(err, -errno, "journal directory %s: cannot make %s", path,
					 parent);
		*slash = '/';
	}
	return 0;
}
