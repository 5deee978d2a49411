/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of an engine, for the files of engine/ and for the layers that work on an open bucket
 * beside it: check/ and recover/. One struct engine joins the layers. Each of its parts has its own
 * lock.
 */
#ifndef ENGINE_PARTS_H
#define ENGINE_PARTS_H

#include <pthread.h>
#include <stdatomic.h>

#include <bucket/bucket.h>

struct drafts;
struct files;
struct sizes;

struct engine {
	struct bucket bucket;
	struct files *files; /* that domains refer to */
	bool debug_count;
	size_t rename_dir_max; /* of the options */
	uint64_t opened_ns;    /* by env's clock */
	int64_t started_ns;    /* since the epoch: the time of directories without a document */
	char *root_names;      /* names of engine_options.root, each with a NUL */
	const char **roots;    /* of names_options; in root_names */
	struct sizes *sizes;   /* of domains that are not open */
	atomic_uint_fast64_t reads, bytes_read; /* of engine_pread() */
	struct drafts *drafts;			/* NULL if files cannot be written */
	pthread_t warm_up;			/* requests in advance, if warms_up is set */
	bool warms_up;
};

/* The surroundings of an engine in a simulation (engine_options.world): several engines in one
 * process over one bucket. All members but `store` are as in struct env. Garbage is not deleted in
 * a thread: the caller calls garbage_collect(). */
struct engine_world {
	/* The bucket, which the engine owns: it frees the store. engine_options.bucket still names
	 * a directory; its path identifies the bucket in the journal. */
	struct store *(*store)(void *ctx, const struct env *env, struct err *err);
	uint64_t (*now)(const struct env *env);
	int64_t (*wall)(const struct env *env);
	void (*sleep)(const struct env *env, uint64_t ns);
	void (*random)(const struct env *env, void *bytes, size_t n);
	void *ctx;
};

#endif
