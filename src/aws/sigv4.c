/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AWS Signature Version 4: canonical request, string to sign, signing key, signature. Copies of the
 * secret and of the signing key are overwritten after use. Pure.
 */
#include <aws/sigv4.h>

#include <aws/uri.h>

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <time.h>

#include <base/hex.h>

static const char algorithm[] = "AWS4-HMAC-SHA256";

void sigv4_date(int64_t when, char date[SIGV4_DATE_SIZE])
{
	const time_t t = (time_t)when;
	struct tm tm = {0};
	gmtime_r(&t, &tm);
	if (strftime(date, SIGV4_DATE_SIZE, "%Y%m%dT%H%M%SZ", &tm) == 0)
		date[0] = '\0';
}

/* ---- canonical forms: each pair becomes two texts; these are sorted, then joined ---- */

struct pair_text {
	struct str name, value;
};

static void release_pairs(struct pair_text *pairs, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		str_release(&pairs[i].name);
		str_release(&pairs[i].value);
	}
}

static int by_name_and_value(const void *a, const void *b)
{
	const struct pair_text *x = a, *y = b;
	int order = strcmp(str_text(&x->name), str_text(&y->name));
	return order ? order : strcmp(str_text(&x->value), str_text(&y->value));
}

static int sort_pairs(struct pair_text *pairs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!str_ok(&pairs[i].name) || !str_ok(&pairs[i].value))
			return -ENOMEM;
	if (n > 1)
		qsort(pairs, n, sizeof(*pairs), by_name_and_value);
	return 0;
}

int sigv4_query(const struct sigv4_pair *query, size_t n, struct str *out)
{
	struct pair_text pairs[SIGV4_PAIRS_MAX] = {0};
	if (n > SIGV4_PAIRS_MAX)
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		uri_encode(&pairs[i].name, query[i].name, strlen(query[i].name), false);
		uri_encode(&pairs[i].value, query[i].value, strlen(query[i].value), false);
	}
	int rc = sort_pairs(pairs, n);
	for (size_t i = 0; rc == 0 && i < n; i++)
		str_addf(out, "%s%s=%s", i ? "&" : "", str_text(&pairs[i].name),
			 str_text(&pairs[i].value));
	release_pairs(pairs, n);
	return rc ? rc : str_ok(out) ? 0 : -ENOMEM;
}

static void add_lower(struct str *out, const char *name)
{
	for (; *name; name++) {
		const char c = (char)tolower((unsigned char)*name);
		str_addn(out, &c, 1);
	}
}

/* Removes spaces at both ends, and replaces each run of spaces by one. */
static void add_trimmed(struct str *out, const char *value)
{
	bool gap = false, any = false;
	for (; *value; value++) {
		if (*value == ' ' || *value == '\t') {
			gap = true;
			continue;
		}
		if (gap && any)
			str_add(out, " ");
		str_addn(out, value, 1);
		gap = false;
		any = true;
	}
}

/* Writes "a:1\nb:2\n" and "a;b". */
static int canonical_headers(const struct sigv4_request *req, struct str *lines, struct str *names)
{
	struct pair_text pairs[SIGV4_PAIRS_MAX] = {0};
	if (req->n_header > SIGV4_PAIRS_MAX)
		return -EINVAL;
	for (size_t i = 0; i < req->n_header; i++) {
		add_lower(&pairs[i].name, req->header[i].name);
		add_trimmed(&pairs[i].value, req->header[i].value);
	}
	int rc = sort_pairs(pairs, req->n_header);
	for (size_t i = 0; rc == 0 && i < req->n_header; i++) {
		str_addf(lines, "%s:%s\n", str_text(&pairs[i].name), str_text(&pairs[i].value));
		str_addf(names, "%s%s", i ? ";" : "", str_text(&pairs[i].name));
	}
	release_pairs(pairs, req->n_header);
	return rc;
}

/* ---- signature ---- */

static int sign(const struct sigv4_key *key, const char *day, const char *text,
		char hex[SHA256_HEX])
{
	auto_secret struct str secret = {0};
	uint8_t mac[SHA256_SIZE], next[SHA256_SIZE];
	const char *const parts[] = {day, key->region, key->service, "aws4_request", text};
	str_addf(&secret, "AWS4%s", key->secret_key);
	if (!str_ok(&secret))
		return -ENOMEM;
	int rc = 0;
	for (size_t i = 0; rc == 0 && i < sizeof(parts) / sizeof(parts[0]); i++) {
		const void *with = i ? (const void *)mac : secret.b.data;
		const size_t n = i ? sizeof(mac) : secret.b.len;
		rc = digest_hmac(with, n, parts[i], strlen(parts[i]), next);
		memcpy(mac, next, sizeof(mac));
	}
	hex_encode(mac, sizeof(mac), hex);
	explicit_bzero(mac, sizeof(mac));
	explicit_bzero(next, sizeof(next));
	return rc;
}

int sigv4_authorization(const struct sigv4_request *req, const struct sigv4_key *key, int64_t when,
			struct str *out)
{
	auto_str struct str canonical = {0}, lines = {0}, names = {0}, text = {0}, scope = {0};
	char date[SIGV4_DATE_SIZE], day[9], hash[SHA256_HEX], signature[SHA256_HEX];
	int rc = canonical_headers(req, &lines, &names);
	if (rc)
		return rc;
	str_addf(&canonical, "%s\n%s\n", req->method, req->path);
	rc = sigv4_query(req->query, req->n_query, &canonical);
	if (rc)
		return rc;
	str_addf(&canonical, "\n%s\n%s\n%s", str_text(&lines), str_text(&names), req->payload);
	if (!str_ok(&canonical) || !str_ok(&lines) || !str_ok(&names))
		return -ENOMEM;
	rc = digest_sha256(&(struct piece){canonical.b.data, canonical.b.len}, 1, hash);
	if (rc)
		return rc;
	sigv4_date(when, date);
	memcpy(day, date, sizeof(day) - 1);
	day[sizeof(day) - 1] = '\0';
	str_addf(&scope, "%s/%s/%s/aws4_request", day, key->region, key->service);
	str_addf(&text, "%s\n%s\n%s\n%s", algorithm, date, str_text(&scope), hash);
	if (!str_ok(&scope) || !str_ok(&text))
		return -ENOMEM;
	rc = sign(key, day, str_text(&text), signature);
	if (rc)
		return rc;
	str_addf(out, "%s Credential=%s/%s, SignedHeaders=%s, Signature=%s", algorithm,
		 key->access_key, str_text(&scope), str_text(&names), signature);
	return str_ok(out) ? 0 : -ENOMEM;
}
