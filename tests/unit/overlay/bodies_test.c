/* SPDX-License-Identifier: Apache-2.0 */
/* The file `bodies`: its room, its bytes, and threads that add to it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <pthread.h>

#include "overlay/bodies.h"
#include "overlay_fixture.h"

struct state {
	char path[64];
	int dir;
	struct room room;
	struct bodies b;
};

static void begin(struct state *s, uint64_t limit)
{
	snprintf(s->path, sizeof(s->path), "%s/bodies-test-XXXXXX", fixture_parent());
	assert_non_null(mkdtemp(s->path));
	s->dir = open(s->path, O_RDONLY | O_DIRECTORY);
	assert_int_equal(room_init(&s->room, s->dir, limit, 0, NULL), 0);
	bodies_init(&s->b);
}

static void end(struct state *s)
{
	assert_int_equal(bodies_remove(&s->b, s->dir, &s->room, NULL), 0);
	assert_false(bodies_exist(s->dir));
	assert_int_equal(room_taken(&s->room), 0);
	bodies_release(&s->b);
	room_release(&s->room);
	close(s->dir);
	assert_int_equal(rmdir(s->path), 0);
}

static int add(struct state *s, const void *bytes, size_t n, uint64_t *offset)
{
	return bodies_add(&s->b, s->dir, &s->room, bytes, n, offset, NULL);
}

static void bodies_are_read_as_they_were_added(void **state)
{
	struct state s;
	uint64_t first, second;
	char bytes[16];
	begin(&s, 1 << 20);
	assert_false(bodies_exist(s.dir));
	assert_int_equal(bodies_read(&s.b, 0, bytes, 1, NULL), -EBADMSG);
	assert_int_equal(bodies_sync(&s.b, s.dir, NULL), 0);
	assert_int_equal(add(&s, "first", 5, &first), 0);
	assert_int_equal(add(&s, "second", 6, &second), 0);
	assert_true(bodies_exist(s.dir));
	assert_int_equal(bodies_read(&s.b, second, bytes, 6, NULL), 0);
	assert_memory_equal(bytes, "second", 6);
	assert_int_equal(bodies_read(&s.b, first, bytes, 5, NULL), 0);
	assert_memory_equal(bytes, "first", 5);
	assert_int_equal(bodies_read(&s.b, second, bytes, 7, NULL), -EBADMSG);
	assert_int_equal(bodies_sync(&s.b, s.dir, NULL), 0);
	assert_true(s.b.is_durable);
	assert_int_equal(add(&s, "third", 5, &first), 0);
	assert_false(s.b.is_durable);
	end(&s);
}

static void room_is_counted_in_blocks(void **state)
{
	static char bytes[10000];
	struct state s;
	uint64_t offset;
	begin(&s, 5 * ROOM_BLOCK);
	assert_int_equal(add(&s, bytes, 1, &offset), 0);
	assert_int_equal(room_taken(&s.room), ROOM_BLOCK);
	assert_int_equal(add(&s, bytes, ROOM_BLOCK - 1, &offset), 0);
	assert_int_equal(room_taken(&s.room), ROOM_BLOCK);
	assert_int_equal(add(&s, bytes, sizeof(bytes), &offset), 0);
	assert_int_equal(room_taken(&s.room), 4 * ROOM_BLOCK);
	/* The limit is that of the spools. */
	assert_int_equal(room_take(&s.room, ROOM_BLOCK, NULL), 0);
	assert_int_equal(add(&s, bytes, sizeof(bytes), &offset), -ENOSPC);
	assert_int_equal(add(&s, bytes, 100, &offset), 0);
	room_give(&s.room, ROOM_BLOCK);
	assert_int_equal(bodies_remove(&s.b, s.dir, &s.room, NULL), 0);
	assert_int_equal(room_taken(&s.room), 0);
	assert_int_equal(add(&s, bytes, sizeof(bytes), &offset), 0);
	assert_int_equal(offset, 0);
	end(&s);
}

/* Programs may write no more, because the rest of the disk is kept for commits. */
static void a_commit_may_take_what_is_kept_free(void **state)
{
	struct state s;
	uint64_t offset;
	begin(&s, UINT64_MAX);
	assert_int_equal(room_take(&s.room, (uint64_t)1 << 50, NULL), -ENOSPC);
	assert_int_equal(add(&s, "a", 1, &offset), 0);
	end(&s);
}

static void bodies_of_an_earlier_process(void **state)
{
	struct state s;
	uint64_t offset;
	char bytes[4];
	begin(&s, 1 << 20);
	assert_int_equal(bodies_open(&s.b, s.dir, 1, NULL), -EBADMSG);
	assert_int_equal(add(&s, "body", 4, &offset), 0);
	bodies_release(&s.b);
	room_give(&s.room, ROOM_BLOCK);
	bodies_init(&s.b);
	assert_int_equal(bodies_open(&s.b, s.dir, 5, NULL), -EBADMSG);
	assert_int_equal(bodies_open(&s.b, s.dir, 4, NULL), 0);
	assert_int_equal(bodies_read(&s.b, offset, bytes, 4, NULL), 0);
	assert_memory_equal(bytes, "body", 4);
	end(&s);
}

enum { THREADS = 4, EACH = 500 };

static void *add_many(void *arg)
{
	struct state *s = arg;
	uint32_t bytes[8], found[8];
	uint64_t offset;
	for (uint32_t i = 0; i < EACH; i++) {
		for (unsigned int k = 0; k < 8; k++)
			bytes[k] = (uint32_t)(uintptr_t)&offset + i;
		assert_int_equal(add(s, bytes, sizeof(bytes), &offset), 0);
		assert_int_equal(bodies_read(&s->b, offset, found, sizeof(found), NULL), 0);
		assert_memory_equal(bytes, found, sizeof(found));
	}
	return NULL;
}

static void threads_add_side_by_side(void **state)
{
	struct state s;
	pthread_t threads[THREADS];
	begin(&s, 1 << 20);
	for (unsigned int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, add_many, &s), 0);
	for (unsigned int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(s.b.size, THREADS * EACH * 32);
	end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bodies_are_read_as_they_were_added),
		cmocka_unit_test(room_is_counted_in_blocks),
		cmocka_unit_test(a_commit_may_take_what_is_kept_free),
		cmocka_unit_test(bodies_of_an_earlier_process),
		cmocka_unit_test(threads_add_side_by_side),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
