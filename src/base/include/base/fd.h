/* SPDX-License-Identifier: Apache-2.0 */
/* A file descriptor that is closed where its variable ends. */
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
