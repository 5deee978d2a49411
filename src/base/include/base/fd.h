/* SPDX-License-Identifier: Apache-2.0 */
/* Closes a file descriptor when its variable goes out of scope. */
#ifndef BASE_FD_H
#define BASE_FD_H

#include <unistd.h>

static inline void cleanup_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}
#define auto_close __attribute__((cleanup(cleanup_close)))

#endif
