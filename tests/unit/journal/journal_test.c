/* SPDX-License-Identifier: Apache-2.0 */
/* The journal's directory: what is refused, what is listed, and what several processes may do. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <glob.h>

#include "overlay_fixture.h"

enum { ITEMS = 8 };

struct listed {
	unsigned int n;
	struct {
		char id[JOURNAL_ID], name[64], why[256];
		enum journal_state state;
	} items[ITEMS];
};

static int note_item(void *ctx, const struct journal_item *item)
{
	struct listed *l = ctx;
	assert_true(l->n < ITEMS);
	snprintf(l->items[l->n].id, JOURNAL_ID, "%s", item->id);
	snprintf(l->items[l->n].name, 64, "%s", item->about ? item->about->name : "");
	snprintf(l->items[l->n].why, 256, "%s", item->why);
	l->items[l->n++].state = item->state;
	return 0;
}

static struct listed list(struct journal *j)
{
	struct listed l = {.n = 0};
	assert_int_equal(journal_list(j, note_item, &l, NULL), 0);
	return l;
}

static int try_open(const struct overlay_fixture *f, const char *path, char *why)
{
	struct journal *j;
	struct err err = ERR_INIT;
	const struct journal_settings settings = {.path = path, .bucket = "b", .boot = f->boot};
	int rc = journal_open(&settings, &f->env, &j, &err);
	if (rc == 0)
		journal_close(j);
	strcpy(why, err.msg);
	return rc;
}

static void only_a_private_directory_is_used(void **state)
{
	struct overlay_fixture f;
	char path[96], target[128], why[ERR_MAX];
	fixture_begin(&f, 1 << 20);
	snprintf(path, sizeof(path), "%s/x", f.path);
	snprintf(target, sizeof(target), "%s/target", f.path);
	assert_int_equal(mkdir(target, 0700), 0);
	assert_int_equal(symlink("target", path), 0);
	assert_int_equal(try_open(&f, path, why), -EPERM);
	assert_non_null(strstr(why, "is a symbolic link"));
	unlink(path);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(chmod(path, 0710), 0);
	assert_int_equal(try_open(&f, path, why), -EPERM);
	assert_non_null(strstr(why, "can be accessed by others; use chmod 700"));
	assert_int_equal(chmod(path, 0700), 0);
	assert_int_equal(try_open(&f, path, why), 0);
	snprintf(target, sizeof(target), "%s/2", path);
	assert_int_equal(chmod(target, 0777), 0);
	assert_int_equal(try_open(&f, path, why), -EPERM);
	if (geteuid() == 0) {
		assert_int_equal(chown(path, 1, 1), 0);
		assert_int_equal(try_open(&f, path, why), -EPERM);
		assert_non_null(strstr(why, "belongs to another user"));
	}
	snprintf(path, sizeof(path), "%s/missing/x", f.path);
	assert_int_equal(try_open(&f, path, why), -ENOENT);
	snprintf(path, sizeof(path), "%s/file", f.path);
	close(open(path, O_CREAT | O_WRONLY, 0600));
	assert_int_equal(try_open(&f, path, why), -ENOTDIR);
	fixture_end(&f);
}

static void a_draft_is_listed_until_it_is_dropped(void **state)
{
	struct overlay_fixture f;
	char id[JOURNAL_ID];
	struct draft *second;
	struct err err = ERR_INIT;
	fixture_begin(&f, 1 << 20);
	assert_int_equal(list(f.j).n, 0);
	struct draft *d = make_draft(&f, &about_change);
	memcpy(id, draft_id(d), JOURNAL_ID);
	struct listed l = list(f.j);
	assert_int_equal(l.n, 1);
	assert_string_equal(l.items[0].id, id);
	assert_int_equal(l.items[0].state, JOURNAL_IN_USE);
	assert_string_equal(l.items[0].name, about_change.name);
	assert_int_equal(draft_open(f.j, id, NULL, &second, &err), -EBUSY);
	assert_int_equal(journal_drop(f.j, id, NULL), -EBUSY);
	assert_int_equal(draft_describe(d, "home/u/b", "/home/u/b.h5", "\"2\"", NULL), 0);
	assert_string_equal(draft_get_about(d)->path, "home/u/b");
	assert_string_equal(draft_get_about(d)->version, "\"2\"");
	assert_int_equal(draft_open(f.j, id, NULL, &second, &err), -EBUSY);
	l = list(f.j);
	assert_int_equal(l.items[0].state, JOURNAL_IN_USE);
	assert_string_equal(l.items[0].name, "/home/u/b.h5");
	draft_close(d);
	l = list(f.j);
	assert_int_equal(l.items[0].state, JOURNAL_LEFT);
	assert_string_equal(l.items[0].name, "/home/u/b.h5");
	assert_int_equal(journal_drop(f.j, id, NULL), 0);
	assert_int_equal(list(f.j).n, 0);
	assert_int_equal(journal_drop(f.j, id, NULL), -ENOENT);
	assert_int_equal(journal_drop(f.j, "../x", NULL), -ENOENT);
	fixture_end(&f);
}

static void buckets_do_not_see_each_other(void **state)
{
	struct overlay_fixture f;
	struct journal *other;
	fixture_begin(&f, 1 << 20);
	const struct journal_settings settings = {
		.path = f.path, .bucket = "other", .boot = f.boot};
	assert_int_equal(journal_open(&settings, &f.env, &other, NULL), 0);
	struct draft *d = make_draft(&f, &about_new), *second;
	assert_int_equal(list(other).n, 0);
	assert_int_equal(draft_open(other, draft_id(d), NULL, &second, NULL), -ENOENT);
	assert_int_equal(draft_drop(d, NULL), 0);
	journal_close(other);
	fixture_end(&f);
}

static void write_description(const char *path, const uint8_t *bytes, size_t n)
{
	const int fd = open(path, O_WRONLY | O_TRUNC);
	assert_int_equal(write(fd, bytes, n), n);
	close(fd);
}

/* The path of the draft's file `draft`. */
static void find_description(const struct overlay_fixture *f, char *path)
{
	glob_t found;
	char pattern[128];
	snprintf(pattern, sizeof(pattern), "%s/2/*/*/draft", f->path);
	assert_int_equal(glob(pattern, 0, NULL, &found), 0);
	strcpy(path, found.gl_pathv[0]);
	globfree(&found);
}

static void unreadable_drafts_are_set_aside(void **state)
{
	struct overlay_fixture f;
	char path[256], id[JOURNAL_ID];
	struct journal_stats stats;
	fixture_begin(&f, 1 << 20);
	struct draft *d = make_draft(&f, &about_new);
	memcpy(id, draft_id(d), JOURNAL_ID);
	draft_close(d);
	find_description(&f, path);
	write_description(path, (const uint8_t *)"abc", 3);
	struct listed l = list(f.j);
	assert_int_equal(l.n, 1);
	assert_int_equal(l.items[0].state, JOURNAL_UNREADABLE);
	assert_string_equal(l.items[0].why, "the file `draft` has 3 bytes instead of 4096");
	journal_get_stats(f.j, &stats);
	assert_int_equal(stats.set_aside, 1);
	l = list(f.j);
	assert_int_equal(l.n, 1);
	assert_int_equal(l.items[0].state, JOURNAL_UNREADABLE);
	assert_string_equal(l.items[0].why, "the file `draft` has 3 bytes instead of 4096");
	assert_string_equal(l.items[0].name, "");
	assert_string_equal(l.items[0].id, id);
	assert_int_equal(draft_open(f.j, id, NULL, &d, NULL), -ENOENT);
	assert_int_equal(journal_drop(f.j, id, NULL), 0);
	assert_int_equal(list(f.j).n, 0);
	fixture_end(&f);
}

/* All of several drafts, first as they are found and then in the directory `unreadable`. */
static void each_unreadable_draft_is_set_aside(void **state)
{
	enum { DRAFTS = 3 };
	static const char why[] = "the file `draft` is missing or not a regular file";
	static const char *const instead[DRAFTS] = {":", "ln -s map", "mkfifo"};
	struct overlay_fixture f;
	char path[256], command[600];
	struct journal_stats stats;
	fixture_begin(&f, 1 << 20);
	for (int i = 0; i < DRAFTS; i++) {
		draft_close(make_draft(&f, &about_new));
		find_description(&f, path);
		snprintf(command, sizeof(command), "rm %s; %s %s", path, instead[i], path);
		assert_int_equal(system(command), 0);
		const struct listed l = list(f.j);
		assert_int_equal(l.n, i + 1);
		for (unsigned int k = 0; k < l.n; k++) {
			assert_int_equal(l.items[k].state, JOURNAL_UNREADABLE);
			assert_string_equal(l.items[k].why, why);
		}
		journal_get_stats(f.j, &stats);
		assert_int_equal(stats.set_aside, i + 1);
	}
	const struct listed l = list(f.j);
	assert_int_equal(l.n, DRAFTS);
	assert_string_not_equal(l.items[0].id, l.items[1].id);
	journal_close(f.j);
	fixture_open(&f, 1 << 20);
	fixture_end(&f);
}

static void all_drafts_are_listed(void **state)
{
	enum { DRAFTS = 4 };
	struct overlay_fixture f;
	struct draft *d[DRAFTS];
	char path[128];
	glob_t found;
	fixture_begin(&f, 1 << 20);
	for (int i = 0; i < DRAFTS; i++)
		d[i] = make_draft(&f, &about_new);
	assert_int_equal(list(f.j).n, DRAFTS);
	for (int i = 0; i < DRAFTS; i++)
		assert_int_equal(draft_drop(d[i], NULL), 0);
	/* Nothing of them is left, before the next list looks for what killed processes have left.
	 */
	snprintf(path, sizeof(path), "%s/2/*/*", f.path);
	assert_int_equal(glob(path, 0, NULL, &found), 0);
	assert_int_equal(found.gl_pathc, 1);
	globfree(&found);
	assert_int_equal(list(f.j).n, 0);
	fixture_end(&f);
}

/* Other versions of the program compare it (doc/JOURNAL.md). */
static void a_description_has_the_boot_id_of_the_machine(void **state)
{
	struct overlay_fixture f;
	char path[256], text[64];
	uint8_t boot[JOURNAL_BOOT], bytes[4096];
	unsigned int n = 0;
	fixture_begin(&f, 1 << 20);
	journal_close(f.j);
	const struct journal_settings settings = {
		.path = f.path, .bucket = "b", .spool_size = 1 << 20};
	assert_int_equal(journal_open(&settings, &f.env, &f.j, NULL), 0);
	struct draft *d = make_draft(&f, &about_new);
	find_description(&f, path);
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
	assert_non_null(fgets(text, sizeof(text), file));
	fclose(file);
	for (const char *p = text; n < JOURNAL_BOOT; p += 2, n++) {
		unsigned int byte;
		p += *p == '-';
		assert_int_equal(sscanf(p, "%2x", &byte), 1);
		boot[n] = (uint8_t)byte;
	}
	file = fopen(path, "r");
	assert_int_equal(fread(bytes, 1, sizeof(bytes), file), sizeof(bytes));
	fclose(file);
	assert_non_null(memmem(bytes, sizeof(bytes), boot, sizeof(boot)));
	assert_int_equal(draft_drop(d, NULL), 0);
	fixture_end(&f);
}

static void what_was_set_aside_is_described(void **state)
{
	struct overlay_fixture f;
	char path[256], id[JOURNAL_ID];
	fixture_begin(&f, 1 << 20);
	struct draft *d = make_draft(&f, &about_new);
	memcpy(id, draft_id(d), JOURNAL_ID);
	draft_close(d);
	find_description(&f, path);
	strcpy(strrchr(path, '/'), "/map");
	unlink(path);
	assert_int_equal(draft_open(f.j, id, NULL, &d, NULL), -EBADMSG);
	struct listed l = list(f.j);
	assert_int_equal(l.n, 1);
	assert_int_equal(l.items[0].state, JOURNAL_UNREADABLE);
	assert_string_equal(l.items[0].why, "its map is missing");
	assert_string_equal(l.items[0].name, about_new.name);
	snprintf(path, sizeof(path), "rm %s/2/*/unreadable/*/why", f.path);
	assert_int_equal(system(path), 0);
	l = list(f.j);
	assert_string_equal(l.items[0].why, "it was set aside earlier");
	assert_int_equal(journal_drop(f.j, id, NULL), 0);
	assert_int_equal(list(f.j).n, 0);
	fixture_end(&f);
}

/* The parts of draft_create() and draft_drop() that a killed process has left. */
static void leftovers_are_removed(void **state)
{
	struct overlay_fixture f;
	char path[256], command[1200];
	glob_t found;
	fixture_begin(&f, 1 << 20);
	struct draft *d = make_draft(&f, &about_new);
	draft_close(d);
	find_description(&f, path);
	*strrchr(path, '/') = '\0';
	snprintf(command, sizeof(command),
		 "cp -r %s %s/../00000000000000aa.new && mv %s %s.dropped", path, path, path, path);
	assert_int_equal(system(command), 0);
	assert_int_equal(list(f.j).n, 0);
	snprintf(path, sizeof(path), "%s/2/*/*", f.path);
	assert_int_equal(glob(path, 0, NULL, &found), 0);
	assert_int_equal(found.gl_pathc, 1);
	assert_string_equal(strrchr(found.gl_pathv[0], '/'), "/bucket");
	globfree(&found);
	fixture_end(&f);
}

static void a_full_spool_makes_no_draft(void **state)
{
	struct overlay_fixture f;
	struct draft *d;
	struct err err = ERR_INIT;
	fixture_begin(&f, 100);
	assert_int_equal(draft_create(f.j, &about_new, NULL, &d, &err), -ENOSPC);
	assert_string_equal(err.msg, "journal of /home/u/a.h5: no room for 4096 more bytes in the "
				     "spool: 0 of the 100 bytes of spool_size are taken");
	assert_int_equal(list(f.j).n, 0);
	fixture_end(&f);
}

/* By a cleaner of old files, for example. ENOENT would say that a folder is missing. */
static void a_removed_directory_is_an_error_of_the_disk(void **state)
{
	struct overlay_fixture f;
	char command[160];
	struct draft *d;
	struct err err = ERR_INIT;
	fixture_begin(&f, 1 << 20);
	snprintf(command, sizeof(command), "rm -rf %s/2", f.path);
	assert_int_equal(system(command), 0);
	assert_int_equal(draft_create(f.j, &about_new, NULL, &d, &err), -EIO);
	assert_string_equal(err.msg, "journal of /home/u/a.h5: the directory of the journal was "
				     "removed; mount again");
	fixture_end(&f);
}

static void the_description_has_room_for_long_names(void **state)
{
	struct overlay_fixture f;
	static char path[4097];
	struct draft *d;
	struct draft_about about = about_new;
	fixture_begin(&f, 1 << 20);
	about.path = path;
	about.name = "";
	memset(path, 'p', 4096 - 24 - 12 - 40 - 3);
	assert_int_equal(draft_create(f.j, &about, NULL, &d, NULL), 0);
	assert_int_equal(draft_describe(d, "short", path, "x", NULL), -ENAMETOOLONG);
	assert_string_equal(draft_get_about(d)->path, path);
	assert_int_equal(draft_drop(d, NULL), 0);
	path[4096 - 24 - 12 - 40 - 3] = 'p';
	assert_int_equal(draft_create(f.j, &about, NULL, &d, NULL), -ENAMETOOLONG);
	assert_int_equal(list(f.j).n, 0);
	fixture_end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_a_private_directory_is_used),
		cmocka_unit_test(a_draft_is_listed_until_it_is_dropped),
		cmocka_unit_test(buckets_do_not_see_each_other),
		cmocka_unit_test(unreadable_drafts_are_set_aside),
		cmocka_unit_test(each_unreadable_draft_is_set_aside),
		cmocka_unit_test(all_drafts_are_listed),
		cmocka_unit_test(a_description_has_the_boot_id_of_the_machine),
		cmocka_unit_test(what_was_set_aside_is_described),
		cmocka_unit_test(leftovers_are_removed),
		cmocka_unit_test(a_full_spool_makes_no_draft),
		cmocka_unit_test(a_removed_directory_is_an_error_of_the_disk),
		cmocka_unit_test(the_description_has_room_for_long_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
