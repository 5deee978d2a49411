/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of names of a storage: an object below the storage, with all names that renames have
 * given to the domain, and the last rename. Deletions of storage look at these names, because no
 * listing shows which domains elsewhere in the bucket lead to a storage. The service ignores the
 * object. It is made by the first rename or pending name, and deleted with the storage.
 *
 * Every change of the list is conditional on the version that was read. So whoever changes it
 * first is known to all others: the list is also the lock of the names. See doc/JOURNAL.md, "The
 * list of names".
 *
 * Framed records (base/frame.h), little-endian, after the head HSMNAMES, version 1:
 *
 *   type 1, a name           type 2, the last rename; at most one
 *    +0  8  when it was       +0  8  its number
 *           given             +8  4  enum rename_state
 *    +8     path, NUL        +12  4  zero
 *                            +16  8  when it began, or was taken over or withdrawn
 *                            +24     version of the document of `from`, NUL; `from`, NUL; `to`, NUL
 *
 *   type 3, a pending name: a rename that is not the last one any more, or a commit that has had no
 *           answer, may still give it
 *    +0  8  number of the rename, or a random one
 *    +8  8  when it began, or was withdrawn
 *   +16     path, NUL
 *
 * Times are in nanoseconds since 1970, and paths are those of the bucket.
 *
 * The clocks of machines differ, so the times are those of the bucket. A process does not know the
 * time that the bucket will give to the list which it puts. It writes its own time, negated, in the
 * records that are new. When the list is read, they get the time at which the bucket has stored it.
 * If the bucket does not know this, they get the time of the process that has put them.
 */
#ifndef STORAGE_STORAGE_NAMES_H
#define STORAGE_STORAGE_NAMES_H

#include <domain/documents.h>

enum rename_state {
	RENAME_NONE,
	/* The document of `to` may have been put, and that of `from` may have been deleted. Whoever
	 * finds this finishes the rename (rename.h). */
	RENAME_BEGUN,
	/* The bucket has refused to delete the document of `from`. Both names stay until a program
	 * repeats the rename, or removes one of them. */
	RENAME_REFUSED,
	/* A program removes one of the two names. Nobody finishes the rename, but the document of
	 * `to` may still arrive. */
	RENAME_WITHDRAWN,
	/* As RENAME_BEGUN; a process has taken the rename over, and may be deleting the document of
	 * `from` at this moment. */
	RENAME_TAKEN,
};

static inline bool rename_is_open(enum rename_state state)
{
	return state == RENAME_BEGUN || state == RENAME_TAKEN;
}

struct rename_record {
	enum rename_state state; /* RENAME_NONE: there is no record */
	uint64_t number;	 /* random */
	int64_t began_ns;	 /* this and all other times of a list: negative if it is new */
	const char *version, *from, *to;
};

/* Returns whether nobody may know yet that the document of `to` has been put, or never will be. */
static inline bool rename_may_give(const struct rename_record *r)
{
	return rename_is_open(r->state) || r->state == RENAME_WITHDRAWN;
}

struct storage_name {
	int64_t given_ns; /* of a pending name: when its rename began, or was withdrawn */
	const char *path;
	bool is_pending;
	uint64_t rename; /* the number of the rename that may still give a pending name */
};

enum { STORAGE_NAMES_MAX = 1024 /* names */ };

/* The texts are in the arena. */
struct storage_names {
	struct storage storage;
	struct arena *arena;
	char etag[STORE_ETAG_MAX]; /* "": the bucket has no list */
	/* A moment that had come when the list was read, by the same clock as its times. */
	int64_t read_ns;
	struct storage_name *v;
	size_t n, room;
	struct rename_record rename;
};

/* Pure. Fails with -EBADMSG if the bytes are no list, with -ENOTSUP if it has a later version, and
 * with -ENOMEM. */
int storage_names_parse(const void *bytes, size_t n, struct storage_names *out, struct err *err);
int storage_names_emit(const struct storage_names *names, struct bytes *out);

/* Makes an empty list, which may become the first one of a storage. Fails with -ENOMEM. */
int storage_names_init(struct storage_names *names, const struct storage *storage, struct err *err);
void storage_names_release(struct storage_names *names);
#define auto_names __attribute__((cleanup(storage_names_release)))
/* The time of a record that is new. */
int64_t storage_names_new_time(const struct env *env);
/* Reads the list, in place of what *names has. A storage without a list has an empty one. */
int storage_names_read(const struct document_place *p, struct storage_names *names,
		       struct err *err);
/* Puts the list, if the bucket still has the version that was read. Otherwise fails with
 * -ESTALE. */
int storage_names_put(const struct document_place *p, struct storage_names *names, struct err *err);

/* Finds out what time it is by the clock of the times of lists. The object of this key is one below
 * the storage that this process has just put. Fails with -EBUSY if it is gone. One HEAD. */
int storage_names_now(const struct document_place *p, const char *key, int64_t *now_ns,
		      struct err *err);

/* Adds a name, or sets the time of one that is there. Copies the path. Fails with -ENOMEM, and with
 * -ENOSPC if the list is full. */
int storage_names_add(struct storage_names *names, const char *path, int64_t now_ns,
		      struct err *err);
/* Does the same for a name that this rename, which is no longer the last one, may still give. */
int storage_names_add_pending(struct storage_names *names, const struct rename_record *r,
			      struct err *err);
/* Reads the list, adds a name, and puts the list, until nobody else has changed it meanwhile. With
 * `awaited`, adds the new name of this rename as one that it may still give; `path` is then not
 * used. Fails with -ESTALE if others change the list all the time. */
int storage_names_enter(const struct document_place *p, struct storage_names *names,
			const char *path, const struct rename_record *awaited, struct err *err);
/* Sets the last rename. Copies the texts. Fails with -ENOMEM. */
int storage_names_set_rename(struct storage_names *names, const struct rename_record *r,
			     struct err *err);

/* Finds the first name in the list that leads to the storage. Returns 1, 0 if there is none, or a
 * negative errno. */
int storage_names_leads(const struct document_place *p, const struct storage_names *names,
			const char **path, struct err *err);
/* Reads the list of a storage, and does the same. Copies the path. */
int storage_names_find(const struct document_place *p, const struct storage *storage,
		       char path[STORE_KEY_MAX + 1], struct err *err);

/* Writes the key of an object of this program below a storage. `name` is one of struct
 * schema_ops. */
int storage_own_key(const struct document_place *p, const struct storage *storage, const char *name,
		    char key[SCHEMA_KEY_MAX + 1], struct err *err);

#endif
