/* SPDX-License-Identifier: Apache-2.0 */
/* The loopback address that the option metrics_listen names. Pure. */
#ifndef CLI_METRICS_ADDRESS_H
#define CLI_METRICS_ADDRESS_H

#include <sys/socket.h>

#include <hsmount/err.h>

struct metrics_address {
	struct sockaddr_storage address;
	socklen_t n; /* 0 if there is none */
};

/* Parses "PORT" (of 127.0.0.1), "ADDRESS:PORT" or "[ADDRESS]:PORT". Fails with -EINVAL, also if
 * other machines can reach the address. */
int metrics_address_parse(const char *text, struct metrics_address *out, struct err *err);

#endif
