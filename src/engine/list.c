/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Directories: one delimited listing, the documents of all its prefixes side by side, and for the
 * few prefixes of which that is not enough (domains without an extension, broken documents, no
 * document) whether anything lies beneath. A prefix that nobody may look into hides no other. The
 * rules for names are namespace.c's. Any thread.
 */
#include "internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "beneath.h"
#include "names.h"

/* One candidate for a name. */
struct entry {
	struct node *node;
	bool bare;  /* the name is the domain's own and must still grow a suffix */
	bool known; /* remembered: believed as long as before, not longer */
};

struct listing {
	struct engine *e;
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
	struct doc doc;
	int beneath; /* as of beneath_of_page(), where it was asked for */
	char *why;   /* heap; when that is an error */
};

static int add_entry(struct listing *l, struct node *node, bool bare)
{
	if (!node)
		return -ENOMEM;
	if (l->n == l->cap) {
		size_t cap = l->cap ? l->cap * 2 : 64;
		struct entry *entries = reallocarray(l->entries, cap, sizeof(*entries));
		if (!entries) {
			node_unref(node);
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
		node_unref(l->entries[i].node);
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
	struct doc none = {0};
	struct node *node = node_new(item->key, ENGINE_PLAIN, item->key, &none);
	if (node)
		node->meta = item->meta;
	return add_entry(l, node, false);
}

/* What a prefix is, from a node that is still believed. A bare domain is not taken from memory:
 * its name depends on its neighbours. Nor is what was closed: it is told of. */
static struct node *recall(struct listing *l, const char *path)
{
	struct node *n = nodes_get(l->e->nodes, path, engine_now(l->e));
	bool named = names_has_extension(names_last(path));
	if (n && strcmp(n->path, path) == 0 && n->doc.kind != DOC_CLOSED &&
	    ((n->kind == ENGINE_DOMAIN && named) ||
	     (n->kind == ENGINE_DIR && n->doc.kind != DOC_ROOT)))
		return n;
	node_unref(n);
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
		if (namespace_is_hidden(l->e, path))
			continue;
		if (!item->is_prefix) {
			rc = add_plain(l, item);
			continue;
		}
		struct node *known = recall(l, path);
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
	auto_free struct doc *docs = calloc(n ? n : 1, sizeof(*docs));
	if (!paths || !docs)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		paths[i] = prefixes[i].path;
	int rc = docs_get(l->e, paths, n, docs);
	for (size_t i = 0; !rc && i < n; i++)
		prefixes[i].doc = docs[i];
	return rc;
}

/* A directory store also lists directories that hold nothing, which deleted domains leave behind.
 */
static bool needs_children(const struct prefix *p)
{
	bool named = names_has_extension(names_last(p->path));
	return p->doc.kind == DOC_NONE || p->doc.kind == DOC_BROKEN ||
	       (p->doc.kind == DOC_ROOT && !named);
}

static void release_asks(struct beneath_ask *asks, size_t n)
{
	for (size_t i = 0; asks && i < n; i++)
		free(asks[i].why);
	free(asks);
}

/* Prefixes are closed when their own directory can be listed; else the failure is the whole
 * listing's, rather than half of it be shown. */
static int judge_closed(struct listing *l, const struct beneath_ask *asks, size_t n,
			struct err *err)
{
	size_t i = 0;
	while (i < n && asks[i].found >= 0)
		i++;
	if (i == n || beneath_dir_answers(l->e, l->dir, NULL) == 0)
		return 0;
	err_set(err, asks[i].found, "%s", asks[i].why);
	return err_wrap(err, asks[i].found, "listing %s/", asks[i].path);
}

/* Looks beneath the prefixes that need it, side by side. */
static int look_beneath(struct listing *l, struct prefix *prefixes, size_t n, struct err *err)
{
	struct beneath_ask *asks = calloc(n ? n : 1, sizeof(*asks));
	size_t count = 0;
	if (!asks)
		return err_set(err, -ENOMEM, "no memory");
	for (size_t i = 0; i < n; i++)
		if (needs_children(&prefixes[i]))
			asks[count++].path = prefixes[i].path;
	int rc = beneath_look(l->e, asks, count);
	rc = rc ? err_set(err, rc, "no memory") : judge_closed(l, asks, count, err);
	for (size_t i = 0, k = 0; !rc && i < n; i++) {
		if (!needs_children(&prefixes[i]))
			continue;
		prefixes[i].beneath = asks[k].found;
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

/* What cannot be looked into, but is there. A bare domain's document can be read nevertheless. */
static int add_closed(struct listing *l, struct prefix *p)
{
	struct doc closed;
	note_closed(l, p);
	if (doc_close(p->beneath, p->why, &closed))
		return -ENOMEM;
	const enum engine_kind kind = beneath_closed_kind(p->path, &p->doc);
	int rc = add_entry(l, node_new(p->path, kind, p->path, &closed), false);
	if (rc || p->doc.kind != DOC_ROOT)
		return rc;
	return add_entry(l, node_new(p->path, ENGINE_DOMAIN, p->path, &p->doc), true);
}

static int add_copy_as_dir(struct listing *l, const struct prefix *p)
{
	struct doc doc;
	if (doc_copy(&p->doc, &doc))
		return -ENOMEM;
	return add_entry(l, node_new(p->path, ENGINE_DIR, p->path, &doc), false);
}

static int add_prefix(struct listing *l, struct prefix *p)
{
	bool named = names_has_extension(names_last(p->path));
	bool is_file = p->doc.kind == DOC_ROOT || p->doc.kind == DOC_BROKEN;
	const bool children = p->beneath == BENEATH_MORE;
	if (p->beneath < 0)
		return add_closed(l, p);
	if (p->doc.kind == DOC_NONE && !children)
		return 0;
	if (!is_file || (p->doc.kind == DOC_BROKEN && named && children))
		return add_entry(l, node_new(p->path, ENGINE_DIR, p->path, &p->doc), false);
	if (!named && children) {
		int rc = add_copy_as_dir(l, p);
		if (rc)
			return rc;
	}
	return add_entry(l, node_new(p->path, ENGINE_DOMAIN, p->path, &p->doc), !named);
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
		doc_release(&prefixes[i].doc);
	}
	free(prefixes);
	return reason ? reason : rc ? err_set(err, rc, "no memory") : 0;
}

static int rank(const struct node *n)
{
	return n->kind == ENGINE_DOMAIN ? 0 : n->kind == ENGINE_DIR ? 1 : 2;
}

/* By name; bare ones, whose names are not final, last. */
static int compare(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	if (x->bare != y->bare)
		return x->bare ? 1 : -1;
	int d = strcmp(x->node->name, y->node->name);
	return d ? d : rank(x->node) - rank(y->node);
}

/* Leaves the first of each name. Returns how many names are final. */
static size_t drop_doubles(struct listing *l)
{
	size_t out = 0, final = 0;
	for (size_t i = 0; i < l->n; i++) {
		struct entry *en = &l->entries[i];
		if (out && !en->bare && !l->entries[out - 1].bare &&
		    strcmp(l->entries[out - 1].node->name, en->node->name) == 0) {
			log_warning(l->e->log,
				    "%s: another object of this name is left out of the directory",
				    en->node->name);
			node_unref(en->node);
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
		struct node *n = node_new(name, ENGINE_DOMAIN, en->node->path, &en->node->doc);
		if (!n)
			return -ENOMEM;
		node_unref(en->node);
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
			node_unref(l->entries[i].node);
		else
			l->entries[out++] = l->entries[i];
	}
	l->n = out;
	return rc;
}

static int build(struct listing *l, struct err *err)
{
	auto_page struct store_page page = {0};
	auto_free char *prefix = l->dir[0] ? names_join(l->dir, "") : strdup("");
	if (!prefix)
		return err_set(err, -ENOMEM, "no memory");
	int rc = store_list_all(l->e->store, prefix, STORE_DELIMIT, BENEATH_LISTED_MAX, &page, err);
	if (!rc)
		rc = add_prefixes(l, &page, err);
	if (rc)
		return err_wrap(err, rc, "listing %s", l->dir[0] ? prefix : "the bucket");
	if (l->n)
		qsort(l->entries, l->n, sizeof(*l->entries), compare);
	rc = name_bare(l);
	if (rc)
		return err_set(err, rc, "no memory");
	if (l->n)
		qsort(l->entries, l->n, sizeof(*l->entries), compare);
	return 0;
}

/* ---- listings that are believed ---- */

/* As they are kept: a byte for the kind, the name, a NUL; and a NUL at the end, so that an empty
 * directory is known too. */
static void keep(struct listing *l)
{
	struct bytes names = {0};
	int rc = 0;
	if (l->e->open_ttl_ns == 0)
		return;
	for (size_t i = 0; !rc && i < l->n; i++) {
		const struct node *n = l->entries[i].node;
		const char kind = (char)('0' + n->kind), *name = names_last(n->name);
		rc = bytes_append(&names, &kind, 1);
		if (!rc)
			rc = bytes_append(&names, name, strlen(name) + 1);
		/* What could not be read may be readable in a moment. */
		if (n->doc.kind == DOC_BROKEN || n->doc.kind == DOC_CLOSED)
			rc = -EAGAIN;
	}
	if (!rc)
		rc = bytes_append_zero(&names, 1);
	if (rc)
		bytes_release(&names);
	else
		nodes_put_names(l->e->nodes, l->dir, &names, engine_now(l->e) + l->e->open_ttl_ns);
}

static int tell_kept(const struct bytes *names, engine_list_fn fn, void *arg)
{
	int rc = 0;
	for (const char *p = (const char *)names->data; !rc && *p; p += strlen(p) + 1)
		rc = fn(arg, p + 1, (enum engine_kind)(*p - '0'));
	return rc;
}

static int tell(struct listing *l, engine_list_fn fn, void *arg)
{
	int rc = 0;
	if (l->unfit)
		log_warning(l->e->log,
			    "%s: %u keys cannot be file names and are left out, the first is %s",
			    l->dir[0] ? l->dir : "the bucket", l->unfit,
			    l->first_unfit ? l->first_unfit : "?");
	if (l->closed)
		log_warning(l->e->log, "%s: %u entries cannot be looked into, the first is %s",
			    l->dir[0] ? l->dir : "the bucket", l->closed,
			    l->first_closed ? l->first_closed : "?");
	for (size_t i = 0; i < l->n; i++)
		if (!l->entries[i].known && l->entries[i].node->doc.kind != DOC_BROKEN)
			nodes_put(l->e->nodes, l->entries[i].node,
				  namespace_expiry(l->e, l->entries[i].node));
	keep(l);
	for (size_t i = 0; !rc && i < l->n; i++)
		rc = fn(arg, names_last(l->entries[i].node->name), l->entries[i].node->kind);
	return rc;
}

/* What was a directory a while ago is one still if there is anything in it: no need to ask what it
 * is before asking for what it holds. */
static int find_dir(struct listing *l, bool *sure, struct err *err)
{
	auto_node struct node *dir = nodes_recall(l->e->nodes, l->dir);
	*sure = false;
	if (dir && dir->kind == ENGINE_DIR)
		return 0;
	node_unref(dir);
	dir = NULL;
	int rc = namespace_resolve(l->e, l->dir, &dir, err);
	if (!rc && dir->kind != ENGINE_DIR)
		rc = err_set(err, -ENOTDIR, "%s: not a directory", l->dir);
	*sure = true;
	return rc;
}

int engine_check_dir(struct engine *e, const char *path, struct err *err)
{
	auto_node struct node *dir = nodes_recall(e->nodes, path);
	if (!dir || dir->kind != ENGINE_DIR || dir->doc.kind != DOC_CLOSED)
		return 0;
	int rc = beneath_dir_answers(e, dir->path, err);
	if (!rc)
		nodes_drop(e->nodes, path);
	return rc;
}

int engine_list(struct engine *e, const char *path, engine_list_fn fn, void *arg, struct err *err)
{
	struct listing l = {.e = e, .dir = path};
	auto_bytes struct bytes kept = {0};
	bool sure;
	if (e->open_ttl_ns && nodes_get_names(e->nodes, path, engine_now(e), &kept))
		return tell_kept(&kept, fn, arg);
	int rc = find_dir(&l, &sure, err);
	if (!rc)
		rc = build(&l, err);
	if (!rc && !sure && l.n == 0) {
		nodes_drop(e->nodes, path);
		rc = find_dir(&l, &sure, err);
	}
	if (!rc)
		rc = tell(&l, fn, arg);
	release_listing(&l);
	return rc;
}
