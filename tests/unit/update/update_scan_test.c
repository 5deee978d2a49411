/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are damaged: an update fails, or stores what can be read, and never half of it. */
#include "update_edits.h"

#include "update/update_internal.h"

/* The sanitizers are slow. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { MUTATIONS = 60 };
#else
enum { MUTATIONS = 240 };
#endif

static uint64_t next_random(uint64_t *seed)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *seed >> 33;
}

/* Metadata of the image is at its beginning. */
static uint64_t metadata_of(struct draft *d)
{
	return edit_data(d, edit_path(d, "gzip")) + 512;
}

/* An update that may fail, but not in a part of the bucket only. */
static void update_any(struct world *w, unsigned int i)
{
	auto_free char *before = gate_content(w->gate, "");
	gate_open(w->gate);
	const int rc = world_update(w);
	if (rc == 0) {
		world_check_same(w);
		return;
	}
	if (rc != -EIO && rc != -EOPNOTSUPP)
		fail_msg("mutation %u: %d, %s", i, rc, w->err.msg);
	assert_int_equal(world_changes(w), 0);
	auto_free char *after = gate_content(w->gate, "");
	assert_string_equal(before, after);
}

static void flip_bit(struct draft *d, uint64_t at, unsigned int bit)
{
	uint8_t byte;
	edit_read(d, at, &byte, 1);
	byte ^= (uint8_t)(1u << bit);
	edit_write(d, at, &byte, 1);
}

/* The checksum of a header does not tell. */
static void flip_in_header(struct draft *d, uint64_t header, uint64_t random)
{
	const struct edit_block b = edit_header(d, header);
	flip_bit(d, b.first + random % (b.end - b.first), (unsigned int)(random >> 16) % 8);
	edit_seal(d, &b);
}

static const char *const paths[] = {"",	    "a",      "b",	 "c",	   "d",	     "grid",
				    "line", "gzip",   "text",	 "b/refs", "c/type", "a/plain",
				    "null", "scalar", "compact", "nothing"};
enum { PATHS = sizeof(paths) / sizeof(paths[0]) };

static void mutate(struct draft *d, unsigned int i, uint64_t *seed)
{
	const uint64_t r = next_random(seed);
	uint8_t raw[8], other[8];
	switch (i % 4) {
	case 0:
		flip_bit(d, r % metadata_of(d), (unsigned int)(r >> 20) % 8);
		break;
	case 1:
		flip_in_header(d, edit_path(d, paths[r % PATHS]), next_random(seed));
		break;
	case 2: { /* two addresses are swapped */
		const uint64_t grid = edit_path(d, "grid"), line = edit_path(d, "line");
		const uint64_t a = edit_chunk_at(d, grid, 2, (unsigned int)(r % 6));
		const uint64_t b = edit_chunk_at(d, line, 1, (unsigned int)(r >> 8) % 4);
		edit_read(d, a, raw, 8);
		edit_read(d, b, other, 8);
		edit_write(d, a, other, 8);
		edit_write(d, b, raw, 8);
		break;
	}
	default: { /* a message is repeated over the next bytes */
		const uint64_t at = r % metadata_of(d) & ~UINT64_C(7);
		edit_read(d, at, raw, 8);
		edit_write(d, at + 8 * (1 + next_random(seed) % 16), raw, 8);
		break;
	}
	}
}

static void mutations_do_no_harm(void **state)
{
	uint64_t seed = 1;
	for (unsigned int i = 0; i < MUTATIONS; i++) {
		struct world *w = world_begin();
		if (i % 3 == 0)
			edit_much(w->draft);
		else
			mutate(w->draft, i, &seed);
		if (i % 3 == 0)
			flip_bit(w->draft, next_random(&seed) % metadata_of(w->draft), 3);
		update_any(w, i);
		world_end(w);
	}
}

/* The file ends earlier than it says. */
static void truncated_files_are_refused(void **state)
{
	struct world *all = world_begin();
	const uint64_t size = all->source.size, end = metadata_of(all->draft);
	world_end(all);
	for (uint64_t n = 0; n < end; n += 1 + end / 40) {
		struct world *w = world_begin();
		assert_int_equal(draft_resize(w->draft, n, NULL), 0);
		world_must_fail(w, -EIO, true);
		assert_int_equal(draft_resize(w->draft, size, NULL), 0);
		world_must_fail(w, -EIO, true);
		world_end(w);
	}
}

static void overlapping_chunks_are_refused(void **state)
{
	uint8_t addr[8];
	struct world *w = world_begin();
	const uint64_t grid = edit_path(w->draft, "grid");
	edit_put(addr, 8, edit_chunk(w->draft, grid, 2, 1) + 4);
	edit_write(w->draft, edit_chunk_at(w->draft, grid, 2, 0), addr, 8);
	world_must_fail(w, -EIO, true);
	/* Or with metadata. */
	edit_put(addr, 8, grid);
	edit_write(w->draft, edit_chunk_at(w->draft, grid, 2, 0), addr, 8);
	world_must_fail(w, -EIO, true);
	world_end(w);
	/* Two datasets have the same raw data. */
	w = world_begin();
	edit_add_link(w->draft, edit_path(w->draft, "c"), "new", 50,
		      edit_copy(w->draft, edit_path(w->draft, "a/plain")));
	world_must_fail(w, -EIO, true);
	world_end(w);
}

/* ---- scans ---- */

static void scans_need_memory(void **state)
{
	struct world *w = world_begin();
	struct scan *s;
	struct budget *small =
		budget_new(&(struct budget_limits){.bytes = 1024, .metadata_min = 1024});
	struct env env = w->f.env;
	env.budget = small;
	assert_int_equal(scan_open(&env, &w->source, false, NULL, &s, NULL), -ENOMEM);
	budget_free(small);
	world_end(w);
}

#define TEST(name) cmocka_unit_test(name)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(mutations_do_no_harm),
		TEST(truncated_files_are_refused),
		TEST(overlapping_chunks_are_refused),
		TEST(scans_need_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
