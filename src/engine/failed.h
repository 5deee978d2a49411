/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names whose look-up has just failed after a long wait. The kernel looks a name up once more when
 * that fails, and whoever waits would wait twice. A few at most; any thread.
 */
#ifndef ENGINE_FAILED_H
#define ENGINE_FAILED_H

#include <stdint.h>

#include <hsmount/err.h>

struct failed;
/* NULL without memory. */
struct failed *failed_new(void);
void failed_free(struct failed *f);
/* Until that time path fails like this. Forgets the oldest, or, without memory, this one. */
void failed_put(struct failed *f, const char *path, const struct err *why, uint64_t until);
/* The failure that is remembered at time now, 0 when there is none. */
int failed_get(struct failed *f, const char *path, uint64_t now, struct err *err);

#endif
