/* SPDX-License-Identifier: Apache-2.0 */
/* Siblings of nodes: see siblings.h. */
#include <h5/siblings.h>

#include <errno.h>
#include <inttypes.h>

static int wrong(uint64_t addr, const char *side, uint64_t found, uint64_t expected,
		 struct err *err)
{
	return err_set(err, -EIO,
		       "B-tree node at %" PRIu64 ": its %s sibling is 0x%" PRIx64
		       " instead of 0x%" PRIx64,
		       addr, side, found, expected);
}

int h5_siblings_add(struct h5_siblings *s, uint8_t level, uint64_t addr, uint64_t left,
		    uint64_t right, struct err *err)
{
	const bool any = s->level[level].any;
	const uint64_t last = any ? s->level[level].addr : H5_UNDEF;
	if (left != last)
		return wrong(addr, "left", left, last, err);
	if (any && s->level[level].right != addr)
		return wrong(last, "right", s->level[level].right, addr, err);
	s->level[level].addr = addr;
	s->level[level].right = right;
	s->level[level].any = true;
	return 0;
}

int h5_siblings_end(const struct h5_siblings *s, struct err *err)
{
	for (unsigned int i = 0; i < H5_SIBLING_LEVELS; i++)
		if (s->level[i].any && s->level[i].right != H5_UNDEF)
			return wrong(s->level[i].addr, "right", s->level[i].right, H5_UNDEF, err);
	return 0;
}
