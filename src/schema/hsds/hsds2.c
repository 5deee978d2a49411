/* SPDX-License-Identifier: Apache-2.0 */
/* The ops of schema v2. The documents of domains have the same form in v1, so classify() reads them
 * for both schemas. */
#include "hsds2.h"

#include <errno.h>
#include <string.h>

#include <json/reader.h>

#include "edit.h"
#include "emit_document.h"
#include "hsds1.h"
#include "hsds_load.h"
#include "parse_object.h"
#include "user_block_member.h"

enum { DOCUMENT_ARENA = 64 << 20 /* bytes of memory for parsing the document of a domain */ };

static bool is_document(const char *key)
{
	size_t len;
	return hsds2_is_domain_key(key, &len);
}

/* Returns true if the form of the id of the root group shows that a domain is one of schema v1. */
static bool is_v1(const char *root)
{
	struct schema_id id;
	return root && schema_id_parse(root, strlen(root), &id) && id.form == SCHEMA_ID_V1;
}

static int parse(const struct schema_answer *answer, struct schema_document **out, struct err *err)
{
	struct domain_info info;
	struct arena *arena = arena_new(DOCUMENT_ARENA);
	int rc = arena ? 0 : err_errno(err, -ENOMEM, "document");
	if (!rc)
		rc = schema_domain_parse(arena, answer->body, answer->len, &info, err);
	if (!rc) {
		*out = schema_document_new(&info, answer->etag);
		rc = *out ? 0 : err_errno(err, -ENOMEM, "document");
	}
	if (!rc && is_v1(info.root))
		(*out)->schema = &hsds1_ops;
	arena_free(arena);
	return rc;
}

static int classify(const char *path, const struct schema_listing *listing, unsigned int *step,
		    const struct schema_answer *answer, struct schema_request *req,
		    struct schema_document **out, struct err *err)
{
	if ((*step)++)
		return answer->absent ? 0 : parse(answer, out, err);
	/* A path that is too long for a key has no document. */
	if (hsds2_domain_key(path, req->key, req->room) < 0)
		return 0;
	return listing && !listing->has(listing, req->key) ? 0 : SCHEMA_NEEDS_ANSWER;
}

/* A listing with one of these keys shows:
 *
 *   db/…                    storage: a bucket
 *   .domain.json            the place's own document: it is a domain or a folder
 *   <name>/.domain.json     the document of a domain or folder in the place
 */
static void survey(struct schema_survey *s, const char *key)
{
	size_t path_len;
	if (hsds2_is_storage(key))
		s->storage |= key[2] == '/';
	else if (!hsds2_is_domain_key(key, &path_len))
		return;
	else if (path_len)
		s->documents = true;
	else
		s->document = true;
}

static void survey_document(struct schema_survey *s, const void *text, size_t n)
{
	auto_json json_t *doc = NULL;
	if (json_text_load(text, n, &doc, NULL))
		return;
	const json_t *root = json_object_get(doc, "root");
	s->has_root = root && !json_is_null(root);
}

static int info_key(const struct schema_document *d, char *key, size_t room)
{
	struct schema_id root;
	if (!d->info.root || !schema_id_parse(d->info.root, strlen(d->info.root), &root))
		return 0;
	return hsds2_info_key(&root, key, room);
}

static const struct schema_storage storage = {
	.of_root = hsds2_storage_of_root,
	.of_number = hsds2_storage_of_number,
	.number = hsds2_storage_number,
	.all = "db/",
	.own = ".",
	.names = HSDS2_NAMES,
	.deletion = ".hsmount-deletion-",
	.user_blocks = HSDS2_USER_BLOCK,
	.copy = HSDS2_COPY,
};

static const struct schema_editor editor = {
	.edit_object = schema_edit_object,
	.adopt_new = hsds2_adopt_new,
	.copy_locator = hsds2_copy_locator,
	.key_of_id = hsds2_key_of_id,
};

static const struct schema_tally_ops tally = {
	.begin = hsds2_tally_new,
	.add = hsds2_tally_add,
	.link = hsds2_tally_link,
	.describe = hsds2_tally_describe,
	.emit = hsds2_tally_emit,
	.free = hsds2_tally_free,
};

static const struct schema_writer writer = {
	.refusals = schema_refusals,
	.adopt = hsds2_adopt,
	.emit_object = schema_emit_object,
	.object_key = hsds2_new_object_key,
	.chunk_key = hsds2_new_chunk_key,
	.ref_text = schema_ref_text,
	.import_prefix = HSDS2_IMPORT_PREFIX,
	.import_key = hsds2_import_key,
	.import_emit = schema_import_emit,
	.import_parse = schema_import_parse,
	.tally = &tally,
};

const struct schema_ops hsds2_ops = {
	.name = "hsds2",
	.suffix = HSDS_SUFFIX,
	.is_document = is_document,
	.is_storage = hsds2_is_storage,
	.classify = classify,
	.survey = survey,
	.survey_document = survey_document,
	.info_key = info_key,
	.info_parse = schema_info_parse,
	.loader_new = hsds2_loader_new,
	.round = hsds2_round,
	.request = hsds2_request,
	.answer = hsds2_answer,
	.loader_free = hsds2_loader_free,
	.object_key = hsds_space_key,
	.object_text = hsds_space_text,
	.drop_texts = hsds_drop_texts,
	.resolve = hsds_resolve,
	.locate = hsds2_locate,
	.chunk_prefix = hsds2_chunk_prefix,
	.chunk_of_key = hsds2_chunk_of_key,
	.user_block_key = hsds2_user_block_key,
	.take_user_block = schema_user_block_take,
	.documents = &hsds_documents,
	.storage = &storage,
	.editor = &editor,
	.writer = &writer,
};
