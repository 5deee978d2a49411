/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the files to which a domain refers. A file with a recorded ETag or size is read in
 * that version only. */
#include <ranges/references.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <ranges/place_index.h>
#include <ranges/shards.h>

#include "ref_internal.h"

void ranges_init(struct ranges *all, const struct env *env, const struct file_finder *finder,
		 const struct tree *tree)
{
	all->env = env;
	all->finder = finder;
	all->tree = tree;
	pthread_mutex_init(&all->lock, NULL);
}

static void free_file(struct ref_file *f)
{
	if (f->release_index)
		f->release_index(f);
	budget_set(&f->charge, 0, NULL);
	free(f->uri);
	free(f);
}

void ranges_release(struct ranges *all)
{
	struct ref_file *f, *next;
	places_forget(all);
	shards_forget(all);
	HASH_ITER (hh, all->files, f, next) {
		HASH_DEL(all->files, f);
		free_file(f);
	}
	pthread_mutex_destroy(&all->lock);
}

/* ---- files ---- */

int ref_file_charge(struct ref_file *f, uint64_t n, struct err *err)
{
	return budget_set(&f->charge, f->charge.bytes + n, err);
}

static struct ref_file *find_locked(struct ranges *all, const char *uri)
{
	struct ref_file *f = NULL;
	HASH_FIND_STR(all->files, uri, f);
	return f;
}

static struct ref_file *new_file(struct ranges *all, const char *uri, struct err *err)
{
	const struct file_finder *finder = all->finder;
	struct ref_file *f = calloc(1, sizeof(*f));
	int rc = -ENOMEM;
	if (!f) {
		err_set(err, rc, "out of memory");
		return NULL;
	}
	f->charge = (struct budget_charge){.budget = all->env->budget, .use = BUDGET_TREES};
	f->uri = strdup(uri);
	if (!f->uri)
		err_set(err, rc, "out of memory");
	else if (!finder)
		rc = err_set(err, -EOPNOTSUPP, "%s: files outside of the domain are not read here",
			     uri);
	else
		rc = finder->resolve(finder->ctx, uri, &f->found, err);
	f->object = (struct range_object){.all = all,
					  .store = f->found.store,
					  .key = f->found.key,
					  .name = f->uri,
					  .required_size = UINT64_MAX,
					  .size = UINT64_MAX};
	/* A URI that cannot be right is a defect of the domain. */
	if (rc == -EINVAL || rc == -ENAMETOOLONG)
		rc = err->code = -EIO;
	/* A chunk table may name any number of files. */
	if (!rc)
		rc = ref_file_charge(f, sizeof(*f) + strlen(uri) + 1, err);
	if (!rc)
		return f;
	free_file(f);
	return NULL;
}

/* Another thread may have added the file meanwhile. */
static struct ref_file *add_file(struct ranges *all, struct ref_file *f, struct err *err)
{
	pthread_mutex_lock(&all->lock);
	struct ref_file *known = find_locked(all, f->uri);
	if (!known) {
		HASH_ADD_KEYPTR(hh, all->files, f->uri, strlen(f->uri), f);
		known = f->hh.tbl ? f : NULL;
	}
	pthread_mutex_unlock(&all->lock);
	if (known != f)
		free_file(f);
	if (!known)
		err_no_memory(err);
	return known;
}

struct ref_file *ref_file_find(struct ranges *all, const struct reference_file *recorded,
			       struct err *err)
{
	pthread_mutex_lock(&all->lock);
	struct ref_file *f = find_locked(all, recorded->uri);
	pthread_mutex_unlock(&all->lock);
	if (!f) {
		f = new_file(all, recorded->uri, err);
		f = f ? add_file(all, f, err) : NULL;
	}
	if (!f)
		return NULL;
	const bool is_known =
		!f->found.local_etags && recorded->etag && strlen(recorded->etag) < STORE_ETAG_MAX;
	const char *etag = is_known ? recorded->etag : "";
	return range_require(&f->object, etag, recorded->size, err) ? NULL : f;
}

struct range_object *ref_file_object(struct ref_file *f)
{
	return &f->object;
}
