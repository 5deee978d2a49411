/* SPDX-License-Identifier: Apache-2.0 */
/* The order of an import: see import/import.h. */
#include "import_internal.h"

#include <storage/storage_deletion.h>
#include <domain/read_user_block.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { RECORD_ARENA = 1 << 20 };

static int import_init(struct import *im, const struct import_options *opt,
		       struct import_result *result, struct err *err)
{
	*im = (struct import){.opt = opt, .schema = opt->schema, .result = result};
	im->place = (struct document_place){.env = opt->env,
					    .store = opt->store,
					    .schema = opt->schema,
					    .cancelled = opt->cancelled};
	im->began_ns = env_boot(opt->env);
	im->charge = (struct budget_charge){.budget = opt->env->budget, .use = BUDGET_TREES};
	im->arena = arena_new(RECORD_ARENA);
	return im->arena ? 0 : err_no_memory(err);
}

/* Waits for the requests that run. */
static void import_release(struct import *im)
{
	put_queue_free(im->queue);
	import_summary_free(im);
	import_puts_free(im);
	budget_set(&im->charge, 0, NULL);
	key_set_free(im->keys);
	h5file_close(im->file);
	free(im->datasets);
	bytes_release(&im->tables);
	free(im->paths);
	schema_document_unref(im->document);
	schema_document_unref(im->folder);
	arena_free(im->arena);
}

/* ---- the file ---- */

/* The objects get other ids later. */
static int keep_paths(struct import *im, struct err *err)
{
	const uint32_t n = tree_numbers(im->tree);
	im->paths = calloc(n, sizeof(*im->paths));
	im->npaths = n;
	if (!im->paths)
		return err_no_memory(err);
	for (uint32_t i = 0; i < n; i++)
		im->paths[i] = tree_object(im->tree, i)->o.id;
	return 0;
}

/* The bytes in front of the superblock. */
static int keep_user_block(struct import *im, struct source *source, struct err *err)
{
	const struct import_options *opt = im->opt;
	struct err why = ERR_INIT;
	const uint64_t size = h5file_base(im->file);
	int rc = size <= USER_BLOCK_MAX ? budget_set(&im->charge, size, &why) : 0;
	if (!rc)
		rc = user_block_of_file(source, size, tree_arena(im->tree),
					&tree_edit(im->tree, 0)->group.user_block, &why);
	if (rc == -EFBIG && opt->skip_unsupported) {
		import_note(im, "%s: %s; it is left out", import_file_name(im), why.msg);
		im->result->left_out++;
		return 0;
	}
	if (rc == -EFBIG)
		return err_set(err, -EOPNOTSUPP,
			       "a domain cannot hold %s; to import the rest, use "
			       "--skip-unsupported",
			       why.msg);
	if (rc)
		err_copy(err, &why);
	return rc;
}

static int open_file(struct import *im, struct err *err)
{
	const struct import_options *opt = im->opt;
	/* A link reads each index anyway, many ranges side by side, and claims the chunks then. */
	const struct h5file_options how = {.budget = opt->env->budget,
					   .claim_chunks = !opt->link,
					   .keep_claims = opt->link,
					   .bounded = opt->commit,
					   .external = opt->external};
	struct source *source;
	int rc = opt->file.open(opt->file.ctx, &source, err);
	if (rc)
		return rc;
	rc = h5file_open(source, &how, &im->file, err);
	if (rc)
		return err_wrap(err, rc, "%s", import_file_name(im));
	im->tree = h5file_edit_tree(im->file);
	rc = keep_paths(im, err);
	if (!rc)
		rc = import_check(im, err);
	if (!rc)
		rc = keep_user_block(im, source, err);
	if (!rc)
		rc = import_plan(im, err);
	return rc || !opt->link ? rc : link_plan(im, err);
}

/* What an earlier call has put. */
static int list_stored(struct import *im, struct err *err)
{
	if (im->is_new || im->opt->commit)
		return 0;
	/* After a machine has stopped, objects that were not durable yet may be lost or damaged. */
	const char *life = im->record.life;
	if (life && strcmp(life, store_life(im->opt->store)) != 0) {
		import_note(im, "since the import began, the machine was started again or its disk "
				"failed; everything is put once more");
		return 0;
	}
	return key_set_list(im->opt->store, im->opt->env->budget, im->record.storage.prefix,
			    im->opt->cancelled, &im->keys, err);
}

/* ---- one import ---- */

static void note_put(void *ctx, const char *key, const char *etag, uint64_t size)
{
	const struct import *im = ctx;
	import_summary_add(im, key, size);
	storage_sum_add(&im->result->versions, key, etag);
}

static int prepare(struct import *im, struct err *err)
{
	int rc = open_file(im, err);
	im->result->refused = rc && rc != -ENOMEM && rc != -ECANCELED;
	if (!rc && im->opt->commit)
		rc = im->opt->commit->begin(im->opt->commit->ctx, err);
	if (!rc)
		rc = list_stored(im, err);
	if (!rc)
		rc = im->schema->writer->adopt(im->tree, &im->record.storage, im->record.created_ns,
					       err);
	if (rc)
		return rc;
	im->queue = put_queue_new(im->opt->env, im->opt->store, im->opt->puts, im->opt->cancelled);
	if (!im->queue)
		return err_no_memory(err);
	put_queue_on_put(im->queue, note_put, im);
	import_summary_begin(im);
	import_puts_begin(im);
	rc = storage_sum_begin(&im->place, &im->record.storage, &im->result->versions, err);
	im->result->versions.is_known &= !im->keys; /* of those the versions are not known */
	return rc;
}

/* A file that has changed is the reason of the other errors that it causes. */
static int check_file(struct import *im, int rc, struct err *err)
{
	const struct import_file *file = &im->opt->file;
	struct err why = ERR_INIT;
	if (rc == -ECANCELED || !file->check)
		return rc;
	const int changed = file->check(file->ctx, &why);
	if (!changed || (rc && changed != -ESTALE))
		return rc;
	im->is_lost = im->is_lost || changed == -ESTALE;
	err_copy(err, &why);
	return changed;
}

/* What the user can do after an error. */
static const char *remedy(const struct import *im)
{
	if (im->is_lost)
		return "remove what is stored with --abort before you try again";
	if (atomic_load(&im->is_damaged))
		return "the same command fails again as long as the file is like this, and "
		       "--abort removes what is stored";
	return "the same command continues the import, and --abort removes what is stored";
}

static int store(struct import *im, struct err *err)
{
	int rc = import_store(im, err);
	if (!rc)
		rc = import_make_durable(im, err);
	rc = check_file(im, rc, err);
	if (!rc)
		rc = im->opt->commit && im->opt->commit->is_named ? import_guard(im, err)
								  : import_end(im, err);
	if (!rc && im->puts)
		*im->opt->commit->puts = import_puts_end(im);
	im->result->refused = rc && rc != -ENOMEM && rc != -ECANCELED && im->is_refused;
	if (im->opt->commit)
		return rc;
	if (!rc)
		return import_clean_up(im, err);
	/* A put that has failed may have succeeded nevertheless. So the record stays. */
	const struct err why = *err;
	return err_set(err, rc, "%s; %s", why.msg, remedy(im));
}

static bool is_same_file(const struct import *im)
{
	const struct import_file *file = &im->opt->file;
	return im->record.size == file->size && im->record.mtime_ns == file->mtime_ns &&
	       import_is_same_kind(im);
}

/* Runs the import. *again says that this has only completed an earlier import to this path, of
 * another file or of a domain that has another name now. */
static int run(struct import *im, bool *again, struct err *err)
{
	int rc = import_begin(im, err);
	struct err ignored = ERR_INIT;
	if (rc)
		return rc;
	if (im->is_finished) {
		*again = im->is_elsewhere || !is_same_file(im);
		im->result->finished_earlier = !*again;
		return import_clean_up(im, err);
	}
	rc = prepare(im, err);
	/* Nothing but the record is stored: removes it, so that nothing is left of this call. */
	if (rc && im->is_new)
		import_delete_record(im, &ignored);
	return rc ? rc : store(im, err);
}

int domain_import(const struct import_options *opt, struct import_result *out, struct err *err)
{
	struct err own = ERR_INIT;
	bool again = true;
	int rc = 0;
	for (int i = 0; !rc && again && i < 2; i++) {
		struct import im;
		*out = (struct import_result){0};
		again = false;
		rc = import_init(&im, opt, out, err ? err : &own);
		if (!rc)
			rc = run(&im, &again, err ? err : &own);
		import_release(&im);
	}
	return rc;
}

/* ---- removing ---- */

static int abort_import(struct import *im, uint64_t *deleted, struct err *err)
{
	bool found;
	int rc = document_get(&im->place, im->opt->path, &im->document, err);
	if (!rc)
		rc = import_read_record(im, &found, err);
	if (rc)
		return rc;
	if (!found)
		return err_set(err, -ENOENT, "%s: there is no unfinished import", im->opt->path);
	rc = import_find_finished(im, err);
	if (!rc && im->is_elsewhere)
		return import_clean_up(im, err);
	if (!rc && im->is_finished)
		return err_set(err, -EBUSY,
			       "%s: the domain is complete; start the import again without "
			       "--abort to finish it",
			       im->opt->path);
	/* The import may still be running in another process. */
	if (!rc)
		rc = storage_delete(&im->place, NULL, im->opt->path, &im->record.storage, deleted,
				    err);
	if (rc > 0)
		return err_set(err, -EBUSY, "%s: the domain has just been completed",
			       im->opt->path);
	return rc ? rc : import_delete_record(im, err);
}

int domain_import_abort(const struct import_options *opt, uint64_t *deleted, struct err *err)
{
	struct err own = ERR_INIT;
	struct import_result result = {0};
	struct import im;
	*deleted = 0;
	int rc = import_init(&im, opt, &result, err ? err : &own);
	if (!rc)
		rc = abort_import(&im, deleted, err ? err : &own);
	import_release(&im);
	return rc;
}
