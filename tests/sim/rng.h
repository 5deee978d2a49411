/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers that follow from a seed (splitmix64). No state but the caller's. */
#ifndef SIM_RNG_H
#define SIM_RNG_H

#include <stdbool.h>
#include <stdint.h>

struct rng {
	uint64_t state;
};

static inline uint64_t rng_next(struct rng *r)
{
	uint64_t z = (r->state += UINT64_C(0x9e3779b97f4a7c15));
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* A number below n. */
static inline unsigned int rng_below(struct rng *r, unsigned int n)
{
	return (unsigned int)(rng_next(r) % n);
}

/* True once in n times, on average. */
static inline bool rng_once_in(struct rng *r, unsigned int n)
{
	return rng_below(r, n) == 0;
}

/* Another sequence for each purpose, so that one more number of one does not change the others. */
static inline struct rng rng_derive(uint64_t seed, uint64_t purpose)
{
	struct rng r = {seed * UINT64_C(0x2545f4914f6cdd1d) + purpose};
	rng_next(&r);
	return r;
}

#endif
