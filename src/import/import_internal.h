/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the import share. See import/import.h. */
#ifndef IMPORT_IMPORT_INTERNAL_H
#define IMPORT_IMPORT_INTERNAL_H

#include <import/import.h>

#include <stdatomic.h>

#include <base/mem.h>
#include <data/tree.h>
#include <h5file/h5file.h>
#include <schema/schema.h>
#include <store/store.h>

#include <import/chunk_body.h>
#include <domain/documents.h>
#include <store/key_set.h>
#include <store/put_queue.h>

/* What is planned for a dataset. If it is zeroed, the dataset has no chunks. */
struct import_dataset {
	uint64_t stored;   /* chunks that the file stores */
	uint64_t bytes;	   /* of them */
	uint64_t linked;   /* chunks that stay in the file, with so many bytes */
	bool is_ascending; /* the index lists them in the order of their numbers */
};

/* The chunk table of a linked dataset, which is a dataset without a link. */
struct import_table {
	uint32_t dataset, table; /* numbers */
	bool has_masks;
};

struct import {
	const struct import_options *opt;
	const struct schema_ops *schema;
	struct document_place place;
	struct import_result *result;
	struct arena *arena; /* for the record */
	struct put_queue *queue;
	struct import_summary *summary; /* NULL if there is none */
	struct import_puts *puts;	/* of a commit; NULL if nothing is kept */

	/* import_begin.c */
	struct schema_import record;
	struct schema_document *document; /* of the domain that is replaced, or NULL */
	struct schema_document *folder;	  /* of the nearest ancestor that has one, or NULL */
	bool has_folder;		  /* an ancestor has one */
	size_t folder_len;		  /* length of its path */
	bool is_new;	   /* this call has put the record, and nothing else has been put */
	bool is_finished;  /* the document names the storage of the record already, or did */
	bool is_elsewhere; /* … and the domain has another name now */
	bool is_lost;	   /* no later call can or should continue the import */
	bool is_repeated;  /* a put of the document may have succeeded without an answer */
	bool continues;	   /* an earlier call may have put objects */

	/* import_guard.c */
	uint64_t began_ns; /* env_boot() */
	bool is_gone;	   /* the storage was deleted, at least in part */
	bool restores;	   /* what is missing is put again */

	/* The file. */
	struct h5file *file;
	struct tree *tree;		 /* of the file, to be edited */
	const char **paths;		 /* by number: of the objects in the file */
	struct import_dataset *datasets; /* by number */
	uint64_t total;			 /* bytes of raw data in the file */
	uint64_t passed;		 /* of them: of chunks that an earlier call has put */
	struct key_set *keys;		 /* that an earlier call has put; NULL if there are none */
	struct bytes tables;		 /* of struct import_table */
	bool overlaps;			 /* in the file of a link; reported */
	uint64_t verified;		 /* bytes of a link that were read */
	uint32_t npaths;		 /* length of paths and datasets */
	struct budget_charge charge;	 /* of the user block */
	atomic_bool is_damaged; /* a chunk cannot be decoded or encoded. Set by any thread */
	bool is_refused;	/* this damage has ended the import, not an error of the bucket */
};

/* ---- import_report.c ---- */

/* Reports a line to the user. */
void import_note(const struct import *im, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Reports progress. */
void import_progress(const struct import *im);
/* Returns the name of the file for messages. */
const char *import_file_name(const struct import *im);
/* Returns the path of an object of the file; never NULL. */
const char *import_path(const struct import *im, uint32_t number);

/* ---- import_begin.c: step 1, and what exists ---- */

/* Reads the document of the domain, the record and the folders. Puts the record if there is none.
 * For a commit, the caller knows all this. */
int import_begin(struct import *im, struct err *err);
/* Reads the record of opt->path, and sets *found to whether there is one. */
int import_read_record(struct import *im, bool *found, struct err *err);
int import_delete_record(struct import *im, struct err *err);
/* Notes in the record that what is stored may be damaged, so that it is put once more. */
int import_distrust(struct import *im, struct err *err);
/* Returns whether the record is of an import, or of a link in the same way, of the same version. */
bool import_is_same_kind(const struct import *im);
/* Returns whether the document, or NULL for none, is that of the domain that the record replaces.
 */
bool import_replaces(const struct import *im, const struct schema_document *d);
/* Returns whether the document names the storage that the record names. */
bool import_names_record(const struct import *im, const struct schema_document *d);
/* Finds out whether the domain of the record is complete: sets is_finished and is_elsewhere. */
int import_find_finished(struct import *im, struct err *err);

/* ---- import_check.c: step 2 ---- */

/* Reports everything in the file that is damaged or cannot be stored. Leaves out what cannot be
 * stored if the options say so. Otherwise fails with -EIO or -EOPNOTSUPP. */
int import_check(struct import *im, struct err *err);

/* ---- import_plan.c ---- */

/* Reads the index of each dataset, joins chunks, and counts. */
int import_plan(struct import *im, struct err *err);

/* ---- import_link.c ---- */

/* Makes references of the datasets whose data can stay in the file. */
int link_plan(struct import *im, struct err *err);
/* Puts the chunks of the tables. */
int link_put_tables(struct import *im, struct err *err);
/* Announces the reads of the chunks of a dataset that is copied. */
int link_advise(struct import *im, uint32_t number, struct err *err);

/* ---- link_verify.c ---- */

/* Reads all data to which the domain refers. Reports chunks that cannot be decoded or lack
 * elements, and fails with -EIO if there are any. Also fails with errors of the source, with
 * -ENOMEM, and with -ECANCELED. */
int link_verify(struct import *im, struct err *err);

/* ---- import_store.c: step 3 ---- */

/* Puts all chunks, the user block and all documents of objects. */
int import_store(struct import *im, struct err *err);
/* import_body.c: puts a body that exists already. *body is emptied. */
int import_put_body(struct import *im, const char *key, struct bytes *body, uint64_t weight,
		    struct err *err);

/* ---- import_summary.c ---- */

/* Begins to count what is put, unless this is a commit. The objects of the tree have ids. */
void import_summary_begin(struct import *im);
/* Counts an object of the storage. Any thread. */
void import_summary_add(const struct import *im, const char *key, uint64_t size);
/* Sends the put of the summary, when everything is counted. */
void import_summary_send(struct import *im);
/* Waits for its answer. */
void import_summary_end(struct import *im);
void import_summary_free(struct import *im);

/* ---- import_puts.c: what a commit has put ---- */

void import_puts_begin(struct import *im);
/* The document of an object was put, for the last time. Any thread. */
void import_puts_add(const struct import *im, uint32_t number, const struct store_request *req);
/* Returns the record if this call has put all objects of the domain, or NULL. All requests are
 * answered. */
struct domain_puts *import_puts_end(struct import *im);
void import_puts_free(struct import *im);
/* Returns about how long the text of a document is. */
uint64_t import_document_memory(const struct object *o);

/* ---- import_guard.c ---- */

/* Makes durable what was put. */
int import_make_durable(struct import *im, struct err *err);

/* Returns whether a deletion of storage without a name may concern this import. */
bool import_is_old(const struct import *im);
/* To be called when the document is there. If the storage is old, puts what a deletion has taken.
 * Without a file, it fails with -EBUSY then, and sets is_gone. */
int import_guard(struct import *im, struct err *err);

/* ---- import_end.c ---- */

/* Steps 4 and 5. */
int import_end(struct import *im, struct err *err);
/* Steps 6 and 7. */
int import_clean_up(struct import *im, struct err *err);

#endif
