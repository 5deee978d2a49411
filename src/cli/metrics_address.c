/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the value of the option metrics_listen: see metrics_address.h. */
#include "metrics_address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "option_values.h"

/* Splits text at the last colon. `host` is without brackets, and 127.0.0.1 if the text has no
 * colon. */
static bool split(const char *text, char host[INET6_ADDRSTRLEN], const char **port)
{
	const char *colon = strrchr(text, ':');
	size_t n = colon ? (size_t)(colon - text) : 0;
	*port = colon ? colon + 1 : text;
	if (!colon) {
		strcpy(host, "127.0.0.1");
		return true;
	}
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

int metrics_address_parse(const char *text, struct metrics_address *out, struct err *err)
{
	char host[INET6_ADDRSTRLEN];
	const char *port_text;
	uint64_t port;
	bool is_loopback;
	struct sockaddr_in *v4 = (struct sockaddr_in *)&out->address;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&out->address;
	memset(out, 0, sizeof(*out));
	if (!split(text, host, &port_text) || !value_number(port_text, 10, UINT16_MAX, &port) ||
	    port == 0)
		return err_set(err, -EINVAL, "metrics_listen=%s: must be [ADDRESS:]PORT", text);
	if (inet_pton(AF_INET, host, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons((uint16_t)port);
		out->n = sizeof(*v4);
		is_loopback = ntohl(v4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	} else if (inet_pton(AF_INET6, host, &v6->sin6_addr) == 1) {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons((uint16_t)port);
		out->n = sizeof(*v6);
		is_loopback = IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
	} else {
		return err_set(err, -EINVAL, "metrics_listen=%s: %s is not an IP address", text,
			       host);
	}
	if (is_loopback)
		return 0;
	out->n = 0;
	return err_set(err, -EINVAL,
		       "metrics_listen=%s: must be a loopback address, in 127.0.0.0/8 or ::1",
		       text);
}
