/* SPDX-License-Identifier: Apache-2.0 */
/* Temporary files of the directory store: when they have a name, and who removes them. */
#include "store_fixture.h"

#include <dirent.h>
#include <sys/file.h>
#include <sys/wait.h>

#include "patterned_source.h"

static int setup(void **state)
{
	struct fixture *f = fixture_new(0);
	fixture_dir(f);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	fixture_free(*state);
	return 0;
}

/* Returns the number of names in a directory of the bucket that begin with `prefix`. */
static int count_names(const struct fixture *f, const char *key, const char *prefix)
{
	DIR *dir = opendir(path_of(f, key));
	int n = 0;
	assert_non_null(dir);
	for (const struct dirent *e; (e = readdir(dir));)
		n += strncmp(e->d_name, prefix, strlen(prefix)) == 0;
	closedir(dir);
	return n;
}

static bool has_unnamed_files(const struct fixture *f)
{
	const int fd = open(path_of(f, ""), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* ---- names ---- */

struct watched {
	struct patterned body;
	const struct fixture *f;
	bool dies; /* the process ends while the body is read */
	int reads, temps;
};

static int read_watched(void *ctx, uint64_t offset, void *buf, size_t n, struct err *err)
{
	struct watched *w = ctx;
	w->reads++;
	w->temps += count_names(w->f, "d", ".hsmount-tmp-");
	if (w->dies)
		_exit(0);
	return patterned_read(&w->body, offset, buf, n, err);
}

static void watch(struct watched *w, const struct fixture *f)
{
	*w = (struct watched){.f = f};
	patterned_init(&w->body, 100);
	w->body.source.read_at = read_watched;
	w->body.source.ctx = w;
}

/* While its bytes are written, an object has no name, also if it will replace another one. */
static void test_no_name(void **state)
{
	struct fixture *f = *state;
	struct watched w;
	struct stat st;
	if (!has_unnamed_files(f))
		skip();
	for (int i = 0; i < 3; i++) {
		const struct store_cond cond = {.if_none_match = i == 0 ? "*" : NULL};
		watch(&w, f);
		assert_int_equal(call_put_source(f->s, i < 2 ? "d/x" : "d/y", &w.body.source, false,
						 &cond, NULL, NULL),
				 0);
		assert_true(w.reads > 0);
		assert_int_equal(w.temps, 0);
		assert_int_equal(stat(path_of(f, "d/x"), &st), 0);
		assert_int_equal(st.st_nlink, 1);
		assert_int_equal(st.st_size, 100);
	}
	assert_int_equal(count_names(f, "d", ".hsmount-tmp-"), 0);
	/* A failure leaves nothing either. */
	watch(&w, f);
	w.body.code = -EIO;
	assert_int_equal(call_put_source(f->s, "d/x", &w.body.source, false, NULL, NULL, NULL),
			 -EIO);
	assert_int_equal(mkdir(path_of(f, "d/z"), 0777), 0);
	assert_int_equal(call_put(f->s, "d/z", "1", 1, NULL, NULL, NULL), -EISDIR);
	assert_int_equal(count_names(f, "d", ".hsmount-tmp-"), 0);
}

/* A mask of the process applies to the mode of an object, as to any other file. */
static void test_mode(void **state)
{
	struct fixture *f = *state;
	struct stat st;
	const mode_t mask = umask(027);
	put_text(f->s, "d/x", "1");
	put_text(f->s, "d/x", "2");
	umask(mask);
	assert_int_equal(stat(path_of(f, "d/x"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0640);
}

static void test_killed(void **state)
{
	struct fixture *f = *state;
	struct watched w;
	int status;
	if (!has_unnamed_files(f))
		skip();
	put_text(f->s, "d/x", "old");
	watch(&w, f);
	w.dies = true;
	const pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		call_put_source(f->s, "d/x", &w.body.source, false, NULL, NULL, NULL);
		_exit(1); /* it was not killed */
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_object(f->s, "d/x", "old");
	assert_int_equal(count_names(f, "d", ""), 3); /* x, and the names of the directories */
}

/* ---- removal ---- */

static void boot_id(char text[64])
{
	FILE *in = fopen("/proc/sys/kernel/random/boot_id", "r");
	assert_non_null(in);
	assert_non_null(fgets(text, 64, in));
	fclose(in);
	text[strcspn(text, "\n")] = '\0';
}

enum { OURS, LOCKED, OTHER_BOOT, NO_BOOT, LONGER_BOOT, DIRECTORY, LINK, KINDS };

/* Makes a temporary file of each kind in the directory d. Returns the descriptor of a lock. */
static int make_temps(const struct fixture *f, char names[KINDS][128])
{
	char boot[64];
	int lock = -1;
	boot_id(boot);
	for (int i = 0; i < KINDS; i++) {
		const char *tail = i == LONGER_BOOT ? "0" : "";
		const char *id = i == NO_BOOT	   ? "0123456789abcdef"
				 : i == OTHER_BOOT ? "00000000-0000-4000-8000-000000000000"
						   : boot;
		snprintf(names[i], 128, "d/.hsmount-tmp-%s%s-%d", id, tail, i);
		if (i == DIRECTORY)
			assert_int_equal(mkdir(path_of(f, names[i]), 0777), 0);
		else if (i == LINK)
			assert_int_equal(symlink("x", path_of(f, names[i])), 0);
		else
			write_file(path_of(f, names[i]), "1");
		if (i == LOCKED) {
			lock = open(path_of(f, names[i]), O_RDWR | O_CLOEXEC);
			assert_int_equal(flock(lock, LOCK_EX), 0);
		}
	}
	return lock;
}

/* Only a store that may do so removes a file, and only if its program was on this machine and has
 * ended. */
static void test_sweep(void **state)
{
	struct fixture *f = *state;
	char names[KINDS][128];
	struct stat st;
	put_text(f->s, "d/x", "1");
	const int lock = make_temps(f, names);
	assert_listing(f->s, "d/", false, "d/x");
	assert_int_equal(count_names(f, "d", ".hsmount-tmp-"), KINDS);
	store_dir_sweep(f->s);
	assert_listing(f->s, "d/", true, "d/x");
	for (int i = 0; i < KINDS; i++)
		assert_int_equal(lstat(path_of(f, names[i]), &st), i == OURS ? -1 : 0);
	/* The program that held the lock has ended. */
	close(lock);
	assert_listing(f->s, "", false, "d/x");
	assert_int_equal(lstat(path_of(f, names[LOCKED]), &st), -1);
	assert_int_equal(count_names(f, "d", ".hsmount-tmp-"), KINDS - 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_no_name),
		TEST(test_mode),
		TEST(test_killed),
		TEST(test_sweep),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
