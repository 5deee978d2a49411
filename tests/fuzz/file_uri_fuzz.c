/* SPDX-License-Identifier: Apache-2.0 */
/*
 * URIs of files that domains refer to. The input is the URI; it is resolved by a bucket in S3, a
 * prefix in one, and a directory with a further directory that allow_uri names. Properties: a URI
 * that is accepted leads to a valid key, below the prefix or directory that it names; errors have a
 * text, and contain no credentials.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ranges/file_finder.h>

#include "require.h"

#include <engine/referred_files.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Only its address is used. */
static char place;
static struct store *const own = (struct store *)&place;

static struct files *make(const char *bucket, const char *allow)
{
	static struct env env;
	struct engine_options opt;
	struct files *files = NULL;
	env = env_real(NULL, NULL);
	engine_options_init(&opt);
	opt.bucket = bucket;
	opt.allow_uri = allow;
	require(files_new(&env, &opt, own, NULL, &files, NULL) == 0);
	return files;
}

static bool ends_with(const char *text, const char *end)
{
	const size_t n = strlen(text), m = strlen(end);
	return m <= n && strcmp(text + n - m, end) == 0;
}

/* What stands between "://", or the start, and an "@" in front of the first slash after it. */
static bool has_credentials(const char *uri)
{
	const char *scheme_end = strstr(uri, "://");
	const char *rest = scheme_end ? scheme_end + 3 : uri;
	return uri[0] != '/' && memchr(rest, '@', strcspn(rest, "/"));
}

static void resolve(struct files *f, const char *uri, const char *allowed)
{
	const struct file_finder *files = files_interface(f);
	struct err err = ERR_INIT;
	struct found_file out = {0};
	const int rc = files->resolve(files->ctx, uri, &out, &err);
	if (rc) {
		require(rc == err.code && err.msg[0]);
		require(rc == -EINVAL || rc == -EACCES || rc == -EOPNOTSUPP || rc == -ENAMETOOLONG);
		require(!has_credentials(uri) || !strchr(err.msg, '@'));
		return;
	}
	require(!has_credentials(uri) && out.store && store_key_ok(out.key));
	require(ends_with(uri, out.key));
	if (out.store != own)
		require(allowed && strncmp(uri, allowed, strlen(allowed)) == 0 && out.local_etags);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct files *bucket, *prefix, *dir;
	char *uri = malloc(size + 1);
	if (!bucket) {
		bucket = make("s3://b", NULL);
		prefix = make("s3://b/home/u", NULL);
		dir = make("/usr/share", "file:///usr/lib/,file:///usr/bin");
	}
	require(uri);
	memcpy(uri, data, size);
	uri[size] = '\0';
	resolve(bucket, uri, NULL);
	resolve(prefix, uri, NULL);
	resolve(dir, uri, "file:///usr/");
	free(uri);
	return 0;
}
