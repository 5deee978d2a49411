/* SPDX-License-Identifier: Apache-2.0 */
/* What is left of a half-written file when a signal ends the program. */
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
#include <sys/wait.h>
#include <unistd.h>

#include "undo.h"

static int setup(void **state)
{
	char *file = strdup("/tmp/undo_test.XXXXXX");
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
	struct undo undo = {0};
	alarm(20);
	signal(e->number, e->ignored ? SIG_IGN : SIG_DFL);
	undo_start(&undo);
	undo_lock(&undo);
	kill(getpid(), e->number); /* waits */
	undo_unlock(&undo, e->half_written ? file : NULL);
	if (!e->ignored)
		pause();
	undo_stop(&undo);
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
		struct undo undo = {0};
		alarm(20);
		undo_start(&undo);
		undo_stop(&undo);
		kill(getpid(), SIGINT);
		_exit(3);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_half_written, setup, teardown),
		cmocka_unit_test_setup_teardown(test_written, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ignored, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stopped, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
