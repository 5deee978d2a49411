/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shutdown in bounded time: requests that are under way do not end before the bucket answers, and
 * it may never do so. Main thread only.
 */
#ifndef CLI_SHUTDOWN_H
#define CLI_SHUTDOWN_H

#include <stdbool.h>

/* Calls close(arg) in a thread of its own, and waits for it, but not for longer than ms. False when
 * it has not returned: then arg and what belongs to it are in use, and the process must end by
 * _exit(2). */
bool shutdown_in_time(void (*close)(void *arg), void *arg, unsigned int ms);

#endif
