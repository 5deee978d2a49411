/* SPDX-License-Identifier: Apache-2.0 */
/* Catalogs of schema v1: which lines give an id. */
#include "schema_test.h"

#include "schema/hsds/hsds1.h"

#define UUID(n) "953ef986-e555-11f1-b213-02fc0000000" #n

struct found {
	unsigned int n;
	char digits[32]; /* the last digit of each id */
	int result;
};

static int take(void *ctx, const struct schema_id *id)
{
	struct found *f = ctx;
	char text[SCHEMA_ID_MAX];
	schema_id_format(id, text);
	f->digits[f->n++] = text[SCHEMA_ID_LEN - 1];
	return f->result;
}

/* The text is in a block of exactly its size. */
static int parse(const char *text, enum object_kind kind, struct found *f)
{
	const size_t n = strlen(text);
	char *exact = malloc(n ? n : 1);
	assert_non_null(exact);
	memcpy(exact, text, n);
	const int rc = hsds1_catalog_parse(exact, n, kind, take, f);
	free(exact);
	return rc;
}

static void lines(void **state)
{
	static const struct {
		const char *text, *digits;
	} rows[] = {
		{"", ""},
		{"\n\n", ""},
		{"d-" UUID(1) " e8bd 1795229118 686 1 6\nd-" UUID(2) " e 1 2\n", "12"},
		{"d-" UUID(1) "\nd-" UUID(2), "12"},
		{"d-" UUID(1) " e8bd 17952", "1"},	     /* cut off behind the id */
		{"d-" UUID(1) "\nd-953ef986-e555", "1"},     /* inside of it */
		{"g-" UUID(1) " e\nd-" UUID(2) " e\n", "2"}, /* another kind */
		{"d-00112233-44556677-0002-000000-000000 e\nd-" UUID(3) " e\n", "3"},
		{" d-" UUID(1) " e\n\td-" UUID(2) "\nx d-" UUID(3) "\nd-" UUID(4) "x\n", ""},
		{"d-" UUID(1) "\r\nd-" UUID(2) " e\r\n", "2"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct found f = {0};
		assert_int_equal(parse(rows[i].text, OBJECT_DATASET, &f), 0);
		assert_string_equal(f.digits, rows[i].digits);
	}
}

static void a_result_stops(void **state)
{
	struct found f = {.result = -ENOMEM};
	assert_int_equal(parse("d-" UUID(1) "\nd-" UUID(2) "\n", OBJECT_DATASET, &f), -ENOMEM);
	assert_int_equal(f.n, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines),
		cmocka_unit_test(a_result_stops),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
