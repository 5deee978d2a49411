/* SPDX-License-Identifier: Apache-2.0 */
/* The identity of an image: the same for the same version of a domain, and another one for each
 * other version. And what lies beneath a draft of a domain (base_reader.c), which depends on it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <drafts/base_reader.h>
#include <drafts/draft_commit.h>
#include "engine/engine_internal.h"
#include <snapshots/size_cache.h>
#include <snapshots/snapshot_identity.h>
#include <bucket/schemas.h>

#include "small_domain.h"

#define DOCUMENT "d.h5/.domain.json"
#define CHUNK	 SMALL_PREFIX "/d/0002-000000-000001/1"

enum { ID = DRAFT_BENEATH_ID };

static void put_document(struct bucket *e, const char *owner)
{
	char json[512];
	snprintf(json, sizeof(json), "{'root':'" SMALL_ROOT "','owner':'%s','acls':{}}", owner);
	assert_int_equal(small_put(e->store, DOCUMENT, json), 0);
}

static void engine_begin(struct bucket *e)
{
	*e = (struct bucket){.pool = pool_new(0)};
	e->env = env_real(NULL, e->pool);
	e->env.budget = budget_new(&(struct budget_limits){
		.bytes = 64 << 20, .metadata_min = 64 << 20, .option = "cache_size"});
	e->store = small_domain_new(&e->env);
	e->domains =
		(struct domain_bucket){.env = &e->env, .store = e->store, .schemas = schema_all()};
	e->cache = cache_new(&e->env, 1, NULL);
	e->names = names_new(&(struct names_options){
		.env = &e->env, .store = e->store, .schemas = schema_all()});
	e->snapshots = snapshots_new(e, 1 << 20);
	e->size_cache = size_cache_new(NULL, NULL, 0);
	put_document(e, "before");
}

static void engine_end(struct bucket *e)
{
	size_cache_free(e->size_cache);
	snapshots_free(e->snapshots);
	names_free(e->names);
	cache_free(e->cache);
	store_free(e->store);
	pool_free(e->pool);
	budget_free(e->env.budget);
}

static struct snapshot *open_domain(struct bucket *e)
{
	auto_names_node struct names_node *n = NULL;
	struct snapshot_time requested;
	struct snapshot *s;
	struct err err = ERR_INIT;
	if (snapshot_resolve(e, "d.h5", &n, &requested, &err) ||
	    domain_snapshot(e, n, &requested, &s, &err))
		fail_msg("%s", err.msg);
	return s;
}

static void identity(struct bucket *e, uint8_t id[ID])
{
	struct snapshot *s = open_domain(e);
	snapshot_identity(e, s, id);
	snapshot_close(s);
}

static void one_version_has_one_identity(void **state)
{
	struct bucket e;
	uint8_t id[2][ID];
	engine_begin(&e);
	identity(&e, id[0]);
	for (int again = 0; again < 2; again++) {
		identity(&e, id[1]);
		assert_memory_equal(id[0], id[1], ID);
		/* Without what is in memory. */
		snapshots_free(e.snapshots);
		e.snapshots = snapshots_new(&e, 1 << 20);
	}
	engine_end(&e);
}

static void change_document(struct bucket *e)
{
	put_document(e, "after");
}

static void change_group(struct bucket *e)
{
	assert_int_equal(small_put(e->store, SMALL_KEY_GROUP,
				   "{" SMALL_HEAD(SMALL_GROUP) ",'links':{},'attributes':{}}"),
			 0);
}

static void change_chunk(struct bucket *e)
{
	assert_int_equal(call_put(e->store, CHUNK, "0123456789abcdef", 16, NULL, NULL, NULL), 0);
}

static void add_chunk(struct bucket *e)
{
	assert_int_equal(call_put(e->store, SMALL_PREFIX "/d/0002-000000-000001/2",
				  "0123456789abcdef", 16, NULL, NULL, NULL),
			 0);
}

static void change_filters(struct bucket *e)
{
	e->no_filters = true;
	snapshots_forget(e->snapshots, "d.h5");
}

static void each_change_makes_another_identity(void **state)
{
	static void (*const changes[])(struct bucket * e) = {
		change_document, change_group, change_chunk, add_chunk, change_filters};
	struct bucket e;
	uint8_t id[2][ID];
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		engine_begin(&e);
		identity(&e, id[0]);
		changes[i](&e);
		identity(&e, id[1]);
		assert_memory_not_equal(id[0], id[1], ID);
		engine_end(&e);
	}
}

/* ---- what lies beneath a draft ---- */

/* As the mount describes it that opens the domain now. */
static void describe(struct bucket *e, struct draft_about *about, char version[COMMIT_VERSION])
{
	auto_names_node struct names_node *n = NULL;
	struct snapshot_time requested;
	struct snapshot *s = open_domain(e);
	assert_int_equal(snapshot_resolve(e, "d.h5", &n, &requested, NULL), 0);
	assert_int_equal(commit_version_of(n, version), 0);
	*about = (struct draft_about){.kind = DRAFT_CHANGE,
				      .path = "d.h5",
				      .name = "d.h5",
				      .version = version,
				      .beneath = image_size(s->image),
				      .layout = IMAGE_REVISION};
	snapshot_identity(e, s, about->beneath_id);
	snapshot_close(s);
}

static int open_code(struct bucket *e, const struct draft_about *about)
{
	struct base_reader o = {.base = NULL};
	struct err err = ERR_INIT;
	const int rc = base_reader_open(&o, e, about, &err);
	assert_true(rc == 0 || err.msg[0]);
	assert_true(rc == 0 || !o.base);
	base_reader_close(&o);
	return rc;
}

static void the_image_is_read(void **state)
{
	struct bucket e;
	struct draft_about about;
	char version[COMMIT_VERSION];
	uint8_t expected[512], bytes[512];
	engine_begin(&e);
	describe(&e, &about, version);
	struct base_reader o = {.base = NULL};
	const struct draft_beneath reader = base_reader_beneath(&o);
	assert_int_equal(reader.read(reader.ctx, 0, bytes, sizeof(bytes), NULL), -EIO);
	assert_int_equal(base_reader_open(&o, &e, &about, NULL), 0);
	assert_int_equal(reader.read(reader.ctx, 100, bytes, sizeof(bytes), NULL), 0);
	struct snapshot *s = open_domain(&e);
	struct image_stream *stream = image_stream_new(s->image);
	assert_int_equal(image_read(s->image, stream, expected, sizeof(expected), 100, NULL, NULL),
			 sizeof(expected));
	assert_memory_equal(bytes, expected, sizeof(expected));
	image_stream_free(stream);
	snapshot_close(s);
	base_reader_close(&o);
	engine_end(&e);
}

static void another_image_is_refused(void **state)
{
	struct bucket e;
	struct draft_about about, other;
	char version[COMMIT_VERSION];
	engine_begin(&e);
	describe(&e, &about, version);
	assert_int_equal(open_code(&e, &about), 0);
	other = about;
	other.beneath_id[31] ^= 1;
	assert_int_equal(open_code(&e, &other), -ESTALE);
	other = about;
	other.beneath++;
	assert_int_equal(open_code(&e, &other), -ESTALE);
	for (other = about, other.layout = 0; other.layout < IMAGE_REVISION; other.layout++)
		assert_int_equal(open_code(&e, &other), -EINVAL);
	other = about;
	memset(other.beneath_id, 0, ID);
	assert_int_equal(open_code(&e, &other), -EINVAL);
	other = about;
	other.name = "../d.h5";
	assert_int_equal(open_code(&e, &other), -EINVAL);
	other.name = other.path = "none.h5";
	assert_int_equal(open_code(&e, &other), -ESTALE);
	other = about;
	other.version = "x:1";
	assert_int_equal(open_code(&e, &other), -EINVAL);
	change_chunk(&e);
	assert_int_equal(open_code(&e, &about), -ESTALE);
	describe(&e, &about, version);
	assert_int_equal(open_code(&e, &about), 0);
	change_document(&e);
	assert_int_equal(open_code(&e, &about), -ESTALE);
	engine_end(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_version_has_one_identity),
		cmocka_unit_test(each_change_makes_another_identity),
		cmocka_unit_test(the_image_is_read),
		cmocka_unit_test(another_image_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
