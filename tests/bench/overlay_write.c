/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What writes to a draft cost: seconds and CPU seconds.
 *
 *   overlay_write DIRECTORY
 *
 * DIRECTORY is the journal, on the disk that is measured. It must be empty or missing; what is left
 * in it afterwards can be deleted.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <base/budget.h>
#include <base/env.h>
#include <base/mem.h>
#include <overlay/draft.h>

enum { BUFFER = 1 << 20, MIB = 1 << 20 };

struct bench {
	const struct env *env;
	struct journal *j;
	struct draft *d;
	uint8_t buf[BUFFER];
	uint64_t random;
};

static double cpu_seconds(void)
{
	struct rusage use;
	getrusage(RUSAGE_SELF, &use);
	return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
	       (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6;
}

static uint32_t next_random(struct bench *b)
{
	b->random = b->random * 6364136223846793005 + 1442695040888963407;
	return (uint32_t)(b->random >> 33);
}

static int write_in_order(struct bench *b, uint64_t size, size_t step, struct err *err)
{
	int rc = 0;
	for (uint64_t at = 0; rc == 0 && at < size; at += step)
		rc = draft_write(b->d, at, b->buf, step, err);
	return rc;
}

/* Writes of 4 bytes to 4 KiB anywhere. */
static int write_anywhere(struct bench *b, uint64_t size, size_t n, struct err *err)
{
	int rc = 0;
	for (size_t i = 0; rc == 0 && i < n; i++) {
		const uint64_t at = next_random(b) % (size - 4096);
		rc = draft_write(b->d, at, b->buf + i % 4096, 4 + next_random(b) % 4093, err);
	}
	return rc;
}

static const struct {
	const char *name;
	uint64_t first; /* bytes that are written in order before the measurement */
	uint64_t size;
	size_t step; /* 0: anywhere */
	size_t n;
} cases[] = {
	{"1 GiB in order, by 1 MiB", 0, (uint64_t)1 << 30, 1 << 20, 0},
	{"1 GiB in order, by 128 KiB", 0, (uint64_t)1 << 30, 128 << 10, 0},
	{"64 MiB in order, by 4 KiB", 0, 64 * MIB, 4 << 10, 0},
	{"100,000 anywhere in 64 MiB", 0, 64 * MIB, 0, 100000},
	{"100,000 over 64 MiB", 64 * MIB, 64 * MIB, 0, 100000},
	{"1 GiB over the same, by 1 MiB", (uint64_t)1 << 30, (uint64_t)1 << 30, 1 << 20, 0},
};

static int run_case(struct bench *b, size_t i, struct err *err)
{
	const struct draft_about about = {
		.kind = DRAFT_NEW, .path = "a", .name = "/a", .version = ""};
	int rc = draft_create(b->j, &about, NULL, &b->d, err);
	if (rc)
		return rc;
	rc = write_in_order(b, cases[i].first, BUFFER, err);
	const int64_t began = b->env->now(b->env);
	const double cpu = cpu_seconds();
	if (rc == 0)
		rc = cases[i].step ? write_in_order(b, cases[i].size, cases[i].step, err)
				   : write_anywhere(b, cases[i].size, cases[i].n, err);
	printf("%-32s %7.3f s  %7.3f s of CPU\n", cases[i].name,
	       (double)(b->env->now(b->env) - began) / 1e9, cpu_seconds() - cpu);
	draft_drop(b->d, NULL);
	return rc;
}

static int run(const struct env *env, const char *path, struct err *err)
{
	static struct bench b;
	const struct journal_settings settings = {.path = path, .bucket = "bench"};
	b.env = env;
	for (size_t i = 0; i < BUFFER; i++)
		b.buf[i] = (uint8_t)next_random(&b);
	int rc = journal_open(&settings, env, &b.j, err);
	if (rc)
		return rc;
	for (size_t i = 0; rc == 0 && i < sizeof(cases) / sizeof(cases[0]); i++)
		rc = run_case(&b, i, err);
	journal_close(b.j);
	return rc;
}

int main(int argc, char **argv)
{
	struct err err = ERR_INIT;
	if (argc != 2) {
		fprintf(stderr, "usage: overlay_write DIRECTORY\n");
		return 2;
	}
	struct env env = env_real(NULL, NULL);
	env.budget = budget_new(
		&(struct budget_limits){.bytes = (uint64_t)4 << 30, .option = "cache_size"});
	const int rc = run(&env, argv[1], &err);
	if (rc)
		fprintf(stderr, "overlay_write: %s: %s\n", strerror(-rc), err.msg);
	budget_free(env.budget);
	return rc != 0;
}
