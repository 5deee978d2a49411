/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "metrics_request.h"

enum { MORE = 0 };

struct request_case {
	const char *text;
	int status; /* MORE: no answer yet */
};

static int status_of(const char *text, size_t n, struct metrics_request *r)
{
	/* Of exactly its size, so that an overrun is seen. */
	char *copy = malloc(n ? n : 1);
	memcpy(copy, text, n);
	const bool whole = metrics_request_parse(copy, n, r);
	free(copy);
	return whole ? r->status : MORE;
}

#define GET(target, fields) "GET " target " HTTP/1.1\r\n" fields "\r\n"

static void requests_are_judged(void **state)
{
	static const struct request_case cases[] = {
		{GET("/metrics", "Host: 127.0.0.1:9464\r\n"), 200},
		{GET("/stats", "Host: localhost\r\nAccept: */*\r\n"), 200},
		{GET("/metrics?name[]=x", ""), 200},
		{GET("/metrics", "hOST:\t[::1]:1 \r\n"), 200},
		{"GET /metrics HTTP/1.0\r\n\r\nand a body", 200},
		{"HEAD /stats HTTP/1.1\r\n\r\n", 200},
		{GET("/", ""), 404},
		{GET("/metrics/", ""), 404},
		{GET("/Metrics", ""), 404},
		{GET("http://127.0.0.1/metrics", ""), 404},
		{"POST /metrics HTTP/1.1\r\n\r\n", 405},
		{"get /metrics HTTP/1.1\r\n\r\n", 405},
		{"OPTIONS * HTTP/1.1\r\n\r\n", 405},
		{"GET /metrics HTTP/2.0\r\n\r\n", 505},
		{"GET /metrics HTTP/0.9\r\n\r\n", 505},
		/* names that somebody else's page may have */
		{GET("/metrics", "Host: evil.example\r\n"), 421},
		{GET("/metrics", "Host: localhost.evil.example\r\n"), 421},
		{GET("/metrics", "Host: 127.0.0.1.evil.example\r\n"), 421},
		{GET("/metrics", "Host: 127.0.0.1\r\nHost: evil\r\n"), 421},
		{GET("/metrics", "Host:\r\n"), 421},
		{GET("/metrics", "Host: [::1\r\n"), 421},
		{GET("/metrics", "Host: []\r\n"), 421},
		{GET("/metrics", "Host: "
				 "[11111111111111111111111111111111111111111111111111111111]\r\n"),
		 421},
		/* no requests */
		{"\r\n\r\n", 400},
		{"GET\r\n\r\n", 400},
		{"GET /metrics\r\n\r\n", 400},
		{"GET  HTTP/1.1\r\n\r\n", 400},
		{"GET /metrics  HTTP/1.1\r\n\r\n", 400},
		{"GET /metrics HTTP/1.1 \r\n\r\n", 400},
		{"GET /metrics HTTPS1.1\r\n\r\n", 400},
		{" GET /metrics HTTP/1.1\r\n\r\n", 400},
		{"G\"T /metrics HTTP/1.1\r\n\r\n", 400},
		{"GET /metrics HTTP/1.1\nHost: x\r\n\r\n", 400},
		{"GET /met\rrics HTTP/1.1\r\n\r\n", 400},
		{GET("/metrics", "Host 127.0.0.1\r\n"), 400},
		{GET("/metrics", ": x\r\n"), 400},
		{GET("/metrics", "Host : x\r\n"), 400},
		{GET("/metrics", "A: b\r\n folded\r\n"), 400},
		{GET("/metrics", "A: \x01\r\n"), 400},
		{"\x16\x03\x01\x02\r\n\r\n", 400}, /* TLS */
		/* not whole */
		{"", MORE},
		{"GET /metrics HTTP/1.1", MORE},
		{"GET /metrics HTTP/1.1\r\n", MORE},
		{"GET /metrics HTTP/1.1\r\n\r", MORE},
		{"GET /metrics HTTP/1.1\n\n", MORE},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct metrics_request r;
		const int status = status_of(cases[i].text, strlen(cases[i].text), &r);
		if (status != cases[i].status)
			fail_msg("%s: %d, not %d", cases[i].text, status, cases[i].status);
	}
}

static void what_is_asked_for(void **state)
{
	struct metrics_request r;
	assert_int_equal(status_of("GET /stats HTTP/1.1\r\n\r\n", 23, &r), 200);
	assert_int_equal(r.kind, ENGINE_REPORT_JSON);
	assert_false(r.head);
	assert_int_equal(status_of("HEAD /metrics HTTP/1.1\r\n\r\n", 26, &r), 200);
	assert_int_equal(r.kind, ENGINE_REPORT_PROMETHEUS);
	assert_true(r.head);
	/* NUL is a byte like others: no text ends at it. */
	assert_int_equal(status_of("GET /stats\0 HTTP/1.1\r\n\r\n", 24, &r), 400);
}

static void too_much_is_refused(void **state)
{
	char text[METRICS_REQUEST_MAX + 100];
	struct metrics_request r;
	const size_t n = strlen(strcpy(text, "GET /metrics HTTP/1.1\r\nX: "));
	memset(text + n, 'x', sizeof(text) - n);
	assert_int_equal(status_of(text, METRICS_REQUEST_MAX - 1, &r), MORE);
	assert_int_equal(status_of(text, METRICS_REQUEST_MAX, &r), 431);
	assert_int_equal(status_of(text, sizeof(text), &r), 431);
	/* What fits exactly is one. */
	memcpy(text + METRICS_REQUEST_MAX - 4, "\r\n\r\n", 4);
	assert_int_equal(status_of(text, METRICS_REQUEST_MAX, &r), 200);
	assert_int_equal(status_of(text, sizeof(text), &r), 200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_are_judged),
		cmocka_unit_test(what_is_asked_for),
		cmocka_unit_test(too_much_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
