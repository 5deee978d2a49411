/* SPDX-License-Identifier: Apache-2.0 */
/* Imports without a record in the bucket, for callers that keep a journal. */
#include "import_fixture.h"
#include "storages.h"

#include <domain/puts.h>

enum { ALL = OBJECTS + CHUNKS + 1 /* puts: with the document of the domain */ };

struct caller {
	struct world w;
	struct import_commit commit;
	struct import_result result;
	unsigned int begun, published, ways;
	unsigned int requests; /* before the call of begin */
	int begin;	       /* its result */
};

static int begin(void *ctx, struct err *err)
{
	struct caller *c = ctx;
	c->begun++;
	c->requests = c->w.gate->n;
	return c->begin ? err_set(err, c->begin, "the journal is full") : 0;
}

static int publish(void *ctx, struct err *err)
{
	struct caller *c = ctx;
	c->published++;
	return 0;
}

static int make_way(void *ctx, struct err *err)
{
	struct caller *c = ctx;
	c->ways++;
	return call_delete(c->w.store, c->w.opt.path, NULL, err);
}

static void open_with(struct caller *c, unsigned int workers)
{
	*c = (struct caller){.commit = {.storage = storage_nth(0x1234567890abcdef),
					.modified_ns = INT64_C(1800000000000000000),
					.begin = begin,
					.publish = publish,
					.make_way = make_way,
					.ctx = c}};
	world_init(&c->w, workers);
	c->w.opt.commit = &c->commit;
	c->w.opt.file.check = NULL;
	world_open_gate(&c->w);
}

static void open_caller(struct caller *c)
{
	open_with(c, 0);
}

static int import(struct caller *c, struct err *err)
{
	return world_import(&c->w, &c->result, err);
}

static void only_puts_are_sent(void **state)
{
	struct caller c;
	struct err err;
	open_caller(&c);
	assert_int_equal(import(&c, &err), 0);
	assert_int_equal(c.w.gate->n, ALL);
	assert_int_equal(c.w.gate->ops[STORE_PUT], ALL);
	assert_int_equal(c.requests, 0);
	assert_int_equal(c.begun, 1);
	assert_int_equal(c.published, 1);
	assert_int_equal(c.ways, 0);
	assert_int_equal(world_keys(&c.w, ""), ALL);
	assert_int_equal(world_keys(&c.w, "db/12345678-90abcdef/"), ALL - 1);
	assert_int_equal(world_objects(&c.w, "home/ann/run.h5"), OBJECTS);
	assert_true(c.result.etag[0]);
	assert_false(c.result.refused);
	world_release(&c.w);
}

/* The record has each object with its version and text. That the texts are those in the bucket, the
 * integration test of the first open shows. */
static void it_says_what_it_has_put(void **state)
{
	struct caller c;
	struct err err;
	struct domain_puts *puts = NULL;
	uint32_t n;
	open_with(&c, 2);
	c.commit.puts = &puts;
	assert_int_equal(import(&c, &err), 0);
	assert_non_null(puts);
	assert_true(domain_puts_is_all(puts) && domain_puts_is_few(puts));
	auto_free struct schema_put *all = domain_puts_list(puts, &n);
	assert_int_equal(n, OBJECTS);
	for (uint32_t i = 0; i < n; i++) {
		auto_free char *text = strndup(all[i].text, all[i].len);
		assert_true(all[i].etag[0]);
		assert_non_null(strstr(text, all[i].id));
	}
	domain_puts_free(puts);
	puts = NULL;
	c.commit.continues = true;
	assert_int_equal(import(&c, &err), 0);
	assert_null(puts); /* of an earlier attempt, nobody knows the versions */
	world_release(&c.w);
}

/* At each request, and once more: the same bucket. */
static void a_repeated_one_puts_the_same(void **state)
{
	struct caller whole;
	struct err err;
	open_caller(&whole);
	assert_int_equal(import(&whole, &err), 0);
	auto_free char *want = world_content(&whole.w, "");
	for (unsigned int at = 1; at <= ALL; at++) {
		struct caller c;
		open_caller(&c);
		c.w.gate->at = at;
		c.w.gate->later = true;
		c.w.gate->code = -EIO;
		assert_int_equal(import(&c, &err), -EIO);
		assert_false(c.result.refused);
		assert_null(strstr(err.msg, "--abort"));
		assert_int_equal(world_objects(&whole.w, "home/ann/run.h5"), OBJECTS);
		world_open_gate(&c.w);
		assert_int_equal(import(&c, &err), 0);
		auto_free char *got = world_content(&c.w, "");
		assert_string_equal(got, want);
		world_release(&c.w);
	}
	world_release(&whole.w);
}

/* Chunks and documents are made side by side. */
static void workers_put_the_same(void **state)
{
	struct caller one, many;
	struct err err;
	open_caller(&one);
	open_with(&many, 4);
	assert_int_equal(import(&one, &err), 0);
	assert_int_equal(import(&many, &err), 0);
	auto_free char *want = world_content(&one.w, "");
	auto_free char *got = world_content(&many.w, "");
	assert_string_equal(got, want);
	world_release(&one.w);
	world_release(&many.w);
}

static void nothing_is_put_if_the_caller_cannot_begin(void **state)
{
	struct caller c;
	struct err err;
	open_caller(&c);
	c.begin = -ENOSPC;
	assert_int_equal(import(&c, &err), -ENOSPC);
	assert_string_equal(err.msg, "the journal is full");
	assert_int_equal(c.w.gate->n, 0);
	assert_false(c.result.refused);
	world_release(&c.w);
}

static void folders_are_put_below_the_one_that_is_named(void **state)
{
	struct caller c;
	struct err err;
	open_caller(&c);
	c.commit.has_folder = true;
	c.commit.folder_len = strlen("home");
	assert_int_equal(import(&c, &err), 0);
	assert_int_equal(c.w.gate->n, ALL + 1);
	assert_int_equal(world_keys(&c.w, "home/"), 2);
	assert_int_equal(world_keys(&c.w, "home/.domain.json"), 0);
	world_release(&c.w);
}

static void the_replaced_domain_must_have_its_version(void **state)
{
	struct caller c;
	struct err err;
	open_caller(&c);
	const struct domain_info info = {.root = "g-11111111-22222222-9999-9999aa-aaaaaa",
					 .owner = "olaf"};
	c.commit.replaced = schema_document_new(&info, "\"other\"");
	assert_int_equal(import(&c, &err), -ESTALE);
	assert_int_equal(world_objects(&c.w, "home/ann/run.h5"), 0);
	assert_false(c.result.refused);
	schema_document_unref(c.commit.replaced);
	c.commit.replaced = NULL;
	world_put(&c.w, "home/ann/run.h5/.domain.json", FOLDER);
	assert_int_equal(import(&c, &err), -EEXIST);
	world_release(&c.w);
}

/* The document alone, after all objects. The file is not opened. */
static void the_last_step_needs_no_file(void **state)
{
	struct err err = ERR_INIT;
	for (unsigned int at = 1; at <= ALL; at++) {
		struct caller c;
		bool found;
		open_caller(&c);
		c.commit.in_order = true;
		c.w.gate->at = at;
		c.w.gate->later = true;
		c.w.gate->code = -EIO;
		assert_int_equal(import(&c, &err), -EIO);
		world_open_gate(&c.w);
		const unsigned int opened = c.w.opened;
		const size_t keys = world_keys(&c.w, "");
		assert_int_equal(domain_import_finish(&c.w.opt, &found, &c.result, &err), 0);
		assert_int_equal(c.w.opened, opened);
		assert_int_equal(found, at == ALL);
		assert_int_equal(world_keys(&c.w, ""), keys + found);
		assert_int_equal(world_objects(&c.w, "home/ann/run.h5"), found ? OBJECTS : 0);
		assert_int_equal(c.result.etag[0] != '\0', found);
		world_release(&c.w);
	}
}

static void the_last_step_reports_errors(void **state)
{
	struct caller c;
	struct err err;
	bool found;
	open_caller(&c);
	c.w.gate->at = ALL;
	c.w.gate->code = -EIO;
	assert_int_equal(import(&c, &err), -EIO);
	for (unsigned int at = 1; at <= 2; at++) {
		world_open_gate(&c.w);
		c.w.gate->at = at;
		c.w.gate->code = -EACCES;
		err = (struct err)ERR_INIT;
		assert_int_equal(domain_import_finish(&c.w.opt, &found, &c.result, &err), -EACCES);
	}
	world_open_gate(&c.w);
	world_put(&c.w, "home/ann/run.h5/.domain.json", FOLDER);
	assert_int_equal(domain_import_finish(&c.w.opt, &found, &c.result, &err), -EEXIST);
	world_release(&c.w);
}

/* A file of another format. */
static int open_other(void *ctx, struct source **out, struct err *err)
{
	return world_open_data(ctx, "import.py", out, err);
}

static void a_file_that_is_no_domain_is_refused(void **state)
{
	struct caller c;
	struct err err;
	open_caller(&c);
	c.w.opt.file.open = open_other;
	assert_int_equal(import(&c, &err), -EIO);
	assert_true(c.result.refused);
	assert_int_equal(c.w.gate->n, 0);
	world_release(&c.w);
}

static uint64_t slept_ns;

static uint64_t boot(const struct env *env)
{
	return env->now(env) + slept_ns;
}

static int fall_asleep(void *ctx, struct err *err)
{
	slept_ns += UINT64_C(3601000000000);
	return 0;
}

/* Two LISTs after the document tell whether old storage is whole. Storage of this call is young,
 * unless the machine has slept. */
static void old_storage_is_looked_at(void **state)
{
	for (int how = 0; how < 3; how++) {
		struct caller c;
		struct err err;
		open_caller(&c);
		slept_ns = 0;
		c.w.env.boot = boot;
		c.commit.continues = how == 1;
		c.commit.publish = how == 2 ? fall_asleep : publish;
		assert_int_equal(import(&c, &err), 0);
		assert_int_equal(c.w.gate->ops[STORE_LIST], how > 0 ? 2 : 0);
		assert_int_equal(c.w.gate->n, ALL + (how > 0 ? 2 : 0));
		world_release(&c.w);
	}
}

static void delete_root(struct store *bucket)
{
	assert_int_equal(call_delete(bucket, "db/12345678-90abcdef/.group.json", NULL, NULL), 0);
	assert_int_equal(call_delete(bucket,
				     "db/12345678-90abcdef/d/0f57-21d4a5-000001/.dataset.json",
				     NULL, NULL),
			 0);
}

/* Another program has deleted a part of the storage just before the document appears. */
static void what_was_deleted_is_put_again(void **state)
{
	struct caller whole, c;
	struct err err;
	open_caller(&whole);
	assert_int_equal(import(&whole, &err), 0);
	auto_free char *want = world_content(&whole.w, "");
	for (int in_order = 0; in_order < 2; in_order++) {
		open_caller(&c);
		c.commit.continues = true;
		c.commit.in_order = in_order;
		c.w.gate->other_at = ALL;
		c.w.gate->other = delete_root;
		assert_int_equal(import(&c, &err), 0);
		auto_free char *got = world_content(&c.w, "");
		assert_string_equal(got, want);
		assert_false(c.result.versions.is_known);
		world_release(&c.w);
	}
	world_release(&whole.w);
}

/* The domain is there already, and only its storage is looked at. */
static void a_document_of_an_earlier_attempt(void **state)
{
	struct caller c;
	struct err err;
	open_caller(&c);
	assert_int_equal(import(&c, &err), 0);
	auto_free char *want = world_content(&c.w, "");
	delete_root(c.w.gate->base.inner);
	c.commit.continues = c.commit.is_named = true;
	c.published = 0;
	assert_int_equal(import(&c, &err), 0);
	auto_free char *got = world_content(&c.w, "");
	assert_string_equal(got, want);
	assert_int_equal(c.published, 0);
	world_release(&c.w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_puts_are_sent),
		cmocka_unit_test(it_says_what_it_has_put),
		cmocka_unit_test(a_repeated_one_puts_the_same),
		cmocka_unit_test(workers_put_the_same),
		cmocka_unit_test(nothing_is_put_if_the_caller_cannot_begin),
		cmocka_unit_test(folders_are_put_below_the_one_that_is_named),
		cmocka_unit_test(the_replaced_domain_must_have_its_version),
		cmocka_unit_test(a_file_that_is_no_domain_is_refused),
		cmocka_unit_test(the_last_step_needs_no_file),
		cmocka_unit_test(the_last_step_reports_errors),
		cmocka_unit_test(old_storage_is_looked_at),
		cmocka_unit_test(what_was_deleted_is_put_again),
		cmocka_unit_test(a_document_of_an_earlier_attempt),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
