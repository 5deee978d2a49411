/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that handle no signals. */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>

/* Starts a thread in which all signals are blocked, so that other threads handle them. False: the
 * system cannot start a thread. Join or detach it. */
bool thread_start(pthread_t *out, void *(*fn)(void *arg), void *arg);

#endif
