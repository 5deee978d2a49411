/* SPDX-License-Identifier: Apache-2.0 */
/* The checksums of a spool: they follow every change, and no changed byte passes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>

#include "overlay/spool.h"
#include "overlay_fixture.h"

enum { SIZE = 5 * SUMS_FRAME + 1000, FILE_SIZE = 32 + 6 * 8 };

struct place_of_test {
	char path[64];
	int dir;
	struct spool *spool;
};

static void begin(struct place_of_test *p)
{
	snprintf(p->path, sizeof(p->path), "%s/sums-test-XXXXXX", fixture_parent());
	assert_non_null(mkdtemp(p->path));
	p->dir = open(p->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(spool_create(p->dir, 3, NULL, &p->spool, NULL), 0);
}

static void end(struct place_of_test *p)
{
	spool_unref(p->spool);
	unlinkat(p->dir, "spool.3", 0);
	unlinkat(p->dir, "sums.3", 0);
	close(p->dir);
	assert_int_equal(rmdir(p->path), 0);
}

static uint8_t byte_at(uint32_t i)
{
	return (uint8_t)(i * 2654435761u >> 24);
}

static void fill(struct place_of_test *p, uint32_t step)
{
	static uint8_t buf[SIZE];
	for (uint32_t i = 0; i < SIZE; i++)
		buf[i] = byte_at(i);
	for (uint32_t at = 0; at < SIZE; at += step)
		assert_int_equal(spool_write(p->spool, at, buf + at,
					     at + step < SIZE ? step : SIZE - at, NULL),
				 0);
}

static int save(struct place_of_test *p, bool final)
{
	return sums_save(&p->spool->sums, p->spool->fd, final);
}

static bool is_saved(const struct place_of_test *p)
{
	return faccessat(p->dir, "sums.3", F_OK, 0) == 0;
}

/* What a later process sees of n bytes at `at`. */
static int read_later(const struct place_of_test *p, bool same_boot, uint64_t at, size_t n,
		      struct err *err)
{
	static uint8_t buf[8 * SUMS_FRAME];
	struct spool *s = NULL;
	int rc = spool_open(p->dir, 3, same_boot, NULL, &s, err);
	if (rc == 0)
		rc = spool_read(s, at, buf, n, err);
	if (rc == 0)
		rc = spool_read(s, at, buf, n, err);
	spool_unref(s);
	return rc;
}

static void flip(const struct place_of_test *p, const char *name, uint64_t at, uint8_t bits)
{
	uint8_t byte;
	const int fd = openat(p->dir, name, O_RDWR | O_CLOEXEC);
	assert_int_equal(pread(fd, &byte, 1, (off_t)at), 1);
	byte ^= bits;
	assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
	close(fd);
}

static void a_changed_byte_is_noticed(void **state)
{
	static const uint32_t steps[] = {SIZE, SUMS_FRAME, 4096, 1000, 100001};
	for (size_t k = 0; k < sizeof(steps) / sizeof(steps[0]); k++) {
		struct place_of_test p;
		begin(&p);
		fill(&p, steps[k]);
		assert_int_equal(save(&p, false), 0);
		assert_int_equal(read_later(&p, true, 0, SIZE, NULL), 0);
		for (uint32_t at = 0; at < SIZE; at += 9973) {
			struct err err = ERR_INIT;
			char where[64];
			const uint32_t frame = at / SUMS_FRAME * SUMS_FRAME;
			flip(&p, "spool.3", at, (uint8_t)(1 << at % 8));
			assert_int_equal(read_later(&p, true, at, 1, &err), -EBADMSG);
			assert_non_null(strstr(err.msg, "spool.3 is damaged"));
			snprintf(where, sizeof(where), "at offset %u are", frame);
			assert_non_null(strstr(err.msg, where));
			/* The other frames can be read. */
			const uint32_t other = frame ? 0 : SUMS_FRAME;
			assert_int_equal(read_later(&p, true, other, SUMS_FRAME, NULL), 0);
			flip(&p, "spool.3", at, (uint8_t)(1 << at % 8));
		}
		assert_int_equal(read_later(&p, true, 0, SIZE, NULL), 0);
		end(&p);
	}
}

/* Random changes: what was saved is always true. */
static void checksums_follow_changes(void **state)
{
	static uint8_t buf[2 * SUMS_FRAME];
	struct place_of_test p;
	uint32_t random = 1;
	begin(&p);
	for (unsigned int i = 0; i < 3000; i++) {
		random = random * 1664525 + 1013904223;
		const uint64_t at = (random >> 8) % SIZE;
		const size_t n = 1 + (random >> 4) % sizeof(buf);
		memset(buf, (int)i, n);
		switch (random >> 28) {
		case 0:
			assert_int_equal(spool_zero(p.spool, at, n, NULL), 0);
			break;
		case 1:
			assert_int_equal(spool_cut(p.spool, at & ~(uint64_t)4095, NULL), 0);
			break;
		case 2:
		case 3:
			assert_int_equal(save(&p, false), 0);
			assert_int_equal(read_later(&p, true, 0, 8 * SUMS_FRAME, NULL), 0);
			break;
		default:
			assert_int_equal(spool_write(p.spool, at, buf, n, NULL), 0);
			assert_false(is_saved(&p));
		}
	}
	end(&p);
}

struct writer {
	struct spool *spool;
	unsigned int number;
};

static void *write_frames(void *arg)
{
	const struct writer *w = arg;
	uint8_t buf[3000];
	memset(buf, (int)w->number, sizeof(buf));
	for (unsigned int i = 0; i < 2000; i++)
		spool_write(w->spool, (i * 7 + w->number) * 997 % SIZE, buf, 1 + i % sizeof(buf),
			    NULL);
	return NULL;
}

/* Threads that write the same frames, and the same bytes. */
static void checksums_of_many_writers(void **state)
{
	struct place_of_test p;
	for (unsigned int round = 0; round < 5; round++) {
		struct writer writers[4];
		pthread_t threads[4];
		begin(&p);
		for (unsigned int i = 0; i < 4; i++) {
			writers[i] = (struct writer){p.spool, i};
			pthread_create(&threads[i], NULL, write_frames, &writers[i]);
		}
		for (unsigned int i = 0; i < 4; i++)
			pthread_join(threads[i], NULL);
		assert_int_equal(save(&p, false), 0);
		assert_int_equal(read_later(&p, true, 0, SIZE, NULL), 0);
		end(&p);
	}
}

/* The file is removed before the first change. */
static void a_change_removes_the_file(void **state)
{
	struct place_of_test p;
	begin(&p);
	fill(&p, SIZE);
	for (unsigned int i = 0; i < 3; i++) {
		assert_int_equal(save(&p, false), 0);
		assert_true(is_saved(&p));
		if (i == 0)
			assert_int_equal(spool_write(p.spool, 5, "x", 1, NULL), 0);
		else if (i == 1)
			assert_int_equal(spool_zero(p.spool, 5, 1, NULL), 0);
		else
			assert_int_equal(spool_cut(p.spool, 4096, NULL), 0);
		assert_false(is_saved(&p));
		assert_int_equal(read_later(&p, true, 0, SIZE, NULL), 0);
	}
	end(&p);
}

/* After a crash of the machine only a final file counts: the spool may have changed later. */
static void what_counts_after_a_restart(void **state)
{
	struct place_of_test p;
	begin(&p);
	fill(&p, SIZE);
	assert_int_equal(save(&p, false), 0);
	flip(&p, "spool.3", 7, 1);
	assert_int_equal(read_later(&p, true, 0, 1, NULL), -EBADMSG);
	assert_int_equal(read_later(&p, false, 0, 1, NULL), 0);
	flip(&p, "spool.3", 7, 1);
	assert_int_equal(save(&p, true), 0);
	flip(&p, "spool.3", 7, 1);
	assert_int_equal(read_later(&p, true, 0, 1, NULL), -EBADMSG);
	assert_int_equal(read_later(&p, false, 0, 1, NULL), -EBADMSG);
	end(&p);
}

static void a_damaged_file_is_noticed(void **state)
{
	struct place_of_test p;
	struct err err = ERR_INIT;
	begin(&p);
	fill(&p, SIZE);
	for (uint32_t at = 0; at < FILE_SIZE; at++) {
		assert_int_equal(save(&p, false), 0);
		flip(&p, "sums.3", at, (uint8_t)(1 << at % 8));
		assert_int_equal(read_later(&p, true, 0, 1, &err), -EBADMSG);
		assert_string_equal(err.msg, "sums.3 is damaged");
		assert_int_equal(read_later(&p, false, 0, 1, NULL), 0);
	}
	for (off_t n = 0; n < FILE_SIZE; n++) {
		assert_int_equal(save(&p, false), 0);
		const int fd = openat(p.dir, "sums.3", O_RDWR | O_CLOEXEC);
		assert_int_equal(ftruncate(fd, n), 0);
		close(fd);
		assert_int_equal(read_later(&p, true, 0, 1, NULL), -EBADMSG);
	}
	end(&p);
}

/* Without memory, bytes have no checksum, and nothing fails. */
static void checksums_are_charged(void **state)
{
	struct place_of_test p;
	struct budget_stats stats;
	struct budget *budget =
		budget_new(&(struct budget_limits){.bytes = 1600, .option = "cache_size"});
	begin(&p);
	spool_unref(p.spool);
	assert_int_equal(spool_create(p.dir, 3, budget, &p.spool, NULL), 0);
	fill(&p, SIZE);
	budget_get_stats(budget, &stats);
	assert_int_equal(stats.used[BUDGET_DRAFTS], 64 * sizeof(struct sum));
	assert_int_equal(spool_write(p.spool, 100 * SUMS_FRAME, "x", 1, NULL), 0);
	assert_int_equal(save(&p, false), 0);
	flip(&p, "spool.3", 100 * SUMS_FRAME, 1);
	assert_int_equal(read_later(&p, true, 100 * SUMS_FRAME, 1, NULL), 0);
	flip(&p, "spool.3", 0, 1);
	assert_int_equal(read_later(&p, true, 0, 1, NULL), -EBADMSG);
	end(&p);
	budget_get_stats(budget, &stats);
	assert_int_equal(stats.used[BUDGET_DRAFTS], 0);
	budget_free(budget);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_changed_byte_is_noticed),
		cmocka_unit_test(checksums_follow_changes),
		cmocka_unit_test(checksums_of_many_writers),
		cmocka_unit_test(a_change_removes_the_file),
		cmocka_unit_test(what_counts_after_a_restart),
		cmocka_unit_test(a_damaged_file_is_noticed),
		cmocka_unit_test(checksums_are_charged),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
