/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a draft costs: time and memory for SIZE bytes that are written in order, and memory for
 * writes of 4 KiB anywhere in a file of SIZE bytes, after each eighth of them.
 *
 *   overlay_memory DIRECTORY order|random SIZE_IN_MIB [BUDGET_IN_MIB]
 *
 * DIRECTORY is the journal, on the disk that is measured. It must be empty or missing; what is left
 * in it afterwards can be deleted.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/budget.h>
#include <base/env.h>
#include <overlay/draft.h>

enum { IN_ORDER = 128 << 10, RANDOM = 4096 };

static double seconds(const struct env *env)
{
	return (double)env->now(env) / 1e9;
}

static void report(const struct env *env, struct draft *d, const char *what, double began)
{
	struct draft_stat stat;
	draft_get_stat(d, &stat);
	printf("%-24s %8.2f s  %10" PRIu64 " MiB in the spool  %10" PRIu64 " KiB of memory\n", what,
	       seconds(env) - began, stat.spooled >> 20, stat.memory >> 10);
}

static int write_in_order(const struct env *env, struct draft *d, uint64_t size, struct err *err)
{
	static char buf[IN_ORDER];
	const double began = seconds(env);
	int rc = 0;
	memset(buf, 'x', sizeof(buf));
	for (uint64_t at = 0; rc == 0 && at < size; at += sizeof(buf))
		rc = draft_write(d, at, buf, sizeof(buf), err);
	report(env, d, "in order", began);
	return rc;
}

/* Each block of the file once, in an order that a multiplication mixes. */
static int write_anywhere(const struct env *env, struct draft *d, uint64_t size, struct err *err)
{
	static char buf[RANDOM];
	const uint64_t n = size / sizeof(buf), step = 2654435761; /* a prime */
	const double began = seconds(env);
	char what[64];
	memset(buf, 'x', sizeof(buf));
	for (uint64_t i = 0; i < n; i++) {
		int rc = draft_write(d, i * step % n * sizeof(buf), buf, sizeof(buf), err);
		if (rc)
			return rc;
		if ((i + 1) % (n / 8) == 0) {
			snprintf(what, sizeof(what), "%" PRIu64 " eighths, anywhere",
				 (i + 1) / (n / 8));
			report(env, d, what, began);
		}
	}
	return 0;
}

static int run(const struct env *env, const char *path, bool in_order, uint64_t size,
	       struct err *err)
{
	const struct journal_settings settings = {.path = path, .bucket = "bench"};
	const struct draft_about about = {
		.kind = DRAFT_NEW, .path = "a", .name = "/a", .version = ""};
	struct journal *j;
	struct draft *d;
	int rc = journal_open(&settings, env, &j, err);
	if (rc)
		return rc;
	rc = draft_create(j, &about, NULL, &d, err);
	if (rc == 0) {
		rc = in_order ? write_in_order(env, d, size, err)
			      : write_anywhere(env, d, size, err);
		draft_drop(d, NULL);
	}
	journal_close(j);
	return rc;
}

int main(int argc, char **argv)
{
	struct err err = ERR_INIT;
	if (argc < 4) {
		fprintf(stderr, "usage: overlay_memory DIRECTORY order|random SIZE_IN_MIB "
				"[BUDGET_IN_MIB]\n");
		return 2;
	}
	const uint64_t budget = argc > 4 ? strtoull(argv[4], NULL, 10) : 4096;
	struct env env = env_real(NULL, NULL);
	env.budget = budget_new(&(struct budget_limits){.bytes = budget << 20, .option = "cache"});
	const int rc = run(&env, argv[1], strcmp(argv[2], "order") == 0,
			   strtoull(argv[3], NULL, 10) << 20, &err);
	if (rc)
		fprintf(stderr, "overlay_memory: %s: %s\n", strerror(-rc), err.msg);
	budget_free(env.budget);
	return rc != 0;
}
