/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists a directory in three rounds: a delimited listing (of the root: root_list.c); then, in
 * parallel, the documents of all prefixes; then, in parallel, a listing below each prefix whose
 * document alone does not decide how it is shown (domains without an extension, folders, broken
 * documents, no document). If that listing shows a document that was absent, it is requested once
 * more.
 *
 * If a prefix is probably listed anyway, it is listed before the document is requested, and the
 * document only if the listing shows that it may exist (list_first()).
 *
 * If the documents are cached, a listing of the keys of all levels shows with their versions that
 * they are still valid, so a thousand of them cost one request (flat_list.c). This listing is made
 * if the directory probably has hardly more keys than documents, and it replaces the first one if
 * the store permits. A prefix that cannot be listed does not hide other entries. rules.c has the
 * rules for names. Any thread.
 */
#include "names_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "children.h"
#include "complete_dirs.h"
#include "domain_doc.h"
#include "flat_list.h"
#include "name_cache.h"
#include "prefix_pages.h"
#include "root_list.h"
#include "rules.h"

enum { FLAT_FROM = 16 /* documents for which a flat listing pays */ };

struct entry {
	struct names_node *node;
	bool bare;  /* the file of a bare domain: any other entry of this name wins */
	bool known; /* the node comes from the cache */
};

/* Entries that one line of the log reports together. */
struct omitted {
	uint32_t n;
	char *first;
};

struct listing {
	struct names *ns;
	const char *dir;
	struct entry *entries;
	size_t n, cap;
	bool is_wide;		/* see names_root_list() */
	bool is_marked;		/* an object in the directory is a mark: struct schema_mark */
	struct store_page flat; /* all keys, of all levels, or none */
	uint64_t began_ns;
	uint64_t changes;	   /* names_cache_changes() at the beginning */
	struct omitted unfit;	   /* keys that cannot be file names */
	struct omitted unlistable; /* prefixes that cannot be listed */
};

/* A prefix of the listing that has no valid node. */
struct prefix {
	char *path;
	struct names_doc doc;
	struct names_below below;
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
	store_page_release(&l->flat);
	free(l->unfit.first);
	free(l->unlistable.first);
}

static void note_unfit(struct listing *l, const char *key)
{
	atomic_store(&l->ns->left_out, true);
	if (l->unfit.n++ == 0)
		l->unfit.first = strdup(key);
}

static int add_plain(struct listing *l, const struct store_item *item)
{
	struct names_doc none = {0};
	struct names_node *node = names_node_new(item->key, NAMES_OBJECT, item->key, &none);
	if (node)
		node->meta = item->meta;
	return add_entry(l, node, false);
}

/* The valid node of a prefix, or NULL. A bare domain gives NULL, because the cache does not show
 * whether there is a directory of that name, too. An unlistable prefix gives NULL, so that it is
 * listed and logged again. */
static struct names_node *cached(struct listing *l, const char *path)
{
	struct names_node *n = names_cache_get(l->ns->cache, path, names_now(l->ns));
	bool named = names_has_extension(names_last(path));
	if (n && strcmp(n->path, path) == 0 && n->doc.kind != NAMES_DOC_UNLISTABLE &&
	    ((n->kind == NAMES_DOMAIN && named) ||
	     (n->kind == NAMES_DIR && n->doc.kind != NAMES_DOC_ROOT &&
	      n->doc.kind != NAMES_DOC_STORE)))
		return n;
	names_node_unref(n);
	return NULL;
}

/* Adds an entry for each object and each prefix with a valid node. The other prefixes are left in
 * *prefixes. */
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
		if (n <= skip || !names_ok(path + skip, n - skip) || !store_key_ok(path)) {
			note_unfit(l, item->key);
			continue;
		}
		if (names_is_hidden(l->ns->schemas, path))
			continue;
		if (!item->is_prefix) {
			l->is_marked |= l->dir[0] && schema_is_mark(l->ns->schemas, path);
			rc = add_plain(l, item);
			continue;
		}
		struct names_node *known = cached(l, path);
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

/* Lists the keys of all levels, if that saves many requests for documents. */
static void list_flat(struct listing *l, const struct prefix *prefixes, size_t n)
{
	size_t cached = 0;
	if (l->flat.n || !l->dir[0] || n < FLAT_FROM || names_flat_limit(l->ns, l->dir) == 0)
		return;
	for (size_t i = 0; i < n; i++)
		cached += names_doc_is_cached(l->ns, prefixes[i].path);
	if (cached >= FLAT_FROM)
		names_flat_list(l->ns, l->dir, &l->flat);
}

/* Whether the document of a prefix need not be requested. */
static bool has_doc(struct listing *l, struct prefix *p, bool again)
{
	if (again)
		return !names_doc_is_overtaken(&p->doc, &p->below);
	if (names_lacks_document(&p->below))
		return true;
	return l->flat.n && names_doc_confirm(l->ns, p->path, &l->flat, &p->doc);
}

/* again: only those that a listing shows, and that were absent. */
static int get_docs(struct listing *l, struct prefix *prefixes, size_t n, bool again)
{
	auto_free const char **paths = calloc(n ? n : 1, sizeof(*paths));
	auto_free struct names_doc *docs = calloc(n ? n : 1, sizeof(*docs));
	auto_free size_t *index = calloc(n ? n : 1, sizeof(*index));
	size_t unknown = 0;
	if (!paths || !docs || !index)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		if (has_doc(l, &prefixes[i], again))
			continue;
		index[unknown] = i;
		paths[unknown++] = prefixes[i].path;
	}
	const struct schema_listing listing = names_doc_listing(&l->flat);
	int rc = names_docs_get(l->ns, paths, unknown, l->flat.n && !again ? &listing : NULL, docs);
	for (size_t i = 0; !rc && i < unknown; i++)
		prefixes[index[i]].doc = docs[i];
	return rc;
}

/* If a prefix cannot be listed, and its marks do not show what it is, tries the directory itself.
 * If that fails too, the whole listing fails: half of a directory is never shown. */
static int check_failed(struct listing *l, const struct names_below *all, size_t n, struct err *err)
{
	size_t i = 0;
	while (i < n && (all[i].children >= 0 || all[i].store))
		i++;
	if (i == n || names_check_listing(l->ns, l->dir, NULL) == 0)
		return 0;
	err_set(err, all[i].children, "%s", all[i].why);
	return err_wrap(err, all[i].children, "listing %s/", all[i].path);
}

/* Which prefixes need a listing. */
enum need { NEED_FIRST, NEED_RULES, NEED_FOLDERS, NEED_BOTH };

/* Whatever its document says, if the bucket has domains that a listing shows, a prefix without an
 * extension needs a listing: it may be a folder, or a domain beside which there is a directory. */
static bool needs_first(const struct listing *l, const char *path)
{
	return names_is_probably_marked(l->ns->schemas, path) ||
	       (atomic_load(&l->ns->has_marks) && !names_has_extension(names_last(path)));
}

static bool needs_listing(const struct listing *l, const struct prefix *p, enum need need)
{
	if (p->below.path || need == NEED_FIRST)
		return !p->below.path && needs_first(l, p->path);
	if (p->doc.kind == NAMES_DOC_FOLDER)
		return need != NEED_RULES;
	return need != NEED_FOLDERS && names_needs_children(p->doc.kind, p->path);
}

/* Lists the keys below some of the prefixes. */
static int list_some(struct listing *l, struct prefix *prefixes, size_t n, enum need need,
		     struct err *err)
{
	auto_free struct names_below *all = calloc(n ? n : 1, sizeof(*all));
	size_t count = 0;
	if (!all)
		return err_no_memory(err);
	int rc = 0;
	for (size_t i = 0; !rc && i < n; i++) {
		struct prefix *p = &prefixes[i];
		if (!needs_listing(l, p, need))
			continue;
		p->below.path = p->path;
		if (l->flat.n)
			rc = names_children_flat(l->ns, &l->flat, &p->below);
		else
			all[count++].path = p->path;
	}
	if (need == NEED_FIRST)
		rc = names_prefix_pages(l->ns, l->dir, all, count);
	if (!rc)
		rc = names_children_find(l->ns, all, count);
	rc = rc ? err_set(err, rc, "out of memory") : check_failed(l, all, count, err);
	for (size_t i = 0, k = 0; k < count; i++)
		if (prefixes[i].path == all[k].path)
			prefixes[i].below = all[k++];
	return rc;
}

/* Lists prefixes that probably need it whatever their documents say. A directory bucket finds out
 * faster that there is no document. */
static int list_first(struct listing *l, struct prefix *prefixes, size_t n, struct err *err)
{
	if (l->flat.n || !l->ns->prefixes_have_objects)
		return 0;
	return list_some(l, prefixes, n, NEED_FIRST, err);
}

/* Lists the keys below the prefixes for which this is necessary. The document of a folder does not
 * say whether the folder is a domain, too. So if the bucket has domains that a listing shows, the
 * folders are listed, also if the first such domain has just been found. */
static int list_children(struct listing *l, struct prefix *prefixes, size_t n, struct err *err)
{
	const bool known = atomic_load(&l->ns->has_marks);
	const int rc = list_some(l, prefixes, n, known ? NEED_BOTH : NEED_RULES, err);
	if (rc || known || !atomic_load(&l->ns->has_marks))
		return rc;
	return list_some(l, prefixes, n, NEED_FOLDERS, err);
}

static int add_unlistable(struct listing *l, const struct prefix *p)
{
	struct names_doc doc;
	if (l->unlistable.n++ == 0 &&
	    asprintf(&l->unlistable.first, "%s: %s", p->path, p->below.why) < 0)
		l->unlistable.first = NULL;
	if (names_doc_fail(&doc, NAMES_DOC_UNLISTABLE, p->below.children, p->below.why))
		return -ENOMEM;
	const enum names_kind kind = names_unlistable_kind(p->doc.kind, p->path);
	return add_entry(l, names_node_new(p->path, kind, p->path, &doc), false);
}

/* Adds the entry of a prefix. If it is that of a domain whose keys are known, it gets them. */
static int add_domain(struct listing *l, struct names_node *node, struct prefix *p, bool bare)
{
	if (node && node->doc.kind == NAMES_DOC_STORE) {
		atomic_store(&node->keys, p->below.keys);
		p->below.keys = NULL;
	}
	return add_entry(l, node, bare);
}

static int add_own(struct listing *l, struct prefix *p, enum names_kind kind)
{
	struct names_doc doc;
	if (names_doc_copy(&p->doc, &doc))
		return -ENOMEM;
	struct names_node *node = names_node_new(p->path, kind, p->path, &doc);
	if (node) {
		node->is_marked = p->below.store;
		node->marker = p->below.marker;
	}
	return add_domain(l, node, p, false);
}

static int add_bare(struct listing *l, struct prefix *p)
{
	auto_free char *file =
		names_with_suffix(p->path, names_doc_suffix(l->ns->schemas, &p->doc));
	if (!file)
		return -ENOMEM;
	if (strlen(names_last(file)) > NAMES_MAX) {
		note_unfit(l, p->path);
		return 0;
	}
	struct names_node *node = names_node_new(file, NAMES_DOMAIN, p->path, &p->doc);
	if (node)
		node->marker = p->below.marker;
	return add_domain(l, node, p, true);
}

static int add_prefix(struct listing *l, struct prefix *p)
{
	names_doc_use_listing(&p->doc, &p->below);
	if (!l->is_marked)
		names_doc_use_mark(&p->doc, &p->below);
	const struct names_rule rule = names_doc_rule(&p->doc, p->path, p->below.children);
	int rc = 0;
	switch (rule.own) {
	case SHOWN_NOTHING:
		break;
	case SHOWN_DIR:
		rc = rule.unlisted ? 0 : add_own(l, p, NAMES_DIR);
		break;
	case SHOWN_DOMAIN:
		rc = add_own(l, p, NAMES_DOMAIN);
		break;
	case SHOWN_UNLISTABLE:
		rc = add_unlistable(l, p);
		break;
	}
	return rc || !rule.bare ? rc : add_bare(l, p);
}

static int add_prefixes(struct listing *l, const struct store_page *page, struct err *err)
{
	struct prefix *prefixes;
	size_t n;
	int failed = 0, rc = sort_out(l, page, &prefixes, &n);
	if (!rc) {
		list_flat(l, prefixes, n);
		failed = list_first(l, prefixes, n, err);
	}
	if (!rc && !failed)
		rc = get_docs(l, prefixes, n, false);
	if (!rc && !failed)
		failed = list_children(l, prefixes, n, err);
	if (!rc && !failed)
		rc = get_docs(l, prefixes, n, true);
	for (size_t i = 0; !rc && !failed && i < n; i++)
		rc = add_prefix(l, &prefixes[i]);
	for (size_t i = 0; i < n; i++) {
		free(prefixes[i].path);
		names_below_release(&prefixes[i].below);
		names_doc_release(&prefixes[i].doc);
	}
	free(prefixes);
	return failed ? failed : rc ? err_set(err, rc, "out of memory") : 0;
}

/* Orders by name, and entries of one name by precedence. */
static int compare(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int d = strcmp(x->node->name, y->node->name);
	if (d == 0)
		d = (int)x->bare - (int)y->bare;
	return d ? d : (int)x->node->kind - (int)y->node->kind;
}

static void log_left_out(const struct listing *l, const struct entry *en)
{
	if (en->bare)
		log_warning(l->ns->env->log,
			    "domain /%s is left out of the directory: the name %s is taken",
			    en->node->path, names_last(en->node->name));
	else
		log_warning(l->ns->env->log,
			    "%s: another object of this name is left out of the directory",
			    en->node->name);
}

/* Sorts the entries and keeps the first one of each name. */
static void sort(struct listing *l)
{
	size_t n = 0;
	if (l->n)
		qsort(l->entries, l->n, sizeof(*l->entries), compare);
	for (size_t i = 0; i < l->n; i++) {
		struct entry *en = &l->entries[i];
		if (n && strcmp(l->entries[n - 1].node->name, en->node->name) == 0) {
			log_left_out(l, en);
			atomic_store(&l->ns->left_out, true);
			names_node_unref(en->node);
			continue;
		}
		l->entries[n++] = *en;
	}
	l->n = n;
}

/* Keeps how many keys the next flat listing may find. A folder, and a domain that only a listing
 * shows, may have any number of keys below it. */
static void note_flat(struct listing *l)
{
	size_t domains = 0, folders = 0;
	for (size_t i = 0; i < l->n; i++) {
		const struct names_node *node = l->entries[i].node;
		const bool is_deep = node->kind == NAMES_DIR || node->doc.kind == NAMES_DOC_STORE;
		domains += node->kind == NAMES_DOMAIN && !is_deep;
		folders += is_deep;
	}
	const bool is_flat = domains >= FLAT_FROM && folders <= domains / FLAT_FROM;
	if (l->dir[0])
		names_flat_note(l->ns, l->dir, l->n, l->flat.n || is_flat);
}

static int list_below(struct listing *l, struct store_request *req, struct err *err)
{
	auto_page struct store_page grouped = {0};
	if (l->ns->prefixes_have_objects && names_flat_limit(l->ns, l->dir) &&
	    names_flat_list(l->ns, l->dir, &l->flat) == 0) {
		int rc = names_flat_group(&l->flat, l->dir, &grouped);
		return rc ? err_set(err, rc, "out of memory") : add_prefixes(l, &grouped, err);
	}
	snprintf(req->key, req->room, "%s/", l->dir);
	req->list.delimit = true;
	req->list.whole = true;
	req->list.limit = CHILDREN_LISTED_MAX;
	store_run(l->ns->store, req);
	int rc = store_failure(&req->answer, err);
	return rc ? rc : add_prefixes(l, &req->answer.page, err);
}

static int list_root(struct listing *l, struct err *err)
{
	auto_page struct store_page page = {0};
	int rc = names_root_list(l->ns, &page, &l->is_wide, err);
	return rc ? rc : add_prefixes(l, &page, err);
}

static int build(struct listing *l, struct err *err)
{
	auto_request struct store_request *req = store_request_new(l->ns->store, STORE_LIST);
	if (!req)
		return err_no_memory(err);
	int rc = l->dir[0] ? list_below(l, req, err) : list_root(l, err);
	if (rc)
		return err_wrap(err, rc, "listing %s", l->dir[0] ? req->key : "the bucket");
	sort(l);
	return 0;
}

/* ---- cached listings ---- */

/* How long the listing of a root with very many keys is valid at least. */
#define WIDE_TTL_NS (UINT64_C(300) * 1000000000)

/* Format of a cached list: for each entry a byte for the kind, the name, a NUL; then one more NUL,
 * so that the list of an empty directory is not empty. */
static void cache_list(struct listing *l)
{
	const struct names *ns = l->ns;
	const uint64_t least = l->is_wide && ns->ttl_ns ? WIDE_TTL_NS : 0;
	const uint64_t ttl_ns = max_u64(ns->list_ttl_ns, least);
	struct bytes names = {0};
	int rc = 0;
	if (ttl_ns == 0)
		return;
	for (size_t i = 0; !rc && i < l->n; i++) {
		const struct names_node *n = l->entries[i].node;
		const char kind = (char)('0' + n->kind), *name = names_last(n->name);
		rc = bytes_append(&names, &kind, 1);
		if (!rc)
			rc = bytes_append(&names, name, strlen(name) + 1);
		/* This entry may be readable soon, so the list is not cached. */
		if (n->doc.kind == NAMES_DOC_BROKEN || n->doc.kind == NAMES_DOC_UNLISTABLE)
			rc = -EAGAIN;
	}
	if (!rc)
		rc = bytes_append_zero(&names, 1);
	if (rc)
		bytes_release(&names);
	else
		names_cache_put_list(l->ns->cache, l->dir, &names, names_now(l->ns) + ttl_ns,
				     l->changes);
}

static int report_cached(const struct bytes *names, names_list_fn fn, void *arg)
{
	int rc = 0;
	for (const char *p = (const char *)names->data; !rc && *p; p += strlen(p) + 1)
		rc = fn(arg, p + 1, (enum names_kind)(*p - '0'));
	return rc;
}

/* Caches the nodes. `walk` is the number of the walk to which they belong, or 0. */
static void cache_nodes(struct listing *l, uint64_t walk)
{
	struct names *ns = l->ns;
	const uint64_t now = names_now(ns);
	for (size_t i = 0; i < l->n; i++) {
		struct names_node *node = l->entries[i].node;
		/* A document that cannot be read now may be readable soon. */
		if (!l->entries[i].known && node->doc.kind != NAMES_DOC_BROKEN)
			names_cache_put(ns->cache, node, now, names_valid_until(ns, node),
					l->changes);
		if (walk)
			names_cache_join_walk(ns->cache, node, walk);
	}
}

static uint64_t begin_walk(struct listing *l)
{
	const uint64_t now = names_now(l->ns);
	return names_cache_begin_walk(l->ns->cache, now, l->ns->ttl_ns, now - l->began_ns);
}

static void log_omitted(const struct listing *l, const struct omitted *o, const char *what)
{
	if (o->n)
		log_warning(l->ns->env->log, "%s: %u %s; the first is %s",
			    l->dir[0] ? l->dir : "the bucket", o->n, what,
			    o->first ? o->first : "?");
}

static int report(struct listing *l, names_list_fn fn, void *arg)
{
	int rc = 0;
	log_omitted(l, &l->unfit, "keys cannot be file names and are left out");
	log_omitted(l, &l->unlistable, "entries cannot be listed");
	cache_nodes(l, begin_walk(l));
	cache_list(l);
	note_flat(l);
	for (size_t i = 0; !rc && i < l->n; i++) {
		const struct names_node *node = l->entries[i].node;
		names_found(l->ns, node->name);
		rc = fn(arg, names_last(node->name), node->kind);
	}
	return rc;
}

/* Checks that the path is a directory. A path that was one when it was last read is not read again:
 * an entry in its listing proves that it still is one. *sure is set to true if it was read now, or
 * if its node is valid. */
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
	if (!dir || dir->kind != NAMES_DIR || dir->doc.kind != NAMES_DOC_UNLISTABLE)
		return 0;
	int rc = names_check_listing(ns, dir->path, err);
	if (!rc)
		names_cache_drop(ns->cache, path);
	return rc;
}

int names_list(struct names *ns, const char *path, names_list_fn fn, void *arg, struct err *err)
{
	struct listing l = {.ns = ns,
			    .dir = path,
			    .began_ns = names_now(ns),
			    .changes = names_cache_changes(ns->cache)};
	auto_bytes struct bytes list = {0};
	bool sure;
	if (names_cache_get_list(ns->cache, path, names_now(ns), &list))
		return report_cached(&list, fn, arg);
	int rc = find_dir(&l, &sure, err);
	if (!rc)
		rc = build(&l, err);
	if (!rc && !sure && l.n == 0) {
		names_cache_drop(ns->cache, path);
		rc = find_dir(&l, &sure, err);
	}
	if (!rc)
		rc = report(&l, fn, arg);
	release_listing(&l);
	return rc;
}

/* ---- the root after a mount ---- */

enum { PRELOAD_MAX = 64 };

static int preload(struct listing *l, struct store_request *req, struct err *err)
{
	store_request_key(req, "");
	req->list.delimit = true;
	req->list.max = PRELOAD_MAX;
	store_run(l->ns->store, req);
	int rc = store_failure(&req->answer, err);
	if (!rc && req->answer.page.more)
		rc = -E2BIG;
	return rc ? rc : add_prefixes(l, &req->answer.page, err);
}

void names_preload(struct names *ns)
{
	struct listing l = {.ns = ns, .dir = "", .changes = names_cache_changes(ns->cache)};
	struct err unused = ERR_INIT;
	auto_request struct store_request *req = store_request_new(ns->store, STORE_LIST);
	if (req && ns->ttl_ns && !ns->roots && preload(&l, req, &unused) == 0) {
		sort(&l);
		cache_nodes(&l, 0);
	}
	release_listing(&l);
}
