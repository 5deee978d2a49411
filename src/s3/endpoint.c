/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The URL of a bucket: endpoint, addressing style, region ("Virtual hosting of buckets", Amazon S3
 * User Guide). Pure, except that it reads the environment and the shared config file through
 * aws_environment and resolves the path of the certificates.
 */
#include "s3_internal.h"

#include <aws/profile.h>
#include <aws/uri.h>

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Also ensures that the name of a bucket cannot change the rest of a URL. */
static bool bucket_ok(const char *bucket)
{
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
	const size_t n = strlen(bucket);
	return n >= 1 && n <= 255 && strspn(bucket, allowed) == n && bucket[0] != '.';
}

/* Returns true if the bucket can be part of the host, and a certificate for "*.host" covers the
 * result. */
static bool fits_in_host(const struct s3_endpoint *endpoint, const char *host)
{
	const char *bucket = str_text(&endpoint->bucket);
	const size_t n = strlen(bucket);
	const size_t host_len = strcspn(host, ":/");
	const bool is_address = host[0] == '[' || strspn(host, "0123456789.") >= host_len;
	if (is_address || !memchr(host, '.', host_len))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!islower((unsigned char)bucket[i]) && !isdigit((unsigned char)bucket[i]) &&
		    bucket[i] != '-')
			return false;
	return n >= 3 && n <= 63;
}

/* Returns true if the port of a host is valid, or if there is none. host is a name or an address of
 * n bytes. */
static bool port_ok(const char *host, size_t n)
{
	enum { PORT_DIGITS = 5 };
	unsigned long port;
	const char *colon = memrchr(host, ':', n), *end = host + n;
	if (!colon || colon + 1 == end || host[n - 1] == ']')
		return true;
	if (colon + 1 + strspn(colon + 1, "0123456789") != end || end - colon - 1 > PORT_DIGITS)
		return false;
	port = strtoul(colon + 1, NULL, 10);
	return port > 0 && port <= UINT16_MAX;
}

/* Reads a URL "scheme://host[:port][/path]". */
static int set_url(struct s3_endpoint *endpoint, const char *url)
{
	endpoint->tls = strncmp(url, "https://", 8) == 0;
	if (!endpoint->tls && strncmp(url, "http://", 7) != 0)
		return -EINVAL;
	const char *host = url + (endpoint->tls ? 8 : 7);
	const size_t host_len = strcspn(host, "/?#@");
	size_t path_len = strlen(host + host_len);
	if (host_len == 0 || strpbrk(host, "?#@ \t\r\n") || !port_ok(host, host_len))
		return -EINVAL;
	while (path_len && host[host_len + path_len - 1] == '/')
		path_len--;
	endpoint->path_style =
		endpoint->style == STORE_S3_STYLE_PATH ||
		(endpoint->style == STORE_S3_STYLE_AUTO && !fits_in_host(endpoint, host));
	str_release(&endpoint->host);
	str_release(&endpoint->root);
	if (!endpoint->path_style)
		str_addf(&endpoint->host, "%s.", str_text(&endpoint->bucket));
	str_addn(&endpoint->host, host, host_len);
	str_addn(&endpoint->root, host + host_len, path_len);
	return str_ok(&endpoint->host) && str_ok(&endpoint->root) ? 0 : -ENOMEM;
}

bool s3_region_ok(const char *region)
{
	const size_t n = strlen(region);
	return n > 0 && n < 32 && strspn(region, "abcdefghijklmnopqrstuvwxyz0123456789-") == n;
}

int s3_endpoint_set_region(struct s3_endpoint *endpoint, const char *region)
{
	auto_str struct str url = {0};
	str_release(&endpoint->region);
	str_add(&endpoint->region, region);
	if (!str_ok(&endpoint->region))
		return -ENOMEM;
	if (endpoint->is_custom)
		return 0;
	str_addf(&url, "https://s3.%s.amazonaws.com%s", region,
		 strncmp(region, "cn-", 3) == 0 ? ".cn" : "");
	return str_ok(&url) ? set_url(endpoint, str_text(&url)) : -ENOMEM;
}

/* Returns the position of "/BUCKET" at the end of the path, or NULL if the path does not end with
 * the bucket. */
static const char *find_at_end(const char *path, size_t n, const char *bucket)
{
	const size_t len = strlen(bucket);
	while (n && path[n - 1] == '/')
		n--;
	if (n <= len || path[n - len - 1] != '/' || strncmp(path + n - len, bucket, len) != 0)
		return NULL;
	return path + n - len - 1;
}

/* Returns the length of the name in a host with an optional port. */
static size_t name_len(const char *host, size_t n)
{
	const char *end = n ? memchr(host, host[0] == '[' ? ']' : ':', n) : NULL;
	return end ? (size_t)(end - host) : n;
}

static bool is_subdomain(const char *host, size_t n, const char *domain, size_t domain_n)
{
	return n >= domain_n && strncasecmp(host + n - domain_n, domain, domain_n) == 0 &&
	       (n == domain_n || host[n - domain_n - 1] == '.');
}

/* Returns true if a host, without the bucket, belongs to the service that the user has named. */
static bool is_same_service(const struct s3_endpoint *endpoint, const char *host, size_t n)
{
	static const char *const amazon[] = {"amazonaws.com", "amazonaws.com.cn"};
	const char *ours = str_text(&endpoint->host);
	if (!endpoint->path_style)
		ours += endpoint->bucket.b.len + 1;
	const size_t ours_n = name_len(ours, strlen(ours));
	n = name_len(host, n);
	for (size_t i = 0; i < sizeof(amazon) / sizeof(amazon[0]); i++)
		if (is_subdomain(ours, ours_n, amazon[i], strlen(amazon[i])) &&
		    is_subdomain(host, n, amazon[i], strlen(amazon[i])))
			return true;
	return is_subdomain(host, n, ours, ours_n);
}

int s3_endpoint_redirect(struct s3_endpoint *endpoint, const char *location, bool is_signed)
{
	auto_str struct str url = {0};
	const char *bucket = str_text(&endpoint->bucket);
	const char *host = strstr(location, "://");
	if (!host || (endpoint->tls && strncmp(location, "https://", 8) != 0))
		return -EINVAL;
	host += 3;
	const size_t n = strlen(bucket), scheme_len = (size_t)(host - location);
	const char *path = host + strcspn(host, "/?#");
	const char *end = find_at_end(path, strcspn(path, "?#"), bucket);
	enum store_s3_style style = STORE_S3_STYLE_PATH;
	str_addn(&url, location, scheme_len);
	if (strncmp(host, bucket, n) == 0 && host[n] == '.') {
		style = STORE_S3_STYLE_VIRTUAL;
		host += n + 1;
		end = path;
	} else if (!end) {
		return -EINVAL;
	}
	if (is_signed && !is_same_service(endpoint, host, strcspn(host, "/?#")))
		return -EINVAL;
	str_addn(&url, host, (size_t)(end - host));
	if (!str_ok(&url))
		return -ENOMEM;
	endpoint->style = style;
	endpoint->is_custom = true;
	return set_url(endpoint, str_text(&url));
}

bool s3_endpoint_is_guess(const struct s3_endpoint *endpoint)
{
	return endpoint->style == STORE_S3_STYLE_AUTO && endpoint->is_custom &&
	       !endpoint->path_style;
}

const char *s3_endpoint_service(const struct s3_endpoint *endpoint)
{
	const size_t bucket_n = endpoint->bucket.b.len + 1;
	return str_text(&endpoint->host) + (endpoint->path_style ? 0 : bucket_n);
}

int s3_endpoint_use_path(struct s3_endpoint *endpoint)
{
	auto_str struct str url = {0};
	str_addf(&url, "%s://%s%s", endpoint->tls ? "https" : "http", s3_endpoint_service(endpoint),
		 str_text(&endpoint->root));
	endpoint->style = STORE_S3_STYLE_PATH;
	return str_ok(&url) ? set_url(endpoint, str_text(&url)) : -ENOMEM;
}

int s3_endpoint_drop_bucket(struct s3_endpoint *endpoint)
{
	auto_str struct str root = {0};
	const char *path = str_text(&endpoint->root);
	const char *end = find_at_end(path, strlen(path), str_text(&endpoint->bucket));
	if (!end)
		return 1;
	str_addn(&root, path, (size_t)(end - path));
	if (!str_ok(&root))
		return -ENOMEM;
	str_release(&endpoint->root);
	endpoint->root = root;
	root = (struct str){0};
	return 0;
}

static const char *first(const char *a, const char *b, const char *c, const char *d)
{
	return a ? a : b ? b : c ? c : d;
}

/* Stores an absolute path, because a daemon changes its directory, and later renews credentials. */
static int set_ca_bundle(struct s3_endpoint *endpoint, const char *path, struct err *err)
{
	if (!path)
		return 0;
	auto_free char *whole = realpath(path, NULL);
	if (!whole)
		return err_errno(err, -errno, "certificates %s", path);
	str_add(&endpoint->ca_bundle, whole);
	return str_ok(&endpoint->ca_bundle) ? 0 : err_no_memory(err);
}

static int init(struct s3_endpoint *endpoint, const struct aws_environment *w,
		const struct store_s3_options *opt, const struct profile_files *files,
		struct err *err)
{
	const char *url = first(opt->endpoint, cred_env(w, "AWS_ENDPOINT_URL_S3"),
				cred_env(w, "AWS_ENDPOINT_URL"),
				profile_endpoint(files, files->profile, "s3"));
	if (!url)
		url = profile_get(files, files->profile, "endpoint_url");
	const char *region =
		first(opt->region, cred_env(w, "AWS_REGION"), cred_env(w, "AWS_DEFAULT_REGION"),
		      profile_get(files, files->profile, "region"));
	const char *style = profile_get(files, files->profile, "s3.addressing_style");
	const char *ca_bundle = first(opt->ca_bundle, cred_env(w, "AWS_CA_BUNDLE"),
				      profile_get(files, files->profile, "ca_bundle"), NULL);
	endpoint->style = opt->style;
	if (endpoint->style == STORE_S3_STYLE_AUTO && style && strcmp(style, "path") == 0)
		endpoint->style = STORE_S3_STYLE_PATH;
	if (endpoint->style == STORE_S3_STYLE_AUTO && style && strcmp(style, "virtual") == 0)
		endpoint->style = STORE_S3_STYLE_VIRTUAL;
	if (region && !s3_region_ok(region))
		return err_set(err, -EINVAL, "'%s' is not the name of a region", region);
	endpoint->is_custom = url != NULL;
	int rc = set_ca_bundle(endpoint, ca_bundle, err);
	if (rc)
		return rc;
	rc = url ? set_url(endpoint, url) : 0;
	if (rc)
		return err_set(err, rc, "endpoint '%s' is not an http or https URL", url);
	rc = s3_endpoint_set_region(endpoint, region ? region : "us-east-1");
	return rc ? err_set(err, rc, "bucket %s: out of memory", opt->bucket) : 0;
}

int s3_endpoint_init(struct s3_endpoint *endpoint, const struct aws_environment *w,
		     const struct store_s3_options *opt, struct err *err)
{
	auto_profiles struct profile_files files = {0};
	if (!opt->bucket || !bucket_ok(opt->bucket))
		return err_set(err, -EINVAL, "'%s' is not the name of a bucket",
			       opt->bucket ? opt->bucket : "");
	str_add(&endpoint->bucket, opt->bucket);
	int rc = profile_files_load(w, &files, err);
	return rc ? rc : init(endpoint, w, opt, &files, err);
}

void s3_endpoint_path(const struct s3_endpoint *endpoint, const char *key, struct str *out)
{
	str_reserve(out,
		    endpoint->root.b.len + endpoint->bucket.b.len + (key ? strlen(key) : 0) + 2);
	str_add(out, str_text(&endpoint->root));
	if (endpoint->path_style)
		str_addf(out, "/%s", str_text(&endpoint->bucket));
	if (key || !endpoint->path_style)
		str_add(out, "/");
	if (key)
		uri_encode(out, key, strlen(key), true);
}

int store_s3_identity(struct store *s, struct bytes *out)
{
	const struct s3_endpoint *endpoint = &s3_store_of(s)->endpoint;
	auto_str struct str text = {0};
	str_addf(&text, "%s://%s%s/%s", endpoint->tls ? "https" : "http", str_text(&endpoint->host),
		 str_text(&endpoint->root), str_text(&endpoint->bucket));
	return str_ok(&text) ? bytes_append(out, text.b.data, text.b.len) : -ENOMEM;
}

void s3_endpoint_release(struct s3_endpoint *endpoint)
{
	str_release(&endpoint->bucket);
	str_release(&endpoint->region);
	str_release(&endpoint->host);
	str_release(&endpoint->root);
	str_release(&endpoint->ca_bundle);
}
