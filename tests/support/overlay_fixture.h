/* SPDX-License-Identifier: Apache-2.0 */
/* A journal in a directory of its own, for tests of overlay/. */
#ifndef SUPPORT_OVERLAY_FIXTURE_H
#define SUPPORT_OVERLAY_FIXTURE_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <base/env.h>
#include <overlay/draft.h>

enum { BENEATH_SIZE = 300000 };

struct overlay_fixture {
	char path[64];
	struct env env;
	struct budget *budget;
	struct journal *j;
	uint8_t boot[JOURNAL_BOOT];
};

/* The byte that lies beneath at an offset. */
static inline uint8_t beneath_byte(uint64_t offset)
{
	return (uint8_t)(offset * 7 + offset / 251 + 1);
}

static inline int read_beneath(void *ctx, uint64_t offset, void *buf, size_t n, struct err *err)
{
	uint8_t *to = buf;
	assert_true(n > 0 && offset + n <= BENEATH_SIZE);
	for (size_t i = 0; i < n; i++)
		to[i] = beneath_byte(offset + i);
	return 0;
}

static const struct draft_beneath fixture_beneath = {.read = read_beneath};

static const struct draft_about about_new = {
	.kind = DRAFT_NEW, .path = "home/u/a", .name = "/home/u/a.h5", .version = ""};
static const struct draft_about about_change = {.kind = DRAFT_CHANGE,
						.path = "home/u/a",
						.name = "/home/u/a.h5",
						.version = "\"etag\"",
						.beneath = BENEATH_SIZE,
						.created_ns = 1234567890123456789};

/* Opens the journal, as a mount of the bucket "b" does. */
static inline void fixture_open(struct overlay_fixture *f, uint64_t spool_size)
{
	struct err err = ERR_INIT;
	const struct journal_settings settings = {
		.path = f->path, .bucket = "b", .spool_size = spool_size, .boot = f->boot};
	if (journal_open(&settings, &f->env, &f->j, &err))
		fail_msg("%s", err.msg);
}

/* In memory, if there is enough of it, because the tests sync often. */
static inline const char *fixture_parent(void)
{
	struct statvfs v;
	return statvfs("/dev/shm", &v) == 0 && access("/dev/shm", W_OK) == 0 &&
			       (uint64_t)v.f_bavail * v.f_frsize > (uint64_t)256 << 20
		       ? "/dev/shm"
		       : ".";
}

static inline void fixture_begin(struct overlay_fixture *f, uint64_t spool_size)
{
	*f = (struct overlay_fixture){.boot = "same boot"};
	snprintf(f->path, sizeof(f->path), "%s/overlay-test-XXXXXX", fixture_parent());
	assert_non_null(mkdtemp(f->path));
	f->budget = budget_new(&(struct budget_limits){
		.bytes = 64 << 20, .metadata_min = 64 << 20, .option = "cache_size"});
	f->env = env_real(NULL, NULL);
	f->env.budget = f->budget;
	fixture_open(f, spool_size);
}

/* Closes the journal and removes its directory. All room and memory has been given back. */
static inline void fixture_end(struct overlay_fixture *f)
{
	char command[128];
	struct budget_stats stats;
	struct journal_stats spool;
	journal_get_stats(f->j, &spool);
	assert_int_equal(spool.spool_used, spool.spool_left);
	budget_get_stats(f->budget, &stats);
	assert_int_equal(stats.used[BUDGET_DRAFTS], 0);
	journal_close(f->j);
	budget_free(f->budget);
	snprintf(command, sizeof(command), "rm -rf %s", f->path);
	assert_int_equal(system(command), 0);
}

static inline uint64_t room_used(struct overlay_fixture *f)
{
	struct journal_stats stats;
	journal_get_stats(f->j, &stats);
	return stats.spool_used - stats.spool_left;
}

static inline struct draft *make_draft(struct overlay_fixture *f, const struct draft_about *about)
{
	struct draft *d;
	struct err err = ERR_INIT;
	if (draft_create(f->j, about, &fixture_beneath, &d, &err))
		fail_msg("%s", err.msg);
	return d;
}

static inline uint64_t size_of(struct draft *d)
{
	struct draft_stat stat;
	draft_get_stat(d, &stat);
	return stat.size;
}

#endif
