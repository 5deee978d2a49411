/* SPDX-License-Identifier: Apache-2.0 */
/* Signs of completeness, of superblocks that are changed byte by byte. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/checksum.h>
#include <base/emit.h>
#include <drafts/close_state.h>
#include <h5/superblock.h>

#include "overlay_fixture.h"

enum { SIZE = 4096 };

struct sparse {
	struct source source;
	uint64_t at; /* of the superblock */
	uint8_t superblock[H5_SUPERBLOCK_MAX];
	size_t n;
	uint64_t fails; /* a read of this offset fails */
};

static int read_sparse(void *ctx, uint64_t offset, void *buf, size_t n, struct err *err)
{
	const struct sparse *s = ctx;
	uint8_t *to = buf;
	if (offset == s->fails)
		return err_set(err, -EIO, "the disk failed in the test");
	for (size_t i = 0; i < n; i++)
		to[i] = offset + i >= s->at && offset + i - s->at < s->n
				? s->superblock[offset + i - s->at]
				: 0;
	return 0;
}

static void make_sparse(struct sparse *s, uint64_t at, uint64_t size)
{
	*s = (struct sparse){.at = at, .fails = UINT64_MAX};
	s->source = (struct source){.size = size, .read_at = read_sparse, .ctx = s};
}

static void make_old(struct sparse *s, uint64_t at, uint64_t size)
{
	make_sparse(s, at, size);
	const struct h5_superblock sb = {
		.leaf_k = 4, .internal_k = 16, .base = at, .eof = size, .root = 96};
	struct emit e = emit_to(s->superblock, sizeof(s->superblock));
	h5_superblock_encode(&e, &sb);
	s->n = H5_SUPERBLOCK_SIZE;
}

static void put_u64(uint8_t *to, uint64_t v)
{
	for (int i = 0; i < 8; i++)
		to[i] = (uint8_t)(v >> 8 * i);
}

/* Version 2 or 3. */
static void make_new(struct sparse *s, uint8_t version, uint8_t status, uint64_t at, uint64_t size)
{
	make_old(s, at, size);
	uint8_t *b = s->superblock;
	memset(b + 8, 0, sizeof(s->superblock) - 8);
	b[8] = version;
	b[9] = b[10] = 8;
	b[11] = status;
	put_u64(b + 12, at);
	put_u64(b + 20, UINT64_MAX);
	put_u64(b + 28, size);
	put_u64(b + 36, 48);
	const uint32_t sum = checksum_lookup3(b, 44, 0);
	for (int i = 0; i < 4; i++)
		b[44 + i] = (uint8_t)(sum >> 8 * i);
	s->n = 48;
}

static enum close_state state_of(struct sparse *s, char why[256])
{
	enum close_state found;
	struct err err = ERR_INIT;
	if (close_state_read(&s->source, &found, why, 256, &err))
		fail_msg("%s", err.msg);
	return found;
}

static void assert_close_state(struct sparse *s, enum close_state want, const char *text)
{
	char why[256];
	assert_int_equal(state_of(s, why), want);
	assert_string_equal(why, text);
}

static void other_files_have_no_signature(void **state)
{
	static const uint64_t sizes[] = {0, 1, 7, 8, 511, 512, 519, 520, 4096, UINT64_C(8) << 30};
	struct sparse s;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		make_sparse(&s, 0, sizes[i]);
		assert_close_state(&s, CLOSE_STATE_UNKNOWN, "");
	}
	make_old(&s, 256, SIZE); /* no offset of a superblock */
	assert_close_state(&s, CLOSE_STATE_UNKNOWN, "");
}

static void the_status_shows_that_a_program_has_the_file_open(void **state)
{
	static const char
		old[] = "the program that wrote it has not closed it; if it is complete, use "
			"`hsimage import`",
		text[] = "the program that wrote it has not closed it; if it is complete, use "
			 "`hsimage import --ignore-open-flag`";
	struct sparse s;
	make_old(&s, 0, SIZE);
	assert_close_state(&s, CLOSE_STATE_CLOSED, "");
	s.superblock[20] = 1;
	assert_close_state(&s, CLOSE_STATE_OPEN, old);
	s.superblock[20] = 3; /* as closed files of old libraries have it */
	assert_close_state(&s, CLOSE_STATE_CLOSED, "");
	for (uint8_t version = 2; version <= 3; version++) {
		make_new(&s, version, 0, 0, SIZE);
		assert_close_state(&s, CLOSE_STATE_CLOSED, "");
		make_new(&s, version, 1, 0, SIZE);
		assert_close_state(&s, CLOSE_STATE_OPEN, version < 3 ? old : text);
		make_new(&s, version, 5, 0, SIZE); /* single writer, many readers */
		assert_close_state(&s, CLOSE_STATE_OPEN, version < 3 ? old : text);
	}
}

static void the_end_is_where_the_superblock_says(void **state)
{
	struct sparse s;
	make_old(&s, 0, SIZE);
	s.source.size = 4000;
	assert_close_state(&s, CLOSE_STATE_OPEN, "its end is missing: it has 4000 of 4096 bytes");
	s.source.size = 5000;
	assert_close_state(
		&s, CLOSE_STATE_LONGER,
		"the program that wrote it has not closed it: it has 5000 bytes, but its "
		"superblock says 4096; if it is complete, use `hsimage import`");
	put_u64(s.superblock + 40, UINT64_MAX);
	assert_close_state(&s, CLOSE_STATE_OPEN,
			   "it is damaged: superblock: the end of the file is not valid");
}

static void a_user_block_comes_first(void **state)
{
	static const uint64_t at[] = {512, 1024, 1 << 20, UINT64_C(4) << 30};
	struct sparse s;
	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		make_old(&s, at[i], UINT64_C(8) << 30);
		assert_close_state(&s, CLOSE_STATE_CLOSED, "");
		/* As an archive that begins with a small file. */
		s.source.size += 512;
		assert_close_state(&s, CLOSE_STATE_OPEN,
				   "the program that wrote it has not closed it: it has 8589935104 "
				   "bytes, but its superblock says 8589934592; if it is complete, "
				   "use `hsimage import`");
		s.source.size -= 513;
		assert_int_equal(state_of(&s, (char[256]){0}), CLOSE_STATE_OPEN);
		/* The user block was put in front of the file later. */
		make_old(&s, at[i], UINT64_C(8) << 30);
		put_u64(s.superblock + 24, 0);
		put_u64(s.superblock + 40, (UINT64_C(8) << 30) - at[i]);
		assert_close_state(&s, CLOSE_STATE_CLOSED, "");
	}
}

static void a_damaged_superblock_is_incomplete(void **state)
{
	struct sparse s;
	make_new(&s, 2, 0, 0, SIZE);
	s.superblock[36] ^= 1;
	assert_close_state(&s, CLOSE_STATE_OPEN,
			   "it is damaged: superblock: checksum does not match");
	make_old(&s, 0, 50);
	assert_int_equal(state_of(&s, (char[256]){0}), CLOSE_STATE_OPEN);
	/* Another reader says what it is. */
	make_old(&s, 0, SIZE);
	s.superblock[8] = 9;
	assert_close_state(&s, CLOSE_STATE_CLOSED, "");
}

static void errors_of_the_disk_are_no_damage(void **state)
{
	static const uint64_t offsets[] = {0, 512, 1024};
	struct sparse s;
	enum close_state found;
	char why[256];
	for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
		make_old(&s, 1024, SIZE);
		s.fails = offsets[i];
		struct err err = ERR_INIT;
		assert_int_equal(close_state_read(&s.source, &found, why, sizeof(why), &err), -EIO);
		assert_string_equal(err.msg, "the disk failed in the test");
	}
}

/* ---- a draft ---- */

/* Of a draft to which the first n bytes of a file were written. */
static enum close_state written_state(const void *bytes, size_t n, uint64_t size)
{
	struct overlay_fixture f;
	struct draft *d;
	char why[256];
	fixture_begin(&f, 0);
	assert_int_equal(draft_create(f.j, &about_change, NULL, &d, NULL), 0);
	assert_int_equal(draft_write(d, 0, bytes, n, NULL), 0);
	assert_int_equal(draft_resize(d, size, NULL), 0);
	const enum close_state found = close_state_of_written(d, why, sizeof(why));
	assert_int_equal(why[0] != '\0', found == CLOSE_STATE_OPEN || found == CLOSE_STATE_LONGER);
	assert_int_equal(draft_drop(d, NULL), 0);
	fixture_end(&f);
	return found;
}

static void the_written_bytes_tell_of_the_library(void **state)
{
	struct sparse s;
	for (uint8_t version = 2; version < 4; version++) {
		make_new(&s, version, 0, 0, SIZE);
		assert_int_equal(written_state(s.superblock, 48, SIZE), CLOSE_STATE_CLOSED);
		assert_int_equal(written_state(s.superblock, 100, SIZE), CLOSE_STATE_CLOSED);
		assert_int_equal(written_state(s.superblock, 48, SIZE + 1), CLOSE_STATE_LONGER);
		assert_int_equal(written_state(s.superblock, 47, SIZE), CLOSE_STATE_UNKNOWN);
		make_new(&s, version, 1, 0, SIZE);
		assert_int_equal(written_state(s.superblock, 48, SIZE), CLOSE_STATE_OPEN);
	}
	make_old(&s, 0, SIZE);
	assert_int_equal(written_state(s.superblock, 96, SIZE), CLOSE_STATE_CLOSED);
	assert_int_equal(written_state(s.superblock, 95, SIZE), CLOSE_STATE_UNKNOWN);
	assert_int_equal(written_state("text", 4, SIZE), CLOSE_STATE_UNKNOWN);
	s.superblock[0] = 'x';
	assert_int_equal(written_state(s.superblock, 96, SIZE), CLOSE_STATE_UNKNOWN);
}

/* What the mark of a draft says after a write of the superblock at an offset. */
static enum close_state mark_at(uint64_t at, uint8_t status)
{
	struct overlay_fixture f;
	struct draft *d;
	struct sparse s;
	char why[256];
	make_old(&s, at, at + SIZE);
	s.superblock[20] = status;
	fixture_begin(&f, 0);
	assert_int_equal(draft_create(f.j, &about_change, NULL, &d, NULL), 0);
	assert_int_equal(draft_resize(d, at + SIZE, NULL), 0);
	for (uint64_t k = 0; k < at; k = h5_superblock_next(k))
		assert_int_equal(draft_write(d, k, "no block", 8, NULL), 0);
	assert_int_equal(draft_write(d, at, s.superblock, sizeof(s.superblock), NULL), 0);
	const enum close_state found = close_state_of_mark(d);
	assert_int_equal(close_state_of_written(d, why, sizeof(why)), found);
	assert_int_equal(draft_drop(d, NULL), 0);
	fixture_end(&f);
	return found;
}

static void the_mark_is_behind_the_user_block(void **state)
{
	static const uint64_t at[] = {0, 512, 2048, 65536};
	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		assert_int_equal(mark_at(at[i], 0), CLOSE_STATE_CLOSED);
		assert_int_equal(mark_at(at[i], 1), CLOSE_STATE_OPEN);
	}
}

static void which_writes_may_change_the_mark(void **state)
{
	static const struct {
		uint64_t offset, n;
		bool may;
	} rows[] = {
		{0, 1, true},
		{99, 1, true},
		{100, 412, false},
		{100, 413, true},
		{512, 0, false},
		{511, 1, false},
		{512, 1, true},
		{611, 1, true},
		{612, 412, false},
		{612, 413, true},
		{1536, 1, false},
		{1536, 513, true},
		{1 << 20, 1, true},
		{(1 << 20) + 100, 1 << 19, false},
		{(1 << 20) - 1, 2, true},
		{UINT64_C(1) << 60, 4096, true},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (close_state_may_mark(rows[i].offset, rows[i].n) != rows[i].may)
			fail_msg("row %zu", i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(other_files_have_no_signature),
		cmocka_unit_test(the_status_shows_that_a_program_has_the_file_open),
		cmocka_unit_test(the_end_is_where_the_superblock_says),
		cmocka_unit_test(a_user_block_comes_first),
		cmocka_unit_test(a_damaged_superblock_is_incomplete),
		cmocka_unit_test(errors_of_the_disk_are_no_damage),
		cmocka_unit_test(the_written_bytes_tell_of_the_library),
		cmocka_unit_test(the_mark_is_behind_the_user_block),
		cmocka_unit_test(which_writes_may_change_the_mark),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
