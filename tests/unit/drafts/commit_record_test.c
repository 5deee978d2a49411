/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include <drafts/draft_commit.h>
#include <names/names.h>
#include "storages.h"

static void a_mark_is_decoded_as_it_was_encoded(void **state)
{
	static const struct commit_record rows[] = {
		{0},
		{.number = 1, .is_running = true},
		{.number = 7, .failed = 6, .is_last = true},
		{.number = UINT32_MAX, .failed = 1 << 28, .is_running = true, .is_last = true},
		{.number = 3, .failed = 2, .is_running = true, .is_refused = true},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct commit_record m = commit_record_decode(commit_record_encode(&rows[i]));
		assert_int_equal(m.number, rows[i].number);
		assert_int_equal(m.failed, rows[i].failed);
		assert_int_equal(m.is_running, rows[i].is_running);
		assert_int_equal(m.is_last, rows[i].is_last);
		assert_int_equal(m.is_refused, rows[i].is_refused);
	}
	assert_int_equal(commit_record_encode(&rows[0]), 0);
	const struct commit_record many = {.number = 5, .failed = UINT32_MAX};
	const struct commit_record m = commit_record_decode(commit_record_encode(&many));
	assert_int_equal(m.number, 5);
	assert_int_equal(m.failed, (1 << 29) - 1);
	assert_false(m.is_refused);
}

static void the_storage_follows_from_draft_and_number(void **state)
{
	const struct schema_ops *schema = schema_all()[0];
	const uint64_t one = commit_seed("0123456789abcdef", 1);
	const struct storage s = commit_storage(schema, "0123456789abcdef", 1);
	assert_true(one == commit_seed("0123456789abcdef", 1));
	assert_true(one != commit_seed("0123456789abcdef", 2));
	assert_true(one != commit_seed("0123456789abcdee", 1));
	assert_true(s.schema == schema && storage_number(&s) == one);
}

static void a_version_tells_domains_from_objects(void **state)
{
	struct names_node n = {.kind = NAMES_OBJECT, .meta.etag = "\"abc\""};
	char version[COMMIT_VERSION];
	assert_int_equal(commit_version_of(NULL, version), 0);
	assert_string_equal(version, "");
	assert_int_equal(commit_version_of(&n, version), 0);
	assert_string_equal(version, "o:\"abc\"");
	n = (struct names_node){.kind = NAMES_DOMAIN};
	assert_int_equal(commit_version_of(&n, version), 0);
	assert_string_equal(version, "d:");
	n.doc.kind = NAMES_DOC_BROKEN;
	n.doc.code = -EACCES;
	assert_int_equal(commit_version_of(&n, version), -EACCES);
	n.doc.kind = NAMES_DOC_ROOT;
	const struct domain_info info = {.root = "g-0", .owner = "ann"};
	n.doc.document = schema_document_new(&info, "\"def\"");
	assert_int_equal(commit_version_of(&n, version), 0);
	assert_string_equal(version, "d:\"def\"");
	schema_document_unref(n.doc.document);
	char *etag = malloc(COMMIT_VERSION);
	memset(etag, 'e', COMMIT_VERSION - 1);
	etag[COMMIT_VERSION - 1] = '\0';
	n.doc.document = schema_document_new(&info, etag);
	assert_int_equal(commit_version_of(&n, version), -ENAMETOOLONG);
	schema_document_unref(n.doc.document);
	free(etag);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_mark_is_decoded_as_it_was_encoded),
		cmocka_unit_test(the_storage_follows_from_draft_and_number),
		cmocka_unit_test(a_version_tells_domains_from_objects),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
