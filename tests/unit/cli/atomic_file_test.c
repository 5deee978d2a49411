/* SPDX-License-Identifier: Apache-2.0 */
/* What is left of a half-written file, by a signal and otherwise. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "atomic_file.h"

static int setup(void **state)
{
	char *file = strdup("/tmp/atomic_file_test.XXXXXX");
	const int fd = file ? mkstemp(file) : -1;
	*state = file;
	return fd < 0 ? -1 : close(fd);
}

static int teardown(void **state)
{
	unlink(*state);
	free(*state);
	return 0;
}

struct ending {
	int number;
	bool ignored, half_written;
};

/* The program: it gets the signal while it is writing, or has written. */
static void child(const struct ending *e, const char *file)
{
	struct atomic_guard guard = {0};
	alarm(20);
	signal(e->number, e->ignored ? SIG_IGN : SIG_DFL);
	atomic_guard_start(&guard);
	atomic_guard_lock(&guard);
	kill(getpid(), e->number); /* waits */
	atomic_guard_unlock(&guard, e->half_written ? file : NULL);
	if (!e->ignored)
		pause();
	atomic_guard_stop(&guard);
	_exit(3);
}

static int status_of(const struct ending *e, const char *file)
{
	int status = 0;
	const pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		child(e, file);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void test_half_written(void **state)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		const struct ending e = {.number = numbers[i], .half_written = true};
		close(open(*state, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
		const int status = status_of(&e, *state);
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == numbers[i]);
		assert_int_equal(access(*state, F_OK), -1);
	}
}

static void test_written(void **state)
{
	const struct ending e = {.number = SIGTERM};
	const int status = status_of(&e, *state);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	assert_int_equal(access(*state, F_OK), 0);
}

/* nohup(1) */
static void test_ignored(void **state)
{
	const struct ending e = {.number = SIGHUP, .ignored = true, .half_written = true};
	const int status = status_of(&e, *state);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 3);
	assert_int_equal(access(*state, F_OK), 0);
}

/* Afterwards signals do what they did before. */
static void test_stopped(void **state)
{
	int status = 0;
	const pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct atomic_guard guard = {0};
		alarm(20);
		atomic_guard_start(&guard);
		atomic_guard_stop(&guard);
		kill(getpid(), SIGINT);
		_exit(3);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
}

static struct atomic_file open_new(const char *path, struct atomic_guard *guard)
{
	struct atomic_file f;
	struct err err = ERR_INIT;
	assert_int_equal(atomic_file_open(&f, path, guard, &err), 0);
	assert_int_equal(atomic_file_write(&f, "new", 3, 2, &err), 0);
	return f;
}

static size_t contents(const char *path, char *buf, size_t cap)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	const ssize_t n = fd < 0 ? 0 : read(fd, buf, cap);
	close(fd);
	return n < 0 ? 0 : (size_t)n;
}

/* The name is the old file's until all of the new one is written. */
static void test_committed(void **state)
{
	struct atomic_guard guard = {0};
	struct err err = ERR_INIT;
	char buf[16];
	struct atomic_file f = open_new(*state, &guard);
	assert_int_equal(contents(*state, buf, sizeof(buf)), 0);
	assert_int_equal(atomic_file_commit(&f, 6, &err), 0);
	assert_int_equal(contents(*state, buf, sizeof(buf)), 6);
	assert_memory_equal(buf, "\0\0new\0", 6);
	atomic_file_close(&f);
	assert_int_equal(contents(*state, buf, sizeof(buf)), 6);
}

static void test_not_committed(void **state)
{
	struct atomic_guard guard = {0};
	struct atomic_file f = open_new(*state, &guard);
	char buf[16];
	atomic_file_close(&f);
	assert_int_equal(contents(*state, buf, sizeof(buf)), 0);
	unlink(*state);
	f = open_new(*state, &guard);
	atomic_file_close(&f);
	assert_int_equal(access(*state, F_OK), -1);
}

static void test_pipe(void **state)
{
	struct atomic_guard guard = {0};
	struct err err = ERR_INIT;
	char buf[16];
	unlink(*state);
	assert_int_equal(mkfifo(*state, 0600), 0);
	const int fd = open(*state, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	struct atomic_file f = open_new(*state, &guard);
	assert_true(f.stream);
	assert_int_equal(read(fd, buf, sizeof(buf)), 3); /* at once, and without a hole */
	assert_int_equal(atomic_file_commit(&f, 6, &err), 0);
	atomic_file_close(&f);
	close(fd);
	assert_int_equal(access(*state, F_OK), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_half_written, setup, teardown),
		cmocka_unit_test_setup_teardown(test_written, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ignored, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stopped, setup, teardown),
		cmocka_unit_test_setup_teardown(test_committed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_not_committed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pipe, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
