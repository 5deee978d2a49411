/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resolves a path of the mount to a domain, a directory or a plain object, and lists directories
 * (doc/DETAILS.md, "Names"). The results are read from the bucket and cached for a limited time.
 * This layer reads domain documents and listings, but not the contents of a domain.
 *
 * Threads: every function may be called from any thread. No lock is held during I/O or callbacks.
 */
#ifndef NAMES_NAMES_H
#define NAMES_NAMES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hsmount/err.h>
#include <base/env.h>
#include <base/mem.h>
#include <schema/schema.h>
#include <store/store.h>
#include <uthash.h>

/* In the order of precedence: if several have one name, the first is shown. */
enum names_kind { NAMES_DOMAIN, NAMES_DIR, NAMES_OBJECT };

/* Whether the bucket has a directory marker at the path, an object "path/". */
enum names_marker { NAMES_MARKER_UNKNOWN, NAMES_MARKER_ABSENT, NAMES_MARKER_PRESENT };

enum names_doc_kind {
	NAMES_DOC_NONE,	      /* there is no document */
	NAMES_DOC_FOLDER,     /* a document without a root group */
	NAMES_DOC_ROOT,	      /* a domain's document */
	NAMES_DOC_STORE,      /* that of a domain which a listing shows: struct schema_mark */
	NAMES_DOC_BROKEN,     /* the document cannot be read or parsed, see why */
	NAMES_DOC_UNLISTABLE, /* in a node only: its prefix cannot be listed, see why */
};

struct names_doc {
	enum names_doc_kind kind;
	/* A reference, of NAMES_DOC_FOLDER, NAMES_DOC_ROOT and NAMES_DOC_STORE. */
	struct schema_document *document;
	int code; /* of NAMES_DOC_BROKEN and NAMES_DOC_UNLISTABLE */
	char *why;
};

static inline bool names_doc_is_domain(const struct names_doc *d)
{
	return d->kind == NAMES_DOC_ROOT || d->kind == NAMES_DOC_STORE;
}

/* What has been found out about the file of a domain. Constant. */
struct names_size {
	uint64_t size, blocks; /* of 512 bytes */
	int64_t mtime_ns;
	uint64_t version; /* of the listing of the domain's keys; 0 if not all were listed */
	bool is_exact;	  /* otherwise an estimate */
};

struct names_sizes {
	struct names_size size;
	bool is_forgotten; /* nothing is known any more */
	struct names_sizes *earlier;
};

/* The domain, directory or object at a path of the mount. Constant, except for the size, the note
 * and the keys, which any thread may set or take. */
struct names_node {
	atomic_uint refs;
	enum names_kind kind;
	/* An object in this directory is the mark of a domain (struct schema_mark). Marks in the
	 * prefixes below it do not count. */
	bool is_marked;
	enum names_marker marker; /* of a domain or directory */
	char *path;		  /* in the bucket: of the domain, the prefix or the object */
	struct names_doc doc;	  /* of a domain, or of a directory that has one */
	struct store_meta meta;	  /* of a plain object */
	_Atomic(struct names_sizes *) sizes; /* of a domain, latest first; NULL if unknown */
	atomic_bool is_sized;		     /* a thread is finding out the size */
	_Atomic(char *) note; /* of a plain object; NULL if not known yet. Set once */
	/* Of a domain: its keys in the form of names_take_keys(), or NULL. */
	_Atomic(struct bytes *) keys;
	/* Members of the name cache, guarded by its lock. */
	uint64_t expires;
	uint64_t walk; /* number of the walk that the node belongs to, or 0 */
	bool walked;   /* looked up since the listing */
	uint64_t walked_until;
	int failure; /* of the latest look-up */
	uint64_t failure_until;
	struct bytes list; /* entries of a directory; empty if not known */
	uint64_t list_expires;
	/* The number of keys below a directory in all levels, if these are probably few; 0 if not
	 * known. */
	uint32_t flat_keys;
	uint32_t charged; /* bytes of memory */
	UT_hash_handle hh;
	char name[]; /* path in the mount */
};

struct names_node *names_node_ref(struct names_node *node);
void names_node_unref(struct names_node *node);
static inline void cleanup_names_node(struct names_node **node)
{
	names_node_unref(*node);
}
#define auto_names_node __attribute__((cleanup(cleanup_names_node)))

/* All pointers are borrowed. */
struct names_options {
	const struct env *env; /* its clock and its log */
	struct store *store;
	struct store *disk; /* the cache on disk in the stack of the store, or NULL */
	const struct schema_ops *const *schemas; /* ends with NULL */
	uint64_t ttl_ns;			 /* how long a node is valid */
	uint64_t list_ttl_ns; /* how long a listing is valid; if 0, each listing sends requests */
	/* The store lists a prefix only if it has an object, so a listing of all levels shows the
	 * same names as a listing of one level. */
	bool prefixes_have_objects;
	/* The bucket is known to have domains that a listing shows (struct schema_mark). Otherwise
	 * the first listing that shows one sets this. */
	bool has_marks;
	/* If it is not NULL, the root directory has only these entries, and is never listed. They
	 * are names without slashes; the array ends with NULL. */
	const char *const *roots;
};

struct names;
struct names *names_new(const struct names_options *opt); /* NULL if out of memory */
void names_free(struct names *ns);

/* Gets the node of a path, from the cache or from the bucket. Returns -ENOENT if nothing has this
 * name, or the error of a request. The caller unrefs the node. */
int names_resolve(struct names *ns, const char *path, struct names_node **out, struct err *err);
/* The same, but a walk of the directory does not extend the time for which the node is valid.
 * *is_new says whether the node was read from the bucket during this call. */
int names_resolve_for_open(struct names *ns, const char *path, struct names_node **out,
			   bool *is_new, struct err *err);
/* The same for a caller whose change fails if something has the name by then: *out is NULL if
 * nothing has the name, or had it a moment ago, which takes no request. */
int names_resolve_for_change(struct names *ns, const char *path, struct names_node **out,
			     struct err *err);
/* Called when a program makes a file that the bucket does not have. The directory is listed in the
 * background, if that may spare requests for the next new names in it: see complete_dirs.h. */
void names_will_create(struct names *ns, const char *path);
/* Returns whether its document alone decides that a node is shown under its name. This is true of a
 * domain with an extension, which hides anything else of this name. */
bool names_is_certain(const struct names_node *n);
/* Returns the cached node, valid or stale, or NULL if there is none. The caller unrefs it. */
struct names_node *names_recall(struct names *ns, const char *path);
/* Drops the cached node, for a caller that has found that the bucket does not match it any more. */
void names_forget(struct names *ns, const char *path);
/* Called after a change of what has this name. Drops the cached node, that of the other name of a
 * domain without extension, and the cached listing of the directory. Answers to requests that were
 * sent earlier do not get into the cache. */
void names_changed(struct names *ns, const char *path);
/* Fails with -EINVAL if the mount would not show an entry of this path: the path is no valid key or
 * not UTF-8, belongs to the storage, or is outside of the directories of names_options.roots; with
 * -ENAMETOOLONG if the key of a document of this path would be too long, or its name has more than
 * 255 bytes. */
int names_check_new(struct names *ns, const char *path, struct err *err);

enum names_shown_check {
	NAMES_SHOWN_FREE,     /* nothing else has the name */
	NAMES_SHOWN_TAKEN,    /* a listing would show something else */
	NAMES_SHOWN_TOO_LONG, /* see names_shown() */
};
/* Finds out whether a listing would show a new domain at this path. Looks the name up under which
 * it would do that, if that is another one. Returns an enum names_shown_check, with names_shown()
 * in `shown`, or the error of a request. taken may be NULL; otherwise *taken is what has the name,
 * and the caller unrefs it. */
int names_check_shown(struct names *ns, const char *suffix, const char *path,
		      char shown[STORE_KEY_MAX + 1], struct names_node **taken, struct err *err);

/* Returns whether a program that removes this domain has to delete a directory marker, too. */
bool names_may_have_marker(const struct names *ns, const struct names_node *n);

/* Refuses to change a domain that only a listing shows: returns -EROFS, and sets err to the reason.
 * The reason is also logged. */
int names_read_only(struct names *ns, const struct names_node *n, struct err *err);

/* Calls fn for each entry of a directory, in byte order of the names; a result other than 0 stops.
 * Returns that result. Fails with -ENOENT, with -ENOTDIR, and with the error of a request. */
typedef int (*names_list_fn)(void *arg, const char *name, enum names_kind kind);
int names_list(struct names *ns, const char *path, names_list_fn fn, void *arg, struct err *err);
/* Returns false if a listing has left out what it cannot show, for example a domain `run` beside
 * `run.h5`, or if names_options.roots are set. */
bool names_list_is_whole(struct names *ns);
/* Returns whether any listing has left out what it cannot show. */
bool names_has_left_out(struct names *ns);
/* Called after a mount. Caches the nodes of the root's entries, so that the first look-ups in the
 * root send no request. Caches nothing if the root has more than 64 entries, with
 * names_options.roots, or if nodes are never valid. A failed request is not reported: a look-up
 * repeats it. Takes two or three rounds of requests. */
void names_preload(struct names *ns);
/* Returns 0 if a directory can be listed now. Sends a request only if the cached node says that the
 * directory cannot be listed. */
int names_check_dir(struct names *ns, const char *path, struct err *err);

/* Returns what is known of the size of a domain, or NULL. It is borrowed from the node. A new node
 * of the same name knows nothing: its caller has to find out whether the domain has changed. */
const struct names_size *names_get_size(const struct names_node *node);
/* Sets the size. The node keeps the earlier ones, because they may be in use. If memory is short,
 * nothing happens. */
void names_set_size(struct names_node *node, const struct names_size *size);
/* Called when the domain at this path of the mount has another size. */
void names_forget_size(struct names *ns, const char *path);
/* If the listing of the directory has shown all keys of a domain, fills the page with them, so that
 * the caller finds out the size without another listing. The node forgets them. Returns false if it
 * has none, or if out of memory. */
bool names_take_keys(struct names_node *node, struct store_page *page);
/* If a program is going through the directory, finds at most max domains after this one in the
 * listing whose size is neither known nor being found out. The caller sets is_sized of those that
 * it takes over, and unrefs all. Returns their number. */
size_t names_unsized(struct names *ns, struct names_node *node, struct names_node **out,
		     size_t max);
/* Keeps the nodes of a listing valid, because a request for this one has just ended. */
void names_continue_walk(struct names *ns, struct names_node *node);

/* The service's summary of a domain. It may be older than the domain. */
struct names_summary {
	uint64_t size;	     /* an estimate in bytes; 0 if there is none */
	int64_t modified_ns; /* 0 if unknown */
	char etag[STORE_ETAG_MAX];
};
/* Describes the request for the summary. Returns false if the domain can have none. */
bool names_summary_prepare(const struct names_node *node, struct store_request *req);
/* Reads the answer. A domain without a usable summary has a zeroed one. Returns the error of a
 * request that has failed for a reason that may pass. */
int names_summary_take(const struct names_node *node, const struct store_request *req,
		       struct names_summary *out, struct err *err);

/* Gets the note of a plain object (store/store.h). The first call for a version of the object sends
 * a HEAD, unless the look-up of the name has got the note. If a program goes through the directory,
 * the notes of the objects behind it in the listing are requested in the same round. Blocks.
 * Returns -ENOENT if the object was deleted, or the error of the request. */
int names_note(struct names *ns, struct names_node *node, char note[STORE_NOTE_MAX + 1],
	       struct err *err);

/* Return the permission bits of a file or directory from its access control list. Without a
 * document everyone may read, so that opening a broken file reports the reason. If is_writable is
 * true, the owner has the bit 0200 if the list permits to update the domain, or to create something
 * in the directory. */
unsigned int names_mode(const struct domain_info *d, bool is_dir, bool is_writable);
unsigned int names_doc_mode(const struct names_doc *d, bool is_dir, bool is_writable);
/* Returns the access control lists as JSON, as in the document, on the heap, or NULL if out of
 * memory. */
char *names_acls_json(const struct domain_info *d);

/* ---- paths; pure ---- */

/* Returns whether n bytes can be a name in a directory. */
bool names_ok(const char *name, size_t n);

/* Returns a path on the heap, or NULL if out of memory. */
char *names_join(const char *dir, const char *name);
/* Returns the length of the path before its last component, without the slash, or 0 in the root
 * directory. */
size_t names_parent_len(const char *path);
/* Finds the path of the domain that only a listing shows and whose file may have this path:
 * "x.zarr" for "x.zarr.nc". *out is on the heap, or NULL if there is none. Returns 0 or -ENOMEM. */
int names_marked(const struct schema_ops *const *schemas, const char *path, char **out);
/* Changes the path of a domain to the path of its file, in place, with the suffix of its schema.
 * Returns -ENAMETOOLONG if that has more than cap bytes. */
int names_of_domain(const char *suffix, char *path, size_t cap);
/* Writes the path under which a listing shows a domain: "run.h5" for "run". Returns -ENAMETOOLONG
 * if a listing leaves the domain out, because the path or its last name would be too long. */
int names_shown(const char *suffix, const char *path, char shown[STORE_KEY_MAX + 1]);

#endif
