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
 * or a count if it succeeds. If it fails, it returns a negative errno, and puts the reason into
 * *err unless err is NULL.
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

struct engine_world; /* opaque; engine/parts.h defines it */
struct cancel;	     /* opaque; base/cancel.h defines it for the FUSE front. Others pass NULL */
struct engine;
struct engine_file;

/* When objects that are read completely are compared with a checksum of the service. */
enum engine_s3_verify {
	ENGINE_S3_VERIFY_AUTO, /* over plain HTTP only, because TLS detects damage itself */
	ENGINE_S3_VERIFY_ALWAYS,
	ENGINE_S3_VERIFY_NEVER,
};

/* Options for buckets "s3://…". If a member is NULL, 0 or false, the environment and the shared
 * files of the AWS tools apply, then the default. */
struct engine_s3_options {
	const char *endpoint;	  /* the URL of the service; by default that of Amazon S3 */
	const char *region;	  /* by default, the service reports it */
	const char *profile;	  /* the name of a profile in the shared files */
	const char *ca_bundle;	  /* the path of a file of certificates to trust */
	const char *bucket_owner; /* requests fail unless this account owns the bucket */
	unsigned int connections; /* the maximum number of open connections */
	unsigned int retry_ms;	  /* how long requests that fail for the moment are repeated */
	bool no_sign_request;	  /* requests are not signed, because the bucket is public */
	bool requester_pays;	  /* each request declares that the requester pays */
	bool path_style;	  /* the name of the bucket is never part of the host name */
	enum engine_s3_verify verify;
};

/* What engine_getattr() finds out of a domain that is not open (doc/DETAILS.md, "Sizes and
 * times"). */
enum engine_stat_mode {
	ENGINE_STAT_AUTO,     /* the exact sizes of domains that fit a page of a listing */
	ENGINE_STAT_EXACT,    /* the exact sizes of all domains */
	ENGINE_STAT_ESTIMATE, /* nothing: it sends no request */
};

struct engine_options {
	const char *bucket; /* the path of a directory, file://… or s3://bucket[/prefix] */
	/* The name of the bucket in references to HDF5 files. If it is NULL, the name is that of
	 * the S3 bucket, or the last component of the directory. */
	const char *bucket_name;
	/* The prefixes of the URIs of HDF5 files outside of the bucket that may be read, separated
	 * by commas: "s3://BUCKET/", "file:///DIRECTORY/". If it is NULL, none may be read. */
	const char *allow_uri;
	struct log *log;	  /* borrowed; if it is NULL, nothing is logged */
	unsigned int workers;	  /* threads for requests and decoding; 0 for the calling thread */
	uint64_t cache_size;	  /* bytes of decoded chunks, loads and metadata */
	const char *cache_dir;	  /* keeps fetched objects for later mounts; NULL for none */
	uint64_t cache_disk_size; /* bytes that cache_dir may hold, at least 1 MiB */
	enum engine_stat_mode stat; /* how exact sizes of domains are that are not open */
	double metadata_ttl;	    /* seconds for which cached names and sizes are valid */
	double open_ttl;	    /* seconds for which results of opens and listings are valid;
				       with 0, each open and each listing sends requests */
	/* The only entries of the root directory: names, with or without slashes at their ends,
	 * separated by commas. The root of the bucket is then never listed. If it is NULL, the root
	 * has all entries. */
	const char *root;
	bool no_filters; /* every dataset is rendered without filters */
	/* Of Zarr stores: a chunk that is not stored is an error, not the fill value. */
	bool missing_chunks_fail;
	/* Of Zarr stores in a bucket that cannot be listed: a chunk whose request is refused is not
	 * stored. */
	bool forbidden_chunks_absent;
	bool allow_empty; /* a place that is not recognised as a bucket is accepted */
	/* The first listing and look-up look for Zarr stores everywhere, as if the bucket had shown
	 * one. Listings of folders send one more request for each. */
	bool expects_stores;
	bool make_bucket; /* an empty place is accepted, and becomes a bucket by the first put */
	/* engine_open_write(), engine_mkdir(), engine_rename() and so on may change the bucket. An
	 * empty directory becomes a bucket. */
	bool write;
	bool keep_attributes; /* keeps attributes in memory, which engine_info() describes */
	const char *user;     /* the owner of new folders and domains; required if write is set */
	/* The directory that keeps what programs write until the bucket has it (doc/JOURNAL.md). It
	 * is required if write is set. Its parent must exist. */
	const char *journal_dir;
	/* engine_rename() of a directory with more entries in all levels fails with -EXDEV. */
	unsigned int rename_dir_max;
	double gc_delay;    /* seconds after which the storage of a removed domain may be deleted */
	bool gc_at_unmount; /* engine_close() does not wait for gc_delay */
	uint64_t spool_size;	 /* bytes that journal_dir may keep; 0 for half of the free space */
	const char *debug_fault; /* failures of the store, for tests; NULL for none */
	bool debug_count;	 /* the root has the counters as attributes user.hsds.debug.* */
	struct engine_s3_options s3;
	const struct engine_world *world; /* the surroundings in a simulation, or NULL */
};
/* Sets the defaults: workers 16, cache_size 256 MiB, cache_disk_size 10 GiB, metadata_ttl 1,
 * open_ttl 0, rename_dir_max 10,000, gc_delay 30. All other members become NULL, 0 or false. */
void engine_options_init(struct engine_options *opt);

/* Opens a bucket. Fails with -ENOENT, -ENOTDIR or -EACCES if the bucket cannot be read, with
 * -EINVAL if an option is wrong or the place is not a bucket, and with -EOPNOTSUPP if the schema of
 * the bucket is not supported. */
int engine_open(const struct engine_options *opt, struct engine **out, struct err *err);
/* Begins work in the background: opens connections before they are needed, reads the names in the
 * root, and finishes commits that an earlier process has begun. Call it at most once, when the
 * process does not fork any more. An engine without write needs no call. */
void engine_start(struct engine *e);
/* Closes an engine. The caller has closed all files. The function repeats failed commits, for at
 * most 15 seconds. Then it deletes the storage of domains that were removed so long ago
 * (gc_delay), for at most 15 seconds. */
void engine_close(struct engine *e);

/* Splits "BUCKET/PATH". The bucket is the nearest directory, from the argument upwards, that has a
 * store of domains in it; in "s3://bucket/path" it is the whole bucket. The caller frees both
 * strings. The function fails with -ENOENT if there is no such directory. If it does not find the
 * bucket because a directory cannot be read, it fails with the error of the first such directory.
 */
int engine_split(const char *arg, char **bucket, char **path, struct err *err);
/* Splits the path of a store that does not exist: the nearest directory that exists must have
 * stores in it. Fails with -ENOENT if it has none. */
int engine_split_absent(const char *arg, char **bucket, char **path, struct err *err);
/* Splits "BUCKET/PATH" for a bucket that does not exist yet: the nearest directory that exists.
 * Fails with -ENOENT if it is not empty. */
int engine_split_new(const char *arg, char **bucket, char **path, struct err *err);

enum engine_kind { ENGINE_DIR, ENGINE_DOMAIN, ENGINE_PLAIN };

struct engine_stat {
	enum engine_kind kind;
	uint64_t size; /* bytes */
	/* The size is exact. This is false for an estimate, which is used if the domain was not
	 * opened and engine_getattr() has not found its size out. */
	bool size_exact;
	uint64_t blocks; /* blocks of 512 bytes */
	/* Of an open domain: the bytes of the file that are surely not in holes. Chunks do not
	 * count if it is not known which of them are stored. */
	uint64_t certain;
	int64_t mtime_ns, ctime_ns; /* ns since the epoch */
	/* Permission bits from the access control list. Group and others have those of the entry
	 * `default`. */
	unsigned int mode;
	/* Changes with the bytes of the file. It is 0 if it is not known, because the domain was
	 * never opened. */
	uint64_t version;
	/* The domain was opened before, and it is not known whether it has changed since.
	 * engine_getattr() finds out, and returns what the bucket has. */
	bool unchecked;
	/* The file is one that programs write. Its size and times change, although its version
	 * stays. */
	bool draft;
};

/* Looks a path up, with at most one round of requests. The size of a domain that was never opened
 * is a constant, unless engine_getattr() has found it out before. */
int engine_lookup(struct engine *e, const char *path, struct engine_stat *st, struct err *err);
/* Does the same, and finds out the size and times, as engine_options.stat says. Callers that show
 * them need this function; it is not needed before an open. If the bucket cannot answer for a
 * reason that may pass, *st has what is known, and the next call asks again. With
 * ENGINE_STAT_EXACT, the call fails instead. */
int engine_getattr(struct engine *e, const char *path, struct engine_stat *st, struct err *err);

/* Receives an entry of a directory. If it returns non-zero, the list ends. */
typedef int (*engine_list_fn)(void *arg, const char *name, enum engine_kind kind);
/* Calls fn for each entry of a directory, in byte order of the names. */
int engine_list(struct engine *e, const char *path, engine_list_fn fn, void *arg, struct err *err);
/* Checks that a directory can be listed. The function sends requests only if the last listing
 * failed. */
int engine_check_dir(struct engine *e, const char *path, struct err *err);

/* Opens the image of a domain, or a plain object, in the version that the bucket has now.
 * engine_file_stat() returns that version. */
int engine_file_open(struct engine *e, const char *path, struct engine_file **out, struct err *err);
void engine_file_close(struct engine_file *f);
void engine_file_stat(struct engine_file *f, struct engine_stat *st);
/* Returns whether equal versions mean equal bytes, so that the kernel may keep its pages for later
 * opens. */
bool engine_file_cacheable(struct engine_file *f);
/* Returns how many bytes the kernel should read ahead for a program that reads in order, or 0 for
 * as many as possible. */
uint64_t engine_file_read_ahead(struct engine_file *f);
/* Says how many bytes the kernel does read ahead, which may differ. Prefetching depends on it. */
void engine_file_set_read_ahead(struct engine_file *f, uint64_t bytes);
/* Works like pread(2). If cancel, which may be NULL, is triggered, the call fails with -EINTR. If a
 * chunk cannot be read, the call fails with -EACCES or -ESTALE if that is the reason, otherwise
 * with -EIO. */
ssize_t engine_pread(struct engine_file *f, void *buf, size_t n, uint64_t offset,
		     struct cancel *cancel, struct err *err);
/* Works like lseek(2) with SEEK_DATA or SEEK_HOLE. Returns an offset, or a negative errno without a
 * reason. If it is not known which chunks of a domain are stored, the function asks the bucket,
 * once for each dataset of 16 chunks or more, and blocks. engine_file_stat() then shows the blocks
 * that are not in holes. */
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
	ENGINE_EXCLUSIVE = 2, /* ENGINE_CREATE fails with -EEXIST if something has this name */
	/* The caller is going to call engine_resize() with size 0, so a new draft begins without
	 * the bytes of the file. If the caller closes the file before that, nothing has changed. */
	ENGINE_TRUNCATE = 4,
	ENGINE_RESIZE = 8, /* the caller changes the size, and nothing else */
};
/* Opens a file for reading and writing, with the requests of a look-up and of opening the domain.
 * Fails with -EROFS if the engine was opened without write. Without ENGINE_TRUNCATE, fails with
 * -EROFS if the path is a domain and its schema does not allow changes, or if the path is a domain
 * and ENGINE_RESIZE is set, because a part of an HDF5 file is not an HDF5 file. Fails with -EBUSY
 * if the journal has an unfinished change of the domain (hsmount/recover.h), with -EINVAL or
 * -ENAMETOOLONG if the bucket cannot have an object of this name, with -ENOSPC if the journal has
 * no room, and with -EISDIR or -ENOENT. */
int engine_open_write(struct engine *e, const char *path, unsigned int flags,
		      struct engine_file **out, struct err *err);
/* Opens the draft of a version, which engine_draft_stat() has returned, for reading. Fails with
 * -ESTALE if the draft does not exist any more. */
int engine_open_draft(struct engine *e, uint64_t version, struct engine_file **out,
		      struct err *err);
/* Returns whether a path has a draft, and puts its attributes into *st. Their version identifies
 * the draft, and no other file ever has it. *alone becomes true if nothing else has this name: then
 * engine_lookup() and engine_file_open() find the draft, too. Sends no request. */
bool engine_draft_stat(struct engine *e, const char *path, struct engine_stat *st, bool *alone);
/* Does the same for the draft of a version, even if it has no name any more. */
bool engine_draft_stat_version(struct engine *e, uint64_t version, struct engine_stat *st);

/* These functions need a file of engine_open_write(). Those that change it fail with -ENOSPC,
 * -EFBIG, -ENOMEM or -EIO. The journal has room for all that they accept. They send no request. */
/* Works like pwrite(2), but writes either all n bytes or fails. */
ssize_t engine_pwrite(struct engine_file *f, const void *buf, size_t n, uint64_t offset,
		      struct err *err);
/* Works like ftruncate(2). */
int engine_resize(struct engine_file *f, uint64_t size, struct err *err);
/* Works like fallocate(2). */
int engine_allocate(struct engine_file *f, int mode, uint64_t offset, uint64_t n, struct err *err);

/* Is called for close(2) of a program that has written to the file. If the draft is complete, the
 * function commits it and returns the result of the commit; otherwise it returns 0. An HDF5 file is
 * complete if its library has closed it, no part of it is missing, and it is not damaged; any other
 * file is always complete. A domain that is changed in place is complete if its library has marked
 * the file as open, and then as closed; without such a mark engine_file_close() commits it. The
 * call blocks. */
int engine_flush(struct engine_file *f, struct err *err);
/* Works like fsync(2): commits the draft if it is complete; otherwise makes the journal durable. */
int engine_sync(struct engine_file *f, struct err *err);
/* engine_file_close() of the last file of engine_open_write() commits the draft if it has changed
 * since the last commit, whether it is complete or not. A new HDF5 file that is not complete
 * becomes a plain object. A changed domain that is not complete stays as it was, and its draft is
 * left in the journal. The call blocks, and logs errors. */

/* These functions work like getxattr(2) and listxattr(2), for the extended attributes user.hsds.*.
 * If size is 0, they return the length only. They fail with -ENODATA or -ERANGE, among others. */
ssize_t engine_getxattr(struct engine *e, const char *path, const char *name, void *buf,
			size_t size, struct err *err);
ssize_t engine_listxattr(struct engine *e, const char *path, void *buf, size_t size,
			 struct err *err);

/* Works like setxattr(2). user.hsds.undelete of a directory brings the removed file back whose path
 * in the directory is the value: engine_undelete(). Otherwise only user.hsds.acls can be set: the
 * access control list of a domain or a folder, as JSON in the form in which it is read. A new file
 * keeps it in memory until its commit. Fails with -EOPNOTSUPP for another attribute or a plain
 * object, with -EINVAL if the value is not such a list, and with -EROFS and -ESTALE like changes of
 * names. */
int engine_setxattr(struct engine *e, const char *path, const char *name, const void *value,
		    size_t size, int flags, struct err *err);

/* Works like removexattr(2). Only user.hsds.error can be removed: that drops the file that programs
 * have written and that could not be stored, and the name has what the bucket has. Fails with
 * -EOPNOTSUPP for another attribute, with -ENODATA if no commit has failed, with -EBUSY while a
 * program has the file open, and with -EROFS. */
int engine_removexattr(struct engine *e, const char *path, const char *name, struct err *err);

/* Changes of names. A change is visible to all readers of the bucket when the function returns, and
 * at once in this engine. Each fails with -EROFS unless engine_options.write is set, with -ESTALE
 * if other programs keep changing the same name, and with errors of the bucket. */
/* Makes a folder. Fails with -EEXIST; with -EINVAL if the path is part of the bucket's storage or
 * not UTF-8; and with -ENAMETOOLONG if the key of its document would have more than 1,024 bytes.
 * The last two are errors of all new names. */
int engine_mkdir(struct engine *e, const char *path, struct err *err);
/* Removes an empty folder. Fails with -ENOTDIR or -ENOTEMPTY. */
int engine_rmdir(struct engine *e, const char *path, struct err *err);
/* Removes a domain or a plain object. Open files of the domain can still be read, because its
 * storage is deleted later. Fails with -EISDIR. */
int engine_unlink(struct engine *e, const char *path, struct err *err);

/* A removed or replaced domain whose storage was not deleted yet. */
struct engine_removed {
	const char *path;      /* of its file in the mount */
	const char *in_bucket; /* of the domain */
	int64_t removed_ns;    /* since the epoch; 0 if unknown */
	uint64_t left_ns;      /* until its storage may be deleted */
};
/* Calls fn with each of them: what this engine has removed, and what earlier processes with the
 * same journal have noted, once engine_start() or engine_take_removed() was called. fn must not
 * call the engine. If it returns non-zero, the function ends and returns that. */
int engine_each_removed(struct engine *e, int (*fn)(void *arg, const struct engine_removed *r),
			void *arg);
/* Reads the notes of earlier processes, and does nothing else of engine_start(). Returns the number
 * of processes that are running, and whose notes stay with them. */
unsigned int engine_take_removed(struct engine *e);
/* Brings the domain back that had this path last, with its owner, access control list and times.
 * Fails with -ENOENT if none is known, with -EEXIST if the name is in use, with -ESTALE if its
 * storage was deleted, and with -EBUSY if that is being deleted. */
int engine_undelete(struct engine *e, const char *path, struct err *err);
/* Renames a domain or a plain object, and replaces what has the new name; or a directory with all
 * that is in it, in several steps. Fails with -EISDIR if a directory has the new name; with -EEXIST
 * if something has it and flags is RENAME_NOREPLACE; with -EXDEV if `from` is a plain object of
 * more than 64 MiB, or a directory that has one, or more than rename_dir_max entries; with -ENOTDIR
 * or -ENOTEMPTY if a directory cannot replace what has the new name; and with -EINVAL if flags has
 * other bits, or `to` is below `from`. */
int engine_rename(struct engine *e, const char *from, const char *to, unsigned int flags,
		  struct err *err);

/* Returns whether the service of the bucket has not answered for some time, so that calls that need
 * it fail at once with -EIO. The log says so. */
bool engine_is_unreachable(struct engine *e);

/* Returns the free and total bytes of the file system of the bucket. Fails with -EOPNOTSUPP if the
 * bucket has none. */
int engine_space(struct engine *e, uint64_t *free_bytes, uint64_t *total_bytes);

/* Receives a description. The functions are called in the thread that calls engine_info(). */
struct engine_info_sink {
	/* Is called with one line, without the newline. If it returns non-zero, the description
	 * ends and engine_info() returns that. */
	int (*line)(void *arg, const char *line);
	/* Is called with the bytes that were verified, and the bytes to verify. It may be NULL. */
	void (*progress)(void *arg, uint64_t done, uint64_t total);
	void *arg;
};
/* Describes a domain for a person: one line for each fact, each dataset and each problem. Without
 * engine_options.keep_attributes, the domain seems to have no attributes. If verify is true, the
 * function reads the whole file, and fails with -EIO if a part of it cannot be read. */
int engine_info(struct engine *e, const char *path, bool verify,
		const struct engine_info_sink *sink, struct err *err);

/* A domain that refers to an HDF5 file in the bucket instead of having its data. */
struct engine_link {
	const char *key; /* the key of the file in the bucket */
	/* engine_import.file is a local file, which is, or will be, that object. Otherwise the
	 * object is read, in ranges. */
	bool is_local;
	bool locate; /* no chunk tables are stored: readers find chunks in the index of the file */
	bool verify; /* all data to which the domain refers are read first; a damaged chunk is an
			error */
	/* Results: the number of datasets that refer to the file, and the bytes of their data. */
	uint64_t linked, linked_bytes;
	/* Results: the number of requests for ranges, and the bytes of their answers. */
	uint64_t requests, bytes;
};

/* An import of a local HDF5 file as a new domain. Strings are borrowed. */
struct engine_import {
	/* The path of the file. With abort it may be NULL. With link, only its name is used unless
	 * the file is local. */
	const char *file;
	const char *shown;	  /* the file as the user named it, for messages; NULL: as above */
	struct engine_link *link; /* if it is NULL, the domain gets the data */
	/* The path of the domain, as in a mount. If it is a folder, the name of the file is
	 * appended. */
	const char *path;
	bool in_folder;	       /* path is a folder, even if the bucket has none there */
	bool abort;	       /* only removes what an unfinished import to path has stored */
	bool replace;	       /* replaces a domain that exists */
	bool keep_storage;     /* keeps the storage of the domain that is replaced */
	bool skip_unsupported; /* leaves out what a domain cannot hold, instead of failing */
	bool ignore_open_flag; /* takes a file of which its superblock says that it is written */
	/* The directory below which external files with raw data are found. If it is NULL, a
	 * dataset with external files is refused. */
	const char *allow_external;
	uint64_t min_chunk; /* joins neighbouring chunks to this many bytes; 0 for never */
	unsigned int puts;  /* the number of objects put at the same time; 0 for the default */
	/* The owner of the domain is the first of these that is not NULL: owner, that of the
	 * replaced domain, service_user, that of the nearest folder, local_user. */
	const char *owner, *service_user, *local_user;
	/* When this becomes true, the import fails with -ECANCELED. It may be NULL. */
	const atomic_bool *cancelled;
	/* Is called in the calling thread with a line about what is left out, damaged or advisable.
	 * It may be NULL. */
	void (*line)(void *arg, const char *line);
	/* Is called in the calling thread with the bytes of the file's data that are stored, and
	 * all bytes of its data. It may be NULL. */
	void (*progress)(void *arg, uint64_t done, uint64_t total);
	void *arg;
};
/* Imports a file. Until the function succeeds, nothing of the domain is visible. If an import does
 * not complete, the next call with the same file and path continues it. Fails with -EEXIST, -EISDIR
 * or -ENOTDIR if the path is not free, with -ESTALE if the file changes, with -EBUSY if its
 * superblock says that a program writes it, with -EOPNOTSUPP if the file has something that a
 * domain cannot hold, with -EIO if it is damaged, and with errors of the file and the bucket. */
int engine_import(struct engine *e, const struct engine_import *opt, struct err *err);

struct engine_counts {
	uint64_t gets, range_gets, heads, lists, bytes_in, failures, in_flight_max;
	uint64_t cache_hits, cache_misses, cache_loads, cache_bytes, prefetches, prefetch_used;
	/* These are zero without a cache_dir. See doc/METRICS.md, "Objects on disk". */
	uint64_t disk_hits, disk_hit_bytes, disk_revalidated, disk_misses, disk_stored;
	uint64_t disk_skipped, disk_dropped, disk_evicted, disk_errors, disk_bytes;
	uint64_t images;		     /* images that exist */
	uint64_t drafts_open, drafts_failed; /* open drafts, and those that were not committed */
	uint64_t commits, commit_failures;   /* commits that have succeeded, and failed */
	uint64_t bytes_written;		     /* bytes that engine_pwrite() has written */
	uint64_t spool_used, spool_size;     /* bytes in the journal, and their limit */
	uint64_t drafts_left;		     /* drafts that wait for `hsimage recover` */
	/* Objects, and nodes of chunk indexes, that commits of changed domains have read. */
	uint64_t scanned_objects, scanned_nodes;
	uint64_t reads, bytes_read; /* calls of engine_pread(), and the bytes that they returned */
};
void engine_get_counts(struct engine *e, struct engine_counts *out);

/* Writes all counters as text for programs (doc/METRICS.md): as one JSON object, or in Prometheus'
 * text exposition format 0.0.4. Sends no request. The caller frees *text, which ends with a NUL; *n
 * becomes its length without the NUL. Fails with -ENOMEM. */
enum engine_report { ENGINE_REPORT_JSON, ENGINE_REPORT_PROMETHEUS };
int engine_report(struct engine *e, enum engine_report kind, char **text, size_t *n,
		  struct err *err);

#endif
