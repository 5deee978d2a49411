/* SPDX-License-Identifier: Apache-2.0 */
/* Opening files: superblock extension, driver information, claims. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include <h5/claims.h>
#include "mem_src.h"

#include "sohm_file.h"

/* The beginnings of files that HDF5 1.10.8 wrote, with the version bounds "earliest" (superblock 0
 * or 1) and "latest" (3). K of symbol table nodes is 2, of group B-trees 3, of chunk B-trees 5. */
static const char k_v1[] =
	"894844460d0a1a0a01000000000808000200030000000000050000000000000000000000ffffffffffffffff"
	"8401000000000000ffffffffffffffff0000000000000000640000000000000001000000000000008c000000"
	"000000000c010000000000000100010001000000180000000000000011001000000000008c00000000000000"
	"0c01";
static const char k_v3[] =
	"894844460d0a1a0a0308080000000000000000003000000000000000f4000000000000006100000000000000"
	"d6ddf3554f48445202209f2d036b9f2d036b9f2d036b9f2d036b161307000500050003000200000700000000"
	"00000000001593a526";
/* The first files of the family driver and of the split (multi-file) driver. */
static const char family_v0[] =
	"894844460d0a1a0a000000000008080004001000000000000000000000000000ffffffffffffffff38030000"
	"000000006000000000000000000000000000000078000000000000000100000000000000a000000000000000"
	"c00200000000000000000000080000004e43534166616d690000010000000000010001000100000018000000"
	"000000001100100000000000a000000000000000c002";
static const char family_v3[] =
	"894844460d0a1a0a0308080000000000000000003000000000000000f5000000000000006200000000000000"
	"0a6ea45d4f48445202209f2d036b9f2d036b9f2d036b9f2d036b1714130004004e43534166616d6908000000"
	"010000000000c6e28e5e";
static const char split_v0[] =
	"894844460d0a1a0a000000000008080004001000000000000000000000000000ffffffffffffffff68030000"
	"0000000060000000000000000000000000000000a8000000000000000100000000000000d000000000000000"
	"f00200000000000000000000380000004e4353416d756c740101030301010000000000000000000068030000"
	"00000000ffffffffffffff7f000000000000000025732d6d2e68350025732d722e683500";
static const char split_v3[] =
	"894844460d0a1a0a030808000000000000000000300000000000000025010000000000009200000000000000"
	"989ae1c24f48445202209f2d036b9f2d036b9f2d036b9f2d036b4714430004004e4353416d756c7438000101"
	"03030101000000000000000000002501000000000000ffffffffffffff7f000000000000000025732d6d2e68"
	"350025732d722e683500883e882e";

enum { HEADER = 48 };

/* One of these files, with an optional change whose bytes are under the checksum of the extension,
 * which begins at HEADER and ends with it at summed. */
static const struct row {
	const char *name, *hex;
	size_t size;
	size_t at;
	const char *change;
	size_t summed;
	int rc;
} rows[] = {
	{"K in the superblock", k_v1, 388, 0, "", 0, 0},
	{"K in the extension", k_v3, 244, 0, "", 0, 0},
	{"family of one file", family_v0, 824, 0, "", 0, 0},
	{"family of one file, extension", family_v3, 245, 0, "", 0, 0},
	{"family of two files", family_v0, 823, 0, "", 0, -EOPNOTSUPP},
	{"family of two files, extension", family_v3, 244, 0, "", 0, -EOPNOTSUPP},
	{"split file", split_v0, 872, 0, "", 0, -EOPNOTSUPP},
	{"split file, extension", split_v3, 293, 0, "", 0, -EOPNOTSUPP},
	{"unknown driver", split_v0, 872, 104, "58", 0, 0},
	{"driver information of version 1", split_v0, 872, 96, "01", 0, -EOPNOTSUPP},
	{"driver information past the end", split_v0, 872, 101, "03", 0, -EIO},
	{"driver information that is longer than the file", split_v0, 872, 100, "f9020000", 0,
	 -EIO},
	{"driver message of version 1", split_v3, 293, 75, "01", 142, -EOPNOTSUPP},
	{"driver message that is cut off", split_v3, 293, 84, "39", 142, -EIO},
	{"cache image", split_v3, 293, 71, "18", 142, -EOPNOTSUPP},
	{"no cache image", split_v3, 293, 71, "1843000400ffffffffffffffff", 142, 0},
	{"cache image of version 1", split_v3, 293, 71, "1843000401ffffffffffffffff", 142,
	 -EOPNOTSUPP},
	{"K of version 1", k_v3, 244, 75, "01", 93, -EOPNOTSUPP},
	{"chunk K of 0", k_v3, 244, 76, "0000", 93, -EIO},
	{"group K of 0", k_v3, 244, 78, "0000", 93, -EIO},
	{"symbol table node K of 0", k_v3, 244, 80, "0000", 93, -EIO},
	{"no root group", k_v1, 388, 68, "ffffffffffffffff", 0, -EIO},
};

static void open_row(const struct row *row, struct memory_file *f)
{
	memory_open(f, row->size);
	memory_put(f, 0, row->hex);
	memory_put(f, row->at, row->change);
	if (row->summed) {
		struct emit e = emit_to(f->bytes, f->size);
		e.pos = row->summed;
		emit_checksum(&e, HEADER);
	}
}

static void test_rows(void **state)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct memory_file f;
		struct err err = ERR_INIT;
		open_row(&rows[i], &f);
		int rc = h5_file_open(&f.file, &f.source, &err);
		if (rc != rows[i].rc || err.code != rc)
			fail_msg("%s: %d (%s)", rows[i].name, rc, err.msg);
		memory_close(&f);
	}
}

static void test_k(void **state)
{
	for (size_t i = 0; i < 2; i++) {
		struct memory_file f;
		open_row(&rows[i], &f);
		assert_int_equal(h5_file_open(&f.file, &f.source, NULL), 0);
		assert_int_equal(f.file.leaf_k, 2);
		assert_int_equal(f.file.internal_k, 3);
		assert_int_equal(f.file.chunk_k, 5);
		assert_int_equal(f.file.superblock_size, i ? 48 : 100);
		assert_true(f.file.extension == (i ? 48 : H5_UNDEF));
		assert_true(f.file.driver_info == H5_UNDEF);
		assert_int_equal(f.file.root, i ? 97 : 100);
		memory_close(&f);
	}
}

static void test_shared_messages(void **state)
{
	static const struct {
		uint8_t indexes;
		int rc;
	} counts[] = {{2, 0}, {8, 0}, {0, -EIO}, {9, -EIO}};
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		struct memory_file f;
		memory_open_sohm(&f);
		struct emit e = emit_to(f.bytes, f.size);
		assert_int_equal(f.bytes[71], 0x0f);
		f.bytes[75 + 9] = counts[i].indexes;
		e.pos = 93;
		emit_checksum(&e, HEADER);
		assert_int_equal(h5_file_open(&f.file, &f.source, NULL), counts[i].rc);
		if (!counts[i].rc) {
			assert_int_equal(f.file.sohm, 97);
			assert_int_equal(f.file.sohm_indexes, counts[i].indexes);
		}
		memory_close(&f);
	}
}

/* Superblock, extension and driver information are claimed once, although pages are missing. */
static void test_claims(void **state)
{
	static const struct {
		size_t row;
		uint64_t end; /* of what is claimed */
	} cases[] = {{0, 100}, {1, 97}, {2, 120}, {3, 98}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct memory_file f;
		struct mem_src m;
		struct err err = ERR_INIT;
		int rc;
		open_row(&rows[cases[i].row], &f);
		mem_src_init(&m, f.bytes, f.size);
		assert_int_equal(h5_file_open(&m.file, &m.source, NULL), 0);
		assert_null(m.file.claims);
		assert_int_equal(h5_file_claim(&m.file, NULL), 0); /* without claims */
		struct h5_claims *claims = h5_claims_new(NULL);
		m.file.claims = claims;
		mem_src_hide(&m, 16);
		while ((rc = h5_file_claim(&m.file, &err)) == -EAGAIN)
			mem_src_fetch(&m);
		assert_int_equal(rc, 0);
		assert_int_equal(h5_claim(claims, cases[i].end, 8, "test", NULL), 0);
		assert_int_equal(h5_claims_check(claims, NULL), 0);
		rc = h5_claim(claims, cases[i].end - 1, 1, "test", NULL);
		assert_int_equal(rc ? rc : h5_claims_check(claims, NULL), -EIO);
		h5_claims_free(claims);
		mem_src_release(&m);
		memory_close(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_k),
		cmocka_unit_test(test_shared_messages),
		cmocka_unit_test(test_claims),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
