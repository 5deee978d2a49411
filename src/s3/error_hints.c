/* SPDX-License-Identifier: Apache-2.0 */
/* The answers that a first request gets where something is set up wrong, and what that is. Pure. */
#include "error_hints.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

static const struct {
	const char *code, *words;
} advice[] = {
	{"SignatureDoesNotMatch", "the secret access key is wrong"},
	{"InvalidAccessKeyId", "the service does not know the access key"},
	{"ExpiredToken", "the credentials have expired: log in again, or get new ones"},
	{"TokenRefreshRequired", "the credentials have expired: log in again, or get new ones"},
	{"InvalidToken", "the session token is wrong: log in again, or get a new one"},
	{"AuthorizationHeaderMalformed", "the bucket is in another region: name it"},
	{"PermanentRedirect", "the bucket is at another endpoint: name it, or its region"},
	{"TemporaryRedirect", "the bucket is at another endpoint: name it, or its region"},
};

/* A difference that a service minds is one of minutes, rarely of hours or days. */
static void add_span(struct str *out, int64_t seconds)
{
	static const struct {
		int64_t seconds, up_to;
		const char *name;
	} units[] = {{86400, INT64_MAX, "days"}, {3600, 172800, "hours"}, {60, 7200, "minutes"}};
	const int64_t n = seconds < 0 ? -seconds : seconds;
	size_t i = sizeof(units) / sizeof(units[0]) - 1;
	while (n >= units[i].up_to)
		i--;
	str_addf(out, "%" PRId64 " %s", (n + units[i].seconds / 2) / units[i].seconds,
		 units[i].name);
}

static void add_clock(const struct s3_refusal *r, struct str *out)
{
	if (!r->ours || !r->its) {
		str_add(out, "the clock of this machine is off: set it");
		return;
	}
	str_add(out, "the clock of this machine is ");
	add_span(out, r->ours - r->its);
	str_addf(out, " %s: set it", r->ours < r->its ? "behind" : "ahead");
}

static void add_denied(const struct s3_refusal *r, struct str *out)
{
	if (!r->is_signed)
		str_add(out, "the bucket is not public");
	else if (r->owner)
		str_addf(out,
			 "these credentials may not list the bucket, or account %s does not own it",
			 r->owner);
	else
		str_addf(out, "these credentials may not list the bucket%s",
			 r->of_session ? ", or their session is over" : "");
}

void s3_error_hint(const struct s3_refusal *r, struct str *out)
{
	if (r->untrusted) {
		str_add(out, "the server cannot be trusted: check endpoint and ca_bundle");
		return;
	}
	for (size_t i = 0; i < sizeof(advice) / sizeof(advice[0]); i++)
		if (strcmp(r->code, advice[i].code) == 0) {
			str_add(out, advice[i].words);
			return;
		}
	if (strcmp(r->code, "RequestTimeTooSkewed") == 0)
		add_clock(r, out);
	else if (strcmp(r->code, "AccessDenied") == 0 || (!r->code[0] && r->status == 403))
		add_denied(r, out);
}
