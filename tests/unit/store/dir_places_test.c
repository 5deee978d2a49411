/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory store in unusual places: a bucket on overlayfs, and a process without /proc. The
 * contract is tested again in both. The process has a mount namespace of its own, in which an
 * overlay lies over /tmp.
 */
#include "store_contract.h"

#include <sched.h>
#include <sys/mount.h>

#define LOWER "low/d" /* a directory of the lower layer with two objects */

static bool is_user; /* the process is root of a user namespace only */
static char base[] = "/tmp/store_overlay.XXXXXX";

static const char *below(const char *name)
{
	static char path[4][64];
	static unsigned int next;
	char *text = path[next++ % 4];
	snprintf(text, sizeof(path[0]), "%s/%s", base, name);
	return text;
}

static bool write_map(const char *path, const char *text)
{
	const int fd = open(path, O_WRONLY | O_CLOEXEC);
	const bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	if (fd >= 0)
		close(fd);
	return ok;
}

/* Without the right to mount, the process becomes root of a user namespace. */
static bool enter_namespace(void)
{
	const unsigned int uid = geteuid(), gid = getegid();
	char map[64];
	is_user = unshare(CLONE_NEWNS) != 0;
	if (is_user) {
		if (unshare(CLONE_NEWUSER | CLONE_NEWNS) ||
		    !write_map("/proc/self/setgroups", "deny"))
			return false;
		snprintf(map, sizeof(map), "0 %u 1", uid);
		if (!write_map("/proc/self/uid_map", map))
			return false;
		snprintf(map, sizeof(map), "0 %u 1", gid);
		if (!write_map("/proc/self/gid_map", map))
			return false;
	}
	return mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

static bool make_overlay(void)
{
	static const char *const dirs[] = {"lower", "upper", "work", "lower/low", "lower/" LOWER};
	char options[256];
	if (!mkdtemp(base))
		return false;
	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
		if (mkdir(below(dirs[i]), 0777))
			return false;
	write_file(below("lower/" LOWER "/x"), "lower");
	write_file(below("lower/" LOWER "/y"), "lower");
	snprintf(options, sizeof(options), "lowerdir=%s,upperdir=%s,workdir=%s%s", below("lower"),
		 below("upper"), below("work"), is_user ? ",userxattr" : "");
	return mount("overlay", "/tmp", "overlay", 0, options) == 0;
}

static int overlay_setup(void **state)
{
	struct fixture *f = fixture_new(0);
	fixture_dir(f);
	*state = f;
	return 0;
}

/* Only the constructor looks for /proc, and the sanitizers need it later. */
static int no_proc_setup(void **state)
{
	assert_int_equal(mount("none", "/proc", "tmpfs", 0, NULL), 0);
	const int rc = overlay_setup(state);
	assert_int_equal(umount2("/proc", MNT_DETACH), 0);
	return rc;
}

/* Objects that the lower layer has. */
static void test_lower_layer(void **state)
{
	struct fixture *f = *state;
	const struct store_cond absent = {.if_none_match = "*"};
	struct err err = ERR_INIT;
	struct store_meta meta, now;
	struct stat st;
	struct store *s = store_dir_new(&f->env, "/tmp/low", &err);
	assert_non_null(s);
	assert_object(s, "d/x", "lower");
	assert_int_equal(call_head(s, "d/x", &meta, NULL), 0);
	assert_int_equal(call_put(s, "d/x", "1", 1, &absent, NULL, NULL), -EEXIST);
	const struct store_cond same = {.if_match = meta.etag};
	assert_int_equal(call_put(s, "d/x", "upper", 5, &same, &now, NULL), 0);
	assert_int_equal(call_put(s, "d/x", "again", 5, &same, NULL, NULL), -ESTALE);
	assert_object(s, "d/x", "upper");
	assert_int_equal(call_head(s, "d/x", &meta, NULL), 0);
	assert_string_equal(meta.etag, now.etag);
	assert_int_equal(call_delete(s, "d/y", NULL, NULL), 0);
	put_text(s, "d/y", "new");
	assert_int_equal(store_move(s, "d/x", "", "e/x", NULL, NULL, NULL), 0);
	assert_listing(s, "", false, "d/y e/x");
	assert_int_equal(call_delete(s, "d/y", NULL, NULL), 0);
	assert_int_equal(stat("/tmp/low/d", &st), -1); /* an empty directory goes */
	put_text(s, "d/z", "new");
	assert_listing(s, "", false, "d/z e/x");
	store_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CONTRACT_TESTS(overlay_setup),
		CONTRACT_TEST(test_lower_layer, overlay_setup),
		CONTRACT_TESTS(no_proc_setup),
	};
	const bool ready = enter_namespace() && make_overlay();
	const int failed = ready ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
	if (!ready)
		fprintf(stderr, "skipped: no overlay can be mounted: %s\n", strerror(errno));
	if (ready)
		umount2("/tmp", MNT_DETACH);
	nftw(base, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return failed;
}
