/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that handle no signals. */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>

/* Starts a thread in which all signals are blocked, so that other threads handle them. The caller
 * joins or detaches it. Returns false if the system cannot start a thread. */
bool thread_start(pthread_t *out, void *(*fn)(void *arg), void *arg);

#endif
