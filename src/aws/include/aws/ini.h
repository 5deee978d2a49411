/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shared config and credentials files of AWS's tools ("Configuration and credential file
 * settings", AWS CLI User Guide). Pure.
 */
#ifndef AWS_INI_H
#define AWS_INI_H

#include <stddef.h>

#include <hsmount/err.h>
#include <base/mem.h>

enum { INI_SIZE_MAX = 1 << 20 };

struct ini_entry {
	const char *section, *key, *value; /* a key of a nested block is "outer.inner" */
	struct ini_entry *next;
};

struct ini {
	struct arena *arena;
	struct ini_entry *entries; /* in reverse order, because the last entry of a key counts */
};
void ini_release(struct ini *ini);
#define auto_ini __attribute__((cleanup(ini_release)))

/* Parses a file. Lines other than "[section]", "key = value", indented "key = value", comments (#
 * or ;) and blank lines are ignored, as in AWS's tools. Fails with -EINVAL if the text is too large
 * or has a NUL, and with -ENOMEM. */
int ini_parse(const char *text, size_t n, struct ini *out, struct err *err);
/* Returns NULL if there is no such key. */
const char *ini_get(const struct ini *ini, const char *section, const char *key);

#endif
