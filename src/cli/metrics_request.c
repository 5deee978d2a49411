/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests are parsed strictly: lines end in CR LF, no control bytes, no folded lines. Who sends
 * something else is no scraper.
 *
 * The value of Host must be an address or "localhost". A web page could otherwise let its own name
 * point to 127.0.0.1 and have the reader's browser, which can reach us, tell it what is mounted.
 */
#include "metrics_request.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <string.h>
#include <strings.h>

/* A window of text. */
struct text {
	const char *p;
	size_t n;
};

static bool is(struct text t, const char *word)
{
	return t.n == strlen(word) && memcmp(t.p, word, t.n) == 0;
}

/* Up to the separator, which is taken as well; false when it is not there. */
static bool take(struct text *from, char separator, struct text *out)
{
	const char *end = from->n ? memchr(from->p, separator, from->n) : NULL;
	if (!end)
		return false;
	*out = (struct text){from->p, (size_t)(end - from->p)};
	from->n -= out->n + 1;
	from->p = end + 1;
	return true;
}

/* The bytes before the empty line, with the end of the last header line; false without one. */
static bool take_head(const char *bytes, size_t n, struct text *head)
{
	const char *end = memmem(bytes, n, "\r\n\r\n", 4);
	if (!end)
		return false;
	*head = (struct text){bytes, (size_t)(end - bytes) + 2};
	return true;
}

/* A line without its end; false when there is none, or one with bytes that no line has. */
static bool take_line(struct text *from, struct text *line)
{
	if (!take(from, '\n', line) || line->n == 0 || line->p[line->n - 1] != '\r')
		return false;
	line->n--;
	for (size_t i = 0; i < line->n; i++) {
		const unsigned char c = (unsigned char)line->p[i];
		if ((c < 0x20 && c != '\t') || c == 0x7f)
			return false;
	}
	return true;
}

/* RFC 9110, 5.6.2 */
static bool is_token(struct text t)
{
	for (size_t i = 0; i < t.n; i++)
		if (!isalnum((unsigned char)t.p[i]) && !strchr("!#$%&'*+-.^_`|~", t.p[i]))
			return false;
	return t.n > 0;
}

static struct text trimmed(struct text t)
{
	while (t.n && (t.p[0] == ' ' || t.p[0] == '\t'))
		t = (struct text){t.p + 1, t.n - 1};
	while (t.n && (t.p[t.n - 1] == ' ' || t.p[t.n - 1] == '\t'))
		t.n--;
	return t;
}

/* "127.0.0.1:9090", "[::1]", "localhost:9090" */
static bool names_us(struct text host)
{
	char name[INET6_ADDRSTRLEN] = "";
	unsigned char address[sizeof(struct in6_addr)];
	const bool bracketed = host.n && host.p[0] == '[';
	const char *end = host.n ? memchr(host.p, bracketed ? ']' : ':', host.n) : NULL;
	size_t n = end ? (size_t)(end - host.p) : host.n;
	if (bracketed) {
		if (!end)
			return false;
		host.p++;
		n--;
	}
	if (n >= sizeof(name))
		return false;
	memcpy(name, host.p, n);
	if (bracketed)
		return inet_pton(AF_INET6, name, address) == 1;
	return inet_pton(AF_INET, name, address) == 1 || strcasecmp(name, "localhost") == 0;
}

/* The lines behind the first. */
static int judge_fields(struct text head)
{
	struct text line, name;
	int status = 200;
	while (head.n) {
		if (!take_line(&head, &line) || !take(&line, ':', &name) || !is_token(name))
			return 400;
		if (name.n == 4 && strncasecmp(name.p, "host", 4) == 0 && !names_us(trimmed(line)))
			status = 421;
	}
	return status;
}

static int judge_target(struct text target, struct metrics_request *out)
{
	struct text path = target;
	take(&target, '?', &path);
	if (is(path, "/metrics"))
		out->kind = ENGINE_REPORT_PROMETHEUS;
	else if (is(path, "/stats"))
		out->kind = ENGINE_REPORT_JSON;
	else
		return 404;
	return 200;
}

static int judge(struct text head, struct metrics_request *out)
{
	struct text line, method, target;
	if (!take_line(&head, &line) || !take(&line, ' ', &method) || !is_token(method) ||
	    !take(&line, ' ', &target) || target.n == 0)
		return 400;
	if (line.n != 8 || memcmp(line.p, "HTTP/", 5) != 0)
		return 400;
	if (!is(line, "HTTP/1.1") && !is(line, "HTTP/1.0"))
		return 505;
	const int status = judge_fields(head);
	if (status != 200)
		return status;
	out->head = is(method, "HEAD");
	if (!out->head && !is(method, "GET"))
		return 405;
	return judge_target(target, out);
}

bool metrics_request_parse(const char *bytes, size_t n, struct metrics_request *out)
{
	struct text head;
	*out = (struct metrics_request){.status = 431};
	if (take_head(bytes, n < METRICS_REQUEST_MAX ? n : METRICS_REQUEST_MAX, &head))
		out->status = judge(head, out);
	else if (n < METRICS_REQUEST_MAX)
		return false;
	return true;
}

const char *metrics_status(int status)
{
	static const struct {
		int status;
		const char *line;
	} lines[] = {
		{200, "200 OK"},
		{404, "404 Not Found"},
		{405, "405 Method Not Allowed"},
		{421, "421 Misdirected Request"},
		{431, "431 Request Header Fields Too Large"},
		{500, "500 Internal Server Error"},
		{505, "505 HTTP Version Not Supported"},
	};
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		if (lines[i].status == status)
			return lines[i].line;
	return "400 Bad Request";
}
