/* SPDX-License-Identifier: Apache-2.0 */
/* The event loop and its table of sockets. */
#include "store_fixture.h"

#include "http/poll.h"

#include <arpa/inet.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>

enum { TURN_MS = 10, TURNS = 3000 };

struct scene {
	struct fixture *f;
	struct http_stats *meter;
	struct http_sockets sockets;
	struct http_poll poll;
	CURLM *multi;
	CURL *easy;
	int listener, peer;
	char url[64];
};

static int setup(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(at);
	s->f = fixture_new(0);
	s->meter = http_stats_new();
	s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(s->listener, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(s->listener, 1), 0);
	assert_int_equal(getsockname(s->listener, (struct sockaddr *)&at, &n), 0);
	snprintf(s->url, sizeof(s->url), "http://127.0.0.1:%d/", ntohs(at.sin_port));
	assert_int_equal(http_sockets_init(&s->sockets, &s->f->env, s->meter, 4), 0);
	curl_global_init(CURL_GLOBAL_DEFAULT);
	s->multi = curl_multi_init();
	s->easy = curl_easy_init();
	assert_int_equal(http_poll_init(&s->poll, &s->f->env, s->multi, &s->sockets), 0);
	curl_easy_setopt(s->easy, CURLOPT_URL, s->url);
	curl_easy_setopt(s->easy, CURLOPT_NOBODY, 1L);
	http_sockets_attach(&s->sockets, s->easy);
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;
	curl_easy_cleanup(s->easy);
	curl_multi_cleanup(s->multi);
	curl_global_cleanup();
	http_poll_release(&s->poll);
	http_sockets_release(&s->sockets);
	close(s->peer);
	close(s->listener);
	http_stats_free(s->meter);
	fixture_free(s->f);
	free(s);
	return 0;
}

static void submit_and_accept(struct scene *s)
{
	char head[4096];
	struct timeval soon = {.tv_usec = TURN_MS * 1000};
	curl_multi_add_handle(s->multi, s->easy);
	/* The kernel connects before the server accepts. */
	for (int i = 0; i < 3; i++)
		http_poll_serve(&s->poll, TURN_MS);
	s->peer = accept(s->listener, NULL, NULL);
	setsockopt(s->peer, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof(soon));
	for (int i = 0; recv(s->peer, head, sizeof(head), 0) <= 0; i++) {
		assert_true(i < TURNS);
		http_poll_serve(&s->poll, TURN_MS);
	}
}

/* A due timer of libcurl would serve the socket, too. */
static void await_timers(struct scene *s)
{
	const struct env *env = &s->f->env;
	for (int i = 0; s->poll.due_ns < env->now(env) + 10ull * 1000000000; i++) {
		assert_true(i < TURNS);
		http_poll_serve(&s->poll, TURN_MS);
	}
}

static void answer(struct scene *s)
{
	static const char text[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
	assert_int_equal(send(s->peer, text, sizeof(text) - 1, MSG_NOSIGNAL), sizeof(text) - 1);
}

static bool is_done(struct scene *s)
{
	int left;
	const CURLMsg *msg = curl_multi_info_read(s->multi, &left);
	return msg && msg->msg == CURLMSG_DONE && msg->data.result == CURLE_OK;
}

/* A socket that epoll does not report is served when it has been silent: the kernel may have no
 * memory to watch it, or libcurl may have received data of one HTTP/2 stream with that of another.
 */
static void test_a_silent_socket_is_served(void **state)
{
	struct scene *s = *state;
	submit_and_accept(s);
	await_timers(s);
	assert_int_equal(s->sockets.n, 1);
	assert_int_equal(epoll_ctl(s->poll.epoll, EPOLL_CTL_DEL, s->sockets.v[0].fd, NULL), 0);
	answer(s);
	for (int i = 0; i < 20; i++)
		http_poll_serve(&s->poll, TURN_MS);
	assert_false(is_done(s));
	/* Data was received since, so the socket is not served. */
	http_socket_note_received(&s->sockets, s->sockets.v[0].fd);
	http_poll_nudge(&s->poll, s->sockets.v[0].received_ns);
	assert_false(is_done(s));
	int turns = 0;
	do {
		assert_true(turns++ < TURNS);
		http_poll_nudge(&s->poll, s->sockets.v[0].received_ns + 1);
		http_poll_serve(&s->poll, TURN_MS);
	} while (!is_done(s));
}

/* If libcurl closes a socket, another one may get its descriptor. */
static void test_a_descriptor_is_not_an_identity(void **state)
{
	struct scene *s = *state;
	submit_and_accept(s);
	const int fd = s->sockets.v[0].fd;
	const uint64_t id = http_socket_id(&s->sockets, fd);
	assert_int_not_equal(id, 0);
	assert_int_equal(http_socket_id(&s->sockets, s->peer), 0);
	curl_multi_remove_handle(s->multi, s->easy);
	assert_int_equal(http_socket_id(&s->sockets, fd), 0);
	close(s->peer);
	submit_and_accept(s);
	assert_int_not_equal(http_socket_id(&s->sockets, s->sockets.v[0].fd), id);
	answer(s);
}

static int on_connection(void *arg, char *remote, char *local, int remote_port, int local_port)
{
	http_socket_between(arg, local_port, remote, remote_port, 1);
	return CURL_PREREQFUNC_OK;
}

static void serve_until_done(struct scene *s)
{
	for (int i = 0; !is_done(s); i++) {
		assert_true(i < TURNS);
		http_poll_serve(&s->poll, TURN_MS);
	}
	curl_multi_remove_handle(s->multi, s->easy);
}

/* epoll watches a socket between two requests, too, until the server closes the connection. */
static void test_an_idle_socket_is_watched(void **state)
{
	struct scene *s = *state;
	char head[4096];
	curl_easy_setopt(s->easy, CURLOPT_PREREQFUNCTION, on_connection);
	curl_easy_setopt(s->easy, CURLOPT_PREREQDATA, &s->sockets);
	submit_and_accept(s);
	for (int again = 0; again < 3; again++) {
		const struct http_socket *v = s->sockets.v;
		assert_int_equal(s->sockets.n, 1);
		assert_int_equal(v->events, EPOLLIN);
		assert_false(v->idle);
		answer(s);
		serve_until_done(s);
		assert_int_equal(v->events, EPOLLIN);
		assert_true(v->idle);
		curl_multi_add_handle(s->multi, s->easy);
		for (int i = 0; recv(s->peer, head, sizeof(head), 0) <= 0; i++) {
			assert_true(i < TURNS);
			http_poll_serve(&s->poll, TURN_MS);
		}
	}
	answer(s);
	serve_until_done(s);
	shutdown(s->peer, SHUT_RDWR);
	for (int i = 0; s->sockets.v[0].events; i++) {
		assert_true(i < TURNS);
		http_poll_serve(&s->poll, TURN_MS);
	}
	struct epoll_event event;
	assert_int_equal(epoll_wait(s->poll.epoll, &event, 1, TURN_MS), 0);
}

static int listen_at(uint32_t host, uint16_t port)
{
	const struct sockaddr_in at = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(host), .sin_port = htons(port)};
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (const struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(fd, 1), 0);
	return fd;
}

static struct sockaddr_in name_of(int fd)
{
	struct sockaddr_in at = {0};
	socklen_t n = sizeof(at);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &n), 0);
	return at;
}

static int connect_from(const struct sockaddr_in *from, const struct sockaddr_in *to)
{
	const int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
	assert_int_equal(bind(fd, (const struct sockaddr *)from, sizeof(*from)), 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)to, sizeof(*to)), 0);
	return fd;
}

/* Connections to several addresses of a service may have the same local port. */
static void test_a_port_is_not_an_identity(void **state)
{
	struct scene *s = *state;
	struct http_sockets *sockets = &s->sockets;
	struct sockaddr_in from = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const int here = listen_at(INADDR_LOOPBACK, 0);
	const struct sockaddr_in here_at = name_of(here);
	const int port = ntohs(here_at.sin_port);
	const int there = listen_at(INADDR_LOOPBACK + 1, (uint16_t)port);
	const struct sockaddr_in there_at = name_of(there);
	const int a = connect_from(&from, &here_at);
	from = name_of(a);
	const int b = connect_from(&from, &there_at), local = ntohs(from.sin_port);
	sockets->v[sockets->n++] = (struct http_socket){.fd = a};
	sockets->v[sockets->n++] = (struct http_socket){.fd = b};
	assert_int_equal(http_socket_between(sockets, local, "127.0.0.1", port, 1), a);
	assert_int_equal(http_socket_between(sockets, local, "127.0.0.2", port, 2), b);
	assert_int_equal(http_socket_between(sockets, local, "127.0.0.3", port, 3), -1);
	assert_int_equal(http_socket_between(sockets, local, "127.0.0.1", port ^ 1, 4), -1);
	assert_int_equal(sockets->v[0].age, 1);
	assert_int_equal(sockets->v[1].age, 2);
	sockets->n = 0;
	close(a);
	close(b);
	close(here);
	close(there);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_silent_socket_is_served, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_descriptor_is_not_an_identity, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_an_idle_socket_is_watched, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_port_is_not_an_identity, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
