/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shutdown in bounded time. Closing an engine waits for its requests, and a bucket that does not
 * answer would make it wait for ever. Main thread only.
 */
#ifndef CLI_SHUTDOWN_H
#define CLI_SHUTDOWN_H

#include <stdbool.h>

/* Calls close(arg) in another thread and waits at most ms for it to return. Returns false if it has
 * not returned: arg and what belongs to it are still in use, so the process must end by
 * _exit(2). */
bool shutdown_in_time(void (*close)(void *arg), void *arg, unsigned int ms);

#endif
