/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runs of an element are found once, and then copied for every element. Adjacent members form
 * one run. Each item of an array of compounds or arrays has its own runs. The functions are pure.
 */
#include "pack.h"

#include <string.h>

static bool add_run(struct pack *p, uint32_t at, uint32_t n)
{
	struct pack_run *last = p->n ? &p->runs[p->n - 1] : NULL;
	p->packed += n;
	if (last && last->at + last->n == at) {
		last->n += n;
		return true;
	}
	if (p->n == PACK_RUNS)
		return false;
	p->runs[p->n++] = (struct pack_run){.at = at, .n = n};
	return true;
}

/* Adds the runs of an element of type t, which begins at byte `at`. */
static bool add_runs(struct pack *p, const struct dtype *t, uint32_t at)
{
	bool ok = true;
	if (t->cls == DTYPE_COMPOUND) {
		for (uint32_t i = 0; i < t->compound.n && ok; i++)
			ok = add_runs(p, t->compound.members[i].type,
				      at + t->compound.members[i].offset);
		return ok;
	}
	const struct dtype *base = t->cls == DTYPE_ARRAY ? t->array.base : NULL;
	if (!base || (base->cls != DTYPE_COMPOUND && base->cls != DTYPE_ARRAY))
		return add_run(p, at, t->size);
	for (uint64_t i = 0; i < t->array.nelems && ok; i++)
		ok = add_runs(p, base, at + (uint32_t)i * base->size);
	return ok;
}

bool pack_init(struct pack *p, const struct dtype *t)
{
	p->size = t->size;
	p->packed = 0;
	p->n = 0;
	return dtype_is_plain(t) && add_runs(p, t, 0);
}

/* Most runs are numbers. A copy of a constant size needs no call. */
static inline void copy(uint8_t *to, const uint8_t *from, uint32_t n)
{
	switch (n) {
	case 4:
		memcpy(to, from, 4);
		break;
	case 8:
		memcpy(to, from, 8);
		break;
	case 2:
		memcpy(to, from, 2);
		break;
	case 1:
		*to = *from;
		break;
	default:
		memcpy(to, from, n);
	}
}

void pack_elems(const struct pack *p, uint8_t *to, const uint8_t *from, uint64_t n)
{
	for (; n > 0; n--, from += p->size) {
		for (uint32_t i = 0; i < p->n; i++) {
			copy(to, from + p->runs[i].at, p->runs[i].n);
			to += p->runs[i].n;
		}
	}
}

void unpack_elems(const struct pack *p, uint8_t *to, const uint8_t *from, uint64_t n)
{
	for (; n > 0; n--, to += p->size) {
		for (uint32_t i = 0; i < p->n; i++) {
			copy(to + p->runs[i].at, from, p->runs[i].n);
			from += p->runs[i].n;
		}
	}
}
