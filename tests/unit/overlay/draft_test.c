/* SPDX-License-Identifier: Apache-2.0 */
/* A draft against an array in memory: all operations, snapshots, and what a recovery finds. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include <base/checksum.h>
#include <base/mem.h>

#include "overlay_fixture.h"
#include "sampling.h"

enum { MODEL = 400000 };

/* What the file must contain. Bytes from `size` on are zero. */
struct model {
	uint8_t bytes[MODEL];
	uint8_t changed[MODEL]; /* since the last snapshot that was accepted */
	uint64_t size;
	uint32_t random;
};

struct state {
	struct overlay_fixture f;
	struct draft *d;
	struct model now, then; /* then: the snapshot */
	struct draft_snapshot *snapshot;
	bool is_new;	       /* nothing lies beneath */
	unsigned int prepared; /* parts of snapshots */
	uint8_t later[MODEL];  /* what was changed after the snapshot */
	uint8_t buf[MODEL];
};

static uint32_t next_random(struct model *m)
{
	m->random = m->random * 1664525 + 1013904223;
	return m->random >> 8;
}

static void mark(struct state *s, uint64_t start, uint64_t end)
{
	memset(s->now.changed + start, 1, end - start);
	memset(s->later + start, 1, end - start);
}

static void model_resize(struct model *m, uint64_t size)
{
	if (size < m->size)
		memset(m->bytes + size, 0, m->size - size);
	m->size = size;
}

static void begin(struct state *s, uint32_t seed, const struct draft_about *about)
{
	memset(s, 0, sizeof(*s));
	fixture_begin(&s->f, 1 << 30);
	s->d = make_draft(&s->f, about);
	s->now.random = seed;
	s->now.size = about->beneath;
	s->is_new = about->kind != DRAFT_CHANGE;
	for (uint64_t i = 0; i < s->now.size; i++)
		s->now.bytes[i] = beneath_byte(i);
}

static void compare_bytes(const uint8_t *got, const uint8_t *expected, uint64_t offset, size_t n)
{
	if (memcmp(got, expected + offset, n) == 0)
		return;
	for (size_t i = 0; i < n; i++)
		if (got[i] != expected[offset + i])
			fail_msg("byte %llu is %u instead of %u", (unsigned long long)(offset + i),
				 got[i], expected[offset + i]);
}

static void compare_range(struct state *s, uint64_t offset, size_t n)
{
	size_t got;
	const uint64_t left = offset < s->now.size ? s->now.size - offset : 0;
	assert_int_equal(draft_read(s->d, offset, s->buf, n, &got, NULL), 0);
	assert_int_equal(got, n < left ? n : left);
	compare_bytes(s->buf, s->now.bytes, offset, got);
}

static void compare_all(struct state *s)
{
	assert_int_equal(size_of(s->d), s->now.size);
	compare_range(s, 0, MODEL);
}

/* Pieces of the file count as changed if a byte of them was. */
static void compare_changes(const struct state *s)
{
	for (uint64_t at = 0; !s->is_new && at < MODEL; at += 97) {
		const uint64_t end = at + 97 < MODEL ? at + 97 : MODEL;
		const bool changed = memchr(s->then.changed + at, 1, end - at) != NULL;
		assert_int_equal(draft_snapshot_is_changed(s->snapshot, at, end), changed);
		const uint8_t *first = memchr(s->then.changed + at, 1, end - at);
		assert_int_equal(draft_snapshot_next_changed(s->snapshot, at, end),
				 first ? (uint64_t)(first - s->then.changed) : end);
	}
}

/* Parts that are written as a whole can be prepared. */
static void compare_parts(struct state *s, struct source *source)
{
	struct source_part part;
	for (uint64_t at = 0; at + 997 <= s->then.size; at += 997) {
		if (source_prepare(source, at, 997, &part, NULL))
			continue;
		assert_ptr_equal(part.source, source);
		assert_true(part.offset == at && part.n == 997);
		assert_int_equal(part.crc, checksum_crc32c(s->then.bytes + at, 997, 0));
		s->prepared++;
	}
	assert_int_equal(source_prepare(source, s->then.size, 1, &part, NULL), -ENOTSUP);
}

static void compare_snapshot(struct state *s)
{
	struct source *source = draft_snapshot_source(s->snapshot);
	compare_parts(s, source);
	assert_int_equal(source->size, s->then.size);
	assert_int_equal(source_read(source, 0, s->buf, (size_t)s->then.size, NULL), 0);
	compare_bytes(s->buf, s->then.bytes, 0, (size_t)s->then.size);
}

/* The extents cover the file, without gaps, and holes are those of seek. */
static void check_extents(struct state *s)
{
	struct draft_extent x = {.end = 0};
	uint64_t data;
	enum draft_extent_kind before = DRAFT_HOLE;
	for (uint64_t end = 0; draft_next_extent(s->d, &x); end = x.end) {
		assert_true(x.start == end && x.end > x.start && x.end <= s->now.size);
		assert_true(x.start == 0 || x.kind != before);
		before = x.kind;
		const int rc = draft_seek(s->d, x.start, SEEK_DATA, &data);
		assert_int_equal(rc == 0 && data == x.start, x.kind != DRAFT_HOLE);
	}
	assert_int_equal(x.end, s->now.size);
}

/* A hole contains zeros only, and what seek calls data ends where the next hole begins. */
static void check_seek(struct state *s)
{
	uint64_t at = 0, data, hole;
	while (at < s->now.size) {
		if (draft_seek(s->d, at, SEEK_DATA, &data))
			data = s->now.size;
		for (uint64_t i = at; i < data; i++)
			if (s->now.bytes[i])
				fail_msg("byte %llu is in a hole", (unsigned long long)i);
		if (data == s->now.size)
			break;
		assert_int_equal(draft_seek(s->d, data, SEEK_HOLE, &hole), 0);
		assert_true(hole > data && hole <= s->now.size);
		at = hole;
	}
	assert_int_equal(draft_seek(s->d, s->now.size, SEEK_DATA, &data), -ENXIO);
	assert_int_equal(draft_seek(s->d, s->now.size, SEEK_HOLE, &hole), -ENXIO);
	check_extents(s);
}

static void toggle_snapshot(struct state *s)
{
	if (s->snapshot) {
		compare_snapshot(s);
		if (next_random(&s->now) % 2) {
			draft_snapshot_accept(s->snapshot);
			memcpy(s->now.changed, s->later, MODEL);
		}
		draft_snapshot_close(s->snapshot);
		s->snapshot = NULL;
		return;
	}
	struct draft_stat stat;
	assert_int_equal(draft_seal(s->d, &s->snapshot, NULL), 0);
	draft_get_stat(s->d, &stat);
	assert_int_equal(draft_snapshot_changes(s->snapshot), stat.changes);
	s->then = s->now;
	memset(s->later, 0, MODEL);
}

static void allocate(struct state *s, int mode, uint64_t offset, uint64_t n)
{
	assert_int_equal(draft_allocate(s->d, mode, offset, n, NULL), 0);
	if (!(mode & FALLOC_FL_KEEP_SIZE) && offset + n > s->now.size) {
		mark(s, s->now.size, offset + n);
		s->now.size = offset + n;
	}
	if (mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE)) {
		if (offset < s->now.size)
			mark(s, offset, offset + n < s->now.size ? offset + n : s->now.size);
		memset(s->now.bytes + offset, 0, n);
	}
}

static void do_one(struct state *s)
{
	struct model *m = &s->now;
	static const uint32_t most[] = {8, 100, 5000, 70000};
	uint64_t offset = next_random(m) % MODEL;
	uint64_t n = 1 + next_random(m) % most[next_random(m) % 4];
	if (next_random(m) % 4 == 0)
		offset = offset / 4096 * 4096;
	if (n > MODEL - offset)
		n = MODEL - offset;
	switch (next_random(m) % 16) {
	case 0:
		assert_int_equal(draft_resize(s->d, offset, NULL), 0);
		if (offset < m->size)
			mark(s, offset, m->size);
		else
			mark(s, m->size, offset);
		model_resize(m, offset);
		break;
	case 1:
		allocate(s, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, n);
		break;
	case 2:
		allocate(s, FALLOC_FL_ZERO_RANGE | (offset % 2 ? FALLOC_FL_KEEP_SIZE : 0), offset,
			 n);
		break;
	case 3:
		allocate(s, offset % 2 ? FALLOC_FL_KEEP_SIZE : 0, offset, n);
		break;
	case 4:
		if (s->snapshot)
			compare_changes(s);
		toggle_snapshot(s);
		break;
	case 5:
		if (next_random(m) % 8 == 0)
			assert_int_equal(draft_sync(s->d, NULL), 0);
		break;
	case 6:
		check_seek(s);
		break;
	case 7:
	case 8:
	case 9:
		compare_range(s, offset, n);
		break;
	default:
		for (uint64_t i = 0; i < n; i++)
			m->bytes[offset + i] = s->buf[i] = (uint8_t)next_random(m);
		assert_int_equal(draft_write(s->d, offset, s->buf, n, NULL), 0);
		mark(s, offset, offset + n);
		if (offset + n > m->size)
			m->size = offset + n;
	}
}

static void reopen(struct state *s)
{
	char id[JOURNAL_ID];
	struct err err = ERR_INIT;
	memcpy(id, draft_id(s->d), JOURNAL_ID);
	draft_close(s->d);
	if (draft_open(s->f.j, id, &fixture_beneath, &s->d, &err))
		fail_msg("%s", err.msg);
}

static void end(struct state *s)
{
	draft_snapshot_close(s->snapshot);
	assert_int_equal(draft_drop(s->d, NULL), 0);
	fixture_end(&s->f);
}

static void all_operations_are_those_of_an_array(void **state)
{
	static struct state s;
	const uint32_t seeds = sampling_everything() ? 200 : 16;
	unsigned int prepared = 0;
	for (uint32_t seed = 1; seed <= seeds; seed++) {
		begin(&s, seed, seed % 2 ? &about_new : &about_change);
		for (unsigned int i = 0; i < 400; i++)
			do_one(&s);
		compare_all(&s);
		draft_snapshot_close(s.snapshot);
		s.snapshot = NULL;
		reopen(&s);
		compare_all(&s);
		check_seek(&s);
		toggle_snapshot(&s);
		compare_snapshot(&s);
		prepared += s.prepared;
		end(&s);
	}
	assert_true(prepared > 1000);
}

static void what_shrank_and_grew_again_is_zero(void **state)
{
	static struct state s;
	static const uint64_t sizes[] = {1, 4095, 4096, 65536, 65537, 200000, BENEATH_SIZE - 1};
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		begin(&s, 1, &about_change);
		/* Also bytes that a program wrote, and that a commit reads. */
		assert_int_equal(draft_write(s.d, 100000, "written", 7, NULL), 0);
		memcpy(s.now.bytes + 100000, "written", 7);
		toggle_snapshot(&s);
		assert_int_equal(draft_resize(s.d, sizes[i], NULL), 0);
		assert_int_equal(draft_resize(s.d, MODEL, NULL), 0);
		model_resize(&s.now, sizes[i]);
		model_resize(&s.now, MODEL);
		compare_all(&s);
		toggle_snapshot(&s);
		toggle_snapshot(&s); /* joins the generations */
		compare_all(&s);
		end(&s);
	}
}

/* The first half of the writes is in order, the second has gaps. */
static uint64_t small_write(uint32_t i, uint32_t half)
{
	return i < half ? (uint64_t)i * 4 : (uint64_t)half * 4 + (uint64_t)(i - half) * 8;
}

/* A million writes, if all tests run at full size. */
static void many_small_writes_take_little(void **state)
{
	static struct state s;
	const uint32_t half = sampling_everything() ? 500000 : 50000;
	const uint64_t size = small_write(2 * half - 1, half) + 4;
	struct draft_stat stat;
	begin(&s, 1, &about_new);
	for (uint32_t i = 0; i < 2 * half; i++)
		assert_int_equal(draft_write(s.d, small_write(i, half), &i, sizeof(i), NULL), 0);
	draft_get_stat(s.d, &stat);
	assert_int_equal(stat.size, size);
	/* A bitmap of 8 KiB for each frame with gaps. */
	assert_in_range(stat.memory, 1, (half * 8 / 65536 + 2) * (8192 + 256));
	assert_in_range(stat.spooled, size, size + 8192);
	/* One record for what was written in order, one for each other write, and a spare block. */
	assert_in_range(room_used(&s.f) - stat.spooled, half * 32, half * 32 + 12288);
	for (uint32_t i = 0; i < 2 * half; i += 997) {
		uint32_t value;
		size_t got;
		assert_int_equal(draft_read(s.d, small_write(i, half), &value, 4, &got, NULL), 0);
		assert_int_equal(value, i);
	}
	reopen(&s);
	assert_int_equal(size_of(s.d), size);
	end(&s);
}

static void a_snapshot_knows_what_it_holds(void **state)
{
	static struct state s;
	struct draft_snapshot *snap;
	(void)state;
	begin(&s, 1, &about_change);
	const uint64_t size = s.now.size;
	assert_int_equal(draft_write(s.d, 100, s.buf, 50, NULL), 0);
	assert_int_equal(draft_seal(s.d, &snap, NULL), 0);
	assert_true(draft_snapshot_holds(snap, 100, 150));
	assert_false(draft_snapshot_holds(snap, 99, 150));
	assert_false(draft_snapshot_holds(snap, 100, 151));
	assert_false(draft_snapshot_holds(snap, size, size + 1));
	draft_snapshot_close(snap);
	end(&s);
}

static void writes_during_a_commit_begin_one_generation(void **state)
{
	static struct state s;
	char command[256];
	begin(&s, 1, &about_new);
	for (uint32_t round = 0; round < 40; round++) {
		assert_int_equal(draft_write(s.d, round * 1000, "abc", 3, NULL), 0);
		memcpy(s.now.bytes + round * 1000, "abc", 3);
		s.now.size = round * 1000 + 3;
		toggle_snapshot(&s);
		assert_int_equal(draft_write(s.d, round * 1000 + 1, "XYZ", 3, NULL), 0);
		memcpy(s.now.bytes + round * 1000 + 1, "XYZ", 3);
		s.now.size = round * 1000 + 4;
		compare_snapshot(&s);
		compare_all(&s);
		toggle_snapshot(&s);
	}
	/* The files of the generations that were joined are gone. */
	unsigned int files = 0;
	for (unsigned int g = 0; g <= 40; g++) {
		snprintf(command, sizeof(command), "test -e %s/2/*/%s/spool.%u", s.f.path,
			 draft_id(s.d), g);
		files += system(command) == 0;
	}
	assert_int_equal(files, 2);
	reopen(&s);
	compare_all(&s);
	end(&s);
}

static void a_seal_without_writes_costs_nothing(void **state)
{
	static struct state s;
	begin(&s, 1, &about_change);
	assert_int_equal(draft_write(s.d, 5, "abc", 3, NULL), 0);
	memcpy(s.now.bytes + 5, "abc", 3);
	const uint64_t room = room_used(&s.f);
	for (unsigned int i = 0; i < 100; i++) {
		toggle_snapshot(&s);
		struct draft_snapshot *second;
		assert_int_equal(draft_seal(s.d, &second, NULL), -EBUSY);
		toggle_snapshot(&s);
	}
	assert_int_equal(room_used(&s.f), room);
	compare_all(&s);
	end(&s);
}

static void bytes_that_are_removed_give_their_room_back(void **state)
{
	static struct state s;
	begin(&s, 1, &about_new);
	memset(s.buf, 1, sizeof(s.buf));
	/* With the first write, the map has a spare block. */
	assert_int_equal(draft_write(s.d, 0, s.buf, 1, NULL), 0);
	const uint64_t empty = room_used(&s.f) - 4096;
	assert_int_equal(draft_write(s.d, 0, s.buf, 65536, NULL), 0);
	assert_int_equal(room_used(&s.f), empty + 65536);
	assert_int_equal(draft_write(s.d, 1, s.buf, 65535, NULL), 0);
	assert_int_equal(room_used(&s.f), empty + 65536);
	assert_int_equal(
		draft_allocate(s.d, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 4000, 8384, NULL),
		0);
	assert_int_equal(room_used(&s.f), empty + 65536 - 8192);
	assert_int_equal(draft_resize(s.d, 16385, NULL), 0);
	assert_int_equal(room_used(&s.f), empty + 20480 - 8192);
	assert_int_equal(draft_resize(s.d, 0, NULL), 0);
	assert_int_equal(room_used(&s.f), empty);
	end(&s);
}

static uint64_t memory_used(const struct state *s)
{
	struct budget_stats stats;
	budget_get_stats(s->f.budget, &stats);
	return stats.used[BUDGET_DRAFTS];
}

/* The memory is that of the list of what was written: 8 KiB for each frame with many gaps. */
static void bytes_that_are_removed_give_their_memory_back(void **state)
{
	enum { FRAMES = 16, GAPS = 1100 };
	static struct state s;
	begin(&s, 1, &about_new);
	const uint64_t empty = memory_used(&s);
	for (uint64_t i = 0; i < FRAMES * GAPS; i++)
		assert_int_equal(draft_write(s.d, i / GAPS * 65536 + i % GAPS * 2, "x", 1, NULL),
				 0);
	assert_true(memory_used(&s) >= empty + FRAMES * 8192);
	assert_int_equal(draft_resize(s.d, 0, NULL), 0);
	assert_true(memory_used(&s) <= empty + 32768);
	end(&s);
}

/* A write to what was allocated needs no more room, so it succeeds also if the spool is full. */
static void what_is_allocated_keeps_its_room(void **state)
{
	static struct state s;
	enum { LIMIT = 40 * 4096, ALLOCATED = 20 * 4096 };
	begin(&s, 1, &about_new);
	assert_int_equal(draft_drop(s.d, NULL), 0);
	journal_close(s.f.j);
	fixture_open(&s.f, LIMIT);
	s.d = make_draft(&s.f, &about_new);
	memset(s.buf, 1, sizeof(s.buf));
	assert_int_equal(draft_write(s.d, 0, s.buf, 1, NULL), 0);
	const uint64_t before = room_used(&s.f);
	assert_int_equal(draft_allocate(s.d, 0, 4096, ALLOCATED, NULL), 0);
	assert_int_equal(room_used(&s.f), before + ALLOCATED);
	assert_int_equal(
		draft_write(s.d, ALLOCATED + 4096, s.buf, LIMIT - before - ALLOCATED, NULL), 0);
	assert_int_equal(room_used(&s.f), LIMIT);
	assert_int_equal(draft_write(s.d, LIMIT * 2, s.buf, 4096, NULL), -ENOSPC);
	assert_int_equal(draft_write(s.d, 4096, s.buf, ALLOCATED, NULL), 0);
	assert_int_equal(room_used(&s.f), LIMIT);
	s.now.size = size_of(s.d);
	end(&s);
}

/* With any spool size, a change happens as a whole or fails with ENOSPC; what happened can be made
 * durable, sealed and recovered. */
static void a_full_spool_refuses_changes_only(void **state)
{
	static struct state s;
	unsigned int refused = 0;
	for (unsigned int blocks = 2; blocks < 120; blocks += 3) {
		begin(&s, blocks, blocks % 2 ? &about_new : &about_change);
		assert_int_equal(draft_drop(s.d, NULL), 0);
		journal_close(s.f.j);
		fixture_open(&s.f, blocks * 4096);
		s.d = make_draft(&s.f, blocks % 2 ? &about_new : &about_change);
		for (unsigned int i = 0; i < 150; i++) {
			const uint64_t offset = next_random(&s.now) % (MODEL - 9000);
			const size_t n = 1 + next_random(&s.now) % 9000;
			if (i % 8 == 7)
				toggle_snapshot(&s);
			memset(s.buf, (int)i + 1, n);
			int rc = draft_write(s.d, offset, s.buf, n, NULL);
			if (rc == 0) {
				memset(s.now.bytes + offset, (int)i + 1, n);
				s.now.size = offset + n > s.now.size ? offset + n : s.now.size;
			} else {
				assert_int_equal(rc, -ENOSPC);
				refused++;
			}
			assert_true(room_used(&s.f) <= blocks * 4096);
		}
		compare_all(&s);
		if (s.snapshot)
			toggle_snapshot(&s);
		assert_int_equal(draft_sync(s.d, NULL), 0);
		toggle_snapshot(&s);
		compare_snapshot(&s);
		toggle_snapshot(&s);
		reopen(&s);
		compare_all(&s);
		end(&s);
	}
	assert_true(refused > 100);
}

/* Truncating makes room in a full spool. */
static void a_full_spool_can_be_truncated(void **state)
{
	static struct state s;
	begin(&s, 1, &about_new);
	draft_close(s.d);
	journal_close(s.f.j);
	fixture_open(&s.f, 64 * 4096);
	s.d = make_draft(&s.f, &about_new);
	memset(s.buf, 7, sizeof(s.buf));
	for (unsigned int i = 0; i < 20; i++) {
		uint64_t offset = 0;
		while (draft_write(s.d, offset, s.buf, 1000, NULL) == 0)
			offset += 2000;
		assert_true(offset > 100000);
		assert_int_equal(draft_resize(s.d, 0, NULL), 0);
	}
	end(&s);
}

/* Without memory for the list of what was written, a write fails and changes nothing. */
static void a_full_budget_refuses_writes(void **state)
{
	static struct state s;
	struct budget *small = budget_new(&(struct budget_limits){
		.bytes = 1000, .metadata_min = 40000, .option = "cache_size"});
	struct err err = ERR_INIT;
	int rc = 0;
	begin(&s, 1, &about_change);
	assert_int_equal(draft_drop(s.d, NULL), 0);
	s.f.env.budget = small;
	s.d = make_draft(&s.f, &about_change);
	uint64_t offset = 0;
	for (; rc == 0; offset += 2) {
		rc = draft_write(s.d, offset, "x", 1, &err);
		if (rc == 0)
			s.now.bytes[offset] = 'x';
	}
	assert_int_equal(rc, -ENOMEM);
	assert_non_null(strstr(err.msg, "cache_size"));
	assert_in_range(offset, 65536, MODEL - 2);
	compare_all(&s);
	end(&s);
	budget_free(small);
}

static void wrong_requests_are_refused(void **state)
{
	static struct state s;
	uint64_t found;
	begin(&s, 1, &about_new);
	assert_int_equal(draft_write(s.d, (uint64_t)1 << 60, "a", 1, NULL), -EFBIG);
	assert_int_equal(draft_write(s.d, UINT64_MAX, "a", 1, NULL), -EFBIG);
	assert_int_equal(draft_resize(s.d, UINT64_MAX, NULL), -EFBIG);
	assert_int_equal(draft_allocate(s.d, 0, 1, UINT64_MAX, NULL), -EFBIG);
	assert_int_equal(draft_allocate(s.d, 0, 1, 0, NULL), -EINVAL);
	assert_int_equal(draft_allocate(s.d, FALLOC_FL_COLLAPSE_RANGE, 0, 4096, NULL), -EOPNOTSUPP);
	assert_int_equal(draft_allocate(s.d, FALLOC_FL_PUNCH_HOLE, 0, 4096, NULL), -EOPNOTSUPP);
	assert_int_equal(draft_seek(s.d, 0, SEEK_SET, &found), -EINVAL);
	compare_all(&s);
	reopen(&s);
	assert_int_equal(draft_write(s.d, 0, "a", 1, NULL), -EROFS);
	assert_int_equal(draft_resize(s.d, 1, NULL), -EROFS);
	assert_int_equal(draft_mark(s.d, 1, NULL), -EROFS);
	assert_int_equal(draft_describe(s.d, "a", "b", "", NULL), -EROFS);
	end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_operations_are_those_of_an_array),
		cmocka_unit_test(what_shrank_and_grew_again_is_zero),
		cmocka_unit_test(many_small_writes_take_little),
		cmocka_unit_test(a_snapshot_knows_what_it_holds),
		cmocka_unit_test(writes_during_a_commit_begin_one_generation),
		cmocka_unit_test(a_seal_without_writes_costs_nothing),
		cmocka_unit_test(bytes_that_are_removed_give_their_room_back),
		cmocka_unit_test(bytes_that_are_removed_give_their_memory_back),
		cmocka_unit_test(what_is_allocated_keeps_its_room),
		cmocka_unit_test(a_full_spool_refuses_changes_only),
		cmocka_unit_test(a_full_spool_can_be_truncated),
		cmocka_unit_test(a_full_budget_refuses_writes),
		cmocka_unit_test(wrong_requests_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
