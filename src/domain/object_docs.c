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
static int check_size(const struct domain *d, const struct object *o, struct err *err)
{
	const struct dataset *ds = &o->dataset;
	uint64_t stored, shown;

	if (o->kind != OBJECT_DATASET || ds->grid.nchunks == 0)
		return 0;
	if (!mul_u64(codec_stored_elem_size(ds->type), ds->grid.chunk_elems, &stored) ||
	    !mul_u64(ds->type->size, ds->grid.chunk_elems, &shown) ||
	    max_u64(stored, shown) > CHUNK_BYTES_MAX)
		return err_set(err, -EFBIG, "a chunk is larger than %d bytes", CHUNK_BYTES_MAX);
	const bool computed = ds->initializer != INITIALIZER_NONE;
	if ((computed || !domain_can_list(d, o)) && domain_is_vast(ds))
		return err_set(err, -EFBIG, "%s of more than %llu bytes",
			       computed ? "computed elements" : "elements kept elsewhere",
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
	const struct store_absence *absence; /* the proof that there is none */
	int code;			     /* why it could not be read; 0: it was, or is absent */
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
		rc = check_size(d, o, why);
	if (!rc)
		rc = keep_values(d, key, o, why);
	return rc;
}

/* Without this object there is no file; or others would be missing tomorrow for no fault of the
 * bucket, since what was left out is not asked for again until something changes. */
static bool is_fatal(uint32_t number, const struct document *document, int rc)
{
	return number == 0 || rc == -ENOMEM || (document->code && document->code != -EFBIG);
}

static void mark_broken(struct domain *d, uint32_t number)
{
	char id[SCHEMA_ID_MAX];

	schema_id_format(&d->entries[number].id, id);
	tree_break(d->tree, number, arena_strndup(d->arena, id, strlen(id)));
}

/* Prefixes without a document are leftovers of deleted objects. */
static int leave_absent(struct domain *d, uint32_t number, const char *key,
			const struct store_absence *proof, struct err *err)
{
	d->entries[number].absent = proof != NULL;
	mark_broken(d, number);
	if (number == 0)
		return err_set(err, -EIO, "root group %s: the domain names it, but it is not there",
			       key);
	return 0;
}

static int take_document(struct domain *d, uint32_t number, const char *key,
			 const struct document *document, struct err *err)
{
	struct domain_entry *entry = &d->entries[number];
	struct err why = ERR_INIT;
	int rc = document->code;

	if (document->absence)
		return leave_absent(d, number, key, document->absence, err);
	if (rc)
		err_copy(&why, document->err);
	else
		rc = parse_document(d, number, key, document, &why);
	/* Also of one that is damaged: the next opening sees when it has become another one. */
	if (document->code == 0)
		memmove(entry->etag, document->etag, sizeof(entry->etag));
	if (!rc) {
		domain_keep(d, &entry->document, document->text.data, document->text.len);
		if (tree_object(d->tree, number)->o.modified_ns > d->modified_ns)
			d->modified_ns = tree_object(d->tree, number)->o.modified_ns;
		return 0;
	}
	mark_broken(d, number);
	if (is_fatal(number, document, rc)) {
		err_copy(err, &why);
		return err_wrap(err, rc, "%s%s", number == 0 ? "root group " : "", key);
	}
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

static bool request(void *arg, size_t i, struct store_request *req)
{
	struct reading *r = arg;
	const struct domain_entry *old = earlier(r, i);
	const struct domain_entry *entry = &r->d->entries[i];

	if (is_known(r, i, old) || r->d->schema->object_key(&entry->id, req->key, req->room) < 0)
		return false;
	const char *listed = entry->etag[0] ? entry->etag : NULL;
	req->max = DOCUMENT_USUAL;
	req->cond.if_none_match = old && !listed ? old->etag : NULL;
	req->known_etag = listed;
	return true;
}

/* Bodies of 256 MiB are not held side by side. */
static void read_large(struct domain *d, struct store_request *req, const char *key)
{
	store_request_reset(req, STORE_GET);
	store_request_key(req, key);
	req->max = SCHEMA_JSON_MAX;
	store_run(d->store, req);
}

static int take(void *arg, size_t i, struct store_request *req)
{
	struct reading *r = arg;
	const struct domain_entry *old = earlier(r, i);
	const struct store_answer *a = &req->answer;
	const bool known = is_known(r, i, old) || a->unchanged;

	if (r->d->schema->object_key(&r->d->entries[i].id, r->key, sizeof(r->key)) < 0)
		return err_set(r->err, -EIO, "an object's id makes no key");
	if (!known && store_failure(a, NULL) == -EFBIG)
		read_large(r->d, req, r->key);
	const struct document document = {
		.absence = known ? NULL : store_absence(a),
		.code = known ? 0 : store_failure(a, NULL),
		.err = &a->err,
		.text = known ? old->document
			      : (struct domain_text){.data = a->body.data, .len = a->body.len},
		.etag = known ? old->etag : a->meta.etag,
	};
	return take_document(r->d, (uint32_t)i, r->key, &document, r->err);
}

int domain_read_docs(struct domain *d, const struct domain *previous, struct err *err)
{
	struct reading r = {.d = d, .previous = previous, .err = err};
	const struct store_row row = {
		.n = tree_numbers(d->tree),
		.at_once = DOCUMENTS_AT_ONCE,
		.request = request,
		.take = take,
		.arg = &r,
	};
	int rc = store_run_row(d->store, &row);

	return rc == -ENOMEM
		       ? err_set(err, rc, "out of memory for %u documents", tree_numbers(d->tree))
		       : rc;
}
