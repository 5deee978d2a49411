/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chunk_decoder zstd|blosc THREADS BYTES: decodes files, whose names are the lines of standard
 * input, with several threads and nothing else. It is the floor for reading the same chunks through
 * a mount. BYTES is the size of a decoded chunk. It prints the seconds, the processor seconds and
 * the decoded bytes.
 */
#include <blosc.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zstd.h>

enum { FILES_MAX = 1 << 20, THREADS_MAX = 64 };

static struct {
	char **files;
	size_t n, chunk; /* bytes of a decoded chunk */
	bool is_zstd;
	atomic_size_t next, decoded;
} work;

static _Noreturn void die(const char *why, const char *what)
{
	fprintf(stderr, "chunk_decoder: %s %s\n", why, what);
	exit(1);
}

static double seconds_of(const struct timeval *t)
{
	return (double)t->tv_sec + (double)t->tv_usec / 1e6;
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Reads a file into *buffer, which grows. Returns its size. */
static size_t read_file(const char *path, char **buffer, size_t *room)
{
	struct stat st;
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st))
		die("cannot open", path);
	const size_t n = (size_t)st.st_size;
	if (n > *room) {
		free(*buffer);
		*room = n;
		*buffer = malloc(n);
	}
	if (!*buffer || read(fd, *buffer, n) != st.st_size)
		die("cannot read", path);
	close(fd);
	return n;
}

static void *decode_all(void *arg)
{
	ZSTD_DCtx *zstd = ZSTD_createDCtx();
	char *stored = NULL, *out = malloc(work.chunk);
	size_t room = 0, i;
	if (!zstd || !out)
		die("out of", "memory");
	while ((i = atomic_fetch_add(&work.next, 1)) < work.n) {
		const size_t n = read_file(work.files[i], &stored, &room);
		const size_t got =
			work.is_zstd ? ZSTD_decompressDCtx(zstd, out, work.chunk, stored, n)
				     : (size_t)blosc_decompress_ctx(stored, out, work.chunk, 1);
		if (got != work.chunk)
			die("cannot decode", work.files[i]);
		atomic_fetch_add(&work.decoded, got);
	}
	ZSTD_freeDCtx(zstd);
	free(stored);
	free(out);
	return arg;
}

static void read_names(void)
{
	char line[4096];
	work.files = calloc(FILES_MAX, sizeof(*work.files));
	while (work.files && work.n < FILES_MAX && fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		work.files[work.n++] = strdup(line);
	}
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS_MAX];
	struct rusage used;
	const int n = argc == 4 ? atoi(argv[2]) : 0;
	if (n < 1 || n > THREADS_MAX)
		die("usage:", "chunk_decoder zstd|blosc THREADS BYTES <FILES");
	work.is_zstd = strcmp(argv[1], "zstd") == 0;
	work.chunk = strtoull(argv[3], NULL, 10);
	read_names();
	const double start = now();
	for (int i = 0; i < n; i++)
		if (pthread_create(&threads[i], NULL, decode_all, NULL))
			die("cannot start", "a thread");
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	const double took = now() - start;
	getrusage(RUSAGE_SELF, &used);
	printf("%.4f %.4f %zu\n", took, seconds_of(&used.ru_utime) + seconds_of(&used.ru_stime),
	       (size_t)work.decoded);
	return 0;
}
