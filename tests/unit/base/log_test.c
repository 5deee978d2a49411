/* SPDX-License-Identifier: Apache-2.0 */
/* The log: lines on stderr, levels, escapes, the rate limit, repeats. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <hsmount/log.h>
#include <base/env.h>
#include <base/pool.h>

/* Captures standard error between begin() and end(). */
struct capture {
	int saved, fd;
	char text[64 << 10];
};

static void begin(struct capture *c)
{
	FILE *f = tmpfile();
	assert_non_null(f);
	c->fd = dup(fileno(f));
	fclose(f);
	fcntl(c->fd, F_SETFL, O_APPEND);
	fflush(stderr);
	c->saved = dup(STDERR_FILENO);
	dup2(c->fd, STDERR_FILENO);
}

static const char *end(struct capture *c)
{
	ssize_t n = pread(c->fd, c->text, sizeof(c->text) - 1, 0);
	dup2(c->saved, STDERR_FILENO);
	close(c->saved);
	close(c->fd);
	assert_true(n >= 0);
	c->text[n] = '\0';
	return c->text;
}

static unsigned int count_lines(const char *text)
{
	unsigned int n = 0;
	while ((text = strchr(text, '\n'))) {
		text++;
		n++;
	}
	return n;
}

static void lines_have_a_form(void **state)
{
	struct log *log = log_new("hsmount", LOG_LEVEL_DEBUG);
	struct capture c;
	begin(&c);
	log_error(log, "e %d", 1);
	log_warning(log, "text");
	log_info(log, "i");
	log_debug(log, "d");
	assert_string_equal(end(&c), "hsmount: error: e 1\n"
				     "hsmount: warning: text\n"
				     "hsmount: info: i\n"
				     "hsmount: debug: d\n");
	log_free(log);
}

static void levels_filter(void **state)
{
	struct log *log = log_new("x", LOG_LEVEL_WARNING);
	struct capture c;
	assert_int_equal(log_get_level(log), LOG_LEVEL_WARNING);
	begin(&c);
	log_warning(log, "1");
	log_info(log, "2");
	log_set_level(log, LOG_LEVEL_INFO);
	log_info(log, "3");
	log_debug(log, "4");
	log_set_level(log, LOG_LEVEL_ERROR);
	log_warning(log, "5");
	log_error(log, "6");
	assert_string_equal(end(&c), "x: warning: 1\nx: info: 3\nx: error: 6\n");
	log_free(log);
}

static void level_words(void **state)
{
	static const char *const words[] = {"error", "warning", "info", "debug"};
	enum log_level level;
	for (int i = 0; i < 4; i++) {
		assert_int_equal(log_level_parse(words[i], &level), 0);
		assert_int_equal(level, i);
	}
	assert_int_equal(log_level_parse("Error", &level), -EINVAL);
	assert_int_equal(log_level_parse("", &level), -EINVAL);
	assert_int_equal(log_level_parse("debugx", &level), -EINVAL);
}

static void no_line_can_be_forged(void **state)
{
	struct log *log = log_new("x", LOG_LEVEL_ERROR);
	struct capture c;
	begin(&c);
	log_error(log, "key %s", "a\nx: error: forged\x1b[2J");
	assert_string_equal(end(&c), "x: error: key a\\x0ax: error: forged\\x1b[2J\n");
	log_free(log);
}

static void long_lines_are_cut_but_end(void **state)
{
	struct log *log = log_new("x", LOG_LEVEL_ERROR);
	static char text[10000];
	struct capture c;
	size_t n;
	memset(text, 'a', sizeof(text) - 1);
	begin(&c);
	log_error(log, "%s", text);
	n = strlen(end(&c));
	assert_in_range(n, 1024, 4096);
	assert_int_equal(c.text[n - 1], '\n');
	assert_int_equal(count_lines(c.text), 1);
	log_free(log);
}

/* A log takes no struct env, so its clock is that of the system: struct env refers to a log. */
static void bursts_are_held_back_and_counted(void **state)
{
	const uint64_t step = 1000000000 / LOG_RATE;
	struct env env = env_real(NULL, NULL);
	struct log *log = log_new("x", LOG_LEVEL_WARNING);
	struct capture c;
	unsigned int lines, held = 0;
	uint64_t start, took;
	const char *later;
	begin(&c);
	env.sleep(&env, 4 * step); /* a pause does not enlarge the burst */
	start = env.now(&env);
	for (int i = 0; i < 1000; i++)
		log_warning(log, "%d again", i);
	took = env.now(&env) - start;
	log_error(log, "of another level");
	env.sleep(&env, 3 * step);
	log_warning(log, "later");
	log_warning(log, "last");
	end(&c);
	log_free(log);

	lines = count_lines(c.text) - 3; /* the lines with "again" */
	assert_in_range(lines, LOG_BURST, LOG_BURST + took / step + 1);
	assert_non_null(strstr(c.text, "x: error: of another level\n"));
	later = strstr(c.text, "x: warning: later (");
	assert_non_null(later);
	assert_int_equal(
		sscanf(later, "x: warning: later (%u lines of this level suppressed)", &held), 1);
	if (!strstr(c.text, "again (")) /* on a slow machine an earlier line reports some of them */
		assert_int_equal(held, 1000 - lines);
	assert_non_null(strstr(c.text, "x: warning: last\n"));
}

static void a_line_is_not_repeated_for_a_second(void **state)
{
	struct env env = env_real(NULL, NULL);
	struct log *log = log_new("x", LOG_LEVEL_WARNING);
	struct capture c;
	begin(&c);
	for (int i = 0; i < 256; i++) {
		log_error(log, "read %s: damaged", "a.h5");
		log_warning(log, "of another level");
	}
	log_error(log, "read %s: damaged", "b.h5");
	log_error(log, "read %s: damaged", "a.h5");
	log_error(log, "read %s: damaged", "a.h5");
	env.sleep(&env, (LOG_QUIET_MS + 50) * UINT64_C(1000000));
	log_error(log, "read %s: damaged", "a.h5");
	log_error(log, "last");
	assert_string_equal(end(&c),
			    "x: error: read a.h5: damaged\n"
			    "x: warning: of another level\n"
			    "x: error: read b.h5: damaged (previous line repeated 255 "
			    "times)\n"
			    "x: error: read a.h5: damaged\n"
			    "x: error: read a.h5: damaged (previous line repeated 1 times)\n"
			    "x: error: last\n");
	log_free(log);
}

static void repeats_take_no_tokens(void **state)
{
	struct log *log = log_new("x", LOG_LEVEL_ERROR);
	struct capture c;
	begin(&c);
	for (int i = 0; i < 1000; i++)
		log_error(log, "same");
	for (int i = 0; i < LOG_BURST - 1; i++)
		log_error(log, "%d", i);
	end(&c);
	assert_int_equal(count_lines(c.text), LOG_BURST);
	assert_null(strstr(c.text, "suppressed"));
	log_free(log);
}

static void an_empty_line_is_written(void **state)
{
	struct log *log = log_new("x", LOG_LEVEL_ERROR);
	struct capture c;
	begin(&c);
	log_error(log, "%s", "");
	assert_string_equal(end(&c), "x: error: \n");
	log_free(log);
}

static void errno_is_kept(void **state)
{
	struct log *log = log_new("x", LOG_LEVEL_ERROR);
	struct capture c;
	begin(&c);
	errno = ENOENT;
	log_error(log, "written");
	close(STDERR_FILENO); /* the next write fails */
	log_error(log, "lost");
	assert_int_equal(errno, ENOENT);
	assert_string_equal(end(&c), "x: error: written\n");
	log_free(log);
}

enum { WORKERS = 8, LINES = 10 };

struct worker {
	struct log *log;
	int number;
};

static void lines_name_the_mount(void **state)
{
	struct log *log = log_new("x", LOG_LEVEL_DEBUG);
	static char name[10000];
	struct capture c;
	begin(&c);
	log_set_name(log, "/mnt/a\nb");
	log_info(log, "1");
	memset(name, 'n', sizeof(name) - 1);
	log_set_name(log, name);
	log_info(log, "2");
	end(&c);
	assert_int_equal(strncmp(c.text, "x: /mnt/a\\x0ab: info: 1\nx: nnn", 30), 0);
	assert_non_null(strstr(c.text, "nnn: info: 2\n"));
	assert_int_equal(count_lines(c.text), 2);
	log_free(log);
}

/* A log of requests is complete. */
static void debug_lines_are_not_limited(void **state)
{
	struct log *log = log_new("x", LOG_LEVEL_DEBUG);
	struct capture c;
	begin(&c);
	for (int i = 0; i < 5 * LOG_BURST; i++)
		log_debug(log, "get");
	end(&c);
	assert_int_equal(count_lines(c.text), 5 * LOG_BURST);
	log_free(log);
}

/* All lines differ, because a repeated line would be held back. */
static void log_some(void *arg)
{
	const struct worker *w = arg;
	for (int i = 0; i < LINES; i++)
		log_error(w->log, "line %d from worker %d", i, w->number);
}

static void threads_share_it(void **state)
{
	struct log *log = log_new("x", LOG_LEVEL_ERROR);
	struct pool *pool = pool_new(4);
	struct worker workers[WORKERS];
	struct capture c;
	begin(&c);
	for (int i = 0; i < WORKERS; i++) {
		workers[i] = (struct worker){.log = log, .number = i};
		assert_int_equal(pool_submit(pool, log_some, &workers[i]), 0);
	}
	pool_free(pool);
	end(&c);
	assert_int_equal(count_lines(c.text), WORKERS * LINES);
	for (const char *p = c.text; *p; p = strchr(p, '\n') + 1)
		assert_memory_equal(p, "x: error: ", 10);
	log_free(log);
}

static void null_logs_nothing(void **state)
{
	log_error(NULL, "x");
	log_set_level(NULL, LOG_LEVEL_DEBUG);
	log_set_name(NULL, "x");
	log_to_syslog(NULL);
	log_free(NULL);
	assert_int_equal(log_get_level(NULL), LOG_LEVEL_ERROR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_have_a_form),
		cmocka_unit_test(levels_filter),
		cmocka_unit_test(level_words),
		cmocka_unit_test(no_line_can_be_forged),
		cmocka_unit_test(long_lines_are_cut_but_end),
		cmocka_unit_test(bursts_are_held_back_and_counted),
		cmocka_unit_test(a_line_is_not_repeated_for_a_second),
		cmocka_unit_test(repeats_take_no_tokens),
		cmocka_unit_test(an_empty_line_is_written),
		cmocka_unit_test(errno_is_kept),
		cmocka_unit_test(lines_name_the_mount),
		cmocka_unit_test(debug_lines_are_not_limited),
		cmocka_unit_test(threads_share_it),
		cmocka_unit_test(null_logs_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
