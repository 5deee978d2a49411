/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See probe.h. A directory is read with readdir(3) and not through the store, which would sort all
 * of its entries first, and a bucket may have millions. No state.
 */
#include "probe.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/mem.h>
#include <bucket/schemas.h>
#include <names/names.h>

enum {
	ENTRIES_MAX = 4096, /* of a directory, and of all directories below it */
	LEVELS_MAX = 4,	    /* of directories below those of the place, for marks */
	BELOW_MAX = 8,
	DOCUMENT_MAX = 1 << 20, /* bytes */
};

static void cleanup_closedir(DIR **d)
{
	if (*d)
		closedir(*d);
}
#define auto_closedir __attribute__((cleanup(cleanup_closedir)))

const char *probe_new_storages(void)
{
	return schema_of_new_domains(schema_all())->storage->all;
}

/* ---- directories ---- */

static bool is_dir(int fd, const struct dirent *e)
{
	struct stat st;
	if (e->d_type != DT_UNKNOWN && e->d_type != DT_LNK)
		return e->d_type == DT_DIR;
	return fstatat(fd, e->d_name, &st, 0) == 0 && S_ISDIR(st.st_mode);
}

static int probe_entry(int fd, const struct dirent *e, struct schema_survey *seen)
{
	char key[SCHEMA_KEY_MAX + 1];
	struct stat st;
	const bool below = is_dir(fd, e);
	auto_free char *prefix = below ? names_join(e->d_name, "") : NULL;
	if (below && !prefix)
		return -ENOMEM;
	schema_survey_key(schema_all(), seen, below ? prefix : e->d_name);
	for (const struct schema_ops *const *schema = schema_all(); below && *schema; schema++)
		for (unsigned int i = 0;
		     !(seen->documents && seen->marks) &&
		     schema_document_key(*schema, e->d_name, i, key, sizeof(key));
		     i++)
			if (fstatat(fd, key, &st, 0) == 0 && S_ISREG(st.st_mode))
				schema_survey_key(schema_all(), seen, key);
	return 0;
}

/* Looks for the directory that has the storages of a schema. Fails with -ENOMEM. */
static int probe_storages(const char *dir, struct schema_survey *seen)
{
	const struct schema_ops *const *schema = schema_all();
	struct stat st;
	for (; *schema && !seen->storage; schema++) {
		if (!(*schema)->storage)
			continue;
		auto_free char *storages = names_join(dir, (*schema)->storage->all);
		if (!storages)
			return -ENOMEM;
		if (stat(storages, &st) == 0 && S_ISDIR(st.st_mode))
			schema_survey_key(schema_all(), seen, (*schema)->storage->all);
	}
	return 0;
}

/* Looks for marks below the directories of a directory, and in so many levels of directories below
 * these. A failure to read a directory does not matter. */
static int probe_levels(int parent, const char *name, int levels, int *entries,
			struct schema_survey *seen)
{
	struct schema_survey below = {0};
	const int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_closedir DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *e;
	int rc = 0;
	if (fd >= 0 && !d)
		close(fd);
	while (!rc && d && !below.marks && !seen->marks && *entries > 0 && (e = readdir(d))) {
		--*entries;
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
		    e->d_type == DT_LNK || !is_dir(fd, e))
			continue;
		rc = probe_entry(fd, e, &below);
		if (!rc && !below.marks && levels > 0)
			rc = probe_levels(fd, e->d_name, levels - 1, entries, seen);
	}
	if (below.marks)
		seen->documents = seen->marks = true;
	return rc;
}

int probe_dir(const char *dir, struct schema_survey *seen)
{
	*seen = (struct schema_survey){0};
	int rc = probe_storages(dir, seen);
	if (rc || seen->storage)
		return rc;
	auto_closedir DIR *d = opendir(dir);
	if (!d)
		return -errno;
	/* The marks of a domain count, wherever readdir(3) would show them. */
	struct stat st;
	const char *mark;
	for (unsigned int i = 0; (mark = schema_mark_name(schema_all(), i)); i++)
		if (fstatat(dirfd(d), mark, &st, 0) == 0 && S_ISREG(st.st_mode))
			schema_survey_key(schema_all(), seen, mark);
	for (int i = 0; !rc && i < ENTRIES_MAX; i++) {
		errno = 0;
		const struct dirent *e = readdir(d);
		if (!e)
			return -errno;
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			rc = probe_entry(dirfd(d), e, seen);
	}
	return rc;
}

int probe_dir_marks(const char *dir, bool deep, struct schema_survey *seen)
{
	int entries = ENTRIES_MAX;
	return probe_levels(AT_FDCWD, dir, deep ? LEVELS_MAX : 0, &entries, seen);
}

/* ---- S3 ---- */

static int run(struct store *s, struct store_request *req, struct err *err)
{
	store_run(s, req);
	return store_failure(&req->answer, err);
}

/* Lists the first `max` items below the prefix. */
static int list_page(struct store *s, const char *prefix, uint32_t max, struct store_request *req,
		     struct err *err)
{
	store_request_key(req, prefix);
	req->list.delimit = true;
	req->list.max = max;
	return run(s, req, err);
}

static int probe_page(struct store *s, const char *prefix, uint32_t max, struct schema_survey *seen,
		      struct store_request *req, struct err *err)
{
	const struct store_page *page = &req->answer.page;
	int rc = list_page(s, prefix, max, req, err);
	for (size_t i = 0; !rc && i < page->n; i++)
		schema_survey_key(schema_all(), seen, page->items[i].key);
	return rc;
}

/* Adds the first `max` keys that begin with `key`. */
static int probe_key(struct store *s, const char *key, uint32_t max, struct schema_survey *seen,
		     struct err *err)
{
	auto_request struct store_request *req = store_request_new(s, STORE_LIST);
	return req ? probe_page(s, key, max, seen, req, err) : err_no_memory(err);
}

/* Looks for documents among the first keys directly below the prefixes on the page, of which at
 * most BELOW_MAX are listed. */
static int probe_below(struct store *s, const struct store_page *page, struct schema_survey *seen,
		       struct err *err)
{
	int rc = 0, requests = 0;
	for (size_t i = 0; !rc && i < page->n && requests < BELOW_MAX && !seen->documents; i++) {
		if (!page->items[i].is_prefix)
			continue;
		rc = probe_key(s, page->items[i].key, STORE_PAGE_MAX, seen, err);
		requests++;
	}
	return rc;
}

int probe_store(struct store *s, struct schema_survey *seen, struct err *err)
{
	auto_request struct store_request *req = store_request_new(s, STORE_LIST);
	*seen = (struct schema_survey){0};
	if (!req)
		return err_no_memory(err);
	int rc = 0;
	for (const struct schema_ops *const *schema = schema_all(); !rc && *schema; schema++)
		if ((*schema)->storage && !seen->storage)
			rc = probe_key(s, (*schema)->storage->all, 1, seen, err);
	if (!rc && !seen->storage)
		rc = probe_page(s, "", STORE_PAGE_MAX, seen, req, err);
	if (!rc && !seen->storage && !seen->document)
		rc = probe_below(s, &req->answer.page, seen, err);
	return rc;
}

int probe_store_marks(struct store *s, struct schema_survey *seen, struct err *err)
{
	auto_request struct store_request *req = store_request_new(s, STORE_HEAD);
	const char *mark;
	*seen = (struct schema_survey){0};
	if (!req)
		return err_no_memory(err);
	for (unsigned int i = 0; (mark = schema_mark_name(schema_all(), i)); i++) {
		store_request_key(req, mark);
		store_run(s, req);
		if (req->answer.state == STORE_PRESENT)
			schema_survey_key(schema_all(), seen, mark);
		store_request_reset(req, STORE_HEAD);
	}
	return 0;
}

/* Finds out whether the first keys in a prefix are those of objects that lie at the top of a
 * bucket. */
static int find_objects(struct store *s, const char *prefix, bool *found, struct err *err)
{
	auto_request struct store_request *req = store_request_new(s, STORE_LIST);
	auto_free char *dir = prefix[0] ? names_join(prefix, "") : strdup("");
	struct schema_survey seen = {0};
	if (!req || !dir)
		return err_no_memory(err);
	int rc = list_page(s, dir, STORE_PAGE_MAX, req, err);
	for (size_t i = 0; !rc && i < req->answer.page.n; i++)
		schema_survey_key(schema_all(), &seen, req->answer.page.items[i].key + strlen(dir));
	*found = seen.storage;
	return rc;
}

int probe_has_storage(struct store *s, const char *prefix, bool *found, struct err *err)
{
	auto_request struct store_request *req = store_request_new(s, STORE_LIST);
	int rc = 0;
	*found = false;
	if (!req)
		return err_no_memory(err);
	for (const struct schema_ops *const *schema = schema_all(); !rc && *schema; schema++) {
		if (!(*schema)->storage || *found)
			continue;
		auto_free char *storages = names_join(prefix, (*schema)->storage->all);
		if (!storages)
			return err_no_memory(err);
		rc = list_page(s, storages, 1, req, err);
		*found = !rc && req->answer.page.n;
		store_request_reset(req, STORE_LIST);
	}
	return rc || *found ? rc : find_objects(s, prefix, found, err);
}

/* ---- documents ---- */

int probe_document(struct store *s, struct schema_survey *seen, struct err *err)
{
	auto_request struct store_request *req = store_request_new(s, STORE_GET);
	int rc = 0;
	if (!req)
		return err_no_memory(err);
	for (const struct schema_ops *const *schema = schema_all(); !rc && *schema; schema++) {
		store_request_reset(req, STORE_GET);
		if ((*schema)->marks || !schema_document_key(*schema, "", 0, req->key, req->room))
			continue;
		req->max = DOCUMENT_MAX;
		rc = run(s, req, err);
		if (req->answer.state == STORE_PRESENT)
			(*schema)->survey_document(seen, req->answer.body.data,
						   req->answer.body.len);
	}
	return rc;
}
