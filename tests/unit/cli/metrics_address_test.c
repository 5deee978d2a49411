/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cli/metrics_address.h"

static void format(const struct metrics_address *a, char *out, size_t size)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)&a->address;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&a->address;
	char name[INET6_ADDRSTRLEN];
	const bool is_v4 = a->address.ss_family == AF_INET;
	assert_int_equal(a->n, is_v4 ? sizeof(*v4) : sizeof(*v6));
	assert_non_null(inet_ntop(a->address.ss_family,
				  is_v4 ? (const void *)&v4->sin_addr : &v6->sin6_addr, name,
				  sizeof(name)));
	snprintf(out, size, "%s %u", name, ntohs(is_v4 ? v4->sin_port : v6->sin6_port));
}

static void loopback_is_taken(void **state)
{
	static const char *const cases[][2] = {
		{"9464", "127.0.0.1 9464"},
		{"127.0.0.1:1", "127.0.0.1 1"},
		{"127.255.0.9:65535", "127.255.0.9 65535"},
		{"[::1]:9464", "::1 9464"},
		{"::1:9464", "::1 9464"},
		{"[127.0.0.1]:80", "127.0.0.1 80"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct metrics_address a;
		char text[128];
		assert_int_equal(metrics_address_parse(cases[i][0], &a, NULL), 0);
		format(&a, text, sizeof(text));
		assert_string_equal(text, cases[i][1]);
	}
}

static void others_are_refused(void **state)
{
	static const char *const cases[][2] = {
		{"", "must be [ADDRESS:]PORT"},
		{":", "must be [ADDRESS:]PORT"},
		{":9464", "must be [ADDRESS:]PORT"},
		{"0", "must be [ADDRESS:]PORT"},
		{"65536", "must be [ADDRESS:]PORT"},
		{"-1", "must be [ADDRESS:]PORT"},
		{"+1", "must be [ADDRESS:]PORT"},
		{" 1", "must be [ADDRESS:]PORT"},
		{"9464x", "must be [ADDRESS:]PORT"},
		{"99999999999999999999999", "must be [ADDRESS:]PORT"},
		{"127.0.0.1:", "must be [ADDRESS:]PORT"},
		{"[]:1", "must be [ADDRESS:]PORT"},
		{"127.0.0.1.127.0.0.1.127.0.0.1.127.0.0.1.127.0.0.1:1", "must be [ADDRESS:]PORT"},
		{"localhost:9464", "is not an IP address"},
		{"127.1:9464", "is not an IP address"},
		{"[::1:9464", "is not an IP address"},
		{"0.0.0.0:9464", "a loopback address"},
		{"192.168.0.1:9464", "a loopback address"},
		{"128.0.0.1:9464", "a loopback address"},
		{"[::]:9464", "a loopback address"},
		{"[fe80::1]:9464", "a loopback address"},
		{"[::ffff:127.0.0.1]:9464", "a loopback address"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct metrics_address a;
		struct err err = ERR_INIT;
		assert_int_equal(metrics_address_parse(cases[i][0], &a, &err), -EINVAL);
		if (!strstr(err.msg, cases[i][1]))
			fail_msg("%s: %s", cases[i][0], err.msg);
		assert_int_equal(a.n, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loopback_is_taken),
		cmocka_unit_test(others_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
