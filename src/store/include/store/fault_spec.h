/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The language in which failures are ordered (store_fault_new()). Pure: text in, rules out, and
 * back.
 *
 *	spec = [ rule { "," rule } ]
 *	rule = what ":" when [ ":" value ] [ "@" glob ]
 *	what = "fail" | "truncate" | "delay" | "flip"
 *	when = n | n "+" | "*" n | p "%"
 *
 *	what		value			without
 *	fail		errno name		EIO
 *	truncate	bytes kept		0
 *	delay		ms, <= 3600000		(must be there)
 *	flip		byte offset		0
 *
 * n is a number from 1 on: the n-th matching request, all from the n-th on, each n-th. p is that
 * part of them, pseudo-random from a fixed seed: 0 to 100, at most four digits behind the point. A
 * glob (fnmatch(3), of the key; of a listing's prefix) is not empty and has no comma; without one
 * all requests match. truncate and flip change the bodies of gets, and match nothing else. An empty
 * spec injects nothing.
 */
#ifndef STORE_FAULT_SPEC_H
#define STORE_FAULT_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hsmount/err.h>

enum {
	FAULT_RULES_MAX = 32,
	FAULT_GLOB_MAX = 255,
	FAULT_MS_MAX = 3600 * 1000,
};

enum fault_what { FAULT_FAIL, FAULT_TRUNCATE, FAULT_DELAY, FAULT_FLIP };

enum fault_when {
	FAULT_NTH,   /* the n-th, once */
	FAULT_FROM,  /* the n-th and all later ones */
	FAULT_EVERY, /* each n-th */
	FAULT_PPM,   /* n of a million, by chance */
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

/* -EINVAL with the rule and what is wrong with it; -E2BIG for too many rules. */
int fault_spec_parse(const char *text, struct fault_spec *spec, struct err *err);
/* The text of a spec, in its shortest form: parsing it gives the spec again. -ENOSPC when it does
 * not fit n bytes with its NUL. */
int fault_spec_format(const struct fault_spec *spec, char *text, size_t n);

/* Whether the nth (from 1 on) request that matches a rule is hit. index: of the rule in its spec,
 * so that two rules of one percentage do not hit the same requests. */
bool fault_rule_hits(const struct fault_rule *rule, unsigned int index, uint64_t nth);

/* "EIO" for 5; NULL for what the language has no word for. */
const char *fault_errno_name(int number);

#endif
