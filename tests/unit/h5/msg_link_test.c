/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include <h5/message.h>

#include "message_cases.h"

static void encode(struct emit *e, const void *l)
{
	h5_link_encode(e, l);
}

static int decode(struct cursor *c, struct arena *a, void *out, struct err *err)
{
	return h5_link_decode(&plain, c, a, out, err);
}

static const struct message_codec codec = {
	.size = sizeof(struct h5_link),
	.decode = decode,
	.encode = encode,
};

static void assert_text(const char *name, const char *got, const char *expected)
{
	if (!got != !expected || (got && strcmp(got, expected) != 0))
		fail_msg("%s: \"%s\" instead of \"%s\"", name, got ? got : "", expected);
}

/* As HDF5 1.10.8 writes them. */
static const struct {
	const char *what;
	const char *hex;
	struct h5_link l;
} vectors[] = {
	{"hard",
	 "01000468617264d033000000000000",
	 {.name = "hard", .cls = LINK_HARD, .addr = 0x33d0}},
	{"hard, ordered",
	 "010403000000000000000568656c6c6f7d42000000000000",
	 {.name = "hello", .has_corder = true, .corder = 3, .addr = 0x427d}},
	{"hard, UTF-8",
	 "011001066e61c3af7665d033000000000000",
	 {.name = "na\xc3\xafve", .utf8 = true, .addr = 0x33d0}},
	{"soft",
	 "01080104736f667409002f6e6f2f7768657265",
	 {.name = "soft", .cls = LINK_SOFT, .addr = H5_UNDEF, .path = "/no/where"}},
	{"soft, UTF-8, ordered",
	 "011c0105000000000000000106736f6674c3b804002f6ec3b8",
	 {.name = "soft\xc3\xb8",
	  .utf8 = true,
	  .has_corder = true,
	  .corder = 5,
	  .cls = LINK_SOFT,
	  .addr = H5_UNDEF,
	  .path = "/n\xc3\xb8"}},
	{"external",
	 "010840036578740f00006f746865722e6835002f612f6200",
	 {.name = "ext",
	  .cls = LINK_EXTERNAL,
	  .addr = H5_UNDEF,
	  .path = "/a/b",
	  .file = "other.h5"}},
};

static void compare(const char *what, const void *got, const void *expected)
{
	const struct h5_link *l = got, *e = expected;
	assert_text(what, l->name, e->name);
	assert_int_equal(l->name_len, strlen(e->name));
	assert_int_equal(l->utf8, e->utf8);
	assert_int_equal(l->has_corder, e->has_corder);
	assert_int_equal(l->corder, e->corder);
	assert_int_equal(l->cls, e->cls);
	assert_int_equal(l->addr, e->addr);
	assert_text(what, l->path, e->path);
	assert_text(what, l->file, e->file);
}

static void test_library_vectors(void **state)
{
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++)
		assert_message(&codec, vectors[i].what, vectors[i].hex, vectors[i].hex, compare,
			       &vectors[i].l);
}

/* The length of the name has 1, 2 or 4 bytes. */
static void test_name_widths(void **state)
{
	static const struct {
		size_t len, width;
	} rows[] = {{1, 1}, {255, 1}, {256, 2}, {65535, 2}, {65536, 4}};
	struct arena *a = arena_new(MESSAGE_ARENA_LIMIT);
	char *name = malloc(65536);
	memset(name, 'x', 65536);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct h5_link l = {.name = name, .name_len = rows[i].len, .addr = 8}, back;
		struct emit e = emit_count();
		h5_link_encode(&e, &l);
		assert_int_equal(e.pos, 2 + rows[i].width + rows[i].len + 8);
		uint8_t *buf = malloc(e.pos);
		e = emit_to(buf, e.pos);
		h5_link_encode(&e, &l);
		struct cursor c = cursor_of(buf, e.pos);
		assert_int_equal(h5_link_decode(&plain, &c, a, &back, NULL), 0);
		assert_int_equal(back.name_len, rows[i].len);
		assert_memory_equal(back.name, name, rows[i].len);
		assert_int_equal(back.addr, 8);
		free(buf);
	}
	free(name);
	arena_free(a);
}

/* The data of a user-defined link are skipped. */
static void test_user_defined(void **state)
{
	struct arena *a = arena_new(MESSAGE_ARENA_LIMIT);
	size_t n;
	uint8_t *bytes = hex_bytes("01084104736f667409002f6e6f2f7768657265", &n);
	struct h5_link l;
	assert_int_equal(decode_message(&codec, "user-defined", bytes, n, a, &l), 0);
	assert_int_equal(l.cls, LINK_USER);
	assert_string_equal(l.name, "soft");
	assert_null(l.path);
	assert_fails_truncated(&codec, "user-defined", bytes, n);
	free(bytes);
	arena_free(a);
}

static const struct malformed_message malformed[] = {
	{"nothing", "", -EIO},
	{"version 0", "00000468617264d033000000000000", -EOPNOTSUPP},
	{"version 2", "02000468617264d033000000000000", -EOPNOTSUPP},
	{"reserved flag", "01200468617264d033000000000000", -EIO},
	{"character set 2", "011002066e61c3af7665d033000000000000", -EIO},
	{"empty name", "010000d033000000000000", -EIO},
	{"NUL in the name", "01000468610064d033000000000000", -EIO},
	{"name longer than the message", "01007f68617264d033000000000000", -EIO},
	{"name of 2^64 - 1 bytes", "0103ffffffffffffffff68617264d033000000000000", -EIO},
	{"creation order cut off", "010403000000", -EIO},
	{"address cut off", "01000468617264d0330000000000", -EIO},
	{"path cut off", "01080104736f667409002f6e6f2f77686572", -EIO},
	{"empty path", "01080104736f66740000", -EIO},
	{"NUL in the path", "01080104736f667409002f6e6f2f7700657265", -EIO},
	{"reserved type", "01080204736f667409002f6e6f2f7768657265", -EIO},
	{"user-defined data cut off", "01084104736f667409002f6e6f2f77686572", -EIO},
	{"external version 1", "010840036578740f00106f746865722e6835002f612f6200", -EOPNOTSUPP},
	{"external path without NUL", "010840036578740e00006f746865722e6835002f612f62", -EIO},
	{"external without a path", "010840036578740a00006f746865722e683500", -EIO},
	{"external value cut off", "010840036578740f00006f746865722e6835002f612f", -EIO},
};

static void test_malformed(void **state)
{
	assert_malformed(&codec, malformed, sizeof(malformed) / sizeof(malformed[0]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_library_vectors),
		cmocka_unit_test(test_name_widths),
		cmocka_unit_test(test_user_defined),
		cmocka_unit_test(test_malformed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
