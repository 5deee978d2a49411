/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Brings a removed domain back: see change_undelete(). Another process may delete the storage, for
 * example because it has removed another name. So this is done as a rename gives a name (rename.h,
 * storage_deletion.h):
 *
 *   1  PUT the list of names with the path
 *   2  PUT the document
 *   3  is the storage being deleted? If so, DELETE the document
 */
#include <storage/change.h>

#include <errno.h>
#include <string.h>

#include <storage/rename.h>
#include <storage/storage_deletion.h>
#include <storage/storage_names.h>

/* Checks a text from the journal. */
static int check_text(const struct document_place *p, const char *path, const char *text,
		      const struct storage *storage, struct err *err)
{
	struct schema_document *d;
	struct storage named;
	int rc = document_parse(p, path, text, strlen(text), &d, err);
	if (!rc && !(schema_storage_of(d, &named) && same_storage(&named, storage)))
		rc = err_set(err, -EIO, "the document leads to another storage");
	schema_document_unref(d);
	return rc ? err_wrap(err, rc, "%s: what the journal has kept is damaged", path) : 0;
}

/* The storage is gone, and the list is all that is there. */
static void drop_list(const struct document_place *p, const struct storage_names *names)
{
	char key[SCHEMA_KEY_MAX + 1];
	if (!storage_own_key(p, &names->storage, p->schema->storage->names, key, NULL))
		document_delete_key(p, key, names->etag, NULL, NULL);
}

/* The answer is lost: the document may arrive when the storage is deleted. So the list gets the
 * path as one that is awaited. */
static void await_document(const struct change *c, const char *path, const struct storage *storage)
{
	struct err why = ERR_INIT;
	if (change_expect_name(c, storage, path, &why))
		log_warning(c->env->log,
			    "the name %s may come back when its storage is deleted: %s", path,
			    why.msg);
}

static int give_path(const struct change *c, const struct document_place *p, const char *path,
		     const char *text, const struct storage_names *names, struct err *err)
{
	const struct store_cond absent = {.if_none_match = "*"};
	struct document_answer put;
	char key[SCHEMA_KEY_MAX + 1];
	int rc = document_key(p, path, key, sizeof(key), err);
	if (!rc)
		rc = document_write(p, key, text, strlen(text), &absent, &put, err);
	if (rc == -EEXIST)
		return err_set(err, rc, "%s: it exists", path);
	if (rc) {
		if (!rename_is_refused(rc))
			await_document(c, path, &names->storage);
		return rc;
	}
	rc = storage_is_named(p, &names->storage, err);
	if (rc == -ESTALE || rc == -EBUSY)
		document_delete(p, path, put.etag, NULL, NULL);
	if (rc == -ESTALE)
		drop_list(p, names);
	return rc;
}

int change_undelete(const struct change *c, const char *path, const char *text,
		    const struct storage *storage, struct err *err)
{
	const struct document_place place = {.env = c->env,
					     .store = c->store,
					     .schema = storage->schema,
					     .cancelled = c->cancelled};
	auto_names struct storage_names names = {.storage = *storage};
	int rc = check_text(&place, path, text, storage, err);
	if (rc)
		return rc;
	rc = storage_has_root(&place, storage, err);
	if (rc == 0)
		return err_set(err, -ESTALE, "%s: its storage was deleted", path);
	rc = rc < 0 ? rc : storage_names_enter(&place, &names, path, NULL, err);
	if (rc == -ESTALE)
		rc = err_set(err, -EBUSY, "%s: other programs change its names", path);
	if (!rc)
		rc = give_path(c, &place, path, text, &names, err);
	return rc ? err_wrap(err, rc, "it is not brought back") : 0;
}
