/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel does not say of a program that is interrupted: by which signal. No state. */
#ifndef FUSE_SIGNALS_H
#define FUSE_SIGNALS_H

#include <stdbool.h>
#include <sys/types.h>

/* Does a signal wait for a thread that people end programs with? A timer's or a child's signal is
 * no reason for a read to fail. True when it cannot be told. */
bool signals_end(pid_t thread);

#endif
