/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The language that describes which failures store_fault_new() injects. Pure.
 *
 *	spec = [ rule { "," rule } ]
 *	rule = what ":" when [ ":" value ] [ "@" glob ]
 *	what = "fail" | "truncate" | "delay" | "flip"
 *	when = n | n "+" | "*" n | p "%"
 *
 *	what		effect				value			default
 *	fail		the request fails		name of an errno	EIO
 *	truncate	the body is cut			bytes that remain	0
 *	delay		the request is delayed		ms, <= 3600000		none
 *	flip		a byte of the body is inverted	offset			0
 *
 * n, at least 1, selects the n-th matching request; n+ selects all from the n-th on, *n each n-th.
 * p% selects a part of them at random, from a fixed seed: 0 to 100, with at most four digits after
 * the point. A request matches if its key (for LIST, its prefix) matches the glob (see fnmatch(3)),
 * which is not empty and has no comma. Without a glob every request matches. truncate and flip
 * match GETs only. An empty spec injects nothing.
 */
#ifndef STORE_FAULT_SPEC_H
#define STORE_FAULT_SPEC_H

#include <stdbool.h>
#include <stdint.h>

#include <hsmount/err.h>

enum {
	FAULT_RULES_MAX = 32,
	FAULT_GLOB_MAX = 255,
	FAULT_MS_MAX = 3600 * 1000,
};

enum fault_what { FAULT_FAIL, FAULT_TRUNCATE, FAULT_DELAY, FAULT_FLIP };

enum fault_when {
	FAULT_NTH,   /* the n-th */
	FAULT_FROM,  /* the n-th and all later ones */
	FAULT_EVERY, /* each n-th */
	FAULT_PPM,   /* n of a million, at random */
};

struct fault_rule {
	enum fault_what what;
	enum fault_when when;
	uint64_t n;
	uint64_t value;		       /* of fail: a positive errno */
	char glob[FAULT_GLOB_MAX + 1]; /* "" matches every key */
};

struct fault_spec {
	struct fault_rule rules[FAULT_RULES_MAX];
	unsigned int n;
};

/* Parses a spec. Fails with -EINVAL, and the rule and what is wrong with it as the reason, or with
 * -E2BIG if there are too many rules. */
int fault_spec_parse(const char *text, struct fault_spec *spec, struct err *err);

/* Returns true if the nth (from 1 on) request that matches a rule is hit. index is the position of
 * the rule in its spec, so that two rules with the same percentage hit different requests. */
bool fault_rule_hits(const struct fault_rule *rule, unsigned int index, uint64_t nth);

/* Returns "EIO" for 5, or NULL if the language has no name for the number. */
const char *fault_errno_name(int number);

#endif
