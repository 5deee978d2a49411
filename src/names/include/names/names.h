/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a path of the mount is, and what a directory holds (doc/SEMANTICS.md, "Names"): domains,
 * directories and plain objects, found in the bucket and remembered for a while. Knows documents
 * and listings, no domain's content.
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

/* In the order of precedence: of what would have one name, the first is shown. */
enum names_kind { NAMES_DOMAIN, NAMES_DIR, NAMES_OBJECT };

enum names_doc_kind {
	NAMES_DOC_NONE,	  /* there is no document */
	NAMES_DOC_FOLDER, /* one without a root group */
	NAMES_DOC_ROOT,	  /* a domain */
	NAMES_DOC_BROKEN, /* one that cannot be read or understood: why says so */
	NAMES_DOC_CLOSED, /* of a node: what lies beneath cannot be listed, why says so */
};

/* What a document tells names. */
struct names_doc {
	enum names_doc_kind kind;
	struct schema_document *document; /* of NAMES_DOC_FOLDER and NAMES_DOC_ROOT; a reference */
	int code;			  /* NAMES_DOC_BROKEN, NAMES_DOC_CLOSED */
	char *why;
};

/* What a path of the mount is. Constant, but for the estimate, which any thread may set. */
struct names_node {
	atomic_uint refs;
	enum names_kind kind;
	char *path;		   /* in the bucket: of the domain, the prefix or the object */
	struct names_doc doc;	   /* of a domain, or of a directory that has one */
	struct store_meta meta;	   /* of a plain object */
	_Atomic uint64_t estimate; /* of a domain's size in bytes; 0: nobody asked yet */
	/* The name cache's own, under its lock. */
	uint64_t expires, list_expires;
	struct bytes list; /* of what a directory holds; empty: not known */
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

/* All borrowed. */
struct names_options {
	const struct env *env; /* its clock and its log */
	struct store *store;
	const struct schema_ops *const *schemas; /* ends with NULL */
	uint64_t ttl_ns;			 /* how long what a name is stays valid */
	uint64_t list_ttl_ns; /* and what a directory holds; 0: it is listed each time */
};

struct names;
struct names *names_new(const struct names_options *opt); /* NULL without memory */
void names_free(struct names *ns);

/* What a name of the mount is, from memory or from the bucket. -ENOENT; what kept the bucket from
 * answering. The caller unrefs. */
int names_resolve(struct names *ns, const char *path, struct names_node **out, struct err *err);
/* The same. *asked: the bucket was asked during this very call, so the node is not older. */
int names_resolve_now(struct names *ns, const char *path, struct names_node **out, bool *asked,
		      struct err *err);
/* What it was when the bucket was last asked, valid or stale; NULL when that is not remembered. The
 * caller unrefs. */
struct names_node *names_recall(struct names *ns, const char *path);
/* The bucket is not as this path was remembered. */
void names_forget(struct names *ns, const char *path);

/* Calls fn for each entry of a directory, in byte order of the names; non-zero stops. -ENOENT,
 * -ENOTDIR. */
typedef int (*names_list_fn)(void *arg, const char *name, enum names_kind kind);
int names_list(struct names *ns, const char *path, names_list_fn fn, void *arg, struct err *err);
/* Whether a directory can be listed now. Asks only where the last answer was that it cannot. */
int names_check_dir(struct names *ns, const char *path, struct err *err);

/* About how large the file of a domain is that was never opened. ask: the bucket may be asked, of
 * this domain and of those that are likely to be asked for next. */
uint64_t names_size(struct names *ns, struct names_node *node, bool ask);

/* Permission bits of a file or directory from its access control list; without a document: all may
 * read, so that opening what is broken says why. */
unsigned int names_mode(const struct domain_info *d, bool is_dir);
unsigned int names_doc_mode(const struct names_doc *d, bool is_dir);
/* Access control lists as JSON, as the document has them. Heap; NULL without memory. */
char *names_acls_json(const struct domain_info *d);

/* ---- paths; pure ---- */

/* Heap, NULL without memory. */
char *names_join(const char *dir, const char *name);
/* Length of what is before the last component, without the slash; 0 at the top. */
size_t names_parent_len(const char *path);
/* A domain's path to its file's path, in place. -ENAMETOOLONG. */
int names_of_domain(char *path, size_t cap);

#endif
