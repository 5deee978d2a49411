/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names in a datatype: members of compounds and symbols of enumerations. HDF5 gives them no
 * character set, so they may have any bytes but NUL.
 */
#include "dtype.h"

#include <errno.h>
#include <string.h>

static int compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int dtype_check_names(const char **names, uint32_t n, struct err *err)
{
	for (uint32_t i = 0; i < n; i++) {
		if (!names[i] || !names[i][0])
			return err_set(err, -EINVAL, "member %u has no name", i);
	}
	/* A hostile document may have 65,535 names: comparing all pairs would take too long. */
	qsort(names, n, sizeof(*names), compare);
	for (uint32_t i = 1; i < n; i++)
		if (strcmp(names[i - 1], names[i]) == 0)
			return err_set(err, -EINVAL, "two members have the name %s", names[i]);
	return 0;
}
