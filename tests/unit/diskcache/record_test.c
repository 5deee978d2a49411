/* SPDX-License-Identifier: Apache-2.0 */
/* Lists as records of the disk cache: only intact items are read. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <diskcache/record.h>
#include <store/store.h>

static const struct record_item items[] = {
	{"a/key", "etag", "text", 4}, {"b", "", NULL, 0}, {"c", "2", "\0\0", 2}};
enum { N = sizeof(items) / sizeof(items[0]) };

static void make(struct bytes *record)
{
	for (size_t i = 0; i < N; i++)
		assert_int_equal(record_add(record, &items[i]), 0);
}

static bool is_same(const struct record_item *a, const struct record_item *b)
{
	return strcmp(a->name, b->name) == 0 && strcmp(a->version, b->version) == 0 &&
	       a->n == b->n && (a->n == 0 || memcmp(a->bytes, b->bytes, a->n) == 0);
}

static void what_was_added_is_read(void **state)
{
	auto_bytes struct bytes record = {0};
	struct record_item item;
	make(&record);
	struct cursor c = cursor_of(record.data, record.len);
	for (size_t i = 0; i < N; i++) {
		assert_true(record_next(&c, &item));
		assert_true(is_same(&item, &items[i]));
	}
	assert_false(record_next(&c, &item));
	assert_true(cur_ok(&c));
}

/* Whatever the length, only whole items are read, and the rest is noticed. */
static void a_cut_record_is_noticed(void **state)
{
	auto_bytes struct bytes record = {0};
	struct record_item item;
	size_t whole = 0;
	make(&record);
	for (size_t n = 0; n <= record.len; n++) {
		/* A heap block of exactly this size, for the address sanitizer. */
		uint8_t *cut = malloc(n ? n : 1);
		size_t read = 0;
		assert_non_null(cut);
		memcpy(cut, record.data, n);
		struct cursor c = cursor_of(cut, n);
		while (record_next(&c, &item))
			assert_true(is_same(&item, &items[read++]));
		assert_true(read < N || n == record.len);
		whole += cur_ok(&c);
		free(cut);
	}
	assert_int_equal(whole, N + 1); /* after 0, 1, 2 and 3 items */
}

static void a_damaged_record_is_bounded(void **state)
{
	auto_bytes struct bytes record = {0};
	struct record_item item;
	make(&record);
	for (size_t bit = 0; bit < 8 * record.len; bit++) {
		record.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
		struct cursor c = cursor_of(record.data, record.len);
		while (record_next(&c, &item)) {
			assert_in_range(strlen(item.name), 1, STORE_KEY_MAX);
			assert_true(strlen(item.version) < STORE_ETAG_MAX);
			assert_true((const uint8_t *)item.bytes + item.n <=
				    record.data + record.len);
		}
		record.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}

static void a_member_that_is_too_long_is_refused(void **state)
{
	auto_bytes struct bytes record = {0};
	char name[STORE_KEY_MAX + 2], version[STORE_ETAG_MAX + 1];
	memset(name, 'n', sizeof(name));
	memset(version, 'v', sizeof(version));
	name[STORE_KEY_MAX + 1] = version[STORE_ETAG_MAX] = '\0';
	const struct record_item bad[] = {
		{name, "", NULL, 0}, {"", "", NULL, 0}, {"n", version, NULL, 0}};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(record_add(&record, &bad[i]), -EINVAL);
	assert_int_equal(record.len, 0);
	assert_int_equal(record_add(&record, &(struct record_item){name + 1, version + 1, "", 0}),
			 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_added_is_read),
		cmocka_unit_test(a_cut_record_is_noticed),
		cmocka_unit_test(a_damaged_record_is_bounded),
		cmocka_unit_test(a_member_that_is_too_long_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
