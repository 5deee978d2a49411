/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hsmount's engine: a bucket of HDF5 domains as a tree of files. The only header that the FUSE
 * front, the command line and anybody else who embeds the engine may see; it needs no kernel.
 *
 * Paths are UTF-8, relative to the mount ("" is the root, no slash at either end): domains carry
 * the names that they have in a mount (".h5" appended where the last component has no extension).
 *
 * Threads: every function may be called from any thread between engine_open() and engine_close().
 * Results: 0 (or a count) or a negative errno; the reason goes to *err when it is not NULL.
 */
#ifndef HSMOUNT_ENGINE_H
#define HSMOUNT_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <hsmount/err.h>
#include <hsmount/log.h>

struct cancel; /* opaque: base/cancel.h, for the FUSE front; others hand in NULL */
struct engine;
struct engine_file;

/* Of buckets "s3://…". NULL, 0 and false: what the environment and the shared files of the AWS
 * tools say, or the usual. */
struct engine_s3_options {
	const char *endpoint;	  /* URL of another service than Amazon's */
	const char *region;	  /* else the bucket is asked */
	const char *profile;	  /* of the shared files */
	const char *ca_bundle;	  /* path */
	const char *bucket_owner; /* account that must own the bucket */
	unsigned int connections; /* at most, at once */
	bool no_sign_request;	  /* a public bucket */
	bool requester_pays;
	bool path_style; /* never the bucket in the host's name */
};

struct engine_options {
	const char *bucket;    /* directory path, file://… or s3://bucket[/prefix] */
	struct log *log;       /* borrowed; NULL: silent */
	unsigned int workers;  /* threads for requests and decoding; 0 inline */
	uint64_t cache_size;   /* bytes of decoded chunks, loads and metadata */
	const char *cache_dir; /* objects are kept there for the next mount; NULL: they are not */
	uint64_t cache_disk_size; /* bytes that they may take, at least 1 MiB */
	double metadata_ttl;	  /* seconds for which cached names and sizes are valid */
	double open_ttl;	  /* seconds for which what opens and listings found is valid;
				     0: they always ask the bucket */
	bool no_filters;	  /* render every dataset unfiltered */
	bool allow_empty;	  /* accept a place that is not recognised as a bucket */
	const char *debug_fault;  /* fault injection of the store (tests); NULL none */
	bool debug_count;	  /* count requests: user.hsds.debug.* of the root, engine_counts */
	struct engine_s3_options s3;
};
/* Sensible values: workers 16, cache_size 256 MiB, cache_disk_size 10 GiB, metadata_ttl 1,
 * open_ttl 0. */
void engine_options_init(struct engine_options *opt);

/* -ENOENT, -ENOTDIR, -EACCES: the bucket; -EINVAL: an option, or what is named is not a bucket;
 * -EOPNOTSUPP: a bucket of a schema that is not supported. */
int engine_open(const struct engine_options *opt, struct engine **out, struct err *err);
void engine_close(struct engine *e); /* no file is open */

/* From one argument, "BUCKET/PATH" as a person types it, to the two: the bucket is the nearest
 * directory, from the argument upwards, in which a store of domains is found; of "s3://bucket/path"
 * it is the whole bucket. Heap, the caller's.
 * -ENOENT when there is none. */
int engine_split(const char *arg, char **bucket, char **path, struct err *err);

enum engine_kind { ENGINE_DIR, ENGINE_DOMAIN, ENGINE_PLAIN };

struct engine_stat {
	enum engine_kind kind;
	uint64_t size;
	bool size_exact; /* false: a domain that was not opened yet, size is an estimate */
	uint64_t blocks; /* of 512 bytes */
	int64_t mtime_ns, ctime_ns;
	unsigned int mode; /* permission bits from the ACLs: owner, group (= default), others
			      (= default) */
	uint64_t version;  /* of the bytes: a new number for each image of a domain, for each
			      version of a plain object; 0 unknown yet (never opened) */
};

/* What a name is. Costs at most one round of requests; the size of a domain that was never opened
 * is a constant, unless somebody has asked for it. */
int engine_lookup(struct engine *e, const char *path, struct engine_stat *st, struct err *err);
/* The same with an estimate of such a size, which may cost another round: for those who want to
 * know the size, not for those who are about to open. */
int engine_getattr(struct engine *e, const char *path, struct engine_stat *st, struct err *err);

/* Called for each entry of a directory, in byte order of the names; non-zero stops. */
typedef int (*engine_list_fn)(void *arg, const char *name, enum engine_kind kind);
int engine_list(struct engine *e, const char *path, engine_list_fn fn, void *arg, struct err *err);
/* Whether a directory can be listed now. Asks only where the last answer was that it cannot. */
int engine_check_dir(struct engine *e, const char *path, struct err *err);

/* Opens a domain's image or a plain object for reading, as the bucket holds it now: which version
 * that is, engine_file_stat() tells. */
int engine_file_open(struct engine *e, const char *path, struct engine_file **out, struct err *err);
void engine_file_close(struct engine_file *f);
void engine_file_stat(struct engine_file *f, struct engine_stat *st);
/* The kernel may keep its pages of this version over opens (the version covers all data). */
bool engine_file_cacheable(struct engine_file *f);
/* As pread(2). cancel: NULL, or what may cancel the read: -EINTR then. What is wrong with a
 * domain's chunk is -EIO, but for -EACCES and -ESTALE. */
ssize_t engine_pread(struct engine_file *f, void *buf, size_t n, uint64_t offset,
		     struct cancel *cancel, struct err *err);
int64_t engine_seek(struct engine_file *f, uint64_t offset, int whence);

/* Extended attributes (user.hsds.*): value into buf; returns its length, also when size is 0;
 * -ENODATA, -ERANGE. The list is NUL-separated names. */
ssize_t engine_getxattr(struct engine *e, const char *path, const char *name, void *buf,
			size_t size, struct err *err);
ssize_t engine_listxattr(struct engine *e, const char *path, void *buf, size_t size,
			 struct err *err);

/* Free and total bytes behind the bucket; -EOPNOTSUPP when it cannot tell. */
int engine_space(struct engine *e, uint64_t *free_bytes, uint64_t *total_bytes);

/* A domain for a person: one line per fact or object, and what is wrong with it. The image is
 * planned; with verify every chunk is read too. */
typedef int (*engine_line_fn)(void *arg, const char *line);
int engine_info(struct engine *e, const char *path, bool verify, engine_line_fn fn, void *arg,
		struct err *err);

struct engine_counts {
	uint64_t gets, range_gets, heads, lists, bytes_in, failures, in_flight_max;
	uint64_t cache_hits, cache_misses, cache_loads, cache_bytes, prefetches, prefetch_used;
	/* Zero without a cache_dir; doc/METRICS.md, "Objects on disk". */
	uint64_t disk_hits, disk_hit_bytes, disk_revalidated, disk_misses, disk_stored;
	uint64_t disk_skipped, disk_dropped, disk_evicted, disk_errors, disk_bytes;
	uint64_t images;	    /* live */
	uint64_t reads, bytes_read; /* engine_pread() calls, and the bytes that they gave */
};
void engine_get_counts(struct engine *e, struct engine_counts *out);

/* Everything that the engine counts, as text for machines (doc/METRICS.md): one JSON object, or
 * Prometheus' text exposition format 0.0.4. Asks nothing of the bucket. *text: heap, the caller's,
 * NUL-terminated; *n: its length without the NUL. -ENOMEM. */
enum engine_report { ENGINE_REPORT_JSON, ENGINE_REPORT_PROMETHEUS };
int engine_report(struct engine *e, enum engine_report kind, char **text, size_t *n,
		  struct err *err);

#endif
