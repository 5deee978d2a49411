/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of names in a bucket in memory. */
#ifndef TESTS_DOMAIN_CHANGE_FIXTURE_H
#define TESTS_DOMAIN_CHANGE_FIXTURE_H

#include "import_fixture.h"

#include <storage/change.h>

#include <domain/documents.h>
#include <bucket/schemas.h>

static inline struct change change_of(const struct world *w)
{
	return (struct change){.env = &w->env,
			       .store = w->store,
			       .schema = schema_all()[0],
			       .owner = "ann",
			       .now_ns = INT64_C(1700000000000000000)};
}

/* The document of a path; NULL if there is none. */
static inline struct schema_document *look_up(struct world *w, const char *path)
{
	const struct document_place place = {
		.env = &w->env, .store = w->store, .schema = schema_all()[0]};
	struct schema_document *d;
	assert_int_equal(document_get(&place, path, &d, NULL), 0);
	return d;
}

static inline void import_as(struct world *w, const char *path, uint8_t seed)
{
	w->seed = seed;
	w->opt.path = path;
	world_must_import(w, NULL);
}

#endif
