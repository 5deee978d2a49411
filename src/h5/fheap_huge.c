/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of the B-trees of huge objects (Spec III.A.2, types 1 to 4), with addresses and lengths
 * of 8 bytes:
 *
 *   1  u64 address, u64 length, u64 number
 *   2  u64 address, u64 stored length, u32 filter mask, u64 length, u64 number
 *   3  u64 address, u64 length
 *   4  u64 address, u64 stored length, u32 filter mask, u64 length
 *
 * Heaps with filters have types 2 and 4. If ids have no room for the address, the heap has types 1
 * and 2, which are sorted by number. Otherwise ids hold the same members as types 3 and 4, and the
 * tree is only read for its claims.
 */
#include "fheap_huge.h"

#include <errno.h>
#include <inttypes.h>

#include <base/search.h>
#include <h5/btree2.h>
#include <h5/claims.h>

struct reading {
	struct fheap_huge_index *h;
	const struct fheap_table *t;
};

/* Decodes the members that ids and records share. */
static struct fheap_extent decode_extent(const struct fheap_table *t, struct cursor *c)
{
	struct fheap_extent p = {.addr = h5_cur_addr(&t->file, c)};
	p.stored = p.n = h5_cur_len(&t->file, c);
	if (t->filtered) {
		p.mask = cur_u32(c);
		p.n = h5_cur_len(&t->file, c);
	}
	return p;
}

static int add_record(void *ctx, const uint8_t *record, uint16_t record_size, struct err *err)
{
	const struct reading *r = ctx;
	struct bytes *all = &r->h->all;
	struct cursor c = cursor_of(record, record_size);
	struct fheap_extent p = decode_extent(r->t, &c);
	const struct fheap_extent *known = (const void *)all->data;
	const size_t n = all->len / sizeof(p);
	if (!r->t->huge_direct)
		p.number = h5_cur_len(&r->t->file, &c);
	if (!cur_ok(&c))
		return err_set(err, -EIO, "a B-tree record has %d bytes", record_size);
	if (r->t->huge_direct)
		return 0;
	if (n && known[n - 1].number >= p.number)
		return err_set(err, -EIO, "the huge objects are not in order");
	return bytes_append(all, &p, sizeof(p)) ? err_no_memory(err) : 0;
}

static int read_tree(struct fheap_huge_index *h, const struct fheap_table *t, uint64_t tree,
		     struct err *err)
{
	if (h->is_read)
		return 0;
	if (h->failed)
		return err_set(err, h->failed, "the B-tree of huge objects is damaged");
	if (tree == H5_UNDEF)
		return err_set(err, -EIO, "the heap has no huge objects");
	struct reading r = {.h = h, .t = t};
	const enum h5_bt2_type type =
		t->huge_direct ? t->filtered ? H5_BT2_HUGE_DIRECT_FILTERED : H5_BT2_HUGE_DIRECT
		: t->filtered  ? H5_BT2_HUGE_FILTERED
			       : H5_BT2_HUGE;
	h->all.len = 0; /* a failed walk may have left some */
	int rc = h5_bt2_walk(&t->file, tree, type, add_record, &r, err);
	h->is_read = rc == 0;
	if (rc == -EIO || rc == -EOPNOTSUPP)
		h->failed = rc;
	return rc;
}

int fheap_huge_find(struct fheap_huge_index *h, const struct fheap_table *t, uint64_t tree,
		    struct cursor *id, struct fheap_extent *out, struct err *err)
{
	int rc = t->huge_direct && !t->file.claims ? 0 : read_tree(h, t, tree, err);
	if (rc)
		return rc;
	if (t->huge_direct) {
		*out = decode_extent(t, id);
		return cur_ok(id) ? 0 : err_set(err, -EIO, "a heap id is too short");
	}
	const uint64_t number = cur_uint(id, t->huge_size);
	const struct fheap_extent *all = (const void *)h->all.data;
	const size_t n = h->all.len / sizeof(*all);
	const size_t lo = LOWER_BOUND(i, n, all[i].number < number);
	if (lo == n || all[lo].number != number)
		return err_set(err, -EIO, "there is no huge object %" PRIu64, number);
	*out = all[lo];
	return 0;
}

int fheap_huge_claim(struct fheap_huge_index *h, const struct fheap_table *t,
		     const struct fheap_extent *object, struct err *err)
{
	if (!t->file.claims)
		return 0;
	int rc = h5_addrs_add(&h->claimed, object->addr, 0);
	if (rc < 0)
		return err_no_memory(err);
	return rc ? h5_claim(t->file.claims, object->addr, object->stored, "huge object", err) : 0;
}

void fheap_huge_release(struct fheap_huge_index *h)
{
	bytes_release(&h->all);
	h5_addrs_release(&h->claimed);
}
