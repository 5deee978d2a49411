/* SPDX-License-Identifier: Apache-2.0 */
/*
 * small_get BUCKET KEY N: measures the cost of a small get in the client. Gets an object N times in
 * sequence through the same stack of stores as the engine (count, retry, s3), and prints the
 * processor time, allocations and context switches for each get. Endpoint and credentials come from
 * the environment. Run under `strace -f -c -e futex`, the number of futex calls divided by N shows
 * how often a get passes from thread to thread.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <base/env.h>
#include <s3/s3.h>
#include <store/store.h>

static atomic_ulong allocations;

/* Counts for the whole process, including libraries. */
#define COUNTED(type, name, params, args)                                                          \
	type name params;                                                                          \
	type name params                                                                           \
	{                                                                                          \
		static type(*real) params;                                                         \
		if (!real)                                                                         \
			*(void **)&real = dlsym(RTLD_NEXT, #name);                                 \
		atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed);                  \
		return real args;                                                                  \
	}
COUNTED(void *, malloc, (size_t n), (n))
COUNTED(void *, realloc, (void *p, size_t n), (p, n))

static double cpu_us(const struct rusage *u)
{
	return (double)(u->ru_utime.tv_sec + u->ru_stime.tv_sec) * 1e6 +
	       (double)(u->ru_utime.tv_usec + u->ru_stime.tv_usec);
}

static int get(struct store *s, const char *key)
{
	auto_request struct store_request *req = store_request_new(s, STORE_GET);
	struct err err = ERR_INIT;
	store_request_key(req, key);
	store_run(s, req);
	if (req->answer.state == STORE_PRESENT)
		return 0;
	store_failure(&req->answer, &err);
	fprintf(stderr, "%s: %s\n", key, err.msg[0] ? err.msg : "absent");
	return 1;
}

int main(int argc, char **argv)
{
	if (argc != 4) {
		fprintf(stderr, "usage: small_get BUCKET KEY N\n");
		return 2;
	}
	struct err err = ERR_INIT;
	const struct env env = env_real(NULL, pool_new(16));
	const struct store_s3_options opt = {.bucket = argv[1]};
	const long n = strtol(argv[3], NULL, 10);
	struct store *s = store_s3_new(&env, &opt, &err);
	if (s)
		s = store_count_new(store_retry_new(s, NULL, &err), &err);
	if (!s) {
		fprintf(stderr, "%s\n", err.msg);
		return 1;
	}
	struct rusage before, after;
	int rc = get(s, argv[2]);
	const unsigned long allocated = atomic_load(&allocations);
	getrusage(RUSAGE_SELF, &before);
	for (long i = 0; i < n && !rc; i++)
		rc = get(s, argv[2]);
	getrusage(RUSAGE_SELF, &after);
	const double each = (double)(n > 0 ? n : 1);
	printf("%.1f us of processor time, %.1f allocations, %.1f context switches for each get\n",
	       (cpu_us(&after) - cpu_us(&before)) / each,
	       (double)(atomic_load(&allocations) - allocated) / each,
	       (double)(after.ru_nvcsw - before.ru_nvcsw) / each);
	store_free(s);
	pool_free(env.pool);
	return rc;
}
