/* SPDX-License-Identifier: Apache-2.0 */
/* The files of tests/data. */
#ifndef SUPPORT_DATA_FILE_H
#define SUPPORT_DATA_FILE_H

#include <stdio.h>
#include <stdlib.h>

#include <base/mem.h>

/* The content of a file. The caller releases it. */
static inline struct bytes data_file(const char *name)
{
	char path[4096];
	uint8_t piece[4096];
	struct bytes b = {0};
	size_t n;
	snprintf(path, sizeof(path), "%s/tests/data/%s", getenv("HSMOUNT_SOURCE"), name);
	FILE *f = fopen(path, "rb");
	assert_non_null(f);
	while ((n = fread(piece, 1, sizeof(piece), f)) > 0)
		assert_int_equal(bytes_append(&b, piece, n), 0);
	fclose(f);
	return b;
}

#endif
