/* SPDX-License-Identifier: Apache-2.0 */
/* The disk cache: its answers, requests and entries. The directory:
 * eviction_test.c. */
#include "store_contract.h"
#include "diskcache_fixture.h"

#include <sys/syscall.h>

#include "diskcache/disk_entry.h"
#include "mem_store.h"

/* The disk fails once to read at this offset of a file; -1: it reads everything. */
static off_t unreadable = -1;

ssize_t pread(int fd, void *buf, size_t n, off_t offset)
{
	if (offset == unreadable) {
		unreadable = -1;
		errno = EIO;
		return -1;
	}
	return syscall(SYS_pread64, fd, buf, n, offset);
}

static int over_mem(void **state)
{
	struct fixture *f = fixture_new(0);
	make_place(f);
	f->s = cached(f, store_mem_new(&f->env, NULL), roomy);
	*state = f;
	return 0;
}

static int over_dir_workers(void **state)
{
	struct fixture *f = fixture_new(4);
	fixture_dir(f);
	f->s = cached(f, f->s, roomy);
	*state = f;
	return 0;
}

/* The bucket is a directory; f->s writes to it without the cache. */
static int setup(void **state)
{
	struct fixture *f = fixture_new(0);
	fixture_dir(f);
	*state = f;
	return 0;
}

static void test_second_time(void **state)
{
	struct fixture *f = *state;
	struct side a = side_new(f, roomy);
	char etag[STORE_ETAG_MAX];
	put_text(f->s, "x", "0123456789");
	version_of(f->s, "x", etag);
	assert_got(&a, "x", etag, "0123456789", 1);
	assert_got(&a, "x", etag, "0123456789", 0);
	struct store_counts n;
	store_count_read(a.count, &n);
	assert_int_equal(n.bytes_in, 10);
	/* The version is unknown: the bucket confirms it and sends no bytes. */
	assert_got(&a, "x", NULL, "0123456789", 1);
	store_count_read(a.count, &n);
	assert_int_equal(n.bytes_in, 10);
	assert_stats(&a, .hits = 1, .hit_bytes = 10, .revalidated = 1, .misses = 1, .stored = 1,
		     .bytes = 4096);
	side_free(&a);

	struct side b = side_new(f, roomy); /* the next mount */
	assert_got(&b, "x", etag, "0123456789", 0);
	side_free(&b);
}

static void test_changed(void **state)
{
	struct fixture *f = *state;
	struct side a = side_new(f, roomy);
	char old[STORE_ETAG_MAX], now[STORE_ETAG_MAX];
	put_text(f->s, "x", "old");
	version_of(f->s, "x", old);
	assert_got(&a, "x", NULL, "old", 1);
	put_text(f->s, "x", "new");
	version_of(f->s, "x", now);
	assert_got(&a, "x", now, "new", 1); /* a known version is not answered with an old one */
	assert_got(&a, "x", now, "new", 0);
	put_text(f->s, "x", "newer");
	assert_got(&a, "x", NULL, "newer", 1);
	assert_got(&a, "x", old, "newer", 1); /* known_etag is no condition */
	assert_int_equal(call_delete(f->s, "x", NULL, NULL), 0);
	assert_code(a.top, "x", -ENOENT);
	side_free(&a);
}

static void test_conditions(void **state)
{
	struct fixture *f = *state;
	struct side a = side_new(f, roomy);
	struct call_result res;
	char old[STORE_ETAG_MAX];
	put_text(f->s, "x", "old");
	version_of(f->s, "x", old);
	assert_got(&a, "x", NULL, "old", 1);
	put_text(f->s, "x", "new");
	const struct store_cond only_old = {.if_match = old}, not_old = {.if_none_match = old};
	/* The cache has that version, whatever the bucket has now. */
	assert_int_equal(call_get(a.top, "x", 0, UINT64_MAX, 0, &only_old, &res, NULL), 0);
	assert_memory_equal(res.body.data, "old", 3);
	assert_string_equal(res.meta.etag, old);
	bytes_release(&res.body);
	assert_int_equal(gets_of(&a), 1);
	/* A conditional get is answered by the bucket, and the answer is stored. */
	assert_int_equal(call_get(a.top, "x", 0, UINT64_MAX, 0, &not_old, &res, NULL), 0);
	char now[STORE_ETAG_MAX];
	strcpy(now, res.meta.etag);
	bytes_release(&res.body);
	const struct store_cond not_now = {.if_none_match = now};
	assert_int_equal(call_get(a.top, "x", 0, UINT64_MAX, 0, &not_now, &res, NULL), -EALREADY);
	assert_int_equal(call_get(a.top, "x", 0, UINT64_MAX, 0, &only_old, &res, NULL), -ESTALE);
	assert_int_equal(gets_of(&a), 4);
	assert_got(&a, "x", now, "new", 0);
	side_free(&a);
}

static void test_ranges_of_what_is_there(void **state)
{
	struct fixture *f = *state;
	struct side a = side_new(f, roomy);
	char etag[STORE_ETAG_MAX];
	static const struct {
		uint64_t offset, length, max;
		int code;
		const char *want;
	} cases[] = {
		{0, 3, 0, 0, "012"},
		{3, 4, 4, 0, "3456"},
		{8, 100, 0, 0, "89"},
		{8, UINT64_MAX, 0, 0, "89"},
		{10, 1, 0, 0, ""},
		{11, UINT64_MAX, 0, 0, ""},
		{0, UINT64_MAX, 10, 0, "0123456789"},
		{2, 0, 0, 0, ""},
		{0, 5, 4, -EFBIG, ""},
		{0, UINT64_MAX, 9, -EFBIG, ""},
	};
	put_text(f->s, "x", "0123456789");
	version_of(f->s, "x", etag);
	assert_got(&a, "x", NULL, "0123456789", 1);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct call_result res;
		get_one(a.top,
			(struct call_get){.key = "x",
					  .offset = cases[i].offset,
					  .length = cases[i].length,
					  .max = cases[i].max,
					  .known_etag = etag},
			&res);
		assert_int_equal(res.code, cases[i].code);
		assert_int_equal(res.body.len, strlen(cases[i].want));
		if (res.body.len)
			assert_memory_equal(res.body.data, cases[i].want, res.body.len);
		assert_true(res.code || res.meta.size == 10);
		bytes_release(&res.body);
	}
	assert_int_equal(gets_of(&a), 1);
	/* Also if the bucket confirms the version. */
	struct call_result res;
	assert_int_equal(call_get(a.top, "x", 0, UINT64_MAX, 9, NULL, &res, NULL), -EFBIG);
	/* The version is unknown: the get is passed on. */
	assert_int_equal(call_get(a.top, "x", 0, 5, 0, NULL, &res, NULL), 0);
	bytes_release(&res.body);
	assert_int_equal(gets_of(&a), 3);
	side_free(&a);
}

static void test_ranges_are_not_kept(void **state)
{
	struct fixture *f = *state;
	struct side a = side_new(f, roomy);
	struct call_result res;
	char etag[STORE_ETAG_MAX];
	put_text(f->s, "x", "0123456789");
	version_of(f->s, "x", etag);
	for (int i = 0; i < 2; i++) {
		get_one(a.top, (struct call_get){.key = "x", .length = 5, .known_etag = etag},
			&res);
		assert_int_equal(res.body.len, 5);
		bytes_release(&res.body);
	}
	assert_int_equal(gets_of(&a), 2);
	assert_stats(&a, .misses = 2);
	side_free(&a);
}

/* Gets a range that may be kept, of which parts are needed. etag is NULL if no version is known. */
static void assert_parts(struct side *a, struct store_range range, const struct store_range *parts,
			 size_t n_parts, const char *etag, const char *want, unsigned int requests)
{
	struct store_request *req = store_request_new(a->top, STORE_GET);
	const uint64_t before = gets_of(a);
	assert_non_null(req);
	store_request_key(req, "x");
	req->range = range;
	req->cond.if_match = etag;
	req->keep_range = true;
	req->parts = parts;
	req->n_parts = n_parts;
	store_run(a->top, req);
	assert_int_equal(req->answer.state, STORE_PRESENT);
	assert_false(req->answer.unchanged);
	assert_int_equal(req->answer.meta.size, 10);
	assert_int_equal(req->answer.body.len, strlen(want));
	for (size_t i = 0; i < strlen(want); i++) /* '.' is any byte */
		assert_true(want[i] == '.' || req->answer.body.data[i] == want[i]);
	assert_int_equal(gets_of(a) - before, requests);
	store_request_free(req);
}

static void assert_range(struct side *a, struct store_range range, const char *etag,
			 const char *want, unsigned int requests)
{
	assert_parts(a, range, NULL, 0, etag, want, requests);
}

static void test_ranges_that_are_kept(void **state)
{
	static const struct store_range middle = {.first = 3, .length = 4},
					other = {.first = 3, .length = 5},
					last = {.length = 3, .from_end = true},
					behind = {.first = 8, .length = 9};
	struct fixture *f = *state;
	struct side a = side_new(f, roomy);
	char etag[STORE_ETAG_MAX], now[STORE_ETAG_MAX];
	put_text(f->s, "x", "0123456789");
	version_of(f->s, "x", etag);
	assert_range(&a, middle, etag, "3456", 1);
	assert_range(&a, middle, etag, "3456", 0);
	assert_range(&a, other, etag, "34567", 1);
	assert_range(&a, last, etag, "789", 1);
	assert_range(&a, behind, etag, "89", 1);
	side_free(&a);
	struct side b = side_new(f, roomy); /* the next mount */
	assert_range(&b, middle, etag, "3456", 0);
	assert_range(&b, other, etag, "34567", 0);
	assert_range(&b, last, etag, "789", 0);
	assert_range(&b, behind, etag, "89", 0);
	/* The version is unknown: the bucket confirms it and sends no bytes. */
	struct store_counts n;
	store_count_read(b.count, &n);
	assert_int_equal(n.bytes_in, 0);
	assert_range(&b, last, NULL, "789", 1);
	store_count_read(b.count, &n);
	assert_int_equal(n.bytes_in, 0);
	assert_stats(&b, .hits = 4, .hit_bytes = 14, .revalidated = 1, .bytes = 5 * 4096);
	/* If the whole object is there, a range of it is cut out. */
	assert_got(&b, "x", NULL, "0123456789", 1);
	assert_range(&b, (struct store_range){.first = 1, .length = 2}, etag, "12", 0);
	assert_range(&b, (struct store_range){.first = 1, .length = 2}, NULL, "12", 1);
	/* Another version. */
	put_text(f->s, "x", "abcdefghij");
	version_of(f->s, "x", now);
	assert_range(&b, middle, now, "defg", 1);
	assert_range(&b, middle, now, "defg", 0);
	assert_range(&b, last, NULL, "hij", 1);
	side_free(&b);
}

static void make_short(void *arg, const char *path)
{
	(void)arg;
	assert_int_equal(truncate(path, 20), 0);
}

/* Bytes that were fetched are found, whatever they were fetched with. */
static void test_ranges_that_consist_of_others(void **state)
{
	static const struct store_range first = {.first = 1, .length = 3},
					second = {.first = 3, .length = 3},
					third = {.first = 7, .length = 2},
					all = {.first = 1, .length = 8}, parts[] = {first, third};
	struct fixture *f = *state;
	struct side a = side_new(f, roomy);
	char etag[STORE_ETAG_MAX];
	put_text(f->s, "x", "0123456789");
	version_of(f->s, "x", etag);
	assert_range(&a, first, etag, "123", 1);
	assert_range(&a, third, etag, "78", 1);
	side_free(&a);
	a = side_new(f, roomy);
	assert_parts(&a, all, parts, 2, etag, "123...78", 0);
	assert_range(&a, second, etag, "345", 1);
	side_free(&a);
	a = side_new(f, roomy);
	assert_range(&a, (struct store_range){.first = 1, .length = 5}, etag, "12345", 0);
	assert_range(&a, (struct store_range){.first = 2, .length = 3}, etag, "234", 0);
	assert_range(&a, all, etag, "12345678", 1); /* byte 6 is missing */
	side_free(&a);
	/* Damaged entries and indexes are dropped. */
	each_entry(f, make_short, NULL);
	a = side_new(f, roomy);
	assert_parts(&a, all, parts, 2, etag, "12345678", 1);
	assert_range(&a, first, etag, "123", 0);
	side_free(&a);
	/* Another version. */
	put_text(f->s, "x", "abcdefghij");
	version_of(f->s, "x", etag);
	a = side_new(f, roomy);
	assert_parts(&a, all, parts, 2, etag, "bcdefghi", 1);
	side_free(&a);
}

static void test_empty_objects_are_kept(void **state)
{
	struct fixture *f = *state;
	struct side a = side_new(f, roomy);
	char etag[STORE_ETAG_MAX];
	put_text(f->s, "x", "");
	version_of(f->s, "x", etag);
	assert_got(&a, "x", etag, "", 1);
	assert_got(&a, "x", etag, "", 0);
	side_free(&a);
}

static void test_put_and_delete_drop(void **state)
{
	struct fixture *f = *state;
	struct side a = side_new(f, roomy);
	put_text(a.top, "x", "1");
	assert_got(&a, "x", NULL, "1", 1);
	assert_int_equal(entries(f), 1);
	put_text(a.top, "x", "2");
	assert_int_equal(entries(f), 0);
	assert_got(&a, "x", NULL, "2", 1);
	assert_int_equal(entries(f), 1);
	assert_int_equal(call_delete(a.top, "x", NULL, NULL), 0);
	assert_int_equal(entries(f), 0);
	put_text(a.top, "x", "3");
	put_text(a.top, "y", "4");
	assert_got(&a, "x", NULL, "3", 1);
	assert_got(&a, "y", NULL, "4", 1);
	assert_int_equal(entries(f), 2);
	assert_int_equal(store_move(a.top, "x", "", "y", NULL, NULL, NULL), 0);
	assert_int_equal(entries(f), 0);
	assert_got(&a, "y", NULL, "3", 1);
	side_free(&a);
}

/* Same keys in two buckets. */
static void test_scopes(void **state)
{
	struct fixture *f = *state;
	struct store_diskcache_options other = roomy;
	other.scope = "another";
	struct side a = side_new(f, roomy), b = side_new(f, other);
	char etag[STORE_ETAG_MAX];
	put_text(f->s, "x", "1");
	version_of(f->s, "x", etag);
	assert_got(&a, "x", etag, "1", 1);
	assert_got(&b, "x", etag, "1", 1);
	assert_got(&b, "x", etag, "1", 0);
	assert_int_equal(entries(f), 2);
	side_free(&a);
	side_free(&b);
}

static void test_what_is_not_kept(void **state)
{
	static const struct {
		uint64_t max_bytes, max_object, settle_ns;
	} cases[] = {
		{1 << 20, 9, 0},		   /* larger than max_object */
		{19, 1 << 20, 0},		   /* more than half of max_bytes */
		{1 << 20, 1 << 20, 3600000000000}, /* modified within settle_ns */
		{20, 1 << 20, 0},		   /* too large with its head */
	};
	struct fixture *f = *state;
	put_text(f->s, "x", "0123456789");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct store_diskcache_options opt = roomy;
		opt.max_bytes = cases[i].max_bytes;
		opt.max_object = cases[i].max_object;
		opt.settle_ns = cases[i].settle_ns;
		struct side a = side_new(f, opt);
		assert_got(&a, "x", NULL, "0123456789", 1);
		assert_got(&a, "x", NULL, "0123456789", 1);
		assert_int_equal(entries(f), 0);
		struct store_diskcache_stats stats;
		store_diskcache_read(a.top, &stats);
		assert_int_equal(stats.stored, 0);
		side_free(&a);
	}
	struct store_diskcache_options opt = roomy;
	opt.settle_ns = 1; /* long ago */
	struct side a = side_new(f, opt);
	assert_got(&a, "x", NULL, "0123456789", 1);
	assert_int_equal(entries(f), 1);
	side_free(&a);
}

/* ---- damage ---- */

/* Whatever byte is damaged, the get returns the right bytes, and the entry is replaced. */
static void assert_heals(struct fixture *f, struct side *a, const char *etag)
{
	const uint64_t before = gets_of(a);
	assert_got(a, "x", etag, "0123456789", 1);
	assert_got(a, "x", etag, "0123456789", 0);
	assert_int_equal(gets_of(a), before + 1);
	assert_int_equal(entries(f), 1);
}

static void test_every_byte_damaged(void **state)
{
	struct fixture *f = *state;
	struct side a = side_new(f, roomy);
	char etag[STORE_ETAG_MAX], path[PATH_MAX];
	put_text(f->s, "x", "0123456789");
	version_of(f->s, "x", etag);
	assert_got(&a, "x", etag, "0123456789", 1);
	only_entry(f, path);
	auto_bytes struct bytes good = {0};
	read_whole(path, &good);
	for (size_t i = 0; i < good.len; i++) {
		good.data[i] ^= 0x10;
		write_whole(path, good.data, good.len);
		good.data[i] ^= 0x10;
		assert_heals(f, &a, etag);
	}
	for (size_t n = 0; n < good.len; n++) {
		write_whole(path, good.data, n);
		assert_heals(f, &a, etag);
	}
	struct store_diskcache_stats stats;
	store_diskcache_read(a.top, &stats);
	/* A damaged ETag looks like another version. */
	assert_int_equal(stats.dropped, 2 * good.len - strlen(etag));
	assert_int_equal(stats.errors, 0);
	side_free(&a);
}

static void test_swapped_entries(void **state)
{
	struct fixture *f = *state;
	struct side a = side_new(f, roomy);
	char etag[STORE_ETAG_MAX], of_x[PATH_MAX], of_y[PATH_MAX];
	put_text(f->s, "x", "0123456789");
	put_text(f->s, "y", "abcdefghij");
	version_of(f->s, "x", etag);
	assert_got(&a, "x", etag, "0123456789", 1);
	only_entry(f, of_x);
	assert_int_equal(rename(of_x, path_of(f, "../kept")), 0);
	assert_got(&a, "y", NULL, "abcdefghij", 1);
	only_entry(f, of_y);
	assert_int_equal(rename(of_y, of_x), 0);
	assert_heals(f, &a, etag);
	side_free(&a);
}

/* A huge entry with a huge size in its head allocates no memory. */
static void test_huge_entry(void **state)
{
	struct fixture *f = *state;
	struct side a = side_new(f, roomy);
	char etag[STORE_ETAG_MAX], path[PATH_MAX];
	const uint64_t huge = UINT64_C(1) << 36;
	put_text(f->s, "x", "0123456789");
	version_of(f->s, "x", etag);
	assert_got(&a, "x", etag, "0123456789", 1);
	only_entry(f, path);
	auto_bytes struct bytes good = {0};
	read_whole(path, &good);
	memcpy(good.data + 8, &huge, sizeof(huge));
	write_whole(path, good.data, good.len);
	assert_int_equal(truncate(path, (off_t)(good.len - 10 + huge)), 0);
	assert_heals(f, &a, etag);
	side_free(&a);
}

static void test_things_in_the_way(void **state)
{
	struct fixture *f = *state;
	struct side a = side_new(f, roomy);
	char etag[STORE_ETAG_MAX], path[PATH_MAX], victim[PATH_MAX];
	put_text(f->s, "x", "0123456789");
	version_of(f->s, "x", etag);
	assert_got(&a, "x", etag, "0123456789", 1);
	only_entry(f, path);
	snprintf(victim, sizeof(victim), "%s/victim", f->dir);
	write_file(victim, "mine");

	unlink(path);
	assert_int_equal(symlink(victim, path), 0);
	assert_heals(f, &a, etag);
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_heals(f, &a, etag);
	unlink(path);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_got(&a, "x", etag, "0123456789", 1); /* the directory remains */
	assert_got(&a, "x", etag, "0123456789", 1);
	auto_bytes struct bytes mine = {0};
	read_whole(victim, &mine);
	assert_int_equal(mine.len, 4);
	side_free(&a);
}

/* The disk fails: the bucket answers. */
static void test_disk_fails(void **state)
{
	struct fixture *f = *state;
	struct side a = side_new(f, roomy);
	put_text(f->s, "x", "1");
	put_text(f->s, "y", "2");
	assert_got(&a, "x", NULL, "1", 1);
	nftw(cache_path(f), remove_one, 16, FTW_DEPTH | FTW_PHYS);
	assert_got(&a, "x", NULL, "1", 1);
	assert_got(&a, "y", NULL, "2", 1);
	assert_stats(&a, .misses = 3, .stored = 1, .errors = 2, .bytes = 4096);
	side_free(&a);
}

/* The disk fails to read the head, or the rest, of an entry: the bucket answers, and the
 * entry, which is not known to be damaged, stays. */
static void test_disk_cannot_read(void **state)
{
	static char text[3 * DISK_HEAD_MAX];
	static const off_t offsets[] = {0, DISK_HEAD_MAX};
	struct fixture *f = *state;
	struct side a = side_new(f, roomy);
	char etag[STORE_ETAG_MAX];
	memset(text, 'x', sizeof(text) - 1);
	put_text(f->s, "x", text);
	version_of(f->s, "x", etag);
	assert_got(&a, "x", etag, text, 1);
	for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
		unreadable = offsets[i];
		assert_got(&a, "x", etag, text, 1);
		assert_int_equal(unreadable, -1);
		assert_got(&a, "x", etag, text, 0);
		assert_int_equal(entries(f), 1);
	}
	struct store_diskcache_stats stats;
	store_diskcache_read(a.top, &stats);
	assert_int_equal(stats.dropped, 0);
	assert_int_equal(stats.errors, 2);
	side_free(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CONTRACT_TESTS(over_mem),
		CONTRACT_TESTS(over_dir_workers),
		CONTRACT_TEST(test_second_time, setup),
		CONTRACT_TEST(test_changed, setup),
		CONTRACT_TEST(test_conditions, setup),
		CONTRACT_TEST(test_ranges_of_what_is_there, setup),
		CONTRACT_TEST(test_ranges_are_not_kept, setup),
		CONTRACT_TEST(test_ranges_that_are_kept, setup),
		CONTRACT_TEST(test_ranges_that_consist_of_others, setup),
		CONTRACT_TEST(test_empty_objects_are_kept, setup),
		CONTRACT_TEST(test_put_and_delete_drop, setup),
		CONTRACT_TEST(test_scopes, setup),
		CONTRACT_TEST(test_what_is_not_kept, setup),
		CONTRACT_TEST(test_every_byte_damaged, setup),
		CONTRACT_TEST(test_swapped_entries, setup),
		CONTRACT_TEST(test_huge_entry, setup),
		CONTRACT_TEST(test_things_in_the_way, setup),
		CONTRACT_TEST(test_disk_fails, setup),
		CONTRACT_TEST(test_disk_cannot_read, setup),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
