/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/log_signal.h"

/* Returns what is written to standard error while fn runs. */
static void capture(void (*fn)(struct log *log), struct log *log, char *out, size_t size)
{
	int ends[2];
	assert_int_equal(pipe(ends), 0);
	fflush(stderr);
	const int saved = dup(STDERR_FILENO);
	assert_int_equal(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
	fn(log);
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(ends[1]);
	const ssize_t n = read(ends[0], out, size - 1);
	close(ends[0]);
	out[n > 0 ? n : 0] = '\0';
}

/* Once through all levels. Each change is logged at the new level. */
static void every_level_in_turn(void **state)
{
	static const struct {
		enum log_level from, to;
		const char *line;
	} steps[] = {
		{LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, "t: warning: the log level is warning now\n"},
		{LOG_LEVEL_WARNING, LOG_LEVEL_INFO, "t: info: the log level is info now\n"},
		{LOG_LEVEL_INFO, LOG_LEVEL_DEBUG, "t: debug: the log level is debug now\n"},
		{LOG_LEVEL_DEBUG, LOG_LEVEL_ERROR, "t: error: the log level is error now\n"},
	};
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		char said[256];
		struct log *log = log_new("t", steps[i].from);
		capture(log_signal_advance, log, said, sizeof(said));
		assert_int_equal(log_get_level(log), steps[i].to);
		assert_string_equal(said, steps[i].line);
		log_free(log);
	}
}

static void wait_for_level(const struct log *log, enum log_level level)
{
	for (int i = 0; i < 1000 && log_get_level(log) != level; i++)
		nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
	assert_int_equal(log_get_level(log), level);
}

static void send_signals(struct log *log)
{
	struct log_signal s = {0};
	assert_int_equal(log_signal_start(&s, log, NULL), 0);
	kill(getpid(), SIGUSR1);
	wait_for_level(log, LOG_LEVEL_DEBUG);
	kill(getpid(), SIGUSR1);
	wait_for_level(log, LOG_LEVEL_ERROR);
	log_signal_stop(&s);
	log_signal_stop(&s);
}

static void the_signal_moves_the_level(void **state)
{
	char said[256];
	struct log *log = log_new("t", LOG_LEVEL_INFO);
	log_signal_block();
	capture(send_signals, log, said, sizeof(said));
	assert_string_equal(said, "t: debug: the log level is debug now\n"
				  "t: error: the log level is error now\n");
	/* Stopping does not change the level. */
	assert_int_equal(log_get_level(log), LOG_LEVEL_ERROR);
	log_free(log);
}

static void what_was_not_started_can_be_stopped(void **state)
{
	struct log_signal s = {0};
	log_signal_stop(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_level_in_turn),
		cmocka_unit_test(the_signal_moves_the_level),
		cmocka_unit_test(what_was_not_started_can_be_stopped),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
