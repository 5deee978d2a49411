/* SPDX-License-Identifier: Apache-2.0 */
/* Where metrics are served: see metrics_address.h. Pure. */
#include "metrics_address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static bool parse_port(const char *text, in_port_t *port)
{
	char *end;
	if (text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	const unsigned long n = strtoul(text, &end, 10);
	*port = htons((uint16_t)n);
	return !errno && !*end && n > 0 && n <= UINT16_MAX;
}

/* Splits at the last colon. host: "" when there is none; without brackets. */
static bool split(const char *text, char host[INET6_ADDRSTRLEN], const char **port)
{
	const char *colon = strrchr(text, ':');
	size_t n = colon ? (size_t)(colon - text) : 0;
	*port = colon ? colon + 1 : text;
	host[0] = '\0';
	if (!colon)
		return true;
	if (n >= 2 && text[0] == '[' && text[n - 1] == ']') {
		text++;
		n -= 2;
	}
	if (n == 0 || n >= INET6_ADDRSTRLEN)
		return false;
	memcpy(host, text, n);
	host[n] = '\0';
	return true;
}

/* What only this machine reaches: 127.0.0.0/8, ::1. */
static bool is_loopback(const struct metrics_address *a)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)&a->address;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&a->address;
	if (a->address.ss_family == AF_INET)
		return ntohl(v4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

int metrics_address_parse(const char *text, struct metrics_address *out, struct err *err)
{
	char host[INET6_ADDRSTRLEN];
	const char *port_text;
	in_port_t port;
	struct sockaddr_in *v4 = (struct sockaddr_in *)&out->address;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&out->address;
	memset(out, 0, sizeof(*out));
	if (!split(text, host, &port_text) || !parse_port(port_text, &port))
		return err_set(err, -EINVAL, "metrics_listen=%s: must be [ADDRESS:]PORT", text);
	if (inet_pton(AF_INET, host[0] ? host : "127.0.0.1", &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = port;
		out->n = sizeof(*v4);
	} else if (inet_pton(AF_INET6, host, &v6->sin6_addr) == 1) {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = port;
		out->n = sizeof(*v6);
	} else {
		return err_set(err, -EINVAL, "metrics_listen=%s: %s is not an IP address", text,
			       host);
	}
	if (is_loopback(out))
		return 0;
	out->n = 0;
	return err_set(err, -EINVAL,
		       "metrics_listen=%s: must be an address of this machine alone, in "
		       "127.0.0.0/8 or ::1",
		       text);
}
