/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leaving in bounded time. Nobody waits for anything any more, but requests that are under way do
 * not end before the bucket answers, which it need not do. Main thread only.
 */
#ifndef CLI_LEAVE_H
#define CLI_LEAVE_H

#include <stdbool.h>

/* Calls close(arg) in a thread of its own, and waits for it, but not for longer than ms. False when
 * it has not returned: then arg and what belongs to it are in use, and the process must end without
 * (_exit(2)). */
bool leave_in_time(void (*close)(void *arg), void *arg, unsigned int ms);

#endif
