/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds unfinished imports by their records. The check of a path looks for the record of that path.
 * The check of a directory also lists all records, because an import of a new domain has a record,
 * but no domain yet.
 */
#include "check.h"

#include <errno.h>
#include <string.h>

#include <engine/parts.h>
#include <names/names.h>
#include <schema/schema.h>
#include <store/store.h>
#include <bucket/schemas.h>

enum { RECORD_MAX = 1 << 20 /* bytes */ };

int check_import(struct domain_check *dc)
{
	const struct schema_ops *schema = bucket_new_domains(&dc->e->bucket);
	struct store *store = dc->e->bucket.store;
	auto_request struct store_request *req = store_request_new(store, STORE_HEAD);
	struct err why = ERR_INIT;
	if (!req)
		return err_no_memory(dc->c->err);
	if (schema->writer->import_key(domain_path(dc->d), req->key, req->room) < 0)
		return 0;
	store_run(store, req);
	if (store_failure(&req->answer, &why))
		return check_find(dc->c, ENGINE_CHECK_UNCHECKED, NULL, req->key,
				  "the record of an import cannot be read: %s", why.msg);
	if (store_absence(&req->answer))
		return 0;
	return check_find(dc->c, ENGINE_CHECK_UNFINISHED, NULL, req->key,
			  "an import that is to replace the domain is not finished");
}

struct records {
	struct check *c;
	struct engine *e;
	const struct schema_ops *schema;
	const char *dir;
	bool found; /* a finding was reported */
};

static bool is_below(const char *path, const char *dir)
{
	const size_t n = strlen(dir);
	return n == 0 || (strncmp(path, dir, n) == 0 && (path[n] == '/' || path[n] == '\0'));
}

/* Returns 1 if a mount shows the domain, so that the check of the domain reports the import, 0 if
 * not, or a negative errno. */
static int is_shown(const struct records *r, const char *path, struct err *why)
{
	auto_names_node struct names_node *n = NULL;
	char shown[STORE_KEY_MAX + 1];
	if (names_shown(r->schema->suffix, path, shown))
		return 0;
	const int rc = names_resolve(r->e->bucket.names, shown, &n, why);
	if (rc)
		return rc == -ENOENT ? 0 : rc;
	return n->kind == NAMES_DOMAIN && strcmp(n->path, path) == 0;
}

static int take_import(struct records *r, const char *key, const struct schema_import *import)
{
	struct err why = ERR_INIT;
	if (!is_below(import->path, r->dir))
		return 0;
	const int shown = is_shown(r, import->path, &why);
	r->found = r->found || shown != 1;
	if (shown < 0)
		return check_find_alone(r->c, import->path, ENGINE_CHECK_UNCHECKED, key,
					"the domain of an import cannot be looked up: %s", why.msg);
	if (shown)
		return 0;
	return check_find_alone(r->c, import->path, ENGINE_CHECK_UNFINISHED, key,
				"there is no domain yet: the import of %s is not finished",
				import->file);
}

/* Reads a record and reports its import. A damaged record does not show the path of its import, so
 * only a check of the whole bucket reports it. */
static int take_record(struct records *r, const char *key)
{
	struct store *store = r->e->bucket.store;
	auto_request struct store_request *req = store_request_new(store, STORE_GET);
	struct arena *arena = arena_new(SIZE_MAX);
	struct schema_import import;
	struct err why = ERR_INIT;
	int rc = req && arena ? 0 : err_no_memory(r->c->err);
	if (!rc) {
		store_request_key(req, key);
		req->max = RECORD_MAX;
		store_run(store, req);
		const struct bytes *body = &req->answer.body;
		if (store_failure(&req->answer, &why)) {
			r->found = true;
			rc = check_find_alone(r->c, r->dir, ENGINE_CHECK_UNCHECKED, key,
					      "the record of an import cannot be read: %s",
					      why.msg);
		} else if (store_absence(&req->answer))
			rc = 0; /* the import has just ended */
		else if (!r->schema->writer->import_parse(body->data, body->len, arena, &import,
							  &why)) {
			rc = take_import(r, key, &import);
		} else if (!r->dir[0])
			rc = check_find_alone(r->c, "", ENGINE_CHECK_ERROR, key, "%s", why.msg);
	}
	arena_free(arena);
	return rc;
}

static int list_records(struct records *r)
{
	struct store *store = r->e->bucket.store;
	auto_request struct store_request *req = store_request_new(store, STORE_LIST);
	struct err why = ERR_INIT;
	int rc = 0;
	if (!req)
		return err_no_memory(r->c->err);
	store_request_key(req, r->schema->writer->import_prefix);
	req->list.whole = true;
	store_run(store, req);
	if (store_failure(&req->answer, &why))
		return check_find_alone(r->c, r->dir, ENGINE_CHECK_UNCHECKED,
					r->schema->writer->import_prefix,
					"records of imports cannot be listed: %s", why.msg);
	const struct store_page *page = &req->answer.page;
	for (size_t i = 0; !rc && i < page->n; i++)
		rc = take_record(r, page->items[i].key);
	return rc;
}

int check_imports(struct check *c, struct engine *e, const char *dir)
{
	struct records r = {.c = c, .e = e, .dir = dir};
	int rc = 0;
	for (const struct schema_ops *const *s = schema_all(); !rc && *s; s++) {
		if (!(*s)->writer)
			continue; /* there are no imports to it */
		r.schema = *s;
		rc = list_records(&r);
	}
	return rc;
}

int check_import_of(struct check *c, struct engine *e, const char *path, bool *found)
{
	struct records r = {.c = c, .e = e, .dir = path};
	char key[STORE_KEY_MAX + 1];
	int rc = 0;
	for (const struct schema_ops *const *s = schema_all(); !rc && *s; s++) {
		r.schema = *s;
		if ((*s)->writer && (*s)->writer->import_key(path, key, sizeof(key)) > 0)
			rc = take_record(&r, key);
	}
	*found = r.found;
	return rc;
}
