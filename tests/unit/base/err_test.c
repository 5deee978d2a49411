/* SPDX-License-Identifier: Apache-2.0 */
/* Errors: messages are stored, escaped and cut. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include <hsmount/err.h>

static void set_replaces(void **state)
{
	struct err err = ERR_INIT;
	assert_int_equal(err_set(&err, -EIO, "first %d", 1), -EIO);
	assert_int_equal(err_set(&err, -ENOENT, "second"), -ENOENT);
	assert_int_equal(err.code, -ENOENT);
	assert_string_equal(err.msg, "second");
	/* The old message may be an argument of the new one. */
	err_set(&err, -EIO, "<%s>", err.msg);
	assert_string_equal(err.msg, "<second>");
}

static void wrap_prefixes(void **state)
{
	struct err err = ERR_INIT;
	err_set(&err, -EIO, "bad frame");
	assert_int_equal(err_wrap(&err, -EINVAL, "chunk %s", "3_4"), -EIO);
	assert_int_equal(err_wrap(&err, -EINVAL, "dataset d"), -EIO);
	assert_string_equal(err.msg, "dataset d: chunk 3_4: bad frame");
}

static void wrap_of_silence_takes_the_code(void **state)
{
	struct err err = ERR_INIT;
	assert_int_equal(err_wrap(&err, -ENOMEM, "reading"), -ENOMEM);
	assert_int_equal(err.code, -ENOMEM);
	assert_string_equal(err.msg, "reading");
}

static void errno_has_words(void **state)
{
	struct err err = ERR_INIT;
	assert_int_equal(err_errno(&err, -ENOENT, "open %s", "x"), -ENOENT);
	assert_string_equal(err.msg, "open x: No such file or directory");
}

/* The time belongs to one error: context does not change it, another error does not have it. */
static void another_error_has_no_retry_time(void **state)
{
	struct err err = ERR_INIT;
	err_set(&err, -EAGAIN, "busy");
	err.retry_after_ms = 1500;
	err_wrap(&err, -EIO, "get");
	assert_int_equal(err.retry_after_ms, 1500);
	err_errno(&err, -EIO, "read");
	assert_int_equal(err.retry_after_ms, 0);
	err.retry_after_ms = 1500;
	err_set(&err, -EIO, "other");
	assert_int_equal(err.retry_after_ms, 0);
}

static void null_carries_the_code(void **state)
{
	struct err err = ERR_INIT;
	assert_int_equal(err_set(NULL, -EIO, "x"), -EIO);
	assert_int_equal(err_wrap(NULL, -EIO, "x"), -EIO);
	assert_int_equal(err_errno(NULL, -EIO, "x"), -EIO);
	err_copy(NULL, &err);
	err_copy(&err, NULL);
}

static void foreign_bytes_are_printable(void **state)
{
	static const struct {
		const char *in, *out;
	} rows[] = {
		{"plain", "plain"},
		{"a\nb\tc", "a\\x0ab\\x09c"},
		{"\x1b[31m\x7f", "\\x1b[31m\\x7f"},
		{"Gr\xc3\xb6\xc3\x9f"
		 "e \xe2\x82\xac \xf0\x9f\x8c\x8d",
		 "Gr\xc3\xb6\xc3\x9f"
		 "e \xe2\x82\xac \xf0\x9f\x8c\x8d"},
		{"c1 \xc2\x9b"
		 "31m",
		 "c1 \\xc2\\x9b31m"},
		{"no-break \xc2\xa0", "no-break \xc2\xa0"},
		{"stray \xff\x80", "stray \\xff\\x80"},
		{"overlong \xc0\xaf", "overlong \\xc0\\xaf"},
		{"surrogate \xed\xb3\xa9", "surrogate \\xed\\xb3\\xa9"},
		{"cut \xe2\x82", "cut \\xe2\\x82"},
		{"100%s", "100%s"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct err err = ERR_INIT;
		err_set(&err, -EIO, "%s", rows[i].in);
		assert_string_equal(err.msg, rows[i].out);
		/* An escaped message is not escaped again. */
		err_wrap(&err, -EIO, "%s", rows[i].in);
		assert_int_equal(strlen(err.msg), 2 * strlen(rows[i].out) + 2);
	}
}

static void the_end_is_cut(void **state)
{
	struct err err = ERR_INIT;
	char text[2 * ERR_MAX];
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	err_set(&err, -EIO, "%s", text);
	assert_int_equal(strlen(err.msg), ERR_MAX - 1);
	err_wrap(&err, -EIO, "front");
	assert_int_equal(strlen(err.msg), ERR_MAX - 1);
	assert_memory_equal(err.msg, "front: xxx", 10);
}

static void no_character_is_cut_in_two(void **state)
{
	char text[2 * ERR_MAX];
	/* 4-byte characters in each of four positions relative to the end. */
	for (size_t shift = 0; shift < 4; shift++) {
		struct err err = ERR_INIT;
		size_t n = shift;
		memset(text, 'x', shift);
		for (; n + 4 < sizeof(text); n += 4)
			memcpy(text + n, "\xf0\x9f\x8c\x8d", 4);
		text[n] = '\0';
		err_set(&err, -EIO, "%s", text);
		n = strlen(err.msg);
		assert_in_range(n, ERR_MAX - 4, ERR_MAX - 1);
		assert_int_equal((n - shift) % 4, 0);
		assert_null(strchr(err.msg, '\\'));
	}
}

static void copy_copies(void **state)
{
	struct err a = ERR_INIT, b = ERR_INIT;
	err_set(&a, -EIO, "why");
	err_copy(&b, &a);
	assert_int_equal(b.code, -EIO);
	assert_string_equal(b.msg, "why");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(set_replaces),
		cmocka_unit_test(wrap_prefixes),
		cmocka_unit_test(wrap_of_silence_takes_the_code),
		cmocka_unit_test(errno_has_words),
		cmocka_unit_test(another_error_has_no_retry_time),
		cmocka_unit_test(null_carries_the_code),
		cmocka_unit_test(foreign_bytes_are_printable),
		cmocka_unit_test(the_end_is_cut),
		cmocka_unit_test(no_character_is_cut_in_two),
		cmocka_unit_test(copy_copies),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
