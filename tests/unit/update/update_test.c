/* SPDX-License-Identifier: Apache-2.0 */
/* Updates as a whole: what they put, and that they can stop after any request. */
#include "update_edits.h"
#include <bucket/schemas.h>

/* The sanitizers are slow: with them, only some of the requests fail. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { EVERY = 8 };
#else
enum { EVERY = 2 };
#endif

/* ---- what is put ---- */

/* The next open knows what was put: it makes one round of requests, and reads no document again. */
static void check_reopened(struct world *w, const char *name)
{
	const struct domain_bucket bucket = {
		.env = &w->f.env, .store = &w->gate->base, .schemas = schema_all()};
	const struct domain_hint hint = {.previous = w->domain, .puts = w->result.documents};
	static const struct tree_diff_sink sink = {.difference = world_difference};
	static const unsigned int all =
		TREE_DIFF_TIMES | TREE_DIFF_FILTERS | TREE_DIFF_GRIDS | TREE_DIFF_ORDER;
	struct domain *reopened, *fresh;
	struct err err = ERR_INIT;
	uint64_t n;
	assert_non_null(w->result.documents);
	const unsigned int gets = w->gate->ops[STORE_GET], lists = w->gate->ops[STORE_LIST];
	if (domain_open(&bucket, DOMAIN_PATH, &hint, &reopened, &err))
		fail_msg("%s: %s", name, err.msg);
	assert_int_equal(w->gate->ops[STORE_GET], gets + 1);
	assert_int_equal(w->gate->ops[STORE_LIST], lists + 1);
	fresh = gate_domain(w->gate, DOMAIN_PATH);
	assert_int_equal(
		tree_diff(domain_tree(fresh), domain_tree(reopened), all, &sink, NULL, &n, &err),
		0);
	domain_unref(reopened);
	domain_unref(fresh);
}

static void only_what_has_changed_is_put(void **state)
{
	for (unsigned int i = 0; i < EDITS; i++) {
		struct world *w = world_begin();
		edits[i].make(w->draft);
		gate_open(w->gate);
		if (world_update(w))
			fail_msg("%s: %s", edits[i].name, w->err.msg);
		if (w->result.puts != edits[i].puts || w->result.deletes != edits[i].deletes)
			fail_msg("%s: %llu puts, %llu deletes", edits[i].name,
				 (unsigned long long)w->result.puts,
				 (unsigned long long)w->result.deletes);
		assert_int_equal(world_changes(w), edits[i].puts + edits[i].deletes);
		assert_int_equal(w->begun, w->result.puts + w->result.deletes > 0);
		if (w->result.puts + w->result.deletes)
			check_reopened(w, edits[i].name);
		world_check_same(w);
		/* There is nothing left to put. */
		world_must_update(w, 0, 0);
		world_end(w);
	}
}

/* ---- the summary ---- */

static char summary_key[SCHEMA_KEY_MAX + 1];

static void put_summary(struct store *bucket)
{
	assert_int_equal(call_put(bucket, summary_key, "{}", 2, NULL, NULL, NULL), 0);
}

static void delete_summary(struct store *bucket)
{
	assert_int_equal(call_delete(bucket, summary_key, NULL, NULL), 0);
}

static char *summary_of(struct world *w)
{
	return world_has(w, summary_key) ? world_text(w, summary_key) : NULL;
}

/* The number that is the value of a member. */
static unsigned long long count_of(const char *summary, const char *member)
{
	const char *at = strstr(summary, member);
	assert_non_null(at);
	return strtoull(at + strlen(member), NULL, 10);
}

/* Each change has been counted, and what the domain has lost is not. */
static void the_summary_follows_the_domain(void **state)
{
	struct world *w = world_begin();
	world_summary_key(w, summary_key);
	auto_free char *before = summary_of(w);
	edit_new_dataset(w->draft);
	world_must_update(w, 4, 0);
	auto_free char *with = summary_of(w);
	assert_true(count_of(with, "\"metadata_bytes\": ") >
		    count_of(before, "\"metadata_bytes\": "));
	edit_lose_chunk(w->draft);
	edit_delete_group(w->draft);
	world_must_update(w, 2, 1);
	auto_free char *without = summary_of(w);
	assert_true(count_of(without, "\"num_groups\": ") < count_of(before, "\"num_groups\": "));
	assert_true(count_of(without, "\"metadata_bytes\": ") <
		    count_of(with, "\"metadata_bytes\": "));
	world_end(w);
}

/* Whatever another program does with the summary, and whenever: only one that this update has put,
 * as the last one who changed the domain, is there at the end. */
static void a_summary_of_others_is_deleted(void **state)
{
	void (*const others[])(struct store *) = {put_summary, delete_summary};
	for (unsigned int i = 0; i < 4; i++) {
		struct world *w = world_begin();
		world_summary_key(w, summary_key);
		edit_lose_chunk(w->draft);
		gate_open(w->gate);
		w->gate->other = others[i / 2];
		w->gate->other_at = i % 2 + 2; /* the chunk's delete, and the put of the summary */
		if (world_update(w))
			fail_msg("%s", w->err.msg);
		assert_null(summary_of(w));
		world_check_same(w);
		world_end(w);
	}
}

/* A later process completes the plan. Its put is repeated only if nobody else has put one. */
static void a_later_process_puts_the_summary(void **state)
{
	for (unsigned int i = 0; i < 2; i++) {
		struct world *w = world_begin();
		world_summary_key(w, summary_key);
		auto_free char *before = summary_of(w);
		edit_lose_chunk(w->draft);
		gate_fail(w->gate, 3, -EHOSTUNREACH);
		w->gate->later = true;
		assert_int_equal(world_update(w), -EHOSTUNREACH);
		gate_open(w->gate);
		if (i)
			put_summary(w->gate->base.inner);
		world_recover(w);
		auto_free char *now = summary_of(w);
		assert_true(i ? !now : now && strcmp(now, before) != 0);
		world_end(w);
	}
}

/* The domain is changed nevertheless. */
static void without_a_listing_the_summary_is_deleted(void **state)
{
	struct world *w = world_begin();
	world_summary_key(w, summary_key);
	edit_lose_chunk(w->draft);
	gate_fail(w->gate, 1, -EACCES);
	if (world_update(w))
		fail_msg("%s", w->err.msg);
	assert_null(summary_of(w));
	world_check_same(w);
	world_end(w);
}

static struct world *begin_with_copy(char key[SCHEMA_KEY_MAX + 1])
{
	struct world *w = world_begin();
	world_key(w, "", key);
	strcpy(strrchr(key, '/'), "/.summary.json");
	world_close(w);
	gate_put(w->gate, key, "{}", 2);
	world_open(w);
	return w;
}

/* A later version of the service answers from a copy of the domain's values, and does not notice a
 * change. The copy is deleted if the open has seen it. */
static void the_copy_of_the_service_is_deleted(void **state)
{
	for (unsigned int i = 0; i < EDITS; i++) {
		char key[SCHEMA_KEY_MAX + 1];
		struct world *w = begin_with_copy(key);
		const bool is_changed = edits[i].puts + edits[i].deletes > 0;
		edits[i].make(w->draft);
		world_must_update(w, edits[i].puts, edits[i].deletes + is_changed);
		assert_int_equal(world_has(w, key), !is_changed);
		world_check_same(w);
		world_end(w);
	}
}

/* Wherever an update stops: as long as the copy is there, it is right. */
static void the_copy_of_the_service_goes_first(void **state)
{
	for (unsigned int i = 0; i < EDITS; i += EVERY) {
		char key[SCHEMA_KEY_MAX + 1];
		struct world *w = begin_with_copy(key);
		auto_free char *before = gate_content(w->gate, "");
		bool is_stopped = true;
		edits[i].make(w->draft);
		for (unsigned int n = 1; is_stopped; n++) {
			gate_fail(w->gate, n, -EIO);
			w->gate->later = true;
			is_stopped = world_update(w);
			w->now += 2000000000; /* failures of reads are not repeated any more */
			auto_free char *now = gate_content(w->gate, "");
			if (world_has(w, key))
				assert_string_equal(now, before);
		}
		gate_open(w->gate);
		world_check_same(w);
		world_end(w);
	}
}

/* One program goes on writing: each update begins with what the one before has put. */
static void updates_follow_each_other(void **state)
{
	struct world *w = world_begin();
	for (unsigned int i = 0; i < 20; i++) {
		struct edit_message m;
		fill_chunk(w->draft, i % 5, (int32_t)(1000 + i));
		if (i % 3 == 0) {
			assert_true(edit_find_attribute(w->draft, root_of(w->draft), "count", &m));
			m.body[m.len - 4]++;
			edit_replace(w->draft, &m);
		}
		world_must_update(w, i % 3 == 0 ? 2 : 1, 0);
		world_check_same(w);
	}
	edit_new_dataset(w->draft);
	world_must_update(w, 4, 0);
	/* The new dataset has a base, too. */
	const int32_t value = 99;
	edit_write(w->draft, edit_data(w->draft, edit_path(w->draft, "c/new")), &value, 4);
	world_must_update(w, 1, 0);
	world_check_same(w);
	world_end(w);
}

/* What an update has deleted can be put again. */
static void removed_chunks_come_back(void **state)
{
	struct world *w = world_begin();
	const uint64_t line = edit_path(w->draft, "line"), grid = edit_path(w->draft, "grid");
	edit_lose_chunk(w->draft);
	edit_fill_chunk(w->draft);
	edit_resize(w->draft, grid, 0, 2);
	world_must_update(w, 2, 5);
	world_check_same(w);
	edit_set_chunks(w->draft, line, 4);
	for (unsigned int i = 0; i < 5; i++)
		fill_chunk(w->draft, i, 2000);
	edit_resize(w->draft, grid, 0, 4);
	const int16_t numbers[] = {1, 2, 3, 4, 5};
	edit_write(w->draft, edit_chunk(w->draft, line, 1, 3), numbers, sizeof(numbers));
	world_must_update(w, 8, 0);
	world_check_same(w);
	edit_lose_chunk(w->draft);
	world_must_update(w, 1, 1);
	world_end(w);
}

/* The members of a document that have not changed keep their bytes. */
static void documents_keep_their_bytes(void **state)
{
	char key[SCHEMA_KEY_MAX + 1];
	struct world *w = world_begin();
	world_key(w, "", key);
	auto_free char *before = world_text(w, key);
	edit_attribute(w->draft);
	world_must_update(w, 1, 0);
	auto_free char *after = world_text(w, key);
	/* Apart from the value and lastModified, which have as many digits as before or more. */
	const char *const same[] = {"\"title\"", "\"links\"", "\"id\"", "\"created\""};
	for (unsigned int i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
		const char *a = strstr(before, same[i]), *b = strstr(after, same[i]);
		assert_true(a && b);
		assert_memory_equal(a, b, 40);
	}
	const size_t links = strlen(strstr(before, "\"links\""));
	assert_true(links > 500);
	const char *count = strstr(after, "\"count\"");
	assert_non_null(count);
	assert_non_null(strstr(count, "37"));
	world_end(w);
}

/* The whole file is replaced by another one: all objects but the root group are new. */
static void another_file_replaces_it(void **state)
{
	char root[64], now[64], plain[64];
	struct world *w = world_begin_with("import.h5");
	auto_bytes struct bytes other = data_file("update.h5");
	world_id(w, "", root);
	world_id(w, "contiguous", plain);
	edit_write(w->draft, 0, other.data, other.len);
	assert_int_equal(draft_resize(w->draft, other.len, NULL), 0);
	gate_open(w->gate);
	if (world_update(w))
		fail_msg("%s", w->err.msg);
	world_check_same(w);
	world_id(w, "", now);
	assert_string_equal(root, now);
	world_id(w, "contiguous", now);
	assert_string_equal(now, "");
	assert_int_not_equal(w->result.removed, GC_NONE);
	world_must_update(w, 0, 0);
	/* It is the base of the next one: headers of version 1, and compact data. */
	const uint32_t compact[] = {1, 2, 3, 4};
	uint8_t *at = memmem(other.data, other.len, compact, sizeof(compact));
	assert_non_null(at);
	edit_write(w->draft, (uint64_t)(at - other.data), "\x63", 1);
	world_must_update(w, 1, 0);
	world_check_same(w);
	edit_write(w->draft, (uint64_t)(at - other.data), "\x63", 1);
	world_must_update(w, 0, 0);
	world_end(w);
}

/* The index of a dataset that may grow in its second dimension has the chunks column by column
 * (tests/data/indexes.py). */
static void new_chunks_are_found_by_their_numbers(void **state)
{
	struct world *w = world_begin();
	auto_bytes struct bytes other = data_file("indexes.h5");
	edit_write(w->draft, 0, other.data, other.len);
	assert_int_equal(draft_resize(w->draft, other.len, NULL), 0);
	gate_open(w->gate);
	if (world_update(w))
		fail_msg("%s", w->err.msg);
	struct domain *d = gate_domain(w->gate, DOMAIN_PATH);
	const uint32_t dataset = find_object(domain_tree(d), "extensible/second");
	for (uint32_t i = 0; i < 7 * 40; i++) {
		char key[SCHEMA_KEY_MAX + 1];
		assert_true(domain_chunk_key(d, dataset, i, key, sizeof(key)) > 0);
		assert_int_equal(world_has(w, key), i % 4 != 0);
		if (i % 4 == 0)
			continue;
		auto_free char *chunk = world_text(w, key);
		const uint32_t value = i * 7 + 1;
		assert_int_equal((uint8_t)chunk[0], value & 0xff);
		assert_int_equal(chunk[0] ? (uint8_t)chunk[1] : 0, chunk[0] ? value >> 8 : 0);
	}
	domain_unref(d);
	world_end(w);
}

/* Two groups exchange objects that have the same name: by links that lead elsewhere, or by links
 * that are removed and made again. */
static void names_are_exchanged(void **state)
{
	for (int made_again = 0; made_again < 2; made_again++) {
		char one[64], two[64], now[64];
		struct world *w = world_begin();
		const uint64_t a = edit_path(w->draft, "a"), b = edit_path(w->draft, "b");
		edit_rename(w->draft, b, "inner", "empty");
		world_must_update(w, 1, 0);
		world_id(w, "a/empty", one);
		world_id(w, "b/empty", two);
		const uint64_t x = edit_target(w->draft, a, "empty");
		const uint64_t y = edit_target(w->draft, b, "empty");
		if (made_again) {
			edit_unlink(w->draft, a, "empty");
			edit_unlink(w->draft, b, "empty");
			edit_add_link(w->draft, a, "empty", 50, y);
			edit_add_link(w->draft, b, "empty", 51, x);
		} else {
			edit_relink(w->draft, a, "empty", y);
			edit_relink(w->draft, b, "empty", x);
		}
		world_must_update(w, 3, 0);
		world_check_same(w);
		world_id(w, "a/empty", now);
		assert_string_equal(now, two);
		world_id(w, "b/empty", now);
		assert_string_equal(now, one);
		world_end(w);
	}
}

/* The name that an object has between two puts, with a suffix. */
static void name_between(char name[96], const char *id, const char *suffix)
{
	snprintf(name, 96, "hsmount-moves-%s%s", id, suffix);
}

/* Both groups have links with the names that the exchanged objects would get between two puts.
 * These links stay as they are at every moment, and the objects get other names. */
static void a_name_between_is_not_taken(void **state)
{
	unsigned int seen = 0;
	for (unsigned int stop = 1;; stop++) {
		char ids[2][64], name[96], path[128];
		struct world *w = world_begin();
		const uint64_t a = edit_path(w->draft, "a"), b = edit_path(w->draft, "b");
		edit_rename(w->draft, b, "inner", "empty");
		world_must_update(w, 1, 0);
		world_id(w, "a/empty", ids[0]);
		world_id(w, "b/empty", ids[1]);
		const uint64_t plain = edit_target(w->draft, a, "plain");
		for (int i = 0; i < 2; i++) {
			name_between(name, ids[i], "");
			edit_add_link(w->draft, a, name, 60 + i, plain);
			edit_add_link(w->draft, b, name, 60 + i, plain);
		}
		world_must_update(w, 2, 0);
		const uint64_t x = edit_target(w->draft, a, "empty");
		edit_relink(w->draft, a, "empty", edit_target(w->draft, b, "empty"));
		edit_relink(w->draft, b, "empty", x);
		gate_fail(w->gate, stop, -EHOSTUNREACH);
		w->gate->later = true;
		const int rc = world_update(w);
		struct domain *now = gate_domain(w->gate, DOMAIN_PATH);
		const struct tree *t = domain_tree(now);
		const uint32_t want = find_object(t, "a/plain");
		for (int i = 0; i < 4; i++) {
			name_between(name, ids[i / 2], "");
			snprintf(path, sizeof(path), "%s/%s", i % 2 ? "a" : "b", name);
			assert_int_equal(find_object(t, path), want);
			name_between(name, ids[i / 2], "_");
			snprintf(path, sizeof(path), "%s/%s", i % 2 ? "a" : "b", name);
			seen += find_object(t, path) != OBJECT_NONE;
		}
		domain_unref(now);
		world_end(w);
		if (!rc)
			break;
	}
	assert_true(seen > 0);
}

/* ---- stops ---- */

/* An object that is in the domain before and after is in it at every moment. */
static void check_survivors(struct world *w, const struct domain *before, const struct tree *after)
{
	struct domain *now = gate_domain(w->gate, DOMAIN_PATH);
	const struct tree *tb = domain_tree(before), *tn = domain_tree(now);
	for (uint32_t i = 0; i < tree_count(tb); i++) {
		const char *id = tree_object(tb, tree_nth(tb, i))->o.id;
		bool survives = false, is_there = false;
		for (uint32_t k = 0; k < tree_count(after); k++)
			survives |= strcmp(tree_object(after, tree_nth(after, k))->o.id, id) == 0;
		for (uint32_t k = 0; k < tree_count(tn); k++)
			is_there |= strcmp(tree_object(tn, tree_nth(tn, k))->o.id, id) == 0;
		if (survives && !is_there)
			fail_msg("object %s cannot be reached", id);
	}
	domain_unref(now);
}

/* The content of the bucket after an update that nothing interrupts. Heap. */
static char *run_whole(const struct edit *e, unsigned int *requests)
{
	struct world *w = world_begin();
	e->make(w->draft);
	gate_open(w->gate);
	if (world_update(w))
		fail_msg("%s: %s", e->name, w->err.msg);
	*requests = w->gate->n;
	char *content = gate_content(w->gate, "");
	world_end(w);
	return content;
}

/* If the summary cannot be put, it is deleted. If it is there, it is the right one. */
static bool is_same(const char *end, const char *content)
{
	const char *line = strstr(content, "/.info.json");
	if (!line || strstr(end, "/.info.json"))
		return strcmp(end, content) == 0;
	const char *rest = strchr(line, '\n') + 1;
	while (line > content && line[-1] != '\n')
		line--;
	const size_t n = (size_t)(line - content);
	return strncmp(end, content, n) == 0 && strcmp(end + n, rest) == 0;
}

/* From request n on, the bucket cannot be reached. content: at the end. Returns how many changes
 * were repeated in the same process. */
static unsigned int stop_at(const struct edit *e, unsigned int n, bool lost, bool same_process,
			    const char *content)
{
	struct opened o;
	struct world *w = world_begin();
	e->make(w->draft);
	gate_fail(w->gate, n, -EHOSTUNREACH);
	w->gate->later = true;
	w->gate->after = lost;
	const int rc = world_update(w);
	const unsigned int changes = world_changes(w);
	gate_open(w->gate);
	assert_int_equal(rc, -EHOSTUNREACH);
	assert_false(w->result.refused);
	/* Nobody sees a part that does not fit the others. */
	opened_begin(w, &o);
	opened_end(&o);
	struct domain *now = gate_domain(w->gate, DOMAIN_PATH);
	if (same_process) {
		w->now += 2000000000; /* failures of reads are not repeated any more */
		if (world_update(w))
			fail_msg("%s, request %u: %s", e->name, n, w->err.msg);
	} else {
		world_recover(w);
		assert_true(changes == 0 || w->begun);
	}
	const unsigned int repeated = w->gate->retried;
	auto_free char *end = gate_content(w->gate, "");
	const bool has_plan = same_process || w->begun;
	if (has_plan && !is_same(end, content))
		fail_msg("%s, request %u: the bucket is not the same", e->name, n);
	if (has_plan) {
		struct domain *after = gate_domain(w->gate, DOMAIN_PATH);
		check_survivors(w, now, domain_tree(after));
		domain_unref(after);
	}
	domain_unref(now);
	world_end(w);
	return same_process ? repeated : 0;
}

static void stop_everywhere(bool lost, bool same_process)
{
	unsigned int repeated = 0;
	for (unsigned int i = 0; i < EDITS; i++) {
		unsigned int requests;
		auto_free char *content = run_whole(&edits[i], &requests);
		for (unsigned int n = 1 + i % EVERY; n <= requests; n += EVERY)
			repeated += stop_at(&edits[i], n, lost, same_process, content);
	}
	/* The store is told that they may have been made before. */
	assert_int_equal(repeated > 0, same_process);
}

static void it_may_stop_before_each_request(void **state)
{
	stop_everywhere(false, false);
	stop_everywhere(false, true);
}

static void it_may_stop_after_each_request(void **state)
{
	stop_everywhere(true, false);
	stop_everywhere(true, true);
}

#define TEST(name) cmocka_unit_test(name)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(only_what_has_changed_is_put),
		TEST(the_summary_follows_the_domain),
		TEST(a_summary_of_others_is_deleted),
		TEST(a_later_process_puts_the_summary),
		TEST(without_a_listing_the_summary_is_deleted),
		TEST(the_copy_of_the_service_is_deleted),
		TEST(the_copy_of_the_service_goes_first),
		TEST(updates_follow_each_other),
		TEST(removed_chunks_come_back),
		TEST(documents_keep_their_bytes),
		TEST(another_file_replaces_it),
		TEST(new_chunks_are_found_by_their_numbers),
		TEST(names_are_exchanged),
		TEST(a_name_between_is_not_taken),
		TEST(it_may_stop_before_each_request),
		TEST(it_may_stop_after_each_request),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
