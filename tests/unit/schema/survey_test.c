/* SPDX-License-Identifier: Apache-2.0 */
/* The kind of a place, according to the keys of its first listings. */
#include "schema_test.h"
#include <bucket/schemas.h>

#define V1_UUID "953ef986-e555-11f1-b213-02fc00000001"

static struct schema_survey survey(const char *const *keys)
{
	struct schema_survey s = {0};
	for (; *keys; keys++) {
		/* In a block of exactly the key's size, so that the address sanitizer sees a read
		 * past its end. */
		char *exact = strdup(*keys);
		assert_non_null(exact);
		schema_survey_key(schema_all(), &s, exact);
		free(exact);
	}
	return s;
}

static void places(void **state)
{
	enum { MAX = 6 };
	static const struct {
		const char *keys[MAX];
		const char *document;
		bool within;
		enum schema_place place;
	} rows[] = {
		{{NULL}, NULL, false, SCHEMA_PLACE_EMPTY},
		{{NULL}, NULL, true, SCHEMA_PLACE_EMPTY},
		/* v2 */
		{{"db/"}, NULL, false, SCHEMA_PLACE_BUCKET},
		{{"db/00112233-44556677/.group.json"}, NULL, false, SCHEMA_PLACE_BUCKET},
		{{"home/", "db/"}, NULL, true, SCHEMA_PLACE_BUCKET},
		{{"e8bdf-d-" V1_UUID, "db/", "home/"}, NULL, false, SCHEMA_PLACE_BUCKET},
		{{".domain.json", "db/"}, "{\"root\": \"g\"}", true, SCHEMA_PLACE_BUCKET},
		/* a bucket without objects */
		{{"home/", "home/.domain.json"}, NULL, false, SCHEMA_PLACE_BUCKET},
		/* v1 */
		{{"e8bdf-d-" V1_UUID}, NULL, false, SCHEMA_PLACE_BUCKET},
		{{"headnode", "home/", "00000-g-" V1_UUID}, NULL, true, SCHEMA_PLACE_BUCKET},
		{{"fffff-t-" V1_UUID}, NULL, false, SCHEMA_PLACE_BUCKET},
		{{"b784c-c-" V1_UUID "_0"}, NULL, false, SCHEMA_PLACE_BUCKET},
		{{"41de3-c-" V1_UUID "_0_12_345"}, NULL, false, SCHEMA_PLACE_BUCKET},
		{{"41de3-c17-" V1_UUID "_0_1"}, NULL, false, SCHEMA_PLACE_BUCKET},
		{{".domain.json", "41de3-c-" V1_UUID "_0"}, "{}", false, SCHEMA_PLACE_BUCKET},
		/* folders */
		{{".domain.json"}, "{\"owner\": \"ann\"}", false, SCHEMA_PLACE_FOLDER},
		{{".domain.json", "x.h5/"}, "{\"root\": null}", true, SCHEMA_PLACE_FOLDER},
		{{".domain.json", "x.h5/.domain.json"}, NULL, false, SCHEMA_PLACE_FOLDER},
		{{"x.h5/", "x.h5/.domain.json"}, NULL, true, SCHEMA_PLACE_FOLDER},
		{{".domain.json"}, "{\"root\": \"g-0\"", false, SCHEMA_PLACE_FOLDER},
		{{".domain.json"}, "\"root\"", false, SCHEMA_PLACE_FOLDER},
		{{".domain.json"}, "", false, SCHEMA_PLACE_FOLDER},
		/* domains */
		{{".domain.json"}, "{\"root\": \"" ROOT_ID "\"}", false, SCHEMA_PLACE_DOMAIN},
		{{".domain.json", ".groups.txt"},
		 "{\"root\": \"g-" V1_UUID "\"}",
		 true,
		 SCHEMA_PLACE_DOMAIN},
		{{".domain.json", "sub/.domain.json"},
		 "{\"root\": \"?\"}",
		 false,
		 SCHEMA_PLACE_DOMAIN},
		/* others */
		{{"data/", "README"}, NULL, false, SCHEMA_PLACE_OTHER},
		{{"data/", "README"}, NULL, true, SCHEMA_PLACE_OTHER},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct schema_survey s = survey(rows[i].keys);
		if (rows[i].document)
			schema_all()[0]->survey_document(&s, rows[i].document,
							 strlen(rows[i].document));
		const enum schema_place place = schema_recognise(&s, rows[i].within);
		if (place != rows[i].place)
			fail_msg("row %zu: place %d, not %d", i, place, rows[i].place);
	}
}

/* Keys that are similar to those of a bucket. */
static void similar_keys(void **state)
{
	static const char *const keys[] = {
		"",
		"/",
		"db",
		"dbx/",
		"Db/",
		"xdb/",
		"home/db/",
		".domain.jsonx",
		"x.domain.json",
		"/.domain.json",
		".domain.json/",
		"x/domain.json",
		"-",
		"e8bdf",
		"e8bdf-",
		"e8bdf-d",
		"e8bdf-d-",
		"e8bdf-d-953ef986-e555-11f1-b213-02fc0000000",
		"e8bdf-d-953ef986-e555-11f1-b213-02fc000000012",
		"e8bdf-d-953ef986-e555-11f1-b213-02fc0000000G",
		"e8bdf-d-953ef986-e555-11f1-b21302fc00000001",
		"e8bdf-d-953ef9860-e55-11f1-b213-02fc00000001",
		"e8bd-d-" V1_UUID,
		"e8bdff-d-" V1_UUID,
		"E8BDF-d-" V1_UUID,
		"e8bdf-x-" V1_UUID,
		"e8bdf_d-" V1_UUID,
		"e8bdf-d-" V1_UUID "/",
		"e8bdf-d-" V1_UUID "_0",
		"e8bdf-d1-" V1_UUID,
		"e8bdf-c-" V1_UUID "_",
		"e8bdf-c-" V1_UUID "_0_",
		"e8bdf-c-" V1_UUID "__0",
		"e8bdf-c-" V1_UUID "_0x",
		"e8bdf-c-" V1_UUID "_-1",
		"home/e8bdf-d-" V1_UUID,
		"e8bdf-\xff-" V1_UUID,
	};
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		const char *const one[] = {keys[i], NULL};
		struct schema_survey s = survey(one);
		if (schema_recognise(&s, true) != SCHEMA_PLACE_OTHER)
			fail_msg("'%s' is recognised as place %d", keys[i],
				 schema_recognise(&s, true));
	}
}

/* A key of schema v1, truncated at each byte, and with each byte changed. */
static void damaged_v1_keys(void **state)
{
	static const char key[] = "41de3-c17-" V1_UUID "_0_12";
	const size_t uuid_end = sizeof("41de3-c17-" V1_UUID) - 1;
	char damaged[sizeof(key)];
	for (size_t i = 0; i < sizeof(key) - 1; i++) {
		struct schema_survey s = {0};
		strcpy(damaged, key);
		damaged[i] = '\0';
		schema_survey_key(schema_all(), &s, damaged);
		const bool ends_well = i == uuid_end + 2 || i == uuid_end + 4 || i == uuid_end + 5;
		if (s.storage != ends_well)
			fail_msg("'%s' is recognised: %d", damaged, s.storage);
		s = (struct schema_survey){0};
		strcpy(damaged, key);
		damaged[i] = '~';
		schema_survey_key(schema_all(), &s, damaged);
		if (s.storage)
			fail_msg("'%s' is recognised as a key of v1", damaged);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(places),
		cmocka_unit_test(similar_keys),
		cmocka_unit_test(damaged_v1_keys),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
