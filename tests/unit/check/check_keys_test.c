/* SPDX-License-Identifier: Apache-2.0 */
/* What is below the prefix of a domain: orphans, chunks outside of the extent, the summary. */
#include "findings.h"

#include <domain/documents.h>
#include <engine/parts.h>
#include <storage/storage_names.h>

static void put_domain(struct test_bucket *b)
{
	static const struct bucket_more more = {0};
	bucket_datasets(b, "x.h5", 2, 1, &more);
	bucket_chunk(b, 0, "0123456789abcdef");
}

static void put_summary(struct test_bucket *b, unsigned int groups, unsigned int chunks,
			unsigned int bytes)
{
	char text[256];
	snprintf(text, sizeof(text),
		 "{\"num_groups\": %u, \"num_datatypes\": 0, \"datasets\": {}, \"num_chunks\": %u, "
		 "\"allocated_bytes\": %u}",
		 groups, chunks, bytes);
	bucket_put(b, CHECK_PREFIX ".info.json", text);
}

static void objects_without_a_link(void **state)
{
	struct test_bucket *b = *state;
	put_domain(b);
	bucket_put(b, CHECK_PREFIX "g/1111-222222-999999/.group.json",
		   "{\"id\": \"g-00000001-00000000-1111-222222-999999\", \"root\": "
		   "\"g-00000001-00000000-8888-888988-888888\", \"created\": 1, "
		   "\"lastModified\": 1, \"links\": {}, \"attributes\": {}}");
	bucket_put(b, CHECK_PREFIX "g/1111-222222-999999/more", "12345");
	bucket_open(b, 1000, 0);
	assert_check(b, "x.h5", false,
		     "note /x.h5  : objects without a link: 1, with 2 keys of 167 bytes\n"
		     "= sound /x.h5\n");
}

static void keys_beside_the_chunks(void **state)
{
	struct test_bucket *b = *state;
	put_domain(b);
	bucket_put(b, CHECK_DATA "2", "outside of the extent");
	bucket_put(b, CHECK_DATA "01", "another spelling of 1");
	bucket_put(b, CHECK_DATA "0_0", "another rank");
	bucket_put(b, CHECK_PREFIX "d/1111-222222-00000/1", "almost an object");
	bucket_put(b, CHECK_PREFIX "x", "nothing");
	bucket_open(b, 1000, 0);
	assert_check(b, "x.h5", false,
		     "note /x.h5 /data : keys that are no chunk within its extent: 3, 54 bytes\n"
		     "note /x.h5  : keys that belong to no object: 2, 23 bytes\n"
		     "= sound /x.h5\n");
}

/* What this program keeps below the storage. */
static void names_and_deletions(void **state)
{
	struct test_bucket *b = *state;
	put_domain(b);
	bucket_put(b, CHECK_PREFIX ".hsmount-names", "no list");
	bucket_put(b, CHECK_PREFIX ".hsmount-deletion-0123456789abcdef", "");
	bucket_open(b, 1000, 0);
	assert_check(
		b, "x.h5", false,
		"note /x.h5  " CHECK_PREFIX ".hsmount-deletion-0123456789abcdef: a deletion of "
		"this storage is running or was interrupted; after an hour it does not count "
		"any more\n"
		"error /x.h5  " CHECK_PREFIX ".hsmount-names: the domain cannot be renamed or "
		"removed: list of names " CHECK_PREFIX ".hsmount-names: it does not begin with "
		"the record HSMNAMES\n"
		"= damaged /x.h5\n");
}

/* A rename that was interrupted: the old name still leads to the storage. */
static void a_rename_that_has_not_ended(void **state)
{
	struct test_bucket *b = *state;
	bucket_domain(b, 1, "old.h5");
	put_domain(b);
	bucket_open(b, 1000, 0);
	const struct document_place place = {.env = &b->engine->bucket.env,
					     .store = b->engine->bucket.store,
					     .schema = bucket_new_domains(&b->engine->bucket)};
	const struct rename_record record = {
		.state = RENAME_BEGUN, .number = 1, .version = "v", .from = "old.h5", .to = "x.h5"};
	auto_names struct storage_names names = {0};
	struct storage storage;
	assert_true(schema_storage_of_prefix(place.schema, CHECK_PREFIX, &storage));
	assert_int_equal(storage_names_init(&names, &storage, NULL), 0);
	assert_int_equal(storage_names_set_rename(&names, &record, NULL), 0);
	assert_int_equal(storage_names_put(&place, &names, NULL), 0);
	assert_check(b, "x.h5", false,
		     "note /x.h5  " CHECK_PREFIX ".hsmount-names: a rename from /old.h5 to /x.h5 "
		     "is running, was interrupted, or was refused; the next rename of the domain "
		     "finishes it\n"
		     "= sound /x.h5\n");
	bucket_remove(b, "old.h5/.domain.json");
	assert_check(b, "x.h5", false, "= sound /x.h5\n");
}

static void the_summary(void **state)
{
	struct test_bucket *b = *state;
	put_domain(b);
	put_summary(b, 3, 1, 16);
	bucket_open(b, 1000, 0);
	assert_check(b, "x.h5", false, "= sound /x.h5\n");
	put_summary(b, 4, 2, 17);
	assert_check(b, "x.h5", false,
		     "note /x.h5  " CHECK_PREFIX ".info.json: the summary is stale: it states "
		     "objects 4 instead of 3\n"
		     "note /x.h5  " CHECK_PREFIX ".info.json: the summary is stale: it states "
		     "chunks 2 instead of 1\n"
		     "note /x.h5  " CHECK_PREFIX ".info.json: the summary is stale: it states "
		     "bytes of chunks 17 instead of 16\n"
		     "= sound /x.h5\n");
	bucket_put(b, CHECK_PREFIX ".info.json", "{\"num_chunks\": \"many\"}");
	assert_check(b, "x.h5", false,
		     "note /x.h5  " CHECK_PREFIX ".info.json: the summary is damaged: num_chunks: "
		     "not a count\n= sound /x.h5\n");
}

static void sizes_of_chunks(void **state)
{
	struct test_bucket *b = *state;
	put_domain(b);
	bucket_chunk(b, 0, "0123456789abcde");
	bucket_chunk(b, 1, "");
	bucket_open(b, 1000, 0);
	assert_check(b, "x.h5", true,
		     "error /x.h5 /data " CHECK_DATA "0: the chunk has 15 bytes instead of 16\n"
		     "error /x.h5 /data " CHECK_DATA "1: the chunk has 0 bytes instead of 16\n"
		     "= damaged /x.h5\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(objects_without_a_link, bucket_setup,
						bucket_teardown),
		cmocka_unit_test_setup_teardown(keys_beside_the_chunks, bucket_setup,
						bucket_teardown),
		cmocka_unit_test_setup_teardown(names_and_deletions, bucket_setup, bucket_teardown),
		cmocka_unit_test_setup_teardown(a_rename_that_has_not_ended, bucket_setup,
						bucket_teardown),
		cmocka_unit_test_setup_teardown(the_summary, bucket_setup, bucket_teardown),
		cmocka_unit_test_setup_teardown(sizes_of_chunks, bucket_setup, bucket_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
