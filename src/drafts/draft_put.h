/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of a commit: what the bucket has under the name, and the two ways in which the bytes of
 * a draft become what it has. See draft_commit.h.
 */
#ifndef DRAFTS_DRAFT_PUT_H
#define DRAFTS_DRAFT_PUT_H

#include <bucket/bucket.h>
#include <names/names.h>
#include <snapshots/snapshots.h>
#include <storage/change.h>
#include <storage/garbage.h>

#include <base/source.h>
#include <drafts/draft_commit.h>

enum present_kind { PRESENT_UNKNOWN, PRESENT_NOTHING, PRESENT_DOMAIN, PRESENT_OBJECT };

/* What the bucket has under the name of the draft. */
struct present {
	enum present_kind kind;
	const char *etag;	 /* of the document or of the object; "" if it is not known */
	struct names_node *node; /* PRESENT_DOMAIN: a reference to the node, which has its
				  * document */
	/* It is something else than when the draft was opened; but an earlier attempt of this
	 * commit may have done that. */
	bool differs;
};

/* One call of draft_commit(). */
struct draft_put {
	const struct commit *c;
	struct bucket *bucket;
	const struct draft_about *about;
	struct commit_record before; /* what the journal had when this attempt began */
	struct commit_run run;
	/* A person asks for it, and nobody knows whether the program had finished. */
	bool is_unfinished;
	struct present present;
	struct domain_puts *puts; /* of the new domain, for its first open; NULL if not known */
	char note[STORE_NOTE_MAX + 1]; /* draft_object.c: the note of the object, or "" */
	/* The bytes of the snapshot, and whether the disk has failed to read them. */
	struct source bytes;
	atomic_bool read_failed;
};

/* ---- draft_put.c: the state of a commit ---- */

int draft_put_init(struct draft_put *p, const struct commit *c, struct err *err);
/* Finds p->present. Fails with -ESTALE if the bucket has something that no attempt of this draft
 * has put. */
int draft_put_find(struct draft_put *p, struct err *err);
/* Returns whether an earlier attempt of a commit of this draft has begun and not succeeded. */
bool draft_put_is_again(const struct draft_put *p);
/* Notes in the journal that the commit begins. Call it before the first request that changes the
 * bucket. */
int draft_put_begin(struct draft_put *p, struct err *err);
/* Deletes the storage of earlier commits that have failed, if nobody can have seen it. The caller
 * calls this after draft_put_begin(), which has noted the number of this commit, so that no later
 * process makes them again. What cannot be deleted is deleted after a success. */
void draft_put_make_room(struct draft_put *p);
/* Fails with -ESTALE if another program has changed the domain of p->present in place since a
 * commit of this draft has stored it. */
int draft_put_check_stored(struct draft_put *p, struct err *err);
/* Says what the bucket has now. Fails with -ENAMETOOLONG. */
int draft_put_result(struct commit_result *out, enum commit_kind kind, const char *path,
		     const char *etag, struct err *err);
/* To be called if the commit has failed with rc. If the bucket has something else for good, and
 * nobody can have seen anything of this commit, notes that it is refused, and makes its storage
 * garbage. Otherwise notes that it has begun, so the next mount tries it again, too. */
void draft_put_fail(struct draft_put *p, int rc);
/* To be called if the commit has succeeded: notes that, and drops the storage of earlier
 * attempts. */
void draft_put_end(struct draft_put *p, const struct commit_result *out);
/* Makes the storage of a domain garbage. Call it before the request that replaces or removes the
 * domain, because its answer may be lost; as long as the domain has the storage, it is not
 * deleted. */
void draft_put_drop(struct draft_put *p, const struct names_node *n);
/* What a change of names needs. */
struct change draft_put_change(const struct draft_put *p);
/* Drops what is cached about the name if the bucket may have changed, and p->present. */
void draft_put_release(struct draft_put *p);
/* Returns -ESTALE, and reports that another program has changed the name. */
int draft_put_stale(const struct draft_put *p, struct err *err);
/* Returns the error of a document that cannot be read, which is neither another version nor absent,
 * or 0. */
int draft_check_document(const struct names_node *n, struct err *err);
/* Returns whether a domain has the storage of the commit of the draft with this number. */
bool draft_is_storage(const struct draft_put *p, const struct names_node *n, uint32_t number);

/* ---- draft_object.c ---- */

/* Puts the bytes as a plain object, and removes a domain that has the name. */
int draft_put_object(struct draft_put *p, struct commit_result *out, struct err *err);
/* Fails with -ESTALE if the bucket does not have the object any more that p->present describes. */
int draft_check_object(const struct draft_put *p, struct err *err);
/* Returns 1 if the object of p->present has the bytes of the draft, 0 if not, or a negative errno.
 * Bytes that were not written are not compared if they lie in an older version of the object, which
 * cannot be read any more. */
int draft_same_object(struct draft_put *p, struct err *err);
/* Deletes a plain object if it still has this version; otherwise fails with -ESTALE. Its absence is
 * no error. */
int draft_delete_object(const struct draft_put *p, const char *key, const char *etag,
			struct err *err);

/* ---- draft_domain.c ---- */

enum {
	DRAFT_DAMAGED = 1, /* the file is damaged, so it cannot become a domain: see out->kept */
	DRAFT_REFUSED,	   /* a domain cannot hold the file: see out->kept */
};
/* Imports the bytes, and removes a plain object that has the name. Returns 0, a negative errno, or
 * one of the above; then nothing of it can be seen. */
int draft_put_domain(struct draft_put *p, struct commit_result *out, struct err *err);
/* Returns whether the bucket has the domain that this commit puts. */
bool draft_is_domain(const struct draft_put *p);
/* To be called if the bucket has nothing: puts the document if an earlier attempt has put all
 * objects, and has then deleted the object that lies beneath the draft. *found is set if it has.
 * The bytes are not read. */
int draft_finish_domain(struct draft_put *p, bool *found, struct commit_result *out,
			struct err *err);

#endif
