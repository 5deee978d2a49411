/* SPDX-License-Identifier: Apache-2.0 */
/* The directory store: the contract, and other programs that change files meanwhile. */
#include "store_contract.h"
#include "file_clock.h"

#include <dirent.h>
#include <limits.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

static int dir_inline(void **state)
{
	struct fixture *f = fixture_new(0);
	fixture_dir(f);
	*state = f;
	return 0;
}

static int dir_workers(void **state)
{
	struct fixture *f = fixture_new(4);
	fixture_dir(f);
	*state = f;
	return 0;
}

static void test_new_refuses(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	write_file(path_of(f, "file"), "");
	assert_null(store_dir_new(&f->env, path_of(f, "file"), &err));
	assert_int_equal(err.code, -ENOTDIR);
	assert_null(store_dir_new(&f->env, path_of(f, "absent"), &err));
	assert_int_equal(err.code, -ENOENT);
	assert_non_null(strstr(err.msg, "absent"));
}

static void test_space(void **state)
{
	uint64_t free_bytes = 0, total = 0;
	assert_int_equal(store_space(((struct fixture *)*state)->s, &free_bytes, &total), 0);
	assert_true(total > 0 && free_bytes <= total);
}

/* ---- notes ---- */

/* Whoever may write to the directory can store any attribute. */
static void test_foreign_notes(void **state)
{
	static const struct {
		const char *text;
		size_t n;
		const char *want;
	} cases[] = {
		{"fine", 4, "fine"}, {"", 0, ""},	    {"a\0b", 3, ""},
		{"\x1b[2J", 4, ""},  {"two\nlines", 9, ""}, {"not \xff", 5, ""},
	};
	const struct fixture *f = *state;
	const struct store_cond none = {0};
	char note[STORE_NOTE_MAX + 1], longer[STORE_NOTE_MAX + 2];
	struct store_meta before, after;
	if (!fixture_has_notes(f))
		skip();
	put_text(f->s, "x", "1");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(setxattr(path_of(f, "x"), "user.hsmount.kept", cases[i].text,
					  cases[i].n, 0),
				 0);
		assert_note(f->s, "x", cases[i].want);
	}
	memset(longer, 'x', sizeof(longer));
	for (size_t n = STORE_NOTE_MAX; n < sizeof(longer) + 1; n++) {
		assert_int_equal(setxattr(path_of(f, "x"), "user.hsmount.kept", longer, n, 0), 0);
		assert_int_equal(call_note(f->s, "x", note, NULL), 0);
		assert_int_equal(strlen(note), n > STORE_NOTE_MAX ? 0 : n);
	}
	/* The version changes with the note. */
	assert_int_equal(call_head(f->s, "x", &before, NULL), 0);
	file_clock_wait(path_of(f, "x"));
	assert_int_equal(setxattr(path_of(f, "x"), "user.hsmount.kept", "z", 1, 0), 0);
	assert_int_equal(call_head(f->s, "x", &after, NULL), 0);
	assert_string_not_equal(before.etag, after.etag);
	/* A document that seems to be being written. */
	assert_int_equal(call_put_note(f->s, "empty.json", NULL, "note", &none, NULL), 0);
	assert_note(f->s, "empty.json", "note");
}

/* ---- marks ---- */

/* Another program writes into the file, or copies it with its attributes. */
static void test_marks_of_other_programs(void **state)
{
	static const char *const foreign[] = {"m-1", "m-1 ", "m-1 1-2-3", "", "\x1b 0-0-0"};
	const struct fixture *f = *state;
	const struct store_cond absent = {.if_none_match = "*"};
	char text[256];
	if (!fixture_has_notes(f))
		skip();
	assert_int_equal(call_put_mark(f->s, "x", "1", "m-1", NULL, NULL, NULL), 0);
	const ssize_t n = getxattr(path_of(f, "x"), "user.hsmount.mark", text, sizeof(text));
	assert_true(n > 0);
	file_clock_wait(path_of(f, "x"));
	write_file(path_of(f, "x"), "2");
	assert_true(getxattr(path_of(f, "x"), "user.hsmount.mark", NULL, 0) > 0);
	assert_mark(f->s, "x", "");
	assert_int_equal(call_put_mark(f->s, "x", "1", "m-1", &absent, NULL, NULL), -EEXIST);

	put_text(f->s, "copy", "1");
	assert_int_equal(setxattr(path_of(f, "copy"), "user.hsmount.mark", text, (size_t)n, 0), 0);
	assert_mark(f->s, "copy", "");
	for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++) {
		assert_int_equal(setxattr(path_of(f, "copy"), "user.hsmount.mark", foreign[i],
					  strlen(foreign[i]), 0),
				 0);
		assert_mark(f->s, "copy", "");
	}
	memset(text, 'm', sizeof(text));
	for (size_t length = 60; length < 130; length++) {
		assert_int_equal(setxattr(path_of(f, "copy"), "user.hsmount.mark", text, length, 0),
				 0);
		assert_mark(f->s, "copy", "");
	}
}

/* ---- moves ---- */

static void test_moves_that_are_impossible(void **state)
{
	const struct fixture *f = *state;
	char from[2048];
	struct err err = ERR_INIT;
	put_text(f->s, "x", "1");
	put_text(f->s, "d/y", "2");
	strcpy(from, path_of(f, "x"));
	assert_int_equal(symlink("x", path_of(f, "link")), 0);
	assert_int_equal(symlink("../secret", path_of(f, "out")), 0);
	assert_int_equal(link(from, path_of(f, "twin")), 0);
	static const struct {
		const char *from, *to;
		int code;
	} cases[] = {
		{"link", "new", -EXDEV},
		{"x", "link", -EXDEV},
		{"x", "twin", -EXDEV},
		{"out", "new", -EACCES},
		{"x", "d", -EISDIR},
		{"x", "d/y/z", -ENOTDIR},
		{"d", "new", -ENOENT},
		{"x/z", "new", -ENOENT},
		{".hsmount-tmp-1", "new", -ENOENT},
		{"x", "new/.hsmount-tmp-1", -EINVAL},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(store_move(f->s, cases[i].from, "", cases[i].to, NULL, NULL, &err),
				 cases[i].code);
		assert_object(f->s, "x", "1");
		assert_object(f->s, "d/y", "2");
		assert_code(f->s, "new", -ENOENT);
	}
}

/* ---- objects that are written in place ---- */

static void test_empty_json_is_read_again(void **state)
{
	struct fixture *f = *state;
	struct store_meta meta;
	write_file(path_of(f, ".domain.json"), "");
	write_file(path_of(f, "plain"), "");
	assert_object(f->s, ".domain.json", "");
	assert_int_equal(f->slept_ns, 2 * 5000000);
	assert_int_equal(call_head(f->s, ".domain.json", &meta, NULL), 0);
	assert_int_equal(meta.size, 0);
	assert_object(f->s, "plain", "");
	assert_int_equal(f->slept_ns, 4 * 5000000);
}

static void finish_writing(struct fixture *f)
{
	write_file(path_of(f, "x.json"), "{}");
}

static void test_empty_json_is_retried(void **state)
{
	struct fixture *f = *state;
	write_file(path_of(f, "x.json"), "");
	f->on_sleep = finish_writing;
	assert_object(f->s, "x.json", "{}");
}

/* ---- objects that change while they are read ---- */

/* Replaces the store's reads: a test changes the file before each of the first `changes` reads. */
static struct {
	void (*change)(const char *path);
	const char *path;
	unsigned int changes, reads;
} meddler;

ssize_t pread(int fd, void *to, size_t n, off_t at)
{
	if (meddler.change && meddler.reads++ < meddler.changes)
		meddler.change(meddler.path);
	return syscall(SYS_pread64, fd, to, n, at);
}

/* Each change sets a different time, because two writes within one tick of the kernel's clock get
 * the same time. */
static void rewrite(const char *path)
{
	const struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1000 + meddler.reads}};
	write_file(path, "new");
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void shorten(const char *path)
{
	assert_int_equal(truncate(path, 1), 0);
}

static void lengthen_again(struct fixture *f)
{
	write_file(meddler.path, "old");
}

static int get_changing(struct fixture *f, void (*change)(const char *path), unsigned int changes,
			struct call_result *res, struct err *err)
{
	write_file(path_of(f, "x"), "old");
	meddler.path = path_of(f, "x"); /* path_of() must not be called until the read has ended */
	meddler.change = change;
	meddler.changes = changes;
	meddler.reads = 0;
	f->slept_ns = 0;
	const int rc = call_get(f->s, "x", 0, UINT64_MAX, 0, NULL, res, err);
	meddler.change = NULL;
	return rc;
}

static void test_file_that_changes_while_it_is_read(void **state)
{
	struct fixture *f = *state;
	struct call_result res;
	struct store_meta meta;
	struct err err = ERR_INIT;
	for (unsigned int changes = 1; changes <= 2; changes++) {
		assert_int_equal(get_changing(f, rewrite, changes, &res, &err), 0);
		assert_int_equal(res.body.len, 3);
		assert_memory_equal(res.body.data, "new", 3);
		assert_int_equal(call_head(f->s, "x", &meta, NULL), 0);
		assert_string_equal(res.meta.etag, meta.etag);
		assert_int_equal(f->slept_ns, changes * 5000000);
		bytes_release(&res.body);
	}
}

static void test_file_that_is_written_all_the_time(void **state)
{
	struct fixture *f = *state;
	struct call_result res;
	struct err err = ERR_INIT;
	assert_int_equal(get_changing(f, rewrite, UINT_MAX, &res, &err), -EIO);
	assert_null(res.body.data);
	assert_non_null(strstr(err.msg, "object x"));
	assert_non_null(strstr(err.msg, "changed during each attempt to read it"));
	assert_int_equal(meddler.reads, 3);
	assert_int_equal(f->slept_ns, 2 * 5000000);
}

static void test_shrinking_file(void **state)
{
	struct fixture *f = *state;
	struct call_result res;
	struct err err = ERR_INIT;
	f->on_sleep = lengthen_again;
	assert_int_equal(get_changing(f, shorten, UINT_MAX, &res, &err), -EIO);
	assert_null(res.body.data);
	assert_non_null(strstr(err.msg, "shrank"));
	assert_int_equal(f->slept_ns, 2 * 5000000);
}

static void test_huge_sparse_file(void **state)
{
	struct fixture *f = *state;
	struct call_result res;
	write_file(path_of(f, "sparse"), "x");
	if (truncate(path_of(f, "sparse"), (off_t)1 << 40))
		skip();
	assert_int_equal(call_get(f->s, "sparse", 0, UINT64_MAX, 1 << 20, NULL, &res, NULL),
			 -EFBIG);
	assert_int_equal(
		call_get(f->s, "sparse", (1ull << 40) - 3, UINT64_MAX, 1 << 20, NULL, &res, NULL),
		0);
	assert_int_equal(res.body.len, 3);
	bytes_release(&res.body);
}

/* ---- files that are no objects ---- */

static void make_socket(const char *path)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	assert_true(strlen(path) < sizeof(name.sun_path));
	strcpy(name.sun_path, path);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&name, sizeof(name)), 0);
	close(fd);
}

static void test_special_files(void **state)
{
	struct fixture *f = *state;
	struct store_meta meta;
	struct stat st;
	assert_int_equal(mkfifo(path_of(f, "fifo"), 0666), 0);
	make_socket(path_of(f, "socket"));
	assert_int_equal(symlink("fifo", path_of(f, "link")), 0);
	put_text(f->s, "x", "1");
	const char *keys[] = {"fifo", "socket", "link"};
	for (size_t i = 0; i < 3; i++) {
		assert_code(f->s, keys[i], -ENOENT);
		assert_int_equal(call_head(f->s, keys[i], &meta, NULL), -ENOENT);
		assert_int_equal(call_delete(f->s, keys[i], NULL, NULL), 0);
		assert_int_equal(lstat(path_of(f, keys[i]), &st), 0);
	}
	assert_listing(f->s, "", false, "x");
	assert_listing(f->s, "", true, "x");
}

static void test_temporary_names(void **state)
{
	struct fixture *f = *state;
	mkdir(path_of(f, ".hsmount-tmp-d"), 0777);
	write_file(path_of(f, ".hsmount-tmp-d/x"), "1");
	write_file(path_of(f, ".hsmount-tmp-1"), "1");
	write_file(path_of(f, ".hsmount-tm"), "1");
	const char *keys[] = {".hsmount-tmp-1", ".hsmount-tmp-d/x", "a/.hsmount-tmp-2"};
	for (size_t i = 0; i < 3; i++) {
		assert_code(f->s, keys[i], -ENOENT);
		assert_int_equal(call_put(f->s, keys[i], "x", 1, NULL, NULL, NULL), -EINVAL);
		assert_int_equal(call_delete(f->s, keys[i], NULL, NULL), 0);
	}
	assert_listing(f->s, "", false, ".hsmount-tm");
	assert_listing(f->s, ".hsmount-tmp-d/", false, "");
	assert_int_equal(access(path_of(f, ".hsmount-tmp-1"), F_OK), 0);
}

static unsigned int count_entries(const char *path)
{
	unsigned int n = 0;
	DIR *dir = opendir(path);
	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n - 2;
}

static void test_failed_puts_leave_nothing(void **state)
{
	struct fixture *f = *state;
	const struct store_cond absent = {.if_none_match = "*"}, other = {.if_match = "other"};
	struct err err = ERR_INIT;
	char name[300];
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	put_text(f->s, "x", "1");
	put_text(f->s, "d/y", "2");
	assert_int_equal(call_put(f->s, "x", "3", 1, &absent, NULL, &err), -EEXIST);
	assert_int_equal(call_put(f->s, "x", "3", 1, &other, NULL, &err), -ESTALE);
	assert_int_equal(call_put(f->s, "d", "3", 1, NULL, NULL, &err), -EISDIR);
	assert_int_equal(call_put(f->s, "d", "3", 1, &absent, NULL, &err), -EISDIR);
	assert_int_equal(call_put(f->s, "x/z", "3", 1, NULL, NULL, &err), -ENOTDIR);
	assert_int_equal(call_put(f->s, name, "3", 1, NULL, NULL, &err), -ENAMETOOLONG);
	assert_int_equal(count_entries(path_of(f, "")), 2);
	assert_object(f->s, "x", "1");
	assert_object(f->s, "d/y", "2");
}

/* A put syncs the file and its directory. If that fails, so does the put. */
static struct {
	atomic_uint files, directories, all;
	bool fail;
} syncs;

int syncfs(int fd)
{
	struct stat st;
	assert_int_equal(fstat(fd, &st), 0);
	syncs.all++;
	if (syncs.fail)
		errno = EIO;
	return syncs.fail ? -1 : 0;
}

int fsync(int fd)
{
	struct stat st;
	assert_int_equal(fstat(fd, &st), 0);
	syncs.files += S_ISREG(st.st_mode);
	syncs.directories += S_ISDIR(st.st_mode);
	if (syncs.fail)
		errno = EIO;
	return syncs.fail ? -1 : 0;
}

/* The directory of each key. The file is durable since it was put. */
static void test_moves_are_synced(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	put_text(f->s, "d/x", "1");
	put_text(f->s, "e/y", "2");
	syncs.files = syncs.directories = 0;
	assert_int_equal(store_move(f->s, "d/x", "", "e/x", NULL, NULL, NULL), 0);
	assert_int_equal(syncs.files, 0);
	assert_int_equal(syncs.directories, 2);
	assert_int_equal(store_move(f->s, "e/x", "", "new/dir/x", NULL, NULL, NULL), 0);
	assert_int_equal(syncs.directories, 2 + 2 + 2);
	syncs.fail = true;
	assert_int_equal(store_move(f->s, "e/y", "", "e/z", NULL, NULL, &err), -EIO);
	syncs.fail = false;
}

static void test_puts_are_synced(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	syncs.files = syncs.directories = 0;
	put_text(f->s, "x", "1");
	assert_int_equal(syncs.files, 1);
	assert_int_equal(syncs.directories, 1);
	syncs.fail = true;
	assert_int_equal(call_put(f->s, "x", "2", 1, NULL, NULL, &err), -EIO);
	assert_int_equal(call_put(f->s, "new/dir/y", "2", 1, NULL, NULL, &err), -EIO);
	syncs.fail = false;
	assert_object(f->s, "x", "1");
	assert_int_equal(count_entries(path_of(f, "")), 1);
}

static void put_deferred(struct store *s, const char *key)
{
	auto_request struct store_request *req = store_request_new(s, STORE_PUT);
	store_request_key(req, key);
	req->deferred = true;
	store_run(s, req);
	assert_int_equal(req->answer.state, STORE_PRESENT);
}

/* A deferred put syncs nothing. A put after it that needs its directories syncs them, until all is
 * synced. */
static void test_deferred_puts(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	assert_int_equal(strlen(store_life(f->s)), 36);
	syncs.files = syncs.directories = syncs.all = 0;
	put_deferred(f->s, "a/b/x");
	put_deferred(f->s, "a/b/y");
	assert_object(f->s, "a/b/x", "");
	assert_int_equal(syncs.files + syncs.directories, 0);
	put_text(f->s, "a/b/z", "1");
	assert_int_equal(syncs.files, 1);
	assert_int_equal(syncs.directories, 1 + 2);
	syncs.fail = true;
	assert_int_equal(store_sync(f->s, &err), -EIO);
	assert_non_null(strstr(err.msg, "cannot be written to the disk"));
	syncs.fail = false;
	assert_int_equal(store_sync(f->s, &err), 0);
	assert_int_equal(syncs.all, 2);
	put_text(f->s, "a/b/z", "2");
	assert_int_equal(syncs.directories, 1 + 2 + 1);
}

/* If standard input is closed, a file may get descriptor 0, which is as valid as any other. */
static void test_descriptor_zero(void **state)
{
	struct fixture *f = *state;
	char text[8];
	put_text(f->s, "d/x", "1");
	const int saved = dup(STDIN_FILENO);
	close(STDIN_FILENO);
	const int got = get_text(f->s, "d/x", text, sizeof(text));
	const int deleted = call_delete(f->s, "d/x", NULL, NULL);
	if (saved >= 0) {
		dup2(saved, STDIN_FILENO);
		close(saved);
	}
	assert_int_equal(got, 0);
	assert_string_equal(text, "1");
	assert_int_equal(deleted, 0);
	assert_int_equal(count_entries(path_of(f, "")), 0);
}

static void test_replacing_keeps_readers(void **state)
{
	struct fixture *f = *state;
	char text[8] = "";
	put_text(f->s, "x", "old");
	int fd = open(path_of(f, "x"), O_RDONLY);
	put_text(f->s, "x", "new!");
	assert_int_equal(read(fd, text, 4), 3);
	assert_string_equal(text, "old");
	close(fd);
	assert_object(f->s, "x", "new!");
}

/* ---- threads ---- */

struct crowd {
	struct store *s;
	int number;
	int failures;
	int won;
};

enum { CROWD = 4 };

static void run_crowd(struct fixture *f, void *(*fn)(void *), struct crowd crowd[CROWD])
{
	pthread_t threads[CROWD];
	for (int i = 0; i < CROWD; i++) {
		crowd[i] = (struct crowd){.s = f->s, .number = i};
		assert_int_equal(pthread_create(&threads[i], NULL, fn, &crowd[i]), 0);
	}
	for (int i = 0; i < CROWD; i++)
		pthread_join(threads[i], NULL);
}

/* Each thread makes and empties directories that the others use. */
static void *make_and_empty(void *arg)
{
	struct crowd *c = arg;
	char key[32], text[32];
	snprintf(key, sizeof(key), "a/b/%d", c->number);
	for (int i = 0; i < 100; i++) {
		c->failures += call_put(c->s, key, key, strlen(key), NULL, NULL, NULL) != 0;
		c->failures += get_text(c->s, key, text, sizeof(text)) != 0;
		c->failures += call_delete(c->s, key, NULL, NULL) != 0;
	}
	return NULL;
}

static void test_make_and_empty(void **state)
{
	struct fixture *f = *state;
	struct crowd crowd[CROWD];
	run_crowd(f, make_and_empty, crowd);
	for (int i = 0; i < CROWD; i++)
		assert_int_equal(crowd[i].failures, 0);
	assert_int_equal(count_entries(path_of(f, "")), 0);
}

static void remove_key(struct store *s, const char *key)
{
	assert_int_equal(call_put(s, key, key, strlen(key), NULL, NULL, NULL), 0);
	assert_int_equal(call_delete(s, key, NULL, NULL), 0);
}

/* The directory that is kept stays, and nothing else: neither what is in it, nor one above it, nor
 * one whose name begins alike. */
static void test_keep(void **state)
{
	struct fixture *f = *state;
	store_dir_keep(f->s, "db/");
	remove_key(f->s, "db/x/g/1");
	remove_key(f->s, "dbs/x/1");
	remove_key(f->s, "d/x/1");
	remove_key(f->s, "a/db/1");
	assert_int_equal(count_entries(path_of(f, "")), 1);
	assert_int_equal(count_entries(path_of(f, "db")), 0);
	const struct store_cond stale = {.if_match = "1-2-3-4"};
	assert_int_not_equal(call_put(f->s, "db/y/1", "1", 1, &stale, NULL, NULL), 0);
	assert_int_equal(count_entries(path_of(f, "db")), 0);
}

struct temps {
	unsigned int n;
	char last[64];
	int result;
};

static int take_temp(void *ctx, const char *path, const struct store_meta *meta)
{
	struct temps *t = ctx;
	t->n++;
	snprintf(t->last, sizeof(t->last), "%s", path);
	return t->result;
}

/* Only files count, and what a link leads to is found once. */
static void test_temps(void **state)
{
	struct fixture *f = *state;
	struct temps t = {.n = 0};
	call_put(f->s, "a/b/object", "1", 1, NULL, NULL, NULL);
	assert_int_equal(store_dir_each_temp(f->s, take_temp, &t, NULL), 0);
	assert_int_equal(t.n, 0);
	write_file(path_of(f, "a/b/.hsmount-tmp-1"), "12345");
	assert_int_equal(symlink("b", path_of(f, "a/link")), 0);
	assert_int_equal(symlink("..", path_of(f, "a/b/loop")), 0);
	assert_int_equal(symlink("object", path_of(f, "a/b/.hsmount-tmp-2")), 0);
	assert_int_equal(mkdir(path_of(f, "a/.hsmount-tmp-3"), 0777), 0);
	assert_int_equal(store_dir_each_temp(f->s, take_temp, &t, NULL), 0);
	assert_int_equal(t.n, 1);
	assert_string_equal(t.last, "a/b/.hsmount-tmp-1");
	write_file(path_of(f, ".hsmount-tmp-4"), "");
	t = (struct temps){.result = -EINTR};
	assert_int_equal(store_dir_each_temp(f->s, take_temp, &t, NULL), -EINTR);
	assert_int_equal(t.n, 1);
}

/* Each thread moves its object to and fro, and removes the directories that the others need. */
static void *move_about(void *arg)
{
	struct crowd *c = arg;
	char from[32], to[32];
	snprintf(from, sizeof(from), "a/b/%p", arg);
	snprintf(to, sizeof(to), "c/d/%p", arg);
	c->failures += call_put(c->s, from, "x", 1, NULL, NULL, NULL) != 0;
	for (int i = 0; i < 20; i++) {
		c->failures += store_move(c->s, from, "", to, NULL, NULL, NULL) != 0;
		c->failures += store_move(c->s, to, "", from, NULL, NULL, NULL) != 0;
	}
	c->failures += call_delete(c->s, from, NULL, NULL) != 0;
	return NULL;
}

static void test_moves_to_and_fro(void **state)
{
	struct fixture *f = *state;
	struct crowd crowd[CROWD];
	run_crowd(f, move_about, crowd);
	for (int i = 0; i < CROWD; i++)
		assert_int_equal(crowd[i].failures, 0);
	assert_int_equal(count_entries(path_of(f, "")), 0);
}

static void *be_first(void *arg)
{
	struct crowd *c = arg;
	const struct store_cond absent = {.if_none_match = "*"};
	for (int i = 0; i < 50; i++) {
		char key[32];
		snprintf(key, sizeof(key), "race/%d", i);
		int rc = call_put(c->s, key, "x", 1, &absent, NULL, NULL);
		c->won += rc == 0;
		c->failures += rc != 0 && rc != -EEXIST;
	}
	return NULL;
}

static void test_one_is_first(void **state)
{
	struct crowd crowd[CROWD];
	int won = 0;
	run_crowd(*state, be_first, crowd);
	for (int i = 0; i < CROWD; i++) {
		assert_int_equal(crowd[i].failures, 0);
		won += crowd[i].won;
	}
	assert_int_equal(won, 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CONTRACT_TESTS(dir_inline),
		CONTRACT_TESTS(dir_workers),
		CONTRACT_TEST(test_new_refuses, dir_inline),
		CONTRACT_TEST(test_space, dir_inline),
		CONTRACT_TEST(test_foreign_notes, dir_inline),
		CONTRACT_TEST(test_marks_of_other_programs, dir_inline),
		CONTRACT_TEST(test_moves_that_are_impossible, dir_inline),
		CONTRACT_TEST(test_moves_are_synced, dir_inline),
		CONTRACT_TEST(test_moves_to_and_fro, dir_workers),
		CONTRACT_TEST(test_empty_json_is_read_again, dir_inline),
		CONTRACT_TEST(test_empty_json_is_retried, dir_inline),
		CONTRACT_TEST(test_file_that_changes_while_it_is_read, dir_inline),
		CONTRACT_TEST(test_file_that_is_written_all_the_time, dir_inline),
		CONTRACT_TEST(test_shrinking_file, dir_inline),
		CONTRACT_TEST(test_huge_sparse_file, dir_inline),
		CONTRACT_TEST(test_special_files, dir_inline),
		CONTRACT_TEST(test_temporary_names, dir_inline),
		CONTRACT_TEST(test_failed_puts_leave_nothing, dir_inline),
		CONTRACT_TEST(test_puts_are_synced, dir_inline),
		CONTRACT_TEST(test_deferred_puts, dir_inline),
		CONTRACT_TEST(test_descriptor_zero, dir_inline),
		CONTRACT_TEST(test_replacing_keeps_readers, dir_inline),
		CONTRACT_TEST(test_keep, dir_inline),
		CONTRACT_TEST(test_temps, dir_inline),
		CONTRACT_TEST(test_make_and_empty, dir_workers),
		CONTRACT_TEST(test_one_is_first, dir_workers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
