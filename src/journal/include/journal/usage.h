/* SPDX-License-Identifier: Apache-2.0 */
/* What directories of drafts take on the disk. Any thread. */
#ifndef JOURNAL_USAGE_H
#define JOURNAL_USAGE_H

#include <stdint.h>

/* Returns the bytes that the files in a directory take on the disk, or 0 if it cannot be read. */
uint64_t usage_of(int parent, const char *name);
/* Returns the sum of fn() of all names in a directory. */
uint64_t usage_sum(int parent, const char *name, uint64_t (*fn)(int dir, const char *name));

#endif
