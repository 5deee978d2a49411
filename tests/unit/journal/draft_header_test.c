/* SPDX-License-Identifier: Apache-2.0 */
/* The description of a draft: the files of the fuzz target's corpus, each with its reason. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <journal/draft_header.h>

static size_t load(const char *name, uint8_t *bytes, size_t n)
{
	char path[1024];
	snprintf(path, sizeof(path), "%s/tests/fuzz/corpus/journal_header/%s",
		 getenv("HSMOUNT_SOURCE"), name);
	FILE *f = fopen(path, "rb");
	if (!f)
		fail_msg("%s is missing", path);
	const size_t got = fread(bytes, 1, n, f);
	fclose(f);
	return got;
}

static void a_description_is_read(void **state)
{
	uint8_t bytes[HEADER_SIZE];
	struct header h;
	assert_int_equal(draft_header_decode(bytes, load("change", bytes, sizeof(bytes)), &h, NULL),
			 0);
	assert_int_equal(h.about.kind, DRAFT_CHANGE);
	assert_string_equal(h.about.path, "home/u/a");
	assert_string_equal(h.about.name, "/home/u/a.h5");
	assert_string_equal(h.about.version, "\"etag\"");
	assert_int_equal(h.about.beneath, 300000);
	assert_int_equal(h.about.created_ns, 1234567890123456789);
	assert_int_equal(h.boot[15], 15);
	assert_int_equal(h.about.beneath_id[0], 0);
	assert_int_equal(
		draft_header_decode(bytes, load("identity", bytes, sizeof(bytes)), &h, NULL), 0);
	assert_int_equal(h.about.beneath_id[0], 1);
	assert_int_equal(h.about.beneath_id[31], 32);
	assert_int_equal(h.about.layout, 0);
	assert_int_equal(draft_header_decode(bytes, load("layout", bytes, sizeof(bytes)), &h, NULL),
			 0);
	assert_int_equal(h.about.beneath_id[31], 32);
	assert_int_equal(h.about.layout, 3);
	assert_int_equal(
		draft_header_decode(bytes, load("longest", bytes, sizeof(bytes)), &h, NULL), 0);
	assert_int_equal(strlen(h.about.path), 4096 - 24 - 12 - 40 - 4);
}

static void an_identity_takes_room(void **state)
{
	char path[4000];
	uint8_t bytes[HEADER_SIZE];
	struct header h = {.about = {.kind = DRAFT_CHANGE, .name = "", .version = ""}};
	memset(path, 'p', sizeof(path));
	path[3991] = '\0';
	h.about.path = path;
	assert_int_equal(draft_header_encode(&h, bytes, NULL), 0);
	memset(h.about.beneath_id, 1, sizeof(h.about.beneath_id));
	assert_int_equal(draft_header_encode(&h, bytes, NULL), -ENAMETOOLONG);
	path[3985] = '\0';
	assert_int_equal(draft_header_encode(&h, bytes, NULL), 0);
}

static void a_damaged_description_has_a_reason(void **state)
{
	static const struct {
		const char *name;
		int code;
		const char *why;
	} cases[] = {
		{"bad-magic", -EBADMSG,
		 "the file `draft`: it does not begin with the record HSMDRAFT"},
		{"bad-crc", -EBADMSG, "the file `draft` does not have its checksum"},
		{"another-record", -EBADMSG, "the file `draft` does not have its checksum"},
		{"later-version", -ENOTSUP,
		 "use the version of hsmount that wrote the draft: it has version 5 of the format"},
		{"unknown-kind", -EBADMSG, "the file `draft` has an unknown kind"},
		{"kind-zero", -EBADMSG, "the file `draft` has an unknown kind"},
		{"beneath-of-new", -EBADMSG,
		 "the file `draft` has something beneath, but its kind is not `change`"},
		{"identity-of-new", -EBADMSG, "the file `draft` has an identity of nothing"},
		{"identity-zero", -EBADMSG, "the file `draft` has an identity of nothing"},
		{"layout-without-identity", -EBADMSG,
		 "the file `draft` has an identity of nothing"},
		{"identity-short", -EBADMSG, "the file `draft` has a damaged text or identity"},
		{"no-nul", -EBADMSG, "the file `draft` has a damaged text or identity"},
		{"fixed-part-only", -EBADMSG, "the file `draft` has a damaged text or identity"},
		{"tail-not-zero", -EBADMSG, "the file `draft` has bytes behind its last record"},
		{"two-records", -EBADMSG, "the file `draft` has bytes behind its last record"},
		{"short", -EBADMSG, "the file `draft` has 4095 bytes instead of 4096"},
		{"head-only", -EBADMSG, "the file `draft` has 24 bytes instead of 4096"},
	};
	uint8_t bytes[HEADER_SIZE];
	struct header h;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err err = ERR_INIT;
		const size_t n = load(cases[i].name, bytes, sizeof(bytes));
		assert_int_equal(draft_header_decode(bytes, n, &h, &err), cases[i].code);
		assert_string_equal(err.msg, cases[i].why);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_description_is_read),
		cmocka_unit_test(an_identity_takes_room),
		cmocka_unit_test(a_damaged_description_has_a_reason),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
