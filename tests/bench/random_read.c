/* SPDX-License-Identifier: Apache-2.0 */
/*
 * random_read FILE THREADS: reads every page of a file once, in random order, 4 KiB at a time.
 * Prints reads per second. It disables read-ahead and reads no page twice. So if the page cache of
 * the kernel holds no pages of the file at the start, each read is a request to the file system.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, THREADS_MAX = 64 };

struct part {
	const char *path;
	const uint32_t *pages;
	size_t n;
	int code;
};

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void *run(void *arg)
{
	struct part *part = arg;
	const int fd = open(part->path, O_RDONLY | O_CLOEXEC);
	char page[PAGE];
	if (fd < 0 || posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM))
		part->code = EIO;
	for (size_t i = 0; !part->code && i < part->n; i++)
		if (pread(fd, page, PAGE, (off_t)part->pages[i] * PAGE) != PAGE)
			part->code = EIO;
	if (fd >= 0)
		close(fd);
	return NULL;
}

/* The numbers of all whole pages, shuffled (Fisher and Yates) with a fixed seed. */
static uint32_t *shuffled(size_t n)
{
	uint32_t *pages = malloc(n * sizeof(*pages));
	struct drand48_data random;
	if (!pages)
		return NULL;
	srand48_r(1, &random);
	for (size_t i = 0; i < n; i++) {
		double x;
		drand48_r(&random, &x);
		size_t j = (size_t)(x * (double)(i + 1));
		pages[i] = pages[j];
		pages[j] = (uint32_t)i;
	}
	return pages;
}

int main(int argc, char **argv)
{
	struct part parts[THREADS_MAX];
	pthread_t threads[THREADS_MAX];
	struct stat st;
	size_t n;
	int code = 0;
	if (argc != 3 || (n = strtoul(argv[2], NULL, 10)) == 0 || n > THREADS_MAX) {
		fprintf(stderr, "usage: random_read FILE THREADS\n");
		return 2;
	}
	if (stat(argv[1], &st) || st.st_size < PAGE) {
		perror(argv[1]);
		return 1;
	}
	const size_t pages = (size_t)(st.st_size / PAGE), each = pages / n;
	uint32_t *order = shuffled(pages);
	if (!order)
		return 1;
	const double start = now();
	for (size_t i = 0; i < n; i++) {
		parts[i] = (struct part){.path = argv[1], .pages = order + i * each, .n = each};
		if (pthread_create(&threads[i], NULL, run, &parts[i]))
			return 1;
	}
	for (size_t i = 0; i < n; i++) {
		pthread_join(threads[i], NULL);
		code |= parts[i].code;
	}
	printf("%.0f\n", (double)(each * n) / (now() - start));
	free(order);
	return code != 0;
}
