/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AWS Signature Version 4: canonical request, string to sign, signing key, signature. The signer
 * keeps one signing key and the secret that it was derived from. All copies of both are overwritten
 * after use.
 */
#include <aws/sigv4.h>

#include <aws/uri.h>

#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
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

/* ---- the query: each pair becomes two texts; these are sorted, then joined ---- */

struct pair_text {
	struct str name, value;
};

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
	for (size_t i = 0; i < n; i++) {
		str_release(&pairs[i].name);
		str_release(&pairs[i].value);
	}
	return rc ? rc : str_ok(out) ? 0 : -ENOMEM;
}

/* ---- the headers ---- */

static void add_lower(struct str *out, const char *name)
{
	const size_t from = out->b.len;
	str_add(out, name);
	for (size_t i = from; i < out->b.len; i++)
		out->b.data[i] = (uint8_t)tolower(out->b.data[i]);
}

/* Removes spaces at both ends, and replaces each run of spaces by one. */
static void add_trimmed(struct str *out, const char *value)
{
	static const char spaces[] = " \t";
	bool any = false;
	for (value += strspn(value, spaces); *value; value += strspn(value, spaces)) {
		const size_t n = strcspn(value, spaces);
		if (any)
			str_add(out, " ");
		str_addn(out, value, n);
		value += n;
		any = true;
	}
}

static int by_header(const void *a, const void *b)
{
	const struct sigv4_pair *x = *(const struct sigv4_pair *const *)a;
	const struct sigv4_pair *y = *(const struct sigv4_pair *const *)b;
	int order = strcasecmp(x->name, y->name);
	return order ? order : strcmp(x->value, y->value);
}

/* Writes the names as "a;b". */
static void add_names(struct str *out, const struct sigv4_pair *const *sorted, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (i)
			str_add(out, ";");
		add_lower(out, sorted[i]->name);
	}
}

/* ---- signature ---- */

enum { DAY_SIZE = 9 };

struct sigv4_signer {
	pthread_mutex_t lock; /* guards all of this */
	struct sha256 *sha;
	/* The signing key, and what it was derived from. There is none if day is "". */
	uint8_t signing_key[SHA256_SIZE];
	char day[DAY_SIZE];
	struct str secret, region, service;
};

struct sigv4_signer *sigv4_signer_new(void)
{
	struct sigv4_signer *signer = calloc(1, sizeof(*signer));
	if (!signer)
		return NULL;
	pthread_mutex_init(&signer->lock, NULL);
	signer->sha = sha256_new();
	if (signer->sha)
		return signer;
	sigv4_signer_free(signer);
	return NULL;
}

static void forget_locked(struct sigv4_signer *signer)
{
	explicit_bzero(signer->signing_key, sizeof(signer->signing_key));
	signer->day[0] = '\0';
	str_wipe(&signer->secret);
	str_release(&signer->region);
	str_release(&signer->service);
}

void sigv4_signer_free(struct sigv4_signer *signer)
{
	if (!signer)
		return;
	forget_locked(signer);
	sha256_free(signer->sha);
	pthread_mutex_destroy(&signer->lock);
	free(signer);
}

static int derive(struct sha256 *sha, const struct sigv4_key *key, const char *day,
		  uint8_t out[SHA256_SIZE])
{
	const char *const parts[] = {day, key->region, key->service, "aws4_request"};
	auto_secret struct str secret = {0};
	str_addf(&secret, "AWS4%s", key->secret_key);
	if (!str_ok(&secret))
		return -ENOMEM;
	struct piece with = {secret.b.data, secret.b.len};
	int rc = 0;
	for (size_t i = 0; rc == 0 && i < sizeof(parts) / sizeof(parts[0]); i++) {
		const struct piece part = {parts[i], strlen(parts[i])};
		rc = sha256_hmac(sha, with, part, out);
		with = (struct piece){out, SHA256_SIZE};
	}
	return rc;
}

static bool has_key_locked(const struct sigv4_signer *signer, const struct sigv4_key *key,
			   const char *day)
{
	return strcmp(signer->day, day) == 0 &&
	       strcmp(str_text(&signer->secret), key->secret_key) == 0 &&
	       strcmp(str_text(&signer->region), key->region) == 0 &&
	       strcmp(str_text(&signer->service), key->service) == 0;
}

static int get_key_locked(struct sigv4_signer *signer, const struct sigv4_key *key, const char *day)
{
	if (has_key_locked(signer, key, day))
		return 0;
	forget_locked(signer);
	int rc = derive(signer->sha, key, day, signer->signing_key);
	str_add(&signer->secret, key->secret_key);
	str_add(&signer->region, key->region);
	str_add(&signer->service, key->service);
	if (!str_ok(&signer->secret) || !str_ok(&signer->region) || !str_ok(&signer->service))
		rc = -ENOMEM;
	if (rc)
		forget_locked(signer);
	else
		memcpy(signer->day, day, DAY_SIZE);
	return rc;
}

/* Computes the signature of a canonical request. `text` is the string to sign without its last
 * line. */
static int sign_locked(struct sigv4_signer *signer, const struct sigv4_key *key, const char *day,
		       const struct str *canonical, struct str *text, char signature[SHA256_HEX])
{
	uint8_t digest[SHA256_SIZE];
	char hash[SHA256_HEX];
	int rc = get_key_locked(signer, key, day);
	if (rc == 0)
		rc = sha256_digest(signer->sha,
				   &(struct piece){canonical->b.data, canonical->b.len}, 1, digest);
	if (rc)
		return rc;
	hex_encode(digest, sizeof(digest), hash);
	str_add(text, hash);
	if (!str_ok(text))
		return -ENOMEM;
	rc = sha256_hmac(signer->sha, (struct piece){signer->signing_key, SHA256_SIZE},
			 (struct piece){text->b.data, text->b.len}, digest);
	hex_encode(digest, sizeof(digest), signature);
	return rc;
}

static int sort_headers(const struct sigv4_request *req, const struct sigv4_pair **sorted)
{
	if (req->n_header > SIGV4_PAIRS_MAX)
		return -EINVAL;
	for (size_t i = 0; i < req->n_header; i++)
		sorted[i] = &req->header[i];
	if (req->n_header > 1)
		qsort(sorted, req->n_header, sizeof(*sorted), by_header);
	return 0;
}

int sigv4_authorization(struct sigv4_signer *signer, const struct sigv4_request *req,
			const struct sigv4_key *key, int64_t when, struct str *out)
{
	enum { PLENTY = 1000 }; /* bytes; most texts are shorter, so they are allocated once */
	const struct sigv4_pair *sorted[SIGV4_PAIRS_MAX];
	auto_str struct str canonical = {0}, scope = {0}, text = {0};
	char date[SIGV4_DATE_SIZE], day[DAY_SIZE], signature[SHA256_HEX];
	int rc = sort_headers(req, sorted);
	if (rc)
		return rc;
	str_reserve(&canonical, PLENTY);
	str_addf(&canonical, "%s\n%s\n", req->method, req->path);
	rc = sigv4_query(req->query, req->n_query, &canonical);
	if (rc)
		return rc;
	str_add(&canonical, "\n");
	/* the headers as "a:1\nb:2\n", an empty line and the names */
	for (size_t i = 0; i < req->n_header; i++) {
		add_lower(&canonical, sorted[i]->name);
		str_add(&canonical, ":");
		add_trimmed(&canonical, sorted[i]->value);
		str_add(&canonical, "\n");
	}
	str_add(&canonical, "\n");
	add_names(&canonical, sorted, req->n_header);
	str_addf(&canonical, "\n%s", req->payload);
	sigv4_date(when, date);
	memcpy(day, date, DAY_SIZE - 1);
	day[DAY_SIZE - 1] = '\0';
	str_addf(&scope, "%s/%s/%s/aws4_request", day, key->region, key->service);
	str_reserve(&text, PLENTY);
	str_addf(&text, "%s\n%s\n%s\n", algorithm, date, str_text(&scope));
	if (!str_ok(&canonical) || !str_ok(&scope) || !str_ok(&text))
		return -ENOMEM;
	pthread_mutex_lock(&signer->lock);
	rc = sign_locked(signer, key, day, &canonical, &text, signature);
	pthread_mutex_unlock(&signer->lock);
	if (rc)
		return rc;
	str_reserve(out, PLENTY);
	str_addf(out, "%s Credential=%s/%s, SignedHeaders=", algorithm, key->access_key,
		 str_text(&scope));
	add_names(out, sorted, req->n_header);
	str_addf(out, ", Signature=%s", signature);
	return str_ok(out) ? 0 : -ENOMEM;
}
