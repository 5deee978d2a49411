/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MD5 of several bodies of the same length at once. Each step of MD5 waits for the one before, so a
 * processor that does one body at a time is idle for the most part; with one body in each lane of
 * a vector register the same steps serve 4, 8 or 16. One after the other, the checksums of a large
 * read take more of the processor than all the rest of it.
 *
 * For comparing, not for security. Pure.
 */
#ifndef S3_MD5_MANY_H
#define S3_MD5_MANY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MD5_SIZE = 16, MD5_LANES_MAX = 16 };

struct md5_state;

/* One width of registers. */
struct md5_kernel {
	unsigned int lanes;
	unsigned int least;   /* bodies; fewer are done sooner one by one, by OpenSSL */
	bool (*usable)(void); /* on this processor */
	void (*blocks)(struct md5_state *state, const uint8_t *const *at, size_t nblocks);
};

/* All that were compiled, the widest first; the last is usable everywhere. */
extern const struct md5_kernel md5_kernels[];
extern const size_t md5_nkernels;

/* The widest that is usable. */
const struct md5_kernel *md5_widest(void);

/* n: 1 to k->lanes; few lanes take as long as all. */
void md5_many(const struct md5_kernel *k, const void *const *bodies, unsigned int n, size_t len,
	      uint8_t (*out)[MD5_SIZE]);

#endif
