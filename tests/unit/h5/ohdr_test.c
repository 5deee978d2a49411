/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include <h5/ohdr.h>

#include "hex.h"

enum { ARENA_LIMIT = 256 << 20, FILE_SIZE = 1024 };

static void encode(struct emit *e, const void *h)
{
	h5_ohdr_encode(e, h);
}

static int read_memory(void *ctx, uint64_t offset, void *buf, size_t n, struct err *err)
{
	memcpy(buf, (const uint8_t *)ctx + offset, n);
	return 0;
}

/* A small file of zeros. */
struct file {
	uint8_t bytes[FILE_SIZE];
	struct source source;
	struct h5_file file;
	struct arena *a;
};

static int setup(void **state)
{
	struct file *f = calloc(1, sizeof(*f));
	if (!f)
		return -1;
	f->source = (struct source){.size = FILE_SIZE, .read_at = read_memory, .ctx = f->bytes};
	f->file = h5_file_of(&f->source);
	f->a = arena_new(ARENA_LIMIT);
	*state = f;
	return f->a ? 0 : -1;
}

static int teardown(void **state)
{
	struct file *f = *state;
	arena_free(f->a);
	free(f);
	return 0;
}

static void put(struct file *f, size_t at, const char *hex)
{
	size_t n;
	uint8_t *bytes = hex_bytes(hex, &n);
	assert_true(at + n <= FILE_SIZE);
	memcpy(f->bytes + at, bytes, n);
	free(bytes);
}

/* Writes a chunk and its checksum. */
static void put_summed(struct file *f, size_t at, const char *hex)
{
	put(f, at, hex);
	struct emit e = emit_to(f->bytes, FILE_SIZE);
	e.pos = at + strlen(hex) / 2;
	emit_checksum(&e, at);
	assert_false(e.bad);
}

static void assert_fails(struct file *f, uint64_t addr, int expected)
{
	struct h5_ohdr h;
	struct err err = ERR_INIT;
	int rc = h5_ohdr_decode(&f->file, addr, f->a, &h, &err);
	if (rc != expected || err.code != rc)
		fail_msg("%d (%s), expected %d", rc, err.msg, expected);
	assert_int_equal(h.n, 0);
}

/* Headers that HDF5 1.10.8 wrote. */
static const char committed_half[] =
	"4f48445202201e6c016b1e6c016b1e6c016b1e6c016b180314000511200f0002000000000010000a05000a0f00"
	"00005d1bd541";
static const char with_nil[] =
	"4f48445202201e6c016b1e6c016b1e6c016b1e6c016b16030c000510080000080000000000400000020000000"
	"02023c304";

static void test_library_header(void **state)
{
	struct file *f = *state;
	put(f, 8, committed_half);
	struct h5_ohdr h;
	assert_int_equal(h5_ohdr_decode(&f->file, 8, f->a, &h, NULL), 0);
	assert_true(h.has_times);
	assert_int_equal(h.atime, 0x6b016c1e);
	assert_false(h.attr_order_tracked || h.attr_order_indexed || h.has_phase);
	assert_int_equal(h.n, 1);
	assert_int_equal(h.msgs[0].type, H5_MSG_DATATYPE);
	assert_int_equal(h.msgs[0].flags, H5_MSG_CONSTANT | H5_MSG_DONT_SHARE);
	assert_int_equal(h.msgs[0].len, 20);
	assert_int_equal(h.msgs[0].body[0], 0x11);
	assert_encodes("header", encode, &h, committed_half);
}

static void test_nil_is_left_out(void **state)
{
	struct file *f = *state;
	put(f, 0, with_nil);
	struct h5_ohdr h;
	assert_int_equal(h5_ohdr_decode(&f->file, 0, f->a, &h, NULL), 0);
	assert_int_equal(h.n, 1);
	assert_int_equal(h.msgs[0].len, 12);
}

/* All members, all widths of the size of chunk 0, and counting without bodies. */
static void test_round_trip(void **state)
{
	struct file *f = *state;
	uint8_t body[65535];
	memset(body, 0x5a, sizeof(body));
	static const struct {
		uint32_t len, nmsgs;
		size_t width;
	} rows[] = {{0, 0, 1},	{0, 1, 1},     {249, 1, 1},   {250, 1, 2},
		    {10, 3, 1}, {65529, 1, 2}, {65530, 1, 4}, {65535, 2, 4}};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct h5_msg msgs[3];
		for (uint16_t k = 0; k < 3; k++)
			msgs[k] = (struct h5_msg){.type = 0x42,
						  .flags = k,
						  .corder = k,
						  .len = rows[i].len,
						  .body = NULL};
		struct h5_ohdr h = {
			.attr_order_tracked = true,
			.attr_order_indexed = true,
			.has_times = true,
			.atime = 1,
			.mtime = 2,
			.ctime = 3,
			.btime = UINT32_MAX,
			.has_phase = true,
			.max_compact = 8,
			.min_dense = 6,
			.n = rows[i].nmsgs,
			.msgs = msgs,
		};
		struct emit e = emit_count();
		h5_ohdr_encode(&e, &h);
		size_t size = e.pos;
		assert_int_equal(size, 6 + 16 + 4 + rows[i].width +
					       (size_t)rows[i].nmsgs * (6 + rows[i].len) + 4);
		for (uint32_t k = 0; k < 3; k++)
			msgs[k].body = body;
		uint8_t *buf = malloc(size);
		e = emit_to(buf, size);
		h5_ohdr_encode(&e, &h);
		assert_false(e.bad);
		assert_int_equal(e.pos, size);

		struct source source = {.size = size, .read_at = read_memory, .ctx = buf};
		const struct h5_file file = h5_file_of(&source);
		struct h5_ohdr back;
		assert_int_equal(h5_ohdr_decode(&file, 0, f->a, &back, NULL), 0);
		assert_true(back.attr_order_tracked && back.attr_order_indexed);
		assert_true(back.has_times && back.has_phase);
		assert_int_equal(back.atime, 1);
		assert_int_equal(back.mtime, 2);
		assert_int_equal(back.ctime, 3);
		assert_int_equal(back.btime, UINT32_MAX);
		assert_int_equal(back.max_compact, 8);
		assert_int_equal(back.min_dense, 6);
		assert_int_equal(back.n, rows[i].nmsgs);
		for (uint32_t k = 0; k < back.n; k++) {
			assert_int_equal(back.msgs[k].type, 0x42);
			assert_int_equal(back.msgs[k].flags, k);
			assert_int_equal(back.msgs[k].corder, k);
			assert_int_equal(back.msgs[k].len, rows[i].len);
			assert_memory_equal(back.msgs[k].body, body, rows[i].len);
		}
		free(buf);
	}
}

static void test_body_over_64k(void **state)
{
	struct h5_msg m = {.type = H5_MSG_ATTRIBUTE, .len = 65536};
	struct h5_ohdr h = {.n = 1, .msgs = &m};
	struct emit e = emit_count();
	h5_ohdr_encode(&e, &h);
	assert_true(e.bad);
}

/* Chunk 0 has a message 0x41, a continuation to 24 bytes at 100, and a message 0x42. The chunk at
 * 100 has a continuation to 15 bytes at 200, and no gap. The chunk at 200 has a message 0x43 and a
 * gap of 2 bytes. */
#define HEADER	    "4f48445202001e"
#define MESSAGE(t)  t "01000077"
#define CONTINUE_TO "10100000"
#define AT_100_28   "64000000000000001c00000000000000"
#define AT_200_15   "c8000000000000000f00000000000000"
#define CHUNK	    "4f43484b"

static void put_chain(struct file *f)
{
	put_summed(f, 0, HEADER MESSAGE("41") CONTINUE_TO AT_100_28 MESSAGE("42"));
	put_summed(f, 100, CHUNK CONTINUE_TO AT_200_15);
	put_summed(f, 200, CHUNK MESSAGE("43") "0000");
}

static void test_continuations(void **state)
{
	struct file *f = *state;
	put_chain(f);
	struct h5_ohdr h;
	struct err err = ERR_INIT;
	if (h5_ohdr_decode(&f->file, 0, f->a, &h, &err))
		fail_msg("%s", err.msg);
	assert_int_equal(h.n, 3);
	assert_int_equal(h.msgs[0].type, 0x41);
	assert_int_equal(h.msgs[1].type, 0x42);
	assert_int_equal(h.msgs[2].type, 0x43);
	assert_int_equal(h.msgs[2].body[0], 0x77);
}

static void test_continuation_defects(void **state)
{
	struct file *f = *state;
	put_chain(f);
	put_summed(f, 200, "4f434849" MESSAGE("43") "0000"); /* no signature */
	assert_fails(f, 0, -EIO);
	put_chain(f);
	f->bytes[200 + 4 + 4]++; /* checksum */
	assert_fails(f, 0, -EIO);
	put_chain(f);
	put_summed(f, 100, CHUNK CONTINUE_TO "64000000000000001c00000000000000"); /* to itself */
	assert_fails(f, 0, -EIO);
	put_summed(f, 100, CHUNK CONTINUE_TO "00000000000000002900000000000000"); /* to the start */
	assert_fails(f, 0, -EIO);
	put_summed(f, 100, CHUNK CONTINUE_TO "ffffffffffffffff1c00000000000000"); /* nowhere */
	assert_fails(f, 0, -EIO);
	put_summed(f, 100, CHUNK CONTINUE_TO "f5030000000000001c00000000000000"); /* past the end */
	assert_fails(f, 0, -EIO);
	put_summed(f, 100, CHUNK CONTINUE_TO "c8000000000000000700000000000000"); /* too short */
	assert_fails(f, 0, -EIO);
	put_summed(f, 100, CHUNK CONTINUE_TO "c800000000000000ffffffffffffffff"); /* too long */
	assert_fails(f, 0, -EIO);
	put_summed(f, 100,
		   CHUNK "100f0000"
			 "c80000000000000000000000000000"
			 "00"); /* body cut */
	assert_fails(f, 0, -EIO);
}

static const struct {
	const char *name;
	const char *hex; /* without checksum */
	int rc;
} malformed[] = {
	{"no signature", "4f48444f020005" MESSAGE("41"), -EIO},
	{"version 3", "4f484452030005" MESSAGE("41"), -EOPNOTSUPP},
	{"reserved flag", "4f484452024005" MESSAGE("41"), -EIO},
	{"message longer than its chunk", "4f4844520200054102000077", -EIO},
	{"chunk longer than the file", "4f484452020105ff" MESSAGE("41"), -EIO},
	{"chunk of 2^64 - 1 bytes", "4f4844520203ffffffffffffffff" MESSAGE("41"), -EIO},
	{"chunk of 65 MiB", "4f484452020200001004" MESSAGE("41"), -EIO},
};

static void test_malformed(void **state)
{
	struct file *f = *state;
	for (size_t i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++) {
		print_message("%s\n", malformed[i].name);
		memset(f->bytes, 0, FILE_SIZE);
		put_summed(f, 0, malformed[i].hex);
		assert_fails(f, 0, malformed[i].rc);
	}
}

static void test_wrong_checksum(void **state)
{
	struct file *f = *state;
	size_t n = strlen(committed_half) / 2;
	for (size_t i = 6; i < n; i++) {
		put(f, 0, committed_half);
		f->bytes[i] ^= 0x10;
		struct h5_ohdr h;
		assert_int_equal(h5_ohdr_decode(&f->file, 0, f->a, &h, NULL), -EIO);
	}
}

static void test_file_ends(void **state)
{
	struct file *f = *state;
	put(f, 0, committed_half);
	size_t n = strlen(committed_half) / 2;
	for (f->source.size = 0; f->source.size < n; f->source.size++)
		assert_fails(f, 0, -EIO);
	struct h5_ohdr h;
	assert_int_equal(h5_ohdr_decode(&f->file, 0, f->a, &h, NULL), 0);
	assert_fails(f, n + 1, -EIO);
	assert_fails(f, H5_UNDEF, -EIO);
}

/* Errors of the source are returned. */
static int read_nothing(void *ctx, uint64_t offset, void *buf, size_t n, struct err *err)
{
	return err_set(err, -ETIMEDOUT, "no answer");
}

static void test_source_error(void **state)
{
	struct file *f = *state;
	f->source.read_at = read_nothing;
	assert_fails(f, 0, -ETIMEDOUT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_library_header, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nil_is_left_out, setup, teardown),
		cmocka_unit_test_setup_teardown(test_round_trip, setup, teardown),
		cmocka_unit_test_setup_teardown(test_body_over_64k, setup, teardown),
		cmocka_unit_test_setup_teardown(test_continuations, setup, teardown),
		cmocka_unit_test_setup_teardown(test_continuation_defects, setup, teardown),
		cmocka_unit_test_setup_teardown(test_malformed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_wrong_checksum, setup, teardown),
		cmocka_unit_test_setup_teardown(test_file_ends, setup, teardown),
		cmocka_unit_test_setup_teardown(test_source_error, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
