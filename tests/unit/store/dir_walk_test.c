/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory store on an older kernel: a seccomp filter disables openat2(2), O_TMPFILE and the
 * flags of renameat2(2) for this process. The contract is tested again, and that no link is
 * followed.
 */
#include "store_contract.h"

#include <linux/filter.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/* After this openat2(2) fails with ENOSYS, openat(2) with O_TMPFILE with EOPNOTSUPP, and
 * renameat2(2) with flags with EINVAL, as on a file system that does not support them. */
static bool install_filter(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 4),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_TMPFILE & ~O_DIRECTORY, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_renameat2, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[4])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static int walk_setup(void **state)
{
	struct fixture *f = fixture_new(0);
	fixture_dir(f);
	f->no_move_if_absent = true;
	*state = f;
	return 0;
}

static void test_filter_works(void **state)
{
	struct open_how how = {.flags = O_PATH};
	assert_int_equal(syscall(SYS_openat2, AT_FDCWD, ".", &how, sizeof(how)), -1);
	assert_int_equal(errno, ENOSYS);
	assert_int_equal(openat(AT_FDCWD, ".", O_TMPFILE | O_RDWR, 0600), -1);
	assert_int_equal(errno, EOPNOTSUPP);
	assert_int_equal(renameat2(AT_FDCWD, "a", AT_FDCWD, "b", RENAME_NOREPLACE), -1);
	assert_int_equal(errno, EINVAL);
}

/* Without RENAME_NOREPLACE the new object gets a second name, and its temporary name is removed. */
static void test_conditional_put_leaves_no_temporary_file(void **state)
{
	struct fixture *f = *state;
	const struct store_cond absent = {.if_none_match = "*"};
	struct stat st;
	assert_int_equal(call_put(f->s, "x", "1", 1, &absent, NULL, NULL), 0);
	assert_int_equal(stat(path_of(f, "x"), &st), 0);
	assert_int_equal(st.st_nlink, 1);
	assert_int_equal(call_put(f->s, "x", "2", 1, &absent, NULL, NULL), -EEXIST);
	assert_object(f->s, "x", "1");
}

static void test_no_link_is_followed(void **state)
{
	struct fixture *f = *state;
	char path[128];
	snprintf(path, sizeof(path), "%s/secret", f->dir);
	write_file(path, "secret");
	put_text(f->s, "d/x", "1");
	assert_int_equal(symlink("..", path_of(f, "up")), 0);
	assert_int_equal(symlink("../secret", path_of(f, "out")), 0);
	assert_int_equal(symlink("d/x", path_of(f, "in")), 0);
	assert_int_equal(symlink("d", path_of(f, "e")), 0);
	static const struct {
		const char *key;
		int code;
	} cases[] = {{"up/secret", -EACCES}, {"e/x", -EACCES},	  {"out", -EACCES},
		     {"in", -EACCES},	     {"d/none", -ENOENT}, {"none/x", -ENOENT}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_code(f->s, cases[i].key, cases[i].code);
		assert_int_equal(call_head(f->s, cases[i].key, NULL, NULL), cases[i].code);
	}
	assert_int_equal(call_put(f->s, "up/new", "x", 1, NULL, NULL, NULL), -ENOTDIR);
	struct store_page page;
	assert_listing(f->s, "", true, "d/");
	assert_listing(f->s, "d/", false, "d/x");
	assert_int_equal(call_list_how(f->s, "", 0, 10, &page, NULL), -EACCES);
	assert_int_equal(call_list_how(f->s, "up/", CALL_DELIMIT, 10, &page, NULL), -EACCES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CONTRACT_TEST(test_filter_works, walk_setup),
		CONTRACT_TESTS(walk_setup),
		CONTRACT_TEST(test_conditional_put_leaves_no_temporary_file, walk_setup),
		CONTRACT_TEST(test_no_link_is_followed, walk_setup),
	};
	if (!install_filter()) {
		fprintf(stderr, "skipped: seccomp is not available\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
