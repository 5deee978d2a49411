/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recognises a bucket before it is shown. The schema judges; this file asks it the keys that the
 * first listings show. A directory is read as it is, because the store sorts a directory before it
 * gives the first entry, and a v1 bucket may have millions. Main thread, before anything is served.
 */
#include "recognise.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <store/s3.h>

#include "doc.h"
#include "names.h"

enum {
	ENTRIES_MAX = 4096, /* of a directory */
	BELOW_MAX = 8,
	LEVELS_MAX = 8,
};

/* The bucket that the place lies in, and the place's path there. Heap; NULL when there is none. */
struct above {
	char *bucket, *path;
};

static void cleanup_above(struct above *a)
{
	free(a->bucket);
	free(a->path);
}
#define auto_above __attribute__((cleanup(cleanup_above)))

static void cleanup_closedir(DIR **d)
{
	if (*d)
		closedir(*d);
}
#define auto_closedir __attribute__((cleanup(cleanup_closedir)))

/* ---- directories ---- */

static bool is_dir(int fd, const struct dirent *e)
{
	struct stat st;
	if (e->d_type != DT_UNKNOWN && e->d_type != DT_LNK)
		return e->d_type == DT_DIR;
	return fstatat(fd, e->d_name, &st, 0) == 0 && S_ISDIR(st.st_mode);
}

static int survey_entry(int fd, const struct dirent *e, const struct schema_ops *schema,
			struct schema_survey *seen)
{
	char key[SCHEMA_KEY_MAX + 1];
	struct stat st;
	const bool below = is_dir(fd, e);
	auto_free char *prefix = below ? names_join(e->d_name, "") : NULL;
	if (below && !prefix)
		return -ENOMEM;
	schema_survey_key(seen, below ? prefix : e->d_name);
	if (below && !seen->documents && schema->domain_key(e->d_name, key, sizeof(key)) > 0 &&
	    fstatat(fd, key, &st, 0) == 0 && S_ISREG(st.st_mode))
		schema_survey_key(seen, key);
	return 0;
}

int recognise_survey_dir(const char *dir, const struct schema_ops *schema,
			 struct schema_survey *seen)
{
	struct stat st;
	auto_free char *storage = names_join(dir, schema->storage);
	int rc = storage ? 0 : -ENOMEM;
	*seen = (struct schema_survey){0};
	if (!rc && stat(storage, &st) == 0 && S_ISDIR(st.st_mode)) {
		schema_survey_key(seen, schema->storage);
		return 0;
	}
	auto_closedir DIR *d = rc ? NULL : opendir(dir);
	if (!d)
		return rc ? rc : -errno;
	for (int i = 0; !rc && i < ENTRIES_MAX; i++) {
		errno = 0;
		const struct dirent *e = readdir(d);
		if (!e)
			return -errno;
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			rc = survey_entry(dirfd(d), e, schema, seen);
	}
	return rc;
}

/* ---- S3 ---- */

static int survey_page(struct store *s, const char *prefix, uint32_t max,
		       struct schema_survey *seen, struct store_page *page, struct err *err)
{
	const struct store_list list = {.prefix = prefix, .delimit = true, .max = max};
	int rc = store_list_page(s, &list, page, err);
	for (size_t i = 0; !rc && i < page->n; i++)
		schema_survey_key(seen, page->items[i].key);
	return rc;
}

static int survey_key(struct store *s, const char *key, struct schema_survey *seen, struct err *err)
{
	auto_page struct store_page page = {0};
	return survey_page(s, key, 1, seen, &page, err);
}

/* Looks for the documents of what the page shows as prefixes. */
static int survey_below(struct store *s, const struct schema_ops *schema,
			const struct store_page *page, struct schema_survey *seen, struct err *err)
{
	char key[SCHEMA_KEY_MAX + 1];
	int rc = 0, asked = 0;
	for (size_t i = 0; !rc && i < page->n && asked < BELOW_MAX && !seen->documents; i++) {
		const struct store_item *item = &page->items[i];
		if (!item->is_prefix)
			continue;
		auto_free char *path = strndup(item->key, strlen(item->key) - 1);
		if (!path)
			return err_set(err, -ENOMEM, "no memory");
		if (schema->domain_key(path, key, sizeof(key)) < 0)
			continue;
		rc = survey_key(s, key, seen, err);
		asked++;
	}
	return rc;
}

static int survey_s3(struct store *s, const struct schema_ops *schema, struct schema_survey *seen,
		     struct err *err)
{
	auto_page struct store_page page = {0};
	*seen = (struct schema_survey){0};
	int rc = survey_key(s, schema->storage, seen, err);
	if (!rc && !seen->storage)
		rc = survey_page(s, "", STORE_PAGE_MAX, seen, &page, err);
	if (!rc && !seen->storage && !seen->v1 && !seen->document)
		rc = survey_below(s, schema, &page, seen, err);
	return rc;
}

static int has_storage_s3(struct store *whole, const char *prefix, const struct schema_ops *schema,
			  bool *found, struct err *err)
{
	auto_page struct store_page page = {0};
	auto_free char *storage = names_join(prefix, schema->storage);
	const struct store_list list = {.prefix = storage, .delimit = true, .max = 1};
	if (!storage)
		return err_set(err, -ENOMEM, "no memory");
	int rc = store_list_page(whole, &list, &page, err);
	*found = !rc && page.n;
	return rc;
}

static int find_above_s3(const char *url, const struct schema_ops *schema, struct store *whole,
			 struct above *out, struct err *err)
{
	auto_free char *bucket = NULL, *prefix = NULL;
	bool found = false;
	int rc = stack_split_s3(url, &bucket, &prefix, err);
	if (rc || !prefix)
		return rc;
	auto_free char *above = strdup(prefix);
	if (!above)
		return err_set(err, -ENOMEM, "no memory");
	for (int i = 0; !rc && !found && i < LEVELS_MAX && above[0]; i++) {
		above[names_parent_len(above)] = '\0';
		rc = has_storage_s3(whole, above, schema, &found, err);
	}
	if (!found)
		return rc;
	out->path = strdup(prefix + strlen(above) + (above[0] ? 1 : 0));
	if (!out->path ||
	    asprintf(&out->bucket, "s3://%s%s%s", bucket, above[0] ? "/" : "", above) < 0)
		return err_set(err, -ENOMEM, "no memory");
	return 0;
}

/* ---- both ---- */

/* A document that is gone, or was not complete when it was read, has no root group. */
static int survey_document(struct store *s, const struct schema_ops *schema,
			   struct schema_survey *seen, struct err *err)
{
	struct store_get_result res = {0};
	char key[SCHEMA_KEY_MAX + 1];
	if (schema->domain_key("", key, sizeof(key)) < 0)
		return 0;
	int rc = store_get(s, key, 0, UINT64_MAX, DOC_MAX, NULL, &res, err);
	if (!rc)
		schema_survey_document(seen, res.body.data, res.body.len);
	bytes_release(&res.body);
	return rc == -ENOENT ? 0 : rc;
}

static int refuse_part(const struct schema_ops *schema, const char *name, enum schema_place place,
		       const struct above *above, struct err *err)
{
	char path[SCHEMA_KEY_MAX + sizeof(NAMES_SUFFIX)];
	const bool domain = place == SCHEMA_PLACE_DOMAIN;
	if (!above->bucket)
		return err_set(err, -EINVAL, "%s is a %s, not a bucket: use the bucket that it %s",
			       name, domain ? "single domain" : "folder of a bucket",
			       domain ? "belongs to" : "is in");
	if (schema->is_hidden(above->path))
		return err_set(err, -EINVAL,
			       "%s is a part of the bucket %s, where the data are stored: use %s",
			       name, above->bucket, above->bucket);
	snprintf(path, sizeof(path), "%s", above->path);
	if (domain)
		names_of_domain(path, sizeof(path));
	return err_set(err, -EINVAL, "%s is a %s of the bucket %s: use %s and look for %s%s in it",
		       name, domain ? "single domain" : "folder", above->bucket, above->bucket,
		       path, domain ? "" : "/");
}

static int refuse_dir(const struct schema_ops *schema, const char *name, enum schema_place place,
		      struct err *err)
{
	if (place == SCHEMA_PLACE_EMPTY)
		return err_set(err, -EINVAL,
			       "%s is an empty directory, not a bucket; -o allow_empty accepts it",
			       name);
	return err_set(err, -EINVAL,
		       "%s is not a bucket: neither the service's storage (%s) nor a domain "
		       "is there; -o allow_empty accepts it",
		       name, schema->storage);
}

static void warn_s3(struct log *log, const struct schema_ops *schema, const char *name,
		    enum schema_place place)
{
	if (place == SCHEMA_PLACE_EMPTY)
		log_warning(log, "%s: nothing is there", name);
	else
		log_warning(
			log,
			"%s may be no bucket of domains: neither the service's storage (%s) nor "
			"a domain is there",
			name, schema->storage);
}

/* Nothing but the message depends on what is above, except where there are documents and no
 * storage. */
static int find_above(const char *name, const struct schema_ops *schema,
		      const struct stack_parts *parts, const struct schema_survey *seen,
		      struct log *log, struct above *out, struct err *err)
{
	struct err why = ERR_INIT;
	const bool s3 = stack_is_s3(name);
	if (s3 && !seen->document && !seen->documents)
		return 0;
	int rc = s3 ? find_above_s3(name, schema, parts->whole, out, &why)
		    : engine_split(name, &out->bucket, &out->path, &why);
	if (rc == -ENOMEM)
		return err_set(err, rc, "no memory");
	if (s3 && rc && !seen->document)
		log_warning(log, "%s may be a folder of a bucket: %s is not there, and above: %s",
			    name, schema->storage, why.msg);
	return 0;
}

static int judge(const struct engine_options *opt, const struct schema_ops *schema,
		 const struct stack_parts *parts, struct schema_survey *seen, struct err *err)
{
	auto_above struct above above = {0};
	const char *name = opt->bucket;
	if (schema_recognise(seen, false) == SCHEMA_PLACE_BUCKET_V1)
		return err_set(err, -EOPNOTSUPP,
			       "%s is a bucket of schema v1, which is not supported yet: only "
			       "buckets of schema v2 can be read",
			       name);
	int rc = seen->document ? survey_document(parts->count, schema, seen, err) : 0;
	if (!rc)
		rc = find_above(name, schema, parts, seen, opt->log, &above, err);
	if (rc)
		return rc;
	const enum schema_place place = schema_recognise(seen, above.bucket);
	if (seen->document)
		return refuse_part(schema, name, place, &above, err);
	if (place == SCHEMA_PLACE_BUCKET || opt->allow_empty)
		return 0;
	if (above.bucket)
		return refuse_part(schema, name, SCHEMA_PLACE_FOLDER, &above, err);
	if (!stack_is_s3(name))
		return refuse_dir(schema, name, place, err);
	warn_s3(opt->log, schema, name, place);
	return 0;
}

int recognise_bucket(const struct engine_options *opt, const struct schema_ops *schema,
		     const struct stack_parts *parts, struct err *err)
{
	const bool s3 = stack_is_s3(opt->bucket);
	struct schema_survey seen;
	int rc = 0;
	if (s3)
		rc = survey_s3(parts->count, schema, &seen, err);
	else if ((rc = recognise_survey_dir(stack_dir(opt->bucket), schema, &seen)))
		err_errno(err, rc, "reading the directory");
	if (rc)
		err_wrap(err, rc, "bucket %s", opt->bucket);
	else if (!seen.storage)
		rc = judge(opt, schema, parts, &seen, err);
	if (s3)
		store_s3_rest(parts->bottom);
	return rc;
}
