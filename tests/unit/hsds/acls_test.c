/* SPDX-License-Identifier: Apache-2.0 */
/* Access control lists that users set, and the documents that get them. */
#include "schema_test.h"

#include "schema/hsds/emit_document.h"

#define ALL                                                                                        \
	"{\"create\": true, \"read\": true, \"update\": true, \"delete\": true, "                  \
	"\"readACL\": true, \"updateACL\": true}"
#define READ                                                                                       \
	"{\"create\": false, \"read\": true, \"update\": false, \"delete\": false, "               \
	"\"readACL\": false, \"updateACL\": false}"

static void reads_what_is_exact(void **state)
{
	static const struct {
		const char *text;
		int users; /* -1: refused */
	} rows[] = {
		{"{}", 0},
		{" {}\n", 0},
		{"{\"ann\": " ALL "}", 1},
		{"{\"ann\":" ALL ",\"default\":" READ "}", 2},
		{"{\"g:lab \xc3\xa4\": " READ "}", 1},
		{"", -1},
		{"null", -1},
		{"[]", -1},
		{"{\"ann\": " ALL, -1},
		{"{\"ann\": " ALL "} x", -1},
		{"{\"ann\": " ALL ", \"ann\": " READ "}", -1},
		{"{\"\": " ALL "}", -1},
		{"{\"a\\u0000\": " ALL "}", -1},
		{"{\"a\\n\": " ALL "}", -1},
		{"{\"\\udce9\": " ALL "}", -1},
		{"{\"\xe9\": " ALL "}", -1},
		{"{\"ann\": true}", -1},
		{"{\"ann\": {}}", -1},
		{"{\"ann\": {\"read\": true}}", -1},
		{"{\"ann\": {\"create\": 1, \"read\": true, \"update\": true, \"delete\": true, "
		 "\"readACL\": true, \"updateACL\": true}}",
		 -1},
		{"{\"ann\": {\"create\": true, \"read\": true, \"update\": true, \"delete\": true, "
		 "\"readACL\": true, \"updateACL\": true, \"admin\": true}}",
		 -1},
		{"{\"ann\": NaN}", -1},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct arena *a = arena_new(1 << 20);
		struct domain_info d;
		struct err err = ERR_INIT;
		const int rc = schema_acls_parse(rows[i].text, strlen(rows[i].text), a, &d, &err);
		if (rc != (rows[i].users < 0 ? -EINVAL : 0))
			fail_msg("%s: %d %s", rows[i].text, rc, err.msg);
		if (!rc && (int)d.nacls != rows[i].users)
			fail_msg("%s: %u users", rows[i].text, d.nacls);
		arena_free(a);
	}
}

static void refuses_long_names_and_lists(void **state)
{
	struct arena *a = arena_new(1 << 20);
	struct domain_info d;
	char name[400], text[1024], *large = malloc(70000);
	memset(name, 'n', sizeof(name));
	for (int n = 255; n <= 256; n++) {
		const int len = snprintf(text, sizeof(text), "{\"%.*s\": " READ "}", n, name);
		assert_int_equal(schema_acls_parse(text, (size_t)len, a, &d, NULL),
				 n == 255 ? 0 : -EINVAL);
	}
	memset(large, ' ', 70000);
	memcpy(large, "{}", 2);
	assert_int_equal(schema_acls_parse(large, 65536, a, &d, NULL), 0);
	assert_int_equal(schema_acls_parse(large, 65537, a, &d, NULL), -EINVAL);
	memset(large, '[', 65536);
	assert_int_equal(schema_acls_parse(large, 65536, a, &d, NULL), -EINVAL);
	free(large);
	arena_free(a);
}

static void reads_permissions(void **state)
{
	struct arena *a = arena_new(1 << 20);
	struct domain_info d;
	static const char text[] = "{\"ann\": " ALL ", \"default\": " READ "}";
	assert_int_equal(schema_acls_parse(text, sizeof(text) - 1, a, &d, NULL), 0);
	assert_string_equal(d.acls[0].user, "ann");
	assert_int_equal(d.acls[0].perms, 63);
	assert_string_equal(d.acls[1].user, "default");
	assert_int_equal(d.acls[1].perms, DOMAIN_PERM_READ);
	arena_free(a);
}

#define NEW "{\"ann\": " READ "}"

/* Everything but the list stays as it is. */
static void edits_the_list_alone(void **state)
{
	static const struct {
		const char *before, *after; /* NULL: refused */
	} rows[] = {
		{"{}", "{\"acls\": " NEW "}"},
		{" { } ", " {\"acls\": " NEW " } "},
		{"{\"owner\": \"ann\" }", "{\"owner\": \"ann\", \"acls\": " NEW " }"},
		{"{\"acls\":null,\"x\":NaN}", "{\"acls\":" NEW ",\"x\":NaN}"},
		{"{\"acls\" : {\"b\": {\"read\": true, \"domain\": \"a/b\"}} , \"created\": 1.50}",
		 "{\"acls\" : " NEW " , \"created\": 1.50}"},
		{"{\"root\": \"" ROOT_ID "\", \"created\": 1795231615.5028985, \"acls\": {}, "
		 "\"limits\": [1e2, {\"acls\": 1}], \"\\u0061\": \"\\\"acls\\\": {},\"}",
		 "{\"root\": \"" ROOT_ID "\", \"created\": 1795231615.5028985, \"acls\": " NEW ", "
		 "\"limits\": [1e2, {\"acls\": 1}], \"\\u0061\": \"\\\"acls\\\": {},\"}"},
		/* If a member occurs twice, the last one counts. */
		{"{\"acls\": {}, \"acls\": null, \"n\": 99999999999999999999}",
		 "{\"acls\": {}, \"acls\": " NEW ", \"n\": 99999999999999999999}"},
		{"{\"\\u0061cls\": {}, \"x\": 1}", "{\"\\u0061cls\": " NEW ", \"x\": 1}"},
		{"{\"acls\": {}, \"\\u0061cls\": {}}", "{\"acls\": {}, \"\\u0061cls\": " NEW "}"},
		{"{\"acls\": {}", NULL},
		{"[]", NULL},
		{"", NULL},
		{"{\"root\": 7}", NULL},
	};
	struct domain_acl acl = {.user = "ann", .perms = DOMAIN_PERM_READ};
	const struct domain_info acls = {.owner = "", .nacls = 1, .acls = &acl};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		auto_bytes struct bytes out = {0};
		struct err err = ERR_INIT;
		const size_t n = strlen(rows[i].before);
		char *copy = malloc(n ? n : 1); /* of exactly its size */
		memcpy(copy, rows[i].before, n);
		const int rc = hsds2_ops.documents->edit_acls(copy, n, &acls, &out, &err);
		free(copy);
		if (rc != (rows[i].after ? 0 : -EIO))
			fail_msg("%s: %d %s", rows[i].before, rc, err.msg);
		if (!rc && (out.len != strlen(rows[i].after) ||
			    memcmp(out.data, rows[i].after, out.len) != 0))
			fail_msg("%s: %.*s", rows[i].before, (int)out.len, (char *)out.data);
	}
}

static void removes_all_entries(void **state)
{
	static const char text[] = "{\"acls\": {\"ann\": " ALL "}, \"owner\": \"ann\"}";
	const struct domain_info none = {.owner = ""};
	auto_bytes struct bytes out = {0};
	assert_int_equal(schema_acls_edit(text, sizeof(text) - 1, &none, &out, NULL), 0);
	assert_int_equal(bytes_append(&out, "", 1), 0);
	assert_string_equal((char *)out.data, "{\"acls\": {}, \"owner\": \"ann\"}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_what_is_exact),
		cmocka_unit_test(refuses_long_names_and_lists),
		cmocka_unit_test(reads_permissions),
		cmocka_unit_test(edits_the_list_alone),
		cmocka_unit_test(removes_all_entries),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
