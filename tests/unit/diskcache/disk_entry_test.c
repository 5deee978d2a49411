/* SPDX-License-Identifier: Apache-2.0 */
/* Encoded entries of the disk cache: only intact ones are decoded. */
#include "store_fixture.h"

#include "diskcache/disk_entry.h"

static const struct disk_id id = {"bucket", "a/key"};

/* Stores an entry of "body" in out. */
static void make(struct bytes *out, const char *etag)
{
	struct store_meta meta = {.size = 4, .mtime_ns = -5};
	strcpy(meta.etag, etag);
	assert_int_equal(disk_entry_encode(&id, &meta, "body", out), 0);
	assert_int_equal(bytes_append(out, "body", 4), 0);
}

static int read_back(const struct bytes *file, const struct disk_id *as)
{
	struct disk_entry entry;
	int rc = disk_entry_decode(file->data, file->len, file->len, as, &entry);
	return rc ? rc : disk_entry_check(&entry, file->data, file->data + entry.head);
}

static void test_round_trip(void **state)
{
	auto_bytes struct bytes file = {0};
	struct disk_entry entry;
	(void)state;
	make(&file, "etag");
	assert_int_equal(disk_entry_decode(file.data, file.len, file.len, &id, &entry), 0);
	assert_int_equal(entry.meta.size, 4);
	assert_int_equal(entry.meta.mtime_ns, -5);
	assert_string_equal(entry.meta.etag, "etag");
	assert_int_equal(entry.head, DISK_HEAD_MIN + 6 + 5 + 4);
	assert_int_equal(disk_entry_check(&entry, file.data, file.data + entry.head), 0);
}

static void test_every_bit_counts(void **state)
{
	auto_bytes struct bytes file = {0};
	(void)state;
	make(&file, "etag");
	for (size_t bit = 0; bit < 8 * file.len; bit++) {
		file.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_int_equal(read_back(&file, &id), -EBADMSG);
		file.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	assert_int_equal(read_back(&file, &id), 0);
}

static void test_every_length_counts(void **state)
{
	auto_bytes struct bytes file = {0};
	(void)state;
	make(&file, "etag");
	const size_t n = file.len;
	for (file.len = 0; file.len < n; file.len++) {
		/* A heap block of exactly this size, for the address sanitizer. */
		struct bytes cut = {malloc(file.len), file.len, file.len};
		if (cut.len)
			memcpy(cut.data, file.data, cut.len);
		assert_int_equal(read_back(&cut, &id), -EBADMSG);
		bytes_release(&cut);
	}
	assert_int_equal(bytes_append(&file, "", 1), 0);
	assert_int_equal(read_back(&file, &id), -EBADMSG);
}

static void test_of_another_object(void **state)
{
	static const struct disk_id others[] = {
		{"bucket", "a/kez"}, {"bucket", "a/ke"}, {"bucke", "a/key"}, {"bucketa", "/key"}};
	auto_bytes struct bytes file = {0};
	char name[DISK_NAME], other[DISK_NAME];
	(void)state;
	make(&file, "etag");
	assert_int_equal(disk_entry_name(&id, name), 0);
	assert_int_equal(strlen(name), 64);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		assert_int_equal(read_back(&file, &others[i]), -EBADMSG);
		assert_int_equal(disk_entry_name(&others[i], other), 0);
		assert_string_not_equal(name, other);
	}
}

static void test_what_no_entry_can_hold(void **state)
{
	static char large[DISK_SCOPE_MAX + 2];
	const struct disk_id scope = {large, "k"}, key = {"s", large};
	struct store_meta meta = {.size = 0};
	auto_bytes struct bytes out = {0};
	(void)state;
	memset(large, 'x', sizeof(large) - 1);
	assert_int_equal(disk_entry_encode(&id, &meta, "", &out), -EINVAL); /* no version */
	strcpy(meta.etag, "e");
	assert_int_equal(disk_entry_encode(&scope, &meta, "", &out), -EINVAL);
	assert_int_equal(disk_entry_encode(&key, &meta, "", &out), -EINVAL);
	assert_int_equal(out.len, 0);
	assert_int_equal(disk_entry_encode(&id, &meta, NULL, &out), 0);
	assert_int_equal(read_back(&out, &id), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_every_bit_counts),
		cmocka_unit_test(test_every_length_counts),
		cmocka_unit_test(test_of_another_object),
		cmocka_unit_test(test_what_no_entry_can_hold),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
