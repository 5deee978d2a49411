/* SPDX-License-Identifier: Apache-2.0 */
/* The checksums of a spool: they follow every change, and no changed byte passes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>

#include <base/checksum.h>
#include <base/mem.h>

#include "overlay/spool.h"
#include "overlay_fixture.h"

enum { FRAMES = 6, SIZE = 5 * SUMS_FRAME + 1000, FILE_SIZE = SUMS_HEADER + FRAMES * SUMS_ENTRY };

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

/* Writes the pieces of `step` bytes; backwards if it is asked for. */
static void fill(struct place_of_test *p, uint32_t step, bool backwards)
{
	static uint8_t buf[SIZE];
	const uint32_t pieces = (SIZE + step - 1) / step;
	for (uint32_t i = 0; i < SIZE; i++)
		buf[i] = byte_at(i);
	for (uint32_t i = 0; i < pieces; i++) {
		const uint32_t at = step * (backwards ? pieces - 1 - i : i);
		const uint32_t n = at + step < SIZE ? step : SIZE - at;
		assert_int_equal(spool_write(p->spool, at, buf + at, n, NULL), 0);
	}
}

static int save(struct place_of_test *p, bool final)
{
	return sums_save(&p->spool->sums, p->spool->fd, final);
}

static int read_with(const struct place_of_test *p, bool same_boot, uint64_t at, size_t n,
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

/* What a later process sees of n bytes at `at`. */
static int read_later(const struct place_of_test *p, uint64_t at, size_t n, struct err *err)
{
	return read_with(p, true, at, n, err);
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

/* Number of frames whose entry in the file says that it is unknown. */
static unsigned int count_unknown(const struct place_of_test *p)
{
	uint8_t bytes[SUMS_ENTRY];
	unsigned int n = 0;
	const int fd = openat(p->dir, "sums.3", O_RDONLY | O_CLOEXEC);
	for (uint32_t i = 0; pread(fd, bytes, sizeof(bytes), SUMS_HEADER + i * SUMS_ENTRY) > 0;
	     i++) {
		struct sum_entry entry;
		assert_int_equal(sum_entry_decode(3, i, bytes, &entry), 0);
		n += entry.unknown;
	}
	close(fd);
	return n;
}

static void a_changed_byte_is_noticed(void **state)
{
	static const uint32_t steps[] = {SIZE, SUMS_FRAME, 4096, 1000, 100001};
	for (size_t k = 0; k < 2 * sizeof(steps) / sizeof(steps[0]); k++) {
		struct place_of_test p;
		begin(&p);
		fill(&p, steps[k / 2], k % 2);
		assert_int_equal(count_unknown(&p), 0);
		assert_int_equal(read_later(&p, 0, SIZE, NULL), 0);
		for (uint32_t at = 0; at < SIZE; at += 29989) {
			struct err err = ERR_INIT;
			char where[64];
			const uint32_t frame = at / SUMS_FRAME * SUMS_FRAME;
			flip(&p, "spool.3", at, (uint8_t)(1 << at % 8));
			assert_int_equal(read_later(&p, at, 1, &err), -EBADMSG);
			assert_non_null(strstr(err.msg, "spool.3 is damaged"));
			snprintf(where, sizeof(where), "at offset %u are", frame);
			assert_non_null(strstr(err.msg, where));
			/* The other frames can be read. */
			const uint32_t other = frame ? 0 : SUMS_FRAME;
			assert_int_equal(read_later(&p, other, SUMS_FRAME, NULL), 0);
			flip(&p, "spool.3", at, (uint8_t)(1 << at % 8));
		}
		assert_int_equal(read_later(&p, 0, SIZE, NULL), 0);
		end(&p);
	}
}

static void assert_crc(const struct place_of_test *p, const uint8_t *bytes, uint64_t at, size_t n)
{
	uint32_t crc;
	assert_int_equal(spool_prepare(p->spool, at, n, &crc, NULL), 0);
	assert_int_equal(crc, checksum_crc32c(bytes + at, n, 0));
}

/* The CRC of any range is that of what was written, not of what the disk has. */
static void a_range_has_the_crc_of_what_was_written(void **state)
{
	static const uint32_t steps[] = {SIZE, SUMS_FRAME, 1000, 100001};
	static const size_t lengths[] = {1, 4096, SUMS_FRAME, 2 * SUMS_FRAME, 3 * SUMS_FRAME + 17};
	static uint8_t bytes[SIZE];
	for (size_t k = 0; k < 2 * sizeof(steps) / sizeof(steps[0]); k++) {
		struct place_of_test p;
		begin(&p);
		fill(&p, steps[k / 2], k % 2);
		for (uint32_t i = 0; i < SIZE; i++)
			bytes[i] = byte_at(i);
		memcpy(bytes + 70000, "written over", 12);
		assert_int_equal(spool_write(p.spool, 70000, bytes + 70000, 12, NULL), 0);
		for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
			for (uint64_t at = 0; at + lengths[i] <= SIZE; at += 7919)
				assert_crc(&p, bytes, at, lengths[i]);
		assert_crc(&p, bytes, 0, SIZE);
		assert_crc(&p, bytes, SIZE - 1000, 1000);
		flip(&p, "spool.3", 2 * SUMS_FRAME + 5000, 4);
		assert_crc(&p, bytes, SUMS_FRAME - 100, 2 * SUMS_FRAME + 100);
		assert_crc(&p, bytes, 2048, SIZE - 2048);
		end(&p);
	}
}

/* A spool that was damaged while no process had it open is not sent. */
static void a_damaged_range_is_not_prepared(void **state)
{
	struct place_of_test p;
	struct spool *s = NULL;
	uint32_t crc;
	begin(&p);
	fill(&p, SIZE, false);
	flip(&p, "spool.3", 2 * SUMS_FRAME + 5000, 4);
	assert_int_equal(spool_open(p.dir, 3, true, NULL, &s, NULL), 0);
	assert_int_equal(spool_prepare(s, 0, 2 * SUMS_FRAME, &crc, NULL), 0);
	assert_int_equal(spool_prepare(s, 0, 2 * SUMS_FRAME + 1, &crc, NULL), -EBADMSG);
	spool_unref(s);
	end(&p);
}

/* A damaged byte is noticed although the frame is written to later. */
static void damage_is_not_taken_over(void **state)
{
	struct place_of_test p;
	begin(&p);
	fill(&p, SIZE, false);
	flip(&p, "spool.3", 500, 1);
	assert_int_equal(spool_write(p.spool, 1000, "x", 1, NULL), 0);
	assert_int_equal(spool_write(p.spool, 400, "y", 1, NULL), 0);
	assert_int_equal(save(&p, false), 0);
	assert_int_equal(read_later(&p, 0, 1, NULL), -EBADMSG);
	end(&p);
}

/* ---- changes ---- */

enum { AREA = 8 * SUMS_FRAME };

/* What the spool must have. written: bytes of each frame, from its first one on, that were written
 * or set to zero. */
struct model {
	uint8_t bytes[AREA];
	uint64_t written[AREA / SUMS_FRAME];
};

static void note(struct model *m, uint64_t at, size_t n, int value)
{
	memset(m->bytes + at, value, n);
	for (uint64_t i = at / SUMS_FRAME; i * SUMS_FRAME < at + n; i++)
		m->written[i] = max_u64(m->written[i],
					min_u64(at + n, (i + 1) * SUMS_FRAME) - i * SUMS_FRAME);
}

static void note_cut(struct model *m, uint64_t at)
{
	memset(m->bytes + at, 0, AREA - at);
	for (uint64_t i = at / SUMS_FRAME; i < AREA / SUMS_FRAME; i++)
		m->written[i] = min_u64(m->written[i], at - min_u64(at, i * SUMS_FRAME));
}

static void compare(const struct place_of_test *p, const struct model *m)
{
	static uint8_t buf[SUMS_FRAME];
	struct spool *s;
	assert_int_equal(spool_open(p->dir, 3, true, NULL, &s, NULL), 0);
	for (uint64_t i = 0; i < AREA / SUMS_FRAME; i++) {
		const size_t n = (size_t)m->written[i];
		if (n == 0)
			continue;
		assert_int_equal(spool_read(s, i * SUMS_FRAME, buf, n, NULL), 0);
		assert_memory_equal(buf, m->bytes + i * SUMS_FRAME, n);
	}
	spool_unref(s);
	assert_int_equal(count_unknown(p), 0);
}

/* Random changes: the file is true after each of them. */
static void checksums_follow_changes(void **state)
{
	static uint8_t buf[2 * SUMS_FRAME];
	static struct model m;
	struct place_of_test p;
	uint32_t random = 1;
	memset(&m, 0, sizeof(m));
	begin(&p);
	for (unsigned int i = 0; i < 1500; i++) {
		random = random * 1664525 + 1013904223;
		const uint64_t at = (random >> 8) % SIZE;
		const size_t most = random >> 20 & 1 ? sizeof(buf) : 3000;
		const size_t n = 1 + (random >> 4) % most;
		memset(buf, (int)i, n);
		switch (random >> 28) {
		case 0:
			assert_int_equal(spool_zero(p.spool, at, n, at + n, NULL), 0);
			note(&m, at, n, 0);
			break;
		case 1:
			/* These bytes need not become part of the draft. */
			assert_int_equal(spool_zero(p.spool, at, n, 0, NULL), 0);
			memset(m.bytes + at, 0, n);
			break;
		case 2:
			assert_int_equal(spool_cut(p.spool, at & ~(uint64_t)4095, NULL), 0);
			note_cut(&m, at & ~(uint64_t)4095);
			break;
		default:
			assert_int_equal(spool_write(p.spool, at, buf, n, NULL), 0);
			note(&m, at, n, (int)i);
		}
		compare(&p, &m);
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
		struct writer writers[8];
		pthread_t threads[8];
		begin(&p);
		fill(&p, SIZE, false);
		for (unsigned int i = 0; i < 8; i++) {
			writers[i] = (struct writer){p.spool, i};
			pthread_create(&threads[i], NULL, write_frames, &writers[i]);
		}
		for (unsigned int i = 0; i < 8; i++)
			pthread_join(threads[i], NULL);
		assert_int_equal(count_unknown(&p), 0);
		assert_int_equal(read_later(&p, 0, SIZE, NULL), 0);
		end(&p);
	}
}

/* A process that is killed before sums_end(). */
static void a_change_in_progress(void **state)
{
	const uint64_t at = 2 * SUMS_FRAME + 10;
	struct sums_change c = {.offset = at, .end = at + 5, .need = at + 5};
	struct sums_change append = {.offset = SIZE, .end = SIZE + 99, .need = SIZE + 99};
	struct place_of_test p;
	begin(&p);
	fill(&p, SIZE, false);
	assert_int_equal(sums_begin(&p.spool->sums, p.spool->fd, &append), 0);
	flip(&p, "spool.3", SIZE - 1, 1);
	assert_int_equal(count_unknown(&p), 0);
	assert_int_equal(read_later(&p, SIZE - 1000, 1, NULL), -EBADMSG);
	flip(&p, "spool.3", SIZE - 1, 1);
	assert_int_equal(sums_end(&p.spool->sums, p.spool->fd, &append, NULL, SUMS_UNCHANGED), 0);

	/* Bytes that are replaced: only that frame is unknown. */
	assert_int_equal(sums_begin(&p.spool->sums, p.spool->fd, &c), 0);
	flip(&p, "spool.3", at, 1);
	assert_int_equal(count_unknown(&p), 1);
	assert_int_equal(read_later(&p, 0, SIZE, NULL), 0);
	flip(&p, "spool.3", SUMS_FRAME, 1);
	assert_int_equal(read_later(&p, SUMS_FRAME, 1, NULL), -EBADMSG);
	flip(&p, "spool.3", SUMS_FRAME, 1);
	flip(&p, "spool.3", at, 1);
	assert_int_equal(sums_end(&p.spool->sums, p.spool->fd, &c, NULL, SUMS_UNCHANGED), 0);
	assert_int_equal(count_unknown(&p), 0);
	assert_int_equal(read_later(&p, 0, SIZE, NULL), 0);
	end(&p);
}

/* Exchanges a descriptor by one that cannot be written to, and back. */
static void exchange(int *fd, int *other)
{
	const int was = *fd;
	*fd = *other;
	*other = was;
}

static void writes_that_fail(void **state)
{
	struct place_of_test p;
	begin(&p);
	fill(&p, SIZE, false);
	int other = openat(p.dir, "spool.3", O_RDONLY | O_CLOEXEC);
	/* The spool: nobody knows what it has now. An append does not change the old bytes. */
	exchange(&p.spool->fd, &other);
	assert_int_equal(spool_write(p.spool, 5, "x", 1, NULL), -EBADF);
	assert_int_equal(spool_write(p.spool, SIZE, "x", 1, NULL), -EBADF);
	exchange(&p.spool->fd, &other);
	assert_int_equal(count_unknown(&p), 1);
	assert_int_equal(read_later(&p, 0, SIZE, NULL), 0);
	/* The next write of the frame finds it out, and so does sums_save(). */
	assert_int_equal(spool_write(p.spool, 9, "y", 1, NULL), 0);
	assert_int_equal(count_unknown(&p), 0);
	assert_int_equal(read_later(&p, 0, SIZE, NULL), 0);
	assert_int_equal(save(&p, false), 0);
	assert_int_equal(read_later(&p, 0, FRAMES * SUMS_FRAME, NULL), 0);
	/* The file of the checksums: the spool is not changed. */
	exchange(&p.spool->sums.fd, &other);
	assert_int_equal(spool_write(p.spool, 5, "x", 1, NULL), -EBADF);
	assert_int_equal(spool_zero(p.spool, 5, 1, 6, NULL), -EBADF);
	assert_int_equal(spool_cut(p.spool, 4096, NULL), -EBADF);
	assert_int_not_equal(spool_cut(p.spool, SUMS_FRAME, NULL), 0);
	exchange(&p.spool->sums.fd, &other);
	assert_int_equal(read_later(&p, 0, FRAMES * SUMS_FRAME, NULL), 0);
	assert_int_equal(save(&p, false), 0);
	assert_int_equal(count_unknown(&p), 0);
	assert_int_equal(read_later(&p, 0, FRAMES * SUMS_FRAME, NULL), 0);
	close(other);
	end(&p);
}

/* ---- what a later process finds ---- */

/* After a crash of the machine only a final file counts: the spool may have changed later. */
static void what_counts_after_a_restart(void **state)
{
	struct place_of_test p;
	begin(&p);
	fill(&p, SIZE, false);
	flip(&p, "spool.3", 7, 1);
	assert_int_equal(read_later(&p, 0, 1, NULL), -EBADMSG);
	assert_int_equal(read_with(&p, false, 0, 1, NULL), 0);
	flip(&p, "spool.3", 7, 1);
	assert_int_equal(save(&p, true), 0);
	flip(&p, "spool.3", 7, 1);
	assert_int_equal(read_later(&p, 0, 1, NULL), -EBADMSG);
	assert_int_equal(read_with(&p, false, 0, 1, NULL), -EBADMSG);
	end(&p);
}

static void a_damaged_file_is_noticed(void **state)
{
	struct place_of_test p;
	begin(&p);
	fill(&p, SIZE, false);
	for (uint32_t bit = 0; bit < 8 * FILE_SIZE; bit++) {
		struct err err = ERR_INIT;
		char where[64] = "sums.3 is damaged";
		const uint32_t at = bit / 8;
		if (at >= SUMS_HEADER)
			snprintf(where, sizeof(where), "bytes of spool.3 at offset %u",
				 (at - SUMS_HEADER) / SUMS_ENTRY * SUMS_FRAME);
		flip(&p, "sums.3", at, (uint8_t)(1 << bit % 8));
		assert_int_equal(read_later(&p, 0, SIZE, &err), -EBADMSG);
		assert_non_null(strstr(err.msg, "sums.3 is damaged"));
		assert_non_null(strstr(err.msg, where));
		assert_int_equal(read_with(&p, false, 0, 1, NULL), 0);
		flip(&p, "sums.3", at, (uint8_t)(1 << bit % 8));
	}
	assert_int_equal(read_later(&p, 0, SIZE, NULL), 0);
	end(&p);
}

static void a_file_that_is_cut(void **state)
{
	struct place_of_test p;
	struct err err = ERR_INIT;
	begin(&p);
	fill(&p, SIZE, false);
	const int fd = openat(p.dir, "sums.3", O_RDWR | O_CLOEXEC);
	for (off_t n = FILE_SIZE - 1; n >= 0; n--) {
		assert_int_equal(ftruncate(fd, n), 0);
		assert_int_equal(read_later(&p, 0, SIZE, &err), -EBADMSG);
		assert_non_null(strstr(err.msg, "sums.3 is damaged"));
		/* The frames whose entries are there can be read. */
		if (n >= SUMS_HEADER + SUMS_ENTRY)
			assert_int_equal(read_later(&p, 0, SUMS_FRAME, NULL), 0);
	}
	/* A file that is too large. */
	assert_int_equal(save(&p, true), 0);
	assert_int_equal(ftruncate(fd, SUMS_HEADER + (off_t)SUMS_MAX * SUMS_ENTRY + 1), 0);
	assert_int_equal(read_later(&p, 0, 1, NULL), -EBADMSG);
	close(fd);
	unlinkat(p.dir, "sums.3", 0);
	assert_int_equal(read_later(&p, 0, 1, &err), -EBADMSG);
	assert_string_equal(err.msg, "sums.3 is missing");
	assert_int_equal(read_with(&p, false, 0, SIZE, NULL), 0);
	end(&p);
}

/* ---- limits ---- */

/* Without memory, bytes have no checksum, and nothing fails. */
static void checksums_are_charged(void **state)
{
	const uint64_t far = (uint64_t)600 * SUMS_FRAME;
	struct place_of_test p;
	struct budget_stats stats;
	struct budget *budget =
		budget_new(&(struct budget_limits){.bytes = 10000, .option = "cache_size"});
	begin(&p);
	spool_unref(p.spool);
	assert_int_equal(spool_create(p.dir, 3, budget, &p.spool, NULL), 0);
	fill(&p, SIZE, false);
	budget_get_stats(budget, &stats);
	assert_int_equal(stats.used[BUDGET_DRAFTS], 512 * sizeof(struct sum) + 8 * sizeof(void *));
	assert_int_equal(spool_write(p.spool, far, "xyz", 3, NULL), 0);
	assert_int_equal(spool_write(p.spool, far + 1, "z", 1, NULL), 0);
	assert_int_equal(spool_zero(p.spool, far + 2, 1, 0, NULL), 0);
	assert_int_equal(count_unknown(&p), 1);
	flip(&p, "spool.3", far, 1);
	assert_int_equal(read_later(&p, far, 3, NULL), 0);
	assert_int_equal(spool_cut(p.spool, far + 4096, NULL), 0);
	assert_int_equal(count_unknown(&p), 1);
	assert_int_equal(spool_cut(p.spool, far, NULL), 0);
	assert_int_equal(count_unknown(&p), 0);
	assert_int_equal(read_later(&p, far, 1, NULL), -EBADMSG);
	flip(&p, "spool.3", 0, 1);
	assert_int_equal(read_later(&p, 0, 1, NULL), -EBADMSG);
	end(&p);
	budget_get_stats(budget, &stats);
	assert_int_equal(stats.used[BUDGET_DRAFTS], 0);
	budget_free(budget);
}

static void bytes_beyond_the_last_frame(void **state)
{
	const uint64_t far = (uint64_t)SUMS_MAX * SUMS_FRAME;
	struct place_of_test p;
	struct stat st;
	begin(&p);
	assert_int_equal(spool_write(p.spool, far - 2, "abcd", 4, NULL), 0);
	assert_int_equal(read_later(&p, far - 2, 4, NULL), 0);
	flip(&p, "spool.3", far, 1);
	assert_int_equal(read_later(&p, far - 2, 4, NULL), 0);
	flip(&p, "spool.3", far - 1, 1);
	assert_int_equal(read_later(&p, far, 2, NULL), 0);
	assert_int_equal(read_later(&p, far - 2, 4, NULL), -EBADMSG);
	/* A hole that need not be part of the draft makes no entries. */
	assert_int_equal(spool_cut(p.spool, 0, NULL), 0);
	assert_int_equal(spool_zero(p.spool, 0, far + SUMS_FRAME, 0, NULL), 0);
	assert_int_equal(fstatat(p.dir, "sums.3", &st, 0), 0);
	assert_int_equal(st.st_size, SUMS_HEADER);
	end(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_changed_byte_is_noticed),
		cmocka_unit_test(a_range_has_the_crc_of_what_was_written),
		cmocka_unit_test(a_damaged_range_is_not_prepared),
		cmocka_unit_test(damage_is_not_taken_over),
		cmocka_unit_test(checksums_follow_changes),
		cmocka_unit_test(checksums_of_many_writers),
		cmocka_unit_test(a_change_in_progress),
		cmocka_unit_test(writes_that_fail),
		cmocka_unit_test(what_counts_after_a_restart),
		cmocka_unit_test(a_damaged_file_is_noticed),
		cmocka_unit_test(a_file_that_is_cut),
		cmocka_unit_test(checksums_are_charged),
		cmocka_unit_test(bytes_beyond_the_last_frame),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
