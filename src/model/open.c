/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening a domain in rounds of parallel requests:
 *   1. the domain document: which root group (names.c);
 *   2. the listings: everything below the storage prefix when it fits one page (then the existing
 *      chunks are known too), and side by side the delimited listings that name the objects;
 *   3. all object documents (documents.c).
 * Rounds 1 and 2 are one where the root group is known beforehand. Numbers are given out after
 * round 2, so that documents can name each other while they are parsed.
 */
#include <model/model.h>

#include <errno.h>
#include <string.h>

#include "model_internal.h"

#define MODEL_ARENA_LIMIT ((size_t)4 << 30)

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
	m->charge = (struct budget_charge){.budget = env->budget, .use = BUDGET_TREES};
	m->resolver = (struct object_resolver){.resolve = resolve, .ctx = m};
	m->path = strdup(path);
	m->arena = arena_new(MODEL_ARENA_LIMIT);
	if (!m->path || !m->arena) {
		model_unref(m);
		return NULL;
	}
	return m;
}

static int read_all(struct model *m, const struct model_hint *hint, bool *same, struct err *err)
{
	int rc = model_read_names(m, hint, same, err);

	if (rc || *same)
		return rc;
	rc = model_charge(m, err);
	if (!rc)
		rc = model_read_documents(m, hint->previous, err);
	if (!rc)
		rc = model_order(m, err);
	if (!rc)
		rc = model_know_chunks(m, err);
	return rc ? rc : model_charge(m, err);
}

int model_open(const struct env *env, struct store *store, const struct schema_ops *schema,
	       const char *path, const struct model_hint *hint, struct model **out, struct err *err)
{
	static const struct model_hint none;
	struct model *m = new_model(env, store, schema, path);
	bool same = false;

	*out = NULL;
	if (!m)
		return err_set(err, -ENOMEM, "domain /%s: no memory", path);
	if (!hint)
		hint = &none;
	int rc = read_all(m, hint, &same, err);
	if (rc || same) {
		model_unref(m);
		m = NULL;
	}
	if (rc)
		return err_wrap(err, rc, "domain /%s", path);
	*out = same ? model_ref(hint->previous) : m;
	return 0;
}
