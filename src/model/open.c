/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening a domain in three rounds of parallel requests:
 *   1. the domain document: which root group;
 *   2. the listings: everything below the storage prefix when it fits one page (then the existing
 *      chunks are known too), and side by side the delimited listings that name the objects;
 *   3. all object documents.
 * Numbers are given out after round 2, so that documents can name each other while they are parsed.
 */
#include <model/model.h>

#include <errno.h>
#include <string.h>

#include "model_internal.h"

#include <codec/chunk.h>

enum {
	LIST_JOBS = 8,
	DOCUMENTS_AT_ONCE = 1024, /* bodies held in memory together */
	DOCUMENT_USUAL = 1 << 18, /* bytes; larger ones are read one at a time */
};
#define MODEL_ARENA_LIMIT ((size_t)4 << 30)

static uint32_t number_of(void *ctx, const struct schema_id *id)
{
	return model_number(ctx, id);
}

static uint64_t resolve(void *ctx, const char *text, size_t n)
{
	struct schema_id id;

	if (!schema_id_parse(text, n, &id))
		return 0;
	uint32_t number = model_number(ctx, &id);
	return number == OBJECT_NONE ? 0 : (uint64_t)number + 1;
}

static struct model *new_model(const struct env *env, struct store *store,
			       const struct schema_ops *schema, const char *path)
{
	struct model *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	atomic_init(&m->refs, 1);
	m->env = env;
	m->store = store;
	m->schema = schema;
	m->problems_end = &m->problems;
	m->resolver = (struct object_resolver){.resolve = resolve, .ctx = m};
	m->path = strdup(path);
	m->arena = arena_new(MODEL_ARENA_LIMIT);
	if (!m->path || !m->arena) {
		model_unref(m);
		return NULL;
	}
	return m;
}

/* Round 1. */
static int read_domain(struct model *m, struct err *err)
{
	char key[SCHEMA_KEY_MAX + 1];
	struct store_get_result res = {0};

	if (m->schema->domain_key(m->path, key, sizeof(key)) < 0)
		return err_set(err, -ENAMETOOLONG, "the path is too long for a key");
	int rc = store_get(m->store, key, 0, UINT64_MAX, SCHEMA_JSON_MAX, NULL, &res, err);
	if (!rc)
		rc = m->schema->domain_parse(m->arena, res.body.data, res.body.len, &m->domain,
					     err);
	if (!rc && m->domain.info.is_folder)
		rc = err_set(err, -EISDIR, "is a folder: it has no root group");
	if (rc)
		err_wrap(err, rc, "%s", key);
	memcpy(m->domain_etag, res.meta.etag, sizeof(m->domain_etag));
	m->modified_ns = m->domain.info.modified_ns;
	bytes_release(&res.body);
	return rc;
}

/* Gives an id a number; ids that are known already keep theirs. */
static int add_id(struct model *m, const struct schema_id *id, struct err *err)
{
	if (model_number(m, id) != OBJECT_NONE)
		return 0;
	if (m->numbers == m->capacity)
		return err_set(err, -E2BIG, "more than %u objects", m->capacity);
	struct model_entry *entry = &m->entries[m->numbers];

	entry->id = *id;
	entry->number = m->numbers++;
	entry->hash_key[0] = (uint8_t)id->kind;
	memcpy(entry->hash_key + 1, id->b, sizeof(id->b));
	HASH_ADD(hh, m->by_id, hash_key, sizeof(entry->hash_key), entry);
	return 0;
}

/* Tables for at most n objects; entries must not move once they are in the hash. */
static int make_tables(struct model *m, size_t n, struct err *err)
{
	if (n > MODEL_MAX_OBJECTS)
		return err_set(err, -E2BIG, "more than %u objects", MODEL_MAX_OBJECTS);
	m->capacity = (uint32_t)n;
	m->entries = calloc(n, sizeof(*m->entries));
	m->objects = calloc(n, sizeof(*m->objects));
	m->chunks = calloc(n, sizeof(*m->chunks));
	if (!m->entries || !m->objects || !m->chunks)
		return err_set(err, -ENOMEM, "no memory for %zu objects", n);
	return 0;
}

static int number_whole(struct model *m, const struct store_page *page, struct err *err)
{
	int rc = make_tables(m, page->n + 1, err);

	if (!rc)
		rc = add_id(m, &m->domain.root, err);
	for (size_t i = 0; !rc && i < page->n; i++) {
		struct schema_key key;

		m->schema->key_classify(page->items[i].key, &key);
		if (key.cls == SCHEMA_KEY_OBJECT)
			rc = add_id(m, &key.id, err);
	}
	return rc;
}

static int number_prefixes(struct model *m, const struct store_list_job *jobs, size_t n,
			   struct err *err)
{
	size_t total = 1;

	for (size_t j = 0; j < n; j++)
		total += jobs[j].page.n;
	int rc = make_tables(m, total, err);
	if (!rc)
		rc = add_id(m, &m->domain.root, err);
	for (size_t j = 0; j < n; j++) {
		for (size_t i = 0; !rc && i < jobs[j].page.n; i++) {
			const struct store_item *item = &jobs[j].page.items[i];
			struct schema_id id;

			if (item->is_prefix && m->schema->object_of_prefix(item->key, &id))
				rc = add_id(m, &id, err);
		}
	}
	return rc;
}

/* Too many keys; or one directory among them, in which nothing of ours need be, is too deep or
 * closed to us: the objects can still be named. */
static bool is_listing_optional(int code)
{
	return code == -E2BIG || code == -ELOOP || code == -EACCES;
}

/* Round 2. jobs[0] is the whole listing, all or nothing; the others name the objects. */
static int read_listings(struct model *m, struct err *err)
{
	static const uint32_t object_limit = MODEL_MAX_OBJECTS;
	char prefixes[LIST_JOBS][SCHEMA_KEY_MAX + 1];
	struct store_list_job jobs[LIST_JOBS] = {0};
	size_t n = 1;

	if (m->schema->storage_prefix(&m->domain.root, m->storage, sizeof(m->storage)) < 0)
		return err_set(err, -EIO, "the root group's id makes no key");
	jobs[0] = (struct store_list_job){.prefix = m->storage, .limit = MODEL_LISTING};
	while (n < LIST_JOBS && m->schema->object_prefix(&m->domain.root, (unsigned int)n - 1,
							 prefixes[n], sizeof(prefixes[n])) > 0) {
		jobs[n] = (struct store_list_job){
			.prefix = prefixes[n], .delimit = true, .limit = object_limit};
		n++;
	}
	int rc = store_list_many(m->store, jobs, n);
	if (!rc && jobs[0].code == 0) {
		m->listed_whole = true;
		m->listing_digest = model_listing_digest(m, &jobs[0].page);
		rc = number_whole(m, &jobs[0].page, err);
		m->listing = jobs[0].page;
		jobs[0].page = (struct store_page){0};
	} else if (!rc && !is_listing_optional(jobs[0].code)) {
		err_copy(err, &jobs[0].err);
		rc = err_wrap(err, jobs[0].code, "listing %s", m->storage);
	} else if (!rc) {
		for (size_t j = 1; !rc && j < n; j++) {
			if (jobs[j].code) {
				err_copy(err, &jobs[j].err);
				rc = err_wrap(err, jobs[j].code, "listing %s", jobs[j].prefix);
			}
		}
		if (!rc)
			rc = number_prefixes(m, jobs + 1, n - 1, err);
	}
	for (size_t j = 0; j < n; j++)
		store_page_release(&jobs[j].page);
	return rc;
}

struct skip_ctx {
	struct model *m;
	const char *key;
};

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

static bool take_value(struct model *m, const struct elems *value)
{
	const uint64_t size = (uint64_t)value->fixed.len + value->heap.len;

	if (size > MODEL_VALUES_MAX - m->values)
		return false;
	m->values += size;
	return true;
}

/* Values are held whole, and a few bytes of JSON can ask for very many of them. */
static int keep_values(struct model *m, const char *key, struct object *o, struct err *err)
{
	uint32_t kept = 0;

	if (o->kind == OBJECT_DATASET && !take_value(m, &o->dataset.fill))
		return err_set(err, -EFBIG, "values of the domain take over %d bytes",
			       MODEL_VALUES_MAX);
	for (uint32_t i = 0; i < o->nattrs; i++) {
		struct attribute *a = &o->attrs[i];

		if (take_value(m, &a->value)) {
			o->attrs[kept++] = *a;
			continue;
		}
		model_note(m,
			   "%s: attribute \"%s\" left out: values of the domain take over %d bytes",
			   key, a->name, MODEL_VALUES_MAX);
		elems_release(&a->value);
	}
	o->nattrs = kept;
	return 0;
}

/* A document that cannot be read makes its own object broken, not the domain, unless it is the
 * root group's. */
static int parse_document(struct model *m, uint32_t number, const char *key,
			  const struct store_get_result *res, struct err *err)
{
	struct model_object *object = &m->objects[number];
	struct skip_ctx skip = {.m = m, .key = key};
	const struct schema_numbers numbers = {.number = number_of, .ctx = m};
	struct err why = ERR_INIT;
	int rc = res->code;

	if (rc)
		err_copy(&why, &res->err);
	else
		rc = m->schema->object_parse(m->arena, &m->entries[number].id, &m->domain.root,
					     res->body.data, res->body.len, &numbers, note_skipped,
					     &skip, &object->o, &why);
	if (!rc)
		rc = check_size(&object->o, &why);
	if (!rc)
		rc = keep_values(m, key, &object->o, &why);
	if (!rc) {
		memcpy(m->entries[number].etag, res->meta.etag, sizeof(res->meta.etag));
		if (object->o.modified_ns > m->modified_ns)
			m->modified_ns = object->o.modified_ns;
		return 0;
	}
	object_release(&object->o);
	object->o = (struct object){0};
	object->broken = true;
	if (number == 0) {
		/* -ENOENT is for domains that are not there; this one is damaged */
		if (rc == -ENOENT)
			rc = err_set(err, -EIO, "the domain names it, but it is not there");
		else
			err_copy(err, &why);
		return err_wrap(err, rc, "root group %s", key);
	}
	if (rc == -ENOMEM || rc == -EACCES) {
		err_copy(err, &why);
		return err_wrap(err, rc, "%s", key);
	}
	/* Prefixes without a document are leftovers of deleted objects. */
	if (rc != -ENOENT)
		model_note(m, "%s: object left out: %s", key, why.msg);
	return 0;
}

/* Bodies of 256 MiB are not held side by side. */
static void read_large(struct model *m, const char *key, struct store_get_result *res)
{
	bytes_release(&res->body);
	store_get(m->store, key, 0, UINT64_MAX, SCHEMA_JSON_MAX, NULL, res, NULL);
}

static int read_some_documents(struct model *m, uint32_t first, uint32_t n, struct err *err)
{
	auto_free char *keys = calloc(n, SCHEMA_KEY_MAX + 1);
	auto_free struct store_get *reqs = calloc(n, sizeof(*reqs));
	auto_free struct store_get_result *results = calloc(n, sizeof(*results));
	int rc = 0;

	if (!keys || !reqs || !results)
		return err_set(err, -ENOMEM, "no memory for %u requests", n);
	for (uint32_t i = 0; i < n; i++) {
		char *key = keys + (size_t)i * (SCHEMA_KEY_MAX + 1);

		if (m->schema->object_key(&m->entries[first + i].id, key, SCHEMA_KEY_MAX + 1) < 0)
			return err_set(err, -EIO, "an object's id makes no key");
		reqs[i] = (struct store_get){.op = STORE_GET,
					     .key = key,
					     .length = UINT64_MAX,
					     .max = DOCUMENT_USUAL,
					     .known_etag = model_listed_etag(m, key)};
	}
	rc = store_get_many(m->store, reqs, n, results);
	if (rc)
		return err_set(err, rc, "no memory for %u requests", n);
	for (uint32_t i = 0; i < n; i++) {
		if (!rc && results[i].code == -EFBIG)
			read_large(m, reqs[i].key, &results[i]);
		if (!rc)
			rc = parse_document(m, first + i, reqs[i].key, &results[i], err);
		bytes_release(&results[i].body);
	}
	return rc;
}

/* Round 3. */
static int read_documents(struct model *m, struct err *err)
{
	int rc = 0;

	for (uint32_t first = 0; !rc && first < m->numbers; first += DOCUMENTS_AT_ONCE)
		rc = read_some_documents(
			m, first, (uint32_t)min_u64(DOCUMENTS_AT_ONCE, m->numbers - first), err);
	return rc;
}

int model_open(const struct env *env, struct store *store, const struct schema_ops *schema,
	       const char *path, struct model **out, struct err *err)
{
	struct model *m = new_model(env, store, schema, path);

	*out = NULL;
	if (!m)
		return err_set(err, -ENOMEM, "domain /%s: no memory", path);
	int rc = read_domain(m, err);
	if (!rc)
		rc = read_listings(m, err);
	if (!rc)
		rc = read_documents(m, err);
	if (!rc)
		rc = model_order(m, err);
	if (!rc)
		rc = model_know_chunks(m, err);
	if (rc) {
		model_unref(m);
		return err_wrap(err, rc, "domain /%s", path);
	}
	*out = m;
	return 0;
}
