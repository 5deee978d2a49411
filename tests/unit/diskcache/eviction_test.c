/* SPDX-License-Identifier: Apache-2.0 */
/* The disk cache's directory: permissions, foreign files, the limit, and several processes.
 */
#include "diskcache_fixture.h"

#include "diskcache/directory.h"

#include <pthread.h>
#include <sys/file.h>

enum { BLOCK = 4096, LARGE = 20000, LARGE_BLOCKS = 5 * BLOCK };

static int setup(void **state)
{
	struct fixture *f = fixture_new(0);
	fixture_dir(f);
	*state = f;
	return 0;
}

static int setup_workers(void **state)
{
	struct fixture *f = fixture_new(4);
	fixture_dir(f);
	*state = f;
	return 0;
}

static int setup_many_workers(void **state)
{
	struct fixture *f = fixture_new(16);
	fixture_dir(f);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	fixture_free(*state);
	return 0;
}

static struct store_diskcache_options limited(uint64_t max_bytes)
{
	struct store_diskcache_options opt = roomy;
	opt.max_bytes = max_bytes;
	return opt;
}

static void add_size(void *arg, const char *path)
{
	struct stat st;
	if (stat(path, &st) == 0)
		*(uint64_t *)arg += (uint64_t)(st.st_size + BLOCK - 1) / BLOCK * BLOCK;
}

static uint64_t bytes_there(const struct fixture *f)
{
	uint64_t sum = 0;
	each_entry(f, add_size, &sum);
	return sum;
}

static const char *in_cache(const struct fixture *f, const char *name)
{
	static _Thread_local char path[PATH_MAX];
	snprintf(path, sizeof(path), "%s/%s", cache_path(f), name);
	return path;
}

/* n objects "k0" … of LARGE bytes, each filled with its number. */
static void put_large(struct fixture *f, int n)
{
	static char body[LARGE + 1];
	for (int i = 0; i < n; i++) {
		char key[16];
		snprintf(key, sizeof(key), "k%d", i);
		memset(body, 'A' + i % 26, LARGE);
		put_text(f->s, key, body);
	}
}

static void assert_large(struct store *s, int i, const char *etag)
{
	char key[16];
	struct call_result res;
	snprintf(key, sizeof(key), "k%d", i);
	get_one(s, (struct call_get){.key = key, .length = UINT64_MAX, .known_etag = etag}, &res);
	assert_int_equal(res.code, 0);
	assert_int_equal(res.body.len, LARGE);
	for (size_t k = 0; k < LARGE; k++)
		if (res.body.data[k] != 'A' + i % 26)
			fail_msg("k%d: byte %zu is wrong", i, k);
	bytes_release(&res.body);
}

/* ---- permissions ---- */

static int try_dir(struct fixture *f, const char *path, const char *why)
{
	struct err err = ERR_INIT;
	struct disk_dir d;
	(void)f;
	int rc = disk_dir_open(&d, path, 1 << 20, &err);
	assert_int_equal(rc, err.code);
	if (rc == 0)
		disk_dir_close(&d);
	else if (!strstr(err.msg, why) || !strstr(err.msg, path))
		fail_msg("the message '%s' does not contain '%s'", err.msg, why);
	return rc;
}

static void test_who_may_have_it(void **state)
{
	struct fixture *f = *state;
	char path[96], link[96], below[112];
	struct stat st;
	snprintf(path, sizeof(path), "%s/c", f->dir);
	snprintf(link, sizeof(link), "%s/link", f->dir);
	snprintf(below, sizeof(below), "%s/sub", path);
	assert_int_equal(try_dir(f, below, "No such file"), -ENOENT); /* no parents */
	umask(0);
	assert_int_equal(try_dir(f, path, ""), 0);
	umask(022);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(stat(strcat(strcpy(below, path), "/hsmount-cache.lock"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(try_dir(f, path, ""), 0); /* again */

	assert_int_equal(symlink(path, link), 0);
	assert_int_equal(try_dir(f, link, "symbolic link"), -EPERM);
	chmod(path, 0755);
	assert_int_equal(try_dir(f, path, ""), 0);
	chmod(path, 0770);
	assert_int_equal(try_dir(f, path, "others can write"), -EPERM);
	chmod(path, 01777);
	assert_int_equal(try_dir(f, path, "others can write"), -EPERM);
	chmod(path, 0700);
	if (geteuid() == 0) {
		assert_int_equal(chown(path, 1, 1), 0);
		assert_int_equal(try_dir(f, path, "another user"), -EPERM);
		assert_int_equal(chown(path, 0, 0), 0);
	} else {
		unlink(below);
		chmod(path, 0500);
		assert_int_equal(try_dir(f, path, "Permission denied"), -EACCES);
		chmod(path, 0700);
	}
	unlink(below);
	assert_int_equal(symlink("/etc/passwd", below), 0);
	assert_true(try_dir(f, path, "") < 0);
	unlink(below);
	assert_int_equal(mkfifo(below, 0600), 0);
	assert_int_equal(try_dir(f, path, "not a regular file"), -EPERM);

	snprintf(path, sizeof(path), "%s/file", f->dir);
	write_file(path, "");
	assert_int_equal(try_dir(f, path, "Not a directory"), -ENOTDIR);
}

/* ---- the limit ---- */

static void test_limit(void **state)
{
	struct fixture *f = *state;
	enum { N = 50, ROOM = 10 };
	put_large(f, N);
	struct side a = side_new(f, limited(ROOM * LARGE_BLOCKS));
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < N; i++) {
			assert_large(a.top, i, NULL);
			assert_true(bytes_there(f) <= ROOM * LARGE_BLOCKS);
		}
	}
	struct store_diskcache_stats stats;
	store_diskcache_read(a.top, &stats);
	assert_int_equal(stats.stored, 2 * N - stats.revalidated);
	assert_int_equal(stats.bytes, bytes_there(f));
	assert_true(bytes_there(f) >= (ROOM - 2) * LARGE_BLOCKS); /* the limit is used */
	assert_int_equal(stats.evicted, stats.stored - entries(f));
	side_free(&a);

	/* A mount with a lower limit counts the directory at its first request. */
	struct side b = side_new(f, limited(3 * LARGE_BLOCKS));
	assert_int_equal(call_head(b.top, "k0", NULL, NULL), 0);
	assert_true(bytes_there(f) <= 3 * LARGE_BLOCKS);
	side_free(&b);
}

static void make_old(void *arg, const char *path)
{
	const struct timespec times[2] = {{.tv_sec = *(time_t *)arg}, {.tv_nsec = UTIME_OMIT}};
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
	*(time_t *)arg += 86400;
}

static void test_what_is_used_stays(void **state)
{
	struct fixture *f = *state;
	enum { N = 8, ROOM = 10 };
	time_t old = time(NULL) - 86400 * 30;
	put_large(f, N + 4);
	struct side a = side_new(f, limited(ROOM * LARGE_BLOCKS));
	for (int i = 0; i < N; i++)
		assert_large(a.top, i, NULL);
	each_entry(f, make_old, &old);
	assert_large(a.top, 2, NULL);
	assert_large(a.top, 5, NULL);
	for (int i = N; i < N + 4; i++)
		assert_large(a.top, i, NULL); /* evicts others */
	const uint64_t before = gets_of(&a);
	struct store_diskcache_stats stats, after;
	store_diskcache_read(a.top, &stats);
	assert_true(stats.evicted >= 2);
	assert_large(a.top, 2, NULL);
	assert_large(a.top, 5, NULL);
	store_diskcache_read(a.top, &after);
	assert_int_equal(after.revalidated, stats.revalidated + 2);
	assert_int_equal(gets_of(&a), before + 2);
	side_free(&a);
}

static void test_new_versions_take_the_room_of_old_ones(void **state)
{
	struct fixture *f = *state;
	struct side a = side_new(f, roomy);
	for (int i = 0; i < 5; i++) {
		put_large(f, 1);
		assert_large(a.top, 0, NULL);
	}
	assert_int_equal(entries(f), 1);
	assert_stats(&a, .misses = 1, .stored = 5, .bytes = LARGE_BLOCKS);
	side_free(&a);
}

static void test_what_is_not_ours(void **state)
{
	struct fixture *f = *state;
	static const char *const names[] = {
		"README",
		"tmp-",
		"tmp-0123456789abcde",
		"tmp-0123456789abcdeg",
		"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde",
		"0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef"};
	struct side a = side_new(f, limited(2 * BLOCK));
	char large[3 * BLOCK + 1];
	memset(large, 'x', sizeof(large) - 1);
	large[sizeof(large) - 1] = '\0';
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		write_file(in_cache(f, names[i]), large);
	for (int i = 0; i < 8; i++) {
		char key[16];
		snprintf(key, sizeof(key), "k%d", i);
		put_text(f->s, key, "x");
		assert_got(&a, key, NULL, "x", 1);
	}
	assert_int_equal(entries(f), 2 + 1); /* one of the names has the length of an entry's */
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_int_equal(access(in_cache(f, names[i]), F_OK), 0);
	side_free(&a);
}

static void test_what_dead_writers_left(void **state)
{
	struct fixture *f = *state;
	struct store_diskcache_options opt = limited(8 * BLOCK);
	char living[PATH_MAX], dead[PATH_MAX];
	struct side a = side_new(f, opt);
	strcpy(living, in_cache(f, "tmp-0000000000000001"));
	strcpy(dead, in_cache(f, "tmp-0000000000000002"));
	write_file(living, "x");
	write_file(dead, "x");
	int fd = open(living, O_RDWR);
	assert_true(fd >= 0 && flock(fd, LOCK_EX) == 0);
	put_text(f->s, "x", "1");
	assert_got(&a, "x", NULL, "1", 1);
	assert_int_equal(access(dead, F_OK), -1);
	assert_int_equal(access(living, F_OK), 0);
	assert_stats(&a, .misses = 1, .stored = 1, .bytes = 2 * BLOCK);
	close(fd);
	side_free(&a);
}

static unsigned int temporary_files(const struct fixture *f)
{
	unsigned int n = 0;
	DIR *dir = opendir(cache_path(f));
	assert_non_null(dir);
	for (const struct dirent *e; (e = readdir(dir));)
		n += strncmp(e->d_name, "tmp-", 4) == 0;
	closedir(dir);
	return n;
}

/* A directory has the name of the entry, so the rename fails. */
static void test_a_failed_rename_leaves_no_file(void **state)
{
	struct fixture *f = *state;
	char path[PATH_MAX];
	struct side a = side_new(f, roomy);
	put_text(f->s, "x", "1");
	assert_got(&a, "x", NULL, "1", 1);
	only_entry(f, path);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_got(&a, "x", NULL, "1", 1);
	assert_int_equal(temporary_files(f), 0);
	assert_int_equal(rmdir(path), 0);
	assert_got(&a, "x", NULL, "1", 1);
	only_entry(f, path);
	side_free(&a);
}

static void test_count_is_damaged(void **state)
{
	struct fixture *f = *state;
	struct side a = side_new(f, roomy);
	put_large(f, 2);
	assert_large(a.top, 0, NULL);
	write_file(in_cache(f, "hsmount-cache.lock"), "what is this?");
	assert_large(a.top, 1, NULL);
	assert_stats(&a, .misses = 2, .stored = 2, .bytes = 2 * LARGE_BLOCKS);
	side_free(&a);
}

static uint64_t time_slept(const struct env *env)
{
	struct fixture *f = env->ctx;
	return atomic_load(&f->slept_ns);
}

/* A stopped process holds the lock. Nothing is stored, and no get waits for long, however many
 * objects are fetched. After a while the cache tries to lock again. */
static void test_lock_is_held(void **state)
{
	enum { N = 20 };
	const uint64_t s = 1000000000;
	struct fixture *f = *state;
	f->env.now = time_slept;
	struct side a = side_new(f, roomy);
	put_text(f->s, "x", "1");
	int fd = open(in_cache(f, "hsmount-cache.lock"), O_RDWR);
	assert_true(fd >= 0 && flock(fd, LOCK_EX) == 0);
	for (int i = 0; i < N; i++)
		assert_got(&a, "x", NULL, "1", 1);
	assert_stats(&a, .misses = N, .skipped = N);
	assert_in_range(f->slept_ns, 1, 3 * s);
	close(fd);
	atomic_fetch_add(&f->slept_ns, 5 * s);
	assert_got(&a, "x", NULL, "1", 1);
	assert_int_equal(entries(f), 1);
	side_free(&a);
}

/* ---- a slow disk ---- */

static void stall(struct fixture *f)
{
	atomic_bool *stalled = f->ctx;
	while (atomic_load(stalled))
		usleep(1000);
}

/* While nothing can be written, all gets are answered. Queued objects are written later; the others
 * are not stored. */
static void check_behind(struct fixture *f, size_t max_behind, unsigned int waiting)
{
	enum { N = 12 };
	atomic_bool stalled = true;
	struct store_diskcache_options opt = roomy;
	struct store_diskcache_stats stats;
	opt.max_behind = max_behind;
	struct side a = side_new(f, opt);
	put_large(f, N);
	f->ctx = &stalled;
	f->on_sleep = stall;
	int fd = open(in_cache(f, "hsmount-cache.lock"), O_RDWR);
	assert_true(fd >= 0 && flock(fd, LOCK_EX) == 0);
	for (int i = 0; i < N; i++)
		assert_large(a.top, i, NULL);
	store_diskcache_read(a.top, &stats);
	assert_int_equal(stats.stored, 0);
	assert_int_equal(stats.skipped, N - waiting);
	close(fd);
	atomic_store(&stalled, false);
	side_free(&a); /* waits until the queue is written */
	assert_int_equal(entries(f), waiting);
}

static void test_disk_is_behind(void **state)
{
	check_behind(*state, 5 * LARGE + LARGE / 2, 5);
}

/* An object larger than the queue is accepted alone. */
static void test_disk_is_behind_with_a_large_one(void **state)
{
	check_behind(*state, LARGE / 2, 1);
}

/* ---- several processes ---- */

enum { OBJECTS = 24, READERS = 2, ROUNDS = 60 };

struct reader {
	struct store *s;
	struct fixture *f;
	char (*etags)[STORE_ETAG_MAX];
	unsigned int seed;
	pthread_t thread;
};

static void spoil(void *arg, const char *path)
{
	unsigned int *seed = arg;
	if (rand_r(seed) % 8)
		return;
	int fd = open(path, O_WRONLY);
	if (fd >= 0 && pwrite(fd, "spoilt", 6, rand_r(seed) % LARGE) < 0)
		fail_msg("cannot spoil %s", path);
	if (fd >= 0)
		close(fd);
}

static void *read_on(void *arg)
{
	struct reader *r = arg;
	for (int i = 0; i < ROUNDS; i++) {
		const int k = rand_r(&r->seed) % OBJECTS;
		assert_large(r->s, k, rand_r(&r->seed) % 2 ? r->etags[k] : NULL);
		if (i % 16 == 0)
			each_entry(r->f, spoil, &r->seed);
	}
	return NULL;
}

static void test_several_mounts(void **state)
{
	struct fixture *f = *state;
	const struct store_diskcache_options opt = limited(OBJECTS / 2 * LARGE_BLOCKS);
	char etags[OBJECTS][STORE_ETAG_MAX];
	struct side sides[2] = {side_new(f, opt), side_new(f, opt)};
	struct reader readers[2 * READERS];
	struct store_diskcache_stats stats[2];
	put_large(f, OBJECTS);
	for (int i = 0; i < OBJECTS; i++) {
		char key[16];
		snprintf(key, sizeof(key), "k%d", i);
		version_of(f->s, key, etags[i]);
	}
	for (unsigned int i = 0; i < 2 * READERS; i++) {
		readers[i] =
			(struct reader){.s = sides[i % 2].top, .f = f, .etags = etags, .seed = i};
		assert_int_equal(pthread_create(&readers[i].thread, NULL, read_on, &readers[i]), 0);
	}
	for (unsigned int i = 0; i < 2 * READERS; i++)
		pthread_join(readers[i].thread, NULL);
	for (int i = 0; i < 2; i++) {
		/* A busy disk may have stored nothing yet of what this side has read. */
		do {
			assert_large(sides[i].top, 0, etags[0]);
			store_diskcache_read(sides[i].top, &stats[i]);
		} while (stats[i].hits == 0);
		assert_int_equal(stats[i].errors, 0);
		side_free(&sides[i]);
	}
	assert_true(stats[0].dropped + stats[1].dropped > 0);
	assert_true(bytes_there(f) <= opt.max_bytes);
	assert_int_equal(each_entry(f, NULL, NULL) > 0, 1);
}

#define TEST(test, setup) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_who_may_have_it, setup),
		TEST(test_limit, setup),
		TEST(test_what_is_used_stays, setup),
		TEST(test_new_versions_take_the_room_of_old_ones, setup),
		TEST(test_what_is_not_ours, setup),
		TEST(test_what_dead_writers_left, setup),
		TEST(test_a_failed_rename_leaves_no_file, setup),
		TEST(test_count_is_damaged, setup),
		TEST(test_lock_is_held, setup),
		TEST(test_disk_is_behind, setup_many_workers),
		TEST(test_disk_is_behind_with_a_large_one, setup_many_workers),
		TEST(test_several_mounts, setup_workers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
