/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deflate_speed BYTES: inflates zlib streams with zlib and with libdeflate, and deflates them again
 * at levels 1 to 7. The names of the files are the lines of standard input; each stream inflates to
 * BYTES bytes. It prints the rates in MB of inflated bytes per processor second, and the sizes.
 */
#include <libdeflate.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zlib.h>

enum { STREAMS_MAX = 4096, LAST_LEVEL = 7 /* zlib takes seconds for a MiB at level 9 */ };

struct stream {
	uint8_t *data, *plain;
	size_t n;
};

static _Noreturn void die(const char *why)
{
	fprintf(stderr, "deflate_speed: %s\n", why);
	exit(1);
}

static void *allocate(size_t n)
{
	void *p = malloc(n);
	if (!p)
		die("out of memory");
	return p;
}

static double cpu_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void read_stream(const char *path, struct stream *s, size_t chunk)
{
	FILE *f = fopen(path, "rb");
	s->data = allocate(2 * chunk);
	s->plain = allocate(chunk);
	s->n = f ? fread(s->data, 1, 2 * chunk, f) : 0;
	if (s->n == 0)
		die("cannot read a file");
	fclose(f);
}

static void inflate_one(const struct stream *s, size_t chunk, bool fast)
{
	size_t n = 0;
	uLongf length = chunk;
	struct libdeflate_decompressor *d;
	if (!fast) {
		if (uncompress(s->plain, &length, s->data, s->n) != Z_OK || length != chunk)
			die("a file is no stream of this size");
		return;
	}
	d = libdeflate_alloc_decompressor();
	if (!d || libdeflate_zlib_decompress(d, s->data, s->n, s->plain, chunk, &n) || n != chunk)
		die("libdeflate does not inflate a file");
	libdeflate_free_decompressor(d);
}

static size_t deflate_one(const struct stream *s, size_t chunk, int level, bool fast, uint8_t *out,
			  size_t room)
{
	uLongf length = room;
	if (fast) {
		struct libdeflate_compressor *c = libdeflate_alloc_compressor(level);
		if (!c)
			die("out of memory");
		length = libdeflate_zlib_compress(c, s->plain, chunk, out, room);
		libdeflate_free_compressor(c);
	} else if (compress2(out, &length, s->plain, chunk, level) != Z_OK) {
		die("zlib cannot deflate");
	}
	return length;
}

int main(int argc, char **argv)
{
	static struct stream streams[STREAMS_MAX];
	static char line[4096];
	const size_t chunk = argc == 2 ? strtoul(argv[1], NULL, 10) : 0;
	size_t n = 0;
	if (chunk == 0)
		die("usage: deflate_speed BYTES <names");
	while (n < STREAMS_MAX && fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = 0;
		read_stream(line, &streams[n++], chunk);
	}
	const double mb = (double)n * (double)chunk / 1e6;
	for (int fast = 0; fast < 2; fast++) {
		const double start = cpu_seconds();
		for (size_t i = 0; i < n; i++)
			inflate_one(&streams[i], chunk, fast);
		printf("inflate, %s: %.0f MB/s\n", fast ? "libdeflate" : "zlib",
		       mb / (cpu_seconds() - start));
	}
	const size_t room = compressBound(chunk) + libdeflate_zlib_compress_bound(NULL, chunk);
	uint8_t *out = allocate(room);
	for (int level = 1; level <= LAST_LEVEL; level++) {
		for (int fast = 0; fast < 2; fast++) {
			const double start = cpu_seconds();
			size_t total = 0;
			for (size_t i = 0; i < n; i++)
				total += deflate_one(&streams[i], chunk, level, fast, out, room);
			printf("level %d, %s: %.0f MB/s, %.3f of the size\n", level,
			       fast ? "libdeflate" : "zlib", mb / (cpu_seconds() - start),
			       (double)total / 1e6 / mb);
		}
	}
	return 0;
}
