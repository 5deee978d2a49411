/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hsmount's engine: shows a bucket of HDF5 domains as a tree of files. With check.h, recover.h,
 * err.h and log.h, this is the public interface. The FUSE front and the command line use it, and so
 * may other programs.
 *
 * Paths are UTF-8 and relative to the mount. The root is "", and no path begins or ends with a
 * slash. A domain has the name that a mount shows: ".h5" is appended if its last component has no
 * extension. Its name in the bucket leads to it, too, unless something else has that name.
 *
 * Between engine_open() and engine_close() any thread may call any function. A function returns 0
 * or a count, or a negative errno with the reason in *err, unless err is NULL.
 */
#ifndef HSMOUNT_ENGINE_H
#define HSMOUNT_ENGINE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <hsmount/err.h>
#include <hsmount/log.h>

struct engine_world; /* opaque: engine/parts.h */
struct cancel;	     /* opaque: base/cancel.h, for the FUSE front; other callers pass NULL */
struct engine;
struct engine_file;

/* Whether objects that are read whole are compared with a checksum of the service's. */
enum engine_s3_verify {
	ENGINE_S3_VERIFY_AUTO, /* only over plain HTTP: TLS detects damage itself */
	ENGINE_S3_VERIFY_ALWAYS,
	ENGINE_S3_VERIFY_NEVER,
};

/* Options for buckets "s3://…". Where they are NULL, 0 or false, the environment and the shared
 * files of the AWS tools apply, then defaults. */
struct engine_s3_options {
	const char *endpoint;	  /* URL of a service other than Amazon's */
	const char *region;	  /* NULL: S3 reports it */
	const char *profile;	  /* in the shared files */
	const char *ca_bundle;	  /* path */
	const char *bucket_owner; /* requests fail unless this account owns the bucket */
	unsigned int connections; /* at the same time, at most */
	bool no_sign_request;	  /* a public bucket */
	bool requester_pays;
	bool path_style; /* never put the bucket into the host name */
	enum engine_s3_verify verify;
};

/* What engine_getattr() finds out of a domain that is not open (doc/DETAILS.md, "Sizes and
 * times"). */
enum engine_stat_mode {
	ENGINE_STAT_AUTO,     /* exact sizes of domains that fit a page of a listing */
	ENGINE_STAT_EXACT,    /* exact sizes */
	ENGINE_STAT_ESTIMATE, /* nothing */
};

struct engine_options {
	const char *bucket; /* directory path, file://… or s3://bucket[/prefix] */
	/* For references to HDF5 files: the name of the bucket in them; NULL: that of the S3
	 * bucket, or the last component of the directory. And prefixes of URIs outside of the
	 * bucket that may be read, separated by commas: "s3://BUCKET/", "file:///DIRECTORY/"; NULL:
	 * none. */
	const char *bucket_name, *allow_uri;
	struct log *log;       /* borrowed; NULL: nothing is logged */
	unsigned int workers;  /* threads for requests and decoding; 0: the calling thread */
	uint64_t cache_size;   /* bytes of decoded chunks, loads and metadata */
	const char *cache_dir; /* fetched objects are kept there for later mounts; NULL: nowhere */
	uint64_t cache_disk_size;   /* bytes that cache_dir may hold, at least 1 MiB */
	enum engine_stat_mode stat; /* sizes and times of domains that are not open */
	double metadata_ttl;	    /* seconds for which cached names and sizes are valid */
	double open_ttl;	    /* seconds for which results of opens and listings are valid;
				       0: each open and each listing sends requests */
	/* NULL, or the only entries of the root directory: names, with or without slashes at their
	 * ends, separated by commas. The root of the bucket is then never listed. */
	const char *root;
	bool no_filters;  /* render every dataset unfiltered */
	bool allow_empty; /* accept a place that is not recognised as a bucket */
	bool make_bucket; /* accept an empty place, which becomes a bucket by the first put */
	/* engine_open_write(), engine_mkdir(), engine_rename() and so on change the bucket. An
	 * empty directory becomes a bucket. */
	bool write;
	const char *user; /* owner of new folders and domains; required if write is set */
	/* journal_dir, which is required if write is set: the directory that keeps what programs
	 * write until the bucket has it (doc/JOURNAL.md). Its parent must exist. spool_size: how
	 * many bytes it may keep; 0: half of the free space. */
	const char *journal_dir;
	uint64_t spool_size;
	const char *debug_fault; /* injects failures into the store, for tests; NULL: none */
	bool debug_count;	 /* show the counters as attributes user.hsds.debug.* of the root */
	struct engine_s3_options s3;
	const struct engine_world *world; /* NULL, or the surroundings in a simulation */
};
/* The defaults: workers 16, cache_size 256 MiB, cache_disk_size 10 GiB, metadata_ttl 1,
 * open_ttl 0. */
void engine_options_init(struct engine_options *opt);

/* Fails with -ENOENT, -ENOTDIR or -EACCES if the bucket cannot be read, with -EINVAL if an option
 * is wrong or the place is not a bucket, with -EOPNOTSUPP if the bucket's schema is not supported.
 */
int engine_open(const struct engine_options *opt, struct engine **out, struct err *err);
/* Begins work in the background: opens connections before they are needed, reads the names in the
 * root, and finishes commits that an earlier process has begun. Call it at most once, when the
 * process does not fork any more. An engine without write needs no call. */
void engine_start(struct engine *e);
/* All files must be closed. Repeats failed commits, for at most 15 seconds. Then deletes the
 * storage of domains that were removed, for at most 15 seconds. */
void engine_close(struct engine *e);

/* Splits "BUCKET/PATH". The bucket is the nearest directory, from the argument upwards, that has a
 * store of domains in it; in "s3://bucket/path" it is the whole bucket. The caller frees both.
 * Fails with -ENOENT if there is no such directory, and with the error of the first directory that
 * cannot be read if the bucket is not found. */
int engine_split(const char *arg, char **bucket, char **path, struct err *err);
/* Splits "BUCKET/PATH" for a bucket that does not exist yet: the nearest directory that exists.
 * Fails with -ENOENT if it is not empty. */
int engine_split_new(const char *arg, char **bucket, char **path, struct err *err);

enum engine_kind { ENGINE_DIR, ENGINE_DOMAIN, ENGINE_PLAIN };

struct engine_stat {
	enum engine_kind kind;
	uint64_t size;
	bool size_exact; /* false: size is an estimate, because the domain was not opened yet */
	uint64_t blocks; /* of 512 bytes */
	int64_t mtime_ns, ctime_ns;
	unsigned int mode; /* permission bits from the ACLs: owner, group (= default), others
			      (= default) */
	uint64_t version;  /* changes with the bytes of the file; 0: not known, because the domain
			      was never opened */
	/* Of a domain with a version: it was opened before, and whether it has changed since is not
	 * known. engine_getattr() finds out, and returns what the bucket has. */
	bool unchecked;
	bool draft; /* a file that programs write: size and times change, although the
		       version stays */
};

/* Looks a path up. Costs at most one round of requests. The size of a domain that was never opened
 * is a constant, unless engine_getattr() has found it out before. */
int engine_lookup(struct engine *e, const char *path, struct engine_stat *st, struct err *err);
/* The same, but finds out the size and times, as engine_options.stat says. Callers that show them
 * need it; it is not needed before an open. If the bucket cannot answer for a reason that may pass,
 * *st has what is known, and the next call asks again; with ENGINE_STAT_EXACT, the call fails. */
int engine_getattr(struct engine *e, const char *path, struct engine_stat *st, struct err *err);

/* Called for each entry of a directory, in byte order of the names; non-zero stops. */
typedef int (*engine_list_fn)(void *arg, const char *name, enum engine_kind kind);
int engine_list(struct engine *e, const char *path, engine_list_fn fn, void *arg, struct err *err);
/* Checks that a directory can be listed. Sends requests only if the last listing failed. */
int engine_check_dir(struct engine *e, const char *path, struct err *err);

/* Opens a domain's image or a plain object, in the version that the bucket holds now.
 * engine_file_stat() returns that version. */
int engine_file_open(struct engine *e, const char *path, struct engine_file **out, struct err *err);
void engine_file_close(struct engine_file *f);
void engine_file_stat(struct engine_file *f, struct engine_stat *st);
/* Whether equal versions mean equal bytes, so that the kernel may keep its pages for later opens.
 */
bool engine_file_cacheable(struct engine_file *f);
/* As pread(2). If cancel (which may be NULL) is triggered, fails with -EINTR. If a chunk cannot
 * be read, fails with -EACCES or -ESTALE if that is the reason, otherwise with -EIO. */
ssize_t engine_pread(struct engine_file *f, void *buf, size_t n, uint64_t offset,
		     struct cancel *cancel, struct err *err);
/* As lseek(2) with SEEK_DATA or SEEK_HOLE. Returns an offset, or a negative errno without a reason.
 */
int64_t engine_seek(struct engine_file *f, uint64_t offset, int whence);

/* ---- files that programs write ---- */

/* A file that programs write is a draft until it is committed. A commit stores an HDF5 file that a
 * domain can hold as a domain, and any other file as a plain object. All callers that open a name
 * for writing share its draft. engine_lookup() and engine_file_open() find what was committed last.
 * They find the draft only if nothing else has its name.
 *
 * A draft exists until its last file is closed. If it could not be committed, it stays, with its
 * name and the attribute user.hsds.error, until it is committed, replaced or removed. After
 * engine_close() the journal has it. */

enum engine_open_flags {
	ENGINE_CREATE = 1,    /* the file is made if nothing has this name */
	ENGINE_EXCLUSIVE = 2, /* with ENGINE_CREATE: -EEXIST if something has this name */
	ENGINE_TRUNCATE = 4,  /* the old bytes of the file do not matter */
	ENGINE_RESIZE = 8,    /* the caller changes the size, and nothing else */
};
/* Opens a file for reading and writing. -EROFS: the engine was opened without write; or, without
 * ENGINE_TRUNCATE, the path is a domain and its schema does not allow changes, or ENGINE_RESIZE is
 * set (a part of an HDF5 file is not an HDF5 file); -EBUSY: the journal has an unfinished change of
 * the domain (hsmount/recover.h); -EISDIR; -ENOENT; -EINVAL, -ENAMETOOLONG: the bucket cannot have
 * an object of this name; -ENOSPC: the journal has no room. Costs the requests of a look-up, and of
 * opening the domain. */
int engine_open_write(struct engine *e, const char *path, unsigned int flags,
		      struct engine_file **out, struct err *err);
/* Opens a draft for reading. version: see engine_draft_stat(). -ESTALE: it does not exist any more.
 */
int engine_open_draft(struct engine *e, uint64_t version, struct engine_file **out,
		      struct err *err);
/* Whether a path has a draft, and its attributes. Their version identifies it, and no other file
 * ever has it. *alone: nothing else has this name, so that engine_lookup() and engine_file_open()
 * find the draft, too. Sends no request. */
bool engine_draft_stat(struct engine *e, const char *path, struct engine_stat *st, bool *alone);
/* The same for the draft of a version, even if it has no name any more. */
bool engine_draft_stat_version(struct engine *e, uint64_t version, struct engine_stat *st);

/* These functions need a file of engine_open_write(). Errors of changes: -ENOSPC, -EFBIG, -ENOMEM,
 * -EIO. The journal has room for all that they accept. They send no request. */
/* As pwrite(2): all n bytes, or an error. */
ssize_t engine_pwrite(struct engine_file *f, const void *buf, size_t n, uint64_t offset,
		      struct err *err);
int engine_resize(struct engine_file *f, uint64_t size, struct err *err);
/* As fallocate(2). */
int engine_allocate(struct engine_file *f, int mode, uint64_t offset, uint64_t n, struct err *err);

/* For close(2) of a program that has written to the file. If the draft is complete, commits it and
 * returns the result of the commit; otherwise returns 0. An HDF5 file is complete if its library
 * has closed it, no part of it is missing, and it is not damaged; any other file is always
 * complete. A domain that is changed in place is complete if its library has marked the file as
 * open, and then as closed; without such a mark it is committed by engine_file_close(). Blocks. */
int engine_flush(struct engine_file *f, struct err *err);
/* As fsync(2). Commits the draft if it is complete; otherwise makes the journal durable. */
int engine_sync(struct engine_file *f, struct err *err);
/* engine_file_close() of the last file of engine_open_write() commits the draft if it has changed
 * since the last commit, whether it is complete or not. A new HDF5 file that is not complete
 * becomes a plain object. A changed domain that is not complete stays as it was, and its draft is
 * left in the journal. The call blocks, and logs errors. */

/* Extended attributes (user.hsds.*), as getxattr(2) and listxattr(2): with size 0 they return the
 * length only. They fail with -ENODATA or -ERANGE, among others. */
ssize_t engine_getxattr(struct engine *e, const char *path, const char *name, void *buf,
			size_t size, struct err *err);
ssize_t engine_listxattr(struct engine *e, const char *path, void *buf, size_t size,
			 struct err *err);

/* As setxattr(2). Only user.hsds.acls can be set: the access control list of a domain or a folder,
 * as JSON in the form in which it is read. A new file keeps it in memory until its commit.
 * -EOPNOTSUPP: another attribute, or a plain object; -EINVAL: not such a list; -EROFS, -ESTALE as
 * for changes of names. */
int engine_setxattr(struct engine *e, const char *path, const char *name, const void *value,
		    size_t size, int flags, struct err *err);

/* Changes of names. A change is visible to all readers of the bucket when the function returns, and
 * at once in this engine. Each fails with -EROFS unless engine_options.write is set, with -ESTALE
 * if other programs keep changing the same name, and with errors of the bucket. */
/* Makes a folder. -EEXIST; -EINVAL: the path is part of the bucket's storage, or not UTF-8;
 * -ENAMETOOLONG: the key of its document would have more than 1,024 bytes. These two are errors of
 * all new names. */
int engine_mkdir(struct engine *e, const char *path, struct err *err);
/* Removes an empty folder. -ENOTDIR, -ENOTEMPTY. */
int engine_rmdir(struct engine *e, const char *path, struct err *err);
/* Removes a domain or a plain object. Files that have the domain open can still be read: its
 * storage is deleted later. -EISDIR. */
int engine_unlink(struct engine *e, const char *path, struct err *err);
/* Renames a domain or a plain object, and replaces what has the new name unless it is a directory
 * (-EISDIR). flags: 0, or RENAME_NOREPLACE: -EEXIST; others: -EINVAL. -EXDEV: a directory, or a
 * plain object of more than 64 MiB. */
int engine_rename(struct engine *e, const char *from, const char *to, unsigned int flags,
		  struct err *err);

/* Free and total bytes of the file system of the bucket; -EOPNOTSUPP if there is none. */
int engine_space(struct engine *e, uint64_t *free_bytes, uint64_t *total_bytes);

/* Receives a description. Called in the thread that calls engine_info(). */
struct engine_info_sink {
	/* One line, without the newline; non-zero stops and is returned. */
	int (*line)(void *arg, const char *line);
	/* Bytes that were verified, and bytes to verify. NULL: not needed. */
	void (*progress)(void *arg, uint64_t done, uint64_t total);
	void *arg;
};
/* Describes a domain for a person: one line for each fact, each dataset and each problem. With
 * verify, reads the whole file, and fails with -EIO if a part of it cannot be read. */
int engine_info(struct engine *e, const char *path, bool verify,
		const struct engine_info_sink *sink, struct err *err);

/* A domain that refers to an HDF5 file in the bucket instead of having its data. */
struct engine_link {
	const char *key; /* of the file in the bucket */
	/* engine_import.file is a local file, which is, or will be, that object. Otherwise the
	 * object is read, in ranges. */
	bool is_local;
	bool locate; /* no chunk tables are stored: readers find chunks in the index of the file */
	bool verify; /* all data to which the domain refers are read first; a damaged chunk is an
			error */
	/* Filled in: datasets that refer to the file, and the bytes of their data; requests for
	 * ranges, and the bytes of their answers. */
	uint64_t linked, linked_bytes, requests, bytes;
};

/* An import of a local HDF5 file as a new domain. Strings are borrowed. */
struct engine_import {
	const char *file; /* with abort it may be NULL; with link, its name is taken from here */
	struct engine_link *link; /* NULL: the domain gets the data */
	/* The domain, as in a mount. If it is a folder, the name of the file is appended. */
	const char *path;
	bool in_folder;	       /* path is a folder, even if the bucket has none there */
	bool abort;	       /* only removes what an unfinished import to path has stored */
	bool replace;	       /* replaces a domain that exists */
	bool keep_storage;     /* keeps the storage of the domain that is replaced */
	bool skip_unsupported; /* leaves out what a domain cannot hold, instead of failing */
	/* NULL, or the directory below which external files with raw data are found. */
	const char *allow_external;
	uint64_t min_chunk; /* joins neighbouring chunks to this many bytes; 0: never */
	unsigned int puts;  /* at the same time; 0: the default */
	/* The owner of the domain is the first of these that is not NULL: owner, that of the
	 * replaced domain, service_user, that of the nearest folder, local_user. */
	const char *owner, *service_user, *local_user;
	const atomic_bool *cancelled; /* NULL, or true: stop with -ECANCELED */
	/* Called in the calling thread; both may be NULL: a line about what is left out, damaged
	 * or advisable; and bytes of the file's data that are stored, of all. */
	void (*line)(void *arg, const char *line);
	void (*progress)(void *arg, uint64_t done, uint64_t total);
	void *arg;
};
/* Imports. Until it succeeds, nothing of the domain is visible. What an import that did not
 * complete has stored is continued by the next call with the same file and path. Fails with
 * -EEXIST, -EISDIR, -ENOTDIR if the path is not free, -ESTALE if the file changes, -EOPNOTSUPP if
 * the file has something that a domain cannot hold, -EIO if it is damaged, and errors of file and
 * bucket. */
int engine_import(struct engine *e, const struct engine_import *opt, struct err *err);

struct engine_counts {
	uint64_t gets, range_gets, heads, lists, bytes_in, failures, in_flight_max;
	uint64_t cache_hits, cache_misses, cache_loads, cache_bytes, prefetches, prefetch_used;
	/* Zero without a cache_dir. See doc/METRICS.md, "Objects on disk". */
	uint64_t disk_hits, disk_hit_bytes, disk_revalidated, disk_misses, disk_stored;
	uint64_t disk_skipped, disk_dropped, disk_evicted, disk_errors, disk_bytes;
	uint64_t images; /* live */
	/* Drafts that are open, and those that could not be committed; commits that have succeeded
	 * and failed; bytes of engine_pwrite(); bytes in the journal, and their limit; drafts that
	 * wait for `hsimage recover`; objects and nodes of chunk indexes that commits of changed
	 * domains have read. */
	uint64_t drafts_open, drafts_failed, commits, commit_failures, bytes_written;
	uint64_t spool_used, spool_size, drafts_left, scanned_objects, scanned_nodes;
	uint64_t reads, bytes_read; /* calls of engine_pread(), and the bytes that they returned */
};
void engine_get_counts(struct engine *e, struct engine_counts *out);

/* Writes all counters as text for programs (doc/METRICS.md): as one JSON object, or in Prometheus'
 * text exposition format 0.0.4. Sends no request. The caller frees *text, which is NUL-terminated;
 * *n is its length without the NUL. -ENOMEM. */
enum engine_report { ENGINE_REPORT_JSON, ENGINE_REPORT_PROMETHEUS };
int engine_report(struct engine *e, enum engine_report kind, char **text, size_t *n,
		  struct err *err);

#endif
