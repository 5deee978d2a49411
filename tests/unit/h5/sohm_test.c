/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include <base/emit.h>
#include <h5/shared.h>

#include "sohm_file.h"

enum { TABLE = 97, TABLE_SIZE = 68, LIST = 641, LIST_SIZE = 42, UNSUMMED = 0 };

/* Changes of the file. summed: size of the structure at `from`, whose checksum is corrected, or
 * UNSUMMED. */
static const struct {
	const char *name;
	size_t at;
	const char *hex;
	size_t from, summed;
	int rc;
} defects[] = {
	{"nothing", TABLE, "53", TABLE, UNSUMMED, 0},
	{"table without signature", TABLE, "54", TABLE, TABLE_SIZE, -EIO},
	{"table with a wrong checksum", TABLE + 8, "09", TABLE, UNSUMMED, -EIO},
	{"index of version 1", TABLE + 4, "01", TABLE, TABLE_SIZE, -EOPNOTSUPP},
	{"index of type 2", TABLE + 5, "02", TABLE, TABLE_SIZE, -EIO},
	{"two indexes of one type", TABLE + 6, "0a", TABLE, TABLE_SIZE, -EIO},
	{"list that says it is a B-tree", TABLE + 5, "01", TABLE, TABLE_SIZE, -EIO},
	{"more messages than the list has room for", TABLE + 16, "03", TABLE, TABLE_SIZE, -EIO},
	{"messages without a list", TABLE + 18, "ffffffffffffffff", TABLE, TABLE_SIZE, -EIO},
	{"list past the end of the file", TABLE + 18, "ff12", TABLE, TABLE_SIZE, -EIO},
	{"wrong number of records in the B-tree", TABLE + 4 + 30 + 12, "01", TABLE, TABLE_SIZE,
	 -EIO},
	{"list without signature", LIST, "54", LIST, UNSUMMED, -EIO},
	{"list with a wrong checksum", LIST + 6, "01", LIST, UNSUMMED, -EIO},
	{"record of unknown location", LIST + 4, "02", LIST, LIST_SIZE, -EIO},
};

static void test_defects(void **state)
{
	for (size_t i = 0; i < sizeof(defects) / sizeof(defects[0]); i++) {
		struct memory_file f;
		struct err err = ERR_INIT;
		memory_open_sohm(&f);
		memory_put(&f, defects[i].at, defects[i].hex);
		if (defects[i].summed) {
			struct emit e = emit_to(f.bytes, f.size);
			e.pos = defects[i].from + defects[i].summed - 4;
			emit_checksum(&e, defects[i].from);
		}
		assert_int_equal(h5_file_open(&f.file, &f.source, NULL), 0);
		struct h5_shared *s = h5_shared_new(&f.file);
		int rc = h5_shared_claim(s, &err);
		if (rc != defects[i].rc || err.code != rc)
			fail_msg("%s: %d (%s)", defects[i].name, rc, err.msg);
		h5_shared_free(s);
		memory_close(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_defects)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
