/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Renames a directory, file by file: a bucket has no directories, only keys that begin alike.
 *
 *   1. look    list the directory in all levels; whatever cannot be renamed is found here
 *   2. make    a folder for each directory, with the access control list of the old one
 *   3. rename  the files, several side by side, each as engine_rename() does it
 *   4. remove  the old folders, the deepest first
 *
 * Each file has one of its names at each moment, and the notes of its rename are in the journal.
 * But the whole is not one step: if the machine stops, a part of the files has the new names. If a
 * file cannot be renamed, those before it get their old names back, as far as that is possible.
 *
 * Whatever others put into the old directory meanwhile stays there.
 */
#include "rename_dir.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/thread.h>
#include <drafts/drafts.h>

#include "engine_internal.h"

enum { AT_ONCE = 16 /* files */ };

struct folder {
	char *path; /* below `from`: "" or NULL for the directory itself, or "/a/b" */
	struct names_node *node;
};

struct file {
	char *path; /* of the mount, below `from`: "/a/run.h5" */
	char *next; /* the same below `to`: a domain without extension stays without: "/a/run" */
	bool is_renamed;
};

struct tree {
	struct engine *e;
	const struct rename_dir_calls *calls;
	const char *from, *to;
	struct names_node *target; /* borrowed; of the directory that is replaced, or NULL */
	struct folder *folders;	   /* each one after the folder that contains it */
	struct file *files;
	size_t n_folders, n_files;
	size_t current; /* the folder that is being listed */
	size_t drafts;	/* its first file that only a draft has */
	/* While files are renamed: */
	bool is_back;	      /* they get their old names again */
	pthread_mutex_t lock; /* guards what follows, and is_renamed */
	size_t next;	      /* the next file; n_files after a failure */
	int rc;
	struct err err; /* the first failure */
};

static void release(struct tree *t)
{
	for (size_t i = 0; i < t->n_folders; i++) {
		free(t->folders[i].path);
		names_node_unref(t->folders[i].node);
	}
	for (size_t i = 0; i < t->n_files; i++) {
		free(t->files[i].path);
		free(t->files[i].next);
	}
	free(t->folders);
	free(t->files);
}

static char *join(const char *a, const char *b)
{
	char *path = NULL;
	return asprintf(&path, "%s%s", a, b) < 0 ? NULL : path;
}

/* ---- 1. look ---- */

static int check_room(const struct tree *t, struct err *err)
{
	const size_t max = t->e->rename_dir_max;
	/* The directory itself does not count. */
	return max && t->n_folders + t->n_files <= max
		       ? 0
		       : err_set(err, -EXDEV, "%s: it has more than %zu entries in all levels",
				 t->from, max);
}

static int add_folder(struct tree *t, const char *path, struct names_node *node, struct err *err)
{
	int rc = check_room(t, err);
	if (!rc && node->is_marked)
		rc = err_set(err, -EXDEV, "%s: it has the documents of a domain", node->name);
	if (!rc && (node->doc.kind == NAMES_DOC_BROKEN || node->doc.kind == NAMES_DOC_UNLISTABLE))
		rc = err_set(err, node->doc.code, "%s: %s", node->name, node->doc.why);
	if (rc)
		return rc;
	struct folder *grown = array_grow(t->folders, t->n_folders, sizeof(*grown));
	char *copy = strdup(path);
	if (grown)
		t->folders = grown;
	if (!grown || !copy) {
		free(copy);
		return err_no_memory(err);
	}
	t->folders[t->n_folders++] = (struct folder){copy, names_node_ref(node)};
	return 0;
}

static int add_file(struct tree *t, const char *path, const char *next, struct err *err)
{
	const int rc = check_room(t, err);
	if (rc)
		return rc;
	struct file *grown = array_grow(t->files, t->n_files, sizeof(*grown));
	struct file f = {strdup(path), strdup(next), false};
	if (grown)
		t->files = grown;
	if (!grown || !f.path || !f.next) {
		free(f.path);
		free(f.next);
		return err_no_memory(err);
	}
	t->files[t->n_files++] = f;
	return 0;
}

/* Checks what engine_rename() would refuse, before anything is changed. */
static int check_file(const struct names_node *n, struct err *err)
{
	if (n->kind == NAMES_OBJECT)
		return n->meta.size <= RENAME_COPIED_MAX
			       ? 0
			       : err_set(err, -EXDEV, "%s: it is larger than 64 MiB", n->name);
	if (n->doc.kind == NAMES_DOC_STORE)
		return err_set(err, -EXDEV, "%s: it is a store, not a domain of HSDS", n->name);
	return n->doc.kind == NAMES_DOC_ROOT
		       ? 0
		       : err_set(err, n->doc.code ? n->doc.code : -EIO, "domain /%s: %s", n->path,
				 n->doc.why ? n->doc.why : "it has no document");
}

/* Returns whether a folder has this path, which a domain without extension has, too: then a look-up
 * of the path finds the folder only. */
static bool has_folder(const struct tree *t, const char *path)
{
	for (size_t i = 0; i < t->n_folders; i++)
		if (strcmp(t->folders[i].path, path) == 0)
			return true;
	return false;
}

static int add_node(struct tree *t, const char *path, struct names_node *node, struct err *err)
{
	if (node->kind == NAMES_DIR)
		return add_folder(t, path, node, err);
	const int rc = check_file(node, err);
	return rc ? rc : add_file(t, path, node->path + strlen(t->from), err);
}

struct listing {
	struct tree *t;
	struct err *err;
};

/* Of an entry that the bucket has. */
static int take_entry(void *arg, const char *name, enum names_kind kind)
{
	const struct listing *l = arg;
	struct tree *t = l->t;
	auto_names_node struct names_node *node = NULL;
	char path[STORE_KEY_MAX + 1];
	if ((size_t)snprintf(path, sizeof(path), "%s%s/%s", t->from, t->folders[t->current].path,
			     name) >= sizeof(path))
		return err_set(l->err, -ENAMETOOLONG, "%s: the path is too long", path);
	/* What has just been committed may be in both lists. */
	for (size_t i = t->drafts; i < t->n_files; i++)
		if (strcmp(t->files[i].path, path + strlen(t->from)) == 0)
			return 0;
	struct err why = ERR_INIT;
	const int rc = names_resolve(t->e->bucket.names, path, &node, &why);
	if (rc == -ENOENT)
		return 0; /* another program has just removed it */
	if (rc)
		err_copy(l->err, &why);
	return rc ? rc : add_node(t, path + strlen(t->from), node, l->err);
}

/* Of a file that only a draft has. */
static int take_draft(void *arg, const char *name, enum engine_kind kind)
{
	const struct listing *l = arg;
	char path[STORE_KEY_MAX + 1];
	if ((size_t)snprintf(path, sizeof(path), "%s/%s", l->t->folders[l->t->current].path,
			     name) >= sizeof(path))
		return err_set(l->err, -ENAMETOOLONG, "%s: the path is too long", path);
	return add_file(l->t, path, path, l->err);
}

static int list_folder(struct tree *t, struct err *err)
{
	struct listing l = {t, err};
	auto_free char *path = join(t->from, t->folders[t->current].path);
	if (!path)
		return err_no_memory(err);
	/* The drafts first: what is committed in between is in the second list. */
	t->drafts = t->n_files;
	const int rc = drafts_list(t->e->drafts, path, take_draft, &l);
	names_forget(t->e->bucket.names, path);
	return rc ? rc : names_list(t->e->bucket.names, path, take_entry, &l, err);
}

/* Checks that the bucket can have a name below the new directory. */
static int check_next(struct tree *t, const char *path, struct err *err)
{
	auto_free char *next = join(t->to, path);
	return next ? names_check_new(t->e->bucket.names, next, err) : err_no_memory(err);
}

static int look(struct tree *t, struct names_node *dir, struct err *err)
{
	int rc = add_folder(t, "", dir, err);
	for (; !rc && t->current < t->n_folders; t->current++)
		rc = list_folder(t, err);
	for (size_t i = 0; !rc && i < t->n_files; i++)
		rc = has_folder(t, t->files[i].next)
			     ? err_set(err, -EXDEV, "%s%s: there are keys below the domain",
				       t->from, t->files[i].next)
			     : check_next(t, t->files[i].next, err);
	for (size_t i = 0; !rc && i < t->n_folders; i++)
		rc = check_next(t, t->folders[i].path, err);
	if (!rc && names_has_left_out(t->e->bucket.names))
		rc = err_set(err, -EXDEV, "%s: the bucket has names that the mount does not show",
			     t->from);
	return rc;
}

/* ---- 2. make ---- */

static int make_folder(struct tree *t, const struct folder *f, struct err *err)
{
	const struct schema_document *doc = f->node->doc.document;
	const struct change c = engine_change(t->e, NULL);
	auto_free char *path = join(t->to, f->path ? f->path : "");
	if (!path)
		return err_no_memory(err);
	const int rc = doc ? change_copy_folder(&c, path, &doc->info, err)
			   : change_make_folder(&c, path, err);
	names_changed(t->e->bucket.names, path);
	return rc;
}

static void remove_folders(struct tree *t, const char *root, size_t n)
{
	while (n--) {
		struct err why = ERR_INIT;
		auto_free char *path = join(root, t->folders[n].path);
		const int rc = path ? t->calls->rmdir(t->e, path, &why) : err_no_memory(&why);
		if (rc && rc != -ENOENT)
			log_warning(t->e->bucket.log, "after a rename of %s, a directory stays: %s",
				    t->from, why.msg);
	}
}

/* ---- 3. rename ---- */

static int rename_one(struct tree *t, const struct file *f, struct err *err)
{
	const char *from = t->is_back ? t->to : t->from, *to = t->is_back ? t->from : t->to;
	auto_free char *old = join(from, f->path), *now = join(to, f->next);
	auto_free char *shown = join(to, f->path);
	if (!old || !now || !shown)
		return err_no_memory(err);
	const int rc = t->calls->rename(t->e, old, now, RENAME_NOREPLACE, err);
	if (!rc && strcmp(now, shown) != 0)
		t->calls->move_draft(t->e, now, shown);
	return rc;
}

/* The next file that has to be renamed, or NULL. */
static struct file *take_locked(struct tree *t)
{
	while (t->next < t->n_files && t->files[t->next].is_renamed != t->is_back)
		t->next++;
	return t->next < t->n_files ? &t->files[t->next++] : NULL;
}

static void *work(void *arg)
{
	struct tree *t = arg;
	pthread_mutex_lock(&t->lock);
	for (struct file *f; (f = take_locked(t));) {
		struct err why = ERR_INIT;
		pthread_mutex_unlock(&t->lock);
		const int rc = rename_one(t, f, &why);
		pthread_mutex_lock(&t->lock);
		if (!rc)
			f->is_renamed = !t->is_back;
		if (rc && !t->rc) {
			t->rc = rc;
			t->err = why;
		}
		if (rc && !t->is_back)
			t->next = t->n_files;
	}
	pthread_mutex_unlock(&t->lock);
	return NULL;
}

static int rename_files(struct tree *t, bool is_back, struct err *err)
{
	pthread_t threads[AT_ONCE - 1];
	size_t n = 0;
	t->is_back = is_back;
	t->next = 0;
	t->rc = 0;
	while (n < AT_ONCE - 1 && n + 1 < t->n_files && thread_start(&threads[n], work, t))
		n++;
	work(t);
	while (n--)
		pthread_join(threads[n], NULL);
	if (t->rc)
		err_copy(err, &t->err);
	return t->rc;
}

/* ---- the whole ---- */

static int carry_out(struct tree *t, struct err *err)
{
	size_t made = 0;
	int rc = t->target ? t->calls->rmdir(t->e, t->to, err) : 0;
	if (rc)
		return rc;
	for (; !rc && made < t->n_folders; made += rc != -EEXIST)
		rc = make_folder(t, &t->folders[made], err);
	if (!rc)
		rc = rename_files(t, false, err);
	if (!rc) {
		remove_folders(t, t->from, t->n_folders);
		return 0;
	}
	struct err why = ERR_INIT;
	if (rename_files(t, true, &why))
		log_error(t->e->bucket.log,
			  "%s could not be renamed to %s, and a part of its files has the new "
			  "directory now: %s",
			  t->from, t->to, why.msg);
	remove_folders(t, t->to, made);
	if (t->target && make_folder(t, &(struct folder){.node = t->target}, &why))
		log_warning(t->e->bucket.log, "the empty directory %s is gone: %s", t->to, why.msg);
	/* The kernel repeats a call that fails with ESTALE. */
	return rc == -ESTALE ? err_set(err, -EBUSY, "%s: another program has changed a file in it",
				       t->from)
			     : rc;
}

int engine_rename_dir(struct engine *e, const struct rename_dir_calls *calls, const char *from,
		      const char *to, struct names_node *dir, struct names_node *target,
		      struct err *err)
{
	struct tree t = {.e = e, .calls = calls, .from = from, .to = to, .target = target};
	pthread_mutex_init(&t.lock, NULL);
	int rc = look(&t, dir, err);
	if (!rc)
		rc = carry_out(&t, err);
	pthread_mutex_destroy(&t.lock);
	release(&t);
	return rc;
}
