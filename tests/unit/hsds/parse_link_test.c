/* SPDX-License-Identifier: Apache-2.0 */
#include "schema_test.h"

#define HARD(id)  "{\"class\":\"H5L_TYPE_HARD\",\"id\":\"" id "\"}"
#define SOFT(p)	  "{\"class\":\"H5L_TYPE_SOFT\",\"h5path\":" p "}"
#define EXT(p, d) "{\"class\":\"H5L_TYPE_EXTERNAL\",\"h5path\":" p "," d "}"

static void reads_each_class(void **state)
{
	struct parsed p = parse_group("\"links\":{\"a\":" HARD(DATASET_ID) ",\"b\":" SOFT(
		"\"/x/"
		"..\"") ",\"c\":" EXT("\"/x\"", "\"h5domain\":\"hdf5://home/"
						"o.h5\"") ",\"d\":" EXT("\"y"
									"\"",
									"\"fi"
									"le\""
									":\"o"
									".h5"
									"\"") ",\"e\""
									      ":" EXT("\""
										      "y"
										      "\"",
										      "\""
										      "do"
										      "ma"
										      "in"
										      "\""
										      ":"
										      "\""
										      "/o"
										      ".h"
										      "5"
										      "\"") "}");
	assert_int_equal(p.rc, 0);
	assert_int_equal(p.skips, 0);
	assert_int_equal(p.o.group.nlinks, 5);
	const struct link *l = p.o.group.links;
	assert_int_equal(l[0].cls, LINK_HARD);
	assert_int_equal(l[0].target, 2);
	assert_int_equal(l[1].cls, LINK_SOFT);
	assert_string_equal(l[1].path, "/x/..");
	assert_int_equal(l[2].cls, LINK_EXTERNAL);
	assert_string_equal(l[2].path, "/x");
	assert_string_equal(l[2].domain, "hdf5://home/o.h5");
	assert_string_equal(l[3].domain, "o.h5");
	assert_string_equal(l[4].domain, "/o.h5");
	parsed_release(&p);
}

static void order_is_creation_then_name(void **state)
{
	struct parsed p = parse_group(
		"\"links\":{\"w\":{\"class\":\"H5L_TYPE_SOFT\",\"h5path\":\"x\",\"created\":2.5},"
		"\"y\":{\"class\":\"H5L_TYPE_SOFT\",\"h5path\":\"x\",\"created\":1.5},"
		"\"\\u00e9\":{\"class\":\"H5L_TYPE_SOFT\",\"h5path\":\"x\",\"created\":1.5},"
		"\"x\":{\"class\":\"H5L_TYPE_SOFT\",\"h5path\":\"x\",\"created\":1.5},"
		"\"late\":{\"class\":\"H5L_TYPE_SOFT\",\"h5path\":\"x\",\"created\":"
		"1795231615.5899684},"
		"\"early\":{\"class\":\"H5L_TYPE_SOFT\",\"h5path\":\"x\",\"created\":"
		"1795231615.5899682}}");
	static const char *const want[] = {"x", "y", "é", "w", "early", "late"};
	assert_int_equal(p.rc, 0);
	assert_int_equal(p.o.group.nlinks, 6);
	assert_true(p.o.group.links_ordered);
	for (size_t i = 0; i < 6; i++)
		assert_string_equal(p.o.group.links[i].name, want[i]);
	parsed_release(&p);
}

static void invalid_links_are_left_out(void **state)
{
	static const struct {
		const char *link, *why;
	} rows[] = {
		{"\"\":" HARD(ROOT_ID), "link \"\": the name is empty"},
		{"\".\":" HARD(ROOT_ID), "link \".\": the name \".\" is reserved"},
		{"\"a/b\":" HARD(ROOT_ID), "link \"a/b\": the name contains \"/\""},
		{"\"a\\u0000b\":" HARD(ROOT_ID), "it contains a NUL"},
		{"\"a\":" HARD(OTHER_ID), "link \"a\": object " OTHER_ID " does not exist"},
		{"\"a\":" HARD("x"), "id: not the id of an object"},
		{"\"a\":{\"class\":\"H5L_TYPE_HARD\"}", "id: not the id of an object"},
		{"\"a\":{\"class\":\"H5L_TYPE_USER\"}", "unknown class \"H5L_TYPE_USER\""},
		{"\"a\":{}", "no class"},
		{"\"a\":null", "no class"},
		{"\"a\":" SOFT("null"), "h5path: missing"},
		{"\"a\":" SOFT("\"\""), "h5path: it is empty"},
		{"\"a\":" SOFT("\"x\\u0000\""), "h5path: it contains a NUL"},
		{"\"a\":" SOFT("NaN"), "h5path: a number"},
		{"\"a\":" EXT("\"x\"", "\"y\":1"), "h5domain: missing"},
		{"\"a\":" EXT("\"x\"", "\"h5domain\":\"\""), "h5domain: it is empty"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[512];
		snprintf(text, sizeof(text), "\"links\":{\"good\":" HARD(ROOT_ID) ",%s}",
			 rows[i].link);
		struct parsed p = parse_group(text);
		assert_int_equal(p.rc, 0);
		assert_int_equal(p.o.group.nlinks, 1);
		assert_string_equal(p.o.group.links[0].name, "good");
		assert_int_equal(p.skips, 1);
		assert_contains(p.what, rows[i].why);
		parsed_release(&p);
	}
}

/* A soft link with a name of name_len bytes and a path of path_len bytes. */
static struct parsed parse_long(size_t name_len, size_t path_len)
{
	size_t cap = name_len + path_len + 512;
	char *text = malloc(cap);
	assert_non_null(text);
	char *name = calloc(1, name_len + 1);
	char *path = calloc(1, path_len + 1);
	assert_non_null(name);
	assert_non_null(path);
	memset(name, 'n', name_len);
	memset(path, 'p', path_len);
	int n = snprintf(text, cap, "{" HEAD(GROUP_ID) ",\"links\":{\"%s\":" SOFT("\"%s\"") "}}",
			 name, path);
	struct parsed p = parse_bytes(GROUP_ID, text, (size_t)n);
	free(text);
	free(name);
	free(path);
	return p;
}

static void lengths_are_limited(void **state)
{
	struct parsed p = parse_long(65000, 65000);
	assert_int_equal(p.o.group.nlinks, 1);
	parsed_release(&p);
	p = parse_long(65001, 1);
	assert_int_equal(p.o.group.nlinks, 0);
	assert_contains(p.what, "65001 bytes, the limit is 65000");
	parsed_release(&p);
	p = parse_long(1, 65001);
	assert_int_equal(p.o.group.nlinks, 0);
	assert_contains(p.what, "h5path: 65001 bytes");
	parsed_release(&p);
}

static void many_links(void **state)
{
	enum { N = 100000 };
	size_t cap = 160 * (size_t)N;
	char *text = malloc(cap);
	assert_non_null(text);
	size_t n = (size_t)snprintf(text, cap, "{" HEAD(GROUP_ID) ",\"links\":{");
	for (int i = 0; i < N; i++)
		n += (size_t)snprintf(text + n, cap - n,
				      "%s\"link%d\":{\"class\":\"H5L_TYPE_HARD\",\"id\":\"" ROOT_ID
				      "\",\"created\":%d.5}",
				      i ? "," : "", i, N - i);
	n += (size_t)snprintf(text + n, cap - n, "}}");
	struct parsed p = parse_bytes(GROUP_ID, text, n);
	free(text);
	assert_int_equal(p.rc, 0);
	assert_int_equal(p.o.group.nlinks, N);
	assert_string_equal(p.o.group.links[0].name, "link99999");
	parsed_release(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_each_class),
		cmocka_unit_test(order_is_creation_then_name),
		cmocka_unit_test(invalid_links_are_left_out),
		cmocka_unit_test(lengths_are_limited),
		cmocka_unit_test(many_links),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
