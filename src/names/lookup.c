/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resolves a path of the mount. The path may be a domain, a folder, a prefix, an object, or the
 * file of a bare domain, which is found under its own name, too. A look-up takes up to four
 * requests: the document, a listing of the prefix, the object's first byte, and the document of the
 * bare domain. They are sent in one round, and rules.c decides. If the bucket has shown domains
 * that only a listing shows, the document and the listing of such a domain are in this round, too,
 * otherwise in a later one. If neither the document nor the prefix can be read, the path exists
 * only if the listing of its directory shows it, or if an object shows that it is such a domain. So
 * in a bucket that refuses every request no name exists. Any thread.
 */
#include "names_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "children.h"
#include "complete_dirs.h"
#include "domain_doc.h"
#include "name_cache.h"
#include "node.h"
#include "root_list.h"
#include "rules.h"

/* ---- one round of requests ---- */

enum { OBJECT_ABSENT = 1 };

/* The answers. A failure counts only if no other answer decides, so each has its own member. */
struct probe {
	uint64_t began_ns;
	struct names_doc doc; /* of this path */
	struct names_below below;
	int object; /* the object at this path: 0, OBJECT_ABSENT, or negative */
	struct err object_err;
	struct store_meta meta;
	bool has_note;
	char note[STORE_NOTE_MAX + 1];
	struct names_doc bare; /* of the bare domain: at "run" when the path is "run.h5" */
	/* At the path of the domain that only a listing shows: "x.zarr" when this path is
	 * "x.zarr.nc". marked.path is NULL as long as it has not been asked. */
	struct names_below marked;
	struct names_doc marked_doc;
};

static void release_probe(struct probe *p)
{
	names_doc_release(&p->doc);
	names_doc_release(&p->bare);
	names_doc_release(&p->marked_doc);
	names_below_release(&p->below);
	names_below_release(&p->marked);
}

enum { REQ_OBJECT, REQ_CHILDREN, REQ_DOC, REQ_BARE, REQ_MARKED_CHILDREN, REQ_MARKED_DOC, REQ_MAX };

/* A get of the first byte and not a head: a service proves with the body of its error document that
 * an object is absent, and the answer to a head has no body. */
static void request_object(const char *path, struct store_request *req)
{
	store_request_key(req, path);
	req->range.length = 1;
}

static void take_object(const struct store_request *req, struct probe *p)
{
	p->object = store_absence(&req->answer) ? OBJECT_ABSENT : 0;
	if (!p->object)
		p->object = store_failure(&req->answer, &p->object_err);
	p->meta = req->answer.meta;
	p->has_note = req->answer.has_note;
	strcpy(p->note, req->answer.note);
}

/* Takes the answers for a path: a listing, and the document if it was requested. */
static int take_path(struct names *ns, struct store_request *children, bool has_doc,
		     struct names_doc_request *request, struct store_request *doc_answer,
		     struct names_below *below, struct names_doc *doc)
{
	const int listed = names_children_take(ns, children, below);
	const struct schema_listing listing = names_doc_listing(&children->answer.page);
	/* Of a path with many keys below it, the page has only the first ones. */
	if (!store_failure(&children->answer, NULL))
		request->classify.listing = &listing;
	const int rc = has_doc ? names_doc_finish(ns, request, doc_answer, doc) : 0;
	request->classify.listing = NULL;
	return rc ? rc : listed;
}

static int run_round(struct names *ns, const char *path, const char *bare, const char *marked,
		     struct store_request *const reqs[REQ_MAX], struct probe *p)
{
	struct names_doc_request doc = {0}, bare_doc = {0}, marked_doc = {0};
	struct store_request *made[REQ_MAX] = {reqs[REQ_OBJECT], reqs[REQ_CHILDREN]};
	size_t n = 2;
	request_object(path, reqs[REQ_OBJECT]);
	names_children_prepare(path, reqs[REQ_CHILDREN]);
	const bool has_doc = names_doc_prepare(ns, path, NULL, &doc, reqs[REQ_DOC]);
	const bool has_bare = bare && names_doc_prepare(ns, bare, NULL, &bare_doc, reqs[REQ_BARE]);
	const bool has_marked =
		marked && names_doc_prepare(ns, marked, NULL, &marked_doc, reqs[REQ_MARKED_DOC]);
	if (has_doc)
		made[n++] = reqs[REQ_DOC];
	if (has_bare)
		made[n++] = reqs[REQ_BARE];
	if (marked) {
		names_children_prepare(marked, reqs[REQ_MARKED_CHILDREN]);
		made[n++] = reqs[REQ_MARKED_CHILDREN];
		p->marked.path = marked;
	}
	if (has_marked)
		made[n++] = reqs[REQ_MARKED_DOC];
	store_run_all(ns->store, made, n);
	take_object(reqs[REQ_OBJECT], p);
	int rc =
		take_path(ns, reqs[REQ_CHILDREN], has_doc, &doc, reqs[REQ_DOC], &p->below, &p->doc);
	const int bare_rc =
		has_bare ? names_doc_finish(ns, &bare_doc, reqs[REQ_BARE], &p->bare) : 0;
	const int marked_rc =
		marked ? take_path(ns, reqs[REQ_MARKED_CHILDREN], has_marked, &marked_doc,
				   reqs[REQ_MARKED_DOC], &p->marked, &p->marked_doc)
		       : 0;
	return rc ? rc : bare_rc ? bare_rc : marked_rc;
}

/* Sends the requests for a name. `bare` is the path of the bare domain, and `marked` that of the
 * domain that only a listing shows; each may be NULL. Fails with -ENOMEM; p is then empty. */
static int probe(struct names *ns, const char *path, const char *bare, const char *marked,
		 struct probe *p)
{
	struct store_request **reqs = store_requests_new(ns->store, REQ_MAX);
	*p = (struct probe){.began_ns = names_now(ns), .below = {.path = path}};
	if (!reqs)
		return -ENOMEM;
	int rc = run_round(ns, path, bare, marked, reqs, p);
	store_requests_free(reqs, REQ_MAX);
	if (!rc && names_doc_is_overtaken(&p->doc, &p->below))
		rc = names_docs_get(ns, &path, 1, NULL, &p->doc);
	if (!rc && atomic_load(&ns->has_marks))
		rc = names_children_marks(ns, &p->below, 1);
	if (rc)
		release_probe(p);
	return rc;
}

/* ---- the object, prefix or domain with this name in the bucket ---- */

/* Makes the node of a name. `doc` is transferred. */
static int make_node(const char *mount_path, enum names_kind kind, const char *path,
		     struct names_doc *doc, struct names_node **out, struct err *err)
{
	*out = names_node_new(mount_path, kind, path, doc);
	return *out ? 0 : err_no_memory(err);
}

static int no_such(const char *path, struct err *err)
{
	return err_set(err, -ENOENT, "%s: no such file or directory", path);
}

/* A failure that took so long was repeated, and probably concerns the whole store: another request
 * would take as long again. */
static bool took_long(const struct names *ns, uint64_t since_ns)
{
	const uint64_t long_ns = UINT64_C(1000000000);
	return names_now(ns) - since_ns >= long_ns;
}

/* What the listing of its directory shows of a path: an enum names_listed, or negative. */
static int find_in_dir(struct names *ns, const char *path, const struct probe *p, struct err *err)
{
	struct err own = ERR_INIT;
	const bool hopeless = p->below.children < 0 && took_long(ns, p->began_ns);
	int listed = hopeless ? p->below.children : names_is_listed(ns, path, &own);
	if (listed >= 0)
		return listed;
	if (p->below.children >= 0) {
		err_copy(err, &own);
		return err_wrap(err, listed, "listing %s/", path);
	}
	err_set(err, p->below.children, "%s", p->below.why);
	return err_wrap(err, p->below.children, "listing %s/", path);
}

static int make_unlistable(const char *path, const struct probe *p, struct names_node **out,
			   struct err *err)
{
	struct names_doc doc;
	if (names_doc_fail(&doc, NAMES_DOC_UNLISTABLE, p->below.children, p->below.why))
		return err_no_memory(err);
	return make_node(path, names_unlistable_kind(p->doc.kind, path), path, &doc, out, err);
}

/* Makes the node of an object. Fails with -ENOENT if the bucket has no such object. */
static int make_object(const char *path, const struct probe *p, struct names_node **out,
		       struct err *err)
{
	struct names_doc none = {0};
	if (p->object == OBJECT_ABSENT || p->object == -EINVAL)
		return no_such(path, err);
	if (p->object) {
		err_copy(err, &p->object_err);
		return err_wrap(err, p->object, "%s", path);
	}
	int rc = make_node(path, NAMES_OBJECT, path, &none, out, err);
	if (rc)
		return rc;
	(*out)->meta = p->meta;
	if (p->has_note)
		names_node_set_note(*out, p->note);
	return 0;
}

/* Makes the node of a directory or domain that has this path. p->doc is transferred. */
static int make_prefix(const char *path, enum names_kind kind, struct probe *p,
		       struct names_node **out, struct err *err)
{
	const int rc = make_node(path, kind, path, &p->doc, out, err);
	if (rc)
		return rc;
	(*out)->is_marked = kind == NAMES_DIR && p->below.store;
	(*out)->marker = p->below.marker;
	return 0;
}

/* Finds out whether the directory of a path is marked. If so, the marks of the path do not count.
 * The root is never marked, because a bucket that is a domain itself is mounted as the only entry
 * of the place above it. */
static int is_dir_marked(struct names *ns, const char *path, bool *marked, struct err *err)
{
	const size_t n = names_parent_len(path);
	auto_free char *dir = strndup(path, n);
	auto_names_node struct names_node *node = NULL;
	*marked = false;
	if (!dir)
		return err_no_memory(err);
	const int rc = n ? names_resolve(ns, dir, &node, err) : 0;
	*marked = node && node->is_marked;
	return rc == -ENOENT ? 0 : rc;
}

/* Uses the mark that the listing of the path shows. */
static int use_mark(struct names *ns, const char *path, struct names_doc *doc,
		    const struct names_below *below, struct err *err)
{
	bool inside = false;
	const int rc = below->store ? is_dir_marked(ns, path, &inside, err) : 0;
	if (!rc && !inside)
		names_doc_use_mark(doc, below);
	return rc;
}

/* Resolves a name to what has it in the bucket. Fails with -ENOENT if nothing has. p->doc is
 * transferred if it is shown. */
static int resolve_own(struct names *ns, const char *path, struct probe *p, struct names_node **out,
		       struct err *err)
{
	names_doc_use_listing(&p->doc, &p->below);
	int rc = use_mark(ns, path, &p->doc, &p->below, err);
	if (rc)
		return rc;
	struct names_rule rule = names_doc_rule(&p->doc, path, p->below.children);
	if (rule.if_listed) {
		int listed = find_in_dir(ns, path, p, err);
		if (listed < 0)
			return listed;
		if (listed == LISTED_NOT)
			return no_such(path, err);
		if (listed == LISTED_OBJECT)
			rule = (struct names_rule){.own = SHOWN_NOTHING};
	}
	switch (rule.own) {
	case SHOWN_DIR:
	case SHOWN_DOMAIN:
		return make_prefix(path, rule.own == SHOWN_DIR ? NAMES_DIR : NAMES_DOMAIN, p, out,
				   err);
	case SHOWN_UNLISTABLE:
		return make_unlistable(path, p, out, err);
	case SHOWN_NOTHING:
		break;
	}
	rc = make_object(path, p, out, err);
	return rc == -ENOENT && rule.bare ? make_prefix(path, NAMES_DOMAIN, p, out, err) : rc;
}

/* ---- bare domains ---- */

/* Returns 1 if a bare domain whose document cannot be read is shown, 0 if not, or a negative
 * errno. */
static int shows_broken(struct names *ns, const char *bare, struct err *err)
{
	struct names_below below = {.path = bare};
	int rc = names_children_find(ns, &below, 1);
	const int children = below.children;
	const bool lacks = children == CHILDREN_MORE && names_lacks_document(&below);
	names_below_release(&below);
	if (rc)
		return err_no_memory(err);
	if (lacks)
		return 0;
	const struct names_rule rule = names_rule(NAMES_DOC_BROKEN, bare, children);
	if (!rule.if_listed)
		return rule.bare;
	int listed = names_is_listed(ns, bare, err);
	if (listed < 0)
		return err_wrap(err, listed, "listing %s", bare);
	return rule.bare && listed == LISTED_PREFIX;
}

/* Resolves a name to the bare domain whose file has it, if nothing else has this name. Fails with
 * -ENOENT if there is no such domain. p->bare is transferred if it is shown. */
static int resolve_bare(struct names *ns, const char *mount_path, const char *bare, struct probe *p,
			struct names_node **out, struct err *err)
{
	const char *suffix = names_doc_suffix(ns->schemas, &p->bare);
	if (strcmp(mount_path + strlen(bare), suffix) != 0)
		return no_such(mount_path, err); /* its file has another name */
	int shown = p->bare.kind == NAMES_DOC_BROKEN ? shows_broken(ns, bare, err)
						     : p->bare.kind == NAMES_DOC_ROOT;
	if (shown < 0)
		return shown;
	return shown ? make_node(mount_path, NAMES_DOMAIN, bare, &p->bare, out, err)
		     : no_such(mount_path, err);
}

/* ---- domains that only a listing shows ---- */

/* It could not be found out whether the path is a domain. In a bucket that refuses every request,
 * no name exists; otherwise the path exists if the listing of its directory shows it. */
static int check_unknown(struct names *ns, const char *path, const struct names_below *below,
			 struct err *err)
{
	struct err ignored = ERR_INIT;
	if (below->children == -EACCES && names_is_listed(ns, path, &ignored) != LISTED_PREFIX)
		return 0;
	err_set(err, below->children, "%s", below->why);
	return err_wrap(err, below->children, "looking for a domain in %s/", path);
}

/* Finds the domain of this path, unless the first round has asked for it. If p->marked_doc is not
 * that of a store afterwards, there is none. If listing the path is not permitted, its marks are
 * requested one by one. */
static int find_marked(struct names *ns, const char *path, struct probe *p, struct err *err)
{
	struct names_below *below = &p->marked;
	const bool asked = below->path;
	int rc = 0;
	if (!asked) {
		below->path = path;
		rc = names_children_find(ns, below, 1);
	}
	if (!rc && below->children == -EACCES && !below->store) {
		names_below_release(below);
		below->children = CHILDREN_MANY;
	}
	if (!rc && !below->store)
		rc = names_children_marks(ns, below, 1);
	if (!rc && below->store && !asked)
		rc = names_docs_get(ns, &path, 1, NULL, &p->marked_doc);
	if (rc)
		return err_set(err, rc, "out of memory");
	if (!below->store)
		return below->children < 0 ? check_unknown(ns, path, below, err) : 0;
	rc = use_mark(ns, path, &p->marked_doc, below, err);
	if (rc || p->marked_doc.kind != NAMES_DOC_BROKEN)
		return rc;
	err_set(err, p->marked_doc.code, "%s", p->marked_doc.why);
	return err_wrap(err, p->marked_doc.code, "looking for a domain in %s/", path);
}

/* Finds the domain whose file has this path, which nothing else has. `path` is its own path, or
 * NULL if no such domain can have this file. Fails with -ENOENT if there is none. */
static int resolve_marked(struct names *ns, const char *mount_path, const char *path,
			  struct probe *p, struct names_node **out, struct err *err)
{
	struct names_doc *doc = &p->marked_doc;
	const int rc = path ? find_marked(ns, path, p, err) : 0;
	if (!rc && doc->kind == NAMES_DOC_STORE &&
	    strcmp(mount_path + strlen(path), doc->document->schema->suffix) == 0)
		return make_node(mount_path, NAMES_DOMAIN, path, doc, out, err);
	return rc ? rc : no_such(mount_path, err);
}

/* ---- the whole look-up ---- */

/* Returns whether nothing shows that the name exists: a service that refuses all listings also
 * refuses the requests of objects that do not exist. */
static bool is_all_refused(struct names *ns, const char *path, const struct probe *p)
{
	struct err ignored = ERR_INIT;
	return p->below.children == -EACCES && names_is_listed(ns, path, &ignored) == -EACCES;
}

static int resolve_new(struct names *ns, const char *path, struct names_node **out, struct err *err)
{
	auto_free char *bare = NULL, *found = NULL;
	const bool has_marks = atomic_load(&ns->has_marks);
	struct probe p;
	int rc = names_bare(ns->schemas, path, &bare);
	if (!rc)
		rc = names_marked(ns->schemas, path, &found);
	const char *marked = found && store_key_ok(found) ? found : NULL;
	if (rc || probe(ns, path, bare, has_marks ? marked : NULL, &p))
		return err_no_memory(err);
	rc = resolve_own(ns, path, &p, out, err);
	if (rc == -ENOENT && bare)
		rc = resolve_bare(ns, path, bare, &p, out, err);
	if (rc == -ENOENT)
		rc = resolve_marked(ns, path, marked, &p, out, err);
	else if (rc == -EACCES && has_marks && is_all_refused(ns, path, &p) &&
		 !resolve_marked(ns, path, marked, &p, out, NULL))
		rc = 0;
	release_probe(&p);
	return rc;
}

static int resolve_root(struct names *ns, struct names_node **out, struct err *err)
{
	const char *path = "";
	struct names_doc doc;
	if (names_docs_get(ns, &path, 1, NULL, &doc))
		return err_no_memory(err);
	return make_node(path, NAMES_DIR, path, &doc, out, err);
}

/* If the document alone decided last time, it is requested alone: one small request instead of
 * several. Returns 1 if it decides again, 0 if all requests are necessary, or a negative errno. */
static int resolve_known(struct names *ns, const char *path, struct names_node **out,
			 struct err *err)
{
	auto_names_node struct names_node *known = names_cache_recall(ns->cache, path);
	struct names_doc doc;
	/* The document of a folder does not say whether the folder is a domain, too. */
	const bool is_folder =
		known && known->doc.kind == NAMES_DOC_FOLDER && !atomic_load(&ns->has_marks);
	if (!known || (!is_folder && !names_is_certain(known)))
		return 0;
	const uint64_t began_ns = names_now(ns);
	if (names_docs_get(ns, &path, 1, NULL, &doc))
		return err_no_memory(err);
	if (!names_needs_children(doc.kind, path)) {
		const struct names_rule rule = names_rule(doc.kind, path, CHILDREN_NONE);
		int rc = make_node(path, rule.own == SHOWN_DIR ? NAMES_DIR : NAMES_DOMAIN, path,
				   &doc, out, err);
		if (!rc)
			(*out)->marker = known->marker;
		return rc ? rc : 1;
	}
	int rc = 0;
	if (doc.kind == NAMES_DOC_BROKEN && took_long(ns, began_ns))
		rc = err_set(err, doc.code, "%s", doc.why);
	names_doc_release(&doc);
	return rc;
}

/* Returns whether this mount has seen what has the name. It may be newer than a listing. */
static bool is_known(struct names *ns, const char *path)
{
	auto_names_node struct names_node *node = names_cache_recall(ns->cache, path);
	return node;
}

/* *is_proved: nothing has the name, and no request was necessary to find that out. */
static int request_node(struct names *ns, const char *path, struct names_node **out,
			bool *is_proved, struct err *err)
{
	*is_proved = false;
	if (path[0] == '\0')
		return resolve_root(ns, out, err);
	if (!store_key_ok(path) || names_is_hidden(ns->schemas, path) ||
	    !names_is_below_roots(ns, path))
		return no_such(path, err);
	*is_proved = !is_known(ns, path) && names_complete_lacks(ns, path);
	if (*is_proved)
		return no_such(path, err);
	int rc = resolve_known(ns, path, out, err);
	if (rc)
		return rc < 0 ? rc : 0;
	return resolve_new(ns, path, out, err);
}

/* If a look-up of a name that the kernel has cached fails, the kernel repeats it at once. If the
 * look-up failed after a long time, its repetition fails with the same error. Before a program
 * makes or renames a file, the kernel looks its name up; the change need not ask again. */
static int resolve(struct names *ns, const char *path, struct names_node **out, struct err *err)
{
	const uint64_t began_ns = names_now(ns), second = UINT64_C(1000000000);
	const uint64_t changes = names_cache_changes(ns->cache);
	struct err own = ERR_INIT;
	bool is_proved;
	err = err ? err : &own;
	int rc = names_cache_get_failure(ns->cache, path, began_ns);
	if (rc)
		return err_set(err, rc, "%s: the same request has just failed", path);
	rc = request_node(ns, path, out, &is_proved, err);
	if (rc == 0)
		names_found(ns, path);
	/* A document that cannot be read now may be readable soon, so it is not cached. */
	if (rc == 0 && (*out)->doc.kind != NAMES_DOC_BROKEN)
		names_cache_put(ns->cache, *out, names_now(ns), names_valid_until(ns, *out),
				changes);
	if (rc == -ENOENT && !is_proved) {
		names_cache_drop(ns->cache, path);
		names_cache_put_absent(ns->cache, path, began_ns + min_u64(ns->ttl_ns, second),
				       changes);
	} else if (rc && took_long(ns, began_ns)) {
		names_cache_put_failure(ns->cache, path, rc, names_now(ns) + second);
	}
	return rc;
}

int names_resolve(struct names *ns, const char *path, struct names_node **out, struct err *err)
{
	*out = names_cache_look_up(ns->cache, path, names_now(ns));
	return *out ? 0 : resolve(ns, path, out, err);
}

int names_resolve_for_open(struct names *ns, const char *path, struct names_node **out,
			   bool *is_new, struct err *err)
{
	*out = names_cache_get(ns->cache, path, names_now(ns));
	*is_new = !*out;
	return *out ? 0 : resolve(ns, path, out, err);
}

int names_resolve_for_change(struct names *ns, const char *path, struct names_node **out,
			     struct err *err)
{
	struct err why = ERR_INIT;
	bool is_new;
	int rc = -ENOENT;
	if (!names_cache_is_absent(ns->cache, path, names_now(ns)))
		rc = names_resolve_for_open(ns, path, out, &is_new, &why);
	if (rc)
		*out = NULL;
	if (rc && rc != -ENOENT)
		err_copy(err, &why);
	return rc == -ENOENT ? 0 : rc;
}
