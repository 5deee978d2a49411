/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commits a draft: decides what its bytes are, and stores them as a domain or as a plain object.
 *
 * A draft is complete if it has no HDF5 signature, or if it is an HDF5 file that its library has
 * closed: the status of the superblock is 0, the end of the file is where the superblock says, and
 * its structures can be read. Only complete drafts become domains.
 *
 * A commit can be repeated. It notes in the journal that it begins (draft_mark()), and the id of
 * the storage follows from the id of the draft and the number of the commit. So the mount that
 * follows after a crash puts the same objects under the same keys. Nobody sees the storage before
 * the document of the domain names it.
 *
 * Blocks. One call at a time for each draft; any thread.
 */
#ifndef DRAFTS_DRAFT_COMMIT_H
#define DRAFTS_DRAFT_COMMIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <drafts/commit_state.h>
#include <schema/storage_id.h>
#include <storage/storage_sum.h>
#include <store/store.h>

struct domain_info;
struct bucket;
struct drafts;

/* Returns 64 bits that depend on the draft and on the number of its commit only. */
uint64_t commit_seed(const char *draft_id, uint32_t number);
/* Gets the storage that a commit writes. A recovered draft that was written to after its commit had
 * begun gets the storage of the next number. `schema` is that of new domains. */
struct storage commit_storage(const struct schema_ops *schema, const char *draft_id,
			      uint32_t number);

/* What the bucket has under the name, for draft_about.version:
 *   ""         nothing
 *   "d:ETAG"   a domain, whose document has this ETag
 *   "o:ETAG"   a plain object
 * A commit fails with -ESTALE if the bucket has something else by then. */
enum { COMMIT_VERSION = 1024 /* bytes, with the NUL */ };
/* Writes the version of a node that a look-up has found; not a directory. NULL means nothing. Fails
 * with -ENAMETOOLONG, or with the error of a document that could not be read, whose version is not
 * known. */
struct names_node;
int commit_version_of(const struct names_node *node, char out[COMMIT_VERSION]);
/* Writes the version of a domain whose document has this ETag. */
int commit_version_of_domain(const char *etag, char out[COMMIT_VERSION]);

enum commit_kind {
	COMMIT_WAITS, /* the draft is not complete, and nothing was stored */
	COMMIT_DOMAIN,
	COMMIT_OBJECT,
};

/* What the process that writes a draft knows about its failed commits. The caller keeps it from the
 * first commit to the last one. A zeroed struct means that no commit was tried. */
struct failed_commits {
	/* The storage of a failed commit may be, or have been, that of a domain: the answer to the
	 * put of the document was lost. It may even arrive later. */
	bool may_be_seen;
	uint32_t dropped; /* the storage of commits with smaller numbers is deleted */
};

struct commit {
	struct bucket *bucket;
	struct draft *draft; /* its description says what is replaced */
	struct draft_snapshot *snapshot;
	/* The number of this commit: larger than those of all commits of this draft that have
	 * begun, or that of the last one, if it has failed, was not refused, the bytes are the
	 * same, and no request may still arrive, except that for the document. For a recovered
	 * draft, the number in its mark. */
	uint32_t number;
	/* The commits of this draft that have failed, or NULL if an earlier process has written it.
	 * The storage of commits that have failed and that nobody can have seen is deleted before a
	 * commit with a larger number puts its first object, because a full bucket needs the
	 * room. */
	struct failed_commits *left;
	/* NULL, or what the last commit of this draft in this process has stored as a domain; the
	 * commit keeps it up to date. Before it replaces this domain, it lists the objects. If
	 * another program has changed one in place, the commit fails with -ESTALE. */
	struct storage_sum *stored;
	/* The access control list of a domain, as for import_options.acls; borrowed. A plain object
	 * has none. NULL is as if the name was written without a list. */
	const struct domain_info *acls;
	bool is_last; /* see struct commit_record */
	/* A person asks for the commit of a draft of an earlier process, after draft_resume(). A
	 * domain that was changed in place is committed although its library has not closed the
	 * file. Otherwise nobody may know whether the program had finished: then only a complete
	 * HDF5 file replaces a domain, and an HDF5 file that is not complete replaces nothing. If
	 * the commit fails before it has changed the bucket, the journal does not note it. The
	 * caller drops the draft after a success. */
	bool is_asked;
	const atomic_bool *cancelled; /* may be NULL; if it becomes true, the commit stops with
				       * -ECANCELED */
};

struct commit_result {
	enum commit_kind kind;
	enum commit_state state; /* how this attempt has ended; COMMIT_NONE if it has not begun */
	bool has_put;		 /* of a new or replaced file: its new storage may have objects */
	/* The version of what the bucket has now; not set with COMMIT_WAITS. The path in the bucket
	 * is that of the draft, unless a plain object replaces a domain without extension. */
	char version[COMMIT_VERSION];
	char path[STORE_KEY_MAX + 1];
	char kept[512]; /* COMMIT_OBJECT, COMMIT_WAITS: why it is no domain; "" if it is not an HDF5
			 * file */
	/* For a change: as in struct update_result. Set also if the commit fails. */
	uint64_t objects, nodes;
};

/* Commits. On success the caller calls draft_describe() with the new path and version. An error
 * does not change what readers of the name see, and the same call can be repeated; only in a
 * directory, where a domain and a plain object cannot have one name, the name may have nothing if
 * one was to replace the other. Fails with -ESTALE if another program has changed the name, and
 * with errors of the bucket and the journal. The names and snapshots of the engine know about the
 * change when it returns. about->name is the path in the mount, as in engine.h. */
int draft_commit(const struct commit *c, struct commit_result *out, struct err *err);

/* To be called for a draft of this process that is dropped: makes the storage of commits that have
 * failed garbage. */
void draft_commit_forget(struct bucket *bucket, struct draft *d, const struct failed_commits *left);
/* To be called before a draft of this process gets another name: a commit that has failed may yet
 * give its storage to the old one. Notes this in the bucket. */
int draft_commit_expect(struct bucket *bucket, struct draft *d, const struct failed_commits *left,
			struct err *err);

/* ---- draft_left.c ---- */

struct base_reader;
/* Commits a draft of draft_open(), which an earlier process has left, because a person asks for it;
 * see commit.is_asked. `beneath` is the reader that the draft was opened with; it is closed, and
 * the function opens it if the commit needs it. After success the caller drops the draft, and then
 * closes the reader. out->kind is COMMIT_WAITS if the bucket had everything already. Fails with
 * -ESTALE if the bucket has something else than when the file was opened; with -EIO if the file is
 * damaged or not complete; with -EOPNOTSUPP if a domain cannot hold it; and with -EBUSY if an
 * interrupted commit is complete now, but the draft has more. */
int draft_commit_left(struct bucket *bucket, struct draft *d, struct base_reader *beneath,
		      const atomic_bool *cancelled, struct commit_result *out, struct err *err);

/* Writes the name under which a mount shows a domain of this name, with the suffix of its schema.
 * Returns false if it is the same name, or too long. */
bool draft_shown_name(const char *suffix, const char *name, char shown[STORE_KEY_MAX + 1]);

/* ---- draft_recover.c ---- */

/* Finishes the commits that earlier processes have begun, one after the other, and logs what is
 * left in the journal. t is the table of drafts, whose names are held meanwhile; it may be NULL.
 * *left increases by the number of drafts that wait for `hsimage recover`. Blocks. */
void drafts_recover(struct bucket *bucket, struct drafts *t, struct journal *j,
		    const atomic_bool *cancelled, atomic_uint_fast64_t *left);

#endif
