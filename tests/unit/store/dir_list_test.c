/* SPDX-License-Identifier: Apache-2.0 */
/* The directory store: listings of directories that are large, deep, unreadable or empty. */
#include "store_fixture.h"

#include <dirent.h>
#include <dlfcn.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* True: readdir() reports the type of no entry, as on file systems that do not store it. */
static bool types_are_unknown;
static unsigned int entries_read;

struct dirent *readdir(DIR *dir)
{
	static struct dirent *(*real)(DIR *);
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "readdir64");
	struct dirent *entry = real(dir);
	entries_read += entry != NULL;
	if (entry && types_are_unknown)
		entry->d_type = DT_UNKNOWN;
	return entry;
}

static int setup(void **state)
{
	struct fixture *f = fixture_new(0);
	fixture_dir(f);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	fixture_free(*state);
	return 0;
}

static void make_files(const struct fixture *f, const char *dir, unsigned int n)
{
	mkdir(path_of(f, dir), 0777);
	for (unsigned int i = 0; i < n; i++) {
		char key[64];
		snprintf(key, sizeof(key), "%s/%u", dir, i);
		int fd = open(path_of(f, key), O_WRONLY | O_CREAT, 0666);
		assert_true(fd >= 0);
		close(fd);
	}
}

/* Runs fn in a child process and counts its system calls: all of them, and those that read a
 * directory. False if tracing is not allowed. */
static bool count_calls(void (*fn)(struct fixture *f), struct fixture *f, unsigned int *all,
			unsigned int *readdirs)
{
	int status;
	*all = *readdirs = 0;
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
			_exit(2);
		raise(SIGSTOP);
		fn(f);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (!WIFSTOPPED(status))
		return false;
	ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
	while (ptrace(PTRACE_SYSCALL, pid, NULL, NULL) == 0) {
		struct __ptrace_syscall_info info;
		if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
			break;
		if (WSTOPSIG(status) != (SIGTRAP | 0x80) ||
		    ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info) <= 0 ||
		    info.op != PTRACE_SYSCALL_INFO_ENTRY)
			continue;
		*all += 1;
		*readdirs += info.entry.nr == SYS_getdents64;
	}
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	return true;
}

static void list_too_many(struct fixture *f)
{
	struct store_page page;
	if (call_list_all(f->s, "d/", false, 100, &page, NULL) != -E2BIG)
		_exit(1);
}

static void test_limit_costs_little(void **state)
{
	struct fixture *f = *state;
	unsigned int all, readdirs;
	make_files(f, "d", 5000);
	if (!count_calls(list_too_many, f, &all, &readdirs))
		skip();
	assert_int_equal(readdirs, 1);
	assert_true(all < 50); /* far fewer than objects */
}

/* More directories than one batch. */
static void test_limit_among_directories(void **state)
{
	struct fixture *f = *state;
	struct store_page page;
	for (unsigned int i = 0; i < 1500; i++) {
		char key[32];
		snprintf(key, sizeof(key), "%u", i);
		mkdir(path_of(f, key), 0777);
	}
	put_text(f->s, "700/x", "1");
	put_text(f->s, "1400/x", "1");
	assert_listing(f->s, "", false, "1400/x 700/x");
	assert_int_equal(call_list_all(f->s, "", false, 1, &page, NULL), -E2BIG);
	assert_int_equal(call_list_all(f->s, "", true, 1499, &page, NULL), -E2BIG);
	assert_int_equal(call_list_all(f->s, "", true, 1500, &page, NULL), 0);
	assert_int_equal(page.n, 1500);
	for (size_t i = 1; i < page.n; i++)
		assert_true(strcmp(page.items[i - 1].key, page.items[i].key) < 0);
	store_page_release(&page);
}

/* The files of the first batch of directories exceed the limit. */
static void test_limit_is_noticed_before_all_directories_are_read(void **state)
{
	enum { BATCH = 1024, DIRECTORIES = 2 * BATCH };
	struct fixture *f = *state;
	struct store_page page;
	for (unsigned int i = 0; i < DIRECTORIES; i++) {
		char dir[32];
		snprintf(dir, sizeof(dir), "%u", i);
		make_files(f, dir, 1);
	}
	entries_read = 0;
	assert_int_equal(call_list_all(f->s, "", false, 1, &page, NULL), -E2BIG);
	assert_in_range(entries_read, BATCH, BATCH + 10);
}

static void test_large_pages(void **state)
{
	struct fixture *f = *state;
	const struct call_list req = {.prefix = "d/", .max = 100000};
	auto_page struct store_page page = {0};
	make_files(f, "d", 2500);
	assert_int_equal(call_list_page(f->s, &req, &page, NULL), 0);
	assert_int_equal(page.n, 2500);
	assert_false(page.more);
}

static void test_empty_directories(void **state)
{
	struct fixture *f = *state;
	mkdir(path_of(f, "a"), 0777);
	mkdir(path_of(f, "a/b"), 0777);
	put_text(f->s, "c/x", "1");
	assert_listing(f->s, "", true, "a/ c/");
	assert_listing(f->s, "a/", true, "a/b/");
	assert_listing(f->s, "", false, "c/x");
	assert_listing(f->s, "a/", false, "");
	/* What follows the page is not an object. */
	mkdir(path_of(f, "d"), 0777);
	const struct call_list req = {.prefix = "", .max = 1};
	auto_page struct store_page page = {0};
	assert_int_equal(call_list_page(f->s, &req, &page, NULL), 0);
	assert_int_equal(page.n, 1);
	assert_false(page.more);
}

static void test_entries_of_unknown_type(void **state)
{
	struct fixture *f = *state;
	put_text(f->s, "a", "1");
	put_text(f->s, "d/x", "1");
	assert_int_equal(mkdir(path_of(f, "empty"), 0777), 0);
	assert_int_equal(mkfifo(path_of(f, "fifo"), 0666), 0);
	assert_int_equal(symlink("a", path_of(f, "link")), 0);
	assert_int_equal(symlink("d", path_of(f, "link-to-d")), 0);
	for (int unknown = 0; unknown < 2; unknown++) {
		types_are_unknown = unknown;
		assert_listing(f->s, "", true, "a d/ empty/ link link-to-d/");
		assert_listing(f->s, "", false, "a d/x link link-to-d/x");
	}
	types_are_unknown = false;
}

static void test_entry_of_unknown_type_that_cannot_be_examined(void **state)
{
	struct fixture *f = *state;
	const bool root = geteuid() == 0;
	struct store_page page = {0};
	put_text(f->s, "half/x", "1");
	assert_int_equal(chmod(path_of(f, "half"), 0444), 0);
	if (root)
		assert_int_equal(seteuid(65534), 0);
	types_are_unknown = true;
	int whole = call_list_all(f->s, "half/", false, 10, &page, NULL);
	int names = call_list_all(f->s, "half/", true, 10, &page, NULL);
	types_are_unknown = false;
	if (root)
		assert_int_equal(seteuid(0), 0);
	assert_int_equal(chmod(path_of(f, "half"), 0777), 0);
	assert_int_equal(whole, -EACCES);
	assert_int_equal(names, -EACCES); /* no entry is left */
}

static void test_too_deep(void **state)
{
	struct fixture *f = *state;
	struct store_page page;
	struct err err = ERR_INIT;
	char key[256] = "";
	for (int i = 0; i < 64; i++) {
		strcat(key, i ? "/d" : "d");
		assert_int_equal(mkdir(path_of(f, key), 0777), 0);
	}
	assert_int_equal(call_list_all(f->s, "", false, 10, &page, &err), -ELOOP);
	assert_listing(f->s, "", true, "d/");
	assert_listing(f->s, "d/", false, "");
	strcat(key, "/x");
	put_text(f->s, key, "1");
	assert_object(f->s, key, "1");
	assert_listing(f->s, "d/", false, key);
}

/* A whole listing and its log messages. */
static void list_and_log(struct fixture *f, struct store_page *page, char *said, size_t size)
{
	FILE *to = tmpfile();
	const int saved = dup(STDERR_FILENO);
	struct log *log = log_new("test", LOG_LEVEL_WARNING);
	assert_true(to && saved >= 0 && log);
	dup2(fileno(to), STDERR_FILENO);
	f->env.log = log;
	const int rc = call_list_all(f->s, "", false, 100, page, NULL);
	f->env.log = NULL;
	dup2(saved, STDERR_FILENO);
	close(saved);
	log_free(log);
	const ssize_t n = pread(fileno(to), said, size - 1, 0);
	fclose(to);
	assert_int_equal(rc, 0);
	assert_true(n >= 0);
	said[n] = '\0';
}

/* Five levels of names of 255 bytes: keys of the last level would be too long. */
static void test_keys_too_long(void **state)
{
	struct fixture *f = *state;
	char name[256], path[1400];
	memset(name, 'n', 255);
	name[255] = '\0';
	snprintf(path, sizeof(path), "%s/bucket", f->dir);
	int at = open(path, O_PATH | O_DIRECTORY);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(mkdirat(at, name, 0777), 0);
		int next = openat(at, name, O_PATH | O_DIRECTORY);
		assert_true(next >= 0);
		close(at);
		at = next;
		int fd = openat(at, "x", O_WRONLY | O_CREAT, 0666);
		assert_true(fd >= 0);
		close(fd);
	}
	close(at);
	auto_page struct store_page page = {0};
	char said[512];
	list_and_log(f, &page, said, sizeof(said));
	name[64] = '\0';
	snprintf(path, sizeof(path),
		 "%s... (its key, or those below it, would be longer than 1024 bytes)", name);
	assert_string_equal(page.left_out, path);
	assert_non_null(strstr(said, "listing of '': 1 names are left out; the first is nnn"));
	assert_int_equal(page.n, 3); /* below the fourth level a key would have 1025 bytes */
	for (size_t i = 0; i < page.n; i++)
		assert_true(store_key_ok(page.items[i].key));
}

/* A temporary file is no name of the bucket, but a directory may have domains. */
static void test_reserved_directory(void **state)
{
	struct fixture *f = *state;
	auto_page struct store_page page = {0}, other = {0};
	write_file(path_of(f, ".hsmount-tmp-1"), "1");
	assert_int_equal(call_list_all(f->s, "", false, UINT32_MAX, &page, NULL), 0);
	assert_null(page.left_out);
	store_page_release(&page);
	mkdir(path_of(f, ".hsmount-tmp-d"), 0777);
	assert_int_equal(call_list_all(f->s, "", false, UINT32_MAX, &page, NULL), 0);
	assert_string_equal(page.left_out, ".hsmount-tmp-d (names that begin with .hsmount-tmp- "
					   "are reserved)");
	assert_int_equal(call_list_all(f->s, ".hsmount-tmx", false, UINT32_MAX, &other, NULL), 0);
	assert_null(other.left_out);
}

static void test_unreadable_directory(void **state)
{
	struct fixture *f = *state;
	struct store_page page;
	struct err err = ERR_INIT;
	const bool root = geteuid() == 0;
	put_text(f->s, "open/x", "1");
	put_text(f->s, "shut/x", "1");
	assert_int_equal(chmod(path_of(f, "shut"), 0), 0);
	if (root)
		assert_int_equal(seteuid(65534), 0);
	int whole = call_list_all(f->s, "", false, 10, &page, &err);
	int inside = call_list_all(f->s, "shut/", true, 10, &page, NULL);
	int object = call_head(f->s, "shut/x", NULL, NULL);
	if (root)
		assert_int_equal(seteuid(0), 0);
	assert_int_equal(whole, -EACCES);
	assert_non_null(strstr(err.msg, "shut"));
	assert_int_equal(inside, -EACCES);
	assert_int_equal(object, -EACCES);
	assert_listing(f->s, "open/", false, "open/x");
	assert_int_equal(chmod(path_of(f, "shut"), 0777), 0);
}

/* The names of entries can be read, but the entries cannot be examined. */
static void test_unsearchable_directory(void **state)
{
	struct fixture *f = *state;
	const bool root = geteuid() == 0;
	struct store_page page = {0}, files = {0};
	struct err err = ERR_INIT;
	put_text(f->s, "half/x", "1");
	put_text(f->s, "half/sub/y", "1");
	put_text(f->s, "files/x", "1");
	assert_int_equal(chmod(path_of(f, "half"), 0444), 0);
	assert_int_equal(chmod(path_of(f, "files"), 0444), 0);
	if (root)
		assert_int_equal(seteuid(65534), 0);
	int names = call_list_all(f->s, "half/", true, 10, &page, NULL);
	int whole = call_list_all(f->s, "half/", false, 10, &files, NULL);
	int none = call_list_all(f->s, "files/", true, 10, &files, &err);
	if (root)
		assert_int_equal(seteuid(0), 0);
	assert_int_equal(names, 0);
	assert_int_equal(page.n, 1);
	assert_string_equal(page.items[0].key, "half/sub/");
	store_page_release(&page);
	assert_int_equal(whole, -EACCES);
	assert_int_equal(none, -EACCES);
	assert_non_null(strstr(err.msg, "files/x"));
	assert_int_equal(chmod(path_of(f, "half"), 0777), 0);
	assert_int_equal(chmod(path_of(f, "files"), 0777), 0);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_limit_costs_little),
		TEST(test_limit_among_directories),
		TEST(test_limit_is_noticed_before_all_directories_are_read),
		TEST(test_large_pages),
		TEST(test_empty_directories),
		TEST(test_entries_of_unknown_type),
		TEST(test_entry_of_unknown_type_that_cannot_be_examined),
		TEST(test_too_deep),
		TEST(test_keys_too_long),
		TEST(test_reserved_directory),
		TEST(test_unreadable_directory),
		TEST(test_unsearchable_directory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
