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
#include "overlay_fixture.h"
#include "storages.h"

static void a_mark_is_decoded_as_it_was_encoded(void **state)
{
	static const struct commit_record rows[] = {
		{0},
		{.number = 1, .state = COMMIT_BEGUN},
		{.number = 7, .failed = 6, .state = COMMIT_ENDED, .is_last = true},
		{.number = UINT32_MAX, .failed = 1 << 28, .state = COMMIT_BEGUN, .is_last = true},
		{.number = 3, .failed = 2, .state = COMMIT_REFUSED},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct commit_record m = commit_record_decode(commit_record_encode(&rows[i]));
		assert_int_equal(m.number, rows[i].number);
		assert_int_equal(m.failed, rows[i].failed);
		assert_int_equal(m.state, rows[i].state);
		assert_int_equal(m.is_last, rows[i].is_last);
	}
	assert_int_equal(commit_record_encode(&rows[0]), 0);
	const struct commit_record many = {
		.number = 5, .failed = UINT32_MAX, .state = COMMIT_ENDED};
	const struct commit_record m = commit_record_decode(commit_record_encode(&many));
	assert_int_equal(m.number, 5);
	assert_int_equal(m.failed, (1 << 29) - 1);
	assert_int_equal(m.state, COMMIT_ENDED);
}

static void a_state_promises_what_the_journal_has(void **state)
{
	struct overlay_fixture f;
	fixture_begin(&f, 0);
	struct draft *d = make_draft(&f, &about_new);
	struct commit_run r = {.draft = d, .number = 2, .oldest = 1, .end = 2};
	assert_true(commit_check(&r));
	r.state = COMMIT_SENT;
	assert_false(commit_check(&r));
	r.state = COMMIT_NONE;
	assert_int_equal(commit_note(&r, COMMIT_BEGUN, NULL), 0);
	assert_int_equal(r.state, COMMIT_BEGUN);
	assert_int_equal(commit_record_of(d).failed, 1);
	commit_go(&r, COMMIT_SENT);
	r.state = COMMIT_REFUSED;
	assert_false(commit_check(&r));
	r.state = COMMIT_SHOWN;
	r.end = 4;
	assert_false(commit_check(&r));
	r.end = 3;
	commit_go(&r, COMMIT_BEGUN);
	assert_int_equal(commit_note(&r, COMMIT_REFUSED, NULL), 0);
	assert_int_equal(commit_record_of(d).state, COMMIT_REFUSED);
	assert_int_equal(draft_drop(d, NULL), 0);
	fixture_end(&f);
}

/* Otherwise a later process would delete what a program has read. */
static void what_may_have_been_seen_is_not_refused(void **state)
{
	assert_true(commit_may_follow(COMMIT_BEGUN, COMMIT_REFUSED));
	assert_true(commit_may_follow(COMMIT_CLEARING, COMMIT_REFUSED));
	assert_false(commit_may_follow(COMMIT_SENT, COMMIT_REFUSED));
	assert_false(commit_may_follow(COMMIT_SHOWN, COMMIT_REFUSED));
	assert_false(commit_may_follow(COMMIT_NONE, COMMIT_SENT));
	assert_false(commit_may_follow(COMMIT_REFUSED, COMMIT_BEGUN));
	assert_false(commit_may_follow(COMMIT_UNFIT, COMMIT_ENDED));
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
		cmocka_unit_test(a_state_promises_what_the_journal_has),
		cmocka_unit_test(what_may_have_been_seen_is_not_refused),
		cmocka_unit_test(the_storage_follows_from_draft_and_number),
		cmocka_unit_test(a_version_tells_domains_from_objects),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
