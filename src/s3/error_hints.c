/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of the first request that a wrong configuration causes, and what to do about them. Pure.
 */
#include "error_hints.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

static const struct {
	const char *code, *hint;
} hints[] = {
	{"SignatureDoesNotMatch", "the secret access key is wrong; check the credentials"},
	{"InvalidAccessKeyId",
	 "the service does not know the access key; check credentials and endpoint"},
	{"ExpiredToken", "the credentials have expired; log in again or get new ones"},
	{"TokenRefreshRequired", "the credentials have expired; log in again or get new ones"},
	{"InvalidToken", "the session token is wrong; log in again or get a new one"},
	{"AuthorizationHeaderMalformed", "the bucket is in another region; use -o region"},
	{"PermanentRedirect", "the bucket is at another endpoint; use -o endpoint or -o region"},
	{"TemporaryRedirect", "the bucket is at another endpoint; use -o endpoint or -o region"},
};

/* Writes a time span in one unit: "20 minutes", "3 hours", "5 days". */
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

void s3_clock_words(int64_t ahead, struct str *out)
{
	add_span(out, ahead);
	str_add(out, ahead < 0 ? " behind" : " ahead");
}

static void add_clock(const struct s3_refusal *r, struct str *out)
{
	if (!r->our_time || !r->server_time) {
		str_add(out, "the clock of this machine is wrong; set it");
		return;
	}
	str_add(out, "the clock of this machine is ");
	s3_clock_words(r->our_time - r->server_time, out);
	str_add(out, "; set it");
}

static void add_denied(const struct s3_refusal *r, struct str *out)
{
	if (!r->is_signed)
		str_add(out, "the bucket is not public; use credentials");
	else if (r->owner)
		str_addf(out,
			 "the credentials do not allow listing the bucket, or account %s does not "
			 "own it; check the policy and -o bucket_owner",
			 r->owner);
	else
		str_addf(out, "the credentials do not allow listing the bucket%s; check %s",
			 r->of_session ? ", or their session has expired" : "",
			 r->of_session ? "the policy or log in again" : "the policy");
}

void s3_error_hint(const struct s3_refusal *r, struct str *out)
{
	if (r->untrusted) {
		str_add(out, "the server's certificate is not valid; check endpoint and ca_bundle");
		return;
	}
	for (size_t i = 0; i < sizeof(hints) / sizeof(hints[0]); i++)
		if (strcmp(r->code, hints[i].code) == 0) {
			str_add(out, hints[i].hint);
			return;
		}
	if (strcmp(r->code, "RequestTimeTooSkewed") == 0)
		add_clock(r, out);
	else if (strcmp(r->code, "AccessDenied") == 0 || (!r->code[0] && r->status == 403))
		add_denied(r, out);
}
