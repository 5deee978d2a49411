/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/options.h"

/* Adds one list to fresh options; returns the message, "" for success. */
static const char *add(struct options *o, bool mounting, const char *list, struct err *err)
{
	*err = (struct err)ERR_INIT;
	options_init(o, mounting);
	const int rc = options_add(o, list, err);
	assert_true(rc == 0 || (rc == -EINVAL && err->code == rc));
	return err->msg;
}

static void values_are_stored(void **state)
{
	struct options o;
	struct err err;
	assert_string_equal(add(&o, true,
				"cache_size=1GiB,cache_disk_size=2048k,metadata_ttl=1m,workers=0,"
				"connections=7,file_mode=0440,dir_mode=550,umask=022,uid=0,"
				"gid=4294967294,no_sign_request,region=a\\,b,nonempty,allow_other,"
				"log_level=info,filters=none,stat=exact,cache_dir=x,cache_dir=/y,"
				"profile=\"p,q\",ca_bundle=\\\"f",
				&err),
			    "");
	assert_int_equal(o.engine.cache_size, 1 << 30);
	assert_int_equal(o.engine.cache_disk_size, 2048 << 10);
	assert_true(o.engine.metadata_ttl > 59 && o.engine.metadata_ttl < 61);
	assert_true(o.engine.open_ttl > 59);
	assert_int_equal(o.engine.workers, 0);
	assert_int_equal(o.engine.s3.connections, 7);
	assert_int_equal(o.file_mode, 0440);
	assert_int_equal(o.dir_mode, 0550);
	assert_int_equal(o.umask, 022);
	assert_int_equal(o.uid, 0);
	assert_int_equal(o.gid, 4294967294U);
	assert_true(o.engine.s3.no_sign_request && !o.engine.s3.requester_pays);
	assert_string_equal(o.engine.s3.region, "a,b");
	assert_string_equal(o.engine.s3.profile, "p,q");
	assert_string_equal(o.engine.s3.ca_bundle, "\"f");
	assert_true(o.nonempty && o.allow_other && !o.default_permissions);
	assert_string_equal(str_text(&o.mount), "allow_other");
	assert_int_equal(o.log_level, LOG_LEVEL_INFO);
	assert_true(o.engine.no_filters);
	assert_int_equal(o.engine.stat, ENGINE_STAT_EXACT);
	assert_string_equal(o.engine.cache_dir, "/y");
	assert_non_null(strstr(str_text(&o.given), "cache_size=1GiB,cache_disk_size=2048k"));
	options_release(&o);
}

static void defaults(void **state)
{
	struct options o;
	struct err err;
	assert_string_equal(add(&o, true, "", &err), "");
	assert_int_equal(o.file_mode, OPTIONS_NO_MODE);
	assert_int_equal(o.dir_mode, OPTIONS_NO_MODE);
	assert_int_equal(o.umask, 0);
	assert_int_equal(o.engine.cache_size, 256 << 20);
	assert_int_equal(o.log_level, LOG_LEVEL_WARNING);
	assert_string_equal(str_text(&o.given), "");
	options_release(&o);
}

/* The output of options_print_help(); the caller frees it. */
static char *help_text(void)
{
	enum { MAX = 1 << 16 };
	char *text = calloc(1, MAX);
	FILE *file = tmpfile();
	const int out = dup(STDOUT_FILENO);
	assert_true(text && file && out >= 0 && fflush(stdout) == 0);
	assert_true(dup2(fileno(file), STDOUT_FILENO) == STDOUT_FILENO);
	options_print_help(true);
	assert_true(fflush(stdout) == 0 && dup2(out, STDOUT_FILENO) == STDOUT_FILENO);
	close(out);
	rewind(file);
	assert_true(fread(text, 1, MAX - 1, file) > 0);
	fclose(file);
	return text;
}

/* The default of an option in the help: the last parentheses before the next option. */
static void default_in_help(const char *help, const char *name, char *out, size_t size)
{
	char head[64];
	snprintf(head, sizeof(head), "\n  %s=", name);
	const char *entry = strstr(help, head);
	assert_non_null(entry);
	const char *end = strstr(entry, ")\n"), *start = end;
	assert_non_null(end);
	while (*start != '(')
		start--;
	assert_true(start > entry && (size_t)(end - start) < size);
	snprintf(out, size, "%.*s", (int)(end - start - 1), start + 1);
}

static void help_tells_the_defaults(void **state)
{
#define MEMBER(field) offsetof(struct options, field), sizeof(((struct options *)0)->field)
	static const struct {
		const char *name;
		size_t offset, size;
	} members[] = {
		{"cache_size", MEMBER(engine.cache_size)},
		{"cache_disk_size", MEMBER(engine.cache_disk_size)},
		{"workers", MEMBER(engine.workers)},
		{"stat", MEMBER(engine.stat)},
		{"filters", MEMBER(engine.no_filters)},
		{"verify", MEMBER(engine.s3.verify)},
		{"log_level", MEMBER(log_level)},
		{"umask", MEMBER(umask)},
	};
#undef MEMBER
	char *help = help_text(), value[64], list[128];
	struct options initial, given;
	struct err err;
	options_init(&initial, true);
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		default_in_help(help, members[i].name, value, sizeof(value));
		snprintf(list, sizeof(list), "%s=%s", members[i].name, value);
		assert_string_equal(add(&given, true, list, &err), "");
		assert_memory_equal((char *)&given + members[i].offset,
				    (char *)&initial + members[i].offset, members[i].size);
		options_release(&given);
	}
	assert_non_null(strstr(help, "(1 for names and sizes,"));
	assert_non_null(strstr(help, "0 for opens and listings)"));
	assert_true(initial.engine.metadata_ttl > 0.99 && initial.engine.metadata_ttl < 1.01);
	assert_true(initial.engine.open_ttl < 0.01);
	options_release(&initial);
	free(help);
}

static void users_and_groups_have_names(void **state)
{
	struct options o;
	struct err err;
	assert_string_equal(add(&o, true, "uid=daemon,gid=daemon", &err), "");
	assert_int_equal(o.uid, 1);
	assert_int_equal(o.gid, 1);
	options_release(&o);
	assert_string_equal(add(&o, true, "uid=no-such-user", &err),
			    "uid=no-such-user: no such user");
	options_release(&o);
	assert_string_equal(add(&o, true, "gid=no such group", &err),
			    "gid=no such group: no such group");
	options_release(&o);
}

static void wrong_options_are_refused(void **state)
{
	static const struct {
		const char *list, *message;
	} cases[] = {
		{"cache_size=1 ", "cache_size=1 : must be a number of bytes"},
		{"cache_size=", "cache_size=: must be a number of bytes"},
		{"cache_size", "-o cache_size: needs a value"},
		{"metadata_ttl=1x", "metadata_ttl=1x: must be a time"},
		{"stat=none", "stat=none: must be auto, exact or estimate"},
		{"workers=1025", "workers=1025: must be a number from 0 to 1024"},
		{"connections=0", "connections=0: must be a number from 1 to 1024"},
		{"file_mode=1000", "file_mode=1000: must be an octal number"},
		{"dir_mode=9", "dir_mode=9: must be an octal number"},
		{"file_mode=-1", "file_mode=-1: must be an octal number"},
		{"region=", "region=: must not be empty"},
		{"ro=1", "-o ro: takes no value"},
		{"nonsense", "-o nonsense: unknown option"},
		{"ro,remount", "-o remount: the options of a mount cannot be changed"},
		{"relatimes", "-o relatimes: unknown option"},
		{"cache_disk_size=1023k", "cache_disk_size=1023k: must be at least 1M"},
		{"spool_size=1", "spool_size=1: must be at least 1M"},
		{"journal_dir=", "journal_dir=: must not be empty"},
		{"region=\"eu,ro", "-o region=eu,ro: the closing quote is missing"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct options o;
		struct err err;
		const char *message = add(&o, true, cases[i].list, &err);
		if (strncmp(message, cases[i].message, strlen(cases[i].message)) != 0)
			fail_msg("%s: %s", cases[i].list, message);
		options_release(&o);
	}
}

static void options_that_need_others(void **state)
{
	static const struct {
		const char *list, *message;
	} cases[] = {
		{"cache_dir=/c,cache_disk_size=1M", ""},
		{"cache_disk_size=1M",
		 "cache_disk_size: nothing is kept on disk without cache_dir"},
		{"rw,journal_dir=/j,spool_size=1M", ""},
		{"journal_dir=/j,ro,rw", ""},
		{"journal_dir=/j", "journal_dir: requires the option rw"},
		{"rw,spool_size=1M,ro", "spool_size: requires the option rw"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct options o;
		struct err err;
		assert_string_equal(add(&o, true, cases[i].list, &err), "");
		const int rc = options_check(&o, &err);
		assert_string_equal(err.msg, cases[i].message);
		assert_int_equal(rc, cases[i].message[0] ? -EINVAL : 0);
		options_release(&o);
	}
}

/* From fstab(5), mount(8), systemd.mount(5), and /proc/mounts of a FUSE mount. */
static void words_of_fstab_are_ignored(void **state)
{
	static const char words[] =
		"defaults,auto,noauto,user,user=ann,users,nouser,owner,group,nofail,_netdev,"
		"comment=some text,x-systemd.automount,x-gvfs-name=a%20b,X-mount.mkdir=0755,"
		"relatime,norelatime,strictatime,nostrictatime,diratime,nodiratime,lazytime,"
		"nolazytime,sync,async,dirsync,user_id=0,group_id=0,silent,max_read=131072,"
		"blksize=4096,fsname=/a,subtype=hsmount,source=/a,nosymfollow,seclabel,"
		"context=u:r:t:s0,fscontext=\"u:r:t:s0:c1,c2\",rootcontext=x,defcontext=x";
	struct options o;
	struct err err;
	assert_string_equal(add(&o, true, words, &err), "");
	assert_string_equal(str_text(&o.mount), "");
	options_release(&o);
	assert_string_equal(add(&o, false, "relatime", &err), "-o relatime: unknown option");
	options_release(&o);
	assert_string_equal(add(&o, false, "uid=0", &err), "-o uid: only hsmount has this option");
	options_release(&o);
}

static void operands_are_counted(void **state)
{
	static const char *const names[] = {"A", "B", "C", "D", "E"};
	static const struct {
		int n, n_names, required;
		const char *message;
	} cases[] = {
		{0, 3, 3, "missing operand: A and B and C"},
		{1, 3, 3, "missing operand: B and C"},
		{2, 3, 3, "missing operand: C"},
		{3, 3, 3, ""},
		{4, 3, 3, "extra operand: \"four\""},
		{0, 2, 1, "missing operand: A"},
		{1, 2, 1, ""},
		{2, 2, 1, ""},
		{3, 2, 1, "extra operand: \"three\""},
		{5, 5, 1, "empty operand: E"},
	};
	static char one[] = "one", two[] = "two", three[] = "three", four[] = "four", empty[] = "";
	static char *const operands[] = {one, two, three, four, empty};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err err = ERR_INIT;
		const int rc = operands_check(operands, cases[i].n, names, cases[i].n_names,
					      cases[i].required, &err);
		assert_string_equal(err.msg, cases[i].message);
		assert_int_equal(rc, cases[i].message[0] ? -EINVAL : 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_are_stored),
		cmocka_unit_test(defaults),
		cmocka_unit_test(help_tells_the_defaults),
		cmocka_unit_test(users_and_groups_have_names),
		cmocka_unit_test(wrong_options_are_refused),
		cmocka_unit_test(options_that_need_others),
		cmocka_unit_test(words_of_fstab_are_ignored),
		cmocka_unit_test(operands_are_counted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
