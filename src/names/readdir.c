/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Directories: one delimited listing, the documents of all its prefixes side by side, and for the
 * few prefixes of which that is not enough (domains without an extension, broken documents, no
 * document) whether anything lies beneath. A prefix that nobody may look into hides no other. The
 * rules for names are rules.c's. Any thread.
 */
#include "names_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "children.h"
#include "domain_doc.h"
#include "name_cache.h"
#include "rules.h"

/* One candidate for a name. */
struct entry {
	struct names_node *node;
	bool bare;  /* the name is the domain's own and must still grow a suffix */
	bool known; /* remembered: valid for as long as before, not longer */
};

struct listing {
	struct names *ns;
	const char *dir;
	struct entry *entries;
	size_t n, cap;
	uint32_t unfit; /* keys that cannot be names */
	char *first_unfit;
	uint32_t closed; /* prefixes that cannot be looked into */
	char *first_closed;
};

/* A folded prefix that is not known yet. */
struct prefix {
	char *path;
	struct names_doc doc;
	int children; /* as of names_children_found(), where it was asked for */
	char *why;    /* heap; when that is an error */
};

static int add_entry(struct listing *l, struct names_node *node, bool bare)
{
	if (!node)
		return -ENOMEM;
	if (l->n == l->cap) {
		size_t cap = l->cap ? l->cap * 2 : 64;
		struct entry *entries = reallocarray(l->entries, cap, sizeof(*entries));
		if (!entries) {
			names_node_unref(node);
			return -ENOMEM;
		}
		l->entries = entries;
		l->cap = cap;
	}
	l->entries[l->n++] = (struct entry){.node = node, .bare = bare};
	return 0;
}

static void release_listing(struct listing *l)
{
	for (size_t i = 0; i < l->n; i++)
		names_node_unref(l->entries[i].node);
	free(l->entries);
	free(l->first_unfit);
	free(l->first_closed);
}

static void note_unfit(struct listing *l, const char *key)
{
	l->unfit++;
	if (!l->first_unfit)
		l->first_unfit = strdup(key);
}

static int add_plain(struct listing *l, const struct store_item *item)
{
	struct names_doc none = {0};
	struct names_node *node = names_node_new(item->key, NAMES_OBJECT, item->key, &none);
	if (node)
		node->meta = item->meta;
	return add_entry(l, node, false);
}

/* What a prefix is, from a node that is still valid. A bare domain is not taken from memory:
 * its name depends on its neighbours. Nor is what was closed: it is logged. */
static struct names_node *recall(struct listing *l, const char *path)
{
	struct names_node *n = names_cache_get(l->ns->cache, path, names_now(l->ns));
	bool named = names_has_extension(names_last(path));
	if (n && strcmp(n->path, path) == 0 && n->doc.kind != NAMES_DOC_CLOSED &&
	    ((n->kind == NAMES_DOMAIN && named) ||
	     (n->kind == NAMES_DIR && n->doc.kind != NAMES_DOC_ROOT)))
		return n;
	names_node_unref(n);
	return NULL;
}

/* Objects become entries, prefixes that are not remembered are left in *prefixes. */
static int sort_out(struct listing *l, const struct store_page *page, struct prefix **prefixes,
		    size_t *nprefixes)
{
	size_t skip = l->dir[0] ? strlen(l->dir) + 1 : 0;
	int rc = 0;
	*nprefixes = 0;
	*prefixes = calloc(page->n ? page->n : 1, sizeof(**prefixes));
	if (!*prefixes)
		return -ENOMEM;
	for (size_t i = 0; !rc && i < page->n; i++) {
		const struct store_item *item = &page->items[i];
		size_t n = strlen(item->key) - (item->is_prefix ? 1 : 0);
		auto_free char *path = strndup(item->key, n);
		if (!path)
			return -ENOMEM;
		if (n == skip || (n < skip && !item->is_prefix))
			continue; /* the directory's own marker object */
		if (n < skip || !names_ok(path + skip, n - skip) || !store_key_ok(path)) {
			note_unfit(l, item->key);
			continue;
		}
		if (names_is_hidden(l->ns->schemas, path))
			continue;
		if (!item->is_prefix) {
			rc = add_plain(l, item);
			continue;
		}
		struct names_node *known = recall(l, path);
		if (known) {
			rc = add_entry(l, known, false);
			if (!rc)
				l->entries[l->n - 1].known = true;
			continue;
		}
		(*prefixes)[(*nprefixes)++].path = path;
		path = NULL;
	}
	return rc;
}

static int get_docs(struct listing *l, struct prefix *prefixes, size_t n)
{
	auto_free const char **paths = calloc(n ? n : 1, sizeof(*paths));
	auto_free struct names_doc *docs = calloc(n ? n : 1, sizeof(*docs));
	if (!paths || !docs)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		paths[i] = prefixes[i].path;
	int rc = names_docs_get(l->ns, paths, n, docs);
	for (size_t i = 0; !rc && i < n; i++)
		prefixes[i].doc = docs[i];
	return rc;
}

static bool needs_children(const struct prefix *p)
{
	return names_needs_children(p->doc.kind, p->path);
}

static void release_asks(struct names_children_of *asks, size_t n)
{
	for (size_t i = 0; asks && i < n; i++)
		free(asks[i].why);
	free(asks);
}

/* Prefixes are closed when their own directory can be listed; else the failure is the whole
 * listing's, rather than half of it be shown. */
static int judge_closed(struct listing *l, const struct names_children_of *asks, size_t n,
			struct err *err)
{
	size_t i = 0;
	while (i < n && asks[i].found >= 0)
		i++;
	if (i == n || names_dir_answers(l->ns, l->dir, NULL) == 0)
		return 0;
	err_set(err, asks[i].found, "%s", asks[i].why);
	return err_wrap(err, asks[i].found, "listing %s/", asks[i].path);
}

/* Looks beneath the prefixes that need it, side by side. */
static int look_beneath(struct listing *l, struct prefix *prefixes, size_t n, struct err *err)
{
	struct names_children_of *asks = calloc(n ? n : 1, sizeof(*asks));
	size_t count = 0;
	if (!asks)
		return err_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < n; i++)
		if (needs_children(&prefixes[i]))
			asks[count++].path = prefixes[i].path;
	int rc = names_children_look(l->ns, asks, count);
	rc = rc ? err_set(err, rc, "out of memory") : judge_closed(l, asks, count, err);
	for (size_t i = 0, k = 0; !rc && i < n; i++) {
		if (!needs_children(&prefixes[i]))
			continue;
		prefixes[i].children = asks[k].found;
		prefixes[i].why = asks[k].why;
		asks[k++].why = NULL;
	}
	release_asks(asks, count);
	return rc;
}

/* Told in one line, however many there are. */
static void note_closed(struct listing *l, const struct prefix *p)
{
	if (l->closed++ == 0 && asprintf(&l->first_closed, "%s: %s", p->path, p->why) < 0)
		l->first_closed = NULL;
}

/* What cannot be looked into, but is there. */
static int add_closed(struct listing *l, const struct prefix *p)
{
	struct names_doc closed;
	note_closed(l, p);
	if (names_doc_fail(&closed, NAMES_DOC_CLOSED, p->children, p->why))
		return -ENOMEM;
	const enum names_kind kind = names_closed_kind(p->doc.kind, p->path);
	return add_entry(l, names_node_new(p->path, kind, p->path, &closed), false);
}

static int add_own(struct listing *l, const struct prefix *p, enum names_kind kind)
{
	struct names_doc doc;
	if (names_doc_copy(&p->doc, &doc))
		return -ENOMEM;
	return add_entry(l, names_node_new(p->path, kind, p->path, &doc), false);
}

static int add_prefix(struct listing *l, struct prefix *p)
{
	const struct names_rule rule = names_rule(p->doc.kind, p->path, p->children);
	int rc = 0;
	switch (rule.own) {
	case SHOWN_NOTHING:
		break;
	case SHOWN_DIR:
		rc = add_own(l, p, NAMES_DIR);
		break;
	case SHOWN_DOMAIN:
		rc = add_own(l, p, NAMES_DOMAIN);
		break;
	case SHOWN_CLOSED:
		rc = add_closed(l, p);
		break;
	}
	if (rc || !rule.bare)
		return rc;
	return add_entry(l, names_node_new(p->path, NAMES_DOMAIN, p->path, &p->doc), true);
}

static int add_prefixes(struct listing *l, const struct store_page *page, struct err *err)
{
	struct prefix *prefixes;
	size_t n;
	int rc = sort_out(l, page, &prefixes, &n);
	if (!rc)
		rc = get_docs(l, prefixes, n);
	int reason = rc ? 0 : look_beneath(l, prefixes, n, err);
	for (size_t i = 0; !rc && !reason && i < n; i++)
		rc = add_prefix(l, &prefixes[i]);
	for (size_t i = 0; i < n; i++) {
		free(prefixes[i].path);
		free(prefixes[i].why);
		names_doc_release(&prefixes[i].doc);
	}
	free(prefixes);
	return reason ? reason : rc ? err_set(err, rc, "out of memory") : 0;
}

/* By name; bare ones, whose names are not final, last. */
static int compare(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	if (x->bare != y->bare)
		return x->bare ? 1 : -1;
	int d = strcmp(x->node->name, y->node->name);
	return d ? d : (int)x->node->kind - (int)y->node->kind;
}

/* Leaves the first of each name. Returns how many names are final. */
static size_t drop_doubles(struct listing *l)
{
	size_t out = 0, final = 0;
	for (size_t i = 0; i < l->n; i++) {
		struct entry *en = &l->entries[i];
		if (out && !en->bare && !l->entries[out - 1].bare &&
		    strcmp(l->entries[out - 1].node->name, en->node->name) == 0) {
			log_warning(l->ns->env->log,
				    "%s: another object of this name is left out of the directory",
				    en->node->name);
			names_node_unref(en->node);
			continue;
		}
		if (!en->bare)
			final = out + 1;
		l->entries[out++] = *en;
	}
	l->n = out;
	return final;
}

static bool is_taken(const struct entry *entries, size_t n, const char *name)
{
	size_t lo = 0, hi = n;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		int d = strcmp(entries[mid].node->name, name);
		if (d == 0)
			return true;
		if (d < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return false;
}

/* The bare domain under the first free name; en->node stays as it is when there is none. */
static int rename_bare(struct listing *l, struct entry *en, size_t final)
{
	for (unsigned int times = 1; times <= NAMES_SUFFIXES; times++) {
		auto_free char *name = names_with_suffix(en->node->path, times);
		if (!name)
			return -ENOMEM;
		if (strlen(names_last(name)) > NAMES_MAX)
			break;
		if (is_taken(l->entries, final, name))
			continue;
		struct names_node *n =
			names_node_new(name, NAMES_DOMAIN, en->node->path, &en->node->doc);
		if (!n)
			return -ENOMEM;
		names_node_unref(en->node);
		*en = (struct entry){.node = n};
		return 0;
	}
	note_unfit(l, en->node->path);
	return 0;
}

static int name_bare(struct listing *l)
{
	size_t final = drop_doubles(l), out = final;
	int rc = 0;
	for (size_t i = final; !rc && i < l->n; i++)
		rc = rename_bare(l, &l->entries[i], final);
	for (size_t i = final; i < l->n; i++) {
		if (l->entries[i].bare)
			names_node_unref(l->entries[i].node);
		else
			l->entries[out++] = l->entries[i];
	}
	l->n = out;
	return rc;
}

static int build(struct listing *l, struct err *err)
{
	auto_request struct store_request *req = store_request_new(l->ns->store, STORE_LIST);
	if (!req)
		return err_set(err, -ENOMEM, "out of memory");
	if (l->dir[0])
		snprintf(req->key, req->room, "%s/", l->dir);
	req->list.delimit = true;
	req->list.whole = true;
	req->list.limit = CHILDREN_LISTED_MAX;
	store_run(l->ns->store, req);
	int rc = store_failure(&req->answer, err);
	if (!rc)
		rc = add_prefixes(l, &req->answer.page, err);
	if (rc)
		return err_wrap(err, rc, "listing %s", l->dir[0] ? req->key : "the bucket");
	if (l->n)
		qsort(l->entries, l->n, sizeof(*l->entries), compare);
	rc = name_bare(l);
	if (rc)
		return err_set(err, rc, "out of memory");
	if (l->n)
		qsort(l->entries, l->n, sizeof(*l->entries), compare);
	return 0;
}

/* ---- listings that are remembered ---- */

/* As they are kept: a byte for the kind, the name, a NUL; and a NUL at the end, so that an empty
 * directory is known too. */
static void keep(struct listing *l)
{
	struct bytes names = {0};
	int rc = 0;
	if (l->ns->list_ttl_ns == 0)
		return;
	for (size_t i = 0; !rc && i < l->n; i++) {
		const struct names_node *n = l->entries[i].node;
		const char kind = (char)('0' + n->kind), *name = names_last(n->name);
		rc = bytes_append(&names, &kind, 1);
		if (!rc)
			rc = bytes_append(&names, name, strlen(name) + 1);
		/* What could not be read may be readable in a moment. */
		if (n->doc.kind == NAMES_DOC_BROKEN || n->doc.kind == NAMES_DOC_CLOSED)
			rc = -EAGAIN;
	}
	if (!rc)
		rc = bytes_append_zero(&names, 1);
	if (rc)
		bytes_release(&names);
	else
		names_cache_put_list(l->ns->cache, l->dir, &names,
				     names_now(l->ns) + l->ns->list_ttl_ns);
}

static int tell_kept(const struct bytes *names, names_list_fn fn, void *arg)
{
	int rc = 0;
	for (const char *p = (const char *)names->data; !rc && *p; p += strlen(p) + 1)
		rc = fn(arg, p + 1, (enum names_kind)(*p - '0'));
	return rc;
}

static int tell(struct listing *l, names_list_fn fn, void *arg)
{
	int rc = 0;
	if (l->unfit)
		log_warning(l->ns->env->log,
			    "%s: %u keys cannot be file names and are left out, the first is %s",
			    l->dir[0] ? l->dir : "the bucket", l->unfit,
			    l->first_unfit ? l->first_unfit : "?");
	if (l->closed)
		log_warning(l->ns->env->log,
			    "%s: %u entries cannot be looked into, the first is %s",
			    l->dir[0] ? l->dir : "the bucket", l->closed,
			    l->first_closed ? l->first_closed : "?");
	for (size_t i = 0; i < l->n; i++)
		if (!l->entries[i].known && l->entries[i].node->doc.kind != NAMES_DOC_BROKEN)
			names_cache_put(l->ns->cache, l->entries[i].node,
					names_valid_until(l->ns, l->entries[i].node));
	keep(l);
	for (size_t i = 0; !rc && i < l->n; i++)
		rc = fn(arg, names_last(l->entries[i].node->name), l->entries[i].node->kind);
	return rc;
}

/* What was a directory a while ago is one still if there is anything in it: no need to ask what it
 * is before asking for what it holds. */
static int find_dir(struct listing *l, bool *sure, struct err *err)
{
	auto_names_node struct names_node *dir = names_cache_recall(l->ns->cache, l->dir);
	*sure = false;
	if (dir && dir->kind == NAMES_DIR)
		return 0;
	names_node_unref(dir);
	dir = NULL;
	int rc = names_resolve(l->ns, l->dir, &dir, err);
	if (!rc && dir->kind != NAMES_DIR)
		rc = err_set(err, -ENOTDIR, "%s: not a directory", l->dir);
	*sure = true;
	return rc;
}

int names_check_dir(struct names *ns, const char *path, struct err *err)
{
	auto_names_node struct names_node *dir = names_cache_recall(ns->cache, path);
	if (!dir || dir->kind != NAMES_DIR || dir->doc.kind != NAMES_DOC_CLOSED)
		return 0;
	int rc = names_dir_answers(ns, dir->path, err);
	if (!rc)
		names_cache_drop(ns->cache, path);
	return rc;
}

int names_list(struct names *ns, const char *path, names_list_fn fn, void *arg, struct err *err)
{
	struct listing l = {.ns = ns, .dir = path};
	auto_bytes struct bytes kept = {0};
	bool sure;
	if (ns->list_ttl_ns && names_cache_get_list(ns->cache, path, names_now(ns), &kept))
		return tell_kept(&kept, fn, arg);
	int rc = find_dir(&l, &sure, err);
	if (!rc)
		rc = build(&l, err);
	if (!rc && !sure && l.n == 0) {
		names_cache_drop(ns->cache, path);
		rc = find_dir(&l, &sure, err);
	}
	if (!rc)
		rc = tell(&l, fn, arg);
	release_listing(&l);
	return rc;
}
