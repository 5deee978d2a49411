/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the checks of one domain, in order. See check.h. */
#include "check.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <engine/parts.h>
#include <names/names.h>
#include <schema/schema.h>
#include <store/store.h>
#include <bucket/schemas.h>

enum { LOOKS = 3 /* at a domain that other programs replace */ };

static enum engine_check_severity severity_of(enum tree_problem_kind kind)
{
	switch (kind) {
	case TREE_DAMAGE:
		break;
	case TREE_UNSUPPORTED:
		return ENGINE_CHECK_UNCHECKED;
	case TREE_ALTERED:
		return ENGINE_CHECK_NOTE;
	}
	return ENGINE_CHECK_ERROR;
}

/* Completes the key of a document or chunk in the bucket. In a domain that only a listing shows
 * (struct schema_mark), it is relative to the domain. Returns false if it is no such key. */
static bool complete_key(const struct domain *d, char key[STORE_KEY_MAX + 1])
{
	const struct schema_ops *schema = domain_schema(d);
	if (!schema->marks || !schema->is_domain_document(key))
		return key[0] && schema_is_storage(schema_all(), key);
	auto_free char *whole = names_join(domain_path(d), key);
	if (!whole || strlen(whole) > STORE_KEY_MAX)
		return false;
	strcpy(key, whole);
	return true;
}

/* Reports a problem of the tree. Its text begins with the key of a document or chunk, or names an
 * object by its id or its path. */
static int report_problem(struct domain_check *dc, enum tree_problem_kind kind, const char *text)
{
	const enum engine_check_severity severity = severity_of(kind);
	char key[STORE_KEY_MAX + 1] = "";
	const char *end = strstr(text, ": ");
	if (end && (size_t)(end - text) < sizeof(key)) {
		memcpy(key, text, (size_t)(end - text));
		key[end - text] = '\0';
	}
	if (complete_key(dc->d, key))
		return check_find(dc->c, severity, NULL, key, "%s", end + 2);
	return check_find(dc->c, severity, NULL, NULL, "%s", text);
}

static int report_problems(struct domain_check *dc)
{
	uint32_t reported[TREE_PROBLEM_KINDS] = {0};
	int rc = 0;
	const char *text;
	for (uint32_t i = 0; !rc && (text = tree_problem(dc->tree, i)); i++) {
		const enum tree_problem_kind kind = tree_problem_kind(dc->tree, i);
		rc = report_problem(dc, kind, text);
		reported[kind]++;
	}
	for (size_t i = 0; !rc && i < TREE_PROBLEM_KINDS; i++) {
		const enum tree_problem_kind kind = (enum tree_problem_kind)i;
		const uint32_t n = tree_problems_of(dc->tree, kind) - reported[i];
		if (n)
			rc = check_find(dc->c, severity_of(kind), NULL, NULL, "more problems: %u",
					n);
	}
	return rc;
}

/* Reports datasets whose elements this program cannot find. Those with a damaged reference are
 * among the problems of the tree. */
static int report_elsewhere(struct domain_check *dc)
{
	int rc = 0;
	for (uint32_t i = 0; !rc && i < tree_count(dc->tree); i++) {
		const uint32_t number = tree_nth(dc->tree, i);
		const struct object *o = &tree_object(dc->tree, number)->o;
		if (o->kind == OBJECT_DATASET && o->dataset.absence_unknown &&
		    !o->dataset.reference_damaged)
			rc = check_find_at(dc, ENGINE_CHECK_UNCHECKED, number, NULL, "%s",
					   o->dataset.absence_unknown);
	}
	return rc;
}

static int report_unaddressable(struct domain_check *dc)
{
	int rc = 0;
	for (uint32_t i = 0; !rc && i < tree_count(dc->tree); i++) {
		const uint32_t number = tree_nth(dc->tree, i);
		const struct object *o = &tree_object(dc->tree, number)->o;
		for (uint32_t k = 0; !rc && k < o->nattrs; k++)
			if (!schema_is_addressable(&o->attrs[k]))
				rc = check_find_at(
					dc, ENGINE_CHECK_NOTE, number, NULL,
					"attribute \"%.200s\": clients of HSDS cannot ask "
					"for it by its name, because the name contains "
					"\"/\"; in a mount it can be read",
					o->attrs[k].name);
	}
	return rc;
}

/* One note for all attributes: a file may have many. */
static int report_unserved(struct domain_check *dc)
{
	uint64_t n = 0;
	uint32_t object = 0;
	const char *first = NULL;
	for (uint32_t i = 0; i < tree_count(dc->tree); i++) {
		const uint32_t number = tree_nth(dc->tree, i);
		const struct object *o = &tree_object(dc->tree, number)->o;
		for (uint32_t k = 0; k < o->nattrs; k++) {
			if (schema_is_served(dc->tree, &o->attrs[k]) || n++)
				continue;
			object = number;
			first = o->attrs[k].name;
		}
	}
	if (!n)
		return 0;
	return check_find_at(
		dc, ENGINE_CHECK_NOTE, object, NULL,
		"attribute \"%.200s\": clients of HSDS cannot read its value, which "
		"JSON cannot hold; in a mount it can be read. Such attributes: %" PRIu64,
		first, n);
}

/* Returns the bytes of all chunks, or of those in HDF5 files, if all chunks are checked. */
static uint64_t expected_bytes(const struct domain_check *dc, bool only_files)
{
	uint64_t sum = 0;
	for (uint32_t i = 0; dc->c->all && i < tree_count(dc->tree); i++) {
		const uint32_t number = tree_nth(dc->tree, i);
		const struct object *o = &tree_object(dc->tree, number)->o;
		if ((!only_files || (o->kind == OBJECT_DATASET && o->dataset.reference)) &&
		    !add_u64(sum, check_chunk_bytes(dc, number), &sum))
			return UINT64_MAX;
	}
	return sum;
}

static int check_open(struct check *c, struct engine *e, const struct names_node *n,
		      struct domain *d)
{
	struct domain_check dc = {.c = c, .e = e, .d = d, .tree = domain_tree(d)};
	auto_free char *dir = strndup(n->name, names_parent_len(n->name));
	dc.paths = object_paths_new(dc.tree);
	c->result.objects = tree_count(dc.tree);
	int rc = dir && dc.paths ? 0 : err_no_memory(c->err);
	c->expected = expected_bytes(&dc, false);
	if (!rc)
		rc = report_problems(&dc);
	if (!rc)
		rc = report_elsewhere(&dc);
	if (!rc)
		rc = report_unaddressable(&dc);
	if (!rc && domain_schema(d)->documents)
		rc = report_unserved(&dc);
	if (!rc)
		rc = check_links(&dc);
	if (!rc)
		rc = check_external_links(&dc, dir);
	if (!rc)
		rc = check_image_open(&dc, dir);
	if (!rc)
		rc = check_image_compare(&dc);
	if (!rc)
		rc = domain_schema(d)->storage ? check_keys(&dc)
		     : domain_schema(d)->marks ? check_store(&dc)
					       : check_grid(&dc, false);
	/* The keys have shown which chunks are stored. */
	if (c->all && domain_schema(d)->storage &&
	    !add_u64(c->handled, expected_bytes(&dc, true), &c->expected))
		c->expected = UINT64_MAX;
	if (!rc && domain_schema(d)->storage)
		rc = check_grid(&dc, true);
	if (!rc)
		rc = check_import(&dc);
	check_image_close(dc.image);
	object_paths_free(dc.paths);
	free(dc.lost_why);
	return rc;
}

/* Reports why a domain cannot be opened. If no request has failed, the bucket has answered, so the
 * domain is damaged. */
static int report_closed(struct check *c, int rc, bool failed, const struct err *why)
{
	const bool unchecked = failed || (rc != -EIO && rc != -ENOENT && rc != -EISDIR);
	return check_find(c, unchecked ? ENGINE_CHECK_UNCHECKED : ENGINE_CHECK_ERROR, NULL, NULL,
			  "the domain cannot be opened: %s", why->msg);
}

static bool is_same_document(const struct names_node *a, const struct names_node *b)
{
	const struct schema_document *x = a->doc.document, *y = b->doc.document;
	return x && y ? strcmp(x->etag, y->etag) == 0 : x == y;
}

/* Looks a domain up again that cannot be opened. *now is what has its name, if another program has
 * replaced it since, or NULL. */
static void look_again(struct check *c, struct engine *e, const struct names_node *n,
		       struct names_node **now)
{
	names_forget(e->bucket.names, n->name);
	const int rc = names_resolve(e->bucket.names, n->name, now, NULL);
	c->is_gone = rc == -ENOENT || (!rc && (*now)->kind != NAMES_DOMAIN);
	if (!rc && (c->is_gone || is_same_document(n, *now))) {
		names_node_unref(*now);
		*now = NULL;
	}
}

static int check_node(struct check *c, struct engine *e, const struct names_node *n,
		      unsigned int looks)
{
	struct domain *d = NULL;
	struct err why = ERR_INIT;
	const uint64_t failures = check_failed_requests(e);
	auto_names_node struct names_node *now = NULL;
	auto_free char *path = NULL;
	if (asprintf(&path, "/%s", n->name) < 0) {
		path = NULL;
		return err_no_memory(c->err);
	}
	struct schema_document *document = names_doc_is_domain(&n->doc) ? n->doc.document : NULL;
	const struct domain_hint hint = {.document = document};
	int rc = domain_open(&e->bucket.domains, n->path, &hint, &d, &why);
	const bool failed = check_failed_requests(e) != failures;
	/* A store that is all of the bucket has no name that could be looked up. */
	if (rc && !failed && looks && n->doc.kind != NAMES_DOC_STORE)
		look_again(c, e, n, &now);
	if (c->is_gone || now)
		return c->is_gone ? 0 : check_node(c, e, now, looks - 1);
	check_begin(c, path);
	if (rc)
		rc = report_closed(c, rc, failed, &why);
	else
		rc = check_open(c, e, n, d);
	domain_unref(d);
	return rc ? rc : check_end(c);
}

int check_domain(struct check *c, struct engine *e, const struct names_node *n)
{
	c->is_gone = false;
	return check_node(c, e, n, LOOKS);
}
