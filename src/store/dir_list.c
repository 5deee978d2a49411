/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory store: listing.
 *
 * Keys come in byte order, which is not the order of names: "a-b" is before "a/b", since '-' is
 * before '/'. A directory's name therefore carries its slash when it is compared, and then walking
 * the tree in the order of names gives the keys in order.
 *
 * Two ways through one directory:
 *  - in order: its names are read, sorted, then visited, until the page is full;
 *  - all (the caller wants at most `limit` items or nothing): names are counted as they are read
 *    and visited in batches, and the page is sorted in the end. A directory of millions is left
 *    after limit + 1 entries, with not one of them looked at.
 *
 * An entry that is there but cannot be looked at (a disk error, no right to search the directory, a
 * link that leads nowhere) hides no other from a caller that reads names: with the delimiter it is
 * left out, and the log says so. Where whole trees are listed, or the caller asks for a complete
 * listing, it makes the listing fail: an object that is left out would be taken for one that does
 * not exist. That the program has no more descriptors or memory is not the entry's fault, and fails
 * either.
 *
 * Hostile trees: depth is bounded, a directory below itself ends the listing, and links to
 * directories, by which a small tree can look like a vast one, are entered LINKS_MAX times in one
 * call.
 */
#include "dir.h"

#include "page.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum {
	DEPTH_MAX = 64,
	LINKS_MAX = 10000,
	BATCH = 1024,
	FULL = 1, /* result of a visit: the page is, stop */
};

struct name {
	size_t at; /* in names.text, NUL-terminated; a directory's with its slash */
	bool is_dir;
	bool is_link;
};

struct names {
	struct bytes text;
	struct name *v;
	size_t n, cap;
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
	const struct store_list *req;
	struct store_page *page;
	struct err *err;
	bool all;	  /* see above */
	uint32_t counted; /* while `all`: items seen, not all of them on the page yet */
	unsigned int links;
	unsigned int too_long; /* names that make no keys */
	unsigned int unseen;   /* entries that cannot be looked at, left out */
	int unseen_code;       /* of the first of them, and its key */
	char first_unseen[STORE_KEY_MAX + 1];
	unsigned int depth;
	struct {
		dev_t dev;
		ino_t ino;
	} above[DEPTH_MAX]; /* the directories that we are in */
	size_t len;	    /* of the directory's path in key, with its slash; 0 for the root */
	char key[STORE_KEY_MAX + NAME_MAX + 2];
};

static int walk(struct lister *l, int fd);

static int no_memory(struct lister *l)
{
	return err_set(l->err, -ENOMEM, "listing of '%s': no memory", l->req->prefix);
}

static int bad_dir(struct lister *l, int code)
{
	if (code == -EXDEV || code == -ELOOP)
		code = -EACCES;
	return err_errno(l->err, code, "directory %s", l->key[0] ? l->key : "/");
}

/* ---- what a directory entry is ---- */

enum kind { KIND_NONE, KIND_FILE, KIND_DIR };

static enum kind kind_of_mode(mode_t mode)
{
	return S_ISREG(mode) ? KIND_FILE : S_ISDIR(mode) ? KIND_DIR : KIND_NONE;
}

/* What `code` means of an entry of the directory fd, of which l->key is the path: 0 it has gone
 * meanwhile. */
static int why_unseen(const struct lister *l, int fd, int code)
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

static bool is_own_fault(int code)
{
	return code == -EMFILE || code == -ENFILE || code == -ENOMEM;
}

/* l->key, an entry of the directory fd, could not be looked at. */
static int leave_out(struct lister *l, int fd, int code)
{
	code = why_unseen(l, fd, code);
	if (code == 0)
		return 0;
	if (!l->req->delimit || l->req->complete || is_own_fault(code))
		return dir_fail(l->err, code, l->key);
	if (l->unseen++ == 0) {
		l->unseen_code = code;
		snprintf(l->first_unseen, sizeof(l->first_unseen), "%.*s", STORE_KEY_MAX, l->key);
	}
	return 0;
}

/* An enum kind, or why the listing fails. */
static int kind_of(struct lister *l, int fd, const struct dirent *e, bool *is_link)
{
	unsigned char type = e->d_type;
	struct stat st;
	if (type == DT_UNKNOWN) {
		if (fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW)) {
			int rc = leave_out(l, fd, -errno);
			return rc ? rc : KIND_NONE;
		}
		type = IFTODT(st.st_mode);
	}
	*is_link = type == DT_LNK;
	if (*is_link) {
		int rc = dir_stat(l->d, l->key, &st);
		if (rc)
			rc = leave_out(l, fd, rc);
		else
			return kind_of_mode(st.st_mode);
		return rc ? rc : KIND_NONE;
	}
	return type == DT_REG ? KIND_FILE : type == DT_DIR ? KIND_DIR : KIND_NONE;
}

/* True when something at or below l->key may be an item. */
static bool wanted(const struct lister *l, bool is_dir)
{
	const char *after = l->req->start_after;
	if (strncmp(l->key, l->req->prefix, strlen(l->req->prefix)) != 0)
		return false;
	if (!after || strcmp(l->key, after) > 0)
		return true;
	return is_dir && !l->req->delimit && strncmp(l->key, after, strlen(l->key)) == 0;
}

/* ---- visiting ---- */

static int add(struct lister *l, const struct store_meta *meta)
{
	if (l->page->n == l->req->max) {
		page_set_more(l->page);
		return FULL;
	}
	return page_add(l->page, l->key, meta) ? no_memory(l) : 0;
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
		return 0; /* another thing meanwhile */
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
		const int why = why_unseen(l, fd, below);
		return why ? bad_dir(l, why) : 0;
	}
	const size_t len = l->len;
	l->len = strlen(l->key);
	int rc = walk(l, below);
	l->len = len;
	return rc;
}

static int visit(struct lister *l, int fd, const struct names *names, const struct name *name)
{
	strcpy(l->key + l->len, (const char *)names->text.data + name->at);
	if (!name->is_dir)
		return visit_file(l, fd, name->is_link);
	return l->req->delimit ? add(l, NULL) : visit_dir(l, fd, name->is_link);
}

static int visit_all(struct lister *l, int fd, struct names *names)
{
	int rc = 0;
	for (size_t i = 0; i < names->n && rc == 0; i++)
		rc = visit(l, fd, names, &names->v[i]);
	names->n = 0;
	names->text.len = 0;
	return rc;
}

/* ---- reading one directory ---- */

static int keep(struct lister *l, struct names *names, bool is_dir, bool is_link)
{
	const char *text = l->key + l->len;
	if (names->n == names->cap) {
		size_t cap = names->cap ? 2 * names->cap : 64;
		struct name *v = reallocarray(names->v, cap, sizeof(*v));
		if (!v)
			return no_memory(l);
		names->v = v;
		names->cap = cap;
	}
	names->v[names->n++] =
		(struct name){.at = names->text.len, .is_dir = is_dir, .is_link = is_link};
	return bytes_append(&names->text, text, strlen(text) + 1) ? no_memory(l) : 0;
}

/* Decides on one entry: keeps it when it is an item, or a directory where items may be. */
static int consider(struct lister *l, int fd, const struct dirent *e, struct names *names)
{
	const size_t n = strlen(e->d_name);
	bool is_link = false;
	if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 || dir_reserved(e->d_name))
		return 0;
	if (l->len + n > STORE_KEY_MAX) {
		l->too_long++;
		return 0;
	}
	memcpy(l->key + l->len, e->d_name, n + 1);
	const size_t known = strlen(l->req->prefix);
	if (strncmp(l->key, l->req->prefix, l->len + n < known ? l->len + n : known) != 0)
		return 0; /* before the cost of looking at a link */
	const int kind = kind_of(l, fd, e, &is_link);
	if (kind == KIND_NONE || kind < 0)
		return kind;
	if (kind == KIND_DIR) {
		/* A key below has at least one byte more than its prefix. */
		if (l->len + n + 1 >= STORE_KEY_MAX) {
			l->too_long++;
			return 0;
		}
		strcpy(l->key + l->len + n, "/");
	}
	if (!wanted(l, kind == KIND_DIR))
		return 0;
	if (l->all && (kind == KIND_FILE || l->req->delimit) && ++l->counted > l->req->limit)
		return err_set(l->err, -E2BIG, "more than %u objects below '%s'", l->req->limit,
			       l->req->prefix);
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
		if (rc == 0 && l->all && names.n == BATCH)
			rc = visit_all(l, dirfd(dir), &names);
		if (rc)
			return rc;
	}
	if (errno) {
		const int code = -errno;
		l->key[l->len] = '\0';
		return bad_dir(l, code);
	}
	if (!l->all && names.n > 1)
		qsort_r(names.v, names.n, sizeof(*names.v), by_text, names.text.data);
	return visit_all(l, dirfd(dir), &names);
}

/* Lists the directory l->key[0, len). Owns fd. */
static int walk(struct lister *l, int fd)
{
	auto_close int owned = fd;
	struct stat st;
	l->key[l->len] = '\0';
	if (fstat(fd, &st))
		return bad_dir(l, -errno);
	for (unsigned int i = 0; i < l->depth; i++)
		if (l->above[i].dev == st.st_dev && l->above[i].ino == st.st_ino)
			return err_set(l->err, -ELOOP, "directory %s: it is below itself", l->key);
	if (l->depth == DEPTH_MAX)
		return err_set(l->err, -ELOOP, "directory %s: more than %d deep", l->key,
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

/* Sets l->key to the directory part of the prefix. False when no key can begin like that. */
static bool start_dir(struct lister *l)
{
	const char *prefix = l->req->prefix;
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

int dir_list(struct store *s, const struct store_list *req, struct store_page *page,
	     struct err *err)
{
	auto_free struct lister *l = calloc(1, sizeof(*l));
	if (!l || page_init(page))
		return err_set(err, -ENOMEM, "listing of '%s': no memory", req->prefix);
	l->d = dir_store_of(s);
	l->req = req;
	l->page = page;
	l->err = err;
	l->all = req->limit && req->max > req->limit;
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
	/* Where not one entry can be looked at, the directory cannot. */
	if (rc == 0 && l->unseen && page->n == 0 && !req->start_after)
		rc = dir_fail(err, l->unseen_code, l->first_unseen);
	else if (l->unseen)
		log_warning(l->d->base.env->log,
			    "listing of '%s': %u entries are left out, the first is %s: %s",
			    req->prefix, l->unseen, l->first_unseen, strerror(-l->unseen_code));
	if (l->too_long)
		log_warning(
			l->d->base.env->log,
			"listing of '%s': %u names are left out, the keys would be longer than %d",
			req->prefix, l->too_long, STORE_KEY_MAX);
	if (l->all)
		page_sort(page);
	return rc < 0 ? rc : 0;
}
