/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared object header messages (Spec III.H). Only decoders.
 *
 * Master table:                              An index in it:
 *   +0 4   "SMTB"                              +0 u8   version, 0
 *          indexes; the message 0x0f of the    +1 u8   0 list, 1 version 2 B-tree of type 7
 *          superblock extension has their      +2 u16  bit n: it holds messages of type n
 *          number                              +4 u32  bytes of the smallest message
 *      u32 checksum                            +8 u16  records for which a list has room
 *                                              +10 u16 records with which a B-tree begins
 *   List:                                      +12 u16 messages
 *   +0 4   "SMLI"                              +14 addr list or B-tree
 *          records                                addr fractal heap
 *      u32 checksum, after the last used
 *          record
 *
 *   A record, in lists and B-trees:
 *   +0 u8   0 in the heap                      1 in an object header
 *   +1 u32  hash                               hash
 *   +5 u32  reference count                    u8 reserved, u8 type, u16 creation index
 *   +9 8    heap id                            addr object header
 *
 * A reader finds a message by its heap id, so it needs no records.
 */
#include "sohm.h"

#include <string.h>

#include <base/checksum.h>
#include <h5/btree2.h>
#include <h5/claims.h>

#include "msg.h"

enum {
	SIGNATURE_LEN = 4,
	CHECKSUM_LEN = 4,
	INDEX_FIXED = 14,
	INDEX_MAX = INDEX_FIXED + 2 * 8,
	TABLE_MAX = SIGNATURE_LEN + SOHM_MAX_INDEXES * INDEX_MAX + CHECKSUM_LEN,
	RECORD_HEAD = 5,
	RECORD_IN_HEAP = 4 + 8,
	RECORD_IN_HEADER = 4, /* and an address */
	INDEX_LIST = 0,
	INDEX_BTREE = 1,
	LOCATION_HEAP = 0,
	LOCATION_HEADER = 1,
};

uint64_t sohm_size(const struct h5_file *f)
{
	return SIGNATURE_LEN + f->sohm_indexes * (INDEX_FIXED + 2 * (uint64_t)f->addr_size) +
	       CHECKSUM_LEN;
}

static size_t record_size(const struct h5_file *f)
{
	return RECORD_HEAD +
	       (size_t)max_u64(RECORD_IN_HEAP, RECORD_IN_HEADER + (uint64_t)f->addr_size);
}

/* Checks signature and checksum of n bytes, and leaves c behind the signature. */
static int check_block(const uint8_t *raw, size_t n, const char *signature, struct cursor *c,
		       struct err *err)
{
	struct cursor sum = cursor_of(raw + n - CHECKSUM_LEN, CHECKSUM_LEN);
	*c = cursor_of(raw, n - CHECKSUM_LEN);
	if (memcmp(cur_bytes(c, SIGNATURE_LEN), signature, SIGNATURE_LEN) != 0)
		return err_set(err, -EIO, "wrong signature");
	if (checksum_lookup3(raw, n - CHECKSUM_LEN, 0) != cur_u32(&sum))
		return err_set(err, -EIO, "checksum does not match");
	return 0;
}

static int decode_index(const struct h5_file *f, struct cursor *c, struct sohm_index *x,
			struct err *err)
{
	const uint8_t version = cur_u8(c), kind = cur_u8(c);
	x->types = cur_u16(c);
	cur_skip(c, 4);
	x->list_max = cur_u16(c);
	cur_skip(c, 2);
	x->n = cur_u16(c);
	x->records = h5_cur_addr(f, c);
	x->heap = h5_cur_addr(f, c);
	x->is_btree = kind == INDEX_BTREE;
	if (version != 0)
		return err_set(err, -EOPNOTSUPP, "index of unsupported version %u", version);
	if (kind > INDEX_BTREE)
		return err_set(err, -EIO, "index of unknown type %u", kind);
	if (!x->is_btree && x->n > x->list_max)
		return err_set(err, -EIO, "a list of %u messages has room for %u", x->n,
			       x->list_max);
	return 0;
}

static int decode_table(const struct h5_file *f, struct cursor *c, struct sohm_table *t,
			struct err *err)
{
	uint16_t types = 0;
	t->n = f->sohm_indexes;
	for (unsigned int i = 0; i < t->n; i++) {
		int rc = decode_index(f, c, &t->indexes[i], err);
		if (rc)
			return rc;
		if (types & t->indexes[i].types)
			return err_set(err, -EIO, "two indexes hold messages of one type");
		types |= t->indexes[i].types;
	}
	return 0;
}

int sohm_read(const struct h5_file *f, struct sohm_table *t, struct err *err)
{
	uint8_t raw[TABLE_MAX];
	struct cursor c;
	const size_t n = (size_t)sohm_size(f);
	*t = (struct sohm_table){.n = 0};
	int rc = h5_file_read(f, f->sohm, raw, n, err);
	if (!rc)
		rc = check_block(raw, n, "SMTB", &c, err);
	if (!rc)
		rc = decode_table(f, &c, t, err);
	return rc ? err_wrap(err, rc, "shared message table at %" PRIu64, f->sohm) : 0;
}

const struct sohm_index *sohm_find(const struct sohm_table *t, enum h5_msg_type type)
{
	for (unsigned int i = 0; i < t->n; i++)
		if (type < 16 && t->indexes[i].types & 1U << type)
			return &t->indexes[i];
	return NULL;
}

static int check_record(struct cursor *c, struct err *err)
{
	const uint8_t location = cur_u8(c);
	if (location == LOCATION_HEAP || location == LOCATION_HEADER)
		return 0;
	return err_set(err, -EIO, "record with unknown location %u", location);
}

/* A list takes the bytes of list_max records, but ends with its used records. */
static int check_list(const struct h5_file *f, const struct sohm_index *x, struct err *err)
{
	const size_t n = SIGNATURE_LEN + x->n * record_size(f) + CHECKSUM_LEN;
	const size_t whole = SIGNATURE_LEN + x->list_max * record_size(f) + CHECKSUM_LEN;
	auto_free uint8_t *raw = malloc(n); /* at most 2 MiB */
	struct cursor c;
	if (!raw)
		return err_no_memory(err);
	int rc = h5_file_read(f, x->records, raw, n, err);
	if (!rc)
		rc = check_block(raw, n, "SMLI", &c, err);
	for (uint16_t i = 0; !rc && i < x->n; i++) {
		struct cursor record = cur_sub(&c, record_size(f));
		rc = check_record(&record, err);
	}
	return rc ? rc : h5_claim(f->claims, x->records, whole, "list of shared messages", err);
}

struct count {
	const struct h5_file *f;
	uint64_t n;
};

static int count_record(void *ctx, const uint8_t *record, uint16_t size, struct err *err)
{
	struct count *count = ctx;
	struct cursor c = cursor_of(record, size);
	count->n++;
	if (size != record_size(count->f))
		return err_set(err, -EIO, "record of %u bytes", size);
	return check_record(&c, err);
}

static int check_tree(const struct h5_file *f, const struct sohm_index *x, struct err *err)
{
	struct count count = {.f = f};
	int rc = h5_bt2_walk(f, x->records, H5_BT2_SHARED, count_record, &count, err);
	/* The table has 16 bits for the number. */
	if (!rc && (uint16_t)count.n != x->n)
		rc = err_set(err, -EIO, "%" PRIu64 " records instead of %u", count.n, x->n);
	return rc;
}

int sohm_check(const struct h5_file *f, const struct sohm_index *x, struct err *err)
{
	if (x->records == H5_UNDEF)
		return x->n ? err_set(err, -EIO, "index of shared messages: it has no address") : 0;
	int rc = x->is_btree ? check_tree(f, x, err) : check_list(f, x, err);
	return rc ? err_wrap(err, rc, "index of shared messages at %" PRIu64, x->records) : 0;
}
