/* SPDX-License-Identifier: Apache-2.0 */
/* The files in a directory while an output file is written, after that, and after a failure. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/atomic_file.h"

struct place {
	char dir[64];
	char file[80]; /* in it */
};

static int setup(void **state)
{
	struct place *p = calloc(1, sizeof(*p));
	strcpy(p->dir, "/tmp/atomic_file_test.XXXXXX");
	*state = p;
	if (!mkdtemp(p->dir))
		return -1;
	snprintf(p->file, sizeof(p->file), "%s/out", p->dir);
	return 0;
}

static int teardown(void **state)
{
	struct place *p = *state;
	unlink(p->file);
	const int rc = rmdir(p->dir); /* fails when anything else was left */
	free(p);
	return rc;
}

static int count_files(const struct place *p)
{
	int n = 0;
	DIR *d = opendir(p->dir);
	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n - 2; /* "." and ".." */
}

static size_t contents(const struct place *p, char *buf, size_t cap)
{
	const int fd = open(p->file, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	const ssize_t n = read(fd, buf, cap);
	close(fd);
	assert_true(n >= 0);
	return (size_t)n;
}

static void expect_text(const struct place *p, const char *text)
{
	char buf[16];
	assert_int_equal(contents(p, buf, sizeof(buf)), strlen(text));
	assert_memory_equal(buf, text, strlen(text));
}

static void put_old(const struct place *p)
{
	const int fd = open(p->file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, "old", 3), 3);
	close(fd);
}

/* A file of 6 bytes: a hole, "new", a hole. */
static struct atomic_file open_new(const struct place *p)
{
	struct atomic_file f;
	struct err err = ERR_INIT;
	if (atomic_file_open(&f, p->file, true, 6, &err) ||
	    atomic_file_write(&f, "new", 3, 2, &err))
		fail_msg("%s", err.msg);
	return f;
}

static void a_commit_replaces_the_old_file(void **state)
{
	const struct place *p = *state;
	struct err err = ERR_INIT;
	char buf[16];
	put_old(p);
	struct atomic_file f = open_new(p);
	assert_int_equal(count_files(p), 2);
	expect_text(p, "old");
	assert_int_equal(atomic_file_commit(&f, &err), 0);
	assert_int_equal(count_files(p), 1);
	assert_int_equal(contents(p, buf, sizeof(buf)), 6);
	assert_memory_equal(buf, "\0\0new\0", 6);
	atomic_file_close(&f);
	assert_int_equal(count_files(p), 1);
}

static void a_file_that_is_replaced_keeps_its_permissions(void **state)
{
	const struct place *p = *state;
	struct stat st;
	put_old(p);
	assert_int_equal(chmod(p->file, 0604), 0);
	struct atomic_file f = open_new(p);
	assert_int_equal(atomic_file_commit(&f, NULL), 0);
	atomic_file_close(&f);
	assert_int_equal(stat(p->file, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0604);
}

static void check_refused(const struct place *p, const char *path)
{
	struct atomic_file f;
	struct err err = ERR_INIT;
	const int before = count_files(p);
	assert_int_equal(atomic_file_open(&f, path, false, 3, &err), -EEXIST);
	assert_non_null(strstr(err.msg, "the file exists; --force replaces it"));
	atomic_file_close(&f);
	assert_int_equal(count_files(p), before);
}

static void nothing_is_replaced_without_force(void **state)
{
	const struct place *p = *state;
	char link[96];
	snprintf(link, sizeof(link), "%s/link", p->dir);
	assert_int_equal(symlink("out", link), 0);
	check_refused(p, link); /* it leads nowhere */
	put_old(p);
	check_refused(p, p->file);
	check_refused(p, link);
	unlink(link);
	expect_text(p, "old");
}

/* Another program makes a file of this name while the new one is written. */
static void a_file_that_appears_meanwhile_stays(void **state)
{
	const struct place *p = *state;
	struct atomic_file f;
	struct err err = ERR_INIT;
	assert_int_equal(atomic_file_open(&f, p->file, false, 6, &err), 0);
	assert_int_equal(atomic_file_write(&f, "new", 3, 2, &err), 0);
	put_old(p);
	assert_int_equal(atomic_file_commit(&f, &err), -EEXIST);
	atomic_file_close(&f);
	assert_int_equal(count_files(p), 1);
	expect_text(p, "old");
}

/* The shell has made it: `hsimage export B/x.h5 /dev/stdout > out`. */
static void standard_output_may_be_replaced(void **state)
{
	const struct place *p = *state;
	struct atomic_file f;
	struct err err = ERR_INIT;
	put_old(p);
	const int out = dup(STDOUT_FILENO), fd = open(p->file, O_WRONLY | O_CLOEXEC);
	assert_true(out >= 0 && fd >= 0 && dup2(fd, STDOUT_FILENO) >= 0);
	const int opened = atomic_file_open(&f, "/dev/stdout", false, 3, &err);
	const int written = opened ? opened : atomic_file_write(&f, "new", 3, 0, &err);
	const int committed = written ? written : atomic_file_commit(&f, &err);
	dup2(out, STDOUT_FILENO);
	close(out);
	close(fd);
	atomic_file_close(&f);
	assert_int_equal(committed, 0);
	expect_text(p, "new");
}

/* /dev/stdout is a link, too. */
static void a_link_to_the_old_file_stays(void **state)
{
	const struct place *p = *state;
	struct atomic_file f;
	struct err err = ERR_INIT;
	struct stat st;
	char link[96];
	snprintf(link, sizeof(link), "%s/link", p->dir);
	put_old(p);
	assert_int_equal(symlink("out", link), 0);
	assert_int_equal(atomic_file_open(&f, link, true, 3, &err), 0);
	assert_int_equal(atomic_file_write(&f, "new", 3, 0, &err), 0);
	assert_int_equal(atomic_file_commit(&f, &err), 0);
	atomic_file_close(&f);
	expect_text(p, "new");
	assert_int_equal(lstat(link, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	unlink(link);
}

static void without_a_commit_nothing_changes(void **state)
{
	const struct place *p = *state;
	char buf[16];
	struct atomic_file f = open_new(p);
	atomic_file_close(&f);
	assert_int_equal(count_files(p), 0);
	put_old(p);
	f = open_new(p);
	atomic_file_close(&f);
	assert_int_equal(count_files(p), 1);
	assert_int_equal(contents(p, buf, sizeof(buf)), 3);
}

static void permissions_follow_the_umask(void **state)
{
	const struct place *p = *state;
	struct stat st;
	const mode_t before = umask(027);
	struct atomic_file f = open_new(p);
	assert_int_equal(atomic_file_commit(&f, NULL), 0);
	atomic_file_close(&f);
	assert_int_equal(umask(before), 027);
	assert_int_equal(stat(p->file, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
}

static void what_is_not_written_takes_no_space(void **state)
{
	const struct place *p = *state;
	const off_t size = 1 << 30;
	struct atomic_file f;
	struct stat st;
	assert_int_equal(atomic_file_open(&f, p->file, false, (uint64_t)size, NULL), 0);
	assert_int_equal(atomic_file_write(&f, "x", 1, (uint64_t)size / 2, NULL), 0);
	assert_int_equal(atomic_file_commit(&f, NULL), 0);
	atomic_file_close(&f);
	assert_int_equal(stat(p->file, &st), 0);
	assert_int_equal(st.st_size, size);
	assert_true(st.st_blocks < 1000);
}

/* ---- signals ---- */

struct ending {
	int number;
	bool is_ignored, is_committed;
};

/* A program that gets the signal while it writes the file, or afterwards. */
static int status_of(const struct place *p, const struct ending *e)
{
	int status = 0;
	const pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		alarm(20);
		signal(e->number, e->is_ignored ? SIG_IGN : SIG_DFL);
		struct atomic_file f = open_new(p);
		if (count_files(p) != 1 || (e->is_committed && atomic_file_commit(&f, NULL)))
			_exit(4);
		kill(getpid(), e->number);
		_exit(3);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void a_signal_removes_a_half_written_file(void **state)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
	const struct place *p = *state;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		const struct ending e = {.number = numbers[i]};
		const int status = status_of(p, &e);
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == numbers[i]);
		assert_int_equal(count_files(p), 0);
	}
}

static void a_signal_after_the_commit_removes_nothing(void **state)
{
	const struct place *p = *state;
	const int status = status_of(p, &(struct ending){.number = SIGTERM, .is_committed = true});
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	assert_int_equal(count_files(p), 1);
	assert_int_equal(access(p->file, F_OK), 0);
}

/* As under nohup(1). */
static void a_signal_that_was_ignored_stays_ignored(void **state)
{
	const struct place *p = *state;
	const struct ending e = {.number = SIGHUP, .is_ignored = true, .is_committed = true};
	const int status = status_of(p, &e);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 3);
	assert_int_equal(count_files(p), 1);
}

/* ---- failures ---- */

static void a_size_that_is_not_supported_is_reported(void **state)
{
	const struct place *p = *state;
	struct rlimit old, limit;
	struct atomic_file f;
	struct err err = ERR_INIT;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	limit = (struct rlimit){.rlim_cur = 1 << 20, .rlim_max = old.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	const int large = atomic_file_open(&f, p->file, false, 2 << 20, &err);
	atomic_file_close(&f);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(large, -EFBIG);
	assert_non_null(strstr(err.msg, p->file));
	assert_int_equal(count_files(p), 0);
}

static void a_full_device_is_reported(void **state)
{
	struct atomic_file f;
	struct err err = ERR_INIT;
	assert_int_equal(atomic_file_open(&f, "/dev/full", false, 3, &err), 0);
	assert_true(f.is_stream);
	assert_int_equal(atomic_file_write(&f, "new", 3, 0, &err), -ENOSPC);
	assert_string_equal(err.msg, "/dev/full: No space left on device");
	atomic_file_close(&f);
}

static void a_directory_that_is_missing_is_reported(void **state)
{
	struct atomic_file f;
	struct err err = ERR_INIT;
	assert_int_equal(atomic_file_open(&f, "/no/such/dir/out", false, 3, &err), -ENOENT);
	assert_string_equal(err.msg, "/no/such/dir/out: No such file or directory");
	atomic_file_close(&f);
}

/* ---- streams ---- */

static void a_pipe_is_written_in_order(void **state)
{
	const struct place *p = *state;
	struct err err = ERR_INIT;
	char buf[16];
	assert_int_equal(mkfifo(p->file, 0600), 0);
	const int fd = open(p->file, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	struct atomic_file f = open_new(p);
	assert_true(f.is_stream);
	assert_int_equal(read(fd, buf, sizeof(buf)), 3); /* before the commit */
	assert_int_equal(atomic_file_commit(&f, &err), 0);
	atomic_file_close(&f);
	close(fd);
	assert_int_equal(access(p->file, F_OK), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_commit_replaces_the_old_file),
		TEST(a_file_that_is_replaced_keeps_its_permissions),
		TEST(nothing_is_replaced_without_force),
		TEST(a_file_that_appears_meanwhile_stays),
		TEST(standard_output_may_be_replaced),
		TEST(a_link_to_the_old_file_stays),
		TEST(without_a_commit_nothing_changes),
		TEST(permissions_follow_the_umask),
		TEST(what_is_not_written_takes_no_space),
		TEST(a_signal_removes_a_half_written_file),
		TEST(a_signal_after_the_commit_removes_nothing),
		TEST(a_signal_that_was_ignored_stays_ignored),
		TEST(a_size_that_is_not_supported_is_reported),
		TEST(a_full_device_is_reported),
		TEST(a_directory_that_is_missing_is_reported),
		TEST(a_pipe_is_written_in_order),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
