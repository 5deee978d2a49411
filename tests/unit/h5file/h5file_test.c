/* SPDX-License-Identifier: Apache-2.0 */
/* A file with shared messages, whole and with damage of their table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <h5file/h5file.h>
#include <base/checksum.h>
#include "small_file.h"
#include "sohm_file.h"

enum { LIST = 641, OBJECTS = 6 };

static struct h5file *open_file(struct memory_file *m)
{
	struct h5file *f = NULL;
	struct err err = ERR_INIT;
	if (h5file_open(&m->source, NULL, &f, &err))
		fail_msg("%s", err.msg);
	return f;
}

static const struct object *find(const struct h5file *f, const char *path)
{
	for (uint32_t i = 0; i < OBJECTS; i++)
		if (strcmp(tree_object(h5file_tree(f), i)->o.id, path) == 0)
			return &tree_object(h5file_tree(f), i)->o;
	fail_msg("%s is missing", path);
	return NULL;
}

static void reads_shared_messages(void **state)
{
	struct memory_file m;
	memory_open_sohm(&m);
	struct h5file *f = open_file(&m);
	if (h5file_problems(f))
		fail_msg("%s", h5file_problem(f, 0)->text);
	assert_int_equal(find(f, "/a")->nattrs, 2);
	assert_int_equal(find(f, "/b")->nattrs, 1);
	assert_int_equal(find(f, "/b")->dataset.space.nelems, 6);
	assert_int_equal(find(f, "/b")->dataset.type->cls, DTYPE_COMPOUND);
	assert_int_not_equal(find(f, "/d")->dataset.committed, OBJECT_NONE);
	h5file_close(f);
	memory_close(&m);
}

/* Messages can be found without the list, so nothing else is missing. */
static void reports_a_damaged_table(void **state)
{
	struct memory_file m;
	memory_open_sohm(&m);
	m.bytes[LIST + 6] ^= 1;
	struct h5file *f = open_file(&m);
	assert_int_equal(h5file_problems(f), 1);
	assert_int_equal(h5file_problem(f, 0)->severity, H5FILE_DAMAGED);
	assert_int_equal(h5file_problem(f, 0)->object, OBJECT_NONE);
	assert_non_null(strstr(h5file_problem(f, 0)->text, "shared messages at 641"));
	assert_int_equal(find(f, "/b")->dataset.space.nelems, 6);
	h5file_close(f);
	memory_close(&m);
}

/* Makes the superblock one of version 2 or 3. */
static void put_superblock(struct small_file *s, uint8_t version, uint8_t status, uint64_t root)
{
	struct emit e = emit_to(s->bytes + 8, 40);
	emit_u8(&e, version);
	emit_u8(&e, 8);
	emit_u8(&e, 8);
	emit_u8(&e, status);
	emit_u64(&e, 0);
	emit_u64(&e, H5_UNDEF);
	emit_u64(&e, s->n);
	emit_u64(&e, root);
	emit_u32(&e, checksum_lookup3(s->bytes, 44, 0));
}

/* What libhdf5 1.10.8 does with these flags: it refuses the file, or ignores them. */
static void tells_of_open_files(void **state)
{
	enum { SILENT = -1 };
	static const struct {
		uint8_t version, status;
		int severity;
	} rows[] = {
		{0, 0, SILENT},		{0, 1, H5FILE_NOTE},	{0, 3, SILENT},
		{0, 8, H5FILE_DAMAGED}, {2, 0, SILENT},		{2, 1, H5FILE_NOTE},
		{2, 5, H5FILE_NOTE},	{3, 0, SILENT},		{3, 1, H5FILE_OPEN},
		{3, 2, SILENT},		{3, 3, H5FILE_OPEN},	{3, 4, H5FILE_OPEN},
		{3, 5, H5FILE_OPEN},	{3, 9, H5FILE_DAMAGED},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct small_file s;
		struct h5file *f = NULL;
		small_begin(&s);
		small_object(&s);
		small_group(&s, true);
		const uint64_t root = small_end(&s);
		small_finish(&s, root);
		if (rows[i].version)
			put_superblock(&s, rows[i].version, rows[i].status, root);
		else
			s.bytes[20] = rows[i].status;
		assert_int_equal(h5file_open(&s.src.source, NULL, &f, NULL), 0);
		assert_int_equal(h5file_problems(f), rows[i].severity != SILENT);
		if (rows[i].severity != SILENT)
			assert_int_equal(h5file_problem(f, 0)->severity, rows[i].severity);
		h5file_close(f);
		small_release(&s);
	}
}

static void tells_of_bytes_behind_the_end(void **state)
{
	static const struct h5file_options bounded = {.bounded = true};
	struct small_file s;
	struct h5file *f = NULL;
	small_begin(&s);
	small_object(&s);
	small_group(&s, true);
	const uint64_t group = small_end(&s);
	small_object(&s);
	small_group(&s, true);
	small_link(&s, "g", group);
	small_finish(&s, small_end(&s));
	s.src.source.size += 7;
	assert_int_equal(h5file_open(&s.src.source, &bounded, &f, NULL), 0);
	assert_int_equal(h5file_problems(f), 1);
	assert_int_equal(h5file_problems_of(f, H5FILE_NOTE), 1);
	assert_string_equal(h5file_problem(f, 0)->text,
			    "the last 7 bytes lie behind the end that its superblock records, and "
			    "do not belong to it");
	h5file_close(f);
	/* The root group is behind the end. */
	s.bytes[40] = (uint8_t)(group + 8);
	s.bytes[41] = 0;
	assert_int_equal(h5file_open(&s.src.source, &bounded, &f, NULL), -EIO);
	assert_int_equal(h5file_open(&s.src.source, NULL, &f, NULL), 0);
	assert_int_equal(h5file_problems_of(f, H5FILE_NOTE), 1);
	assert_int_equal(tree_count(h5file_tree(f)), 2);
	h5file_close(f);
	small_release(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_shared_messages),
		cmocka_unit_test(reports_a_damaged_table),
		cmocka_unit_test(tells_of_open_files),
		cmocka_unit_test(tells_of_bytes_behind_the_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
