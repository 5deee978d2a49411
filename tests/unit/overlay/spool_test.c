/* SPDX-License-Identifier: Apache-2.0 */
/* The room that spools share, and the files. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "overlay/spool.h"

static void room_ends_at_its_limit(void **state)
{
	struct room room;
	struct err err = ERR_INIT;
	const int dir = open(".", O_RDONLY | O_DIRECTORY);
	assert_int_equal(room_init(&room, dir, 10000, 0, NULL), 0);
	assert_int_equal(room_take(&room, 4096, NULL), 0);
	assert_int_equal(room_take(&room, 5904, NULL), 0);
	assert_int_equal(room_take(&room, 1, &err), -ENOSPC);
	assert_string_equal(err.msg, "no room for 1 more bytes in the spool: 10000 of the 10000 "
				     "bytes of spool_size are taken");
	assert_int_equal(room_take(&room, UINT64_MAX, NULL), -ENOSPC);
	assert_int_equal(room_take(&room, 0, NULL), 0);
	room_give(&room, 5904);
	assert_int_equal(room_take(&room, 5904, NULL), 0);
	assert_int_equal(room_taken(&room), 10000);
	room_give(&room, 10000);
	room_release(&room);
	close(dir);
}

static void room_ends_at_that_of_the_disk(void **state)
{
	struct room room;
	struct statvfs v;
	struct err err = ERR_INIT;
	const int dir = open(".", O_RDONLY | O_DIRECTORY);
	assert_int_equal(fstatvfs(dir, &v), 0);
	const uint64_t left = (uint64_t)v.f_bavail * v.f_frsize;
	assert_int_equal(room_init(&room, dir, UINT64_MAX, 0, NULL), 0);
	/* Other programs use the disk, too. */
	assert_int_equal(room_take(&room, left * 2, &err), -ENOSPC);
	assert_non_null(strstr(err.msg, "on the disk of the journal directory"));
	assert_int_equal(room_take(&room, left / 4, NULL), 0);
	room_give(&room, left / 4);
	room_release(&room);
	assert_int_equal(room_init(&room, dir, 0, 0, NULL), 0);
	assert_in_range(room.limit, left / 4, left);
	room_release(&room);
	close(dir);
}

static void a_file_is_sparse(void **state)
{
	struct spool *s;
	struct stat st;
	uint8_t bytes[8];
	char name[SPOOL_NAME];
	const uint64_t far = (uint64_t)1 << 36;
	assert_int_equal(spool_create(AT_FDCWD, 4294967295, NULL, &s, NULL), 0);
	spool_name(4294967295, name);
	assert_string_equal(name, "spool.4294967295");
	assert_int_equal(spool_write(s, far, "abcd", 4, NULL), 0);
	assert_int_equal(spool_read(s, far - 2, bytes, 8, NULL), 0);
	assert_memory_equal(bytes, "\0\0abcd\0", 8);
	assert_int_equal(spool_read(s, far * 2, bytes, 8, NULL), 0);
	assert_memory_equal(bytes, "\0\0\0\0\0\0\0", 8);
	assert_int_equal(fstat(s->fd, &st), 0);
	assert_true(st.st_blocks * 512 <= 1 << 20);
	/* Cutting frees, and does not make the file larger. */
	assert_int_equal(spool_cut(s, far * 2, NULL), 0);
	assert_int_equal(fstat(s->fd, &st), 0);
	assert_int_equal(st.st_size, far + 4);
	assert_int_equal(spool_cut(s, 4096, NULL), 0);
	assert_int_equal(fstat(s->fd, &st), 0);
	assert_int_equal(st.st_size, 4096);
	assert_int_equal(st.st_blocks, 0);
	spool_unref(spool_ref(s));
	assert_int_equal(spool_sync(s, NULL), 0);
	spool_unref(s);
	unlink(name);
	unlink("sums.4294967295");
	assert_int_equal(spool_open(AT_FDCWD, 4294967295, true, NULL, &s, NULL), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(room_ends_at_its_limit),
		cmocka_unit_test(room_ends_at_that_of_the_disk),
		cmocka_unit_test(a_file_is_sparse),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
