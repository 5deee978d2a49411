/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the files that domains refer to. A URI comes from the bucket, so it is not trusted: it is
 * accepted only if it is inside of the mounted bucket, or below a prefix that the option allow_uri
 * names. These are the forms of a URI, and what they mean in a bucket of the name "b":
 *
 *   b/key, s3://b/key, /key         the object `key` of the mounted bucket
 *   other/key, s3://other/key       an object of another bucket of the same service
 *   file:///dir/key                 a file; of the mounted bucket if that is the directory /dir
 *
 * The name is that of the S3 bucket, the last component of the directory, or the option
 * bucket_name. The store of a directory follows no link that leads out of it. A store of another
 * bucket sends the same credentials to the same endpoint as that of the mounted one.
 *
 * Constant after files_new(); any thread.
 */
#include <engine/referred_files.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <base/str.h>

static const char s3_scheme[] = "s3://", file_scheme[] = "file://";

/* A prefix of URIs. */
struct allowed {
	char *uri;	     /* ends with "/" */
	char *root;	     /* what stands in front of keys: "s3://bucket/", "file:///dir/" */
	struct store *store; /* the bucket, or the directory */
	struct store_stack_parts parts;
};

struct files {
	struct file_finder base;
	struct store *own;
	char *name;   /* of the bucket */
	char *prefix; /* of the keys of the bucket that the mount shows, with a slash; or "" */
	char *dir;    /* of a bucket that is a directory, with a slash; or NULL */
	size_t n;
	struct allowed *allowed;
};

/* ---- the parts of a URI ---- */

static bool has_prefix(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Writes the URI in its long form, "s3://bucket/key" or "file:///path". Fails with -EINVAL,
 * -EOPNOTSUPP or -ENOMEM. */
static int normalize(const char *uri, struct str *out, struct err *err)
{
	const char *scheme_end = strstr(uri, "://");
	const char *rest = scheme_end ? scheme_end + 3 : uri;
	const bool file = has_prefix(uri, file_scheme);
	const size_t host = strcspn(rest, "/");
	if (memchr(rest, '@', host))
		return err_set(err, -EINVAL, "the URI of a file contains credentials");
	if (scheme_end && !file && !has_prefix(uri, s3_scheme))
		return err_set(err, -EOPNOTSUPP,
			       "%s: only s3:// and file:// are schemes of files that can be read",
			       uri);
	if (file ? host != 0 : host == 0)
		return err_set(err, -EINVAL, "%s: not the URI of a file", uri);
	if (!rest[host] || !store_key_ok(rest + host + 1))
		return err_set(err, -EINVAL, "%s: not the URI of a file", uri);
	str_addf(out, "%s%s", file ? file_scheme : s3_scheme, rest);
	return str_ok(out) ? 0 : err_no_memory(err);
}

/* What follows "bucket/" in "s3://bucket/key", if the bucket has this name; otherwise NULL. */
static const char *key_in_bucket(const char *uri, const char *name)
{
	const size_t scheme = sizeof(s3_scheme) - 1, n = strlen(name);
	if (!has_prefix(uri, s3_scheme) || strncmp(uri + scheme, name, n) != 0 ||
	    uri[scheme + n] != '/')
		return NULL;
	return uri + scheme + n + 1;
}

/* Returns the key of a file in the mounted bucket, or NULL if the file is not in it. */
static const char *own_key(const struct files *f, const char *uri)
{
	const char *key = key_in_bucket(uri, f->name);
	const char *prefix = f->prefix;
	if (!key && f->dir && has_prefix(uri, file_scheme)) {
		key = uri + sizeof(file_scheme) - 1;
		prefix = f->dir;
	}
	return key && has_prefix(key, prefix) ? key + strlen(prefix) : NULL;
}

static int take(struct store *from, bool is_dir, const char *key, struct found_file *out,
		struct err *err)
{
	if (!store_key_ok(key))
		return err_set(err, -EINVAL, "%s: not the key of an object", key);
	if (strlen(key) >= sizeof(out->key))
		return err_set(err, -ENAMETOOLONG, "%s: the key is too long", key);
	memcpy(out->key, key, strlen(key) + 1);
	out->store = from;
	out->local_etags = is_dir;
	return 0;
}

/* `full` is the URI in its long form. A directory may be a copy of the bucket that a reference
 * names. */
static int refuse(const struct files *f, const char *uri, const char *full, struct err *err)
{
	const char *bucket = full + sizeof(s3_scheme) - 1;
	auto_str struct str copy = {0};
	if (f->dir && has_prefix(full, s3_scheme))
		str_addf(&copy, "-o bucket_name=%.*s if it is a copy of that bucket, otherwise ",
			 (int)strcspn(bucket, "/"), bucket);
	return err_set(
		err, -EACCES,
		"%s is outside of the bucket \"%s%s%s\"; to read it, use %s-o allow_uri=%.*s", uri,
		f->name, f->prefix[0] ? "/" : "", f->prefix, str_text(&copy),
		(int)(strrchr(full, '/') + 1 - full), full);
}

static int resolve(void *ctx, const char *uri, struct found_file *out, struct err *err)
{
	const struct files *f = ctx;
	auto_str struct str full = {0};
	if (uri[0] == '/')
		return take(f->own, f->dir, uri + 1, out, err);
	int rc = normalize(uri, &full, err);
	if (rc)
		return rc;
	const char *inside = own_key(f, str_text(&full));
	if (inside)
		return take(f->own, f->dir, inside, out, err);
	for (size_t i = 0; i < f->n; i++)
		if (has_prefix(str_text(&full), f->allowed[i].uri))
			return take(f->allowed[i].store,
				    has_prefix(f->allowed[i].root, file_scheme),
				    str_text(&full) + strlen(f->allowed[i].root), out, err);
	return refuse(f, uri, str_text(&full), err);
}

/* ---- life ---- */

static int wrong_prefix(const char *uri, struct err *err)
{
	return err_set(err, -EINVAL,
		       "allow_uri=%s: must be s3://BUCKET/ or file:///DIRECTORY/, with or without "
		       "more of a path",
		       uri);
}

static int add_slash(char **text)
{
	const size_t n = strlen(*text);
	char *longer = n && (*text)[n - 1] == '/' ? *text : realloc(*text, n + 2);
	if (!longer)
		return -ENOMEM;
	if (longer[0] == '\0' || longer[strlen(longer) - 1] != '/')
		memcpy(longer + n, "/", 2);
	*text = longer;
	return 0;
}

/* No component of the path is empty or leads upwards. */
static bool is_path(const char *path)
{
	auto_free char *key = strdup(path);
	size_t n = key ? strlen(key) : 0;
	if (n && key[n - 1] == '/')
		key[n - 1] = '\0';
	return key && (!key[0] || store_key_ok(key));
}

/* Opens the bucket or directory of one prefix. */
static int open_allowed(const struct env *env, const struct engine_options *opt, struct store *own,
			struct http_stats *meter, struct allowed *a, struct err *err)
{
	const bool s3 = has_prefix(a->uri, s3_scheme);
	if (!s3 && !has_prefix(a->uri, file_scheme))
		return wrong_prefix(a->uri, err);
	const char *path = a->uri + (s3 ? sizeof(s3_scheme) : sizeof(file_scheme)) - 1;
	const size_t host = strcspn(path, "/");
	if ((s3 ? host == 0 : host != 0) || !path[host] || memchr(path, '@', host) ||
	    !is_path(path + host + 1))
		return wrong_prefix(a->uri, err);
	a->root = s3 ? strndup(a->uri, (size_t)(path - a->uri) + host + 1) : strdup(a->uri);
	if (!a->root)
		return err_no_memory(err);
	auto_free char *bucket = strndup(a->root, strlen(a->root) - (strlen(a->root) > 8));
	struct engine_options other = *opt;
	if (!bucket)
		return err_no_memory(err);
	other.bucket = bucket;
	a->store = store_stack_new(env, &other, NULL, own, meter, &a->parts, err);
	return a->store ? 0
			: err_wrap(err, err->code ? err->code : -ENOMEM, "allow_uri=%s", a->uri);
}

static int allow(struct files *f, const struct env *env, const struct engine_options *opt,
		 struct http_stats *meter, struct err *err)
{
	auto_free char *list = strdup(opt->allow_uri ? opt->allow_uri : "");
	char *rest = list;
	if (!list)
		return err_no_memory(err);
	while (rest && *rest) {
		const char *uri = strsep(&rest, ",");
		struct allowed *more = realloc(f->allowed, (f->n + 1) * sizeof(*more));
		if (!more)
			return err_no_memory(err);
		f->allowed = more;
		f->allowed[f->n] = (struct allowed){.uri = strdup(uri)};
		struct allowed *a = &f->allowed[f->n++];
		if (!a->uri || add_slash(&a->uri))
			return err_no_memory(err);
		const int rc = open_allowed(env, opt, f->own, meter, a, err);
		if (rc)
			return rc;
	}
	return 0;
}

static int name_s3(struct files *f, const char *bucket, struct err *err)
{
	char *prefix;
	int rc = store_stack_split_s3(bucket, &f->name, &prefix, err);
	if (rc)
		return rc;
	f->prefix = prefix ? prefix : strdup("");
	if (!f->prefix || (prefix && add_slash(&f->prefix)))
		return err_no_memory(err);
	return 0;
}

static int name_dir(struct files *f, const char *bucket, struct err *err)
{
	f->dir = realpath(store_stack_dir(bucket), NULL);
	if (!f->dir)
		return err_errno(err, -errno, "%s", bucket);
	const char *last = strrchr(f->dir, '/');
	f->name = strdup(last ? last + 1 : f->dir);
	f->prefix = strdup("");
	if (!f->name || !f->prefix || add_slash(&f->dir))
		return err_no_memory(err);
	return 0;
}

/* A name that the user gives is that of the place that is mounted, with its prefix. */
static int set_name(struct files *f, const char *name, struct err *err)
{
	if (!store_key_ok(name) || strchr(name, '/') || strchr(name, '@'))
		return err_set(err, -EINVAL, "bucket_name=%s: must be the name of a bucket", name);
	free(f->name);
	f->name = strdup(name);
	f->prefix[0] = '\0';
	return f->name ? 0 : err_no_memory(err);
}

int files_new(const struct env *env, const struct engine_options *opt, struct store *own,
	      struct http_stats *meter, struct files **out, struct err *err)
{
	struct files *f = calloc(1, sizeof(*f));
	if (!f)
		return err_no_memory(err);
	f->base = (struct file_finder){.resolve = resolve, .ctx = f};
	f->own = own;
	int rc = store_stack_is_s3(opt->bucket) ? name_s3(f, opt->bucket, err)
						: name_dir(f, opt->bucket, err);
	if (!rc && opt->bucket_name)
		rc = set_name(f, opt->bucket_name, err);
	if (!rc)
		rc = allow(f, env, opt, meter, err);
	if (rc) {
		files_free(f);
		return rc;
	}
	*out = f;
	return 0;
}

void files_free(struct files *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->n; i++) {
		store_free(f->allowed[i].store);
		free(f->allowed[i].root);
		free(f->allowed[i].uri);
	}
	free(f->allowed);
	free(f->name);
	free(f->prefix);
	free(f->dir);
	free(f);
}

bool files_has_local_etags(const struct files *f)
{
	return f->dir;
}

const char *files_bucket_name(const struct files *f)
{
	return f->name;
}

const char *files_bucket_prefix(const struct files *f)
{
	return f->prefix;
}

const struct file_finder *files_interface(struct files *f)
{
	return &f->base;
}

uint64_t files_failures(const struct files *f)
{
	uint64_t n = 0;
	for (size_t i = 0; i < f->n; i++)
		n += store_stack_failures(&f->allowed[i].parts);
	return n;
}

void files_stop_threads(struct files *f)
{
	for (size_t i = 0; f && i < f->n; i++)
		store_stack_stop_threads(&f->allowed[i].parts);
}
