/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory store: LIST.
 *
 * Keys must be in byte order, which is not the order of names: "a-b" precedes "a/b" because '-'
 * precedes '/'. Therefore a directory's name is compared with its trailing slash. Then a walk
 * through the tree in the order of names visits the keys in byte order.
 *
 * There are two ways to list one directory:
 *  - in order: read all names, sort them, and visit them until the page is full;
 *  - unordered, if the caller accepts at most `limit` items or else none, and no last key is given:
 *    count the names as they are read, visit them in batches, and sort the page at the end. In a
 *    directory with millions of entries the listing fails after limit + 1 names, before any of them
 *    is examined.
 *
 * Some entries exist but cannot be examined: after a disk error, without permission to search the
 * directory, or if the entry is a dangling link. A listing with the delimiter leaves such an entry
 * out and logs a warning, so that it does not hide the others. A listing without the delimiter, or
 * one that must be complete, fails, because the caller would conclude that the object is absent. If
 * the program has no descriptors or no memory left, every listing fails.
 *
 * Names that make no valid key, because it would be too long or is reserved, are left out of every
 * listing, and the page says so. Temporary files are no names of the bucket.
 *
 * Hostile trees: the depth is limited. If a directory contains itself, the listing fails. With
 * links to directories a small tree can look huge; if a call would follow more than LINKS_MAX of
 * them, it fails.
 */
#include "dir.h"

#include <base/str.h>
#include <store/page.h>

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum {
	DEPTH_MAX = 64,
	LINKS_MAX = 10000,
	BATCH = 1024,
	SHOWN_MAX = 64, /* bytes of the key of an entry that is left out */
	FULL = 1,	/* result of a visit that must stop, because the page is full */
};

struct name {
	size_t at; /* offset in names.text; NUL-terminated; a directory's ends with a slash */
	bool is_dir;
	bool is_link;
};

struct names {
	struct bytes text;
	struct name *v;
	size_t n;
};

static void names_release(struct names *names)
{
	bytes_release(&names->text);
	free(names->v);
}
#define auto_names __attribute__((cleanup(names_release)))

static void cleanup_closedir(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}
#define auto_closedir __attribute__((cleanup(cleanup_closedir)))

struct lister {
	const struct dir_store *d;
	const struct store_request *req;
	struct store_page *page;
	struct err *err;
	bool unordered;	  /* see above */
	uint32_t counted; /* if unordered: items read so far */
	unsigned int links;
	unsigned int no_keys;			/* entries that have no valid key */
	unsigned int left_out;			/* entries that cannot be examined */
	int left_out_code;			/* error of the first of them */
	char first_left_out[STORE_KEY_MAX + 1]; /* its key */
	unsigned int depth;
	struct {
		dev_t dev;
		ino_t ino;
	} above[DEPTH_MAX]; /* the directories from the first one down to this one */
	size_t len; /* length of the directory's path in key, with its slash; 0 for the root */
	char key[STORE_KEY_MAX + NAME_MAX + 2];
};

static int walk(struct lister *l, int fd);

static int no_memory(struct lister *l)
{
	return err_set(l->err, -ENOMEM, "listing of '%s': out of memory", l->req->key);
}

static int bad_dir(struct lister *l, int code)
{
	if (code == -EXDEV || code == -ELOOP)
		code = -EACCES;
	return err_errno(l->err, code, "directory %s", l->key[0] ? l->key : "/");
}

/* ---- what a directory entry is ---- */

enum kind { KIND_NONE, KIND_FILE, KIND_DIR };

/* Returns the final error of an entry of the directory fd, whose path is l->key, or 0 if the entry
 * has been removed meanwhile. */
static int entry_error(const struct lister *l, int fd, int code)
{
	const char *name = l->key + l->len;
	const size_t n = strcspn(name, "/");
	char copy[NAME_MAX + 1];
	struct stat st;
	if (code != -ENOENT && code != -ENOTDIR && code != -ENAMETOOLONG)
		return code;
	memcpy(copy, name, n);
	copy[n] = '\0';
	if (fstatat(fd, copy, &st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 0 : -errno;
	return S_ISLNK(st.st_mode) ? -ENOLINK : -EIO;
}

/* Called if l->key, an entry of the directory fd, cannot be examined. Returns 0 if it is left
 * out, which is KIND_NONE. */
static int leave_out(struct lister *l, int fd, int code)
{
	code = entry_error(l, fd, code);
	if (code == 0)
		return 0;
	const bool lacks_resources = code == -EMFILE || code == -ENFILE || code == -ENOMEM;
	if (!l->req->list.delimit || l->req->list.complete || lacks_resources)
		return dir_fail(l->err, code, l->key);
	if (l->left_out++ == 0) {
		l->left_out_code = code;
		snprintf(l->first_left_out, sizeof(l->first_left_out), "%.*s", STORE_KEY_MAX,
			 l->key);
	}
	return 0;
}

/* Returns an enum kind, or a negative errno with which the listing fails. */
static int kind_of(struct lister *l, int fd, const struct dirent *e, bool *is_link)
{
	unsigned char type = e->d_type;
	struct stat st;
	if (type == DT_UNKNOWN) {
		if (fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW))
			return leave_out(l, fd, -errno);
		type = IFTODT(st.st_mode);
	}
	*is_link = type == DT_LNK;
	if (*is_link) {
		const int rc = dir_stat(l->d, l->key, &st);
		if (rc)
			return leave_out(l, fd, rc);
		type = IFTODT(st.st_mode);
	}
	return type == DT_REG ? KIND_FILE : type == DT_DIR ? KIND_DIR : KIND_NONE;
}

/* Returns true if l->key, or something below it, may be an item. */
static bool may_match(const struct lister *l, bool is_dir)
{
	const char *after = l->req->list.start_after;
	if (strncmp(l->key, l->req->key, strlen(l->req->key)) != 0)
		return false;
	if (!after || strcmp(l->key, after) > 0)
		return true;
	return is_dir && !l->req->list.delimit && strncmp(l->key, after, strlen(l->key)) == 0;
}

/* ---- visiting ---- */

static int add(struct lister *l, const struct store_meta *meta)
{
	if (l->page->n == l->req->list.max) {
		store_page_set_more(l->page);
		return FULL;
	}
	return store_page_add(l->page, l->key, meta) ? no_memory(l) : 0;
}

static int visit_file(struct lister *l, int fd, bool is_link)
{
	struct stat st;
	struct store_meta meta;
	int rc = 0;
	if (is_link)
		rc = dir_stat(l->d, l->key, &st);
	else if (fstatat(fd, l->key + l->len, &st, AT_SYMLINK_NOFOLLOW))
		rc = -errno;
	if (rc)
		return leave_out(l, fd, rc);
	if (!S_ISREG(st.st_mode))
		return 0; /* it has been replaced meanwhile */
	dir_meta(&st, &meta);
	return add(l, &meta);
}

static int open_below(struct lister *l, int fd, bool is_link)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
	char *slash = l->key + strlen(l->key) - 1;
	*slash = '\0';
	int below;
	if (is_link) {
		below = dir_open(l->d, l->key, flags);
	} else {
		below = openat(fd, l->key + l->len, flags | O_NOFOLLOW);
		below = below < 0 ? -errno : below;
	}
	*slash = '/';
	return below;
}

static int visit_dir(struct lister *l, int fd, bool is_link)
{
	if (is_link && ++l->links > LINKS_MAX)
		return err_set(l->err, -ELOOP, "directory %s: too many links to directories",
			       l->key);
	int below = open_below(l, fd, is_link);
	if (below < 0) {
		const int why = entry_error(l, fd, below);
		return why ? bad_dir(l, why) : 0;
	}
	const size_t len = l->len;
	l->len = strlen(l->key);
	int rc = walk(l, below);
	l->len = len;
	return rc;
}

static int visit_all(struct lister *l, int fd, struct names *names)
{
	int rc = 0;
	for (size_t i = 0; i < names->n && rc == 0; i++) {
		const struct name *name = &names->v[i];
		strcpy(l->key + l->len, (const char *)names->text.data + name->at);
		rc = !name->is_dir	    ? visit_file(l, fd, name->is_link)
		     : l->req->list.delimit ? add(l, NULL)
					    : visit_dir(l, fd, name->is_link);
	}
	names->n = 0;
	names->text.len = 0;
	return rc;
}

/* ---- reading one directory ---- */

static int keep(struct lister *l, struct names *names, bool is_dir, bool is_link)
{
	const char *text = l->key + l->len;
	struct name *v = array_grow(names->v, names->n, sizeof(*v));
	if (!v)
		return no_memory(l);
	names->v = v;
	names->v[names->n++] =
		(struct name){.at = names->text.len, .is_dir = is_dir, .is_link = is_link};
	return bytes_append(&names->text, text, strlen(text) + 1) ? no_memory(l) : 0;
}

/* Leaves out an entry that has no valid key. */
static int leave_out_name(struct lister *l, const char *why)
{
	auto_str struct str text = {0};
	if (l->no_keys++)
		return 0;
	str_add_printable(&text, l->key);
	const bool is_long = text.b.len > SHOWN_MAX;
	str_cut(&text, SHOWN_MAX);
	str_addf(&text, "%s (%s)", is_long ? "..." : "", why);
	if (str_ok(&text))
		l->page->left_out = arena_strndup(l->page->arena, str_text(&text), text.b.len);
	return l->page->left_out ? 0 : no_memory(l);
}

static int leave_out_long(struct lister *l)
{
	return leave_out_name(l, "its key, or those below it, would be longer than 1024 bytes");
}

/* A directory is no temporary file, and domains may be in it. */
static int consider_reserved(struct lister *l, int fd, const struct dirent *e)
{
	struct stat st;
	if (e->d_type == DT_REG || fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
	    S_ISREG(st.st_mode))
		return 0;
	return leave_out_name(l, "names that begin with " DIR_TEMP_PREFIX " are reserved");
}

/* Handles one entry. Keeps it if it is an item or a directory that may contain items. */
static int consider(struct lister *l, int fd, const struct dirent *e, struct names *names)
{
	const size_t n = strlen(e->d_name);
	bool is_link = false;
	if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
		return 0;
	memcpy(l->key + l->len, e->d_name, n + 1);
	const bool is_reserved = dir_reserved(e->d_name);
	if (is_reserved)
		dir_temp_sweep(l->d, fd, e->d_name);
	const size_t prefix_len = strlen(l->req->key);
	if (strncmp(l->key, l->req->key, l->len + n < prefix_len ? l->len + n : prefix_len) != 0)
		return 0; /* before a link is resolved, which costs a system call */
	if (is_reserved)
		return consider_reserved(l, fd, e);
	if (l->len + n > STORE_KEY_MAX)
		return leave_out_long(l);
	const int kind = kind_of(l, fd, e, &is_link);
	if (kind == KIND_NONE || kind < 0)
		return kind;
	if (kind == KIND_DIR) {
		/* A key below it is at least one byte longer than its prefix. */
		if (l->len + n + 1 >= STORE_KEY_MAX)
			return leave_out_long(l);
		strcpy(l->key + l->len + n, "/");
	}
	if (!may_match(l, kind == KIND_DIR))
		return 0;
	if (l->unordered && (kind == KIND_FILE || l->req->list.delimit) &&
	    ++l->counted > l->req->list.limit)
		return err_set(l->err, -E2BIG, "more than %u objects below '%s'",
			       l->req->list.limit, l->req->key);
	return keep(l, names, kind == KIND_DIR, is_link);
}

static int by_text(const void *a, const void *b, void *text)
{
	const struct name *x = a, *y = b;
	return strcmp((const char *)text + x->at, (const char *)text + y->at);
}

static int read_names(struct lister *l, DIR *dir)
{
	auto_names struct names names = {0};
	for (;;) {
		errno = 0;
		const struct dirent *e = readdir(dir);
		if (!e)
			break;
		int rc = consider(l, dirfd(dir), e, &names);
		if (rc == 0 && l->unordered && names.n == BATCH)
			rc = visit_all(l, dirfd(dir), &names);
		if (rc)
			return rc;
	}
	if (errno) {
		const int code = -errno;
		l->key[l->len] = '\0';
		return bad_dir(l, code);
	}
	if (!l->unordered && names.n > 1)
		qsort_r(names.v, names.n, sizeof(*names.v), by_text, names.text.data);
	return visit_all(l, dirfd(dir), &names);
}

/* Lists the directory fd, whose path is l->key[0, len). Closes fd. */
static int walk(struct lister *l, int fd)
{
	auto_close int owned = fd;
	struct stat st;
	l->key[l->len] = '\0';
	if (fstat(fd, &st))
		return bad_dir(l, -errno);
	for (unsigned int i = 0; i < l->depth; i++)
		if (l->above[i].dev == st.st_dev && l->above[i].ino == st.st_ino)
			return err_set(l->err, -ELOOP, "directory %s: it contains itself", l->key);
	if (l->depth == DEPTH_MAX)
		return err_set(l->err, -ELOOP, "directory %s: more than %d levels deep", l->key,
			       DEPTH_MAX);
	auto_closedir DIR *dir = fdopendir(fd);
	if (!dir)
		return bad_dir(l, -errno);
	owned = -1;
	l->above[l->depth].dev = st.st_dev;
	l->above[l->depth].ino = st.st_ino;
	l->depth++;
	int rc = read_names(l, dir);
	l->depth--;
	return rc;
}

/* Sets l->key to the directory part of the prefix. Returns false if no key can begin with the
 * prefix. */
static bool start_dir(struct lister *l)
{
	const char *prefix = l->req->key;
	const char *slash = strrchr(prefix, '/');
	if (!slash)
		return true;
	const size_t n = (size_t)(slash - prefix);
	if (n >= STORE_KEY_MAX)
		return false;
	memcpy(l->key, prefix, n);
	l->key[n] = '\0';
	return store_key_ok(l->key) && !dir_reserved(l->key);
}

int dir_list(struct dir_store *d, struct store_request *req)
{
	struct store_page *page = &req->answer.page;
	struct err *err = &req->answer.err;
	auto_free struct lister *l = calloc(1, sizeof(*l));
	if (!l || store_page_init(page))
		return err_set(err, -ENOMEM, "listing of '%s': out of memory", req->key);
	l->d = d;
	l->req = req;
	l->page = page;
	l->err = err;
	l->unordered = req->list.limit && req->list.max > req->list.limit && !req->list.until;
	if (!start_dir(l))
		return 0;
	int fd = dir_open_proved(l->d, l->key, O_RDONLY | O_DIRECTORY);
	if (fd == -ENOENT)
		return 0;
	if (fd < 0)
		return bad_dir(l, fd);
	l->len = strlen(l->key);
	if (l->len)
		l->key[l->len++] = '/';
	int rc = walk(l, fd);
	/* If no entry at all can be examined, the directory is reported as the problem. */
	if (rc == 0 && l->left_out && page->n == 0 && !req->list.start_after)
		rc = dir_fail(err, l->left_out_code, l->first_left_out);
	else if (l->left_out)
		log_warning(d->base.env->log,
			    "listing of '%s': %u entries cannot be examined and are left out; the "
			    "first is %s: %s",
			    req->key, l->left_out, l->first_left_out, strerror(-l->left_out_code));
	if (l->no_keys)
		log_warning(d->base.env->log,
			    "listing of '%s': %u names are left out; the first is %s", req->key,
			    l->no_keys, page->left_out);
	if (l->unordered)
		store_page_sort(page);
	return rc < 0 ? rc : 0;
}
