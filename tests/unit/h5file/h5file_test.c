/* SPDX-License-Identifier: Apache-2.0 */
/* A file with shared messages, whole and with damage of their table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <h5file/h5file.h>
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_shared_messages),
		cmocka_unit_test(reports_a_damaged_table),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
