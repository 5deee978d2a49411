/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The documents of a domain's objects: got side by side, parsed in the order of their numbers while
 * later ones are on their way. A document that cannot be read makes its own object broken, not the
 * domain, unless it is the root group's.
 *
 * Their texts are kept, as far as MODEL_KEPT_MAX reaches. The next opening of the domain takes
 * those that are still the same from here: by the listing's version where there is one, else by
 * asking on condition.
 */
#include <model/model.h>

#include <errno.h>
#include <string.h>

#include "model_internal.h"

#include <codec/chunk.h>

enum {
	DOCUMENTS_AT_ONCE = 1024, /* bodies held in memory together */
	DOCUMENT_USUAL = 1 << 18, /* bytes; larger ones are read one at a time */
};

struct reading {
	struct model *m;
	const struct model *previous; /* or NULL */
	char key[SCHEMA_KEY_MAX + 1];
	struct err *err;
};

struct skip_ctx {
	struct model *m;
	const char *key;
};

void model_keep(struct model *m, struct model_text *kept, const void *text, size_t n)
{
	*kept = (struct model_text){0};
	if (n == 0 || n > MODEL_KEPT_MAX - m->kept)
		return;
	kept->data = arena_strndup(m->arena, text, n);
	if (!kept->data)
		return; /* nothing but a request is lost */
	kept->len = n;
	m->kept += n;
}

static uint32_t number_of(void *ctx, const struct schema_id *id)
{
	return model_number(ctx, id);
}

static void note_skipped(void *arg, const char *what, const struct err *why)
{
	struct skip_ctx *ctx = arg;

	model_note(ctx->m, "%s: %s left out: %s", ctx->key, what, why->msg);
}

/* Chunks are read whole: one that no machine should hold makes its dataset broken. So do more
 * elements than a file has room for, when all of them have values. */
static int check_size(const struct object *o, struct err *err)
{
	const struct dataset *ds = &o->dataset;
	uint64_t stored, shown;

	if (o->kind != OBJECT_DATASET || ds->grid.nchunks == 0)
		return 0;
	if (!mul_u64(codec_stored_elem_size(ds->type), ds->grid.chunk_elems, &stored) ||
	    !mul_u64(ds->type->size, ds->grid.chunk_elems, &shown) ||
	    max_u64(stored, shown) > MODEL_CHUNK_MAX)
		return err_set(err, -EFBIG, "a chunk is larger than %d bytes", MODEL_CHUNK_MAX);
	if (ds->initializer != INITIALIZER_NONE && model_is_vast(ds))
		return err_set(err, -EFBIG, "computed elements of more than %llu bytes",
			       (unsigned long long)MODEL_DENSE_MAX);
	return 0;
}

static uint64_t value_memory(const struct elems *value)
{
	return value->fixed.cap + value->heap.cap;
}

static void count_values(struct model *m, const struct object *o)
{
	if (o->kind == OBJECT_DATASET)
		m->values += value_memory(&o->dataset.fill);
	for (uint32_t i = 0; i < o->nattrs; i++)
		m->values += value_memory(&o->attrs[i].value);
}

/* A document, wherever it came from. */
struct document {
	int code; /* of the store */
	const struct err *err;
	struct model_text text;
	const char *etag;
};

static int parse_document(struct model *m, uint32_t number, const char *key,
			  const struct document *document, struct err *why)
{
	struct object *o = &m->objects[number].o;
	struct skip_ctx skip = {.m = m, .key = key};
	const struct schema_numbers numbers = {.number = number_of, .ctx = m};
	int rc = m->schema->object_parse(m->arena, &m->entries[number].id, &m->domain.root,
					 document->text.data, document->text.len, &numbers,
					 note_skipped, &skip, o, why);

	if (!rc)
		rc = check_size(o, why);
	if (!rc)
		count_values(m, o);
	return rc;
}

/* Without this object there is no file; or others would be missing tomorrow for no fault of the
 * bucket, since what was left out is not asked for again until something changes. */
static bool is_fatal(uint32_t number, const struct document *document, int rc)
{
	return number == 0 || rc == -ENOMEM ||
	       (document->code && document->code != -ENOENT && document->code != -EFBIG);
}

static int take_document(struct model *m, uint32_t number, const char *key,
			 const struct document *document, struct err *err)
{
	struct model_object *object = &m->objects[number];
	struct model_entry *entry = &m->entries[number];
	struct err why = ERR_INIT;
	int rc = document->code;

	if (rc)
		err_copy(&why, document->err);
	else
		rc = parse_document(m, number, key, document, &why);
	if (!rc) {
		memmove(entry->etag, document->etag, sizeof(entry->etag));
		model_keep(m, &entry->document, document->text.data, document->text.len);
		if (object->o.modified_ns > m->modified_ns)
			m->modified_ns = object->o.modified_ns;
		return 0;
	}
	object_release(&object->o);
	object->o = (struct object){0};
	object->broken = true;
	if (is_fatal(number, document, rc)) {
		/* -ENOENT is for domains that are not there; this one is damaged */
		if (rc == -ENOENT)
			rc = err_set(err, -EIO, "the domain names it, but it is not there");
		else
			err_copy(err, &why);
		return err_wrap(err, rc, "%s%s", number == 0 ? "root group " : "", key);
	}
	/* Prefixes without a document are leftovers of deleted objects. */
	if (rc != -ENOENT)
		model_note(m, "%s: object left out: %s", key, why.msg);
	return 0;
}

/* What the earlier snapshot has of an object, NULL when it has no text. */
static const struct model_entry *earlier(const struct reading *r, size_t i)
{
	const struct model *old = r->previous;
	uint32_t number = old ? model_number(old, &r->m->entries[i].id) : OBJECT_NONE;

	if (number == OBJECT_NONE || !old->entries[number].document.data ||
	    !old->entries[number].etag[0])
		return NULL;
	return &old->entries[number];
}

/* The listing says that the earlier text is the current one. */
static bool is_known(const struct reading *r, size_t i, const struct model_entry *old)
{
	return old && model_same_version(old->etag, r->m->entries[i].etag);
}

static bool request(void *arg, size_t i, struct store_get *req)
{
	struct reading *r = arg;
	const struct model_entry *old = earlier(r, i);

	if (is_known(r, i, old) ||
	    r->m->schema->object_key(&r->m->entries[i].id, r->key, sizeof(r->key)) < 0)
		return false;
	const char *listed = r->m->entries[i].etag[0] ? r->m->entries[i].etag : NULL;
	*req = (struct store_get){
		.op = STORE_GET,
		.key = r->key,
		.length = UINT64_MAX,
		.max = DOCUMENT_USUAL,
		.cond.if_none_match = old && !listed ? old->etag : NULL,
		.known_etag = listed,
	};
	return true;
}

/* Bodies of 256 MiB are not held side by side. */
static void read_large(struct model *m, const char *key, struct store_get_result *res)
{
	bytes_release(&res->body);
	store_get(m->store, key, 0, UINT64_MAX, SCHEMA_JSON_MAX, NULL, res, NULL);
}

static int take(void *arg, size_t i, struct store_get_result *res)
{
	struct reading *r = arg;
	const struct model_entry *old = earlier(r, i);
	const bool known = is_known(r, i, old) || (old && res->code == -EALREADY);

	if (r->m->schema->object_key(&r->m->entries[i].id, r->key, sizeof(r->key)) < 0)
		return err_set(r->err, -EIO, "an object's id makes no key");
	if (res->code == -EFBIG)
		read_large(r->m, r->key, res);
	const struct document document = {
		.code = known ? 0 : res->code,
		.err = &res->err,
		.text = known ? old->document
			      : (struct model_text){.data = res->body.data, .len = res->body.len},
		.etag = known ? old->etag : res->meta.etag,
	};
	int rc = take_document(r->m, (uint32_t)i, r->key, &document, r->err);

	return rc ? rc : model_charge(r->m, r->err);
}

int model_read_documents(struct model *m, const struct model *previous, struct err *err)
{
	struct err why = ERR_INIT;
	struct reading r = {.m = m, .previous = previous, .err = &why};
	const struct store_each each = {
		.n = m->numbers,
		.at_once = DOCUMENTS_AT_ONCE,
		.request = request,
		.take = take,
		.arg = &r,
	};
	int rc = store_get_each(m->store, &each);

	if (rc && why.code)
		err_copy(err, &why);
	else if (rc)
		err_set(err, rc, "out of memory: %u documents", m->numbers);
	return rc;
}
