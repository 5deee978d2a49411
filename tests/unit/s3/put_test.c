/* SPDX-License-Identifier: Apache-2.0 */
/* What a put fails with, whatever the server calls it. */
#include "store_fixture.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <s3/s3.h>

/* It says that the bucket is empty, and answers to puts with one status. */
struct server {
	int fd;
	unsigned int status;
	char url[64];
	pthread_t thread;
};

static void answer(int fd, unsigned int status, const char *body)
{
	char text[512];
	const int n = snprintf(text, sizeof(text),
			       "HTTP/1.1 %u Whatever\r\nContent-Length: %zu\r\n"
			       "Connection: close\r\n\r\n%s",
			       status, strlen(body), body);
	assert_int_equal(send(fd, text, (size_t)n, MSG_NOSIGNAL), n);
}

static void *serve(void *arg)
{
	static const char nothing[] = "<ListBucketResult><IsTruncated>false</IsTruncated>"
				      "</ListBucketResult>";
	const struct server *s = arg;
	int fd;
	while ((fd = accept(s->fd, NULL, NULL)) >= 0) {
		char head[4096];
		const ssize_t n = recv(fd, head, sizeof(head), 0);
		if (n > 4 && memcmp(head, "GET ", 4) == 0)
			answer(fd, 200, nothing);
		else if (n > 0)
			answer(fd, s->status, "");
		/* The body of the request, so that what we said is not lost. */
		shutdown(fd, SHUT_WR);
		while (recv(fd, head, sizeof(head), 0) > 0)
			;
		close(fd);
	}
	return NULL;
}

static void start(struct server *s, unsigned int status)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(at);
	s->status = status;
	s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(s->fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(s->fd, 8), 0);
	assert_int_equal(getsockname(s->fd, (struct sockaddr *)&at, &n), 0);
	snprintf(s->url, sizeof(s->url), "http://127.0.0.1:%d", ntohs(at.sin_port));
	assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void stop(struct server *s)
{
	shutdown(s->fd, SHUT_RDWR);
	pthread_join(s->thread, NULL);
	close(s->fd);
}

/* No such bucket, and no such operation: neither says anything of the object. */
static void test_failures(void **state)
{
	static const struct {
		unsigned int status;
		int code;
	} cases[] = {{404, -EIO}, {501, -EIO}, {403, -EACCES}, {412, -ESTALE}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture *f = fixture_new(1);
		struct server server;
		struct err err = ERR_INIT;
		start(&server, cases[i].status);
		const struct store_s3_options opt = {
			.bucket = "bucket", .endpoint = server.url, .no_sign_request = true};
		f->s = store_s3_new(&f->env, &opt, &err);
		if (!f->s)
			fail_msg("%s", err.msg);
		const int code = call_put(f->s, "x", "12", 2, NULL, NULL, &err);
		if (code != cases[i].code || err.code != code)
			fail_msg("%u: %d %s", cases[i].status, code, err.msg);
		fixture_free(f);
		stop(&server);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_failures),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
