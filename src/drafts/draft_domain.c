/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A draft becomes a domain: see draft_put.h. import/import.h does it, without a record in the
 * bucket, because the journal has the draft. The names that are cached tell which folders have
 * documents, and whose domain is replaced, so the bucket is not asked.
 *
 *   the bucket has    order                                          condition
 *   nothing           objects, document                              absent
 *   a domain          objects, document                              its version
 *   an object         objects, document, then the object is deleted  absent, then its version
 *
 * A directory cannot have the document beside an object of the same name: there the object is
 * deleted before the document is put.
 */
#include "draft_put.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/source_paged.h>
#include <base/str.h>
#include <import/import.h>
#include <storage/storage_deletion.h>

enum {
	PAGES = 32,	       /* of 64 KiB: metadata are read in many small pieces */
	DIRECT_MIN = 16 << 10, /* longer reads go past the pages */
};

struct work {
	struct draft_put *p;
	const char *path; /* of the domain */
	struct source_paged *pages;
	struct source source; /* any thread may read it */
	bool is_object;	      /* an earlier attempt has put the draft as an object */
	bool made_way;	      /* the object was deleted to make way for the document */
	char line[sizeof(((struct commit_result *)NULL)->kept)]; /* the first line of the import's
								  * output */
	struct str lines;					 /* all of them */
};

/* ---- the file ---- */

static int read_at(void *ctx, uint64_t offset, void *buf, size_t n, struct err *err)
{
	struct work *w = ctx;
	struct source *from = n < DIRECT_MIN ? source_paged_source(w->pages) : &w->p->bytes;
	return source_read(from, offset, buf, n, err);
}

static int prepare(void *ctx, uint64_t offset, uint64_t n, struct source_part *part,
		   struct err *err)
{
	const struct work *w = ctx;
	return source_prepare(&w->p->bytes, offset, n, part, err);
}

static int open_file(void *ctx, struct source **out, struct err *err)
{
	struct work *w = ctx;
	struct source *bytes = &w->p->bytes;
	w->pages = source_paged_new(bytes->size, PAGES, source_paged_fetch_source, bytes);
	if (!w->pages)
		return err_no_memory(err);
	w->source = (struct source){
		.size = bytes->size, .read_at = read_at, .prepare = prepare, .ctx = w};
	*out = &w->source;
	return 0;
}

static void keep_line(void *ctx, const char *line)
{
	struct work *w = ctx;
	if (!w->line[0])
		snprintf(w->line, sizeof(w->line), "%s", line);
	str_addf(&w->lines, "%s%s", w->lines.b.len ? "; " : "", line);
}

/* ---- the bucket ---- */

/* Finds the nearest folder above a path that has a document. A cached name is used even if it is
 * stale. At worst a document is put that exists, or one is missing, which only listings of the
 * service need. */
static int find_folder(struct draft_put *p, const char *path, struct import_commit *c,
		       struct err *err)
{
	auto_free char *dir = strdup(path);
	if (!dir)
		return err_no_memory(err);
	for (size_t n; (n = names_parent_len(dir)) > 0;) {
		struct err why = ERR_INIT;
		bool is_new;
		dir[n] = '\0';
		auto_names_node struct names_node *node = names_recall(p->bucket->names, dir);
		int rc = node ? 0
			      : names_resolve_for_open(p->bucket->names, dir, &node, &is_new, &why);
		if (rc && rc != -ENOENT) {
			err_copy(err, &why);
			return rc;
		}
		c->has_folder = !rc && node->doc.kind != NAMES_DOC_NONE;
		c->folder_len = n;
		if (c->has_folder)
			return 0;
	}
	return 0;
}

/* Called when the import has checked the file and is about to put the first object. */
static int begin(void *ctx, struct err *err)
{
	struct work *w = ctx;
	struct draft_put *p = w->p;
	const struct present *there = &p->present;
	if (there->differs && there->kind == PRESENT_OBJECT) {
		const int same = draft_same_object(p, err);
		w->is_object = same == 1;
		return same < 0 ? same : draft_put_stale(p, err);
	}
	/* An object that was to be replaced is gone, by an earlier attempt. A domain is not: its
	 * replacement is one step. */
	if (there->differs && there->kind == PRESENT_NOTHING && p->about->version[0] == 'd')
		return draft_put_stale(p, err);
	int rc = there->kind == PRESENT_OBJECT ? draft_check_object(p, err) : 0;
	p->run.end += !rc;
	if (!rc)
		rc = draft_put_begin(p, err);
	if (!rc)
		draft_put_make_room(p);
	return rc;
}

static int publish(void *ctx, struct err *err)
{
	const struct work *w = ctx;
	const int rc = draft_put_check_stored(w->p, err);
	if (rc)
		return rc;
	commit_go(&w->p->run, COMMIT_SHOWN);
	if (w->p->present.kind == PRESENT_DOMAIN)
		draft_put_drop(w->p, w->p->present.node);
	return 0;
}

static int make_way(void *ctx, struct err *err)
{
	struct work *w = ctx;
	const struct present *there = &w->p->present;
	if (there->kind != PRESENT_OBJECT)
		return draft_put_stale(w->p, err);
	const int rc = draft_delete_object(w->p, w->p->about->name, there->etag, err);
	w->made_way = !rc;
	return rc;
}

/* Deletes the object that the draft was opened with. The domain hides it by now. */
static int delete_hidden(const struct draft_put *p, struct err *err)
{
	struct err why = ERR_INIT;
	if (p->about->version[0] != 'o')
		return 0;
	const int rc = draft_delete_object(p, p->about->path, p->about->version + 2, &why);
	if (rc && rc != -ESTALE) {
		err_copy(err, &why);
		return rc;
	}
	if (rc)
		log_warning(p->bucket->log,
			    "%s: another program has changed the plain object of this name, which "
			    "the domain hides now",
			    p->about->name);
	return 0;
}

/* ---- what a domain cannot be ---- */

/* Returns the text of an error without the name of the file before it. */
static const char *without_name(const char *text, const char *name)
{
	const size_t n = strlen(name);
	return strncmp(text, name, n) == 0 && strncmp(text + n, ": ", 2) == 0 ? text + n + 2 : text;
}

static int refuse(const struct work *w, const struct import_result *r, int code,
		  struct commit_result *out, const struct err *err)
{
	const bool damaged = code != -EOPNOTSUPP;
	const char *what = damaged ? "it is damaged" : "a domain cannot hold it";
	const char *why =
		r->problems && w->line[0] ? w->line : without_name(err->msg, w->p->about->name);
	const size_t room = sizeof(out->kept);
	if (r->problems > 1)
		snprintf(out->kept, room, "%s: %.400s; and %" PRIu64 " more", what, why,
			 r->problems - 1);
	else
		snprintf(out->kept, room, "%s: %.480s", what, why);
	return damaged ? DRAFT_DAMAGED : DRAFT_REFUSED;
}

/* A mount shows the domain `run` as `run.h5`. If that name is taken or too long, a listing would
 * not show the domain. Returns DRAFT_REFUSED, 0 or a negative errno. */
static int check_shown(const struct draft_put *p, const char *path, struct commit_result *out,
		       struct err *err)
{
	const char *suffix = bucket_new_domains(p->bucket)->suffix;
	char shown[STORE_KEY_MAX + 1];
	auto_names_node struct names_node *taken = NULL;
	if (p->present.kind == PRESENT_DOMAIN)
		return 0;
	int rc = names_check_shown(p->bucket->names, suffix, path, shown, &taken, err);
	switch (rc) {
	case NAMES_SHOWN_FREE:
		return 0;
	case NAMES_SHOWN_TAKEN:
		rc = draft_check_document(taken, err);
		if (rc)
			return rc;
		snprintf(out->kept, sizeof(out->kept),
			 "as a domain it would be listed as %.400s, which exists", shown);
		return DRAFT_REFUSED;
	case NAMES_SHOWN_TOO_LONG:
		snprintf(out->kept, sizeof(out->kept),
			 "as a domain it would be listed with %s, and this name is too long",
			 suffix);
		return DRAFT_REFUSED;
	default:
		return rc;
	}
}

/* ---- the commit ---- */

bool draft_is_domain(const struct draft_put *p)
{
	return p->present.differs && p->present.kind == PRESENT_DOMAIN &&
	       draft_is_storage(p, p->present.node, p->run.number);
}

/* Fills in the options, which point to c. */
static int set_options(struct work *w, struct import_commit *c, struct import_options *opt,
		       struct err *err)
{
	struct draft_put *p = w->p;
	const bool replaces = p->present.kind == PRESENT_DOMAIN;
	const int64_t now = env_wall(&p->bucket->env);
	*c = (struct import_commit){
		.storage = commit_storage(bucket_new_domains(p->bucket), draft_id(p->c->draft),
					  p->run.number),
		.replaced = replaces ? p->present.node->doc.document : NULL,
		.modified_ns = now,
		.renames = p->bucket->renames,
		.in_order = p->about->kind == DRAFT_CHANGE, /* draft_finish_domain() */
		.continues = draft_put_is_again(p),
		.is_named = draft_is_domain(p),
		.begin = begin,
		.publish = publish,
		.puts = &p->puts,
		.make_way = make_way,
		.ctx = w,
	};
	*opt = (struct import_options){
		.env = &p->bucket->env,
		.store = p->bucket->store,
		.schema = bucket_new_domains(p->bucket),
		.path = w->path,
		.service_user = p->bucket->user,
		.acls = p->c->acls,
		.puts = bucket_puts(p->bucket, 0),
		.now_ns = p->about->created_ns > 0 ? p->about->created_ns : now,
		.cancelled = p->c->cancelled,
		.file = {.name = p->about->name,
			 .size = p->bytes.size,
			 .open = open_file,
			 .ctx = w},
		.commit = c,
		.note = keep_line,
		.ctx = w,
	};
	return find_folder(p, w->path, c, err);
}

static int import(struct work *w, struct commit_result *out, struct err *err)
{
	struct draft_put *p = w->p;
	struct import_commit c;
	struct import_options opt;
	struct import_result r;
	int rc = set_options(w, &c, &opt, err);
	if (rc)
		return rc;
	rc = domain_import(&opt, &r, err);
	if (!rc && w->lines.b.len && str_ok(&w->lines))
		log_info(p->bucket->log, "/%s: %s", p->about->name, str_text(&w->lines));
	str_release(&w->lines);
	if (!rc && p->c->stored)
		*p->c->stored = r.versions;
	if (!rc)
		return draft_put_result(out, COMMIT_DOMAIN, w->path, r.etag, err);
	if (r.unseen)
		commit_go(&p->run, COMMIT_BEGUN);
	if (w->is_object) {
		snprintf(out->kept, sizeof(out->kept), "it is damaged");
		return DRAFT_REFUSED;
	}
	if (r.refused && !atomic_load(&p->read_failed))
		return refuse(w, &r, rc, out, err);
	/* In a directory, another program has made an object of this name once more. */
	if (rc == -EEXIST || rc == -ESTALE || (rc == -ENOTDIR && w->made_way))
		return draft_put_stale(p, err);
	return rc;
}

/* The document of an earlier attempt is there. Its storage may have been deleted before. */
static int keep_domain(struct work *w, struct commit_result *out, struct err *err)
{
	struct draft_put *p = w->p;
	const struct bucket *bucket = p->bucket;
	const struct document_place place = {.env = &bucket->env,
					     .store = bucket->store,
					     .schema = bucket_new_domains(bucket),
					     .cancelled = p->c->cancelled};
	const struct storage storage =
		commit_storage(place.schema, draft_id(p->c->draft), p->run.number);
	struct err why = ERR_INIT;
	int rc = storage_reclaim(&place, &storage, &why);
	if (rc == -ESTALE)
		rc = import(w, out, err);
	else if (rc)
		err_copy(err, &why);
	if (!rc)
		rc = delete_hidden(p, err);
	return rc ? rc : draft_put_result(out, COMMIT_DOMAIN, w->path, p->present.etag, err);
}

int draft_put_domain(struct draft_put *p, struct commit_result *out, struct err *err)
{
	const bool replaces = p->present.kind == PRESENT_DOMAIN;
	struct work w = {.p = p, .path = replaces ? p->present.node->path : p->about->path};
	if (draft_is_domain(p)) {
		const int rc = keep_domain(&w, out, err);
		source_paged_free(w.pages);
		return rc;
	}
	int rc = check_shown(p, w.path, out, err);
	if (!rc)
		rc = import(&w, out, err);
	source_paged_free(w.pages);
	if (rc)
		return rc;
	return w.made_way ? 0 : delete_hidden(p, err);
}

int draft_finish_domain(struct draft_put *p, bool *found, struct commit_result *out,
			struct err *err)
{
	struct work w = {.p = p, .path = p->about->path};
	struct import_commit c;
	struct import_options opt;
	struct import_result r;
	int rc = set_options(&w, &c, &opt, err);
	if (!rc)
		rc = domain_import_finish(&opt, found, &r, err);
	if (rc == -EEXIST || rc == -ESTALE)
		return draft_put_stale(p, err);
	return rc || !*found ? rc : draft_put_result(out, COMMIT_DOMAIN, w.path, r.etag, err);
}
