/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last step of an import for a commit, without the file. The root group is the last object that
 * an import puts, so if it is there, all objects are. Its id follows from that of the storage.
 */
#include "import_internal.h"

enum { TREE = 1 << 20 /* bytes, of one group */ };

/* A tree of the root group. */
static int make_root(struct import *im, struct err *err)
{
	uint32_t number;
	im->tree = tree_new(TREE);
	if (!im->tree)
		return err_no_memory(err);
	int rc = tree_add(im->tree, &number, err);
	if (rc)
		return rc;
	tree_edit(im->tree, number)->kind = OBJECT_GROUP;
	rc = tree_finish(im->tree, err);
	return rc ? rc
		  : im->schema->writer->adopt(im->tree, &im->record.storage, im->record.created_ns,
					      err);
}

static int find_root(const struct import *im, bool *found, struct err *err)
{
	auto_request struct store_request *req = NULL;
	char key[SCHEMA_KEY_MAX + 1];
	int rc = im->schema->writer->object_key(im->tree, tree_nth(im->tree, 0), key, sizeof(key));
	rc = rc < 0 ? err_set(err, rc, "the key of the root group is too long")
		    : document_read(&im->place, key, &req, err);
	*found = req;
	return rc;
}

int domain_import_finish(const struct import_options *opt, bool *found, struct import_result *out,
			 struct err *err)
{
	struct err own = ERR_INIT;
	struct import im = {.opt = opt, .schema = opt->schema, .result = out};
	im.place = (struct document_place){.env = opt->env,
					   .store = opt->store,
					   .schema = opt->schema,
					   .cancelled = opt->cancelled};
	*found = false;
	*out = (struct import_result){0};
	err = err ? err : &own;
	int rc = import_begin(&im, err);
	if (!rc)
		rc = make_root(&im, err);
	if (!rc)
		rc = find_root(&im, found, err);
	if (!rc && *found)
		rc = import_end(&im, err);
	/* The whole import puts the objects again. */
	if (im.is_gone) {
		*found = false;
		err_clear(err);
		rc = 0;
	}
	tree_free(im.tree);
	schema_document_unref(im.document);
	return rc;
}
