/* SPDX-License-Identifier: Apache-2.0 */
/* The output of hsimage check as text. Pure. */
#ifndef CLI_CHECK_FORMAT_H
#define CLI_CHECK_FORMAT_H

#include <stdbool.h>

#include <hsmount/check.h>
#include <base/str.h>

/* Zero-initialised except for json. The owner releases findings. */
struct check_format {
	bool json;
	struct str findings; /* JSON: those of the current domain */
	uint64_t outcomes[ENGINE_CHECK_OUTCOMES];
};
/* Each function appends what is to be printed now, complete lines or nothing. */
void check_format_finding(struct check_format *k, const struct engine_check_finding *f,
			  struct str *out);
void check_format_result(struct check_format *k, const struct engine_check_result *r,
			 struct str *out);
/* Appends the totals: in text only, and only if there was not exactly one domain or file. */
void check_format_totals(const struct check_format *k, struct str *out);
bool check_format_is_sound(const struct check_format *k);

#endif
