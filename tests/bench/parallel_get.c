/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parallel_get PORT CONNECTIONS [FILE [sign]] < TARGETS: fetches objects as fast as possible, for
 * comparison with programs that fetch the same objects. Each line of standard input is a path and
 * query, signed in advance; "FIRST-LAST TARGET" fetches this range of bytes. The program gets all
 * of them from 127.0.0.1:PORT over the given number of persistent connections, with one request at
 * a time on each, and discards the bytes. It prints seconds (including the time to connect),
 * requests and bytes.
 *
 * With FILE it puts objects instead. Each line of standard input then is "OFFSET SIZE TARGET", and
 * the body is that part of the file, of at most BODY_MAX bytes. With `sign`, the targets are paths,
 * and each request is signed with the SHA-256 of its body, as S3 clients do over plain HTTP. The
 * keys are those of the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY). Otherwise the body
 * is not signed.
 *
 * Each thread has one connection and takes the next target from a common list.
 */
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <aws/sigv4.h>

#include "http_peer.h"

enum { CONNECTIONS_MAX = 512, BUFFER = 256 << 10, BODY_MAX = 16 << 20 };

struct work {
	unsigned int port;
	int file; /* -1: objects are fetched */
	struct sigv4_signer *signer;
	struct sigv4_key key; /* access_key NULL: requests are signed already */
	char **targets;
	size_t n;
	atomic_size_t next;
	atomic_ullong bytes;
	atomic_bool failed;
};

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Receives the answer and discards its body. Returns the size of the body or -1. */
static int64_t receive(struct http_peer *p, char *buffer)
{
	ssize_t n = http_head(p);
	const int status = n > 0 ? http_status(p->buf + p->at, (size_t)n) : 0;
	if (status != 200 && status != 206)
		return -1;
	struct http_framing body = http_framing(p->buf + p->at, (size_t)n);
	http_take(p, (size_t)n);
	if (body.kind != HTTP_BODY_SIZED || p->have > body.length)
		return -1;
	uint64_t left = body.length - p->have;
	http_take(p, p->have);
	while (left > 0) {
		ssize_t got = recv(p->fd, buffer, left < BUFFER ? left : BUFFER, 0);
		if (got <= 0)
			return -1;
		left -= (uint64_t)got;
	}
	return (int64_t)body.length;
}

/* Appends the header fields of a signed request. */
static int sign(const struct work *w, const char *path, const void *body, size_t size,
		struct str *out)
{
	char host[32], date[SIGV4_DATE_SIZE], hash[SHA256_HEX];
	const time_t when = time(NULL);
	const struct sigv4_pair header[] = {
		{"host", host}, {"x-amz-content-sha256", hash}, {"x-amz-date", date}};
	const struct sigv4_request request = {
		.method = "PUT", .path = path, .header = header, .n_header = 3, .payload = hash};
	snprintf(host, sizeof(host), "127.0.0.1:%u", w->port);
	sigv4_date(when, date);
	if (digest_sha256(&(struct piece){body, size}, 1, hash))
		return -1;
	str_addf(out, "x-amz-content-sha256: %s\r\nx-amz-date: %s\r\nAuthorization: ", hash, date);
	if (sigv4_authorization(w->signer, &request, &w->key, when, out))
		return -1;
	str_add(out, "\r\n");
	return str_ok(out) ? 0 : -1;
}

static int put(struct work *w, struct http_peer *p, const char *line, char *buffer)
{
	char *end;
	auto_str struct str head = {0};
	const uint64_t offset = strtoull(line, &end, 10), size = strtoull(end, &end, 10);
	if (size > BODY_MAX || pread(w->file, buffer, size, (off_t)offset) != (ssize_t)size)
		return -1;
	str_addf(&head,
		 "PUT %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n"
		 "Content-Length: %llu\r\n",
		 end + 1, w->port, (unsigned long long)size);
	if (w->key.access_key && sign(w, end + 1, buffer, size, &head))
		return -1;
	str_add(&head, "\r\n");
	if (!str_ok(&head) || http_write(p->fd, head.b.data, head.b.len) ||
	    http_write(p->fd, buffer, size))
		return -1;
	if (receive(p, buffer) < 0)
		return -1;
	atomic_fetch_add(&w->bytes, size);
	return 0;
}

static int get(struct work *w, struct http_peer *p, const char *line, char *buffer)
{
	char text[8192], range[64] = "";
	const int range_n = (int)strcspn(line, " /");
	const bool has_range = line[range_n] == ' ';
	if (has_range)
		snprintf(range, sizeof(range), "Range: bytes=%.*s\r\n", range_n, line);
	const int text_n =
		snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n%s\r\n",
			 has_range ? line + range_n + 1 : line, w->port, range);
	if (text_n >= (int)sizeof(text) || http_write(p->fd, text, (size_t)text_n))
		return -1;
	const int64_t n = receive(p, buffer);
	if (n < 0)
		return -1;
	atomic_fetch_add(&w->bytes, (uint64_t)n);
	return 0;
}

static void *run(void *arg)
{
	struct work *w = arg;
	struct http_peer *p = calloc(1, sizeof(*p));
	char *buffer = malloc(w->file < 0 ? BUFFER : BODY_MAX);
	bool ok = p && buffer && (p->fd = http_connect(w->port)) >= 0;
	while (ok) {
		size_t i = atomic_fetch_add(&w->next, 1);
		if (i >= w->n)
			break;
		ok = (w->file < 0 ? get : put)(w, p, w->targets[i], buffer) == 0;
	}
	if (!ok)
		atomic_store(&w->failed, true);
	if (p && p->fd >= 0)
		close(p->fd);
	free(buffer);
	free(p);
	return NULL;
}

/* Reads the lines of standard input. They are never freed. */
static int read_targets(struct work *w)
{
	char *line = NULL;
	size_t size = 0, room = 0;
	ssize_t n;
	while ((n = getline(&line, &size, stdin)) > 0) {
		if (line[n - 1] == '\n')
			line[n - 1] = '\0';
		if (w->n == room) {
			room = room ? room * 2 : 1024;
			w->targets = realloc(w->targets, room * sizeof(*w->targets));
			if (!w->targets)
				return -1;
		}
		w->targets[w->n++] = line;
		line = NULL;
		size = 0;
	}
	free(line);
	return 0;
}

int main(int argc, char **argv)
{
	struct work w = {.file = -1};
	pthread_t threads[CONNECTIONS_MAX];
	size_t wanted, n = 0;
	if (argc < 3 || argc > 5 || (argc == 5 && strcmp(argv[4], "sign") != 0) ||
	    (wanted = strtoul(argv[2], NULL, 10)) == 0 || wanted > CONNECTIONS_MAX) {
		fprintf(stderr, "usage: parallel_get PORT CONNECTIONS [FILE [sign]] < TARGETS\n");
		return 2;
	}
	w.port = (unsigned int)strtoul(argv[1], NULL, 10);
	if (argc == 5)
		w.key = (struct sigv4_key){.access_key = getenv("AWS_ACCESS_KEY_ID"),
					   .secret_key = getenv("AWS_SECRET_ACCESS_KEY"),
					   .region = "us-east-1",
					   .service = "s3"};
	if (argc == 5 && (!w.key.access_key || !w.key.secret_key))
		return 2;
	if (argc == 5 && !(w.signer = sigv4_signer_new()))
		return 1;
	if (argc >= 4 && (w.file = open(argv[3], O_RDONLY)) < 0)
		return 1;
	if (read_targets(&w))
		return 1;
	const double start = now();
	while (n < wanted && pthread_create(&threads[n], NULL, run, &w) == 0)
		n++;
	for (size_t i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	sigv4_signer_free(w.signer);
	printf("%.6f %zu %llu\n", now() - start, w.n, atomic_load(&w.bytes));
	return n < wanted || atomic_load(&w.failed);
}
