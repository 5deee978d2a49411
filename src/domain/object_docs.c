/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The documents of a domain's objects: got side by side, parsed in the order of their numbers while
 * later ones are on their way. A document that cannot be read makes its own object broken, not the
 * domain, unless it is the root group's.
 *
 * Their texts are kept, as far as DOMAIN_KEPT_MAX reaches. The next opening of the domain takes
 * those that are still the same from here: by the listing's version where there is one, else by
 * asking on condition.
 */
#include <domain/domain.h>

#include <errno.h>
#include <string.h>

#include "domain_internal.h"

#include <codec/chunk.h>

enum {
	DOCUMENTS_AT_ONCE = 1024, /* bodies held in memory together */
	DOCUMENT_USUAL = 1 << 18, /* bytes; larger ones are read one at a time */
};

struct reading {
	struct domain *d;
	const struct domain *previous; /* or NULL */
	char key[SCHEMA_KEY_MAX + 1];
	struct err *err;
};

struct skip_ctx {
	struct domain *d;
	const char *key;
};

void domain_keep(struct domain *d, struct domain_text *kept, const void *text, size_t n)
{
	*kept = (struct domain_text){0};
	if (n == 0 || n > DOMAIN_KEPT_MAX - d->kept)
		return;
	kept->data = arena_strndup(d->arena, text, n);
	if (!kept->data)
		return; /* nothing but a request is lost */
	kept->len = n;
	d->kept += n;
}

static uint32_t number_of(void *ctx, const struct schema_id *id)
{
	return domain_number(ctx, id);
}

static void note_skipped(void *arg, const char *what, const struct err *why)
{
	struct skip_ctx *ctx = arg;

	tree_note(ctx->d->tree, "%s: %s left out: %s", ctx->key, what, why->msg);
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
	    max_u64(stored, shown) > CHUNK_BYTES_MAX)
		return err_set(err, -EFBIG, "a chunk is larger than %d bytes", CHUNK_BYTES_MAX);
	if (ds->initializer != INITIALIZER_NONE && domain_is_vast(ds))
		return err_set(err, -EFBIG, "computed elements of more than %llu bytes",
			       (unsigned long long)DATASET_DENSE_MAX);
	return 0;
}

static bool take_value(struct domain *d, const struct elems *value)
{
	const uint64_t size = (uint64_t)value->fixed.len + value->heap.len;

	if (size > DOMAIN_VALUES_MAX - d->values)
		return false;
	d->values += size;
	return true;
}

/* Values are held whole, and a few bytes of JSON can ask for very many of them. */
static int keep_values(struct domain *d, const char *key, struct object *o, struct err *err)
{
	uint32_t kept = 0;

	if (o->kind == OBJECT_DATASET && !take_value(d, &o->dataset.fill))
		return err_set(err, -EFBIG, "values of the domain take over %d bytes",
			       DOMAIN_VALUES_MAX);
	for (uint32_t i = 0; i < o->nattrs; i++) {
		struct attribute *a = &o->attrs[i];

		if (take_value(d, &a->value)) {
			o->attrs[kept++] = *a;
			continue;
		}
		tree_note(d->tree,
			  "%s: attribute \"%s\" left out: values of the domain take over %d bytes",
			  key, a->name, DOMAIN_VALUES_MAX);
		elems_release(&a->value);
	}
	o->nattrs = kept;
	return 0;
}

/* A document, wherever it came from. */
struct document {
	int code; /* of the store */
	const struct err *err;
	struct domain_text text;
	const char *etag;
};

static int parse_document(struct domain *d, uint32_t number, const char *key,
			  const struct document *document, struct err *why)
{
	struct object *o = tree_edit(d->tree, number);
	struct skip_ctx skip = {.d = d, .key = key};
	const struct schema_numbers numbers = {.number = number_of, .ctx = d};
	int rc = d->schema->object_parse(d->arena, &d->entries[number].id, &d->doc.root,
					 document->text.data, document->text.len, &numbers,
					 note_skipped, &skip, o, why);

	if (!rc)
		rc = check_size(o, why);
	if (!rc)
		rc = keep_values(d, key, o, why);
	return rc;
}

/* Without this object there is no file; or others would be missing tomorrow for no fault of the
 * bucket, since what was left out is not asked for again until something changes. */
static bool is_fatal(uint32_t number, const struct document *document, int rc)
{
	return number == 0 || rc == -ENOMEM ||
	       (document->code && document->code != -ENOENT && document->code != -EFBIG);
}

static void mark_broken(struct domain *d, uint32_t number)
{
	char id[SCHEMA_ID_MAX];

	schema_id_format(&d->entries[number].id, id);
	tree_break(d->tree, number, arena_strndup(d->arena, id, strlen(id)));
}

static int take_document(struct domain *d, uint32_t number, const char *key,
			 const struct document *document, struct err *err)
{
	struct domain_entry *entry = &d->entries[number];
	struct err why = ERR_INIT;
	int rc = document->code;

	if (rc)
		err_copy(&why, document->err);
	else
		rc = parse_document(d, number, key, document, &why);
	if (!rc) {
		memmove(entry->etag, document->etag, sizeof(entry->etag));
		domain_keep(d, &entry->document, document->text.data, document->text.len);
		if (tree_object(d->tree, number)->o.modified_ns > d->modified_ns)
			d->modified_ns = tree_object(d->tree, number)->o.modified_ns;
		return 0;
	}
	mark_broken(d, number);
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
		tree_note(d->tree, "%s: object left out: %s", key, why.msg);
	return 0;
}

/* What the earlier snapshot has of an object, NULL when it has no text. */
static const struct domain_entry *earlier(const struct reading *r, size_t i)
{
	const struct domain *old = r->previous;
	uint32_t number = old ? domain_number(old, &r->d->entries[i].id) : OBJECT_NONE;

	if (number == OBJECT_NONE || !old->entries[number].document.data ||
	    !old->entries[number].etag[0])
		return NULL;
	return &old->entries[number];
}

/* The listing says that the earlier text is the current one. */
static bool is_known(const struct reading *r, size_t i, const struct domain_entry *old)
{
	return old && domain_same_version(old->etag, r->d->entries[i].etag);
}

static bool request(void *arg, size_t i, struct store_get *req)
{
	struct reading *r = arg;
	const struct domain_entry *old = earlier(r, i);

	if (is_known(r, i, old) ||
	    r->d->schema->object_key(&r->d->entries[i].id, r->key, sizeof(r->key)) < 0)
		return false;
	const char *listed = r->d->entries[i].etag[0] ? r->d->entries[i].etag : NULL;
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
static void read_large(struct domain *d, const char *key, struct store_get_result *res)
{
	bytes_release(&res->body);
	store_get(d->store, key, 0, UINT64_MAX, SCHEMA_JSON_MAX, NULL, res, NULL);
}

static int take(void *arg, size_t i, struct store_get_result *res)
{
	struct reading *r = arg;
	const struct domain_entry *old = earlier(r, i);
	const bool known = is_known(r, i, old) || (old && res->code == -EALREADY);

	if (r->d->schema->object_key(&r->d->entries[i].id, r->key, sizeof(r->key)) < 0)
		return err_set(r->err, -EIO, "an object's id makes no key");
	if (res->code == -EFBIG)
		read_large(r->d, r->key, res);
	const struct document document = {
		.code = known ? 0 : res->code,
		.err = &res->err,
		.text = known ? old->document
			      : (struct domain_text){.data = res->body.data, .len = res->body.len},
		.etag = known ? old->etag : res->meta.etag,
	};
	return take_document(r->d, (uint32_t)i, r->key, &document, r->err);
}

int domain_read_docs(struct domain *d, const struct domain *previous, struct err *err)
{
	struct reading r = {.d = d, .previous = previous, .err = err};
	const struct store_each each = {
		.n = tree_numbers(d->tree),
		.at_once = DOCUMENTS_AT_ONCE,
		.request = request,
		.take = take,
		.arg = &r,
	};
	int rc = store_get_each(d->store, &each);

	return rc == -ENOMEM ? err_set(err, rc, "no memory for %u documents", tree_numbers(d->tree))
			     : rc;
}
