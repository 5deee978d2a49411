/* SPDX-License-Identifier: Apache-2.0 */
/* What disk.h promises: what may vanish does so with some seeds, and what may not with none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "disk.h"

enum { SEEDS = 400, PAGE = 4096, SECTOR = 512, PATH = 256, CONTENT = 4 * PAGE };

/* ---- a disk in its own directory ---- */

struct place {
	char base[64]; /* the lives of the disk are directories in it */
	struct disk *disk;
	int dir; /* of the present life */
	unsigned int lives;
};

static void path_of(const struct place *p, unsigned int life, const char *name, char path[PATH])
{
	snprintf(path, PATH, "%s/%u%s%s", p->base, life, *name ? "/" : "", name);
}

static struct place begin(void)
{
	struct place p = {.dir = -1};
	char path[PATH];
	snprintf(p.base, sizeof(p.base), "%s/hsmount-disk-XXXXXX",
		 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	assert_non_null(mkdtemp(p.base));
	path_of(&p, 0, "", path);
	assert_int_equal(mkdir(path, 0700), 0);
	p.disk = disk_new(path);
	p.dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(p.dir >= 0);
	return p;
}

static void crash(struct place *p, enum disk_crash how, uint64_t seed)
{
	char path[PATH];
	struct rng r = rng_derive(seed, 1);
	path_of(p, ++p->lives, "", path);
	assert_int_equal(mkdir(path, 0700), 0);
	disk_crash(p->disk, path, &r, how);
	close(p->dir);
	p->dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(p->dir >= 0);
}

static void remove_tree(const char *path)
{
	DIR *dir = opendir(path);
	for (const struct dirent *e; dir && (e = readdir(dir));) {
		char below[PATH + 256];
		snprintf(below, sizeof(below), "%s/%s", path, e->d_name);
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 && unlink(below))
			remove_tree(below);
	}
	if (dir)
		closedir(dir);
	rmdir(path);
}

static void end(struct place *p)
{
	disk_free(p->disk);
	close(p->dir);
	remove_tree(p->base);
}

/* ---- files ---- */

static int make(const struct place *p, const char *name)
{
	const int fd = openat(p->dir, name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	return fd;
}

static void fill(int fd, off_t offset, size_t n, char c)
{
	char bytes[CONTENT];
	memset(bytes, c, sizeof(bytes));
	assert_int_equal(pwrite(fd, bytes, n, offset), n);
}

static void make_durable(const struct place *p, const char *name, size_t n, char c)
{
	const int fd = make(p, name);
	fill(fd, 0, n, c);
	assert_int_equal(fsync(fd), 0);
	assert_int_equal(fsync(p->dir), 0);
	close(fd);
}

/* Returns the number of bytes; -1 without such a file. */
static ssize_t get(const struct place *p, const char *name, char bytes[CONTENT])
{
	const int fd = openat(p->dir, name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	const ssize_t n = read(fd, bytes, CONTENT);
	close(fd);
	assert_true(n >= 0);
	return n;
}

static bool exists(const struct place *p, const char *name)
{
	return faccessat(p->dir, name, F_OK, 0) == 0;
}

/* Whether it has n bytes c from `at`. */
static bool has(const char *bytes, size_t at, size_t n, char c)
{
	for (size_t i = at; i < at + n; i++)
		if (bytes[i] != c)
			return false;
	return true;
}

/* How many of the seeds did something. */
static void must_vary(unsigned int n)
{
	assert_in_range(n, 1, SEEDS - 1);
}

/* ---- contents ---- */

static void unsynchronised_bytes_may_vanish(void **state)
{
	unsigned int whole = 0, empty = 0, partly = 0, torn = 0;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct place p = begin();
		char bytes[CONTENT];
		make_durable(&p, "f", CONTENT, 'a');
		const int fd = openat(p.dir, "f", O_WRONLY | O_CLOEXEC);
		fill(fd, 0, CONTENT, 'b');
		close(fd);
		crash(&p, DISK_POWER, seed);
		assert_int_equal(get(&p, "f", bytes), CONTENT);
		unsigned int pages = 0;
		for (size_t at = 0; at < CONTENT; at += PAGE) {
			const bool is_new = has(bytes, at, PAGE, 'b');
			pages += is_new;
			torn += !is_new && !has(bytes, at, PAGE, 'a');
			for (size_t s = at; s < at + PAGE; s += SECTOR)
				assert_true(has(bytes, s, SECTOR, bytes[s]) &&
					    (bytes[s] == 'a' || bytes[s] == 'b'));
		}
		whole += pages == CONTENT / PAGE;
		empty += pages == 0;
		partly += pages > 0 && pages < CONTENT / PAGE;
		end(&p);
	}
	must_vary(whole);
	must_vary(empty);
	must_vary(partly);
	must_vary(torn);
}

static void synchronised_bytes_stay(void **state)
{
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct place p = begin();
		char bytes[CONTENT];
		const int fd = make(&p, "f");
		fill(fd, 100, 2 * PAGE, 'a');
		assert_int_equal(seed % 2 ? fsync(fd) : fdatasync(fd), 0);
		assert_int_equal(fsync(p.dir), 0);
		fill(fd, 3 * PAGE, PAGE, 'b'); /* may be lost */
		close(fd);
		crash(&p, DISK_POWER, seed);
		assert_true(get(&p, "f", bytes) >= 100 + 2 * PAGE);
		assert_true(has(bytes, 100, 2 * PAGE, 'a') && has(bytes, 0, 100, 0));
		end(&p);
	}
}

/* Of two writes to a page, the second one is not there without the first. */
static void a_page_has_its_writes_in_order(void **state)
{
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct place p = begin();
		char bytes[CONTENT];
		make_durable(&p, "f", PAGE, 'a');
		const int fd = openat(p.dir, "f", O_WRONLY | O_APPEND | O_CLOEXEC);
		assert_int_equal(write(fd, "1", 1), 1);
		assert_int_equal(write(fd, "2", 1), 1);
		close(fd);
		crash(&p, DISK_POWER, seed);
		const ssize_t n = get(&p, "f", bytes);
		assert_in_range(n, PAGE, PAGE + 2);
		assert_true(n < PAGE + 2 || bytes[PAGE] == '1' || bytes[PAGE + 1] != '2');
		end(&p);
	}
}

static void what_was_cut_off_does_not_come_back(void **state)
{
	unsigned int cut = 0;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct place p = begin();
		char bytes[CONTENT];
		make_durable(&p, "f", CONTENT, 'a');
		const int fd = openat(p.dir, "f", O_WRONLY | O_CLOEXEC);
		assert_int_equal(ftruncate(fd, 100), 0);
		fill(fd, 2 * PAGE, 1, 'b');
		assert_int_equal(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 50),
				 0);
		close(fd);
		crash(&p, DISK_POWER, seed);
		const ssize_t n = get(&p, "f", bytes);
		assert_true(n == CONTENT || n == 100 || n == 2 * PAGE + 1);
		for (size_t i = 100; n == 2 * PAGE + 1 && i < (size_t)n; i++)
			assert_true(bytes[i] != 'a');
		cut += n == 2 * PAGE + 1;
		if (n == CONTENT) /* nor is there what was written to a page after a cut */
			assert_true(bytes[2 * PAGE] == 'a');
		end(&p);
	}
	must_vary(cut);
}

/* ---- names ---- */

static void only_a_directory_makes_names_durable(void **state)
{
	unsigned int named = 0;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct place p = begin();
		const int fd = make(&p, "f");
		assert_int_equal(fsync(fd), 0);
		close(fd);
		crash(&p, DISK_POWER, seed);
		named += exists(&p, "f");
		end(&p);
	}
	must_vary(named);
	assert_true(named > SEEDS / 2); /* some file systems do more */
}

/* Nearly all file systems have them in order; one may have each of them without the others. */
static void names_have_moments(void **state)
{
	unsigned int counts[8] = {0};
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		static const char *const names[] = {"1", "2", "3"};
		struct place p = begin();
		unsigned int which = 0;
		for (unsigned int i = 0; i < 3; i++)
			close(make(&p, names[i]));
		crash(&p, DISK_POWER, seed);
		for (unsigned int i = 0; i < 3; i++)
			which |= (unsigned int)exists(&p, names[i]) << i;
		counts[which]++;
		end(&p);
	}
	for (unsigned int which = 0; which < 8; which++)
		must_vary(counts[which]);
	assert_true(counts[0] + counts[1] + counts[3] + counts[7] > SEEDS / 2);
}

static void names_of_renames_are_there_in_order(void **state)
{
	static const char *const names[] = {"1", "2", "3"};
	unsigned int counts[4] = {0};
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct place p = begin();
		unsigned int n = 0;
		close(make(&p, names[0]));
		assert_int_equal(renameat(p.dir, names[0], p.dir, names[1]), 0);
		assert_int_equal(renameat(p.dir, names[1], p.dir, names[2]), 0);
		crash(&p, DISK_POWER, seed);
		for (unsigned int i = 0; i < 3; i++) {
			counts[i] += exists(&p, names[i]);
			n += exists(&p, names[i]);
		}
		assert_true(n <= 1);
		counts[3] += n == 0;
		end(&p);
	}
	for (unsigned int n = 0; n < 4; n++)
		must_vary(counts[n]);
}

static void a_rename_is_atomic(void **state)
{
	unsigned int renamed = 0, moved = 0;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct place p = begin();
		char bytes[CONTENT];
		make_durable(&p, "f", PAGE, 'a');
		make_durable(&p, "g", PAGE, 'g');
		assert_int_equal(mkdirat(p.dir, "d", 0700), 0);
		assert_int_equal(fsync(p.dir), 0);
		const int fd = make(&p, "f.new");
		fill(fd, 0, PAGE, 'b');
		assert_int_equal(fsync(fd), 0);
		close(fd);
		assert_int_equal(renameat(p.dir, "f.new", p.dir, "f"), 0);
		assert_int_equal(renameat2(p.dir, "g", p.dir, "d/g", RENAME_NOREPLACE), 0);
		crash(&p, DISK_POWER, seed);
		assert_int_equal(get(&p, "f", bytes), PAGE);
		assert_true(has(bytes, 0, PAGE, bytes[0]) && (*bytes == 'a' || *bytes == 'b'));
		renamed += *bytes == 'b';
		assert_true(exists(&p, "g") != exists(&p, "d/g"));
		moved += exists(&p, "d/g");
		end(&p);
	}
	must_vary(renamed);
	must_vary(moved);
}

static void a_removal_may_be_undone(void **state)
{
	unsigned int back = 0;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct place p = begin();
		char bytes[CONTENT];
		make_durable(&p, "f", PAGE, 'a');
		assert_int_equal(unlinkat(p.dir, "f", 0), 0);
		make_durable(&p, "g", PAGE, 'a');
		assert_int_equal(unlinkat(p.dir, "g", 0), 0);
		assert_int_equal(fsync(p.dir), 0);
		make_durable(&p, "h", PAGE, 'a');
		assert_int_equal(unlinkat(p.dir, "h", 0), 0);
		crash(&p, DISK_POWER, seed);
		assert_false(exists(&p, "f") || exists(&p, "g"));
		const ssize_t n = get(&p, "h", bytes);
		assert_true(n == -1 || (n == PAGE && has(bytes, 0, PAGE, 'a')));
		back += n == PAGE;
		end(&p);
	}
	must_vary(back);
}

/* ---- crashes ---- */

static void the_end_of_a_process_loses_nothing_yet(void **state)
{
	unsigned int lost = 0;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct place p = begin();
		char bytes[CONTENT];
		const int fd = make(&p, "f");
		assert_int_equal(fsync(p.dir), 0);
		fill(fd, 0, PAGE, 'a');
		assert_int_equal(mkdirat(p.dir, "d", 0700), 0);
		crash(&p, DISK_PROCESS, seed);
		fill(fd, 0, PAGE, 'x'); /* by the dead process */
		close(fd);
		assert_int_equal(get(&p, "f", bytes), PAGE);
		assert_true(has(bytes, 0, PAGE, 'a') && exists(&p, "d"));
		close(make(&p, "d/g"));
		crash(&p, DISK_PROCESS, seed);
		assert_true(exists(&p, "d/g"));
		crash(&p, DISK_POWER, seed);
		lost += get(&p, "f", bytes) < PAGE;
		assert_true(exists(&p, "d") || !exists(&p, "d/g"));
		crash(&p, DISK_POWER, seed + 1); /* what is left is durable */
		assert_int_equal(get(&p, "f", bytes) < PAGE, lost > 0);
		lost = lost > 0;
		end(&p);
		if (lost)
			return;
	}
	fail_msg("no seed loses the bytes");
}

static void read_boot_id(char text[64])
{
	const int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	const ssize_t n = read(fd, text, 63);
	assert_true(n > 0);
	text[n] = '\0';
	close(fd);
}

static void a_machine_boots_after_a_power_loss(void **state)
{
	char first[64], second[64], third[64];
	struct place p = begin();
	disk_use(p.disk);
	read_boot_id(first);
	crash(&p, DISK_PROCESS, 1);
	read_boot_id(second);
	crash(&p, DISK_POWER, 1);
	read_boot_id(third);
	disk_use(NULL);
	assert_string_equal(first, second);
	assert_string_not_equal(first, third);
	end(&p);
}

static uint64_t hash_tree(const char *path)
{
	struct dirent **entries;
	uint64_t hash = 1;
	const int n = scandir(path, &entries, NULL, alphasort);
	assert_true(n >= 2);
	for (int i = 0; i < n; i++) {
		char below[PATH + 256], bytes[CONTENT];
		snprintf(below, sizeof(below), "%s/%s", path, entries[i]->d_name);
		for (const char *c = entries[i]->d_name; *c; c++)
			hash = hash * 31 + (unsigned char)*c;
		const int fd = open(below, O_RDONLY | O_CLOEXEC);
		const ssize_t got = read(fd, bytes, sizeof(bytes));
		for (ssize_t k = 0; k < got; k++)
			hash = hash * 31 + (unsigned char)bytes[k];
		close(fd);
		if (got < 0 && entries[i]->d_name[0] != '.')
			hash = hash * 31 + hash_tree(below);
		free(entries[i]);
	}
	free(entries);
	return hash;
}

static uint64_t run_a_seed(uint64_t seed)
{
	struct place p = begin();
	char path[PATH];
	assert_int_equal(mkdirat(p.dir, "d", 0700), 0);
	for (unsigned int i = 0; i < 20; i++) {
		snprintf(path, sizeof(path), "%sf%u", i % 2 ? "d/" : "", i);
		const int fd = make(&p, path);
		fill(fd, 0, 2 * PAGE, (char)('a' + i));
		if (i % 3 == 0)
			assert_int_equal(fdatasync(fd), 0);
		fill(fd, PAGE, 2 * PAGE, 'z');
		close(fd);
	}
	crash(&p, DISK_POWER, seed);
	path_of(&p, p.lives, "", path);
	const uint64_t hash = hash_tree(path);
	end(&p);
	return hash;
}

static void a_seed_decides_all(void **state)
{
	unsigned int differ = 0;
	for (uint64_t seed = 0; seed < 50; seed++) {
		const uint64_t hash = run_a_seed(seed);
		assert_true(run_a_seed(seed) == hash);
		differ += run_a_seed(seed + 1) != hash;
	}
	assert_true(differ > 40);
}

/* ---- hooks ---- */

struct hook {
	enum disk_call call;
	unsigned int at, n; /* the at-th such call gets the result */
	ssize_t result;
	char name[PATH];
	unsigned int all[DISK_CALLS];
};

static ssize_t fail_one(void *ctx, enum disk_call call, const char *name, size_t n)
{
	struct hook *h = ctx;
	h->all[call]++;
	if (call != h->call || ++h->n != h->at)
		return 0;
	snprintf(h->name, sizeof(h->name), "%s", name);
	return h->result;
}

static void a_hook_makes_calls_fail(void **state)
{
	struct place p = begin();
	struct hook h = {.call = DISK_WRITE, .at = 2, .result = -ENOSPC};
	struct stat st;
	char bytes[CONTENT] = {0};
	disk_set_hook(p.disk, fail_one, &h);
	const int fd = make(&p, "f");
	fill(fd, 0, 10, 'a');
	assert_int_equal(pwrite(fd, bytes, 10, 10), -1);
	assert_int_equal(errno, ENOSPC);
	assert_string_equal(h.name, "f");
	h = (struct hook){.call = DISK_WRITE, .at = 1, .result = 3};
	assert_int_equal(pwrite(fd, bytes, 10, 10), 3);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, 13);
	/* Each kind of call. */
	h = (struct hook){.call = DISK_RENAME, .at = 1, .result = -EROFS};
	assert_int_equal(renameat(p.dir, "f", p.dir, "g"), -1);
	assert_int_equal(errno, EROFS);
	assert_int_equal(mkdirat(p.dir, "d", 0700), 0);
	assert_int_equal(ftruncate(fd, 5), 0);
	assert_int_equal(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 100), 0);
	assert_int_equal(fdatasync(fd), 0);
	assert_int_equal(write(fd, "x", 1), 1);
	close(make(&p, "f"));
	close(make(&p, "g"));
	assert_int_equal(unlinkat(p.dir, "f", 0), 0);
	static const unsigned int expected[DISK_CALLS] = {
		[DISK_CREATE] = 1, [DISK_WRITE] = 1,  [DISK_CUT] = 2,	 [DISK_ALLOCATE] = 1,
		[DISK_SYNC] = 1,   [DISK_RENAME] = 1, [DISK_UNLINK] = 1, [DISK_MKDIR] = 1};
	for (unsigned int i = 0; i < DISK_CALLS; i++)
		assert_int_equal(h.all[i], expected[i]);
	close(fd);
	crash(&p, DISK_PROCESS, 1); /* compares the files with what the module knows */
	end(&p);
}

/* After an fsync() that has failed, the next one succeeds and writes nothing. */
static void a_failed_sync_gives_up(void **state)
{
	unsigned int lost = 0;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct place p = begin();
		char bytes[CONTENT];
		struct hook h = {.call = DISK_SYNC, .at = 1, .result = -EIO};
		make_durable(&p, "f", 3 * PAGE, 'a');
		disk_set_hook(p.disk, fail_one, &h);
		const int fd = openat(p.dir, "f", O_WRONLY | O_CLOEXEC);
		fill(fd, 0, 2 * PAGE, 'b');
		assert_int_equal(fsync(fd), -1);
		fill(fd, PAGE + 1, 1, 'c');
		assert_int_equal(fsync(fd), 0);
		close(fd);
		crash(&p, DISK_POWER, seed);
		assert_int_equal(get(&p, "f", bytes), 3 * PAGE);
		/* This page was changed again. */
		assert_true(bytes[PAGE] == 'b' && bytes[PAGE + 1] == 'c' &&
			    has(bytes, PAGE + 2, PAGE - 2, 'b'));
		assert_true(has(bytes, 2 * PAGE, PAGE, 'a'));
		lost += !has(bytes, 0, PAGE, 'b');
		end(&p);
	}
	must_vary(lost);
}

static void disks_are_independent(void **state)
{
	for (uint64_t seed = 0; seed < 20; seed++) {
		struct place p = begin(), q = begin();
		char bytes[CONTENT];
		const int fd = make(&q, "f");
		fill(fd, 0, PAGE, 'a');
		close(make(&p, "f"));
		crash(&p, DISK_POWER, seed);
		assert_int_equal(get(&q, "f", bytes), PAGE);
		crash(&q, DISK_PROCESS, seed);
		assert_int_equal(get(&q, "f", bytes), PAGE);
		close(fd);
		end(&p);
		end(&q);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unsynchronised_bytes_may_vanish),
		cmocka_unit_test(synchronised_bytes_stay),
		cmocka_unit_test(a_page_has_its_writes_in_order),
		cmocka_unit_test(what_was_cut_off_does_not_come_back),
		cmocka_unit_test(only_a_directory_makes_names_durable),
		cmocka_unit_test(names_have_moments),
		cmocka_unit_test(names_of_renames_are_there_in_order),
		cmocka_unit_test(a_rename_is_atomic),
		cmocka_unit_test(a_removal_may_be_undone),
		cmocka_unit_test(the_end_of_a_process_loses_nothing_yet),
		cmocka_unit_test(a_machine_boots_after_a_power_loss),
		cmocka_unit_test(a_seed_decides_all),
		cmocka_unit_test(a_hook_makes_calls_fail),
		cmocka_unit_test(a_failed_sync_gives_up),
		cmocka_unit_test(disks_are_independent),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
